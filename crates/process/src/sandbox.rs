//! What a program may reach: its own tree and what it needs to work, and nothing of ours or of another agent.
//!
//! The kernel does it (Landlock), for the program and everything that it starts, as root too. It knows only what is
//! allowed, and what is allowed below a directory cannot be taken back further down. So "everything but this" is said
//! by naming all that stands beside it: from `/` down to each hidden path, every other entry is allowed. Four things
//! follow:
//!
//! - A directory above a hidden path can be passed through but not listed, and what is made in it later cannot be read.
//! - What is made later in any other directory can be read: a toolchain below the home directory goes on working
//!   while it changes.
//! - Each file that stands beside the way to a hidden path is held by the kernel while the program runs: deleted, it takes
//!   up its room on the disk until then. With a view of its own, in which hidden places are empty, only folders are named.
//! - Other agents' trees are hidden by hiding the directory that they are all in; the own tree is allowed by name.
//!
//! What Landlock does not do: it leaves the network open unless ports are named, and there it knows no hosts; modes,
//! owners and times of files can be changed wherever their user may; a socket in the file system can be connected to
//! wherever its path is known, which is why ours want a key. Where the system lets us, `namespace.rs` does that, or
//! `bubblewrap.rs` where it lets that program, and Landlock stands inside it as a second wall. `places.rs` knows what is hidden.

mod bubblewrap;
mod first;
mod namespace;
pub mod places;
mod view;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, FileType, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::fcntl::OFlag;
use nix::libc;
use serde::{Deserialize, Serialize};

/// Of a directory with more entries than this, those beyond cannot be read where it is above a hidden path.
pub const ENTRIES_MAX: usize = 10_000;

/// What every program may write to. Everything else in `/dev` is out of reach: a disk there holds all files.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// The capabilities that root's programs keep, as `linux/capability.h` numbers them: `CHOWN`, `DAC_OVERRIDE`, `FOWNER`,
/// `FSETID`, `KILL`, `SETGID` and `SETUID`. They are what installing and starting something as another user takes. All
/// others see into other processes, the network, the kernel or the clock of the whole machine.
const POWERS_KEPT: &[u32] = &[0, 1, 3, 4, 5, 6, 7];

/// More than any kernel numbers.
const POWERS_MAX: u32 = 64;

/// Without this one, `SETPCAP`, none can be given up for good.
const POWER_TO_GIVE_UP: u32 = 8;

/// Whether programs are held to their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As far as this kernel can; [`support`] says what is missing.
    #[default]
    Auto,
    /// Wholly, or they do not start.
    Strict,
    /// Not at all.
    Off,
}

/// What a program may reach. Paths are absolute; one that is not there is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// May be changed, with all below: the tree, its git directory, its temporary directory, declared caches.
    pub read_write: Vec<PathBuf>,
    /// May be changed, with all below, and stands in the place of the other: only in a view of its own.
    pub instead: Vec<(PathBuf, PathBuf)>,
    /// May be read even inside what is hidden, with all below.
    pub read_only: Vec<PathBuf>,
    /// May be neither read nor listed. Landlock alone cannot hide it inside of something open, and starts nothing then.
    /// Everything that is not hidden may be read.
    pub hidden: Vec<PathBuf>,
    /// Hidden too, also inside what may be changed, but for a path that is named above. Landlock alone cannot hide what
    /// lies inside of something that is open.
    pub concealed: Vec<PathBuf>,
    /// Nothing but this may be read, and what is named above; `None` is everything that is not hidden.
    pub only: Option<Vec<PathBuf>>,
    /// Whether there is to be a view of its own, which then must be whole: see [`Support::namespaces`].
    pub namespaces: bool,
    /// The `bwrap` that makes the view, where we do not make it ourselves: see [`Support::bubblewrap`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bubblewrap: Option<PathBuf>,
    /// Whether it is to see none but its own processes, in its view: see [`Support::processes`].
    pub processes: bool,
    /// How much its own `/dev/shm` has room for; half of the machine's memory where nothing is said.
    pub shared_memory_bytes: Option<u64>,
    pub network: Network,
    /// To which TCP ports it may connect; `None` leaves the network alone.
    pub tcp_connect: Option<Vec<u16>>,
    /// At which TCP ports it may listen, from the first to the last of each pair, besides one that the system chooses (port
    /// 0); `None` is all of them.
    pub tcp_bind: Option<Vec<(u16, u16)>>,
}

/// What of the network there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    Open,
    /// A loopback of its own, and nobody else on it.
    None,
}

/// How much of a sandbox there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    None,
    Partial,
    Full,
}

/// What this kernel can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The version of Landlock, as far as it matters here: 0 to 6.
    pub abi: u32,
    /// Whether a program can have a view of the machine of its own.
    pub namespaces: bool,
    /// The `bwrap` that makes it, where we do not make it ourselves.
    pub bubblewrap: Option<PathBuf>,
    /// Whether it can have processes of its own, and see no others.
    pub processes: bool,
    pub level: Level,
    /// In words: what holds, or what is missing and which kernel has it.
    pub what: String,
}

/// Why a program was not held to its rules, and so not started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("sandbox.mode is \"strict\", and {0}")]
    Unsupported(String),
    #[error("sandbox.network is \"none\", which needs namespaces: {0}")]
    NoNetwork(String),
    #[error("{} cannot be hidden: {} is open to the program", hidden.display(), open.display())]
    Conflict { hidden: PathBuf, open: PathBuf },
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    #[error("the sandbox cannot be set up: {0}")]
    Failed(String),
}

/// What is not held by Landlock alone.
const WITHOUT_NAMESPACES: &str = "modes, owners and times of your files can be changed, sockets (docker, ssh-agent, …) can \
     be connected to, /dev/shm is shared, other processes can be seen";

machines::wire_enum! {
    /// Who makes the namespaces of a view.
    pub enum Namespaces {
        /// We do where we may, and else bubblewrap where it may.
        Auto = "auto",
        Own = "own",
        Bubblewrap = "bubblewrap",
    }
}

/// What this system can do, without doing it.
pub fn support() -> Support {
    support_by(Namespaces::Auto)
}

/// The same where somebody has said who is to make namespaces.
pub fn support_by(namespaces: Namespaces) -> Support {
    let own = (namespaces != Namespaces::Bubblewrap).then(namespace::obstacle);
    if let Some(None) = own {
        return described(version(), None, namespace::obstacle_of_processes(), None);
    }
    let found = match namespaces {
        Namespaces::Own => None,
        Namespaces::Auto | Namespaces::Bubblewrap => Some(bubblewrap::find()),
    };
    match (found, own.flatten()) {
        (Some(Ok(bubblewrap::Found { path, processes })), _) => {
            described(version(), None, processes, Some(path))
        }
        (_, Some(obstacle)) => described(version(), Some(obstacle), None, None),
        (found, None) => {
            let why = found.and_then(Result::err).unwrap_or_default();
            described(version(), Some(format!("sandbox.namespaces is \"bubblewrap\", and {why}")), None, None)
        }
    }
}

/// `obstacle` keeps programs from a view of their own, and `processes` from seeing no others in it; `bubblewrap` makes it.
fn described(
    abi: u32,
    obstacle: Option<String>,
    processes: Option<String>,
    bubblewrap: Option<PathBuf>,
) -> Support {
    let makers = match &bubblewrap {
        Some(path) => format!("namespaces (made by {})", path.display()),
        None => "namespaces".to_owned(),
    };
    let seen = processes.as_ref().map(|why| format!("other processes can be seen ({why})"));
    let kept = (nix::unistd::geteuid().is_root() && !has_power(POWER_TO_GIVE_UP))
        .then(|| "root's capabilities stay (CAP_SETPCAP is missing)".to_owned());
    let missing: Vec<String> = [
        (3, "files that cannot be written can be emptied (Linux 6.2)"),
        (4, "programs can listen at any TCP port, the server's too while it is not running (Linux 6.7)"),
        (5, "commands to devices are not held to rules (Linux 6.10)"),
        (6, "signals and abstract sockets reach outside (Linux 6.12)"),
    ]
    .into_iter()
    .filter(|(since, _)| abi < *since)
    .map(|(_, what)| what.to_owned())
    .chain(seen)
    .chain(kept)
    .collect();
    let landlock = match abi {
        0 => Err("this kernel has no Landlock, or it is not switched on (Linux 5.19, `lsm=…,landlock`)"
            .to_string()),
        // Without it nothing can be moved from one directory to another, which git does with all that it writes.
        1 => Err("this kernel's Landlock does not let git work (Linux 5.19 has what it needs)".to_string()),
        _ if missing.is_empty() => Ok(None),
        _ => Ok(Some(missing.join("; "))),
    };
    let (level, what) = match (landlock, &obstacle) {
        (Ok(None), None) => (
            Level::Full,
            format!(
                "{makers} and Landlock hold programs to their files, devices, processes' signals and sockets"
            ),
        ),
        (Ok(Some(missing)), None) => {
            (Level::Partial, format!("{makers} and Landlock hold programs to their files, but {missing}"))
        }
        (Ok(missing), Some(why)) => {
            let missing = missing.map(|missing| format!("; {missing}")).unwrap_or_default();
            let what =
                format!("Landlock holds programs to their files, but there are no namespaces ({why}), so ");
            (Level::Partial, format!("{what}{WITHOUT_NAMESPACES}{missing}"))
        }
        (Err(why), None) => {
            let what = "hold programs to the files that they may write, but other processes can be signalled";
            (Level::Partial, format!("{makers} {what}: {why}"))
        }
        (Err(missing), Some(why)) => (Level::None, format!("{missing}; and there are no namespaces: {why}")),
    };
    let namespaces = obstacle.is_none();
    Support { abi, namespaces, bubblewrap, processes: namespaces && processes.is_none(), level, what }
}

/// The newest version of which everything is there that is used here.
fn version() -> u32 {
    let strictly = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = |abi: ABI| strictly().handle_access(AccessFs::from_all(abi));
    let net = || files(ABI::V3)?.handle_access(AccessNet::from_all(ABI::V4));
    let scope = || files(ABI::V5)?.scope(Scope::from_all(ABI::V6));
    [
        (6, scope()),
        (5, files(ABI::V5)),
        (4, net()),
        (3, files(ABI::V3)),
        (2, files(ABI::V2)),
        (1, files(ABI::V1)),
    ]
    .into_iter()
    .find_map(|(version, ruleset)| ruleset.and_then(Ruleset::create).is_ok().then_some(version))
    .unwrap_or(0)
}

/// The processes of ours, or of bubblewrap's, that stand around a program under these rules.
pub fn helpers(rules: &Rules) -> u64 {
    match (rules.processes, &rules.bubblewrap) {
        (true, _) => first::HELPERS,
        // The one that waits for it.
        (false, Some(_)) => 1,
        (false, None) => 0,
    }
}

/// This thread, and every process that it starts from now on, is held to these rules for good.
///
/// Meant for a process of one thread that then becomes another program.
pub fn apply(mode: Mode, rules: &Rules) -> Result<Level, SandboxError> {
    if mode == Mode::Off {
        return Ok(Level::None);
    }
    check(mode, rules)?;
    if rules.namespaces {
        namespace::enter(rules)?;
    }
    hold(mode, rules)
}

/// The command by which this process becomes `then` in a view that bubblewrap makes. `None` where these rules are for
/// [`apply`]. What it becomes is held to the same rules by [`hold`]; it must not have given up new privileges before.
pub fn by_bubblewrap(mode: Mode, rules: &Rules, then: &[OsString]) -> Result<Option<Command>, SandboxError> {
    let Some(path) = rules.bubblewrap.as_ref().filter(|_| mode != Mode::Off && rules.namespaces) else {
        return Ok(None);
    };
    check(mode, rules)?;
    bubblewrap::command(rules, path, then).map(Some)
}

pub use bubblewrap::file_of;

/// Whether these rules can be kept here.
fn check(mode: Mode, rules: &Rules) -> Result<(), SandboxError> {
    // Before anything is hidden from us too.
    Plan::new(rules)?;
    let abi = version();
    let obstacle = || namespace::obstacle().unwrap_or_else(|| "they were not asked for".to_owned());
    if mode == Mode::Strict {
        let unseen =
            || namespace::obstacle_of_processes().unwrap_or_else(|| "they were not asked for".to_owned());
        let (view, unseen) = ((!rules.namespaces).then(obstacle), (!rules.processes).then(unseen));
        let support = described(abi, view, unseen, rules.bubblewrap.clone());
        if support.level != Level::Full {
            return Err(SandboxError::Unsupported(support.what));
        }
    }
    if rules.network == Network::None && !rules.namespaces {
        return Err(SandboxError::NoNetwork(obstacle()));
    }
    Ok(())
}

/// Landlock, which is all that is left to do in a view that is there.
pub fn hold(mode: Mode, rules: &Rules) -> Result<Level, SandboxError> {
    if mode == Mode::Off {
        return Ok(Level::None);
    }
    if version() < 2 {
        return Ok(if rules.namespaces { Level::Partial } else { Level::None });
    }
    let plan = Plan::new(rules)?;
    let failed = |error: landlock::RulesetError| SandboxError::Failed(error.to_string());
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))
        .map_err(failed)?;
    if rules.tcp_connect.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp).map_err(failed)?;
    }
    if rules.tcp_bind.is_some() {
        ruleset = ruleset.handle_access(AccessNet::BindTcp).map_err(failed)?;
    }
    let mut ruleset = ruleset.create().map_err(failed)?;
    // Port 0 is whichever is free: most tests that serve something ask for that.
    for &(first, last) in rules.tcp_bind.iter().flat_map(|ports| ports.iter().chain(&[(0, 0)])) {
        for port in first..=last {
            ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::BindTcp)).map_err(failed)?;
        }
    }
    for &port in rules.tcp_connect.iter().flatten() {
        ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).map_err(failed)?;
    }
    for (path, rights) in &plan.allowed {
        ruleset = allow(ruleset, path, *rights)?;
    }
    match ruleset.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(Level::Full),
        RulesetStatus::PartiallyEnforced if mode != Mode::Strict => Ok(Level::Partial),
        RulesetStatus::NotEnforced if mode != Mode::Strict => Ok(Level::None),
        _ => Err(SandboxError::Unsupported("the kernel took only a part of it".to_string())),
    }
}

/// What root has is not passed on to the program that this process becomes, but for [`POWERS_KEPT`]: with the others the
/// variables of every process can be read, and tokens on the network.
///
/// All sets are emptied, because root has again what is in the bounding or the inheritable one when it starts a program.
/// For everybody but root this does nothing that starting a program does not. `false` where root keeps more.
#[allow(
    unsafe_code,
    reason = "there is no safe way to these calls, and their memory is ours and outlives them"
)]
pub fn give_up_powers() -> bool {
    let is_kept = |power: &u32| POWERS_KEPT.contains(power);
    let given_up = || (0..POWERS_MAX).filter(|power| !is_kept(power)).map(libc::c_ulong::from);
    for power in given_up() {
        // SAFETY: numbers go in, and nothing of this process is read or written.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, power, 0, 0, 0) };
    }
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let kept = POWERS_KEPT.iter().fold(0, |kept, power| kept | 1 << power);
    if let Some(powers) = powers() {
        let (low, high) = (powers[0], Powers::default());
        let low = Powers { effective: low.effective & kept, permitted: low.permitted & kept, inheritable: 0 };
        let (head, powers) = (PowersHead::of_this_process(), [low, high]);
        // SAFETY: both are read only, and are there for as long as the call takes.
        unsafe { libc::syscall(libc::SYS_capset, &head, powers.as_ptr()) };
    }
    // SAFETY: as above.
    let stays = |power: libc::c_ulong| unsafe { libc::prctl(libc::PR_CAPBSET_READ, power, 0, 0, 0) == 1 };
    !nix::unistd::geteuid().is_root() || !given_up().any(stays)
}

/// As the kernel has it (`linux/capability.h`).
#[repr(C)]
struct PowersHead {
    version: u32,
    pid: libc::c_int,
}

impl PowersHead {
    fn of_this_process() -> PowersHead {
        PowersHead { version: 0x2008_0522, pid: 0 }
    }
}

/// The sets of 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Powers {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

#[allow(unsafe_code, reason = "there is no safe way to this call, and its memory is ours and outlives it")]
fn powers() -> Option<[Powers; 2]> {
    let (mut head, mut powers) = (PowersHead::of_this_process(), [Powers::default(); 2]);
    // SAFETY: a value of each of the types that the call fills in goes in.
    let read = unsafe { libc::syscall(libc::SYS_capget, &mut head, powers.as_mut_ptr()) };
    (read == 0).then_some(powers)
}

/// Whether this process has one of the first 32 capabilities.
fn has_power(power: u32) -> bool {
    powers().is_some_and(|powers| powers[0].effective & 1 << power != 0)
}

/// What a path and all below it may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    List,
    /// Its files, by their names.
    ReadFiles,
    Read,
    Write,
    Device,
}

impl Rights {
    fn bits(self) -> BitFlags<AccessFs> {
        let read = AccessFs::from_read(ABI::V5);
        let write = AccessFs::from_write(ABI::V5);
        match self {
            Rights::List => AccessFs::ReadDir.into(),
            Rights::ReadFiles => read & !BitFlags::from(AccessFs::ReadDir),
            Rights::Read => read,
            Rights::Write => {
                (read | write) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
            }
            Rights::Device => {
                (read | write) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::Execute)
            }
        }
    }
}

/// Whatever stands at the path now, if anything does.
fn allow(ruleset: RulesetCreated, path: &Path, rights: Rights) -> Result<RulesetCreated, SandboxError> {
    // Not through a symbolic link: it could lead into what is hidden, and be made so after we looked.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) else {
        return Ok(ruleset);
    };
    let Ok(kind) = File::metadata(&file).map(|metadata| metadata.file_type()) else { return Ok(ruleset) };
    if kind.is_symlink() {
        return Ok(ruleset);
    }
    let bits = if kind.is_dir() { rights.bits() } else { rights.bits() & AccessFs::from_file(ABI::V5) };
    let rule = PathBeneath::new(file, bits);
    ruleset.add_rule(rule).map_err(|error| SandboxError::Failed(format!("{}: {error}", path.display())))
}

/// All that is allowed, path by path.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    allowed: Vec<(PathBuf, Rights)>,
}

impl Plan {
    fn new(rules: &Rules) -> Result<Plan, SandboxError> {
        let resolve =
            |paths: &[PathBuf]| paths.iter().map(|path| resolve(path)).collect::<Result<Vec<_>, _>>();
        let hidden = resolve(&rules.hidden)?;
        // What lies inside another one is allowed with it. Named by itself it would be looked up in a place where the
        // program may have put a link to anywhere.
        let is_inside =
            |path: &PathBuf| rules.read_write.iter().any(|other| other != path && path.starts_with(other));
        let writable: Vec<PathBuf> =
            rules.read_write.iter().filter(|path| !is_inside(path)).cloned().collect();
        let writable = resolve(&writable)?;
        let mut writable = writable;
        if rules.namespaces {
            writable.extend(resolve(&rules.instead.iter().map(|(_, at)| at.clone()).collect::<Vec<_>>())?);
        }
        let readable = resolve(&rules.read_only)?;
        // A view of its own hides that all the same.
        for open in writable.iter().chain(&readable).filter(|_| !rules.namespaces) {
            if let Some(hidden) = hidden.iter().find(|hidden| hidden.starts_with(open)) {
                return Err(SandboxError::Conflict { hidden: hidden.clone(), open: open.clone() });
            }
        }
        let mut allowed = Vec::new();
        let mut closed: BTreeSet<PathBuf> = hidden.into_iter().collect();
        closed.insert("/dev".into());
        if !rules.namespaces {
            // What lies in something open cannot be taken back.
            let is_open =
                |path: &PathBuf| writable.iter().chain(&readable).any(|open| path.starts_with(open));
            let concealed = resolve(&rules.concealed)?.into_iter().filter(|path| path.exists());
            closed.extend(concealed.filter(|path| !is_open(path)));
        }
        match &rules.only {
            None => around(Path::new("/"), &closed, rules.namespaces, &mut allowed),
            Some(only) => {
                for open in resolve(only)?.into_iter().filter(|open| !closed.contains(open)) {
                    match closed.iter().any(|closed| closed.starts_with(&open)) {
                        true => around(&open, &closed, rules.namespaces, &mut allowed),
                        false => allowed.push((open, Rights::Read)),
                    }
                }
            }
        }
        allowed.push(("/dev".into(), Rights::List));
        allowed.extend(DEVICES.iter().map(|device| (PathBuf::from(device), Rights::Device)));
        allowed.extend(readable.into_iter().map(|path| (path, Rights::Read)));
        allowed.extend(writable.into_iter().map(|path| (path, Rights::Write)));
        Ok(Plan { allowed })
    }
}

/// The path without symbolic links, also where its last parts do not exist.
fn resolve(path: &Path) -> Result<PathBuf, SandboxError> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(SandboxError::Relative(path.to_path_buf()));
    }
    // What is not there, or not to be looked at by us, is not to be looked at by the program either.
    let found = path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    Ok(match found {
        Some((there, real)) if there == path => real,
        Some((there, real)) => path.strip_prefix(there).map_or(real.clone(), |rest| real.join(rest)),
        None => path.to_path_buf(),
    })
}

/// Allows to read everything below the directory, which has something closed in it, but for that.
///
/// With `emptied` what is closed is empty for the program, and nobody whom Landlock holds can undo a mount: then its files
/// need not be told from those beside it, and only folders are named. A file that is named takes up its room on the disk
/// for as long as the program runs, deleted or not.
fn around(dir: &Path, closed: &BTreeSet<PathBuf>, emptied: bool, allowed: &mut Vec<(PathBuf, Rights)>) {
    // Devices are there in every view.
    let by_folder = emptied && !Path::new("/dev").starts_with(dir);
    if by_folder {
        allowed.push((dir.to_owned(), Rights::ReadFiles));
    }
    let below = |path: &PathBuf| Some(dir.join(path.strip_prefix(dir).ok()?.components().next()?));
    let onwards: BTreeSet<PathBuf> = closed.iter().filter_map(below).collect();
    for next in onwards.iter().filter(|next| !closed.contains(*next)) {
        around(next, closed, emptied, allowed);
    }
    // One that cannot be listed can still be passed through to what is known by name, as above.
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten().take(ENTRIES_MAX) {
        // Links are left out: what they lead to is allowed where it stands, or not at all.
        let is_left_out = |kind: FileType| kind.is_symlink() || (by_folder && !kind.is_dir());
        if !entry.file_type().is_ok_and(is_left_out) && !onwards.contains(&entry.path()) {
            allowed.push((entry.path(), Rights::Read));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use testing::Folder;

    /// What of the directory is allowed, and how, with the paths shortened.
    fn plan(dir: &Folder, rules: &Rules) -> Vec<String> {
        let allowed = Plan::new(rules).unwrap().allowed.into_iter();
        let mut found: Vec<String> = allowed
            .filter_map(|(path, rights)| {
                Some(format!("{rights:?} {}", path.strip_prefix(&dir.path).ok()?.display()))
            })
            .collect();
        found.sort();
        found
    }

    fn project() -> Folder {
        let dir = Folder::new();
        for name in
            ["p/.adjutant/land.git/objects", "p/agents/mine/.git", "p/agents/other", "p/src", "beside"]
        {
            std::fs::create_dir_all(dir.path.join(name)).unwrap();
        }
        std::fs::write(dir.path.join("p/Cargo.toml"), "").unwrap();
        symlink(dir.path.join("p/.adjutant"), dir.path.join("p/link")).unwrap();
        dir
    }

    #[test]
    fn all_that_stands_beside_the_way_to_what_is_hidden_is_allowed() {
        let dir = project();
        let at = |name: &str| dir.path.join(name);
        let rules = Rules {
            read_write: vec![at("p/agents/mine"), at("p/agents/mine/.git")],
            read_only: vec![at("p/.adjutant/land.git/objects")],
            hidden: vec![at("p/.adjutant"), at("p/agents")],
            ..Rules::default()
        };
        assert_eq!(
            plan(&dir, &rules),
            [
                "Read beside",
                "Read p/.adjutant/land.git/objects",
                "Read p/Cargo.toml",
                "Read p/src",
                "Write p/agents/mine",
            ]
        );
    }

    /// Where the program has a view of its own: a file that is named would take up its room after it is deleted.
    #[test]
    fn no_file_is_named_where_hidden_places_are_empty() {
        let dir = project();
        let at = |name: &str| dir.path.join(name);
        let hidden = vec![at("p/.adjutant"), at("p/agents")];
        let rules = Rules { hidden, namespaces: true, ..Rules::default() };
        assert_eq!(plan(&dir, &rules), ["Read beside", "Read p/src", "ReadFiles ", "ReadFiles p"]);
    }

    #[test]
    fn a_link_to_what_is_hidden_hides_it_where_it_stands() {
        let dir = project();
        let rules = Rules { hidden: vec![dir.path.join("p/link")], ..Rules::default() };
        assert!(plan(&dir, &rules).iter().all(|line| !line.contains(".adjutant") && !line.contains("link")));
    }

    /// It cannot be read when it is made, either: its directory is not allowed as a whole.
    #[test]
    fn what_is_hidden_need_not_be_there_yet() {
        let dir = project();
        let rules = Rules { hidden: vec![dir.path.join("p/later/on")], ..Rules::default() };
        let allowed = plan(&dir, &rules);
        assert!(allowed.contains(&"Read p/src".to_string()) && !allowed.contains(&"Read p".to_string()));
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        let dir = project();
        let at = |name: &str| dir.path.join(name);
        let rules = Rules { read_write: vec![at("p")], hidden: vec![at("p/.adjutant")], ..Rules::default() };
        assert!(matches!(Plan::new(&rules), Err(SandboxError::Conflict { .. })));
        let rules = Rules { hidden: vec!["relative".into()], ..Rules::default() };
        assert!(matches!(Plan::new(&rules), Err(SandboxError::Relative(_))));
        let rules = Rules { hidden: vec![at("p/../p")], ..Rules::default() };
        assert!(matches!(Plan::new(&rules), Err(SandboxError::Relative(_))));
    }

    #[test]
    fn disks_and_memory_are_in_no_plan() {
        let allowed = Plan::new(&Rules::default()).unwrap().allowed;
        let devices: Vec<_> = allowed.iter().filter(|(path, _)| path.starts_with("/dev")).collect();
        assert_eq!(devices.len(), DEVICES.len() + 1);
        assert!(devices.contains(&&("/dev".into(), Rights::List)));
    }

    #[test]
    fn support_says_what_there_is() {
        let support = support();
        assert!(support.abi <= 6 && !support.what.is_empty());
        assert_eq!(support.level == Level::Full, support.abi == 6);
    }
}
