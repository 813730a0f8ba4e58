//! Who is told that a person is needed: addresses of the settings, each with what matters to it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use crate::ops::{SCENARIO, serve, wait};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What somebody was sent.
struct Message {
    head: String,
    body: String,
}

impl Message {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Takes messages at an address of this machine, and answers each with the next of these; then with 200.
fn receiver(listener: TcpListener, answers: &'static [u16]) -> Receiver<Message> {
    let (send, messages) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).unwrap() == 0 {
                    break;
                }
            }
            let length = |line: &str| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok();
            let mut body = vec![0; head.lines().find_map(length).unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            let status = answers.next().unwrap_or(&200);
            let answer =
                format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:1/\r\n\r\n");
            let _ = stream.get_mut().write_all(answer.as_bytes());
            if send.send(Message { head, body: String::from_utf8(body).unwrap() }).is_err() {
                return;
            }
        }
    });
    messages
}

fn next(messages: &Receiver<Message>) -> Message {
    messages.recv_timeout(Duration::from_secs(60)).expect("a message comes")
}

/// A project with these webhooks, and the question of an agent that comes about.
fn project(name: &str, webhooks: &str) -> Repository {
    let here = Repository::new(name, SCENARIO, &[]);
    here.write("adjutant.toml", &format!("{}\n{webhooks}", here.read("adjutant.toml")));
    here.commit("Settings");
    here
}

fn ask(here: &Repository, task: &str) {
    here.ok(&format!("task add Ask --id {task}"));
    here.ok(&format!("task assign {task} player"));
    here.ok(&format!("task move {task} IN_PROGRESS --plan a --plan b --plan c"));
    here.ok(&format!("task move {task} NEEDS_APPROVAL --cause escalation --feedback May-I"));
}

fn started(here: &Repository) -> super::super::server::Server {
    serve(here, "")
}

#[test]
fn a_message_that_is_not_taken_is_sent_again_with_the_same_id_and_signed() {
    let all = TcpListener::bind("127.0.0.1:0").unwrap();
    let quiet = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = |listener: &TcpListener| format!("http://{}/hook?x=1", listener.local_addr().unwrap());
    let webhooks = format!(
        "[webhooks.all]\nurl = \"{}\"\nsecret_env = \"HOOK_SECRET\"\n\
         [webhooks.quiet]\nurl = \"{}\"\nseverity = \"urgent\"\n",
        address(&all),
        address(&quiet)
    );
    let here = project("webhooks", &webhooks);
    let (all, quiet) = (receiver(all, &[500, 302]), receiver(quiet, &[]));
    let mut command = here.command("serve --port 0 --json");
    command.env("HOOK_SECRET", "s3cret").stderr(std::process::Stdio::null());
    let server = super::super::server::Server::begin(command, &here.state("token"), None);
    ask(&here, "w-1");
    let tries = [next(&all), next(&all), next(&all)];
    let id = tries[0].header("x-adjutant-id").unwrap();
    for one in &tries {
        assert!(one.head.starts_with("POST /hook?x=1 HTTP/1.1"), "{}", one.head);
        assert_eq!((one.header("x-adjutant-id"), &one.body), (Some(id), &tries[0].body));
        let signature = one.header("x-adjutant-signature").unwrap();
        let (seconds, signed) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        let message = format!("{seconds}.{}", one.body);
        assert_eq!(signed, base::secrets::signature(b"s3cret", message.as_bytes()));
    }
    let said = tries[0].json();
    assert_eq!((&said["kind"], &said["severity"]), (&"approval".into(), &"urgent".into()));
    assert_eq!((&said["id"], &said["task"]), (&id.into(), &"w-1".into()));
    assert_eq!(next(&quiet).header("x-adjutant-signature"), None, "no secret is named for it");

    // A review matters to one of them only. What comes next to the other is the question after it.
    here.ok("task add Propose --id w-2");
    here.ok("task assign w-2 player");
    here.ok("task move w-2 IN_PROGRESS --plan a --plan b --plan c");
    here.ok("task move w-2 BLOCKED --reason environment");
    ask(&here, "w-3");
    let mut later = [next(&all).json()["kind"].clone(), next(&all).json()["kind"].clone()];
    later.sort_by_key(Value::to_string);
    assert_eq!(later, [Value::from("approval"), Value::from("blocked_task")]);
    assert_eq!(next(&quiet).json()["task"], "w-3");
    drop(server);
    let kept = std::fs::read_to_string(here.state("webhooks.json")).unwrap();
    assert!(!kept.contains("s3cret") && !here.read("adjutant.toml").contains("s3cret"), "{kept}");
}

#[test]
fn what_nobody_took_is_sent_by_the_next_server_with_the_same_id() {
    // Nobody listens there until the second server has begun.
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    drop(held);
    let here = project("webhooks-later", &format!("[webhooks.chat]\nurl = \"http://{address}\"\n"));
    let server = started(&here);
    ask(&here, "w-1");
    let outbox = || std::fs::read_to_string(here.state("webhooks.json")).unwrap_or_default();
    let id = wait("a message that waits", || {
        let outbox: Value = serde_json::from_str(&outbox()).ok()?;
        outbox["deliveries"][0]["id"].as_str().map(str::to_owned)
    });
    let killed = std::process::Command::new("kill").args(["-KILL", &server.id().to_string()]).status();
    assert!(killed.unwrap().success());
    drop(server);
    let messages = receiver(TcpListener::bind(address).unwrap(), &[]);
    let server = started(&here);
    assert_eq!(next(&messages).header("x-adjutant-id"), Some(id.as_str()));
    wait("an empty outbox", || outbox().contains("\"deliveries\":[]").then_some(()));
    drop(server);
    // What was told is not told again.
    let server = started(&here);
    ask(&here, "w-2");
    assert_eq!(next(&messages).json()["task"], "w-2");
    drop(server);
}

/// A fleet that stands still, with a review and with a task that waits for it.
#[test]
fn a_fleet_that_stands_still_is_told_once_with_all_that_it_waits_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let webhook = format!("[webhooks.chat]\nurl = \"http://{}\"\n", listener.local_addr().unwrap());
    let here = project("webhooks-still", &format!("{webhook}[limits]\nstandstill = \"1s\"\n"));
    here.set(&[("review = \"auto\"", "review = \"human\"")]);
    here.ticket("t-1", &[]);
    here.ticket("t-2", &["t-1"]);
    here.commit("Tickets");
    let messages = receiver(listener, &[]);
    let fleet = here.start("run");
    assert_eq!(next(&messages).json()["kind"], "review");
    let message = next(&messages);
    let (said, id) = (message.json(), message.header("x-adjutant-id").unwrap().to_owned());
    assert_eq!((&said["kind"], &said["severity"]), (&"standstill".into(), &"urgent".into()), "{said}");
    assert_eq!((&said["id"], &said["blocks"]), (&id.into(), &serde_json::json!(["t-1", "t-2"])), "{said}");
    assert_eq!(said["waiting"][0]["kind"], "review", "{said}");
    assert_eq!(said["waiting"][0]["options"][1]["code"], "approve_review", "{said}");
    assert!(said["since"].is_string() && said["text"].as_str().unwrap().contains("adj review t-1"), "{said}");
    fleet.stop();

    // The next fleet says it in its terminal. Whoever was told already is told of what comes next.
    let fleet = here.start("run");
    fleet.wait_for("the fleet makes no progress");
    // What is written meanwhile has it looked at again and again.
    (0..10).for_each(|_| drop(here.ok("task comment t-2 Hm")));
    here.ok("review t-1 --approve");
    assert_eq!(next(&messages).json()["task"], "t-2");
    assert_eq!(next(&messages).json()["waiting"][0]["task"], "t-2");
    fleet.stop();
}

#[test]
fn an_address_that_others_could_read_is_refused() {
    for (url, said) in [
        ("http://hooks.example.com/x", "must be https"),
        ("ftp://hooks.example.com", "must be an address such as"),
        ("file:///etc/passwd", "must be an address such as"),
        ("https://me:secret@hooks.example.com", "must contain no user and no password"),
        ("http://127.0.0.1.example.com/", "must be https"),
    ] {
        let here = project("webhooks-wrong", &format!("[webhooks.chat]\nurl = \"{url}\"\n"));
        let checked = here.adj("config check");
        let all = format!("{}{}", checked.stdout, checked.stderr);
        assert!(checked.code != 0 && all.contains(said), "{url}: {all}");
    }
    let here = project("webhooks-none", "[webhooks.chat]\nseverity = \"info\"\n");
    assert!(here.adj("config check").stdout.contains("has no `url`"));
}

#[test]
fn the_hook_is_told_only_of_what_matters_as_much_as_the_settings_say() {
    let scenario = r#"
[[scenario]]
task = "t-asks"
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { write = "a.txt", text = "a\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { write = "c.txt", text = "c\n" }, { done = true } ]
"#;
    let here = Repository::new("notify-severity", scenario, &["t-asks", "t-review"]);
    let settings = here.read("adjutant.toml").replace("review = \"auto\"", "review = \"human\"");
    let hook = "[hooks]\nnotify = 'echo \"$ADJ_SEVERITY $ADJ_NOTIFY\" >> \"$ADJ_PROJECT/.git/adjutant/told\"'\n\
                [notify]\nseverity = \"urgent\"\n[limits]\nquestion = \"1s\"\n";
    here.write("adjutant.toml", &format!("{settings}{hook}"));
    here.commit("Settings");
    assert_eq!(here.adj("run --until-idle").code, 1);
    assert_eq!(here.read(&here.state("told")), "urgent approval\n");
}
