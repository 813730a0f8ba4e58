//! A real browser at `adj serve`: Chromium without a window, driven over a pipe by the DevTools protocol.
//!
//! An agent has ports of its own, and people look at what it serves there. Browsers send the cookies of a host to every
//! port of it, so what a browser is known by must be more than a cookie.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;

use super::project::Repository;
use super::server::Server;
use serde_json::{Value, json};

/// It ends when this is dropped.
struct Chromium {
    child: Child,
    commands: ChildStdin,
    messages: BufReader<ChildStdout>,
    last: u64,
    /// Its own, and gone with it.
    _profile: tempfile::TempDir,
}

/// A page of it.
struct Tab(String);

impl Chromium {
    fn start() -> Chromium {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let program = names.iter().find_map(|name| project::program::which(name));
        let program =
            program.expect("this test drives Chromium: install it (on Debian: apt install chromium)");
        let profile = tempfile::tempdir().unwrap();
        // It reads commands from descriptor 3 and writes to 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"]).arg(program);
        let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
            --disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe";
        command.args(flags.split_whitespace());
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // Where a proxy is set, what is on this machine is not asked through it.
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (commands, messages) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Chromium { child, commands, messages: BufReader::new(messages), last: 0, _profile: profile }
    }

    /// Answers `result`, or `error` with what was wrong.
    fn send(&mut self, tab: Option<&Tab>, method: &str, parameters: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(Tab(session)) = tab {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut message = Vec::new();
            self.messages.read_until(0, &mut message).unwrap();
            assert_eq!(message.pop(), Some(0), "the browser has ended");
            let message: Value = serde_json::from_slice(&message).unwrap();
            // Others are events.
            if message["id"] == self.last {
                return if message["error"].is_null() {
                    Ok(message["result"].clone())
                } else {
                    Err(message["error"].clone())
                };
            }
        }
    }

    fn open(&mut self, address: &str) -> Tab {
        let target = self.send(None, "Target.createTarget", json!({"url": "about:blank"})).unwrap();
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let tab = self.send(None, "Target.attachToTarget", attach).unwrap();
        let tab = Tab(tab["sessionId"].as_str().unwrap().to_owned());
        self.go(&tab, address);
        tab
    }

    fn go(&mut self, tab: &Tab, address: &str) {
        let gone = self.send(Some(tab), "Page.navigate", json!({"url": address})).unwrap();
        assert!(gone["errorText"].is_null(), "{address}: {gone}");
    }

    /// The value of a promise, once it has one. A page that is left takes its promises with it: the next one is asked.
    fn value(&mut self, tab: &Tab, promise: &str) -> Value {
        loop {
            let asked = json!({"expression": promise, "awaitPromise": true, "returnByValue": true});
            match self.send(Some(tab), "Runtime.evaluate", asked) {
                Ok(answer) if answer["exceptionDetails"].is_null() => {
                    return answer["result"]["value"].clone();
                }
                Ok(answer) => panic!("{promise}: {answer}"),
                Err(error) => {
                    let text = error["message"].as_str().unwrap_or_default();
                    let left = ["context was destroyed", "navigated or closed", "Cannot find context"];
                    assert!(left.iter().any(|left| text.contains(left)), "{promise}: {error}");
                }
            }
        }
    }

    /// Returns the text of the page once it shows this.
    fn until(&mut self, tab: &Tab, shown: &str) -> String {
        let promise = format!(
            "new Promise(done => {{ const look = () => (document.body?.innerText ?? '').includes({shown}) \
             ? done(location.href + '\\n' + document.body.innerText) : setTimeout(look, 10); look(); }})",
            shown = json!(shown)
        );
        self.value(tab, &promise).as_str().unwrap().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an agent serves at a port of its own: it keeps the head of every request, and its page looks at what it can.
struct AgentServer {
    port: u16,
    heads: mpsc::Receiver<String>,
}

impl AgentServer {
    fn start(victim: &str) -> AgentServer {
        // On both addresses that `localhost` may mean, as development servers do.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let page = format!(
            "<p id=said>dev server</p><script>(async () => {{ const got = [JSON.stringify(localStorage)];\
             for (const mode of ['cors', 'no-cors']) try {{ const answer = await fetch('{victim}/api/v1/caller', {{mode, \
             credentials: 'include'}}); got.push(await answer.text()); }} catch (error) {{ got.push('refused'); }}\
             said.textContent = 'dev server saw ' + got.join(' '); }})()</script>"
        );
        let (send, heads) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (send, page) = (send.clone(), page.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &page, &send));
            }
        });
        AgentServer { port, heads }
    }

    /// The cookies that came with the request for the page under this name.
    fn cookies(&self, host: &str) -> String {
        loop {
            let head = self.heads.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
            let header = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
            };
            let page =
                head.starts_with("GET / ") && header("host").is_some_and(|given| given.starts_with(host));
            if page {
                return header("cookie").unwrap_or_default();
            }
        }
    }
}

fn serve(stream: TcpStream, page: &str, heads: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(&stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let _ = heads.send(head);
    let length = page.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close"
    );
    let _ = (&stream).write_all(format!("{answer}\r\n\r\n{page}").as_bytes());
    let _ = reader.read(&mut [0]);
}

/// Every way in that a person has, as a line and a body.
const WAYS_IN: &[(&str, &str)] = &[
    ("GET /", ""),
    ("GET /docs", ""),
    ("GET /openapi.json", ""),
    ("GET /metrics", ""),
    ("GET /api/v1/caller", ""),
    ("GET /api/v1/tasks", ""),
    ("GET /api/v1/board", ""),
    ("GET /api/v1/events", ""),
    ("GET /api/v1/export", ""),
    ("GET /v1/stream/log", ""),
    ("GET /v1/stream/log?live=sse&offset=-1", ""),
    ("PUT /v1/stream/mine", "x"),
    ("POST /api/v1/tasks", r#"{"title":"forged"}"#),
    ("POST /api/v1/tokens", r#"{"name":"evil","role":"person"}"#),
    ("POST /api/v1/links", ""),
    ("POST /api/v1/fleet/stop", "{}"),
    ("POST /mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
    ("POST /session", r#"{"code":"0000"}"#),
    ("DELETE /session", ""),
];

#[test]
fn a_browser_that_opens_an_agents_page_gives_it_nothing_that_lets_it_in() {
    let here = Repository::new();
    here.ok(&["task", "add", "seen by a person"]);
    let server = Server::start(&here, &[]);
    let port = server.host().rsplit(':').next().unwrap().to_owned();
    let mut browser = Chromium::start();
    let asked = "fetch('/api/v1/tasks', {headers: {'x-adj-page-key': localStorage.getItem('adj-page-key')}}) \
        .then(async answer => answer.status + await answer.text())";
    let agent = AgentServer::start(&server.url());
    for host in ["127.0.0.1", "localhost"] {
        let own = format!("http://{host}:{port}");
        // Before it is signed in it is told how to be.
        let tab = browser.open(&format!("{own}/docs"));
        assert!(browser.until(&tab, "You are not signed in").contains("adj url"));
        let link = here.ok(&["url"]).trim().replace("127.0.0.1", host);
        browser.go(&tab, &link);
        let home = browser.until(&tab, "Live");
        assert!(home.starts_with(&format!("{own}/board\n")) && !home.contains("not signed in"), "{home}");
        assert!(browser.value(&tab, asked).as_str().unwrap().starts_with("200"));

        // The person opens what the agent serves, under this name and another.
        for name in [host, "agent.localhost"] {
            browser.go(&tab, &format!("http://{name}:{}/", agent.port));
            let saw = browser.until(&tab, "dev server saw");
            // Of what it asked without CORS it sees an empty text, whatever came.
            assert!(saw.trim_end().ends_with("dev server saw {} refused"), "{saw}");
        }
        // A cookie knows no port: the agent has it, and tries it with all that it can think of.
        let cookies = agent.cookies(host);
        assert!(cookies.contains(&format!("adj-{port}=")), "the browser sent no cookie: {cookies}");
        let secret = cookies.split_once('=').unwrap().1.to_owned();
        assert!(!agent.cookies("agent.localhost").contains(&secret), "it is another host");
        for (line, body) in WAYS_IN {
            let mut keys = vec![None, Some(""), Some("null"), Some(secret.as_str())];
            keys.truncate(if body.is_empty() { 4 } else { 2 });
            for key in keys {
                let key = key.map(|key| format!("\nX-Adj-Page-Key: {key}")).unwrap_or_default();
                let head = format!(
                    "{line} HTTP/1.1\nHost: {host}:{port}\nCookie: {cookies}{key}\nOrigin: {own}\n\
                     Sec-Fetch-Site: same-origin\nX-Adj-User: ann\nAccept: application/json, text/event-stream\n\
                     Content-Type: application/json\nContent-Length: {}",
                    body.len()
                );
                let answer = server.raw(&head, body.as_bytes());
                assert_eq!(answer.status, 401, "{line} with{key}: {}", answer.text);
                assert!(!answer.text.contains("seen by a person"), "{line}: {}", answer.text);
            }
        }

        // The person notices nothing of it: not in this tab, not after a reload, not in another.
        browser.go(&tab, &format!("{own}/"));
        browser.until(&tab, "Live");
        browser.send(Some(&tab), "Page.reload", json!({})).unwrap();
        browser.until(&tab, "Live");
        assert!(browser.value(&tab, asked).as_str().unwrap().contains("seen by a person"));
        let second = browser.open(&format!("{own}/docs#listTasks"));
        assert!(browser.until(&second, "Every path starts with").contains("/tasks"));
        browser.go(&second, &format!("{own}/api/v1/tasks"));
        browser.until(&second, "seen by a person");
    }
    assert_eq!(here.json(&["task", "ls", "--all"]).as_array().unwrap().len(), 1);
    assert_eq!(here.json(&["token", "ls"]).as_array().unwrap().len(), 0);
}
