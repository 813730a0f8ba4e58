//! Repositories that are not like others: a whole life in each.

use super::faults::repository;
use super::{Repository, SETTINGS, TESTS};

const ONE: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// A life in it ends as in any other.
#[track_caller]
fn lives(repository: &Repository) -> String {
    let said = repository.ok("run --until-idle");
    repository.check(&["o-1"], TESTS);
    assert!(repository.dir().join("o-1.check").exists(), "the checkout follows main:\n{said}");
    said
}

/// As `Repository::new`, made by another way to make a repository.
fn made(name: &str, init: &str) -> Repository {
    let repository = Repository::new(name, ONE, &["o-1"]);
    std::fs::remove_dir_all(repository.dir().join(".git")).expect("it goes");
    repository.git(init);
    repository.commit("Begin");
    repository
}

#[test]
fn a_git_directory_that_lies_elsewhere() {
    let elsewhere = std::env::temp_dir().join(format!("adj-elsewhere-{}.git", std::process::id()));
    let repository =
        made("odd-elsewhere", &format!("init -q -b main --separate-git-dir={}", elsewhere.display()));
    lives(&repository);
    std::fs::remove_dir_all(elsewhere).expect("it goes");
}

#[test]
fn a_main_of_another_name_in_a_folder_with_a_space() {
    let repository = made("odd sp\u{e4}ce", "init -q -b tr\u{fc}nk/1");
    let refused = repository.adj("run --until-idle");
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("there is no branch `main`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("tr\u{fc}nk/1"), "the way out is said: {}", refused.stderr);
    repository.write("adjutant.toml", &format!("[project]\nmain = \"tr\u{fc}nk/1\"\n{SETTINGS}"));
    repository.commit("Settings");
    let said = repository.ok("run --until-idle");
    assert!(said.contains("o-1 landed on tr\u{fc}nk/1"), "by the name that it has: {said}");
    assert!(repository.read(".tickets/o-1.md").contains("status: closed"));
    assert_eq!(repository.git("status --porcelain"), "");
}

/// Every kind of file goes through leftovers, gate, merge and checkout as it is.
#[test]
fn files_of_every_kind_and_name() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "sh make.sh; rm make.sh", quiet = true }, { write = "{task}.check", text = "true\n" }, { done = true } ]
"#;
    let repository = Repository::new("odd-names", scenario, &["o-1"]);
    let make = "printf a > ./-dash; : > \"$(printf 'new\\nline')\"; : > empty; ln -s base.check link\n\
                printf x > run.sh; chmod +x run.sh tests.sh; printf y > \"$(printf 'bad\\377')\"; mkdir 'a b'\n\
                printf z > 'a b/\u{fc}'; git mv Case.check cASE.check; printf 'x\\r\\ny\\r\\n' > crlf.txt\n";
    repository.write("make.sh", make);
    repository.write("Case.check", "true\n");
    repository.write(".gitattributes", "crlf.txt eol=crlf\n");
    repository.commit("Before");
    lives(&repository);
    let files = repository.git("ls-tree -r main");
    let expected = [
        "\t-dash",
        "\t\"new\\nline\"",
        "\tempty",
        "\tlink",
        "100755 blob c1b0730e0133447badcfd47fd144e254807b06e1\trun.sh",
        "\t\"bad\\377\"",
        "\t\"a b/\\303\\274\"",
        "\tcASE.check",
    ];
    for file in expected {
        assert!(files.contains(file), "{file}:\n{files}");
    }
    assert!(files.contains("120000 blob") && !files.contains("\tCase.check") && !files.contains("make.sh"));
    assert_eq!(repository.git("show main:crlf.txt"), "x\ny");
    assert_eq!(repository.read("crlf.txt"), "x\r\ny\r\n");
}

/// What a ticket's title holds is anybody's, and its merge lands all the same.
#[test]
fn a_title_that_git_would_not_take() {
    let repository = Repository::new("odd-title", ONE, &["o-1"]);
    let ticket = repository.read(".tickets/o-1.md").replace("# Do o-1", "# Do \0 it\u{1b}[31m");
    repository.write(".tickets/o-1.md", &ticket);
    repository.commit("A title");
    lives(&repository);
    assert_eq!(repository.git("log -1 --format=%s main"), "o-1: Do   it [31m");
}

/// A folder that somebody put in a tree's place is theirs; the task is done without it.
#[test]
fn a_folder_of_the_users_in_a_trees_place_is_left_alone_and_nothing_waits_for_it() {
    let changes = [("review = \"auto\"", "review = \"human\"")];
    let repository = repository("odd-place", &changes, TESTS, ONE, &["o-1"]);
    repository.begin("run --until-idle").ended();
    let tree = super::faults::tree(&repository, "o-1");
    // Made before the other goes: a file system may give the number of what was removed to what is made next.
    let mine = tree.with_extension("mine");
    std::fs::create_dir(&mine).expect("a folder");
    std::fs::write(mine.join("mine"), "mine").expect("a file");
    std::fs::remove_dir_all(&tree).expect("it goes");
    std::fs::rename(&mine, &tree).expect("it is in its place");
    repository.ok("review o-1 --approve");
    let said = repository.begin("run --until-idle").done();
    assert!(said.contains("was not created by adjutant for task o-1, so it is left unchanged"), "{said}");
    assert_eq!(std::fs::read_to_string(tree.join("mine")).expect("it is there"), "mine");
    std::fs::remove_dir_all(&tree).expect("it goes");
    repository.check(&["o-1"], TESTS);
}

/// A branch without a commit in common with main cannot be merged, and its agent is told what to do about it.
#[test]
fn work_that_begins_a_history_of_its_own_is_sent_back_with_the_reason() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "git checkout -q --orphan own && git commit -qm Own", quiet = true }, { write = "{task}.check", text = "true\n" }, { done = true } ]
[[scenario.step]]
on = "merge_conflict"
do = [
  { run = "git checkout -q -f -B own {main}", quiet = true },
  { write = "told.txt", text = "{prompt}" }, { write = "{task}.check", text = "true\n" }, { commit = "Again" }, { done = true },
]
"#;
    let repository = Repository::new("odd-orphan", scenario, &["o-1"]);
    lives(&repository);
    let told = repository.read("told.txt");
    assert!(told.contains("no commit in common with main") && told.contains("Begin again on main"), "{told}");
}
