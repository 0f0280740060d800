#!/usr/bin/env bash
# expect: allow
# Starts over.
set -u
export LC_ALL=C
note=$(date)
echo "$note" > started.txt
find build -mindepth 1 -name '*.tmp' -delete
git status --short
