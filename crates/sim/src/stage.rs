//! The stage: clock, log, World and outside world. Whoever acts in a life acts on it: the loop, the people, the rooms.

use super::played::{MAIN_FAILS, PlayedWorld, TESTS, Work, service};
use super::random::Random;
use super::{Fault, Moment, Plan, Report, What};
use imbl::OrdMap;
use kernel::command::{Ask, Happened, SeenTicket};
use kernel::config::{self, Config};
use kernel::event::Event;
use kernel::world::SentBack;
use kernel::{Actor, Answer, Command, Commit, Effect, Millis, Refusal, World, invariants};
use log::outbox::{self, Attempt, Backoff, Clock, Executor, Meaning, Outbox, OutboxHost, Told};
use log::{Appended, Fence, Leased, Log, LogError, MemoryLog, Pending};
use machines::names::{AgentName, EffectId, TaskId};
use machines::task::{Status, TaskType};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// When every life begins, in the virtual clock.
const BEGINNING: Millis = 1_700_000_000_000;
/// Times that each kind of disturbance may come, so that every life ends.
const DISTURBANCES_MAX: u32 = 12;

/// A life that must not go on: an invariant broke, an outcome was refused, or it hangs.
pub(super) type Played = Result<(), String>;

/// Why an executor got no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    Log(LogError),
    /// Another attempt is at the effect, or nobody wants it any more.
    Fenced,
    /// The process that asked was killed meanwhile, and nobody is there to hear the answer.
    Killed,
    /// A life that must not go on.
    Failure(String),
}

/// The disks of the log and of the trees, until when each is full, by the steady clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disks {
    pub log_full_until: Millis,
    pub trees_full_until: Millis,
}

pub(super) struct Stage<'t> {
    pub plan: Plan,
    pub random: Random,
    /// The clock that nobody sets.
    pub steady: Millis,
    /// By how much the clock that people read is ahead of it.
    /// How long the machine slept before the owner of now started, and since.
    pub slept: Millis,
    pub slept_in_life: Millis,
    pub clock_ahead: Millis,
    pub world: World,
    pub log: MemoryLog,
    pub played: PlayedWorld,
    pub report: Report,
    /// How often the person has looked.
    pub looks: u64,
    /// What the owner that is alive has in hand.
    pub outbox: Outbox,
    /// What it has taken up and not yet begun.
    pub begun: Vec<Attempt>,
    /// When it looks again at the latest.
    pub wake: Option<Millis>,
    pub disks: Disks,
    pub agenda: BTreeMap<(Millis, u64), Item>,
    pub items: u64,
    commands: u64,
    pub owner: u64,
    disturbances: BTreeMap<Fault, u32>,
    digest: u64,
    trace: &'t mut dyn FnMut(&str),
    watcher: &'t mut dyn FnMut(&Moment),
}

/// What will happen at a time.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// An agent prints the next thing.
    Output(Attempt),
    /// An outcome reaches the log.
    Arrives {
        attempt: Attempt,
        what: Happened,
    },
    /// An outcome reaches the log that has reached it before, or whose process has been killed since.
    ArrivesAfterAll {
        fence: Fence,
        what: Happened,
    },
    /// An effect is carried out once more.
    Again(Attempt),
    /// The owner is killed.
    Killed,
    /// There is room on the disk again.
    RoomIsBack,
    ServiceGoes {
        fault: Fault,
    },
    ServiceComes,
    Disturb(Fault),
    /// Somebody mends main.
    MainMended,
    /// Somebody puts a ticket's file back.
    TicketBack(TaskId),
    /// A person looks at what waits.
    Person,
    /// The agent outside goes on.
    Outside(u32),
    /// Somebody does something in a room.
    Room(u32),
    /// Somebody submits a spec.
    Spec(u32),
}

impl<'t> Stage<'t> {
    pub fn new(plan: &Plan, trace: &'t mut dyn FnMut(&str), watcher: &'t mut dyn FnMut(&Moment)) -> Self {
        Self {
            plan: plan.clone(),
            random: Random::new(plan.seed),
            steady: BEGINNING,
            clock_ahead: 0,
            world: World::default(),
            log: MemoryLog::new(),
            played: PlayedWorld::default(),
            report: Report { tasks: plan.tasks, ..Report::default() },
            looks: 0,
            outbox: Outbox::default(),
            slept: 0,
            slept_in_life: 0,
            begun: Vec::new(),
            wake: None,
            disks: Disks::default(),
            agenda: BTreeMap::new(),
            items: 0,
            commands: 0,
            owner: 1,
            disturbances: BTreeMap::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            trace,
            watcher,
        }
    }

    fn show(&mut self, what: What) {
        (self.watcher)(&Moment { at: self.steady - BEGINNING, world: &self.world, what });
    }

    /// The time as people read it, and as the log keeps it.
    pub fn now(&self) -> Millis {
        self.steady + self.clock_ahead
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.plan.faults.contains(&fault)
    }

    pub fn hit(&mut self, fault: Fault) {
        *self.report.hits.faults.entry(fault.name()).or_default() += 1;
        self.show(What::Struck(fault));
    }

    /// A fault of the plan that strikes now, by chance, a bounded number of times.
    pub fn strikes(&mut self, fault: Fault, once_in: u64) -> bool {
        let count = self.disturbances.get(&fault).copied().unwrap_or(0);
        let strikes = self.has(fault) && count < DISTURBANCES_MAX && self.random.once_in(once_in);
        if strikes {
            self.disturbances.insert(fault, count + 1);
            self.hit(fault);
        }
        strikes
    }

    pub fn later(&mut self, millis: Millis, item: Item) {
        self.items += 1;
        self.agenda.insert((self.steady + millis.max(0), self.items), item);
    }

    fn say(&mut self, line: &str) {
        for byte in line.as_bytes().iter().chain(b"\n") {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        (self.trace)(line);
    }

    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// The architect that the settings name, where the plan has one.
    pub fn architect(&self) -> Option<config::Architect> {
        self.has(Fault::Architect).then(|| config::Architect {
            agent: architect_agent(),
            escalation_seconds: 7_200,
            raises_budgets: self.plan.seed.is_multiple_of(3),
        })
    }

    pub fn config(&self) -> Config {
        let few = self.has(Fault::FewTurns);
        let coder = config::Agent {
            service: Some(service()),
            role: if self.plan.seed.is_multiple_of(3) {
                config::Role::Intern
            } else {
                config::Role::Specialist
            },
            max_turns: Some(if few { 3 } else { 200 }),
            allowed_tools: Some(["Edit", "Bash", "Read"].map(SmolStr::new_static).to_vec()),
            ..config::Agent::default()
        };
        let rule = |pattern: &'static str, colour| config::ToolRule {
            pattern: SmolStr::new_static(pattern),
            colour,
            commands_only: false,
        };
        let fleet = config::Fleet {
            workers: self.plan.workers,
            review: match (self.has(Fault::ReviewByPerson), self.has(Fault::Architect)) {
                (true, _) => config::Review::Human,
                (false, true) => config::Review::Architect,
                (false, false) => config::Review::Auto,
            },
            max_steps: if self.has(Fault::NeverDone) { 3 } else { 20 },
            plan_by_agent: self.has(Fault::Proposals),
            ..config::Fleet::default()
        };
        let outsider = config::Agent { max_turns: Some(2), ..coder.clone() };
        let speaker = config::Agent { service: Some(service()), ..config::Agent::default() };
        let has_tools = self.plan.seed.is_multiple_of(2);
        let lead = config::Agent { role: config::Role::Lead, has_tools, ..speaker.clone() };
        let hosted = [
            (hosted_agent("ada"), speaker.clone()),
            (hosted_agent("bob"), speaker),
            (architect_agent(), lead),
        ];
        Config {
            landed_hook: self.plan.seed.is_multiple_of(2),
            agents: [(fleet.agent.clone(), coder), (outside_agent(), outsider)]
                .into_iter()
                .chain(hosted)
                .collect(),
            architect: self.architect(),
            fleet,
            budget: config::Budget {
                run: self.has(Fault::TightBudget).then_some(700_000),
                task: self.has(Fault::TightBudget).then_some(1_200_000),
                day: self.has(Fault::TightDay).then_some(2_000_000),
                step: 300_000,
            },
            policy: config::Policy {
                tools: vec![
                    rule("Bash(git push*)", config::Colour::Red),
                    rule("Bash", config::Colour::Yellow),
                ],
                lead_may_complete: self.plan.seed.is_multiple_of(2),
                proposals: match self.plan.seed % 8 {
                    0..5 => config::Proposals::Ask,
                    5..7 => config::Proposals::Accept,
                    _ => config::Proposals::Refuse,
                },
                ..config::Policy::default()
            },
            services: vec![service()],
            restore: if self.plan.seed.is_multiple_of(5) {
                config::Restore::PerProvider
            } else {
                config::Restore::All
            },
            tests: Some(SmolStr::new_static(TESTS)),
            limits: config::Limits { proposals: 3, ..config::Limits::default() },
            ..Config::default()
        }
    }

    /// The tickets: each depends on some that came before, and each has its share of what goes wrong.
    pub fn tickets(&mut self) -> Played {
        for number in 1..=self.plan.tasks {
            let id = task_id(number);
            let mut depends_on = BTreeSet::new();
            for _ in 0..self.random.below(3) {
                if number > 1 {
                    depends_on.insert(task_id(self.random.below(u64::from(number - 1)) as u32 + 1));
                }
            }
            let mishaps = self.mishaps();
            let changes = !(self.has(Fault::NoChanges) && self.random.once_in(2));
            if !changes {
                self.hit(Fault::NoChanges);
            }
            let steps_needed = self.random.below(3) as u32 + 1;
            let work =
                Work { tip: 1, steps_needed, steps_done: 0, green: true, changes, conflicts: false, mishaps };
            self.played.works.insert(id.clone(), work);
            let priority = self.random.below(5) as u8;
            self.ticket(&id, "open", priority, depends_on.into_iter().collect(), "do it", false)?;
        }
        Ok(())
    }

    pub fn ticket(
        &mut self,
        id: &TaskId,
        status: &'static str,
        priority: u8,
        depends_on: Vec<TaskId>,
        body: &str,
        by_hand: bool,
    ) -> Played {
        self.system(Ask::SeeTicket(SeenTicket {
            id: id.clone(),
            status: machines::Wire::read(status).expect("a status of a ticket"),
            title: format!("Task {id}"),
            body: body.to_owned(),
            task_type: TaskType::Feature,
            priority,
            plan: None,
            depends_on,
            created: None,
            assignee: None,
            by_hand,
        }))
        .map(drop)
    }

    /// What will go wrong with one task. Faults that pass come less often than the limits that they count towards.
    fn mishaps(&mut self) -> Vec<Fault> {
        let mut mishaps = Vec::new();
        let faults: Vec<Fault> = self.plan.faults.iter().copied().collect();
        for fault in faults {
            let most = match fault {
                Fault::AgentCrash
                | Fault::AgentTimeout
                | Fault::RedTests
                | Fault::Conflict
                | Fault::RedMerge
                | Fault::TestsInDoubt
                | Fault::TestsNotStarted => 1,
                Fault::SessionLost
                | Fault::TreeFails
                | Fault::EffectFails
                | Fault::DoneLie
                | Fault::MainMovedByOther => 1,
                Fault::CheckoutInTheWay
                | Fault::PullRequest
                | Fault::RemoteAway
                | Fault::Loop
                | Fault::ToolFailures
                | Fault::LimitPassed
                | Fault::ToolDenied
                | Fault::RedAction => 1,
                Fault::AgentCrashesAlways => 7,
                Fault::TestsStayRed => 5,
                Fault::NeverLands | Fault::ConflictIgnored => 5,
                Fault::RepeatsItself => 3,
                Fault::KeeperLost => 4,
                Fault::NeverDone => 4,
                _ => 0,
            };
            // A task that is blocked for good shows nothing of what would have come later.
            let once_in = if matches!(fault, Fault::TestsNotStarted | Fault::LimitPassed) { 8 } else { 2 };
            if most > 0 && self.random.once_in(once_in) {
                mishaps.extend(std::iter::repeat_n(fault, most));
            }
        }
        // In an order of chance; the same for the same seed.
        for at in (1..mishaps.len()).rev() {
            let other = self.random.below(at as u64 + 1) as usize;
            mishaps.swap(at, other);
        }
        mishaps
    }

    /// Tells what came of an effect, or how far it has got, whoever follows it.
    pub fn outcome(&mut self, fence: &Fence, what: Happened) -> Result<Told, String> {
        match at_once(outbox::tell(self, fence, what)) {
            Ok(told) => Ok(told),
            Err(Trouble::Killed) => Ok(Told::Superseded),
            Err(trouble) => Err(trouble.failure()),
        }
    }

    /// The system's own commands are not refused either.
    pub fn system(&mut self, ask: Ask) -> Played {
        let shown = format!("{ask:?}");
        self.submit(Actor::System, ask, None)?
            .map(drop)
            .map_err(|refusal| format!("{shown} was refused: {refusal}"))
    }

    /// Asks, and asks again where the log had no room.
    pub fn submit(
        &mut self,
        actor: Actor,
        ask: Ask,
        fence: Option<Fence>,
    ) -> Result<Result<(), Refusal>, String> {
        let mut backoff = Backoff::default();
        loop {
            let trouble = match self.decide(actor.clone(), ask.clone(), fence.clone()) {
                Ok(Answer::Done(_)) => return Ok(Ok(())),
                Ok(Answer::Refused(refusal)) => return Ok(Err(refusal)),
                Err(trouble) => trouble,
            };
            if !at_once(backoff.again(self, &trouble)) {
                return Err(trouble.failure());
            }
        }
    }

    /// Decides a command, writes it down, and looks whether everything still holds.
    fn decide(&mut self, actor: Actor, ask: Ask, fence: Option<Fence>) -> Result<Answer, Trouble> {
        if let Some(fence) = &fence {
            let wanted = EffectId::new(&fence.effect).is_ok_and(|id| self.world.effects.contains_key(&id));
            if !wanted || !self.log.holds(fence).map_err(Trouble::Log)? {
                return Err(Trouble::Fenced);
            }
        }
        self.commands += 1;
        let command =
            Command { id: u128::from(self.commands), at: self.now(), actor, token_for: None, key: None, ask };
        let commit = match kernel::handle(&self.world, &command) {
            Ok(commit) => commit,
            Err(refusal) => {
                self.say(&format!("{} {} refused: {}", self.now(), command.actor, refusal.message));
                return Ok(Answer::Refused(refusal));
            }
        };
        let answer = match commit.answer.clone() {
            Ok(reply) => Answer::Done(reply),
            Err(refusal) => Answer::Refused(refusal),
        };
        if commit.events.is_empty() {
            return Ok(answer);
        }
        let entry = log::owner::entry(&command, fence, &commit.events);
        self.find_room_for_log()?;
        match self.log.append(&[entry]).map_err(Trouble::Log)?.first() {
            Some(Appended::Written { .. }) => {}
            other => return Err(Trouble::Failure(format!("the log answered {other:?}"))),
        }
        self.count(&command, &commit);
        for event in &commit.events {
            let line = format!("{} {} {} {}", self.now(), command.actor, event.kind(), event.encode());
            self.say(&line);
        }
        let before = std::mem::replace(&mut self.world, commit.world);
        self.nobody_is_blamed_for_main(&before, &commit.events).map_err(Trouble::Failure)?;
        for task in loaded(&commit.events) {
            self.played.works.insert(task, Work::plain());
        }
        self.show(What::Committed { events: &commit.events, rules: &commit.rules });
        let mut violations = invariants::check(&self.world);
        violations.extend(invariants::check_commit(&before, &self.world));
        if !violations.is_empty() {
            let list: Vec<_> = violations.iter().map(ToString::to_string).collect();
            return Err(Trouble::Failure(format!("after {:?}:\n  {}", command.ask, list.join("\n  "))));
        }
        if self.strikes(Fault::CrashAfterAppend, 40) {
            self.crash().and_then(|()| self.recover()).map_err(Trouble::Failure)?;
        }
        Ok(answer)
    }

    /// A task's first red gate is not sent back to its agent, and its last does not end it, for what fails on main as well,
    /// unless main was run since.
    fn nobody_is_blamed_for_main(&self, before: &World, events: &[Event]) -> Result<(), String> {
        let main_fails = format!("{MAIN_FAILS}{}", self.played.mends);
        for event in events {
            let Event::SentBackTo(sent) = event else { continue };
            let SentBack::Gate(output) = &sent.what else { continue };
            let holds = |worker: &&Arc<kernel::world::Worker>| worker.machine.task.as_ref() == Some(&sent.id);
            let Some(worker) = before.workers.values().find(holds) else { continue };
            let rounds = worker.machine.fix_rounds;
            let is_last = rounds >= worker.machine.limits.max_fix_rounds;
            let since = if is_last { worker.last_step_at } else { worker.task_assigned_at };
            let ran_at = self.world.main_verdict().and_then(|verdict| verdict.ran_at);
            // Main may turn red after it was run: that is seen at the last of them.
            let is_known = since.is_some_and(|since| ran_at.is_some_and(|ran_at| ran_at >= since));
            let counts = (rounds == 0 || is_last) && !is_known;
            if self.played.main_red && counts && *output == main_fails {
                return Err(format!("`{}` was sent back for what fails on main", sent.id));
            }
        }
        Ok(())
    }

    fn find_room_for_log(&mut self) -> Result<(), Trouble> {
        if self.steady < self.disks.log_full_until {
            self.hit(Fault::FullDisk);
            return Err(Trouble::Log(LogError::Full));
        }
        Ok(())
    }

    fn count(&mut self, command: &Command, commit: &Commit) {
        self.report.commits += 1;
        if let Ask::Outcome(outcome) = &command.ask
            && let Some(effect) = self.world.effects.get(&outcome.effect)
        {
            let came_to = (effect.kind(), outcome.what.kind());
            *self.report.hits.outcomes.entry(came_to).or_default() += 1;
        }
        self.report.events += commit.events.len() as u64;
        for rule in &commit.rules {
            *self.report.hits.rules.entry(rule.name()).or_default() += 1;
        }
        // Faults that are a setting strike when a limit is reached because of them.
        for (fault, rule) in [
            (Fault::FewTurns, kernel::Rule::TurnLimit),
            (Fault::TightBudget, kernel::Rule::BudgetReached),
            (Fault::TightDay, kernel::Rule::BudgetReached),
        ] {
            let of_day = commit.world.day_approval.is_some();
            let fits = fault == Fault::FewTurns || (fault == Fault::TightDay) == of_day;
            if self.has(fault) && fits && commit.rules.contains(&rule) {
                self.hit(fault);
            }
        }
        for row in &commit.rows {
            *self.report.hits.rows.entry(*row).or_default() += 1;
        }
    }

    /// The owner dies: its World, its executors and what they had on the way are gone. Keepers live on.
    pub fn crash(&mut self) -> Played {
        self.report.crashes += 1;
        self.owner += 1;
        self.outbox = Outbox::default();
        self.slept = std::mem::take(&mut self.slept_in_life);
        self.begun.clear();
        let of_process = |item: &Item| {
            matches!(item, Item::Output(_) | Item::Arrives { .. } | Item::Again(_) | Item::Killed)
        };
        self.agenda.retain(|_, item| !of_process(item));
        let folded = fold(&self.log);
        // What the log folds to is what was lost; anything else would be a second truth.
        if folded != self.world {
            return Err("the log does not fold to the World that was lost".to_owned());
        }
        self.world = folded;
        self.show(What::OwnerKilled);
        Ok(())
    }

    /// What the owner does first when it starts again.
    pub fn recover(&mut self) -> Played {
        at_once(outbox::take_over(self)).map_err(Trouble::failure)?;
        let away = self.random.between(0, 30_000);
        self.system(Ask::WasAway { since: self.now() - away, hosted: false })?;
        let held: Vec<_> = self
            .world
            .workers
            .values()
            .filter(|w| w.machine.task.is_some())
            .map(|w| w.name.clone())
            .collect();
        for name in held {
            let gone = self.strikes(Fault::TreeGone, 3);
            let keeper_lost = self.strikes(Fault::KeeperLost, 3);
            let Some(worker) = self.world.worker(&name) else { continue };
            let run = worker.machine.task.as_ref().and_then(|id| self.world.run_of(id));
            let step = run.and_then(|run| run.step.clone());
            if let (true, Some(step)) = (gone || keeper_lost, &step) {
                self.played.processes.remove(step);
            }
            let tree = match (gone, self.random.below(3)) {
                (true, _) => worker::Tree::Missing,
                (_, 0) => worker::Tree::Dirty,
                _ => worker::Tree::Clean,
            };
            let lost = gone || keeper_lost;
            let ask = Ask::Recover {
                worker: name.clone(),
                tree,
                step_under_way: !lost && step.is_some(),
                said_done: keeper_lost && self.random.once_in(3),
                resumable: !keeper_lost || self.random.once_in(2),
            };
            self.system(ask.clone())?;
            // Who gave its task back is told of once more by an owner that was cut off in the middle of this.
            if self.world.worker(&name).is_some_and(|worker| worker.machine.task.is_none()) {
                self.system(ask)?;
            }
        }
        Ok(())
    }

    /// What must be true of every life that has ended.
    pub fn end(&mut self) -> Played {
        for task in self.world.tasks.values().cloned().collect::<Vec<_>>() {
            let merged = self.played.merges.values().filter(|id| **id == task.id).count();
            match (task.status(), merged) {
                (Status::Done, count) if count != usize::from(task.has_code()) => {
                    return Err(format!("`{}` is DONE and was merged {count} times", task.id));
                }
                (Status::Done, _) => self.report.done += 1,
                (_, 1..) => {
                    return Err(format!("`{}` is {} and its code is in main", task.id, task.status()));
                }
                (Status::Canceled, _) => {
                    self.report.canceled += 1;
                    self.allowed(&task, "was canceled")?;
                }
                (status, _) => {
                    let why = kernel::why::of_task(&self.world, &task.id, self.now()).unwrap_or_default();
                    let failing = why
                        .iter()
                        .find(|guard| !guard.holds)
                        .map_or("nothing".to_owned(), |guard| guard.detail.clone());
                    self.allowed(&task, &format!("is {status} and waits: {failing}"))?;
                    self.report.waiting.push(format!("{} is {status}: {failing}", task.id));
                }
            }
        }
        for ticket in &self.played.closed {
            let id = TaskId::new(ticket).map_err(|error| error.to_string())?;
            let closed =
                self.world.tasks.values().any(|t| t.origin.ticket.as_ref() == Some(ticket) && t.is_final());
            if !closed {
                return Err(format!("ticket `{id}` was closed and its task is not"));
            }
        }
        Ok(())
    }

    /// A wait at the end is allowed only where the plan holds its cause.
    fn allowed(&self, task: &kernel::world::Task, what: &str) -> Played {
        use machines::task::BlockReason as B;
        let person = [
            Fault::Cancel,
            Fault::Kill,
            Fault::OddMoves,
            Fault::TicketClosed,
            Fault::FewTurns,
            Fault::TightBudget,
            Fault::TightDay,
            Fault::RedAction,
            Fault::OutsideAgent,
            Fault::Proposals,
        ];
        let causes: &[Fault] = match (task.status(), task.machine.block_reason) {
            (Status::Inbox | Status::Canceled, _) if task.is_waiting_proposal() => &[Fault::Proposals],
            (Status::Blocked, Some(B::Stuck)) => &[
                Fault::AgentCrashesAlways,
                Fault::TestsStayRed,
                Fault::ConflictIgnored,
                Fault::NoChanges,
                Fault::OutsideAgent,
            ],
            (Status::Blocked, Some(B::Environment)) => &[Fault::TestsNotStarted],
            (Status::Blocked, Some(B::Loop)) => &[Fault::Loop, Fault::RepeatsItself],
            (Status::Blocked, Some(B::Limit)) => &[Fault::LimitPassed],
            (Status::Blocked, Some(B::ToolFailures)) => {
                &[Fault::ToolFailures, Fault::ToolDenied, Fault::OutsideAgent]
            }
            (Status::Blocked, Some(B::LostWorkers)) => {
                &[Fault::KeeperLost, Fault::TreeGone, Fault::OutsideAgent]
            }
            (Status::Blocked, Some(B::Landing)) => &[Fault::NeverLands, Fault::ConflictIgnored],
            (Status::Blocked, Some(B::ReviewCycles)) => {
                &[Fault::ReviewByPerson, Fault::OddMoves, Fault::Architect, Fault::Rooms]
            }
            (Status::Review, _) => &[
                Fault::ReviewByPerson,
                Fault::NoChanges,
                Fault::NeverDone,
                Fault::OddMoves,
                Fault::OutsideAgent,
                Fault::Architect,
            ],
            (Status::Inbox | Status::Assigned, _) if !self.world.dependencies_done(task) => {
                let blocking = task
                    .depends_on
                    .iter()
                    .filter_map(|on| self.world.task(on))
                    .find(|on| on.status() != Status::Done);
                return match blocking {
                    Some(on) => self.allowed(on, "is waited for"),
                    None => Err(format!("`{}` waits for a dependency that is not there", task.id)),
                };
            }
            (Status::InProgress, _)
                if task.work.run.as_ref().is_some_and(|run| self.world.open_question(run).is_some()) =>
            {
                &[Fault::Proposals, Fault::Architect]
            }
            // Stuck workers hold nobody up, and a budget of its own has it ask: what is left is a day that a person gave no
            // more money.
            (Status::Inbox | Status::Assigned | Status::InProgress, _) => {
                &[Fault::OutsideAgent, Fault::OddMoves, Fault::TightDay]
            }
            _ => &person,
        };
        if causes.iter().any(|fault| self.has(*fault)) {
            return Ok(());
        }
        Err(format!("`{}` {what}, and no fault of the plan explains it", task.id))
    }

    pub fn report(mut self, result: Played) -> Report {
        self.report.failure = result.err();
        self.report.virtual_millis = self.steady - BEGINNING;
        self.report.cost = self.world.spend.cost;
        self.report.digest = self.digest;
        self.report
    }
}

fn fold(log: &MemoryLog) -> World {
    let mut world = World::default();
    log.scan(0, &mut |record| {
        let event = Event::decode(&record.kind, &record.data).expect("what was written can be read");
        world.apply(&event).expect("what was decided folds");
        std::ops::ControlFlow::Continue(())
    })
    .expect("a memory log is whole");
    world
}

pub(super) fn task_id(number: u32) -> TaskId {
    TaskId::new(format!("t{number}")).expect("a counted id is a name")
}

pub(super) fn hosted_agent(name: &'static str) -> AgentName {
    AgentName::new(name).expect("a constant")
}

pub(super) fn architect_agent() -> AgentName {
    hosted_agent("lead")
}

/// The stories that a commit brought, so that somebody can work on them.
fn loaded(events: &[Event]) -> Vec<TaskId> {
    let of = |event: &Event| match event {
        Event::StoryLoaded(loaded) => Some(loaded.task.clone()),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

pub(super) fn outside_agent() -> AgentName {
    AgentName::new("outsider").expect("a constant")
}

impl Trouble {
    pub fn failure(self) -> String {
        match self {
            Trouble::Failure(failure) => failure,
            trouble => format!("{trouble:?}"),
        }
    }
}

impl Clock for Stage<'_> {
    fn now(&self) -> Millis {
        Stage::now(self)
    }

    fn steady(&self) -> Millis {
        self.steady
    }

    fn slept(&self) -> Millis {
        self.slept
    }
}

impl OutboxHost for Stage<'_> {
    type Error = Trouble;

    fn meaning(trouble: &Trouble) -> Meaning {
        match trouble {
            Trouble::Log(error) => Meaning::of_log(error),
            Trouble::Fenced => Meaning::Fenced,
            Trouble::Killed | Trouble::Failure(_) => Meaning::Stays,
        }
    }

    fn effects(&self) -> OrdMap<EffectId, Arc<Effect>> {
        self.world.effects.clone()
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn has_no_room(&self) -> bool {
        self.steady < self.disks.log_full_until.max(self.disks.trees_full_until)
    }

    /// Nothing can be written down meanwhile, so whatever falls due comes after it.
    async fn rest(&mut self, wait: Duration, _: &Trouble) {
        self.steady += millis(wait);
    }

    async fn submit(&mut self, ask: Ask, fence: Option<Fence>) -> Result<Answer, Trouble> {
        let owner = self.owner;
        let answer = self.decide(Actor::System, ask, fence)?;
        if owner == self.owner { Ok(answer) } else { Err(Trouble::Killed) }
    }

    fn refused(&mut self, fence: &Fence, what: &Happened, refusal: Refusal) -> Result<(), Trouble> {
        Err(Trouble::Failure(format!("outcome {what:?} of {} was refused: {refusal}", fence.effect)))
    }

    fn unfit(&mut self, fence: &Fence, effect: &Effect, what: &Happened) -> Result<(), Trouble> {
        let (id, kind) = (&fence.effect, effect.kind());
        Err(Trouble::Failure(format!("effect {id} ({kind}) cannot come to {what:?}")))
    }

    async fn lease(
        &mut self,
        holder: &'static str,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, Trouble> {
        self.find_room_for_log()?;
        let now = Stage::now(self);
        self.log.lease(holder, now, until, limit).map_err(Trouble::Log)
    }

    async fn release(&mut self, fence: &Fence) -> Result<(), Trouble> {
        self.find_room_for_log()?;
        self.log.release(fence).map(drop).map_err(Trouble::Log)
    }

    async fn pending(&mut self) -> Result<Vec<Pending>, Trouble> {
        self.log.outbox().map_err(Trouble::Log)
    }
}

impl<'t> Executor for Stage<'t> {
    type Host = Stage<'t>;

    fn host(&mut self) -> &mut Stage<'t> {
        self
    }

    fn leaves(&self, _: &Effect) -> bool {
        false
    }

    fn begin(&mut self, attempt: Attempt) {
        self.begun.push(attempt);
    }

    fn cannot_read(&mut self, effect: &str) {
        panic!("effect {effect} cannot be read");
    }
}

/// What the driver waits for is there at once: here the clock is moved instead.
pub(super) fn at_once<T>(work: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(work).poll(&mut context) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("nothing in the simulator waits"),
    }
}

pub(super) fn millis(wait: Duration) -> Millis {
    Millis::try_from(wait.as_millis()).expect("a wait of a life")
}
