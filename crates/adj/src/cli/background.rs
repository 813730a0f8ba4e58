//! The same program in the background: it writes its lines to a file, and is waited for until it answers.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use super::project::Project;
use super::text::shown;
use super::{Exit, Failure};

/// A log that is larger than this is set aside as `run.log.1`; so many that were set aside are kept.
const LOG_BYTES_MAX: u64 = 10_000_000;
const LOGS_KEPT: u32 = 3;
/// How often its size is looked at.
const ROTATE_LOOK: Duration = Duration::from_secs(1);
/// Tells a process in the background which file its lines go to.
const LOG_VARIABLE: &str = "ADJ_LOG_FILE";
/// How often is looked whether it answers.
const LOOK: Duration = Duration::from_millis(30);

/// A process that was just started.
pub struct Started {
    child: Child,
    log: PathBuf,
    /// How long the log was before.
    before: u64,
}

/// Starts `adj` with these arguments, for this project.
pub fn start(project: &Project, line: &[String]) -> Result<Started, Failure> {
    use std::os::unix::process::CommandExt;
    let logs = project.folder().join("logs");
    drop(project.own_log_soon()?);
    std::fs::create_dir_all(&logs)?;
    let path = logs.join("run.log");
    if path.metadata().is_ok_and(|found| found.len() > LOG_BYTES_MAX) {
        set_aside(&path)?;
    }
    let log = opened(&path)?;
    let before = log.metadata()?.len();
    let mut child = std::process::Command::new(std::env::current_exe()?);
    child.arg("--no-color").args(line);
    child.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    child.env(LOG_VARIABLE, &path);
    // A group of its own: Ctrl-C at this terminal is not meant for it.
    child.process_group(0);
    Ok(Started { child: child.spawn()?, log: path, before })
}

/// In a process in the background: its log is set aside when it is large, and opened again on SIGHUP. Elsewhere nothing.
pub fn rotate() {
    let Some(path) = std::env::var_os(LOG_VARIABLE).map(PathBuf::from) else { return };
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    tokio::spawn(async move {
        let mut look = tokio::time::interval(ROTATE_LOOK);
        loop {
            let asked = tokio::select! {
                _ = look.tick() => false,
                heard = hangup.recv() => heard.is_some(),
            };
            let large = path.metadata().is_ok_and(|found| found.len() > LOG_BYTES_MAX);
            if large && set_aside(&path).is_err() {
                continue;
            }
            // Where it cannot be opened, lines go on to the file that was set aside.
            if (large || asked)
                && let Ok(log) = opened(&path)
            {
                let _ = nix::unistd::dup2_stdout(&log).and_then(|()| nix::unistd::dup2_stderr(&log));
            }
        }
    });
}

fn opened(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::options().create(true).append(true).open(path)
}

/// `run.log` becomes `run.log.1`, that one `run.log.2`, and the last is gone.
fn set_aside(path: &Path) -> std::io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..LOGS_KEPT).rev() {
        // Where there is none, there is nothing to move.
        let _ = std::fs::rename(numbered(number), numbered(number + 1));
    }
    std::fs::rename(path, numbered(1))
}

impl Started {
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Until `look` finds what it looks for; `None` where the process came to a good end before that.
    pub fn until<T>(
        &mut self,
        limit: Duration,
        mut look: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            if let Some(status) = self.child.try_wait()? {
                return if status.success() { Ok(None) } else { Err(self.ended_at_once(status)) };
            }
            if Instant::now() > deadline {
                return Err(Failure::new(Exit::Unreachable, "the process was started and does not answer")
                    .hint(self.hint()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Where its lines are.
    pub fn hint(&self) -> String {
        format!("its lines are in {}", shown(&self.log))
    }

    /// What it said when it could not begin, as if it had been said here.
    fn ended_at_once(&self, status: ExitStatus) -> Failure {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(text.get(self.before as usize..).unwrap_or_default()).into_owned();
        let last =
            |prefix: &str| text.lines().rev().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
        let exit = status.code().and_then(Exit::of_code).unwrap_or(Exit::Failed);
        let message = last("error: ").unwrap_or_else(|| format!("the process ended at once, with {status}"));
        Failure::new(exit, message).hint(last("hint: ").unwrap_or_else(|| self.hint()))
    }
}
