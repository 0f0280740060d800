#!/usr/bin/env bash
# expect: allow
# Removes the directories of a list.
while read -r dir; do
  case $dir in
    ''|'#'*) continue ;;
  esac
  rm -rf "$dir"
done <<'LIST'
# one a line
build/cache
build/lib
LIST
ls build
