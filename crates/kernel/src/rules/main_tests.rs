//! Main's own tests: an agent is started, and what its tests say is believed, only where main passes them.

use machines::names::TaskId;
use machines::task::BlockReason;
use machines::worker::ReleaseReason;
use machines::{Millis, run, worker};
use smol_str::SmolStr;

use super::Rule;
use super::landing::gate_red;
use super::next::wake;
use super::release::{block, pause_run, release};
use crate::command::{RedBy, Refusal};
use crate::draft::{Draft, Ruled};
use crate::effect::Effect;
use crate::event::{
    GateDoubted, LandingDoubted, LandingEnded, MainDoubted, MainTested, MainTestsBegun, Queued, SentBackTo,
};
use crate::why;
use crate::words::{GateCause, LandingEnd};
use crate::world::{InDoubt, SentBack};

/// Asks for main's tests where they are not known and something waits for them, or where somebody wants them again.
/// They run in the landing's folder, so neither begins before the other has ended.
pub(super) fn ask_main_tests(d: &mut Draft) {
    let world = &d.world;
    let (wanted, main) = (world.config.tests.is_some(), &world.main);
    if !wanted || !world.fleet_running || main.under_way.is_some() || world.landing.is_some() {
        return;
    }
    if !main.again && (world.main_is_known() || !something_waits(d)) {
        return;
    }
    d.rule(Rule::MainTestsAsked);
    let again = d.world.main.again;
    let effect = d.ask(Effect::TestMain { again });
    d.emit(MainTestsBegun { effect });
}

fn something_waits(d: &Draft) -> bool {
    let at_work = |worker: &std::sync::Arc<crate::world::Worker>| {
        worker.machine.task.is_some() && worker.machine.status != worker::State::Stuck
    };
    !d.world.claimable.is_empty() || !d.world.queue.is_empty() || d.world.workers.values().any(at_work)
}

pub(super) fn main_tested(d: &mut Draft, tested: MainTested) -> Ruled {
    d.emit(tested);
    d.rule(if d.world.main_is_green() { Rule::MainGreen } else { Rule::MainRed });
    settle_doubts(d)?;
    go_on(d)
}

/// Whatever waited for main's tests goes on, if they pass or nobody wants them any more.
pub(crate) fn go_on(d: &mut Draft) -> Ruled {
    if !d.world.main_is_green() {
        return Ok(());
    }
    if d.world.config.tests.is_none() {
        settle_doubts(d)?;
    }
    let held: Vec<TaskId> =
        d.world.workers.values().filter_map(|worker| worker.machine.task.clone()).collect();
    for id in held {
        wake(d, &id)?;
    }
    Ok(())
}

/// Main passes: what was in doubt is the task's own. Main fails: it says nothing about the task, and is looked at
/// again when main passes.
fn settle_doubts(d: &mut Draft) -> Ruled {
    let green = d.world.main_is_green();
    let in_doubt = |worker: &std::sync::Arc<crate::world::Worker>| {
        let id = worker.machine.task.clone()?;
        let doubt = d.world.task(&id)?.gate.in_doubt.clone()?;
        Some((worker.name.clone(), id, doubt))
    };
    let doubts: Vec<_> = d.world.workers.values().filter_map(in_doubt).collect();
    for (worker, id, doubt) in doubts {
        d.emit(GateDoubted { id: id.clone(), what: None });
        match doubt.by {
            _ if !green => {}
            RedBy::Environment if d.worker(&worker)?.machine.status == worker::State::Done => {
                not_run(d, &id, &doubt.output)?;
            }
            RedBy::Environment => tree_not_made(d, &id, &doubt.output)?,
            by => {
                let cause = GateCause::of(true, d.worker(&worker)?.machine.out_of_steps);
                gate_red(d, &id, Some(&worker), &doubt.output, by, cause)?;
            }
        }
    }
    if !green {
        let landings: Vec<TaskId> = d.world.queue.values().cloned().collect();
        for id in landings {
            if d.task(&id)?.landing.doubted {
                d.emit(LandingDoubted { id, doubted: false });
            }
        }
    }
    Ok(())
}

/// A red gate that may not be the agent's fault waits until main's tests have been run again. False: it is not in doubt.
pub(super) fn gate_in_doubt(d: &mut Draft, id: &TaskId, output: &str, by: RedBy) -> bool {
    if !doubtful(d, by, gate_trusts_main_since(d, id)) {
        return false;
    }
    d.rule(Rule::TestsDoubted);
    // Where main is known to fail, that is what they fail of: the gate is run again when main passes.
    if d.world.main_is_green() || !d.world.main_is_known() {
        d.emit(GateDoubted { id: id.clone(), what: Some(InDoubt { output: output.to_owned(), by }) });
        let why = match by {
            RedBy::Tests => "the tests of a task fail, and main's were not run since it was taken",
            _ => "the tests of a task could not be run",
        };
        test_main_again(d, why);
    }
    true
}

/// From when on main's tests must have been run for a red gate to be the agent's own: since it took the task up, and, before
/// its last fix round is spent, once more now. So each task costs at most two runs of them.
fn gate_trusts_main_since(d: &Draft, id: &TaskId) -> Option<Millis> {
    let holds = |worker: &&std::sync::Arc<crate::world::Worker>| worker.machine.task.as_ref() == Some(id);
    let worker = d.world.workers.values().find(holds)?;
    let is_last = worker.machine.fix_rounds >= worker.machine.limits.max_fix_rounds;
    if is_last { Some(d.at()) } else { worker.task_assigned_at }
}

/// `since`: main's tests are believed if they were run after it.
fn doubtful(d: &Draft, by: RedBy, since: Option<Millis>) -> bool {
    let Some(of) = &d.world.config.tests else { return false };
    // Known to fail, or known under other settings only. A main that merely moved says nothing against the tests.
    let other =
        |verdict: &std::sync::Arc<crate::world::MainVerdict>| verdict.red.is_some() || verdict.of != *of;
    match by {
        RedBy::Tests => {
            let ran_at = d.world.main_verdict().and_then(|verdict| verdict.ran_at);
            let is_old = since.is_some_and(|since| ran_at.is_none_or(|ran_at| ran_at < since));
            is_old || d.world.main.verdict.as_ref().is_some_and(other)
        }
        RedBy::InDoubt | RedBy::Environment => true,
        RedBy::ConflictMarkers | RedBy::Conflict | RedBy::Branch | RedBy::NoChange => false,
    }
}

/// The merge with `main` is tested once more after main's tests. False: it is not in doubt, or has been in doubt before.
pub(super) fn landing_in_doubt(
    d: &mut Draft,
    id: &TaskId,
    by: RedBy,
    main: &SmolStr,
) -> Result<bool, Refusal> {
    // A merge that is doubted is tested again after main, which costs more than the one round that it may save: a main that
    // has passed its tests, or that our own landings brought there, is not doubted.
    let untested = by == RedBy::Tests && !is_tested(d, main);
    if !(untested || doubtful(d, by, None)) || d.task(id)?.landing.doubted {
        return Ok(false);
    }
    d.rule(Rule::TestsDoubted);
    d.emit(LandingEnded { id: id.clone(), why: LandingEnd::NotTested });
    d.emit(LandingDoubted { id: id.clone(), doubted: true });
    d.emit(Queued { id: id.clone() });
    let why = match untested {
        true => "the tests of a merge fail, and somebody else moved main since its own were run",
        false => "the tests of a merge could not be run",
    };
    test_main_again(d, why);
    Ok(true)
}

/// Whether main's tests were run at this commit, or at one from which only landings lead to it. True as well if nobody wants
/// them to be run.
fn is_tested(d: &Draft, main: &SmolStr) -> bool {
    d.world.config.tests.is_none() || d.world.main_verdict().is_some_and(|verdict| verdict.main == *main)
}

/// The tests of a task could not be run, though main's are: no agent is told to mend that.
pub(super) fn not_run(d: &mut Draft, id: &TaskId, output: &str) -> Ruled {
    d.rule(Rule::TestsNotRun);
    let what = SentBack::Gate(output.to_owned());
    d.emit(SentBackTo { id: id.clone(), what, by: RedBy::Environment, cause: GateCause::Claim });
    let comment = format!("its tests could not be run: {}", why::last_line(output));
    blocked_by_environment(d, id, comment)
}

/// Its tree could not be made, though main's can: there is nothing to tell an agent of.
pub(super) fn tree_not_made(d: &mut Draft, id: &TaskId, output: &str) -> Ruled {
    blocked_by_environment(d, id, format!("its tree could not be made: {output}"))
}

fn blocked_by_environment(d: &mut Draft, id: &TaskId, comment: String) -> Ruled {
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        pause_run(d, &run, run::PauseReason::UserInput)?;
    }
    release(d, id, ReleaseReason::Blocked)?;
    block(d, id, BlockReason::Environment, comment)
}

pub(crate) fn test_main_again(d: &mut Draft, why: &'static str) {
    if d.world.config.tests.is_some() && !d.world.main.again {
        d.emit(MainDoubted { why: SmolStr::new_static(why), forget: false });
    }
}

/// Main is not where its tests were run: what is known of them is known no longer.
pub(crate) fn main_seen(d: &mut Draft, tip: &SmolStr) {
    let elsewhere = d.world.main.verdict.as_ref().is_some_and(|verdict| verdict.main != *tip);
    if elsewhere && d.world.main.under_way.is_none() {
        forget(d, "main has moved");
    }
}

/// A person who starts the fleet again wants to see whether main passes now.
pub(super) fn started_again(d: &mut Draft) {
    if d.world.main.verdict.as_ref().is_some_and(|verdict| verdict.red.is_some()) {
        forget(d, "the fleet was started again");
    }
}

fn forget(d: &mut Draft, why: &'static str) {
    d.emit(MainDoubted { why: SmolStr::new_static(why), forget: true });
}

/// A person wants main's tests to run again.
pub(crate) fn test_main_for_person(d: &mut Draft) -> Ruled {
    if d.world.config.tests.is_none() {
        return Err(Refusal::new(409, "NOT_TESTED", "main is not tested in this project")
            .hint("`check_main = true` in [test] of adjutant.toml turns it on"));
    }
    test_main_again(d, "a person asked for it");
    Ok(())
}
