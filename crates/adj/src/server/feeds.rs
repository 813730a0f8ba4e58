//! What happens in a project as durable streams that nobody but the log writes: `log`, `runs/ID`, `tasks/ID`, `agents/NAME`
//! and `channels/NAME`.
//!
//! Nothing is copied: a stream is a way of reading the log, and a position in it is the number of a record and a place
//! among what that record says. A reader is woken by the records of its own stream only.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::body::Bytes;
use kernel::{Event, World};
use machines::names::{ChannelName, RunId};
use runtime::log::{Record, Seq};
use serde::Serialize;
use streams::{Feed, FeedError, Items, Source};
use tokio::sync::watch;

use crate::api::{Problem, Project, record_view};

/// What one record says has fewer parts than this.
const PARTS: u64 = 256;
/// Records that are looked at before commands are let in between.
const SPAN: Seq = 10_000;

/// The first word of each path, which clients can never write below.
const KINDS: [&str; 5] = ["log", "runs", "tasks", "agents", "channels"];

pub struct Feeds {
    project: Arc<dyn Project + Send + Sync>,
    /// The streams that somebody reads, by their paths.
    heads: Mutex<HashMap<String, watch::Sender<u64>>>,
}

impl Feeds {
    /// Follows the log for as long as its owner lives.
    pub fn start(project: Arc<dyn Project + Send + Sync>, head: watch::Receiver<u64>) -> Arc<Feeds> {
        let feeds = Arc::new(Feeds { project, heads: Mutex::default() });
        // It must not keep alive what it waits for.
        tokio::spawn(wake(Arc::downgrade(&feeds), head));
        feeds
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
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
            let mut paths: HashMap<String, u64> = HashMap::new();
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
            if let Some(head) = heads.get(&path) {
                head.send_replace(position);
            }
        }
    }
}

/// The last position that a record can have.
fn last_of(seq: Seq) -> u64 {
    seq * PARTS + PARTS - 1
}

/// The streams that a record belongs to.
fn paths_of(world: &World, record: &Record) -> Vec<String> {
    let mut paths = vec!["log".to_owned()];
    match record.stream.split_once('/') {
        Some(("task", id)) => paths.push(format!("tasks/{id}")),
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
            Some(("runs", id)) => Of::Run(world.run(&id.parse().ok()?)?.id.to_string()),
            Some(("tasks", id)) => Of::Stream(format!("task/{}", world.task(&id.parse().ok()?)?.id)),
            Some(("agents", name)) => {
                let known = world.config.agents.keys().any(|known| known.as_str() == name)
                    || world.runs.values().any(|run| run.agent.as_str() == name);
                known.then(|| Of::Agent(name.to_owned()))?
            }
            Some(("channels", name)) => {
                world.channels.get(&name.parse::<ChannelName>().ok()?)?;
                Of::Stream(format!("channel/{name}"))
            }
            _ => return None,
        };
        let head = {
            let mut heads = self.0.lock();
            let head = heads.entry(path.to_owned());
            head.or_insert_with(|| watch::Sender::new(last_of(world.seq))).subscribe()
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
    head: watch::Receiver<u64>,
}

/// Which records belong to it, and what is said of each.
enum Of {
    /// All of them.
    Log,
    /// Those of one stream of the log.
    Stream(String),
    /// What a run tells its readers.
    Run(String),
    /// The same of all runs of an agent, and when it came and went.
    Agent(String),
}

impl Feed for Reading {
    fn read(&self, after: u64, limit: usize) -> Result<Items, FeedError> {
        let end = self.feeds.project.world().seq;
        // The record of this position may have more to say.
        let mut from = (after / PARTS).saturating_sub(1);
        let mut items: Vec<(u64, Bytes)> = Vec::new();
        let mut bytes = 0;
        while from < end && bytes < limit {
            let through = (from + SPAN).min(end);
            let records = self.records(from, through).map_err(|problem| FeedError::Failed(problem.detail))?;
            from = through;
            for record in records {
                for (part, text) in self.said(&record).into_iter().enumerate() {
                    let position = record.seq * PARTS + part as u64;
                    if position > after {
                        bytes += text.len();
                        items.push((position, text));
                    }
                }
                if bytes >= limit {
                    from = record.seq;
                    break;
                }
            }
        }
        let all = from >= end;
        let next = match items.last() {
            // Whoever has read all waits behind the end, and not behind the last that was its own.
            _ if all => last_of(end).max(after),
            Some((position, _)) => *position,
            None => after,
        };
        Ok(Items { items, next, end: all })
    }

    fn head(&self) -> watch::Receiver<u64> {
        self.head.clone()
    }

    fn closed(&self) -> bool {
        false
    }
}

impl Reading {
    fn records(&self, after: Seq, through: Seq) -> Result<Vec<Record>, Problem> {
        let project = &self.feeds.project;
        match &self.of {
            Of::Stream(stream) => project.stream_between(stream, after, through),
            Of::Run(id) => project.stream_between(&format!("run/{id}"), after, through),
            Of::Log | Of::Agent(_) => {
                let mut records = Vec::new();
                project.scan(after, &mut |record| {
                    if record.seq > through {
                        return ControlFlow::Break(());
                    }
                    records.push(record.clone());
                    ControlFlow::Continue(())
                })?;
                Ok(records)
            }
        }
    }

    /// What a record says to the readers of this stream, each part as JSON.
    fn said(&self, record: &Record) -> Vec<Bytes> {
        match &self.of {
            Of::Log | Of::Stream(_) => vec![json(&record_view(record))],
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
