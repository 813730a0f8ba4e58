//! A model's API on loopback, as a replayed agent program asks it: it says what a test tells it to, and can be away.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// How it is away.
#[derive(Clone, Copy, PartialEq)]
pub enum Away {
    /// It answers with this status until the test lets it come back.
    Status(u16),
    /// A limit that is reset in so many seconds; it is back after so many requests.
    Limit { seconds: u64, requests: usize },
    /// Nobody listens.
    Refused,
}

/// What an agent asks for: its next reply.
pub struct Request {
    /// A task, or the agent that speaks in a room, or `lead`.
    pub who: String,
    /// What was said to it and done by it in this step; the first is its prompt.
    pub said: Vec<String>,
    /// Replies that it was given before.
    pub before: usize,
}

pub struct Api {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    speak: fn(&Request) -> Value,
    away: Away,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Those whose first request is held until all of them have asked.
    awaited: BTreeSet<String>,
    is_away: bool,
    listening: bool,
    /// Who the sessions are of.
    sessions: BTreeMap<String, String>,
    given: BTreeMap<String, usize>,
    /// Who has asked while it was away.
    in_vain: Vec<String>,
}

impl Api {
    /// Goes away when all of these have asked for the first time, which is answered well.
    pub fn that_goes_away(agents: &[&str], away: Away, speak: fn(&Request) -> Value) -> Api {
        let awaited = agents.iter().map(|name| (*name).to_owned()).collect();
        let state = Mutex::new(State { awaited, ..State::default() });
        let shared = Arc::new(Shared { speak, away, state, changed: Condvar::new() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        listen(&shared, listener);
        Api { port, shared }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Who asked for something while it was away, in order.
    pub fn in_vain(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().in_vain.clone()
    }

    pub fn come_back(&self) {
        if self.shared.away == Away::Refused {
            listen(&self.shared, TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).unwrap());
        }
        self.shared.state.lock().unwrap().is_away = false;
    }
}

fn listen(shared: &Arc<Shared>, listener: TcpListener) {
    shared.state.lock().unwrap().listening = true;
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let state = shared.state.lock().unwrap();
            if state.is_away && shared.away == Away::Refused {
                break;
            }
            drop(state);
            let (shared, port) = (Arc::clone(&shared), listener.local_addr().unwrap().port());
            std::thread::spawn(move || shared.serve(stream, port));
        }
        drop(listener);
        shared.state.lock().unwrap().listening = false;
        shared.changed.notify_all();
    });
}

impl Shared {
    fn serve(&self, mut stream: TcpStream, port: u16) {
        // Whoever only looks whether somebody listens asks nothing.
        let Some(asked) = read(&stream) else { return };
        let answer = match self.answer(&asked, port) {
            Ok(reply) => {
                let reply = reply.to_string();
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{reply}", reply.len())
            }
            Err(Away::Limit { seconds, .. }) => format!("HTTP/1.1 429 x\r\nresets-in: {seconds}\r\n\r\n"),
            Err(Away::Status(status)) => format!("HTTP/1.1 {status} x\r\n\r\n"),
            Err(Away::Refused) => return,
        };
        // One that was ended meanwhile is not waited for.
        let _ = stream.write_all(answer.as_bytes());
    }

    fn answer(&self, asked: &Value, port: u16) -> Result<Value, Away> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let said: Vec<String> = asked["said"].as_array().unwrap().iter().map(text).collect();
        let mut state = self.state.lock().unwrap();
        let who = state.sessions.entry(text(&asked["session"])).or_insert_with(|| name(&said[0])).clone();
        if state.is_away {
            state.in_vain.push(who);
            if let Away::Limit { requests, .. } = self.away {
                state.is_away = state.in_vain.len() < requests;
            }
            return Err(self.away);
        }
        if state.awaited.remove(&who) {
            if state.awaited.is_empty() {
                state.is_away = true;
                if self.away == Away::Refused {
                    // Wakes whoever listens, who then finds that it is over.
                    let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
                    state = self.changed.wait_while(state, |state| state.listening).unwrap();
                }
                self.changed.notify_all();
            }
            state = self.changed.wait_while(state, |state| !state.is_away).unwrap();
        }
        let given = state.given.entry(who.clone()).or_default();
        let before = *given;
        *given += 1;
        drop(state);
        Ok((self.speak)(&Request { who, said, before }))
    }
}

/// Whose prompt it is.
fn name(prompt: &str) -> String {
    let quoted = |after: &str| Some(prompt.split_once(after)?.1.split('`').next()?.to_owned());
    let lead = prompt.starts_with("You are the architect").then(|| "lead".to_owned());
    lead.or_else(|| quoted("Your task is `")).or_else(|| quoted("You are `")).unwrap()
}

fn read(stream: &TcpStream) -> Option<Value> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// A reply that makes one call.
pub fn calls(tool: &str, input: Value) -> Value {
    json!({ "tools": [{ "name": tool, "input": input }] })
}
