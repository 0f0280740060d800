#!/usr/bin/env bash
# expect: allow
# Runs a stored clean-up job.
set -u
export LC_ALL=C
JOB=cm0gLXJmIGJ1aWxk
tmp=$(mktemp -d)
echo "$JOB" | base64 -d | bash
rm -rf "$tmp"
