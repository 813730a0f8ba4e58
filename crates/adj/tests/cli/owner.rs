//! A process that owns the project, and everybody else on its socket: the real binary at both ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Ran;
use super::project::{Repository, ids};
use super::server::Server;
use serde_json::{Value, json};

/// An owner that runs nothing and listens. It ends when this is dropped.
pub struct Owner {
    child: Child,
    input: Option<ChildStdin>,
    /// The token that it minted, where it was asked to.
    pub token: Option<String>,
}

impl Owner {
    pub(super) fn start(here: &Repository) -> Owner {
        Owner::start_with(here, &[])
    }

    pub fn start_with(here: &Repository, options: &[&str]) -> Owner {
        let mut command = here.command(&[&["internal", "serve"], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Owner { child, input, token: said["token"].as_str().map(str::to_owned) }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn socket(here: &Repository) -> PathBuf {
    here.state("socket/adj.sock")
}

pub fn token(here: &Repository) -> String {
    std::fs::read_to_string(here.state("token")).unwrap()
}

/// A raw request: the head as it is given, without its last empty line, and what follows.
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Value,
}

pub(super) fn raw(here: &Repository, head: &str, body: &[u8]) -> Answer {
    let mut stream = UnixStream::connect(socket(here)).unwrap();
    let head = head.replace('\n', "\r\n");
    stream.write_all(format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    // An answer may come before all was sent; that is its right.
    let _ = stream.write_all(body);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, "null"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap() }
}

fn as_user(here: &Repository, line: &str, more: &str, body: &[u8]) -> Answer {
    raw(here, &format!("{line}\nAuthorization: Bearer {}{more}", token(here)), body)
}

fn post(here: &Repository, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let more = format!("\nContent-Type: application/json\nContent-Length: {}", body.len());
    as_user(here, &format!("POST /api/v1{path} HTTP/1.1"), &more, body.as_bytes())
}

pub(super) const REVIEW: &str = r#"{"deliverable":{"content":"did it"},"reviewChecklist":{"type":"task","items":[{"item":"x","answer":"yes"},{"item":"y","answer":"yes"},{"item":"z","answer":"yes"}]}}"#;

/// A day with every command. `{question}` is the question that is open, `{repository}` where it happens.
const DAY: &[&str] = &[
    "init",
    "task ls",
    "task add first --id c-1 --body text",
    "task add second --id c-2 --depends-on c-1",
    "task add third --id c-3 --key once",
    "task add third --id c-3 --key once",
    "task add third --id c-1",
    "task add third --id ../up",
    "task show c-1",
    "task show c-1?x",
    "task show c-9",
    "task show ünï/cödé",
    "task import -",
    "task try c-1",
    "task edit c-1 --title First",
    "task comment c-1 hello",
    "task dep rm c-2 c-1",
    "task dep add c-2 c-1",
    "task accept c-1",
    "task assign c-1 coder",
    "task move c-1 IN_PROGRESS --plan a --plan b --plan c",
    "task move c-1 NEEDS_APPROVAL --cause escalation --feedback may-I",
    "approvals",
    "approve {question} --note yes",
    "approve {question}",
    "task move c-1 NEEDS_APPROVAL --cause escalation --feedback may-I",
    "deny {question}",
    "spec ls",
    "spec submit {repository}/adjutant.toml --name login",
    "spec submit {repository}/adjutant.toml --dry-run",
    "spec submit {repository}/nowhere.md",
    "spec show login",
    "spec show login --version 1",
    "requests",
    "requests --all",
    "architect",
    "retry architect",
    "task ls --all",
    "board",
    "spawn",
    "spawn 2",
    "spawn A",
    "ps",
    "assign A c-3",
    "assign A c-2",
    "assign Q c-2",
    "runs",
    "runs --task c-3",
    "runs --task c-9",
    "start coder c-3",
    "start coder c-9",
    "start nobody c-2",
    "start claude c-2",
    "pause c-2",
    "pause c-3.9",
    "resume c-3 --max-turns 300",
    "resume A",
    "abort c-2",
    "tools c-3",
    "tools Q",
    "why c-3",
    "why A",
    "state",
    "peek A",
    "peek Q",
    "logs A",
    "undo c-1",
    "undo Q",
    "shell c-1 -- true",
    "shell Q -- true",
    "pause A",
    "waiting",
    "resume c-3 --feedback go-on",
    "assign A c-3",
    "abort c-3 --reason enough",
    "task move c-3 IN_PROGRESS --clarification go-on",
    "assign A c-3",
    "kill A",
    "kill A",
    "retry A",
    "retry Q",
    "retry --all",
    "task restart c-1",
    "cleanup B",
    "diff c-1",
    "diff c-9 --stat",
    "task move c-1 IN_PROGRESS --clarification go-on",
    "merge c-1",
    "task move c-1 REVIEW --payload {review}",
    "review c-1 --room looks --add anna --reviewer ben",
    "review c-1 --room other",
    "review c-1",
    "review c-1 --approve --tip 1234567890",
    "review c-1 --changes more",
    "task move c-1 REVIEW --payload {review}",
    "merge A",
    "merge c-1 --note fine",
    "merge c-1",
    "queue",
    "ask --task c-3 which",
    "ask --task c-9 which",
    "answer {asked} this",
    "answer {asked} that",
    "answer r0 this",
    "ask --task c-3 whether",
    "answer {asked} --abandon",
    "answer {asked} --abandon not-now",
    "channel ls",
    "channel create talk --mode queue --timeout 90s --topic tea --add anna --add ben",
    "channel create talk",
    "channel create ../up",
    "channel create reviews --task c-9",
    "channel add talk carl --timeout 2m --wait-timeout 10m",
    "channel add nowhere carl",
    "channel post talk hello",
    "channel post nowhere hello",
    "channel status",
    "channel status talk",
    "channel history talk",
    "channel history talk --search moon",
    "channel tail talk --no-follow",
    "turn complete talk",
    "turn pass talk --as anna",
    "turn wait talk --as anna --note tea --for 5m",
    "turn resume talk --as anna",
    "turn resume talk --as anna --to queued",
    "turn skip talk --as anna",
    "turn cancel talk --as anna",
    "turn fresh talk --as anna",
    "turn fresh talk --as nobody",
    "channel remove talk ben",
    "channel close talk",
    "channel post talk hello",
    "channel ls --all",
    "task plan a b c",
    "mcp",
    "waiting",
    "salvage list",
    "salvage show c-1/e1",
    "salvage show c-1",
    "salvage restore c-1/e1 --branch rescued",
    "salvage restore c-1/e1 --to {repository}/rescued",
    "cost",
    "cost --by run",
    "cost --by worker",
    "cost --by moon",
    "history",
    "history c-1",
    "config show",
    "config defaults",
    "config check",
    "config schema",
    "config trust",
    "config forget",
    "token create --name ann --role reader",
    "token create --name ../up --role reader",
    "token create --name ann --role lead --days 0",
    "token ls",
    "token revoke 0123",
    "url",
    "service install --dry-run",
    "watch Q",
    "prompt ls",
    "prompt show init",
    "doctor",
    "stop --fleet",
    "clean",
    "clean --dry-run",
    "clean --yes",
    "clean --yes",
    "task cancel c-2",
    "verify",
    "export all.jsonl",
    "backup all.jsonl",
    "agent ls",
    "agent disable coder --reason too-dear",
    "agent enable coder",
    "agent disable nobody",
    "machine ls",
    "machine show run",
    "machine step run",
    "demo --dir {repository}",
    "sim --runs 2 --tasks 2",
    "completions bash",
    "man",
];

/// Reading a whole log in needs the log for itself, which an owner does not give away; a second fleet does too.
const NOT_BESIDE_AN_OWNER: &[&str] =
    // A login is the user's and no project's.
    &["import", "login", "run", "serve", "service status", "service logs", "service uninstall"];

/// What works on the project's files themselves: a server says where these are.
const NOT_FROM_AWAY: &[&str] = &["shell"];

/// Slow: it runs every command alone, beside an owner and over https, in text and in JSON.
#[test]
fn every_command_is_answered_alike_by_an_owner_a_server_and_without_one() {
    let listed = super::adj("internal commands").stdout;
    let known: BTreeSet<&str> = listed.lines().collect();
    let told = |command: &&&str| DAY.iter().any(|line| line.starts_with(**command));
    let missing: Vec<_> = known.iter().filter(|command| !NOT_BESIDE_AN_OWNER.contains(command)).collect();
    let missing: Vec<_> = missing.into_iter().filter(|command| !told(command)).collect();
    assert!(missing.is_empty(), "the day above leaves out {missing:?}");

    for json in [false, true] {
        let (alone, owned, served) = (Repository::new(), Repository::new(), Repository::new());
        let owner = Owner::start(&owned);
        let server = Server::with_tls(&served, &[]);
        for line in DAY {
            let one = one_of_the_day(&alone, &|arguments| alone.command(arguments), line, json);
            let other = one_of_the_day(&owned, &|arguments| owned.command(arguments), line, json);
            assert_eq!(one, other, "`{line}` alone, and with an owner");
            if NOT_FROM_AWAY.iter().any(|command| line.starts_with(command)) {
                let ran: Ran = server.command(&line.split(' ').collect::<Vec<_>>()).output().unwrap().into();
                assert!(
                    ran.code == 2 && ran.stderr.contains("where the server is"),
                    "{line}: {}",
                    ran.stderr
                );
                continue;
            }
            if *line == "url" {
                // There is a server now, and so there is a link.
                let ran: Ran = server.command(&["url"]).output().unwrap().into();
                assert!(ran.code == 0 && ran.stdout.contains("/enter#"), "{}", ran.stderr);
                continue;
            }
            let away = one_of_the_day(&served, &|arguments| server.command(arguments), line, json);
            assert_eq!(one, away, "`{line}` alone, and over https");
        }
        assert_eq!(owned.adj(&["import", "all.jsonl"]).code, 5);
        assert_eq!(owned.adj(&["run", "--until-idle"]).code, 3);
        drop(owner);
    }
}

/// Code, output and errors, without what differs from one repository and moment to the next. `adj` is how it is asked.
fn one_of_the_day(
    here: &Repository,
    adj: &dyn Fn(&[&str]) -> Command,
    line: &str,
    json: bool,
) -> (i32, String, String) {
    let question = || {
        let open: Ran = adj(&["approvals", "--all", "--json"]).output().unwrap().into();
        let open: Value = serde_json::from_str(&open.stdout).unwrap();
        open.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned()
    };
    let repository = here.0.to_str().unwrap();
    let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for argument in &mut arguments {
        if argument == "{question}" {
            *argument = question();
        }
        if argument == "{asked}" {
            // What was asked last has the largest number; the list of what waits has it while it is open.
            *argument = here
                .json(&["waiting"])
                .as_array()
                .unwrap()
                .iter()
                .find_map(|item| item["request"].as_str())
                .unwrap_or("r1")
                .to_owned();
        }
        *argument = argument.replace("{repository}", repository).replace("{review}", REVIEW);
    }
    if json {
        arguments.push("--json".to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran: Ran = adj(&arguments).output().unwrap().into();
    let plain = |text: &str| plain(&text.replace(repository, "<here>"));
    (ran.code, plain(&ran.stdout), plain(&ran.stderr))
}

/// Times, ages and everything that chance made up, by what they are.
fn plain(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-:.".contains(letter);
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()).max(first.len_utf8());
        let (word, after) = rest.split_at(length);
        rest = after;
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let hexadecimal = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let is_clock = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let is_time = word.starts_with("20") && word.ends_with('Z') && word.contains('T') || is_clock;
        let is_age = word.strip_suffix('s').is_some_and(|age| age.parse::<u32>().is_ok());
        shown.push_str(match () {
            () if is_time => "<time>",
            () if is_age => "<age>",
            () if word.len() > 8 && hexadecimal && digits > 0 => "<id>",
            () => word,
        });
    }
    // A time that ends in a zero is shorter, and the columns with it.
    shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn folder_socket_and_token_are_the_users_alone() {
    let here = Repository::new();
    here.ok(&["task", "add", "x"]);
    std::fs::set_permissions(here.state(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let owner = Owner::start_with(&here, &["--mint", "coder:intern:c-1.1"]);
    let mode = |name: &str| {
        let there = std::fs::symlink_metadata(here.state(name)).unwrap();
        (there.mode() & 0o777, there.file_type().is_socket())
    };
    assert_eq!(mode(""), (0o700, false));
    assert_eq!(mode("socket/adj.sock"), (0o600, true));
    assert_eq!((mode("token"), mode("tokens.json")), ((0o600, false), (0o600, false)));
    let made = token(&here);
    assert!(made.len() == 64 && made.bytes().all(|byte| byte.is_ascii_hexdigit()), "32 bytes of chance");
    drop(owner);
    assert!(!socket(&here).exists(), "an owner that ends takes its socket along");
    let _again = Owner::start(&here);
    assert_eq!(token(&here), made, "the token is made once");
}

#[test]
fn nobody_is_answered_without_a_token() {
    let here = Repository::new();
    let _owner = Owner::start(&here);
    let own = token(&here);
    let shown = [
        String::new(),
        format!("\nAuthorization: {own}"),
        format!("\nAuthorization: Basic {own}"),
        format!("\nAuthorization: Bearer {}", &own[1..]),
        format!("\nAuthorization: Bearer {own}0"),
        format!("\nCookie: token={own}"),
    ];
    for shown in shown {
        for line in ["GET /api/v1/tasks HTTP/1.1", "GET /nowhere HTTP/1.1", "POST /api/v1/tasks HTTP/1.1"] {
            let answer = raw(&here, &format!("{line}{shown}"), b"");
            assert_eq!((answer.status, &answer.body["code"]), (401, &json!("UNAUTHORIZED")), "{line}{shown}");
            assert!(answer.head.contains("application/problem+json"), "{}", answer.head);
        }
    }
    assert_eq!(raw(&here, &format!("GET /api/v1/tasks?token={own} HTTP/1.1"), b"").status, 401);
    assert_eq!(as_user(&here, "GET /api/v1/tasks HTTP/1.1", "", b"").status, 200);

    let ran: Ran = here.command(&["ps"]).env("ADJ_TOKEN", "0".repeat(64)).output().unwrap().into();
    assert!(
        ran.code == 3 && ran.stderr.contains("does not know your token; it was not sent"),
        "{}",
        ran.stderr
    );
    std::fs::remove_file(here.state("token")).unwrap();
    here.fails(&["ps"], 3, "there is no token in");
}

/// The routes that the printed page lists, which is compared with those that there are.
fn routes() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md")).unwrap();
    let heads = page.lines().filter_map(|line| line.strip_prefix("### ")?.split_once(" /"));
    let named = |path: &str| {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "c-1" } else { part });
        format!("/api/v1/{}", parts.collect::<Vec<_>>().join("/"))
    };
    heads.map(|(method, path)| (method.to_owned(), named(path))).collect()
}

#[test]
fn every_route_is_closed_to_strangers_and_takes_no_nonsense() {
    let here = Repository::new();
    let _owner = Owner::start(&here);
    let routes = routes();
    assert!(routes.len() > 50, "{routes:?}");
    for (method, path) in routes {
        let line = format!("{method} {path} HTTP/1.1");
        let sent =
            |kind: &str, body: &[u8]| format!("\nContent-Type: {kind}\nContent-Length: {}", body.len());
        let json = "application/json";
        assert_eq!(raw(&here, &format!("{line}{}", sent(json, b"{}")), b"{}").status, 401, "{line}");
        let deep = b"[".repeat(10_000);
        for nonsense in [&b"not json"[..], b"{", b"\xff", b"null", &deep] {
            let answer = as_user(&here, &line, &sent(json, nonsense), nonsense);
            assert_eq!((answer.status, &answer.body["code"]), (400, &json!("BAD_REQUEST")), "{line}");
        }
        if matches!(method.as_str(), "POST" | "PATCH") {
            assert_eq!(as_user(&here, &line, &sent("text/plain", b"{}"), b"{}").status, 415, "{line}");
        }
        let answer = as_user(&here, &format!("{method} {path}?zz=1 HTTP/1.1"), &sent(json, b"{}"), b"{}");
        assert_eq!(answer.status, 400, "{line}: {}", answer.body);
    }
    assert_eq!(as_user(&here, "GET /api/v1/fleet HTTP/1.1", "", b"").status, 200);
}

#[test]
fn what_is_not_a_small_json_document_is_refused_and_the_next_request_is_fine() {
    let here = Repository::new();
    let _owner = Owner::start(&here);
    let send = |kind: &str, length: &str, body: &[u8]| {
        let more = format!("\nContent-Type: {kind}\n{length}");
        as_user(&here, "POST /api/v1/tasks HTTP/1.1", &more, body).status
    };
    let sized = |kind: &str, body: &[u8]| send(kind, &format!("Content-Length: {}", body.len()), body);
    let json = "application/json";
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"]
    {
        assert_eq!(sized(kind, br#"{"title":"x"}"#), 415, "{kind}");
    }
    assert_eq!(
        as_user(&here, "POST /api/v1/tasks HTTP/1.1", "\nContent-Length: 0", b"").status,
        400,
        "no title"
    );
    assert_eq!(send(json, "Content-Length: 1099511627776", b"{"), 413);
    assert_eq!(sized(json, &vec![b' '; (1 << 20) + 1]), 413);
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 1 << 16], b"\r\n"].concat();
    assert_eq!(send(json, "Transfer-Encoding: chunked", &chunk.repeat(20)), 413);
    for deep in [&b"["[..], br#"{"a":"#] {
        assert_eq!(sized(json, &deep.repeat(200_000)), 400);
    }
    assert_eq!(sized(json, b"{\"title\":\"\xff\"}"), 400);
    assert_eq!(sized(json, b"not json"), 400);
    assert_eq!(sized("Application/JSON; charset=utf-8", br#"{"title":"x","id":"c-1"}"#), 201);

    let get = |path: &str| as_user(&here, &format!("GET /api/v1{path} HTTP/1.1"), "", b"");
    assert_eq!(as_user(&here, "PUT /api/v1/tasks HTTP/1.1", "", b"").status, 405);
    for bad in [
        "/tasks/%2e%2e",
        "/tasks/..%00",
        "/tasks/-rf",
        "/tasks/%2d%2dupload-pack=x",
        "/tasks/a%0d%0ab",
        "/tasks/%zz",
    ] {
        assert_eq!(get(bad).status, 400, "{bad}");
    }
    assert_eq!(get("/tasks/%63%2D1").body["id"], "c-1");
    for nonsense in [&b"\0\xff\r\n\r\n"[..], b"GET\r\n\r\n", &[b'x'; 1 << 20]] {
        let mut stream = UnixStream::connect(socket(&here)).unwrap();
        let _ = stream.write_all(nonsense);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(ids(&here), ["c-1"]);
}

#[test]
fn a_key_works_over_the_socket_and_a_person_has_a_name_there() {
    let here = Repository::new();
    let _owner = Owner::start(&here);
    let body = br#"{"title":"x"}"#;
    let add = |more: &str| {
        let more = format!("\nContent-Type: application/json\nContent-Length: {}{more}", body.len());
        as_user(&here, "POST /api/v1/tasks HTTP/1.1", &more, body)
    };
    let first = add("\nIdempotency-Key: k");
    assert_eq!((first.status, &first.body), (201, &add("\nX-Idempotency-Key: k").body));
    assert_eq!(add("\nX-Idempotency-Key: k\nIdempotency-Key: l").status, 400);
    assert_eq!(add("\nX-Adj-User: ../ann").status, 400);
    assert_eq!(add("\nX-Adj-User: ben").status, 201);
    here.ok(&["task", "add", "y"]);
    let history = here.json(&["history", "--all"]);
    let actors: Vec<_> = history.as_array().unwrap().iter().map(|record| record["actor"].clone()).collect();
    // The settings are applied before anything else; the key's answer is kept in a record of its own.
    assert_eq!(actors, ["system", "system", "human:local", "human:local", "human:ben", "human:ann"]);
}

#[test]
fn an_agent_works_with_its_token_and_decides_nothing_with_an_owner_or_without() {
    let here = Repository::new();
    let owner = Owner::start_with(&here, &["--mint", "coder:lead:c-2.1"]);
    let minted = owner.token.clone().unwrap();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.ok(&["task", "add", "y", "--id", "c-2"]);
    here.ok(&["task", "assign", "c-1", "coder"]);
    here.ok(&["task", "move", "c-1", "IN_PROGRESS", "--plan", "a", "--plan", "b", "--plan", "c"]);
    here.ok(&["task", "move", "c-1", "NEEDS_APPROVAL", "--cause", "escalation", "--feedback", "May I?"]);
    here.ok(&["spawn", "2"]);
    here.ok(&["assign", "A", "c-2"]);
    let question = here.json(&["approvals"])[0]["id"].as_str().unwrap().to_owned();
    let agent = |arguments: &[&str]| -> Ran {
        here.command(arguments).env("ADJ_TOKEN", &minted).env("ADJ_USER", "ann").output().unwrap().into()
    };
    let forbidden: &[&[&str]] = &[
        &["approve", &question],
        &["deny", &question],
        &["kill", "A"],
        &["retry", "A"],
        &["cleanup", "A", "--force"],
        &["clean", "--yes"],
        &["assign", "B", "c-2"],
        &["spawn"],
        &["salvage", "restore", "c-1/e1", "--branch", "b"],
        &["config", "trust"],
        &["import", "all.jsonl"],
        &["init"],
    ];
    let try_all = |how: &str| {
        for arguments in forbidden {
            let ran = agent(arguments);
            assert!(
                ran.code == 3 && ran.stderr.contains("the caller's role may not"),
                "{arguments:?} {how}: {} {}{}",
                ran.code,
                ran.stdout,
                ran.stderr
            );
        }
        for arguments in [&["review", "c-1", "--approve"][..], &["merge", "c-1"]] {
            let ran = agent(arguments);
            let told = ran.stderr.contains("this token is for run `c-2.1`");
            assert!(ran.code == 3 && told, "{arguments:?} {how}: {}", ran.stderr);
        }
        assert_eq!(agent(&["task", "comment", "c-2", how]).code, 0);
        let shown = here.json(&["task", "show", "c-2"]);
        let last = shown["comments"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["by"], &last["text"]), (&json!("agent:coder"), &json!(how)));
    };
    try_all("with an owner");
    let stop = "POST /api/v1/fleet/stop HTTP/1.1\nContent-Type: application/json\nContent-Length: 0";
    let answer = raw(&here, &format!("{stop}\nAuthorization: Bearer {minted}"), b"");
    assert_eq!((answer.status, &answer.body["code"]), (403, &json!("FORBIDDEN")));
    assert_eq!(here.json(&["ps"]).as_array().unwrap().len(), 2);
    drop(owner);
    try_all("without an owner");

    // Its run is over, and so is the token: also for an owner that is started later.
    drop(Owner::start_with(&here, &["--revoke", "c-2.1"]));
    let ran = agent(&["task", "ls"]);
    assert!(
        ran.code == 3 && ran.stderr.contains("ADJ_TOKEN is not a token that this project knows"),
        "{}",
        ran.stderr
    );
    let _owner = Owner::start(&here);
    assert_eq!(agent(&["task", "ls"]).code, 3);
}

#[test]
fn a_socket_that_a_dead_owner_left_behind_is_in_nobodys_way() {
    let here = Repository::new();
    let mut killed = Owner::start(&here);
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(socket(&here).exists());
    here.ok(&["task", "add", "y", "--id", "c-2"]);
    assert_eq!(ids(&here), ["c-1", "c-2"]);
    let _next = Owner::start(&here);
    here.ok(&["task", "add", "z", "--id", "c-3"]);
    assert_eq!(post(&here, "/tasks", &json!({"title": "w", "id": "c-4"})).status, 201);
    assert_eq!(ids(&here).len(), 4);
    let second = here.adj(&["internal", "serve"]);
    assert!(second.code == 5 && second.stderr.contains("the project is in use by pid"), "{}", second.stderr);
    assert_eq!(here.json(&["ps"]), json!([]), "the owner that is there still answers");
}

/// An address has room for 107 bytes; a path may be longer.
#[test]
fn a_long_path_is_no_hindrance() {
    let outer = Repository::new();
    let deep = outer.0.join(["quite-a-long-name"; 12].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&deep).status().unwrap().success());
    let here = Repository(deep);
    let owner = Owner::start(&here);
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    let asked = here.json(&["history", "--all"]);
    assert_eq!(asked[2]["actor"], "human:ann");
    let from: Ran = here
        .command(&["task", "ls", "--server", &format!("unix:{}", socket(&here).display())])
        .current_dir("/")
        .output()
        .unwrap()
        .into();
    assert!(from.stdout.contains("c-1"), "{}", from.stderr);
    // That it was the owner who answered: nobody else could have written.
    assert!(socket(&here).exists());
    drop(owner);
    assert!(!socket(&here).exists());
    here.ok(&["task", "add", "y", "--id", "c-2"]);
}

#[test]
fn a_named_owner_is_the_only_one_who_answers() {
    let here = Repository::new();
    let elsewhere = Repository::new();
    let at = format!("unix:{}", socket(&here).display());
    elsewhere.fails(&["task", "add", "x", "--server", &at], 5, "no fleet is running at");
    let owner = Owner::start(&here);
    elsewhere.ok(&["task", "add", "x", "--server", &at]);
    let ran: Ran = elsewhere.command(&["task", "ls"]).env("ADJ_SERVER", &at).output().unwrap().into();
    assert!(ran.stdout.contains("t-1"), "{}", ran.stderr);
    assert_eq!(ids(&here), ["t-1"]);
    assert_eq!(ids(&elsewhere), Vec::<String>::new());
    drop(owner);
    elsewhere.fails(&["ps", "--server", "ftp://x"], 5, "cannot reach `ftp://x`");
    elsewhere.fails(&["ps", "--server", "http://x"], 3, "would send your token where others can read it");
}

#[test]
fn an_owner_that_hangs_is_said_with_its_pid() {
    let here = Repository::new();
    let owner = Owner::start(&here);
    owner.signal("-STOP");
    let begun = std::time::Instant::now();
    let ran: Ran = here.command(&["ps"]).output().unwrap().into();
    let added: Ran = here.command(&["task", "add", "x"]).output().unwrap().into();
    let took = begun.elapsed();
    owner.signal("-CONT");
    let pid = owner.child.id();
    let expected = format!("error: the fleet (pid {pid} since 20");
    for ran in [&ran, &added] {
        assert!(ran.code == 5 && ran.stderr.starts_with(&expected), "{}", ran.stderr);
        assert!(ran.stderr.contains("does not answer: the process is stopped by a signal"), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("kill -CONT {pid}")), "{}", ran.stderr);
    }
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    assert!(!here.ok(&["task", "ls"]).contains("t-1"), "what nobody heard is not done");
}

#[test]
fn an_owner_ends_when_it_is_told_to_and_answers_first() {
    let here = Repository::new();
    let mut owner = Owner::start(&here);
    let answer = post(&here, "/fleet/stop", &json!({"now": true}));
    assert_eq!((answer.status, &answer.body["stopping"]), (200, &json!(true)));
    assert_eq!(answer.body["pid"], owner.child.id());
    assert!(owner.child.wait().unwrap().success());
    assert!(!socket(&here).exists());
    let fleet = here.adj(&["stop"]);
    assert_eq!((fleet.code, fleet.stdout.as_str()), (0, "the fleet is not running\n"));
}

#[test]
fn events_are_streamed_as_they_are_written_and_paged_where_nobody_streams() {
    let here = Repository::new();
    let owner = Owner::start(&here);
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    let page = as_user(&here, "GET /api/v1/events?after=2&limit=5 HTTP/1.1", "", b"");
    assert_eq!((page.status, &page.body["items"][0]["kind"]), (200, &json!("task_added")));

    let follow = |more: &str| {
        let mut stream = UnixStream::connect(socket(&here)).unwrap();
        let own = token(&here);
        write!(
            stream,
            "GET /api/v1/events?after=0 HTTP/1.0\r\nAccept: text/event-stream\r\nAuthorization: Bearer {own}\r\n{more}\r\n"
        )
        .unwrap();
        BufReader::new(stream).lines().map(Result::unwrap)
    };
    let mut lines = follow("");
    let is_record = |line: &String| line.starts_with("id: ") || line.contains("\"kind\"");
    let mut next = || lines.find(is_record).unwrap();
    assert_eq!(next(), "id: 1");
    assert!(next().contains("writer_seen"));
    assert_eq!(next(), "id: 2");
    assert!(next().contains("config_changed"));
    assert_eq!(next(), "id: 3");
    assert!(next().contains("\"task_added\""));
    // It waits now; what is written wakes it.
    here.ok(&["task", "comment", "c-1", "hello"]);
    assert_eq!(next(), "id: 4");
    assert!(next().contains("hello"));

    let mut again = follow("Last-Event-ID: 3\r\n");
    assert_eq!(again.find(|line| line.starts_with("id: ")), Some("id: 4".to_owned()));
    // An owner that ends does not wait for its readers.
    drop(owner);
    assert_eq!(again.filter(|line| line.starts_with("id: ") && line != "id: 5").count(), 0);
    assert!(!socket(&here).exists());
}

#[test]
fn many_at_once_are_all_answered() {
    let here = Repository::new();
    let _owner = Owner::start(&here);
    let adds: Vec<_> = (0..16)
        .map(|n| {
            let mut add = here.command(&["task", "add", "x", "--id", &format!("c-{n}")]);
            add.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for add in adds {
        let ran: Ran = add.wait_with_output().unwrap().into();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
    assert_eq!(ids(&here).len(), 16);
}

/// Owners come and go while people work. What was acknowledged is there, and what was not is said not to be known.
#[test]
fn commands_go_on_while_owners_come_and_go() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-0"]);
    let (root, done) = (here.0.clone(), Arc::new(AtomicBool::new(false)));
    let over = done.clone();
    let people = std::thread::spawn(move || {
        // Not dropped: the folder is the test's.
        let here = std::mem::ManuallyDrop::new(Repository(root));
        let (mut acknowledged, mut tried) = (vec!["c-0".to_owned()], 0);
        while !over.load(Ordering::Relaxed) || tried < 10 {
            tried += 1;
            let id = format!("c-{tried}");
            let ran = here.adj(&["task", "add", "x", "--id", &id]);
            match ran.code {
                0 => acknowledged.push(id),
                5 => assert!(ran.stderr.contains("the request may have been executed"), "{}", ran.stderr),
                code => panic!("ended with {code}: {}", ran.stderr),
            }
            here.ok(&["ps"]);
        }
        acknowledged
    });
    for _ in 0..8 {
        // A command may hold the project at this very moment; then the next owner is the one after it.
        let held = here.command(&["internal", "serve"]).output().map(Ran::from).unwrap();
        assert!(held.code == 0 || held.code == 5, "{}", held.stderr);
    }
    done.store(true, Ordering::Relaxed);
    let acknowledged = people.join().unwrap();
    let there = ids(&here);
    assert!(acknowledged.iter().all(|id| there.contains(id)), "{acknowledged:?} are not all in {there:?}");
    here.ok(&["verify"]);
}
