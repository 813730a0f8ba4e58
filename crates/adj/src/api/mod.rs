//! The one way in: typed requests to the project, whoever asks and over whatever transport.
//!
//! A request is translated to a command or a question, and the answer to JSON. Nothing is decided here. The caller
//! comes from the transport's credential, never from the body.

mod board;
mod fleet;
mod history;
pub mod outside;
mod problem;
mod scope;
#[cfg(test)]
mod tests;
mod view;

use std::ops::ControlFlow;
use std::sync::Arc;

use kernel::{Actor, Answer, Ask, Command, Reply, World};
use machines::Millis;
use machines::names::RunId;
use runtime::log::{Log, Record, Seq, SqliteLog};
use runtime::owner::{Folded, Handle, SubmitError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use board::BROKEN_TICKET;
pub use fleet::{Control, FleetStatus};
pub use outside::{Outside, WAIT_MAX};
pub use problem::{Problem, holder_name};
pub use view::time;

/// The most that a page of a list holds, and what it holds where nothing is said.
const PAGE_MAX: usize = 1_000;
const PAGE: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// `/api/v1/tasks/c-1`, without a query.
    pub path: String,
    pub query: Vec<(String, String)>,
    /// `Null` where there is none.
    pub body: Value,
    /// From the transport's credential: who asks, and an agent's run.
    pub actor: Actor,
    pub run: Option<RunId>,
    /// Given by the transport: unique, and the time at which it came in.
    pub id: u128,
    pub at: Millis,
    /// `X-Idempotency-Key`, and `Idempotency-Key`, which means the same.
    pub x_idempotency_key: Option<String>,
    pub idempotency_key: Option<String>,
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
    fn submit(&self, command: Command) -> Result<Answer, SubmitError>;
}

impl Project for Handle {
    fn world(&self) -> Arc<World> {
        Handle::world(self)
    }

    fn scan(&self, mut after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem> {
        // In pages: commands are decided between them.
        loop {
            let page = self.read(after, PAGE_MAX)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            if page.iter().any(|record| visit(record).is_break()) {
                return Ok(());
            }
        }
    }

    fn submit(&self, command: Command) -> Result<Answer, SubmitError> {
        Handle::submit(self, command, None)
    }
}

/// A project that is only looked at; another process may own it.
pub struct Reading {
    world: Arc<World>,
    log: Option<SqliteLog>,
}

impl Reading {
    /// `None`: a project whose log has not been begun.
    pub fn new(log: Option<SqliteLog>) -> Result<Reading, Problem> {
        let world = match &log {
            Some(log) => Folded::read(log, runtime::owner::VERSION)?.world,
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

    fn submit(&self, _: Command) -> Result<Answer, SubmitError> {
        Err(SubmitError::Log(runtime::log::LogError::ReadOnly))
    }
}

/// What requests are answered from.
pub struct Site<'a> {
    pub project: &'a dyn Project,
    pub outside: &'a dyn Outside,
    /// The process that owns the project and goes on; a command that is its own owner has none.
    pub control: Option<&'a dyn Control>,
}

/// Answers. What a request changed is durable when this returns.
pub fn answer(site: &Site, request: &Request) -> Response {
    match route(site, request) {
        Ok(response) => response,
        Err(problem) => Response { status: problem.status, body: problem.document() },
    }
}

/// Whether the caller may read what is at this path, before anything is answered.
pub fn check_scope(world: &World, request: &Request) -> Result<(), Problem> {
    let path = request.path.strip_prefix("/api/v1/").unwrap_or_default();
    scope::check(world, request, &path.split('/').collect::<Vec<_>>())
}

type Routed = Result<Response, Problem>;

fn route(site: &Site, request: &Request) -> Routed {
    use Method::{Delete, Get, Patch, Post};
    let path = request.path.strip_prefix("/api/v1/").unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let call = Call { site, request };
    scope::check(&call.world(), request, &parts)?;
    match (request.method, &parts[..]) {
        (Get, ["tasks"]) => board::list(&call),
        (Post, ["tasks"]) => board::add(&call),
        (Get, ["tasks", id]) => board::show(&call, id),
        (Patch, ["tasks", id]) => board::edit(&call, id),
        (Post, ["tasks", id, "transitions"]) => board::transition(&call, id),
        (Post, ["tasks", id, "comments"]) => board::comment(&call, id),
        (Post, ["tasks", id, "dependencies"]) => board::add_dependency(&call, id),
        (Delete, ["tasks", id, "dependencies", on]) => board::remove_dependency(&call, id, on),
        (Get, ["tasks", id, "history"]) => history::of_task(&call, id),
        (Get, ["tasks", id, "why"]) => board::why(&call, id),
        (Get, ["tasks", id, "shell"]) => board::shell(&call, id),
        (Get, ["tasks", id, "diff"]) => outside::diff(&call, id),
        (Get, ["tasks", id, "review"]) => board::reviewed(&call, id),
        (Get, ["tasks", id, "transcript"]) => outside::transcript_of_task(&call, id),
        (Post, ["tasks", id, "review"]) => board::review(&call, id),
        (Get, ["tasks", id, "prompt", kind]) => outside::task_prompt(&call, id, kind),
        (Get, ["reviews"]) => board::reviews(&call),
        (Post, ["tasks", id, "accept"]) => board::accept(&call, id),
        (Post, ["tasks", id, "retry"]) => board::retry(&call, id),
        (Post, ["tasks", id, "undo"]) => board::undo(&call, id),
        (Post, ["tasks", id, "restart"]) => board::restart(&call, id),

        (Get, ["approvals"]) => board::approvals(&call),
        (Get, ["approvals", id]) => board::approval(&call, id),
        (Post, ["approvals", id, "decision"]) => board::decide(&call, id),
        (Get, ["queue"]) => board::queue(&call),
        (Get, ["cost"]) => board::cost(&call),

        (Get, ["workers"]) => fleet::workers(&call),
        (Post, ["workers"]) => fleet::spawn(&call),
        (Get, ["workers", name]) => fleet::worker(&call, name),
        (Get, ["workers", name, "history"]) => history::of_worker(&call, name),
        (Get, ["workers", name, "why"]) => fleet::why(&call, name),
        (Get, ["workers", name, "transcript"]) => outside::transcript_of_worker(&call, name),
        (Post, ["workers", name, action]) => fleet::act(&call, name, action),
        (Get, ["runs"]) => fleet::runs(&call),
        (Post, ["runs"]) => fleet::open_run(&call),
        (Get, ["runs", id]) => fleet::run(&call, id),
        (Get, ["runs", id, "history"]) => history::of_run(&call, id),
        (Post, ["runs", id, "events"]) => fleet::run_event(&call, id),

        (Get, ["why"]) => fleet::why_all(&call),
        (Get, ["fleet"]) => fleet::status(&call),
        (Post, ["fleet", "stop"]) => fleet::stop(&call),
        (Post, ["fleet", "test-main"]) => fleet::test_main(&call),
        (Get, ["tasks", id, "tests"]) => outside::tests(&call, id),
        (Get, ["salvage"]) => outside::salvage(&call),
        (Get, ["salvage", task, effect]) => outside::salvage_show(&call, task, effect),
        (Post, ["salvage", "restore"]) => outside::salvage_restore(&call),
        (Get, ["trash"]) => outside::trash(&call),
        (Post, ["trash", "empty"]) => outside::empty_trash(&call),
        (Get, ["prompts"]) => outside::prompts(&call),
        (Get, ["prompts", name]) => outside::prompt(&call, name),
        (Get, ["config"]) => outside::config(&call),
        (Get, ["config", "check"]) => outside::config_check(&call),
        (Get, ["config", "schema"]) => outside::config_schema(&call),
        (Post, ["config", "trust"]) => outside::config_trust(&call),
        (Post, ["config", "forget"]) => outside::config_forget(&call),
        (Get, ["tickets", "problems"]) => outside::ticket_problems(&call),
        (Get, ["doctor"]) => outside::doctor(&call),
        (Post, ["init"]) => outside::init(&call),

        (Get, ["history"]) => history::of_all(&call),
        (Get, ["events"]) => history::events(&call),
        (Get, ["machines"]) => Ok(ok(json!(machines::catalog::all()))),
        (Get, ["machines", name]) => match machines::catalog::find(name) {
            Some(doc) => Ok(ok(json!(doc))),
            None => Err(Problem::not_found(format!("there is no machine `{}`", name.escape_debug()))),
        },
        _ => Err(Problem::not_found(format!("there is nothing at `{}`", request.path.escape_debug()))),
    }
}

fn ok(body: Value) -> Response {
    Response { status: 200, body }
}

fn created(body: Value) -> Response {
    Response { status: 201, body }
}

/// A request on its way, with what every handler needs of it.
pub struct Call<'a> {
    site: &'a Site<'a>,
    request: &'a Request,
}

impl Call<'_> {
    fn world(&self) -> Arc<World> {
        self.site.project.world()
    }

    /// The same, under the settings as they are: a fleet keeps the rules so; where none runs, they may never have been read.
    fn world_as_set(&self) -> Arc<World> {
        let world = self.world();
        let at_work = self.site.control.is_some_and(|control| control.status().running);
        match self.site.outside.rules().filter(|rules| !at_work && *rules != *world.config) {
            Some(rules) => Arc::new(World { config: Arc::new(rules), ..(*world).clone() }),
            None => world,
        }
    }

    /// The body as what is expected. What is wrong with it is said in serde's words, which name field and value.
    fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body = match &self.request.body {
            Value::Null => json!({}),
            body => body.clone(),
        };
        serde_json::from_value(body).map_err(|error| Problem::bad(format!("the body is not right: {error}")))
    }

    fn query(&self, name: &str) -> Option<&str> {
        self.request.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn limit(&self) -> Result<usize, Problem> {
        match self.query("limit").map(str::parse::<usize>) {
            None => Ok(PAGE),
            Some(Ok(limit)) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
            Some(_) => Err(Problem::bad(format!("`limit` must be 1 to {PAGE_MAX}"))),
        }
    }

    fn after(&self) -> Result<u64, Problem> {
        let after = self.query("after").map_or(Ok(0), str::parse);
        after.map_err(|_| Problem::bad("`after` must be a cursor that a page ended with"))
    }

    fn flag(&self, name: &str) -> bool {
        self.query(name).is_some_and(|value| !matches!(value, "0" | "false"))
    }

    fn key(&self) -> Result<Option<smol_str::SmolStr>, Problem> {
        let Request { x_idempotency_key: x, idempotency_key: plain, .. } = self.request;
        let key = match (x, plain) {
            (Some(x), Some(plain)) if x != plain => {
                return Err(Problem::bad("`X-Idempotency-Key` and `Idempotency-Key` are different")
                    .hint("send one of them, or both with the same value"));
            }
            (x, plain) => x.as_ref().or(plain.as_ref()),
        };
        match key {
            Some(key) if key.is_empty() || key.len() > 255 => {
                Err(Problem::bad("an idempotency key has 1 to 255 bytes"))
            }
            key => Ok(key.map(smol_str::SmolStr::new)),
        }
    }

    /// Whether the caller may read all of a task.
    fn sees(&self, world: &World, task: &kernel::world::Task) -> bool {
        scope::sees(world, self.request, task)
    }

    /// For what the kernel has no part in and only a person may ask.
    fn by_a_person(&self, what: &str) -> Result<(), Problem> {
        match self.request.actor.is_human() {
            true => Ok(()),
            false => Err(Problem::new(403, "FORBIDDEN", format!("the caller's role may not {what}"))),
        }
    }

    /// Asks for what must be so before the request itself is asked: a command of its own, which no key stands for.
    fn submit_beside(&self, ask: Ask) -> Result<Reply, Problem> {
        let Request { id, at, actor, .. } = self.request;
        let command = Command { id: id.wrapping_add(1), at: *at, actor: actor.clone(), key: None, ask };
        match self.site.project.submit(command)? {
            Answer::Done(reply) => Ok(reply),
            Answer::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Asks what the kernel would say. Nothing is written.
    fn would(&self, ask: Ask) -> Result<(), Problem> {
        let Request { id, at, actor, .. } = self.request;
        let command = Command { id: *id, at: *at, actor: actor.clone(), key: None, ask };
        kernel::handle(&self.site.project.world(), &command).map(drop).map_err(Problem::from)
    }

    /// Asks the kernel. A refusal is a problem like any other.
    fn submit(&self, ask: Ask) -> Result<Reply, Problem> {
        let Request { id, at, actor, .. } = self.request;
        let command = Command { id: *id, at: *at, actor: actor.clone(), key: self.key()?, ask };
        match self.site.project.submit(command)? {
            Answer::Done(reply) => Ok(reply),
            Answer::Refused(refusal) => Err(refusal.into()),
        }
    }
}

/// A name from the path. One that cannot be a name is bad input, not something that is missing.
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

/// One of the words that a field takes.
fn word<T: machines::Wire>(field: &'static str, text: &str) -> Result<T, Problem> {
    T::read(text).ok_or_else(|| {
        let known = kernel::config::names_of::<T>();
        wrong(field, format!("there is no {field} `{}`: it is one of {known}", text.escape_debug()))
    })
}

/// Bad input, with the field that it stands in.
fn wrong(field: &'static str, message: String) -> Problem {
    let mut problem = Problem::bad(message.clone());
    problem.members.insert("errors".to_owned(), json!([{"field": field, "message": message}]));
    problem
}
