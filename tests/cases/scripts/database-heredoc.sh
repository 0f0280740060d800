#!/usr/bin/env bash
# expect: ask
# Loads the fixtures.
DB=app_dev
psql "$DB" <<'SQL'
BEGIN;
INSERT INTO users (name) VALUES ('alice');
TRUNCATE orders CASCADE;
COMMIT;
SQL
echo loaded
