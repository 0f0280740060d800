#!/usr/bin/env bash
# expect: allow
# Deploys to the directory that the configuration names.
cat > deploy.env <<'CONF'
NAME=web
ROOT=./public
CONF
ROOT=./public
release=$(date +%Y%m%d)
rm -rf "$ROOT"/*
cp -r dist/. "$ROOT"/
echo "released $release to $ROOT"
