//! The rows of live screens, as they change, as server-sent events. They are looked up once for all readers, and only while
//! there are any; a reader gets the rows that changed, or the whole where it comes new or was away for too long.
//!
//! Each event has the number of the last record that its rows include as id. A reader that comes back names the last one that
//! it has seen. Rows are whole, so that one that it gets twice does no harm.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream;
use http::{HeaderValue, header};
use hyper::body::Bytes;
use kernel::World;
use kernel::world::Task;
use machines::names::TaskId;
use tokio::sync::watch;

use super::events::{COME_BACK, Heartbeat, frame};
use super::machine_use::Meter;
use super::sending;
use crate::response::{Body, Response};
use api::screen::{Rows, ScreenFacts};
use api::types::screen::{
    ChangedLines, ColumnRow, FactsRow, GoneRows, QueueRow, TaskRow, View, ViewChange, ViewQuery, WaitingRow,
    WorkerRow,
};
use api::{Control, Host, Problem, Project};

/// Something is said this often, so that a reader soon knows when it is cut off.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// Rows are looked up this often where nothing is recorded, for what the log does not hold.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks at least so long, and so many times as long as a look takes.
const PAUSE_MIN: Duration = Duration::from_millis(40);
const PAUSE_TIMES: u32 = 4;
/// All rows are looked up anew after so long, whatever is known to have changed.
const REFRESH: Duration = Duration::from_secs(10);
/// Settings on disk and the machine are looked at this often.
const OUTSIDE: Duration = Duration::from_secs(3);
/// So much of the changes is kept for readers that come back.
const CHANGES_BYTES_MAX: usize = 4 << 20;
/// So many branches at most are asked about their changed lines in one look.
const LINES_AT_ONCE: usize = 4;
/// What whole screens are counted under.
const CALLER: &str = "live screens";

/// The rows that live screens of one project show.
pub struct Screens {
    project: Arc<dyn Project + Send + Sync>,
    host: Arc<dyn Host>,
    control: Arc<dyn Control>,
    kept: Mutex<Kept>,
    /// Counts up with every change.
    version: watch::Sender<u64>,
    readers: AtomicUsize,
    looking: tokio::sync::Semaphore,
}

#[derive(Default)]
struct Kept {
    seq: u64,
    version: u64,
    cards: HashMap<TaskId, KeptCard>,
    /// The order in which cards are sent.
    order: Vec<TaskId>,
    /// Everything but the cards, as it was last sent.
    rest: Option<View>,
    changes: VecDeque<Change>,
    bytes: usize,
    /// All changes after this version are there.
    after: u64,
    /// The number of the rows that version had.
    after_seq: u64,
    whole: Option<Bytes>,
    refreshed: Option<Instant>,
    outside: Option<Outside>,
    lines: BTreeMap<String, ChangedLines>,
    asked: BTreeSet<String>,
    meter: Meter,
}

struct KeptCard {
    task: Arc<Task>,
    card: TaskRow,
    text: Box<str>,
}

struct Change {
    version: u64,
    seq: u64,
    frame: Bytes,
}

/// What is known beside the log, and since when.
struct Outside {
    at: Instant,
    facts: kernel::waiting::Facts,
    project: String,
}

impl Screens {
    pub fn new(
        project: Arc<dyn Project + Send + Sync>,
        host: Arc<dyn Host>,
        control: Arc<dyn Control>,
    ) -> Arc<Screens> {
        Arc::new(Screens {
            project,
            host,
            control,
            kept: Mutex::default(),
            version: watch::Sender::new(0),
            readers: AtomicUsize::new(0),
            looking: tokio::sync::Semaphore::new(1),
        })
    }

    /// Sends the rows after `after`, or all of them, and then what changes, until the reader goes or the owner stops.
    pub(super) fn follow(
        self: &Arc<Self>,
        after: Option<u64>,
        head: watch::Receiver<u64>,
        stopping: watch::Receiver<bool>,
    ) -> Response {
        let position = after.and_then(|after| self.lock().version_of(after));
        self.readers.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(keep_up(self.clone(), head));
        let reader = Reader {
            counted: Counted(self.clone()),
            position,
            version: self.version.subscribe(),
            stopping,
            beats: tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT),
            over: false,
        };
        let chunks = stream::unfold(reader, |mut reader| async {
            let chunk = reader.next().await?;
            Some((Ok::<Bytes, Infallible>(chunk), reader))
        });
        let mut response = Response::new(Body::from_stream(chunks));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks the rows up and keeps what changed. It may block.
    fn look(&self) {
        let world = self.project.world();
        let status = self.control.status();
        let outside = self.lock().outside.take();
        let outside = outside.filter(|outside| outside.at.elapsed() < OUTSIDE).unwrap_or_else(|| Outside {
            at: Instant::now(),
            facts: self.host.facts(),
            project: self.host.project(),
        });
        let mut kept = self.lock();
        let beside = ScreenFacts {
            project: outside.project.clone(),
            facts: outside.facts.clone(),
            running: status.running,
            tests: status.tests,
            machine: kept.meter.read(&self.host.root()),
            lines: std::mem::take(&mut kept.lines),
            landing_seconds: None,
        };
        kept.outside = Some(outside);
        let changed = kept.take(&world, &beside, base::clock::now());
        kept.lines = beside.lines;
        let unknown = kept.unknown_lines(&world);
        drop(kept);
        if let Some(version) = changed {
            self.version.send_replace(version);
        }
        for (task, tip) in unknown {
            let lines = self.host.changed_lines(&task);
            let mut kept = self.lock();
            if let Some(lines) = lines {
                kept.lines.insert(tip, lines);
                kept.refreshed = None;
            }
        }
    }
}

/// Looks for as long as somebody reads. One does it for all.
async fn keep_up(screens: Arc<Screens>, mut head: watch::Receiver<u64>) {
    let Ok(_alone) = screens.looking.acquire().await else { return };
    while screens.readers.load(Ordering::Relaxed) > 0 {
        head.mark_unchanged();
        let (looking, begun) = (screens.clone(), Instant::now());
        let looked = tokio::task::spawn_blocking(move || looking.look()).await;
        if looked.is_err() {
            // A bug in a look must not keep readers in the belief that nothing changes: they see no more heartbeats.
            return;
        }
        let pause = (begun.elapsed() * PAUSE_TIMES).max(PAUSE_MIN);
        tokio::time::sleep(pause).await;
        // The owner is gone where the other end is: the readers are told that it stops.
        let changed = tokio::time::timeout(LOOK, head.changed()).await;
        if matches!(changed, Ok(Err(_))) {
            return;
        }
    }
}

impl Kept {
    /// The version that a reader has seen whose rows are of this number; `None` where the changes since are not kept.
    fn version_of(&self, seq: u64) -> Option<u64> {
        if self.version == 0 || seq < self.after_seq || seq > self.seq {
            return None;
        }
        // Several versions may be of one number: what changed with that number is sent once more.
        let first = self.changes.iter().find(|change| change.seq >= seq);
        Some(first.map_or(self.version, |change| change.version - 1))
    }

    /// The version, where something changed.
    fn take(&mut self, world: &Arc<World>, beside: &ScreenFacts, now: machines::Millis) -> Option<u64> {
        let rows = Rows::new(world, beside, now);
        let mut view = View {
            seq: world.seq,
            at: api::time(now),
            facts: vec![rows.facts()],
            columns: rows.columns(),
            tasks: Vec::new(),
            workers: rows.workers(),
            waiting: rows.waiting(),
            queue: rows.queue(),
        };
        let old = self.rest.take();
        let touched = touched(world, old.as_ref(), &view);
        let empty = View {
            facts: Vec::new(),
            columns: Vec::new(),
            workers: Vec::new(),
            waiting: Vec::new(),
            queue: Vec::new(),
            ..view.clone()
        };
        let old = old.unwrap_or(empty);
        let (facts, _) = changed(&old.facts, &mut view.facts);
        let (columns, _) = changed(&old.columns, &mut view.columns);
        let (workers, gone_workers) = changed(&old.workers, &mut view.workers);
        let (waiting, gone_waiting) = changed(&old.waiting, &mut view.waiting);
        let (queue, gone_queue) = changed(&old.queue, &mut view.queue);
        let notes_changed = !columns.is_empty()
            || old.facts.first().map(|row| row.running) != view.facts.first().map(|row| row.running);
        let all = notes_changed || self.refreshed.is_none_or(|at| at.elapsed() > REFRESH);
        if all {
            self.refreshed = Some(Instant::now());
        }
        let change = ViewChange {
            seq: view.seq,
            at: view.at.clone(),
            facts,
            columns,
            tasks: self.take_cards(world, &rows, all, &touched),
            workers,
            waiting,
            queue,
            gone: GoneRows { workers: gone_workers, waiting: gone_waiting, queue: gone_queue },
        };
        let first = self.version == 0;
        let moved = world.seq != self.seq;
        let same = change == ViewChange { seq: change.seq, at: change.at.clone(), ..ViewChange::default() };
        self.seq = world.seq;
        self.rest = Some(view);
        if same && !moved {
            return None;
        }
        self.version += 1;
        self.whole = None;
        if first {
            (self.after, self.after_seq) = (self.version, self.seq);
            return Some(self.version);
        }
        let frame = frame("change", Some(change.seq), &change);
        self.bytes += frame.len();
        self.changes.push_back(Change { version: self.version, seq: change.seq, frame });
        while self.bytes > CHANGES_BYTES_MAX
            && let Some(oldest) = self.changes.pop_front()
        {
            self.bytes -= oldest.frame.len();
            (self.after, self.after_seq) = (oldest.version, oldest.seq);
        }
        Some(self.version)
    }

    /// The cards that changed. A task that has not changed is the very same value in the next World.
    fn take_cards(
        &mut self,
        world: &Arc<World>,
        rows: &Rows,
        all: bool,
        touched: &BTreeSet<String>,
    ) -> Vec<TaskRow> {
        let mut changed = Vec::new();
        let mut moved: BTreeSet<TaskId> = BTreeSet::new();
        for task in world.tasks.values() {
            let same = self.cards.get(&task.id).is_some_and(|kept| Arc::ptr_eq(&kept.task, task));
            if !same {
                moved.extend(world.dependents.get(&task.id).into_iter().flatten().cloned());
                moved.extend(task.depends_on.iter().cloned());
                moved.insert(task.id.clone());
            }
        }
        for task in world.tasks.values() {
            let open = all && !task.is_final();
            let wanted = open || moved.contains(&task.id) || touched.contains(task.id.as_str());
            if !wanted && self.cards.contains_key(&task.id) {
                continue;
            }
            let mut card = rows.task(task);
            let known = self.cards.get(&task.id);
            if let Some(known) = known {
                card.seq = known.card.seq;
            } else {
                self.order.push(task.id.clone());
            }
            if known.is_none_or(|known| known.card != card) {
                card.seq = world.seq;
                changed.push(card.clone());
            }
            let text = serde_json::to_string(&card).unwrap_or_default().into_boxed_str();
            self.cards.insert(task.id.clone(), KeptCard { task: task.clone(), card, text });
        }
        changed
    }

    /// The whole as it is sent. Readers of one version share it.
    fn whole(&mut self) -> Result<Bytes, Problem> {
        if let Some(whole) = &self.whole {
            return Ok(whole.clone());
        }
        let Some(rest) = &self.rest else { return Ok(Bytes::new()) };
        let text = serde_json::to_string(rest).unwrap_or_default();
        let cards: Vec<&str> =
            self.order.iter().filter_map(|id| self.cards.get(id)).map(|kept| &*kept.text).collect();
        // The rest has no cards of its own, so they are put where its list is empty.
        let text = text.replacen("\"tasks\":[]", &format!("\"tasks\":[{}]", cards.join(",")), 1);
        let text = Bytes::from(format!("id: {}\nevent: view\ndata: {text}\n\n", self.seq));
        let share = sending::share(CALLER, text.len())?;
        Ok(self.whole.insert(share.map_or(text.clone(), |share| share.around(text))).clone())
    }

    /// Tasks whose branches were not asked yet how many lines they change.
    fn unknown_lines(&mut self, world: &World) -> Vec<(Arc<Task>, String)> {
        let unknown: Vec<(Arc<Task>, String)> = api::screen::tips(world)
            .filter(|(_, tip)| !self.asked.contains(*tip))
            .take(LINES_AT_ONCE)
            .map(|(task, tip)| (task.clone(), tip.to_owned()))
            .collect();
        self.asked.extend(unknown.iter().map(|(_, tip)| tip.clone()));
        unknown
    }
}

/// The tasks whose cards may say something else although the task is the same: those with a worker, in the queue, or about
/// which something waits, now or before.
fn touched(world: &World, old: Option<&View>, new: &View) -> BTreeSet<String> {
    let mut touched: BTreeSet<String> = BTreeSet::new();
    for view in old.into_iter().chain([new]) {
        touched.extend(view.workers.iter().filter_map(|worker| worker.task.clone()));
        touched.extend(view.queue.iter().map(|row| row.task.clone()));
        touched.extend(view.waiting.iter().filter_map(|row| row.task.clone()));
    }
    touched.extend(world.landing.iter().map(|landing| landing.task.to_string()));
    touched
}

/// A row with an id and the number of the record with which it last changed.
trait Row: Clone + PartialEq {
    fn id(&self) -> &str;
    fn seq(&mut self) -> &mut u64;
}

macro_rules! rows {
    ($($row:ty),*) => {$(
        impl Row for $row {
            fn id(&self) -> &str {
                &self.id
            }

            fn seq(&mut self) -> &mut u64 {
                &mut self.seq
            }
        }
    )*};
}

rows!(FactsRow, ColumnRow, WorkerRow, WaitingRow, QueueRow);

/// The rows that are not as they were, and the ids of those that are gone. Rows that are the same keep their number.
fn changed<T: Row>(old: &[T], new: &mut [T]) -> (Vec<T>, Vec<String>) {
    let known: HashMap<&str, &T> = old.iter().map(|row| (row.id(), row)).collect();
    let mut changed = Vec::new();
    for row in new.iter_mut() {
        let seq = *row.seq();
        if let Some(known) = known.get(row.id()) {
            *row.seq() = *(*known).clone().seq();
            if row == *known {
                continue;
            }
            *row.seq() = seq;
        }
        changed.push(row.clone());
    }
    let there: BTreeSet<&str> = new.iter().map(Row::id).collect();
    let gone = known.keys().filter(|id| !there.contains(*id)).map(|id| (*id).to_owned()).collect();
    (changed, gone)
}

/// A reader is counted until it goes.
struct Counted(Arc<Screens>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Reader {
    counted: Counted,
    /// The version that it has seen; `None`: it gets the whole.
    position: Option<u64>,
    version: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    beats: tokio::time::Interval,
    over: bool,
}

impl Reader {
    /// `None`: there is nothing more for this one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over {
                return None;
            }
            if *self.stopping.borrow() {
                self.over = true;
                return Some(Bytes::from_static(COME_BACK));
            }
            self.version.mark_unchanged();
            if let Some(chunk) = self.ready() {
                return Some(chunk);
            }
            tokio::select! {
                biased;
                stopped = self.stopping.changed() => self.over = stopped.is_err(),
                changed = self.version.changed() => self.over = changed.is_err(),
                _ = self.beats.tick() => return Some(self.heartbeat()),
            }
        }
    }

    /// What there is for it now.
    fn ready(&mut self) -> Option<Bytes> {
        let mut kept = self.counted.0.lock();
        if kept.version == 0 {
            return None;
        }
        match self.position {
            Some(seen) if seen == kept.version => None,
            Some(seen) if seen >= kept.after && seen < kept.version => {
                let frames = kept.changes.iter().filter(|change| change.version > seen);
                let chunk: Vec<u8> = frames.flat_map(|change| change.frame.iter().copied()).collect();
                self.position = Some(kept.version);
                Some(chunk.into())
            }
            _ => {
                self.position = Some(kept.version);
                Some(kept.whole().unwrap_or_else(|problem| {
                    self.over = true;
                    frame("problem", None, &problem.document())
                }))
            }
        }
    }

    fn heartbeat(&self) -> Bytes {
        let seq = self.counted.0.lock().seq;
        frame("heartbeat", None, &Heartbeat { seq, at: api::time(base::clock::now()) })
    }
}

/// From which rows a reader goes on: `after` in the query, or the `Last-Event-ID` of one that comes back.
pub(super) fn after(query: &str, last: Option<String>) -> Result<Option<u64>, Problem> {
    let asked: ViewQuery =
        serde_urlencoded::from_str(query).map_err(|error| Problem::bad(format!("invalid query: {error}")))?;
    match last {
        Some(last) => {
            let number =
                last.parse().map_err(|_| Problem::bad("`Last-Event-ID` must be the number of a record"))?;
            Ok(Some(number))
        }
        None => Ok(asked.after.map(|after| api::types::Cursor::number(Some(after)))),
    }
}
