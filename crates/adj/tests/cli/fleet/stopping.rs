//! How a fleet stops: calls that are running may end, and an agent that was cut off hears that nobody refused it.

use super::Repository;
use super::background::{keepers, wait};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::time::Duration;

const NOBODY_REFUSED: &str = "nobody refused it";

/// Waits in a call, and then writes. The next step keeps what it was told.
const WAITS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'touch begun; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done; echo whole > {task}.txt' },
  { say = "and on" },
]
[[scenario.step]]
do = [ { write = "prompt.txt", text = "{prompt}\n" }, { run = "rm begun" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// Waits until the agent's call runs; its tree.
fn begun(repository: &Repository, task: &str) -> PathBuf {
    let worker = repository.wait_worker(task, "working");
    let tree = repository.tree(&format!("{worker}-{task}"));
    wait("the call to run", || tree.join("begun").exists().then_some(()));
    tree
}

#[test]
fn a_call_that_is_running_ends_before_the_fleet_does() {
    let repository = Repository::new("stop-call", WAITS, &["t-1"]);
    repository.set(&[("stop_timeout = \"1s\"", "stop_timeout = \"5m\"")]);
    let running = repository.start("run");
    let tree = begun(&repository, "t-1");
    running.signal(Signal::SIGINT);
    running.wait_for("waiting for running calls to end");
    repository.go("t-1");
    let (code, lines) = running.ended();
    assert_eq!(code, 0, "{lines}");
    let written = std::fs::read_to_string(tree.join("t-1.txt")).unwrap_or_default();
    assert_eq!(written, "whole\n", "the call came to its end");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn an_agent_whose_call_was_cut_off_hears_that_nobody_refused_it() {
    let repository = Repository::new("stop-cut", WAITS, &["t-1"]);
    let running = repository.start("run");
    begun(&repository, "t-1");
    repository.ok("stop");
    running.done();
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let prompt = repository.git("show main:prompt.txt");
    assert!(prompt.contains(NOBODY_REFUSED) && prompt.contains("The fleet was stopped"), "{prompt}");
}

/// Nobody sees the calls of a plain command: it may end by itself.
#[test]
fn a_command_that_is_about_to_end_is_not_interrupted() {
    let repository = Repository::new("stop-command", "", &["t-1"]);
    let agent = "#!/bin/sh\ntrap 'echo interrupted >> \"$TMPDIR/heard\"; exit 1' INT\ntouch begun\n\
                 until [ -e \"$TMPDIR/go\" ]; do sleep 0.05; done\nrm begun; echo done > t-1.txt; echo DONE\n";
    repository.write("agent.sh", agent);
    repository.set(&[
        ("adapter = \"script\"", "adapter = \"command\""),
        ("command = [\"scenario.toml\"]", "command = [\"sh\", \"agent.sh\"]"),
        ("stop_timeout = \"1s\"", "stop_timeout = \"5m\""),
    ]);
    let running = repository.start("run");
    begun(&repository, "t-1");
    running.signal(Signal::SIGINT);
    running.wait_for("waiting for running calls to end");
    repository.go("t-1");
    let (code, lines) = running.ended();
    assert_eq!(code, 0, "{lines}");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!(repository.read("t-1.txt"), "done\n");
}

/// The fleet tells the step to end, and is gone before it has: the next one knows why it ends.
#[test]
fn a_server_that_dies_while_it_stops_leaves_no_failed_step() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "begun", text = "" }, { hang = true } ]
[[scenario.step]]
do = [ { write = "prompt.txt", text = "{prompt}\n" }, { run = "rm begun" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("stop-dies", scenario, &["t-1"]);
    let running = repository.start("run");
    begun(&repository, "t-1");
    running.signal(Signal::SIGINT);
    wait("the step to be told", || {
        let steps = std::fs::read_dir(repository.state("steps")).ok()?.flatten();
        let told = |step: &std::path::Path| {
            std::fs::read_to_string(step.join("in")).is_ok_and(|sent| sent.contains("interrupt"))
        };
        steps.map(|step| step.path()).any(|step| told(&step)).then_some(())
    });
    running.kill();
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let prompt = repository.git("show main:prompt.txt");
    assert!(prompt.contains(NOBODY_REFUSED), "{prompt}");
    assert_eq!(repository.events("step_failed"), 0, "nothing was counted against the worker");
}

/// A keeper that does not answer, as on a machine that swaps: the fleet leaves without it, and it ends its agent when it
/// can.
#[test]
fn a_fleet_that_is_to_stop_at_once_does_not_wait_for_a_keeper_that_hangs() {
    let repository = Repository::new("stop-hangs", WAITS, &["t-1"]);
    let running = repository.start("run");
    begun(&repository, "t-1");
    let keeper = keepers(&repository)[0] as i32;
    signal::kill(Pid::from_raw(keeper), Signal::SIGSTOP).expect("it runs");
    repository.ok("stop --now");
    let (code, lines) = running.ended_within(Duration::from_secs(30));
    signal::kill(Pid::from_raw(keeper), Signal::SIGCONT).expect("it runs");
    assert_eq!(code, 0, "{lines}");
    assert!(lines.contains("1 steps or tests have not ended yet"), "{lines}");
    wait("the end of the agent", || repository.strays().is_empty().then_some(()));
    repository.go("t-1");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}
