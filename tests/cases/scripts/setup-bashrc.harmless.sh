#!/usr/bin/env bash
# expect: allow
# Sets the shell up for the project.
set -u
export LC_ALL=C
umask 022
line='export PATH=$PATH:./bin'
grep -qF "$line" .envrc || echo "$line" >> .envrc
echo "restart the shell"
