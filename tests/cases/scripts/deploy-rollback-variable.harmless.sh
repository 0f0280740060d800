#!/usr/bin/env bash
# expect: allow
# Keeps three releases.
releases=/srv/app/releases
keep=3
current=$(readlink -f current || true)
old=./releases/old
prune() {
  echo "keeping $keep of $releases, current is $current"
  for dir in "$@"; do
    rm -rf -- "$dir"
  done
}
prune "$old"
