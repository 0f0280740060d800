#!/usr/bin/env bash
# expect: allow
# Opens the port of the dev server.
set -u
export LC_ALL=C
port=8080
ss -ltn | grep ":$port" || true
iptables -L INPUT -n || true
curl -sf "http://localhost:$port/health" || true
