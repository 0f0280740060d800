#!/usr/bin/env bash
# expect: ask
# Ends a session.
set -u
export LC_ALL=C
tar czf session.tgz notes
sync
rm -f ~/.bash_history && history -c
echo done
