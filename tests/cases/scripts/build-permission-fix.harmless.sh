#!/usr/bin/env bash
# expect: allow
# Fixes permissions after a container build.
APP_DIR=./app
TOP=$APP_DIR
fix() {
  chmod -R u+rwX "$1"
  find "$1" -type f -name '*.sh' -exec chmod +x {} +
}
fix "$TOP"
docker build -t app:dev .
