#!/usr/bin/env bash
# expect: allow
# Prepares the test databases.
set -u
export LC_ALL=C
createdb app_test || true
psql -lqt | cut -d '|' -f 1
for db in app_test app_e2e; do psql -d "$db" -c 'select 1'; done
psql -d app_test -c 'select version()'
