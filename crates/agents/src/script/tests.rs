//! Scenario files and the reader. The player is tested as the process that it is, with the command line.

use super::*;
use crate::tests::{order, read};

fn error(text: &str) -> String {
    Scenario::parse("demo.toml", text).unwrap_err().to_string()
}

/// A scenario with one action on its fourth line.
fn with(action: &str) -> String {
    format!("[[scenario]]\n[[scenario.step]]\ndo = [\n  {action},\n]\n")
}

#[test]
fn what_is_wrong_with_a_scenario_is_said_with_file_line_and_what_to_do() {
    let cases = [
        ("", "demo.toml:1: there is no scenario; begin with `[[scenario]]`"),
        ("[[scenario]]\ntask = 3\n", "demo.toml:2: `task` is the id of a task, or a pattern such as \"c-*\""),
        ("[[scenario]]\n", "demo.toml:1: this scenario has no step; add `[[scenario.step]]` with `do = […]`"),
        (
            "[[scenario]]\n[[scenario.step]]\non = \"dusk\"\ndo = []\n",
            "demo.toml:3: `on` is the kind of a prompt: init, step, test_failure, merge_conflict, turn, spec, review, question, budget",
        ),
        ("[[scenario]]\n[[scenario.step]]\n", "demo.toml:2: a step needs `do = [ { … }, { … } ]`"),
        (
            "[[scenario]]\nstps = 1\n",
            "demo.toml:2: there is no key `stps` here; there are: task, tokens, cost, step",
        ),
        (&with("\"hello\""), "demo.toml:4: an action is a table such as { say = \"hello\" }"),
        (&with("{ say = 1 }"), "demo.toml:4: `say` is a text, and it is required"),
        (&with("{ write = \"a\" }"), "demo.toml:4: `text` is a text, and it is required"),
        (
            &with("{ say = \"a\", text = \"b\" }"),
            "demo.toml:4: `text` cannot be combined with `say`; these can: nothing",
        ),
        (
            &with("{ say = \"a\", run = \"b\" }"),
            "demo.toml:4: `say` and `run` are two actions; write them one after the other",
        ),
        (&with("{ sleep = -1 }"), "demo.toml:4: `sleep` is a number of seconds, such as 0.5"),
        (&with("{ raw = \"1b5\" }"), "demo.toml:4: `raw` is bytes in hexadecimal, such as \"1b 5b 32 4a\""),
        (&with("{ fail = 300 }"), "demo.toml:4: `fail` is an exit code from 0 to 255"),
        (
            &with("{ run = \"ls\", cost = \"cheap\" }"),
            "demo.toml:4: `cost` is dollars, such as 0.01, or \"unknown\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
    let unknown = error(&with("{ sing = \"a\" }"));
    assert!(
        unknown.starts_with("demo.toml:4: this is not an action; the actions are: say, done, turn,"),
        "{unknown}"
    );
    let broken = error("[[scenario]\n");
    assert!(broken.starts_with("demo.toml:1: "), "{broken}");
}

#[test]
fn the_first_part_that_fits_a_task_is_played() {
    let step = "[[scenario.step]]\ndo = []\n";
    let text = format!(
        "[[scenario]]\ntask = \"c-1\"\n{step}[[scenario]]\ntask = \"c-*-x*\"\n{step}[[scenario]]\n{step}"
    );
    let scenario = Scenario::parse("demo.toml", &text).unwrap();
    let part = |task: &str| scenario.part(task).unwrap().task.clone();
    assert_eq!(part("c-1").as_deref(), Some("c-1"));
    assert_eq!(part("c-2-xy").as_deref(), Some("c-*-x*"));
    assert_eq!(part("c-2-y"), None);
}

/// The page is what people write their scenarios from: every example in it can be played.
#[test]
fn every_example_in_the_page_is_a_scenario() {
    let page = include_str!("../../../../docs/scenarios.md");
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() > 1);
    for example in examples {
        Scenario::parse("docs/scenarios.md", example).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}

fn reader() -> Box<dyn Reader> {
    Script.reader(&order())
}

const ASK: &str = r#"{"type":"ask","call":"c-1","tool":"Bash","argument":"git push"}"#;

#[test]
fn a_question_is_answered_once() {
    let mut reader = reader();
    assert_eq!(reader.answer("c-1", true, ""), None);
    let asked = Said::Asked {
        call: "c-1".into(),
        tool: "Bash".into(),
        argument: "git push".to_owned(),
        input: serde_json::Map::new(),
    };
    assert_eq!(reader.line(ASK.as_bytes(), true), [asked]);
    let answer = reader.answer("c-1", false, "not today").unwrap();
    assert_eq!(answer.id, "answer-c-1");
    assert_eq!(
        answer.text,
        "{\"type\":\"answer\",\"call\":\"c-1\",\"allow\":false,\"note\":\"not today\"}\n"
    );
    assert_eq!(reader.answer("c-1", true, ""), None);
}

#[test]
fn a_fresh_reader_asks_nothing_that_was_answered() {
    let mut reader = reader();
    reader.sent("alone-1", &String::from_utf8(crate::deny(PROTOCOL, ASK.as_bytes()).unwrap()).unwrap());
    reader.sent("say-1", "");
    assert_eq!(reader.line(ASK.as_bytes(), true), []);
    assert_eq!(reader.inject("more").unwrap().id, "say-2");
}

#[test]
fn a_call_that_cannot_be_examined_whole_is_refused() {
    let mut reader = reader();
    let said = reader.line(ASK.replace("git push", &"x".repeat(TEXT_BYTES_MAX + 1)).as_bytes(), true);
    let [Said::Notice(_), Said::Send(answer)] = &said[..] else { panic!("{said:?}") };
    assert!(answer.text.contains("\"allow\":false"), "{}", answer.text);
    assert_eq!(reader.answer("c-1", true, ""), None);
}

#[test]
fn a_keeper_without_a_server_refuses_questions_and_nothing_else() {
    let refused = crate::deny(PROTOCOL, ASK.as_bytes()).unwrap();
    assert!(String::from_utf8(refused).unwrap().contains("\"allow\":false"));
    assert_eq!(crate::deny(PROTOCOL, br#"{"type":"text","text":"hello"}"#), None);
    assert_eq!(crate::deny(PROTOCOL, b"\xff"), None);
}

#[test]
fn an_unknown_price_of_one_turn_makes_the_step_unpriced() {
    let turn = |cost: &str| {
        format!(
            r#"{{"type":"turn","calls":[],"output":null,"input_tokens":5,"output_tokens":1,"cost_usd":{cost}}}"#
        )
    };
    let last = r#"{"type":"final","text":"DONE"}"#;
    let (_, ended) = read(&mut *reader(), &format!("{}\n{last}", turn("0.5")), &Exit::code(0));
    assert_eq!(ended.usage().cost, Some(0));
    let (said, ended) = read(&mut *reader(), &format!("{}\n{last}", turn("null")), &Exit::code(0));
    assert_eq!(ended.usage().cost, None);
    assert!(matches!(
        said[0],
        Said::Turn { usage: Usage { cost: Some(0), input_tokens: 5, output_tokens: 1 }, .. }
    ));
    assert_eq!(said[1], Said::Finish);
}

#[test]
fn how_a_scripted_step_ends() {
    let ended = |output: &str, exit: Exit| read(&mut *reader(), output, &exit).1;
    let last = r#"{"type":"final","text":"all of it\nDONE"}"#;
    assert!(matches!(ended(last, Exit::code(0)), Ended::Finished { done: true, .. }));
    assert!(matches!(ended(last, Exit::code(2)), Ended::Failed { .. }));
    assert!(matches!(ended("", Exit::code(0)), Ended::Failed { .. }));
    let outage = ended(r#"{"type":"outage","error":"away","resets_at":7}"#, Exit::code(1));
    let usage = Usage::default();
    assert_eq!(
        outage,
        Ended::Outage {
            service_error: "away".to_owned(),
            resets_at: Some(7),
            retry_after: None,
            refused: false,
            usage
        }
    );
    let session = ended(r#"{"type":"session","error":"no session"}"#, Exit::code(1));
    assert_eq!(session, Ended::Failed { error: "no session".to_owned(), why: StepFailure::Session, usage });
}

/// Lines that are no message, or were cut, are told and change nothing else.
#[test]
fn what_is_not_understood_is_told_and_limited() {
    let mut reader = reader();
    let mut notices = 0;
    for _ in 0..10_000 {
        notices += reader.line(b"\xff\x1b[2J", true).len() + reader.line(b"xxx", false).len();
    }
    assert_eq!(notices, crate::NOTICES_MAX as usize);
}
