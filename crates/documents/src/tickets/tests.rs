use super::*;
use proptest::prelude::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;
use testing::Folder;

const BYTES: u64 = 1 << 20;

/// As `tk create` writes it.
const PLAIN: &str = "---
id: ab-1
status: open
deps: [ab-12, ab-2]
links: []
created: 2026-03-15T10:00:00Z
type: bug
priority: 1
assignee: Ann
external-ref: gh-7
tags: [ui, \"slow ones\"]
---
# Rows jump | when sorted

They should not.

## Design

Sort in place.

## Acceptance Criteria

No row jumps.

";

fn ticket(text: &str) -> Ticket {
    Ticket::parse(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem} in {text:?}"))
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, expected: &str) {
    assert_eq!(Ticket::parse(text.as_ref()).unwrap_err().to_string().trim(), expected);
}

fn closed(text: &str) -> String {
    String::from_utf8(set_status(text.as_bytes(), Status::Closed).unwrap()).unwrap()
}

fn noted(text: &str, note: &str) -> String {
    String::from_utf8(add_note(text.as_bytes(), 1_773_576_123_000, note).unwrap()).unwrap()
}

fn id(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

#[test]
fn a_ticket_of_tk_is_read() {
    let ticket = ticket(PLAIN);
    assert_eq!(ticket.id, id("ab-1"));
    assert_eq!(ticket.status, Status::Open);
    assert_eq!(ticket.deps, [id("ab-12"), id("ab-2")]);
    assert_eq!(ticket.created.as_deref(), Some("2026-03-15T10:00:00Z"));
    assert_eq!((ticket.kind.as_deref(), ticket.priority), (Some("bug"), 1));
    assert_eq!((ticket.assignee.as_deref(), ticket.external_ref.as_deref()), (Some("Ann"), Some("gh-7")));
    assert_eq!(ticket.tags, ["ui", "slow ones"]);
    assert_eq!(ticket.title, "Rows jump | when sorted");
    assert_eq!(ticket.design.as_deref(), Some("Sort in place."));
    assert_eq!(ticket.acceptance.as_deref(), Some("No row jumps."));
    assert!(ticket.body.starts_with("They should not."));
    assert!(ticket.body.ends_with("No row jumps."));
    assert_eq!(ticket.plan, None);

    let seen = ticket.to_seen(true);
    assert_eq!((seen.task_type, seen.priority, seen.by_hand), (TaskType::Bug, 1, true));
    assert_eq!((seen.status, seen.depends_on.len()), (machines::task::TicketStatus::Open, 2));
}

/// The original takes any `status:` between any two `---` for the ticket's.
#[test]
fn only_the_first_front_matter_counts_whatever_the_text_pretends() {
    let text = format!("{PLAIN}---\nstatus: closed\ndeps: []\n---\nstatus: closed\n");
    let read = ticket(&text);
    assert_eq!((read.status, read.deps.len()), (Status::Open, 2));
    let after = closed(&text);
    assert_eq!(after, text.replacen("status: open", "status: closed", 1));
    let back = set_status(after.as_bytes(), Status::InProgress).unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), text.replacen("status: open", "status: in_progress", 1));
}

/// The original takes `ab-1` out of `ab-12`.
#[test]
fn an_id_within_another_id_is_another_id() {
    let ticket = ticket("---\nid: x\nstatus: open\ndeps: [ab-12, ab-1, ab-12]\n---\n# T\n");
    assert_eq!(ticket.deps, [id("ab-12"), id("ab-1")]);
}

#[test]
fn bytes_that_are_not_meant_stay_as_they_are() {
    let odd = "\u{feff}---\r\nid:   ab-1  \r\ncustom: {a: 1}\r\n# a comment\r\nstatus: \"open\" \r\n  - indented\r\n---\r\n# T\r\nx";
    assert_eq!(closed(odd), odd.replace("\"open\"", "\"closed\""));
    let read = ticket(odd);
    assert_eq!((read.title.as_str(), read.body.as_str()), ("T", "x"));
    let raw = b"---\nid: a\nstatus: open\nnote: \xff\n---\n# T\n\xff\xfe\n";
    let after = set_status(raw, Status::Open).unwrap();
    assert_eq!(after, raw);
    assert_eq!(closed("---\nid: a\nstatus:open\n---"), "---\nid: a\nstatus:closed\n---");
}

#[test]
fn what_is_no_ticket_says_why_and_what_to_do() {
    refused(
        "# Read me\n",
        "1: this is not a ticket; a ticket begins with a line `---`, its keys, and `---` again; move other files out of here",
    );
    refused(
        "",
        "1: this is not a ticket; a ticket begins with a line `---`, its keys, and `---` again; move other files out of here",
    );
    refused("---\nid: a\n", "1: the front matter has no end; close it with a line `---` below its last key");
    refused(
        "---\nid: a\n---\n",
        "1: the ticket has no `status`; add it to the front matter: `status: open`, `in_progress` or `closed`",
    );
    refused(
        "---\nid: ../x\nstatus: open\n---\n",
        "2: `../x` is not a valid name: it may hold only letters, digits, `.`, `_` and `-`; give the ticket another id, and its file the same name",
    );
    refused(
        "---\nid: a\nstatus: done\n---\n",
        "3: `done` is not a status; write `open`, `in_progress` or `closed`",
    );
    refused(
        "---\nid: a\nstatus: open\nstatus: closed\n---\n",
        "4: `status` stands there twice, in lines 3 and 4; leave one of them",
    );
    refused(
        "---\nid: a\nstatus: open\npriority: P1\n---\n",
        "4: `P1` is not a priority; write a number from 0, the highest, to 4",
    );
    refused(
        "---\nid: a\nstatus: open\ndeps: b\n---\n",
        "4: `deps` is not a list: `b`; write it in one line: `deps: [a, b]`",
    );
    refused(
        "---\nid: a\nstatus: open\ndeps:\n  - b\n---\n",
        "4: the list of `deps` is in several lines; write it in one line: `deps: [a, b]`",
    );
    refused(
        "---\nid: a\nstatus: open\ndeps: [a/b]\n---\n",
        "4: among the dependencies, `a/b` is not a valid name: it may hold only letters, digits, `.`, `_` and `-`; write them as `deps: [ab-1, ab-2]`",
    );
    refused(b"---\nid: \xff\nstatus: open\n---\n", "2: `id` is not UTF-8; write it anew");
}

#[test]
fn a_ticket_may_say_little() {
    let bare = ticket("---\nid: a\nstatus: open\ndeps:\ntype: story\n---");
    assert_eq!((bare.title.as_str(), bare.body.as_str(), bare.priority), ("a", "", 2));
    assert_eq!(bare.to_seen(false).task_type, TaskType::Task, "a type that the board does not have");
}

#[test]
fn a_plan_is_what_stands_under_its_heading_or_a_check_list_of_three_to_six_points() {
    let plan = |text: &str| ticket(&format!("---\nid: a\nstatus: open\n---\n# T\n{text}")).plan;
    assert_eq!(plan("## Plan\n- one\n  - within\n* two\n3. three\n").unwrap(), ["one", "two", "three"]);
    assert_eq!(plan("Do:\n- [ ] one\n- [x] two\n- [ ] three\n").unwrap(), ["one", "two", "three"]);
    assert_eq!(plan("- one\n- two\n- three\n"), None, "a list is no check list");
    assert_eq!(plan("## Plan\n- one\n- two\n").unwrap(), ["one", "two"]);
    assert_eq!(plan("## Plan\n1. a\n2. b\n3. c\n4. d\n5. e\n6. f\n7. g\n").unwrap().len(), 7);
    assert_eq!(plan("## Plan\nsome words\n"), None);
    assert_eq!(plan("- [ ] one\n- [ ] two\n"), None, "two boxes are no plan");
}

#[test]
fn a_heading_in_code_is_code_unless_the_fence_has_no_end() {
    let text = "---\nid: a\nstatus: open\n---\n```sh\n# not the title\n```\n# Title\n~~~\n## Notes\n";
    let read = ticket(text);
    assert_eq!(read.title, "not the title", "the second fence has no end");
    let text = text.to_owned() + "~~~\n";
    assert_eq!(ticket(&text).title, "Title");
}

#[test]
fn a_note_goes_to_the_end_of_the_notes() {
    let once = noted(PLAIN, "landed as 1a2b");
    assert_eq!(once, format!("{PLAIN}\n## Notes\n\n**2026-03-15T12:02:03Z**\n\nAdjutant: landed as 1a2b\n"));
    let twice = noted(&once, "closed");
    assert_eq!(twice, format!("{once}\n**2026-03-15T12:02:03Z**\n\nAdjutant: closed\n"));
    assert_eq!(noted(&twice, "closed"), twice, "said again, it is there already");

    let between =
        "---\nid: a\nstatus: open\n---\n# T\n## Notes\n\n**2026-01-01T00:00:00Z**\n\nhi\n\n## Later\n\nx\n";
    let after = noted(between, "y");
    assert!(after.contains("hi\n\n**2026-03-15T12:02:03Z**\n\nAdjutant: y\n\n## Later\n"), "{after}");

    let windows = noted("---\r\nid: a\r\nstatus: open\r\n---\r\n# T", "y");
    assert!(
        windows.ends_with("# T\r\n\r\n## Notes\r\n\r\n**2026-03-15T12:02:03Z**\r\n\r\nAdjutant: y\r\n"),
        "{windows:?}"
    );
    assert_eq!(noted(PLAIN, " \n"), PLAIN);
}

#[test]
fn a_note_of_ours_cannot_be_taken_for_anything_else() {
    let text = noted(PLAIN, "x\n---\nstatus: closed\n---\n## Notes\n**2026**\n\u{1b}[31m");
    for line in text[PLAIN.len()..].lines().filter(|line| !line.starts_with("## Notes")) {
        assert!(!line.starts_with("---") && !line.starts_with("status") && !line.starts_with('#'), "{line}");
        assert!(!line.contains('\u{1b}'));
    }
    assert_eq!(ticket(&text).notes.len(), 1);
}

/// Otherwise each note that we write would tell the agent that its ticket was changed.
#[test]
fn our_own_note_is_no_change_of_the_text_and_a_persons_is() {
    let before = ticket(PLAIN).to_seen(false);
    let ours = noted(PLAIN, "landed");
    assert_eq!(ticket(&ours).to_seen(false), before);
    let theirs = format!("{ours}\n**2026-03-16T00:00:00Z**\n\nUse the other list.\n");
    let seen = ticket(&theirs).to_seen(false);
    assert_eq!(
        seen.body,
        format!("{}\n\n## Notes\n\n**2026-03-16T00:00:00Z**\n\nUse the other list.", before.body)
    );
}

#[test]
fn acceptance_can_be_taken_out_of_a_text() {
    let (rest, acceptance) = split_acceptance("a\n\n## Acceptance Criteria\n\nb\n\n## More\n\nc");
    assert_eq!((rest.as_str(), acceptance.as_deref()), ("a\n\n## More\n\nc", Some("b")));
    assert_eq!(split_acceptance("a"), ("a".to_owned(), None));
}

fn small(name: &str) -> String {
    format!("---\nid: {name}\nstatus: open\n---\n# Of {name}\n")
}

fn scan(folder: &Folder) -> Vec<String> {
    let told = |found: Result<Seen, Problem>| match found {
        Ok(seen) => format!("{} {}", seen.ticket.id, seen.ticket.status),
        Err(problem) => problem.to_string().replace(&format!("{}/", folder.path.display()), ""),
    };
    Tickets::new(&folder.path, BYTES, 100).scan().into_iter().map(told).collect()
}

#[test]
fn a_damaged_file_stops_no_other() {
    let folder = Folder::new();
    folder.write("ab-1.md", small("ab-1"));
    folder.write("ab-12.md", small("ab-12"));
    folder.write("ab-2.md", "nothing");
    folder.write("ab-3.md", small("ab-4"));
    folder.write("b c.md", small("b"));
    folder.write("big.md", vec![b'x'; BYTES as usize + 1]);
    folder.write(".hidden.md", "x");
    folder.write("notes.txt", "x");
    folder.write("sub.md/inner.md", "x");
    let outside = Folder::new();
    symlink(outside.write("link.md", small("link")), folder.path.join("link.md")).unwrap();
    nix::unistd::mkfifo(&folder.path.join("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let found = scan(&folder);
    assert_eq!(found[0], "ab-1 open");
    assert_eq!(found[1], "ab-12 open");
    assert!(found[2].starts_with("ab-2.md:1: this is not a ticket"), "{found:?}");
    assert!(
        found[3].starts_with("ab-3.md: the ticket's id is `ab-4`, and its file is named `ab-3`"),
        "{found:?}"
    );
    assert!(found[4].starts_with("b c.md: `b c` is not a valid name"), "{found:?}");
    assert!(found[5].starts_with("big.md: it is larger than 1048576 bytes"), "{found:?}");
    assert!(found[6].starts_with("link.md: it is not a plain file"), "{found:?}");
    assert!(found[7].starts_with("pipe.md: it is not a plain file"), "{found:?}");
    assert!(found[8].starts_with("sub.md: it is not a plain file"), "{found:?}");
    assert_eq!(found.len(), 9);
}

#[test]
fn more_tickets_than_the_limit_are_said() {
    let folder = Folder::new();
    (1..=4).for_each(|n| drop(folder.write(format!("a-{n}.md"), small(&format!("a-{n}")))));
    let found = Tickets::new(&folder.path, BYTES, 3).scan();
    assert!(found[0].as_ref().unwrap_err().what.contains("more files than the 3 tickets"));
    assert_eq!(found.iter().filter(|found| found.is_ok()).count(), 3);
    assert!(Tickets::new(folder.path.join("absent"), BYTES, 3).scan().is_empty());
    let unreadable = Tickets::new(folder.path.join("a-1.md"), BYTES, 3).scan();
    assert!(unreadable[0].is_err(), "a directory that cannot be read is not an empty one");
}

#[test]
fn a_scan_sees_changes_and_keeps_what_did_not_change() {
    let folder = Folder::new();
    let path = folder.write("a.md", small("a"));
    let old = std::time::SystemTime::now() - Duration::from_secs(3600);
    let mut tickets = Tickets::new(&folder.path, BYTES, 100);
    let first = tickets.scan().remove(0).unwrap();
    // Within the same tick and of the same size: the time alone would not tell.
    std::fs::write(&path, small("a").replace("Of", "To")).unwrap();
    std::fs::File::open(&path).unwrap().set_modified(old).unwrap();
    let second = tickets.scan().remove(0).unwrap();
    assert_eq!((first.ticket.title.as_str(), second.ticket.title.as_str()), ("Of a", "To a"));
    assert_ne!(first.fingerprint, second.fingerprint);
    std::fs::remove_file(&path).unwrap();
    assert!(tickets.scan().is_empty());
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let folder = Folder::new();
    let path = folder.write("a.md", small("a"));
    let (_, bytes) = read(&path, BYTES).unwrap().unwrap();
    let read_then = Fingerprint::of(&bytes);
    folder.write("a.md", small("a") + "more\n");
    assert!(matches!(write(&path, read_then, b"x"), Err(ChangeError::Changed { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), small("a") + "more\n");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(write(&path, read_then, b"x"), Err(ChangeError::Gone { .. })));
    assert_eq!(std::fs::read_dir(&folder.path).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_change_keeps_the_mode_is_ours_and_is_made_once() {
    let folder = Folder::new();
    let path = folder.write("a.md", small("a"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let own = OwnWrites::default();
    let mut tickets = Tickets::new(&folder.path, BYTES, 100);
    let mut by_hand = || own.by_hand(&tickets.scan().remove(0).unwrap());
    assert!(by_hand());
    let close = || change(&path, Status::Closed, Some((0, "landed")), BYTES, &own).unwrap();
    let Change::Written(written) = close() else { panic!("it was open") };
    assert_eq!(close(), Change::AlreadyThere(written));
    assert!(!by_hand());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let text = std::fs::read_to_string(&path).unwrap();
    folder.write("a.md", text.replace("closed", "open"));
    assert!(by_hand());
    assert!(matches!(
        change(&folder.path.join("b.md"), Status::Closed, None, BYTES, &own),
        Err(ChangeError::Gone { .. })
    ));
    folder.write("c.md", "no ticket");
    assert!(matches!(
        change(&folder.path.join("c.md"), Status::Closed, None, BYTES, &own),
        Err(ChangeError::NotATicket(_))
    ));
}

/// Each adds its own note to the same file, over and over; every note is there at the end.
#[test]
fn writers_side_by_side_lose_nothing() {
    let folder = Folder::new();
    let path = folder.write("a.md", small("a"));
    let own = OwnWrites::default();
    let lock = std::sync::Mutex::new(());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (path, own, lock) = (&path, &own, &lock);
            scope.spawn(move || {
                for number in 0..5 {
                    let note = format!("{writer} says {number}");
                    loop {
                        // Reads run side by side; the moment between look and rename is ours here, as it is in the
                        // runner, where one thread writes tickets.
                        let (_, bytes) = read(path, BYTES).unwrap().unwrap();
                        let new = add_note(&bytes, 0, &note).unwrap();
                        own.remember(&id("a"), Fingerprint::of(&new));
                        let _guard = lock.lock().unwrap();
                        match write(path, Fingerprint::of(&bytes), &new) {
                            Ok(_) => break,
                            Err(ChangeError::Changed { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let (ticket, _) = read(&path, BYTES).unwrap().unwrap();
    assert_eq!(ticket.notes.len(), 20);
}

fn told(watch: &mut Watch, act: impl FnOnce()) {
    let runtime = tokio::runtime::Handle::current();
    act();
    let in_time = tokio::time::timeout(Duration::from_secs(20), watch.changed());
    assert!(tokio::task::block_in_place(|| runtime.block_on(in_time)).is_ok(), "nothing was told");
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn a_change_of_the_directory_is_told() {
    run(async {
        let folder = Folder::new();
        let mut watch = Watch::new(&folder.path);
        assert!(watch.is_told());
        told(&mut watch, || drop(folder.write("a.md", small("a"))));
        told(&mut watch, || drop(folder.write("a.md", small("b"))));
        told(&mut watch, || std::fs::rename(folder.path.join("a.md"), folder.path.join("b.md")).unwrap());
        told(&mut watch, || std::fs::remove_file(folder.path.join("b.md")).unwrap());
    });
}

#[test]
fn a_change_is_not_lost_to_a_wait_that_was_given_up() {
    run(async {
        let folder = Folder::new();
        let mut watch = Watch::new(&folder.path);
        folder.write("a.md", small("a"));
        // Given up while the burst settles.
        assert!(tokio::time::timeout(Duration::from_millis(1), watch.changed()).await.is_err());
        told(&mut watch, || {});
    });
}

#[test]
fn a_directory_that_comes_later_is_found_and_one_that_goes_is_missed() {
    run(async {
        let folder = Folder::new();
        let dir = folder.path.join("later");
        let beat = Duration::from_millis(5);
        let mut watch = Watch::with_beats(&dir, Duration::from_secs(60), beat);
        assert!(!watch.is_told());
        folder.write("later/a.md", small("a"));
        told(&mut watch, || {});
        assert!(watch.is_told());
        told(&mut watch, || std::fs::remove_dir_all(&dir).unwrap());
        while watch.is_told() {
            watch.changed().await;
        }
    });
}

#[test]
fn a_beat_comes_though_nothing_is_told() {
    run(async {
        let folder = Folder::new();
        let mut watch = Watch::with_beats(&folder.path, Duration::from_millis(5), Duration::from_secs(60));
        told(&mut watch, || {});
    });
}

/// Text that is near enough to a ticket to get somewhere.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"---\n"[..]),
        Just(&b"---\r\n"[..]),
        Just(&b"id: ab-1\n"[..]),
        Just(&b"status: open\n"[..]),
        Just(&b"status: 'closed'\r\n"[..]),
        Just(&b"status:\n"[..]),
        Just(&b"status: \"\n"[..]),
        Just(&b"deps: [ab-2, ]\n"[..]),
        Just(&b"deps: [\n"[..]),
        Just(&b"priority: 3\n"[..]),
        Just(&b"# T\n"[..]),
        Just(&b"## Notes\n"[..]),
        Just(&b"**2026-01-01**\n"[..]),
        Just(&b"```\n"[..]),
        Just(&b"\xef\xbb\xbf"[..]),
        Just(&b"\xff\x00\r"[..]),
        Just(&b"\n"[..]),
        Just(&b"- [ ] x\n"[..]),
    ];
    let head = prop_oneof![Just(&b""[..]), Just(&b"---\nid: ab-1\nstatus: open\n"[..])];
    (head, proptest::collection::vec(piece, 0..20), proptest::collection::vec(any::<u8>(), 0..8))
        .prop_map(|(head, pieces, tail)| [head, &pieces.concat(), &tail].concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Ticket::parse(&bytes);
        let _ = set_status(&bytes, Status::Closed);
        let _ = add_note(&bytes, 0, "x");
    }

    #[test]
    fn an_edit_changes_the_one_line_and_a_note_only_adds(bytes in nearly()) {
        let Ok(ticket) = Ticket::parse(&bytes) else { return Ok(()) };
        let after = set_status(&bytes, Status::InProgress).unwrap();
        let lines = |bytes: &[u8]| bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (before_lines, after_lines) = (lines(&bytes), lines(&after));
        prop_assert_eq!(before_lines.len(), after_lines.len());
        let changed = before_lines.iter().zip(&after_lines).filter(|(a, b)| a != b).count();
        prop_assert_eq!(changed, usize::from(ticket.status != Status::InProgress));
        let again = Ticket::parse(&after).unwrap();
        prop_assert_eq!(&again, &Ticket { status: Status::InProgress, ..ticket.clone() });

        let noted = add_note(&bytes, 0, "x").unwrap();
        prop_assert!(noted.len() >= bytes.len());
        let again = Ticket::parse(&noted).unwrap();
        prop_assert_eq!((&again.id, again.status, &again.title), (&ticket.id, ticket.status, &ticket.title));
        prop_assert_eq!(again.notes.iter().filter(|note| note.is_ours()).count(), 1);
        prop_assert_eq!(add_note(&noted, 0, "x").unwrap(), noted);
    }
}
