//! An operation: what one row of the table in `routes.rs` says.
//!
//! A row without one of its parts does not compile: method, path, who, handler and sentence are arguments, and what the
//! operation takes and gives are the types of its handler. Its commands, its tools and the ways in which a server answers it
//! beside asking the handler are columns that most rows do without.

use std::any::TypeId;

use machines::names::{
    AgentName, ApprovalId, BadName, ChannelName, EffectId, RequestId, RunId, SpecId, TaskId, WorkerName,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::asks::{Asks, Taken};
use super::tool::Tool;
use super::types::SchemaOf;
use super::{Call, Method, Problem};

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Everyone,
    /// Everyone, and the answer holds only what the caller may read.
    ItsPart,
    /// Callers that may read the task of the path, or the task of the run or question.
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
    /// The rules decide, by the caller's role and by the subject of the ask.
    Kernel,
}

impl Who {
    pub fn words(self) -> &'static str {
        match self {
            Who::Everyone => "anyone with a token",
            Who::ItsPart => "anyone with a token; an agent is told of others only what stands on the board",
            Who::ReadsTask => {
                "people, and agents that may read the task: its own, its reviewer and its proposer"
            }
            Who::ReadsWork => {
                "people, agents that may read the task, and those in the channel in which it is reviewed"
            }
            Who::ReadsRun => "people, and agents that may read the run's task",
            Who::ReadsApproval | Who::ReadsRequest => "people, and agents that may read the question's task",
            Who::ReadsWorker => "people, and the worker's own agent",
            Who::ReadsChannel => "people, and the agents in the channel",
            Who::People => "people only",
            Who::Kernel => "as the rules decide",
        }
    }
}

/// How a log is sent whole: a line of JSON for each record, behind one that says how many there are.
pub const EXPORT: &str = "application/x-ndjson";

/// The stream that a server sends for an operation, to a client that accepts that content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The log, as it grows.
    Events,
    /// The whole log, as it can be imported.
    Export,
    /// The rows of live screens, as they change.
    View,
}

impl Stream {
    /// The kind of content that is accepted.
    pub fn content_type(self) -> &'static str {
        match self {
            Stream::Events | Stream::View => "text/event-stream",
            Stream::Export => EXPORT,
        }
    }
}

/// What a server keeps ready, and sends without asking the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The board, as one document.
    Board,
}

/// A row.
pub struct Operation {
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
    /// The commands that ask it, without `adj`.
    pub commands: &'static [&'static str],
    pub tools: Vec<Tool>,
    pub kept: Option<Kept>,
    pub stream: Option<Stream>,
    /// What each event of its stream holds, where that is a type of ours.
    pub streamed: Option<SchemaOf>,
    /// `wait` in its query holds the answer back until there is something to say.
    pub waits: bool,
    /// It takes much memory while its answer is made, so a server makes one of them at a time.
    pub heavy: bool,
    /// It is asked of the kernel, and nothing else of it takes long.
    pub only_asks: bool,
    /// The type of its handler, by which code in this program finds it.
    pub(super) handler: TypeId,
    take: Box<Take>,
    told_as: fn(Problem) -> Problem,
}

/// The handler, with its types made into JSON; the names are those in the path.
type Take = dyn Fn(&Call, &[&str]) -> Result<Taken, Problem> + Send + Sync;

/// A row whose handler answers by itself.
pub fn route<H, P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: H,
    about: &'static str,
) -> Operation
where
    H: Fn(&Call, P, Q, B) -> Result<A, Problem> + Send + Sync + 'static,
    P: PathNames,
    Q: FromRequest,
    B: FromRequest,
    A: IntoAnswer,
{
    row::<H, P, Q, B, A>(method, path, who, about, move |call, names| {
        let answer = handler(call, P::read(names)?, call.query()?, call.body()?)?;
        Ok(Taken::Answered(document(&answer)))
    })
}

/// A row that answers 201: there is something now that was not there before.
pub fn creates<H, P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: H,
    about: &'static str,
) -> Operation
where
    H: Fn(&Call, P, Q, B) -> Result<A, Problem> + Send + Sync + 'static,
    P: PathNames,
    Q: FromRequest,
    B: FromRequest,
    A: IntoAnswer,
{
    Operation { status: 201, ..route(method, path, who, handler, about) }
}

/// A row that asks the kernel for one thing, and answers when that is on disk.
pub fn asks<H, P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: H,
    about: &'static str,
) -> Operation
where
    H: Fn(&Call, P, Q, B) -> Result<Asks<A>, Problem> + Send + Sync + 'static,
    P: PathNames,
    Q: FromRequest,
    B: FromRequest,
    A: IntoAnswer,
{
    let row = row::<H, P, Q, B, A>(method, path, who, about, move |call, names| {
        let Asks { ask, then } = handler(call, P::read(names)?, call.query()?, call.body()?)?;
        Ok(Taken::Asks(Asks::new(ask, move |call, reply| Ok(document(&then(call, reply)?)))))
    });
    Operation { only_asks: true, ..row }
}

/// The same, where there is something then that was not there before.
pub fn makes<H, P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    handler: H,
    about: &'static str,
) -> Operation
where
    H: Fn(&Call, P, Q, B) -> Result<Asks<A>, Problem> + Send + Sync + 'static,
    P: PathNames,
    Q: FromRequest,
    B: FromRequest,
    A: IntoAnswer,
{
    Operation { status: 201, ..asks(method, path, who, handler, about) }
}

fn row<H, P, Q, B, A>(
    method: Method,
    path: &'static str,
    who: Who,
    about: &'static str,
    take: impl Fn(&Call, &[&str]) -> Result<Taken, Problem> + Send + Sync + 'static,
) -> Operation
where
    H: 'static,
    P: PathNames,
    Q: FromRequest,
    B: FromRequest,
    A: IntoAnswer,
{
    assert_eq!(P::COUNT, names(path).count(), "{path} has as many names as its handler takes");
    Operation {
        method,
        path,
        who,
        about,
        status: 200,
        query: |schemas| schemas.subschema_for::<Q>(),
        body: |schemas| schemas.subschema_for::<B>(),
        answer: |schemas| schemas.subschema_for::<A>(),
        commands: &[],
        tools: Vec::new(),
        kept: None,
        stream: None,
        streamed: None,
        waits: false,
        heavy: false,
        only_asks: false,
        handler: TypeId::of::<H>(),
        take: Box::new(take),
        told_as: |problem| problem,
    }
}

impl Operation {
    /// The commands that ask it. The sentence of each is its help.
    pub(super) fn commands(self, commands: &'static [&'static str]) -> Operation {
        Operation { commands, ..self }
    }

    /// A tool that asks it.
    pub(super) fn tool(mut self, tool: Tool) -> Operation {
        self.tools.push(tool);
        self
    }

    /// Whatever is refused here carries what this operation's clients look for.
    pub(super) fn told_as(self, told_as: fn(Problem) -> Problem) -> Operation {
        Operation { told_as, ..self }
    }

    pub(super) fn kept(self, kept: Kept) -> Operation {
        Operation { kept: Some(kept), ..self }
    }

    pub(super) fn streams(self, stream: Stream) -> Operation {
        Operation { stream: Some(stream), ..self }
    }

    /// The same, where its events hold this.
    pub(super) fn streams_rows<E: IntoAnswer>(self, stream: Stream) -> Operation {
        let streamed: SchemaOf = |schemas| schemas.subschema_for::<E>();
        Operation { stream: Some(stream), streamed: Some(streamed), ..self }
    }

    pub(super) fn waits(self) -> Operation {
        Operation { waits: true, ..self }
    }

    pub(super) fn heavy(self) -> Operation {
        Operation { heavy: true, ..self }
    }

    /// A problem as this operation's clients are told it.
    pub fn told(&self, problem: Problem) -> Problem {
        (self.told_as)(problem)
    }

    /// What the handler makes of a request.
    pub(super) fn take(&self, call: &Call, names: &[&str]) -> Result<Taken, Problem> {
        (self.take)(call, names).map_err(self.told_as)
    }

    /// What its path calls the names in it.
    pub fn path_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        names(self.path)
    }

    /// The names that a path has where this one has braces; `None` where it is another.
    pub(super) fn names<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
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

    /// Its path with these names in place of the braces.
    pub fn path_with<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> String {
        let mut names = names.into_iter();
        let parts = self.path.split('/').map(|part| match part.starts_with('{') {
            true => names.next().unwrap_or_default(),
            false => part,
        });
        parts.collect::<Vec<_>>().join("/")
    }
}

fn names(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What a name in a path is, for people and models who have to give it.
pub fn about_name(name: &str) -> &'static str {
    match name {
        "task" => "The task's id, such as t-1.",
        "on" => "The id of the task that was waited for.",
        "draft" => "The id of a draft, such as d1.",
        "approval" => "The id of an approval, such as q7.",
        "request" => "The id of a question or of a request to the architect, such as r7.",
        "spec" => "The spec's id.",
        "worker" => "The worker's name.",
        "run" => "The run's id, such as t-1.1.",
        "agent" => "The agent's name.",
        "channel" => "The channel's name.",
        "effect" => "The id of the effect that saved the work.",
        "prompt" => "The prompt's name.",
        "machine" => "The machine's name.",
        "token" => "The token's id.",
        _ => "",
    }
}

/// What is answered is made of text, numbers and members with names: there is nothing that JSON could not say.
pub fn document(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// What a request brings in its query or body.
pub trait FromRequest: DeserializeOwned + JsonSchema + 'static {}

impl<T: DeserializeOwned + JsonSchema + 'static> FromRequest for T {}

/// What is answered.
pub trait IntoAnswer: Serialize + JsonSchema + 'static {}

impl<T: Serialize + JsonSchema + 'static> IntoAnswer for T {}

/// The names in a path, as a handler takes them. One that cannot be a name is bad input, not something that is missing.
pub trait PathNames: Sized + 'static {
    const COUNT: usize;

    fn read(names: &[&str]) -> Result<Self, Problem>;

    /// The other way round.
    fn written(&self) -> Vec<&str>;
}

impl PathNames for () {
    const COUNT: usize = 0;

    fn read(_: &[&str]) -> Result<(), Problem> {
        Ok(())
    }

    fn written(&self) -> Vec<&str> {
        Vec::new()
    }
}

macro_rules! one_name {
    ($($name:ty),*) => {$(
        impl PathNames for $name {
            const COUNT: usize = 1;

            fn read(names: &[&str]) -> Result<$name, Problem> {
                let name = names.first().copied().unwrap_or_default();
                name.parse().map_err(|error: BadName| Problem::bad(error.to_string()))
            }

            fn written(&self) -> Vec<&str> {
                vec![self.as_str()]
            }
        }
    )*};
}

one_name!(AgentName, ChannelName, TaskId, WorkerName, RunId, ApprovalId, RequestId, SpecId, EffectId);

/// One of few words. The code that looks it up reports a word that does not exist.
impl PathNames for String {
    const COUNT: usize = 1;

    fn read(names: &[&str]) -> Result<String, Problem> {
        Ok(names.first().copied().unwrap_or_default().to_owned())
    }

    fn written(&self) -> Vec<&str> {
        vec![self]
    }
}

impl<First: PathNames, Second: PathNames> PathNames for (First, Second) {
    const COUNT: usize = 2;

    fn read(names: &[&str]) -> Result<(First, Second), Problem> {
        Ok((First::read(names)?, Second::read(names.get(1..).unwrap_or_default())?))
    }

    fn written(&self) -> Vec<&str> {
        [self.0.written(), self.1.written()].concat()
    }
}
