//! Codex, replayed: speaks the language of its app-server from a file of replies, and really makes the calls that are
//! allowed. It stands in for the program in tests that drive a whole fleet.
//!
//! It is as strict as the program and stricter: features that would let it act unasked, a tree that is not marked as
//! untrusted, rules in its home and a policy that does not ask end it. What it was started with stands in
//! `codex-starts.jsonl` beside its home.
//!
//! The file is a list of steps; a step is a list of replies, and is played once, in whichever session its turn comes. A
//! reply is `{"text": "…", "tools": [{"name": "Write", "input": {…}}]}`; a tool `Patch` writes several files at once, by
//! `{"files": {"path": "content"}}`, and `mcp__adjutant__…` are those of the server that its settings name, which is started for
//! each. A reply can go wrong as the program does:
//!
//! | key | what happens |
//! | --- | --- |
//! | `status` | the service answers with this status |
//! | `resets_in` | a limit is reached, which is reset after so many seconds |
//! | `network` | there is no connection |
//! | `hang` | the model never answers |
//! | `crash` | after its calls it is gone, by SIGKILL |
//! | `unasked` | its calls are made without a question |
//! | `forget` | the conversation is lost at the end of the step |

use super::super::claude::replay::{ReplayError, perform};
use super::{OFF, SERVER, replay_tools};
use machines::run::{OWN_TOOLS, is_own_tool};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tokens of each reply.
const INPUT_TOKENS: u64 = 1000;
const OUTPUT_TOKENS: u64 = 50;

fn refused<T>(what: impl Into<String>) -> Result<T, ReplayError> {
    Err(ReplayError::Refused(what.into()))
}

/// Plays the next step, and gives the exit code.
pub fn replay(
    replies: &Path,
    arguments: &[String],
    home: &Path,
    input: impl BufRead,
    output: impl Write,
) -> Result<u8, ReplayError> {
    let text = std::fs::read_to_string(replies)
        .map_err(|source| ReplayError::Unreadable { path: replies.to_owned(), source })?;
    let steps: Vec<Vec<Value>> = serde_json::from_str(&text)
        .map_err(|source| ReplayError::Broken { path: replies.to_owned(), source })?;
    check_start(arguments, home)?;
    let beside = home.parent().unwrap_or(home).to_owned();
    let mut program = Program {
        input,
        output,
        home: home.to_owned(),
        thread: String::new(),
        turn: String::new(),
        tree: String::new(),
        asked: 0,
        total: 0,
        played: 0,
        told: Vec::new(),
    };
    let (method, known) = program.begin()?;
    let mut starts =
        std::fs::OpenOptions::new().create(true).append(true).open(beside.join("codex-starts.jsonl"))?;
    let home = home.file_name().unwrap_or_default().to_string_lossy();
    writeln!(
        starts,
        "{}",
        json!({ "method": method, "home": home, "thread": program.thread, "known": known, "flags": arguments })
    )?;
    if !known {
        return Ok(0);
    }
    let place = beside.join("codex-played");
    let played = std::fs::read_to_string(&place).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    program.played = played;
    let step = steps.get(played).cloned().unwrap_or_default();
    program.step(&step, &place)
}

fn check_start(arguments: &[String], home: &Path) -> Result<(), ReplayError> {
    if !arguments.iter().any(|argument| argument == "app-server") {
        return refused("not as a server");
    }
    for feature in OFF {
        if !arguments.windows(2).any(|pair| pair[0] == "--disable" && pair[1] == *feature) {
            return refused(format!("feature `{feature}` is not off"));
        }
    }
    let config = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
    if !config.contains("trust_level = \"untrusted\"") {
        return refused("the tree is trusted");
    }
    if let Some(wrong) = replay_tools::wrong(&config) {
        return refused(wrong);
    }
    if home.join("rules").exists() {
        return refused("it would take up rules");
    }
    Ok(())
}

struct Program<R, W> {
    input: R,
    output: W,
    home: PathBuf,
    thread: String,
    turn: String,
    tree: String,
    /// Requests that it has made.
    asked: u64,
    /// Replies that the conversation has had.
    total: u64,
    /// Steps that were played before this one.
    played: usize,
    /// Messages that came while it worked.
    told: Vec<String>,
}

enum Heard {
    Answer(Value),
    Interrupt,
    End,
}

impl<R: BufRead, W: Write> Program<R, W> {
    fn print(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }

    fn tell(&mut self, method: &str, mut params: Value) -> io::Result<()> {
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        self.print(&json!({ "method": method, "params": params }))
    }

    fn read(&mut self) -> Result<Option<Value>, ReplayError> {
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match serde_json::from_str(&line) {
            Ok(message) => Ok(Some(message)),
            Err(error) => refused(format!("a line that is not JSON: {error}")),
        }
    }

    fn expect(&mut self, method: &[&str]) -> Result<(String, Value), ReplayError> {
        let Some(message) = self.read()? else { return refused("no input") };
        let found = message["method"].as_str().unwrap_or_default().to_owned();
        match method.contains(&found.as_str()) {
            true => Ok((found, message)),
            false => refused(format!("{} was expected: {message}", method[0])),
        }
    }

    /// Up to the conversation: how it was asked for, and whether there is one.
    fn begin(&mut self) -> Result<(String, bool), ReplayError> {
        let (_, hello) = self.expect(&["initialize"])?;
        self.print(&json!({ "id": hello["id"], "result": { "userAgent": "replay" } }))?;
        self.expect(&["initialized"])?;
        let (method, begin) = self.expect(&["thread/start", "thread/resume"])?;
        let params = &begin["params"];
        if params["approvalPolicy"] != "untrusted" || params["approvalsReviewer"] != "user" {
            return refused("it must ask");
        }
        self.tree = params["cwd"].as_str().unwrap_or_default().to_owned();
        if method == "thread/resume" {
            self.thread = params["threadId"].as_str().unwrap_or_default().to_owned();
            let Ok(text) = std::fs::read_to_string(self.file()) else {
                let error = format!("no rollout found for thread id {}", self.thread);
                self.print(&json!({ "id": begin["id"], "error": { "code": -32600, "message": error } }))?;
                return Ok((method, false));
            };
            self.total = text.trim().parse().unwrap_or(0);
        } else {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            self.thread = format!("01a1e80a-0000-7000-8000-{:012x}", now & 0xffff_ffff_ffff);
        }
        let result = json!({ "thread": { "id": self.thread }, "approvalPolicy": "untrusted",
            "approvalsReviewer": "user", "sandbox": { "type": "dangerFullAccess" } });
        self.print(&json!({ "id": begin["id"], "result": result }))?;
        if self.total > 0 {
            // What it has used before.
            self.turn = "turn-before".to_owned();
            self.tell_usage()?;
        }
        Ok((method, true))
    }

    fn file(&self) -> PathBuf {
        let name = format!("rollout-2026-11-17T05-46-23-{}.jsonl", self.thread);
        self.home.join("sessions/2026/11/17").join(name)
    }

    fn keep(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.file().parent().unwrap_or(&self.home))?;
        std::fs::write(self.file(), self.total.to_string())
    }

    fn tell_usage(&mut self) -> io::Result<()> {
        let tokens = |replies: u64| json!({ "inputTokens": replies * INPUT_TOKENS, "outputTokens": replies * OUTPUT_TOKENS });
        let usage = json!({ "total": tokens(self.total), "last": tokens(1) });
        self.tell("thread/tokenUsage/updated", json!({ "tokenUsage": usage }))
    }

    /// Takes in one line: what answers a question of ours, or what stops it.
    fn hear(&mut self) -> Result<Option<Heard>, ReplayError> {
        let Some(message) = self.read()? else { return Ok(Some(Heard::End)) };
        match message["method"].as_str() {
            None if message["id"] == json!(self.asked) => return Ok(Some(Heard::Answer(message))),
            Some("turn/steer") => {
                let text = message["params"]["input"][0]["text"].as_str().unwrap_or_default();
                self.told.push(text.to_owned());
                self.print(&json!({ "id": message["id"], "result": { "turnId": self.turn } }))?;
            }
            Some("turn/interrupt") => {
                self.print(&json!({ "id": message["id"], "result": {} }))?;
                return Ok(Some(Heard::Interrupt));
            }
            _ => {}
        }
        Ok(None)
    }

    fn step(&mut self, replies: &[Value], place: &Path) -> Result<u8, ReplayError> {
        let Some(prompt) = self.read()? else { return Ok(0) };
        if prompt["method"] != "turn/start" {
            return refused(format!("turn/start was expected: {prompt}"));
        }
        std::fs::write(place, (self.played + 1).to_string())?;
        self.keep()?;
        self.turn = format!("turn-{}-{}", self.played, self.thread);
        self.print(&json!({ "id": prompt["id"], "result": { "turn": { "id": self.turn } } }))?;
        self.tell("turn/started", json!({ "turn": { "id": self.turn, "status": "inProgress" } }))?;
        let done = json!({ "text": "DONE" });
        let replies = if replies.is_empty() { std::slice::from_ref(&done) } else { replies };
        let mut forget = false;
        for (number, reply) in (1..).zip(replies) {
            forget |= reply["forget"] == true;
            if reply["status"].is_u64() || reply["resets_in"].is_u64() || reply["network"] == true {
                return self.api_error(reply);
            }
            if reply["hang"] == true {
                loop {
                    match self.hear()? {
                        Some(Heard::Interrupt) => return self.over("interrupted", Value::Null),
                        Some(Heard::End) => return Ok(0),
                        _ => {}
                    }
                }
            }
            if let Some(text) = reply["text"].as_str() {
                let id = format!("msg_{number}");
                for piece in text.split_inclusive(' ') {
                    self.tell("item/agentMessage/delta", json!({ "itemId": id, "delta": piece }))?;
                }
                let item = json!({ "type": "agentMessage", "id": id, "text": text });
                self.tell("item/completed", json!({ "item": item }))?;
            }
            for (index, tool) in reply["tools"].as_array().into_iter().flatten().enumerate() {
                let item = format!("exec-{}-{number}-{index}-{}", self.played, self.thread);
                let unasked = reply["unasked"] == true;
                if let Heard::Interrupt = self.call(&item, tool, unasked)? {
                    return self.over("interrupted", Value::Null);
                }
            }
            if reply["crash"] == true {
                kill(Pid::this(), Signal::SIGKILL)?;
            }
            self.total += 1;
            self.tell_usage()?;
            self.keep()?;
        }
        let code = self.over("completed", Value::Null)?;
        if forget {
            std::fs::remove_file(self.file())?;
        }
        Ok(code)
    }

    /// Ends the turn, and stays until its input ends.
    fn over(&mut self, status: &str, error: Value) -> Result<u8, ReplayError> {
        let turn = json!({ "id": self.turn, "status": status, "error": error });
        self.tell("turn/completed", json!({ "turn": turn }))?;
        while let Some(message) = self.read()? {
            if message["method"] == "turn/steer" {
                let error = json!({ "code": -32600, "message": "no active turn to steer" });
                self.print(&json!({ "id": message["id"], "error": error }))?;
            }
        }
        Ok(0)
    }

    fn api_error(&mut self, reply: &Value) -> Result<u8, ReplayError> {
        if let Some(seconds) = reply["resets_in"].as_u64() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let window = json!({ "usedPercent": 100, "resetsAt": now + seconds });
            self.tell("account/rateLimits/updated", json!({ "rateLimits": { "primary": window } }))?;
            let error =
                json!({ "message": "You've hit your usage limit.", "codexErrorInfo": "usageLimitExceeded" });
            return self.over("failed", error);
        }
        let status = reply["status"].clone();
        let retried = json!({ "message": "Reconnecting... 1/3", "additionalDetails": "unexpected status",
            "codexErrorInfo": { "responseStreamDisconnected": { "httpStatusCode": status } } });
        self.tell("error", json!({ "error": retried, "willRetry": true }))?;
        let error = json!({ "message": "the service did not answer as it should",
            "codexErrorInfo": { "httpConnectionFailed": { "httpStatusCode": status } } });
        self.over("failed", error)
    }

    /// Calls a tool of Adjutant's server, about which nobody is asked.
    fn own_tool(&mut self, id: &str, tool: &str, input: &Map<String, Value>) -> Result<(), ReplayError> {
        let name = tool.strip_prefix(OWN_TOOLS).unwrap_or(tool);
        let mut item = json!({ "type": "mcpToolCall", "id": id, "server": SERVER, "tool": name, "arguments": input,
            "status": "inProgress" });
        self.tell("item/started", json!({ "item": item }))?;
        let config = std::fs::read_to_string(self.home.join("config.toml"))?;
        let came = replay_tools::call(&config, tool, input)?;
        for (name, value) in came.as_object().into_iter().flatten() {
            item[name] = value.clone();
        }
        self.tell("item/completed", json!({ "item": item }))?;
        Ok(())
    }

    /// Asks for a call, and makes it where the answer is yes.
    fn call(&mut self, id: &str, tool: &Value, unasked: bool) -> Result<Heard, ReplayError> {
        let empty = Map::new();
        let input = tool["input"].as_object().unwrap_or(&empty);
        if let Some(name) = tool["name"].as_str().filter(|name| is_own_tool(name)) {
            self.own_tool(id, name, input)?;
            return Ok(Heard::Answer(Value::Null));
        }
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let command = (tool["name"] == "Bash").then(|| format!("/bin/sh -c {}", quoted(text("command"))));
        let files: Vec<(String, String)> = match input.get("files").and_then(Value::as_object) {
            Some(files) => files
                .iter()
                .map(|(path, text)| (path.clone(), text.as_str().unwrap_or_default().to_owned()))
                .collect(),
            None => vec![(text("file_path").to_owned(), text("content").to_owned())],
        };
        let at = |path: &str| Path::new(&self.tree).join(path).to_string_lossy().into_owned();
        let mut item = match &command {
            Some(command) => {
                json!({ "type": "commandExecution", "id": id, "command": command, "cwd": self.tree })
            }
            None => {
                let change = |(path, text): &(String, String)| json!({ "path": at(path), "kind": { "type": "add" }, "diff": text });
                json!({ "type": "fileChange", "id": id, "changes": files.iter().map(change).collect::<Vec<_>>() })
            }
        };
        item["status"] = json!("inProgress");
        self.tell("item/started", json!({ "item": item }))?;
        let mut allowed = unasked;
        if !unasked {
            self.asked += 1;
            let mut params = json!({ "threadId": self.thread, "turnId": self.turn, "itemId": id });
            let method = match &command {
                Some(command) => {
                    (params["command"], params["cwd"], params["kind"]) =
                        (json!(command), json!(self.tree), json!("command"));
                    "item/commandExecution/requestApproval"
                }
                None => "item/fileChange/requestApproval",
            };
            self.print(&json!({ "method": method, "id": self.asked, "params": params }))?;
            loop {
                match self.hear()? {
                    None => {}
                    Some(Heard::Answer(answer)) => {
                        allowed = answer["result"]["decision"] == "accept";
                        break;
                    }
                    Some(stopped) => return Ok(stopped),
                }
            }
        }
        if !allowed {
            item["status"] = json!("declined");
        } else if command.is_some() {
            let (ok, said) = perform("Bash", input);
            item["status"] = json!(if ok { "completed" } else { "failed" });
            (item["exitCode"], item["aggregatedOutput"]) = (json!(i32::from(!ok)), json!(said));
        } else {
            for (path, text) in files {
                let path = Path::new(&self.tree).join(path);
                std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
                std::fs::write(path, text)?;
            }
            item["status"] = json!("completed");
        }
        self.tell("item/completed", json!({ "item": item }))?;
        Ok(Heard::Answer(Value::Null))
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}
