//! Runs a command to its end under a keeper: tests, tests of merges, hooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::step_commands::StepCommand;
use super::{Shared, surroundings};
use base::files::FileError;
use process::keeper::{self, Connection, Ending, Exit, Found, KeeperError, News, Reason, Sandbox, Spec};

/// What of a command's output is looked at: how it began, and more of its end, where tools say what went wrong.
const HEAD_BYTES_MAX: u64 = 1 << 20;
const TAIL_BYTES_MAX: u64 = 3 << 20;
/// The file that says what a run is on.
const OF: &str = "of";
/// The file that says whose it is: the keeper forgets the environment of what has ended.
const TASK: &str = "task";
/// How long its processes may take to end when they are asked to.
const ENDING: Ending = Ending { interrupt: None, terminate: Duration::from_secs(2) };

/// The same for a step, or for whatever is found under way.
pub const STEP_ENDING: Ending = Ending { interrupt: None, terminate: Duration::from_secs(3) };

/// What to run, and how.
pub struct KeptCommand {
    /// The folder under `steps`, and what its processes are known by.
    pub name: String,
    /// What it is run on, and as what: a run of the same name on anything else says nothing about this one.
    pub of: String,
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    pub limit: Duration,
    pub sandbox: Option<Sandbox>,
}

/// Why nobody knows how it ended.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot move `{}` away: {source}", path.display())]
    NotSetAside { path: PathBuf, source: std::io::Error },
    #[error("its keeper died")]
    Lost,
}

/// How it ended.
pub enum Ran {
    /// By itself, or at a limit. What it printed, both streams.
    Over { exit: Exit, output: String },
    /// It was ended because nobody wants it any more, or because the fleet stops. It can be run again.
    Ended,
}

/// A command line as the user would type it.
pub fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

/// Runs a command, or finds the one that a process before this one started. One that was cut off is run again.
pub async fn run(
    shared: &Arc<Shared>,
    kept: KeptCommand,
    mut words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
) -> Result<Ran, CommandError> {
    let dir = shared.layout.steps().join(&kept.name);
    let task = kept.env.iter().find(|(name, _)| name == "ADJ_TASK").map(|(_, task)| task.clone());
    let spec = Spec {
        env: kept.env.into_iter().collect(),
        time_limit_seconds: kept.limit.as_secs_f64(),
        output_bytes_max: shared.in_force().settings.limits.output_bytes,
        limits: surroundings::limits(&shared.in_force().settings),
        sandbox: kept.sandbox,
        merged: true,
        hidden: shared.keys.as_ref().map(|keys| keys.hidden()).unwrap_or_default(),
        ..Spec::new(shared.layout.mark(&kept.name), kept.argv, kept.cwd)
    };
    let mut ending = false;
    let exit = loop {
        let stands = standing(shared, &kept.name).await?.is_some_and(|of| of == kept.of);
        if !stands {
            end(shared, &kept.name).await?;
        }
        let (adj, of, task, spec) = (shared.adj.clone(), kept.of.clone(), task.clone(), spec.clone());
        let begin = {
            let dir = dir.clone();
            move || -> Result<Found, CommandError> {
                if stands {
                    return Ok(keeper::look(&dir)?);
                }
                let make = || -> std::io::Result<()> {
                    set_aside(&dir)?;
                    std::fs::create_dir_all(&dir)?;
                    // One that is not whole is on nothing that anybody asks for, so the command is run again.
                    std::fs::write(dir.join(TASK), task.unwrap_or_default())?;
                    std::fs::write(dir.join(OF), of)
                };
                make().map_err(FileError::at("use", &dir))?;
                Ok(keeper::start(&adj, &dir, &spec)?)
            }
        };
        let exit = match shared.blocking(begin).await? {
            Found::Over(exit) => exit,
            _ => {
                let mut connection = Connection::connect(&dir).await?;
                let stop = shared.stopping();
                tokio::pin!(stop);
                let mut full = false;
                loop {
                    tokio::select! {
                        news = connection.next() => match news {
                            Some(News::Exit(exit)) => break exit,
                            None | Some(News::Lost) => return Err(CommandError::Lost),
                            // How it ended is written down when there is room; it is run again all the same.
                            Some(News::Full(_)) if ending && shared.is_stopping() => return Ok(Ran::Ended),
                            Some(News::Full(what)) if !std::mem::replace(&mut full, true) => {
                                shared.notice(format!("{}: its output cannot be stored, so it waits: {what}", kept.name));
                            }
                            _ => {}
                        },
                        () = &mut stop, if !ending => {
                            ending = true;
                            connection.end(ENDING).await?;
                        }
                        Some(word) = next(&mut words), if !ending => {
                            if matches!(word, StepCommand::End(_) | StepCommand::Interrupt) {
                                ending = true;
                                connection.end(ENDING).await?;
                            }
                        }
                    }
                }
            }
        };
        // Whoever ended it was a fleet before this one, and has left: nobody else runs it again.
        let was_theirs = stands && !ending && !shared.is_stopping();
        if !(was_theirs && was_cut_off(&exit)) {
            break exit;
        }
    };
    if was_cut_off(&exit) {
        return Ok(Ran::Ended);
    }
    let output = shared.blocking(move || printed(&dir)).await;
    Ok(Ran::Over { exit, output })
}

/// What the run of this name is on, if it is under way or came to an end of its own. One that was cut off says nothing.
pub async fn standing(shared: &Arc<Shared>, name: &str) -> Result<Option<String>, CommandError> {
    let dir = shared.layout.steps().join(name);
    let look = move || match keeper::look(&dir)? {
        Found::Never | Found::Dead => Ok(None),
        Found::Over(exit) if was_cut_off(&exit) => Ok(None),
        // Without a word about what it is on, it is on nothing that anybody asks for.
        Found::Alive(_) | Found::Over(_) => Ok(std::fs::read_to_string(dir.join(OF)).ok()),
    };
    shared.blocking(look).await
}

/// Nothing of the run of this name is alive when this returns.
pub async fn end(shared: &Arc<Shared>, name: &str) -> Result<(), CommandError> {
    let dir = shared.layout.steps().join(name);
    match keeper::look(&dir)? {
        Found::Never | Found::Over(_) => Ok(()),
        Found::Alive(_) => end_at(&dir).await,
        Found::Dead => {
            let mark = shared.layout.mark(name);
            let swept = shared.blocking(move || keeper::sweep_strays(&mark)).await;
            swept?;
            Ok(())
        }
    }
}

/// Ends what runs in this folder, and returns when it is gone.
async fn end_at(dir: &std::path::Path) -> Result<(), CommandError> {
    let mut connection = match Connection::connect(dir).await {
        Ok(connection) => connection,
        // It may have ended in between.
        Err(error) => {
            return match keeper::look(dir) {
                Ok(Found::Over(_)) => Ok(()),
                _ => Err(error.into()),
            };
        }
    };
    connection.end(STEP_ENDING).await?;
    loop {
        match connection.next().await {
            Some(News::Exit(_)) => return Ok(()),
            None | Some(News::Lost) => return Err(CommandError::Lost),
            _ => {}
        }
    }
}

/// The next run of this name begins anew, whatever came of the one before.
pub async fn begin_anew(shared: &Arc<Shared>, name: &str) -> Result<(), CommandError> {
    end(shared, name).await?;
    let dir = shared.layout.steps().join(name);
    set_aside(&dir).map_err(|source| CommandError::NotSetAside { path: dir, source })
}

fn was_cut_off(exit: &Exit) -> bool {
    matches!(exit.reason, Reason::Ended | Reason::Alone)
}

async fn next(words: &mut Option<&mut mpsc::UnboundedReceiver<StepCommand>>) -> Option<StepCommand> {
    match words {
        Some(words) => words.recv().await,
        None => std::future::pending().await,
    }
}

/// Moves what an earlier attempt left out of the way. It is kept: it may say why that attempt ended.
fn set_aside(dir: &std::path::Path) -> std::io::Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for number in 1.. {
        let aside = dir.with_extension(format!("cut{number}"));
        if !aside.exists() {
            return std::fs::rename(dir, aside);
        }
    }
    unreachable!("there is a free number")
}

/// What a run in this folder printed, in the order in which it was written, cut in the middle where it is much.
pub fn printed(dir: &std::path::Path) -> String {
    let mut output = String::new();
    // Runs of before this version kept their errors apart.
    for name in ["out", "err"] {
        output.push_str(&ends_of(&dir.join(name)).unwrap_or_default());
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
    }
    output
}

fn ends_of(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut text = Vec::new();
    if length <= HEAD_BYTES_MAX + TAIL_BYTES_MAX {
        file.take(length).read_to_end(&mut text)?;
        return Ok(String::from_utf8_lossy(&text).into_owned());
    }
    (&mut file).take(HEAD_BYTES_MAX).read_to_end(&mut text)?;
    let mut whole = String::from_utf8_lossy(&text).into_owned();
    whole.push_str(&format!("\n… {} bytes left out …\n", length - HEAD_BYTES_MAX - TAIL_BYTES_MAX));
    text.clear();
    file.seek(SeekFrom::Start(length - TAIL_BYTES_MAX))?;
    file.take(TAIL_BYTES_MAX).read_to_end(&mut text)?;
    whole.push_str(&String::from_utf8_lossy(&text));
    Ok(whole)
}

/// A test run or a hook of a task, as it was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptRun {
    /// The effect that it was run for, with the hook's point behind a `.` where it is one.
    pub name: String,
    pub command: String,
    pub cwd: PathBuf,
    /// Absent while it runs, or where nobody knows.
    pub exit: Option<Exit>,
    pub dir: PathBuf,
}

impl KeptRun {
    /// The point of the hook; `None` for tests.
    pub fn hook(&self) -> Option<&str> {
        let (_, point) = self.name.split_once('.')?;
        (!point.starts_with("cut")).then_some(point)
    }

    /// What it printed, cut in the middle where it is much.
    pub fn output(&self) -> String {
        printed(&self.dir)
    }
}

/// The test runs and hooks of a task that are still kept, oldest first.
pub fn runs_of(layout: &project::layout::Layout, task: &str) -> Vec<KeptRun> {
    let entries = std::fs::read_dir(layout.steps()).into_iter().flatten().flatten();
    let read = |dir: PathBuf| -> Option<(std::time::SystemTime, KeptRun)> {
        // Steps of agents have no such file.
        if std::fs::read_to_string(dir.join(TASK)).ok()? != task {
            return None;
        }
        let file = dir.join(keeper::SPEC);
        let begun = file.metadata().and_then(|file| file.modified()).ok()?;
        let spec: Spec = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
        let exit = match keeper::look(&dir) {
            Ok(Found::Over(exit)) => Some(exit),
            _ => None,
        };
        let name = dir.file_name()?.to_str()?.to_owned();
        let command = spec.argv.last().cloned().unwrap_or_default();
        Some((begun, KeptRun { name, command, cwd: spec.cwd, exit, dir }))
    };
    let mut runs: Vec<_> = entries.filter_map(|entry| read(entry.path())).collect();
    runs.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.name.cmp(&other.name)));
    runs.into_iter().map(|(_, run)| run).collect()
}
