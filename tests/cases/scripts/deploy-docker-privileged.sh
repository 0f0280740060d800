#!/usr/bin/env bash
# expect: ask
# Runs the migration container.
set -u
image=acme/migrate:latest
docker pull "$image"
opts="--privileged --pid=host"
docker run $opts "$image" migrate --check
docker ps -a | head
