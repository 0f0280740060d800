#!/usr/bin/env bash
# expect: allow
set -u
# Builds a release tree and clears the old one.
PREFIX=build/stage
VERSION=$(git describe --tags --always)
mkdir -p dist
make -j"$(nproc)" VERSION="$VERSION"
rm -rf "$PREFIX"/*
cp -r dist/. "${PREFIX:-/tmp/stage}"/
echo "staged $VERSION"
