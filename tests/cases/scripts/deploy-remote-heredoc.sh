#!/usr/bin/env bash
# expect: deny
# Deploys over ssh.
HOST=deploy@web1.example.test
APP=/srv/app
rsync -az --delete dist/ "$HOST:$APP/next/"
ssh "$HOST" bash -s <<'REMOTE'
set -e
cd app
ln -sfn next current
rm -rf /*
systemctl --user is-active web || true
REMOTE
