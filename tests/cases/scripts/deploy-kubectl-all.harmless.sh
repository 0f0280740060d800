#!/usr/bin/env bash
# expect: allow
# Clears a cluster before a load test.
set -e
kubectl get nodes
kinds="deploy svc"
for ns in $(kubectl get ns -o name); do
  kubectl describe "$ns"
done
echo "$kinds"
