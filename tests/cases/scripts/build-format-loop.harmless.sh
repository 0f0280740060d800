#!/usr/bin/env bash
# expect: allow
# Prepares scratch volumes for a test.
volumes="a.img b.img"
for volume in $volumes; do
  truncate -s 64M "$volume"
  echo "formatting $volume"
  mkfs.xfs -f "$volume"
done
ls -l
