//! Rooms: who may speak, what is passed on to whom and when, and when a room rests.
//!
//! Nothing that an agent posts wakes another: the ring does, or a person, or a rule.

use machines::machine::{Caller, Role};
use machines::names::{AgentName, ChannelName};
use machines::task::{self, Status};
use machines::turn::{self, EndedBy, InterruptBehaviour, WaitReason};
use machines::wire::Wire;
use smol_str::SmolStr;

use super::Rule;
use super::landing::{approve_by_person, is_at_tip};
use super::people::person_moves;
use super::replies::task_reply;
use super::seats::{self, Said};
use super::service;
use super::sessions;
use super::step::seconds;
use crate::checks::{channel_of, check_text};
use crate::choice::Choice;
use crate::command::{Actor, Refusal, Reply, TurnWord};
use crate::decisions::{self, Word};
use crate::draft::{Draft, Ruled, system_for};
use crate::effect::{Say, StepMessage, Timer};
use crate::event::{
    ChannelClosed, ChannelMade, ChannelSaid, MemberAdded, MemberRemoved, MemberSkipped, MessageHeard,
    MessagesReleased, Posted, ReceiptsMoved, RoomRests, RoomStalls, SaidKind, TurnShifted,
};
use crate::rooms::{About, Channel, MEMBERS_MAX, OwnTimes, ROOMS_MAX, Seat, TurnEnd};
use crate::session::Session;
use crate::{Millis, budget};

const OWN_BY_SYSTEM: Caller = Caller { role: Role::System, own: true };

fn id_of(name: &ChannelName) -> Option<SmolStr> {
    Some(SmolStr::new(name.as_str()))
}

fn seat_of(channel: &ChannelName, agent: &AgentName) -> Seat {
    Seat::Room { channel: channel.clone(), agent: agent.clone() }
}

/// The room, if it is open.
fn open<'d>(d: &'d Draft, name: &ChannelName) -> Result<&'d Channel, Refusal> {
    let channel = channel_of(&d.world, name)?;
    if channel.is_closed() {
        let message = format!("channel `{name}` is closed; what was said there can still be read");
        let refusal = Refusal::new(409, "CHANNEL_CLOSED", message);
        return Err(match d.command.actor.is_human() {
            true => refusal.next([Choice::ReadChannel { channel: name.clone() }, Choice::MakeChannel]),
            false => refusal.hint("it takes nothing more: go on without it"),
        });
    }
    Ok(channel)
}

fn member<'d>(d: &'d Draft, name: &ChannelName, agent: &AgentName) -> Result<&'d turn::Turn, Refusal> {
    let channel = open(d, name)?;
    channel.place(agent).ok_or_else(|| {
        let refusal = Refusal::new(404, "NOT_FOUND", format!("agent `{agent}` is not in `{name}`"));
        if !d.command.actor.is_human() {
            return refusal.hint("a person lets agents in");
        }
        let members: Vec<&str> = channel.members.iter().map(AgentName::as_str).collect();
        let known = match members[..] {
            [] => "nobody is in it".to_owned(),
            [only] => format!("{only} is in it"),
            _ => format!("{} are in it", members.join(", ")),
        };
        let (channel, agent) = (name.clone(), agent.clone());
        refusal.hint(known).next([Choice::AddMember { channel, agent }])
    })
}

pub(crate) fn make_channel(
    d: &mut Draft,
    name: &ChannelName,
    config: &turn::TurnConfig,
    about: &About,
) -> Result<Reply, Refusal> {
    if d.world.channels.contains_key(name) {
        let refusal = Refusal::new(409, "EXISTS", format!("there is a channel `{name}` already"));
        return Err(refusal
            .hint("choose another name")
            .next([Choice::ShowChannel { channel: name.clone() }]));
    }
    if d.world.channels.values().filter(|channel| !channel.is_closed()).count() >= ROOMS_MAX {
        return Err(Refusal::new(409, "TOO_MANY", format!("{ROOMS_MAX} channels are open already"))
            .hint("close those that nobody needs"));
    }
    check_text(&d.world, "topic", about.topic.as_deref())?;
    for (field, seconds) in [
        ("defaultTimeoutSeconds", config.default_timeout_seconds),
        ("waitTimeoutSeconds", config.wait_timeout_seconds),
        ("autoDetectSilenceSeconds", config.auto_detect_silence_seconds),
    ] {
        if seconds == 0 {
            return Err(Refusal::field(field, "must be at least one second"));
        }
    }
    if let Some(task) = &about.task {
        let status = d.task(task)?.status();
        if status != Status::Review {
            let message = format!("task `{task}` is {status}; a room reviews what is in REVIEW");
            return Err(Refusal::new(409, "NOT_IN_REVIEW", message));
        }
        if let Some((room, _)) = d.world.room_of(task) {
            return Err(Refusal::new(409, "EXISTS", format!("`{room}` is the room of `{task}` already")));
        }
    }
    d.emit(ChannelMade { name: name.clone(), config: config.clone(), about: about.clone() });
    if let Some(topic) = about.topic.as_deref().map(str::trim).filter(|topic| !topic.is_empty()) {
        say(d, name, None, topic)?;
    }
    Ok(Reply { id: id_of(name), ..Reply::default() })
}

pub(crate) fn close_channel(d: &mut Draft, name: &ChannelName) -> Result<Reply, Refusal> {
    open(d, name)?;
    close(d, name)?;
    Ok(Reply { id: id_of(name), ..Reply::default() })
}

fn close(d: &mut Draft, name: &ChannelName) -> Ruled {
    let by = SmolStr::new(d.command.actor.to_string());
    d.emit(ChannelClosed { name: name.clone(), at: d.at(), by });
    let members: Vec<AgentName> = channel_of(&d.world, name)?.members.iter().cloned().collect();
    for agent in members {
        leave(d, name, &agent)?;
    }
    Ok(())
}

pub(crate) fn add_member(
    d: &mut Draft,
    name: &ChannelName,
    agent: &AgentName,
    times: OwnTimes,
) -> Result<Reply, Refusal> {
    let channel = open(d, name)?;
    let zero = [times.timeout_seconds, times.wait_seconds].contains(&Some(0));
    if zero {
        return Err(Refusal::field("timeoutSeconds", "must be at least one second"));
    }
    let state = channel.state_of(agent);
    if matches!(state, Some(turn::State::Queued | turn::State::Active | turn::State::Waiting)) {
        return Err(Refusal::new(409, "EXISTS", format!("agent `{agent}` is in `{name}` already")));
    }
    if state.is_none() && channel.members.len() >= MEMBERS_MAX {
        return Err(Refusal::new(409, "TOO_MANY", format!("`{name}` has {MEMBERS_MAX} members already")));
    }
    d.rule(Rule::MemberAdded);
    // Its place goes on from where it stood when it was removed, so that no row begins elsewhere than the last one ended.
    let from =
        channel_of(&d.world, name)?.left.get(agent).copied().filter(|state| *state != turn::State::Offline);
    d.emit(MemberAdded { channel: name.clone(), agent: agent.clone(), times, from });
    if from == Some(turn::State::Idle) && !is_there(d, agent) {
        d.move_turn(name, agent, &turn::Event::AgentStops, Caller::SYSTEM)?;
    }
    join(d, name, agent)?;
    let state = channel_of(&d.world, name)?
        .state_of(agent)
        .map(|state| SmolStr::new(format!("turn.{}", state.name())));
    Ok(Reply { id: Some(SmolStr::new(agent.as_str())), state, ..Reply::default() })
}

/// A member that is there takes its place in the ring.
pub(super) fn join(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    if !is_there(d, agent) {
        return Ok(());
    }
    if channel_of(&d.world, name)?.state_of(agent) == Some(turn::State::Offline) {
        d.move_turn(name, agent, &turn::Event::AgentStarts, Caller::SYSTEM)?;
    }
    let channel = channel_of(&d.world, name)?;
    if channel.expected.contains(agent) && channel.state_of(agent) == Some(turn::State::Idle) {
        d.move_turn(name, agent, &turn::Event::Assigned, Caller::SYSTEM)?;
        // Whoever rested because it was alone is not alone any more, unless there is nothing to talk about.
        if channel_of(&d.world, name)?.ring.contains(agent) {
            rejoin_resting(d, name)?;
        }
    }
    Ok(())
}

/// Whether an agent can take turns at all: it is started by us, or has connected, and nobody has disabled it.
fn is_there(d: &Draft, agent: &AgentName) -> bool {
    let there = d.world.is_hosted(agent) || d.world.agents.contains_key(agent);
    there && !d.world.disabled.contains_key(agent)
}

pub(crate) fn remove_member(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Result<Reply, Refusal> {
    // Nobody who wants it out wants to be told how to let it in.
    member(d, name, agent).map_err(|refusal| Refusal { next: Vec::new(), ..refusal })?;
    leave(d, name, agent)?;
    d.emit(MemberRemoved { channel: name.clone(), agent: agent.clone() });
    Ok(Reply { id: Some(SmolStr::new(agent.as_str())), ..Reply::default() })
}

/// Out of the ring, and what it is saying is ended.
fn leave(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    if matches!(
        channel_of(&d.world, name)?.state_of(agent),
        Some(turn::State::Queued | turn::State::Active | turn::State::Waiting)
    ) {
        d.move_turn(name, agent, &turn::Event::RemovedFromChannel, Caller::SYSTEM)?;
    }
    sessions::quit(d, &Session::Seat(seat_of(name, agent)), false);
    Ok(())
}

/// Something is said in a room, by an agent or by whoever asks.
fn say(d: &mut Draft, name: &ChannelName, agent: Option<&AgentName>, text: &str) -> Result<u64, Refusal> {
    let channel = open(d, name)?;
    let holder = channel.current.clone();
    let state = holder.as_ref().and_then(|holder| channel.state_of(holder));
    let by_person = agent.is_none();
    let mode = channel.mode();
    let active = by_person && state == Some(turn::State::Active);
    let held = active && matches!(mode, InterruptBehaviour::Queue | InterruptBehaviour::Inject);
    let to = holder.clone().filter(|_| active && mode == InterruptBehaviour::Inject);
    let number = channel.said + 1;
    let by = match agent {
        Some(agent) => SmolStr::new(format!("agent:{agent}")),
        None => SmolStr::new(d.command.actor.to_string()),
    };
    d.emit(Posted {
        channel: name.clone(),
        number,
        at: d.at(),
        by,
        agent: agent.cloned(),
        text: text.to_owned(),
        held,
        to,
    });
    if agent.is_some() {
        expect_silence(d, name);
    }
    if let Some(holder) = holder.filter(|_| active) {
        match mode {
            InterruptBehaviour::Inject | InterruptBehaviour::Parallel => pass_on(d, name, &holder, number),
            InterruptBehaviour::Interrupt => {
                d.rule(Rule::TurnInterrupted);
                let wait_seconds = channel_of(&d.world, name)?.wait_seconds(&holder);
                let event = turn::Event::Interrupt { at: d.at(), wait_seconds, mode };
                d.move_turn(name, &holder, &event, Caller::SYSTEM)?;
            }
            InterruptBehaviour::Queue => {}
        }
    }
    match by_person {
        true => wake(d, name)?,
        // Whoever rested because it was alone has somebody to talk to.
        false => rejoin_resting(d, name)?,
    }
    Ok(number)
}

/// A message reaches the agent that is speaking, where its program can hear it.
fn pass_on(d: &mut Draft, name: &ChannelName, agent: &AgentName, number: u64) {
    let seat = seat_of(name, agent);
    if let Some(reply) = d.world.seated(&seat).and_then(|seated| seated.reply.clone()) {
        d.rule(Rule::MessageInjected);
        sessions::tell(d, StepMessage::Seat { seat, number }, reply);
    }
}

/// Whether the agent's program heard it; where it did not, the message waits for its next turn.
pub(super) fn told(d: &mut Draft, seat: &Seat, number: u64, heard: bool) {
    let Seat::Room { channel, agent } = seat else { return };
    let there = d.world.channel(channel).is_some_and(|room| room.place(agent).is_some());
    if heard && there {
        d.emit(MessageHeard { channel: channel.clone(), agent: agent.clone(), number });
    }
}

/// A message that comes into a room that rests lets it go on.
fn wake(d: &mut Draft, name: &ChannelName) -> Ruled {
    let channel = channel_of(&d.world, name)?;
    if channel.rests {
        d.rule(Rule::RoomWoken);
        d.emit(RoomRests { channel: name.clone(), rests: false });
    }
    rejoin_resting(d, name)?;
    grant_next(d, name)?;
    announce_nobody(d, name);
    Ok(())
}

/// Agents that rested alone take turns again.
fn rejoin_resting(d: &mut Draft, name: &ChannelName) -> Ruled {
    let channel = channel_of(&d.world, name)?;
    let there = |agent: &&AgentName| channel.state_of(agent) == Some(turn::State::Idle);
    let resting: Vec<AgentName> = channel.resting.iter().filter(there).cloned().collect();
    for agent in resting {
        d.move_turn(name, &agent, &turn::Event::Assigned, Caller::SYSTEM)?;
    }
    Ok(())
}

/// Nobody is there who could take a turn: what is said is kept, and passed on to nobody.
pub(super) fn announce_nobody(d: &mut Draft, name: &ChannelName) {
    let Some(channel) = d.world.channel(name).filter(|channel| !channel.is_closed()) else { return };
    if channel.ring.is_empty() && channel.resting.is_empty() && !channel.members.is_empty() {
        let text = turn::Notice::NoAgents.name().to_owned();
        let (channel, at) = (name.clone(), d.at());
        d.emit(ChannelSaid { channel, at, to: None, kind: SaidKind::Announcement, text });
    }
}

pub(crate) fn post(d: &mut Draft, name: &ChannelName, text: &str) -> Result<Reply, Refusal> {
    open(d, name)?;
    check_text(&d.world, "text", Some(text))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::field("text", "a message must not be empty"));
    }
    let agent = match &d.command.actor {
        Actor::Agent { name: agent, .. } => Some(agent.clone()),
        _ => None,
    };
    if let Some(agent) = &agent {
        let state = member(d, name, agent)?.state;
        if state != turn::State::Active {
            let message = match state {
                turn::State::Waiting => {
                    format!("`{agent}` has paused its turn in `{name}`, and says nothing meanwhile")
                }
                _ => format!("it is not the turn of `{agent}` in `{name}`: {}", holder_of(d, name)),
            };
            return Err(Refusal::new(409, "NOT_YOUR_TURN", message).hint(ONLY_IN_TURN));
        }
    }
    d.rule(Rule::MessagePosted);
    let number = say(d, name, agent.as_ref(), text)?;
    Ok(Reply { id: Some(SmolStr::new(number.to_string())), ..Reply::default() })
}

/// A member that reads has been given what it may know of.
pub(crate) fn hear(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Result<Reply, Refusal> {
    let channel = channel_of(&d.world, name)?;
    if channel.place(agent).is_none() {
        return Err(Refusal::new(404, "NOT_FOUND", format!("agent `{agent}` is not in `{name}`")));
    }
    deliver(d, name, agent);
    Ok(Reply { id: id_of(name), ..Reply::default() })
}

fn deliver(d: &mut Draft, name: &ChannelName, agent: &AgentName) {
    let Some(channel) = d.world.channel(name) else { return };
    let (open, delivered) =
        (channel.last_open_to(agent), channel.heard.get(agent).map_or(0, |heard| heard.delivered));
    if open > delivered {
        let (channel, agent) = (name.clone(), agent.clone());
        d.emit(ReceiptsMoved { channel, agent, delivered: Some(open), consumed: None });
    }
}

pub(crate) fn take_turn(
    d: &mut Draft,
    name: &ChannelName,
    agent: &AgentName,
    word: &TurnWord,
) -> Result<Reply, Refusal> {
    let state = member(d, name, agent)?.state;
    let by = d.caller(d.command.actor.is_agent(agent));
    let at = d.at();
    let event = match word {
        TurnWord::Complete | TurnWord::Pass => Some(completes(d, name, agent, false)?),
        TurnWord::Wait { note, seconds } => {
            check_text(&d.world, "note", note.as_deref())?;
            let wait_seconds = seconds.unwrap_or(channel_of(&d.world, name)?.wait_seconds(agent));
            if wait_seconds == 0 {
                return Err(Refusal::field("seconds", "must be at least one second"));
            }
            let note = note.as_deref().map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned);
            Some(turn::Event::WaitRequested { at, wait_seconds, because: WaitReason::Requested, note })
        }
        TurnWord::Resume if by.role == Role::Human => {
            tries_service(d, name, agent);
            Some(turn::Event::HumanOverride { at, to: turn::State::Active })
        }
        TurnWord::Resume => Some(turn::Event::WaitResolved { at }),
        TurnWord::Override { to } => Some(turn::Event::HumanOverride { at, to: *to }),
        TurnWord::Cancel => Some(taken_away(d, name, agent, state, EndedBy::Cancel)?),
        TurnWord::Skip if matches!(state, turn::State::Active | turn::State::Waiting) => {
            Some(taken_away(d, name, agent, state, EndedBy::Skip)?)
        }
        TurnWord::Skip => {
            let (channel, agent) = (name.clone(), agent.clone());
            d.emit(MemberSkipped { channel, agent, skipped: true });
            None
        }
        TurnWord::Fresh => {
            sessions::renew(d, &Session::Seat(seat_of(name, agent)), false);
            None
        }
    };
    if let Some(event) = event {
        machines::would_take(member(d, name, agent)?, &event, by)
            .map_err(|refusal| not_its_turn(d, name, agent, refusal))?;
        d.move_turn(name, agent, &event, by)?;
    }
    let state = channel_of(&d.world, name)?
        .state_of(agent)
        .map(|state| SmolStr::new(format!("turn.{}", state.name())));
    Ok(Reply { id: Some(SmolStr::new(agent.as_str())), state, ..Reply::default() })
}

/// What somebody said of a turn that the agent does not have, or that does not stand so, in the words of people.
fn not_its_turn(d: &Draft, name: &ChannelName, agent: &AgentName, refusal: machines::Refusal) -> Refusal {
    let state = d.world.channel(name).and_then(|channel| channel.state_of(agent));
    if refusal.code.status() != 409 {
        return refusal.into();
    }
    let message = match state {
        Some(turn::State::Waiting) => {
            format!("`{agent}` has paused its turn in `{name}`, and goes on before it ends")
        }
        Some(turn::State::Active) => {
            format!("`{agent}` has the turn in `{name}` and waits for nothing")
        }
        _ => format!("it is not the turn of `{agent}` in `{name}`: {}", holder_of(d, name)),
    };
    let refused = Refusal::new(409, "NOT_YOUR_TURN", message);
    match state {
        _ if !d.command.actor.is_human() => refused.hint(ONLY_IN_TURN),
        Some(turn::State::Waiting) => refused.next(options(name, agent)),
        _ => refused.next([Choice::ShowChannel { channel: name.clone() }]),
    }
}

const ONLY_IN_TURN: &str = "only whoever has the turn speaks; read, and wait for it";

fn holder_of(d: &Draft, name: &ChannelName) -> String {
    let holder = d.world.channel(name).and_then(|channel| channel.current.as_ref());
    holder.map_or("nobody has it".to_owned(), |holder| format!("`{holder}` has it"))
}

fn completes(d: &Draft, name: &ChannelName, agent: &AgentName, auto: bool) -> Result<turn::Event, Refusal> {
    Ok(turn::Event::TurnComplete { alone: channel_of(&d.world, name)?.is_alone(agent), auto, ended_by: None })
}

/// A person ends a turn, or takes one that waits away.
fn taken_away(
    d: &Draft,
    name: &ChannelName,
    agent: &AgentName,
    state: turn::State,
    by: EndedBy,
) -> Result<turn::Event, Refusal> {
    let alone = channel_of(&d.world, name)?.is_alone(agent);
    Ok(match state {
        turn::State::Waiting => turn::Event::HumanOverride { at: d.at(), to: turn::State::Queued },
        _ => turn::Event::TurnComplete { alone, auto: false, ended_by: Some(by) },
    })
}

/// A decision on the task of a review room, by a member in its turn or by a person. The task's own table says who may.
pub(crate) fn decide_in_room(
    d: &mut Draft,
    name: &ChannelName,
    approve: bool,
    note: &str,
) -> Result<Reply, Refusal> {
    let channel = open(d, name)?;
    let Some(id) = channel.about.task.clone() else {
        return Err(Refusal::new(409, "NO_TASK", format!("`{name}` is about no task")));
    };
    let actor = d.command.actor.clone();
    if let Actor::Agent { name: agent, .. } = &actor
        && member(d, name, agent)?.state != turn::State::Active
    {
        let message = format!("it is not the turn of `{agent}` in `{name}`: {}", holder_of(d, name));
        return Err(
            Refusal::new(409, "NOT_YOUR_TURN", message).hint("whoever has the turn decides; wait for it")
        );
    }
    check_text(&d.world, "note", Some(note))?;
    if approve {
        let tip = d.task(&id)?.work.place.as_ref().and_then(|place| place.tip.clone());
        approve_by_person(d, &id, tip.as_ref(), note)?;
    } else {
        is_at_tip(d, &id, None)?;
        let payload = task::Payload { feedback: Some(note.to_owned()), ..task::Payload::default() };
        person_moves(d, &id, &actor, Status::InProgress, &payload)?;
    }
    d.rule(Rule::DecidedInRoom);
    task_reply(d, &id)
}

/// Turns and waits go on with the time that they had left when everything stopped.
pub(crate) fn was_away(d: &mut Draft, since: Millis, hosted: bool) {
    let by = d.at() - since;
    if by <= 0 {
        return;
    }
    let holds =
        |channel: &Channel| channel.current.clone().filter(|holder| !hosted || d.world.is_hosted(holder));
    let held: Vec<(ChannelName, AgentName)> =
        d.world.channels.iter().filter_map(|(name, room)| Some((name.clone(), holds(room)?))).collect();
    for (channel, agent) in held {
        d.rule(Rule::TurnShifted);
        d.emit(TurnShifted { channel: channel.clone(), agent: agent.clone(), by });
        let place = d.world.channel(&channel).and_then(|room| room.place(&agent));
        let due = place.and_then(|place| place.timeout_at.or(place.wait_until));
        if let Some(due) = due {
            d.set_timer(Timer::Turn { channel, agent }, due);
        }
    }
    if !hosted {
        // Nobody could give a sign of life.
        let due = |id| d.world.effects.get(id).and_then(|effect| effect.due());
        let beats = d.world.timers.iter().filter(|(timer, _)| matches!(timer, Timer::Heartbeat { .. }));
        let beats: Vec<(Timer, Millis)> =
            beats.filter_map(|(timer, id)| Some((timer.clone(), due(id)? + by))).collect();
        for (timer, due) in beats {
            d.set_timer(timer, due);
        }
    }
}

// The ring.

/// Whether an agent's turn can begin now, as far as that hangs on others than the ring.
fn can_begin(d: &Draft, name: &ChannelName, agent: &AgentName) -> bool {
    if !d.world.is_hosted(agent) {
        return true;
    }
    let service = d.world.config.service_of(agent);
    let there = d.world.may_begin(&service, Some(&seat_of(name, agent)));
    let share = budget::share(&d.world, agent);
    let paid = budget::shared_rooms(&d.world, agent, d.day()).iter().all(|room| room.has(share));
    let replies = d.world.seats.iter().filter(|(seat, seated)| is_in_room(seat) && seated.reply.is_some());
    let place = replies.count() < d.world.config.limits.replies as usize;
    d.world.fleet_running && there && paid && place
}

fn is_in_room(seat: &Seat) -> bool {
    matches!(seat, Seat::Room { .. })
}

/// Whether what the agent said last is known to be over: its program may take a while to end.
fn is_free(d: &Draft, name: &ChannelName, agent: &AgentName) -> bool {
    d.world.seated(&seat_of(name, agent)).is_none_or(|seated| seated.is_free())
}

/// Somebody would speak, and only money keeps it from that: a person is asked, once.
fn ask_for_money(d: &mut Draft, name: &ChannelName) -> Ruled {
    let channel = channel_of(&d.world, name)?;
    if channel.current.is_some() || channel.rests || !d.world.fleet_running {
        return Ok(());
    }
    let short = channel.ring.iter().filter(|agent| d.world.is_hosted(agent)).find_map(|agent| {
        let share = budget::share(&d.world, agent);
        channel.unheard(agent).next()?;
        let rooms = budget::shared_rooms(&d.world, agent, d.day());
        let room = rooms.into_iter().find(|room| room.is_spent(share))?;
        let asked = super::budgets::was_asked(&d.world, &room, agent, d.day());
        (!asked).then(|| (agent.clone(), room))
    });
    if let Some((agent, room)) = short {
        d.rule(Rule::BudgetAsked);
        super::budgets::ask_budget(d, &room, &agent, None);
    }
    Ok(())
}

/// The next in the ring after whoever had the turn last, if nobody has it now and the room does not rest.
pub(super) fn grant_next(d: &mut Draft, name: &ChannelName) -> Ruled {
    let Some(channel) = d.world.channel(name) else { return Ok(()) };
    if channel.current.is_some() || channel.is_closed() || channel.rests || channel.ring.is_empty() {
        return Ok(());
    }
    // A full cycle has gone by in silence: it would cost, and bring nothing.
    if channel.ring.iter().all(|agent| channel.quiet.contains(agent)) {
        d.rule(Rule::RoomRests);
        d.emit(RoomRests { channel: name.clone(), rests: true });
        return Ok(());
    }
    let after = channel.last.as_ref().and_then(|last| channel.ring.iter().position(|agent| agent == last));
    let start = after.map_or(0, |place| place + 1);
    let count = channel.ring.len();
    let round: Vec<AgentName> =
        (0..count).filter_map(|step| channel.ring.get((start + step) % count).cloned()).collect();
    let (mut stalls, mut ending) = (false, true);
    for agent in round {
        let channel = channel_of(&d.world, name)?;
        if channel.state_of(&agent) != Some(turn::State::Queued) {
            continue;
        }
        if channel.skipped.contains(&agent) {
            d.emit(MemberSkipped { channel: name.clone(), agent, skipped: false });
            continue;
        }
        // It had its turn in this round, and nothing was said since: the others come first.
        if channel.quiet.contains(&agent) {
            continue;
        }
        let begins = can_begin(d, name, &agent);
        if !begins || !is_free(d, name, &agent) {
            (stalls, ending) = (true, ending && begins);
            continue;
        }
        let timeout_seconds = channel.timeout_seconds(&agent);
        let event = turn::Event::TurnGranted { at: d.at(), timeout_seconds };
        return d.move_turn(name, &agent, &event, Caller::SYSTEM).map(drop);
    }
    let channel = channel_of(&d.world, name)?;
    if stalls && (!channel.stalled || (channel.ending && !ending)) {
        d.rule(Rule::RoomStalls);
        d.emit(RoomStalls { channel: name.clone(), ending });
    }
    Ok(())
}

/// Rooms in which somebody could have the turn and nobody has, and agents that could speak and do not.
pub(super) fn settle_rooms(d: &mut Draft) -> Ruled {
    let names: Vec<ChannelName> =
        d.world.channels.iter().filter(|(_, room)| !room.is_closed()).map(|(name, _)| name.clone()).collect();
    // Replies have a limit: the room in which nobody spoke for longest comes first.
    let mut names = names;
    names.sort_by_cached_key(|name| d.world.channel(name).map_or(0, |room| room.granted));
    for name in names {
        if channel_of(&d.world, &name)?.stalled {
            grant_next(d, &name)?;
        }
        if let Some(holder) = channel_of(&d.world, &name)?.current.clone() {
            go_on(d, &name, &holder)?;
        }
        ask_for_money(d, &name)?;
    }
    Ok(())
}

/// The agent that has the turn is told, which for one that Adjutant hosts means that its program is started.
pub(super) fn notify(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    let text = "it is your turn".to_owned();
    let (channel, at) = (name.clone(), d.at());
    d.emit(ChannelSaid { channel, at, to: Some(agent.clone()), kind: SaidKind::Turn, text });
    if !d.world.is_hosted(agent) {
        return Ok(());
    }
    // There is nothing that it could say something to.
    if channel_of(&d.world, name)?.unheard(agent).next().is_none() {
        d.rule(Rule::NothingToSay);
        let event = completes(d, name, agent, true)?;
        return d.move_turn(name, agent, &event, Caller::SYSTEM).map(drop);
    }
    begin_reply(d, name, agent, false);
    Ok(())
}

fn begin_reply(d: &mut Draft, name: &ChannelName, agent: &AgentName, again: bool) {
    let Some(channel) = d.world.channel(name) else { return };
    let after = channel.heard.get(agent).map_or(0, |heard| heard.consumed);
    let seat = seat_of(name, agent);
    if d.world.seated(&seat).is_some_and(|seated| !seated.is_free()) {
        return;
    }
    d.rule(Rule::ReplyBegun);
    deliver(d, name, agent);
    let upto = d.world.channel(name).map_or(0, |channel| channel.last_open_to(agent));
    seats::begin(d, &seat, agent, Say::Turn { after, upto, again });
}

/// A hosted agent that has the turn, and whose program is not at work though it could be, goes on.
pub(super) fn go_on(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    let Some(channel) = d.world.channel(name).filter(|channel| channel.current.as_ref() == Some(agent))
    else {
        return Ok(());
    };
    let waits = channel.posted && channel.about.ends == TurnEnd::Signal;
    let active = channel.state_of(agent) == Some(turn::State::Active);
    if active && !waits && d.world.is_hosted(agent) && can_begin(d, name, agent) {
        begin_reply(d, name, agent, true);
    }
    Ok(())
}

/// What a hosted agent said came to an end.
pub(super) fn reply_over(d: &mut Draft, name: &ChannelName, agent: &AgentName, said: &Said) -> Ruled {
    let Some(state) = d.world.channel(name).and_then(|channel| channel.state_of(agent)) else {
        return Ok(());
    };
    match said {
        Said::Text(text) if state == turn::State::Active => spoken(d, name, agent, text),
        Said::Spent(text, what) if state == turn::State::Active => spent(d, name, agent, text, what),
        // It waits, and goes on with another reply; or its turn is over.
        Said::Text(_) | Said::Spent(..) => Ok(()),
        // The turn goes on when the fleet does.
        Said::Stopped => go_on(d, name, agent),
        Said::Crashed(error) if matches!(state, turn::State::Active | turn::State::Waiting) => {
            d.rule(Rule::MemberCrashed);
            sessions::renew(d, &Session::Seat(seat_of(name, agent)), false);
            let event = turn::Event::Disconnects { context: Some((*error).to_owned()) };
            d.move_turn(name, agent, &event, Caller::SYSTEM).map(drop)
        }
        Said::Crashed(_) => Ok(()),
        Said::Away(away) if state == turn::State::Active => {
            d.rule(Rule::MemberSuspended);
            let at = d.at();
            let of = Session::Seat(seat_of(name, agent));
            let until = service::suspension(d, &of, &away.service, away.resets_at).until;
            let wait_seconds = u32::try_from((until - at) / 1000).unwrap_or(u32::MAX);
            let note = Some(format!("{} is unavailable", crate::why::service_words(&away.service)));
            let event = turn::Event::WaitRequested { at, wait_seconds, because: WaitReason::Service, note };
            d.move_turn(name, agent, &event, OWN_BY_SYSTEM).map(drop)
        }
        Said::Away(_) => Ok(()),
    }
}

/// The last message of a hosted agent is posted for it, if it posted nothing by itself.
fn spoken(d: &mut Draft, name: &ChannelName, agent: &AgentName, text: &str) -> Ruled {
    let ends = post_for(d, name, agent, text)?;
    if ends || channel_of(&d.world, name)?.about.ends == TurnEnd::Reply {
        return ends_by_reply(d, name, agent);
    }
    Ok(())
}

/// Posts what a hosted agent said, without the words that are for us. True: they say that its turn is over.
fn post_for(d: &mut Draft, name: &ChannelName, agent: &AgentName, text: &str) -> Result<bool, Refusal> {
    let (ends, text) = without(text.trim().to_owned(), Word::TurnComplete);
    let (passes, text) = without(text, Word::Pass);
    if !channel_of(&d.world, name)?.posted && !text.is_empty() {
        d.rule(Rule::ReplyPosted);
        let limit = d.world.config.limits.text_bytes;
        say(d, name, Some(agent), cut(&text, limit))?;
    }
    Ok(ends || passes)
}

/// Whether a message says this word, and the rest of it.
fn without(text: String, word: Word) -> (bool, String) {
    match decisions::read(&text, &[word]) {
        Ok(Some(said)) => (true, said.rest),
        _ => (false, text),
    }
}

fn ends_by_reply(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    let event = completes(d, name, agent, false)?;
    d.move_turn(name, agent, &event, Caller { role: system_for(agent).role(), own: true }).map(drop)
}

/// A hosted agent had no more for its reply: what it said itself is posted, and the room hears that it is not all.
fn spent(d: &mut Draft, name: &ChannelName, agent: &AgentName, text: &str, what: &str) -> Ruled {
    d.rule(Rule::ReplySpent);
    post_for(d, name, agent, text)?;
    let (channel, at) = (name.clone(), d.at());
    let text = format!("⚠️ {agent} used the {what} that it had for a reply, and was not finished");
    d.emit(ChannelSaid { channel, at, to: None, kind: SaidKind::Announcement, text });
    // Whatever ends turns here: nothing more of it comes.
    ends_by_reply(d, name, agent)
}

/// As much of a text as is kept; the rest is in the transcript.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether a turn that ends without a word is not silence yet: its time was over, for the first time since the last message.
pub(super) fn is_excused(d: &mut Draft, name: &ChannelName, agent: &AgentName, event: &turn::Event) -> bool {
    let by_time = matches!(event, turn::Event::Timeout { .. } | turn::Event::WaitTimeout);
    let Some(channel) = d.world.channel(name) else { return false };
    let excused = by_time && !channel.posted && !channel.late.contains(agent);
    if excused {
        d.rule(Rule::TurnExcused);
    }
    excused
}

/// The turn is not a turn any more: what came into it is passed on, and what the agent was saying is ended.
pub(super) fn turn_freed(d: &mut Draft, name: &ChannelName, agent: &AgentName, event: &turn::Event) {
    d.clear_timer(&Timer::Silence { channel: name.clone() });
    if d.world.channel(name).is_some_and(|channel| channel.messages.iter().any(|message| message.held)) {
        d.emit(MessagesReleased { channel: name.clone() });
    }
    let own_word = matches!(event, turn::Event::TurnComplete { auto: false, ended_by: None, .. });
    match own_word && d.command.actor.is_agent(agent) {
        true => sessions::quit(d, &Session::Seat(seat_of(name, agent)), true),
        false => sessions::quit(d, &Session::Seat(seat_of(name, agent)), false),
    }
}

/// What the agent was given in its turn is dealt with.
pub(super) fn consume(d: &mut Draft, name: &ChannelName, agent: &AgentName) {
    let heard = d.world.channel(name).map(|channel| (channel.heard_through(agent), channel.consumed(agent)));
    if let Some((through, _)) = heard.filter(|(through, consumed)| through > consumed) {
        let (channel, agent) = (name.clone(), agent.clone());
        d.emit(ReceiptsMoved { channel, agent, delivered: Some(through), consumed: Some(through) });
    }
}

/// The program of an agent whose turn a person interrupts is ended; one that asked to wait ends by itself.
pub(super) fn stop_reply(d: &mut Draft, name: &ChannelName, agent: &AgentName) {
    sessions::quit(d, &Session::Seat(seat_of(name, agent)), false);
}

fn expect_silence(d: &mut Draft, name: &ChannelName) {
    let Some(channel) = d.world.channel(name).filter(|channel| channel.config.auto_detect_turn_end) else {
        return;
    };
    let due = d.at() + seconds(channel.config.auto_detect_silence_seconds);
    d.set_timer(Timer::Silence { channel: name.clone() }, due);
}

/// The agent has said something, and nothing since: that was its turn.
pub(super) fn silent(d: &mut Draft, name: &ChannelName) -> Ruled {
    let holder = d.world.channel(name).and_then(|channel| channel.current.clone());
    let Some(agent) = holder else { return Ok(()) };
    if channel_of(&d.world, name)?.state_of(&agent) != Some(turn::State::Active) {
        return Ok(());
    }
    d.rule(Rule::SilenceDetected);
    let event = completes(d, name, &agent, true)?;
    d.move_turn(name, &agent, &event, Caller::SYSTEM).map(drop)
}

/// A turn or a wait has lasted too long.
pub(super) fn turn_over(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    let Some(channel) = d.world.channel(name) else { return Ok(()) };
    let event = match channel.state_of(agent) {
        Some(turn::State::Active) => turn::Event::Timeout { answered: channel.posted },
        Some(turn::State::Waiting) => turn::Event::WaitTimeout,
        _ => return Ok(()),
    };
    d.move_turn(name, agent, &event, Caller::SYSTEM).map(drop)
}

/// A person lets an agent go on that waits for a service: it tries it, whatever is known of it.
fn tries_service(d: &mut Draft, name: &ChannelName, agent: &AgentName) {
    let service = d.world.config.service_of(agent);
    let waits = waiting_for_service(&d.world).contains(&(name.clone(), agent.clone()));
    if waits && d.world.health.get(&service).is_some_and(|health| !health.healthy) {
        d.rule(Rule::Retried);
        service::goes_first(d, &service, &seat_of(name, agent));
    }
}

/// Whoever has the turn and waits for a service.
pub(super) fn waiting_for_service(world: &crate::World) -> Vec<(ChannelName, AgentName)> {
    let waits = |channel: &Channel| {
        let holder = channel.current.clone()?;
        let place = channel.place(&holder)?;
        (place.wait_reason == Some(WaitReason::Service)).then_some(holder)
    };
    world.channels.iter().filter_map(|(name, room)| Some((name.clone(), waits(room)?))).collect()
}

/// The services that members waited for are back.
pub(super) fn restore_members(d: &mut Draft, is_back: impl Fn(&Draft, &AgentName) -> bool) -> Ruled {
    for (name, agent) in waiting_for_service(&d.world) {
        if is_back(d, &agent) {
            restore_member(d, &name, &agent)?;
        }
    }
    Ok(())
}

pub(super) fn restore_member(d: &mut Draft, name: &ChannelName, agent: &AgentName) -> Ruled {
    d.rule(Rule::MemberRestored);
    let event = turn::Event::WaitResolved { at: d.at() };
    d.move_turn(name, agent, &event, Caller::SYSTEM).map(drop)
}

/// A room cannot be about a task that was decided elsewhere: it hears of it, and is closed.
pub(crate) fn task_decided(d: &mut Draft, id: &machines::names::TaskId, what: &str) -> Ruled {
    let Some(name) = d.world.room_of(id).map(|(name, _)| name.clone()) else { return Ok(()) };
    let at = d.at();
    let text = format!("{id} {what}");
    d.emit(ChannelSaid { channel: name.clone(), at, to: None, kind: SaidKind::Announcement, text });
    close(d, &name)
}

/// What can be done about an agent that waits in a room.
pub(crate) fn options(name: &ChannelName, agent: &AgentName) -> Vec<Choice> {
    let (channel, agent) = (name.clone(), agent.clone());
    vec![
        Choice::ResumeTurn { channel: channel.clone(), agent: agent.clone() },
        Choice::TakeTurnAway { channel, agent },
    ]
}
