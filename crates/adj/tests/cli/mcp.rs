//! `adj mcp` as a client meets it: one JSON message a line, both revisions of the protocol, tools by role.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::owner::{Owner, REVIEW, raw};
use super::project::Repository;
use super::server::{Answer, Server};
use serde_json::{Value, json};

/// What every request of the revision without sessions brings.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A client, and the program that it speaks to.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    /// Every request says who it is from, and nothing was said before it.
    stateless: bool,
}

impl Client {
    fn start(mut command: Command, stateless: bool) -> Client {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Client { child, input, output, asked: 0, stateless }
    }

    /// The revision with a handshake.
    pub fn initialized(command: Command) -> Client {
        let mut client = Client::start(command, false);
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "adjutant", "{answer}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.asked += 1;
        if self.stateless {
            params["_meta"] = meta();
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line:?}"));
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer
    }

    pub fn tools(&mut self) -> BTreeSet<String> {
        let list = self.ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What a tool answers: whether it refused, its text, and its structure.
    pub fn call(&mut self, tool: &str, arguments: Value) -> (bool, String, Value) {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        (result["isError"] == true, text, result["structuredContent"].clone())
    }

    /// The end of the input ends it, and nothing else was printed.
    pub fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        let ended = self.child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), rest.as_str(), errors.as_str()), (Some(0), "", ""));
    }
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_persons_assistant_makes_and_reads_tasks_over_the_revision_with_a_handshake() {
    let here = Repository::new();
    let mut client = Client::initialized(here.command(&["mcp"]));
    let (refused, text, task) = client.call("create_task", json!({ "title": "First", "body": "Do it." }));
    assert!(!refused, "{text}");
    assert_eq!((&task["id"], &task["status"]), (&json!("t-1"), &json!("INBOX")));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), task, "the text is the same");
    let (_, _, list) = client.call("list_tasks", json!({ "status": ["INBOX"], "limit": 10 }));
    assert_eq!(list["items"][0]["title"], "First");
    assert_eq!(client.call("list_tasks", json!({ "status": ["DONE"] })).2["items"], json!([]));
    assert_eq!(client.call("show_task", json!({ "task": "t-1" })).2["body"], "Do it.");
    // What is changed by one door is seen by the other at once.
    assert!(here.ok(&["task", "ls"]).contains("First"));
    here.ok(&["task", "add", "second"]);
    let (refused, _, moved) = client.call("move_task", json!({ "task": "t-2", "to": "CANCELED" }));
    assert!(!refused && moved["task"]["status"] == "CANCELED", "{moved}");
    assert!(!client.call("why", json!({ "task": "t-1" })).0);
    assert_eq!(client.call("waiting", json!({})).2["items"], json!([]));
    assert_eq!(client.call("cost", json!({ "by": "day" })).2["by"], "day");
    client.end();
}

#[test]
fn a_refusal_says_what_was_wrong_what_is_allowed_and_what_to_do() {
    let here = Repository::new();
    here.ok(&["task", "add", "x"]);
    let mut client = Client::initialized(here.command(&["mcp"]));
    let (refused, text, problem) = client.call("move_task", json!({ "task": "t-1", "to": "REVIEW" }));
    assert!(refused && text.contains("cannot move from INBOX to REVIEW"), "{text}");
    assert!(text.contains("Allowed: ASSIGNED, CANCELED"), "{text}");
    assert_eq!(problem["allowedTransitions"], json!(["ASSIGNED", "CANCELED"]));
    let (refused, text, _) = client.call("show_task", json!({ "task": "t-9" }));
    assert!(refused && text.contains("there is no task `t-9`") && text.contains("What to do: "), "{text}");
    let (refused, text, _) = client.call("show_task", json!({ "task": "../up" }));
    assert!(refused && text.contains("is not a valid name"), "{text}");
    let (refused, text, _) = client.call("list_tasks", json!({ "moon": 1 }));
    assert!(refused && text.contains("unknown field `moon`"), "{text}");
    let (refused, text, _) = client.call("move_task", json!({ "task": "t-1", "to": "CANCELED", "moon": 1 }));
    assert!(refused && text.contains("unknown field `moon`"), "{text}");
    let (refused, text, _) = client.call("task_done", json!({}));
    assert!(refused && text.contains("role, human, may not use `task_done`"), "{text}");
    let answer = client.ask("tools/call", json!({ "name": "moon" }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    client.end();
}

#[test]
fn the_revision_without_sessions_is_spoken_from_the_first_line() {
    let here = Repository::new();
    let mut client = Client::start(here.command(&["mcp"]), true);
    let found = client.ask("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{found}");
    let list = client.ask("tools/list", json!({}));
    assert_eq!(list["result"]["cacheScope"], "private", "a list by role is the caller's own");
    assert!(list["result"]["ttlMs"].as_u64().unwrap() <= 60_000, "and soon out of date");
    assert!(!client.call("create_task", json!({ "title": "x" })).0);
    client.end();
}

#[test]
fn tools_are_listed_by_role_and_what_is_not_listed_is_refused() {
    let everyone = ["list_tasks", "show_task", "show_diff", "why"];
    let at_work =
        ["submit_plan", "ask", "report_progress", "request_approval", "submit_for_review", "task_done"];
    let channels = ["channel_read", "channel_post", "list_channels", "show_channel"];
    let person = [
        &everyone[..],
        &["create_task", "move_task", "approve", "deny", "answer", "waiting", "cost"],
        &channels,
    ];
    let intern = [&everyone[..], &at_work[..]];
    let lead = [&everyone[..], &at_work[..], &["create_task", "move_task", "approve", "deny"]];
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.ok(&["spawn", "A"]);
    here.ok(&["assign", "A", "c-1"]);
    let mut client = Client::initialized(here.command(&["mcp"]));
    assert_eq!(client.tools(), names(&person.concat()));
    client.end();
    for (role, expected) in [("intern", intern.concat()), ("lead", lead.concat())] {
        let owner = Owner::start_with(&here, &["--mint", &format!("coder:{role}:c-1.1")]);
        let mut command = here.command(&["mcp"]);
        command.env("ADJ_TOKEN", owner.token.as_ref().unwrap());
        let mut client = Client::initialized(command);
        assert_eq!(client.tools(), names(&expected), "{role}");
        let (refused, text, _) = client.call("waiting", json!({}));
        assert!(refused && text.contains(&format!("role, {role}, may not use `waiting`")), "{text}");
        let (refused, text, _) = client.call("task_done", json!({}));
        assert!(refused && text.contains("no step under way"), "{text}");
        let (refused, _, own) = client.call("show_task", json!({}));
        assert!(!refused && own["id"] == "c-1", "without a name it is its own: {own}");
        client.end();
    }
    let mut command = here.command(&["mcp"]);
    let mut client = Client::initialized({
        command.env("ADJ_TOKEN", "0".repeat(64));
        command
    });
    let (refused, text, _) = client.call("list_tasks", json!({}));
    assert!(refused && text.contains("ADJ_TOKEN is not a token"), "{text}");
    client.end();
}

#[test]
fn what_is_no_client_is_told_so_and_an_empty_input_ends_it() {
    let here = Repository::new();
    let ran = super::Ran::from(here.command(&["mcp"]).stdin(Stdio::null()).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
}

/// An agent that Adjutant did not launch, with a token by its name.
#[test]
fn an_agent_outside_reports_asks_and_is_done_by_the_tools() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.ok(&["task", "assign", "c-1", "coder"]);
    here.ok(&["task", "move", "c-1", "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    let server = Server::start(&here, &[]);
    let made = here.json(&["token", "create", "--name", "coder", "--role", "specialist"]);
    let token = made["token"].as_str().unwrap();
    let mut command = here.command(&["mcp"]);
    command.env("ADJ_TOKEN", token);
    let mut client = Client::initialized(command);
    let (refused, text, _) = client.call("task_done", json!({}));
    assert!(refused && text.contains("no active run"), "{text}");

    let run = server.ask("POST /api/v1/runs", token, &json!({"task": "c-1", "prompt": "do it"}));
    assert_eq!(run.status, 201, "{}", run.text);
    let call = json!({"id": "call-1", "tool": "Edit", "input": {}, "status": "pending"});
    let step = json!({"type": "STEP", "turn": 1, "toolCalls": [call]});
    assert_eq!(server.ask("POST /api/v1/runs/c-1.1/events", token, &step).status, 200);
    let (refused, text, _) = client.call("report_progress", json!({ "text": "Half of it." }));
    assert!(!refused, "{text}");
    assert!(here.ok(&["task", "show", "c-1"]).contains("Half of it."));

    let answers = std::thread::scope(|scope| {
        let asks = scope.spawn(|| client.call("ask", json!({ "question": "Which way?" })));
        // The question is the first of the log's requests, and waits in it before the call does.
        let open = || {
            here.json(&["waiting"])
                .as_array()
                .unwrap()
                .iter()
                .find_map(|item| item["request"].as_str().map(str::to_owned))
        };
        let question = std::iter::repeat_with(open).flatten().next().unwrap();
        here.ok(&["answer", &question, "Left."]);
        asks.join().unwrap()
    });
    assert_eq!((answers.0, answers.1.as_str()), (false, "Left."));
    let (refused, text, _) = client.call("submit_for_review", json!({ "summary": "All is there." }));
    assert!(!refused && text.contains("moving the task to REVIEW"), "{text}");
    let run = server.ask("GET /api/v1/runs/c-1.1", token, &Value::Null).json();
    assert_eq!(run["state"], "completed");
    client.end();
}

/// Somebody who speaks the revision with sessions over HTTP, each request over a connection of its own.
struct Visitor<'s> {
    server: &'s Server,
    token: String,
}

impl Visitor<'_> {
    fn new<'s>(here: &Repository, server: &'s Server, name: &str) -> Visitor<'s> {
        let made = here.json(&["token", "create", "--name", name, "--role", "person"]);
        Visitor { server, token: made["token"].as_str().unwrap().to_owned() }
    }

    fn head(&self, method: &str, session: Option<&str>) -> String {
        let session = session.map(|id| format!("\nMcp-Session-Id: {id}")).unwrap_or_default();
        format!(
            "{method} /mcp HTTP/1.1\nHost: {}\nAuthorization: Bearer {}\nContent-Type: application/json\n\
             Accept: application/json, text/event-stream\nMCP-Protocol-Version: 2025-11-25{session}",
            self.server.host(),
            self.token
        )
    }

    fn post(&self, session: Option<&str>, message: &Value) -> Answer {
        let body = message.to_string();
        let head = format!("{}\nContent-Length: {}", self.head("POST", session), body.len());
        self.server.raw(&head, body.as_bytes())
    }

    /// Begins a session.
    fn begin(&self) -> String {
        let about = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
        let answer = self.post(None, &hello);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let session = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{}", answer.text)).to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(Some(&session), &ready).status, 202);
        session
    }

    fn lists_tools(&self, session: Option<&str>) -> Answer {
        self.post(session, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }))
    }

    #[track_caller]
    fn is_answered(&self, session: Option<&str>) {
        let answer = self.lists_tools(session);
        assert!(answer.status == 200 && answer.text.contains("create_task"), "{}", answer.text);
    }

    #[track_caller]
    fn finds_none(&self, session: &str) {
        let answer = self.lists_tools(Some(session));
        assert!(answer.status == 404 && answer.text.contains("begin another"), "{}", answer.text);
    }
}

#[test]
fn a_session_is_its_callers_alone_until_it_is_ended_and_nothing_needs_one() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let (ann, bob) = (Visitor::new(&here, &server, "ann"), Visitor::new(&here, &server, "bob"));
    let session = ann.begin();
    ann.is_answered(Some(&session));
    ann.is_answered(None);
    bob.finds_none(&session);
    bob.finds_none("made-up");
    assert_eq!(server.raw(&bob.head("DELETE", Some(&session)), b"").status, 404);
    ann.is_answered(Some(&session));
    assert_eq!(server.raw(&ann.head("DELETE", Some(&session)), b"").status, 202);
    ann.finds_none(&session);
}

/// Whoever begins one after the other loses its own, and never somebody else's.
#[test]
fn of_too_many_sessions_the_one_ends_that_its_caller_has_used_longest_ago() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let (ann, bob) = (Visitor::new(&here, &server, "ann"), Visitor::new(&here, &server, "bob"));
    let of_bob = bob.begin();
    let (first, second) = (ann.begin(), ann.begin());
    for _ in 4..=64 {
        ann.begin();
    }
    ann.is_answered(Some(&first));
    let last = ann.begin();
    ann.finds_none(&second);
    ann.is_answered(Some(&first));
    ann.is_answered(Some(&last));
    bob.is_answered(Some(&of_bob));
}

/// Such a stream has no end of its own: a server that stops ends it whole, and does not cut it off.
#[test]
fn who_listens_in_a_session_is_told_when_the_server_stops() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let ann = Visitor::new(&here, &server, "ann");
    let session = ann.begin();
    let mut stream = TcpStream::connect(server.host()).unwrap();
    let head = ann.head("GET", Some(&session)).replace('\n', "\r\n");
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("retry:")), "it listens");
    Command::new("kill").arg(server.id().to_string()).status().unwrap();
    let rest: Vec<String> = lines.collect();
    assert_eq!(rest[rest.len() - 2..], ["0", ""], "{rest:?}");
}

fn token(here: &Repository, name: &str, role: &str) -> String {
    here.ok(&["token", "create", "--name", name, "--role", role, "--quiet"]).trim().to_owned()
}

/// An agent from outside that is connected: a client with its own token.
fn outside(here: &Repository, name: &str, token: &str) -> Client {
    let head = format!(
        "POST /api/v1/agents/{name}/connect HTTP/1.1\nAuthorization: Bearer {token}\nContent-Type: application/json\nContent-Length: 2"
    );
    assert_eq!(raw(here, &head, b"{}").status, 200);
    let mut command = here.command(&["mcp"]);
    command.env("ADJ_TOKEN", token);
    Client::initialized(command)
}

/// Over standard input and output and over HTTP: what a reader is offered changes nothing, and what it calls is refused.
#[test]
fn a_readers_token_is_offered_only_the_tools_that_read() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    let server = Server::start(&here, &[]);
    let reader = token(&here, "rea", "reader");
    let reading = names(&[
        "list_tasks",
        "show_task",
        "show_diff",
        "channel_read",
        "list_channels",
        "show_channel",
        "why",
        "waiting",
        "cost",
    ]);
    let mut command = here.command(&["mcp"]);
    command.env("ADJ_TOKEN", &reader);
    let mut client = Client::initialized(command);
    assert_eq!(client.tools(), reading);
    for (tool, input) in [
        ("create_task", json!({ "title": "y" })),
        ("move_task", json!({ "task": "c-1", "to": "CANCELED" })),
        ("approve", json!({ "task": "c-1" })),
        ("deny", json!({ "task": "c-1", "note": "no" })),
        ("answer", json!({ "question": "r1", "answer": "no" })),
        ("channel_post", json!({ "channel": "talk", "text": "hello" })),
    ] {
        let (refused, text, _) = client.call(tool, input);
        assert!(refused && text.contains("this token is for reading"), "{tool}: {text}");
    }
    let (refused, text, shown) = client.call("show_task", json!({ "task": "c-1" }));
    assert!(!refused && shown["allowedTransitions"] == json!([]), "{text}");
    client.end();
    let visitor = Visitor { server: &server, token: reader };
    let listed = visitor.lists_tools(None);
    let list =
        listed.text.lines().find_map(|line| line.strip_prefix("data: {")).map(|rest| format!("{{{rest}"));
    let list: Value = serde_json::from_str(&list.unwrap_or(listed.text.clone())).unwrap();
    let offered = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    let offered: BTreeSet<String> =
        offered.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(offered, reading);
    let call = json!({ "name": "create_task", "arguments": { "title": "y" } });
    let refused =
        visitor.post(None, &json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call }));
    assert!(refused.text.contains("this token is for reading"), "{}", refused.text);
    assert_eq!(here.json(&["task", "ls"]).as_array().unwrap().len(), 1, "nothing was changed");
}

/// What the settings, the run machine and the dependencies say holds an agent from outside by tools as over HTTP.
#[test]
fn the_limits_of_an_agent_outside_hold_by_tools_too() {
    let here = Repository::new();
    here.configure("[agents.coder]\nmax_turns = 2\nallowed_tools = [\"Read\"]\n");
    for (id, on) in [("c-1", None), ("c-2", None), ("c-3", Some("c-2"))] {
        here.ok(&["task", "add", "x", "--id", id]);
        if let Some(on) = on {
            here.ok(&["task", "dep", "add", id, on]);
        }
        here.ok(&["task", "assign", id, "coder"]);
    }
    for id in ["c-1", "c-2"] {
        here.ok(&["task", "move", id, "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    }
    let (coder, lena) = (token(&here, "coder", "specialist"), token(&here, "lena", "lead"));
    let server = Server::start(&here, &[]);
    let mut client = outside(&here, "coder", &coder);
    // Without a run it has nothing to speak of.
    let (refused, text, _) = client.call("task_done", json!({}));
    assert!(refused && text.contains("run"), "{text}");
    let open = |task: &str, options: Value| {
        server.ask(
            "POST /api/v1/runs",
            &coder,
            &json!({ "task": task, "prompt": "do it", "options": options }),
        )
    };
    let run = open("c-1", json!({ "maxTurns": 200, "allowedTools": ["Bash", "Read"] }));
    assert!(run.status == 201 && run.json()["maxTurns"] == 2, "it raises no limit of its own: {}", run.text);
    assert_eq!(open("c-2", json!({})).json()["code"], "AGENT_ALREADY_RUNNING");
    let (refused, text, _) = client.call("report_progress", json!({ "text": "so far" }));
    assert!(!refused, "{text}");
    let (refused, text, _) = client.call("report_progress", json!({ "task": "c-2", "text": "so far" }));
    assert!(!refused, "it is assigned to it: {text}");
    let (refused, text, _) = client.call("task_done", json!({ "run": "c-2.1" }));
    assert!(
        refused && text.contains("not an active run of the caller"),
        "it speaks for its own run alone: {text}"
    );
    let step = |turn: u32, tool: &str| {
        let call = json!({ "id": format!("{tool}-{turn}"), "tool": tool, "input": { "n": turn }, "status": "pending" });
        let event = json!({ "type": "STEP", "turn": turn, "toolCalls": [call] });
        server.ask("POST /api/v1/runs/c-1.1/events", &coder, &event).json()
    };
    assert_eq!(step(1, "Bash")["code"], "AGENT_TOOL_NOT_ALLOWED", "the settings allow Read alone");
    let first = step(1, "Read");
    assert_eq!(first["currentTurn"], 1, "{first}");
    let limit = step(2, "Read");
    assert_eq!(
        (&limit["code"], &limit["currentTurn"]),
        (&json!("AGENT_TURN_LIMIT_EXCEEDED"), &json!(2)),
        "{limit}"
    );
    // Paused at its limit, it neither completes by a tool nor asks for more there.
    let (refused, text, _) = client.call("task_done", json!({}));
    assert!(refused, "a run at its limit waits for a person: {text}");
    client.end();
    // What an open dependency holds is held for a lead's tool too.
    here.ok(&["task", "add", "y", "--id", "c-4", "--depends-on", "c-2"]);
    let mut lead = outside(&here, "lena", &lena);
    let (refused, text, _) =
        lead.call("move_task", json!({ "task": "c-4", "to": "ASSIGNED", "assigneeIds": ["lena"] }));
    assert!(refused && text.contains("`c-2` is not DONE yet"), "{text}");
    let plan = json!({ "bullets": ["a", "b", "c"] });
    let (refused, text, _) =
        lead.call("move_task", json!({ "task": "c-3", "to": "IN_PROGRESS", "workPlan": plan }));
    assert!(refused, "{text}");
    lead.end();
}

#[test]
fn an_agent_in_a_channel_reads_speaks_waits_and_ends_its_turn_by_tools() {
    let here = Repository::new();
    let (anna, ben) = (token(&here, "anna", "specialist"), token(&here, "ben", "intern"));
    let _owner = Owner::start(&here);
    let (mut anna, mut ben) = (outside(&here, "anna", &anna), outside(&here, "ben", &ben));
    assert!(!anna.tools().contains("channel_post"), "it is in no channel");
    let (refused, text, _) = anna.call("channel_read", json!({}));
    assert!(refused && text.contains("for agents that are in a channel"), "{text}");
    here.ok(&["channel", "create", "talk", "--topic", "Tea?", "--add", "anna", "ben"]);
    let of_channels =
        names(&["channel_read", "channel_post", "turn_complete", "turn_wait", "review_decision"]);
    assert!(anna.tools().is_superset(&of_channels));
    assert_eq!(anna.call("channel_read", json!({})).1, "ann: Tea?");
    let (refused, text, _) = ben.call("channel_post", json!({ "text": "No." }));
    assert!(refused && text.contains("`anna` has it"), "{text}");
    let (refused, text, _) = anna.call("turn_wait", json!({ "reason": "the kettle" }));
    assert!(!refused && text.contains("You keep the turn"), "{text}");
    here.ok(&["turn", "resume", "talk"]);
    let (refused, text, _) = anna.call("turn_complete", json!({ "text": "Yes, please." }));
    assert!(!refused && text.contains("turn is over"), "{text}");
    assert_eq!(ben.call("channel_read", json!({ "channel": "talk" })).1, "ann: Tea?\nanna: Yes, please.");
    // Which of two is meant must be said, unless it has the turn in one of them.
    here.ok(&["channel", "create", "other", "--add", "ben"]);
    here.ok(&["channel", "create", "third", "--add", "anna"]);
    assert!(!ben.call("channel_post", json!({ "channel": "talk", "text": "Milk." })).0);
    assert_eq!(anna.call("channel_read", json!({})).2["items"], json!([]), "it has the turn in the third");
    let (refused, text, _) = ben.call("channel_post", json!({ "text": "Milk." }));
    assert!(refused && text.contains("you are in other, talk"), "{text}");
    let mut person = Client::initialized(here.command(&["mcp"]));
    assert!(!person.call("channel_post", json!({ "channel": "talk", "text": "Thanks." })).0);
    assert_eq!(person.call("show_channel", json!({ "channel": "talk" })).2["turn"]["agent"], "ben");
    assert_eq!(person.call("list_channels", json!({})).2["items"].as_array().unwrap().len(), 3);
    for client in [anna, ben, person] {
        client.end();
    }
}

#[test]
fn a_review_is_decided_in_its_channel_by_whoever_may_review_in_its_turn() {
    let here = Repository::new();
    let (anna, lena) = (token(&here, "anna", "intern"), token(&here, "lena", "lead"));
    let _owner = Owner::start(&here);
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.ok(&["task", "assign", "c-1", "coder"]);
    here.ok(&["task", "move", "c-1", "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    here.ok(&["task", "move", "c-1", "REVIEW", "--payload", REVIEW]);
    let (mut anna, mut lena) = (outside(&here, "anna", &anna), outside(&here, "lena", &lena));
    here.ok(&["review", "c-1", "--room", "looks", "--add", "anna", "--reviewer", "lena"]);
    assert_eq!(anna.call("channel_read", json!({})).1, "ann: Review of c-1: x");
    let (refused, text, _) = anna.call("show_diff", json!({ "task": "c-1" }));
    assert!(refused && !text.contains("may not"), "there is no work of it, and it may look: {text}");
    let changes = json!({ "approve": false, "note": "name the file" });
    assert!(anna.call("review_decision", changes.clone()).0, "an intern reviews nothing");
    assert!(lena.call("review_decision", changes.clone()).0, "it is not its turn");
    assert!(!anna.call("turn_complete", json!({})).0);
    let (refused, text, task) = lena.call("review_decision", changes);
    assert!(!refused && task["status"] == "IN_PROGRESS", "{text}");
    let history = here.ok(&["channel", "history", "looks"]);
    assert!(history.contains("c-1 is IN_PROGRESS now"), "{history}");
    assert_eq!(here.json(&["channel", "ls"]), json!([]), "what it was for is decided");
    anna.end();
    lena.end();
}
