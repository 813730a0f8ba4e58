//! The reader on recordings of the program, and what it is started with.

use super::super::tests::{order, read};
use super::super::{Ended, Exit, Reason, Said, Silence, StopReason, TEXT_BYTES_MAX, deny};
use super::*;
use kernel::command::{StepFailure, Usage};

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
    "api-429-retry-after-120",
    "api-529-no-retries",
    "api-connection-dropped",
    "background-task-two-results",
    "budget",
    "edit-commit",
    "fallback",
    "maxturns",
    "partial-messages",
    "permission-denied",
    "question-overtakes",
    "question-waits",
    "resume-2.1.197",
    "resume-2.1.325",
    "resume-unknown",
    "signal-int-tool",
    "signal-kill-tool",
    "signal-term-tool",
    "stdin-canuse",
    "stdin-hooks",
    "stdin-inject",
    "stdin-inject-now",
    "stdin-interrupt",
    "subagent",
);

/// What the program printed, without what it was sent.
fn printed(name: &str) -> String {
    let mut lines = String::new();
    for line in capture(name).lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        match message["dir"].as_str() {
            Some("in") => continue,
            Some(_) => lines.push_str(&message["msg"].to_string()),
            None => lines.push_str(line),
        }
        lines.push('\n');
    }
    lines
}

fn reader(resume: bool) -> Box<dyn Reader> {
    Claude.reader(&Order { resume, tree: "/repo".into(), ..order() })
}

/// A recording in one line: turns with their calls, questions, results, and the end.
fn told(name: &str, resume: bool, exit: &Exit) -> String {
    let (said, ended) = read(&mut *reader(resume), &printed(name), exit);
    let count = |matches: fn(&Said) -> bool| said.iter().filter(|said| matches(said)).count();
    let calls: usize =
        said.iter().map(|said| if let Said::Turn { calls, .. } = said { calls.len() } else { 0 }).sum();
    let how = match &ended {
        Ended::Finished { done, output, .. } => format!("finished done={done} {output:?}"),
        Ended::Spent { what, said, .. } => format!("spent {what:?} {said:?}"),
        Ended::Failed { error, why, .. } => {
            format!("failed {why} {:?}", error.chars().take(60).collect::<String>())
        }
        Ended::Outage { service_error, .. } => {
            format!("outage {:?}", service_error.chars().take(60).collect::<String>())
        }
    };
    let known = |sum: u64, said: &Said| match said {
        Said::Turn { usage, .. } => Some(sum + usage.cost?),
        _ => Some(sum),
    };
    let cost = ended.usage().cost.and_then(|rest| said.iter().try_fold(rest, known));
    let cost = cost.map_or("?".to_owned(), |cost| cost.to_string());
    format!(
        "{} turns, {calls} calls, {} asked, {} results, {cost} µ$: {how}",
        count(|said| matches!(said, Said::Turn { .. })),
        count(|said| matches!(said, Said::Asked { .. })),
        count(|said| matches!(said, Said::ToolResult { .. })),
    )
}

/// Every way in which a recorded step ended, and what it comes to.
#[test]
fn how_recorded_steps_end() {
    let (zero, one) = (Exit::code(0), Exit::code(1));
    let term = Exit::code(143);
    let kill = Exit::signal(9, Reason::Exited);
    #[rustfmt::skip]
    let table = [
        ("edit-commit", false, &zero,
         "4 turns, 3 calls, 0 asked, 3 results, 26920 µ$: finished done=true \"All edits are committed.\\nDONE\""),
        ("partial-messages", false, &zero,
         "1 turns, 0 calls, 0 asked, 0 results, 5000 µ$: finished done=false \"hello world streaming\""),
        ("fallback", false, &zero,
         "1 turns, 0 calls, 0 asked, 0 results, 2500 µ$: finished done=false \"from fallback\""),
        ("background-task-two-results", false, &zero,
         "3 turns, 1 calls, 0 asked, 1 results, 15000 µ$: finished done=false \"bg result seen\""),
        ("subagent", false, &zero,
         "3 turns, 1 calls, 0 asked, 2 results, 25000 µ$: finished done=false \"(scenario exhausted)\""),
        ("permission-denied", false, &kill,
         "4 turns, 4 calls, 0 asked, 4 results, ? µ$: failed failed \"claude was ended by signal 9\""),
        ("stdin-hooks", false, &zero,
         "5 turns, 4 calls, 4 asked, 4 results, 25000 µ$: finished done=false \"fin\""),
        ("stdin-canuse", false, &zero,
         "5 turns, 4 calls, 3 asked, 4 results, 25000 µ$: finished done=false \"fin\""),
        ("stdin-inject", false, &zero,
         "4 turns, 3 calls, 0 asked, 3 results, 20000 µ$: finished done=true \"DONE\""),
        ("stdin-inject-now", false, &zero,
         "3 turns, 2 calls, 0 asked, 2 results, 15000 µ$: finished done=true \"DONE\""),
        ("stdin-interrupt", false, &zero,
         "2 turns, 1 calls, 0 asked, 1 results, 10000 µ$: finished done=false \"obeying the human\""),
        ("question-overtakes", false, &zero,
         "2 turns, 1 calls, 1 asked, 2 results, 10000 µ$: finished done=true \"DONE\""),
        ("question-waits", false, &zero,
         "3 turns, 3 calls, 3 asked, 3 results, 15000 µ$: finished done=true \"All is committed.\\nDONE\""),
        ("resume-2.1.325", true, &zero,
         "1 turns, 0 calls, 0 asked, 0 results, 5000 µ$: finished done=false \"again DONE\""),
        ("resume-2.1.197", true, &zero,
         "1 turns, 0 calls, 0 asked, 0 results, 6250 µ$: finished done=false \"again DONE\""),
        ("resume-unknown", true, &one,
         "0 turns, 0 calls, 0 asked, 0 results, 0 µ$: failed session \"No conversation found with session ID: 99999999-9999-4999-89\""),
        ("api-400", false, &one,
         "0 turns, 0 calls, 0 asked, 0 results, 0 µ$: failed failed \"API Error: 400 bad request thing\""),
        ("api-401", false, &one,
         "0 turns, 0 calls, 0 asked, 0 results, 0 µ$: outage \"401 authentication failed\""),
        ("api-429-retry-after-120", false, &one,
         "0 turns, 0 calls, 0 asked, 0 results, 0 µ$: outage \"API Error: Request rejected (429) · error 429\""),
        ("api-529-no-retries", false, &one,
         "0 turns, 0 calls, 0 asked, 0 results, 0 µ$: outage \"API Error: 529 error 529. This is a server-side issue, usual\""),
        ("api-connection-dropped", false, &one,
         "0 turns, 0 calls, 0 asked, 0 results, 0 µ$: outage \"API Error: Connection dropped (ECONNRESET). Check the gatewa\""),
        ("budget", false, &one,
         "3 turns, 3 calls, 0 asked, 2 results, 1260000 µ$: spent Money \"s\""),
        ("maxturns", false, &one,
         "2 turns, 2 calls, 0 asked, 2 results, 10000 µ$: spent Turns \"step\""),
        ("signal-int-tool", false, &zero,
         "1 turns, 1 calls, 0 asked, 1 results, 5000 µ$: failed failed \"the agent was interrupted\""),
        ("signal-term-tool", false, &term,
         "1 turns, 1 calls, 0 asked, 1 results, ? µ$: failed failed \"claude ended with exit code 143\""),
        ("signal-kill-tool", false, &kill,
         "0 turns, 0 calls, 0 asked, 0 results, ? µ$: failed failed \"claude was ended by signal 9\""),
    ];
    for (name, resume, exit, expected) in table {
        assert_eq!(told(name, resume, exit), expected, "{name}");
    }
}

const HELLO: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"initialize","response":{"hooks_applied":true,"hook_on_failure_supported":true}}}"#;

fn ask(request: &str, call: &str, tool: &str, input: &str) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"{request}","request":{{"subtype":"hook_callback","callback_id":"pre","input":{{"hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input},"tool_use_id":"{call}"}},"tool_use_id":"{call}"}}}}"#
    )
}

fn event(event: &str) -> String {
    format!(r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null}}"#)
}

fn block(block: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m1","content":[{block}],"usage":{{"input_tokens":10,"output_tokens":1}}}},"parent_tool_use_id":null}}"#
    )
}

fn say(reader: &mut dyn Reader, line: &str) -> Vec<Said> {
    reader.line(line.as_bytes(), true)
}

/// A reader that has sent its prompt.
fn at_work() -> Box<dyn Reader> {
    let mut reader = reader(false);
    let said = say(&mut *reader, HELLO);
    assert!(matches!(&said[..], [Said::Send(_), Said::Send(prompt)] if prompt.id == "prompt"), "{said:?}");
    reader
}

#[test]
fn it_is_started_so_that_it_asks_and_reads_no_settings() {
    let order = Order {
        command: vec!["claude".to_owned()],
        allowed_tools: Some(vec!["Bash".into(), "mcp__orch__note".into(), "Write".into()]),
        model: Some("opus".to_owned()),
        system: Some("Be kind.".to_owned()),
        budget_usd: Some(2.5),
        turns_left: 7,
        ..order()
    };
    let launch = Claude.launch(&order).unwrap();
    assert_eq!(
        launch.argv.join(" "),
        "claude -p --input-format stream-json --output-format stream-json --verbose \
         --session-id 11111111-1111-4111-8111-111111111111 --include-partial-messages --replay-user-messages \
         --permission-mode default --setting-sources  --strict-mcp-config \
         --mcp-config /private/claude-mcp.json --max-turns 7 --max-budget-usd 2.5000 \
         --model opus --tools Bash,Write --append-system-prompt-file /private/claude-system.md"
    );
    let [servers, system] = launch.files.as_slice() else { panic!() };
    assert_eq!(servers.0.as_os_str(), "/private/claude-mcp.json");
    let servers: Value = serde_json::from_slice(&servers.1).unwrap();
    let ours = &servers["mcpServers"]["adjutant"];
    // The token comes from its environment: neither an argument nor a file holds it.
    assert_eq!((&ours["args"], &ours["env"]["ADJ_TOKEN"]), (&json!(["mcp"]), &json!("${ADJ_TOKEN:-}")));
    let text = String::from_utf8(system.1.clone()).unwrap();
    assert!(text.starts_with("Be kind.\n\n# Tools of Adjutant") && text.contains("`task_done`"), "{text}");
    let Stdin::Open(first) = launch.stdin else { panic!() };
    let first: Value = serde_json::from_str(&first.text).unwrap();
    let hook = &first["request"]["hooks"]["PreToolUse"][0];
    assert_eq!((&hook["matcher"], &hook["onFailure"]), (&Value::Null, &json!("block")));
    let resumed = Claude.launch(&Order { resume: true, ..order }).unwrap().argv;
    assert!(resumed.windows(2).any(|pair| pair == ["--resume", "11111111-1111-4111-8111-111111111111"]));
}

#[test]
fn a_command_that_would_act_unasked_is_refused() {
    for flag in
        ["--bare", "--safe-mode", "--dangerously-skip-permissions", "--permission-mode=bypassPermissions"]
    {
        let command = vec!["claude".to_owned(), flag.to_owned()];
        let error = Claude.launch(&Order { command, ..order() }).unwrap_err();
        assert!(error.to_string().contains("without asking"), "{flag}: {error}");
    }
}

#[test]
fn instructions_of_the_repository_are_passed_on_and_links_lead_nowhere_else() {
    let tree = std::env::temp_dir().join(format!("adj-instructions-{}", std::process::id()));
    std::fs::create_dir_all(&tree).unwrap();
    let link = |target: &str| {
        let _ = std::fs::remove_file(tree.join("CLAUDE.md"));
        std::os::unix::fs::symlink(target, tree.join("CLAUDE.md")).unwrap();
        super::super::system_prompt(
            &Order { tree: tree.clone(), ..order() },
            ["CLAUDE.md", "AGENTS.md"],
            None,
        )
    };
    std::fs::write(tree.join("AGENTS.md"), "Use tabs.").unwrap();
    let passed_on = |name: &str| Some(format!("# Instructions of this repository ({name})\n\nUse tabs."));
    assert_eq!(link("AGENTS.md"), passed_on("CLAUDE.md"));
    assert_eq!(link("/etc/hostname"), passed_on("AGENTS.md"));
    assert_eq!(link("../secret"), passed_on("AGENTS.md"));
    assert_eq!(link("CLAUDE.md"), passed_on("AGENTS.md"));
    std::fs::remove_dir_all(&tree).unwrap();
}

#[test]
fn the_prompt_waits_for_the_hooks() {
    for refusal in
        [HELLO.replace("\"success\"", "\"error\""), HELLO.replace("applied\":true", "applied\":false")]
    {
        let mut reader = reader(false);
        assert_eq!(say(&mut *reader, &refusal), [Said::Stop(StopReason::NotGated)]);
        let ended = reader.end(&Exit::signal(15, Reason::Ended));
        assert!(matches!(ended, Ended::Failed { why: StepFailure::Failed, .. }), "{ended:?}");
    }
    let said = say(&mut *reader(false), HELLO);
    let ids: Vec<&str> = said
        .iter()
        .filter_map(|said| if let Said::Send(input) = said { Some(input.id.as_str()) } else { None })
        .collect();
    assert_eq!(ids, ["cost", "prompt"]);
}

/// Two calls in one message, and the first is asked for before the second is written.
#[test]
fn a_question_that_overtakes_its_message_waits_for_the_whole_turn() {
    let mut reader = at_work();
    let start =
        r#"{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":10,"output_tokens":1}}}"#;
    say(&mut *reader, &event(start));
    say(
        &mut *reader,
        &block(r#"{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"/repo/a"}}"#),
    );
    assert_eq!(say(&mut *reader, &ask("q1", "t1", "Write", r#"{"file_path":"/repo/a"}"#)), []);
    assert_eq!(reader.silence(), Silence::Free);
    assert_eq!(reader.answer("t1", true, ""), None);
    say(&mut *reader, &block(r#"{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"ls"}}"#));
    say(&mut *reader, &event(r#"{"type":"message_delta","usage":{"input_tokens":10,"output_tokens":50}}"#));
    let said = say(&mut *reader, &event(r#"{"type":"message_stop"}"#));
    let [Said::Turn { calls, usage, .. }, Said::Asked { call, argument, .. }] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((calls.len(), usage.output_tokens, call.as_str(), argument.as_str()), (2, 50, "t1", "a"));
    let answer: Value = serde_json::from_str(&reader.answer("t1", false, "not now").unwrap().text).unwrap();
    assert_eq!(answer["response"]["request_id"], "q1");
    assert_eq!(answer["response"]["response"]["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(answer["response"]["response"]["hookSpecificOutput"]["permissionDecisionReason"], "not now");
    assert_eq!(reader.answer("t1", true, ""), None);
}

#[test]
fn a_path_is_told_from_the_top_of_the_tree_and_cannot_be_disguised() {
    let cases = [
        ("/repo/src/a.rs", "src/a.rs"),
        ("/repo/src/../.git/hooks/x", ".git/hooks/x"),
        ("/repo/../etc/passwd", "/etc/passwd"),
        ("/etc/passwd", "/etc/passwd"),
        ("/repository/a", "/repository/a"),
    ];
    for (path, expected) in cases {
        let mut reader = at_work();
        let said = say(&mut *reader, &ask("q", "t", "Write", &json!({ "file_path": path }).to_string()));
        assert!(
            matches!(&said[..], [Said::Asked { argument, .. }] if argument == expected),
            "{path}: {said:?}"
        );
    }
}

#[test]
fn a_call_that_cannot_be_examined_whole_is_refused() {
    let mut reader = at_work();
    let long = json!({ "command": format!("{}; git push", "x".repeat(TEXT_BYTES_MAX)) }).to_string();
    let said = say(&mut *reader, &ask("q1", "t1", "Bash", &long));
    let [Said::Send(answer), Said::Notice(_)] = &said[..] else { panic!("{said:?}") };
    assert!(answer.text.contains("\"deny\"") && answer.text.contains("q1"));
    let line = ask("q2", "t2", "Write", &long);
    let said = reader.line(&line.as_bytes()[..line.len() / 2], false);
    let [Said::Send(answer), Said::Notice(_)] = &said[..] else { panic!("{said:?}") };
    assert!(answer.text.contains("\"deny\"") && answer.text.contains("q2"));
}

#[test]
fn a_keeper_without_a_server_refuses_calls_and_takes_note_of_the_rest() {
    let refused = |line: &str| deny(PROTOCOL, line.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(refused(&ask("q", "t", "Bash", "{}")).unwrap().contains("\"permissionDecision\":\"deny\""));
    let can = r#"{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#;
    assert!(refused(can).unwrap().contains("\"behavior\":\"deny\""));
    let post = r#"{"type":"control_request","request_id":"q","request":{"subtype":"hook_callback","callback_id":"post","input":{"hook_event_name":"PostToolUse"}}}"#;
    assert!(refused(post).unwrap().contains("\"continue\":true"));
    let other = r#"{"type":"control_request","request_id":"q","request":{"subtype":"elicitation"}}"#;
    assert!(refused(other).unwrap().contains("\"error\""));
    let long = ask("q", "t", "Bash", &json!({ "command": "x".repeat(100) }).to_string());
    assert!(refused(&long[..long.len() - 50]).unwrap().contains("\"deny\""));
    assert_eq!(refused(HELLO), None);
    assert_eq!(refused("\u{1b}"), None);
}

/// A person's words are a result of their own where they came too late for the one under way.
/// Of a message that came whole the piece is the whole of it; what a subagent writes is no word of the run.
#[test]
fn a_message_is_passed_on_as_it_is_written_and_only_once() {
    let (said, _) = read(&mut *reader(false), &printed("partial-messages"), &Exit::code(0));
    let words: Vec<&Said> = said
        .iter()
        .filter(|said| matches!(said, Said::Token(_) | Said::Text(_) | Said::Turn { .. }))
        .collect();
    let token = |text: &str| Said::Token(text.to_owned());
    let pieces = [token("hello "), token("world "), token("stream"), token("ing")];
    assert_eq!(words[..4], pieces.iter().collect::<Vec<_>>(), "{words:?}");
    assert!(matches!(words[4..], [Said::Text(text), Said::Turn { .. }] if text == "hello world streaming"));

    for name in ["edit-commit", "subagent", "resume-2.1.325", "stdin-inject"] {
        let (said, _) = read(&mut *reader(false), &printed(name), &Exit::code(0));
        let pieces =
            said.iter().filter_map(|said| if let Said::Token(text) = said { Some(text) } else { None });
        let texts =
            said.iter().filter_map(|said| if let Said::Text(text) = said { Some(text) } else { None });
        assert_eq!(pieces.collect::<Vec<_>>(), texts.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn a_message_that_waits_keeps_the_step_open() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","result":"one","total_cost_usd":0.5,"user_message_uuids":[]}"#;
    let mut reader = at_work();
    let told = reader.inject("and the docs").unwrap();
    let uuid = serde_json::from_str::<Value>(&told.text).unwrap()["uuid"].as_str().unwrap().to_owned();
    say(
        &mut *reader,
        &json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": "queued" }).to_string(),
    );
    assert_eq!(say(&mut *reader, result), []);
    let said = say(&mut *reader, &block(r#"{"type":"text","text":"two"}"#));
    assert_eq!(said, [Said::Token("two".to_owned()), Said::Text("two".to_owned())]);
    let last =
        result.replace("\"one\"", "\"two\"").replace("0.5", "0.75").replace("[]", &format!("[\"{uuid}\"]"));
    let said = say(&mut *reader, &last);
    // The price of the first result goes with the turn that follows it.
    let usage = Usage { cost: Some(500_000), input_tokens: 10, output_tokens: 1 };
    assert_eq!(said, [Said::Turn { calls: vec![], output: Some("two".to_owned()), usage }, Said::Finish]);
    assert_eq!(reader.inject("too late"), None);
    let ended = reader.end(&Exit::code(0));
    assert_eq!(ended.usage().cost, Some(250_000));
}

#[test]
fn a_step_that_is_killed_at_work_is_unpriced_and_its_tokens_are_counted() {
    let mut reader = at_work();
    say(&mut *reader, &block(r#"{"type":"text","text":"working"}"#));
    let ended = reader.end(&Exit::signal(9, Reason::TimedOut));
    let usage = Usage { cost: None, input_tokens: 10, output_tokens: 1 };
    assert!(
        matches!(&ended, Ended::Failed { why: StepFailure::TimedOut, usage: used, .. } if *used == usage),
        "{ended:?}"
    );
    let unused = at_work().end(&Exit::signal(9, Reason::Ended));
    assert_eq!(unused.usage(), Usage::default());
}

/// One version goes on from the session's total, the other begins at zero: both cost what their own turn cost.
#[test]
fn a_resumed_session_is_charged_for_this_step_alone() {
    let result = |total: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","result":"x","total_cost_usd":{total}}}"#
        )
    };
    let cost = |began: &str, total: &str| {
        let mut reader = reader(true);
        say(&mut *reader, HELLO);
        let text = format!("Total cost:            ${began}\nTotal duration (API):  0s");
        let reply = json!({ "subtype": "success", "request_id": "cost", "response": { "text": text } });
        say(&mut *reader, &json!({ "type": "control_response", "response": reply }).to_string());
        say(&mut *reader, &result(total));
        reader.end(&Exit::code(0)).usage().cost
    };
    assert_eq!(cost("1,000.0250", "1000.035"), Some(10_000));
    assert_eq!(cost("0.0000", "0.01"), Some(10_000));
}

#[test]
fn wrong_credentials_end_the_step_at_the_first_retry() {
    let mut reader = at_work();
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":601,"error_status":401,"error":"authentication_failed"}"#;
    let said = say(&mut *reader, retry);
    assert_eq!(said[0], Said::Stop(StopReason::NotAuthenticated));
    let ended = reader.end(&Exit::code(143));
    let Ended::Outage { service_error, refused: true, usage, .. } = ended else { panic!("{ended:?}") };
    assert!(service_error.starts_with("401") && usage == Usage::default(), "{service_error}");
}

/// The program waits for as long as the service asked; when it gives up, so do we.
#[test]
fn how_long_a_service_asked_to_be_left_alone_is_known() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":5,"retry_delay_ms":90000,"error_status":429,"error":"rate_limit"}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"result":"API Error: slow down","total_cost_usd":0}"#;
    let (_, ended) = read(&mut *reader(false), &format!("{retry}\n{result}"), &Exit::code(1));
    let Ended::Outage { service_error, retry_after: Some(90_000), refused: false, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(service_error, "429 API Error: slow down");
}

#[test]
fn a_usage_limit_says_when_it_is_reset() {
    let limit =
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"result":"limit reached","total_cost_usd":0}"#;
    let (_, ended) = read(&mut *reader(false), &format!("{limit}\n{result}"), &Exit::code(1));
    assert!(matches!(ended, Ended::Outage { resets_at: Some(1_800_000_000_000), .. }), "{ended:?}");
    let old = result.replace("limit reached", "Claude AI usage limit reached|1800000000");
    let (_, ended) = read(&mut *reader(false), &old, &Exit::code(1));
    assert!(matches!(ended, Ended::Outage { resets_at: Some(1_800_000_000_000), .. }), "{ended:?}");
}

#[test]
fn a_session_in_use_is_a_session_failure() {
    let mut reader = reader(false);
    reader.error_line(b"Error: Session ID 22222222-2222-4222-8222-222222222222 is already in use.");
    let ended = reader.end(&Exit::code(1));
    assert!(matches!(ended, Ended::Failed { why: StepFailure::Session, .. }), "{ended:?}");
}

#[test]
fn a_session_that_has_grown_too_long_is_left_and_a_first_prompt_fails() {
    let result = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","api_error_status":400,"result":"Prompt is too long","total_cost_usd":0}"#;
    for (resume, expected) in [(true, StepFailure::Session), (false, StepFailure::Failed)] {
        let (_, ended) = read(&mut *reader(resume), result, &Exit::code(1));
        assert!(matches!(ended, Ended::Failed { why, .. } if why == expected), "{ended:?}");
    }
}

#[test]
fn a_result_stands_whoever_ends_the_process_after_it_but_not_against_its_own_exit_code() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","result":"DONE","total_cost_usd":0.1}"#;
    let done =
        |exit: Exit| matches!(read(&mut *reader(false), result, &exit).1, Ended::Finished { done: true, .. });
    assert!(
        done(Exit::code(0)) && done(Exit::signal(9, Reason::Alone)) && done(Exit::signal(15, Reason::Ended))
    );
    assert!(!done(Exit::code(1)) && !done(Exit::signal(9, Reason::Exited)));
}

/// After a restart: the journal first, then every line again.
#[test]
fn a_fresh_reader_sends_and_asks_nothing_again() {
    let question = ask("q1", "t1", "Bash", r#"{"command":"ls"}"#);
    let mut first = at_work();
    say(&mut *first, &question);
    let answer = first.answer("t1", true, "").unwrap();
    let mut second = reader(false);
    for id in ["initialize", "cost", "prompt"] {
        second.sent(id, "");
    }
    assert_eq!(say(&mut *second, HELLO), []);
    assert!(matches!(say(&mut *second, &question)[..], [Said::Asked { .. }]));
    assert_eq!(second.answer("t1", true, "").as_ref(), Some(&answer));
    let mut third = reader(false);
    // A keeper that was alone gave the answer, under an id of its own.
    third.sent("cost", "");
    third.sent("prompt", "");
    third.sent("alone-1", &answer.text);
    assert_eq!([say(&mut *third, HELLO), say(&mut *third, &question)].concat(), []);
    assert_eq!(third.answer("t1", true, ""), None);
}

/// The program names the calls that its own rules refused.
#[test]
fn a_result_tells_how_many_calls_were_refused() {
    let told = |denials: &str| {
        let line = format!(r#"{{"type":"result","subtype":"success","permission_denials":{denials}}}"#);
        let said = say(&mut *at_work(), &line);
        let notices = said.into_iter().filter_map(|said| match said {
            Said::Notice(text) => Some(text),
            _ => None,
        });
        notices.collect::<Vec<_>>()
    };
    assert_eq!(told(r#"[{"tool_name":"Bash"}]"#), ["1 call was refused"]);
    assert_eq!(told(r#"[{"tool_name":"Bash"},null]"#), ["2 calls were refused"]);
    for none in ["[]", "null", "7", "{}"] {
        assert_eq!(told(none), [""; 0], "{none}");
    }
}

#[test]
fn the_output_of_a_tool_is_text_parts_or_nothing() {
    let cases = [
        (r#""plain""#, "plain"),
        (
            r#"[{"type":"text","text":"a"},{"type":"image"},"b",null]"#,
            "a\n[not text]\n[not text]\n[not text]",
        ),
        ("null", ""),
        ("7", ""),
        (r#"{"text":"a"}"#, ""),
    ];
    for (content, expected) in cases {
        let block =
            format!(r#"{{"type":"tool_result","tool_use_id":"t","is_error":"true","content":{content}}}"#);
        let line = format!(r#"{{"type":"user","message":{{"content":[7,null,{block}]}}}}"#);
        let said = say(&mut *at_work(), &line);
        // Only a plain `true` is an error.
        assert!(
            matches!(&said[..], [Said::ToolResult { call, ok: true, output, .. }] if call == "t" && output == expected),
            "{content}: {said:?}"
        );
    }
    assert_eq!(say(&mut *at_work(), r#"{"type":"user","message":{"content":"words"}}"#), []);
}

#[test]
fn a_message_is_read_around_what_does_not_fit() {
    let line = |content: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m1","content":{content},"usage":{{"input_tokens":10.0,"cache_read_input_tokens":"7","output_tokens":18446744073709551615,"cache_creation_input_tokens":3}}}}}}"#
        )
    };
    let words = |text: &str| [Said::Token(text.to_owned()), Said::Text(text.to_owned())];
    let mut reader = at_work();
    let odd = r#"[7,null,"x",{"type":"text","text":7},{"type":["text"],"text":null},{"type":"text","text":"good","citations":null},{"type":"tool_use","id":7,"name":null,"input":"ls"}]"#;
    let said = say(&mut *reader, &line(odd));
    let [token, text] = words("good");
    assert_eq!(said, [token, Said::Text(String::new()), text]);
    let said = say(&mut *reader, &event(r#"{"type":"message_stop"}"#));
    let [Said::Turn { calls, usage, .. }] = &said[..] else { panic!("{said:?}") };
    assert_eq!((calls.len(), calls[0].id.as_str(), calls[0].input.len()), (1, "", 0));
    // A count that is not written as a whole number counts for nothing.
    assert_eq!((usage.input_tokens, usage.output_tokens), (3, u64::MAX));
    // Words that are no list of parts are none.
    assert_eq!(say(&mut *reader, &line(r#""words""#)), []);
    // A field of the next level that is no object hides none beside it.
    let said = say(
        &mut *reader,
        r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"text":"m"}],"usage":[]},"error":7}"#,
    );
    assert_eq!(said, [Said::Text("m".to_owned())]);
    // Whatever names a parent is a subagent's.
    let said = say(
        &mut *reader,
        r#"{"type":"assistant","message":{"content":[{"text":"s"}]},"parent_tool_use_id":false}"#,
    );
    assert_eq!(said, [Said::Notice("subagent: s".to_owned())]);
}

/// A call that cannot be read is asked for all the same, and one that cannot be answered is not.
#[test]
fn a_question_is_asked_whatever_its_other_fields_are() {
    let line = |id: &str, request: &str| {
        format!(r#"{{"type":"control_request","request_id":{id},"request":{request}}}"#)
    };
    let asked = |line: &str| match &say(&mut *at_work(), line)[..] {
        [Said::Asked { call, tool, input, .. }] => format!("{call} {tool:?} {}", input.len()),
        [Said::Send(input)] => input.text.clone(),
        other => format!("{other:?}"),
    };
    let hook = r#"{"subtype":"hook_callback","input":{"hook_event_name":"PreToolUse","tool_name":7,"tool_input":"ls","tool_use_id":null},"tool_use_id":3}"#;
    assert_eq!(asked(&line(r#""q""#, hook)), r#"q "" 0"#);
    assert_eq!(asked(&line(r#""q""#, r#"{"subtype":"can_use_tool","input":["ls"]}"#)), r#"q "" 0"#);
    assert!(asked(&line(r#""q""#, r#"{"subtype":"hook_callback","input":7}"#)).contains("\"continue\":true"));
    assert!(asked(&line(r#""q""#, r#"{"subtype":"novelty"}"#)).contains("not supported"));
    for (id, request) in [("7", hook), (r#""q""#, r#"{"subtype":7}"#), (r#""q""#, "null")] {
        assert_eq!(asked(&line(id, request)), "[]", "{id} {request}");
    }
}

#[test]
fn numbers_without_measure_do_not_end_the_reader() {
    let mut reader = at_work();
    let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":9223372036854775807}}"#;
    say(&mut *reader, limit);
    for _ in 0..2 {
        let usage = r#"{"a":{"inputTokens":18446744073709551615,"cacheReadInputTokens":1,"outputTokens":18446744073709551615,"costUSD":1e300}}"#;
        say(&mut *reader, &format!(r#"{{"type":"result","model_usage_since_last_result":{usage}}}"#));
    }
    let usage = reader.end(&Exit::code(0)).usage();
    assert_eq!(usage, Usage { cost: Some(u64::MAX), input_tokens: u64::MAX, output_tokens: u64::MAX });
}

#[test]
fn lines_that_are_no_messages_are_told_and_change_nothing() {
    let mut reader = at_work();
    let deep = "[".repeat(100_000);
    for line in
        ["", "null", "[]", "not json", "\u{1b}[2J", "{\"type\":7}", "{\"type\":\"novelty\"}", deep.as_str()]
    {
        assert!(say(&mut *reader, line).iter().all(|said| matches!(said, Said::Notice(_))), "{line:.20}");
    }
    assert_eq!(reader.line(b"\xff\xfe", true).len(), 1);
}
