//! Ticket files: read within limits, and overwritten only if they are unchanged since they were read.

use super::{Problem, Status, Ticket, add_note, set_status};
use kernel::Millis;
use machines::names::TaskId;
use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Entries of the directory that are looked at for each ticket that may be read: other files may lie there too.
const ENTRIES_PER_TICKET: usize = 4;
/// How old a file must be before its time alone proves that it was not changed: file systems count in coarse ticks, and
/// a second write within one tick leaves the same time.
const TIME_SETTLES: Duration = Duration::from_secs(2);
/// Own writes that are remembered for each ticket. A scan that runs beside several writes may meet any of them.
const OWN_WRITES_KEPT: usize = 8;
/// How often a change is tried anew when the file changed under it.
const CHANGE_TRIES: usize = 8;

/// Which bytes a file had. Two files with the same one have the same content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base::hex::hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A ticket file as it was read.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: PathBuf,
    pub ticket: Arc<Ticket>,
    pub fingerprint: Fingerprint,
}

/// The directory of tickets. It keeps what it read, so that the next scan opens only files that changed.
#[derive(Debug)]
pub struct Tickets {
    dir: PathBuf,
    bytes_max: u64,
    count_max: usize,
    kept: BTreeMap<OsString, (Stamp, Result<Seen, Problem>)>,
}

/// What the file system says of a file; the same stamp on a file that is old enough means the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Tickets {
    /// The tickets in this directory, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>, bytes_max: u64, count_max: usize) -> Tickets {
        Tickets { dir: dir.into(), bytes_max, count_max, kept: BTreeMap::new() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Every ticket file, in the order of their names: the ticket, or what is wrong with it. Links are not followed.
    /// No directory means no tickets; one that cannot be read is a problem, and not an empty one.
    pub fn scan(&mut self) -> Vec<Result<Seen, Problem>> {
        let (names, too_many) = match self.names() {
            Ok(names) => names,
            Err(error) => {
                let what = format!("the directory of tickets cannot be read: {error}");
                return vec![
                    Err(Problem::new(0, what, "make it readable; no ticket was read").of(&self.dir)),
                ];
            }
        };
        let mut found: Vec<_> = too_many.map(Err).into_iter().collect();
        let mut kept = BTreeMap::new();
        for name in names {
            let path = self.dir.join(&name);
            let before = self.kept.remove(&name);
            let Some((stamp, seen)) = look(&path, before, self.bytes_max) else { continue };
            if let Some(stamp) = stamp {
                kept.insert(name, (stamp, seen.clone()));
            }
            found.push(seen);
        }
        self.kept = kept;
        found
    }

    /// Names that end in `.md` and are not hidden, sorted; and a problem where there are more than are read.
    fn names(&self) -> io::Result<(Vec<OsString>, Option<Problem>)> {
        // The folder itself may be a link.
        base::files::not_into_git(self.dir.parent().unwrap_or(&self.dir), &self.dir)?;
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        let mut too_many = false;
        for (number, entry) in entries.enumerate() {
            let name = entry?.file_name();
            too_many = number >= self.count_max.saturating_mul(ENTRIES_PER_TICKET);
            if too_many {
                break;
            }
            let bytes = name.as_encoded_bytes();
            if bytes.ends_with(b".md") && !bytes.starts_with(b".") {
                names.push(name);
            }
        }
        names.sort();
        if too_many || names.len() > self.count_max {
            names.truncate(self.count_max);
            let what = format!("there are more files than the {} tickets that are read", self.count_max);
            let hint = "move closed tickets elsewhere, or raise limits.tickets";
            return Ok((names, Some(Problem::new(0, what, hint).of(&self.dir))));
        }
        Ok((names, None))
    }
}

/// A file as it is now; nothing where it is gone by now. The stamp is absent where it proves nothing.
fn look(
    path: &Path,
    before: Option<(Stamp, Result<Seen, Problem>)>,
    bytes_max: u64,
) -> Option<(Option<Stamp>, Result<Seen, Problem>)> {
    let problem = |what: String, hint: &str| Some((None, Err(Problem::new(0, what, hint).of(path))));
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return problem(format!("it cannot be read: {error}"), "make it readable"),
    };
    let stamp = Stamp::of(&metadata);
    if let Some((_, seen)) = before.filter(|(kept, _)| *kept == stamp) {
        return Some((Some(stamp), seen));
    }
    let seen = match read(path, bytes_max).transpose()? {
        Ok((ticket, bytes)) => {
            let fingerprint = Fingerprint::of(&bytes);
            Ok(Seen { path: path.to_owned(), ticket: Arc::new(ticket), fingerprint })
        }
        Err(problem) => Err(problem),
    };
    Some((settled(stamp, &metadata), seen))
}

fn settled(stamp: Stamp, metadata: &Metadata) -> Option<Stamp> {
    let changed =
        SystemTime::UNIX_EPOCH + Duration::from_secs(metadata.ctime().max(metadata.mtime()).max(0) as u64);
    let age = SystemTime::now().duration_since(changed).unwrap_or_default();
    (age > TIME_SETTLES).then_some(stamp)
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// One ticket file with its bytes; nothing where there is no file. Its name must be its id.
pub fn read(path: &Path, bytes_max: u64) -> Result<Option<(Ticket, Vec<u8>)>, Problem> {
    let problem = |what: String, hint: &str| Problem::new(0, what, hint).of(path);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let id =
        TaskId::new(stem).map_err(|bad| problem(bad.to_string(), "rename the file, and its id with it"))?;
    let (bytes, _) = match read_plain(path, bytes_max) {
        Ok(read) => read,
        Err(ReadError::Gone) => return Ok(None),
        Err(ReadError::NotPlain) => {
            return Err(problem(
                "it is not a plain file".to_owned(),
                "put the ticket itself here; links are not followed",
            ));
        }
        Err(ReadError::TooLarge) => {
            let hint = "shorten it, or raise limits.ticket_bytes";
            return Err(problem(format!("it is larger than {bytes_max} bytes"), hint));
        }
        Err(ReadError::Io(error)) => {
            return Err(problem(format!("it cannot be read: {error}"), "make it readable"));
        }
    };
    let ticket = named(path, &id, &bytes)?;
    Ok(Some((ticket, bytes)))
}

/// The ticket in these bytes of this file.
fn named(path: &Path, id: &TaskId, bytes: &[u8]) -> Result<Ticket, Problem> {
    let ticket = Ticket::parse(bytes).map_err(|problem| problem.of(path))?;
    if ticket.id != *id {
        let what = format!("the ticket's id is `{}`, and its file is named `{id}`", ticket.id);
        return Err(Problem::about(path, &what, "give both the same name; dependencies go by the id"));
    }
    Ok(ticket)
}

/// The same for a file whose bytes come from elsewhere, such as a commit.
pub fn parse_file(path: &Path, bytes: &[u8]) -> Result<Seen, Problem> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let id = TaskId::new(stem)
        .map_err(|bad| Problem::about(path, &bad.to_string(), "rename the file, and its id with it"))?;
    let ticket = named(path, &id, bytes)?;
    Ok(Seen { path: path.to_owned(), ticket: Arc::new(ticket), fingerprint: Fingerprint::of(bytes) })
}

enum ReadError {
    Gone,
    NotPlain,
    TooLarge,
    Io(io::Error),
}

fn read_plain(path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Metadata), ReadError> {
    // Not to wait for a writer where the name is a pipe, and not to follow where it is a link.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file =
        OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).map_err(|error| {
            match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::NotFound, _) => ReadError::Gone,
                (_, Some(code)) if code == nix::errno::Errno::ELOOP as i32 => ReadError::NotPlain,
                _ => ReadError::Io(error),
            }
        })?;
    let metadata = file.metadata().map_err(ReadError::Io)?;
    if !metadata.is_file() {
        return Err(ReadError::NotPlain);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() as u64 > bytes_max {
        return Err(ReadError::TooLarge);
    }
    Ok((bytes, metadata))
}

/// Why a ticket was not written. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("{path} changed since it was read; read it again")]
    Changed { path: PathBuf },
    #[error("{path} does not exist")]
    Gone { path: PathBuf },
    #[error("{0}")]
    NotATicket(#[from] Problem),
    #[error("cannot write {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// Puts `new` in place of the file whose content was `expected`, at once and durable, with the mode that it had.
///
/// A file that was changed in between is not overwritten: that is [`ChangeError::Changed`], and the caller reads it again.
/// Between the last look and the rename another program could still write; `tk` has no lock that would prevent it, and
/// that moment is as short as two calls.
pub fn write(path: &Path, expected: Fingerprint, new: &[u8]) -> Result<Fingerprint, ChangeError> {
    let failed = |error| ChangeError::Io { path: path.to_owned(), error };
    let same = || match read_plain(path, u64::MAX) {
        Ok((bytes, metadata)) if Fingerprint::of(&bytes) == expected => Ok(metadata),
        Ok(_) => Err(ChangeError::Changed { path: path.to_owned() }),
        Err(ReadError::Gone) => Err(ChangeError::Gone { path: path.to_owned() }),
        Err(ReadError::Io(error)) => Err(failed(error)),
        Err(ReadError::NotPlain | ReadError::TooLarge) => {
            Err(failed(io::Error::other("it is not a plain file")))
        }
    };
    let metadata = same()?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = Temporary::beside(dir, &name).map_err(failed)?;
    temporary.fill(new, metadata.permissions().mode()).map_err(failed)?;
    same()?;
    temporary.replace(path).map_err(failed)?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(Fingerprint::of(new))
}

/// A file that is gone again unless it replaced another. Its name is hidden and does not end in `.md`, so that neither
/// `tk` nor a scan takes it for a ticket.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn beside(dir: &Path, name: &str) -> io::Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(".{name}.{}-{number}.adj", std::process::id()));
        // Left by a process of the same id that was killed; ours alone by its name.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Temporary { path }),
        }
    }

    fn fill(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path)?;
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
        file.sync_all()
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What we wrote lately, so that a scan can tell our own writes from a person's. Shared by whoever writes and whoever
/// scans. Empty after a restart: what is found changed then is taken for a person's.
#[derive(Debug, Default)]
pub struct OwnWrites {
    written: Mutex<BTreeMap<TaskId, VecDeque<Fingerprint>>>,
}

impl OwnWrites {
    /// To be called before the write, because a scan may see it first; also for what a commit of ours will bring into the
    /// checkout.
    pub fn remember(&self, id: &TaskId, fingerprint: Fingerprint) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let own = written.entry(id.clone()).or_default();
        own.push_back(fingerprint);
        if own.len() > OWN_WRITES_KEPT {
            own.pop_front();
        }
    }

    /// Whether a person, or another program, wrote what was seen.
    pub fn by_hand(&self, seen: &Seen) -> bool {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        !written.get(&seen.ticket.id).is_some_and(|own| own.contains(&seen.fingerprint))
    }
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Written(Fingerprint),
    /// The file said so already: the change was made before, or by someone else.
    AlreadyThere(Fingerprint),
}

/// Gives a ticket this status and, where there is one, this note, over whatever the file says by now. Doing it again
/// changes nothing.
pub fn change(
    path: &Path,
    status: Status,
    note: Option<(Millis, &str)>,
    bytes_max: u64,
    own: &OwnWrites,
) -> Result<Change, ChangeError> {
    for _ in 0..CHANGE_TRIES {
        let Some((ticket, bytes)) = read(path, bytes_max)? else {
            return Err(ChangeError::Gone { path: path.to_owned() });
        };
        let told = |problem: Problem| ChangeError::NotATicket(problem.of(path));
        let mut new = set_status(&bytes, status).map_err(told)?;
        if let Some((at, note)) = note {
            new = add_note(&new, at, note).map_err(told)?;
        }
        let expected = Fingerprint::of(&bytes);
        if new == bytes {
            return Ok(Change::AlreadyThere(expected));
        }
        own.remember(&ticket.id, Fingerprint::of(&new));
        match write(path, expected, &new) {
            Err(ChangeError::Changed { .. }) => {}
            written => return written.map(Change::Written),
        }
    }
    Err(ChangeError::Changed { path: path.to_owned() })
}
