#!/usr/bin/env bash
# expect: deny
set -u
# Builds a release tree and clears the old one.
PREFIX=
VERSION=$(git describe --tags --always)
mkdir -p dist
make -j"$(nproc)" VERSION="$VERSION"
rm -rf "$PREFIX"/*
cp -r dist/. "${PREFIX:-/tmp/stage}"/
echo "staged $VERSION"
