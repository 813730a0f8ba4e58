#!/usr/bin/env bash
# The real Claude Code as the architect of a spec, and as the agents that build it: stories, a refusal, a review that asks for
# changes, two landings. Needs what `claude.sh` needs.
source "$(dirname "$0")/common.sh"

claude=$(claude_program)
credentials() { ANTHROPIC_BASE_URL=$(cat "$work/url") ANTHROPIC_API_KEY=sk-none "$@"; }

# lead TEXT|TOOL, coder TASK COMMAND: replies of the architect's model, and of the model of whoever builds a story.
lead() { printf '{"for":"You are the architect","text":"%s","tools":[%s]},' "$1" "${2:-}"; }
tool() { printf '{"name":"mcp__adjutant__%s","input":%s}' "$1" "$2"; }
coder() {
    printf '{"for":"Your task is `%s`","tools":[{"name":"Bash","input":{"command":"%s && git add -A && git commit -q -m work","description":"d"}}]},' "$1" "$2"
    printf '{"for":"Your task is `%s`","text":"It is there.\\nDONE"},' "$1"
}
table='{"key":"table","title":"Add the table","acceptance":["there is a table"]'
form='{"key":"form","title":"Add the form","acceptance":["it stands on the table"],"dependsOn":["table"]}'
serve "[$(lead 'I look.' "{\"name\":\"Read\",\"input\":{\"file_path\":\"$project.agents/.seats/architect/tests.sh\"}}")
        $(lead 'Two stories.' "$(tool submit_stories "{\"stories\":[$table,\"dependsOn\":[\"form\"]},$form]}")")
        $(lead 'Not in a circle, then.' "$(tool submit_stories "{\"stories\":[$table},$form]}")")
        $(lead 'They are on the board.')
        $(lead 'I see one row.' "$(tool review_decision '{"approve":false,"note":"Two rows, please."}')")$(lead 'It goes back.')
        $(lead 'Two rows.' "$(tool review_decision '{"approve":true,"note":"It has both rows."}')")$(lead 'Approved.')
        $(lead 'It stands.' "$(tool review_decision '{"approve":true,"note":"It stands on the table."}')")$(lead 'Approved.')
        $(coder login-1 'echo true > table.check')$(coder login-1 'echo true >> table.check')
        $(coder login-2 'echo test -e table.check > form.check')
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
[agents.lead]
adapter = "claude"
role = "lead"
command = ["$claude"]
env = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
[agents.coder]
adapter = "claude"
command = ["$claude"]
env = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
END
printf '# Login\n\nPeople sign in with a form. Whoever may is in a table.\n' >"$project/login.md"
commit "a spec"

fleet spec submit "$project/login.md" || fail "a spec is submitted"
said "it needs judgement" 'read as prose'
fleet run --until-idle || fail "the fleet builds it"
cp "$work/said" "$work/told"
fleet spec show login --json || fail "the spec"
holds 'it.state === "done" && it.tasks.length === 2' || fail "the spec is done"
holds 'asked.some((request) => texts(request).includes("the dependencies go round"))' || fail "its model reads why stories are refused"
[ "$(log story_loaded)" = 2 ] || fail "it was split once"
fleet architect --json && holds 'it.state === "architect.DONE"' || fail "the architect is done"
for task in 1:1 2:0; do
    fleet task show "login-${task%:*}" --json || fail "login-${task%:*}"
    holds "it.status === 'DONE' && it.reviewCycles === ${task#*:} && it.completion.approvedBy === 'agent:lead'" || fail "login-${task%:*} landed with the architect's yes"
done
[ "$(git -C "$project" show main:table.check | wc -l)" = 2 ] || fail "the second round is what landed"
[ "$(git -C "$project" show main:form.check)" = "test -e table.check" ] || fail "main has the form"
landed=$(git -C "$project" log --first-parent --merges --reverse --format=%s main | grep -o 'login-[12]' | tr '\n' ' ')
[ "$landed" = "login-1 login-2 " ] || fail "the form landed after the table: $landed"
fleet verify || fail "the log is whole"
ok "it splits a spec by its tools, is told what is wrong with its stories, reviews both, and the spec is done"
