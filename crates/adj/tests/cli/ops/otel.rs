//! Spans of OpenTelemetry; built with `--features otel` only.

use super::{Repository, SCENARIO, Server, wait};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

#[test]
fn runs_steps_and_tools_are_sent_as_spans_with_the_names_of_the_conventions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (send, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            let length = |line: &str| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok();
            let mut body = vec![0; head.lines().find_map(length).unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            if send.send((head, body)).is_err() {
                return;
            }
        }
    });
    let here = Repository::new("otel", SCENARIO, &["o-1"]);
    let mut command = here.command("serve --port 0 --json --run");
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).stderr(std::process::Stdio::null());
    let _server = Server::begin(command, &here.state("token"), None);
    let wanted =
        ["invoke_agent", "chat", "execute_tool", "gen_ai.agent.name", "gen_ai.usage.input_tokens", "player"];
    let mut seen = String::new();
    wait("all kinds of spans", || {
        while let Ok((head, body)) = bodies.try_recv() {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            assert!(head.contains("content-type: application/x-protobuf"), "{head}");
            seen.push_str(&String::from_utf8_lossy(&body));
        }
        wanted.iter().all(|name| seen.contains(name)).then_some(())
    });
}
