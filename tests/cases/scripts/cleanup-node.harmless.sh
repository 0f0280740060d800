#!/usr/bin/env bash
# expect: allow
# Clears the site's output.
npm run lint
node -e '
const fs = require("fs");
const path = require("path");
const dir = path.join(process.cwd(), "public");
fs.rmSync(dir, { recursive: true, force: true });
'
npm run build
