//! What came of an effect, and which rule takes it.

use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::Rule;
use super::landing::{
    Conflict, Gate, RedMerge, gate_conflicts, gate_found_empty, gate_found_green, gate_found_red, held_up,
    landed, landing_conflicts, landing_written, merge_red, offered, remote_in_the_way, test_merge,
};
use super::main_tests::main_tested;
use super::next::wake;
use super::service::{health_seen, outage, timer_due};
use super::sessions::{self, done, tip_moved};
use super::step::{self, tree_failed, tree_ready, tree_unmet};
use super::tickets::ticket_says;
use super::{architect, rooms, seats};
use crate::command::{Outcome, Refusal, Reply, StepFailure, Usage};
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, EffectOutcome, StepEnd, StepMessage, StepStart, StepTree, outcomes};
use crate::event::{
    AfterwardsAdded, AfterwardsTaken, EffectFailed, LandingEnded, MainTested, NoteLeft, PlaceTaken,
    TreeStands, UnfinishedAdded,
};
use crate::happened::{
    CheckoutInTheWay, Failed, MainGreen, MainRed, MergeConflict, MergeGreen, MergeRed, PullRequestOpen,
    RemoteInTheWay, StepFailed, TreeFailed, TreeRemoved, TreeUnmet, WorkSaved,
};
use crate::words::{CommentKind, EffectEnd, LandingEnd};
use crate::world::Landed;

pub(crate) fn outcome(d: &mut Draft, outcome: &Outcome) -> Result<Reply, Refusal> {
    let Some(effect) = d.world.effects.get(&outcome.effect).cloned() else {
        return Ok(Reply { superseded: true, ..Reply::default() });
    };
    let id = &outcome.effect;
    match EffectOutcome::new(&effect, outcome.what.clone()) {
        EffectOutcome::PrepareTree { of: StepTree::Task { task, worker, .. }, outcome } => {
            done(d, id, task);
            match outcome {
                outcomes::PrepareTree::TreeReady(ready) => tree_ready(d, worker, task, &ready.tip)?,
                outcomes::PrepareTree::TreeUnmet(unmet) => tree_unmet(d, task, &unmet.error)?,
                outcomes::PrepareTree::TreeFailed(TreeFailed { error })
                | outcomes::PrepareTree::Failed(Failed { error }) => tree_failed(d, worker, &error)?,
            }
        }
        EffectOutcome::PrepareTree { of: StepTree::Seat { .. }, outcome } => {
            d.end(id, EffectEnd::Done);
            match outcome {
                outcomes::PrepareTree::TreeReady(_) => architect::workspace(d, None)?,
                outcomes::PrepareTree::TreeUnmet(TreeUnmet { error })
                | outcomes::PrepareTree::TreeFailed(TreeFailed { error })
                | outcomes::PrepareTree::Failed(Failed { error }) => architect::workspace(d, Some(error))?,
            }
        }
        EffectOutcome::StartStep { of, outcome, .. } => step_outcome(d, id, of, outcome)?,
        EffectOutcome::EndStep { of, outcome, .. } => match outcome {
            outcomes::EndStep::StepEnded(ended) => {
                d.end(id, EffectEnd::Done);
                if let Some(session) = of.session() {
                    sessions::charge(d, &session, 0, ended.usage);
                }
                match of {
                    StepEnd::Task { task, run } => {
                        tip_moved(d, task, ended.tip.as_ref().filter(|_| run.is_some()));
                        past_ended(d, task)?;
                    }
                    StepEnd::Seat { seat, .. } => seats::reply_ended(d, seat)?,
                }
            }
            outcomes::EndStep::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::AnswerCall { outcome, .. } => match outcome {
            outcomes::AnswerCall::CallAnswered(_) => d.end(id, EffectEnd::Done),
            outcomes::AnswerCall::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::TellAgent { of, outcome, .. } => {
            d.end(id, EffectEnd::Done);
            let heard = match outcome {
                outcomes::TellAgent::Told(told) => told.heard,
                outcomes::TellAgent::Failed(_) => false,
            };
            match of {
                StepMessage::Task { task, text, .. } => {
                    if !heard && !d.task(task)?.is_final() {
                        d.emit(NoteLeft { id: task.clone(), note: SmolStr::new(text) });
                    }
                }
                StepMessage::Seat { seat, number } => rooms::told(d, seat, *number, heard),
            }
        }
        EffectOutcome::RunGate { task, worker, max_steps_reached, outcome } => {
            let gate = Gate { id: task, worker: worker.as_ref(), max_steps_reached: *max_steps_reached };
            match outcome {
                outcomes::RunGate::GateGreen(green) => gate_found_green(d, id, &gate, &green)?,
                outcomes::RunGate::GateRed(red) => gate_found_red(d, id, &gate, &red)?,
                outcomes::RunGate::GateConflict(conflict) => gate_conflicts(d, id, &gate, &conflict)?,
                outcomes::RunGate::GateEmpty(empty) => gate_found_empty(d, id, &gate, &empty)?,
                outcomes::RunGate::PutBack(dropped) => put_back(d, task, &dropped.what),
                // Nothing is known about the work: it is looked at again, and costs the agent nothing.
                outcomes::RunGate::Failed(failed) => tried(d, id, &failed.error),
            }
        }
        EffectOutcome::SaveWork { task, outcome } => match outcome {
            outcomes::SaveWork::WorkSaved(WorkSaved { reference }) => {
                d.end(id, EffectEnd::Done);
                d.comment(task, "system", CommentKind::Saved, format!("work saved as {reference}"));
                past_ended(d, task)?;
            }
            outcomes::SaveWork::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::RemoveTree { task, start_over, outcome } => match outcome {
            outcomes::RemoveTree::TreeRemoved(TreeRemoved { reference }) => {
                d.end(id, EffectEnd::Done);
                tree_removed(d, task, *start_over, reference.as_deref())?;
                past_ended(d, task)?;
            }
            outcomes::RemoveTree::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::TestMerge { task, tip, outcome } => merge_tested(d, id, task, tip, outcome)?,
        EffectOutcome::TestMain { outcome, .. } => match outcome {
            outcomes::TestMain::MainGreen(MainGreen { of, main, command, ran }) => {
                d.end(id, EffectEnd::Done);
                main_tested(d, MainTested { of, main, at: d.at(), command, red: None, ran })?;
            }
            outcomes::TestMain::MainRed(MainRed { of, main, command, output }) => {
                d.end(id, EffectEnd::Done);
                let (command, red) = (Some(command), Some(output));
                main_tested(d, MainTested { of, main, at: d.at(), command, red, ran: true })?;
            }
            // Nothing was learned: it is tried again.
            outcomes::TestMain::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::MoveMain { task, tip, merge, old, outcome } => match outcome {
            outcomes::MoveMain::MainMoved(_) => {
                d.end(id, EffectEnd::Done);
                landed(d, task, Landed { tip: tip.clone(), merge: merge.clone(), old_main: old.clone() })?;
            }
            outcomes::MoveMain::MainMovedByOther(_) => {
                d.end(id, EffectEnd::Done);
                d.rule(Rule::LandingRepeated);
                d.emit(LandingEnded { id: task.clone(), why: LandingEnd::MainMovedByOther });
                test_merge(d, task)?;
            }
            outcomes::MoveMain::CheckoutInTheWay(CheckoutInTheWay { why, command }) => {
                d.end(id, EffectEnd::Done);
                held_up(d, task, &why, &command)?;
            }
            // It is written down: whether main was moved is known only to git, so it is asked again.
            outcomes::MoveMain::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::WriteTicket { ticket, status, outcome, .. } => match outcome {
            outcomes::WriteTicket::TicketWritten(_) => {
                d.end(id, EffectEnd::Done);
                ticket_says(d, ticket, *status);
            }
            outcomes::WriteTicket::TicketLeft(_) => d.end(id, EffectEnd::Done),
            outcomes::WriteTicket::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::DeleteBranch { outcome, .. } => match outcome {
            outcomes::DeleteBranch::BranchDeleted(_) => d.end(id, EffectEnd::Done),
            outcomes::DeleteBranch::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::RunLandedHook { outcome, .. } => match outcome {
            outcomes::RunLandedHook::HookRan(_) => d.end(id, EffectEnd::Done),
            outcomes::RunLandedHook::Failed(failed) => tried(d, id, &failed.error),
        },
        EffectOutcome::CheckHealth { service, outcome } => {
            d.end(id, EffectEnd::Done);
            let healthy = match outcome {
                outcomes::CheckHealth::Health(health) => Some(health.healthy),
                outcomes::CheckHealth::HealthUnknown(_) => None,
                outcomes::CheckHealth::Failed(_) => Some(false),
            };
            health_seen(d, service, healthy)?;
        }
        EffectOutcome::Timer { timer, set_at, outcome, .. } => match outcome {
            outcomes::Timer::TimerDue(_) | outcomes::Timer::Failed(_) => {
                d.end(id, EffectEnd::Due);
                timer_due(d, timer, *set_at)?;
            }
        },
    }
    Ok(Reply::default())
}

/// What came of a step, or how far it has got: of an agent at work on a task, or of one that speaks.
fn step_outcome(d: &mut Draft, id: &EffectId, of: &StepStart, outcome: outcomes::StartStep) -> Ruled {
    let session = of.session();
    match outcome {
        outcomes::StartStep::Turn(turn) => {
            sessions::used(d, &session);
            let first_report = sessions::charge_turn(d, &session, turn.turn, turn.usage);
            match of {
                StepStart::Task { task, run, .. } => step::turn_taken(d, task, run, &turn, first_report),
                StepStart::Seat { seat, .. } => seats::turn_taken(d, id, seat, &turn),
            }
        }
        outcomes::StartStep::ToolResult(result) => match of {
            StepStart::Task { task, run, .. } => step::tool_result(d, task, run, &result),
            StepStart::Seat { .. } => Ok(()),
        },
        outcomes::StartStep::CallAsked(asked) => match of {
            StepStart::Task { task, run, .. } => step::call_asked(d, task, run, id, asked),
            StepStart::Seat { seat, .. } => {
                seats::call_asked(d, id, seat, &asked);
                Ok(())
            }
        },
        outcomes::StartStep::StepFinished(finished) => {
            sessions::used(d, &session);
            match of {
                StepStart::Task { task, worker, run, .. } => {
                    step::step_over(d, id, task, worker, run, &finished)
                }
                StepStart::Seat { seat, .. } => seats::reply_finished(d, id, seat, &finished),
            }
        }
        outcomes::StartStep::Outage(away) => match of {
            StepStart::Task { task, run, .. } => {
                sessions::finished(d, &session, id, away.usage);
                outage(d, task, run, &away)
            }
            StepStart::Seat { seat, .. } => seats::outage(d, id, seat, &away),
        },
        outcomes::StartStep::StepFailed(failed) => step_failed(d, id, of, &failed),
        outcomes::StartStep::Failed(Failed { error }) => {
            let (why, usage) = (StepFailure::Failed, Usage::default());
            step_failed(d, id, of, &StepFailed { error, why, usage })
        }
    }
}

fn step_failed(d: &mut Draft, id: &EffectId, of: &StepStart, failed: &StepFailed) -> Ruled {
    match of {
        StepStart::Task { task, worker, run, .. } => {
            sessions::finished(d, &of.session(), id, failed.usage);
            step::step_ended_badly(d, task, worker, run, &failed.error, failed.why)
        }
        StepStart::Seat { seat, .. } => seats::reply_failed(d, id, seat, failed),
    }
}

/// A merge was tested, or could not be.
fn merge_tested(
    d: &mut Draft,
    effect: &EffectId,
    task: &TaskId,
    tip: &SmolStr,
    outcome: outcomes::TestMerge,
) -> Ruled {
    if !matches!(outcome, outcomes::TestMerge::Failed(_)) {
        d.end(effect, EffectEnd::Done);
    }
    match outcome {
        outcomes::TestMerge::MergeGreen(MergeGreen { merge, old, tickets }) => {
            landing_written(d, task, tip, &merge, &old, &tickets)
        }
        outcomes::TestMerge::MergeConflict(MergeConflict { files, main, dropped, solved }) => {
            landing_conflicts(d, task, &Conflict { tip, files: &files, main: &main }, &dropped, solved)
        }
        outcomes::TestMerge::MergeRed(MergeRed { output, by, main, solved }) => {
            merge_red(d, task, &RedMerge { tip, main: &main, output: &output, by, solved })
        }
        outcomes::TestMerge::CheckoutInTheWay(CheckoutInTheWay { why, command }) => {
            held_up(d, task, &why, &command)
        }
        outcomes::TestMerge::PullRequestOpen(PullRequestOpen { url, branch }) => {
            offered(d, task, url, &branch)
        }
        outcomes::TestMerge::RemoteInTheWay(RemoteInTheWay { why }) => remote_in_the_way(d, task, &why),
        // Nothing is known about the merge: it is tested again.
        outcomes::TestMerge::Failed(failed) => {
            tried(d, effect, &failed.error);
            Ok(())
        }
    }
}

fn tree_removed(d: &mut Draft, task: &TaskId, start_over: bool, reference: Option<&str>) -> Ruled {
    d.emit(TreeStands { id: task.clone(), stands: false });
    if start_over {
        d.emit(PlaceTaken { id: task.clone() });
    }
    let Some(reference) = reference else { return Ok(()) };
    let saved = format!("tree removed; its content is saved as {reference}");
    d.comment(task, "system", CommentKind::Saved, saved);
    // Whoever works on it next finds a fresh tree, and would look for what is not in it.
    if !d.task(task)?.is_final() {
        let note = format!(
            "The tree was removed and made again. What was not committed in it is saved as \
             {reference}: `git diff HEAD {reference}` shows it, `git checkout {reference} -- .` brings it back."
        );
        d.emit(NoteLeft { id: task.clone(), note: SmolStr::new(note) });
    }
    Ok(())
}

/// Whoever reviews it should know, and so should the agent: it would do the same again.
fn put_back(d: &mut Draft, id: &TaskId, what: &[String]) {
    let what = what.join(", ");
    d.comment(id, "system", CommentKind::PutBack, format!("not the agent's to change, and put back: {what}"));
    let note =
        format!("Your change to {what} was put back: it is not yours to change. Do not change it again.");
    d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(note) });
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
    if !task.work.unfinished.is_empty() {
        return Ok(());
    }
    let afterwards: Vec<Effect> = task.work.afterwards.iter().map(|effect| effect.as_ref().clone()).collect();
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
