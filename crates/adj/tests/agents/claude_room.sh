#!/usr/bin/env bash
# Two real Claude Codes and a person in a room in mode `inject`: what the person says reaches the one that has the turn in the
# middle of it, and the other with its own. Needs what `claude.sh` needs.
source "$(dirname "$0")/common.sh"

claude=$(claude_program)
credentials() { ANTHROPIC_BASE_URL=$(cat "$work/url") ANTHROPIC_API_KEY=sk-none "$@"; }

serve "[{\"for\":\"You are \`anna\`\",\"until\":\"$work/look\",\"text\":\"I look.\",
         \"tools\":[{\"name\":\"Read\",\"input\":{\"file_path\":\"$project.agents/rooms/room+talk+anna/base.check\"}}]},
        {\"for\":\"You are \`anna\`\",\"until\":\"$work/speak\",\"text\":\"Milk it is.\"},
        {\"for\":\"You are \`ben\`\",\"text\":\"So be it.\"},
        {\"for\":\"You are \`anna\`\",\"text\":\"PASS\"},{\"for\":\"You are \`ben\`\",\"text\":\"PASS\"}]"
begin_project <<END
[fleet]
agent = "anna"
[test]
command = "sh tests.sh"
[agents.anna]
adapter = "claude"
command = ["$claude"]
env = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
[agents.ben]
adapter = "claude"
command = ["$claude"]
env = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
END
commit "two agents"

# The process of the program that speaks for an agent.
speaks() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd")" = "$project.agents/rooms/room+talk+$1" ] || continue
        [ "$(readlink "$process/exe")" != "$claude" ] || echo "${process#/proc/}"
    done 2>/dev/null
}
asked() { [ "$(wc -l <"$work/asked")" -ge "$1" ]; }
receipt() { fleet channel history talk --json && holds "it.find((said) => said.text === 'And milk?').receipts.$1"; }
rests() { fleet channel status talk --json && holds 'it.rests && it.turn === null'; }

start_fleet run
fleet channel create talk --mode inject --timeout 10m --topic 'Tea or coffee?' --add anna ben || fail "a room"
eventually "anna asks her model" asked 1
before=$(speaks anna)
[ -n "$before" ] || fail "anna's program runs"
[ -z "$(speaks ben)" ] || fail "ben waits for his turn"
fleet channel post talk 'And milk?' || fail "a person speaks while anna has the turn"
eventually "her program has it" receipt 'some((of) => of.agent === "anna" && of.receipt === "delivered")'
receipt 'some((of) => of.agent === "ben" && of.receipt === "queued")' || fail "ben has it when the turn is over"
touch "$work/look"
eventually "anna asks her model again" asked 2
holds '!texts(asked[0]).includes("And milk?") && texts(asked[1]).includes("And milk?")' || fail "her model has the words"
holds 'texts(asked[1]).includes("tool_result") && asked[0].by && asked[0].by === asked[1].by' || fail "after the call, in the same session"
[ "$(speaks anna)" = "$before" ] || fail "it is the same process"
[ "$(log start_reply)" = 1 ] || fail "it is the same turn"
ok "what a person says reaches the model of the one that has the turn, in the same turn of the same process"

touch "$work/speak"
eventually "the room rests" rests
stop_fleet
fleet channel history talk --json || fail "what was said"
cp "$work/said" "$work/told"
holds 'JSON.stringify(it.filter((said) => said.event === "message").map((said) => said.text)) ===
    JSON.stringify(["Tea or coffee?", "And milk?", "Milk it is.", "So be it."])' || fail "each has said its last message, once"
receipt 'every((of) => of.receipt === "consumed")' || fail "both have dealt with it"
holds 'asked.some((request) => texts(request).includes("You are `ben`") && texts(request).includes("> And milk?") && texts(request).includes("> Milk it is."))' ||
    fail "ben knows of both"
fleet verify || fail "the log is whole"
ok "both speak, each last message is posted once, and the room rests"
