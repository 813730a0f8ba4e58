//! `adj serve`: the real binary at an address, and everybody who knocks there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Ran;
use super::project::Repository;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;
use serde_json::{Value, json};

/// A server that ends when this is dropped.
pub struct Server {
    child: Child,
    /// What it printed when it began to listen.
    pub said: Value,
    token: String,
    /// Where commands of somebody else are run.
    elsewhere: tempfile::TempDir,
    /// The certificate, where it has one.
    trusted: Option<PathBuf>,
}

impl Server {
    pub fn start(here: &Repository, options: &[&str]) -> Server {
        Server::of(here, &[&["serve", "--port", "0", "--json"], options].concat(), None)
    }

    /// With a certificate of its own for `localhost`.
    pub fn with_tls(here: &Repository, options: &[&str]) -> Server {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (cert, key) = (here.0.join(".git/cert.pem"), here.0.join(".git/key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let files = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        Server::of(
            here,
            &[&["serve", "--port", "0", "--json"], &files[..], options].concat(),
            Some(cert.clone()),
        )
    }

    fn of(here: &Repository, line: &[&str], trusted: Option<PathBuf>) -> Server {
        let mut command = here.command(line);
        command.stderr(Stdio::null());
        Server::begin(command, &here.state("token"), trusted)
    }

    /// Any `adj serve --json`, as soon as it listens.
    pub fn begin(mut command: Command, token: &Path, trusted: Option<PathBuf>) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let said = serde_json::from_str(&said).unwrap();
        let token = std::fs::read_to_string(token).unwrap();
        Server { child, said, token, elsewhere: tempfile::tempdir().unwrap(), trusted }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Ends it as a service manager does, and returns when it has ended.
    pub fn stop(&mut self) {
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(told.unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn url(&self) -> String {
        let url = self.said["url"].as_str().unwrap();
        // The certificate is for a name.
        if self.trusted.is_some() { url.replace("127.0.0.1", "localhost") } else { url.to_owned() }
    }

    pub fn host(&self) -> String {
        self.said["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    }

    /// `adj` in a folder that has nothing to do with the project.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = super::command("");
        command.args(arguments).current_dir(self.elsewhere.path()).stdin(Stdio::null());
        command.env("ADJ_USER", "ann").env("ADJ_TOKEN", &self.token).env("ADJ_SERVER", self.url());
        if let Some(trusted) = &self.trusted {
            command.env("SSL_CERT_FILE", trusted);
        }
        command
    }

    /// A raw request: its first line and headers as they are given, `Host` among them where it matters.
    pub fn raw(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        let head = head.replace('\n', "\r\n");
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        // An answer may come before all was sent; that is its right.
        let _ = stream.write_all(body);
        Answer::read(stream)
    }

    /// The same with our own name, a token and a body of JSON.
    pub fn ask(&self, line: &str, token: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (host, length) = (self.host(), body.len());
        let kind = "Content-Type: application/json";
        let head = format!(
            "{line} HTTP/1.1\nHost: {host}\nAuthorization: Bearer {token}\n{kind}\nContent-Length: {length}"
        );
        self.raw(&head, body.as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &self.token, &Value::Null)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(&format!("POST {path}"), &self.token, body)
    }

    /// The lines of an answer that goes on, as they come.
    pub fn follow(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.open_stream(path)).lines().map(Result::unwrap)
    }

    /// The same before anything of it is read.
    pub fn open_stream(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        // What is sent to whoever takes nothing must not all fit into what the system keeps for them.
        setsockopt(&stream, RcvBuf, &(64 << 10)).unwrap();
        // What takes longer than this hangs.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(90))).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
            self.host(),
            self.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Returns when the log says that a task has come to this status.
    pub fn until_moved(&self, task: &str, status: &str) {
        let records = self.follow("/api/v1/events");
        let mut records = records.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
        let moved = |record: &Value| {
            record["kind"] == "task_moved" && record["data"]["id"] == task && record["data"]["to"] == status
        };
        assert!(records.any(|record| moved(&record)), "the log ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        }
        let _ = self.child.wait();
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Answer {
    pub fn read(mut stream: TcpStream) -> Answer {
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
        Answer { status, head: head.to_owned(), text: body.to_owned() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

#[test]
fn a_browser_comes_in_by_a_link_that_works_once() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let host = server.host();
    let link = here.ok(&["url"]);
    let code = link.trim().rsplit('#').next().unwrap().to_owned();
    assert_eq!(link.trim().split('#').next().unwrap(), format!("{}/enter", server.url()));
    let enter = |code: &str| {
        let body = json!({"code": code}).to_string();
        let kind = "Content-Type: application/json";
        let length = body.len();
        let head = format!("POST /session HTTP/1.1\nHost: {host}\n{kind}\nContent-Length: {length}");
        server.raw(&head, body.as_bytes())
    };
    let (before, page) = (server.raw(&format!("GET / HTTP/1.1\nHost: {host}"), b""), "GET /enter HTTP/1.1");
    assert!(before.status == 401 && before.text.contains("adj url"), "{}", before.text);
    assert_eq!(server.raw(&format!("{page}\nHost: {host}"), b"").status, 200);
    assert_eq!(enter("0000").status, 401);
    let begun = enter(&code);
    assert_eq!(begun.status, 200, "{}", begun.text);
    assert_eq!(enter(&code).json()["code"], "LINK_USED");
    let cookie = begun.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap();
    let page_key = begun.json()["pageKey"].as_str().unwrap().to_owned();

    let with_cookie = |line: &str, more: &str, body: &str| {
        let head = format!(
            "{line} HTTP/1.1\nHost: {host}\nCookie: {cookie}\nX-Adj-Page-Key: {page_key}\n\
             Content-Type: application/json\nContent-Length: {}{more}",
            body.len()
        );
        server.raw(&head, body.as_bytes())
    };
    assert_eq!(with_cookie("GET /api/v1/tasks", "", "").status, 200);
    assert_eq!(with_cookie("GET /", "", "").status, 200);
    let task = r#"{"title":"x"}"#;
    let refused = with_cookie("POST /api/v1/tasks", "", task);
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (403, &json!("WRONG_ORIGIN")),
        "no page says it is ours"
    );
    let foreign = with_cookie("POST /api/v1/tasks", "\nOrigin: http://evil.example", task);
    assert!(
        foreign.status == 403 && foreign.header("access-control-allow-origin").is_none(),
        "{}",
        foreign.head
    );
    let ours = format!("\nOrigin: http://{host}");
    assert_eq!(with_cookie("POST /api/v1/tasks", &ours, task).status, 201);
    assert_eq!(with_cookie("DELETE /session", &ours, "").status, 200);
    assert_eq!(with_cookie("GET /api/v1/tasks", "", "").status, 401, "the session has ended");
}

/// A browser that has come by this link, with its cookie and the key of its page.
struct Browser {
    cookie: String,
    page_key: String,
}

impl Browser {
    fn enter(server: &Server, link: &str, before: Option<&Browser>) -> Browser {
        let body = json!({"code": link.trim().rsplit('#').next().unwrap()}).to_string();
        let before = before.map(|before| format!("\n{}", before.shown())).unwrap_or_default();
        let head = format!(
            "POST /session HTTP/1.1\nHost: {host}\nOrigin: http://{host}{before}\n\
             Content-Type: application/json\nContent-Length: {}",
            body.len(),
            host = server.host()
        );
        let begun = server.raw(&head, body.as_bytes());
        assert_eq!(begun.status, 200, "{}", begun.text);
        let cookie = begun.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Browser { cookie, page_key: begun.json()["pageKey"].as_str().unwrap().to_owned() }
    }

    /// Both secrets, as headers.
    fn shown(&self) -> String {
        format!("Cookie: {}\nX-Adj-Page-Key: {}", self.cookie, self.page_key)
    }

    fn ask(&self, server: &Server, line: &str) -> u16 {
        let host = server.host();
        let head = format!(
            "{line} HTTP/1.1\nHost: {host}\nOrigin: http://{host}\n{}\nContent-Type: application/json",
            self.shown()
        );
        server.raw(&head, b"").status
    }
}

#[test]
fn a_restart_of_the_server_signs_nobody_out_and_brings_nobody_back() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    // The name of a cookie holds the port, so the next server takes the same.
    let port = server.host().rsplit(':').next().unwrap().to_owned();
    let [stays, leaves] = [(); 2].map(|()| Browser::enter(&server, &here.ok(&["url"]), None));
    let tasks = "GET /api/v1/tasks";
    assert_eq!((stays.ask(&server, tasks), leaves.ask(&server, tasks)), (200, 200));
    assert_eq!(leaves.ask(&server, "DELETE /session"), 200);
    drop(server);
    let again = Server::of(&here, &["serve", "--port", &port, "--json"], None);
    assert_eq!((stays.ask(&again, tasks), leaves.ask(&again, tasks)), (200, 401));
    // Whoever has a copy of the file has no session.
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(here.state("sessions.json")).unwrap()).unwrap();
    let kept = kept.as_array().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let (name, _) = stays.cookie.split_once('=').unwrap();
    let hash = |member: &str| kept[0][member].as_str().unwrap().to_owned();
    let thief = Browser { cookie: format!("{name}={}", hash("hash")), page_key: hash("page") };
    assert_eq!(thief.ask(&again, tasks), 401);
    drop(again);
    // Two weeks later, by the only clock that it knows.
    let late = std::fs::read_to_string(here.state("sessions.json")).unwrap();
    let until = kept[0]["until"].to_string();
    std::fs::write(here.state("sessions.json"), late.replace(&until, "1000")).unwrap();
    let later = Server::of(&here, &["serve", "--port", &port, "--json"], None);
    assert_eq!(stays.ask(&later, tasks), 401);
}

#[test]
fn a_session_ends_with_the_token_that_it_came_from() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let made = here.json(&["token", "create", "--name", "ann", "--role", "person"]);
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    let link =
        server.ask("POST /api/v1/links", token, &Value::Null).json()["url"].as_str().unwrap().to_owned();
    let ann = Browser::enter(&server, &link, None);
    let own = Browser::enter(&server, &here.ok(&["url"]), None);
    // A link that a session made rests on the same token.
    let host = server.host();
    let head = format!(
        "POST /api/v1/links HTTP/1.1\nHost: {host}\nOrigin: http://{host}\n{}\n\
         Content-Type: application/json\nContent-Length: 0",
        ann.shown()
    );
    let second = server.raw(&head, b"").json()["url"].as_str().unwrap().to_owned();
    let ann_elsewhere = Browser::enter(&server, &second, None);
    let tasks = "GET /api/v1/tasks";
    let seen = || [&ann, &ann_elsewhere, &own].map(|browser| browser.ask(&server, tasks));
    assert_eq!(seen(), [200, 200, 200]);
    here.ok(&["token", "revoke", id]);
    assert_eq!(seen(), [401, 401, 200]);
}

#[test]
fn a_link_lets_in_to_the_project_that_it_was_made_for() {
    let (one, two) = (Repository::new(), Repository::new());
    let paths = [&one, &two].map(|here| here.0.to_str().unwrap().to_owned());
    let server = Server::start(&one, &["--project", &paths[0], "--project", &paths[1]]);
    let tasks = [&one, &two]
        .map(|here| format!("GET /p/{}/api/v1/tasks", here.0.file_name().unwrap().to_str().unwrap()));
    let into = |browser: &Browser| [&tasks[0], &tasks[1]].map(|line| browser.ask(&server, line));
    let browser = Browser::enter(&server, &one.ok(&["url"]), None);
    assert_eq!(into(&browser), [200, 401]);
    let browser = Browser::enter(&server, &two.ok(&["url"]), Some(&browser));
    assert_eq!(into(&browser), [200, 200], "a browser has one session, and does not lose the first project");
}

#[test]
fn only_our_own_name_and_page_are_answered_and_never_without_a_token() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let (host, token) = (server.host(), &server.token);
    let status = |headers: &str| {
        let line = format!("GET /api/v1/tasks HTTP/1.1\nAuthorization: Bearer {token}{headers}");
        let answer = server.raw(&line, b"");
        assert!(answer.header("access-control-allow-origin").is_none(), "{}", answer.head);
        answer.status
    };
    assert_eq!(status(&format!("\nHost: {host}")), 200);
    assert_eq!(status("\nHost: evil.example"), 421);
    assert_eq!(status("\nHost: evil.example\nOrigin: http://evil.example"), 421);
    assert_eq!(status(&format!("\nHost: {host}\nOrigin: null")), 403);
    assert_eq!(status(&format!("\nHost: {host}\nOrigin: http://evil.example")), 403);
    assert_eq!(status(&format!("\nHost: {host}\nSec-Fetch-Site: cross-site")), 403);
    for path in
        ["/api/v1/tasks", "/api/v1/events", "/docs", "/openapi.json", "/v1/stream/x", "/mcp", "/metrics"]
    {
        let stranger = server.raw(&format!("GET {path} HTTP/1.1\nHost: {host}"), b"");
        assert_eq!(stranger.status, 401, "{path}");
        let query = server.raw(&format!("GET {path}?token={token} HTTP/1.1\nHost: {host}"), b"");
        assert_eq!(query.status, 401, "{path}");
    }
    // A person who opens them is told in a page what to do.
    for path in ["/docs", "/openapi.json", "/api/v1/tasks", "/p/nowhere/docs"] {
        let opened = format!("GET {path} HTTP/1.1\nHost: {host}\nAccept: text/html,*/*;q=0.8");
        let page = server.raw(&opened, b"");
        assert_eq!(
            (page.status, page.header("content-type")),
            (401, Some("text/html; charset=utf-8")),
            "{path}"
        );
        assert!(page.text.contains("adj url"), "{path}: {}", page.text);
    }
    // The web page is the same at all of its addresses and for everybody, and says nothing of any project.
    let page = |path: &str, more: &str| {
        server.raw(&format!("GET {path} HTTP/1.1\nHost: {host}\nAccept: text/html{more}"), b"")
    };
    let board = page("/board", "");
    assert!(board.status == 200 && board.text.contains("/assets/"), "{}", board.text);
    for path in ["/", "/task/t-1/review", "/p/nowhere/inbox", "/enter"] {
        assert_eq!((page(path, "").status, page(path, "").text), (200, board.text.clone()), "{path}");
    }
    let policy = board.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let tag = board.header("etag").unwrap();
    assert_eq!(page("/board", &format!("\nIf-None-Match: {tag}")).status, 304);
    let script =
        board.text.split('"').find(|part| part.starts_with("/assets/") && part.ends_with(".js")).unwrap();
    let asked = |encodings: &str| {
        server.raw(&format!("GET {script} HTTP/1.1\nHost: {host}\nAccept-Encoding: {encodings}"), b"")
    };
    for (encodings, sent) in [("gzip, br", Some("br")), ("gzip", Some("gzip")), ("identity", None)] {
        let answer = asked(encodings);
        assert_eq!((answer.status, answer.header("content-encoding")), (200, sent), "{encodings}");
        assert!(answer.header("cache-control").unwrap().contains("immutable"), "{encodings}");
    }
    assert_eq!(server.raw(&format!("GET /assets/none.js HTTP/1.1\nHost: {host}"), b"").status, 401);
    // Somebody clicks on a link in a chat on the web: that page learns nothing, and the link works.
    for site in ["cross-site", "same-site"] {
        let clicked = |line: &str, dest: &str| {
            let headers = format!("Sec-Fetch-Site: {site}\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: {dest}");
            server.raw(&format!("{line} HTTP/1.1\nHost: {host}\n{headers}\nContent-Length: 0"), b"")
        };
        let enter = clicked("GET /enter", "document");
        assert!(enter.status == 200 && enter.text.contains("/assets/"), "{site}: {}", enter.text);
        let docs = clicked("GET /docs", "document");
        assert!(docs.status == 401 && docs.text.contains("adj url"), "{site}: {}", docs.text);
        assert_eq!(clicked("GET /enter", "iframe").status, 403, "{site}");
        assert_eq!(clicked("POST /session", "document").status, 403, "{site}");
    }
    let own = format!("Host: {host}\nAuthorization: Bearer {token}\nContent-Length: 3");
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let form = format!("POST /api/v1/tasks HTTP/1.1\n{own}\nContent-Type: {kind}");
        assert_eq!(server.raw(&form, b"a=b").status, 415, "{kind}");
    }
    assert_eq!(server.raw(&format!("GET /healthz HTTP/1.1\nHost: {host}"), b"").text, "ok\n");
    assert_eq!(server.raw(&format!("GET /readyz HTTP/1.1\nHost: {host}"), b"").status, 200);
}

#[test]
fn a_server_listens_beyond_this_machine_only_behind_tls_or_a_proxy() {
    let here = Repository::new();
    here.fails(&["serve", "--port", "0", "--listen", "0.0.0.0"], 3, "--behind-proxy");
    here.fails(
        &["serve", "--port", "0", "--listen", "0.0.0.0", "--auth", "none", "--behind-proxy"],
        3,
        "disables authentication",
    );
    let proxied = Server::start(
        &here,
        &["--listen", "0.0.0.0", "--behind-proxy", "--public-url", "https://adj.example.com"],
    );
    assert_eq!(proxied.said["url"], "https://adj.example.com");
    // The port that was taken is said beside the address that browsers open.
    let listens = proxied.said["listens"].as_str().unwrap().to_owned();
    let at = listens.strip_prefix("http://").unwrap();
    let mut healthy = TcpStream::connect(at).unwrap();
    healthy
        .write_all(format!("GET /healthz HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(Answer::read(healthy).text, "ok\n");
    drop(proxied);
    let started = here.json(&["serve", "--port", "0", "--detach", "--public-url", "https://adj.example.com"]);
    let listens = started["listens"].as_str().unwrap().to_owned();
    assert!(TcpStream::connect(listens.strip_prefix("http://").unwrap()).is_ok(), "{started}");
    here.ok(&["stop"]);
    here.fails(&["serve", "--port", "0", "--public-url", "http://adj.example.com"], 2, "https://HOST");
}

/// The suite of the streams asks for it; nothing else of another page is answered.
#[test]
fn a_server_that_asks_for_no_token_answers_the_preflight_of_a_stream_to_any_page() {
    let here = Repository::new();
    let (open, closed) = (Server::start(&here, &["--auth", "none"]), Repository::new());
    let closed = Server::start(&closed, &[]);
    let asked = |server: &Server, line: &str, host: &str| {
        server.raw(&format!("{line} HTTP/1.1\nHost: {host}\nOrigin: http://evil.example"), b"").status
    };
    assert_eq!(asked(&open, "OPTIONS /v1/stream/x", &open.host()), 204);
    assert_eq!(asked(&open, "OPTIONS /v1/stream/x", "evil.example"), 421);
    assert_eq!(asked(&open, "OPTIONS /api/v1/tasks", &open.host()), 403);
    assert_eq!(asked(&open, "GET /v1/stream/log", &open.host()), 403);
    assert_eq!(asked(&closed, "OPTIONS /v1/stream/x", &closed.host()), 403);
}

#[test]
fn a_token_for_reading_changes_nothing_and_a_revoked_one_reads_nothing() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let made = here.json(&["token", "create", "--name", "ann", "--role", "reader"]);
    let (reader, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert_eq!(server.ask("GET /api/v1/tasks", reader, &Value::Null).status, 200);
    let refused = server.ask("POST /api/v1/tasks", reader, &json!({"title": "x"}));
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("READ_ONLY")));
    let kept = std::fs::read_to_string(here.state("named-tokens.json")).unwrap();
    assert!(!kept.contains(reader), "only its hash is kept");
    here.ok(&["token", "revoke", id]);
    assert_eq!(server.ask("GET /api/v1/tasks", reader, &Value::Null).status, 401);

    let intern = here.json(&["token", "create", "--name", "new", "--role", "intern"]);
    let moved = server.ask("POST /api/v1/fleet/start", intern["token"].as_str().unwrap(), &json!({}));
    assert_eq!(moved.status, 403, "{}", moved.text);
}

#[test]
fn a_token_that_asks_without_end_is_held_back_and_the_user_is_not() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let made = here.json(&["token", "create", "--name", "ann", "--role", "reader"]);
    let mut stream = TcpStream::connect(server.host()).unwrap();
    let line = format!(
        "GET /healthy HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.host(),
        made["token"].as_str().unwrap()
    );
    // All in one go over one connection: they are answered one after the other.
    let sending = stream.try_clone().unwrap();
    let requests = line.repeat(3_000);
    std::thread::spawn(move || (&sending).write_all(requests.as_bytes()));
    let lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
    // An answer begins where the one before it ended.
    let refused = lines.take(3_000 * 9).find(|line| line.contains("HTTP/1.1 429"));
    assert!(refused.is_some());
    assert_eq!(server.get("/api/v1/tasks").status, 200);
}

#[test]
fn strangers_guess_only_slowly_and_whoever_has_a_token_is_answered_meanwhile() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let head = format!("GET /api/v1/tasks HTTP/1.1\nHost: {}\nAuthorization: Bearer guess", server.host());
    let mut statuses = (0..2_000).map(|_| server.raw(&head, b"").status);
    assert_eq!(statuses.next(), Some(401));
    assert_eq!(statuses.find(|status| *status != 401), Some(429));
    assert_eq!(server.get("/api/v1/tasks").status, 200);
}

#[test]
fn several_projects_are_served_each_under_its_name_and_one_that_is_broken_keeps_nobody_out() {
    let (one, two, broken) = (Repository::new(), Repository::new(), Repository::new());
    two.ok(&["task", "add", "of two"]);
    std::fs::create_dir_all(broken.state("")).unwrap();
    std::fs::write(broken.log(), "no log at all").unwrap();
    let paths = [&one, &two, &broken].map(|here| here.0.to_str().unwrap().to_owned());
    let folders: Vec<&str> = paths.iter().flat_map(|path| ["--project", path]).collect();
    let server = Server::start(&one, &folders);
    let names: Vec<&str> =
        server.said["projects"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names.len(), 2, "{}", server.said);
    assert!(server.said["notServed"][0].as_str().unwrap().contains(&paths[2]), "{}", server.said);
    let own = server.get(&format!("/p/{}/api/v1/tasks", names[0]));
    assert_eq!((own.status, own.json()["items"].as_array().unwrap().len()), (200, 0));
    let other = format!("/p/{}/api/v1/tasks", names[1]);
    assert_eq!(server.get(&other).status, 401, "a token is for its own project");
    let token = std::fs::read_to_string(two.state("token")).unwrap();
    let tasks = server.ask(&format!("GET {other}"), &token, &Value::Null);
    assert_eq!(tasks.json()["items"][0]["title"], "of two");
    assert_eq!(server.get("/api/v1/tasks").status, 404, "which one is not said");
    assert_eq!(server.get("/p/nowhere/api/v1/tasks").status, 404);
    let ran: Ran = server
        .command(&["task", "ls", "--json"])
        .env("ADJ_SERVER", format!("{}/p/{}", server.url(), names[1]))
        .env("ADJ_TOKEN", &token)
        .output()
        .unwrap()
        .into();
    assert!(ran.stdout.contains("of two"), "{}{}", ran.stdout, ran.stderr);
    // Its own socket still leads to it, whoever else is served beside it.
    assert!(two.ok(&["task", "ls"]).contains("of two"));
}

#[test]
fn a_project_that_is_not_there_keeps_no_other_from_being_served() {
    let (here, folder) = (Repository::new(), tempfile::tempdir().unwrap());
    let [own, plain] = [&*here.0, folder.path()].map(|path| path.to_str().unwrap());
    let projects = ["--project", "/nowhere", "--project", own, "--project", plain];
    let server = Server::start(&here, &projects);
    assert_eq!(server.said["projects"].as_array().unwrap().len(), 1, "{}", server.said);
    let broken = server.said["notServed"].to_string();
    assert!(broken.contains("/nowhere") && broken.contains(plain), "{broken}");
    assert_eq!(server.get("/api/v1/tasks").status, 200);
    drop(server);
    let detached = here.adj(&[&["serve", "--port", "0", "--detach"], &projects[..]].concat());
    assert!(detached.code == 0 && detached.stderr.contains("/nowhere is not served"), "{}", detached.stderr);
    here.ok(&["stop"]);
    here.fails(&["serve", "--project", "/nowhere", "--project", plain], 4, "none of the projects");
}

#[test]
fn a_fleet_that_cannot_start_where_the_server_is_says_where_that_is() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let ran: Ran = server.command(&["run"]).output().unwrap().into();
    let said = format!("the fleet of {} was not started: ", server.url());
    assert!(ran.code != 0 && ran.stderr.contains(&said), "{}", ran.stderr);
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    let here = Repository::new();
    for address in ["http://u:SECRET@127.0.0.1:1", "https://SECRET@adj.example/p/x", "http://a@SECRET@b"] {
        let ran = here.adj(&["--server", address, "board"]);
        assert!(ran.code == 2 && ran.stderr.contains("ADJ_TOKEN"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("SECRET"), "{}", ran.stderr);
    }
}

/// A plan that was given with the task counts, for whoever begins the work and over whichever route.
#[test]
fn a_plan_that_a_task_was_added_with_lets_it_begin() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let made = here.json(&["token", "create", "--name", "coder", "--role", "specialist"]);
    let token = made["token"].as_str().unwrap();
    for id in ["c-1", "c-2", "c-3"] {
        let mut task = json!({"id": id, "title": id, "plan": ["look", "change", "test"]});
        if id == "c-3" {
            task.as_object_mut().unwrap().remove("plan");
        }
        assert_eq!(server.post("/api/v1/tasks", &task).status, 201);
        let given = json!({"to": "ASSIGNED", "assigneeIds": ["coder"]});
        assert_eq!(server.post(&format!("/api/v1/tasks/{id}/transitions"), &given).status, 200);
    }
    let begin = json!({"to": "IN_PROGRESS"});
    let moved = server.post("/api/v1/tasks/c-1/transitions", &begin);
    assert_eq!(moved.status, 200, "{}", moved.text);
    let run = server.ask("POST /api/v1/runs", token, &json!({"task": "c-2", "prompt": "go"}));
    assert_eq!(run.status, 201, "{}", run.text);
    for id in ["c-1", "c-2"] {
        let task = server.get(&format!("/api/v1/tasks/{id}")).json();
        assert_eq!(task["workPlan"]["bullets"], json!(["look", "change", "test"]), "{task}");
    }
    let without = server.post("/api/v1/tasks/c-3/transitions", &begin);
    assert!(without.status >= 400 && without.text.contains("Work plan required"), "{}", without.text);
}

#[test]
fn what_is_polled_is_sent_only_where_it_has_changed() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let first = server.get("/api/v1/tasks");
    let tag = first.header("etag").unwrap().to_owned();
    let poll = |tag: &str| {
        let line = format!("GET /api/v1/tasks HTTP/1.1\nHost: {}\nIf-None-Match: {tag}", server.host());
        server.raw(&format!("{line}\nAuthorization: Bearer {}", server.token), b"")
    };
    let same = poll(&tag);
    assert_eq!((same.status, same.text.as_str()), (304, ""));
    here.ok(&["task", "add", "x"]);
    assert_eq!(poll(&tag).status, 200);
}

#[test]
fn the_board_that_is_kept_ready_is_what_the_tasks_are() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let lines = |server: &Server| {
        let board = server.get("/api/v1/board");
        assert_eq!(board.status, 200, "{}", board.text);
        let mut lines: Vec<(String, String, String)> = board.json()["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| ["id", "title", "status"].map(|name| item[name].as_str().unwrap().to_owned()))
            .map(|[id, title, status]| (id, title, status))
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&server), []);
    for id in ["c-2", "c-1", "c-3"] {
        assert_eq!(server.post("/api/v1/tasks", &json!({"id": id, "title": id})).status, 201);
    }
    let line = |id: &str, title: &str, status: &str| (id.to_owned(), title.to_owned(), status.to_owned());
    let inbox = |id: &str| line(id, id, "INBOX");
    assert_eq!(lines(&server), [inbox("c-1"), inbox("c-2"), inbox("c-3")]);
    here.ok(&["task", "cancel", "c-2"]);
    here.ok(&["task", "edit", "c-3", "--title", "renamed"]);
    let expected = [inbox("c-1"), line("c-2", "c-2", "CANCELED"), line("c-3", "renamed", "INBOX")];
    assert_eq!(lines(&server), expected);
    drop(server);
    let again = Server::start(&here, &[]);
    assert_eq!(lines(&again), expected);
    assert_eq!(here.json(&["task", "ls", "--all"]).as_array().unwrap().len(), 3);
}

#[test]
fn a_hundred_times_the_same_request_is_done_once_also_after_a_restart() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let ask = |server: &Server| {
        let body = r#"{"title":"once"}"#;
        let line = format!(
            "POST /api/v1/tasks HTTP/1.1\nHost: {}\nAuthorization: Bearer {}\nX-Idempotency-Key: k\n\
             Content-Type: application/json\nContent-Length: {}",
            server.host(),
            server.token,
            body.len()
        );
        let answer = server.raw(&line, body.as_bytes());
        (answer.status, answer.json()["id"].as_str().map(str::to_owned))
    };
    let answers: Vec<(u16, Option<String>)> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..100).map(|_| scope.spawn(|| ask(&server))).collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let done: Vec<_> = answers.iter().filter(|(status, _)| *status == 201).collect();
    assert!(
        !done.is_empty() && done.iter().all(|answer| **answer == (201, Some("t-1".to_owned()))),
        "{answers:?}"
    );
    assert!(answers.iter().all(|(status, _)| matches!(status, 201 | 409)), "{answers:?}");
    drop(server);
    let again = Server::start(&here, &[]);
    assert_eq!(ask(&again), (201, Some("t-1".to_owned())));
    assert_eq!(again.get("/api/v1/tasks").json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn events_are_followed_from_any_record_and_say_that_they_are_live() {
    let here = Repository::new();
    here.ok(&["task", "add", "first"]);
    let server = Server::start(&here, &[]);
    let follow = |more: &str| server.follow(&format!("/api/v1/events{more}"));
    let mut all = follow("");
    let mut seen: Vec<u64> = Vec::new();
    let beat = all
        .by_ref()
        .inspect(|line| seen.extend(line.strip_prefix("id: ").map(|id| id.parse::<u64>().unwrap())));
    assert!(beat.into_iter().any(|line| line == "event: heartbeat"));
    assert_eq!(seen, [1, 2, 3]);
    here.ok(&["task", "add", "second"]);
    let told = all.find(|line| line.starts_with("data: ") && line.contains("task_added")).unwrap();
    assert!(told.contains("second"), "{told}");
    let mut later = follow("?after=3");
    assert!(later.find(|line| line.starts_with("id: ")).unwrap() == "id: 4");
    let line =
        format!("GET /api/v1/events?after=99 HTTP/1.1\nHost: {}\nAccept: text/event-stream", server.host());
    let beyond = server.raw(&format!("{line}\nAuthorization: Bearer {}", server.token), b"");
    assert!(beyond.status == 404 && beyond.text.contains("the log ends with 4"), "{}", beyond.text);
}

#[test]
fn the_fleet_is_off_until_somebody_starts_it_and_the_server_outlives_it() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    assert_eq!(server.get("/api/v1/fleet").json()["running"], false);
    let ran = here.adj(&["run", "--once"]);
    assert!(ran.code == 3 && ran.stderr.contains("a server runs here"), "{}", ran.stderr);
    let refused = server.post("/api/v1/fleet/start", &json!({"workers": 0}));
    assert_eq!(refused.json()["errors"][0]["field"], "workers", "{}", refused.text);
    // Nothing was set up here: what is missing is said, and the server goes on.
    let started = server.post("/api/v1/fleet/start", &json!({}));
    assert!(started.status >= 400 && !started.json()["hint"].is_null(), "{}", started.text);
    assert_eq!(server.get("/api/v1/fleet").json()["running"], false);
    assert_eq!(server.post("/api/v1/tasks", &json!({"title": "x"})).status, 201);
}

#[test]
fn a_server_in_the_background_is_found_by_url_and_its_log_holds_no_link() {
    let here = Repository::new();
    here.ok(&["serve", "--port", "0", "--detach"]);
    let link = here.ok(&["url"]);
    assert!(link.contains("/enter#"), "{link}");
    let log = std::fs::read_to_string(here.state("logs/run.log")).unwrap();
    assert!(log.contains("serving ") && !log.contains("/enter#"), "{log}");
    assert_eq!(here.ok(&["stop", "--fleet"]), "the fleet is not running\n");
    assert!(here.ok(&["stop"]).starts_with("stopped (pid "));
    here.fails(&["url"], 3, "no server is running that browsers can reach");
}

#[test]
fn who_is_slow_silent_or_gone_keeps_nobody_else_waiting() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    let idle: Vec<TcpStream> = (0..2_000).map(|_| TcpStream::connect(server.host()).unwrap()).collect();
    assert_eq!(server.get("/api/v1/tasks").status, 200);
    let head = |length: u64| {
        format!(
            "POST /api/v1/tasks HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n",
            server.host(),
            server.token
        )
    };
    // A body that trickles, one that never comes whole, and one whose sender has gone.
    let mut trickling = TcpStream::connect(server.host()).unwrap();
    trickling.write_all(head(1_000).as_bytes()).unwrap();
    trickling.write_all(b"{").unwrap();
    let mut gone = TcpStream::connect(server.host()).unwrap();
    gone.write_all(head(1_000).as_bytes()).unwrap();
    drop(gone);
    assert_eq!(server.post("/api/v1/tasks", &json!({"title": "x"})).status, 201);
    let mut huge = TcpStream::connect(server.host()).unwrap();
    huge.write_all(head(1 << 40).as_bytes()).unwrap();
    assert_eq!(Answer::read(huge).status, 413);
    let long = vec![b'['; 200_000];
    let deep = server.raw(head(long.len() as u64).trim_end().replace("\r\n", "\n").as_str(), &long);
    assert_eq!(deep.status, 400, "{}", deep.text);
    let large = vec![b' '; 32 << 20];
    let large = server.raw(head(large.len() as u64).trim_end().replace("\r\n", "\n").as_str(), &large);
    assert_eq!(large.status, 413, "{}", large.text);
    assert_eq!(server.get("/api/v1/tasks").json()["items"].as_array().unwrap().len(), 1);
    drop(idle);
}

/// How many clients and tasks: a few in `make test`, `make load` plays them all.
fn load() -> (usize, usize) {
    let number = |name: &str, few| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(few);
    (number("ADJ_LOAD_CLIENTS", 8), number("ADJ_LOAD_TASKS", 80))
}

/// A task's way over the whole board, as a person moves it.
fn way() -> Vec<(&'static str, Value)> {
    let items: Vec<Value> = ["x", "y", "z"].map(|item| json!({"item": item, "answer": "yes"})).to_vec();
    let review = json!({
        "to": "REVIEW", "deliverable": {"content": "did it"}, "reviewChecklist": {"type": "task", "items": items},
    });
    vec![
        ("ASSIGNED", json!({"to": "ASSIGNED", "assigneeIds": ["coder"]})),
        ("IN_PROGRESS", json!({"to": "IN_PROGRESS", "workPlan": {"bullets": ["a", "b", "c"]}})),
        ("BLOCKED", json!({"to": "BLOCKED", "reason": "manual"})),
        ("IN_PROGRESS", json!({"to": "IN_PROGRESS"})),
        ("REVIEW", review.clone()),
        ("IN_PROGRESS", json!({"to": "IN_PROGRESS", "feedback": "more"})),
        ("REVIEW", review),
        ("DONE", json!({"to": "DONE", "approval": {"decisionNote": "fine"}})),
    ]
}

/// A connection that is kept open, with keys of its own.
struct Caller<'s> {
    server: &'s Server,
    stream: TcpStream,
}

impl Caller<'_> {
    fn ask(&mut self, line: &str, key: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nX-Idempotency-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.server.host(),
            self.server.token,
            body.len()
        );
        self.stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(&self.stream);
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_lowercase();
            if line.is_empty() {
                break;
            }
            status = line.strip_prefix("http/1.1 ").map_or(status, |rest| rest[..3].parse().unwrap());
            length = line.strip_prefix("content-length: ").map_or(length, |length| length.parse().unwrap());
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).unwrap();
        (status, serde_json::from_slice(&text).unwrap())
    }
}

#[test]
fn many_clients_move_many_tasks_over_the_whole_board_and_nothing_is_lost_or_done_twice() {
    let (clients, tasks) = load();
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    std::thread::scope(|scope| {
        for client in 0..clients {
            let server = &server;
            scope.spawn(move || {
                let mut caller = Caller { server, stream: TcpStream::connect(server.host()).unwrap() };
                for task in (client..tasks).step_by(clients) {
                    let id = format!("c-{task}");
                    let new = json!({"id": id, "title": "x"});
                    // Everything is asked twice, as by a client that lost its answer.
                    for _ in 0..2 {
                        assert_eq!(caller.ask("POST /api/v1/tasks", &format!("add-{id}"), &new).0, 201);
                    }
                    for (at, (status, body)) in way().iter().enumerate() {
                        let path = format!("POST /api/v1/tasks/{id}/transitions");
                        for _ in 0..2 {
                            let (code, answer) = caller.ask(&path, &format!("move-{at}"), body);
                            let moved = &answer["task"]["status"];
                            assert_eq!((code, moved.as_str()), (200, Some(*status)), "{id}: {answer}");
                        }
                    }
                }
            });
        }
    });
    let board = server.get("/api/v1/board").json();
    let items = board["items"].as_array().unwrap();
    assert_eq!(items.len(), tasks);
    assert!(items.iter().all(|item| item["status"] == "DONE"), "{board}");
    drop(server);
    here.ok(&["verify"]);
    let moves = here.database();
    let moves: i64 = moves
        .query_row("SELECT count(*) FROM records WHERE kind = 'task_moved'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(moves as usize, tasks * way().len(), "each move once");
}
