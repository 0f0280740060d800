#!/usr/bin/env bash
# expect: deny
# Restarts the tools of the workstation.
tools="vite redis"
tools="$tools portcullis"
for tool in $tools; do
  pkill -f "$tool" || true
done
echo restarted
