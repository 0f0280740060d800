#!/usr/bin/env bash
# expect: deny
# Removes the directories of a list.
while read -r dir; do
  case $dir in
    ''|'#'*) continue ;;
  esac
  rm -rf "$dir"
done <<'LIST'
# one a line
build/cache
/var/lib
LIST
ls build
