//! Waits until a directory of tickets may have changed, without reading every file each second.
//!
//! The operating system reports changes (inotify, one watch on the directory). A slow timer runs beside it: it finds
//! changes that are not reported (network file systems, a queue that overflowed), and the directory when it is created.
//! The caller scans afterwards: a wake-up without a change costs one listing and one `stat` for each file.

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// How often it wakes without having been told of anything.
const BEAT: Duration = Duration::from_secs(30);
/// The same while nothing can be told: the directory is not there, or the system has no watch left.
const BEAT_UNWATCHED: Duration = Duration::from_secs(3);
/// How long a burst of changes may go on before it is told; a checkout writes many files.
const SETTLE: Duration = Duration::from_millis(50);

/// Room for many events; the longest name takes 256 bytes.
const BUFFER_BYTES: usize = 4096;

/// A directory that is waited on. Made and used within a tokio runtime.
#[derive(Debug)]
pub struct Watch {
    dir: PathBuf,
    source: Option<Receiver>,
    beat: Duration,
    beat_unwatched: Duration,
}

impl Watch {
    /// Changes from now on are told; whoever scans after this misses none. The directory need not exist.
    pub fn new(dir: &Path) -> Watch {
        Watch { dir: dir.to_owned(), source: watch(dir).ok(), beat: BEAT, beat_unwatched: BEAT_UNWATCHED }
    }

    /// With other beats, for tests.
    #[cfg(test)]
    pub(super) fn with_beats(dir: &Path, beat: Duration, beat_unwatched: Duration) -> Watch {
        Watch { beat, beat_unwatched, ..Watch::new(dir) }
    }

    /// Whether the system tells of changes; if not, only the beat does.
    pub fn is_told(&self) -> bool {
        self.source.is_some()
    }

    /// Returns when the directory may have changed, once for a burst of changes. May be dropped while it waits: the next
    /// call tells what this one did not.
    pub async fn changed(&mut self) {
        let Some(source) = &self.source else {
            tokio::time::sleep(self.beat_unwatched).await;
            // From here on it is told; what happened before, the scan after this call finds.
            self.source = watch(&self.dir).ok();
            return;
        };
        let told = tokio::select! {
            told = source.readable() => told,
            () = tokio::time::sleep(self.beat) => return,
        };
        let is_alive = match told {
            Ok(()) => {
                // Nothing is taken before this: whoever is dropped while it settles leaves the change to be told.
                tokio::time::sleep(SETTLE).await;
                drain(source)
            }
            Err(_) => false,
        };
        if !is_alive {
            self.source = watch(&self.dir).ok();
        }
    }
}

/// A file descriptor that becomes readable with each change. To tokio it is a pipe, which is read in the same way.
fn watch(dir: &Path) -> io::Result<Receiver> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    // Not every write but its end: a file that is being written is read when it is whole.
    let flags = AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_MOVE
        | AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_MOVE_SELF
        | AddWatchFlags::IN_ONLYDIR;
    inotify.add_watch(dir, flags)?;
    Receiver::from_owned_fd_unchecked(OwnedFd::from(inotify))
}

/// Takes everything that was told; `false` where the directory is gone, so that the watch is worth nothing.
fn drain(source: &Receiver) -> bool {
    let mut is_alive = true;
    let mut buffer = [0; BUFFER_BYTES];
    loop {
        match source.try_read(&mut buffer) {
            Ok(length) if length > 0 => is_alive &= !tells_of_the_end(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return is_alive,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
}

/// Whether one of these events says that the directory went away. An event is four words, watch, mask, cookie and the
/// length of a name, then the name.
fn tells_of_the_end(mut events: &[u8]) -> bool {
    let end = AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF | AddWatchFlags::IN_IGNORED;
    let word = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_ne_bytes)
    };
    while let (Some(mask), Some(name)) = (word(events, 4), word(events, 12)) {
        if mask & end.bits() != 0 {
            return true;
        }
        events = events.get(16 + name as usize..).unwrap_or_default();
    }
    false
}
