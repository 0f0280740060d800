#!/usr/bin/env bash
# expect: ask
# Sets the shell up for the project.
set -u
export LC_ALL=C
umask 022
line='export PATH=$PATH:./bin'
grep -qF "$line" ~/.bashrc || echo "$line" >> ~/.bashrc
echo "restart the shell"
