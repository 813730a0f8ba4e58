//! A clock that is set while the fleet runs: nothing waits for it, and nothing comes early.

use super::Repository;
use super::background::wait;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const HOUR: i64 = 3_600_000;

/// Fails once, and then does its work.
const FAILS_ONCE: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { crash = true } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;

struct Clock(PathBuf);

impl Clock {
    fn new(repository: &Repository) -> Clock {
        let clock = Clock(repository.state("clock-shift"));
        std::fs::create_dir_all(clock.0.parent().expect("a folder")).expect("a folder");
        clock.set(0);
        clock
    }

    /// By how much the fleet's clock goes wrong from now on.
    fn set(&self, millis: i64) {
        let fresh = self.0.with_extension("new");
        std::fs::write(&fresh, millis.to_string()).expect("a file");
        std::fs::rename(fresh, &self.0).expect("a file");
    }
}

/// An hour back, an hour on, and a day at a time, each while a worker waits for its next try.
/// Slow: three fleets, each of which waits for a real timer.
#[test]
fn a_clock_that_is_set_while_a_worker_waits_delays_nothing() {
    for (name, shifts) in
        [("back", vec![-HOUR]), ("on", vec![HOUR]), ("days", vec![24 * HOUR, 48 * HOUR, -24 * HOUR])]
    {
        let repository = Repository::new(&format!("clock-{name}"), FAILS_ONCE, &["t-1"]);
        let clock = Clock::new(&repository);
        let began = Instant::now();
        let fleet = repository.begin_with("run --until-idle", &[("ADJ_CLOCK_SHIFT", &clock.0)]);
        fleet.wait_for("failed");
        for shift in shifts {
            clock.set(shift);
            // Whoever asks now is not told of an hour either.
            let why =
                repository.command("why A").env("ADJ_CLOCK_SHIFT", &clock.0).output().expect("adj runs");
            let why = String::from_utf8_lossy(&why.stdout).into_owned();
            assert!(!why.contains(" h") && !why.contains(" min"), "{why}");
        }
        let said = fleet.done();
        let took = said.lines().find(|line| line.trim_start().starts_with("time ")).unwrap_or_default();
        assert!(!took.is_empty() && !took.contains('-') && !took.contains(" h"), "{name}: {took}");
        assert!(began.elapsed() < Duration::from_secs(60), "{name}: {:?}", began.elapsed());
        repository.check(&["t-1"], "sh tests.sh");
    }
}

/// A question stays open for as long as the settings say, whatever the clock does meanwhile.
#[test]
fn a_clock_that_is_set_forward_ends_nothing_early() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;
    let repository = Repository::new("clock-early", scenario, &["t-1"]);
    let clock = Clock::new(&repository);
    let fleet = repository.begin_with("run", &[("ADJ_CLOCK_SHIFT", &clock.0)]);
    fleet.wait_for("adj approve");
    clock.set(24 * HOUR);
    // Something else happens, so that timers are looked at.
    repository.ok("task comment t-1 look");
    let approval = wait("a question", || {
        let approvals = repository.json("approvals");
        approvals[0]["id"].as_str().map(str::to_owned)
    });
    assert_eq!(repository.events("question_dropped"), 0, "the call still waits");
    repository.ok(&format!("approve {approval}"));
    fleet.wait_for("t-1 landed");
    repository.ok("stop");
    fleet.done();
}

/// The clocks of a machine that slept: the one that people read and the one since boot go on, the monotonic one stands still.
const SLEEP: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long slept(void) {
    const char *name = getenv("SLEPT");
    FILE *file = name ? fopen(name, "r") : NULL;
    long seconds = 0;
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, out);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_BOOTTIME)) out->tv_sec += slept();
    return result;
}
"#;

/// The machine sleeps for eight hours while a call waits for a person: the question, which stays open for an hour, is still
/// open when it wakes, and also for a fleet that starts after that.
#[test]
fn time_asleep_ends_no_question_in_a_running_fleet_or_after_a_restart() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;
    let shim = super::shim::Shim::new("sleep", SLEEP);
    let repository = Repository::new("clock-sleep", scenario, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nquestion = \"1h\"\n[test]")]);
    let slept = repository.state("slept");
    std::fs::create_dir_all(slept.parent().expect("a folder")).expect("a folder");
    std::fs::write(&slept, "0").expect("a file");
    let library = shim.library();
    let variables: [(&str, &std::path::Path); 2] = [("LD_PRELOAD", &library), ("SLEPT", &slept)];
    let fleet = repository.begin_with("run", &variables);
    fleet.wait_for("adj approve");
    std::fs::write(&slept, "28800").expect("a file");
    repository.ok("task comment t-1 look");
    let worker = |repository: &Repository| repository.json("ps")[0]["status"].clone();
    assert_eq!(worker(&repository), "working", "the call still waits");
    fleet.kill();
    std::fs::write(&slept, "57600").expect("a file");
    let fleet = repository.begin_with("run", &variables);
    fleet.wait_for("fleet started");
    repository.ok("task comment t-1 again");
    assert_eq!(worker(&repository), "working", "the call still waits");
    let approval = repository.json("approvals")[0]["id"].as_str().map(str::to_owned).expect("a question");
    repository.ok(&format!("approve {approval}"));
    fleet.wait_for("t-1 landed");
    repository.ok("stop");
    fleet.done();
}

/// The machine sleeps for eight hours while a run waits for a service, an agent from outside is connected and has a task, and
/// a step works. A turn that is given after the sleep times out; none of these has.
#[test]
fn time_asleep_ends_no_suspension_no_heartbeat_no_lease_and_no_step() {
    let scenario = r#"
[[scenario]]
task = "t-away"
[[scenario.step]]
do = [ { outage = 529 } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { done = true } ]

[[scenario]]
task = "t-works"
[[scenario.step]]
do = [ { run = "until [ -e \"$TMPDIR/go\" ]; do sleep 0.05; done" }, { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;
    let shim = super::shim::Shim::new("sleep-all", SLEEP);
    let repository = Repository::new("clock-sleep-all", scenario, &["t-works"]);
    let limits =
        "[limits]\nhealth_poll = \"1h\"\nsuspension = \"2h\"\nheartbeat = \"1h\"\noutside_lease = \"1h\"\n";
    let other = "[agents.guest]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\n";
    repository.set(&[
        ("[test]", &format!("{limits}[test]")),
        ("[agents.player]", &format!("{other}\n[agents.player]")),
        ("workers = 2", "workers = 2\nstep_timeout = \"1h\""),
    ]);
    let slept = repository.state("slept");
    std::fs::create_dir_all(slept.parent().expect("a folder")).expect("a folder");
    std::fs::write(&slept, "0").expect("a file");
    repository.ok("task add Guest --id t-guest");
    repository.ok("task assign t-guest guest");
    let library = shim.library();
    let fleet = repository.begin_with("run", &[("LD_PRELOAD", &library), ("SLEPT", &slept)]);
    fleet.wait_for("A takes t-works");
    let token = repository.token_by_name("guest", "specialist");
    let connected = repository.post(&token, "/agents/guest/connect", &serde_json::json!({}));
    assert!(connected.contains("\"state\":\"IDLE\""), "{connected}");
    repository.ok("task move t-guest IN_PROGRESS --plan a --plan b --plan c");
    let began =
        repository.post(&token, "/runs", &serde_json::json!({ "task": "t-guest", "prompt": "do it" }));
    assert!(began.starts_with("HTTP/1.1 201"), "{began}");
    repository.ok("task add Away --id t-away");
    fleet.wait_for("is unavailable");

    std::fs::write(&slept, "28800").expect("a file");
    // A timer that is set after the sleep is due after all that were set before it.
    repository.ok("channel create talk --topic Well? --timeout 1s --add guest");
    wait("the turn of the guest to time out", || {
        repository.ok("channel history talk").contains("guest turn timed out").then_some(())
    });

    let runs = repository.json("runs");
    let state = |task: &str| {
        let of = |run: &&serde_json::Value| run["task"] == task;
        runs.as_array().and_then(|runs| runs.iter().find(of)).map(|run| run["state"].clone())
    };
    assert_eq!(state("t-away"), Some("suspended".into()), "{runs:#}");
    for task in ["t-works", "t-guest"] {
        let at_work = state(task).is_some_and(|state| state == "starting" || state == "running");
        assert!(at_work, "{task}: {runs:#}");
    }
    let agents = repository.json("agent ls").to_string();
    assert!(agents.contains("guest"), "{agents}");
    assert_eq!(repository.events("agent_gone"), 0);
    fleet.kill();
}
