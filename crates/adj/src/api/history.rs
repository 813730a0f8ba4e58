//! What happened: the log, as transitions or as it is.

use std::ops::ControlFlow;

use super::{Call, Problem, Routed, name, ok, time};
use kernel::Event;
use machines::names::{RunId, TaskId, WorkerName};
use machines::run;
use machines::suspended::Wrapped;
use runtime::log::Record;
use serde_json::{Value, json};

pub fn of_all(call: &Call) -> Routed {
    history(call, &|_| true)
}

pub fn of_task(call: &Call, id: &str) -> Routed {
    let id: TaskId = name(id)?;
    if call.world().task(&id).is_none() {
        return Err(
            Problem::not_found(format!("there is no task `{id}`")).hint("`adj task ls` lists the tasks")
        );
    }
    let task = format!("task/{id}");
    // A run's id is the task's and a number.
    let runs = format!("run/{id}.");
    let is_run = |stream: &str| stream.strip_prefix(&runs).is_some_and(|number| !number.contains('.'));
    history(call, &|stream| stream == task || is_run(stream))
}

pub fn of_worker(call: &Call, named: &str) -> Routed {
    let named: WorkerName = name(named)?;
    if call.world().worker(&named).is_none() {
        return Err(
            Problem::not_found(format!("there is no worker `{named}`")).hint("`adj ps` lists the workers")
        );
    }
    let worker = format!("worker/{named}");
    history(call, &|stream| stream == worker)
}

pub fn of_run(call: &Call, id: &str) -> Routed {
    let id: RunId = name(id)?;
    if call.world().run(&id).is_none() {
        return Err(Problem::not_found(format!("there is no run `{id}`")));
    }
    let run = format!("run/{id}");
    history(call, &|stream| stream == run)
}

/// What an agent made of its task: its last words, and how long it was at work.
pub struct Worked {
    pub said: Option<String>,
    pub millis: i64,
}

/// Read from the log: the World has no use for either.
pub fn worked(call: &Call, id: &TaskId) -> Result<Worked, Problem> {
    let (task, runs) = (format!("task/{id}"), format!("run/{id}."));
    let mut worked = Worked { said: None, millis: 0 };
    let mut since = None;
    call.site.project.scan(0, &mut |record| {
        if record.stream == task && record.kind == "lease_given" {
            since = Some(record.at);
        } else if record.stream == task && record.kind == "lease_ended" {
            worked.millis += since.take().map_or(0, |since| record.at - since);
        } else if record.kind == "run_moved"
            && record.stream.strip_prefix(&runs).is_some_and(|number| !number.contains('.'))
            && let Ok(Event::RunMoved(moved)) = Event::decode(&record.kind, &record.data)
            && let Wrapped::Inner(run::Event::Step { output: Some(output), .. }) = moved.input
        {
            worked.said = Some(output);
        }
        ControlFlow::Continue(())
    })?;
    worked.millis += since.map_or(0, |since| call.request.at - since);
    Ok(worked)
}

/// Transitions in the one form that all five machines are logged in; with `all`, every record.
fn history(call: &Call, wanted: &dyn Fn(&str) -> bool) -> Routed {
    let all = call.flag("all");
    page(call, &|record| {
        if !wanted(&record.stream) {
            return None;
        }
        if all { Some(record_view(record)) } else { transition(record) }
    })
}

pub fn events(call: &Call) -> Routed {
    page(call, &|record| Some(record_view(record)))
}

fn page(call: &Call, show: &dyn Fn(&Record) -> Option<Value>) -> Routed {
    let limit = call.limit()?;
    let (mut items, mut last, mut more) = (Vec::new(), call.after()?, false);
    call.site.project.scan(last, &mut |record| {
        if items.len() == limit {
            more = true;
            return ControlFlow::Break(());
        }
        items.extend(show(record));
        last = record.seq;
        ControlFlow::Continue(())
    })?;
    Ok(ok(json!({"items": items, "next": more.then(|| last.to_string())})))
}

fn transition(record: &Record) -> Option<Value> {
    let transition = Event::decode(&record.kind, &record.data).ok()?.transition()?;
    let mut view = json!({"timestamp": time(record.at)});
    if let (Value::Object(view), Ok(Value::Object(members))) = (&mut view, serde_json::to_value(transition)) {
        view.extend(members);
    }
    Some(view)
}

fn record_view(record: &Record) -> Value {
    let data = serde_json::from_str(&record.data).unwrap_or_else(|_| Value::String(record.data.clone()));
    json!({
        "seq": record.seq,
        "at": time(record.at),
        "actor": record.actor,
        "command": record.command,
        "stream": record.stream,
        "version": record.version,
        "kind": record.kind,
        "data": data,
    })
}
