//! What agents write, as the readers of a run's durable stream are given it: while it is written, and in the same order afterwards.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use super::background::wait;
use super::claude::{project, work};
use super::policies::scenario;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A server of the repository, as a reader of streams sees it.
struct Server {
    host: String,
    token: String,
}

impl Server {
    fn of(repository: &Repository) -> Server {
        let url = repository.json("url")["url"].as_str().unwrap().to_owned();
        let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Server { host, token: repository.read(&repository.state("token")) }
    }

    fn ask(&self, path: &str) -> TcpStream {
        self.send(&format!("GET /v1/stream/{path}"), &self.token, "")
    }

    fn send(&self, line: &str, token: &str, body: &str) -> TcpStream {
        let Server { host, .. } = self;
        let mut stream = TcpStream::connect(host).unwrap();
        let length = body.len();
        let head =
            format!("{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close");
        let kind = format!("Content-Type: application/json\r\nContent-Length: {length}");
        write!(stream, "{head}\r\n{kind}\r\n\r\n{body}").unwrap();
        stream
    }

    /// What an agent tells of itself, which must be taken.
    #[track_caller]
    fn report(&self, path: &str, token: &str, body: &Value) {
        let mut answer = String::new();
        let mut stream = self.send(&format!("POST /api/v1{path}"), token, &body.to_string());
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{path} {body}: {answer}");
    }

    /// The head of an answer in small letters, and its body.
    fn get(&self, path: &str) -> (String, String) {
        let mut text = String::new();
        self.ask(path).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }

    /// All that follows an offset.
    fn events(&self, path: &str, offset: &str) -> Vec<Value> {
        let (head, body) = self.get(&format!("{path}?offset={offset}"));
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head} {body}"))
    }

    /// Reads what comes as it comes.
    fn follow(&self, path: &str) -> Live<'_> {
        let lines = self.lines(path, "-1");
        Live {
            server: self,
            path: path.to_owned(),
            lines,
            events: Vec::new(),
            offsets: Vec::new(),
            closed: false,
        }
    }

    fn lines(&self, path: &str, offset: &str) -> BufReader<TcpStream> {
        BufReader::new(self.ask(&format!("{path}?offset={offset}&live=sse")))
    }
}

/// A reader that stays.
struct Live<'s> {
    server: &'s Server,
    path: String,
    lines: BufReader<TcpStream>,
    events: Vec<Value>,
    /// After so many events, this offset was told.
    offsets: Vec<(usize, String)>,
    closed: bool,
}

impl Live<'_> {
    /// Reads one line. False: it is over.
    fn next(&mut self) -> bool {
        let mut line = String::new();
        if self.lines.read_line(&mut line).unwrap() == 0 {
            return false;
        }
        let Some(data) = line.strip_prefix("data:") else { return true };
        match serde_json::from_str(data).unwrap() {
            Value::Array(events) => self.events.extend(events),
            control => {
                let offset = control["streamNextOffset"].as_str().unwrap().to_owned();
                self.offsets.push((self.events.len(), offset));
                self.closed = control["streamClosed"] == true;
            }
        }
        true
    }

    /// Reads until the stream is closed. A connection that ends before that goes on where it was.
    fn read_to_the_end(&mut self) {
        while !self.closed {
            if !self.next() {
                let (known, offset) = self.offsets.last().expect("an offset was told");
                self.events.truncate(*known);
                self.lines = self.server.lines(&self.path, offset);
            }
        }
        // The server ends it.
        while self.next() {}
    }

    /// Reads until a piece with this text has come.
    #[track_caller]
    fn until(&mut self, text: &str) {
        while !self.events.contains(&token(text)) {
            assert!(self.next(), "{:?}", self.events);
        }
    }
}

fn token(text: &str) -> Value {
    json!({ "type": "stream:token", "text": text })
}

/// The pieces, one behind the other.
fn words(events: &[Value]) -> String {
    let pieces = events.iter().filter(|event| event["type"] == "stream:token");
    pieces.map(|event| event["text"].as_str().unwrap()).collect()
}

fn place(events: &[Value], what: impl Fn(&Value) -> bool) -> usize {
    events.iter().position(what).unwrap_or_else(|| panic!("{events:?}"))
}

#[track_caller]
fn wait_for_run(repository: &Repository, run: &str) {
    wait("the run", || {
        let runs = repository.json("runs");
        runs.as_array()?.iter().any(|known| known["id"] == run).then_some(())
    });
}

#[test]
fn what_an_agent_writes_reaches_a_reader_before_its_message_is_complete_and_reads_the_same_ever_after() {
    let mut replies = work();
    replies[0]["text"] = json!("I look around first.");
    replies[0]["until"] = json!("go");
    let repository = project("spoken", "", "", &json!([replies]));
    let fleet = repository.start("run --serve --port 0");
    wait_for_run(&repository, "c-1.1");
    let server = Server::of(&repository);
    let mut live = server.follow("runs/c-1.1");
    live.until("I ");
    assert!(!live.events.iter().any(|event| event["type"] == "tool:start"), "{:?}", live.events);
    repository.go("c-1");
    live.read_to_the_end();
    fleet.wait_for("c-1 landed");

    let (told, offsets) = (live.events, live.offsets);
    assert_eq!(words(&told), "I look around first.All is there.\nDONE");
    let calls = place(&told, |event| event["type"] == "tool:start");
    let first = place(&told, |event| *event == token("first."));
    assert!(first < calls && calls < place(&told, |event| *event == token("All ")), "{told:?}");
    assert_eq!(told.last().unwrap()["type"], "agent:cleanup");

    assert_eq!(server.events("runs/c-1.1", "-1"), told);
    assert_eq!(words(&server.events("agents/coder", "-1")), words(&told));
    fleet.stop();
    let fleet = repository.start("serve --port 0");
    let server = Server::of(&repository);
    assert_eq!(server.events("runs/c-1.1", "-1"), told, "after a restart");
    for (known, offset) in &offsets {
        assert_eq!(server.events("runs/c-1.1", offset), told[*known..], "behind {offset}");
    }
    let (_, end) = offsets.last().unwrap();
    let (head, _) = server.get(&format!("runs/c-1.1?offset={end}&live=long-poll"));
    assert!(head.starts_with("http/1.1 204") && head.contains("stream-closed: true"), "{head}");
    assert!(!server.get("agents/coder?offset=-1").0.contains("stream-closed"));
    fleet.stop();
}

/// The step outlives its server: what was read before is not told again, and nothing is left out.
#[test]
fn a_step_that_is_found_again_goes_on_in_the_stream_where_the_killed_server_was() {
    let mut replies = work();
    replies[0]["text"] = json!("I look around first.");
    replies[0]["until"] = json!("go");
    let repository = project("spoken-killed", "", "", &json!([replies]));
    let fleet = repository.start("run --serve --port 0");
    wait_for_run(&repository, "c-1.1");
    let server = Server::of(&repository);
    let mut live = server.follow("runs/c-1.1");
    live.until("I ");
    while live.offsets.last().is_none_or(|(known, _)| *known < live.events.len()) {
        assert!(live.next());
    }
    fleet.kill();
    let fleet = repository.start("run --serve --port 0");
    repository.go("c-1");
    fleet.wait_for("c-1 landed");
    let server = Server::of(&repository);
    let all = server.events("runs/c-1.1", "-1");
    assert_eq!(words(&all), "I look around first.All is there.\nDONE");
    assert_eq!(all[..live.events.len()], live.events);
    let (known, offset) = live.offsets.last().unwrap();
    assert_eq!(server.events("runs/c-1.1", offset), all[*known..]);
    fleet.stop();
}

/// Where only a fleet ran, its words are there for whoever is served later, each before what came of it.
#[test]
fn a_run_that_nobody_watched_is_read_in_the_order_in_which_it_happened() {
    let steps = r#"{ say = "First words." }, { write = "{task}.check", text = "true\n" }, { say = "Second words." }, { commit = "Do" }, { done = true }"#;
    let repository = Repository::new("spoken-unseen", &scenario(&[steps]), &["t-1"]);
    repository.ok("run --until-idle");
    let fleet = repository.start("serve --port 0");
    let told = Server::of(&repository).events("runs/t-1.1", "-1");
    let words =
        |text: &str| place(&told, |event| event["text"].as_str().is_some_and(|said| said.contains(text)));
    let calls = |tool: &str| place(&told, |event| event["type"] == "tool:result" && event["tool"] == tool);
    assert!(words("First") < calls("Write") && calls("Write") < words("Second"), "{told:?}");
    assert!(words("Second") < calls("Bash"), "{told:?}");
    fleet.stop();
}

#[test]
fn an_aborted_run_is_closed_for_those_who_wait_at_its_end() {
    let steps = r#"{ turn = "Waiting." }, { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { done = true }"#;
    let repository = Repository::new("spoken-abort", &scenario(&[steps]), &["t-1"]);
    let fleet = repository.start("run --serve --port 0");
    wait_for_run(&repository, "t-1.1");
    let server = Server::of(&repository);
    let mut live = server.follow("runs/t-1.1");
    live.until("Waiting.\n");
    repository.ok("abort t-1 --reason enough");
    live.read_to_the_end();
    assert_eq!(server.events("runs/t-1.1", "-1"), live.events);
    fleet.stop();
}

/// The stream of a run that an agent reports itself is closed with the run, and not with its task.
#[test]
fn a_run_of_an_agent_outside_is_closed_when_it_is_over() {
    let repository = Repository::new("spoken-outside", &scenario(&[]), &[]);
    let fleet = repository.start("serve --port 0");
    let server = Server::of(&repository);
    let made = repository.json("token create --name player --role specialist");
    let token = made["token"].as_str().unwrap();
    repository.ok("task add x --id c-1");
    repository.ok("task assign c-1 player");
    repository.ok("task move c-1 IN_PROGRESS --plan a --plan b --plan c");
    server.report("/runs", token, &json!({ "task": "c-1", "prompt": "do it" }));
    let mut live = server.follow("runs/c-1.1");
    let tell = |event: Value| server.report("/runs/c-1.1/events", token, &event);
    tell(json!({ "type": "STEP", "turn": 1, "toolCalls": [] }));
    tell(json!({ "type": "COMPLETE", "result": "made it", "turnCount": 1 }));
    let (head, _) = server.get("runs/c-1.1?offset=-1");
    assert!(head.contains("stream-up-to-date: true") && head.contains("stream-closed: true"), "{head}");
    live.read_to_the_end();
    assert_eq!(server.events("runs/c-1.1", "-1"), live.events);
    fleet.stop();
}
