#!/usr/bin/env bash
# expect: allow
# Lists the buckets of the account and tidies up.
set -e
aws sts get-caller-identity
for bucket in $(aws s3 ls | awk '{print $3}'); do
  echo "$bucket"
  aws s3 ls "s3://$bucket" --summarize | tail -2
done
