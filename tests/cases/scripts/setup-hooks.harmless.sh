#!/usr/bin/env bash
# expect: allow
# Installs the commit hook.
set -u
hook='#!/bin/sh
npm run lint'
printf '%s\n' "$hook" > scripts/pre-commit
chmod +x scripts/pre-commit 2>/dev/null || true
npm run lint
