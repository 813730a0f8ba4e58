//! A fleet that stands still says why: when, once, and what it says.

use super::table::*;
use crate::event::Event;
use crate::standstill::{Reason, standstill};
use crate::waiting::Kind;
use crate::{Actor, Ask, Happened, Millis, Outcome, Timer};

const MINUTE: Millis = 60_000;

/// When the timer is due, counted from now.
fn due(table: &Table) -> Option<Millis> {
    let effect = table.world.timers.get(&Timer::Standstill)?;
    Some(table.world.effects[effect].due().unwrap() - table.now)
}

/// Lets the timer ring; what is said then, by kind, and whether it was said before.
fn said(table: &mut Table) -> Option<(Vec<Kind>, bool)> {
    let effect = table.world.timers.get(&Timer::Standstill).expect("the timer is set").clone();
    table.now = table.world.effects[&effect].due().unwrap();
    let outcome = Ask::Outcome(Outcome { effect, what: Happened::TimerDue });
    let commit = table.commit(Actor::System, outcome, None).unwrap();
    commit.events.iter().find_map(|event| match event {
        Event::StoodStill(said) => {
            let kinds = |reasons: &[Reason]| reasons.iter().map(|reason| reason.kind).collect();
            Some((kinds(&said.reasons), said.again))
        }
        _ => None,
    })
}

#[test]
fn a_fleet_whose_only_agent_asks_says_so_after_a_minute_and_once() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn");
    assert_eq!((due(&table), standstill(&table.world, table.now)), (None, vec![]), "an agent is at work");
    table = check(table, "asks t1 git push");
    assert_eq!(due(&table), Some(MINUTE));
    assert_eq!(said(&mut table), Some((vec![Kind::Approval], false)));
    assert_eq!(due(&table), None, "it is said once");
    // What moves nothing changes nothing.
    table.tell(Actor::System, Ask::SeeDisk { full: None }).unwrap();
    assert_eq!(due(&table), None);
    table = check(table, "yes");
    assert_eq!(standstill(&table.world, table.now), vec![], "the agent is at work again");
}

#[test]
fn a_fleet_that_goes_on_in_time_says_nothing() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn\nasks t1 git push");
    table.now += MINUTE - 1;
    table = check(table, "yes");
    assert_eq!((due(&table), table.world.standstill), (None, None));
}

#[test]
fn the_settings_say_how_long_it_stands_still_before_it_says_so() {
    let table = Table::with(|config| config.limits.standstill_seconds = 7);
    let table = check(table, "ticket t1\nfleet 1\nwritten\ntree\nturn\nasks t1 git push");
    assert_eq!(due(&table), Some(7_000));
}

#[test]
fn while_one_task_is_worked_on_another_that_waits_is_no_standstill() {
    let table = check(
        Table::new(config()),
        "ticket t1\nticket t2\nfleet 2\nwritten t1\nwritten t2\ntree t1\ntree t2\nturn t1\nturn t2\nasks t1 git push",
    );
    assert_eq!(due(&table), None);
    // The gate of the other is work too; then it waits for its review, and nothing is left.
    let table = check(table, "done t2");
    assert_eq!(due(&table), None);
    let table = check(table, "green t2");
    assert_eq!(due(&table), Some(MINUTE));
}

#[test]
fn it_is_said_again_when_it_stands_still_for_something_else() {
    let mut table = check(
        Table::new(config()),
        "ticket t1\nticket t2\nfleet 2\nwritten t1\nwritten t2\ntree t1\ntree t2\ndone t1\ngreen t1\ndone t2\ngreen t2",
    );
    assert_eq!(said(&mut table), Some((vec![Kind::Review, Kind::Review], false)));
    table = check(table, "cancel t2\nwritten t2\nremoved t2");
    assert_eq!(due(&table), Some(MINUTE), "one of the two is left");
    assert_eq!(said(&mut table), Some((vec![Kind::Review], false)));
    table = check(table, "cancel t1\nwritten t1\nremoved t1");
    assert_eq!(due(&table), None, "nothing is left to do");
}

/// The first moment counts: whatever comes to wait meanwhile does not put it off.
#[test]
fn what_changes_meanwhile_does_not_put_it_off() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn\nasks t1 git push");
    table.now += MINUTE / 2;
    table = check(table, "ticket t9 gone");
    assert_eq!(due(&table), Some(MINUTE / 2));
    assert_eq!(said(&mut table), Some((vec![Kind::Approval, Kind::DeadDependency], false)));
}

#[test]
fn a_dead_dependency_and_a_blocked_task_are_reasons_and_a_proposal_is_none() {
    let table = check(
        Table::new(config()),
        "ticket t1\nticket t2 t1\nfleet 1\nwritten t1\ntree t1\nturn t1\nproposes t1 p1\ncancel t1",
    );
    let table = check(table, "ended t1\nwritten t1\nremoved t1");
    let list = standstill(&table.world, table.now);
    assert_eq!(
        Reason::all_of(&list).iter().map(|reason| reason.kind).collect::<Vec<_>>(),
        [Kind::DeadDependency]
    );
    let mut only =
        check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn\nproposes t1 p1\ncancel t1");
    only = check(only, "ended t1\nwritten t1\nremoved t1");
    assert_eq!(due(&only), None, "what nobody wants yet is no work");
}

/// What finds out whether a service is back comes to nothing as long as it is not: the outage is one standstill.
#[test]
fn an_outage_is_said_once_however_often_the_service_is_tried() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn\noutage");
    assert_eq!(due(&table), Some(MINUTE));
    table = check(table, "poll");
    assert_eq!(due(&table), Some(MINUTE / 2), "asking for its health is no work");
    table = check(table, "nothing-to-ask -> run t1.1 running");
    assert_eq!(due(&table), Some(MINUTE / 2), "a run that tries alone is none either");
    table = check(table, "outage");
    assert_eq!(said(&mut table), Some((vec![Kind::Outage], false)));
    table = check(table, "poll\nnothing-to-ask\npoll\nnothing-to-ask -> run t1.1 running\noutage");
    assert_eq!(due(&table), None);
}

#[test]
fn a_checkout_in_the_way_is_said_once_however_often_the_landing_is_tried() {
    let mut table = check(
        Table::new(config()),
        "ticket t1\nfleet 1\nwritten\ntree\nturn\ndone\ngreen\napprove\nmerge-green\nin-the-way",
    );
    let since = |table: &Table| standstill(&table.world, table.now)[0].since;
    let first = since(&table);
    assert_eq!(due(&table), Some(MINUTE));
    table = check(table, "checkout -> asked test_merge 1");
    assert_eq!(due(&table), Some(MINUTE / 2), "a try is no work");
    table = check(table, "merge-green\nin-the-way");
    assert_eq!((due(&table), since(&table)), (Some(MINUTE / 2), first), "it waits since the first try");
    assert_eq!(said(&mut table), Some((vec![Kind::CheckoutInTheWay], false)));
    table = check(table, "checkout\nmerge-green\nin-the-way");
    assert_eq!(due(&table), None);
    // A landing that gets through leaves nothing in the way.
    table = check(table, "checkout\nmerge-green\nmain-moved -> task t1 DONE");
    assert!(table.world.task(&task("t1")).unwrap().in_the_way().is_none());
}

#[test]
fn a_fleet_that_is_started_anew_says_it_again_and_knows_that_it_was_said() {
    let mut table = check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn\ndone\ngreen");
    assert_eq!(said(&mut table), Some((vec![Kind::Review], false)));
    table = check(table, "stop");
    assert_eq!(due(&table), None, "nobody waits for a fleet that does not run");
    table = check(table, "fleet 1");
    assert_eq!(said(&mut table), Some((vec![Kind::Review], true)));
    // A fleet that died has not said that it stops; the next one starts all the same.
    table = check(table, "fleet 1");
    assert_eq!(said(&mut table), Some((vec![Kind::Review], true)));
}

/// The timer is an effect: a fleet that dies in between leaves it in the log, and the next one finds it.
#[test]
fn the_timer_is_in_the_log_and_goes_with_the_standstill() {
    let table = check(Table::new(config()), "ticket t1\nfleet 1\nwritten\ntree\nturn\ndone\ngreen");
    let timer = table.world.timers.get(&Timer::Standstill).cloned().expect("it is set");
    assert!(table.world.effects.contains_key(&timer));
    let table = check(table, "changes -> task t1 IN_PROGRESS");
    assert!(!table.world.effects.contains_key(&timer), "its agent is at work again");
}
