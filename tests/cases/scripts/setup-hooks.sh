#!/usr/bin/env bash
# expect: ask
# Installs the commit hook.
set -u
hook='#!/bin/sh
npm run lint'
printf '%s\n' "$hook" > .git/hooks/pre-commit
chmod +x scripts/pre-commit 2>/dev/null || true
npm run lint
