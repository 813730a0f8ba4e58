//! Tests see the tree under test and nothing of the person's checkout; trees get what the person has trusted, and what a hook
//! leaves in them is nobody's work.

use super::{Ran, Repository};
use process::sandbox::{Level, support};
use std::os::unix::fs::symlink;
use std::process::Command;

const WRITES: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// Breaks the package: its tests would notice if they ran on it.
const BREAKS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "src/pk/value", text = "99\n" }, { commit = "Break" }, { done = true } ]
"#;

const SITE: &str = ".venv/lib/python3.11/site-packages";

/// A package that its virtual environment has by an editable install, and tests that import it as Python would: from the
/// folder that the `.pth` file names.
fn editable(name: &str) -> Repository {
    let repository = Repository::new(name, BREAKS, &[]);
    repository.write(".gitignore", ".venv/\n");
    repository.write("src/pk/value", "1\n");
    let file = format!("{SITE}/__editable__.pk-0.1.pth");
    repository.write(&file, &format!("{}/src\n", repository.dir().display()));
    repository.write(
        "tests.sh",
        &format!("[ \"$(cat \"$(cat {file})/pk/value\")\" = 1 ] || {{ echo assert; exit 1; }}\n"),
    );
    repository.set(&[("[test]", "[worktree]\nsymlink = [\".venv\"]\n[test]")]);
    repository.ok("task add Change --id t-1");
    repository
}

/// The whole of the fault: with such a link the gate tested the checkout, and a broken package landed under green tests.
#[test]
fn a_linked_environment_that_leads_back_into_the_checkout_is_refused_before_an_agent_starts() {
    let repository = editable("isolation-editable");
    let found = format!(
        "`{SITE}/__editable__.pk-0.1.pth` is an editable install of {}/src",
        repository.dir().display()
    );
    let fix = "`worktree.create = \"python3 -m venv .venv && .venv/bin/pip install -e .\"` under [hooks]";
    for line in ["run --until-idle", "run", "config check", "doctor"] {
        let ran = repository.adj(line);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code != 0 && said.contains(&found) && said.contains(fix), "{line}: {said}");
    }
    // By the server's way in it is the same refusal.
    let server = repository.start("serve --port 0");
    let ran =
        super::background::wait("the server", || Some(repository.adj("run")).filter(|ran| ran.code != 4));
    assert!(ran.code != 0 && ran.stderr.contains(&found), "{}{}", ran.stdout, ran.stderr);
    server.stop();
    assert_eq!(repository.events("lease_given"), 0, "nothing was begun, and nothing paid for");
    // Main's tests find it too, whoever runs them.
    let ran = repository.adj("doctor --tests");
    assert!(ran.code == 1 && ran.stdout.contains(&found), "{}", ran.stdout);

    // The fix: each tree has its own.
    let hook = format!("mkdir -p {SITE} && pwd | sed s,$,/src, > {SITE}/__editable__.pk-0.1.pth");
    repository.set(&[
        ("symlink = [\".venv\"]", ""),
        ("[test]", &format!("[hooks]\nworktree.create = '{hook}'\n[test]")),
    ]);
    repository.set(&[("[fleet]", "[fleet]\nmax_fix_rounds = 1")]);
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("t-1: agent reported done, but tests failed: assert"), "{}", ran.stdout);
    assert_eq!(repository.git("show main:src/pk/value"), "1", "what fails its tests does not land");
}

#[test]
fn workspace_packages_in_a_linked_folder_are_refused_and_no_hint_recommends_to_link_them() {
    let repository = Repository::new("isolation-workspace", WRITES, &["t-1"]);
    repository.write(".gitignore", "node_modules/\n");
    repository.write("packages/a/index.js", "");
    repository.write("pnpm-lock.yaml", "");
    std::fs::create_dir_all(repository.dir().join("node_modules/@m")).expect("a folder");
    symlink("../../packages/a", repository.dir().join("node_modules/@m/a")).expect("a link");
    repository.commit("A workspace");
    let doctor = repository.ok("doctor");
    assert!(doctor.contains("`node_modules` is in your checkout, and trees do not have it"), "{doctor}");
    assert!(doctor.contains("worktree.create"), "{doctor}");
    assert!(!doctor.contains("symlink = ["), "{doctor}");
    repository.set(&[("[test]", "[worktree]\nsymlink = [\"node_modules\"]\n[test]")]);
    let ran = repository.adj("run --until-idle");
    let found = format!("`node_modules/@m/a` is a link to {}/packages/a", repository.dir().display());
    assert!(ran.code == 3 && ran.stderr.contains(&found), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("pnpm install --frozen-lockfile"), "{}", ran.stderr);
}

/// Tests that look at the checkout, and need git, what is linked, and what is declared.
fn looks(repository: &Repository, declared: &Repository) -> String {
    format!(
        "! cat {0}/base.check 2> /dev/null && ! cat {0}/src/x 2> /dev/null || {{ echo the checkout is seen; exit 1; }}\n\
         ! cat {0}.linked/base.check 2> /dev/null || {{ echo another checkout is seen; exit 1; }}\n\
         git log -1 > /dev/null && git status > /dev/null || exit 1\n\
         [ \"$(cat .venv/tool)\" = tool ] && [ \"$(cat real/file)\" = file ] || {{ echo a link leads nowhere; exit 1; }}\n\
         cat {1}/x > /dev/null || exit 1\n",
        repository.dir().display(),
        declared.dir().display()
    )
}

/// A program that runs in namespaces in which no more can be made: Landlock alone is left.
fn without_namespaces(repository: &Repository, line: &str) -> Option<Ran> {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_adj")]).args(line.split(' '));
    command.current_dir(repository.dir()).env("ADJ_USER", "tester");
    let ran: Ran = command.output().ok()?.into();
    (!ran.stderr.contains("unshare") && !ran.stderr.contains("max_user_namespaces")).then_some(ran)
}

#[test]
fn tests_see_nothing_of_the_checkout_but_what_is_linked_or_declared() {
    if support().level == Level::None {
        crate::not_tried("there is no sandbox here");
        return;
    }
    let bubblewrap =
        process::sandbox::support_by(process::sandbox::Namespaces::Bubblewrap).bubblewrap.is_some();
    let mut ways = vec![
        ("clone", "[fleet]\nisolation = \"clone\"", ""),
        ("worktree", "[fleet]\nisolation = \"worktree\"", ""),
        ("inside", "[fleet]\ntrees = \"agents\"", ""),
        ("alone", "[fleet]\nisolation = \"clone\"", ""),
        ("alone-worktree", "[fleet]\nisolation = \"worktree\"", ""),
    ];
    if bubblewrap {
        ways.push(("bwrap", "[fleet]", "namespaces = \"bubblewrap\"\n"));
    }
    for (way, fleet, sandbox) in ways {
        let declared = Repository::empty(&format!("isolation-declared-{way}"));
        declared.write("x", "x");
        let repository = Repository::new(&format!("isolation-{way}"), WRITES, &[]);
        repository.write(".gitignore", ".venv/\nreal\nelsewhere/\n/agents/\n");
        repository.write(".venv/tool", "tool\n");
        // A link that is linked: the tree leads to its end.
        repository.write("elsewhere/file", "file\n");
        symlink("elsewhere", repository.dir().join("real")).expect("a link");
        repository.write("src/x", "x");
        repository.write("tests.sh", &looks(&repository, &declared));
        let sandbox = format!(
            "[worktree]\nsymlink = [\".venv\", \"real\"]\n[sandbox]\n{sandbox}read = [\"{}\"]\n[test]",
            declared.dir().display()
        );
        repository.set(&[("[test]", &sandbox), ("[fleet]", fleet)]);
        repository.git(&format!("worktree add -q -b other {}.linked", repository.dir().display()));
        repository.ok("task add One --id t-1");
        let ran = match way.starts_with("alone") {
            false => repository.adj("run --until-idle"),
            true => match without_namespaces(&repository, "run --until-idle") {
                Some(ran) => ran,
                None => continue,
            },
        };
        let _ = std::fs::remove_dir_all(format!("{}.linked", repository.dir().display()));
        assert_eq!(ran.code, 0, "{way}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(repository.task("t-1")["status"], "DONE", "{way}");
        // The same tests with the sandbox off: they see it, and people hear that they can.
        if way == "clone" {
            let doctor = repository.ok("doctor");
            assert!(doctor.contains("your checkout is hidden from tests"), "{doctor}");
            repository.set(&[("[sandbox]", "[sandbox]\nmode = \"off\"")]);
            let ran = repository.adj("run --until-idle");
            repository.ok("task add Two --id t-2");
            let ran = format!("{}{}", ran.stdout, repository.adj("run --until-idle").stdout);
            assert!(ran.contains("your checkout is not hidden from tests"), "{ran}");
            assert!(ran.contains("the checkout is seen"), "{ran}");
        }
    }
}

/// Both isolations; a hook that was cut off and runs again; what the agent changed of it is its own.
#[test]
fn what_a_hook_leaves_in_a_tree_is_not_committed_as_the_agents_work() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "git status --porcelain > seen.txt; git add --all; git commit -qm Mine" },
  { append = "made/changed.txt", text = "by the agent\n" },
  { append = "changed.txt", text = "by the agent\n" },
  { write = "left.txt", text = "x\n" },
  { write = ".venv/new", text = "x\n" },
  { done = true },
]
"#;
    for isolation in ["clone", "worktree"] {
        let once = Repository::empty(&format!("isolation-once-{isolation}"));
        let repository = Repository::new(&format!("isolation-hook-{isolation}"), scenario, &["t-1"]);
        // Not in the folder of main's tests: there it would keep everybody from starting.
        let hook = format!(
            "mkdir -p .venv/bin && echo x > .venv/bin/tool && echo hook > changed.txt && echo hook > \"same [1].txt\" && \
             case $PWD in */landing) ;; *) ! mkdir {}/begun 2> /dev/null;; esac",
            once.dir().display()
        );
        let settings = format!(
            "[sandbox]\ncaches = [\"{}\"]\n[hooks]\nworktree.create = '{hook}'\n[test]",
            once.dir().display()
        );
        repository
            .set(&[("[test]", &settings), ("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\""))]);
        let ran = repository.adj("run --until-idle");
        assert_eq!(ran.code, 0, "{isolation}: {}{}", ran.stdout, ran.stderr);
        assert!(once.dir().join("begun").exists(), "the hook failed once, and ran again");
        let said = "hooks.worktree.create leaves 3 files that git does not ignore";
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
        let landed = repository.git("ls-files");
        for mine in ["left.txt", "changed.txt", "made/changed.txt"] {
            assert!(landed.lines().any(|file| file == mine), "{isolation}, {mine}: {landed}");
        }
        assert!(!landed.contains(".venv") && !landed.contains("same"), "{isolation}: {landed}");
        assert_eq!(repository.read("changed.txt"), "hook\nby the agent\n");
        let seen = repository.read("seen.txt");
        assert!(!seen.contains(".venv") && !seen.contains("changed.txt") && !seen.contains("same"), "{seen}");
    }
}

#[test]
fn a_branch_that_holds_what_the_hook_left_goes_back_to_its_agent() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "mine.txt", text = "x\n" }, { run = "git add --force --all; git commit -qm All" }, { done = true } ]
[[scenario.step]]
do = [ { run = "git rm -rq --cached .venv; git commit -qm Out" }, { done = true } ]
"#;
    let repository = Repository::new("isolation-forced", scenario, &["t-1"]);
    repository.set(&[("[test]", "[hooks]\nworktree.create = 'mkdir .venv && echo x > .venv/tool'\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("files in the branch that the hook worktree.create left"), "{lines}");
    let landed = repository.git("ls-files");
    assert!(landed.contains("mine.txt") && !landed.contains(".venv"), "{landed}");
}

/// An agent asks for the person's secrets, for the next agent. Strict, where it cannot read them itself, and with nobody who
/// reviews.
#[test]
fn what_trees_get_is_read_from_content_that_a_person_trusted() {
    let scenario = r#"
[[scenario]]
task = "t-1"
[[scenario.step]]
do = [ { write = ".worktreeinclude", text = ".env\nkeys/**\n" }, { commit = "Ask" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { run = "cat .env keys/a > seen-{task}.txt 2> /dev/null || true" }, { write = "{task}.txt", text = "x\n" }, { commit = "See" }, { done = true } ]
"#;
    let repository = Repository::new("isolation-include", scenario, &["t-1"]);
    repository.write(".gitignore", ".env\nkeys/\n");
    repository.write(".env", "SECRET\n");
    repository.write("keys/a", "KEY\n");
    let strict =
        if support().level == Level::Full { "[sandbox]\nmode = \"strict\"\n[test]" } else { "[test]" };
    repository.set(&[("[test]", strict)]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "a person must look: {}", ran.stdout);
    let waits = repository.ok("waiting");
    assert!(waits.contains("it changes .worktreeinclude"), "{waits}");
    repository.ok("review t-1 --approve");
    repository.ok("run --until-idle");
    assert_eq!(repository.read(".worktreeinclude"), ".env\nkeys/**\n", "it landed");
    repository.ok("task add Two --id t-2");
    let ran = repository.ok("run --until-idle");
    assert!(ran.contains(".worktreeinclude came in with an agent's branch and is not in force"), "{ran}");
    assert_eq!(repository.read("seen-t-2.txt"), "", "nothing is handed out");
    for line in ["waiting", "doctor"] {
        assert!(repository.ok(line).contains("came in with an agent's branch"), "{line}");
    }
    repository.ok("config trust");
    assert!(!repository.ok("waiting").contains(".worktreeinclude"));
    repository.ok("task add Three --id t-3");
    repository.ok("run --until-idle");
    assert_eq!(repository.read("seen-t-3.txt"), "SECRET\nKEY\n");
}

/// Main was found green and is red by now, for a reason that no agent can mend: nobody is blamed, nobody is paid again.
#[test]
fn a_main_that_turned_red_unseen_stops_the_fleet_and_is_no_agents_fault() {
    let outside = Repository::empty("isolation-outside");
    let scenario = format!(
        r#"
[[scenario]]
task = "t-2"
[[scenario.step]]
do = [ {{ run = "touch {0}/broken" }}, {{ write = "t-2.txt", text = "x\n" }}, {{ commit = "Two" }}, {{ done = true }} ]
{WRITES}"#,
        outside.dir().display()
    );
    let repository = Repository::new("isolation-unseen", &scenario, &[]);
    let tests =
        format!("[ ! -e {}/broken ] || {{ echo assert 99 == 1; exit 1; }}\n", outside.dir().display());
    repository.write("tests.sh", &tests);
    let sandbox = format!("[sandbox]\ncaches = [\"{}\"]\n[test]", outside.dir().display());
    repository.set(&[("[test]", &sandbox)]);
    repository.ok("task add One --id t-1");
    repository.ok("task add Two --id t-2 --depends-on t-1");
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("t-2: its tests fail (assert 99 == 1); testing main first"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("the tests fail on main itself"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(repository.events("sent_back"), 0, "no agent was told to mend it");
    assert_eq!(repository.task("t-2")["status"], "IN_PROGRESS");
    std::fs::remove_file(outside.dir().join("broken")).expect("it is there");
    repository.ok("run --until-idle");
    assert_eq!(repository.task("t-2")["status"], "DONE");
    assert_eq!(repository.json("history t-2 --all").to_string().matches("start_step").count(), 1);
}

/// Somebody breaks main while a task waits for its review: the merge fails, main's own tests are run before anybody is blamed, and
/// the task lands when main passes again.
#[test]
fn a_red_merge_with_a_main_that_somebody_broke_is_no_agents_fault() {
    let repository = Repository::new("isolation-merge", WRITES, &[]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.ok("task add One --id t-1");
    let fleet = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    repository.write("broken.check", "echo assert 99 == 1; exit 1\n");
    repository.commit("Break main");
    repository.ok("review t-1 --approve");
    fleet.wait_for("t-1: its merge does not pass the tests; testing main first");
    fleet.wait_for("the tests fail on main itself");
    assert_eq!(repository.events("sent_back"), 0, "no agent was told to mend it");
    assert_eq!(repository.task("t-1")["status"], "REVIEW");
    repository.git("rm --quiet broken.check");
    repository.git("commit --quiet -m Mend");
    repository.wait_task("t-1", "DONE");
    fleet.stop();
    assert_eq!(repository.json("history t-1 --all").to_string().matches("start_step").count(), 1);
}
