//! A control group (cgroup v2) for one kept process tree, if the system allows it.
//!
//! The kernel then counts the tree and refuses what is over its limits, so that other programs do not suffer. We use
//! only delegated groups: a group is created beside our own, in the nearest parent group that we may
//! write to and that delegates processes, memory or both, as systemd does for a user's session. The keeper checks
//! what is not delegated.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::process;
use super::wire::{Limits, Reason};

/// What a group of ours is called: this, the keeper's pid, and the effect.
const PREFIX: &str = "adj-";
/// Where groups of ours can be made, and what the kernel counts in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    pub dir: PathBuf,
    pub processes: bool,
    pub memory: bool,
}

impl Parent {
    /// What this folder is, if it is a group that hands anything on to us.
    fn at(dir: &Path) -> Option<Parent> {
        let handed_on = fs::read_to_string(dir.join("cgroup.subtree_control")).ok()?;
        let counts = |name: &str| handed_on.split_whitespace().any(|has| has == name);
        let is_ours = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
        let (processes, memory) = (counts("pids"), counts("memory"));
        let fits = (processes || memory) && is_ours(dir) && is_ours(&dir.join("cgroup.procs"));
        fits.then(|| Parent { dir: dir.to_owned(), processes, memory })
    }

    /// What of these limits a group there is held to by the kernel.
    fn holds(&self, limits: Limits) -> Limits {
        Limits {
            processes: limits.processes.filter(|_| self.processes),
            memory_bytes: limits.memory_bytes.filter(|_| self.memory),
            file_bytes: None,
        }
    }
}

/// A group that was made, and is removed when it is dropped, with all that is in it.
#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
    /// What the kernel holds it to.
    limits: Limits,
}

impl Group {
    /// Makes one for a keeper's tree, which is not in it yet. `None` where there can be none, or nothing to hold. `helpers` are
    /// the processes of ours that are in it too.
    pub fn make(effect: &str, limits: Limits, helpers: u64) -> Option<Group> {
        let parent = parent().ok()?;
        let limits = parent.holds(limits);
        if limits.processes.is_none() && limits.memory_bytes.is_none() {
            return None;
        }
        sweep(&parent.dir);
        let name = format!("{PREFIX}{}-{effect}", std::process::id());
        Group::make_in(&parent.dir, &name, limits, helpers).ok()
    }

    fn make_in(parent: &Path, name: &str, limits: Limits, helpers: u64) -> io::Result<Group> {
        let dir = parent.join(name);
        fs::create_dir(&dir)?;
        let group = Group { dir, limits };
        let set = |file: &str, value: Option<u64>| match value {
            Some(value) => fs::write(group.dir.join(file), value.to_string()),
            None => Ok(()),
        };
        set("pids.max", limits.processes.map(|most| most.saturating_add(helpers)))?;
        set("memory.max", limits.memory_bytes)?;
        // Without a swap of its own it could take everybody's; half a tree is no use to anybody.
        let _ = set("memory.swap.max", limits.memory_bytes.map(|_| 0));
        let _ = set("memory.oom.group", limits.memory_bytes.map(|_| 1));
        Ok(group)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What of these limits the kernel does not hold it to.
    pub fn leaves(&self, limits: Limits) -> Limits {
        Limits {
            processes: limits.processes.filter(|_| self.limits.processes.is_none()),
            memory_bytes: limits.memory_bytes.filter(|_| self.limits.memory_bytes.is_none()),
            ..limits
        }
    }

    /// Whether anybody is in it.
    pub fn is_used(&self) -> bool {
        fs::read_to_string(self.dir.join("cgroup.procs")).is_ok_and(|list| !list.trim().is_empty())
    }

    /// The limit that something in it was refused more than, if any was.
    pub fn passed(&self) -> Option<Reason> {
        let happened = |file: &str, event: &str| {
            let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(event)?.trim().parse::<u64>().ok());
            line.is_some_and(|times| times > 0)
        };
        match self.limits {
            Limits { processes: Some(most), .. } if happened("pids.events", "max ") => {
                Some(Reason::Processes(most))
            }
            Limits { memory_bytes: Some(most), .. } if happened("memory.events", "oom_kill ") => {
                Some(Reason::Memory(most))
            }
            _ => None,
        }
    }

    /// Ends all that is in it, in one go.
    pub fn kill(&self) {
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Puts this process, and all that it starts from now on, into a group.
pub fn join(dir: &Path) -> io::Result<()> {
    fs::write(dir.join("cgroup.procs"), "0")
}

/// Where groups of ours can be made, or why there can be none.
pub fn parent() -> Result<Parent, String> {
    let own = own().ok_or("there is no cgroup v2 here")?;
    // Not our own: with us in it, it can hand on nothing.
    let nearest = own.ancestors().skip(1).find_map(Parent::at);
    nearest.ok_or_else(|| "no cgroup above this process is delegated to you with memory or pids".to_owned())
}

/// The directory of the group that we are in.
fn own() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let fields: Vec<&str> = mount.split(' ').collect();
        let (root, at) = (fields.get(3)?, fields.get(4)?);
        let is_whole = kind.starts_with("cgroup2 ") && *root == "/";
        is_whole.then(|| Path::new(at).join(&path))
    })
}

/// Removes groups whose keeper is gone without having done so.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid| process::stat(pid).is_none()) {
            // One that still has a process in it is not removed by this.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Folder;

    /// A directory in place of a group: what is written there is what the kernel would be told.
    #[test]
    fn a_group_is_told_its_limits_and_tells_which_was_passed() {
        let dir = Folder::new();
        let limits = Limits { processes: Some(60), memory_bytes: Some(1 << 20), file_bytes: None };
        let group = Group::make_in(&dir.path, "adj-1-e1", limits, 2).unwrap();
        let at = |name: &str| group.dir().join(name);
        assert_eq!(fs::read_to_string(at("pids.max")).unwrap(), "62", "and ours");
        assert_eq!(fs::read_to_string(at("memory.max")).unwrap(), "1048576");
        assert_eq!((group.is_used(), group.passed()), (false, None));
        fs::write(at("memory.events"), "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n").unwrap();
        assert_eq!(group.passed(), Some(Reason::Memory(1 << 20)));
        fs::write(at("pids.events"), "max 3\n").unwrap();
        assert_eq!(group.passed(), Some(Reason::Processes(60)));
    }

    #[test]
    fn what_is_not_handed_on_is_left_to_the_keeper() {
        let dir = Folder::new();
        let limits = Limits { processes: Some(60), memory_bytes: Some(1 << 20), file_bytes: None };
        assert_eq!(Parent::at(&dir.path), None);
        for name in ["cgroup.subtree_control", "cgroup.procs"] {
            fs::write(dir.path.join(name), "cpu pids\n").unwrap();
        }
        let parent = Parent::at(&dir.path).unwrap();
        assert_eq!((parent.processes, parent.memory), (true, false));
        let group = Group::make_in(&dir.path, "adj-1-e1", parent.holds(limits), 0).unwrap();
        assert!(!group.dir().join("memory.max").exists());
        assert_eq!(group.leaves(limits), Limits { processes: None, ..limits });
    }
}
