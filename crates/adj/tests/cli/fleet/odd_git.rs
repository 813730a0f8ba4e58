//! Agents that do odd things to their git directory, and users who change main's history: no commit is lost, nothing that
//! was taken off main comes back.

use super::background::wait;
use super::{Repository, TESTS};

/// Wherever the agent has put its git directory, its commits are in a ref before its tree goes.
#[test]
fn commits_are_saved_wherever_the_git_directory_was_put() {
    let ways = [
        ("link", "mv .git $TMPDIR/g; ln -s $TMPDIR/g .git"),
        ("file", "mv .git $TMPDIR/g; echo gitdir: $TMPDIR/g > .git"),
        ("objects", "mv .git/objects $TMPDIR/o; ln -s $TMPDIR/o .git/objects"),
        ("moved", "mv .git old.git"),
        ("away", "mv .git $TMPDIR/g"),
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
        let files = repository.git("log --all --name-only --format=");
        assert!(
            !files.contains("old.git") && !files.contains("objects/"),
            "{name}: no git directory is a file\n{files}"
        );
    }
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
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Do {task}", quiet = true },
  { run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done; rm {task}.go {task}.middle", quiet = true },
  { done = true },
]
"#;
    let repository = Repository::new("odd-land", scenario, &["one", "two"]);
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
