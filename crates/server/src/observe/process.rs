//! Numbers of the server's own process, as the system tells them.

use std::sync::LazyLock;
use std::time::Duration;

use super::recorder::Numbers;
use super::table::{self, Metric};

/// When the process began to count.
static STARTED: LazyLock<f64> =
    LazyLock::new(|| Duration::from_millis(base::clock::now().max(0).cast_unsigned()).as_secs_f64());
/// What the system counts processor time in, on every Linux.
const TICKS_A_SECOND: f64 = 100.0;

pub fn begin() {
    LazyLock::force(&STARTED);
}

/// What cannot be read is left as it was.
pub fn measure(numbers: &Numbers) {
    let set = |metric: &'static Metric, value: f64| numbers.gauge::<0>(metric, []).set(value);
    numbers.gauge(&table::BUILD, [env!("CARGO_PKG_VERSION").into()]).set(1.0);
    set(&table::START_TIME, *STARTED);
    set(&table::OPEN_FILES_MAX, base::files::descriptors_max() as f64);
    set(&table::ANSWER_BYTES, crate::memory().held() as f64);
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        set(&table::OPEN_FILES, open.count() as f64);
    }
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let resident = read("/proc/self/status").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:").map(str::to_owned))?;
        line.trim().strip_suffix(" kB")?.parse::<f64>().ok()
    });
    if let Some(resident) = resident {
        set(&table::RESIDENT_BYTES, resident * 1024.0);
    }
    // The name may have blanks in it, and stands in brackets before the numbers.
    let ticks = read("/proc/self/stat").and_then(|text| {
        let numbers: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(numbers.get(11)?.parse::<f64>().ok()? + numbers.get(12)?.parse::<f64>().ok()?)
    });
    if let Some(ticks) = ticks {
        numbers.counter::<0>(&table::CPU_SECONDS, []).absolute((ticks / TICKS_A_SECOND) as u64);
    }
}
