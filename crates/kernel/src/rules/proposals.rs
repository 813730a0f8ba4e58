//! Tasks that agents propose: how many, and who says that they are worked on.

use machines::names::{RunId, TaskId};
use smol_str::SmolStr;

use super::Rule;
use crate::checks::forbidden;
use crate::command::{Actor, NewTask, Refusal};
use crate::config::{Proposals, Role};
use crate::draft::{Draft, Ruled};
use crate::event::ProposalAccepted;
use crate::world::{ProposalState, Proposed};

/// What an agent adds is a proposal, within the limits; what a person adds is a task.
pub(crate) fn propose(d: &mut Draft, new: &NewTask) -> Result<Option<Proposed>, Refusal> {
    let Actor::Agent { name, role } = &d.command.actor else { return Ok(None) };
    let by = name.clone();
    if *role == Role::Intern {
        return Err(forbidden("add a task"));
    }
    d.rule(Rule::TaskProposed);
    let state = match d.world.config.policy.proposals {
        Proposals::Refuse => {
            return Err(forbidden("propose a task: `policy.proposals` is \"refuse\"")
                .hint("say in a comment on your own task what else there is to do"));
        }
        Proposals::Ask => ProposalState::Waiting,
        Proposals::Accept => ProposalState::ByPolicy,
    };
    within_limits(d, by, new.run.clone(), state).map(Some)
}

/// A ticket whose file an agent's landing brings to main is a proposal too. The file is there and cannot be refused: what
/// the policy refuses, an intern's, and what is past the limit wait for a person.
pub(super) fn brought(d: &mut Draft, ticket: &SmolStr) -> Option<Proposed> {
    let on = d.world.brought.get(ticket)?.clone();
    let run = d.world.run_of(&on)?;
    let (by, run) = (run.agent.clone(), run.id.clone());
    d.rule(Rule::TaskProposed);
    let by_policy = d.world.config.policy.proposals == Proposals::Accept
        && d.world.config.agent(&by).role != crate::config::Role::Intern;
    let proposed = by_policy
        .then(|| within_limits(d, by.clone(), Some(run.clone()), ProposalState::ByPolicy).ok())
        .flatten();
    let root = root_of(d, &on);
    let waiting = ProposalState::Waiting;
    proposed.or(Some(Proposed { by, run: Some(run), on: Some(on), root: Some(root), state: waiting }))
}

fn within_limits(
    d: &Draft,
    by: machines::names::AgentName,
    run: Option<RunId>,
    state: ProposalState,
) -> Result<Proposed, Refusal> {
    let on = run.as_ref().and_then(|run| d.world.run(run)).map(|run| run.task.clone());
    let root = on.as_ref().map(|on| root_of(d, on));
    let most = d.world.config.limits.proposals as usize;
    let before = |counts: &dyn Fn(&Proposed) -> bool| {
        d.world.tasks.values().filter(|task| task.origin.proposed.as_ref().is_some_and(counts)).count()
    };
    // One without a run is counted with its agent's others without one.
    let of_run = before(&|known| known.run == run && (known.run.is_some() || known.by == by));
    let chain = match state {
        ProposalState::ByPolicy if root.is_some() => {
            before(&|known| known.root == root && known.state == ProposalState::ByPolicy)
        }
        _ => 0,
    };
    let (count, whose) = match (of_run >= most, chain >= most, &root) {
        (true, ..) => (of_run, "this run has".to_owned()),
        (_, true, Some(root)) => (chain, format!("`{root}` and what followed from it have")),
        _ => return Ok(Proposed { by, run, on, root, state }),
    };
    let message = format!("{whose} proposed {count} tasks, and `limits.proposals` allows {most}");
    Err(Refusal::new(409, "PROPOSALS", message)
        .hint("say in a comment on your own task what else there is to do"))
}

/// Where a chain of proposals that only the policy accepted began: a person's word begins a new one.
fn root_of(d: &Draft, id: &TaskId) -> TaskId {
    let proposed = d.world.task(id).and_then(|task| task.origin.proposed.as_ref());
    let chained = proposed.filter(|proposed| proposed.state == ProposalState::ByPolicy);
    chained.and_then(|proposed| proposed.root.clone()).unwrap_or_else(|| id.clone())
}

/// A person says that a proposal is to be worked on.
pub(crate) fn accept_proposal(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    if !task.is_waiting_proposal() {
        let what =
            if task.origin.proposed.is_some() { "it was accepted before" } else { "no agent proposed it" };
        let message = format!("`{id}` is no proposal that waits: {what}");
        return Err(Refusal::new(409, "NOT_PROPOSED", message));
    }
    if task.is_final() {
        let status = task.status();
        return Err(Refusal::new(409, "CLOSED", format!("`{id}` is {status}")));
    }
    take_proposal(d, id);
    Ok(())
}

/// The same where a person gives a proposal to somebody: that says as much.
pub(super) fn take_proposal(d: &mut Draft, id: &TaskId) {
    if d.world.task(id).is_some_and(|task| task.is_waiting_proposal()) {
        d.rule(Rule::ProposalAccepted);
        let by = SmolStr::new(d.command.actor.to_string());
        d.emit(ProposalAccepted { id: id.clone(), by, at: d.at() });
    }
}
