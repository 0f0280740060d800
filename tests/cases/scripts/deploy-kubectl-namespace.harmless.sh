#!/usr/bin/env bash
# expect: allow
# Redeploys a namespace.
set -u
ns=staging
kubectl config current-context
kubectl -n "$ns" get deploy
kubectl diff -n "$ns" -f k8s/ || true
kubectl -n "$ns" get pods -o wide
