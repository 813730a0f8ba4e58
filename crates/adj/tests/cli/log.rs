//! The log behind the commands: killed, edited, held, newer, exported and imported.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::Ran;
use super::project::{Repository, ids};
use serde_json::Value;

#[test]
fn a_task_that_was_printed_is_there_after_a_kill_anywhere() {
    let mut points = 0;
    for crash_at in 1.. {
        let here = Repository::new();
        here.ok(&["task", "add", "first", "--id", "c-1"]);
        let output = here
            .command(&["task", "add", "second", "--id", "c-2", "--key", "k"])
            .env("ADJ_CRASH_AT", crash_at.to_string())
            .output()
            .unwrap();
        let acknowledged = output.stdout == b"c-2\n";
        assert_eq!(output.status.success(), acknowledged, "{output:?}");
        here.ok(&["verify"]);
        let there = ids(&here);
        assert!(there == ["c-1", "c-2"] || (!acknowledged && there == ["c-1"]), "{there:?}");
        // Whoever was not answered asks again, with the same key.
        here.ok(&["task", "add", "second", "--id", "c-2", "--key", "k"]);
        assert_eq!(ids(&here), ["c-1", "c-2"]);
        if acknowledged {
            break;
        }
        points += 1;
    }
    assert!(points > 10, "only {points} crash points");
}

#[test]
fn an_import_that_was_killed_anywhere_leaves_a_log_that_opens() {
    let from = Repository::new();
    from.ok(&["task", "add", "first", "--id", "c-1"]);
    from.ok(&["export", "all.jsonl"]);
    let file = from.0.join("all.jsonl");
    let mut points = 0;
    for crash_at in 1.. {
        let here = Repository::new();
        let mut import = here.command(&["import", file.to_str().unwrap()]);
        let output = import.env("ADJ_CRASH_AT", crash_at.to_string()).output().unwrap();
        let there = ids(&here);
        assert!(there == ["c-1"] || (there.is_empty() && !output.status.success()), "{there:?}");
        here.ok(&["task", "add", "second", "--id", "c-2"]);
        here.ok(&["verify"]);
        if output.status.success() {
            break;
        }
        points += 1;
    }
    assert!(points > 5, "only {points} crash points");
}

/// The moment that no crash point of ours is at: the file is made, and the journal that would unmake it is still there.
/// Whoever only reads must not need the rights of an owner, and must not wait for one.
#[test]
fn a_log_whose_making_was_killed_can_be_read_at_once() {
    let here = Repository::new();
    here.ok(&["task", "add", "first"]);
    let path = project::layout::Layout::new(&here.0).log();
    let mut made = std::fs::read(&path).unwrap();
    // Not yet one with a write-ahead log.
    (made[18], made[19]) = (1, 1);
    let fresh = Repository::new();
    fresh.ok(&["task", "add", "first"]);
    let path = project::layout::Layout::new(&fresh.0).log();
    let beside = |ending: &str| std::path::PathBuf::from(format!("{}{ending}", path.display()));
    std::fs::write(&path, &made).unwrap();
    let _ = std::fs::remove_file(beside(".head"));
    // As SQLite has it: a magic number, no pages, a nonce, a file that was empty, and the sizes of sector and page.
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for number in [u32::MAX, 7, 0, 512, 4096] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(512, 0);
    std::fs::write(beside("-journal"), journal).unwrap();
    assert_eq!(ids(&fresh), Vec::<String>::new());
    assert!(!beside("-journal").exists());
    fresh.ok(&["board"]);
    fresh.ok(&["task", "add", "second", "--id", "c-2"]);
    fresh.ok(&["verify"]);
    assert_eq!(ids(&fresh), ["c-2"]);
}

#[test]
fn verify_says_what_it_looked_at_and_names_the_first_record_that_was_edited() {
    let here = Repository::new();
    here.fails(&["verify"], 4, "there is no log");
    for n in 1..=5 {
        here.ok(&["task", "add", "x", "--id", &format!("c-{n}")]);
    }
    let said = here.ok(&["verify"]);
    for check in ["hash chain", "events", "invariants", "snapshot", "outbox", "streams"] {
        assert!(said.lines().any(|line| line.starts_with(check) && line.contains(" ok  ")), "{said}");
    }
    let verified = here.json(&["verify"]);
    assert_eq!((&verified["ok"], &verified["records"]), (&Value::Bool(true), &7.into()));

    let database = here.database();
    database.execute("UPDATE records SET data = replace(data, 'c-3', 'c-7') WHERE seq = 5", ()).unwrap();
    database.execute("UPDATE records SET actor = 'mallory' WHERE seq = 7", ()).unwrap();
    drop(database);
    here.fails(&["verify"], 1, "record 5 of the log is damaged: its hash does not fit");
    here.fails(&["task", "add", "y"], 1, "record 5 of the log is damaged");
    here.fails(&["task", "ls"], 1, "hint: `adj verify` checks the whole log");

    here.database().execute("DELETE FROM records WHERE seq = 2", ()).unwrap();
    here.fails(&["verify"], 1, "record 2 of the log is damaged: it is missing");
}

#[test]
fn a_log_of_a_newer_version_is_left_alone() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.database().execute("INSERT INTO migrations VALUES (99, 'later')", ()).unwrap();
    here.fails(&["task", "ls"], 1, "the log's schema is version 99");
    here.fails(&["task", "add", "y"], 1, "install a newer adjutant; nothing was changed");
}

/// One process owns the log and does not let go; others look, and are told who holds it if they want to write.
#[test]
fn a_second_writer_is_told_who_holds_the_project_and_readers_are_not_held_up() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    // It reads its standard input as the owner, and waits there.
    let other = Repository::new();
    let mut holder =
        other.command(&["import", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = holder.stdin.take().unwrap();
    let export = here.ok(&["export", "-"]);
    input.write_all(export.lines().next().unwrap().as_bytes()).unwrap();
    while !other.state("adjutant.db.head").exists() {
        std::thread::yield_now();
    }
    let held = other.adj(&["task", "add", "y"]);
    let pid = holder.id();
    let expected = format!(
        "note: waiting for other commands to finish (now pid {pid})\nerror: the project is in use by pid {pid} since 20"
    );
    assert!(held.code == 5 && held.stderr.starts_with(&expected), "{}", held.stderr);
    assert_eq!(other.ok(&["task", "ls", "-q"]), "ID  STATUS  PRIO  ASSIGNED  TITLE\n");

    let rest: Vec<_> = export.lines().skip(1).collect();
    write!(input, "\n{}\n", rest.join("\n")).unwrap();
    drop(input);
    assert!(holder.wait().unwrap().success());
    assert_eq!(ids(&other), ["c-1"]);
    other.ok(&["task", "add", "y", "--id", "c-2"]);
}

/// Nobody owns the project, and everybody wants to for a moment.
#[test]
fn two_hundred_commands_at_once_wait_in_line_and_are_all_done() {
    let here = Repository::new();
    let adds: Vec<_> = (0..200)
        .map(|n| {
            let mut add = here.command(&["task", "add", "x", "--id", &format!("c-{n}")]);
            add.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut done = Vec::new();
    let mut told = 0;
    for add in adds {
        let ran: Ran = add.wait_with_output().unwrap().into();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(
            ran.stderr.is_empty() || ran.stderr.starts_with("note: waiting for other commands to finish")
        );
        told += usize::from(!ran.stderr.is_empty());
        done.push(ran.stdout.trim().to_owned());
    }
    let mut there = ids(&here);
    there.sort();
    done.sort();
    assert_eq!(there, done);
    assert!(told < 200, "the first waits for nobody");
    here.ok(&["verify"]);
}

/// A log that says nothing of its tables is damaged, whoever looks at it; so is a file that was emptied.
#[test]
fn a_damaged_log_is_never_taken_for_an_empty_one() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.database().execute("DELETE FROM migrations", ()).unwrap();
    let commands: [&[&str]; 7] =
        [&["board"], &["task", "ls"], &["doctor"], &["ps"], &["history"], &["verify"], &["task", "add", "y"]];
    for line in commands {
        here.fails(line, 1, "the log is damaged: migrations: it names no schema");
    }
    here.database().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    std::fs::write(here.state("adjutant.db"), "").unwrap();
    for ending in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(here.state(&format!("adjutant.db{ending}")));
    }
    for line in commands {
        here.fails(line, 1, ", though record 3 was acknowledged");
    }
}

#[test]
fn what_somebody_else_made_in_the_database_is_named_and_a_trigger_stops_every_write() {
    let here = Repository::new();
    here.ok(&["task", "add", "x", "--id", "c-1"]);
    here.database()
        .execute_batch(
            "CREATE TRIGGER eats AFTER INSERT ON records BEGIN DELETE FROM records WHERE seq = 1; END;
             CREATE VIEW seen AS SELECT * FROM records; CREATE TABLE more (x); CREATE INDEX quick ON more (x);",
        )
        .unwrap();
    let said = "contains objects that adjutant did not create: index `quick` on `more`, table `more`, trigger `eats` on `records`, view `seen`";
    here.fails(&["verify"], 1, said);
    here.fails(&["verify"], 1, "DROP TRIGGER \"eats\"; DROP VIEW \"seen\"");
    here.fails(&["task", "add", "y", "--id", "c-2"], 1, "has a trigger `eats` on its table `records`");
    here.fails(&["task", "add", "y", "--id", "c-2"], 1, "'DROP TRIGGER \"eats\"'`, then run");
    assert_eq!(ids(&here), ["c-1"], "it is read all the same");
    here.database().execute_batch("DROP TRIGGER eats").unwrap();
    here.ok(&["task", "add", "y", "--id", "c-2"]);
    here.database().execute_batch("DROP INDEX quick; DROP TABLE more; DROP VIEW seen").unwrap();
    assert!(here.ok(&["verify"]).starts_with("schema      ok  "));
    assert_eq!(ids(&here), ["c-1", "c-2"]);
}

#[test]
fn what_is_exported_is_imported_with_the_same_hashes() {
    let here = Repository::new();
    here.fails(&["export", "x.jsonl"], 4, "there is no log");
    here.ok(&["task", "add", "ünï \u{1b} \"q\"\n", "--id", "c-1"]);
    here.ok(&["task", "assign", "c-1", "coder", "--key", "k"]);
    here.ok(&["spawn", "3"]);
    assert_eq!(here.ok(&["export", "all.jsonl"]), "exported 11 records\n");
    let file = here.0.join("all.jsonl");
    let lines: Vec<String> =
        BufReader::new(std::fs::File::open(&file).unwrap()).lines().map(Result::unwrap).collect();
    assert!(lines[0].starts_with(r#"{"format":"adjutant-log","version":1,"#), "{}", lines[0]);
    assert_eq!(lines.len(), 12);

    let there = Repository::new();
    let path = file.to_str().unwrap();
    assert_eq!(there.ok(&["import", path]), "imported 11 records\n");
    assert_eq!(there.json(&["verify"])["hash"], here.json(&["verify"])["hash"]);
    assert_eq!(there.ok(&["export", "-"]), here.ok(&["export", "-"]));
    there.fails(&["import", path], 3, "the project is not empty: its log has 11 records");
    there.ok(&["task", "add", "goes on"]);

    // A line that was edited, left out or moved is named, and nothing is imported.
    let damaged = |edit: &dyn Fn(&mut Vec<String>)| {
        let mut edited = lines.clone();
        edit(&mut edited);
        std::fs::write(here.0.join("bad.jsonl"), edited.join("\n") + "\n").unwrap();
        here.0.join("bad.jsonl").to_str().unwrap().to_owned()
    };
    let fresh = Repository::new();
    fresh.fails(
        &["import", &damaged(&|lines| lines[4] = lines[4].replace("coder", "crook"))],
        2,
        "line 5: record 4",
    );
    fresh.fails(&["import", &damaged(&|lines| drop(lines.remove(5)))], 2, "line 6: record 5");
    fresh.fails(&["import", &damaged(&|lines| lines.swap(2, 3))], 2, "line 3: record 2");
    fresh.fails(
        &["import", &damaged(&|lines| drop(lines.pop()))],
        2,
        "line 12: the file ends after record 10",
    );
    fresh.fails(&["import", &damaged(&|lines| lines[4].push('x'))], 2, "line 5: trailing characters");
    fresh.fails(
        &["import", &damaged(&|lines| lines[0] = "{}".into())],
        2,
        "line 1: it is not the first line",
    );
    let newer = damaged(&|lines| lines[0] = lines[0].replace("\"version\":1", "\"version\":2"));
    fresh.fails(&["import", &newer], 2, "the file has format 2, and this version reads formats up to 1");
    fresh.fails(&["import", "nowhere.jsonl"], 4, "there is no file `nowhere.jsonl`");
    assert_eq!(ids(&fresh), Vec::<String>::new());
    assert_eq!(fresh.ok(&["import", path, "-q"]), "");
}

/// A limit on the size of files is what a full disk is to the program: the write fails, here and there.
#[test]
fn a_full_disk_is_said_loses_nothing_and_is_over_when_there_is_room() {
    let here = Repository::new();
    here.ok(&["task", "add", "first", "--id", "c-1"]);
    let body = "x".repeat(60_000);
    let mut acknowledged = vec!["c-1".to_owned()];
    let full = (2..50).find_map(|number| {
        let id = format!("c-{number}");
        // In the shell's blocks of 512 or 1024 bytes: room for some tasks, not for all of them.
        let script = "trap '' XFSZ; ulimit -f 600; exec \"$0\" \"$@\"";
        let ran: Ran = std::process::Command::new("sh")
            .args([
                "-c",
                script,
                env!("CARGO_BIN_EXE_adj"),
                "task",
                "add",
                "big",
                "--id",
                &id,
                "--body",
                &body,
            ])
            .current_dir(&here.0)
            .env("ADJ_USER", "ann")
            .output()
            .unwrap()
            .into();
        if ran.code == 0 {
            acknowledged.push(id);
            return None;
        }
        Some(ran)
    });
    let full = full.expect("the disk is full at last");
    assert!(full.code == 1 && full.stdout.is_empty(), "{}: {}", full.code, full.stderr);
    assert!(full.stderr.contains("full") || full.stderr.contains("space"), "{}", full.stderr);
    assert!(acknowledged.len() > 1, "there was room for some");

    here.ok(&["verify"]);
    acknowledged.sort();
    assert_eq!(ids(&here), acknowledged);
    here.ok(&["task", "add", "there is room again", "--id", "c-99"]);
    assert_eq!(ids(&here).len(), acknowledged.len() + 1);
}
