//! The fold: how each event changes the World. No rule is asked here; what was decided is done.

use crate::command::RedBy;
use crate::event::*;
use crate::old_records;
use crate::rooms::{Channel, Seat, Seated};
use crate::specs::{Loaded, Spec, SpecState};
use crate::standstill::Standstill;
use crate::words::{NoteKind, PersonNeeded, Verdict};
use crate::world::*;
use crate::{Effect, Millis, World};
use imbl::OrdMap;
use machines::names::{AgentName, RequestId, RunId, SpecId, TaskId, WorkerName};
use machines::suspended::{Suspendable, Suspends, Wrapped};
use machines::{architect, run, task, turn, worker};
use smol_str::SmolStr;
use std::sync::Arc;

/// A log that does not fold: it was edited, or written by rules that this version does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoesNotFold {
    pub event: String,
    pub why: String,
}

impl std::fmt::Display for DoesNotFold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event `{}` does not follow from those before it: {}", self.event, self.why)
    }
}

impl std::error::Error for DoesNotFold {}

type Folded = Result<(), String>;

/// What a turn or a step used, on its way into every total that counts it.
struct Charge {
    tariff: Tariff,
    /// 0: the rest of the whole step.
    turn: u32,
    cost: crate::config::Micros,
    priced: bool,
    input_tokens: u64,
    output_tokens: u64,
    /// What the turns before it reported.
    before: Metered,
}

impl Charge {
    fn known(&self) -> crate::config::Micros {
        if self.priced { self.cost } else { 0 }
    }

    fn unknown(&self) -> Option<Unknown> {
        // The turns of the step said nothing of the whole; its end is where that shows.
        let before = if self.turn == 0 { self.before } else { Metered::default() };
        (!self.priced).then_some(Unknown {
            steps: 1,
            input_tokens: before.input_tokens + self.input_tokens,
            output_tokens: before.output_tokens + self.output_tokens,
            known: before.cost,
            held: self.cost,
        })
    }

    fn lacking(&self, of: &mut OrdMap<Tariff, Unknown>) {
        if let Some(unknown) = self.unknown() {
            of.entry(self.tariff.clone()).or_default().add(&unknown);
        }
    }

    fn add(&self, spend: &mut Spend) {
        spend.cost += self.known();
        spend.input_tokens += self.input_tokens;
        spend.output_tokens += self.output_tokens;
        self.lacking(&mut spend.unknown);
    }

    fn meter(&self, metered: &mut Metered) {
        if self.turn == 0 {
            *metered = Metered::default();
        } else if self.priced {
            metered.cost += self.cost;
            metered.input_tokens += self.input_tokens;
            metered.output_tokens += self.output_tokens;
        }
    }

    fn add_to_all(&self, spend: &mut Spend, agent: &AgentName, day: i64) {
        self.add(spend);
        for total in [
            spend.by_agent.entry(agent.clone()).or_default(),
            spend.by_day.entry(day).or_default(),
            spend.by_tariff.entry(self.tariff.clone()).or_default(),
        ] {
            total.cost += self.known();
            total.input_tokens += self.input_tokens;
            total.output_tokens += self.output_tokens;
            self.lacking(&mut total.unknown);
        }
    }
}

impl World {
    /// Applies one event. An error leaves the World half changed: whoever folds gives up on it.
    pub fn apply(&mut self, event: &Event) -> Result<(), DoesNotFold> {
        self.seq += 1;
        self.fold(event).map_err(|why| DoesNotFold { event: event.kind().to_owned(), why })
    }

    fn fold(&mut self, event: &Event) -> Folded {
        match event {
            Event::WriterSeen(_) => Ok(()),
            Event::TaskMoved(e) => self.task_moved(e),
            Event::WorkerMoved(e) => self.worker_moved(e),
            Event::RunMoved(e) => self.run_moved(e),
            Event::TurnMoved(e) => self.turn_moved(e),
            Event::ArchitectMoved(e) => {
                let mut machine =
                    self.architect.as_deref().cloned().unwrap_or(Suspendable::Live(Default::default()));
                replay_wrapped::<architect::Architect>(&mut machine, &e.input, e.state)?;
                self.architect = Some(Arc::new(machine));
                Ok(())
            }
            Event::TaskAdded(e) => self.task_added(e),
            Event::TryAdded(e) => {
                self.tries.entry(e.of.clone()).or_default().insert(e.id.clone());
                self.edit_task(&e.id, |task| task.try_of = Some(e.of.clone()))?;
                self.refresh_dependents(&e.of);
                Ok(())
            }
            Event::Undoes(e) => self.edit_task(&e.id, |task| task.undoes = Some(e.of.clone())),
            Event::ProposalAccepted(e) => self.edit_task(&e.id, |task| {
                if let Some(proposed) = &mut task.proposed {
                    proposed.state = ProposalState::Accepted;
                }
            }),
            Event::TaskEdited(e) => self.edit_task(&e.id, |task| {
                if let Some(title) = &e.title {
                    task.title.clone_from(title);
                }
                if let Some(body) = &e.body {
                    task.body.clone_from(body);
                }
                task.priority = e.priority.unwrap_or(task.priority);
                if e.plan.is_some() {
                    task.plan.clone_from(&e.plan);
                    task.plan_source = e.plan_source;
                }
                if e.reviewer.is_some() {
                    task.machine.reviewer_id.clone_from(&e.reviewer);
                }
            }),
            Event::AgentWanted(e) => self.edit_task(&e.id, |task| task.agent.clone_from(&e.agent)),
            Event::TicketNames(e) => {
                self.edit_task(&e.id, |task| task.ticket_assignee.clone_from(&e.assignee))
            }
            Event::AgentTookOver(e) => self.edit_task(&e.id, |task| {
                task.machine.assignee_ids = [SmolStr::new(e.agent.as_str())].into();
            }),
            Event::DependencyAdded(e) => {
                self.dependents.entry(e.on.clone()).or_default().insert(e.id.clone());
                self.edit_task(&e.id, |task| task.depends_on.push(e.on.clone()))
            }
            Event::DependencyRemoved(e) => {
                if let Some(waiting) = self.dependents.get_mut(&e.on) {
                    waiting.remove(&e.id);
                }
                self.edit_task(&e.id, |task| task.depends_on.retain(|on| *on != e.on))
            }
            Event::Commented(e) => self.edit_task(&e.id, |task| {
                let comment =
                    Comment { at: e.at, by: e.by.clone(), kind: e.comment.clone(), text: e.text.clone() };
                task.comments.push_back(Arc::new(comment));
            }),
            Event::TicketSeen(e) => {
                self.brought.remove(&e.id);
                self.ticket_seen(e)
            }
            Event::TicketGone(e) => {
                let ticket = self.tickets.get_mut(&e.id).ok_or_else(|| no("ticket", &e.id))?;
                Arc::make_mut(ticket).gone = e.gone.then_some(Gone { blocked: e.blocked });
                Ok(())
            }

            Event::LeaseGiven(e) => self.edit_task(&e.id, |task| {
                task.lease = Some(Lease { holder: e.holder.clone(), attempt: e.attempt });
                task.lease_attempts = e.attempt;
            }),
            Event::LeaseEnded(e) => self.edit_task(&e.id, |task| {
                task.lease = None;
                // Nobody waits for the answer any more.
                task.in_doubt = None;
            }),
            Event::WorkerLost(e) => self.edit_task(&e.id, |task| task.lost_workers = e.lost),
            Event::PlaceGiven(e) => self.edit_task(&e.id, |task| {
                task.place = Some(Workspace {
                    tree: e.tree.clone(),
                    branch: e.branch.clone(),
                    session: e.session.clone(),
                    session_used: false,
                    tip: None,
                    ready: false,
                });
            }),
            Event::SessionUsed(e) => self.edit_place(&e.id, |place| place.session_used = true),
            Event::SessionRenewed(e) => self.edit_place(&e.id, |place| {
                place.session = e.session.clone();
                place.session_used = false;
            }),
            Event::TreeStands(e) => self.edit_place(&e.id, |place| place.ready = e.stands),
            Event::TipMoved(e) => self.edit_place(&e.id, |place| place.tip = Some(e.tip.clone())),
            Event::NoteLeft(e) => self.edit_task(&e.id, |task| task.notes.push_back(e.note.clone())),
            Event::NotesTold(e) => self.edit_task(&e.id, |task| {
                task.notes.clear();
                task.sent_back = None;
            }),
            Event::SentBackTo(e) => self.edit_task(&e.id, |task| {
                let (SentBack::Gate(output) | SentBack::Landing(output)) = &e.what;
                task.test_output = Some(crate::why::last_lines(output));
                task.sent_back = Some(e.what.clone());
                // The gate runs no tests on what conflicts: the agent has solved that.
                let tested = matches!(e.by, RedBy::Tests | RedBy::InDoubt | RedBy::Environment);
                if matches!(e.what, SentBack::Gate(_)) && tested {
                    let conflict = task.failed_landing.iter_mut().filter(|failed| failed.conflict);
                    conflict.for_each(|failed| failed.stands = false);
                }
            }),
            Event::GateDoubted(e) => self.edit_task(&e.id, |task| task.in_doubt.clone_from(&e.what)),
            Event::LandingDoubted(e) => self.edit_task(&e.id, |task| task.landing_doubted = e.doubted),
            Event::Restarted(e) => self.edit_task(&e.id, |task| {
                task.lost_workers = 0;
                task.empty_diffs = 0;
                task.needs_person = None;
                task.has_code = None;
                task.sent_back = None;
                task.test_output = None;
                task.landing_doubted = false;
                task.waits_for = None;
                task.failed_landing = None;
            }),
            Event::LandingFailedOn(e) => self.edit_task(&e.id, |task| {
                task.failed_landing = Some(FailedLanding {
                    tip: e.tip.clone(),
                    main: e.main.clone(),
                    conflict: e.conflict,
                    files: e.files.clone(),
                    stands: true,
                });
            }),
            Event::PlaceTaken(e) => self.edit_task(&e.id, |task| task.place = None),
            Event::EmptyDiffSeen(e) => self.edit_task(&e.id, |task| task.empty_diffs += 1),
            Event::GatePassed(e) => self.edit_task(&e.id, |task| {
                task.test_output = None;
                // What a person moved to REVIEW by hand went through no gate.
                if e.needs_person != Some(PersonNeeded::ByHand) {
                    task.failed_landing.iter_mut().for_each(|failed| failed.stands = false);
                }
                task.has_code = Some(e.has_code);
                task.needs_person = e.needs_person;
                if let (Some(place), Some(tip)) = (&mut task.place, &e.tip) {
                    place.tip = Some(tip.clone());
                }
            }),
            Event::WaitsForApproval(e) => {
                self.edit_task(&e.id, |task| task.approval = Some(e.approval.clone()))
            }
            Event::WaitsForService(e) => self.edit_task(&e.id, |task| task.waits_for.clone_from(&e.service)),
            Event::UnfinishedAdded(e) => self.edit_task(&e.id, |task| {
                task.unfinished.insert(e.effect.clone());
            }),
            Event::AfterwardsAdded(e) => {
                self.edit_task(&e.id, |task| task.afterwards.push_back(Arc::new(e.what.clone())))
            }
            Event::AfterwardsTaken(e) => self.edit_task(&e.id, |task| task.afterwards.clear()),
            Event::GateAlone(e) => self.edit_task(&e.id, |task| task.gate.clone_from(&e.effect)),

            Event::TaskApproved(e) => self.edit_task(&e.id, |task| {
                task.failed_landing.iter_mut().for_each(|failed| failed.stands = false);
                task.approved =
                    Some(Approved { tip: e.tip.clone(), by: e.by.clone(), at: e.at, note: e.note.clone() });
            }),
            Event::ApprovalVoided(e) => self.edit_task(&e.id, |task| {
                task.approved = None;
                task.out_of_the_way();
            }),
            Event::Queued(e) => {
                let arrival = self.count();
                let priority = self.task(&e.id).ok_or_else(|| no("task", &e.id))?.priority;
                self.queue.insert((priority, arrival), e.id.clone());
                self.edit_task(&e.id, |task| task.queued = Some((priority, arrival)))
            }
            Event::Dequeued(e) => {
                if let Some(key) = self.task(&e.id).and_then(|task| task.queued) {
                    self.queue.remove(&key);
                }
                self.edit_task(&e.id, |task| task.queued = None)
            }
            Event::LandingStarted(e) => {
                self.landing = Some(Arc::new(Landing {
                    task: e.id.clone(),
                    tip: e.tip.clone(),
                    effect: e.effect.clone(),
                    since: e.at,
                    written: None,
                }));
                Ok(())
            }
            Event::LandingWritten(e) => {
                self.landing = Some(Arc::new(Landing {
                    task: e.id.clone(),
                    tip: e.landed.tip.clone(),
                    effect: e.effect.clone(),
                    since: e.at,
                    written: Some(e.landed.clone()),
                }));
                self.brought.extend(e.tickets.iter().map(|ticket| (ticket.clone(), e.id.clone())));
                Ok(())
            }
            Event::LandingHeldUp(e) => self.edit_task(&e.id, |task| {
                task.hold_up(e.why.clone().map(|why| HeldUp::Checkout { why }), e.at);
            }),
            Event::LandingWaits(e) => self.edit_task(&e.id, |task| task.hold_up(Some(e.what.clone()), e.at)),
            Event::PullRequestOpened(e) => {
                self.edit_task(&e.id, |task| task.pull_request = Some(e.pull_request.clone()))
            }
            Event::LandingEnded(e) => {
                self.landing = None;
                let of_others = self.brought.iter().filter(|(_, task)| **task != e.id);
                self.brought = of_others.map(|(ticket, task)| (ticket.clone(), task.clone())).collect();
                Ok(())
            }
            Event::TaskLanded(e) => {
                self.landing = None;
                self.landed_on_main(&e.landed);
                self.edit_task(&e.id, |task| {
                    task.landed = Some(e.landed.clone());
                    task.landing_doubted = false;
                    task.out_of_the_way();
                })
            }

            Event::WorkerSpawned(e) => {
                self.workers.insert(e.name.clone(), Arc::new(new_worker(e)));
                Ok(())
            }

            Event::RunOpened(e) => self.run_opened(e),
            Event::RunTaken(e) => self.edit_run(&e.id, |run| run.holder = e.holder.clone()),
            Event::StepUnderWay(e) => {
                let agent = self.run(&e.id).and_then(|run| self.config.agents.get(&run.agent));
                let model = agent.and_then(|agent| agent.model.clone());
                let begun = e.effect.as_ref().and_then(|effect| self.effects.get(effect));
                let step = begun.is_some_and(|effect| matches!(**effect, Effect::StartStep { .. }));
                self.edit_run(&e.id, |run| {
                    // What was said of the step before holds for that one.
                    if step {
                        run.claimed = None;
                    }
                    run.step.clone_from(&e.effect);
                    if e.effect.is_some() {
                        run.metered = Metered::default();
                        run.model = model;
                    }
                })
            }
            Event::TurnsRaised(e) => self.edit_run(&e.id, |run| run.next_max_turns = e.to),
            Event::StepCompared(e) => self.edit_run(&e.id, |run| {
                let audit = &mut run.audit;
                audit.same_steps = if audit.last_step == Some(e.digest) { audit.same_steps + 1 } else { 1 };
                audit.last_step = Some(e.digest);
            }),
            Event::StepRetried(e) => self.edit_run(&e.id, |run| run.retried = e.retried),
            Event::Reserved(e) => {
                self.edit_run(&e.id, |run| run.reserved_day = e.day)?;
                self.reserve(&e.id, e.amount as i64)
            }
            Event::Unreserved(e) => {
                let amount = self.run(&e.id).map_or(0, |run| run.reserved);
                self.reserve(&e.id, -(amount as i64))
            }
            Event::Charged(e) => self.charged(e),
            Event::BudgetRaised(e) => self.budget_raised(e),
            Event::ToolAudited(e) => {
                let kept = LOOP_CALLS_MAX * (self.config.limits.same_call.max(2) as usize);
                self.edit_run(&e.id, |run| audit(&mut run.audit, e, kept))
            }
            Event::RunNoted(_) => Ok(()),

            Event::ApprovalAsked(e) => self.approval_asked(e),
            Event::ApprovalDecided(e) => {
                if self.day_approval.as_ref() == Some(&e.id) {
                    self.day_approval = None;
                }
                self.undecided.remove(&e.id);
                let approval = self.approvals.get_mut(&e.id).ok_or_else(|| no("approval", &e.id))?;
                Arc::make_mut(approval).decided =
                    Some(Decided { by: e.by.clone(), at: e.at, decision: e.decision, note: e.note.clone() });
                let (run, call) = (approval.run.clone(), approval.call.clone());
                if let (Some(run), Some(call), Verdict::Approved) = (run, call, e.decision) {
                    self.allow_once(&run, &call)?;
                }
                Ok(())
            }
            Event::CallAllowed(e) => {
                self.edit_task(&e.id, |task| task.allowed.push_back(Arc::new(e.call.clone())))
            }
            Event::QuestionDropped(e) => self.edit_run(&e.id, |run| run.question = None),

            Event::Requested(e) => {
                self.count();
                let request = Request {
                    id: e.id.clone(),
                    kind: e.kind,
                    task: e.task.clone(),
                    run: e.run.clone(),
                    by: e.by.clone(),
                    asked_at: e.at,
                    text: e.text.clone(),
                    answer: None,
                    told: false,
                    spec: e.spec.clone(),
                    tip: e.tip.clone(),
                    tries: 0,
                    notes: Default::default(),
                    for_person: false,
                };
                self.requests.insert(e.id.clone(), Arc::new(request));
                self.unanswered.insert(e.id.clone());
                Ok(())
            }
            Event::RequestAnswered(e) => {
                let given = GivenAnswer {
                    by: e.by.clone(),
                    at: e.at,
                    text: e.text.clone(),
                    abandoned: e.abandoned,
                    reply: e.reply.clone(),
                };
                self.unanswered.remove(&e.id);
                self.edit_request(&e.id, |request| request.answer = Some(given))
            }
            Event::AnswerTold(e) => self.edit_request(&e.id, |request| request.told = true),
            Event::PlanSubmitted(e) => self.edit_task(&e.id, |task| {
                let (plan, source) = (e.plan.clone(), Some(task::PlanSource::Agent));
                task.machine.work_plan = Some(task::WorkPlan { source, ..task::WorkPlan::new(plan) });
            }),
            Event::CompletionClaimed(e) => {
                let claimed = Claimed { step: e.step.clone(), summary: e.summary.clone() };
                self.edit_run(&e.id, |run| run.claimed = Some(claimed))
            }

            Event::EffectAsked(e) => {
                if let Effect::Timer { timer, .. } = &e.what {
                    self.timers.insert(timer.clone(), e.id.clone());
                }
                self.effects.insert(e.id.clone(), Arc::new(e.what.clone()));
                self.count();
                Ok(())
            }
            Event::EffectEnded(e) => self.effect_ended(e),
            Event::EffectFailed(e) => {
                self.failures.insert(e.id.clone(), e.tries);
                Ok(())
            }

            Event::FleetSwitched(e) => {
                self.fleet_running = e.running;
                self.fleet_workers = e.workers.or(self.fleet_workers);
                if let Some(standstill) = &mut self.standstill {
                    Arc::make_mut(standstill).of_this_fleet = false;
                }
                Ok(())
            }
            Event::StoodStill(e) => {
                let (since, at, reasons) = (e.since, e.at, e.reasons.clone());
                self.standstill = Some(Arc::new(Standstill { since, at, reasons, of_this_fleet: true }));
                Ok(())
            }
            Event::ConfigChanged(e) => {
                self.config = Arc::new((*e.config).clone());
                Ok(())
            }
            Event::OutageCounted(e) => {
                let who = SmolStr::new(e.who.to_string());
                match e.since.is_none() && e.spent == 0 {
                    true => drop(self.outages.remove(&who)),
                    false => {
                        let (service, since, spent) = (e.service.clone(), e.since, e.spent);
                        self.outages.insert(who, Outage { service, since, spent });
                    }
                }
                Ok(())
            }
            Event::HealthSeen(e) => {
                let before = self.health.get(&e.service).filter(|before| before.healthy == e.healthy);
                let health = Health {
                    healthy: e.healthy,
                    since: before.map_or(e.at, |before| before.since),
                    error: e.error.clone().or_else(|| before?.error.clone()).filter(|_| !e.healthy),
                    refused: e.refused,
                    tries: before.map_or(0, |before| {
                        before.tries + u32::from(before.probe.is_some() && e.probe.is_none())
                    }),
                    last: if e.probe.is_some() { before.map_or(e.at, |before| before.last) } else { e.at },
                    resets_at: e.resets_at,
                    probe: e.probe.clone(),
                };
                self.health.insert(e.service.clone(), health);
                // It has answered: the outage is over for all.
                if e.healthy && e.probe.is_none() {
                    let over = |outage: &Outage| outage.service == e.service;
                    let whose = self.outages.iter().filter(|(_, outage)| over(outage));
                    let whose: Vec<SmolStr> = whose.map(|(who, _)| who.clone()).collect();
                    for who in whose {
                        self.outages.remove(&who);
                    }
                }
                Ok(())
            }
            Event::DiskSeen(e) => {
                self.disk_full.clone_from(&e.full);
                self.disk_full_since = e.at.filter(|_| e.full.is_some());
                Ok(())
            }
            Event::MainTestsBegun(e) => {
                self.main.under_way = Some(e.effect.clone());
                Ok(())
            }
            Event::MainTested(e) => {
                let before = self.main.verdict.as_ref().and_then(|verdict| verdict.ran_at);
                self.main.verdict = Some(Arc::new(MainVerdict {
                    of: e.of.clone(),
                    main: e.main.clone(),
                    at: e.at,
                    ran_at: if e.ran { Some(e.at) } else { before },
                    command: e.command.clone(),
                    red: e.red.clone(),
                }));
                self.main.again = false;
                Ok(())
            }
            Event::MainDoubted(e) => {
                match e.forget {
                    true => self.main.verdict = None,
                    false => self.main.again = true,
                }
                Ok(())
            }
            Event::AnswerKept(e) => self.answer_kept(e),

            Event::AgentConnected(e) => {
                self.agents.insert(e.agent.clone(), Connected { since: e.at, seen: e.at });
                Ok(())
            }
            Event::HeartbeatSeen(e) => {
                let there = self.agents.get_mut(&e.agent);
                let there = there.ok_or_else(|| format!("agent `{}` is not connected", e.agent))?;
                there.seen = e.at;
                Ok(())
            }
            Event::AgentSwitched(e) => {
                match e.enabled {
                    true => drop(self.disabled.remove(&e.agent)),
                    false => {
                        let disabled = Disabled { since: e.at, by: e.by.clone(), reason: e.reason.clone() };
                        self.disabled.insert(e.agent.clone(), disabled);
                    }
                }
                Ok(())
            }
            Event::AgentGone(e) => {
                let gone = self.agents.remove(&e.agent);
                gone.map(drop).ok_or_else(|| format!("agent `{}` is not connected", e.agent))
            }
            Event::ChannelMade(e) => {
                self.channels.insert(e.name.clone(), Arc::new(Channel::made(e)));
                Ok(())
            }
            Event::ChannelClosed(e) => self.edit_channel(&e.name, |channel| channel.closed = Some(e.at)),
            Event::MemberAdded(e) => self.edit_channel(&e.channel, |channel| channel.member_added(e)),
            Event::MemberRemoved(e) => {
                self.edit_channel(&e.channel, |channel| channel.member_removed(&e.agent))
            }
            Event::RingChanged(e) => self.edit_channel(&e.channel, |channel| channel.ring_changed(e)),
            Event::TurnHeld(e) => self.edit_channel(&e.channel, |channel| channel.turn_held(e)),
            Event::Posted(e) => self.edit_channel(&e.channel, |channel| channel.was_posted(e)),
            Event::MessagesReleased(e) => self.edit_channel(&e.channel, Channel::released),
            Event::MessageHeard(e) => self.edit_channel(&e.channel, |channel| channel.message_heard(e)),
            Event::ReceiptsMoved(e) => self.edit_channel(&e.channel, |channel| channel.receipts_moved(e)),
            Event::MemberSkipped(e) => self.edit_channel(&e.channel, |channel| {
                if e.skipped {
                    channel.skipped.insert(e.agent.clone());
                } else {
                    channel.skipped.remove(&e.agent);
                }
            }),
            Event::MemberRests(e) => self.edit_channel(&e.channel, |channel| {
                channel.resting.insert(e.agent.clone());
            }),
            Event::RoomRests(e) => self.edit_channel(&e.channel, |channel| {
                channel.rests = e.rests;
                channel.quiet = imbl::OrdSet::new();
                channel.late = imbl::OrdSet::new();
            }),
            Event::RoomStalls(e) => self.edit_channel(&e.channel, |channel| {
                channel.stalled = true;
                channel.ending = e.ending;
            }),
            Event::TurnShifted(e) => self.edit_channel(&e.channel, |channel| channel.turn_shifted(e)),

            Event::SeatTaken(e) => {
                let mut seated = Seated::new(&e.agent, &e.session);
                // What was spent there was spent, whoever sat there.
                if let Some(before) = self.seated(&e.seat) {
                    seated.spend = before.spend.clone();
                    seated.unfinished = before.unfinished.clone();
                }
                self.seats.insert(e.seat.clone(), Arc::new(seated));
                Ok(())
            }
            Event::SeatSessionUsed(e) => self.edit_seat(&e.seat, |seated| seated.session_used = true),
            Event::SeatSessionRenewed(e) => self.edit_seat(&e.seat, |seated| {
                seated.session = e.session.clone();
                seated.session_used = false;
                seated.retried = e.retried;
            }),
            Event::ReplyUnderWay(e) => self.edit_seat(&e.seat, |seated| {
                // A second try is one of the same reply: the next one may lose its session again.
                seated.retried &= e.effect.is_some();
                seated.reply.clone_from(&e.effect);
                seated.decided = None;
                seated.turns_charged = 0;
                seated.metered = Metered::default();
            }),
            Event::ReplyDecided(e) => {
                self.edit_seat(&e.seat, |seated| seated.decided = Some(e.request.clone()))
            }
            Event::ReplyUnfinished(e) => self.edit_seat(&e.seat, |seated| {
                seated.unfinished.insert(e.effect.clone());
            }),
            Event::SeatReserved(e) => {
                self.edit_seat(&e.seat, |seated| seated.reserved_day = e.day)?;
                self.reserve_for_seat(&e.seat, e.amount as i64)
            }
            Event::SeatUnreserved(e) => {
                let amount = self.seated(&e.seat).map_or(0, |seated| seated.reserved);
                self.reserve_for_seat(&e.seat, -(amount as i64))
            }
            Event::SeatCharged(e) => self.seat_charged(e),
            Event::RequestQueued(e) => {
                self.architect_queue.push_back(e.id.clone());
                self.edit_request(&e.id, |request| {
                    request.for_person = false;
                    request.tries = 0;
                })
            }
            Event::RequestLeft(e) => {
                self.architect_queue.retain(|id| *id != e.id);
                Ok(())
            }
            Event::RequestTried(e) => self.edit_request(&e.id, |request| {
                request.tries += 1;
                request.notes.push_back(Note { kind: NoteKind::Plain, text: e.why.clone() });
            }),
            Event::RequestNoted(e) => {
                self.edit_request(&e.id, |request| request.notes.push_back(old_records::note(e)))
            }
            Event::RequestForPerson(e) => self.edit_request(&e.id, |request| request.for_person = true),
            Event::SpecSubmitted(e) => {
                let spec = Spec {
                    id: e.id.clone(),
                    title: e.title.clone(),
                    state: SpecState::Submitted,
                    path: e.path.clone(),
                    format: e.format.clone(),
                    text: e.text.clone(),
                    version: e.version,
                    by: e.by.clone(),
                    at: e.at,
                    feedback: None,
                    reviewed_at: None,
                    stories: Default::default(),
                };
                self.specs.insert(e.id.clone(), Arc::new(spec));
                Ok(())
            }
            Event::SpecReviewed(e) => self.edit_spec(&e.id, |spec| {
                spec.state = e.state;
                spec.feedback.clone_from(&e.feedback);
                spec.reviewed_at = Some(e.at);
            }),
            Event::StoryLoaded(e) => self.edit_spec(&e.spec, |spec| {
                let (task, key, mark) = (e.task.clone(), e.key.clone(), e.mark.clone());
                spec.stories.push_back(Loaded { task, key, mark });
            }),
            // Read where channels and the architect are read; nothing that the kernel decides hangs on them.
            Event::ChannelSaid(_) | Event::ArchitectAsked(_) => Ok(()),
        }
    }

    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Edits a task and keeps what is derived from it in step.
    fn edit_task(&mut self, id: &TaskId, edit: impl FnOnce(&mut Task)) -> Folded {
        let task = self.tasks.get(id).ok_or_else(|| no("task", id))?;
        let (key, status) = (self.claim_key(task), task.status());
        edit(Arc::make_mut(self.tasks.get_mut(id).ok_or_else(|| no("task", id))?));
        let task = &self.tasks[id];
        let (new_key, new_status) = (self.claim_key(task), task.status());
        if key != new_key {
            key.map(|key| self.claimable.remove(&key));
            new_key.map(|key| self.claimable.insert(key));
        }
        if status != new_status {
            let order = task.order;
            self.by_status.entry(status).or_default().remove(&order);
            self.by_status.entry(new_status).or_default().insert(order, id.clone());
            // Whoever waits for one try waits for all of them.
            let others: Vec<TaskId> =
                self.other_tries(&self.tasks[id]).map(|other| other.id.clone()).collect();
            std::iter::once(id).chain(&others).for_each(|id| self.refresh_dependents(id));
        }
        Ok(())
    }

    /// Those who wait for `id` may have become claimable, or have stopped being so.
    fn refresh_dependents(&mut self, id: &TaskId) {
        let Some(waiting) = self.dependents.get(id).cloned() else { return };
        for dependent in waiting {
            let Some(task) = self.tasks.get(&dependent) else { continue };
            let class = match task.status() {
                task::Status::Assigned => 1,
                task::Status::Inbox => 2,
                _ => continue,
            };
            let key = (class, task.priority, task.created_at, task.order, dependent.clone());
            if self.claim_key(task).is_some() {
                self.claimable.insert(key);
            } else {
                self.claimable.remove(&key);
            }
        }
    }

    fn edit_place(&mut self, id: &TaskId, edit: impl FnOnce(&mut Workspace)) -> Folded {
        self.edit_task(id, |task| {
            if let Some(place) = &mut task.place {
                edit(place);
            }
        })
    }

    fn edit_worker(&mut self, name: &WorkerName, edit: impl FnOnce(&mut Worker)) -> Folded {
        edit(Arc::make_mut(self.workers.get_mut(name).ok_or_else(|| no("worker", name))?));
        Ok(())
    }

    fn edit_run(&mut self, id: &RunId, edit: impl FnOnce(&mut Run)) -> Folded {
        edit(Arc::make_mut(self.runs.get_mut(id).ok_or_else(|| no("run", id))?));
        Ok(())
    }

    fn edit_channel(
        &mut self,
        name: &machines::names::ChannelName,
        edit: impl FnOnce(&mut Channel),
    ) -> Folded {
        edit(Arc::make_mut(self.channels.get_mut(name).ok_or_else(|| no("channel", name))?));
        Ok(())
    }

    fn task_moved(&mut self, e: &TaskMoved) -> Folded {
        let mut taken = None;
        self.edit_task(&e.id, |task| {
            taken = carried_out(machines::replay(&mut task.machine, &e.input, e.to));
            if e.from != e.to {
                task.status_since = e.at;
            }
            if e.from == task::Status::NeedsApproval {
                task.approval = None;
            }
            // What was submitted is judged anew each time.
            if e.to == task::Status::InProgress {
                task.needs_person = None;
                task.has_code = None;
            }
            if e.from == task::Status::Review && e.to != task::Status::Review {
                task.sent_back_tip = task.place.as_ref().and_then(|place| place.tip.clone());
            }
            if let task::Event::Move { to: task::Status::Review, by, payload } = &e.input
                && payload.deliverable.is_some()
            {
                task.handed_in_by = match by.role {
                    machines::machine::Role::System => None,
                    machines::machine::Role::Human => Some(smol_str::format_smolstr!("human:{}", by.id)),
                    _ => Some(smol_str::format_smolstr!("agent:{}", by.id)),
                };
            }
            // Only a person leads it out: what blocked it is counted from nothing.
            if e.from == task::Status::Blocked {
                // Tests that failed once may pass; a conflict stays one.
                task.failed_landing.take_if(|failed| !failed.conflict);
                task.lost_workers = 0;
            }
        })?;
        if e.from == task::Status::Blocked
            && let Some(run) = self.task(&e.id).and_then(|task| task.run.clone())
        {
            self.edit_run(&run, |run| run.audit.forgive())?;
        }
        taken.ok_or_else(|| format!("task `{}` has no row from {} to {} here", e.id, e.from, e.to))
    }

    fn worker_moved(&mut self, e: &WorkerMoved) -> Folded {
        let mut taken = None;
        self.edit_worker(&e.name, |worker| {
            taken = carried_out(machines::replay(&mut worker.machine, &e.input, e.to));
            match &e.input {
                worker::Event::Assign { .. } => worker.task_assigned_at = Some(e.at),
                worker::Event::StepOk { .. } => worker.last_step_at = Some(e.at),
                worker::Event::StepFailed { error } => {
                    worker.last_failed_at = Some(e.at);
                    worker.last_error = Some(error.clone());
                }
                _ => {}
            }
            if worker.machine.task.is_none() {
                worker.task_assigned_at = None;
            }
        })?;
        taken.ok_or_else(|| format!("worker `{}` has no row from {} to {} here", e.name, e.from, e.to))?;
        if e.to == worker::State::Idle {
            self.idle.insert(e.name.clone());
        } else {
            self.idle.remove(&e.name);
        }
        if e.to == worker::State::Removed {
            self.workers.remove(&e.name);
        }
        Ok(())
    }

    fn run_moved(&mut self, e: &RunMoved) -> Folded {
        let mut taken = Ok(());
        let mut suspended = false;
        self.edit_run(&e.id, |run| {
            taken = replay_wrapped::<run::Run>(&mut run.machine, &e.input, e.state);
            suspended = run.is_suspended();
        })?;
        if suspended {
            self.suspended.insert(e.id.clone());
        } else {
            self.suspended.remove(&e.id);
        }
        taken
    }

    fn turn_moved(&mut self, e: &TurnMoved) -> Folded {
        let mut taken = None;
        self.edit_channel(&e.channel, |channel| {
            let place: &mut turn::Turn = channel.places.entry(e.agent.clone()).or_default();
            taken = carried_out(machines::replay(place, &e.input, e.to));
            if let turn::Event::TurnGranted { at, .. } = &e.input {
                channel.granted = *at;
            }
        })?;
        taken.ok_or_else(|| format!("agent `{}` has no row from {} to {} here", e.agent, e.from, e.to))
    }

    fn task_added(&mut self, e: &TaskAdded) -> Folded {
        if self.tasks.contains_key(&e.id) {
            return Err(format!("task `{}` is there already", e.id));
        }
        let order = self.count();
        // As far as people count; a date or another program's number would make the next one absurd.
        let number = e.id.as_str().strip_prefix("t-").and_then(|number| number.parse::<u32>().ok());
        self.last_task = self.last_task.max(number.map_or(0, u64::from));
        let machine =
            task::Task { task_type: e.task_type, reviewer_id: e.reviewer.clone(), ..task::Task::default() };
        let task = Task {
            id: e.id.clone(),
            machine,
            title: e.title.clone(),
            body: e.body.clone(),
            priority: e.priority,
            created_at: e.created.unwrap_or(e.at),
            status_since: Some(e.at),
            order,
            ticket: e.ticket.clone(),
            reopens: e.reopens.clone(),
            try_of: None,
            undoes: None,
            agent: None,
            ticket_assignee: None,
            plan: e.plan.clone(),
            plan_source: e.plan_source,
            depends_on: e.depends_on.clone(),
            comments: Default::default(),
            lease: None,
            lease_attempts: 0,
            place: None,
            run: None,
            runs: 0,
            lost_workers: 0,
            empty_diffs: 0,
            needs_person: None,
            handed_in_by: None,
            sent_back_tip: None,
            failed_landing: None,
            has_code: None,
            approved: None,
            queued: None,
            held_up: None,
            held_up_since: None,
            tried_again: None,
            pull_request: None,
            landed: None,
            spend: Spend::default(),
            raised: 0,
            notes: Default::default(),
            sent_back: None,
            test_output: None,
            in_doubt: None,
            landing_doubted: false,
            unfinished: Default::default(),
            afterwards: Default::default(),
            gate: None,
            approval: None,
            waits_for: None,
            allowed: Default::default(),
            proposed: e.proposed.clone(),
        };
        for on in &e.depends_on {
            self.dependents.entry(on.clone()).or_default().insert(e.id.clone());
        }
        self.claim_key(&task).map(|key| self.claimable.insert(key));
        self.by_status.entry(task.status()).or_default().insert(order, e.id.clone());
        self.tasks.insert(e.id.clone(), Arc::new(task));
        // A dependency that was missing, or counted by its ticket, is a task now.
        self.refresh_dependents(&e.id);
        Ok(())
    }

    fn ticket_seen(&mut self, e: &TicketSeen) -> Folded {
        let openings = self.tickets.get(&e.id).map_or(0, |ticket| ticket.openings) + u32::from(e.opened);
        let ticket = Ticket {
            id: e.id.clone(),
            status: e.status.clone(),
            fingerprint: e.fingerprint,
            openings,
            task: e.task.clone(),
            gone: self.tickets.get(&e.id).and_then(|ticket| ticket.gone),
        };
        self.tickets.insert(e.id.clone(), Arc::new(ticket));
        if let Ok(id) = TaskId::new(&e.id) {
            self.refresh_dependents(&id);
        }
        Ok(())
    }

    fn run_opened(&mut self, e: &RunOpened) -> Folded {
        let machine = run::Run {
            state: if e.after_completed { run::State::Completed } else { run::State::Idle },
            max_turns: e.max_turns,
            allowed_tools: e.allowed_tools.as_ref().map(|tools| tools.as_slice().into()),
            ..run::Run::default()
        };
        let run = Run {
            id: e.id.clone(),
            task: e.task.clone(),
            agent: e.agent.clone(),
            holder: e.holder.clone(),
            machine: Suspendable::Live(machine),
            step: None,
            question: None,
            spend: Spend::default(),
            reserved: 0,
            reserved_day: 0,
            raised: 0,
            next_max_turns: None,
            turns_charged: 0,
            metered: Metered::default(),
            model: None,
            retried: false,
            audit: Audit::default(),
            claimed: None,
        };
        self.runs.insert(e.id.clone(), Arc::new(run));
        self.edit_task(&e.task, |task| {
            task.run = Some(e.id.clone());
            task.runs += 1;
        })
    }

    /// Adds to what is set aside for a run, in every scope at once.
    fn reserve(&mut self, id: &RunId, amount: i64) -> Folded {
        let run = self.run(id).ok_or_else(|| no("run", id))?;
        let (task, agent, day) = (run.task.clone(), run.agent.clone(), run.reserved_day);
        let add = |total: &mut u64| *total = total.saturating_add_signed(amount);
        self.edit_run(id, |run| add(&mut run.reserved))?;
        self.edit_task(&task, |task| add(&mut task.spend.reserved))?;
        add(&mut self.spend.reserved);
        add(&mut self.spend.by_agent.entry(agent).or_default().reserved);
        add(&mut self.spend.by_day.entry(day).or_default().reserved);
        Ok(())
    }

    /// A step without a price costs what is known of it. What was set aside stays set aside, beside its tokens.
    fn charged(&mut self, e: &Charged) -> Folded {
        let run = self.run(&e.id).ok_or_else(|| no("run", &e.id))?;
        let charge = Charge {
            tariff: e.tariff(),
            turn: e.turn,
            cost: e.cost,
            priced: e.priced,
            input_tokens: e.input_tokens,
            output_tokens: e.output_tokens,
            before: run.metered,
        };
        let add = |spend: &mut Spend| charge.add(spend);
        // What is spent or held was set aside before: it is not counted twice.
        let from_reserve = run.reserved.min(e.cost);
        self.reserve(&e.id, -(from_reserve as i64))?;
        self.edit_run(&e.id, |run| {
            add(&mut run.spend);
            run.turns_charged = run.turns_charged.max(e.turn);
            charge.meter(&mut run.metered);
        })?;
        self.edit_task(&e.task, |task| add(&mut task.spend))?;
        if let Some(worker) = e.worker.as_ref().filter(|name| self.workers.contains_key(*name)) {
            self.edit_worker(worker, |worker| add(&mut worker.spend))?;
        }
        charge.add_to_all(&mut self.spend, &e.agent, e.day);
        Ok(())
    }

    /// The same of an agent that is hosted outside of tasks.
    fn seat_charged(&mut self, e: &SeatCharged) -> Folded {
        let seated = self.seated(&e.seat).ok_or_else(|| no("seat", &e.seat))?;
        let charge = Charge {
            tariff: Tariff::of(&e.agent, e.model.as_ref()),
            turn: e.turn,
            cost: e.cost,
            priced: e.priced,
            input_tokens: e.input_tokens,
            output_tokens: e.output_tokens,
            before: seated.metered,
        };
        let from_reserve = seated.reserved.min(e.cost);
        self.reserve_for_seat(&e.seat, -(from_reserve as i64))?;
        self.edit_seat(&e.seat, |seated| {
            charge.add(&mut seated.spend);
            seated.turns_charged = seated.turns_charged.max(e.turn);
            charge.meter(&mut seated.metered);
        })?;
        charge.add_to_all(&mut self.spend, &e.agent, e.day);
        Ok(())
    }

    fn reserve_for_seat(&mut self, seat: &Seat, amount: i64) -> Folded {
        let seated = self.seated(seat).ok_or_else(|| no("seat", seat))?;
        let (agent, day) = (seated.agent.clone(), seated.reserved_day);
        let add = |total: &mut u64| *total = total.saturating_add_signed(amount);
        self.edit_seat(seat, |seated| add(&mut seated.reserved))?;
        add(&mut self.spend.reserved);
        add(&mut self.spend.by_agent.entry(agent).or_default().reserved);
        add(&mut self.spend.by_day.entry(day).or_default().reserved);
        Ok(())
    }

    fn edit_seat(&mut self, seat: &Seat, edit: impl FnOnce(&mut Seated)) -> Folded {
        edit(Arc::make_mut(self.seats.get_mut(seat).ok_or_else(|| no("seat", seat))?));
        Ok(())
    }

    fn budget_raised(&mut self, e: &BudgetRaised) -> Folded {
        match (e.scope, &e.run, &e.task, &e.agent) {
            (BudgetScope::Run, Some(run), _, _) => self.edit_run(run, |run| run.raised += e.by),
            (BudgetScope::Task, _, Some(task), _) => self.edit_task(task, |task| task.raised += e.by),
            (BudgetScope::Agent, _, _, Some(agent)) => {
                self.spend.by_agent.entry(agent.clone()).or_default().raised += e.by;
                Ok(())
            }
            (BudgetScope::Day, ..) => {
                self.spend.by_day.entry(e.day).or_default().raised += e.by;
                Ok(())
            }
            _ => Err(format!("a raise of the {} budget does not say whose", e.scope)),
        }
    }

    fn edit_spec(&mut self, id: &SpecId, change: impl FnOnce(&mut Spec)) -> Folded {
        change(Arc::make_mut(self.specs.get_mut(id).ok_or_else(|| no("spec", id))?));
        Ok(())
    }

    fn edit_request(&mut self, id: &RequestId, change: impl FnOnce(&mut Request)) -> Folded {
        let request = self.requests.get_mut(id).ok_or_else(|| no("request", id))?;
        change(Arc::make_mut(request));
        Ok(())
    }

    /// An agent outside asked before it makes the call: when it reports the call, it is not asked about again.
    fn allow_once(&mut self, run: &RunId, call: &AskedCall) -> Folded {
        let outside = self.run(run).is_some_and(|run| matches!(run.holder, Holder::Outside(_)));
        if !outside {
            return Ok(());
        }
        let digest = call_digest(&call.tool, &call.input);
        self.edit_run(run, |run| {
            if !run.audit.open_calls.values().any(|open| open.digest == digest) {
                run.audit.allowed_once.insert(digest);
            }
        })
    }

    fn approval_asked(&mut self, e: &ApprovalAsked) -> Folded {
        self.count();
        if e.scope == Some(BudgetScope::Day) {
            self.day_approval = Some(e.id.clone());
        }
        if let (Some(run), Some(call)) = (&e.run, &e.call) {
            let question = Question { call: call.clone(), approval: e.id.clone() };
            self.edit_run(run, |run| run.question = Some(question))?;
        }
        let approval = Approval {
            id: e.id.clone(),
            task: e.task.clone(),
            run: e.run.clone(),
            cause: e.cause,
            asked_at: e.at,
            question: e.question.clone(),
            options: e.options.clone(),
            scope: e.scope,
            agent: e.agent.clone(),
            limit: e.limit,
            decided: None,
            call: e.what.clone(),
        };
        self.approvals.insert(e.id.clone(), Arc::new(approval));
        self.undecided.insert(e.id.clone());
        Ok(())
    }

    /// What landed was tested as merged: main passes its tests where it is now, if it did where it was.
    fn landed_on_main(&mut self, landed: &Landed) {
        if let Some(verdict) = &mut self.main.verdict
            && verdict.main == landed.old_main
            && verdict.red.is_none()
        {
            Arc::make_mut(verdict).main = landed.merge.clone();
        }
    }

    fn effect_ended(&mut self, e: &EffectEnded) -> Folded {
        self.failures.remove(&e.id);
        if self.main.under_way.as_ref() == Some(&e.id) {
            self.main.under_way = None;
        }
        let Some(effect) = self.effects.remove(&e.id) else { return Err(no("effect", &e.id)) };
        if let Effect::Timer { timer, .. } = effect.as_ref()
            && self.timers.get(timer) == Some(&e.id)
        {
            self.timers.remove(timer);
        }
        if let Effect::EndReply { seat, .. } = effect.as_ref() {
            self.edit_seat(seat, |seated| {
                seated.unfinished.remove(&e.id);
            })?;
        }
        if let Some(task) = effect.task().filter(|task| self.tasks.contains_key(*task)) {
            let task = task.clone();
            self.edit_task(&task, |task| {
                task.unfinished.remove(&e.id);
            })?;
        }
        Ok(())
    }

    fn answer_kept(&mut self, e: &AnswerKept) -> Folded {
        let order = self.count();
        let key = (e.scope.clone(), e.key.clone());
        let kept = IdempotentAnswer {
            fingerprint: e.fingerprint,
            order,
            command: e.command.clone(),
            answer: e.answer.clone(),
        };
        self.kept.insert(key.clone(), Arc::new(kept));
        self.kept_order.insert(order, key);
        while self.kept_order.len() > self.config.limits.kept_answers {
            let Some((order, key)) = self.kept_order.get_min().cloned() else { break };
            self.kept_order.remove(&order);
            self.kept.remove(&key);
        }
        Ok(())
    }
}

fn no(what: &str, id: &dyn std::fmt::Display) -> String {
    format!("there is no {what} `{id}`")
}

fn new_worker(e: &WorkerSpawned) -> Worker {
    let at: Millis = e.at;
    Worker {
        name: e.name.clone(),
        agent: e.agent.clone(),
        by_person: e.by_person,
        machine: worker::Worker::default(),
        started_at: at,
        task_assigned_at: None,
        last_step_at: None,
        last_failed_at: None,
        last_error: None,
        spend: Spend::default(),
    }
}

/// Counts what loop detection looks at: a call when it is made, a failure when it has failed.
/// `Bash(make test)`: the tool, and the first line of what it is about.
fn action(tool: &str, input: &str) -> SmolStr {
    const LETTERS_MAX: usize = 100;
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    let names = ["command", "file_path", "path", "pattern", "url", "query", "description"];
    let about = names.iter().find_map(|name| input[*name].as_str()).unwrap_or_default();
    let line = about.lines().next().unwrap_or_default();
    let cut = line.chars().count() > LETTERS_MAX || about.lines().nth(1).is_some();
    let line: String = line.chars().take(LETTERS_MAX).chain(cut.then_some('…')).collect();
    if line.is_empty() { tool.into() } else { format!("{tool}({line})").into() }
}

fn audit(audit: &mut Audit, e: &ToolAudited, kept: usize) {
    match e.status {
        run::ToolStatus::Pending | run::ToolStatus::Running if e.began => {}
        run::ToolStatus::Pending | run::ToolStatus::Running => {
            audit.calls += 1;
            audit.allowed_once.remove(&e.digest);
            if !audit.refused.contains(&e.call) {
                audit.open.insert(e.call.clone());
                let open = OpenCall { tool: e.tool.clone(), digest: e.digest };
                audit.open_calls.insert(e.call.clone(), open);
            }
            audit.same_calls = if audit.last_call == Some(e.digest) { audit.same_calls + 1 } else { 1 };
            audit.last_call = Some(e.digest);
            audit.last_action = Some(action(&e.tool, e.input.as_deref().unwrap_or_default()));
            audit.recent.push_back(e.digest);
            while audit.recent.len() > kept {
                audit.recent.pop_front();
            }
        }
        run::ToolStatus::Error => {
            audit.open.remove(&e.call);
            audit.open_calls.remove(&e.call);
            if e.output.as_deref() == Some(TOOL_NOT_ALLOWED) {
                audit.refused.insert(e.call.clone());
            }
            let again = audit.failing_tool.as_ref() == Some(&e.tool);
            audit.failures = if again { audit.failures + 1 } else { 1 };
            audit.failing_tool = Some(e.tool.clone());
        }
        run::ToolStatus::Complete => {
            audit.open.remove(&e.call);
            audit.open_calls.remove(&e.call);
            if audit.failing_tool.as_ref() == Some(&e.tool) {
                audit.failing_tool = None;
                audit.failures = 0;
            }
        }
    }
}

fn replay_wrapped<M: Suspends>(
    machine: &mut Suspendable<M>,
    event: &Wrapped<M::Event>,
    to: M::State,
) -> Folded {
    if let (Suspendable::Live(inner), Wrapped::Inner(event)) = (&mut *machine, event) {
        let from = inner.state();
        return carried_out(machines::replay(inner, event, to))
            .ok_or_else(|| format!("{} has no row from {from:?} to {to:?} here", M::NAME));
    }
    machine.advance(event, None).map(drop).map_err(|refusal| refusal.to_string())
}

/// What a row asked for was carried out when its event was written.
fn carried_out<E>(replayed: Option<Vec<E>>) -> Option<()> {
    replayed.map(drop)
}
