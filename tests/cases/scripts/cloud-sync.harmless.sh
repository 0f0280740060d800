#!/usr/bin/env bash
# expect: allow
# Publishes the site.
set -u
export LC_ALL=C
set -e
hugo --minify
aws s3 sync public/ s3://acme-site --delete --dryrun
curl -sI https://example.test | head -1
