//! Agents that are connected from outside.

use super::commands::agent;
use super::table::*;
use crate::command::Presence;
use crate::config::Role;
use crate::{Actor, Ask, Refusal, Reply, Timer};
use machines::names::{AgentName, ChannelName};
use machines::task::{self, Payload, Status};
use machines::turn;

fn outsider() -> Actor {
    agent("outsider", Role::Specialist)
}

fn named() -> AgentName {
    AgentName::new("outsider").unwrap()
}

fn says(table: &mut Table, what: Presence) -> Result<Reply, Refusal> {
    table.tell(outsider(), Ask::Presence { agent: named(), what })
}

/// Connected, and at work on a task.
fn at_work() -> Table {
    let mut table = check(Table::new(config()), "ticket t1");
    says(&mut table, Presence::Connect).unwrap();
    let assign = Payload { assignee_ids: Some(vec!["outsider".into()]), ..Payload::default() };
    table.move_task(ann(), "t1", Status::Assigned, assign).unwrap();
    let plan = task::WorkPlan::new(["look", "change", "test"]);
    let plan = Payload { work_plan: Some(plan), ..Payload::default() };
    table.move_task(outsider(), "t1", Status::InProgress, plan).unwrap();
    let open = Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None };
    table.tell(outsider(), open).unwrap();
    table
}

fn rings(table: &mut Table) {
    table.ring(|timer| matches!(timer, Timer::Heartbeat { .. })).unwrap();
}

/// AgentConnected, AgentGone: silence loses the lease, and the third time blocks the task.
#[test]
fn an_agent_that_misses_its_heartbeats_loses_what_it_held() {
    let mut table = at_work();
    rings(&mut table);
    assert_eq!(table.stands("task t1"), "task t1 IN_PROGRESS");
    assert_eq!(table.stands("run t1.1"), "run t1.1 error");
    assert!(table.world.agents.is_empty());
    assert_eq!(table.world.task(&task("t1")).unwrap().work.lost_workers, 1);
    assert_eq!(says(&mut table, Presence::Heartbeat).unwrap_err().code, "NOT_CONNECTED");
}

/// One that heartbeats keeps its task, however long it reports nothing else; most of them leave nothing in the log.
#[test]
fn heartbeats_keep_an_agent_and_its_lease_and_few_of_them_are_written_down() {
    let mut table = at_work();
    let before = table.world.seq;
    for _ in 0..40 {
        table.now += 10_000;
        says(&mut table, Presence::Heartbeat).unwrap();
    }
    assert_eq!(table.stands("run t1.1"), "run t1.1 starting");
    assert!(table.world.task(&task("t1")).unwrap().work.lease.is_some());
    // Each that counts sets two timers anew.
    let written = table.world.seq - before;
    assert!((1..=40 / 3 * 5).contains(&written), "{written} events for 40 heartbeats");
}

/// AgentGone: it says so itself, so that no worker was lost.
#[test]
fn an_agent_that_disconnects_gives_its_task_back() {
    let mut table = at_work();
    says(&mut table, Presence::Disconnect).unwrap();
    assert_eq!(table.stands("run t1.1"), "run t1.1 error");
    assert_eq!(table.stands("task t1"), "task t1 IN_PROGRESS");
    assert_eq!(table.world.task(&task("t1")).unwrap().work.lost_workers, 0);
    assert!(table.world.timers.is_empty(), "{:?}", table.world.timers);
}

/// Its turn and its signs of life wait for somebody who hears them.
#[test]
fn time_without_a_server_is_not_held_against_an_agent_from_outside() {
    let mut table = Table::new(config());
    let room = ChannelName::new("room").unwrap();
    let name = room.clone();
    table.ann(Ask::MakeChannel { name, config: Default::default(), about: Default::default() }).unwrap();
    table.ann(Ask::AddMember { channel: room.clone(), agent: named(), times: Default::default() }).unwrap();
    says(&mut table, Presence::Connect).unwrap();
    let left = |table: &Table| -> Vec<i64> {
        let due = |id: &machines::names::EffectId| table.world.effects[id].due().unwrap() - table.now;
        table.world.timers.values().map(due).collect()
    };
    let (before, stopped) = (left(&table), table.now);
    table.now += 3_600_000;
    table.tell(Actor::System, Ask::WasAway { since: stopped, hosted: true }).unwrap();
    assert!(left(&table).iter().all(|left| *left < 0), "a server was there, and only no fleet");
    table.tell(Actor::System, Ask::WasAway { since: stopped, hosted: false }).unwrap();
    assert_eq!((left(&table), before.len()), (before, 2));
}

/// Its presence is one, its place in each channel its own.
#[test]
fn an_agent_s_places_in_channels_follow_its_presence() {
    let mut table = Table::new(config());
    let room = ChannelName::new("room").unwrap();
    table
        .ann(Ask::MakeChannel {
            name: room.clone(),
            config: turn::TurnConfig::default(),
            about: Default::default(),
        })
        .unwrap();
    table.ann(Ask::AddMember { channel: room.clone(), agent: named(), times: Default::default() }).unwrap();
    let state = |table: &Table| table.world.channels[&room].places[&named()].state;
    says(&mut table, Presence::Connect).unwrap();
    assert_eq!(state(&table), turn::State::Active, "it was added while it was away, and is here now");
    says(&mut table, Presence::Disconnect).unwrap();
    says(&mut table, Presence::Connect).unwrap();
    assert_eq!(state(&table), turn::State::Idle, "who comes back is not queued again by itself");
    let assigned = Ask::TurnEvent { channel: room.clone(), agent: named(), event: turn::Event::Assigned };
    table.tell(Actor::System, assigned).unwrap();
    assert_eq!(state(&table), turn::State::Active);
    rings(&mut table);
    assert_eq!(state(&table), turn::State::Offline);
    says(&mut table, Presence::Connect).unwrap();
    assert_eq!(state(&table), turn::State::Idle, "it is not queued again by itself");
    says(&mut table, Presence::Disconnect).unwrap();
    assert_eq!(state(&table), turn::State::Offline);
}

/// AgentDisabled, AgentEnabled: OFFLINE wherever it has a place, and back to IDLE where it is there.
#[test]
fn an_agent_that_a_person_disables_has_no_place_anywhere_until_it_is_enabled() {
    let mut table = Table::new(config());
    let room = ChannelName::new("room").unwrap();
    let name = room.clone();
    table.ann(Ask::MakeChannel { name, config: Default::default(), about: Default::default() }).unwrap();
    table.ann(Ask::AddMember { channel: room.clone(), agent: named(), times: Default::default() }).unwrap();
    says(&mut table, Presence::Connect).unwrap();
    let state = |table: &Table| table.world.channels[&room].places[&named()].state;
    let switch = |enabled| Ask::SwitchAgent { agent: named(), enabled, reason: Some("dear".to_owned()) };
    assert_eq!(table.tell(outsider(), switch(false)).unwrap_err().status, 403, "nobody disables itself");
    table.ann(switch(false)).unwrap();
    let seq = table.world.seq;
    table.ann(switch(false)).unwrap();
    assert_eq!((state(&table), table.world.seq), (turn::State::Offline, seq), "twice is once");
    says(&mut table, Presence::Disconnect).unwrap();
    says(&mut table, Presence::Connect).unwrap();
    assert_eq!(state(&table), turn::State::Offline, "connecting alone does not lead out of it");
    table.ann(switch(true)).unwrap();
    assert_eq!(state(&table), turn::State::Idle, "it is there, and not queued again by itself");
    let unknown = Ask::SwitchAgent { agent: AgentName::new("who").unwrap(), enabled: false, reason: None };
    assert_eq!(table.ann(unknown).unwrap_err().status, 404);
}

/// No worker takes a task for it, and nobody begins a run with it.
#[test]
fn a_disabled_agent_is_given_no_task() {
    let mut table = Table::new(config());
    let coder = table.world.config.fleet.agent.clone();
    let switch = |enabled| Ask::SwitchAgent { agent: coder.clone(), enabled, reason: None };
    table.tell(Actor::System, Ask::Configure { config: Box::new(config()) }).unwrap();
    table.ann(switch(false)).unwrap();
    let mut table = check(table, "ticket t1");
    table.tell(Actor::System, Ask::StartFleet { workers: 1 }).unwrap();
    assert_eq!(table.stands("task t1"), "task t1 INBOX");
    let waiting = crate::waiting::waiting(&table.world, &Default::default(), table.now);
    let kinds: Vec<_> = waiting.iter().map(|item| item.kind).collect();
    assert!(kinds.contains(&crate::waiting::Kind::AgentDisabled), "{kinds:?}");
    table.ann(switch(true)).unwrap();
    assert_eq!(table.stands("task t1"), "task t1 IN_PROGRESS");
}
