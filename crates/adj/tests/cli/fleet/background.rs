//! `adj run` beside a test, and waiting for what it brings about.

use super::Repository;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until something holds. There is nothing to wait on in another process's folders but to look.
#[track_caller]
pub fn wait<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, look).unwrap_or_else(|| panic!("it never happened: {what}"))
}

fn within<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        match look() {
            Some(found) => return Some(found),
            None if begun.elapsed() > patience => return None,
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Processes with this text in their command line.
pub fn running(text: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
    })
    .collect()
}

pub fn kill(pid: u32) {
    let killed = Command::new("kill").arg("-KILL").arg(pid.to_string()).stderr(Stdio::null()).status();
    killed.expect("kill runs");
}

/// The keepers of a project that are alive.
pub fn keepers(repository: &Repository) -> Vec<u32> {
    running(&format!("internal keep {}/", repository.dir().display()))
}

/// Ends every process that works for a project.
pub fn end_all(dir: &Path) {
    running(&format!("internal keep {}/", dir.display())).into_iter().for_each(kill);
    let trees = dir.with_extension("agents");
    let below = |pid: &u32| {
        let at = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        at.starts_with(dir) || at.starts_with(&trees)
    };
    running("").into_iter().filter(below).for_each(kill);
}

/// A fleet beside the test. It is ended with the test, and so is all that works for it where the test failed; where it
/// did not, nothing may be left, which is for the test to show.
pub struct Fleet<'r> {
    repository: &'r Repository,
    child: Child,
    lines: PathBuf,
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.repository.adj("stop --now");
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            end_all(self.repository.dir());
        } else {
            let _ = std::fs::remove_file(&self.lines);
        }
    }
}

impl Repository {
    /// Starts a fleet, which may have ended before anybody can ask it anything.
    pub fn begin(&self, line: &str) -> Fleet<'_> {
        self.begin_with(line, &[])
    }

    /// The same, with these variables.
    pub fn begin_with(&self, line: &str, variables: &[(&str, &Path)]) -> Fleet<'_> {
        let lines = PathBuf::from(format!("{}.lines", self.dir().display()));
        let file = std::fs::File::create(&lines).expect("a file beside the repository");
        let mut command = self.command(line);
        command.envs(variables.iter().copied());
        command.stdout(file.try_clone().expect("a file")).stderr(file).stdin(Stdio::null());
        Fleet { repository: self, child: command.spawn().expect("adj runs"), lines }
    }

    /// Starts a fleet, and returns when it answers.
    #[track_caller]
    pub fn start(&self, line: &str) -> Fleet<'_> {
        let fleet = self.begin(line);
        wait("a fleet that answers", || {
            let listens = self.adj("queue").code == 0 && self.state("socket/adj.sock").exists();
            listens.then_some(())
        });
        fleet
    }
}

impl Fleet<'_> {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn lines(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.lines).unwrap_or_default()).into_owned()
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let printed = within(PATIENCE, || self.lines().contains(text).then_some(()));
        assert!(printed.is_some(), "`{text}` was not printed:\n{}", self.lines());
    }

    pub fn signal(&self, signal: Signal) {
        signal::kill(Pid::from_raw(self.pid() as i32), signal).expect("it runs");
    }

    /// SIGKILL, as by the kernel.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Waits until it has ended; its exit code, and what it printed.
    #[track_caller]
    pub fn ended(self) -> (i32, String) {
        self.ended_within(PATIENCE)
    }

    /// As `ended`, where more than the usual may take longer than usual.
    #[track_caller]
    pub fn ended_within(mut self, patience: Duration) -> (i32, String) {
        let status = within(patience, || self.child.try_wait().expect("it was started"));
        let status = status.unwrap_or_else(|| panic!("it does not end:\n{}", self.lines()));
        (status.code().expect("it ended by itself"), self.lines())
    }

    /// As `ended`, and every task was done.
    #[track_caller]
    pub fn done(self) -> String {
        let (code, lines) = self.ended();
        assert_eq!(code, 0, "{lines}");
        lines
    }

    /// Stops it, which must succeed.
    #[track_caller]
    pub fn stop(self) -> String {
        self.repository.ok("stop");
        self.done()
    }
}
