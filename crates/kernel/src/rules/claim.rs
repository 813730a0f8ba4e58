//! Claiming: whoever is free takes what there is.

use machines::names::{RunId, TaskId, WorkerName};
use machines::task::{Payload, Status};
use machines::worker::ReleaseReason;
use machines::{run, task, worker};
use smol_str::SmolStr;

use super::Rule;
use super::excerpts::first_line;
use super::leases::give_lease;
use super::service::begins;
use super::sessions;
use crate::command::Refusal;
use crate::draft::{Draft, Ruled, system_for};
use crate::event::{AgentTookOver, PlaceGiven, RunOpened, RunTaken, TurnsRaised};
use crate::session::Session;
use crate::why;
use crate::words::CommentKind;
use crate::world::Holder;

pub(super) fn next_claim(d: &Draft) -> Option<(WorkerName, TaskId)> {
    let world = &d.world;
    if !world.fleet_running || world.claimable.is_empty() {
        return None;
    }
    world.idle.iter().find_map(|name| {
        let worker = world.worker(name)?;
        if !world.config.agents.contains_key(&worker.agent) {
            return None;
        }
        if why::fleet_blocker(world, &worker.agent, d.day()).is_some() {
            return None;
        }
        let open = |key: &&crate::world::ClaimKey| {
            world.task(&key.4).is_some_and(|task| {
                world.is_there_for(worker, task) && why::task_blocker(world, task, &worker.agent).is_none()
            })
        };
        world.claimable.iter().find(open).map(|key| (name.clone(), key.4.clone()))
    })
}

/// One commit: INBOX→ASSIGNED→IN_PROGRESS, worker ready, run START or RESUME.
pub(super) fn claim(d: &mut Draft, name: &WorkerName, id: &TaskId) -> Ruled {
    d.rule(Rule::Claimed);
    let agent = d.worker(name)?.agent.clone();
    let by = system_for(&agent);
    let assignees = Some(vec![SmolStr::new(agent.as_str())]);

    if d.task(id)?.status() == Status::Inbox {
        d.move_task(id, &by, Status::Assigned, Payload { assignee_ids: assignees, ..Payload::default() })?;
    }
    let task = d.task(id)?;
    if !task.machine.assignee_ids.iter().any(|id| id == agent.as_str()) {
        d.emit(AgentTookOver { id: id.clone(), agent: agent.clone() });
    }
    release_stuck(d, id, name)?;
    give_lease(d, id, Holder::Worker(name.clone()))?;
    if d.task(id)?.status() == Status::Assigned {
        let work_plan = plan_for(d, id)?;
        d.move_task(id, &by, Status::InProgress, Payload { work_plan, ..Payload::default() })?;
    }
    if d.task(id)?.work.place.is_none() {
        let session = d.new_session();
        d.emit(PlaceGiven {
            id: id.clone(),
            tree: format!("{name}-{id}"),
            branch: format!("agent/{name}-{id}"),
            session,
        });
    }
    // Another agent's program knows nothing of the session.
    let used = d.task(id)?.work.place.as_ref().is_some_and(|place| place.session_used);
    let before = d.world.run_of(id).filter(|run| used && run.agent != agent);
    if let Some(before) = before.map(|run| Session::Run(run.id.clone())) {
        sessions::renew(d, &before, false);
    }
    take_run(d, id, &agent, Holder::Worker(name.clone()))?;
    if let Some(of) = d.world.run_of(id).map(|run| Session::Run(run.id.clone())) {
        begins(d, &agent, of.probe());
        sessions::reserve(d, &of);
    }
    let config = &d.world.config;
    let limits = worker::Limits {
        max_steps: config.fleet.max_steps,
        max_fix_rounds: config.fleet.max_fix_rounds,
        backoff_seconds: config.limits.backoff_seconds,
    };
    d.move_worker(name, worker::Event::Assign { task: id.clone(), claimable: true, limits }).map(drop)
}

/// The plan that the ticket or a person gave, or the default one, where the task has none yet. A ticket's plan that is too
/// short is completed, one that is too long drawn together, and both are said.
pub(super) fn plan_for(d: &mut Draft, id: &TaskId) -> Result<Option<task::WorkPlan>, Refusal> {
    let task = d.task(id)?;
    if task.machine.work_plan.is_some() {
        return Ok(None);
    }
    let (least, most) = (task::PLAN_BULLETS_MIN, task::PLAN_BULLETS_MAX);
    let default = [
        format!("Read the code that \"{}\" concerns", first_line(&task.title)),
        "Make the change, with tests that would fail without it".to_owned(),
        "Run the tests and commit".to_owned(),
    ];
    let given = task.plan.iter().flatten().map(|bullet| bullet.trim().to_owned());
    let mut bullets: Vec<String> = given.filter(|bullet| !bullet.is_empty()).collect();
    let count = bullets.len();
    let source = if count == 0 { Some(task::PlanSource::Default) } else { task.plan_source };
    let said = match count {
        0 => {
            bullets.extend(default);
            None
        }
        _ if count < least => {
            // The last ones: whatever the plan says, it ends with tests that pass.
            bullets.extend(default.into_iter().skip(count));
            Some(format!(
                "the plan has {count} of {least} to {most} steps; it was completed with the default ones"
            ))
        }
        _ if count > most => {
            let rest = bullets.split_off(most - 1);
            bullets.push(rest.join("; "));
            Some(format!(
                "the plan has {count} steps and {most} are the most; the last ones were put into one"
            ))
        }
        _ => None,
    };
    if let Some(said) = said {
        d.comment(id, "system", CommentKind::PlanNote, said);
    }
    Ok(Some(task::WorkPlan { source, ..task::WorkPlan::new(bullets) }))
}

/// The same for whoever moves the task without the fleet: the plan that somebody gave counts, and none is made up.
pub(super) fn given_plan(d: &mut Draft, id: &TaskId) -> Result<Option<task::WorkPlan>, Refusal> {
    match d.task(id)?.plan.as_ref().is_some_and(|plan| !plan.is_empty()) {
        true => plan_for(d, id),
        false => Ok(None),
    }
}

/// A stuck worker kept the task in sight; whoever takes it up again takes it out of its hands.
pub(super) fn release_stuck(d: &mut Draft, id: &TaskId, taker: &WorkerName) -> Ruled {
    let stuck =
        d.world.worker_of(id).filter(|worker| worker.name != *taker).map(|worker| worker.name.clone());
    match stuck {
        Some(name) => {
            d.move_worker(&name, worker::Event::Released { reason: ReleaseReason::Taken }).map(drop)
        }
        None => Ok(()),
    }
}

/// Resumes the run that was left open, or starts a new one in the same session.
pub(super) fn take_run(
    d: &mut Draft,
    id: &TaskId,
    agent: &machines::names::AgentName,
    holder: Holder,
) -> Ruled {
    if let Some(open) = d.world.run_of(id).filter(|run| run.is_open()) {
        let (run, next_max_turns) = (open.id.clone(), open.next_max_turns);
        let resumable = matches!(open.state(), run::State::Paused)
            || open.machine.inner().last_error.as_ref().is_some_and(|error| error.recoverable);
        if resumable && open.agent == *agent {
            d.emit(RunTaken { id: run.clone(), holder });
            if next_max_turns.is_some() {
                d.emit(TurnsRaised { id: run.clone(), to: None });
            }
            d.step_run(&run, run::Event::Resume { feedback: None, input: None, max_turns: next_max_turns })?;
            return Ok(());
        }
        d.step_run(&run, run::Event::Abort { reason: "another run takes its place".to_owned() })?;
    }
    let config = d.world.config.agent(agent);
    open_run(d, id, agent, holder, config.max_turns, None, "work on the task")
}

pub(super) fn open_run(
    d: &mut Draft,
    id: &TaskId,
    agent: &machines::names::AgentName,
    holder: Holder,
    max_turns: Option<u32>,
    options: Option<&run::Options>,
    prompt: &str,
) -> Ruled {
    let config = d.world.config.agent(agent);
    let number = d.task(id)?.work.runs + 1;
    let run = RunId::new(format!("{id}.{number}")).map_err(|bad| Refusal::field("id", bad.to_string()))?;
    let last = d.world.run_of(id).filter(|last| last.agent == *agent && last.holder == holder);
    let after_completed = matches!(holder, Holder::Outside(_))
        && last.is_some_and(|last| last.state() == run::State::Completed);
    d.emit(RunOpened {
        after_completed,
        id: run.clone(),
        task: id.clone(),
        agent: agent.clone(),
        holder,
        max_turns: run::turn_limit(max_turns, d.world.config.max_turns, config.kind),
        allowed_tools: config.allowed_tools.clone(),
    });
    let start = run::Event::Start {
        task_id: SmolStr::new(id.as_str()),
        prompt: prompt.to_owned(),
        options: options.cloned(),
    };
    d.step_run(&run, start).map(drop)
}
