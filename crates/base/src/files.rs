//! Files of ours that must be whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What must have reached the disk when a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// Nothing: should the machine stop, the file does not matter any more.
    Nothing,
    /// What it holds, and that it is there.
    ContentAndName,
}

/// What could not be done with a file or folder of ours.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} `{}`: {source}", path.display())]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// For `map_err`: what was being done to which file.
    pub fn at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError { doing, path, source }
    }
}

/// Whether a path leads into a git directory, by itself or by links. What lies there, such as passwords in a config and our
/// own tokens, is no content of the repository whose checkout is at `root`, whoever named it. `false` where there is nothing.
pub fn leads_into_git(root: &Path, path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    // A checkout may lie inside of a bare repository: what is above it says nothing.
    let inner = real.strip_prefix(&root).unwrap_or(&real);
    let is_git = |folder: &Path| {
        folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
    };
    let folders = real.ancestors().take_while(|folder| *folder != root);
    inner.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
        || folders.into_iter().any(is_git)
}

/// The same as an error, for whoever opens files.
pub fn not_into_git(root: &Path, path: &Path) -> io::Result<()> {
    match leads_into_git(root, path) {
        true => {
            Err(io::Error::other("it leads into a git directory, which holds no content of the repository"))
        }
        false => Ok(()),
    }
}

/// When a file or folder was made, in nanoseconds since the epoch, where the file system knows it. Numbers of files are
/// given out again at once; this is not.
pub fn born(found: &std::fs::Metadata) -> Option<u64> {
    let since = found.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

/// How many files, sockets and the like this process may have open.
pub fn descriptors_max() -> usize {
    use nix::sys::resource::{Resource, getrlimit};
    // The least that a system gives where it does not say.
    const LEAST: usize = 256;
    getrlimit(Resource::RLIMIT_NOFILE).map_or(LEAST, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
}

/// Lets this process have as many open as the system allows it: each connection of a server is one, each step at work has three,
/// and the usual limit of 1,024 would soon be reached.
pub fn raise_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where it cannot be raised, fewer connections are taken, and a step that finds no file left is tried again.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Writes a file that only its owner can read. After a crash it holds the old content or the new, and nothing between; once
/// this returns, it is the new, after a power cut too.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, Synced::ContentAndName)
}

/// The same, where more or less than the content must be on the disk. Some folders are an agent's to write too: a link
/// that it left in the way is not followed.
pub fn replace(path: &Path, content: &[u8], synced: Synced) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut beside = path.as_os_str().to_owned();
    // Named apart from what another may be writing at the same time.
    beside.push(format!(".adjutant-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let beside = PathBuf::from(beside);
    let written = write_new(&beside, content, synced).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    if synced == Synced::ContentAndName {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn write_new(path: &Path, content: &[u8], synced: Synced) -> io::Result<()> {
    // Left by a process of the same id that was killed, or put there by an agent.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    if synced == Synced::Nothing { Ok(()) } else { file.sync_data() }
}

/// What these files and folders hold, and that they are there, is on the disk; one that is gone or is a link has nothing to lose. Where
/// they are more than `one_by_one`, everything on the file system that `folder` is on is brought there instead.
pub fn sync(folder: &Path, files: &[PathBuf], one_by_one: usize) -> io::Result<()> {
    if files.len() > one_by_one {
        let folder = File::open(folder)?;
        #[cfg(target_os = "linux")]
        nix::unistd::syncfs(&folder)?;
        #[cfg(not(target_os = "linux"))]
        {
            drop(folder);
            nix::unistd::sync();
        }
        return Ok(());
    }
    let mut folders = std::collections::BTreeSet::new();
    for path in files {
        match path.symlink_metadata() {
            Ok(found) if found.is_file() => File::open(path)?.sync_all()?,
            Ok(found) if found.is_dir() => drop(folders.insert(path.as_path())),
            _ => {}
        }
        folders.extend(path.parent().filter(|parent| parent.is_dir()));
    }
    for folder in folders {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// A folder with everything in it is on the disk. No link is followed.
pub fn sync_below(folder: &Path) -> io::Result<()> {
    /// Up to so many files are brought there one by one.
    const ONE_BY_ONE_MAX: usize = 100;
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
        // A folder without a file in it is to be there, too.
        files.push(next);
        if files.len() > ONE_BY_ONE_MAX {
            break;
        }
    }
    sync(folder, &files, ONE_BY_ONE_MAX)
}

/// Copies a folder with all files, folders and links in it to a new place; what is none of these is left out. No link is
/// followed.
pub fn copy_below(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_below(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            std::fs::copy(&source, &target)?;
        }
    }
    std::fs::set_permissions(to, std::fs::metadata(from)?.permissions())
}

/// How much of the disk is used by a path and all below it. No link is followed; what cannot be looked at counts nothing.
pub fn bytes_below(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = path.symlink_metadata() else { return 0 };
    let own = found.blocks() * 512;
    if !found.is_dir() {
        return own;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + entries.map(|entry| bytes_below(&entry.path())).sum::<u64>()
}

/// Whose a file or folder is: the user's name, or number where nobody has one.
pub fn owner_of(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let user = nix::unistd::Uid::from_raw(path.symlink_metadata().ok()?.uid());
    let name = nix::unistd::User::from_uid(user).ok().flatten().map(|user| user.name);
    Some(name.unwrap_or_else(|| user.to_string()))
}
