#!/usr/bin/env bash
# The real Codex as the architect that reviews two tasks, and as the agents that build them. Needs what `codex.sh` needs.
source "$(dirname "$0")/common.sh"

codex=$(codex_program)
credentials() { OPENAI_API_KEY=sk-none "$@"; }

# lead TEXT SCRIPT, coder TASK FILE: replies of the architect's model, and of the model of whoever does a task. Calls are made as
# the program's own models make them: by a script.
reply() { printf '{"for":"%s","text":"%s","tools":[%s]},' "$1" "$2" "${3:+{\"name\":\"exec\",\"input\":\"$3\"\}}"; }
lead() { reply 'You are the architect' "$1" "${2:-}"; }
approve() { printf "text(await tools.mcp__adjutant__review_decision({approve:true,note:'%s'}));" "$1"; }
coder() {
    reply "Your task is \`$1\`" 'I write.' "text(await tools.exec_command({cmd:'echo true > $2 && git add -A && git commit -q -m work'}));"
    reply "Your task is \`$1\`" 'It is there.\nDONE'
}
# Two reviews are queued. It decides the first by its tool, calls the tool again, and ends with a line that says APPROVE; it answers
# the second in words, which decide nothing, and by its tool when it is asked again.
first=$(lead 'I read it.' "$(approve 'I read the first.')")
serve "[{\"until\":\"$work/queued\",${first#\{}$(lead 'And the other.' "$(approve 'Also fine.')")
        $(lead 'I have read it and it is right.\n\nAPPROVE')
        $(lead 'APPROVE')
        $(lead 'By the tool, then.' "$(approve 'I read the second.')")$(lead 'Approved.\n\nAPPROVE')
        $(coder t-1 one.check)$(coder t-2 two.check)
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
$(for agent in coder lead; do
    printf '[agents.%s]\nadapter = "codex"\nrole = "%s"\nenv = ["OPENAI_API_KEY"]\n' "$agent" "$([ "$agent" = lead ] && echo lead || echo specialist)"
    printf "command = [\"%s\", \"-c\", 'model_providers.adjutant.base_url=\"%s/v1\"']\n" "$codex" "$(cat "$work/url")"
done)
END
ticket t-1 && ticket t-2 && commit "two tickets"

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
[ "$(log reply_decided)" = 2 ] || fail "it has decided twice, once in each reply"
fleet logs architect || fail "what it said"
[ "$(grep -c 'the architect, on a review' "$work/said")" = 3 ] || fail "three replies about the two reviews"
for task in t-1 t-2; do
    fleet task show "$task" --json && holds 'it.status === "DONE" && it.completion.approvedBy === "agent:lead"' || fail "$task landed with its yes"
done
fleet verify || fail "the log is whole"
ok "as architect of two queued reviews it decides each in a reply of its own; a second call and closing words decide nothing"
