#!/usr/bin/env bash
# expect: allow
# Brings the tree in line with upstream.
set -u
git fetch origin
upstream=origin/main
git log --oneline HEAD.."$upstream" | head
git merge --ff-only "$upstream"
git status -sb
