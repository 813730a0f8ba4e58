//! `handle`: one command in, one commit out.
//!
//! A [`Draft`] is a World in the making: each event is applied as it is emitted, so that the next rule sees it.
//! This file drives single machines and takes commands apart; what moves several machines is in `rules.rs`.

use crate::command::*;
use crate::effect::{Effect, Timer};
use crate::event::*;
use crate::rules::{self, Rule};
use crate::words::EffectEnd;
use crate::world::{Holder, Run, Task, Worker};
use crate::{Millis, World, authority};
use machines::machine::{Advanced, Caller, advance};
use machines::names::{AgentName, ApprovalId, ChannelName, EffectId, RunId, TaskId, WorkerName};
use machines::suspended::{Suspendable, Suspends, Wrapped};
use machines::task::{Payload, Status};
use machines::wire::Wire;
use machines::{Machine, architect, run, task, turn, worker};
use smol_str::SmolStr;

/// Decides one command. `Err` means that nothing is to be written. A `Commit` may hold a refusal too: one that is
/// remembered, because it was asked under a key or because the refusal itself is part of the audit.
pub fn handle(world: &World, command: &Command) -> Result<Commit, Refusal> {
    let Some(key) = &command.key else { return decide(world, command) };
    let scope = scope(&command.ask);
    let fingerprint = fingerprint(&command.ask);
    if let Some(kept) = world.kept.get(&(scope.clone(), key.clone())) {
        return again(world, kept, fingerprint);
    }
    let mut draft = Draft::new(world, command);
    let (answer, kept) = match decide(world, command) {
        Ok(commit) => {
            let kept = match &commit.answer {
                Ok(reply) => Answer::Done(reply.clone()),
                Err(refusal) => Answer::Refused(refusal.clone()),
            };
            let answer = commit.answer.clone();
            draft.adopt(commit);
            (answer, kept)
        }
        Err(refusal) => (Err(refusal.clone()), Answer::Refused(refusal)),
    };
    let command = draft.command_name();
    draft.emit(AnswerKept { scope, key: key.clone(), fingerprint, command, answer: kept });
    Ok(draft.finish(answer))
}

/// The first decided answer, again; or a conflict where the key was used for something else.
fn again(world: &World, kept: &crate::world::Kept, fingerprint: u64) -> Result<Commit, Refusal> {
    if kept.fingerprint != fingerprint {
        let message = "this idempotency key was used for another request";
        return Err(Refusal::new(409, "KEY_REUSED", message).hint("use a new key for a new request"));
    }
    match &kept.answer {
        Answer::Refused(refusal) => Err(refusal.clone()),
        Answer::Done(reply) => Ok(Commit {
            published: Vec::new(),
            events: Vec::new(),
            answer: Ok(Reply { replayed: true, ..reply.clone() }),
            rules: Vec::new(),
            rows: Vec::new(),
            world: world.clone(),
        }),
    }
}

/// A key belongs to the task that it was used on; without one, to the kind of request.
pub fn scope(ask: &Ask) -> SmolStr {
    match ask {
        Ask::MoveTask { id, .. }
        | Ask::EditTask { id, .. }
        | Ask::Comment { id, .. }
        | Ask::AddDependency { id, .. }
        | Ask::RemoveDependency { id, .. }
        | Ask::Approve { id, .. }
        | Ask::RetryTask { id }
        | Ask::RestartTask { id, .. }
        | Ask::UndoTask { id, .. }
        | Ask::OpenRun { task: id, .. }
        | Ask::Assign { task: id, .. } => SmolStr::new(id.as_str()),
        _ => SmolStr::new_static("project"),
    }
}

fn fingerprint(ask: &Ask) -> u64 {
    let text = serde_json::to_string(ask).expect("a command is plain data");
    fnv(text.as_bytes())
}

/// FNV-1a: stable across versions, because what it gives is stored.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn decide(world: &World, command: &Command) -> Result<Commit, Refusal> {
    let mut draft = Draft::new(world, command);
    let answer = take(&mut draft, &command.ask)?;
    if answer.is_ok() {
        rules::settle(&mut draft)?;
    }
    Ok(draft.finish(answer))
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
    published: Vec<(RunId, run::StreamEvent)>,
    sessions: u64,
}

impl<'c> Draft<'c> {
    fn new(world: &World, command: &'c Command) -> Self {
        Self {
            world: world.clone(),
            command,
            events: Vec::new(),
            rules: Vec::new(),
            rows: Vec::new(),
            published: Vec::new(),
            sessions: 0,
        }
    }

    fn adopt(&mut self, commit: Commit) {
        self.world = commit.world;
        self.events = commit.events;
        self.rules = commit.rules;
        self.rows = commit.rows;
        self.published = commit.published;
    }

    fn finish(self, answer: Result<Reply, Refusal>) -> Commit {
        Commit {
            events: self.events,
            answer,
            rules: self.rules,
            rows: self.rows,
            published: self.published,
            world: self.world,
        }
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
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        SmolStr::new(format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        ))
    }

    // What is there, or a refusal that says it is not.

    pub fn task(&self, id: &TaskId) -> Result<&Task, Refusal> {
        self.world
            .task(id)
            .ok_or_else(|| Refusal::not_found("task", id).hint("`adj task ls` lists the tasks"))
    }

    pub fn worker(&self, name: &WorkerName) -> Result<&Worker, Refusal> {
        self.world
            .worker(name)
            .ok_or_else(|| Refusal::not_found("worker", name).hint("`adj ps` lists the workers"))
    }

    pub fn run(&self, id: &RunId) -> Result<&Run, Refusal> {
        self.world.run(id).ok_or_else(|| Refusal::not_found("run", id).hint("`adj history` lists the runs"))
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
            run_count: task.runs,
            token_count: task.spend.input_tokens + task.spend.output_tokens,
        };
        let Advanced { taken, effects } = advance(&mut machine, &event, None)?;
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
        self.emit(TaskMoved { id: id.clone(), from: taken.from, to: taken.to, input: event, on_behalf_of });
        rules::carry_out_task(self, id, by, effects);
        rules::ticket_follows(self, id, taken.from, taken.to)
    }

    pub fn comment(&mut self, id: &TaskId, by: &str, kind: &'static str, text: String) {
        self.emit(Commented {
            id: id.clone(),
            at: self.at(),
            by: SmolStr::new(by),
            comment: SmolStr::new_static(kind),
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
        let row = row_of(&machine, &event);
        let effects = machine.advance(&event, Some(by))?;
        machine.inner_mut().task = None;
        if machine == before {
            return Ok(false);
        }
        self.rows.extend(row.map(|row| (run::Run::NAME, row)));
        self.emit(RunMoved {
            id: id.clone(),
            from: SmolStr::new_static(from),
            to: SmolStr::new_static(machine.name()),
            state: machine.inner().state,
            input: event.clone(),
        });
        rules::carry_out_run(self, id, &event, effects);
        Ok(true)
    }

    pub fn step_run(&mut self, id: &RunId, event: run::Event) -> Result<bool, Refusal> {
        self.move_run(id, Wrapped::Inner(event))
    }

    pub fn publish(&mut self, id: &RunId, event: run::StreamEvent) {
        self.published.push((id.clone(), event));
    }

    /// Moves an agent's place in a channel, and says where it stands then.
    pub fn move_turn(
        &mut self,
        name: &ChannelName,
        agent: &AgentName,
        event: &turn::Event,
        by: Caller,
    ) -> Result<turn::State, Refusal> {
        let room = channel_of(self, name)?;
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
        rules::carry_out_turn(self, name, agent, effects)?;
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
        let leased = task.lease.as_ref().is_some_and(|lease| lease.holder == run.holder);
        Some(run::TaskFacts {
            id: SmolStr::new(task.id.as_str()),
            status: task.status(),
            mine: assigned && leased,
            session: task.place.as_ref().map(|place| place.session.clone()),
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

/// Takes a command apart. What moves one machine is done here; the rest is a rule.
fn take(d: &mut Draft, ask: &Ask) -> Result<Result<Reply, Refusal>, Refusal> {
    let actor = d.command.actor.clone();
    authority::check(&d.world, &actor, ask)?;
    let reply = match ask {
        Ask::AddTask(new) => add_task(d, new)?,
        Ask::EditTask { id, title, body, priority, plan, reviewer, agent } => {
            let status = d.task(id)?.status();
            if matches!(status, Status::Done | Status::Canceled) {
                let message = format!("task `{id}` is {status}; what it says is not changed any more");
                return Err(Refusal::new(409, "CLOSED", message).hint(format!(
                    "`adj task add TITLE --reopens {id}` adds a task that takes it up again"
                )));
            }
            check_text(d, "title", title.as_deref())?;
            check_text(d, "body", body.as_deref())?;
            if title.as_ref().is_some_and(|title| title.trim().is_empty()) {
                return Err(Refusal::field("title", "a task needs a title"));
            }
            check_priority(*priority)?;
            check_plan(plan.as_deref())?;
            d.emit(TaskEdited {
                id: id.clone(),
                title: title.clone(),
                body: body.clone(),
                priority: *priority,
                plan: plan.clone(),
                reviewer: reviewer.clone(),
                plan_source: plan.as_ref().map(|_| plan_source(&actor)),
            });
            if let Some(agent) =
                agent.as_ref().filter(|agent| d.world.task(id).is_some_and(|task| task.agent != **agent))
            {
                d.emit(AgentWanted { id: id.clone(), agent: agent.clone() });
            }
            if title.is_some() || body.is_some() {
                let task = d.task(id)?;
                let note = rules::new_text("task", &task.title, &task.body);
                d.emit(NoteLeft { id: id.clone(), note });
            }
            task_reply(d, id)?
        }
        Ask::MoveTask { id, to, payload } => {
            rules::person_moves(d, id, &actor, *to, payload)?;
            task_reply(d, id)?
        }
        Ask::AcceptTask { id } => {
            rules::accept_proposal(d, id)?;
            task_reply(d, id)?
        }
        Ask::Comment { id, text } => {
            d.task(id)?;
            check_text(d, "text", Some(text))?;
            if text.trim().is_empty() {
                return Err(Refusal::field("text", "a comment must not be empty"));
            }
            d.comment(id, &actor.to_string(), "comment", text.clone());
            if actor.is_human() {
                rules::person_comments(d, id, text);
            }
            task_reply(d, id)?
        }
        Ask::AddDependency { id, on } => {
            add_dependency(d, id, on)?;
            task_reply(d, id)?
        }
        Ask::RemoveDependency { id, on } => {
            if !d.task(id)?.depends_on.contains(on) {
                return Err(Refusal::not_found("dependency", format!("{id} on {on}")));
            }
            d.emit(DependencyRemoved { id: id.clone(), on: on.clone() });
            task_reply(d, id)?
        }
        Ask::Approve { id, tip, note } => {
            rules::approve_by_person(d, id, tip.as_ref(), note)?;
            task_reply(d, id)?
        }
        Ask::Decide { id, decision } => {
            rules::decide(d, id, decision)?;
            Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() }
        }
        Ask::SeeTicket(ticket) => {
            rules::ticket_seen(d, ticket)?;
            Reply::default()
        }
        Ask::MissTicket { id } => {
            rules::ticket_missed(d, id)?;
            Reply::default()
        }

        Ask::StartFleet { workers } => {
            rules::start_fleet(d, *workers)?;
            Reply::default()
        }
        Ask::StopFleet => {
            if d.world.fleet_running {
                d.emit(FleetSwitched { running: false, workers: None });
            }
            Reply::default()
        }
        Ask::Spawn { name, agent } => {
            let agent = agent.clone().unwrap_or_else(|| d.world.config.fleet.agent.clone());
            spawn(d, name, &agent, true, d.caller(false))?;
            worker_reply(d, name)?
        }
        Ask::Assign { worker, task, clarification } => {
            rules::assign_by_person(d, worker, task, clarification.as_deref())?;
            worker_reply(d, worker)?
        }
        Ask::Kill { worker } => {
            rules::ended_by_person(d, worker, worker::Event::Kill)?;
            worker_reply(d, worker)?
        }
        Ask::Retry { worker } => {
            rules::retry(d, worker)?;
            worker_reply(d, worker)?
        }
        Ask::RetryTask { id } => {
            rules::retry_task(d, id)?;
            task_reply(d, id)?
        }
        Ask::RestartTask { id, note } => {
            rules::restart(d, id, note.as_deref())?;
            task_reply(d, id)?
        }
        Ask::UndoTask { id, by, tip } => {
            rules::undo(d, id, by, tip)?;
            task_reply(d, by)?
        }
        Ask::Cleanup { worker, force } => {
            let live_process = rules::has_live_process(d, worker);
            rules::ended_by_person(d, worker, worker::Event::Cleanup { live_process, force: *force })?;
            worker_reply(d, worker)?
        }
        Ask::Clean { worker } => {
            rules::ended_by_person(d, worker, worker::Event::Clean)?;
            Reply { id: Some(SmolStr::new(worker.as_str())), ..Reply::default() }
        }
        Ask::Recover { worker, tree, step_under_way, said_done, resumable } => {
            let event = worker::Event::Recover {
                tree: *tree,
                step_under_way: *step_under_way,
                said_done: *said_done,
                resumable: *resumable,
            };
            rules::recover(d, worker, event)?;
            worker_reply(d, worker)?
        }

        Ask::OpenRun { task, prompt, options } => rules::open_outside_run(d, task, prompt, options.as_ref())?,
        Ask::RunEvent { run, event } => return rules::run_event(d, run, event),

        Ask::Configure { config } => {
            let problems = config.problems();
            if !problems.is_empty() {
                return Err(Refusal::new(422, "BAD_CONFIG", problems.join("; "))
                    .hint("the last good configuration stays in force"));
            }
            if **config != *d.world.config {
                d.emit(ConfigChanged { config: config.clone() });
                rules::reconsider(d)?;
                rules::go_on(d)?;
            }
            Reply::default()
        }

        Ask::SeeDisk { full } => {
            if d.world.disk_full != *full {
                d.emit(DiskSeen { full: full.clone() });
            }
            Reply::default()
        }

        Ask::TestMain => {
            if d.world.config.tests.is_none() {
                return Err(Refusal::new(409, "NOT_TESTED", "main is not tested in this project")
                    .hint("`check_main = true` in [test] of adjutant.toml turns it on"));
            }
            rules::test_main_again(d, "a person asked for it");
            Reply::default()
        }
        Ask::SeeMain { tip } => {
            rules::main_seen(d, tip);
            Reply::default()
        }

        Ask::MakeChannel { name, config } => {
            if d.world.channels.contains_key(name) {
                return Err(Refusal::new(409, "EXISTS", format!("there is a channel `{name}` already")));
            }
            d.emit(ChannelMade { name: name.clone(), config: config.clone() });
            Reply { id: Some(SmolStr::new(name.as_str())), ..Reply::default() }
        }
        Ask::AddMember { channel, agent } => {
            let there = channel_of(d, channel)?.members.contains(agent);
            if there {
                return Err(Refusal::new(
                    409,
                    "EXISTS",
                    format!("agent `{agent}` is in `{channel}` already"),
                ));
            }
            d.emit(MemberAdded { channel: channel.clone(), agent: agent.clone() });
            Reply::default()
        }
        Ask::RemoveMember { channel, agent } => {
            if !channel_of(d, channel)?.members.contains(agent) {
                return Err(Refusal::not_found("member", format!("{agent} of {channel}")));
            }
            d.emit(MemberRemoved { channel: channel.clone(), agent: agent.clone() });
            Reply::default()
        }
        Ask::TurnEvent { channel, agent, event } => {
            let own = actor.is_agent(agent);
            let state = d.move_turn(channel, agent, event, d.caller(own))?;
            let state = Some(SmolStr::new(format!("turn.{}", state.name())));
            Reply { id: Some(SmolStr::new(agent.as_str())), state, ..Reply::default() }
        }
        Ask::ArchitectEvent { event } => {
            let state = d.move_architect(event, d.caller(false))?;
            Reply { state: Some(SmolStr::new(format!("architect.{state}"))), ..Reply::default() }
        }

        Ask::Outcome(outcome) => rules::outcome(d, outcome)?,
    };
    Ok(Ok(reply))
}

fn task_reply(d: &Draft, id: &TaskId) -> Result<Reply, Refusal> {
    let status = d.task(id)?.status();
    Ok(Reply {
        id: Some(SmolStr::new(id.as_str())),
        state: Some(SmolStr::new(format!("task.{status}"))),
        ..Reply::default()
    })
}

fn worker_reply(d: &Draft, name: &WorkerName) -> Result<Reply, Refusal> {
    let state = d.worker(name)?.machine.status;
    Ok(Reply {
        id: Some(SmolStr::new(name.as_str())),
        state: Some(SmolStr::new(format!("worker.{state}"))),
        ..Reply::default()
    })
}

pub(crate) fn run_reply(d: &Draft, id: &RunId) -> Result<Reply, Refusal> {
    let state = d.run(id)?.machine.name();
    Ok(Reply {
        id: Some(SmolStr::new(id.as_str())),
        state: Some(SmolStr::new(format!("run.{state}"))),
        ..Reply::default()
    })
}

pub(crate) fn forbidden(what: &str) -> Refusal {
    Refusal::new(403, "FORBIDDEN", format!("the caller's role may not {what}"))
}

pub(crate) fn check_text(d: &Draft, field: &'static str, text: Option<&str>) -> Ruled {
    let most = d.world.config.limits.text_bytes;
    match text {
        Some(text) if text.len() > most => {
            Err(Refusal::field(field, format!("it is longer than {most} bytes")))
        }
        _ => Ok(()),
    }
}

fn check_priority(priority: Option<u8>) -> Ruled {
    match priority {
        Some(priority) if priority > 4 => Err(Refusal::field("priority", "priority must be 0 to 4")),
        _ => Ok(()),
    }
}

/// A plan that a person gives is whole; what is missing is not made up in silence.
fn check_plan(plan: Option<&[String]>) -> Ruled {
    let Some(plan) = plan else { return Ok(()) };
    let (least, most) = (task::PLAN_BULLETS_MIN, task::PLAN_BULLETS_MAX);
    if !(least..=most).contains(&plan.len()) {
        let message = format!("a plan has {least} to {most} steps; this one has {}", plan.len());
        return Err(Refusal::field("plan", message));
    }
    match plan.iter().any(|bullet| bullet.trim().is_empty()) {
        true => Err(Refusal::field("plan", "a step of the plan is empty")),
        false => Ok(()),
    }
}

fn plan_source(actor: &Actor) -> task::PlanSource {
    match actor {
        Actor::Agent { .. } => task::PlanSource::Agent,
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => task::PlanSource::Person,
    }
}

fn add_task(d: &mut Draft, new: &NewTask) -> Result<Reply, Refusal> {
    if new.title.trim().is_empty() {
        return Err(Refusal::field("title", "a task needs a title"));
    }
    check_text(d, "title", Some(&new.title))?;
    check_text(d, "body", Some(&new.body))?;
    check_priority(new.priority)?;
    check_plan(new.plan.as_deref())?;
    let id = new.id.clone().unwrap_or_else(|| next_task_id(&d.world));
    if d.world.tasks.contains_key(&id) {
        return Err(Refusal::new(409, "EXISTS", format!("there is a task `{id}` already")));
    }
    if let Some(old) = &new.reopens {
        let status = d.task(old)?.status();
        if !matches!(status, Status::Done | Status::Canceled) {
            return Err(Refusal::new(
                409,
                "NOT_CLOSED",
                format!("task `{old}` is {status}; only a closed task is taken up again"),
            ));
        }
    }
    check_dependencies(d, &id, &new.depends_on)?;
    let proposed = rules::propose(d, new)?;
    d.emit(TaskAdded {
        id: id.clone(),
        title: new.title.clone(),
        body: new.body.clone(),
        task_type: new.task_type.unwrap_or(task::TaskType::Task),
        priority: new.priority.unwrap_or(2),
        at: d.at(),
        ticket: None,
        reopens: new.reopens.clone(),
        plan: new.plan.clone(),
        reviewer: new.reviewer.clone(),
        depends_on: new.depends_on.clone(),
        created: None,
        plan_source: new.plan.as_ref().map(|_| plan_source(&d.command.actor)),
        proposed,
    });
    if new.agent.is_some() {
        d.emit(AgentWanted { id: id.clone(), agent: new.agent.clone() });
    }
    task_reply(d, &id)
}

/// `t-1`, `t-2`, …: one that no task or ticket ever had.
pub fn next_task_id(world: &World) -> TaskId {
    let named = |number| TaskId::new(format!("t-{number}")).expect("a counted id is a name");
    let free = |id: &TaskId| world.task(id).is_none() && !world.tickets.contains_key(id.as_str());
    (world.last_task + 1..).map(named).find(free).expect("there is always another number")
}

fn add_dependency(d: &mut Draft, id: &TaskId, on: &TaskId) -> Ruled {
    let task = d.task(id)?;
    if task.depends_on.contains(on) {
        return Err(Refusal::new(409, "EXISTS", format!("`{id}` depends on `{on}` already")));
    }
    if !matches!(task.status(), Status::Inbox | Status::Assigned) {
        let status = task.status();
        return Err(Refusal::new(
            409,
            "STARTED",
            format!("`{id}` is {status}: it has been started, so a dependency would hold nothing up"),
        ));
    }
    let mut all = task.depends_on.clone();
    all.push(on.clone());
    check_dependencies(d, id, &all)?;
    d.emit(DependencyAdded { id: id.clone(), on: on.clone() });
    Ok(())
}

/// A cycle is refused with its path; a dependency that nobody knows waits for a person, by name.
pub(crate) fn check_dependencies(d: &Draft, id: &TaskId, on: &[TaskId]) -> Ruled {
    let most = d.world.config.limits.dependencies;
    if on.len() > most {
        return Err(Refusal::field("dependsOn", format!("more than {most} dependencies")));
    }
    if let Some(path) = on.iter().find_map(|start| path_to(&d.world, start, id)) {
        let path: Vec<_> = std::iter::once(id).chain(path.iter()).map(TaskId::as_str).collect();
        // Each name in it is right; what is wrong is how they stand.
        let cycle = Refusal::field("dependsOn", format!("this would be a cycle: {}", path.join(" → ")));
        return Err(Refusal { status: 409, code: SmolStr::new_static("CYCLE"), ..cycle });
    }
    Ok(())
}

/// How `from` reaches `to` through dependencies, both included. Without recursion: chains can be long.
fn path_to(world: &World, from: &TaskId, to: &TaskId) -> Option<Vec<TaskId>> {
    let mut seen = std::collections::BTreeMap::from([(from.clone(), None)]);
    let mut open = vec![from.clone()];
    while let Some(here) = open.pop() {
        if here == *to {
            let mut path = vec![here];
            while let Some(Some(before)) = path.last().and_then(|id| seen.get(id)) {
                path.push(TaskId::clone(before));
            }
            path.reverse();
            return Some(path);
        }
        for next in world.task(&here).map_or(&[][..], |task| &task.depends_on) {
            if !seen.contains_key(next) {
                seen.insert(next.clone(), Some(here.clone()));
                open.push(next.clone());
            }
        }
    }
    None
}

pub(crate) fn spawn(
    d: &mut Draft,
    name: &WorkerName,
    agent: &AgentName,
    by_person: bool,
    by: Caller,
) -> Ruled {
    if !d.world.config.agents.contains_key(agent) {
        let known: Vec<_> = d.world.config.agents.keys().map(AgentName::as_str).collect();
        return Err(
            Refusal::not_found("agent", agent).hint(format!("the configuration has: {}", known.join(", ")))
        );
    }
    if d.world.workers.contains_key(name) {
        let message = format!("there is a worker `{name}` already");
        return Err(
            Refusal::new(409, "EXISTS", message).hint("choose another name; `adj ps` lists the workers")
        );
    }
    d.emit(WorkerSpawned { name: name.clone(), agent: agent.clone(), at: d.at(), by_person });
    d.move_worker_by(name, worker::Event::Spawn { name_free: true }, by).map(drop)
}

fn channel_of<'d>(
    d: &'d Draft,
    name: &machines::names::ChannelName,
) -> Result<&'d crate::world::Channel, Refusal> {
    d.world
        .channels
        .get(name)
        .map(|channel| channel.as_ref())
        .ok_or_else(|| Refusal::not_found("channel", name))
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
