//! Landing by pull request: a remote whose main nobody but its server moves.

use super::background::wait;
use super::{Repository, TESTS};
use std::process::Stdio;

const WRITES: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "one\n" }, { commit = "One" }, { write = "{task}.txt", text = "two\n" }, { done = true } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "three\n" }, { done = true } ]
"#;

const OPEN: &str = r#"echo "$ADJ_TASK $ADJ_BRANCH $ADJ_MAIN $ADJ_TITLE; $(tail -n 1 "$ADJ_BODY_FILE")" >> "$TOLD"; echo "https://host.example/pull/$ADJ_TASK""#;

const NOTIFY: &str = r#"echo "$ADJ_NOTIFY $ADJ_MESSAGE" >> "$TOLD-notify""#;
const LANDED: &str = r#"echo "$ADJ_TASK $ADJ_MERGE" >> "$TOLD-landed""#;

/// A repository, its remote, and the checkout in which the server merges.
struct Hosted {
    repository: Repository,
    remote: Repository,
    server: Repository,
}

impl Hosted {
    fn new(name: &str, settings: &str) -> Hosted {
        let repository = Repository::new(name, WRITES, &["t-1"]);
        let remote = Repository::empty(&format!("{name}-remote"));
        remote.git("init --quiet --bare --initial-branch=main");
        repository.git(&format!("remote add origin {}", remote.dir().display()));
        repository.set(&[("[test]", &format!("{settings}\n[test]"))]);
        repository.git("push --quiet origin main");
        let server = Repository::empty(&format!("{name}-server"));
        server.git(&format!("clone --quiet {} .", remote.dir().display()));
        Hosted { repository, remote, server }
    }

    fn by_request(name: &str) -> Hosted {
        Hosted::new(name, &format!("[landing]\nby = \"pull-request\"\nopen = '{OPEN}'"))
    }

    fn told(&self) -> String {
        self.remote.read("told")
    }

    fn run(&self, crash_at: Option<&str>) -> String {
        let mut command = self.repository.command("run --until-idle");
        command.env("TOLD", self.remote.dir().join("told"));
        command.envs(crash_at.map(|at| ("ADJ_CRASH_AT", at)));
        let ran = command.output().expect("adj runs");
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code().is_none(), crash_at.is_some(), "{stdout}{stderr}");
        stdout.into_owned()
    }

    /// Somebody else's commit comes first, then the pull request, then another commit.
    fn merge_on_server(&self, how: &str) {
        let server = &self.server;
        server.git("pull --quiet origin main");
        let others = |name: &str| {
            server.write(name, "x\n");
            server.commit(name);
        };
        others("others.txt");
        server.git("fetch --quiet origin adjutant/t-1");
        match how {
            "merge" => drop(server.git("merge --quiet --no-ff -m Merge FETCH_HEAD")),
            "squash" => {
                server.git("merge --quiet --squash FETCH_HEAD");
                server.commit("Squash");
            }
            _ => {
                server.git("checkout --quiet -b work FETCH_HEAD");
                server.git("rebase --quiet main");
                server.git("checkout --quiet main");
                server.git("merge --quiet --ff-only work");
            }
        }
        others("later.txt");
        server.git("push --quiet origin main");
    }

    #[track_caller]
    fn check_landed(&self) {
        let Hosted { repository, remote, .. } = self;
        assert_eq!(repository.task("t-1")["status"], "DONE");
        assert_eq!(repository.git("rev-parse main"), remote.git("rev-parse main"));
        assert_eq!(self.told().lines().count(), 1, "one pull request was opened: {}", self.told());
        repository.check_but_for_tips(&["t-1"], TESTS);
    }
}

#[test]
fn a_pull_request_is_opened_and_the_task_is_done_when_it_is_merged_in_any_way() {
    for how in ["merge", "squash", "rebase"] {
        let hosted = Hosted::by_request(&format!("request-{how}"));
        let Hosted { repository, remote, .. } = &hosted;
        let before = remote.git("rev-parse main");
        let said = hosted.run(None);
        let waits = "t-1 waits to land: its pull request https://host.example/pull/t-1 is to be merged";
        assert!(said.contains(waits), "{said}");
        assert_eq!(hosted.told(), "t-1 adjutant/t-1 main Do t-1; Task: t-1\n");
        assert_eq!(
            [repository.git("rev-parse main"), remote.git("rev-parse main")],
            [before.clone(), before]
        );
        assert_eq!(remote.git("show adjutant/t-1:t-1.txt"), "two");
        assert!(remote.git("show adjutant/t-1:.tickets/t-1.md").contains("status: closed"));
        let why = repository.ok("why t-1");
        assert!(why.contains("https://host.example/pull/t-1 is to be merged"), "{why}");
        let waiting = repository.ok("waiting");
        assert!(waiting.contains("pull request") && waiting.contains(waits), "{waiting}");
        assert_eq!(repository.task("t-1")["pullRequest"], "https://host.example/pull/t-1");

        hosted.merge_on_server(how);
        let said = hosted.run(None);
        assert!(said.contains("t-1 landed on main"), "{how}: {said}");
        hosted.check_landed();
        let merge = repository.task("t-1")["landed"]["merge"].as_str().expect("a merge").to_owned();
        assert!(!repository.git_says(&format!("cat-file -e {merge}^1:t-1.txt")) || how == "rebase", "{how}");
        assert_eq!(repository.git(&format!("show {merge}:t-1.txt")), "two", "{how}");
        assert!(
            !repository.git_says(&format!("cat-file -e {merge}:later.txt")),
            "{how}: the one that brought it"
        );
    }
}

#[test]
fn a_fleet_that_is_killed_opens_no_second_pull_request_and_loses_none() {
    for at in ["pull_request:pushed", "pull_request:opened", "test_merge:after"] {
        let hosted = Hosted::by_request("request-killed");
        hosted.run(Some(at));
        hosted.run(None);
        assert_eq!(hosted.told().lines().count(), 1, "{at}: {}", hosted.told());
        assert_eq!(hosted.repository.task("t-1")["pullRequest"], "https://host.example/pull/t-1", "{at}");
        hosted.merge_on_server("squash");
        hosted.run(Some("move_main:before"));
        hosted.run(None);
        hosted.check_landed();
    }
}

/// The command outlives the fleet, and the next one reads what it said.
#[test]
fn a_fleet_that_is_killed_while_a_pull_request_is_opened_finds_its_command_again() {
    let open = r#"echo begun >> "$TOLD"; until test -e "$TOLD-go"; do sleep 0.05; done; echo https://host.example/pull/5"#;
    let hosted =
        Hosted::new("request-opening", &format!("[landing]\nby = \"pull-request\"\nopen = '{open}'"));
    let mut fleet = hosted.repository.command("run");
    fleet.env("TOLD", hosted.remote.dir().join("told")).stdout(Stdio::null());
    let mut fleet = fleet.spawn().expect("adj runs");
    wait("the command runs", || (!hosted.told().is_empty()).then_some(()));
    fleet.kill().expect("it runs");
    fleet.wait().expect("it ends");
    hosted.remote.write("told-go", "");
    hosted.run(None);
    assert_eq!(hosted.told(), "begun\n");
    assert_eq!(hosted.repository.task("t-1")["pullRequest"], "https://host.example/pull/5");
}

#[test]
fn a_pull_request_that_is_not_merged_can_be_changed_or_left() {
    let hosted = Hosted::by_request("request-changes");
    let Hosted { repository, remote, .. } = &hosted;
    hosted.run(None);
    let first = remote.git("rev-parse adjutant/t-1");
    repository.ok("review t-1 --changes three");
    hosted.run(None);
    assert_ne!(remote.git("rev-parse adjutant/t-1"), first);
    assert_eq!(remote.git("show adjutant/t-1:t-1.txt"), "three");
    assert_eq!(hosted.told().lines().count(), 1, "{}", hosted.told());
    let canceled = repository.adj("task cancel t-1");
    let left = "its pull request https://host.example/pull/t-1 is left open";
    assert!(canceled.code == 0 && canceled.stderr.contains(left), "{}", canceled.stderr);
    hosted.run(None);
    assert!(remote.git_says("rev-parse --verify adjutant/t-1"), "the branch is the user's to delete");
    assert_eq!(repository.adj("verify").code, 0);
}

#[test]
fn a_running_fleet_sees_that_a_pull_request_was_merged_on_the_remote_that_the_settings_name() {
    let settings = format!(
        "[landing]\nby = \"pull-request\"\nremote = \"upstream\"\nopen = '{OPEN}'\n[limits]\npull_request = \"1s\"\n[hooks]\nnotify = '{NOTIFY}'\nlanded = '{LANDED}'"
    );
    let hosted = Hosted::new("request-seen", &settings);
    let Hosted { repository, remote, .. } = &hosted;
    repository.git("remote rename origin upstream");
    let told = remote.dir().join("told");
    let mut fleet = repository.command("run");
    let mut fleet = fleet.env("TOLD", &told).stdout(Stdio::null()).spawn().expect("adj runs");
    wait("a pull request", || {
        repository.adj("task show t-1").stdout.contains("is to be merged").then_some(())
    });
    hosted.merge_on_server("rebase");
    repository.wait_task("t-1", "DONE");
    // A hook that is running when the fleet is stopped is ended with it.
    wait("the hook", || (!remote.read("told-landed").is_empty()).then_some(()));
    repository.ok("stop");
    fleet.wait().expect("it ends");
    let merge = repository.task("t-1")["landed"]["merge"].as_str().expect("a merge").to_owned();
    assert_eq!(remote.read("told-landed"), format!("t-1 {merge}\n"));
    let notice = "pull_request t-1 waits to land: its pull request https://host.example/pull/t-1 is to be merged: adj review t-1, or adj retry t-1\n";
    assert_eq!(remote.read("told-notify"), notice);
    hosted.check_landed();
}

#[test]
fn a_pull_request_that_cannot_be_opened_waits_and_says_why_and_one_that_exists_is_taken() {
    let hosted = Hosted::new("request-fails", "[landing]\nby = \"pull-request\"\nopen = 'sh ../open.sh'");
    let Hosted { repository, .. } = &hosted;
    let script = repository.dir().with_extension("open");
    repository.set(&[("sh ../open.sh", &format!("sh {}", script.display()))]);
    repository.git("push --quiet origin main");
    repository.write(&script, "echo 'not logged in' >&2; exit 4\n");
    let said = hosted.run(None);
    assert!(said.contains("its pull request cannot be made:") && said.contains("not logged in"), "{said}");
    let exists = "echo 'a pull request for branch adjutant/t-1 already exists:' >&2\necho https://host.example/pull/9 >&2\nexit 1\n";
    repository.write(&script, exists);
    repository.ok("retry t-1");
    hosted.run(None);
    assert_eq!(repository.task("t-1")["pullRequest"], "https://host.example/pull/9");
    let _ = std::fs::remove_file(script);
}

/// Commits of the user's own that the remote has not are never lost, and never merged by us.
#[test]
fn a_main_that_has_parted_from_the_remotes_holds_up_the_landing() {
    let hosted = Hosted::by_request("request-parted");
    let Hosted { repository, .. } = &hosted;
    hosted.run(None);
    hosted.merge_on_server("merge");
    repository.write("mine.txt", "x\n");
    repository.commit("Mine");
    let mine = repository.git("rev-parse main");
    let said = hosted.run(None);
    assert!(said.contains("have diverged"), "{said}");
    assert_eq!(repository.git("rev-parse main"), mine);
    repository.git("rebase --quiet origin/main");
    hosted.run(None);
    assert_eq!(repository.task("t-1")["status"], "DONE");
}
