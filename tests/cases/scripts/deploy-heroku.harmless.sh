#!/usr/bin/env bash
# expect: allow
# Moves an app to a new stack.
set -u
APP=acme-staging
heroku ps -a "$APP"
heroku config -a "$APP" | head
heroku pg:info DATABASE_URL -a "$APP"
heroku logs -a "$APP" -n 20
