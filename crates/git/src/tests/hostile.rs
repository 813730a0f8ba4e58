//! An agent that plants programs, links and rubbish in its git directory.

use std::os::unix::fs::symlink;

use super::*;

/// Everything by which a git directory can make git run a program, pointed at the canary.
fn plant(git_dir: &Path, canary: &Path) {
    let program = canary.display().to_string();
    let hooks = git_dir.join("hooks");
    for hook in [
        "applypatch-msg",
        "commit-msg",
        "fsmonitor-watchman",
        "post-applypatch",
        "post-checkout",
        "post-commit",
        "post-index-change",
        "post-merge",
        "post-receive",
        "post-rewrite",
        "post-update",
        "pre-applypatch",
        "pre-auto-gc",
        "pre-commit",
        "pre-merge-commit",
        "pre-push",
        "pre-rebase",
        "pre-receive",
        "prepare-commit-msg",
        "proc-receive",
        "push-to-checkout",
        "reference-transaction",
        "sendemail-validate",
        "update",
    ] {
        fs::create_dir_all(&hooks).unwrap();
        fs::copy(canary, hooks.join(hook)).unwrap();
    }
    let config = format!(
        "[core]\n\tfsmonitor = {program}\n\thooksPath = {}\n\tpager = {program}\n\teditor = {program}\n\
         \tsshCommand = {program}\n\taskPass = {program}\n\talternateRefsCommand = {program}\n\tgitProxy = {program}\n\
         [filter \"canary\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n\
         [filter \"a=b.c\"]\n\tprocess = {program}\n\trequired = true\n\
         [diff]\n\texternal = {program}\n\
         [diff \"canary\"]\n\ttextconv = {program}\n\tcommand = {program}\n\
         [merge]\n\tverifySignatures = true\n\
         [merge \"canary\"]\n\tdriver = {program}\n\
         [gpg]\n\tprogram = {program}\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n\
         [alias]\n\tstatus = !{program}\n\tmerge = !{program}\n\tread-tree = !{program}\n\
         [uploadpack]\n\tpackObjectsHook = {program}\n[credential]\n\thelper = !{program}\n\
         [sequence]\n\teditor = {program}\n[pager]\n\tlog = {program}\n\tdiff = {program}\n",
        hooks.display(),
    );
    let path = git_dir.join("config");
    let before = fs::read_to_string(&path).unwrap_or_default();
    write(&path, before + &config);
}

/// As `plant`, in settings that a person's own git reads. A person who signs has chosen the program that signs, and it
/// is run; this one does not sign.
fn plant_for_a_person(git_dir: &Path, canary: &Path) {
    plant(git_dir, canary);
    let path = git_dir.join("config");
    let planted = fs::read_to_string(&path).unwrap();
    write(&path, planted + "[commit]\n\tgpgSign = false\n");
}

const ATTRIBUTES: &str = "* filter=canary diff=canary merge=canary\nsrc/* filter=a=b.c\n";

#[test]
fn nothing_that_an_agent_plants_is_ever_run() {
    let project = Project::new();
    let canary = write_canary(&project.folder.path);
    project.prepare();
    project.agent_commits("src/three", "3\n");
    plant(&project.tree().join(".git"), &canary);
    write(&project.tree().join(".gitattributes"), ATTRIBUTES);
    write(&project.tree().join("src/one"), "changed\n");
    // A repository inside the tree is where git would run a git of its own, with the settings that it finds there.
    let nested = project.tree().join("nested");
    fs::create_dir_all(&nested).unwrap();
    project.folder.git(&nested, &["init", "-q"]);
    write(&nested.join("file"), "deep\n");
    project.folder.git(&nested, &["add", "-A"]);
    project.folder.git(&nested, &["commit", "-q", "-m", "nested"]);
    plant(&nested.join(".git"), &canary);

    assert_eq!(project.prepare(), project.take_tip().tip);
    assert!(matches!(project.repository.look(&task(), TREE, BRANCH).unwrap(), TreeFound::Dirty { .. }));
    let left = project.leftovers();
    assert_eq!(left.left_out, ["nested/"]);
    let main = project.repository.main_tip().unwrap();
    let seen = project.repository.inspect(&left.tip, &main, Some("tickets")).unwrap();
    assert_eq!(seen.changed, [".gitattributes", "src/one", "src/three"]);
    project.repository.diff(&left.tip, &main).unwrap();
    let tested = match project.repository.merge(&main, &left.tip, "Land", &[], 1).unwrap() {
        Merged::Clean { commit, .. } => commit,
        other => panic!("{other:?}"),
    };
    let folder = project.repository.test_tree(&tested, "one").unwrap();
    plant(&folder.join(".git"), &canary);
    project.repository.test_tree(&tested, "one").unwrap();
    let saved = project.repository.save(&task(), TREE, "e1").unwrap().unwrap();
    assert_eq!(project.repository.salvage().unwrap()[0].files, ["nested/file"]);
    project.repository.show_saved(&saved.reference).unwrap();
    assert_eq!(project.land(), Moved::Moved);
    project.repository.remove_tree(&task(), TREE, "e2").unwrap();
    project.folder.assert_no_canary();
    project.folder.assert_canary_lives(&project.repository.places().trees.join("trash/e2-A-c1"));
}

/// A commit that names a repository inside the tree makes `git add` and `git status` run a git in it.
#[test]
fn a_nested_repository_in_a_commit_is_not_entered() {
    let project = Project::new();
    let canary = write_canary(&project.folder.path);
    project.prepare();
    let nested = project.tree().join("nested");
    fs::create_dir_all(&nested).unwrap();
    project.folder.git(&nested, &["init", "-q"]);
    project.folder.git(&nested, &["commit", "-q", "--allow-empty", "-m", "nested"]);
    project.agent(&["add", "-A"]);
    project.agent(&["commit", "-q", "-m", "a gitlink"]);
    plant(&nested.join(".git"), &canary);
    write(&project.tree().join("more"), "more\n");
    let left = project.leftovers();
    assert!(left.commit.is_some());
    let main = project.repository.main_tip().unwrap();
    let seen = project.repository.inspect(&left.tip, &main, None).unwrap();
    assert_eq!(seen.submodules, ["nested"]);
    project.repository.save(&task(), TREE, "e1").unwrap();
    project.repository.remove_tree(&task(), TREE, "e2").unwrap();
    project.folder.assert_no_canary();
}

/// The user's own hooks, filters and monitors are theirs to run, not ours.
#[test]
fn nothing_that_the_users_repository_names_is_run_by_us() {
    for isolation in [Isolation::Clone, Isolation::Worktree] {
        let project = Project::with(isolation, |folder, root| {
            let canary = write_canary(&folder.path);
            plant_for_a_person(&root.join(".git"), &canary);
            write(&root.join(".git/info/attributes"), "ignored diff=canary merge=canary\n");
        });
        project.prepare();
        write(&project.tree().join("new"), "new\n");
        let left = project.leftovers();
        let main = project.repository.main_tip().unwrap();
        project.repository.diff_stat(&left.tip, &main).unwrap();
        assert_eq!(project.land(), Moved::Moved);
        write(&project.tree().join("newer"), "newer\n");
        project.repository.remove_tree(&task(), TREE, "e1").unwrap();
        project.repository.delete_branch(&task(), BRANCH).unwrap();
        project.repository.obstacles().unwrap();
        project.repository.salvage().unwrap();
        project.repository.checkout_copy_unchanged("README").unwrap();
        project.folder.assert_no_canary();
        project.folder.assert_canary_lives(&project.root());
        assert_eq!(fs::read_to_string(project.root().join("new")).unwrap(), "new\n");
    }
}

/// A file that only a filter of the user's can write is left to the user, with the command that does it.
#[test]
fn a_landing_that_a_filter_would_have_to_write_waits_for_the_user() {
    let project = Project::with(Isolation::Clone, |folder, root| {
        let canary = write_canary(&folder.path);
        plant_for_a_person(&root.join(".git"), &canary);
    });
    project.prepare();
    write(&project.tree().join(".gitattributes"), "*.secret filter=canary\n");
    write(&project.tree().join("a.secret"), "x\n");
    let (merge, old) = project.merge();
    let Moved::InTheWay { files, command, .. } = project.repository.move_main(&merge, &old).unwrap() else {
        panic!("it was moved");
    };
    assert_eq!(files, ["a.secret"]);
    assert!(command.ends_with(&format!("merge --ff-only {merge}")), "{command}");
    project.folder.assert_no_canary();
}

/// An agent in a worktree can write to the user's git directory, also after it was opened.
#[test]
fn what_an_agent_in_a_worktree_plants_in_the_users_settings_is_not_run_by_us() {
    let project = Project::with(Isolation::Worktree, |_, _| {});
    let canary = write_canary(&project.folder.path);
    project.prepare();
    plant_for_a_person(&project.root().join(".git"), &canary);
    let elsewhere = project.folder.path.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let config = project.root().join(".git/config");
    let planted = fs::read_to_string(&config).unwrap();
    write(&config, format!("{planted}[core]\n\tworktree = {}\n", elsewhere.display()));
    write(&project.root().join(".git/info/attributes"), "README filter=canary\n");
    write(&project.tree().join("new"), "new\n");
    let (merge, old) = project.merge();
    assert!(project.repository.checkout_copy_unchanged("README").unwrap());
    assert_eq!(project.repository.move_main(&merge, &old).unwrap(), Moved::Moved);
    assert_eq!(fs::read_to_string(project.root().join("new")).unwrap(), "new\n");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    write(&project.tree().join(".gitattributes"), "src/* filter=a=b.c\n");
    write(&project.tree().join("src/one"), "changed\n");
    let (merge, old) = project.merge();
    let answer = project.repository.move_main(&merge, &old).unwrap();
    assert!(matches!(&answer, Moved::InTheWay { files, .. } if files == &["src/one"]), "{answer:?}");
    project.repository.remove_tree(&task(), TREE, "e1").unwrap();
    project.folder.assert_no_canary();
}

#[test]
fn links_out_of_the_git_directory_are_not_followed() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("kept", "kept\n");
    project.take_tip();
    let outside = project.folder.path.join("outside");
    fs::create_dir_all(&outside).unwrap();

    // The references are a link to somewhere else: nothing is written there.
    let heads = project.tree().join(".git/refs/heads");
    fs::rename(&heads, outside.join("heads")).unwrap();
    symlink(outside.join("heads"), &heads).unwrap();
    fs::write(project.tree().join(".git/HEAD"), format!("{tip}\n")).unwrap();
    write(&project.tree().join("left"), "left\n");
    let left = project.leftovers();
    assert_eq!(fs::read_to_string(outside.join("heads/agent/A-c1")).unwrap().trim(), tip.as_str());
    assert_eq!(oid(&project.agent(&["rev-parse", "HEAD"])), left.tip);

    // The index is a link: it is replaced, and what it led to is not touched.
    let index = project.tree().join(".git/index");
    write(&outside.join("index"), "precious");
    fs::remove_file(&index).unwrap();
    symlink(outside.join("index"), &index).unwrap();
    write(&project.tree().join("left2"), "left\n");
    project.leftovers();
    assert_eq!(fs::read_to_string(outside.join("index")).unwrap(), "precious");

    // So are the objects: they are not read from elsewhere.
    let objects = project.tree().join(".git/objects");
    fs::rename(&objects, outside.join("objects")).unwrap();
    symlink(outside.join("objects"), &objects).unwrap();
    let error = project.repository.take_tip(&task(), TREE, BRANCH).unwrap_err();
    assert!(matches!(error, GitError::Unreadable { .. }), "{error}");
    // The files are saved all the same.
    write(&project.tree().join("left3"), "left\n");
    let saved = project.repository.save(&task(), TREE, "e1").unwrap().unwrap();
    assert_eq!(project.git(&["show", &format!("{}:left3", saved.reference)]), "left");
}

#[test]
fn a_git_directory_that_leads_elsewhere_keeps_its_tree_until_it_is_back() {
    type Breakage = fn(&Path, &Path);
    let breakages: &[(&str, Breakage)] = &[
        ("a file", |git, outside| {
            fs::rename(git, outside).unwrap();
            fs::write(git, format!("gitdir: {}\n", outside.display())).unwrap();
        }),
        ("a link", |git, outside| {
            fs::rename(git, outside).unwrap();
            symlink(outside, git).unwrap();
        }),
    ];
    for (what, break_it) in breakages {
        let project = Project::new();
        project.prepare();
        project.agent_commits("kept", "kept\n");
        project.take_tip();
        break_it(&project.tree().join(".git"), &project.folder.path.join("outside"));
        write(&project.tree().join("fresh"), "fresh\n");
        let error = project.repository.take_tip(&task(), TREE, BRANCH).unwrap_err();
        assert!(matches!(error, GitError::Unreadable { .. }), "{what}: {error}");
        let error = project.repository.remove_tree(&task(), TREE, "e1").unwrap_err();
        assert!(error.to_string().contains("outside, which is not in it"), "{what}: {error}");
        assert!(project.tree().exists(), "{what}");
        let saved = project.repository.save(&task(), TREE, "e1").unwrap().unwrap();
        assert_eq!(project.git(&["show", &format!("{}:fresh", saved.reference)]), "fresh", "{what}");
        assert_eq!(project.git(&["show", &format!("{}:kept", saved.reference)]), "kept", "{what}");
        let git_dir = project.tree().join(".git");
        fs::remove_file(&git_dir).unwrap();
        fs::rename(project.folder.path.join("outside"), &git_dir).unwrap();
        project.repository.remove_tree(&task(), TREE, "e2").unwrap().unwrap();
        assert!(!project.tree().exists(), "{what}");
    }
}

#[test]
fn a_git_directory_that_is_gone_is_made_again_and_its_files_are_what_is_left_over() {
    let project = Project::new();
    project.prepare();
    project.agent_commits("kept", "kept\n");
    let before = project.take_tip().tip;
    fs::remove_dir_all(project.tree().join(".git")).unwrap();
    write(&project.tree().join("fresh"), "fresh\n");
    assert_eq!(project.take_tip().tip, before);
    let left = project.repository.commit_leftovers(&task(), TREE, BRANCH, "left", &coder()).unwrap();
    assert_eq!(project.git(&["show", &format!("{}:fresh", left.tip)]), "fresh");
    assert_eq!(project.git(&["show", &format!("{}:kept", left.tip)]), "kept");
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
}

#[test]
fn rubbish_in_head_and_references_is_not_believed() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("kept", "kept\n");
    project.take_tip();
    let git_dir = project.tree().join(".git");
    let sparse = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 30).unwrap();
    let head = git_dir.join("HEAD");
    for content in [
        "",
        "garbage\n",
        "ref: ../../../etc/passwd\n",
        "ref: refs/heads/../../x\n",
        "--upload-pack=x\n",
        "\0\0",
    ] {
        fs::write(&head, content).unwrap();
        assert_eq!(project.take_tip().tip, tip, "with {content:?} in HEAD");
    }
    sparse(&head);
    assert_eq!(project.take_tip().tip, tip, "with a HEAD of a gigabyte");
    fs::remove_file(&head).unwrap();
    nix::unistd::mkfifo(&head, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(project.take_tip().tip, tip, "with a pipe for HEAD");
    sparse(&git_dir.join("packed-refs"));
    assert_eq!(project.take_tip().tip, tip, "with packed references of a gigabyte");
    // And when the branch is rubbish too, the history tells.
    fs::write(git_dir.join("refs/heads").join(BRANCH), "0000000000000000000000000000000000000000\n").unwrap();
    assert_eq!(project.take_tip().tip, tip, "from its history");
    fs::remove_dir_all(git_dir.join("logs")).unwrap();
    // Nothing in it can be believed: it goes to the trash, and another stands at what was last taken.
    assert_eq!(project.take_tip().tip, tip, "from what was last taken");
    assert_eq!(project.agent(&["rev-parse", "HEAD"]), tip.as_str());
    let trashed = project.repository.trash();
    assert!(
        trashed[0].path.ends_with("damaged-A-c1.git") && trashed[0].path.join("refs").is_dir(),
        "{trashed:?}"
    );
}

#[test]
fn objects_that_are_not_what_they_say_do_not_get_in() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("kept", "kept\n");
    project.take_tip();
    // A tree with an entry called `.git` would make a checkout write into a git directory.
    let blob = project.agent(&["hash-object", "-w", "README"]);
    let mut raw = b"100644 .git\0".to_vec();
    raw.extend((0..20).map(|n| u8::from_str_radix(&blob[2 * n..2 * n + 2], 16).unwrap()));
    let file = project.folder.path.join("tree");
    write(&file, raw);
    let evil = project.agent(&["hash-object", "-w", "--literally", "-t", "tree", file.to_str().unwrap()]);
    let commit = project.agent(&["commit-tree", &evil, "-p", tip.as_str(), "-m", "evil"]);
    project.agent(&["update-ref", "HEAD", &commit]);
    let error = project.repository.take_tip(&task(), TREE, BRANCH).unwrap_err();
    assert!(error.to_string().contains(".git") || error.to_string().contains("hasDotgit"), "{error}");
    assert_eq!(oid(&project.git(&["rev-parse", "refs/adjutant/tasks/c1"])), tip);
    // A commit whose tree is missing does not get in either.
    let missing = "1234567890123456789012345678901234567890";
    let raw =
        format!("tree {missing}\nparent {tip}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n");
    write(&file, raw);
    let commit = project.agent(&["hash-object", "-w", "--literally", "-t", "commit", file.to_str().unwrap()]);
    project.agent(&["update-ref", "HEAD", &commit]);
    assert_eq!(project.take_tip().tip, tip, "it is as after a power cut: what was last taken counts");
    assert_eq!(oid(&project.git(&["rev-parse", "refs/adjutant/tasks/c1"])), tip);
    assert_eq!(project.repository.trash().len(), 1, "and what cannot be read is in the trash");
}

#[test]
fn alternates_of_an_agent_lead_nowhere_that_counts() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("kept", "kept\n");
    let alternates = project.tree().join(".git/objects/info/alternates");
    fs::write(&alternates, "/nonexistent\n../../../../nowhere\n").unwrap();
    assert_eq!(project.take_tip().tip, tip);
    fs::remove_file(&alternates).unwrap();
    assert_eq!(project.take_tip().tip, tip);
}

#[test]
fn an_agent_that_tidies_up_loses_nothing() {
    let project = Project::new();
    project.prepare();
    let tip = project.agent_commits("kept", "kept\n");
    project.agent(&["pack-refs", "--all"]);
    project.agent(&["gc", "-q", "--prune=now"]);
    assert_eq!(project.take_tip().tip, tip);
    write(&project.tree().join("left"), "left\n");
    let left = project.leftovers();
    assert_eq!(oid(&project.agent(&["rev-parse", "HEAD"])), left.tip);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    assert_eq!(project.agent(&["fsck"]), "");
}

#[test]
fn work_on_another_branch_or_none_is_found() {
    let project = Project::new();
    let main = project.prepare();
    let ours = project.agent_commits("one", "1\n");
    // It only went back to look: the branch counts.
    project.agent(&["checkout", "-q", "--detach", "HEAD^"]);
    assert_eq!(project.take_tip().tip, ours);
    // It works on, detached, from main: that counts, and the branch's commit is kept.
    let detached = project.agent_commits("two", "2\n");
    assert_eq!(project.take_tip().tip, detached);
    assert!(project.repository.land_reference(&format!("refs/adjutant/kept/c1/{ours}")).unwrap().is_some());
    // On a branch of its own, with ours deleted.
    project.agent(&["checkout", "-q", "-b", "mine"]);
    project.agent(&["branch", "-q", "-D", BRANCH]);
    let mine = project.agent_commits("three", "3\n");
    assert_eq!(project.take_tip().tip, mine);
    // A commit of ours puts it back on its branch, and leaves its own where it is.
    write(&project.tree().join("left"), "left\n");
    let left = project.leftovers();
    assert_eq!(project.agent(&["branch", "--show-current"]), BRANCH);
    assert_eq!(oid(&project.agent(&["rev-parse", "mine"])), mine);
    assert_eq!(oid(&project.agent(&["rev-parse", "HEAD"])), left.tip);
    // It throws all of its work away: the tip is what it says, and what was there before is in the history.
    project.agent(&["reset", "-q", "--hard", main.as_str()]);
    assert_eq!(project.take_tip().tip, main);
    let land = project.repository.land_dir();
    let history = project.folder.git(&land, &["log", "-g", "--format=%H", "refs/adjutant/tasks/c1"]);
    assert!(history.contains(left.tip.as_str()));
}

/// A branch of the agent's called `agent` stands where the folder of ours would be.
#[test]
fn what_an_agent_puts_in_the_way_of_its_branch_is_set_aside() {
    let project = Project::new();
    project.prepare();
    project.agent(&["checkout", "-q", "--detach"]);
    project.agent(&["branch", "-q", "-D", BRANCH]);
    project.agent(&["branch", "agent"]);
    write(&project.tree().join("left"), "left\n");
    let left = project.leftovers();
    assert_eq!(oid(&project.agent(&["rev-parse", BRANCH])), left.tip);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
}

#[test]
fn files_that_the_agents_index_looks_away_from_are_seen() {
    let project = Project::new();
    project.prepare();
    project.agent(&["update-index", "--assume-unchanged", "README"]);
    project.agent(&["update-index", "--skip-worktree", "src/one"]);
    write(&project.tree().join("README"), "changed\n");
    write(&project.tree().join("src/one"), "changed\n");
    let left = project.leftovers();
    assert_eq!(project.git(&["show", &format!("{}:README", left.tip)]), "changed");
    assert_eq!(project.git(&["show", &format!("{}:src/one", left.tip)]), "changed");
}

#[test]
fn a_folder_that_became_a_link_is_not_read_through() {
    let project = Project::new();
    project.prepare();
    let outside = project.folder.path.join("outside");
    write(&outside.join("one"), "secret\n");
    write(&outside.join("two"), "secret\n");
    fs::remove_dir_all(project.tree().join("src")).unwrap();
    symlink(&outside, project.tree().join("src")).unwrap();
    let left = project.leftovers();
    let listed = project.git(&["ls-tree", "-r", "--name-only", left.tip.as_str()]);
    assert_eq!(listed, "README\nsrc");
    assert!(project.git(&["ls-tree", left.tip.as_str(), "src"]).starts_with("120000 "));
}

/// Unreadable for git whoever runs the test: a pipe where a file was.
#[test]
fn a_file_that_cannot_be_read_costs_only_itself() {
    let project = Project::new();
    project.prepare();
    let path = project.tree().join("README");
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    write(&project.tree().join("fine"), "fine\n");
    let left = project.leftovers();
    assert_eq!(left.left_out, ["README"]);
    assert_eq!(project.git(&["show", &format!("{}:fine", left.tip)]), "fine");
}

#[test]
fn names_that_could_be_options_or_paths_reach_no_git() {
    let project = Project::new();
    for tree in ["../x", "agents/../x", "-rf", "agents/--upload-pack=x", "a/b/c", "", "agents/.git", "x\0y"] {
        assert!(project.repository.prepare_tree(&task(), tree, BRANCH).is_err(), "{tree:?}");
    }
    for branch in ["-d", "agent/-d", "agent/../x", "a b", "agent/x.lock", "", "a//b", "agent/x\n"] {
        assert!(project.repository.prepare_tree(&task(), TREE, branch).is_err(), "{branch:?}");
    }
    for path in ["../x", "/etc/passwd", "a/../../x", ".git/config", "a/.GIT/x", ""] {
        assert!(project.repository.file_on_main(path).is_err(), "{path:?}");
    }
    assert!(
        Oid::new("--all").is_none()
            && Oid::new(&"0".repeat(40)).is_none()
            && Oid::new(&"A".repeat(40)).is_none()
    );
    assert!(project.repository.restore("refs/heads/main", &RestoreTo::Branch(None)).is_err());
}
