//! Agents that Adjutant hosts outside of tasks: how they are begun, paid for, ended, and what came of it.

use machines::names::{EffectId, RequestId};
use smol_str::SmolStr;

use super::Rule;
use super::service::{begins, probe_succeeded, service_away};
use super::sessions;
use super::{architect, rooms};
use crate::command::{StepFailure, Usage};
use crate::config::{Colour, Role};
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, Say, StepStart};
use crate::event::SeatTaken;
use crate::happened::{CallAsked, Outage, StepFailed, StepFinished, Turn};
use crate::reading;
use crate::rooms::Seat;
use crate::session::Session;
use crate::words::StepEnding;
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
            Some(Effect::StartStep { of: StepStart::Seat { agent, prompt, .. }, .. }) => {
                (Some(agent.clone()), Some(prompt.clone()))
            }
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
    if d.world.seated(seat).is_none_or(|seated| !seated.is_free()) {
        return;
    }
    let of = Session::Seat(seat.clone());
    let Some((session, resume)) = sessions::for_next(d, &of) else { return };
    sessions::reserve(d, &of);
    let turns_left = turns_of(d, agent);
    let (seat, agent) = (seat.clone(), agent.clone());
    begins(d, &agent, of.probe());
    let start = StepStart::Seat { seat, agent, prompt };
    let effect = d.ask(Effect::StartStep { of: start, session, resume, turns_left });
    sessions::under_way(d, &of, Some(effect));
}

/// How many turns of its model an agent may use for one reply.
fn turns_of(d: &Draft, agent: &machines::names::AgentName) -> u32 {
    let known = d.world.config.agent(agent);
    known.max_turns.or(d.world.config.max_turns).unwrap_or(known.kind.turn_limit())
}

/// How many turns the reply was begun with.
fn turns_had(d: &Draft, id: &EffectId) -> u32 {
    match d.world.effects.get(id).map(AsRef::as_ref) {
        Some(Effect::StartStep { turns_left, .. }) => *turns_left,
        _ => u32::MAX,
    }
}

/// Tells whoever the agent speaks for what its reply came to.
fn came_to(d: &mut Draft, spoken: &Spoken, seat: &Seat, said: &Said) -> Ruled {
    match seat {
        Seat::Room { channel, agent } => rooms::reply_over(d, channel, agent, said),
        Seat::Architect => architect::reply_over(d, spoken, said),
    }
}

pub(super) fn turn_taken(d: &mut Draft, reply: &EffectId, seat: &Seat, taken: &Turn) -> Ruled {
    let of = Session::Seat(seat.clone());
    probe_succeeded(d, &of.probe())?;
    // Some programs end by themselves at the limit; the others are ended.
    if taken.turn <= turns_had(d, reply) {
        return Ok(());
    }
    let spoken = Spoken::of(d, reply, seat);
    sessions::quit(d, &of, false);
    came_to(d, &spoken, seat, &Said::Spent(taken.output.as_deref().unwrap_or_default(), "turns"))
}

pub(super) fn call_asked(d: &mut Draft, reply: &EffectId, seat: &Seat, asked: &CallAsked) {
    let of = Session::Seat(seat.clone());
    sessions::used(d, &of);
    let refused = refusal_of(d, seat, &asked.tool, &asked.argument);
    sessions::answer(d, &of, reply, &asked.call, refused.is_none(), &refused.unwrap_or_default());
}

pub(super) fn reply_finished(d: &mut Draft, reply: &EffectId, seat: &Seat, finished: &StepFinished) -> Ruled {
    let of = Session::Seat(seat.clone());
    let said = match finished.ending {
        StepEnding::CutOff => Said::Stopped,
        StepEnding::Done | StepEnding::NotDone => Said::Text(&finished.output),
        StepEnding::OutOfTurns => Said::Spent(&finished.output, "turns"),
        StepEnding::OutOfMoney => Said::Spent(&finished.output, "money"),
    };
    let spoken = Spoken::of(d, reply, seat);
    probe_succeeded(d, &of.probe())?;
    over(d, &of, reply, finished.usage);
    came_to(d, &spoken, seat, &said)
}

pub(super) fn reply_failed(d: &mut Draft, reply: &EffectId, seat: &Seat, failed: &StepFailed) -> Ruled {
    let of = Session::Seat(seat.clone());
    let again =
        d.world.session(&of).is_some_and(|known| !known.retried) && failed.why == StepFailure::Session;
    let spoken = Spoken::of(d, reply, seat);
    over(d, &of, reply, failed.usage);
    if again {
        d.rule(Rule::ReplyRetried);
        sessions::renew(d, &of, true);
        return came_to(d, &spoken, seat, &Said::Stopped);
    }
    came_to(d, &spoken, seat, &Said::Crashed(&failed.error))
}

pub(super) fn outage(d: &mut Draft, reply: &EffectId, seat: &Seat, away: &Outage) -> Ruled {
    let spoken = Spoken::of(d, reply, seat);
    over(d, &Session::Seat(seat.clone()), reply, away.usage);
    service_away(d, away);
    came_to(d, &spoken, seat, &Said::Away(away))
}

/// A reply is over: nothing is being said any more, and what was set aside for it is given back.
fn over(d: &mut Draft, of: &Session, reply: &EffectId, usage: Usage) {
    sessions::finished(d, of, reply, usage);
    sessions::unreserve(d, of);
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
pub(super) fn reply_ended(d: &mut Draft, seat: &Seat) -> Ruled {
    match seat {
        Seat::Room { channel, agent } => rooms::go_on(d, channel, agent),
        Seat::Architect => Ok(()),
    }
}
