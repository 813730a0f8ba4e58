//! Reads the output of `codex app-server`.
//!
//! The program asks for one call at a time and never reports which calls belong to one answer of its model. So each call is a
//! turn, together with the message before it. A change of several files is one request and several questions:
//! each path is decided separately, and the change is made if all of them are allowed.

use super::super::{
    Ended, Exit, INTERRUPT, Input, Notices, OPEN_CALLS_MAX, Order, Reader, Reason, Said, Silence, StopReason,
    TEXT_BYTES_MAX, inside, keep_error, not_understood, said_done, shortened,
};
use super::wire::{
    self, Change, CommandExecution, ErrorInfo, Event, InterruptParams, Item as WireItem, ItemKind,
    McpToolCall, Message, Notification, RateLimits, Response, SentMessage, TextInput, TokenUsage, Tokens,
    Turn, TurnError, TurnParams,
};
use super::{
    ASKS, About, Question, Request, SERVER, call, cut_question, decision, refusal, request, steer,
    unsupported,
};
use crate::json::{List, fit};
use kernel::Millis;
use kernel::command::{StepFailure, Usage};
use machines::run::{OWN_TOOLS, ToolCall, ToolStatus};
use serde_json::{Map, Value};
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) struct Codex {
    prompt: String,
    tree: PathBuf,
    resume: bool,

    /// Ids of what was sent, and requests of the program that were answered, as they are told.
    sent: BTreeSet<String>,
    answered: BTreeSet<String>,
    /// Messages that the program was told while at work, and those of them that it has yet to take in, with their text.
    told: u32,
    waiting: BTreeMap<String, String>,

    /// What the program calls this conversation, and the turn of it that is under way.
    thread: Option<String>,
    turn: Option<String>,
    /// Words since the last turn that was said, and the last message of all.
    texts: Vec<String>,
    last: String,
    /// The message that came piece by piece, last of all such.
    written: Option<String>,
    /// Commands and changes that were begun, by their id.
    items: BTreeMap<String, Item>,
    /// Which question was asked for each, also of those that have ended: what they print can come late.
    questions: BTreeMap<String, String>,

    meter: Meter,
    /// How the turn ended, and nothing was begun after it.
    ending: Option<Ending>,
    resets_at: Option<Millis>,
    finished: bool,
    stopped: Option<StopReason>,
    errors: String,
    notices: Notices,
}

/// A command or change that was begun and has not ended.
#[derive(Default)]
struct Item {
    /// The files that it changes.
    changes: List<Change>,
    /// Which question is asked for it, and its calls.
    question: Option<Question>,
    calls: Vec<Call>,
}

struct Call {
    id: String,
    tool: SmolStr,
}

enum Ending {
    Completed,
    Interrupted,
    Failed(TurnError),
    /// The conversation is not there.
    NoSession(String),
}

/// Tokens, by thread: the program tells the total of each.
#[derive(Default)]
struct Meter {
    totals: BTreeMap<String, (u64, u64)>,
    used: (u64, u64),
    /// A model is asked, and nobody knows what it has answered.
    open: bool,
}

impl Meter {
    /// `fresh`: it is of this step. What a conversation that goes on has used before is told first, and is not.
    fn see(&mut self, thread: &str, usage: &TokenUsage, fresh: bool) {
        let count = |tokens: &Tokens| (tokens.input, tokens.output);
        let (total, last) = (count(&usage.total), count(&usage.last));
        let before = match self.totals.get(thread) {
            Some(before) => *before,
            None if fresh => (total.0.saturating_sub(last.0), total.1.saturating_sub(last.1)),
            None => total,
        };
        if self.totals.len() < OPEN_CALLS_MAX || self.totals.contains_key(thread) {
            self.totals.insert(thread.to_owned(), total);
            self.used.0 = self.used.0.saturating_add(total.0.saturating_sub(before.0));
            self.used.1 = self.used.1.saturating_add(total.1.saturating_sub(before.1));
        }
    }

    /// What the step has used. The program names no price: that of nothing is nothing, every other is not known.
    fn usage(&self) -> Usage {
        let (input_tokens, output_tokens) = self.used;
        let nothing = self.used == (0, 0) && !self.open;
        Usage { cost: nothing.then_some(0), input_tokens, output_tokens }
    }
}

impl Codex {
    pub(super) fn new(order: &Order) -> Self {
        Self {
            prompt: order.prompt.clone(),
            tree: order.tree.clone(),
            resume: order.resume,
            sent: BTreeSet::new(),
            answered: BTreeSet::new(),
            told: 0,
            waiting: BTreeMap::new(),
            thread: None,
            turn: None,
            texts: Vec::new(),
            last: String::new(),
            written: None,
            items: BTreeMap::new(),
            questions: BTreeMap::new(),
            meter: Meter::default(),
            ending: None,
            resets_at: None,
            finished: false,
            stopped: None,
            errors: String::new(),
            notices: Notices::default(),
        }
    }

    fn send(&mut self, id: &str, text: String, out: &mut Vec<Said>) {
        if self.sent.insert(id.to_owned()) {
            out.push(Said::Send(Input { id: id.to_owned(), text }));
        }
    }

    fn notice(&mut self, text: impl Into<String>, out: &mut Vec<Said>) {
        out.extend(self.notices.say(text));
    }

    fn stop(&mut self, reason: StopReason, out: &mut Vec<Said>) {
        if self.stopped.is_none() {
            self.stopped = Some(reason.clone());
            out.push(Said::Stop(reason));
        }
    }

    fn read(&mut self, message: Message, out: &mut Vec<Said>) {
        match message {
            Message::Request(message) => self.request(message, out),
            Message::Notification(notification) => self.notification(notification, out),
            Message::Response(response) => self.response(response, out),
            Message::Unknown => {}
        }
    }

    /// What came of a request of ours.
    fn response(&mut self, response: Response, out: &mut Vec<Said>) {
        let Response { id, error, result } = response;
        match (id.as_str().unwrap_or_default(), error) {
            ("initialize" | "prompt", Some(error)) => {
                self.fail(TurnError { message: Some(error), ..TurnError::default() }, out);
            }
            ("thread", Some(error)) => {
                self.ending = Some(Ending::NoSession(shortened(&error, 1000)));
                self.finish(out);
            }
            ("thread", None) if self.thread.is_none() => {
                let asks = result.approval_policy == ASKS
                    && result.approvals_reviewer.is_none_or(|reviewer| reviewer == "user");
                let Some(thread) = result.thread.id.filter(|_| asks) else {
                    return self.stop(StopReason::NotGated, out);
                };
                self.thread = Some(thread);
                let prompt = self.prompt.clone();
                self.begin("prompt", &prompt, out);
            }
            (id, None) if id == "prompt" || id.starts_with("again-") => {
                self.turn = result.turn.id;
            }
            // It came when the turn was just over: it has a turn of its own.
            (id, error) => {
                let Some(text) = self.waiting.remove(id) else { return };
                if error.is_some() {
                    self.begin(&id.replace("say-", "again-"), &text, out);
                }
                self.finish(out);
            }
        }
    }

    /// Begins a turn with this message.
    fn begin(&mut self, id: &str, text: &str, out: &mut Vec<Said>) {
        let Some(thread) = &self.thread else { return };
        let params = TurnParams { thread_id: thread, expected_turn_id: None, input: [TextInput { text }] };
        let line = call(id, "turn/start", params);
        (self.ending, self.meter.open) = (None, true);
        self.send(id, format!("{line}\n"), out);
    }

    fn request(&mut self, message: wire::Request, out: &mut Vec<Said>) {
        match request(message) {
            Request::Question(question) => self.ask(question, out),
            Request::Other { id, method } => {
                let text = unsupported(&id);
                self.acknowledge(&id, text, out);
                self.notice(format!("codex asked for `{method}`, which is not available"), out);
            }
        }
    }

    fn acknowledge(&mut self, id: &Value, text: String, out: &mut Vec<Said>) {
        if self.answered.insert(id.to_string()) {
            self.send(&format!("note-{id}"), text, out);
        }
    }

    fn ask(&mut self, question: Question, out: &mut Vec<Said>) {
        let parts = self.parts(&question);
        let fresh = !self.answered.contains(&question.id.to_string());
        let long = |part: &(SmolStr, String, Map<String, Value>)| part.1.len() > TEXT_BYTES_MAX;
        if parts.is_empty() || parts.iter().any(long) {
            // What cannot be looked at whole is not allowed: the part that is left out is where it would hide.
            let note = "the call is unknown, or too long to be examined";
            let text = refusal(&question, note);
            self.acknowledge(&question.id, text, out);
            return self.notice(note, out);
        }
        let known = self.items.get(&question.item).map_or(0, |item| item.calls.len());
        let mut calls = Vec::new();
        for (number, (tool, argument, input)) in (known + 1..).zip(parts) {
            let id = match number {
                1 => question.item.clone(),
                number => format!("{}#{number}", question.item),
            };
            calls.push((Call { id, tool }, argument, input));
        }
        let said = calls.iter().map(|(call, _, input)| ToolCall {
            id: call.id.as_str().into(),
            tool: call.tool.clone(),
            input: input.clone(),
            output: None,
            duration: None,
            status: ToolStatus::Pending,
        });
        let said = said.collect();
        self.say_turn(said, out);
        for (call, argument, input) in &calls {
            if fresh && !self.sent.contains(&format!("answer-{}", call.id)) {
                let (id, tool) = (call.id.as_str().into(), call.tool.clone());
                let (argument, input) = (argument.clone(), input.clone());
                out.push(Said::Asked { call: id, tool, argument, input });
            }
        }
        if self.questions.len() >= OPEN_CALLS_MAX * 10 {
            self.questions.pop_first();
        }
        self.questions.insert(question.item.clone(), question.id.to_string());
        let item = self.item(&question.item.clone());
        item.calls.extend(calls.into_iter().map(|(call, ..)| call));
        item.question = Some(question);
    }

    /// The item of this id; the oldest is forgotten where there are too many, and so is never allowed.
    fn item(&mut self, id: &str) -> &mut Item {
        if self.items.len() >= OPEN_CALLS_MAX && !self.items.contains_key(id) {
            self.items.pop_first();
        }
        self.items.entry(id.to_owned()).or_default()
    }

    /// Everything that a question asks for, in the words that a policy's patterns are written in.
    fn parts(&self, question: &Question) -> Vec<(SmolStr, String, Map<String, Value>)> {
        match &question.about {
            About::Command { command, cwd } => {
                let command = plain_command(command);
                let mut input = Map::from_iter([("command".to_owned(), command.as_str().into())]);
                if Path::new(cwd) != self.tree {
                    input.insert("cwd".to_owned(), cwd.as_str().into());
                }
                vec![("Bash".into(), command, input)]
            }
            About::Files => {
                let item = self.items.get(&question.item);
                let changes = item.into_iter().flat_map(|item| item.changes.iter());
                changes.flat_map(|change| self.change(change)).collect()
            }
            About::Unknown(params) => {
                vec![("Unknown".into(), Value::Object(params.clone()).to_string(), params.clone())]
            }
        }
    }

    /// The paths that a change writes to: one, and the new one of a file that moves.
    fn change(&self, change: &Change) -> Vec<(SmolStr, String, Map<String, Value>)> {
        let (path, kind, diff) = match change {
            Change::File { path, kind, diff } => (path, kind, diff),
            Change::Unknown(change) => {
                let whole = change.as_object().cloned().unwrap_or_default();
                return vec![("Unknown".into(), change.to_string(), whole)];
            }
        };
        let one = |tool: &str, path: &str| {
            let input = Map::from_iter([
                ("file_path".to_owned(), path.into()),
                ("change".to_owned(), kind.kind.clone()),
                ("diff".to_owned(), diff.clone()),
            ]);
            (tool.into(), inside(&self.tree, path), input)
        };
        let tool = if kind.kind == "add" { "Write" } else { "Edit" };
        let moved = kind.move_path.as_deref().map(|path| one("Write", path));
        [Some(one(tool, path)), moved].into_iter().flatten().collect()
    }

    fn notification(&mut self, Notification { thread, event }: Notification, out: &mut Vec<Said>) {
        let main = self.thread.is_some() && thread == self.thread;
        match event {
            Event::TurnStarted(turn) if main => {
                self.turn = turn.id;
                (self.ending, self.meter.open) = (None, true);
            }
            Event::TurnCompleted(turn) if main => self.completed(turn, out),
            Event::ItemStarted(item) => self.item_started(item, out),
            Event::ItemCompleted(item) => self.item_completed(item, main, out),
            Event::MessageDelta(piece) if main => {
                self.written = piece.item;
                if !piece.delta.is_empty() {
                    out.push(Said::Token(shortened(&piece.delta, TEXT_BYTES_MAX)));
                }
            }
            Event::OutputDelta(piece) => self.check_asked(&piece.item, out),
            // Whatever was allowed, this was not asked for.
            Event::TerminalInteraction(typed) if !typed.stdin.is_empty() => {
                self.stop(StopReason::NotGated, out);
            }
            Event::TokenUsage(update) => {
                let fresh = !main || update.turn == self.turn;
                self.meter.see(thread.as_deref().unwrap_or_default(), &update.usage, fresh);
            }
            Event::RateLimits(RateLimits { primary, secondary }) => {
                let spent = [primary, secondary]
                    .into_iter()
                    .filter(|window| window.used_percent.is_some_and(|used| used >= 100.0));
                let resets = spent.filter_map(|window| window.resets_at).max();
                self.resets_at = resets.map(|seconds| seconds.saturating_mul(1000)).or(self.resets_at);
            }
            Event::Error(error) if error.will_retry == Some(true) => self.retry(&error.error, out),
            Event::Warning(warning) => {
                if let Some(text) = warning.message {
                    self.notice(text, out);
                }
            }
            // How the turn ends says the other errors. What happens in other threads is theirs.
            Event::Error(_)
            | Event::TurnStarted(_)
            | Event::TurnCompleted(_)
            | Event::MessageDelta(_)
            | Event::TerminalInteraction(_)
            | Event::Unknown => {}
        }
    }

    fn retry(&mut self, error: &TurnError, out: &mut Vec<Said>) {
        let status = error.info.status();
        if matches!(status, Some(401 | 403)) {
            self.meter.open = false;
            return self.stop(StopReason::NotAuthenticated, out);
        }
        let said = error.message.as_deref().unwrap_or_default();
        // "Reconnecting... 2/5"
        let attempt = said.rsplit(' ').next().and_then(|count| count.split('/').next()?.parse().ok());
        let what = error.details.as_deref().unwrap_or(said);
        out.push(Said::Retry {
            status,
            attempt: attempt.unwrap_or(0),
            delay_ms: 0,
            what: shortened(what, 300),
        });
    }

    fn item_started(&mut self, item: WireItem, out: &mut Vec<Said>) {
        let Some(id) = item.id else { return };
        match item.what {
            ItemKind::CommandExecution(_) | ItemKind::FileChange(_) => {
                self.item(&id).changes = item.changes;
            }
            ItemKind::McpToolCall(call) => self.own_tool(&id, call, out),
            ItemKind::AgentMessage(_) | ItemKind::Unknown => {}
        }
    }

    /// A tool of ours is called without a question: each is a request that the rules decide. There is no other server.
    fn own_tool(&mut self, id: &str, call: McpToolCall, out: &mut Vec<Said>) {
        if call.server != SERVER {
            return self.stop(StopReason::NotGated, out);
        }
        let tool = format_smolstr!("{OWN_TOOLS}{}", call.tool);
        let said = ToolCall {
            id: id.into(),
            tool: tool.clone(),
            input: call.arguments,
            output: None,
            duration: None,
            status: ToolStatus::Pending,
        };
        self.say_turn(vec![said], out);
        self.item(id).calls.push(Call { id: id.to_owned(), tool });
    }

    fn item_completed(&mut self, item: WireItem, main: bool, out: &mut Vec<Said>) {
        let id = item.id.unwrap_or_default();
        match item.what {
            ItemKind::AgentMessage(message) => {
                let text = shortened(&message.text, TEXT_BYTES_MAX);
                if !main {
                    return self.notice(format!("subagent: {text}"), out);
                }
                if self.written.as_deref() != Some(&id) {
                    // A message that came whole.
                    out.push(Said::Token(text.clone()));
                }
                self.last.clone_from(&text);
                out.push(Said::Text(text.clone()));
                self.texts.push(text);
            }
            ItemKind::CommandExecution(command) => self.command_completed(&id, &command, out),
            ItemKind::FileChange(change) => {
                let ok = change.status == "completed";
                if ok {
                    self.check_asked(&id, out);
                }
                self.ended_item(&id, ok, &change.status, None, out);
            }
            ItemKind::McpToolCall(call) => {
                let ok = call.status == "completed" && call.result.is_error != Some(true);
                let texts = call.result.content.iter().filter_map(|part| part.text.as_deref());
                let said = match call.error.message.as_str() {
                    "" => texts.collect::<Vec<_>>().join("\n"),
                    error => error.to_owned(),
                };
                self.ended_item(&id, ok, said.trim(), call.duration_ms, out);
            }
            ItemKind::Unknown => {}
        }
    }

    fn command_completed(&mut self, id: &str, command: &CommandExecution, out: &mut Vec<Said>) {
        let completed = command.status == "completed";
        if command.exit_code.is_some() || completed {
            self.check_asked(id, out);
        }
        let ok = completed && command.exit_code.as_ref().is_some_and(|code| *code == 0);
        let said = match &command.exit_code {
            _ if command.status == "declined" => "declined".to_owned(),
            Some(Value::Number(code)) if !ok => format!("{}\nexit code {code}", command.output),
            _ => command.output.clone(),
        };
        self.ended_item(id, ok, said.trim(), command.duration_ms, out);
    }

    /// A command that runs, or a change that was made, was asked for and answered.
    fn check_asked(&mut self, id: &str, out: &mut Vec<Said>) {
        let asked = self.questions.get(id).is_some_and(|question| self.answered.contains(question));
        if !asked {
            self.stop(StopReason::NotGated, out);
        }
    }

    fn ended_item(&mut self, id: &str, ok: bool, said: &str, millis: Option<u64>, out: &mut Vec<Said>) {
        let Some(item) = self.items.remove(id) else { return };
        for call in item.calls {
            out.push(Said::ToolResult {
                call: call.id.into(),
                tool: call.tool,
                ok,
                output: shortened(said, TEXT_BYTES_MAX),
                millis: millis.unwrap_or(0),
            });
        }
    }

    /// Says what has come since the last turn as one. Tokens are told at the end of the step, with the price that nobody
    /// knows: told before, they would count as free.
    fn say_turn(&mut self, calls: Vec<ToolCall>, out: &mut Vec<Said>) {
        let text = std::mem::take(&mut self.texts).join("\n");
        let output = Some(text).filter(|text| !text.is_empty());
        out.push(Said::Turn { calls, output, usage: Usage::default() });
    }

    fn completed(&mut self, turn: Turn, out: &mut Vec<Said>) {
        if !self.texts.is_empty() {
            self.say_turn(Vec::new(), out);
        }
        self.meter.open = false;
        self.turn = None;
        self.items.clear();
        self.ending = Some(match turn.status.as_str() {
            "completed" => Ending::Completed,
            "interrupted" => Ending::Interrupted,
            _ => Ending::Failed(turn.error),
        });
        self.finish(out);
    }

    fn fail(&mut self, error: TurnError, out: &mut Vec<Said>) {
        self.meter.open = false;
        self.ending = Some(Ending::Failed(error));
        self.finish(out);
    }

    fn finish(&mut self, out: &mut Vec<Said>) {
        if self.ending.is_some() && self.waiting.is_empty() && !self.finished {
            self.finished = true;
            out.push(Said::Finish);
        }
    }

    /// What a turn that failed comes to.
    fn judge(&self, error: &TurnError) -> Ended {
        let usage = self.meter.usage();
        let said = error.message.as_deref().unwrap_or("codex ended its turn without a reason");
        let said = shortened(said.trim(), 4096);
        let (status, kind) = (error.info.status(), error.info.word());
        if matches!(status, Some(401 | 403)) || kind == "unauthorized" {
            return self.refused(said);
        }
        // Its own check, before anything is asked.
        if said.starts_with("Missing environment variable") {
            return self.refused(said);
        }
        let away = match (status, kind) {
            (Some(408 | 429 | 500..=599), _) => true,
            (Some(_), _) => false,
            (
                None,
                "usageLimitExceeded"
                | "rateLimitExceeded"
                | "serverOverloaded"
                | "internalServerError"
                | "flexUnavailable"
                | "policyCapacityUnavailable",
            ) => true,
            // A connection that failed without a status is the network.
            (None, _) => matches!(error.info, ErrorInfo::Details { not_steerable: false, .. }),
        };
        if away {
            let service_error = match status {
                Some(status) if !said.contains(&status.to_string()) => format!("{status} {said}"),
                _ => said,
            };
            let service_error = shortened(&service_error, 300);
            let resets_at = self.resets_at.filter(|_| kind == "usageLimitExceeded" || status == Some(429));
            return Ended::Outage { service_error, resets_at, retry_after: None, refused: false, usage };
        }
        // A session that has grown too long can only be left; a first prompt that is too long stays so.
        let why = match kind {
            "contextWindowExceeded" if self.resume => StepFailure::Session,
            _ => StepFailure::Failed,
        };
        Ended::Failed { error: said, why, usage }
    }

    fn refused(&self, said: String) -> Ended {
        let (service_error, usage) = (shortened(&said, 300), self.meter.usage());
        Ended::Outage { service_error, resets_at: None, retry_after: None, refused: true, usage }
    }
}

impl Reader for Codex {
    fn sent(&mut self, id: &str, text: &str) {
        self.sent.insert(id.to_owned());
        // By what was sent and not by its id: a keeper that was alone has answered too.
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Message::Response(answer)) => drop(self.answered.insert(answer.id.to_string())),
                Ok(Message::Request(request)) if id.starts_with("say-") => {
                    self.told += 1;
                    let message: SentMessage = fit(request.params);
                    let text = message.input.first().map(|input| input.text.clone());
                    self.waiting.insert(id.to_owned(), text.unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    fn line(&mut self, line: &[u8], whole: bool) -> Vec<Said> {
        let mut out = Vec::new();
        match serde_json::from_slice(line) {
            Ok(message) if whole => self.read(message, &mut out),
            _ => {
                if let Some(id) = cut_question(line) {
                    let text = decision(&id, false);
                    self.acknowledge(&id, text, &mut out);
                    self.notice("the call is too long to be examined", &mut out);
                } else {
                    self.notice(not_understood(line, whole), &mut out);
                }
            }
        }
        out
    }

    /// Its log, which is for its makers: what matters of it is said in its language too. The end is kept for a step that
    /// fails without a word.
    fn error_line(&mut self, line: &[u8]) -> Vec<Said> {
        keep_error(&mut self.errors, line);
        Vec::new()
    }

    fn end(&mut self, exit: &Exit) -> Ended {
        let usage = self.meter.usage();
        let failed = |error: String, why| Ended::Failed { error, why, usage };
        match self.stopped {
            Some(StopReason::NotAuthenticated) => {
                return self.refused("401 authentication failed".to_owned());
            }
            Some(StopReason::NotGated) => {
                let error =
                    "codex does not ask before it acts: it acted without asking, or does not know the policy";
                return failed(error.to_owned(), StepFailure::Failed);
            }
            None => {}
        }
        match self.ending.take() {
            Some(Ending::Completed) => {
                match crate::failure_of(exit, "codex").filter(|_| exit.reason == Reason::Exited) {
                    // An exit code of its own says otherwise; whoever ended it after its last word does not.
                    Some((error, why)) => failed(error, why),
                    None => Ended::Finished { done: said_done(&self.last), output: self.last.clone(), usage },
                }
            }
            Some(Ending::Interrupted) => failed("the agent was interrupted".to_owned(), StepFailure::Failed),
            Some(Ending::Failed(error)) => self.judge(&error),
            Some(Ending::NoSession(error)) => failed(error, StepFailure::Session),
            None => {
                let nothing = ("codex ended before its turn did".to_owned(), StepFailure::Failed);
                let (error, why) = crate::failure_of(exit, "codex").unwrap_or(nothing);
                failed(super::super::command::with_last_lines(error, &self.errors, why), why)
            }
        }
    }

    fn answer(&mut self, call: &str, allow: bool, note: &str) -> Option<Input> {
        let id = format!("answer-{call}");
        let item = self.items.values().find(|item| item.calls.iter().any(|known| known.id == call))?;
        let question = item.question.clone()?;
        if self.answered.contains(&question.id.to_string()) || self.sent.contains(&id) {
            return None;
        }
        let others = item.calls.iter().filter(|known| known.id != call);
        let all = others.into_iter().all(|other| self.sent.contains(&format!("answer-{}", other.id)));
        // Of a change of several files, one is allowed and the others are not decided: nothing is said yet, and it is
        // written down that this one is.
        let text = match (allow, all) {
            (true, true) => decision(&question.id, true),
            (true, false) => String::new(),
            (false, _) => refusal(&question, note),
        };
        if !text.is_empty() {
            self.answered.insert(question.id.to_string());
        }
        self.sent.insert(id.clone());
        Some(Input { id, text })
    }

    fn interrupt(&mut self) -> Option<Input> {
        let (thread, turn) = (self.thread.as_ref()?, self.turn.as_ref()?);
        let line = call(INTERRUPT, "turn/interrupt", InterruptParams { thread_id: thread, turn_id: turn });
        (!self.finished && self.sent.insert(INTERRUPT.to_owned()))
            .then(|| Input { id: INTERRUPT.to_owned(), text: format!("{line}\n") })
    }

    fn inject(&mut self, text: &str) -> Option<Input> {
        let (thread, turn) = (self.thread.as_ref()?, self.turn.as_ref()?);
        if self.finished {
            return None;
        }
        let id = format!("say-{}", self.told + 1);
        let line = steer(&id, thread, turn, text);
        self.told += 1;
        self.sent.insert(id.clone());
        self.waiting.insert(id.clone(), text.to_owned());
        Some(Input { id, text: format!("{line}\n") })
    }

    fn is_busy(&self) -> bool {
        let answered = |question: &Question| self.answered.contains(&question.id.to_string());
        self.items.values().any(|item| item.question.as_ref().is_some_and(answered))
    }

    fn silence(&self) -> Silence {
        match (self.thread.is_some(), self.items.is_empty()) {
            (false, _) => Silence::Starting,
            (true, true) => Silence::Waiting,
            (true, false) => Silence::Free,
        }
    }
}

/// A command without the shell that the program puts around it, where that is plainly one. Policies name commands, and
/// what is not taken apart is shown whole.
fn plain_command(command: &str) -> String {
    let known = |shell: &str| {
        let shell = shell.strip_prefix("/usr").unwrap_or(shell);
        matches!(shell, "/bin/bash" | "/bin/sh" | "/bin/zsh" | "/bin/dash")
    };
    match words(command).as_deref() {
        Some([shell, flag, inner]) if known(shell) && matches!(flag.as_str(), "-c" | "-lc") => inner.clone(),
        _ => command.to_owned(),
    }
}

/// The words of a command line as a shell would take them, where nothing in it is more than quoting.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => loop {
                let text = word.get_or_insert_default();
                match letters.next()? {
                    '\'' => break,
                    letter => text.push(letter),
                }
            },
            '"' => loop {
                let text = word.get_or_insert_default();
                match letters.next()? {
                    '"' => break,
                    '\\' => match letters.next()? {
                        letter @ ('"' | '\\' | '$' | '`') => text.push(letter),
                        '\n' => {}
                        letter => text.extend(['\\', letter]),
                    },
                    letter => text.push(letter),
                }
            },
            '\\' => word.get_or_insert_default().push(letters.next()?),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_without_the_shell_around_it_and_nothing_hides_behind_one() {
        let cases = [
            ("/bin/bash -lc ls", "ls"),
            ("/bin/bash -lc 'git push'", "git push"),
            ("/usr/bin/zsh -c \"echo \\\"it's \"'$HOME `x` '\"\\\\n\\\"\"", "echo \"it's $HOME `x` \\n\""),
            // Not plainly a shell with one command: all of it is shown.
            ("./bash -lc 'git push'", "./bash -lc 'git push'"),
            ("/bin/bash -lc 'git push' x", "/bin/bash -lc 'git push' x"),
            ("/bin/bash -ic 'git push'", "/bin/bash -ic 'git push'"),
            ("/bin/bash -lc 'open", "/bin/bash -lc 'open"),
            ("python3 -c 'x'", "python3 -c 'x'"),
        ];
        for (command, expected) in cases {
            assert_eq!(plain_command(command), expected, "{command}");
        }
    }
}
