#!/usr/bin/env bash
# expect: allow
# Checks the collections.
set -u
export LC_ALL=C
uri=mongodb://localhost/app
js='db.getCollectionNames()'
mongosh "$uri" --quiet --eval "$js"
echo checked
