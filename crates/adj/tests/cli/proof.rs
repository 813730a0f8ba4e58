//! A client knows the server before it sends a token: what listens at the port or the socket may be anybody.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::Ran;
use super::project::Repository;
use super::server::{Answer, Server};
use serde_json::json;

/// A program that listens where a server is looked for, and keeps every word that it is sent.
#[derive(Clone, Default)]
struct Stranger {
    heard: Arc<Mutex<Vec<String>>>,
}

impl Stranger {
    /// Answers each request by what `answer` makes of its head, for as long as the other end asks.
    fn meet(
        &self,
        stream: impl Read + Write + Send + 'static,
        answer: impl Fn(&str) -> String + Send + 'static,
    ) {
        let heard = self.heard.clone();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut head).unwrap_or(0) == 0 {
                        return;
                    }
                }
                heard.lock().unwrap().push(head.clone());
                if stream.get_mut().write_all(answer(&head).as_bytes()).is_err() {
                    return;
                }
            }
        });
    }

    fn at(address: &str, answer: impl Fn(&str) -> String + Clone + Send + 'static) -> (Stranger, u16) {
        let (stranger, listener) = (Stranger::default(), TcpListener::bind(address).unwrap());
        let (meeting, port) = (stranger.clone(), listener.local_addr().unwrap().port());
        std::thread::spawn(move || {
            listener.incoming().for_each(|stream| meeting.meet(stream.unwrap(), answer.clone()));
        });
        (stranger, port)
    }

    /// What it was sent since it was last asked; never a token, nor what a request is about.
    #[track_caller]
    fn heard(&self, token: &str) -> usize {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap());
        for head in &heard {
            let small = head.to_lowercase();
            assert!(!head.contains(token) && !small.contains("authorization"), "{head}");
            assert!(head.starts_with("GET /proof?token=") && !small.contains("x-adj-user"), "{head}");
        }
        heard.len()
    }
}

fn response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Runs it, with whatever it is to read.
fn ran(mut command: Command, input: &str) -> Ran {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that refuses at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_program_at_the_servers_port_is_named_and_is_sent_no_token() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let token = std::fs::read_to_string(here.state("token")).unwrap();
    let works = ran(server.command(&["task", "add", "x"]), "");
    assert_eq!((works.code, works.stdout.as_str()), (0, "t-1\n"), "{}", works.stderr);
    let revoked = ran(
        {
            let mut command = server.command(&["board"]);
            command.env("ADJ_TOKEN", "0".repeat(64));
            command
        },
        "",
    );
    assert!(revoked.code == 3 && revoked.stderr.contains("does not know your token"), "{}", revoked.stderr);

    // It has said everything that a server might say.
    let answers = [
        response("200 OK", "{}"),
        response("200 OK", &format!("{{\"proof\":\"{}\"}}", "0".repeat(64))),
        response("404 Not Found", "{}"),
        response("401 Unauthorized", "{\"detail\":\"send me your token\",\"code\":\"UNAUTHORIZED\"}"),
        response("302 Found\r\nLocation: /", ""),
    ];
    let calls = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let calls: String = calls.iter().map(|call| format!("{call}\n")).collect();
    for (at, answer) in answers.into_iter().enumerate() {
        let (stranger, port) = Stranger::at("127.0.0.1:0", move |_| answer.clone());
        let lines: &[&[&str]] = match at {
            0 => &[&["board"], &["task", "add", "secret"], &["url"], &["export", "-"], &["mcp"], &["run"]],
            _ => &[&["task", "add", "secret"]],
        };
        for line in lines {
            let mut command = server.command(line);
            command.env("ADJ_SERVER", format!("http://127.0.0.1:{port}"));
            let ran = ran(command, if line[0] == "mcp" { &calls } else { "" });
            let heard = stranger.heard(&token);
            // An assistant's program asks anew for each thing that it wants to know.
            if line[0] == "mcp" {
                assert!(heard > 0, "{}{}", ran.stdout, ran.stderr);
            } else {
                assert_eq!(heard, 1, "{line:?} asked again: {}", ran.stderr);
                assert_eq!(ran.code, 3, "{line:?}: {}{}", ran.stdout, ran.stderr);
                let holder = format!("process {} (", std::process::id());
                for said in ["your token was not sent", &holder, &format!("127.0.0.1:{port}")] {
                    assert!(ran.stderr.contains(said), "{line:?}: {}", ran.stderr);
                }
            }
        }
    }
}

/// What a question for a proof is answered with by the real server, which the stranger can reach as everybody can.
fn passed_on(mut real: impl Read + Write, head: &str, host: &str) -> String {
    let line = head.lines().next().unwrap();
    real.write_all(format!("{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    real.read_to_string(&mut answer).unwrap();
    answer.replace("connection: close\r\n", "")
}

#[test]
fn a_program_that_passes_the_question_on_to_the_real_server_is_sent_no_token() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let token = std::fs::read_to_string(here.state("token")).unwrap();
    let host = server.host();
    let port = host.rsplit(':').next().unwrap();
    // At another port, and at the same one of another address of this machine, as with `localhost` and two families.
    for address in ["127.0.0.1:0".to_owned(), format!("127.0.0.2:{port}")] {
        let real = host.clone();
        let relay = move |head: &str| passed_on(TcpStream::connect(&real).unwrap(), head, &real);
        let (stranger, port) = Stranger::at(&address, relay);
        let mut command = server.command(&["board"]);
        let ip = address.rsplit_once(':').unwrap().0;
        command.env("ADJ_SERVER", format!("http://{ip}:{port}"));
        let ran = ran(command, "");
        assert!(ran.code == 3 && ran.stderr.contains("is not the server"), "{address}: {}", ran.stderr);
        assert_eq!(stranger.heard(&token), 1, "{address}");
    }
    // A socket in a folder that an agent may write to, as in its own tree.
    let folder = tempfile::tempdir().unwrap();
    let (real, fake) = (here.state("socket/adj.sock"), folder.path().join("adj.sock"));
    let (stranger, listener) = (Stranger::default(), UnixListener::bind(&fake).unwrap());
    let (meeting, there) = (stranger.clone(), real.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let there = there.clone();
            let relay = move |head: &str| passed_on(UnixStream::connect(&there).unwrap(), head, "adjutant");
            meeting.meet(stream.unwrap(), relay);
        }
    });
    let board = |socket: &Path| {
        let mut command = server.command(&["board"]);
        command.env("ADJ_SERVER", format!("unix:{}", socket.display()));
        ran(command, "")
    };
    let refused = board(&fake);
    assert!(refused.code == 3 && refused.stderr.contains("is not the server"), "{}", refused.stderr);
    assert_eq!(stranger.heard(&token), 1);
    // The real one is the real one by whatever name.
    let link = folder.path().join("link.sock");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    for socket in [&real, &link] {
        let ran = board(socket);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    // What is no question is signed by nobody.
    for query in ["", "?token=0&nonce=0", "?nonce=x", "?token=000000000000&nonce=0"] {
        assert_eq!(
            server.raw(&format!("GET /proof{query} HTTP/1.1\nHost: {host}"), b"").status,
            401,
            "{query}"
        );
    }
    assert_eq!(
        Answer::read(
            TcpStream::connect(&host)
                .map(|mut stream| {
                    stream
                        .write_all(b"GET /proof HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
                        .unwrap();
                    stream
                })
                .unwrap()
        )
        .status,
        421
    );
}
