#!/usr/bin/env bash
# expect: ask
# Schedules the report.
set -u
export LC_ALL=C
job="0 6 * * * $PWD/report.sh"
crontab -l > current.txt 2>/dev/null || true
{ cat current.txt; echo "$job"; } | crontab -
diff current.txt wanted.txt || true
