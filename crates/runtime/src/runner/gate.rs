//! The gate: what an agent calls done is looked at before anybody else has to.

use std::sync::Arc;

use kernel::command::Happened;
use kernel::world::Place;
use machines::names::{EffectId, TaskId, WorkerName};
use smol_str::SmolStr;
use tokio::sync::mpsc;

use super::kept::{self, Kept, Ran};
use super::{Shared, place, steps::Word};
use crate::git::{GitError, Inspection, Oid, Repository};
use crate::keeper::{Exit, Reason};
use crate::workplace;

/// Looks at a task's work. `None`: the gate was ended, and is run again another time.
pub async fn run(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    worker: Option<&WorkerName>,
    words: Option<&mut mpsc::UnboundedReceiver<Word>>,
) -> Option<Happened> {
    match look(shared, id, task, worker, words).await {
        Ok(what) => what,
        // It says nothing about the work: it is tried again.
        Err(error) => Some(Happened::Failed { error: format!("the gate could not be run: {error}") }),
    }
}

async fn look(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    worker: Option<&WorkerName>,
    words: Option<&mut mpsc::UnboundedReceiver<Word>>,
) -> Result<Option<Happened>, String> {
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| format!("there is no task `{task}`"))?;
    let place = known.place.clone().ok_or_else(|| format!("task `{task}` has no tree"))?;
    let rules = shared.rules();
    let begun = under_test(shared, id).await?;
    let (repository, of, tickets) =
        (shared.repository.clone(), task.clone(), rules.settings.tickets.dir.clone());
    let looked = shared
        .blocking(move || match begun {
            // What is in the tree beyond it by now is what the tests have written: no work of the agent's.
            Some(tip) => look_at(&repository, tip, tickets.to_str()),
            None => take_in(&repository, &of, &place, tickets.to_str()),
        })
        .await
        .map_err(|error| error.to_string())?;
    let Looked { tip, found, dropped, left_out } = looked;
    for path in &dropped {
        shared.notice(format!(
            "{task}: the agent's change to `{path}` was dropped; it is not the agent's to change"
        ));
    }
    for path in &left_out {
        shared.notice_once(format!("{task}: `{path}` cannot be committed and stays in the tree"));
    }
    let name = SmolStr::new(tip.as_str());
    if !found.submodules.is_empty() {
        let output = format!(
            "There are repositories inside the branch, which cannot be landed: {}. Take them out.",
            found.submodules.join(", ")
        );
        return Ok(Some(Happened::GateRed { output, tip: Some(name) }));
    }
    if found.empty {
        return Ok(Some(Happened::GateEmpty { tip: name }));
    }
    if !found.conflict_markers.is_empty() {
        let places: Vec<_> =
            found.conflict_markers.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let output = format!("There are conflict markers in the branch: {}", places.join(", "));
        return Ok(Some(Happened::GateRed { output, tip: Some(name) }));
    }
    let tree = shared.tree(&known.place.as_ref().map(|place| place.tree.clone()).unwrap_or_default())?;
    let Some(command) = test_command(&rules.settings, &tree) else {
        shared.notice(format!(
            "{task}: no tests were found; a person must look. Set `test.command` in adjutant.toml"
        ));
        let needs_person = Some(SmolStr::new_static("no_tests"));
        return Ok(Some(Happened::GateGreen { tip: name, needs_person }));
    };
    let tests = Tests { name: id.to_string(), of: tip, command, cwd: tree };
    Ok(match run_tests(shared, known, worker, tests, words).await? {
        Tested::Green => {
            let needs_person = found.touches_config.then(|| SmolStr::new_static("touches_config"));
            Some(Happened::GateGreen { tip: name, needs_person })
        }
        Tested::Red(output) => Some(Happened::GateRed { output, tip: Some(name) }),
        Tested::Ended => None,
    })
}

struct Looked {
    tip: Oid,
    found: Inspection,
    dropped: Vec<String>,
    left_out: Vec<String>,
}

/// Commits what is left over in the tree, and puts back what is not the agent's to change.
fn take_in(
    repository: &Repository,
    task: &TaskId,
    place: &Place,
    tickets: Option<&str>,
) -> Result<Looked, GitError> {
    // A tree that is gone is rebuilt on what was last taken from it.
    repository.prepare_tree(task, &place.tree, &place.branch)?;
    let message =
        format!("Leftover changes of {task}\n\nThe agent said that it was done and had not committed these.");
    let left = repository.commit_leftovers(task, &place.tree, &place.branch, &message)?;
    let tip = repository.take_tip(task, &place.tree, &place.branch)?.tip;
    let looked = look_at(repository, tip, tickets)?;
    let dropped = looked.found.tickets_changed.clone();
    if dropped.is_empty() {
        return Ok(Looked { left_out: left.left_out, ..looked });
    }
    let message = format!("Put back what is not the agent's to change\n\n{}", dropped.join("\n"));
    let main = repository.main_tip()?;
    let tip = repository.put_back(task, &place.tree, &place.branch, &main, tickets, &message)?;
    Ok(Looked { dropped, left_out: left.left_out, ..look_at(repository, tip, tickets)? })
}

fn look_at(repository: &Repository, tip: Oid, tickets: Option<&str>) -> Result<Looked, GitError> {
    let found = repository.inspect(&tip, &repository.main_tip()?, tickets)?;
    Ok(Looked { tip, found, dropped: Vec::new(), left_out: Vec::new() })
}

/// A test run to make.
pub struct Tests {
    pub name: String,
    /// The commit whose files they are run on.
    pub of: Oid,
    pub command: String,
    pub cwd: std::path::PathBuf,
}

/// What a test run is on: it counts for this commit, tested by this command.
fn on(commit: &Oid, command: &str) -> String {
    format!("{commit} {command}")
}

/// The commit that the effect's tests run on, or ran on: a process before this one has begun them.
pub async fn under_test(shared: &Arc<Shared>, id: &EffectId) -> Result<Option<Oid>, String> {
    let of = kept::standing(shared, id.as_str()).await?;
    Ok(of.and_then(|of| Oid::new(of.split(' ').next().unwrap_or_default())))
}

/// What came of a test run.
pub enum Tested {
    Green,
    /// The part of the output that says what is wrong.
    Red(String),
    /// It was ended; it says nothing about the work.
    Ended,
}

/// The command that tests a tree: the user's, or what the repository holds. `None`: there is nothing to run.
pub fn test_command(settings: &crate::settings::Settings, tree: &std::path::Path) -> Option<String> {
    settings.test.command.clone().or_else(|| workplace::tests::find(tree).command().map(str::to_owned))
}

/// Runs the tests as the agent would: in its sandbox, with its environment, under a keeper.
pub async fn run_tests(
    shared: &Arc<Shared>,
    task: &kernel::world::Task,
    worker: Option<&WorkerName>,
    tests: Tests,
    words: Option<&mut mpsc::UnboundedReceiver<Word>>,
) -> Result<Tested, String> {
    let rules = shared.rules();
    let folders = place::Folders::make(&shared.layout, &task.id).map_err(|error| error.to_string())?;
    let limit = rules.settings.test.timeout;
    let kept = Kept {
        name: tests.name,
        of: on(&tests.of, &tests.command),
        argv: vec!["sh".to_owned(), "-c".to_owned(), tests.command.clone()],
        env: place::environment(shared, &rules, None, task, worker, None)?,
        sandbox: place::sandbox(shared, &rules, &tests.cwd, &folders)?,
        cwd: tests.cwd,
        limit,
    };
    let _slot = shared.tests.acquire().await;
    Ok(match kept::run(shared, kept, words).await? {
        Ran::Ended => Tested::Ended,
        Ran::Over { exit: Exit { reason: Reason::Exited, code: Some(0), .. }, .. } => Tested::Green,
        Ran::Over { exit, output } => {
            let failing = workplace::failing_part(&output, rules.settings.limits.test_output_bytes);
            Tested::Red(format!("`{}` {}.\n\n{failing}", tests.command, place::how_it_ended(&exit, limit)))
        }
    })
}
