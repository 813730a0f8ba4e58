//! What a run's readers are told, read from what the log keeps.

use super::table::*;
use crate::config::Role;
use crate::{Actor, Ask, Event, published};
use machines::names::{AgentName, RunId};
use machines::run::{self, PauseReason, ToolCall, ToolStatus};
use machines::task::{self, Payload, Status};

fn outsider() -> Actor {
    Actor::Agent { name: AgentName::new("outsider").unwrap(), role: Role::Specialist }
}

/// A task that an agent outside has begun to work on.
fn begun() -> Table {
    let mut table = check(Table::new(config()), "ticket t1");
    let assign = Payload { assignee_ids: Some(vec!["outsider".into()]), ..Payload::default() };
    table.move_task(ann(), "t1", Status::Assigned, assign).unwrap();
    let plan = task::WorkPlan::new(["look", "change", "test"]);
    let plan = Payload { work_plan: Some(plan), ..Payload::default() };
    table.move_task(outsider(), "t1", Status::InProgress, plan).unwrap();
    table
}

/// What the log of a commit tells readers, after it was written and read again.
fn told(commit: &crate::Commit) -> Vec<String> {
    let stored = commit.events.iter().map(|event| Event::decode(event.kind(), &event.encode()).unwrap());
    let told = stored.flat_map(|event| published::of(&event));
    told.map(|(run, event)| format!("{run} {}", serde_json::to_string(&event).unwrap())).collect()
}

/// The whole of an outside agent's life, as whoever reads the run's stream sees it.
#[test]
fn a_runs_stream_is_read_from_the_log_alone() {
    let mut table = begun();
    let run = RunId::new("t1.1").unwrap();
    let of_run = |event| Ask::RunEvent { run: run.clone(), event };
    let step = |turn, calls: Vec<ToolCall>| {
        of_run(run::Event::Step {
            turn,
            tool_calls: calls,
            output: Some("said".to_owned()),
            usage: None,
            marks: Vec::new(),
        })
    };
    let ended = ToolCall {
        output: Some("3 lines".to_owned()),
        duration: Some(12.0),
        status: ToolStatus::Complete,
        ..call("Edit", 7)
    };
    let resume = |max_turns| of_run(run::Event::Resume { feedback: None, input: None, max_turns });
    let error = |recoverable| {
        let error =
            run::AppError { code: "E".into(), message: "broke".to_owned(), status: 500, details: None };
        of_run(run::Event::Error { error, recoverable })
    };
    let start =
        |prompt: &str| run::Event::Start { task_id: "t1".into(), prompt: prompt.to_owned(), options: None };
    let life = [
        Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None },
        step(1, vec![ended]),
        of_run(run::Event::Pause { reason: PauseReason::UserInput, context: None }),
        resume(Some(9)),
        step(2, vec![call("Edit", 8)]),
        error(true),
        resume(None),
        of_run(run::Event::Complete { result: "made it".to_owned(), diff: None, turn_count: 2 }),
        of_run(start("again")),
        Ask::RunEvent {
            run: RunId::new("t1.2").unwrap(),
            event: run::Event::Abort { reason: "enough".to_owned() },
        },
    ];
    let told: Vec<String> =
        life.into_iter().flat_map(|ask| told(&table.commit(outsider(), ask, None).unwrap())).collect();
    let expected = r#"
t1.1 {"type":"agent:starting","payload":{"taskId":"t1","sessionId":"t1.1"}}
t1.1 {"type":"state:update","payload":{"status":"starting","turn":0}}
t1.1 {"type":"tool:start","id":"c7","tool":"Edit","input":{"n":7}}
t1.1 {"type":"state:update","payload":{"status":"running","turn":1,"output":"said"}}
t1.1 {"type":"tool:result","id":"c7","tool":"Edit","output":"3 lines","duration":12}
t1.1 {"type":"state:update","payload":{"status":"paused","turn":1}}
t1.1 {"type":"agent:paused","payload":{"reason":"user_input","turn":1}}
t1.1 {"type":"state:update","payload":{"status":"running","turn":1}}
t1.1 {"type":"tool:start","id":"c8","tool":"Edit","input":{"n":8}}
t1.1 {"type":"agent:step","payload":{"turn":2,"output":"said"}}
t1.1 {"type":"agent:error","payload":{"error":"broke","code":"E","recoverable":true}}
t1.1 {"type":"state:update","payload":{"status":"error","turn":2}}
t1.1 {"type":"state:update","payload":{"status":"running","turn":2}}
t1.1 {"type":"tool:result","id":"c8","tool":"Edit","output":"the agent reported no result of this call","duration":0}
t1.1 {"type":"state:update","payload":{"status":"completed","turn":2}}
t1.1 {"type":"agent:completed","payload":{"turnCount":2,"result":"made it"}}
t1.1 {"type":"agent:cleanup","payload":{"status":"completed"}}
t1.2 {"type":"agent:starting","payload":{"taskId":"t1","sessionId":"t1.2"}}
t1.2 {"type":"state:update","payload":{"status":"starting","turn":0}}
t1.2 {"type":"agent:cleanup","payload":{"status":"idle"}}
t1.2 {"type":"state:update","payload":{"status":"idle","turn":0}}"#;
    assert_eq!(told.join("\n"), expected.trim());
}

/// The limit asks a person, and readers hear what it asks; a call that was refused never began.
#[test]
fn the_turn_limit_and_a_refused_call_are_told_as_they_are_stored() {
    let mut table = begun();
    let run = RunId::new("t1.1").unwrap();
    let step = |turn, tool: &str| Ask::RunEvent {
        run: run.clone(),
        event: run::Event::Step {
            turn,
            tool_calls: vec![call(tool, 1)],
            output: None,
            usage: None,
            marks: Vec::new(),
        },
    };
    let open = Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None };
    table.tell(outsider(), open).unwrap();
    let refused = table.commit(outsider(), step(1, "Bash"), None).unwrap();
    assert_eq!(told(&refused), Vec::<String>::new());
    table.tell(outsider(), step(1, "Edit")).unwrap();
    let limit = table.commit(outsider(), step(2, "Edit"), None).unwrap();
    let expected = [
        r#"t1.1 {"type":"tool:start","id":"c1","tool":"Edit","input":{"n":1}}"#,
        r#"t1.1 {"type":"agent:step","payload":{"turn":2}}"#,
        r#"t1.1 {"type":"state:update","payload":{"status":"paused","turn":2}}"#,
        r#"t1.1 {"type":"agent:paused","payload":{"reason":"turn_limit","turn":2}}"#,
        r#"t1.1 {"type":"approval:requested","taskId":"t1","reason":"turn_limit_reached","currentTurn":2,"maxTurns":2}"#,
    ];
    assert_eq!(told(&limit), expected);
}

/// The session of a worker's run, and a suspension that lasted too long, are in no event's input.
#[test]
fn a_run_whose_service_stays_away_tells_its_readers_why() {
    let mut table = check(Table::new(config()), "ticket t1");
    let started = table.commit(Actor::System, Ask::StartFleet { workers: 1 }, None).unwrap();
    let session = table.world.task(&task("t1")).unwrap().work.place.clone().unwrap().session;
    let starting =
        format!(r#"t1.1 {{"type":"agent:starting","payload":{{"taskId":"t1","sessionId":"{session}"}}}}"#);
    assert_eq!(told(&started)[0], starting);
    let mut table = check(table, "tree\nturn\noutage -> run t1.1 suspended");
    let (timer, due) = table
        .world
        .timers
        .iter()
        .find(|(timer, _)| matches!(timer, crate::Timer::Suspension { .. }))
        .map(|(_, id)| (id.clone(), table.world.effects[id].due().unwrap()))
        .unwrap();
    table.now = due;
    let outcome = crate::Outcome { effect: timer, what: crate::Happened::TimerDue };
    let expired = table.commit(Actor::System, Ask::Outcome(outcome), None).unwrap();
    let expected = [
        r#"t1.1 {"type":"agent:error","payload":{"error":"service model stayed unavailable","code":"SERVICE_UNAVAILABLE","recoverable":true}}"#,
        r#"t1.1 {"type":"state:update","payload":{"status":"error","turn":1}}"#,
    ];
    assert_eq!(told(&expired), expected);
}
