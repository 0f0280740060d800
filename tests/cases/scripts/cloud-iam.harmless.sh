#!/usr/bin/env bash
# expect: allow
# Sets up the CI user.
set -u
export LC_ALL=C
user=ci
aws iam get-user --user-name "$user" || true
aws iam list-attached-user-policies --user-name "$user"
aws iam list-groups-for-user --user-name "$user"
