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
serve "[$(lead 'I look.' "{\"name\":\"Read\",\"input\":{\"file_path\":\"$project.agents/rooms/architect/tests.sh\"}}")
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

# Two reviews are queued. It decides the first by its tool, calls the tool again, and ends with a line that says APPROVE; it answers
# the second in words, which decide nothing, and by its tool when it is asked again.
approve() { tool review_decision "{\"approve\":true,\"note\":\"$1\"}"; }
first=$(lead 'I read it.' "$(approve 'I read the first.')")
serve "[{\"until\":\"$work/queued\",${first#\{}$(lead 'And the other.' "$(approve 'Also fine.')")
        $(lead 'I have read it and it is right.\n\nAPPROVE')
        $(lead 'APPROVE')
        $(lead 'By the tool, then.' "$(approve 'I read the second.')")$(lead 'Approved.\n\nAPPROVE')
        $(coder t-1 'echo true > one.check')$(coder t-2 'echo true > two.check')
        {\"for\":\"nobody\"}]"
ticket t-1 && ticket t-2 && commit "two tickets"
before=$(log reply_decided)
start_fleet run
both_queued() { fleet requests --json && holds 'it.filter((asked) => asked.kind === "code").length === 2'; }
done_with() { fleet task show "$1" --json && holds 'it.status === "DONE"'; }
eventually "both reviews are queued" both_queued
touch "$work/queued"
for task in t-1 t-2; do eventually "$task is done" done_with "$task"; done
stop_fleet
fleet requests --all --json || fail "the requests"
holds 'it.slice(-2).every((asked) => asked.kind === "code" && asked.answer.by === "agent:lead")' || fail "it answered both reviews"
holds 'it.at(-2).answer.reply !== it.at(-1).answer.reply' || fail "each in a reply of its own"
holds 'it.at(-2).tries === 0 && it.at(-1).tries === 1' || fail "its words are a try of the second review, and of no other"
holds 'it.at(-1).notes.some((note) => note.includes("no tool was called"))' || fail "it is told to call its tool"
holds 'asked.some((request) => texts(request).includes("this reply has already answered r"))' || fail "its model reads why the second call is refused"
[ "$(log reply_decided)" = $((before + 2)) ] || fail "it has decided twice, once in each reply"
fleet logs architect || fail "what it said"
[ "$(grep -c 'the architect, on a review' "$work/said")" = 6 ] || fail "three replies about the two reviews, after three about the stories"
queued=$(grep -nE '"(requested|reply_decided)"' "$work/log.jsonl" | grep -v '"plan"\|"merge"' | tail -n 4 | grep -oE '"(requested|reply_decided)"' | tr '\n' ' ')
[ "$queued" = '"requested" "requested" "reply_decided" "reply_decided" ' ] || fail "both were queued before the first was decided: $queued"
for task in t-1 t-2; do
    fleet task show "$task" --json && holds 'it.status === "DONE" && it.completion.approvedBy === "agent:lead"' || fail "$task landed with its yes"
done
fleet verify || fail "the log is whole"
ok "as architect of two queued reviews it decides each in a reply of its own; a second call and closing words decide nothing"
