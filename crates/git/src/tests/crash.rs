//! The process is killed before every call of git and every file that is written, and the effect that was under way is
//! carried out again by the next one.

use std::process::Stdio;

use super::*;

const CHILD_FOLDER: &str = "ADJ_TEST_GIT_FOLDER";
const CHILD_WORKTREE: &str = "ADJ_TEST_GIT_WORKTREE";

/// Slow: a process is started and killed once for each moment.
#[test]
fn a_task_in_a_clone_lives_on_after_a_kill_anywhere() {
    kill_everywhere(Isolation::Clone);
}

/// Slow: a process is started and killed once for each moment.
#[test]
fn a_task_in_a_worktree_lives_on_after_a_kill_anywhere() {
    kill_everywhere(Isolation::Worktree);
}

fn kill_everywhere(isolation: Isolation) {
    for crash_at in 1.. {
        let project = Project::with(isolation, |_, _| {});
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "--nocapture", "--test-threads=1", "tests::crash::living_child"]);
        child.env(CHILD_FOLDER, &project.folder.path).env("ADJ_CRASH_AT", crash_at.to_string());
        if isolation == Isolation::Worktree {
            child.env(CHILD_WORKTREE, "1");
        }
        let output = child.stdin(Stdio::null()).env_remove("RUST_BACKTRACE").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            assert!(said.contains("crash point"), "it failed by itself: {said}");
            live(&project);
        }
        check(&project, said.lines().find(|line| line.starts_with("crash point")).unwrap_or("no crash"));
        if output.status.success() {
            assert!(crash_at > 30, "only {crash_at} crash points");
            break;
        }
    }
}

/// Not a test of its own: what the tests above start, and kill.
#[test]
fn living_child() {
    let Some(path) = std::env::var_os(CHILD_FOLDER).map(PathBuf::from) else { return };
    let isolation =
        if std::env::var_os(CHILD_WORKTREE).is_some() { Isolation::Worktree } else { Isolation::Clone };
    let folder = Folder { path, _held: None };
    let repository = folder.open(&folder.path.join("project"), isolation);
    let project = Project { folder, repository };
    live(&project);
    // The folder is the parent's.
    std::mem::forget(project);
}

/// A task's life, effect by effect. Each is begun again if it was not finished, as the outbox has it.
fn live(project: &Project) {
    let finished = project.folder.path.join("finished");
    let notes = |name: &str| project.folder.path.join(name);
    let repository = &project.repository;
    let effects: [(&str, &dyn Fn()); 8] = [
        ("prepare", &|| drop(project.prepare())),
        ("step", &|| {
            if !project.tree().join("work").exists() {
                project.agent_commits("work", "work\n");
            }
            project.take_tip();
        }),
        ("gate", &|| {
            write(&project.tree().join("left"), "left\n");
            write(&notes("tip"), project.leftovers().tip.as_str());
        }),
        ("test", &|| {
            let tip = oid(&fs::read_to_string(notes("tip")).unwrap());
            let old = repository.main_tip().unwrap();
            let merged = repository.merge(&old, &tip, "Land c1", &[], 1_700_000_000).unwrap();
            let Merged::Clean { commit, .. } = merged else { panic!("{merged:?}") };
            repository.keep("c1", &commit).unwrap();
            repository.test_tree(&commit, "slot").unwrap();
            write(&notes("merge"), format!("{commit} {old}"));
        }),
        ("move", &|| {
            let merge = fs::read_to_string(notes("merge")).unwrap();
            let (merge, old) = merge.split_once(' ').unwrap();
            assert_eq!(repository.move_main(&oid(merge), &oid(old)).unwrap(), Moved::Moved);
        }),
        ("save", &|| {
            if !notes("late").exists() {
                write(&project.tree().join("late"), "late\n");
                write(&notes("late"), "");
            }
            repository.save(&task(), TREE, "e-save").unwrap().unwrap();
        }),
        ("remove", &|| drop(repository.remove_tree(&task(), TREE, "e-remove").unwrap().unwrap())),
        ("delete", &|| drop(repository.delete_branch(&task(), BRANCH).unwrap())),
    ];
    for (name, effect) in effects {
        let done = fs::read_to_string(&finished).unwrap_or_default();
        if !done.contains(name) {
            effect();
            fs::write(&finished, done + name).unwrap();
        }
    }
}

fn check(project: &Project, after: &str) {
    let merge = fs::read_to_string(project.folder.path.join("merge")).unwrap();
    let (merge, _) = merge.split_once(' ').unwrap();
    assert_eq!(project.git(&["rev-parse", "main"]), merge, "{after}");
    assert_eq!(project.git(&["show", "main:work"]), "work", "{after}");
    assert_eq!(project.git(&["show", "main:left"]), "left", "{after}");
    assert_eq!(project.git(&["status", "--porcelain"]), "", "{after}");
    for effect in ["e-save", "e-remove"] {
        assert_eq!(
            project.git(&["show", &format!("refs/adjutant/salvage/c1/{effect}:late")]),
            "late",
            "{after}"
        );
    }
    assert_eq!(project.git(&["branch", "--format=%(refname:short)"]), "main", "{after}");
    assert_eq!(project.git(&["fsck", "--no-dangling"]), "", "{after}");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1, "{after}");
    let places = project.repository.places();
    let listed = |folder: PathBuf| {
        let mut names = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>();
        names.sort();
        names
    };
    assert_eq!(listed(places.trees.clone()), ["slot", "trash"], "{after}");
    assert_eq!(listed(places.trees.join("trash")), ["e-remove-A-c1"], "{after}");
    assert_eq!(listed(places.state.join("trees")), [""; 0], "{after}");
    assert!(!listed(places.state.clone()).iter().any(|name| name.contains("making")), "{after}");
}
