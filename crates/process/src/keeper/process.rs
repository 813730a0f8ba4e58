//! Processes in `/proc`: their identity, their owner, and how to end a whole tree of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, kill, signal as handle};
use nix::unistd::{Pid, SysconfVar, sysconf};

/// How often a tree is searched again for processes that were made while it was being stopped.
const ROUNDS_MAX: u32 = 100;

/// What `/proc/<pid>/stat` says of a process.
pub struct Stat {
    /// The first bytes of its program's name, unless it gave itself another.
    pub name: Vec<u8>,
    pub state: char,
    pub parent: i32,
    /// In clock ticks since the machine started.
    pub started: u64,
    pub threads: u64,
    /// Of memory that it uses, shared or not.
    pub bytes: u64,
}

/// `None` if there is no such process.
pub fn stat(pid: i32) -> Option<Stat> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, the second field, is in parentheses and may hold anything, also parentheses.
    let end = stat.iter().rposition(|&b| b == b')')?;
    let start = stat.iter().position(|&b| b == b'(')?;
    let text = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    Some(Stat {
        name: stat.get(start + 1..end)?.to_vec(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        bytes: fields.get(21)?.parse::<u64>().ok()?.saturating_mul(page_bytes()),
    })
}

/// The unit in which the system counts memory.
fn page_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
        size.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096)
    })
}

/// The processes above one, and itself: the nearest first. `None` if there is no such process.
pub fn line(pid: i32) -> Option<Vec<(i32, Stat)>> {
    let mut line = vec![(pid, stat(pid)?)];
    while let Some((_, last)) = line.last() {
        let parent = last.parent;
        match stat(parent) {
            Some(stat) if parent > 0 && line.iter().all(|(pid, _)| *pid != parent) => {
                line.push((parent, stat));
            }
            _ => break,
        }
    }
    Some(line)
}

/// Puts back every signal that whoever started us had ignored: ignoring is inherited, by us and by what we start, and an
/// agent that ignores an interrupt or does not hear of its children is not the program that its user knows.
///
/// A closed pipe stays an error for us, as every Rust program has it; the standard library gives it back to what it starts.
#[allow(unsafe_code, reason = "the system's call is unsafe because of handlers, and no handler is set here")]
pub fn hear_signals() -> Result<(), Errno> {
    for signal in Signal::iterator() {
        if ![Signal::SIGKILL, Signal::SIGSTOP, Signal::SIGPIPE].contains(&signal) {
            // SAFETY: the default is no code of ours that could run at a bad moment.
            unsafe { handle(signal, SigHandler::SigDfl) }?;
        }
    }
    Ok(())
}

/// Which start of the machine this is.
pub fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_string()
}

/// Whether the process that had this pid then still runs; one that only waits to be collected does not.
pub fn runs(pid: i32, started: u64, in_boot: &str) -> bool {
    in_boot == boot() && stat(pid).is_some_and(|stat| stat.started == started && !"ZX".contains(stat.state))
}

/// Every process there is.
pub fn all() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of each of these, and theirs, and so on; parents before their children.
///
/// It is a glance at something that moves: whoever wants all of them looks again.
pub fn descendants(of: &[i32]) -> Vec<i32> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<i32> = of.iter().copied().collect();
    let mut parents: Option<BTreeMap<i32, Vec<i32>>> = None;
    let mut next: Vec<i32> = of.to_vec();
    while let Some(pid) = next.pop() {
        let children = match children(pid) {
            Some(children) => children,
            // A kernel without these lists: everyone is asked for their parent instead.
            None => parents.get_or_insert_with(by_parent).get(&pid).cloned().unwrap_or_default(),
        };
        for child in children {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// `None` where the system does not tell.
fn children(pid: i32) -> Option<Vec<i32>> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Some(Vec::new()) };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // The thread ended meanwhile; its children went to another thread of the process, or to a reaper.
            Err(_) if !thread.path().exists() => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

fn by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for pid in all() {
        if let Some(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    children
}

/// Sends to each; one that has gone meanwhile needs nothing.
pub fn signal(pids: &[i32], signal: Signal) {
    for &pid in pids {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Kills all that `find` finds, which it may be asked several times, and says which.
///
/// They are stopped first: what is stopped starts no others, so that a process which does nothing but that comes to
/// an end too.
pub fn kill_all(mut find: impl FnMut() -> Vec<i32>) -> BTreeSet<i32> {
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let new: Vec<i32> = find().into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if new.is_empty() {
            break;
        }
        signal(&new, Signal::SIGSTOP);
        stopped.extend(new);
    }
    signal(&stopped.iter().copied().collect::<Vec<_>>(), Signal::SIGKILL);
    stopped
}

/// The processes that were started with this variable set to this value, without us and those above us.
pub fn with_variable(name: &str, value: &str) -> Vec<i32> {
    let wanted = format!("{name}={value}");
    let us = std::process::id() as i32;
    let ours: Vec<i32> = line(us).unwrap_or_default().into_iter().map(|(pid, _)| pid).chain([us]).collect();
    let has = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&b| b == 0).any(|variable| variable == wanted.as_bytes())
    };
    all().into_iter().filter(|pid| !ours.contains(pid)).filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_told_from_another_that_gets_its_pid() {
        let us = std::process::id() as i32;
        let stat = stat(us).unwrap();
        assert!(runs(us, stat.started, &boot()));
        assert!(!runs(us, stat.started + 1, &boot()));
        assert!(!runs(us, stat.started, "another start of the machine"));
    }

    #[test]
    fn a_child_is_found_below_us_and_by_its_parent() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let us = std::process::id() as i32;
        let pid = child.id() as i32;
        assert!(descendants(&[us]).contains(&pid));
        assert!(by_parent()[&us].contains(&pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
