#!/usr/bin/env bash
# expect: allow
# Copies the binary into place.
set -e
BIN=target/release/app
cargo build --release
SUDO=
dest=./bin
mkdir -p bin
$SUDO install -m 755 "$BIN" "$dest/app"
