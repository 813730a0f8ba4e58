//! The transcript of an agent for people: `adj peek`, `adj logs`, and the same as JSON.
//!
//! All of it comes from an agent. It is printed as text, and cannot move the cursor or reverse the line.

use super::Said;
use base::visible::{is_harmless, visible_code};
use machines::run::ToolCall;
use serde_json::{Value, json};
use std::fmt::Write;

/// The most of an argument or output that a transcript shows.
const SHOWN_BYTES_MAX: usize = 2000;

machines::wire_enum! {
    /// What kind of line of a transcript it is.
    pub enum EntryKind {
        Text = "text",
        Call = "call",
        Result = "result",
        Failure = "failure",
        Question = "question",
        Retry = "retry",
        Notice = "notice",
        Stop = "stop",
    }
}

/// One entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// As it came, control characters and all.
    pub text: String,
}

impl Entry {
    /// The entries of what was said. A turn's words were said before it, so that only its calls are told here.
    pub fn of(said: &Said) -> Vec<Entry> {
        let one = |kind, text: String| vec![Entry { kind, text }];
        match said {
            Said::Text(text) => one(EntryKind::Text, text.clone()),
            Said::Turn { calls, .. } => {
                calls.iter().map(|call| Entry { kind: EntryKind::Call, text: describe(call) }).collect()
            }
            Said::ToolResult { tool, ok, output, .. } => {
                let kind = if *ok { EntryKind::Result } else { EntryKind::Failure };
                one(kind, format!("{tool}: {}", super::shortened(output, SHOWN_BYTES_MAX)))
            }
            Said::Asked { tool, argument, .. } => {
                one(EntryKind::Question, format!("{tool}({})", super::shortened(argument, SHOWN_BYTES_MAX)))
            }
            Said::Retry { status, attempt, delay_ms, what } => {
                let (what, seconds) = (super::retry_cause(*status, what), delay_ms.div_ceil(1000));
                one(EntryKind::Retry, format!("{what}: attempt {attempt} follows in {seconds} s"))
            }
            Said::Notice(text) => one(EntryKind::Notice, text.clone()),
            Said::Stop(reason) => one(EntryKind::Stop, reason.to_string()),
            // The text that it is a piece of is told whole.
            Said::Token(_) | Said::Send(_) | Said::Finish => Vec::new(),
        }
    }

    /// For a terminal: a sign of its kind, the text behind it, every further line indented.
    pub fn plain(&self) -> String {
        let sign = match self.kind {
            EntryKind::Text => "  ",
            EntryKind::Call => "▸ ",
            EntryKind::Result => "✓ ",
            EntryKind::Failure => "✗ ",
            EntryKind::Question => "? ",
            EntryKind::Retry => "↻ ",
            EntryKind::Notice | EntryKind::Stop => "! ",
        };
        let mut shown = String::new();
        for (index, line) in self.text.lines().enumerate() {
            let sign = if index == 0 { sign } else { "  " };
            let _ = writeln!(shown, "{sign}{}", visible_code(line));
        }
        shown
    }

    /// For programs. The text is as it came; JSON escapes what a terminal would obey, and [`Entry::json_line`] the rest.
    pub fn json(&self) -> Value {
        use machines::Wire;
        json!({ "kind": self.kind.name(), "text": self.text })
    }

    /// One line of JSON in which nothing is left that a terminal would obey.
    pub fn json_line(&self) -> String {
        let plain = self.json().to_string();
        let mut line = String::with_capacity(plain.len());
        for letter in plain.chars() {
            if is_harmless(letter) {
                line.push(letter);
                continue;
            }
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        }
        line
    }
}

impl std::fmt::Display for super::StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            super::StopReason::NotAuthenticated => "the service does not accept the credentials",
            super::StopReason::NotGated => "the program does not ask before it acts",
        })
    }
}

fn describe(call: &ToolCall) -> String {
    format!("{}({})", call.tool, super::shortened(&argument(&call.tool, &call.input), SHOWN_BYTES_MAX))
}

pub use kernel::world::call_argument as argument;
