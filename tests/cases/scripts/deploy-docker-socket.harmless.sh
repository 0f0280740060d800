#!/usr/bin/env bash
# expect: allow
# Starts the agent next to the app.
set -u
name=agent
mounts=(-v "$PWD/data":/data)
docker rm "$name" 2>/dev/null || true
docker run -d --name "$name" "${mounts[@]}" acme/agent
docker logs "$name"
