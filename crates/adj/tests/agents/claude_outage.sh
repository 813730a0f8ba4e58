#!/usr/bin/env bash
# The model goes away while the real Claude Code is in the middle of a task, of a spec and of a turn in a room, and comes back.
# Needs what `claude.sh` needs.
source "$(dirname "$0")/common.sh"

claude=$(claude_program)
credentials() { ANTHROPIC_BASE_URL=$(cat "$work/url") ANTHROPIC_API_KEY=sk-none "$@"; }

# of WHO REPLY…: replies to whoever was told this first.
of() {
    local who=$1 && shift
    for reply in "$@"; do printf '{"for":"%s",%s},' "$who" "$reply"; done
}
calls() { printf '"tools":[{"name":"%s","input":%s}]' "$1" "$2"; }
look() { printf '"until":"%s",%s' "$work/go" "$(calls Read "{\"file_path\":\"$project.agents/rooms/$1/tests.sh\"}")"; }
build() { calls Bash "{\"command\":\"echo true > $1.check && git add -A && git commit -q -m work\",\"description\":\"d\"}"; }
done_='"text":"It is there.\nDONE"'
stories='{"stories":[{"key":"table","title":"Add the table"},{"key":"form","title":"Add the form","dependsOn":["table"]}]}'
approve='{"approve":true,"note":"fine"}'
serve "[$(of 'Your task is `t-1`' "\"until\":\"$work/go\",$(build t-1)" "$done_")
        $(of 'Your task is `login-1`' "$(build table)" "$done_")$(of 'Your task is `login-2`' "$(build form)" "$done_")
        $(of 'You are the architect' "$(look architect)" "$(calls mcp__adjutant__submit_stories "$stories")" '"text":"Two stories."')
        $(for _ in 1 2 3; do of 'You are the architect' "$(calls mcp__adjutant__review_decision "$approve")" '"text":"Approved."'; done)
        $(of 'You are `anna`' "$(look room+talk+anna)" '"text":"Here I am."')
        {\"for\":\"nobody\"}]"
begin_project <<END
[fleet]
agent = "coder"
workers = 2
review = "architect"
[test]
command = "sh tests.sh"
[architect]
agent = "lead"
[limits]
health_poll = "1s"
$(for agent in coder lead anna; do
    printf '[agents.%s]\nadapter = "claude"\nrole = "%s"\ncommand = ["%s"]\nenv = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]\n' \
        "$agent" "$([ "$agent" = lead ] && echo lead || echo specialist)" "$claude"
done)
END
ticket t-1
printf '# Login\n\nPeople sign in with a form. Whoever may is in a table.\n' >"$project/login.md"
commit "a ticket and a spec"

asked() { [ "$(wc -l <"$work/asked")" -ge "$1" ]; }
tried() { [ "$(grep -c '"down":true' "$work/asked")" -ge "$1" ]; }
run_waits() { fleet runs --json && holds 'it.some((run) => run.task === "t-1" && run.state === "suspended")'; }
architect_waits() { fleet architect --json && holds 'it.state === "architect.SUSPEND"'; }
room_waits() { fleet channel status talk --json && holds 'it.turn !== null && it.turn.state === "WAITING"'; }
done_with() { fleet task show "$1" --json && holds 'it.status === "DONE"'; }
spoken() { fleet channel history talk --json && holds 'it.some((said) => said.text === "Here I am.")'; }

start_fleet run
fleet spec submit "$project/login.md" || fail "a spec is submitted"
fleet channel create talk --timeout 10m --topic 'Well?' --add anna || fail "a room"
eventually "all three ask the model" asked 3
# A header that the program heeds: it leaves the waiting to us.
printf '{"status":529,"type":"overloaded_error","headers":{"x-should-retry":"false"}}' >"$work/down"
touch "$work/go"
eventually "the run is suspended" run_waits
eventually "the architect is suspended" architect_waits
eventually "the turn in the room is paused" room_waits
ok "a model that is away suspends a run, the architect and an agent in a room"

eventually "two tries" tried 5
rm "$work/down"
for task in t-1 login-1 login-2; do eventually "$task is done" done_with "$task"; done
eventually "anna speaks" spoken
fleet spec show login --json && holds 'it.state === "done"' || fail "the spec is done"
stop_fleet
holds 'asked.filter((request) => request.down).slice(3).every((request) => texts(request).includes("Your task is `t-1`"))' ||
    fail "the run tries it, and nobody else"
tries=$(log health_seen '"probe":"t-1.1"')
[ "$(grep -c '"down":true' "$work/asked")" = $((3 + tries - 1)) ] || fail "one request for each of its $tries tries, of which the last came through"
[ "$(log step_failed)" = 0 ] || fail "no error is counted"
[ "$(log channel_said '"announcement"')" = 0 ] || fail "no agent is lost"
fleet verify || fail "the log is whole"
ok "one run tries it alone, with one request a try; when it is back, everything lands and everybody speaks"
