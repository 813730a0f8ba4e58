//! The owner of a project: the one state from which everything is decided.
//!
//! It holds the World and the log, and one thread at a time uses it: its own, or, if nothing else waits, the thread that
//! asks, so that no other thread has to be woken. All waiting commands are decided one after the other, each on the World
//! that results from the previous one, and are appended as one batch with one sync.
//!
//! Invariants:
//! - a reply means durable: nobody gets an answer before everything that it depends on is on disk;
//! - the World that others see is never ahead of the log on disk. If a batch cannot be written,
//!   the World stays the same, and the log is read before the next batch is decided;
//! - the outcome of a superseded attempt is dropped before it is decided, so that nothing depends on it;
//! - a batch is written only if the log is unchanged since the batch was decided. If another writer was quicker, its
//!   records are folded, and every command of the batch is decided again: only answers of written commands are sent.

mod fold;
mod latest;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kernel::{Actor, Answer, Command, Event, Refusal, World};
use smol_str::SmolStr;

pub use self::fold::{Folded, OpenError};
use self::latest::Latest;
use self::queue::{Asked, Job, Queue, Work};
use crate::spoken::Order;
use crate::{
    Appended, Entry, Fence, Head, Leased, Log, LogError, Millis, NewEffect, NewRecord, Pending, Record, Seq,
    Snapshot, TEXT_BYTES_MAX,
};
use base::crash;

/// The version that this program writes into a log.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// So many times the same commands are decided, where other writers change the log in the meantime.
pub const ATTEMPTS_MAX: u32 = 10;

#[derive(Clone, Debug)]
pub struct Settings {
    pub version: SmolStr,
    /// A snapshot is made after so many records.
    pub snapshot_every: u64,
    /// So many commands are decided at most before they are written.
    pub batch_max: usize,
    /// So many may wait.
    pub queue_max: usize,
    pub secrets: Secrets,
}

/// What the log must never hold: hashes of the tokens that let somebody in, as they are now.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<dyn Fn() -> Vec<String> + Send + Sync>>);

impl Secrets {
    pub fn by(hashes: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Secrets {
        Secrets(Some(Arc::new(hashes)))
    }

    /// The same ask without the tokens that the texts of its events would bring into the log; `None` where there are none.
    /// Whoever asks: a server, a fleet, or a command that owns the log for a moment.
    fn hidden_in(&self, ask: &kernel::Ask, entry: &Entry) -> Option<Result<kernel::Ask, Refusal>> {
        let hashes = self.0.as_ref()?;
        let mut texts = entry.records.iter().map(|record| &record.data);
        if !texts.any(|text| base::secrets::may_hold_one(text)) {
            return None;
        }
        let hashes = hashes();
        let mut texts = entry.records.iter().map(|record| &record.data);
        texts.any(|text| base::secrets::hidden_in(text, &hashes).is_some()).then(|| {
            let hidden = serde_json::to_value(ask).and_then(|mut ask| {
                base::secrets::hide_in(&mut ask, &hashes);
                serde_json::from_value(ask)
            });
            // A name, say, which nothing can stand in for; or it is not from what was asked.
            let held = || Refusal::new(422, "HOLDS_A_TOKEN", "this holds a token of the project");
            hidden.ok().filter(|hidden| hidden != ask).ok_or_else(held)
        })
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            version: SmolStr::new_static(VERSION),
            snapshot_every: 10_000,
            batch_max: 1_000,
            queue_max: 10_000,
            secrets: Secrets::default(),
        }
    }
}

/// The owner. While it lives, its thread does; dropped, it finishes what waits and lets the log go.
#[derive(Debug)]
pub struct Owner {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// A way to the owner, for any thread.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// Why a command got no answer of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The outcome of an attempt that is no longer the current one. It was dropped whole.
    #[error("attempt {attempt} at effect `{effect}` is no longer the current one")]
    Fenced { effect: String, attempt: u32 },
    #[error("a request with the idempotency key `{key}` is still being decided")]
    InFlight { key: SmolStr },
    /// It is not acknowledged. Unless the error is `Full`, it may be in the log all the same: ask again with the same
    /// idempotency key, or look.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Each time that it was decided, another writer had changed the log before it could be written. Nothing of it was.
    #[error("other writers have changed the log {attempts} times while this was decided")]
    Contended { attempts: u32 },
    /// The log says something that does not fold; nothing can be decided until a person has looked.
    #[error(transparent)]
    Broken(#[from] OpenError),
    #[error("the owner of the project has stopped")]
    Stopped,
}

impl SubmitError {
    /// What is left of a conflict after the last attempt.
    fn of_conflict(error: SubmitError) -> SubmitError {
        match error {
            SubmitError::Log(LogError::Conflict { .. }) => SubmitError::Contended { attempts: ATTEMPTS_MAX },
            error => error,
        }
    }
}

type Answered = Result<Answer, SubmitError>;

impl Owner {
    pub fn open(log: Box<dyn Log>) -> Result<Owner, OpenError> {
        Owner::open_with(log, Settings::default())
    }

    pub fn open_with(log: Box<dyn Log>, settings: Settings) -> Result<Owner, OpenError> {
        let folded = Folded::read(&*log, &settings.version)?;
        let queue = Queue::new(settings.queue_max);
        let shared = Arc::new(Shared {
            queue,
            world: Mutex::new(Arc::new(folded.world.clone())),
            latest: Mutex::new(Latest::from(folded.head.seq)),
            head: tokio::sync::watch::Sender::new(folded.head.seq),
            on_append: OnceLock::new(),
            spoken: Order::default(),
            state: Mutex::new(None),
        });
        let (snapshot_at, batch_max) = (folded.snapshot, settings.batch_max);
        let state = OwnerState { log, folded, settings, snapshot_at, snapshot: None, shared: shared.clone() };
        *shared.state() = Some(state);
        let thread = std::thread::Builder::new().name("owner".to_owned());
        let at = shared.clone();
        let thread = thread.spawn(move || at.work(batch_max)).map_err(|error| {
            *shared.state() = None;
            OpenError::Log(LogError::Io { doing: "given a thread", why: error.to_string() })
        })?;
        Ok(Owner { handle: Handle { shared }, thread: Some(thread) })
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.handle.shared.queue.close();
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Handle {
    /// Asks, and waits for the answer. When it is there, it is durable.
    pub fn submit(&self, command: Command, fence: Option<Fence>) -> Result<Answer, SubmitError> {
        let (send, receive) = channel();
        self.send_here(command, fence, move |answered| drop(send.send(answered)))?;
        receive.recv().unwrap_or(Err(SubmitError::Stopped))
    }

    /// Asks without waiting. The answer is given while the state is locked, so what takes it must be quick; it is dropped without
    /// having been called if the owner ends first.
    pub fn send(
        &self,
        command: Command,
        fence: Option<Fence>,
        answer: impl FnOnce(Result<Answer, SubmitError>) + Send + 'static,
    ) -> Result<(), SubmitError> {
        self.shared.queue.push(Job::Decide(Asked::new(command, fence, answer)))
    }

    /// Asks, and waits only if the state is free: then this thread decides by itself, and that takes as long as the disk
    /// does. Otherwise the owner's thread answers later.
    pub fn send_here(
        &self,
        command: Command,
        fence: Option<Fence>,
        answer: impl FnOnce(Result<Answer, SubmitError>) + Send + 'static,
    ) -> Result<(), SubmitError> {
        if let Some(batch) = self.shared.queue.push_or_take(Asked::new(command, fence, answer))? {
            let seat = BatchTurn(&self.shared);
            seat.0.at_desk(|state| state.decide_all(batch));
        }
        Ok(())
    }

    /// Looks at the World as it is on disk. It stands still while it is looked at.
    pub fn query<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.world())
    }

    pub fn world(&self) -> Arc<World> {
        self.shared.world.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The order of what agents write.
    pub fn spoken(&self) -> &Order {
        &self.shared.spoken
    }

    /// Whether commands are still taken.
    pub fn lives(&self) -> bool {
        self.shared.queue.is_open()
    }

    /// Follows the end of the log: it changes with every batch that is on disk, after the World that it leads to.
    pub fn follow(&self) -> tokio::sync::watch::Receiver<Seq> {
        self.shared.head.subscribe()
    }

    /// Is told of every batch that is on disk: its last record, and how long the write took. It runs while the state is locked, so it must be
    /// quick. Only the first that asks is told.
    pub fn on_append(&self, told: impl Fn(Seq, Duration) + Send + Sync + 'static) {
        let _ = self.shared.on_append.set(Box::new(told));
    }

    /// How many commands wait to be decided.
    pub fn waiting(&self) -> usize {
        self.shared.queue.commands()
    }

    pub fn head(&self) -> Result<Head, SubmitError> {
        self.on_log(|log| Ok(log.head()))
    }

    pub fn read(&self, after: Seq, limit: usize) -> Result<Vec<Record>, SubmitError> {
        match self.latest(after, limit) {
            Some(records) => Ok(records),
            None => self.on_log(move |log| log.read(after, limit)),
        }
    }

    /// The same without waiting for anybody, where it was written so lately that it is in memory.
    pub fn latest(&self, after: Seq, limit: usize) -> Option<Vec<Record>> {
        self.shared.latest().read(after, limit)
    }

    /// At most `limit` records after `after`, and no more of them than hold about so many bytes, but one in any case.
    pub fn read_some(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<Vec<Record>, SubmitError> {
        let latest = self.shared.latest().read_some(after, limit, bytes_max);
        match latest {
            Some(records) => Ok(records),
            None => self.on_log(move |log| log.read_some(after, limit, bytes_max)),
        }
    }

    /// Those of one stream, in the same way.
    pub fn read_stream_some(
        &self,
        stream: &str,
        after: Seq,
        through: Seq,
        bytes_max: usize,
    ) -> Result<Vec<Record>, SubmitError> {
        let stream = stream.to_owned();
        self.on_log(move |log| log.read_stream_some(&stream, after, through, bytes_max))
    }

    pub fn read_stream(&self, stream: &str, after: Seq, through: Seq) -> Result<Vec<Record>, SubmitError> {
        self.read_stream_some(stream, after, through, usize::MAX)
    }

    pub fn lease(
        &self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, SubmitError> {
        let owner = owner.to_owned();
        self.change_log(move |log| log.lease(&owner, now, until, limit))
    }

    pub fn release(&self, fence: &Fence) -> Result<bool, SubmitError> {
        let fence = fence.clone();
        self.change_log(move |log| log.release(&fence))
    }

    pub fn outbox(&self) -> Result<Vec<Pending>, SubmitError> {
        self.on_log(|log| log.outbox())
    }

    /// Changes something in the log that no decision rests on, and does so again where another writer was quicker.
    fn change_log<T: Send + 'static>(
        &self,
        change: impl Fn(&mut dyn Log) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, SubmitError> {
        let changed = self.on_log(move |log| {
            let mut changed = change(log);
            for _ in 1..ATTEMPTS_MAX {
                let Err(LogError::Conflict { .. }) = changed else { break };
                log.ready()?;
                changed = change(log);
            }
            changed
        });
        changed.map_err(SubmitError::of_conflict)
    }

    /// Does something with the log between two batches.
    fn on_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Log) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, SubmitError> {
        let (send, receive) = channel();
        let job = move |state: &mut OwnerState| drop(send.send(work(&mut *state.log)));
        self.shared.queue.push(Job::Do(Box::new(job)))?;
        receive.recv().map_err(|_| SubmitError::Stopped)?.map_err(SubmitError::Log)
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("seq", &self.world().seq).finish_non_exhaustive()
    }
}

struct Shared {
    queue: Queue,
    world: Mutex<Arc<World>>,
    latest: Mutex<Latest>,
    head: tokio::sync::watch::Sender<Seq>,
    on_append: OnceLock<Box<OnAppend>>,
    spoken: Order,
    /// `None` before it is set up, and after the owner has ended.
    state: Mutex<Option<OwnerState>>,
}

impl Shared {
    /// What the owner's thread does.
    fn work(&self, batch_max: usize) {
        let _closing = Closing(self);
        let mut was_busy = false;
        while let Some(work) = self.queue.next(batch_max, was_busy) {
            was_busy = true;
            self.at_desk(|state| match work {
                Work::Batch(asked) => state.decide_all(asked),
                Work::Do(job) => job(state),
            });
        }
        self.at_desk(OwnerState::save_snapshot);
    }

    /// Whoever the queue gave work to finds the state free.
    fn at_desk(&self, work: impl FnOnce(&mut OwnerState)) {
        if let Some(state) = &mut *self.state() {
            work(state);
        }
    }

    fn state(&self) -> MutexGuard<'_, Option<OwnerState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type OnAppend = dyn Fn(Seq, Duration) + Send + Sync;

/// What decisions are made with.
struct OwnerState {
    log: Box<dyn Log>,
    /// What is on disk.
    folded: Folded,
    settings: Settings,
    /// The record of the last snapshot that was begun.
    snapshot_at: Seq,
    /// A snapshot in the making.
    snapshot: Option<JoinHandle<Option<Snapshot>>>,
    shared: Arc<Shared>,
}

/// A batch in the making: decided, and not on disk.
struct Batch {
    world: World,
    /// How many entries came before the first command's: the mark of a new writer.
    preamble: usize,
    entries: Vec<Entry>,
}

/// Whoever waits for an answer gets one, also if the thread ends by a panic, and the log is let go.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
        drop(self.0.state().take());
    }
}

/// A thread that decides one batch of its own. If it ends by a panic, the state may be half changed.
struct BatchTurn<'a>(&'a Shared);

impl Drop for BatchTurn<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.abandon();
        }
        self.0.queue.rest();
    }
}

impl OwnerState {
    fn decide_all(&mut self, asked: Vec<Asked>) {
        let mut decided = self.decide_once(&asked);
        for _ in 1..ATTEMPTS_MAX {
            let Err(SubmitError::Log(LogError::Conflict { .. })) = decided else { break };
            decided = self.decide_once(&asked);
        }
        let decided = decided.map_err(SubmitError::of_conflict);
        self.shared.queue.decided(asked.iter().filter_map(|asked| asked.key.as_ref()));
        match decided {
            Ok(answers) => {
                for (asked, answered) in asked.into_iter().zip(answers) {
                    (asked.answer)(answered);
                }
            }
            // Also to those who would have been refused: the refusal may rest on what was not written.
            Err(error) => {
                for asked in asked {
                    (asked.answer)(Err(error.clone()));
                }
            }
        }
        // After the answers: whoever waits for one comes before those who only follow.
        let end = self.folded.head.seq;
        self.shared.head.send_if_modified(|known| std::mem::replace(known, end) != end);
        self.begin_snapshot();
    }

    /// Decides all of them on what the log holds now, and writes what was decided.
    fn decide_once(&mut self, asked: &[Asked]) -> Result<Vec<Answered>, SubmitError> {
        self.catch_up()?;
        let mut batch = self.begin(asked);
        let answers =
            asked.iter().map(|asked| self.decide(&mut batch, &asked.command, asked.fence.as_ref())).collect();
        self.append(batch)?;
        Ok(answers)
    }

    /// Folds what the log holds and the World does not: a batch whose write failed, and yet survived, or what another
    /// writer has appended.
    fn catch_up(&mut self) -> Result<(), SubmitError> {
        let head = self.log.ready()?;
        if head == self.folded.head {
            return Ok(());
        }
        let mut folded = self.folded.clone();
        folded.read_on(&*self.log, &self.settings.version)?;
        *self.shared.latest() = Latest::from(folded.head.seq);
        self.adopt(folded.world, folded.head);
        self.folded.writers = folded.writers;
        Ok(())
    }

    fn begin(&self, asked: &[Asked]) -> Batch {
        let mut batch = Batch { world: self.folded.world.clone(), preamble: 0, entries: Vec::new() };
        let version = &self.settings.version;
        if let Some(first) = asked.first()
            && !self.folded.writers.contains(version)
        {
            let seen = Event::from(kernel::event::WriterSeen { version: version.clone() });
            batch.world.apply(&seen).expect("that a version wrote folds on any World");
            let by_system = Command { actor: Actor::System, ..first.command.clone() };
            batch.entries.push(entry(&by_system, None, &[seen]));
            batch.preamble = 1;
        }
        batch
    }

    fn decide(&self, batch: &mut Batch, command: &Command, fence: Option<&Fence>) -> Answered {
        if let Some(fence) = fence
            && !self.is_current(batch, fence)?
        {
            return Err(SubmitError::Fenced { effect: fence.effect.clone(), attempt: fence.attempt });
        }
        let commit = match kernel::handle(&batch.world, command) {
            Ok(commit) => commit,
            Err(refusal) => return Ok(Answer::Refused(refusal)),
        };
        check_invariants(&batch.world, &commit.world, command);
        if !commit.events.is_empty() {
            let entry = entry(command, fence.cloned(), &commit.events);
            if let Some(hidden) = self.settings.secrets.hidden_in(&command.ask, &entry) {
                return match hidden {
                    Ok(ask) => self.decide(batch, &Command { ask, ..command.clone() }, fence),
                    Err(refusal) => Ok(Answer::Refused(refusal)),
                };
            }
            // One text that the log does not take would fail the whole batch.
            if let Some(bytes) = too_large(&entry) {
                return Err(SubmitError::Log(LogError::TooLarge { bytes, limit: TEXT_BYTES_MAX }));
            }
            batch.entries.push(entry);
            batch.world = commit.world;
        }
        Ok(match commit.answer {
            Ok(reply) => Answer::Done(reply),
            Err(refusal) => Answer::Refused(refusal),
        })
    }

    /// The log knows the attempts, and the World which effects this very batch has ended.
    fn is_current(&self, batch: &Batch, fence: &Fence) -> Result<bool, LogError> {
        let id = machines::names::EffectId::new(&fence.effect);
        let wanted = id.is_ok_and(|id| batch.world.effects.contains_key(&id));
        Ok(wanted && self.log.holds(fence)?)
    }

    fn append(&mut self, mut batch: Batch) -> Result<(), SubmitError> {
        if batch.entries.len() == batch.preamble {
            return Ok(());
        }
        self.expect_versions(&mut batch.entries)?;
        crash::point("owner: before append");
        let began = Instant::now();
        let appended = self.log.append(&batch.entries)?;
        let took = began.elapsed();
        crash::point("owner: after append");
        // The log takes a batch only as long as it is what the batch was decided from.
        let left_out = appended.iter().find(|appended| !matches!(appended, Appended::Written { .. }));
        assert_eq!(
            left_out, None,
            "an entry was left out although it had been checked, and others rest on it"
        );
        if batch.preamble > 0 {
            self.folded.writers.insert(self.settings.version.clone());
        }
        let head = self.log.head();
        assert_eq!(head.seq, batch.world.seq, "the World has folded as many events as the log has records");
        self.keep_latest(head, batch.entries);
        self.adopt(batch.world, head);
        if let Some(told) = self.shared.on_append.get() {
            told(head.seq, took);
        }
        Ok(())
    }

    /// Names the version of each stream that an entry touches. The log was just asked where it ends, so its versions
    /// are those that the World was folded from; the batch itself counts them on.
    fn expect_versions(&self, entries: &mut [Entry]) -> Result<(), LogError> {
        let mut versions = std::collections::HashMap::<String, u64>::new();
        for entry in entries {
            for record in &entry.records {
                let version = match versions.get_mut(&record.stream) {
                    Some(version) => version,
                    None => {
                        let version = self.log.version(&record.stream)?;
                        versions.entry(record.stream.clone()).or_insert(version)
                    }
                };
                if !entry.expected.iter().any(|(stream, _)| *stream == record.stream) {
                    entry.expected.push((record.stream.clone(), *version));
                }
                *version += 1;
            }
        }
        Ok(())
    }

    /// What was just written, for those who follow; where nobody does, nothing is kept.
    fn keep_latest(&self, head: Head, entries: Vec<Entry>) {
        let mut latest = self.shared.latest();
        match self.shared.head.receiver_count() {
            0 => *latest = Latest::from(head.seq),
            _ => latest.add(self.folded.head, entries),
        }
    }

    fn adopt(&mut self, world: World, head: Head) {
        self.folded.world = world;
        self.folded.head = head;
        let seen = Arc::new(self.folded.world.clone());
        *self.shared.world.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// A World in another thread's hands stands still, so it can be written out while this one goes on.
    fn begin_snapshot(&mut self) {
        let due = self.folded.head.seq - self.snapshot_at >= self.settings.snapshot_every;
        if !due || self.snapshot.is_some() {
            return;
        }
        self.snapshot_at = self.folded.head.seq;
        let (folded, version) = (self.folded.clone(), self.settings.version.clone());
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let snapshot = folded.snapshot(&version);
            // Should the owner have stopped in the meantime, it fetches the snapshot by itself.
            let _ = shared.queue.push(Job::Do(Box::new(OwnerState::save_snapshot)));
            snapshot
        });
        self.snapshot = thread.ok();
    }

    /// A snapshot is a cache: one that cannot be saved is no reason to stop.
    fn save_snapshot(&mut self) {
        if let Some(Ok(Some(snapshot))) = self.snapshot.take().map(JoinHandle::join) {
            let _ = self.log.save_snapshot(&snapshot);
        }
    }
}

/// What a decided command writes.
pub fn entry(command: &Command, fence: Option<Fence>, events: &[Event]) -> Entry {
    let mut entry = Entry {
        command: format!("{:032x}", command.id),
        actor: command.actor.to_string(),
        at: command.at,
        fence,
        records: Vec::with_capacity(events.len()),
        ..Entry::default()
    };
    for event in events {
        match event {
            Event::EffectAsked(asked) => entry.effects.push(effect_of(asked)),
            Event::EffectEnded(ended) => entry.finished.push(ended.id.to_string()),
            _ => {}
        }
        entry.records.push(NewRecord {
            stream: event.stream(),
            kind: event.kind().to_owned(),
            data: event.encode(),
        });
    }
    entry
}

/// An effect as the outbox keeps it.
pub(crate) fn effect_of(asked: &kernel::event::EffectAsked) -> NewEffect {
    NewEffect {
        id: asked.id.to_string(),
        kind: asked.what.kind().to_owned(),
        due: asked.what.due(),
        data: serde_json::to_string(&asked.what).expect("an effect is plain data"),
    }
}

fn too_large(entry: &Entry) -> Option<usize> {
    let texts = entry.records.iter().map(|record| &record.data);
    let texts = texts.chain(entry.effects.iter().map(|effect| &effect.data));
    texts.map(String::len).find(|bytes| *bytes > TEXT_BYTES_MAX)
}

/// In debug builds every commit is looked at as a whole.
fn check_invariants(before: &World, after: &World, command: &Command) {
    if cfg!(debug_assertions) {
        let mut violations = kernel::invariants::check(after);
        violations.extend(kernel::invariants::check_commit(before, after));
        let violations: Vec<_> = violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "after {command:?}:\n{}", violations.join("\n"));
    }
}
