//! What each tool does: its input becomes a request of the API, and the answer what the client is told.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::backend::{Backend, BackendRequest};
use super::inputs;
use api::Method::{self, Get, Post};
use api::types::approval::Approval;
use api::types::caller::Caller;
use api::types::request::{Claim, NewRequest, Plan, Request, Wish, Wished};
use api::{Exit, Failure};

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

impl From<Value> for ToolAnswer {
    fn from(structured: Value) -> ToolAnswer {
        ToolAnswer { structured, text: None }
    }
}

impl ToolContext<'_> {
    pub(super) fn get(&self, path: &str, query: Vec<(&'static str, String)>) -> Result<Value, Failure> {
        self.backend.ask(BackendRequest { method: Get, path: path.to_owned(), query, body: Value::Null })
    }

    pub(super) fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, Failure> {
        self.backend.ask(BackendRequest { method, path: path.to_owned(), query: Vec::new(), body })
    }

    /// The task that is meant: the one that is named, or the caller's own.
    fn task(&self, named: Option<String>) -> Result<String, Failure> {
        named.or_else(|| self.caller.task.clone()).ok_or_else(|| {
            bad("`task` is missing: the id of a task").hint("`list_tasks` lists the tasks with their ids")
        })
    }
}

/// Where nobody holds an answer back until there is one, it is asked for so often.
const LOOK: Duration = Duration::from_secs(1);
/// An answer that took at least so long was held back for what is waited for.
const HELD_BACK: Duration = Duration::from_secs(5);

impl ToolContext<'_> {
    /// Asks for something again and again until it is there, or for as long as a question waits for a person.
    fn await_at(
        &self,
        path: &str,
        what: &str,
        is_there: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, Failure> {
        let deadline = Instant::now() + Duration::from_secs(self.caller.question_seconds.into());
        loop {
            let begun = Instant::now();
            let answer = self.get(path, vec![("wait", "true".to_owned())])?;
            if is_there(&answer) {
                return Ok(Some(answer));
            }
            if Instant::now() >= deadline || !(self.still_wanted)(what) {
                return Ok(None);
            }
            if begun.elapsed() < HELD_BACK {
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// An answer of the project as what it should be.
pub(super) fn understood<T: DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| {
        Failure::new(Exit::Unreachable, format!("cannot read the answer of the project: {error}"))
    })
}

pub(super) fn told(structured: Value, text: impl Into<String>) -> ToolAnswer {
    ToolAnswer { structured, text: Some(text.into()) }
}

pub fn submit_plan(context: &ToolContext, input: Input) -> Answer {
    let plan: Plan = read(input)?;
    let task = context.send(Post, "/own/plan", json!(plan))?;
    Ok(told(json!({ "workPlan": task["workPlan"] }), "The plan is taken. Go on with its first step."))
}

/// The question is in the log before anybody waits: whatever becomes of this call, the answer is not lost.
pub fn ask(context: &ToolContext, input: Input) -> Answer {
    let inputs::Ask { question, run } = read(input)?;
    let new = NewRequest { text: question, run, ..NewRequest::default() };
    let asked: Request = understood(context.send(Post, "/requests", json!(new))?)?;
    let path = format!("/requests/{}", asked.id);
    let waits = format!("{} waits for an answer", asked.id);
    let answered = context.await_at(&path, &waits, |answer| !answer["answer"].is_null())?;
    let Some(answered) = answered else {
        let text = match context.caller.outside {
            true => {
                format!("Nobody has answered {} yet. The answer will stand at `/api/v1{path}`.", asked.id)
            }
            false => format!(
                "Nobody has answered {} yet. The answer will reach you in your next step: end your turn now, without saying \
                 that you are done.",
                asked.id
            ),
        };
        return Ok(told(json!({ "question": asked.id, "answer": null }), text));
    };
    // Where this does not get through, the next step tells it once more.
    let _ = context.send(Post, &format!("{path}/receipt"), json!({}));
    let answered: Request = understood(answered)?;
    let text = answered.answer.as_ref().map(|answer| answer.text.clone()).unwrap_or_default();
    Ok(told(
        json!({ "question": answered.id, "answer": text, "by": answered.answer.map(|given| given.by) }),
        text,
    ))
}

pub fn answer(context: &ToolContext, input: Input) -> Answer {
    let inputs::Answer { question, answer } = read(input)?;
    let question = question.ok_or_else(|| bad("`question` is missing: the id of a question"))?;
    let path = format!("/requests/{}/answer", named("question", &question)?);
    Ok(context.send(Post, &path, json!({ "text": answer }))?.into())
}

pub fn report_progress(context: &ToolContext, input: Input) -> Answer {
    let inputs::Progress { text, task } = read(input)?;
    let task = named("task", &context.task(task)?)?;
    context.send(Post, &format!("/tasks/{task}/comments"), json!({ "text": text }))?;
    Ok(told(json!({ "task": task }), "It is kept. Go on."))
}

pub fn request_approval(context: &ToolContext, input: Input) -> Answer {
    let wish: Wish = read(input)?;
    let wished: Wished = understood(context.send(Post, "/own/approvals", json!(wish))?)?;
    let Some(id) = wished.approval else {
        return Ok(told(
            json!({ "approved": true }),
            "Approved: a person has allowed exactly this for the whole task.",
        ));
    };
    let path = format!("/approvals/{id}");
    let decided = context
        .await_at(&path, &format!("{id} waits for a person"), |answer| !answer["decided"].is_null())?;
    let Some(decided) = decided else {
        let text = match context.caller.outside {
            true => format!(
                "Nobody has decided {id} yet. The decision will stand at `/api/v1{path}`; your run waits for it."
            ),
            false => format!(
                "Nobody has decided {id} yet. The decision will reach you in your next step: end your turn now."
            ),
        };
        return Ok(told(json!({ "approval": id, "approved": null }), text));
    };
    let decided = understood::<Approval>(decided)?.decided;
    let (decision, note) = decided.map(|decided| (decided.decision, decided.note)).unwrap_or_default();
    let approved = decision.contains("approved");
    let note = if note.trim().is_empty() { String::new() } else { format!(": {note}") };
    let text = match approved {
        true => format!("Approved{note}"),
        false => format!("Not approved ({decision}){note}. Do not do it; find another way, or ask."),
    };
    Ok(told(json!({ "approval": id, "approved": approved, "decision": decision }), text))
}

pub fn submit_for_review(context: &ToolContext, input: Input) -> Answer {
    let inputs::ForReview { summary, run } = read(input)?;
    claimed(context, &Claim { summary: Some(summary), run })
}

pub fn task_done(context: &ToolContext, input: Input) -> Answer {
    claimed(context, &read(input)?)
}

fn claimed(context: &ToolContext, claim: &Claim) -> Answer {
    let task = context.send(Post, "/own/claim", json!(claim))?;
    let text = match context.caller.outside {
        true => format!(
            "Noted: your run is complete. Hand the work in by moving the task to REVIEW, with deliverable and checklist, at \
             `/api/v1/tasks/{}/transitions`.",
            task["id"].as_str().unwrap_or_default()
        ),
        false => "Noted. End your turn now: then the work is checked and its tests are run, and what fails comes back to you."
            .to_owned(),
    };
    Ok(told(json!({ "task": task["id"], "status": task["status"] }), text))
}

/// The arguments as what a tool takes. What is wrong with them is said in serde's words, which name field and value.
pub(super) fn read<T: DeserializeOwned>(input: Input) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(input))
        .map_err(|error| bad(format!("the arguments are not right: {error}")))
}

pub(super) fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// A name as a part of a path: what would lead elsewhere is no name.
pub(super) fn named(what: &str, name: &str) -> Result<String, Failure> {
    match machines::names::check(name) {
        Ok(()) => Ok(name.to_owned()),
        Err(error) => Err(bad(format!("`{what}` is not right: {error}"))),
    }
}

pub fn list_tasks(context: &ToolContext, input: Input) -> Answer {
    let inputs::ListTasks { status, assignee, after, limit } = read(input)?;
    let mut query = Vec::new();
    query.extend(status.map(|status| ("status", status.join(","))));
    query.extend(assignee.map(|assignee| ("assignee", assignee)));
    query.extend(after.map(|after| ("after", after)));
    query.extend(limit.map(|limit| ("limit", limit.to_string())));
    Ok(context.get("/tasks", query)?.into())
}

pub fn show_task(context: &ToolContext, input: Input) -> Answer {
    let inputs::OneTask { task } = read(input)?;
    let task = named("task", &context.task(task)?)?;
    Ok(context.get(&format!("/tasks/{task}"), Vec::new())?.into())
}

pub fn show_diff(context: &ToolContext, input: Input) -> Answer {
    let inputs::ShowDiff { task, path } = read(input)?;
    let task = named("task", &context.task(task)?)?;
    let mut query = vec![("maxBytes", DIFF_BYTES_MAX.to_string())];
    query.extend(path.map(|path| ("path", path)));
    Ok(context.get(&format!("/tasks/{task}/diff"), query)?.into())
}

/// The longest patch that a model is shown at once.
const DIFF_BYTES_MAX: usize = 256 << 10;

pub fn create_task(context: &ToolContext, input: Input) -> Answer {
    Ok(context.send(Post, "/tasks", Value::Object(input))?.into())
}

/// All but the task is the body of the route, which says itself what is wrong with it.
pub fn move_task(context: &ToolContext, mut input: Input) -> Answer {
    let task = input.remove("task");
    let task =
        task.as_ref().and_then(Value::as_str).ok_or_else(|| bad("`task` is missing: the id of a task"))?;
    let path = format!("/tasks/{}/transitions", named("task", task)?);
    Ok(context.send(Post, &path, Value::Object(input))?.into())
}

pub fn approve(context: &ToolContext, input: Input) -> Answer {
    decide(context, input, true)
}

pub fn deny(context: &ToolContext, input: Input) -> Answer {
    decide(context, input, false)
}

fn decide(context: &ToolContext, input: Input, approve: bool) -> Answer {
    let inputs::Decide { approval, task, tip, note } = read(input)?;
    let note = note.unwrap_or_default();
    let (path, body) = match (approval, task) {
        (Some(approval), None) => (
            format!("/approvals/{}/decision", named("approval", &approval)?),
            json!({ "approve": approve, "note": note }),
        ),
        (None, Some(task)) => (
            format!("/tasks/{}/review", named("task", &task)?),
            json!({ "approve": approve, "tip": tip, "note": note }),
        ),
        _ => {
            return Err(bad(
                "give either `approval`, the id of a request, or `task`, the id of a task in REVIEW",
            )
            .hint("`waiting` lists what waits for a person"));
        }
    };
    Ok(context.send(Post, &path, body)?.into())
}

pub fn why(context: &ToolContext, input: Input) -> Answer {
    let inputs::Why { task } = read(input)?;
    let path = match task.or_else(|| context.caller.task.clone()) {
        Some(task) => format!("/tasks/{}/why", named("task", &task)?),
        None => "/why".to_owned(),
    };
    Ok(context.get(&path, Vec::new())?.into())
}

pub fn waiting(context: &ToolContext, input: Input) -> Answer {
    read::<api::types::Nothing>(input)?;
    Ok(context.get("/waiting", Vec::new())?.into())
}

pub fn cost(context: &ToolContext, input: Input) -> Answer {
    let inputs::Cost { by } = read(input)?;
    Ok(context.get("/cost", by.map(|by| ("by", by)).into_iter().collect())?.into())
}
