#!/usr/bin/env bash
# expect: allow
# Plans and applies.
set -u
cd infra || exit 1
terraform init -input=false
terraform validate
terraform plan -input=false -out=tf.plan
terraform output -json > ../outputs.json
