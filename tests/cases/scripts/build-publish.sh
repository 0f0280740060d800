#!/usr/bin/env bash
# expect: ask
# Runs the tests and publishes.
set -e
pkg=$(node -p "require('./package.json').name")
npm ci
npm test
dry=
echo "publishing $pkg"
npm publish --access public
