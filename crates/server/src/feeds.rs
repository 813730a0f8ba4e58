//! What happens in a project as durable streams that no client writes: `log`, `runs/ID`, `tasks/ID`, `agents/NAME` and
//! `channels/NAME`.
//!
//! Nothing is copied: a stream is a way of reading the log, and of runs what their agents write. A position is first the number of
//! a record with a place among what that record says, and then a tick among the pieces that were written behind it. A reader is
//! woken by what belongs to its own stream only.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::body::Bytes;
use kernel::{Event, World};
use log::owner::Handle;
use log::spoken::{self, TokenPosition};
use log::{Record, Seq};
use machines::names::{ChannelName, RunId};
use machines::run::TokenEvent;
use serde::Serialize;
use streams::{Feed, FeedError, Items, Position, Source};
use tokio::sync::watch;

use api::channels::told;
use api::{Problem, Project as _, record_view};

/// What one record says has fewer parts than this.
const PARTS: u64 = 256;

/// The first word of each path, which clients can never write below.
const KINDS: [&str; 5] = ["log", "runs", "tasks", "agents", "channels"];

pub struct Feeds {
    project: Handle,
    /// Where the pieces are that agents write.
    spoken: PathBuf,
    /// The streams that somebody reads, by their paths.
    heads: Mutex<Heads>,
}

type Heads = HashMap<String, watch::Sender<Position>>;

impl Feeds {
    /// Follows the log for as long as its owner lives.
    pub fn start(project: Handle, spoken: PathBuf) -> Arc<Feeds> {
        let head = project.follow();
        let feeds = Arc::new(Feeds { project, spoken, heads: Mutex::default() });
        // It must not keep alive what it waits for.
        let known = Arc::downgrade(&feeds);
        feeds.project.spoken().on_growth(move |run, place| {
            if let Some(feeds) = known.upgrade() {
                feeds.written(run, place);
            }
        });
        tokio::spawn(wake(Arc::downgrade(&feeds), head));
        feeds
    }

    fn lock(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the readers of a run whose agent has written something.
    fn written(&self, run: &RunId, place: TokenPosition) {
        let mut heads = self.lock();
        if heads.is_empty() {
            return;
        }
        let of_run = format!("runs/{run}");
        let of_agent = self.project.world().run(run).map(|run| format!("agents/{}", run.agent));
        for path in [Some(of_run), of_agent].into_iter().flatten() {
            grow(&mut heads, &path, position(place));
        }
    }

    /// All that there is stands at this place or before it, and all that will come stands behind it.
    fn now(&self) -> TokenPosition {
        self.project.spoken().now(|| self.project.world().seq)
    }
}

/// Wakes the readers of a stream that has grown to this position.
fn grow(heads: &mut Heads, path: &str, position: Position) {
    if let Some(head) = heads.get(path) {
        head.send_modify(|head| *head = position.max(*head));
    }
}

/// Wakes the readers of the streams that each record belongs to.
async fn wake(feeds: Weak<Feeds>, mut head: watch::Receiver<u64>) {
    let mut after = *head.borrow_and_update();
    while head.changed().await.is_ok() {
        let end = *head.borrow_and_update();
        let Some(known) = feeds.upgrade() else { return };
        if known.lock().is_empty() {
            after = end;
            continue;
        }
        let reading = known.clone();
        let begin = after;
        let paths = tokio::task::spawn_blocking(move || {
            let world = reading.project.world();
            let mut paths: HashMap<String, Position> = HashMap::new();
            let read = reading.project.scan(begin, &mut |record| {
                paths.extend(paths_of(&world, record).into_iter().map(|path| (path, last_of(record.seq))));
                if record.seq < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            read.map(|()| paths)
        })
        .await;
        // What cannot be read now is read when the next record comes.
        let Ok(Ok(paths)) = paths else { continue };
        after = end;
        let mut heads = known.lock();
        heads.retain(|_, head| head.receiver_count() > 0);
        for (path, position) in paths {
            grow(&mut heads, &path, position);
        }
    }
}

/// The last position that a part of a record can have.
fn last_of(seq: Seq) -> Position {
    Position { major: seq * PARTS + PARTS - 1, minor: 0 }
}

/// What was written behind a record stands behind all its parts.
fn position(place: TokenPosition) -> Position {
    Position { minor: place.tick, ..last_of(place.seq) }
}

/// The place behind which everything stands that stands behind this position.
fn place(position: Position) -> TokenPosition {
    if position.major % PARTS == PARTS - 1 {
        return TokenPosition { seq: position.major / PARTS, tick: position.minor };
    }
    // A part of a record stands before what was written behind that record, and behind what was written before it.
    TokenPosition { seq: position.major / PARTS, tick: 0 }
}

/// The streams that a record belongs to.
fn paths_of(world: &World, record: &Record) -> Vec<String> {
    let mut paths = vec!["log".to_owned()];
    match record.stream.split_once('/') {
        Some(("task", id)) => {
            paths.push(format!("tasks/{id}"));
            // A run that nobody may begin again is closed, and what happens to its task may be why.
            let runs = world.runs.values().filter(|run| run.task.as_str() == id);
            paths.extend(runs.map(|run| format!("runs/{}", run.id)));
        }
        Some(("channel", name)) => paths.push(format!("channels/{name}")),
        Some(("agent", name)) => paths.push(format!("agents/{name}")),
        Some(("run", id)) => {
            paths.push(format!("runs/{id}"));
            let run = id.parse::<RunId>().ok();
            let run = run.as_ref().and_then(|run| world.run(run));
            paths.extend(run.map(|run| format!("agents/{}", run.agent)));
        }
        _ => {}
    }
    paths
}

/// The streams, as they are looked for.
pub struct FromLog(pub Arc<Feeds>);

impl Source for FromLog {
    fn find(&self, path: &str) -> Option<Arc<dyn Feed>> {
        let world = self.0.project.world();
        let of = match path.split_once('/') {
            None if path == "log" => Of::Log,
            Some(("runs", id)) => Of::Run(world.run(&id.parse().ok()?)?.id.clone()),
            Some(("tasks", id)) => Of::Stream(format!("task/{}", world.task(&id.parse().ok()?)?.id)),
            Some(("agents", name)) => {
                let known = world.config.agents.keys().any(|known| known.as_str() == name)
                    || world.runs.values().any(|run| run.agent.as_str() == name);
                known.then(|| Of::Agent(name.to_owned()))?
            }
            Some(("channels", name)) => {
                world.channels.get(&name.parse::<ChannelName>().ok()?)?;
                Of::Channel(format!("channel/{name}"))
            }
            _ => return None,
        };
        let now = position(self.0.now());
        let head = {
            let mut heads = self.0.lock();
            let head = heads.entry(path.to_owned());
            head.or_insert_with(|| watch::Sender::new(now)).subscribe()
        };
        Some(Arc::new(Reading { feeds: self.0.clone(), of, head }))
    }

    fn claims(&self, path: &str) -> bool {
        KINDS.contains(&path.split('/').next().unwrap_or_default())
    }
}

/// One stream.
struct Reading {
    feeds: Arc<Feeds>,
    of: Of,
    head: watch::Receiver<Position>,
}

/// Which records belong to it, and what is said of each.
enum Of {
    /// All of them.
    Log,
    /// Those of one stream of the log.
    Stream(String),
    /// What is said and happens in a channel, as its history has it.
    Channel(String),
    /// What a run tells its readers.
    Run(RunId),
    /// The same of all runs of an agent, and when it came and went.
    Agent(String),
}

/// Items in their order, and how far they go where there are more of them.
type Stretch = (Vec<(Position, Bytes)>, Option<Position>);

impl Feed for Reading {
    fn read(&self, after: Position, limit: usize) -> Result<Items, FeedError> {
        let now = self.feeds.now();
        let (mut items, told) =
            self.told(after, now, limit).map_err(|problem| FeedError::Failed(problem.detail))?;
        let through = told.unwrap_or_else(|| position(now));
        let written =
            self.written(after, through, limit).map_err(|error| FeedError::Failed(error.to_string()))?;
        let (written, cut) = written;
        items.extend(written);
        items.sort_by_key(|(position, _)| *position);
        let mut bytes = 0;
        let fits = items.iter().take_while(|(position, text)| {
            let room = bytes < limit;
            bytes += text.len();
            room && cut.is_none_or(|cut| *position <= cut)
        });
        let (fits, all) = (fits.count(), items.len());
        items.truncate(fits);
        let end = told.is_none() && cut.is_none() && fits == all;
        let read = items.last().map_or(after, |(position, _)| *position);
        // Whoever has read all waits behind the log's end, and not behind the last that was its own.
        let next = if end { read.max(last_of(now.seq)) } else { read };
        Ok(Items { items, next, end })
    }

    fn head(&self) -> watch::Receiver<Position> {
        self.head.clone()
    }

    fn closed(&self) -> bool {
        let Of::Run(id) = &self.of else { return false };
        let world = self.feeds.project.world();
        world.run(id).is_some_and(|run| world.is_over_for_good(run))
    }
}

impl Reading {
    /// What the log says behind a position and not behind a place, and to where, if not to its end.
    fn told(&self, after: Position, now: TokenPosition, limit: usize) -> Result<Stretch, Problem> {
        // The record of this position may have more to say.
        let from = (after.major / PARTS).saturating_sub(1);
        let (mut items, mut bytes, mut cut) = (Vec::new(), 0, None);
        self.visit(from, now.seq, &mut |record| {
            for (part, text) in self.said(record).into_iter().enumerate() {
                let position = Position { major: record.seq * PARTS + part as u64, minor: 0 };
                if position > after {
                    bytes += text.len();
                    items.push((position, text));
                }
            }
            if bytes < limit {
                return ControlFlow::Continue(());
            }
            cut = Some(last_of(record.seq));
            ControlFlow::Break(())
        })?;
        Ok((items, cut))
    }

    /// What agents wrote behind a position and not behind another, and to where, if there is more of it.
    fn written(&self, after: Position, through: Position, limit: usize) -> std::io::Result<Stretch> {
        let mut items = Vec::new();
        let mut cut: Option<Position> = None;
        for run in self.runs() {
            let folder = &self.feeds.spoken;
            let (pieces, more) = spoken::between(folder, &run, place(after), place(through), limit)?;
            if let Some((last, _)) = pieces.last().filter(|_| more) {
                let last = position(*last);
                cut = Some(cut.map_or(last, |cut| cut.min(last)));
            }
            items.extend(
                pieces.into_iter().map(|(place, text)| (position(place), json(&TokenEvent::Token { text }))),
            );
        }
        Ok((items, cut))
    }

    /// The runs whose agents are heard here.
    fn runs(&self) -> Vec<RunId> {
        match &self.of {
            Of::Log | Of::Stream(_) | Of::Channel(_) => Vec::new(),
            Of::Run(id) => vec![id.clone()],
            Of::Agent(name) => {
                let world = self.feeds.project.world();
                let own = world.runs.values().filter(|run| run.agent.as_str() == name);
                own.map(|run| run.id.clone()).collect()
            }
        }
    }

    /// The records that belong to it, one after the other: a few of them are in memory at once.
    fn visit(
        &self,
        after: Seq,
        through: Seq,
        visit: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let project = &self.feeds.project;
        match &self.of {
            Of::Stream(stream) | Of::Channel(stream) => project.visit_stream(stream, after, through, visit),
            Of::Run(id) => project.visit_stream(&format!("run/{id}"), after, through, visit),
            Of::Log | Of::Agent(_) => project.scan(after, &mut |record| match record.seq > through {
                true => ControlFlow::Break(()),
                false => visit(record),
            }),
        }
    }

    /// What a record says to the readers of this stream, each part as JSON.
    fn said(&self, record: &Record) -> Vec<Bytes> {
        match &self.of {
            Of::Log | Of::Stream(_) => vec![json(&record_view(record))],
            Of::Channel(_) => told(record).iter().map(json).collect(),
            Of::Run(_) => published(record).into_iter().map(|(_, said)| said).collect(),
            Of::Agent(name) => {
                let world = self.feeds.project.world();
                let own = |run: &RunId| world.run(run).is_some_and(|run| run.agent.as_str() == name);
                if record.stream == format!("agent/{name}") {
                    return vec![json(&record_view(record))];
                }
                published(record).into_iter().filter(|(run, _)| own(run)).map(|(_, said)| said).collect()
            }
        }
    }
}

fn published(record: &Record) -> Vec<(RunId, Bytes)> {
    let Ok(event) = Event::decode(&record.kind, &record.data) else { return Vec::new() };
    kernel::published::of(&event).into_iter().map(|(run, said)| (run, json(&said))).collect()
}

fn json(value: &impl Serialize) -> Bytes {
    // There is nothing in it that JSON could not say.
    serde_json::to_vec(value).unwrap_or_default().into()
}
