#!/usr/bin/env bash
# expect: allow
# Deletes merged branches.
set -u
export LC_ALL=C
git fetch --prune
git branch --merged main | grep -v main
git for-each-ref --format='%(refname:short)' refs/heads | grep -v main | xargs -n1 echo
git gc
