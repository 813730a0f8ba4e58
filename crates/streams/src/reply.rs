//! Headers of every answer, and small answers.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::body::Body;

/// Request headers of the protocol, for browsers that ask before they send them.
const ALLOWED_HEADERS: &str = "authorization, content-type, if-none-match, producer-epoch, producer-id, producer-seq, \
    stream-closed, stream-expires-at, stream-fork-offset, stream-fork-sub-offset, stream-forked-from, stream-seq, stream-ttl";
const EXPOSED_HEADERS: &str = "etag, location, producer-epoch, producer-expected-seq, producer-received-seq, producer-seq, \
    stream-closed, stream-cursor, stream-expires-at, stream-next-offset, stream-sse-data-encoding, stream-ttl, stream-up-to-date";
pub const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS";

pub fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub fn set(headers: &mut HeaderMap, name: &'static str, value: impl AsRef<str>) {
    if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

pub fn json(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from(value.to_string())));
    *response.status_mut() = status;
    set(response.headers_mut(), "content-type", "application/json");
    set(response.headers_mut(), "cache-control", "no-store");
    response
}

/// The answer to a browser that asks what it may send.
pub fn preflight() -> Response<Body> {
    let mut response = status(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    set(headers, "allow", METHODS);
    set(headers, "access-control-allow-methods", METHODS);
    set(headers, "access-control-allow-headers", ALLOWED_HEADERS);
    set(headers, "access-control-max-age", "600");
    response
}

/// What every answer has. Pages of other origins may use the answers only if `origin` says so.
pub fn finish(mut response: Response<Body>, origin: Option<&str>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A stream may say that it is a web page. Opened as one, it runs nothing and has no origin.
    set(headers, "content-security-policy", "default-src 'none'; sandbox");
    match origin {
        Some(origin) => {
            set(headers, "cross-origin-resource-policy", "cross-origin");
            set(headers, "access-control-allow-origin", origin);
            set(headers, "access-control-expose-headers", EXPOSED_HEADERS);
            set(headers, "vary", "origin");
        }
        None => set(headers, "cross-origin-resource-policy", "same-origin"),
    }
    response
}
