#!/usr/bin/env bash
# expect: allow
# Builds and deploys the preview.
set -e
npm ci
npm run build
vercel pull --environment=preview
vercel build
curl -sI https://preview.example.test | head -1
