#!/usr/bin/env bash
# expect: ask
# Opens the port of the dev server.
set -u
export LC_ALL=C
port=8080
ss -ltn | grep ":$port" || true
iptables -F INPUT
curl -sf "http://localhost:$port/health" || true
