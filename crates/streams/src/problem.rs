//! Error answers: RFC 9457 problem documents, with the headers that the protocol requires.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::body::Body;
use crate::memory::NoRoom;

/// Why a request is not carried out.
#[derive(Clone, Debug)]
pub struct Problem {
    pub status: u16,
    /// A word for programs; stable.
    pub code: &'static str,
    /// A sentence for people: what was wrong, and what to do.
    pub detail: String,
    pub headers: Vec<(HeaderName, String)>,
}

impl Problem {
    pub fn new(status: u16, code: &'static str, detail: impl Into<String>) -> Self {
        Problem { status, code, detail: detail.into(), headers: Vec::new() }
    }

    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((HeaderName::from_static(name), value.to_string()));
        self
    }

    pub fn not_found(path: &str) -> Self {
        Problem::new(404, "STREAM_NOT_FOUND", format!("there is no stream `{path}`; create it with PUT"))
    }

    pub fn gone(path: &str) -> Self {
        Problem::new(
            410,
            "STREAM_GONE",
            format!("stream `{path}` was deleted; its forks still read its data"),
        )
    }

    /// What was acknowledged is not there, or not as it was.
    pub fn damaged(why: &str) -> Self {
        let what = "restore a backup, or remove `streams.db.head` beside them to go on with what is left";
        Problem::new(
            500,
            "STREAMS_DAMAGED",
            format!("the stored streams are damaged: {why}; stop the server, then {what}"),
        )
    }

    /// Answers that nobody has read yet hold all the memory that there is for them.
    pub fn no_room(no: NoRoom) -> Self {
        let problem = match no {
            NoRoom::OfCaller => Problem::new(
                429,
                "TOO_MUCH_UNREAD",
                "answers that this caller has not read yet hold as much memory as one caller may have; read them, or close \
                 their connections, and try again",
            ),
            NoRoom::OfServer => Problem::new(
                503,
                "TOO_MUCH_UNREAD",
                "answers that clients have not read yet hold all the memory that there is for them; try again",
            ),
        };
        problem.header("retry-after", 1)
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Problem::new(400, "INVALID_REQUEST", detail)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(409, "CONFLICT", detail)
    }

    /// The disk or the database said no. What it said goes into the text, since nobody else hears of it.
    pub fn failed(detail: impl std::fmt::Display) -> Self {
        Problem::new(500, "STORE_FAILED", format!("the store could not carry this out: {detail}"))
    }

    pub fn no_space() -> Self {
        Problem::new(
            507,
            "NO_SPACE",
            "the disk is full; nothing of this was kept. Make room and send it again",
        )
    }

    pub fn response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let document = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        });
        let mut response = Response::new(Body::full(Bytes::from(document.to_string())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
