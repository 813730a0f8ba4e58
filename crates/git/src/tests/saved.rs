//! Nothing lost: what is saved, and getting it back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

#[test]
fn every_kind_of_file_is_kept_as_it_is() {
    let project = Project::new();
    project.prepare();
    let tree = project.tree();
    let names: &[&[u8]] = &[
        b"new\nline",
        b"quote\"and'quote",
        "ünïcode 文".as_bytes(),
        b"-leading-dash",
        b"--upload-pack=x",
        b"not utf8 \xff",
        b" spaces ",
        b"back\\slash",
        b"tab\there",
        b":(top)magic",
        b"*",
    ];
    for name in names {
        fs::write(tree.join(OsStr::from_bytes(name)), *name).unwrap();
    }
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    write(&tree.join("binary"), &binary);
    write(&tree.join("script"), "#!/bin/sh\n");
    fs::set_permissions(tree.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", tree.join("link")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    write(&tree.join("crlf"), "a\r\nb\r\n");
    fs::remove_file(tree.join("README")).unwrap();
    // A file becomes a folder, and a folder a file.
    fs::remove_file(tree.join("src/one")).unwrap();
    write(&tree.join("src/one/deeper"), "x");
    write(&tree.join(".gitignore"), "ignored\n");
    write(&tree.join("ignored"), "ignored");

    let saved = project.repository.remove_tree(&task(), TREE, "e1").unwrap().unwrap();
    assert_eq!(saved.left_out, [""; 0]);
    let back = project.folder.path.join("back");
    project.repository.restore(&saved.reference, &RestoreTo::Folder(back.clone())).unwrap();
    for name in names {
        assert_eq!(fs::read(back.join(OsStr::from_bytes(name))).unwrap(), *name, "{name:?}");
    }
    assert_eq!(fs::read(back.join("binary")).unwrap(), binary);
    assert_eq!(fs::metadata(back.join("script")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read_link(back.join("link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::read_link(back.join("dangling")).unwrap(), Path::new("nowhere"));
    assert_eq!(fs::read(back.join("crlf")).unwrap(), b"a\r\nb\r\n");
    assert_eq!(fs::read(back.join("src/one/deeper")).unwrap(), b"x");
    assert!(!back.join("README").exists() && !back.join("ignored").exists());
    // What git ignores is in the trash with the rest.
    assert!(project.repository.places().trees.join("trash/e1-A-c1/ignored").exists());
    let again = project.repository.restore(&saved.reference, &RestoreTo::Folder(back));
    assert!(matches!(again, Err(GitError::Exists { .. })), "{again:?}");
}

#[test]
fn saving_twice_for_one_effect_is_saving_once() {
    let project = Project::new();
    project.prepare();
    assert_eq!(project.repository.save(&task(), TREE, "e1").unwrap(), None, "there is nothing yet");
    write(&project.tree().join("left"), "left\n");
    let first = project.repository.save(&task(), TREE, "e1").unwrap().unwrap();
    assert_eq!(project.repository.save(&task(), TREE, "e1").unwrap().unwrap(), first);
    assert_eq!(oid(&project.git(&["rev-parse", &first.reference])), first.commit);
    // It was written down and not yet copied when the power went.
    project.git(&["update-ref", "-d", &first.reference]);
    project.repository.save(&task(), TREE, "e1").unwrap();
    assert_eq!(oid(&project.git(&["rev-parse", &first.reference])), first.commit);
    // The tree itself is as it was.
    assert_eq!(project.agent(&["status", "--porcelain"]), "?? left");
    let removed = project.repository.remove_tree(&task(), TREE, "e2").unwrap();
    assert_eq!(project.repository.remove_tree(&task(), TREE, "e2").unwrap(), removed);
    assert_eq!(project.repository.remove_tree(&task(), TREE, "e3").unwrap(), None);
}

/// Branches of its own, the stash, and commits that were reset away.
#[test]
fn every_commit_that_an_agent_made_is_held_by_what_is_saved() {
    let project = Project::new();
    project.prepare();
    let reset_away = project.agent_commits("one", "1\n");
    project.agent(&["reset", "-q", "--hard", "HEAD^"]);
    project.agent(&["checkout", "-q", "-b", "mine"]);
    let mine = project.agent_commits("two", "2\n");
    project.agent(&["checkout", "-q", BRANCH]);
    write(&project.tree().join("README"), "stashed\n");
    project.agent(&["stash", "-q"]);
    let stash = oid(&project.agent(&["rev-parse", "stash"]));
    let saved = project.repository.remove_tree(&task(), TREE, "e1").unwrap().unwrap();
    for commit in [&reset_away, &mine, &stash] {
        project.git(&["merge-base", "--is-ancestor", commit.as_str(), &saved.reference]);
    }
    assert_eq!(project.git(&["fsck", "--strict"]), "");
}

#[test]
fn saved_work_is_listed_shown_and_given_back_as_a_branch() {
    let project = Project::new();
    project.prepare();
    write(&project.tree().join("left"), "left over\n");
    write(&project.tree().join("README"), "changed\n");
    let saved = project.repository.save(&task(), TREE, "e1").unwrap().unwrap();
    let listed = project.repository.salvage().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].task.as_str(), listed[0].effect.as_str()), ("c1", "e1"));
    assert_eq!(listed[0].files, ["README", "left"]);
    assert!(listed[0].at > 1_600_000_000);
    assert!(project.repository.show_saved(&saved.reference).unwrap().contains("+left over"));
    let branch = project.repository.restore(&saved.reference, &RestoreTo::Branch(None)).unwrap();
    assert_eq!(branch, "salvage/c1-e1");
    assert_eq!(project.git(&["show", "salvage/c1-e1:left"]), "left over");
    let again = project.repository.restore(&saved.reference, &RestoreTo::Branch(None));
    assert!(matches!(again, Err(GitError::Exists { .. })), "{again:?}");
    let missing = project.repository.show_saved("refs/adjutant/salvage/c1/e2");
    assert!(matches!(missing, Err(GitError::NothingSaved { .. })), "{missing:?}");
}

#[test]
fn the_trash_is_emptied_by_age_even_where_nobody_may_write() {
    let project = Project::new();
    project.prepare();
    write(&project.tree().join("deep/file"), "x");
    fs::set_permissions(project.tree().join("deep"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink(project.root(), project.tree().join("link")).unwrap();
    project.repository.remove_tree(&task(), TREE, "e1").unwrap();
    let week = Duration::from_secs(7 * 86_400);
    assert_eq!(project.repository.sweep_trash(week, u64::MAX).unwrap(), []);
    let trash = project.repository.places().trees.join("trash");
    assert!(trash.join("e1-A-c1").exists());
    assert_eq!(project.repository.sweep_trash(week, 0).unwrap().len(), 1);
    assert_eq!(fs::read_dir(&trash).unwrap().count(), 0);
    assert!(project.root().join("README").exists());
}

#[test]
fn line_ends_are_as_the_user_wants_them() {
    let project = Project::with(Isolation::Clone, |folder, root| {
        folder.git(root, &["config", "core.autocrlf", "true"]);
        folder.git(root, &["config", "core.safecrlf", "true"]);
    });
    project.prepare();
    assert_eq!(fs::read(project.tree().join("README")).unwrap(), b"hello\r\n");
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    write(&project.tree().join("new"), "a\r\nb\r\n");
    write(&project.tree().join("mixed"), "a\r\nb\n");
    let left = project.leftovers();
    let blob = project
        .folder
        .command(&project.root())
        .args(["cat-file", "blob", &format!("{}:new", left.tip)])
        .output();
    assert_eq!(blob.unwrap().stdout, b"a\nb\n");
    assert_eq!(project.leftovers().commit, None);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
}

#[test]
fn what_the_user_excludes_everywhere_is_no_leftover() {
    let project = Project::with(Isolation::Clone, |folder, root| {
        write(&folder.path.join("home/.config/git/ignore"), "*.swp\n");
        write(&root.join(".git/info/exclude"), "local-only\n");
    });
    project.prepare();
    write(&project.tree().join("x.swp"), "x");
    write(&project.tree().join("local-only"), "x");
    assert_eq!(project.leftovers().commit, None);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    let project = Project::with(Isolation::Clone, |folder, root| {
        write(&folder.path.join("ignores"), "*.bak\n");
        folder.git(root, &["config", "core.excludesFile", folder.path.join("ignores").to_str().unwrap()]);
    });
    project.prepare();
    write(&project.tree().join("x.bak"), "x");
    assert_eq!(project.leftovers().commit, None);
}

#[test]
fn commits_are_made_in_the_users_name_or_in_ours() {
    let project = Project::with(Isolation::Clone, |folder, _| {
        write(&folder.path.join("home/.gitconfig"), "[user]\n\tname = \" \"\n");
    });
    project.prepare();
    write(&project.tree().join("left"), "x");
    let left = project.leftovers();
    let who = project.git(&["log", "-1", "--format=%cn <%ce>", left.tip.as_str()]);
    assert_eq!(who, "Adjutant <adjutant@localhost>");
    assert_eq!(project.agent(&["config", "user.email"]), "adjutant@localhost");
}

#[test]
fn a_call_that_takes_or_prints_too_much_is_ended() {
    let project = Project::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let call =
        project.repository.user("waiting for input").args(["hash-object", "--stdin"]).input_from(reader);
    let error = call.time_max(Duration::from_millis(50)).ok().unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
    drop(writer);
    let error =
        project.repository.user("printing").args(["cat-file", "-p", "HEAD"]).output_max(10).ok().unwrap_err();
    assert!(matches!(error, GitError::TooMuch { .. }), "{error}");
    let error = project.repository.user("asking").args(["cat-file", "-p", "nothing"]).ok().unwrap_err();
    assert!(error.to_string().contains("Not a valid object name"), "{error}");
}
