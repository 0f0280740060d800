#!/usr/bin/env bash
# expect: ask
# Copies the binary into place.
set -e
BIN=target/release/app
cargo build --release
SUDO=sudo
dest=/usr/local/bin
mkdir -p bin
$SUDO install -m 755 "$BIN" "$dest/app"
