//! One request: who asks, for which project, what; and the answer.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use kernel::Actor;
use serde::Deserialize;
use serde_json::Value;
use streams::Access;

use super::observe::{self, By};
use super::tokens::{Caller, Tokens};
use super::{Connection, Door, House, Place, Served, TcpDoor, events, pages, ready};
use crate::api::{self, Method, Problem, Request, Site};

/// The largest body that is read.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// A body that takes longer than this to arrive is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn respond_to(connection: &Arc<Connection>, request: hyper::Request<Incoming>) -> Response {
    let (since, mut by) = (Instant::now(), By::default());
    let (parts, body) = request.into_parts();
    let response = match routed(connection, &parts, body, &mut by).await {
        Ok(response) => response,
        Err(problem) => respond_problem(&problem),
    };
    observe::answered(&connection.house, &parts, by, since, &response);
    response
}

async fn routed(
    connection: &Arc<Connection>,
    parts: &Parts,
    body: Incoming,
    by: &mut By,
) -> Result<Response, Problem> {
    let house = &connection.house;
    if let Door::Tcp(door) = &house.door {
        match door.open && is_preflight(parts) {
            true => door.names.check_host(parts)?,
            false => door.names.check(parts)?,
        }
        if let Some(response) = pages::before_anybody_asks(door, parts) {
            return Ok(response);
        }
        if parts.uri.path() == "/readyz" {
            return Ok(pages::ready(house));
        }
        if parts.uri.path() == pages::SESSION {
            return session(door, parts, body).await;
        }
    }
    let path = decoded(parts.uri.path())?;
    if let Some(page) = metrics(house, parts, &path, by).await? {
        return Ok(page);
    }
    let (place, path) = house.place(&path);
    let Some(place) = place else {
        // What is of no project is for whoever may ask any of them.
        let known = house.places.values().any(|place| caller(house, place, parts).is_ok());
        return match known {
            true => pages::of_house(house, &path).ok_or_else(|| nothing_at(&path)),
            false => stranger(house, &path, unknown()),
        };
    };
    let asking = match caller(house, place, parts) {
        Ok(asking) => asking,
        // Whoever was woken shows what it was woken with.
        Err(_) if stream_path(parts.uri.path()).is_some_and(is_of_a_wake) => {
            let stream = stream_path(parts.uri.path()).unwrap_or_default();
            return ask_streams(place, stream, parts, body, Access::NOTHING).await;
        }
        Err(problem) => return stranger(house, &path, problem),
    };
    connection.seat.is_known();
    *by = By::of(&asking);
    if let Door::Tcp(door) = &house.door
        && asking.paced
    {
        door.pace.named(&asking.actor.to_string())?;
    }
    if let Some(page) = pages::of_place(&path) {
        return Ok(page);
    }
    if path == "/mcp" {
        let request = axum::http::Request::from_parts(parts.clone(), Body::new(body));
        return Ok(place.mcp.answer(request, asking).await);
    }
    if let Some(stream) = stream_path(parts.uri.path()) {
        return streamed(place, stream, parts, body, &asking).await;
    }
    let Caller { actor, run, reads_only, .. } = asking;
    let request = Request {
        method: method(&parts.method, &path)?,
        path,
        query: query(parts.uri.query().unwrap_or_default())?.to_owned(),
        body: Value::Null,
        actor,
        run,
        reads_only,
        id: runtime::clock::unique(),
        at: runtime::clock::now(),
        x_idempotency_key: text(&parts.headers, "x-idempotency-key")?,
        idempotency_key: text(&parts.headers, "idempotency-key")?,
    };
    if request.method == Method::Get && request.path == "/api/v1/events" && wants_stream(&parts.headers) {
        api::routes::check(&place.served.project.world(), &request)?;
        let after = events::after(&request.query, text(&parts.headers, "last-event-id")?)?;
        let end = place.served.project.world().seq;
        if after > end {
            return Err(Problem::not_found(format!("there is no record {after}: the log ends with {end}"))
                .hint("follow from `after=0`, or from the last record that you have seen in this log"));
        }
        let (house, place, parts) = (house.clone(), place.clone(), parts.clone());
        let events = place.served.events.clone();
        let may = move || caller(&house, &place, &parts).is_ok();
        return Ok(events.follow(after, connection.stopping.clone(), may));
    }
    let seen = text(&parts.headers, "if-none-match")?;
    let plain = request.query.is_empty() && !brings_body(&parts.headers);
    if request.method == Method::Get && request.path == "/api/v1/board" && plain {
        let world = place.served.project.world();
        if api::routes::check(&world, &request)?.ready {
            let ready::Ready { document, version } = place.board.document(&world);
            return Ok(respond_kept(document, &format!("\"{:x}-{version}\"", started()), seen.as_deref()));
        }
    }
    api::routes::is_known(&request)?;
    let mut body = json_body(request.method, &parts.headers, body).await?;
    hide(&mut body, &place.served.tokens);
    Ok(answered(place, Request { body, ..request }, seen.as_deref()).await)
}

/// What stands behind the place of streams in a path, as it was sent.
fn stream_path(path: &str) -> Option<&str> {
    let path = match path.strip_prefix("/p/") {
        Some(rest) => &rest[rest.find('/')?..],
        None => path,
    };
    path.strip_prefix("/v1/stream/")
}

/// What a browser asks before a page may use a stream. The answer tells nothing of the stream, and a test suite wants it.
fn is_preflight(parts: &Parts) -> bool {
    parts.method == axum::http::Method::OPTIONS && stream_path(parts.uri.path()).is_some()
}

/// These three come with the token of a wake, which the streams themselves have given out.
fn is_of_a_wake(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["__ds", "subscriptions", _, "callback" | "ack" | "release"])
}

async fn streamed(
    place: &Arc<Place>,
    path: &str,
    parts: &Parts,
    body: Incoming,
    caller: &Caller,
) -> Result<Response, Problem> {
    let access = stream_access(place, path, caller)?;
    ask_streams(place, path, parts, body, access).await
}

async fn ask_streams(
    place: &Arc<Place>,
    path: &str,
    parts: &Parts,
    body: Incoming,
    access: Access,
) -> Result<Response, Problem> {
    let Some(streams) = &place.served.streams else {
        return Err(Problem::not_found("no streams are served here").hint("`adj serve` serves them"));
    };
    let request = axum::http::Request::from_parts(parts.clone(), body);
    Ok(streams.answer(path, request, access).await.map(Body::new))
}

/// People read and write; an agent reads what it may read by the routes, and what others have put there.
fn stream_access(place: &Arc<Place>, path: &str, caller: &Caller) -> Result<Access, Problem> {
    let Caller { actor, run, reads_only, .. } = caller.clone();
    if actor.is_human() {
        return Ok(if reads_only { Access::READ } else { Access::ALL });
    }
    let route = match path.split_once('/') {
        Some(("runs", id)) => format!("/runs/{id}/history"),
        Some(("tasks", id)) => format!("/tasks/{id}/history"),
        Some(("agents" | "channels", _)) => "/history".to_owned(),
        None if path == "log" => "/events".to_owned(),
        _ => return Ok(Access::READ),
    };
    let request = Request {
        method: Method::Get,
        path: format!("/api/v1{route}"),
        query: String::new(),
        body: Value::Null,
        actor,
        run,
        reads_only,
        id: 0,
        at: 0,
        x_idempotency_key: None,
        idempotency_key: None,
    };
    api::routes::check(&place.served.project.world(), &request)?;
    Ok(Access::READ)
}

/// The numbers of all projects are for the people of any of them; agents find nothing there.
async fn metrics(house: &House, parts: &Parts, path: &str, by: &mut By) -> Result<Option<Response>, Problem> {
    if path != observe::PATH || parts.method != axum::http::Method::GET {
        return Ok(None);
    }
    let mut known = house.places.values().filter_map(|place| caller(house, place, parts).ok());
    let Some(asking) = known.find(|caller| matches!(caller.actor, Actor::Human(_))) else { return Ok(None) };
    if let Door::Tcp(door) = &house.door
        && asking.paced
    {
        door.pace.named(&asking.actor.to_string())?;
    }
    *by = By::of(&asking);
    Ok(observe::page().await.map(pages::metrics))
}

/// A person at a browser is told in a page how to get in.
fn stranger(house: &House, path: &str, problem: Problem) -> Result<Response, Problem> {
    let problem = match &house.door {
        Door::Tcp(door) => door.pace.stranger(problem),
        Door::Socket => problem,
    };
    match path {
        "/" if problem.status == 401 => Ok(pages::knock()),
        _ => Err(problem),
    }
}

impl House {
    /// The project that a path leads to, and the path within it. Where there is only one, its name can be left out.
    fn place<'h>(&'h self, path: &str) -> (Option<&'h Arc<Place>>, String) {
        if let (Door::Tcp(_), Some(rest)) = (&self.door, path.strip_prefix("/p/")) {
            let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
            return (self.places.get(name), format!("/{rest}"));
        }
        let only = self.places.values().next().filter(|_| self.places.len() == 1);
        (only, path.to_owned())
    }
}

fn nothing_at(path: &str) -> Problem {
    Problem::not_found(format!("there is nothing at `{}`", path.escape_debug()))
        .hint("a server of several projects has each of them at `/p/NAME/`")
}

/// Asks on a thread that may block: the owner answers when what was asked is on disk.
async fn answered(place: &Arc<Place>, mut request: Request, seen: Option<&str>) -> Response {
    let waits = form_urlencoded::parse(request.query.as_bytes()).any(|(name, _)| name == "wait");
    let waiting = waits.then(|| place.waiting.clone().try_acquire_owned().ok()).flatten();
    if waits && waiting.is_none() {
        let others = form_urlencoded::parse(request.query.as_bytes()).filter(|(name, _)| name != "wait");
        request.query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    }
    // Whoever waits for something to happen takes no place of those who want to be answered.
    let turn = if waiting.is_none() { place.requests.acquire().await.ok() } else { None };
    let reads = request.method == Method::Get;
    let asked = place.clone();
    let response = tokio::task::spawn_blocking(move || answer(&asked.served, &request)).await;
    drop((turn, waiting));
    match response {
        Ok(api::Response { status: 200, body }) if reads => respond_tagged(&body, seen),
        Ok(api::Response { status, body }) => respond(status, &body),
        // A bug, and the request's alone: the owner's thread is another.
        Err(_) => respond_problem(
            &Problem::new(500, "BUG", "the request could not be answered")
                .hint("please report it, with the request"),
        ),
    }
}

pub(super) fn answer(served: &Served, request: &Request) -> api::Response {
    let site = Site { project: &*served.project, host: &*served.host, control: Some(&*served.control) };
    api::answer(&site, request)
}

pub(super) fn respond_problem(problem: &Problem) -> Response {
    let mut response = respond(problem.status, &api::routes::document(&problem.document()));
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

fn respond(status: u16, body: &Value) -> Response {
    let kind = if status >= 400 { "application/problem+json" } else { "application/json" };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(code) = body["code"].as_str().filter(|_| status >= 400) {
        response.extensions_mut().insert(observe::Code(code.into()));
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
fn respond_tagged(body: &Value, seen: Option<&str>) -> Response {
    let text = body.to_string();
    let tag = format!("\"{}\"", &runtime::secrets::hash(text.as_bytes())[..32]);
    respond_kept(text.into(), &tag, seen)
}

/// Which process made a tag: the next one counts from the beginning.
fn started() -> u128 {
    static STARTED: LazyLock<u128> = LazyLock::new(runtime::clock::unique);
    *STARTED
}

fn respond_kept(document: Bytes, tag: &str, seen: Option<&str>) -> Response {
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
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Cookie"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if same {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}

fn unknown() -> Problem {
    Problem::new(401, "UNAUTHORIZED", "the request shows no token that this project knows")
        .hint("send `Authorization: Bearer TOKEN`; a person's token is in `.git/adjutant/token`")
}

/// Who asks: a token says so, or a session of a browser that one of our links has begun.
pub(super) fn caller(house: &House, place: &Place, parts: &Parts) -> Result<Caller, Problem> {
    let now = runtime::clock::now();
    let door = match &house.door {
        Door::Socket => None,
        Door::Tcp(door) => Some(door),
    };
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return by_token(&place.served.tokens, &parts.headers);
    }
    if let Some(door) = door
        && let Some(secret) = cookie(door, &parts.headers)
        && let Some(user) = door.sessions.user(secret, now)
    {
        door.names.check_cookie(parts)?;
        return Ok(Caller::person(&user));
    }
    match door {
        Some(door) if door.open => Ok(Caller::person("local")),
        _ => Err(unknown()),
    }
}

/// The name of the project's user is theirs to say, in the alphabet of names.
fn by_token(tokens: &Tokens, headers: &HeaderMap) -> Result<Caller, Problem> {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = shown.and_then(|shown| shown.split_once(' ')).ok_or_else(unknown)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unknown());
    }
    let user = headers.get("x-adj-user").map(|user| user.to_str().unwrap_or("\u{fffd}"));
    let now = runtime::clock::now();
    let caller = tokens.caller(token.trim(), user.unwrap_or("local"), now).ok_or_else(unknown)?;
    if let (Actor::Human(_), Some(user)) = (&caller.actor, user) {
        machines::names::check(user).map_err(|error| Problem::bad(format!("X-Adj-User: {error}")))?;
    }
    Ok(caller)
}

impl TcpDoor {
    /// Browsers send a cookie to every port of a host: each server has a name of its own.
    fn cookie_name(&self) -> String {
        match self.secure {
            true => format!("__Host-adj-{}", self.port),
            false => format!("adj-{}", self.port),
        }
    }
}

/// The secret of a session, as the browser keeps it.
fn cookie<'h>(door: &TcpDoor, headers: &'h HeaderMap) -> Option<&'h str> {
    let name = door.cookie_name();
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(given, secret)| (given == name).then_some(secret))
}

/// What the page behind a link sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enter {
    code: String,
}

/// A link becomes a session, or a session ends.
async fn session(door: &TcpDoor, parts: &Parts, body: Incoming) -> Result<Response, Problem> {
    let (method, now) = (method(&parts.method, pages::SESSION)?, runtime::clock::now());
    let (secret, seconds) = match method {
        Method::Post => {
            let body = json_body(method, &parts.headers, body).await?;
            let Enter { code } = Enter::deserialize(&body)
                .map_err(|error| Problem::bad(format!("the body is not right: {error}")))?;
            let begun = door.sessions.begin(&code, now).map_err(|error| {
                Problem::new(500, "NO_SECRET", format!("no session could be begun: {error}"))
            })?;
            let begun = begun.ok_or_else(|| {
                Problem::new(401, "LINK_USED", "this link was used already, or is too old")
                    .hint("`adj url` prints a fresh one")
            })?;
            (begun.secret, begun.seconds)
        }
        Method::Delete => {
            door.names.check_cookie(parts)?;
            if let Some(secret) = cookie(door, &parts.headers) {
                door.sessions.end(secret, now);
            }
            (String::new(), 0)
        }
        _ => {
            let detail = "a session is begun by POST and ended by DELETE";
            let problem = Problem::new(405, "NO_SUCH_METHOD", detail);
            return Err(Problem { methods: vec!["POST", "DELETE"], ..problem });
        }
    };
    let secure = if door.secure { "; Secure" } else { "" };
    let name = door.cookie_name();
    let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = respond(200, &Value::Object(Default::default()));
    let cookie = HeaderValue::from_str(&cookie)
        .map_err(|error| Problem::new(500, "NO_SECRET", format!("no session could be begun: {error}")))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

fn method(method: &axum::http::Method, path: &str) -> Result<Method, Problem> {
    match method.as_str() {
        // What is not sent of the answer is left out on the way.
        "GET" | "HEAD" => Ok(Method::Get),
        "POST" => Ok(Method::Post),
        "PUT" => Ok(Method::Put),
        "PATCH" => Ok(Method::Patch),
        "DELETE" => Ok(Method::Delete),
        other => {
            let methods = api::routes::methods_at(path);
            let detail = format!("nothing here takes {}", other.escape_debug());
            Err(Problem { methods, ..Problem::new(405, "NO_SUCH_METHOD", detail) })
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
async fn json_body(method: Method, headers: &HeaderMap, body: Incoming) -> Result<Value, Problem> {
    let changes = matches!(method, Method::Post | Method::Patch);
    if changes && !is_json(headers) && !is_empty(headers) {
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
pub fn hide(body: &mut Value, tokens: &Tokens) {
    if longest_text(body) >= runtime::secrets::TOKEN_DIGITS {
        hide_in(body, &tokens.hashes());
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

fn hide_in(body: &mut Value, hashes: &[String]) {
    match body {
        Value::String(text) => {
            if let Some(shown) = runtime::secrets::hidden_in(text, hashes) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, hashes)),
        Value::Object(members) => members.values_mut().for_each(|value| hide_in(value, hashes)),
        _ => {}
    }
}

fn brings_body(headers: &HeaderMap) -> bool {
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
