#!/usr/bin/env bash
# Runs public conformance suites against the program: all of them, or those that are named.
#
#   conformance/run.sh [streams] [openapi] [clients] [mcp]
#
# Each suite starts a server of its own, on a free port, for a repository that is thrown away. What a suite needs is installed
# under target/conformance, in the versions that stand beside this file. It needs npm, python3 and a network; node is fetched
# where there is none of the version that a suite wants.
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
tools="$here/../target/conformance"
adj="${ADJ:-$here/../target/debug/adj}"
NODE_MAJOR=22
NODE_VERSION=22.23.3

server=
scratch=
url=
repository=

# A fresh repository, and `adj serve` for it with these arguments; `url` and `repository` say where.
start_server() {
  scratch="$(mktemp -d)"
  repository="$scratch/repository"
  git init --quiet --initial-branch=main "$repository"
  git -C "$repository" -c user.name=suite -c user.email=suite@localhost commit --quiet --allow-empty -m "Begin"
  export XDG_STATE_HOME="$scratch/state"
  start "$adj" --project "$repository" --json serve --port 0 "$@"
}

# Starts a program that prints one line of JSON with its `url` once it listens.
start() {
  mkfifo "$scratch/said"
  "$@" >"$scratch/said" 2>"$scratch/server.log" &
  server=$!
  local said
  if ! read -r -t 60 said <"$scratch/said"; then
    echo "the server did not start:" >&2
    cat "$scratch/server.log" >&2
    return 1
  fi
  rm "$scratch/said"
  url="$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' <<<"$said")"
}

stop_server() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
  fi
  if [ -n "$scratch" ]; then
    rm -rf "$scratch"
    scratch=
  fi
}

# What conformance/NAME/package.json names, in target/conformance/NAME.
install_packages() {
  local into="$tools/$1"
  mkdir -p "$into"
  cp "$here/$1/package.json" "$here/$1/package-lock.json" "$here/$1/.npmrc" "$into/"
  if [ -d "$into/node_modules" ] && cmp --silent "$into/package-lock.json" "$into/installed"; then
    return
  fi
  (cd "$into" && npm ci --silent && cp package-lock.json installed)
}

# A node that is new enough, first on the path.
install_node() {
  local major
  major="$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')"
  if [ "${major:-0}" -ge "$NODE_MAJOR" ]; then
    return
  fi
  if [ ! -x "$tools/node/node_modules/.bin/node" ]; then
    mkdir -p "$tools/node"
    (cd "$tools/node" && npm install --silent --no-save --no-package-lock --prefix . "node@$NODE_VERSION")
  fi
  export PATH="$tools/node/node_modules/.bin:$PATH"
}

# Durable Streams, with nobody asked for a token: the suite cannot send one.
streams() {
  install_node
  install_packages streams
  cp "$here"/streams/*.js "$tools/streams/"
  start_server --auth none --long-poll 20
  local report="$tools/streams/report.json"
  # Otherwise a suite that does not start would be judged by the report of an earlier run.
  rm -f "$report"
  (cd "$tools/streams" && BASE_URL="$url" npx --no-install vitest run --reporter=dot --reporter=json --outputFile.json="$report") || true
  [ -e "$report" ]
  summary="$(node -p 'const r = require(process.argv[1]); `${r.numPassedTests} of ${r.numTotalTests} tests`' "$report")"
  node -e 'process.exit(require(process.argv[1]).success ? 0 : 1)' "$report"
}

# Things for the names in paths to stand for, which schemathesis.toml takes from files beside it.
seed() {
  local token="$1" task worker
  ask() {
    curl --silent --fail-with-body -X "$1" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
      --data "$3" "$url/api/v1$2"
  }
  first_id() { grep -o '"id":"[^"]*"' | head -n 1 | cut -d: -f2; }
  for task in 1 2 3 4 5 6; do
    ask POST /tasks "{\"id\":\"s-$task\",\"title\":\"Seeded\"}" >/dev/null
    echo "\"s-$task\""
  done >"$scratch/tasks"
  for worker in A B C; do
    ask POST /workers "{\"name\":\"$worker\"}" >/dev/null
    echo "\"$worker\""
  done >"$scratch/workers"
  for worker in X Y Z; do
    ask POST /workers "{\"name\":\"$worker\"}" >/dev/null
  done
  ask POST /workers/A/assign '{"task":"s-1"}' >/dev/null
  ask POST /workers/B/assign '{"task":"s-2"}' >/dev/null
  ask POST /tasks/s-2/transitions '{"to":"NEEDS_APPROVAL","cause":"escalation","feedback":"May I?"}' >/dev/null
  ask GET /runs '' | first_id >"$scratch/runs"
  ask GET /approvals '' | first_id >"$scratch/approvals"
  for task in s-1 s-2 s-3; do
    ask POST /requests "{\"task\":\"$task\",\"text\":\"Which?\"}" | first_id
  done >"$scratch/requests"
  for worker in ann bob cyd; do
    ask POST /tokens "{\"name\":\"$worker\",\"role\":\"reader\"}" | first_id
  done >"$scratch/tokens"
  for worker in one two; do
    ask POST /agents "{\"name\":\"$worker\"}" >/dev/null
  done
  # The last is there to be closed.
  for worker in talk plans closing; do
    ask POST /channels "{\"name\":\"$worker\",\"topic\":\"What next?\"}" >/dev/null
    ask POST "/channels/$worker/members" '{"agent":"one"}' >/dev/null
    ask POST "/channels/$worker/members" '{"agent":"two"}' >/dev/null
  done
  ask POST /specs '{"id":"login","title":"Login","text":"As it is","stories":[{"key":"a","title":"A"}]}' >/dev/null
}

# What the checks of the description need: schemathesis and openapi-python-client.
install_python() {
  if ! cmp --silent "$here/openapi/requirements.txt" "$tools/venv/installed"; then
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/openapi/requirements.txt"
    cp "$here/openapi/requirements.txt" "$tools/venv/installed"
  fi
}

# The described routes, with the token of the project's user.
openapi() {
  mkdir -p "$tools/openapi"
  install_python
  start_server
  local token passed=yes log="$tools/openapi/schemathesis.log"
  token="$(cat "$repository/.git/adjutant/token")"
  sed "s|@HOOKS@|$here/openapi/hooks.py|" "$here/openapi/schemathesis.toml" >"$scratch/schemathesis.toml"
  seed "$token"
  # With `wait` an answer may take 20 seconds.
  # 50 examples end in about eight minutes on two busy cores; OPENAPI_ARGUMENTS="--max-examples 200" looks for longer.
  (cd "$scratch" && "$tools/venv/bin/schemathesis" --config-file "$scratch/schemathesis.toml" run "$url/openapi.json" \
    --header "Authorization: Bearer $token" \
    --checks all --phases "${OPENAPI_PHASES:-examples,coverage,fuzzing,stateful}" \
    --max-examples 50 --request-timeout 60 --max-response-time 30 \
    ${OPENAPI_ARGUMENTS:-}) | tee "$log" || passed=no
  summary="$(grep -E '^ +[0-9]+ generated' "$log" | sed 's/^ *//' || true)"
  [ "$passed" = yes ]
}

# Clients that others' generators make of the description, with their default options: each moves a task over the board.
clients() {
  install_node
  install_packages openapi
  install_python
  start_server
  local token
  token="$(cat "$repository/.git/adjutant/token")"
  curl --silent --fail -H "Authorization: Bearer $token" "$url/openapi.json" >"$tools/openapi/openapi.json"
  cp "$here"/openapi/*.ts "$here/openapi/tsconfig.json" "$tools/openapi/"
  (cd "$tools/openapi" && rm -rf hey built &&
    npx --no-install openapi-typescript openapi.json --output api.ts &&
    npx --no-install openapi-ts --input openapi.json --output hey --client @hey-api/client-fetch &&
    npx --no-install tsc --project . &&
    node built/types.js "$url" "$token" && node built/client.js "$url" "$token")
  summary="a program with types by openapi-typescript and a client by @hey-api/openapi-ts moved a task"
  (cd "$scratch" && PATH="$tools/venv/bin:$PATH" "$tools/venv/bin/openapi-python-client" generate \
    --path "$tools/openapi/openapi.json" --output-path "$scratch/client" &&
    PYTHONPATH="$scratch/client" "$tools/venv/bin/python" "$here/openapi/client.py" "$url" "$token")
  summary="$summary, and a client by openapi-python-client did"
}

# MCP: all that the suite requires against a server made for it, on the same HTTP layer; and against a project's own tools
# what every server must do.
mcp() {
  install_node
  install_packages mcp
  mcp_scenarios=0
  mcp_expected=0
  mcp_failed=0
  scratch="$(mktemp -d)"
  start "$adj" internal mcp-fixture
  mcp_suite fixture --requirements 2025-11-25
  # The suite also runs the extension of tasks here, without scoring it. It is not offered, and those scenarios fail.
  mcp_suite fixture --requirements 2026-07-28
  stop_server
  start_server --auth none
  local scenario
  for scenario in server-initialize ping tools-list dns-rebinding-protection server-sse-multiple-streams \
    server-session-lifecycle; do
    mcp_suite project --spec-version 2025-11-25 --scenario "$scenario"
  done
  for scenario in tools-list server-sse-multiple-streams dns-rebinding-protection http-header-validation \
    input-required-result-unsupported-methods server-stateless caching; do
    mcp_suite project --spec-version 2026-07-28 --scenario "$scenario" --expected-failures "$here/mcp/project.yml"
  done
  summary="$mcp_scenarios scenarios passed but for $mcp_expected failures that conformance/mcp expects; $mcp_failed runs failed"
  [ "$mcp_failed" -eq 0 ]
}

# One run of the suite: what it is run against, and its arguments.
mcp_suite() {
  local against="$1" log="$tools/mcp/last.log"
  shift
  if (cd "$tools/mcp" && npx --no-install conformance server --url "$url/mcp" "$@") >"$log" 2>&1; then
    # A run of a single scenario prints no list of them; one in which nothing was checked does not count.
    local passed
    passed="$(grep '^✓' "$log" | grep -vc ': 0 passed' || true)"
    mcp_scenarios=$((mcp_scenarios + (passed > 0 ? passed : 1)))
    mcp_expected=$((mcp_expected + $(grep -c '^  ~ ' "$log" || true)))
    echo "mcp $against: passed: $*"
  else
    mcp_failed=$((mcp_failed + 1))
    cat "$log"
    echo "mcp $against: FAILED: $*"
  fi
}

# Alone in a process of its own, so that nothing of one suite is left for the next.
if [ "${1:-}" = --alone ]; then
  suite="$2"
  summary="it did not come to its end"
  finish() {
    local code=$?
    stop_server
    printf '%s' "$summary" >"$tools/$suite.summary"
    exit "$code"
  }
  trap finish EXIT
  "$suite"
  exit
fi

if [ ! -x "$adj" ]; then
  echo "$adj is missing: \`cargo build -p adj --bin adj\` makes it" >&2
  exit 2
fi
if [ $# -eq 0 ]; then
  set -- streams openapi clients mcp
fi
mkdir -p "$tools"
lines=()
failed=0
for suite in "$@"; do
  case "$suite" in
  streams | openapi | clients | mcp) ;;
  *)
    echo "there is no suite $suite: there are streams, openapi, clients and mcp" >&2
    exit 2
    ;;
  esac
  if "$0" --alone "$suite"; then
    lines+=("$suite: passed: $(cat "$tools/$suite.summary")")
  else
    lines+=("$suite: FAILED: $(cat "$tools/$suite.summary")")
    failed=1
  fi
done
printf '%s\n' "${lines[@]}"
exit "$failed"
