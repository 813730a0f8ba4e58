//! The gate: checks the work of an agent that reported DONE.

use std::sync::Arc;

use kernel::Ask;
use kernel::command::{Happened, Outcome, RedBy};
use kernel::words::{GateCause, GateFact};
use kernel::world::Workspace;
use machines::names::{EffectId, TaskId, WorkerName};
use smol_str::SmolStr;
use tokio::sync::mpsc;

use super::surroundings::Whose;
use super::test_runs::{TestRecord, Tested, Tests, TestsError, run_tests, test_command, under_test};
use super::{Missing, Shared, authorship, endings, landing, step_commands::StepCommand};
use git::{self, GitError, Inspection, Oid, Repository};

/// Looks at a task's work. `None`: the gate was ended, and is run again another time.
pub async fn run(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    worker: Option<&WorkerName>,
    words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
) -> Option<Happened> {
    match look(shared, id, task, worker, words).await {
        Ok(what) => what,
        // It is tried again.
        Err(error) => Some(endings::failed(format_args!("the gate could not be run: {error}"))),
    }
}

async fn look(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    worker: Option<&WorkerName>,
    words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
) -> Result<Option<Happened>, TestsError> {
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| Missing::Task(task.clone()))?;
    let place = known.work.place.clone().ok_or_else(|| Missing::Tree(task.clone()))?;
    let in_force = shared.in_force();
    let begun = under_test(shared, id.as_str()).await?;
    let agent = authorship::committer(&in_force, &world, known);
    let (repository, of, tickets) =
        (shared.repository.clone(), task.clone(), in_force.settings.tickets.dir.clone());
    let cause = match world.effects.get(id).map(AsRef::as_ref) {
        Some(kernel::Effect::RunGate { worker, max_steps_reached, .. }) => {
            GateCause::of(worker.is_some(), *max_steps_reached)
        }
        _ => GateCause::Person,
    };
    let looked = shared
        .blocking(move || match begun {
            // What is in the tree beyond it by now is what the tests have written: no work of the agent's.
            Some(tip) => look_at(&repository, tip, tickets.to_str()),
            None => take_in(&repository, &of, &place, tickets.to_str(), &agent, cause),
        })
        .await?;
    let Looked { tip, found, dropped, left_out } = looked;
    for what in &dropped {
        shared.notice(format!("{task}: the agent's change to {what} was dropped; agents may not change it"));
    }
    if !dropped.is_empty() {
        let what = Happened::PutBack { what: dropped };
        shared.submit(Ask::Outcome(Outcome { effect: id.clone(), what }), None).await?;
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
        return Ok(Some(Happened::GateRed { output, tip: Some(name), by: RedBy::Branch }));
    }
    if !found.git_directories.is_empty() {
        let output = format!(
            "A git directory was committed as files: {}. Take it out; if it is the one of this tree, move it back to .git.",
            found.git_directories.join(", ")
        );
        return Ok(Some(Happened::GateRed { output, tip: Some(name), by: RedBy::Branch }));
    }
    let place_of_tree = known.work.place.as_ref().map(|place| place.tree.clone()).unwrap_or_default();
    let (repository, changed) = (shared.repository.clone(), found.changed.clone());
    let left = shared.blocking(move || repository.left_by_hook(&place_of_tree, &changed)).await?;
    if let Some(first) = left.first() {
        let output = format!(
            "There are files in the branch that the hook worktree.create left in this tree and nobody changed, {} of them, such as {first}. \
             They are no part of the work: take them out (git rm -r --cached).",
            left.len()
        );
        return Ok(Some(Happened::GateRed { output, tip: Some(name), by: RedBy::Branch }));
    }
    if found.empty {
        return Ok(Some(Happened::GateEmpty { tip: name }));
    }
    if !found.conflict_markers.is_empty() {
        let places: Vec<_> =
            found.conflict_markers.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let output = format!("There are conflict markers in the branch: {}", places.join(", "));
        return Ok(Some(Happened::GateRed { output, tip: Some(name), by: RedBy::ConflictMarkers }));
    }
    if let Some((main, files)) = landing::still_conflicts(shared, known, &tip).await? {
        let main = SmolStr::new(main.as_str());
        return Ok(Some(Happened::GateConflict { tip: name, files, main }));
    }
    if let Some(output) = failed_as_merged(shared, known, &tip).await? {
        return Ok(Some(Happened::GateRed { output, tip: Some(name), by: RedBy::Tests }));
    }
    let tree = shared.tree(&known.work.place.as_ref().map(|place| place.tree.clone()).unwrap_or_default())?;
    let Some(command) = test_command(&in_force.settings, &tree) else {
        shared.notice(format!(
            "{task}: no tests were found; a person must review it. Set `test.command` in adjutant.toml"
        ));
        return Ok(Some(Happened::GateGreen { tip: name, facts: vec![GateFact::NoTests] }));
    };
    let whose = Whose { task, run: known.work.run.as_ref(), worker };
    let tests = Tests {
        name: id.to_string(),
        of: tip.clone(),
        command: command.clone(),
        cwd: tree.clone(),
        said: None,
    };
    let tested = run_tests(shared, whose, tests, words).await?;
    if !matches!(tested, Tested::Ended) {
        note_test_files(shared, known, &tip).await;
    }
    Ok(match tested {
        Tested::Green => {
            remember(shared, known, &tip, &command).await;
            let config = found.touches_config.then_some(GateFact::TouchesConfig);
            let include = found.touches_include.then_some(GateFact::TouchesInclude);
            let facts = config.into_iter().chain(include).collect();
            Some(Happened::GateGreen { tip: name, facts })
        }
        Tested::Red { output, by } => Some(Happened::GateRed { output, tip: Some(name), by }),
        Tested::Ended => None,
    })
}

/// What the tests of the merge printed, where neither the branch nor main has changed since they failed.
async fn failed_as_merged(
    shared: &Arc<Shared>,
    task: &kernel::world::Task,
    tip: &Oid,
) -> Result<Option<String>, TestsError> {
    let failed = task.landing.failed.clone().filter(|failed| !failed.conflict && failed.stands);
    let Some(failed) = failed else { return Ok(None) };
    let repository = shared.repository.clone();
    let main = shared.blocking(move || repository.main_tip()).await?;
    if !failed.is_of(tip.as_str(), main.as_str()) {
        return Ok(None);
    }
    let printed = task.gate.test_output.as_deref().unwrap_or_default();
    let branch = &shared.world().config.main;
    Ok(Some(format!("Nothing has changed since the tests failed on the merge with {branch}.\n\n{printed}")))
}

/// What the tests wrote into the tree is not taken for the agent's by the next gate.
async fn note_test_files(shared: &Arc<Shared>, task: &kernel::world::Task, tip: &Oid) {
    let Some(place) = task.work.place.clone() else { return };
    let (repository, id, tip) = (shared.repository.clone(), task.id.clone(), tip.clone());
    let noted = shared.blocking(move || repository.note_test_files(&id, &place.tree, &tip)).await;
    if let Err(error) = noted {
        shared.notice(format!("{}: files that its tests wrote count as the agent's work: {error}", task.id));
    }
}

/// What the gate found green need not be tested again as it lands, if the merge has the same files. Files that git
/// ignores and only this tree has may have helped: then nothing is remembered.
async fn remember(shared: &Arc<Shared>, task: &kernel::world::Task, tip: &Oid, command: &str) {
    let Some(place) = task.work.place.clone() else { return };
    let (host, tip, command) = (shared.clone(), tip.clone(), command.to_owned());
    let remembered = shared
        .blocking(move || {
            let repository = &host.repository;
            if repository.ignored_beside_main(&place.tree, landing::FOLDER)? {
                return Ok::<_, GitError>(());
            }
            TestRecord::of(&host, &repository.tree_of(&tip)?, &command).write();
            Ok(())
        })
        .await;
    // What is not remembered costs a test run.
    drop(remembered);
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
    place: &Workspace,
    tickets: Option<&str>,
    agent: &git::Agent,
    cause: GateCause,
) -> Result<Looked, GitError> {
    // A tree that is gone is rebuilt on what was last taken from it.
    repository.prepare_tree(task, &place.tree, &place.branch)?;
    let why = match cause {
        GateCause::Claim => "The agent said that it was done and had not committed these.",
        GateCause::OutOfSteps => "The agent had taken all its steps and had not committed these.",
        GateCause::Person | GateCause::Landing => {
            "A person completed the run; the agent had not committed these."
        }
    };
    let message = format!("Leftover changes of {task}\n\n{why}");
    let left = repository.commit_leftovers(task, &place.tree, &place.branch, &message, agent)?;
    let tip = repository.take_tip(task, &place.tree, &place.branch)?.tip;
    let looked = look_at(repository, tip, tickets)?;
    let keys = looked.found.tickets_changed.iter().map(|path| format!("the front matter of `{path}`"));
    let dropped: Vec<String> = keys.collect();
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
