#!/bin/sh
# Runs the public suite against the example server in a folder that is thrown away.
set -eu
cd "$(dirname "$0")"
port="${PORT:-4437}"
folder="$(mktemp -d)"
../../target/debug/examples/serve --port "$port" --folder "$folder" &
server=$!
trap 'kill "$server"; rm -rf "$folder"' EXIT
npm ci
BASE_URL="http://127.0.0.1:$port" npm test
