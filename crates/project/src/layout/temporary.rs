//! Temporary files of agents and tests: a folder for each task in the system's temporary directory.
//!
//! It is outside the repository, because git and many tests of tools search parent directories for one. It is short, because the
//! path of a socket can have 107 bytes. The system's directory is open to everybody, so a folder there is used only if it
//! is ours and nobody else can enter it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::rooms::Seat;
use machines::names::TaskId;
use sha2::{Digest, Sha256};

use super::{Layout, PRIVATE_SEATS};
use base::hex::hex;

/// A temporary directory with a longer path than this leaves too little for a socket's name.
const BASE_BYTES_MAX: usize = 40;
/// How many names are tried where somebody else has taken ours.
const NAMES_MAX: u32 = 9;
/// In the folder of a project's tasks: where its state is. Agents see their own folders in it, and not this.
const PROJECT: &str = ".project";
/// How much of a hash tells one seat from another: with its name the path would be too long.
const SEAT_HASH_BYTES: usize = 6;

/// How long the temporary files of a project that cannot be found stay.
const GONE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl Layout {
    /// Everybody's temporary files of this user, in all projects. Agents are shown only their own part.
    pub fn temporary(&self) -> PathBuf {
        let system = system();
        let user = nix::unistd::geteuid();
        let name = |number: u32| match number {
            1 => system.join(format!("adj-{user}")),
            _ => system.join(format!("adj-{user}-{number}")),
        };
        (1..=NAMES_MAX).map(name).find(|folder| is_free_or_ours(folder)).unwrap_or_else(|| name(1))
    }

    /// The folder of all tasks' temporary files in this project.
    pub fn temporary_of_tasks(&self) -> PathBuf {
        self.temporary().join(self.hash(4))
    }

    /// A task's own temporary files.
    pub fn temp(&self, task: &TaskId) -> PathBuf {
        self.temporary_of_tasks().join(git::names::temp_name(task))
    }

    /// Temporary files of an agent that speaks outside of any task.
    pub fn temp_of_seat(&self, seat: &Seat) -> PathBuf {
        let name = hex(&Sha256::digest(seat.to_string().as_bytes())[..SEAT_HASH_BYTES]);
        self.temporary_of_tasks().join(PRIVATE_SEATS).join(name)
    }

    /// Makes a folder of temporary files, anew where the system has cleared it away.
    pub fn make_temp(&self, folder: PathBuf) -> io::Result<PathBuf> {
        let base = self.temporary();
        match DirBuilder::new().mode(0o700).create(&base) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Looked at after it was made: between, somebody else can have been quicker.
        if !is_ours(&base) {
            let why = format!("`{}` is not this user's own folder", base.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        fs::set_permissions(&base, fs::Permissions::from_mode(0o700))?;
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let record = self.temporary_of_tasks().join(PROJECT);
        // Its time says when the project last used the folder.
        fs::write(&record, self.state().as_os_str().as_bytes())?;
        Ok(folder)
    }

    /// Removes the temporary files of this user's projects that are gone: by the record of where a project was, in a folder
    /// that is still there, and only if nobody used them for `GONE_AFTER`. A project may be on a disk that is not mounted now, or
    /// mounted for another process only.
    pub fn remove_temporary_of_gone(&self) -> io::Result<()> {
        let base = self.temporary();
        if !is_ours(&base) {
            return Ok(());
        }
        for entry in fs::read_dir(&base).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let record = entry.join(PROJECT);
            let Ok(state) = fs::read(&record) else { continue };
            let used = record.metadata().and_then(|found| found.modified());
            if used.is_ok_and(|used| used.elapsed().is_ok_and(|ago| ago < GONE_AFTER)) {
                continue;
            }
            let state = PathBuf::from(OsString::from_vec(state));
            if !state.is_absolute() || entry == self.temporary_of_tasks() || state.symlink_metadata().is_ok()
            {
                continue;
            }
            // The git directory, the checkout and the folder that the checkout was in.
            let was_in = state.ancestors().nth(3);
            if was_in.is_some_and(Path::is_dir) {
                fs::remove_dir_all(&entry)?;
            }
        }
        Ok(())
    }
}

/// The system's temporary directory, or `/tmp` where what the environment names is too long or in a repository.
fn system() -> PathBuf {
    let named = std::env::temp_dir();
    let named = named.canonicalize().unwrap_or(named);
    let in_repository = named.ancestors().any(|folder| folder.join(".git").exists());
    let usable = named.is_absolute() && named.as_os_str().len() <= BASE_BYTES_MAX && !in_repository;
    if usable { named } else { PathBuf::from("/tmp") }
}

fn is_free_or_ours(folder: &Path) -> bool {
    match folder.symlink_metadata() {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(_) => is_ours(folder),
    }
}

/// A folder, no link, of this user.
fn is_ours(folder: &Path) -> bool {
    let user = nix::unistd::geteuid().as_raw();
    folder.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == user)
}
