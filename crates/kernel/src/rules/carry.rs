//! Carrying out: what the rows of the tables ask for becomes effects, timers and events. This is the one place that reads a
//! machine's effects, and it reads every one of them.
//!
//! A row knows its own machine. Which tree, which prompt, and whether anything holds a step up, is the World's to say and is
//! looked up here; whether it is to be done was the row's decision and is not made a second time.

use machines::machine::Caller;
use machines::names::{AgentName, ChannelName, RunId, TaskId, WorkerName};
use machines::suspended::Wrapped;
use machines::task::Status;
use machines::{Wire, architect, run, task, turn, worker};

use super::leases::end_lease;
use super::next::{ask_gate, ask_tree, wake};
use super::outcome::ask_after;
use super::release::{abort_run, drop_question};
use super::rooms;
use super::sessions;
use super::step::{self, audit_call, audit_result};
use crate::checks::channel_of;
use crate::command::{Actor, Refusal};
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, Timer};
use crate::event::{
    ArchitectAsked, ArchitectWork, ChannelSaid, MemberRests, RingChanged, SaidKind, TurnHeld,
};
use crate::session::Session;
use crate::words::CommentKind;
use crate::world::Holder;

/// What the worker's row asks for. `task` is the task that the worker had before the row or has since.
pub(crate) fn carry_out_worker(
    d: &mut Draft,
    name: &WorkerName,
    task: Option<&TaskId>,
    asked: Vec<worker::Effect>,
) -> Ruled {
    for effect in asked {
        // Only a worker with a task asks for anything.
        let Some(id) = task else { continue };
        match effect {
            worker::Effect::MakeTree { task } => ask_tree(d, name, &task)?,
            worker::Effect::NextStep => wake(d, id)?,
            worker::Effect::BackOff { seconds } => {
                let due = d.at() + step::seconds(seconds);
                d.set_timer(Timer::Backoff { worker: name.clone() }, due);
            }
            worker::Effect::RunGate { max_steps_reached } => begin_gate(d, name, id, max_steps_reached)?,
            worker::Effect::GiveBackLease => {
                let holder = Holder::Worker(name.clone());
                if d.task(id)?.work.lease.as_ref().is_some_and(|lease| lease.holder == holder) {
                    end_lease(d, id);
                }
            }
            // An agent's process is its run's: the run is aborted, and gives back what it holds.
            worker::Effect::EndProcess if is_free_for(d, name, id)? => {
                if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
                    abort_run(d, &run, "ended by a person")?;
                }
            }
            worker::Effect::SaveWork if is_free_for(d, name, id)? => {
                ask_after(d, id, Effect::SaveWork { task: id.clone() })?;
            }
            worker::Effect::RemoveTree if is_free_for(d, name, id)? => {
                ask_after(d, id, Effect::RemoveTree { task: id.clone(), start_over: false })?;
            }
            worker::Effect::EndProcess | worker::Effect::SaveWork | worker::Effect::RemoveTree => {}
            worker::Effect::OfferMerge => d.comment(
                id,
                "system",
                CommentKind::Recovery,
                "the tree is gone and the branch is there: it can be approved and merged as it is".to_owned(),
            ),
        }
    }
    Ok(())
}

/// Whether the task's tree is nobody else's to keep: a stuck worker only looked at it, and what is closed was tidied up.
fn is_free_for(d: &Draft, name: &WorkerName, id: &TaskId) -> Result<bool, Refusal> {
    let task = d.task(id)?;
    let elsewhere =
        task.work.lease.as_ref().is_some_and(|lease| lease.holder != Holder::Worker(name.clone()));
    Ok(!elsewhere && !task.is_final())
}

/// The gate looks at a task once: one that waits in the outbox is simply run, and a task that left IN_PROGRESS has none.
fn begin_gate(d: &mut Draft, name: &WorkerName, id: &TaskId, max_steps_reached: bool) -> Ruled {
    let Some(run) = d.world.run_of(id) else { return Ok(()) };
    let (run_id, waits) = (run.id.clone(), run.step.is_some());
    if waits || d.task(id)?.status() != Status::InProgress {
        return Ok(());
    }
    bring_to_gate(d, id, &run_id)?;
    ask_gate(d, name, id, max_steps_reached)
}

/// DONE may stand in a last message whose step was never reported: the run is brought to where it was then.
fn bring_to_gate(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Ruled {
    if d.run(run_id)?.is_suspended() {
        d.clear_timer(&Timer::Suspension { run: run_id.clone() });
        d.move_run(run_id, Wrapped::Restore)?;
    }
    if let Some(worker) = d.world.leaseholder(id).map(|worker| worker.name.clone()) {
        d.clear_timer(&Timer::Backoff { worker });
    }
    match d.run(run_id)?.state() {
        run::State::Starting => d
            .step_run(
                run_id,
                run::Event::Step {
                    turn: 1,
                    tool_calls: Vec::new(),
                    output: None,
                    usage: None,
                    marks: Vec::new(),
                },
            )
            .map(drop),
        run::State::InError => {
            d.step_run(run_id, run::Event::Resume { feedback: None, input: None, max_turns: None }).map(drop)
        }
        _ => Ok(()),
    }
}

/// What the run's row asks for.
pub(crate) fn carry_out_run(d: &mut Draft, id: &RunId, event: &Wrapped<run::Event>, asked: Vec<run::Effect>) {
    for effect in asked {
        match effect {
            run::Effect::AuditTools { .. } => {
                let Wrapped::Inner(run::Event::Step { tool_calls, marks, .. }) = event else { continue };
                for (at, call) in tool_calls.iter().enumerate() {
                    let mark = marks.iter().find(|(marked, _)| *marked == at).map(|(_, mark)| *mark);
                    audit_reported(d, id, call, mark);
                }
            }
            run::Effect::Release => {
                sessions::quit(d, &Session::Run(id.clone()), false);
                drop_question(d, id);
                d.clear_timer(&Timer::Suspension { run: id.clone() });
            }
            // Read from the log by `published`, in its order: what is stored is never told before it is.
            run::Effect::Publish { .. } => {}
        }
    }
}

/// A call of a turn. One that is reported with its result has run already, in this turn or since an earlier one.
fn audit_reported(d: &mut Draft, id: &RunId, call: &run::ToolCall, mark: Option<run::Mark>) {
    if mark != Some(run::Mark::Earlier) {
        step::not_reported(d, id, Some(&call.id));
        audit_call(d, id, call);
    }
    audit_ended(d, id, call);
}

/// How a call ended, if that is reported with it.
pub(super) fn audit_ended(d: &mut Draft, id: &RunId, call: &run::ToolCall) {
    let ok = match call.status {
        run::ToolStatus::Complete => true,
        run::ToolStatus::Error => false,
        run::ToolStatus::Pending | run::ToolStatus::Running => return,
    };
    // A duration is in milliseconds; one that is no number of them is none.
    let millis = call.duration.filter(|millis| *millis >= 0.0).map_or(0, |millis| millis as u64);
    audit_result(d, id, &call.id, &call.tool, ok, call.output.as_deref().unwrap_or_default(), millis);
}

/// What the task's row asks for: each is said on the task.
pub(crate) fn carry_out_task(d: &mut Draft, id: &TaskId, by: &Actor, asked: Vec<task::Effect>) {
    for effect in asked {
        let (kind, text) = match effect {
            task::Effect::PostWorkPlan { bullets } => {
                let lines: Vec<_> = bullets.iter().map(|bullet| format!("- {bullet}")).collect();
                (CommentKind::Plan, lines.join("\n"))
            }
            task::Effect::PostReview { feedback } => (CommentKind::Changes, feedback),
            task::Effect::PostClarification { text } => (CommentKind::Clarification, text),
            task::Effect::PostLoopSummary { review_cycles, feedback } => {
                let text = loop_summary(d, id, by, review_cycles, &feedback);
                d.comment(id, "system", CommentKind::LoopSummary, text);
                continue;
            }
            task::Effect::PostApproval { note } => (CommentKind::Approval, note),
        };
        d.comment(id, &by.to_string(), kind, text);
    }
}

/// All that was asked for since the requirements were clarified last, in its order.
fn loop_summary(d: &Draft, id: &TaskId, by: &Actor, review_cycles: u32, last: &str) -> String {
    let comments = d.world.task(id).map(|task| task.comments.clone()).unwrap_or_default();
    let clarified = comments
        .iter()
        .rposition(|comment| comment.is(CommentKind::Clarification) || comment.is(CommentKind::LoopSummary));
    let since = comments.iter().skip(clarified.map_or(0, |at| at + 1));
    let asked = since.filter(|comment| comment.is(CommentKind::Changes)).map(|comment| comment.text.as_str());
    let mut asked: Vec<&str> = asked.collect();
    if asked.last() != Some(&last) {
        asked.push(last);
    }
    let lines = asked.iter().zip(1..).map(|(text, number)| format!("{number}. {text}")).collect::<Vec<_>>();
    let lines = lines.join("\n");
    format!(
        "Loop Summary: {review_cycles} review cycles did not settle it, and {by} asked for changes again. \
         Asked for:\n{lines}"
    )
}

/// What an agent's place in a channel asks for. `event` is what moved it there.
pub(crate) fn carry_out_turn(
    d: &mut Draft,
    channel: &ChannelName,
    agent: &AgentName,
    event: &turn::Event,
    asked: Vec<turn::Effect>,
) -> Ruled {
    let timer = Timer::Turn { channel: channel.clone(), agent: agent.clone() };
    for effect in asked {
        let (channel, agent, at) = (channel.clone(), agent.clone(), d.at());
        match effect {
            turn::Effect::JoinQueue => {
                d.emit(RingChanged { channel: channel.clone(), agent, joined: true });
                rooms::grant_next(d, &channel)?;
            }
            turn::Effect::LeaveQueue => d.emit(RingChanged { channel, agent, joined: false }),
            turn::Effect::SetCurrent => d.emit(TurnHeld { channel, agent: Some(agent), late: false }),
            turn::Effect::FreeTurn => {
                let late = rooms::is_excused(d, &channel, &agent, event);
                d.emit(TurnHeld { channel: channel.clone(), agent: None, late });
                rooms::turn_freed(d, &channel, &agent, event);
            }
            turn::Effect::StartTimer { due } => d.set_timer(timer.clone(), due),
            turn::Effect::StopTimers => d.clear_timer(&timer),
            turn::Effect::NotifyAgent => rooms::notify(d, &channel, &agent)?,
            turn::Effect::GrantNext => rooms::grant_next(d, &channel)?,
            turn::Effect::Log { message } => {
                let context = match event {
                    turn::Event::Disconnects { context: Some(context) } => format!(": {context}"),
                    _ => String::new(),
                };
                let kind = match message {
                    turn::LogMessage::WithoutTurnComplete => SaidKind::Unended,
                    turn::LogMessage::AgentLost | turn::LogMessage::TimedOut => SaidKind::Log,
                };
                let text = format!("{agent}: {message}{context}");
                d.emit(ChannelSaid { channel, at, to: None, kind, text });
            }
            turn::Effect::Announce { notice } => {
                let config = &channel_of(&d.world, &channel)?.config;
                let wanted = match notice {
                    turn::Notice::TimedOut | turn::Notice::Forfeited => config.announce_timeouts,
                    turn::Notice::Disconnected | turn::Notice::NoAgents => config.announce_disconnects,
                };
                match notice {
                    _ if !wanted => {}
                    turn::Notice::NoAgents => rooms::announce_nobody(d, &channel),
                    turn::Notice::TimedOut | turn::Notice::Forfeited | turn::Notice::Disconnected => {
                        let text = notice.name().replace("[Agent]", agent.as_str());
                        d.emit(ChannelSaid { channel, at, to: None, kind: SaidKind::Announcement, text });
                    }
                }
            }
            turn::Effect::ConsumeMessages => rooms::consume(d, &channel, &agent),
            turn::Effect::Rest => d.emit(MemberRests { channel, agent }),
            turn::Effect::StopSilenceTimer => d.clear_timer(&Timer::Silence { channel }),
            turn::Effect::StopReply => rooms::stop_reply(d, &channel, &agent),
        }
    }
    Ok(())
}

/// What the architect's row asks for.
pub(crate) fn carry_out_architect(
    d: &mut Draft,
    event: &Wrapped<architect::Event>,
    asked: Vec<architect::Effect>,
) -> Ruled {
    // Staying where it is runs nothing.
    if matches!(event, Wrapped::Inner(architect::Event::Stay)) {
        return Ok(());
    }
    // A request that somebody else settles, or that is over in any way, is waited for no longer.
    if !matches!(event, Wrapped::Inner(architect::Event::CannotAnswer)) {
        d.clear_timer(&Timer::Escalation);
    }
    d.clear_timer(&Timer::ArchitectSuspension);
    for effect in asked {
        match effect {
            architect::Effect::AskHuman { request, seconds } => {
                let known = d.world.config.architect.as_ref();
                let seconds = known.map_or(seconds, |architect| architect.escalation_seconds);
                let due = d.at() + step::seconds(seconds);
                d.set_timer(Timer::Escalation, due);
                d.emit(ArchitectAsked { what: ArchitectWork::Person, request: Some(request) });
            }
            architect::Effect::PrepareWorkspace => {
                d.emit(ArchitectAsked { what: ArchitectWork::Workspace, request: None });
                super::architect::prepare(d);
            }
            architect::Effect::HandleRequest { request } => {
                d.emit(ArchitectAsked { what: ArchitectWork::Request, request: Some(request) });
                super::architect::handle(d)?;
            }
            architect::Effect::SendAnswer { request } => {
                d.emit(ArchitectAsked { what: ArchitectWork::Answer, request: Some(request) });
            }
            architect::Effect::LoadStories { request } => {
                d.emit(ArchitectAsked { what: ArchitectWork::Stories, request: Some(request) });
            }
            architect::Effect::KeepRequest => {
                d.move_architect(event, Caller::SYSTEM)?;
            }
        }
    }
    Ok(())
}
