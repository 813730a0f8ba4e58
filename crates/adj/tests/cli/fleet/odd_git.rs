//! Agents that do odd things to their git directory, and users who change main's history: no commit is lost, nothing that
//! was taken off main comes back.

use super::background::wait;
use super::{Repository, SETTINGS, TESTS};

/// A scenario whose agent waits in the middle, so that the user can do something to main meanwhile.
const WAITS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Do {task}", quiet = true },
  { run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done; rm {task}.go {task}.middle", quiet = true },
  { done = true },
]
"#;

/// Wherever the agent has put its git directory, its commits are in a ref before its tree goes.
/// Slow: a fleet is run once for each place to which an agent can move its git directory.
#[test]
fn commits_are_saved_wherever_the_git_directory_was_put() {
    let ways = [
        ("link", "mv .git $TMPDIR/g; ln -s $TMPDIR/g .git"),
        ("file", "mv .git $TMPDIR/g; echo gitdir: $TMPDIR/g > .git"),
        ("objects", "mv .git/objects $TMPDIR/o; ln -s $TMPDIR/o .git/objects"),
        ("moved", "mv .git old.git"),
        ("away", "mv .git $TMPDIR/g"),
        ("headless", "mv .git old.git; rm old.git/HEAD"),
        ("taken", "mv .git/objects objs"),
        ("again", "mv .git old.git; git init -q"),
    ];
    for (name, then) in ways {
        let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "precious.txt", text = "precious\n", quiet = true },
  { commit = "Precious", quiet = true },
  { run = "git rm -q precious.txt; git commit -q -m Without; THEN; touch moved", quiet = true },
  { hang = true },
]
"#;
        let scenario = scenario.replace("THEN", &then.replace('"', "\\\""));
        let repository = Repository::new(&format!("odd-{name}"), &scenario, &["one"]);
        let fleet = repository.begin("run --until-idle");
        let moved = repository.tree("A-one/moved");
        wait("the move", || moved.exists().then_some(()));
        repository.ok("task cancel one");
        fleet.done();
        assert_eq!(repository.standing(), Vec::<String>::new(), "{name}: the tree is gone");
        let kept = repository.git("for-each-ref --format=%(refname) refs/adjutant");
        let has =
            |reference: &str| repository.git(&format!("log --format=%s {reference}")).contains("Precious");
        assert!(kept.lines().any(has), "{name}: {kept}");
        assert_eq!(objects_among_files(&repository), Vec::<String>::new(), "{name}");
    }
}

/// Files of any commit that are git's own: no git directory is ever a file of the project.
fn objects_among_files(repository: &Repository) -> Vec<String> {
    let files = repository.git("log --all --name-only --format=");
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.chars().all(|digit| digit.is_ascii_hexdigit())
    };
    let is_gits = |path: &&str| {
        let parts: Vec<&str> = path.rsplit('/').collect();
        parts.iter().any(|part| ["old.git", "objects"].contains(part))
            || (parts.len() > 1 && is_hex(parts[0], 38) && is_hex(parts[1], 2))
    };
    files.lines().filter(is_gits).map(str::to_owned).collect()
}

/// The agent says DONE all the same: its work lands, and nothing of its git directory with it.
#[test]
fn work_lands_wherever_the_git_directory_was_put_and_nothing_of_it_does() {
    let ways = [
        ("link", "mv .git $TMPDIR/g; ln -s $TMPDIR/g .git"),
        ("moved", "mv .git old.git"),
        ("headless", "mv .git old.git; rm old.git/HEAD"),
        ("bare", "mv .git old.git; rm -r old.git/HEAD old.git/refs"),
        ("taken", "mv .git/objects objs"),
        ("strewn", "mv .git/objects/* .; rm -rf .git"),
    ];
    for (name, then) in ways {
        let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Do {task}", quiet = true },
  { write = "more.txt", text = "more\n", quiet = true },
  { run = "THEN", quiet = true },
  { done = true },
]
"#;
        let repository =
            Repository::new(&format!("odd-done-{name}"), &scenario.replace("THEN", then), &["one"]);
        repository.ok("run --until-idle");
        assert_eq!(objects_among_files(&repository), Vec::<String>::new(), "{name}");
        assert_eq!(repository.read("more.txt"), "more\n", "{name}");
        repository.check(&["one"], TESTS);
    }
}

/// What a person is told to do with a tree that cannot be read loses no commit.
#[test]
fn a_cleanup_saves_commits_whose_git_directory_was_moved() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "precious.txt", text = "precious\n", quiet = true },
  { commit = "Precious", quiet = true },
  { run = "git rm -q precious.txt; mv .git/objects objs; touch moved", quiet = true },
  { hang = true },
]
"#;
    let repository = Repository::new("odd-cleanup", scenario, &["one"]);
    let fleet = repository.begin("run --until-idle");
    let moved = repository.tree("A-one/moved");
    wait("the move", || moved.exists().then_some(()));
    repository.ok("stop");
    fleet.ended();
    repository.adj("kill A");
    repository.adj("task cancel one");
    repository.adj("cleanup A");
    repository.ok("run --until-idle");
    assert_eq!(repository.standing(), Vec::<String>::new(), "the tree is gone");
    let kept = repository.git("for-each-ref --format=%(refname) refs/adjutant");
    let has = |reference: &str| repository.git(&format!("log --format=%s {reference}")).contains("Precious");
    assert!(kept.lines().any(has), "{kept}");
    assert_eq!(objects_among_files(&repository), Vec::<String>::new());
}

/// What lies in a task's temporary folder goes to the trash with its tree.
#[test]
fn a_temporary_folder_goes_to_the_trash() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "echo mine > $TMPDIR/mine.txt", quiet = true },
  { write = "one.check", text = "true\n" },
  { commit = "One" },
  { done = true },
]
"#;
    let repository = Repository::new("odd-temporary", scenario, &["one"]);
    repository.ok("run --until-idle");
    repository.check(&["one"], TESTS);
    let trash = repository.trees().join("trash");
    let kept = std::fs::read_dir(trash)
        .expect("there is a trash")
        .flatten()
        .map(|entry| entry.path().join("mine.txt"));
    assert!(kept.into_iter().any(|file| file.exists()), "it is in the trash");
    assert!(!repository.temp("one").exists());
}

/// `land.git` is a copy: removed in the middle of a run it is made again, and no step fails for it.
#[test]
fn a_land_git_that_is_removed_in_the_middle_of_a_run_is_made_again() {
    let repository = Repository::new("odd-land", WAITS, &["one", "two"]);
    let fleet = repository.begin("run --until-idle");
    let trees = ["A-one", "B-two"].map(|tree| repository.trees().join(tree));
    for (tree, task) in trees.iter().zip(["one", "two"]) {
        wait("the middle of a step", || tree.join(format!("{task}.middle")).exists().then_some(()));
    }
    std::fs::remove_dir_all(repository.state("land.git")).expect("it is there");
    for (tree, task) in trees.iter().zip(["one", "two"]) {
        std::fs::write(tree.join(format!("{task}.go")), "").expect("a file");
    }
    let said = fleet.done();
    assert!(!said.contains("failed"), "{said}");
    repository.check(&["one", "two"], TESTS);
}

/// Every object of `land.git` that is a file of its own holds nothing any more.
fn empty_objects(repository: &Repository) {
    let objects = repository.state("land.git/objects");
    let folders = std::fs::read_dir(objects).expect("there are objects").flatten().map(|entry| entry.path());
    for folder in folders.filter(|folder| folder.file_name().is_some_and(|name| name.len() == 2)) {
        for object in std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            std::fs::set_permissions(&object, mode).expect("it is ours");
            std::fs::write(object, "").expect("it is ours");
        }
    }
}

/// Objects of `land.git` that are damaged on the disk: it is made anew from what is sound, and the damaged one is kept.
#[test]
fn a_land_git_with_damaged_objects_is_made_anew() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("odd-damaged", scenario, &["one"]);
    repository.ok("run --until-idle");
    empty_objects(&repository);
    repository.ticket("two", &[]);
    repository.commit("Another ticket");
    let said = repository.ok("run --until-idle");
    assert!(said.contains("land.git was damaged and was created again"), "{said}");
    assert!(repository.state("land.git.damaged-1").is_dir());
    repository.check(&["one", "two"], TESTS);
}

/// Lets the user do something while the agent is in the middle, and the fleet come to its end.
fn meanwhile(repository: &Repository, act: impl FnOnce()) -> String {
    let (code, said) = whatever_comes_of_it(repository, act);
    assert_eq!(code, 0, "{said}");
    said
}

/// The same, where a person may be needed in the end.
fn whatever_comes_of_it(repository: &Repository, act: impl FnOnce()) -> (i32, String) {
    let fleet = repository.begin("run --until-idle");
    let tree = repository.trees().join("A-one");
    wait("the middle of a step", || tree.join("one.middle").exists().then_some(()));
    act();
    std::fs::write(tree.join("one.go"), "").expect("a file");
    fleet.ended()
}

#[test]
fn a_commit_that_the_user_takes_off_main_does_not_come_back_by_a_landing() {
    let repository = Repository::new("odd-reset", WAITS, &["one"]);
    repository.write("secret.txt", "secret\n");
    repository.commit("Oops, a secret");
    let said = meanwhile(&repository, || drop(repository.git("reset --quiet --hard HEAD~1")));
    assert!(said.contains("Oops, a secret") && said.contains("the work lands without it"), "{said}");
    assert!(!repository.git("log --format=%s main").contains("secret"), "{}", repository.git("log main"));
    assert!(!repository.dir().join("secret.txt").exists());
    assert_eq!(repository.read("one.check"), "true\n", "the agent's own work is there");
    assert_eq!(repository.git("status --porcelain"), "");
    repository.check_main(TESTS);
}

/// What `land.git` knew of main is known without it: it is a copy that anybody may remove, and that a disk may damage.
#[test]
fn a_commit_that_was_taken_off_main_stays_off_it_without_land_git_too() {
    let remove = |repository: &Repository| {
        std::fs::remove_dir_all(repository.state("land.git")).expect("it is there");
    };
    stays_off_main("removed", remove);
    stays_off_main("emptied", empty_objects);
}

fn stays_off_main(name: &str, lose: impl Fn(&Repository)) {
    let repository = Repository::new(&format!("odd-reset-{name}"), WAITS, &["one"]);
    repository.write("secret.txt", "secret\n");
    repository.commit("Oops, a secret");
    let fleet = repository.begin("run --until-idle");
    let tree = repository.trees().join("A-one");
    wait("the middle of a step", || tree.join("one.middle").exists().then_some(()));
    repository.ok("stop");
    fleet.ended();
    repository.git("reset --quiet --hard HEAD~1");
    lose(&repository);
    std::fs::write(tree.join("one.go"), "").expect("a file");
    let said = repository.ok("run --until-idle");
    let main = repository.git("log --format=%s main");
    assert!(!main.contains("secret"), "{name}: {main}\n{said}");
    assert!(!repository.dir().join("secret.txt").exists(), "{name}");
    assert_eq!(repository.read("one.check"), "true\n", "{name}: the agent's own work is there");
    repository.check_but_for_tips(&["one"], TESTS);
}

/// The same where the fleet has seen main without it before `land.git` is lost: which mains are no more is known all the same.
#[test]
fn a_commit_that_was_seen_to_leave_main_stays_off_it_when_land_git_is_lost_later() {
    let repository = Repository::new("odd-seen", WAITS, &["one"]);
    repository.write("secret.txt", "secret\n");
    repository.commit("Oops, a secret");
    let fleet = repository.begin("run --until-idle");
    let trees = ["A-one", "B-two"].map(|tree| repository.trees().join(tree));
    wait("the middle of a step", || trees[0].join("one.middle").exists().then_some(()));
    repository.git("reset --quiet --hard HEAD~1");
    // The tree of another task is made on main as it is now.
    repository.ticket("two", &[]);
    repository.commit("Another ticket");
    wait("the other's step", || trees[1].join("two.middle").exists().then_some(()));
    repository.ok("stop");
    fleet.ended();
    std::fs::remove_dir_all(repository.state("land.git")).expect("it is there");
    for (tree, task) in trees.iter().zip(["one", "two"]) {
        std::fs::write(tree.join(format!("{task}.go")), "").expect("a file");
    }
    let said = repository.ok("run --until-idle");
    let main = repository.git("log --format=%s main");
    assert!(!main.contains("secret"), "{main}\n{said}");
    assert!(!repository.dir().join("secret.txt").exists());
    assert_eq!(repository.read("one.check"), "true\n", "the agent's own work is there");
    repository.check_but_for_tips(&["one", "two"], TESTS);
}

/// Whoever reviews the work sees the agent's commits, and whoever reads of a conflict reads which commits are gone.
#[test]
fn what_was_taken_off_main_is_no_commit_of_the_agents_and_is_named_where_it_conflicts() {
    let scenario = WAITS.replace(
        "{ done = true }",
        "{ run = \"echo more >> secret.txt; git commit -q -a -m More\", quiet = true }, { done = true }",
    );
    let repository = Repository::new("odd-conflict", &scenario, &["one"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.write("secret.txt", "secret\n");
    repository.commit("Oops, a secret");
    whatever_comes_of_it(&repository, || drop(repository.git("reset --quiet --hard HEAD~1")));
    let review = repository.ok("review one");
    assert!(review.contains("Do one") && review.contains("More"), "{review}");
    assert!(!review.contains("Oops"), "{review}");
    repository.ok("review one --approve");
    let fleet = repository.begin("run --until-idle");
    let (_, said) = fleet.ended();
    let shown = repository.ok("task show one");
    for told in [said, shown] {
        assert!(told.contains("no longer has") && told.contains("Oops, a secret"), "{told}");
    }
}

/// What landed is looked at as it was, whatever the user does to main afterwards.
#[test]
fn the_diff_of_a_landed_task_stays_when_the_user_takes_the_landing_off_main() {
    let works = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("odd-landed-diff", works, &["one", "two"]);
    repository.ok("run --until-idle --workers 1");
    let shown = repository.ok("diff one");
    assert!(shown.contains("+true"), "{shown}");
    // The second landing has seen main with the first: both are known to be gone now.
    repository.git("reset --quiet --hard HEAD~2");
    repository.ok("run --until-idle --workers 1");
    assert_eq!(repository.ok("diff one"), shown);
}

/// The settings were amended on main, not by the agent: it is not the agent who changes them.
#[test]
fn what_the_user_amends_on_main_is_not_taken_for_the_agents_work() {
    let repository = Repository::new("odd-amend", WAITS, &["one"]);
    repository.write("adjutant.toml", &format!("{SETTINGS}\n# one\n"));
    repository.commit("Settings");
    let said = meanwhile(&repository, || {
        repository.write("adjutant.toml", &format!("{SETTINGS}\n# two\n"));
        repository.git("add adjutant.toml");
        repository.git("commit --quiet --amend --no-edit");
    });
    assert!(said.contains("one landed on main"), "{said}");
    assert!(repository.read("adjutant.toml").contains("# two"));
    assert_eq!(repository.git("log --format=%s main -- adjutant.toml"), "Settings\nBegin");
}

/// Without the sandbox an agent in a worktree can move main. That cannot be held then, so it is said, whatever the agent
/// does afterwards, and once.
#[test]
fn a_main_that_was_moved_past_the_gate_is_said_loudly() {
    let ways = [
        ("then", "{ done = true }"),
        ("more", "{ run = \"git commit -q --allow-empty -m More\", quiet = true }, { done = true }"),
        (
            "else",
            "{ run = \"git reset -q --hard HEAD~1; echo true > else.check; git add -A; git commit -q -m Else\", quiet = true }, { done = true }",
        ),
        ("ask", "{ say = \"Which one do you want?\" }"),
    ];
    for (name, then) in ways {
        let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Do {task}", quiet = true },
  { run = "git update-ref refs/heads/main HEAD", quiet = true },
  THEN,
]
"#;
        let scenario = scenario.replace("THEN", then);
        let repository = Repository::new(&format!("odd-moved-{name}"), &scenario, &["one"]);
        let settings = SETTINGS.replace("[fleet]\n", "[fleet]\nisolation = \"worktree\"\n");
        repository.write("adjutant.toml", &format!("{settings}\n[sandbox]\nmode = \"off\"\n"));
        repository.commit("Settings");
        let ran = repository.adj("run --until-idle");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let loud = "one: its commits are on main without a landing, past tests and review";
        assert_eq!(said.matches(loud).count(), 1, "{name}: {said}");
    }
}

/// Two tasks that happen to make the same commit are honest, and the first that lands says nothing about the second.
#[test]
fn the_same_commit_in_two_trees_is_no_main_that_was_moved() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "same.check", text = "true\n", quiet = true },
  { run = "git add -A; GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000' git commit -q -m Same", quiet = true },
  { done = true },
]
"#;
    let repository = Repository::new("odd-same", scenario, &["one", "two"]);
    let ran = repository.adj("run --until-idle");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("landed on main"), "{said}");
    assert!(!said.contains("without a landing"), "{said}");
}
