//! The one way in: typed requests to the project, for every caller and every transport. It may know the kernel, the log and
//! the fleet, and neither HTTP nor the command line. Begin with the table in `routes.rs`.
//!
//! A request is translated to a command or a question, and the answer to JSON: `routes.rs` has a row for each, `types` what
//! they take and give. Nothing is decided here. The caller comes from the transport's credential, never from the body.

#[cfg(test)]
extern crate self as api;

pub mod actions;
pub mod activity;
mod agents;
pub mod architect;
pub mod asks;
mod awaiting;
pub mod board;
pub mod caller;
pub mod channels;
pub mod deferred;
pub mod failure;
#[cfg(test)]
mod fake;
pub mod fleet;
pub mod format;
pub mod history;
pub mod host;
mod member;
pub mod offered_tool;
pub mod openapi;
pub mod operation;
pub mod overview;
mod problem;
#[cfg(test)]
mod reference;
pub mod replay;
pub mod requests;
mod review_comments;
pub mod routes;
mod runs;
mod scope;
pub mod screen;
mod specs;
pub mod story;
pub mod story_feed;
mod terms;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod tool;
pub mod turns;
pub mod types;
mod view;
mod waiting;
#[cfg(test)]
mod walk;
mod worked;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernel::command::TokenFor;
use kernel::rooms::Seat;
use kernel::{Actor, Answer, Ask, Command, Reply, World};
use log::owner::{Folded, Handle, SubmitError};
use log::{Log, Record, Seq};
use machines::Millis;
use machines::names::{EffectId, RunId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use types::PAGE_MAX;

pub use awaiting::WAIT_MAX;
pub use board::BROKEN_TICKET;
pub use failure::{Exit, Failure};
pub use fleet::{Control, FleetStatus};
pub use history::{record_view, transition};
pub use host::Host;
pub use problem::{Problem, holder_name};
pub use view::{board_line, time, usd};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// `/api/v1/tasks/c-1`, without a query.
    pub path: String,
    /// What stands behind the `?`, as a form would send it.
    pub query: String,
    /// `Null` where there is none.
    pub body: Value,
    /// From the transport's credential: who asks, and an agent's run, or where it speaks outside of any.
    pub actor: Actor,
    pub run: Option<RunId>,
    pub seat: Option<Seat>,
    /// The reply that it speaks in there.
    pub reply: Option<EffectId>,
    /// The credential is for looking only.
    pub reads_only: bool,
    /// The token that this rests on, of those that people made by name.
    pub token: Option<smol_str::SmolStr>,
    /// Given by the transport: unique, and the time at which it came in.
    pub id: u128,
    pub at: Millis,
    /// `X-Idempotency-Key`, and `Idempotency-Key`, which means the same.
    pub x_idempotency_key: Option<String>,
    pub idempotency_key: Option<String>,
}

impl Request {
    /// The one thing that an agent's token is for.
    pub fn token_for(&self) -> Option<TokenFor> {
        let seat = || self.seat.clone().map(TokenFor::Seat);
        self.run.clone().map(TokenFor::Run).or_else(seat)
    }
}

/// A request as a client in this program sends it. The credential says who asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    pub method: Method,
    /// After `/api/v1`.
    pub path: String,
    pub query: Vec<(String, String)>,
    /// `Null` where there is none.
    pub body: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub status: u16,
    pub body: Value,
}

/// A project, as requests see it.
pub trait Project {
    fn world(&self) -> Arc<World>;
    /// Visits the records after `after`, in order.
    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem>;
    /// At most `limit` records after `after`, without waiting for anybody; `None` where that cannot be done.
    fn latest(&self, _after: Seq, _limit: usize) -> Option<Vec<Record>> {
        None
    }
    /// The records of one stream, in order.
    fn stream(&self, stream: &str) -> Result<Vec<Record>, Problem> {
        self.stream_between(stream, 0, Seq::MAX)
    }
    /// Those of them that come after `after`, up to `through`.
    fn stream_between(&self, stream: &str, after: Seq, through: Seq) -> Result<Vec<Record>, Problem>;
    /// Visits them, without having more than a few of them in memory.
    fn visit_stream(
        &self,
        stream: &str,
        after: Seq,
        through: Seq,
        visit: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let records = self.stream_between(stream, after, through)?;
        let _ = records.iter().try_for_each(visit);
        Ok(())
    }
    fn submit(&self, command: Command) -> Result<Answer, SubmitError>;
    /// The same without waiting: `answer` is called when it is on disk, on whatever thread, and must be quick. It is
    /// dropped where there will be none.
    fn send(&self, command: Command, answer: OnAnswer) -> Result<(), SubmitError> {
        answer(self.submit(command));
        Ok(())
    }
    /// The same; where nobody decides at the moment, this thread may do it, and is held for as long as the disk takes.
    fn send_here(&self, command: Command, answer: OnAnswer) -> Result<(), SubmitError> {
        self.send(command, answer)
    }
    /// Whether it still takes commands.
    fn lives(&self) -> bool {
        true
    }
    /// Whether it is looked at as it was some time ago.
    fn is_past(&self) -> bool {
        false
    }
    /// Adds what an agent outside has written to what the readers of its run are given. `folder` is where that is kept.
    fn write(&self, _folder: &std::path::Path, _run: &RunId, _text: &str) -> Result<(), Problem> {
        Err(Problem::new(409, "NOT_SERVED", "no server or fleet is running that could store it")
            .hint("start one with `adj serve`"))
    }
}

pub type OnAnswer = Box<dyn FnOnce(Result<Answer, SubmitError>) + Send>;

/// So much of the log is in memory at once while it is scanned.
const SCAN_BYTES_MAX: usize = 256 << 10;
/// So many records are looked through for those of a stream before commands are decided again.
const STREAM_SPAN: Seq = 50_000;

impl Project for Handle {
    fn world(&self) -> Arc<World> {
        Handle::world(self)
    }

    fn latest(&self, after: Seq, limit: usize) -> Option<Vec<Record>> {
        Handle::latest(self, after, limit)
    }

    fn scan(&self, mut after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem> {
        // In pages: commands are decided between them.
        loop {
            let page = self.read_some(after, PAGE_MAX, SCAN_BYTES_MAX)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            if page.iter().any(|record| visit(record).is_break()) {
                return Ok(());
            }
        }
    }

    fn stream_between(&self, stream: &str, mut after: Seq, through: Seq) -> Result<Vec<Record>, Problem> {
        let head = self.head()?.seq.min(through);
        let mut records = Vec::new();
        while after < head {
            let through = head.min(after + STREAM_SPAN);
            records.extend(self.read_stream(stream, after, through)?);
            after = through;
        }
        Ok(records)
    }

    fn visit_stream(
        &self,
        stream: &str,
        mut after: Seq,
        through: Seq,
        visit: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let head = self.head()?.seq.min(through);
        while after < head {
            let through = head.min(after + STREAM_SPAN);
            let records = self.read_stream_some(stream, after, through, SCAN_BYTES_MAX)?;
            let bytes: usize = records.iter().map(Record::bytes).sum();
            // Where there was no room for all of them, the last says where to go on.
            after = match records.last() {
                Some(last) if bytes >= SCAN_BYTES_MAX => last.seq,
                _ => through,
            };
            if records.iter().any(|record| visit(record).is_break()) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn submit(&self, command: Command) -> Result<Answer, SubmitError> {
        Handle::submit(self, command, None)
    }

    fn send(&self, command: Command, answer: OnAnswer) -> Result<(), SubmitError> {
        Handle::send(self, command, None, answer)
    }

    fn send_here(&self, command: Command, answer: OnAnswer) -> Result<(), SubmitError> {
        Handle::send_here(self, command, None, answer)
    }

    fn lives(&self) -> bool {
        Handle::lives(self)
    }

    fn write(&self, folder: &std::path::Path, run: &RunId, text: &str) -> Result<(), Problem> {
        runs::write(self, folder, run, text)
    }
}

/// A project that is only looked at; another process may own it.
pub struct Reading {
    world: Arc<World>,
    log: Option<Box<dyn Log>>,
}

impl Reading {
    /// `None`: a project whose log has not been begun.
    pub fn new(log: Option<Box<dyn Log>>) -> Result<Reading, Problem> {
        let world = match &log {
            Some(log) => Folded::read(&**log, log::owner::VERSION)?.world,
            None => World::default(),
        };
        Ok(Reading { world: Arc::new(world), log })
    }
}

impl Project for Reading {
    fn world(&self) -> Arc<World> {
        self.world.clone()
    }

    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem> {
        let Some(log) = &self.log else { return Ok(()) };
        log.scan(after, visit).map_err(Problem::from)
    }

    fn stream_between(&self, stream: &str, after: Seq, through: Seq) -> Result<Vec<Record>, Problem> {
        let Some(log) = &self.log else { return Ok(Vec::new()) };
        log.read_stream(stream, after, through).map_err(Problem::from)
    }

    fn submit(&self, _: Command) -> Result<Answer, SubmitError> {
        Err(SubmitError::Log(log::LogError::ReadOnly))
    }
}

/// What requests are answered from.
pub struct ProjectAccess<'a> {
    pub project: &'a dyn Project,
    pub host: &'a dyn Host,
    /// The process that owns the project and goes on; a command that is its own owner has none.
    pub control: Option<&'a dyn Control>,
    /// Set when nobody waits for the answer any more.
    pub given_up: Option<&'a AtomicBool>,
}

impl ProjectAccess<'_> {
    /// Whether it is no use to wait for anything.
    pub fn is_given_up(&self) -> bool {
        self.given_up.is_some_and(|given_up| given_up.load(Ordering::Relaxed))
    }
}

/// Answers. What a request changed is durable when this returns.
pub fn answer(access: &ProjectAccess, request: &Request) -> Response {
    let _turn = (request.method == Method::Get).then(turns::take);
    let call = Call::new(access, request);
    let response = routes::answer(&call).unwrap_or_else(Response::from);
    replay::respond(access, request, call.keyed.take(), response)
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Response {
        Response { status: problem.status, body: operation::document(&problem.document()) }
    }
}

/// A request on its way, with what every handler needs of it.
pub struct Call<'a> {
    access: &'a ProjectAccess<'a>,
    request: &'a Request,
    /// What was asked of the kernel under the request's key.
    keyed: std::cell::Cell<Option<replay::Keyed>>,
}

impl<'a> Call<'a> {
    fn new(access: &'a ProjectAccess<'a>, request: &'a Request) -> Call<'a> {
        Call { access, request, keyed: std::cell::Cell::default() }
    }
}

impl Call<'_> {
    /// The World, under the settings in force. A project that is only read may have been written under others.
    fn world(&self) -> Arc<World> {
        let world = self.access.project.world();
        match self.settings_to_apply(&world) {
            Some(config) => Arc::new(World { config, ..(*world).clone() }),
            None => world,
        }
    }

    /// The settings that the log does not have yet. A running fleet applies its own.
    fn settings_to_apply(&self, world: &World) -> Option<Arc<kernel::Config>> {
        if self.access.project.is_past() {
            return None;
        }
        let rules = self.access.host.rules().filter(|rules| **rules != *world.config)?;
        (!self.fleet_runs()).then_some(rules)
    }

    /// Applies the settings before a change, for every caller and every transport.
    fn apply_settings(&self) -> Result<(), Problem> {
        let Some(config) = self.settings_to_apply(&self.access.project.world()) else { return Ok(()) };
        let Some(ask) = ::fleet::apply_settings::ask(&self.access.project.world(), &config) else {
            return Ok(());
        };
        let Request { id, at, .. } = self.request;
        let command = Command {
            id: id.wrapping_add(2),
            at: *at,
            actor: Actor::System,
            token_for: None,
            key: None,
            ask,
        };
        match asks::replied(self.access.project.submit(command)) {
            // A disk that takes no more takes what was asked for no better, and stopping needs no disk.
            Err(problem) if !problem.is_of_disk() => Err(problem),
            _ => {
                self.access.host.settings_applied();
                Ok(())
            }
        }
    }

    /// Whether a fleet is at work, or about to be.
    fn fleet_runs(&self) -> bool {
        self.access.control.is_some_and(|control| control.status().running)
    }

    fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        member::body(&self.request.body)
    }

    fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        member::query(&self.request.query)
    }

    fn key(&self) -> Result<Option<smol_str::SmolStr>, Problem> {
        let Request { x_idempotency_key: x, idempotency_key: plain, .. } = self.request;
        // As it was sent, which is what the OpenAPI document describes.
        let is_too_long = [x, plain].into_iter().flatten().any(|sent| sent.len() > KEY_LENGTH_MAX);
        let (x, plain) = (&x.as_deref().map(unquoted), &plain.as_deref().map(unquoted));
        let key = match (x, plain) {
            (Some(x), Some(plain)) if x != plain => {
                return Err(Problem::bad("`X-Idempotency-Key` and `Idempotency-Key` have different values")
                    .hint("send one of them, or both with the same value"));
            }
            (x, plain) => x.as_ref().or(plain.as_ref()),
        };
        match key {
            Some(key) if key.is_empty() || is_too_long => Err(Problem::bad(format!(
                "an idempotency key must have 1 to {KEY_LENGTH_MAX} bytes, with its quotes"
            ))),
            key => Ok(key.map(smol_str::SmolStr::new)),
        }
    }

    /// Whether the caller may read all of a task.
    fn sees(&self, world: &World, task: &kernel::world::Task) -> bool {
        scope::sees(world, self.request, task)
    }

    /// Asks for what must be so before the request itself is asked: a command of its own, which no key stands for.
    fn submit_beside(&self, ask: Ask) -> Result<Reply, Problem> {
        let Request { id, at, actor, .. } = self.request;
        let command = Command {
            id: id.wrapping_add(1),
            at: *at,
            actor: actor.clone(),
            token_for: self.request.token_for(),
            key: None,
            ask,
        };
        asks::replied(self.access.project.submit(command))
    }

    /// Asks what the kernel would say. Nothing is written.
    fn would(&self, ask: Ask) -> Result<(), Problem> {
        let Request { id, at, actor, .. } = self.request;
        let command = Command {
            id: *id,
            at: *at,
            actor: actor.clone(),
            token_for: self.request.token_for(),
            key: None,
            ask,
        };
        kernel::handle(&self.world(), &command).map(drop).map_err(Problem::from)
    }

    /// Asks the kernel. A refusal is a problem like any other.
    fn submit(&self, ask: Ask) -> Result<Reply, Problem> {
        let command = self.command(ask)?;
        let scope = command.key.as_ref().map(|_| kernel::scope(&command));
        let reply = asks::replied(self.access.project.submit(command))?;
        self.keyed.set(scope.map(|scope| replay::Keyed { scope, replayed: reply.replayed }));
        Ok(reply)
    }

    fn command(&self, ask: Ask) -> Result<Command, Problem> {
        let Request { id, at, actor, .. } = self.request;
        let token_for = self.request.token_for();
        Ok(Command { id: *id, at: *at, actor: actor.clone(), token_for, key: self.key()?, ask })
    }
}

/// Bytes in the header of an idempotency key. Quotes count.
const KEY_LENGTH_MAX: usize = 255;

/// The draft of `Idempotency-Key` has its value as a string in quotes; without them it means the same.
fn unquoted(key: &str) -> String {
    match key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => key.to_owned(),
    }
}

/// A name. What cannot be one is bad input, not something that is missing.
fn name<T: std::str::FromStr<Err = machines::names::BadName>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: machines::names::BadName| Problem::bad(error.to_string()))
}

/// A name from the body, by the field that it stands in.
fn field<T: std::str::FromStr<Err = machines::names::BadName>>(
    field: &'static str,
    text: &str,
) -> Result<T, Problem> {
    text.parse().map_err(|error: machines::names::BadName| wrong(field, error.to_string()))
}

/// Bad input, with the field that it stands in.
fn wrong(field: &'static str, message: String) -> Problem {
    let error = types::problem::FieldError { field: field.to_owned(), message: message.clone() };
    Problem::bad(message).errors(vec![error])
}
