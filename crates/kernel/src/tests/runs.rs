//! What people do with runs, and what an agent outside is answered.

use super::commands::agent;
use super::table::*;
use crate::config::Role;
use crate::{Actor, Ask, Reply};
use machines::names::{AgentName, RunId};
use machines::run::{self, PauseReason, ToolCall};
use machines::task::{self, Payload, Status};

fn of_run(id: &str, event: run::Event) -> Ask {
    Ask::RunEvent { run: RunId::new(id).unwrap(), event }
}

fn pause() -> run::Event {
    run::Event::Pause { reason: PauseReason::UserInput, context: None }
}

fn resume(max_turns: Option<u32>) -> run::Event {
    run::Event::Resume { feedback: Some("go on".to_owned()), input: None, max_turns }
}

fn outsider() -> Actor {
    agent("outsider", Role::Specialist)
}

fn open() -> Ask {
    Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None }
}

fn step(turn: u32) -> run::Event {
    let calls: Vec<ToolCall> = vec![call("Edit", u64::from(turn))];
    run::Event::Step { turn, tool_calls: calls, output: None, usage: None, marks: Vec::new() }
}

/// A task that an agent outside has begun; its run may take two turns.
fn outside() -> Table {
    let mut table = check(Table::new(config()), "ticket t1");
    let assign = Payload { assignee_ids: Some(vec!["outsider".into()]), ..Payload::default() };
    table.move_task(ann(), "t1", Status::Assigned, assign).unwrap();
    let plan = task::WorkPlan::new(["look", "change", "test"]);
    let plan = Payload { work_plan: Some(plan), ..Payload::default() };
    table.move_task(outsider(), "t1", Status::InProgress, plan).unwrap();
    table.tell(outsider(), open()).unwrap();
    table
}

fn tell(table: &mut Table, event: run::Event) -> Result<Reply, crate::Refusal> {
    table.tell(outsider(), of_run("t1.1", event))
}

/// Escalated: the agent is stopped, the next free worker takes the run up again, with the limit that was said.
#[test]
fn a_worker_s_run_that_a_person_pauses_stops_and_goes_on_when_they_resume_it() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\ntree\nturn");
    table.ann(of_run("t1.1", pause())).unwrap();
    let mut table =
        check(table, "ended -> task t1 NEEDS_APPROVAL, run t1.1 paused, worker A idle, asked start_step 0");
    table.ann(of_run("t1.1", resume(Some(7)))).unwrap();
    let table = check(table, "tree -> task t1 IN_PROGRESS, run t1.1 running, asked start_step 1");
    assert_eq!(table.world.run(&RunId::new("t1.1").unwrap()).unwrap().machine.inner().max_turns, 7);
    let step = table.effect("start_step", "t1").unwrap();
    let told = format!("{:?}", table.world.effects[&step]);
    assert!(told.contains("A person paused you") && told.contains("go on"), "{told}");
}

/// A run that has not had its first turn cannot pause: another one goes on in its session.
#[test]
fn a_run_that_is_paused_before_its_first_turn_is_followed_by_another() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\ntree");
    table.ann(of_run("t1.1", pause())).unwrap();
    let mut table = check(table, "ended -> task t1 NEEDS_APPROVAL, run t1.1 idle, worker A idle");
    table.ann(of_run("t1.1", resume(None))).unwrap();
    check(table, "tree -> run t1.2 starting, task t1 IN_PROGRESS, asked start_step 1");
}

/// Restored: whoever resumes a run that waits for its service has it tried at once.
#[test]
fn a_suspended_run_is_tried_at_once_when_a_person_resumes_it() {
    let mut table =
        check(Table::new(config()), "ticket t1\nfleet 1\ntree\nturn\noutage -> run t1.1 suspended");
    table.ann(of_run("t1.1", resume(None))).unwrap();
    check(table, "turn -> run t1.1 running");
}

/// TakenOut: what is in the tree is saved, the worker is free, and nobody goes on before a person says so.
#[test]
fn a_run_that_a_person_aborts_saves_its_work_and_blocks_its_task() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\ntree\nturn");
    table.ann(of_run("t1.1", run::Event::Abort { reason: "enough".to_owned() })).unwrap();
    check(
        table,
        "ended -> task t1 BLOCKED (manual), run t1.1 idle, worker A idle, asked save_work 1
         saved -> task t1 BLOCKED (manual)",
    );
}

/// A yes to a call or to money is never a by-product.
#[test]
fn resuming_a_run_answers_no_question_about_a_call() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\ntree\nasks t1 git push");
    let refusal = table.ann(of_run("t1.1", resume(None))).unwrap_err();
    assert_eq!(refusal.code, "AGENT_NOT_RUNNING");
    assert_eq!(refusal.next.len(), 2, "both answers are offered");
    assert_eq!(table.stands("task t1"), "task t1 NEEDS_APPROVAL");
}

#[test]
fn a_run_at_its_turn_limit_is_resumed_with_more_turns_than_it_has() {
    let limited = Table::with(|config| {
        config.agents.values_mut().for_each(|agent| agent.max_turns = Some(2));
    });
    let mut table = check(limited, "ticket t1\nfleet 1\ntree\nturn\nturn\nended -> run t1.1 paused");
    assert_eq!(table.ann(of_run("t1.1", resume(Some(2)))).unwrap_err().status, 422);
    table.ann(of_run("t1.1", resume(Some(5)))).unwrap();
    check(table.clone(), "tree -> run t1.1 running, task t1 IN_PROGRESS");
    assert_eq!(table.world.run(&RunId::new("t1.1").unwrap()).unwrap().machine.inner().max_turns, 5);
}

/// Retried: what failed is tried again at once, and the agent hears what the person said.
#[test]
fn a_run_in_error_is_tried_again_when_a_person_resumes_it() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\ntree\nturn\nfails -> run t1.1 error");
    table.ann(of_run("t1.1", resume(None))).unwrap();
    let mut table = check(table, "turn -> run t1.1 running");
    assert_eq!(table.ann(of_run("t1.1", resume(None))).unwrap_err().code, "AGENT_NOT_RUNNING");
}

/// Claimed: by a worker of the agent that was named, which is made where there is none, whether a fleet runs or not.
#[test]
fn a_person_starts_a_run_of_an_agent_on_a_task() {
    let start =
        |agent: &str, id: &str| Ask::StartRun { agent: AgentName::new(agent).unwrap(), task: task(id) };
    let mut table = check(Table::new(config()), "ticket t1\nticket t2\nspawn A");
    let run = table.ann(start("intern", "t1")).unwrap();
    assert_eq!(run.id.as_deref(), Some("t1.1"));
    assert_eq!(table.world.run_of(&task("t1")).unwrap().agent.as_str(), "intern");
    let mut table = check(table, "tree -> worker A idle, worker B working, task t1 IN_PROGRESS");
    table.ann(start("coder", "t2")).unwrap();
    assert_eq!(table.stands("worker A"), "worker A ready", "the idle one of that agent takes it");
    assert_eq!(table.ann(start("coder", "t2")).unwrap_err().code, "AGENT_ALREADY_RUNNING");
    assert_eq!(table.ann(start("coder", "t9")).unwrap_err().code, "TASK_NOT_FOUND");
    assert_eq!(table.ann(start("nobody", "t1")).unwrap_err().code, "AGENT_ALREADY_RUNNING");
    check(table, "fleet 1 -> worker B working");
}

/// The report that met the limit may come again: its answer was lost, and the lease has ended since.
#[test]
fn the_same_step_again_is_answered_as_before() {
    let mut table = outside();
    let first = tell(&mut table, step(1)).unwrap();
    let before = table.world.clone();
    assert_eq!(tell(&mut table, step(1)).unwrap(), first);
    assert_eq!(table.world, before, "nothing is done twice");
    let limit = tell(&mut table, step(2)).unwrap();
    assert_eq!(limit.code.as_deref(), Some("AGENT_TURN_LIMIT_EXCEEDED"));
    assert_eq!(tell(&mut table, step(2)).unwrap(), limit);
    assert_eq!(tell(&mut table, step(3)).unwrap_err().code, "AGENT_NOT_RUNNING", "a person decides");
}

/// TurnLimitContinued: nobody else takes an outside agent's run up, so the decision resumes it.
#[test]
fn an_agent_outside_goes_on_in_its_run_when_a_person_lets_it_continue() {
    let mut table = outside();
    tell(&mut table, step(1)).unwrap();
    tell(&mut table, step(2)).unwrap();
    let mut table = check(table, "yes t1 3 -> task t1 IN_PROGRESS, run t1.1 running");
    tell(&mut table, step(3)).unwrap();
    assert_eq!(table.world.run(&RunId::new("t1.1").unwrap()).unwrap().machine.inner().max_turns, 5);
    table.ann(of_run("t1.1", pause())).unwrap();
    assert_eq!(tell(&mut table, step(4)).unwrap_err().code, "AGENT_NOT_RUNNING");
    table.ann(of_run("t1.1", resume(None))).unwrap();
    tell(&mut table, step(4)).unwrap();
    check(table, "silence t1 -> task t1 IN_PROGRESS, run t1.1 error");
}

/// TurnLimitCompleted: what it made it hands in itself, as there is no tree of ours to look at.
#[test]
fn an_agent_outside_hands_its_work_in_when_a_person_calls_it_complete() {
    let mut table = outside();
    tell(&mut table, step(1)).unwrap();
    tell(&mut table, step(2)).unwrap();
    let mut table = check(table, "complete t1 -> task t1 IN_PROGRESS, run t1.1 completed, asked run_gate 0");
    let machine = &table.world.task(&task("t1")).unwrap().machine;
    let payload = Payload { assignee_ids: None, ..super::commands::whole(machine) };
    table.move_task(outsider(), "t1", Status::Review, payload).unwrap();
}

/// The source document's codes, each for what it says.
#[test]
fn each_refusal_of_a_run_has_its_code() {
    let mut table = outside();
    let nowhere = Ask::OpenRun { task: task("t9"), prompt: "do it".to_owned(), options: None };
    assert_eq!(table.tell(outsider(), nowhere).unwrap_err().code, "TASK_NOT_FOUND");
    let empty = Ask::OpenRun { task: task("t9"), prompt: " ".to_owned(), options: None };
    assert_eq!(table.tell(outsider(), empty).unwrap_err().status, 422, "the report is looked at first");
    assert_eq!(table.tell(outsider(), open()).unwrap_err().code, "AGENT_ALREADY_RUNNING");
    let error = run::AppError { code: "E".into(), message: "broke".to_owned(), status: 500, details: None };
    tell(&mut table, run::Event::Error { error, recoverable: false }).unwrap();
    assert_eq!(tell(&mut table, resume(None)).unwrap_err().code, "AGENT_EXECUTION_ERROR");
    tell(&mut table, run::Event::Abort { reason: "enough".to_owned() }).unwrap();
    assert_eq!(tell(&mut table, resume(None)).unwrap_err().code, "AGENT_NOT_RUNNING");
    let complete = run::Event::Complete { result: "x".to_owned(), diff: None, turn_count: 1 };
    assert_eq!(tell(&mut table, complete).unwrap_err().code, "AGENT_NO_AVAILABLE_TASK");
}
