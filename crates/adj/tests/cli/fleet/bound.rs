//! What an agent's token is for: one run and its task, or one turn in one channel, whatever else has the agent's name.

use super::Repository;
use super::background::wait;
use super::policies::{DONE, scenario};
use super::settings::HOLDS;
use crate::mcp::Client;
use serde_json::{Value, json};
use std::io::{Read, Write};

/// One request over the fleet's socket, or to its address; what it is answered.
pub(super) fn ask(
    repository: &Repository,
    host: Option<&str>,
    token: &str,
    line: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        host.unwrap_or("x"),
        body.len()
    );
    let mut answer = String::new();
    match host {
        Some(host) => {
            let mut stream = std::net::TcpStream::connect(host).expect("it listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            stream.read_to_string(&mut answer).expect("it answers");
        }
        None => {
            let socket = repository.state("socket/adj.sock");
            let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("it listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            stream.read_to_string(&mut answer).expect("it answers");
        }
    }
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Two tasks and two channels of one agent: what it was told in one of them moves nothing in the others.
#[test]
fn a_token_of_a_run_acts_for_that_run_and_its_task_and_one_of_a_turn_in_its_channel() {
    let text = format!(
        "[[scenario]]\ntask = \"room/*\"\n[[scenario.step]]\ndo = [ {{ hang = true }} ]\n{}",
        scenario(&[&format!("{HOLDS}, {DONE}")])
    );
    let repository = Repository::new("bound", &text, &["t-1", "t-2"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nrole = \"lead\"")]);
    let fleet = repository.start("run --serve --port 0");
    for name in ["talk", "far"] {
        repository.talk(&["channel", "create", name, "--topic", "Tea?", "--add", "player"]);
    }
    let run = repository.token_of("t-1");
    repository.token_of("t-2");
    // In a channel it may only look; its token is in what its program was started with.
    let turn = wait("the token of a turn", || {
        let processes = std::fs::read_dir("/proc").ok()?.flatten();
        let started = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
        let mut started = started.map(|variables| String::from_utf8_lossy(&variables).into_owned());
        let socket = format!("ADJ_SERVER=unix:{}", repository.state("socket/adj.sock").display());
        let talks = |variables: &String| {
            let has = |wanted: &str| variables.split('\0').any(|variable| variable == wanted);
            has("ADJ_SEAT=room/talk/player") && has(&socket)
        };
        let variables = started.find(talks)?;
        variables.split('\0').find_map(|variable| variable.strip_prefix("ADJ_TOKEN=").map(str::to_owned))
    });
    let url = repository.json("url")["url"].as_str().unwrap().to_owned();
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();

    let blocked = json!({"to": "BLOCKED", "reason": "manual"});
    let others = [
        ("POST /tasks/t-2/transitions", blocked.clone()),
        ("PATCH /tasks/t-2", json!({"title": "Another"})),
        ("POST /tasks/t-2/comments", json!({"text": "from elsewhere"})),
        ("POST /runs", json!({"task": "t-2", "prompt": "mine now"})),
        ("POST /agents/player/connect", json!({})),
        ("POST /agents/player/disconnect", json!({})),
        ("GET /channels/talk/messages", Value::Null),
        ("POST /channels/talk/messages", json!({"text": "forged"})),
        ("POST /channels/talk/turn", json!({"action": "complete"})),
    ];
    for way in [None, Some(host.as_str())] {
        for (line, body) in &others {
            let (status, answer) = ask(&repository, way, &run, line, body);
            assert_eq!(status, 403, "{line} {way:?}: {answer}");
            let detail = answer["detail"].as_str().unwrap_or_default();
            assert!(detail.contains("this token is for run `t-1.1` and its task"), "{line}: {answer}");
        }
        let (_, channels) = ask(&repository, way, &run, "GET /channels", &Value::Null);
        assert_eq!(channels["items"], json!([]), "{way:?}");
        let said = json!({"text": "half of it"});
        assert!(ask(&repository, way, &run, "POST /tasks/t-1/comments", &said).0 < 300, "its own task");

        // In its turn, the channel of that turn.
        let elsewhere = [
            ("POST /tasks/t-1/transitions", blocked.clone()),
            ("POST /agents/player/disconnect", json!({})),
            ("GET /channels/far/messages", Value::Null),
            ("POST /channels/far/messages", json!({"text": "forged"})),
        ];
        for (line, body) in &elsewhere {
            let (status, answer) = ask(&repository, way, &turn, line, body);
            assert_eq!(status, 403, "{line} {way:?}: {answer}");
            let detail = answer["detail"].as_str().unwrap_or_default();
            assert!(detail.contains("this token is for the agent's turn in `talk`"), "{line}: {answer}");
        }
        let (_, channels) = ask(&repository, way, &turn, "GET /channels", &Value::Null);
        assert_eq!(channels["items"].as_array().map(Vec::len), Some(1), "{channels}");
        assert_eq!(ask(&repository, way, &turn, "GET /channels/talk/messages", &Value::Null).0, 200);
        let said = json!({"text": "in my turn"});
        assert_eq!(ask(&repository, way, &turn, "POST /channels/talk/messages", &said).0, 201);
    }

    // The same from the command line and by the tools.
    let as_agent = |line: &str| -> super::Ran {
        repository.command(line).env("ADJ_TOKEN", &run).output().expect("adj runs").into()
    };
    for line in ["task move t-2 BLOCKED --reason manual", "channel post talk forged", "channel history talk"]
    {
        let ran = as_agent(line);
        assert!(
            ran.code == 3 && ran.stderr.contains("this token is for run `t-1.1`"),
            "{line}: {}",
            ran.stderr
        );
    }
    let mut command = repository.command("mcp");
    command.env("ADJ_TOKEN", &run);
    let mut client = Client::initialized(command);
    assert!(!client.tools().contains("channel_post"), "it is in no channel with this token");
    let (refused, text, _) =
        client.call("move_task", json!({"task": "t-2", "to": "BLOCKED", "reason": "manual"}));
    assert!(refused && text.contains("this token is for run `t-1.1` and its task `t-1`"), "{text}");
    client.end();

    assert_eq!(repository.task("t-2")["status"], "IN_PROGRESS");
    assert!(repository.said().iter().all(|said| !said.contains("forged")), "{:?}", repository.said());
    fleet.stop();
    assert_eq!(repository.adj("verify").code, 0);
}
