//! The answer to a command that changed one task, worker or run: its id and its new state.

use crate::command::{Refusal, Reply};
use crate::draft::Draft;
use machines::names::{RunId, TaskId, WorkerName};
use smol_str::SmolStr;

pub(crate) fn task_reply(d: &Draft, id: &TaskId) -> Result<Reply, Refusal> {
    let status = d.task(id)?.status();
    Ok(Reply {
        id: Some(SmolStr::new(id.as_str())),
        state: Some(SmolStr::new(format!("task.{status}"))),
        ..Reply::default()
    })
}

pub(crate) fn worker_reply(d: &Draft, name: &WorkerName) -> Result<Reply, Refusal> {
    let state = d.worker(name)?.machine.status;
    Ok(Reply {
        id: Some(SmolStr::new(name.as_str())),
        state: Some(SmolStr::new(format!("worker.{state}"))),
        ..Reply::default()
    })
}

pub(crate) fn run_reply(d: &Draft, id: &RunId) -> Result<Reply, Refusal> {
    let state = d.run(id)?.machine.name();
    Ok(Reply {
        id: Some(SmolStr::new(id.as_str())),
        state: Some(SmolStr::new(format!("run.{state}"))),
        ..Reply::default()
    })
}
