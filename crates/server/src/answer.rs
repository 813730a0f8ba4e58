//! One request: who asks, for which project, what; and the answer.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::request::Parts;
use http::{HeaderMap, header};
use hyper::body::{Bytes, Incoming};
use kernel::Actor;
use log::owner::SubmitError;
use serde_json::Value;
use streams::Access;
use tokio::sync::{oneshot, watch};

use super::body::{brings_body, hide, json_body, method};
use super::credentials::{caller, session, unknown};
use super::observe::{self, By};
use super::reply::{self, respond, respond_kept, respond_problem, respond_tagged, respond_text, started};
use super::sending::{self, Known};
use super::stream_requests::{ask_streams, is_of_a_wake, is_preflight, stream_path, streamed};
use super::tokens::Caller;
use super::{
    Connection, HttpServer, MountedProject, ProjectServices, Transport, events, export, mcp, pages, proof,
    ready, screens,
};
use crate::response::{Body, Response};
use api::operation::{Kept, Operation, Stream};
use api::{self, Method, Problem, ProjectAccess, Request, types};

pub(super) async fn respond_to(connection: &Arc<Connection>, request: hyper::Request<Incoming>) -> Response {
    let (since, mut by) = (Instant::now(), Asker::default());
    let (parts, body) = request.into_parts();
    let answering = Answering::new(connection);
    let response = match routed(connection, &parts, body, &mut by).await {
        Ok(response) => response,
        Err(problem) => respond_problem(&problem),
    };
    let response = sending::sent(connection, &parts, by.known, response);
    drop(answering);
    // What comes before a request is no request of anybody's yet.
    if !(response.status().is_success() && parts.uri.path().ends_with(proof::PATH)) {
        observe::answered(&connection.server, &parts, by.by, since, &response);
    }
    response
}

/// Who asks, as far as it was found out.
#[derive(Default)]
struct Asker {
    by: By,
    known: Option<Known>,
}

/// A request whose answer is not ready.
struct Answering<'c>(&'c Connection);

impl Answering<'_> {
    fn new(connection: &Connection) -> Answering<'_> {
        connection.answering.fetch_add(1, Ordering::Relaxed);
        Answering(connection)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn routed(
    connection: &Arc<Connection>,
    parts: &Parts,
    body: Incoming,
    by: &mut Asker,
) -> Result<Response, Problem> {
    let server = &connection.server;
    if let Transport::Tcp(transport) = &server.transport {
        match transport.open && is_preflight(parts) {
            true => transport.names.check_host(parts)?,
            false => match transport.names.check(parts) {
                Err(_) if transport.names.is_followed_link(parts) => {
                    return Ok(pages::followed(parts));
                }
                checked => checked?,
            },
        }
        if let Some(response) = pages::before_anybody_asks(transport, parts) {
            return Ok(response);
        }
        if parts.uri.path() == "/readyz" {
            return Ok(pages::ready(server));
        }
        if parts.uri.path() == pages::SESSION {
            return session(server, transport, parts, body).await;
        }
    }
    let path = decoded(parts.uri.path())?;
    if let Some(page) = metrics(server, parts, &path, &mut by.by).await? {
        return Ok(page);
    }
    let (project, path) = server.project(&path);
    if path == proof::PATH && parts.method == http::Method::GET {
        return match proven(connection, project, parts.uri.query().unwrap_or_default()) {
            Some(proof) => Ok(respond(200, &serde_json::to_value(proof).unwrap_or_default())),
            None => stranger(server, parts, &path, unknown()),
        };
    }
    let Some(project) = project else {
        // What is of no project is for whoever may ask any of them.
        let known = server.projects.values().any(|project| caller(server, project, parts).is_ok());
        return match known {
            true => pages::of_house(server, &path).ok_or_else(|| nothing_at(&path)),
            false => stranger(server, parts, &path, unknown()),
        };
    };
    let asking = match caller(server, project, parts) {
        Ok(asking) => asking,
        // Whoever was woken shows what it was woken with.
        Err(_) if stream_path(parts.uri.path()).is_some_and(is_of_a_wake) => {
            let stream = stream_path(parts.uri.path()).unwrap_or_default();
            return ask_streams(project, stream, parts, body, Access::NOTHING, "").await;
        }
        Err(problem) => return stranger(server, parts, &path, problem),
    };
    connection.permit.is_known();
    by.by = By::of(&asking);
    let known = by.known.insert(Known { project: project.clone(), caller: asking.clone() });
    if let Transport::Tcp(transport) = &server.transport
        && asking.paced
    {
        transport.rate_limit.named(&asking.actor.to_string())?;
    }
    if let Some(page) = pages::of_place(&path) {
        return Ok(page);
    }
    let caller = asking.clone();
    let answer = async {
        if path == mcp::PATH {
            let request = http::Request::from_parts(parts.clone(), Body::new(body));
            let within = connection.server.transport.client_timeout();
            return Ok(project.mcp.answer(request, asking, connection.stopping.clone(), within).await);
        }
        if let Some(stream) = stream_path(parts.uri.path()) {
            let mut response = streamed(project, stream, parts, body, &asking, &known.name()).await?;
            response.extensions_mut().insert(sending::Counted);
            return Ok(response);
        }
        asked(connection, project, parts, path.clone(), body, asking).await
    };
    if !may_wait(&path, parts.uri.query().unwrap_or_default()) {
        return answer.await;
    }
    tokio::select! {
        biased;
        answer = answer => answer,
        // Whoever waits for something is let in only for as long as what it has shown holds.
        () = sending::revoked(server, project, parts, &caller) => Err(unknown()),
        () = stopped(connection.stopping.clone()) => Err(stopping()),
    }
}

/// Whether something has to happen before it is answered.
fn may_wait(path: &str, query: &str) -> bool {
    path == mcp::PATH
        || stream_path(path).is_some() && query.contains("live=")
        || api::routes::may_wait(path, query)
}

/// A while after the server was told to stop: what is answered by then is answered.
async fn stopped(mut stopping: watch::Receiver<bool>) {
    // Where nobody can say it any more, it is so.
    let _ = stopping.wait_for(|stopped| *stopped).await;
    tokio::time::sleep(WAITING_GRACE).await;
}

/// Waits that were given up have this long to be answered in their own way.
const WAITING_GRACE: Duration = Duration::from_millis(250);

fn stopping() -> Problem {
    Problem::new(503, "STOPPING", "the server is stopping, and the awaited event has not happened")
        .hint("retry: another server may start in a moment")
        .retry_after(1)
}

/// The proof that the token of whoever asks is known here: to this project, or to any where none is named.
fn proven(
    connection: &Connection,
    project: Option<&Arc<MountedProject>>,
    query: &str,
) -> Option<proof::Proof> {
    let challenge: proof::Challenge = serde_urlencoded::from_str(query).ok()?;
    let (address, now) = (connection.address.as_deref()?, base::clock::now());
    let mut projects =
        project.into_iter().chain(connection.server.projects.values().filter(|_| project.is_none()));
    projects.find_map(|project| challenge.prove(&project.services.tokens, address, now))
}

/// A request of the API.
async fn asked(
    connection: &Arc<Connection>,
    project: &Arc<MountedProject>,
    parts: &Parts,
    path: String,
    body: Incoming,
    asking: Caller,
) -> Result<Response, Problem> {
    let name = sending::name_of(&asking);
    let Caller { actor, run, seat, reply, token, reads_only, .. } = asking;
    let request = Request {
        method: method(&parts.method, &path)?,
        path,
        query: query(parts.uri.query().unwrap_or_default())?.to_owned(),
        body: Value::Null,
        actor,
        run,
        seat,
        reply,
        reads_only,
        token,
        id: base::clock::unique(),
        at: base::clock::now(),
        x_idempotency_key: text(&parts.headers, "x-idempotency-key")?,
        idempotency_key: text(&parts.headers, "idempotency-key")?,
    };
    let operation = api::routes::operation(&request)?;
    let check = || api::routes::check(&project.services.project.world(), &request).map(drop);
    match operation.stream.filter(|stream| accepts(&parts.headers, stream.content_type())) {
        Some(Stream::Events) => {
            check()?;
            let after = events::after(&request.query, text(&parts.headers, "last-event-id")?)?;
            let end = project.services.project.world().seq;
            if after > end {
                return Err(Problem::not_found(format!(
                    "there is no record {after}: the log ends with {end}"
                ))
                .hint("start from `after=0`, or from the last record that you have read in this log"));
            }
            return Ok(project.services.events.follow(after, connection.stopping.clone()));
        }
        Some(Stream::View) => {
            check()?;
            let after = screens::after(&request.query, text(&parts.headers, "last-event-id")?)?;
            let head = project.services.events.ready();
            return Ok(project.screens.follow(after, head, connection.stopping.clone()));
        }
        Some(Stream::Export) => {
            check()?;
            return export::exported(project).await;
        }
        None => {}
    }
    let seen = text(&parts.headers, "if-none-match")?;
    let plain = request.query.is_empty() && !brings_body(&parts.headers);
    match operation.kept.filter(|_| plain) {
        Some(Kept::Board) => {
            check()?;
            let world = project.services.project.world();
            let ready::Ready { document, version } = project.board.document(&world)?;
            let tag = format!("\"{:x}-{version}\"", started());
            let mut response = respond_kept(document, &tag, seen.as_deref());
            response.extensions_mut().insert(sending::Counted);
            return Ok(response);
        }
        None => {}
    }
    let within = connection.server.transport.client_timeout();
    let mut body = tokio::select! {
        biased;
        body = json_body(request.method, &parts.headers, body, within) => body?,
        // Nothing of it was begun: whoever sends it can send it again.
        () = stopped(connection.stopping.clone()) => return Err(stopping()),
    };
    hide(&mut body, &project.services.tokens);
    let request = Request { body, ..request };
    Ok(match operation.only_asks {
        true => decided(project, &request).await,
        false => answered(connection, project, operation, request, seen.as_deref(), name).await,
    })
}

/// One thread of the server at most waits for a disk; the others go on with other callers.
static WRITING_HERE: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(1);

/// Asks the kernel. Where nobody else asks, this thread decides by itself, and no other needs to be woken; otherwise it
/// goes on with other callers until what was asked is on disk.
async fn decided(project: &MountedProject, request: &Request) -> Response {
    let _turn = project.requests.acquire().await;
    let (command, asked) = match caught(|| api::deferred::begin(&project.services.access(), request)) {
        Ok(Ok(begun)) => begun,
        Ok(Err(api::Response { status, body })) => return respond(status, &body),
        Err(bug) => return respond_problem(&bug),
    };
    let (send, receive) = oneshot::channel();
    let answer = Box::new(move |answered| drop(send.send(answered)));
    let owner = &project.services.project;
    let sent = match WRITING_HERE.try_acquire() {
        Ok(_permit) => caught(|| owner.send_here(command, answer)),
        Err(_) => Ok(owner.send(command, answer)),
    };
    let answered = match sent {
        Ok(Ok(())) => receive.await.unwrap_or(Err(SubmitError::Stopped)),
        Ok(Err(error)) => Err(error),
        Err(bug) => return respond_problem(&bug),
    };
    match caught(|| asked.finish(&project.services.access(), request, answered)) {
        Ok(api::Response { status, body }) => respond(status, &body),
        Err(bug) => respond_problem(&bug),
    }
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Problem> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| bug())
}

/// It is the request's alone, or the owner's, which has stopped then.
fn bug() -> Problem {
    Problem::new(500, "BUG", "the request could not be answered").hint("please report it, with the request")
}

/// The numbers of all projects are for the people of any of them; agents find nothing there.
async fn metrics(
    server: &HttpServer,
    parts: &Parts,
    path: &str,
    by: &mut By,
) -> Result<Option<Response>, Problem> {
    if path != observe::PATH || parts.method != http::Method::GET {
        return Ok(None);
    }
    let mut known = server.projects.values().filter_map(|project| caller(server, project, parts).ok());
    let Some(asking) = known.find(|caller| matches!(caller.actor, Actor::Human(_))) else { return Ok(None) };
    if let Transport::Tcp(transport) = &server.transport
        && asking.paced
    {
        transport.rate_limit.named(&asking.actor.to_string())?;
    }
    *by = By::of(&asking);
    Ok(observe::page().await.map(pages::metrics))
}

/// A browser that opens an address gets a page, which says how to get in to those who are not signed in.
fn stranger(server: &HttpServer, parts: &Parts, path: &str, problem: Problem) -> Result<Response, Problem> {
    let problem = match &server.transport {
        Transport::Tcp(transport) => transport.rate_limit.stranger(problem),
        Transport::Socket => problem,
    };
    let is_browser = matches!(server.transport, Transport::Tcp(_))
        && parts.method == http::Method::GET
        && (path == "/" || accepts(&parts.headers, "text/html"));
    match problem.status {
        401 if is_browser => Ok(pages::shell()),
        _ => Err(problem),
    }
}

impl HttpServer {
    /// The project that a path leads to, and the path within it. Where there is only one, its name can be left out.
    fn project<'h>(&'h self, path: &str) -> (Option<&'h Arc<MountedProject>>, String) {
        if let (Transport::Tcp(_), Some(rest)) = (&self.transport, path.strip_prefix("/p/")) {
            let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
            return (self.projects.get(name), format!("/{rest}"));
        }
        let only = self.projects.values().next().filter(|_| self.projects.len() == 1);
        (only, path.to_owned())
    }
}

fn nothing_at(path: &str) -> Problem {
    Problem::not_found(format!("there is nothing at `{}`", path.escape_debug()))
        .hint("a server with several projects serves each at `/p/NAME/`")
}

/// Asks on a thread that may block: for files, for git, and for the owner.
async fn answered(
    connection: &Connection,
    project: &Arc<MountedProject>,
    operation: &Operation,
    mut request: Request,
    seen: Option<&str>,
    name: String,
) -> Response {
    let waits = operation.waits
        && form_urlencoded::parse(request.query.as_bytes()).any(|(name, _)| name == types::WAIT);
    let waiting = waits.then(|| project.waiting.clone().try_acquire_owned().ok()).flatten();
    if waits && waiting.is_none() {
        let others = form_urlencoded::parse(request.query.as_bytes()).filter(|(name, _)| name != types::WAIT);
        request.query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    }
    // Whoever waits for something to happen takes no permit from those who want to be answered.
    let turn = if waiting.is_none() { project.requests.acquire().await.ok() } else { None };
    let alone = if operation.heavy { project.heavy.acquire().await.ok() } else { None };
    let reads = request.method == Method::Get;
    let (given_up, asked) = (GivenUp::default(), project.clone());
    let flag = given_up.0.clone();
    let waits = waiting.is_some();
    let working = tokio::task::spawn_blocking(move || {
        // From here to the text of the answer: it takes several times its size meanwhile.
        let _turn = reads.then(api::turns::take);
        let access = ProjectAccess { given_up: Some(&flag), ..asked.services.access() };
        let api::Response { status, body } = api::answer(&access, &request);
        let (text, code) = (body.to_string(), reply::code(status, &body));
        drop(body);
        if !reads {
            return Ok((status, Bytes::from(text), code));
        }
        let share = sending::share(&name, text.len())?;
        let text = Bytes::from(text);
        Ok((status, share.map_or(text.clone(), |share| share.around(text)), code))
    });
    let stopping = async {
        match (waits, reads) {
            (true, _) => drop(connection.stopping.clone().wait_for(|stopping| *stopping).await),
            // A git or the whole log may take long, and nothing is lost if it is asked again.
            (false, true) => stopped(connection.stopping.clone()).await,
            // Whoever changes something is told what came of it.
            (false, false) => std::future::pending().await,
        }
    };
    let response = tokio::select! {
        response = working => response,
        () = stopping => return respond_problem(&self::stopping()),
    };
    drop((turn, alone, waiting));
    let mut response = match response {
        Ok(Ok((200, text, _))) if reads => respond_tagged(text, seen),
        Ok(Ok((status, text, code))) => respond_text(status, text, code),
        Ok(Err(problem)) => return respond_problem(&problem),
        Err(_) => return respond_problem(&bug()),
    };
    if reads {
        response.extensions_mut().insert(sending::Counted);
    }
    response
}

/// Says so when nobody waits for an answer any more.
#[derive(Default)]
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ProjectServices {
    fn access(&self) -> ProjectAccess<'_> {
        ProjectAccess {
            project: &*self.project,
            host: &*self.host,
            control: Some(&*self.control),
            given_up: None,
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let text = headers.get(name).map(|value| value.to_str().map(str::to_owned));
    text.transpose().map_err(|_| Problem::bad(format!("the header `{name}` is not valid text")))
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains(kind))
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
        return Err(Problem::bad("a `%` in the URL must be followed by two hexadecimal digits"));
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| Problem::bad("the URL is not valid text"))
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
