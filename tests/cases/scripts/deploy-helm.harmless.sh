#!/usr/bin/env bash
# expect: allow
# Upgrades a release, rolls back on failure.
release=web
chart=./chart
helm lint "$chart"
helm template "$release" "$chart" > /tmp/rendered.yaml
helm diff upgrade "$release" "$chart" || true
kubectl get events --sort-by=.lastTimestamp | tail
