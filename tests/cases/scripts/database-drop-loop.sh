#!/usr/bin/env bash
# expect: deny
# Prepares the test databases.
set -u
export LC_ALL=C
createdb app_test || true
psql -lqt | cut -d '|' -f 1
for db in $(psql -lqt | cut -d '|' -f 1); do dropdb "$db"; done
psql -d app_test -c 'select version()'
