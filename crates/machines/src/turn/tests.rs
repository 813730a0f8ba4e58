use super::*;
use crate::machine::step;
use crate::tests::{Script, play};
use crate::wire::Wire;
use proptest::prelude::*;

/// One event of each kind and of each way that a guard can go.
pub(crate) fn samples() -> Vec<Event> {
    let words = [
        "starts",
        "stops",
        "assigned",
        "removed",
        "granted 0 for 60",
        "TURN_COMPLETE among-others",
        "TURN_COMPLETE alone",
        "timeout",
        "timeout answered",
        "wait 20 for 300",
        "resolved 20",
        "wait_timeout",
        "override 20 to ACTIVE",
        "override 20 to QUEUED",
        "override 20 to IDLE",
        "interrupt 20 for 300 in interrupt",
        "interrupt 20 for 300 in inject",
        "disconnects",
    ];
    words.iter().map(|line| Turn::default().read(&line.split(' ').collect::<Vec<_>>())).collect()
}

/// Times in scripts are whole seconds.
impl Script for Turn {
    fn read(&self, words: &[&str]) -> Event {
        let at = || words[1].parse::<Millis>().unwrap() * 1000;
        let seconds = || words[3].parse().unwrap();
        match words[0] {
            "starts" => Event::AgentStarts,
            "stops" => Event::AgentStops,
            "assigned" => Event::Assigned,
            "removed" => Event::RemovedFromChannel,
            "granted" => Event::TurnGranted { at: at(), timeout_seconds: seconds() },
            "TURN_COMPLETE" => {
                Event::TurnComplete { alone: words[1] == "alone", auto: false, ended_by: None }
            }
            "timeout" => Event::Timeout { answered: words.len() > 1 },
            "wait" => Event::WaitRequested {
                at: at(),
                wait_seconds: seconds(),
                because: WaitReason::Requested,
                note: None,
            },
            "resolved" => Event::WaitResolved { at: at() },
            "wait_timeout" => Event::WaitTimeout,
            "override" => Event::HumanOverride { at: at(), to: State::read(words[3]).unwrap() },
            "interrupt" => Event::Interrupt {
                at: at(),
                wait_seconds: seconds(),
                mode: InterruptBehaviour::read(words[5]).unwrap(),
            },
            "disconnects" => Event::Disconnects { context: None },
            other => panic!("no event {other}"),
        }
    }
}

#[track_caller]
fn check(script: &str) -> Turn {
    play(Turn::default(), script)
}

/// A script from a place in the queue.
#[track_caller]
fn check_queued(script: &str) {
    play(Turn { state: Queued, ..Turn::default() }, script);
}

#[test]
fn an_agent_comes_and_goes_without_a_turn() {
    check(
        "assigned -> refused NOT_ALLOWED, allowed [agent_starts]
         starts -> IDLE []
         assigned -> QUEUED [joinQueue]
         removed -> IDLE [leaveQueue]
         stops -> OFFLINE []
         starts -> IDLE []
         assigned -> QUEUED [joinQueue]
         disconnects -> OFFLINE [leaveQueue, log agent lost, announce ⚠️ No agents available in this channel]
         starts -> IDLE []",
    );
}

/// In company the agent keeps its place; alone it rests until the next message.
#[test]
fn a_turn_that_ends_is_passed_on_or_rests() {
    check_queued(
        "TURN_COMPLETE alone -> refused NOT_ALLOWED, allowed [removed_from_channel, turn_granted, disconnects]
         granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         TURN_COMPLETE among-others -> QUEUED [consumeMessages, stopTimers, freeTurn, grantNext]
         granted 100 for 60 -> ACTIVE [setCurrent, startTimer 160000, notifyAgent]
         TURN_COMPLETE alone -> IDLE [consumeMessages, rest, stopTimers, freeTurn, leaveQueue]
         assigned -> QUEUED [joinQueue]",
    );
}

#[test]
fn a_turn_that_times_out_is_announced_and_keeps_its_place() {
    check_queued(
        "granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         timeout -> QUEUED [stopTimers, freeTurn, log turn timed out, announce ⏱️ [Agent] turn timed out, grantNext]
         granted 60 for 60 -> ACTIVE [setCurrent, startTimer 120000, notifyAgent]
         timeout answered -> QUEUED [stopTimers, freeTurn, log Agent completed response without TURN_COMPLETE, announce ⏱️ [Agent] turn timed out, grantNext]",
    );
}

/// Forty seconds were left when it began to wait; forty are left when it goes on.
#[test]
fn a_wait_keeps_the_turn_and_the_time_that_it_had_left() {
    check_queued(
        "granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         wait 20 for 300 -> WAITING [stopSilenceTimer, stopTimers, startTimer 320000]
         TURN_COMPLETE among-others -> refused NOT_ALLOWED, allowed [removed_from_channel, wait_resolved, wait_timeout, human_override, disconnects]
         resolved 100 -> ACTIVE [stopTimers, startTimer 140000]
         wait 130 for 300 -> WAITING [stopSilenceTimer, stopTimers, startTimer 430000]
         wait_timeout -> QUEUED [stopTimers, freeTurn, announce ⏱️ [Agent] waited too long and lost its turn, grantNext]",
    );
}

#[test]
fn a_person_gives_the_turn_back_or_takes_it_away() {
    check_queued(
        "granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         override 5 to QUEUED -> refused NOT_ALLOWED, allowed [removed_from_channel, TURN_COMPLETE, timeout, wait_requested, interrupt, disconnects]
         wait 10 for 300 -> WAITING [stopSilenceTimer, stopTimers, startTimer 310000]
         override 20 to IDLE -> refused INVALID_FIELD; to: an override leads to ACTIVE or QUEUED, allowed [removed_from_channel, wait_resolved, wait_timeout, human_override, disconnects]
         override 20 to ACTIVE -> ACTIVE [stopTimers, startTimer 70000]
         wait 30 for 300 -> WAITING [stopSilenceTimer, stopTimers, startTimer 330000]
         override 40 to QUEUED -> QUEUED [stopTimers, freeTurn, grantNext]",
    );
}

#[test]
fn only_the_mode_interrupt_pauses_a_turn() {
    check_queued(
        "granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         interrupt 10 for 300 in queue -> refused NOT_ALLOWED, allowed [removed_from_channel, TURN_COMPLETE, timeout, wait_requested, interrupt, disconnects]
         interrupt 10 for 300 in inject -> refused NOT_ALLOWED, allowed [removed_from_channel, TURN_COMPLETE, timeout, wait_requested, interrupt, disconnects]
         interrupt 10 for 300 in parallel -> refused NOT_ALLOWED, allowed [removed_from_channel, TURN_COMPLETE, timeout, wait_requested, interrupt, disconnects]
         interrupt 10 for 300 in interrupt -> WAITING [stopSilenceTimer, stopReply, stopTimers, startTimer 310000]
         resolved 20 -> ACTIVE [stopTimers, startTimer 70000]",
    );
}

#[test]
fn whoever_leaves_with_the_turn_passes_it_on() {
    check_queued(
        "granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         removed -> IDLE [stopTimers, freeTurn, leaveQueue, grantNext]
         assigned -> QUEUED [joinQueue]
         granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         disconnects -> OFFLINE [stopTimers, freeTurn, leaveQueue, log agent lost, announce ⚠️ [Agent] disconnected, skipping turn, grantNext, announce ⚠️ No agents available in this channel]
         starts -> IDLE []
         assigned -> QUEUED [joinQueue]
         granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         wait 10 for 300 -> WAITING [stopSilenceTimer, stopTimers, startTimer 310000]
         removed -> IDLE [stopTimers, freeTurn, leaveQueue, grantNext]
         assigned -> QUEUED [joinQueue]
         granted 0 for 60 -> ACTIVE [setCurrent, startTimer 60000, notifyAgent]
         wait 10 for 300 -> WAITING [stopSilenceTimer, stopTimers, startTimer 310000]
         disconnects -> OFFLINE [stopTimers, freeTurn, leaveQueue, log agent lost, grantNext, announce ⚠️ No agents available in this channel]",
    );
}

#[test]
fn the_agents_own_state_is_its_most_engaged_place() {
    assert_eq!(Turn::derived(false, [Active]), Offline);
    assert_eq!(Turn::derived(true, []), Idle);
    assert_eq!(Turn::derived(true, [Idle, Queued]), Queued);
    assert_eq!(Turn::derived(true, [Queued, Waiting]), Waiting);
    assert_eq!(Turn::derived(true, [Waiting, Active, Queued]), Active);
}

/// The source's keys and defaults, and the one that it needs and does not name.
#[test]
fn a_channels_rules_have_the_documented_defaults() {
    let expected = r#"{"defaultTimeoutSeconds":60,"waitTimeoutSeconds":300,"humanInterruptMode":"inject","announceTimeouts":true,"announceDisconnects":true,"autoDetectTurnEnd":false,"autoDetectSilenceSeconds":10}"#;
    assert_eq!(serde_json::to_string(&TurnConfig::default()).unwrap(), expected);
    assert_eq!(serde_json::from_str::<TurnConfig>("{}").unwrap(), TurnConfig::default());
    assert!(serde_json::from_str::<TurnConfig>(r#"{"timeout":1}"#).is_err());
}

#[test]
fn announcements_are_worded_as_documented() {
    let words: Vec<_> = Notice::ALL.iter().map(|notice| notice.name()).collect();
    assert_eq!(
        words,
        [
            "⚠️ [Agent] disconnected, skipping turn",
            "⏱️ [Agent] turn timed out",
            "⏱️ [Agent] waited too long and lost its turn",
            "⚠️ No agents available in this channel"
        ]
    );
    assert_eq!(LogMessage::WithoutTurnComplete.name(), "Agent completed response without TURN_COMPLETE");
}

#[test]
fn an_override_without_a_target_gives_the_turn_back() {
    let event: Event = serde_json::from_str(r#"{"type":"human_override","at":1}"#).unwrap();
    assert_eq!(event, Event::HumanOverride { at: 1, to: Active });
}

proptest! {
    /// Whatever the times in the events, a turn has its timer exactly while it runs, and never less than no time.
    #[test]
    fn time_left_is_never_negative(moves in prop::collection::vec((0usize..18, any::<Millis>(), any::<u32>()), 0..60)) {
        let mut turn = Turn { state: Queued, ..Turn::default() };
        for (choice, time, time_seconds) in moves {
            let mut event = samples()[choice].clone();
            if let Event::TurnGranted { at, timeout_seconds: seconds }
            | Event::WaitRequested { at, wait_seconds: seconds, .. }
            | Event::Interrupt { at, wait_seconds: seconds, .. } = &mut event {
                (*at, *seconds) = (time, time_seconds);
            }
            if let Event::WaitResolved { at } | Event::HumanOverride { at, .. } = &mut event {
                *at = time;
            }
            if let Ok(taken) = step(&turn, &event) {
                turn = taken.state;
            }
            prop_assert!(turn.left_millis.is_none_or(|left| left >= 0), "{turn:?}");
            prop_assert_eq!(turn.timeout_at.is_some(), turn.state == Active);
            prop_assert_eq!(turn.wait_until.is_some(), turn.state == Waiting);
        }
    }
}
