#!/usr/bin/env bash
# expect: deny
# Deletes stale work trees.
list=$(mktemp)
printf '%s\n' "$HOME" /etc > "$list"
echo "removing:"
cat "$list"
printf '%s\n' "$HOME" /etc | xargs -n1 rm -rf
rm -f "$list"
