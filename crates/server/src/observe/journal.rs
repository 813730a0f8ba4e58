//! `--log json`: what happens, as one JSON object a line on stderr.
//!
//! No line holds a token, a query or a body.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use api::types::history::Transition;

/// How the server tells what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// In words, on stdout.
    #[default]
    Text,
    /// One JSON object a line, on stderr.
    Json,
}

impl LogForm {
    pub fn name(self) -> &'static str {
        match self {
            LogForm::Text => "text",
            LogForm::Json => "json",
        }
    }
}

/// The seed's line, and which project and thing it is about.
#[derive(Serialize)]
pub struct TransitionLine<'m> {
    #[serde(flatten)]
    pub transition: &'m Transition,
    pub project: &'m str,
}

#[derive(Serialize)]
pub struct RequestLine<'a> {
    pub timestamp: String,
    pub event: &'static str,
    pub project: &'a str,
    pub method: &'static str,
    /// As the table of routes has it, without names.
    pub route: &'static str,
    pub status: u16,
    pub milliseconds: f64,
    pub caller: &'static str,
}

#[derive(Serialize)]
pub struct Noticed<'n> {
    pub timestamp: String,
    pub event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<&'n str>,
    pub message: &'n str,
}

/// A line that cannot be written is lost: the server does not wait for whoever reads them.
pub fn line(of: &impl Serialize) {
    let Ok(mut line) = serde_json::to_value(of).map(|line: Value| line.to_string()) else { return };
    line.push('\n');
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
