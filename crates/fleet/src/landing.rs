//! Landing: makes a merge as objects, tests it, and then moves main.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use kernel::Timer;
use kernel::command::{Happened, RedBy};
use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::kept_command::{self, CommandError};
use super::surroundings::Whose;
use super::test_runs::{self, TestRecord, Tested, Tests, TestsError};
use super::trees::{self, TreeError};
use super::{Missing, Shared, authorship, endings, hooks, marks, tickets};
use base::files::FileError;
use git::{Agent, Edit, GitError, Merged, Moved, Oid, Person, Repository};
use log::outbox;
use log::owner::SubmitError;
use project::layout::Layout;
use project::settings::{FILE, LandBy, Merge, include, trust};
use project::workplace::INCLUDE_FILE;

/// Why a landing could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum LandingError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Tests(#[from] TestsError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("`{0}` is not a commit")]
    NotACommit(SmolStr),
    #[error("cannot keep the previous settings: {0}")]
    Settings(#[source] std::io::Error),
    #[error("{0} keeps being moved by another program")]
    Contended(String),
}

/// The folder in which merges are tested: one is at a time.
pub const FOLDER: &str = project::layout::LANDING;
/// How much of a title goes into the merge's first line.
const SUBJECT_CHARS_MAX: usize = 200;
/// How many commits are named where they are squashed.
const SUBJECTS_MAX: usize = 100;
/// How much of a task's text goes into the merge.
const BODY_CHARS_MAX: usize = 4000;

/// The merge of main with the tip, tested.
pub(super) async fn tested(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    tip: &SmolStr,
) -> Result<Option<Happened>, LandingError> {
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| Missing::Task(task.clone()))?;
    let in_force = shared.in_force();
    // What no agent has worked on is the person's own.
    let agent = known.work.run.is_some().then(|| authorship::agent_of(&in_force, &world, known));
    let message = message(known, agent.as_ref().map(|agent| agent.as_str()));
    let squash = agent.filter(|_| in_force.settings.project.merge == Merge::Squash);
    // Whoever landed it is its committer, however agents' own commits name the person.
    let squash = squash
        .map(|agent| Agent { person: Person::Committer, ..authorship::author(&in_force.settings, &agent) });
    let (repository, tip) = (shared.repository.clone(), commit(tip)?);
    // The same merge has the same id when it is made again: its time is that of the approval.
    let at = known.review.approved.as_ref().map_or(known.created_at, |approved| approved.at);
    let changes = ChangesInLanding::of(shared, &world, known);
    let failed = known.landing.failed.clone();
    let (host, name, by_agent) = (shared.clone(), task.clone(), known.work.run.is_some());
    let of = tip.clone();
    let made = shared
        .blocking(move || -> Result<_, LandingError> {
            let main = repository.main_tip()?;
            // The same tip was merged with the same main before.
            if let Some(failed) = failed.filter(|failed| failed.is_of(tip.as_str(), main.as_str()))
                && failed.conflict
            {
                let merged = Merged::Conflict { files: failed.files, dropped: Vec::new() };
                return Ok(Ok((main, merged, Vec::new())));
            }
            let edits = changes.edits(&host, &tip, at / 1000)?;
            let mark = changes.mark;
            let merged = match &squash {
                Some(agent) => {
                    let commits = repository.commits_of(&tip, &main)?;
                    let message = squashed(&message, &commits);
                    repository.squash(&main, &tip, &message, &edits, at / 1000, agent)
                }
                None => repository.merge(&main, &tip, &message, &edits, at / 1000),
            };
            let merged = match merged {
                Err(GitError::NotSigned { why, command }) => return Ok(Err((why, command))),
                merged => merged?,
            };
            if let Merged::Clean { commit, .. } = &merged {
                repository.keep(&format!("landing-{name}"), commit)?;
                distrust(&host.layout, &repository, commit)?;
                let said = mark.map(|mark| mark.said(&repository, commit)).transpose()?;
                for said in said.into_iter().flatten() {
                    host.notice_once(format!("{name}: {said}"));
                }
            }
            let brought = match &merged {
                Merged::Clean { commit, .. } if by_agent => tickets::added(&host, &main, commit)?,
                _ => Vec::new(),
            };
            Ok(Ok((main, merged, brought)))
        })
        .await;
    let (main, merged, brought) = match made? {
        Ok(made) => made,
        // It is not landed unsigned: the person is told, and it is tried again.
        Err((why, command)) => {
            let why = format!("your git settings require signed merges, and signing failed ({why})");
            return Ok(Some(Happened::CheckoutInTheWay { why, command }));
        }
    };
    let green = |merge: &Oid| Happened::MergeGreen {
        merge: SmolStr::new(merge.as_str()),
        old: SmolStr::new(main.as_str()),
        tickets: brought.clone(),
    };
    let (commit, tree, unedited) = match merged {
        Merged::Conflict { files, dropped } => {
            let solved = solved_before(shared, known, &of).await;
            let main = SmolStr::new(main.as_str());
            return Ok(Some(Happened::MergeConflict { files, main, dropped, solved }));
        }
        // Someone has brought it into main already, which was tested when it got there.
        Merged::Nothing => return Ok(Some(green(&main))),
        Merged::Clean { commit, tree, unedited } => (commit, tree, unedited),
    };
    // The same files under the same command have been found green before. A ticket that the landing closes and a box that
    // it ticks are Adjutant's own edits, and are no reason to test the same work twice.
    let record_of = |command: &str| TestRecord::of(shared, &tree, command);
    let found_green = |command: &str| {
        let record = record_of(command);
        if !record.is_green() && unedited != tree && TestRecord::of(shared, &unedited, command).is_green() {
            record.write();
        }
        record.is_green()
    };
    if shared.in_force().settings.test.command.as_deref().is_some_and(found_green) {
        return Ok(Some(green(&commit)));
    }
    let whose = Whose { task, run: known.work.run.as_ref(), worker: None };
    let _turn = shared.landing_folder.lock().await;
    let cwd = match prepare(shared, id.as_str(), whose, &commit).await? {
        Ready::Yes(cwd) => cwd,
        Ready::Red { output, .. } => {
            let branch = &world.config.main;
            let output = format!("Merged with {branch}, it cannot be made ready for its tests. {output}");
            let main = SmolStr::new(main.as_str());
            return Ok(Some(Happened::MergeRed { output, by: RedBy::InDoubt, main, solved: false }));
        }
        Ready::Ended => return Ok(None),
    };
    let Some(command) = test_runs::test_command(&shared.in_force().settings, &cwd) else {
        // A person has approved it, knowing that there are no tests.
        return Ok(Some(green(&commit)));
    };
    if found_green(&command) {
        return Ok(Some(green(&commit)));
    }
    let record = record_of(&command);
    let said = Some(format!("{task} is landing"));
    let tests = Tests { name: id.to_string(), of: commit.clone(), command, cwd, said };
    Ok(match test_runs::run_tests(shared, whose, tests, None).await? {
        Tested::Green => {
            record.write();
            Some(green(&commit))
        }
        Tested::Red { output, by } => {
            let output = format!("Merged with {}, the tests fail. {output}", world.config.main);
            let solved = solved_before(shared, known, &of).await;
            Some(Happened::MergeRed { output, by, main: SmolStr::new(main.as_str()), solved })
        }
        Tested::Ended => None,
    })
}

/// Whether the tip has solved what the landing before failed of: then it fails because main has moved again.
async fn solved_before(shared: &Arc<Shared>, task: &kernel::world::Task, tip: &Oid) -> bool {
    let Some(failed) = task.landing.failed.clone().filter(|failed| failed.tip != tip.as_str()) else {
        return false;
    };
    let changes = ChangesInLanding::of(shared, &shared.world(), task);
    let (host, tip) = (shared.clone(), tip.clone());
    let solved = shared
        .blocking(move || -> Result<bool, LandingError> {
            let main = commit(&failed.main)?;
            Ok(match failed.conflict {
                true => {
                    let edits = changes.edits(&host, &tip, 0)?;
                    host.repository.conflicts(&main, &tip, &edits)?.is_none()
                }
                // The gate has tested it together with that main.
                false => host.repository.contains(&tip, &main)?,
            })
        })
        .await;
    // What is not known is no progress.
    solved.unwrap_or(false)
}

/// The files in which the tip still conflicts, where its last landing failed of a conflict: with main as it is, and with the
/// main of that landing. `None`: it is solved, or was so until main moved.
pub(super) async fn still_conflicts(
    shared: &Arc<Shared>,
    task: &kernel::world::Task,
    tip: &Oid,
) -> Result<Option<(Oid, Vec<String>)>, TestsError> {
    let failed = task.landing.failed.clone().filter(|failed| failed.conflict && failed.stands);
    let Some(failed) = failed else { return Ok(None) };
    let changes = ChangesInLanding::of(shared, &shared.world(), task);
    let (host, tip) = (shared.clone(), tip.clone());
    shared
        .blocking(move || -> Result<_, GitError> {
            let repository = &host.repository;
            let main = repository.main_tip()?;
            let edits = changes.edits(&host, &tip, 0)?;
            let Some(files) = repository.conflicts(&main, &tip, &edits)? else { return Ok(None) };
            let before = Oid::new(&failed.main).filter(|before| *before != main);
            let solved = match before {
                Some(before) => repository.conflicts(&before, &tip, &edits)?.is_none(),
                None => false,
            };
            Ok((!solved).then_some((main, files)))
        })
        .await
        .map_err(TestsError::from)
}

/// The files that a landing changes by itself: the ticket that it closes, the box that it ticks.
struct ChangesInLanding {
    ticket: Option<SmolStr>,
    mark: Option<marks::InLanding>,
    undone: Option<marks::Mark>,
}

impl ChangesInLanding {
    fn of(shared: &Shared, world: &kernel::World, task: &kernel::world::Task) -> ChangesInLanding {
        // Offered to others, a box is theirs to tick: two branches that tick boxes side by side would conflict.
        let merges = shared.in_force().settings.landing.by == LandBy::Merge;
        ChangesInLanding {
            ticket: task.origin.ticket.clone(),
            mark: merges.then(|| marks::InLanding::of(world, task)).flatten(),
            undone: marks::undone_by(world, task),
        }
    }

    fn edits(&self, shared: &Shared, tip: &Oid, at: i64) -> Result<Vec<Edit>, GitError> {
        let mut edits: Vec<Edit> = match &self.ticket {
            Some(ticket) => tickets::close_in_landing(shared, ticket)?.into_iter().collect(),
            None => Vec::new(),
        };
        if let Some(mark) = &self.mark {
            edits.push(mark.edit(&shared.repository, at)?);
        }
        if let Some(undone) = &self.undone {
            edits.extend(marks::untick(&shared.repository, undone, tip)?);
        }
        Ok(edits)
    }
}

/// A commit by the name that the kernel has for it.
pub(super) fn commit(name: &SmolStr) -> Result<Oid, LandingError> {
    Oid::new(name).ok_or_else(|| LandingError::NotACommit(name.clone()))
}

/// What a merge says: the task, what was asked for, and by which names it can be looked up.
fn message(task: &kernel::world::Task, agent: Option<&str>) -> String {
    let clean = |text: &str| -> String { text.chars().filter(|c| !c.is_control() || *c == '\n').collect() };
    let body: String = clean(&task.body).chars().take(BODY_CHARS_MAX).collect();
    let mut message = format!("{}: {}\n\n", task.id, subject(&task.title));
    if !body.trim().is_empty() {
        message.push_str(&format!("{}\n\n", body.trim()));
    }
    message.push_str(&format!("Task: {}\n", task.id));
    message.push_str(&agent.map(|agent| format!("Agent: {agent}\n")).unwrap_or_default());
    message
}

/// A task as a pull request shows it: its title, and all that the message of a merge says.
pub(super) fn offer(task: &kernel::world::Task) -> (String, String) {
    let message = message(task, None);
    let body = message.split_once("\n\n").map_or("", |(_, body)| body).to_owned();
    (subject(&task.title), body)
}

/// The same where its commits are squashed: what each of them said, before the trailers.
fn squashed(message: &str, commits: &[(Oid, String)]) -> String {
    let (text, trailers) = message.rsplit_once("\n\n").unwrap_or((message, ""));
    let line = |(_, said): &(Oid, String)| format!("* {}\n", subject(said));
    let said: String = commits.iter().take(SUBJECTS_MAX).map(line).collect();
    let more = commits.len().saturating_sub(SUBJECTS_MAX);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("{text}\n\n{said}{more}\n{trailers}")
}

/// A title in a commit's first line. People write anything there, and git takes no NUL.
fn subject(title: &str) -> String {
    let line = title.lines().next().unwrap_or_default();
    line.chars().take(SUBJECT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

pub enum Ready {
    /// The commit's files are in this folder.
    Yes(PathBuf),
    /// They cannot be made ready: what was tried, and what was printed on the way.
    Red {
        command: String,
        output: String,
    },
    Ended,
}

/// Makes a commit's files ready for their tests, as a task's tree is made ready for an agent. Nothing is touched where
/// the tests run on them already.
pub async fn prepare(
    shared: &Arc<Shared>,
    id: &str,
    whose: Whose<'_>,
    merge: &Oid,
) -> Result<Ready, TestsError> {
    if test_runs::under_test(shared, id).await?.as_ref() == Some(merge) {
        return Ok(Ready::Yes(shared.repository.test_folder(FOLDER)));
    }
    let hook = hooks::HookPoint::WorktreeCreate;
    for name in [id.to_owned(), hooks::name(hook, id)] {
        kept_command::begin_anew(shared, &name).await?;
    }
    let (layout, repository, in_force) =
        (shared.layout.clone(), shared.repository.clone(), shared.in_force());
    let merge = merge.clone();
    let (folder, set_up) = shared
        .blocking(move || -> Result<_, TreeError> {
            trees::make_folder(&layout, &repository)?;
            let folder = repository.test_tree(&merge, FOLDER)?;
            let set_up = trees::set_up_anew(&layout, &repository, &in_force.settings, &folder);
            Ok((folder, set_up))
        })
        .await?;
    // What the settings demand and cannot be done is no test's fault, and no warning either.
    let unmet = match &set_up {
        Ok(set_up) => trees::missing(shared.layout.root(), set_up),
        Err(error) => Some(error.to_string()),
    };
    if let Some(output) = unmet {
        return Ok(Ready::Red { command: "worktree".to_owned(), output });
    }
    Ok(match hooks::in_folder(shared, hook, id, whose, folder.clone()).await {
        Ok(true) => Ready::Yes(folder),
        Ok(false) => Ready::Ended,
        Err(error) => Ready::Red { command: format!("hooks.{hook}"), output: error.to_string() },
    })
}

/// Settings, and what trees get, that come in with an agent's branch are not in force when they arrive.
pub(super) fn distrust(layout: &Layout, repository: &Repository, merge: &Oid) -> Result<(), LandingError> {
    let changed = |file: &str| -> Result<Option<Vec<u8>>, GitError> {
        let before = repository.file_on_main(file)?.unwrap_or_default();
        let after = repository.file_in(merge, file)?.unwrap_or_default();
        Ok((before != after).then_some(after))
    };
    if let Some(content) = changed(INCLUDE_FILE)? {
        include::arrives(layout, &content).map_err(LandingError::Settings)?;
    }
    match changed(FILE)? {
        Some(content) => trust::arrives(layout, &content).map_err(LandingError::Settings),
        None => Ok(()),
    }
}

/// Moves main, and to nothing but the merge that was tested.
pub async fn move_main(
    shared: &Arc<Shared>,
    task: &TaskId,
    merge: &SmolStr,
    old: &SmolStr,
) -> Option<Happened> {
    let (repository, merge, old) = (shared.repository.clone(), commit(merge), commit(old));
    let moved = shared
        .blocking(move || -> Result<Moved, LandingError> { Ok(repository.move_main(&merge?, &old?)?) })
        .await;
    let mut held_up = shared.held_up.lock().unwrap_or_else(PoisonError::into_inner);
    held_up.remove(task);
    Some(match moved {
        Ok(Moved::Moved) => Happened::MainMoved,
        Ok(Moved::ByOther { .. }) => Happened::MainMovedByOther,
        Ok(Moved::InTheWay { why, command, files, at }) => {
            held_up.insert(task.clone(), InTheWay::look(&at, &files));
            Happened::CheckoutInTheWay { why, command }
        }
        Err(error) => endings::failed(error),
    })
}

/// What of a checkout is in the way, and how it looked. Whoever clears the way changes a file or what git knows of it.
pub struct InTheWay {
    paths: Vec<PathBuf>,
    looked: Vec<Option<Looks>>,
}

/// When a file was last changed, its size, and which file it is.
type Looks = (i64, i64, u64, u64);

impl InTheWay {
    pub(super) fn look(checkout: &Path, files: &[String]) -> InTheWay {
        // A worktree's `.git` is a file that names its directory.
        let dot_git = checkout.join(".git");
        let named = std::fs::read_to_string(&dot_git).ok();
        let named = named.as_deref().and_then(|text| text.trim().strip_prefix("gitdir: "));
        let git = named.map_or(dot_git, |dir| checkout.join(dir));
        let known = ["index", "index.lock", "HEAD", "MERGE_HEAD"].map(|name| git.join(name));
        let paths: Vec<PathBuf> =
            known.into_iter().chain(files.iter().map(|file| checkout.join(file))).collect();
        InTheWay { looked: looks(&paths), paths }
    }

    fn has_changed(&self) -> bool {
        looks(&self.paths) != self.looked
    }
}

fn looks(paths: &[PathBuf]) -> Vec<Option<Looks>> {
    use std::os::unix::fs::MetadataExt;
    let look = |path: &PathBuf| {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
    };
    paths.iter().map(look).collect()
}

/// Whoever has cleared a checkout is not kept waiting for the next try.
pub async fn look_at_checkouts(shared: &Arc<Shared>) -> Result<(), SubmitError> {
    let changed: Vec<TaskId> = {
        let mut held_up = shared.held_up.lock().unwrap_or_else(PoisonError::into_inner);
        let changed: Vec<TaskId> =
            held_up.iter().filter(|(_, way)| way.has_changed()).map(|(task, _)| task.clone()).collect();
        // The next try looks again.
        held_up.retain(|task, _| !changed.contains(task));
        changed
    };
    let world = shared.world();
    for task in changed {
        if let Some(timer) = world.timers.get(&Timer::Checkout { task }) {
            outbox::ring(&mut &**shared, timer).await?;
        }
    }
    Ok(())
}
