# What the scripts beside this one share: the programs, a model on loopback, a project, and looking at what came of it.
# Sourced, not run. `ADJ_SANDBOX` is the fleet's sandbox if not strict.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
examples=$target/debug/examples
adj=$target/debug/adj
work=$(mktemp -d)
project=$work/project
model=
running=

leave() {
    [ -z "$running" ] || "$adj" --project "$project" stop --now >/dev/null 2>&1 || kill "$running" 2>/dev/null || true
    [ -z "$running" ] || wait "$running" 2>/dev/null || true
    [ -z "$model" ] || kill "$model" 2>/dev/null || true
    [ -n "${ADJ_KEEP:-}" ] && echo "kept: $work" || rm -rf "$work"
}
trap leave EXIT

fail() { echo "FAILED: $1"; sed 's/^/    /' "$work/said"; exit 1; }
said() { grep -qF -- "$2" "$work/said" || fail "$1: \"$2\" was not said"; }
ok() { echo "ok: $1"; }

# program PACKAGE VERSION FIND…: the program of a package, which is one native binary: no script of the package needs to run.
program() {
    local package=$1 version=$2 && shift 2
    local prefix=$target/agents/${package##*/}-$version
    mkdir -p "$prefix"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$prefix" "$package@$version" >/dev/null
    local found
    found=$(find "$prefix/node_modules/${package%/*}" "$@" | head -n 1)
    [ -x "$found" ] || { echo "there is no program for this machine in $package@$version" >&2; exit 1; }
    echo "$found"
}

# Claude Code, in the version `ADJ_CLAUDE_VERSION`, or the program `ADJ_CLAUDE` that is there already.
claude_program() {
    [ -z "${ADJ_CLAUDE:-}" ] || { echo "$ADJ_CLAUDE"; return; }
    program @anthropic-ai/claude-code "${ADJ_CLAUDE_VERSION:-2.1.325}" -path '*claude-code-*/claude' -type f
}

# Codex, in the version `ADJ_CODEX_VERSION`, or the program `ADJ_CODEX` that is there already.
codex_program() {
    [ -z "${ADJ_CODEX:-}" ] || { echo "$ADJ_CODEX"; return; }
    program @openai/codex "${ADJ_CODEX_VERSION:-0.166.0}" -path '*/vendor/*/codex' -type f -perm -u+x
}

# A model that gives these replies. What it is asked is in the file `asked`; while there is a file `down`, it is away.
serve() {
    [ -z "$model" ] || kill "$model" 2>/dev/null || true
    rm -f "$work/url" "$work/down"
    printf '%s' "$1" >"$work/replies.json"
    "$examples/fake-model" "$work/replies.json" "$work/asked" "$work/down" >"$work/url" 2>"$work/requests" &
    model=$!
    until [ -s "$work/url" ]; do kill -0 "$model"; done
}

# A fresh tree and session, and such a model.
stage() {
    rm -rf "$work/tree" "$work/private" && mkdir "$work/tree" "$work/private"
    git -C "$work/tree" init -q -b main
    git -C "$work/tree" config user.name agent
    git -C "$work/tree" config user.email agent@example.invalid
    git -C "$work/tree" commit -q --allow-empty -m first
    session=$(cat /proc/sys/kernel/random/uuid)
    serve "$1"
}

# A repository for a fleet, whose tests are its `*.check`. Its settings follow, on the standard input.
begin_project() {
    mkdir -p "$project"
    git -C "$project" init -q -b main
    git -C "$project" config user.name user
    git -C "$project" config user.email user@example.invalid
    git -C "$project" commit -q --allow-empty -m first
    (cd "$project" && "$adj" init) >"$work/said" 2>&1 || fail "adj init"
    cat >"$project/adjutant.toml"
    printf '[sandbox]\nmode = "%s"\n' "${ADJ_SANDBOX:-strict}" >>"$project/adjutant.toml"
    printf 'for check in *.check; do sh "$check" || exit 1; done\n' >"$project/tests.sh"
    printf 'true\n' >"$project/base.check"
}

# ticket ID: an open ticket.
ticket() {
    mkdir -p "$project/.tickets"
    printf -- '---\nid: %s\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-11-01T09:00:00Z\ntype: task\npriority: 2\n---\n# Add a check\n\nWrite it.\n' \
        "$1" >"$project/.tickets/$1.md"
}

commit() { git -C "$project" add -A && git -C "$project" commit -q -m "$1"; }

# fleet ARGUMENTS…: `adj` in the project, with what the agents need. What it says is in the file `said`.
fleet() { credentials "$adj" --project "$project" "$@" >"$work/said" 2>&1; }

# start_fleet ARGUMENTS…: `adj` beside the script; returns when it answers. What it says is in the file `told`.
start_fleet() {
    credentials "$adj" --project "$project" "$@" >"$work/told" 2>&1 &
    running=$!
    eventually "a fleet that answers" answers
}
answers() { [ -e "$project/.git/adjutant/socket/adj.sock" ] && fleet queue; }

stop_fleet() {
    fleet stop || fail "the fleet stops"
    wait "$running" || { cp "$work/told" "$work/said"; fail "the fleet ends well"; }
    running=
}

# eventually WHAT COMMAND…: waits until the command succeeds. There is nothing to wait on in other processes but to look.
eventually() {
    local what=$1 until=$((SECONDS + 90)) && shift
    until "$@"; do
        [ -z "$running" ] || kill -0 "$running" 2>/dev/null || { cp "$work/told" "$work/said"; fail "the fleet ended before: $what"; }
        [ "$SECONDS" -lt "$until" ] || { cat "$work/told" >>"$work/said"; fail "it never happened: $what"; }
        sleep 0.05
    done
}

# holds EXPRESSION: whether it is true of `it`, the document in the file `said`; `asked` are the requests of the model.
holds() {
    node -e '
        const { readFileSync } = require("fs"), [said, asked, expression] = process.argv.slice(1);
        // The model may be writing the last line: it counts once its end is there.
        const lines = (path) => readFileSync(path, "utf8").split("\n").slice(0, -1).map((line) => JSON.parse(line));
        let it = readFileSync(said, "utf8");
        try { it = JSON.parse(it); } catch {}
        const texts = (request) => JSON.stringify(request.messages);
        process.exit(Function("it", "asked", "texts", `return (${expression})`)(it, lines(asked), texts) ? 0 : 1);
    ' "$work/said" "$work/asked" "$1"
}

# log EVENT PART: how many records of the kind there are with this text in them.
log() {
    rm -f "$work/log.jsonl"
    fleet export "$work/log.jsonl" || fail "the log can be read"
    grep "\"$1\"" "$work/log.jsonl" | grep -cF -- "${2:-}" || true
}
