//! Repositories, agents and names that want to run something of theirs in our process, or to be taken for options.

use super::background::wait;
use super::faults::{repository, tree};
use super::{Repository, TESTS};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything by which a git directory can make git run a program. The program writes down who called it, unless that
/// was an agent or something that an agent started: whatever they plant, they may run themselves.
const PLANT: &str = r#"
canary=$1
git=$(cd .git && pwd)
cat > "$git/canary" <<END
#!/bin/sh
[ -n "\$ADJ_EFFECT" ] || echo "\$0 \$* by \$(tr '\\0' ' ' < /proc/\$PPID/cmdline)" >> "$canary"
cat 2>/dev/null
exit 0
END
chmod +x "$git/canary"
mkdir -p "$git/hooks"
for hook in applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change \
  post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push \
  pre-rebase pre-receive prepare-commit-msg proc-receive push-to-checkout reference-transaction update; do
  cp "$git/canary" "$git/hooks/$hook"
done
cat >> "$git/config" <<END
[core]
	fsmonitor = $git/canary
	hooksPath = $git/hooks
	pager = $git/canary
	editor = $git/canary
	sshCommand = $git/canary
	alternateRefsCommand = $git/canary
[filter "canary"]
	clean = $git/canary
	smudge = $git/canary
	required = true
[diff]
	external = $git/canary
[diff "canary"]
	textconv = $git/canary
	command = $git/canary
[merge "canary"]
	driver = $git/canary %O %A %B
[gpg]
	program = $git/canary
[log]
	showSignature = true
[alias]
	status = !$git/canary
[uploadpack]
	packObjectsHook = $git/canary
[credential]
	helper = !$git/canary
[sequence]
	editor = $git/canary
END
mkdir -p "$git/info"
echo '*.txt diff=canary merge=canary' >> "$git/info/attributes"
echo '*.filtered filter=canary' >> "$git/info/attributes"
"#;

/// A life with a conflict, a kill and a cancel, of agents that plant what they can.
const LIFE: &str = r#"
[[scenario]]
task = "one"
[[scenario.step]]
do = [
  { run = "sh plant.sh CANARY", quiet = true },
  { write = ".gitattributes", text = "*.txt diff=canary merge=canary\n*.evil filter=evil diff=evil\n", quiet = true },
  { write = "shared.txt", text = "one\n" }, { write = "x.evil", text = "evil\n" },
  { commit = "One" }, { write = "left.txt", text = "left over\n" }, { done = true },
]

[[scenario]]
task = "two"
[[scenario.step]]
do = [
  { run = "sh plant.sh CANARY", quiet = true },
  { write = "shared.txt", text = "two\n" }, { commit = "Two" },
  { run = "touch two.middle; while [ ! -e two.go ]; do sleep 0.05; done; rm two.middle two.go", quiet = true },
  { done = true },
]
[[scenario.step]]
on = "merge_conflict"
do = [ { merge = "{main}", files = { "shared.txt" = "one\ntwo\n" } }, { done = true } ]

[[scenario]]
[[scenario.step]]
do = [
  { run = "sh plant.sh CANARY", quiet = true },
  { write = "{task}.txt", text = "kept\n" }, { commit = "Kept" }, { write = "{task}.left", text = "left\n" },
  { run = "touch {task}.middle; sleep 1000", quiet = true },
]
"#;

fn plant(repository: &Repository, canary: &Path) {
    let ran = Command::new("sh")
        .arg("plant.sh")
        .arg(canary)
        .current_dir(repository.dir())
        .output()
        .expect("sh runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn called(canary: &Path) -> String {
    std::fs::read_to_string(canary).unwrap_or_default()
}

#[track_caller]
fn middle(repository: &Repository, task: &str) -> PathBuf {
    let tree = tree(repository, task);
    wait("the middle of a step", || tree.join(format!("{task}.middle")).exists().then_some(()));
    tree
}

/// Who works in a tree, by its name.
fn worker(tree: &Path) -> String {
    let name = tree.file_name().expect("it has a name").to_string_lossy().into_owned();
    name.split('-').next().expect("a worker").to_owned()
}

/// Claim, step, gate, conflict, landing, kill, salvage, cancel and clean, and not one program is run by us that the
/// user's repository or an agent's clone names.
#[test]
fn no_hook_filter_or_driver_is_run_by_us_in_a_whole_life() {
    let place = Repository::empty("canaries");
    let canary = place.dir().join("canary");
    let scenario = LIFE.replace("CANARY", &canary.display().to_string());
    let repository = repository("hostile-life", &[("workers = 2", "workers = 4")], TESTS, &scenario, &[]);
    repository.write("plant.sh", PLANT);
    for id in ["one", "two", "three", "four"] {
        repository.ticket(id, &[]);
    }
    repository.commit("What is planted");
    let config = repository.read(".git/config");
    plant(&repository, &canary);
    // The trap works: a git that knows nothing of it falls into it.
    repository.git("status --porcelain");
    assert_ne!(called(&canary), "");
    std::fs::remove_file(&canary).expect("it was written");

    let fleet = repository.begin("run");
    let trees = ["two", "three", "four"].map(|task| middle(&repository, task));
    fleet.wait_for("one landed");
    std::fs::write(trees[0].join("two.go"), "").expect("a file");
    fleet.wait_for("two: conflicts with main");
    fleet.wait_for("two landed");
    assert_eq!(called(&canary), "", "after two landings");
    for line in ["diff one", "diff three", "board", "ps", "task show two", "doctor"] {
        let ran = repository.adj(line);
        assert!(ran.code <= 1, "{line}: {}", ran.stderr);
    }
    assert_eq!(called(&canary), "", "after looking at it");
    // An agent's clone is a trap of the same kind.
    let fell = Command::new("git").arg("diff").current_dir(&trees[1]).output().expect("git runs");
    assert!(called(&canary).contains("three"), "{fell:?}");
    std::fs::remove_file(&canary).expect("it was written");
    repository.ok(&format!("kill {}", worker(&trees[1])));
    repository.ok("task cancel four");
    for gone in &trees[2..] {
        wait("the tree is put away", || (!gone.exists()).then_some(()));
    }
    assert_eq!(called(&canary), "", "after a kill and a cancel");
    repository.ok("stop");
    fleet.done();
    let saved = repository.ok("salvage list");
    assert!(saved.contains("three") && saved.contains("four"), "{saved}");
    for line in saved.lines().filter(|line| line.contains("refs/adjutant/salvage/")) {
        let reference =
            line.split_whitespace().find(|word| word.starts_with("refs/adjutant/")).expect("it is there");
        repository.ok(&format!("salvage show {reference}"));
    }
    repository.ok("clean --yes");
    repository.ok("run --once --workers 0");
    assert_eq!(called(&canary), "", "to the end");
    repository.write(".git/config", &config);
    let _ = std::fs::remove_dir_all(repository.dir().join(".git/hooks"));
    let _ = std::fs::remove_file(repository.dir().join(".git/info/attributes"));
    assert_eq!(repository.read("shared.txt"), "one\ntwo\n");
    assert_eq!(repository.read("left.txt"), "left over\n");
    repository.check_main(TESTS);
    assert_eq!(repository.strays(), [""; 0]);
    assert_eq!(repository.adj("verify").code, 0);
}

/// Settings name programs that run as the user. Those that came in with an agent's branch hold when the user says so, and
/// not because the fleet was started again.
#[test]
fn settings_from_an_agents_branch_are_not_in_force_until_they_are_trusted() {
    let place = Repository::empty("settings-canary");
    let canary = place.dir().join("canary");
    let scenario = r#"
[[scenario]]
task = "settings"
[[scenario.step]]
do = [
  { append = "adjutant.toml", text = "\n[hooks]\nstep.before = \"touch CANARY\"\n[sandbox]\nmode = \"off\"\n", quiet = true },
  { write = "{task}.check", text = "true\n" }, { commit = "Settings" }, { done = true },
]
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "It" }, { done = true } ]
"#
    .replace("CANARY", &canary.display().to_string());
    let repository = repository("hostile-settings", &[], TESTS, &scenario, &["settings"]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "a person must look at it: {}", ran.stdout);
    assert!(
        ran.stdout.contains("settings: a person must look at it (it changes adjutant.toml)"),
        "{}",
        ran.stdout
    );
    repository.ok("review settings --approve");
    repository.ok("run --until-idle");
    assert!(repository.read("adjutant.toml").contains("step.before"), "it has landed");
    repository.ticket("next", &[]);
    repository.commit("Another ticket");
    repository.ok("run --until-idle");
    assert!(!canary.exists(), "it is not in force after a restart");
    repository.check(&["settings", "next"], TESTS);
    repository.ok("config trust");
    repository.ticket("last", &[]);
    repository.commit("One more ticket");
    repository.ok("run --until-idle");
    assert!(canary.exists(), "the user has said so");
}

/// Names that look like options, paths or other names are refused or harmless, and what is shown of them is text.
#[test]
fn hostile_names_are_refused_or_harmless() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.check", text = "true\n" },
  { write = "--upload-pack=x", text = "a\n" }, { write = "-rf", text = "b\n" }, { write = "a\nb \u001b[2J.txt", text = "c\n" },
  { write = ":(exclude)*", text = "d\n" }, { write = "ｍain", text = "e\n" }, { write = "HEAD", text = "f\n" },
  { run = "git branch -- 'refs/heads/x' ; git update-ref refs/heads/--upload-pack=x HEAD; git update-ref 'refs/heads/-rf' HEAD", quiet = true },
  { run = "ln -s /etc/passwd link; ln -s $(cd ..; pwd | sed s/.agents$//)/.git/adjutant inside", quiet = true },
  { commit = "--upload-pack=x \u001b[2J" }, { write = "left \u001b[2J\nover", text = "g\n" }, { done = true },
]
"#;
    let repository = repository("hostile-names", &[], TESTS, scenario, &["good"]);
    let ticket = |file: &str, id: &str, title: &str| {
        let text = format!(
            "---\nid: {id}\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-11-01T09:00:00Z\ntype: task\npriority: 2\n---\n# {title}\n\nIt.\n"
        );
        std::fs::write(repository.dir().join(".tickets").join(file), text).expect("a file");
    };
    ticket("--upload-pack=x.md", "--upload-pack=x", "An option");
    ticket("-rf.md", "-rf", "An option");
    ticket("a\nb\u{1b}[2J.md", "\"a\\nb\"", "Lines");
    ticket("..evil.md", "../../evil", "A path");
    ticket("gооd.md", "gооd", "Look-alikes");
    ticket("title.md", "title", "Clear \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}the --upload-pack=x\r screen");
    ticket("dependent.md", "dependent", "Depends");
    let dependent =
        repository.read(".tickets/dependent.md").replace("deps: []", "deps: [\"--help\", \"-rf\"]");
    repository.write(".tickets/dependent.md", &dependent);
    repository.commit("Tickets");
    let ran = repository.adj("run --until-idle");
    let mut shown = ran.stdout.clone() + &ran.stderr;
    for line in [
        "board",
        "task ls",
        "task show title",
        "task show good",
        "diff good",
        "diff good --stat",
        "history",
        "why good",
    ] {
        let ran = repository.adj(line);
        shown += &ran.stdout;
        shown += &ran.stderr;
    }
    let bad = |c: &char| (c.is_control() && !"\n\t".contains(*c)) || ('\u{202a}'..='\u{202e}').contains(c);
    assert_eq!(shown.chars().find(bad), None, "{shown:?}");
    for id in ["good", "title"] {
        assert!(repository.read(&format!(".tickets/{id}.md")).contains("status: closed"), "{id}\n{shown}");
    }
    // Only what has a name of the strict alphabet became a task, a branch or a folder.
    let refs = repository.git("for-each-ref --format=%(refname)");
    for bad in ["upload-pack", "-rf", "evil", "gо"] {
        assert!(!refs.contains(bad), "{refs}");
    }
    for id in [
        "../x",
        "-rf",
        "--upload-pack=x",
        "a b",
        "gооd",
        "a\u{1b}[2J",
        ".",
        "..",
        "a/../b",
        &"x".repeat(10_000),
    ] {
        for words in [["task", "show"].as_slice(), &["diff"], &["why"], &["kill"], &["peek"]] {
            let mut command = repository.command("");
            let ran = command.args(words).arg("--").arg(id).output().expect("adj runs");
            assert_ne!(ran.status.code(), Some(0), "{words:?} {id}");
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(!said.contains('\u{1b}') && !said.contains("panicked"), "{words:?}: {said:?}");
        }
    }
    assert!(
        !repository.dir().join("evil").exists()
            && !repository.dir().parent().expect("one").join("evil.md").exists()
    );
    repository.check_main(TESTS);
    assert_eq!(repository.strays(), [""; 0]);
}
