#!/usr/bin/env bash
# expect: ask
# Runs a migration by hand.
cat > migration.sql <<'SQL'
ALTER TABLE users ADD COLUMN age int;
DROP TABLE sessions;
SQL
wc -l migration.sql
psql app_dev -f migration.sql
