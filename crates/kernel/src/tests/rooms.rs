//! Channels and the architect, driven through the kernel: what each row asks for is in the commit.

use super::table::*;
use crate::command::*;
use crate::{Actor, Effect, Event};
use machines::names::{AgentName, ChannelName};
use machines::suspended::Wrapped;
use machines::turn;
use serde_json::Value;

pub(super) const ALL: &[fn()] = &[
    turns_go_round_and_end_by_time,
    a_wait_keeps_the_turn,
    whoever_leaves_passes_the_turn_on,
    the_architect_goes_from_request_to_stories,
    the_architect_asks_a_person_and_gives_up,
];

/// What a commit holds, in words.
fn said(commit: &Commit) -> String {
    let word = |event: &Event| match event {
        Event::TurnMoved(e) => Some(format!("{} {}", e.agent, e.to)),
        Event::RingChanged(e) => Some(format!("{}{}", if e.joined { '+' } else { '-' }, e.agent)),
        Event::TurnHeld(e) => {
            Some(format!("held by {}", e.agent.as_ref().map_or("nobody", AgentName::as_str)))
        }
        Event::ChannelSaid(e) => Some(format!("{} \"{}\"", e.kind, e.text)),
        Event::ArchitectMoved(e) => Some(e.to.to_string()),
        Event::ArchitectAsked(e) => Some(format!("asks {} {}", e.what, e.request.as_deref().unwrap_or("-"))),
        Event::EffectAsked(e) => match &e.what {
            Effect::Timer { due, set_at, .. } => {
                Some(format!("timer {} s", (due - set_at.unwrap_or(*due)) / 1000))
            }
            _ => None,
        },
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
        room.0.ann(Ask::MakeChannel { name: name.clone(), config }).unwrap();
        for agent in ["a", "b"] {
            let agent = AgentName::new(agent).unwrap();
            room.0.ann(Ask::AddMember { channel: name.clone(), agent }).unwrap();
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
           b rings -> timer off, b QUEUED, held by nobody, log "b: turn timed out", announcement "⏱️ b turn timed out", a ACTIVE, held by a, timer 60 s, turn "it is your turn"
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
           a human_override at to=QUEUED by-ann -> a QUEUED, timer off, held by nobody, a ACTIVE, held by a, timer 60 s, turn "it is your turn"
           a wait_requested at waitSeconds=300 itself -> a WAITING, timer off, timer 300 s
           a rings -> timer off, a QUEUED, held by nobody, a ACTIVE, held by a, timer 60 s, turn "it is your turn""#,
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
