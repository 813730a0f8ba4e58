//! The fold: reads a log into a World.
//!
//! Invariants:
//! - the World after record n depends on records 1 to n and on nothing else, so a snapshot plus its tail gives the same
//!   World as the whole log;
//! - a snapshot is used only if this very version wrote it: another version may have folded differently.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use kernel::event::BadEvent;
use kernel::{Event, World};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{Head, Log, LogError, Record, Seq, Snapshot};

/// So much of the log is handed from the thread that reads it to the one that folds it at once.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS_WAITING: usize = 4;

/// Why a log cannot be folded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log was written by a version that knows more than this one.
    #[error("record {seq} of the log needs adjutant {needed} or newer, and this is {ours}: {why}")]
    Newer { seq: Seq, needed: SmolStr, ours: SmolStr, why: String },
    #[error("record {seq} of the log cannot be read: {why}")]
    Unreadable { seq: Seq, why: String },
    /// The hashes are right, and yet it does not follow: it was written by other rules, or by a forger.
    #[error("record {seq} of the log does not follow from those before it: {why}")]
    DoesNotFold { seq: Seq, why: String },
}

/// What a log folds to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folded {
    pub world: World,
    pub head: Head,
    /// The versions of Adjutant that have written to it.
    pub writers: BTreeSet<SmolStr>,
    /// The record of the snapshot that the fold began with; 0 where it began at the beginning.
    pub snapshot: Seq,
}

impl Folded {
    /// Folds the newest snapshot that `version` can read, and what came after it.
    pub fn read(log: &dyn Log, version: &str) -> Result<Folded, OpenError> {
        let snapshot = log.snapshot()?.and_then(|snapshot| Folded::restore(&snapshot, version));
        let mut folded = snapshot.unwrap_or_default();
        folded.read_on(log, version)?;
        Ok(folded)
    }

    /// Folds every record, whatever snapshots there are.
    pub fn read_all(log: &dyn Log, version: &str) -> Result<Folded, OpenError> {
        let mut folded = Folded::default();
        folded.read_on(log, version)?;
        Ok(folded)
    }

    /// Folds what the log holds beyond what is folded already. After an error what was folded is of no use.
    pub fn read_on(&mut self, log: &dyn Log, version: &str) -> Result<(), OpenError> {
        let mut reader = Reader { chunk: Chunk::after(self.head.seq), send: None };
        let mut head = self.head;
        let mut folder = Folder { folded: std::mem::take(self), version: SmolStr::new(version) };

        // A short tail is folded here. A long one is read and checked by this thread while another folds.
        let (read, folded) = std::thread::scope(|scope| {
            let mut thread = None;
            let read = log.scan(head.seq, &mut |record| {
                head = Head { seq: record.seq, hash: record.hash };
                if !reader.chunk.is_full() {
                    reader.chunk.push(record);
                    return ControlFlow::Continue(());
                }
                if thread.is_none() {
                    let (send, receive) = sync_channel(CHUNKS_WAITING);
                    reader.send = Some(send);
                    let folder = std::mem::take(&mut folder);
                    let named = std::thread::Builder::new().name("fold".to_owned());
                    let spawned = named.spawn_scoped(scope, move || folder.take_all(&receive));
                    thread = Some(spawned.expect("the system has a thread for us"));
                }
                let flow = reader.hand_over(record.seq - 1);
                reader.chunk.push(record);
                flow
            });
            let Reader { chunk, send } = reader;
            let folded = match (thread, send) {
                (Some(thread), Some(send)) => {
                    let _ = send.send(Piece::Read(chunk));
                    drop(send);
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                _ => folder.fold_chunk(&chunk).map(|()| folder),
            };
            (read, folded)
        });
        // What does not fold comes before what could not be read: the reader is always ahead.
        let folded = folded?;
        read?;
        *self = Folded { head, ..folded.folded };
        Ok(())
    }

    /// Folds one record, and gives the event that it was.
    pub fn fold_record(
        &mut self,
        seq: Seq,
        kind: &str,
        data: &str,
        version: &str,
    ) -> Result<Event, OpenError> {
        let event = Event::decode(kind, data).map_err(|bad| self.unreadable(seq, &bad, version))?;
        self.fold_event(seq, &event)?;
        Ok(event)
    }

    fn fold_event(&mut self, seq: Seq, event: &Event) -> Result<(), OpenError> {
        if let Event::WriterSeen(seen) = event {
            self.writers.insert(seen.version.clone());
        }
        let folded = self.world.apply(event);
        folded.map_err(|error| OpenError::DoesNotFold { seq, why: error.to_string() })
    }

    /// A newer version may have added kinds, and fields to those that we know.
    fn unreadable(&self, seq: Seq, bad: &BadEvent, version: &str) -> OpenError {
        let why = bad.to_string();
        let newest = self.writers.iter().max_by_key(|writer| version_order(writer));
        match newest.filter(|newest| version_order(newest) > version_order(version)) {
            Some(needed) => OpenError::Newer { seq, needed: needed.clone(), ours: version.into(), why },
            None => OpenError::Unreadable { seq, why },
        }
    }

    pub fn snapshot(&self, version: &str) -> Option<Snapshot> {
        let stored = StoredRef { version, writers: &self.writers, world: &self.world };
        let data = rmp_serde::to_vec_named(&stored).ok()?;
        Some(Snapshot { seq: self.head.seq, hash: self.head.hash, data })
    }

    fn restore(snapshot: &Snapshot, version: &str) -> Option<Folded> {
        // The version is read first: what another one wrote need not be understood, nor half understood.
        let Version { version: written_by } = rmp_serde::from_slice(&snapshot.data).ok()?;
        if written_by != version {
            return None;
        }
        let Stored { writers, world } = rmp_serde::from_slice(&snapshot.data).ok()?;
        let head = Head { seq: snapshot.seq, hash: snapshot.hash };
        (world.seq == head.seq).then_some(Folded { world, head, writers, snapshot: head.seq })
    }
}

#[derive(Serialize)]
struct StoredRef<'a> {
    version: &'a str,
    writers: &'a BTreeSet<SmolStr>,
    world: &'a World,
}

#[derive(Deserialize)]
struct Version {
    version: SmolStr,
}

#[derive(Deserialize)]
struct Stored {
    writers: BTreeSet<SmolStr>,
    world: World,
}

/// Some records in a row: what folding needs of them, in one piece of memory.
struct Chunk {
    after: Seq,
    text: String,
    /// Where each record's kind and data end.
    ends: Vec<(usize, usize)>,
}

impl Chunk {
    fn after(after: Seq) -> Chunk {
        Chunk { after, text: String::new(), ends: Vec::new() }
    }

    fn is_full(&self) -> bool {
        self.text.len() >= CHUNK_BYTES
    }

    fn push(&mut self, record: &Record) {
        self.text.push_str(&record.kind);
        let kind = self.text.len();
        self.text.push_str(&record.data);
        self.ends.push((kind, self.text.len()));
    }
}

/// What is handed over: as it was read; or decoded already, by a reader that would otherwise have waited.
enum Piece {
    Read(Chunk),
    Decoded { after: Seq, events: Vec<Event>, then: Option<BadEvent> },
}

impl Chunk {
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |(kind, data)| {
            let texts = (&self.text[start..*kind], &self.text[*kind..*data]);
            start = *data;
            texts
        })
    }

    fn decode(&self) -> Piece {
        let mut events = Vec::with_capacity(self.ends.len());
        for (kind, data) in self.texts() {
            match Event::decode(kind, data) {
                Ok(event) => events.push(event),
                Err(bad) => return Piece::Decoded { after: self.after, events, then: Some(bad) },
            }
        }
        Piece::Decoded { after: self.after, events, then: None }
    }
}

struct Reader {
    chunk: Chunk,
    send: Option<SyncSender<Piece>>,
}

impl Reader {
    fn hand_over(&mut self, last: Seq) -> ControlFlow<()> {
        let full = std::mem::replace(&mut self.chunk, Chunk::after(last));
        let Some(send) = &self.send else { return ControlFlow::Break(()) };
        let sent = match send.try_send(Piece::Read(full)) {
            // Folding is behind, so that what can be done for it is done here.
            Err(TrySendError::Full(Piece::Read(full))) => send.send(full.decode()).is_ok(),
            sent => sent.is_ok(),
        };
        // Where it could not be handed over, the other end has given up, and says why.
        if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

#[derive(Default)]
struct Folder {
    folded: Folded,
    version: SmolStr,
}

impl Folder {
    fn take_all(mut self, pieces: &Receiver<Piece>) -> Result<Folder, OpenError> {
        for piece in pieces {
            match piece {
                Piece::Read(chunk) => self.fold_chunk(&chunk)?,
                Piece::Decoded { after, events, then } => {
                    for (seq, event) in (after + 1..).zip(&events) {
                        self.folded.fold_event(seq, event)?;
                    }
                    if let Some(bad) = then {
                        let seq = after + events.len() as Seq + 1;
                        return Err(self.folded.unreadable(seq, &bad, &self.version));
                    }
                }
            }
        }
        Ok(self)
    }

    fn fold_chunk(&mut self, chunk: &Chunk) -> Result<(), OpenError> {
        for (seq, (kind, data)) in (chunk.after + 1..).zip(chunk.texts()) {
            self.folded.fold_record(seq, kind, data, &self.version)?;
        }
        Ok(())
    }
}

/// `1.10.0` comes after `1.9.3`. What follows a `-` or `+` is not compared.
fn version_order(version: &str) -> Vec<u64> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    numbers.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}
