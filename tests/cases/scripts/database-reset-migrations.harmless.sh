#!/usr/bin/env bash
# expect: allow
# Brings the schema up to date.
set -u
set -e
npm ci
npx prisma generate
npx prisma migrate status
npm test
