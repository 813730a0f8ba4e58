//! `adj serve` with each of its options, and whoever is too slow for it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::fleet;
use super::ops::SCENARIO;
use super::project::Repository;
use super::server::{Answer, Server};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program in a folder of its own, which goes before all others on the path.
fn program(folder: &Path, name: &str, script: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

fn fifo(path: PathBuf) -> PathBuf {
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// What a server prints to stderr, line by line as it comes.
fn heard(command: &mut Command) -> impl Iterator<Item = String> + use<> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    command.stderr(Stdio::from(OwnedFd::from(theirs)));
    BufReader::new(ours).lines().map(Result::unwrap)
}

#[test]
fn a_proxy_whose_name_is_not_known_is_said_when_the_server_starts() {
    let here = Repository::new();
    let mut command = here.command(&["serve", "--port", "0", "--json", "--behind-proxy"]);
    let mut lines = heard(&mut command);
    let server = Server::begin(command, &here.state("token"), None);
    let told = lines.find(|line| line.contains("--behind-proxy without --public-url")).unwrap();
    assert!(told.contains("421") && told.contains(&server.host()), "{told}");
}

#[test]
fn a_browser_is_opened_at_a_link_that_works_once() {
    let here = Repository::new();
    let folder = tempfile::tempdir().unwrap();
    let told = fifo(folder.path().join("told"));
    let path = program(folder.path(), "xdg-open", &format!("echo \"$1\" > {}", told.display()));
    let mut command = here.command(&["serve", "--port", "0", "--json", "--open"]);
    command.env("PATH", path).stderr(Stdio::null());
    let server = Server::begin(command, &here.state("token"), None);
    let mut link = String::new();
    // It opens when the browser does.
    File::open(told).unwrap().read_to_string(&mut link).unwrap();
    let (page, code) = link.trim().split_once('#').unwrap();
    assert_eq!(page, format!("{}/enter", server.url()));
    let enter = || {
        let body = json!({"code": code}).to_string();
        let head = format!(
            "POST /session HTTP/1.1\nHost: {}\nContent-Type: application/json\nContent-Length: {}",
            server.host(),
            body.len()
        );
        server.raw(&head, body.as_bytes()).status
    };
    assert_eq!((enter(), enter()), (200, 401));
}

#[test]
fn where_nothing_opens_a_browser_it_is_said_in_the_form_of_the_log_and_the_server_goes_on() {
    let here = Repository::new();
    let mut command = here.command(&["serve", "--port", "0", "--json", "--open", "--log", "json"]);
    command.env("PATH", "/nowhere");
    let mut lines = heard(&mut command);
    let server = Server::begin(command, &here.state("token"), None);
    let said: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    assert_eq!(said["message"], "no program was found that opens a browser");
    assert_eq!(server.get("/api/v1/tasks").status, 200);
}

#[test]
fn a_long_poll_waits_as_long_as_was_said() {
    let here = Repository::new();
    let server = Server::start(&here, &["--long-poll", "1"]);
    let begun = Instant::now();
    let waited = server.get("/v1/stream/log?offset=now&live=long-poll");
    assert_eq!(waited.status, 204, "{}", waited.text);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn all_projects_that_were_set_up_are_served_and_those_that_are_broken_are_named() {
    let state = tempfile::tempdir().unwrap();
    let all = [(); 4].map(|()| Repository::new());
    let [one, two, damaged, gone] = &all;
    let of = |here: &Repository, arguments: &[&str]| {
        let mut command = here.command(arguments);
        command.env("XDG_STATE_HOME", state.path());
        command
    };
    for here in &all {
        let commit = "-c user.name=Ann -c user.email=ann@localhost commit --quiet --allow-empty -m Begin";
        let git = Command::new("git").args(commit.split(' ')).current_dir(&here.0).status().unwrap();
        assert!(git.success());
        assert!(of(here, &["init"]).output().unwrap().status.success());
    }
    std::fs::create_dir_all(damaged.state("")).unwrap();
    std::fs::write(damaged.log(), "no log at all").unwrap();
    // The folder is there, and no repository any more.
    std::fs::remove_dir_all(gone.0.join(".git")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = of(one, &["serve", "--port", "0", "--json", "--all"]);
    command.current_dir(elsewhere.path()).stderr(Stdio::null());
    let token = one.state("token");
    let server = Server::begin(command, &token, None);
    let listed = |name: &str| -> Vec<String> {
        server.said[name].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let name = |here: &Repository| here.0.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(listed("projects"), [name(one), name(two)]);
    let broken = listed("notServed").join("\n");
    assert!(listed("notServed").len() == 2 && broken.contains(&name(damaged)), "{broken}");
    assert!(broken.contains(&name(gone)), "{broken}");
    for here in [one, two] {
        let token = std::fs::read_to_string(here.state("token")).unwrap();
        let path = format!("GET /p/{}/api/v1/tasks", name(here));
        assert_eq!(server.ask(&path, &token, &Value::Null).status, 200);
    }
}

#[test]
fn a_fleet_that_is_started_beside_a_server_runs_in_the_server() {
    let here = fleet::Repository::new("run-in-server", SCENARIO, &["f-1"]);
    let server = super::ops::serve(&here, "");
    assert_eq!(server.get("/api/v1/fleet").json()["running"], false);
    let agents = server.get("/api/v1/agents").json();
    let player = agents["items"].as_array().unwrap().iter().find(|agent| agent["name"] == "player");
    assert_eq!(player.unwrap()["adapter"], "script", "{agents}");
    let said = here.ok("run");
    assert_eq!(said, format!("the fleet runs in the server, process {}\n", server.id()));
    server.until_moved("f-1", "DONE");
    assert_eq!(here.read("f-1.txt"), "done\n", "it landed");
    let again = here.adj("run");
    assert!(again.code == 3 && again.stderr.contains("a fleet is at work here already"), "{}", again.stderr);
    here.ok("stop --fleet");
    assert_eq!(server.get("/api/v1/tasks/f-1").json()["status"], "DONE", "the server goes on");
}

/// More than the buffers of a connection hold: whoever takes nothing of it is noticed.
fn much(server: &Server) {
    for number in 0..120 {
        let body = json!({"title": format!("{number}"), "body": "x".repeat(60_000)});
        let added = server.post("/api/v1/tasks", &body);
        assert_eq!(added.status, 201, "{}", added.text);
    }
}

#[test]
fn whoever_follows_and_takes_nothing_is_cut_off_and_the_others_hear_on() {
    let here = Repository::new();
    let mut command =
        here.command(&["serve", "--port", "0", "--json", "--log", "json", "--client-timeout", "1"]);
    let lines = heard(&mut command);
    let server = Server::begin(command, &here.state("token"), None);
    much(&server);
    let follows = server.follow("/api/v1/events");
    let follows = std::thread::spawn(move || { follows }.any(|line| line.contains("\"title\":\"last\"")));
    let silent = server.open_stream("/api/v1/events");
    let notice = "a client that took nothing for 1 s was cut off";
    assert!({ lines }.any(|line| line.contains(notice)));
    // What was on its way when it was cut off is all that it gets.
    let mut taken = Vec::new();
    let _ = { silent }.read_to_end(&mut taken);
    assert!(!String::from_utf8_lossy(&taken).contains("event: heartbeat"), "it was told everything");
    assert_eq!(server.post("/api/v1/tasks", &json!({"title": "last"})).status, 201);
    assert!(follows.join().unwrap(), "it heard all the while");
}

#[test]
fn a_body_that_trickles_is_answered_with_408_at_every_door() {
    let here = Repository::new();
    let server = Server::start(&here, &["--client-timeout", "1"]);
    let token = std::fs::read_to_string(here.state("token")).unwrap();
    let asks = [
        "POST /api/v1/tasks HTTP/1.1\r\nContent-Type: application/json",
        "POST /session HTTP/1.1\r\nContent-Type: application/json",
        "PUT /v1/stream/x HTTP/1.1\r\nContent-Type: text/plain",
    ];
    for ask in asks {
        let mut stream = TcpStream::connect(server.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let own = format!("Host: {}\r\nAuthorization: Bearer {token}\r\nConnection: close", server.host());
        write!(stream, "{ask}\r\n{own}\r\nContent-Length: 100\r\n\r\n{{").unwrap();
        assert_eq!(Answer::read(stream).status, 408, "{ask}");
    }
    assert_eq!(server.get("/api/v1/tasks").json()["items"], json!([]));
}

#[test]
fn beyond_this_machine_it_speaks_tls_and_nothing_else() {
    let here = Repository::new();
    here.ok(&["task", "add", "seen from afar"]);
    let server = Server::with_tls(&here, &["--listen", "0.0.0.0"]);
    assert!(server.url().starts_with("https://localhost:"), "{}", server.url());
    let listed: crate::Ran = server.command(&["task", "ls"]).output().unwrap().into();
    assert!(listed.stdout.contains("seen from afar"), "{}{}", listed.stdout, listed.stderr);
    let distrusted: crate::Ran =
        server.command(&["task", "ls"]).env("SSL_CERT_FILE", "/dev/null").output().unwrap().into();
    assert!(distrusted.code != 0 && distrusted.stdout.is_empty(), "{}", distrusted.stdout);
    assert_eq!(server.get("/healthz").status, 0, "plain HTTP is not answered");
}

#[test]
fn the_whole_log_is_checked_and_brought_home_from_a_server() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    much(&server);
    let run = |line: &str, token: Option<&str>| -> crate::Ran {
        let mut command = server.command(&line.split(' ').collect::<Vec<_>>());
        command.envs(token.map(|token| ("ADJ_TOKEN", token)));
        command.output().unwrap().into()
    };
    let folder = tempfile::tempdir().unwrap();
    let [home, away] = ["home.jsonl", "away.jsonl"].map(|name| folder.path().join(name));
    here.ok(&["export", home.to_str().unwrap()]);
    let said = run(&format!("export {}", away.display()), None);
    let (home, away_text) = (std::fs::read(&home).unwrap(), std::fs::read(&away).unwrap());
    assert!(home == away_text && home.len() > 5 << 20, "{}{}", said.stdout, said.stderr);
    let records = home.iter().filter(|byte| **byte == b'\n').count() - 1;
    assert_eq!(said.stdout, format!("exported {records} records\n"));
    assert_eq!(run("verify", None).stdout, here.ok(&["verify"]));

    let intern = here.json(&["token", "create", "--name", "new", "--role", "intern"]);
    for line in ["verify", "export -"] {
        let refused = run(line, intern["token"].as_str());
        assert!(refused.code == 3 && refused.stdout.is_empty(), "{line}: {}", refused.stderr);
    }
    // A record was changed by hand.
    let changed =
        here.database().execute("UPDATE records SET data = replace(data, 'x', 'y') WHERE seq = 2", ());
    assert_eq!(changed.unwrap(), 1);
    let damaged = run("verify", None);
    assert!(damaged.code == 1 && damaged.stderr.contains("record 2"), "{}", damaged.stderr);
}

/// The system gives ports of its own range to any program that connects somewhere, also while a server restarts.
#[test]
fn a_port_that_the_system_gives_to_anyone_is_named_by_serve_and_doctor() {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    let free_from = |from: u16| {
        let ports = from..from.saturating_add(500);
        ports.into_iter().find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
    };
    let said = |port: u16| {
        let here = Repository::new();
        let mut command = here.command(&["serve", "--port", &port.to_string(), "--json"]);
        let errors = here.state("errors");
        std::fs::create_dir_all(errors.parent().unwrap()).unwrap();
        command.stderr(std::fs::File::create(&errors).unwrap());
        let mut server = Server::begin(command, &here.state("token"), None);
        // What is said when it starts is said before the first answer.
        let found = here.adj(&["doctor", "--json"]).stdout;
        server.stop();
        (std::fs::read_to_string(&errors).unwrap(), found)
    };
    let (errors, found) = said(free_from(first));
    for text in [&errors, &found] {
        assert!(text.contains("is one of those that the system gives to any program"), "{text}");
        assert!(text.contains("ip_local_reserved_ports"), "{text}");
    }
    let (errors, found) = said(free_from(first - 500));
    assert!(
        !errors.contains("gives to any program") && !found.contains("gives to any program"),
        "{errors}{found}"
    );
}
