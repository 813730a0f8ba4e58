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
    /// What it holds, where it is there after the machine stopped.
    Content,
    /// That it is there, too.
    ContentAndName,
}

/// Writes a file that only its owner can read. After a crash it holds the old content or the new, and nothing between.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, Synced::Content)
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
