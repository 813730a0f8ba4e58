//! The clock and what the system has of chance: the two things that a decision gets from outside.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::log::Millis;

/// Now, in milliseconds since the Unix epoch.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// A number that no other command has: time first, so that ids sort by it, then what the system has of chance.
pub fn unique() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let chance = RandomState::new().hash_one((std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let more = RandomState::new().hash_one(chance);
    (now() as u128) << 80 | u128::from(chance) << 16 | u128::from(more & 0xffff)
}
