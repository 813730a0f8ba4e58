//! Whoever reads slowly, or waits: what they cost, and how they end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::project::Repository;
use super::server::Server;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;
use serde_json::{Value, json};

/// So many readers that take nothing cost this much together, whatever they read.
const READERS: usize = 200;
const COST_KIB_MAX: u64 = 64 << 10;

/// A number of the process, in KiB: `VmRSS` or `VmHWM`.
fn memory(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A request that is sent, and of whose answer nothing is read.
fn begin(server: &Server, token: &str, path: &str, accept: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.host()).unwrap();
    setsockopt(&stream, RcvBuf, &(4 << 10)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n",
        server.host()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// The status of an answer, and nothing after it.
fn status(stream: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";

/// Slow: two hundred read each of eleven kinds of answer, each from a server of its own.
#[test]
fn two_hundred_readers_that_take_nothing_cost_little_memory_whatever_they_read() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let token = server.token().to_owned();
    let text = "x".repeat(60 << 10);
    for number in 0..60 {
        let task = json!({"id": format!("t-{number}"), "title": "large", "body": text});
        assert_eq!(server.post("/api/v1/tasks", &task).status, 201);
    }
    let kind = "Content-Type: application/json";
    let put = |line: &str, body: &str| {
        let head = format!(
            "{line} HTTP/1.1\nHost: {}\nAuthorization: Bearer {token}\n{kind}\nContent-Length: {}",
            server.host(),
            body.len()
        );
        assert!(server.raw(&head, body.as_bytes()).status < 300);
    };
    put("PUT /v1/stream/large", "");
    for _ in 0..6 {
        put("POST /v1/stream/large", &format!("\"{}\"", "y".repeat(1 << 20)));
    }
    let kinds = [
        ("/api/v1/events?limit=1000", JSON),
        ("/api/v1/history?all=true&limit=1000", JSON),
        ("/api/v1/tasks?limit=1000", JSON),
        ("/api/v1/board", JSON),
        ("/api/v1/events", SSE),
        ("/api/v1/export", "application/x-ndjson"),
        ("/v1/stream/log?offset=-1", JSON),
        ("/v1/stream/log?offset=-1&live=sse", SSE),
        ("/v1/stream/large?offset=-1", JSON),
        ("/v1/stream/large?offset=-1&live=sse", SSE),
        ("/v1/stream/large?offset=-1&live=long-poll", JSON),
    ];
    drop(server);
    // A server for each of them: what one kind cost, and what the allocator has kept of it, is neither gain nor loss of another.
    for (path, accept) in kinds {
        let server = Server::start(&here, &[]);
        // Once, so that what the server keeps for all of them is there.
        assert_eq!(status(&mut begin(&server, &token, path, accept)), 200, "{path}");
        let before = memory(&server, "VmRSS");
        let mut readers: Vec<TcpStream> =
            (0..READERS).map(|_| begin(&server, &token, path, accept)).collect();
        let answers: Vec<u16> = readers.iter_mut().map(status).collect();
        let served = answers.iter().filter(|status| **status == 200).count();
        let expected = answers.iter().all(|it| [200, 429, 503].contains(it));
        assert!(served > 0 && expected, "{path}: {answers:?}");
        // Somebody else is served meanwhile.
        assert_eq!(here.json(&["task", "show", "t-1"])["id"], "t-1");
        // The most that it ever was.
        let cost = memory(&server, "VmHWM").saturating_sub(before);
        println!("{path}: {served} of {READERS} are served, at most {cost} KiB more");
        assert!(cost <= COST_KIB_MAX, "{READERS} readers of {path} cost {cost} KiB");
    }
    let server = Server::start(&here, &[]);
    // A page of large items ends early, and goes on.
    let mut after = "0".to_owned();
    let mut read = 0;
    loop {
        let page = server.get(&format!("/api/v1/events?limit=1000&after={after}")).json();
        read += page["items"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(read as u64, server.get("/api/v1/board").json()["seq"].as_u64().unwrap());
}

/// The lines of an answer, from its head to its end.
fn lines(stream: &TcpStream) -> impl Iterator<Item = String> + use<> {
    BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok)
}

/// How long it takes until nothing more comes, and what came.
fn until_over(mut stream: TcpStream) -> (Duration, String) {
    let (since, mut text) = (Instant::now(), Vec::new());
    let _ = stream.read_to_end(&mut text);
    (since.elapsed(), String::from_utf8_lossy(&text).into_owned())
}

/// Readers of every kind that does not end by itself: each has begun when this returns.
fn open_readers(server: &Server, token: &str) -> Vec<(&'static str, TcpStream)> {
    let kinds = [
        ("/api/v1/events", SSE),
        ("/v1/stream/log?offset=now&live=sse", SSE),
        ("/v1/stream/mine?offset=now&live=sse", SSE),
    ];
    let mut readers = Vec::new();
    for (path, accept) in kinds {
        let stream = begin(server, token, path, accept);
        assert!(lines(&stream).any(|line| line.starts_with("data:")), "{path}: it has begun");
        readers.push((path, stream));
    }
    readers
}

/// Those that wait for an answer.
const WAITS: [&str; 3] = [
    "/v1/stream/log?offset=now&live=long-poll",
    "/v1/stream/mine?offset=now&live=long-poll",
    "/api/v1/events?after=LAST&wait=true",
];

fn open_waits(server: &Server, token: &str) -> Vec<(&'static str, TcpStream)> {
    let last = server.get("/api/v1/board").json()["seq"].to_string();
    WAITS.map(|path| (path, begin(server, token, &path.replace("LAST", &last), JSON))).into()
}

fn make_stream(server: &Server) {
    let head = format!(
        "PUT /v1/stream/mine HTTP/1.1\nHost: {}\nAuthorization: Bearer {}\nContent-Type: text/plain\nContent-Length: 0",
        server.host(),
        server.token()
    );
    assert_eq!(server.raw(&head, b"").status, 201);
}

#[test]
fn a_token_that_is_revoked_ends_what_is_read_and_waited_for_with_it() {
    let here = Repository::new();
    let server = Server::start(&here, &["--long-poll", "60"]);
    make_stream(&server);
    let made = here.json(&["token", "create", "--name", "ann", "--role", "reader"]);
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    let readers = open_readers(&server, token);
    let waits = open_waits(&server, token);
    // Of another token, which stays.
    let own = open_readers(&server, server.token());
    let link = server.ask("POST /api/v1/links", server.token(), &Value::Null);
    assert_eq!(link.status, 201);
    here.ok(&["token", "revoke", id]);
    for (path, stream) in readers {
        let (took, text) = until_over(stream);
        assert!(took < Duration::from_secs(1), "{path} went on for {took:?}");
        assert!(text.ends_with("0\r\n\r\n") || text.is_empty(), "{path} ended: {text:?}");
    }
    for (path, mut stream) in waits {
        let since = Instant::now();
        assert_eq!(status(&mut stream), 401, "{path}");
        assert!(since.elapsed() < Duration::from_secs(1), "{path} waited on");
    }
    here.ok(&["task", "add", "Another", "--id", "t-1"]);
    for (path, stream) in own.iter().take(2) {
        assert!(lines(stream).any(|line| line.contains("t-1")), "{path} goes on");
    }
}

#[test]
fn a_link_of_a_revoked_token_lets_nobody_in() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let made = here.json(&["token", "create", "--name", "ann", "--role", "person"]);
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    let link = server.ask("POST /api/v1/links", token, &Value::Null).json()["url"].clone();
    here.ok(&["token", "revoke", id]);
    let body = json!({"code": link.as_str().unwrap().rsplit('#').next().unwrap()}).to_string();
    let head = format!(
        "POST /session HTTP/1.1\nHost: {host}\nOrigin: http://{host}\nContent-Type: application/json\nContent-Length: {}",
        body.len(),
        host = server.host()
    );
    let refused = server.raw(&head, body.as_bytes());
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (401, Some("LINK_USED")),
        "{}",
        refused.text
    );
    assert!(refused.header("set-cookie").is_none());
}

#[test]
fn a_server_raises_its_file_limit_and_serves_more_readers_than_the_usual_one_allows() {
    let here = Repository::new();
    let mut line = std::process::Command::new("sh");
    line.args(["-c", "ulimit -S -n 256; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_adj"));
    line.args(["serve", "--port", "0", "--json"]).current_dir(&here.0);
    line.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    line.stderr(std::process::Stdio::null());
    let server = Server::begin(line, &here.state("token"), None);
    let readers: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = begin(&server, server.token(), "/api/v1/events", SSE);
            assert_eq!(status(&mut stream), 200);
            stream
        })
        .collect();
    let numbers = server.get("/metrics").text;
    let number = |name: &str| {
        let line = numbers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {numbers}")).parse::<f64>().unwrap()
    };
    assert!(number("process_max_fds") > 256.0 && number("process_open_fds") > readers.len() as f64);
    assert!(
        number("process_resident_memory_bytes") > 1e6 && numbers.contains("adjutant_build_info{version=")
    );
}

#[test]
fn the_log_of_a_server_in_the_background_is_set_aside_and_opened_again() {
    let here = Repository::new();
    let begun = here.json(&["serve", "--port", "0", "--detach", "--log", "json"]);
    let (log, first) = (here.state("logs/run.log"), here.state("logs/run.log.1"));
    let until = |what: &str, met: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !met() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let lines = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    let large = std::fs::File::options().append(true).open(&log).unwrap();
    (&large).write_all(&vec![b'\n'; 10_000_001]).unwrap();
    until("it is set aside", &|| first.exists() && log.exists());
    here.ok(&["task", "add", "First", "--id", "t-1"]);
    until("lines go to the new one", &|| lines(&log).contains("\"request\""));
    // As other programs do it: moved, and told by a signal.
    let moved = here.state("logs/moved");
    std::fs::rename(&log, &moved).unwrap();
    let pid = begun["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    until("it is opened again", &|| log.exists());
    here.ok(&["task", "add", "Second", "--id", "t-2"]);
    until("lines go to it", &|| lines(&log).contains("\"request\""));
    here.ok(&["stop"]);
}

#[test]
fn a_server_stops_within_a_second_whoever_reads_and_answers_those_who_wait() {
    let here = Repository::new();
    let mut server = Server::start(&here, &["--long-poll", "60"]);
    make_stream(&server);
    let token = server.token().to_owned();
    for number in 0..40 {
        let task = json!({"id": format!("t-{number}"), "title": "large", "body": "x".repeat(60 << 10)});
        assert_eq!(server.post("/api/v1/tasks", &task).status, 201);
    }
    let readers = open_readers(&server, &token);
    let waits = open_waits(&server, &token);
    // One that has begun to read and takes nothing more.
    let mut stalled = begin(&server, &token, "/api/v1/events", SSE);
    assert_eq!(status(&mut stalled), 200);
    // And those who have sent only a part of what they want to say, to the API and to a stream.
    let parts: Vec<TcpStream> = ["POST /api/v1/tasks", "PUT /v1/stream/other"]
        .map(|line| {
            let mut stream = TcpStream::connect(server.host()).unwrap();
            let head = format!(
                "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: {JSON}\r\n\
                 Expect: 100-continue\r\nContent-Length: 100\r\n\r\n",
                server.host()
            );
            stream.write_all(head.as_bytes()).unwrap();
            // Its body is waited for from now on.
            let mut told = [0; 25];
            stream.read_exact(&mut told).unwrap();
            assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
            stream.write_all(b"{").unwrap();
            stream
        })
        .into();
    let since = Instant::now();
    server.stop();
    let took = since.elapsed();
    for mut stream in parts {
        assert_eq!(status(&mut stream), 503, "it may be sent again");
    }
    for (path, stream) in readers {
        let (_, text) = until_over(stream);
        assert!(text.ends_with("0\r\n\r\n"), "{path} ended with its last chunk: {text:?}");
    }
    for (path, mut stream) in waits {
        let answer = status(&mut stream);
        let (_, rest) = until_over(stream);
        match path.contains("wait=true") {
            true => assert!(answer == 503 && rest.contains("retry-after: 1"), "{path}: {answer} {rest}"),
            false => assert_eq!(answer, 204, "{path}"),
        }
    }
    drop(stalled);
    assert!(took < Duration::from_secs(1), "it took {took:?}");
}
