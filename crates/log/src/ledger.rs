//! The ledger: the state that a log needs to decide an append, and the rules for it.
//!
//! Both logs share it, so they cannot disagree about a rule. It touches no file. A log clones it (cheaply:
//! the clone shares its parts), changes the clone, writes the change, and adopts the clone only when
//! the change is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use sha2::{Digest, Sha256};

use super::chain::{Chain, Row, Sum};
use super::{
    Appended, Entry, Fence, Hash, Head, Leased, LogError, Millis, NewEffect, Pending, TEXT_BYTES_MAX,
};

/// Where an effect stands in the outbox. Older effects have lower slots.
pub(super) type Slot = u64;

#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    head: Head,
    streams: OrdMap<Arc<str>, u64>,
    streams_sum: Sum,
    outbox: OrdMap<Slot, Arc<Pending>>,
    outbox_sum: Sum,
    // The rest says nothing new: it is the outbox again, in the orders in which it is asked for.
    slots: OrdMap<Arc<str>, Slot>,
    unleased: OrdSet<Slot>,
    leases: OrdSet<(Millis, Slot)>,
}

/// What must be written to turn one ledger into the next.
#[derive(Debug, Default)]
pub(super) struct Change<'a> {
    pub rows: Vec<Row<'a>>,
    /// The streams that the rows touch, with their new versions.
    pub streams: BTreeMap<&'a str, u64>,
    /// Removed before anything is put.
    pub removed: BTreeSet<Slot>,
    pub put: BTreeMap<Slot, Arc<Pending>>,
}

impl Change<'_> {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.removed.is_empty() && self.put.is_empty()
    }
}

impl Ledger {
    /// The ledger as it was stored. What is stored twice is damage, which the caller names.
    pub fn restore(
        head: Head,
        streams: impl IntoIterator<Item = (String, u64)>,
        outbox: impl IntoIterator<Item = (Slot, Pending)>,
    ) -> Result<Ledger, String> {
        let mut ledger = Ledger { head, ..Ledger::default() };
        for (stream, version) in streams {
            ledger.set_version(&stream, version);
        }
        for (slot, pending) in outbox {
            if ledger.slots.contains_key(pending.id.as_str()) {
                return Err(format!("effect `{}` is there twice", pending.id));
            }
            ledger.put(slot, Arc::new(pending));
        }
        Ok(ledger)
    }

    pub fn head(&self) -> Head {
        self.head
    }

    pub fn streams_sum(&self) -> Sum {
        self.streams_sum
    }

    pub fn outbox_sum(&self) -> Sum {
        self.outbox_sum
    }

    pub fn version(&self, stream: &str) -> u64 {
        self.streams.get(stream).copied().unwrap_or(0)
    }

    pub fn append<'a>(&mut self, batch: &'a [Entry]) -> Result<(Vec<Appended>, Change<'a>), LogError> {
        let mut change = Change::default();
        let mut chain = Chain::after(self.head);
        let mut appended = Vec::with_capacity(batch.len());
        for entry in batch {
            appended.push(self.append_entry(entry, &mut chain, &mut change)?);
        }
        for (stream, version) in &change.streams {
            self.set_version(stream, *version);
        }
        Ok((appended, change))
    }

    fn append_entry<'a>(
        &mut self,
        entry: &'a Entry,
        chain: &mut Chain,
        change: &mut Change<'a>,
    ) -> Result<Appended, LogError> {
        if let Some(fence) = &entry.fence
            && self.current(fence).is_none()
        {
            return Ok(Appended::Fenced { effect: fence.effect.clone(), attempt: fence.attempt });
        }
        for (stream, expected) in &entry.expected {
            let actual = self.version_within(stream, change);
            if actual != *expected {
                return Ok(Appended::Conflict { stream: stream.clone(), expected: *expected, actual });
            }
        }
        check_sizes(entry)?;

        let before = self.head.seq;
        for record in &entry.records {
            let version = self.version_within(&record.stream, change) + 1;
            let mut row = Row {
                seq: self.head.seq + 1,
                stream: &record.stream,
                version,
                at: entry.at,
                actor: &entry.actor,
                command: &entry.command,
                kind: &record.kind,
                data: &record.data,
                hash: [0; 32],
            };
            chain.extend(&mut row);
            self.head = chain.end();
            change.streams.insert(&record.stream, version);
            change.rows.push(row);
        }
        for effect in &entry.effects {
            self.add_effect(effect, change)?;
        }
        for id in &entry.finished {
            self.finish(id, change);
        }
        let first = if entry.records.is_empty() { before } else { before + 1 };
        Ok(Appended::Written { first, last: self.head.seq })
    }

    pub fn lease(
        &mut self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> (Vec<Leased>, Change<'static>) {
        let mut slots: BTreeSet<Slot> = self.unleased.iter().take(limit).copied().collect();
        slots.extend(self.leases.range(..=(now, Slot::MAX)).map(|(_, slot)| *slot));

        let mut leased = Vec::new();
        let mut change = Change::default();
        for slot in slots.into_iter().take(limit) {
            let pending = self.replace(slot, &mut change, |pending| {
                pending.attempt += 1;
                pending.owner = Some(owner.to_owned());
                pending.until = Some(until);
            });
            leased.push(Leased {
                id: pending.id.clone(),
                kind: pending.kind.clone(),
                data: pending.data.clone(),
                attempt: pending.attempt,
                until,
            });
        }
        (leased, change)
    }

    /// `None` where the attempt is fenced, and for a timer, which has no lease to give up.
    pub fn release(&mut self, fence: &Fence) -> Option<Change<'static>> {
        self.change_lease(fence, |pending| {
            pending.owner = None;
            pending.until = None;
        })
    }

    pub fn holds(&self, fence: &Fence) -> bool {
        self.current(fence).is_some()
    }

    pub fn outbox(&self) -> Vec<Pending> {
        self.outbox.values().map(|pending| Pending::clone(pending)).collect()
    }

    /// The slot of the effect, if this attempt at it is the current one.
    fn current(&self, fence: &Fence) -> Option<Slot> {
        let slot = *self.slots.get(fence.effect.as_str())?;
        let pending = self.outbox.get(&slot)?;
        let held = pending.owner.is_some() || pending.due.is_some();
        (held && pending.attempt == fence.attempt).then_some(slot)
    }

    fn change_lease(&mut self, fence: &Fence, edit: impl FnOnce(&mut Pending)) -> Option<Change<'static>> {
        let slot = self.current(fence)?;
        self.outbox.get(&slot)?.owner.as_ref()?;
        let mut change = Change::default();
        self.replace(slot, &mut change, edit);
        Some(change)
    }

    fn add_effect(&mut self, effect: &NewEffect, change: &mut Change<'_>) -> Result<(), LogError> {
        if self.slots.contains_key(effect.id.as_str()) {
            return Err(LogError::Duplicate { effect: effect.id.clone() });
        }
        let slot = self.outbox.get_max().map_or(1, |(slot, _)| slot + 1);
        let pending = Arc::new(Pending {
            id: effect.id.clone(),
            kind: effect.kind.clone(),
            due: effect.due,
            data: effect.data.clone(),
            attempt: 0,
            owner: None,
            until: None,
        });
        self.put(slot, pending.clone());
        change.put.insert(slot, pending);
        Ok(())
    }

    /// One that is not pending was finished before, which is no fault: two outcomes may both end an effect.
    fn finish(&mut self, id: &str, change: &mut Change<'_>) {
        let Some(slot) = self.slots.get(id).copied() else { return };
        self.take_out(slot);
        change.put.remove(&slot);
        // A slot may be taken again within the batch, so it is removed even if it was put by this very change.
        change.removed.insert(slot);
    }

    fn replace(
        &mut self,
        slot: Slot,
        change: &mut Change<'_>,
        edit: impl FnOnce(&mut Pending),
    ) -> Arc<Pending> {
        let old = self.take_out(slot);
        let mut new = Pending::clone(&old);
        edit(&mut new);
        let new = Arc::new(new);
        self.put(slot, new.clone());
        change.put.insert(slot, new.clone());
        new
    }

    /// The one way into the outbox.
    fn put(&mut self, slot: Slot, pending: Arc<Pending>) {
        self.outbox_sum.add(pending_hash(slot, &pending));
        let id: Arc<str> = Arc::from(pending.id.as_str());
        self.slots.insert(id, slot);
        match (pending.due, pending.until) {
            (Some(_), _) => {}
            (None, Some(until)) => drop(self.leases.insert((until, slot))),
            (None, None) => drop(self.unleased.insert(slot)),
        }
        self.outbox.insert(slot, pending);
    }

    /// The one way out of the outbox.
    fn take_out(&mut self, slot: Slot) -> Arc<Pending> {
        let pending = self.outbox.remove(&slot);
        let pending = pending.unwrap_or_else(|| panic!("no effect at slot {slot} of the outbox"));
        self.outbox_sum.remove(pending_hash(slot, &pending));
        let id: Arc<str> = Arc::from(pending.id.as_str());
        self.slots.remove(&id);
        match (pending.due, pending.until) {
            (Some(_), _) => {}
            (None, Some(until)) => drop(self.leases.remove(&(until, slot))),
            (None, None) => drop(self.unleased.remove(&slot)),
        }
        pending
    }

    /// A stream's version while a batch is under way. The ledger itself learns it once per stream and batch.
    fn version_within(&self, stream: &str, change: &Change<'_>) -> u64 {
        change.streams.get(stream).copied().unwrap_or_else(|| self.version(stream))
    }

    fn set_version(&mut self, stream: &str, version: u64) {
        if let Some((_, known)) = self.streams.get_key_value_mut(stream) {
            self.streams_sum.remove(stream_hash(stream, *known));
            *known = version;
        } else {
            self.streams.insert(Arc::from(stream), version);
        }
        self.streams_sum.add(stream_hash(stream, version));
    }
}

fn check_sizes(entry: &Entry) -> Result<(), LogError> {
    let records = entry.records.iter().flat_map(|record| [&record.stream, &record.kind, &record.data]);
    let effects = entry.effects.iter().flat_map(|effect| [&effect.id, &effect.kind, &effect.data]);
    let texts = [&entry.command, &entry.actor].into_iter().chain(records).chain(effects);
    match texts.map(String::len).find(|bytes| *bytes > TEXT_BYTES_MAX) {
        Some(bytes) => Err(LogError::TooLarge { bytes, limit: TEXT_BYTES_MAX }),
        None => Ok(()),
    }
}

fn stream_hash(stream: &str, version: u64) -> Hash {
    Sha256::new().chain_update(version.to_le_bytes()).chain_update(stream).finalize().into()
}

fn pending_hash(slot: Slot, pending: &Pending) -> Hash {
    let Pending { id, kind, due, data, attempt, owner, until } = pending;
    let mut hasher = Sha256::new();
    hasher.update(slot.to_le_bytes());
    hasher.update(attempt.to_le_bytes());
    for time in [due, until] {
        hasher.update([u8::from(time.is_some())]);
        hasher.update(time.unwrap_or(0).to_le_bytes());
    }
    for text in [Some(id), Some(kind), Some(data), owner.as_ref()] {
        hasher.update([u8::from(text.is_some())]);
        let text = text.map_or("", String::as_str);
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize().into()
}
