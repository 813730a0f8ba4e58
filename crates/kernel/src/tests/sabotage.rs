//! Each invariant is broken once, by hand, and is named when it is.

use super::table::*;
use crate::World;
use crate::effect::{Effect, Timer};
use crate::invariants::{Invariant, check as find, check_commit};
use crate::rooms::Channel;
use crate::world::*;
use machines::names::{AgentName, ChannelName, EffectId, RunId};
use machines::task::Status;
use machines::wire::Wire;
use machines::{run, turn, worker as machine};
use smol_str::SmolStr;
use std::sync::Arc;

/// A World with one task in work, one in review and queued, one done, and one waiting for a person.
fn busy() -> World {
    let mut table = check(
        Table::with(|config| config.fleet.review = crate::config::Review::Auto),
        "ticket t1
         ticket t2
         ticket t3
         ticket t4
         ticket t5 t4
         fleet 4
         tree t1
         done t1
         green t1
         merge-green t1
         main-moved t1
         tree t2
         turn t2
         tree t3
         done t3
         green t3
         tree t4
         asks t4 git push",
    );
    let kind = crate::words::RequestKind::Question;
    let ask = crate::Ask::MakeRequest { kind, task: None, run: None, text: "which way?".to_owned() };
    table.ann(ask).unwrap();
    table.world
}

fn edit_task(world: &mut World, id: &str, edit: impl FnOnce(&mut Task)) {
    edit(Arc::make_mut(world.tasks.get_mut(&task(id)).unwrap()));
}

fn edit_worker(world: &mut World, of: &str, edit: impl FnOnce(&mut Worker)) {
    let name = world.worker_of(&task(of)).unwrap().name.clone();
    edit(Arc::make_mut(world.workers.get_mut(&name).unwrap()));
}

fn edit_run(world: &mut World, id: &str, edit: impl FnOnce(&mut Run)) {
    edit(Arc::make_mut(world.runs.get_mut(&RunId::new(id).unwrap()).unwrap()));
}

/// One way to break each.
fn sabotage(invariant: Invariant, world: &mut World) {
    match invariant {
        Invariant::OneTurnHolder => {
            let mut channel = Channel::default();
            for name in ["a", "b"] {
                let place = turn::Turn { state: turn::State::Active, ..turn::Turn::default() };
                channel.places.insert(AgentName::new(name).unwrap(), place);
            }
            world.channels.insert(ChannelName::new("room").unwrap(), Arc::new(channel));
        }
        Invariant::RoomsAgree => {
            let channel = Channel { current: Some(AgentName::new("a").unwrap()), ..Channel::default() };
            world.channels.insert(ChannelName::new("room").unwrap(), Arc::new(channel));
        }
        Invariant::DisabledAreStill => {
            let agent = AgentName::new("a").unwrap();
            let mut channel = Channel::default();
            let place = turn::Turn { state: turn::State::Idle, ..turn::Turn::default() };
            channel.places.insert(agent.clone(), place);
            channel.resting.insert(agent.clone());
            world.channels.insert(ChannelName::new("room").unwrap(), Arc::new(channel));
            let by = "human:ann".into();
            world.disabled.insert(agent, crate::world::Disabled { since: 1, by, reason: None });
        }
        Invariant::RoomsComeToRest => {
            let quiet = [AgentName::new("a").unwrap()].into_iter().collect();
            world
                .channels
                .insert(ChannelName::new("room").unwrap(), Arc::new(Channel { quiet, ..Channel::default() }));
        }
        Invariant::RequestsKept => {
            world.architect_queue.push_back(machines::names::RequestId::new("r99").unwrap());
        }
        Invariant::RequestsStay => world.requests.clear(),
        Invariant::AnswersAreBound => {
            let asked = world.requests.values().next().unwrap().id.clone();
            let request = Arc::make_mut(world.requests.get_mut(&asked).unwrap());
            let (by, text) = (SmolStr::new_static("agent:lead"), "yes".to_owned());
            request.answer =
                Some(crate::world::GivenAnswer { by, at: 0, text, abandoned: false, reply: None });
        }
        Invariant::StandstillIsSaid => world.effects.clear(),
        Invariant::LeaseIsMutual => edit_task(world, "t2", |task| task.work.lease = None),
        Invariant::WorkerHasTask => {
            edit_worker(world, "t2", |worker| worker.machine.status = machine::State::Idle)
        }
        Invariant::TreesApart => {
            let place = world.task(&task("t2")).unwrap().work.place.clone();
            edit_task(world, "t4", |task| task.work.place = place);
        }
        Invariant::ProposalsWait => edit_task(world, "t2", |task| {
            task.origin.proposed = Some(Proposed {
                by: AgentName::new("coder").unwrap(),
                run: None,
                on: None,
                root: None,
                state: ProposalState::Waiting,
            });
        }),
        Invariant::DoneIsLanded => edit_task(world, "t1", |task| task.landing.landed = None),
        Invariant::ClosedIsFinal => {
            let what = Effect::WriteTicket {
                task: task("t2"),
                ticket: "t2".into(),
                status: machines::task::TicketStatus::Closed,
                note: None,
            };
            world.effects.insert(EffectId::new("x1").unwrap(), Arc::new(what));
        }
        Invariant::LiveRunIsHeld => edit_run(world, "t2.1", |run| run.holder = Holder::Worker(worker("Z"))),
        Invariant::TimersAreNeeded => {
            let timer = Timer::Backoff { worker: worker("A") };
            let id = EffectId::new("x2").unwrap();
            world
                .effects
                .insert(id.clone(), Arc::new(Effect::Timer { due: 1, timer: timer.clone(), set_at: None }));
            world.timers.insert(timer, id);
        }
        Invariant::FinalIsLeftAlone => {
            let lease = Lease { holder: Holder::Outside(AgentName::new("x").unwrap()), attempt: 1 };
            edit_task(world, "t1", |task| task.work.lease = Some(lease));
        }
        Invariant::NothingLeavesFinal => edit_task(world, "t1", |task| task.machine.status = Status::Review),
        Invariant::KeysAgree => {
            world.kept_order.insert(7, ("project".into(), "k".into()));
        }
        Invariant::SuspendedKeepsOrigin => {
            world.suspended.insert(RunId::new("t2.1").unwrap());
        }
        Invariant::IndexesAgree => {
            world.claimable.clear();
            world.by_status.entry(Status::Inbox).or_default().insert(9, task("t9"));
        }
        Invariant::QueueAgrees => {
            world.queue.insert((2, 99), task("t2"));
        }
        Invariant::StepsAgree => {
            edit_run(world, "t2.1", |run| run.step = Some(EffectId::new("gone").unwrap()))
        }
        Invariant::MoneyAdds => world.spend.cost += 1,
        Invariant::QuestionsAgree => edit_task(world, "t4", |task| task.approval = None),
        Invariant::MainIsTested => world.main.under_way = Some(EffectId::new("gone").unwrap()),
        Invariant::NothingSleeps => {
            edit_run(world, "t2.1", |run| run.step = None);
        }
        Invariant::PastIsKnown => edit_task(world, "t2", |task| {
            task.work.unfinished.insert(EffectId::new("gone").unwrap());
        }),
        Invariant::WayOut => {
            let service = machines::names::ServiceName::new("model").unwrap();
            edit_task(world, "t5", |task| task.work.waits_for = Some(service));
        }
        Invariant::NoCycles => {
            edit_task(world, "t4", |there| there.depends_on.push(task("t5")));
            world.dependents.entry(task("t5")).or_default().insert(task("t4"));
        }
    }
}

#[test]
fn each_invariant_is_named_when_it_is_broken() {
    let whole = busy();
    assert_eq!(find(&whole), vec![]);
    for invariant in Invariant::ALL {
        let mut broken = whole.clone();
        sabotage(*invariant, &mut broken);
        let mut found = find(&broken);
        found.extend(check_commit(&whole, &broken));
        assert!(
            found.iter().any(|violation| violation.invariant == *invariant),
            "{invariant:?} was not noticed; found {found:?}"
        );
    }
}

/// A violation is said with its values, so that whoever reads it knows where to look.
#[test]
fn a_violation_names_what_it_is_about() {
    let mut broken = busy();
    edit_task(&mut broken, "t1", |task| task.landing.landed = None);
    let said = find(&broken)[0].to_string();
    assert_eq!(
        said,
        "DoneIsLanded: a task that is DONE with code has its landing recorded is false: `t1` is DONE with code and has not landed"
    );
}

/// What is suspended keeps its origin through every state that can be suspended.
#[test]
fn a_restored_run_is_exactly_what_it_was() {
    use machines::suspended::{Suspendable, Suspension, Wrapped};
    for state in [run::State::Starting, run::State::Running, run::State::Paused, run::State::InError] {
        let inner = run::Run { state, current_turn: 3, ..run::Run::default() };
        let mut machine = Suspendable::Live(inner.clone());
        let suspension =
            Suspension { service: SmolStr::new_static("model"), since: 1, resets_at: None, until: 2 };
        machine.advance(&Wrapped::Suspend(suspension), None).unwrap();
        machine.advance(&Wrapped::Restore, None).unwrap();
        assert_eq!(machine, Suspendable::Live(inner));
    }
}
