//! What commands make of an owner's answers: canned ones, from a socket of the test's own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use super::project::Repository;
use super::{Ran, snapshot};
use serde_json::{Value, json};

/// An owner that says what it was told to say, and notes what it was asked.
struct Canned {
    here: Repository,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Canned {
    /// Each route with its answers, in turn; the last one stays.
    fn new(answers: &[(&str, &[Value])]) -> Canned {
        let here = Repository::new();
        let listener = UnixListener::bind(here.0.join("canned.sock")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let owned = answers.iter().map(|(route, answers)| ((*route).to_owned(), answers.to_vec()));
        let mut answers: HashMap<String, Vec<Value>> = owned.collect();
        let noted = asked.clone();
        let file = std::fs::metadata(here.0.join("canned.sock")).unwrap();
        let address = format!("unix:{}:{}", file.dev(), file.ino());
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &address, &mut answers, &noted);
            }
        });
        Canned { here, asked }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.here.command(arguments);
        let at = format!("unix:{}/canned.sock", self.here.0.display());
        command.env("ADJ_SERVER", at).env("ADJ_TOKEN", "t").output().unwrap().into()
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}: {}", ran.stdout);
        ran.stdout
    }

    fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// What only a server that knows the token `t` and listens there can say.
fn proof(query: &str, address: &str) -> Value {
    let of = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_default()
    };
    let message = format!("adjutant server proof 1\n{}\n{}\n{address}", of("token"), of("nonce"));
    let hash = base::secrets::hash(b"t");
    json!({ "proof": base::secrets::signature(hash.as_bytes(), message.as_bytes()) })
}

fn answer(
    stream: UnixStream,
    address: &str,
    answers: &mut HashMap<String, Vec<Value>>,
    asked: &Mutex<Vec<(String, Value)>>,
) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    // A client asks who is there before it sends its token, over the same connection.
    if let Some((_, query)) = line.split_once("/proof?") {
        let body = proof(query.trim_end().trim_end_matches(" HTTP/1.1"), address).to_string();
        while reader.read_line(&mut line).unwrap() > 2 {}
        let length = body.len();
        write!(reader.get_mut(), "HTTP/1.1 200 x\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    let route = line.trim_end().trim_end_matches(" HTTP/1.1").replace("/api/v1", "");
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap()
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    asked.lock().unwrap().push((route.clone(), body));
    let found = answers.get_mut(&route).map(|answers| match answers.len() {
        1 => answers[0].clone(),
        _ => answers.remove(0),
    });
    let (status, body) = match found {
        Some(body) => (200, body),
        None => (404, json!({"detail": format!("the test has no answer to `{route}`"), "status": 404})),
    };
    let body = body.to_string();
    let length = body.len();
    let mut stream = reader.into_inner();
    write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
}

/// A document with more members, or other ones.
fn with(mut document: Value, more: Value) -> Value {
    if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
        document.extend(more);
    }
    document
}

/// What stands on the board of a task, and what else is said.
fn line(more: Value) -> Value {
    let line = json!({
        "id": "c-1", "title": "x", "status": "REVIEW", "type": "task", "priority": 2, "assigneeIds": [],
        "dependsOn": [], "createdAt": "2026-01-02T03:04:05.678Z",
    });
    with(line, more)
}

/// All of a task, as far as it must be there.
fn task(more: Value) -> Value {
    let cost = json!({
        "usd": 0.5, "inputTokens": 0, "outputTokens": 0, "reservedUsd": 0.0, "unpricedSteps": 0, "estimatedSteps": 0,
        "estimatedUsd": 0.0, "setAsideUsd": 0.0,
    });
    let whole = json!({
        "body": "", "reviewCycles": 0, "landingRounds": 0, "unchangedSinceReview": false, "cost": cost,
        "comments": [], "allowedTransitions": [],
    });
    with(line(whole), more)
}

fn entry(cursor: u64, kind: &str, text: &str, raw: Option<&str>) -> Value {
    json!({"cursor": cursor, "at": "2026-01-02T03:04:05.678Z", "kind": kind, "text": text, "raw": raw})
}

#[test]
fn a_transcript_is_shown_as_text_and_kept_as_it_was_only_in_a_pipe() {
    let first = json!({
        "items": [entry(1, "text", "I look.\nThen I act.", Some("{\"type\":\"text\"}")),
                  entry(2, "call", "Bash(printf '\u{1b}[2J')", Some("\u{1b}[2J"))],
        "next": "2", "more": true, "resting": false,
    });
    let second = json!({"items": [entry(3, "stop", "", None)], "next": "3", "more": false, "resting": true});
    let canned = Canned::new(&[
        ("GET /workers/A/transcript?after=0&limit=1000", std::slice::from_ref(&first)),
        ("GET /workers/A/transcript?after=2&limit=1000", std::slice::from_ref(&second)),
        ("GET /workers/A/transcript?after=0&limit=1000&raw=true", std::slice::from_ref(&first)),
        (
            "GET /workers/A/transcript?after=2&limit=1000&raw=true",
            &[json!({"items": [], "next": "2", "more": false, "resting": true})],
        ),
        ("GET /workers/A/transcript?limit=2", std::slice::from_ref(&first)),
        (
            "GET /workers/B/transcript?limit=20",
            &[json!({"items": [], "next": null, "more": false, "resting": true})],
        ),
    ]);
    snapshot("logs.txt", &canned.ok(&["logs", "A"]));
    // So many lines, not so many entries.
    assert_eq!(
        canned.ok(&["peek", "A", "-n", "2"]),
        "                  Then I act.\n03:04:05 call     Bash(printf '\\u{1b}[2J')\n"
    );
    assert_eq!(canned.ok(&["logs", "A", "--raw"]), "{\"type\":\"text\"}\n\u{1b}[2J\n");
    let document: Value = serde_json::from_str(&canned.ok(&["logs", "A", "--json"])).unwrap();
    assert_eq!(document.as_array().unwrap().len(), 3);
    assert_eq!(canned.ok(&["peek", "B"]), "nothing was said yet\n");
    assert_eq!(canned.run(&["logs", "A", "--raw", "--json"]).code, 2);
}

/// `-f` asks again from where it was, and waits there. The test's owner has nothing to say at the third question.
#[test]
fn logs_are_followed_from_where_they_were() {
    let canned = Canned::new(&[
        (
            "GET /workers/A/transcript?after=0&limit=1000",
            &[
                json!({"items": [entry(1, "text", "one", None)], "next": "1", "more": false, "resting": false}),
            ],
        ),
        (
            "GET /workers/A/transcript?after=1&limit=1000&wait=true",
            &[
                json!({"items": [], "next": "1", "more": false, "resting": false}),
                json!({"items": [entry(2, "text", "two", None)], "next": "2", "more": false, "resting": false}),
            ],
        ),
    ]);
    let ran = canned.run(&["logs", "A", "-f"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, "03:04:05 text     one\n03:04:05 text     two\n"));
    assert!(ran.stderr.contains("after=2&limit=1000&wait=true"), "{}", ran.stderr);
}

#[test]
fn a_diff_cannot_move_the_cursor() {
    let patch = "diff --git a/x b/x\n@@ -1 +1 @@\n-\told\n+\tnew\u{1b}]0;owned\u{7}\u{202e}\n";
    let canned = Canned::new(&[
        ("GET /tasks/c-1", &[line(json!({}))]),
        ("GET /tasks/c-1/diff", &[json!({"task": "c-1", "base": "b", "tip": "t", "diff": patch})]),
        (
            "GET /tasks/c-1/diff?stat=true",
            &[json!({"task": "c-1", "base": "b", "tip": "t", "diff": " x | 2 +-\n"})],
        ),
    ]);
    snapshot("diff.txt", &canned.ok(&["diff", "c-1"]));
    assert_eq!(canned.ok(&["diff", "c-1", "--stat"]), " x | 2 +-\n");
}

#[test]
fn saved_work_is_listed_shown_and_put_where_it_was_asked_for() {
    let saved = json!({
        "id": "c-1/e12", "ref": "refs/adjutant/salvage/c-1/e12", "task": "c-1",
        "commit": "0123456789abcdef0123456789abcdef01234567", "at": "2026-01-02T03:04:05Z",
        "files": ["a", "b/\u{1b}c", "d", "e"], "commits": [],
    });
    let whole = json!({"id": "c-1/e12", "ref": "refs/adjutant/salvage/c-1/e12", "diff": "+new\n"});
    let restored = [
        json!({"id": "c-1/e12", "branch": "rescued"}),
        json!({"id": "c-1/e12", "folder": "/x/there"}),
        json!({"id": "c-1/e12", "branch": "salvage/c-1-e12"}),
    ];
    let canned = Canned::new(&[
        (
            "GET /salvage?limit=1000",
            &[json!({"items": [saved], "next": null}), json!({"items": [], "next": null})],
        ),
        ("GET /salvage/c-1/e12", &[whole]),
        ("POST /salvage/restore", &restored),
    ]);
    let listed = canned.ok(&["salvage", "list"]);
    assert!(listed.starts_with("REF      AGE"), "{listed}");
    assert!(listed.ends_with("0123456789ab  a, b/\\u{1b}c, d and 1 more\n"), "{listed}");
    assert!(canned.ok(&["salvage", "list"]).starts_with("nothing was saved: what agents committed is on"));
    let shown = canned.ok(&["salvage", "show", "refs/adjutant/salvage/c-1/e12"]);
    assert_eq!(shown, "+new\n");
    canned.asked();
    assert_eq!(
        canned.ok(&["salvage", "restore", "c-1/e12", "--branch", "rescued"]),
        "c-1/e12  branch rescued\n"
    );
    assert_eq!(canned.ok(&["salvage", "restore", "c-1/e12", "--to", "there"]), "c-1/e12  /x/there\n");
    assert_eq!(canned.ok(&["salvage", "restore", "c-1/e12"]), "c-1/e12  branch salvage/c-1-e12\n");
    let bodies: Vec<Value> = canned.asked().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies[0], json!({"id": "c-1/e12", "branch": "rescued"}));
    // From where the caller stands, which need not be where the owner does.
    assert_eq!(bodies[1], json!({"id": "c-1/e12", "folder": canned.here.0.join("there")}));
    assert_eq!(bodies[2], json!({"id": "c-1/e12"}));
    let both = ["salvage", "restore", "c-1/e12", "--to", "there", "--branch", "rescued"];
    assert_eq!(canned.run(&both).code, 2);
}

#[test]
fn findings_are_printed_with_what_to_do_and_an_error_among_them_is_the_commands() {
    let fine = json!({"level": "ok", "subject": "git", "text": "2.43.0"});
    let odd = json!({"level": "warning", "subject": "sandbox", "text": "there is none", "hint": "use a newer kernel"});
    let wrong = json!({"level": "error", "subject": "adjutant.toml:3", "text": "unknown key `workrs`", "hint": "did you mean `workers`?"});
    let page = |items: &[&Value]| json!({"items": items, "next": null});
    let canned = Canned::new(&[
        ("GET /doctor?limit=1000", &[page(&[&fine, &odd])]),
        ("GET /config/check?limit=1000", &[page(&[&wrong]), page(&[&wrong]), page(&[])]),
        ("POST /init", &[page(&[&fine])]),
        (
            "GET /config",
            &[
                json!({"file": null, "trusted": true, "gone": false, "text": "[fleet]\nworkers = 3\n", "settings": {}}),
            ],
        ),
        ("GET /config/schema", &[json!({"type": "object"})]),
        (
            "POST /config/trust",
            &[json!({"file": "adjutant.toml", "trusted": true, "gone": false, "text": "", "settings": {}})],
        ),
    ]);
    snapshot("doctor.txt", &canned.ok(&["doctor"]));
    let checked = canned.run(&["config", "check"]);
    assert_eq!((checked.code, checked.stderr.as_str()), (2, "error: 1 problem found\n"));
    snapshot("config-check.txt", &checked.stdout);
    let checked = canned.run(&["config", "check", "--json"]);
    let document: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!((checked.code, document, checked.stderr.as_str()), (2, json!([wrong]), ""));
    assert_eq!(canned.ok(&["config", "check"]), "adjutant.toml is valid\n");
    assert_eq!(canned.ok(&["config", "show"]), "[fleet]\nworkers = 3\n");
    assert_eq!(canned.ok(&["config", "schema"]), "{\n  \"type\": \"object\"\n}\n");
    assert_eq!(canned.ok(&["config", "trust"]), "adjutant.toml  trusted\n");
    assert_eq!(canned.ok(&["init"]), "ok       git: 2.43.0\n");
}

#[test]
fn prompts_are_listed_with_where_they_come_from() {
    let canned = Canned::new(&[
        (
            "GET /prompts?limit=1000",
            &[
                json!({"items": [{"name": "init", "file": null}, {"name": "step", "file": "p/step.md"}], "next": null}),
            ],
        ),
        ("GET /prompts/init", &[json!({"name": "init", "file": null, "text": "Begin {task}.\n"})]),
    ]);
    assert_eq!(canned.ok(&["prompt", "ls"]), "PROMPT  FROM\ninit    as shipped\nstep    p/step.md\n");
    assert_eq!(canned.ok(&["prompt", "show", "init"]), "Begin {task}.\n");
}

/// Nobody takes the call, and no process is known that could: that is said soon, and what may have become of it.
#[test]
fn an_owner_that_takes_no_calls_is_said_to_be_silent_soon() {
    let here = Repository::new();
    let _listener = UnixListener::bind(here.0.join("silent.sock")).unwrap();
    let at = format!("unix:{}/silent.sock", here.0.display());
    let lines: [(&[&str], &str); 2] =
        [(&["ps"], "try again"), (&["spawn", "A"], "the request may have been executed")];
    let asked = lines.map(|(line, hint)| {
        let mut command = here.command(line);
        command.env("ADJ_SERVER", &at).env("ADJ_TOKEN", "t").stdin(Stdio::null());
        (command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), hint)
    });
    let begun = std::time::Instant::now();
    for (command, hint) in asked {
        let ran: Ran = command.wait_with_output().unwrap().into();
        assert!(ran.code == 5 && ran.stderr.contains("the fleet does not answer"), "{}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    }
    // Before the 30 s are over that an answer may take.
    assert!(begun.elapsed() < std::time::Duration::from_secs(25), "{:?}", begun.elapsed());
}

#[test]
fn a_price_that_is_not_known_is_said_loudly() {
    let worker = json!({
        "name": "A", "symbol": "●", "status": "working", "task": "c-1", "branch": "agent/A-c-1", "session": "s",
        "stepCount": 3, "totalInputTokens": 10, "totalOutputTokens": 5, "totalCostUsd": 0.5, "unpricedSteps": 2,
        "estimatedSteps": 1, "estimatedCostUsd": 0.1, "setAsideUsd": 0.5, "startedAt": "", "agent": "coder",
        "byPerson": false, "inReview": [], "taskTitle": "Paint the door", "lastAction": "Bash(make test)",
        "activity": {"state": "person", "approval": "q18"},
    });
    let spent = |usd: f64, unpriced: u32, estimated: u32, set_aside: f64, tokens: [u64; 2]| {
        let [input, output] = tokens;
        json!({"usd": usd, "unpricedSteps": unpriced, "estimatedSteps": estimated,
            "estimatedUsd": 0.1 * f64::from(estimated), "setAsideUsd": set_aside, "reservedUsd": 0.0,
            "inputTokens": input, "outputTokens": output})
    };
    let total = spent(0.75, 2, 1, 0.5, [12345, 67]);
    let items = json!([
        with(spent(0.5, 1, 0, 0.5, [12000, 60]), json!({"name": "c-1"})),
        with(spent(0.25, 1, 1, 0.0, [345, 0]), json!({"name": "c-2"})),
    ]);
    let canned = Canned::new(&[
        ("GET /workers?limit=1000", &[json!({"items": [worker], "next": null})]),
        ("GET /cost?by=run", &[json!({"by": "run", "total": total, "items": items})]),
    ]);
    snapshot("ps-unpriced.txt", &canned.ok(&["ps"]));
    snapshot("cost-unpriced.txt", &canned.ok(&["cost", "--by", "run"]));
}

#[test]
fn the_tip_that_was_read_is_the_one_that_is_approved() {
    let tip = "0123456789abcdef0123456789abcdef01234567";
    let checked = json!({"items": [
        {"item": "tests are green", "answer": "yes"}, {"item": "the diff holds a change", "answer": "no"},
    ]});
    let submission = json!({
        "deliverable": {"content": "It is painted."},
        "reviewChecklist": {"type": "task", "items": checked["items"]},
        "costSummary": {"totalCost": 0.5, "runCount": 1, "tokenCount": 0},
    });
    let task = task(json!({
        "tip": tip, "submission": submission, "gate": {"checks": checked["items"], "summary": "It is painted."},
    }));
    let review = json!({
        "task": task, "said": "Painted.\nDONE", "workMillis": 61_000, "diffStat": " x | 2 +-\n",
        "commits": [{"oid": tip, "subject": "Paint it"}],
    });
    let approved = json!({"tip": tip, "by": "human:ann", "at": "2026-01-02T03:04:05.678Z", "note": ""});
    let approved = with(task.clone(), json!({"approved": approved}));
    let worker = json!({"name": "A", "task": "c-1", "branch": "", "status": "working", "symbol": "●"});
    let canned = Canned::new(&[
        ("GET /tasks/c-1", &[task]),
        ("GET /workers/A", &[worker]),
        ("GET /tasks/c-1/review", &[review]),
        ("POST /tasks/c-1/review", &[approved]),
    ]);
    snapshot("review.txt", &canned.ok(&["review", "c-1"]));
    canned.asked();
    for arguments in [&["merge", "A"][..], &["review", "c-1", "--approve", "--tip", "0123456"]] {
        assert_eq!(canned.ok(arguments), format!("c-1  REVIEW  approved at {tip}\n"));
        let posted = canned.asked().into_iter().find(|(route, _)| route.starts_with("POST"));
        let (route, body) = posted.unwrap();
        assert_eq!(route, "POST /tasks/c-1/review");
        assert_eq!(body, json!({"approve": true, "tip": tip, "note": ""}));
    }
    canned.ok(&["review", "c-1", "--approve", "--tip", "012"]);
    let short = canned.asked().into_iter().any(|(_, body)| body["tip"] == "012");
    assert!(short, "too short to mean one commit");
    assert_eq!(canned.run(&["review", "c-1", "--approve", "--changes", "x"]).code, 2);
}

#[test]
fn stop_waits_until_the_fleet_has_gone() {
    let runs = json!({"running": true, "pid": 999_999_999, "workers": 1, "tests": [], "wanted": true});
    let gone = json!({"running": false, "pid": null, "workers": 0, "tests": [], "wanted": false});
    let canned = Canned::new(&[
        ("GET /fleet", &[runs.clone(), runs.clone(), runs, gone]),
        ("POST /fleet/stop", &[json!({"stopping": true, "pid": 999_999_999})]),
    ]);
    assert_eq!(canned.ok(&["stop", "--now"]), "stopped (pid 999999999)\n");
    let asked = canned.asked();
    let routes: Vec<&str> = asked.iter().map(|(route, _)| route.as_str()).collect();
    assert_eq!(routes, ["GET /fleet", "POST /fleet/stop", "GET /fleet", "GET /fleet", "GET /fleet"]);
    assert_eq!(asked[1].1, json!({"now": true, "server": true}));
    assert_eq!(canned.ok(&["stop"]), "the fleet is not running\n");
}

#[test]
fn an_owner_that_breaks_off_or_talks_nonsense_cannot_be_reached() {
    let here = Repository::new();
    let path = here.0.join("odd.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let said: &[u8] = match number {
                0 => b"",
                1 => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
                2 => b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n<p>",
                _ => b"SSH-2.0-OpenSSH\r\n",
            };
            let _ = stream.write_all(said);
        }
    });
    let at = format!("unix:{}", path.display());
    // Who answers, and cannot prove that it knows the token, is not sent it.
    let is_said = |ran: &Ran| match ran.code {
        5 => ran.stderr.contains("broke off"),
        code => code == 3 && ran.stderr.contains("is not the server that your token is for"),
    };
    for _ in 0..4 {
        let ran: Ran = here.command(&["ps", "--server", &at]).env("ADJ_TOKEN", "t").output().unwrap().into();
        assert!(is_said(&ran), "{}: {}", ran.code, ran.stderr);
    }
}
