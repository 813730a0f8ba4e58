//! What a request that was not granted is answered with, and what a command prints that has failed.

use super::waiting::Offered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Problem details (RFC 9457), and the refusal of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Problem")]
pub struct Document {
    /// `urn:adjutant:problem:` and the name of the problem.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What was wrong.
    pub detail: String,
    /// Which rule or fault it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What can be done about it, the most likely first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Offered>,
    /// Each error, if a command found several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// False if a move was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// What is missing or wrong, by member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<FieldError>>,
    /// The values that are accepted instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// The same of a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_transitions: Option<Vec<String>>,
}

impl Document {
    pub fn named(name: &str, status: u16, detail: String) -> Document {
        Document {
            kind: format!("urn:adjutant:problem:{name}"),
            title: name.replace('-', " "),
            status,
            detail,
            ..Document::default()
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

impl From<machines::FieldError> for FieldError {
    fn from(error: machines::FieldError) -> FieldError {
        FieldError { field: error.field.into_owned(), message: error.message.into_owned() }
    }
}
