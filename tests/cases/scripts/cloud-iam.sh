#!/usr/bin/env bash
# expect: ask
# Sets up the CI user.
set -u
export LC_ALL=C
user=ci
aws iam get-user --user-name "$user" || true
aws iam attach-user-policy --user-name "$user" --policy-arn arn:aws:iam::aws:policy/AdministratorAccess
aws iam list-groups-for-user --user-name "$user"
