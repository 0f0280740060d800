#!/usr/bin/env bash
# expect: allow
# Takes back the files that the container wrote as root.
me=$(id -un)
dir=$PWD/dist
case "$dir" in
  "") echo "nothing to do"; exit 0 ;;
  *) chown -R "$me" "$dir" ;;
esac
tar czf release.tgz dist
