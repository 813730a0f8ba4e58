//! A model that a replayed program asks for its replies, over HTTP.

use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How an address of a model begins.
const SCHEME: &str = "http://";
/// How long the model may think.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that it may say.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// The header by which a limit says in how many seconds it is reset.
const RESETS_IN: &str = "resets-in:";

/// Where a model listens: the host and port behind `http://`.
#[derive(Debug)]
pub struct Model {
    host: String,
}

impl Model {
    /// `None`: it is no address, but the path of a file.
    pub fn at(address: &str) -> Option<Model> {
        let host = address.strip_prefix(SCHEME)?.trim_end_matches('/');
        Some(Model { host: host.to_owned() })
    }

    /// What it says to this; what went wrong is a reply like those of a file.
    pub fn ask(&self, request: &Value) -> Value {
        let answer = match self.post(&request.to_string()) {
            Ok(answer) => answer,
            Err(_) => return json!({ "network": true }),
        };
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split_whitespace().nth(1).and_then(|status| status.parse::<u16>().ok());
        let header = head.lines().find_map(|line| line.strip_prefix(RESETS_IN));
        match status {
            Some(200) => serde_json::from_str(body).unwrap_or_else(|_| json!({ "status": 502 })),
            Some(status) => {
                json!({ "status": status, "resets_in": header.and_then(|value| value.trim().parse::<u64>().ok()) })
            }
            None => json!({ "network": true }),
        }
    }

    fn post(&self, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (host, length) = (&self.host, body.len());
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    }
}
