//! Merges, and what is looked at before them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;

const AT: i64 = 1_700_000_000;

#[test]
fn the_same_merge_has_the_same_id() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("new", "new\n");
    let tip = project.take_tip().tip;
    let main = project.repository.main_tip().unwrap();
    let once = project.repository.merge(&main, &tip, "Land", &[], AT).unwrap();
    assert_eq!(project.repository.merge(&main, &tip, "Land", &[], AT).unwrap(), once);
    let Merged::Clean { commit, tree, .. } = once else { panic!("{once:?}") };
    assert_eq!(project.repository.tree_of(&commit).unwrap(), tree);
    project.repository.keep("c1.1", &commit).unwrap();
    assert_eq!(project.repository.land_reference("refs/adjutant/merges/c1.1").unwrap(), Some(commit));
}

#[test]
fn a_conflict_names_its_files_once() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("src/one", "agent\n");
    project.agent_commits("src/two", "agent\n");
    project.agent_commits("fine", "fine\n");
    project.user_commits("src/one", "user\n");
    project.git(&["rm", "-q", "src/two"]);
    project.git(&["commit", "-q", "-m", "gone"]);
    let tip = project.take_tip().tip;
    let main = project.repository.main_tip().unwrap();
    let merged = project.repository.merge(&main, &tip, "Land", &[], AT).unwrap();
    assert_eq!(
        merged,
        Merged::Conflict { files: vec!["src/one".to_owned(), "src/two".to_owned()], dropped: Vec::new() }
    );
}

/// Where both sides add to a list, `merge=union` keeps both; an agent does not get to say so for main.
#[test]
fn files_are_merged_as_mains_attributes_say() {
    let project = Project::with(Isolation::Clone, |folder, root| {
        write(&root.join(".gitattributes"), "list merge=union\n");
        write(&root.join("list"), "begun\n");
        write(&root.join("plain"), "begun\n");
        folder.git(root, &["add", "-A"]);
        folder.git(root, &["commit", "-q", "-m", "a list"]);
    });
    project.prepare();
    write(&project.tree().join("list"), "begun\nagent\n");
    write(&project.tree().join(".gitattributes"), "* merge=union\n");
    let tip = project.agent_commits("work", "work\n");
    let main = project.user_commits("list", "begun\nuser\n");
    project.take_tip();
    project.repository.main_tip().unwrap();
    let commit = match project.repository.merge(&main, &tip, "Land", &[], AT).unwrap() {
        Merged::Clean { commit, .. } => commit,
        // Before that version git cannot be told, and the agent has to merge.
        Merged::Conflict { .. } if !is_since(&project, 2, 43) => return,
        other => panic!("{other:?}"),
    };
    let merged = project.repository.file_in(&commit, "list").unwrap().unwrap();
    let mut lines: Vec<&str> = std::str::from_utf8(&merged).unwrap().lines().collect();
    lines.sort();
    assert_eq!(lines, ["agent", "begun", "user"]);
    project.agent_commits("plain", "agent\n");
    let main = project.user_commits("plain", "user\n");
    let tip = project.take_tip().tip;
    project.repository.main_tip().unwrap();
    let merged = project.repository.merge(&main, &tip, "Land", &[], AT).unwrap();
    assert_eq!(merged, Merged::Conflict { files: vec!["plain".to_owned()], dropped: Vec::new() });
}

fn is_since(project: &Project, major: u32, minor: u32) -> bool {
    let version = project.git(&["version"]);
    let numbers = version.trim_start_matches("git version ").split('.');
    let numbers: Vec<u32> = numbers.take(2).map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1]) >= (major, minor)
}

#[test]
fn a_history_of_its_own_is_a_conflict_without_files() {
    let project = Project::new();
    project.prepare();
    project.agent(&["checkout", "-q", "--orphan", "new-beginning"]);
    let tip = project.agent_commits("new", "new\n");
    // The branch that it left has nothing of its own, and the new one counts.
    assert_eq!(project.take_tip().tip, tip);
    let main = project.repository.main_tip().unwrap();
    let merged = project.repository.merge(&main, &tip, "Land", &[], AT).unwrap();
    assert_eq!(merged, Merged::Conflict { files: Vec::new(), dropped: Vec::new() });
    assert_eq!(project.repository.inspect(&tip, &main, None).unwrap().changed, ["new"]);
}

#[test]
fn what_main_has_already_is_nothing_to_merge() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("new", "new\n");
    assert_eq!(project.land(), Moved::Moved);
    let main = project.repository.main_tip().unwrap();
    assert_eq!(project.repository.merge(&main, &tip, "Land", &[], AT).unwrap(), Merged::Nothing);
    // The same change by other commits is still a merge: the task's commits become part of main.
    let base = project.git(&["rev-parse", "main^1"]);
    project.agent(&["reset", "-q", "--hard", &base]);
    project.agent_commits("new", "new\n");
    project.agent(&["commit", "-q", "--amend", "-m", "another"]);
    let tip = project.take_tip().tip;
    let merged = project.repository.merge(&main, &tip, "Land", &[], AT).unwrap();
    assert!(matches!(merged, Merged::Clean { .. }), "{merged:?}");
}

#[test]
fn edits_travel_in_the_merge_and_change_nothing_else() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("new", "new\n");
    let tip = project.take_tip().tip;
    let main = project.repository.main_tip().unwrap();
    let edit = |path: &str, change: fn(Option<&[u8]>) -> Option<Vec<u8>>| Edit {
        path: path.to_owned(),
        change: Box::new(change),
        merged_as: None,
    };
    let edits = [
        edit("tickets/deep/c1.md", |before| before.is_none().then(|| b"closed\n".to_vec())),
        edit("README", |before| before.is_some().then(|| b"edited\n".to_vec())),
        edit("new", |merged| Some(merged?.to_ascii_uppercase())),
        edit("src/one", |_| None),
    ];
    let merged = project.repository.merge(&main, &tip, "Land", &edits, AT).unwrap();
    let Merged::Clean { commit, .. } = merged else { panic!("{merged:?}") };
    assert_eq!(project.repository.move_main(&commit, &main).unwrap(), Moved::Moved);
    let changed = project.git(&["diff", "--name-only", main.as_str(), "main"]);
    assert_eq!(changed, "README\nnew\ntickets/deep/c1.md");
    assert_eq!(project.git(&["show", "main:new"]), "NEW", "what the branch brings is what is changed");
    assert_eq!(project.git(&["fsck", "--strict"]), "");
    let bad = [edit("../out", |_| None)];
    assert!(project.repository.merge(&commit, &project.agent_commits("x", "x"), "Land", &bad, AT).is_err());
}

#[test]
fn an_inspection_says_what_a_branch_changes() {
    let project = Project::with(Isolation::Clone, |folder, root| {
        write(&root.join("marked"), "<<<<<<< a drawing\n>>>>>>> kept\n");
        write(&root.join("tickets/c1.md"), "---\nstatus: open\n---\n");
        folder.git(root, &["add", "-A"]);
        folder.git(root, &["commit", "-q", "-m", "more"]);
    });
    project.prepare();
    let main = project.repository.main_tip().unwrap();
    let nothing = project.repository.inspect(&main, &main, Some("tickets")).unwrap();
    assert_eq!(nothing, Inspection { empty: true, ..Inspection::default() });
    for (path, content) in [
        ("broken", "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n"),
        ("marked", "<<<<<<< a drawing\n>>>>>>> kept\nmore\n"),
        ("one-side", "<<<<<<< only\n"),
        (".gitattributes", "broken binary -diff -text\n"),
        ("adjutant.toml", "main = \"x\"\n"),
        ("tickets/c1.md", "---\nstatus: closed\n---\n"),
        ("ticketsnot/c1.md", "x\n"),
        ("agents/A-c2/x", "x\n"),
        ("src/agents/x", "x\n"),
        ("binary", "\0<<<<<<< a\n>>>>>>> b\n"),
    ] {
        write(&project.tree().join(path), content);
    }
    project.agent(&["add", "-A", "-f"]);
    project.agent(&["commit", "-q", "-m", "all"]);
    // What main does meanwhile is not the branch's doing.
    project.user_commits("elsewhere", "x\n");
    let tip = project.take_tip().tip;
    let main = project.repository.main_tip().unwrap();
    let seen = project.repository.inspect(&tip, &main, Some("tickets/")).unwrap();
    assert_eq!(seen.conflict_markers, [("broken".to_owned(), 2)]);
    assert_eq!(seen.tickets_changed, ["tickets/c1.md"]);
    assert!(seen.touches_config && !seen.empty);
    assert_eq!(seen.changed.len(), 10);
    assert!(!project.repository.diff(&tip, &main).unwrap().contains("elsewhere"));
    assert!(project.repository.diff_stat(&tip, &main).unwrap().contains("tickets/c1.md"));
}

/// Of the tickets only the keys of those that main has are ours: text and new tickets are work like any other.
#[test]
fn files_that_are_not_the_agents_to_change_are_put_back() {
    let ticket = |status: &str, text: &str| format!("---\nid: x\nstatus: {status}\n---\n{text}\n");
    let project = Project::with(Isolation::Clone, |folder, root| {
        for name in ["c1", "c2", "c3", "c4", "link"] {
            write(&root.join(format!("tickets/{name}.md")), ticket("open", "before"));
        }
        write(&root.join("tickets/README"), "no ticket\n");
        folder.git(root, &["add", "-A"]);
        folder.git(root, &["commit", "-q", "-m", "tickets"]);
    });
    project.prepare();
    let at = |name: &str| project.tree().join("tickets").join(name);
    write(&at("c1.md"), ticket("closed", "after"));
    write(&at("c2.md"), ticket("open", "after"));
    write(&at("c3.md"), "no ticket any more\n");
    fs::remove_file(at("c4.md")).unwrap();
    fs::remove_file(at("link.md")).unwrap();
    std::os::unix::fs::symlink("c2.md", at("link.md")).unwrap();
    write(&at("new.md"), ticket("closed", "made up"));
    write(&at("README"), "changed\n");
    // A name that is no text.
    write(&project.tree().join(OsStr::from_bytes(b"tickets/\xff.md")), "made up\n");
    let tip = project.agent_commits("work", "work\n");
    let main = project.repository.main_tip().unwrap();
    project.take_tip();
    let seen = project.repository.inspect(&tip, &main, Some("tickets")).unwrap();
    assert_eq!(seen.tickets_changed, ["tickets/c1.md", "tickets/c3.md", "tickets/c4.md", "tickets/link.md"]);
    let put_back =
        || project.repository.put_back(&task(), TREE, BRANCH, &main, Some("tickets"), "Not theirs");
    let tip = put_back().unwrap();
    let seen = project.repository.inspect(&tip, &main, Some("tickets")).unwrap();
    assert_eq!(
        seen.changed,
        ["tickets/README", "tickets/c1.md", "tickets/c2.md", "tickets/new.md", "tickets/\u{fffd}.md", "work"]
    );
    assert!(seen.tickets_changed.is_empty(), "{:?}", seen.tickets_changed);
    assert_eq!(oid(&project.agent(&["rev-parse", "HEAD"])), tip);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(at("c1.md")).unwrap(), ticket("open", "after"));
    assert_eq!(fs::read_to_string(at("c3.md")).unwrap(), ticket("open", "before"));
    assert_eq!(fs::read_to_string(at("new.md")).unwrap(), ticket("closed", "made up"));
    assert_eq!(project.leftovers().commit, None);
    assert_eq!(put_back().unwrap(), tip);
}

#[test]
fn a_test_tree_holds_exactly_the_commit_whatever_ran_there_before() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("new", "new\n");
    let tip = project.take_tip().tip;
    let main = project.repository.main_tip().unwrap();
    let folder = project.repository.test_tree(&tip, "slot-1").unwrap();
    assert_eq!(fs::read_to_string(folder.join("new")).unwrap(), "new\n");
    assert_eq!(project.folder.git(&folder, &["rev-parse", "--show-toplevel"]), folder.display().to_string());
    // A test run that leaves everything in a mess.
    write(&folder.join("README"), "scribbled\n");
    write(&folder.join("cache/x"), "x\n");
    write(&folder.join(".gitignore"), "cache\n");
    fs::remove_dir_all(folder.join("src")).unwrap();
    std::os::unix::fs::symlink(project.root(), folder.join("src")).unwrap();
    fs::remove_dir_all(folder.join(".git")).unwrap();
    std::os::unix::fs::symlink(project.root().join(".git"), folder.join(".git")).unwrap();
    let folder = project.repository.test_tree(&main, "slot-1").unwrap();
    assert_eq!(project.folder.git(&folder, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(oid(&project.folder.git(&folder, &["rev-parse", "HEAD"])), main);
    assert!(!folder.join("new").exists());
    assert!(!folder.join("cache").exists(), "what only the tests' own `.gitignore` hid is gone");
    assert_eq!(fs::read_to_string(project.root().join("src/one")).unwrap(), "1\n");
    // Its index is gone, or rubbish: it is made anew.
    fs::write(project.repository.index(".landing-slot-1"), "rubbish").unwrap();
    let folder = project.repository.test_tree(&tip, "slot-1").unwrap();
    assert_eq!(project.folder.git(&folder, &["status", "--porcelain", "--ignored"]), "");
}

/// A program that signs as gpg does, each time with another signature.
fn signer(folder: &Folder) -> PathBuf {
    let program = folder.path.join("sign.sh");
    write(
        &program,
        "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho '-----BEGIN PGP SIGNATURE-----'\necho\n\
         od -An -N8 -tx1 /dev/urandom\necho '-----END PGP SIGNATURE-----'\n",
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn signs(folder: &Folder, program: &Path) {
    let path = folder.home().join(".gitconfig");
    let more = format!("[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {}\n", program.display());
    write(&path, fs::read_to_string(&path).unwrap() + &more);
}

/// No two signatures are the same, and yet the merge that is made again after a crash is the one that was made.
#[test]
fn a_signed_merge_has_the_same_id_when_it_is_made_again() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("new", "new\n");
    let tip = project.take_tip().tip;
    signs(&project.folder, &signer(&project.folder));
    let main = project.repository.main_tip().unwrap();
    let merge = |repository: &Repository| match repository.merge(&main, &tip, "Land", &[], AT).unwrap() {
        Merged::Clean { commit, .. } => commit,
        other => panic!("{other:?}"),
    };
    let once = merge(&project.repository);
    // Another process, which knows only what is on disk.
    assert_eq!(merge(&project.folder.open(&project.root(), Isolation::Clone)), once);
    let text =
        project.repository.land("reading a commit").args(["cat-file", "commit", once.as_str()]).ok().unwrap();
    assert!(String::from_utf8_lossy(&text).contains("gpgsig -----BEGIN PGP SIGNATURE-----"));
}

/// Where agents share the repository's settings, those name no program that signs for the person.
#[test]
fn an_agents_settings_choose_no_program_that_signs() {
    let project = Project::with(Isolation::Worktree, |_, _| {});
    project.prepare();
    project.agent_commits("new", "new\n");
    let tip = project.take_tip().tip;
    signs(&project.folder, &signer(&project.folder));
    let canary = write_canary(&project.folder.path);
    for key in ["gpg.program", "gpg.openpgp.program"] {
        project.agent(&["config", key, &canary.display().to_string()]);
    }
    let main = project.repository.main_tip().unwrap();
    assert!(matches!(project.repository.merge(&main, &tip, "Land", &[], AT).unwrap(), Merged::Clean { .. }));
    assert!(!project.folder.path.join("canary").exists());
}

/// Work is to land on another branch from now on: what main was until then was not taken off it.
#[test]
fn another_branch_as_main_has_dropped_nothing() {
    let project = Project::new();
    project.git(&["branch", "next"]);
    let main = project.user_commits("more", "more\n");
    project.prepare();
    let places = Places { main: "next".to_owned(), ..project.repository.places().clone() };
    let repository = Repository::open_with(places, Some(&project.folder.home())).unwrap();
    let next = repository.main_tip().unwrap();
    assert_eq!(repository.commits_of(&main, &next).unwrap(), [(main, "more".to_owned())]);
}
