//! What holds for every adapter, and the `command` adapter.

use super::*;
use kernel::command::StepFailure;

/// An order for a step in `/tree`.
pub(super) fn order() -> Order {
    Order {
        command: Vec::new(),
        model: None,
        system: None,
        allowed_tools: None,
        prompt: "do the work".to_owned(),
        kind: PromptKind::Init,
        session: "11111111-1111-4111-8111-111111111111".into(),
        resume: false,
        turns_left: 50,
        budget_usd: None,
        task: "c-abc1".into(),
        worker: "A".into(),
        run: "r-1".into(),
        step: "e-1.1".into(),
        tree: "/tree".into(),
        main: "main".to_owned(),
        private: "/private".into(),
        temp: "/temp".into(),
        project_root: "/project".into(),
        adj: "/bin/adj".into(),
    }
}

/// Feeds a whole output to a reader: what it says, and how it ends.
pub(super) fn read(reader: &mut dyn Reader, output: &str, exit: &Exit) -> (Vec<Said>, Ended) {
    let said = output.lines().flat_map(|line| reader.line(line.as_bytes(), true)).collect();
    (said, reader.end(exit))
}

#[test]
fn done_counts_as_the_first_or_last_line_that_is_not_quoted() {
    let cases = [
        ("DONE", true),
        ("All is committed.\nDONE", true),
        ("DONE\nand a word after it", true),
        ("DONE  \r", true),
        ("  DONE", false),
        ("It was\nDONE\nbefore I came.", false),
        ("I am DONE", false),
        ("DONE.", false),
        ("done", false),
        ("> DONE", false),
        ("    DONE", false),
        ("\tDONE", false),
        ("```\nDONE\n```", false),
        ("```text\nDONE\n```\nDONE", true),
        ("~~~\nDONE\n```\nDONE\n~~~", false),
        ("````\n```\nDONE\n````", false),
        ("```\nnever closed\nDONE", false),
        ("``` not `a` fence\nDONE", true),
        ("`DONE`", false),
        ("", false),
    ];
    for (text, done) in cases {
        assert_eq!(said_done(text), done, "{text:?}");
    }
}

#[test]
fn every_adapter_is_found_by_its_name() {
    for known in ADAPTERS {
        assert_eq!(adapter(known.name()).map(Adapter::name), Some(known.name()));
    }
    assert!(adapter("telepathy").is_none());
}

#[test]
fn a_command_gets_its_prompt_as_input_and_its_placeholders_filled_once() {
    let mut order = order();
    order.command =
        ["agent", "--session={session}", "{model}", "@{prompt_file}", "{other}"].map(str::to_owned).into();
    order.model = Some("{session}".to_owned());
    order.system = Some("Be kind.".to_owned());
    let launch = adapter("command").unwrap().launch(&order).unwrap();
    assert_eq!(
        launch.argv,
        [
            "agent",
            "--session=11111111-1111-4111-8111-111111111111",
            "{session}",
            "@/private/prompt-11111111-1111-4111-8111-111111111111.md",
            "{other}"
        ]
    );
    assert_eq!(launch.stdin, Stdin::Whole("Be kind.\n\ndo the work".to_owned()));
    assert_eq!(launch.files.len(), 1);
}

#[test]
fn a_command_without_a_program_cannot_be_started() {
    let error = adapter("command").unwrap().launch(&order()).unwrap_err();
    assert_eq!(error.to_string(), "adapter `command` needs a `command` in adjutant.toml");
}

#[test]
fn a_session_that_would_leave_its_directory_is_refused() {
    for session in ["../x", "-rf", "", "a/b", "a b"] {
        let order = Order { session: session.into(), command: vec!["x".to_owned()], ..order() };
        let error = adapter("command").unwrap().launch(&order).unwrap_err();
        assert!(matches!(error, AgentError::BadSession { .. }), "{session:?}: {error}");
    }
}

/// The whole output is the last message; its price is not known.
#[test]
fn a_command_that_ends_well_has_finished_at_an_unknown_price() {
    let adapter = adapter("command").unwrap();
    let mut reader = adapter.reader(&Order { command: vec!["agent".to_owned()], ..order() });
    let (said, ended) = read(&mut *reader, "working\nDONE", &Exit::code(0));
    let line = |text: &str| [Said::Text(text.to_owned()), Said::Token(format!("{text}\n"))];
    assert_eq!(said, [line("working"), line("DONE")].concat());
    let usage = kernel::command::Usage { cost: None, ..Default::default() };
    assert_eq!(ended, Ended::Finished { done: true, output: "working\nDONE".to_owned(), usage });
}

#[test]
fn how_a_command_ends_badly_is_told_with_its_last_complaint() {
    let cases = [
        (Exit::code(3), "`agent` ended with exit code 3: no such file\nDONE", StepFailure::Failed),
        (
            Exit::signal(9, Reason::Exited),
            "`agent` was ended by signal 9: no such file\nDONE",
            StepFailure::Failed,
        ),
        (
            Exit::signal(9, Reason::TimedOut),
            "`agent` exceeded the time limit of the step",
            StepFailure::TimedOut,
        ),
        (Exit::signal(9, Reason::Alone), "`agent` was ended: no server came back for it", StepFailure::Lost),
        (Exit::unknown(), "`agent` ended in an unknown way", StepFailure::Lost),
    ];
    for (exit, expected, expected_why) in cases {
        let mut reader =
            adapter("command").unwrap().reader(&Order { command: vec!["agent".to_owned()], ..order() });
        reader.line(b"DONE", true);
        reader.error_line(b"no such file");
        let Ended::Failed { error, why, usage } = reader.end(&exit) else { panic!("{exit:?}") };
        assert_eq!((error.as_str(), why, usage.cost), (expected, expected_why, None));
    }
}

/// A hundred megabytes are read with a hundred kilobytes, and DONE is still found behind them.
#[test]
fn what_a_command_prints_is_bounded_in_memory_and_done_is_seen_in_all_of_it() {
    let mut reader =
        adapter("command").unwrap().reader(&Order { command: vec!["agent".to_owned()], ..order() });
    reader.line(b"DONE", true);
    let line = vec![b'x'; 100_000];
    for _ in 0..100 {
        reader.line(&line, false);
    }
    let Ended::Finished { done, output, .. } = reader.end(&Exit::code(0)) else { panic!() };
    assert!(done && output.len() <= 2 * TEXT_BYTES_MAX + 100, "{}", output.len());
}

#[test]
fn a_transcript_shows_what_would_move_the_cursor() {
    let entry = Entry { kind: EntryKind::Text, text: "a\u{1b}[2Jb\u{202e}c\nd\u{85}e".to_owned() };
    assert_eq!(entry.plain(), "  a\\u{1b}[2Jb\\u{202e}c\n  d\\u{85}e\n");
    assert_eq!(entry.json_line(), r#"{"kind":"text","text":"a\u001b[2Jb\u202ec\nd\u0085e"}"#);
}

#[test]
fn a_transcript_tells_calls_by_what_they_are_about() {
    let input = serde_json::json!({ "command": "git push", "description": "d" });
    let call = ToolCall {
        id: "1".into(),
        tool: "Bash".into(),
        input: input.as_object().unwrap().clone(),
        output: None,
        duration: None,
        status: machines::run::ToolStatus::Pending,
    };
    let turn = Said::Turn { calls: vec![call], output: None, usage: Default::default() };
    assert_eq!(Entry::of(&turn)[0].plain(), "▸ Bash(git push)\n");
}

#[test]
fn a_price_is_never_rounded_down() {
    for (usd, expected) in
        [(0.0, 0), (0.01, 10_000), (0.02692, 26_920), (0.000_000_1, 1), (f64::NAN, 0), (-1.0, 0)]
    {
        assert_eq!(micros(usd), expected, "{usd}");
    }
}
