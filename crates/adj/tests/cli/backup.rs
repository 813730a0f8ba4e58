//! Durable streams that clients wrote: what is damaged is noticed, and what is backed up comes back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::project::{Repository, ids};
use super::server::{Answer, Server};

fn ask(server: &Server, line: &str, body: &str) -> Answer {
    let head = format!(
        "{line} HTTP/1.1\nHost: {}\nAuthorization: Bearer {}\nContent-Type: text/plain\nContent-Length: {}",
        server.host(),
        server.token(),
        body.len()
    );
    server.raw(&head, body.as_bytes())
}

/// A project with a stream of so many lines, whose server was killed.
fn written(lines: usize) -> Repository {
    let here = Repository::new();
    here.ok(&["task", "add", "First", "--id", "t-1"]);
    let mut server = Server::start(&here, &[]);
    assert_eq!(ask(&server, "PUT /v1/stream/mine", "").status, 201);
    for line in 0..lines {
        assert_eq!(ask(&server, "POST /v1/stream/mine", &format!("line {line}\n")).status, 204);
    }
    server.kill();
    here
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn damage_and_loss_of_streams_are_said_and_nothing_damaged_is_read_or_written() {
    let here = written(12);
    let (folder, kept) = (here.state("streams"), here.state("kept"));
    copy(&folder, &kept);
    here.ok(&["verify"]);
    let database = folder.join("streams.db");
    let log = folder.join("streams.db-wal");
    let flip = |path: &Path, from_end: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let damages: [(&str, &dyn Fn()); 5] = [
        ("a byte of the write-ahead log is flipped", &|| flip(&log, 2_000)),
        ("the write-ahead log is cut", &|| {
            let bytes = std::fs::read(&log).unwrap();
            std::fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("the write-ahead log is gone", &|| std::fs::remove_file(&log).unwrap()),
        ("the database is empty", &|| {
            std::fs::write(&database, "").unwrap();
            std::fs::write(&log, "").unwrap();
        }),
        ("the database is gone", &|| std::fs::remove_file(&database).unwrap()),
    ];
    for (number, (what, damage)) in damages.iter().enumerate() {
        std::fs::remove_dir_all(&folder).unwrap();
        copy(&kept, &folder);
        damage();
        let verified = here.adj(&["verify"]);
        assert!(
            verified.code != 0 && verified.stderr.contains("streams are damaged"),
            "{what}: {verified:?}"
        );
        assert!(here.adj(&["backup", "copy.jsonl"]).code != 0, "{what}: nothing damaged is backed up");
        // One that says it all.
        if number == 1 {
            let server = Server::start(&here, &[]);
            let read = ask(&server, "GET /v1/stream/mine?offset=-1", "");
            assert_eq!(
                (read.status, &read.json()["code"]),
                (500, &"STREAMS_DAMAGED".into()),
                "{}",
                read.text
            );
            assert!(read.text.contains("was acknowledged"), "{}", read.text);
            let append = ask(&server, "POST /v1/stream/mine", "more");
            assert_eq!(append.json()["code"], "STREAMS_DAMAGED");
            let own = ask(&server, "GET /v1/stream/log?offset=-1", "");
            assert!(
                own.status == 200 && own.text.contains("t-1"),
                "what the log feeds is served: {}",
                own.text
            );
        }
    }
    // Whoever accepts the loss goes on with what is left.
    std::fs::remove_dir_all(&folder).unwrap();
    copy(&kept, &folder);
    damages[1].1();
    std::fs::remove_file(folder.join("streams.db.head")).unwrap();
    here.ok(&["verify"]);
    // A byte of the data itself, once it has reached the database.
    std::fs::remove_dir_all(&folder).unwrap();
    copy(&kept, &folder);
    drop(Server::start(&here, &[]));
    let changed = rusqlite::Connection::open(&database).unwrap();
    changed.execute("UPDATE chunks SET data = CAST('line X' || char(10) AS BLOB) WHERE end = 7", ()).unwrap();
    drop(changed);
    let verified = here.adj(&["verify"]);
    assert!(verified.stderr.contains("`mine` does not hold what was written"), "{verified:?}");
    let server = Server::start(&here, &[]);
    assert_eq!(ask(&server, "GET /v1/stream/mine?offset=-1", "").json()["code"], "STREAMS_DAMAGED");
}

#[test]
fn a_backup_of_a_running_project_is_restored_into_a_fresh_clone_and_goes_on() {
    let here = Repository::new();
    let commit =
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "Begin"];
    assert!(Command::new("git").args(commit).current_dir(&here.0).status().unwrap().success());
    let server = Server::start(&here, &[]);
    here.ok(&["task", "add", "First", "--id", "t-1"]);
    assert_eq!(ask(&server, "PUT /v1/stream/notes/a", "one\n").status, 201);
    assert_eq!(ask(&server, "POST /v1/stream/notes/a", "two\n").status, 204);
    let file = here.state("backup.jsonl");
    let path = file.to_str().unwrap();
    here.ok(&["backup", path]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Over the address it is the same.
    let away = server.command(&["backup", "away.jsonl"]).output().unwrap();
    assert!(away.status.success(), "{away:?}");

    let fresh = Repository::new();
    let clone =
        Command::new("git").args(["pull", "-q"]).arg(&here.0).arg("HEAD").current_dir(&fresh.0).status();
    assert!(clone.unwrap().success());
    // What was changed on the way is not taken.
    let changed = std::fs::read_to_string(&file).unwrap().replace("6f6e650a", "6f6e650b");
    std::fs::write(here.state("changed.jsonl"), changed).unwrap();
    let second = Repository::new();
    let refused = second.adj(&["import", here.state("changed.jsonl").to_str().unwrap()]);
    assert!(refused.code != 0 && refused.stderr.contains("of the streams"), "{refused:?}");

    fresh.ok(&["import", path]);
    fresh.ok(&["verify"]);
    assert_eq!(ids(&fresh), ["t-1"]);
    let again = Server::start(&fresh, &[]);
    assert_eq!(ask(&again, "POST /v1/stream/notes/a", "three\n").status, 204);
    assert_eq!(ask(&again, "GET /v1/stream/notes/a?offset=-1", "").text, "one\ntwo\nthree\n");
    fresh.ok(&["task", "add", "Second", "--id", "t-2"]);
    fresh.ok(&["verify"]);
}
