//! Channels and the architect, driven through the kernel: what each row asks for is in the commit.

use super::table::*;
use crate::command::*;
use crate::effect::{StepMessage, StepStart};
use crate::words::StepEnding;
use crate::{Actor, Commit, Effect, Event};
use machines::names::{AgentName, ChannelName};
use machines::suspended::Wrapped;
use machines::turn;
use serde_json::{Value, json};

pub(super) const ALL: &[fn()] = &[
    turns_go_round_and_end_by_time,
    whoever_timed_out_is_heard_once_more_before_the_room_rests,
    hosted_agents_answer_a_person_in_turn_and_then_the_room_rests,
    a_person_is_heard_by_the_mode_of_the_room,
    a_room_waits_for_the_fleet_and_goes_on_with_it,
    a_reply_that_runs_out_of_turns_or_money_ends_the_turn_and_is_announced,
    a_hosted_agent_that_crashes_is_announced_and_comes_back_only_by_a_person,
    an_outage_pauses_the_turn_of_a_hosted_agent_and_its_end_gives_it_back,
    a_turn_ends_by_a_word_or_by_silence_where_a_reply_does_not_end_it,
    a_hosted_agent_may_look_by_commands_and_change_nothing,
    only_whoever_has_the_turn_speaks,
    a_review_room_decides_about_its_task,
    a_wait_keeps_the_turn,
    whoever_leaves_passes_the_turn_on,
    the_last_agent_that_is_lost_leaves_a_channel_that_says_so,
    what_an_agent_was_given_is_consumed_when_it_ends_its_turn_alone,
    a_pause_stops_the_wait_for_silence,
    a_turn_that_goes_on_after_its_reply_has_ended_begins_another_reply,
    the_architect_goes_from_request_to_stories,
    the_architect_asks_a_person_and_gives_up,
];

/// What a commit holds, in words.
fn said(commit: &Commit) -> String {
    let word = |event: &Event| match event {
        Event::TurnMoved(e) => Some(format!("{} {}", e.agent, e.to)),
        Event::RingChanged(e) => Some(format!("{}{}", if e.joined { '+' } else { '-' }, e.agent)),
        Event::TurnHeld(e) => {
            let late = if e.late { ", late" } else { "" };
            Some(format!("held by {}{late}", e.agent.as_ref().map_or("nobody", AgentName::as_str)))
        }
        Event::ChannelSaid(e) => Some(format!("{} \"{}\"", e.kind, e.text)),
        Event::Posted(e) => Some(format!("{}: \"{}\"{}", e.by, e.text, if e.held { " held" } else { "" })),
        Event::MessagesReleased(_) => Some("released".to_owned()),
        Event::RoomRests(e) => Some(if e.rests { "rests" } else { "woken" }.to_owned()),
        Event::RoomStalls(_) => Some("stalls".to_owned()),
        Event::ChannelClosed(_) => Some("closed".to_owned()),
        Event::MessageHeard(e) => Some(format!("{} heard {}", e.agent, e.number)),
        Event::ReceiptsMoved(e) => Some(match (e.delivered, e.consumed) {
            (_, Some(number)) => format!("{} consumed {number}", e.agent),
            (number, None) => format!("{} has {}", e.agent, number.unwrap_or(0)),
        }),
        Event::ArchitectMoved(e) => Some(e.to.to_string()),
        Event::ArchitectAsked(e) => Some(format!("asks {} {}", e.what, e.request.as_deref().unwrap_or("-"))),
        Event::EffectAsked(e) => match &e.what {
            Effect::Timer { due, set_at, .. } => {
                Some(format!("timer {} s", (due - set_at.unwrap_or(*due)) / 1000))
            }
            Effect::StartStep { of: StepStart::Seat { agent, prompt, .. }, resume, .. } => {
                let crate::effect::Say::Turn { after, upto, again } = prompt else { return None };
                let how = match (resume, again) {
                    (false, false) => "new",
                    (true, false) => "resumed",
                    (_, true) => "again",
                };
                Some(format!("{agent} speaks {after}..{upto} {how}"))
            }
            Effect::EndStep { .. } => Some("ends it".to_owned()),
            Effect::TellAgent { of: StepMessage::Seat { number, .. }, .. } => Some(format!("tells {number}")),
            _ => None,
        },
        Event::EffectEnded(e) if e.how == crate::words::EffectEnd::Done => None,
        Event::EffectEnded(_) => Some("timer off".to_owned()),
        _ => None,
    };
    commit.events.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

struct Room(Table);

impl Room {
    fn new() -> Room {
        let mut room = Room(Table::new(config()));
        let (name, config) = (ChannelName::new("room").unwrap(), turn::TurnConfig::default());
        room.0.ann(Ask::MakeChannel { name: name.clone(), config, about: Default::default() }).unwrap();
        for agent in ["a", "b"] {
            let agent = AgentName::new(agent).unwrap();
            room.0.ann(Ask::AddMember { channel: name.clone(), agent, times: Default::default() }).unwrap();
        }
        room
    }

    /// `a TURN_COMPLETE {"alone":false}` by the system, or by Ann or the agent itself where the line says so.
    fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (act, expected) = line.split_once(" -> ").unwrap();
            let mut words = act.split_whitespace();
            let (who, kind) = (words.next().unwrap(), words.next().unwrap());
            let (mut event, mut actor) = (serde_json::json!({"type": kind}), Actor::System);
            let at = self.0.now;
            for word in words {
                match word.split_once('=') {
                    Some((name, value)) => {
                        event[name] = serde_json::from_str(value).unwrap_or(Value::from(value));
                    }
                    None if word == "at" => event["at"] = Value::from(at),
                    None if word == "by-ann" => actor = ann(),
                    None => {
                        let name = AgentName::new(who).unwrap();
                        actor = Actor::Agent { name, role: crate::config::Role::Intern };
                    }
                }
            }
            let channel = ChannelName::new("room").unwrap();
            let ask = match kind {
                "rings" => {
                    let timer = self.0.world.timers.iter().next().expect("a timer is set");
                    let effect = timer.1.clone();
                    self.0.now = self.0.now.max(self.0.world.effects[&effect].due().unwrap());
                    Ask::Outcome(Outcome { effect, what: Happened::TimerDue })
                }
                says if says.starts_with("says=") => {
                    Ask::Post { channel, text: says.trim_start_matches("says=").to_owned() }
                }
                _ if who == "architect" => {
                    let event = serde_json::from_value(event).unwrap();
                    Ask::ArchitectEvent { event: Wrapped::Inner(event) }
                }
                _ => {
                    let (agent, event) =
                        (AgentName::new(who).unwrap(), serde_json::from_value(event).unwrap());
                    Ask::TurnEvent { channel, agent, event }
                }
            };
            let commit = self.0.commit(actor, ask, None).unwrap_or_else(|no| panic!("{line}: {no}"));
            assert_eq!(said(&commit), expected, "{line}");
        }
    }
}

#[test]
fn turns_go_round_and_end_by_time() {
    Room::new().play(
        r#"a agent_starts -> a IDLE
           a assigned_to_channel -> a QUEUED, +a, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           b agent_starts -> b IDLE
           b assigned_to_channel -> b QUEUED, +b
           a TURN_COMPLETE alone=false itself -> a QUEUED, timer off, held by nobody, b ACTIVE, held by b, timer 60 s, turn "it is your turn"
           b rings -> timer off, b QUEUED, held by nobody, late, log "b: turn timed out", announcement "⏱️ b turn timed out", b ACTIVE, held by b, timer 60 s, turn "it is your turn"
           b rings -> timer off, b QUEUED, held by nobody, log "b: turn timed out", announcement "⏱️ b turn timed out", rests
           b says=hello by-ann -> human:ann: "hello", woken, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a TURN_COMPLETE alone=true itself -> a IDLE, timer off, held by nobody, -a"#,
    );
}

#[test]
fn a_wait_keeps_the_turn() {
    Room::new().play(
        r#"a agent_starts -> a IDLE
           a assigned_to_channel -> a QUEUED, +a, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s
           a wait_resolved at itself -> a ACTIVE, timer off, timer 60 s
           a interrupt at waitSeconds=300 mode=interrupt by-ann -> a WAITING, timer off, timer 300 s
           a human_override at to=ACTIVE by-ann -> a ACTIVE, timer off, timer 60 s
           a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s
           a human_override at to=QUEUED by-ann -> a QUEUED, timer off, held by nobody, rests
           a says=hello by-ann -> human:ann: "hello", woken, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s
           a rings -> timer off, a QUEUED, held by nobody, late, announcement "⏱️ a waited too long and lost its turn", a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s
           a rings -> timer off, a QUEUED, held by nobody, announcement "⏱️ a waited too long and lost its turn", rests"#,
    );
}

/// 000, edge case 2: whoever timed out has its turn again in the next cycle, and only then does a silent room rest.
#[test]
fn whoever_timed_out_is_heard_once_more_before_the_room_rests() {
    let both = r#"a agent_starts -> a IDLE
        a assigned_to_channel -> a QUEUED, +a, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
        b agent_starts -> b IDLE
        b assigned_to_channel -> b QUEUED, +b"#;
    let late = r#"a rings -> timer off, a QUEUED, held by nobody, late, log "a: turn timed out", announcement "⏱️ a turn timed out", b ACTIVE, held by b, timer 60 s, turn "it is your turn""#;
    let again = r#"b TURN_COMPLETE alone=false itself -> b QUEUED, timer off, held by nobody, a ACTIVE, held by a, timer 60 s, turn "it is your turn""#;
    let mut room = Room::new();
    room.play(both);
    room.play(late);
    room.play(again);
    room.play(
        r#"a rings -> timer off, a QUEUED, held by nobody, log "a: turn timed out", announcement "⏱️ a turn timed out", rests
           a says=hello by-ann -> human:ann: "hello", woken, b ACTIVE, held by b, timer 60 s, turn "it is your turn"
           b TURN_COMPLETE alone=false itself -> b QUEUED, timer off, held by nobody, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a rings -> timer off, a QUEUED, held by nobody, late, log "a: turn timed out", announcement "⏱️ a turn timed out", a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a TURN_COMPLETE alone=false itself -> a QUEUED, timer off, held by nobody, rests"#,
    );
    // It has something to say after all, and what it says is silence for nobody.
    let mut room = Room::new();
    room.play(both);
    room.play(late);
    room.play(again);
    room.play(
        r#"a says=well itself -> agent:a: "well"
           a TURN_COMPLETE alone=false itself -> a QUEUED, a consumed 1, timer off, held by nobody, b ACTIVE, held by b, timer 60 s, turn "it is your turn""#,
    );
}

#[test]
fn whoever_leaves_passes_the_turn_on() {
    let both = r#"a agent_starts -> a IDLE
        a assigned_to_channel -> a QUEUED, +a, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
        b agent_starts -> b IDLE
        b assigned_to_channel -> b QUEUED, +b"#;
    let passed = r#"b ACTIVE, held by b, timer 60 s, turn "it is your turn""#;
    for (waits, line) in [
        (false, format!("a removed_from_channel by-ann -> a IDLE, timer off, held by nobody, -a, {passed}")),
        (
            false,
            format!(
                "a disconnects -> a OFFLINE, timer off, held by nobody, -a, log \"a: agent lost\", \
                 announcement \"⚠️ a disconnected, skipping turn\", {passed}"
            ),
        ),
        (true, format!("a removed_from_channel by-ann -> a IDLE, timer off, held by nobody, -a, {passed}")),
        (
            true,
            format!(
                "a disconnects -> a OFFLINE, timer off, held by nobody, -a, log \"a: agent lost\", {passed}"
            ),
        ),
        (false, "b removed_from_channel by-ann -> b IDLE, -b".to_owned()),
        (false, "b disconnects -> b OFFLINE, -b, log \"b: agent lost\"".to_owned()),
    ] {
        let mut room = Room::new();
        room.play(both);
        if waits {
            room.play("a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s");
        }
        room.play(&line);
    }
}

#[test]
fn the_last_agent_that_is_lost_leaves_a_channel_that_says_so() {
    let alone = r#"a agent_starts -> a IDLE
        a assigned_to_channel -> a QUEUED, +a, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
        a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s"#;
    let queued = "a human_override at to=QUEUED by-ann -> a QUEUED, timer off, held by nobody, rests";
    for before in [&[alone][..], &[alone, queued]] {
        let mut room = Room::new();
        before.iter().for_each(|lines| room.play(lines));
        let (channel, agent) = (ChannelName::new("room").unwrap(), AgentName::new("a").unwrap());
        let event = turn::Event::Disconnects { context: None };
        let lost = room.0.commit(Actor::System, Ask::TurnEvent { channel, agent, event }, None).unwrap();
        let said = said(&lost);
        assert!(said.contains("announcement \"⚠️ No agents available in this channel\""), "{said}");
    }
}

#[test]
fn what_an_agent_was_given_is_consumed_when_it_ends_its_turn_alone() {
    Room::new().play(
        r#"a agent_starts -> a IDLE
           a assigned_to_channel -> a QUEUED, +a, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a says=well itself -> agent:a: "well"
           a TURN_COMPLETE alone=true itself -> a IDLE, a consumed 1, timer off, held by nobody, -a"#,
    );
}

#[test]
fn a_pause_stops_the_wait_for_silence() {
    let config = json!({"autoDetectTurnEnd": true});
    let mut talk = Talk::with("a", config, json!({}));
    let silence = crate::Timer::Silence { channel: talk.room.clone() };
    let listens = |talk: &Talk| talk.table.world.timers.contains_key(&silence);
    let moved = |talk: &mut Talk, actor: Actor, event: turn::Event| {
        let (channel, agent) = (talk.room.clone(), AgentName::new("a").unwrap());
        talk.tell(actor, Ask::TurnEvent { channel, agent, event });
    };
    moved(&mut talk, Actor::System, turn::Event::AgentStarts);
    moved(&mut talk, Actor::System, turn::Event::Assigned);
    let wait = |at| turn::Event::WaitRequested {
        at,
        wait_seconds: 300,
        because: turn::WaitReason::Requested,
        note: None,
    };
    let mode = turn::InterruptBehaviour::Interrupt;
    let interrupt = |at| turn::Event::Interrupt { at, wait_seconds: 300, mode };
    for (actor, pauses) in [(itself("a"), wait(1)), (ann(), interrupt(1))] {
        talk.tell(itself("a"), Ask::Post { channel: talk.room.clone(), text: "well".to_owned() });
        assert!(listens(&talk), "it has said something, and may say more");
        moved(&mut talk, actor, pauses);
        assert!(!listens(&talk), "whoever waits says nothing, and has not ended its turn");
        moved(&mut talk, Actor::System, turn::Event::WaitResolved { at: 2 });
    }
}

#[test]
fn a_turn_that_goes_on_after_its_reply_has_ended_begins_another_reply() {
    for word in [TurnWord::Resume, TurnWord::Override { to: turn::State::Active }] {
        let mut talk = Talk::new("coder intern", "interrupt");
        talk.post("begin");
        talk.post("stop");
        talk.comes("end_reply", Happened::StepEnded { tip: None, usage: Usage::default() });
        let goes_on = talk.word(ann(), "coder", word);
        assert!(
            goes_on.starts_with("coder ACTIVE") && goes_on.contains("coder speaks 0..2 again"),
            "{goes_on}"
        );
    }
}

#[test]
fn the_architect_goes_from_request_to_stories() {
    Room::new().play(
        "architect start -> WAITING
         architect request id=r-1 request=spec -> SETUP, asks workspace -
         architect workspace_ready -> REQUEST, asks request r-1
         architect spec_approved -> DISPATCHING, asks answer r-1, asks stories r-1
         architect stories_queued -> MONITORING
         architect request id=r-2 request=question -> REQUEST, asks request r-2
         architect answered -> MONITORING, asks answer r-2
         architect request id=r-3 request=merge -> REQUEST, asks request r-3
         architect merge_succeeded -> DISPATCHING, asks answer r-3
         architect no_stories_left -> DONE
         architect request id=r-4 request=question -> WAITING, SETUP, asks workspace -
         architect workspace_ready -> REQUEST, asks request r-4
         architect answered -> WAITING, asks answer r-4
         architect request id=r-5 request=spec -> SETUP, asks workspace -
         architect workspace_ready -> REQUEST, asks request r-5
         architect spec_approved -> DISPATCHING, asks answer r-5, asks stories r-5
         architect stories_queued -> MONITORING
         architect channel_closed -> ERROR",
    );
}

#[test]
fn the_architect_asks_a_person_and_gives_up() {
    Room::new().play(
        "architect start -> WAITING
         architect request id=r-1 request=question -> SETUP, asks workspace -
         architect workspace_ready -> REQUEST, asks request r-1
         architect cannot_answer -> ESCALATED, timer 7200 s, asks person r-1
         architect human_answer by-ann -> REQUEST, timer off, asks request r-1
         architect cannot_answer -> ESCALATED, timer 7200 s, asks person r-1
         architect rings -> timer off, ERROR
         architect request id=r-2 request=question -> WAITING, SETUP, asks workspace -
         architect setup_failed reason=disk -> ERROR
         architect recover -> WAITING
         architect channel_closed -> ERROR
         architect recover -> WAITING
         architect request id=r-5 request=question -> SETUP, asks workspace -
         architect workspace_ready -> REQUEST, asks request r-5
         architect abandon reason=lost -> ERROR",
    );
}

/// A room of agents that Adjutant hosts, with a fleet that runs.
struct Talk {
    table: Table,
    room: ChannelName,
}

impl Talk {
    fn new(members: &str, mode: &str) -> Talk {
        Talk::with(members, json!({"humanInterruptMode": mode}), json!({}))
    }

    fn with(members: &str, config: Value, about: Value) -> Talk {
        let mut table = Table::new(super::table::config());
        let room = ChannelName::new("room").unwrap();
        table.ann(Ask::StartFleet { workers: 0 }).unwrap();
        let (config, about) =
            (serde_json::from_value(config).unwrap(), serde_json::from_value(about).unwrap());
        table.ann(Ask::MakeChannel { name: room.clone(), config, about }).unwrap();
        let mut talk = Talk { table, room };
        for agent in members.split_whitespace() {
            talk.ann(talk.add(agent));
        }
        talk
    }

    fn add(&self, agent: &str) -> Ask {
        let agent = AgentName::new(agent).unwrap();
        Ask::AddMember { channel: self.room.clone(), agent, times: Default::default() }
    }

    fn tell(&mut self, actor: Actor, ask: Ask) -> String {
        said(&self.table.commit(actor, ask, None).unwrap())
    }

    fn ann(&mut self, ask: Ask) -> String {
        self.tell(ann(), ask)
    }

    fn post(&mut self, text: &str) -> String {
        self.ann(Ask::Post { channel: self.room.clone(), text: text.to_owned() })
    }

    fn word(&mut self, actor: Actor, agent: &str, word: TurnWord) -> String {
        let agent = AgentName::new(agent).unwrap();
        self.tell(actor, Ask::TakeTurn { channel: self.room.clone(), agent, word })
    }

    /// What came of the one effect of this kind.
    fn comes(&mut self, kind: &str, what: Happened) -> String {
        let of_kind = self.table.world.effects.iter().find(|(_, effect)| effect.kind() == kind);
        let effect = of_kind.unwrap_or_else(|| panic!("no {kind} is under way")).0.clone();
        self.tell(Actor::System, Ask::Outcome(Outcome { effect, what }))
    }

    fn replies(&mut self, text: &str) -> String {
        self.replies_as(StepEnding::NotDone, text)
    }

    fn replies_as(&mut self, ending: StepEnding, text: &str) -> String {
        let usage = Usage { cost: Some(7), input_tokens: 1, output_tokens: 1 };
        let output = text.to_owned();
        self.comes("start_reply", Happened::StepFinished { ending, output, tip: None, tree: None, usage })
    }

    /// The reply that is under way.
    fn channel_reply(&self) -> machines::names::EffectId {
        let replies = self.table.world.effects.iter().filter(|(_, effect)| effect.kind() == "start_reply");
        replies.map(|(id, _)| id.clone()).next().expect("somebody speaks")
    }

    fn channel(&self) -> &crate::rooms::Channel {
        self.table.world.channel(&self.room).unwrap()
    }

    fn receipts(&self, number: u64) -> String {
        let channel = self.channel();
        let of = |agent: &AgentName| format!("{agent} {}", channel.receipt(number, agent));
        channel.members.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

fn itself(agent: &str) -> Actor {
    Actor::Agent { name: AgentName::new(agent).unwrap(), role: crate::config::Role::Specialist }
}

/// What a waiting list needs: an agent that has paused its turn.
pub(super) fn an_agent_that_was_lost() -> Table {
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("hello");
    let why = StepFailure::Failed;
    let crash = Happened::StepFailed { error: "exit 1".to_owned(), why, usage: Usage::default() };
    talk.comes("start_reply", crash);
    talk.table
}

pub(super) fn an_agent_that_waits() -> Table {
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("hello");
    let note = Some("the build".to_owned());
    talk.word(itself("coder"), "coder", TurnWord::Wait { note, seconds: None });
    talk.table
}

#[test]
fn hosted_agents_answer_a_person_in_turn_and_then_the_room_rests() {
    let mut talk = Talk::new("coder intern", "inject");
    let spoken = |talk: &Talk| talk.table.world.seats.len();
    assert_eq!(spoken(&talk), 0, "nobody has said anything, so nobody is asked");
    assert_eq!(
        talk.post("which way?"),
        "human:ann: \"which way?\", coder QUEUED, +coder, coder ACTIVE, held by coder, timer 60 s, turn \"it is your turn\", \
         coder has 1, coder speaks 0..1 new, intern QUEUED, +intern"
    );
    assert_eq!(talk.receipts(1), "coder delivered, intern queued");
    assert_eq!(
        talk.replies("left"),
        "agent:coder: \"left\", coder QUEUED, coder consumed 2, timer off, held by nobody, intern ACTIVE, held by intern, \
         timer 60 s, turn \"it is your turn\", intern has 2, intern speaks 0..2 new"
    );
    assert_eq!(talk.receipts(1), "coder consumed, intern delivered");
    assert_eq!(
        talk.replies("PASS"),
        "intern QUEUED, intern consumed 2, timer off, held by nobody, coder ACTIVE, held by coder, timer 60 s, \
         turn \"it is your turn\", coder QUEUED, timer off, held by nobody, rests",
        "its own words are nothing to answer: a full cycle without a post rests the room"
    );
    assert_eq!(talk.table.world.spend.cost, 14, "replies are paid for");
    assert_eq!(talk.table.world.spend.by_agent.len(), 2);
    assert_eq!(
        talk.post("really?"),
        "human:ann: \"really?\", woken, intern ACTIVE, held by intern, timer 60 s, turn \"it is your turn\", intern has 3, \
         intern speaks 2..3 resumed"
    );
}

/// Nobody is started by a room whose fleet does not run, and the room says so.
#[test]
fn a_room_waits_for_the_fleet_and_goes_on_with_it() {
    let mut talk = Talk::new("coder intern", "inject");
    talk.ann(Ask::StopFleet);
    assert_eq!(
        talk.post("hello"),
        "human:ann: \"hello\", coder QUEUED, +coder, stalls, intern QUEUED, +intern"
    );
    let on = talk.ann(Ask::StartFleet { workers: 0 });
    assert!(on.starts_with("coder ACTIVE, held by coder") && on.contains("coder speaks 0..1 new"), "{on}");
    talk.ann(Ask::StopFleet);
    let cut_off = Happened::StepFinished {
        ending: StepEnding::CutOff,
        output: String::new(),
        tip: None,
        tree: None,
        usage: Usage::default(),
    };
    assert_eq!(talk.comes("start_reply", cut_off), "");
    assert_eq!(talk.ann(Ask::StartFleet { workers: 0 }), "coder speaks 0..1 again");
}

#[test]
fn a_person_is_heard_by_the_mode_of_the_room() {
    let speaking = |mode: &str| {
        let mut talk = Talk::new("coder intern", mode);
        talk.post("begin");
        talk
    };
    let mut talk = speaking("queue");
    assert_eq!(talk.post("more"), "human:ann: \"more\" held");
    assert_eq!(talk.receipts(2), "coder queued, intern queued");
    let after = talk.replies("yes");
    assert!(after.contains("released, intern ACTIVE") && after.contains("intern speaks 0..3 new"), "{after}");

    let mut talk = speaking("inject");
    assert_eq!(talk.post("more"), "human:ann: \"more\" held, tells 2");
    assert_eq!(talk.comes("tell_in_reply", Happened::Told { heard: true }), "coder heard 2");
    assert_eq!(talk.receipts(2), "coder delivered, intern queued");
    talk.post("and more");
    assert_eq!(talk.comes("tell_in_reply", Happened::Told { heard: false }), "");
    assert_eq!(talk.receipts(3), "coder queued, intern queued");
    talk.replies("yes");
    assert_eq!(
        talk.receipts(2),
        "coder consumed, intern delivered",
        "what it heard in its turn is not told again"
    );

    let mut talk = speaking("parallel");
    assert_eq!(talk.post("more"), "human:ann: \"more\", tells 2");
    talk.tell(
        itself("intern"),
        Ask::Hear { channel: talk.room.clone(), agent: AgentName::new("intern").unwrap() },
    );
    assert_eq!(talk.receipts(2), "coder queued, intern delivered");

    let mut talk = speaking("interrupt");
    assert_eq!(
        talk.post("stop"),
        "human:ann: \"stop\", coder WAITING, timer off, ends it, timer off, timer 300 s"
    );
    assert_eq!(talk.word(ann(), "coder", TurnWord::Resume), "coder ACTIVE, timer off, timer 60 s");
    let gone = Happened::StepEnded { tip: None, usage: Usage::default() };
    assert_eq!(talk.comes("end_reply", gone), "coder has 2, coder speaks 0..2 again");
}

/// The program's word that the limit is reached is nobody's; what the agent said before is, and ends its turn.
#[test]
fn a_reply_that_runs_out_of_turns_or_money_ends_the_turn_and_is_announced() {
    let turns = "announcement \"⚠️ coder used the turns that it had for a reply, and was not finished\"";
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("begin");
    let after = talk.replies_as(StepEnding::OutOfTurns, "I look at it first.");
    let expected = format!("agent:coder: \"I look at it first.\", {turns}, coder QUEUED, coder consumed 2");
    assert!(after.starts_with(&expected), "{after}");
    let after = talk.replies_as(StepEnding::OutOfMoney, "");
    let money = "announcement \"⚠️ intern used the money that it had for a reply, and was not finished\"";
    assert!(after.starts_with(&format!("{money}, intern QUEUED, intern consumed 2")), "{after}");

    // Nothing more comes, so that there is no signal to wait for either.
    let mut talk = Talk::with("coder intern", json!({}), json!({"ends": "signal"}));
    talk.post("begin");
    let after = talk.replies_as(StepEnding::OutOfTurns, "");
    assert!(after.starts_with(&format!("{turns}, coder QUEUED, coder consumed 1")), "{after}");
}

/// A program that does not end by itself at its limit is ended.
#[test]
fn a_reply_that_goes_on_past_its_turns_is_ended_and_announced() {
    let mut talk = Talk::new("coder intern", "inject");
    let mut config = (*talk.table.world.config).clone();
    config.agents.get_mut(&AgentName::new("coder").unwrap()).unwrap().max_turns = Some(2);
    talk.tell(Actor::System, Ask::Configure { config: Box::new(config) });
    talk.post("begin");
    let turn = |turn| Happened::Turn {
        turn,
        calls: Vec::new(),
        output: Some(format!("Look {turn}.")),
        usage: Usage::default(),
    };
    assert!(!talk.comes("start_reply", turn(2)).contains("announcement"), "it may use all that it has");
    let after = talk.comes("start_reply", turn(3));
    let told = "agent:coder: \"Look 3.\", announcement \"⚠️ coder used the turns that it had for a reply, and was not finished\"";
    assert!(after.contains(told), "{after}");
    let ends = |world: &crate::World| world.effects.values().any(|effect| effect.kind() == "end_reply");
    assert!(ends(&talk.table.world), "its program is told to end");
}

#[test]
fn a_hosted_agent_that_crashes_is_announced_and_comes_back_only_by_a_person() {
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("begin");
    let crash = Happened::StepFailed {
        error: "exit 1".to_owned(),
        why: StepFailure::Failed,
        usage: Usage::default(),
    };
    let after = talk.comes("start_reply", crash.clone());
    assert!(
        after.contains("coder OFFLINE, timer off, held by nobody, -coder, log \"coder: agent lost: exit 1\""),
        "{after}"
    );
    assert!(
        after.contains("announcement \"⚠️ coder disconnected, skipping turn\", intern ACTIVE"),
        "{after}"
    );
    let after = talk.comes("start_reply", crash);
    assert!(after.ends_with("announcement \"⚠️ No agents available in this channel\""), "{after}");
    let alone = talk.post("anybody?");
    assert_eq!(alone, "human:ann: \"anybody?\", announcement \"⚠️ No agents available in this channel\"");
    let back = talk.ann(talk.add("intern"));
    assert_eq!(
        back,
        "intern IDLE, intern QUEUED, +intern, intern ACTIVE, held by intern, timer 60 s, turn \"it is your turn\", intern has 2, \
         intern speaks 0..2 new"
    );
    let lost = Happened::StepFailed {
        error: "in use".to_owned(),
        why: StepFailure::Session,
        usage: Usage::default(),
    };
    assert_eq!(
        talk.comes("start_reply", lost),
        "intern speaks 0..2 again",
        "a lost session is tried once more"
    );
}

#[test]
fn an_outage_pauses_the_turn_of_a_hosted_agent_and_its_end_gives_it_back() {
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("begin");
    let service = machines::names::ServiceName::new("model").unwrap();
    let away =
        Happened::Outage { service, resets_at: None, error: None, refused: false, usage: Usage::default() };
    let after = talk.comes("start_reply", away);
    // The last is for the fleet, which stands still meanwhile.
    assert_eq!(after, "timer 30 s, coder WAITING, timer off, timer 900 s, timer 60 s");
    talk.table.now += 40_000;
    let back = Happened::Health { healthy: true };
    talk.comes("timer", Happened::TimerDue);
    let after = talk.comes("check_health", back);
    assert!(
        after.contains("coder ACTIVE") && after.contains("timer 60 s, coder speaks 0..1 again"),
        "{after}"
    );
}

/// Probed: nobody speaks with a service that is away but the one that tries it, after one poll, then two.
#[test]
fn an_agent_in_a_room_tries_a_service_that_nothing_can_ask() {
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("begin");
    let service = machines::names::ServiceName::new("model").unwrap();
    let away = Happened::Outage {
        service: service.clone(),
        resets_at: None,
        error: None,
        refused: false,
        usage: Usage::default(),
    };
    let polled = |talk: &mut Talk| {
        let poll = talk.table.world.timers[&crate::Timer::HealthPoll].clone();
        talk.table.now = talk.table.world.effects[&poll].due().unwrap();
        talk.tell(Actor::System, Ask::Outcome(Outcome { effect: poll, what: Happened::TimerDue }));
        talk.comes("check_health", Happened::HealthUnknown)
    };
    let healthy = |talk: &Talk| talk.table.world.health[&service].healthy;
    talk.comes("start_reply", away.clone());
    let tried = polled(&mut talk);
    assert!(tried.contains("coder ACTIVE") && tried.contains("coder speaks 0..1 again"), "{tried}");
    assert!(!healthy(&talk), "a timer is no health");
    talk.comes("start_reply", away);
    assert_eq!(polled(&mut talk), "", "what failed once waits for two polls");
    assert!(polled(&mut talk).contains("coder speaks 0..1 again"));
    assert!(!healthy(&talk));
    talk.replies("here I am");
    assert!(healthy(&talk), "it has come through");
}

#[test]
fn a_turn_ends_by_a_word_or_by_silence_where_a_reply_does_not_end_it() {
    let quick = json!({"autoDetectTurnEnd": true, "autoDetectSilenceSeconds": 5});
    let mut talk = Talk::with("coder intern", quick.clone(), json!({"ends": "signal"}));
    talk.post("begin");
    assert_eq!(talk.replies("let me see"), "agent:coder: \"let me see\", timer 5 s");
    talk.table.now += 5_000;
    let silence = crate::Timer::Silence { channel: talk.room.clone() };
    let effect = talk.table.world.timers[&silence].clone();
    let commit =
        talk.table.commit(Actor::System, Ask::Outcome(Outcome { effect, what: Happened::TimerDue }), None);
    let moved = commit.unwrap().events.iter().find_map(Event::transition).unwrap();
    assert_eq!((moved.trigger.as_str(), moved.to.as_str()), ("auto", "QUEUED"));

    let mut talk = Talk::with("coder intern", json!({}), json!({"ends": "signal"}));
    talk.post("begin");
    let after = talk.replies("done here\nTURN_COMPLETE");
    assert!(after.starts_with("agent:coder: \"done here\", coder QUEUED"), "{after}");
    talk.replies("forgot to say so");
    talk.table.now += 60_000;
    let turn = talk.table.world.timers.iter().find(|(timer, _)| matches!(timer, crate::Timer::Turn { .. }));
    let effect = turn.unwrap().1.clone();
    let after = talk.tell(Actor::System, Ask::Outcome(Outcome { effect, what: Happened::TimerDue }));
    assert!(after.contains("unended \"intern: Agent completed response without TURN_COMPLETE\""), "{after}");
}

/// Nobody has to allow an agent of any program to look.
#[test]
fn a_hosted_agent_may_look_by_commands_and_change_nothing() {
    let mut talk = Talk::new("coder intern", "inject");
    let mut config = super::table::config();
    let rule = json!({"pattern": "Bash(cat secret*)", "colour": "red"});
    config.policy.tools.push(serde_json::from_value(rule).unwrap());
    config.agents.get_mut(&AgentName::new("coder").unwrap()).unwrap().allowed_tools = None;
    talk.tell(Actor::System, Ask::Configure { config: Box::new(config) });
    talk.post("begin");
    let mut turn = 0;
    let mut asks = |talk: &mut Talk, tool: &str, argument: &str| {
        turn += 1;
        let (call, tool, argument) = (format!("c{turn}").into(), tool.into(), argument.to_owned());
        let input = Default::default();
        let effect = talk.channel_reply();
        let what = Happened::CallAsked { call, tool, argument, input, turn };
        let commit = talk.table.commit(Actor::System, Ask::Outcome(Outcome { effect, what }), None).unwrap();
        let answer = commit.events.iter().find_map(|event| match event {
            Event::EffectAsked(asked) => match &asked.what {
                Effect::AnswerCall { allow, note, .. } => Some((*allow, note.clone())),
                _ => None,
            },
            _ => None,
        });
        answer.expect("every call is answered")
    };
    for (tool, argument, allowed) in [
        ("Read", "src/a.rs", true),
        ("Bash", "cat src/a.rs | head -n 5", true),
        ("Bash", "cat src/a.rs > b", false),
        ("Edit", "src/a.rs", false),
    ] {
        let (allow, note) = asks(&mut talk, tool, argument);
        assert_eq!(allow, allowed, "{tool}({argument}): {note}");
        assert_eq!(note.contains("not for conversations"), !allowed, "{tool}({argument}): {note}");
    }
    // What the policy asks a person about is asked of nobody here, though it only reads.
    let (allow, note) = asks(&mut talk, "Bash", "cat secrets.txt");
    assert!(!allow && note.contains("the policy would ask a person"), "{note}");
}

#[test]
fn only_whoever_has_the_turn_speaks() {
    let mut talk = Talk::new("coder intern", "inject");
    talk.post("begin");
    let post = Ask::Post { channel: talk.room.clone(), text: "me first".to_owned() };
    let refused = talk.table.tell(itself("intern"), post.clone()).unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "NOT_YOUR_TURN"));
    talk.tell(itself("coder"), post);
    let after = talk.replies("said it by a tool already");
    assert!(!after.contains("said it"), "{after}");
    assert_eq!(talk.word(ann(), "intern", TurnWord::Cancel).matches("ends it").count(), 1);
    let left = |talk: &Talk| {
        talk.channel().places[talk.channel().current.as_ref().unwrap()].timeout_at.unwrap() - talk.table.now
    };
    talk.post("again");
    talk.table.now += 15_000;
    let (before, stopped) = (left(&talk), talk.table.now);
    talk.table.now += 3_600_000;
    assert_eq!(
        talk.tell(Actor::System, Ask::WasAway { since: stopped, hosted: true }),
        "timer off, timer 45 s"
    );
    assert_eq!((before, left(&talk)), (45_000, 45_000), "an hour without anybody costs no turn");
}

#[test]
fn a_review_room_decides_about_its_task() {
    let mut table = check(Table::new(super::table::config()), "ticket t1\nfleet 1\ntree\nturn\ndone\ngreen");
    let room = ChannelName::new("room").unwrap();
    let about: crate::rooms::About = serde_json::from_value(json!({"task": "t1"})).unwrap();
    table
        .ann(Ask::MakeChannel { name: room.clone(), config: Default::default(), about: about.clone() })
        .unwrap();
    let other = ChannelName::new("other").unwrap();
    let again = table.ann(Ask::MakeChannel { name: other, config: Default::default(), about }).unwrap_err();
    assert_eq!(again.code, "EXISTS", "a task has one room");
    let mut talk = Talk { table, room };
    talk.ann(talk.add("intern"));
    talk.post("is it good?");
    let decide =
        |approve| Ask::DecideInRoom { channel: talk.room.clone(), approve, note: "it is not".to_owned() };
    let (yes, no) = (decide(true), decide(false));
    assert_eq!(talk.table.tell(itself("intern"), yes.clone()).unwrap_err().status, 403);
    let after = talk.ann(no);
    assert!(after.starts_with("announcement \"t1 is IN_PROGRESS now\", closed, intern IDLE"), "{after}");
    assert_eq!(talk.table.ann(yes).unwrap_err().code, "CHANNEL_CLOSED");
}
