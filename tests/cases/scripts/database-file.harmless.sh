#!/usr/bin/env bash
# expect: allow
# Runs a migration by hand.
cat > migration.sql <<'SQL'
ALTER TABLE users ADD COLUMN age int;
CREATE INDEX ON users (age);
SQL
wc -l migration.sql
psql app_dev -f migration.sql
