//! The rules, one script each. A line is what happens; after the arrow stands what is true then.

use super::table::*;
use crate::choice::Choice;
use crate::config::{Config, Review};
use crate::effect::StepStart;
use crate::words::StepEnding;
use crate::{Actor, Ask, Happened, Outcome};
use machines::Wire;

/// Claimed, TreeReady, TurnTaken, ClaimedDone, GateGreen, Approved, LandingStarted, LandingWritten, Landed.
#[test]
pub(super) fn a_ticket_becomes_a_landed_task() {
    check(
        Table::new(config()),
        "ticket t1     -> task t1 INBOX
         fleet 1       -> task t1 IN_PROGRESS, worker A ready, run t1.1 starting, lease t1 A
         tree          -> worker A working, asked start_step 1
         turn          -> run t1.1 running
         done          -> worker A done, asked run_gate 1
         green         -> task t1 REVIEW, worker A idle, run t1.1 completed, lease t1 none
         approve       -> task t1 REVIEW, asked test_merge 1
         merge-green   -> asked move_main 1
         main-moved    -> task t1 DONE, asked write_ticket 1, asked remove_tree 1, asked delete_branch 0
         removed       -> asked delete_branch 1",
    );
}

/// Landed, where the user wants something done then: it is asked for with the landing, and holds nothing else up.
#[test]
pub(super) fn what_the_user_wants_done_with_a_landing_is_asked_for_until_it_has_run() {
    check(
        Table::new(Config { landed_hook: true, ..config() }),
        "ticket t1
         fleet 1
         tree
         turn
         done
         green
         approve
         merge-green   -> asked run_landed_hook 0
         main-moved    -> task t1 DONE, asked run_landed_hook 1, asked remove_tree 1
         removed       -> asked delete_branch 1, asked run_landed_hook 1
         hook-ran      -> asked run_landed_hook 0",
    );
}

/// Dependencies: claimable only when each is DONE.
#[test]
pub(super) fn a_task_waits_until_what_it_depends_on_is_done() {
    check(
        auto(),
        "ticket t1
         ticket t2 t1
         fleet 2        -> task t1 IN_PROGRESS, task t2 INBOX
         tree
         done
         green          -> task t1 REVIEW, task t2 INBOX
         merge-green
         main-moved     -> task t1 DONE, task t2 IN_PROGRESS",
    );
}

/// StepFailed, Stuck: four waits, and the fifth failure asks for a person.
#[test]
pub(super) fn the_fifth_failure_in_a_row_makes_a_worker_stuck_and_keeps_everything() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         fails         -> worker A working, run t1.1 error, task t1 IN_PROGRESS
         backoff       -> run t1.1 running, asked start_step 1
         fails
         backoff
         fails
         backoff
         fails
         backoff
         fails         -> worker A stuck, task t1 BLOCKED (stuck), run t1.1 error, lease t1 none
         retry A       -> worker A working, task t1 IN_PROGRESS, lease t1 A, run t1.1 running, asked start_step 1
         fails         -> worker A stuck, task t1 BLOCKED (stuck)",
    );
}

/// Retried: a person does not wait for a time that was set before they came.
#[test]
pub(super) fn a_step_that_waits_for_its_next_try_has_it_when_a_person_says_so() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         fails         -> run t1.1 error, asked timer 1
         retry-task t1 -> run t1.1 running, asked start_step 1, asked timer 0
         fails
         retry A       -> run t1.1 running, asked start_step 1
         retry A       -> refused NOT_ALLOWED
         retry-task t1 -> refused NOT_BLOCKED",
    );
}

/// Retried: a task that failed and has no worker goes to the next that is free, and nothing is held against it.
#[test]
pub(super) fn a_task_that_failed_is_tried_again_whoever_had_it() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         call-fails
         call-fails
         call-fails    -> task t1 BLOCKED (tool_failures), worker A idle
         ended
         retry-task t1 -> task t1 IN_PROGRESS, worker A ready, lease t1 A
         tree
         turn          -> task t1 IN_PROGRESS, run t1.1 running",
    );
    assert_eq!(table.world.run_of(&task("t1")).unwrap().audit.failures, 0);
}

/// Restarted: from wherever it is.
#[test]
pub(super) fn a_task_that_is_started_over_begins_on_main_with_a_new_session() {
    let place = |table: &Table| table.world.task(&task("t1")).unwrap().work.place.clone();
    check(Table::new(config()), "ticket t1\n restart t1 -> refused NOT_BEGUN");
    let from = [
        "turn",
        "asks t1 git push",
        "done t1\n green t1 -> task t1 REVIEW",
        "done t1\n green t1\n approve t1 -> asked test_merge 1",
        "kill A -> task t1 BLOCKED (manual)",
        "fails -> run t1.1 error",
    ];
    for begin in from {
        let table = check(Table::new(config()), &format!("ticket t1\nfleet 1\ntree\n{begin}"));
        let session = place(&table).unwrap().session;
        let mut table = check(table, "stop\nrestart t1 -> task t1 ASSIGNED, worker A idle, lease t1 none");
        while let Some(kind) =
            ["end_step", "save_work"].into_iter().find(|kind| table.effect(kind, "t1").is_some())
        {
            let what = match kind {
                "end_step" => crate::Happened::StepEnded { tip: None, usage: Default::default() },
                _ => crate::Happened::WorkSaved { reference: "refs/x".to_owned() },
            };
            table.outcome(kind, "t1", what).unwrap();
        }
        let table = check(
            table,
            "removed t1   -> task t1 ASSIGNED
             fleet 1      -> task t1 IN_PROGRESS, worker A ready, asked prepare_tree 1",
        );
        let fresh = place(&table).unwrap();
        assert!(fresh.session != session && fresh.tip.is_none() && !fresh.session_used, "{begin}: {fresh:?}");
    }
}

/// Restarted: the review limit asks for clarified requirements here too.
#[test]
pub(super) fn a_task_that_no_review_settled_is_started_over_only_with_a_word() {
    let table = Table::with(|config| config.policy.max_review_cycles = 0);
    check(
        table,
        "ticket t1
         fleet 1
         tree
         done
         green
         changes       -> task t1 BLOCKED (review_cycles)
         retry-task t1 -> refused MISSING_FIELD
         restart t1    -> refused MISSING_FIELD
         restart t1 smaller -> task t1 ASSIGNED",
    );
}

/// Stuck, Retired: another worker takes the place of a stuck one, and goes when that is back.
#[test]
pub(super) fn a_stuck_worker_takes_no_place_in_the_fleet() {
    check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 1       -> task t1 IN_PROGRESS, task t2 INBOX
         tree
         done
         red
         done
         red
         done
         red
         done
         red           -> worker A stuck, worker B ready, task t2 IN_PROGRESS
         kill A        -> worker A gone, worker B ready
         fleet 1       -> worker A gone",
    );
}

/// Retired: a person's own workers stay, and one of another agent takes no place.
#[test]
pub(super) fn a_worker_that_a_person_made_stays() {
    check(
        Table::new(config()),
        "spawn A
         spawn B
         spawn C
         fleet 2       -> worker A idle, worker B idle, worker C idle, worker D gone",
    );
    check(
        Table::new(config()),
        "spawn Zoe intern
         fleet 2       -> worker Zoe idle, worker A idle, worker B idle
         fleet 1       -> worker Zoe idle, worker A idle, worker B gone
         spawn Ann     -> worker Ann idle
         fleet 1       -> worker Zoe idle, worker Ann idle, worker A idle",
    );
}

/// BudgetAsked: a task between two workers.
#[test]
pub(super) fn a_task_that_only_its_budget_keeps_from_a_worker_asks() {
    let table = Table::with(|config| config.budget.task = Some(1_100));
    let table = check(
        table,
        "ticket t1
         fleet 1
         tree
         turn
         turn
         done
         green
         changes       -> task t1 NEEDS_APPROVAL, worker A idle, lease t1 none",
    );
    let question = &table.world.approvals.values().next().unwrap().question;
    assert_eq!(
        question,
        "The task budget is reached: t1 has spent $0.0003 of $0.0011; a step sets $0.001 aside; approving adds $0.0011, or another amount"
    );
    check(
        table,
        "yes t1 10     -> refused INVALID_FIELD
         yes t1 300    -> task t1 IN_PROGRESS, worker A ready",
    );
}

/// BudgetAsked: nothing has begun, and the day has nothing left. A person says no once.
#[test]
pub(super) fn a_day_that_has_no_room_asks_once_also_where_nothing_is_under_way() {
    let table = Table::with(|config| config.budget.day = Some(1_050));
    let mut table = check(
        table,
        "ticket t1
         ticket t2 t1
         fleet 1
         tree
         turn
         done
         green
         approve
         merge-green
         main-moved    -> task t1 DONE, task t2 INBOX",
    );
    let asked = table.world.day_approval.clone().expect("it asks");
    let question = &table.world.approvals[&asked].question;
    assert!(question.starts_with("The day budget is reached: all tasks of today have spent"), "{question}");
    let no = crate::command::Decision {
        approve: false,
        note: String::new(),
        to: None,
        raise: None,
        complete: false,
        always: false,
    };
    table.ann(crate::Ask::Decide { id: asked.clone(), decision: no }).unwrap();
    let mut table = check(table, "fleet 1 -> task t2 INBOX, worker A idle");
    assert_eq!(table.world.approvals.len(), 1, "it is not asked again");
    let why = crate::why::of_task(&table.world, &task("t2"), table.now).unwrap();
    let money = why.iter().find(|guard| guard.guard == crate::words::Condition::DayBudget).unwrap();
    assert!(money.detail.contains(&format!("{asked} was denied")), "{}", money.detail);
    table.now += 24 * 60 * 60 * 1000;
    check(table, "fleet 1 -> task t2 IN_PROGRESS");
}

/// BudgetAsked: an agent's own budget is one question for all its tasks.
#[test]
pub(super) fn an_agents_budget_is_one_question_for_all_its_tasks() {
    let table = Table::with(|config| config.agents.values_mut().for_each(|agent| agent.budget = Some(2_050)));
    let table = check(
        table,
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         dear-turn t1
         step t1       -> task t1 NEEDS_APPROVAL
         dear-turn t2
         step t2       -> task t2 NEEDS_APPROVAL",
    );
    assert_eq!(table.world.approvals.len(), 1);
    check(table, "yes t1 -> task t1 IN_PROGRESS, task t2 IN_PROGRESS");
}

/// A budget that is smaller than what a step sets aside: the whole of it is set aside.
#[test]
pub(super) fn work_begins_under_a_budget_that_is_smaller_than_a_step() {
    let table = Table::with(|config| config.budget.task = Some(300));
    check(
        table,
        "ticket t1
         fleet 1       -> task t1 IN_PROGRESS
         tree
         turn
         step          -> task t1 NEEDS_APPROVAL
         yes t1 400    -> task t1 IN_PROGRESS",
    );
}

/// Probed: a timer is no health.
#[test]
pub(super) fn a_service_that_nothing_can_ask_is_tried_by_one_run_alone() {
    let table = check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         turn t1
         turn t2
         outage t1
         outage t2     -> run t1.1 suspended, run t2.1 suspended
         poll
         nothing-to-ask -> run t1.1 running, run t2.1 suspended",
    );
    let health = |table: &Table| table.world.health.values().next().unwrap().clone();
    let (first, now) = (health(&table), table.now);
    assert!(!first.healthy && first.error.as_deref() == Some("529 overloaded"), "{first:?}");
    let table = check(table, "outage t1 -> run t1.1 suspended");
    assert_eq!((health(&table).since, health(&table).healthy), (first.since, false), "it is the same outage");
    let why = crate::why::of_task(&table.world, &task("t1"), now + 5_000).unwrap();
    let away = &why.iter().find(|guard| guard.guard == crate::words::Condition::ServiceThere).unwrap().detail;
    assert!(away.starts_with("model is unavailable (529 overloaded), for "), "{away}");
    assert!(away.contains("; tried again in "), "{away}");
    check(
        table,
        "poll
         nothing-to-ask -> run t1.1 suspended, run t2.1 suspended
         poll
         nothing-to-ask -> run t1.1 running, run t2.1 suspended
         turn t1        -> run t1.1 running, run t2.1 running",
    );
}

/// StepHeldBack: what one has found out, the others need not try.
#[test]
pub(super) fn no_step_begins_with_a_service_that_is_known_to_be_away() {
    check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         turn t1
         outage t1      -> run t1.1 suspended
         tree t2        -> run t2.1 suspended, worker B working, asked start_step 0
         poll
         nothing-to-ask -> run t1.1 running, run t2.1 suspended, asked start_step 1
         turn t1        -> run t1.1 running, run t2.1 starting, asked start_step 2",
    );
}

/// Probed: where everybody has given up waiting, too, one goes first.
#[test]
pub(super) fn a_service_that_nobody_waits_for_is_tried_by_whoever_begins_next() {
    let table = check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         turn t1
         turn t2
         outage t1
         outage t2
         expired
         expired        -> run t1.1 error, run t2.1 error, worker A idle, worker B idle
         poll
         nothing-to-ask -> run t1.1 running, run t2.1 error",
    );
    let why = crate::why::of_task(&table.world, &task("t2"), table.now).unwrap();
    let first = &why.iter().find(|guard| guard.guard.name() == "serviceHealthy").unwrap().detail;
    assert_eq!(first, "`t1.1` tries model first, which was unavailable");
    let again = "tree t1        -> asked start_step 1
         outage t1      -> run t1.1 suspended, run t2.1 error
         poll
         nothing-to-ask -> run t1.1 running, run t2.1 error
         turn t1        -> run t1.1 running, run t2.1 running";
    check(table.clone(), again);
    check(table, "cancel t1 -> run t1.1 idle, run t2.1 running");
}

/// Outage: credentials that are not accepted are no failed step, and stop the agent's claims.
#[test]
pub(super) fn credentials_that_are_refused_stop_the_agents_claims_and_count_no_error() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         bad-key       -> run t1.1 suspended, worker A working
         fleet 2       -> worker B idle
         ticket t2     -> task t2 INBOX",
    );
    assert_eq!(table.world.worker(&worker("A")).unwrap().machine.errors, 0);
    let why = crate::why::of_task(&table.world, &task("t2"), table.now).unwrap();
    let away = &why.iter().find(|guard| guard.guard.name() == "serviceHealthy").unwrap().detail;
    assert!(away.starts_with("model does not accept the credentials (401 invalid x-api-key)"), "{away}");
    check(table, "retry-task t1 -> run t1.1 starting, asked start_step 1");
}

/// LoopDetected: in turn is a loop too; work that comes forward is none.
#[test]
pub(super) fn a_few_calls_that_come_in_turn_are_a_loop() {
    let begin = |calls: &str| {
        let lines: String = calls.split(' ').map(|call| format!("calls t1 {call}\n")).collect();
        check(Table::new(config()), &format!("ticket t1\nfleet 1\ntree\n{lines}"))
    };
    check(begin("1 2 1 2 1"), "calls t1 2 -> task t1 BLOCKED (loop)");
    check(begin("7 1 2 3 1 2 3 1 2"), "calls t1 3 -> task t1 BLOCKED (loop)");
    // A test after every change, and each change another one.
    check(begin("1 9 2 9 3 9 4"), "calls t1 9 -> task t1 IN_PROGRESS");
}

/// A success in between starts the count again.
#[test]
pub(super) fn a_step_that_ends_well_forgets_the_failures_before_it() {
    let script = "ticket t1
         fleet 1
         tree
         fails
         backoff
         fails
         backoff
         fails
         backoff
         fails
         backoff
         step          -> worker A working
         fails         -> worker A working";
    check(Table::new(config()), script);
}

/// TreeFailed counts like a failed step.
#[test]
pub(super) fn a_tree_that_cannot_be_made_is_a_failed_step() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         no-tree       -> worker A working, run t1.1 error
         backoff       -> run t1.1 running, asked prepare_tree 1
         tree          -> asked start_step 1",
    );
}

/// TreeUnmet: no agent starts, and none is blamed.
#[test]
fn what_the_settings_demand_and_cannot_be_put_into_a_tree_keeps_agents_from_starting() {
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         unmet         -> task t1 IN_PROGRESS, worker A ready, asked test_main 1, asked start_step 0
         main-red      -> task t1 IN_PROGRESS, worker A ready, asked prepare_tree 0, asked start_step 0
         stop
         fleet 1       -> asked test_main 1, asked prepare_tree 0
         main-green    -> asked prepare_tree 1
         tree          -> asked start_step 1",
    );
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         unmet
         main-green    -> task t1 BLOCKED (environment), worker A idle, lease t1 none, asked start_step 0",
    );
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         unmet         -> task t1 BLOCKED (environment), worker A idle, lease t1 none, asked start_step 0",
    );
}

/// StepRetried: one error if both fail.
#[test]
pub(super) fn a_timeout_is_tried_once_more_with_a_fresh_session_before_it_counts() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         times-out     -> worker A working, run t1.1 running, asked start_step 1",
    );
    assert_eq!(table.world.worker(&worker("A")).unwrap().machine.errors, 0);
    let table = check(table, "times-out -> worker A working, run t1.1 error");
    assert_eq!(table.world.worker(&worker("A")).unwrap().machine.errors, 1);
}

/// StepFinished: a session that cannot be taken up again is left behind.
#[test]
pub(super) fn each_step_of_an_agent_that_cannot_resume_has_a_session_of_its_own() {
    let sessions = |resumable: bool| {
        let table =
            Table::with(|config| config.agents.values_mut().for_each(|agent| agent.resumable = resumable));
        let table = check(table, "ticket t1\n fleet 1\n tree\n turn");
        let first = table.world.task(&task("t1")).unwrap().work.place.clone().unwrap().session;
        let table = check(table, "step -> worker A working, asked start_step 1");
        let asked = table.world.effects.values().find_map(|effect| match effect.as_ref() {
            crate::Effect::StartStep { session, resume, .. } => Some((session.clone(), *resume)),
            _ => None,
        });
        (first, asked.unwrap())
    };
    let (first, (second, resume)) = sessions(true);
    assert!(resume && first == second);
    let (first, (second, resume)) = sessions(false);
    assert!(!resume && first != second);
}

/// GateRed: three fix rounds, then stuck.
#[test]
pub(super) fn a_red_gate_sends_the_work_back_three_times() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         done
         red           -> worker A working, run t1.1 running, asked start_step 1
         done
         red           -> worker A working
         done
         red           -> worker A working
         done
         red           -> worker A stuck, task t1 BLOCKED (stuck)",
    );
}

/// GateEmpty: one fix round, then a person, whatever the policy.
#[test]
pub(super) fn an_empty_diff_needs_a_person_under_every_policy() {
    check(
        auto(),
        "ticket t1
         fleet 1
         tree
         done
         empty         -> worker A working
         done
         empty         -> task t1 REVIEW, queued t1 false, worker A idle
         approve       -> task t1 DONE",
    );
}

/// `max_steps`: green, and still a person's.
#[test]
pub(super) fn work_that_ran_out_of_steps_needs_a_person_under_every_policy() {
    let table = Table::with(|config| {
        config.fleet.review = Review::Auto;
        config.fleet.max_steps = 2;
    });
    let table = check(
        table,
        "ticket t1
         fleet 1
         tree
         step          -> worker A working
         step          -> worker A done
         green         -> task t1 REVIEW, queued t1 false",
    );
    assert_eq!(
        table.world.task(&task("t1")).unwrap().gate.needs_person,
        Some(crate::words::PersonNeeded::MaxSteps)
    );
}

/// Outage, Restored: no error is counted, and the worker keeps its task.
#[test]
pub(super) fn an_outage_suspends_the_run_and_goes_on_when_the_service_is_back() {
    let table = check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         turn t1
         outage t1     -> run t1.1 suspended, worker A working, task t1 IN_PROGRESS, lease t1 A
         poll          -> asked check_health 1
         away          -> run t1.1 suspended
         poll
         healthy       -> run t1.1 running, asked start_step 1",
    );
    assert_eq!(table.world.worker(&worker("A")).unwrap().machine.errors, 0);
}

/// SuspensionExpired: claimable again when the service is back.
#[test]
pub(super) fn an_outage_that_lasts_frees_the_worker_and_keeps_the_task_for_later() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         outage
         expired       -> run t1.1 error, worker A idle, task t1 IN_PROGRESS, lease t1 none
         poll
         healthy       -> run t1.1 running, worker A ready, lease t1 A",
    );
}

/// ResetReached: the first goes alone; when it comes through, the others follow.
#[test]
pub(super) fn after_a_usage_limit_one_agent_goes_first() {
    check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         turn t1
         turn t2
         limited t1    -> run t1.1 suspended
         limited t2    -> run t2.1 suspended
         poll
         healthy       -> run t1.1 suspended, run t2.1 suspended
         reset         -> run t1.1 running, run t2.1 suspended
         turn t1       -> run t1.1 running, run t2.1 running",
    );
}

/// SuspensionExpired holds for whoever tries the service, too: its tries begin no new time.
#[test]
pub(super) fn whoever_tries_a_service_that_stays_away_gives_up_with_the_others() {
    let mut table = check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         outage t1      -> run t1.1 suspended
         outage t2      -> run t2.1 suspended",
    );
    let run = table.world.task(&task("t1")).unwrap().work.run.clone().unwrap();
    let began = table.now;
    let limit = crate::Millis::from(table.world.config.limits.suspension_seconds) * 1000;
    let suspended = |table: &Table| table.world.run(&run).unwrap().is_suspended();
    let mut tries = 0;
    while table.now - began <= limit {
        let due = |timer: &crate::Timer| table.world.effects[&table.world.timers[timer]].due().unwrap();
        let poll = due(&crate::Timer::HealthPoll);
        let expiry = crate::Timer::Suspension { run: run.clone() };
        if table.world.timers.contains_key(&expiry) && due(&expiry) <= poll {
            table.ring(|timer| *timer == expiry).unwrap();
            break;
        }
        table = check(table, "poll\nnothing-to-ask");
        if !suspended(&table) {
            tries += 1;
            table = check(table, "outage t1 -> run t1.1 suspended");
        }
    }
    assert!(tries > 3, "it was tried {tries} times");
    assert!(!suspended(&table), "it is suspended after {} s", (table.now - began) / 1000);
    assert!(table.now - began <= limit, "{} s", (table.now - began) / 1000);
}

/// ActionAsked, ActionDecided: the call waits in its process.
#[test]
pub(super) fn a_red_action_waits_for_a_person_and_the_decision_answers_the_call() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         asks t1 git push -> task t1 NEEDS_APPROVAL, run t1.1 paused, worker A working, asked answer_call 0
         yes              -> task t1 IN_PROGRESS, run t1.1 running, worker A working, asked answer_call 1
         done             -> worker A done",
    );
}

/// A denial refuses the call and returns to where it came from.
#[test]
pub(super) fn a_denied_red_action_refuses_the_call_and_the_work_goes_on() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         asks t1 git push
         no               -> task t1 IN_PROGRESS, run t1.1 running, asked answer_call 1",
    );
}

/// Yellow asks for interns only.
#[test]
pub(super) fn a_yellow_action_waits_for_a_person_only_where_an_intern_asks() {
    let script = "ticket t1
         fleet 1
         tree
         asks t1 curl x   -> task t1 IN_PROGRESS, asked answer_call 1";
    check(Table::new(config()), script);
    let intern =
        Table::with(|config| config.fleet.agent = machines::names::AgentName::new("intern").unwrap());
    check(
        intern,
        "ticket t1
         fleet 1
         tree
         asks t1 curl x   -> task t1 NEEDS_APPROVAL, run t1.1 paused",
    );
}

/// ActionUnanswered: the decision goes into the next prompt.
#[test]
pub(super) fn a_question_that_nobody_answers_ends_the_step_and_keeps_the_task_waiting() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         asks t1 git push
         unanswered    -> worker A idle, run t1.1 paused, task t1 NEEDS_APPROVAL, asked end_step 1
         yes           -> task t1 IN_PROGRESS, lease t1 none
         ended         -> lease t1 A, worker A ready, run t1.1 running",
    );
    assert!(table.world.task(&task("t1")).unwrap().work.notes.iter().any(|note| note.contains("allowed")));
}

/// LoopDetected and ToolFailures read the audit.
#[test]
pub(super) fn the_same_call_three_times_blocks_the_task() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         same-call
         same-call     -> task t1 IN_PROGRESS
         same-call     -> task t1 BLOCKED (loop), run t1.1 paused, worker A idle, asked end_step 1",
    );
}

#[test]
pub(super) fn three_failures_of_one_tool_block_the_task() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         call-fails
         call-fails    -> task t1 IN_PROGRESS
         call-fails    -> task t1 BLOCKED (tool_failures), run t1.1 paused, worker A idle",
    );
}

/// LimitPassed: nothing is tried again before a person changed something; then the same run goes on.
#[test]
pub(super) fn a_step_that_passes_a_limit_blocks_the_task_at_once() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         takes-too-much -> task t1 BLOCKED (limit), run t1.1 error, worker A idle
         retry-task t1  -> task t1 IN_PROGRESS, worker A ready, run t1.1 running",
    );
}

/// TurnLimit with its three ways out.
#[test]
pub(super) fn the_turn_limit_asks_a_person_and_continue_resumes_the_same_run() {
    let table = Table::with(|config| config.agents.values_mut().for_each(|agent| agent.max_turns = Some(2)));
    let table = check(
        table,
        "ticket t1
         fleet 1
         tree
         turn
         turn          -> run t1.1 paused, task t1 NEEDS_APPROVAL, worker A idle, asked end_step 1
         ended
         yes           -> run t1.1 running, task t1 IN_PROGRESS, worker A ready",
    );
    let run = table.world.run_of(&task("t1")).unwrap();
    assert_eq!((run.machine.inner().current_turn, run.machine.inner().max_turns), (2, 4));
}

#[test]
pub(super) fn complete_at_the_turn_limit_lets_the_gate_decide_without_a_worker() {
    let table = Table::with(|config| config.agents.values_mut().for_each(|agent| agent.max_turns = Some(1)));
    check(
        table,
        "ticket t1
         fleet 1
         tree
         turn          -> run t1.1 paused, task t1 NEEDS_APPROVAL
         ended
         complete      -> run t1.1 completed, task t1 IN_PROGRESS, asked run_gate 1, lease t1 none
         green         -> task t1 REVIEW",
    );
}

#[test]
pub(super) fn abort_at_the_turn_limit_blocks_the_task() {
    let table = Table::with(|config| config.agents.values_mut().for_each(|agent| agent.max_turns = Some(1)));
    check(
        table,
        "ticket t1
         fleet 1
         tree
         turn
         no            -> run t1.1 idle, task t1 BLOCKED (manual)",
    );
}

/// BudgetReached, BudgetRaised.
#[test]
pub(super) fn a_budget_that_would_be_passed_pauses_the_run_and_approval_raises_it() {
    let table = Table::with(|config| config.budget.task = Some(1_150));
    check(
        table,
        "ticket t1
         fleet 1
         tree
         turn
         step          -> task t1 NEEDS_APPROVAL, run t1.1 paused, worker A idle
         yes           -> task t1 IN_PROGRESS, run t1.1 running, worker A ready",
    );
}

/// BudgetRaised: the last step went far past the limit, and the limit once more would not do.
#[test]
pub(super) fn a_budget_that_a_person_raised_has_room_for_another_step() {
    let table = Table::with(|config| config.budget.task = Some(1_000));
    check(
        table,
        "ticket t1
         fleet 1
         tree
         dear-turn
         dear-turn     -> task t1 NEEDS_APPROVAL, run t1.1 paused, worker A idle
         ended
         yes           -> task t1 IN_PROGRESS, run t1.1 running, worker A ready",
    );
}

#[test]
pub(super) fn the_days_budget_is_one_question_for_all_and_nothing_is_claimed_meanwhile() {
    let table = Table::with(|config| config.budget.day = Some(2_050));
    let table = check(
        table,
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         dear-turn t1
         step t1       -> task t1 NEEDS_APPROVAL, task t2 IN_PROGRESS
         ticket t3     -> task t3 INBOX
         dear-turn t2
         step t2       -> task t2 NEEDS_APPROVAL",
    );
    assert_eq!(table.world.approvals.len(), 1);
    check(table, "yes t1 -> task t1 IN_PROGRESS, task t2 IN_PROGRESS");
}

/// Reservation: two steps side by side cannot pass a limit together.
#[test]
pub(super) fn what_is_set_aside_for_one_step_is_not_there_for_another() {
    let table = Table::with(|config| config.budget.day = Some(1_500));
    check(
        table,
        "ticket t1
         ticket t2
         fleet 2       -> task t1 IN_PROGRESS, task t2 INBOX, worker B idle",
    );
}

/// ChangesAsked: three times, and the fourth blocks.
#[test]
pub(super) fn the_fourth_request_for_changes_blocks_the_task() {
    let round = "tree
         done
         green         -> task t1 REVIEW
         changes       -> task t1 IN_PROGRESS\n";
    let table = check(Table::new(config()), &format!("ticket t1\nfleet 1\n{round}{round}{round}"));
    check(
        table,
        "tree
         done
         green
         changes       -> task t1 BLOCKED (review_cycles)
         unblock       -> task t1 IN_PROGRESS",
    );
}

/// LandingFailed counts no review cycle; the fourth blocks.
#[test]
pub(super) fn a_conflict_goes_back_to_the_task_and_the_fourth_blocks_it() {
    let round = "tree
         done
         green
         conflict      -> task t1 IN_PROGRESS\n";
    let table = check(auto(), &format!("ticket t1\nfleet 1\n{round}{round}{round}"));
    let table = check(
        table,
        "tree
         done
         green
         merge-red     -> task t1 BLOCKED (landing)",
    );
    assert_eq!(table.world.task(&task("t1")).unwrap().machine.review_cycles, 0);
}

/// LandingFailed: a conflict with a newer main is no failure of an agent that had solved the one before.
#[test]
pub(super) fn a_conflict_with_a_newer_main_is_not_counted_where_the_one_before_was_solved() {
    let round = "tree
         done
         green
         conflict t1 solved -> task t1 IN_PROGRESS\n";
    let table = check(auto(), &format!("ticket t1\nfleet 1\n{}", round.repeat(6)));
    assert_eq!(table.world.task(&task("t1")).unwrap().machine.landing_rounds, 0);
    check(
        table,
        "tree
         done
         green
         merge-green
         main-moved    -> task t1 DONE",
    );
}

/// GateConflict: what was sent back because of a conflict and conflicts still is not tested, reviewed or landed.
#[test]
pub(super) fn a_conflict_that_is_not_solved_comes_to_no_review() {
    let table = check(
        auto(),
        "ticket t1
         fleet 1
         tree
         done
         green
         conflict        -> task t1 IN_PROGRESS
         tree
         done
         still-conflicts -> worker A working, task t1 IN_PROGRESS
         done
         still-conflicts -> worker A working
         done
         still-conflicts -> worker A idle, run t1.2 paused, task t1 BLOCKED (landing)",
    );
    assert_eq!(table.world.task(&task("t1")).unwrap().machine.landing_rounds, 3);
    let waiting = crate::waiting::waiting(&table.world, &Default::default(), table.now);
    let text = &waiting.iter().find(|item| item.about.task == Some(task("t1"))).unwrap().text;
    assert!(text.contains("conflicts with main in a.rs"), "{text}");
}

/// What a person brings to REVIEW by hand while it conflicts is shown as a conflict, and not approved against the same main.
#[test]
pub(super) fn a_conflict_in_review_is_shown_and_its_approval_refused() {
    let mut table = check(
        auto(),
        "ticket t1
         fleet 1
         tree
         done
         green
         conflict      -> task t1 IN_PROGRESS",
    );
    let checklist = machines::task::Checklist {
        task_type: machines::task::TaskType::Task,
        items: vec![machines::task::ChecklistItem {
            item: "read".to_owned(),
            answer: Some("yes".to_owned()),
        }],
    };
    let task_type = table.world.task(&task("t1")).unwrap().machine.task_type;
    let payload = machines::task::Payload {
        deliverable: Some(machines::task::Deliverable { content: "it".to_owned(), artifacts: Vec::new() }),
        review_checklist: Some(machines::task::Checklist { task_type, ..checklist }),
        ..machines::task::Payload::default()
    };
    table.move_task(ann(), "t1", machines::task::Status::Review, payload).unwrap();
    let waiting = crate::waiting::waiting(&table.world, &Default::default(), table.now);
    let item = waiting.iter().find(|item| item.about.task == Some(task("t1"))).unwrap();
    assert!(item.text.starts_with("t1 conflicts with main in a.rs"), "{}", item.text);
    let refused = table.ann(Ask::Approve { id: task("t1"), tip: None, note: String::new() }).unwrap_err();
    assert_eq!(refused.code, "CONFLICT");
    assert!(refused.message.contains("conflicts with main in a.rs"), "{}", refused.message);
}

/// StepRepeated: the same words and an unchanged tree, three steps in a row.
#[test]
pub(super) fn an_agent_that_repeats_itself_and_changes_nothing_is_stopped() {
    check(
        auto(),
        "ticket t1
         fleet 1
         tree
         turn
         repeats            -> worker A working
         repeats            -> worker A working
         repeats t1 tree2   -> worker A working
         repeats t1 tree2   -> worker A working
         repeats t1 tree2   -> worker A idle, run t1.1 paused, task t1 BLOCKED (loop)
         retry-task         -> task t1 IN_PROGRESS",
    );
}

/// LandingRepeated.
#[test]
pub(super) fn a_main_that_was_moved_by_someone_else_is_merged_and_tested_again() {
    check(
        auto(),
        "ticket t1
         fleet 1
         tree
         done
         green
         merge-green
         main-elsewhere -> task t1 REVIEW, asked test_merge 1
         merge-green
         main-moved     -> task t1 DONE",
    );
}

/// LandingHeldUp: others land meanwhile.
#[test]
pub(super) fn a_checkout_in_the_way_holds_up_one_landing_and_no_other() {
    check(
        auto(),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         done t1
         done t2
         green t1
         green t2
         merge-green t1
         in-the-way t1  -> task t1 REVIEW, asked test_merge 1
         merge-green t2
         main-moved t2  -> task t2 DONE, task t1 REVIEW
         checkout       -> asked test_merge 1
         merge-green t1
         main-moved t1  -> task t1 DONE",
    );
}

/// PullRequestOpened: main is moved only when the remote's main has the change, and nobody else waits for it.
#[test]
pub(super) fn a_pull_request_holds_up_one_landing_until_it_is_merged() {
    check(
        auto(),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         done t1
         done t2
         green t1
         green t2
         offered t1     -> task t1 REVIEW, asked test_merge 1
         merge-green t2
         main-moved t2  -> task t2 DONE, task t1 REVIEW
         checkout       -> asked test_merge 1
         offered t1     -> task t1 REVIEW, asked test_merge 0
         ticket-closed t1 -> task t1 REVIEW
         retry-task t1  -> asked test_merge 1
         merge-green t1
         main-moved t1  -> task t1 DONE",
    );
}

/// A pull request that was closed unmerged is for a person to decide.
#[test]
pub(super) fn a_task_whose_pull_request_is_open_can_be_sent_back_or_canceled() {
    check(
        auto(),
        "ticket t1
         fleet 1
         tree
         done
         green
         offered
         changes        -> task t1 IN_PROGRESS, asked test_merge 0
         tree
         done
         green
         offered        -> task t1 REVIEW
         cancel         -> task t1 CANCELED, asked test_merge 0",
    );
}

/// RemoteInTheWay: it is tried again.
#[test]
pub(super) fn a_remote_that_does_not_answer_holds_up_one_landing_and_no_other() {
    check(
        auto(),
        "ticket t1
         ticket t2
         fleet 2
         tree t1
         tree t2
         done t1
         done t2
         green t1
         green t2
         remote-away t1 -> task t1 REVIEW, asked test_merge 1
         merge-green t2
         main-moved t2
         checkout       -> asked test_merge 1
         offered t1     -> task t1 REVIEW",
    );
}

/// Between "written down" and "landed".
#[test]
pub(super) fn what_is_written_down_to_land_can_be_neither_canceled_nor_changed() {
    check(
        auto(),
        "ticket t1
         fleet 1
         tree
         done
         green
         merge-green
         cancel        -> refused LANDING
         changes       -> refused LANDING
         main-moved    -> task t1 DONE
         cancel        -> refused NOT_ALLOWED",
    );
}

/// Canceled, from a task in work.
#[test]
pub(super) fn canceling_ends_the_run_frees_the_worker_and_saves_the_tree() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         cancel        -> task t1 CANCELED, run t1.1 idle, worker A idle, asked end_step 1, asked remove_tree 0
         ended         -> asked remove_tree 1, asked write_ticket 1
         removed       -> asked delete_branch 0",
    );
}

/// OtherTryDone.
#[test]
pub(super) fn the_first_try_that_is_done_cancels_the_others_and_frees_what_depends_on_any() {
    let table = check(
        auto(),
        "ticket t1
         ticket t2 t1
         try t1           -> task t1-try2 INBOX
         try t1-try2      -> task t1-try3 INBOX
         fleet 2          -> task t1 IN_PROGRESS, task t1-try2 IN_PROGRESS, task t2 INBOX
         tree t1-try2
         tree t1
         done t1-try2
         green t1-try2
         merge-green t1-try2
         main-moved t1-try2 -> task t1-try2 DONE, task t1 CANCELED, task t1-try3 CANCELED, task t2 IN_PROGRESS
         try t1           -> refused CLOSED",
    );
    let (first, second) =
        (table.world.task(&task("t1")).unwrap(), table.world.task(&task("t1-try2")).unwrap());
    assert_eq!((&first.title, &first.body), (&second.title, &second.body));
}

/// A task depends on what is to be done, not on who does it.
#[test]
pub(super) fn a_try_that_is_canceled_holds_nothing_up_while_another_is_open() {
    check(
        auto(),
        "ticket t1
         ticket t2 t1
         try t1
         cancel t1
         fleet 1          -> task t1-try2 IN_PROGRESS, task t2 INBOX",
    );
}

/// TicketClosed.
#[test]
pub(super) fn a_ticket_closed_by_hand_cancels_what_has_not_begun_and_blocks_what_has() {
    check(
        Table::new(config()),
        "ticket t1
         ticket t2 t1
         fleet 1          -> task t1 IN_PROGRESS, task t2 INBOX
         ticket-closed t1 -> task t1 BLOCKED (manual), worker A idle, run t1.1 idle
         ticket-closed t2 -> task t2 CANCELED",
    );
}

/// A reopened ticket is a new task, linked to the old.
#[test]
pub(super) fn a_ticket_that_is_opened_again_is_a_new_task() {
    let table = check(
        Table::new(config()),
        "ticket t1
         ticket-closed t1 -> task t1 CANCELED
         ticket t1        -> task t1 CANCELED, task t1-r2 INBOX",
    );
    assert_eq!(table.world.task(&task("t1-r2")).unwrap().origin.reopens, Some(task("t1")));
}

/// TicketChanged.
#[test]
pub(super) fn a_changed_ticket_is_told_to_the_agent_with_the_next_step() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         ticket-changed t1 -> task t1 IN_PROGRESS",
    );
    assert_eq!(table.world.task(&task("t1")).unwrap().work.notes.len(), 1);
}

/// Lost: the task stays, three times.
#[test]
pub(super) fn the_third_lost_worker_blocks_the_task() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         lost          -> task t1 IN_PROGRESS, run t1.1 running, worker A ready
         tree
         lost
         tree
         lost          -> task t1 BLOCKED (lost_workers), worker A idle",
    );
}

/// EndedByPerson.
#[test]
pub(super) fn kill_saves_the_work_and_blocks_the_task_and_assign_goes_on() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         kill A        -> worker A idle, task t1 BLOCKED (manual), run t1.1 idle, asked end_step 1, asked save_work 0
         assign t1 A   -> refused NOT_CLAIMABLE
         ended         -> asked save_work 1
         saved
         assign t1 A   -> task t1 IN_PROGRESS, worker A ready, run t1.2 starting",
    );
}

#[test]
pub(super) fn cleanup_waits_for_the_process_unless_it_is_forced() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         cleanup A       -> refused NOT_ALLOWED
         cleanup-force A -> worker A idle, task t1 BLOCKED (manual)
         ended           -> asked remove_tree 1",
    );
}

#[test]
pub(super) fn clean_removes_the_worker_and_keeps_its_work() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         clean A       -> worker A gone, task t1 BLOCKED (manual), asked end_step 1
         ended         -> asked remove_tree 1",
    );
}

/// A stuck worker blocks nobody: another takes its task up.
#[test]
pub(super) fn a_task_of_a_stuck_worker_can_be_taken_up_by_another() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         done
         red
         done
         red
         done
         red
         done
         red           -> worker A stuck, task t1 BLOCKED (stuck), worker B gone
         spawn B
         assign t1 B   -> worker B ready, worker A idle, lease t1 B",
    );
}

/// Recovered.
#[test]
pub(super) fn after_a_restart_each_worker_goes_on_by_what_was_found_of_it() {
    let begin = "ticket t1
         fleet 1
         tree
         turn\n";
    let case = |line: &str| check(Table::new(config()), &format!("{begin}{line}"));
    case("recover A clean under-way            -> worker A working, asked start_step 1");
    case("recover A clean resumable            -> worker A working, asked start_step 1");
    case("recover A clean said-done            -> worker A done, asked run_gate 1");
    case(
        "recover A missing under-way          -> worker A idle, asked end_step 1, asked start_step 0, lease t1 none",
    );
    case("recover A missing                    -> worker A ready, task t1 IN_PROGRESS, run t1.1 running");
    let saved =
        case("recover A dirty resumable        -> worker A working, asked save_work 1, asked start_step 0");
    check(saved, "saved -> asked start_step 1");
}

/// A worker is what the settings know: one whose agent is gone is replaced where it holds nothing.
#[test]
pub(super) fn an_idle_worker_whose_agent_is_no_longer_configured_is_replaced() {
    let mut table = check(Table::new(config()), "fleet 1 -> worker A idle");
    let mut changed = config();
    let agent = machines::names::AgentName::new("other").unwrap();
    changed.agents = [(agent.clone(), Default::default())].into_iter().collect();
    changed.fleet.agent = agent.clone();
    table.tell(crate::Actor::System, crate::Ask::Configure { config: Box::new(changed) }).unwrap();
    let table = check(table, "fleet 1 -> worker A idle");
    assert_eq!(table.world.worker(&machines::names::WorkerName::new("A").unwrap()).unwrap().agent, agent);
}

/// The fleet stops, and what was under way goes on at the next start.
#[test]
pub(super) fn a_stopped_fleet_starts_nothing_and_goes_on_where_it_was() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         stop
         step          -> worker A working, asked start_step 0
         fleet 1       -> worker A working, asked start_step 1",
    );
}

/// No room on the disk: not claimed, and `why` says so.
#[test]
pub(super) fn nothing_is_claimed_while_the_disk_is_full() {
    let mut table = check(Table::new(config()), "ticket t1");
    let system = crate::Actor::System;
    let full = Some("3 MB left".into());
    table.tell(system.clone(), crate::Ask::SeeDisk { full }).unwrap();
    let mut table = check(table, "fleet 1 -> task t1 INBOX, worker A idle");
    let why = crate::why::of_task(&table.world, &task("t1"), 0).unwrap();
    assert!(
        why.iter()
            .any(|guard| guard.guard.name() == "diskRoom" && !guard.holds && guard.detail == "3 MB left")
    );
    table.tell(system, crate::Ask::SeeDisk { full: None }).unwrap();
    check(table, "fleet 1 -> task t1 IN_PROGRESS, worker A ready");
}

/// A fleet that stands still says why: nobody started it, or a person must look at those who are stuck.
#[test]
pub(super) fn a_task_that_waits_for_a_place_is_told_what_the_workers_do() {
    let idle = |table: &Table, id: &str, name: &str| {
        let why = crate::why::of_task(&table.world, &task(id), 0).unwrap();
        let guard = why.into_iter().find(|guard| guard.guard.name() == name).unwrap();
        (guard.holds, guard.detail)
    };
    let table = check(Table::new(config()), "ticket t1");
    let expected = (false, "the fleet is not running".to_owned());
    assert_eq!(idle(&table, "t1", "fleetRunning"), expected);
    assert_eq!(idle(&table, "t1", "workerIdle").1, "0 idle workers");
    let table = check(
        table,
        "fleet 1
         tree
         done
         red
         done
         red
         done
         red
         done
         red           -> worker A stuck, worker B gone
         ticket t2     -> task t2 IN_PROGRESS, worker B ready
         ticket t3     -> task t3 INBOX",
    );
    let expected = "no worker is idle: 1 at work, 1 stuck";
    assert_eq!(idle(&table, "t3", "workerIdle"), (false, expected.to_owned()));
    let next = |why: Option<Vec<crate::why::Guard>>, name: &str| {
        let guard = why.unwrap().into_iter().find(|guard| guard.guard.name() == name).unwrap();
        guard.next.iter().map(|choice| choice.code()).collect::<Vec<_>>()
    };
    let of_task = crate::why::of_task(&table.world, &task("t1"), 0);
    assert_eq!(next(of_task, "notBlocked"), ["retry_task", "restart_task"]);
    let of_worker = crate::why::of_worker(&table.world, &worker("A"), 0);
    assert_eq!(next(of_worker, "notStuck"), ["retry_worker", "kill_worker"]);
}

/// Whoever asks why is told what leads on, and times as people count them.
#[test]
pub(super) fn why_says_what_leads_on() {
    let of = |table: &Table, name: &str| {
        let of_task = crate::why::of_task(&table.world, &task("t1"), table.now).unwrap();
        of_task
            .into_iter()
            .find(|guard| guard.guard.name() == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .detail
    };
    let table = check(
        Table::with(|config| config.fleet.review = crate::config::Review::Human),
        "ticket t1
         fleet 1
         tree
         done
         green         -> task t1 REVIEW",
    );
    assert_eq!(of(&table, "approved"), "review = \"human\"");
    assert_eq!(of(&table, "fleetRunning"), "the fleet is at work");
    let table = check(Table::new(config()), "ticket t1\nfleet 1\ntree\nfails -> worker A working");
    let next = of(&table, "backoffOver");
    assert!(next.starts_with("broke; the next try is due in ") && next.ends_with(" s"), "{next}");
}

/// Caps: not claimed, and `why` says which.
#[test]
pub(super) fn no_more_is_begun_than_the_caps_allow() {
    let script = "ticket t1
         ticket t2
         ticket t3
         fleet 3       -> task t1 IN_PROGRESS, task t2 IN_PROGRESS, task t3 INBOX, worker C idle";
    let by_status = check(Table::with(|config| config.policy.cap_in_progress = Some(2)), script);
    let by_agent = check(Table::with(|config| config.policy.cap_per_agent = Some(2)), script);
    for (table, name) in [(by_status, "statusCap"), (by_agent, "agentCap")] {
        let why = crate::why::of_task(&table.world, &task("t3"), 0).unwrap();
        assert!(why.iter().any(|guard| guard.guard.name() == name && !guard.holds), "{name}: {why:?}");
    }
}

/// An agent's own budget holds over all its tasks.
#[test]
pub(super) fn an_agent_that_has_no_room_left_claims_nothing() {
    let table = Table::with(|config| config.agents.values_mut().for_each(|agent| agent.budget = Some(1_500)));
    let table = check(
        table,
        "ticket t1
         ticket t2
         fleet 2       -> task t1 IN_PROGRESS, task t2 INBOX",
    );
    let why = crate::why::of_task(&table.world, &task("t2"), 0).unwrap();
    assert!(why.iter().any(|guard| guard.guard.name() == "agentBudget" && !guard.holds), "{why:?}");
}

/// What is set aside for a step is no cost, and a budget counts it as long as nobody knows better.
#[test]
pub(super) fn a_step_of_unknown_price_costs_nothing_and_stays_set_aside() {
    let mut table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree",
    );
    let usage = crate::command::Usage { cost: None, input_tokens: 10, output_tokens: 1 };
    let what = crate::Happened::Turn { turn: 1, calls: vec![], output: None, usage };
    table.outcome("start_step", "t1", what).unwrap();
    let world = &table.world;
    let spend = &world.task(&task("t1")).unwrap().spend;
    let unpriced = crate::budget::unpriced(world, &spend.unknown);
    assert_eq!((spend.cost, spend.input_tokens, unpriced.unknown_steps, unpriced.held), (0, 10, 1, 1_000));
    assert_eq!((unpriced.estimated_steps, unpriced.counted()), (0, 1_000));
}

/// The agent's other steps say what a token costs; then nothing is set aside for the one without a price.
#[test]
pub(super) fn a_step_of_unknown_price_is_estimated_by_the_agents_other_steps() {
    use crate::Happened;
    use crate::command::Usage;
    let mut table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree",
    );
    // Turns name tokens, and only the end of a step names its price, as an agent that is paid by the token does.
    let turn = |turn| {
        let usage = Usage { cost: Some(0), input_tokens: 900, output_tokens: 100 };
        Happened::Turn { turn, calls: vec![], output: None, usage }
    };
    let end = |cost| {
        let usage = Usage { cost, input_tokens: 0, output_tokens: 0 };
        Happened::StepFinished {
            ending: StepEnding::NotDone,
            output: String::new(),
            tip: None,
            tree: None,
            usage,
        }
    };
    table.outcome("start_step", "t1", turn(1)).unwrap();
    table.outcome("start_step", "t1", end(None)).unwrap();
    let spend = |table: &Table| {
        let spend = table.world.task(&task("t1")).unwrap().spend.clone();
        let unpriced = crate::budget::unpriced(&table.world, &spend.unknown);
        (spend.cost, unpriced.estimated_steps, unpriced.estimated, unpriced.held)
    };
    assert_eq!(spend(&table), (0, 0, 0, 1_000));
    table.outcome("start_step", "t1", turn(2)).unwrap();
    // Nobody knows yet what this one costs.
    assert_eq!(spend(&table), (0, 0, 0, 1_000));
    table.outcome("start_step", "t1", turn(3)).unwrap();
    table.outcome("start_step", "t1", end(Some(500))).unwrap();
    // 2000 tokens for 500: 1000 tokens are 250.
    assert_eq!(spend(&table), (500, 1, 250, 0));
}

fn with_main() -> Table {
    Table::with(|config| config.tests = Some(smol_str::SmolStr::new_static("s1")))
}

/// MainTestsAsked, MainGreen: nothing is claimed before main is known to pass; known once, they are not run again.
#[test]
pub(super) fn no_task_is_claimed_before_main_passes_its_own_tests() {
    check(
        with_main(),
        "fleet 1       -> asked test_main 0
         ticket t1     -> task t1 INBOX, asked test_main 1
         main-green    -> task t1 IN_PROGRESS, asked test_main 0, asked prepare_tree 1
         tree          -> asked start_step 1
         stop
         fleet 1       -> asked test_main 0
         ticket t2     -> asked test_main 0",
    );
}

/// MainRed: tried again when main moves, the settings change, a person asks, or the fleet starts again.
#[test]
pub(super) fn no_agent_starts_while_main_fails_its_own_tests() {
    check(
        with_main(),
        "ticket t1
         fleet 1       -> asked test_main 1
         main-red      -> task t1 INBOX, asked test_main 0
         main-at m0    -> asked test_main 0
         main-at m1    -> asked test_main 1
         main-red      -> asked test_main 0
         test-main     -> asked test_main 1
         main-red      -> asked test_main 0
         stop
         fleet 1       -> asked test_main 1
         main-red      -> task t1 INBOX
         settings none -> task t1 IN_PROGRESS
         settings s2   -> asked test_main 1",
    );
}

/// A change of the settings while agents are at work: their next step and gate wait.
#[test]
pub(super) fn changed_settings_hold_up_the_next_step_and_gate_until_main_passes() {
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         tree
         turn
         settings s0   -> asked test_main 1
         done          -> worker A done, asked run_gate 0
         settings s1   -> asked run_gate 1
         red           -> worker A working, asked start_step 1",
    );
}

/// TestsDoubted: main decides whose fault it is.
#[test]
pub(super) fn a_gate_whose_tests_could_not_be_collected_is_the_agents_only_where_main_passes() {
    let at_gate = "ticket t1
         fleet 1
         main-green
         tree
         turn
         done
         in-doubt      -> worker A done, asked test_main 1, asked start_step 0, asked run_gate 0";
    check(check(with_main(), at_gate), "main-green -> worker A working, asked start_step 1");
    // Whoever starts again looks for itself.
    for found in ["clean", "missing"] {
        check(check(with_main(), at_gate), &format!("recover A {found} -> worker A done, asked run_gate 1"));
    }
    check(
        check(with_main(), at_gate),
        "main-red     -> worker A done, asked run_gate 0, asked start_step 0
         main-at m1   -> asked test_main 1
         main-green   -> worker A done, asked run_gate 1, asked start_step 0",
    );
}

/// TestsDoubted: main was found green before the task was taken up, and may be red by now. Nobody is blamed for that, and
/// what main costs is bounded: it is run again for the first red gate, and for the one after which no round is left.
#[test]
pub(super) fn a_red_gate_is_the_agents_only_if_main_passed_since_the_task_was_taken_up() {
    let at_gate = "ticket t1
         fleet 1
         main-known
         tree
         turn
         done
         red           -> worker A done, asked test_main 1, asked start_step 0, asked run_gate 0";
    check(
        check(with_main(), at_gate),
        "main-red      -> worker A done, asked run_gate 0, asked start_step 0
         main-at m1    -> asked test_main 1
         main-green    -> worker A done, asked run_gate 1, asked start_step 0",
    );
    let mut table = check(
        check(with_main(), at_gate),
        "main-green    -> worker A working, asked start_step 1
         minute",
    );
    for _ in 0..2 {
        table = check(
            table,
            "turn
             done
             red       -> worker A working, asked test_main 0, asked start_step 1
             minute",
        );
    }
    check(
        table,
        "turn
         done
         red           -> worker A done, asked test_main 1, asked start_step 0
         main-green    -> worker A stuck",
    );
    // A task that is taken up in the moment in which main passed is not in doubt.
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         tree
         turn
         done
         red           -> worker A working, asked test_main 0, asked start_step 1",
    );
}

/// TestsNotRun: no round is paid for what no agent can mend.
#[test]
pub(super) fn tests_that_cannot_be_started_block_the_task_and_are_not_sent_to_the_agent() {
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         tree
         turn
         done
         not-started   -> worker A done, asked test_main 1
         main-green    -> task t1 BLOCKED (environment), worker A idle, lease t1 none, asked start_step 0",
    );
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         done
         not-started   -> task t1 BLOCKED (environment), worker A idle, asked start_step 0",
    );
}

/// TestsDoubted of a merge: it stays in the queue, is tested once more after main, and only then given back.
#[test]
pub(super) fn a_merge_whose_tests_could_not_be_started_waits_for_main() {
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         tree
         turn
         done
         green
         approve            -> asked test_merge 1
         merge-not-started  -> task t1 REVIEW, queued t1 true, asked test_main 1, asked test_merge 0
         main-red           -> queued t1 true, asked test_merge 0
         main-at m1         -> asked test_main 1
         main-green         -> asked test_merge 1
         merge-not-started  -> queued t1 true, asked test_main 1
         main-green         -> asked test_merge 1
         merge-not-started  -> task t1 BLOCKED (environment), queued t1 false",
    );
}

/// TestsDoubted of a merge with a main that somebody else moved: main's own tests are run first. A main that they fail on is no
/// agent's fault; one that they pass on leaves the failure to the task.
#[test]
pub(super) fn a_red_merge_with_an_untested_main_waits_for_the_tests_of_main() {
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         tree
         turn
         done
         green
         approve            -> asked test_merge 1
         merge-red t1 m9    -> task t1 REVIEW, queued t1 true, asked test_main 1, asked test_merge 0
         main-red           -> task t1 REVIEW, queued t1 true, asked test_merge 0
         main-at m1         -> asked test_main 1
         main-green         -> asked test_merge 1
         merge-red          -> task t1 IN_PROGRESS, queued t1 false",
    );
}

/// A landing was tested as merged: main needs no test of its own after it.
#[test]
pub(super) fn main_that_our_landing_moved_is_known_to_pass() {
    check(
        with_main(),
        "ticket t1
         fleet 1
         main-green
         tree
         turn
         done
         green
         approve
         merge-green
         main-moved    -> task t1 DONE
         stop
         main-at m1
         ticket t2
         fleet 1       -> asked test_main 0, task t2 IN_PROGRESS",
    );
}

/// TicketFollows, and TicketSeen of one that somebody else has.
#[test]
pub(super) fn the_ticket_says_that_the_task_is_under_way_and_one_that_somebody_else_has_is_not_claimed() {
    let table = check(
        Table::new(config()),
        "ticket t1
         ticket-taken t2  -> task t2 INBOX
         fleet 2          -> task t1 IN_PROGRESS, task t2 INBOX, asked write_ticket 1
         written t1
         cancel t1        -> task t1 CANCELED, asked write_ticket 1
         written t1
         ticket t2        -> task t2 IN_PROGRESS, asked write_ticket 1
         left t2          -> asked write_ticket 0",
    );
    assert_eq!(table.world.tickets["t1"].status, machines::task::TicketStatus::Closed);
    assert_eq!(
        table.world.tickets["t2"].status,
        machines::task::TicketStatus::Open,
        "git has it: it is left as it was"
    );
}

/// A person's word takes a ticket that somebody else has.
#[test]
pub(super) fn a_person_assigns_a_ticket_that_is_in_progress() {
    check(
        Table::new(config()),
        "ticket-taken t1
         fleet 1          -> task t1 INBOX
         assign t1 A      -> task t1 IN_PROGRESS",
    );
}

/// What we close we know to be closed: opened again, it is a new task.
#[test]
pub(super) fn a_ticket_that_we_closed_and_that_is_opened_again_is_a_new_task() {
    check(
        Table::new(config()),
        "ticket t1
         cancel t1        -> task t1 CANCELED
         ticket t1        -> task t1 CANCELED
         written t1
         ticket t1        -> task t1-r2 INBOX",
    );
}

/// TicketGone and TicketBack.
#[test]
pub(super) fn a_ticket_whose_file_is_gone_is_neither_claimed_nor_worked_on_until_it_is_back() {
    check(
        Table::new(config()),
        "ticket t1
         ticket t2
         fleet 1          -> task t1 IN_PROGRESS
         ticket-gone t2   -> task t2 INBOX
         ticket-gone t1   -> task t1 BLOCKED (manual), worker A idle
         ticket-gone t1   -> task t1 BLOCKED (manual)
         ended
         ticket t1        -> task t1 IN_PROGRESS, worker A ready
         cancel t1        -> task t2 INBOX
         ticket t2        -> task t2 IN_PROGRESS",
    );
}

/// TaskProposed, ProposalAccepted: what an agent adds waits for a person, and a run proposes so many and no more.
#[test]
pub(super) fn what_an_agent_adds_waits_for_a_person() {
    let table = check(
        Table::with(|config| config.limits.proposals = 3),
        "ticket t1
         fleet 3
         tree
         proposes t1 p1  -> task p1 INBOX, lease p1 none
         proposes t1 p2  -> task p2 INBOX
         proposes t1 p3  -> task p3 INBOX
         proposes t1 p4  -> refused PROPOSALS
         accept p1       -> task p1 IN_PROGRESS
         accept p1       -> refused NOT_PROPOSED
         accept t1       -> refused NOT_PROPOSED
         cancel p2       -> task p2 CANCELED
         accept p2       -> refused CLOSED
         assign p3 C     -> task p3 IN_PROGRESS, lease p3 C
         proposes p1 p5  -> task p5 INBOX",
    );
    let why = crate::why::of_task(&table.world, &task("p5"), table.now).unwrap();
    let said = why.iter().find(|guard| !guard.holds).unwrap();
    assert_eq!(
        (said.guard.name(), said.detail.as_str()),
        ("proposalAccepted", "proposed by agent `coder` on `p1`")
    );
    assert_eq!(
        said.next,
        [Choice::AcceptProposal { task: task("p5") }, Choice::RefuseProposal { task: task("p5") }]
    );
}

/// TaskProposed under the policy that accepts: a chain of them ends, and a person's word begins a new one.
#[test]
pub(super) fn a_chain_of_tasks_that_only_the_policy_accepts_ends() {
    use crate::config::Proposals;
    check(
        Table::with(|config| {
            config.limits.proposals = 2;
            config.policy.proposals = Proposals::Accept;
        }),
        "ticket t1
         fleet 4
         tree
         proposes t1 p1  -> task p1 IN_PROGRESS
         proposes p1 p2  -> task p2 IN_PROGRESS
         proposes p2 p3  -> refused PROPOSALS
         proposes p1 p3  -> refused PROPOSALS",
    );
    check(
        Table::with(|config| config.policy.proposals = Proposals::Refuse),
        "ticket t1
         fleet 1
         proposes t1 p1  -> refused FORBIDDEN",
    );
}

/// EndedByPerson, Recovered: in whatever state the worker is.
#[test]
pub(super) fn a_worker_is_ended_or_found_again_in_every_state() {
    let stuck = "ticket t1\n fleet 1\n tree\n turn\n fails\n backoff\n fails\n backoff\n fails\n backoff\n fails\n backoff\n fails\n";
    let (ready, working, done) = (
        "ticket t1\n fleet 1\n",
        "ticket t1\n fleet 1\n tree\n",
        "ticket t1\n fleet 1\n tree\n turn\n done\n",
    );
    for (begin, state, line) in [
        (ready, "ready", "kill A          -> worker A idle, task t1 BLOCKED (manual), lease t1 none"),
        (ready, "ready", "cleanup-force A -> worker A idle, task t1 BLOCKED (manual), lease t1 none"),
        (ready, "ready", "clean A         -> worker A gone, task t1 BLOCKED (manual), lease t1 none"),
        (done, "done", "cleanup-force A   -> worker A idle, task t1 BLOCKED (manual), asked run_gate 0"),
        (done, "done", "clean A           -> worker A gone, task t1 BLOCKED (manual), asked run_gate 0"),
        (
            stuck,
            "stuck",
            "kill A          -> worker A idle, task t1 BLOCKED (stuck), asked save_work 1, run t1.1 idle",
        ),
        (
            stuck,
            "stuck",
            "cleanup A       -> worker A idle, task t1 BLOCKED (stuck), asked remove_tree 1, run t1.1 idle",
        ),
        (
            stuck,
            "stuck",
            "clean A         -> worker A gone, task t1 BLOCKED (stuck), asked remove_tree 1, run t1.1 idle",
        ),
        (ready, "ready", "recover A dirty -> asked save_work 1"),
        (ready, "ready", "recover A dirty said-done -> worker A done, asked save_work 1, asked run_gate 1"),
        (
            ready,
            "ready",
            "recover A dirty resumable -> worker A ready, asked save_work 1, asked prepare_tree 0",
        ),
        (ready, "ready", "recover A clean resumable -> worker A ready, asked prepare_tree 1"),
        (ready, "ready", "recover A missing -> run t1.1 running, asked prepare_tree 1"),
        (working, "working", "recover A dirty -> asked save_work 1"),
        (
            working,
            "working",
            "recover A dirty said-done -> worker A done, asked save_work 1, asked run_gate 1",
        ),
    ] {
        check(Table::new(config()), &format!("{begin} stop -> worker A {state}\n fleet 1\n {line}"));
    }
    let stopped =
        |begin: &str, line: &str| drop(check(Table::new(config()), &format!("{begin} stop\n {line}")));
    for line in ["recover A missing", "recover A clean", "recover A dirty"] {
        stopped(ready, &format!("{line} -> worker A idle, task t1 IN_PROGRESS, lease t1 none"));
        stopped(working, &format!("{line} -> worker A idle, task t1 IN_PROGRESS, lease t1 none"));
    }
    // Errors in a row are forgotten by a step that ends well, whichever way it ends.
    for line in ["turn\n step", "turn\n done"] {
        check(Table::new(config()), &format!("{working} turn\n fails\n backoff\n {line}"));
        check(
            Table::with(|config| config.fleet.max_steps = 1),
            &format!("{working} turn\n fails\n backoff\n {line}"),
        );
    }
    // A stuck worker of a person's own is free again when its task is canceled.
    let fails = "fails\n backoff\n ".repeat(4);
    check(
        Table::new(config()),
        &format!(
            "ticket t1\n spawn Zoe\n fleet 1\n tree\n turn\n {fails} fails -> worker Zoe stuck
             stop
             cancel -> worker Zoe idle"
        ),
    );
    // A gate that is known to be gone is run again, with or without its tree.
    for (line, comment) in [("recover A dirty", None), ("recover A missing", Some("recovery"))] {
        let mut table = check(Table::new(config()), done);
        let gate = table.effect("run_gate", "t1").unwrap();
        let error = "the runner was killed".to_owned();
        table
            .tell(Actor::System, Ask::Outcome(Outcome { effect: gate, what: Happened::Failed { error } }))
            .unwrap();
        let table = check(table, &format!("{line} -> worker A done, asked run_gate 1"));
        let said = table
            .world
            .task(&task("t1"))
            .unwrap()
            .comments
            .iter()
            .any(|said| Some(said.kind.as_str()) == comment);
        assert_eq!(said, comment.is_some(), "{line}");
    }
}

/// Every script, for whoever wants to see what a change of the tables would do to them.
pub(super) const ALL: &[fn()] = &[
    a_worker_is_ended_or_found_again_in_every_state,
    a_ticket_becomes_a_landed_task,
    a_task_waits_until_what_it_depends_on_is_done,
    the_fifth_failure_in_a_row_makes_a_worker_stuck_and_keeps_everything,
    a_step_that_waits_for_its_next_try_has_it_when_a_person_says_so,
    a_task_that_failed_is_tried_again_whoever_had_it,
    a_task_that_is_started_over_begins_on_main_with_a_new_session,
    a_task_that_no_review_settled_is_started_over_only_with_a_word,
    a_stuck_worker_takes_no_place_in_the_fleet,
    a_worker_that_a_person_made_stays,
    a_task_that_only_its_budget_keeps_from_a_worker_asks,
    a_day_that_has_no_room_asks_once_also_where_nothing_is_under_way,
    an_agents_budget_is_one_question_for_all_its_tasks,
    work_begins_under_a_budget_that_is_smaller_than_a_step,
    a_service_that_nothing_can_ask_is_tried_by_one_run_alone,
    credentials_that_are_refused_stop_the_agents_claims_and_count_no_error,
    a_few_calls_that_come_in_turn_are_a_loop,
    a_step_that_ends_well_forgets_the_failures_before_it,
    a_tree_that_cannot_be_made_is_a_failed_step,
    a_timeout_is_tried_once_more_with_a_fresh_session_before_it_counts,
    each_step_of_an_agent_that_cannot_resume_has_a_session_of_its_own,
    a_red_gate_sends_the_work_back_three_times,
    an_empty_diff_needs_a_person_under_every_policy,
    work_that_ran_out_of_steps_needs_a_person_under_every_policy,
    an_outage_suspends_the_run_and_goes_on_when_the_service_is_back,
    an_outage_that_lasts_frees_the_worker_and_keeps_the_task_for_later,
    after_a_usage_limit_one_agent_goes_first,
    a_red_action_waits_for_a_person_and_the_decision_answers_the_call,
    a_denied_red_action_refuses_the_call_and_the_work_goes_on,
    a_yellow_action_waits_for_a_person_only_where_an_intern_asks,
    a_question_that_nobody_answers_ends_the_step_and_keeps_the_task_waiting,
    the_same_call_three_times_blocks_the_task,
    three_failures_of_one_tool_block_the_task,
    a_step_that_passes_a_limit_blocks_the_task_at_once,
    the_turn_limit_asks_a_person_and_continue_resumes_the_same_run,
    complete_at_the_turn_limit_lets_the_gate_decide_without_a_worker,
    abort_at_the_turn_limit_blocks_the_task,
    a_budget_that_would_be_passed_pauses_the_run_and_approval_raises_it,
    a_budget_that_a_person_raised_has_room_for_another_step,
    the_days_budget_is_one_question_for_all_and_nothing_is_claimed_meanwhile,
    what_is_set_aside_for_one_step_is_not_there_for_another,
    the_fourth_request_for_changes_blocks_the_task,
    a_conflict_goes_back_to_the_task_and_the_fourth_blocks_it,
    a_conflict_with_a_newer_main_is_not_counted_where_the_one_before_was_solved,
    a_conflict_that_is_not_solved_comes_to_no_review,
    an_agent_that_repeats_itself_and_changes_nothing_is_stopped,
    a_main_that_was_moved_by_someone_else_is_merged_and_tested_again,
    a_checkout_in_the_way_holds_up_one_landing_and_no_other,
    what_is_written_down_to_land_can_be_neither_canceled_nor_changed,
    canceling_ends_the_run_frees_the_worker_and_saves_the_tree,
    a_ticket_closed_by_hand_cancels_what_has_not_begun_and_blocks_what_has,
    a_ticket_that_is_opened_again_is_a_new_task,
    a_changed_ticket_is_told_to_the_agent_with_the_next_step,
    the_third_lost_worker_blocks_the_task,
    kill_saves_the_work_and_blocks_the_task_and_assign_goes_on,
    cleanup_waits_for_the_process_unless_it_is_forced,
    clean_removes_the_worker_and_keeps_its_work,
    a_task_of_a_stuck_worker_can_be_taken_up_by_another,
    after_a_restart_each_worker_goes_on_by_what_was_found_of_it,
    an_idle_worker_whose_agent_is_no_longer_configured_is_replaced,
    a_stopped_fleet_starts_nothing_and_goes_on_where_it_was,
    nothing_is_claimed_while_the_disk_is_full,
    a_task_that_waits_for_a_place_is_told_what_the_workers_do,
    why_says_what_leads_on,
    no_more_is_begun_than_the_caps_allow,
    an_agent_that_has_no_room_left_claims_nothing,
    a_step_of_unknown_price_costs_nothing_and_stays_set_aside,
    a_step_of_unknown_price_is_estimated_by_the_agents_other_steps,
    no_task_is_claimed_before_main_passes_its_own_tests,
    no_agent_starts_while_main_fails_its_own_tests,
    changed_settings_hold_up_the_next_step_and_gate_until_main_passes,
    a_gate_whose_tests_could_not_be_collected_is_the_agents_only_where_main_passes,
    tests_that_cannot_be_started_block_the_task_and_are_not_sent_to_the_agent,
    a_merge_whose_tests_could_not_be_started_waits_for_main,
    a_red_merge_with_an_untested_main_waits_for_the_tests_of_main,
    main_that_our_landing_moved_is_known_to_pass,
    the_ticket_says_that_the_task_is_under_way_and_one_that_somebody_else_has_is_not_claimed,
    a_person_assigns_a_ticket_that_is_in_progress,
    a_ticket_that_we_closed_and_that_is_opened_again_is_a_new_task,
    a_ticket_whose_file_is_gone_is_neither_claimed_nor_worked_on_until_it_is_back,
    what_an_agent_adds_waits_for_a_person,
    a_chain_of_tasks_that_only_the_policy_accepts_ends,
    a_step_after_a_question_begins_when_it_is_answered_and_is_told_the_answer,
    an_answer_is_told_once_and_questions_have_a_limit,
    a_claimed_completion_holds_for_the_step_that_it_was_made_in,
    a_submitted_plan_takes_the_place_of_the_one_that_the_task_began_with,
    an_agent_that_asks_for_an_approval_itself_goes_on_in_the_same_step,
];

/// QuestionAsked and QuestionAnswered: nothing is moved, but no step begins before there is an answer, which it is told.
#[test]
pub(super) fn a_step_after_a_question_begins_when_it_is_answered_and_is_told_the_answer() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         questions t1 tabs?      -> task t1 IN_PROGRESS, run t1.1 running
         receives                -> refused NOT_ANSWERED
         step                    -> worker A working, asked start_step 0
         questions t1 or spaces? -> refused NO_STEP
         answers t1 spaces       -> asked start_step 1
         answers t1 tabs         -> refused ANSWERED",
    );
    let told = |effect: &std::sync::Arc<crate::Effect>| match &**effect {
        crate::Effect::StartStep {
            of: StepStart::Task { prompt: crate::effect::Prompt::Step { notes }, .. },
            ..
        } => Some(notes.clone()),
        _ => None,
    };
    let notes = table.world.effects.values().find_map(told).unwrap();
    assert_eq!(notes, ["You asked: tabs?\nThe answer of human:ann: spaces"]);
    check(
        table,
        "receives -> task t1 IN_PROGRESS
         done     -> worker A done",
    );
}

/// QuestionAnswered: an answer that reached the agent at work is not told once more, and more than a few questions wait.
#[test]
pub(super) fn an_answer_is_told_once_and_questions_have_a_limit() {
    let table = check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         questions t1 tabs?
         answers t1 spaces
         receives
         step -> asked start_step 1",
    );
    let untold = |effect: &std::sync::Arc<crate::Effect>| matches!(&**effect, crate::Effect::StartStep { of: StepStart::Task { prompt: crate::effect::Prompt::Step { notes }, .. }, .. } if notes.is_empty());
    assert!(table.world.effects.values().any(untold));
    let most = crate::world::REQUESTS_OPEN_MAX;
    check(
        table,
        &format!("{}questions t1 more? -> refused TOO_MANY_QUESTIONS", "questions t1 more?\n".repeat(most)),
    );
}

/// ClaimedDone: the claim of a step is worth what DONE at its end is, for that step and no other.
#[test]
pub(super) fn a_claimed_completion_holds_for_the_step_that_it_was_made_in() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         claims
         cut-off -> worker A working
         step    -> worker A working, asked start_step 1
         claims
         step    -> worker A done, asked run_gate 1
         claims  -> refused NO_STEP
         red     -> worker A working, asked start_step 1
         step    -> worker A working
         claims
         fails   -> run t1.1 error
         backoff
         step    -> worker A working",
    );
}

/// PlanSubmitted: the settings say whose plan it is.
#[test]
pub(super) fn a_submitted_plan_takes_the_place_of_the_one_that_the_task_began_with() {
    let begun = "ticket t1
         fleet 1
         tree
         turn";
    check(Table::new(config()), &format!("{begun}\nplans t1 look write test -> refused PLAN_GIVEN"));
    let table = check(
        Table::with(|config| config.fleet.plan_by_agent = true),
        &format!(
            "{begun}
             plans t1 look            -> refused INVALID_FIELD
             plans t1 look write test -> task t1 IN_PROGRESS"
        ),
    );
    let task = table.world.task(&task("t1")).unwrap();
    let plan = task.machine.work_plan.as_ref().unwrap();
    assert_eq!(
        (&*plan.bullets, plan.source),
        (&["look", "write", "test"].map(str::to_owned)[..], Some(machines::task::PlanSource::Agent))
    );
    assert_eq!(task.comments.last().unwrap().text, "- look\n- write\n- test");
}

/// ActionAsked and ActionDecided, by the agent itself: no program waits for the answer.
#[test]
pub(super) fn an_agent_that_asks_for_an_approval_itself_goes_on_in_the_same_step() {
    check(
        Table::new(config()),
        "ticket t1
         fleet 1
         tree
         turn
         wishes t1 deploy -> task t1 NEEDS_APPROVAL, run t1.1 paused, asked timer 1
         claims           -> refused NO_STEP
         yes              -> task t1 IN_PROGRESS, run t1.1 running, asked answer_call 0, asked start_step 1
         wishes t1 drop   -> task t1 NEEDS_APPROVAL
         no               -> task t1 IN_PROGRESS, run t1.1 running, asked answer_call 0
         wishes t1 wait   -> task t1 NEEDS_APPROVAL
         step             -> worker A idle, task t1 NEEDS_APPROVAL
         yes              -> task t1 IN_PROGRESS",
    );
}
