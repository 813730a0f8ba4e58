//! Trees and branches: made, found again, published, and left to the user where they are the user's.

use super::*;

#[test]
fn a_branch_that_the_user_moved_deleted_or_checked_out_is_theirs() {
    let project = Project::new();
    project.prepare();
    let first = project.agent_commits("one", "1\n");
    assert_eq!(project.take_tip().branch, Published::As(BRANCH.to_owned()));
    // Checked out: not moved under the user's feet, and moved again afterwards.
    project.git(&["checkout", "-q", BRANCH]);
    let second = project.agent_commits("two", "2\n");
    assert_eq!(
        project.take_tip().branch,
        Published::CheckedOut { name: BRANCH.to_owned(), at: project.root() }
    );
    assert_eq!(oid(&project.git(&["rev-parse", BRANCH])), first);
    assert_eq!(oid(&project.git(&["rev-parse", "refs/adjutant/tasks/c1"])), second);
    assert_eq!(
        project.repository.delete_branch(&task(), BRANCH).unwrap(),
        BranchDeleted::CheckedOut { at: project.root() }
    );
    project.git(&["checkout", "-q", "main"]);
    assert_eq!(project.take_tip().branch, Published::As(BRANCH.to_owned()));
    assert_eq!(oid(&project.git(&["rev-parse", BRANCH])), second);
    // Moved by the user.
    let main = oid(&project.git(&["rev-parse", "main"]));
    project.git(&["branch", "-q", "-f", BRANCH, "main"]);
    let third = project.agent_commits("three", "3\n");
    let theirs = Published::MovedByUser { name: BRANCH.to_owned(), now: main.clone() };
    assert_eq!(project.take_tip().branch, theirs);
    assert_eq!(oid(&project.git(&["rev-parse", "refs/adjutant/tasks/c1"])), third);
    assert_eq!(
        project.repository.delete_branch(&task(), BRANCH).unwrap(),
        BranchDeleted::MovedByUser { now: main }
    );
    // Deleted by the user.
    project.git(&["branch", "-q", "-D", BRANCH]);
    project.agent_commits("four", "4\n");
    assert_eq!(project.take_tip().branch, Published::DeletedByUser { name: BRANCH.to_owned() });
    assert_eq!(project.repository.delete_branch(&task(), BRANCH).unwrap(), BranchDeleted::WasGone);
}

#[test]
fn a_branch_called_agent_is_worked_around() {
    for isolation in [Isolation::Clone, Isolation::Worktree] {
        let project = Project::with(isolation, |folder, root| {
            folder.git(root, &["branch", "agent"]);
        });
        project.prepare();
        let tip = project.agent_commits("one", "1\n");
        let taken = project.take_tip();
        assert_eq!(taken, Taken { tip: tip.clone(), branch: Published::As("agent-A-c1".to_owned()) });
        assert_eq!(oid(&project.git(&["rev-parse", "agent-A-c1"])), tip);
        project.repository.remove_tree(&task(), TREE, "e1").unwrap();
        assert_eq!(project.repository.delete_branch(&task(), BRANCH).unwrap(), BranchDeleted::Deleted);
        assert_eq!(project.git(&["branch", "--format=%(refname:short)"]), "agent\nmain");
    }
}

/// A crash between showing a tip and writing down that it was shown.
#[test]
fn a_tip_that_was_shown_before_a_crash_is_known_to_be_ours() {
    let project = Project::new();
    project.prepare();
    let first = project.agent_commits("one", "1\n");
    project.take_tip();
    project.agent_commits("two", "2\n");
    project.take_tip();
    let record = "refs/adjutant/published/c1";
    project.repository.set_in_land(record, &first).unwrap();
    let third = project.agent_commits("three", "3\n");
    assert_eq!(project.take_tip().branch, Published::As(BRANCH.to_owned()));
    assert_eq!(oid(&project.git(&["rev-parse", BRANCH])), third);
}

#[test]
fn our_own_reference_is_put_right_and_what_was_put_there_is_kept() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("one", "1\n");
    project.take_tip();
    let theirs = project.user_commits("theirs", "x\n");
    project.git(&["update-ref", "refs/adjutant/tasks/c1", "main"]);
    let tip = project.agent_commits("two", "2\n");
    project.take_tip();
    assert_eq!(oid(&project.git(&["rev-parse", "refs/adjutant/tasks/c1"])), tip);
    assert_eq!(oid(&project.git(&["rev-parse", &format!("refs/adjutant/found/c1/{theirs}")])), theirs);
}

#[test]
fn a_tree_that_is_gone_is_made_again_on_the_saved_tip() {
    for isolation in [Isolation::Clone, Isolation::Worktree] {
        let project = Project::with(isolation, |_, _| {});
        project.prepare();
        let tip = project.agent_commits("one", "1\n");
        project.take_tip();
        fs::remove_dir_all(project.tree()).unwrap();
        assert_eq!(project.repository.look(&task(), TREE, BRANCH).unwrap(), TreeFound::Missing);
        assert_eq!(project.prepare(), tip);
        assert_eq!(project.agent(&["status", "--porcelain"]), "");
        assert_eq!(project.agent(&["branch", "--show-current"]), BRANCH);
        assert_eq!(project.repository.look(&task(), TREE, BRANCH).unwrap(), TreeFound::Clean { tip });
    }
}

#[test]
fn preparing_again_changes_nothing_but_the_main_to_merge_with() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("one", "1\n");
    write(&project.tree().join("README"), "at work\n");
    let main = project.user_commits("theirs", "x\n");
    assert_eq!(project.prepare(), tip);
    assert_eq!(project.agent(&["status", "--porcelain"]), " M README");
    assert_eq!(oid(&project.agent(&["rev-parse", "origin/main"])), main);
    project.agent(&["stash", "-q"]);
    project.agent(&["merge", "-q", "origin/main"]);
    assert_eq!(fs::read_to_string(project.tree().join("theirs")).unwrap(), "x\n");
}

#[test]
fn an_agents_clone_has_no_way_to_the_users_repository() {
    let project = Project::new();
    project.prepare();
    assert_eq!(project.agent(&["remote"]), "");
    let git_dir = project.tree().join(".git");
    assert!(fs::symlink_metadata(&git_dir).unwrap().is_dir());
    let users = project.root().join(".git").display().to_string();
    let mut folders = vec![git_dir];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let content = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
                assert!(!content.contains(&users), "{} names it", entry.path().display());
            }
        }
    }
    // The project can be moved together with its trees, and the clone finds its objects.
    let moved = project.folder.path.join("moved");
    fs::create_dir(&moved).unwrap();
    for name in ["project", "project.agents"] {
        fs::rename(project.folder.path.join(name), moved.join(name)).unwrap();
    }
    assert_eq!(project.folder.git(&moved.join("project.agents").join(TREE), &["fsck"]), "");
}

/// A disk may have another number each time that the system starts.
#[test]
fn a_tree_is_known_again_on_a_disk_that_is_mounted_as_another_device() {
    let project = Project::new();
    project.prepare();
    let committed = project.agent_commits("one", "1\n");
    let record = project.repository.places().state.join(format!("trees/{TREE}.json"));
    let mut known: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    known["directory"][0] = serde_json::json!(4_711);
    fs::write(&record, known.to_string()).unwrap();
    assert_eq!(project.prepare(), committed);
    project.repository.remove_tree(&task(), TREE, "e9").unwrap();
    assert!(!project.tree().exists());
}

#[test]
fn what_was_not_made_by_us_is_neither_used_nor_removed() {
    let project = Project::new();
    write(&project.tree().join("precious"), "x");
    let prepared = project.repository.prepare_tree(&task(), TREE, BRANCH);
    assert!(matches!(prepared, Err(GitError::NotOurs { .. })), "{prepared:?}");
    let removed = project.repository.remove_tree(&task(), TREE, "e1");
    assert!(matches!(removed, Err(GitError::NotOurs { .. })), "{removed:?}");
    // Nor what someone put in the place of a tree of ours, nor another task's.
    fs::remove_dir_all(project.tree()).unwrap();
    project.prepare();
    let other = TaskId::new("c2").unwrap();
    assert!(project.repository.remove_tree(&other, TREE, "e1").is_err());
    fs::rename(project.tree(), project.folder.path.join("away")).unwrap();
    write(&project.tree().join("precious"), "x");
    assert!(project.repository.remove_tree(&task(), TREE, "e1").is_err());
    fs::remove_dir_all(project.tree()).unwrap();
    std::os::unix::fs::symlink(project.folder.path.join("away"), project.tree()).unwrap();
    assert!(project.repository.remove_tree(&task(), TREE, "e1").is_err());
    assert!(project.folder.path.join("away/README").exists());
}

#[test]
fn what_was_half_made_goes_when_the_fleet_starts_also_where_nobody_makes_it_again() {
    let project = Project::new();
    let trees = &project.repository.places().trees;
    write(&trees.join(".making-A-over/.git/HEAD"), "half");
    write(&trees.join(".mine/file"), "somebody's");
    project.repository.repair_trees().unwrap();
    assert!(!trees.join(".making-A-over").exists());
    assert!(trees.join(".mine/file").exists());
}

#[test]
fn a_crash_while_a_tree_is_made_leaves_nothing_behind() {
    let project = Project::new();
    // What a crash leaves: a half-made tree beside its place, an index and its lock, a half-made copy.
    let places = project.repository.places();
    write(&places.trees.join(".making-A-c1/.git/HEAD"), "half");
    write(&places.state.join("index/A-c1"), "half");
    write(&places.state.join("index/A-c1.lock"), "half");
    write(&places.state.join("land.git.making/HEAD"), "half");
    project.prepare();
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    assert!(!places.trees.join(".making-A-c1").exists());
    assert!(!places.state.join("land.git.making").exists());
}

#[test]
fn a_worktree_that_was_half_made_is_made_again() {
    let project = Project::with(Isolation::Worktree, |_, _| {});
    project.prepare();
    let path = project.repository.record_path("A-c1");
    let record = fs::read_to_string(&path).unwrap().replace("\"ready\":true", "\"ready\":false");
    fs::write(&path, record).unwrap();
    fs::remove_file(project.tree().join("README")).unwrap();
    project.prepare();
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    assert_eq!(project.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 2);
}

#[test]
fn locks_that_nobody_holds_are_removed_and_others_are_not() {
    let project = Project::new();
    project.prepare();
    let git_dir = project.tree().join(".git");
    for lock in ["index.lock", "HEAD.lock", "refs/heads/agent/A-c1.lock", "packed-refs.lock"] {
        write(&git_dir.join(lock), "");
    }
    write(&project.repository.land_dir().join("refs/adjutant/tasks/c1.lock"), "");
    project.prepare();
    project.agent_commits("one", "1\n");
    project.take_tip();
    // A live holder has it open.
    let lock = git_dir.join("index.lock");
    write(&lock, "");
    let mut holder = Command::new("sleep").arg("1000").stdin(fs::File::open(&lock).unwrap()).spawn().unwrap();
    let prepared = project.repository.prepare_tree(&task(), TREE, BRANCH);
    assert!(matches!(prepared, Err(GitError::Locked { .. })), "{prepared:?}");
    assert!(lock.exists());
    holder.kill().unwrap();
    holder.wait().unwrap();
    project.prepare();
    assert!(!lock.exists());
}

/// A git closes the lock of a reference before it renames it: whether it is open says nothing of a git that is alive.
#[test]
fn the_lock_that_a_live_git_may_hold_in_land_stays_until_it_is_given_up() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("one", "1\n");
    let land = project.repository.land_dir().canonicalize().unwrap();
    let lock = land.join("refs/adjutant/tasks/c1.lock");
    write(&lock, "");
    let mut live = Command::new("git")
        .args(["cat-file", "--batch"])
        .current_dir(&land)
        .env("GIT_DIR", &land)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| project.take_tip());
        // Two gits that move references: the first was refused for the lock, and stale locks were looked for.
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 2 {
            assert!(!taken.is_finished(), "it was not refused for the lock");
            seen.extend(gits_that_move_references(&land));
            std::thread::yield_now();
        }
        assert!(lock.exists(), "a live git may hold it");
        fs::remove_file(&lock).unwrap();
        assert_eq!(taken.join().unwrap().tip, tip);
    });
    // What it left behind is nobody's once it has ended.
    write(&lock, "");
    live.kill().unwrap();
    live.wait().unwrap();
    let next = project.agent_commits("two", "2\n");
    assert_eq!(project.take_tip().tip, next);
    assert!(!lock.exists());
}

fn gits_that_move_references(git_dir: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let moves = |process: &Path| {
        fs::read_link(process.join("cwd")).is_ok_and(|at| at == git_dir)
            && fs::read_to_string(process.join("cmdline")).is_ok_and(|line| line.contains("update-ref"))
    };
    let pid = |process: fs::DirEntry| process.file_name().to_str()?.parse().ok();
    processes.filter(|process| moves(&process.path())).filter_map(pid).collect()
}

#[test]
fn the_lock_of_a_worktrees_branch_that_nobody_holds_is_removed() {
    let project = Project::with(Isolation::Worktree, |_, _| {});
    project.prepare();
    let lock = project.root().join(".git/refs/heads").join(format!("{BRANCH}.lock"));
    write(&lock, "");
    let users = project.root().join(".git/refs/heads/main.lock");
    write(&users, "");
    project.prepare();
    assert!(users.exists(), "that one is not ours");
    project.agent_commits("one", "1\n");
}

#[test]
fn a_copy_that_is_damaged_or_lost_is_made_again_and_knows_what_was_published() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("one", "1\n");
    project.take_tip();
    write(&project.tree().join("left"), "x\n");
    project.repository.save(&task(), TREE, "e1").unwrap().unwrap();
    let land = project.repository.land_dir();
    fs::remove_file(land.join("HEAD")).unwrap();
    let repository = project.folder.open(&project.root(), Isolation::Clone);
    repository.ensure_land().unwrap();
    assert!(project.repository.places().state.join("land.git.damaged-1").exists());
    assert_eq!(repository.land_reference("refs/adjutant/tasks/c1").unwrap(), Some(tip));
    assert!(repository.land_reference("refs/adjutant/salvage/c1/e1").unwrap().is_some());
    // The agent's clone leans on the new one without noticing, and its branch is still known to be ours.
    assert_eq!(project.agent(&["fsck", "--no-dangling"]), "");
    let project = Project { repository, folder: Folder { path: project.folder.path.clone(), _held: None } };
    let next = project.agent_commits("two", "2\n");
    assert_eq!(project.take_tip(), Taken { tip: next, branch: Published::As(BRANCH.to_owned()) });
    std::mem::forget(project);
}

#[test]
fn a_worktree_of_the_users_repository_lives_and_goes_alone() {
    let project = Project::with(Isolation::Worktree, |folder, root| {
        folder.git(root, &["worktree", "add", "-q", "-b", "other", "../linked"]);
    });
    // A worktree of the user's that is away for now, on a stick perhaps: it must not be pruned along.
    fs::rename(project.folder.path.join("linked"), project.folder.path.join("away")).unwrap();
    project.prepare();
    write(&project.tree().join("left"), "left\n");
    let left = project.leftovers();
    assert_eq!(oid(&project.git(&["rev-parse", BRANCH])), left.tip);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    assert_eq!(project.land(), Moved::Moved);
    write(&project.tree().join("late"), "late\n");
    let saved = project.repository.remove_tree(&task(), TREE, "e1").unwrap().unwrap();
    assert_eq!(project.git(&["show", &format!("{}:late", saved.reference)]), "late");
    assert_eq!(project.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 2);
    assert_eq!(project.repository.delete_branch(&task(), BRANCH).unwrap(), BranchDeleted::Deleted);
    fs::rename(project.folder.path.join("away"), project.folder.path.join("linked")).unwrap();
    assert_eq!(project.folder.git(&project.folder.path.join("linked"), &["status", "--porcelain"]), "");
}

#[test]
fn a_worktree_goes_past_a_branch_of_the_users_that_has_its_name() {
    let project = Project::with(Isolation::Worktree, |folder, root| {
        folder.git(root, &["branch", BRANCH]);
        folder.git(root, &["checkout", "-q", "-b", "agent-A-c1"]);
        folder.git(root, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
        folder.git(root, &["checkout", "-q", "main"]);
    });
    let theirs = project.git(&["rev-parse", BRANCH, "agent-A-c1"]);
    // As after a crash: asked twice, it is the same branch.
    for _ in 0..2 {
        project.prepare();
        assert_eq!(project.agent(&["symbolic-ref", "--short", "HEAD"]), "agent/A-c1-2");
    }
    project.agent_commits("work", "work\n");
    assert_eq!(project.take_tip().branch, Published::As("agent/A-c1-2".to_owned()));
    assert_eq!(project.land(), Moved::Moved);
    project.repository.remove_tree(&task(), TREE, "e1").unwrap();
    assert_eq!(project.repository.delete_branch(&task(), BRANCH).unwrap(), BranchDeleted::Deleted);
    assert_eq!(project.git(&["rev-parse", BRANCH, "agent-A-c1"]), theirs);
    assert_eq!(project.git(&["branch", "--list", "agent*"]).lines().count(), 2);
}

#[test]
fn what_stands_in_the_way_of_a_repository_is_named_with_the_way_out() {
    let obstacles = |folder: &Folder, root: &Path| folder.open(root, Isolation::Clone).obstacles().unwrap();
    let project = Project::new();
    assert_eq!(project.repository.obstacles().unwrap(), []);
    let url = format!("file://{}", project.root().display());
    let folder = &project.folder;
    project.user_commits("second", "x\n");
    folder.git(&project.root(), &["config", "uploadpack.allowFilter", "true"]);
    folder.git(&folder.path, &["clone", "-q", "--depth", "1", &url, "shallow"]);
    assert_eq!(obstacles(folder, &folder.path.join("shallow")), [Obstacle::Shallow]);
    folder.git(&folder.path, &["clone", "-q", "--filter=blob:none", &url, "partial"]);
    assert_eq!(obstacles(folder, &folder.path.join("partial")), [Obstacle::PartialClone]);

    folder.git(&folder.path, &["init", "-q", "empty"]);
    assert_eq!(obstacles(folder, &folder.path.join("empty")), [Obstacle::NoCommit]);
    folder.git(&folder.path, &["clone", "-q", &url, "trunk"]);
    folder.git(&folder.path.join("trunk"), &["branch", "-q", "-m", "main", "trunk"]);
    let found = obstacles(folder, &folder.path.join("trunk"));
    assert_eq!(found, [Obstacle::NoMain { main: "main".to_owned(), branches: vec!["trunk".to_owned()] }]);
    assert!(found[0].hint().contains("trunk"));

    let root = project.root();
    folder.git(&root, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    write(
        &root.join("deep/.gitattributes"),
        "# no filter=lfs here\n*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    folder.git(&root, &["add", "-A"]);
    folder.git(&root, &["commit", "-q", "-m", "both"]);
    folder.git(&root, &["worktree", "add", "-q", "-f", "../twice", "main"]);
    let found = project.repository.obstacles().unwrap();
    assert_eq!(found[0], Obstacle::Submodules(vec!["sub".to_owned()]));
    assert_eq!(found[1], Obstacle::Lfs(vec!["deep/.gitattributes".to_owned()]));
    assert!(matches!(&found[2], Obstacle::MainInTwoWorktrees { at, .. } if at.len() == 2));
    assert!(found.iter().all(|obstacle| !obstacle.to_string().is_empty() && !obstacle.hint().is_empty()));
    let nothing = find_with(&folder.home(), Some(&folder.home()));
    assert!(matches!(nothing, Err(GitError::NoRepository { .. })), "{nothing:?}");
}

#[test]
fn a_main_called_agent_works_too() {
    let folder = Folder::new();
    let root = folder.path.join("project");
    folder.git(&folder.path, &["init", "-q", "-b", "agent", "project"]);
    write(&root.join("README"), "hello\n");
    folder.git(&root, &["add", "-A"]);
    folder.git(&root, &["commit", "-q", "-m", "First"]);
    let home = folder.home();
    let places = folder.open(&root, Isolation::Clone).places().clone();
    let repository =
        Repository::open_with(Places { main: "agent".to_owned(), ..places }, Some(&home)).unwrap();
    let project = Project { folder, repository };
    project.prepare();
    project.agent_commits("one", "1\n");
    assert_eq!(project.take_tip().branch, Published::As("agent-A-c1".to_owned()));
    assert_eq!(project.land(), Moved::Moved);
}

/// What earlier versions excluded is taken out again; the user's own lines stay.
#[test]
fn nothing_is_excluded_but_trees_that_lie_in_the_checkout_and_those_once() {
    let project = Project::new();
    let exclude = || fs::read_to_string(project.root().join(".git/info/exclude")).unwrap();
    let own = exclude();
    write(&project.root().join(".git/info/exclude"), format!("{own}/.adjutant/\n/agents/\n/mine/\n"));
    project.repository.exclude_ours().unwrap();
    project.prepare();
    assert_eq!(exclude(), format!("{own}/mine/\n"));
    write(&project.root().join("agents/mine"), "mine\n");
    assert_eq!(project.git(&["status", "--porcelain", "-uall"]), "?? agents/mine");

    let places = Places { trees: project.root().join("agents"), ..project.repository.places().clone() };
    let inside = Repository::open_with(places, Some(&project.folder.home())).unwrap();
    for _ in 0..2 {
        inside.exclude_ours().unwrap();
    }
    assert_eq!(exclude(), format!("{own}/mine/\n/agents/\n"));
    assert_eq!(
        inside.excludes().unwrap(),
        format!("{own}/mine/\n"),
        "in a tree it is the agent's own folder"
    );
}

#[test]
fn a_repository_with_long_ids_works_too() {
    let folder = Folder::new();
    let root = folder.path.join("project");
    folder.git(&folder.path, &["init", "-q", "--object-format=sha256", "project"]);
    write(&root.join("README"), "hello\n");
    folder.git(&root, &["add", "-A"]);
    folder.git(&root, &["commit", "-q", "-m", "First"]);
    let repository = folder.open(&root, Isolation::Clone);
    let project = Project { folder, repository };
    project.prepare();
    project.agent_commits("one", "1\n");
    write(&project.tree().join("left"), "left\n");
    assert_eq!(project.land(), Moved::Moved);
    write(&project.tree().join("late"), "late\n");
    assert!(project.repository.remove_tree(&task(), TREE, "e1").unwrap().is_some());
}
