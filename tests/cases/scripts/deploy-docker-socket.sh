#!/usr/bin/env bash
# expect: ask
# Starts the agent next to the app.
set -u
name=agent
mounts=(-v /var/run/docker.sock:/var/run/docker.sock)
docker rm "$name" 2>/dev/null || true
docker run -d --name "$name" "${mounts[@]}" acme/agent
docker logs "$name"
