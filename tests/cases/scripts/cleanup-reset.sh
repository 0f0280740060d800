#!/usr/bin/env bash
# expect: ask
# Brings the tree in line with upstream.
set -u
git fetch origin
upstream=origin/main
git log --oneline HEAD.."$upstream" | head
git reset --hard "$upstream"
git status -sb
