//! MCP over HTTP, with sessions for the revisions that have them.
//!
//! Invariants: nothing but a question to the client needs a session, so that whatever comes without one is answered too; a
//! session is its caller's alone; and there are never more than [`SESSIONS_MAX`]. The newest revision knows none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use rmcp::ServerHandler;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::sync::watch;

use crate::response::Body;
use crate::{BODY_BYTES_MAX, Caller, respond_problem, whole_body};
use api::Problem;

/// As many as a project has at once. Who begins one more ends the one that nobody has used for the longest.
pub const SESSIONS_MAX: usize = 64;
/// A session over which nothing has gone for so long is over. There is no clock for it: it is looked at when somebody asks.
const IDLE_MAX: Duration = Duration::from_mins(10);

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";

/// Where MCP is answered, with the sessions that are open there.
pub struct Mount {
    manager: Arc<LocalSessionManager>,
    held: Mutex<HashMap<String, Held>>,
    /// One session is begun after the other, so that they can be counted.
    begins: tokio::sync::Mutex<()>,
    idle_max: Duration,
}

/// A session that was begun.
struct Held {
    caller: Caller,
    /// When something last went over it.
    used: Instant,
    /// Requests of it that are being answered, and streams that somebody reads.
    under_way: usize,
}

/// How a request stands to sessions.
enum Wanted {
    None,
    Begin,
    This(String),
}

impl Default for Mount {
    fn default() -> Mount {
        let mut manager = LocalSessionManager::default();
        // It would end a session in the middle of a call that waits for a person.
        manager.session_config.keep_alive = None;
        Mount {
            manager: Arc::new(manager),
            held: Mutex::default(),
            begins: tokio::sync::Mutex::default(),
            idle_max: IDLE_MAX,
        }
    }
}

impl Mount {
    /// Answers one request. Who asks is known, and is asked about nothing again.
    pub async fn answer<S>(
        self: &Arc<Self>,
        server: S,
        caller: Caller,
        request: http::Request<Body>,
        stopping: watch::Receiver<bool>,
        within: Duration,
    ) -> http::Response<Body>
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        let (parts, body) = request.into_parts();
        let body = match whole_body(&parts.headers, body, within).await {
            Ok(body) => body,
            Err(problem) => return respond_problem(&problem),
        };
        let wanted = wanted(&parts, &body);
        let request = http::Request::from_parts(parts, Body::from(body));
        match wanted {
            Wanted::None => alone(server, request).await,
            Wanted::Begin => self.begin(server, caller, request).await,
            Wanted::This(id) => self.within(&id, server, &caller, request, stopping).await,
        }
    }

    async fn begin<S>(&self, server: S, caller: Caller, request: http::Request<Body>) -> http::Response<Body>
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        let _one = self.begins.lock().await;
        if !self.make_room(&caller).await {
            // All are in use. A session is an offer, and the tools are there without one.
            return alone(server, request).await;
        }
        let response = self.in_session(server, request).await;
        if let Some(id) = text(response.headers(), SESSION) {
            let held = Held { caller, used: Instant::now(), under_way: 0 };
            self.held().insert(id.to_owned(), held);
        }
        response
    }

    async fn within<S>(
        self: &Arc<Self>,
        id: &str,
        server: S,
        caller: &Caller,
        request: http::Request<Body>,
        stopping: watch::Receiver<bool>,
    ) -> http::Response<Body>
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        self.end_idle().await;
        // Whether there is one of somebody else is nobody's business.
        let Some(in_use) = InUse::of(self, id, caller) else {
            let problem = Problem::not_found("there is no such session, or it is over")
                .hint("begin another with `initialize`, or ask without one");
            return respond_problem(&problem);
        };
        let (listens, ends) =
            (request.method() == http::Method::GET, request.method() == http::Method::DELETE);
        let response = self.in_session(server, request).await;
        if ends {
            self.held().remove(id);
        }
        let (parts, body) = response.into_parts();
        let frames = body.into_data_stream().map(move |frame| {
            let _ = &in_use;
            frame
        });
        let body = match listens {
            // Such a stream has no end of its own.
            true => Body::from_stream(frames.take_until(stopped(stopping))),
            false => Body::from_stream(frames),
        };
        http::Response::from_parts(parts, body)
    }

    async fn in_session<S>(&self, server: S, request: http::Request<Body>) -> http::Response<Body>
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        let config = config().with_legacy_session_mode(true);
        let service = StreamableHttpService::new(move || Ok(server.clone()), self.manager.clone(), config);
        service.handle(request).await.map(Body::new)
    }

    /// False: every session is in use.
    async fn make_room(&self, caller: &Caller) -> bool {
        self.end_idle().await;
        // One whose client went away before it was told of it has no holder, and never will.
        let open: Vec<String> = self.manager.sessions.read().await.keys().map(ToString::to_string).collect();
        for id in open {
            if !self.held().contains_key(&id) {
                self.end(&id).await;
            }
        }
        if self.held().len() < SESSIONS_MAX {
            return true;
        }
        let unused = {
            let held = self.held();
            let unused = held.iter().filter(|(_, held)| held.under_way == 0);
            // Whoever begins many ends its own first.
            unused.min_by_key(|(_, held)| (held.caller != *caller, held.used)).map(|(id, _)| id.clone())
        };
        let Some(unused) = unused else { return false };
        self.end(&unused).await;
        true
    }

    async fn end_idle(&self) {
        let is_idle = |held: &Held| held.under_way == 0 && held.used.elapsed() >= self.idle_max;
        let idle: Vec<String> = {
            let held = self.held();
            held.iter().filter(|(_, held)| is_idle(held)).map(|(id, _)| id.clone()).collect()
        };
        for id in idle {
            self.end(&id).await;
        }
    }

    async fn end(&self, id: &str) {
        self.held().remove(id);
        // It fails only where the session has ended by itself.
        let _ = self.manager.close_session(&id.into()).await;
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a session from being idle, until the answer is sent or its reader is gone.
struct InUse {
    mount: Arc<Mount>,
    id: String,
}

impl InUse {
    /// `None` where this caller has no such session.
    fn of(mount: &Arc<Mount>, id: &str, caller: &Caller) -> Option<InUse> {
        let mut held = mount.held();
        let session = held.get_mut(id).filter(|held| held.caller == *caller)?;
        session.under_way += 1;
        Some(InUse { mount: mount.clone(), id: id.to_owned() })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(session) = self.mount.held().get_mut(&self.id) {
            session.under_way = session.under_way.saturating_sub(1);
            session.used = Instant::now();
        }
    }
}

/// A request for itself: nothing of it is remembered.
async fn alone<S>(server: S, request: http::Request<Body>) -> http::Response<Body>
where
    S: ServerHandler + Clone + Send + Sync + 'static,
{
    let config = config().with_legacy_session_mode(false).with_json_response(true);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    service.handle(request).await.map(Body::new)
}

/// Host and Origin are looked at before anything comes here.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default().disable_allowed_hosts().with_max_request_body_bytes(BODY_BYTES_MAX)
}

fn wanted(parts: &http::request::Parts, body: &Bytes) -> Wanted {
    /// As much as says what is asked. Whether it is right is found out by whoever answers.
    #[derive(Deserialize)]
    struct Said {
        method: String,
    }
    // Revisions are dates, and are in the order of their letters.
    if text(&parts.headers, REVISION).is_some_and(|it| it >= ProtocolVersion::V_2026_07_28.as_str()) {
        return Wanted::None;
    }
    if let Some(id) = text(&parts.headers, SESSION) {
        return Wanted::This(id.to_owned());
    }
    match serde_json::from_slice::<Said>(body) {
        Ok(said) if said.method == "initialize" => Wanted::Begin,
        _ => Wanted::None,
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // Where nobody can say it any more, it is so.
    let _ = stopping.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A server without anything.
    #[derive(Clone)]
    struct Bare;

    impl ServerHandler for Bare {}

    async fn ask(
        mount: &Arc<Mount>,
        stopping: &watch::Receiver<bool>,
        method: http::Method,
        session: Option<&str>,
        message: Value,
    ) -> http::Response<Body> {
        let mut request = http::Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header(REVISION, "2025-11-25");
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let body = if message.is_null() { Body::empty() } else { Body::from(message.to_string()) };
        let request = request.body(body).unwrap();
        mount.answer(Bare, Caller::person("ann"), request, stopping.clone(), IDLE_MAX).await
    }

    fn ping() -> Value {
        json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })
    }

    #[tokio::test]
    async fn a_session_over_which_nothing_goes_is_over_and_one_that_somebody_reads_is_not() {
        let mount = Arc::new(Mount { idle_max: Duration::ZERO, ..Mount::default() });
        let (_owner, stopping) = watch::channel(false);
        let about = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
        let begun = ask(&mount, &stopping, http::Method::POST, None, hello).await;
        let session = text(begun.headers(), SESSION).unwrap().to_owned();
        begun.into_body().collect().await.unwrap();
        let held = InUse::of(&mount, &session, &Caller::person("ann")).unwrap();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(ask(&mount, &stopping, http::Method::POST, Some(&session), ready).await.status(), 202);

        let reads = ask(&mount, &stopping, http::Method::GET, Some(&session), Value::Null).await;
        drop(held);
        let answer = ask(&mount, &stopping, http::Method::POST, Some(&session), ping()).await;
        assert_eq!(answer.status(), 200, "somebody reads");
        drop((reads, answer));
        let late = ask(&mount, &stopping, http::Method::POST, Some(&session), ping()).await;
        assert_eq!(late.status(), 404);
        assert!(mount.manager.sessions.read().await.is_empty(), "nothing of it is kept");
    }
}
