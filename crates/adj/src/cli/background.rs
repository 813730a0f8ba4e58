//! The same program in the background: it writes its lines to a file, and is waited for until it answers.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::project::{Project, shown};
use super::{Exit, Failure};

/// A log that is larger than this is set aside, in place of the one before.
const LOG_BYTES_MAX: u64 = 10_000_000;
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
        std::fs::rename(&path, logs.join("run.log.old"))?;
    }
    let log = std::fs::File::options().create(true).append(true).open(&path)?;
    let before = log.metadata()?.len();
    let mut child = std::process::Command::new(std::env::current_exe()?);
    child.arg("--no-color").args(line);
    child.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A group of its own: Ctrl-C at this terminal is not meant for it.
    child.process_group(0);
    Ok(Started { child: child.spawn()?, log: path, before })
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
