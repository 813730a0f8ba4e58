//! A store in memory, for tests: the same promises, nothing on disk.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{
    LinkRow, Look, MakeSecret, Meta, Parts, Producer, Store, StoreError, StreamId, SubscriptionRow, Tables,
    Views, VisitChunk, Work,
};

/// A clone is another handle on the same store.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    committed: MemoryTables,
    secrets: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Default)]
struct MemoryTables {
    streams: BTreeMap<StreamId, Meta>,
    last_id: StreamId,
    /// By stream and end: whether an append ends there, and the data.
    chunks: BTreeMap<(StreamId, u64), (bool, Vec<u8>)>,
    producers: BTreeMap<(StreamId, String), (u64, u64)>,
    subscriptions: BTreeMap<String, SubscriptionRow>,
    links: BTreeMap<(String, String), LinkRow>,
    has_no_room: bool,
}

/// What still fits where there is no room.
const ROOM_LEFT: usize = 4 * 1024;

impl MemoryStore {
    pub fn parts(&self) -> Parts {
        Parts { writer: Box::new(self.clone()), views: Arc::new(self.clone()) }
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap()
    }
}

impl Store for MemoryStore {
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), StoreError> {
        let mut next = self.stored().committed.clone();
        let worked = work(&mut next);
        match worked {
            Ok(()) => self.stored().committed = next,
            Err(_) => self.stored().committed.has_no_room = false,
        }
        worked
    }

    fn is_anything_due(&mut self, now: u64) -> bool {
        let tables = &self.stored().committed;
        let is_due = |due: &Option<u64>| due.is_some_and(|due| due <= now);
        tables.streams.values().any(|stream| is_due(&stream.due))
            || tables.subscriptions.values().any(|row| is_due(&row.lease_until) || is_due(&row.next_attempt))
    }

    fn secret(&mut self, name: &str, make: &mut MakeSecret<'_>) -> Result<Vec<u8>, String> {
        let mut stored = self.stored();
        if let Some(known) = stored.secrets.get(name) {
            return Ok(known.clone());
        }
        let made = make()?;
        stored.secrets.insert(name.to_owned(), made.clone());
        Ok(made)
    }
}

impl Views for MemoryStore {
    fn view(&self, look: &mut Look<'_>) -> Result<(), StoreError> {
        let view = self.stored().committed.clone();
        look(&view);
        Ok(())
    }

    fn at_once(&self) -> usize {
        4
    }
}

impl Tables for MemoryTables {
    fn stream(&self, path: &str) -> Result<Option<Meta>, StoreError> {
        Ok(self.streams.values().find(|stream| stream.path == path).cloned())
    }

    fn stream_by_id(&self, id: StreamId) -> Result<Option<Meta>, StoreError> {
        Ok(self.streams.get(&id).cloned())
    }

    fn add_stream(&mut self, new: &Meta) -> Result<StreamId, StoreError> {
        if self.stream(&new.path)?.is_some() {
            return Err(StoreError::Failed(format!("there is a stream `{}` already", new.path)));
        }
        self.last_id += 1;
        self.streams.insert(self.last_id, Meta { id: self.last_id, ..new.clone() });
        Ok(self.last_id)
    }

    fn set_stream(&mut self, stream: &Meta) -> Result<(), StoreError> {
        if let Some(row) = self.streams.get_mut(&stream.id) {
            let Meta { due, tail, closed, deleted, seq, closer, .. } = stream.clone();
            *row = Meta { due, tail, closed, deleted, seq, closer, ..row.clone() };
        }
        Ok(())
    }

    fn remove_stream(&mut self, id: StreamId) -> Result<(), StoreError> {
        self.streams.remove(&id);
        self.chunks.retain(|(stream, _), _| *stream != id);
        self.producers.retain(|(stream, _), _| *stream != id);
        Ok(())
    }

    fn has_forks(&self, id: StreamId) -> Result<bool, StoreError> {
        Ok(self.streams.values().any(|stream| stream.parent == Some(id)))
    }

    fn due_streams(&self, now: u64, most: usize) -> Result<Vec<StreamId>, StoreError> {
        let due = self.streams.values().filter(|stream| stream.due.is_some_and(|due| due <= now));
        Ok(due.map(|stream| stream.id).take(most).collect())
    }

    fn streams_below(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let below = self.streams.values().filter(|row| !row.deleted && row.path.starts_with(prefix));
        let mut below: Vec<_> = below.map(|row| (row.path.clone(), row.tail)).collect();
        below.sort();
        Ok(below)
    }

    fn add_chunk(&mut self, stream: StreamId, end: u64, last: bool, data: &[u8]) -> Result<(), StoreError> {
        if self.has_no_room && data.len() > ROOM_LEFT {
            return Err(StoreError::Full);
        }
        match self.chunks.insert((stream, end), (last, data.to_vec())) {
            None => Ok(()),
            Some(_) => Err(StoreError::Failed(format!("there is a piece of stream {stream} up to {end}"))),
        }
    }

    fn chunks(&self, stream: StreamId, after: u64, visit: &mut VisitChunk<'_>) -> Result<(), StoreError> {
        for ((_, end), (_, data)) in self.chunks.range((stream, after + 1)..=(stream, u64::MAX)) {
            if let ControlFlow::Break(()) = visit(*end, data) {
                break;
            }
        }
        Ok(())
    }

    fn append_end(&self, stream: StreamId, after: u64) -> Result<Option<u64>, StoreError> {
        let mut chunks = self.chunks.range((stream, after + 1)..=(stream, u64::MAX));
        Ok(chunks.find(|(_, (last, _))| *last).map(|((_, end), _)| *end))
    }

    fn producer(&self, stream: StreamId, id: &str) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(self.producers.get(&(stream, id.to_owned())).copied())
    }

    fn set_producer(&mut self, stream: StreamId, producer: &Producer) -> Result<(), StoreError> {
        self.producers.insert((stream, producer.id.clone()), (producer.epoch, producer.seq));
        Ok(())
    }

    fn subscription(&self, id: &str) -> Result<Option<SubscriptionRow>, StoreError> {
        Ok(self.subscriptions.get(id).cloned())
    }

    fn subscriptions(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.subscriptions.values().map(|row| (row.id.clone(), row.config.clone())).collect())
    }

    fn add_subscription(&mut self, new: &SubscriptionRow) -> Result<(), StoreError> {
        match self.subscriptions.insert(new.id.clone(), new.clone()) {
            None => Ok(()),
            Some(_) => Err(StoreError::Failed(format!("there is a subscription `{}` already", new.id))),
        }
    }

    fn set_subscription(&mut self, subscription: &SubscriptionRow) -> Result<(), StoreError> {
        if let Some(row) = self.subscriptions.get_mut(&subscription.id) {
            let SubscriptionRow { config, base, created, .. } = row.clone();
            *row = SubscriptionRow { config, base, created, ..subscription.clone() };
        }
        Ok(())
    }

    fn remove_subscription(&mut self, id: &str) -> Result<bool, StoreError> {
        self.links.retain(|(subscription, _), _| subscription != id);
        Ok(self.subscriptions.remove(id).is_some())
    }

    fn due_subscriptions(&self, now: u64) -> Result<Vec<String>, StoreError> {
        let is_due = |due: &Option<u64>| due.is_some_and(|due| due <= now);
        let due = self.subscriptions.values();
        let due = due.filter(|row| is_due(&row.lease_until) || is_due(&row.next_attempt));
        Ok(due.map(|row| row.id.clone()).collect())
    }

    fn links(&self, subscription: &str, most: usize) -> Result<Vec<(LinkRow, Option<u64>)>, StoreError> {
        let mut links = Vec::new();
        for ((owner, path), link) in &self.links {
            if owner == subscription {
                let tail = self.stream(path)?.filter(|stream| !stream.deleted).map(|stream| stream.tail);
                links.push((link.clone(), tail));
            }
        }
        // By path already; the sort keeps that.
        links.sort_by_key(|(link, tail)| tail.unwrap_or(0) <= link.acked);
        links.truncate(most);
        Ok(links)
    }

    fn link(&self, subscription: &str, path: &str) -> Result<Option<LinkRow>, StoreError> {
        Ok(self.links.get(&(subscription.to_owned(), path.to_owned())).cloned())
    }

    fn links_to(&self, path: &str) -> Result<Vec<(String, LinkRow)>, StoreError> {
        let to = self.links.iter().filter(|((_, linked), _)| linked == path);
        Ok(to.map(|((subscription, _), link)| (subscription.clone(), link.clone())).collect())
    }

    fn set_link(&mut self, subscription: &str, link: &LinkRow) -> Result<(), StoreError> {
        self.links.insert((subscription.to_owned(), link.path.clone()), link.clone());
        Ok(())
    }

    fn remove_link(&mut self, subscription: &str, path: &str) -> Result<(), StoreError> {
        self.links.remove(&(subscription.to_owned(), path.to_owned()));
        Ok(())
    }

    fn leave_no_room(&mut self) -> Result<(), StoreError> {
        self.has_no_room = true;
        Ok(())
    }
}

mod tests {
    use super::*;
    use crate::storage::conformance::{Specimen, conformance};

    conformance!(InMemory::default());

    #[derive(Default)]
    struct InMemory {
        store: MemoryStore,
    }

    impl Specimen for InMemory {
        fn parts(&mut self) -> Parts {
            self.store.parts()
        }
    }
}
