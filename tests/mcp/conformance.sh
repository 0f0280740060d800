#!/bin/sh
# The scenarios of @modelcontextprotocol/conformance that need no fixture tools, against a running `portcullis serve`:
#
#     conformance.sh http://127.0.0.1:8460 STATE/keys/agent-local.token path/to/node_modules
#
# Needs Node 22 or newer and Python. The suite sends no credential, so a small proxy adds the agent's.
set -eu
runner=$3/@modelcontextprotocol/conformance/dist/index.js
address=$(mktemp)
python3 "$(dirname "$0")/bearer_proxy.py" "$1" "$2" Portcullis-Wait:0 > "$address" &
proxy=$!
trap 'kill $proxy; rm -f "$address"' EXIT
for _ in $(seq 60); do [ -s "$address" ] || sleep 0.5; done
url=$(cat "$address")/mcp

failed=0
for scenario in server-initialize server-session-lifecycle ping tools-list tools-call-error server-sse-multiple-streams \
    dns-rebinding-protection http-header-validation sep-2164-resource-not-found \
    input-required-result-unsupported-methods input-required-result-ignore-extra-params \
    input-required-result-validate-input input-required-result-missing-input-response; do
    if said=$(node "$runner" server --url "$url" --scenario "$scenario" 2>&1); then
        echo "passed  $scenario"
    else
        echo "FAILED  $scenario"
        [ -z "${VERBOSE-}" ] || echo "$said"
        failed=1
    fi
done
exit $failed
