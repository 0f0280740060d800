#!/usr/bin/env bash
# expect: ask
# Redeploys a namespace.
set -u
ns=staging
kubectl config current-context
kubectl -n "$ns" get deploy
kubectl delete namespace "$ns" --wait=false
kubectl -n "$ns" get pods -o wide
