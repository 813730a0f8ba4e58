//! What a name on the command line means. People think of a task or of the worker that has it; either is taken
//! wherever one of them leads to the other.

use super::project::Project;
use super::text::visible;
use super::{Exit, Failure};
use api::BROKEN_TICKET;
use api::types::Nothing;
use api::types::task::Task;
use api::types::worker::Worker;

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

/// What a name was found to mean.
enum Found {
    Task(Box<Task>),
    Worker(Box<Worker>),
}

fn find(project: &Project, name: &str, kinds: &str, paths: &[&str]) -> Result<Found, Failure> {
    first_found(name, kinds, paths, |kind| {
        let path = format!("/{kind}/{name}");
        match kind {
            "tasks" => project.get(&path).map(Found::Task),
            _ => project.get(&path).map(Found::Worker),
        }
    })
}

/// The task of that name, or the task that the worker of that name has.
pub fn task(project: &Project, name: &str) -> Result<Task, Failure> {
    let worker = match find(project, name, "task or worker", &["tasks", "workers"])? {
        Found::Task(task) => return Ok(*task),
        Found::Worker(worker) => worker,
    };
    // A worker leaves a task that is in REVIEW; what it handed over is still what is meant.
    let handed_over = worker.whole.as_ref().map(|whole| &whole.in_review[..]).unwrap_or_default();
    match (&worker.line.task, handed_over) {
        (Some(task), _) | (None, [task]) => project.get(&format!("/tasks/{task}")),
        (None, []) => {
            let message =
                format!("worker `{}` has no task, and none of its tasks is in REVIEW", visible(name));
            Err(Failure::new(Exit::Refused, message).hint("name the task, as `adj task ls` lists it"))
        }
        (None, tasks) => {
            let message = format!("worker `{}` has handed over {}", visible(name), tasks.join(", "));
            Err(Failure::new(Exit::Refused, message).hint("name the task"))
        }
    }
}

/// The worker of that name, or the worker that has the task of that name, also where it is stuck with it.
pub fn worker(project: &Project, name: &str) -> Result<Worker, Failure> {
    let task = match find(project, name, "worker or task", &["workers", "tasks"])? {
        Found::Worker(worker) => return Ok(*worker),
        Found::Task(task) => task.line,
    };
    let workers: Vec<Worker> = project.get_all("/workers", &Nothing {})?;
    workers.into_iter().find(|worker| worker.line.task.as_ref() == Some(&task.id)).ok_or_else(|| {
        let message = format!("no worker has task `{}`, which is {}", visible(name), task.status);
        Failure::new(Exit::Refused, message)
            .hint(format!("`adj why {}` says what it waits for", visible(name)))
    })
}
