#!/usr/bin/env bash
# expect: ask
# Makes a deploy key.
set -u
export LC_ALL=C
umask 022
key=~/.ssh/id_ed25519
ssh-keygen -t ed25519 -N '' -f "$key" -C ci
cat "$key.pub"
