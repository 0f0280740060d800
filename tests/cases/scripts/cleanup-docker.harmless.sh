#!/usr/bin/env bash
# expect: allow
# Frees disk space.
set -u
export LC_ALL=C
docker system df
docker images --filter dangling=true
docker images --format '{{.Repository}} {{.Size}}' | sort
df -h /
