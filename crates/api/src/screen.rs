//! What live screens show, as rows of one moment: read from the World for whoever watches. Nothing is decided here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::Nothing;
use super::types::fleet::{MainState, RunningTests};
use super::types::screen::{
    Action, Attention, CardLine, ChangedLines, ColumnNote, ColumnRow, FactsRow, LineTone, MachineUse,
    MainSign, MoneyToday, QueueRow, QueueStep, Sign, TaskRow, View, ViewQuery, WaitingRow, WorkerRow,
};
use super::types::worker::Activity;
use super::{Call, Problem, actions, fleet, terms, time, usd, view};
use kernel::choice::Choice;
use kernel::waiting::{Facts, Kind, Waiting};
use kernel::words::Condition;
use kernel::world::{Dependency, Task, Worker, day_of};
use kernel::{World, budget, why};
use machines::names::{AgentName, TaskId, WorkerName};
use machines::task::Status;
use machines::worker::State;
use machines::{Millis, Wire};

const HOUR: Millis = 60 * 60 * 1000;
/// A reason that at least so many tasks of a column share stands at its head.
const SHARED_MIN: usize = 2;

/// What is known beside the World.
#[derive(Default)]
pub struct ScreenFacts {
    pub project: String,
    pub facts: Facts,
    pub running: bool,
    pub tests: Vec<::fleet::RunningTests>,
    pub machine: Option<MachineUse>,
    /// The lines that branches change, by their tip.
    pub lines: BTreeMap<String, ChangedLines>,
    /// How long tests of a merge take, at the median.
    pub landing_seconds: Option<u64>,
}

pub fn show(call: &Call, (): (), _: ViewQuery, _: Nothing) -> Result<View, Problem> {
    let status = call.access.control.map(|control| control.status());
    let beside = ScreenFacts {
        project: call.access.host.project(),
        facts: call.access.host.facts(),
        running: status.as_ref().is_some_and(|status| status.running),
        tests: status.map(|status| status.tests).unwrap_or_default(),
        ..ScreenFacts::default()
    };
    let world = call.world();
    let rows = Rows::new(&world, &beside, call.request.at);
    Ok(View {
        seq: world.seq,
        at: time(call.request.at),
        facts: vec![rows.facts()],
        columns: rows.columns(),
        tasks: world.tasks.values().map(|task| rows.task(task)).collect(),
        workers: rows.workers(),
        waiting: rows.waiting(),
        queue: rows.queue(),
    })
}

/// The board sorts by priority, then by arrival; so many tasks come before the next priority.
const PRIORITY_RANK: u64 = 1 << 40;

/// The rows of one moment. What many of them need is found once.
pub struct Rows<'w> {
    world: &'w World,
    beside: &'w ScreenFacts,
    now: Millis,
    waiting: Vec<Waiting>,
    /// The first of `waiting` that is about a task, by the task.
    about: BTreeMap<TaskId, usize>,
    about_worker: BTreeMap<WorkerName, usize>,
    places: BTreeMap<TaskId, usize>,
    /// Why no worker of an agent takes anything.
    shared: BTreeMap<AgentName, Option<(Condition, String)>>,
    notes: BTreeMap<Status, SharedReason>,
}

/// A reason that several tasks of a column share.
struct SharedReason {
    guard: Condition,
    text: String,
    tasks: usize,
}

impl<'w> Rows<'w> {
    pub fn new(world: &'w World, beside: &'w ScreenFacts, now: Millis) -> Rows<'w> {
        let waiting = kernel::waiting::waiting(world, &beside.facts, now);
        let (mut about, mut about_worker) = (BTreeMap::new(), BTreeMap::new());
        for (number, item) in waiting.iter().enumerate().filter(|(_, item)| item.needs_someone()) {
            if let Some(task) = &item.about.task {
                about.entry(task.clone()).or_insert(number);
                let worker = world.worker_of(task).map(|worker| worker.name.clone());
                worker.map(|worker| about_worker.entry(worker).or_insert(number));
            }
            if let Some(worker) = &item.about.worker {
                about_worker.entry(worker.clone()).or_insert(number);
            }
        }
        let landing = world.landing.as_ref().map(|landing| landing.task.clone());
        let places = landing.into_iter().chain(world.queue.values().cloned());
        let places = places.enumerate().map(|(number, task)| (task, number + 1)).collect();
        let agents = world.config.agents.keys().chain([&world.config.fleet.agent]);
        let shared =
            agents.map(|agent| (agent.clone(), no_worker_takes(world, beside, agent, now))).collect();
        let mut rows =
            Rows { world, beside, now, waiting, about, about_worker, places, shared, notes: BTreeMap::new() };
        rows.notes = rows.notes_of_columns();
        rows
    }

    /// The reasons that several tasks of a column share.
    fn notes_of_columns(&self) -> BTreeMap<Status, SharedReason> {
        let mut counts: BTreeMap<Status, BTreeMap<(Condition, String), usize>> = BTreeMap::new();
        for task in self.world.open_tasks() {
            if let Some((guard, text, true)) = self.held(task) {
                *counts.entry(task.status()).or_default().entry((guard, text)).or_default() += 1;
            }
        }
        let note = |(status, reasons): (Status, BTreeMap<(Condition, String), usize>)| {
            let ((guard, text), tasks) = reasons.into_iter().max_by_key(|(_, tasks)| *tasks)?;
            (tasks >= SHARED_MIN).then_some((status, SharedReason { guard, text, tasks }))
        };
        counts.into_iter().filter_map(note).collect()
    }

    /// Why nobody works on a task: the condition, words, and whether others wait for the same.
    fn held(&self, task: &Task) -> Option<(Condition, String, bool)> {
        let to_begin = matches!(task.status(), Status::Inbox | Status::Assigned | Status::InProgress);
        if !to_begin || task.work.lease.is_some() {
            return None;
        }
        let world = self.world;
        let agent = world.wanted_agent(task).unwrap_or(&world.config.fleet.agent);
        // Dependencies have a line of their own, and `own` conditions are more to the point than what holds for all.
        let own = why::task_guards(world, task, agent)
            .into_iter()
            .find(|guard| !guard.holds && guard.guard != Condition::DependencyDone);
        if let Some(own) = own {
            let shared = own.guard == Condition::StatusCap;
            return Some((own.guard, own.detail, shared));
        }
        if !world.dependencies_done(task) {
            return None;
        }
        let (guard, text) = self.shared.get(agent)?.clone()?;
        Some((guard, text, true))
    }

    pub fn facts(&self) -> FactsRow {
        let (world, beside) = (self.world, self.beside);
        let working = world.workers.len() - world.idle.len();
        let main_tests = fleet::main_tests(world);
        let done = world.by_status.get(&Status::Done);
        let lately = |task: &&Task| task.status_since.is_some_and(|since| self.now - since < HOUR);
        // The newest are not the last of them, so all are looked at; there is no index by time.
        let landed = done.into_iter().flat_map(|tasks| tasks.values()).filter_map(|id| world.task(id));
        let switch = if beside.running { Choice::StopFleet } else { Choice::StartFleet };
        FactsRow {
            id: "frame".to_owned(),
            seq: world.seq,
            project: beside.project.clone(),
            fleet: self.fleet(working),
            running: beside.running,
            wanted: world.fleet_running,
            workers: world.workers.len(),
            working,
            main: main_sign(main_tests.as_ref(), &world.config.main),
            main_tests,
            tests: beside.tests.iter().map(tests).collect(),
            money: self.money(),
            cost: view::spend(world, &world.spend),
            machine: beside.machine.as_ref().map(machine_words).unwrap_or_default(),
            machine_use: beside.machine.clone(),
            first_run: world.tasks.is_empty(),
            landed_last_hour: landed.filter(lately).filter(|task| task.landing.landed.is_some()).count(),
            actions: vec![actions::action(world, &switch)],
        }
    }

    fn fleet(&self, working: usize) -> Sign {
        let (text, glyph) = match (self.beside.running, self.world.workers.len()) {
            (true, workers) => (format!("fleet runs, {working} of {workers} at work"), "worker.working"),
            (false, _) if self.world.fleet_running => {
                ("the fleet's process is gone".to_owned(), "worker.stuck")
            }
            (false, _) => ("fleet is off".to_owned(), "worker.idle"),
        };
        Sign { text, glyph: glyph.to_owned() }
    }

    fn money(&self) -> Option<MoneyToday> {
        let world = self.world;
        let today = world.spend.by_day.get(&day_of(self.now)).cloned().unwrap_or_default();
        let counted = budget::unpriced(world, &today.unknown).counted();
        let limit = budget::limit(world, kernel::world::BudgetScope::Day, &world.config.fleet.agent);
        let (spent, cap) = (today.cost + counted, limit.map(|limit| limit + today.raised));
        (spent > 0 || today.reserved > 0 || cap.is_some()).then(|| MoneyToday {
            text: format!("today {}", cents(spent)),
            spent: usd(spent),
            reserved: usd(today.reserved),
            cap: cap.map(usd),
        })
    }

    pub fn columns(&self) -> Vec<ColumnRow> {
        let note = |reason: &SharedReason| ColumnNote {
            id: reason.guard.name().to_owned(),
            text: format!("{} wait: {}", reason.tasks, reason.text),
            glyph: guard_glyph(reason.guard).to_owned(),
        };
        let column = |status: &Status| ColumnRow {
            id: status.name().to_owned(),
            seq: self.world.seq,
            cap: self.world.config.policy.cap_in_progress.filter(|_| *status == Status::InProgress),
            notes: self.notes.get(status).map(note).into_iter().collect(),
        };
        Status::ALL.iter().map(column).collect()
    }

    pub fn task(&self, task: &Task) -> TaskRow {
        let world = self.world;
        let worker = world.leaseholder(&task.id);
        let run = task.work.run.as_ref().and_then(|run| world.run(run));
        let holder = task.work.lease.as_ref().map(|lease| match &lease.holder {
            kernel::world::Holder::Worker(name) => name.to_string(),
            kernel::world::Holder::Outside(agent) => agent.to_string(),
        });
        let agent = worker.map(|worker| &worker.agent).or(run.map(|run| &run.agent));
        let tip = task.work.place.as_ref().and_then(|place| place.tip.as_ref());
        let lines = tip.and_then(|tip| self.beside.lines.get(tip.as_str()));
        let held = self.held(task);
        let noted = held.as_ref().is_some_and(|(guard, text, _)| {
            self.notes.get(&task.status()).is_some_and(|note| note.guard == *guard && note.text == *text)
        });
        let begun = matches!(
            task.status(),
            Status::InProgress | Status::Review | Status::NeedsApproval | Status::Blocked
        );
        TaskRow {
            id: task.id.to_string(),
            seq: world.seq,
            title: task.title.clone(),
            status: task.status(),
            rank: match task.is_final() {
                // What was done last comes first.
                true => u64::MAX - task.status_since.unwrap_or(0).unsigned_abs(),
                false => u64::from(task.priority) * PRIORITY_RANK + task.order,
            } & MAX_EXACT,
            priority: task.priority,
            task_type: task.machine.task_type,
            since: time(task.status_since.unwrap_or(task.created_at)),
            lines: self.lines(task, worker, held.as_ref().filter(|_| !noted)),
            note: held.as_ref().filter(|_| noted).map(|(guard, ..)| guard.name().to_owned()),
            agent: agent.or_else(|| world.wanted_agent(task)).map(ToString::to_string),
            model: run.and_then(|run| run.model.as_ref()).map(ToString::to_string),
            worker: holder,
            added: lines.map(|lines| lines.added),
            removed: lines.map(|lines| lines.removed),
            cost: (task.spend.cost > 0).then(|| cents(task.spend.cost)),
            spec: world.spec_of(task).map(|spec| spec.id.to_string()),
            waits_for: self.unfinished(task).map(|(on, _)| on.to_string()).collect(),
            holds_up: match task.is_final() {
                true => 0,
                false => actions::open_dependents(world, &task.id).len(),
            },
            waiting: self.about.get(&task.id).map(|number| waiting_id(&self.waiting[*number])),
            quiet: !begun && !self.about.contains_key(&task.id),
        }
    }

    /// What a card says under its title.
    fn lines(
        &self,
        task: &Task,
        worker: Option<&Worker>,
        held: Option<&(Condition, String, bool)>,
    ) -> Vec<CardLine> {
        let mut lines = Vec::new();
        if let Some(number) = self.about.get(&task.id) {
            let item = &self.waiting[*number];
            let tone = match item.kind {
                Kind::StuckWorker
                | Kind::BlockedTask
                | Kind::DeadDependency
                | Kind::TicketGone
                | Kind::AgentMissing => LineTone::Bad,
                _ => LineTone::You,
            };
            let text = match (item.kind, task.review.drafts.len()) {
                // The card has the title already.
                (Kind::Review, 0) => "waits for your review".to_owned(),
                (Kind::Review, 1) => "waits for your review, 1 draft".to_owned(),
                (Kind::Review, drafts) => format!("waits for your review, {drafts} drafts"),
                _ => without_id(&item.text, &task.id),
            };
            lines.push(line(text, terms::waiting_glyph(item.kind), tone));
        } else if let Some(worker) = worker {
            let text = format!("{} {}", worker.name, self.doing(worker));
            lines.push(line(text, &format!("worker.{}", worker.machine.status.name()), LineTone::Plain));
        }
        if let Some(place) = self.places.get(&task.id) {
            lines.push(line(format!("queue {place}, {}", self.stage(task).1), "queue", LineTone::Plain));
        } else if let Some(why) = task.held_up_by() {
            lines.push(line(why, "queue", LineTone::Warn));
        }
        if let Some(landed) = &task.landing.landed {
            let commit: String = landed.merge.chars().take(7).collect();
            lines.push(line(format!("landed as {commit}"), "check", LineTone::Plain));
        }
        let (dead, open): (Vec<_>, Vec<_>) = self.unfinished(task).partition(|(_, dead)| dead.is_some());
        if let Some((on, Some(why))) = dead.first().filter(|_| !self.about.contains_key(&task.id)) {
            let tasks = vec![on.to_string()];
            lines.push(CardLine { tasks, ..line(format!("never: {why}"), "dead", LineTone::Bad) });
        } else if !open.is_empty() {
            let names: Vec<String> = open.iter().map(|(on, _)| on.to_string()).collect();
            let text = match names.len() {
                1 => format!("waits for {}", names[0]),
                several => format!("waits for {several}: {}", names.join(" ")),
            };
            lines.push(CardLine { tasks: names, ..line(text, "chain", LineTone::Plain) });
        }
        if let Some((guard, text, _)) = held.filter(|_| !self.about.contains_key(&task.id)) {
            let tone = if *guard == Condition::ProposalAccepted { LineTone::You } else { LineTone::Warn };
            lines.push(line(text.clone(), guard_glyph(*guard), tone));
        }
        lines
    }

    /// The tasks that a task waits for, each with why it will never be done, if so.
    fn unfinished<'t>(&'t self, task: &'t Task) -> impl Iterator<Item = (&'t TaskId, Option<String>)> + 't {
        let to_begin = matches!(task.status(), Status::Inbox | Status::Assigned);
        task.depends_on.iter().filter(move |_| to_begin).filter_map(|on| match self.world.dependency(on) {
            Dependency::Done => None,
            Dependency::Open => Some((on, None)),
            Dependency::Canceled => Some((on, Some(format!("{on} was canceled")))),
            Dependency::Missing => Some((on, Some(format!("{on} does not exist")))),
        })
    }

    /// What a worker does, without the commands that a terminal shows.
    fn doing(&self, worker: &Worker) -> String {
        let shown = view::worker(self.world, worker, self.now);
        let Some(whole) = shown.whole else { return String::new() };
        let waits = self.about_worker.get(&worker.name).map(|number| self.waiting[*number].text.clone());
        base::visible::visible(&match whole.activity {
            Activity::Idle => String::new(),
            Activity::Tree { .. } => "gets its tree".to_owned(),
            Activity::Tests { .. } => "the checks run".to_owned(),
            Activity::Person { .. } => waits.unwrap_or_else(|| "waits for you".to_owned()),
            Activity::Service { service, .. } => {
                let service = match service.parse() {
                    Ok(service) => why::service_words(&service),
                    Err(_) => service,
                };
                format!("waits for {service}")
            }
            Activity::Retry { .. } => "waits before the next try".to_owned(),
            Activity::MainTests => "waits for main's tests".to_owned(),
            Activity::Stuck => whole.last_error.as_deref().map(why::last_line).unwrap_or_default(),
            Activity::Step => whole.last_action.unwrap_or_else(|| "starts".to_owned()),
        })
    }

    pub fn workers(&self) -> Vec<WorkerRow> {
        self.world.workers.values().map(|worker| self.worker(worker)).collect()
    }

    fn worker(&self, worker: &Worker) -> WorkerRow {
        let world = self.world;
        let task = worker.machine.task.as_ref().and_then(|task| world.task(task));
        let run = task.and_then(|task| world.run_of(&task.id));
        let shown = view::worker(world, worker, self.now);
        let activity = shown.whole.map_or(Activity::Idle, |whole| whole.activity);
        let waiting = self.about_worker.get(&worker.name).map(|number| &self.waiting[*number]);
        let attention = match (worker.machine.status, waiting) {
            (State::Stuck, _) => Attention::Stuck,
            (State::Idle, _) => Attention::Idle,
            (_, Some(_)) => Attention::Waits,
            _ => Attention::Work,
        };
        let since = match &activity {
            Activity::Tree { since } | Activity::Tests { since } | Activity::Person { since, .. } => {
                since.clone()
            }
            Activity::Service { since, .. } => Some(since.clone()),
            Activity::Stuck => worker.last_failed_at.map(time),
            Activity::Idle => worker.last_step_at.or(Some(worker.started_at)).map(time),
            Activity::Step | Activity::Retry { .. } | Activity::MainTests => {
                worker.task_assigned_at.map(time)
            }
        };
        let model = run.and_then(|run| run.model.as_ref()).map(|model| format!(" {model}"));
        WorkerRow {
            id: worker.name.to_string(),
            seq: world.seq,
            name: worker.name.to_string(),
            agent: format!("{}{}", worker.agent, model.unwrap_or_default()),
            state: worker.machine.status,
            attention,
            text: self.doing(worker),
            tone: match attention {
                Attention::Waits => LineTone::You,
                Attention::Stuck => LineTone::Bad,
                Attention::Idle | Attention::Work => LineTone::Plain,
            },
            activity,
            task: task.map(|task| task.id.to_string()),
            title: task.map(|task| task.title.clone()).unwrap_or_default(),
            run: run.map(|run| run.id.to_string()),
            turn: run.map(|run| run.machine.inner().current_turn),
            max_turns: run.map(|run| run.machine.inner().max_turns),
            since: since.unwrap_or_else(|| time(worker.started_at)),
            last_error: worker.last_error.clone(),
            cost_usd: usd(worker.spend.cost),
            waiting: waiting.map(waiting_id),
            actions: self.worker_actions(worker, task, run),
        }
    }

    fn worker_actions(
        &self,
        worker: &Worker,
        task: Option<&Task>,
        run: Option<&kernel::world::Run>,
    ) -> Vec<Action> {
        use machines::run::State as RunState;
        let name = || worker.name.clone();
        let mut choices = Vec::new();
        if worker.machine.status == State::Stuck {
            choices.push(Choice::RetryWorker { worker: name() });
        }
        match run.filter(|run| run.is_live()).map(|run| (run.state(), run.id.clone())) {
            Some((RunState::Running, run)) => choices.push(Choice::PauseRun { run }),
            Some((RunState::Paused, run)) => choices.push(Choice::ResumeRun { run }),
            _ => {}
        }
        choices.extend(task.map(|task| Choice::ChooseAgent { task: task.id.clone() }));
        choices.push(Choice::KillWorker { worker: name() });
        choices.iter().map(|choice| actions::action(self.world, choice)).collect()
    }

    pub fn waiting(&self) -> Vec<WaitingRow> {
        self.waiting.iter().enumerate().map(|(rank, item)| self.waiting_row(rank, item)).collect()
    }

    fn waiting_row(&self, rank: usize, item: &Waiting) -> WaitingRow {
        let world = self.world;
        let approval = item.about.approval.as_ref().and_then(|id| world.approvals.get(id));
        let request = item.about.request.as_ref().and_then(|id| world.requests.get(id));
        let task = item.about.task.as_ref().and_then(|id| world.task(id));
        let worker = item.about.worker.clone();
        let worker = worker.or_else(|| Some(world.worker_of(&task?.id)?.name.clone()));
        let question = approval.map(|approval| approval.question.clone());
        WaitingRow {
            id: waiting_id(item),
            seq: world.seq,
            rank,
            kind: item.kind,
            glyph: terms::waiting_glyph(item.kind).to_owned(),
            project: self.beside.project.clone(),
            severity: item.kind.severity(),
            who: item.who,
            text: item.text.clone(),
            about: match (task, &worker) {
                // Its sentence names the task and its title already.
                (Some(task), _) if item.kind == Kind::Review => self.size_of(task),
                (Some(task), _) => format!("{} {}", task.id, task.title),
                (None, Some(worker)) => format!("worker {worker}"),
                (None, None) => item.about.channel.as_ref().map(ToString::to_string).unwrap_or_default(),
            },
            since: item.since.map(time),
            blocks: item.blocks.iter().map(ToString::to_string).collect(),
            task: task.map(|task| task.id.to_string()),
            worker: worker.map(|name| name.to_string()),
            approval: item.about.approval.as_ref().map(ToString::to_string),
            request: item.about.request.as_ref().map(ToString::to_string),
            channel: item.about.channel.as_ref().map(ToString::to_string),
            call: approval.and_then(|approval| approval.call.as_ref()).map(view::call),
            question: question.or_else(|| request.map(|request| request.text.clone())),
            actions: item.options.iter().map(|choice| actions::action(world, choice)).collect(),
        }
    }

    /// Who did the work of a task, and how much it changes.
    fn size_of(&self, task: &Task) -> String {
        let run = task.work.run.as_ref().and_then(|run| self.world.run(run));
        let agent = run.map(|run| run.agent.to_string());
        let tip = task.work.place.as_ref().and_then(|place| place.tip.as_ref());
        let lines = tip.and_then(|tip| self.beside.lines.get(tip.as_str()));
        let lines = lines.map(|lines| format!("+{} −{}", lines.added, lines.removed));
        [agent, lines].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Where an approved task is, and in which words.
    fn stage(&self, task: &Task) -> (QueueStep, String) {
        let landing = self.world.landing.as_ref().filter(|landing| landing.task == task.id);
        match (landing, task.held_up_by()) {
            (Some(landing), _) if landing.written.is_some() => (QueueStep::Landing, "moving main".to_owned()),
            (Some(_), _) => (QueueStep::Testing, "testing the merge".to_owned()),
            (None, Some(why)) => (QueueStep::Held, why),
            (None, None) => (QueueStep::Waits, "waits for its turn".to_owned()),
        }
    }

    pub fn queue(&self) -> Vec<QueueRow> {
        let world = self.world;
        let landing = world.landing.as_ref();
        let first = landing.and_then(|landing| world.task(&landing.task));
        let queued = world.queue.values().filter_map(|id| world.task(id));
        let held = world.tasks_in(&[Status::Review], 0).filter(|task| task.landing.held_up.is_some());
        let line = |(number, task): (usize, &Task)| {
            let (step, text) = self.stage(task);
            let now = landing.filter(|landing| landing.task == task.id);
            let tests = now
                .and_then(|now| self.beside.tests.iter().find(|tests| tests.effect == now.effect.as_str()));
            let retry = (step == QueueStep::Held).then(|| Choice::RetryLanding { task: task.id.clone() });
            QueueRow {
                id: task.id.to_string(),
                seq: world.seq,
                rank: number + 1,
                task: task.id.to_string(),
                title: task.title.clone(),
                state: step,
                text,
                approved_by: task.review.approved.as_ref().map(|approved| approved.by.to_string()),
                approved_at: task.review.approved.as_ref().map(|approved| time(approved.at)),
                since: match step {
                    QueueStep::Held => task.landing.held_up_since.map(time),
                    _ => now.map(|now| now.since).filter(|since| *since > 0).map(time),
                },
                command: tests.map(|tests| tests.command.clone()),
                expected_seconds: self.beside.landing_seconds,
                actions: retry.iter().map(|choice| actions::action(world, choice)).collect(),
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        let once = first.into_iter().chain(queued).chain(held).filter(|task| seen.insert(&task.id));
        once.enumerate().map(line).collect()
    }
}

/// A browser's numbers are exact up to here.
const MAX_EXACT: u64 = (1 << 53) - 1;

fn line(text: String, glyph: &str, tone: LineTone) -> CardLine {
    CardLine { text: base::visible::visible(&text), glyph: glyph.to_owned(), tone, tasks: Vec::new() }
}

/// A sentence on a task's own card, which says the task's id already.
fn without_id(text: &str, id: &TaskId) -> String {
    text.strip_prefix(id.as_str()).map_or(text, str::trim_start).to_owned()
}

/// The shape before a reason.
fn guard_glyph(guard: Condition) -> &'static str {
    match guard {
        Condition::StatusCap | Condition::AgentCap | Condition::WorkerIdle => "cap",
        Condition::DependencyDone => "chain",
        Condition::ProposalAccepted => "pen",
        _ => "clock",
    }
}

/// Dollars with cents.
fn cents(micros: u64) -> String {
    format!("${:.2}", usd(micros))
}

fn main_sign(tests: Option<&super::types::fleet::MainTests>, main: &str) -> MainSign {
    let commit = tests.and_then(|tests| tests.main.as_deref()).unwrap_or_default();
    let (text, glyph) = match tests.map(|tests| tests.state) {
        Some(MainState::Green) => (format!("{main} green at"), "check"),
        Some(MainState::Red) => (format!("{main} red at"), "x"),
        Some(MainState::Running) => (format!("{main} is tested"), "clock"),
        Some(MainState::Unknown) | None => (format!("{main} not tested yet"), "clock"),
    };
    MainSign { text, glyph: glyph.to_owned(), commit: commit.chars().take(7).collect() }
}

/// As in `processor 62 % · memory 9.1 of 32 GB · disk 214 GB free`.
fn machine_words(machine: &MachineUse) -> String {
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let processor =
        machine.processor_percent.map(|percent| format!("processor {percent:.0} % · ")).unwrap_or_default();
    format!(
        "{processor}memory {:.1} of {:.0} GB · disk {:.0} GB free",
        gigabytes(machine.memory_used_bytes),
        gigabytes(machine.memory_bytes),
        gigabytes(machine.disk_free_bytes)
    )
}

/// What keeps the workers of an agent from taking anything at all.
fn no_worker_takes(
    world: &World,
    beside: &ScreenFacts,
    agent: &AgentName,
    now: Millis,
) -> Option<(Condition, String)> {
    if !beside.running {
        return Some((Condition::FleetRunning, "the fleet does not run".to_owned()));
    }
    let guards = why::fleet_guards(world, agent, day_of(now));
    if let Some(guard) = guards.into_iter().find(|guard| !guard.holds) {
        return Some((guard.guard, guard.detail));
    }
    let busy = world.workers.len() - world.idle.len();
    let all = world.idle.is_empty() && busy > 0;
    all.then(|| (Condition::WorkerIdle, format!("all {busy} workers are busy")))
}

fn tests(tests: &::fleet::RunningTests) -> RunningTests {
    RunningTests {
        effect: tests.effect.to_string(),
        command: tests.command.clone(),
        since: time(tests.since),
    }
}

/// The same for as long as it waits.
fn waiting_id(item: &Waiting) -> String {
    let about = &item.about;
    if let Some(approval) = &about.approval {
        return approval.to_string();
    }
    if let Some(request) = &about.request {
        return request.to_string();
    }
    let names = [
        about.task.as_ref().map(ToString::to_string),
        about.dependency.as_ref().map(ToString::to_string),
        about.worker.as_ref().map(ToString::to_string),
        about.service.as_ref().map(ToString::to_string),
        about.channel.as_ref().map(ToString::to_string),
    ];
    let names: Vec<String> = names.into_iter().flatten().collect();
    [vec![item.kind.name().to_owned()], names].concat().join("-")
}

/// The tips of the branches whose changed lines a board shows.
pub fn tips(world: &World) -> impl Iterator<Item = (&Arc<Task>, &str)> {
    world.tasks.values().filter_map(|task| {
        let tip = task.work.place.as_ref()?.tip.as_ref()?;
        Some((task, tip.as_str()))
    })
}
