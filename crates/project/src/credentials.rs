//! Logins of agent programs that `adj login` stores: a file for each variable, readable only for the user.
//!
//! They belong to the user, not to a project. The sandbox hides the folder from agents and tests; an agent gets the one
//! variable that its `env` names.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base::files::{FileError, write_whole};

/// A file that is longer than this was not written by us.
const BYTES_MAX: u64 = 1 << 16;

/// Where they are; `None` where the user has no folder for settings.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("adjutant/credentials"))
}

/// What an agent's variable is to hold: the user's own, or else what `adj login` keeps.
pub fn variable(name: &str) -> Option<OsString> {
    let set = std::env::var_os(name).filter(|value| !value.is_empty());
    set.or_else(|| kept(&folder()?, name))
}

pub fn is_set(name: &str) -> bool {
    variable(name).is_some()
}

fn kept(folder: &Path, name: &str) -> Option<OsString> {
    if !is_name(name) {
        return None;
    }
    let file = folder.join(name);
    let about = std::fs::symlink_metadata(&file).ok().filter(|about| about.is_file())?;
    // A file that others can read is no secret, and not ours.
    if about.len() > BYTES_MAX || about.permissions().mode() & 0o077 != 0 {
        return None;
    }
    let mut text = std::fs::read(&file).ok()?;
    text.truncate(text.trim_ascii_end().len());
    (!text.is_empty()).then(|| OsString::from_vec(text))
}

/// Keeps a login, in place of the one before. It returns the file.
pub fn keep(name: &str, value: &str) -> Result<PathBuf, FileError> {
    let Some(folder) = folder().filter(|_| is_name(name)) else {
        let none = io::Error::new(io::ErrorKind::NotFound, "neither HOME nor XDG_CONFIG_HOME is set");
        return Err(FileError::at("write", Path::new("the login"))(none));
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(FileError::at("make", &folder))?;
    let alone = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&folder, alone).map_err(FileError::at("protect", &folder))?;
    let file = folder.join(name);
    write_whole(&file, format!("{}\n", value.trim()).as_bytes()).map_err(FileError::at("write", &file))?;
    Ok(file)
}

/// Forgets a login. False: there was none.
pub fn forget(name: &str) -> Result<bool, FileError> {
    let Some(file) = folder().filter(|_| is_name(name)).map(|folder| folder.join(name)) else {
        return Ok(false);
    };
    match std::fs::remove_file(&file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::at("remove", &file)(error)),
    }
}

/// The name of a variable names a file, and nothing outside of the folder.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_read_only_from_a_file_that_is_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("KEY");
        std::fs::write(&file, "secret\n").unwrap();
        for (mode, expected) in [(0o600, Some("secret".into())), (0o640, None), (0o604, None)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(kept(dir.path(), "KEY"), expected, "{mode:o}");
        }
        std::os::unix::fs::symlink(&file, dir.path().join("LINK")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        for name in ["LINK", "../KEY", "", "NONE"] {
            assert_eq!(kept(dir.path(), name), None, "{name}");
        }
    }
}
