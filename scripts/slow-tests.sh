#!/usr/bin/env bash
# Lists the tests that took longer than 20 seconds, each with the reason that its comment gives: `Slow: …` above the test.
#
# A test without a reason fails the run where CI is set, if it took three times as long: as many tests share a core, so on a
# busy machine a time is not the test's own.
set -euo pipefail
cd "$(dirname "$0")/.."

report=$1
limit=${ADJ_SLOW_SECONDS:-20}
[ -f "$report" ] || exit 0

# The reason in the comment of a test, by the name of its function.
reason() {
  grep -rl --include='*.rs' "fn $1(" crates | xargs -r awk -v name="fn $1(" '
    FNR == 1 { said = "" }
    index($0, name) { if (said != "") { print said; exit } }
    /^ *\/\/.*Slow: / { said = $0; sub(/.*Slow: /, "", said); next }
    /^ *(\/\/|#\[)/ { next }
    { said = "" }'
}

failed=0
while read -r seconds name; do
  why=$(reason "${name##*::}" || true)
  if [ -n "$why" ]; then
    printf 'slow: %3d s %s: %s\n' "${seconds%.*}" "$name" "$why"
  elif [ -n "${CI:-}" ] && [ "${seconds%.*}" -ge "$((3 * limit))" ]; then
    printf 'too slow: %3d s %s: make it faster, or say why in its comment (`Slow: …`)\n' "${seconds%.*}" "$name"
    failed=1
  else
    printf 'slow: %3d s %s: no reason is given\n' "${seconds%.*}" "$name"
  fi
done < <(grep -oE '<testcase [^>]*>' "$report" |
  sed -nE 's/.* name="([^"]*)".*/\1 &/p' |
  sed -nE 's/^([^ ]*) .* time="([0-9.]+)".*/\2 \1/p' |
  awk -v limit="$limit" '$1 + 0 > limit' | sort -rn)
exit "$failed"
