#!/usr/bin/env bash
# expect: allow
# Deploys over ssh.
HOST=deploy@web1.example.test
APP=/srv/app
rsync -az --delete dist/ "$HOST:$APP/next/"
ssh "$HOST" bash -s <<'REMOTE'
set -e
cd app
ln -sfn next current
ls -1 releases | head -n 5
systemctl --user is-active web || true
REMOTE
