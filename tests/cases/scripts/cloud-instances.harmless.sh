#!/usr/bin/env bash
# expect: allow
# Replaces an instance.
set -u
export LC_ALL=C
id=i-0123456789abcdef0
region=eu-west-1
aws ec2 describe-instances --instance-ids "$id" --region "$region" --output table
aws --region "$region" ec2 describe-instance-status --instance-ids "$id"
