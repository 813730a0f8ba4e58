//! What people do while a fleet runs: every command comes from another process.

use super::background::{Fleet, wait};
use super::{Ran, Repository};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

impl Repository {
    #[track_caller]
    pub fn json(&self, line: &str) -> Value {
        let text = self.ok(&format!("{line} --json"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("adj {line} --json: {error}\n{text}"))
    }

    #[track_caller]
    pub fn task(&self, id: &str) -> Value {
        self.json(&format!("task show {id}"))
    }

    #[track_caller]
    pub fn wait_task(&self, id: &str, status: &str) -> Value {
        wait(&format!("{id} {status}"), || {
            let ran = self.adj(&format!("task show {id} --json"));
            let task: Value = serde_json::from_str(&ran.stdout).ok()?;
            (task["status"] == status).then_some(task)
        })
    }

    /// The worker that has this task, once it is in that state.
    #[track_caller]
    pub fn wait_worker(&self, task: &str, status: &str) -> String {
        wait(&format!("a worker that is {status} with {task}"), || {
            let workers = self.json("ps");
            let found = workers
                .as_array()?
                .iter()
                .find(|worker| worker["task"] == task && worker["status"] == status)?;
            Some(found["name"].as_str()?.to_owned())
        })
    }

    /// Adds to the settings, and commits them.
    pub fn set(&self, changes: &[(&str, &str)]) {
        let mut text = self.read("adjutant.toml");
        for (from, to) in changes {
            assert!(text.contains(from), "{from} is in the settings");
            text = text.replace(from, to);
        }
        self.write("adjutant.toml", &text);
        self.commit("Settings");
    }

    /// Lets a step, test or hook go on that waits for the file `go`.
    pub fn go(&self, task: &str) {
        wait("its folder for temporary files", || self.temp(task).exists().then_some(()));
        self.write(&self.temp(task).join("go"), "");
    }

    /// Adj, which must refuse by a rule; what it said.
    #[track_caller]
    pub fn refused(&self, line: &str) -> String {
        let Ran { code, stdout, stderr } = self.adj(line);
        assert_eq!(code, 3, "adj {line}\n{stdout}\n{stderr}");
        stderr
    }
}

/// A step that writes without committing, waits, then commits and is done.
const HELD: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.txt", text = "uncommitted\n" },
  { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { commit = "Do {task}" },
  { done = true },
]
"#;

/// Each command in each state of a worker: done where its table has a row, refused with its reason where not.
#[test]
fn a_command_that_a_workers_state_does_not_take_is_refused_with_the_reason() {
    let scenario = r#"
[[scenario]]
task = "t-stuck"
[[scenario.step]]
do = [ { write = "stuck.check", text = "false\n" }, { done = true } ]
[[scenario]]
task = "t-done"
[[scenario.step]]
do = [ { write = "done.check", text = "until [ -e \"$TMPDIR/go\" ]; do sleep 0.05; done\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { run = "sleep 300" }, { done = true } ]
"#;
    let repository =
        Repository::new("people-table", scenario, &["t-ready", "t-working", "t-done", "t-stuck"]);
    repository.ticket("t-later", &["t-working"]);
    let hook = r#"case $ADJ_TASK in t-ready) sleep 300;; esac"#;
    repository.set(&[
        ("workers = 2", "workers = 5\nmax_fix_rounds = 0"),
        ("[test]", &format!("[hooks]\nworktree.create = '{hook}'\n[test]")),
    ]);
    let running = repository.start("run");
    let named = ["ready", "working", "done", "stuck"]
        .map(|state| (state, repository.wait_worker(&format!("t-{state}"), state)));
    // No worker is made for a task that cannot begin.
    repository.ok("spawn");
    let idle = wait("an idle worker", || {
        let workers = repository.json("ps");
        let idle = workers.as_array()?.iter().find(|worker| worker["status"] == "idle")?;
        Some(idle["name"].as_str()?.to_owned())
    });
    let worker = |state: &str| match state {
        "idle" => idle.clone(),
        _ => named.iter().find(|(name, _)| *name == state).expect("it is one of these").1.clone(),
    };
    // What people see of each.
    let shown = repository.ok("ps");
    for (state, symbol) in [("idle", "○"), ("ready", "◐"), ("working", "●"), ("done", "✓"), ("stuck", "!")]
    {
        let name = worker(state);
        let line =
            shown.lines().find(|line| line.split_whitespace().nth(1) == Some(&name)).unwrap_or_default();
        assert!(line.starts_with(symbol) && line.contains(state), "{state}:\n{shown}");
        let why = repository.ok(&format!("why {name}"));
        assert!(why.starts_with(&format!("{name}  {state}\n")), "{why}");
    }
    let state = repository.json("state");
    assert_eq!(state["agents"].as_array().map(Vec::len), Some(6), "five, and one for the stuck one: {state}");
    assert!(repository.ok("why t-later").contains("t-working"), "it names what it waits for");
    assert!(repository.ok("queue").contains("nothing waits to land"));
    // Refused, with what the machine would take.
    for (state, command, reason) in [
        ("idle", "kill W", "idle"),
        ("idle", "retry W", "idle"),
        ("idle", "merge W", "has no task"),
        ("idle", "assign W t-later", "t-working"),
        ("idle", "assign W t-working", "t-working"),
        ("ready", "assign W t-later", "ready"),
        ("ready", "retry W", "ready"),
        ("ready", "cleanup W", "--force"),
        ("ready", "merge W", "IN_PROGRESS"),
        ("working", "assign W t-later", "working"),
        ("working", "retry W", "working"),
        ("working", "cleanup W", "--force"),
        ("working", "merge W", "IN_PROGRESS"),
        ("done", "assign W t-later", "done"),
        ("done", "kill W", "done"),
        ("done", "retry W", "done"),
        ("done", "cleanup W", "--force"),
        ("done", "merge W", "IN_PROGRESS"),
        ("stuck", "assign W t-later", "stuck"),
        ("stuck", "merge W", "BLOCKED"),
    ] {
        let command = command.replace('W', &worker(state));
        let said = repository.refused(&command);
        assert!(said.contains(reason), "{state}: adj {command} does not say `{reason}`:\n{said}");
    }
    for (command, code) in
        [("kill Nobody", 4), ("retry Nobody", 4), ("cleanup Nobody", 4), ("assign Nobody t-later", 4)]
    {
        assert_eq!(repository.adj(command).code, code, "adj {command}");
    }
    assert_eq!(repository.adj(&format!("assign {idle} t-none")).code, 4);
    // Taken.
    for (state, command) in [
        ("idle", "cleanup W"),
        ("ready", "kill W"),
        ("working", "kill W"),
        ("stuck", "kill W"),
        ("done", "cleanup W --force"),
    ] {
        let command = command.replace('W', &worker(state));
        let said = repository.ok(&command);
        assert!(said.contains("idle"), "adj {command}: {said}");
    }
    for id in ["t-ready", "t-working", "t-done", "t-stuck"] {
        let task = repository.wait_task(id, "BLOCKED");
        let reason = if id == "t-stuck" { "stuck" } else { "manual" };
        assert_eq!(task["blockReason"], reason, "{id}");
    }
    wait("every process to be gone", || repository.strays().is_empty().then_some(()));
    running.stop();
    repository.ok("verify");
}

/// Killed by a person: the processes are gone, the bytes that were in no commit come back out of a ref, and the task
/// goes on where a person says so.
#[test]
fn a_killed_workers_uncommitted_bytes_come_back_and_the_task_goes_on_when_it_is_assigned() {
    let scenario = HELD.replace("until [", "sleep 4321 & until [");
    let repository = Repository::new("people-kill", &scenario, &["t-1"]);
    let running = repository.start("run");
    let name = repository.wait_worker("t-1", "working");
    wait("the uncommitted file", || {
        (!repository.read(&repository.tree(&format!("{name}-t-1/t-1.txt"))).is_empty()).then_some(())
    });
    let sleeping = "sleep 4321";
    wait("its child", || repository.strays().iter().any(|line| line.contains(sleeping)).then_some(()));
    repository.ok(&format!("kill {name}"));
    let saved = wait("what was saved", || {
        let saved = repository.json("salvage list");
        Some(saved.as_array()?.first()?["id"].as_str()?.to_owned())
    });
    assert!(repository.strays().is_empty(), "{:?}", repository.strays());
    let task = repository.task("t-1");
    assert_eq!((&task["status"], &task["blockReason"]), (&"BLOCKED".into(), &"manual".into()), "{task}");
    assert!(
        repository.read(".tickets/t-1.md").contains("status: in_progress")
            || repository.read(".tickets/t-1.md").contains("status: open"),
        "the ticket stays open"
    );
    assert!(repository.ok(&format!("salvage show {saved}")).contains("+uncommitted"));
    repository.ok(&format!("salvage restore {saved} --branch rescued"));
    assert_eq!(repository.git("show rescued:t-1.txt"), "uncommitted");
    let folder = repository.dir().with_extension("rescued");
    let _ = std::fs::remove_dir_all(&folder);
    repository.ok(&format!("salvage restore {saved} --to {}", folder.display()));
    assert_eq!(std::fs::read_to_string(folder.join("t-1.txt")).expect("it was restored"), "uncommitted\n");
    let _ = std::fs::remove_dir_all(&folder);
    assert!(repository.refused(&format!("salvage restore {saved} --branch rescued")).contains("rescued"));
    repository.git("branch -D rescued");
    // It goes on in the same tree and session, where the bytes still are.
    repository.go("t-1");
    repository.ok(&format!("assign {name} t-1"));
    running.wait_for("t-1 landed");
    running.stop();
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!(repository.read("t-1.txt"), "uncommitted\n");
}

#[test]
fn a_stuck_worker_goes_on_when_a_person_tries_it_again() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "t.check", text = "false\n" }, { commit = "Red" }, { done = true } ]
[[scenario.step]]
do = [ { write = "t.check", text = "true\n" }, { commit = "Green" }, { done = true } ]
"#;
    let repository = Repository::new("people-retry", scenario, &["t-1"]);
    repository.set(&[("workers = 2", "workers = 1\nmax_fix_rounds = 0")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("t-1 is BLOCKED (stuck)"), "{}", ran.stdout);
    let ps = repository.adj("ps");
    assert!(
        ps.stderr.contains("no fleet is running"),
        "a worker that is not idle looks alive: {}",
        ps.stderr
    );
    assert_eq!(repository.adj("ps --quiet").stderr, "");
    assert!(ran.stderr.contains("needs a person") && ran.stderr.contains("adj why TASK"), "{}", ran.stderr);
    let running = repository.start("run");
    assert!(repository.ok("why A").contains("adj retry A"), "it says the way out");
    repository.ok("retry A");
    running.wait_for("t-1 landed");
    running.stop();
    repository.check(&["t-1"], "sh tests.sh");
}

/// Five failures in a row, with the pauses between them that the settings ask for.
#[test]
fn five_failing_steps_make_a_worker_stuck_and_its_tree_stays() {
    let step = "[[scenario.step]]\ndo = [ { append = \"tries.txt\", text = \"{step}\\n\" }, { fail = 1, stderr = \"out of luck\" } ]\n";
    let repository = Repository::new("people-stuck", &format!("[[scenario]]\n{}", step.repeat(6)), &["t-1"]);
    repository.set(&[("[test]", "[limits]\nbackoff = \"1s\"\n\n[test]")]);
    let begun = Instant::now();
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert_eq!(repository.timers("backoff"), [1_000, 2_000, 4_000, 8_000]);
    assert!(begun.elapsed() >= Duration::from_secs(15), "it waits 1, 2, 4 and 8 s");
    assert_eq!(ran.stdout.matches("failed: ").count(), 5, "{}", ran.stdout);
    let worker = &repository.json("ps")[0];
    assert_eq!((&worker["status"], &worker["task"]), (&"stuck".into(), &"t-1".into()), "{worker}");
    assert!(worker["last_error"].as_str().is_some_and(|error| error.contains("out of luck")), "{worker}");
    assert_eq!(
        repository.read(&repository.tree("A-t-1/tries.txt")),
        "1\n2\n3\n4\n5\n",
        "the tree stands as it was"
    );
    let why = repository.ok("why t-1");
    assert!(why.contains("stuck"), "{why}");
}

/// Cleanup puts the tree away and keeps what was in it; clean removes the workers too.
#[test]
fn cleanup_and_clean_save_everything_before_they_remove_it() {
    let again =
        "[[scenario.step]]\ndo = [ { write = \"again.txt\", text = \"again\\n\" }, { done = true } ]\n";
    let repository = Repository::new("people-clean", &format!("{HELD}{again}"), &["t-1", "t-2"]);
    let running = repository.start("run");
    let (one, two) = (repository.wait_worker("t-1", "working"), repository.wait_worker("t-2", "working"));
    for (id, name) in [("t-1", &one), ("t-2", &two)] {
        wait("its file", || {
            (!repository.read(&repository.tree(&format!("{name}-{id}/{id}.txt"))).is_empty()).then_some(())
        });
    }
    assert!(repository.refused(&format!("cleanup {one}")).contains("--force"));
    repository.ok(&format!("cleanup {one} --force"));
    let tree = repository.tree(&format!("{one}-t-1"));
    wait("its tree to be gone", || (!tree.exists()).then_some(()));
    assert_eq!(repository.task("t-1")["blockReason"], "manual");
    assert_eq!(repository.adj("clean").code, 2, "nobody is there to ask");
    let dry = repository.ok("clean --dry-run");
    assert!(dry.contains(&two) && dry.contains("t-2"), "{dry}");
    assert!(repository.tree(&format!("{two}-t-2")).exists(), "a dry run removes nothing");
    let cleaned = repository.ok("clean --yes");
    assert!(
        cleaned.contains(&format!("{one}  removed")) && cleaned.contains(&format!("{two}  removed")),
        "{cleaned}"
    );
    assert_eq!(repository.json("ps"), Value::Array(Vec::new()));
    wait("every tree to be gone", || repository.standing().is_empty().then_some(()));
    wait("every process to be gone", || repository.strays().is_empty().then_some(()));
    let saved = repository.json("salvage list");
    for id in ["t-1", "t-2"] {
        let of = saved
            .as_array()
            .expect("a list")
            .iter()
            .find(|item| item["id"].as_str().is_some_and(|name| name.starts_with(id)));
        let of = of.unwrap_or_else(|| panic!("{id} was saved: {saved}"))["id"]
            .as_str()
            .expect("a name")
            .to_owned();
        assert!(repository.ok(&format!("salvage show {of}")).contains("+uncommitted"), "{id}");
    }
    // The work goes on from the branch where somebody wants it to.
    repository.ok("spawn A");
    repository.ok("assign A t-1");
    running.wait_for("t-1 landed");
    running.stop();
}

/// A person looks, asks for a change, sees it made, and approves.
#[test]
fn what_a_reviewer_asks_for_reaches_the_next_prompt_and_an_approval_lands() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "first\n" }, { commit = "Do {task}" }, { done = true } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "{prompt}\n" }, { commit = "Redo {task}" }, { done = true } ]
"#;
    let repository = Repository::new("people-review", scenario, &["t-1", "t-2"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let running = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    repository.wait_task("t-2", "REVIEW");
    assert!(repository.refused("review t-1 --changes x --tip 0123456789").contains("tip"));
    let shown = repository.ok("review t-1");
    assert!(shown.contains("t-1.txt") && shown.contains("--approve"), "{shown}");
    let diff = repository.ok("diff t-1");
    assert!(diff.contains("+first") && !diff.contains("t-2"), "{diff}");
    assert!(repository.ok("why t-1").contains("REVIEW"));
    let before = repository.git("rev-parse main");
    let asked =
        repository.command("review t-1 --changes").arg("the word is SECOND").output().expect("adj runs");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    // Both words go back and forth between the same two commands.
    let task = wait("the second round", || {
        let task = repository.task("t-1");
        (task["status"] == "REVIEW" && task["reviewCycles"] == 1).then_some(task)
    });
    assert!(repository.ok("diff t-1").contains("the word is SECOND"), "the prompt had it");
    assert_eq!(repository.git("rev-parse main"), before, "nothing lands that nobody approved");
    let tip = task["tip"].as_str().expect("it has a tip").to_owned();
    repository.ok(&format!("review t-1 --approve --tip {tip} --note fine"));
    repository.ok("merge t-2");
    running.wait_for("t-1 landed");
    running.wait_for("t-2 landed");
    let task = repository.task("t-1");
    assert_eq!(task["completion"]["approvedBy"], "human:tester", "{task}");
    for command in ["merge t-2", "review t-2 --approve", "review t-2 --changes x"] {
        assert!(repository.refused(command).contains("DONE"), "adj {command}");
    }
    let diff = repository.ok("diff t-2");
    assert!(diff.contains("+first"), "what has landed can be looked at: {diff}");
    running.stop();
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}

#[test]
fn logs_follow_a_step_and_end_with_it() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { say = "first words" },
  { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { say = "last words" },
  { write = "x.txt", text = "x\n" },
  { done = true },
]
"#;
    let repository = Repository::new("people-logs", scenario, &["t-1"]);
    let running = repository.start("run");
    let name = repository.wait_worker("t-1", "working");
    wait("the first words", || repository.ok(&format!("peek {name}")).contains("first words").then_some(()));
    let path = repository.dir().with_extension("followed");
    let file = std::fs::File::create(&path).expect("a file");
    let mut following =
        repository.command(&format!("logs {name} -f")).stdout(file).spawn().expect("adj runs");
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    wait("the first words again", || read().contains("first words").then_some(()));
    assert!(following.try_wait().expect("it was started").is_none(), "it goes on: {}", read());
    assert!(!read().contains("last words"));
    repository.go("t-1");
    let status = wait("the end of adj logs", || following.try_wait().expect("it was started"));
    assert!(status.success());
    assert!(read().contains("last words") && read().contains("DONE"), "{}", read());
    let _ = std::fs::remove_file(&path);
    running.wait_for("t-1 landed");
    assert!(repository.ok(&format!("logs {name}")).contains("last words"), "they can be read afterwards");
    assert!(repository.ok(&format!("logs {name} --raw")).lines().any(|line| line.starts_with('{')));
    assert_eq!(repository.adj("logs Nobody").code, 4);
    running.stop();
}

/// However a fleet is stopped, nothing is lost and nothing runs on, and the next one ends what was begun.
fn check_stopped(name: &str, stop: impl FnOnce(&Repository, &Fleet)) {
    let scenario = r#"
[[scenario]]
task = "t-3"
[[scenario.step]]
do = [ { write = "{task}.txt", text = "three\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.txt", text = "session {session}\n" },
  { sleep = 300 },
  { say = "DONE" },
]
[[scenario.step]]
do = [
  { append = "{task}.txt", text = "session {session}\n" },
  { commit = "Do {task}" },
  { done = true },
]
"#;
    let repository = Repository::new(name, scenario, &["t-1", "t-2", "t-3"]);
    let running = repository.start("run");
    let workers = ["t-1", "t-2"].map(|id| (id, repository.wait_worker(id, "working")));
    for (id, name) in &workers {
        wait("its file", || {
            (!repository.read(&repository.tree(&format!("{name}-{id}/{id}.txt"))).is_empty()).then_some(())
        });
    }
    stop(&repository, &running);
    let (code, lines) = running.ended();
    assert_eq!(code, 0, "{lines}");
    assert_eq!(repository.strays(), Vec::<String>::new(), "nothing runs on");
    for (id, name) in &workers {
        assert!(
            repository.read(&repository.tree(&format!("{name}-{id}/{id}.txt"))).starts_with("session "),
            "{id} has its bytes"
        );
        assert_eq!(repository.task(id)["status"], "IN_PROGRESS");
    }
    let ran = repository.ok("run --until-idle");
    assert!(ran.contains("3 of 3 tasks DONE"), "{ran}");
    for (id, _) in &workers {
        let text = repository.read(&format!("{id}.txt"));
        let sessions: Vec<&str> = text.lines().collect();
        assert_eq!(
            (sessions.len(), sessions.first()),
            (2, sessions.last()),
            "the same session went on: {text}"
        );
    }
    repository.check(&["t-1", "t-2", "t-3"], "sh tests.sh");
}

#[test]
fn adj_stop_lets_turns_end_and_the_next_run_resumes_the_sessions() {
    check_stopped("stop-clean", |repository, _| assert!(repository.ok("stop").contains("stopped (pid")));
}

#[test]
fn adj_stop_now_loses_nothing() {
    check_stopped("stop-now", |repository, _| drop(repository.ok("stop --now")));
}

#[test]
fn one_interrupt_stops_cleanly() {
    check_stopped("stop-int", |_, running| {
        running.signal(Signal::SIGINT);
        running.wait_for("waiting for running calls to end");
    });
}

#[test]
fn a_second_interrupt_ends_the_agents_and_loses_nothing() {
    check_stopped("stop-int-int", |_, running| {
        running.signal(Signal::SIGINT);
        running.wait_for("waiting for running calls to end");
        running.signal(Signal::SIGINT);
    });
}

#[test]
fn a_request_to_terminate_stops_cleanly() {
    check_stopped("stop-term", |_, running| running.signal(Signal::SIGTERM));
}

/// An agent that is deaf does not keep a second interrupt waiting.
#[test]
fn a_deaf_agent_is_ended_by_the_second_interrupt_and_its_work_goes_on() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "kept\n" }, { hang = true } ]
[[scenario.step]]
do = [ { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("stop-deaf", scenario, &["t-1"]);
    let running = repository.start("run");
    let name = repository.wait_worker("t-1", "working");
    wait("its file", || {
        (!repository.read(&repository.tree(&format!("{name}-t-1/t-1.txt"))).is_empty()).then_some(())
    });
    running.signal(Signal::SIGINT);
    running.wait_for("waiting for running calls to end");
    running.signal(Signal::SIGINT);
    running.wait_for("ending every agent now");
    let (code, lines) = running.ended();
    assert_eq!(code, 0, "{lines}");
    assert_eq!(repository.strays(), Vec::<String>::new());
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!(repository.read("t-1.txt"), "kept\n");
}

#[test]
fn a_second_fleet_is_refused_and_once_gives_each_worker_one_step() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "one\n" }, { say = "more to do" } ]
[[scenario.step]]
do = [ { append = "{task}.txt", text = "two\n" }, { done = true } ]
"#;
    let repository = Repository::new("run-once", scenario, &["t-1", "t-2", "t-3"]);
    repository.ok("run --once");
    let steps: Vec<u64> = repository
        .json("ps")
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|worker| worker["step_count"].as_u64())
        .collect();
    assert_eq!(steps, [1, 1], "two workers, a step each");
    assert_eq!(repository.strays(), Vec::<String>::new());
    assert_eq!(repository.task("t-3")["status"], "INBOX");
    let detached = repository.ok("run --detach");
    assert!(detached.contains("the fleet runs as process"), "{detached}");
    assert!(repository.refused("run").contains("a fleet is at work here already"));
    assert!(repository.refused("run --detach").contains("a fleet is at work here already"));
    wait("every task to land", || {
        let tasks = repository.json("task ls --all");
        tasks.as_array()?.iter().all(|task| task["status"] == "DONE").then_some(())
    });
    repository.ok("stop");
    assert!(repository.read(&repository.state("logs/run.log")).contains("t-3 landed"), "its lines are kept");
    assert!(repository.ok("stop").contains("the fleet is not running"));
    repository.check(&["t-1", "t-2", "t-3"], "sh tests.sh");
}

/// The first thing that a fleet hears may be that it is to stop.
#[test]
fn a_fleet_in_the_background_is_stopped_as_soon_as_it_answers() {
    let scenario = "[[scenario]]\n[[scenario.step]]\ndo = [ { hang = true } ]\n";
    let repository = Repository::new("detach-stop", scenario, &["t-1"]);
    let started: Value = serde_json::from_str(&repository.ok("run --detach --json")).expect("one document");
    let stopped = repository.ok("stop --now");
    assert_eq!(stopped, format!("stopped (pid {})\n", started["pid"]));
    assert_eq!(repository.strays(), Vec::<String>::new());
}

/// Whoever waits for a clean stop and has no more patience says so from another terminal.
#[test]
fn adj_stop_now_hurries_a_stop_that_is_under_way() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "kept\n" }, { hang = true } ]
"#;
    let repository = Repository::new("stop-sooner", scenario, &["t-1"]);
    let running = repository.start("run");
    let name = repository.wait_worker("t-1", "working");
    wait("its file", || {
        (!repository.read(&repository.tree(&format!("{name}-t-1/t-1.txt"))).is_empty()).then_some(())
    });
    let begun = Instant::now();
    let mut patient = repository.command("stop").stdout(Stdio::null()).spawn().expect("adj runs");
    wait("the stop to begin", || (repository.json("why t-1")["guards"][0]["holds"] == false).then_some(()));
    assert!(repository.ok("doctor").contains("fleet: it runs as pid"), "it is there until it has gone");
    assert!(repository.ok("stop --now").contains("stopped (pid"));
    assert!(patient.wait().expect("it ends").success());
    assert!(begun.elapsed() < Duration::from_secs(25), "a clean stop gives a turn 30 seconds");
    let (code, lines) = running.ended();
    assert_eq!(code, 0, "{lines}");
    assert_eq!(repository.strays(), Vec::<String>::new());
}

#[test]
fn a_fleet_in_the_background_that_cannot_begin_says_why() {
    let repository = Repository::new("detach-wrong", "", &[]);
    repository.git("branch -m main trunk");
    let ran = repository.adj("run --detach");
    let alone = repository.adj("run");
    assert_eq!((ran.code, ran.stderr), (alone.code, alone.stderr), "as it says without --detach");
    assert_ne!(ran.code, 0);
}

/// Whoever stops a fleet, or finds it idle, is told what is left and what to type.
#[test]
fn the_summary_says_what_waits_for_a_person_and_what_the_next_run_goes_on_with() {
    let scenario = "[[scenario]]\n[[scenario.step]]\ndo = [ { write = \"{task}.txt\", text = \"x\" }, { done = true } ]\n";
    let repository = Repository::new("summary", scenario, &["t-1", "t-2"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.ticket("t-3", &["t-1"]);
    repository.ticket("t-4", &["t-gone"]);
    repository.commit("More");
    repository.ok("task add --id t-5 Never");
    repository.ok("task cancel t-5");
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let summary = ran.stdout.split_once("\n\n").expect("a blank line before it").1;
    let lines: Vec<&str> = summary.lines().filter(|line| !line.starts_with("  time")).collect();
    assert_eq!(
        lines,
        [
            "! 0 of 4 tasks DONE, 0 landed in this run",
            "  cost      $0.04, 4,400 tokens",
            "  waits     t-3 waits for t-1, which is in REVIEW",
            "  you       adj review t-1  t-1 is ready: Do t-1",
            "  you       adj why t-4     t-4 waits for t-gone, which does not exist",
            "  you       adj review t-2  t-2 is ready: Do t-2",
        ]
    );
    assert!(ran.stderr.contains("4 tasks not done: 3 need a person, 1 waits for others"), "{}", ran.stderr);
    let ran = repository.adj("run --until-idle --json");
    let document: Value = serde_json::from_str(&ran.stdout).expect("one document, whatever came of it");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert_eq!((&document["left"], &document["forYou"][0]["command"]), (&4.into(), &"adj review t-1".into()));
    assert_eq!(repository.ok("review t-1 --approve --quiet").lines().count(), 1);
    let ran = repository.adj("run --until-idle").stdout;
    assert!(ran.contains("1 of 4 tasks DONE, 1 landed in this run"), "{ran}");
    assert!(ran.contains("tokens; $0.06 with all runs before"), "{ran}");
}

/// People edit tickets while agents work on them.
#[test]
fn tickets_that_are_added_changed_or_closed_while_the_fleet_runs_are_seen_at_once() {
    let scenario = r#"
[[scenario]]
task = "t-new"
[[scenario.step]]
do = [ { write = "new.txt", text = "new\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { say = "and on" } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "{prompt}\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("people-tickets", scenario, &["t-1", "t-2"]);
    // Not in git, so that edits are no changes of the checkout.
    repository.write(".gitignore", ".tickets/\n");
    repository.git("rm -r --quiet --cached .tickets");
    repository.commit("Tickets are not in git");
    repository.set(&[("workers = 2", "workers = 3")]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    repository.wait_worker("t-2", "working");
    repository.ticket("t-new", &[]);
    running.wait_for("t-new landed");
    let text = repository.read(".tickets/t-1.md").replace("Write it.", "Write it in BLUE.");
    repository.write(".tickets/t-1.md", &text);
    wait("the edit to be seen", || repository.task("t-1")["body"].as_str()?.contains("BLUE").then_some(()));
    repository.ok("task comment t-1 mind-the-gap");
    repository.go("t-1");
    running.wait_for("t-1 landed");
    let prompt = repository.read("t-1.txt");
    assert!(prompt.contains("BLUE"), "the next prompt has the new text:\n{prompt}");
    // Closed by hand while it is worked on: it stops, and is kept.
    let text = repository
        .read(".tickets/t-2.md")
        .replace("status: in_progress", "status: closed")
        .replace("status: open", "status: closed");
    repository.write(".tickets/t-2.md", &text);
    let task = repository.wait_task("t-2", "BLOCKED");
    assert_eq!(task["blockReason"], "manual");
    wait("its processes to be gone", || repository.strays().is_empty().then_some(()));
    repository.ticket("t-never", &["t-2"]);
    wait("the last ticket", || repository.adj("task show t-never").code.eq(&0).then_some(()));
    let text = repository.read(".tickets/t-never.md").replace("status: open", "status: closed");
    repository.write(".tickets/t-never.md", &text);
    repository.wait_task("t-never", "CANCELED");
    running.stop();
    repository.ok("verify");
}

#[test]
fn settings_that_are_edited_while_the_fleet_runs_hold_and_a_mistake_changes_nothing() {
    let repository = Repository::new("people-settings", HELD, &[]);
    let running = repository.start("run");
    let workers = || repository.json("ps").as_array().map_or(0, Vec::len);
    wait("two workers", || (workers() == 2).then_some(()));
    repository.set(&[("workers = 2", "workers = 4")]);
    wait("four workers", || (workers() == 4).then_some(()));
    repository.set(&[("workers = 4", "workers = 1")]);
    wait("one worker", || (workers() == 1).then_some(()));
    repository.set(&[("workers = 1", "wrokers = 3")]);
    running.wait_for("the previous settings stay in force");
    assert!(running.lines().contains("workers"), "the nearest key is named:\n{}", running.lines());
    assert_eq!(workers(), 1);
    assert_eq!(repository.adj("config check").code, 2);
    repository.set(&[("wrokers = 3", "workers = 2\nmax_steps = 7")]);
    wait("two workers again", || (workers() == 2).then_some(()));
    running.stop();
    repository.ok("verify");
}

/// Settings that an agent wrote are looked at by a person, and hold only when that person says so.
#[test]
fn settings_from_an_agents_branch_need_a_person_and_hold_only_once_they_are_trusted() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { replace = "adjutant.toml", from = "workers = 2", to = "workers = 4" },
  { commit = "More workers" },
  { done = true },
]
"#;
    let repository = Repository::new("people-trust", scenario, &["t-1"]);
    let running = repository.start("run");
    // The shipped rules ask before the settings are written at all.
    repository.wait_task("t-1", "NEEDS_APPROVAL");
    let asked = repository.json("approvals")[0]["id"].as_str().expect("a question").to_owned();
    repository.ok(&format!("approve {asked}"));
    running.wait_for("a person must look at it (it changes adjutant.toml)");
    repository.ok("merge t-1");
    running.wait_for("t-1 landed");
    running.wait_for("adj config trust");
    assert!(repository.read("adjutant.toml").contains("workers = 4"), "the file is the merged one");
    let workers = || repository.json("ps").as_array().map_or(0, Vec::len);
    assert_eq!(workers(), 2);
    let check = repository.adj("config check");
    assert!((check.stdout + &check.stderr).contains("adj config trust"));
    running.stop();
    // Nor does a fleet that starts afterwards take them up.
    let running = repository.start("run");
    running.wait_for("adj config trust");
    assert_eq!(workers(), 2);
    repository.ok("config trust");
    wait("four workers", || (workers() == 4).then_some(()));
    running.stop();
    repository.check(&["t-1"], "sh tests.sh");
}

/// Two tries, each on a branch of its own: the one that is approved lands, and the work of the other is kept.
#[test]
fn of_several_tries_the_first_that_lands_ends_the_others_and_loses_nothing() {
    let text = super::policies::scenario(&[
        r#"{ write = "door.txt", text = "{task}\n" }, { commit = "Paint the door" }, { done = true }"#,
    ]);
    let repository = Repository::new("people-tries", &text, &["t-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.ok("task ls");
    let running = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    assert_eq!(repository.ok("task try t-1 --agent player"), "t-1-try2\n");
    let after = repository.ok("task add After --id t-after --depends-on t-1");
    assert_eq!(after, "t-after\n");
    repository.wait_task("t-1-try2", "REVIEW");
    let shown = repository.ok("task show t-1-try2");
    assert!(shown.contains("other tries  t-1"), "{shown}");
    repository.ok("review t-1-try2 --approve");
    repository.wait_task("t-1-try2", "DONE");
    repository.wait_task("t-1", "CANCELED");
    running.wait_for("takes t-after");
    running.stop();
    assert_eq!(repository.read("door.txt"), "t-1-try2\n");
    let kept = repository.git("log --format=%s -1 --glob=refs/heads/agent/*-t-1");
    assert_eq!(kept.trim(), "Paint the door");
    assert_eq!(repository.adj("task try t-1").code, 3);
}
