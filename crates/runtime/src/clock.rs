//! The clock and what the system has of chance: the two things that a decision gets from outside.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use crate::log::Millis;

/// Now, in milliseconds since the Unix epoch: what the log keeps and people read. Anybody may set this clock at any
/// time, so nothing waits by it.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX).saturating_add(shift())
}

/// Milliseconds since the machine started, asleep or not. Nobody sets this clock; timers of a running process wait by
/// it.
pub fn steady() -> Millis {
    let since = clock_gettime(ClockId::CLOCK_BOOTTIME).or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC));
    since.map_or(0, |since| since.tv_sec().saturating_mul(1000).saturating_add(since.tv_nsec() / 1_000_000))
}

/// By how much a test has set our clock: the milliseconds that the file named by `ADJ_CLOCK_SHIFT` holds. Without the
/// variable this is one load and one branch.
fn shift() -> Millis {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| std::env::var_os("ADJ_CLOCK_SHIFT").map(PathBuf::from));
    let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A number that no other command has: time first, so that ids sort by it, then what the system has of chance.
pub fn unique() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let chance = RandomState::new().hash_one((std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let more = RandomState::new().hash_one(chance);
    (now() as u128) << 80 | u128::from(chance) << 16 | u128::from(more & 0xffff)
}
