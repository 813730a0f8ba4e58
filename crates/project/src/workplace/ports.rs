//! A block of ports for each run, so that the servers of two agents do not collide.
//!
//! The leases are in one file under a lock, so a run has the same block after a restart. The start of the search
//! depends on the directory: two projects on one machine, which do not know each other's leases, seldom start at the same block.

use crate::settings;
use base::files::write_whole;
use machines::names::RunId;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// The largest file of leases that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The leases of a project.
#[derive(Clone, Debug)]
pub struct PortLeases {
    dir: PathBuf,
    settings: settings::Ports,
}

/// Why there is no block.
#[derive(Debug, thiserror::Error)]
pub enum PortsError {
    #[error(
        "all {blocks} blocks of ports from {first} on are leased or in use; raise ports.blocks, or stop the programs that use them"
    )]
    NoneFree { first: u16, blocks: u16 },
    #[error("cannot use {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{path} was damaged ({error}) and is kept as ports.json.damaged; every run gets a new block of ports"
    )]
    Damaged { path: PathBuf, error: serde_json::Error },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    base: u16,
    ports: u16,
}

type Leases = BTreeMap<RunId, Lease>;

impl PortLeases {
    /// The leases kept in this directory, which must exist.
    pub fn new(dir: &Path, settings: &settings::Ports) -> PortLeases {
        PortLeases { dir: dir.to_owned(), settings: settings.clone() }
    }

    /// The first port of the run's block: the one that it has, or else one that nobody has, all of whose ports are free
    /// now. It is the run's until it is released.
    pub fn lease(&self, run: &RunId) -> Result<u16, PortsError> {
        self.leased(run).map(|lease| lease.base)
    }

    /// All ports of the block that [`PortLeases::lease`] gives.
    pub fn block(&self, run: &RunId) -> Result<std::ops::RangeInclusive<u16>, PortsError> {
        let Lease { base, ports } = self.leased(run)?;
        Ok(base..=base.saturating_add(ports.saturating_sub(1)))
    }

    fn leased(&self, run: &RunId) -> Result<Lease, PortsError> {
        // What was damaged is set aside, and whoever looked first says so.
        let mut file = match self.open() {
            Err(PortsError::Damaged { .. }) => self.open()?,
            opened => opened?,
        };
        if let Some(lease) = file.leases.get(run) {
            return Ok(*lease);
        }
        let settings::Ports { first, block, blocks } = self.settings;
        let begin = self.first_block();
        let candidates = (0..blocks).map(|number| first + (begin + number) % blocks * block);
        let is_free = |base: &u16| {
            let (begins, ends) = (u32::from(*base), u32::from(*base) + u32::from(block));
            let overlaps = |lease: &Lease| {
                begins < u32::from(lease.base) + u32::from(lease.ports) && u32::from(lease.base) < ends
            };
            !file.leases.values().any(overlaps) && (0..block).all(|more| can_be_bound(base + more))
        };
        let base = candidates.into_iter().find(is_free).ok_or(PortsError::NoneFree { first, blocks })?;
        let lease = Lease { base, ports: block };
        file.leases.insert(run.clone(), lease);
        file.write()?;
        Ok(lease)
    }

    /// The run has no block afterwards, whether or not it had one.
    pub fn release(&self, run: &RunId) -> Result<(), PortsError> {
        self.keep_only(|leased| leased != run)
    }

    /// Only runs that `lives` says yes to have blocks afterwards; for the start, after runs ended unseen.
    pub fn keep_only(&self, lives: impl Fn(&RunId) -> bool) -> Result<(), PortsError> {
        let mut file = self.open()?;
        let before = file.leases.len();
        file.leases.retain(|run, _| lives(run));
        if file.leases.len() < before { file.write() } else { Ok(()) }
    }

    /// The same for a directory each time, and another for most others.
    fn first_block(&self) -> u16 {
        let path = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        let hash =
            path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        (hash % u64::from(self.settings.blocks)) as u16
    }

    fn open(&self) -> Result<Locked, PortsError> {
        let path = self.dir.join("ports.json");
        let failed = |error| PortsError::Io { path: path.clone(), error };
        // A lock of its own, because the file itself is replaced at each write.
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.dir.join("ports.lock"));
        let lock = Flock::lock(lock.map_err(failed)?, FlockArg::LockExclusive)
            .map_err(|(_, error)| failed(error.into()))?;
        let mut text = String::new();
        match File::open(&path) {
            Ok(file) => drop(file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => text.push_str("{}"),
            Err(error) => return Err(failed(error)),
        }
        match serde_json::from_str(&text) {
            Ok(leases) => Ok(Locked { path, leases, _lock: lock }),
            // Who has which block is not known any more; that a port is in use is seen before it is given out.
            Err(error) => {
                std::fs::rename(&path, self.dir.join("ports.json.damaged")).map_err(failed)?;
                Err(PortsError::Damaged { path, error })
            }
        }
    }
}

/// The leases while nobody else can have them.
struct Locked {
    path: PathBuf,
    leases: Leases,
    _lock: Flock<File>,
}

impl Locked {
    fn write(&self) -> Result<(), PortsError> {
        let failed = |error| PortsError::Io { path: self.path.clone(), error };
        let leases = serde_json::to_vec(&self.leases).map_err(|error| failed(error.into()))?;
        write_whole(&self.path, &leases).map_err(failed)
    }
}

fn can_be_bound(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod test {
    use super::*;
    use testing::Folder;

    fn run(name: &str) -> RunId {
        RunId::new(name).unwrap()
    }

    /// PortLeases that nothing else in these tests uses, nor the same tests in another process.
    fn free(number: u16) -> u16 {
        22_000 + number * 2_000 + (std::process::id() % 16) as u16 * 120
    }

    fn ports(folder: &Folder, first: u16, blocks: u16) -> PortLeases {
        PortLeases::new(&folder.path, &settings::Ports { first, block: 3, blocks })
    }

    #[test]
    fn each_run_has_a_block_of_its_own_and_keeps_it() {
        let folder = Folder::new();
        let first = ports(&folder, free(0), 40);
        let (a, b) = (first.lease(&run("x.1")).unwrap(), first.lease(&run("x.2")).unwrap());
        assert!(a.abs_diff(b) >= 3, "{a} and {b}");
        // Its own server is running there, and Adjutant was started anew.
        let _server = TcpListener::bind((Ipv4Addr::LOCALHOST, a)).unwrap();
        let again = ports(&folder, free(0), 40);
        assert_eq!(again.lease(&run("x.1")).unwrap(), a);
        again.release(&run("x.1")).unwrap();
        assert_ne!(again.lease(&run("x.1")).unwrap(), a, "someone is there");
    }

    #[test]
    fn a_block_in_use_is_passed_over_and_none_left_is_said() {
        let folder = Folder::new();
        let first = free(1);
        let ports = ports(&folder, first, 2);
        let _server = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 4)).unwrap();
        assert_eq!(ports.lease(&run("x.1")).unwrap(), first);
        let error = ports.lease(&run("x.2")).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("all 2 blocks of ports from {first} on are leased or in use")),
            "{error}"
        );
        ports.keep_only(|_| false).unwrap();
        assert_eq!(ports.lease(&run("x.2")).unwrap(), first);
        ports.release(&run("never")).unwrap();
    }

    #[test]
    fn a_block_that_ends_with_the_last_port_is_one_like_others() {
        let folder = Folder::new();
        let ports = PortLeases::new(&folder.path, &settings::Ports { first: 65_534, block: 1, blocks: 2 });
        for name in ["x.1", "x.2", "x.3"] {
            // Someone else on this machine may have them.
            assert!(matches!(ports.lease(&run(name)), Ok(65_534..) | Err(PortsError::NoneFree { .. })));
        }
    }

    #[test]
    fn runs_that_ask_at_once_get_different_blocks() {
        let folder = Folder::new();
        let ports = ports(&folder, free(2), 40);
        let bases: std::collections::BTreeSet<u16> = std::thread::scope(|scope| {
            let asks: Vec<_> = (0..8)
                .map(|number| {
                    let ports = ports.clone();
                    scope.spawn(move || ports.lease(&run(&format!("x.{number}"))).unwrap())
                })
                .collect();
            asks.into_iter().map(|ask| ask.join().unwrap()).collect()
        });
        assert_eq!(bases.len(), 8);
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_named_and_nobody_waits_for_it() {
        let folder = Folder::new();
        folder.write("ports.json", "{");
        let error = ports(&folder, free(3), 2).keep_only(|_| true).unwrap_err().to_string();
        assert!(error.contains("ports.json was damaged") && error.contains("ports.json.damaged"), "{error}");
        ports(&folder, free(3), 2).lease(&run("x")).unwrap();
        folder.write("ports.json", "\0\0");
        ports(&folder, free(3), 2).lease(&run("x")).unwrap();
    }
}
