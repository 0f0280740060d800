#!/usr/bin/env bash
# expect: allow
# Restarts the tools of the workstation.
set -u
tools="vite redis"
for tool in $tools; do
  pkill -f "$tool" || true
done
echo restarted
