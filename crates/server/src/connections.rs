//! How many connections the owner keeps open, and for whom.
//!
//! A connection costs a descriptor before anybody has said who asks, and descriptors are what agents, tests and the log
//! are served with too. So all connections together are a part of what the process may open; what agents and tests
//! open is held to a share of that, each of them to a few, and the rest is kept for people.
//!
//! A process that runs for a step or a test is known by the keeper above it: it cannot leave that one by forking.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use process::keeper;
use tokio::net::UnixStream;
use tokio::sync::Notify;

/// Connections are at most this part of the descriptors that the process may open, and never more than this many.
const PART_OF_DESCRIPTORS: usize = 4;
const ALL_MAX: usize = 1024;
const PART_OF_DESCRIPTORS_TCP: usize = 2;
const TCP_MAX: usize = 16_384;
/// All steps and tests together have half of them; each has this many at most.
const KEPT_EACH_MAX: usize = 16;

/// Who is at the other end, as the system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Not below any keeper: a person's command, a page, a program of theirs.
    Person,
    /// Of a step or a test: the pid of its keeper.
    Kept(i32),
    /// The process that connected is gone, though its connection is not. A person's command waits for its answer.
    Gone,
}

impl Peer {
    pub fn of(stream: &UnixStream) -> Peer {
        let Some(pid) = stream.peer_cred().ok().and_then(|peer| peer.pid()) else { return Peer::Gone };
        match keeper::above(pid) {
            Some(Some(keeper)) => Peer::Kept(keeper),
            Some(None) => Peer::Person,
            None => Peer::Gone,
        }
    }
}

/// How many connections there may be, and which are open.
pub struct ConnectionLimit {
    all: usize,
    kept: usize,
    each: usize,
    taken: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    connections: BTreeMap<u64, OpenConnection>,
    next: u64,
}

struct OpenConnection {
    peer: Peer,
    /// A request with a token that the project knows came over it.
    known: bool,
    leave: Arc<Notify>,
}

/// The right to a connection, for as long as the connection lives.
pub struct ConnectionPermit {
    number: u64,
    connections: Arc<ConnectionLimit>,
    leave: Arc<Notify>,
}

impl ConnectionLimit {
    /// As many as the process' own limit leaves room for.
    pub fn new(descriptors: usize) -> Arc<ConnectionLimit> {
        let all = (descriptors / PART_OF_DESCRIPTORS).clamp(4, ALL_MAX);
        let kept = all / 2;
        Arc::new(ConnectionLimit { all, kept, each: KEPT_EACH_MAX.min(kept), taken: Mutex::default() })
    }

    /// Those of an address: whoever follows something for hours has one, and there may be thousands of them. Who comes is
    /// known by a token only.
    pub fn of_tcp(descriptors: usize) -> Arc<ConnectionLimit> {
        let all = (descriptors / PART_OF_DESCRIPTORS_TCP).clamp(4, TCP_MAX);
        Arc::new(ConnectionLimit { all, kept: 0, each: 0, taken: Mutex::default() })
    }

    /// `None`: there is none for this one.
    ///
    /// Where all are taken, the oldest that has not shown a token makes room: whoever asks something says so at once.
    pub fn admit(self: &Arc<Self>, peer: Peer) -> Option<ConnectionPermit> {
        let mut taken = self.lock();
        if peer != Peer::Person {
            let same = taken.connections.values().filter(|connection| connection.peer == peer).count();
            let kept =
                taken.connections.values().filter(|connection| connection.peer != Peer::Person).count();
            if same >= self.each || kept >= self.kept {
                return None;
            }
        }
        if taken.connections.len() >= self.all {
            let (&oldest, _) = taken.connections.iter().find(|(_, connection)| !connection.known)?;
            if let Some(connection) = taken.connections.remove(&oldest) {
                connection.leave.notify_one();
            }
        }
        let number = taken.next;
        taken.next += 1;
        let leave = Arc::new(Notify::new());
        taken.connections.insert(number, OpenConnection { peer, known: false, leave: leave.clone() });
        Some(ConnectionPermit { number, connections: self.clone(), leave })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPermit {
    /// It has shown a token: it is not asked to leave any more.
    pub fn is_known(&self) {
        if let Some(connection) = self.connections.lock().connections.get_mut(&self.number) {
            connection.known = true;
        }
    }

    /// Returns when the permit is given to another.
    pub async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.lock().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_a_few_all_steps_a_share_and_people_the_rest() {
        let connections = ConnectionLimit::new(256);
        let mut held = Vec::new();
        for keeper in 1..=3 {
            while let Some(seat) = connections.admit(Peer::Kept(keeper)) {
                held.push(seat);
            }
        }
        assert_eq!(held.len(), 32, "16 for each, and half of the 64 for all");
        assert!(connections.admit(Peer::Gone).is_none());
        let people: Vec<ConnectionPermit> = (0..32).filter_map(|_| connections.admit(Peer::Person)).collect();
        assert_eq!(people.len(), 32);
        held.pop();
        assert!(connections.admit(Peer::Kept(3)).is_some(), "a permit that is given back can be had again");
    }

    #[test]
    fn who_has_shown_no_token_makes_room_the_oldest_first() {
        let connections = ConnectionLimit::new(16);
        let held: Vec<ConnectionPermit> = (0..4).filter_map(|_| connections.admit(Peer::Person)).collect();
        held[0].is_known();
        let fifth = connections.admit(Peer::Person).unwrap();
        let left = |seat: &ConnectionPermit| !connections.lock().connections.contains_key(&seat.number);
        assert_eq!(held.iter().map(left).collect::<Vec<_>>(), [false, true, false, false]);
        for seat in held.iter().chain([&fifth]) {
            seat.is_known();
        }
        assert!(connections.admit(Peer::Person).is_none(), "nobody who has is sent away");
    }
}
