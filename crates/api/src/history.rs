//! What happened: told in words, as transitions, or as the log has it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::types::history::{EventsQuery, Item, Query, Record as RecordView, Told, Transition};
use super::types::{Cursor, Limit, Nothing, Page, Room};
use super::{Call, Problem, time, view};
use crate::story::Story;
use kernel::Event;
use kernel::words::ActorName;
use kernel::world::World;
use log::Record;
use machines::names::{ApprovalId, ChannelName, RequestId, RunId, SpecId, TaskId, WorkerName};
use serde_json::Value;

/// Whose history.
enum Of {
    All,
    Task(TaskId),
    Worker(WorkerName),
    Run(RunId),
    /// With what was asked about it, and with all that happened to its stories.
    Spec(SpecId),
    Request(RequestId),
    Channel(ChannelName),
}

impl Of {
    /// Whether a record of the log is its own.
    fn has(&self, world: &World, record: &Record) -> bool {
        let stream = record.stream.as_str();
        let asked = || request_of(&Event::decode(&record.kind, &record.data).ok()?).cloned();
        match self {
            Of::All => true,
            Of::Task(id) => is_of_task(stream, id),
            Of::Worker(name) => stream.strip_prefix("worker/") == Some(name.as_str()),
            Of::Run(id) => stream.strip_prefix("run/") == Some(id.as_str()),
            Of::Spec(id) => {
                let stories = world.specs.get(id).into_iter().flat_map(|spec| &spec.stories);
                let about = |request: &RequestId| world.requests.get(request)?.spec.clone();
                stream.strip_prefix("spec/") == Some(id.as_str())
                    || stories.into_iter().any(|story| is_of_task(stream, &story.task))
                    || asked().and_then(|request| about(&request)).as_ref() == Some(id)
            }
            Of::Request(id) => asked().as_ref() == Some(id),
            Of::Channel(name) => stream.strip_prefix("channel/") == Some(name.as_str()),
        }
    }

    /// Whether what happened is about it.
    fn concerns(&self, about: &About) -> bool {
        match self {
            Of::All => true,
            Of::Task(id) => about.task.as_ref() == Some(id),
            Of::Worker(name) => about.worker.as_ref() == Some(name),
            Of::Run(id) => about.run.as_ref() == Some(id),
            Of::Spec(id) => about.spec.as_ref() == Some(id),
            Of::Request(id) => about.request.as_ref() == Some(id),
            Of::Channel(name) => about.channel.as_ref() == Some(name),
        }
    }
}

/// A run's id is the task's and a number.
fn is_of_task(stream: &str, id: &TaskId) -> bool {
    let run = stream.strip_prefix("run/").and_then(|run| run.strip_prefix(id.as_str()));
    let number = run.and_then(|rest| rest.strip_prefix('.'));
    stream.strip_prefix("task/") == Some(id.as_str()) || number.is_some_and(|number| !number.contains('.'))
}

/// The request that something happened to.
fn request_of(event: &Event) -> Option<&RequestId> {
    match event {
        Event::Requested(e) => Some(&e.id),
        Event::RequestAnswered(e) => Some(&e.id),
        Event::AnswerTold(e) => Some(&e.id),
        Event::RequestQueued(e) => Some(&e.id),
        Event::RequestLeft(e) => Some(&e.id),
        Event::RequestTried(e) => Some(&e.id),
        Event::RequestNoted(e) => Some(&e.id),
        Event::RequestForPerson(e) => Some(&e.id),
        _ => None,
    }
}

pub fn of_all(call: &Call, (): (), query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    history(call, &query, &Of::All)
}

pub fn of_task(call: &Call, id: TaskId, query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    if call.world().task(&id).is_none() {
        return Err(super::board::no_task(&id));
    }
    history(call, &query, &Of::Task(id))
}

pub fn of_worker(call: &Call, name: WorkerName, query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    if call.world().worker(&name).is_none() {
        return Err(super::fleet::no_worker(&name));
    }
    history(call, &query, &Of::Worker(name))
}

pub fn of_run(call: &Call, id: RunId, query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    if call.world().run(&id).is_none() {
        return Err(super::runs::no_run(&id));
    }
    history(call, &query, &Of::Run(id))
}

pub fn of_spec(call: &Call, id: SpecId, query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    super::specs::known(&call.world(), &id)?;
    history(call, &query, &Of::Spec(id))
}

pub fn of_request(call: &Call, id: RequestId, query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    super::requests::known(&call.world(), &id)?;
    history(call, &query, &Of::Request(id))
}

pub fn of_channel(call: &Call, name: ChannelName, query: Query, _: Nothing) -> Result<Page<Item>, Problem> {
    super::channels::known(&call.world(), &name)?;
    history(call, &query, &Of::Channel(name))
}

/// Transitions in the one form that all five machines are logged in; with `all`, every record; with `story`, what it
/// meant, in words.
fn history(call: &Call, query: &Query, of: &Of) -> Result<Page<Item>, Problem> {
    if query.story {
        return story(call, query, of);
    }
    let world = call.world();
    page(call, query.after, query.limit, &|record| {
        if !of.has(&world, record) {
            return None;
        }
        match query.all {
            true => Some(Item::Record(record_view(record))),
            false => transition(&world, record).map(Item::Transition),
        }
    })
}

/// What an event is about, in the World after it.
#[derive(Default)]
struct About {
    task: Option<TaskId>,
    worker: Option<WorkerName>,
    run: Option<RunId>,
    request: Option<RequestId>,
    spec: Option<SpecId>,
    channel: Option<ChannelName>,
}

impl About {
    /// `now`: the World as it is, for what was known only later: a task is added before it is called a story.
    fn of(world: &World, now: &World, stream: &str, event: &Event) -> About {
        let mut about = About { request: request_of(event).cloned(), ..About::default() };
        let asked = about.request.as_ref().and_then(|id| world.requests.get(id));
        about.spec = asked.and_then(|asked| asked.spec.clone());
        about.task = asked.and_then(|asked| asked.task.clone());
        match stream.split_once('/') {
            Some(("spec", id)) => about.spec = id.parse().ok(),
            Some(("channel", name)) => about.channel = name.parse().ok(),
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
        about.spec = about.spec.or_else(|| Some(now.spec_of(task?)?.id.clone()));
        about.run = about.run.or_else(|| task?.work.run.clone());
        about.worker = about.worker.or_else(|| Some(world.worker_of(&task?.id)?.name.clone()));
        about
    }
}

/// The log, told from its beginning: what an event meant depends on what was so at that time.
fn story(call: &Call, query: &Query, of: &Of) -> Result<Page<Item>, Problem> {
    let (limit, after) = (Limit::number(query.limit), Cursor::number(query.after));
    let (now, mut world, mut told) = (call.world(), World::default(), Story::default());
    // A worker leaves a task with the event that is told, so it is looked for before it too.
    let mut had: BTreeMap<TaskId, WorkerName> = BTreeMap::new();
    let (mut items, mut last, mut more) = (Vec::new(), after, false);
    call.access.project.scan(0, &mut |record| {
        let Ok(event) = Event::decode(&record.kind, &record.data) else { return ControlFlow::Continue(()) };
        if world.apply(&event).is_err() {
            return ControlFlow::Break(());
        }
        // What a turn waits for is over when its history is read: what happened is told, not what could be done.
        let of_turn = matches!(event, Event::TurnMoved(_));
        let deed = of_turn.then(|| told.deed(&world, &event, &record.actor)).flatten();
        let words = deed.or_else(|| told.words(&world, &event));
        let words = words.or_else(|| told.deed(&world, &event, &record.actor));
        let mut about = About::of(&world, &now, &record.stream, &event);
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
        items.push(Item::Told(Told {
            timestamp: time(record.at),
            actor: actor(record, &event),
            tone,
            text,
            task: about.task.as_ref().map(view::text),
            worker: about.worker.as_ref().map(view::text),
            run: about.run.as_ref().map(view::text),
        }));
        ControlFlow::Continue(())
    })?;
    Ok(Page { items, next: more.then(|| last.to_string()) })
}

pub fn events(call: &Call, (): (), query: EventsQuery, _: Nothing) -> Result<Page<RecordView>, Problem> {
    let EventsQuery { after, limit, wait } = query;
    let seen = Cursor::number(after);
    let _ = super::awaiting::awaited(call, wait, |world| (world.seq != seen).then_some(()));
    page(call, after, limit, &|record| Some(record_view(record)))
}

fn page<T>(
    call: &Call,
    after: Option<Cursor>,
    limit: Option<Limit>,
    show: &dyn Fn(&Record) -> Option<T>,
) -> Result<Page<T>, Problem> {
    let limit = Limit::number(limit);
    let (mut items, mut last, mut more) = (Vec::new(), Cursor::number(after), false);
    let (end, mut room) = (call.world().seq, Room::default());
    if last > end {
        return Err(Problem::not_found(format!("there is no record {last}: the log ends with {end}"))
            .hint("`after` is the `next` of a page of this list"));
    }
    call.access.project.scan(last, &mut |record| {
        let item = (items.len() < limit).then(|| show(record));
        // It is in the answer about as long as it is in the log.
        let bytes = |item: &Option<T>| item.as_ref().map_or(0, |_| record.bytes());
        match item.filter(|item| item.is_none() || room.takes(bytes(item))) {
            Some(item) => items.extend(item),
            None => {
                more = true;
                return ControlFlow::Break(());
            }
        }
        last = record.seq;
        ControlFlow::Continue(())
    })?;
    Ok(Page { items, next: more.then(|| last.to_string()) })
}

/// `agentId` is the agent that it is about, `id` what has moved, `actor` who asked for it.
pub fn transition(world: &World, record: &Record) -> Option<Transition> {
    let event = Event::decode(&record.kind, &record.data).ok()?;
    let transition = event.transition()?;
    let id = transition.agent_id.clone();
    let agent = match transition.machine {
        "task" => id.parse().ok().and_then(|id| agent_of(world, &id)),
        "run" => id.parse().ok().and_then(|id| Some(world.run(&id)?.agent.to_string())),
        _ => Some(id.clone()),
    };
    Some(Transition {
        timestamp: time(record.at),
        event: transition.event.to_owned(),
        machine: transition.machine.to_owned(),
        agent_id: agent,
        from: transition.from,
        to: transition.to,
        trigger: transition.trigger,
        channel: transition.channel,
        id,
        actor: actor(record, &event),
    })
}

/// The agent of a task: the one that has worked on it, or that it is meant for.
fn agent_of(world: &World, id: &TaskId) -> Option<String> {
    let run = world.run_of(id).map(|run| run.agent.to_string());
    run.or_else(|| world.task(id)?.machine.assignee_ids.first().map(ToString::to_string))
}

/// Who did it. The log has one name for all that a command brought about; what the rules did for an agent says so.
fn actor(record: &Record, event: &Event) -> String {
    event
        .on_behalf_of()
        .map_or_else(|| record.actor.clone(), |agent| ActorName::SystemFor(agent.as_str()).to_string())
}

pub fn record_view(record: &Record) -> RecordView {
    let event = Event::decode(&record.kind, &record.data);
    let actor = event.map_or_else(|_| record.actor.clone(), |event| actor(record, &event));
    let data = serde_json::from_str(&record.data).unwrap_or_else(|_| Value::String(record.data.clone()));
    RecordView {
        seq: record.seq,
        at: time(record.at),
        actor,
        command: record.command.clone(),
        stream: record.stream.clone(),
        version: record.version,
        kind: record.kind.clone(),
        data,
    }
}
