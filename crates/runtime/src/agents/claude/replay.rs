//! Claude Code, replayed: speaks its language over standard input and output from a file of replies, and really makes
//! the calls that are allowed. It stands in for the program in tests that drive a whole fleet.
//!
//! It is as strict as the program and stricter: flags that would let it act unasked end it, and so does a prompt that
//! comes before the hooks.

use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a replay could not go on. Each is told on standard error and ends with exit code 1.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("replies {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("replies {} are a list of steps, each a list of replies: {source}", path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Pipe(#[from] io::Error),
}

/// What the flags say.
#[derive(Debug, Default)]
struct Flags {
    session: String,
    resume: bool,
    turns_max: u64,
}

fn refused<T>(what: impl Into<String>) -> Result<T, ReplayError> {
    Err(ReplayError::Refused(what.into()))
}

impl Flags {
    fn read(arguments: &[String]) -> Result<Flags, ReplayError> {
        let mut flags = Flags { turns_max: u64::MAX, ..Flags::default() };
        let mut seen = Vec::new();
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            seen.push(flag.as_str());
            let mut value =
                || rest.next().cloned().ok_or_else(|| ReplayError::Refused(format!("{flag} needs a value")));
            match flag.as_str() {
                "-p"
                | "--verbose"
                | "--include-partial-messages"
                | "--replay-user-messages"
                | "--strict-mcp-config" => {}
                "--input-format" | "--output-format" if value()? != "stream-json" => {
                    return refused("not stream-json");
                }
                "--permission-mode" if value()? != "default" => return refused("it must ask"),
                "--setting-sources" if !value()?.is_empty() => return refused("it must read no settings"),
                "--input-format" | "--output-format" | "--permission-mode" | "--setting-sources" => {}
                "--session-id" => flags.session = value()?,
                "--resume" => (flags.session, flags.resume) = (value()?, true),
                "--max-turns" => flags.turns_max = value()?.parse().unwrap_or(0),
                "--max-budget-usd" | "--model" | "--tools" => drop(value()?),
                "--append-system-prompt-file" => {
                    let path = value()?;
                    std::fs::metadata(&path)
                        .map_err(|_| ReplayError::Refused(format!("{path} is not there")))?;
                }
                other => return refused(format!("unknown flag {other}")),
            }
        }
        for needed in ["-p", "--verbose", "--permission-mode", "--setting-sources", "--strict-mcp-config"] {
            if !seen.contains(&needed) {
                return refused(format!("{needed} is missing"));
            }
        }
        if flags.session.is_empty() {
            return refused("neither --session-id nor --resume");
        }
        Ok(flags)
    }
}

/// Plays the next step of the session, and gives the exit code.
pub fn replay(
    replies: &Path,
    arguments: &[String],
    config: &Path,
    input: impl BufRead,
    output: impl Write,
) -> Result<u8, ReplayError> {
    let text = std::fs::read_to_string(replies)
        .map_err(|source| ReplayError::Unreadable { path: replies.to_owned(), source })?;
    let steps: Vec<Vec<Value>> = serde_json::from_str(&text)
        .map_err(|source| ReplayError::Broken { path: replies.to_owned(), source })?;
    let flags = Flags::read(arguments)?;
    let file = config.join("projects/replay").join(format!("{}.jsonl", flags.session));
    let mut program = Program {
        input,
        output,
        session: flags.session.clone(),
        queue: VecDeque::new(),
        requests: 0,
        cost: 0.0,
        gated: false,
    };
    program.initialize()?;
    let state: Option<Value> =
        std::fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok());
    let (played, before) = match (&state, flags.resume) {
        (None, false) => (0, 0.0),
        (Some(state), true) => {
            (state["played"].as_u64().unwrap_or(0) as usize, state["cost"].as_f64().unwrap_or(0.0))
        }
        (Some(_), false) => {
            return refused(format!("Error: Session ID {} is already in use.", flags.session));
        }
        (None, true) => {
            let error = format!("No conversation found with session ID: {}", flags.session);
            let result = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
                "total_cost_usd": 0, "errors": [error], "num_turns": 0 });
            program.print(&result)?;
            return Ok(1);
        }
    };
    program.cost = before;
    let folder = file.parent().unwrap_or(config);
    std::fs::create_dir_all(folder)?;
    std::fs::write(&file, json!({ "played": played + 1, "cost": before }).to_string())?;
    let code =
        program.step(steps.get(played).map(Vec::as_slice).unwrap_or_default(), before, flags.turns_max)?;
    std::fs::write(&file, json!({ "played": played + 1, "cost": program.cost }).to_string())?;
    Ok(code)
}

struct Program<R, W> {
    input: R,
    output: W,
    session: String,
    /// User messages that nobody has taken in.
    queue: VecDeque<Value>,
    requests: u32,
    cost: f64,
    gated: bool,
}

/// The price of each reply.
const REPLY_USD: f64 = 0.005;

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

    fn initialize(&mut self) -> Result<(), ReplayError> {
        let Some(message) = self.read()? else { return refused("no input") };
        let hook = &message["request"]["hooks"]["PreToolUse"][0];
        let asks = hook["matcher"].is_null()
            && hook["onFailure"] == "block"
            && hook["hookCallbackIds"][0].is_string();
        if message["request"]["subtype"] != "initialize" || !asks {
            return refused("the first line must be `initialize` with a hook for every call that blocks");
        }
        self.gated = true;
        let reply = json!({ "hooks_applied": true, "hook_on_failure_supported": true });
        self.reply(&message["request_id"], reply)
    }

    fn reply(&mut self, request: &Value, response: Value) -> Result<(), ReplayError> {
        let response = json!({ "subtype": "success", "request_id": request, "response": response });
        Ok(self.print(&json!({ "type": "control_response", "response": response }))?)
    }

    /// Takes in one line: what answers `request`, or what stops it.
    fn hear(&mut self, request: Option<&str>) -> Result<Option<Heard>, ReplayError> {
        let Some(message) = self.read()? else { return Ok(Some(Heard::End)) };
        match message["type"].as_str().unwrap_or_default() {
            "user" => {
                let uuid = message["uuid"].clone();
                self.queue.push_back(message);
                self.print(&json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": "queued" }))?;
            }
            "control_request" if message["request"]["subtype"] == "get_session_cost" => {
                let text = format!("Total cost:            ${:.4}\nTotal duration (API):  0s", self.cost);
                self.reply(&message["request_id"], json!({ "text": text }))?;
            }
            "control_request" if message["request"]["subtype"] == "interrupt" => {
                self.reply(&message["request_id"], json!({ "still_queued": [] }))?;
                return Ok(Some(Heard::Interrupt));
            }
            "control_response" => {
                self.print(&message)?;
                if message["response"]["request_id"].as_str() == request {
                    return Ok(Some(Heard::Answer(message["response"]["response"].clone())));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn step(&mut self, replies: &[Value], before: f64, turns_max: u64) -> Result<u8, ReplayError> {
        while self.queue.is_empty() {
            if let Some(Heard::End) = self.hear(None)? {
                return Ok(0);
            }
        }
        let done = json!({ "text": "DONE" });
        let mut taken = Vec::new();
        let mut last = Value::Null;
        let init = json!({ "type": "system", "subtype": "init", "session_id": self.session,
            "permissionMode": "default", "mcp_servers": [], "claude_code_version": "replay" });
        self.print(&init)?;
        let replies = if replies.is_empty() { std::slice::from_ref(&done) } else { replies };
        for (turn, reply) in (1..).zip(replies) {
            while let Some(message) = self.queue.pop_front() {
                taken.push(message["uuid"].clone());
            }
            self.print(&json!({ "type": "system", "subtype": "status", "status": "requesting" }))?;
            if let Some(status) = reply["status"].as_u64() {
                return self.api_error(status, before);
            }
            if turn > turns_max {
                let end = json!({ "subtype": "error_max_turns", "terminal_reason": "max_turns", "is_error": true,
                    "errors": [format!("Reached maximum number of turns ({turns_max})")] });
                return self.result(end, before, &taken).map(|()| 1);
            }
            self.cost += REPLY_USD;
            let calls = self.message(turn, reply)?;
            for (call, tool) in calls {
                match self.call(&call, &tool)? {
                    Heard::Interrupt => {
                        let end = json!({ "subtype": "error_during_execution", "terminal_reason": "aborted_tools",
                            "is_error": true, "errors": ["interrupted"] });
                        self.result(end, before, &taken)?;
                        return Ok(0);
                    }
                    Heard::Answer(_) | Heard::End => {}
                }
            }
            last = reply["text"].clone();
        }
        let end = json!({ "subtype": "success", "terminal_reason": "completed", "is_error": false, "result": last,
            "api_error_status": null });
        self.result(end, before, &taken)?;
        // It stays until its input ends.
        while !matches!(self.hear(None)?, Some(Heard::End)) {}
        Ok(0)
    }

    /// Prints a reply as it would be streamed, and gives its calls.
    fn message(&mut self, turn: u64, reply: &Value) -> Result<Vec<(String, Value)>, ReplayError> {
        let id = format!("msg_{}_{turn}", self.session);
        let usage = |output: u64| json!({ "input_tokens": 1000, "output_tokens": output });
        let event =
            |event: Value| json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null });
        let start = json!({ "id": id, "role": "assistant", "content": [], "usage": usage(1) });
        self.print(&event(json!({ "type": "message_start", "message": start })))?;
        let mut blocks = Vec::new();
        if reply["text"].is_string() {
            blocks.push(json!({ "type": "text", "text": reply["text"] }));
        }
        let mut calls = Vec::new();
        for (index, tool) in reply["tools"].as_array().into_iter().flatten().enumerate() {
            let call = format!("toolu_{turn}_{index}_{}", self.session);
            blocks.push(
                json!({ "type": "tool_use", "id": call, "name": tool["name"], "input": tool["input"] }),
            );
            calls.push((call, tool.clone()));
        }
        for block in blocks {
            let message = json!({ "id": id, "role": "assistant", "model": "replay", "content": [block],
                "stop_reason": null, "usage": usage(1) });
            self.print(&json!({ "type": "assistant", "message": message, "parent_tool_use_id": null }))?;
        }
        self.print(&event(json!({ "type": "message_delta", "delta": {}, "usage": usage(50) })))?;
        self.print(&event(json!({ "type": "message_stop" })))?;
        Ok(calls)
    }

    /// Asks for a call, and makes it where the answer is yes.
    fn call(&mut self, call: &str, tool: &Value) -> Result<Heard, ReplayError> {
        let input = json!({ "hook_event_name": "PreToolUse", "tool_name": tool["name"], "tool_input": tool["input"],
            "tool_use_id": call });
        let answer = match self.hook("pre", call, input)? {
            Heard::Answer(answer) => answer,
            Heard::Interrupt => return Ok(Heard::Interrupt),
            Heard::End => Value::Null,
        };
        let decision = &answer["hookSpecificOutput"];
        let (ok, output) = if decision["permissionDecision"] == "allow" {
            let empty = Map::new();
            let made = perform(
                tool["name"].as_str().unwrap_or_default(),
                tool["input"].as_object().unwrap_or(&empty),
            );
            let input = json!({ "hook_event_name": "PostToolUse", "tool_use_id": call, "duration_ms": 7 });
            self.hook("post", call, input)?;
            made
        } else {
            let reason = decision["permissionDecisionReason"].as_str().unwrap_or("no answer");
            (false, format!("PreToolUse hook error: {reason}"))
        };
        let block = json!({ "type": "tool_result", "tool_use_id": call, "content": output, "is_error": !ok });
        self.print(&json!({ "type": "user", "message": { "role": "user", "content": [block] },
            "parent_tool_use_id": null }))?;
        Ok(Heard::Answer(Value::Null))
    }

    fn hook(&mut self, callback: &str, call: &str, input: Value) -> Result<Heard, ReplayError> {
        self.requests += 1;
        let request = format!("request-{}-{}", self.requests, self.session);
        let asked = json!({ "subtype": "hook_callback", "callback_id": callback, "input": input, "tool_use_id": call });
        self.print(&json!({ "type": "control_request", "request_id": request, "request": asked }))?;
        loop {
            if let Some(heard) = self.hear(Some(&request))? {
                return Ok(heard);
            }
        }
    }

    fn api_error(&mut self, status: u64, before: f64) -> Result<u8, ReplayError> {
        let text = format!("API Error: {status}");
        let message = json!({ "id": "synthetic", "model": "<synthetic>", "content": [{ "type": "text", "text": text }] });
        let kind = if status == 401 { "authentication_failed" } else { "server_error" };
        self.print(&json!({ "type": "assistant", "message": message, "parent_tool_use_id": null,
            "is_api_error_message": true, "api_error_status": status, "error": kind }))?;
        let end = json!({ "subtype": "success", "terminal_reason": "api_error", "is_error": true,
            "api_error_status": status, "result": text });
        self.result(end, before, &[])?;
        Ok(1)
    }

    fn result(&mut self, mut end: Value, before: f64, taken: &[Value]) -> Result<(), ReplayError> {
        end["type"] = json!("result");
        end["session_id"] = json!(self.session);
        end["total_cost_usd"] = json!(self.cost);
        end["user_message_uuids"] = json!(taken);
        let replies = ((self.cost - before) / REPLY_USD).round();
        end["model_usage_since_last_result"] = json!({ "replay": {
            "inputTokens": replies * 1000.0, "outputTokens": replies * 50.0, "costUSD": self.cost - before,
        }});
        Ok(self.print(&end)?)
    }
}

/// Makes a call: the tools that a replay can use are `Write` and `Bash`.
fn perform(tool: &str, input: &Map<String, Value>) -> (bool, String) {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let made = match tool {
        "Write" => {
            let path = Path::new(text("file_path"));
            let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            folder.and_then(|()| std::fs::write(path, text("content"))).map(|()| (true, "written".to_owned()))
        }
        "Bash" => {
            Command::new("sh").args(["-c", text("command")]).stdin(std::process::Stdio::null()).output().map(
                |ran| {
                    let mut said = String::from_utf8_lossy(&ran.stdout).into_owned();
                    said.push_str(&String::from_utf8_lossy(&ran.stderr));
                    (ran.status.success(), said)
                },
            )
        }
        other => return (false, format!("a replay has no tool `{other}`")),
    };
    made.unwrap_or_else(|error| (false, error.to_string()))
}
