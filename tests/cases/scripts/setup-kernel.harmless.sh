#!/usr/bin/env bash
# expect: allow
# Tunes a load-test machine.
set -u
export LC_ALL=C
cat /proc/sys/net/core/somaxconn
ulimit -n
sysctl net.core.somaxconn
uptime
