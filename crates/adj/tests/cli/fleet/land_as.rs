//! What a landing makes of a task's commits, how it is taken back, and how a desktop is told of a person that is needed.

use super::background::wait;
use super::policies::{DONE, WRITE, scenario};
use super::{Ran, Repository, TESTS};

const SQUASH: (&str, &str) = ("[fleet]", "[project]\nmerge = \"squash\"\n\n[fleet]");
const TWO: &str = r#"{ write = "{task}.txt", text = "{task} one\n" }, { commit = "First half" }, { append = "{task}.txt", text = "two\n" }, { commit = "Second half" }, { done = true }"#;

/// One commit on main by the agent for each task, also after a crash at any point of the landing, and none twice.
#[test]
fn a_task_lands_as_one_commit_of_its_agent_where_the_settings_squash() {
    let tickets = ["t-1", "t-2", "t-3"];
    let repository = Repository::new("land-squash", &scenario(&[TWO]), &tickets);
    repository.set(&[("[fleet]", "[project]\nmerge = \"squash\"\n\n[fleet]")]);
    let before = repository.git("rev-list --count main");
    repository.ok("run --until-idle");
    let log = repository.git("log --first-parent --format=%an|%cn|%p|%s main");
    let ours: Vec<Vec<&str>> =
        log.lines().take(tickets.len()).map(|line| line.split('|').collect()).collect();
    for line in &ours {
        assert_eq!(line[0], "player (Adjutant)", "{log}");
        assert_ne!(line[1], "player (Adjutant)", "who lands it commits it: {log}");
        assert!(!line[2].contains(' '), "one parent: {log}");
    }
    let after = repository.git("rev-list --count main").parse::<usize>().expect("a number");
    assert_eq!(after, before.parse::<usize>().expect("a number") + tickets.len(), "{log}");
    for id in tickets {
        let commit = repository.task(id)["landed"]["merge"].as_str().expect("it landed").to_owned();
        let body = repository.git(&format!("show --no-patch --format=%B {commit}"));
        let said =
            format!("{id}: Do {id}\n\nWrite it.\n\n* First half\n* Second half\n\nTask: {id}\nAgent: player");
        assert_eq!(body, said);
        // Its own commits stay reachable by the task's name, and are not main's.
        assert_eq!(
            repository.git(&format!("show refs/adjutant/tasks/{id}:{id}.txt")),
            format!("{id} one\ntwo")
        );
        assert!(!repository.git_says(&format!("merge-base --is-ancestor refs/adjutant/tasks/{id} main")));
        assert!(repository.git_says(&format!("merge-base --is-ancestor {commit} main")));
        assert!(repository.read(&format!(".tickets/{id}.md")).contains("\nstatus: closed\n"));
    }
    assert_eq!(repository.git("branch --list agent/*"), "");
    assert_eq!(repository.git("status --porcelain"), "");
    assert_eq!(repository.standing(), Vec::<String>::new());
    repository.check_main(TESTS);
    assert_eq!(repository.adj("verify").code, 0);
    assert!(repository.ok("diff t-1").contains("+two"), "what it brought is still shown");
    // Nothing is left to do for a fleet that comes again.
    repository.ok("run --until-idle");
    assert_eq!(repository.git("rev-list --count main").parse::<usize>().expect("a number"), after);
}

/// Killed as main moves, the fleet that comes next finds its one commit there and makes no second.
#[test]
fn a_squashed_landing_that_was_cut_off_is_landed_once() {
    for point in ["move_main:before", "move_main:after", "test_merge:after", "move_main:told"] {
        let repository = Repository::new("land-squash-cut", &scenario(&[TWO]), &["t-1"]);
        repository.set(&[SQUASH]);
        let before = repository.git("rev-list --count main").parse::<usize>().expect("a number");
        let cut =
            repository.command("run --until-idle").env("ADJ_CRASH_AT", point).output().expect("adj runs");
        assert!(!cut.status.success(), "{point}");
        repository.ok("run --until-idle");
        assert_eq!(repository.task("t-1")["status"], "DONE", "{point}");
        let after = repository.git("rev-list --count main").parse::<usize>().expect("a number");
        assert_eq!(after, before + 1, "{point}: {}", repository.git("log --oneline main"));
    }
}

/// What a person took over themselves, as one commit of theirs, is not landed a second time.
#[test]
fn what_main_has_already_is_not_squashed_again() {
    let repository = Repository::new("land-squash-had", &scenario(&[TWO]), &["t-1"]);
    repository.set(&[SQUASH, ("review = \"auto\"", "review = \"human\"")]);
    repository.adj("run --until-idle");
    repository.git("merge --squash --quiet refs/adjutant/tasks/t-1");
    repository.commit("By hand");
    let main = repository.git("rev-parse main");
    repository.ok("merge t-1");
    repository.ok("run --until-idle");
    assert_eq!((repository.git("rev-parse main"), &repository.task("t-1")["status"]), (main, &"DONE".into()));
    let refused = repository.adj("undo t-1");
    assert!(refused.code == 3 && refused.stderr.contains("main has nothing of `t-1`"), "{}", refused.stderr);
}

/// The revert is tested and landed like everything else; the ticket stays closed, and a second one finds nothing.
fn check_undo(name: &str, settings: &[(&str, &str)]) {
    let repository = Repository::new(name, &scenario(&[TWO]), &["t-1", "t-2"]);
    repository.set(settings);
    let not_yet = repository.adj("undo t-1");
    assert!(not_yet.code == 3 && not_yet.stderr.contains("brought nothing to main"), "{}", not_yet.stderr);
    repository.ok("run --until-idle");
    let merge = repository.task("t-1")["landed"]["merge"].as_str().expect("it landed").to_owned();
    let shown = repository.ok("task show t-1");
    assert!(shown.contains(&format!("landed       {merge}; `adj undo t-1` takes it back")), "{shown}");
    assert!(repository.ok("why t-1").contains("`adj undo t-1`"));
    let undone = repository.ok("undo t-1");
    let id = undone.split(' ').next().expect("an id").to_owned();
    assert!(undone.contains("Undo t-1: Do t-1"), "{undone}");
    assert!(repository.ok(&format!("diff {id}")).contains("-two"));
    repository.ok("run --until-idle");
    assert_eq!(repository.task(&id)["status"], "DONE");
    assert!(!repository.git_says("cat-file -e main:t-1.txt"), "what t-1 brought is gone");
    assert!(repository.git_says("cat-file -e main:t-2.txt"), "what t-2 brought is not");
    assert!(repository.git("log --format=%B main").contains(&format!("This reverts commit {merge}.")));
    assert!(repository.read(".tickets/t-1.md").contains("\nstatus: closed\n"));
    assert_eq!(repository.git("status --porcelain"), "");
    assert_eq!(repository.git("branch --list agent/*"), "");
    assert_eq!(repository.standing(), Vec::<String>::new());
    repository.check_main(TESTS);
    let again = repository.adj("undo t-1");
    assert!(again.code == 3 && again.stderr.contains("main has nothing of `t-1`"), "{}", again.stderr);
    assert_eq!(repository.adj("verify").code, 0);
}

#[test]
fn undo_lands_a_revert_of_a_merge() {
    check_undo("land-undo", &[("workers = 2", "workers = 1")]);
}

#[test]
fn undo_lands_a_revert_of_a_squashed_task() {
    check_undo("land-undo-squash", &[SQUASH]);
}

/// What later work stands on is not taken from under it: it is for a person, and the command is said.
#[test]
fn an_undo_that_conflicts_says_what_to_do_by_hand() {
    let repository = Repository::new("land-undo-conflict", &scenario(&[TWO]), &["t-1"]);
    repository.ok("run --until-idle");
    repository.write("t-1.txt", "other\nwords\n");
    repository.commit("Change it");
    let main = repository.git("rev-parse main");
    let merge = repository.task("t-1")["landed"]["merge"].as_str().expect("it landed").to_owned();
    let refused = repository.adj("undo t-1");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("t-1.txt has changed since"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("git revert -m 1 {merge}")), "{}", refused.stderr);
    assert_eq!(repository.git("rev-parse main"), main);
}

/// An undo whose tests fail does not move main: the fleet's agent takes it up where it stands.
#[test]
fn an_undo_that_fails_its_tests_does_not_land() {
    let mends = r#"{ write = "needs.check", text = "true\n" }, { commit = "Without it" }, { done = true }"#;
    let text =
        format!("[[scenario]]\ntask = \"t-2\"\n[[scenario.step]]\ndo = [ {mends} ]\n{}", scenario(&[TWO]));
    let repository = Repository::new("land-undo-red", &text, &["t-1"]);
    repository.ok("run --until-idle");
    repository.write("needs.check", "test -e t-1.txt\n");
    repository.commit("Stand on it");
    repository.ok("undo t-1");
    repository.ok("run --until-idle");
    assert_eq!(repository.task("t-2")["status"], "DONE");
    assert!(!repository.git_says("cat-file -e main:t-1.txt"));
    assert_eq!(repository.git("show main:needs.check"), "true");
    repository.check_main(TESTS);
}

/// Words of agents reach the desktop as they are, through no shell.
#[test]
fn the_desktop_is_told_when_a_person_is_needed() {
    let text = scenario(&[&format!(
        "{{ ask = \"Bash\", argument = \"git push; echo <b>$(touch planted)\" }}, {WRITE}, {DONE}"
    )]);
    let repository = Repository::new("notify-desktop", &text, &["t-1"]);
    let on = "[notify]\ndesktop = true\n[limits]\nquestion = \"1s\"\n[test]";
    repository.set(&[("[test]", on)]);
    let bin = repository.state("bin");
    let told = repository.state("told");
    let with_path = |line: &str, path: String| -> Ran {
        repository.command(line).env("PATH", path).output().expect("adj runs").into()
    };
    let path = std::env::var("PATH").expect("there is a PATH");
    // Whatever this machine has by that name is not meant here.
    let without: Vec<_> =
        std::env::split_paths(&path).filter(|dir| !dir.join("notify-send").exists()).collect();
    let without = std::env::join_paths(without).expect("paths").to_string_lossy().into_owned();
    let doctor = with_path("doctor", without.clone());
    assert!(
        doctor.stdout.contains("notify.desktop is on, but `notify-send` is not installed"),
        "{}",
        doctor.stdout
    );
    repository.write(
        &bin.join("notify-send"),
        &format!("#!/bin/sh\nfor word; do echo \"[$word]\"; done >> {}\n", told.display()),
    );
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("notify-send"), executable).expect("it is there");
    let path = format!("{}:{without}", bin.display());
    let doctor = with_path("doctor", path.clone());
    assert!(doctor.stdout.contains("`notify-send` notifies your desktop"), "{}", doctor.stdout);
    with_path("run --until-idle", path);
    let said = wait("the desktop is told", || Some(repository.read(&told)).filter(|told| !told.is_empty()));
    assert!(said.contains("[--]\n[Adjutant adj-notify-desktop"), "{said}");
    assert!(
        said.contains(": t-1]\n[t-1: The agent asks to use Bash: git push; echo &lt;b&gt;$(touch planted)"),
        "{said}"
    );
    assert!(!repository.dir().join("planted").exists());
    assert_eq!(repository.strays(), Vec::<String>::new());
}
