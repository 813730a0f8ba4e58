//! `script`: an agent that plays a scenario file, for demos, tests and simulations.
//!
//! It is a real process that edits files, commits, asks before each call, and can be interrupted and sent messages,
//! so everything around an agent is tested without a model. Its program is `adj internal script`, its protocol
//! is in `protocol.rs`.

mod player;
mod protocol;
mod scenario;

pub use player::{PlayError, play};
pub use scenario::{Scenario, ScenarioError};

use super::{
    Adapter, AgentError, CommandIs, Ended, Exit, Input, Launch, Notices, Order, Reader, Said, Stdin,
    TEXT_BYTES_MAX, keep_error, not_understood, said_done, shortened,
};
use kernel::command::{StepFailure, Usage};
use machines::run::{ToolCall, ToolStatus};
use protocol::{Heard, Shown};
use std::collections::BTreeSet;
use std::io::Read;

/// The name of its language, for [`super::deny`].
pub const PROTOCOL: &str = "script";

pub struct Script;

impl Adapter for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn resumable(&self) -> bool {
        true
    }

    fn launch(&self, order: &Order) -> Result<Launch, AgentError> {
        super::check_session(&order.session)?;
        let Some(named) = order.command.first() else {
            return Err(AgentError::NoCommand { adapter: self.name() });
        };
        let path = order.project_root.join(named);
        let unreadable = |source| AgentError::Unreadable { path: path.clone(), source };
        base::files::not_into_git(&order.project_root, &path).map_err(unreadable)?;
        let file = std::fs::File::open(&path).map_err(unreadable)?;
        let mut text = String::new();
        // One byte more than may be there, so that what is too long is seen to be.
        let limit = scenario::SCENARIO_BYTES_MAX as u64 + 1;
        file.take(limit).read_to_string(&mut text).map_err(unreadable)?;
        Scenario::parse(named, &text)?;
        // A copy: what the agent plays is what was checked, and no sandbox is in its way.
        let copy = order.private.join("scenario.toml");
        let sessions = order.private.join("sessions");
        // A step that came to nothing before its first turn has taken the id, and then only resuming it works.
        let resume = order.resume || player::session_file(&sessions, &order.session).is_file();
        let start = Heard::Start {
            scenario: named.clone(),
            session: order.session.to_string(),
            resume,
            kind: order.kind,
            prompt: order.prompt.clone(),
            task: order.task.to_string(),
            worker: order.worker.to_string(),
            main: order.main.clone(),
            turns_left: order.turns_left,
        };
        let text_of = |path| super::path_text(self.name(), path);
        Ok(Launch {
            argv: vec![text_of(&order.adj)?, "internal".into(), "script".into(), text_of(&copy)?],
            env: vec![
                ("ADJ_SCRIPT_SESSIONS".to_owned(), text_of(&sessions)?),
                ("TMPDIR".to_owned(), text_of(&order.temp)?),
            ],
            files: vec![(copy, text.into_bytes())],
            directories: vec![sessions],
            stdin: Stdin::Open(Input { id: "start".to_owned(), text: protocol::line(&start) }),
            swept: None,
            protocol: PROTOCOL,
        })
    }

    fn reader(&self, _: &Order) -> Box<dyn Reader> {
        Box::new(Scripted { priced: true, ..Scripted::default() })
    }

    fn command_hint(&self) -> &'static str {
        "name the scenario file, such as command = [\"demo.script\"]"
    }

    fn command_is(&self) -> CommandIs {
        CommandIs::File("scenario")
    }

    fn deny(&self, line: &[u8], reason: &str) -> Option<Vec<u8>> {
        deny(line, reason)
    }
}

/// Refuses a question of a scripted agent.
pub(super) fn deny(line: &[u8], reason: &str) -> Option<Vec<u8>> {
    let Ok(Shown::Ask { call, .. }) = serde_json::from_slice(line) else { return None };
    Some(protocol::line(&Heard::Answer { call, allow: false, note: reason.to_owned() }).into_bytes())
}

/// It writes whole texts at once.
fn said_whole(text: &str) -> [Said; 2] {
    let text = shortened(text, TEXT_BYTES_MAX);
    let token = Said::Token(format!("{text}\n"));
    [Said::Text(text), token]
}

#[derive(Default)]
struct Scripted {
    /// Calls that wait, and those that were answered.
    open: BTreeSet<String>,
    answered: BTreeSet<String>,
    /// Calls that were allowed and have no result.
    running: BTreeSet<String>,
    told: u32,
    interrupted: bool,
    /// Every turn so far named its price.
    priced: bool,
    end: Option<Shown>,
    errors: String,
    notices: Notices,
}

impl Scripted {
    fn read(&mut self, shown: Shown) -> Vec<Said> {
        match shown {
            Shown::Text { text } => said_whole(&text).into(),
            Shown::Turn { calls, output, input_tokens, output_tokens, cost_usd } => {
                self.priced &= cost_usd.is_some();
                let calls = calls.into_iter().map(|call| ToolCall {
                    id: call.id.into(),
                    tool: call.tool.into(),
                    input: call.input,
                    output: None,
                    duration: None,
                    status: ToolStatus::Pending,
                });
                let cost = Some(super::micros(cost_usd.unwrap_or(0.0)));
                let turn = Said::Turn {
                    calls: calls.collect(),
                    output: output.as_deref().map(|text| shortened(text, TEXT_BYTES_MAX)),
                    usage: Usage { cost, input_tokens, output_tokens },
                };
                output.iter().flat_map(|text| said_whole(text)).chain([turn]).collect()
            }
            Shown::Ask { call, .. } if self.answered.contains(&call) => Vec::new(),
            Shown::Ask { call, tool, argument, .. } if argument.len() > TEXT_BYTES_MAX => {
                // What cannot be looked at whole is not allowed: the part that is left out is where it would hide.
                let note = format!("the call is longer than {TEXT_BYTES_MAX} bytes and cannot be examined");
                let notice = self.notices.say(format!("{tool}: {note}"));
                self.answered.insert(call.clone());
                let answer = Heard::Answer { call: call.clone(), allow: false, note };
                let send = Said::Send(Input { id: format!("answer-{call}"), text: protocol::line(&answer) });
                notice.into_iter().chain([send]).collect()
            }
            Shown::Ask { call, tool, argument, input } => {
                if self.open.len() >= super::OPEN_CALLS_MAX {
                    self.open.pop_first();
                }
                self.open.insert(call.clone());
                vec![Said::Asked { call: call.into(), tool: tool.into(), argument, input }]
            }
            Shown::Result { call, tool, ok, output, millis } => {
                self.running.remove(&call);
                let output = shortened(&output, TEXT_BYTES_MAX);
                vec![Said::ToolResult { call: call.into(), tool: tool.into(), ok, output, millis }]
            }
            Shown::Retry { status, attempt, delay_ms } => {
                let what = "the scripted service is unavailable".to_owned();
                vec![Said::Retry { status: Some(status), attempt, delay_ms, what }]
            }
            end => {
                self.end = Some(end);
                vec![Said::Finish]
            }
        }
    }
}

impl Reader for Scripted {
    fn sent(&mut self, id: &str, text: &str) {
        // By what was sent and not by its id: a keeper that was alone has answered too.
        if let Ok(Heard::Answer { call, allow, .. }) = serde_json::from_str(text) {
            if allow {
                self.running.insert(call.clone());
            }
            self.answered.insert(call);
        } else if id.starts_with("say-") {
            self.told += 1;
        } else if id == super::INTERRUPT {
            self.interrupted = true;
        }
    }

    fn line(&mut self, line: &[u8], whole: bool) -> Vec<Said> {
        if !whole {
            return self.notices.say(not_understood(line, whole)).into_iter().collect();
        }
        match serde_json::from_slice(line) {
            Ok(shown) => self.read(shown),
            Err(_) => self.notices.say(not_understood(line, true)).into_iter().collect(),
        }
    }

    fn error_line(&mut self, line: &[u8]) -> Vec<Said> {
        let text = keep_error(&mut self.errors, line);
        self.notices.say(text).into_iter().collect()
    }

    fn end(&mut self, exit: &Exit) -> Ended {
        let usage = Usage { cost: self.priced.then_some(0), ..Usage::default() };
        let failed = |error: String, why| Ended::Failed { error, why, usage };
        match self.end.take() {
            Some(Shown::Session { error }) => failed(error, StepFailure::Session),
            Some(Shown::Outage { error, resets_at, refused }) => {
                Ended::Outage { service_error: error, resets_at, retry_after: None, refused, usage }
            }
            Some(Shown::Interrupted) => failed("the agent was interrupted".to_owned(), StepFailure::Failed),
            // What it said last stands, whoever ended the process after it. An exit code of its own does not.
            Some(Shown::Final { text }) if exit.code.is_none_or(|code| code == 0) => {
                Ended::Finished { done: said_done(&text), output: shortened(&text, TEXT_BYTES_MAX), usage }
            }
            _ => {
                let nothing =
                    ("the scripted agent ended without a last message".to_owned(), StepFailure::Failed);
                let (error, why) = crate::failure_of(exit, "the scripted agent").unwrap_or(nothing);
                failed(super::command::with_last_lines(error, &self.errors, why), why)
            }
        }
    }

    fn answer(&mut self, call: &str, allow: bool, note: &str) -> Option<Input> {
        if !self.open.remove(call) {
            return None;
        }
        self.answered.insert(call.to_owned());
        if allow {
            self.running.insert(call.to_owned());
        }
        let answer = Heard::Answer { call: call.to_owned(), allow, note: note.to_owned() };
        Some(Input { id: format!("answer-{call}"), text: protocol::line(&answer) })
    }

    fn interrupt(&mut self) -> Option<Input> {
        if self.end.is_some() || std::mem::replace(&mut self.interrupted, true) {
            return None;
        }
        Some(Input { id: super::INTERRUPT.to_owned(), text: protocol::line(&Heard::Interrupt) })
    }

    fn is_busy(&self) -> bool {
        self.end.is_none() && !self.running.is_empty()
    }

    fn inject(&mut self, text: &str) -> Option<Input> {
        if self.end.is_some() {
            return None;
        }
        self.told += 1;
        let text = protocol::line(&Heard::Say { text: text.to_owned() });
        Some(Input { id: format!("say-{}", self.told), text })
    }
}

#[cfg(test)]
mod tests;
