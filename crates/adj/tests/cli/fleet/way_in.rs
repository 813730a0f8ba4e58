//! Which agent does a task, and a person's way into its tree.

use super::background::wait;
use super::policies::{DONE, WRITE, scenario};
use super::settings::HOLDS;
use super::{Ran, Repository};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// A second agent beside the fleet's own.
const OPUS: (&str, &str) =
    ("[test]", "[agents.opus]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\n[test]");
const ALONE: (&str, &str) = ("workers = 2", "workers = 1");

impl Repository {
    /// A ticket that names somebody.
    fn ticket_for(&self, id: &str, assignee: &str) {
        self.ticket(id, &[]);
        let path = format!(".tickets/{id}.md");
        let text = self.read(&path).replace("type: task\n", &format!("type: task\nassignee: {assignee}\n"));
        self.write(&path, &text);
    }

    /// Which agents worked on a task, by its runs.
    fn worked_on(&self, task: &str) -> Vec<String> {
        let history = self.json(&format!("history {task} --all"));
        let runs = history.as_array().expect("a list").iter();
        let opened = runs.filter(|record| record["kind"] == "run_opened");
        opened.map(|record| record["data"]["agent"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// One place in the fleet, two agents: each task is done by the one that it wants, whoever the worker was before.
#[test]
fn a_task_is_done_by_the_agent_that_it_wants() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("way-agent", &text, &["t-plain"]);
    repository.ticket_for("t-ticket", "opus");
    repository.ticket_for("t-person", "Ann Lee");
    repository.commit("Tickets");
    repository.set(&[OPUS, ALONE]);
    let added = repository.ok("task add Paint --id t-added --agent opus");
    assert_eq!(added, "t-added\n");
    let shown = repository.ok("task show t-added");
    assert!(shown.contains("agent        opus"), "{shown}");
    repository.ok("run --until-idle");
    let wanted = [("t-plain", "player"), ("t-person", "player"), ("t-ticket", "opus"), ("t-added", "opus")];
    for (task, agent) in wanted {
        assert_eq!(repository.worked_on(task), [agent], "{task}");
        assert_eq!(repository.task(task)["status"], "DONE");
    }
    let list = repository.json("task ls --all");
    let agent = |id: &str| {
        let lines = list.as_array().expect("a list");
        lines.iter().find(|line| line["id"] == id).map(|line| line["agent"].clone())
    };
    assert_eq!(agent("t-ticket"), Some(json!("opus")));
    assert_eq!(agent("t-person"), Some(Value::Null));
    assert_eq!(agent("t-added"), Some(json!("opus")));
    assert_eq!(repository.task("t-person")["ticketAssignee"], "Ann Lee");
    // No more places than the settings say.
    assert_eq!(repository.json("ps").as_array().map(Vec::len), Some(1));
    assert_eq!(repository.adj("verify").code, 0);
}

/// What is wanted is not there: the task waits, everybody says why, and the settings or another choice lead on.
#[test]
fn a_task_whose_agent_is_not_configured_waits_and_says_so() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("way-unknown", &text, &[]);
    let added = repository.adj("task add Paint --id t-1 --agent opus");
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stderr.contains("adjutant.toml has no agent `opus`"), "{}", added.stderr);
    let doctor = repository.adj("doctor").stdout;
    assert!(doctor.contains("wants agent `opus`, which adjutant.toml does not have"), "{doctor}");
    assert!(doctor.contains("`adj task edit t-1 --agent NAME`"), "{doctor}");
    let running = repository.start("run");
    let why = wait("the fleet at work", || {
        let why = repository.ok("why t-1");
        (!why.contains("the fleet is not running")).then_some(why)
    });
    assert!(why.contains("add [agents.opus]"), "{why}");
    assert!(why.contains("wants agent `opus`; no idle worker of `opus`"), "{why}");
    assert_eq!(repository.task("t-1")["status"], "INBOX");
    repository.set(&[OPUS]);
    repository.wait_task("t-1", "DONE");
    assert_eq!(repository.worked_on("t-1"), ["opus"]);
    // And the other way: the choice is taken back.
    repository.ok("task add Draw --id t-2 --agent nobody");
    repository.ok("task edit t-2 --agent none");
    repository.wait_task("t-2", "DONE");
    assert_eq!(repository.worked_on("t-2"), ["player"]);
    running.stop();
}

/// Whoever has a task keeps it; from then on the one that it wants takes it up, in a session of its own.
#[test]
fn another_agent_takes_over_what_was_begun() {
    let text = format!(
        "[[scenario]]\ntask = \"t-1\"\n[[scenario.step]]\ndo = [ {WRITE}, {{ commit = \"Begin\" }}, {HOLDS} ]\n[[scenario.step]]\ndo = [ {{ write = \"second.txt\", text = \"x\\n\" }}, {DONE} ]\n{}",
        scenario(&[&format!("{WRITE}, {DONE}")])
    );
    let repository = Repository::new("way-over", &text, &["t-1"]);
    repository.set(&[OPUS, ALONE]);
    let running = repository.start("run");
    repository.token_of("t-1");
    // The only place is taken.
    repository.ok("task add Draw --id t-2 --agent opus");
    let why = repository.ok("why t-2");
    assert!(why.contains("wants agent `opus`; no idle worker of `opus`"), "{why}");
    let edited = repository.adj("task edit t-1 --agent opus");
    assert!(edited.stderr.contains("worker `A` goes on with `t-1`"), "{}", edited.stderr);
    repository.ok("kill A");
    repository.wait_task("t-2", "DONE");
    repository.go("t-1");
    repository.ok("retry t-1");
    repository.wait_task("t-1", "DONE");
    assert_eq!(repository.worked_on("t-1"), ["player", "opus"]);
    running.stop();
    assert_eq!(repository.adj("verify").code, 0);
}

/// A tree that waits for its reviewer.
fn in_review(name: &str, settings: &[(&str, &str)]) -> Repository {
    let repository = Repository::new(
        name,
        &scenario(&[&format!("{WRITE}, {{ write = \"kept.txt\", text = \"{{step}}\\n\" }}, {DONE}")]),
        &["t-1"],
    );
    repository.set(&[&[("review = \"auto\"", "review = \"human\"")], settings].concat());
    repository.adj("run --until-idle");
    assert_eq!(repository.task("t-1")["status"], "REVIEW");
    repository
}

impl Repository {
    /// `adj shell t-1 -- sh -c SCRIPT`.
    fn shell(&self, script: &str) -> Ran {
        let mut command = self.command("shell t-1 -- sh -c");
        command.arg(script).env("SECRET_OF_MINE", "x").output().expect("adj runs").into()
    }
}

/// The same walls as the agent's: the tree is there, and nothing else that matters.
#[test]
fn a_shell_in_a_tree_is_held_to_the_agents_sandbox() {
    let repository = in_review("way-shell", &[]);
    let ran = repository.shell("pwd; cat t-1.txt; git log --format=%s -1; echo new > mine.txt; exit 7");
    assert_eq!(ran.code, 7, "{}{}", ran.stdout, ran.stderr);
    let tree = repository.tree("A-t-1");
    assert_eq!(ran.stdout, format!("{}\n1\nDo t-1\n", tree.display()), "{}", ran.stderr);
    assert_eq!(repository.read(&tree.join("mine.txt")), "new\n");
    // It says where it is, and what it holds.
    assert!(ran.stderr.contains("t-1 is REVIEW") && ran.stderr.contains("agent/A-t-1"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the fleet leaves this tree alone until you exit"), "{}", ran.stderr);
    let state = repository.state("");
    for script in [
        format!("ls {}", state.display()),
        format!("cat {}", repository.state("token").display()),
        format!("echo x > {}/planted", repository.dir().display()),
        format!("echo x > {}/planted", repository.dir().join(".git").display()),
    ] {
        let ran = repository.shell(&script);
        assert_ne!(ran.code, 0, "{script}\n{}", ran.stdout);
        assert_eq!(ran.stdout, "", "{script}");
    }
    assert!(!repository.dir().join("planted").exists());
    let ran = repository.shell("env");
    assert!(
        ran.stdout.contains("ADJ_TASK=t-1\n") && !ran.stdout.contains("SECRET_OF_MINE"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("ADJ_TOKEN"), "{}", ran.stdout);
    // By the worker's name too; and a program that is not there is said.
    assert_eq!(repository.adj("shell A -- true").code, 0);
    let ran = repository.adj("shell t-1 -- no-such-program");
    assert!(ran.code == 127 && ran.stderr.contains("no-such-program"), "{}", ran.stderr);
    // Without a command it is the user's shell, which reads what is typed.
    let mut typed = repository
        .command("shell t-1")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("adj runs");
    typed.stdin.take().expect("a pipe").write_all(b"cat kept.txt\nexit 3\n").expect("it reads");
    let ended = typed.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stdout).as_ref()), (Some(3), "1\n"));
}

/// One at a time: no shell where the agent is at work, and no agent where a shell is open.
#[test]
fn a_shell_and_an_agent_are_never_in_a_tree_together() {
    let text = format!(
        "[[scenario]]\ntask = \"t-1\"\n[[scenario.step]]\ndo = [ {WRITE}, {{ commit = \"Begin\" }}, {HOLDS} ]\n[[scenario.step]]\ndo = [ {{ run = 'cp open closed' }}, {DONE} ]\n"
    );
    let repository = Repository::new("way-turns", &text, &["t-1"]);
    let none = repository.adj("shell t-1 -- true");
    assert!(none.code == 3 && none.stderr.contains("has no tree"), "{}", none.stderr);
    let running = repository.start("run");
    repository.token_of("t-1");
    let refused = repository.adj("shell t-1 -- true");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("its agent's step is running in its tree"), "{}", refused.stderr);
    assert!(refused.stderr.contains("adj kill A"), "{}", refused.stderr);
    repository.ok("kill A");
    repository.go("t-1");
    wait("the work is saved", || (repository.adj("shell t-1 -- true").code == 0).then_some(()));
    let mut open = repository
        .command("shell t-1 -- sh -c")
        .arg("echo in > open; read line; echo left > open")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("adj runs");
    let file = repository.tree("A-t-1/open");
    wait("the shell is open", || (repository.read(&file) == "in\n").then_some(()));
    repository.ok("retry t-1");
    running.wait_for("t-1 waits: `adj shell` is open in its tree");
    assert!(!repository.tree("A-t-1/closed").exists());
    open.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    assert!(open.wait().expect("it ends").success());
    repository.wait_task("t-1", "DONE");
    assert_eq!(repository.git("show main:closed"), "left");
    let gone = repository.adj("shell t-1 -- true");
    assert!(gone.code == 3 && gone.stderr.contains("its tree is gone"), "{}", gone.stderr);
    running.stop();
}
