//! Git itself is killed, as a system that is short of memory does it: before each rename, link and unlink of each git that
//! `adj` starts, one life for each. What it leaves is put right, whoever was there in the middle.
//!
//! The `git` on the PATH is a script that loads a small library into the real one. The library counts across all of them.

use super::shim::{Shim, path_with, play};
use super::{Repository, SETTINGS, TESTS};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

const SCENARIO: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "sub/{task}.check", text = "true\n" },
  { run = "rm old.check; echo more >> README; chmod +x tests.sh", quiet = true },
  { commit = "Do {task}" },
  { done = true },
]
"#;

const TICKET: &str = "k-1";

/// Counts what a git renames, links and unlinks, and kills it before the one that is wanted. Reads never count.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether this git hands objects on, or takes them in.
static int is(const char *which) {
    char line[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof line - 1), at = 0;
    close(fd);
    for (line[length > 0 ? length : 0] = 0; at < length; at += strlen(line + at) + 1)
        if (strcmp(line + at, which) == 0) return 1;
    return 0;
}

static void pass(const char *what, const char *path) {
    const char *count = getenv("KILL_COUNT"), *at = getenv("KILL_AT");
    if (!count || !at) return;
    // An object has its name or has not: what is left of one is never looked at. One test alone kills what brings them.
    int brings = strcmp(what, "unlink") && strstr(path, "objects/") && (is("unpack-objects") || is("index-pack"));
    brings |= strcmp(path, "a pack") == 0;
    if (getenv("KILL_BRINGING") ? !brings : brings || strstr(path, "/objects/")) return;
    // Of our own folder one test alone kills gits; the others are about the user's repository.
    if (getenv("KILL_USERS") && strstr(path, "/adjutant/")) return;
    int fd = open(count, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0) return;
    char line[512];
    int length = snprintf(line, sizeof line, "%-8.8s%-247.247s\n", what, path);
    struct stat found;
    if (length == 256 && write(fd, line, 256) == 256 && fstat(fd, &found) == 0 && found.st_size / 256 == atol(at)) {
        if (getenv("KILL_PARENT")) kill(getppid(), SIGKILL);
        kill(getpid(), SIGKILL);
    }
    close(fd);
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    pass("rename", to);
    return real(from, to);
}

int link(const char *from, const char *to) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
    pass("link", to);
    return real(from, to);
}

int unlink(const char *path) {
    int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
    pass("unlink", path);
    return real(path);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (fd == 1 && is("pack-objects")) pass("write", "a pack");
    return real(fd, bytes, length);
}
"#;

/// Plays a life in which the git of that operation is killed. True: there was one.
fn live(git: &Path, at: usize, name: &str, fleet: &str) -> bool {
    let repository = Repository::new(&format!("{name}-{at}"), SCENARIO, &[TICKET]);
    repository.write("adjutant.toml", &SETTINGS.replace("[fleet]\n", &format!("[fleet]\n{fleet}")));
    repository.write("old.check", "true\n");
    repository.write("README", "read\n");
    repository.commit("Files to be changed");
    let run =
        || repository.command("run --until-idle").env("PATH", path_with(git)).output().expect("adj runs");
    let mut ran = run();
    if ran.status.signal() == Some(9) {
        // It was killed with its git. Whoever comes next finds what both left.
        ran = run();
    }
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let counted = std::fs::read_to_string(git.join("count")).unwrap_or_default();
    let killed = counted
        .as_bytes()
        .chunks(256)
        .nth(at - 1)
        .map(|line| String::from_utf8_lossy(line).trim().to_owned());
    let moment = killed.clone().unwrap_or_default();
    assert_eq!(ran.status.code(), Some(0), "{at}, {moment}:\n{said}");
    // What brings objects is begun again, and nobody hears of it; elsewhere a step may be repeated.
    let heard = said.contains("failed") && name.contains("bringing");
    assert!(!heard, "{at}, {moment}: a step failed\n{said}");
    assert!(!said.contains("without a landing"), "{at}, {moment}: it was we who moved main\n{said}");
    repository.check(&[TICKET], TESTS);
    assert_eq!(repository.read("sub/k-1.check"), "true\n", "{at}, {moment}");
    assert!(repository.read("README").ends_with("more\n"), "{at}, {moment}");
    assert!(!repository.dir().join("old.check").exists(), "{at}, {moment}");
    let locked = locks(&repository.dir().join(".git"));
    assert_eq!(locked, Vec::<PathBuf>::new(), "{at}, {moment}: nothing of ours is left locked\n{said}");
    assert_eq!(repository.git("fsck --strict --no-dangling"), "", "{at}, {moment}");
    killed.is_some()
}

fn locks(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            found.append(&mut locks(&path));
        } else if name == "packed-refs.new"
            || name.ends_with(".lock") && !["adjutant.db.lock", "ports.lock"].contains(&&*name)
        {
            found.push(path);
        }
    }
    found
}

/// A life for each operation, of the gits that these variables mean.
fn live_all(name: &str, fleet: &str, variables: &str) {
    let shim = Shim::new(name, LIBRARY);
    play(10, |number| {
        let (at, own) = (number + 1, format!("git-{number}"));
        let count = shim.folder.join(&own).join("count");
        let variables = format!("{variables} KILL_AT={at} KILL_COUNT={}", count.display());
        live(&shim.git(&own, &variables), at, name, fleet)
    });
}

/// Slow: a fleet is run once for each call of the system at which its git is killed.
#[test]
fn a_git_that_is_killed_at_any_rename_or_unlink_leaves_no_lock_and_no_half_moved_checkout() {
    live_all("killed-git", "", "");
}

/// Slow: a fleet is run once for each call of the system at which its git is killed.
#[test]
fn a_git_that_is_killed_among_worktrees_leaves_no_lock_either() {
    live_all("killed-git-worktree", "isolation = \"worktree\"\n", "KILL_USERS=1");
}

/// Slow: a fleet is run once for each call of the system at which its git is killed.
#[test]
fn a_fleet_that_is_killed_together_with_its_git_puts_the_checkout_right_when_it_is_back() {
    live_all("killed-with-git", "", "KILL_USERS=1 KILL_PARENT=1");
}

/// Two gits at a time bring objects from one repository into another. Neither leaves a lock; what they were to bring is
/// there all the same, and no step is failed for it.
/// Slow: a fleet is run once for each call of the system at which its git is killed.
#[test]
fn a_git_that_is_killed_while_it_brings_objects_begins_again() {
    live_all("killed-bringing", "", "KILL_BRINGING=1");
}

/// An agent's own git is killed, too. The locks that it leaves in the agent's tree are gone before the next step, whether or
/// not the step before left anything to commit.
#[test]
fn locks_that_an_agents_own_git_left_are_gone_before_its_next_step() {
    let ways = [("clone", "auto"), ("worktree", "auto"), ("worktree", "off")];
    for (number, (isolation, mode)) in ways.into_iter().enumerate() {
        for (name, first) in [("left", "echo more > more.txt"), ("clean", ":")] {
            let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'own=$(git rev-parse --git-dir); all=$(git rev-parse --git-common-dir); FIRST; touch $own/index.lock $own/HEAD.lock $all/$(git symbolic-ref HEAD).lock', quiet = true },
  { say = "My git was killed." },
]
[[scenario.step]]
do = [ { run = 'echo true > {task}.check; git add -A && git commit -q -m Mine || touch refused.txt', quiet = true }, { done = true } ]
"#;
            let scenario = scenario.replace("FIRST", first);
            let repository = Repository::new(&format!("agents-locks-{name}-{number}"), &scenario, &[TICKET]);
            let settings = SETTINGS.replace("[fleet]\n", &format!("[fleet]\nisolation = \"{isolation}\"\n"));
            repository.write("adjutant.toml", &format!("{settings}\n[sandbox]\nmode = \"{mode}\"\n"));
            repository.commit("Settings");
            let said = repository.ok("run --until-idle");
            repository.check(&[TICKET], TESTS);
            let refused = repository.dir().join("refused.txt").exists();
            assert!(!refused, "{isolation}, {mode}, {name}: its git could not commit\n{said}");
        }
    }
}
