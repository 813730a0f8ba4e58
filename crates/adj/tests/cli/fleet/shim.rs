//! A small library that is loaded into real programs, to see what they do or to end them in the middle of it; and many
//! lives that are played with it.

use std::os::unix::fs::PermissionsExt;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lives at once: most of each is waiting.
const AT_ONCE: usize = 4;
/// Lives that end badly before no more are begun.
const FAILURES_MAX: usize = 6;

/// The library, in a folder of its own.
pub struct Shim {
    pub folder: PathBuf,
}

impl Shim {
    /// Built from this C source.
    pub fn new(name: &str, source: &str) -> Shim {
        let folder = std::env::temp_dir().join(format!("adj-shim-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("shim.c"), source).expect("a file");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o", "shim.so", "shim.c", "-ldl"])
            .current_dir(&folder)
            .output()
            .expect("there is a C compiler, which Rust itself links with");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Shim { folder }
    }

    pub fn library(&self) -> PathBuf {
        self.folder.join("shim.so")
    }

    /// A folder in which `git` is the real one with the library loaded and these variables set, such as `A=1 B=2`.
    pub fn git(&self, name: &str, variables: &str) -> PathBuf {
        let own = self.folder.join(name);
        std::fs::create_dir_all(&own).expect("a folder");
        let real = Command::new("sh").args(["-c", "command -v git"]).output().expect("sh runs").stdout;
        let (library, real) = (self.library(), String::from_utf8_lossy(&real).trim().to_owned());
        let script = format!("#!/bin/sh\n{variables} LD_PRELOAD={} exec {real} \"$@\"\n", library.display());
        std::fs::write(own.join("git"), script).expect("a file");
        std::fs::set_permissions(own.join("git"), std::fs::Permissions::from_mode(0o755)).expect("ours");
        own
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The PATH with this folder before all others.
pub fn path_with(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").expect("there is a PATH"))
}

/// Plays lives 0, 1, 2 and on, several at once, until one says that there are no more. All must end well, and be at least
/// so many.
pub fn play(at_least: usize, live: impl Fn(usize) -> bool + Sync + RefUnwindSafe) {
    let (next, lives, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while failed.load(Ordering::SeqCst) < FAILURES_MAX {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    // The other lives go on: each says for itself what was wrong.
                    match catch_unwind(|| live(number)) {
                        Ok(true) => lives.fetch_add(1, Ordering::SeqCst),
                        Ok(false) => return,
                        Err(_) => failed.fetch_add(1, Ordering::SeqCst),
                    };
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "lives that did not end well");
    let lives = lives.into_inner();
    assert!(lives >= at_least, "only {lives} moments were seen");
}
