//! A command taken apart: what it asks for, who may, and which rule or machine it goes to.

use crate::choice::Choice;
use crate::command::*;
use crate::draft::{Draft, Ruled};
use crate::event::*;
use crate::rules;
use crate::words::CommentKind;
use crate::world::{AskedCall, Task};
use crate::{World, authority};
use machines::machine::Caller;
use machines::names::{AgentName, RunId, TaskId, WorkerName};
use machines::task::{self, Status};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;
use std::sync::Arc;

/// Takes a command apart. What moves one machine is done here; the rest is a rule.
pub(crate) fn dispatch(d: &mut Draft, ask: &Ask) -> Result<Result<Reply, Refusal>, Refusal> {
    let actor = d.command.actor.clone();
    authority::check(&d.world, d.command, ask)?;
    let reply = match ask {
        Ask::AddTask(new) => add_task(d, new)?,
        Ask::EditTask { id, title, body, priority, plan, reviewer, agent } => {
            let status = d.task(id)?.status();
            if status.is_final() {
                let message = format!("task `{id}` is {status}; what it says is not changed any more");
                return Err(
                    Refusal::new(409, "CLOSED", message).next([Choice::ReopenTask { task: id.clone() }])
                );
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
        Ask::RequestChanges { id, tip, feedback } => {
            rules::is_at_tip(d, id, tip.as_ref())?;
            let payload = task::Payload { feedback: Some(feedback.clone()), ..task::Payload::default() };
            rules::person_moves(d, id, &actor, Status::InProgress, &payload)?;
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
            d.comment(id, &actor.to_string(), CommentKind::Comment, text.clone());
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
            let name = &name.clone().unwrap_or_else(|| rules::free_name(&d.world));
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
        Ask::StartRun { agent, task } => rules::start_by_person(d, agent, task)?,
        Ask::RunEvent { run, event } => return rules::run_event(d, run, event),

        Ask::SwitchAgent { agent, enabled, reason } => {
            rules::switch_agent(d, agent, *enabled, reason.as_deref())?
        }
        Ask::Presence { agent, what } => rules::presence(d, agent, *what)?,
        Ask::SubmitPlan { run, plan } => {
            check_plan(Some(plan))?;
            rules::submit_plan(d, run, plan)?
        }
        Ask::ClaimDone { run, summary } => rules::claim_done(d, run, summary.as_deref())?,
        Ask::AskApproval { run, tool, argument, input } => {
            let (tool, argument, input) = (tool.clone(), argument.clone(), input.clone());
            rules::ask_approval(d, run, AskedCall { tool, argument, input })?
        }
        Ask::MakeRequest { kind, task, run, text } => {
            rules::make_request(d, *kind, task.as_ref(), run.as_ref(), text)?
        }
        Ask::AnswerRequest { id, text } => rules::answer_request(d, id, text)?,
        Ask::ReceiveAnswer { id } => rules::receive_answer(d, id)?,

        Ask::Configure { config } => {
            let problems = config.problems();
            if !problems.is_empty() {
                return Err(Refusal::new(422, "BAD_CONFIG", problems.join("; "))
                    .hint("the last good configuration stays in force"));
            }
            if **config != *d.world.config {
                d.emit(ConfigChanged { config: config.clone() });
                rules::architect_configured(d)?;
                rules::reconsider(d)?;
                rules::go_on(d)?;
            }
            Reply::default()
        }

        Ask::SeeDisk { full } => {
            if d.world.disk_full != *full {
                d.emit(DiskSeen { full: full.clone(), at: Some(d.at()) });
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

        Ask::MakeChannel { name, config, about } => rules::make_channel(d, name, config, about)?,
        Ask::AbandonRequest { id, reason } => rules::abandon_request(d, id, reason)?,
        Ask::SubmitSpec(new) => rules::submit_spec(d, new)?,
        Ask::ArchitectAnswers { reply, answer } => rules::architect_answers(d, reply, answer)?,
        Ask::RecoverArchitect => rules::recover_architect(d)?,
        Ask::CloseChannel { name } => rules::close_channel(d, name)?,
        Ask::AddMember { channel, agent, times } => rules::add_member(d, channel, agent, *times)?,
        Ask::RemoveMember { channel, agent } => rules::remove_member(d, channel, agent)?,
        Ask::Post { channel, text } => rules::post(d, channel, text)?,
        Ask::Hear { channel, agent } => rules::hear(d, channel, agent)?,
        Ask::TakeTurn { channel, agent, word } => rules::take_turn(d, channel, agent, word)?,
        Ask::DecideInRoom { channel, approve, note } => rules::decide_in_room(d, channel, *approve, note)?,
        Ask::WasAway { since, hosted } => {
            rules::was_away(d, *since, *hosted);
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

pub(crate) fn task_reply(d: &Draft, id: &TaskId) -> Result<Reply, Refusal> {
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
    match plan.iter().any(|bullet| task::is_blank(bullet)) {
        true => Err(Refusal::field("plan", "a step of the plan is empty")),
        false => Ok(()),
    }
}

pub(crate) fn plan_source(actor: &Actor) -> task::PlanSource {
    match actor {
        Actor::Agent { .. } => task::PlanSource::Agent,
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => task::PlanSource::Person,
    }
}

fn add_task(d: &mut Draft, new: &NewTask) -> Result<Reply, Refusal> {
    let first = new.try_of.as_ref().map(|of| first_try(d, of)).transpose()?;
    let new = &match &first {
        Some(first) => as_tried(&d.world, new, first),
        None => new.clone(),
    };
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
        if !status.is_final() {
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
    if let Some(first) = first {
        d.emit(TryAdded { id: id.clone(), of: first.id.clone() });
    }
    if new.agent.is_some() {
        d.emit(AgentWanted { id: id.clone(), agent: new.agent.clone() });
    }
    task_reply(d, &id)
}

/// The first of the tries at a task that is still open.
fn first_try(d: &Draft, of: &TaskId) -> Result<Arc<Task>, Refusal> {
    let task = d.task(of)?;
    let first = d.world.tasks.get(task.try_of.as_ref().unwrap_or(of)).cloned();
    let first = first.ok_or_else(|| Refusal::new(404, "NOT_FOUND", format!("there is no task `{of}`")))?;
    match task.is_final() {
        true => Err(Refusal::new(409, "CLOSED", format!("task `{of}` is {}, for good", task.status()))
            .next([Choice::ReopenTask { task: of.clone() }])),
        false => Ok(first),
    }
}

/// The same work as the first try, where nothing else is said.
fn as_tried(world: &World, new: &NewTask, first: &Task) -> NewTask {
    let said = |text: &str, or: &str| if text.trim().is_empty() { or.to_owned() } else { text.to_owned() };
    let number = world.other_tries(first).count() + 2;
    let named = (number..).filter_map(|number| TaskId::new(format!("{}-try{number}", first.id)).ok());
    NewTask {
        id: new.id.clone().or_else(|| named.take(100).find(|id| world.task(id).is_none())),
        title: said(&new.title, &first.title),
        body: said(&new.body, &first.body),
        task_type: new.task_type.or(Some(first.machine.task_type)),
        priority: new.priority.or(Some(first.priority)),
        plan: new.plan.clone().or_else(|| first.plan.clone()),
        reviewer: new.reviewer.clone().or_else(|| first.machine.reviewer_id.clone()),
        depends_on: if new.depends_on.is_empty() { first.depends_on.clone() } else { new.depends_on.clone() },
        agent: new.agent.clone().or_else(|| first.agent.clone()),
        ..new.clone()
    }
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
        return Err(Refusal::new(409, "EXISTS", message)
            .hint("choose another name")
            .next([Choice::ListWorkers]));
    }
    d.emit(WorkerSpawned { name: name.clone(), agent: agent.clone(), at: d.at(), by_person });
    d.move_worker_by(name, worker::Event::Spawn { name_free: true }, by).map(drop)
}

pub(crate) fn channel_of<'d>(
    d: &'d Draft,
    name: &machines::names::ChannelName,
) -> Result<&'d crate::rooms::Channel, Refusal> {
    d.world
        .channels
        .get(name)
        .map(|channel| channel.as_ref())
        .ok_or_else(|| Refusal::not_found("channel", name).next([Choice::ListChannels]))
}
