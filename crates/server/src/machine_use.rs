//! How busy this machine is, for people who watch it: processor, memory and the project's disk.

use std::path::Path;
use std::time::{Duration, Instant};

use api::types::screen::MachineUse;

/// Two looks at the processor are at least this far apart.
const SPAN: Duration = Duration::from_secs(2);

/// Reads the machine's numbers; the processor's are of the time since the last look.
#[derive(Default)]
pub struct Meter {
    last: Option<Look>,
    shown: Option<MachineUse>,
}

struct Look {
    at: Instant,
    busy: u64,
    all: u64,
}

impl Meter {
    /// What is known now; `None` where the system does not tell.
    pub fn read(&mut self, folder: &Path) -> Option<MachineUse> {
        if self.last.as_ref().is_some_and(|last| last.at.elapsed() < SPAN) {
            return self.shown.clone();
        }
        let now = processor();
        let percent = match (&self.last, &now) {
            (Some(last), Some(now)) if now.all > last.all => {
                let (busy, all) = (now.busy.saturating_sub(last.busy), now.all - last.all);
                Some((busy as f64 / all as f64 * 100.0).round())
            }
            _ => None,
        };
        self.last = now;
        let (memory_used_bytes, memory_bytes) = memory()?;
        let disk = nix::sys::statvfs::statvfs(folder).ok()?;
        let block = disk.fragment_size() as u64;
        self.shown = Some(MachineUse {
            processor_percent: percent,
            memory_used_bytes,
            memory_bytes,
            disk_free_bytes: disk.blocks_available() as u64 * block,
            disk_bytes: disk.blocks() as u64 * block,
        });
        self.shown.clone()
    }
}

/// Ticks since the machine was started.
fn processor() -> Option<Look> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    let all: u64 = ticks.iter().take(8).sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(Look { at: Instant::now(), busy: all.saturating_sub(idle), all })
}

/// Used and in all.
fn memory() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
    };
    let all = bytes("MemTotal")?;
    Some((all.saturating_sub(bytes("MemAvailable")?), all))
}
