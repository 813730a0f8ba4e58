//! What happened: told in words, as transitions, or as the log has it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::{Call, Problem, Routed, name, ok, time, view};
use crate::cli::story::Story;
use kernel::world::{Tariff, World};
use kernel::{Event, budget};
use machines::names::{AgentName, ApprovalId, EffectId, RunId, TaskId, WorkerName};
use machines::suspended::Wrapped;
use machines::{Wire, run};
use runtime::log::Record;
use serde_json::{Value, json};

/// Whose history.
enum Of {
    All,
    Task(TaskId),
    Worker(WorkerName),
    Run(RunId),
}

impl Of {
    /// Whether a stream of the log is its own. A run's id is the task's and a number.
    fn has(&self, stream: &str) -> bool {
        match self {
            Of::All => true,
            Of::Task(id) => {
                let run = stream.strip_prefix("run/").and_then(|run| run.strip_prefix(id.as_str()));
                let number = run.and_then(|rest| rest.strip_prefix('.'));
                stream.strip_prefix("task/") == Some(id.as_str())
                    || number.is_some_and(|number| !number.contains('.'))
            }
            Of::Worker(name) => stream.strip_prefix("worker/") == Some(name.as_str()),
            Of::Run(id) => stream.strip_prefix("run/") == Some(id.as_str()),
        }
    }

    /// Whether what happened is about it.
    fn concerns(&self, about: &About) -> bool {
        match self {
            Of::All => true,
            Of::Task(id) => about.task.as_ref() == Some(id),
            Of::Worker(name) => about.worker.as_ref() == Some(name),
            Of::Run(id) => about.run.as_ref() == Some(id),
        }
    }
}

pub fn of_all(call: &Call) -> Routed {
    history(call, &Of::All)
}

pub fn of_task(call: &Call, id: &str) -> Routed {
    let id: TaskId = name(id)?;
    if call.world().task(&id).is_none() {
        return Err(
            Problem::not_found(format!("there is no task `{id}`")).hint("`adj task ls` lists the tasks")
        );
    }
    history(call, &Of::Task(id))
}

pub fn of_worker(call: &Call, named: &str) -> Routed {
    let named: WorkerName = name(named)?;
    if call.world().worker(&named).is_none() {
        return Err(
            Problem::not_found(format!("there is no worker `{named}`")).hint("`adj ps` lists the workers")
        );
    }
    history(call, &Of::Worker(named))
}

pub fn of_run(call: &Call, id: &str) -> Routed {
    let id: RunId = name(id)?;
    if call.world().run(&id).is_none() {
        return Err(Problem::not_found(format!("there is no run `{id}`")));
    }
    history(call, &Of::Run(id))
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

/// Transitions in the one form that all five machines are logged in; with `all`, every record; with `story`, what it
/// meant, in words.
fn history(call: &Call, of: &Of) -> Routed {
    if call.flag("story") {
        return story(call, of);
    }
    let (all, world) = (call.flag("all"), call.world());
    page(call, &|record| {
        if !of.has(&record.stream) {
            return None;
        }
        if all { Some(record_view(record)) } else { transition(&world, record) }
    })
}

/// What an event is about, in the World after it.
#[derive(Default)]
struct About {
    task: Option<TaskId>,
    worker: Option<WorkerName>,
    run: Option<RunId>,
}

impl About {
    fn of(world: &World, stream: &str) -> About {
        let mut about = About::default();
        match stream.split_once('/') {
            Some(("task", id)) => about.task = id.parse().ok(),
            Some(("run", id)) => about.run = id.parse().ok(),
            Some(("worker", name)) => about.worker = name.parse().ok(),
            Some(("approval", id)) => {
                let id: Option<ApprovalId> = id.parse().ok();
                let asked = id.and_then(|id| world.approvals.get(&id));
                about.task = asked.and_then(|asked| asked.task.clone());
                about.run = asked.and_then(|asked| asked.run.clone());
            }
            _ => {}
        }
        about.task = about.task.or_else(|| Some(world.run(about.run.as_ref()?)?.task.clone()));
        let task = about.task.as_ref().and_then(|id| world.task(id));
        about.run = about.run.or_else(|| task?.run.clone());
        about.worker = about.worker.or_else(|| Some(world.worker_of(&task?.id)?.name.clone()));
        about
    }
}

/// The log, told from its beginning: what an event meant depends on what was so at that time.
fn story(call: &Call, of: &Of) -> Routed {
    let (limit, after) = (call.limit()?, call.after()?);
    let (mut world, mut told) = (World::default(), Story::default());
    // A worker leaves a task with the event that is told, so it is looked for before it too.
    let mut had: BTreeMap<TaskId, WorkerName> = BTreeMap::new();
    let (mut items, mut last, mut more) = (Vec::new(), after, false);
    call.site.project.scan(0, &mut |record| {
        let Ok(event) = Event::decode(&record.kind, &record.data) else { return ControlFlow::Continue(()) };
        if world.apply(&event).is_err() {
            return ControlFlow::Break(());
        }
        let words = told.words(&world, &event).or_else(|| told.deed(&world, &event, &record.actor));
        let mut about = About::of(&world, &record.stream);
        if let Some(task) = &about.task {
            match &about.worker {
                Some(worker) => drop(had.insert(task.clone(), worker.clone())),
                None => about.worker = had.get(task).cloned(),
            }
        }
        let Some((tone, text)) = words else { return ControlFlow::Continue(()) };
        if record.seq <= after || !of.concerns(&about) {
            return ControlFlow::Continue(());
        }
        if items.len() == limit {
            more = true;
            return ControlFlow::Break(());
        }
        last = record.seq;
        items.push(json!({
            "timestamp": time(record.at), "actor": actor(record, &event), "tone": tone.name(), "text": text,
            "task": about.task, "worker": about.worker, "run": about.run,
        }));
        ControlFlow::Continue(())
    })?;
    Ok(ok(json!({"items": items, "next": more.then(|| last.to_string())})))
}

/// What each step has used. The log knows; the World only has the sums.
pub fn steps(call: &Call) -> Result<Vec<Value>, Problem> {
    struct Step {
        effect: EffectId,
        run: RunId,
        task: TaskId,
        agent: AgentName,
        tariff: Tariff,
        worker: Option<WorkerName>,
        at: i64,
        cost: u64,
        input_tokens: u64,
        output_tokens: u64,
        /// What was set aside, where its price was not named.
        held: Option<u64>,
    }
    let world = call.world();
    let mut starts: BTreeSet<EffectId> = BTreeSet::new();
    let mut steps: Vec<Step> = Vec::new();
    // The run's step that what is charged belongs to: the last that was begun.
    let mut current: BTreeMap<RunId, usize> = BTreeMap::new();
    call.site.project.scan(0, &mut |record| {
        match Event::decode(&record.kind, &record.data) {
            Ok(Event::EffectAsked(asked)) if asked.what.kind() == "start_step" => starts.extend([asked.id]),
            Ok(Event::StepUnderWay(begun)) => {
                if let (Some(effect), Some(run)) = (begun.effect, world.run(&begun.id))
                    && starts.contains(&effect)
                {
                    current.insert(begun.id.clone(), steps.len());
                    steps.push(Step {
                        effect,
                        run: begun.id,
                        task: run.task.clone(),
                        agent: run.agent.clone(),
                        tariff: Tariff::of(&run.agent, None),
                        worker: None,
                        at: record.at,
                        cost: 0,
                        input_tokens: 0,
                        output_tokens: 0,
                        held: None,
                    });
                }
            }
            Ok(Event::Charged(charged)) => {
                let step = current.get(&charged.id).and_then(|index| steps.get_mut(*index));
                let Some(step) = step else { return ControlFlow::Continue(()) };
                step.tariff = charged.tariff();
                step.worker = charged.worker.or(step.worker.take());
                step.input_tokens += charged.input_tokens;
                step.output_tokens += charged.output_tokens;
                match charged.priced {
                    true => step.cost += charged.cost,
                    false => step.held = Some(step.held.unwrap_or(0) + charged.cost),
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let shown = |step: &Step| {
        let estimate = step.held.and_then(|_| {
            let whole = budget::estimate(&world, &step.tariff, step.input_tokens + step.output_tokens)?;
            Some(whole.saturating_sub(step.cost))
        });
        let held = step.held.filter(|_| estimate.is_none()).unwrap_or(0);
        json!({
            "name": step.effect, "task": step.task, "run": step.run, "agent": step.agent, "worker": step.worker,
            "startedAt": time(step.at),
            "usd": view::dollars(step.cost),
            "inputTokens": step.input_tokens,
            "outputTokens": step.output_tokens,
            "reservedUsd": 0.0,
            "unpricedSteps": u32::from(step.held.is_some()),
            "estimatedSteps": u32::from(estimate.is_some()),
            "estimatedUsd": view::dollars(estimate.unwrap_or(0)),
            "setAsideUsd": view::dollars(held),
        })
    };
    Ok(steps.iter().map(shown).collect())
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

/// `agentId` is the agent that it is about, `id` what has moved, `actor` who asked for it.
fn transition(world: &World, record: &Record) -> Option<Value> {
    let event = Event::decode(&record.kind, &record.data).ok()?;
    let transition = event.transition()?;
    let id = transition.agent_id.clone();
    let agent = match transition.machine {
        "task" => id.parse().ok().and_then(|id| agent_of(world, &id)),
        "run" => id.parse().ok().and_then(|id| Some(world.run(&id)?.agent.to_string())),
        _ => Some(id.clone()),
    };
    let mut view = json!({"timestamp": time(record.at)});
    if let (Value::Object(view), Ok(Value::Object(members))) = (&mut view, serde_json::to_value(transition)) {
        view.extend(members);
    }
    view["agentId"] = json!(agent);
    view["id"] = json!(id);
    view["actor"] = json!(actor(record, &event));
    Some(view)
}

/// The agent of a task: the one that has worked on it, or that it is meant for.
fn agent_of(world: &World, id: &TaskId) -> Option<String> {
    let run = world.run_of(id).map(|run| run.agent.to_string());
    run.or_else(|| world.task(id)?.machine.assignee_ids.first().map(ToString::to_string))
}

/// Who did it. The log has one name for all that a command brought about; what the rules did for an agent says so.
fn actor(record: &Record, event: &Event) -> String {
    event.on_behalf_of().map_or_else(|| record.actor.clone(), |agent| format!("system for {agent}"))
}

fn record_view(record: &Record) -> Value {
    let event = Event::decode(&record.kind, &record.data);
    let actor = event.map_or_else(|_| record.actor.clone(), |event| actor(record, &event));
    let data = serde_json::from_str(&record.data).unwrap_or_else(|_| Value::String(record.data.clone()));
    json!({
        "seq": record.seq,
        "at": time(record.at),
        "actor": actor,
        "command": record.command,
        "stream": record.stream,
        "version": record.version,
        "kind": record.kind,
        "data": data,
    })
}
