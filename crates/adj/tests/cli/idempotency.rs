//! Idempotency keys, and the task table over REST: what a caller is answered, and answered again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::owner::REVIEW;
use super::project::Repository;
use super::server::{Answer, Server};
use serde_json::{Value, json};

/// A request under a key, as the header has it.
fn keyed(server: &Server, line: &str, token: &str, key: &str, body: &Value) -> Answer {
    let (host, body) = (server.host(), body.to_string());
    let head = format!(
        "{line} HTTP/1.1\nHost: {host}\nAuthorization: Bearer {token}\nIdempotency-Key: {key}\n\
         Content-Type: application/json\nContent-Length: {}",
        body.len()
    );
    server.raw(&head, body.as_bytes())
}

#[test]
fn a_key_has_at_most_255_bytes_and_its_quotes_count() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let own = std::fs::read_to_string(here.state("token")).unwrap();
    let longest = "k".repeat(255);
    for (key, status) in [
        (longest.clone(), 201),
        (format!("{longest}k"), 400),
        (format!("\"{}\"", &longest[2..]), 201),
        (format!("\"{}\"", &longest[1..]), 400),
        ("\"\"".to_owned(), 400),
    ] {
        let answer = keyed(&server, "POST /api/v1/tasks", &own, &key, &json!({"title": "x"}));
        assert_eq!(answer.status, status, "{key}: {}", answer.text);
    }
}

/// Byte for byte, whatever happened to the task since, after a restart and after a kill; and for nobody else.
#[test]
fn a_key_is_its_callers_own_and_a_replay_is_the_first_response() {
    let here = Repository::new();
    for id in ["c-1", "c-2", "c-3"] {
        here.ok(&["task", "add", "x", "--id", id]);
    }
    let server = Server::start(&here, &[]);
    let own = std::fs::read_to_string(here.state("token")).unwrap();
    let ben = here.token_for("ben", "intern");
    let assign = json!({"to": "ASSIGNED", "assigneeIds": ["ben"]});
    let to = |server: &Server, token: &str, key: &str| {
        keyed(server, "POST /api/v1/tasks/c-1/transitions", token, key, &assign)
    };
    // An intern's refusal under the key is the intern's alone.
    assert_eq!(to(&server, &ben, "k1").status, 403);
    let first = to(&server, &own, "k1");
    assert_eq!((first.status, &first.json()["task"]["status"]), (200, &json!("ASSIGNED")), "{}", first.text);
    assert_eq!(to(&server, &ben, "k1").status, 403, "who repeats a person's key is told nothing of it");
    assert_eq!(to(&server, &own, "\"k1\"").text, first.text, "the draft has the key in quotes");
    let add = |server: &Server| {
        let body = json!({"title": "once"});
        keyed(server, "POST /api/v1/tasks", &own, "new", &body)
    };
    let added = add(&server);
    let depends = |server: &Server| {
        let body = json!({"on": "c-3"});
        keyed(server, "POST /api/v1/tasks/c-2/dependencies", &own, "dep", &body)
    };
    let depended = depends(&server);
    assert_eq!((added.status, depended.status), (201, 201), "{}{}", added.text, depended.text);
    // The tasks move on.
    here.ok(&["task", "move", "c-1", "INBOX"]);
    here.ok(&["task", "edit", "t-1", "--title", "twice"]);
    here.ok(&["task", "dep", "rm", "c-2", "c-3"]);
    let all = |server: &Server, when: &str| {
        for (answer, first) in
            [(to(server, &own, "k1"), &first), (add(server), &added), (depends(server), &depended)]
        {
            assert_eq!((answer.status, &answer.text), (first.status, &first.text), "{when}");
        }
        assert_eq!(here.json(&["task", "show", "c-1"])["status"], "INBOX", "nothing is done twice");
    };
    all(&server, "in the same process");
    drop(server);
    let server = Server::start(&here, &[]);
    all(&server, "after a restart");
    here.ok(&["task", "cancel", "c-1"]);
    here.ok(&["task", "add", "x", "--id", "c-9"]);
    let killed = std::process::Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap();
    assert!(killed.success());
    drop(server);
    let server = Server::start(&here, &[]);
    assert_eq!(to(&server, &own, "k1").text, first.text, "after a kill");
    let other = keyed(&server, "POST /api/v1/tasks/c-1/transitions", &own, "k1", &json!({"to": "CANCELED"}));
    assert_eq!(other.json()["code"], "KEY_REUSED", "{}", other.text);
}

/// The rows of the task table that a client meets over REST.
#[test]
fn what_a_move_brings_is_checked_and_what_came_of_it_is_shown() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let post = |path: &str, body: Value| server.post(&format!("/api/v1{path}"), &body);
    let moved = |id: &str, body: Value| post(&format!("/tasks/{id}/transitions"), body);
    // A task that was added with a plan can be started.
    let planned = json!({"title": "x", "id": "c-1", "plan": ["look", "change", "test"]});
    assert_eq!(post("/tasks", planned).status, 201);
    moved("c-1", json!({"to": "ASSIGNED", "assigneeIds": ["tim"]}));
    let tim = here.token_for("tim", "specialist");
    let opened = server.ask("POST /api/v1/runs", &tim, &json!({"task": "c-1", "prompt": "do it"}));
    assert_eq!(opened.status, 201, "{}", opened.text);
    assert_eq!(here.json(&["task", "show", "c-1"])["workPlan"]["bullets"], json!(["look", "change", "test"]));

    here.ok(&["task", "add", "y", "--id", "c-2"]);
    let by_state = moved("c-2", json!({"to": "REVIEW"})).json();
    assert_eq!(by_state["errors"][0]["field"], "status", "{by_state}");
    moved("c-2", json!({"to": "ASSIGNED", "assigneeIds": ["coder"]}));
    let plan = |bullet: &str, cost: f64| {
        let plan = json!({"bullets": [bullet, bullet, bullet], "estimatedCost": cost});
        moved("c-2", json!({"to": "IN_PROGRESS", "workPlan": plan}))
    };
    assert_eq!(plan("\u{200b}", 1.0).status, 422, "nobody sees a zero-width space");
    assert_eq!(plan("do it", -5.0).status, 422);
    assert_eq!(plan("do it", 5.0).status, 200);
    let reader = here.token_for("rea", "reader");
    let seen = server.ask("GET /api/v1/tasks/c-2", &reader, &Value::Null).json();
    assert_eq!(seen["allowedTransitions"], json!([]), "whoever only reads moves nothing");
    let mut review: Value = serde_json::from_str(REVIEW).unwrap();
    review["to"] = json!("REVIEW");
    review["deliverable"]["artifacts"] = json!(["a.txt", {"name": "b", "bytes": 3}]);
    let handed_in = moved("c-2", review.clone()).json();
    assert_eq!(
        handed_in["task"]["submission"]["deliverable"]["artifacts"],
        review["deliverable"]["artifacts"]
    );
    moved("c-2", json!({"to": "IN_PROGRESS", "feedback": "first: more tests"}));
    review["deliverable"]["artifacts"] = json!([]);
    let empty = moved("c-2", review.clone()).json();
    assert_eq!(empty["task"]["submission"]["deliverable"]["artifacts"], json!([]));
    let approval = json!({"approvalId": "q999", "decisionNote": "fine"});
    let unknown = moved("c-2", json!({"to": "DONE", "approval": approval}));
    assert!(unknown.status == 422 && unknown.text.contains("q999"), "{}", unknown.text);
    // The loop summary has all that was asked for, and is the system's.
    for feedback in ["second: names", "third: docs", "fourth: speed"] {
        moved("c-2", json!({"to": "IN_PROGRESS", "feedback": feedback}));
        moved("c-2", review.clone());
    }
    let task = here.json(&["task", "show", "c-2"]);
    let comments = task["comments"].as_array().unwrap();
    let summary = comments
        .iter()
        .find(|comment| comment["text"].as_str().unwrap().starts_with("Loop Summary"))
        .unwrap();
    for feedback in ["first: more tests", "second: names", "third: docs", "fourth: speed"] {
        assert!(summary["text"].as_str().unwrap().contains(feedback), "{summary}");
    }
    assert_eq!((&task["status"], &summary["by"]), (&json!("BLOCKED"), &json!("system")));
    let cause = "and human:local asked for changes again";
    assert!(summary["text"].as_str().unwrap().contains(cause), "{summary}");

    // A decision that leads to DONE is the completion's approval, with its own note.
    here.ok(&["task", "add", "z", "--id", "c-3"]);
    moved("c-3", json!({"to": "ASSIGNED", "assigneeIds": ["coder"]}));
    moved("c-3", json!({"to": "IN_PROGRESS", "workPlan": {"bullets": ["a", "b", "c"]}}));
    moved("c-3", json!({"to": "NEEDS_APPROVAL", "cause": "escalation", "feedback": "is it done?"}));
    let question = here.json(&["task", "show", "c-3"])["approval"].as_str().unwrap().to_owned();
    let decide = |note: &str| {
        let body = json!({"approve": true, "to": "DONE", "note": note});
        post(&format!("/approvals/{question}/decision"), body)
    };
    assert_eq!(decide("").status, 422, "a note is not made up");
    assert_eq!(decide("all of it is there").status, 200);
    let completion = here.json(&["task", "show", "c-3"])["completion"].clone();
    assert_eq!(
        (&completion["approvalId"], &completion["decisionNote"]),
        (&json!(question), &json!("all of it is there"))
    );

    // Who approves and says nothing has said nothing.
    here.ok(&["task", "add", "q", "--id", "c-4"]);
    moved("c-4", json!({"to": "ASSIGNED", "assigneeIds": ["coder"]}));
    moved("c-4", json!({"to": "IN_PROGRESS", "workPlan": {"bullets": ["a", "b", "c"]}}));
    assert_eq!(moved("c-4", review).status, 200);
    assert_eq!(post("/tasks/c-4/review", json!({"approve": true})).status, 200);
    let records = here.json(&["history", "c-4", "--all"]);
    let approved = records.as_array().unwrap().iter().find(|record| record["kind"] == "task_approved");
    assert_eq!(approved.unwrap_or_else(|| panic!("{records}"))["data"]["note"], "", "{records}");
    let completion = here.json(&["task", "show", "c-4"])["completion"].clone();
    assert_eq!(completion["decisionNote"], "no note was given", "{completion}");
}

/// Somebody else writes to the log's file, so the first request is still being decided when the second comes.
#[test]
fn a_key_that_is_being_decided_is_refused_with_the_time_to_ask_again() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let body = json!({"title": "once", "id": "c-1"});
    let database = here.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (answers, answered) = std::sync::mpsc::channel();
    let (refused, done) = std::thread::scope(|scope| {
        for _ in 0..2 {
            let (answers, server, body) = (answers.clone(), &server, &body);
            scope.spawn(move || {
                answers.send(keyed(server, "POST /api/v1/tasks", server.token(), "k1", body)).unwrap()
            });
        }
        let refused = answered.recv().unwrap();
        database.execute_batch("ROLLBACK").unwrap();
        (refused, answered.recv().unwrap())
    });
    let document = refused.json();
    assert_eq!((refused.status, &document["code"]), (409, &json!("IN_FLIGHT")), "{}", refused.text);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(document["errors"][0]["field"], "idempotencyKey", "{document}");
    assert_eq!(done.status, 201, "{}", done.text);
}

/// A rule, the API and the command line alike.
#[test]
fn every_conflict_says_in_its_errors_what_is_wrong() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    let server = Server::start(&here, &[]);
    let again = server.post("/api/v1/tasks", &json!({"title": "x", "id": "c-1"}));
    let document = again.json();
    assert_eq!((again.status, &document["code"]), (409, &json!("EXISTS")), "{}", again.text);
    assert_eq!(document["errors"], json!([{"field": "state", "message": document["detail"]}]));
    let add =
        |title: &str| keyed(&server, "POST /api/v1/tasks", server.token(), "k", &json!({"title": title}));
    assert_eq!(add("y").status, 201);
    let reused = add("z").json();
    assert_eq!(reused["errors"], json!([{"field": "idempotencyKey", "message": reused["detail"]}]));
    let printed = here.command(&["task", "add", "x", "--id", "c-1", "--json"]).output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["errors"], document["errors"], "{printed}");
}
