use super::*;
use crate::architect::Architect;
use crate::run::Run;
use crate::run::tests::fresh;
use crate::tests::Script;
use proptest::prelude::*;

fn outage() -> Suspension {
    Suspension { service: "anthropic".into(), since: 1_000, resets_at: None, until: 901_000 }
}

fn run_event(line: &str) -> Wrapped<run::Event> {
    match line {
        "SUSPEND" => Wrapped::Suspend(outage()),
        "RESTORE" => Wrapped::Restore,
        "SUSPEND_TIMEOUT" => Wrapped::Expire,
        line => Wrapped::Inner(fresh().read(&line.split(' ').collect::<Vec<_>>())),
    }
}

/// The states that a run or its refusals go through on these events.
fn states(script: &str) -> String {
    let mut run = Suspendable::Live(fresh());
    let came = script.split(", ").map(|line| match run.advance(&run_event(line), None) {
        Ok(_) => run.name().to_owned(),
        Err(refusal) => format!("{} {}", refusal.code, refusal.allowed.join("/")),
    });
    came.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_run_is_suspended_and_goes_on_where_it_was() {
    assert_eq!(
        states("START, SUSPEND, STEP 1, RESTORE, STEP 1, PAUSE user_input, SUSPEND, RESUME, RESTORE, RESUME"),
        "starting, suspended, NOT_ALLOWED RESTORE/SUSPEND_TIMEOUT/ABORT, starting, running, paused, suspended, \
         NOT_ALLOWED RESTORE/SUSPEND_TIMEOUT/ABORT, paused, running"
    );
}

#[test]
fn it_is_never_entered_twice_nor_from_a_state_of_rest() {
    assert_eq!(
        states("SUSPEND, RESTORE, START, SUSPEND, SUSPEND, RESTORE, STEP 1, COMPLETE 1, SUSPEND"),
        "NOT_ALLOWED START, NOT_ALLOWED START, starting, suspended, NOT_ALLOWED RESTORE/SUSPEND_TIMEOUT/ABORT, \
         starting, running, completed, NOT_ALLOWED START"
    );
}

#[test]
fn an_outage_that_lasts_too_long_is_an_error_to_recover_from() {
    assert_eq!(
        states("START, SUSPEND, SUSPEND_TIMEOUT, RESTORE, RESUME"),
        "starting, suspended, error, NOT_ALLOWED RESUME/ABORT/SUSPEND, running"
    );
    let mut run = Suspendable::Live(fresh());
    let mut effects = Vec::new();
    for line in ["START", "SUSPEND", "SUSPEND_TIMEOUT"] {
        effects = run.advance(&run_event(line), None).unwrap();
    }
    assert_eq!(
        crate::tests::effects(&effects),
        "[agent:error service anthropic stayed unavailable SERVICE_UNAVAILABLE true, state:update error 0]"
    );
}

#[test]
fn a_cancellation_passes_through_the_wrapper() {
    assert_eq!(states("START, SUSPEND, ABORT, SUSPEND"), "starting, suspended, idle, NOT_ALLOWED START");
}

/// What cannot be recovered in DISPATCHING has this way to ERROR and no other.
#[test]
fn an_architect_in_dispatching_reaches_error_through_the_wrapper() {
    let inner =
        Architect { state: architect::State::Dispatching, spec_in_work: true, ..Architect::default() };
    for last in [Wrapped::Expire, Wrapped::Inner(architect::Event::Abandon { reason: "lost".into() })] {
        let mut architect = Suspendable::Live(inner.clone());
        architect.advance(&Wrapped::Suspend(outage()), None).unwrap();
        assert_eq!(architect.name(), "SUSPEND");
        architect.advance(&last, None).unwrap();
        assert_eq!(architect.name(), "ERROR");
        assert!(architect.inner().cause.is_some());
    }
}

#[test]
fn fifteen_minutes_and_a_poll_each_half_minute() {
    assert_eq!((SUSPENSION_SECONDS_MAX, HEALTH_POLL_SECONDS), (900, 30));
}

proptest! {
    /// Whatever a run went through, suspending and restoring it gives it back as it was.
    #[test]
    fn what_is_suspended_comes_back_unchanged(moves in prop::collection::vec(0usize..21, 0..40)) {
        let samples = crate::run::tests::samples();
        let mut run: Suspendable<Run> = Suspendable::Live(fresh());
        for choice in moves {
            let _ = run.advance(&Wrapped::Inner(samples[choice].clone()), None);
            let before = run.clone();
            let mut effects = Vec::new();
            if let Ok(asked) = run.advance(&Wrapped::Suspend(outage()), None) {
                effects.extend(asked);
                prop_assert_eq!(run.inner(), before.inner());
                let stored: Suspendable<Run> = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
                prop_assert_eq!(&stored, &run);
                effects.extend(run.advance(&Wrapped::Restore, None).unwrap());
            }
            prop_assert_eq!(&run, &before);
            prop_assert!(effects.is_empty());
        }
    }
}
