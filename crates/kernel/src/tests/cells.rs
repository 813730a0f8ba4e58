//! Every cell of every table is missed: each action of each row is left out in turn, then each other action is put in its
//! place, then the row is opened to everybody; and each time the kernel decides something else.
//!
//! A table that is printed and not run would let this pass over it in silence; here it fails by the cell's name.

use super::commands::{agent, whole};
use super::permissions;
use super::table::ann;
use super::{architect as architect_at_work, commands, rooms, scripts};
use crate::command::{Actor, Ask, Command};
use crate::config::Role;
use crate::{Commit, World};
use machines::machine::sabotage::{self, Change};
use machines::machine::{Role as CallerRole, Who};
use machines::suspended::Wrapped;
use machines::task::Status;
use machines::{Machine, Row, Wire, architect, run, task, turn, worker};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What a witness saw: everything that was decided, and the rows that it went through.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    decided: Vec<String>,
    rows: BTreeSet<(&'static str, usize)>,
    failed: bool,
}

thread_local! {
    static SEEN: RefCell<Option<Seen>> = const { RefCell::new(None) };
    /// The Worlds that a witness went through, while somebody collects them.
    static WORLDS: RefCell<Option<Vec<World>>> = const { RefCell::new(None) };
}

/// Called for each commit of a test's table: somebody on this thread may be watching.
pub(super) fn trace(commit: &Commit) {
    WORLDS.with_borrow_mut(|worlds| {
        if let Some(worlds) = worlds {
            worlds.push(commit.world.clone());
        }
    });
    SEEN.with_borrow_mut(|seen| {
        let Some(seen) = seen else { return };
        seen.decided.extend(commit.events.iter().map(|event| format!("{} {}", event.kind(), event.encode())));
        let published = commit.events.iter().flat_map(crate::published::of);
        seen.decided.extend(published.map(|(run, event)| format!("{run} {event:?}")));
        seen.rows.extend(commit.rows.iter().copied());
        // What a row changes of its own machine is decided too, though it asks for nothing.
        let world = &commit.world;
        seen.decided.extend(world.workers.values().map(|worker| format!("{:?}", worker.machine)));
        seen.decided.extend(world.runs.values().map(|run| format!("{:?}", run.machine)));
        seen.decided.extend(world.tasks.values().map(|task| format!("{:?}", task.machine)));
        seen.decided.extend(world.architect.iter().map(|architect| format!("{architect:?}")));
    });
}

fn watch(witness: fn()) -> Seen {
    SEEN.set(Some(Seen::default()));
    let ended = std::panic::catch_unwind(witness);
    let mut seen = SEEN.take().expect("it was set a moment ago");
    seen.failed = ended.is_err();
    seen
}

/// What a witness says while a table is sabotaged is nobody's failure.
fn quietly<R>(body: impl FnOnce() -> R) -> R {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if SEEN.with_borrow(Option::is_none) {
                usual(info);
            }
        }));
    });
    body()
}

fn witnesses() -> Vec<fn()> {
    scripts::ALL
        .iter()
        .chain(rooms::ALL)
        .chain(architect_at_work::ALL)
        .chain(commands::WITNESSES)
        .copied()
        .collect()
}

/// Actions that may stand for each other in a state, with the reason. A worker that is told to go on makes its tree in READY and
/// runs its gate in DONE: that is its next step there.
const ALIKE: &[(worker::State, worker::Action, worker::Action)] = &[
    (worker::State::Ready, worker::Action::MakeTree, worker::Action::NextStep),
    (worker::State::Done, worker::Action::RunGate, worker::Action::NextStep),
];

fn are_alike(machine: &str, to: &str, action: &str, other: &str) -> bool {
    let mut of_worker = ALIKE.iter().filter(|_| machine == worker::Worker::NAME);
    of_worker.any(|(state, one, two)| (state.name(), one.name(), two.name()) == (to, action, other))
}

/// What nobody would notice of a machine's table, by name: an action left out, or another in its place.
fn unnoticed<M: Machine>(healthy: &BTreeMap<usize, Seen>, witnesses: &[fn()]) -> Vec<String> {
    let mut names = Vec::new();
    for (number, row) in M::TABLE.iter().enumerate() {
        let mut through: Vec<_> =
            healthy.iter().filter(|(_, seen)| seen.rows.contains(&(M::NAME, number))).collect();
        // The shortest first: most changes are seen by each of them.
        through.sort_by_key(|(_, seen)| seen.decided.len());
        let is_noticed = |change: Change| {
            through.iter().any(|(witness, before)| {
                sabotage::with(M::NAME, number, change, || watch(witnesses[**witness])) != **before
            })
        };
        for (place, action) in row.actions.iter().enumerate() {
            // What a machine that is gone had of its own, nobody can see.
            if M::FINAL.contains(&row.to) && action.name() == worker::Action::LeaveTask.name() {
                continue;
            }
            let cell = format!("{} {} {}: {}", M::NAME, row.from.name(), row.event.name(), action.name());
            if !is_noticed(Change::LeaveOut(place)) {
                let how = if through.is_empty() { "no script goes through it" } else { "nothing changes" };
                names.push(format!("{cell} left out ({how})"));
            }
            for (with, other) in M::Action::ALL.iter().enumerate() {
                let alike = are_alike(M::NAME, row.to.name(), action.name(), other.name());
                if other != action && !alike && !is_noticed(Change::Replace { place, with }) {
                    names.push(format!("{cell} replaced by {}", other.name()));
                }
            }
        }
    }
    names
}

/// Slow: every script is played once for each action that each cell could have.
#[test]
fn leaving_out_or_replacing_any_action_of_any_row_changes_what_the_kernel_decides() {
    let witnesses = witnesses();
    let unnoticed: Vec<String> = quietly(|| {
        let healthy: BTreeMap<usize, Seen> =
            witnesses.iter().enumerate().map(|(number, witness)| (number, watch(*witness))).collect();
        assert!(healthy.values().all(|seen| !seen.failed), "every witness passes as the tables are");
        [
            unnoticed::<worker::Worker>(&healthy, &witnesses),
            unnoticed::<run::Run>(&healthy, &witnesses),
            unnoticed::<task::Task>(&healthy, &witnesses),
            unnoticed::<turn::Turn>(&healthy, &witnesses),
            unnoticed::<architect::Architect>(&healthy, &witnesses),
        ]
        .concat()
    });
    assert!(unnoticed.is_empty(), "nobody would notice:\n{}", unnoticed.join("\n"));
}

/// A machine, a state of it, and an event that an ask sends it there.
type Place = (&'static str, &'static str, &'static str);
/// Scenes that are tried for each place.
const SCENES_MAX: usize = 4;

/// Everything that can be asked of a machine in this World, with where that machine stands.
fn asks_in(world: &World) -> Vec<(Place, Ask)> {
    let mut asks = Vec::new();
    let mut add = |machine, state, event, ask| asks.push(((machine, state, event), ask));
    let of_worker = worker::Worker::NAME;
    let spawn = Ask::Spawn { name: None, agent: None };
    add(of_worker, worker::State::New.name(), worker::Kind::Spawn.name(), spawn);
    for (name, there) in &world.workers {
        for (kind, ask) in permissions::worker_asks(name, world.tasks.keys().next()) {
            add(of_worker, there.machine.status.name(), kind.name(), ask);
        }
    }
    for (id, there) in &world.runs {
        for event in permissions::run_events() {
            let (state, kind) = (there.state().name(), run::Run::kind(&event).name());
            add(run::Run::NAME, state, kind, Ask::RunEvent { run: id.clone(), event });
        }
    }
    for (id, there) in &world.tasks {
        for to in Status::ALL {
            let payload = Box::new(whole(&there.machine));
            let event = task::Kind::ALL.iter().find(|kind| kind.name() == format!("move {}", to.name()));
            let event = event.expect("every status has its move").name();
            add(
                task::Task::NAME,
                there.status().name(),
                event,
                Ask::MoveTask { id: id.clone(), to: *to, payload },
            );
        }
    }
    for (name, channel) in &world.channels {
        for (member, there) in &channel.places {
            for event in permissions::turn_events() {
                let (channel, agent) = (name.clone(), member.clone());
                let (state, kind) = (there.state.name(), turn::Turn::kind(&event).name());
                add(turn::Turn::NAME, state, kind, Ask::TurnEvent { channel, agent, event });
            }
        }
    }
    let there = world.architect.as_ref().map_or(architect::State::New, |it| it.inner().state);
    for event in permissions::architect_events() {
        let kind = architect::Architect::kind(&event).name();
        add(
            architect::Architect::NAME,
            there.name(),
            kind,
            Ask::ArchitectEvent { event: Wrapped::Inner(event) },
        );
    }
    asks
}

/// What becomes of an ask by a person, by the system, and by agents to whom nothing of it belongs.
fn verdicts(world: &World, ask: &Ask) -> Vec<Result<(), (u16, String)>> {
    // The message too: whoever is let in by a row may be refused by what comes after it.
    let agents = [Role::Lead, Role::Specialist, Role::Intern].map(|role| agent("stranger", role));
    let callers = [ann(), Actor::System].into_iter().chain(agents);
    let asked = callers.map(|actor| {
        let command = Command { id: 1 << 64, at: 1, actor, token_for: None, key: None, ask: ask.clone() };
        match crate::handle(world, &command).and_then(|commit| commit.answer) {
            Ok(_) => Ok(()),
            Err(refusal) => Err((refusal.status, refusal.message)),
        }
    });
    asked.collect()
}

/// The rows whose `who` nobody would miss.
fn open_rows<M: Machine>(scenes: &BTreeMap<Place, Vec<(World, Ask)>>) -> Vec<String> {
    let is_asked =
        |row: &Row<M>| scenes.keys().any(|place| (place.0, place.2) == (M::NAME, row.event.name()));
    let is_anybodys = |row: &Row<M>| CallerRole::ALL.iter().all(|role| row.who.contains(&Who::Any(*role)));
    let mut names = Vec::new();
    for (number, row) in M::TABLE.iter().enumerate().filter(|(_, row)| !is_anybodys(row)) {
        let name = format!("{} {} {}", M::NAME, row.from.name(), row.event.name());
        if !is_asked(row) {
            // Nobody can ask for it: it is for the rules alone, and says so.
            if row.who != [Who::Any(CallerRole::System)] {
                names.push(format!("{name}: no ask sends it, and others than the system may"));
            }
            continue;
        }
        let here = scenes.get(&(M::NAME, row.from.name(), row.event.name()));
        let changes = |(world, ask): &(World, Ask)| {
            let opened = sabotage::with(M::NAME, number, Change::LetAll, || verdicts(world, ask));
            opened != verdicts(world, ask)
        };
        match here {
            None => names.push(format!("{name}: no scene")),
            Some(scenes) if !scenes.iter().any(changes) => names.push(format!("{name}: nothing changes")),
            Some(_) => {}
        }
    }
    names
}

#[test]
fn opening_any_row_to_everybody_lets_somebody_in() {
    let worlds = quietly(|| {
        WORLDS.set(Some(vec![World::default()]));
        witnesses().into_iter().for_each(|witness| drop(watch(witness)));
        let mut worlds = WORLDS.take().expect("it was set a moment ago");
        worlds.extend(permissions::worlds());
        worlds
    });
    let mut scenes: BTreeMap<Place, Vec<(World, Ask)>> = BTreeMap::new();
    for world in &worlds {
        for (place, ask) in asks_in(world) {
            let scenes = scenes.entry(place).or_default();
            if scenes.len() < SCENES_MAX {
                scenes.push((world.clone(), ask));
            }
        }
    }
    let open = [
        open_rows::<worker::Worker>(&scenes),
        open_rows::<run::Run>(&scenes),
        open_rows::<task::Task>(&scenes),
        open_rows::<turn::Turn>(&scenes),
        open_rows::<architect::Architect>(&scenes),
    ]
    .concat();
    assert!(open.is_empty(), "nobody would miss who may:\n{}", open.join("\n"));
}
