//! One way to pay for a session of an agent, to take it up again, to answer its calls and to end it, whether the agent works on
//! a task or speaks in a seat.
//!
//! The events of the two have their own names in the log; which of them is emitted is decided here and nowhere else.

use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::Rule;
use crate::budget;
use crate::command::Usage;
use crate::draft::{Draft, holder_worker};
use crate::effect::{Effect, StepCall, StepEnd, StepMessage};
use crate::event::{
    Charged, ReplyUnderWay, ReplyUnfinished, Reserved, SeatCharged, SeatReserved, SeatSessionRenewed,
    SeatSessionUsed, SeatUnreserved, SessionRenewed, SessionUsed, StepRetried, StepUnderWay, TipMoved,
    UnfinishedAdded, Unreserved,
};
use crate::session::Session;
use crate::words::EffectEnd;

/// The task whose run it is.
fn task_of(d: &Draft, of: &Session) -> Option<TaskId> {
    match of {
        Session::Run(run) => d.world.run(run).map(|run| run.task.clone()),
        Session::Seat(_) => None,
    }
}

/// Adds what was used to whoever pays for it. Of an unknown price it is said what was set aside for it: that is no cost, and
/// budgets hold to it as long as nothing better is known.
pub(super) fn charge(d: &mut Draft, of: &Session, turn: u32, usage: Usage) {
    if usage == Usage::default() && turn == 0 {
        return;
    }
    if usage.cost.is_none() {
        d.rule(Rule::PriceUnknown);
    }
    let Some(known) = d.world.session(of) else { return };
    let set_aside = if known.reserved > 0 { known.reserved } else { d.world.config.budget.step };
    let (agent, model, day) = (known.agent.clone(), known.model.cloned(), d.day());
    let (cost, priced) = (usage.cost.unwrap_or(set_aside), usage.cost.is_some());
    let Usage { input_tokens, output_tokens, .. } = usage;
    match of {
        Session::Run(id) => {
            let Some(run) = d.world.run(id) else { return };
            let (task, worker) = (run.task.clone(), holder_worker(&run.holder).cloned());
            let id = id.clone();
            d.emit(Charged {
                id,
                task,
                agent,
                worker,
                day,
                turn,
                cost,
                priced,
                input_tokens,
                output_tokens,
                model,
            });
        }
        Session::Seat(seat) => {
            let seat = seat.clone();
            d.emit(SeatCharged { seat, agent, day, turn, cost, priced, input_tokens, output_tokens, model });
        }
    }
}

/// The same for one turn. A report that comes twice is counted once: whether this is the first.
pub(super) fn charge_turn(d: &mut Draft, of: &Session, turn: u32, usage: Usage) -> bool {
    let first = d.world.session(of).is_some_and(|known| turn > known.turns_charged);
    if first {
        charge(d, of, turn, usage);
    }
    first
}

/// Sets the share aside of what begins next. The claim of a run has seen that there is room; in a seat nothing is set aside
/// where there is no budget.
pub(super) fn reserve(d: &mut Draft, of: &Session) {
    let Some(known) = d.world.session(of).filter(|known| known.reserved == 0) else { return };
    let (day, amount) = (d.day(), budget::share(&d.world, known.agent));
    match of {
        Session::Run(id) => d.emit(Reserved { id: id.clone(), day, amount }),
        Session::Seat(seat) if budget::are_there(&d.world) => {
            d.emit(SeatReserved { seat: seat.clone(), day, amount });
        }
        Session::Seat(_) => {}
    }
}

pub(super) fn unreserve(d: &mut Draft, of: &Session) {
    if d.world.session(of).is_none_or(|known| known.reserved == 0) {
        return;
    }
    match of {
        Session::Run(id) => d.emit(Unreserved { id: id.clone() }),
        Session::Seat(seat) => d.emit(SeatUnreserved { seat: seat.clone() }),
    }
}

/// Something was begun in the session.
pub(super) fn used(d: &mut Draft, of: &Session) {
    if d.world.session(of).is_none_or(|known| known.used || known.name.is_none()) {
        return;
    }
    match of {
        Session::Run(_) => {
            if let Some(id) = task_of(d, of) {
                d.emit(SessionUsed { id });
            }
        }
        Session::Seat(seat) => d.emit(SeatSessionUsed { seat: seat.clone() }),
    }
}

/// A fresh session, from what begins next on. `retried`: that is a second try.
pub(super) fn renew(d: &mut Draft, of: &Session, retried: bool) {
    if d.world.session(of).is_none_or(|known| known.name.is_none()) {
        return;
    }
    let session = d.new_session();
    match of {
        Session::Run(run) => {
            if let Some(id) = task_of(d, of) {
                d.emit(SessionRenewed { id, session });
            }
            if retried {
                d.emit(StepRetried { id: run.clone(), retried });
            }
        }
        Session::Seat(seat) => d.emit(SeatSessionRenewed { seat: seat.clone(), session, retried }),
    }
}

/// The session that something begins in now, and whether it is taken up again. What cannot be taken up again is left: a program
/// refuses to begin a session that is there, or takes it up.
pub(super) fn for_next(d: &mut Draft, of: &Session) -> Option<(SmolStr, bool)> {
    let known = d.world.session(of)?;
    let resumable = d.world.config.agent(known.agent).resumable;
    let (resume, leave, retried) = (known.used && resumable, known.used && !resumable, known.retried);
    if leave {
        renew(d, of, retried && matches!(of, Session::Seat(_)));
    }
    Some((d.world.session(of)?.name?.clone(), resume))
}

/// What is under way in the session now.
pub(super) fn under_way(d: &mut Draft, of: &Session, effect: Option<EffectId>) {
    match of {
        Session::Run(id) => d.emit(StepUnderWay { id: id.clone(), effect }),
        Session::Seat(seat) => d.emit(ReplyUnderWay { seat: seat.clone(), effect }),
    }
}

/// What was under way has come to its own end, and used this.
pub(super) fn finished(d: &mut Draft, of: &Session, effect: &EffectId, usage: Usage) {
    d.end(effect, EffectEnd::Done);
    charge(d, of, 0, usage);
    if d.world.session(of).is_some_and(|known| known.under_way == Some(effect)) {
        under_way(d, of, None);
    }
}

/// An effect of a task is over, which its run has waited for if it has one.
pub(super) fn done(d: &mut Draft, effect: &EffectId, task: &TaskId) {
    match d.world.run_of(task).map(|run| Session::Run(run.id.clone())) {
        Some(of) => finished(d, &of, effect, Usage::default()),
        None => d.end(effect, EffectEnd::Done),
    }
}

/// Ends what is under way in the session. Nothing begins in it again before that is known to be gone. `finish`: the agent itself
/// has ended its turn by a call, so that its program may come to its own end first.
pub(super) fn quit(d: &mut Draft, of: &Session, finish: bool) {
    let Some(step) = d.world.session(of).and_then(|known| known.under_way.cloned()) else {
        return unreserve(d, of);
    };
    d.end(&step, EffectEnd::Superseded);
    under_way(d, of, None);
    unreserve(d, of);
    match of {
        Session::Run(run) => {
            if let Some(task) = task_of(d, of) {
                end_step(d, StepEnd::Task { task, run: Some(run.clone()) }, step);
            }
        }
        Session::Seat(seat) => {
            end_step(d, StepEnd::Seat { seat: seat.clone(), finish }, step);
            // Nobody knows whether its program has begun the session: it can neither be begun again nor resumed.
            if d.world.session(of).is_some_and(|known| !known.used) {
                renew(d, of, false);
            }
        }
    }
}

/// Asks for the end of what is not wanted any more. Whoever it was of waits until it is gone.
pub(super) fn end_step(d: &mut Draft, of: StepEnd, step: EffectId) {
    let effect = d.ask(Effect::EndStep { of: of.clone(), step });
    match of {
        StepEnd::Task { task, .. } => d.emit(UnfinishedAdded { id: task, effect }),
        StepEnd::Seat { seat, .. } => d.emit(ReplyUnfinished { seat, effect }),
    }
}

/// Answers a call that waits.
pub(super) fn answer(d: &mut Draft, of: &Session, step: &EffectId, call: &SmolStr, allow: bool, note: &str) {
    let of = match (of, task_of(d, of)) {
        (Session::Run(run), Some(task)) => StepCall::Task { task, run: run.clone() },
        (Session::Seat(seat), _) => StepCall::Seat { seat: seat.clone() },
        (Session::Run(_), None) => return,
    };
    d.ask(Effect::AnswerCall { of, step: step.clone(), call: call.clone(), allow, note: note.to_owned() });
}

/// Says something to an agent in its step.
pub(super) fn tell(d: &mut Draft, message: StepMessage, step: EffectId) {
    d.ask(Effect::TellAgent { of: message, step });
}

/// What the task's branch has now.
pub(super) fn tip_moved(d: &mut Draft, id: &TaskId, tip: Option<&SmolStr>) {
    let known =
        d.world.task(id).and_then(|task| task.work.place.as_ref()).and_then(|place| place.tip.clone());
    if let Some(tip) = tip.filter(|tip| known.as_ref() != Some(tip)) {
        d.emit(TipMoved { id: id.clone(), tip: tip.clone() });
    }
}
