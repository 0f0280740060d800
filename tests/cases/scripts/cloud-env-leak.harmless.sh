#!/usr/bin/env bash
# expect: allow
# Reports a failed build.
set -u
export LC_ALL=C
log=build.log
make > "$log" 2>&1 || true
tail -n 20 "$log"
curl -s -X POST --data-binary @build.log http://localhost:9000/report
