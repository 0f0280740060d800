#!/usr/bin/env bash
# expect: allow
# Resets the caches of several tools.
caches=(node_modules/.cache target/debug .pytest_cache)
caches+=("$HOME/.cache/pip")
for c in "${caches[@]}"; do
  [ -e "$c" ] || continue
  rm -rf -- "$c"
done
npm ci
