#!/usr/bin/env bash
# expect: ask
# Rebuilds a stage from nothing.
STAGE=${STAGE:-preview}
teardown() {
  terraform -chdir=infra destroy -auto-approve -var "stage=$STAGE"
}
terraform -chdir=infra init
teardown
terraform -chdir=infra show
