//! Agents that Adjutant hosts outside of tasks: how they are begun, paid for, ended, and what came of it.

use machines::names::{EffectId, RequestId};
use smol_str::SmolStr;

use super::Rule;
use super::service::{begins, probe_succeeded, service_away};
use super::{architect, rooms};
use crate::budget;
use crate::command::{StepFailure, Usage};
use crate::config::{Colour, Role};
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, Say, outcomes};
use crate::event::{
    ReplyUnderWay, ReplyUnfinished, SeatCharged, SeatReserved, SeatSessionRenewed, SeatSessionUsed,
    SeatTaken, SeatUnreserved,
};
use crate::happened::{CallAsked, Failed, Outage, StepFailed, StepFinished, Turn};
use crate::probe::Probe;
use crate::reading;
use crate::rooms::Seat;
use crate::words::{EffectEnd, StepEnding};
use crate::world::Request;

/// Whoever speaks outside of a task looks and changes nothing, where its settings do not name its tools.
const READING: &[&str] = &["Read", "Grep", "Glob", "LS", "NotebookRead", "TodoWrite"];
/// The tool that runs a command line, whoever's program it is.
const SHELL: &str = "Bash";
/// Our own tools are for everybody: each checks by itself who calls it.
const OUR_TOOLS: &str = "mcp__adjutant__";

/// What a reply came to.
pub(super) enum Said<'a> {
    /// Its last message.
    Text(&'a str),
    /// It used the turns or the money that it had: what the agent itself said last, and what it ran out of.
    Spent(&'a str, &'static str),
    /// The fleet stopped in the middle of it.
    Stopped,
    Crashed(&'a str),
    /// A service is away; what it says of when it is back was written down.
    Away(&'a Outage),
}

/// A reply that is over, or as good as over: what it was told, and what it has decided.
pub(super) struct Spoken {
    pub reply: EffectId,
    /// The agent that it was started with, whoever the settings name by now.
    pub agent: Option<machines::names::AgentName>,
    prompt: Option<Say>,
    pub decided: Option<RequestId>,
}

impl Spoken {
    fn of(d: &Draft, reply: &EffectId, seat: &Seat) -> Spoken {
        let (agent, prompt) = match d.world.effects.get(reply).map(AsRef::as_ref) {
            Some(Effect::StartReply { agent, prompt, .. }) => (Some(agent.clone()), Some(prompt.clone())),
            _ => (None, None),
        };
        let decided = d.world.seated(seat).and_then(|seated| seated.decided.clone());
        Spoken { reply: reply.clone(), agent, prompt, decided }
    }

    /// Whether it was told of this request, and of the commit that it is about.
    pub fn shows(&self, asked: &Request) -> bool {
        matches!(&self.prompt, Some(Say::Request { request, tip }) if *request == asked.id && *tip == asked.tip)
    }
}

/// The agent that speaks in a seat, by its settings.
fn agent_of(seat: &Seat, d: &Draft) -> Option<machines::names::AgentName> {
    match seat {
        Seat::Room { agent, .. } => Some(agent.clone()),
        Seat::Architect => d.world.seated(seat).map(|seated| seated.agent.clone()),
    }
}

/// Begins a reply, if the seat is free. The seat is taken where nobody has it.
pub(super) fn begin(d: &mut Draft, seat: &Seat, agent: &machines::names::AgentName, prompt: Say) {
    if d.world.seated(seat).is_none_or(|seated| seated.agent != *agent) {
        let session = d.new_session();
        d.emit(SeatTaken { seat: seat.clone(), agent: agent.clone(), session });
    }
    let Some(seated) = d.world.seated(seat).filter(|seated| seated.is_free()).cloned() else { return };
    let known = d.world.config.agent(agent);
    let resume = seated.session_used && known.resumable;
    let mut session = seated.session;
    if seated.session_used && !known.resumable {
        session = d.new_session();
        d.emit(SeatSessionRenewed { seat: seat.clone(), session: session.clone(), retried: seated.retried });
    }
    if budget::are_there(&d.world) {
        let amount = budget::share(&d.world, agent);
        d.emit(SeatReserved { seat: seat.clone(), day: d.day(), amount });
    }
    let turns_left = turns_of(d, agent);
    let (seat, agent) = (seat.clone(), agent.clone());
    begins(d, &agent, Probe::Seat(seat.clone()));
    let effect = d.ask(Effect::StartReply { seat: seat.clone(), agent, session, resume, prompt, turns_left });
    d.emit(ReplyUnderWay { seat, effect: Some(effect) });
}

/// How many turns of its model an agent may use for one reply.
fn turns_of(d: &Draft, agent: &machines::names::AgentName) -> u32 {
    let known = d.world.config.agent(agent);
    known.max_turns.or(d.world.config.max_turns).unwrap_or(known.kind.turn_limit())
}

/// How many turns the reply was begun with.
fn turns_had(d: &Draft, id: &EffectId) -> u32 {
    match d.world.effects.get(id).map(AsRef::as_ref) {
        Some(Effect::StartReply { turns_left, .. }) => *turns_left,
        _ => u32::MAX,
    }
}

/// Ends what is being said. Nothing begins in the seat again before it is known to be gone.
pub(super) fn quit(d: &mut Draft, seat: &Seat) {
    end_reply(d, seat, false);
}

/// The same of an agent that ended its turn by a call: the call is answered, and its program comes to its own end.
pub(super) fn let_finish(d: &mut Draft, seat: &Seat) {
    end_reply(d, seat, true);
}

fn end_reply(d: &mut Draft, seat: &Seat, finish: bool) {
    let Some(reply) = d.world.seated(seat).and_then(|seated| seated.reply.clone()) else { return };
    d.end(&reply, EffectEnd::Superseded);
    over(d, seat);
    let end = d.ask(Effect::EndReply { seat: seat.clone(), reply, finish });
    d.emit(ReplyUnfinished { seat: seat.clone(), effect: end });
    // Nobody knows whether its program has begun the session: it can neither be begun again nor resumed.
    if d.world.seated(seat).is_some_and(|seated| !seated.session_used) {
        renew(d, seat, false);
    }
}

/// Nothing is being said any more, and what was set aside for it is given back.
fn over(d: &mut Draft, seat: &Seat) {
    d.emit(ReplyUnderWay { seat: seat.clone(), effect: None });
    if d.world.seated(seat).is_some_and(|seated| seated.reserved > 0) {
        d.emit(SeatUnreserved { seat: seat.clone() });
    }
}

/// A fresh session, from the next reply on.
pub(super) fn renew(d: &mut Draft, seat: &Seat, retried: bool) {
    if d.world.seated(seat).is_some() {
        let session = d.new_session();
        d.emit(SeatSessionRenewed { seat: seat.clone(), session, retried });
    }
}

fn charge(d: &mut Draft, seat: &Seat, turn: u32, usage: Usage) {
    if usage == Usage::default() && turn == 0 {
        return;
    }
    if usage.cost.is_none() {
        d.rule(Rule::PriceUnknown);
    }
    let Some(seated) = d.world.seated(seat) else { return };
    let set_aside = if seated.reserved > 0 { seated.reserved } else { d.world.config.budget.step };
    let agent = seated.agent.clone();
    d.emit(SeatCharged {
        seat: seat.clone(),
        day: d.day(),
        turn,
        cost: usage.cost.unwrap_or(set_aside),
        priced: usage.cost.is_some(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        model: d.world.config.agents.get(&agent).and_then(|agent| agent.model.clone()),
        agent,
    });
}

/// What came of a reply, or how far it has got.
pub(super) fn reply_outcome(
    d: &mut Draft,
    id: &EffectId,
    seat: &Seat,
    outcome: outcomes::StartReply,
) -> Ruled {
    let spoken = Spoken::of(d, id, seat);
    let came_to = |d: &mut Draft, said: &Said| match seat {
        Seat::Room { channel, agent } => rooms::reply_over(d, channel, agent, said),
        Seat::Architect => architect::reply_over(d, &spoken, said),
    };
    match outcome {
        outcomes::StartReply::Turn(Turn { turn, usage, output, .. }) => {
            used(d, seat);
            probe_succeeded(d, &Probe::Seat(seat.clone()))?;
            // A report that comes twice is counted once.
            if d.world.seated(seat).is_some_and(|seated| turn > seated.turns_charged) {
                charge(d, seat, turn, usage);
            }
            // Some programs end by themselves at the limit; the others are ended.
            if turn <= turns_had(d, id) {
                return Ok(());
            }
            quit(d, seat);
            came_to(d, &Said::Spent(output.as_deref().unwrap_or_default(), "turns"))
        }
        outcomes::StartReply::ToolResult(_) => Ok(()),
        outcomes::StartReply::CallAsked(CallAsked { call, tool, argument, .. }) => {
            used(d, seat);
            let refused = refusal_of(d, seat, &tool, &argument);
            let (allow, note) = (refused.is_none(), refused.unwrap_or_default());
            d.ask(Effect::AnswerInReply { seat: seat.clone(), reply: id.clone(), call, allow, note });
            Ok(())
        }
        outcomes::StartReply::StepFinished(StepFinished { ending, output, usage, .. }) => {
            used(d, seat);
            let said = match ending {
                StepEnding::CutOff => Said::Stopped,
                StepEnding::Done | StepEnding::NotDone => Said::Text(&output),
                StepEnding::OutOfTurns => Said::Spent(&output, "turns"),
                StepEnding::OutOfMoney => Said::Spent(&output, "money"),
            };
            probe_succeeded(d, &Probe::Seat(seat.clone()))?;
            finished(d, id, seat, usage);
            came_to(d, &said)
        }
        outcomes::StartReply::StepFailed(StepFailed { error, why, usage }) => {
            let seated = d.world.seated(seat);
            let again = seated.is_some_and(|seated| !seated.retried) && why == StepFailure::Session;
            finished(d, id, seat, usage);
            if again {
                d.rule(Rule::ReplyRetried);
                renew(d, seat, true);
                return came_to(d, &Said::Stopped);
            }
            came_to(d, &Said::Crashed(&error))
        }
        outcomes::StartReply::Outage(gone) => {
            finished(d, id, seat, gone.usage);
            service_away(d, &gone);
            came_to(d, &Said::Away(&gone))
        }
        outcomes::StartReply::Failed(Failed { error }) => {
            finished(d, id, seat, Usage::default());
            came_to(d, &Said::Crashed(&error))
        }
    }
}

fn used(d: &mut Draft, seat: &Seat) {
    if d.world.seated(seat).is_some_and(|seated| !seated.session_used) {
        d.emit(SeatSessionUsed { seat: seat.clone() });
    }
}

fn finished(d: &mut Draft, id: &EffectId, seat: &Seat, usage: Usage) {
    d.end(id, EffectEnd::Done);
    charge(d, seat, 0, usage);
    over(d, seat);
}

/// Why a call is refused, where it is: nobody waits for a person in the middle of a conversation.
fn refusal_of(d: &Draft, seat: &Seat, tool: &SmolStr, argument: &str) -> Option<String> {
    if tool.starts_with(OUR_TOOLS) {
        return None;
    }
    let agent = agent_of(seat, d)?;
    let known = d.world.config.agent(&agent);
    let allowed = match &known.allowed_tools {
        Some(tools) => tools.contains(tool),
        None => READING.contains(&tool.as_str()) || tool == SHELL && reading::only_reads(argument),
    };
    if !allowed && tool == SHELL && known.allowed_tools.is_none() {
        return Some(
            "commands that could change something are not for conversations; to look, use cat, sed -n '1,80p', rg, grep, \
             find, ls, git log, git show or git diff, alone or joined by |, && and ;, without variables or files to write to"
                .to_owned(),
        );
    }
    if !allowed {
        return Some(format!("`{tool}` is not for conversations: look, and change nothing"));
    }
    let asks = match d.world.config.policy.colour(tool, argument) {
        Colour::Red => true,
        Colour::Yellow => known.role == Role::Intern,
        Colour::Green => false,
    };
    asks.then(|| {
        "the policy would ask a person, and nobody is asked in the middle of a conversation".to_owned()
    })
}

/// A reply that was told to end is gone.
pub(super) fn reply_ended(d: &mut Draft, id: &EffectId, seat: &Seat, usage: Usage) -> Ruled {
    charge(d, seat, 0, usage);
    d.end(id, EffectEnd::Done);
    match seat {
        Seat::Room { channel, agent } => rooms::go_on(d, channel, agent),
        Seat::Architect => Ok(()),
    }
}
