#!/usr/bin/env bash
# expect: ask
# Builds and deploys the preview.
set -e
npm ci
npm run build
vercel pull --environment=preview
vercel deploy --prod --yes
curl -sI https://preview.example.test | head -1
