//! What a name on the command line means. People think of a task or of the worker that has it; either is taken
//! wherever one of them leads to the other.

use super::project::Project;
use super::text::{cell, visible};
use super::{Exit, Failure};
use crate::api::BROKEN_TICKET;
use serde_json::Value;

/// A name may be that of one kind of thing or of another; the first kind that knows it answers.
pub fn first_found<T>(
    name: &str,
    kinds: &str,
    paths: &[&str],
    ask: impl Fn(&str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    for path in paths {
        match ask(path) {
            // A ticket with a fault is what was meant.
            Err(failure) if failure.exit() == Exit::NotFound && failure.code() != Some(BROKEN_TICKET) => {}
            answered => return answered,
        }
    }
    Err(Failure::not_found(format!("there is no {kinds} `{}`", visible(name)))
        .hint("`adj task ls` lists the tasks, `adj ps` the workers"))
}

/// The task of that name, or the task that the worker of that name has.
pub fn task(project: &Project, name: &str) -> Result<Value, Failure> {
    let found = first_found(name, "task or worker", &["tasks", "workers"], |kind| {
        project.get(&format!("/{kind}/{name}"), &[])
    })?;
    // Only a task has a title.
    if found.get("title").is_some() {
        return Ok(found);
    }
    // A worker leaves a task that is in REVIEW; what it handed over is still what is meant.
    let handed_over = found["in_review"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (found["task"].as_str(), handed_over) {
        (Some(task), _) => project.get(&format!("/tasks/{task}"), &[]),
        (None, [task]) => project.get(&format!("/tasks/{}", cell(task)), &[]),
        (None, []) => {
            let message =
                format!("worker `{}` has no task, and none of its tasks is in REVIEW", visible(name));
            Err(Failure::new(Exit::Refused, message).hint("name the task, as `adj task ls` lists it"))
        }
        (None, tasks) => {
            let ids: Vec<String> = tasks.iter().map(cell).collect();
            let message = format!("worker `{}` has handed over {}", visible(name), ids.join(", "));
            Err(Failure::new(Exit::Refused, message).hint("name the task"))
        }
    }
}

/// The worker of that name, or the worker that has the task of that name, also where it is stuck with it.
pub fn worker(project: &Project, name: &str) -> Result<Value, Failure> {
    let found = first_found(name, "worker or task", &["workers", "tasks"], |kind| {
        project.get(&format!("/{kind}/{name}"), &[])
    })?;
    if found.get("title").is_none() {
        return Ok(found);
    }
    let workers = project.get_all("/workers", &[])?;
    workers.into_iter().find(|worker| worker["task"] == found["id"]).ok_or_else(|| {
        let message = format!("no worker has task `{}`, which is {}", visible(name), shown_status(&found));
        Failure::new(Exit::Refused, message)
            .hint(format!("`adj why {}` says what it waits for", visible(name)))
    })
}

fn shown_status(task: &Value) -> String {
    visible(task["status"].as_str().unwrap_or_default())
}
