//! The rows of live screens, as a page reads them: all of them, then what changes, across a restart of the server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::project::Repository;
use super::server::Server;
use serde_json::{Value, json};

/// A page that follows: each event with its number, kind and content.
struct Page(BufReader<TcpStream>);

impl Page {
    fn open(server: &Server, after: Option<u64>) -> Page {
        let mut stream = TcpStream::connect(server.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let query = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let head = format!(
            "GET /api/v1/view{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
            server.host(),
            server.token()
        );
        stream.write_all(head.as_bytes()).unwrap();
        Page(BufReader::new(stream))
    }

    /// The next event that is of this kind and of which this is true.
    fn until(&mut self, kind: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut event = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended without such a {kind}");
            if let Some(name) = line.strip_prefix("event: ") {
                event = name.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|_| event == kind) {
                let data: Value = serde_json::from_str(data.trim()).unwrap();
                if is(&data) {
                    return data;
                }
            }
        }
    }
}

fn has_task<'v>(rows: &'v Value, id: &str) -> Option<&'v Value> {
    rows["tasks"].as_array()?.iter().find(|task| task["id"] == id)
}

#[test]
fn a_page_gets_all_rows_and_then_those_that_change_and_goes_on_after_a_restart() {
    let here = Repository::new();
    here.ok(&["task", "add", "First"]);
    let server = Server::start(&here, &[]);
    let mut page = Page::open(&server, None);
    let view = page.until("view", |_| true);
    let first = has_task(&view, "t-1").unwrap();
    assert_eq!((&first["title"], &first["status"]), (&json!("First"), &json!("INBOX")));
    assert_eq!(first["lines"][0]["text"], "the fleet does not run");
    let columns: Vec<&str> =
        view["columns"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(columns.len(), 8, "{columns:?}");

    // Only what changed comes again, with a larger number.
    here.ok(&["task", "add", "Second"]);
    let change = page.until("change", |change| has_task(change, "t-2").is_some());
    assert!(change["seq"].as_u64() > view["seq"].as_u64());
    let noted = has_task(&change, "t-2").unwrap();
    assert_eq!(noted["note"], "fleetRunning", "what holds for both stands in the column: {noted}");
    let note = change["columns"].as_array().unwrap().iter().find(|row| row["id"] == "INBOX").unwrap();
    assert_eq!(note["notes"][0]["text"], "2 wait: the fleet does not run");
    // Something comes also where nothing changes.
    page.until("heartbeat", |beat| beat["seq"].as_u64() >= change["seq"].as_u64());
    drop(page);
    drop(server);

    here.ok(&["task", "cancel", "t-1"]);
    let server = Server::start(&here, &[]);
    let mut page = Page::open(&server, change["seq"].as_u64());
    let again = page.until("view", |_| true);
    assert_eq!(has_task(&again, "t-1").unwrap()["status"], "CANCELED");
    // A page of this server that was away for a moment gets no more than it missed.
    drop(page);
    let mut page = Page::open(&server, again["seq"].as_u64());
    here.ok(&["task", "add", "Third"]);
    let missed = page.until("change", |change| has_task(change, "t-3").is_some());
    assert!(has_task(&missed, "t-2").is_none_or(|row| row["seq"].as_u64() == missed["seq"].as_u64()));
}

#[test]
fn what_waits_says_what_happens_on_yes_and_on_no_and_which_request_says_it() {
    let here = Repository::new();
    here.ok(&["task", "add", "Depended on"]);
    here.ok(&["task", "add", "Dependent"]);
    here.ok(&["task", "dep", "add", "t-2", "t-1"]);
    here.ok(&["task", "cancel", "t-1"]);
    let server = Server::start(&here, &[]);
    let view = server.get("/api/v1/view").json();
    let waiting = &view["waiting"][0];
    assert_eq!((&waiting["kind"], &waiting["task"]), (&json!("dead_dependency"), &json!("t-2")));
    let yes = waiting["actions"].as_array().unwrap().iter().find(|action| action["answer"] == "yes").unwrap();
    assert_eq!(yes["happens"], json!(["Lets it begin without the other task."]));
    let request = &yes["request"];
    let line =
        format!("{} /api/v1{}", request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    let answer = server.ask(&line, server.token(), &Value::Null);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(server.get("/api/v1/view").json()["waiting"], json!([]));
}

/// The words of the moves are those of the task machine: what they allow is taken, and what they refuse is refused.
#[test]
fn the_moves_of_the_terms_are_those_that_are_taken() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let terms = server.get("/api/v1/terms").json();
    let moves = terms["moves"].as_array().unwrap();
    assert_eq!(moves.len(), 8 * 7);
    for row in moves.iter().filter(|row| row["from"] == "INBOX") {
        let id = here.json(&["task", "add", "Moved"])["id"].as_str().unwrap().to_owned();
        let fields: Vec<&str> =
            row["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect();
        let body = match fields[..] {
            [] => json!({"to": row["to"]}),
            ["assigneeIds"] => json!({"to": row["to"], "assigneeIds": ["coder"]}),
            _ => panic!("{row}"),
        };
        let answer = server.post(&format!("/api/v1/tasks/{id}/transitions"), &body);
        assert_eq!(answer.status == 200, row["allowed"] == true, "{row}: {}", answer.text);
    }
}
