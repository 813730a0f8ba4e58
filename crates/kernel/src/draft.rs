//! A World in the making: each event is applied as it is emitted, so that the next rule sees it.
//!
//! Here single machines are driven, each by its own table; what moves several of them is in `rules.rs`.

use crate::checks::{channel_of, plan_source};
use crate::choice::Choice;
use crate::command::*;
use crate::effect::{Effect, Timer};
use crate::event::*;
use crate::hash::fnv;
use crate::published;
use crate::rules::{self, Rule};
use crate::words::{CommentKind, EffectEnd};
use crate::world::{Holder, Run, Task, Worker};
use crate::{Millis, World};
use machines::machine::{Advanced, Caller, advance};
use machines::names::{AgentName, ApprovalId, ChannelName, EffectId, RunId, TaskId, WorkerName};
use machines::suspended::{Suspendable, Suspends, Wrapped};
use machines::task::{Payload, Status};
use machines::{Machine, architect, run, task, turn, worker};
use smol_str::{SmolStr, format_smolstr};

/// A decided command: everything that it changes, at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub events: Vec<Event>,
    pub answer: Result<Reply, Refusal>,
    /// The rules that were used and the rows that were taken, for whoever counts them.
    pub rules: Vec<Rule>,
    pub rows: Vec<(&'static str, usize)>,
    /// The World after it.
    pub world: World,
}

/// What a rule gives: nothing, or a refusal of the whole command.
pub(crate) type Ruled = Result<(), Refusal>;

/// A World in the making.
pub(crate) struct Draft<'c> {
    pub world: World,
    pub command: &'c Command,
    events: Vec<Event>,
    rules: Vec<Rule>,
    rows: Vec<(&'static str, usize)>,
    sessions: u64,
}

impl<'c> Draft<'c> {
    pub(crate) fn new(world: &World, command: &'c Command) -> Self {
        Self {
            world: world.clone(),
            command,
            events: Vec::new(),
            rules: Vec::new(),
            rows: Vec::new(),
            sessions: 0,
        }
    }

    pub(crate) fn adopt(&mut self, commit: Commit) {
        self.world = commit.world;
        self.events = commit.events;
        self.rules = commit.rules;
        self.rows = commit.rows;
    }

    pub(crate) fn finish(self, answer: Result<Reply, Refusal>) -> Commit {
        Commit { events: self.events, answer, rules: self.rules, rows: self.rows, world: self.world }
    }

    pub fn at(&self) -> Millis {
        self.command.at
    }

    pub fn day(&self) -> i64 {
        crate::world::day_of(self.command.at)
    }

    pub fn command_name(&self) -> SmolStr {
        SmolStr::new(format!("{:032x}", self.command.id))
    }

    pub fn rule(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub fn emit(&mut self, event: impl Into<Event>) {
        let event = event.into();
        self.world.apply(&event).expect("an event that was just decided folds");
        self.events.push(event);
    }

    /// Writes an effect down. Its id counts up, so that the decision stays pure.
    pub fn ask(&mut self, what: Effect) -> EffectId {
        let id = EffectId::new(format!("e{}", self.world.next + 1)).expect("a counted id is a name");
        self.emit(EffectAsked { id: id.clone(), what });
        id
    }

    /// The effect is done, or no longer wanted.
    pub fn end(&mut self, id: &EffectId, how: EffectEnd) {
        if let Some(effect) = self.world.effects.get(id) {
            let task = effect.task().cloned();
            self.emit(EffectEnded { id: id.clone(), task, how });
        }
    }

    pub fn set_timer(&mut self, timer: Timer, due: Millis) {
        self.clear_timer(&timer);
        let set_at = Some(self.at());
        self.ask(Effect::Timer { due, timer, set_at });
    }

    pub fn clear_timer(&mut self, timer: &Timer) {
        if let Some(id) = self.world.timers.get(timer).cloned() {
            self.end(&id, EffectEnd::Cleared);
        }
    }

    pub fn new_approval_id(&self) -> ApprovalId {
        ApprovalId::new(format!("q{}", self.world.next + 1)).expect("a counted id is a name")
    }

    /// A session id in the form of a UUID, made from the command's own id.
    pub fn new_session(&mut self) -> SmolStr {
        self.sessions += 1;
        let seed = self.command.id ^ (u128::from(self.sessions) << 64);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&fnv(&seed.to_le_bytes()).to_be_bytes());
        bytes[8..].copy_from_slice(&fnv(&seed.to_be_bytes()).to_be_bytes());
        // Version 8: made by a rule of one's own.
        bytes[6] = (bytes[6] & 0x0f) | 0x80;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let part = |bytes: &[u8]| bytes.iter().fold(0, |part, byte| part << 8 | u64::from(*byte));
        let [a, b, c, d, e] =
            [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(part);
        format_smolstr!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }

    // What is there, or a refusal that says it is not.

    pub fn task(&self, id: &TaskId) -> Result<&Task, Refusal> {
        self.world.task(id).ok_or_else(|| Refusal::not_found("task", id).next([Choice::ListTasks]))
    }

    pub fn worker(&self, name: &WorkerName) -> Result<&Worker, Refusal> {
        self.world.worker(name).ok_or_else(|| Refusal::not_found("worker", name).next([Choice::ListWorkers]))
    }

    pub fn run(&self, id: &RunId) -> Result<&Run, Refusal> {
        self.world.run(id).ok_or_else(|| Refusal::not_found("run", id).next([Choice::ListRuns]))
    }

    // One machine at a time.

    /// Moves a task as `by` asks, with what the move posts on it.
    pub fn move_task(&mut self, id: &TaskId, by: &Actor, to: Status, payload: Payload) -> Ruled {
        self.drive_task(id, task::Event::Move { to, by: by.sender(), payload: Box::new(payload) }, by)
    }

    pub fn drive_task(&mut self, id: &TaskId, mut event: task::Event, by: &Actor) -> Ruled {
        // Who a plan is from is known by the credential; the rules say it of their own.
        if let (task::Event::Move { payload, .. }, Actor::Human(_) | Actor::Agent { .. }) = (&mut event, by)
            && let Some(plan) = &mut payload.work_plan
            && plan.source != Some(task::PlanSource::Ticket)
            && plan.source != Some(task::PlanSource::Default)
        {
            plan.source = Some(plan_source(by));
        }
        let task = self.task(id)?;
        let mut machine = self.world.judged(task, event.sender());
        let cost = task::CostSummary {
            total_cost: task.spend.cost,
            run_count: task.work.runs,
            token_count: task.spend.input_tokens + task.spend.output_tokens,
        };
        let Advanced { taken, effects } =
            advance(&mut machine, &event, None).map_err(|refusal| match &event {
                task::Event::Move { to, .. } => Refusal::of_move(*to, refusal),
                task::Event::LandingFailed { .. } => refusal.into(),
            })?;
        self.rows.extend(taken.row.map(|row| (task::Task::NAME, row)));
        // Computed from the runs, never taken from a caller: the guard has seen to that.
        if let task::Event::Move { to: Status::Review, payload, .. } = &mut event
            && payload.deliverable.is_some()
        {
            payload.cost_summary = Some(cost);
        }
        let on_behalf_of = match by {
            Actor::SystemFor(agent) => Some(agent.clone()),
            _ => None,
        };
        self.emit(TaskMoved {
            id: id.clone(),
            from: taken.from,
            to: taken.to,
            input: event,
            on_behalf_of,
            at: Some(self.at()),
        });
        rules::carry_out_task(self, id, by, effects);
        if taken.from == Status::Review {
            rules::task_decided(self, id, &format!("is {} now", taken.to))?;
            rules::withdraw_reviews(self, id, "it is not in REVIEW any more")?;
        }
        rules::ticket_follows(self, id, taken.from, taken.to)
    }

    pub fn comment(&mut self, id: &TaskId, by: &str, kind: CommentKind, text: String) {
        self.emit(Commented {
            id: id.clone(),
            at: self.at(),
            by: SmolStr::new(by),
            comment: SmolStr::new_static(machines::Wire::name(kind)),
            text,
        });
    }

    /// Moves a worker because a rule says so.
    pub fn move_worker(&mut self, name: &WorkerName, event: worker::Event) -> Result<worker::State, Refusal> {
        self.move_worker_by(name, event, Caller::SYSTEM)
    }

    /// Moves a worker as somebody asks: its table says whether they may.
    pub fn move_worker_by(
        &mut self,
        name: &WorkerName,
        event: worker::Event,
        by: Caller,
    ) -> Result<worker::State, Refusal> {
        let mut machine = self.worker(name)?.machine.clone();
        let had = machine.task.clone();
        let Advanced { taken, effects } = advance(&mut machine, &event, Some(by))?;
        self.rows.extend(taken.row.map(|row| (worker::Worker::NAME, row)));
        self.emit(WorkerMoved {
            name: name.clone(),
            from: taken.from,
            to: taken.to,
            at: self.at(),
            input: event,
        });
        rules::carry_out_worker(self, name, had.or(machine.task).as_ref(), effects)?;
        Ok(taken.to)
    }

    /// Moves a run because a rule says so. `Ok(false)` where the event was a repetition.
    pub fn move_run(&mut self, id: &RunId, event: Wrapped<run::Event>) -> Result<bool, Refusal> {
        self.move_run_by(id, event, Caller::SYSTEM)
    }

    pub fn move_run_by(
        &mut self,
        id: &RunId,
        event: Wrapped<run::Event>,
        by: Caller,
    ) -> Result<bool, Refusal> {
        let run = self.run(id)?;
        let mut machine = run.machine.clone();
        let before = machine.clone();
        machine.inner_mut().task = self.facts_for(run);
        let from = machine.name();
        let stood = published::stood(run, &machine, &event);
        let row = row_of(&machine, &event);
        let effects = machine.advance(&event, Some(by))?;
        machine.inner_mut().task = None;
        if machine == before {
            return Ok(false);
        }
        self.rows.extend(row.map(|row| (run::Run::NAME, row)));
        let moved = RunMoved {
            id: id.clone(),
            from: SmolStr::new_static(from),
            to: SmolStr::new_static(machine.name()),
            state: machine.inner().state,
            input: event.clone(),
            stood: Some(stood),
        };
        debug_assert_eq!(published::moved(&moved), published::asked(&effects), "{moved:?}");
        self.emit(moved);
        rules::carry_out_run(self, id, &event, effects);
        Ok(true)
    }

    pub fn step_run(&mut self, id: &RunId, event: run::Event) -> Result<bool, Refusal> {
        self.move_run(id, Wrapped::Inner(event))
    }

    /// Moves an agent's place in a channel, and says where it stands then.
    pub fn move_turn(
        &mut self,
        name: &ChannelName,
        agent: &AgentName,
        event: &turn::Event,
        by: Caller,
    ) -> Result<turn::State, Refusal> {
        let room = channel_of(&self.world, name)?;
        if let (turn::Event::TurnGranted { .. }, Some(holder)) = (event, &room.current) {
            return Err(Refusal::new(409, "TURN_TAKEN", format!("`{holder}` holds the turn in `{name}`")));
        }
        let mut place = room.places.get(agent).cloned().ok_or_else(|| Refusal::not_found("member", agent))?;
        let Advanced { taken, effects } = advance(&mut place, event, Some(by))?;
        self.rows.extend(taken.row.map(|row| (turn::Turn::NAME, row)));
        self.emit(TurnMoved {
            channel: name.clone(),
            agent: agent.clone(),
            from: taken.from,
            to: taken.to,
            input: event.clone(),
        });
        rules::carry_out_turn(self, name, agent, event, effects)?;
        Ok(taken.to)
    }

    /// Moves the architect, and says where it stands then.
    pub fn move_architect(
        &mut self,
        event: &Wrapped<architect::Event>,
        by: Caller,
    ) -> Result<&'static str, Refusal> {
        let machine = self.world.architect.as_deref().cloned();
        let mut machine = machine.unwrap_or(Suspendable::Live(architect::Architect::default()));
        let from = machine.name();
        let row = row_of(&machine, event);
        let effects = machine.advance(event, Some(by))?;
        let to = machine.name();
        self.rows.extend(row.map(|row| (architect::Architect::NAME, row)));
        // Staying where it is leaves no transition in the log.
        if !matches!(event, Wrapped::Inner(architect::Event::Stay)) {
            self.emit(ArchitectMoved {
                from: SmolStr::new_static(from),
                to: SmolStr::new_static(to),
                state: machine.inner().state,
                input: event.clone(),
            });
        }
        rules::carry_out_architect(self, event, effects)?;
        Ok(to)
    }

    /// Who asks, as a machine's table has it. `own`: it is the asker's own run or place.
    pub fn caller(&self, own: bool) -> Caller {
        Caller { role: self.command.actor.role(), own }
    }

    fn facts_for(&self, run: &Run) -> Option<run::TaskFacts> {
        let task = self.world.task(&run.task)?;
        let assigned = task.machine.assignee_ids.iter().any(|id| id == run.agent.as_str());
        let leased = task.work.lease.as_ref().is_some_and(|lease| lease.holder == run.holder);
        Some(run::TaskFacts {
            id: SmolStr::new(task.id.as_str()),
            status: task.status(),
            mine: assigned && leased,
            // An agent outside has no session of ours: its run is its session.
            session: match run.holder {
                Holder::Outside(_) => Some(SmolStr::new(run.id.as_str())),
                Holder::Worker(_) => task.work.place.as_ref().map(|place| place.session.clone()),
            },
        })
    }
}

fn row_of<M: Suspends>(machine: &Suspendable<M>, event: &Wrapped<M::Event>) -> Option<usize> {
    match (machine.suspension(), event) {
        (None, Wrapped::Inner(event)) => {
            machines::machine::rows_taking(machine.inner(), event).first().copied()
        }
        _ => None,
    }
}

/// Who holds a run's task, as an actor: the moves that the rules make for an agent are recorded as such.
pub(crate) fn system_for(agent: &AgentName) -> Actor {
    Actor::SystemFor(agent.clone())
}

pub(crate) fn holder_worker(holder: &Holder) -> Option<&WorkerName> {
    match holder {
        Holder::Worker(name) => Some(name),
        Holder::Outside(_) => None,
    }
}
