//! Reads the output of Claude Code.
//!
//! A message comes in several lines. Its turn is reported after the last of them, and a question that arrives earlier
//! waits for that. So every call of a turn is known before the first of them is decided.

use super::super::transcript::argument;
use super::super::{
    Ended, Exit, INTERRUPT, Input, Notices, OPEN_CALLS_MAX, Order, Reader, Reason, Said, Silence, Spent,
    StopReason, TEXT_BYTES_MAX, inside, keep_error, micros, not_understood, said_done, shortened,
};
use super::wire::{
    ApiRetry, AssistantLine, ControlRequest, ControlResponse, Lifecycle, Line, OwnRequest, ResultLine, Sent,
    StreamEvent, SystemLine, TokenUsage, ToolOutput, UserLine, UserMessage,
};
use super::{Question, Request, control, deny_cut, noted, request, response, unsupported};
use kernel::Millis;
use kernel::command::{StepFailure, Usage};
use kernel::config::Micros;
use machines::run::{ToolCall, ToolStatus};
use sha2::{Digest, Sha256};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(super) struct Claude {
    prompt: String,
    step: SmolStr,
    tree: PathBuf,
    resume: bool,

    /// Ids of what was sent, and requests of the program that were answered.
    sent: BTreeSet<String>,
    answered: BTreeSet<String>,
    /// Messages that the program was told while at work, and those of them that it has yet to take in.
    told: u32,
    waiting: BTreeSet<String>,

    /// The message that is being written, and the one whose turn was said last.
    message: Option<Message>,
    /// More of that message will come, and its end will be told.
    streaming: bool,
    said_message: Option<String>,
    /// The message that came piece by piece, last of all such.
    written: Option<String>,
    /// The agent's own words, last of all.
    last: String,
    /// Questions that overtook their message.
    held: Vec<Question>,
    /// Calls that wait for an answer or a result.
    calls: BTreeMap<String, Question>,
    tools: BTreeMap<String, SmolStr>,
    millis: BTreeMap<String, u64>,

    meter: Meter,
    started: bool,
    /// A result has come and nothing has begun after it.
    result: Option<ResultLine>,
    /// What kind of error the program's own message about it names.
    error_kind: Option<String>,
    resets_at: Option<Millis>,
    /// How long the program waits before its next try.
    retry_after: Option<u64>,
    finished: bool,
    stopped: Option<StopReason>,
    errors: String,
    notices: Notices,
}

#[derive(Default)]
struct Message {
    id: String,
    texts: Vec<String>,
    calls: Vec<ToolCall>,
}

/// What was used: by message while it runs, by result at the end.
#[derive(Default)]
struct Meter {
    /// The last known usage of each message, subagents' too.
    messages: BTreeMap<String, (u64, u64)>,
    /// What the turns have reported.
    reported: (u64, u64),
    /// What the results have named.
    named: (u64, u64),
    /// The total that the process named last; at first what it began with.
    total_usd: f64,
    /// What results have cost and no turn has reported yet.
    cost: Micros,
    /// A model is asked, and has not answered.
    asking: bool,
    /// The service has refused, and not answered since: what it does not answer it is not paid for.
    failing: bool,
    /// It has answered, and no result has named the price.
    open: bool,
    /// A result came without a price.
    unpriced: bool,
}

impl Meter {
    fn see(&mut self, id: &str, usage: &TokenUsage) {
        let input = usage
            .input_tokens
            .saturating_add(usage.cache_creation_input_tokens)
            .saturating_add(usage.cache_read_input_tokens);
        let output = usage.output_tokens;
        if self.messages.len() < OPEN_CALLS_MAX * 10 || self.messages.contains_key(id) {
            let seen = self.messages.entry(id.to_owned()).or_default();
            *seen = (seen.0.max(input), seen.1.max(output));
        }
    }

    /// What a turn reports: its message's tokens, and the price of a result that came before it.
    fn turn(&mut self, id: &str) -> Usage {
        let (input_tokens, output_tokens) = self.messages.get(id).copied().unwrap_or_default();
        add(&mut self.reported, (input_tokens, output_tokens));
        Usage { cost: Some(std::mem::take(&mut self.cost)), input_tokens, output_tokens }
    }

    /// A result names what its prompt has cost. Where it says so itself, that is the price. Else the total is compared
    /// with the one before it: some versions begin with what the session has cost so far, others with nothing, and
    /// what the process itself said at its start tells which.
    fn result(&mut self, result: &ResultLine) {
        (self.open, self.asking) = (false, false);
        let total = result.total_cost_usd;
        let before = self.total_usd;
        self.total_usd = total.unwrap_or(before);
        let since = match &result.model_usage_since_last_result {
            Some(models) => {
                for usage in &models.0 {
                    let input = usage
                        .input_tokens
                        .saturating_add(usage.cache_read_input_tokens)
                        .saturating_add(usage.cache_creation_input_tokens);
                    add(&mut self.named, (input, usage.output_tokens));
                }
                let prices: Option<Vec<f64>> = models.0.iter().map(|usage| usage.cost_usd).collect();
                prices.map(|prices| prices.iter().sum())
            }
            None => total.map(|total| if total >= before { total - before } else { total }),
        };
        match since {
            Some(usd) => self.cost = self.cost.saturating_add(micros(usd)),
            None => self.unpriced = true,
        }
    }

    /// What no turn has reported.
    fn rest(&self) -> Usage {
        let mut metered = (0, 0);
        self.messages.values().for_each(|used| add(&mut metered, *used));
        Usage {
            cost: (!self.open && !self.asking && !self.unpriced).then_some(self.cost),
            input_tokens: metered.0.max(self.named.0).saturating_sub(self.reported.0),
            output_tokens: metered.1.max(self.named.1).saturating_sub(self.reported.1),
        }
    }
}

/// Adds input and output tokens. What the program names has no limit, and a sum has.
fn add(sum: &mut (u64, u64), more: (u64, u64)) {
    *sum = (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1));
}

impl Claude {
    pub(super) fn new(order: &Order) -> Self {
        Self {
            prompt: order.prompt.clone(),
            step: order.step.clone(),
            tree: order.tree.clone(),
            resume: order.resume,
            sent: BTreeSet::new(),
            answered: BTreeSet::new(),
            told: 0,
            waiting: BTreeSet::new(),
            message: None,
            streaming: false,
            said_message: None,
            written: None,
            last: String::new(),
            held: Vec::new(),
            calls: BTreeMap::new(),
            tools: BTreeMap::new(),
            millis: BTreeMap::new(),
            meter: Meter::default(),
            started: false,
            result: None,
            error_kind: None,
            resets_at: None,
            retry_after: None,
            finished: false,
            stopped: None,
            errors: String::new(),
            notices: Notices::default(),
        }
    }

    fn send(&mut self, input: Input, out: &mut Vec<Said>) {
        if self.sent.insert(input.id.clone()) {
            out.push(Said::Send(input));
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

    fn user_message(&self, id: &str, text: &str) -> Input {
        let message = UserMessage { role: "user", content: text };
        let line = Sent::User { message, parent_tool_use_id: None, uuid: self.uuid(id) };
        Input { id: id.to_owned(), text: line.line() }
    }

    /// The same for the same message of the same start of the program, and for no other: a program that has seen an id
    /// may take the message for one that it has answered.
    fn uuid(&self, id: &str) -> String {
        let digest = Sha256::digest(format!("{}\0{id}", self.step));
        let hex = base::hex::hex(&digest[..16]);
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
    }

    fn read(&mut self, line: Line, out: &mut Vec<Said>) {
        match line {
            Line::ControlResponse(reply) => self.control_response(&reply, out),
            Line::ControlRequest(message) => self.control_request(message, out),
            Line::System(line) => self.system(line, out),
            // Lines of a subagent: they are paid for and shown, but they are no turn of the run.
            Line::StreamEvent(line) if line.parent_tool_use_id.is_none() => {
                self.stream_event(line.event, out);
            }
            Line::Assistant(line) => self.assistant(line, out),
            Line::User(line) => self.user(&line, out),
            Line::Result(result) => self.take_result(result, out),
            Line::Lifecycle(line) => self.lifecycle(&line, out),
            Line::RateLimit(limit) if limit.status == "rejected" => {
                self.resets_at = limit.resets_at.map(|seconds| seconds.saturating_mul(1000));
            }
            Line::StreamEvent(_) | Line::RateLimit(_) | Line::Unknown => {}
        }
    }

    fn control_response(&mut self, reply: &ControlResponse, out: &mut Vec<Said>) {
        match reply.request_id.as_deref() {
            Some("initialize") if !self.started => {
                self.started = true;
                let refused = reply.subtype != "success" || reply.response.hooks_applied == Some(false);
                if refused {
                    return self.stop(StopReason::NotGated, out);
                }
                if reply.response.hook_on_failure_supported != Some(true) {
                    // Then what the hook cannot decide falls to the program's own rules, which refuse what is not safe.
                    self.notice(
                        "this version of claude is old: a newer one blocks calls if it cannot ask",
                        out,
                    );
                }
                self.send(control("cost", OwnRequest::GetSessionCost), out);
                let prompt = self.user_message("prompt", &self.prompt);
                self.send(prompt, out);
            }
            Some("cost") => {
                if let Some(usd) = reply.response.text.as_deref().and_then(total_cost) {
                    self.meter.total_usd = usd;
                }
            }
            // Answers of ours come back too.
            _ => {}
        }
    }

    fn control_request(&mut self, message: ControlRequest, out: &mut Vec<Said>) {
        match request(message) {
            Some(Request::Question(question)) => {
                self.know(&question.call, &question.tool);
                if self.streaming && question.hook {
                    self.held.push(question);
                } else {
                    self.turn(out);
                    self.ask(question, out);
                }
            }
            Some(Request::Note { request, call, millis }) => {
                if let (Some(call), Some(millis)) = (call, millis)
                    && self.millis.len() < OPEN_CALLS_MAX
                {
                    self.millis.insert(call, millis);
                }
                let text = noted(&request);
                self.acknowledge(&request, text, out);
            }
            Some(Request::Other { request }) => {
                let text = unsupported(&request);
                self.acknowledge(&request, text, out);
            }
            None => {}
        }
    }

    fn acknowledge(&mut self, request: &str, text: String, out: &mut Vec<Said>) {
        if self.answered.insert(request.to_owned()) {
            self.send(Input { id: format!("note-{request}"), text }, out);
        }
    }

    fn ask(&mut self, question: Question, out: &mut Vec<Said>) {
        if self.calls.len() >= OPEN_CALLS_MAX {
            self.calls.pop_first();
        }
        let about = self.argument(&question);
        if about.len() > TEXT_BYTES_MAX {
            // What cannot be looked at whole is not allowed: the part that is left out is where it would hide.
            let note = format!("the call is longer than {TEXT_BYTES_MAX} bytes and cannot be examined");
            let text = response(&question, false, &note);
            self.acknowledge(&question.request.clone(), text, out);
            return self.notice(format!("{}: {note}", question.tool), out);
        }
        let asked = Said::Asked {
            call: question.call.as_str().into(),
            tool: question.tool.as_str().into(),
            argument: about,
            input: question.input.clone(),
        };
        if !self.answered.contains(&question.request) {
            out.push(asked);
        }
        self.calls.insert(question.call.clone(), question);
    }

    /// What a question is about. Paths within the tree are told from its top, as policies name them.
    fn argument(&self, question: &Question) -> String {
        let about = argument(&question.tool, &question.input);
        if !matches!(question.tool.as_str(), "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit") {
            return about;
        }
        inside(&self.tree, &about)
    }

    fn system(&mut self, line: SystemLine, out: &mut Vec<Said>) {
        match line {
            SystemLine::Init(init) => {
                for server in init.mcp_servers.iter().filter(|server| server.status != "connected") {
                    self.notice(format!("MCP server `{}` is not connected", server.name), out);
                }
            }
            SystemLine::Status(status) if status.status == "requesting" => {
                self.meter.asking = !self.meter.failing;
                self.result = None;
            }
            SystemLine::ApiRetry(retry) => self.api_retry(retry, out),
            SystemLine::Notice(notice) => {
                if let Some(text) = notice.message.or(notice.content) {
                    self.notice(text, out);
                }
            }
            SystemLine::Status(_) | SystemLine::Unknown => {}
        }
    }

    fn api_retry(&mut self, retry: ApiRetry, out: &mut Vec<Said>) {
        // The message that was being written is given up. What it has brought stays a turn.
        self.turn(out);
        (self.meter.asking, self.meter.failing) = (false, true);
        let what = retry.error.unwrap_or_else(|| "unknown".to_owned());
        if what == "authentication_failed" {
            self.stop(StopReason::NotAuthenticated, out);
        }
        // Longer than we would wait by ourselves: the service said so.
        self.retry_after = retry.retry_delay_ms;
        out.push(Said::Retry {
            status: retry.error_status.and_then(|status| u16::try_from(status).ok()),
            attempt: retry.attempt as u32,
            delay_ms: retry.retry_delay_ms.unwrap_or(0),
            what,
        });
    }

    /// A model answers: the result that there may be is not the last, and a price is open.
    fn begin(&mut self) {
        (self.meter.open, self.meter.asking, self.meter.failing) = (true, false, false);
        self.result = None;
    }

    fn stream_event(&mut self, event: StreamEvent, out: &mut Vec<Said>) {
        match event {
            StreamEvent::MessageStart(start) => {
                self.turn(out);
                self.begin();
                self.meter.see(&start.message.id, &start.message.usage);
                self.message = Some(Message { id: start.message.id, ..Message::default() });
                self.streaming = true;
            }
            StreamEvent::MessageDelta(delta) => {
                if let Some(id) = self.current_message() {
                    self.meter.see(&id, &delta.usage);
                }
            }
            StreamEvent::MessageStop => self.turn(out),
            // What it thinks, and how it writes its calls, is the model's own.
            StreamEvent::BlockDelta(delta) if delta.kind == "text_delta" => {
                if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
                    self.written = self.current_message();
                    out.push(Said::Token(shortened(&text, TEXT_BYTES_MAX)));
                }
            }
            StreamEvent::BlockDelta(_) | StreamEvent::Unknown => {}
        }
    }

    /// The message that is being written, also where its turn had to be said early.
    fn current_message(&self) -> Option<String> {
        self.message.as_ref().map(|message| message.id.clone()).or_else(|| self.said_message.clone())
    }

    fn assistant(&mut self, line: AssistantLine, out: &mut Vec<Said>) {
        let message = &line.message;
        let texts = message.content.iter().filter_map(|block| block.text.as_deref());
        for call in message.content.iter().filter(|block| block.kind == "tool_use") {
            self.know(&call.id, &call.name);
        }
        if line.is_api_error_message == Some(true) || message.model == "<synthetic>" {
            self.turn(out);
            self.error_kind = line.error.or(self.error_kind.take());
            // How the step ended says it too, and to people once is enough.
            out.extend(texts.map(|text| Said::Text(shortened(text, TEXT_BYTES_MAX))));
            return;
        }
        let id = message.id.as_str();
        self.begin();
        self.meter.see(id, &message.usage);
        if line.parent_tool_use_id.is_some() {
            for text in texts {
                self.notice(format!("subagent: {text}"), out);
            }
            return;
        }
        if let Some(text) = texts.clone().rfind(|text| !text.trim().is_empty()) {
            self.last = shortened(text, TEXT_BYTES_MAX);
        }
        if self.written.as_deref() != Some(id) {
            // A message that came whole.
            out.extend(texts.clone().map(|text| Said::Token(shortened(text, TEXT_BYTES_MAX))));
        }
        if self.said_message.as_deref() == Some(id) {
            // The rest of a message whose turn had to be said early.
            return out.extend(texts.map(|text| Said::Text(shortened(text, TEXT_BYTES_MAX))));
        }
        if self.message.as_ref().is_some_and(|current| current.id != id) {
            self.turn(out);
        }
        let current = self.message.get_or_insert_with(|| Message { id: id.to_owned(), ..Message::default() });
        for block in message.content.iter() {
            match block.kind.as_str() {
                "text" => {
                    let text = shortened(block.text.as_deref().unwrap_or_default(), TEXT_BYTES_MAX);
                    out.push(Said::Text(text.clone()));
                    current.texts.push(text);
                }
                "tool_use" if current.calls.len() < OPEN_CALLS_MAX => {
                    let call = ToolCall {
                        id: block.id.as_str().into(),
                        tool: block.name.as_str().into(),
                        input: block.input.clone(),
                        output: None,
                        duration: None,
                        status: ToolStatus::Pending,
                    };
                    current.calls.push(call);
                }
                // Thinking is the model's own.
                _ => {}
            }
        }
    }

    fn know(&mut self, call: &str, tool: &str) {
        if self.tools.len() < OPEN_CALLS_MAX {
            self.tools.insert(call.to_owned(), tool.into());
        }
    }

    /// Says the turn of the message that has come to its end, and the questions that waited for it.
    fn turn(&mut self, out: &mut Vec<Said>) {
        self.streaming = false;
        if let Some(message) = self.message.take() {
            // One that was begun and brought nothing is tried again by the program.
            if !message.texts.is_empty() || !message.calls.is_empty() {
                let text = message.texts.join("\n");
                out.push(Said::Turn {
                    calls: message.calls,
                    output: Some(text).filter(|text| !text.is_empty()),
                    usage: self.meter.turn(&message.id),
                });
                self.said_message = Some(message.id);
            }
        }
        for question in std::mem::take(&mut self.held) {
            self.ask(question, out);
        }
    }

    fn user(&mut self, line: &UserLine, out: &mut Vec<Said>) {
        for block in line.message.content.iter().filter(|block| block.kind == "tool_result") {
            let call = block.tool_use_id.as_str();
            // Somebody else has answered it; the question is not asked any more.
            self.held.retain(|question| question.call != call);
            self.turn(out);
            self.calls.remove(call);
            out.push(Said::ToolResult {
                call: call.into(),
                tool: self.tools.remove(call).unwrap_or_default(),
                ok: block.is_error != Some(true),
                output: shortened(&output_text(&block.content), TEXT_BYTES_MAX),
                millis: self.millis.remove(call).unwrap_or(0),
            });
        }
    }

    fn take_result(&mut self, result: ResultLine, out: &mut Vec<Said>) {
        self.turn(out);
        self.meter.result(&result);
        self.calls.clear();
        for uuid in result.user_message_uuids.iter().flatten() {
            self.waiting.remove(uuid);
        }
        match result.permission_denials.len() {
            0 => {}
            1 => self.notice("1 call was refused", out),
            count => self.notice(format!("{count} calls were refused"), out),
        }
        self.result = Some(result);
        self.finish(out);
    }

    fn lifecycle(&mut self, line: &Lifecycle, out: &mut Vec<Said>) {
        let Some(uuid) = &line.command_uuid else { return };
        match line.state.as_str() {
            // A result of its own may follow the one that comes next.
            "queued" if *uuid != self.uuid("prompt") => drop(self.waiting.insert(uuid.clone())),
            "completed" | "cancelled" => {
                self.waiting.remove(uuid);
                self.finish(out);
            }
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<Said>) {
        if self.result.is_some() && self.waiting.is_empty() && !self.finished {
            self.finished = true;
            out.push(Said::Finish);
        }
    }

    /// What a result comes to.
    fn judge(&self, result: &ResultLine, exit: &Exit) -> Ended {
        let usage = self.meter.rest();
        let said = result.result.as_str();
        let mut errors = result.errors.iter().flatten().map(String::as_str);
        let first = errors.clone().next().unwrap_or(said);
        let failed = |error: String, why| Ended::Failed { error: shortened(&error, 4096), why, usage };
        let spent = |what| Ended::Spent { what, said: self.last.clone(), usage };
        let (reason, subtype) = (result.terminal_reason.as_str(), result.subtype.as_str());

        if errors.any(is_session_error) {
            return failed(first.to_owned(), StepFailure::Session);
        }
        match (reason, subtype) {
            ("aborted_streaming" | "aborted_tools", _) => {
                return failed("the agent was interrupted".to_owned(), StepFailure::Failed);
            }
            // No failure: the limit was ours, and the kernel has counted.
            ("max_turns", _) | (_, "error_max_turns") => {
                return spent(Spent::Turns);
            }
            ("budget_exhausted", _) | (_, "error_max_budget_usd") => {
                return spent(Spent::Money);
            }
            // A session that has grown too long can only be left; a first prompt that is too long stays so.
            ("prompt_too_long", _) => {
                let why = if self.resume { StepFailure::Session } else { StepFailure::Failed };
                return failed(format!("the prompt is too long for the model: {first}"), why);
            }
            _ => {}
        }
        let good =
            result.is_error == Some(false) && subtype == "success" && matches!(reason, "" | "completed");
        if good {
            // An exit code of its own says otherwise; whoever ended it after its last word does not.
            return match crate::failure_of(exit, "claude").filter(|_| exit.reason == Reason::Exited) {
                Some((error, why)) => failed(error, why),
                None => {
                    let output = shortened(said, TEXT_BYTES_MAX);
                    Ended::Finished { done: said_done(said), output, usage }
                }
            };
        }
        let status = result.api_error_status;
        let kind = self.error_kind.as_deref().unwrap_or_default();
        let away = match status {
            Some(408 | 429 | 500..=599) => true,
            Some(_) => false,
            // Without a status it is the network, unless the program says otherwise.
            None => {
                reason == "api_error" && result.api_error.is_some()
                    || matches!(kind, "server_error" | "overloaded" | "rate_limit")
            }
        };
        if away {
            let resets_at = self.resets_at.or_else(|| reset_in_text(said));
            let service_error = answer(status, first);
            return Ended::Outage {
                service_error,
                resets_at,
                retry_after: self.retry_after,
                refused: false,
                usage,
            };
        }
        if status == Some(401) || kind == "authentication_failed" || said.contains("/login") {
            return self.refused(&answer(status.or(Some(401)), first));
        }
        let error = if first.is_empty() {
            format!("claude ended with `{subtype}` ({reason})")
        } else {
            first.to_owned()
        };
        failed(error, StepFailure::Failed)
    }
}

impl Claude {
    fn refused(&self, answer: &str) -> Ended {
        Ended::Outage {
            service_error: answer.to_owned(),
            resets_at: None,
            retry_after: None,
            refused: true,
            usage: self.meter.rest(),
        }
    }
}

/// What a service answered, in one line that begins with its status.
fn answer(status: Option<u64>, said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no answer");
    let line = shortened(line, 300);
    match status {
        Some(status) if !line.contains(&status.to_string()) => format!("{status} {line}"),
        _ => line,
    }
}

impl Reader for Claude {
    fn sent(&mut self, id: &str, text: &str) {
        self.sent.insert(id.to_owned());
        if id.starts_with("say-") {
            self.told += 1;
        }
        // By what was sent and not by its id: a keeper that was alone has answered too.
        for line in text.lines() {
            if let Ok(Line::ControlResponse(answer)) = serde_json::from_str(line) {
                self.answered.extend(answer.request_id);
            }
        }
    }

    fn line(&mut self, line: &[u8], whole: bool) -> Vec<Said> {
        let mut out = Vec::new();
        match serde_json::from_slice(line) {
            Ok(line) if whole => self.read(line, &mut out),
            _ => {
                let note = "the call is too long to be examined";
                if let Some((request, text)) = deny_cut(line, note) {
                    self.acknowledge(&request, text, &mut out);
                    self.notice(note, &mut out);
                } else {
                    self.notice(not_understood(line, whole), &mut out);
                }
            }
        }
        out
    }

    fn error_line(&mut self, line: &[u8]) -> Vec<Said> {
        let text = keep_error(&mut self.errors, line);
        self.notices.say(text).into_iter().collect()
    }

    fn end(&mut self, exit: &Exit) -> Ended {
        let usage = self.meter.rest();
        let failed = |error: String, why| Ended::Failed { error, why, usage };
        match self.stopped {
            Some(StopReason::NotAuthenticated) => return self.refused("401 authentication failed"),
            Some(StopReason::NotGated) => {
                let error = "this version of claude does not support the hook that asks before each call; install a newer one";
                return failed(error.to_owned(), StepFailure::Failed);
            }
            None => {}
        }
        if let Some(result) = self.result.take() {
            return self.judge(&result, exit);
        }
        if self.errors.lines().any(is_session_error) {
            let error = self.errors.lines().find(|line| is_session_error(line)).unwrap_or_default();
            return failed(error.to_owned(), StepFailure::Session);
        }
        let nothing = ("claude ended without a result".to_owned(), StepFailure::Failed);
        let (error, why) = crate::failure_of(exit, "claude").unwrap_or(nothing);
        failed(super::super::command::with_last_lines(error, &self.errors, why), why)
    }

    fn answer(&mut self, call: &str, allow: bool, note: &str) -> Option<Input> {
        let question = self.calls.get(call)?;
        let (request, text) = (question.request.clone(), response(question, allow, note));
        if !self.answered.insert(request) {
            return None;
        }
        let id = format!("answer-{call}");
        self.sent.insert(id.clone());
        Some(Input { id, text })
    }

    fn interrupt(&mut self) -> Option<Input> {
        if self.finished || !self.started || !self.sent.insert(INTERRUPT.to_owned()) {
            return None;
        }
        Some(control(INTERRUPT, OwnRequest::Interrupt))
    }

    fn inject(&mut self, text: &str) -> Option<Input> {
        if self.finished || !self.sent.contains("prompt") {
            return None;
        }
        self.told += 1;
        let id = format!("say-{}", self.told);
        self.sent.insert(id.clone());
        Some(self.user_message(&id, text))
    }

    fn is_busy(&self) -> bool {
        self.calls.values().any(|question| self.answered.contains(&question.request))
    }

    fn silence(&self) -> Silence {
        match (self.started, self.calls.is_empty() && self.held.is_empty()) {
            (false, _) => Silence::Starting,
            (true, true) => Silence::Waiting,
            (true, false) => Silence::Free,
        }
    }
}

fn is_session_error(text: &str) -> bool {
    text.contains("No conversation found with session ID")
        || text.contains("Session ID") && text.contains("already in use")
}

/// The total of what `get_session_cost` prints for people.
fn total_cost(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("Total cost:"))?;
    let (_, amount) = line.split_once('$')?;
    let digits: String = amount.chars().filter(|letter| *letter != ',').collect();
    let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// `…usage limit reached|1700000000`: when a subscription's limit is reset, in seconds.
fn reset_in_text(text: &str) -> Option<Millis> {
    let (_, seconds) = text.rsplit_once('|')?;
    let seconds: Millis = seconds.trim().parse().ok()?;
    (seconds > 1_000_000_000).then_some(seconds.checked_mul(1000)?)
}

/// The output of a tool as text.
fn output_text(output: &ToolOutput) -> String {
    match output {
        ToolOutput::Text(text) => text.clone(),
        ToolOutput::Parts(parts) => {
            let texts = parts.iter().map(|part| part.text.as_deref().unwrap_or("[not text]"));
            texts.collect::<Vec<_>>().join("\n")
        }
        ToolOutput::Nothing => String::new(),
    }
}
