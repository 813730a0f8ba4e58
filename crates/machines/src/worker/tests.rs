use super::*;
use crate::machine::step;
use crate::tests::{Script, play};
use crate::wire::Wire;
use proptest::prelude::*;

/// One event of each kind and of each way that a guard can go.
pub(crate) fn samples() -> Vec<Event> {
    let mut words: Vec<String> = [
        "spawn",
        "spawn taken",
        "assign t-1 steps=2 fixes=1",
        "assign t-1 not-claimable",
        "step_starts",
        "step_ok",
        "step_ok DONE",
        "step_failed",
        "gate_failed",
        "handed_over",
        "kill",
        "retry",
        "cleanup",
        "cleanup live",
        "cleanup live --force",
        "clean",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend(ReleaseReason::ALL.iter().map(|reason| format!("released {reason}")));
    for tree in ["missing", "clean", "dirty"] {
        for rest in ["", " under-way", " said-done", " resumable"] {
            words.push(format!("recover {tree}{rest}"));
        }
    }
    words.iter().map(|line| Worker::default().read(&line.split(' ').collect::<Vec<_>>())).collect()
}

impl Script for Worker {
    fn read(&self, words: &[&str]) -> Event {
        let has = |word| words.contains(&word);
        let number = |name: &str| {
            words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        match words[0] {
            "spawn" => Event::Spawn { name_free: !has("taken") },
            "assign" => Event::Assign {
                task: TaskId::new(words[1]).unwrap(),
                claimable: !has("not-claimable"),
                limits: Limits {
                    max_steps: number("steps").unwrap_or(STEPS_MAX),
                    max_fix_rounds: number("fixes").unwrap_or(FIX_ROUNDS_MAX),
                    backoff_seconds: number("backoff").unwrap_or(BACKOFF_SECONDS),
                },
            },
            "step_starts" => Event::StepStarts,
            "step_ok" => Event::StepOk { done: has("DONE") },
            "step_failed" => Event::StepFailed { error: "exit 1".to_owned() },
            "gate_failed" => Event::GateFailed,
            "handed_over" => Event::HandedOver,
            "released" => Event::Released { reason: ReleaseReason::read(words[1]).unwrap() },
            "kill" => Event::Kill,
            "retry" => Event::Retry,
            "cleanup" => Event::Cleanup { live_process: has("live"), force: has("--force") },
            "clean" => Event::Clean,
            "recover" => Event::Recover {
                tree: Tree::read(words[1]).unwrap(),
                step_under_way: has("under-way"),
                said_done: has("said-done"),
                resumable: has("resumable"),
            },
            other => panic!("no event {other}"),
        }
    }

    fn detail(&self) -> String {
        let task = self.task.as_ref().map(|task| format!("{task} "));
        format!(
            "{}{} steps {} errors {} fixes",
            task.unwrap_or_default(),
            self.step_count,
            self.errors,
            self.fix_rounds
        )
    }
}

fn worker(state: State) -> Worker {
    let task = matches!(state, Ready | Working | Done | Stuck).then(|| TaskId::new("t-1").unwrap());
    Worker { status: state, task, ..Worker::default() }
}

#[track_caller]
fn check(state: State, script: &str) -> Worker {
    play(worker(state), script)
}

#[test]
fn a_worker_takes_a_task_to_the_gate_and_hands_it_over() {
    check(
        New,
        "spawn taken -> refused NOT_ALLOWED, allowed [spawn]
         spawn -> idle 0 steps 0 errors 0 fixes []
         step_starts -> refused NOT_ALLOWED, allowed [assign, cleanup, clean, recover]
         assign t-1 not-claimable -> refused NOT_ALLOWED, allowed [assign, cleanup, clean, recover]
         assign t-1 -> ready t-1 0 steps 0 errors 0 fixes [makeTree t-1]
         assign t-2 -> refused NOT_ALLOWED, allowed [step_starts, step_failed, released, kill, cleanup, clean, recover]
         step_starts -> working t-1 0 steps 0 errors 0 fixes [nextStep]
         step_ok -> working t-1 1 steps 0 errors 0 fixes [nextStep]
         step_ok DONE -> done t-1 2 steps 0 errors 0 fixes [runGate false]
         handed_over -> idle 0 steps 0 errors 0 fixes [giveBackLease]",
    );
}

/// 2, 4, 8 and 16 seconds; the fifth in a row is the last, and a step that goes well forgets them all.
#[test]
fn the_fifth_failure_in_a_row_makes_a_worker_stuck() {
    check(
        Working,
        "step_failed -> working t-1 0 steps 1 errors 0 fixes [backOff 2]
         step_ok -> working t-1 1 steps 0 errors 0 fixes [nextStep]
         step_failed -> working t-1 1 steps 1 errors 0 fixes [backOff 2]
         step_failed -> working t-1 1 steps 2 errors 0 fixes [backOff 4]
         step_failed -> working t-1 1 steps 3 errors 0 fixes [backOff 8]
         step_failed -> working t-1 1 steps 4 errors 0 fixes [backOff 16]
         step_failed -> stuck t-1 1 steps 5 errors 0 fixes [giveBackLease]
         step_failed -> refused NOT_ALLOWED, allowed [released, kill, retry, cleanup, clean, recover]
         assign t-2 -> refused NOT_ALLOWED, allowed [released, kill, retry, cleanup, clean, recover]
         retry -> working t-1 1 steps 5 errors 0 fixes [nextStep]
         step_failed -> stuck t-1 1 steps 6 errors 0 fixes [giveBackLease]
         retry -> working t-1 1 steps 6 errors 0 fixes [nextStep]
         step_ok DONE -> done t-1 2 steps 0 errors 0 fixes [runGate false]",
    );
}

/// The third step of three is the last; without a DONE the gate is told so.
#[test]
fn a_worker_that_runs_out_of_steps_goes_to_the_gate() {
    check(
        Idle,
        "assign t-1 steps=3 fixes=1 -> ready t-1 0 steps 0 errors 0 fixes [makeTree t-1]
         step_starts -> working t-1 0 steps 0 errors 0 fixes [nextStep]
         step_ok -> working t-1 1 steps 0 errors 0 fixes [nextStep]
         step_ok -> working t-1 2 steps 0 errors 0 fixes [nextStep]
         step_ok -> done t-1 3 steps 0 errors 0 fixes [runGate true]
         recover clean -> done t-1 3 steps 0 errors 0 fixes [runGate true]
         gate_failed -> working t-1 3 steps 0 errors 1 fixes [nextStep]
         step_ok -> done t-1 4 steps 0 errors 1 fixes [runGate true]
         gate_failed -> stuck t-1 4 steps 0 errors 1 fixes [giveBackLease]
         retry -> working t-1 4 steps 0 errors 1 fixes [nextStep]",
    );
}

#[test]
fn by_default_the_twentieth_step_is_the_last() {
    let mut worker = worker(Working);
    for _ in 0..STEPS_MAX {
        assert_eq!(worker.status, Working);
        worker = step(&worker, &Event::StepOk { done: false }).unwrap().state;
    }
    assert_eq!((worker.status, worker.step_count, worker.out_of_steps), (Done, 20, true));
}

#[test]
fn the_gate_sends_work_back_three_times_and_no_more() {
    check(
        Done,
        "gate_failed -> working t-1 0 steps 0 errors 1 fixes [nextStep]
         step_ok DONE -> done t-1 1 steps 0 errors 1 fixes [runGate false]
         gate_failed -> working t-1 1 steps 0 errors 2 fixes [nextStep]
         step_ok DONE -> done t-1 2 steps 0 errors 2 fixes [runGate false]
         gate_failed -> working t-1 2 steps 0 errors 3 fixes [nextStep]
         step_ok DONE -> done t-1 3 steps 0 errors 3 fixes [runGate false]
         gate_failed -> stuck t-1 3 steps 0 errors 3 fixes [giveBackLease]",
    );
}

/// A stuck worker stays for a person to see, unless there is nothing left to see.
#[test]
fn a_task_that_goes_elsewhere_frees_its_worker() {
    for state in [Ready, Working, Done] {
        for reason in ReleaseReason::ALL {
            let script = format!("released {reason} -> idle 0 steps 0 errors 0 fixes [giveBackLease]");
            check(state, &script);
        }
    }
    let stays = "refused NOT_ALLOWED, allowed [released, kill, retry, cleanup, clean, recover]";
    for reason in ["blocked", "needs_approval", "outage", "lost"] {
        check(Stuck, &format!("released {reason} -> {stays}"));
    }
    for reason in ["canceled", "taken"] {
        check(Stuck, &format!("released {reason} -> idle 0 steps 0 errors 0 fixes []"));
    }
    check(Idle, "released canceled -> refused NOT_ALLOWED, allowed [assign, cleanup, clean, recover]");
}

#[test]
fn kill_ends_what_runs_and_keeps_what_was_written() {
    for state in [Ready, Working] {
        check(state, "kill -> idle 0 steps 0 errors 0 fixes [endProcess, giveBackLease, saveWork]");
    }
    check(Stuck, "kill -> idle 0 steps 0 errors 0 fixes [endProcess, saveWork]");
    check(Idle, "kill -> refused NOT_ALLOWED, allowed [assign, cleanup, clean, recover]");
    check(
        Done,
        "kill -> refused NOT_ALLOWED, allowed [gate_failed, handed_over, released, cleanup, clean, recover]",
    );
}

#[test]
fn cleanup_waits_for_a_live_process_unless_it_is_forced() {
    for (state, lease) in
        [(Ready, " giveBackLease,"), (Working, " giveBackLease,"), (Done, " giveBackLease,"), (Stuck, "")]
    {
        for event in ["cleanup", "cleanup live --force"] {
            let after = format!("idle 0 steps 0 errors 0 fixes [endProcess,{lease} removeTree]");
            check(state, &format!("{event} -> {after}"));
        }
        assert!(step(&worker(state), &Event::Cleanup { live_process: true, force: false }).is_err());
    }
    check(Idle, "cleanup -> idle 0 steps 0 errors 0 fixes []");
}

#[test]
fn clean_removes_a_worker_for_good() {
    for (state, lease) in
        [(Ready, " giveBackLease,"), (Working, " giveBackLease,"), (Done, " giveBackLease,"), (Stuck, "")]
    {
        check(
            state,
            &format!(
                "clean -> removed 0 steps 0 errors 0 fixes [endProcess,{lease} removeTree]
                 spawn -> refused NOT_ALLOWED, allowed []"
            ),
        );
    }
    check(Idle, "clean -> removed 0 steps 0 errors 0 fixes []");
}

/// In the order of the page: missing, then dirty, then clean; then what was said; then the session.
#[test]
fn recovery_goes_on_where_it_can_and_loses_nothing() {
    for state in [Ready, Working] {
        let after = |line: &str| {
            let taken =
                step(&worker(state), &worker(state).read(&line.split(' ').collect::<Vec<_>>())).unwrap();
            format!(
                "{} {}",
                taken.state.status.name(),
                taken.effects.iter().map(effect_name).collect::<Vec<_>>().join(" ")
            )
        };
        let state = state.name();
        assert_eq!(after("recover missing under-way said-done resumable"), "idle giveBackLease");
        assert_eq!(after("recover clean under-way"), format!("{state} "));
        assert_eq!(after("recover clean said-done"), "done runGate");
        assert_eq!(after("recover dirty said-done"), "done saveWork runGate");
        assert_eq!(after("recover clean resumable"), format!("{state} nextStep"));
        assert_eq!(after("recover dirty resumable"), format!("{state} saveWork nextStep"));
        assert_eq!(after("recover clean"), "idle giveBackLease");
        assert_eq!(after("recover dirty"), "idle saveWork giveBackLease");
    }
    check(Idle, "recover missing -> idle 0 steps 0 errors 0 fixes []");
    check(Stuck, "recover dirty -> stuck t-1 0 steps 0 errors 0 fixes []");
    check(
        Done,
        "recover clean under-way -> done t-1 0 steps 0 errors 0 fixes []
         recover dirty -> done t-1 0 steps 0 errors 0 fixes [saveWork, runGate false]
         recover missing -> done t-1 0 steps 0 errors 0 fixes [offerMerge, runGate false]",
    );
}

fn effect_name(effect: &Effect) -> String {
    serde_json::to_value(effect).unwrap()["effect"].as_str().unwrap().to_owned()
}

#[test]
fn the_waits_double_up_to_a_minute() {
    let waits = |first| [0, 1, 2, 3, 4, 5, 6, 7, 40].map(|errors| backoff_seconds(first, errors));
    assert_eq!(waits(BACKOFF_SECONDS), [0, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(waits(0), [0; 9]);
    assert_eq!(waits(7), [0, 7, 14, 28, 56, 60, 60, 60, 60]);
    assert_eq!(waits(300), [0, 300, 300, 300, 300, 300, 300, 300, 300]);
}

#[test]
fn symbols_and_activity_are_as_documented() {
    let facts = |state| Worker::meta(state).into_iter().map(|(_, fact)| fact).collect::<Vec<_>>();
    let of = |symbol, active, steppable| vec![Meta::Text(symbol), Meta::Is(active), Meta::Is(steppable)];
    assert_eq!(facts(Idle), of("○", true, false));
    assert_eq!(facts(Ready), of("◐", true, true));
    assert_eq!(facts(Working), of("●", true, true));
    assert_eq!(facts(Done), of("✓", false, false));
    assert_eq!(facts(Stuck), of("!", false, false));
}

proptest! {
    /// Only ready, working, done and stuck hold a task, and they always do; no counter passes its limit.
    #[test]
    fn a_worker_holds_a_task_exactly_while_it_is_busy(moves in prop::collection::vec(0usize..34, 0..80)) {
        let mut worker = Worker::default();
        let samples = samples();
        for choice in moves {
            if let Ok(taken) = step(&worker, &samples[choice % samples.len()]) {
                worker = taken.state;
            }
            let busy = matches!(worker.status, Ready | Working | Done | Stuck);
            prop_assert_eq!(worker.task.is_some(), busy, "{:?}", worker);
            prop_assert!(worker.fix_rounds <= worker.limits.max_fix_rounds);
            prop_assert!(worker.status == Stuck || worker.errors <= ERRORS_MAX || worker.status == Working);
        }
    }
}
