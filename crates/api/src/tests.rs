//! Requests as a transport would make them, on a project in memory.

use super::fake::{Fake, Running};
use super::*;
use log::MemoryLog;
use log::owner::Owner;
use serde_json::json;

pub(super) struct TestAccess {
    host: Box<dyn Host>,
    control: Option<Box<dyn Control>>,
    pub(super) owner: Owner,
    asked: std::cell::Cell<u128>,
}

impl TestAccess {
    pub(super) fn new() -> TestAccess {
        TestAccess {
            host: Box::new(Fake),
            control: None,
            owner: Owner::open(Box::new(MemoryLog::new())).unwrap(),
            asked: Default::default(),
        }
    }

    /// One with a process that runs a fleet.
    pub(super) fn with_fleet(running: Running) -> TestAccess {
        TestAccess { control: Some(Box::new(running)), ..TestAccess::new() }
    }

    pub(super) fn request(&self, method: Method, path: &str, body: Value) -> Request {
        let id = self.asked.get() + 1;
        self.asked.set(id);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Request {
            run: None,
            seat: None,
            reply: None,
            reads_only: false,
            token: None,
            method,
            path: format!("/api/v1{path}"),
            query: query.to_owned(),
            body,
            actor: Actor::Human("ann".into()),
            id,
            at: 1_700_000_000_000 + id as i64,
            x_idempotency_key: None,
            idempotency_key: None,
        }
    }

    pub(super) fn answer(&self, request: &Request) -> (u16, Value) {
        let handle = self.owner.handle();
        let access = ProjectAccess {
            project: &handle,
            host: &*self.host,
            control: self.control.as_deref(),
            given_up: None,
        };
        let Response { status, body } = answer(&access, request);
        (status, body)
    }

    pub(super) fn get(&self, path: &str) -> (u16, Value) {
        self.answer(&self.request(Method::Get, path, Value::Null))
    }

    pub(super) fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.answer(&self.request(Method::Post, path, body))
    }
}

#[test]
fn a_task_is_added_moved_and_read_back() {
    let access = TestAccess::new();
    let (status, task) = access.post("/tasks", json!({"id": "c-1", "title": "x", "dependsOn": []}));
    assert_eq!((status, &task["status"]), (201, &json!("INBOX")));
    assert_eq!(task["createdAt"], "2023-11-14T22:13:20.001Z");
    let (status, moved) =
        access.post("/tasks/c-1/transitions", json!({"to": "assigned", "assigneeIds": ["coder"]}));
    assert_eq!(
        (status, &moved["success"], &moved["task"]["status"]),
        (200, &json!(true), &json!("ASSIGNED"))
    );
    let (_, list) = access.get("/tasks?status=ASSIGNED&assignee=coder");
    assert_eq!(list["items"][0]["id"], "c-1");
    let (_, history) = access.get("/tasks/c-1/history");
    assert_eq!(
        history["items"],
        json!([{
            "timestamp": "2023-11-14T22:13:20.002Z", "event": "state_transition", "machine": "task",
            "agentId": "coder", "from": "INBOX", "to": "ASSIGNED", "trigger": "move ASSIGNED",
            "id": "c-1", "actor": "human:ann",
        }])
    );
}

#[test]
fn a_refused_transition_says_what_is_missing_and_what_is_allowed() {
    let access = TestAccess::new();
    access.post("/tasks", json!({"id": "c-1", "title": "x"}));
    access.post("/tasks/c-1/transitions", json!({"to": "ASSIGNED", "assigneeIds": ["coder"]}));
    let (status, problem) = access.post("/tasks/c-1/transitions", json!({"to": "IN_PROGRESS"}));
    assert_eq!(status, 422);
    assert_eq!(problem["success"], false);
    assert_eq!(
        problem["errors"],
        json!([{"field": "workPlan", "message": "Work plan required for IN_PROGRESS"}])
    );
    assert_eq!(problem["allowedTransitions"], json!(["INBOX", "IN_PROGRESS", "CANCELED"]));
    assert_eq!(access.post("/tasks/c-1/transitions", json!({"to": "DONE"})).0, 409);
    assert_eq!(access.post("/tasks/c-9/transitions", json!({"to": "DONE"})).0, 404);
    let intern = Actor::Agent { name: "kid".parse().unwrap(), role: kernel::config::Role::Intern };
    let request = access.request(Method::Post, "/tasks/c-1/transitions", json!({"to": "CANCELED"}));
    let (status, problem) = access.answer(&Request { actor: intern, ..request });
    assert_eq!((status, &problem["allowedTransitions"]), (403, &json!([])));
}

#[test]
fn what_is_not_understood_is_bad_input_and_says_which_part() {
    let access = TestAccess::new();
    access.post("/tasks", json!({"id": "c-1", "title": "x"}));
    let bad = [
        ("/tasks", json!({"title": "x", "colour": "red"}), "unknown field `colour`"),
        ("/tasks", json!({"title": 3}), "invalid type: integer `3`"),
        ("/tasks", json!({"title": "x", "type": "poem"}), "`type` cannot be `poem`: use one of `"),
        ("/tasks", json!({"title": "x", "id": "../x"}), "not a valid name"),
        ("/tasks", json!([]), "it must be an object"),
        ("/tasks/c-1/transitions", json!({"to": "LIMBO"}), "`to` cannot be `LIMBO`: use one of `INBOX`, "),
        ("/tasks/c-1/transitions", json!({}), "`to` is missing"),
        ("/tasks/c-1/transitions", json!({"to": "DONE", "role": "human"}), "unknown field `role`"),
        ("/tasks/-rf/comments", json!({"text": "x"}), "must begin with a letter"),
        ("/workers", json!({"name": "a b"}), "not a valid name"),
    ];
    for (path, body, said) in bad {
        let (status, problem) = access.post(path, body);
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 400 && detail.contains(said), "{path}: {problem}");
    }
    assert_eq!(access.get("/nowhere").0, 404);
    let queries = [
        ("/tasks?limit=0", "`limit` must be 1 to 1000"),
        ("/tasks?after=x", "`after` must be a cursor that a page ended with"),
        ("/tasks?colour=red", "unknown field `colour`"),
        ("/tasks?limit=1&limit=2", "duplicate field `limit`"),
        ("/fleet?all=1", "unknown field `all`"),
        ("/approvals?all=perhaps", "`perhaps` is neither true nor false"),
    ];
    for (path, said) in queries {
        let (status, problem) = access.get(path);
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 400 && detail.contains(said), "{path}: {problem}");
    }
    let (status, problem) = access.answer(&access.request(Method::Delete, "/tasks", Value::Null));
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(status == 405 && detail.ends_with("it takes GET, POST"), "{problem}");
}

#[test]
fn a_key_answers_twice_what_was_done_once() {
    let access = TestAccess::new();
    let keyed = |x: Option<&str>, plain: Option<&str>| Request {
        x_idempotency_key: x.map(str::to_owned),
        idempotency_key: plain.map(str::to_owned),
        ..access.request(Method::Post, "/tasks", json!({"title": "x"}))
    };
    let (status, first) = access.answer(&keyed(Some("k"), None));
    let (_, again) = access.answer(&keyed(None, Some("k")));
    assert_eq!((status, &first), (201, &again));
    assert_eq!(access.answer(&keyed(Some("k"), Some("l"))).0, 400);
    assert_eq!(access.answer(&keyed(Some(""), None)).0, 400);
    let quoted = |length: usize| format!("\"{}\"", "k".repeat(length - 2));
    assert_eq!(access.answer(&keyed(Some(&quoted(256)), None)).0, 400, "the document allows 255");
    assert_eq!(access.answer(&keyed(None, Some(&quoted(256)))).0, 400);
    assert_eq!(access.get("/tasks").1["items"].as_array().unwrap().len(), 1);
}

#[test]
fn lists_are_read_page_by_page() {
    let access = TestAccess::new();
    for n in 0..7 {
        access.post("/tasks", json!({"title": format!("task {n}")}));
    }
    let mut titles = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let (_, page) = access.get(&format!("/tasks?limit=3&after={after}"));
        titles.extend(page["items"].as_array().unwrap().iter().map(|task| task["title"].clone()));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    let expected: Vec<Value> = (0..7).map(|n| json!(format!("task {n}"))).collect();
    assert_eq!(titles, expected);
    let (_, events) = access.get("/events?limit=2");
    assert_eq!(events["items"][0]["kind"], "writer_seen");
    assert_eq!(events["next"], "2");
    assert_eq!(access.get("/events?after=8").1, json!({"items": [], "next": null}));
}

#[test]
fn workers_get_free_letters_and_say_why_they_wait() {
    let access = TestAccess::new();
    for name in ["A", "B"] {
        assert_eq!(access.post("/workers", json!({})).1["name"], name);
    }
    assert_eq!(access.post("/workers", json!({"name": "A"})).0, 409);
    let (_, why) = access.get("/workers/A/why");
    assert_eq!(why["state"], "worker.idle");
    assert_eq!(access.get("/workers/Q/why").0, 404);
    assert_eq!(access.post("/workers/A/merge", json!({})).0, 409);
    assert_eq!(access.get("/cost?by=day").1["total"]["usd"], 0.0);
    assert_eq!(access.get("/machines/task").1["initial"], "INBOX");
}

#[test]
fn what_is_not_in_the_log_is_asked_of_the_outside_and_shown_in_one_form() {
    let access = TestAccess { ..TestAccess::new() };
    access.post("/tasks", json!({"id": "c-1", "title": "x"}));
    access.post("/workers", json!({"name": "A"}));
    assert_eq!(
        access.get("/tasks/c-1/diff?stat=true").1,
        json!({"task": "c-1", "base": "b", "tip": "t", "diff": "c-1 true"})
    );
    assert_eq!(access.get("/tasks/c-9/diff").0, 404);
    let saved = json!({
        "id": "c-1/e1", "ref": "refs/adjutant/salvage/c-1/e1", "task": "c-1", "commit": "abc",
        "at": "1970-01-01T00:00:00.000Z", "files": ["x"], "commits": [],
    });
    assert_eq!(access.get("/salvage").1["items"], json!([saved]));
    assert_eq!(access.get("/salvage/c-1/e1").1["diff"], "+x");
    assert_eq!(access.get("/salvage/c-1/-x").0, 400);
    assert_eq!(access.get("/prompts").1["items"], json!([{"name": "init", "file": null}]));
    assert_eq!(access.get("/prompts/init").1["text"], "Begin.");
    assert_eq!(access.get("/prompts/moon").0, 404);
    assert_eq!(access.get("/config").1["settings"]["fleet"]["agent"], "coder", "what the rules follow");
    assert_eq!(access.get("/config/check").1["items"][0]["level"], "error");
    assert_eq!(access.get("/config/schema").1, json!({"type": "object"}));
    assert_eq!(access.post("/config/trust", json!({})).1["trusted"], true);
    assert_eq!(access.post("/init", json!({})).0, 200);
    assert_eq!(access.get("/trash").1, json!({"folder": "/t", "trees": 2, "bytes": 0}));
    assert_eq!(access.post("/trash/empty", json!({})).1["bytes"], 1);
    let findings = access.get("/doctor").1["items"].clone();
    assert_eq!(findings[0], json!({"level": "ok", "subject": "fleet", "text": "it is not running"}));
    assert_eq!((&findings[1]["level"], &findings[1]["text"]), (&json!("error"), &json!("git is not there")));
}

#[test]
fn a_transcript_is_read_from_its_end_or_on_from_a_cursor() {
    let access = TestAccess { ..TestAccess::new() };
    access.post("/workers", json!({"name": "A"}));
    let read = |query: &str| {
        let (status, page) = access.get(&format!("/workers/A/transcript?{query}"));
        let items = page["items"].as_array().into_iter().flatten();
        let cursors: Vec<u64> = items.filter_map(|entry| entry["cursor"].as_u64()).collect();
        (status, cursors, page["next"].clone(), page["more"].clone())
    };
    assert_eq!(read("limit=2"), (200, vec![4, 5], json!("5"), json!(false)));
    assert_eq!(read("limit=2&after=0"), (200, vec![1, 2], json!("2"), json!(true)));
    assert_eq!(read("limit=9&after=2"), (200, vec![3, 4, 5], json!("5"), json!(false)));
    assert_eq!(read("limit=9&after=5&wait=true"), (200, vec![], json!("5"), json!(false)));
    assert_eq!(read("after=x").0, 400);
    assert_eq!(access.get("/workers/Q/transcript").0, 404);
}

#[test]
fn saved_work_goes_where_a_person_says_and_nowhere_else() {
    let access = TestAccess { ..TestAccess::new() };
    let restore = |body: Value| access.post("/salvage/restore", body).0;
    assert_eq!(restore(json!({"id": "c-1/e1", "branch": "fix/it"})), 200);
    let (_, made_up) = access.post("/salvage/restore", json!({"id": "c-1/e1"}));
    assert_eq!(made_up, json!({"id": "c-1/e1", "branch": "made-up"}));
    assert_eq!(restore(json!({"id": "refs/adjutant/salvage/c-1/e1", "folder": "/tmp/x"})), 200);
    assert_eq!(restore(json!({"id": "c-1/e1", "branch": "taken"})), 409);
    for bad in [
        json!({"id": "c-1/e1", "branch": "x", "folder": "/tmp/x"}),
        json!({"id": "c-1/e1", "branch": "--force"}),
        json!({"id": "c-1/e1", "branch": "a/../b"}),
        json!({"id": "c-1/e1", "folder": "here"}),
        json!({"id": "c-1", "branch": "x"}),
        json!({"id": "../x/e1", "branch": "x"}),
    ] {
        assert_eq!(restore(bad.clone()), 400, "{bad}");
    }
    let agent = Actor::Agent { name: "coder".parse().unwrap(), role: kernel::config::Role::Lead };
    let body = json!({"id": "c-1/e1", "branch": "x"});
    let request = access.request(Method::Post, "/salvage/restore", body);
    assert_eq!(access.answer(&Request { actor: agent, ..request }).0, 403);
}

#[test]
fn a_person_stops_the_fleet_and_an_agent_does_not() {
    let running = Running::default();
    let access = TestAccess::with_fleet(running.clone());
    let status = json!({
        "running": true, "pid": 7, "url": null, "listens": null, "since": "1970-01-01T00:00:00.000Z", "workers": 3, "sandbox": null, "tests": [],
        "trees": "",
        "wanted": false, "mainTests": null,
    });
    assert_eq!(access.get("/fleet").1, status);
    assert_eq!(access.get("/doctor").1["items"][0]["level"], "warning");
    let agent = Actor::Agent { name: "coder".parse().unwrap(), role: kernel::config::Role::Lead };
    let request = access.request(Method::Post, "/fleet/stop", json!({"now": true}));
    assert_eq!(access.answer(&Request { actor: agent, ..request }).0, 403);
    assert_eq!(*running.0.lock().unwrap(), [false; 0]);
    assert_eq!(access.post("/fleet/stop", json!({"now": true})).1, json!({"stopping": true, "pid": 7}));
    assert_eq!(*running.0.lock().unwrap(), [true]);
    assert_eq!(TestAccess::new().post("/fleet/stop", json!({})).1, json!({"stopping": false, "pid": null}));
}

/// The log says that the fleet is wanted; only a process can run it.
#[test]
fn a_fleet_whose_process_is_gone_is_not_said_to_be_at_work() {
    let mut access = TestAccess::new();
    access.post("/tasks", json!({"id": "c-1", "title": "x"}));
    let start = Command {
        id: 99,
        at: 0,
        actor: Actor::System,
        token_for: None,
        key: None,
        ask: Ask::StartFleet { workers: 0 },
    };
    access.owner.handle().submit(start, None).unwrap();
    let why = |access: &TestAccess| {
        let (_, why) = access.get("/tasks/c-1/why");
        let guards = why["guards"].as_array().unwrap().clone();
        guards.into_iter().find(|guard| guard["guard"] == "fleetRunning").unwrap()
    };
    let expected = "the process that ran the fleet is gone";
    assert_eq!((&why(&access)["holds"], &why(&access)["detail"]), (&json!(false), &json!(expected)));
    access.control = Some(Box::new(Running::default()));
    assert_eq!(why(&access)["detail"], "the fleet is at work");
}

/// A price that nobody knows is counted as such wherever the sum is shown.
#[test]
fn steps_of_unknown_price_are_counted_for_task_worker_agent_and_run() {
    use kernel::command::{Happened, Outcome, Usage};
    let access = TestAccess::new();
    access.post("/tasks", json!({"id": "c-1", "title": "x"}));
    access.post("/workers", json!({"name": "A"}));
    assert_eq!(access.post("/workers/A/assign", json!({"task": "c-1"})).0, 200);
    let handle = access.owner.handle();
    let tell = |id: u128, ask: Ask| {
        let command =
            Command { id, at: 1_700_000_000_000, actor: Actor::System, token_for: None, key: None, ask };
        let answer = handle.submit(command, None).unwrap();
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    };
    let effect = |kind: &str| {
        let world = handle.world();
        let found = world.effects.iter().find(|(_, effect)| effect.kind() == kind);
        found.map(|(id, _)| id.clone()).unwrap_or_else(|| panic!("no {kind} in {:?}", world.effects))
    };
    tell(1_000, Ask::StartFleet { workers: 1 });
    let tree = Happened::TreeReady { tip: "t".into() };
    tell(1_001, Ask::Outcome(Outcome { effect: effect("prepare_tree"), what: tree }));
    let usage = Usage { cost: None, input_tokens: 10, output_tokens: 1 };
    let turn = Happened::Turn { turn: 1, calls: vec![], output: None, usage };
    tell(1_002, Ask::Outcome(Outcome { effect: effect("start_step"), what: turn }));
    for by in ["task", "worker", "agent", "run"] {
        let (_, cost) = access.get(&format!("/cost?by={by}"));
        assert_eq!(cost["items"][0]["unpricedSteps"], 1, "{by}: {cost}");
        assert_eq!(cost["total"]["unpricedSteps"], 1);
    }
    assert_eq!(access.get("/workers/A").1["unpricedSteps"], 1);
}

/// A page is made of what is in it, however long the list is.
#[test]
fn a_page_of_tasks_looks_at_no_more_tasks_than_it_shows() {
    let access = TestAccess::new();
    for number in 0..500 {
        access.post("/tasks", json!({"title": format!("{number}")}));
    }
    for number in [3, 300, 480] {
        access.post(&format!("/tasks/t-{number}/transitions"), json!({"to": "CANCELED"}));
    }
    let looked = |path: &str| {
        super::board::LOOKED_AT.with(|count| count.set(0));
        let (status, page) = access.get(path);
        assert_eq!(status, 200, "{page}");
        let titles: Vec<String> = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (super::board::LOOKED_AT.with(std::cell::Cell::get), titles, page["next"].clone())
    };
    let (first, ids, next) = looked("/tasks?limit=10");
    assert_eq!((first, ids.len(), ids[0].as_str(), ids[9].as_str()), (11, 10, "t-1", "t-10"));
    let (second, ids, _) = looked(&format!("/tasks?limit=10&after={}", next.as_str().unwrap()));
    assert_eq!((second, ids[0].as_str(), ids[9].as_str()), (11, "t-11", "t-20"));
    let (of_status, ids, next) = looked("/tasks?limit=10&status=CANCELED");
    assert_eq!(
        (of_status, ids, next),
        (3, ["t-3", "t-300", "t-480"].map(str::to_owned).to_vec(), Value::Null)
    );
    // Those of several statuses come in the order in which the tasks came.
    let (_, ids, _) = looked("/tasks?limit=3&status=CANCELED,INBOX");
    assert_eq!(ids, ["t-1", "t-2", "t-3"]);
    // Nor does one of the tasks that somebody is assigned to.
    for number in [7, 250, 470] {
        let assigned = json!({"to": "ASSIGNED", "assigneeIds": ["coder"]});
        access.post(&format!("/tasks/t-{number}/transitions"), assigned);
    }
    access.post("/tasks/t-250/transitions", json!({"to": "CANCELED"}));
    let (of_assignee, ids, _) = looked("/tasks?limit=10&assignee=coder");
    assert_eq!((of_assignee, ids), (3, ["t-7", "t-250", "t-470"].map(str::to_owned).to_vec()));
    let (of_assignee, ids, _) = looked("/tasks?limit=10&assignee=coder&status=CANCELED");
    assert_eq!((of_assignee, ids), (1, vec!["t-250".to_owned()]));
    // The last page says that it is the last.
    let (looked_at, ids, next) = looked("/tasks?limit=500");
    assert_eq!((looked_at, ids.len(), next), (500, 500, Value::Null));
}

/// Of a task that is over, `/overview` shows its id and counts it: both are in the index.
#[test]
fn an_overview_reads_no_task_that_is_over() {
    let access = TestAccess::new();
    for number in 0..300 {
        access.post("/tasks", json!({"title": format!("{number}")}));
    }
    let over: Vec<u32> = (1..=300).filter(|number| number % 60 != 0).collect();
    for number in &over {
        access.post(&format!("/tasks/t-{number}/transitions"), json!({"to": "CANCELED"}));
    }
    super::board::LOOKED_AT.with(|count| count.set(0));
    let (status, overview) = access.get("/overview");
    assert_eq!((status, super::board::LOOKED_AT.with(std::cell::Cell::get)), (200, 5), "{overview}");
    let counts = &overview["counts"];
    assert_eq!((&counts["tasks"], &counts["wanted"], &counts["left"]), (&json!(300), &json!(5), &json!(5)));
    let tasks = |column: &str| {
        let columns = overview["columns"].as_array().unwrap();
        let of = columns.iter().find(|found| found["column"] == column).unwrap();
        serde_json::from_value::<Vec<String>>(of["tasks"].clone()).unwrap()
    };
    let sorted = |numbers: &[u32]| {
        let mut ids: Vec<String> = numbers.iter().map(|number| format!("t-{number}")).collect();
        ids.sort();
        ids
    };
    assert_eq!(tasks("wait"), sorted(&[60, 120, 180, 240, 300]));
    assert_eq!(tasks("done"), sorted(&over));
}
