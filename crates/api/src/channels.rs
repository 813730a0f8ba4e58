//! Channels: who is in them and has the turn, what is said there, and what became of it for whom.
//!
//! All that was ever said comes from the log; the World knows only the last of it, and what is held back from whom.

use std::time::Instant;

use super::types::channel::{
    Channel, Entry, EntryKind, HeldTurn, ListQuery, Member, MemberReceipt, MessagesQuery, NewChannel,
    NewMember, NewMessage, OverrideTo, ReviewDecision, TurnAction, TurnWord,
};
use super::types::{Cursor, Limit, Nothing, Page, Paging, Room, json_bytes, task};
use super::{Call, Problem, WAIT_MAX, board, field, scope, time, view, wrong};
use kernel::event::SaidKind;
use kernel::rooms::{self, About, OwnTimes, Seat};
use kernel::world::Spend;
use kernel::{Actor, Ask, Event, World, budget, command};
use log::Record;
use machines::names::{AgentName, ChannelName, TaskId};
use machines::turn;

pub fn list(call: &Call, (): (), query: ListQuery, _: Nothing) -> Result<Page<Channel>, Problem> {
    let world = call.world();
    let open = world.channels.iter().filter(|(_, channel)| query.all || !channel.is_closed());
    let own = open.filter(|(name, channel)| scope::is_part_of(name, channel, call.request));
    Ok(Page::made_of(own, query.after, query.limit, |(name, channel)| shown(call, &world, name, channel)))
}

pub fn show(call: &Call, name: ChannelName, _: Nothing, _: Nothing) -> Result<Channel, Problem> {
    let world = call.world();
    Ok(shown(call, &world, &name, known(&world, &name)?))
}

pub(super) fn known<'w>(world: &'w World, name: &ChannelName) -> Result<&'w rooms::Channel, Problem> {
    world.channel(name).ok_or_else(|| {
        Problem::not_found(format!("there is no channel `{name}`"))
            .hint("`adj channel ls` lists channels, `adj channel create` creates one")
    })
}

fn shown(call: &Call, world: &World, name: &ChannelName, channel: &rooms::Channel) -> Channel {
    let turn = channel.current.as_ref().and_then(|agent| {
        let place = channel.place(agent)?;
        Some(HeldTurn {
            agent: agent.to_string(),
            state: place.state,
            until: place.timeout_at.or(place.wait_until).map(time),
            wait_reason: place.wait_reason,
            note: place.wait_note.clone(),
        })
    });
    let text = |agent: &AgentName| agent.to_string();
    let members: Vec<Member> =
        channel.members.iter().map(|agent| member(world, name, channel, agent)).collect();
    let mut cost = Spend::default();
    for agent in &channel.members {
        if let Some(seated) = world.seated(&seat_of(name, agent)) {
            add(&mut cost, &seated.spend);
        }
    }
    Channel {
        name: name.to_string(),
        topic: channel.about.topic.clone(),
        task: channel.about.task.as_ref().map(ToString::to_string),
        ends: channel.about.ends,
        mode: channel.mode(),
        turn_config: (&channel.config).into(),
        why: why(call, world, channel),
        turn,
        cursor: channel.last.as_ref().map(text),
        queue: channel.ring.iter().map(text).collect(),
        members,
        rests: channel.rests,
        stalled: channel.stalled,
        messages: channel.said,
        cost: view::spend(world, &cost),
        closed_at: channel.closed.map(time),
    }
}

fn seat_of(channel: &ChannelName, agent: &AgentName) -> Seat {
    Seat::Room { channel: channel.clone(), agent: agent.clone() }
}

fn add(sum: &mut Spend, part: &Spend) {
    sum.cost = sum.cost.saturating_add(part.cost);
    sum.input_tokens = sum.input_tokens.saturating_add(part.input_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(part.output_tokens);
    sum.reserved = sum.reserved.saturating_add(part.reserved);
}

/// Why nobody has the turn.
fn why(call: &Call, world: &World, channel: &rooms::Channel) -> Option<String> {
    if channel.is_closed() {
        return Some("it is closed".to_owned());
    }
    if channel.current.is_some() {
        return None;
    }
    if channel.members.is_empty() {
        return Some("it has no agents yet".to_owned());
    }
    if channel.rests {
        return Some("every agent passed; it continues with the next message".to_owned());
    }
    if let (true, Some(agent)) = (channel.ring.is_empty(), channel.resting.iter().next()) {
        return Some(format!("{agent} is alone and has spoken; it continues with the next message"));
    }
    if channel.ring.is_empty() {
        return Some("none of its agents is connected; messages are kept until one connects".to_owned());
    }
    let hosted: Vec<&AgentName> = channel.ring.iter().filter(|agent| world.is_hosted(agent)).collect();
    if !hosted.is_empty() && !world.fleet_running {
        return Some("no fleet is running to start its agents".to_owned());
    }
    let away = hosted.iter().find_map(|agent| {
        let service = world.config.service_of(agent);
        let health = world.health.get(&service)?;
        (!health.healthy).then(|| format!("{agent} needs {service}, which is unavailable"))
    });
    let day = call.request.at.div_euclid(86_400_000);
    let spent = || {
        hosted.iter().find_map(|agent| {
            let share = budget::share(world, agent);
            let left = budget::shared_rooms(world, agent, day).iter().all(|room| room.has(share));
            (!left).then(|| format!("{agent} has no budget left"))
        })
    };
    away.or_else(spent)
}

fn member(world: &World, name: &ChannelName, channel: &rooms::Channel, agent: &AgentName) -> Member {
    let heard = channel.heard.get(agent).cloned().unwrap_or_default();
    let seated = world.seated(&seat_of(name, agent));
    Member {
        agent: agent.to_string(),
        state: channel.state_of(agent).unwrap_or(turn::State::Offline),
        hosted: world.is_hosted(agent),
        expected: channel.expected.contains(agent) && !channel.ring.contains(agent),
        resting: channel.resting.contains(agent),
        skipped: channel.skipped.contains(agent),
        timeout_seconds: channel.timeout_seconds(agent),
        wait_timeout_seconds: channel.wait_seconds(agent),
        delivered: heard.delivered,
        consumed: heard.consumed,
        unheard: channel.unheard(agent).count() as u64,
        cost: seated.map(|seated| view::spend(world, &seated.spend)).unwrap_or_default(),
    }
}

pub fn make(call: &Call, (): (), _: Nothing, new: NewChannel) -> Result<Channel, Problem> {
    let name: ChannelName = field("name", &new.name)?;
    let task = new.task.map(|task| field::<TaskId>("task", &task)).transpose()?;
    let given = new.turn_config.unwrap_or_default();
    let config = turn::TurnConfig {
        default_timeout_seconds: given.default_timeout_seconds,
        wait_timeout_seconds: given.wait_timeout_seconds,
        human_interrupt_mode: given.human_interrupt_mode,
        announce_timeouts: given.announce_timeouts,
        announce_disconnects: given.announce_disconnects,
        auto_detect_turn_end: given.auto_detect_turn_end,
        auto_detect_silence_seconds: given.auto_detect_silence_seconds,
    };
    let about = About { topic: new.topic, task, ends: new.ends.unwrap_or_default() };
    call.submit(Ask::MakeChannel { name: name.clone(), config, about })?;
    show(call, name, Nothing {}, Nothing {})
}

pub fn close(call: &Call, name: ChannelName, _: Nothing, _: Nothing) -> Result<Channel, Problem> {
    call.submit(Ask::CloseChannel { name: name.clone() })?;
    show(call, name, Nothing {}, Nothing {})
}

pub fn members(call: &Call, name: ChannelName, paging: Paging, _: Nothing) -> Result<Page<Member>, Problem> {
    let world = call.world();
    let channel = known(&world, &name)?;
    Ok(paging.page(channel.members.iter().map(|agent| member(&world, &name, channel, agent)).collect()))
}

pub fn add_member(call: &Call, name: ChannelName, _: Nothing, new: NewMember) -> Result<Member, Problem> {
    let agent: AgentName = field("agent", &new.agent)?;
    let times = OwnTimes { timeout_seconds: new.timeout_seconds, wait_seconds: new.wait_timeout_seconds };
    let ask = Ask::AddMember { channel: name.clone(), agent: agent.clone(), times };
    call.submit(ask)?;
    let world = call.world();
    Ok(member(&world, &name, known(&world, &name)?, &agent))
}

pub fn remove_member(
    call: &Call,
    (name, agent): (ChannelName, AgentName),
    _: Nothing,
    _: Nothing,
) -> Result<Channel, Problem> {
    call.submit(Ask::RemoveMember { channel: name.clone(), agent })?;
    show(call, name, Nothing {}, Nothing {})
}

/// So many records at the end of the log are looked through first for what was just written.
const RECENT: u64 = 1_000;

pub fn post(call: &Call, name: ChannelName, _: Nothing, new: NewMessage) -> Result<Entry, Problem> {
    let reply = call.submit(Ask::Post { channel: name.clone(), text: new.text })?;
    let number: u64 = reply.id.and_then(|id| id.parse().ok()).unwrap_or_default();
    let world = call.world();
    // It is at the end, unless this is the answer to a key that was used long ago.
    for from in [world.seq.saturating_sub(RECENT), 0] {
        let records = call.access.project.stream_between(&stream(&name), from, world.seq)?;
        let mut told = records.iter().rev().filter_map(|record| entry(call, &world, &name, record));
        if let Some(posted) = told.find(|entry| entry.number == Some(number)) {
            return Ok(posted);
        }
    }
    Err(Problem::not_found(format!("there is no message {number} in `{name}`")))
}

fn stream(name: &ChannelName) -> String {
    format!("channel/{name}")
}

/// What was said there. A member that reads has been given what it is shown.
pub fn messages(
    call: &Call,
    name: ChannelName,
    query: MessagesQuery,
    _: Nothing,
) -> Result<Page<Entry>, Problem> {
    known(&call.world(), &name)?;
    if let Actor::Agent { name: agent, .. } = &call.request.actor {
        let heard = call.submit_beside(Ask::Hear { channel: name.clone(), agent: agent.clone() });
        // Only the owner of the project records receipts; a reader does not.
        if let Err(problem) = heard
            && call.access.control.is_some()
        {
            return Err(problem);
        }
    }
    let limit = Limit::number(query.last.or(query.limit));
    let deadline = Instant::now() + WAIT_MAX;
    let mut from = Cursor::number(query.after);
    loop {
        let world = call.world();
        let end = world.seq;
        let found = entries(call, &world, &name, &query, from)?;
        if !found.is_empty() || !query.wait || Instant::now() >= deadline {
            return Ok(page(found, limit, query.last.is_some()));
        }
        if call.access.control.is_none() {
            return Ok(Page { items: Vec::new(), next: None });
        }
        from = from.max(last_read(call, &world, &name, end));
        let grown = |world: &World| (world.seq != end).then_some(());
        if super::awaiting::awaited_until(call, deadline, grown).is_none() {
            return Ok(Page { items: Vec::new(), next: None });
        }
    }
}

/// How far a reader has got that was shown nothing: to the end, but for what is held back from it.
fn last_read(call: &Call, world: &World, name: &ChannelName, end: u64) -> u64 {
    let Actor::Agent { name: agent, .. } = &call.request.actor else { return end };
    let held = world.channel(name).is_some_and(|channel| channel.last_open_to(agent) < channel.said);
    if held { 0 } else { end }
}

fn page(mut found: Vec<Entry>, limit: usize, last: bool) -> Page<Entry> {
    let mut room = Room::default();
    if last {
        let fits = found.iter().rev().take(limit).take_while(|entry| room.takes(json_bytes(entry))).count();
        let before = found.len() - fits;
        return Page { items: found.split_off(before), next: None };
    }
    let fits = found.iter().take(limit).take_while(|entry| room.takes(json_bytes(entry))).count();
    let more = found.len() > fits;
    found.truncate(fits);
    let next = found.last().filter(|_| more).map(|entry| entry.seq.to_string());
    Page { items: found, next }
}

/// What the caller may know of now, after a record. It ends where something is held back from the caller: that comes first,
/// once it may be known.
fn entries(
    call: &Call,
    world: &World,
    name: &ChannelName,
    query: &MessagesQuery,
    after: u64,
) -> Result<Vec<Entry>, Problem> {
    let agent = match &call.request.actor {
        Actor::Agent { name, .. } => Some(name),
        _ => None,
    };
    let channel = known(world, name)?;
    let open = agent.map_or(channel.said, |agent| channel.last_open_to(agent));
    let wanted = query.search.as_ref().map(|wanted| wanted.to_lowercase());
    let mut found = Vec::new();
    for record in call.access.project.stream_between(&stream(name), after, world.seq)? {
        let Some(entry) = entry(call, world, name, &record) else { continue };
        if entry.number.is_some_and(|number| number > open) {
            break;
        }
        if agent.is_some_and(|agent| !is_for(&entry, agent))
            || !is_wanted(&entry, query.all, wanted.as_deref())
        {
            continue;
        }
        found.push(entry);
    }
    Ok(found)
}

/// What is told to one agent is not told to another, and receipts are for people.
fn is_for(entry: &Entry, agent: &AgentName) -> bool {
    let other = entry.recipient.as_deref().is_some_and(|recipient| recipient != agent.as_str());
    match entry.event {
        EntryKind::Notice => !other,
        EntryKind::Receipts => false,
        _ => true,
    }
}

fn is_wanted(entry: &Entry, all: bool, wanted: Option<&str>) -> bool {
    let said = matches!(entry.event, EntryKind::Message | EntryKind::Announcement) || entry.warning;
    let has = |text: &Option<String>, wanted: &str| {
        text.as_ref().is_some_and(|text| text.to_lowercase().contains(wanted))
    };
    let found = wanted.is_none_or(|wanted| has(&entry.text, wanted) || (said && has(&entry.by, wanted)));
    (said || all) && found
}

fn entry(call: &Call, world: &World, name: &ChannelName, record: &Record) -> Option<Entry> {
    let mut entry = told(record)?;
    let (Some(number), Some(channel)) = (entry.number, world.channel(name)) else { return Some(entry) };
    let kept = channel.messages.iter().find(|message| message.number == number);
    entry.held = kept.is_some_and(|message| message.held);
    if entry.agent_id.is_none() && call.request.actor.is_human() {
        entry.receipts = channel
            .members
            .iter()
            .map(|agent| MemberReceipt { agent: agent.to_string(), receipt: channel.receipt(number, agent) })
            .collect();
    }
    Some(entry)
}

/// What a record of a channel's stream says to its readers; nothing where it is only for our own accounts.
pub fn told(record: &Record) -> Option<Entry> {
    let event = Event::decode(&record.kind, &record.data).ok()?;
    let channel = record.stream.strip_prefix("channel/")?.to_owned();
    let empty = Entry {
        seq: record.seq,
        timestamp: time(record.at),
        event: EntryKind::Notice,
        channel,
        agent_id: None,
        by: None,
        number: None,
        text: None,
        warning: false,
        held: false,
        recipient: None,
        receipts: Vec::new(),
        from: None,
        to: None,
        trigger: None,
        machine: None,
        delivered: None,
        consumed: None,
    };
    let by = Some(record.actor.clone());
    let text_of = |agent: &AgentName| Some(agent.to_string());
    let entry = match &event {
        Event::Posted(e) => Entry {
            event: EntryKind::Message,
            agent_id: e.agent.as_ref().and_then(text_of),
            by: Some(e.by.to_string()),
            number: Some(e.number),
            text: Some(e.text.clone()),
            held: e.held,
            recipient: e.to.as_ref().and_then(text_of),
            ..empty
        },
        Event::ChannelSaid(e) => {
            let event = match e.kind {
                SaidKind::Announcement => EntryKind::Announcement,
                SaidKind::Turn | SaidKind::Log | SaidKind::Unended => EntryKind::Notice,
            };
            let recipient = e.to.as_ref().and_then(text_of);
            Entry { event, recipient, text: Some(e.text.clone()), warning: e.is_unended(), ..empty }
        }
        Event::TurnMoved(e) => {
            let moved = event.transition()?;
            Entry {
                event: EntryKind::Transition,
                agent_id: text_of(&e.agent),
                by,
                from: Some(moved.from),
                to: Some(moved.to),
                trigger: Some(moved.trigger),
                machine: Some(moved.machine.to_owned()),
                ..empty
            }
        }
        Event::ChannelMade(e) => Entry { event: EntryKind::Made, by, text: e.about.topic.clone(), ..empty },
        Event::ChannelClosed(e) => Entry { event: EntryKind::Closed, by: Some(e.by.to_string()), ..empty },
        Event::MemberAdded(e) => Entry { event: EntryKind::Joined, by, agent_id: text_of(&e.agent), ..empty },
        Event::MemberRemoved(e) => Entry { event: EntryKind::Left, by, agent_id: text_of(&e.agent), ..empty },
        Event::MessagesReleased(_) => Entry { event: EntryKind::Released, ..empty },
        Event::MessageHeard(e) => Entry {
            event: EntryKind::Receipts,
            agent_id: text_of(&e.agent),
            delivered: Some(e.number),
            ..empty
        },
        Event::ReceiptsMoved(e) => Entry {
            event: EntryKind::Receipts,
            agent_id: text_of(&e.agent),
            delivered: e.delivered,
            consumed: e.consumed,
            ..empty
        },
        Event::RoomRests(e) => {
            let event = if e.rests { EntryKind::Rests } else { EntryKind::Wakes };
            Entry { event, ..empty }
        }
        // A program that is coming to its end is in nobody's way.
        Event::RoomStalls(e) if e.ending => return None,
        Event::RoomStalls(_) => Entry { event: EntryKind::Stalls, ..empty },
        _ => return None,
    };
    Some(entry)
}

pub fn turn(call: &Call, name: ChannelName, _: Nothing, said: TurnWord) -> Result<Channel, Problem> {
    let agent = match &said.agent {
        Some(agent) => field::<AgentName>("agent", agent)?,
        None => meant(call, &name)?,
    };
    let only = |field: &'static str, given: bool, with: TurnAction| match given && said.action != with {
        true => Err(wrong(field, format!("`{field}` is only valid with `{with}`"))),
        false => Ok(()),
    };
    only("to", said.to.is_some(), TurnAction::Override)?;
    only("note", said.note.is_some(), TurnAction::Wait)?;
    only("seconds", said.seconds.is_some(), TurnAction::Wait)?;
    let word = match said.action {
        TurnAction::Complete => command::TurnWord::Complete,
        TurnAction::Pass => command::TurnWord::Pass,
        TurnAction::Wait => command::TurnWord::Wait { note: said.note, seconds: said.seconds },
        TurnAction::Resume => command::TurnWord::Resume,
        TurnAction::Override => command::TurnWord::Override { to: target(said.to)? },
        TurnAction::Cancel => command::TurnWord::Cancel,
        TurnAction::Skip => command::TurnWord::Skip,
        TurnAction::Fresh => command::TurnWord::Fresh,
    };
    call.submit(Ask::TakeTurn { channel: name.clone(), agent, word })?;
    show(call, name, Nothing {}, Nothing {})
}

fn target(to: Option<OverrideTo>) -> Result<turn::State, Problem> {
    let Some(to) = to else {
        return Err(wrong("to", "`to` is missing: ACTIVE resumes the turn, QUEUED ends it".to_owned()));
    };
    Ok(match to {
        OverrideTo::Active => turn::State::Active,
        OverrideTo::Queued => turn::State::Queued,
    })
}

/// An agent means itself; a person means the agent that has the turn.
fn meant(call: &Call, name: &ChannelName) -> Result<AgentName, Problem> {
    if let Actor::Agent { name, .. } = &call.request.actor {
        return Ok(name.clone());
    }
    let world = call.world();
    let channel = known(&world, name)?;
    channel.current.clone().ok_or_else(|| {
        let why = why(call, &world, channel).map(|why| format!(": {why}")).unwrap_or_default();
        let problem = Problem::new(409, "NO_TURN", format!("nobody has the turn in `{name}`{why}"));
        match channel.is_closed() {
            true => problem.hint(format!("`adj channel history {name}` shows its messages")),
            false => problem.hint(format!(
                "`adj channel status {name}` lists its agents; name the agent of another turn with `--as`"
            )),
        }
    })
}

pub fn decide(
    call: &Call,
    name: ChannelName,
    _: Nothing,
    said: ReviewDecision,
) -> Result<task::Task, Problem> {
    let world = call.world();
    let task = known(&world, &name)?.about.task.clone();
    let ReviewDecision { approve, note } = said;
    call.submit(Ask::DecideInRoom { channel: name.clone(), approve, note })?;
    let task = task.ok_or_else(|| Problem::new(409, "NO_TASK", format!("channel `{name}` has no task")))?;
    board::shown(call, &task)
}
