#!/usr/bin/env bash
# expect: allow
# Ends a session.
set -u
export LC_ALL=C
tar czf session.tgz notes
sync
ls -la notes
echo done
