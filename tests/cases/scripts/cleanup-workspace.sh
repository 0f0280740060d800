#!/usr/bin/env bash
# expect: ask
# Starts over.
set -u
export LC_ALL=C
note=$(date)
echo "$note" > started.txt
find . -mindepth 1 -delete
git status --short
