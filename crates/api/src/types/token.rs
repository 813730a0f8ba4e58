//! Tokens that people make, and links for browsers.

use super::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The permissions of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    /// All that people may.
    Person,
    /// Look at everything, and change nothing.
    Reader,
    /// The permissions of an agent with this role.
    Lead,
    Specialist,
    Intern,
}

impl std::fmt::Display for TokenRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TokenRole::Person => "person",
            TokenRole::Reader => "reader",
            TokenRole::Lead => "lead",
            TokenRole::Specialist => "specialist",
            TokenRole::Intern => "intern",
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    /// The user of the token. Everything that is done with it is recorded under this name.
    #[schemars(with = "Name")]
    pub name: String,
    pub role: TokenRole,
    /// It expires after this many days; without it, it is valid until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3650))]
    pub days: Option<u32>,
}

/// A token, without the token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenLine {
    /// The id with which it is revoked. It is not a secret.
    pub id: String,
    pub name: String,
    pub role: TokenRole,
    pub created_at: String,
    /// Null: it is valid until it is revoked.
    pub expires_at: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Minted {
    #[serde(flatten)]
    pub line: TokenLine,
    /// Shown this once: only its hash is kept.
    pub token: String,
}

/// A way into the page for a browser, for one use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    pub url: String,
    pub expires_at: String,
}
