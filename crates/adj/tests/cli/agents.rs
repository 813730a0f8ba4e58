//! Agents as processes, driven by their adapters in real trees: a scripted one, any command, and a replayed Claude Code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../agents/drive.rs"]
mod drive;

use super::project::Repository;
use agents::{Ended, Order, PromptKind, Reason, Said, adapter};
use drive::{Act, Driven, allow_all, drive};
use kernel::command::{StepFailure, Usage};
use std::path::Path;
use std::process::Command;

/// A tree with one commit, and the directories that a task has outside of it.
struct Stage {
    repository: Repository,
    step: u32,
}

impl Stage {
    fn new() -> Stage {
        let stage = Stage { repository: Repository::new(), step: 0 };
        std::fs::create_dir_all(stage.tree()).unwrap();
        stage.git(&["init", "-q", "-b", "main"]);
        stage.write("README.md", "hello\n");
        stage.commit("first");
        stage.git(&["checkout", "-q", "-b", "work"]);
        stage
    }

    fn tree(&self) -> std::path::PathBuf {
        self.repository.0.join("tree")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"];
        let mut git = Command::new("git");
        git.args(identity).args(arguments).current_dir(self.tree());
        let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.tree().join(path), text).unwrap();
    }

    fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.tree().join(path)).ok()
    }

    fn order(&mut self, command: &[&str], kind: PromptKind, resume: bool) -> Order {
        self.step += 1;
        let root = &self.repository.0;
        Order {
            command: command.iter().map(|&part| part.to_owned()).collect(),
            model: None,
            system: None,
            allowed_tools: None,
            prompt: "do the work".to_owned(),
            kind,
            session: "11111111-1111-4111-8111-111111111111".into(),
            resume,
            turns_left: 50,
            budget_usd: None,
            task: "c-abc1".into(),
            worker: "A".into(),
            run: "r-1".into(),
            step: format!("e-{}", self.step).into(),
            tree: self.tree(),
            main: "main".to_owned(),
            private: root.join("private"),
            temp: root.join("temp"),
            project_root: root.clone(),
            adj: Path::new(env!("CARGO_BIN_EXE_adj")).to_owned(),
        }
    }

    /// Plays the next step of the scenario.
    fn script(&mut self, kind: PromptKind, resume: bool, react: impl FnMut(&Said) -> Vec<Act>) -> Driven {
        let order = self.order(&["scenario.toml"], kind, resume);
        drive(adapter("script").unwrap(), &order, &[], react)
    }

    fn scenario(&self, steps: &[(&str, &str)]) {
        let mut text = "[[scenario]]\n".to_owned();
        for (on, actions) in steps {
            let on = if on.is_empty() { String::new() } else { format!("on = \"{on}\"\n") };
            text.push_str(&format!("[[scenario.step]]\n{on}do = [{actions}]\n"));
        }
        std::fs::write(self.repository.0.join("scenario.toml"), text).unwrap();
    }
}

/// One step of a fresh session.
fn play(actions: &str, react: impl FnMut(&Said) -> Vec<Act>) -> (Stage, Driven) {
    let mut stage = Stage::new();
    stage.scenario(&[("", actions)]);
    let driven = stage.script(PromptKind::Init, false, react);
    (stage, driven)
}

fn texts(driven: &Driven) -> Vec<&str> {
    driven
        .said
        .iter()
        .filter_map(|said| if let Said::Text(text) = said { Some(text.as_str()) } else { None })
        .collect()
}

#[track_caller]
fn failure(driven: &Driven) -> (&str, StepFailure) {
    match &driven.ended {
        Ended::Failed { error, why, .. } => (error, *why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scripted_agent_writes_commits_and_says_done() {
    let (stage, driven) = play(
        r#"{ say = "I write." }, { write = "a/{task}.txt", text = "one\n" }, { append = "a/{task}.txt", text = "two\n" },
           { replace = "a/{task}.txt", from = "one", to = "step {step}" }, { commit = "Add {task}" },
           { say = "It is committed." }, { done = true }"#
            .replace('\n', " ")
            .as_str(),
        allow_all,
    );
    assert_eq!(stage.text("a/c-abc1.txt").as_deref(), Some("step 1\ntwo\n"));
    assert_eq!(stage.git(&["log", "-1", "--format=%s by %an"]), "Add c-abc1 by Scripted Agent");
    let output = "It is committed.\nDONE".to_owned();
    assert_eq!(driven.ended, Ended::Finished { done: true, output, usage: Usage::default() });
    assert_eq!(texts(&driven), ["I write.", "It is committed.\nDONE"]);
    let costs = driven.said.iter().filter_map(|said| match said {
        Said::Turn { usage, calls, .. } => Some((usage.cost, calls.len())),
        _ => None,
    });
    let costs: Vec<_> = costs.collect();
    assert_eq!(
        costs,
        [(Some(10_000), 1), (Some(10_000), 1), (Some(10_000), 1), (Some(10_000), 1), (Some(10_000), 0)]
    );
}

#[test]
fn what_is_refused_is_not_done() {
    let deny = |said: &Said| match said {
        Said::Asked { tool, .. } if tool == "Write" => {
            vec![Act::Answer { allow: false, note: "not that file" }]
        }
        said => allow_all(said),
    };
    let (stage, driven) =
        play(r#"{ write = "a.txt", text = "x" }, { run = "echo ran > b.txt" }, { done = true }"#, deny);
    assert_eq!((stage.text("a.txt"), stage.text("b.txt").as_deref()), (None, Some("ran\n")));
    let refused = driven.said.iter().any(|said| {
        matches!(said, Said::ToolResult { ok: false, output, .. } if output == "denied: not that file")
    });
    assert!(refused, "{:?}", driven.said);
}

#[test]
fn done_in_the_output_of_a_tool_or_in_a_quote_is_not_done() {
    let (_, driven) = play(r#"{ run = "echo DONE" }, { say = "> DONE" }"#, allow_all);
    assert!(matches!(driven.ended, Ended::Finished { done: false, .. }), "{:?}", driven.ended);
}

#[test]
fn steps_follow_each_other_in_a_session_and_reactions_answer_their_prompt() {
    let mut stage = Stage::new();
    stage.scenario(&[
        ("", r#"{ say = "first" }"#),
        ("", r#"{ say = "second" }"#),
        ("test_failure", r#"{ say = "mended" }"#),
    ]);
    let mut said = |kind, resume| match stage.script(kind, resume, allow_all).ended {
        Ended::Finished { output, .. } => output,
        other => panic!("{other:?}"),
    };
    assert_eq!(said(PromptKind::Init, false), "first");
    assert_eq!(said(PromptKind::TestFailure, true), "mended");
    assert_eq!(said(PromptKind::Step, true), "second");
    assert_eq!(said(PromptKind::TestFailure, true), "mended");
    assert_eq!(said(PromptKind::Step, true), "Nothing is left to do.\nDONE");
}

#[test]
fn a_session_that_is_unknown_is_a_session_failure_and_one_that_was_begun_goes_on() {
    let mut stage = Stage::new();
    stage.scenario(&[("", r#"{ say = "x" }"#)]);
    let unknown = stage.script(PromptKind::Step, true, allow_all);
    assert_eq!(
        failure(&unknown),
        ("no session 11111111-1111-4111-8111-111111111111 was found", StepFailure::Session)
    );
    stage.script(PromptKind::Init, false, allow_all);
    // As after a start that was cut off before anybody knew of it.
    let again = stage.script(PromptKind::Init, false, allow_all);
    assert!(matches!(again.ended, Ended::Finished { done: true, .. }), "{:?}", again.ended);
}

#[test]
fn an_agent_that_crashes_goes_on_with_its_next_step() {
    let mut stage = Stage::new();
    stage.scenario(&[
        ("", r#"{ write = "half.txt", text = "x" }, { crash = true }"#),
        ("", r#"{ done = true }"#),
    ]);
    let crashed = stage.script(PromptKind::Init, false, allow_all);
    assert_eq!(failure(&crashed), ("the scripted agent was ended by signal 9", StepFailure::Failed));
    assert!(stage.text("half.txt").is_some());
    let next = stage.script(PromptKind::Step, true, allow_all);
    assert!(matches!(next.ended, Ended::Finished { done: true, .. }));
}

#[test]
fn an_agent_fails_with_its_exit_code_and_complaint() {
    let (_, driven) = play(r#"{ fail = 3, stderr = "out of ideas" }"#, allow_all);
    assert_eq!(
        failure(&driven),
        ("the scripted agent ended with exit code 3: out of ideas", StepFailure::Failed)
    );
}

#[test]
fn an_outage_says_when_the_limit_is_reset() {
    let (_, driven) = play(r#"{ outage = 429, resets_in = 60 }"#, allow_all);
    let Ended::Outage { service_error, resets_at: Some(at), .. } = &driven.ended else {
        panic!("{:?}", driven.ended)
    };
    assert_eq!(service_error, "the scripted service is unavailable (status 429)");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    assert!((now..now + 61_000).contains(at));
}

/// The command is ended with it, and the words come out at once: nobody waits for the sleep.
#[test]
fn an_interrupt_ends_a_running_command() {
    let react = |said: &Said| match said {
        Said::Asked { .. } => vec![Act::Answer { allow: true, note: "" }, Act::Interrupt],
        _ => Vec::new(),
    };
    let (stage, driven) = play(r#"{ run = "sleep 600; touch late" }, { done = true }"#, react);
    assert_eq!(failure(&driven), ("the agent was interrupted", StepFailure::Failed));
    assert_eq!(stage.text("late"), None);
}

#[test]
fn what_is_said_to_an_agent_at_work_reaches_it() {
    let react = |said: &Said| match said {
        Said::Turn { calls, .. } if calls.is_empty() => vec![Act::Tell("and the docs".to_owned())],
        _ => Vec::new(),
    };
    let (_, driven) = play(r#"{ turn = "working" }, { listen = 60 }, { done = true }"#, react);
    assert!(texts(&driven).contains(&"I was told: and the docs"), "{:?}", texts(&driven));
}

#[test]
fn an_agent_that_hangs_is_ended_and_has_timed_out() {
    let react = |said: &Said| match said {
        Said::Turn { .. } => vec![Act::End(Reason::TimedOut)],
        _ => Vec::new(),
    };
    let (_, driven) = play(r#"{ turn = "soon" }, { hang = true }"#, react);
    assert_eq!(failure(&driven).1, StepFailure::TimedOut);
}

#[test]
fn noise_of_every_kind_does_not_stop_a_step() {
    let (_, driven) = play(
        r#"{ flood = 2000 }, { long_line = 3000000 }, { raw = "1b 5b 32 4a ff 00" }, { complain = "hm" }, { done = true }"#,
        allow_all,
    );
    assert!(matches!(driven.ended, Ended::Finished { done: true, .. }), "{:?}", driven.ended);
    assert_eq!(texts(&driven).len(), 2001);
}

#[test]
fn a_conflict_is_settled_by_the_text_that_is_given() {
    let mut stage = Stage::new();
    stage.write("a.txt", "work\n");
    stage.write("b.txt", "work\n");
    stage.commit("on work");
    stage.git(&["checkout", "-q", "main"]);
    stage.write("a.txt", "main\n");
    stage.write("b.txt", "main\n");
    stage.commit("on main");
    stage.git(&["checkout", "-q", "work"]);
    let merge = r#"{ merge = "{main}", take = "theirs", files = { "a.txt" = "both\n" } }, { done = true }"#;
    stage.scenario(&[("merge_conflict", merge)]);
    let driven = stage.script(PromptKind::MergeConflict, false, allow_all);
    assert!(matches!(driven.ended, Ended::Finished { done: true, .. }));
    assert_eq!(
        (stage.text("a.txt").as_deref(), stage.text("b.txt").as_deref()),
        (Some("both\n"), Some("main\n"))
    );
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
    assert_eq!(stage.git(&["log", "-1", "--format=%s"]), "Merge main");
    stage.git(&["merge-base", "--is-ancestor", "main", "work"]);
}

#[test]
fn any_program_can_be_an_agent() {
    let mut stage = Stage::new();
    let order = stage.order(&["sh", "-c", "cat > prompt.txt; echo DONE"], PromptKind::Init, false);
    let driven = drive(adapter("command").unwrap(), &order, &[], allow_all);
    assert_eq!(stage.text("prompt.txt").as_deref(), Some("do the work"));
    let usage = Usage { cost: None, ..Usage::default() };
    assert_eq!(driven.ended, Ended::Finished { done: true, output: "DONE".to_owned(), usage });
}

/// Claude Code, replayed: `replies` are its steps.
struct Replayed {
    stage: Stage,
    steps: u32,
}

impl Replayed {
    fn new(replies: serde_json::Value) -> Replayed {
        let stage = Stage::new();
        std::fs::write(stage.repository.0.join("replies.json"), replies.to_string()).unwrap();
        Replayed { stage, steps: 0 }
    }

    fn step(&mut self, react: impl FnMut(&Said) -> Vec<Act>) -> Driven {
        let resume = self.steps > 0;
        self.steps += 1;
        self.order_step(resume, react)
    }

    fn order_step(&mut self, resume: bool, react: impl FnMut(&Said) -> Vec<Act>) -> Driven {
        let replies = self.stage.repository.0.join("replies.json");
        let command = [env!("CARGO_BIN_EXE_adj"), "internal", "replay", replies.to_str().unwrap()];
        let order = self.stage.order(&command, PromptKind::Init, resume);
        drive(adapter("claude").unwrap(), &order, &[], react)
    }

    fn path(&self, name: &str) -> String {
        self.stage.tree().join(name).to_str().unwrap().to_owned()
    }
}

fn write_call(path: &str) -> serde_json::Value {
    serde_json::json!({ "name": "Write", "input": { "file_path": path, "content": "x\n" } })
}

fn bash_call(command: &str) -> serde_json::Value {
    serde_json::json!({ "name": "Bash", "input": { "command": command } })
}

/// One step in a tree whose path is known only when it is there.
fn replayed(replies: impl FnOnce(&Replayed) -> serde_json::Value) -> Replayed {
    let replayed = Replayed::new(serde_json::Value::Null);
    let replies = replies(&replayed);
    std::fs::write(replayed.stage.repository.0.join("replies.json"), replies.to_string()).unwrap();
    replayed
}

const COMMIT: &str = "git add -A && git -c user.name=a -c user.email=a@b.invalid commit -q -m work";

#[test]
fn a_replayed_claude_works_in_its_tree_and_goes_on_in_its_session() {
    let mut claude = replayed(|claude| {
        serde_json::json!([
            [{ "text": "I write.", "tools": [write_call(&claude.path("a.txt")), bash_call(COMMIT)] }, { "text": "One." }],
            [{ "text": "All is there.\nDONE" }],
        ])
    });
    let first = claude.step(allow_all);
    let usage = Usage { cost: Some(10_000), ..Usage::default() };
    assert_eq!(first.ended, Ended::Finished { done: false, output: "One.".to_owned(), usage });
    let asked = first.said.iter().filter_map(|said| match said {
        Said::Asked { tool, argument, .. } => Some((tool.as_str(), argument.as_str())),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [("Write", "a.txt"), ("Bash", COMMIT)]);
    assert_eq!(claude.stage.git(&["log", "-1", "--format=%s"]), "work");
    let second = claude.step(allow_all);
    let usage = Usage { cost: Some(5_000), ..Usage::default() };
    assert_eq!(second.ended, Ended::Finished { done: true, output: "All is there.\nDONE".to_owned(), usage });
}

#[test]
fn a_call_that_is_refused_to_claude_leaves_no_file() {
    let mut claude = replayed(
        |claude| serde_json::json!([[{ "tools": [write_call(&claude.path("a.txt"))] }, { "text": "DONE" }]]),
    );
    let driven = claude.step(|said| match said {
        Said::Asked { .. } => vec![Act::Answer { allow: false, note: "not that" }],
        _ => Vec::new(),
    });
    assert_eq!(claude.stage.text("a.txt"), None);
    let refused = driven.said.iter().any(
        |said| matches!(said, Said::ToolResult { ok: false, output, .. } if output.contains("not that")),
    );
    assert!(refused, "{:?}", driven.said);
}

#[test]
fn a_session_that_claude_does_not_know_is_a_session_failure_and_one_that_was_begun_goes_on() {
    let mut claude = replayed(|_| serde_json::json!([[{ "text": "hello" }]]));
    assert_eq!(failure(&claude.order_step(true, allow_all)).1, StepFailure::Session);
    claude.order_step(false, allow_all);
    // As after a start that was cut off before anybody knew of it.
    let again = claude.order_step(false, allow_all);
    assert!(matches!(again.ended, Ended::Finished { done: true, .. }), "{:?}", again.ended);
}

#[test]
fn claude_can_be_interrupted_while_a_call_waits() {
    let mut claude = replayed(
        |claude| serde_json::json!([[{ "tools": [write_call(&claude.path("a.txt"))] }, { "text": "DONE" }]]),
    );
    let driven =
        claude.step(|said| if let Said::Asked { .. } = said { vec![Act::Interrupt] } else { Vec::new() });
    assert_eq!(failure(&driven), ("the agent was interrupted", StepFailure::Failed));
    assert_eq!(claude.stage.text("a.txt"), None);
}

#[test]
fn an_error_of_the_service_is_an_outage_and_costs_nothing() {
    let mut claude = replayed(|_| serde_json::json!([[{ "status": 529 }]]));
    let driven = claude.step(allow_all);
    assert!(
        matches!(&driven.ended, Ended::Outage { usage, .. } if *usage == Usage::default()),
        "{:?}",
        driven.ended
    );
}
