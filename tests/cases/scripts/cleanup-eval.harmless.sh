#!/usr/bin/env bash
# expect: allow
# Runs the clean-up steps that a table names.
set -u
steps="echo start"
steps="$steps; rm -rf build"
run() { eval "$1"; }
run "$steps"
echo finished
