use super::*;
use std::fs;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/specs")
}

/// What a sample says, one line for each story and then one for each line that was not understood:
/// `key <- what it waits for`, and `number: why`.
#[track_caller]
fn check(sample: &str, path: &str, expected: &str) -> Read {
    let read = read(Path::new(path), &samples().join(sample)).unwrap_or_else(|error| panic!("{error}"));
    let mut said = format!("{}, {} done\n", read.format, read.done);
    for story in read.stories.iter().flatten() {
        said.push_str(&format!("{} {}", story.key, story.title));
        if !story.depends_on.is_empty() {
            said.push_str(&format!(" <- {}", story.depends_on.join(" ")));
        }
        said.push('\n');
    }
    for line in &read.not_understood {
        said.push_str(&format!("{}: {}\n", line.number, line.why));
    }
    let expected: String = expected.trim().lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(said, expected);
    read
}

fn story<'a>(read: &'a Read, key: &str) -> &'a Story {
    read.stories.iter().flatten().find(|story| story.key == key).expect("there is such a story")
}

/// The file of a sample after one of its stories landed.
fn ticked(sample: &str, read: &Read, key: &str) -> (String, Ticked) {
    let mark = story(read, key).mark.as_ref().expect("it has a mark");
    let content = fs::read_to_string(samples().join(sample).join(&mark.path)).unwrap();
    let ticked = tick(read.format, &Tick { mark, key, content: &content, at: 1_800_000_000 });
    (content, ticked)
}

/// The lines that differ, as `old => new`.
#[track_caller]
fn check_tick(sample: &str, read: &Read, key: &str, expected: &[(&str, &str)]) {
    let (before, after) = ticked(sample, read, key);
    let Ticked::Now(after) = after else { panic!("{after:?}") };
    assert_eq!(before.lines().count(), after.lines().count());
    let changed: Vec<(&str, &str)> = before.lines().zip(after.lines()).filter(|(a, b)| a != b).collect();
    assert_eq!(changed, expected);
    let mark = story(read, key).mark.as_ref().unwrap();
    let again = tick(read.format, &Tick { mark, key, content: &after, at: 1_900_000_000 });
    assert_eq!(again, Ticked::Before, "it is ticked once");
    // And set back, as it was before.
    let back = |from: &str, to: &str| restore(read.format, &Restore { mark, key, from, to });
    assert_eq!(back(&before, &after).as_deref(), Some(before.as_str()));
    assert_eq!(back(&after, &before).as_deref(), Some(after.as_str()));
    assert_eq!(back(&before, &before), None, "there is nothing to do");
    assert_eq!(back("", &after), None, "what is not there says nothing");
}

#[test]
fn phases_of_spec_kit_follow_each_other_and_marked_neighbours_stand_side_by_side() {
    let read = check(
        "spec-kit",
        "specs/001-clock",
        "spec-kit, 1 done
         T002 Write the Makefile
         T003 Choose a compiler
         T004 Count seconds in src/count.c <- T002 T003
         T005 Draw digits in src/draw.c <- T004
         T006 Draw the colon in src/draw.c <- T004
         T007 Show the time in src/face.c (depends on T005, T006) <- T005 T006
         T008 Ring in src/ring.c (depends on T004-T006) <- T004 T005 T006 T007
         T009 Keep the alarm (depends on T077) <- T008
         29: it waits for T077, which is not in the list
         30: the sign in this box is not known: an open one is `[ ]`, a ticked one `[x]`
         34: a task has a number such as T012 after its box",
    );
    assert_eq!((read.title.as_str(), read.name.as_str()), ("A clock for the kitchen", "001-clock"));
    let (face, count) = (story(&read, "T007"), story(&read, "T004"));
    assert_eq!(
        face.acceptance,
        [
            "Given the clock runs, When a minute passes, Then the face shows the next minute",
            "Given the power was away, When it is back, Then the face blinks"
        ]
    );
    assert_eq!(story(&read, "T005").acceptance, [""; 0], "only the last task of a user story can meet it");
    assert_eq!((face.priority, face.infrastructure), (Some(1), false));
    assert_eq!((count.priority, count.infrastructure), (None, true));
    assert!(count.body.starts_with("- overflow after a day"), "{}", count.body);
    check_tick(
        "spec-kit",
        &read,
        "T007",
        &[(
            "- [ ] T007 [US1] Show the time in src/face.c (depends on T005, T006)",
            "- [x] T007 [US1] Show the time in src/face.c (depends on T005, T006)",
        )],
    );
    // Also by one of its files, and by the folder that holds nothing else.
    for path in ["specs/001-clock/tasks.md", "specs/001-clock/spec.md", "specs"] {
        assert_eq!(super::read(Path::new(path), &samples().join("spec-kit")).unwrap().stories, read.stories);
    }
}

#[test]
fn kiro_goes_by_numbers_and_ticks_a_parent_with_its_last_child() {
    let read = check(
        "kiro",
        ".kiro/specs/lamp",
        "kiro, 2 done
         2.2 Solder it
         3 See the daylight <- 2.2
         10 Paint it <- 3
         7: there is no requirement 7.1
         10: it is optional (`[ ]*`) and not loaded
         14: a task has a number such as 2.1 after its box",
    );
    assert_eq!(
        story(&read, "2.2").acceptance,
        [
            "1.1: WHEN the button is pressed THEN the lamp SHALL light",
            "1.2: WHEN the button is pressed again THEN the lamp SHALL go out"
        ]
    );
    assert_eq!(story(&read, "3").acceptance, ["2.1: WHILE it is day THE lamp SHALL stay dark"]);
    check_tick(
        "kiro",
        &read,
        "2.2",
        &[
            ("- [ ] 2. Build the switch", "- [x] 2. Build the switch"),
            ("  - [ ] 2.2 Solder it", "  - [x] 2.2 Solder it"),
        ],
    );
    check_tick("kiro", &read, "3", &[("- [-] 3. See the daylight", "- [x] 3. See the daylight")]);
}

#[test]
fn cc_sdd_adds_what_stands_side_by_side_and_what_is_waited_for() {
    let read = check(
        "cc-sdd",
        ".kiro",
        "kiro, 0 done
         1.1 Cut the wood
         1.2 Plane it <- 1.1
         1.3 Oil the hinges <- 1.1
         2.1 Glue the boards <- 1.1 1.2 1.3
         2.2 Hang it <- 1.1 1.2 1.3 2.1",
    );
    check_tick("cc-sdd", &read, "2.2", &[("- [ ] 2.2 Hang it (P)", "- [x] 2.2 Hang it (P)")]);
}

#[test]
fn tasks_of_a_change_are_a_chain_and_its_scenarios_belong_to_the_last() {
    let read = check(
        "openspec",
        "openspec",
        "openspec, 1 done
         1.2 Quote fields
         2.1 Add the command <- 1.2
         line-10 Tell people <- 2.1",
    );
    assert_eq!((read.title.as_str(), read.name.as_str()), ("Export as CSV", "add-export"));
    let last = story(&read, "line-10");
    assert_eq!(last.acceptance, ["Quoting, A comma: WHEN a field has a comma THEN it is quoted"]);
    check_tick("openspec", &read, "1.2", &[("- [ ] 1.2 Quote fields", "- [x] 1.2 Quote fields")]);
}

#[test]
fn stories_of_an_epic_follow_each_other_and_the_sprint_says_what_is_done() {
    let expected = "bmad, 1 done
         1.2 Bring it back
         1.3 Pay the fine <- 1.2
         2.1 Look for a title
         11: `parked` is no status that is known: it is taken as open";
    let read = check("bmad", "docs/planning-artifacts/epics.md", expected);
    assert_eq!(read.title, "A library of books");
    assert_eq!(
        story(&read, "1.2").acceptance,
        ["The book is on the shelf again", "The reader has none"],
        "the story's own file says it"
    );
    check_tick(
        "bmad",
        &read,
        "1.2",
        &[("  1-2-bring-it-back: ready-for-dev # soon", "  1-2-bring-it-back: done # soon")],
    );
    for path in ["docs", "docs/implementation-artifacts/sprint-status.yaml", "docs/planning-artifacts"] {
        check("bmad", path, expected);
    }
}

#[test]
fn given_when_and_then_are_one_criterion() {
    let folder = tempfile::tempdir().unwrap();
    let epics = fs::read_to_string(samples().join("bmad/docs/planning-artifacts/epics.md")).unwrap();
    fs::write(folder.path().join("epics.md"), epics).unwrap();
    let read = super::read(Path::new("epics.md"), folder.path()).unwrap();
    let first = story(&read, "1.1");
    assert_eq!(
        first.acceptance,
        [
            "Given a book on the shelf When I take it Then it is mine And the shelf is empty",
            "Given no book When I reach out Then nothing happens"
        ]
    );
    assert_eq!(first.mark, None, "nothing says how far it is");
    assert!(first.body.starts_with("As a reader,"), "{}", first.body);
    assert!(!first.body.contains("Given"), "{}", first.body);
}

#[test]
fn subtasks_stand_for_their_task_and_what_is_put_off_is_not_loaded() {
    let read = check(
        "task-master",
        ".taskmaster",
        "task-master, 2 done
         2.2 Set them
         3 Water <- 2.2
         1: only the tag `master` is read; `task-master use-tag` chooses another
         38: it waits for 4, which is taken as met: it is cancelled
         44: it is cancelled
         50: it is deferred
         56: it waits for a task that is not loaded",
    );
    assert_eq!(story(&read, "3").acceptance, ["The ground is wet, and stays so."]);
    assert!(story(&read, "2.2").body.contains("Put trees into the ground."));
    check_tick(
        "task-master",
        &read,
        "2.2",
        &[
            (r#"        "status": "pending","#, r#"        "status": "done","#),
            (r#"            "status": "pending","#, r#"            "status": "done","#),
        ],
    );
    check_tick(
        "task-master",
        &read,
        "3",
        &[(r#"        "status": "pending","#, r#"        "status": "done","#)],
    );
}

#[test]
fn beads_wait_for_what_blocks_them_and_epics_stand_for_their_children() {
    let read = check(
        "beads",
        ".beads",
        "beads, 1 done
         b-2 Pillars <- b-5
         b-3 Deck <- b-2 b-5
         b-4 Open it <- b-2 b-3
         b-5 Permission
         b-6 Ferry <- b-2
         b-7 Count cars <- b-8 b-10
         b-8 Paint <- b-10
         b-10 Railing of the paint",
    );
    assert_eq!(story(&read, "b-2").acceptance, ["They stand", "They are dry"]);
    assert_eq!(story(&read, "b-2").priority, Some(0));
    assert!(story(&read, "b-6").body.contains("only wanted if b-2 fails"));
    let (before, after) = ticked("beads", &read, "b-2");
    let Ticked::Now(after) = after else { panic!("{after:?}") };
    let line = before.lines().nth(2).unwrap();
    let closed = line
        .replace(r#""status":"open""#, r#""status":"closed","closed_at":"2027-01-15T08:00:00Z""#)
        .replace("2026-01-01T00:00:00Z", "2027-01-15T08:00:00Z");
    assert_eq!(after, before.replace(line, &closed));
    let mark = story(&read, "b-2").mark.as_ref().unwrap();
    let again = Tick { mark, key: "b-2", content: &after, at: 1 };
    assert_eq!(tick("beads", &again), Ticked::Before);
    let back = Restore { mark, key: "b-2", from: &before, to: &after };
    assert_eq!(restore("beads", &back).as_deref(), Some(before.as_str()));
    let noted = before.replace(line, &line.replace("Pillars", "Pillars of stone"));
    let back = Restore { mark, key: "b-2", from: &before, to: &noted };
    assert_eq!(restore("beads", &back), None, "what is not about its state is not a mark");
}

#[test]
fn boxes_of_plain_markdown_are_tasks_and_prose_has_none() {
    let read = check(
        "markdown",
        "boxes.md",
        "markdown, 1 done
         line-7 Sharpen the spade
         line-11 Look at the [map](map.md)
         19: a box below this heading is a criterion and no task",
    );
    assert!(story(&read, "line-7").body.starts_with("- [ ] both sides\n- then oil it"));
    check_tick("markdown", &read, "line-7", &[("- [ ] Sharpen the spade", "- [x] Sharpen the spade")]);
    let points = check(
        "markdown",
        "points.md",
        "markdown, 0 done
         line-5 Cover the roses
         line-7 Empty the pump",
    );
    assert_eq!(story(&points, "line-5").mark, None);
    let prose = super::read(Path::new("prose.md"), &samples().join("markdown")).unwrap();
    assert_eq!((prose.stories, prose.title.as_str()), (None, "A pond"));
}

/// Every sample is in the repository that the spec came from: nothing is ticked but the line that was read.
#[test]
fn a_line_that_changed_or_stands_there_twice_is_not_ticked() {
    let mark = Mark { path: "x.md".into(), line: "- [ ] one".into() };
    let check = |content: &str, expected: Ticked| {
        assert_eq!(tick("markdown", &Tick { mark: &mark, key: "line-1", content, at: 0 }), expected);
    };
    check("a\r\n- [ ] one\r\nb", Ticked::Now("a\r\n- [x] one\r\nb".into()));
    check("- [ ] one", Ticked::Now("- [x] one".into()));
    check("- [x] one\n", Ticked::Before);
    check("- [ ] one more\n", Ticked::No("the line is not there as it was read"));
    check("- [ ] one\n- [ ] one\n", Ticked::No("the line stands there more than once"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.md"), "- [ ] one\n- [ ] one\n").unwrap();
    let read = super::read(Path::new("x.md"), folder.path()).unwrap();
    assert!(read.stories.unwrap().iter().all(|story| story.mark.is_none()));
    assert_eq!(read.not_understood.len(), 2);
}

/// One file of these bytes, and what is said of it.
#[track_caller]
fn refused(path: &str, bytes: &[u8], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, bytes).unwrap();
    let error = super::read(Path::new(path), folder.path()).unwrap_err().to_string();
    assert_eq!(error, expected);
}

#[test]
fn what_cannot_be_read_is_said_with_its_file_and_line() {
    refused("a.md", b"# One\n\xff\n", "a.md:2: this is not UTF-8; save the file as UTF-8");
    refused("a.md", &vec![b'a'; SPEC_BYTES_MAX + 1], "a.md is larger than 524288 bytes; split it");
    refused("a.md", b" \n", "a.md has no tasks");
    refused("a.md", b"- [x] one\n", "a.md: nothing is left to do: all 1 tasks are done");
    let json = ".taskmaster/tasks/tasks.json";
    refused(
        json,
        b"{\n\"master\": {\"tasks\": [}\n}",
        ".taskmaster/tasks/tasks.json:2: this is no list of tasks: expected value at line 2 column 22",
    );
    refused(
        json,
        b"{\n\"master\": {\n\"tasks\": [{\"title\": \"no id\"}]}\n}",
        ".taskmaster/tasks/tasks.json:3: this is no list of tasks: tag `master`: missing field `id` at line 2 column 28, counted from line 2",
    );
    refused(json, b"{}", ".taskmaster/tasks/tasks.json has no tasks");
    refused(
        ".beads/issues.jsonl",
        b"{\"id\":\"a\",\"title\":\"b\"}\n{\n",
        ".beads/issues.jsonl:2: this is no issue: EOF while parsing an object at line 1 column 1",
    );
    refused(
        "sprint-status.yaml",
        b"development_status:\n  1-1-a: [done]\n",
        "sprint-status.yaml:2: a status is one word, such as `ready-for-dev`",
    );
    refused(
        "specs/001-a/tasks.md",
        b"- [ ] T001 one (depends on T002)\n- [ ] T002 two\n",
        "specs/001-a/tasks.md: the dependencies go round: T001 → T002 → T001",
    );
    refused("specs/001-a/tasks.md", b"# Tasks\n", "specs/001-a/tasks.md has no tasks");
}

#[test]
fn a_path_that_leads_out_of_the_repository_is_refused() {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("a.md"), "- [ ] one\n").unwrap();
    std::os::unix::fs::symlink(outside.path().join("a.md"), inside.path().join("link.md")).unwrap();
    fs::create_dir_all(inside.path().join("specs/001-a")).unwrap();
    let tasks = inside.path().join("specs/001-a/tasks.md");
    std::os::unix::fs::symlink(outside.path().join("a.md"), tasks).unwrap();
    for path in [Path::new("link.md"), &outside.path().join("a.md"), Path::new("specs/001-a")] {
        let error = super::read(path, inside.path()).unwrap_err();
        assert!(matches!(error, ReadError::Outside { .. }), "{}: {error}", path.display());
    }
    let missing = super::read(Path::new("none.md"), inside.path()).unwrap_err();
    assert!(matches!(missing, ReadError::Missing { .. }), "{missing}");
    let folder = super::read(Path::new("."), inside.path()).unwrap_err();
    assert!(matches!(folder, ReadError::NoFormat { .. }), "{folder}");
    fs::create_dir(inside.path().join("specs/002-b")).unwrap();
    let several = super::read(Path::new("specs"), inside.path()).unwrap_err();
    assert!(matches!(several, ReadError::Several { .. }), "{several}");
}
