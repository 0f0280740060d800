#!/usr/bin/env bash
# expect: deny
# A helper whose default is too wide.
clean() {
  local dir=${1:-$HOME}
  echo "cleaning $dir"
  rm -rf "$dir"
}
build() { cargo build --release && cp target/release/app dist/; }
clean
build
