//! What holds after every commit, whatever happened. Checked in tests, in the simulator, in debug builds, and by
//! `adj verify`. Each has a sabotage test that trips it.

use crate::effect::{Effect, StepStart, StepTree, Timer};
use crate::rooms::Seat;
use crate::standstill::{self, Reason};
use crate::words::ActorKind;
use crate::world::{Holder, Run, Tariff, Task, Unknown, World};
use imbl::OrdMap;
use machines::names::{AgentName, RequestId, RunId, TaskId};
use machines::suspended::Suspends;
use machines::task::{Status, TicketStatus};
use machines::{Machine, Wire, architect, run, turn, worker};
use std::collections::{BTreeMap, BTreeSet};

machines::wire_enum! {
    pub enum Invariant {
        OneTurnHolder = "at most one agent of a channel holds the turn",
        LeaseIsMutual = "a task has at most one live lease, and its holder has that task in hand",
        WorkerHasTask = "a worker that is ready, working, done or stuck has exactly one task, and no other has any",
        TreesApart = "no two workers share a task, and no two open tasks a tree or branch",
        DoneIsLanded = "a task that is DONE with code has its landing recorded",
        ClosedIsFinal = "a ticket is closed by us only for a task that is DONE or CANCELED",
        LiveRunIsHeld = "no run is starting or running without a lease holder",
        TimersAreNeeded = "every timer that a state needs exists, and no other",
        FinalIsLeftAlone = "a task that is DONE or CANCELED has no lease, no open run, no question and no place in the queue",
        NothingLeavesFinal = "nothing leaves a final state",
        KeysAgree = "the answers kept for idempotency keys agree with their order and their number is bounded",
        SuspendedKeepsOrigin = "what is suspended keeps the state that it came from, and is known as suspended",
        IndexesAgree = "what is derived agrees with what it is derived from",
        QueueAgrees = "what is queued or landing is in REVIEW, approved with the tip that it has, and in no known conflict with main",
        StepsAgree = "what is under way for a run is in the outbox, and the other way round",
        MoneyAdds = "what runs spent and set aside adds up in every total",
        QuestionsAgree = "a task in NEEDS_APPROVAL waits for an open question, and no other task does",
        MainIsTested = "while the fleet runs, whoever waits for main's tests has them under way, about to be, or known to be red",
        NothingSleeps = "while the fleet runs, whoever holds a task has something under way or a timer to wake it",
        PastIsKnown = "what must end before a task goes on is in the outbox",
        WayOut = "a task that is neither DONE nor CANCELED can be claimed, is in somebody's hands, or waits for what has a name and can come",
        ProposalsWait = "what an agent proposed and nobody accepted is in INBOX or CANCELED, and nobody works on it",
        NoCycles = "dependencies have no cycle",
        RoomsAgree = "who has the turn is who holds it, who takes turns is in the queue, and whoever speaks is in the outbox",
        DisabledAreStill = "an agent that a person disabled has no turn, is in no queue and says nothing",
        RoomsComeToRest = "a turn without a word is counted, once as late and then as silence, and whoever was silent does not have the turn again before somebody speaks",
        RequestsKept = "what waits for the architect is open and waits once, and the one in its hand is the first",
        StandstillIsSaid = "while the fleet runs and does nothing, what it stands still for was said, or a timer says it in a while",
        AnswersAreBound = "every answer is a person's, the system's, or that of one reply, which had decided nothing before and was shown that request and, for a review, that commit",
        RequestsStay = "no request is lost or answered twice, and the architect's queue keeps its order",
    }
}

/// An invariant that does not hold, with the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {} is false: {}", self.invariant, self.invariant.name(), self.detail)
    }
}

/// Collects what does not hold.
struct Check<'w> {
    world: &'w World,
    violations: Vec<Violation>,
}

impl Check<'_> {
    fn that(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(Violation { invariant, detail: detail() });
        }
    }
}

/// Everything that does not hold in `world`.
pub fn check(world: &World) -> Vec<Violation> {
    let mut check = Check { world, violations: Vec::new() };
    check.channels();
    check.architect();
    check.workers();
    check.main();
    check.tasks();
    check.runs();
    check.timers();
    check.standstill();
    check.keys();
    check.indexes();
    check.queue();
    check.effects();
    check.money();
    check.cycles();
    check.violations
}

/// What a commit may not do, whatever it decided.
pub fn check_commit(before: &World, after: &World) -> Vec<Violation> {
    let mut violations = Vec::new();
    for task in before.tasks.values() {
        let now = after.task(&task.id).map(Task::status);
        if task.is_final() && now != Some(task.status()) {
            let detail = format!("task `{}` was {} and is {now:?}", task.id, task.status());
            violations.push(Violation { invariant: Invariant::NothingLeavesFinal, detail });
        }
    }
    violations.extend(requests_stay(before, after));
    violations.extend(answers_are_bound(before, after));
    violations.extend(turns_are_counted(before, after));
    violations
}

fn requests_stay(before: &World, after: &World) -> Option<Violation> {
    let changed = before.requests.values().find(|request| {
        let now = after.requests.get(&request.id);
        now.is_none_or(|now| request.answer.is_some() && now.answer != request.answer)
    });
    // Whoever was asked again has a new place, at the end.
    let stayed = |id: &&RequestId| after.is_queued(id) && before.is_queued(id);
    let (was, is): (Vec<_>, Vec<_>) = (
        before.architect_queue.iter().filter(stayed).collect(),
        after.architect_queue.iter().filter(stayed).collect(),
    );
    let detail = match changed {
        Some(request) => format!("request `{}` is lost, or has another answer", request.id),
        None if was != is => format!("the architect's queue was {was:?} and is {is:?}"),
        None => return None,
    };
    Some(Violation { invariant: Invariant::RequestsStay, detail })
}

fn answers_are_bound(before: &World, after: &World) -> Option<Violation> {
    let is_open = |id: &RequestId| before.requests.get(id).is_none_or(|request| request.answer.is_none());
    after.requests.values().filter(|request| is_open(&request.id)).find_map(|request| {
        let answer = request.answer.as_ref()?;
        let by_agent = ActorKind::of(&answer.by) == Some(ActorKind::Agent);
        let bound = match &answer.reply {
            None => !by_agent,
            Some(reply) => {
                let first = before.seated(&Seat::Architect).is_some_and(|seated| seated.decided.is_none());
                let shown = before.shown_in(reply);
                by_agent && first && shown == Some((&request.id, request.tip.as_ref()))
            }
        };
        let (id, by, reply) = (&request.id, &answer.by, &answer.reply);
        let detail = || format!("`{id}` is answered by {by} in {reply:?}, which was not shown it");
        (!bound).then(|| Violation { invariant: Invariant::AnswersAreBound, detail: detail() })
    })
}

fn turns_are_counted(before: &World, after: &World) -> Option<Violation> {
    before.channels.iter().find_map(|(name, was)| {
        let (holder, is) = (was.current.as_ref()?, after.channels.get(name)?);
        let spoken = was.posted || is.said > was.said;
        let joined = is.ring.iter().any(|agent| !was.ring.contains(agent));
        if spoken || joined || is.rests || is.current.as_ref() == Some(holder) || !is.ring.contains(holder) {
            return None;
        }
        let late = is.late.contains(holder) && !was.late.contains(holder);
        let counted = is.quiet.contains(holder) || late;
        let detail = || format!("in `{name}` the turn of {holder} ended without a word, and is not counted");
        (!counted).then(|| Violation { invariant: Invariant::RoomsComeToRest, detail: detail() })
    })
}

impl Check<'_> {
    fn channels(&mut self) {
        for (name, channel) in &self.world.channels {
            let holders: Vec<_> = channel
                .places
                .iter()
                .filter(|(_, place)| place.holds_turn())
                .map(|(agent, _)| agent.as_str())
                .collect();
            self.that(Invariant::OneTurnHolder, holders.len() <= 1, || {
                format!("in `{name}`: {}", holders.join(", "))
            });
            let current = channel.current.as_ref().map(AgentName::as_str);
            self.that(Invariant::RoomsAgree, holders.first().copied() == current, || {
                format!("in `{name}` {current:?} has the turn, and {holders:?} hold it")
            });
            let disabled: Vec<_> = channel
                .places
                .iter()
                .filter(|(agent, place)| {
                    self.world.disabled.contains_key(*agent) && place.state != turn::State::Offline
                })
                .map(|(agent, place)| format!("{agent} is {}", place.state))
                .collect();
            self.that(Invariant::DisabledAreStill, disabled.is_empty(), || {
                format!("in `{name}` {}", disabled.join(", "))
            });
            let queued = |agent: &AgentName| {
                channel.state_of(agent).is_some_and(|state| {
                    matches!(state, turn::State::Queued | turn::State::Active | turn::State::Waiting)
                })
            };
            let strangers: Vec<_> = channel
                .places
                .keys()
                .filter(|agent| queued(agent) != channel.ring.contains(agent))
                .map(AgentName::as_str)
                .collect();
            self.that(Invariant::RoomsAgree, strangers.is_empty(), || {
                format!("in `{name}` these are in the queue or in the ring, and not in both: {strangers:?}")
            });
            let gone: Vec<_> = channel
                .quiet
                .iter()
                .chain(&channel.late)
                .filter(|agent| !channel.ring.contains(agent))
                .collect();
            self.that(Invariant::RoomsComeToRest, gone.is_empty(), || {
                format!("in `{name}` these take no turns, and are counted: {gone:?}")
            });
            let again = channel.current.as_ref().filter(|holder| channel.quiet.contains(*holder));
            self.that(Invariant::RoomsComeToRest, again.is_none(), || {
                format!("in `{name}` {again:?} has the turn again, and nobody spoke since it was silent")
            });
        }
        for (seat, seated) in &self.world.seats {
            let still = seated.reply.is_none() || !self.world.disabled.contains_key(&seated.agent);
            self.that(Invariant::DisabledAreStill, still, || format!("`{seat}` speaks, and is disabled"));
            let there = seated.reply.iter().chain(&seated.unfinished);
            let lost: Vec<_> = there.filter(|id| !self.world.effects.contains_key(*id)).collect();
            self.that(Invariant::RoomsAgree, lost.is_empty(), || {
                format!("`{seat}` waits for {lost:?}, which nobody carries out")
            });
        }
    }

    fn architect(&mut self) {
        let world = self.world;
        let mut seen = BTreeSet::new();
        for id in &world.architect_queue {
            let open = world.requests.get(id).is_some_and(|request| request.answer.is_none());
            self.that(Invariant::RequestsKept, open && seen.insert(id), || {
                format!("request `{id}` waits for the architect, and is answered, unknown or there twice")
            });
        }
        let in_hand = world.in_hand().filter(|request| request.answer.is_none());
        let first = world.architect_queue.front();
        self.that(Invariant::RequestsKept, in_hand.is_none_or(|request| first == Some(&request.id)), || {
            format!(
                "the architect has {:?} in hand, and {first:?} is first",
                in_hand.map(|request| &request.id)
            )
        });
    }

    fn workers(&mut self) {
        use worker::State::*;
        let world = self.world;
        let mut in_hand: BTreeMap<&TaskId, &str> = BTreeMap::new();
        for worker in world.workers.values() {
            let name = &worker.name;
            let (state, task) = (worker.machine.status, &worker.machine.task);
            let holds = matches!(state, Ready | Working | Done | Stuck);
            self.that(Invariant::WorkerHasTask, holds == task.is_some(), || {
                format!("worker `{name}` is {state} with task {task:?}")
            });
            let Some(id) = task else { continue };
            if let Some(other) = in_hand.insert(id, name.as_str()) {
                self.that(Invariant::TreesApart, false, || {
                    format!("`{name}` and `{other}` both have `{id}`")
                });
            }
            let leased = world.leaseholder(id).is_some_and(|holder| holder.name == *name);
            self.that(Invariant::LeaseIsMutual, leased == (state != Stuck), || {
                format!(
                    "worker `{name}` is {state}, and the lease of `{id}` is {:?}",
                    world.task(id).map(|t| &t.work.lease)
                )
            });
        }
        for worker in world.workers.values().filter(|_| world.fleet_running) {
            let Some(task) = worker.machine.task.as_ref().and_then(|id| world.task(id)) else { continue };
            let Some(run) = world.run_of(&task.id) else { continue };
            let moves = run.step.is_some()
                || run.is_suspended()
                || run.question.is_some()
                || world.open_question(&run.id).is_some()
                || !task.work.unfinished.is_empty()
                || !world.main_is_green()
                || task.gate.in_doubt.is_some()
                || world.timers.contains_key(&Timer::Backoff { worker: worker.name.clone() });
            self.that(Invariant::NothingSleeps, moves || worker.machine.status == Stuck, || {
                format!(
                    "worker `{}` is {} and nothing moves it; run.{}",
                    worker.name,
                    worker.machine.status,
                    run.machine.name()
                )
            });
        }
    }

    fn main(&mut self) {
        let world = self.world;
        let under_way = world.main.under_way.as_ref();
        let asked = |id: &machines::names::EffectId| {
            world.effects.get(id).is_some_and(|effect| matches!(**effect, Effect::TestMain { .. }))
        };
        self.that(Invariant::MainIsTested, under_way.is_none_or(asked), || {
            format!("main's tests are not in the outbox: {under_way:?}")
        });
        let coming = under_way.is_some() || world.landing.is_some() || !world.fleet_running;
        let known = world.main_is_known() || world.claimable.is_empty();
        self.that(Invariant::MainIsTested, coming || known, || "tasks wait and nobody tests main".to_owned());
        for task in world.tasks.values().filter(|task| task.gate.in_doubt.is_some()) {
            let settled = world.main_is_known() && !world.main.again && under_way.is_none();
            self.that(Invariant::MainIsTested, !settled, || {
                format!("`{}` is in doubt and nobody tests main", task.id)
            });
        }
    }

    fn tasks(&mut self) {
        let world = self.world;
        let mut places: BTreeMap<&str, &TaskId> = BTreeMap::new();
        let mut holders: BTreeMap<&str, &TaskId> = BTreeMap::new();
        for task in world.tasks.values() {
            let (id, status) = (&task.id, task.status());
            let closed = status.is_final();
            if let Some(lease) = &task.work.lease {
                let mutual = match &lease.holder {
                    Holder::Worker(name) => {
                        if let Some(other) = holders.insert(name.as_str(), id) {
                            self.that(Invariant::LeaseIsMutual, false, || {
                                format!("`{name}` holds `{id}` and `{other}`")
                            });
                        }
                        world.worker(name).is_some_and(|worker| worker.machine.task.as_ref() == Some(id))
                    }
                    Holder::Outside(_) => true,
                };
                self.that(Invariant::LeaseIsMutual, mutual, || {
                    format!("`{id}` is held by {:?}, which does not have it", lease.holder)
                });
            }
            if let Some(place) = task.work.place.as_ref().filter(|_| !closed) {
                for part in [&place.tree, &place.branch] {
                    if let Some(other) = places.insert(part, id) {
                        self.that(Invariant::TreesApart, false, || {
                            format!("`{id}` and `{other}` share {part}")
                        });
                    }
                }
            }
            self.that(
                Invariant::DoneIsLanded,
                !(status == Status::Done && task.has_code()) || task.landing.landed.is_some(),
                || format!("`{id}` is DONE with code and has not landed"),
            );
            let run_open = world.run_of(id).is_some_and(|run| run.is_open() || run.is_suspended());
            let in_queue = task.landing.queued.is_some() || task.landing.held_up.is_some();
            let engaged = task.work.lease.is_some()
                || run_open
                || in_queue
                || task.approval.is_some()
                || task.gate.alone.is_some();
            self.that(Invariant::FinalIsLeftAlone, !(closed && engaged), || {
                format!(
                    "`{id}` is {status}: lease {:?}, open run {run_open}, question {:?}",
                    task.work.lease, task.approval
                )
            });
            let open = task.approval.as_ref().and_then(|approval| world.approvals.get(approval));
            let waits = open.is_some_and(|approval| approval.decided.is_none());
            self.that(Invariant::QuestionsAgree, (status == Status::NeedsApproval) == waits, || {
                format!("`{id}` is {status} and waits for {:?}", task.approval)
            });
            let landing = world.landing.as_ref().is_some_and(|landing| landing.task == *id);
            // A service that it waits for is asked as long as one is away.
            let service =
                task.work.waits_for.is_none() || world.health.values().any(|health| !health.healthy);
            let out = match status {
                Status::Done | Status::Canceled => true,
                Status::Review => task.review.approved.is_none() || in_queue || landing,
                Status::Blocked => task.machine.block_reason.is_some(),
                Status::NeedsApproval => waits,
                Status::Inbox | Status::Assigned | Status::InProgress => service,
            };
            self.that(Invariant::WayOut, out, || {
                format!("`{id}` is {status} and waits for {:?}", task.work.waits_for)
            });
            let untouched = matches!(status, Status::Inbox | Status::Canceled)
                && task.work.lease.is_none()
                && task.work.run.is_none();
            self.that(Invariant::ProposalsWait, untouched || !task.is_waiting_proposal(), || {
                format!("`{id}` is {status} and nobody has accepted it")
            });
            let known = task.work.unfinished.iter().all(|effect| world.effects.contains_key(effect));
            let waiting = task.work.afterwards.is_empty() || !task.work.unfinished.is_empty();
            let gate = task.gate.alone.as_ref().is_none_or(|effect| world.effects.contains_key(effect));
            self.that(Invariant::PastIsKnown, known && waiting && gate, || {
                format!(
                    "`{id}`: unfinished {:?}, afterwards {}",
                    task.work.unfinished,
                    task.work.afterwards.len()
                )
            });
        }
    }

    fn runs(&mut self) {
        let world = self.world;
        for run in world.runs.values() {
            let held = world.task(&run.task).is_some_and(|task| {
                task.work.run.as_ref() == Some(&run.id)
                    && task.work.lease.as_ref().is_some_and(|lease| lease.holder == run.holder)
            });
            self.that(Invariant::LiveRunIsHeld, !run.is_live() || held, || {
                format!("run `{}` is {} and nobody holds `{}`", run.id, run.machine.name(), run.task)
            });
            let resting = <run::Run as Suspends>::RESTING.contains(&run.machine.inner().state());
            let known = world.suspended.contains(&run.id);
            self.that(
                Invariant::SuspendedKeepsOrigin,
                run.is_suspended() == known && !(known && resting),
                || {
                    format!(
                        "run `{}` is {} over {}, and known as suspended: {known}",
                        run.id,
                        run.machine.name(),
                        run.state()
                    )
                },
            );
            let asked = run.question.is_none() || (run.state() == run::State::Paused && run.step.is_some());
            self.that(Invariant::QuestionsAgree, asked, || {
                format!("run `{}` is {} with a call that waits", run.id, run.machine.name())
            });
        }
    }

    fn timers(&mut self) {
        let world = self.world;
        let mut needed: BTreeSet<Timer> = BTreeSet::new();
        for (channel, room) in &world.channels {
            let holders = room.places.iter().filter(|(_, place)| place.holds_turn());
            let timer = |agent: &AgentName| Timer::Turn { channel: channel.clone(), agent: agent.clone() };
            needed.extend(holders.map(|(agent, _)| timer(agent)));
            let silence = Timer::Silence { channel: channel.clone() };
            needed.extend(
                Some(silence).filter(|silence| world.timers.contains_key(silence) && room.current.is_some()),
            );
        }
        let escalated = |state: architect::State| state == architect::State::Escalated;
        needed.extend(
            world
                .architect
                .as_ref()
                .filter(|architect| architect.suspension().is_none() && escalated(architect.inner().state))
                .map(|_| Timer::Escalation),
        );
        let suspended = world.architect.as_ref().is_some_and(|architect| architect.suspension().is_some());
        needed.extend(suspended.then_some(Timer::ArchitectSuspension));
        needed.extend(world.agents.keys().map(|agent| Timer::Heartbeat { agent: agent.clone() }));
        needed.extend(world.suspended.iter().map(|run| Timer::Suspension { run: run.clone() }));
        for run in world.runs.values() {
            needed.extend(
                run.question.as_ref().map(|question| Timer::Question { approval: question.approval.clone() }),
            );
        }
        for (service, health) in &world.health {
            needed.extend(health.resets_at.map(|_| Timer::Reset { service: service.clone() }));
            if !health.healthy {
                needed.insert(Timer::HealthPoll);
            }
        }
        for task in world.tasks.values() {
            needed.extend(task.landing.held_up.as_ref().map(|_| Timer::Checkout { task: task.id.clone() }));
            if let Some(Holder::Outside(_)) = task.work.lease.as_ref().map(|lease| &lease.holder) {
                needed.insert(Timer::OutsideLease { task: task.id.clone() });
            }
        }
        for worker in world.workers.values() {
            let timer = Timer::Backoff { worker: worker.name.clone() };
            let Some(task) = worker.machine.task.as_ref().and_then(|id| world.task(id)) else { continue };
            let run = world.run_of(&task.id);
            let in_error = run.is_some_and(|run| run.state() == run::State::InError);
            let asks = run.is_some_and(|run| world.open_question(&run.id).is_some());
            let backs_off = worker.machine.status == worker::State::Working && in_error;
            // One that came due while the fleet was stopped, the past under way or a question open is taken up after that.
            let can_go_on =
                world.fleet_running && task.work.unfinished.is_empty() && world.main_is_green() && !asks;
            if backs_off && (can_go_on || world.timers.contains_key(&timer)) {
                needed.insert(timer);
            }
        }
        // Whether it was said already is for the next one to see.
        let still = world.fleet_running && !standstill::is_at_work(world);
        needed.extend(Some(Timer::Standstill).filter(|timer| still && world.timers.contains_key(timer)));
        let there: BTreeSet<Timer> = world.timers.keys().cloned().collect();
        self.that(Invariant::TimersAreNeeded, there == needed, || {
            let missing: Vec<_> = needed.difference(&there).collect();
            let surplus: Vec<_> = there.difference(&needed).collect();
            format!("missing {missing:?}, not needed {surplus:?}")
        });
    }

    fn standstill(&mut self) {
        let world = self.world;
        // Of no day: whether a budget of this day is used up, only whoever knows the time can say.
        let list = standstill::standstill(world, 0);
        let said = world.standstill.as_ref().filter(|said| said.of_this_fleet);
        let is_said = |reason: &Reason| said.is_some_and(|said| said.reasons.contains(reason));
        let timer = world.timers.contains_key(&Timer::Standstill);
        let unsaid = list.iter().map(Reason::of).find(|reason| !timer && !is_said(reason));
        self.that(Invariant::StandstillIsSaid, unsaid.is_none(), || format!("nobody says {unsaid:?}"));
    }

    fn keys(&mut self) {
        let world = self.world;
        let ordered = world
            .kept_order
            .iter()
            .all(|(order, key)| world.kept.get(key).is_some_and(|kept| kept.order == *order));
        let bounded = world.kept.len() <= world.config.limits.kept_answers;
        self.that(
            Invariant::KeysAgree,
            ordered && bounded && world.kept.len() == world.kept_order.len(),
            || format!("{} answers, {} in order", world.kept.len(), world.kept_order.len()),
        );
    }

    fn indexes(&mut self) {
        let world = self.world;
        let claimable: BTreeSet<_> = world.tasks.values().filter_map(|task| world.claim_key(task)).collect();
        self.that(Invariant::IndexesAgree, claimable.iter().eq(world.claimable.iter()), || {
            format!("claimable is {:?} and should be {claimable:?}", world.claimable)
        });
        let is_idle =
            |worker: &&std::sync::Arc<crate::world::Worker>| worker.machine.status == worker::State::Idle;
        let idle = world.workers.values().filter(is_idle).map(|worker| &worker.name);
        self.that(Invariant::IndexesAgree, idle.eq(world.idle.iter()), || {
            format!("idle is {:?}", world.idle)
        });
        for status in Status::ALL {
            let there = world.tasks.values().filter(|task| task.status() == *status);
            let there: BTreeMap<u64, &TaskId> = there.map(|task| (task.order, &task.id)).collect();
            let kept = world.by_status.get(status).into_iter().flatten();
            let agrees = there.iter().map(|(order, id)| (order, *id)).eq(kept);
            self.that(Invariant::IndexesAgree, agrees, || {
                format!("the tasks that are {status} are {there:?}, not {:?}", world.by_status.get(status))
            });
        }
        let mut assigned: BTreeSet<(&str, Status, u64, &TaskId)> = BTreeSet::new();
        for task in world.tasks.values() {
            for assignee in task.machine.assignee_ids.iter() {
                assigned.insert((assignee, task.status(), task.order, &task.id));
            }
        }
        let kept: BTreeSet<_> = world
            .by_assignee
            .iter()
            .flat_map(|(assignee, columns)| {
                columns.iter().map(move |(status, column)| (assignee, *status, column))
            })
            .flat_map(|(assignee, status, column)| {
                column.iter().map(move |(order, id)| (assignee.as_str(), status, *order, id))
            })
            .collect();
        self.that(Invariant::IndexesAgree, assigned == kept, || {
            format!("the tasks of assignees are {assigned:?}, not {kept:?}")
        });
        let undecided = world.approvals.iter().filter(|(_, approval)| approval.decided.is_none());
        self.that(Invariant::IndexesAgree, undecided.map(|(id, _)| id).eq(world.undecided.iter()), || {
            format!("undecided is {:?}", world.undecided)
        });
        let unanswered = world.requests.iter().filter(|(_, request)| request.answer.is_none());
        self.that(Invariant::IndexesAgree, unanswered.map(|(id, _)| id).eq(world.unanswered.iter()), || {
            format!("unanswered is {:?}", world.unanswered)
        });
        for (timer, effect) in &world.timers {
            let same = matches!(world.effects.get(effect).map(AsRef::as_ref), Some(Effect::Timer { timer: there, .. }) if there == timer);
            self.that(Invariant::IndexesAgree, same, || format!("timer {timer:?} has no effect `{effect}`"));
        }
        let waits =
            |on: &TaskId, id: &TaskId| world.dependents.get(on).is_some_and(|waiting| waiting.contains(id));
        for task in world.tasks.values() {
            let known = task.depends_on.iter().all(|on| waits(on, &task.id));
            self.that(Invariant::IndexesAgree, known, || {
                format!("`{}` is not known to wait for all of {:?}", task.id, task.depends_on)
            });
        }
    }

    fn queue(&mut self) {
        let world = self.world;
        let approved = |task: &Task| {
            let tip = task.work.place.as_ref().and_then(|place| place.tip.clone());
            task.status() == Status::Review
                && task.conflict().is_none()
                && task.review.approved.as_ref().is_some_and(|approved| approved.tip == tip)
        };
        for (key, id) in &world.queue {
            let agrees =
                world.task(id).is_some_and(|task| task.landing.queued == Some(*key) && approved(task));
            self.that(Invariant::QueueAgrees, agrees, || format!("`{id}` is queued"));
        }
        let queued = world.tasks.values().filter(|task| task.landing.queued.is_some()).count();
        self.that(Invariant::QueueAgrees, queued == world.queue.len(), || {
            format!("{queued} tasks say that they are queued")
        });
        if let Some(landing) = &world.landing {
            let agrees = world.task(&landing.task).is_some_and(approved)
                && world.effects.contains_key(&landing.effect);
            self.that(Invariant::QueueAgrees, agrees, || format!("`{}` is landing", landing.task));
        }
    }

    fn effects(&mut self) {
        let world = self.world;
        let steps: BTreeMap<_, &RunId> =
            world.runs.values().filter_map(|run| Some((run.step.as_ref()?, &run.id))).collect();
        for (step, run) in &steps {
            self.that(Invariant::StepsAgree, world.effects.contains_key(*step), || {
                format!("run `{run}` waits for `{step}`")
            });
        }
        for (id, effect) in &world.effects {
            let of_run = match effect.as_ref() {
                Effect::StartStep { of: StepStart::Task { .. }, .. }
                | Effect::PrepareTree { of: StepTree::Task { .. } }
                | Effect::RunGate { worker: Some(_), .. } => true,
                Effect::WriteTicket { task, status, .. } if *status == TicketStatus::Closed => {
                    let closed = world.task(task).is_some_and(|t| t.is_final());
                    self.that(Invariant::ClosedIsFinal, closed, || {
                        format!("the ticket of `{task}` is to be closed")
                    });
                    false
                }
                _ => false,
            };
            self.that(Invariant::StepsAgree, !of_run || steps.contains_key(id), || {
                format!("{} `{id}` is in the outbox and no run waits for it", effect.kind())
            });
        }
    }

    fn money(&mut self) {
        let world = self.world;
        let sum = |of: fn(&Run) -> u64| world.runs.values().map(|run| of(run)).sum::<u64>();
        // Whoever is hosted outside of tasks is paid for too.
        let in_seats: u64 = world.seats.values().map(|seated| seated.spend.cost).sum();
        let reserved_in_seats: u64 = world.seats.values().map(|seated| seated.reserved).sum();
        let (cost, reserved) =
            (sum(|run| run.spend.cost) + in_seats, sum(|run| run.reserved) + reserved_in_seats);
        let by_task = world.tasks.values().map(|task| task.spend.cost).sum::<u64>() + in_seats;
        let reserved_by_task =
            world.tasks.values().map(|task| task.spend.reserved).sum::<u64>() + reserved_in_seats;
        let by_agent: u64 = world.spend.by_agent.values().map(|total| total.cost).sum();
        let by_day: u64 = world.spend.by_day.values().map(|total| total.cost).sum();
        let by_tariff: u64 = world.spend.by_tariff.values().map(|total| total.cost).sum();
        let reserved_by_agent: u64 = world.spend.by_agent.values().map(|total| total.reserved).sum();
        let reserved_by_day: u64 = world.spend.by_day.values().map(|total| total.reserved).sum();
        let spent = [by_task, by_agent, by_day, by_tariff, world.spend.cost];
        let held = [reserved_by_task, reserved_by_agent, reserved_by_day, world.spend.reserved];
        self.that(Invariant::MoneyAdds, spent.iter().all(|total| *total == cost), || {
            format!("runs spent {cost}, totals say {spent:?}")
        });
        let all = |maps: &mut dyn Iterator<Item = &OrdMap<Tariff, Unknown>>| {
            let mut sum = Unknown::default();
            maps.flat_map(|map| map.values()).for_each(|unknown| sum.add(unknown));
            sum
        };
        let in_seats = || world.seats.values().map(|seated| &seated.spend.unknown);
        let unknown = all(&mut world.runs.values().map(|run| &run.spend.unknown).chain(in_seats()));
        let totals = [
            all(&mut world.tasks.values().map(|task| &task.spend.unknown).chain(in_seats())),
            all(&mut world.spend.by_agent.values().map(|total| &total.unknown)),
            all(&mut world.spend.by_day.values().map(|total| &total.unknown)),
            all(&mut world.spend.by_tariff.values().map(|total| &total.unknown)),
            all(&mut std::iter::once(&world.spend.unknown)),
        ];
        self.that(Invariant::MoneyAdds, totals.iter().all(|total| *total == unknown), || {
            format!("runs have steps of unknown price {unknown:?}, totals say {totals:?}")
        });
        self.that(Invariant::MoneyAdds, held.iter().all(|total| *total == reserved), || {
            format!("runs set {reserved} aside, totals say {held:?}")
        });
    }

    /// Without recursion: chains can be long. Tasks whose dependencies are all settled are taken away until none is
    /// left; what remains is a cycle, or waits for one.
    fn cycles(&mut self) {
        let world = self.world;
        let mut open: BTreeMap<&TaskId, usize> = BTreeMap::new();
        let mut ready: Vec<&TaskId> = Vec::new();
        for task in world.tasks.values() {
            let count = task.depends_on.iter().filter(|on| world.tasks.contains_key(*on)).count();
            if count == 0 {
                ready.push(&task.id);
            } else {
                open.insert(&task.id, count);
            }
        }
        while let Some(id) = ready.pop() {
            for waiting in world.dependents.get(id).into_iter().flatten() {
                if let Some(count) = open.get_mut(waiting) {
                    *count -= 1;
                    if *count == 0 {
                        open.remove(waiting);
                        ready.push(waiting);
                    }
                }
            }
        }
        self.that(Invariant::NoCycles, open.is_empty(), || {
            format!("these wait for each other: {:?}", open.keys().collect::<Vec<_>>())
        });
    }
}
