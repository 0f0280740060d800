#!/usr/bin/env bash
# expect: allow
# Deletes stale work trees.
list=$(mktemp)
printf '%s\n' build/old build/tmp > "$list"
echo "removing:"
cat "$list"
printf '%s\n' build/old build/tmp | xargs -n1 rm -rf
rm -f "$list"
