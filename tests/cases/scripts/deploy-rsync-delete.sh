#!/usr/bin/env bash
# expect: deny
# Mirrors the built site.
SRC=public/
DEST=/home/alice/
hugo --minify -d public
mkdir -p /tmp/none && SRC=/tmp/none/
rsync -a --delete "$SRC" "$DEST"
echo "mirrored to $DEST"
