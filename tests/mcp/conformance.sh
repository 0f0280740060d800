#!/bin/sh
# The scenarios of @modelcontextprotocol/conformance that need no fixture tools, against a server at a URL that needs no
# credential:  conformance.sh http://127.0.0.1:8471/mcp path/to/node_modules   (Node 22 or newer)
set -eu
url=$1
runner=$2/@modelcontextprotocol/conformance/dist/index.js
failed=0
for scenario in server-initialize server-session-lifecycle ping tools-list tools-call-error server-sse-multiple-streams \
    dns-rebinding-protection http-header-validation sep-2164-resource-not-found \
    input-required-result-unsupported-methods input-required-result-ignore-extra-params \
    input-required-result-validate-input input-required-result-missing-input-response; do
    if node "$runner" server --url "$url" --scenario "$scenario" > /dev/null 2>&1; then
        echo "passed  $scenario"
    else
        echo "FAILED  $scenario"
        failed=1
    fi
done
exit $failed
