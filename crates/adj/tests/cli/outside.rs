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
    refused(&outside.step(3, "Edit"), 409, "STALE_TURN");
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

#[test]
fn an_agent_with_several_runs_outside_says_which_and_speaks_for_no_other() {
    let agent = Named::new(&["c-1", "c-2"]);
    agent.begin("c-1");
    agent.begin("c-2");
    let which = agent.post("/own/claim", json!({}));
    says_no(&which, 409, "WHICH_RUN");
    assert!(which.text.contains("c-1.1, c-2.1"), "{}", which.text);
    says_no(&agent.post("/own/claim", json!({"run": "c-3.1"})), 403, "FORBIDDEN");
    let asked = agent.post("/requests", json!({"text": "Which way?", "run": "c-2.1"}));
    assert_eq!(asked.json()["task"], "c-2", "{}", asked.text);
    assert_eq!(agent.post("/own/claim", json!({"run": "c-2.1"})).status, 200);
    assert_eq!(agent.post("/own/claim", json!({})).status, 200, "one is left");
    assert_eq!(agent.state(), "completed");
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
