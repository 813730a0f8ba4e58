//! Every route: one row says how it is asked for, who may, what it takes and gives, and what it is for.
//!
//! The same rows answer requests over the socket and in process, say who may, and are printed as `docs/api.md`. A row
//! without one of its parts does not compile: method, path, who, handler and sentence are arguments, and what it takes and
//! gives are the handler's types.

use super::asks::{Asks, Taken};
use super::types::{self, Nothing};
use super::{
    Call, Method, Problem, Request, Response, agents, architect, board, caller, channels, fleet, history,
    host, overview, requests, runs, scope, specs, story_feed, tokens, waiting,
};
use kernel::World;
use machines::names::{
    AgentName, ApprovalId, BadName, ChannelName, EffectId, RequestId, RunId, SpecId, TaskId, WorkerName,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

use Method::{Delete, Get, Patch, Post, Put};
use Who::{
    Everyone, ItsPart, Kernel, People, ReadsApproval, ReadsChannel, ReadsRequest, ReadsRun, ReadsTask,
    ReadsWork, ReadsWorker,
};

pub static TABLE: LazyLock<Vec<Subject>> = LazyLock::new(table);

#[rustfmt::skip]
fn table() -> Vec<Subject> {
    vec![
        subject("Tasks", vec![
            //     method  path                              who            handler                     what it is for
            route(Get,    "/tasks",                          Everyone,      board::list,                "List the tasks"),
            route(Get,    "/board",                          Everyone,      board::board,               "Show the whole board as one document, which is kept ready").kept_ready(),
            makes(Post,   "/tasks",                          Kernel,        board::add,                 "Add a task to the inbox"),
            route(Get,    "/tasks/{task}",                   ItsPart,       board::show,                "Show a task"),
            asks(Patch,   "/tasks/{task}",                   Kernel,        board::edit,                "Change what a task says"),
            asks(Post,    "/tasks/{task}/transitions",       Kernel,        board::transition,          "Move a task to another status").told_as(Problem::of_transition),
            makes(Post,   "/tasks/{task}/comments",          Kernel,        board::comment,             "Comment on a task"),
            creates(Post, "/tasks/{task}/dependencies",      Kernel,        board::add_dependency,      "Let a task wait until another is done"),
            route(Delete, "/tasks/{task}/dependencies/{on}", Kernel,        board::remove_dependency,   "Let a task no longer wait for another"),
            route(Post,   "/tasks/{task}/accept",            Kernel,        board::accept,              "Let the fleet work on a task that an agent proposed"),
            route(Post,   "/tasks/{task}/retry",             Kernel,        board::retry,               "Try a task again that failed"),
            route(Post,   "/tasks/{task}/restart",           Kernel,        board::restart,             "Start a task over, from main"),
            creates(Post, "/tasks/{task}/undo",              People,        board::undo,                "Take back what a task brought to main, as a task of its own"),
            route(Get,    "/tasks/{task}/why",               ReadsTask,     board::why,                 "Explain what a task is waiting for"),
            route(Get,    "/tasks/{task}/history",           ReadsTask,     history::of_task,           "List what happened to a task"),
            route(Get,    "/tasks/{task}/diff",              ReadsWork,     host::diff,                 "Show what a task would change in main"),
            route(Get,    "/tasks/{task}/transcript",        ReadsTask,     host::transcript_of_task,   "Read what agents said and did for a task"),
            route(Get,    "/tasks/{task}/tests",             ReadsTask,     host::tests,                "Read what the last tests or hooks of a task printed"),
            route(Get,    "/tasks/{task}/prompt/{prompt}",   ReadsTask,     host::task_prompt,          "Show the prompt that a task's agent would get now"),
            route(Get,    "/tasks/{task}/shell",             People,        board::shell,               "Find the tree that a shell for a task would open in"),
        ]),
        subject("Review and landing", vec![
            route(Get,    "/reviews",                        ItsPart,       board::reviews,             "List the tasks that wait for a review"),
            route(Get,    "/tasks/{task}/review",            ReadsWork,     board::reviewed,            "Show what a reviewer needs to know of a task"),
            route(Post,   "/tasks/{task}/review",            Kernel,        board::review,              "Approve a task in REVIEW, or ask for changes"),
            route(Get,    "/queue",                          Everyone,      board::queue,               "List what is approved and not on main yet"),
        ]),
        subject("Approvals", vec![
            route(Get,    "/approvals",                      ItsPart,       board::approvals,           "List the questions that wait for a person"),
            route(Get,    "/approvals/{approval}",           ReadsApproval, board::approval,            "Show a question"),
            route(Post,   "/approvals/{approval}/decision",  Kernel,        board::decide,              "Answer a question"),
        ]),
        subject("Questions", vec![
            route(Get,    "/requests",                       ItsPart,       requests::list,             "List the requests that wait for an answer in words, by a person or by the architect"),
            creates(Post, "/requests",                       Kernel,        requests::ask,              "Ask a question"),
            route(Get,    "/requests/{request}",             ReadsRequest,  requests::show,             "Show a question, with its answer"),
            route(Get,    "/requests/{request}/history",     ReadsRequest,  history::of_request,        "List what happened to a request"),
            route(Post,   "/requests/{request}/answer",      Kernel,        requests::answer,           "Answer a question in words, or give it up"),
            route(Post,   "/requests/{request}/receipt",     Kernel,        requests::receive,          "Say that the answer has reached whoever asked"),
        ]),
        subject("Specs and the architect", vec![
            route(Get,    "/specs",                          Everyone,      specs::list,                "List the specs"),
            creates(Post, "/specs",                          Kernel,        specs::submit,              "Submit a spec, or submit it again after feedback"),
            route(Get,    "/specs/{spec}",                   Everyone,      specs::show,                "Show a spec, its versions and its stories"),
            route(Get,    "/specs/{spec}/history",           People,        history::of_spec,           "List what happened to a spec and to its stories"),
            route(Get,    "/architect",                      People,        architect::show,            "Show where the architect stands, and what waits for it"),
            route(Get,    "/architect/transcript",           People,        host::transcript_of_architect, "Read what the architect's agent said and did"),
            route(Post,   "/architect/recover",              Kernel,        architect::recover,         "Let the architect go on after an error"),
            route(Post,   "/architect/answer",               Kernel,        architect::answer,          "Answer the request in hand, as the architect's agent"),
        ]),
        subject("Agents at work", vec![
            route(Post,   "/own/plan",                       Kernel,        requests::plan,             "Submit the plan of the task that the caller is at work on"),
            route(Post,   "/own/claim",                      Kernel,        requests::claim,            "Say that the task is done; the end of the step and the gate decide"),
            creates(Post, "/own/approvals",                  Kernel,        requests::wish,             "Ask a person before something is done"),
        ]),
        subject("Workers", vec![
            route(Get,    "/workers",                        ItsPart,       fleet::workers,             "List the workers"),
            creates(Post, "/workers",                        Kernel,        fleet::spawn,               "Add a worker"),
            route(Get,    "/workers/{worker}",               ItsPart,       fleet::worker,              "Show a worker"),
            route(Get,    "/workers/{worker}/why",           ReadsWorker,   fleet::why,                 "Explain what a worker is waiting for"),
            route(Get,    "/workers/{worker}/history",       ReadsWorker,   history::of_worker,         "List what happened to a worker"),
            route(Get,    "/workers/{worker}/transcript",    ReadsWorker,   host::transcript_of_worker, "Read what a worker's agent said and did"),
            route(Post,   "/workers/{worker}/assign",        Kernel,        fleet::assign,              "Give a task to a worker"),
            route(Post,   "/workers/{worker}/kill",          Kernel,        fleet::kill,                "End what a worker does, and save its work"),
            route(Post,   "/workers/{worker}/retry",         Kernel,        fleet::retry,               "Try again with a worker that is stuck"),
            route(Post,   "/workers/{worker}/cleanup",       Kernel,        fleet::cleanup,             "Save and remove a worker's tree"),
            route(Post,   "/workers/{worker}/clean",         Kernel,        fleet::clean,               "Remove a worker, after its work is saved"),
            route(Post,   "/workers/{worker}/merge",         Kernel,        fleet::merge,               "Approve the task that a worker has, or has handed over"),
        ]),
        subject("Runs", vec![
            route(Get,    "/runs",                           ItsPart,       runs::list,                 "List the runs"),
            creates(Post, "/runs",                           Kernel,        runs::open,                 "Open a run for an agent that the fleet does not start, or have a worker of an agent begin one"),
            route(Get,    "/runs/{run}",                     ReadsRun,      runs::show,                 "Show a run"),
            route(Get,    "/runs/{run}/history",             ReadsRun,      history::of_run,            "List what happened in a run"),
            route(Get,    "/runs/{run}/tools",               ReadsRun,      runs::tools,                "List the calls of a run's tools: the audit"),
            route(Post,   "/runs/{run}/events",              Kernel,        runs::event,                "Report an event of a run; people pause, resume and abort"),
            route(Post,   "/runs/{run}/tokens",              Kernel,        runs::tokens,               "Report what an agent outside writes, as it comes"),
        ]),
        subject("Agents", vec![
            route(Get,    "/agents",                         Everyone,      agents::list,               "List the agents of the settings, and those that are connected from outside"),
            creates(Post, "/agents",                         Kernel,        agents::register,           "Connect an agent that the fleet does not start"),
            route(Get,    "/agents/{agent}/transcript",      People,        host::transcript_of_agent,  "Read what an agent said and did outside of tasks: in channels, and as the architect"),
            route(Post,   "/agents/{agent}/connect",         Kernel,        agents::connect,            "Connect an agent by its name"),
            route(Put,    "/agents/{agent}/heartbeat",       Kernel,        agents::heartbeat,          "Give a sign of life of a connected agent"),
            route(Post,   "/agents/{agent}/disconnect",      Kernel,        agents::disconnect,         "Disconnect an agent"),
            route(Post,   "/agents/{agent}/disable",         Kernel,        agents::disable,            "Disable an agent: it takes no further task and has no turn in a channel"),
            route(Post,   "/agents/{agent}/enable",          Kernel,        agents::enable,             "Enable an agent again"),
        ]),
        subject("Channels", vec![
            route(Get,    "/channels",                       ItsPart,       channels::list,             "List the channels: rooms in which agents take turns"),
            creates(Post, "/channels",                       Kernel,        channels::make,             "Make a channel"),
            route(Get,    "/channels/{channel}",             ReadsChannel,  channels::show,             "Show a channel: who is in it, who has the turn and until when"),
            route(Post,   "/channels/{channel}/close",       Kernel,        channels::close,            "Close a channel; what was said there can still be read"),
            route(Get,    "/channels/{channel}/members",     ReadsChannel,  channels::members,          "List the agents in a channel"),
            creates(Post, "/channels/{channel}/members",     Kernel,        channels::add_member,       "Add an agent to a channel"),
            route(Delete, "/channels/{channel}/members/{agent}", Kernel,    channels::remove_member,    "Remove an agent from a channel"),
            route(Get,    "/channels/{channel}/messages",    ReadsChannel,  channels::messages,         "Read what was said in a channel; an agent has heard what it reads"),
            creates(Post, "/channels/{channel}/messages",    Kernel,        channels::post,             "Say something in a channel: a person at any time, an agent in its turn"),
            route(Get,    "/channels/{channel}/history",     People,        history::of_channel,        "List what happened in a channel: its turns, and what was said"),
            route(Get,    "/channels/{channel}/transcript",  People,        host::transcript_of_channel, "Read what the agents that Adjutant hosts in a channel said and did in their turns"),
            route(Get,    "/channels/{channel}/members/{agent}/transcript", People, host::transcript_of_member, "Read what one agent said and did in its turns in a channel"),
            route(Post,   "/channels/{channel}/turn",        Kernel,        channels::turn,             "End a turn, let it wait or go on; people also cancel it and pass agents over"),
            route(Post,   "/channels/{channel}/decision",    Kernel,        channels::decide,           "Decide the review that a channel is for"),
        ]),
        subject("The fleet", vec![
            route(Get,    "/fleet",                          Everyone,      fleet::status,              "Show whether a fleet runs, and how main's own tests stand"),
            route(Post,   "/fleet/start",                    Kernel,        fleet::start,               "Start the fleet in the server"),
            route(Post,   "/fleet/stop",                     Kernel,        fleet::stop,                "Stop the fleet"),
            route(Post,   "/fleet/test-main",                Kernel,        fleet::test_main,           "Run main's own tests again"),
            route(Get,    "/why",                            People,        fleet::why_all,             "Explain what stands in the way of the fleet, and what each open task waits for"),
            route(Get,    "/waiting",                        People,        waiting::list,              "List what waits for a person or a service, and what can be done about it"),
            route(Get,    "/cost",                           People,        board::cost,                "Sum up what was spent"),
            route(Get,    "/overview",                       People,        overview::show,             "Show what the fleet does now on one page: workers, board, landing, what waits for a person"),
        ]),
        subject("What happened", vec![
            route(Get,    "/history",                        People,        history::of_all,            "List what happened"),
            route(Get,    "/events",                         People,        history::events,            "Read the log; with `Accept: text/event-stream`, follow it as it grows").also_as("text/event-stream"),
            route(Get,    "/export",                         People,        host::export,               "Say what an export of the log would hold; with `Accept: application/x-ndjson`, export it").also_as(host::EXPORT),
            route(Get,    "/verify",                         People,        host::verify,               "Check the whole log: hashes, events, invariants, snapshot and outbox"),
            route(Get,    "/story",                          People,        story_feed::list,           "Read what the running process has told since it began, line by line"),
        ]),
        subject("Saved work", vec![
            route(Get,    "/salvage",                        People,        host::salvage,              "List saved work, newest first"),
            route(Get,    "/salvage/{task}/{effect}",        People,        host::salvage_show,         "Show what a piece of saved work changed"),
            route(Post,   "/salvage/restore",                People,        host::salvage_restore,      "Put saved work into a new branch or folder"),
            route(Get,    "/trash",                          People,        host::trash,                "Show how much is in the trash"),
            route(Post,   "/trash/empty",                    People,        host::empty_trash,          "Delete what is in the trash"),
        ]),
        subject("Tokens", vec![
            route(Get,    "/tokens",                         People,        tokens::list,               "List the tokens that people made"),
            creates(Post, "/tokens",                         People,        tokens::create,             "Make a token for a colleague or a program"),
            route(Delete, "/tokens/{token}",                 People,        tokens::revoke,             "Revoke a token"),
            creates(Post, "/links",                          People,        tokens::link,               "Make a link that lets a browser in once"),
        ]),
        subject("Settings and the machine", vec![
            route(Get,    "/caller",                         Everyone,      caller::show,               "Say who the caller is, by the token"),
            route(Get,    "/config",                         Everyone,      host::config,               "Show the settings in force"),
            route(Get,    "/config/check",                   Everyone,      host::config_check,         "List what is wrong with adjutant.toml"),
            route(Get,    "/config/schema",                  Everyone,      host::config_schema,        "Show the JSON Schema of adjutant.toml"),
            route(Post,   "/config/trust",                   People,        host::config_trust,         "Trust adjutant.toml and .worktreeinclude as they are now"),
            route(Post,   "/config/forget",                  People,        host::config_forget,        "Go on with the defaults after adjutant.toml was deleted"),
            route(Get,    "/prompts",                        Everyone,      host::prompts,              "List the prompts, and where each comes from"),
            route(Get,    "/prompts/{prompt}",               Everyone,      host::prompt,               "Show a prompt"),
            route(Get,    "/tickets/problems",               Everyone,      host::ticket_problems,      "List what is wrong with ticket files"),
            route(Get,    "/doctor",                         People,        host::doctor,               "Check the machine, the repository and the settings"),
            route(Post,   "/init",                           People,        host::init,                 "Write adjutant.toml, and check this machine"),
            route(Get,    "/machines",                       Everyone,      machines,                   "List the state machines"),
            route(Get,    "/machines/{machine}",             Everyone,      machine,                    "Show a state machine"),
        ]),
    ]
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Everyone,
    /// Everyone, and the answer holds only what the caller may read.
    ItsPart,
    /// Whoever may read the task that the path names, or the task of the run or question.
    ReadsTask,
    /// The same, and the agents in the channel in which the task is reviewed.
    ReadsWork,
    ReadsRun,
    ReadsApproval,
    ReadsRequest,
    /// People, and the worker's own agent.
    ReadsWorker,
    /// People, and the agents in the channel.
    ReadsChannel,
    People,
    /// The rules decide, by the role of whoever asks and by what the ask is about.
    Kernel,
}

impl Who {
    pub fn words(self) -> &'static str {
        match self {
            Everyone => "anyone with a token",
            ItsPart => "anyone with a token; an agent is told of others only what stands on the board",
            ReadsTask => {
                "people, and agents that may read the task: its own, its reviewer, whoever proposed it"
            }
            ReadsWork => {
                "people, agents that may read the task, and those in the channel in which it is reviewed"
            }
            ReadsRun => "people, and agents that may read the run's task",
            ReadsApproval | ReadsRequest => "people, and agents that may read the question's task",
            ReadsWorker => "people, and the worker's own agent",
            ReadsChannel => "people, and the agents in the channel",
            People => "people only",
            Kernel => "as the rules decide",
        }
    }
}

/// Rows that belong together on the printed page.
pub struct Subject {
    pub title: &'static str,
    pub routes: Vec<Route>,
}

/// A row.
pub struct Route {
    pub method: Method,
    /// After `/api/v1`; a part in braces stands for a name.
    pub path: &'static str,
    pub who: Who,
    /// In one sentence, without its full stop.
    pub about: &'static str,
    /// What it answers where all is well.
    pub status: u16,
    pub query: SchemaOf,
    pub body: SchemaOf,
    pub answer: SchemaOf,
    /// A server answers with what it keeps ready, and does not ask the handler.
    pub ready: bool,
    /// It is asked of the kernel, and nothing else of it takes long.
    only_asks: bool,
    /// Whoever accepts this kind of content is sent all of it, for as long as it takes.
    pub also_as: Option<&'static str>,
    take: Box<Take>,
    told_as: fn(Problem) -> Problem,
}

/// The handler, with its types made into JSON; the names are those in the path.
type Take = dyn Fn(&Call, &[&str]) -> Result<Taken, Problem> + Send + Sync;
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn subject(title: &'static str, routes: Vec<Route>) -> Subject {
    Subject { title, routes }
}

fn route<P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: fn(&Call, P, Q, B) -> Result<A, Problem>,
    about: &'static str,
) -> Route
where
    P: FromPath + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    row::<P, Q, B, A>(method, path, who, about, move |call, names| {
        let answer = handler(call, P::read(names)?, call.query()?, call.body()?)?;
        Ok(Taken::Answered(document(&answer)))
    })
}

fn row<P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    about: &'static str,
    take: impl Fn(&Call, &[&str]) -> Result<Taken, Problem> + Send + Sync + 'static,
) -> Route
where
    P: FromPath,
    Q: JsonSchema,
    B: JsonSchema,
    A: JsonSchema,
{
    assert_eq!(P::NAMES, path.matches('{').count(), "{path} has as many names as its handler takes");
    Route {
        method,
        path,
        who,
        about,
        status: 200,
        query: |schemas| schemas.subschema_for::<Q>(),
        body: |schemas| schemas.subschema_for::<B>(),
        answer: |schemas| schemas.subschema_for::<A>(),
        ready: false,
        only_asks: false,
        also_as: None,
        take: Box::new(take),
        told_as: |problem| problem,
    }
}

/// A row that answers 201: there is something now that was not there before.
fn creates<P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: fn(&Call, P, Q, B) -> Result<A, Problem>,
    about: &'static str,
) -> Route
where
    P: FromPath + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    Route { status: 201, ..route(method, path, who, handler, about) }
}

/// What takes a call apart: names in the path, the query, the body.
type Handler<P, Q, B, A> = fn(&Call, P, Q, B) -> Result<A, Problem>;

/// A row that asks the kernel for one thing, and answers when that is on disk.
fn asks<P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: Handler<P, Q, B, Asks<A>>,
    about: &'static str,
) -> Route
where
    P: FromPath + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let row = row::<P, Q, B, A>(method, path, who, about, move |call, names| {
        let Asks { ask, then } = handler(call, P::read(names)?, call.query()?, call.body()?)?;
        Ok(Taken::Asks(Asks::new(ask, move |call, reply| Ok(document(&then(call, reply)?)))))
    });
    Route { only_asks: true, ..row }
}

/// The same, where there is something then that was not there before.
fn makes<P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: Handler<P, Q, B, Asks<A>>,
    about: &'static str,
) -> Route
where
    P: FromPath + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    Route { status: 201, ..asks(method, path, who, handler, about) }
}

impl Route {
    /// A problem as this route's clients are told it.
    pub fn told(&self, problem: Problem) -> Problem {
        (self.told_as)(problem)
    }

    /// Whatever is refused here carries what this route's clients look for.
    fn told_as(self, told_as: fn(Problem) -> Problem) -> Route {
        Route { told_as, ..self }
    }

    fn kept_ready(self) -> Route {
        Route { ready: true, ..self }
    }

    fn also_as(self, kind: &'static str) -> Route {
        Route { also_as: Some(kind), ..self }
    }

    /// The names that a path has where this one has braces; `None` where it is another.
    fn names<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let (mut own, mut theirs) = (self.path.split('/'), path.split('/'));
        let mut names = Vec::new();
        loop {
            match (own.next(), theirs.next()) {
                (None, None) => return Some(names),
                (Some(own), Some(given)) if own.starts_with('{') => names.push(given),
                (Some(own), Some(given)) if own == given => {}
                _ => return None,
            }
        }
    }
}

/// What is answered is made of text, numbers and members with names: there is nothing that JSON could not say.
pub fn document(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// All rows, in order.
pub fn all() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().flat_map(|subject| &subject.routes)
}

/// The rows whose path begins with a word and has so many parts: every request looks for its own among them.
static BY_FIRST_WORD: LazyLock<HashMap<(&'static str, usize), Vec<&'static Route>>> = LazyLock::new(|| {
    let mut rows: HashMap<_, Vec<&Route>> = HashMap::new();
    for route in all() {
        rows.entry(first_word(route.path)).or_default().push(route);
    }
    rows
});

fn first_word(path: &str) -> (&str, usize) {
    (path.split('/').nth(1).unwrap_or_default(), path.split('/').count())
}

/// The rows at a path, whatever the method.
fn at(path: &str) -> impl Iterator<Item = (&'static Route, Vec<&str>)> {
    let rows = BY_FIRST_WORD.get(&first_word(path)).into_iter().flatten();
    rows.filter_map(move |route| Some((*route, route.names(path)?)))
}

/// What can be asked at a path; nothing where there is nothing.
pub fn methods_at(path: &str) -> Vec<&'static str> {
    at(path.strip_prefix("/api/v1").unwrap_or_default()).map(|(route, _)| route.method.name()).collect()
}

/// The path of the row that a path is one of, whatever the method.
pub fn template(path: &str) -> Option<&'static str> {
    at(path).next().map(|(route, _)| route.path)
}

/// The row for a request, with the names in its path.
fn find(request: &Request) -> Result<(&'static Route, Vec<&str>), Problem> {
    let path = request.path.strip_prefix("/api/v1").unwrap_or_default();
    let found: Vec<_> = at(path).collect();
    let methods: Vec<&str> = found.iter().map(|(route, _)| route.method.name()).collect();
    match found.into_iter().find(|(route, _)| route.method == request.method) {
        Some(found) => Ok(found),
        None if methods.is_empty() => {
            Err(Problem::not_found(format!("there is nothing at `{}`", request.path.escape_debug())))
        }
        None => {
            let (path, method) = (request.path.escape_debug(), request.method.name());
            let detail = format!("`{path}` does not take {method}: it takes {}", methods.join(", "));
            Err(Problem { methods, ..Problem::new(405, "NO_SUCH_METHOD", detail) })
        }
    }
}

/// The row for a request, where the caller may ask it: before anything is answered.
pub fn check(world: &World, request: &Request) -> Result<&'static Route, Problem> {
    let (route, names) = find(request)?;
    scope::check(world, request, route, names.first().copied().unwrap_or_default())?;
    Ok(route)
}

/// Refuses what no row takes, before anything of it is read; otherwise says whether it is asked of the kernel only.
pub fn only_asks(request: &Request) -> Result<bool, Problem> {
    find(request).map(|(route, _)| route.only_asks)
}

pub fn answer(call: &Call) -> Result<Response, Problem> {
    let (route, taken) = take(call)?;
    let body = match taken {
        Taken::Answered(body) => body,
        Taken::Asks(Asks { ask, then }) => {
            call.submit(ask).and_then(|reply| then(call, reply)).map_err(route.told_as)?
        }
    };
    Ok(Response { status: route.status, body })
}

/// What the request's row makes of it, where the caller may ask it.
pub fn take(call: &Call) -> Result<(&'static Route, Taken), Problem> {
    let (route, names) = find(call.request)?;
    // One that cannot be a key is a slip, also where nothing would be done twice.
    call.key()?;
    scope::check(&call.world(), call.request, route, names.first().copied().unwrap_or_default())?;
    if route.method != Method::Get {
        call.apply_settings()?;
    }
    let taken = (route.take)(call, &names).map_err(route.told_as)?;
    Ok((route, taken))
}

/// What a handler makes of the names in its path. One that cannot be a name is bad input, not something that is missing.
pub trait FromPath: Sized {
    const NAMES: usize;

    fn read(names: &[&str]) -> Result<Self, Problem>;
}

impl FromPath for () {
    const NAMES: usize = 0;

    fn read(_: &[&str]) -> Result<(), Problem> {
        Ok(())
    }
}

macro_rules! one_name {
    ($($name:ty),*) => {$(
        impl FromPath for $name {
            const NAMES: usize = 1;

            fn read(names: &[&str]) -> Result<$name, Problem> {
                let name = names.first().copied().unwrap_or_default();
                name.parse().map_err(|error: BadName| Problem::bad(error.to_string()))
            }
        }
    )*};
}

one_name!(AgentName, ChannelName, TaskId, WorkerName, RunId, ApprovalId, RequestId, SpecId, EffectId);

/// A word of which there are few: whoever looks for it says that there is none.
impl FromPath for String {
    const NAMES: usize = 1;

    fn read(names: &[&str]) -> Result<String, Problem> {
        Ok(names.first().copied().unwrap_or_default().to_owned())
    }
}

impl<First: FromPath, Second: FromPath> FromPath for (First, Second) {
    const NAMES: usize = 2;

    fn read(names: &[&str]) -> Result<(First, Second), Problem> {
        Ok((First::read(names)?, Second::read(names.get(1..).unwrap_or_default())?))
    }
}

fn machines(
    _: &Call,
    (): (),
    paging: types::Paging,
    _: Nothing,
) -> Result<types::Page<types::machine::Machine>, Problem> {
    Ok(paging.page(machines::catalog::all().into_iter().map(Into::into).collect()))
}

fn machine(_: &Call, name: String, _: Nothing, _: Nothing) -> Result<types::machine::Machine, Problem> {
    match machines::catalog::find(&name) {
        Some(doc) => Ok(doc.into()),
        None => Err(Problem::not_found(format!("there is no machine `{}`", name.escape_debug()))),
    }
}
