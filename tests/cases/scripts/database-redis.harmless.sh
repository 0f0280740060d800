#!/usr/bin/env bash
# expect: allow
# Warms the cache.
set -u
export LC_ALL=C
host=localhost
redis-cli -h "$host" ping
redis-cli -h "$host" info keyspace
redis-cli -h "$host" set warm 1
