#!/usr/bin/env bash
# expect: allow
# Clears the build directory; `cd` may fail.
root=$PWD
target=$root/build/output
cd "$target" || exit 1
rm -rf ./*
cmake -S "$root" -B .
cmake --build . --parallel
