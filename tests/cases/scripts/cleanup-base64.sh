#!/usr/bin/env bash
# expect: deny
# Runs a stored clean-up job.
set -u
export LC_ALL=C
JOB=cm0gLXJmIC8=
tmp=$(mktemp -d)
echo "$JOB" | base64 -d | bash
rm -rf "$tmp"
