//! The owner's socket under agents that use it up.

use super::background::wait;
use super::{Repository, SETTINGS};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the owner may have open at once: the usual limit is a thousand, and an agent has as many processes as it likes.
const DESCRIPTORS: u32 = 256;

/// What one process holds. It has the same limit, and needs a few for itself.
const HELD_MAX: usize = 100;

/// Played by this very program: `HOLD` is a socket, to which as many connections are opened as there can be.
#[test]
fn holds_connections_where_it_is_asked_to() {
    let Some(socket) = std::env::var_os("HOLD") else { return };
    // Of a request, the first byte: it is nobody's yet. Or all of it, with a token that is known: nobody else's turn ends it.
    let token = std::env::var("ADJ_TOKEN").expect("an agent has one");
    let whole =
        format!("GET /api/v1/fleet HTTP/1.1\r\nHost: adjutant\r\nAuthorization: Bearer {token}\r\n\r\n");
    let mut held = Vec::new();
    let mut has_said = false;
    let until = Instant::now() + Duration::from_secs(60);
    while !Path::new("enough").exists() && Instant::now() < until {
        if held.len() < HELD_MAX {
            match UnixStream::connect(&socket) {
                Ok(mut stream) => {
                    let is_known = held.len() % 2 == 0;
                    let _ = stream.write_all(if is_known { whole.as_bytes() } else { b"G" });
                    held.push(stream);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
            continue;
        }
        if !std::mem::replace(&mut has_said, true) {
            std::fs::write(format!("held-{}", std::process::id()), "").expect("the tree is ours");
        }
        // Those that were closed make room for more. A pause, or it is the machine that is used up.
        std::thread::sleep(Duration::from_millis(50));
        held.retain_mut(|stream| {
            let _ = stream.set_nonblocking(true);
            !matches!(stream.read(&mut [0; 4096]), Ok(0))
        });
    }
}

fn scenario() -> String {
    let program = std::env::current_exe().expect("this program has a path");
    // A process of each kind: one that is there, and ones whose parents are gone.
    let hold = format!(
        "hold() {{ HOLD=${{ADJ_SERVER#unix:}} {} --exact fleet::socket::holds_connections_where_it_is_asked_to >/dev/null 2>&1; }}; \
         for i in 1 2; do (hold & ) ; (setsid sh -c : ; hold) & done; while [ ! -e enough ]; do sleep 0.1; done; rm -f held-* enough",
        program.display()
    );
    format!(
        "[[scenario]]\ntask = \"hog\"\n[[scenario.step]]\ndo = [ {{ run = '''{hold}''', quiet = true }}, {{ write = \"hog.txt\", text = \"x\\n\" }}, {{ done = true }} ]\n\
         [[scenario]]\n[[scenario.step]]\ndo = [ {{ write = \"{{task}}.txt\", text = \"x\\n\" }}, {{ commit = \"Do it\" }}, {{ done = true }} ]\n"
    )
}

/// `adj` with a hard limit on what it may have open.
fn limited(repository: &Repository, line: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_adj")]).args(line.split(' '));
    command.current_dir(repository.dir()).env_remove("ADJ_SERVER").env_remove("ADJ_TOKEN");
    command.env("ADJ_USER", "tester").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Four processes of an agent, some of them left by their parents, open connections all the time and say nothing.
#[test]
fn an_agent_that_holds_every_connection_holds_up_nobody_else() {
    let repository = Repository::new("socket-hog", &scenario(), &["hog"]);
    repository.write("adjutant.toml", &SETTINGS.replace("workers = 2", "workers = 3"));
    repository.commit("More workers");
    let mut running = limited(&repository, "run").spawn().expect("adj runs");
    wait("connections are held", || {
        let tree = repository.standing().into_iter().find(|name| name.ends_with("-hog"))?;
        let entries = std::fs::read_dir(repository.tree(&tree)).ok()?.flatten();
        (entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("held-")).count() >= 4)
            .then_some(())
    });
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", running.id())).expect("it runs").count();
    for number in 1..=4 {
        let begun = Instant::now();
        repository.ok("board");
        repository.ok(&format!("task add Good --id good-{number}"));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "both took {took:?}");
        let open = descriptors();
        assert!(open < DESCRIPTORS as usize * 3 / 4, "{open} of {DESCRIPTORS} are in use");
    }
    for number in 1..=4 {
        repository.wait_task(&format!("good-{number}"), "DONE");
    }
    let tree = repository.standing().into_iter().find(|name| name.ends_with("-hog")).expect("it is at work");
    std::fs::write(repository.tree(&tree).join("enough"), "").expect("the tree is there");
    repository.wait_task("hog", "DONE");
    repository.ok("stop");
    assert!(running.wait().expect("it ends").success());
    repository.check(&["hog"], "sh tests.sh");
}

/// Whoever connects and says nothing, or not enough, is not waited for; nor is one that has asked and says no more.
#[test]
fn a_connection_without_a_request_is_closed_after_a_few_seconds() {
    let repository = Repository::new("socket-silent", &scenario(), &[]);
    let running = repository.start("run");
    let connect = |said: &[u8]| {
        let mut stream = UnixStream::connect(repository.state("socket/adj.sock")).expect("the fleet runs");
        stream.write_all(said).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        stream
    };
    let asked = b"GET /api/v1/fleet HTTP/1.1\r\nHost: adjutant\r\nAuthorization: Bearer x\r\n\r\n";
    let begun = Instant::now();
    for mut stream in [&b""[..], b"GET / HTT", b"GET / HTTP/1.1\r\nHost: ", asked].map(connect) {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it is closed, not kept");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    running.stop();
}
