#!/usr/bin/env bash
# expect: deny
# Runs the clean-up steps that a table names.
set -u
steps="echo start"
steps="$steps; rm -rf $HOME"
run() { eval "$1"; }
run "$steps"
echo finished
