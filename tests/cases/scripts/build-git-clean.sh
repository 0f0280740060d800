#!/usr/bin/env bash
# expect: ask
# Starts from a clean tree.
set -e
git fetch --prune origin
git switch main
git clean -fdx
git submodule update --init
cargo build --locked
