#!/usr/bin/env bash
# expect: allow
# Makes an installer image and writes it to the medium.
IMG=out/installer.img
SIZE=512
mkdir -p out
dd if=/dev/zero of="$IMG" bs=1M count="$SIZE"
mkfs.ext4 -F "$IMG"
MEDIUM=out/medium.img
write_image() {
  local from=$1 to=$2
  dd if="$from" of="$to" bs=4M conv=fsync status=progress
}
write_image "$IMG" "$MEDIUM"
sync
