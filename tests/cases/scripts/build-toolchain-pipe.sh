#!/usr/bin/env bash
# expect: ask
# Sets the toolchain up.
TOOL=acme
BASE=https://get.example.test
mkdir -p "$PWD/.tools"
curl -fsSL "$BASE/$TOOL.sh" | sh -s -- --prefix "$PWD/.tools"
export PATH=$PATH:$PWD/.tools/bin
make test
