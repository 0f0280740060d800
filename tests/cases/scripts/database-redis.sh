#!/usr/bin/env bash
# expect: ask
# Warms the cache.
set -u
export LC_ALL=C
host=localhost
redis-cli -h "$host" ping
redis-cli -h "$host" flushall
redis-cli -h "$host" set warm 1
