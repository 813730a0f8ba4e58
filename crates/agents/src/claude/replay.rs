//! Claude Code, replayed: speaks its language over standard input and output from a file of replies, and really makes
//! the calls that are allowed. It stands in for the program in tests that drive a whole fleet.
//!
//! It is as strict as the program and stricter: flags that would let it act unasked end it, and so does a prompt that
//! comes before the hooks. What it was started with stands in `starts.jsonl` in its configuration directory.
//!
//! The file is a list of steps, or `{"prices": …, "steps": […]}`; a step is a list of replies, and is played once, in
//! whichever session its turn comes. A reply is `{"text": "…", "tools": [{"name": "Write", "input": {…}}]}`, and can go
//! wrong as the program does:
//!
//! | key | what happens |
//! | --- | --- |
//! | `status`, `resets_in` | the service answers with this status; a limit is reset after so many seconds |
//! | `network` | there is no connection |
//! | `hang` | the message is begun and never goes on |
//! | `until` | the message goes on behind its first word when its folder for temporary files has this file |
//! | `stderr`, `exit` | it complains, and ends without a result |
//! | `crash` | after its calls it is gone, by SIGKILL |
//! | `end` | after its calls it ends with this result |
//! | `result` | after its calls there is a result, and then it goes on |
//! | `forget` | the conversation is lost at the end of the step |
//!
//! In place of the file there can be the address of a model, `http://127.0.0.1:1234`. It is asked for each reply, with the
//! session and what was said to the program and done by it in this step, and the step ends with a reply that calls no
//! tool. A status other than 200 is that of the service, with the header `resets-in` where a limit is reset.

mod model;

use model::Model;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why a replay could not go on. Each is told on standard error and ends with exit code 1.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("replies {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("replies {} are a list of steps, each a list of replies: {source}", path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    #[error("cannot end itself: {0}")]
    Alive(#[from] nix::Error),
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
    budget_usd: f64,
}

/// The file of replies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replies {
    #[serde(default)]
    prices: Prices,
    steps: Vec<Vec<Value>>,
    /// Where replies are asked for, in place of the steps.
    #[serde(skip)]
    model: Option<Model>,
}

/// How a version of the program names its prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Prices {
    /// Each result says what it cost itself, beside the total of the session.
    #[default]
    Named,
    /// Only a total, which goes on where a session does.
    Session,
    /// Only a total, which begins anew with each process.
    Process,
    /// Nothing is said.
    Unknown,
}

impl Replies {
    fn read(path: &Path) -> Result<Replies, ReplayError> {
        if let Some(model) = path.to_str().and_then(Model::at) {
            return Ok(Replies { prices: Prices::default(), steps: Vec::new(), model: Some(model) });
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| ReplayError::Unreadable { path: path.to_owned(), source })?;
        let broken = |source| ReplayError::Broken { path: path.to_owned(), source };
        let value: Value = serde_json::from_str(&text).map_err(broken)?;
        let value = if value.is_array() { json!({ "steps": value }) } else { value };
        serde_json::from_value(value).map_err(broken)
    }
}

fn refused<T>(what: impl Into<String>) -> Result<T, ReplayError> {
    Err(ReplayError::Refused(what.into()))
}

/// The file that names the program's servers: there must be ours and no other, and no token in it.
fn servers(path: &str) -> Result<(), ReplayError> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    let named: Vec<&String> =
        config["mcpServers"].as_object().into_iter().flat_map(|all| all.keys()).collect();
    let token = std::env::var("ADJ_TOKEN").unwrap_or_default();
    match named[..] {
        _ if !token.is_empty() && text.contains(&token) => refused("the token is in a file"),
        [name] if name == "adjutant" => Ok(()),
        _ => refused(format!("its servers are {named:?}")),
    }
}

impl Flags {
    fn read(arguments: &[String]) -> Result<Flags, ReplayError> {
        let mut flags = Flags { turns_max: u64::MAX, budget_usd: f64::MAX, ..Flags::default() };
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
                // There is ours, which is started for each call of its tools.
                "--mcp-config" => servers(&value()?)?,
                "--session-id" => flags.session = value()?,
                "--resume" => (flags.session, flags.resume) = (value()?, true),
                "--max-turns" => flags.turns_max = value()?.parse().unwrap_or(0),
                "--max-budget-usd" => flags.budget_usd = value()?.parse().unwrap_or(0.0),
                "--model" | "--tools" => drop(value()?),
                "--append-system-prompt-file" => {
                    let path = value()?;
                    std::fs::metadata(&path)
                        .map_err(|_| ReplayError::Refused(format!("{path} does not exist")))?;
                }
                other => return refused(format!("unknown flag {other}")),
            }
        }
        for needed in [
            "-p",
            "--verbose",
            "--permission-mode",
            "--setting-sources",
            "--strict-mcp-config",
            "--mcp-config",
        ] {
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
    let replies = Replies::read(replies)?;
    note_start(config, arguments)?;
    let flags = Flags::read(arguments)?;
    let place = config.join("replay.json");
    let read = |path: &Path| -> Option<Value> {
        std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok())
    };
    let played = read(&place).and_then(|state| state["played"].as_u64()).unwrap_or(0);
    let file = config.join("projects/replay").join(format!("{}.jsonl", flags.session));
    let mut program = Program {
        input,
        output,
        session: flags.session.clone(),
        queue: VecDeque::new(),
        requests: 0,
        played,
        prices: replies.prices,
        before: 0.0,
        cost: 0.0,
        named: 0.0,
        forget: false,
    };
    program.initialize()?;
    let session = read(&file);
    match (&session, flags.resume) {
        (None, false) => {}
        (Some(session), true) if replies.prices != Prices::Process => {
            program.before = session["cost"].as_f64().unwrap_or(0.0);
        }
        (Some(_), true) => {}
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
    }
    (program.cost, program.named) = (program.before, program.before);
    std::fs::create_dir_all(file.parent().unwrap_or(config))?;
    std::fs::write(&place, json!({ "played": played + 1 }).to_string())?;
    std::fs::write(&file, json!({ "cost": program.before }).to_string())?;
    let step = usize::try_from(played).ok().and_then(|played| replies.steps.get(played));
    let code = match &replies.model {
        Some(model) => program.step(Source::Model(model), &flags)?,
        None => program.step(Source::of(step), &flags)?,
    };
    if program.forget {
        std::fs::remove_file(&file)?;
    } else {
        std::fs::write(&file, json!({ "cost": program.cost }).to_string())?;
    }
    Ok(code)
}

/// Keeps what it was started with, for whoever wants to know.
fn note_start(config: &Path, arguments: &[String]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(config.join("starts.jsonl"))?;
    writeln!(file, "{}", json!(arguments))
}

/// Where the replies of a step come from.
enum Source<'a> {
    File(VecDeque<Value>),
    Model(&'a Model),
}

impl Source<'_> {
    /// What a file has for the step; where it has nothing, the program says that it is done.
    fn of(step: Option<&Vec<Value>>) -> Source<'static> {
        let replies = step.filter(|step| !step.is_empty()).cloned();
        Source::File(replies.unwrap_or_else(|| vec![json!({ "text": "DONE" })]).into())
    }

    /// The next reply, after `last`.
    fn next(&mut self, session: &str, said: &[Value], last: Option<&Value>) -> Option<Value> {
        match self {
            Source::File(replies) => replies.pop_front(),
            // What calls nothing is the last word.
            Source::Model(_) if last.is_some_and(|last| last["tools"].is_null()) => None,
            Source::Model(model) => Some(model.ask(&json!({ "session": session, "said": said }))),
        }
    }
}

struct Program<R, W> {
    input: R,
    output: W,
    session: String,
    /// User messages that nobody has taken in.
    queue: VecDeque<Value>,
    requests: u32,
    /// Steps that were played before this one.
    played: u64,
    prices: Prices,
    /// The total at the start of the process, and now.
    before: f64,
    cost: f64,
    /// What the results have named.
    named: f64,
    forget: bool,
}

/// How often a file is looked for.
const LOOK: Duration = Duration::from_millis(10);
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
                let text = match self.prices {
                    Prices::Unknown => "Total duration (API):  0s".to_owned(),
                    _ => format!("Total cost:            ${:.4}\nTotal duration (API):  0s", self.cost),
                };
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

    fn step(&mut self, mut replies: Source, flags: &Flags) -> Result<u8, ReplayError> {
        while self.queue.is_empty() {
            if let Some(Heard::End) = self.hear(None)? {
                return Ok(0);
            }
        }
        let mut taken = Vec::new();
        let (mut turn, mut said, mut before): (u64, Vec<Value>, Option<Value>) = (0, Vec::new(), None);
        self.print_init()?;
        loop {
            while let Some(message) = self.queue.pop_front() {
                taken.push(message["uuid"].clone());
                said.push(message["message"]["content"].clone());
            }
            let Some(reply) = replies.next(&self.session, &said, before.as_ref()) else { break };
            turn += 1;
            self.forget |= reply["forget"] == true;
            self.print(&json!({ "type": "system", "subtype": "status", "status": "requesting" }))?;
            if reply["status"].is_u64() || reply["network"] == true {
                return self.api_error(&reply);
            }
            if let Some(complaint) = reply["stderr"].as_str() {
                eprintln!("{}", complaint.replace("{session}", &self.session));
                return Ok(exit_code(&reply));
            }
            if turn > flags.turns_max {
                let max = flags.turns_max;
                let end = json!({ "subtype": "error_max_turns", "terminal_reason": "max_turns", "is_error": true,
                    "errors": [format!("Reached maximum number of turns ({max})")] });
                return self.result(end, &taken).map(|()| 1);
            }
            if reply["hang"] == true {
                return self.hang(turn, &taken);
            }
            self.cost += REPLY_USD;
            let calls = self.message(turn, &reply)?;
            let spent = self.cost - self.before;
            if spent > flags.budget_usd {
                // The calls of the reply that passed it are not made.
                let end = json!({ "subtype": "error_max_budget_usd", "terminal_reason": "budget_exhausted",
                    "is_error": true, "errors": [format!("Reached maximum budget (${})", flags.budget_usd)] });
                return self.result(end, &taken).map(|()| 1);
            }
            for (call, tool) in calls {
                said.push(tool.clone());
                if let Heard::Interrupt = self.call(&call, &tool)? {
                    return self.interrupted("aborted_tools", &taken);
                }
            }
            if reply["crash"] == true {
                kill(Pid::this(), Signal::SIGKILL)?;
            }
            if reply["end"].is_object() {
                self.result(reply["end"].clone(), &taken)?;
                return Ok(exit_code(&reply));
            }
            if reply["result"] == true {
                self.completed(&reply["text"], &taken)?;
                self.print_init()?;
            }
            before = Some(reply);
        }
        let last = before.map_or(Value::Null, |reply| reply["text"].clone());
        self.completed(&last, &taken)?;
        // It stays until its input ends, and what it is told meanwhile has a turn of its own.
        for turn in turn + 1.. {
            while self.queue.is_empty() {
                if let Some(Heard::End) = self.hear(None)? {
                    return Ok(0);
                }
            }
            let told: Vec<Value> = self.queue.drain(..).map(|message| message["uuid"].clone()).collect();
            self.print_init()?;
            self.cost += REPLY_USD;
            self.message(turn, &json!({ "text": last }))?;
            self.completed(&last, &told)?;
        }
        Ok(0)
    }

    fn print_init(&mut self) -> io::Result<()> {
        self.print(&json!({ "type": "system", "subtype": "init", "session_id": self.session,
            "permissionMode": "default", "mcp_servers": [], "claude_code_version": "replay" }))
    }

    fn completed(&mut self, text: &Value, taken: &[Value]) -> Result<(), ReplayError> {
        let end = json!({ "subtype": "success", "terminal_reason": "completed", "is_error": false, "result": text,
            "api_error_status": null });
        self.result(end, taken)
    }

    fn interrupted(&mut self, reason: &str, taken: &[Value]) -> Result<u8, ReplayError> {
        let end = json!({ "subtype": "error_during_execution", "terminal_reason": reason, "is_error": true,
            "errors": ["interrupted"] });
        self.result(end, taken).map(|()| 0)
    }

    /// Begins a message, and says nothing more.
    fn hang(&mut self, turn: u64, taken: &[Value]) -> Result<u8, ReplayError> {
        let start =
            json!({ "id": self.message_id(turn), "role": "assistant", "content": [], "usage": usage(1) });
        self.print(&stream_event(&json!({ "type": "message_start", "message": start })))?;
        loop {
            match self.hear(None)? {
                Some(Heard::Interrupt) => return self.interrupted("aborted_streaming", taken),
                Some(Heard::End) => return Ok(1),
                _ => {}
            }
        }
    }

    /// No other message of the session has it.
    fn message_id(&self, turn: u64) -> String {
        format!("msg_{}_{turn}_{}", self.played, self.session)
    }

    /// Prints a reply as it would be streamed, and gives its calls.
    fn message(&mut self, turn: u64, reply: &Value) -> Result<Vec<(String, Value)>, ReplayError> {
        let id = self.message_id(turn);
        let start = json!({ "id": id, "role": "assistant", "content": [], "usage": usage(1) });
        self.print(&stream_event(&json!({ "type": "message_start", "message": start })))?;
        let mut blocks = Vec::new();
        if reply["text"].is_string() {
            blocks.push(json!({ "type": "text", "text": reply["text"] }));
        }
        let mut calls = Vec::new();
        for (index, tool) in reply["tools"].as_array().into_iter().flatten().enumerate() {
            let call = format!("toolu_{}_{turn}_{index}_{}", self.played, self.session);
            blocks.push(
                json!({ "type": "tool_use", "id": call, "name": tool["name"], "input": tool["input"] }),
            );
            calls.push((call, tool.clone()));
        }
        for block in blocks {
            for (index, piece) in block["text"].as_str().unwrap_or_default().split_inclusive(' ').enumerate()
            {
                if let Some(file) = reply["until"].as_str().filter(|_| index == 1) {
                    while !std::env::temp_dir().join(file).exists() {
                        std::thread::sleep(LOOK);
                    }
                }
                let delta = json!({ "type": "text_delta", "text": piece });
                self.print(&stream_event(
                    &json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
                ))?;
            }
            let message = json!({ "id": id, "role": "assistant", "model": "replay", "content": [block],
                "stop_reason": null, "usage": usage(1) });
            self.print(&json!({ "type": "assistant", "message": message, "parent_tool_use_id": null }))?;
        }
        self.print(&stream_event(&json!({ "type": "message_delta", "delta": {}, "usage": usage(50) })))?;
        self.print(&stream_event(&json!({ "type": "message_stop" })))?;
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
        let request = format!("request-{}-{}-{}", self.played, self.requests, self.session);
        let asked = json!({ "subtype": "hook_callback", "callback_id": callback, "input": input, "tool_use_id": call });
        self.print(&json!({ "type": "control_request", "request_id": request, "request": asked }))?;
        loop {
            if let Some(heard) = self.hear(Some(&request))? {
                return Ok(heard);
            }
        }
    }

    fn api_error(&mut self, reply: &Value) -> Result<u8, ReplayError> {
        let status = reply["status"].as_u64();
        let kind = match status {
            Some(401) => "authentication_failed",
            Some(429) => "rate_limit",
            _ => "server_error",
        };
        if status == Some(401) {
            // The program itself tries for minutes; whoever knows better ends it before that.
            self.print(&json!({ "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 5,
                "retry_delay_ms": 600, "error_status": 401, "error": kind }))?;
            while !matches!(self.hear(None)?, Some(Heard::End)) {}
        }
        if let Some(seconds) = reply["resets_in"].as_u64() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let info =
                json!({ "status": "rejected", "resetsAt": now + seconds, "rateLimitType": "five_hour" });
            self.print(&json!({ "type": "rate_limit_event", "rate_limit_info": info }))?;
        }
        let (text, api_error) = match status {
            Some(status) => (format!("API Error: {status}"), Value::Null),
            None => ("API Error: Connection dropped (ECONNRESET)".to_owned(), json!("connection_failed")),
        };
        let message = json!({ "id": "synthetic", "model": "<synthetic>", "content": [{ "type": "text", "text": text }] });
        self.print(&json!({ "type": "assistant", "message": message, "parent_tool_use_id": null,
            "is_api_error_message": true, "api_error_status": status, "error": kind }))?;
        let end = json!({ "subtype": "success", "terminal_reason": "api_error", "is_error": true,
            "api_error_status": status, "api_error": api_error, "result": text });
        self.result(end, &[])?;
        Ok(1)
    }

    fn result(&mut self, mut end: Value, taken: &[Value]) -> Result<(), ReplayError> {
        end["type"] = json!("result");
        end["session_id"] = json!(self.session);
        end["user_message_uuids"] = json!(taken);
        if self.prices != Prices::Unknown {
            end["total_cost_usd"] = json!(self.cost);
        }
        if self.prices == Prices::Named {
            let spent = self.cost - self.named;
            let replies = (spent / REPLY_USD).round();
            end["model_usage_since_last_result"] = json!({ "replay": {
                "inputTokens": replies * 1000.0, "outputTokens": replies * 50.0, "costUSD": spent,
            }});
            self.named = self.cost;
        }
        Ok(self.print(&end)?)
    }
}

fn usage(output: u64) -> Value {
    json!({ "input_tokens": 1000, "output_tokens": output })
}

fn stream_event(event: &Value) -> Value {
    json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null })
}

fn exit_code(reply: &Value) -> u8 {
    reply["exit"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// How our own tools are called by the program.
const OUR_TOOLS: &str = "mcp__adjutant__";

/// Calls a tool of ours, as the program's own client would: by `adj mcp`, with the token in the environment.
fn call_ours(tool: &str, input: &Map<String, Value>) -> io::Result<(bool, String)> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "replay", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": input, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut server = Command::new(std::env::current_exe()?)
        .arg("mcp")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut answer = String::new();
    if let (Some(input), Some(output)) = (&mut server.stdin, &mut server.stdout) {
        writeln!(input, "{message}")?;
        io::BufReader::new(output).read_line(&mut answer)?;
    }
    drop(server.stdin.take());
    server.wait()?;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or("no answer").to_owned();
    Ok((answer["result"].is_object() && answer["result"]["isError"] != true, text))
}

/// Makes a call: the tools that a replay can use are `Write`, `Bash`, and ours.
pub(crate) fn perform(tool: &str, input: &Map<String, Value>) -> (bool, String) {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let made = match tool {
        ours if ours.starts_with(OUR_TOOLS) => call_ours(&ours[OUR_TOOLS.len()..], input),
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
