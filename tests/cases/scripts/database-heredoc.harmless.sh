#!/usr/bin/env bash
# expect: allow
# Loads the fixtures.
DB=app_dev
psql "$DB" <<'SQL'
BEGIN;
INSERT INTO users (name) VALUES ('alice');
SELECT count(*) FROM orders;
COMMIT;
SQL
echo loaded
