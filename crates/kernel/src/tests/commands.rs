//! What is asked by whom: roles, keys, dependencies, texts.

use super::table::*;
use crate::command::*;
use crate::config::Role;
use crate::words::StepEnding;
use crate::{Actor, Commit, handle};
use machines::names::{AgentName, ChannelName};
use machines::run;
use machines::suspended::Wrapped;
use machines::task::{self, Payload, Status};
use machines::{Wire, architect, turn};
use smol_str::SmolStr;

pub(super) fn agent(name: &str, role: Role) -> Actor {
    Actor::Agent { name: AgentName::new(name).unwrap(), role }
}

pub(super) fn add(title: &str, depends_on: &[&str]) -> Ask {
    Ask::AddTask(NewTask {
        id: Some(task(title)),
        title: title.to_owned(),
        depends_on: depends_on.iter().map(|id| task(id)).collect(),
        ..NewTask::default()
    })
}

pub(super) fn assign(id: &str, to: &str) -> Ask {
    let payload = Payload { assignee_ids: Some(vec![SmolStr::new(to)]), ..Payload::default() };
    Ask::MoveTask { id: task(id), to: Status::Assigned, payload: Box::new(payload) }
}

#[test]
fn a_refused_move_says_what_is_missing_and_what_this_caller_may_do() {
    let mut table = Table::new(config());
    table.ann(add("t1", &[])).unwrap();
    let refusal = table.move_task(ann(), "t1", Status::Assigned, Payload::default()).unwrap_err();
    assert_eq!(
        (refusal.status, refusal.errors[0].message.as_ref()),
        (422, "Must have at least one assignee")
    );
    table.ann(assign("t1", "coder")).unwrap();
    let coder = agent("coder", Role::Specialist);
    let refusal = table.move_task(coder.clone(), "t1", Status::InProgress, Payload::default()).unwrap_err();
    assert_eq!(refusal.errors[0].message, "Work plan required for IN_PROGRESS");
    assert_eq!(refusal.allowed, ["IN_PROGRESS"]);
    let refusal = table.move_task(coder, "t1", Status::Canceled, Payload::default()).unwrap_err();
    assert_eq!(refusal.status, 403);
    let refusal = table.move_task(ann(), "t1", Status::Done, Payload::default()).unwrap_err();
    assert_eq!(
        (refusal.status, refusal.allowed),
        (409, vec!["INBOX".into(), "IN_PROGRESS".into(), "CANCELED".into()])
    );
    let refusal = table.move_task(ann(), "t9", Status::Done, Payload::default()).unwrap_err();
    assert_eq!(refusal.status, 404);
}

/// The role comes from the credential: a claim in the payload changes nothing.
#[test]
fn an_intern_may_not_claim_and_a_specialist_only_for_itself() {
    let mut table = Table::new(config());
    table.ann(add("t1", &[])).unwrap();
    assert_eq!(table.tell(agent("coder", Role::Intern), assign("t1", "coder")).unwrap_err().status, 403);
    assert_eq!(table.tell(agent("coder", Role::Specialist), assign("t1", "other")).unwrap_err().status, 403);
    table.tell(agent("coder", Role::Specialist), assign("t1", "coder")).unwrap();
}

#[test]
fn only_the_system_reports_outcomes_and_only_people_decide() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         asks t1 git push",
    );
    let approval = table.world.task(&task("t1")).unwrap().approval.clone().unwrap();
    let effect = table.effect("start_step", "t1").unwrap();
    let mut table = table;
    let forged = Ask::Outcome(Outcome {
        effect,
        what: Happened::StepFailed {
            error: "x".to_owned(),
            why: StepFailure::Failed,
            usage: Usage::default(),
        },
    });
    assert_eq!(table.tell(agent("coder", Role::Lead), forged).unwrap_err().status, 403);
    let decision = Decision {
        approve: true,
        note: String::new(),
        to: None,
        raise: None,
        complete: false,
        always: false,
    };
    let decide = Ask::Decide { id: approval.clone(), decision: decision.clone() };
    for meant_for_another in [
        Decision { raise: Some(crate::words::Raise::Turns(5)), ..decision.clone() },
        Decision { complete: true, ..decision.clone() },
    ] {
        let ask = Ask::Decide { id: approval.clone(), decision: meant_for_another };
        assert_eq!(table.ann(ask).unwrap_err().status, 409);
    }
    assert_eq!(table.tell(agent("coder", Role::Lead), decide.clone()).unwrap_err().status, 403);
    table.ann(decide.clone()).unwrap();
    assert_eq!(table.ann(decide).unwrap_err().code, "DECIDED");
}

#[test]
fn the_same_key_does_a_thing_once_and_answers_it_twice() {
    let mut table = Table::new(config());
    table.ann(add("t1", &[])).unwrap();
    let comment = |text: &str| Ask::Comment { id: task("t1"), text: text.to_owned() };
    let first = table.tell_keyed(ann(), comment("one"), Some("k")).unwrap();
    let again = table.tell_keyed(ann(), comment("one"), Some("k")).unwrap();
    assert_eq!((first.id, first.replayed, again.replayed), (again.id, false, true));
    assert_eq!(table.world.task(&task("t1")).unwrap().comments.len(), 1);
    assert_eq!(table.tell_keyed(ann(), comment("two"), Some("k")).unwrap_err().code, "KEY_REUSED");
    table.tell_keyed(ann(), comment("two"), Some("other")).unwrap();
    assert_eq!(table.world.task(&task("t1")).unwrap().comments.len(), 2);
}

#[test]
fn a_refusal_under_a_key_is_given_again_even_when_it_would_pass_now() {
    let mut table = Table::new(config());
    table.ann(add("t1", &[])).unwrap();
    let plain = Ask::MoveTask { id: task("t1"), to: Status::Assigned, payload: Box::default() };
    let first = table.tell_keyed(ann(), plain.clone(), Some("k")).unwrap_err();
    table.ann(assign("t1", "coder")).unwrap();
    assert_eq!(table.tell_keyed(ann(), plain, Some("k")).unwrap_err(), first);
}

#[test]
fn the_oldest_answers_go_when_too_many_are_kept() {
    let mut table = Table::with(|config| config.limits.kept_answers = 2);
    for (key, id) in [("a", "t1"), ("b", "t2"), ("c", "t3")] {
        table.tell_keyed(ann(), add(id, &[]), Some(key)).unwrap();
    }
    assert_eq!(table.world.kept.len(), 2);
}

#[test]
fn a_cycle_is_refused_with_its_path() {
    let mut table = Table::new(config());
    table.ann(add("a", &[])).unwrap();
    table.ann(add("b", &["a"])).unwrap();
    table.ann(add("c", &["b"])).unwrap();
    let refusal = table.ann(Ask::AddDependency { id: task("a"), on: task("c") }).unwrap_err();
    assert_eq!(refusal.errors[0].message, "this would be a cycle: a → c → b → a");
    assert!(table.ann(Ask::AddDependency { id: task("a"), on: task("a") }).is_err());
}

#[test]
fn a_chain_of_a_thousand_is_no_matter() {
    let mut world = Table::new(config()).world;
    for number in 1..=1000u128 {
        let depends_on = if number > 1 { vec![format!("n{}", number - 1)] } else { vec![] };
        let depends_on: Vec<_> = depends_on.iter().map(String::as_str).collect();
        let command = Command {
            id: number,
            at: 0,
            actor: ann(),
            token_for: None,
            key: None,
            ask: add(&format!("n{number}"), &depends_on),
        };
        world = handle(&world, &command).unwrap().world;
    }
    assert_eq!(crate::invariants::check(&world), vec![]);
    let command = Command {
        id: 0,
        at: 0,
        actor: ann(),
        token_for: None,
        key: None,
        ask: Ask::AddDependency { id: task("n1"), on: task("n1000") },
    };
    assert!(
        handle(&world, &command).unwrap_err().message.starts_with("this would be a cycle: n1 → n1000 → n999")
    );
}

#[test]
fn a_dependency_that_was_canceled_waits_for_a_person_by_name() {
    let mut table = Table::new(config());
    table.ann(add("a", &[])).unwrap();
    table.ann(add("b", &["a", "nowhere"])).unwrap();
    table.move_task(ann(), "a", Status::Canceled, Payload::default()).unwrap();
    let why = crate::why::of_task(&table.world, &task("b"), 0).unwrap();
    let failing: Vec<_> = why
        .iter()
        .filter(|g| g.guard == crate::words::Condition::DependencyDone)
        .map(|g| g.detail.as_str())
        .collect();
    assert_eq!(
        failing,
        [
            "`a` was CANCELED and will never be DONE; a person must remove the dependency",
            "`nowhere` is not known; a person must add it or remove the dependency"
        ]
    );
}

#[test]
fn what_is_too_long_or_empty_is_refused_and_nothing_is_written() {
    let mut table = Table::new(config());
    let before = table.world.clone();
    let long = "x".repeat(70_000);
    assert_eq!(
        table.ann(Ask::AddTask(NewTask { title: long, ..NewTask::default() })).unwrap_err().status,
        422
    );
    assert_eq!(
        table.ann(Ask::AddTask(NewTask { title: "  ".to_owned(), ..NewTask::default() })).unwrap_err().status,
        422
    );
    let priority = Some(5);
    assert!(
        table.ann(Ask::AddTask(NewTask { title: "x".to_owned(), priority, ..NewTask::default() })).is_err()
    );
    assert_eq!(table.world, before);
}

/// A run that is reported from outside has the whole of its machine, and its tools are gated.
#[test]
fn an_agent_outside_reports_its_own_life() {
    let mut table = Table::new(config());
    let outsider = agent("outsider", Role::Specialist);
    table.ann(add("t1", &[])).unwrap();
    table.tell(outsider.clone(), assign("t1", "outsider")).unwrap();
    let plan =
        Payload { work_plan: Some(task::WorkPlan::new(["look", "change", "test"])), ..Payload::default() };
    table.move_task(outsider.clone(), "t1", Status::InProgress, plan).unwrap();
    let open = Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None };
    let run = table.tell(outsider.clone(), open.clone()).unwrap();
    assert_eq!(run.state.as_deref(), Some("run.starting"));
    assert_eq!(table.tell(outsider.clone(), open).unwrap_err().code, "AGENT_ALREADY_RUNNING");
    let run = machines::names::RunId::new(run.id.unwrap()).unwrap();
    let step = |turn, tool: &str| Ask::RunEvent {
        run: run.clone(),
        event: run::Event::Step {
            turn,
            tool_calls: vec![call(tool, u64::from(turn))],
            output: None,
            usage: None,
            marks: Vec::new(),
        },
    };
    let refusal = table.tell(outsider.clone(), step(1, "Bash")).unwrap_err();
    assert_eq!(refusal.code, "AGENT_TOOL_NOT_ALLOWED");
    assert_eq!(table.world.run(&run).unwrap().audit.failures, 1, "the attempt is part of the audit");
    table.tell(outsider.clone(), step(1, "Edit")).unwrap();
    assert_eq!(table.tell(outsider.clone(), step(3, "Edit")).unwrap_err().code, "STALE_TURN");
    let limit = table.tell(outsider.clone(), step(2, "Edit")).unwrap();
    assert_eq!(limit.code.as_deref(), Some("AGENT_TURN_LIMIT_EXCEEDED"));
    assert_eq!(table.stands("task t1"), "task t1 NEEDS_APPROVAL");
    assert_eq!(table.tell(agent("coder", Role::Lead), step(3, "Edit")).unwrap_err().status, 403);
}

#[test]
fn an_owner_outside_that_goes_silent_loses_its_lease_and_not_the_task() {
    let mut table = Table::new(config());
    let outsider = agent("outsider", Role::Specialist);
    table.ann(add("t1", &[])).unwrap();
    table.tell(outsider.clone(), assign("t1", "outsider")).unwrap();
    let plan =
        Payload { work_plan: Some(task::WorkPlan::new(["look", "change", "test"])), ..Payload::default() };
    table.move_task(outsider.clone(), "t1", Status::InProgress, plan).unwrap();
    table
        .tell(outsider.clone(), Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None })
        .unwrap();
    let table = check(table, "silence t1 -> task t1 IN_PROGRESS, run t1.1 error");
    let mut table = table;
    let late = Ask::RunEvent {
        run: machines::names::RunId::new("t1.1").unwrap(),
        event: run::Event::Abort { reason: "late".to_owned() },
    };
    assert_eq!(table.tell(outsider, late).unwrap_err().code, "LEASE_ENDED");
}

/// The outcome of something that is no longer wanted is dropped whole.
#[test]
fn a_late_outcome_of_a_superseded_effect_changes_nothing() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn",
    );
    let step = table.effect("start_step", "t1").unwrap();
    let mut table = check(table, "cancel -> task t1 CANCELED");
    let before = table.world.clone();
    let what = Happened::StepFinished {
        ending: StepEnding::Done,
        output: String::new(),
        tip: None,
        tree: None,
        usage: Usage { cost: Some(5), ..Usage::default() },
    };
    let reply = table.tell(Actor::System, Ask::Outcome(Outcome { effect: step, what })).unwrap();
    assert!(reply.superseded);
    assert_eq!(table.world, before);
}

/// Computed before it is adopted: deciding changes nothing by itself, and gives the same again.
#[test]
fn deciding_is_pure() {
    let table = Table::new(config());
    let command = Command { id: 9, at: 5, actor: ann(), token_for: None, key: None, ask: add("t1", &[]) };
    let before = table.world.clone();
    let Commit { events, .. } = handle(&table.world, &command).unwrap();
    assert_eq!(table.world, before);
    assert_eq!(handle(&table.world, &command).unwrap().events, events);
}

#[test]
fn a_bad_configuration_is_refused_and_the_last_good_one_stays() {
    let mut table = Table::new(config());
    let before = table.world.config.clone();
    let mut bad = config();
    bad.fleet.agent = AgentName::new("nobody").unwrap();
    let refusal = table.ann(Ask::Configure { config: Box::new(bad) }).unwrap_err();
    assert_eq!(refusal.message, "fleet.agent names `nobody`, which is not among the agents");
    assert_eq!(table.world.config, before);
}

#[test]
fn a_channel_has_one_turn_holder() {
    let mut table = Table::new(config());
    let room = ChannelName::new("room").unwrap();
    table
        .ann(Ask::MakeChannel {
            name: room.clone(),
            config: turn::TurnConfig::default(),
            about: Default::default(),
        })
        .unwrap();
    for name in ["a", "b"] {
        let agent = AgentName::new(name).unwrap();
        table
            .ann(Ask::AddMember { channel: room.clone(), agent: agent.clone(), times: Default::default() })
            .unwrap();
        for event in [turn::Event::AgentStarts, turn::Event::Assigned] {
            table
                .tell(Actor::System, Ask::TurnEvent { channel: room.clone(), agent: agent.clone(), event })
                .unwrap();
        }
    }
    // The first in the ring was granted the turn when it joined.
    let channel = |table: &Table| table.world.channels.get(&room).unwrap().clone();
    assert_eq!(channel(&table).current.as_ref().map(AgentName::as_str), Some("a"));
    let granted = turn::Event::TurnGranted { at: 0, timeout_seconds: 60 };
    let send = |table: &mut Table, actor, name: &str, event| {
        let agent = AgentName::new(name).unwrap();
        table.tell(actor, Ask::TurnEvent { channel: room.clone(), agent, event })
    };
    assert_eq!(send(&mut table, Actor::System, "b", granted).unwrap_err().code, "TURN_TAKEN");
    // Its own turn it completes, and no other agent's.
    let complete = || turn::Event::TurnComplete { alone: false, auto: false, ended_by: None };
    assert_eq!(send(&mut table, agent("b", Role::Lead), "a", complete()).unwrap_err().status, 403);
    let post = Ask::Post { channel: room.clone(), text: "hello".to_owned() };
    table.tell(agent("a", Role::Intern), post).unwrap();
    send(&mut table, agent("a", Role::Intern), "a", complete()).unwrap();
    assert_eq!(channel(&table).current.as_ref().map(AgentName::as_str), Some("b"));
    send(&mut table, agent("b", Role::Intern), "b", complete()).unwrap();
    assert_eq!(channel(&table).current.as_ref().map(AgentName::as_str), Some("a"), "it is a ring");
}

#[test]
fn the_architect_is_driven_by_its_table() {
    let mut table = Table::new(config());
    let tell = |table: &mut Table, event| {
        table.tell(Actor::System, Ask::ArchitectEvent { event: Wrapped::Inner(event) })
    };
    assert_eq!(
        tell(&mut table, architect::Event::Start).unwrap().state.as_deref(),
        Some("architect.WAITING")
    );
    let seq = table.world.seq;
    tell(&mut table, architect::Event::Stay).unwrap();
    assert_eq!(table.world.seq, seq, "staying leaves no transition in the log");
    assert_eq!(tell(&mut table, architect::Event::WorkspaceReady).unwrap_err().status, 409);
}

/// What moves no single machine has its roles too.
#[test]
fn an_agent_runs_neither_the_fleet_nor_the_project() {
    let mut table = Table::new(config());
    table.ann(add("a", &[])).unwrap();
    table.ann(add("b", &[])).unwrap();
    let room = ChannelName::new("room").unwrap();
    table
        .ann(Ask::MakeChannel {
            name: room.clone(),
            config: turn::TurnConfig::default(),
            about: Default::default(),
        })
        .unwrap();
    let other = AgentName::new("other").unwrap();
    let asks = [
        Ask::StartFleet { workers: 1 },
        Ask::StopFleet,
        Ask::Spawn { name: Some(worker("X")), agent: None },
        Ask::Configure { config: Box::new(config()) },
        Ask::SeeDisk { full: None },
        Ask::AddDependency { id: task("a"), on: task("b") },
        Ask::RemoveDependency { id: task("a"), on: task("b") },
        Ask::EditTask {
            id: task("a"),
            title: None,
            body: None,
            priority: Some(0),
            plan: None,
            reviewer: None,
            agent: None,
        },
        Ask::AddMember { channel: room.clone(), agent: other.clone(), times: Default::default() },
        Ask::RemoveMember { channel: room.clone(), agent: other.clone() },
        Ask::TurnEvent { channel: room, agent: other, event: turn::Event::AgentStarts },
        Ask::ArchitectEvent { event: Wrapped::Inner(architect::Event::Start) },
    ];
    for ask in asks {
        let refusal =
            table.tell(agent("coder", Role::Specialist), ask.clone()).expect_err(&format!("{ask:?}"));
        assert_eq!(refusal.status, 403, "{ask:?}");
    }
}

#[test]
fn a_task_with_too_many_dependencies_is_refused() {
    let mut table = Table::with(|config| config.limits.dependencies = 2);
    let refusal = table.ann(add("a", &["x", "y", "z"])).unwrap_err();
    assert_eq!(refusal.errors[0].message, "more than 2 dependencies");
}

/// Something that only we need is tried until it is done; a person is told when that lasts.
#[test]
fn an_effect_that_fails_again_and_again_is_kept_and_said_once() {
    let table = Table::with(|config| config.limits.effect_tries = 3);
    let mut table = check(
        table,
        "ticket t1
         fleet 1
         tree
         kill A
         ended         -> asked save_work 1",
    );
    for _ in 0..4 {
        table.outcome("save_work", "t1", Happened::Failed { error: "no room".to_owned() }).unwrap();
    }
    let said = |table: &Table| {
        let comments = &table.world.task(&task("t1")).unwrap().comments;
        comments
            .iter()
            .filter(|comment| comment.is(crate::words::CommentKind::Failing))
            .map(|c| c.text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(said(&table), ["save_work has failed 3 times: no room"]);
    check(table, "saved -> asked save_work 0");
}

/// Everything that any move could require, at once.
pub(super) fn whole(reviewed: &task::Task) -> Payload {
    let text = |text: &str| Some(text.to_owned());
    let item = task::ChecklistItem { item: "it works".to_owned(), answer: text("yes") };
    Payload {
        // Somebody else than now.
        assignee_ids: Some(vec![SmolStr::new(format!("{}x", reviewed.assignee_ids.join("")))]),
        work_plan: Some(task::WorkPlan::new(["look", "change", "test again"])),
        deliverable: Some(task::Deliverable { content: "by hand".to_owned(), artifacts: Vec::new() }),
        review_checklist: Some(task::Checklist { task_type: reviewed.task_type, items: vec![item] }),
        cost_summary: None,
        feedback: text("again"),
        reason: Some(task::BlockReason::Manual),
        cause: Some(task::ApprovalCause::Escalation),
        approval: Some(task::Completion {
            approval_id: None,
            approved_by: "ann".into(),
            approved_at: 1,
            decision_note: "fine".to_owned(),
        }),
        decision: text("so be it"),
        clarification: text("like this"),
    }
}

/// The matrix, as a person goes through it: every move from every status, on every way there.
#[test]
fn a_person_makes_every_move_of_the_matrix() {
    use Status::*;
    let ways: &[&[Status]] = &[
        &[],
        &[Assigned],
        &[Assigned, InProgress],
        &[Assigned, InProgress, Review],
        &[Assigned, InProgress, Blocked],
        &[Assigned, InProgress, NeedsApproval],
        &[Assigned, InProgress, Review, NeedsApproval],
        &[Assigned, InProgress, Blocked, NeedsApproval],
    ];
    for way in ways {
        for to in Status::ALL {
            let mut table = Table::new(config());
            table.ann(add("t1", &[])).unwrap();
            let mut step = |to: Status| {
                let payload = whole(&table.world.task(&task("t1")).unwrap().machine);
                table.move_task(ann(), "t1", to, payload).map(|_| table.stands("task t1"))
            };
            for to in *way {
                step(*to).unwrap();
            }
            let from = way.last().copied().unwrap_or(Inbox);
            let marked = <task::Task as machines::Machine>::TABLE.iter().any(|row| {
                row.from == from && row.to == *to && row.event != task::Kind::LandingFailed && *to != from
            });
            match step(*to) {
                Ok(stands) => assert!(marked && stands.contains(to.name()), "{way:?} to {to}: {stands}"),
                Err(no) => assert!(!marked && no.status == 409, "{way:?} to {to}: {no:?}"),
            }
        }
    }
}

/// What only an agent outside reports: a failure for good, a turn past its limit, and another run after the first.
#[test]
fn an_agent_outside_fails_pauses_and_starts_again() {
    let begun = || {
        let mut table = Table::new(config());
        let outsider = agent("outsider", Role::Specialist);
        table.ann(add("t1", &[])).unwrap();
        table.tell(outsider.clone(), assign("t1", "outsider")).unwrap();
        let plan = Payload {
            work_plan: Some(task::WorkPlan::new(["look", "change", "test"])),
            ..Payload::default()
        };
        table.move_task(outsider.clone(), "t1", Status::InProgress, plan).unwrap();
        let open = Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None };
        table.tell(outsider.clone(), open).unwrap();
        (table, outsider)
    };
    let event = |event| Ask::RunEvent { run: machines::names::RunId::new("t1.1").unwrap(), event };
    let step = |turn| run::Event::Step {
        turn,
        tool_calls: Vec::new(),
        output: None,
        usage: None,
        marks: Vec::new(),
    };
    let error = run::AppError { code: "E".into(), message: "broken".to_owned(), status: 500, details: None };

    let (mut table, outsider) = begun();
    table.tell(outsider.clone(), event(step(1))).unwrap();
    table.tell(outsider.clone(), event(run::Event::Error { error, recoverable: false })).unwrap();
    assert_eq!(table.stands("task t1"), "task t1 BLOCKED (stuck)");
    assert_eq!(table.stands("run t1.1"), "run t1.1 idle");

    let (mut table, outsider) = begun();
    for turn in 1..=2 {
        table.tell(outsider.clone(), event(step(turn))).unwrap();
    }
    let past = table.tell(outsider.clone(), event(step(3))).unwrap();
    assert_eq!(past.code.as_deref(), Some("AGENT_TURN_LIMIT_EXCEEDED"));

    let (mut table, outsider) = begun();
    table.tell(outsider.clone(), event(step(1))).unwrap();
    let complete = run::Event::Complete { result: "built".to_owned(), diff: None, turn_count: 1 };
    table.tell(outsider.clone(), event(complete)).unwrap();
    let start = run::Event::Start { task_id: "t1".into(), prompt: "more".to_owned(), options: None };
    let again = table.tell(outsider, event(start)).unwrap();
    assert_eq!(again.state.as_deref(), Some("run.starting"));
}

/// Those that go through rows which no script goes through.
pub(super) const WITNESSES: &[fn()] = &[
    a_person_makes_every_move_of_the_matrix,
    an_agent_outside_fails_pauses_and_starts_again,
    a_refused_move_says_what_is_missing_and_what_this_caller_may_do,
    an_intern_may_not_claim_and_a_specialist_only_for_itself,
    only_the_system_reports_outcomes_and_only_people_decide,
    the_same_key_does_a_thing_once_and_answers_it_twice,
    a_refusal_under_a_key_is_given_again_even_when_it_would_pass_now,
    the_oldest_answers_go_when_too_many_are_kept,
    a_cycle_is_refused_with_its_path,
    a_chain_of_a_thousand_is_no_matter,
    a_dependency_that_was_canceled_waits_for_a_person_by_name,
    what_is_too_long_or_empty_is_refused_and_nothing_is_written,
    an_agent_outside_reports_its_own_life,
    an_owner_outside_that_goes_silent_loses_its_lease_and_not_the_task,
    a_late_outcome_of_a_superseded_effect_changes_nothing,
    deciding_is_pure,
    a_bad_configuration_is_refused_and_the_last_good_one_stays,
    a_channel_has_one_turn_holder,
    the_architect_is_driven_by_its_table,
    an_agent_runs_neither_the_fleet_nor_the_project,
    a_task_with_too_many_dependencies_is_refused,
    an_effect_that_fails_again_and_again_is_kept_and_said_once,
];

/// The text is in every record and answer: it is read as it is written, and a name of before stays as it is.
#[test]
fn an_actor_is_read_as_it_is_written() {
    use crate::words::ActorName;
    let all = [
        (Actor::Human(SmolStr::new("ann")), "human:ann", ActorName::Human("ann")),
        (agent("coder", Role::Intern), "agent:coder", ActorName::Agent("coder")),
        (Actor::System, "system", ActorName::System),
        (
            Actor::SystemFor(AgentName::new("coder").unwrap()),
            "system for coder",
            ActorName::SystemFor("coder"),
        ),
    ];
    for (actor, text, name) in all {
        assert_eq!((actor.to_string().as_str(), ActorName::read(text)), (text, Some(name)));
    }
    for before in ["", "ann", "systemd", "human", "system: coder", "human ann"] {
        assert_eq!(ActorName::read(before), None, "{before}");
    }
}
