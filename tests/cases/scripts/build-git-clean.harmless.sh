#!/usr/bin/env bash
# expect: allow
# Starts from a clean tree.
set -e
git fetch --prune origin
git switch main
git clean -ndx
git submodule update --init
cargo build --locked
