//! The user's projects that `adj init` has set up: `adj serve --all` serves them.
//!
//! The file has one path per line. It is a convenience: if it cannot be written, nothing else fails.

use std::io;
use std::path::{Path, PathBuf};

use base::files::write_whole;

/// A list that is longer than this was not written by us.
const BYTES_MAX: usize = 1 << 20;

/// The file; `None` where the user has no folder for such things.
fn file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("adjutant/projects"))
}

/// When it returns, a project is among them. Done twice, it changes nothing.
pub fn add(root: &Path) -> io::Result<()> {
    let Some(file) = file() else { return Ok(()) };
    // A line is a path: one that holds a line end cannot be written down.
    let Some(line) = root.to_str().filter(|line| !line.contains('\n')) else { return Ok(()) };
    let mut known = lines(&file)?;
    if known.iter().any(|known| known == line) {
        return Ok(());
    }
    known.push(line.to_owned());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write_whole(&file, (known.join("\n") + "\n").as_bytes())
}

/// The projects that are still there, in the order in which they were set up.
pub fn all() -> io::Result<Vec<PathBuf>> {
    let Some(file) = file() else { return Ok(Vec::new()) };
    let known = lines(&file)?.into_iter().map(PathBuf::from);
    Ok(known.filter(|root| root.is_dir()).collect())
}

fn lines(file: &Path) -> io::Result<Vec<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) if text.len() <= BYTES_MAX => Ok(text.lines().map(str::to_owned).collect()),
        Ok(_) => Err(io::Error::other(format!("`{}` is too large", file.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
