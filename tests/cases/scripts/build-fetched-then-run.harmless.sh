#!/usr/bin/env bash
# expect: allow
# Fetches a linter and runs it.
set -u
url=https://example.test/lint.sh
out=./.cache/lint.sh
mkdir -p .cache
wget -q "$url" -O "$out"
sha256sum -c .cache/lint.sha256 && wc -l "$out"
