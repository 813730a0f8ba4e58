//! The process that holds a log, as others are told of it.

use serde::{Deserialize, Serialize};

/// A process, told apart from others that had or will have its pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// When it started, in clock ticks since the machine did; 0 where the system does not tell.
    pub started: u64,
    pub host: String,
}

impl Holder {
    /// The process that asks.
    pub fn current() -> Holder {
        let pid = std::process::id();
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned());
        Holder { pid, started: started(pid).unwrap_or(0), host: host.unwrap_or_default() }
    }

    /// Whether this very process still runs on this machine, as far as the machine tells.
    pub(crate) fn lives_here(&self, here: &Holder) -> bool {
        self.host == here.host && self.started != 0 && started(self.pid) == Some(self.started)
    }

    /// Whether it may still run, here or on another machine.
    pub(crate) fn may_live(&self, here: &Holder) -> bool {
        self.host != here.host || self.started == 0 || self.lives_here(here)
    }
}

/// Field 22 of `/proc/<pid>/stat`. The command's name, field 2, is in parentheses and may hold anything, also
/// spaces and parentheses, so the fields are counted from the last one.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
