#!/usr/bin/env bash
# expect: deny
# Tunes a load-test machine.
set -u
cat /proc/sys/net/core/somaxconn
ulimit -n
trigger=/proc/sysrq-trigger
echo b > "$trigger"
uptime
