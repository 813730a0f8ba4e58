//! The fleet as people run it: real git, real processes, real tests; the agents play scenarios.

mod architect;
mod asks;
pub mod background;
mod bound;
mod claude;
mod clocks;
mod codex;
mod damage;
mod dead_ends;
mod demo;
mod disk;
mod faults;
mod full_disk;
mod gone;
mod hostile;
mod init;
mod isolation;
mod issues;
mod keys;
mod killed_git;
mod kills;
mod land_as;
mod landed;
mod limits;
mod live;
mod main_tests;
mod many;
mod marks;
mod mcp;
mod members;
mod model_api;
mod odd;
mod odd_git;
mod outage;
mod people;
mod places;
mod policies;
mod power_cuts;
mod proposals;
mod pull_requests;
mod reach;
mod reading;
mod review;
mod rooms;
mod runs;
mod settings;
mod setup;
mod shim;
mod socket;
mod spoken;
mod standstill;
mod stopping;
mod tail;
mod tickets;
mod told;
mod waiting;
mod way_in;
mod webhooks;

use super::Ran;
use machines::names::TaskId;
use project::layout::Layout;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository of its own in a temporary folder, gone when the test is over.
pub struct Repository {
    dir: PathBuf,
}

impl Drop for Repository {
    fn drop(&mut self) {
        // What a failed test left is looked at when somebody wants to.
        if !std::thread::panicking() || std::env::var_os("ADJ_KEEP").is_none() {
            for folder in
                [Some(&*self.dir), Some(&*self.trees()), self.temp("x").parent()].into_iter().flatten()
            {
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }
}

/// Settings for a fleet whose agents play `scenario.toml`, and that needs nobody to approve.
pub const SETTINGS: &str = r#"
[fleet]
agent = "player"
workers = 2
review = "auto"
stop_timeout = "1s"

[test]
command = "sh tests.sh"
timeout = "1m"

[agents.player]
adapter = "script"
command = ["scenario.toml"]
"#;

/// Every `*.check` is a shell script; all must pass.
pub const TESTS: &str = "for check in *.check; do sh \"$check\" || { echo \"FAIL $check\"; exit 1; }; done\n";

impl Repository {
    /// A folder without anything in it.
    pub fn empty(name: &str) -> Repository {
        let dir = std::env::temp_dir().join(format!("adj-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let _ = std::fs::remove_dir_all(dir.with_extension("agents"));
        std::fs::create_dir_all(&dir).expect("a temporary folder");
        Repository { dir: dir.canonicalize().expect("it is there") }
    }

    /// A repository with tests, settings, this scenario and these open tickets, committed on main.
    pub fn new(name: &str, scenario: &str, tickets: &[&str]) -> Repository {
        Repository::empty(name).filled(scenario, tickets)
    }

    /// The same in a folder of the test's choice.
    pub fn at(dir: &Path, scenario: &str, tickets: &[&str]) -> Repository {
        std::fs::create_dir_all(dir).expect("a folder");
        Repository { dir: dir.canonicalize().expect("it is there") }.filled(scenario, tickets)
    }

    fn filled(self, scenario: &str, tickets: &[&str]) -> Repository {
        let repository = self;
        repository.write("adjutant.toml", SETTINGS);
        repository.write("scenario.toml", scenario);
        repository.write("tests.sh", TESTS);
        repository.write("base.check", "true\n");
        for id in tickets {
            repository.ticket(id, &[]);
        }
        repository.git("init --quiet --initial-branch=main");
        repository.commit("Begin");
        repository
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn layout(&self) -> Layout {
        Layout::new(&self.dir)
    }

    /// A file of Adjutant's own state.
    pub fn state(&self, path: &str) -> PathBuf {
        self.layout().state().join(path)
    }

    /// The folder of the trees, beside the repository.
    pub fn trees(&self) -> PathBuf {
        self.layout().trees("../{project}.agents")
    }

    /// A file of a task's tree: `A-t-1/file`.
    pub fn tree(&self, path: &str) -> PathBuf {
        self.trees().join(path)
    }

    /// The trees of tasks that stand now.
    pub fn standing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.trees()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> =
            names.filter(|name| !["landing", "trash", "rooms"].contains(&name.as_str())).collect();
        names.sort();
        names
    }

    /// A task's temporary folder.
    pub fn temp(&self, task: &str) -> PathBuf {
        self.layout().temp(&TaskId::new(task).expect("a task's name"))
    }

    pub fn write(&self, path: &(impl AsRef<Path> + ?Sized), text: &str) {
        let path = self.dir.join(path);
        std::fs::create_dir_all(path.parent().expect("it is in the repository")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub fn read(&self, path: &(impl AsRef<Path> + ?Sized)) -> String {
        std::fs::read_to_string(self.dir.join(path)).unwrap_or_default()
    }

    pub fn ticket(&self, id: &str, deps: &[&str]) {
        let deps = deps.join(", ");
        let text = format!(
            "---\nid: {id}\nstatus: open\ndeps: [{deps}]\nlinks: []\ncreated: 2026-11-01T09:00:00Z\ntype: task\npriority: 2\n---\n# Do {id}\n\nWrite it.\n"
        );
        self.write(&format!(".tickets/{id}.md"), &text);
    }

    pub fn commit(&self, message: &str) {
        self.git("add --all");
        let ran = self.git_command(&["commit", "--quiet", "-m", message]).output().expect("git runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    fn git_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Test", "-c", "user.email=test@localhost"]).args(arguments);
        command.current_dir(&self.dir).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    /// Git, which must succeed; what it printed.
    #[track_caller]
    pub fn git(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let ran = self.git_command(&arguments).output().expect("git runs");
        assert!(ran.status.success(), "git {line}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// Whether git says yes.
    pub fn git_says(&self, line: &str) -> bool {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let ran = self.git_command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        ran.expect("git runs").success()
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = super::command(line);
        command.current_dir(&self.dir).stdin(Stdio::null()).env("ADJ_USER", "tester");
        command
    }

    pub fn adj(&self, line: &str) -> Ran {
        self.command(line).output().expect("adj runs").into()
    }

    /// `adj`, which must succeed; what it printed.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        let ran = self.adj(line);
        assert_eq!(ran.code, 0, "adj {line}\n{}\n{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// How often each kind of event is in the log.
    pub fn events(&self, kind: &str) -> usize {
        let path = self.state("export.jsonl");
        let _ = std::fs::remove_file(&path);
        self.ok(&format!("export {}", path.display()));
        let text = std::fs::read_to_string(&path).expect("it was exported");
        text.lines().filter(|line| line.contains(&format!("\"{kind}\""))).count()
    }

    /// All that must be true of a project whose every ticket was done, by git and files alone.
    #[track_caller]
    pub fn check(&self, tickets: &[&str], tests: &str) {
        for id in tickets {
            let tip = format!("refs/adjutant/tasks/{id}");
            assert!(self.git_says(&format!("merge-base --is-ancestor {tip} main")), "{id} is not in main");
        }
        self.check_but_for_tips(tickets, tests);
    }

    /// The same where main was rewritten, so that the work landed without the history that it was made on.
    #[track_caller]
    pub fn check_but_for_tips(&self, tickets: &[&str], tests: &str) {
        for id in tickets {
            let ticket = self.read(&format!(".tickets/{id}.md"));
            assert!(ticket.contains("\nstatus: closed\n"), "{id} is not closed:\n{ticket}");
        }
        self.check_main(tests);
        assert_eq!(self.git("status --porcelain"), "", "the checkout is clean");
        let merges: Vec<String> =
            self.git("log --first-parent --merges --format=%s main").lines().map(str::to_owned).collect();
        let once: BTreeSet<&String> = merges.iter().collect();
        assert_eq!(once.len(), merges.len(), "nothing was merged twice: {merges:?}");
        assert_eq!(self.standing(), Vec::<String>::new(), "no tree is left");
        assert_eq!(self.strays(), Vec::<String>::new(), "no process is left");
        let verified = self.adj("verify");
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    }

    /// Every commit that main went through is green, tested by ourselves in a checkout of our own.
    #[track_caller]
    pub fn check_main(&self, tests: &str) {
        let copy = self.dir.with_extension("copy");
        let _ = std::fs::remove_dir_all(&copy);
        self.git(&format!("clone --quiet --no-local . {}", copy.display()));
        for commit in self.git("rev-list --first-parent main").lines() {
            let checkout = Command::new("git")
                .args(["checkout", "--quiet", "--force", commit])
                .current_dir(&copy)
                .status()
                .expect("git runs");
            assert!(checkout.success());
            let tested =
                Command::new("sh").arg("-c").arg(tests).current_dir(&copy).output().expect("sh runs");
            assert!(
                tested.status.success(),
                "{commit} on main is red:\n{}",
                String::from_utf8_lossy(&tested.stdout)
            );
        }
        let _ = std::fs::remove_dir_all(&copy);
    }

    /// Processes that were started for this project and still run.
    pub fn strays(&self) -> Vec<String> {
        let ours = self.dir.display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("there is /proc").flatten() {
            let pid = entry.file_name().to_string_lossy().into_owned();
            if pid.parse::<u32>().is_err() || pid == std::process::id().to_string() {
                continue;
            }
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let environment = String::from_utf8_lossy(&read("environ")).into_owned();
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let place = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            // By what every process of an agent has, and by where it is.
            let here = place.starts_with(&self.dir) || place.starts_with(self.trees());
            let kept = environment.contains("ADJ_EFFECT=") && here;
            if kept || (line.contains("internal keep") && line.contains(&ours)) {
                found.push(format!("{pid}: {line}"));
            }
        }
        found
    }
}
