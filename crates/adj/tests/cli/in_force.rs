//! The settings in force are the same for every way in: a command without a server, the socket, and an address.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::owner::REVIEW;
use super::project::Repository;
use super::server::Server;
use project::layout::Layout;
use project::settings::trust;
use serde_json::{Value, json};

/// A settings file with these limits of agent `tim`.
fn settings(max_turns: u32, more: &str) -> String {
    format!(
        "[agents.coder]\nrole = \"specialist\"\n[agents.tim]\nmax_turns = {max_turns}\nallowed_tools = [\"Read\"]\n\
         [policy]\nmax_review_cycles = 1\n{more}"
    )
}

impl Repository {
    pub fn configure(&self, text: &str) {
        std::fs::write(self.0.join("adjutant.toml"), text).unwrap();
    }

    /// A task that `agent` may start.
    pub fn task_for(&self, id: &str, agent: &str) {
        self.ok(&["task", "add", "x", "--id", id]);
        self.ok(&["task", "assign", id, agent]);
        self.ok(&["task", "move", id, "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    }

    /// A token of somebody.
    pub fn token_for(&self, name: &str, role: &str) -> String {
        let made = self.json(&["token", "create", "--name", name, "--role", role]);
        made["token"].as_str().unwrap().to_owned()
    }

    /// The status that a task comes to after so many reviews that asked for changes.
    fn reviewed(&self, id: &str, times: u32) -> Value {
        for time in 0..times {
            self.ok(&["task", "move", id, "REVIEW", "--payload", REVIEW]);
            self.ok(&["task", "move", id, "IN_PROGRESS", "--feedback", &format!("again {time}")]);
        }
        self.json(&["task", "show", id])["status"].clone()
    }
}

/// `max_review_cycles = 1`: a command without a server, the socket of a server, and its address.
#[test]
fn settings_are_in_force_for_commands_without_a_server_and_with_one() {
    let here = Repository::new();
    here.configure(&settings(2, ""));
    here.task_for("c-1", "coder");
    assert_eq!(here.reviewed("c-1", 1), "IN_PROGRESS");
    assert_eq!(here.reviewed("c-1", 1), "BLOCKED", "one review is allowed, and this was the second");
    // As they are at the next command, without anybody who watches the file.
    here.configure(&settings(2, "").replace("max_review_cycles = 1", "max_review_cycles = 0"));
    here.task_for("c-2", "coder");
    assert_eq!(here.reviewed("c-2", 1), "BLOCKED");

    here.configure(&settings(2, ""));
    let server = Server::start(&here, &[]);
    here.task_for("c-3", "coder");
    assert_eq!(here.reviewed("c-3", 2), "BLOCKED");
    let review: Value = serde_json::from_str(REVIEW).unwrap();
    let moved = |body: &Value| {
        let answer = server.post("/api/v1/tasks/c-4/transitions", body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["task"]["status"].clone()
    };
    here.task_for("c-4", "coder");
    let handed_in = |mut review: Value| {
        review["to"] = json!("REVIEW");
        review
    };
    for expected in ["IN_PROGRESS", "BLOCKED"] {
        moved(&handed_in(review.clone()));
        assert_eq!(moved(&json!({"to": "IN_PROGRESS", "feedback": "again"})), expected);
    }
}

/// A run that `tim` opens over HTTP, and how many turns it has.
fn turns(here: &Repository, server: &Server, token: &str, task: &str) -> Value {
    here.task_for(task, "tim");
    let options = json!({"maxTurns": 200, "allowedTools": ["Read", "Bash"]});
    let open = json!({"task": task, "prompt": "do it", "options": options});
    let opened = server.ask("POST /api/v1/runs", token, &open);
    assert_eq!(opened.status, 201, "{}", opened.text);
    let call = json!({"id": "1", "tool": "Bash", "input": {"command": "ls"}, "status": "pending"});
    let step = json!({"type": "STEP", "turn": 1, "toolCalls": [call]});
    let run = opened.json()["id"].as_str().unwrap().to_owned();
    let refused = server.ask(&format!("POST /api/v1/runs/{run}/events"), token, &step);
    assert_eq!(refused.json()["code"], "AGENT_TOOL_NOT_ALLOWED", "{}", refused.text);
    let abort = json!({"type": "ABORT", "reason": "seen enough"});
    assert_eq!(server.ask(&format!("POST /api/v1/runs/{run}/events"), token, &abort).status, 200);
    opened.json()["maxTurns"].clone()
}

/// What a server has in force after an edit, with an invalid file, without a file, before and after trust, and after a restart;
/// and what it says of the file.
#[test]
fn a_server_applies_the_settings_when_they_change_and_shows_what_waits() {
    let here = Repository::new();
    here.configure(&settings(2, ""));
    let server = Server::start(&here, &[]);
    let token = here.token_for("tim", "specialist");
    let config = |server: &Server| {
        let config = server.get("/api/v1/config").json();
        let reason = config["waiting"]["reason"].as_str().map(str::to_owned);
        (config["settings"]["agents"]["tim"]["max_turns"].as_u64().unwrap(), reason)
    };
    let waits = |reason: &str| Some(reason.to_owned());
    assert_eq!((turns(&here, &server, &token, "c-1"), config(&server)), (json!(2), (2, None)));
    here.configure(&settings(3, ""));
    assert_eq!((turns(&here, &server, &token, "c-2"), config(&server)), (json!(3), (3, None)));
    here.configure(&settings(4, "").replace("max_turns = 4", "max_turns = \"many\""));
    assert_eq!((turns(&here, &server, &token, "c-3"), config(&server)), (json!(3), (3, waits("invalid"))));
    let shown = here.adj(&["config", "show"]);
    assert!(shown.stderr.contains("previous settings stay in force"), "{}", shown.stderr);
    assert!(shown.stdout.contains("max_turns = 3"), "{}", shown.stdout);
    std::fs::remove_file(here.0.join("adjutant.toml")).unwrap();
    assert_eq!((turns(&here, &server, &token, "c-4"), config(&server)), (json!(3), (3, waits("gone"))));
    // It comes in with an agent's branch.
    let arrived = settings(9, "");
    trust::arrives(&Layout::new(&here.0), arrived.as_bytes()).unwrap();
    here.configure(&arrived);
    assert_eq!((turns(&here, &server, &token, "c-5"), config(&server)), (json!(3), (3, waits("untrusted"))));
    let waiting = server.get("/api/v1/config").json()["waiting"]["text"].clone();
    assert!(waiting.as_str().unwrap().contains("max_turns = 9"), "{waiting}");
    drop(server);
    let server = Server::start(&here, &[]);
    assert_eq!(turns(&here, &server, &token, "c-6"), json!(3), "a restart trusts nothing");
    here.ok(&["config", "trust"]);
    assert_eq!((turns(&here, &server, &token, "c-7"), config(&server)), (json!(9), (9, None)));
    drop(server);
    // A command alone trusts too, and the next server begins with it.
    let arrived = settings(7, "");
    trust::arrives(&Layout::new(&here.0), arrived.as_bytes()).unwrap();
    here.configure(&arrived);
    here.ok(&["config", "trust"]);
    let server = Server::start(&here, &[]);
    assert_eq!((turns(&here, &server, &token, "c-8"), config(&server)), (json!(7), (7, None)));
}

/// Whoever types a command that follows the settings is told that they are not those of the file.
#[test]
fn a_settings_file_that_is_invalid_is_named_by_every_command_that_would_use_it() {
    let here = Repository::new();
    std::fs::write(here.0.join("adjutant.toml"), "[fleet]\nworkerz = 3\n").unwrap();
    std::fs::write(here.0.join("login.md"), "# Login\n").unwrap();
    for line in [
        "architect",
        "spec submit login.md",
        "task add x",
        "board",
        "board --json",
        "agent ls",
        "channel create talk",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran: crate::Ran = here.command(&words).output().unwrap().into();
        assert!(
            ran.stderr.contains("adjutant.toml is invalid") && ran.stderr.contains("workerz"),
            "{line}: {}",
            ran.stderr
        );
    }
    let quiet: crate::Ran = here.command(&["board", "--quiet"]).output().unwrap().into();
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
}
