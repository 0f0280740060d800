#!/usr/bin/env bash
# expect: ask
# Plans and applies.
set -u
cd infra || exit 1
terraform init -input=false
terraform validate
terraform apply -auto-approve -input=false
terraform output -json > ../outputs.json
