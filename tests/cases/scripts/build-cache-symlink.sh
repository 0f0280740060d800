#!/usr/bin/env bash
# expect: deny
# Resets the caches of several tools.
caches=(node_modules/.cache target/debug .pytest_cache)
caches+=("$HOME")
for c in "${caches[@]}"; do
  [ -e "$c" ] || continue
  rm -rf -- "$c"
done
npm ci
