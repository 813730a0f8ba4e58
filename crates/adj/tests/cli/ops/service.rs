//! The server as a unit: what is written for systemd, what systemd is told, and what a restart leaves alone.

use super::{Repository, SCENARIO, Server, serve, wait};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

/// `adj service …` of a user whose systemctl writes down what it is asked, and answers what `said` says.
struct User<'h> {
    here: &'h Repository,
    home: tempfile::TempDir,
}

impl<'h> User<'h> {
    fn of(here: &'h Repository, systemctl: &str) -> User<'h> {
        let user = User { here, home: tempfile::tempdir().unwrap() };
        user.program("systemctl", systemctl);
        user
    }

    fn program(&self, name: &str, script: &str) {
        let program = self.home.path().join("bin").join(name);
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        let log = self.home.path().join("asked");
        let text = format!("#!/bin/sh\necho \"$@\" >> {}\n{script}\n", log.display());
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.here.command(line);
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.home.path().join("bin").display()));
        command
    }

    fn adj(&self, line: &str) -> crate::Ran {
        self.command(line).output().unwrap().into()
    }

    fn unit(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("config/systemd/user").join(name)
    }

    fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.path().join("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_unit_is_written_enabled_shown_and_removed() {
    let here = Repository::new("unit", SCENARIO, &[]);
    let user = User::of(&here, "echo active");
    let installed = user.adj("service install");
    assert_eq!(installed.code, 0, "{}", installed.stderr);
    let reload = "--user daemon-reload";
    let start = ["--user enable adjutant.service", "--user restart adjutant.service"];
    assert_eq!(user.asked(), [reload, start[0], start[1]]);
    let written = std::fs::read_to_string(user.unit("adjutant.service")).unwrap();
    assert_eq!(user.adj("service install --dry-run").stdout, written, "the same is printed");
    let shown = written
        .replace(env!("CARGO_BIN_EXE_adj"), "/usr/bin/adj")
        .replace(user.home.path().to_str().unwrap(), "/home/ann");
    crate::snapshot("service-unit.txt", &shown);
    let status: serde_json::Value = serde_json::from_str(&user.adj("service status --json").stdout).unwrap();
    assert_eq!((&status["installed"], &status["active"]), (&json!(true), &json!("active")));
    assert!(user.adj("service status").stdout.starts_with("adjutant.service  active"));
    assert_eq!(user.adj("service uninstall").code, 0);
    assert_eq!(user.asked()[user.asked().len() - 2..], ["--user disable --now adjutant.service", reload]);
    assert!(!user.unit("adjutant.service").exists());
    assert_eq!(user.adj("service uninstall").code, 4);
    assert_eq!(user.adj("service status").code, 4);
}

#[test]
fn a_unit_can_be_of_one_project_or_of_the_system_and_takes_options_of_the_server() {
    let here = Repository::new("unit-one", SCENARIO, &[]);
    let user = User::of(&here, "");
    let root = here.dir().display().to_string();
    let one = user.adj(&format!("service install --dry-run --project {root} -- --run --port 4700"));
    let start = format!(" serve --project {root} --keep-agents --run --port 4700\n");
    assert!(one.stdout.contains(&start), "{}{}", one.stdout, one.stderr);
    let system = |user_name: &str| -> crate::Ran {
        let mut command = user.command("service install --dry-run --system");
        command.env_remove("SUDO_USER").env("USER", user_name).output().unwrap().into()
    };
    let text = system("ann").stdout;
    assert!(text.contains("\nUser=ann\n") && text.contains("\nWantedBy=multi-user.target\n"), "{text}");
    assert!(system("root").stderr.contains("would run as root"));
    for (wrong, said) in [
        ("--detach", "--detach is not for a server in a unit"),
        ("--no-such-option", "unexpected argument '--no-such-option'"),
        ("--port x", "invalid value 'x' for '--port <PORT>'"),
    ] {
        let refused = user.adj(&format!("service install -- {wrong}"));
        assert!(refused.code == 2 && refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert!(user.asked().is_empty() && !user.unit("adjutant.service").exists());
}

#[test]
fn the_lines_of_a_unit_are_asked_of_the_journal() {
    let here = Repository::new("unit-logs", SCENARIO, &[]);
    let user = User::of(&here, "");
    let missing = user.command("service logs").env("PATH", user.home.path().join("bin")).output().unwrap();
    let missing = crate::Ran::from(missing);
    assert!(missing.code == 1 && missing.stderr.contains("journalctl was not found"), "{}", missing.stderr);
    user.program("journalctl", "echo a line of the server");
    assert_eq!(user.adj("service logs").stdout, "a line of the server\n");
    let system = user.command("service logs --system -f --lines 7").env("USER", "ann").output().unwrap();
    assert_eq!(crate::Ran::from(system).code, 0);
    let unit = "--unit adjutant.service --no-pager --output cat --lines";
    assert_eq!(user.asked(), [format!("--user {unit} 100"), format!("{unit} 7 --follow")]);
    user.program("journalctl", "exit 1");
    assert_eq!(user.adj("service logs").code, 1);
}

#[test]
fn where_systemd_does_not_answer_it_is_said_what_to_run() {
    let here = Repository::new("unit-none", SCENARIO, &[]);
    let user = User::of(&here, "echo 'Failed to connect to bus' >&2; exit 1");
    let installed = user.adj("service install");
    assert_eq!(installed.code, 0, "{}", installed.stderr);
    assert!(user.unit("adjutant.service").exists());
    for said in ["Failed to connect to bus", "systemctl --user daemon-reload", "restart adjutant.service"] {
        assert!(installed.stderr.contains(said), "{}", installed.stderr);
    }
}

/// A socket like systemd's, and the server that knows of it.
fn notified(here: &Repository, options: &str) -> (UnixDatagram, Server) {
    let path = here.dir().join(".git/notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut command = here.command(&format!("serve --port 0 --json {options}"));
    command.env("NOTIFY_SOCKET", &path).stderr(Stdio::null());
    let server = Server::begin(command, &here.state("token"), None);
    (socket, server)
}

fn heard(socket: &UnixDatagram) -> String {
    let mut text = [0; 256];
    let length = socket.recv(&mut text).unwrap();
    String::from_utf8(text[..length].to_vec()).unwrap()
}

fn signal(name: &str, server: &Server) {
    assert!(Command::new("kill").args([name, &server.id().to_string()]).status().unwrap().success());
}

/// A request for which a git is at work is given up when the server stops: it may be asked again.
#[test]
fn a_stop_waits_for_no_request_that_a_git_takes_long_to_answer() {
    let here = Repository::new("slow-read", SCENARIO, &["o-1"]);
    here.set(&[("review = \"auto\"", "review = \"human\"")]);
    assert_eq!(here.adj("run --until-idle").code, 1, "o-1 waits for its review");
    let user = User::of(&here, "");
    let begun = user.home.path().join("begun");
    let hangs = format!(
        "case \" $* \" in *' diff '*) touch '{}'; exec sleep 60;; esac\nexec \"$(PATH=/usr/local/bin:/usr/bin:/bin command -v git)\" \"$@\"",
        begun.display()
    );
    user.program("git", &hangs);
    let mut command = user.command("serve --port 0 --json");
    command.stderr(Stdio::null());
    let mut server = Server::begin(command, &here.state("token"), None);
    let mut asking = TcpStream::connect(server.host()).unwrap();
    let head = format!(
        "GET /api/v1/tasks/o-1/diff HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        server.host(),
        server.token()
    );
    asking.write_all(head.as_bytes()).unwrap();
    wait("a git at work", || begun.exists().then_some(()));
    let since = std::time::Instant::now();
    server.stop();
    let took = since.elapsed();
    let answer = crate::server::Answer::read(asking);
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(took < std::time::Duration::from_secs(1), "it took {took:?}");
}

#[test]
fn systemd_is_told_when_it_is_ready_and_a_request_under_way_is_answered_before_the_end() {
    let here = Repository::new("drain", SCENARIO, &[]);
    let (socket, server) = notified(&here, "");
    assert_eq!(heard(&socket), "READY=1");
    let body = r#"{"title":"late"}"#;
    let token = std::fs::read_to_string(here.state("token")).unwrap();
    let head = format!(
        "POST /api/v1/tasks HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.host(),
        body.len()
    );
    let mut asking = TcpStream::connect(server.host()).unwrap();
    asking.write_all(head.as_bytes()).unwrap();
    // It says so when it has read the head and waits for the body.
    let mut begun = [0; 25];
    asking.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100 Continue\r\n\r\n");
    signal("-TERM", &server);
    assert_eq!(heard(&socket), "STOPPING=1");
    asking.write_all(body.as_bytes()).unwrap();
    let answer = crate::server::Answer::read(asking);
    assert_eq!(answer.status, 201, "{}", answer.text);
    drop(server);
    assert!(here.ok("task ls").contains("late"));
}

/// An agent that writes down its process and works until it is let go.
const HOLDS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'echo $$ >> "$TMPDIR/at-work"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { write = "{task}.txt", text = "done\n" }, { commit = "Write it" }, { done = true },
]
"#;

/// What systemd does with `KillMode=process`: only the server's own process is told to end, kindly or not.
fn restarted(name: &str, ends: &str) {
    let here = Repository::new(name, HOLDS, &["r-1"]);
    let at_work = here.temp("r-1").join("at-work");
    let read = || std::fs::read_to_string(&at_work).ok().filter(|text| text.ends_with('\n'));
    let server = serve(&here, "--run --keep-agents");
    let agent = wait("an agent at work", read);
    signal(ends, &server);
    drop(server);
    let lives = || Path::new("/proc").join(agent.trim()).exists();
    assert!(lives(), "the agent outlives the server");
    let next = serve(&here, "--run --keep-agents");
    assert!(lives());
    std::fs::write(here.temp("r-1").join("go"), "").unwrap();
    next.until_moved("r-1", "DONE");
    assert_eq!(read(), Some(agent), "it was the same process all along");
}

/// An agent that listens at a port of its own, writes down what it is sent, and answers as if it were somebody.
const LISTENS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = """perl -MIO::Socket::INET -e '
      $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ENV{ADJ_PORT_BASE}, Listen => 5) or die;
      open(F, ">", "$ENV{TMPDIR}/port"); print F "$ENV{ADJ_PORT_BASE}\\n"; close(F);
      while ($client = $listener->accept) {
        sysread($client, $said, 65536);
        open(F, ">>", "$ENV{TMPDIR}/heard"); print F $said; close(F);
        print $client "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}"; close($client);
      }'; true""" },
  { write = "{task}.txt", text = "done\n" }, { commit = "Write it" }, { done = true },
]
"#;

#[test]
fn an_agent_at_the_port_of_the_server_is_named_and_is_sent_no_token() {
    let here = Repository::new("port-taken", LISTENS, &["r-1"]);
    let server = serve(&here, "--run --keep-agents");
    let port = wait("an agent that listens", || {
        std::fs::read_to_string(here.temp("r-1").join("port")).ok().filter(|text| text.ends_with('\n'))
    });
    let port = port.trim();
    signal("-TERM", &server);
    drop(server);
    let token = std::fs::read_to_string(here.state("token")).unwrap();
    let mut command = here.command("board");
    command.env("ADJ_SERVER", format!("http://127.0.0.1:{port}")).env("ADJ_TOKEN", &token);
    let asked: crate::Ran = command.output().unwrap().into();
    let said = ["is not the server", "started by an agent or a test of r-1", "your token was not sent"];
    assert!(asked.code == 3 && said.iter().all(|said| asked.stderr.contains(said)), "{}", asked.stderr);
    let heard = std::fs::read_to_string(here.temp("r-1").join("heard")).unwrap();
    assert!(heard.starts_with("GET /proof?") && !heard.contains(&token), "{heard}");
    let taken = here.adj(&format!("serve --port {port}"));
    assert!(
        taken.code == 5 && taken.stderr.contains("started by an agent or a test of r-1"),
        "{}",
        taken.stderr
    );
    let pid = taken.stderr.split("`kill ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    assert!(taken.stderr.contains(&format!("process {pid} (`perl")), "{}", taken.stderr);
    // As the hint says.
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    let next = serve(&here, "--run --keep-agents");
    next.until_moved("r-1", "DONE");
}

#[test]
fn a_restart_of_the_server_ends_no_agent() {
    restarted("restart-term", "-TERM");
}

#[test]
fn a_server_that_is_killed_ends_no_agent() {
    restarted("restart-kill", "-KILL");
}
