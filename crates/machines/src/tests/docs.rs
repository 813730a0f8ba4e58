//! The reference pages under `docs/machines`, written from the tables. The test compares them with what is there;
//! `ADJ_WRITE_DOCS=1 cargo test -p adjutant-machines docs` writes them.
#![expect(clippy::disallowed_methods, reason = "the test writes pages; the machines write nothing")]

use crate::catalog::{self, Doc, RowDoc, step_line};
use crate::machine::{Machine, Meta};
use crate::tests::Script;
use crate::{architect, run, task, turn, worker};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

#[test]
fn docs_are_what_the_tables_say() {
    check("README.md", &index());
    for doc in catalog::all() {
        check(&format!("{}.md", doc.machine), &page(&doc));
    }
}

#[track_caller]
fn check(name: &str, page: &str) {
    let path = format!("{}/../../docs/machines/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/machines/{name} is not what the tables say; ADJ_WRITE_DOCS=1 cargo test -p adjutant-machines docs writes it:\n{}",
        super::diff::diff(&there, page)
    );
}

const WRITTEN_FROM: &str = "<!-- Written from the tables in `crates/machines`. To change it, change them and run\n     \
                            `ADJ_WRITE_DOCS=1 cargo test -p adjutant-machines docs`. -->\n";

fn index() -> String {
    let mut text = format!("{WRITTEN_FROM}# The five machines\n\n");
    text += "Adjutant is five state machines. Each is a table of rows, and each page here is printed from the table that \
             runs:\nif a page and the program differed, a test would fail.\n\n";
    text += "| machine | one instance per | answers | states |\n| --- | --- | --- | --- |\n";
    for doc in catalog::all() {
        let states: Vec<_> = doc.states.iter().map(|state| format!("`{}`", state.name)).collect();
        let name = doc.machine;
        let _ = writeln!(
            text,
            "| [{name}]({name}.md) | {} | {} | {} |",
            doc.instance,
            doc.answers,
            states.join(" ")
        );
    }
    text += "\nThe same word can mean different things in two machines, so a state is always named with its machine: \
             `task.DONE` is\napproved and landed, `worker.done` is a claim that the gate decides, `architect.DONE` has \
             no stories left.\n\n\
             A row says: in this state, on this event, if every guard holds and the sender is one of those named, go there \
             and do\nthat. An event that no row takes is refused: nothing changes, and the answer names the state and what \
             it would take.\nStates and events are read in either case and written as the pages spell them.\n\n\
             `suspended` is not a sixth machine. It is a wrapper that a run or an architect is put into while a service that \
             it\nneeds is away, and comes back from unchanged; its rows are printed with theirs.\n\n\
             ## Trying one\n\n\
             `adj machine show run` prints a table, `--format mermaid` or `dot` draws it, `--format json` is for programs.\n\
             `adj machine step run` reads one JSON object per line and answers each with one line. Nothing is stored: it is \
             the\nmachine alone.\n\n";
    text += &worked(EXAMPLES[0]);
    text
}

fn page(doc: &Doc) -> String {
    let mut text = format!("{WRITTEN_FROM}# {}\n\n", doc.machine);
    let _ = writeln!(text, "One per {}. It answers: {}\n", doc.instance, doc.answers);
    text += "## States\n\n";
    let facts: Vec<_> = doc.states[0].meta.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(text, "| state | means | {} |", facts.join(" | "));
    let _ = writeln!(text, "| --- | --- |{}", " --- |".repeat(facts.len()));
    for state in &doc.states {
        let mark = match (state.name == doc.initial, state.is_final) {
            (true, _) => " (initial)",
            (_, true) => " (final)",
            _ => "",
        };
        let values: Vec<_> = state.meta.iter().map(|(_, fact)| shown(*fact)).collect();
        let _ = writeln!(text, "| `{}`{mark} | {} | {} |", state.name, state.about, values.join(" | "));
    }
    text += "\n## Rows\n\n| from | event | if | then | to | who |\n| --- | --- | --- | --- | --- | --- |\n";
    for row in &doc.creation {
        row_line(&mut text, "–", row);
    }
    for row in &doc.rows {
        row_line(&mut text, &format!("`{}`", row.from), row);
    }
    let guards: Vec<_> = doc.guards.iter().filter(|(_, about)| !about.is_empty()).collect();
    text += "\nGuards; one with `!` holds where the other does not:\n\n";
    for (guard, about) in guards {
        let _ = writeln!(text, "- `{guard}`: {about}");
    }
    let _ = write!(text, "\n## Drawn\n\n```mermaid\n{}```\n", doc.mermaid());
    let _ = write!(text, "\n## As JSON, for `adj machine step {}`\n\n", doc.machine);
    text += &shapes(doc.machine);
    for example in EXAMPLES.into_iter().filter(|(machine, _)| *machine == doc.machine) {
        text += &worked(example);
    }
    text
}

fn row_line(text: &mut String, from: &str, row: &RowDoc) {
    let names =
        |names: Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let actions = row.actions.iter().map(|action| (*action).to_owned()).collect();
    let who = if row.conditions.is_empty() { "anyone".to_owned() } else { row.conditions.join(", ") };
    let (guards, actions) = (names(row.guards.clone()), names(actions));
    let _ = writeln!(text, "| {from} | `{}` | {guards} | {actions} | `{}` | {who} |", row.event, row.to);
}

fn shown(fact: Meta) -> String {
    match fact {
        Meta::Is(true) => "yes".to_owned(),
        Meta::Is(false) => String::new(),
        Meta::Text(text) => text.to_owned(),
    }
}

fn shapes(machine: &str) -> String {
    match machine {
        turn::Turn::NAME => {
            shape(&full_turn(), &turn::tests::samples(), "times are in milliseconds since 1970")
        }
        worker::Worker::NAME => shape(
            &full_worker(),
            &worker::tests::samples(),
            "`limits` is 20 steps and 3 fix rounds where it is absent",
        ),
        task::Task::NAME => shape(
            &full_task(),
            &task_moves(),
            "`facts` is what the machine is told of the world for the step; amounts are in millionths of a dollar",
        ),
        architect::Architect::NAME => {
            shape(&full_architect(), &architect::tests::samples(), "`cause` says what led to ERROR")
                + SUSPENDED
        }
        run::Run::NAME => {
            shape(
                &full_run(),
                &run::tests::samples(),
                "`task` is what the machine is told of the world for the step",
            ) + SUSPENDED
        }
        other => panic!("no shapes of {other}"),
    }
}

const SUSPENDED: &str = "Suspended, a state is `{\"suspended\":{\"service\":\"anthropic\",\"since\":0,\"until\":900000},\"inner\":…}`, where \
     `inner` is the state\nthat it comes back to; `resetsAt` may stand beside them. The wrapper's events:\n\n```json\n\
     {\"type\":\"SUSPEND\",\"service\":\"anthropic\",\"since\":0,\"until\":900000}\n{\"type\":\"RESTORE\"}\n{\"type\":\"SUSPEND_TIMEOUT\"}\n```\n\n";

/// The state with everything in it, and one event of each type with as much in it as a sample has.
fn shape(state: &impl Serialize, samples: &[impl Serialize], note: &str) -> String {
    let mut text = format!(
        "The state is an object; or only the name of a state, for a fresh machine that stands there. With everything in \
         it\n({note}):\n\n```json\n{}\n```\n\nThe events, one of each kind:\n\n```json\n",
        serde_json::to_string(state).unwrap()
    );
    let mut fullest: Vec<Value> = Vec::new();
    for sample in samples.iter().map(|sample| serde_json::to_value(sample).unwrap()) {
        // A move differs by what it brings along.
        let same = |known: &&mut Value| known["type"] == sample["type"] && sample["type"] != "move";
        match fullest.iter_mut().find(same) {
            Some(known) if known.to_string().len() < sample.to_string().len() => *known = sample,
            Some(_) => {}
            None => fullest.push(sample),
        }
    }
    for event in fullest {
        let _ = writeln!(text, "{event}");
    }
    text + "```\n\n"
}

/// The moves with what each of them requires.
fn task_moves() -> Vec<task::Event> {
    let moves = [
        "lead:lea ASSIGNED for=ann",
        "intern:ann IN_PROGRESS plan=3",
        "intern:ann REVIEW deliverable=patch checklist=answered",
        "specialist:rev IN_PROGRESS feedback=test-it",
        "system NEEDS_APPROVAL cause=budget",
        "human:me IN_PROGRESS decision=granted",
        "system BLOCKED reason=loop",
        "human:me IN_PROGRESS clarification=only-the-parser",
        "human:me DONE approval=good",
        "human:me CANCELED",
        "system landing_failed feedback=conflict-in-a.rs",
    ];
    moves.iter().map(|line| task::Task::default().read(&line.split(' ').collect::<Vec<_>>())).collect()
}

fn full_turn() -> turn::Turn {
    turn::Turn {
        state: turn::State::Waiting,
        timeout_at: None,
        wait_until: Some(320_000),
        left_millis: Some(40_000),
        wait_reason: Some(turn::WaitReason::Requested),
        wait_note: Some("the build".to_owned()),
    }
}

fn full_worker() -> worker::Worker {
    let task = crate::names::TaskId::new("c-abc1").ok();
    worker::Worker { status: worker::State::Working, task, step_count: 3, errors: 1, ..Default::default() }
}

fn full_task() -> task::Task {
    task::Task {
        status: task::Status::Blocked,
        assignee_ids: ["ann".into()].into(),
        reviewer_id: Some("rev".into()),
        work_plan: Some(task::WorkPlan::new(["read", "write", "test"])),
        review_cycles: 3,
        block_reason: Some(task::BlockReason::ReviewCycles),
        feedback: Some("the test is missing".to_owned()),
        facts: task::Facts { has_code: true, ..Default::default() },
        ..Default::default()
    }
}

fn full_architect() -> architect::Architect {
    architect::Architect {
        state: architect::State::Request,
        spec_in_work: true,
        request: Some("r-1".into()),
        cause: None,
    }
}

fn full_run() -> run::Run {
    run::Run {
        state: run::State::Paused,
        current_turn: 50,
        allowed_tools: Some(["Read".into(), "Edit".into()].into()),
        last_error: Some(run::LastError {
            code: "E".into(),
            message: "it broke".to_owned(),
            recoverable: true,
        }),
        pause_reason: Some(run::PauseReason::TurnLimit),
        last_step: Some(run::StepMark { turn: 50, digest: 0xabcd }),
        task: Some(run::TaskFacts {
            id: "c-abc1".into(),
            status: task::Status::InProgress,
            mine: true,
            session: None,
        }),
        ..Default::default()
    }
}

/// What the pages show being tried. Each is run when its page is written.
const EXAMPLES: [(&str, &[&str]); 5] = [
    (
        "run",
        &[
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"task":null},"event":{"type":"STEP","turn":4,"toolCalls":[]}}"#,
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50},"event":{"type":"RESUME"}}"#,
        ],
    ),
    (
        "turn",
        &[
            r#"{"state":"QUEUED","event":{"type":"turn_granted","at":0,"timeoutSeconds":60}}"#,
            r#"{"state":"QUEUED","event":{"type":"TURN_COMPLETE","alone":false}}"#,
        ],
    ),
    (
        "worker",
        &[
            r#"{"state":{"status":"working","task":"c-abc1","errors":1},"event":{"type":"step_failed","error":"exit 1"}}"#,
            r#"{"state":"done","event":{"type":"kill"}}"#,
        ],
    ),
    (
        "task",
        &[
            r#"{"state":"INBOX","event":{"type":"move","to":"ASSIGNED","by":{"id":"me","role":"human"},"payload":{"assigneeIds":["ann"]}}}"#,
            r#"{"state":"ASSIGNED","event":{"type":"move","to":"IN_PROGRESS","by":{"id":"me","role":"human"}}}"#,
        ],
    ),
    (
        "architect",
        &[
            r#"{"state":"WAITING","event":{"type":"request","id":"r-1","request":"question"}}"#,
            r#"{"state":"DISPATCHING","event":{"type":"abandon","reason":"lost"}}"#,
        ],
    ),
];

/// An event that is taken and one that is refused, with their answers.
fn worked((machine, lines): (&str, &[&str])) -> String {
    let mut text = format!(
        "For example, `adj machine step {machine}` takes the first of these and refuses the second:\n\n"
    );
    for (line, taken) in lines.iter().zip([true, false]) {
        let answer = step_line(machine, line);
        let ok = serde_json::from_str::<Value>(&answer).unwrap()["ok"].clone();
        assert_eq!(ok, taken, "{line} is answered {answer}");
        assert!(!answer.contains("MALFORMED"), "{answer}");
        let _ = write!(text, "```json\n{line}\n{answer}\n```\n");
    }
    text
}
