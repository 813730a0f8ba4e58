//! Detects that a kept process tree exceeds its limits: the kernel reports it if the tree has a control group, and we
//! inspect its processes for everything that no group counts.
//!
//! Each inspection costs time for each process of the tree, and there may be hundreds of keepers. So the next one is when the
//! tree could at the earliest have exceeded a limit, by how fast programs grow, and within bounds.

use std::time::{Duration, Instant};

use super::group::Group;
use super::process;
use super::wire::{Limits, Reason};

/// Looks are not closer together than this, and not further apart.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often a group is asked what it refused.
const GROUP_PAUSE: Duration = Duration::from_secs(1);
/// No program makes more in a second: processes, and bytes that it uses.
const PROCESSES_PER_SECOND: f64 = 2_000.0;
const BYTES_PER_SECOND: f64 = 2e9;
/// Where what is shared is counted for each who shares it, a second and slower look tells the truth; not all the time.
const SHARED_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Watch {
    limits: Limits,
    group: Option<Group>,
    /// How many of the tree's processes are our own.
    helpers: u64,
    /// When to look; `None` where there is nothing to look for.
    next: Option<Instant>,
}

impl Watch {
    pub fn new(limits: Limits, group: Option<Group>, helpers: u64, now: Instant) -> Watch {
        let has_limit = limits.processes.is_some() || limits.memory_bytes.is_some();
        Watch { limits, group, helpers, next: has_limit.then_some(now + PAUSE_MIN) }
    }

    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// What the kernel refused, if it counts for us. Asked when the program ended, it tells why.
    pub fn refused(&self) -> Option<Reason> {
        self.group.as_ref()?.passed()
    }

    /// Looks, if it is time to; the limit that was passed. `tree` are the processes, and `has_started` whether the program
    /// is among them.
    pub fn look(
        &mut self,
        now: Instant,
        has_started: bool,
        tree: impl FnOnce() -> Vec<i32>,
    ) -> Option<Reason> {
        if self.next.is_none_or(|at| at > now) {
            return None;
        }
        if let Some(group) = &self.group {
            // Before it starts, it may be on its way there.
            if group.is_used() || !has_started {
                if let Some(passed) = group.passed() {
                    return Some(passed);
                }
                let left = group.leaves(self.limits);
                self.next = Some(now + GROUP_PAUSE);
                if left.processes.is_none() && left.memory_bytes.is_none() {
                    return None;
                }
                return self.look_at(now, left, GROUP_PAUSE, &tree());
            }
            // The program could not be put into it.
            self.group = None;
        }
        self.look_at(now, self.limits, PAUSE_MAX, &tree())
    }

    /// Our own look at these limits, and when the next one is, at the latest.
    fn look_at(&mut self, now: Instant, limits: Limits, latest: Duration, tree: &[i32]) -> Option<Reason> {
        let used = Used::of(tree);
        let processes = used.threads.saturating_sub(self.helpers);
        if let Some(most) = limits.processes.filter(|most| processes > *most) {
            return Some(Reason::Processes(most));
        }
        let mut pause = latest;
        if let Some(most) = limits.processes {
            pause = pause.min(until(most - processes.min(most), PROCESSES_PER_SECOND));
        }
        if let Some(most) = limits.memory_bytes {
            if used.bytes > most {
                if own_bytes(tree) > most {
                    return Some(Reason::Memory(most));
                }
                pause = pause.min(SHARED_PAUSE);
            } else {
                pause = pause.min(until(most - used.bytes, BYTES_PER_SECOND));
            }
        }
        self.next = Some(now + pause.max(PAUSE_MIN));
        None
    }
}

fn until(room: u64, per_second: f64) -> Duration {
    Duration::from_secs_f64(room as f64 / per_second)
}

/// What a tree uses, with memory that several share counted for each.
#[derive(Default)]
struct Used {
    threads: u64,
    bytes: u64,
}

impl Used {
    fn of(tree: &[i32]) -> Used {
        tree.iter().filter_map(|&pid| process::stat(pid)).fold(Used::default(), |used, stat| Used {
            threads: used.threads + stat.threads,
            bytes: used.bytes + stat.bytes,
        })
    }
}

/// The memory that is the tree's own, with what several share counted once. Files that are only looked at are not in it:
/// the system takes their memory back when it is short of it.
fn own_bytes(tree: &[i32]) -> u64 {
    let of_one = |&pid: &i32| {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
            return process::stat(pid).map_or(0, |stat| stat.bytes);
        };
        let kilobytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        };
        let own = match (kilobytes("Pss_Anon:"), kilobytes("Pss_Shmem:")) {
            (Some(own), Some(shared)) => own + shared,
            _ => kilobytes("Pss:").unwrap_or_default(),
        };
        own * 1024
    };
    tree.iter().map(of_one).sum()
}

/// What a step or test may use of the machine's memory where nothing is said: half of it.
pub fn usual_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024 / 2)
}
