//! Budgets ask: whoever is stopped by one has a question that a person can answer.

use budget::Headroom;
use machines::names::{AgentName, ApprovalId, TaskId};
use machines::task::{ApprovalCause, Payload, Status};
use smol_str::SmolStr;

use super::Rule;
use super::claim::plan_for;
use super::release::enter_approval;
use crate::command::{Decision, Refusal};
use crate::draft::{Draft, Ruled, system_for};
use crate::event::{ApprovalAsked, BudgetRaised};
use crate::words::{Raise, Verdict};
use crate::world::BudgetScope;
use crate::{budget, why};

/// What is asked: for one task, or for all that wait for the same money.
enum Wish {
    Own(TaskId, AgentName, Headroom),
    Shared(AgentName, Headroom),
}

/// Tasks that only a budget keeps from an idle worker.
pub(super) fn ask_for_money(d: &mut Draft) -> Ruled {
    if !d.world.fleet_running || d.world.claimable.is_empty() || !budget::are_there(&d.world) {
        return Ok(());
    }
    while let Some(wish) = next_wish(&d.world, d.day()) {
        d.rule(Rule::BudgetAsked);
        match wish {
            Wish::Shared(agent, headroom) => drop(ask_budget(d, &headroom, &agent, None)),
            Wish::Own(id, agent, headroom) => {
                begin_unclaimed(d, &id, &agent)?;
                let approval = ask_budget(d, &headroom, &agent, Some(&id));
                enter_approval(d, &id, &approval, ApprovalCause::Budget)?;
            }
        }
    }
    Ok(())
}

/// A task that nobody may take for want of money, although somebody would.
fn next_wish(world: &crate::World, day: i64) -> Option<Wish> {
    world.idle.iter().find_map(|name| {
        let worker = world.worker(name)?;
        let agent = &worker.agent;
        if !world.config.agents.contains_key(agent) || why::fleet_blocker_but_money(world, agent).is_some() {
            return None;
        }
        let share = budget::share(world, agent);
        let shared = budget::shared_rooms(world, agent, day);
        let short = shared.iter().find(|headroom| !headroom.has(share));
        // Steps under way give back what they do not spend: then it is looked at again.
        if short.is_some_and(|headroom| !headroom.is_spent(share) || was_asked(world, headroom, agent, day)) {
            return None;
        }
        world.claimable.iter().find_map(|key| {
            let task = world.task(&key.4)?;
            if !world.is_there_for(worker, task) || why::task_blocker_but_money(world, task, agent).is_some()
            {
                return None;
            }
            if let Some(headroom) = short {
                return Some(Wish::Shared(agent.clone(), *headroom));
            }
            let run = world.run_of(&task.id).filter(|run| run.is_open());
            let own =
                budget::own_rooms(world, task, run).into_iter().find(|headroom| headroom.is_spent(share))?;
            Some(Wish::Own(task.id.clone(), agent.clone(), own))
        })
    })
}

/// Whether the same was asked and is open, or a person said no to it: of the day until it is over, of an agent until
/// its budget is another one.
pub(crate) fn was_asked(world: &crate::World, headroom: &Headroom, agent: &AgentName, day: i64) -> bool {
    asked(world, headroom, agent, day).is_some()
}

pub(crate) fn asked<'w>(
    world: &'w crate::World,
    headroom: &Headroom,
    agent: &AgentName,
    day: i64,
) -> Option<&'w crate::world::Approval> {
    let same = |approval: &&std::sync::Arc<crate::world::Approval>| {
        let of_all = approval.scope == Some(headroom.scope) && approval.task.is_none();
        let whose = headroom.scope == BudgetScope::Day || approval.agent.as_ref() == Some(agent);
        let stands = match &approval.decided {
            None => true,
            Some(decided) => {
                let this_day =
                    headroom.scope != BudgetScope::Day || crate::world::day_of(approval.asked_at) == day;
                decided.decision == Verdict::Denied && approval.limit == Some(headroom.limit) && this_day
            }
        };
        of_all && whose && stands
    };
    world.approvals.values().rfind(same).map(AsRef::as_ref)
}

/// The question about a budget: the open one where others wait for the same money, or a new one.
pub(super) fn ask_budget(
    d: &mut Draft,
    headroom: &Headroom,
    agent: &AgentName,
    task: Option<&TaskId>,
) -> ApprovalId {
    let for_all = matches!(headroom.scope, BudgetScope::Day | BudgetScope::Agent);
    let open = asked(&d.world, headroom, agent, d.day()).filter(|open| for_all && open.decided.is_none());
    if let Some(open) = open {
        return open.id.clone();
    }
    let question = budget::question(&d.world, headroom, agent, task);
    let approval = d.new_approval_id();
    let task = task.filter(|_| !for_all);
    let run = task.and_then(|task| d.world.run_of(task)).filter(|run| run.is_open());
    d.emit(ApprovalAsked {
        id: approval.clone(),
        run: run.map(|run| run.id.clone()),
        task: task.cloned(),
        cause: ApprovalCause::Budget,
        at: d.at(),
        question,
        options: vec![SmolStr::new_static("raise"), SmolStr::new_static("stop")],
        call: None,
        scope: Some(headroom.scope),
        agent: (headroom.scope != BudgetScope::Day).then(|| agent.clone()),
        limit: Some(headroom.limit),
        what: None,
    });
    approval
}

/// Only what has begun can wait for an approval: the task is moved as a claim would have moved it.
fn begin_unclaimed(d: &mut Draft, id: &TaskId, agent: &AgentName) -> Ruled {
    let by = system_for(agent);
    if d.task(id)?.status() == Status::Inbox {
        let assignee_ids = Some(vec![SmolStr::new(agent.as_str())]);
        d.move_task(id, &by, Status::Assigned, Payload { assignee_ids, ..Payload::default() })?;
    }
    if d.task(id)?.status() == Status::Assigned {
        let work_plan = plan_for(d, id)?;
        d.move_task(id, &by, Status::InProgress, Payload { work_plan, ..Payload::default() })?;
    }
    Ok(())
}

pub(super) fn raise_budget(d: &mut Draft, approval: &crate::world::Approval, decision: &Decision) -> Ruled {
    d.rule(Rule::BudgetRaised);
    let Some(scope) = approval.scope else { return Ok(()) };
    let run = approval.run.as_ref().and_then(|run| d.world.run(run));
    let agent = approval.agent.clone().or_else(|| run.map(|run| run.agent.clone()));
    let spender = agent.clone().unwrap_or_else(|| d.world.config.fleet.agent.clone());
    let mut rooms = budget::shared_rooms(&d.world, &spender, d.day());
    if let Some(task) = approval.task.as_ref().and_then(|task| d.world.task(task)) {
        rooms.extend(budget::own_rooms(&d.world, task, run));
    }
    let share = budget::share(&d.world, &spender);
    // One more step must fit, however far the last one went past the limit, or the next would only ask again.
    let missing =
        rooms.iter().find(|headroom| headroom.scope == scope).map_or(0, |headroom| headroom.missing(share));
    let raise = match decision.raise {
        Some(Raise::Money(raise)) => Some(raise),
        Some(Raise::Turns(_)) | None => None,
    };
    let by = match raise {
        // A person's number is never made larger.
        Some(raise) if raise < missing => {
            let (raise, missing) = (budget::dollars(raise), budget::dollars(missing));
            return Err(Refusal::field(
                "raise",
                format!("{raise} more leaves no room for a step; it takes at least {missing}"),
            ));
        }
        Some(raise) => raise,
        None => budget::limit(&d.world, scope, &spender).unwrap_or(0).max(missing),
    };
    let day = if scope == BudgetScope::Day { d.day() } else { 0 };
    d.emit(BudgetRaised { scope, task: approval.task.clone(), run: approval.run.clone(), agent, day, by });
    Ok(())
}
