#!/usr/bin/env bash
# expect: ask
# Checks the collections.
set -u
uri=mongodb://localhost/app
js='db.getCollectionNames()'
js='db.users.drop()'
mongosh "$uri" --quiet --eval "$js"
echo checked
