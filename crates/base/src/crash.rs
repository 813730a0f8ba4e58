//! Crash points: named places at which a test can end the process as if its power had been cut.
//!
//! With `ADJ_CRASH_AT=n` in the environment, the process kills itself at the n-th point it passes: no destructor
//! runs, no buffer is flushed. A test counts n up from 1 until the process ends by itself, and has then been
//! through every point on its way. Without the variable a point is one load and one branch.
//!
//! `ADJ_CRASH_AT=test_merge:after` ends it at a moment of an effect instead: `before` it is carried out, `after` it
//! was and before its outcome is told, or once it is `told`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

static CRASH_AT: OnceLock<Option<u64>> = OnceLock::new();
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Passes a crash point, or does not. `name` says where, in the message that is left behind.
#[inline]
pub fn point(name: &'static str) {
    if let Some(at) = *CRASH_AT.get_or_init(crash_at) {
        pass(name, at);
    }
}

fn crash_at() -> Option<u64> {
    std::env::var("ADJ_CRASH_AT").ok()?.parse().ok()
}

/// Passes a moment of an effect: before it is carried out, after it was, or when its outcome is told.
pub fn effect(kind: &str, moment: &str) {
    static WHERE: OnceLock<Option<String>> = OnceLock::new();
    let wanted = WHERE.get_or_init(|| std::env::var("ADJ_CRASH_AT").ok().filter(|at| at.contains(':')));
    if let Some(wanted) = wanted
        && wanted.split_once(':') == Some((kind, moment))
    {
        eprintln!("crash point: {wanted}");
        end();
    }
}

#[cold]
fn pass(name: &'static str, at: u64) {
    if PASSED.fetch_add(1, Ordering::SeqCst) + 1 != at {
        return;
    }
    eprintln!("crash point {at}: {name}");
    end();
}

fn end() -> ! {
    // SIGKILL, not `abort`: nothing must get a chance to tidy up, and no core file is wanted.
    let _ = kill(Pid::this(), Signal::SIGKILL);
    loop {
        std::thread::park();
    }
}
