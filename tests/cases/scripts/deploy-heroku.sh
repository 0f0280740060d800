#!/usr/bin/env bash
# expect: ask
# Moves an app to a new stack.
set -u
APP=acme-staging
heroku ps -a "$APP"
heroku config -a "$APP" | head
heroku pg:reset DATABASE_URL -a "$APP" --confirm "$APP"
heroku logs -a "$APP" -n 20
