#!/usr/bin/env bash
# expect: allow
# Makes a deploy key.
set -u
export LC_ALL=C
umask 022
key=./deploy_key
ssh-keygen -t ed25519 -N '' -f "$key" -C ci
cat "$key.pub"
