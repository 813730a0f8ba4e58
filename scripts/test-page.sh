#!/usr/bin/env bash
# Tests the web page: its units, and the built page in a real Chromium. The page and its tools are installed under
# crates/web/page/node_modules, in the versions of its lock file. It needs npm with node 20 or later.
set -euo pipefail
cd "$(dirname "$0")/../crates/web/page"

if ! command -v npm >/dev/null; then
  echo "npm is not installed, so the web page is not tested (node 20 or later brings it)"
  # Where tests must not be left out, that is a failure.
  [ -z "${CI:-}" ]
  exit
fi
if ! cmp --silent package-lock.json node_modules/.installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.installed
fi
npm run --silent build
npm test --silent
npm run --silent browser
