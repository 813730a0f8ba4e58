//! Restores the file modes of our folders: only the user may access them. An agent without a sandbox, a copy or a backup may have
//! changed them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Layout;

/// Files whose names begin so hold what only their user may read.
const SECRET: &str = "token";
/// What git has of files here is known by its content.
const OBJECTS: &str = "objects";
/// How deep folders are looked at, and how many files and folders in all but `land.git`.
const DEPTH_MAX: u32 = 8;
const LOOKED_AT_MAX: usize = 20_000;

/// What the modes of a path must have, and what they must not.
#[derive(Clone, Copy)]
struct Wanted {
    has: u32,
    not: u32,
}

const FOLDER: Wanted = Wanted { has: 0o700, not: 0o077 };
const FILE: Wanted = Wanted { has: 0o600, not: 0o077 };
const INNER_FOLDER: Wanted = Wanted { has: 0o700, not: 0 };
const INNER_FILE: Wanted = Wanted { has: 0o400, not: 0 };
/// Read by agents, as far as the sandbox lets them; written by nobody else.
const LAND_FOLDER: Wanted = Wanted { has: 0o700, not: 0o022 };
const LAND_FILE: Wanted = Wanted { has: 0o400, not: 0o022 };
/// That others can read what lies in a folder which they cannot enter is no news.
const NO_NEWS: u32 = 0o055;

impl Layout {
    /// Gives the modes of our own state back to what they should be, and says what was wrong.
    pub fn mend_modes(&self) -> Vec<String> {
        let (state, land) = (self.state(), self.land());
        let mut said = Vec::new();
        let mut left = LOOKED_AT_MAX;
        mend(&state, FOLDER, 0, &mut said);
        for path in within(&state) {
            let secret =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(SECRET.as_bytes()));
            match kind(&path) {
                Some(Kind::File) => mend(&path, FILE, if secret { 0 } else { NO_NEWS }, &mut said),
                Some(Kind::Folder) if path == land => mend_land(&path, DEPTH_MAX, &mut said),
                Some(Kind::Folder) => {
                    mend(&path, FOLDER, NO_NEWS, &mut said);
                    mend_below(&path, DEPTH_MAX, &mut left, &mut said);
                }
                None => {}
            }
        }
        said
    }
}

/// What nobody else can get at, because of the folders above it, need only be of use to its user. Which of it others could
/// read is up to the programs that wrote it.
fn mend_below(folder: &Path, depth: u32, left: &mut usize, said: &mut Vec<String>) {
    for path in within(folder) {
        let Some(next) = left.checked_sub(1) else { return };
        *left = next;
        match kind(&path) {
            Some(Kind::Folder) => {
                mend(&path, INNER_FOLDER, 0, said);
                if depth > 0 {
                    mend_below(&path, depth - 1, left, said);
                }
            }
            Some(Kind::File)
                if mode_of(&path).is_some_and(|mode| mode & INNER_FILE.has != INNER_FILE.has) =>
            {
                mend(&path, FILE, NO_NEWS, said);
            }
            _ => {}
        }
    }
}

fn mend_land(folder: &Path, depth: u32, said: &mut Vec<String>) {
    mend(folder, LAND_FOLDER, 0, said);
    let holds_objects = folder.components().any(|part| part.as_os_str() == OBJECTS);
    for path in within(folder) {
        match kind(&path) {
            Some(Kind::Folder) if depth > 0 => mend_land(&path, depth - 1, said),
            Some(Kind::File) if !holds_objects => mend(&path, LAND_FILE, 0, said),
            _ => {}
        }
    }
}

fn within(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

enum Kind {
    File,
    Folder,
}

/// `None` for what has no modes of its own to speak of, such as links and sockets.
fn kind(path: &Path) -> Option<Kind> {
    let kind = path.symlink_metadata().ok()?.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Some(Kind::Folder),
        (_, true) => Some(Kind::File),
        _ => None,
    }
}

fn mode_of(path: &Path) -> Option<u32> {
    Some(path.symlink_metadata().ok()?.permissions().mode() & 0o7777)
}

/// `quiet` are modes that are taken away without a word.
fn mend(path: &Path, wanted: Wanted, quiet: u32, said: &mut Vec<String>) {
    let Some(mode) = mode_of(path) else { return };
    let right = (mode | wanted.has) & !wanted.not;
    if mode == right {
        return;
    }
    let set = fs::set_permissions(path, Permissions::from_mode(right));
    let path = path.display();
    match set {
        Ok(()) if (mode ^ right) & !quiet == 0 => {}
        Ok(()) => said.push(format!("`{path}` had mode {mode:o}; it is {right:o} again")),
        Err(error) => said.push(format!("`{path}` has mode {mode:o} and should have {right:o}: {error}")),
    }
}
