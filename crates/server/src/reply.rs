//! The forms of an answer.

use std::sync::LazyLock;

use http::{HeaderValue, StatusCode, header};
use hyper::body::Bytes;
use serde_json::Value;

use super::observe;
use crate::response::{Body, Response};
use api::{self, Problem};

pub fn respond_problem(problem: &Problem) -> Response {
    let mut response = respond(problem.status, &api::operation::document(&problem.document()));
    let headers = response.headers_mut();
    if let Some(seconds) = problem.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.status == 405
        && let Ok(methods) = HeaderValue::from_str(&problem.methods.join(", "))
    {
        headers.insert(header::ALLOW, methods);
    }
    response
}

pub(super) fn respond(status: u16, body: &Value) -> Response {
    respond_text(status, body.to_string(), code(status, body))
}

/// The code of a problem, where it is one.
pub(super) fn code(status: u16, body: &Value) -> Option<observe::Code> {
    let code = body["code"].as_str().filter(|_| status >= 400)?;
    Some(observe::Code(code.into()))
}

/// The same, where it is text already.
pub(super) fn respond_text(status: u16, text: impl Into<Bytes>, code: Option<observe::Code>) -> Response {
    let kind = if status >= 400 { "application/problem+json" } else { "application/json" };
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // A decision comes back as a document, without the seconds of its problem.
    let passes = code.as_ref().is_some_and(|code| matches!(&*code.0, "IN_FLIGHT" | "CONTENDED"));
    if let Some(code) = code {
        response.extensions_mut().insert(code);
    }
    if passes {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == 408 || status == 413 {
        // What is left of the body is not read, so nothing can follow it.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What is polled: whoever has seen just this is told so in its place.
pub(super) fn respond_tagged(text: Bytes, seen: Option<&str>) -> Response {
    let tag = format!("\"{}\"", &base::secrets::hash(&text)[..32]);
    respond_kept(text, &tag, seen)
}

/// Which process made a tag: the next one counts from the beginning.
pub(super) fn started() -> u128 {
    static STARTED: LazyLock<u128> = LazyLock::new(base::clock::unique);
    *STARTED
}

pub(super) fn respond_kept(document: Bytes, tag: &str, seen: Option<&str>) -> Response {
    let same = seen.is_some_and(|seen| {
        seen.split(',').any(|one| one.trim().trim_start_matches("W/") == tag || one.trim() == "*")
    });
    let mut response = Response::new(Body::from(if same { Bytes::new() } else { document }));
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    // It is the caller's alone, and to be asked for again each time.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Cookie, X-Adj-Page-Key"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if same {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}
