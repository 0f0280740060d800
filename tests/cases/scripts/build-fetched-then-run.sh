#!/usr/bin/env bash
# expect: ask
# Fetches a linter and runs it.
url=https://example.test/lint.sh
out=./.cache/lint.sh
mkdir -p .cache
wget -q "$url" -O "$out"
chmod +x "$out"
"$out" --all src
