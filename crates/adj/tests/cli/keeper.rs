//! Real programs under a real keeper, `adj internal keep`: what is promised when servers, keepers and programs die.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process::keeper::client::{self, Connection, Ending, Found, News};
use process::keeper::{Entry, Exit, KeeperError, Limits, Reason, Spec, Stdin, Tail};

/// Nothing here takes as long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for a kept process and its program; what still runs is ended with it.
pub struct Kept {
    pub root: PathBuf,
    effect: String,
}

impl Kept {
    pub fn new() -> Kept {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let effect = format!("e-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(format!("adj-kept-{effect}"));
        std::fs::create_dir_all(root.join("tree")).unwrap();
        Kept { root: root.canonicalize().unwrap(), effect }
    }

    /// Where the keeper has its files: longer than the path of a socket may be.
    pub fn dir(&self) -> PathBuf {
        self.root.join("x".repeat(120)).join("steps").join(&self.effect)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join("tree").join(name)
    }

    /// A shell script.
    pub fn script(&self, script: &str) -> Spec {
        let argv = ["sh", "-c", script].map(String::from).to_vec();
        let mut spec = Spec::new(&self.effect, argv, self.root.join("tree"));
        spec.env.insert("PATH".into(), std::env::var("PATH").unwrap());
        spec
    }

    pub fn start(&self, spec: &Spec) -> Found {
        client::start(Path::new(env!("CARGO_BIN_EXE_adj")), &self.dir(), spec).unwrap()
    }

    fn keeper(&self) -> i32 {
        match client::look(&self.dir()).unwrap() {
            Found::Alive(keeper) => keeper.pid,
            other => panic!("no keeper is alive: {other:?}"),
        }
    }

    pub fn out(&self) -> Vec<u8> {
        std::fs::read(client::out(&self.dir())).unwrap()
    }

    pub fn err(&self) -> Vec<u8> {
        std::fs::read(client::err(&self.dir())).unwrap()
    }

    /// Runs it to its end.
    pub fn run(&self, spec: &Spec) -> Exit {
        self.start(spec);
        on_tokio(async { exit(&mut Connection::connect(&self.dir()).await.unwrap()).await })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Ok(Found::Alive(keeper)) = client::look(&self.dir()) {
            let _ = kill(Pid::from_raw(keeper.pid), Signal::SIGKILL);
        }
        let _ = client::sweep_strays(&self.effect);
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("it does not hang") })
}

/// Waits for something that no one tells about.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return found,
            None if Instant::now() > until => panic!("{what} did not happen"),
            None => std::thread::yield_now(),
        }
    }
}

async fn exit(connection: &mut Connection) -> Exit {
    loop {
        match connection.next().await {
            Some(News::Exit(exit)) => return exit,
            Some(News::Lost) | None => panic!("the keeper is lost"),
            Some(_) => {}
        }
    }
}

/// Waits until the program has written so many bytes.
async fn grown(connection: &mut Connection, bytes: u64) {
    loop {
        match connection.next().await.unwrap() {
            News::Grown { out, .. } if out >= bytes => return,
            News::Exit(exit) if exit.out_bytes >= bytes => return,
            News::Exit(_) | News::Lost => panic!("it ended before it wrote {bytes} bytes"),
            _ => {}
        }
    }
}

fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The pid that a program wrote into a file, in one line.
fn pid_in(path: &Path) -> i32 {
    eventually("a pid is written", || std::fs::read_to_string(path).ok()?.strip_suffix('\n')?.parse().ok())
}

#[test]
fn output_errors_and_code_are_those_of_the_program() {
    let kept = Kept::new();
    let exit = kept.run(&kept.script("echo out; echo err >&2; exit 7"));
    assert_eq!((exit.code, exit.signal, &exit.reason), (Some(7), None, &Reason::Exited));
    assert_eq!((kept.out(), kept.err()), (b"out\n".to_vec(), b"err\n".to_vec()));
    assert_eq!((exit.out_bytes, exit.err_bytes, exit.succeeded()), (4, 4, false));
    assert!(exit.started_at <= exit.ended_at);
    assert_eq!(client::look(&kept.dir()).unwrap(), Found::Over(exit));
}

#[test]
fn a_signal_that_ends_the_program_is_told() {
    let kept = Kept::new();
    let exit = kept.run(&kept.script("kill -SEGV $$"));
    assert_eq!((exit.code, exit.signal, exit.reason), (None, Some(11), Reason::Exited));
    // One that has a number and no name.
    let kept = Kept::new();
    let exit = kept.run(&kept.script("kill -40 $$"));
    assert!(exit.code.is_none() && !exit.succeeded(), "{exit:?}");
}

#[test]
fn what_cannot_be_started_says_why() {
    let kept = Kept::new();
    let mut spec = kept.script("");
    spec.argv = vec!["no-such-program".into()];
    let exit = kept.run(&spec);
    let Reason::CouldNotStart(why) = &exit.reason else { panic!("{exit:?}") };
    assert!(why.contains("no-such-program") && why.contains("No such file"), "{why}");
    assert_eq!((exit.code, exit.signal), (None, None));

    let kept = Kept::new();
    let mut spec = kept.script("true");
    spec.cwd = kept.file("gone");
    let exit = kept.run(&spec);
    assert!(matches!(&exit.reason, Reason::CouldNotStart(why) if why.contains("gone")), "{exit:?}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_started() {
    let kept = Kept::new();
    let start = |spec: &Spec| client::start(Path::new(env!("CARGO_BIN_EXE_adj")), &kept.dir(), spec);
    let mut spec = kept.script("true");
    spec.effect = "a=b".into();
    assert!(matches!(start(&spec), Err(KeeperError::BadSpec(_))));
    let mut spec = kept.script("true");
    spec.cwd = "relative".into();
    assert!(matches!(start(&spec), Err(KeeperError::BadSpec(_))));
    assert_eq!(client::look(&kept.dir()).unwrap(), Found::Never);
    let no_adj = client::start(&kept.file("no-adj"), &kept.dir(), &kept.script("true"));
    assert!(matches!(no_adj, Err(KeeperError::Io { doing: "started", .. })), "{no_adj:?}");
    let not_adj = client::start(Path::new("/bin/false"), &kept.dir(), &kept.script("true"));
    assert!(matches!(not_adj, Err(KeeperError::NotStarted { .. })), "{not_adj:?}");
}

/// Only what is said is passed on, and the effect's id; no key stays on the disk.
#[test]
fn the_environment_is_exactly_what_was_said() {
    let kept = Kept::new();
    let mut spec = kept.script("");
    spec.argv = vec!["env".into()];
    spec.env.insert("KEY".into(), "a very secret key".into());
    assert!(kept.run(&spec).succeeded());
    let text = String::from_utf8(kept.out()).unwrap();
    let names: BTreeSet<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names, BTreeSet::from(["ADJ_EFFECT", "KEY", "PATH"]));
    assert!(text.contains("KEY=a very secret key") && text.contains(&format!("ADJ_EFFECT={}", kept.effect)));
    let stored = std::fs::read_to_string(kept.dir().join("spec.json")).unwrap();
    assert!(stored.contains("KEY") && !stored.contains("secret"), "{stored}");
}

/// A program has the three files that everyone has, and none that the keeper or whoever started it had open.
#[test]
fn a_program_inherits_no_open_files_and_no_blocked_signals() {
    let kept = Kept::new();
    let _open = File::open("/").unwrap();
    let script = "ls /proc/self/fd | tr '\\n' ' '; grep SigBlk /proc/self/status";
    assert!(kept.run(&kept.script(script)).succeeded());
    let said = String::from_utf8(kept.out()).unwrap();
    // The fourth is the listing itself.
    assert_eq!(said, "0 1 2 3 SigBlk:\t0000000000000000\n");
}

/// The server is killed, another comes: nothing is lost, nothing is doubled, and the program does not notice.
#[test]
fn output_survives_its_servers() {
    let kept = Kept::new();
    let mut spec = kept.script("n=0; while read -r _; do n=$((n+1)); echo line $n; done; echo end");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    let mut lines = Vec::new();
    let mut offset = 0;
    let mut read = |ended: bool| {
        let mut tail = Tail::open(&client::out(&kept.dir()), offset).unwrap();
        while let Some(line) = tail.next(ended).unwrap() {
            offset = line.end;
            lines.push(String::from_utf8(line.bytes).unwrap());
        }
    };
    for server in 0..5 {
        on_tokio(async {
            let mut connection = Connection::connect(&kept.dir()).await.unwrap();
            for n in 0..20 {
                connection.send(&format!("{server}-{n}"), "go\n").await.unwrap();
            }
            // It goes in the middle: some answers were read, some were not, some are not written yet.
            grown(&mut connection, server * 150 + 1).await;
            read(false);
        });
    }
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        connection.close_in().await.unwrap();
        assert!(exit(&mut connection).await.succeeded());
        read(true);
    });
    let wanted: Vec<String> = (1..=100).map(|n| format!("line {n}")).chain(["end".to_string()]).collect();
    assert_eq!(lines, wanted);
}

#[test]
fn starting_twice_starts_once() {
    let kept = Kept::new();
    let mut spec = kept.script("echo started >> ran; read -r _; echo over");
    spec.stdin = Stdin::Piped;
    let starts: Vec<Found> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| kept.start(&spec))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(starts.iter().all(|found| found == &starts[0] && matches!(found, Found::Alive(_))), "{starts:?}");
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        connection.send("1", "\n").await.unwrap();
        exit(&mut connection).await;
    });
    assert!(matches!(kept.start(&spec), Found::Over(_)));
    assert_eq!(std::fs::read_to_string(kept.file("ran")).unwrap(), "started\n");
}

#[test]
fn keepers_that_ended_are_collected() {
    let kept = Kept::new();
    let Found::Alive(keeper) = kept.start(&{
        let mut spec = kept.script("read -r _");
        spec.stdin = Stdin::Piped;
        spec
    }) else {
        panic!("it waits for its input")
    };
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        connection.close_in().await.unwrap();
        exit(&mut connection).await;
        assert_eq!(connection.next().await, None);
    });
    eventually("the keeper is collected", || {
        let _ = client::look(&kept.dir());
        (!Path::new(&format!("/proc/{}", keeper.pid)).exists()).then_some(())
    });
}

/// The child dies with its keeper; one that left the session is found by its environment.
#[test]
fn a_keeper_that_is_killed_leaves_nothing_that_cannot_be_found() {
    let kept = Kept::new();
    kept.start(&kept.script("setsid sh -c 'echo $$ > stray; sleep 1000' & echo $$ > main; sleep 1000"));
    let (main, stray) = (pid_in(&kept.file("main")), pid_in(&kept.file("stray")));
    let keeper = kept.keeper();
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        kill(Pid::from_raw(keeper), Signal::SIGKILL).unwrap();
        loop {
            match connection.next().await {
                Some(News::Lost) => break,
                Some(News::Grown { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(connection.next().await, None);
    });
    assert_eq!(client::look(&kept.dir()).unwrap(), Found::Dead);
    eventually("the program dies", || (!runs(main)).then_some(()));
    assert!(runs(stray));
    let ended = client::sweep_strays(&kept.effect).unwrap();
    assert!(ended >= 2 && !runs(stray), "{ended} ended");
    assert_eq!(client::sweep_strays(&kept.effect).unwrap(), 0);
    // What ran there may have done anything: it is not started again in silence.
    let again = client::start(Path::new(env!("CARGO_BIN_EXE_adj")), &kept.dir(), &kept.script("true"));
    assert!(matches!(again, Err(KeeperError::Dead { .. })), "{again:?}");
}

#[test]
fn a_daemon_is_ended_with_its_program() {
    let kept = Kept::new();
    let daemon = "setsid sh -c '(trap \"\" TERM INT HUP; echo $$ > daemon; exec sleep 1000) & ' & ";
    let exit = kept.run(&kept.script(&format!("{daemon} while ! test -s daemon; do :; done; echo done")));
    assert!(exit.succeeded(), "{exit:?}");
    assert_eq!(kept.out(), b"done\n");
    assert!(!runs(pid_in(&kept.file("daemon"))));
    assert_eq!(client::sweep_strays(&kept.effect).unwrap(), 0);
}

/// What was still to be written when the program ended is waited for, for a moment.
#[test]
fn the_last_words_of_a_child_are_kept() {
    let kept = Kept::new();
    assert!(kept.run(&kept.script("(echo later) & exit 0")).succeeded());
    assert_eq!(kept.out(), b"later\n");
}

#[test]
fn a_program_that_takes_too_long_is_ended() {
    let kept = Kept::new();
    let mut spec = kept.script("trap '' TERM; echo started; while :; do sleep 0.1; done");
    spec.time_limit_seconds = 0.3;
    let exit = kept.run(&spec);
    assert_eq!((exit.reason, exit.signal), (Reason::TimedOut, Some(9)));
    assert_eq!(client::sweep_strays(&kept.effect).unwrap(), 0);
}

#[test]
fn ending_asks_before_it_forces() {
    let end = |script: &str, ending: Ending| {
        let kept = Kept::new();
        kept.start(&kept.script(script));
        let exit = on_tokio(async {
            let mut connection = Connection::connect(&kept.dir()).await.unwrap();
            grown(&mut connection, 6).await;
            connection.end(ending).await.unwrap();
            exit(&mut connection).await
        });
        assert_eq!(exit.reason, Reason::Ended);
        assert_eq!(client::sweep_strays(&kept.effect).unwrap(), 0);
        (exit, String::from_utf8(kept.out()).unwrap())
    };
    let wait = "echo ready; while :; do sleep 0.02; done";
    let short = Ending::gentle(Duration::from_millis(300));
    let (exit, said) = end(&format!("trap 'echo INT; exit 5' INT; {wait}"), Ending::gentle(PATIENCE));
    assert_eq!((exit.code, said.as_str()), (Some(5), "ready\nINT\n"));
    let (exit, said) = end(
        &format!("trap 'echo INT' INT; trap 'echo TERM; exit 6' TERM; {wait}"),
        Ending { terminate: PATIENCE, ..short },
    );
    assert_eq!((exit.code, said.as_str()), (Some(6), "ready\nINT\nTERM\n"));
    let (exit, _) = end(&format!("trap '' INT TERM; {wait}"), short);
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    let (exit, said) = end(&format!("trap 'echo INT' INT; trap 'echo TERM' TERM; {wait}"), Ending::NOW);
    assert_eq!((exit.signal, said.contains("INT")), (Some(9), false));
}

#[test]
fn an_interrupt_ends_nothing_by_itself() {
    let kept = Kept::new();
    let mut spec = kept.script("trap 'echo heard' INT; echo ready; while ! read -r x; do :; done; echo $x");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        grown(&mut connection, 6).await;
        connection.interrupt().await.unwrap();
        connection.send("1", "bye\n").await.unwrap();
        let exit = exit(&mut connection).await;
        assert_eq!((exit.code, exit.reason), (Some(0), Reason::Exited));
    });
    assert_eq!(kept.out(), b"ready\nheard\nbye\n");
}

/// A shell starts what it puts into the background with interrupts ignored, `nohup` with hang-ups.
#[test]
fn signals_that_were_ignored_before_are_heard_again() {
    let kept = Kept::new();
    let deaf = kept.file("deaf");
    let script = format!("#!/bin/sh\ntrap '' INT QUIT HUP CHLD\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_adj"));
    std::fs::write(&deaf, script).unwrap();
    std::fs::set_permissions(&deaf, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    client::start(&deaf, &kept.dir(), &kept.script("grep SigIgn /proc/self/status")).unwrap();
    let exit = on_tokio(async { exit(&mut Connection::connect(&kept.dir()).await.unwrap()).await });
    assert_eq!((exit.code, exit.reason), (Some(0), Reason::Exited));
    let out = String::from_utf8(kept.out()).unwrap();
    let ignored = u64::from_str_radix(out.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    // From 32 on they are the C library's own.
    assert_eq!(ignored & 0x7fff_ffff, 0, "{out}");
}

/// It makes processes faster than they could be killed one by one, each in a session of its own.
#[test]
fn a_program_that_only_makes_others_is_ended_too() {
    let kept = Kept::new();
    let mut spec = kept.script(
        "make() { while :; do (setsid sleep 0.2 &); done; }; for n in 1 2 3; do make & done; echo ready; wait",
    );
    spec.time_limit_seconds = 0.5;
    let exit = kept.run(&spec);
    assert_eq!(exit.reason, Reason::TimedOut);
    assert_eq!(client::sweep_strays(&kept.effect).unwrap(), 0);
}

#[test]
fn without_a_server_the_program_is_ended() {
    let kept = Kept::new();
    let mut spec = kept.script("sleep 1000");
    spec.alone_limit_seconds = 0.2;
    kept.start(&spec);
    let exit = eventually("it is over", || match client::look(&kept.dir()).unwrap() {
        Found::Over(exit) => Some(exit),
        _ => None,
    });
    assert_eq!((exit.reason, exit.signal), (Reason::Alone, Some(15)));
}

/// Someone who only listens is no server.
#[test]
fn a_reader_hears_everything_and_may_do_nothing() {
    let kept = Kept::new();
    let mut spec = kept.script("echo one; read -r x; echo two $x");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    on_tokio(async {
        let mut server = Connection::connect(&kept.dir()).await.unwrap();
        let mut reader = Connection::watch(&kept.dir()).await.unwrap();
        grown(&mut reader, 4).await;
        reader.send("1", "from the reader\n").await.unwrap();
        server.send("1", "from the server\n").await.unwrap();
        let exits = (exit(&mut server).await, exit(&mut reader).await);
        assert_eq!(exits.0, exits.1);
    });
    assert_eq!(kept.out(), b"one\ntwo from the server\n");

    let kept = Kept::new();
    let mut spec = kept.script("sleep 1000");
    spec.alone_limit_seconds = 0.2;
    kept.start(&spec);
    let exit = on_tokio(async { exit(&mut Connection::watch(&kept.dir()).await.unwrap()).await });
    assert_eq!(exit.reason, Reason::Alone);
}

/// The program can reach the socket, but not the key: it cannot answer its own questions.
#[test]
fn without_the_key_nothing_is_heard_and_nothing_obeyed() {
    use std::io::{Read, Write};
    let kept = Kept::new();
    let mut spec = kept.script("read -r x; echo $x");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    let dir = File::open(kept.dir()).unwrap();
    let path = format!("/proc/self/fd/{}/sock", std::os::fd::AsRawFd::as_raw_fd(&dir));
    for greeting in [
        "{\"in\":{\"id\":\"1\",\"text\":\"yes\\n\"}}\n".to_string(),
        format!(
            "{{\"key\":\"{}\",\"as\":\"server\"}}\n{{\"end\":{{\"grace_seconds\":0}}}}\n",
            "0".repeat(64)
        ),
        "x".repeat(5000),
        "\n\n\0\n".to_string(),
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let _ = stream.write_all(greeting.as_bytes());
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert_eq!(heard, b"", "after {greeting:?}");
    }
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        connection.send("1", "no\n").await.unwrap();
        assert!(exit(&mut connection).await.succeeded());
    });
    assert_eq!(kept.out(), b"no\n");
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept.dir()), 0o700);
    for file in std::fs::read_dir(kept.dir()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[test]
fn input_is_journaled_and_the_same_id_is_passed_on_once() {
    let kept = Kept::new();
    // It lives on after its input is closed, until the late one was refused.
    let go = kept.dir().join("go");
    let mut spec = kept.script(&format!("cat; until [ -e '{}' ]; do sleep 0.02; done", go.display()));
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    on_tokio(async {
        let mut first = Connection::connect(&kept.dir()).await.unwrap();
        first.send("a", "eins\n").await.unwrap();
        first.send("a", "eins\n").await.unwrap();
        first.send("b", "zwei \u{1F980}\n").await.unwrap();
        grown(&mut first, 15).await;
        drop(first);
        // The next server does not know what was taken.
        let mut second = Connection::connect(&kept.dir()).await.unwrap();
        for (id, text) in [("a", "eins\n"), ("b", "zwei\n"), ("c", "drei\n")] {
            second.send(id, text).await.unwrap();
        }
        second.close_in().await.unwrap();
        second.send("d", "late\n").await.unwrap();
        let mut taken = Vec::new();
        loop {
            match second.next().await.unwrap() {
                News::Taken(id) => taken.push(id),
                News::Refused { id, why } => {
                    assert_eq!((id, why), ("d".into(), "the program's input is closed".into()));
                    std::fs::write(&go, "").unwrap();
                }
                News::Exit(exit) => break assert!(exit.succeeded()),
                _ => {}
            }
        }
        assert_eq!(taken, ["a", "b", "c"]);
    });
    assert_eq!(String::from_utf8(kept.out()).unwrap(), "eins\nzwei \u{1F980}\ndrei\n");
    let ids: Vec<String> = client::journal(&kept.dir()).unwrap().into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
}

/// Questions that a server answered are left alone; the others are denied, once.
#[test]
fn alone_it_denies_what_nobody_answered() {
    let kept = Kept::new();
    let mut spec =
        kept.script("read -r x; for n in one two three; do echo ask $n; read -r x; echo got $x; done");
    spec.stdin = Stdin::Piped;
    spec.protocol = Some("lines".into());
    spec.alone_grace_seconds = 0.1;
    kept.start(&spec);
    on_tokio(async {
        let mut server = Connection::connect(&kept.dir()).await.unwrap();
        server.send("go", "go\n").await.unwrap();
        grown(&mut server, 8).await;
        server.answer("1", "allow one\n", 0).await.unwrap();
        grown(&mut server, 30).await;
    });
    let exit = eventually("it is over", || match client::look(&kept.dir()).unwrap() {
        Found::Over(exit) => Some(exit),
        _ => None,
    });
    assert!(exit.succeeded(), "{exit:?}");
    let said = String::from_utf8(kept.out()).unwrap();
    assert_eq!(said, "ask one\ngot allow one\nask two\ngot deny two\nask three\ngot deny three\n");
    let journal = client::journal(&kept.dir()).unwrap();
    let answers: Vec<(&str, Option<u64>)> =
        journal.iter().map(|e: &Entry| (e.text.as_str(), e.answers)).collect();
    let at = |line: &str| Some(said.find(line).unwrap() as u64);
    assert_eq!(
        answers,
        [
            ("go\n", None),
            ("allow one\n", at("ask one")),
            ("deny two\n", at("ask two")),
            ("deny three\n", at("ask three"))
        ]
    );
}

/// A call with a whole file in it is longer than what is looked at.
#[test]
fn alone_it_denies_a_question_of_any_length() {
    let kept = Kept::new();
    let asked = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"hook_callback","callback_id":"pre","input":{"content":""#;
    let mut spec = kept.script(&format!(
        "printf '%s' '{asked}'; head -c 2000000 /dev/zero | tr '\\0' x; echo '\"}}}}}}'; read -r x; echo; echo \"$x\""
    ));
    spec.stdin = Stdin::Piped;
    spec.protocol = Some("claude".into());
    spec.alone_grace_seconds = 0.1;
    spec.time_limit_seconds = 20.0;
    kept.start(&spec);
    let exit = eventually("it is over", || match client::look(&kept.dir()).unwrap() {
        Found::Over(exit) => Some(exit),
        _ => None,
    });
    assert!(exit.succeeded(), "{exit:?}");
    let said = String::from_utf8(kept.out()).unwrap();
    let answer: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let response = &answer["response"];
    assert_eq!(response["request_id"], "r1");
    assert_eq!(response["response"]["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
}

#[test]
fn an_answer_that_comes_after_the_denial_is_late() {
    let kept = Kept::new();
    let mut spec = kept.script("echo ask one; read -r x; echo got $x; read -r x; echo got $x");
    spec.stdin = Stdin::Piped;
    spec.protocol = Some("lines".into());
    spec.alone_grace_seconds = 0.0;
    kept.start(&spec);
    eventually("it denies", || (client::journal(&kept.dir()).unwrap().len() == 1).then_some(()));
    on_tokio(async {
        let mut server = Connection::connect(&kept.dir()).await.unwrap();
        server.answer("1", "allow\n", 0).await.unwrap();
        server.send("2", "other\n").await.unwrap();
        let mut news = Vec::new();
        loop {
            match server.next().await.unwrap() {
                News::Exit(_) => break,
                News::Grown { .. } => {}
                other => news.push(other),
            }
        }
        assert_eq!(news, [News::Late("1".into()), News::Taken("2".into())]);
    });
    assert_eq!(kept.out(), b"ask one\ngot deny one\ngot other\n");
}

#[test]
fn any_bytes_are_kept_as_they_are() {
    let kept = Kept::new();
    let bytes: Vec<u8> = (0..=255u8).chain(*b"\xff\xfe\0\x1b[2J\x1b]0;title\x07\r\n\xc3").collect();
    std::fs::write(kept.file("bytes"), &bytes).unwrap();
    assert!(kept.run(&kept.script("cat bytes; cat bytes >&2")).succeeded());
    assert_eq!((kept.out(), kept.err()), (bytes.clone(), bytes));
}

/// The keeper's own memory, in KiB, that it shares with nobody.
fn private_kib(pid: i32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    rollup.lines().filter(|line| line.starts_with("Private_")).filter_map(kib).sum()
}

#[test]
fn a_line_of_a_hundred_megabytes_flows_through_a_small_keeper() {
    let kept = Kept::new();
    let mut spec = kept.script("head -c 100000000 /dev/zero | tr '\\0' x; echo; echo after; read -r _");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        grown(&mut connection, 100_000_007).await;
        let memory = private_kib(kept.keeper());
        assert!(memory < 16 << 10, "{memory} KiB");
        connection.close_in().await.unwrap();
        exit(&mut connection).await;
    });
    let mut tail = Tail::open(&client::out(&kept.dir()), 0).unwrap();
    let line = tail.next(true).unwrap().unwrap();
    assert_eq!((line.length, line.bytes.len(), line.is_cut()), (100_000_000, 8 << 20, true));
    assert_eq!(tail.next(true).unwrap().unwrap().bytes, b"after");
    assert_eq!(tail.next(true).unwrap(), None);
}

/// As fast as they can be written: each is there, in its place, and news of them is not as many as they are.
#[test]
fn a_hundred_thousand_lines_flow_with_few_news() {
    let kept = Kept::new();
    let began = Instant::now();
    kept.start(&kept.script("seq 1 100000"));
    let news = on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        let mut news = 0;
        while let Some(told) = connection.next().await {
            news += 1;
            assert_ne!(told, News::Lost);
        }
        news
    });
    let took = began.elapsed();
    let mut tail = Tail::open(&client::out(&kept.dir()), 0).unwrap();
    for n in 1..=100_000 {
        let line = tail.next(true).unwrap().unwrap();
        assert_eq!(line.bytes, n.to_string().as_bytes());
    }
    assert_eq!(tail.next(true).unwrap(), None);
    assert!(news as u128 <= took.as_millis() / 5 + 10, "{news} news in {took:?}");
}

#[test]
fn a_program_that_writes_too_much_is_ended() {
    let kept = Kept::new();
    let mut spec = kept.script("yes & yes >&2");
    spec.output_bytes_max = 1_000_000;
    let exit = kept.run(&spec);
    assert_eq!((&exit.reason, exit.out_bytes + exit.err_bytes), (&Reason::OutputLimit, 1_000_000));
    assert_eq!((kept.out().len() + kept.err().len()) as u64, 1_000_000);
}

/// A limit on the size of files stands for the full disk: it can be lifted again, and needs no rights.
#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    let kept = Kept::new();
    let mut spec = kept.script("read -r _; seq 1 50000; echo end >&2");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    let room = |bytes: &str| {
        let line = format!("--pid={} --fsize={bytes}:unlimited", kept.keeper());
        let status = std::process::Command::new("prlimit").args(line.split(' ')).status().unwrap();
        assert!(status.success());
    };
    room("100000");
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        connection.send("1", "go\n").await.unwrap();
        loop {
            match connection.next().await.unwrap() {
                News::Full(why) => break assert!(why.contains("too large"), "{why}"),
                News::Exit(exit) => panic!("{exit:?}"),
                _ => {}
            }
        }
        // Whoever comes now is told as well, and it is tried again.
        let mut second = Connection::watch(&kept.dir()).await.unwrap();
        while !matches!(second.next().await.unwrap(), News::Full(_)) {}
        assert_eq!(kept.out().len(), 100_000);
        room("150000");
        grown(&mut connection, 150_000).await;
        room("unlimited");
        assert!(exit(&mut connection).await.succeeded());
    });
    let wanted: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    assert!(kept.out() == wanted.as_bytes());
    assert_eq!(kept.err(), b"end\n");
}

/// Someone outside the tree has got hold of the program's pipe: its end is not waited for.
#[test]
fn a_pipe_that_someone_else_holds_open_keeps_nothing_up() {
    let kept = Kept::new();
    let mut spec = kept.script("echo $$ > main; read -r _; echo bye");
    spec.stdin = Stdin::Piped;
    kept.start(&spec);
    let main = pid_in(&kept.file("main"));
    let _held = File::options().write(true).open(format!("/proc/{main}/fd/1")).unwrap();
    on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        connection.send("1", "go\n").await.unwrap();
        assert!(exit(&mut connection).await.succeeded());
    });
    assert_eq!(kept.out(), b"bye\n");
}

#[test]
fn limits_hold_the_program() {
    let kept = Kept::new();
    let mut spec =
        kept.script("ulimit -f; head -c 100000 /dev/zero > big; ls -l big | tr -s ' ' | cut -d' ' -f5");
    spec.limits = Limits { file_bytes: Some(65_536), ..Limits::default() };
    kept.run(&spec);
    assert_eq!(String::from_utf8(kept.out()).unwrap(), "128\n65536\n");
}

/// All that it started counts, also what left its group and its parent.
#[test]
fn a_tree_with_too_many_processes_or_too_much_memory_is_ended_whole() {
    let many = "for i in $(seq 100); do (setsid sleep 300 &) ; done; sleep 300";
    let large = "(head -c 300000000 /dev/zero; sleep 300) | tail";
    // Each of them has the same, which is there once.
    let shared = "head -c 80000000 /dev/zero | tail -c 80000000 > big; cat big > /dev/null; echo fine";
    let limits = Limits { processes: Some(50), memory_bytes: Some(150_000_000), file_bytes: None };
    for (script, reason) in
        [(many, Reason::Processes(50)), (large, Reason::Memory(150_000_000)), (shared, Reason::Exited)]
    {
        let kept = Kept::new();
        let spec = Spec { limits, ..kept.script(script) };
        assert_eq!(kept.run(&spec).reason, reason, "{script}");
        assert_eq!(process::keeper::sweep_strays(&spec.effect).unwrap(), 0, "nothing is left: {script}");
    }
}

#[test]
fn the_keeper_can_be_told_to_go() {
    let kept = Kept::new();
    kept.start(&kept.script("trap '' TERM; echo ready; while :; do sleep 0.05; done"));
    let exit = on_tokio(async {
        let mut connection = Connection::connect(&kept.dir()).await.unwrap();
        grown(&mut connection, 6).await;
        kill(Pid::from_raw(kept.keeper()), Signal::SIGTERM).unwrap();
        connection.end(Ending::NOW).await.unwrap();
        exit(&mut connection).await
    });
    assert_eq!((exit.reason, exit.signal), (Reason::Ended, Some(9)));
}
