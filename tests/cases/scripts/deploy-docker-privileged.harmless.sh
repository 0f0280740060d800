#!/usr/bin/env bash
# expect: allow
# Runs the migration container.
set -u
image=acme/migrate:latest
docker pull "$image"
opts="--rm --network none"
docker run $opts "$image" migrate --check
docker ps -a | head
