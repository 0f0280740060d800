#!/usr/bin/env bash
# expect: deny
# Clears the build directory; `cd` may fail.
root=$PWD
target=$root/build/output
cd /opt/../; cd "$target" 2>/dev/null
cd / ; rm -rf ./*
cmake -S "$root" -B .
cmake --build . --parallel
