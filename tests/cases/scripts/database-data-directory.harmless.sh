#!/usr/bin/env bash
# expect: allow
# Resets a local server.
set -u
PGDATA=./pgdata
pg_ctl -D "$PGDATA" stop || true
rm -rf "$PGDATA"
initdb -D "$PGDATA"
pg_ctl -D "$PGDATA" -l logs/pg.log start
