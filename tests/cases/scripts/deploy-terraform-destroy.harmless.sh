#!/usr/bin/env bash
# expect: allow
# Rebuilds a stage from nothing.
STAGE=${STAGE:-preview}
teardown() {
  terraform -chdir=infra plan -destroy -var "stage=$STAGE"
}
terraform -chdir=infra init
teardown
terraform -chdir=infra show
