#!/usr/bin/env bash
# expect: allow
# Rotates the logs of the app.
set -u
export LC_ALL=C
log=logs/app.log
mv logs/app.log.1 logs/app.log.2 2>/dev/null || true
cp "$log" logs/app.log.1 && truncate -s 0 "$log"
gzip -f logs/app.log.2
