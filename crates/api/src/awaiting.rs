//! Waiting for something to happen, for as long as a long poll may take.

use std::time::{Duration, Instant};

use super::{Call, turns};
use kernel::World;

/// A long poll waits this long at most; then its page is empty and the caller asks again.
pub const WAIT_MAX: Duration = Duration::from_secs(20);

/// How often is looked whether something is there that is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Looks, and where that is wanted looks again for a while, as long as somebody could change something.
pub fn awaited<T>(call: &Call, wait: bool, found: impl Fn(&World) -> Option<T>) -> Option<T> {
    let wait = if wait { WAIT_MAX } else { Duration::ZERO };
    awaited_until(call, Instant::now() + wait, found)
}

/// The same, up to a moment.
pub fn awaited_until<T>(call: &Call, deadline: Instant, found: impl Fn(&World) -> Option<T>) -> Option<T> {
    loop {
        let there = found(&call.world());
        let hopeless = call.access.control.is_none() || call.access.is_given_up();
        if there.is_some() || hopeless || Instant::now() >= deadline {
            return there;
        }
        turns::resting(|| std::thread::sleep(LOOK));
    }
}
