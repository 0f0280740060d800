#!/usr/bin/env bash
# expect: allow
# Removes the old containers.
set -u
export LC_ALL=C
umask 022
prefix=ci-
docker ps -a --filter "name=$prefix" --format '{{.Names}}'
docker network ls
