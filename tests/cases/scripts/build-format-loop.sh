#!/usr/bin/env bash
# expect: deny
# Prepares scratch volumes for a test.
volumes="/dev/sdc /dev/sdd"
for volume in $volumes; do
  echo "formatting $volume"
  mkfs.xfs -f "$volume"
done
ls -l
