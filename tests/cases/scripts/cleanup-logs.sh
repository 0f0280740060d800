#!/usr/bin/env bash
# expect: ask
# Rotates the logs of the app.
set -u
log=logs/app.log
log=/var/log/auth.log
mv logs/app.log.1 logs/app.log.2 2>/dev/null || true
truncate -s 0 "$log"
gzip -f logs/app.log.2
