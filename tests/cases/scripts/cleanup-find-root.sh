#!/usr/bin/env bash
# expect: deny
# Deletes old logs.
set -u
LOG_DIR=logs
DAYS=14
find "${LOG_DIRS:-/}" -type f -delete
du -sh "$LOG_DIR"
df -h .
