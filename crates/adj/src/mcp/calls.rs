//! What each tool does: its input becomes a request of the API, and the answer what the client is told.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::door::{Asked, Door};
use super::inputs;
use crate::api::Method::{self, Get, Post};
use crate::api::types::caller::Caller;
use crate::cli::{Exit, Failure};

type Input = Map<String, Value>;
type Answer = Result<Told, Failure>;

/// Where a tool is called: who calls, and the way to the project.
pub struct Desk<'a> {
    pub door: &'a dyn Door,
    pub caller: &'a Caller,
}

/// What a client is told.
pub struct Told {
    pub structured: Value,
    /// In words, where the answer itself is not best read as it is.
    pub text: Option<String>,
}

impl From<Value> for Told {
    fn from(structured: Value) -> Told {
        Told { structured, text: None }
    }
}

impl Desk<'_> {
    fn get(&self, path: &str, query: Vec<(&'static str, String)>) -> Result<Value, Failure> {
        self.door.ask(Asked { method: Get, path: path.to_owned(), query, body: Value::Null })
    }

    fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, Failure> {
        self.door.ask(Asked { method, path: path.to_owned(), query: Vec::new(), body })
    }

    /// The task that is meant: the one that is named, or the caller's own.
    fn task(&self, named: Option<String>) -> Result<String, Failure> {
        named.or_else(|| self.caller.task.clone()).ok_or_else(|| {
            bad("`task` is missing: the id of a task").hint("`list_tasks` lists the tasks with their ids")
        })
    }
}

/// The arguments as what a tool takes. What is wrong with them is said in serde's words, which name field and value.
fn read<T: DeserializeOwned>(input: Input) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(input))
        .map_err(|error| bad(format!("the arguments are not right: {error}")))
}

fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// A name as a part of a path: what would lead elsewhere is no name.
fn named(what: &str, name: &str) -> Result<String, Failure> {
    match machines::names::check(name) {
        Ok(()) => Ok(name.to_owned()),
        Err(error) => Err(bad(format!("`{what}` is not right: {error}"))),
    }
}

pub fn list_tasks(desk: &Desk, input: Input) -> Answer {
    let inputs::ListTasks { status, assignee, after, limit } = read(input)?;
    let mut query = Vec::new();
    query.extend(status.map(|status| ("status", status.join(","))));
    query.extend(assignee.map(|assignee| ("assignee", assignee)));
    query.extend(after.map(|after| ("after", after)));
    query.extend(limit.map(|limit| ("limit", limit.to_string())));
    Ok(desk.get("/tasks", query)?.into())
}

pub fn show_task(desk: &Desk, input: Input) -> Answer {
    let inputs::OneTask { task } = read(input)?;
    let task = named("task", &desk.task(task)?)?;
    Ok(desk.get(&format!("/tasks/{task}"), Vec::new())?.into())
}

pub fn create_task(desk: &Desk, input: Input) -> Answer {
    Ok(desk.send(Post, "/tasks", Value::Object(input))?.into())
}

/// All but the task is the body of the route, which says itself what is wrong with it.
pub fn move_task(desk: &Desk, mut input: Input) -> Answer {
    let task = input.remove("task");
    let task = task.as_ref().and_then(Value::as_str).ok_or_else(|| bad("`task` is missing: the id of a task"))?;
    let path = format!("/tasks/{}/transitions", named("task", task)?);
    Ok(desk.send(Post, &path, Value::Object(input))?.into())
}

pub fn approve(desk: &Desk, input: Input) -> Answer {
    decide(desk, input, true)
}

pub fn deny(desk: &Desk, input: Input) -> Answer {
    decide(desk, input, false)
}

fn decide(desk: &Desk, input: Input, approve: bool) -> Answer {
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
            return Err(bad("give either `approval`, the id of a request, or `task`, the id of a task in REVIEW")
                .hint("`waiting` lists what waits for a person"));
        }
    };
    Ok(desk.send(Post, &path, body)?.into())
}

pub fn why(desk: &Desk, input: Input) -> Answer {
    let inputs::Why { task } = read(input)?;
    let path = match task.or_else(|| desk.caller.task.clone()) {
        Some(task) => format!("/tasks/{}/why", named("task", &task)?),
        None => "/why".to_owned(),
    };
    Ok(desk.get(&path, Vec::new())?.into())
}

pub fn waiting(desk: &Desk, input: Input) -> Answer {
    read::<crate::api::types::Nothing>(input)?;
    Ok(desk.get("/waiting", Vec::new())?.into())
}

pub fn cost(desk: &Desk, input: Input) -> Answer {
    let inputs::Cost { by } = read(input)?;
    Ok(desk.get("/cost", by.map(|by| ("by", by)).into_iter().collect())?.into())
}
