//! A namespace of processes of the program's own: it sees none but those that it started, and a signal to everybody
//! reaches nobody else.
//!
//! The first process of such a namespace collects all who lose their parent there, and when it ends, so do they all. A
//! program that became it would have to do the former, and would hear no signal that it does not handle. So there are
//! two small processes of ours around the program:
//!
//! | process | is | ends |
//! | --- | --- | --- |
//! | stand-in | who asked for the namespace, outside of it | when the program does, in the same way |
//! | first | its child, process 1 inside | when nobody is left inside |
//! | program | its child | by itself |
//!
//! Whoever started the stand-in thus sees it end as the program did, and has what the program left behind as its own
//! descendants. If it dies, the stand-in, the first process and everybody inside go with it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{ForkResult, Pid, fork, pipe2};

/// The processes of ours that stand around a program.
pub const HELPERS: u64 = 2;

/// Splits this process, which must have one thread and has asked for a namespace of processes: it returns in the one that
/// goes on to become the program.
pub(super) fn split() -> io::Result<()> {
    // How the program ended, from the first process to the stand-in; and whether the stand-in is there.
    let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
    let (gone, here) = pipe2(OFlag::O_CLOEXEC)?;
    if let Some(first) = branch()? {
        drop((tell, gone));
        stand_in(first, told, here);
    }
    drop((told, here));
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    if hangs_up(&gone, PollTimeout::ZERO) {
        leave(1);
    }
    match branch()? {
        Some(program) => first(program, tell, gone),
        None => Ok(()),
    }
}

/// The child's pid in the parent, and nothing in the child.
#[allow(
    unsafe_code,
    reason = "what is forked has one thread, so that the child may do whatever its parent may"
)]
fn branch() -> Result<Option<Pid>, Errno> {
    // SAFETY: there is no other thread that could hold a lock.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Ends as the program does, once it is told how.
fn stand_in(first: Pid, told: OwnedFd, here: OwnedFd) -> ! {
    keep_only(&[&told, &here]);
    let mut word = [0; 4];
    let read = loop {
        match nix::unistd::read(&told, &mut word) {
            Err(Errno::EINTR) => {}
            read => break read,
        }
    };
    let status = match read {
        Ok(count) if count == word.len() => i32::from_ne_bytes(word),
        // It was ended by force, and so was everybody.
        _ => wait_for(first.as_raw()).map_or(libc::SIGKILL, |(_, status)| status),
    };
    if libc::WIFEXITED(status) {
        leave(libc::WEXITSTATUS(status));
    }
    let signal = Signal::try_from(libc::WTERMSIG(status)).unwrap_or(Signal::SIGKILL);
    // The program's own core file, where it wanted one, is written already.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let mut others = SigSet::all();
    others.remove(signal);
    let _ = others.thread_set_mask();
    let _ = nix::sys::signal::raise(signal);
    leave(128 + signal as i32)
}

/// Collects everybody who ends, and says how the program did.
fn first(program: Pid, tell: OwnedFd, gone: OwnedFd) -> ! {
    keep_only(&[&tell, &gone]);
    let mut tell = Some(tell);
    loop {
        match wait_for(-1) {
            Ok((pid, status)) if pid == program.as_raw() => {
                // What it left behind has a moment more: from now on whoever collects it decides, who becomes our parent
                // when the stand-in ends.
                let _ = prctl::set_pdeathsig(None);
                let _ = tell.take().map(|tell| nix::unistd::write(&tell, &status.to_ne_bytes()));
                hangs_up(&gone, PollTimeout::NONE);
                let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => leave(0),
        }
    }
}

/// Waits until the other end is closed, at most this long.
fn hangs_up(pipe: &OwnedFd, timeout: PollTimeout) -> bool {
    loop {
        let mut one = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
        match poll(&mut one, timeout) {
            Err(Errno::EINTR) => {}
            found => return found.is_ok_and(|count| count > 0),
        }
    }
}

/// Who ended, and how, as the system says it: a signal may have no name.
#[allow(unsafe_code, reason = "the safe way to this call knows only signals that have a name")]
fn wait_for(pid: i32) -> Result<(i32, i32), Errno> {
    let mut status = 0;
    loop {
        // SAFETY: the number that it writes is ours, and is there for as long as the call takes.
        match Errno::result(unsafe { libc::waitpid(pid, &mut status, 0) }) {
            Err(Errno::EINTR) => {}
            waited => return waited.map(|pid| (pid, status)),
        }
    }
}

/// A process that only waits has no business with the program's files, directory and signals: what it had open would
/// never come to its end, and what it heard would end it.
#[allow(
    unsafe_code,
    reason = "files of this process are closed that nobody will use again: it never returns"
)]
fn keep_only(files: &[&OwnedFd]) {
    let _ = SigSet::all().thread_set_mask();
    let _ = nix::unistd::chdir("/");
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
    let mut kept: Vec<u32> = files.iter().map(|file| file.as_raw_fd() as u32).collect();
    kept.sort_unstable();
    let mut from = 3;
    for file in kept.into_iter().chain([u32::MAX]) {
        if from < file {
            // SAFETY: whoever has one of them open is further up in calls that are never returned to.
            unsafe { libc::syscall(libc::SYS_close_range, from, file - 1, 0) };
        }
        from = file.saturating_add(1);
    }
}

/// Ends without running anything of the process that we were forked from.
#[allow(unsafe_code, reason = "there is no safe way to this call, and it does not return")]
fn leave(code: i32) -> ! {
    // SAFETY: it ends the process, and touches nothing of it.
    unsafe { libc::_exit(code) }
}
