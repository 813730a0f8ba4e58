//! Git directories and folders of objects, known by what lies in them and not by their names.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// How many folders are looked at for a git directory that was moved, and how deep they lie.
const FOLDERS_MAX: usize = 2000;
const DEPTH_MAX: usize = 3;
/// How many entries of a folder are looked at to find one of git's objects.
const OBJECTS_LOOKED_AT_MAX: usize = 300;
/// How long the name of an object is, without the two digits that its folder has.
pub(super) const OBJECT_NAMES: &[usize] = &[38, 62];
/// How packs, their indexes, and the reverse of those begin.
const PACKS: &[[u8; 4]] = &[*b"PACK", *b"\xfftOc", *b"RIDX"];

/// Whether a folder is a git directory, by what git itself looks for, or what is left of one: its commits can still be had
/// without a `HEAD`.
pub(super) fn is_git_directory(folder: &Path) -> bool {
    let is = |name: &str, wanted: fn(&fs::Metadata) -> bool| {
        folder.join(name).symlink_metadata().is_ok_and(|found| wanted(&found))
    };
    is("objects", fs::Metadata::is_dir)
        && is("refs", fs::Metadata::is_dir)
        && (is("HEAD", fs::Metadata::is_file) || holds_objects(&folder.join("objects")))
}

/// Whether a folder with objects is what is left of a git directory, and not a folder of the project's.
pub(super) fn is_left_of_one(folder: &Path) -> bool {
    ["HEAD", "refs", "config", "logs", "index", "packed-refs"].iter().any(|name| folder.join(name).exists())
}

/// Whether there are git's objects in a folder: one of them, or a pack.
fn holds_objects(folder: &Path) -> bool {
    let entries = |at: &Path| fs::read_dir(at).into_iter().flatten().flatten().take(OBJECTS_LOOKED_AT_MAX);
    let has_one = |at: &Path| entries(at).any(|file| is_object(&file.path()));
    entries(folder).any(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && (entry.file_name() == "pack" || is_hex(&entry.file_name(), &[2]))
            && has_one(&entry.path())
    })
}

/// Whether a file is one of git's objects or packs, by its name and by how it begins. Other programs name files so, too.
pub(super) fn is_object(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let is_in = |wanted: &dyn Fn(&std::ffi::OsStr) -> bool| {
        path.parent().and_then(Path::file_name).is_some_and(wanted)
    };
    let mut begins = [0; 4];
    // A pipe or a link in its place, which the agent may have put there, is not waited for and not followed.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let mut read = || {
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        let opened = || fs::File::options().read(true).custom_flags(flags).open(path);
        is_file && opened().and_then(|mut file| file.read_exact(&mut begins)).is_ok()
    };
    if is_hex(name, OBJECT_NAMES) && is_in(&|folder| is_hex(folder, &[2])) {
        return read() && is_deflated(&begins);
    }
    let pack = name.to_str().and_then(|name| name.strip_prefix("pack-")?.split_once('.'));
    let is_pack = pack.is_some_and(|(hash, _)| is_hex(std::ffi::OsStr::new(hash), &[40, 64]));
    is_pack && is_in(&|folder| folder == "pack") && read() && PACKS.contains(&begins)
}

/// Whether this begins as zlib does, by which git deflates its objects.
pub(super) fn is_deflated(content: &[u8]) -> bool {
    matches!(content, [first @ 0x78, second, ..] if u16::from_be_bytes([*first, *second]).is_multiple_of(31))
}

/// Whether a name is so many hexadecimal digits.
pub(super) fn is_hex(name: &std::ffi::OsStr, lengths: &[usize]) -> bool {
    let digits = name.as_encoded_bytes();
    lengths.contains(&digits.len()) && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The git directories below a folder, each without those inside of it.
pub(super) fn git_directories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(root, |folder| {
        let is_one = is_git_directory(folder);
        found.extend(is_one.then(|| folder.to_owned()));
        !is_one
    });
    found
}

/// The folder of objects that somebody took out of its git directory.
pub(super) fn folder_of_objects(root: &Path) -> Option<PathBuf> {
    let mut found = None;
    walk(root, |folder| {
        let is_one = found.is_none() && folder != root && holds_objects(folder);
        if is_one {
            found = Some(folder.to_owned());
        }
        found.is_none() && !is_git_directory(folder)
    });
    found
}

/// Looks at folders from the root down; those below one only where that says so.
fn walk(root: &Path, mut look: impl FnMut(&Path) -> bool) {
    let mut folders = vec![(root.to_owned(), 0)];
    for _ in 0..FOLDERS_MAX {
        let Some((folder, depth)) = folders.pop() else { return };
        if !look(&folder) {
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
}
