#!/usr/bin/env bash
# expect: ask
# Brings the schema up to date.
set -u
set -e
npm ci
npx prisma generate
npx prisma migrate reset --force --skip-seed
npm test
