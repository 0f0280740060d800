#!/usr/bin/env bash
# expect: deny
# Clears a cluster before a load test.
set -e
kubectl get nodes
kinds="deploy svc"
for ns in $(kubectl get ns -o name); do
  kubectl delete "$ns" --grace-period=0 --force
done
echo "$kinds"
