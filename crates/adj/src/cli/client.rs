//! The way to the process that owns the project: HTTP over its socket or to its address, with a token.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::Address;
use super::connection::{Dialled, Trouble};
use super::text::shown;
use super::{Exit, Failure};
use api::types::problem::Document;
use api::{Method, Request, holder_name};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::http::{HeaderValue, header};
use hyper_util::rt::TokioIo;
use log::Location;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use server::proof::{self, Challenge, Proof};

/// An owner that has not answered after this many seconds is said not to; `ADJ_TIMEOUT` changes it.
const ANSWER_SECONDS: u64 = 30;
/// After so long without an answer the owner is asked whether it is there at all, and may take so long to say so: on a
/// machine full of agents even that takes seconds.
const SILENCE: Duration = Duration::from_secs(2);
const PING: Duration = Duration::from_secs(8);
/// An owner that has no place for another connection is asked again after this long.
const FULL: Duration = Duration::from_millis(100);
/// How often a question is asked again of owners that end while they are asked.
const ASKED_AGAIN_MAX: u32 = 5;
/// No answer is larger than this.
const ANSWER_BYTES_MAX: usize = 256 << 20;

#[derive(Clone)]
pub struct Client {
    way: Way,
    /// From the environment; otherwise the project's is read when it is needed, from beside the socket.
    token: Option<String>,
    user: String,
}

#[derive(Clone)]
enum Way {
    Socket {
        socket: PathBuf,
        /// The log, which names its owner, for those whom it does not answer.
        log: Location,
    },
    Address(Address),
}

const NOT_THE_SERVER: &str = "is not the server that your token is for";
const UNKNOWN_TOKEN: &str = "does not know your token";
/// A proof is a short document.
const PROOF_BYTES_MAX: usize = 4 << 10;

impl Client {
    pub fn new(socket: PathBuf, log: Location, token: Option<String>, user: String) -> Client {
        Client { way: Way::Socket { socket, log }, token, user }
    }

    /// To a server that may be on another machine.
    pub fn at(address: Address, token: Option<String>, user: String) -> Client {
        Client { way: Way::Address(address), token, user }
    }

    /// Where it goes, for people.
    pub fn place(&self) -> String {
        match &self.way {
            Way::Socket { socket, .. } => shown(socket),
            Way::Address(address) => address.to_string(),
        }
    }

    /// Status and body of the answer; `None` where nobody listens.
    pub fn send(&self, request: &Request) -> Result<Option<(u16, Value)>, Failure> {
        // Most of the time there is no owner, and nothing to set up for one.
        if let Way::Socket { socket, .. } = &self.way
            && std::fs::symlink_metadata(socket).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.ask(request))
    }

    async fn ask(&self, request: &Request) -> Result<Option<(u16, Value)>, Failure> {
        let mut answered = self.ask_once(request).await;
        // It may have ended just now, and a question can be asked again: of the next one, which may be as short-lived, or
        // without one.
        for _ in 0..ASKED_AGAIN_MAX {
            let again = match &answered {
                Err(Trouble::BrokenBefore(_)) => true,
                Err(Trouble::Broken(_)) => request.method == Method::Get,
                _ => false,
            };
            if !again {
                break;
            }
            answered = self.ask_once(request).await;
        }
        answered.map_err(|trouble| self.failure(trouble, request.method))
    }

    /// Whoever has too many connections open is told so before anything is read of what it asks: it asks again.
    async fn ask_once(&self, request: &Request) -> Result<Option<(u16, Value)>, Trouble> {
        let limit = answer_limit();
        let until = tokio::time::Instant::now() + limit;
        loop {
            let answered = self.ask_in(request, limit).await?;
            let full = matches!(&answered, Some((503, problem)) if is_full(problem));
            if !full || tokio::time::Instant::now() >= until {
                return Ok(answered);
            }
            tokio::time::sleep(FULL).await;
        }
    }

    async fn ask_in(&self, request: &Request, limit: Duration) -> Result<Option<(u16, Value)>, Trouble> {
        if let Some(pid) = self.suspended() {
            return Err(Trouble::Suspended(pid));
        }
        let dialled = match tokio::time::timeout(limit, self.connect()).await {
            Ok(Ok(Some(dialled))) => dialled,
            Ok(Ok(None)) => return Ok(None),
            Ok(Err(error)) => return Err(Trouble::Unreachable(error)),
            Err(_) => return Err(Trouble::Silent(limit)),
        };
        let token = self.token().map_err(Trouble::NoToken)?;
        // A long poll is answered late on purpose.
        let waits = form_urlencoded::parse(request.query.as_bytes()).any(|(name, _)| name == "wait");
        let limit = if waits { limit + api::WAIT_MAX } else { limit };
        let mut exchange = std::pin::pin!(self.exchange(dialled, request, &token));
        let begun = tokio::time::Instant::now();
        let soon = SILENCE.min(limit);
        if let Ok(answered) = tokio::time::timeout(soon, &mut exchange).await {
            return answered.map(Some);
        }
        // Some answers take their time; an owner that is at work says that it is there before it has them.
        let there = tokio::select! {
            biased;
            answered = &mut exchange => return answered.map(Some),
            there = self.is_there(&token) => there,
        };
        let waited = begun.elapsed();
        if !there {
            return Err(Trouble::Silent(waited));
        }
        match tokio::time::timeout(limit.saturating_sub(waited), exchange).await {
            Ok(answered) => answered.map(Some),
            Err(_) => Err(Trouble::Silent(limit)),
        }
    }

    async fn is_there(&self, token: &str) -> bool {
        let asked = Request {
            method: Method::Get,
            path: "/api/v1/fleet".to_owned(),
            query: String::new(),
            body: Value::Null,
            actor: kernel::Actor::Human(self.user.as_str().into()),
            run: None,
            seat: None,
            reply: None,
            reads_only: false,
            token: None,
            id: 0,
            at: 0,
            x_idempotency_key: None,
            idempotency_key: None,
        };
        let asking = async {
            let dialled = self.connect().await.ok().flatten()?;
            self.exchange(dialled, &asked, token).await.ok()
        };
        matches!(tokio::time::timeout(PING, asking).await, Ok(Some(_)))
    }

    /// An owner that is slow to take calls has a full queue of them: it is asked again until the time is up.
    async fn connect(&self) -> io::Result<Option<Dialled>> {
        const AGAIN: Duration = Duration::from_millis(20);
        let socket = match &self.way {
            Way::Address(address) => return address.connect().await.map(Some),
            Way::Socket { socket, .. } => socket,
        };
        loop {
            match server::connect(socket).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(AGAIN).await,
                connected => {
                    let dialled = connected?.map(|(stream, address)| Dialled {
                        stream: Box::new(stream),
                        unproven: Some(address),
                    });
                    return Ok(dialled);
                }
            }
        }
    }

    fn log(&self) -> Option<&Location> {
        match &self.way {
            Way::Socket { log, .. } => Some(log),
            Way::Address(_) => None,
        }
    }

    /// The owner, where it was stopped by a signal: it would answer nobody.
    fn suspended(&self) -> Option<u32> {
        let pid = log::holder(self.log()?)?.pid;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything; the state stands behind its end.
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        matches!(state, 'T' | 't').then_some(pid)
    }

    fn token(&self) -> Result<String, Failure> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let Way::Socket { socket, .. } = &self.way else {
            return Err(Failure::new(Exit::Refused, "a server asks who you are, and no token is set").hint(
                "set ADJ_TOKEN to a token of yours; `adj token create` makes one where the project is",
            ));
        };
        let folder = server::folder_of(socket);
        let hint =
            "a person needs the project's token to talk to its owner; an agent has its own in ADJ_TOKEN";
        match server::read_token(folder) {
            Ok(Some(token)) => Ok(token),
            Ok(None) => {
                let message = format!("there is no token in `{}`", shown(folder));
                Err(Failure::new(Exit::Refused, message).hint(hint))
            }
            Err(error) => Err(Failure::new(Exit::Refused, error.to_string()).hint(hint)),
        }
    }

    fn failure(&self, trouble: Trouble, method: Method) -> Failure {
        let (socket, log) = match &self.way {
            Way::Socket { socket, log } => (socket, log),
            Way::Address(address) => return address.failure(trouble, method),
        };
        let owner = log::holder(log);
        let who = owner.as_ref().map(|owner| format!(" ({})", holder_name(owner))).unwrap_or_default();
        let message = match trouble {
            Trouble::Unreachable(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return not_yours(socket);
            }
            Trouble::Unreachable(error) => {
                format!("the owner of the project{who} cannot be reached at `{}`: {error}", shown(socket))
            }
            Trouble::Silent(limit) => {
                format!("the fleet{who} does not answer: {} s were waited", limit.as_secs())
            }
            Trouble::Suspended(pid) => {
                let message = format!("the fleet{who} does not answer: the process is stopped by a signal");
                return Failure::new(Exit::Unreachable, message).hint(format!(
                    "`kill -CONT {pid}` lets it go on; `kill -KILL {pid}` ends it, and its work is kept"
                ));
            }
            Trouble::NoToken(failure) => return failure,
            Trouble::Unproven(why) => {
                let message = format!("what answers at `{}` {why}; it was not sent", shown(socket));
                return Failure::new(Exit::Refused, message).hint(
                    "ADJ_TOKEN may be revoked or of another project, or the process is older than this command: \
                     `adj stop`, then `adj run` again",
                );
            }
            Trouble::Broken(why) | Trouble::BrokenBefore(why) => {
                format!("the owner of the project{who} broke off: {why}")
            }
        };
        let hint = match (method, owner) {
            (Method::Get, Some(owner)) => {
                format!("try again; should it hang, end it with `kill {}`", owner.pid)
            }
            (Method::Get, None) => "try again".to_owned(),
            (_, Some(owner)) => {
                let pid = owner.pid;
                format!(
                    "the request may have been executed: check before you retry; if it hangs, `kill {pid}`"
                )
            }
            (_, None) => "the request may have been executed: check before you retry".to_owned(),
        };
        Failure::new(Exit::Unreachable, message).hint(hint)
    }
}

impl Client {
    /// Writes what the answer holds to `out` as it comes, however long it is. It is not asked again: part of it is written.
    pub fn download(&self, request: &Request, accept: &str, out: &mut dyn io::Write) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let asked = self.downloaded(request, accept, out).await;
            asked.unwrap_or_else(|trouble| Err(self.failure(trouble, request.method)))
        })
    }

    async fn downloaded(
        &self,
        request: &Request,
        accept: &str,
        out: &mut dyn io::Write,
    ) -> Result<Result<(), Failure>, Trouble> {
        let limit = answer_limit();
        let silent = |_| Trouble::Silent(limit);
        let dialled = tokio::time::timeout(limit, self.connect()).await.map_err(silent)?;
        let Some(dialled) = dialled.map_err(Trouble::Unreachable)? else {
            return Err(Trouble::Unreachable(io::ErrorKind::NotFound.into()));
        };
        let token = self.token().map_err(Trouble::NoToken)?;
        let asking = self.asked(dialled, request, &token, accept);
        let answer = tokio::time::timeout(limit, asking).await.map_err(silent)??;
        let status = answer.status().as_u16();
        let mut body = answer.into_body();
        if status != 200 {
            let body = tokio::time::timeout(limit, whole(body)).await.map_err(silent)??;
            return Ok(Err(Failure::of_problem(status, body)));
        }
        while let Some(frame) = tokio::time::timeout(limit, body.frame()).await.map_err(silent)? {
            let frame = frame.map_err(|error| Trouble::Broken(error.to_string()))?;
            if let Some(bytes) = frame.data_ref()
                && let Err(error) = out.write_all(bytes)
            {
                return Ok(Err(error.into()));
            }
        }
        Ok(Ok(()))
    }
}

fn answer_limit() -> Duration {
    let limit = super::set_variable("ADJ_TIMEOUT").and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(limit.unwrap_or(ANSWER_SECONDS))
}

fn is_full(problem: &Value) -> bool {
    let problem = Document::deserialize(problem);
    problem.is_ok_and(|problem| problem.code.as_deref() == Some(server::TOO_MANY_CONNECTIONS))
}

impl Client {
    async fn exchange(
        &self,
        dialled: Dialled,
        request: &Request,
        token: &str,
    ) -> Result<(u16, Value), Trouble> {
        let answer = self.asked(dialled, request, token, "application/json").await?;
        Ok((answer.status().as_u16(), whole(answer.into_body()).await?))
    }

    /// Nothing of the request is sent before the other end has proven itself.
    async fn asked(
        &self,
        dialled: Dialled,
        request: &Request,
        token: &str,
        accept: &str,
    ) -> Result<hyper::Response<Incoming>, Trouble> {
        let broken = |error: hyper::Error| Trouble::Broken(error.to_string());
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(dialled.stream)).await.map_err(broken)?;
        // It ends with the runtime, which ends with the answer.
        drop(tokio::spawn(connection));
        let (host, prefix) = match &self.way {
            Way::Socket { .. } => ("adjutant", ""),
            Way::Address(address) => (address.host(), address.prefix()),
        };
        if let Some(address) = &dialled.unproven
            && let Some(too_many) = proven(&mut sender, (host, prefix), token, address).await?
        {
            return Ok(too_many);
        }
        let mut wire = wire(request, token, &self.user, host, prefix)
            .map_err(|error| Trouble::Broken(error.to_string()))?;
        let accept = HeaderValue::from_str(accept).map_err(|error| Trouble::Broken(error.to_string()))?;
        wire.headers_mut().insert(header::ACCEPT, accept);
        sender.send_request(wire).await.map_err(broken)
    }
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

/// Returns when the other end has proven that it knows the token; with its answer where it has no time for us now.
async fn proven(
    sender: &mut Sender,
    (host, prefix): (&str, &str),
    token: &str,
    address: &str,
) -> Result<Option<hyper::Response<Incoming>>, Trouble> {
    let broken = |error: &dyn std::fmt::Display| Trouble::Broken(error.to_string());
    let challenge = Challenge::new(token).map_err(|error| broken(&error))?;
    let query = serde_urlencoded::to_string(&challenge).map_err(|error| broken(&error))?;
    let asked = hyper::Request::builder()
        .uri(format!("{prefix}{}?{query}", proof::PATH))
        .header("host", host)
        .header("accept", "application/json")
        .body(Full::default());
    let answer = sender.send_request(asked.map_err(|error| broken(&error))?).await;
    let answer = answer.map_err(|error| Trouble::BrokenBefore(error.to_string()))?;
    let known = match answer.status().as_u16() {
        200 => true,
        429 | 503 => return Ok(Some(answer)),
        401 => false,
        _ => return Err(Trouble::Unproven(NOT_THE_SERVER)),
    };
    let body = Limited::new(answer.into_body(), PROOF_BYTES_MAX).collect().await;
    let body = body.map_err(|_| Trouble::Unproven(NOT_THE_SERVER))?.to_bytes();
    if !known {
        return Err(Trouble::Unproven(UNKNOWN_TOKEN));
    }
    let proof: Proof = serde_json::from_slice(&body).map_err(|_| Trouble::Unproven(NOT_THE_SERVER))?;
    if !challenge.is_answered_by(&proof, token, address) {
        return Err(Trouble::Unproven(NOT_THE_SERVER));
    }
    sender.ready().await.map_err(|error| broken(&error))?;
    Ok(None)
}

/// A body that is one document.
async fn whole(body: Incoming) -> Result<Value, Trouble> {
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| Trouble::Broken(error.to_string()))?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| Trouble::Broken(error.to_string()))
}

fn wire(
    request: &Request,
    token: &str,
    user: &str,
    host: &str,
    prefix: &str,
) -> Result<hyper::Request<Full<Bytes>>, hyper::http::Error> {
    let mut address = format!("{prefix}{}", utf8_percent_encode(&request.path, ENCODED));
    if !request.query.is_empty() {
        address.push_str(&format!("?{}", request.query));
    }
    let mut wire = hyper::Request::builder()
        .method(request.method.name())
        .uri(address)
        .header("host", host)
        .header("authorization", format!("Bearer {token}"))
        .header("x-adj-user", user);
    if let Some(key) = &request.x_idempotency_key {
        wire = wire.header("x-idempotency-key", key);
    }
    let body = match &request.body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    wire.header("content-type", "application/json").body(Full::new(body.into()))
}

/// What has a meaning of its own in the path of an address, but for what stands between its parts.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// What only its user can enter.
fn not_yours(socket: &Path) -> Failure {
    let folder = socket.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok());
    let folder = folder.unwrap_or(Path::new("/"));
    let whose = base::files::owner_of(folder).unwrap_or_else(|| "another user".to_owned());
    let message = format!("`{}` belongs to {whose}, and nobody else can use it", shown(folder));
    Failure::new(Exit::Refused, message).hint(format!(
        "run adj as {whose}, or work in a clone of your own: `git clone`, then `adj init` there"
    ))
}
