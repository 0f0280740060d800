#!/usr/bin/env bash
# expect: allow
# Deletes old logs.
set -u
LOG_DIR=logs
DAYS=14
find "$LOG_DIR" -type f -name '*.log' -mtime +"$DAYS" -delete
du -sh "$LOG_DIR"
df -h .
