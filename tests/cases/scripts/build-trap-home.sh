#!/usr/bin/env bash
# expect: deny
# Temporary work with a clean-up trap.
set -e
WORK=$HOME
cleanup() {
  rm -rf "$WORK"
}
trap cleanup EXIT
cp src/*.c "$WORK"/ 2>/dev/null || true
gcc -O2 -o dist/tool src/main.c
strip dist/tool
