//! `GET /overview`: the current work of a fleet on one page, read from the World.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::types::Nothing;
use super::types::overview::{
    BoardColumn, Column, Continues, ForYou, HeldTasks, LandingUnderWay, Overview, TaskCounts, TestsUnderWay,
};
use super::{Call, Problem, time, view};
use crate::board::looked_at;
use crate::story_feed::StoryFeed;
use kernel::World;
use kernel::waiting::{Facts, Kind, Waiting};
use kernel::world::Task;
use machines::names::TaskId;
use machines::task::Status;
use machines::{Millis, Wire};

/// Facts that the World does not contain.
#[derive(Default)]
pub struct Beside {
    pub facts: Facts,
    pub running: bool,
    pub tests: Vec<fleet::RunningTests>,
    /// Of the process that owns the project.
    pub story: Option<Arc<StoryFeed>>,
}

pub fn show(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Overview, Problem> {
    let status = call.access.control.map(|control| control.status());
    let beside = Beside {
        facts: call.access.host.facts(),
        running: status.as_ref().is_some_and(|status| status.running),
        tests: status.map(|status| status.tests).unwrap_or_default(),
        story: call.access.control.and_then(|control| control.story()),
    };
    Ok(of(&call.world(), &beside, call.request.at))
}

pub fn of(world: &World, beside: &Beside, now: Millis) -> Overview {
    let list = kernel::waiting::waiting(world, &beside.facts, now);
    let people = OnPeople::new(list.into_iter().filter(Waiting::needs_someone).collect());
    let open = open_tasks(world);
    let story = beside.story.as_ref();
    let cost = view::spend(world, &world.spend);
    Overview {
        at: time(now),
        running: beside.running,
        workers: world.workers.values().map(|worker| view::worker(world, worker, now)).collect(),
        columns: columns(world, &open, &people),
        main_tests: world.main.under_way.as_ref().map(|effect| {
            let tests = beside.tests.iter().find(|tests| tests.effect == effect.as_str());
            TestsUnderWay {
                command: tests.map(|tests| tests.command.clone()),
                since: tests.map(|tests| time(tests.since)),
            }
        }),
        landing: world.landing.as_ref().map(|landing| {
            let tests = beside.tests.iter().find(|tests| tests.effect == landing.effect.as_str());
            LandingUnderWay {
                task: landing.task.to_string(),
                since: time(landing.since),
                moves: landing.written.is_some(),
                command: tests.map(|tests| tests.command.clone()),
            }
        }),
        counts: counts(world, &open, &people),
        cost_before: story.map_or_else(|| cost.clone(), |story| view::spend(world, story.before())),
        cost,
        landed: story.map_or(0, |story| story.landed()),
        survived: story.map(|story| story.survived()).unwrap_or_default(),
        main_is_red: world.main_is_known() && !world.main_is_green(),
        held: held(world, &open, &people),
        continues: continues(world, &open, &people),
        for_you: for_you(&open, people),
    }
}

/// The tasks that are neither done nor canceled, by id. Nothing else reads a task: however many are over, only their ids
/// are read, from the index of statuses.
fn open_tasks(world: &World) -> Vec<&Task> {
    let mut open: Vec<&Task> = world.open_tasks().inspect(|_| looked_at()).collect();
    open.sort_by(|one, other| one.id.cmp(&other.id));
    open
}

fn columns(world: &World, open: &[&Task], people: &OnPeople) -> Vec<BoardColumn> {
    let mut columns: Vec<BoardColumn> =
        Column::ALL.iter().map(|column| BoardColumn { column: *column, tasks: Vec::new() }).collect();
    for task in open {
        columns[people.column_of(world, task).ordinal()].tasks.push(task.id.to_string());
    }
    let over = Status::ALL.iter().filter(|status| status.is_final());
    let mut over: Vec<_> =
        over.filter_map(|status| world.by_status.get(status)).flat_map(|column| column.values()).collect();
    over.sort_unstable();
    columns[Column::Done.ordinal()].tasks.extend(over.into_iter().map(ToString::to_string));
    columns
}

fn counts(world: &World, open: &[&Task], people: &OnPeople) -> TaskCounts {
    let count = |meant: &dyn Fn(&Task) -> bool| open.iter().filter(|task| meant(task)).count();
    let over = |status: Status| world.by_status.get(&status).map_or(0, |column| column.len());
    let is_left = |task: &Task| !task.is_waiting_proposal();
    let proposed = proposed(open).len();
    TaskCounts {
        tasks: world.tasks.len(),
        done: over(Status::Done),
        wanted: world.tasks.len() - over(Status::Canceled) - proposed,
        left: count(&is_left),
        need_person: count(&|task| is_left(task) && people.asked.contains(&task.id)),
        proposed,
        specs: world.specs.len(),
    }
}

/// The tasks that the next run continues without a person.
fn continues(world: &World, open: &[&Task], people: &OnPeople) -> Continues {
    // The next run would stop at the same place; `for_you` has the command that helps.
    if world.main_is_known() && !world.main_is_green() {
        return Continues::default();
    }
    let count = |statuses: &[Status]| {
        let goes_on = |task: &&&Task| statuses.contains(&task.status()) && people.item_of(&task.id).is_none();
        open.iter().filter(goes_on).count()
    };
    Continues {
        in_work: count(&[Status::InProgress]),
        not_begun: count(&[Status::Inbox, Status::Assigned]),
        to_land: world.queue.len(),
    }
}

/// The tasks that wait for an item about another task or about the project, by that item.
fn held(world: &World, open: &[&Task], people: &OnPeople) -> Vec<HeldTasks> {
    let may_wait = |task: &Task| {
        matches!(task.status(), Status::Inbox | Status::Assigned | Status::InProgress)
            && !task.is_waiting_proposal()
    };
    let mut by_cause: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // An item about the task itself is in `for_you`.
    for task in open.iter().filter(|task| may_wait(task) && !people.own.contains_key(&task.id)) {
        if let Some(waits) = people.holds_up(world, task) {
            by_cause.entry(waits).or_default().push(task.id.to_string());
        }
    }
    let group = |(waits, mut tasks): (String, Vec<String>)| {
        tasks.sort_by(|one, other| kernel::natural(one, other));
        HeldTasks { tasks, waits }
    };
    by_cause.into_iter().map(group).collect()
}

/// The items that need a person, in the order of the list: the item that blocks the most tasks is first.
fn for_you(open: &[&Task], people: OnPeople) -> Vec<ForYou> {
    let mut proposals = proposals(open);
    let line = |item: Waiting| {
        let (command, what) = match item.kind {
            Kind::Proposal => proposals.take()?,
            _ => (fleet::command_line::command(item.options.first()?), item.text.clone()),
        };
        Some(ForYou { command, what, waiting: item.into() })
    };
    people.list.into_iter().filter_map(line).collect()
}

/// The open proposals of agents.
fn proposed<'w>(open: &[&'w Task]) -> Vec<&'w Task> {
    let mut tasks: Vec<&Task> = open.iter().copied().filter(|task| task.is_waiting_proposal()).collect();
    tasks.sort_by_key(|task| task.order);
    tasks
}

/// All proposals together are one line: a command and its subject.
fn proposals(open: &[&Task]) -> Option<(String, String)> {
    let tasks = proposed(open);
    let (first, proposed) = tasks.first().and_then(|task| Some((task, task.origin.proposed.as_ref()?)))?;
    Some(match tasks.len() {
        1 => (
            format!("adj task accept {}", first.id),
            format!("{} is {}: {}", first.id, kernel::why::proposed_by(proposed), first.title),
        ),
        count => (
            "adj task accept TASK".to_owned(),
            format!("{count} proposed tasks wait: {} and others; adj board shows them", first.id),
        ),
    })
}

/// The items that need a person, and the tasks that they block.
struct OnPeople {
    list: Vec<Waiting>,
    /// The first item about each task.
    own: BTreeMap<TaskId, usize>,
    /// The first item that blocks each task.
    blocked: BTreeMap<TaskId, usize>,
    /// The tasks that need a person themselves, not only a task that they depend on.
    asked: BTreeSet<TaskId>,
    /// The tasks with an item that is no review.
    yours: BTreeSet<TaskId>,
}

impl OnPeople {
    fn new(list: Vec<Waiting>) -> OnPeople {
        let (mut own, mut blocked) = (BTreeMap::new(), BTreeMap::new());
        let (mut asked, mut yours) = (BTreeSet::new(), BTreeSet::new());
        for (place, item) in list.iter().enumerate() {
            for task in &item.blocks {
                blocked.entry(task.clone()).or_insert(place);
            }
            match &item.about.task {
                Some(task) => {
                    own.entry(task.clone()).or_insert(place);
                    asked.insert(task.clone());
                    if item.kind != Kind::Review {
                        yours.insert(task.clone());
                    }
                }
                None => asked.extend(item.blocks.iter().cloned()),
            }
        }
        OnPeople { list, own, blocked, asked, yours }
    }

    /// The item that a task waits for: one about the task itself, or the first that blocks it.
    fn item_of(&self, task: &TaskId) -> Option<&Waiting> {
        self.list.get(*self.own.get(task).or_else(|| self.blocked.get(task))?)
    }

    /// Why a task does not continue with the next run, as the end of a sentence after `waits`. `None`: it continues
    /// without a person.
    fn holds_up(&self, world: &World, task: &Task) -> Option<String> {
        let item = self.item_of(&task.id)?;
        let other = item.about.task.as_ref().filter(|id| **id != task.id).and_then(|id| world.task(id));
        Some(match (other, item.kind) {
            (Some(other), _) => {
                let within = if other.status() == Status::Review { "in " } else { "" };
                format!(" for {}, which is {within}{}", other.id, other.status())
            }
            // The sentence already names the task.
            (None, Kind::DeadDependency) => {
                let on = item.about.dependency.as_ref().map(|on| {
                    world.task(on).map_or_else(
                        || format!("{on}, which does not exist"),
                        |on| format!("{}, which was canceled", on.id),
                    )
                });
                format!(" for {}", on.unwrap_or_default())
            }
            (None, _) => format!(": {}", item.text.trim_start_matches(&format!("{} ", task.id))),
        })
    }

    /// The column of a task. A task in review has the same column for every kind of reviewer.
    fn column_of(&self, world: &World, task: &Task) -> Column {
        let lands = || {
            let landing = world.landing.as_ref().is_some_and(|landing| landing.task == task.id);
            landing || task.landing.queued.is_some()
        };
        match task.status() {
            Status::Done | Status::Canceled => Column::Done,
            Status::Review if lands() => Column::Land,
            _ if self.yours.contains(&task.id) => Column::You,
            Status::Inbox | Status::Assigned => Column::Wait,
            Status::InProgress => Column::Work,
            Status::Review => Column::Review,
            // One question about a shared budget counts for each task that waits for it.
            Status::NeedsApproval | Status::Blocked => Column::You,
        }
    }
}
