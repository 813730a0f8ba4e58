//! The socket beside the log: bound by the owner, found by everybody else.
//!
//! A path in a socket's address holds 107 bytes. A longer one goes through the folder's own descriptor, which has a
//! short name in `/proc`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::proof::socket_address;

/// In the project's folder.
pub const SOCKET: &str = "socket/adj.sock";

/// The project's folder that a socket belongs to; the folder that it is in, for one that lies elsewhere.
pub fn folder_of(socket: &Path) -> &Path {
    let here = socket.parent().unwrap_or(Path::new("/"));
    match here.parent() {
        Some(folder) if folder.join(SOCKET) == socket => folder,
        _ => here,
    }
}

/// The longest path that an address holds, less the zero at its end.
const PATH_BYTES_MAX: usize = 107;

/// A path as short as an address needs it, for as long as the value lives.
pub struct Short {
    path: PathBuf,
    _folder: Option<File>,
}

impl Short {
    pub fn of(path: &Path) -> io::Result<Short> {
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Short { path: path.to_owned(), _folder: None });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the path of a socket"));
        };
        let folder = File::open(folder)?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Short { path, _folder: Some(folder) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Somebody's end of the socket, and the address by which its server proves itself; `None` where nobody listens, also where
/// a dead owner left its file behind.
pub async fn connect(path: &Path) -> io::Result<Option<(UnixStream, String)>> {
    // The file is opened and connected to as what was opened: nobody puts another in its place in between.
    let file = match File::options().read(true).custom_flags(nix::libc::O_PATH).open(path) {
        Ok(file) => file,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let there = file.metadata()?;
    let opened = Path::new("/proc/self/fd").join(file.as_raw_fd().to_string());
    match UnixStream::connect(&opened).await {
        Ok(stream) => Ok(Some((stream, socket_address(there.dev(), there.ino())))),
        Err(error) if is_nobody(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Why the socket could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The log's lock is taken before, so this is a file system whose locks do nothing.
    #[error("another process answers at `{}`", .0.display())]
    Answered(PathBuf),
    #[error("cannot listen at `{}`: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The owner's end. Its file is gone when this is.
pub struct Socket {
    path: PathBuf,
    /// Device and number of our file, so that nobody else's is removed.
    ours: (u64, u64),
}

impl Socket {
    /// Listens in `folder`, which becomes the user's alone. Whoever calls owns the log: a socket that is there and
    /// that nobody answers at was left by a dead owner, and is replaced.
    pub async fn bind(folder: &Path) -> Result<(Socket, UnixListener), BindError> {
        let path = folder.join(SOCKET);
        let failed = |error| BindError::Io { path: path.clone(), error };
        if connect(&path).await.map_err(failed)?.is_some() {
            return Err(BindError::Answered(path));
        }
        let own = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(own).map_err(failed)?;
        for folder in [folder, own] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        // Under another name first: whoever finds the socket finds it with its mode, and never finds none.
        let fresh = folder.join(format!("{SOCKET}.{}", std::process::id()));
        let _ = std::fs::remove_file(&fresh);
        let listener = || {
            let short = Short::of(&fresh)?;
            let listener = UnixListener::bind(short.path())?;
            std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))?;
            let ours = std::fs::symlink_metadata(&fresh)?;
            std::fs::rename(&fresh, &path)?;
            Ok((listener, (ours.dev(), ours.ino())))
        };
        let (listener, ours) = listener().map_err(failed)?;
        Ok((Socket { path, ours }, listener))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the server's proofs are for.
    pub fn address(&self) -> String {
        socket_address(self.ours.0, self.ours.1)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let there = std::fs::symlink_metadata(&self.path).map(|there| (there.dev(), there.ino()));
        if there.is_ok_and(|there| there == self.ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
