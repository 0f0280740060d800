#!/usr/bin/env bash
# expect: allow
# Sets the toolchain up.
TOOL=acme
BASE=https://get.example.test
mkdir -p "$PWD/.tools"
curl -fsSL "$BASE/$TOOL.tgz" -o ".tools/$TOOL.tgz" && tar xzf ".tools/$TOOL.tgz" -C .tools
export PATH=$PATH:$PWD/.tools/bin
make test
