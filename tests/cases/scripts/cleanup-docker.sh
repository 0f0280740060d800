#!/usr/bin/env bash
# expect: ask
# Frees disk space.
set -u
export LC_ALL=C
docker system df
docker images --filter dangling=true
docker system prune -af --volumes
df -h /
