//! Where things are: state in the git directory, trees beside the repository, temporary files outside of every
//! repository. Nothing of the user's is taken for ours, and nothing of ours is in the user's way.

use super::background::wait;
use super::{Repository, TESTS};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Waits in the middle of its work, which is not committed yet.
const HOLDS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.txt", text = "begun\n" },
  { run = 'touch "$TMPDIR/here"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done', quiet = true },
  { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true },
]
"#;

const PLAIN: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// What is in a folder, by name.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn exclude(repository: &Repository) -> String {
    repository.read(".git/info/exclude")
}

/// Folders that are called as ours are or were, tracked and not: all that an agent does in them lands.
#[test]
fn a_repository_with_agents_and_adjutant_folders_of_its_own_is_like_any_other() {
    for isolation in ["clone", "worktree"] {
        let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "for folder in agents adjutant .adjutant new/agents; do mkdir -p $folder; echo {task} > $folder/added.py; done", quiet = true },
  { run = "echo {task} >> agents/tracked.py; echo {task} >> .adjutant/token; ln -s / adjutant/link", quiet = true },
  { write = "{task}.check", text = "true\n" }, { done = true },
]
"#;
        let repository = Repository::new(&format!("places-own-{isolation}"), scenario, &["p-1"]);
        repository.set(&[("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\""))]);
        for path in ["agents/tracked.py", ".adjutant/token"] {
            repository.write(path, "theirs\n");
        }
        repository.commit("Folders of our own");
        let before = (exclude(&repository), names(repository.dir()));
        repository.write("agents/not-committed.py", "theirs\n");
        repository.ok("init");
        assert_eq!(repository.git("status --porcelain -uall"), "?? agents/not-committed.py");
        repository.ok("run --until-idle");
        for path in ["agents/added.py", "adjutant/added.py", ".adjutant/added.py", "new/agents/added.py"] {
            assert_eq!(repository.git(&format!("show main:{path}")), "p-1", "{path}");
        }
        assert_eq!(repository.git("show main:agents/tracked.py"), "theirs\np-1");
        assert_eq!(repository.git("show main:.adjutant/token"), "theirs\np-1");
        assert_eq!(repository.git("status --porcelain -uall"), "?? agents/not-committed.py");
        // Nothing else of ours is in the checkout, and nothing is kept out of git.
        let landed = ["adjutant", "new", "p-1.check"].map(str::to_owned);
        let now: Vec<_> = names(repository.dir()).into_iter().filter(|name| !landed.contains(name)).collect();
        assert_eq!((exclude(&repository), now), before);
        std::fs::remove_file(repository.dir().join("agents/not-committed.py")).expect("it goes");
        repository.check(&["p-1"], TESTS);
        // The memory is out of reach of whatever tidies a checkout, and nothing in git is in its way.
        repository.git("clean --quiet -ffdx");
        repository.git("gc --quiet --prune=now");
        repository.git("branch adjutant");
        repository.git("checkout --quiet adjutant");
        assert_eq!(repository.task("p-1")["status"], "DONE");
        assert_eq!(repository.adj("verify").code, 0);
    }
}

/// Three real projects' tests in small: one serves files and refuses paths with a hidden part, one makes a repository-less
/// directory, one is configured by whatever lies above it. And the checkout's own tests do not come upon the trees.
#[test]
fn tests_find_no_hidden_folder_above_them_no_repository_around_their_temporary_files_and_no_checkout() {
    let tests = r#"
set -e
case "$PWD" in */.*) echo "refused: a hidden part in $PWD"; exit 1 ;; esac
made=$(mktemp -d)
if git -C "$made" rev-parse --git-dir 2>/dev/null; then echo "in a repository: $made"; exit 1; fi
[ "${#TMPDIR}" -lt 60 ] || { echo "too long for a socket: $TMPDIR"; exit 1; }
[ "$(stat -c %a "$TMPDIR")" = 700 ] || { echo "open to others: $TMPDIR"; exit 1; }
above=$(dirname "$PWD")
while [ "$above" != / ]; do
  for name in node_modules .git Cargo.toml ruff.toml adjutant.toml; do
    [ ! -e "$above/$name" ] || { echo "found $above/$name"; exit 1; }
  done
  above=$(dirname "$above")
done
[ "$(find . -name base.check | wc -l)" = 1 ] || { echo "collected twice"; find . -name base.check; exit 1; }
for check in *.check; do sh "$check"; done
"#;
    let repository = super::faults::repository("places-tests", &[], tests, HOLDS, &["p-1"]);
    for name in ["node_modules/x", "Cargo.toml", "ruff.toml"] {
        repository.write(name, "");
    }
    repository.write(".gitignore", "node_modules\n");
    repository.commit("What is looked for upwards");
    let in_checkout = || {
        let mut command = Command::new("sh");
        let own = std::env::temp_dir().join(format!("adj-places-own-{}", std::process::id()));
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).expect("ours");
        let ran = command.args(["-c", tests]).current_dir(repository.dir()).env("TMPDIR", &own).output();
        let _ = std::fs::remove_dir_all(&own);
        String::from_utf8_lossy(&ran.expect("sh runs").stdout).into_owned()
    };
    let running = repository.start("run");
    wait("its middle", || repository.temp("p-1").join("here").exists().then_some(()));
    assert_eq!(in_checkout(), "", "the checkout's own tests, while a tree stands");
    repository.go("p-1");
    running.wait_for("p-1 landed");
    running.stop();
    repository.check(&["p-1"], TESTS);
    assert!(!repository.temp("p-1").exists(), "what was temporary is gone");
}

/// A fleet that was stopped in the middle of p-1, with something in its tree that nobody has committed.
fn interrupted(repository: &Repository) {
    let running = repository.start("run");
    wait("its middle", || repository.temp("p-1").join("here").exists().then_some(()));
    repository.ok("stop --now");
    running.ended();
    repository.write(&repository.tree("A-p-1/by-hand.txt"), "not committed\n");
}

/// The list that says where trees are is damaged in the middle of a task: its tree is found by its own record.
#[test]
fn trees_are_known_again_where_the_record_of_their_folder_is_damaged() {
    let repository = Repository::new("places-damaged", HOLDS, &["p-1"]);
    interrupted(&repository);
    repository.write(&repository.state("places.json"), "{\"st");
    let running = repository.start("run");
    running.wait_for("is known by the trees in it");
    repository.go("p-1");
    running.wait_for("p-1 landed");
    running.stop();
    assert_eq!(repository.git("show main:by-hand.txt"), "not committed", "nothing of the tree was lost");
}

/// What an earlier version left, in the middle of a task: state in `.adjutant`, trees in `agents`.
fn as_before(repository: &Repository) {
    let (state, old) = (repository.state(""), repository.dir().join(".adjutant"));
    let trees = repository.trees();
    let tree = trees.join("A-p-1");
    std::fs::remove_file(state.join("places.json")).expect("a record of the folder");
    std::fs::rename(&state, &old).expect("its old place");
    std::fs::write(old.join(".gitignore"), "*\n").expect("a file");
    std::fs::create_dir(repository.dir().join("agents")).expect("a folder");
    let moved = repository.dir().join("agents/A-p-1");
    std::fs::rename(&tree, &moved).expect("its old place");
    std::fs::remove_dir_all(&trees).expect("what else there is");
    match repository.dir().join(".git/worktrees/A-p-1").exists() {
        true => drop(repository.git("worktree repair agents/A-p-1")),
        false => std::fs::write(
            moved.join(".git/objects/info/alternates"),
            "../../../../.adjutant/land.git/objects\n",
        )
        .expect("a file"),
    }
    let exclude = exclude(repository) + "/.adjutant/\n/agents/\n";
    repository.write(".git/info/exclude", &exclude);
}

#[test]
fn state_and_trees_of_an_earlier_version_are_moved_once_and_the_work_goes_on() {
    for isolation in ["clone", "worktree"] {
        let repository = Repository::new(&format!("places-before-{isolation}"), HOLDS, &["p-1"]);
        repository.set(&[("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\""))]);
        let clean = exclude(&repository);
        interrupted(&repository);
        as_before(&repository);
        assert_eq!(repository.git("status --porcelain"), "");

        let moved = repository.adj("board");
        assert_eq!(moved.code, 0, "{}", moved.stderr);
        assert!(moved.stderr.contains("`.adjutant` was moved to"), "{}", moved.stderr);
        assert!(moved.stdout.contains("p-1"), "{}", moved.stdout);
        assert!(!repository.dir().join(".adjutant").exists());
        assert_eq!(repository.adj("board").stderr, "", "it is said once");
        let running = repository.start("run --until-idle");
        running.wait_for("were moved from");
        repository.go("p-1");
        running.done();
        assert!(!repository.dir().join("agents").exists());
        assert_eq!(exclude(&repository), clean, "what was kept out of git is not any more");
        assert_eq!(repository.git("show main:by-hand.txt"), "not committed");
        repository.check(&["p-1"], TESTS);
    }
}

/// A folder of that name that holds no log of ours is the user's; one whose owner runs is left until it has ended.
#[test]
fn only_a_log_of_ours_that_nobody_uses_is_moved() {
    let repository = Repository::new("places-theirs", PLAIN, &["p-1"]);
    repository.write(".adjutant/adjutant.db", "notes of a person\n");
    repository.write(".adjutant/adjutant.db.lock", "");
    repository.commit("Theirs");
    repository.ok("run --until-idle");
    assert_eq!(repository.read(".adjutant/adjutant.db"), "notes of a person\n");
    repository.check(&["p-1"], TESTS);

    let repository = Repository::new("places-held", PLAIN, &[]);
    repository.ok("task add One --id p-1");
    let old = repository.dir().join(".adjutant");
    std::fs::rename(repository.state(""), &old).expect("its old place");
    let lock = std::fs::File::open(old.join("adjutant.db.lock")).expect("the lock");
    lock.lock().expect("nobody else has it");
    assert!(repository.ok("board").contains("p-1"));
    assert!(old.exists(), "it is used where it is");
    drop(lock);
    assert!(repository.ok("board").contains("p-1"));
    assert!(!old.exists() && repository.dir().join(".git/adjutant/adjutant.db").exists());
}

#[test]
fn a_folder_beside_the_repository_that_is_not_ours_is_never_taken() {
    let repository = Repository::new("places-taken", HOLDS, &["p-1"]);
    let theirs = repository.dir().with_extension("agents");
    std::fs::create_dir(&theirs).expect("a folder");
    std::fs::write(theirs.join("mine"), "mine\n").expect("a file");
    let running = repository.start("run --until-idle");
    running.wait_for("is there and is not this project's");
    wait("its middle", || repository.temp("p-1").join("here").exists().then_some(()));
    let ours = PathBuf::from(format!("{}-2", theirs.display()));
    assert_eq!(repository.trees(), ours);
    assert_eq!(repository.json("state")["agents"][0]["worktree"], ours.join("A-p-1").display().to_string());
    repository.go("p-1");
    running.done();
    // It stays there: the choice is written down.
    assert!(!repository.adj("run --until-idle").stdout.contains("is not this project's"));
    assert_eq!(names(&theirs), ["mine"]);
    repository.check(&["p-1"], TESTS);
    std::fs::remove_dir_all(&theirs).expect("it goes");
}

/// Renamed in the middle of a task, in both isolations: the trees come along, with what was not committed.
#[test]
fn a_repository_that_is_renamed_takes_its_trees_along_and_a_copy_makes_its_own() {
    for isolation in ["clone", "worktree"] {
        let mut repository = Repository::new(&format!("places-moved-{isolation}"), HOLDS, &["p-1"]);
        repository.set(&[("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\""))]);
        interrupted(&repository);
        let (old, trees) = (repository.dir().to_owned(), repository.trees());
        let _ = std::fs::remove_dir_all(repository.temp("p-1").parent().expect("the project's"));
        let new = PathBuf::from(format!("{}-renamed", old.display()));
        std::fs::rename(&old, &new).expect("a new name");
        repository.dir = new;
        // A copy does not touch the trees of the original.
        let copy = Repository::empty(&format!("places-copy-{isolation}"));
        std::fs::remove_dir(copy.dir()).expect("it is empty");
        let copied = Command::new("cp").arg("-a").args([repository.dir(), copy.dir()]).status();
        assert!(copied.expect("cp runs").success());
        assert_eq!(copy.trees(), copy.dir().with_extension("agents"));

        let running = repository.start("run --until-idle");
        repository.go("p-1");
        running.done();
        assert!(!trees.exists(), "they have moved");
        assert_eq!(repository.trees(), repository.dir().with_extension("agents"));
        assert_eq!(repository.git("show main:by-hand.txt"), "not committed");
        repository.check(&["p-1"], TESTS);
    }
}

#[test]
fn trees_lie_in_the_checkout_by_choice() {
    let repository = Repository::new("places-inside", HOLDS, &["p-1"]);
    repository.set(&[("[fleet]", "[fleet]\ntrees = \"agents\"")]);
    let running = repository.start("run --until-idle");
    wait("its middle", || repository.temp("p-1").join("here").exists().then_some(()));
    assert!(repository.dir().join("agents/A-p-1/p-1.txt").exists());
    assert_eq!(repository.git("status --porcelain"), "");
    repository.go("p-1");
    running.done();
    repository.check(&["p-1"], TESTS);
}

#[test]
fn trees_do_not_lie_where_git_tracks_the_folder() {
    let repository = Repository::new("places-tracked", PLAIN, &["p-1"]);
    repository.set(&[("[fleet]", "[fleet]\ntrees = \"agents\"")]);
    repository.write("agents/own.py", "theirs\n");
    repository.commit("A folder of our own");
    for line in ["init", "doctor", "config check"] {
        let said = repository.adj(line);
        let times = said.stdout.matches("git tracks files in `agents`").count();
        assert_eq!(times, 1, "adj {line}: {}", said.stdout);
        assert!(line == "init" || said.code != 0, "adj {line}: {}", said.stdout);
    }
    let refused = repository.adj("run --until-idle");
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("git tracks files in `agents`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("set `trees` in [fleet]"), "{}", refused.stderr);
    assert_eq!(names(&repository.dir().join("agents")), ["own.py"]);
}

/// Of a linked worktree and of a bare repository, the state is in the git directory that all share.
#[test]
fn worktrees_and_bare_repositories_have_their_state_in_the_shared_git_directory() {
    let repository = Repository::new("places-shared", PLAIN, &[]);
    repository.ok("task add One --id p-1");
    let linked = repository.dir().with_extension("linked");
    repository.git(&format!("worktree add --quiet --detach {}", linked.display()));
    let mut command = super::super::command("board");
    let board = command.current_dir(&linked).output().expect("adj runs");
    assert!(String::from_utf8_lossy(&board.stdout).contains("p-1"), "the same project");
    std::fs::remove_dir_all(&linked).expect("it goes");

    let bare = repository.dir().with_extension("git");
    repository.git(&format!("clone --quiet --bare . {}", bare.display()));
    let mut command = super::super::command("task add One --id b-1");
    let added = command.current_dir(&bare).output().expect("adj runs");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    assert!(bare.join("adjutant/adjutant.db").exists() && !bare.join(".git").exists());
    std::fs::remove_dir_all(&bare).expect("it goes");
}

/// A folder in everybody's temporary directory is used only if it is ours and open to nobody else.
#[test]
fn a_temporary_folder_that_somebody_else_made_is_not_used() {
    let repository = Repository::new("places-temp", PLAIN, &["p-1"]);
    let own = PathBuf::from(format!("/tmp/adj-t-{}", std::process::id()));
    std::fs::create_dir_all(&own).expect("a folder");
    let elsewhere = repository.dir().join(".git/elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let user = nix::unistd::geteuid();
    std::os::unix::fs::symlink(&elsewhere, own.join(format!("adj-{user}"))).expect("a link in its place");
    let scenario = PLAIN.replace("{ done = true }", "{ run = 'echo $TMPDIR > {task}.txt' }, { done = true }");
    repository.write("scenario.toml", &scenario);
    repository.commit("A scenario");
    let ran = repository.command("run --until-idle").env("TMPDIR", &own).output().expect("adj runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let used = repository.git("show main:p-1.txt");
    assert!(used.starts_with(&format!("{}/adj-{user}-2/", own.display())), "{used}");
    assert_eq!(names(&elsewhere), [""; 0]);
    std::fs::remove_dir_all(&own).expect("it goes");
}

/// A command that cannot write the folder around the repository. Nothing where this machine allows no such thing.
fn beside_which_nothing_is_made(repository: &Repository, line: &str) -> Option<Command> {
    let (parent, dir) = (repository.dir().parent()?.to_owned(), repository.dir().to_owned());
    let plain = repository.command(line);
    // Modes do not hold root; a mount of its own does.
    let script = r#"
mount --bind "$1" "$1" && mount --bind "$2" "$2" && mount -o remount,bind,ro "$1" || exit 99
shift 2
exec "$@"
"#;
    let mut command = Command::new("unshare");
    match nix::unistd::geteuid().is_root() {
        true => command.arg("--mount"),
        false => command.args(["--map-root-user", "--mount"]),
    };
    command.args(["sh", "-c", script, "sh"]).args([&parent, &dir]);
    let tried = |mut command: Command| command.arg("true").output().is_ok_and(|ran| ran.status.success());
    let mut probe = Command::new("unshare");
    probe.args(command.get_args());
    if !tried(probe) {
        crate::not_tried("this machine gives no mounts of one's own");
        return None;
    }
    command.arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(&dir).stdin(std::process::Stdio::null());
    Some(command)
}

/// The folder is named before it is made, it is the one that is used, and nothing in its path is hidden unless there is
/// no other.
#[test]
fn trees_that_cannot_stand_beside_the_project_are_in_a_folder_without_a_hidden_part_where_there_is_one() {
    let around = std::env::temp_dir().join(format!("adj-places-around-{}", std::process::id()));
    let tests = r#"
set -e
case "$PWD" in */.*) echo "refused: a hidden part in $PWD"; exit 1 ;; esac
for check in *.check; do sh "$check"; done
"#;
    // What HOME and XDG_DATA_HOME are, where the trees are then, and whether that is warned of.
    for (home, data, expected, warned) in [
        ("home", None, "home/adjutant-trees/", false),
        ("home", Some("data"), "data/adjutant/", false),
        ("home", Some("home/.data"), "home/adjutant-trees/", false),
        (".home", None, ".home/adjutant-trees/", true),
    ] {
        let _ = std::fs::remove_dir_all(&around);
        let repository = Repository::at(&around.join("inner/project"), PLAIN, &["p-1"]);
        repository.write("tests.sh", tests);
        repository.commit("Tests that refuse hidden paths");
        let adj = |line: &str| -> Option<String> {
            let mut command = beside_which_nothing_is_made(&repository, line)?;
            command.env("HOME", around.join(home)).env_remove("XDG_DATA_HOME");
            data.map(|data| command.env("XDG_DATA_HOME", around.join(data)));
            std::fs::create_dir_all(around.join(home)).expect("a home");
            let ran = command.output().expect("it runs");
            Some(String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr))
        };
        let Some(doctor) = adj("doctor") else { return };
        let named = format!("trees are in {}/{expected}project-", around.display());
        assert!(doctor.contains(&named), "{doctor}");
        assert_eq!(doctor.contains("some tests refuse its hidden part"), warned, "{doctor}");
        assert!(!around.join(expected).exists(), "looking makes nothing");
        let init = adj("init").expect("it ran before");
        assert!(init.contains(&named), "{init}");
        let ran = adj("run --until-idle").expect("it ran before");
        assert!(ran.contains(&named), "{ran}");
        assert_eq!(ran.contains("which some tests refuse"), warned, "{ran}");
        assert_eq!(ran.contains("p-1 landed"), !warned, "{ran}");
        assert!(names(&around.join(expected))[0].starts_with("project-"));
    }
    std::fs::remove_dir_all(&around).expect("it goes");
}

/// Whoever only looks leaves nothing behind, and whoever writes makes a folder that is nobody else's.
#[test]
fn commands_that_only_read_make_no_state_and_the_others_make_it_for_their_user_alone() {
    let repository = Repository::new("places-look", PLAIN, &["p-1"]);
    repository.write(".gitignore", ".venv/\n");
    repository.write(".venv/x", "x\n");
    repository.set(&[("[test]", "[worktree]\nsymlink = [\".venv\"]\n[test]")]);
    let state = repository.state("");
    for line in ["config check", "doctor", "why", "why p-1", "board", "ps", "task ls", "history", "cost"] {
        repository.adj(line);
        assert!(!state.exists(), "adj {line} made {:?}", names(&state));
    }
    let mode = || state.metadata().expect("it is there").permissions().mode() & 0o777;
    for line in ["task add One --id p-9", "run --until-idle"] {
        repository.ok(line);
        assert_eq!(mode(), 0o700, "adj {line}");
        std::fs::remove_dir_all(&state).expect("it goes");
        let _ = std::fs::remove_dir_all(repository.trees());
    }
}

/// A person's commits on the published branch are not part of the task; whoever reviews it hears of them.
#[test]
fn a_persons_commits_on_the_branch_of_a_task_are_named_in_its_review() {
    let repository = Repository::new("places-branch", PLAIN, &["p-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.begin("run --until-idle").ended();
    assert!(!repository.ok("review p-1").contains("was moved"));
    let linked = repository.dir().with_extension("linked");
    repository.git(&format!("worktree add --quiet {} agent/A-p-1", linked.display()));
    std::fs::write(linked.join("mine.txt"), "mine\n").expect("a file");
    for line in ["add mine.txt", "commit --quiet -m Mine"] {
        repository.git(&format!("-C {} {line}", linked.display()));
    }
    repository.git(&format!("worktree remove {}", linked.display()));
    let shown = repository.ok("review p-1");
    assert!(shown.contains("branch agent/A-p-1 was moved to"), "{shown}");
    assert!(shown.contains("(1 commit) is not the agent's"), "{shown}");
    assert_eq!(repository.json("review p-1")["movedBranch"]["commits"], 1);
}

/// An agent that is sent back after main has moved can merge with `origin/main` and with `main`.
#[test]
fn an_agent_sees_main_as_it_is_at_every_step() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "begun\n" }, { run = 'touch "$TMPDIR/here"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done', quiet = true } ]
[[scenario.step]]
do = [
  { run = "git rev-parse main origin/main > seen.txt" },
  { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true },
]
"#;
    let repository = Repository::new("places-main", scenario, &["p-1"]);
    let running = repository.start("run");
    wait("its middle", || repository.temp("p-1").join("here").exists().then_some(()));
    repository.write("moved.txt", "by a person\n");
    repository.commit("Main moves");
    let main = repository.git("rev-parse main");
    repository.go("p-1");
    running.wait_for("p-1 landed");
    running.stop();
    assert_eq!(repository.git("show main:seen.txt"), format!("{main}\n{main}"));
}

/// Where a repository cannot be used, it is said what is wrong with it and what to do.
#[test]
fn bare_repositories_odd_paths_and_other_peoples_folders_are_told_plainly() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    let repository = Repository::new("places-plain", PLAIN, &[]);
    let bare = repository.dir().with_extension("git");
    repository.git(&format!("clone --quiet --bare . {}", bare.display()));
    let said = |folder: &Path, line: &str| {
        let ran = super::super::command(line).current_dir(folder).output().expect("adj runs");
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr)
    };
    let init = said(&bare, "init");
    assert!(init.contains("a bare repository has no checkout to commit it in"), "{init}");
    assert!(!init.contains("none were found"), "{init}");
    assert!(said(&bare, "doctor").contains("detected in each tree, because this repository is bare"));
    std::fs::remove_dir_all(&bare).expect("it goes");

    let odd = repository.dir().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).expect("a folder");
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(&odd).status();
    assert!(made.expect("git runs").success());
    let init = said(&odd, "init");
    assert!(init.contains("is not UTF-8") && init.contains("rename that folder"), "{init}");

    // Only root can be another user.
    repository.ok("task add One --id p-9");
    if nix::unistd::geteuid().is_root() {
        let mut command = super::super::command("board");
        // The binary may lie where they cannot start it.
        let ran = command.current_dir(repository.dir()).uid(65_534).gid(65_534).output();
        let Ok(ran) = ran else { return };
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("belongs to root, and nobody else can use it"), "{said}");
    }
}

/// Temporary files of projects that are gone for a day are removed. Those of one that was used lately stay: it may be on a disk that
/// this process does not see.
#[test]
fn temporary_files_of_projects_that_are_gone_are_removed_after_a_day() {
    let repository = Repository::new("places-gone", PLAIN, &[]);
    let beside = repository.temp("x").parent().expect("a folder of the project").with_file_name("of-others");
    let of_project = |name: &str, days: u64| {
        let folder = beside.with_file_name(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("t-1")).expect("a folder");
        let gone = repository.dir().join("gone/.git/adjutant");
        std::fs::write(folder.join(".project"), gone.as_os_str().as_encoded_bytes()).expect("a record");
        last_used_days_ago(&folder, days);
        folder
    };
    let (old, young) = (of_project("old", 2), of_project("young", 0));
    repository.ok("task add One --id p-1");
    repository.ok("run --until-idle");
    assert!(!old.exists(), "it was used two days ago");
    assert!(young.join("t-1").exists(), "it was used just now");
    std::fs::remove_dir_all(young).expect("it goes");
}

/// As if a project had used its folder of temporary files so long ago.
pub fn last_used_days_ago(folder: &Path, days: u64) {
    let record = std::fs::File::options().append(true).open(folder.join(".project")).expect("a record");
    let used = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
    record.set_modified(used).expect("a time");
}
