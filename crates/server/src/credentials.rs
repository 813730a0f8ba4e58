//! Who asks: a token says so, or the session of a browser.

use std::path::Path;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use hyper::body::Incoming;
use kernel::Actor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{json_body, method};
use super::reply::respond;
use super::sessions::Shown;
use super::tokens::{Caller, Tokens};
use super::{HttpServer, MountedProject, TcpTransport, Transport, pages};
use crate::response::Response;
use api::tokens::Who;
use api::{Method, Problem};

pub(super) fn unknown() -> Problem {
    Problem::new(401, "UNAUTHORIZED", "the request has no valid token for this project")
        .hint("send `Authorization: Bearer TOKEN`; a person's token is in `.git/adjutant/token`")
}

/// Who asks: a token says so, or a session of a browser that one of our links has begun.
pub(super) fn caller(
    server: &HttpServer,
    project: &MountedProject,
    parts: &Parts,
) -> Result<Caller, Problem> {
    let now = base::clock::now();
    let transport = match &server.transport {
        Transport::Socket => None,
        Transport::Tcp(transport) => Some(transport),
    };
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return by_token(&project.services.tokens, &parts.headers);
    }
    if let Some(transport) = transport
        && let Some(shown) = shown(transport, &parts.headers)
        && let tokens = &project.services.tokens
        && let Some(Who { user, token }) = transport.sessions.who(shown, tokens.folder(), now)
        && token.as_deref().is_none_or(|token| tokens.lives(token, now))
    {
        transport.names.check_cookie(parts)?;
        return Ok(Caller { token, ..Caller::person(&user) });
    }
    match transport {
        Some(transport) if transport.open => Ok(Caller::person("local")),
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
    let now = base::clock::now();
    let caller = tokens.caller(token.trim(), user.unwrap_or("local"), now).ok_or_else(unknown)?;
    if let (Actor::Human(_), Some(user)) = (&caller.actor, user) {
        machines::names::check(user).map_err(|error| Problem::bad(format!("X-Adj-User: {error}")))?;
    }
    Ok(caller)
}

impl TcpTransport {
    /// Browsers send a cookie to every port of a host: each server has a name of its own.
    fn cookie_name(&self) -> String {
        match self.secure {
            true => format!("__Host-adj-{}", self.port),
            false => format!("adj-{}", self.port),
        }
    }
}

/// Both secrets of a session. A navigation sends only the cookie: it is nobody's, and gets a page that sends both.
fn shown<'h>(transport: &TcpTransport, headers: &'h HeaderMap) -> Option<Shown<'h>> {
    let page_key = headers.get(pages::PAGE_KEY).and_then(|value| value.to_str().ok())?;
    Some(Shown { cookie: cookie(transport, headers)?, page_key })
}

/// The secret of a session that the browser sends to every port of this host.
fn cookie<'h>(transport: &TcpTransport, headers: &'h HeaderMap) -> Option<&'h str> {
    let name = transport.cookie_name();
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

/// What it is given beside the cookie, and keeps in the storage of this origin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entered {
    page_key: String,
}

/// A link becomes a session, or a session ends.
pub(super) async fn session(
    server: &HttpServer,
    transport: &TcpTransport,
    parts: &Parts,
    body: Incoming,
) -> Result<Response, Problem> {
    let (method, now) = (method(&parts.method, pages::SESSION)?, base::clock::now());
    let (secret, seconds, entered) = match method {
        Method::Post => {
            let body = json_body(method, &parts.headers, body, transport.client_timeout).await?;
            let Enter { code } = Enter::deserialize(&body)
                .map_err(|error| Problem::bad(format!("invalid request body: {error}")))?;
            let before = shown(transport, &parts.headers);
            // A link rests on the token of whoever made it, and ends with it.
            let lives = |folder: &Path, token: &str| {
                let of_folder = |project: &&Arc<MountedProject>| project.services.tokens.folder() == folder;
                let project = server.projects.values().find(of_folder);
                project.is_some_and(|project| project.services.tokens.lives(token, now))
            };
            let begun = transport.sessions.begin(&code, before, now, &lives).map_err(|error| {
                Problem::new(500, "NO_SECRET", format!("the session could not be created: {error}"))
            })?;
            let begun = begun.ok_or_else(|| {
                Problem::new(401, "LINK_USED", "this link was already used or has expired")
                    .hint("`adj url` prints a new link")
            })?;
            let entered = serde_json::to_value(Entered { page_key: begun.page_key });
            (begun.secret, begun.seconds, entered.unwrap_or_default())
        }
        Method::Delete => {
            transport.names.check_cookie(parts)?;
            let shown = shown(transport, &parts.headers).ok_or_else(unknown)?;
            let ended = transport.sessions.end(shown, now).map_err(|error| {
                let detail =
                    format!("the session has ended, but a restart of the server may restore it: {error}");
                Problem::new(500, "NOT_KEPT", detail)
            })?;
            if !ended {
                return Err(unknown());
            }
            (String::new(), 0, Value::Object(Default::default()))
        }
        _ => {
            let detail = "POST creates a session, DELETE ends it";
            let problem = Problem::new(405, "NO_SUCH_METHOD", detail);
            return Err(Problem { methods: vec!["POST", "DELETE"], ..problem });
        }
    };
    let secure = if transport.secure { "; Secure" } else { "" };
    let name = transport.cookie_name();
    let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = respond(200, &entered);
    let cookie = HeaderValue::from_str(&cookie).map_err(|error| {
        Problem::new(500, "NO_SECRET", format!("the session could not be created: {error}"))
    })?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
