//! Commands on a project: the real binary, in a git repository of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Ran;
use serde_json::Value;

/// A repository that is gone when the test is.
pub struct Repository(pub PathBuf);

impl Repository {
    pub fn new() -> Repository {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("adj-cli-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let made = Command::new("git").args(["init", "-q"]).current_dir(&path).status().unwrap();
        assert!(made.success());
        Repository(path.canonicalize().unwrap())
    }

    /// A file of Adjutant's own state.
    pub fn state(&self, path: &str) -> PathBuf {
        project::layout::Layout::new(&self.0).state().join(path)
    }

    pub fn log(&self) -> PathBuf {
        self.state("adjutant.db")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = super::command("");
        command.args(arguments).current_dir(&self.0).env("ADJ_USER", "ann").stdin(Stdio::null());
        command
    }

    pub fn adj(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// What is printed, where it must go well.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.adj(arguments);
        assert!(ran.code == 0, "{arguments:?} ended with {}: {}{}", ran.code, ran.stdout, ran.stderr);
        ran.stdout
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<_> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&arguments)).unwrap()
    }

    /// What it ends with and says, where it must not go well.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str], code: i32, said: &str) {
        let ran = self.adj(arguments);
        assert!(
            ran.code == code && ran.stderr.contains(said) && ran.stdout.is_empty(),
            "{arguments:?} ended with {}: {}{}",
            ran.code,
            ran.stdout,
            ran.stderr
        );
    }

    pub fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.log()).unwrap()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_task_is_added_listed_moved_and_shown() {
    let here = Repository::new();
    assert_eq!(here.ok(&["task", "ls"]), "no such tasks; `adj task ls --all` lists all that there are\n");
    let id = here.ok(&["task", "add", "Fix the\u{1b}[31m door", "--body", "It squeaks.\nLoudly.", "-p", "1"]);
    assert_eq!(id, "t-1\n");
    here.ok(&["task", "add", "Paint it", "--id", "c-2", "--depends-on", "t-1"]);
    here.ok(&["task", "assign", "t-1", "coder"]);
    assert_eq!(here.ok(&["task", "comment", "t-1", "the left one"]), "t-1  ASSIGNED\n");
    super::snapshot("task-ls.txt", &here.ok(&["task", "ls"]));
    super::snapshot("board.txt", &here.ok(&["board"]));

    let plan = ["--plan", "oil", "--plan", "test", "--plan", "close"];
    let moved = [&["task", "move", "t-1", "in_progress"][..], &plan].concat();
    assert_eq!(here.ok(&moved), "t-1  IN_PROGRESS\n");
    let shown = here.json(&["task", "show", "t-1"]);
    assert_eq!(shown["title"], "Fix the\u{1b}[31m door");
    assert_eq!(shown["comments"][0]["by"], "human:ann");
    assert_eq!(shown["workPlan"]["bullets"][0], "oil");
    let text = here.ok(&["task", "show", "t-1"]);
    assert!(text.contains("  It squeaks.\n  Loudly.\n") && !text.contains('\u{1b}'), "{text}");

    here.ok(&["task", "edit", "t-1", "--title", "Fix the door"]);
    here.ok(&["task", "dep", "rm", "c-2", "t-1"]);
    here.ok(&["task", "dep", "add", "c-2", "t-1"]);
    assert_eq!(here.ok(&["task", "cancel", "t-1"]), "t-1  CANCELED\n");
    let ids = |list: Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(here.json(&["task", "ls"])), ["c-2"]);
    assert_eq!(ids(here.json(&["task", "ls", "--all"])), ["t-1", "c-2"]);
    assert_eq!(ids(here.json(&["task", "ls", "--status", "CANCELED"])), ["t-1"]);
}

#[test]
fn what_a_rule_refuses_bad_input_and_what_is_not_there_end_differently() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.fails(&["task", "add", ""], 2, "a task needs a title");
    here.fails(&["task", "add", "x", "--id", "c-1"], 3, "there is a task `c-1` already");
    here.fails(&["task", "add", "x", "--id", "../up"], 2, "not a valid name");
    here.fails(
        &["task", "add", "x", "--type", "poem"],
        2,
        "possible values: bug, feature, task, epic, chore",
    );
    here.fails(&["task", "add", "x", "--priority", "9"], 2, "9 is not in 0..=4");
    here.fails(&["task", "move", "c-1", "LIMBO"], 2, "there is no status `LIMBO`");
    here.fails(&["task", "move", "c-1", "DONE"], 3, "allowed: ASSIGNED, CANCELED");
    here.fails(&["task", "move", "c-1", "ASSIGNED", "--payload", "{\"a\""], 2, "--payload is invalid: EOF");
    here.fails(&["task", "move", "c-1", "ASSIGNED", "--payload", "[]"], 2, "it is not an object");
    here.fails(&["task", "move", "c-1", "ASSIGNED", "--payload", "{\"role\":1}"], 2, "unknown field `role`");
    here.fails(&["task", "ls", "--status", "open"], 2, "there is no status `open`");
    here.fails(&["task", "show", "c-9"], 4, "hint: `adj task ls` lists the tasks");
    here.fails(&["task", "dep", "add", "c-1", "c-1"], 3, "this would be a cycle");
    here.fails(&["task", "comment", "c-9", "x"], 4, "there is no task or worker `c-9`");
    here.fails(&["spawn", "W", "--agent", "nobody"], 4, "the configuration has: coder");
    here.fails(&["approve", "q1"], 4, "there is no question, task or worker `q1`");
    here.fails(
        &["cost", "--by", "moon"],
        2,
        "`--by` cannot be `moon`: use one of `task`, `step`, `agent`, `day`, `worker`, `run`",
    );
    here.fails(&["why", "c-9"], 4, "there is no task or worker `c-9`");
    here.fails(&["ps", "--server", "ftp://x"], 5, "cannot reach `ftp://x`");
    let problem = here.adj(&["task", "move", "c-1", "DONE", "--json"]);
    let document: Value = serde_json::from_str(&problem.stdout).unwrap();
    assert_eq!(document["allowedTransitions"], serde_json::json!(["ASSIGNED", "CANCELED"]));
    assert_eq!((problem.code, &document["status"]), (3, &serde_json::json!(409)));
    assert_eq!(here.json(&["task", "ls", "--all"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_command_needs_a_repository_and_finds_it_from_below_and_from_a_worktree() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    let below = here.0.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let listed: Ran = here.command(&["task", "ls"]).current_dir(&below).output().unwrap().into();
    assert!(listed.stdout.contains("c-1"), "{}", listed.stderr);
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(&here.0);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(git(&["status", "--porcelain"]), "", "nothing of ours shows up in git");
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["worktree", "add", "-q", "linked"]);
    let linked = here.0.join("linked");
    let listed: Ran = here.command(&["task", "ls"]).current_dir(&linked).output().unwrap().into();
    assert!(listed.stdout.contains("c-1"), "{}", listed.stderr);

    let outside: Ran = here.command(&["task", "ls"]).current_dir("/").output().unwrap().into();
    assert_eq!(outside.code, 4);
    assert!(outside.stderr.contains("is not in a git repository"), "{}", outside.stderr);
    let named: Ran = here
        .command(&["task", "ls", "--project", below.to_str().unwrap()])
        .current_dir("/")
        .output()
        .unwrap()
        .into();
    assert!(named.stdout.contains("c-1"), "{}", named.stderr);
}

#[test]
fn a_key_makes_a_command_that_is_run_twice_happen_once() {
    let here = Repository::new();
    let add = ["task", "add", "x", "--key", "k1"];
    assert_eq!(here.ok(&add), here.ok(&add));
    here.fails(&["task", "add", "y", "--key", "k1"], 3, "this idempotency key was used for another request");
    assert_eq!(here.json(&["task", "ls"]).as_array().unwrap().len(), 1);
}

#[test]
fn history_shows_transitions_in_the_one_form_and_everything_where_asked() {
    let here = Repository::new();
    assert_eq!(here.ok(&["history"]), "nothing has happened yet\n");
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.ok(&["task", "assign", "c-1", "coder"]);
    assert_eq!(here.ok(&["spawn"]), "A  idle\n");
    assert_eq!(here.ok(&["spawn", "2"]), "B  idle\nC  idle\n");
    let history = here.json(&["history", "c-1"]);
    let line = history[0].as_object().unwrap();
    let names: Vec<_> = line.keys().map(String::as_str).collect();
    assert_eq!(names, ["timestamp", "event", "machine", "agentId", "from", "to", "trigger", "id", "actor"]);
    assert_eq!((&line["agentId"], &line["id"]), (&"coder".into(), &"c-1".into()));
    assert_eq!(line["actor"], "human:ann");
    let told = here.ok(&["history"]);
    assert!(told.starts_with("TIME (") && told.contains("c-1 was added: x"), "{told}");
    assert_eq!((&line["event"], &line["to"]), (&"state_transition".into(), &"ASSIGNED".into()));
    assert_eq!(here.json(&["history", "A"])[0]["machine"], "worker");
    assert_eq!(here.json(&["history"]).as_array().unwrap().len(), 4);
    let all = here.json(&["history", "--all"]);
    assert_eq!(all[0]["kind"], "writer_seen");
    assert!(here.ok(&["history", "--all"]).starts_with("SEQ  TIME"));
    here.fails(&["history", "nobody"], 4, "there is no task, worker, run, spec, request or channel `nobody`");
    assert_eq!(here.json(&["ps"])[0]["status"], "idle");
    let why = here.ok(&["why", "c-1"]);
    assert!(why.contains("✗ fleet: the fleet is not running"), "{why}");
    assert_eq!(here.ok(&["queue"]), "nothing waits to land\n");
    assert_eq!(here.ok(&["approvals"]), "nothing waits for a decision\n");
    let cost = here.ok(&["cost", "--by", "agent"]);
    assert!(cost.lines().any(|row| row.starts_with("total") && row.ends_with("$0.00")), "{cost}");
}

#[test]
fn a_question_is_decided_once() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.ok(&["task", "assign", "c-1", "coder"]);
    here.ok(&["task", "move", "c-1", "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    here.ok(&["task", "move", "c-1", "NEEDS_APPROVAL", "--cause", "escalation", "--feedback", "May I?"]);
    let id = here.json(&["approvals"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(here.ok(&["approve", &id, "--note", "yes"]), format!("{id}  approved\n"));
    here.fails(&["deny", &id], 3, "was decided already: approved by human:ann");
    assert_eq!(here.json(&["task", "show", "c-1"])["status"], "IN_PROGRESS");
    assert_eq!(here.json(&["approvals", "--all"])[0]["decided"]["note"], "yes");
}

pub fn ids(here: &Repository) -> Vec<String> {
    let list = here.json(&["task", "ls", "--all"]);
    list.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}
