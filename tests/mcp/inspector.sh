#!/bin/sh
# The Inspector's command line against the gateway, both revisions: list, allow, ask, grant, retry, deny.
#
#     inspector.sh PORTCULLIS path/to/node_modules                          over stdio
#     inspector.sh PORTCULLIS path/to/node_modules http://127.0.0.1:8460    over HTTP, with the agent's token in MCP_TOKEN
#
# Needs Node 22 or newer. Run it in a workspace of its own that holds hello.txt ("good morning"), with HOME set
# to a throw-away place: the Inspector passes nothing like PORTCULLIS_STATE on to a server that it starts.
set -eu
portcullis=$1 inspector=$2/.bin/mcp-inspector url=${3-}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# ask ERA ARGUMENTS...: one request, its answer in $out. The Inspector ends with 1 where a tool says isError.
ask() {
    era=$1 session=inspector-$1-$$
    shift
    if [ -z "$url" ]; then
        set -- "$portcullis" mcp serve --wait 0 --session "$session" --protocol-era "$era" "$@"
    else
        set -- --transport http --server-url "$url/mcp" --header "Authorization: Bearer $MCP_TOKEN" \
            --header "Portcullis-Session: $session" --header "Portcullis-Wait: 0" --protocol-era "$era" "$@"
    fi
    timeout 120 "$inspector" --cli "$@" --format json -q > "$out" 2>&1 || true
}

holds() {
    grep -q -- "$1" "$out" || { echo "expected \`$1\`:"; cat "$out"; exit 1; }
}

for revision in legacy modern; do
    ask $revision --method tools/list
    for tool in Bash Edit Glob Grep ListDir Read Write; do holds "\"name\": *\"$tool\""; done
    ask $revision --method tools/call --tool-name Read --tool-arg path=hello.txt
    holds "good morning"
    ask $revision --method tools/call --tool-name Bash --tool-arg command=ls
    holds PENDING
    "$portcullis" approvals grant "$(grep -o 'approvals grant [a-z0-9-]*' "$out" | head -1 | cut -d' ' -f3)" > /dev/null
    ask $revision --method tools/call --tool-name Bash --tool-arg command=ls
    holds hello.txt
    holds '"exit_code": *0'
    ask $revision --method tools/call --tool-name Bash --tool-arg "command=rm -rf /"
    holds "DENIED by portcullis: "
    echo "$revision: tools listed; read, ask, grant, retry, deny as expected; $(grep -o 'DENIED by portcullis: [^:]*' "$out" | head -1)"
done
