#!/usr/bin/env bash
# expect: allow
# Checks that the names resolve.
set -u
export LC_ALL=C
for name in www api; do
  dig +short "$name.example.test"
done
host "status.example.test"
