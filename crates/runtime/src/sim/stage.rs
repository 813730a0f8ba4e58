//! The stage: clock, log, World and outside world, and the loop that plays a life.

use super::outside::{Down, Outside, TESTS, Work, service};
use super::random::Random;
use super::{Fault, Moment, Plan, Report, What, people};
use crate::log::{Appended, Fence, Log, MemoryLog};
use kernel::command::{Ask, Happened, Outcome, SeenTicket, Usage};
use kernel::config::{self, Config};
use kernel::event::Event;
use kernel::{Actor, Command, Commit, Effect, Millis, Refusal, World, invariants};
use machines::names::{AgentName, EffectId, TaskId};
use machines::task::{Status, TaskType};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// When every life begins, in the virtual clock.
const BEGINNING: Millis = 1_700_000_000_000;
/// How long an executor holds an effect without a sign of life.
const LEASE_MILLIS: Millis = 120_000;
/// Turns of the loop that a life may take. A life that does not end by then hangs.
const TURNS_MAX: u64 = 60_000;
/// Times that each kind of disturbance may come, so that every life ends.
const DISTURBANCES_MAX: u32 = 12;

/// Plays one life. `trace` gets every line of what happens.
pub fn run(plan: &Plan, trace: &mut dyn FnMut(&str)) -> Report {
    watch(plan, trace, &mut |_| {})
}

/// Plays one life, and shows each of its moments to `watcher`, which changes nothing by looking.
pub fn watch(plan: &Plan, trace: &mut dyn FnMut(&str), watcher: &mut dyn FnMut(&Moment)) -> Report {
    let mut stage = Stage::new(plan, trace, watcher);
    let result = stage.play();
    stage.report(result)
}

/// A life that must not go on: an invariant broke, an outcome was refused, or it hangs.
type Played = Result<(), String>;

pub(super) struct Stage<'t> {
    pub plan: Plan,
    pub random: Random,
    pub now: Millis,
    pub world: World,
    pub log: MemoryLog,
    pub outside: Outside,
    pub report: Report,
    /// How often the person has looked.
    pub looks: u64,
    agenda: BTreeMap<(Millis, u64), Item>,
    items: u64,
    commands: u64,
    owner: u64,
    disturbances: BTreeMap<Fault, u32>,
    digest: u64,
    trace: &'t mut dyn FnMut(&str),
    watcher: &'t mut dyn FnMut(&Moment),
}

/// What will happen at a time.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// An agent prints the next thing.
    Output {
        step: EffectId,
        attempt: u32,
    },
    /// An outcome reaches the log.
    Arrives {
        effect: EffectId,
        attempt: u32,
        what: Happened,
    },
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
}

impl<'t> Stage<'t> {
    fn new(plan: &Plan, trace: &'t mut dyn FnMut(&str), watcher: &'t mut dyn FnMut(&Moment)) -> Self {
        Self {
            plan: plan.clone(),
            random: Random::new(plan.seed),
            now: BEGINNING,
            world: World::default(),
            log: MemoryLog::new(),
            outside: Outside::default(),
            report: Report { tasks: plan.tasks, ..Report::default() },
            looks: 0,
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
        (self.watcher)(&Moment { at: self.now - BEGINNING, world: &self.world, what });
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.plan.faults.contains(&fault)
    }

    pub fn hit(&mut self, fault: Fault) {
        *self.report.hits.faults.entry(fault.name()).or_default() += 1;
        self.show(What::Struck(fault));
    }

    /// A fault of the plan that strikes now, by chance, a bounded number of times.
    fn strikes(&mut self, fault: Fault, once_in: u64) -> bool {
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
        self.agenda.insert((self.now + millis.max(0), self.items), item);
    }

    fn say(&mut self, line: &str) {
        for byte in line.as_bytes().iter().chain(b"\n") {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        (self.trace)(line);
    }

    fn play(&mut self) -> Played {
        self.system(Ask::Configure { config: Box::new(self.config()) })?;
        self.tickets()?;
        self.system(Ask::StartFleet { workers: self.plan.workers })?;
        self.disturb();
        for _ in 0..TURNS_MAX {
            self.work()?;
            if self.over() || !self.advance()? {
                return self.end();
            }
        }
        let pending: Vec<_> =
            self.world.effects.iter().map(|(id, effect)| format!("{} {id}", effect.kind())).collect();
        Err(format!("it does not end: after {TURNS_MAX} turns these are pending: {}", pending.join(", ")))
    }

    /// Every task has reached its end, and nothing is under way: what is still on the agenda changes nothing.
    fn over(&self) -> bool {
        let closed = |task: &std::sync::Arc<kernel::world::Task>| {
            matches!(task.status(), Status::Done | Status::Canceled)
        };
        self.world.effects.is_empty() && self.world.tasks.values().all(closed)
    }

    fn config(&self) -> Config {
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
            review: if self.has(Fault::ReviewByPerson) {
                config::Review::Human
            } else {
                config::Review::Auto
            },
            max_steps: if self.has(Fault::NeverDone) { 3 } else { 20 },
            ..config::Fleet::default()
        };
        let outsider = config::Agent { max_turns: Some(2), ..coder.clone() };
        Config {
            agents: [(fleet.agent.clone(), coder), (outside_agent(), outsider)].into_iter().collect(),
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
    fn tickets(&mut self) -> Played {
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
            let work = Work { tip: 1, steps_needed, steps_done: 0, green: true, changes, mishaps };
            self.outside.works.insert(id.clone(), work);
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
            status: SmolStr::new_static(status),
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
                | Fault::MainMoved => 1,
                Fault::CheckoutInTheWay
                | Fault::Loop
                | Fault::ToolFailures
                | Fault::LimitPassed
                | Fault::ToolDenied
                | Fault::RedAction => 1,
                Fault::AgentCrashesAlways => 7,
                Fault::TestsStayRed => 5,
                Fault::NeverLands => 5,
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

    /// Puts what disturbs from outside onto the agenda.
    fn disturb(&mut self) {
        let disturbing = [
            Fault::ClockJump,
            Fault::Cancel,
            Fault::Kill,
            Fault::OddMoves,
            Fault::TicketClosed,
            Fault::TicketChanged,
            Fault::TicketGone,
            Fault::TreeGone,
        ];
        for fault in disturbing {
            for _ in 0..if self.has(fault) { 3 } else { 0 } {
                let at = self.random.between(1_000, 900_000);
                self.later(at, Item::Disturb(fault));
            }
        }
        for fault in [Fault::Outage, Fault::OutageWithReset, Fault::LongOutage] {
            if self.has(fault) {
                let at = self.random.between(5_000, 300_000);
                self.later(at, Item::ServiceGoes { fault });
            }
        }
        if self.has(Fault::OutsideAgent) {
            self.later(1_000, Item::Outside(0));
        }
        if self.plan.faults.iter().any(|fault| !fault.passes()) {
            self.later(60_000, Item::Person);
        }
    }

    /// Takes what may be taken: timers that are due, effects that nobody holds.
    fn work(&mut self) -> Played {
        loop {
            let due = self.log.due(self.now).map_err(|error| error.to_string())?;
            let Some(timer) = due.first() else { break };
            let effect = effect_id(&timer.id)?;
            self.outcome(&effect, 0, Happened::TimerDue)?;
        }
        let owner = format!("owner-{}", self.owner);
        let leased = self
            .log
            .lease(&owner, self.now, self.now + LEASE_MILLIS, 1000)
            .map_err(|error| error.to_string())?;
        for lease in leased {
            let id = effect_id(&lease.id)?;
            let effect: Effect =
                serde_json::from_str(&lease.data).map_err(|error| format!("effect {id}: {error}"))?;
            self.begin(&id, &effect, lease.attempt)?;
        }
        Ok(())
    }

    fn begin(&mut self, id: &EffectId, effect: &Effect, attempt: u32) -> Played {
        let delay = self.random.between(200, 4_000);
        if let Effect::StartStep { task, run, turns_left, .. } = effect {
            if self.strikes(Fault::Proposals, 2) {
                people::propose(self, run)?;
            }
            let hits = self.outside.start_step(&self.world, id, task, *turns_left, &mut self.random);
            hits.into_iter().for_each(|fault| self.hit(fault));
            self.later(delay, Item::Output { step: id.clone(), attempt });
            return Ok(());
        }
        if matches!(effect, Effect::TestMain { .. })
            && !self.outside.main_red
            && self.strikes(Fault::MainRed, 4)
        {
            self.outside.main_red = true;
            let at = self.random.between(10_000, 300_000);
            self.later(at, Item::MainMended);
        }
        let faults = self.plan.faults.clone();
        let (what, hits) = self.outside.carry_out(id, effect, &faults, &mut self.random);
        hits.into_iter().for_each(|fault| self.hit(fault));
        if self.strikes(Fault::CrashAfterEffect, 12) {
            return self.crash();
        }
        self.send(delay, id, attempt, what);
        Ok(())
    }

    /// An outcome on its way, with what may happen to it there.
    fn send(&mut self, delay: Millis, effect: &EffectId, attempt: u32, what: Happened) {
        let item = |what| Item::Arrives { effect: effect.clone(), attempt, what };
        if self.strikes(Fault::LostOutcome, 15) {
            return;
        }
        if self.strikes(Fault::DuplicatedOutcome, 8) {
            self.later(delay + 10, item(what.clone()));
        }
        let late = if self.strikes(Fault::LateOutcome, 15) { 10 * LEASE_MILLIS } else { 0 };
        self.later(delay + late, item(what));
    }

    /// Moves the clock to what comes next. False: nothing will ever happen again.
    fn advance(&mut self) -> Result<bool, String> {
        let timer = self.log.next_due().map_err(|error| error.to_string())?;
        let lease = self
            .log
            .outbox()
            .map_err(|error| error.to_string())?
            .iter()
            .filter_map(|pending| pending.until)
            .min();
        let item = self.agenda.keys().next().map(|key| key.0);
        let Some(next) = [timer, lease, item].into_iter().flatten().min() else { return Ok(false) };
        self.now = self.now.max(next);
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let item = entry.remove();
            self.happen(item)?;
        }
        Ok(true)
    }

    fn happen(&mut self, item: Item) -> Played {
        match item {
            Item::Output { step, attempt } => self.output(&step, attempt),
            Item::Arrives { effect, attempt, what } => self.outcome(&effect, attempt, what),
            Item::ServiceGoes { fault } => {
                self.hit(fault);
                let minutes = if fault == Fault::LongOutage { 25 } else { self.random.between(1, 8) };
                let until = self.now + minutes * 60_000;
                let resets_at = (fault == Fault::OutageWithReset).then_some(until);
                // Someone sees to credentials that are not accepted as others see to a service.
                let refused = resets_at.is_none() && self.random.once_in(3);
                let asked = self.random.once_in(2);
                self.outside.down = Some(Down { resets_at, refused });
                self.outside.can_be_asked = asked;
                self.later(minutes * 60_000 - 1, Item::ServiceComes);
                Ok(())
            }
            Item::ServiceComes => {
                self.outside.down = None;
                Ok(())
            }
            Item::Disturb(fault) => {
                self.hit(fault);
                people::disturb(self, fault)
            }
            Item::MainMended => {
                self.outside.main_red = false;
                // It may come before anybody knows that main is red; whoever mends it looks whether it is noticed.
                let main = &self.world.main;
                let to_come = main.under_way.is_some() || main.again;
                if to_come || (self.world.main_is_known() && !self.world.main_is_green()) {
                    self.items += 1;
                    let tip = SmolStr::new(format!("mended{}", self.items));
                    self.system(Ask::SeeMain { tip })?;
                    self.later(60_000, Item::MainMended);
                }
                Ok(())
            }
            Item::TicketBack(id) => people::ticket_back(self, &id),
            Item::Person => people::look(self),
            Item::Outside(step) => people::outside_agent_acts(self, step),
        }
    }

    /// The agent prints; its executor passes on what the log has not taken yet.
    fn output(&mut self, step: &EffectId, attempt: u32) -> Played {
        let down = self.outside.down.clone();
        let Some(process) = self.outside.processes.get_mut(step) else { return Ok(()) };
        if process.over && process.written.is_empty() {
            return Ok(());
        }
        if let (Some(down), false) = (down, process.over) {
            process.over = true;
            process.outputs.clear();
            let usage = Usage { cost: Some(100), input_tokens: 1, output_tokens: 1 };
            process.written.push_back(Happened::Outage {
                service: service(),
                resets_at: down.resets_at,
                error: Some(SmolStr::new_static("529")),
                refused: down.refused,
                usage,
            });
        }
        let waits = process.waits_for.is_some();
        if !process.over
            && !waits
            && let Some(next) = process.outputs.pop_front()
        {
            if let Happened::CallAsked { call, .. } = &next {
                process.waits_for = Some(call.clone());
            }
            process.over = process.outputs.is_empty();
            process.written.push_back(next);
        }
        let fence = Fence { effect: step.to_string(), attempt };
        // Fenced: whoever holds it now reads on from what was written.
        if !self.log.renew(&fence, self.now + LEASE_MILLIS).map_err(|error| error.to_string())? {
            return Ok(());
        }
        let owner = self.owner;
        while let Some(what) =
            self.outside.processes.get(step).and_then(|process| process.written.front().cloned())
        {
            // The executor is gone; the next one takes up what was written.
            if self.strikes(Fault::LostOutcome, 15) {
                return Ok(());
            }
            if self.strikes(Fault::DuplicatedOutcome, 8) {
                self.outcome(step, attempt, what.clone())?;
            }
            self.outcome(step, attempt, what)?;
            if let Some(process) = self.outside.processes.get_mut(step) {
                process.written.pop_front();
            }
            if owner != self.owner {
                return Ok(());
            }
        }
        if self.outside.processes.get(step).is_some_and(|process| !process.over) {
            let delay = self.random.between(1_000, 20_000);
            self.later(delay, Item::Output { step: step.clone(), attempt });
        }
        Ok(())
    }

    /// An outcome is never refused.
    fn outcome(&mut self, effect: &EffectId, attempt: u32, what: Happened) -> Played {
        let fence = Fence { effect: effect.to_string(), attempt };
        let ask = Ask::Outcome(Outcome { effect: effect.clone(), what: what.clone() });
        self.submit(Actor::System, ask, Some(fence))?
            .map(drop)
            .map_err(|refusal| format!("outcome {what:?} of {effect} was refused: {refusal}"))
    }

    /// The system's own commands are not refused either.
    pub fn system(&mut self, ask: Ask) -> Played {
        let shown = format!("{ask:?}");
        self.submit(Actor::System, ask, None)?
            .map(drop)
            .map_err(|refusal| format!("{shown} was refused: {refusal}"))
    }

    /// Decides a command, writes it down, and looks whether everything still holds.
    pub fn submit(
        &mut self,
        actor: Actor,
        ask: Ask,
        fence: Option<Fence>,
    ) -> Result<Result<(), Refusal>, String> {
        self.commands += 1;
        let command = Command { id: u128::from(self.commands), at: self.now, actor, key: None, ask };
        let commit = match kernel::handle(&self.world, &command) {
            Ok(commit) => commit,
            Err(refusal) => {
                self.say(&format!("{} {} refused: {}", self.now, command.actor, refusal.message));
                return Ok(Err(refusal));
            }
        };
        let answer = commit.answer.clone().map(drop);
        if commit.events.is_empty() && fence.is_none() {
            return Ok(answer);
        }
        let entry = crate::owner::entry(&command, fence, &commit.events);
        match self.log.append(&[entry]).map_err(|error| error.to_string())?.first() {
            Some(Appended::Written { .. }) => {}
            Some(Appended::Fenced { .. }) => return Ok(Ok(())),
            other => return Err(format!("the log answered {other:?}")),
        }
        self.count(&commit);
        for event in &commit.events {
            let line = format!("{} {} {} {}", self.now, command.actor, event.kind(), event.encode());
            self.say(&line);
        }
        let before = std::mem::replace(&mut self.world, commit.world);
        self.show(What::Committed { events: &commit.events, rules: &commit.rules });
        let mut violations = invariants::check(&self.world);
        violations.extend(invariants::check_commit(&before, &self.world));
        if !violations.is_empty() {
            let list: Vec<_> = violations.iter().map(ToString::to_string).collect();
            return Err(format!("after {:?}:\n  {}", command.ask, list.join("\n  ")));
        }
        if self.strikes(Fault::CrashAfterAppend, 40) {
            self.crash()?;
            self.recover()?;
        }
        Ok(answer)
    }

    fn count(&mut self, commit: &Commit) {
        self.report.commits += 1;
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
    fn crash(&mut self) -> Played {
        self.report.crashes += 1;
        self.owner += 1;
        self.agenda.retain(|_, item| !matches!(item, Item::Output { .. } | Item::Arrives { .. }));
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
    fn recover(&mut self) -> Played {
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
                self.outside.processes.remove(step);
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
    fn end(&mut self) -> Played {
        for task in self.world.tasks.values().cloned().collect::<Vec<_>>() {
            let merged = self.outside.merges.values().filter(|id| **id == task.id).count();
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
                    let why = kernel::why::of_task(&self.world, &task.id, self.now).unwrap_or_default();
                    let failing = why
                        .iter()
                        .find(|guard| !guard.holds)
                        .map_or("nothing".to_owned(), |guard| guard.detail.clone());
                    self.allowed(&task, &format!("is {status} and waits: {failing}"))?;
                    self.report.waiting.push(format!("{} is {status}: {failing}", task.id));
                }
            }
        }
        for ticket in &self.outside.closed {
            let id = TaskId::new(ticket).map_err(|error| error.to_string())?;
            let closed = self.world.tasks.values().any(|t| {
                t.ticket.as_ref() == Some(ticket) && matches!(t.status(), Status::Done | Status::Canceled)
            });
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
        ];
        let causes: &[Fault] = match (task.status(), task.machine.block_reason) {
            (Status::Inbox | Status::Canceled, _) if task.is_waiting_proposal() => &[Fault::Proposals],
            (Status::Blocked, Some(B::Stuck)) => {
                &[Fault::AgentCrashesAlways, Fault::TestsStayRed, Fault::NoChanges, Fault::OutsideAgent]
            }
            (Status::Blocked, Some(B::Environment)) => &[Fault::TestsNotStarted],
            (Status::Blocked, Some(B::Loop)) => &[Fault::Loop],
            (Status::Blocked, Some(B::Limit)) => &[Fault::LimitPassed],
            (Status::Blocked, Some(B::ToolFailures)) => {
                &[Fault::ToolFailures, Fault::ToolDenied, Fault::OutsideAgent]
            }
            (Status::Blocked, Some(B::LostWorkers)) => {
                &[Fault::KeeperLost, Fault::TreeGone, Fault::OutsideAgent]
            }
            (Status::Blocked, Some(B::Landing)) => &[Fault::NeverLands],
            (Status::Blocked, Some(B::ReviewCycles)) => &[Fault::ReviewByPerson, Fault::OddMoves],
            (Status::Review, _) => &[
                Fault::ReviewByPerson,
                Fault::NoChanges,
                Fault::NeverDone,
                Fault::OddMoves,
                Fault::OutsideAgent,
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

    fn report(mut self, result: Played) -> Report {
        self.report.failure = result.err();
        self.report.virtual_millis = self.now - BEGINNING;
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

pub(super) fn outside_agent() -> AgentName {
    AgentName::new("outsider").expect("a constant")
}

fn effect_id(id: &str) -> Result<EffectId, String> {
    EffectId::new(id).map_err(|error| error.to_string())
}
