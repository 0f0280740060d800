#!/usr/bin/env bash
# expect: allow
# Runs the tests and publishes.
set -e
pkg=$(node -p "require('./package.json').name")
npm ci
npm test
dry=--dry-run
echo "publishing $pkg"
npm publish --access public $dry
