//! The reader on recordings of the program, and what it is started with.

use super::super::tests::order;
use super::super::{Ended, Exit, Said, Silence, StopReason, deny};
use super::*;
use kernel::command::StepFailure;

macro_rules! captures {
    ($($name:literal),* $(,)?) => {
        fn capture(name: &str) -> &'static str {
            match name {
                $($name => include_str!(concat!("captures/", $name, ".jsonl")),)*
                other => panic!("there is no recording `{other}`"),
            }
        }
    };
}

captures!(
    "api-400",
    "api-401",
    "api-429",
    "api-500",
    "deny",
    "edit",
    "interrupt",
    "no-key",
    "no-network",
    "resume",
    "rules",
    "steer",
    "subagent",
    "tools",
    "two-files",
    "typed",
    "usage-limit",
);

fn reader(resume: bool) -> Box<dyn Reader> {
    Codex.reader(&Order { resume, tree: "/repo".into(), ..order() })
}

/// The lines of a recording: whether the program printed it, and what it is.
fn lines(name: &str) -> impl Iterator<Item = (bool, Value)> {
    capture(name).lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["dir"] == "out", line["msg"].clone())
    })
}

/// Tells a reader of something that was sent.
fn sent(reader: &mut dyn Reader, message: &Value) {
    let id = message["id"].as_str().map_or_else(|| format!("note-{}", message["id"]), str::to_owned);
    reader.sent(&id, &format!("{message}\n"));
}

/// Both directions in the order in which they went.
fn play(name: &str, resume: bool, exit: &Exit) -> (Vec<Said>, Ended) {
    let mut reader = reader(resume);
    let mut said = Vec::new();
    for (printed, message) in lines(name) {
        match printed {
            true => said.extend(reader.line(message.to_string().as_bytes(), true)),
            false => sent(&mut *reader, &message),
        }
    }
    (said, reader.end(exit))
}

/// A recording in one line: turns with their calls, questions, results, tokens, and the end.
fn told(name: &str, resume: bool) -> String {
    let (said, ended) = play(name, resume, &Exit::code(0));
    let count = |matches: fn(&Said) -> bool| said.iter().filter(|said| matches(said)).count();
    let calls: usize =
        said.iter().map(|said| if let Said::Turn { calls, .. } = said { calls.len() } else { 0 }).sum();
    let start = |text: &str| text.chars().take(40).collect::<String>();
    let how = match &ended {
        Ended::Finished { done, output, .. } => format!("finished done={done} {output:?}"),
        Ended::Spent { what, said, .. } => format!("spent {what:?} {said:?}"),
        Ended::Failed { error, why, .. } => format!("failed {why} {:?}", start(error)),
        Ended::Outage { service_error, refused, .. } => {
            format!("outage refused={refused} {:?}", start(service_error))
        }
    };
    let usage = ended.usage();
    let cost = if usage.cost.is_some() { "" } else { " at ?" };
    format!(
        "{} turns, {calls} calls, {} asked, {} results, {} + {} tokens{cost}: {how}",
        count(|said| matches!(said, Said::Turn { .. })),
        count(|said| matches!(said, Said::Asked { .. })),
        count(|said| matches!(said, Said::ToolResult { .. })),
        usage.input_tokens,
        usage.output_tokens,
    )
}

/// Every way in which a recorded step ended, and what it comes to.
#[test]
fn how_recorded_steps_end() {
    #[rustfmt::skip]
    let table = [
        ("edit", false, "4 turns, 3 calls, 3 asked, 3 results, 2000 + 100 tokens at ?: finished done=true \"All there.\\nDONE\""),
        ("two-files", false, "2 turns, 3 calls, 3 asked, 3 results, 2000 + 100 tokens at ?: finished done=true \"All there.\\nDONE\""),
        ("deny", false, "3 turns, 2 calls, 2 asked, 2 results, 3000 + 150 tokens at ?: finished done=true \"DONE\""),
        ("interrupt", false, "1 turns, 1 calls, 1 asked, 0 results, 1000 + 50 tokens at ?: failed failed \"the agent was interrupted\""),
        ("steer", false, "2 turns, 1 calls, 1 asked, 0 results, 2000 + 100 tokens at ?: finished done=true \"Heard.\\nDONE\""),
        ("resume", true, "1 turns, 0 calls, 0 asked, 0 results, 1000 + 50 tokens at ?: finished done=true \"Again.\\nDONE\""),
        ("subagent", false, "2 turns, 3 calls, 3 asked, 3 results, 7000 + 350 tokens at ?: finished done=true \"DONE\""),
        ("tools", false, "3 turns, 2 calls, 0 asked, 2 results, 3000 + 150 tokens at ?: finished done=true \"All is seen.\\nDONE\""),
        ("rules", false, "1 turns, 0 calls, 0 asked, 0 results, 3000 + 150 tokens at ?: failed failed \"codex does not ask before it acts: it ac\""),
        ("typed", false, "4 turns, 3 calls, 3 asked, 3 results, 3000 + 150 tokens at ?: failed failed \"codex does not ask before it acts: it ac\""),
        ("api-400", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: failed failed \"{\\\"error\\\": {\\\"message\\\": \\\"bad thing\\\", \\\"type\""),
        ("api-401", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: outage refused=true \"401 authentication failed\""),
        ("no-key", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: outage refused=true \"Missing environment variable: `CODEX_API\""),
        ("api-429", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: outage refused=false \"exceeded retry limit, last status: 429 T\""),
        ("usage-limit", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: outage refused=false \"You’ve hit your usage limit. Upgrade to \""),
        ("api-500", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: outage refused=false \"We’re currently experiencing high demand\""),
        ("no-network", false, "0 turns, 0 calls, 0 asked, 0 results, 0 + 0 tokens: outage refused=false \"Connection failed: error sending request\""),
    ];
    let found: Vec<String> =
        table.iter().map(|(name, resume, _)| format!("{name}: {}", told(name, *resume))).collect();
    let expected: Vec<String> = table.iter().map(|(name, _, told)| format!("{name}: {told}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_limit_says_when_it_is_reset() {
    let (_, ended) = play("usage-limit", false, &Exit::code(0));
    let Ended::Outage { resets_at, .. } = ended else { panic!("{ended:?}") };
    assert_eq!(resets_at, Some(1_794_899_999_000));
}

/// How much of a limit is used is a number, with a fraction or without one.
#[test]
fn a_limit_that_is_used_up_by_a_fraction_says_when_it_is_reset() {
    for (used, resets) in
        [("100", true), ("100.0", true), ("100.4", true), ("99.9", false), ("\"100\"", false)]
    {
        let mut reader = reader(false);
        for (printed, message) in lines("usage-limit") {
            match printed {
                true => {
                    let line = message
                        .to_string()
                        .replace("\"usedPercent\":100", &format!("\"usedPercent\":{used}"));
                    reader.line(line.as_bytes(), true);
                }
                false => sent(&mut *reader, &message),
            }
        }
        let Ended::Outage { resets_at, .. } = reader.end(&Exit::code(0)) else { panic!("{used}") };
        assert_eq!(resets_at, resets.then_some(1_794_899_999_000), "{used}");
    }
}

#[test]
fn what_was_done_unasked_ends_the_step_and_so_does_what_is_typed_into_a_command() {
    for name in ["rules", "typed"] {
        let (said, _) = play(name, false, &Exit::code(0));
        let stops: Vec<&Said> = said.iter().filter(|said| matches!(said, Said::Stop(_))).collect();
        assert_eq!(stops, [&Said::Stop(StopReason::NotGated)], "{name}");
    }
}

/// Nobody is asked about a tool of ours; no other server is named to the program, so a tool of one is a way around us.
#[test]
fn a_call_of_our_own_tools_is_told_and_one_of_another_server_ends_the_step() {
    let (said, _) = play("tools", false, &Exit::code(0));
    let results: Vec<(&str, bool, &str)> = said
        .iter()
        .filter_map(|said| match said {
            Said::ToolResult { tool, ok, output, .. } => Some((tool.as_str(), *ok, output.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!((results[0].0, results[0].1), ("mcp__adjutant__list_tasks", true));
    assert_eq!((results[1].0, results[1].1), ("mcp__adjutant__show_task", false));
    assert!(results[1].2.starts_with("there is no task `nope`"), "{results:?}");

    let mut reader = reader(false);
    let evil =
        json!({ "type": "mcpToolCall", "id": "x", "server": "evil", "tool": "touch", "arguments": {} });
    let started = json!({ "method": "item/started", "params": { "item": evil } });
    let said = reader.line(started.to_string().as_bytes(), true);
    assert_eq!(said, [Said::Stop(StopReason::NotGated)]);
}

#[test]
fn it_is_started_so_that_it_asks_and_takes_up_nothing_of_the_repository() {
    let order = Order {
        command: ["codex", "-c", "model_providers.adjutant.base_url=\"http://127.0.0.1:9/v1\""]
            .map(str::to_owned)
            .into(),
        model: Some("some \"model\"".to_owned()),
        system: Some("Be kind.".to_owned()),
        ..order()
    };
    let launch = Codex.launch(&order).unwrap();
    let home = PathBuf::from("/private/codex-11111111-1111-4111-8111-111111111111");
    assert_eq!(launch.argv[3], "app-server");
    for feature in ["hooks", "plugins", "unified_exec_tty"] {
        assert!(launch.argv.windows(2).any(|pair| pair == ["--disable", feature]), "{feature}");
    }
    assert_eq!(launch.env[0], ("CODEX_HOME".to_owned(), home.to_string_lossy().into_owned()));
    assert_eq!(launch.swept, Some(Sweep { directory: home.clone(), but: &["sessions"] }));
    let [(path, config)] = &launch.files[..] else { panic!("{:?}", launch.files) };
    assert_eq!(*path, home.join("config.toml"));
    let config: toml_edit::DocumentMut = std::str::from_utf8(config).unwrap().parse().unwrap();
    assert_eq!(config["projects"]["/tree"]["trust_level"].as_str(), Some("untrusted"));
    assert_eq!(config["model"].as_str(), Some("some \"model\""));
    assert_eq!(config["model_providers"]["adjutant"]["env_key"].as_str(), Some("OPENAI_API_KEY"));
    let servers: Vec<&str> = config["mcp_servers"].as_table().unwrap().iter().map(|(name, _)| name).collect();
    assert_eq!(servers, ["adjutant"]);
    let names: Vec<&str> = config["mcp_servers"]["adjutant"]["env_vars"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    assert_eq!(names, ["ADJ_TOKEN", "ADJ_SERVER"], "what they hold is in no file");
    let Stdin::Open(first) = launch.stdin else { panic!() };
    let thread: Value = serde_json::from_str(first.text.lines().nth(2).unwrap()).unwrap();
    assert_eq!(thread["method"], "thread/start");
    assert_eq!(thread["params"]["approvalPolicy"], "untrusted");
    let told = thread["params"]["developerInstructions"].as_str().unwrap();
    assert!(told.starts_with("Be kind.\n\n# Tools of Adjutant"), "{told}");
    let Stdin::Open(first) = Codex.launch(&Order { resume: true, ..order }).unwrap().stdin else { panic!() };
    let thread: Value = serde_json::from_str(first.text.lines().nth(2).unwrap()).unwrap();
    assert_eq!(thread["method"], "thread/resume", "and the program says that it is not there");
}

#[test]
fn a_command_that_would_act_unasked_is_refused() {
    let refused: &[&[&str]] = &[
        &["--dangerously-bypass-approvals-and-sandbox"],
        &["--full-auto"],
        &["--yolo"],
        &["-a", "never"],
        &["-anever"],
        &["--ask-for-approval=never"],
        &["-s", "danger-full-access"],
        &["-c", "approval_policy=\"never\""],
        &["-capproval_policy=never"],
        &["--config=features.hooks=true"],
        &["--config", "projects.\"/tree\".trust_level=\"trusted\""],
        &["--enable", "hooks"],
    ];
    for flags in refused {
        let command = ["codex"].iter().chain(flags.iter()).map(|&word| word.to_owned()).collect();
        let error = Codex.launch(&Order { command, ..order() }).unwrap_err();
        assert!(error.to_string().contains("`codex` agent would let it act"), "{flags:?}: {error}");
    }
    let command = ["codex", "-c", "model_reasoning_effort=\"high\"", "-m", "x"].map(str::to_owned).into();
    Codex.launch(&Order { command, ..order() }).unwrap();
}

/// The program names its conversations itself. Those of subagents are begun later, and links lead nowhere.
#[test]
fn a_conversation_is_found_by_the_home_of_its_session_and_nothing_else_in_it_is_kept() {
    let private = std::env::temp_dir().join(format!("adj-codex-home-{}", std::process::id()));
    let order = Order { command: vec!["codex".to_owned()], private: private.clone(), ..order() };
    let home = private.join("codex-11111111-1111-4111-8111-111111111111");
    let day = home.join("sessions/2026/11/17");
    std::fs::create_dir_all(&day).unwrap();
    let first = "01a1e80a-c8e2-7b02-8422-329db8871195";
    for (time, id) in [("05-46-23", first), ("05-46-24", "01a1e80b-c8e2-7b02-8422-329db8871195")] {
        std::fs::write(day.join(format!("rollout-2026-11-17T{time}-{id}.jsonl")), "").unwrap();
    }
    std::fs::create_dir_all(home.join("rules")).unwrap();
    std::fs::write(home.join("rules/x.rules"), "").unwrap();
    let outside = private.join("outside");
    std::fs::write(&outside, "mine").unwrap();
    std::os::unix::fs::symlink(&outside, home.join("hooks.json")).unwrap();
    let launch = Codex.launch(&order).unwrap();
    let Stdin::Open(input) = &launch.stdin else { panic!() };
    assert!(input.text.contains(&format!("\"threadId\":\"{first}\"")), "{}", input.text);
    launch.swept.as_ref().unwrap().carry_out().unwrap();
    let left: Vec<_> = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["sessions"]);
    // The whole of it, or its conversations, can be a link too: the link goes, and not what it leads to.
    std::fs::rename(&home, private.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(private.join("elsewhere"), &home).unwrap();
    launch.swept.as_ref().unwrap().carry_out().unwrap();
    assert!(!home.exists() && private.join("elsewhere/sessions").is_dir());
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::symlink(&private, home.join("sessions")).unwrap();
    launch.swept.as_ref().unwrap().carry_out().unwrap();
    assert!(!home.join("sessions").exists() && outside.exists());
    std::fs::remove_dir_all(&private).unwrap();
}

const HELLO: &str = r#"{"id":"thread","result":{"thread":{"id":"th"},"approvalPolicy":"untrusted","approvalsReviewer":"user"}}"#;
const BEGUN: &str = r#"{"id":"prompt","result":{"turn":{"id":"tu"}}}"#;

fn say(reader: &mut dyn Reader, line: &str) -> Vec<Said> {
    reader.line(line.as_bytes(), true)
}

/// A reader whose program works on its prompt.
fn at_work() -> Box<dyn Reader> {
    let mut reader = reader(false);
    let said = say(&mut *reader, HELLO);
    assert!(matches!(&said[..], [Said::Send(prompt)] if prompt.id == "prompt"), "{said:?}");
    assert_eq!(say(&mut *reader, BEGUN), []);
    reader
}

fn ask(id: u32, item: &str, command: &str) -> String {
    let params = json!({ "kind": "command", "threadId": "th", "turnId": "tu", "itemId": item,
        "command": format!("/bin/bash -lc '{command}'"), "cwd": "/repo" });
    json!({ "method": "item/commandExecution/requestApproval", "id": id, "params": params }).to_string()
}

#[test]
fn the_prompt_waits_until_the_program_has_said_that_it_asks() {
    for refusal in [HELLO.replace("untrusted", "never"), HELLO.replace("user", "auto_review")] {
        assert_eq!(say(&mut *reader(false), &refusal), [Said::Stop(StopReason::NotGated)]);
    }
    at_work();
}

#[test]
fn an_answer_is_for_one_call_and_no_comes_with_its_reason() {
    let mut reader = at_work();
    let said = say(&mut *reader, &ask(0, "i1", "git push"));
    let [Said::Turn { calls, .. }, Said::Asked { call, tool, argument, .. }] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((calls.len(), call.as_str(), tool.as_str(), argument.as_str()), (1, "i1", "Bash", "git push"));
    assert_eq!(reader.silence(), Silence::Free);
    assert!(!reader.is_busy());
    let input = reader.answer("i1", false, "not now").unwrap();
    let lines: Vec<Value> = input.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({ "id": 0, "result": { "decision": "decline" } }));
    assert_eq!(lines[1]["method"], "turn/steer");
    assert!(lines[1].to_string().contains("not now"));
    assert_eq!(reader.answer("i1", true, ""), None);
    say(&mut *reader, &ask(1, "i2", "ls"));
    let input = reader.answer("i2", true, "").unwrap();
    assert_eq!(input.text, "{\"id\":1,\"result\":{\"decision\":\"accept\"}}\n");
    assert!(reader.is_busy());
}

/// A change of two files: both must be allowed, by themselves, also where a server is gone in between.
#[test]
fn a_change_is_made_where_every_file_of_it_is_allowed() {
    let change = |path: &str| json!({ "path": path, "kind": { "type": "add" }, "diff": "x\n" });
    let changes = [change("/repo/a"), change("/repo/../etc/b")];
    let item = json!({ "type": "fileChange", "id": "i1", "changes": changes, "status": "inProgress" });
    let started = json!({ "method": "item/started", "params": { "threadId": "th", "item": item } });
    let params = json!({ "threadId": "th", "turnId": "tu", "itemId": "i1" });
    let asked = json!({ "method": "item/fileChange/requestApproval", "id": 0, "params": params });
    let begin = |reader: &mut dyn Reader| {
        say(reader, &started.to_string());
        let said = say(reader, &asked.to_string());
        let arguments = said.into_iter().filter_map(|said| match said {
            Said::Asked { call, argument, .. } => Some(format!("{call} {argument}")),
            _ => None,
        });
        arguments.collect::<Vec<_>>()
    };
    let mut first = at_work();
    assert_eq!(begin(&mut *first), ["i1 a", "i1#2 /etc/b"]);
    let part = first.answer("i1", true, "").unwrap();
    assert_eq!((part.id.as_str(), part.text.as_str()), ("answer-i1", ""), "nothing is said yet");
    let mut second = reader(false);
    second.sent("prompt", "");
    second.sent(&part.id, &part.text);
    say(&mut *second, HELLO);
    say(&mut *second, BEGUN);
    assert_eq!(begin(&mut *second), ["i1#2 /etc/b"], "the other is asked for again, and it alone");
    for (mut reader, allow, expected) in [(first, true, "accept"), (second, false, "decline")] {
        let whole = reader.answer("i1#2", allow, "").unwrap();
        assert!(whole.text.contains(expected), "{}", whole.text);
        assert_eq!(reader.answer("i1#2", true, ""), None);
    }
}

#[test]
fn what_cannot_be_examined_is_refused() {
    let mut reader = at_work();
    // Nobody has said what the change is.
    let params = json!({ "threadId": "th", "turnId": "tu", "itemId": "i1" });
    let asked = json!({ "method": "item/fileChange/requestApproval", "id": 0, "params": params });
    let said = say(&mut *reader, &asked.to_string());
    assert!(
        matches!(&said[..], [Said::Send(no), Said::Notice(_)] if no.text.contains("decline")),
        "{said:?}"
    );
    let long = ask(1, "i2", &"x".repeat(100_000));
    let said = say(&mut *reader, &long);
    assert!(
        matches!(&said[..], [Said::Send(no), Said::Notice(_)] if no.text.contains("decline")),
        "{said:?}"
    );
    let long = ask(2, "i3", "git push").replace("\"id\":2,", "").replacen('{', "{\"id\":2,", 1);
    let cut = &long.as_bytes()[..long.len() - 5];
    let said = reader.line(cut, false);
    assert!(!said.iter().any(|said| matches!(said, Said::Asked { .. })), "{said:?}");
}

#[test]
fn what_it_is_not_given_is_refused_and_a_keeper_alone_refuses_everything() {
    let question = r#"{"method":"item/tool/requestUserInput","id":7,"params":{"threadId":"th"}}"#;
    let said = say(&mut *at_work(), question);
    assert!(matches!(&said[..], [Said::Send(no), Said::Notice(_)] if no.text.contains("-32601")), "{said:?}");
    let denied = |line: &str| deny("codex", line.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(denied(question).unwrap().contains("not supported"));
    let no = denied(&ask(3, "i", "ls")).unwrap();
    assert!(no.starts_with("{\"id\":3,\"result\":{\"decision\":\"decline\"}}\n"), "{no}");
    assert!(no.contains("Nobody refused the call"), "{no}");
    let long = r#"{"method":"item/commandExecution/requestApproval","id":4,"params":{"command":"xxxx"#;
    assert_eq!(denied(long).as_deref(), Some("{\"id\":4,\"result\":{\"decision\":\"decline\"}}\n"));
    assert_eq!(denied(r#"{"method":"turn/started","params":{}}"#), None);
    assert_eq!(denied(HELLO), None);
}

#[test]
fn what_comes_when_the_turn_is_just_over_has_a_turn_of_its_own() {
    let mut reader = at_work();
    let told = reader.inject("and the docs").unwrap();
    assert_eq!(told.id, "say-1");
    let over =
        r#"{"method":"turn/completed","params":{"threadId":"th","turn":{"id":"tu","status":"completed"}}}"#;
    assert_eq!(say(&mut *reader, over), [], "it waits for what came of the message");
    let said = say(&mut *reader, r#"{"id":"say-1","error":{"code":-32600,"message":"no active turn"}}"#);
    assert!(
        matches!(&said[..], [Said::Send(again)] if again.id == "again-1" && again.text.contains("turn/start")),
        "{said:?}"
    );
    say(&mut *reader, r#"{"id":"again-1","result":{"turn":{"id":"t2"}}}"#);
    assert_eq!(say(&mut *reader, &over.replace("tu\"", "t2\"")), [Said::Finish]);
}

#[test]
fn a_message_is_passed_on_as_it_is_written_and_only_once() {
    let mut reader = at_work();
    let delta = |thread: &str, text: &str| {
        let params = json!({ "threadId": thread, "turnId": "tu", "itemId": "m1", "delta": text });
        json!({ "method": "item/agentMessage/delta", "params": params }).to_string()
    };
    let whole = |id: &str, text: &str| {
        let item = json!({ "type": "agentMessage", "id": id, "text": text });
        json!({ "method": "item/completed", "params": { "threadId": "th", "item": item } }).to_string()
    };
    let (token, text) = (|text: &str| Said::Token(text.to_owned()), |text: &str| Said::Text(text.to_owned()));
    assert_eq!(say(&mut *reader, &delta("th", "wri")), [token("wri")]);
    assert_eq!(say(&mut *reader, &delta("other", "subagent")), []);
    assert_eq!(say(&mut *reader, &delta("th", "ting")), [token("ting")]);
    assert_eq!(say(&mut *reader, &whole("m1", "writing")), [text("writing")]);
    assert_eq!(say(&mut *reader, &whole("m2", "DONE")), [token("DONE"), text("DONE")]);
}

/// A command that runs on when its turn is over was asked for all the same.
#[test]
fn what_a_command_prints_after_its_turn_is_not_unasked() {
    let mut reader = at_work();
    say(&mut *reader, &ask(0, "i1", "sleep 9"));
    reader.answer("i1", true, "").unwrap();
    let over =
        r#"{"method":"turn/completed","params":{"threadId":"th","turn":{"id":"tu","status":"completed"}}}"#;
    assert_eq!(say(&mut *reader, over), [Said::Finish]);
    let late = r#"{"method":"item/commandExecution/outputDelta","params":{"threadId":"th","itemId":"i1","delta":"x"}}"#;
    assert_eq!(say(&mut *reader, late), []);
    let unasked = late.replace("i1", "i2");
    assert_eq!(say(&mut *reader, &unasked), [Said::Stop(StopReason::NotGated)]);
}

/// After a restart: the journal first, then every line again.
#[test]
fn a_fresh_reader_sends_and_asks_nothing_again() {
    for name in ["edit", "deny", "steer", "two-files"] {
        let mut reader = reader(false);
        for (_, message) in lines(name).filter(|(printed, _)| !printed) {
            sent(&mut *reader, &message);
        }
        let said: Vec<Said> = lines(name)
            .filter(|(printed, _)| *printed)
            .flat_map(|(_, message)| reader.line(message.to_string().as_bytes(), true))
            .collect();
        let again = |said: &&Said| matches!(said, Said::Asked { .. } | Said::Send(_) | Said::Stop(_));
        assert_eq!(said.iter().find(again), None, "{name}");
        assert_eq!(reader.end(&Exit::code(0)), play(name, false, &Exit::code(0)).1, "{name}");
    }
}

#[test]
fn a_conversation_that_is_not_there_is_a_session_failure() {
    let mut reader = reader(true);
    let line = r#"{"error":{"code":-32600,"message":"no rollout found for thread id x"},"id":"thread"}"#;
    assert_eq!(say(&mut *reader, line), [Said::Finish]);
    let ended = reader.end(&Exit::code(0));
    assert!(matches!(ended, Ended::Failed { why: StepFailure::Session, .. }), "{ended:?}");
}

/// Only null and `user` ask us; a reviewer of another type does not.
#[test]
fn a_reviewer_that_is_not_known_does_not_ask() {
    for (reviewer, asks) in
        [("null", true), ("\"user\"", true), ("7", false), ("false", false), ("[]", false)]
    {
        let said = say(&mut *reader(false), &HELLO.replace("\"user\"", reviewer));
        assert_eq!(matches!(said[..], [Said::Send(_)]), asks, "{reviewer}: {said:?}");
    }
}

#[test]
fn a_question_of_a_new_kind_is_shown_whole() {
    for field in [r#""kind":"network","command":"ls""#, r#""kind":7,"command":"ls""#, r#""command":["ls"]"#] {
        let line = format!(
            r#"{{"method":"item/commandExecution/requestApproval","id":null,"params":{{"itemId":"i",{field}}}}}"#
        );
        let said = say(&mut *at_work(), &line);
        let Some(Said::Asked { tool, argument, .. }) = said.last() else { panic!("{said:?}") };
        assert_eq!((tool.as_str(), argument.contains("ls")), ("Unknown", true), "{field}");
    }
}

#[test]
fn a_change_that_names_no_file_is_shown_whole_beside_those_that_do() {
    let mut reader = at_work();
    let changes = r#"[{"path":"/repo/a","kind":"add","diff":7},{"path":7,"kind":{"type":"add"}},"x",{"path":"/repo/b","kind":{"type":"update","move_path":"/repo/c"}}]"#;
    say(
        &mut *reader,
        &format!(
            r#"{{"method":"item/started","params":{{"item":{{"type":"fileChange","id":"i","changes":{changes}}}}}}}"#
        ),
    );
    let said = say(
        &mut *reader,
        r#"{"method":"item/fileChange/requestApproval","id":0,"params":{"itemId":"i","grantRoot":null}}"#,
    );
    let asked = said.iter().filter_map(|said| match said {
        Said::Asked { tool, argument, .. } => Some(format!("{tool} {argument}")),
        _ => None,
    });
    assert_eq!(
        asked.collect::<Vec<_>>(),
        ["Edit a", r#"Unknown {"path":7,"kind":{"type":"add"}}"#, "Unknown \"x\"", "Edit b", "Write c"]
    );
}

/// The exit code is a number. Whatever else stands there, the command ran.
#[test]
fn a_command_with_an_odd_exit_code_ran_and_failed() {
    for (code, expected) in [
        ("0", "true out"),
        ("0.0", "false out\nexit code 0.0"),
        ("\"0\"", "false out"),
        ("null", "false out"),
    ] {
        let mut reader = at_work();
        say(&mut *reader, &ask(0, "i1", "ls"));
        reader.answer("i1", true, "").unwrap();
        let line = format!(
            r#"{{"method":"item/completed","params":{{"threadId":"th","item":{{"type":"commandExecution","id":"i1","status":"completed","exitCode":{code},"aggregatedOutput":"out","durationMs":1.5}}}}}}"#
        );
        let said = say(&mut *reader, &line);
        let [Said::ToolResult { ok, output, millis: 0, .. }] = &said[..] else { panic!("{said:?}") };
        assert_eq!(format!("{ok} {output}"), expected, "{code}");
        let unasked = say(&mut *at_work(), &line.replace("completed\",\"exit", "failed\",\"exit"));
        assert_eq!(!unasked.is_empty(), code != "null", "{code}");
    }
}

#[test]
fn numbers_without_measure_do_not_end_the_reader() {
    let mut reader = at_work();
    for thread in ["a", "b"] {
        let tokens = r#"{"total":{"inputTokens":18446744073709551615,"outputTokens":1.0},"last":{"inputTokens":18446744073709551615,"outputTokens":"1"}}"#;
        say(
            &mut *reader,
            &format!(
                r#"{{"method":"thread/tokenUsage/updated","params":{{"threadId":"{thread}","tokenUsage":{tokens}}}}}"#
            ),
        );
    }
    let window = r#"{"usedPercent":100,"resetsAt":9223372036854775807}"#;
    say(
        &mut *reader,
        &format!(
            r#"{{"method":"account/rateLimits/updated","params":{{"rateLimits":{{"primary":{window},"secondary":7}}}}}}"#
        ),
    );
    let usage = reader.end(&Exit::code(0)).usage();
    assert_eq!((usage.input_tokens, usage.output_tokens), (u64::MAX, 0));
}

#[test]
fn lines_that_are_no_messages_are_told_and_change_nothing() {
    let mut reader = at_work();
    let deep = "[".repeat(100_000);
    for line in ["", "null", "[]", "not json", "\u{1b}[2J", "{\"method\":7}", "{\"id\":null}", deep.as_str()]
    {
        assert!(say(&mut *reader, line).iter().all(|said| matches!(said, Said::Notice(_))), "{line:.20}");
    }
    assert_eq!(reader.line(b"\xff\xfe", true).len(), 1);
}
