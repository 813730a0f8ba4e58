//! What comes next for whoever holds a task: its tree, a step, the gate.

use machines::names::{EffectId, TaskId, WorkerName};
use machines::task::Status;
use machines::{run, worker};

use super::requests::untold_answers;
use super::service::held_back;
use super::sessions;
use super::step::{budget_reached, turn_limit};
use crate::budget;
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, Prompt, StepStart, StepTree, Timer};
use crate::event::{AnswerTold, GateDoubted, NotesTold};
use crate::session::Session;
use crate::world::SentBack;

pub(super) fn ask_tree(d: &mut Draft, worker: &WorkerName, id: &TaskId) -> Ruled {
    let Some(place) = d.task(id)?.work.place.clone() else { return Ok(()) };
    let (task, worker, tree, branch) = (id.clone(), worker.clone(), place.tree, place.branch);
    let effect = d.ask(Effect::PrepareTree { of: StepTree::Task { task, worker, tree, branch } });
    under_way(d, id, Some(effect));
    Ok(())
}

pub(super) fn under_way(d: &mut Draft, id: &TaskId, effect: Option<EffectId>) {
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        sessions::under_way(d, &Session::Run(run), effect);
    }
}

/// Whatever a worker should be doing and is not: after the fleet started, a service came back, or the past ended.
pub(super) fn wake(d: &mut Draft, id: &TaskId) -> Ruled {
    let Some(task) = d.world.task(id) else { return Ok(()) };
    let (Some(worker), Some(run)) = (d.world.leaseholder(id), d.world.run_of(id)) else { return Ok(()) };
    let waiting = run.step.is_some()
        || run.is_suspended()
        || !task.work.unfinished.is_empty()
        || !d.world.fleet_running
        || !d.world.main_is_green()
        || task.gate.in_doubt.is_some()
        || (worker.machine.status == worker::State::Working && d.world.open_question(&run.id).is_some())
        || task.status() != Status::InProgress
        || d.world.timers.contains_key(&Timer::Backoff { worker: worker.name.clone() });
    if waiting {
        return Ok(());
    }
    let (name, state, run_id, run_state) =
        (worker.name.clone(), worker.machine.status, run.id.clone(), run.state());
    match (state, run_state) {
        (worker::State::Working, run::State::InError) => {
            d.step_run(&run_id, run::Event::Resume { feedback: None, input: None, max_turns: None })?;
            next_step(d, &name)
        }
        (worker::State::Working, run::State::Starting | run::State::Running) => next_step(d, &name),
        (worker::State::Ready, run::State::Starting | run::State::Running) => ask_tree(d, &name, id),
        (worker::State::Done, run::State::Running) => {
            let out_of_steps = d.worker(&name)?.machine.out_of_steps;
            ask_gate(d, &name, id, out_of_steps)
        }
        _ => Ok(()),
    }
}

/// The next step of a working worker, unless a limit says otherwise.
pub(super) fn next_step(d: &mut Draft, name: &WorkerName) -> Ruled {
    let Some(id) = d.worker(name)?.machine.task.clone() else { return Ok(()) };
    let task = d.task(&id)?;
    let Some(run) = d.world.run_of(&id) else { return Ok(()) };
    // Whoever ended the fleet or the past wakes it again; so does main, when it passes its tests.
    if !d.world.fleet_running || !task.work.unfinished.is_empty() || !d.world.main_is_green() {
        return Ok(());
    }
    // Whoever answers wakes it: the agent would only ask again, or go on without knowing.
    if d.world.open_question(&run.id).is_some() {
        return Ok(());
    }
    let Some(place) = &task.work.place else { return Ok(()) };
    if !place.ready {
        return ask_tree(d, name, &id);
    }
    let run_id = run.id.clone();
    if held_back(d, &run_id)? {
        return Ok(());
    }
    let (task, run) = (d.task(&id)?, d.run(&run_id)?);
    let (run_id, reserved) = (run.id.clone(), run.reserved);
    let machine = run.machine.inner();
    if machine.state == run::State::Running && machine.current_turn >= machine.max_turns {
        return turn_limit(d, &run_id);
    }
    if reserved == 0
        && let Some(room) = budget::exhausted(&d.world, task, run, d.day())
        && machine.state == run::State::Running
    {
        return budget_reached(d, &run_id, &room);
    }
    let turns_left = machine.max_turns - machine.current_turn;
    let of = Session::Run(run_id.clone());
    let Some((session, resume)) = sessions::for_next(d, &of) else { return Ok(()) };
    let task = d.task(&id)?;
    let answers = untold_answers(&d.world, &id);
    let notes = task.work.notes.iter().map(|note| note.to_string());
    let notes: Vec<String> = notes.chain(answers.iter().map(|(_, note)| note.clone())).collect();
    let prompt = match &task.gate.sent_back {
        Some(SentBack::Gate(output)) => Prompt::TestFailure { output: output.clone(), notes },
        Some(SentBack::Landing(output)) => Prompt::MergeConflict { output: output.clone(), notes },
        None if resume => Prompt::Step { notes },
        None => Prompt::Init { notes },
    };
    let told = !task.work.notes.is_empty() || task.gate.sent_back.is_some();
    sessions::reserve(d, &of);
    for (request, _) in answers {
        d.emit(AnswerTold { id: request, task: Some(id.clone()) });
    }
    if told {
        d.emit(NotesTold { id: id.clone() });
    }
    let start = StepStart::Task { task: id.clone(), worker: name.clone(), run: run_id, prompt };
    let effect = d.ask(Effect::StartStep { of: start, session, resume, turns_left });
    sessions::under_way(d, &of, Some(effect));
    Ok(())
}

pub(super) fn ask_gate(d: &mut Draft, name: &WorkerName, id: &TaskId, max_steps_reached: bool) -> Ruled {
    if d.task(id)?.gate.in_doubt.is_some() {
        d.emit(GateDoubted { id: id.clone(), what: None });
    }
    // What a test says is worth nothing before main is known to pass it.
    if !d.world.main_is_green() {
        return Ok(());
    }
    let effect = d.ask(Effect::RunGate { task: id.clone(), worker: Some(name.clone()), max_steps_reached });
    under_way(d, id, Some(effect));
    Ok(())
}
