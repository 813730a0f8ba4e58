//! The people around a fleet: one who decides what waits for a person, one who disturbs, and an agent that runs
//! outside and reports its own life.

use super::Fault;
use super::played::Work;
use super::stage::{Item, Stage, outside_agent, task_id};
use kernel::command::{Ask, Command, Decision, NewTask, Presence, TokenFor};
use kernel::config;
use kernel::line_comment::LineComment;
use kernel::words::{DiffSide, Raise};
use kernel::{Actor, Millis};
use machines::names::{RunId, TaskId, WorkerName};
use machines::run::{self, ToolCall, ToolStatus};
use machines::task::{self, BlockReason, Payload, Status, TicketStatus};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;

/// Times that the person looks; a life ends.
const LOOKS_MAX: u64 = 150;

fn person() -> Actor {
    Actor::Human(SmolStr::new_static("ann"))
}

/// What a person asks may be refused; that is their business.
fn ask(stage: &mut Stage, ask: Ask) -> Result<bool, String> {
    Ok(stage.submit(person(), ask, None)?.is_ok())
}

/// Looks at what waits for a person and decides some of it.
pub fn look(stage: &mut Stage) -> Result<(), String> {
    if stage.has(Fault::PersonNever) {
        stage.hit(Fault::PersonNever);
        return Ok(());
    }
    stage.looks += 1;
    if stage.looks > LOOKS_MAX {
        return Ok(());
    }
    decide_approvals(stage)?;
    decide_proposals(stage)?;
    answer_questions(stage)?;
    if stage.has(Fault::Architect) {
        super::rooms::help_architect(stage)?;
    }
    review(stage)?;
    unblock(stage)?;
    let late = stage.has(Fault::PersonLate);
    if late {
        stage.hit(Fault::PersonLate);
    }
    let minutes: Millis = if late { stage.random.between(60, 1200) } else { stage.random.between(2, 20) };
    stage.later(minutes * 60_000, Item::Person);
    Ok(())
}

fn decide_approvals(stage: &mut Stage) -> Result<(), String> {
    let open: Vec<_> = stage.world.approvals.values().filter(|a| a.decided.is_none()).cloned().collect();
    for approval in open {
        let approve = !stage.random.once_in(5);
        let task = approval.task.as_ref().and_then(|task| stage.world.task(task));
        let codeless = task.is_some_and(|task| !task.has_code());
        let more = stage.random.once_in(2).then(|| stage.random.below(3_000_000) + 1);
        let raise = more.and_then(|more| match approval.cause {
            task::ApprovalCause::TurnLimit => Some(Raise::Turns(u32::try_from(more).unwrap_or(u32::MAX))),
            task::ApprovalCause::Budget => Some(Raise::Money(more)),
            _ => None,
        });
        let decision = Decision {
            approve,
            note: if stage.random.once_in(2) { "go on".to_owned() } else { String::new() },
            to: match (approve, stage.random.below(4)) {
                (true, 0) if codeless => Some(Status::Done),
                (false, 0) if stage.has(Fault::Cancel) => Some(Status::Canceled),
                _ => None,
            },
            raise,
            complete: approve && approval.cause == task::ApprovalCause::TurnLimit && stage.random.once_in(3),
            always: approve && approval.call.is_some() && stage.random.once_in(4),
        };
        ask(stage, Ask::Decide { id: approval.id.clone(), decision })?;
    }
    Ok(())
}

fn decide_proposals(stage: &mut Stage) -> Result<(), String> {
    let waits = |task: &&std::sync::Arc<kernel::world::Task>| task.is_waiting_proposal() && !task.is_final();
    let waiting: Vec<TaskId> = stage.world.tasks.values().filter(waits).map(|task| task.id.clone()).collect();
    for id in waiting {
        match stage.random.below(3) {
            0 => ask(stage, Ask::MoveTask { id, to: Status::Canceled, payload: Box::default() })?,
            _ => ask(stage, Ask::AcceptTask { id })?,
        };
    }
    Ok(())
}

fn answer_questions(stage: &mut Stage) -> Result<(), String> {
    let open = |asked: &&std::sync::Arc<kernel::world::Request>| {
        stage.world.is_open_request(asked) && !stage.world.is_queued(&asked.id) && !asked.for_person
    };
    let open: Vec<_> = stage.world.requests.values().filter(open).map(|asked| asked.id.clone()).collect();
    for id in open {
        ask(stage, Ask::AnswerRequest { id, text: "this way".to_owned() })?;
    }
    Ok(())
}

/// An agent at work speaks for itself: a plan, a question, an approval, or that it is done.
pub fn speak(stage: &mut Stage, run: &RunId) -> Result<(), String> {
    let Some(name) = stage.world.run(run).map(|run| run.agent.clone()) else { return Ok(()) };
    let role = stage.world.config.agent(&name).role;
    let run = run.clone();
    let said = match stage.random.below(5) {
        0 => Ask::SubmitPlan { run, plan: ["look", "write", "test"].map(str::to_owned).to_vec() },
        1 => Ask::ClaimDone { run, summary: None },
        2 => {
            let (tool, argument) = (SmolStr::new_static("Bash"), "deploy".to_owned());
            Ask::AskApproval { run, tool, argument, input: Default::default() }
        }
        3 => {
            let kind = kernel::words::RequestKind::Question;
            Ask::MakeRequest { kind, task: None, run: Some(run), text: "which way?".to_owned() }
        }
        _ => return Ok(()),
    };
    let actor = Actor::Agent { name, role };
    holds_to_its_token(stage, &actor, &said)?;
    let _ = stage.submit(actor, said, None)?;
    Ok(())
}

/// With the token of its run an agent says the same as without, and reaches no other task, no channel and not its presence.
fn holds_to_its_token(stage: &Stage, actor: &Actor, said: &Ask) -> Result<(), String> {
    let (Ask::SubmitPlan { run, .. }
    | Ask::ClaimDone { run, .. }
    | Ask::AskApproval { run, .. }
    | Ask::MakeRequest { run: Some(run), .. }) = said
    else {
        return Ok(());
    };
    let asked = |token_for: Option<TokenFor>, ask: &Ask| {
        let (actor, ask) = (actor.clone(), ask.clone());
        kernel::handle(&stage.world, &Command { id: 0, at: stage.now(), actor, token_for, key: None, ask })
    };
    let token = || Some(TokenFor::Run(run.clone()));
    if asked(None, said).is_ok() != asked(token(), said).is_ok() {
        return Err(format!("the token of {run} changes what its agent may say: {said:?}"));
    }
    let own = stage.world.run(run).map(|run| run.task.clone());
    let blocks = |id: &TaskId| Ask::MoveTask {
        id: id.clone(),
        to: Status::Blocked,
        payload: Box::new(Payload { reason: Some(BlockReason::Manual), ..Payload::default() }),
    };
    let others = stage.world.tasks.keys().filter(|id| Some(*id) != own.as_ref()).map(blocks);
    let speaks = stage
        .world
        .channels
        .keys()
        .map(|channel| Ask::Post { channel: channel.clone(), text: "not mine".to_owned() });
    let leaves = stage
        .world
        .run(run)
        .map(|run| Ask::Presence { agent: run.agent.clone(), what: Presence::Disconnect });
    for stray in others.chain(speaks).chain(leaves) {
        match asked(token(), &stray) {
            Err(refusal) if refusal.status == 403 => {}
            other => return Err(format!("the token of {run} was let into {stray:?}: {:?}", other.is_ok())),
        }
    }
    Ok(())
}

/// An agent at work finds that there is more to do. How much of it is wanted is not its to say.
pub fn propose(stage: &mut Stage, run: &RunId) -> Result<(), String> {
    let name = stage.world.config.fleet.agent.clone();
    let role = stage.world.config.agent(&name).role;
    let id = task_id(1000 + stage.world.tasks.len() as u32);
    let title = "more to do".to_owned();
    let new = NewTask { id: Some(id.clone()), title, run: Some(run.clone()), ..NewTask::default() };
    if stage.submit(Actor::Agent { name, role }, Ask::AddTask(new), None)?.is_ok() {
        stage.played.works.insert(id, Work::plain());
    }
    Ok(())
}

fn review(stage: &mut Stage) -> Result<(), String> {
    let waiting: Vec<_> = stage
        .world
        .tasks
        .values()
        .filter(|task| task.status() == Status::Review && task.review.approved.is_none())
        .map(|task| (task.id.clone(), task.work.place.as_ref().and_then(|place| place.tip.clone())))
        .collect();
    for (id, tip) in waiting {
        // Someone who asks for changes again and again is part of a life too.
        let picky = stage.has(Fault::ReviewByPerson) && stage.plan.seed % 4 == 1;
        if stage.has(Fault::ReviewByPerson) {
            stage.hit(Fault::ReviewByPerson);
        }
        if picky || stage.random.once_in(6) {
            // By comments on lines, or in a few words: both send the work back.
            if stage.plan.seed.is_multiple_of(2) {
                let comment = LineComment {
                    path: "README.md".to_owned(),
                    side: DiffSide::New,
                    line: 1,
                    end_line: 1,
                    text: "please mend this".to_owned(),
                    tip: tip.clone(),
                };
                ask(stage, Ask::KeepDraft { id: id.clone(), draft: None, comment })?;
                ask(stage, Ask::SendRound { id, tip, note: String::new() })?;
            } else {
                let payload = Payload { feedback: Some("please mend this".to_owned()), ..Payload::default() };
                ask(stage, Ask::MoveTask { id, to: Status::InProgress, payload: Box::new(payload) })?;
            }
        } else {
            ask(stage, Ask::Approve { id, tip, note: String::new() })?;
        }
    }
    Ok(())
}

fn unblock(stage: &mut Stage) -> Result<(), String> {
    let stuck: Vec<WorkerName> = stage
        .world
        .workers
        .values()
        .filter(|worker| worker.machine.status == worker::State::Stuck)
        .map(|worker| worker.name.clone())
        .collect();
    for name in stuck {
        match stage.random.below(6) {
            // Left as it is: someone else may take its task up.
            4 => continue,
            5 => {
                ask(stage, Ask::Clean { worker: name })?
                    && ask(stage, Ask::StartFleet { workers: stage.plan.workers })?
            }
            0 => ask(stage, Ask::Kill { worker: name })?,
            3 => {
                let task = stage.world.worker(&name).and_then(|worker| worker.machine.task.clone());
                match task {
                    Some(id) => ask(stage, Ask::RestartTask { id, note: None })?,
                    None => continue,
                }
            }
            1 => ask(stage, Ask::Cleanup { worker: name, force: false })?,
            _ => ask(stage, Ask::Retry { worker: name })?,
        };
    }
    let blocked: Vec<TaskId> = stage
        .world
        .tasks
        .values()
        .filter(|task| task.status() == Status::Blocked)
        .map(|task| task.id.clone())
        .collect();
    for id in blocked {
        let idle = stage.world.idle.iter().next().cloned();
        match (stage.random.below(3), idle) {
            (0, Some(worker)) => {
                // Whoever does not say what was unclear is told to.
                let clarification = (!stage.random.once_in(3)).then(|| "it must be blue".to_owned());
                ask(stage, Ask::Assign { worker, task: id, clarification })?
            }
            (1, _) => {
                ask(stage, Ask::RetryTask { id: id.clone() })?
                    || ask(stage, Ask::RestartTask { id, note: Some("smaller".to_owned()) })?
            }
            _ => {
                let payload =
                    Payload { clarification: Some("do it like this".to_owned()), ..full_payload(stage) };
                let to = if stage.random.once_in(4) { Status::Assigned } else { Status::InProgress };
                ask(stage, Ask::MoveTask { id, to, payload: Box::new(payload) })?
            }
        };
    }
    Ok(())
}

/// Everything that a move could require.
fn full_payload(stage: &Stage) -> Payload {
    Payload {
        assignee_ids: Some(vec![SmolStr::new(stage.world.config.fleet.agent.as_str())]),
        work_plan: Some(task::WorkPlan::new(["look", "change", "test"])),
        deliverable: Some(task::Deliverable { content: "by hand".to_owned(), artifacts: Vec::new() }),
        review_checklist: Some(task::Checklist {
            task_type: task::TaskType::Feature,
            items: vec![task::ChecklistItem { item: "looked at".to_owned(), answer: Some("yes".to_owned()) }],
        }),
        feedback: Some("once more".to_owned()),
        reason: Some(BlockReason::Manual),
        cause: Some(task::ApprovalCause::Escalation),
        approval: Some(task::Completion {
            approval_id: None,
            approved_by: SmolStr::new_static("ann"),
            approved_at: stage.now(),
            decision_note: "fine".to_owned(),
        }),
        decision: Some("so be it".to_owned()),
        ..Payload::default()
    }
}

pub fn disturb(stage: &mut Stage, fault: Fault) -> Result<(), String> {
    let number = stage.random.below(u64::from(stage.plan.tasks)) as u32 + 1;
    let id = task_id(number);
    match fault {
        Fault::ClockJump => {
            // Forward by up to an hour, or back by a few minutes.
            let jump = if stage.random.once_in(3) {
                -stage.random.between(1, 300_000)
            } else {
                stage.random.between(1, 3_600_000)
            };
            stage.clock_ahead += jump;
        }
        // The lid is shut for a night: the clock that people read goes on, the one that timers wait by stands still.
        Fault::HostSleep => {
            stage.clock_ahead += 8 * 3_600_000;
            stage.slept_in_life += 8 * 3_600_000;
        }
        Fault::Cancel => {
            ask(stage, Ask::MoveTask { id, to: Status::Canceled, payload: Box::default() })?;
        }
        Fault::Kill => {
            let all: Vec<_> = stage.world.workers.keys().cloned().collect();
            // The gate takes a moment: whoever waits for it is not often met by chance.
            let at_gate =
                |worker: &std::sync::Arc<kernel::world::Worker>| worker.machine.status == worker::State::Done;
            let done: Vec<_> =
                stage.world.workers.values().filter(|w| at_gate(w)).map(|w| w.name.clone()).collect();
            // Whoever waits for the gate cannot be killed; the other two end it there.
            let (from, ways) = if done.is_empty() { (&all, 4) } else { (&done, 2) };
            if let Some(worker) = stage.random.pick(from).cloned() {
                match stage.random.below(ways) {
                    0 => ask(stage, Ask::Cleanup { worker, force: true })?,
                    1 => {
                        ask(stage, Ask::Clean { worker })?;
                        ask(stage, Ask::StartFleet { workers: stage.plan.workers })?
                    }
                    _ => ask(stage, Ask::Kill { worker })?,
                };
            }
        }
        Fault::OddMoves => odd_move(stage, &id)?,
        Fault::TicketClosed | Fault::TicketChanged => {
            let ticket = stage.world.tickets.get(id.as_str()).cloned();
            let Some(ticket) = ticket.filter(|ticket| ticket.status != TicketStatus::Closed) else {
                return Ok(());
            };
            let closed = fault == Fault::TicketClosed;
            let task = ticket.task.as_ref().and_then(|task| stage.world.task(task)).cloned();
            let Some(task) = task else { return Ok(()) };
            let body = format!("{} and mind the edge", task.body);
            let status = if closed { "closed" } else { "open" };
            stage.ticket(
                &id,
                status,
                task.priority,
                task.depends_on.clone(),
                if closed { &task.body } else { &body },
                true,
            )?;
            if closed && stage.random.once_in(2) {
                // Opened again: a new task, linked to the old, where the old one is closed for good.
                if matches!(stage.world.task(&id).map(|task| task.status()), Some(Status::Canceled)) {
                    stage.ticket(&id, "open", 2, Vec::new(), "again", true)?;
                }
            }
        }
        Fault::TicketGone => {
            ask(stage, Ask::MissTicket { id: id.clone() })?;
            let minutes = stage.random.between(1, 30);
            stage.later(minutes * 60_000, Item::TicketBack(id));
        }
        // Struck at recovery, not here.
        _ => {}
    }
    Ok(())
}

/// The file stands where it was, and says what it said.
pub fn ticket_back(stage: &mut Stage, id: &TaskId) -> Result<(), String> {
    let Some(ticket) = stage.world.tickets.get(id.as_str()).cloned() else { return Ok(()) };
    let Some(task) = ticket.task.as_ref().and_then(|task| stage.world.task(task)).cloned() else {
        return Ok(());
    };
    if ticket.status == TicketStatus::Closed {
        return Ok(());
    }
    stage.ticket(id, "open", task.priority, task.depends_on.clone(), &task.body, true)
}

/// Whatever a person could think of.
fn odd_move(stage: &mut Stage, id: &TaskId) -> Result<(), String> {
    let run = stage.world.task(id).and_then(|task| task.work.run.clone());
    let agent = stage.world.config.fleet.agent.clone();
    match (stage.random.below(17), run) {
        (16, _) => {
            ask(stage, Ask::StartRun { agent, task: id.clone() })?;
        }
        (15, _) => {
            let new = NewTask { try_of: Some(id.clone()), ..NewTask::default() };
            ask(stage, Ask::AddTask(new))?;
        }
        (14, _) => {
            let landed = |task: &&std::sync::Arc<kernel::world::Task>| task.landing.landed.is_some();
            let Some(id) = stage.world.tasks.values().find(landed).map(|task| task.id.clone()) else {
                return odd_move(stage, id);
            };
            let by = kernel::next_task_id(&stage.world);
            ask(stage, Ask::UndoTask { id, by, tip: SmolStr::new_static("reverted") })?;
        }
        (12, _) => {
            ask(stage, Ask::RestartTask { id: id.clone(), note: None })?;
        }
        (13, _) => {
            ask(stage, Ask::RetryTask { id: id.clone() })?;
        }
        (0, Some(run)) => {
            let event = run::Event::Pause { reason: run::PauseReason::UserInput, context: None };
            ask(stage, Ask::RunEvent { run, event })?;
        }
        (1, Some(run)) => {
            let event =
                run::Event::Resume { feedback: Some("go on".to_owned()), input: None, max_turns: None };
            ask(stage, Ask::RunEvent { run, event })?;
        }
        (2, Some(run)) => {
            let event = run::Event::Abort { reason: "enough".to_owned() };
            ask(stage, Ask::RunEvent { run, event })?;
        }
        (3, _) => {
            ask(stage, Ask::StopFleet)?;
            ask(stage, Ask::Comment { id: id.clone(), text: "stopped for a moment".to_owned() })?;
            ask(stage, Ask::StartFleet { workers: stage.plan.workers })?;
        }
        (4, _) => {
            let on = task_id(stage.random.below(u64::from(stage.plan.tasks)) as u32 + 1);
            ask(stage, Ask::AddDependency { id: id.clone(), on: on.clone() })?;
            ask(stage, Ask::RemoveDependency { id: id.clone(), on })?;
        }
        (5, _) => {
            let agent = Some((stage.random.below(2) == 0).then(outside_agent));
            ask(
                stage,
                Ask::EditTask {
                    id: id.clone(),
                    title: None,
                    body: Some("changed".to_owned()),
                    priority: Some(0),
                    plan: None,
                    reviewer: Some(SmolStr::new_static("rex")),
                    agent,
                },
            )?;
        }
        (6, _) => {
            // A reviewer that is an agent asks for changes; a lead finishes where policy allows.
            let rex = Actor::Agent {
                name: machines::names::AgentName::new("rex").expect("a constant"),
                role: config::Role::Lead,
            };
            let payload = Payload { feedback: Some("not yet".to_owned()), ..Payload::default() };
            let _ = stage.submit(
                rex.clone(),
                Ask::MoveTask { id: id.clone(), to: Status::InProgress, payload: Box::new(payload) },
                None,
            )?;
            let _ = stage.submit(
                rex,
                Ask::Approve { id: id.clone(), tip: None, note: "fine".to_owned() },
                None,
            )?;
        }
        (7, _) => {
            let lead = Actor::Agent { name: agent, role: config::Role::Lead };
            let payload = full_payload(stage);
            let to = *stage.random.pick(Status::ALL).expect("there are statuses");
            let _ =
                stage.submit(lead, Ask::MoveTask { id: id.clone(), to, payload: Box::new(payload) }, None)?;
        }
        _ => {
            let asks = stage.world.task(id).is_some_and(|task| task.status() == Status::NeedsApproval);
            let to = match asks && stage.random.once_in(2) {
                // The rarest ways out, which most seeds would never find.
                true => *stage
                    .random
                    .pick(&[Status::Done, Status::Inbox, Status::Review])
                    .expect("there are three"),
                false => *stage.random.pick(Status::ALL).expect("there are statuses"),
            };
            if to != Status::Canceled || stage.random.once_in(4) {
                let payload = full_payload(stage);
                ask(stage, Ask::MoveTask { id: id.clone(), to, payload: Box::new(payload) })?;
            }
        }
    }
    let again = stage.random.between(10_000, 400_000);
    if stage.random.below(5) > 0 {
        stage.later(again, Item::Disturb(Fault::OddMoves));
    }
    Ok(())
}

/// An agent that Adjutant did not launch: it is given a task, reports its turns, and hands it in, or goes silent.
pub fn outside_agent_acts(stage: &mut Stage, step: u32) -> Result<(), String> {
    let agent = outside_agent();
    let actor = Actor::Agent { name: agent.clone(), role: config::Role::Specialist };
    // Some are connected and some are not; one that was taken for gone comes again.
    let what = match (stage.world.agents.contains_key(&agent), stage.random.below(10)) {
        (false, 0..4) => Some(Presence::Connect),
        (true, 0) => Some(Presence::Disconnect),
        (true, _) => Some(Presence::Heartbeat),
        (false, _) => None,
    };
    if let Some(what) = what {
        let _ = stage.submit(actor.clone(), Ask::Presence { agent: agent.clone(), what }, None)?;
    }
    let mine = stage
        .world
        .tasks
        .values()
        .find(|task| task.machine.assignee_ids.iter().any(|id| id == agent.as_str()) && !task.is_final())
        .map(|task| (task.id.clone(), task.work.run.clone(), task.status()));
    match mine {
        None => {
            let free = stage
                .world
                .tasks
                .values()
                .find(|task| task.status() == Status::Inbox)
                .map(|task| task.id.clone());
            let Some(id) = free else { return Ok(()) };
            stage.hit(Fault::OutsideAgent);
            let payload =
                Payload { assignee_ids: Some(vec![SmolStr::new(agent.as_str())]), ..Payload::default() };
            // It claims for itself.
            let _ = stage.submit(
                actor,
                Ask::MoveTask { id, to: Status::Assigned, payload: Box::new(payload) },
                None,
            )?;
        }
        Some((id, _, Status::Assigned)) => {
            let payload = Payload {
                work_plan: Some(task::WorkPlan::new(["look", "change", "test"])),
                ..Payload::default()
            };
            let _ = stage.submit(
                actor.clone(),
                Ask::MoveTask { id: id.clone(), to: Status::InProgress, payload: Box::new(payload) },
                None,
            )?;
            let _ = stage.submit(
                actor,
                Ask::OpenRun { task: id, prompt: "do it".to_owned(), options: None },
                None,
            )?;
        }
        Some((id, Some(run), Status::InProgress)) => {
            let machine = stage.world.run(&run).map(|run| run.machine.inner().clone()).unwrap_or_default();
            let turn = machine.current_turn + 1;
            let event = match (machine.state, stage.random.below(12)) {
                (run::State::Paused | run::State::InError, 0) => {
                    run::Event::Abort { reason: "gives up".to_owned() }
                }
                (run::State::Paused | run::State::InError, _) => {
                    run::Event::Resume { feedback: None, input: None, max_turns: Some(8) }
                }
                (run::State::Idle, _) => {
                    let _ = stage.submit(
                        actor.clone(),
                        Ask::OpenRun { task: id.clone(), prompt: "again".to_owned(), options: None },
                        None,
                    )?;
                    return again(stage, step);
                }
                (run::State::Completed, 0..3) => run::Event::Start {
                    task_id: SmolStr::new(id.as_str()),
                    prompt: "once more".to_owned(),
                    options: None,
                },
                (run::State::Completed, _) => {
                    let payload = Payload {
                        approval: None,
                        reason: None,
                        cause: None,
                        assignee_ids: None,
                        ..full_payload(stage)
                    };
                    let _ = stage.submit(
                        actor,
                        Ask::MoveTask { id, to: Status::Review, payload: Box::new(payload) },
                        None,
                    )?;
                    return again(stage, step);
                }
                (_, 0) => run::Event::Error { error: app_error(), recoverable: true },
                (_, 1) => run::Event::Error { error: app_error(), recoverable: stage.random.once_in(2) },
                (_, 2) => run::Event::Abort { reason: "gives up".to_owned() },
                (_, 3) => run::Event::Pause { reason: run::PauseReason::Confirmation, context: None },
                (_, 4..6) => run::Event::Complete { result: "done".to_owned(), diff: None, turn_count: turn },
                (_, 6) => run::Event::Step {
                    turn,
                    tool_calls: vec![call("Forbidden", turn)],
                    output: None,
                    usage: None,
                    marks: Vec::new(),
                },
                // Turns go on past the limit; the machine says so.
                _ => run::Event::Step {
                    turn,
                    tool_calls: if stage.random.once_in(2) { vec![call("Edit", turn)] } else { Vec::new() },
                    output: None,
                    usage: None,
                    marks: Vec::new(),
                },
            };
            let _ = stage.submit(actor, Ask::RunEvent { run, event }, None)?;
        }
        Some(_) => {}
    }
    again(stage, step)
}

fn again(stage: &mut Stage, step: u32) -> Result<(), String> {
    if step < 120 {
        // Now and then it is silent for longer than its lease.
        let wait = if stage.random.once_in(15) { 400_000 } else { stage.random.between(1_000, 60_000) };
        stage.later(wait, Item::Outside(step + 1));
    }
    Ok(())
}

fn call(tool: &'static str, turn: u32) -> ToolCall {
    ToolCall {
        id: SmolStr::new(format!("o{turn}")),
        tool: SmolStr::new_static(tool),
        input: [("n".to_owned(), serde_json::Value::from(turn))].into_iter().collect(),
        output: None,
        duration: None,
        status: ToolStatus::Pending,
    }
}

fn app_error() -> run::AppError {
    run::AppError { code: SmolStr::new_static("E"), message: "broke".to_owned(), status: 500, details: None }
}
