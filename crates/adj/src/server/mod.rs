//! The owner's end of the socket: HTTP in, [`api::Request`] on, JSON out. It translates and decides nothing.
//!
//! Invariants:
//! - nothing is read of a body, and nothing is answered but 401, before the token has said who asks;
//! - nothing that a caller sends is kept in memory beyond the limits below;
//! - whoever connects and says nothing is not waited for, and takes no descriptor from anybody else.

mod seats;
pub mod socket;
mod stream;
pub mod tokens;

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kernel::Actor;
use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use seats::{Peer, Seat, Seats};

use crate::api::{self, Control, Host, Method, Problem, Request, Site};

pub use socket::{Socket, connect, folder_of};
pub use tokens::{Caller, Tokens, read_token};

/// The largest body that is read.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// A body that takes longer than this to arrive is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// So many requests are answered at once; more wait their turn.
const REQUESTS_MAX: usize = 64;
/// So many callers may wait for something to happen, by long poll or by stream; more are answered at once.
const WAITING_MAX: usize = 256;
/// A connection over which no whole head of a request has come for so long is closed, the first as any later one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Those for whom there is no place are told so, this many at once; they have this long to say what they want.
const TURNED_AWAY_MAX: usize = 16;
const TURNED_AWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// The answer to them. Nothing was read of what they asked, so they can ask again.
pub const TOO_MANY_CONNECTIONS: &str = "TOO_MANY_CONNECTIONS";
/// The system has no descriptor left: it is asked again after this long.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// What is being answered when the owner stops is given this long.
const GRACE: Duration = Duration::from_secs(5);

/// What the server answers from. The runner gives it; everything in it is shared with whoever runs.
pub struct Served {
    pub project: Arc<dyn api::Project + Send + Sync>,
    pub host: Arc<dyn Host>,
    pub control: Arc<dyn Control>,
    pub tokens: Arc<Tokens>,
    /// The number of the last record on disk: its changes wake whoever streams events.
    pub head: watch::Receiver<u64>,
}

struct Shared {
    served: Served,
    requests: Semaphore,
    waiting: Arc<Semaphore>,
    /// Set when the owner stops: streams end.
    stopping: watch::Receiver<bool>,
}

/// Serves until `stop` is over, and lets what is being answered then end first. A caller that waits for something to
/// happen may still hold a thread when this returns: whoever owns the runtime shuts it down without waiting for that.
pub async fn serve(
    listener: UnixListener,
    served: Served,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopped, stopping) = watch::channel(false);
    let shared = Arc::new(Shared {
        served,
        requests: Semaphore::new(REQUESTS_MAX),
        waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        stopping,
    });
    let seats = Seats::new(runtime::files::descriptors_max());
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Whoever wanted to connect has gone, or there is no descriptor left for them.
                Err(_) => {
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            () = &mut stop => break,
        };
        match seats.admit(Peer::of(&stream)) {
            Some(seat) => {
                connections.spawn(talk(stream, shared.clone(), seat));
            }
            None => {
                // More than these are not even told.
                if let Ok(place) = turned_away.clone().try_acquire_owned() {
                    connections.spawn(async move {
                        turn_away(stream).await;
                        drop(place);
                    });
                }
            }
        }
    }
    drop(listener);
    let _ = stopped.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all).await;
    Ok(())
}

/// One connection, until its other end has had enough, is too slow, or must make room.
async fn talk(stream: UnixStream, shared: Arc<Shared>, seat: Seat) {
    let seat = Arc::new(seat);
    let mut stopping = shared.stopping.clone();
    let take = service_fn(|request: hyper::Request<Incoming>| {
        let (shared, seat) = (shared.clone(), seat.clone());
        async move { Ok::<_, Infallible>(respond_to(&shared, &seat, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), take);
    let mut connection = pin!(connection);
    // How it ended is the other end's affair: what was asked has been answered or was not whole.
    tokio::select! {
        _ = &mut connection => return,
        () = seat.asked_to_leave() => return,
        _ = stopping.wait_for(|stopped| *stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Tells whoever has as many connections open as it may.
async fn turn_away(stream: UnixStream) {
    let refuse = service_fn(|_: hyper::Request<Incoming>| async {
        let problem = Problem::new(503, TOO_MANY_CONNECTIONS, "too many connections are open")
            .hint("close some, and try again");
        let mut response = respond(problem.status, &api::routes::document(&problem.document()));
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok::<_, Infallible>(response)
    });
    let mut builder = http1::Builder::new();
    let connection = builder.keep_alive(false).serve_connection(TokioIo::new(stream), refuse);
    let _ = tokio::time::timeout(TURNED_AWAY_TIMEOUT, connection).await;
}

async fn respond_to(shared: &Arc<Shared>, seat: &Seat, request: hyper::Request<Incoming>) -> Response {
    let (parts, body) = request.into_parts();
    match routed(shared, seat, parts, Body::new(body)).await {
        Ok(response) => response,
        Err(problem) => respond(problem.status, &api::routes::document(&problem.document())),
    }
}

async fn routed(shared: &Arc<Shared>, seat: &Seat, parts: Parts, body: Body) -> Result<Response, Problem> {
    let Caller { actor, run } = caller(&shared.served.tokens, &parts.headers)?;
    seat.is_known();
    let request = Request {
        method: method(&parts.method)?,
        path: decoded(parts.uri.path())?,
        query: query(parts.uri.query().unwrap_or_default())?.to_owned(),
        body: Value::Null,
        actor,
        run,
        id: runtime::clock::unique(),
        at: runtime::clock::now(),
        x_idempotency_key: text(&parts.headers, "x-idempotency-key")?,
        idempotency_key: text(&parts.headers, "idempotency-key")?,
    };
    if request.method == Method::Get && request.path == "/api/v1/events" && wants_stream(&parts.headers) {
        api::routes::check(&shared.served.project.world(), &request)?;
        return stream::events(shared, &parts.headers, request);
    }
    let mut body = json_body(request.method, &parts.headers, body).await?;
    hide(&mut body, &shared.served.tokens.hashes());
    let request = Request { body, ..request };
    Ok(answered(shared, request).await)
}

/// Asks on a thread that may block: the owner answers when what was asked is on disk.
async fn answered(shared: &Arc<Shared>, mut request: Request) -> Response {
    let waits = form_urlencoded::parse(request.query.as_bytes()).any(|(name, _)| name == "wait");
    let waiting = waits.then(|| shared.waiting.clone().try_acquire_owned().ok()).flatten();
    if waits && waiting.is_none() {
        let others = form_urlencoded::parse(request.query.as_bytes()).filter(|(name, _)| name != "wait");
        request.query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    }
    // Whoever waits for something to happen takes no place of those who want to be answered.
    let turn = if waiting.is_none() { shared.requests.acquire().await.ok() } else { None };
    let site = shared.clone();
    let response = tokio::task::spawn_blocking(move || answer(&site.served, &request)).await;
    drop((turn, waiting));
    match response {
        Ok(api::Response { status, body }) => respond(status, &body),
        // A bug, and the request's alone: the owner's thread is another.
        Err(_) => {
            let problem = Problem::new(500, "BUG", "the request could not be answered")
                .hint("please report it, with the request");
            respond(problem.status, &api::routes::document(&problem.document()))
        }
    }
}

fn answer(served: &Served, request: &Request) -> api::Response {
    let site = Site { project: &*served.project, host: &*served.host, control: Some(&*served.control) };
    api::answer(&site, request)
}

fn respond(status: u16, body: &Value) -> Response {
    let problem = status >= 400;
    let kind = if problem { "application/problem+json" } else { "application/json" };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == 401 {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The token says who asks. The name of a person is theirs to say, in the alphabet of names.
fn caller(tokens: &Tokens, headers: &HeaderMap) -> Result<Caller, Problem> {
    let unknown = || {
        Problem::new(401, "UNAUTHORIZED", "the request shows no token that this project knows")
            .hint("send `Authorization: Bearer TOKEN`; a person's token is in `.git/adjutant/token`")
    };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = shown.and_then(|shown| shown.split_once(' ')).ok_or_else(unknown)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unknown());
    }
    let user = headers.get("x-adj-user").map(|user| user.to_str().unwrap_or("\u{fffd}"));
    let caller = tokens.caller(token.trim(), user.unwrap_or("local")).ok_or_else(unknown)?;
    if let (Actor::Human(_), Some(user)) = (&caller.actor, user) {
        machines::names::check(user).map_err(|error| Problem::bad(format!("X-Adj-User: {error}")))?;
    }
    Ok(caller)
}

fn method(method: &axum::http::Method) -> Result<Method, Problem> {
    match method.as_str() {
        "GET" => Ok(Method::Get),
        "POST" => Ok(Method::Post),
        "PATCH" => Ok(Method::Patch),
        "DELETE" => Ok(Method::Delete),
        other => {
            Err(Problem::new(405, "NO_SUCH_METHOD", format!("nothing here takes {}", other.escape_debug())))
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let text = headers.get(name).map(|value| value.to_str().map(str::to_owned));
    text.transpose().map_err(|_| Problem::bad(format!("the header `{name}` is not text")))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/event-stream"))
}

/// What a form, a script without leave, or a slip would send is refused before it is read.
async fn json_body(method: Method, headers: &HeaderMap, body: Body) -> Result<Value, Problem> {
    if matches!(method, Method::Post | Method::Patch) && !is_json(headers) {
        return Err(Problem::new(415, "NOT_JSON", "the content type must be application/json"));
    }
    let too_large = || Problem::new(413, "TOO_LARGE", format!("a body holds {BODY_BYTES_MAX} bytes at most"));
    let said =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let body = match read {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
        Ok(Err(error)) => return Err(Problem::bad(format!("the body did not arrive: {error}"))),
        Err(_) => return Err(Problem::new(408, "TOO_SLOW", "the body did not arrive in time")),
    };
    if body.is_empty() {
        return Ok(Value::Null);
    }
    // More than 128 levels deep is an error too, and is found before the stack is.
    serde_json::from_slice(&body).map_err(|error| Problem::bad(format!("the body is not JSON: {error}")))
}

/// What an agent sends may become part of the log, which has no tokens in it.
fn hide(body: &mut Value, hashes: &[String]) {
    match body {
        Value::String(text) => {
            if let Some(shown) = runtime::secrets::hidden_in(text, hashes) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, hashes)),
        Value::Object(members) => members.values_mut().for_each(|value| hide(value, hashes)),
        _ => {}
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// What stands behind the `?`, once it is known that all of it can be read.
fn query(text: &str) -> Result<&str, Problem> {
    decoded(text).map(|_| text)
}

/// `%2F` and the like as what they stand for. Names are looked at after this, never before.
fn decoded(text: &str) -> Result<String, Problem> {
    // The decoder leaves what is no encoding as it is; here it is a slip of whoever sent it.
    let is_whole =
        |after: &str| after.len() >= 2 && after.bytes().take(2).all(|digit| digit.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_whole) {
        return Err(Problem::bad("a `%` in the address is not followed by two digits"));
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| Problem::bad("the address is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_decoded_once_and_what_cannot_be_is_bad_input() {
        assert_eq!(decoded("/tasks/a%2Fb%20c").unwrap(), "/tasks/a/b c");
        assert_eq!(decoded("%252e").unwrap(), "%2e");
        for bad in ["%", "%2", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(bad).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(query("a=1&b&&c=x+y%26").unwrap(), "a=1&b&&c=x+y%26");
        assert_eq!(query("a=%ff").unwrap_err().status, 400);
    }
}
