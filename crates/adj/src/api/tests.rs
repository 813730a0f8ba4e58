//! Requests as a transport would make them, on a project in memory.

use super::*;
use runtime::log::MemoryLog;
use runtime::owner::Owner;
use serde_json::json;

struct Place {
    owner: Owner,
    asked: std::cell::Cell<u128>,
}

impl Place {
    fn new() -> Place {
        Place { owner: Owner::open(Box::new(MemoryLog::new())).unwrap(), asked: Default::default() }
    }

    fn request(&self, method: Method, path: &str, body: Value) -> Request {
        let id = self.asked.get() + 1;
        self.asked.set(id);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Request {
            method,
            path: format!("/api/v1{path}"),
            query: query.split('&').filter_map(pair).collect(),
            body,
            actor: Actor::Human("ann".into()),
            id,
            at: 1_700_000_000_000 + id as i64,
            x_idempotency_key: None,
            idempotency_key: None,
        }
    }

    fn answer(&self, request: &Request) -> (u16, Value) {
        let handle = self.owner.handle();
        let site = Site { project: &handle, outside: &Absent, control: None };
        let Response { status, body } = answer(&site, request);
        (status, body)
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.answer(&self.request(Method::Get, path, Value::Null))
    }

    fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.answer(&self.request(Method::Post, path, body))
    }
}

#[test]
fn a_task_is_added_moved_and_read_back() {
    let site = Place::new();
    let (status, task) = site.post("/tasks", json!({"id": "c-1", "title": "x", "dependsOn": []}));
    assert_eq!((status, &task["status"]), (201, &json!("INBOX")));
    assert_eq!(task["createdAt"], "2023-11-14T22:13:20.001Z");
    let (status, moved) =
        site.post("/tasks/c-1/transitions", json!({"to": "assigned", "assigneeIds": ["coder"]}));
    assert_eq!(
        (status, &moved["success"], &moved["task"]["status"]),
        (200, &json!(true), &json!("ASSIGNED"))
    );
    let (_, list) = site.get("/tasks?status=ASSIGNED&assignee=coder");
    assert_eq!(list["items"][0]["id"], "c-1");
    let (_, history) = site.get("/tasks/c-1/history");
    assert_eq!(
        history["items"],
        json!([{
            "timestamp": "2023-11-14T22:13:20.002Z", "event": "state_transition", "machine": "task",
            "agentId": "c-1", "from": "INBOX", "to": "ASSIGNED", "trigger": "move ASSIGNED",
        }])
    );
}

#[test]
fn a_refused_transition_says_what_is_missing_and_what_is_allowed() {
    let site = Place::new();
    site.post("/tasks", json!({"id": "c-1", "title": "x"}));
    site.post("/tasks/c-1/transitions", json!({"to": "ASSIGNED", "assigneeIds": ["coder"]}));
    let (status, problem) = site.post("/tasks/c-1/transitions", json!({"to": "IN_PROGRESS"}));
    assert_eq!(status, 422);
    assert_eq!(problem["success"], false);
    assert_eq!(
        problem["errors"],
        json!([{"field": "workPlan", "message": "Work plan required for IN_PROGRESS"}])
    );
    assert_eq!(problem["allowedTransitions"], json!(["INBOX", "IN_PROGRESS", "CANCELED"]));
    assert_eq!(site.post("/tasks/c-1/transitions", json!({"to": "DONE"})).0, 409);
    assert_eq!(site.post("/tasks/c-9/transitions", json!({"to": "DONE"})).0, 404);
    let intern = Actor::Agent { name: "kid".parse().unwrap(), role: kernel::config::Role::Intern };
    let request = site.request(Method::Post, "/tasks/c-1/transitions", json!({"to": "CANCELED"}));
    let (status, problem) = site.answer(&Request { actor: intern, ..request });
    assert_eq!((status, &problem["allowedTransitions"]), (403, &json!([])));
}

#[test]
fn what_is_not_understood_is_bad_input_and_says_which_part() {
    let site = Place::new();
    site.post("/tasks", json!({"id": "c-1", "title": "x"}));
    let bad = [
        ("/tasks", json!({"title": "x", "colour": "red"}), "unknown field `colour`"),
        ("/tasks", json!({"title": 3}), "invalid type: integer `3`"),
        ("/tasks", json!({"title": "x", "type": "poem"}), "unknown variant `poem`"),
        ("/tasks", json!({"title": "x", "id": "../x"}), "not a valid name"),
        ("/tasks", json!([]), "invalid length 0"),
        ("/tasks/c-1/transitions", json!({"to": "LIMBO"}), "no status `LIMBO`"),
        ("/tasks/c-1/transitions", json!({}), "`to` is missing"),
        ("/tasks/c-1/transitions", json!({"to": "DONE", "role": "human"}), "unknown field `role`"),
        ("/tasks/-rf/comments", json!({"text": "x"}), "must begin with a letter"),
        ("/workers", json!({"name": "a b"}), "not a valid name"),
    ];
    for (path, body, said) in bad {
        let (status, problem) = site.post(path, body);
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 400 && detail.contains(said), "{path}: {problem}");
    }
    assert_eq!(site.get("/nowhere").0, 404);
    assert_eq!(site.get("/tasks?limit=0").0, 400);
    assert_eq!(site.get("/tasks?after=x").0, 400);
}

#[test]
fn a_key_answers_twice_what_was_done_once() {
    let site = Place::new();
    let keyed = |x: Option<&str>, plain: Option<&str>| Request {
        x_idempotency_key: x.map(str::to_owned),
        idempotency_key: plain.map(str::to_owned),
        ..site.request(Method::Post, "/tasks", json!({"title": "x"}))
    };
    let (status, first) = site.answer(&keyed(Some("k"), None));
    let (_, again) = site.answer(&keyed(None, Some("k")));
    assert_eq!((status, &first), (201, &again));
    assert_eq!(site.answer(&keyed(Some("k"), Some("l"))).0, 400);
    assert_eq!(site.answer(&keyed(Some(""), None)).0, 400);
    assert_eq!(site.get("/tasks").1["items"].as_array().unwrap().len(), 1);
}

#[test]
fn lists_are_read_page_by_page() {
    let site = Place::new();
    for n in 0..7 {
        site.post("/tasks", json!({"title": format!("task {n}")}));
    }
    let mut titles = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let (_, page) = site.get(&format!("/tasks?limit=3&after={after}"));
        titles.extend(page["items"].as_array().unwrap().iter().map(|task| task["title"].clone()));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    let expected: Vec<Value> = (0..7).map(|n| json!(format!("task {n}"))).collect();
    assert_eq!(titles, expected);
    let (_, events) = site.get("/events?limit=2");
    assert_eq!(events["items"][0]["kind"], "writer_seen");
    assert_eq!(events["next"], "2");
    assert_eq!(site.get("/events?after=8").1, json!({"items": [], "next": null}));
}

#[test]
fn workers_get_free_letters_and_say_why_they_wait() {
    let site = Place::new();
    for name in ["A", "B"] {
        assert_eq!(site.post("/workers", json!({})).1["name"], name);
    }
    assert_eq!(site.post("/workers", json!({"name": "A"})).0, 409);
    let (_, why) = site.get("/workers/A/why");
    assert_eq!(why["state"], "worker.idle");
    assert_eq!(site.get("/workers/Q/why").0, 404);
    assert_eq!(site.post("/workers/A/merge", json!({})).0, 409);
    assert_eq!(site.get("/cost?by=day").1["total"]["usd"], 0.0);
    assert_eq!(site.get("/machines/task").1["initial"], "INBOX");
}
