//! What a tool does with what it is given. A plain one is a request of its operation, and nothing beside it; the others
//! have code of their own here, by the word in their row.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::backend::Backend;
use super::{architect, channels, work};
use api::offered_tool::{OfferedTool, own_task};
use api::operation::{FromRequest, IntoAnswer, Operation, PathNames, document};
use api::tool::OwnCode;
use api::types::approval;
use api::types::caller::Caller;
use api::types::request::NewAnswer;
use api::types::task::Review;
use api::types::{Nothing, tool as input};
use api::{Call, Exit, Failure, Outgoing, Problem, board, fleet, requests, routes};
use machines::names::TaskId;

pub(super) type Input = Map<String, Value>;
pub(super) type Answer = Result<ToolAnswer, Failure>;

/// Where a tool is called: who calls, and the way to the project.
pub struct ToolContext<'a> {
    pub backend: &'a dyn Backend,
    pub caller: &'a Caller,
    /// Tells the client that somebody is waited for. False: it does not want the answer any more.
    pub still_wanted: &'a dyn Fn(&str) -> bool,
}

/// What a client is told.
pub struct ToolAnswer {
    pub structured: Value,
    /// In words, where the answer itself is not best read as it is.
    pub text: Option<String>,
}

impl ToolAnswer {
    /// An answer that is best read as it is.
    pub(super) fn of(answer: &impl Serialize) -> ToolAnswer {
        ToolAnswer { structured: document(answer), text: None }
    }

    pub(super) fn told(answer: &impl Serialize, text: impl Into<String>) -> ToolAnswer {
        ToolAnswer { structured: document(answer), text: Some(text.into()) }
    }
}

/// Who calls, as the project says.
pub fn caller(backend: &dyn Backend) -> Result<Caller, Failure> {
    let operation = routes::of_handler(&api::caller::show);
    asked(backend, operation, &(), &Nothing {}, &Nothing {})
}

/// Calls a tool. It may block.
pub fn call(context: &ToolContext, offered: OfferedTool, input: Input) -> Answer {
    match offered.tool.own_code {
        None => {
            let structured = context.backend.ask(offered.request(context.caller, input)?)?;
            Ok(ToolAnswer { structured, text: None })
        }
        Some(OwnCode::Answer) => answer(context, read(input)?),
        Some(OwnCode::Approve) => decide(context, read(input)?, true),
        Some(OwnCode::Ask) => work::ask(context, read(input)?),
        Some(OwnCode::CompleteTurn) => channels::complete(context, read(input)?),
        Some(OwnCode::DecideReview) => decide_review(context, read(input)?),
        Some(OwnCode::Deny) => decide(context, read(input)?, false),
        Some(OwnCode::Escalate) => architect::escalate(context, read(input)?),
        Some(OwnCode::ReadChannel) => channels::read(context, read(input)?),
        Some(OwnCode::ReportProgress) => work::report_progress(context, read(input)?),
        Some(OwnCode::RequestApproval) => work::request_approval(context, read(input)?),
        Some(OwnCode::SpecFeedback) => architect::spec_feedback(context, read(input)?),
        Some(OwnCode::SubmitForReview) => work::submit_for_review(context, read(input)?),
        Some(OwnCode::SubmitPlan) => work::submit_plan(context, read(input)?),
        Some(OwnCode::SubmitStories) => architect::submit_stories(context, read(input)?),
        Some(OwnCode::TaskDone) => work::claim(context, read(input)?),
        Some(OwnCode::WaitInTurn) => channels::wait(context, read(input)?),
        Some(OwnCode::Why) => why(context, read(input)?),
    }
}

/// The arguments as what a tool takes. What is wrong with them is said in serde's words, which name field and value.
fn read<T: DeserializeOwned>(input: Input) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(input))
        .map_err(|error| bad(format!("the arguments are not right: {error}")))
}

pub(super) fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// Where nobody holds an answer back until there is one, it is asked for so often.
const LOOK: Duration = Duration::from_secs(1);
/// An answer that took at least so long was held back for what is waited for.
const HELD_BACK: Duration = Duration::from_secs(5);

impl ToolContext<'_> {
    /// Asks an operation, which is named by its handler: its types say what it takes and gives.
    pub(super) fn call<H, P, Q, B, A>(&self, handler: H, names: &P, query: &Q, body: &B) -> Result<A, Failure>
    where
        H: Fn(&Call, P, Q, B) -> Result<A, Problem> + 'static,
        P: PathNames,
        Q: FromRequest + Serialize,
        B: FromRequest + Serialize,
        A: IntoAnswer + DeserializeOwned,
    {
        asked(self.backend, routes::of_handler(&handler), names, query, body)
    }

    /// The same of an operation that asks the kernel for one thing.
    pub(super) fn submit<H, P, Q, B, A>(
        &self,
        handler: H,
        names: &P,
        query: &Q,
        body: &B,
    ) -> Result<A, Failure>
    where
        H: Fn(&Call, P, Q, B) -> Result<api::asks::Asks<A>, Problem> + 'static,
        P: PathNames,
        Q: FromRequest + Serialize,
        B: FromRequest + Serialize,
        A: IntoAnswer + DeserializeOwned,
    {
        asked(self.backend, routes::of_handler(&handler), names, query, body)
    }

    /// Asks for something again and again until it is there, or for as long as a question waits for a person.
    pub(super) fn awaited<A, T>(
        &self,
        what: &str,
        ask: impl Fn() -> Result<A, Failure>,
        there: impl Fn(A) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let deadline = Instant::now() + Duration::from_secs(self.caller.question_seconds.into());
        loop {
            let begun = Instant::now();
            if let Some(there) = there(ask()?) {
                return Ok(Some(there));
            }
            if Instant::now() >= deadline || !(self.still_wanted)(what) {
                return Ok(None);
            }
            if begun.elapsed() < HELD_BACK {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// The task that is meant: the one that is named, or the caller's own.
    pub(super) fn task(&self, named: Option<TaskId>) -> Result<TaskId, Failure> {
        named.map_or_else(|| named_of("task", &own_task(self.caller)?), Ok)
    }
}

fn asked<A: DeserializeOwned>(
    backend: &dyn Backend,
    operation: Option<&Operation>,
    names: &impl PathNames,
    query: &impl Serialize,
    body: &impl Serialize,
) -> Result<A, Failure> {
    let bug = |what: String| Failure::new(Exit::Failed, format!("{what}: this is a bug"));
    let operation = operation.ok_or_else(|| bug("a tool asks what no operation answers".to_owned()))?;
    let query = serde_urlencoded::to_string(query).map_err(|error| bug(error.to_string()))?;
    let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let body = match operation.method {
        api::Method::Get => Value::Null,
        _ => document(body),
    };
    let path = operation.path_with(names.written());
    let answer = backend.ask(Outgoing { method: operation.method, path, query, body })?;
    serde_json::from_value(answer).map_err(|error| {
        Failure::new(Exit::Unreachable, format!("cannot read the answer of the project: {error}"))
    })
}

/// A name that the project gave.
pub(super) fn named_of<N>(what: &str, name: &str) -> Result<N, Failure>
where
    N: std::str::FromStr<Err = machines::names::BadName>,
{
    name.parse().map_err(|error| bad(format!("`{what}` is not right: {error}")))
}

/// The architect answers what it has in hand; a person says which question is meant.
fn answer(context: &ToolContext, given: input::AnswerInWords) -> Answer {
    if context.caller.is_architect() {
        return architect::answer(context, given.answer);
    }
    let question = given.question.ok_or_else(|| bad("`question` is missing: the id of a question"))?;
    let answer = NewAnswer { text: Some(given.answer), abandon: false };
    Ok(ToolAnswer::of(&context.call(requests::answer, &question, &Nothing {}, &answer)?))
}

/// The architect's own review, or one that a room is for.
fn decide_review(context: &ToolContext, said: input::ChannelReview) -> Answer {
    match context.caller.is_architect() {
        true => architect::decide(context, said),
        false => channels::decide(context, said),
    }
}

fn decide(context: &ToolContext, said: input::Decision, approve: bool) -> Answer {
    let note = said.note.unwrap_or_default();
    match (said.approval, said.task) {
        (Some(approval), None) => {
            let decision = approval::Decide { approve, note, ..approval::Decide::default() };
            Ok(ToolAnswer::of(&context.call(board::decide, &approval, &Nothing {}, &decision)?))
        }
        (None, Some(task)) => {
            let review = Review { approve, tip: said.tip, note };
            Ok(ToolAnswer::of(&context.call(board::review, &task, &Nothing {}, &review)?))
        }
        _ => Err(bad("give either `approval`, the id of a request, or `task`, the id of a task in REVIEW")
            .hint("`waiting` lists what waits for a person")),
    }
}

fn why(context: &ToolContext, about: input::Why) -> Answer {
    let own = || context.caller.task.as_deref().map(|task| named_of("task", task)).transpose();
    match about.task.map_or_else(own, |task| Ok(Some(task)))? {
        Some(task) => Ok(ToolAnswer::of(&context.call(board::why, &task, &Nothing {}, &Nothing {})?)),
        None => Ok(ToolAnswer::of(&context.call(fleet::why_all, &(), &Nothing {}, &Nothing {})?)),
    }
}
