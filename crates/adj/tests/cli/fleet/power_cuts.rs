//! The power goes: everything that runs is gone at once, and every file that nobody synced is empty afterwards.
//!
//! A small library, loaded into `adj` and its gits, writes down which file was synced when. At the cut all processes are
//! killed, and what was written since is cut to nothing. That is harder than most disks: they lose the last seconds.
//! The log has tests of its own for this, at the level of its pages.

use super::background::wait;
use super::shim::{Shim, path_with, play};
use super::{Repository, SETTINGS, TESTS};
use crate::keeper::Kept;
use process::keeper::client::{self, Found};
use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

/// The life is cut at each moment of so many; `ADJ_CUT_EVERY=1` cuts it at all of them.
const EVERY: usize = 29;

/// A session of several steps, files that are left over, and two landings.
const SCENARIO: &str = r#"
[[scenario]]
task = "p-1"
[[scenario.step]]
do = [ { write = "one.check", text = "true\n" }, { commit = "One" }, { fail = 1, stderr = "out of luck" } ]
[[scenario.step]]
do = [ { write = "one.more.check", text = "true\n" }, { commit = "One more" }, { done = true } ]
[[scenario.step]]
do = [ { write = "one.check", text = "true\n" }, { write = "one.more.check", text = "true\n" }, { commit = "Again" }, { done = true } ]

[[scenario]]
task = "p-2"
[[scenario.step]]
do = [ { write = "two.check", text = "true\n" }, { done = true } ]
[[scenario.step]]
do = [ { write = "two.check", text = "true\n" }, { done = true } ]
"#;

const TICKETS: [&str; 2] = ["p-1", "p-2"];

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

/* Inode 0 stands for all files. */
static void note(unsigned long inode) {
    const char *log = getenv("SYNC_LOG");
    struct timespec now;
    if (!log || clock_gettime(CLOCK_REALTIME, &now)) return;
    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0) return;
    char line[64];
    int length = snprintf(line, sizeof line, "%lu %ld%09ld\n", inode, (long)now.tv_sec, now.tv_nsec);
    if (write(fd, line, length) != length) abort();
    close(fd);
}

static int noted(int fd, int failed) {
    struct stat found;
    if (!failed && fstat(fd, &found) == 0) note(found.st_ino);
    return failed;
}

int fsync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return noted(fd, real(fd));
}

int fdatasync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    return noted(fd, real(fd));
}

/* Not counted: sync_file_range, which leaves to the file system whether a file is found again. */

/* Git sets the time of an object that it finds again to now. Nothing is written by that, and nothing can be lost. */
int utime(const char *path, const struct utimbuf *times) {
    int (*real)(const char *, const struct utimbuf *) = dlsym(RTLD_NEXT, "utime");
    return times ? real(path, times) : access(path, F_OK);
}

int syncfs(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "syncfs");
    int failed = real(fd);
    if (!failed) note(0);
    return failed;
}
"#;

/// `adj run`, with everything that it and its gits sync written down.
fn watched(shim: &Shim, repository: &Repository, log: &Path) -> Command {
    let name = log.file_stem().expect("a name").to_string_lossy().into_owned();
    let git = shim.git(&name, &format!("SYNC_LOG={}", log.display()));
    let mut command = repository.command("run --until-idle");
    command.env("PATH", path_with(&git)).env("SYNC_LOG", log).env("LD_PRELOAD", shim.library());
    command
}

fn repository(name: &str, scenario: &str) -> Repository {
    let repository = Repository::new(name, scenario, &TICKETS);
    repository.write("adjutant.toml", &format!("{SETTINGS}\n[limits]\nhealth_poll = \"1s\"\n"));
    repository.commit("Settings");
    repository
}

/// When each file was synced last, by its number, and when all of them were.
fn synced(log: &Path) -> (HashMap<u64, u64>, u64) {
    let (mut files, mut all) = (HashMap::new(), 0);
    for line in std::fs::read_to_string(log).unwrap_or_default().lines() {
        let (inode, at) = line.split_once(' ').expect("an inode and a time");
        let at: u64 = at.parse().expect("a time");
        match inode {
            "0" => all = at,
            _ => drop(files.insert(inode.parse().expect("a number"), at)),
        }
    }
    (files, all)
}

/// `adj` and its gits that write down what they sync. A git that was being started when its server was killed runs on.
fn watched_by(log: &Path) -> Vec<u32> {
    let variable = format!("SYNC_LOG={}\0", log.display()).into_bytes();
    let processes = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(variable.len()).any(|part| part == variable)
    })
    .collect()
}

/// Everything is off, and what was not on the disk is not there: how many files lost something.
fn cut(repository: &Repository, log: &Path, since: SystemTime) -> usize {
    wait("the end of all processes", || {
        let strays = repository.strays();
        let of_stray = |line: &String| line.split(':').next().and_then(|pid| pid.parse().ok());
        let left: Vec<u32> = strays.iter().filter_map(of_stray).chain(watched_by(log)).collect();
        left.iter().copied().for_each(super::background::kill);
        left.is_empty().then_some(())
    });
    let since =
        u64::try_from(since.duration_since(UNIX_EPOCH).expect("after 1970").as_nanos()).expect("it fits");
    let (files, all) = synced(log);
    let mut lost = 0;
    let mut folders = vec![repository.dir().to_owned(), repository.trees()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, found) = (entry.path(), entry.metadata().expect("it is there"));
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            let changed = u64::try_from(found.mtime()).unwrap_or(0) * 1_000_000_000
                + u64::try_from(found.mtime_nsec()).unwrap_or(0);
            let safe = files.get(&found.ino()).copied().unwrap_or(0).max(all).max(since);
            // The log is read and written by pages, and has its own tests.
            let is_log = entry.file_name().to_string_lossy().starts_with("adjutant.db");
            if found.is_file() && !is_log && found.len() > 0 && changed > safe {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
                let file = std::fs::File::options().write(true).open(&path).expect("it is ours");
                file.set_len(0).expect("it is ours");
                lost += 1;
            }
        }
    }
    lost
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// All that must be true after the next run, which ends by itself.
fn ends_well(repository: &Repository, moment: &str) {
    let ran = repository.command("run --until-idle").output().expect("adj runs");
    assert_eq!(ran.status.code(), Some(0), "{moment}:\n{}", said(&ran));
    repository.check(&TICKETS, TESTS);
    let land = repository.state("land.git");
    for git_dir in [land.as_path(), &repository.dir().join(".git")] {
        let fsck = repository.git(&format!("--git-dir={} fsck --no-dangling", git_dir.display()));
        assert_eq!(fsck, "", "{moment}");
    }
}

/// Plays a life whose power goes at that moment. False: it ended before.
fn live(shim: &Shim, at: usize) -> bool {
    let repository = repository(&format!("cut-{at}"), SCENARIO);
    let log = shim.folder.join(format!("{at}.log"));
    let begun = SystemTime::now();
    let ran =
        watched(shim, &repository, &log).env("ADJ_CRASH_AT", at.to_string()).output().expect("adj runs");
    if ran.status.signal() != Some(9) {
        assert_eq!(ran.status.code(), Some(0), "{}", said(&ran));
        // Nothing was under way: what was recorded is all there is, and nobody comes to put anything right.
        cut(&repository, &log, begun);
        ends_well(&repository, "after its end");
        return false;
    }
    cut(&repository, &log, begun);
    let moment =
        said(&ran).lines().rev().find(|line| line.starts_with("crash point")).unwrap_or_default().to_owned();
    ends_well(&repository, &moment);
    true
}

/// Slow: a fleet is run once for each moment at which its power is cut.
#[test]
fn a_run_whose_power_is_cut_at_any_moment_ends_by_itself_with_all_that_was_recorded() {
    let shim = Shim::new("moments", LIBRARY);
    let every = std::env::var("ADJ_CUT_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(EVERY);
    play(5, |number| live(&shim, 1 + every * number));
}

/// The agent has committed, and its objects are empty afterwards: its git directory is made anew from what was last taken,
/// the damaged one is in the trash, and nothing fails for ever.
#[test]
fn an_agent_whose_power_is_cut_in_the_middle_of_a_step_goes_on_in_a_sound_tree() {
    for (name, isolation, mode) in
        [("clone", "clone", "auto"), ("worktree", "worktree", "auto"), ("shared", "worktree", "off")]
    {
        cut_in_the_middle(name, isolation, mode);
    }
}

fn cut_in_the_middle(name: &str, isolation: &str, mode: &str) {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Begun {task}", quiet = true },
  { run = "test -e $TMPDIR/again || { touch $TMPDIR/again {task}.middle; sleep 1000; }", quiet = true },
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Do {task}", quiet = true },
  { done = true },
]
"#;
    let shim = Shim::new(&format!("middle-{name}"), LIBRARY);
    let repository = repository(&format!("cut-{name}"), scenario);
    let isolation = format!("[fleet]\nisolation = \"{isolation}\"");
    repository.set(&[("[fleet]", &isolation), ("[test]", &format!("[sandbox]\nmode = \"{mode}\"\n[test]"))]);
    let log = shim.folder.join("middle.log");
    let begun = SystemTime::now();
    let mut fleet = watched(&shim, &repository, &log).spawn().expect("adj runs");
    for (tree, task) in [("A-p-1", "p-1"), ("B-p-2", "p-2")] {
        let middle = repository.tree(&format!("{tree}/{task}.middle"));
        wait("the middle of a step", || middle.exists().then_some(()));
    }
    fleet.kill().and_then(|()| fleet.wait()).expect("it is our child");
    assert!(cut(&repository, &log, begun) > 0, "something was lost");
    let ran = repository.command("run --until-idle").output().expect("adj runs");
    assert_eq!(ran.status.code(), Some(0), "{name}: {}", said(&ran));
    assert!(said(&ran).contains("git directory was damaged and was created again"), "{name}: {}", said(&ran));
    ends_well(&repository, &format!("{name}: in the middle of a step"));
}

/// Of a ticket that git does not know, its file alone says how far it is; nobody writes that a second time.
#[test]
fn tickets_that_git_does_not_know_are_whole_after_a_power_cut() {
    let shim = Shim::new("tickets", LIBRARY);
    let repository = repository("cut-tickets", SCENARIO);
    repository.write(".git/info/exclude", ".tickets\n");
    repository.git("rm -r --quiet --cached .tickets");
    repository.commit("Tickets are nobody else's");
    let log = shim.folder.join("tickets.log");
    let begun = SystemTime::now();
    let ran = watched(&shim, &repository, &log).output().expect("adj runs");
    assert_eq!(ran.status.code(), Some(0), "{}", said(&ran));
    cut(&repository, &log, begun);
    ends_well(&repository, "after its end");
}

/// Everything that was written so far has reached the disk by itself.
fn all_synced(log: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let mut file = std::fs::File::options().append(true).create(true).open(log).expect("a file");
    writeln!(file, "0 {now}").expect("a line");
}

/// Whoever finds after a power cut how a step or test ended finds what it printed too: it would count as one that had said
/// nothing. A keeper has no variables of ours, so what starts this one sets them.
#[test]
fn what_a_program_printed_is_on_the_disk_before_how_it_ended_is() {
    let shim = Shim::new("printed", LIBRARY);
    let (log, adj) = (shim.folder.join("printed.log"), shim.folder.join("adj"));
    let (library, real) = (shim.library(), env!("CARGO_BIN_EXE_adj"));
    let set = format!("SYNC_LOG={} LD_PRELOAD={}", log.display(), library.display());
    std::fs::write(&adj, format!("#!/bin/sh\n{set} exec {real} \"$@\"\n")).expect("a file");
    std::fs::set_permissions(&adj, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let kept = Kept::new();
    let dir = kept.dir();
    client::start(&adj, &dir, &kept.script("echo said; echo complained >&2")).expect("it is started");
    wait("its end", || matches!(client::look(&dir), Ok(Found::Over(_))).then_some(()));
    let (files, _) = synced(&log);
    let when = |path: &Path| files.get(&path.metadata().expect("it is there").ino()).copied();
    let ended = when(&dir.join("exit.json"));
    assert!(ended.is_some(), "how it ended was synced");
    for (path, text) in [(client::out(&dir), "said\n"), (client::err(&dir), "complained\n")] {
        assert_eq!(std::fs::read_to_string(&path).expect("it was kept"), text);
        let written = path.metadata().and_then(|found| found.modified()).expect("it is there");
        let written = written.duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
        let at = when(&path);
        assert!(at.is_some_and(|at| u128::from(at) >= written) && at < ended, "{}: {at:?}", path.display());
    }
}

/// What we put into an agent's git directory is on the disk at once: nobody looks at it again. Here it is main, which moves
/// between two steps.
#[test]
fn main_in_an_agents_clone_is_whole_after_a_power_cut() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "touch $TMPDIR/first; until [ -e $TMPDIR/on ]; do sleep 0.05; done", quiet = true }, { say = "More to come." } ]
[[scenario.step]]
do = [
  { run = "touch $TMPDIR/middle; until [ -e $TMPDIR/go ]; do sleep 0.05; done", quiet = true },
  { run = "git rev-parse --verify --quiet main && git rev-parse --verify --quiet origin/main || touch {task}.broken", quiet = true },
  { write = "{task}.check", text = "true\n", quiet = true }, { done = true },
]
"#;
    let shim = Shim::new("clones-main", LIBRARY);
    let repository = repository("cut-clones-main", scenario);
    let log = shim.folder.join("clones-main.log");
    let all = |name: &str| {
        for task in TICKETS {
            let path = repository.temp(task).join(name);
            wait("all of them to be there", || path.exists().then_some(()));
        }
    };
    let let_go = |name: &str| {
        for task in TICKETS {
            std::fs::write(repository.temp(task).join(name), "").expect("a file");
        }
    };
    let begun = SystemTime::now();
    let mut fleet = watched(&shim, &repository, &log).spawn().expect("adj runs");
    all("first");
    repository.write("README", "read\n");
    repository.commit("Main moves");
    all_synced(&log);
    let_go("on");
    all("middle");
    fleet.kill().and_then(|()| fleet.wait()).expect("it is our child");
    cut(&repository, &log, begun);
    let_go("go");
    ends_well(&repository, "after main moved");
    for task in TICKETS {
        assert!(!repository.dir().join(format!("{task}.broken")).exists(), "{task}");
    }
}

/// A file system of its own in a file, mounted while this lives.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// `None` where nothing can be mounted: only root can, and not everywhere.
    fn new(name: &str) -> Option<Disk> {
        let folder = std::env::temp_dir().join(format!("adj-disk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("mounted")).expect("a folder");
        let disk = Disk { folder };
        let image = disk.folder.join("image");
        // Larger than what the fleet wants to be free before it begins anything; the file has holes.
        std::fs::File::create(&image).and_then(|file| file.set_len(3 << 29)).expect("a file");
        let made = disk.run("mkfs.ext4", &["-q", "-F", "image"]) && disk.mount("image");
        made.then_some(disk)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let ran = Command::new(program).args(arguments).current_dir(&self.folder).output();
        ran.is_ok_and(|ran| ran.status.success())
    }

    fn mount(&self, image: &str) -> bool {
        self.run("mount", &["-o", "loop,commit=30", image, "mounted"])
    }

    /// What is on the disk now is all that there is.
    fn cut(&self) {
        assert!(self.run("cp", &["--sparse=always", "image", "cut"]));
        assert!(self.run("umount", &["-l", "mounted"]));
        // As the system does when it starts again; what it repairs is no failure.
        self.run("e2fsck", &["-fy", "cut"]);
        assert!(self.mount("cut"));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.run("umount", &["-l", "mounted"]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The same on a real file system, which keeps what it likes of what nobody synced: names of files as well as what they
/// hold. Everything is killed after each landing in turn, and the disk is what had reached it by then.
/// Slow: it writes to a real disk, and a fleet is run once for each cut.
#[test]
fn a_run_on_a_real_disk_whose_power_is_cut_ends_by_itself_with_all_that_was_recorded() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let tickets = ["d-1", "d-2", "d-3", "d-4"];
    for landings in 0..tickets.len() {
        let Some(disk) = Disk::new(&landings.to_string()) else {
            crate::not_tried("no file system can be mounted here");
            return;
        };
        let repository = Repository { dir: disk.folder.join("mounted/project") };
        repository.write("adjutant.toml", SETTINGS);
        repository.write("scenario.toml", scenario);
        repository.write("tests.sh", TESTS);
        repository.write("base.check", "true\n");
        for id in tickets {
            repository.ticket(id, &[]);
        }
        repository.git("init --quiet --initial-branch=main");
        repository.commit("Begin");
        assert!(disk.run("sync", &["-f", "mounted"]));
        let fleet = repository.begin("run --until-idle");
        wait("so many landings", || {
            let landed = repository.git("log --first-parent --merges --oneline main").lines().count();
            let begun = !repository.standing().is_empty() || landed > 0;
            (begun && landed >= landings).then_some(())
        });
        fleet.kill();
        super::background::end_all(repository.dir());
        disk.cut();
        let ran = repository.command("run --until-idle").output().expect("adj runs");
        assert_eq!(ran.status.code(), Some(0), "after {landings} landings:\n{}", said(&ran));
        repository.check(&tickets, TESTS);
        let land = repository.state("land.git");
        assert_eq!(repository.git(&format!("--git-dir={} fsck --no-dangling", land.display())), "");
    }
}
