//! Moving main while the user has it, or something else, checked out. Nothing of the user's is ever overwritten.

use super::*;

/// A task whose work changes `src/one` and adds `added`.
fn with_work(isolation: Isolation, arrange: impl FnOnce(&Folder, &Path)) -> Project {
    let project = Project::with(isolation, arrange);
    project.prepare();
    write(&project.tree().join("added"), "added\n");
    project.agent_commits("src/one", "agent\n");
    project
}

fn read(project: &Project, path: &str) -> String {
    fs::read_to_string(project.root().join(path)).unwrap()
}

#[test]
fn local_changes_in_other_files_stay_and_do_not_hold_up_a_landing() {
    let project = with_work(Isolation::Clone, |_, _| {});
    write(&project.root().join("README"), "mine\n");
    write(&project.root().join("staged"), "staged\n");
    project.git(&["add", "staged"]);
    assert_eq!(project.land(), Moved::Moved);
    assert_eq!((read(&project, "README"), read(&project, "src/one")), ("mine\n".into(), "agent\n".into()));
    assert_eq!(project.git(&["status", "--porcelain"]), " M README\nA  staged");
}

#[test]
fn local_changes_in_the_same_file_are_in_the_way_until_they_are_not() {
    let project = with_work(Isolation::Clone, |_, _| {});
    write(&project.root().join("src/one"), "mine\n");
    let (merge, old) = project.merge();
    let Moved::InTheWay { files, command, .. } = project.repository.move_main(&merge, &old).unwrap() else {
        panic!()
    };
    assert_eq!(files, ["src/one"]);
    assert_eq!(read(&project, "src/one"), "mine\n");
    assert_eq!(project.repository.main_tip().unwrap(), old);
    // The command that is given does clear the way.
    let ran = std::process::Command::new("sh")
        .args(["-c", &command])
        .env("HOME", project.folder.home())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
}

#[test]
fn whatever_kind_of_change_is_in_the_way_it_is_named_and_kept() {
    type Act = fn(&Project);
    let acts: &[(&str, &str, Act)] = &[
        ("staged", "src/one", |project| {
            write(&project.root().join("src/one"), "mine\n");
            project.git(&["add", "-A"]);
        }),
        ("staged, then put back", "src/one", |project| {
            write(&project.root().join("src/one"), "mine\n");
            project.git(&["add", "-A"]);
            write(&project.root().join("src/one"), "1\n");
        }),
        ("staged as deleted", "src/one", |project| drop(project.git(&["rm", "-q", "--cached", "src/one"]))),
        ("made executable", "src/one", |project| {
            let path = project.root().join("src/one");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("a folder in place of a file", "added", |project| {
            write(&project.root().join("added/mine"), "mine\n")
        }),
        ("a link in place of a file", "added", |project| {
            std::os::unix::fs::symlink("README", project.root().join("added")).unwrap();
        }),
    ];
    for (what, file, act) in acts {
        let project = with_work(Isolation::Clone, |_, _| {});
        let (merge, old) = project.merge();
        act(&project);
        let before = (project.git(&["status", "--porcelain", "-uall"]), project.git(&["diff", "HEAD"]));
        let answer = project.repository.move_main(&merge, &old).unwrap();
        assert!(matches!(&answer, Moved::InTheWay { files, .. } if files == &[*file]), "{what}: {answer:?}");
        let after = (project.git(&["status", "--porcelain", "-uall"]), project.git(&["diff", "HEAD"]));
        assert_eq!(before, after, "{what}");
        assert_eq!(project.repository.main_tip().unwrap(), old, "{what}");
    }
}

#[test]
fn untracked_and_ignored_files_in_the_way_are_not_overwritten() {
    for ignored in [false, true] {
        let project = with_work(Isolation::Clone, |folder, root| {
            if ignored {
                write(&root.join(".gitignore"), "added\n");
                folder.git(root, &["add", "-A"]);
                folder.git(root, &["commit", "-q", "-m", "ignore"]);
            }
        });
        if ignored {
            project.agent(&["add", "-f", "added"]);
            project.agent(&["commit", "-q", "-m", "forced"]);
        }
        write(&project.root().join("added"), "mine\n");
        let (merge, old) = project.merge();
        let Moved::InTheWay { files, .. } = project.repository.move_main(&merge, &old).unwrap() else {
            panic!()
        };
        assert_eq!(files, ["added"]);
        assert_eq!(read(&project, "added"), "mine\n");
        fs::remove_file(project.root().join("added")).unwrap();
        assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
        assert_eq!(read(&project, "added"), "added\n");
    }
}

#[test]
fn a_user_on_another_branch_notices_nothing() {
    let project = with_work(Isolation::Clone, |folder, root| {
        folder.git(root, &["checkout", "-q", "-b", "feature"]);
    });
    write(&project.root().join("src/one"), "mine\n");
    assert_eq!(project.land(), Moved::Moved);
    assert_eq!(read(&project, "src/one"), "mine\n");
    assert_eq!(project.git(&["branch", "--show-current"]), "feature");
    assert_eq!(project.git(&["show", "main:src/one"]), "agent");
}

#[test]
fn main_in_a_linked_worktree_is_moved_there() {
    let project = with_work(Isolation::Clone, |folder, root| {
        folder.git(root, &["checkout", "-q", "-b", "feature"]);
        folder.git(root, &["worktree", "add", "-q", "../linked", "main"]);
    });
    assert_eq!(project.land(), Moved::Moved);
    let linked = project.folder.path.join("linked");
    assert_eq!(fs::read_to_string(linked.join("src/one")).unwrap(), "agent\n");
    assert_eq!(project.folder.git(&linked, &["status", "--porcelain"]), "");
    assert_eq!(read(&project, "src/one"), "1\n");
    // From there, the project is the main worktree's.
    let found = find_with(&linked, Some(&project.folder.home())).unwrap();
    assert_eq!((found.root, found.bare), (project.root(), false));
}

#[test]
fn a_checkout_of_main_that_is_away_is_the_users_to_forget() {
    let project = with_work(Isolation::Clone, |folder, root| {
        folder.git(root, &["checkout", "-q", "-b", "feature"]);
        folder.git(root, &["worktree", "add", "-q", "../linked", "main"]);
    });
    let (merge, old) = project.merge();
    fs::rename(project.folder.path.join("linked"), project.folder.path.join("away")).unwrap();
    let answer = project.repository.move_main(&merge, &old).unwrap();
    assert!(
        matches!(&answer, Moved::InTheWay { command, .. } if command.ends_with("worktree prune")),
        "{answer:?}"
    );
    project.git(&["worktree", "prune"]);
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
}

#[test]
fn a_bare_repository_works_by_compare_and_swap_alone() {
    let folder = Folder::new();
    let seed = Project::new();
    let bare = folder.path.join("bare.git");
    folder.git(&folder.path, &["clone", "-q", "--bare", seed.root().to_str().unwrap(), "bare.git"]);
    let repository = folder.open(&bare, Isolation::Clone);
    assert!(repository.bare());
    assert_eq!(repository.obstacles().unwrap(), []);
    let project = Project { folder, repository };
    project.prepare();
    project.agent_commits("src/one", "agent\n");
    assert_eq!(project.land(), Moved::Moved);
    assert_eq!(project.git(&["show", "main:src/one"]), "agent");
    assert_eq!(project.repository.file_on_main("src/one").unwrap().unwrap(), b"agent\n");
    assert!(!project.repository.checkout_copy_unchanged("src/one").unwrap());
    let saved = project.repository.remove_tree(&task(), TREE, "e1").unwrap();
    assert_eq!(saved, None);
}

#[test]
fn a_main_that_was_moved_is_said_and_left_where_it_is() {
    let project = with_work(Isolation::Clone, |_, _| {});
    let (merge, old) = project.merge();
    let moved = project.user_commits("theirs", "x\n");
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::ByOther { now: moved.clone() });
    // Moved with force to somewhere else.
    project.git(&["checkout", "-q", "--orphan", "other"]);
    project.git(&["commit", "-q", "-m", "another beginning"]);
    project.git(&["branch", "-q", "-f", "main"]);
    let now = oid(&project.git(&["rev-parse", "main"]));
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::ByOther { now });
    // A main that went on from the merge has it.
    project.git(&["checkout", "-q", "-f", "main"]);
    let land = project.repository.land_dir();
    project.git(&["fetch", "-q", land.to_str().unwrap(), "+refs/adjutant/tasks/*:refs/x/*"]);
    project.git(&["reset", "-q", "--hard", old.as_str()]);
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    project.user_commits("later", "x\n");
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    assert!(project.repository.main_contains(&merge).unwrap());
    assert!(!project.repository.main_contains(&moved).unwrap());
}

/// The user switches to another branch between our look at the checkout and git's.
#[test]
fn a_branch_that_was_moved_in_mains_place_is_put_back() {
    let project = with_work(Isolation::Clone, |folder, root| {
        folder.git(root, &["branch", "feature"]);
    });
    let (merge, old) = project.merge();
    write(&project.root().join("README"), "mine\n");
    let (folder, root) = (project.folder.path.clone(), project.root());
    *locked(&project.repository.inner.before_merge) = Some(Box::new(move || {
        let switching = Folder { path: folder, _held: None };
        switching.git(&root, &["checkout", "-q", "feature"]);
        std::mem::forget(switching);
    }));
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    assert_eq!(oid(&project.git(&["rev-parse", "feature"])), old);
    assert_eq!(oid(&project.git(&["rev-parse", "main"])), merge);
    assert_eq!(project.git(&["branch", "--show-current"]), "feature");
    assert_eq!(project.git(&["status", "--porcelain"]), " M README");
    assert_eq!((read(&project, "README"), read(&project, "src/one")), ("mine\n".into(), "1\n".into()));
}

#[test]
fn a_detached_head_that_was_moved_in_mains_place_is_put_back() {
    let project = with_work(Isolation::Clone, |_, _| {});
    let (merge, old) = project.merge();
    let (folder, root) = (project.folder.path.clone(), project.root());
    *locked(&project.repository.inner.before_merge) = Some(Box::new(move || {
        let switching = Folder { path: folder, _held: None };
        switching.git(&root, &["checkout", "-q", "--detach"]);
        std::mem::forget(switching);
    }));
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    assert_eq!(oid(&project.git(&["rev-parse", "HEAD"])), old);
    assert_eq!(oid(&project.git(&["rev-parse", "main"])), merge);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// Main is set back between our look and git's: a fast-forward would bring back what the user has just taken out.
#[test]
fn a_main_that_was_set_back_meanwhile_stays_there() {
    let project = Project::new();
    project.user_commits("regretted", "x\n");
    project.prepare();
    project.agent_commits("src/one", "agent\n");
    let (merge, old) = project.merge();
    let (folder, root) = (project.folder.path.clone(), project.root());
    *locked(&project.repository.inner.before_merge) = Some(Box::new(move || {
        let switching = Folder { path: folder, _held: None };
        switching.git(&root, &["reset", "-q", "--hard", "HEAD^"]);
        std::mem::forget(switching);
    }));
    let back = oid(&project.git(&["rev-parse", "main^"]));
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::ByOther { now: back.clone() });
    assert_eq!(oid(&project.git(&["rev-parse", "main"])), back);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert!(!project.root().join("regretted").exists());
}

#[test]
fn a_locked_index_of_the_users_is_waited_for_and_never_removed() {
    let project = with_work(Isolation::Clone, |_, _| {});
    let (merge, old) = project.merge();
    let lock = project.root().join(".git/index.lock");
    write(&lock, "");
    let Moved::InTheWay { files, command, .. } = project.repository.move_main(&merge, &old).unwrap() else {
        panic!()
    };
    assert_eq!(files, [".git/index.lock"]);
    assert!(command.contains("status"), "{command}");
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
}

#[test]
fn a_merge_of_the_users_own_that_is_under_way_is_not_disturbed() {
    let project = with_work(Isolation::Clone, |folder, root| {
        folder.git(root, &["checkout", "-q", "-b", "side"]);
        write(&root.join("README"), "side\n");
        folder.git(root, &["commit", "-q", "-a", "-m", "side"]);
        folder.git(root, &["checkout", "-q", "main"]);
    });
    let (merge, old) = project.merge();
    project.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    let answer = project.repository.move_main(&merge, &old).unwrap();
    assert!(matches!(answer, Moved::InTheWay { .. }), "{answer:?}");
    assert!(project.root().join(".git/MERGE_HEAD").exists());
    assert_eq!(read(&project, "README"), "side\n");
}

/// Git refuses to end a rebase whose branch was moved by another.
#[test]
fn a_rebase_of_main_that_is_under_way_is_waited_for() {
    for linked in [false, true] {
        let project = with_work(Isolation::Clone, |_, _| {});
        let mut at = project.root();
        if linked {
            at = project.folder.path.join("linked");
            project.git(&["checkout", "-q", "--detach"]);
            project.git(&["worktree", "add", "-q", "../linked", "main"]);
        }
        let (merge, old) = project.merge();
        project.folder.git(&at, &["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--root"]);
        let Moved::InTheWay { why, command, .. } = project.repository.move_main(&merge, &old).unwrap() else {
            panic!()
        };
        assert_eq!(why, format!("a rebase of main is under way in {}", at.display()));
        assert_eq!(command, format!("git -C {} rebase --continue", at.display()));
        assert_eq!(project.repository.main_tip().unwrap(), old);
        project.folder.git(&at, &["rebase", "--continue"]);
        assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    }
}

/// Settings of the user's that change what `git merge` does.
#[test]
fn the_users_merge_options_change_nothing() {
    let project = with_work(Isolation::Clone, |folder, root| {
        folder.git(root, &["config", "branch.main.mergeOptions", "--squash --no-ff"]);
        folder.git(root, &["config", "merge.ff", "false"]);
        folder.git(root, &["config", "core.logAllRefUpdates", "false"]);
        folder.git(root, &["config", "merge.autoStash", "true"]);
    });
    write(&project.root().join("src/one"), "mine\n");
    let (merge, old) = project.merge();
    assert!(matches!(project.repository.move_main(&merge, &old).unwrap(), Moved::InTheWay { .. }));
    project.git(&["checkout", "-q", "--", "src/one"]);
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    assert_eq!(oid(&project.git(&["rev-parse", "main"])), merge);
}

#[test]
fn a_ticket_in_git_is_told_apart_from_one_that_the_user_is_at() {
    let project = Project::new();
    let unchanged = |path: &str| project.repository.checkout_copy_unchanged(path).unwrap();
    assert!(unchanged("README"));
    assert_eq!(project.repository.file_on_main("README").unwrap().unwrap(), b"hello\n");
    assert_eq!(project.repository.file_on_main("nothing").unwrap(), None);
    assert_eq!(project.repository.file_on_main("src").unwrap(), None);
    assert!(!unchanged("nothing"));
    write(&project.root().join("README"), "changed\n");
    assert!(!unchanged("README"));
    project.git(&["add", "README"]);
    write(&project.root().join("README"), "hello\n");
    assert!(!unchanged("README"), "it is staged");
}
