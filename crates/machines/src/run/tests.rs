use super::*;
use crate::machine::step;
use crate::task::Status;
use crate::tests::{Script, play};
use proptest::prelude::*;

/// An idle run whose agent holds the lease of task `t-1`.
pub(crate) fn fresh() -> Run {
    let task = TaskFacts { id: "t-1".into(), status: Status::Assigned, mine: true, session: None };
    Run { max_turns: 2, task: Some(task), ..Run::default() }
}

/// One event of each kind and of each way that a guard can go.
pub(crate) fn samples() -> Vec<Event> {
    let words = [
        "START",
        "START max=3 tools=Read",
        "START task=t-2",
        "START prompt=",
        "START max=201",
        "STEP 1 Read",
        "STEP 1",
        "STEP 2",
        "STEP 3",
        "STEP 0",
        "STEP 2 Bash",
        "PAUSE user_input",
        "PAUSE turn_limit",
        "RESUME",
        "RESUME max=3",
        "RESUME max=0",
        "ERROR recoverable",
        "ERROR fatal",
        "COMPLETE 1",
        "COMPLETE 0",
        "ABORT",
    ];
    words.iter().map(|line| fresh().read(&line.split(' ').collect::<Vec<_>>())).collect()
}

impl Script for Run {
    fn read(&self, words: &[&str]) -> Event {
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let number = |name| value(name).map(|text| text.parse().unwrap());
        match words[0] {
            "START" => Event::Start {
                task_id: value("task").unwrap_or("t-1").into(),
                prompt: value("prompt").unwrap_or("Build it").to_owned(),
                options: (words.len() > 1).then(|| Options {
                    max_turns: number("max"),
                    allowed_tools: value("tools").map(|tools| {
                        tools.split(',').filter(|tool| !tool.is_empty()).map(SmolStr::from).collect()
                    }),
                    model: None,
                    temperature: value("temperature").map(|text| text.parse().unwrap()),
                }),
            },
            "STEP" => Event::Step {
                turn: words[1].parse().unwrap(),
                tool_calls: words[2..].iter().map(|tool| call(tool)).collect(),
                output: None,
                usage: None,
                marks: Vec::new(),
            },
            "PAUSE" => Event::Pause { reason: PauseReason::read(words[1]).unwrap(), context: None },
            "RESUME" => Event::Resume { feedback: None, input: None, max_turns: number("max") },
            "ERROR" => Event::Error {
                error: AppError { code: "E".into(), message: "it broke".into(), status: 500, details: None },
                recoverable: words[1] == "recoverable",
            },
            "COMPLETE" => {
                Event::Complete { result: "built".into(), diff: None, turn_count: words[1].parse().unwrap() }
            }
            "ABORT" => Event::Abort { reason: "enough".into() },
            other => panic!("no event {other}"),
        }
    }

    fn detail(&self) -> String {
        format!("{}/{}", self.current_turn, self.max_turns)
    }
}

fn call(tool: &str) -> ToolCall {
    ToolCall {
        id: "c1".into(),
        tool: tool.into(),
        input: serde_json::Map::new(),
        output: None,
        duration: None,
        status: ToolStatus::Pending,
    }
}

#[track_caller]
fn check(script: &str) -> Run {
    play(fresh(), script)
}

/// Rows 1, 2, 4 and 7, and the stream that a reader of the run sees.
#[test]
fn a_run_goes_from_start_to_complete_turn_by_turn() {
    check(
        "START max=3 -> starting 0/3 [agent:starting t-1, state:update starting 0]
         STEP 1 Read -> running 1/3 [tool:start c1 Read {}, auditTools 1 1, state:update running 1]
         STEP 2 Bash Edit -> running 2/3 [tool:start c1 Bash {}, tool:start c1 Edit {}, auditTools 2 2, agent:step 2]
         STEP 3 -> running 3/3 [agent:step 3]
         COMPLETE 3 -> completed 3/3 [state:update completed 3, agent:completed 3 built, release, agent:cleanup completed]",
    );
}

/// Rows 5, 6, 11 and 12: the limit asks a person; it does not end the run.
#[test]
fn turn_limit_pauses_until_a_person_resumes() {
    check(
        "START -> starting 0/2 [agent:starting t-1, state:update starting 0]
         STEP 1 -> running 1/2 [state:update running 1]
         STEP 2 -> running 2/2 [agent:step 2]
         STEP 3 Bash -> paused 2/2 [agent:paused turn_limit 2, approval:requested t-1 turn_limit_reached 2 2, state:update paused 2]
         STEP 3 Bash -> paused 2/2 []
         COMPLETE 2 -> refused AGENT_NOT_RUNNING, allowed [RESUME, ABORT]
         RESUME -> running 2/2 [state:update running 2]
         STEP 3 Bash -> paused 2/2 [agent:paused turn_limit 2, approval:requested t-1 turn_limit_reached 2 2, state:update paused 2]
         RESUME max=4 -> running 2/4 [state:update running 2]
         STEP 3 Bash -> running 3/4 [tool:start c1 Bash {}, auditTools 3 1, agent:step 3]
         PAUSE turn_limit -> paused 3/4 [state:update paused 3, agent:paused turn_limit 3, approval:requested t-1 turn_limit_reached 3 4]
         ABORT -> idle 3/4 [state:update idle 3, release, agent:cleanup idle]",
    );
}

/// A turn is reported once more by a client that did not hear the answer, or out of order by one that is lost.
#[test]
fn a_turn_is_taken_once_and_in_order() {
    check(
        "START max=9 -> starting 0/9 [agent:starting t-1, state:update starting 0]
         STEP 2 -> refused STALE_TURN, allowed [STEP, ERROR, ABORT]
         STEP 1 Read -> running 1/9 [tool:start c1 Read {}, auditTools 1 1, state:update running 1]
         STEP 1 Read -> running 1/9 []
         STEP 1 Bash -> refused STALE_TURN, allowed [STEP, PAUSE, ERROR, COMPLETE, ABORT]
         STEP 3 -> refused STALE_TURN, allowed [STEP, PAUSE, ERROR, COMPLETE, ABORT]
         STEP 2 -> running 2/9 [agent:step 2]
         PAUSE confirmation -> paused 2/9 [state:update paused 2, agent:paused confirmation 2]
         STEP 2 -> paused 2/9 []
         STEP 3 -> refused AGENT_NOT_RUNNING, allowed [RESUME, ABORT]
         RESUME -> running 2/9 [state:update running 2]
         ERROR recoverable -> error 2/9 [agent:error it broke E true, state:update error 2]
         STEP 2 -> error 2/9 []
         STEP 3 -> refused AGENT_NOT_RUNNING, allowed [RESUME, ABORT]",
    );
}

/// Rows 3, 8, 9, 13 and 14: what the last ERROR said is what RESUME reads.
#[test]
fn an_error_is_resumed_only_if_it_can_be_recovered_from() {
    check(
        "START -> starting 0/2 [agent:starting t-1, state:update starting 0]
         ERROR fatal -> error 0/2 [agent:error it broke E false, state:update error 0]
         RESUME -> refused AGENT_EXECUTION_ERROR, allowed [ABORT]
         ABORT -> idle 0/2 [release, agent:cleanup idle, state:update idle 0]
         START -> starting 0/2 [agent:starting t-1, state:update starting 0]
         ERROR recoverable -> error 0/2 [agent:error it broke E true, state:update error 0]
         RESUME -> running 0/2 [state:update running 0]
         STEP 1 -> running 1/2 [agent:step 1]
         ERROR recoverable -> error 1/2 [agent:error it broke E true, state:update error 1]
         ERROR recoverable -> refused AGENT_NOT_RUNNING, allowed [RESUME, ABORT]
         RESUME -> running 1/2 [state:update running 1]
         ERROR fatal -> idle 1/2 [agent:error it broke E false, state:update idle 1, release, agent:cleanup idle]
         RESUME -> refused AGENT_NOT_RUNNING, allowed [START]",
    );
}

/// Row 16, and rows 10, 12 and 14 beside it: a start that hangs can be stopped too.
#[test]
fn whatever_is_under_way_can_be_aborted() {
    check(
        "ABORT -> refused AGENT_NOT_RUNNING, allowed [START]
         START -> starting 0/2 [agent:starting t-1, state:update starting 0]
         ABORT -> idle 0/2 [release, agent:cleanup idle, state:update idle 0]
         START -> starting 0/2 [agent:starting t-1, state:update starting 0]
         STEP 1 -> running 1/2 [state:update running 1]
         ABORT -> idle 1/2 [state:update idle 1, release, agent:cleanup idle]",
    );
}

/// Row 15: a new run begins with a count of its own and no error of the last one.
#[test]
fn start_from_completed_begins_anew() {
    let run = check(
        "START -> starting 0/2 [agent:starting t-1, state:update starting 0]
         STEP 1 -> running 1/2 [state:update running 1]
         ERROR recoverable -> error 1/2 [agent:error it broke E true, state:update error 1]
         RESUME -> running 1/2 [state:update running 1]
         COMPLETE 1 -> completed 1/2 [state:update completed 1, agent:completed 1 built, release, agent:cleanup completed]
         STEP 2 -> refused AGENT_NOT_RUNNING, allowed [START]
         COMPLETE 1 -> refused AGENT_NO_AVAILABLE_TASK, allowed [START]
         START max=5 -> starting 0/5 [agent:starting t-1, state:update starting 0]",
    );
    assert_eq!((run.last_error, run.last_step, run.current_turn), (None, None, 0));
}

/// `[]` denies all; a list denies the rest; a turn with one forbidden call is refused whole.
#[test]
fn a_tool_that_is_not_allowed_stops_the_whole_turn_before_it_runs() {
    check(
        "START tools=Read,Edit -> starting 0/2 [agent:starting t-1, state:update starting 0]
         STEP 1 Read Bash -> refused AGENT_TOOL_NOT_ALLOWED, allowed [STEP, ERROR, ABORT]
         STEP 1 Read -> running 1/2 [tool:start c1 Read {}, auditTools 1 1, state:update running 1]
         STEP 2 Bash -> refused AGENT_TOOL_NOT_ALLOWED, allowed [STEP, PAUSE, ERROR, COMPLETE, ABORT]
         STEP 2 Edit -> running 2/2 [tool:start c1 Edit {}, auditTools 2 1, agent:step 2]
         ABORT -> idle 2/2 [state:update idle 2, release, agent:cleanup idle]
         START tools= -> starting 0/2 [agent:starting t-1, state:update starting 0]
         STEP 1 Read -> refused AGENT_TOOL_NOT_ALLOWED, allowed [STEP, ERROR, ABORT]
         STEP 1 -> running 1/2 [state:update running 1]",
    );
}

/// The schemas of the source: prompt, maxTurns, temperature, turn, turnCount.
#[test]
fn fields_out_of_range_are_named() {
    check(
        "START prompt= -> refused INVALID_FIELD; prompt: prompt must not be empty, allowed [START]
         START max=0 -> refused INVALID_FIELD; maxTurns: maxTurns must be between 1 and 200, allowed [START]
         START max=201 -> refused INVALID_FIELD; maxTurns: maxTurns must be between 1 and 200, allowed [START]
         START temperature=1.5 -> refused INVALID_FIELD; temperature: temperature must be between 0 and 1, allowed [START]
         START max=200 temperature=1 -> starting 0/200 [agent:starting t-1, state:update starting 0]
         STEP 0 -> refused INVALID_FIELD; turn: turn must be 1 or more, allowed [STEP, ERROR, ABORT]
         STEP 1 -> running 1/200 [state:update running 1]
         COMPLETE 0 -> refused INVALID_FIELD; turnCount: turnCount must be 1 or more, allowed [STEP, PAUSE, ERROR, COMPLETE, ABORT]
         PAUSE user_input -> paused 1/200 [state:update paused 1, agent:paused user_input 1]
         RESUME max=0 -> refused INVALID_FIELD; maxTurns: maxTurns must be between 1 and 200, allowed [RESUME, ABORT]
         RESUME max=201 -> refused INVALID_FIELD; maxTurns: maxTurns must be between 1 and 200, allowed [RESUME, ABORT]
         RESUME max=1 -> running 1/1 [state:update running 1]",
    );
}

/// hasValidTask: there, this agent's, and at a status where work is done.
#[test]
fn start_needs_a_task_that_is_this_agents_to_work_on() {
    let with = |task| Run { task, ..fresh() };
    let facts = |status, mine| Some(TaskFacts { id: "t-1".into(), status, mine, session: None });
    play(with(None), "START -> refused TASK_NOT_FOUND, allowed [START]");
    for status in Status::ALL {
        let works = matches!(status, Status::Assigned | Status::InProgress);
        let taken = step(&with(facts(*status, true)), &fresh().read(&["START"]));
        assert_eq!(taken.is_ok(), works, "{status}");
        play(with(facts(*status, false)), "START -> refused AGENT_NO_AVAILABLE_TASK, allowed [START]");
    }
    play(fresh(), "START task=t-2 -> refused AGENT_NO_AVAILABLE_TASK, allowed [START]");
}

/// The matrix of the source, row for row, with the code of each refusal.
#[test]
fn events_that_the_matrix_does_not_mark_are_refused_with_a_code() {
    let code = |state, event: &str| {
        let run = Run { state, current_turn: 1, ..fresh() };
        let event = run.read(&event.split(' ').collect::<Vec<_>>());
        step(&run, &event).err().map_or("taken", |refusal| refusal.code.name())
    };
    #[rustfmt::skip]
    let matrix = [
        //          START                    STEP                 PAUSE                RESUME               ERROR                COMPLETE                   ABORT
        (Idle,      ["taken",                 "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NO_AVAILABLE_TASK", "AGENT_NOT_RUNNING"]),
        (Starting,  ["AGENT_ALREADY_RUNNING", "taken",             "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "taken",             "AGENT_NOT_RUNNING",       "taken"]),
        (Running,   ["AGENT_ALREADY_RUNNING", "taken",             "taken",             "AGENT_NOT_RUNNING", "taken",             "taken",                   "taken"]),
        (Paused,    ["AGENT_ALREADY_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "taken",             "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING",       "taken"]),
        (InError,   ["AGENT_ALREADY_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_EXECUTION_ERROR", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING",   "taken"]),
        (Completed, ["taken",                 "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NOT_RUNNING", "AGENT_NO_AVAILABLE_TASK", "AGENT_NOT_RUNNING"]),
    ];
    let events = ["START", "STEP 2", "PAUSE user_input", "RESUME", "ERROR fatal", "COMPLETE 1", "ABORT"];
    for (state, codes) in matrix {
        assert_eq!(events.map(|event| code(state, event)), codes, "{state}");
    }
}

/// Facts that are part of the table and of the API.
#[test]
fn each_state_says_what_can_be_done_in_it() {
    let yes = |state| {
        let facts = Run::meta(state).into_iter().filter(|(_, fact)| *fact == Meta::Is(true));
        facts.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    };
    let expected = [
        "canStart",
        "hasActiveTask resourcesAllocated",
        "hasActiveTask resourcesAllocated canExecuteTools",
        "hasActiveTask resourcesAllocated awaitingInput",
        "hasActiveTask resourcesAllocated requiresDecision",
        "canStart",
    ];
    assert_eq!(State::ALL.iter().map(|state| yes(*state)).collect::<Vec<_>>(), expected);
}

/// 50, 100 and 200 by kind; the project's number over that; the run's over both; always 1 to 200.
#[test]
fn the_narrowest_scope_that_names_a_limit_wins() {
    let kinds = AgentKind::ALL.iter().map(|kind| turn_limit(None, None, *kind));
    assert_eq!(kinds.collect::<Vec<_>>(), [50, 100, 200]);
    assert_eq!(turn_limit(None, Some(7), AgentKind::Background), 7);
    assert_eq!(turn_limit(Some(9), Some(7), AgentKind::Task), 9);
    assert_eq!(
        (turn_limit(Some(0), None, AgentKind::Task), turn_limit(Some(999), None, AgentKind::Task)),
        (1, 200)
    );
}

/// Whoever writes an object again may order its fields anew; whoever changes a value has another turn.
#[test]
fn a_repeated_turn_is_known_by_its_content_and_not_by_its_spelling() {
    let step = |input: &str| Event::Step {
        turn: 1,
        tool_calls: vec![ToolCall { input: serde_json::from_str(input).unwrap(), ..call("Bash") }],
        output: None,
        usage: None,
        marks: Vec::new(),
    };
    assert_eq!(digest(&step(r#"{"a":1,"b":[2]}"#)), digest(&step(r#"{"b":[2],"a":1}"#)));
    for other in [r#"{"a":1,"b":2}"#, r#"{"a":"1","b":[2]}"#, r#"{"a":1,"b":[[2]]}"#, r#"{"a":1}"#, "{}"] {
        assert_ne!(digest(&step(r#"{"a":1,"b":[2]}"#)), digest(&step(other)), "{other}");
    }
}

proptest! {
    /// However a run is driven, no turn past its limit is run, and each turn's tools run once.
    #[test]
    fn no_turn_past_the_limit_is_paid_for(limit in 1u32..6, moves in prop::collection::vec(0usize..9, 0..80)) {
        let mut run = Run { max_turns: limit, ..fresh() };
        let mut ran = 0;
        for choice in moves {
            let next = run.current_turn + 1;
            let line = match choice {
                0 => "START".to_owned(),
                1..=4 => format!("STEP {next} Bash"),
                5 => "PAUSE user_input".to_owned(),
                6 => "RESUME".to_owned(),
                7 => "ERROR recoverable".to_owned(),
                _ => format!("COMPLETE {next}"),
            };
            let event = run.read(&line.split(' ').collect::<Vec<_>>());
            let Ok(taken) = step(&run, &event) else { continue };
            run = taken.state;
            if choice == 0 {
                ran = 0;
            }
            ran += taken.effects.iter().filter(|effect| matches!(effect, Effect::AuditTools { .. })).count();
            prop_assert!(run.current_turn <= run.max_turns, "{run:?}");
            prop_assert_eq!(ran, run.current_turn as usize);
        }
    }

    /// Exactly the limit's number of turns are run before a person is asked.
    #[test]
    fn as_many_turns_run_as_the_limit_says(limit in 1u32..=200) {
        let mut run = Run { state: Starting, max_turns: limit, ..fresh() };
        let mut turns = 0;
        // One more than the limit at most, so that a run that never pauses fails and does not hang.
        while run.state != Paused && turns <= limit {
            run = step(&run, &run.read(&["STEP", &(run.current_turn + 1).to_string()])).unwrap().state;
            turns += 1;
        }
        prop_assert_eq!((turns - 1, run.current_turn, run.pause_reason), (limit, limit, Some(PauseReason::TurnLimit)));
    }
}
