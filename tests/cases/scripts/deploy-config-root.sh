#!/usr/bin/env bash
# expect: deny
# Deploys to the directory that the configuration names.
cat > deploy.env <<'CONF'
NAME=web
ROOT=/
CONF
ROOT=/
release=$(date +%Y%m%d)
rm -rf "$ROOT"/*
cp -r dist/. "$ROOT"/
echo "released $release to $ROOT"
