//! Reads and writes a directory that an agent may write to, without trusting its content.
//!
//! Invariants: no link is followed on the way to a file; only regular files are read, and only up to a limit
//! (a pipe or a device would block us forever); a file is replaced completely or not at all. No git runs
//! here, because its settings are the agent's.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::Oid;

/// The most that is read of one loose reference, and of `HEAD`.
const REFERENCE_BYTES_MAX: usize = 4 << 10;
/// The most that is read of the file of packed references.
const PACKED_REFERENCES_BYTES_MAX: usize = 16 << 20;
/// How much of the end of a reference's history is read.
const HISTORY_BYTES_MAX: u64 = 256 << 10;
/// How many references an agent may make before the rest is not looked at.
const REFERENCES_MAX: usize = 1000;
/// How often a reference may lead to another.
const LINKS_MAX: usize = 5;

/// An open directory, and the way to it for messages and for git.
pub(super) struct Inside {
    directory: OwnedFd,
    path: PathBuf,
}

/// Where `HEAD` points.
#[derive(Debug, PartialEq)]
pub(super) enum Head {
    /// On a branch, which has a commit or not yet.
    On(String, Option<Oid>),
    At(Oid),
}

impl Inside {
    /// The directory `name` in `parent`, which is ours and may be reached by links. `None` if there is nothing;
    /// an error if there is something other than a directory.
    pub fn open(parent: &Path, name: &str) -> io::Result<Option<Inside>> {
        let parent_directory = match File::open(parent) {
            Ok(file) => OwnedFd::from(file),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        enter(&parent_directory, name)
            .map(|found| found.map(|directory| Inside { directory, path: parent.join(name) }))
    }

    pub fn enter(&self, name: &str) -> io::Result<Option<Inside>> {
        enter(&self.directory, name)
            .map(|found| found.map(|directory| Inside { directory, path: self.path.join(name) }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device and number of the directory: a directory that someone put in its place has others.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let found = fstat(&self.directory)?;
        // The widths differ between systems.
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
        Ok((found.st_dev as u64, found.st_ino as u64))
    }

    /// When the directory was made, where that is known.
    pub fn born(&self) -> Option<u64> {
        let directory = File::from(self.directory.try_clone().ok()?);
        base::files::born(&directory.metadata().ok()?)
    }

    /// The file's content; `None` if there is none. What is too large, or not a file, is an error.
    pub fn read(&self, path: &str, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(path)? else { return Ok(None) };
        let mut content = Vec::new();
        file.take(bytes_max as u64 + 1).read_to_end(&mut content)?;
        if content.len() > bytes_max {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("{path} is larger than {bytes_max} bytes"),
            ));
        }
        Ok(Some(content))
    }

    /// The file's last bytes; `None` if there is none.
    fn read_end(&self, path: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        use std::io::Seek;
        let Some(mut file) = self.open_file(path)? else { return Ok(None) };
        let length = file.metadata()?.len();
        file.seek(io::SeekFrom::Start(length.saturating_sub(bytes_max)))?;
        let mut content = Vec::new();
        file.take(bytes_max).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn open_file(&self, path: &str) -> io::Result<Option<File>> {
        let (folder, name) = split(path);
        let Some(parent) = self.walk(folder)? else { return Ok(None) };
        // Non-blocking, so that a pipe in the file's place does not hold us up before we see what it is.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(parent.as_ref().unwrap_or(&self.directory), name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(Errno::ELOOP) => return Err(is_not(path, "a link, not a file")),
            Err(e) => return Err(e.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(is_not(path, "not a file"));
        }
        Ok(Some(file))
    }

    /// The directory that `folder` leads to, `Some(None)` for this one itself.
    fn walk(&self, folder: &str) -> io::Result<Option<Option<OwnedFd>>> {
        let mut at: Option<OwnedFd> = None;
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            match enter(at.as_ref().unwrap_or(&self.directory), part)? {
                Some(next) => at = Some(next),
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Puts a file there, whole. What stands in the way of a directory on its path, a link too, is renamed and kept.
    pub fn replace(&self, path: &str, content: &[u8]) -> io::Result<()> {
        self.replace_with(path, content, 0o644)
    }

    /// As `replace`, and it can be run.
    pub fn replace_program(&self, path: &str, content: &[u8]) -> io::Result<()> {
        self.replace_with(path, content, 0o755)
    }

    fn replace_with(&self, path: &str, content: &[u8], mode: u32) -> io::Result<()> {
        base::crash::point("replacing a file of an agent's");
        let (folder, name) = split(path);
        let mut at = self.directory.as_fd().try_clone_to_owned()?;
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            at = enter_or_make(&at, part)?;
        }
        if is_directory(&at, name)? {
            set_aside(&at, name)?;
        }
        // Not beside the file: in a folder of references a crash would leave one more of them.
        let beside = format!("adjutant-{}", std::process::id());
        let _ = unlinkat(&self.directory, beside.as_str(), UnlinkatFlags::NoRemoveDir);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(mode);
        let mut file = File::from(openat(&self.directory, beside.as_str(), flags, mode)?);
        let written = file.write_all(content).and_then(|()| file.sync_data()).and_then(|()| {
            renameat(&self.directory, beside.as_str(), &at, name)?;
            Ok(())
        });
        if written.is_err() {
            let _ = unlinkat(&self.directory, beside.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        written
    }

    /// Removes a file, if it is there. Nothing else is removed.
    pub fn remove_file(&self, path: &str) -> io::Result<()> {
        let (folder, name) = split(path);
        let Some(parent) = self.walk(folder)? else { return Ok(()) };
        match unlinkat(parent.as_ref().unwrap_or(&self.directory), name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        let (folder, name) = split(path);
        let Ok(Some(parent)) = self.walk(folder) else { return false };
        fstatat(parent.as_ref().unwrap_or(&self.directory), name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Whether there is a file that holds nothing.
    pub fn is_empty_file(&self, path: &str) -> bool {
        self.read(path, 0).is_ok_and(|content| content.is_some())
    }

    /// Where this git directory's `HEAD` points; `None` if it says nothing that makes sense.
    pub fn head(&self) -> io::Result<Option<Head>> {
        let Some(content) = self.read("HEAD", REFERENCE_BYTES_MAX)? else { return Ok(None) };
        Ok(match parse(&content) {
            Some(Said::Oid(oid)) => Some(Head::At(oid)),
            Some(Said::Reference(name)) => {
                let oid = self.reference(&name)?;
                Some(Head::On(name, oid))
            }
            None => None,
        })
    }

    /// The commit that a reference of this git directory names, by the rules of git's own files.
    pub fn reference(&self, name: &str) -> io::Result<Option<Oid>> {
        let mut name = name.to_owned();
        for _ in 0..LINKS_MAX {
            let loose = self.read(&name, REFERENCE_BYTES_MAX)?;
            match loose.as_deref().map(parse) {
                Some(Some(Said::Oid(oid))) => return Ok(Some(oid)),
                Some(Some(Said::Reference(next))) => name = next,
                Some(None) => return Err(is_not(&name, "not a reference")),
                None => {
                    return Ok(self
                        .packed()?
                        .into_iter()
                        .find(|(packed, _)| *packed == name)
                        .map(|(_, oid)| oid));
                }
            }
        }
        Err(is_not(&name, "a reference that leads in circles"))
    }

    /// Every commit that this git directory names anywhere: references, `HEAD`'s history, the stash. Best effort, and
    /// no more than a bounded number: it is what an agent may have left lying about.
    pub fn everything_named(&self) -> Vec<Oid> {
        let mut found: Vec<Oid> = Vec::new();
        for (_, oid) in self.packed().unwrap_or_default() {
            found.push(oid);
        }
        let mut folders = vec!["refs".to_owned()];
        while let Some(folder) = folders.pop() {
            // The listing itself may be raced to follow a link; each file is then opened without following any.
            let Ok(entries) = fs::read_dir(self.path.join(&folder)) else { continue };
            for entry in entries.flatten().take(REFERENCES_MAX) {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = format!("{folder}/{name}");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && folders.len() < REFERENCES_MAX => folders.push(path),
                    Ok(kind) if kind.is_file() => {
                        if let Ok(Some(Some(Said::Oid(oid)))) =
                            self.read(&path, REFERENCE_BYTES_MAX).map(|read| read.as_deref().map(parse))
                        {
                            found.push(oid);
                        }
                    }
                    _ => {}
                }
            }
        }
        for log in ["logs/HEAD", "logs/refs/stash"] {
            found.extend(self.history(log));
        }
        found.sort();
        found.dedup();
        found.truncate(REFERENCES_MAX);
        found
    }

    /// The commits in a reference's history, oldest first.
    pub fn history(&self, log: &str) -> Vec<Oid> {
        let Ok(Some(content)) = self.read_end(log, HISTORY_BYTES_MAX) else { return Vec::new() };
        String::from_utf8_lossy(&content)
            .lines()
            .filter_map(|line| line.split(' ').nth(1).and_then(Oid::new))
            .collect()
    }

    /// The same, each with what git says of how it came to be.
    pub fn history_with_reasons(&self, log: &str) -> Vec<(Oid, String)> {
        let Ok(Some(content)) = self.read_end(log, HISTORY_BYTES_MAX) else { return Vec::new() };
        let entry = |line: &str| {
            let (what, why) = line.split_once('\t')?;
            Some((what.split(' ').nth(1).and_then(Oid::new)?, why.to_owned()))
        };
        String::from_utf8_lossy(&content).lines().filter_map(entry).collect()
    }

    fn packed(&self) -> io::Result<Vec<(String, Oid)>> {
        let Some(content) = self.read("packed-refs", PACKED_REFERENCES_BYTES_MAX)? else {
            return Ok(Vec::new());
        };
        let content = String::from_utf8_lossy(&content);
        let lines = content.lines().filter(|line| !line.starts_with(['#', '^']));
        Ok(lines
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(oid, name)| Some((name.to_owned(), Oid::new(oid)?)))
            .collect())
    }
}

enum Said {
    Oid(Oid),
    Reference(String),
}

/// What a reference's file says: an id, or another reference inside `refs/`.
fn parse(content: &[u8]) -> Option<Said> {
    let text = std::str::from_utf8(content).ok()?.trim_end();
    if let Some(name) = text.strip_prefix("ref: ") {
        let name = name.trim();
        let inside = name.starts_with("refs/") && super::names::check_user_branch(name).is_ok();
        return inside.then(|| Said::Reference(name.to_owned()));
    }
    Oid::new(text).map(Said::Oid)
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn is_not(path: &str, what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{path} is {what}"))
}

fn enter(parent: &OwnedFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::ENOENT) => Ok(None),
        Err(Errno::ENOTDIR | Errno::ELOOP) => Err(is_not(name, "a link or a file, not a directory")),
        Err(e) => Err(e.into()),
    }
}

fn enter_or_make(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match enter(parent, name) {
        Ok(Some(fd)) => return Ok(fd),
        Ok(None) => {}
        Err(e) if e.kind() == ErrorKind::InvalidData => set_aside(parent, name)?,
        Err(e) => return Err(e),
    }
    mkdirat(parent, name, Mode::from_bits_truncate(0o755))?;
    enter(parent, name)?.ok_or_else(|| is_not(name, "gone as soon as it was made"))
}

fn is_directory(parent: &OwnedFd, name: &str) -> io::Result<bool> {
    match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR),
        Err(Errno::ENOENT) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn set_aside(parent: &OwnedFd, name: &str) -> io::Result<()> {
    for number in 1..=100 {
        let aside = format!("{name}.aside-{number}");
        if fstatat(parent, aside.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) == Err(Errno::ENOENT) {
            return Ok(renameat(parent, name, parent, aside.as_str())?);
        }
    }
    Err(is_not(name, "in the way, with a hundred before it"))
}
