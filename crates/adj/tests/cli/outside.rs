//! An agent that Adjutant did not launch reports its own life over the socket: the whole of the run machine from outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::owner::{Answer, Owner, raw};
use super::project::Repository;
use super::server::{self, Server};
use serde_json::{Value, json};

/// A task that is given to `coder`, and what that agent asks with its own token.
struct Outside {
    here: Repository,
    _owner: Owner,
    token: String,
}

impl Outside {
    fn new() -> Outside {
        let here = Repository::new();
        let made = here.json(&["token", "create", "--name", "coder", "--role", "specialist"]);
        let _owner = Owner::start(&here);
        let token = made["token"].as_str().unwrap().to_owned();
        here.ok(&["task", "add", "x", "--id", "c-1"]);
        here.ok(&["task", "assign", "c-1", "coder"]);
        here.ok(&["task", "move", "c-1", "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
        Outside { here, _owner, token }
    }

    fn ask(&self, line: &str, body: &Value) -> Answer {
        let token = &self.token;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{line} HTTP/1.1\nAuthorization: Bearer {token}\nContent-Type: application/json\nContent-Length: {}",
            body.len()
        );
        raw(&self.here, &head, body.as_bytes())
    }

    fn open(&self, options: Value) -> Answer {
        self.ask("POST /api/v1/runs", &json!({"task": "c-1", "prompt": "do it", "options": options}))
    }

    fn tell(&self, event: Value) -> Answer {
        self.ask("POST /api/v1/runs/c-1.1/events", &event)
    }

    fn get(&self, path: &str) -> Value {
        self.ask(&format!("GET /api/v1{path}"), &Value::Null).body
    }

    /// A turn with one call of this tool.
    fn step(&self, turn: i64, tool: &str) -> Answer {
        let call = json!({"id": format!("call-{turn}"), "tool": tool, "input": {"command": format!("ls {turn}")}, "status": "pending"});
        self.tell(json!({"type": "STEP", "turn": turn, "toolCalls": [call]}))
    }
}

#[track_caller]
fn wrong(answer: &Answer, field: &str) {
    assert_eq!((answer.status, &answer.body["errors"][0]["field"]), (422, &json!(field)), "{}", answer.body);
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, &answer.body["code"]), (status, &json!(code)), "{}", answer.body);
    let errors = &answer.body["errors"];
    assert!(status != 409 || errors[0]["message"] == answer.body["detail"], "{}", answer.body);
}

/// The source document's limits: a non-empty prompt, 1 to 200 turns, a temperature of 0 to 1, turns from 1.
#[test]
fn what_is_out_of_its_limits_is_refused_by_its_field() {
    let outside = Outside::new();
    wrong(&outside.ask("POST /api/v1/runs", &json!({"task": "c-1", "prompt": " "})), "prompt");
    wrong(&outside.ask("POST /api/v1/runs", &json!({"task": "c-1"})), "prompt");
    for turns in [0, 201, -1, i64::MAX] {
        wrong(&outside.open(json!({"maxTurns": turns})), "maxTurns");
    }
    for temperature in [1.1, -0.1] {
        wrong(&outside.open(json!({"temperature": temperature})), "temperature");
    }
    assert_eq!(outside.get("/runs")["items"], json!([]), "nothing of it was begun");
    assert_eq!(outside.open(json!({"maxTurns": 200, "temperature": 1.0})).status, 201);
    for turn in [0, -1] {
        wrong(&outside.step(turn, "Edit"), "turn");
    }
    wrong(&outside.tell(json!({"type": "STEP", "turn": 1})), "toolCalls");
    assert_eq!(outside.step(1, "Edit").status, 200);
    wrong(&outside.tell(json!({"type": "COMPLETE", "result": "x", "turnCount": 0})), "turnCount");
    for turns in [0, 201, -5] {
        wrong(&outside.tell(json!({"type": "RESUME", "maxTurns": turns})), "maxTurns");
    }
    assert_eq!(outside.tell(json!({"type": "DANCE"})).status, 400);
}

/// Each state says what can be done in it; each turn is taken once, in its order.
#[test]
fn a_whole_life_is_reported_from_outside() {
    let outside = Outside::new();
    let meta = |answer: &Answer| {
        let names = answer.body["meta"].as_object().unwrap().iter().filter(|(_, yes)| **yes == json!(true));
        names.map(|(name, _)| name.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let state = |answer: &Answer| (answer.status, answer.body["state"].as_str().unwrap().to_owned());
    let opened = outside.open(json!({}));
    assert_eq!(state(&opened), (201, "starting".to_owned()));
    assert_eq!(meta(&opened), "hasActiveTask resourcesAllocated");
    let first = outside.step(1, "Edit");
    assert_eq!(state(&first), (200, "running".to_owned()));
    assert_eq!(meta(&first), "hasActiveTask resourcesAllocated canExecuteTools");
    assert_eq!(outside.step(1, "Edit").body, first.body, "the same again is answered as before");
    refused(&outside.step(1, "Bash"), 409, "STALE_TURN");
    let stale = outside.step(3, "Edit");
    refused(&stale, 409, "STALE_TURN");
    assert_eq!(stale.body["errors"][0]["field"], "turn", "{}", stale.body);
    let paused = outside.tell(json!({"type": "PAUSE", "reason": "user_input"}));
    assert_eq!((state(&paused).1.as_str(), &paused.body["pauseReason"]), ("paused", &json!("user_input")));
    assert_eq!(meta(&paused), "hasActiveTask resourcesAllocated awaitingInput");
    assert_eq!(state(&outside.tell(json!({"type": "RESUME", "feedback": "go on"}))).1, "running");
    let error = json!({"code": "E1", "message": "broke", "status": 500});
    let failed = outside.tell(json!({"type": "ERROR", "error": error, "recoverable": true}));
    assert_eq!(failed.body["lastError"], json!({"code": "E1", "message": "broke", "recoverable": true}));
    assert_eq!(meta(&failed), "hasActiveTask resourcesAllocated requiresDecision");
    outside.here.ok(&["resume", "c-1"]);
    assert_eq!(outside.get("/runs/c-1.1")["state"], "running", "a person resumes it too");
    let done = outside.tell(json!({"type": "COMPLETE", "result": "made it", "turnCount": 1}));
    assert_eq!((state(&done).1.as_str(), meta(&done).as_str()), ("completed", "canStart"));
    let again = json!({"type": "START", "taskId": "c-1", "prompt": "once more"});
    assert_eq!(state(&outside.tell(again)).1, "starting");
}

/// 200 and not a refusal: the turn was taken, and a person decides what follows.
#[test]
fn the_turn_limit_is_answered_with_what_a_person_can_choose() {
    let outside = Outside::new();
    outside.open(json!({"maxTurns": 2}));
    outside.step(1, "Edit");
    let limit = outside.step(2, "Edit");
    refused(&limit, 200, "AGENT_TURN_LIMIT_EXCEEDED");
    assert_eq!((&limit.body["state"], &limit.body["pauseReason"]), (&json!("paused"), &json!("turn_limit")));
    let asked = &limit.body["approval"];
    assert_eq!(
        (&asked["cause"], &asked["options"]),
        (&json!("turn_limit"), &json!(["continue", "complete", "abort"]))
    );
    assert_eq!(outside.step(2, "Edit").body, limit.body, "an answer that was lost is given again");
    refused(&outside.step(3, "Edit"), 409, "AGENT_NOT_RUNNING");
    refused(&outside.tell(json!({"type": "RESUME"})), 409, "AGENT_NOT_RUNNING");

    // Continue, with as many turns more as are said.
    outside.here.fails(&["resume", "c-1.1", "--max-turns", "2"], 2, "it needs more to go on");
    outside.here.ok(&["resume", "c-1.1", "--max-turns", "3"]);
    assert_eq!(outside.step(3, "Edit").body["code"], "AGENT_TURN_LIMIT_EXCEEDED");
    let question = outside.get("/runs/c-1.1")["approval"]["id"].as_str().unwrap().to_owned();
    outside.here.ok(&["approve", &question, "--raise", "1"]);
    assert_eq!(outside.get("/runs/c-1.1")["maxTurns"], 4);
    // Abort.
    assert_eq!(outside.step(4, "Edit").body["code"], "AGENT_TURN_LIMIT_EXCEEDED");
    outside.here.ok(&["abort", "c-1"]);
    assert_eq!(outside.get("/runs/c-1.1")["state"], "idle");
    assert_eq!(outside.here.json(&["task", "show", "c-1"])["status"], "BLOCKED");
}

/// Complete: what it made it hands in itself.
#[test]
fn a_run_that_a_person_calls_complete_at_its_turn_limit_is() {
    let outside = Outside::new();
    outside.open(json!({"maxTurns": 1}));
    let limit = outside.step(1, "Edit");
    let question = limit.body["approval"]["id"].as_str().unwrap().to_owned();
    outside.here.ok(&["approve", &question, "--complete"]);
    let run = outside.get("/runs/c-1.1");
    assert_eq!((&run["state"], &run["approval"]), (&json!("completed"), &Value::Null));
    assert_eq!(outside.here.json(&["task", "show", "c-1"])["status"], "IN_PROGRESS");
}

/// Refused before it runs, whole, and in the audit with what it was given.
#[test]
fn a_tool_that_is_not_allowed_is_refused_and_audited() {
    let outside = Outside::new();
    outside.open(json!({"allowedTools": ["Edit"]}));
    refused(&outside.step(1, "Bash"), 403, "AGENT_TOOL_NOT_ALLOWED");
    let edit = json!({"id": "e", "tool": "Edit", "input": {"path": "a.rs"}, "output": "3 lines", "duration": 1500, "status": "complete"});
    let running = json!({"id": "r", "tool": "Edit", "input": {}, "status": "running"});
    assert_eq!(outside.tell(json!({"type": "STEP", "turn": 1, "toolCalls": [edit, running]})).status, 200);
    let rows = outside.get("/runs/c-1.1/tools")["items"].clone();
    let refused = &rows[0];
    assert_eq!(
        (&refused["tool"], &refused["status"], &refused["code"], &refused["turn"], &refused["input"]),
        (
            &json!("Bash"),
            &json!("error"),
            &json!("AGENT_TOOL_NOT_ALLOWED"),
            &json!(1),
            &json!({"command": "ls 1"})
        )
    );
    let ended = &rows[1];
    assert_eq!(
        (&ended["output"], &ended["duration"], &ended["status"]),
        (&json!("3 lines"), &json!(1500), &json!("complete"))
    );
    for (member, value) in [("run", "c-1.1"), ("task", "c-1"), ("agent", "coder"), ("actor", "agent:coder")] {
        assert_eq!(ended[member], value);
    }
    assert!(ended["at"].is_string() && ended["endedAt"].is_string(), "{ended}");
    assert_eq!((&rows[2]["status"], &rows[2]["endedAt"]), (&json!("running"), &Value::Null));
    // In pages.
    let page = outside.ask("GET /api/v1/runs/c-1.1/tools?limit=2", &Value::Null).body;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (2, &json!("2")));
    let rest = outside.ask("GET /api/v1/runs/c-1.1/tools?after=2", &Value::Null).body;
    assert_eq!((&rest["items"][0], &rest["next"]), (&rows[2], &Value::Null));
    let shown = outside.here.ok(&["tools", "c-1"]);
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["1", "Bash", "AGENT_TOOL_NOT_ALLOWED", "-", "ls", "1"]);
    assert_eq!(lines[2], ["1", "Edit", "complete", "1.5s", "a.rs"]);
}

/// Each code for what it says, with a way out.
#[test]
fn each_refusal_has_its_code_and_says_what_can_be_done() {
    let outside = Outside::new();
    let nowhere = outside.ask("POST /api/v1/runs", &json!({"task": "c-9", "prompt": "x"}));
    refused(&nowhere, 404, "TASK_NOT_FOUND");
    assert!(nowhere.body["detail"].as_str().unwrap().contains("choose another"), "{}", nowhere.body);
    outside.open(json!({}));
    let twice = outside.open(json!({}));
    refused(&twice, 409, "AGENT_ALREADY_RUNNING");
    assert!(twice.body["hint"].as_str().unwrap().contains("use another agent"), "{}", twice.body);
    let start = outside.tell(json!({"type": "START", "taskId": "c-1", "prompt": "x"}));
    refused(&start, 409, "AGENT_ALREADY_RUNNING");
    refused(&outside.tell(json!({"type": "RESUME"})), 409, "AGENT_NOT_RUNNING");
    let error = json!({"code": "E1", "message": "broke", "status": 500});
    outside.tell(json!({"type": "ERROR", "error": error, "recoverable": false}));
    let hopeless = outside.tell(json!({"type": "RESUME"}));
    refused(&hopeless, 409, "AGENT_EXECUTION_ERROR");
    assert!(hopeless.body["detail"].as_str().unwrap().contains("ABORT"), "{}", hopeless.body);
    // Canceled behind its back.
    outside.here.ok(&["task", "cancel", "c-1"]);
    let late = outside.tell(json!({"type": "COMPLETE", "result": "x", "turnCount": 1}));
    refused(&late, 409, "AGENT_NO_AVAILABLE_TASK");
    assert!(late.body["hint"].as_str().unwrap().contains("canceled"), "{}", late.body);
    refused(&outside.open(json!({})), 409, "AGENT_NO_AVAILABLE_TASK");
}

/// Connecting, signs of life and going, as the list of agents shows them.
#[test]
fn an_agent_outside_connects_gives_signs_of_life_and_goes() {
    let outside = Outside::new();
    let coder = || {
        let agents = outside.get("/agents");
        agents["items"].as_array().unwrap().iter().find(|agent| agent["name"] == "coder").cloned().unwrap()
    };
    assert_eq!((&coder()["state"], &coder()["connectedSince"]), (&json!("OFFLINE"), &Value::Null));
    let early = outside.ask("PUT /api/v1/agents/coder/heartbeat", &json!({}));
    refused(&early, 409, "NOT_CONNECTED");
    assert_eq!(outside.ask("POST /api/v1/agents", &json!({"name": "coder"})).status, 201);
    outside.open(json!({}));
    assert_eq!((&coder()["state"], &coder()["runs"]), (&json!("IDLE"), &json!(["c-1.1"])));
    assert!(coder()["expectedBy"].is_string(), "{}", coder());
    assert_eq!(outside.ask("PUT /api/v1/agents/coder/heartbeat", &json!({})).status, 200);
    refused(&outside.ask("PUT /api/v1/agents/other/heartbeat", &json!({})), 403, "FORBIDDEN");
    assert_eq!(outside.ask("POST /api/v1/agents/coder/disconnect", &json!({})).status, 200);
    assert_eq!(coder()["state"], "OFFLINE");
    assert_eq!(outside.get("/runs/c-1.1")["lastError"]["code"], "DISCONNECTED");
    assert_eq!(outside.here.json(&["task", "show", "c-1"])["status"], "IN_PROGRESS");
}

/// An agent that has a token by its name, and no run of the fleet.
struct Named {
    here: Repository,
    server: Server,
    token: String,
}

impl Named {
    /// With these tasks given to it.
    fn new(tasks: &[&str]) -> Named {
        let here = Repository::new();
        for task in tasks {
            here.ok(&["task", "add", "x", "--id", task]);
            here.ok(&["task", "assign", task, "coder"]);
            here.ok(&["task", "move", task, "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
        }
        let server = Server::start(&here, &[]);
        let made = here.json(&["token", "create", "--name", "coder", "--role", "specialist"]);
        Named { here, server, token: made["token"].as_str().unwrap().to_owned() }
    }

    fn post(&self, path: &str, body: Value) -> server::Answer {
        self.server.ask(&format!("POST /api/v1{path}"), &self.token, &body)
    }

    fn get(&self, path: &str) -> Value {
        self.server.ask(&format!("GET /api/v1{path}"), &self.token, &Value::Null).json()
    }

    /// Begins a run on a task and reports its first turn.
    fn begin(&self, task: &str) {
        let opened = self.post("/runs", json!({"task": task, "prompt": "do it"}));
        assert_eq!(opened.status, 201, "{}", opened.text);
        let call = json!({"id": "call-1", "tool": "Edit", "input": {}, "status": "pending"});
        let step = json!({"type": "STEP", "turn": 1, "toolCalls": [call]});
        let told = self.post(&format!("/runs/{task}.1/events"), step);
        assert_eq!(told.status, 200, "{}", told.text);
    }

    fn state(&self) -> Value {
        self.get("/runs/c-1.1")["state"].clone()
    }
}

#[track_caller]
fn says_no(answer: &server::Answer, status: u16, code: &str) {
    assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{}", answer.text);
    assert!(!answer.json()["hint"].is_null(), "it says what to do: {}", answer.text);
}

#[test]
fn an_agent_outside_asks_a_person_and_reads_the_answer() {
    let agent = Named::new(&["c-1"]);
    says_no(&agent.post("/requests", json!({"text": "Which way?"})), 409, "NO_RUN");
    agent.begin("c-1");
    let asked = agent.post("/requests", json!({"text": "Which way?"}));
    assert_eq!((asked.status, &asked.json()["run"]), (201, &json!("c-1.1")), "{}", asked.text);
    let id = asked.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(agent.state(), "running", "a question moves nothing");
    agent.here.ok(&["answer", &id, "Left."]);
    assert_eq!(agent.get(&format!("/requests/{id}"))["answer"]["text"], "Left.");
    let told = agent.post(&format!("/requests/{id}/receipt"), json!({}));
    assert_eq!((told.status, &told.json()["told"]), (200, &json!(true)), "{}", told.text);
}

#[test]
fn an_agent_outside_that_asks_for_an_approval_waits_paused_and_goes_on_with_the_decision() {
    let agent = Named::new(&["c-1"]);
    agent.begin("c-1");
    let push = json!({"tool": "Bash", "input": {"command": "git push"}});
    for (answer, decision) in [("approve", "approved"), ("deny", "denied")] {
        let asked = agent.post("/own/approvals", push.clone());
        assert_eq!((asked.status, &asked.json()["allowed"]), (201, &json!(false)), "{}", asked.text);
        let id = asked.json()["approval"].as_str().unwrap().to_owned();
        assert_eq!(agent.state(), "paused");
        says_no(&agent.post("/own/approvals", push.clone()), 409, "NOT_RUNNING");
        let waiting = agent.here.ok(&["waiting"]);
        assert!(waiting.contains("git push"), "{waiting}");
        agent.here.ok(&[answer, &id]);
        assert_eq!(agent.state(), "running");
        let decided = agent.get(&format!("/approvals/{id}"))["decided"]["decision"].clone();
        assert!(decided.as_str().unwrap().contains(decision), "{decided}");
    }
}

#[test]
fn an_agent_outside_that_says_that_it_is_done_completes_its_run() {
    let agent = Named::new(&["c-1"]);
    agent.begin("c-1");
    says_no(&agent.post("/own/plan", json!({"steps": ["a", "b", "c"]})), 409, "PLAN_GIVEN");
    let claimed = agent.post("/own/claim", json!({"summary": "All is there."}));
    assert_eq!((claimed.status, &claimed.json()["id"]), (200, &json!("c-1")), "{}", claimed.text);
    assert_eq!(agent.state(), "completed");
    let log = agent.server.get("/api/v1/events").text;
    assert!(log.contains("\"result\":\"All is there.\""), "{log}");
    says_no(&agent.post("/own/claim", json!({})), 409, "NO_RUN");
}

/// One run at a time, whatever the task; one that waits for a person is under way too.
#[test]
fn an_agent_outside_has_one_run_at_a_time_and_speaks_for_no_other() {
    let agent = Named::new(&["c-1", "c-2"]);
    agent.begin("c-1");
    let open = || agent.post("/runs", json!({"task": "c-2", "prompt": "do it"}));
    says_no(&open(), 409, "AGENT_ALREADY_RUNNING");
    assert!(open().text.contains("c-1.1"), "{}", open().text);
    says_no(&agent.post("/own/claim", json!({"run": "c-2.1"})), 403, "FORBIDDEN");
    agent.here.ok(&["pause", "c-1.1"]);
    says_no(&open(), 409, "AGENT_ALREADY_RUNNING");
    assert!(open().text.contains("waits for what a person says"), "{}", open().text);
    agent.here.ok(&["resume", "c-1.1"]);
    assert_eq!(agent.post("/own/claim", json!({})).status, 200);
    assert_eq!((agent.state(), open().status), (json!("completed"), 201));
}

/// Claim, start and run: a task whose dependency is open is refused with the reason, over HTTP and by the command.
#[test]
fn a_dependency_holds_an_agent_outside() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "d-1"]);
    here.ok(&["task", "add", "y", "--id", "d-2", "--depends-on", "d-1"]);
    let server = Server::start(&here, &[]);
    let ben = here.token_for("ben", "specialist");
    let moves = |body: Value| server.ask("POST /api/v1/tasks/d-2/transitions", &ben, &body);
    let held = |answer: &server::Answer| {
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (409, &json!("NOT_CLAIMABLE")),
            "{}",
            answer.text
        );
        assert_eq!(answer.json()["errors"][0]["field"], "dependsOn", "{}", answer.text);
        assert!(answer.text.contains("`d-1` is not DONE yet"), "{}", answer.text);
    };
    held(&moves(json!({"to": "ASSIGNED", "assigneeIds": ["ben"]})));
    here.ok(&["task", "assign", "d-2", "ben"]);
    held(&moves(json!({"to": "IN_PROGRESS", "workPlan": {"bullets": ["a", "b", "c"]}})));
    let run = server.ask("POST /api/v1/runs", &ben, &json!({"task": "d-2", "prompt": "x"}));
    assert_eq!(run.json()["code"], "AGENT_NO_AVAILABLE_TASK", "{}", run.text);
    assert!(run.text.contains("`d-1` is not DONE yet"), "{}", run.text);
    let mut by_command = here.command(&["task", "move", "d-2", "IN_PROGRESS", "--plan", "a", "--plan", "b"]);
    let refused = by_command.args(["--plan", "c"]).env("ADJ_TOKEN", &ben).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(3) && said.contains("`d-1` is not DONE yet"), "{said}");
    // A person who starts it all the same knows why.
    here.ok(&["task", "move", "d-2", "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    assert_eq!(server.ask("POST /api/v1/runs", &ben, &json!({"task": "d-2", "prompt": "x"})).status, 201);
}

/// Everything that an agent outside reports: one row and one start for each call, its results, what it wrote and used, a call
/// that a person allows and one that is denied; and a stream that ends with the run.
#[test]
fn an_agent_outside_reports_results_output_and_cost_and_its_red_calls_are_asked() {
    let agent = Named::new(&["c-1"]);
    assert_eq!(agent.post("/runs", json!({"task": "c-1", "prompt": "do it"})).status, 201);
    let tell = |event: Value| {
        let told = agent.post("/runs/c-1.1/events", event);
        assert_eq!(told.status, 200, "{}", told.text);
        told.json()
    };
    let edit = |status: &str| json!({"id": "a", "tool": "Edit", "input": {"file_path": "a"}, "output": "ok", "status": status});
    let push = |id: &str, status: &str| json!({"id": id, "tool": "Bash", "input": {"command": "git push"}, "status": status});
    let usage = json!({"inputTokens": 100, "outputTokens": 20, "cost": 0.25});
    let piece = agent.post("/runs/c-1.1/tokens", json!({"text": "as it comes"}));
    assert_eq!((piece.status, &piece.json()["bytes"]), (200, &json!(11)), "{}", piece.text);
    tell(
        json!({"type": "STEP", "turn": 1, "toolCalls": [edit("pending")], "output": "first words", "usage": usage}),
    );
    // The result of the call with the same turn again.
    tell(
        json!({"type": "STEP", "turn": 1, "toolCalls": [edit("complete")], "output": "first words", "usage": usage}),
    );
    let asked =
        tell(json!({"type": "STEP", "turn": 2, "toolCalls": [push("p", "pending")], "output": "more"}));
    assert_eq!((&asked["code"], &asked["state"]), (&json!("AGENT_APPROVAL_REQUIRED"), &json!("paused")));
    assert!(agent.here.ok(&["waiting"]).contains("git push"));
    assert_eq!(asked["approval"]["cause"], "red_action");
    agent.here.ok(&["approve", asked["approval"]["id"].as_str().unwrap(), "--note", "go ahead"]);
    // Its result with a later turn, and the next one, which is denied.
    let again =
        tell(json!({"type": "STEP", "turn": 3, "toolCalls": [push("p", "complete"), push("q", "pending")]}));
    assert_eq!(again["code"], "AGENT_APPROVAL_REQUIRED", "{again}");
    agent.here.ok(&["deny", again["approval"]["id"].as_str().unwrap(), "--note", "not twice"]);
    assert_eq!(agent.state(), "running");
    let stray = json!({"type": "COMPLETE", "result": "made it", "turnCount": 3, "bogus": 1});
    let refused = agent.post("/runs/c-1.1/events", stray);
    assert!(refused.status == 400 && refused.text.contains("`bogus`"), "{}", refused.text);
    for usage in [json!({"cost": -1}), json!({"cost": 1e9}), json!({"tokens": 1})] {
        let wrong = json!({"type": "STEP", "turn": 4, "toolCalls": [], "usage": usage});
        assert!(matches!(agent.post("/runs/c-1.1/events", wrong).status, 400 | 422));
    }
    tell(json!({"type": "COMPLETE", "result": "made it", "diff": "+ a line", "turnCount": 3}));

    let rows = agent.get("/runs/c-1.1/tools")["items"].clone();
    let rows: Vec<(&str, &str)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["id"].as_str().unwrap(), row["status"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, [("a", "complete"), ("p", "complete"), ("q", "error")]);
    let run = agent.get("/runs/c-1.1");
    assert_eq!((&run["cost"]["usd"], &run["cost"]["inputTokens"]), (&json!(0.25), &json!(100)), "{run}");
    let answer = agent.server.get("/v1/stream/runs/c-1.1?offset=-1");
    let told: Vec<Value> = serde_json::from_str(&answer.text).unwrap();
    let of = |kind: &str| told.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let starts: Vec<Value> = of("tool:start").iter().map(|start| start["id"].clone()).collect();
    assert_eq!(starts, [json!("a"), json!("p")], "{}", answer.text);
    assert_eq!(of("agent:starting")[0]["payload"]["sessionId"], "c-1.1", "{}", answer.text);
    assert_eq!(of("approval:requested").len(), 2, "{}", answer.text);
    assert_eq!(of("stream:token")[0]["text"], "as it comes", "{}", answer.text);
    for part in ["first words", "\"more\"", "go ahead", "+ a line", "not twice"] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
    assert!(answer.head.to_lowercase().contains("stream-closed: true"), "{}", answer.head);
    // What begins now is the next run, with a stream of its own.
    let next = tell(json!({"type": "START", "taskId": "c-1", "prompt": "once more"}));
    assert_eq!((&next["id"], &next["state"]), (&json!("c-1.2"), &json!("starting")));
    let late = agent.post("/runs/c-1.1/tokens", json!({"text": "late"}));
    assert_eq!((late.status, &late.json()["code"]), (409, &json!("AGENT_NOT_RUNNING")), "{}", late.text);
}

/// The budgets of the settings, and the turns that a person can add.
#[test]
fn budgets_hold_an_agent_outside_and_turns_are_raised_within_the_limit() {
    let agent = Named::new(&["c-1"]);
    agent.here.configure("[agents.coder]\nmax_turns = 2\n[budget]\nrun_usd = 1.0\nstep_usd = 0.1\n");
    assert_eq!(agent.post("/runs", json!({"task": "c-1", "prompt": "do it"})).json()["maxTurns"], 2);
    let step = |turn: u32, cost: f64| {
        let call =
            json!({"id": format!("c{turn}"), "tool": "Edit", "input": {"n": turn}, "status": "pending"});
        let usage = json!({"cost": cost});
        let event = json!({"type": "STEP", "turn": turn, "toolCalls": [call], "usage": usage});
        agent.post("/runs/c-1.1/events", event).json()
    };
    let over = step(1, 1.5);
    assert_eq!(
        (&over["pauseReason"], &over["approval"]["cause"]),
        (&json!("budget"), &json!("budget")),
        "{over}"
    );
    agent.here.ok(&["approve", over["approval"]["id"].as_str().unwrap(), "--raise", "5"]);
    let limit = step(2, 0.1);
    assert_eq!(limit["code"], "AGENT_TURN_LIMIT_EXCEEDED", "{limit}");
    let id = limit["approval"]["id"].as_str().unwrap().to_owned();
    for (raise, said) in [(0, "1 to 198"), (199, "1 to 198"), (u32::MAX, "1 to 198")] {
        let body = json!({"approve": true, "raiseTurns": raise});
        let refused = agent.server.post(&format!("/api/v1/approvals/{id}/decision"), &body);
        assert!(refused.status == 422 && refused.text.contains(said), "{}", refused.text);
    }
    agent.here.ok(&["approve", &id, "--raise", "3"]);
    assert_eq!(agent.get("/runs/c-1.1")["maxTurns"], 5);
}

/// Seed 002: DONE by a lead, if the policy allows it, of work that an agent outside handed in. Never of its own.
#[test]
fn a_lead_completes_the_work_of_an_agent_outside_if_the_policy_allows_it() {
    let agent = Named::new(&["c-1", "c-2"]);
    let review: Value = serde_json::from_str(super::owner::REVIEW).unwrap();
    for task in ["c-1", "c-2"] {
        let mut body = review.clone();
        body["to"] = json!("REVIEW");
        let handed_in = agent.post(&format!("/tasks/{task}/transitions"), body);
        assert_eq!(handed_in.status, 200, "{}", handed_in.text);
    }
    let lea = agent.here.token_for("lea", "lead");
    let done = |token: &str| {
        let body = json!({"to": "DONE", "approval": {"decisionNote": "looked at it"}});
        agent.server.ask("POST /api/v1/tasks/c-1/transitions", token, &body)
    };
    assert_eq!(done(&lea).status, 403, "{}", done(&lea).text);
    agent.here.configure("[policy]\nlead_may_complete = true\n");
    assert_eq!(done(&agent.token).status, 403, "an agent never approves its own work");
    let completed = done(&lea);
    assert_eq!(
        (completed.status, &completed.json()["task"]["status"]),
        (200, &json!("DONE")),
        "{}",
        completed.text
    );
    let mut by_command = agent.here.command(&["review", "c-2", "--approve", "--note", "fine"]);
    let reviewed = by_command.env("ADJ_TOKEN", &lea).output().unwrap();
    assert!(reviewed.status.success(), "{}", String::from_utf8_lossy(&reviewed.stderr));
    assert_eq!(agent.here.json(&["task", "show", "c-2"])["status"], "DONE");
}

/// The token of a run speaks for that run, whatever else its agent has under way.
#[test]
fn a_token_of_one_run_speaks_for_no_other_of_its_agent() {
    let outside = Outside::new();
    outside.open(json!({}));
    let other = outside.ask("POST /api/v1/own/claim", &json!({"run": "c-2.1"}));
    refused(&other, 403, "FORBIDDEN");
    outside.step(1, "Edit");
    assert_eq!(outside.ask("POST /api/v1/own/claim", &json!({"run": "c-1.1"})).status, 200);
}

#[test]
fn twenty_questions_of_a_task_wait_at_most_and_an_answer_makes_room() {
    let agent = Named::new(&["c-1"]);
    agent.begin("c-1");
    let ask = |number: u32| agent.post("/requests", json!({"text": format!("Question {number}?")}));
    let asked: Vec<String> =
        (1..=20).map(|number| ask(number).json()["id"].as_str().unwrap().to_owned()).collect();
    let more = ask(21);
    says_no(&more, 409, "TOO_MANY_QUESTIONS");
    assert!(more.text.contains("20 questions wait"), "{}", more.text);
    agent.here.ok(&["answer", &asked[0], "Yes."]);
    assert_eq!(ask(21).status, 201);
    says_no(&ask(22), 409, "TOO_MANY_QUESTIONS");
}
