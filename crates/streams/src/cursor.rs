//! Cursors: the number of the current time interval, so that shared caches ask again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2024-10-09T00:00:00Z, from which the intervals are counted.
const EPOCH_SECONDS: u64 = 1_728_432_000;
const INTERVAL_SECONDS: u64 = 20;
/// Most seconds by which a cursor is put ahead of one that the client already has.
const JITTER_SECONDS_MAX: u64 = 3600;

/// The cursor to answer with: the current interval, and more than what the client sent.
pub fn answer(clients: Option<&str>, now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let current = since.as_secs().saturating_sub(EPOCH_SECONDS) / INTERVAL_SECONDS;
    let Some(theirs) = clients.and_then(|text| text.parse::<u64>().ok()) else {
        return current;
    };
    if theirs < current {
        return current;
    }
    let jitter = 1 + u64::from(since.subsec_nanos()) % JITTER_SECONDS_MAX;
    theirs.saturating_add(jitter.div_ceil(INTERVAL_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_never_goes_back() {
        let now = UNIX_EPOCH + Duration::from_secs(EPOCH_SECONDS + 1000 * INTERVAL_SECONDS);
        assert_eq!(answer(None, now), 1000);
        assert_eq!(answer(Some("999"), now), 1000);
        assert_eq!(answer(Some("nonsense"), now), 1000);
        assert!(answer(Some("1000"), now) > 1000);
        assert!(answer(Some("5000"), now) > 5000);
    }
}
