//! What came of an effect, and which rule takes it.

use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::Rule;
use super::excerpts::describe;
use super::landing::{
    Conflict, RedMerge, gate_outcome, held_up, landed, landing_conflicts, landing_failed, landing_written,
    merge_red, offered, remote_in_the_way, test_merge,
};
use super::main_tests::main_tests_outcome;
use super::next::{under_way, wake};
use super::service::{health_seen, timer_due};
use super::step::{charge, step_outcome, tree_failed, tree_ready, tree_unmet};
use super::tickets::ticket_says;
use super::{architect, rooms, seats};
use crate::command::{Happened, Outcome, RedBy, Refusal, Reply};
use crate::draft::{Draft, Ruled};
use crate::effect::Effect;
use crate::event::{
    AfterwardsAdded, AfterwardsTaken, EffectFailed, LandingEnded, NoteLeft, PlaceTaken, TipMoved, TreeStands,
    UnfinishedAdded,
};
use crate::words::{CommentKind, EffectEnd, LandingEnd};
use crate::world::Landed;

pub(crate) fn outcome(d: &mut Draft, outcome: &Outcome) -> Result<Reply, Refusal> {
    let Some(effect) = d.world.effects.get(&outcome.effect).cloned() else {
        return Ok(Reply { superseded: true, ..Reply::default() });
    };
    let id = &outcome.effect;
    match (effect.as_ref(), &outcome.what) {
        (Effect::PrepareTree { task, worker, .. }, what) => {
            done(d, id, task);
            match what {
                Happened::TreeReady { tip } => tree_ready(d, worker, task, tip)?,
                Happened::TreeUnmet { error } => tree_unmet(d, task, error)?,
                other => tree_failed(d, worker, &describe(other))?,
            }
        }
        (Effect::StartStep { task, worker, run, .. }, what) => {
            return step_outcome(d, id, task, worker, run, what);
        }
        (Effect::EndStep { task, run, .. }, what) => {
            if let Happened::Failed { error } = what {
                tried(d, id, error);
            } else {
                d.end(id, EffectEnd::Done);
                if let (Happened::StepEnded { tip, usage }, Some(run)) = (what, run) {
                    charge(d, run, 0, *usage);
                    tip_moved(d, task, tip.as_ref());
                }
                past_ended(d, task)?;
            }
        }
        (Effect::AnswerCall { .. }, what) => match what {
            Happened::Failed { error } => tried(d, id, error),
            _ => d.end(id, EffectEnd::Done),
        },
        (Effect::TellAgent { task, text, .. }, what) => {
            d.end(id, EffectEnd::Done);
            let closed = d.task(task)?.is_final();
            if !matches!(what, Happened::Told { heard: true }) && !closed {
                d.emit(NoteLeft { id: task.clone(), note: SmolStr::new(text) });
            }
        }
        // Nothing is known about the work: it is looked at again, and costs the agent nothing.
        (
            Effect::RunGate { .. } | Effect::TestMerge { .. } | Effect::TestMain { .. },
            Happened::Failed { error },
        ) => tried(d, id, error),
        (Effect::TestMain { .. }, what) => {
            d.end(id, EffectEnd::Done);
            main_tests_outcome(d, what)?;
        }
        (Effect::RunGate { task, .. }, Happened::PutBack { what }) => put_back(d, task, what),
        (Effect::RunGate { task, worker, max_steps_reached }, what) => {
            done(d, id, task);
            gate_outcome(d, task, worker.as_ref(), *max_steps_reached, what)?;
        }
        (Effect::SaveWork { task }, what) | (Effect::RemoveTree { task, .. }, what) => match what {
            Happened::WorkSaved { reference } => {
                d.end(id, EffectEnd::Done);
                d.comment(task, "system", CommentKind::Saved, format!("work saved as {reference}"));
                past_ended(d, task)?;
            }
            Happened::TreeRemoved { reference } => {
                d.end(id, EffectEnd::Done);
                d.emit(TreeStands { id: task.clone(), stands: false });
                if matches!(*effect, Effect::RemoveTree { start_over: true, .. }) {
                    d.emit(PlaceTaken { id: task.clone() });
                }
                if let Some(reference) = reference {
                    d.comment(
                        task,
                        "system",
                        CommentKind::Saved,
                        format!("tree removed; its content is saved as {reference}"),
                    );
                    // Whoever works on it next finds a fresh tree, and would look for what is not in it.
                    if !d.task(task)?.is_final() {
                        let note = format!(
                            "The tree was removed and made again. What was not committed in it is saved as \
                             {reference}: `git diff HEAD {reference}` shows it, `git checkout {reference} -- .` brings it back."
                        );
                        d.emit(NoteLeft { id: task.clone(), note: SmolStr::new(note) });
                    }
                }
                past_ended(d, task)?;
            }
            other => tried(d, id, &describe(other)),
        },
        (Effect::TestMerge { task, tip }, what) => {
            d.end(id, EffectEnd::Done);
            match what {
                Happened::MergeGreen { merge, old, tickets } => {
                    landing_written(d, task, tip, merge, old, tickets)?;
                }
                Happened::MergeConflict { files, main, dropped, solved } => {
                    landing_conflicts(d, task, &Conflict { tip, files, main }, dropped, *solved)?;
                }
                Happened::MergeRed { output, by, main, solved } => {
                    merge_red(d, task, &RedMerge { tip, main, output, by: *by, solved: *solved })?;
                }
                Happened::CheckoutInTheWay { why, command } => held_up(d, task, why, command)?,
                Happened::PullRequestOpen { url, branch } => offered(d, task, url.clone(), branch)?,
                Happened::RemoteInTheWay { why } => remote_in_the_way(d, task, why)?,
                other => {
                    let output = format!("The merge could not be tested: {}", describe(other));
                    landing_failed(d, task, output, RedBy::Tests, false)?;
                }
            }
        }
        (Effect::MoveMain { task, tip, merge, old }, what) => match what {
            Happened::MainMoved => {
                d.end(id, EffectEnd::Done);
                landed(d, task, Landed { tip: tip.clone(), merge: merge.clone(), old_main: old.clone() })?;
            }
            Happened::MainMovedByOther => {
                d.end(id, EffectEnd::Done);
                d.rule(Rule::LandingRepeated);
                d.emit(LandingEnded { id: task.clone(), why: LandingEnd::MainMovedByOther });
                test_merge(d, task)?;
            }
            Happened::CheckoutInTheWay { why, command } => {
                d.end(id, EffectEnd::Done);
                held_up(d, task, why, command)?;
            }
            // It is written down: whether main was moved is known only to git, so it is asked again.
            other => tried(d, id, &describe(other)),
        },
        (Effect::WriteTicket { ticket, status, .. }, Happened::TicketWritten) => {
            d.end(id, EffectEnd::Done);
            ticket_says(d, ticket, *status);
        }
        (Effect::WriteTicket { .. }, Happened::TicketLeft) => d.end(id, EffectEnd::Done),
        (Effect::DeleteBranch { .. }, Happened::BranchDeleted) => d.end(id, EffectEnd::Done),
        (Effect::RunLandedHook { .. }, Happened::HookRan) => d.end(id, EffectEnd::Done),
        (Effect::WriteTicket { .. } | Effect::DeleteBranch { .. } | Effect::RunLandedHook { .. }, other) => {
            tried(d, id, &describe(other))
        }
        (Effect::StartReply { seat, .. }, what) => return seats::reply_outcome(d, id, seat, what),
        (Effect::PrepareSeat { .. }, what) => {
            d.end(id, EffectEnd::Done);
            let failed = (!matches!(what, Happened::TreeReady { .. })).then(|| describe(what));
            architect::workspace(d, failed)?;
        }
        (Effect::EndReply { seat, .. }, what) => seats::reply_ended(d, id, seat, what)?,
        (Effect::AnswerInReply { .. }, what) => match what {
            Happened::Failed { error } => tried(d, id, error),
            _ => d.end(id, EffectEnd::Done),
        },
        (Effect::TellInReply { seat, number, .. }, what) => {
            d.end(id, EffectEnd::Done);
            rooms::told(d, seat, *number, matches!(what, Happened::Told { heard: true }));
        }
        (Effect::CheckHealth { service }, what) => {
            d.end(id, EffectEnd::Done);
            let healthy = match what {
                Happened::Health { healthy } => Some(*healthy),
                Happened::HealthUnknown => None,
                _ => Some(false),
            };
            health_seen(d, service, healthy)?;
        }
        (Effect::Timer { timer, set_at, .. }, _) => {
            d.end(id, EffectEnd::Due);
            timer_due(d, timer, *set_at)?;
        }
    }
    Ok(Reply::default())
}

/// Whoever reviews it should know, and so should the agent: it would do the same again.
fn put_back(d: &mut Draft, id: &TaskId, what: &[String]) {
    let what = what.join(", ");
    d.comment(id, "system", CommentKind::PutBack, format!("not the agent's to change, and put back: {what}"));
    let note =
        format!("Your change to {what} was put back: it is not yours to change. Do not change it again.");
    d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(note) });
}

/// The effect of a run is over.
pub(super) fn done(d: &mut Draft, effect: &EffectId, task: &TaskId) {
    d.end(effect, EffectEnd::Done);
    if d.world.run_of(task).is_some_and(|run| run.step.as_ref() == Some(effect)) {
        under_way(d, task, None);
    }
}

/// An effect that only we need is tried until it is done; a person is told when that lasts.
pub(super) fn tried(d: &mut Draft, effect: &EffectId, error: &str) {
    let tries = d.world.failures.get(effect).copied().unwrap_or(0) + 1;
    let Some(what) = d.world.effects.get(effect).cloned() else { return };
    let task = what.task().cloned();
    d.emit(EffectFailed { id: effect.clone(), task: task.clone(), error: error.to_owned(), tries });
    if let Some(task) = task.filter(|_| tries == d.world.config.limits.effect_tries) {
        d.comment(
            &task,
            "system",
            CommentKind::Failing,
            format!("{} has failed {tries} times: {error}", what.kind()),
        );
    }
}

/// Nothing of the past is under way any more: what waited for that is asked, and work goes on.
pub(super) fn past_ended(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    if !task.unfinished.is_empty() {
        return Ok(());
    }
    let afterwards: Vec<Effect> = task.afterwards.iter().map(|effect| effect.as_ref().clone()).collect();
    if !afterwards.is_empty() {
        d.emit(AfterwardsTaken { id: id.clone() });
        let mut afterwards = afterwards.into_iter();
        while let Some(effect) = afterwards.next() {
            let alone = matches!(effect, Effect::RemoveTree { .. } | Effect::SaveWork { .. });
            let asked = d.ask(effect);
            if alone {
                d.emit(UnfinishedAdded { id: id.clone(), effect: asked });
                // The rest waits for this one in turn.
                for later in afterwards.by_ref() {
                    d.emit(AfterwardsAdded { id: id.clone(), what: later });
                }
            }
        }
    }
    wake(d, id)
}

/// Asked at once, or when the past has ended.
pub(super) fn ask_after(d: &mut Draft, id: &TaskId, effect: Effect) -> Ruled {
    d.emit(AfterwardsAdded { id: id.clone(), what: effect });
    past_ended(d, id)
}

pub(super) fn tip_moved(d: &mut Draft, id: &TaskId, tip: Option<&SmolStr>) {
    let known = d.world.task(id).and_then(|task| task.place.as_ref()).and_then(|place| place.tip.clone());
    if let Some(tip) = tip.filter(|tip| known.as_ref() != Some(tip)) {
        d.emit(TipMoved { id: id.clone(), tip: tip.clone() });
    }
}
