//! The configuration of a subscription, as a client sends it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Refusal, address, refuse};
use crate::name;

const LEASE_MS_DEFAULT: u64 = 30_000;
const LEASE_MS_MIN: u64 = 1_000;
const LEASE_MS_MAX: u64 = 600_000;
/// Most explicit streams in one request.
const STREAMS_MAX: usize = 1000;
const TEXT_MAX: usize = 2048;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryKind {
    #[default]
    #[serde(rename = "webhook")]
    Webhook,
    #[serde(rename = "pull-wake")]
    PullWake,
}

/// A subscription in its one normal form: two requests that mean the same have the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    #[serde(rename = "type")]
    pub delivery: DeliveryKind,
    pub pattern: Option<String>,
    pub streams: Vec<String>,
    pub webhook_url: Option<String>,
    pub wake_stream: Option<String>,
    pub lease_ttl_ms: u64,
    pub description: Option<String>,
}

impl Config {
    pub fn parse(body: &[u8], local: bool) -> Result<Config, Refusal> {
        let asked: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("the body is not JSON: {error}")))?;
        let delivery = match asked["type"].as_str() {
            Some("webhook") => DeliveryKind::Webhook,
            Some("pull-wake") => DeliveryKind::PullWake,
            _ => return Err(invalid("type must be \"webhook\" or \"pull-wake\"")),
        };
        let pattern = optional_text(&asked, "pattern")?;
        if let Some(pattern) = &pattern {
            check_pattern(pattern)?;
        }
        let streams = match &asked["streams"] {
            Value::Null => Vec::new(),
            streams => names(streams)?,
        };
        if pattern.is_none() && asked["streams"].is_null() {
            return Err(invalid("at least one of pattern and streams is needed"));
        }
        let webhook_url = match delivery {
            DeliveryKind::PullWake => None,
            DeliveryKind::Webhook => {
                let Some(url) = asked["webhook"]["url"].as_str() else {
                    return Err(invalid("a webhook subscription needs webhook.url"));
                };
                address::check(url, local).map_err(|why| refuse(400, "WEBHOOK_URL_REJECTED", why))?;
                Some(url.to_owned())
            }
        };
        let wake_stream = match delivery {
            DeliveryKind::Webhook => None,
            DeliveryKind::PullWake => {
                let Some(path) = optional_text(&asked, "wake_stream")? else {
                    return Err(invalid("a pull-wake subscription needs wake_stream"));
                };
                check_name(&path)?;
                Some(path)
            }
        };
        let lease_ttl_ms = match &asked["lease_ttl_ms"] {
            Value::Null => LEASE_MS_DEFAULT,
            value => value
                .as_u64()
                .filter(|ms| (LEASE_MS_MIN..=LEASE_MS_MAX).contains(ms))
                .ok_or_else(|| invalid("lease_ttl_ms must be a whole number from 1000 to 600000"))?,
        };
        let description = optional_text(&asked, "description")?;
        Ok(Config { delivery, pattern, streams, webhook_url, wake_stream, lease_ttl_ms, description })
    }

    /// What stands in the table was written by [`Config::text`]; anything else is a subscription that watches nothing.
    pub fn stored(text: &str) -> Config {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The names of streams in a JSON array, sorted and each once.
pub fn names(streams: &Value) -> Result<Vec<String>, Refusal> {
    let listed = streams.as_array().ok_or_else(|| invalid("streams must be a list of names"))?;
    if listed.len() > STREAMS_MAX {
        return Err(invalid(format!("streams has more than {STREAMS_MAX} names")));
    }
    let mut names = Vec::with_capacity(listed.len());
    for name in listed {
        let name = name.as_str().ok_or_else(|| invalid("streams must contain only texts"))?;
        check_name(name)?;
        names.push(name.to_owned());
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn check_name(path: &str) -> Result<(), Refusal> {
    if path.split('/').next() == Some(name::RESERVED) {
        return Err(invalid("paths under __ds are no streams"));
    }
    name::check(path).map_err(|problem| invalid(problem.detail))
}

/// A pattern is a name in which segments may be stars.
fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    let without_stars: Vec<&str> = pattern
        .split('/')
        .map(|segment| if segment == "*" || segment == "**" { "x" } else { segment })
        .collect();
    check_name(&without_stars.join("/"))
}

fn optional_text(asked: &Value, field: &str) -> Result<Option<String>, Refusal> {
    match &asked[field] {
        Value::Null => Ok(None),
        Value::String(text) if text.len() <= TEXT_MAX => Ok(Some(text.clone())),
        _ => Err(invalid(format!("{field} must be a text of at most {TEXT_MAX} bytes"))),
    }
}

fn invalid(why: impl Into<String>) -> Refusal {
    refuse(400, "INVALID_REQUEST", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Result<Config, Refusal> {
        Config::parse(body.as_bytes(), true)
    }

    #[test]
    fn the_same_wish_in_other_words_is_the_same_text() {
        let one = parsed(r#"{"type":"pull-wake","streams":["b","a","b"],"wake_stream":"w"}"#).unwrap();
        let other =
            parsed(r#"{"wake_stream":"w","lease_ttl_ms":30000,"streams":["a","b"],"type":"pull-wake"}"#)
                .unwrap();
        assert_eq!(one.text(), other.text());
        assert_eq!(Config::stored(&one.text()), one);
    }

    #[test]
    fn what_is_missing_or_out_of_range_is_refused() {
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"type":"mail","pattern":"*"}"#,
            r#"{"type":"pull-wake","pattern":"*"}"#,
            r#"{"type":"pull-wake","wake_stream":"w"}"#,
            r#"{"type":"webhook","pattern":"*"}"#,
            r#"{"type":"pull-wake","wake_stream":"w","pattern":"*","lease_ttl_ms":999}"#,
            r#"{"type":"pull-wake","wake_stream":"w","pattern":"*","lease_ttl_ms":600001}"#,
            r#"{"type":"pull-wake","wake_stream":"../w","pattern":"*"}"#,
            r#"{"type":"pull-wake","wake_stream":"w","pattern":"a/../b"}"#,
            r#"{"type":"pull-wake","wake_stream":"w","streams":[1]}"#,
            r#"{"type":"pull-wake","wake_stream":"w","streams":["__ds/x"]}"#,
        ] {
            assert_eq!(parsed(bad).unwrap_err().status, 400, "{bad}");
        }
    }
}
