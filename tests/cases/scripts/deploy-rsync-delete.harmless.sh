#!/usr/bin/env bash
# expect: allow
# Mirrors the built site.
SRC=public/
DEST=mirror/
hugo --minify -d public
mkdir -p mirror
rsync -a --delete "$SRC" "$DEST"
echo "mirrored to $DEST"
