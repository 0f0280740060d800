#!/usr/bin/env bash
# expect: ask
# Removes the old containers.
set -u
export LC_ALL=C
prefix=ci-
ids=$(docker ps -aq --filter "name=$prefix")
docker rm -f $ids
docker network ls
