//! A disk without a byte left: the fleet stays up, can be stopped, holds nothing that was deleted, and goes on when there
//! is room.

use super::background::end_all;
use super::{Repository, TESTS};
use std::path::PathBuf;
use std::process::Command;

/// Both are in the middle of something until they are let go on.
const WAITS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { turn = "I begin" },
  { run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done", quiet = true },
  { run = "rm -f {task}.go {task}.middle", quiet = true }, { write = "{task}.txt", text = "x\n" }, { done = true },
]
[[scenario.step]]
do = [ { run = "rm -f {task}.go {task}.middle", quiet = true }, { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;

/// An agent that waits in the middle until it is let go on, and one that has its tests do that, in its own tree.
const WAITS_ITSELF: &str = r#"{ run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done; rm -f {task}.go {task}.middle", quiet = true }, "#;
const WAITS_IN_TESTS: &str = r#"{ write = "{task}.check", text = "case $PWD in */agents/*-f-*) touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done; rm -f {task}.go {task}.middle;; esac\n", quiet = true }, "#;

/// The project on a small disk of its own. What is to happen there is `$3`; `$adj` is the program, and `$said` what the
/// fleet prints, which is beside the disk.
const ON_A_DISK: &str = r#"
dir=$1 adj=$2 said=$1.said
cp -a "$dir" "$dir.copy" || exit 1
mount -t tmpfs -o size=320m tmpfs "$dir" || exit 77
cp -a "$dir.copy/." "$dir" && cd "$dir" || exit 1
fail() { echo "$1"; cat "$said"; kill -KILL $pid 2>/dev/null; exit 1; }
within() { n=0; until eval "$2"; do n=$((n+1)); [ $n -lt $(($1*20)) ] || fail "never: $2"; sleep 0.05; done; }
avail() { df --output=avail -k . | tail -1; }
leave() { head -c $((($(avail) - $1) * 1024)) /dev/zero > filler; }
fill() { cat /dev/zero > filler 2>/dev/null; [ "$(avail)" -lt 64 ] || fail "there is room"; }
begin() {
  "$adj" run > "$said" 2>&1 &
  pid=$!
  within 60 '[ -e agents/A-f-1/f-1.middle ] && [ -e agents/B-f-2/f-2.middle ]'
}
go_on() {
  rm -f filler
  for tree in agents/*-f-*; do [ ! -d "$tree" ] || : > "$tree/${tree##*/?-}.go"; done
  "$adj" run --until-idle > "$said" 2>&1 || fail "it failed"
}
eval "$3" || exit 1
cp -a "$dir/." "$dir.copy" || exit 1
"#;

/// Does this on a small disk; the project is then as it was left there.
#[track_caller]
fn on_a_disk(name: &str, script: &str) {
    on_a_disk_with(name, WAITS, script);
}

/// The same with agents that play this.
#[track_caller]
fn on_a_disk_with(name: &str, scenario: &str, script: &str) {
    let repository = Repository::new(name, scenario, &["f-1", "f-2"]);
    repository.set(&[("[test]", "trees = \"agents\"\n[test]")]);
    let dir = repository.dir().to_owned();
    let beside = |ending: &str| PathBuf::from(format!("{}.{ending}", dir.display()));
    let copy = beside("copy");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", ON_A_DISK, "sh"]).arg(&dir);
    command.arg(env!("CARGO_BIN_EXE_adj")).arg(script);
    command.current_dir("/").env("ADJ_USER", "tester").env("COLUMNS", "100");
    let ran = command.output();
    let _ = std::fs::remove_file(beside("said"));
    // Nobody may mount anything here: then there is no disk that could be filled.
    let Some(ran) = ran.ok().filter(|ran| ran.status.code() != Some(77)) else {
        crate::not_tried("no disk can be made here");
        let _ = std::fs::remove_dir_all(&copy);
        return;
    };
    let output = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        end_all(&dir);
        let _ = std::fs::remove_dir_all(&copy);
    }
    assert!(ran.status.success(), "{output}");
    std::fs::remove_dir_all(&dir).expect("the one without the disk goes");
    std::fs::rename(&copy, &dir).expect("what was on the disk takes its place");
    repository.check(&["f-1", "f-2"], TESTS);
}

#[test]
fn adj_stop_ends_the_fleet_on_a_full_disk_and_the_next_one_goes_on() {
    on_a_disk(
        "full-stop",
        "begin; fill; timeout 15 \"$adj\" stop || fail \"it does not stop\"; wait $pid || fail \"it failed\"; go_on",
    );
}

#[test]
fn an_interrupt_ends_the_fleet_on_a_full_disk_and_the_next_one_goes_on() {
    on_a_disk("full-interrupt", "begin; fill; kill -INT $pid; within 15 '! kill -0 $pid 2>/dev/null'; go_on");
}

#[test]
fn a_terminate_ends_the_fleet_on_a_full_disk_and_the_next_one_goes_on() {
    on_a_disk(
        "full-terminate",
        "begin; fill; kill -TERM $pid; within 15 '! kill -0 $pid 2>/dev/null'; go_on",
    );
}

/// Tests wait for room to say how they ended, as agents do. They are run again.
#[test]
fn adj_stop_ends_tests_on_a_full_disk_and_the_next_fleet_runs_them_again() {
    let scenario = format!("[[scenario]]\n[[scenario.step]]\ndo = [ {WAITS_IN_TESTS}{{ done = true }} ]\n");
    on_a_disk_with(
        "full-stop-tests",
        &scenario,
        "begin; fill; timeout 15 \"$adj\" stop || fail \"it does not stop\"; wait $pid || fail \"it failed\"; go_on",
    );
}

/// Agents that come to their end while there is no room are not blamed for what could not be written then.
#[test]
fn a_fleet_that_meets_a_full_disk_again_and_again_stays_up_and_lands_everything() {
    on_a_disk(
        "full-again",
        r#"begin
        for round in 1 2 3; do
          fill
          [ ! -d agents/A-f-1 ] || : > agents/A-f-1/f-1.go; [ ! -d agents/B-f-2 ] || : > agents/B-f-2/f-2.go
          "$adj" task add "Task $round" > /dev/null 2>&1
          sleep 1
          kill -0 $pid || fail "it ended"
          rm filler
          sleep 1
        done
        within 60 'grep -q "f-1 landed" "$said" && grep -q "f-2 landed" "$said"'
        grep -q "BLOCKED" "$said" && fail "somebody was blamed"
        "$adj" stop || fail "it does not stop"
        wait $pid || fail "it failed""#,
    );
}

/// It could not write, which is no crash: it keeps its turn, waits for room and speaks again.
#[test]
fn an_agent_whose_reply_fails_on_a_full_disk_stays_in_its_room_and_speaks_when_there_is_room() {
    on_a_disk(
        "full-room",
        r#"cat > anna.toml <<'END'
[[scenario]]
task = "room/*"
[[scenario.step]]
do = [ { run = "touch middle; while [ ! -e go ]; do sleep 0.05; done; head -c 1m /dev/zero > large || kill -9 $PPID", quiet = true } ]
[[scenario.step]]
do = [ { say = "Here." } ]
END
        printf '\n[agents.anna]\nadapter = "script"\ncommand = ["anna.toml"]\n' >> adjutant.toml
        git add anna.toml adjutant.toml && git -c user.name=a -c user.email=a@b commit -qm Anna
        begin
        "$adj" channel create talk --topic Well? --timeout 10m --add anna > /dev/null || fail "no room"
        seat='agents/rooms/room+talk+anna'
        within 60 '[ -e "$seat/middle" ]'
        : > "$seat/go.new"; fill; mv "$seat/go.new" "$seat/go"
        within 60 'grep -q "anna in talk: its output cannot be stored, so it waits" "$said"'
        rm filler
        within 60 '"$adj" channel history talk | grep -q Here.'
        grep -q disconnected "$said" && fail "it was lost"
        for tree in agents/*-f-*; do [ ! -d "$tree" ] || : > "$tree/${tree##*/?-}.go"; done
        within 60 'grep -q "f-1 landed" "$said" && grep -q "f-2 landed" "$said"'
        "$adj" stop || fail "it does not stop"
        wait $pid || fail "it failed""#,
    );
}

/// What is deleted while agents run is free at once, whether it was there before them or not: no process of ours has it
/// open or stands in it, and no rule of the sandbox names it.
#[test]
fn what_is_deleted_while_agents_run_is_free_at_once() {
    on_a_disk(
        "full-freed",
        r#"for at in . .git; do head -c 25m /dev/zero > $at/large.before; done
        printf "large.before\n" >> .git/info/exclude
        begin
        for at in agents/A-f-1 .git/adjutant/steps; do head -c 30m /dev/zero > $at/large; done
        before=$(avail)
        for at in . .git; do rm $at/large.before; done
        for at in agents/A-f-1 .git/adjutant/steps; do rm $at/large; done
        [ $(($(avail) - before)) -gt 108000 ] || fail "it is still there: $(($(avail) - before)) kB of 110 MB came free"
        for held in /proc/[0-9]*/fd/*; do
          case $(readlink $held) in "$dir"*"(deleted)") fail "$held holds $(readlink $held)";; esac
        done
        : > agents/A-f-1/f-1.go; : > agents/B-f-2/f-2.go
        within 60 'grep -q "f-1 landed" "$said" && grep -q "f-2 landed" "$said"'
        "$adj" stop || fail "it does not stop"
        wait $pid || fail "it failed""#,
    );
}

/// Commits more than there will be room for a second time, and then waits.
const LARGE: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "head -c 3000000 /dev/urandom > {task}.large", quiet = true }, CHECK{ commit = "Large", quiet = true },
  WAIT{ done = true },
]
[[scenario.step]]
do = [ { write = "{task}.again", text = "x\n", quiet = true }, { done = true } ]
"#;

/// A step that is over is taken in when there is room for what the agent made, and is not failed before.
#[test]
fn what_an_agent_made_is_taken_in_when_there_is_room_for_it() {
    on_a_disk_with(
        "full-large",
        &LARGE.replace("CHECK", "").replace("WAIT", WAITS_ITSELF),
        r#"begin
        leave 600
        : > agents/A-f-1/f-1.go; : > agents/B-f-2/f-2.go
        within 30 'grep -q "this waits for space" "$said"'
        rm filler
        within 60 'grep -q "f-1 landed" "$said" && grep -q "f-2 landed" "$said"'
        grep -q "step on .* failed" "$said" && fail "a step was failed for it"
        [ ! -e f-1.again ] && [ ! -e f-2.again ] || fail "a step was done again"
        "$adj" stop || fail "it does not stop"
        wait $pid || fail "it failed""#,
    );
}

/// The same of the landing: the files of a merge take as much room again.
#[test]
fn a_landing_waits_for_room_and_is_not_said_to_have_failed() {
    on_a_disk_with(
        "full-landing",
        &LARGE.replace("CHECK", WAITS_IN_TESTS).replace("WAIT", ""),
        r#"begin
        leave 600
        : > agents/A-f-1/f-1.go; : > agents/B-f-2/f-2.go
        within 30 'grep -q "this waits for space" "$said"'
        rm filler
        within 60 'grep -q "f-1 landed" "$said" && grep -q "f-2 landed" "$said"'
        "$adj" stop || fail "it does not stop"
        wait $pid || fail "it failed"
        "$adj" history > "$said.history"; grep -q "could not be" "$said.history" && fail "$(cat "$said.history")"
        rm "$said.history""#,
    );
}
