//! Files of ours that must be whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a file that only its owner can read. After a crash it holds the old content or the new, and nothing between.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".adjutant-{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    file.sync_data()?;
    std::fs::rename(beside, path)
}
