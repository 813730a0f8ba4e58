//! What is to be sent and was not taken yet, in one small file: a restart forgets nothing, and nothing is sent for ever.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use kernel::waiting::{About, Kind};
use machines::Millis;
use serde::{Deserialize, Serialize};

/// In the project's folder.
const FILE: &str = "webhooks.json";
/// The first wait after a failure; each further one is twice as long, up to the longest.
const WAIT_FIRST: Millis = 1_000;
const WAIT_MAX: Millis = 60_000;
/// After this long nobody needs to know it any more.
pub const AGE_MAX: Millis = 3_600_000;
/// So many are kept at most; the oldest go first.
const DELIVERIES_MAX: usize = 1_000;

/// What waits, and what it is about: it is told once for as long as it waits.
pub type Thing = (Kind, About);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outbox {
    /// What was told already, or stood there before anybody wanted to be told.
    pub known: BTreeSet<Thing>,
    /// The id of the last standstill that was told.
    #[serde(default)]
    pub standstill: Option<String>,
    pub deliveries: Vec<Delivery>,
}

/// A message for one webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The same at every try, and after every restart: whoever gets it twice knows it.
    pub id: String,
    pub webhook: String,
    pub body: String,
    pub since: Millis,
    pub tries: u32,
    pub next: Millis,
}

impl Outbox {
    fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// `None` where nobody was to be told before. What cannot be read is begun anew: nothing of the work is in it.
    pub fn read(folder: &Path) -> Option<Outbox> {
        serde_json::from_slice(&std::fs::read(Outbox::file(folder)).ok()?).ok()
    }

    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        base::files::write_whole(&Outbox::file(folder), &text)
    }

    /// Nobody wants to be told any more: what waits then is no news when somebody does again.
    pub fn forget(folder: &Path) {
        let _ = std::fs::remove_file(Outbox::file(folder));
    }

    pub fn add(&mut self, delivery: Delivery) {
        let same = |known: &Delivery| known.id == delivery.id && known.webhook == delivery.webhook;
        if self.deliveries.iter().any(same) {
            return;
        }
        if self.deliveries.len() >= DELIVERIES_MAX {
            self.deliveries.remove(0);
        }
        self.deliveries.push(delivery);
    }

    pub fn taken(&mut self, id: &str, webhook: &str) {
        self.deliveries.retain(|delivery| delivery.id != id || delivery.webhook != webhook);
    }

    /// It is tried again later. True: never again, because it is too old.
    pub fn failed(&mut self, id: &str, webhook: &str, now: Millis) -> bool {
        let of = |delivery: &&mut Delivery| delivery.id == id && delivery.webhook == webhook;
        let Some(delivery) = self.deliveries.iter_mut().find(of) else { return false };
        let wait = WAIT_FIRST.saturating_mul(1 << delivery.tries.min(16)).min(WAIT_MAX);
        (delivery.tries, delivery.next) = (delivery.tries + 1, now + wait);
        let over = delivery.next - delivery.since > AGE_MAX;
        if over {
            self.taken(id, webhook);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: &str) -> Delivery {
        let (id, webhook, body) = (id.to_owned(), "pager".to_owned(), "{}".to_owned());
        Delivery { id, webhook, body, since: 0, tries: 0, next: 0 }
    }

    #[test]
    fn waits_grow_to_a_minute_and_end_after_an_hour() {
        let mut outbox = Outbox::default();
        outbox.add(delivery("1"));
        let (mut now, mut waits) = (0, Vec::new());
        while !outbox.failed("1", "pager", now) {
            waits.push(outbox.deliveries[0].next - now);
            now = outbox.deliveries[0].next;
        }
        assert_eq!(waits[..7], [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
        assert!(outbox.deliveries.is_empty() && now > AGE_MAX - WAIT_MAX, "{now}");
    }

    #[test]
    fn the_same_is_kept_once_and_only_so_many_are() {
        let mut outbox = Outbox::default();
        (0..DELIVERIES_MAX + 1).for_each(|number| outbox.add(delivery(&number.to_string())));
        outbox.add(delivery("7"));
        assert_eq!(outbox.deliveries.len(), DELIVERIES_MAX);
        assert_eq!(outbox.deliveries[0].id, "1", "the oldest has gone");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Outbox::read(folder.path()), None);
        let mut outbox = Outbox::default();
        outbox.known.insert((Kind::FullDisk, About::default()));
        outbox.add(delivery("1"));
        outbox.write(folder.path()).unwrap();
        assert_eq!(Outbox::read(folder.path()), Some(outbox));
    }
}
