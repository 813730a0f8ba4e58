//! The messages between a scripted agent and its reader: one JSON object per line.

use crate::PromptKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the agent shows on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Shown {
    Text {
        text: String,
    },
    Turn {
        calls: Vec<Call>,
        output: Option<String>,
        input_tokens: u64,
        output_tokens: u64,
        /// Absent: not known.
        cost_usd: Option<f64>,
    },
    Ask {
        call: String,
        tool: String,
        argument: String,
        #[serde(default)]
        input: serde_json::Map<String, serde_json::Value>,
    },
    Result {
        call: String,
        tool: String,
        ok: bool,
        output: String,
        millis: u64,
    },
    Retry {
        status: u16,
        attempt: u32,
        delay_ms: u64,
    },
    /// The last message.
    Final {
        text: String,
    },
    Outage {
        error: String,
        resets_at: Option<kernel::Millis>,
        /// The credentials are not accepted.
        #[serde(default)]
        refused: bool,
    },
    /// The session is unknown, or in use.
    Session {
        error: String,
    },
    Interrupted,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    pub id: String,
    pub tool: String,
    pub input: Map<String, Value>,
}

/// What the agent hears on its standard input. The first line is `Start`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Heard {
    Start {
        /// What errors call the scenario.
        scenario: String,
        session: String,
        resume: bool,
        kind: PromptKind,
        prompt: String,
        task: String,
        worker: String,
        main: String,
        turns_left: u32,
    },
    Answer {
        call: String,
        allow: bool,
        note: String,
    },
    Interrupt,
    Say {
        text: String,
    },
}

/// One line, with its end.
pub fn line<T: Serialize>(message: &T) -> String {
    // Nothing in these types can fail to be JSON: every key is a text.
    serde_json::to_string(message).expect("plain data") + "\n"
}
