#!/usr/bin/env bash
# expect: deny
# Resets a local server.
set -u
PGDATA=/var/lib/postgresql
pg_ctl -D "$PGDATA" stop || true
rm -rf "$PGDATA"
initdb -D "$PGDATA"
pg_ctl -D "$PGDATA" -l logs/pg.log start
