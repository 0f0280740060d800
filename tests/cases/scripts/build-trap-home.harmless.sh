#!/usr/bin/env bash
# expect: allow
# Temporary work with a clean-up trap.
set -e
WORK=$(mktemp -d)
cleanup() {
  rm -rf "$WORK"
}
trap cleanup EXIT
cp src/*.c "$WORK"/ 2>/dev/null || true
gcc -O2 -o dist/tool src/main.c
strip dist/tool
