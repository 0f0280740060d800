#!/usr/bin/env bash
# expect: ask
# Upgrades a release, rolls back on failure.
release=web
chart=./chart
helm lint "$chart"
helm template "$release" "$chart" > /tmp/rendered.yaml
helm uninstall "$release" --wait
kubectl get events --sort-by=.lastTimestamp | tail
