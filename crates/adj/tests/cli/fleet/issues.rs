//! Issues of GitHub as tasks, by a `gh` of the test's own.

use super::{Ran, Repository};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// A repository with a `gh` that notes how it was called, and does this.
struct Tracker {
    repository: Repository,
}

impl Tracker {
    fn new(name: &str, script: &str) -> Tracker {
        let repository = Repository::new(name, "", &[]);
        let tracker = Tracker { repository };
        tracker.answers(script);
        tracker
    }

    fn answers(&self, script: &str) {
        let (repository, gh) = (&self.repository, self.repository.state("bin/gh"));
        let called = repository.state("called");
        let note = format!("pwd >> {0}; for word; do echo \"[$word]\"; done >> {0}", called.display());
        repository.write(&gh, &format!("#!/bin/sh\n{note}\n{script}\n"));
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(gh, executable).expect("it is there");
    }

    fn lists(&self, issues: &Value) {
        self.repository.write(&self.repository.state("issues.json"), &issues.to_string());
        self.answers(&format!("cat {}", self.repository.state("issues.json").display()));
    }

    fn adj(&self, line: &str) -> Ran {
        let path = std::env::var("PATH").expect("there is a PATH");
        let path = format!("{}:{path}", self.repository.state("bin").display());
        self.repository.command(line).env("PATH", path).output().expect("adj runs").into()
    }

    fn task(&self, id: &str) -> Value {
        serde_json::from_str(&self.repository.ok(&format!("task show {id} --json"))).expect("JSON")
    }
}

fn issues() -> Value {
    json!([
        {
            "number": 12, "title": "Rows jump\u{1b}[2J\nwhen sorted", "body": "Twice:\r\n\tsort.\u{7}\n",
            "labels": [{"id": "x", "name": "help wanted"}, {"name": "Bug"}],
            "url": "https://github.example/o/r/issues/12"
        },
        {
            "number": 3, "title": "Sort by date", "body": "", "labels": [{"name": "enhancement"}],
            "url": "https://github.example/o/r/issues/3"
        },
    ])
}

#[test]
fn open_issues_become_tasks_once_with_their_text_type_and_address() {
    let tracker = Tracker::new("issues", "");
    tracker.lists(&issues());
    let ran = tracker.adj("task import --label ready --label ui --limit 7 --search sort");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert_eq!(
        ran.stdout,
        "gh-3  Sort by date\ngh-12  Rows jump [2J when sorted\n2 added, 0 already there\n"
    );
    let root = tracker.repository.dir().display();
    assert_eq!(
        tracker.repository.read(&tracker.repository.state("called")),
        format!(
            "{root}\n[issue]\n[list]\n[--state]\n[open]\n[--json]\n[number,title,body,labels,url]\n[--limit]\n[7]\n[--label]\n[ready]\n[--label]\n[ui]\n[--search]\n[sort]\n"
        )
    );
    let bug = tracker.task("gh-12");
    assert_eq!((&bug["type"], &bug["status"]), (&json!("bug"), &json!("INBOX")));
    assert_eq!(bug["body"], "Twice:\n\tsort.\n\nIssue: https://github.example/o/r/issues/12\n");
    let feature = tracker.task("gh-3");
    assert_eq!(feature["type"], "feature");
    assert_eq!(feature["body"], "Issue: https://github.example/o/r/issues/3\n");

    // A closed task stays what it was, however often its issue is seen.
    tracker.repository.ok("task cancel gh-3");
    let again: Value = serde_json::from_str(&tracker.adj("task import --json").stdout).expect("JSON");
    assert_eq!(again, json!({"added": [], "skipped": ["gh-3", "gh-12"], "failed": []}));
    assert_eq!(tracker.task("gh-3")["status"], "CANCELED");
}

#[test]
fn an_issue_that_is_too_long_keeps_no_other_out() {
    let tracker = Tracker::new("issues-long", "");
    let long = "x".repeat(70_000);
    tracker.lists(&json!([{"number": 1, "title": "Long", "body": long}, {"number": 2, "title": "Short"}]));
    let ran = tracker.adj("task import");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "gh-2  Short\n1 added, 0 already there\n"));
    assert!(
        ran.stderr.contains("gh-1: ") && ran.stderr.contains("longer than 65536 bytes"),
        "{}",
        ran.stderr
    );
    let ran = tracker.adj("task import --json");
    let told: Value = serde_json::from_str(&ran.stdout).expect("one document");
    assert_eq!((ran.code, &told["failed"][0]["id"]), (1, &json!("gh-1")));
}

#[test]
fn a_gh_that_is_missing_or_logged_out_is_named_with_what_to_do() {
    let tracker =
        Tracker::new("issues-none", "echo 'first run' >&2; echo 'please run: gh auth login' >&2; exit 4");
    let ran = tracker.adj("task import");
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""));
    assert!(
        ran.stderr.contains("`gh issue list` failed: please run: gh auth login\nhint: `gh auth status`"),
        "{}",
        ran.stderr
    );
    tracker.answers("echo '<html>'");
    let ran = tracker.adj("task import");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("error: the list of issues is invalid: expected value"), "{}", ran.stderr);
    let ran: Ran =
        tracker.repository.command("task import").env("PATH", "/nowhere").output().expect("adj runs").into();
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("`gh` is not on the PATH\nhint: install the GitHub CLI"), "{}", ran.stderr);
}

#[test]
fn issues_of_any_tracker_are_read_from_standard_input() {
    let tracker = Tracker::new("issues-stdin", "exit 1");
    let mut child = tracker.repository.command("task import -");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("adj runs");
    let list = br#"[{"number": 9, "title": "From elsewhere", "labels": ["chore"]}]"#;
    child.stdin.take().expect("an input").write_all(list).expect("it reads");
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "gh-9  From elsewhere\n1 added, 0 already there\n"));
    assert_eq!(tracker.task("gh-9")["type"], "chore");
}
