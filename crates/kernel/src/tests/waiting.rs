//! What waits: one scenario for each kind, and what the list says of it.

use super::table::*;
use crate::choice::Choice;
use crate::waiting::{Facts, Kind, UntrustedSettings, Waiting, waiting};
use crate::{Actor, Ask};
use machines::{Wire, run};

/// A project in which something of this kind waits; `t2` depends on `t1` wherever there is a `t1`.
fn scenario(kind: Kind) -> (Table, Facts) {
    const BEGUN: &str = "ticket t1\nticket t2 t1\nfleet 1\ntree\nturn";
    let plain = || Table::new(config());
    let limited = |config: &mut crate::Config, turns| {
        config.agents.values_mut().for_each(|agent| agent.max_turns = Some(turns));
    };
    let after = |table: Table, more: &str| check(table, &format!("{BEGUN}\n{more}"));
    let mut facts = Facts::default();
    let table = match kind {
        Kind::Review => after(plain(), "done\ngreen"),
        Kind::Approval => after(plain(), "asks t1 git push"),
        Kind::PausedRun => {
            let mut table = after(plain(), "turn");
            let run = machines::names::RunId::new("t1.1").unwrap();
            let event = run::Event::Pause { reason: run::PauseReason::UserInput, context: None };
            table.ann(Ask::RunEvent { run, event }).unwrap();
            table
        }
        Kind::Question => after(plain(), "questions t1 which\tof\tthem"),
        Kind::Architect => super::architect::one_that_gave_up(),
        Kind::Turn => super::rooms::an_agent_that_waits(),
        Kind::LostMember => super::rooms::an_agent_that_was_lost(),
        Kind::SpecChanges => super::architect::one_that_wants_changes(),
        Kind::AgentDisabled => {
            let mut table = check(plain(), "ticket t1");
            let agent = table.world.config.fleet.agent.clone();
            table.ann(Ask::SwitchAgent { agent, enabled: false, reason: None }).unwrap();
            table
        }
        Kind::TurnLimit => after(Table::with(|config| limited(config, 2)), "turn"),
        Kind::Budget => after(Table::with(|config| config.budget.task = Some(1_150)), "step"),
        Kind::StuckWorker => after(plain(), &format!("{}fails", "fails\nbackoff\n".repeat(4))),
        Kind::BlockedTask => after(Table::with(|config| limited(config, 1)), "no"),
        Kind::DeadDependency => check(plain(), "ticket t1\nticket t2 t1\nticket t3 t2\ncancel t1"),
        Kind::CheckoutInTheWay => after(plain(), "done\ngreen\napprove\nmerge-green\nin-the-way"),
        Kind::PullRequest => after(plain(), "done\ngreen\napprove\noffered"),
        Kind::UntrustedSettings => {
            facts.untrusted_settings = Some(UntrustedSettings { gone: false, since: Some(plain().now + 5) });
            check(plain(), "ticket t1")
        }
        Kind::FullDisk => {
            let mut table = check(plain(), "ticket t1\nticket t2 t1");
            let full = Some("3 MB left".into());
            table.tell(Actor::System, Ask::SeeDisk { full }).unwrap();
            table
        }
        Kind::Outage => after(plain(), "outage"),
        Kind::RefusedCredentials => after(plain(), "bad-key"),
        Kind::MainTestsRed => check(plain(), "settings s1\nticket t1\nticket t2 t1\nfleet 1\nmain-red"),
        Kind::Proposal => after(plain(), "proposes t1 p1"),
        Kind::AgentMissing => {
            let mut table = check(plain(), "ticket t1\nticket t2 t1");
            let agent = Some(machines::names::AgentName::new("opus").unwrap());
            let new = crate::command::NewTask {
                id: Some(task("t3")),
                title: "x".to_owned(),
                agent,
                ..Default::default()
            };
            table.ann(Ask::AddTask(new)).unwrap();
            table
        }
        Kind::TicketGone => after(plain(), "ticket-gone t1"),
    };
    (table, facts)
}

fn told(waiting: &Waiting, began: crate::Millis) -> String {
    let about = &waiting.about;
    let ids = [
        about.task.as_ref().map(ToString::to_string),
        about.worker.as_ref().map(ToString::to_string),
        about.approval.as_ref().map(ToString::to_string),
        about.request.as_ref().map(ToString::to_string),
        about.service.as_ref().map(ToString::to_string),
        about.channel.as_ref().map(ToString::to_string),
        about.dependency.as_ref().map(ToString::to_string),
    ];
    let ids: Vec<String> = ids.into_iter().flatten().collect();
    let blocks: Vec<String> = waiting.blocks.iter().map(ToString::to_string).collect();
    let since = waiting.since.map_or("no time".to_owned(), |at| (at - began).to_string());
    let options: Vec<&str> = waiting.options.iter().map(Choice::code).collect();
    format!(
        "{} [{}] since {since} holds up [{}], for a {}: {}\n{}",
        waiting.kind,
        ids.join(" "),
        blocks.join(" "),
        waiting.who,
        waiting.text,
        options.join(", ")
    )
}

#[track_caller]
fn check_list(kind: Kind, expected: &str) {
    let (table, facts) = scenario(kind);
    let began = Table::new(config()).now;
    let list = waiting(&table.world, &facts, table.now);
    let list: Vec<String> = list.iter().map(|item| told(item, began)).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(list.join("\n"), expected.join("\n"));
}

#[test]
fn every_kind_comes_up_and_each_has_a_way_on_and_one_sentence() {
    for kind in Kind::ALL {
        let (table, facts) = scenario(*kind);
        let list = waiting(&table.world, &facts, table.now);
        let found: Vec<&Waiting> = list.iter().filter(|item| item.kind == *kind).collect();
        assert_eq!(found.len(), 1, "{kind}: {list:?}");
        assert!(!found[0].options.is_empty(), "{kind} has no way on");
        assert!(!found[0].text.contains('\n') && !found[0].text.contains("adj "), "{}", found[0].text);
    }
}

#[test]
fn a_choice_is_written_with_its_code_and_its_names_and_is_read_again() {
    let (table, facts) = scenario(Kind::DeadDependency);
    for choice in waiting(&table.world, &facts, table.now).into_iter().flat_map(|item| item.options) {
        let written = serde_json::to_value(&choice).unwrap();
        assert_eq!(written["code"], choice.code());
        assert!(Choice::CODES.contains(&choice.code()));
        assert_eq!(serde_json::from_value::<Choice>(written).unwrap(), choice);
    }
}

#[test]
fn nothing_waits_where_everything_is_at_work() {
    let table = check(Table::new(config()), "ticket t1\nticket t2 t1\nfleet 1\ntree\nturn");
    assert_eq!(waiting(&table.world, &Facts::default(), table.now), Vec::new());
}

#[test]
fn work_that_is_ready_waits_for_a_review() {
    check_list(
        Kind::Review,
        "review [t1] since 0 holds up [t1 t2], for a person: t1 is ready: Task t1
         show_review, approve_review, request_changes, cancel_task",
    );
}

#[test]
fn a_red_call_waits_for_an_approval() {
    check_list(
        Kind::Approval,
        "approval [t1 q6] since 0 holds up [t1 t2], for a person: t1: The agent asks to use Bash: git push
         approve_request, deny_request, show_request, approve_always",
    );
}

#[test]
fn a_run_that_a_person_paused_waits_to_be_resumed() {
    check_list(
        Kind::PausedRun,
        "paused_run [t1 q7] since 0 holds up [t1 t2], for a person: t1: Run t1.1 was paused by human:ann.
         resume_run, abort_run",
    );
}

#[test]
fn a_run_at_its_turn_limit_waits_for_more_turns_or_an_end() {
    check_list(
        Kind::TurnLimit,
        "turn_limit [t1 q7] since 0 holds up [t1 t2], for a person: t1: Run t1.1 has taken its 2 turns and is not complete.
         raise_limit, complete_as_is, deny_request",
    );
}

#[test]
fn a_budget_that_is_used_up_waits_to_be_raised() {
    check_list(
        Kind::Budget,
        "budget [t1 q6] since 0 holds up [t1 t2], for a person: t1: The task budget is reached: t1 has spent $0.0002 of $0.00115; a step sets $0.001 aside; approving adds $0.00115, or another amount
         raise_limit, deny_request",
    );
}

#[test]
fn a_stuck_worker_and_its_blocked_task_are_one_thing_to_decide() {
    check_list(
        Kind::StuckWorker,
        "stuck_worker [t1 A] since 30000 holds up [t1 t2], for a person: t1 is BLOCKED (stuck): Task t1
         explain_task, retry_worker, restart_task, kill_worker, cancel_task",
    );
}

#[test]
fn a_blocked_task_waits_with_all_that_depend_on_it() {
    check_list(
        Kind::BlockedTask,
        "blocked_task [t1] since 0 holds up [t1 t2], for a person: t1 is BLOCKED (manual): Task t1
         explain_task, retry_task, restart_task, cancel_task",
    );
}

#[test]
fn a_dependency_that_was_canceled_waits_to_be_removed() {
    check_list(
        Kind::DeadDependency,
        "dead_dependency [t2 t1] since 0 holds up [t2 t3], for a person: t2 waits for t1, which was canceled
         explain_task, remove_dependency, cancel_task",
    );
}

#[test]
fn a_checkout_in_the_way_of_a_landing_waits_for_a_person() {
    check_list(
        Kind::CheckoutInTheWay,
        "checkout_in_the_way [t1] since 0 holds up [t1 t2], for a person: t1 waits to land: your checkout has local changes in a.rs, run git stash
         explain_task, clear_checkout",
    );
}

#[test]
fn a_pull_request_waits_to_be_merged() {
    check_list(
        Kind::PullRequest,
        "pull_request [t1] since 0 holds up [t1 t2], for a person: t1 waits to land: its pull request https://host/pull/7 is to be merged
         show_review, retry_landing, request_changes, cancel_task",
    );
}

#[test]
fn settings_that_are_not_trusted_wait_and_hold_up_nothing() {
    check_list(
        Kind::UntrustedSettings,
        "untrusted_settings [] since 5 holds up [], for a person: adjutant.toml came in with an agent's branch and is not trusted; the previous settings stay in force
         trust_settings, show_settings",
    );
}

#[test]
fn a_full_disk_holds_up_all_that_nobody_has_begun() {
    check_list(
        Kind::FullDisk,
        "full_disk [] since 0 holds up [t1 t2], for a person: the disk is full, so no task is taken: 3 MB left
         check_machine, empty_trash",
    );
}

#[test]
fn a_service_that_is_away_waits_for_nobody() {
    check_list(
        Kind::Outage,
        "outage [model] since 0 holds up [t1 t2], for a service: model is unavailable (529 overloaded); tried again in 30 s
         retry_services",
    );
}

#[test]
fn credentials_that_are_refused_wait_for_a_person() {
    check_list(
        Kind::RefusedCredentials,
        "refused_credentials [model] since 0 holds up [t1 t2], for a person: model does not accept the credentials (401 invalid x-api-key)
         retry_services",
    );
}

#[test]
fn red_tests_of_main_hold_up_everything() {
    check_list(
        Kind::MainTestsRed,
        "main_tests_red [] since 0 holds up [t1 t2], for a person: the tests fail on main itself, so no agent starts: broken
         test_main",
    );
}

#[test]
fn a_proposal_waits_to_be_accepted() {
    check_list(
        Kind::Proposal,
        "proposal [p1] since 0 holds up [p1], for a person: p1 is proposed by agent `coder` on `t1`: More
         accept_proposal, refuse_proposal",
    );
}

#[test]
fn a_ticket_whose_file_is_gone_waits_for_it_and_not_for_a_retry() {
    check_list(
        Kind::TicketGone,
        "ticket_gone [t1] since 0 holds up [t1 t2], for a person: t1 waits for the file of ticket t1, which is gone: put it back
         explain_task, cancel_task",
    );
}

#[test]
fn a_task_for_an_agent_that_the_settings_do_not_have_waits_for_another() {
    check_list(
        Kind::AgentMissing,
        "agent_missing [t3] since 0 holds up [t3], for a person: t3 wants agent `opus`, which adjutant.toml does not have
         choose_agent, cancel_task",
    );
}

/// A question is not asked again once it was denied; what it holds up waits all the same.
#[test]
fn a_budget_that_was_not_raised_goes_on_waiting() {
    let table = check(
        Table::with(|config| config.budget.day = Some(2_050)),
        "ticket t1\nticket t2\nfleet 2\ntree t1\ntree t2\ndear-turn t1\nstep t1\nticket t3\nno t1",
    );
    let list = waiting(&table.world, &Facts::default(), table.now);
    let denied = list.iter().find(|item| item.kind == Kind::Budget).expect("it waits");
    assert!(denied.text.ends_with("raising it was denied: raise it in adjutant.toml"), "{}", denied.text);
    assert!(denied.blocks.iter().any(|id| id.as_str() == "t3"), "{:?}", denied.blocks);
}

/// One question stands for every task that waits for the same money; nothing is claimed meanwhile.
#[test]
fn the_days_budget_holds_up_every_open_task() {
    let table = check(
        Table::with(|config| config.budget.day = Some(2_050)),
        "ticket t1\nticket t2\nfleet 2\ntree t1\ntree t2\ndear-turn t1\nstep t1\nticket t3",
    );
    let list = waiting(&table.world, &Facts::default(), table.now);
    let blocks: Vec<&str> = list[0].blocks.iter().map(|id| id.as_str()).collect();
    assert_eq!((list.len(), list[0].kind, blocks), (1, Kind::Budget, vec!["t1", "t2", "t3"]));
}

#[test]
fn a_lead_may_decide_a_review_where_the_policy_says_so_and_no_person_must_look() {
    let who = |lead_may_complete, script: &str| {
        let table = Table::with(|config| config.policy.lead_may_complete = lead_may_complete);
        let table = check(table, &format!("ticket t1\nfleet 1\ntree\nturn\n{script}"));
        waiting(&table.world, &Facts::default(), table.now)[0].who.name()
    };
    assert_eq!(who(true, "done\ngreen"), "lead");
    assert_eq!(who(false, "done\ngreen"), "person");
    assert_eq!(who(true, "done\nempty\ndone\nempty"), "person");
}

/// What holds up more comes first, whatever its age; what waits longer comes before what waits less.
#[test]
fn what_holds_up_most_comes_first_and_then_what_waits_longest() {
    let mut table = check(
        Table::new(config()),
        "ticket t1\nticket t2\nticket t3\nticket t4 t3\nfleet 3\ntree t1\ntree t2\ntree t3\nasks t2 git push",
    );
    table.now += 1_000;
    let mut table = check(table, "asks t1 git push");
    table.now += 1_000;
    let table = check(table, "asks t3 git push");
    let list = waiting(&table.world, &Facts::default(), table.now);
    let order: Vec<&str> = list.iter().map(|item| item.about.task.as_ref().unwrap().as_str()).collect();
    assert_eq!(order, ["t3", "t2", "t1"]);
}
