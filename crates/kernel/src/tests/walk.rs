//! The walk: every outcome of the world, and everything that a person can do, in every combination of task, worker
//! and run that can be reached. None of the world's outcomes is refused because of another machine.

use super::samples::outcome_samples;
use super::table::*;
use crate::command::*;
use crate::effect::{EffectOutcome, outcomes as outcomes_of};
use crate::happened::Failed;
use crate::{Actor, Effect, Timer, World, handle, invariants};
use machines::run;
use machines::task::{self, BlockReason, Payload, Status};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;
use std::collections::{BTreeSet, VecDeque};

/// What tells two Worlds apart: where the machines stand, what is under way, and whether a limit is near.
fn key(world: &World) -> String {
    let task = world.task(&task("t1")).expect("the walk is about t1");
    let run = world.run_of(&task.id);
    let under_way = run
        .and_then(|run| run.step.as_ref())
        .and_then(|step| world.effects.get(step))
        .map(|step| step.kind());
    let kind = |timer: &Timer| format!("{timer:?}").split_whitespace().next().unwrap_or_default().to_owned();
    let timers: BTreeSet<_> = world.timers.keys().map(kind).collect();
    let workers: Vec<_> = world
        .workers
        .values()
        .map(|worker| {
            let machine = &worker.machine;
            (
                machine.status,
                machine.errors + 1 >= worker::ERRORS_MAX,
                machine.fix_rounds >= machine.limits.max_fix_rounds,
            )
        })
        .collect();
    let run = run.map(|run| {
        let machine = run.machine.inner();
        (run.machine.name(), run.state(), run.question.is_some(), machine.current_turn >= machine.max_turns)
    });
    format!(
        "{} {:?} {workers:?} {run:?} {under_way:?} {timers:?} {:?} {:?} {:?}",
        task.status(),
        task.machine.came_from,
        (
            task.gate.alone.is_some(),
            task.work.unfinished.is_empty(),
            task.work.waits_for.is_some(),
            world.fleet_running
        ),
        world.landing.as_ref().map(|landing| landing.written.is_some()),
        (
            world.main_is_green(),
            world.main_is_known(),
            world.main.under_way.is_some(),
            task.gate.in_doubt.as_ref().map(|doubt| doubt.by),
            task.landing.doubted,
        ),
    )
}

/// What can come of an effect by its row, and an answer that does not fit it.
fn outcomes(samples: &[Happened], effect: &Effect, turn: u32) -> Vec<Happened> {
    let fits = |what: &&Happened| effect.outcomes().contains(&what.kind()) || **what == Happened::MainMoved;
    let mut all: Vec<Happened> = samples.iter().filter(fits).cloned().collect();
    all.iter_mut().for_each(|what| at_turn(what, turn));
    all
}

/// A sample as the agent reports it in this turn.
fn at_turn(what: &mut Happened, now: u32) {
    match what {
        Happened::CallAsked { turn, .. } => *turn = now,
        Happened::Turn { turn, calls, .. } => {
            *turn = now;
            for edit in calls.iter_mut().filter(|call| call.tool == "Edit") {
                *edit = call("Edit", u64::from(now));
            }
        }
        _ => {}
    }
}

/// A runner that answers what its effect cannot come to has a fault: nothing is taken for done because of it.
#[test]
fn an_answer_that_does_not_fit_its_effect_is_a_failure() {
    let mut table = Table::new(config());
    table.ticket("t1", "open", &[], "x").unwrap();
    table.tell(Actor::System, Ask::StartFleet { workers: 1 }).unwrap();
    let effect = table.world.effects.values().find(|effect| effect.kind() == "prepare_tree").unwrap();
    let EffectOutcome::PrepareTree { outcome, .. } = EffectOutcome::new(effect, Happened::MainMoved) else {
        panic!("an effect is paired with its own outcomes");
    };
    let error = "an answer that does not fit: MainMoved".to_owned();
    assert_eq!(outcome, outcomes_of::PrepareTree::Failed(Failed { error }));
}

/// What people and recovery do, in any order, at any time.
fn acts(world: &World) -> Vec<(Actor, Ask)> {
    let id = task("t1");
    let mut acts = Vec::new();
    let payload = || Payload {
        assignee_ids: Some(vec![SmolStr::new_static("coder")]),
        work_plan: Some(task::WorkPlan::new(["look", "change", "test"])),
        deliverable: Some(task::Deliverable { content: "x".to_owned(), artifacts: Vec::new() }),
        review_checklist: Some(task::Checklist {
            task_type: task::TaskType::Task,
            items: vec![task::ChecklistItem { item: "x".to_owned(), answer: Some("yes".to_owned()) }],
        }),
        feedback: Some("again".to_owned()),
        reason: Some(BlockReason::Manual),
        cause: Some(task::ApprovalCause::Escalation),
        approval: Some(task::Completion {
            approval_id: None,
            approved_by: SmolStr::new_static("ann"),
            approved_at: 0,
            decision_note: "ok".to_owned(),
        }),
        decision: Some("so".to_owned()),
        clarification: Some("like this".to_owned()),
        ..Payload::default()
    };
    for to in Status::ALL {
        acts.push((ann(), Ask::MoveTask { id: id.clone(), to: *to, payload: Box::new(payload()) }));
    }
    for name in world.workers.keys() {
        let worker = name.clone();
        acts.push((ann(), Ask::Kill { worker: worker.clone() }));
        acts.push((ann(), Ask::Retry { worker: worker.clone() }));
        acts.push((ann(), Ask::Cleanup { worker: worker.clone(), force: true }));
        acts.push((ann(), Ask::Assign { worker: worker.clone(), task: id.clone(), clarification: None }));
        for tree in worker::Tree::ALL {
            for (step_under_way, said_done, resumable) in
                [(true, false, true), (false, true, true), (false, false, true), (false, false, false)]
            {
                let ask = Ask::Recover {
                    worker: worker.clone(),
                    tree: *tree,
                    step_under_way,
                    said_done,
                    resumable,
                };
                acts.push((Actor::System, ask));
            }
        }
    }
    for approval in world.approvals.values().filter(|approval| approval.decided.is_none()) {
        for (approve, complete, to) in [
            (true, false, None),
            (true, true, None),
            (false, false, None),
            (false, false, Some(Status::Canceled)),
        ] {
            let decision =
                Decision { approve, note: "so".to_owned(), to, raise: None, complete, always: false };
            acts.push((ann(), Ask::Decide { id: approval.id.clone(), decision }));
        }
    }
    if let Some(run) = world.task(&id).and_then(|task| task.work.run.clone()) {
        let pause = run::Event::Pause { reason: run::PauseReason::UserInput, context: None };
        let resume = run::Event::Resume { feedback: None, input: None, max_turns: None };
        for event in [pause, resume, run::Event::Abort { reason: "enough".to_owned() }] {
            acts.push((ann(), Ask::RunEvent { run: run.clone(), event }));
        }
    }
    acts.push((ann(), Ask::RetryTask { id: id.clone() }));
    acts.push((ann(), Ask::RestartTask { id: id.clone(), note: Some("from main".to_owned()) }));
    acts.push((Actor::System, Ask::MissTicket { id: id.clone() }));
    acts.push((ann(), Ask::Comment { id: id.clone(), text: "like this".to_owned() }));
    acts.push((ann(), Ask::Approve { id, tip: None, note: String::new() }));
    acts.push((ann(), Ask::StopFleet));
    acts.push((Actor::System, Ask::SeeMain { tip: SmolStr::new_static("m9") }));
    acts.push((Actor::System, Ask::StartFleet { workers: 1 }));
    acts
}

/// Slow: it walks through every combination of states.
#[test]
fn no_outcome_of_the_world_is_refused_wherever_the_machines_stand() {
    let mut start = Table::with(|config| {
        config.fleet.max_fix_rounds = 1;
        config.policy.max_review_cycles = 1;
        config.policy.max_landing_rounds = 1;
        config.limits.lost_workers = 2;
        config.tests = Some(SmolStr::new_static("s1"));
        config.agents.values_mut().for_each(|agent| agent.max_turns = Some(2));
    });
    start.ticket("t1", "open", &[], "do it").unwrap();
    start.tell(Actor::System, Ask::StartFleet { workers: 1 }).unwrap();

    let samples = outcome_samples();
    let mut seen = BTreeSet::from([key(&start.world)]);
    let mut open = VecDeque::from([start]);
    let (mut asked, mut combinations) = (0u64, BTreeSet::new());
    while let Some(table) = open.pop_front() {
        let world = &table.world;
        let stands = world.task(&task("t1")).unwrap();
        let run = world.run_of(&stands.id);
        let workers: Vec<_> = world.workers.values().map(|worker| worker.machine.status).collect();
        combinations.insert((stands.status(), workers, run.map(|run| run.machine.name())));
        let turn = run.map_or(0, |run| run.machine.inner().current_turn) + 1;
        let of_world = world.effects.iter().flat_map(|(id, effect)| {
            let outcome = |what| (Actor::System, Ask::Outcome(Outcome { effect: id.clone(), what }));
            outcomes(&samples, effect, turn).into_iter().map(outcome)
        });
        for (actor, ask) in of_world.chain(acts(world)) {
            asked += 1;
            let must = matches!(ask, Ask::Outcome(_) | Ask::Recover { .. });
            let command = Command { id: 1, at: table.now, actor, token_for: None, key: None, ask };
            match handle(world, &command) {
                Err(refusal) => assert!(!must, "in {}: {:?} was refused: {refusal}", key(world), command.ask),
                Ok(commit) => {
                    if seen.insert(key(&commit.world)) {
                        let broken = invariants::check(&commit.world);
                        assert!(
                            broken.is_empty(),
                            "in {}: after {:?}: {}",
                            key(world),
                            command.ask,
                            broken[0]
                        );
                        open.push_back(Table { world: commit.world, ..table.clone() });
                    }
                }
            }
        }
        assert!(seen.len() < 80_000, "the walk does not close");
    }
    eprintln!("{} states of the world, {asked} commands", seen.len());
    // Every status, every state of a worker that has not gone, and every state of a run was there.
    for status in Status::ALL {
        assert!(combinations.iter().any(|(there, ..)| there == status), "never {status}");
    }
    for state in worker::State::ALL
        .iter()
        .filter(|state| !matches!(state, worker::State::New | worker::State::Removed))
    {
        assert!(combinations.iter().any(|(_, workers, _)| workers.contains(state)), "never {state}");
    }
    for state in run::State::ALL.iter().map(|state| state.name()).chain(["suspended"]) {
        assert!(combinations.iter().any(|(.., run)| *run == Some(state)), "never {state}");
    }
}
