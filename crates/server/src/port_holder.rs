//! Who listens at a port of this machine, as `/proc` says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::visible::visible;

/// So much of a command line is shown.
const COMMAND_CHARS_MAX: usize = 80;
/// A listener in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// A process that listens.
#[derive(Clone, Debug)]
pub struct PortHolder {
    pub pid: i32,
    command: String,
    pub kind: HolderKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderKind {
    /// It runs below a keeper: an agent or a test started it, for this task where it still says so.
    Kept {
        task: Option<String>,
    },
    /// This program, and not below any keeper.
    Adjutant,
    Other,
}

impl PortHolder {
    /// `None` where nobody listens, or another user does.
    pub fn of(address: SocketAddr) -> Option<PortHolder> {
        let inodes: Vec<String> =
            ["tcp", "tcp6"].iter().flat_map(|table| listeners(table, address)).collect();
        if inodes.is_empty() {
            return None;
        }
        let pids = std::fs::read_dir("/proc").ok()?.flatten();
        let pid = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
            let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
            let mut open = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
            open.any(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()))
        })?;
        Some(PortHolder::at(pid))
    }

    fn at(pid: i32) -> PortHolder {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let words = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let line = words(read("cmdline")).replace('\0', " ");
        let name = words(read("comm"));
        let line = if line.trim().is_empty() { name.clone() } else { line };
        let command: String = visible(line.trim()).chars().take(COMMAND_CHARS_MAX).collect();
        let kind = match process::keeper::above(pid) {
            Some(Some(_)) => {
                let environment = words(read("environ"));
                let task = environment.split('\0').find_map(|entry| entry.strip_prefix("ADJ_TASK="));
                HolderKind::Kept { task: task.filter(|task| !task.is_empty()).map(visible) }
            }
            _ if name.trim() == "adj" => HolderKind::Adjutant,
            _ => HolderKind::Other,
        };
        PortHolder { pid, command, kind }
    }

    /// What can be done about it by somebody who wants to listen there.
    pub fn hint(&self) -> String {
        let pid = self.pid;
        match self.kind {
            HolderKind::Kept { .. } => format!(
                "stop it with `kill {pid}` and start again: clients that take it for the server would send it their \
                 tokens; `adj ps` shows the agents"
            ),
            HolderKind::Adjutant => {
                "another server of yours listens there: `--port 0` picks a free port, and `adj serve --project A \
                 --project B` serves several projects on one port"
                    .to_owned()
            }
            HolderKind::Other => format!("`kill {pid}` stops it; `--port 0` picks a free port"),
        }
    }
}

impl std::fmt::Display for PortHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} (`{}`", self.pid, self.command)?;
        match &self.kind {
            HolderKind::Kept { task: Some(task) } => write!(f, ", started by an agent or a test of {task})"),
            HolderKind::Kept { task: None } => f.write_str(", started by an agent or a test)"),
            HolderKind::Adjutant | HolderKind::Other => f.write_str(")"),
        }
    }
}

/// The sockets that would be in the way of, or be reached at, this address: as `/proc/PID/fd` names them.
fn listeners(table: &str, address: SocketAddr) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
    let listener = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let local = local_address(local)?;
        let ip = local.ip().to_canonical();
        let same = local.port() == address.port()
            && (ip == address.ip().to_canonical() || ip.is_unspecified() || address.ip().is_unspecified());
        (*state == LISTENS && same).then(|| format!("socket:[{inode}]"))
    };
    text.lines().skip(1).filter_map(listener).collect()
}

/// `0100007F:11F8`: words in the order of the machine's bytes, and the port.
fn local_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_address() {
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let listener = std::net::TcpListener::bind(address).unwrap();
            let there = listener.local_addr().unwrap();
            let holder = PortHolder::of(there).unwrap();
            assert_eq!(holder.pid, std::process::id() as i32, "{holder}");
            drop(listener);
            assert!(PortHolder::of(there).is_none(), "{there}");
        }
    }
}
