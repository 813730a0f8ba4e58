//! What a request brings: its method, and its body: JSON, of a size and within a time, and without tokens in it.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use serde_json::Value;

use super::tokens::Tokens;
use api::{Method, Problem};

/// The largest body that is read.
pub const BODY_BYTES_MAX: usize = 1 << 20;

pub(super) fn method(method: &http::Method, path: &str) -> Result<Method, Problem> {
    match method.as_str() {
        // What is not sent of the answer is left out on the way.
        "GET" | "HEAD" => Ok(Method::Get),
        "POST" => Ok(Method::Post),
        "PUT" => Ok(Method::Put),
        "PATCH" => Ok(Method::Patch),
        "DELETE" => Ok(Method::Delete),
        other => {
            let methods = api::routes::methods_at(path);
            let detail = format!("method {} is not allowed here", other.escape_debug());
            Err(Problem { methods, ..Problem::new(405, "NO_SUCH_METHOD", detail) })
        }
    }
}

/// What a form, a script without leave, or a slip would send is refused before it is read. A body that takes longer than
/// `within` to arrive is not waited for.
pub(super) async fn json_body(
    method: Method,
    headers: &HeaderMap,
    body: Incoming,
    within: Duration,
) -> Result<Value, Problem> {
    let changes = matches!(method, Method::Post | Method::Patch);
    if changes && !is_json(headers) && !is_empty(headers) {
        return Err(Problem::new(415, "NOT_JSON", "the content type must be application/json"));
    }
    let body = whole_body(headers, body, within).await?;
    if body.is_empty() {
        return Ok(Value::Null);
    }
    // More than 128 levels deep is an error too, and is found before the stack is.
    match serde_json::from_slice(&body) {
        // Nothing is what an empty body says.
        Ok(Value::Null) => Err(Problem::bad("invalid request body: it must be an object")),
        Ok(body) => Ok(body),
        Err(error) => Err(Problem::bad(format!("the request body is not JSON: {error}"))),
    }
}

/// All of a body, where it is no larger than it may be and arrives in time.
pub async fn whole_body<B>(headers: &HeaderMap, body: B, within: Duration) -> Result<Bytes, Problem>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || {
        Problem::new(413, "TOO_LARGE", format!("the request body must have at most {BODY_BYTES_MAX} bytes"))
    };
    let said =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(within, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    match read {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::bad(format!("the request body did not arrive: {error}"))),
        Err(_) => Err(Problem::new(408, "TOO_SLOW", "the request body did not arrive in time")),
    }
}

/// What an agent sends may become part of the log, which has no tokens in it.
pub fn hide(body: &mut Value, tokens: &Tokens) {
    if longest_text(body) >= base::secrets::TOKEN_DIGITS {
        base::secrets::hide_in(body, &tokens.hashes());
    }
}

/// Most bodies hold nothing that is long enough to be a token.
fn longest_text(body: &Value) -> usize {
    match body {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest_text).max().unwrap_or(0),
        Value::Object(members) => members.values().map(longest_text).max().unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn brings_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes);
    headers.contains_key(header::TRANSFER_ENCODING) || !matches!(length, None | Some(b"0"))
}

/// Nothing is sent, and nothing is said of what it would be.
fn is_empty(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::CONTENT_TYPE) && !brings_body(headers)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
