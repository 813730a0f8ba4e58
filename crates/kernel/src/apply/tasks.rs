//! What is to be done: tasks, what they depend on, and the tickets that they come from.

use super::{Folded, carried_out, no};
use crate::World;
use crate::event::{
    AgentTookOver, AgentWanted, Commented, DependencyAdded, DependencyRemoved, DraftDropped, DraftKept, Fold,
    PlanSubmitted, ProposalAccepted, Restarted, RoundSent, TaskAdded, TaskEdited, TaskMoved, TicketGone,
    TicketNames, TicketSeen, TryAdded, Undoes, WaitsForApproval,
};
use crate::world::{
    Comment, Gone, ProposalState, ReviewDraft, ReviewRound, Spend, Task, TaskGate, TaskLanding, TaskOrigin,
    TaskReview, TaskWork, Ticket,
};
use machines::names::TaskId;
use machines::task;
use smol_str::SmolStr;
use std::sync::Arc;

impl Fold<TaskMoved> for World {
    fn fold(&mut self, e: &TaskMoved) -> Folded {
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
                task.gate.needs_person = None;
                task.gate.has_code = None;
            }
            if e.from == task::Status::Review && e.to != task::Status::Review {
                task.review.sent_back_tip = task.work.place.as_ref().and_then(|place| place.tip.clone());
            }
            if let task::Event::Move { to: task::Status::Review, by, payload } = &e.input
                && payload.deliverable.is_some()
            {
                task.review.handed_in_by = match by.role {
                    machines::machine::Role::System => None,
                    machines::machine::Role::Human => Some(smol_str::format_smolstr!("human:{}", by.id)),
                    _ => Some(smol_str::format_smolstr!("agent:{}", by.id)),
                };
            }
            // Only a person leads it out: what blocked it is counted from nothing.
            if e.from == task::Status::Blocked {
                // Tests that failed once may pass; a conflict stays one.
                task.landing.failed.take_if(|failed| !failed.conflict);
                task.work.lost_workers = 0;
            }
        })?;
        if e.from == task::Status::Blocked
            && let Some(run) = self.task(&e.id).and_then(|task| task.work.run.clone())
        {
            self.edit_run(&run, |run| run.audit.forgive())?;
        }
        taken.ok_or_else(|| format!("task `{}` has no row from {} to {} here", e.id, e.from, e.to))
    }
}

impl Fold<TaskAdded> for World {
    fn fold(&mut self, e: &TaskAdded) -> Folded {
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
            agent: None,
            plan: e.plan.clone(),
            plan_source: e.plan_source,
            depends_on: e.depends_on.clone(),
            comments: Default::default(),
            spend: Spend::default(),
            raised: 0,
            approval: None,
            origin: TaskOrigin {
                ticket: e.ticket.clone(),
                reopens: e.reopens.clone(),
                proposed: e.proposed.clone(),
                ..TaskOrigin::default()
            },
            work: TaskWork::default(),
            gate: TaskGate::default(),
            review: TaskReview::default(),
            landing: TaskLanding::default(),
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
}

impl Fold<TryAdded> for World {
    fn fold(&mut self, e: &TryAdded) -> Folded {
        self.tries.entry(e.of.clone()).or_default().insert(e.id.clone());
        self.edit_task(&e.id, |task| task.origin.try_of = Some(e.of.clone()))?;
        self.refresh_dependents(&e.of);
        Ok(())
    }
}

impl Fold<Undoes> for World {
    fn fold(&mut self, e: &Undoes) -> Folded {
        self.edit_task(&e.id, |task| task.origin.undoes = Some(e.of.clone()))
    }
}

impl Fold<ProposalAccepted> for World {
    fn fold(&mut self, e: &ProposalAccepted) -> Folded {
        self.edit_task(&e.id, |task| {
            if let Some(proposed) = &mut task.origin.proposed {
                proposed.state = ProposalState::Accepted;
            }
        })
    }
}

impl Fold<TaskEdited> for World {
    fn fold(&mut self, e: &TaskEdited) -> Folded {
        self.edit_task(&e.id, |task| {
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
        })
    }
}

impl Fold<AgentWanted> for World {
    fn fold(&mut self, e: &AgentWanted) -> Folded {
        self.edit_task(&e.id, |task| task.agent.clone_from(&e.agent))
    }
}

impl Fold<TicketNames> for World {
    fn fold(&mut self, e: &TicketNames) -> Folded {
        self.edit_task(&e.id, |task| task.origin.ticket_assignee.clone_from(&e.assignee))
    }
}

impl Fold<AgentTookOver> for World {
    fn fold(&mut self, e: &AgentTookOver) -> Folded {
        self.edit_task(&e.id, |task| {
            task.machine.assignee_ids = [SmolStr::new(e.agent.as_str())].into();
        })
    }
}

impl Fold<DependencyAdded> for World {
    fn fold(&mut self, e: &DependencyAdded) -> Folded {
        self.dependents.entry(e.on.clone()).or_default().insert(e.id.clone());
        self.edit_task(&e.id, |task| task.depends_on.push(e.on.clone()))
    }
}

impl Fold<DependencyRemoved> for World {
    fn fold(&mut self, e: &DependencyRemoved) -> Folded {
        if let Some(waiting) = self.dependents.get_mut(&e.on) {
            waiting.remove(&e.id);
        }
        self.edit_task(&e.id, |task| task.depends_on.retain(|on| *on != e.on))
    }
}

impl Fold<Commented> for World {
    fn fold(&mut self, e: &Commented) -> Folded {
        self.edit_task(&e.id, |task| {
            let comment =
                Comment { at: e.at, by: e.by.clone(), kind: e.comment.clone(), text: e.text.clone() };
            task.comments.push_back(Arc::new(comment));
        })
    }
}

impl Fold<DraftKept> for World {
    fn fold(&mut self, e: &DraftKept) -> Folded {
        self.edit_task(&e.id, |task| {
            let draft = ReviewDraft { at: e.at, by: e.by.clone(), comment: e.comment.clone() };
            let number = e.draft.trim_start_matches('d').parse().unwrap_or(0);
            task.review.last_draft = task.review.last_draft.max(number);
            task.review.drafts.insert(e.draft.clone(), Arc::new(draft));
        })
    }
}

impl Fold<DraftDropped> for World {
    fn fold(&mut self, e: &DraftDropped) -> Folded {
        self.edit_task(&e.id, |task| {
            task.review.drafts.remove(&e.draft);
        })
    }
}

impl Fold<RoundSent> for World {
    fn fold(&mut self, e: &RoundSent) -> Folded {
        self.edit_task(&e.id, |task| {
            let drafts = std::mem::take(&mut task.review.drafts);
            let round = ReviewRound {
                number: e.number,
                at: e.at,
                by: e.by.clone(),
                tip: e.tip.clone(),
                note: e.note.clone(),
                comments: drafts.values().map(|draft| draft.comment.clone()).collect(),
                runs: e.runs,
            };
            task.review.rounds.push_back(Arc::new(round));
        })
    }
}

impl Fold<TicketSeen> for World {
    fn fold(&mut self, e: &TicketSeen) -> Folded {
        self.brought.remove(&e.id);
        let openings = self.tickets.get(&e.id).map_or(0, |ticket| ticket.openings) + u32::from(e.opened);
        let ticket = Ticket {
            id: e.id.clone(),
            status: e.status,
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
}

impl Fold<TicketGone> for World {
    fn fold(&mut self, e: &TicketGone) -> Folded {
        let ticket = self.tickets.get_mut(&e.id).ok_or_else(|| no("ticket", &e.id))?;
        Arc::make_mut(ticket).gone = e.gone.then_some(Gone { blocked: e.blocked });
        Ok(())
    }
}

impl Fold<PlanSubmitted> for World {
    fn fold(&mut self, e: &PlanSubmitted) -> Folded {
        self.edit_task(&e.id, |task| {
            let (plan, source) = (e.plan.clone(), Some(task::PlanSource::Agent));
            task.machine.work_plan = Some(task::WorkPlan { source, ..task::WorkPlan::new(plan) });
        })
    }
}

impl Fold<WaitsForApproval> for World {
    fn fold(&mut self, e: &WaitsForApproval) -> Folded {
        self.edit_task(&e.id, |task| task.approval = Some(e.approval.clone()))
    }
}

impl Fold<Restarted> for World {
    fn fold(&mut self, e: &Restarted) -> Folded {
        self.edit_task(&e.id, |task| {
            task.work.lost_workers = 0;
            task.gate.empty_diffs = 0;
            task.gate.needs_person = None;
            task.gate.has_code = None;
            task.gate.sent_back = None;
            task.gate.test_output = None;
            task.landing.doubted = false;
            task.work.waits_for = None;
            task.landing.failed = None;
        })
    }
}
