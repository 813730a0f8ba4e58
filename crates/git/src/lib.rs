//! Everything that Adjutant does with git. It may know names of tasks and the texts of tickets, and not the kernel. Begin with
//! `tree.rs` (a task's tree) and `landing.rs` (how main moves).
//!
//! Three kinds of directory:
//! - the **user's repository**: read from, published to, and main is moved in it; no agent is shown it;
//! - **`land.git`** in the state folder: a full copy that is ours alone and never pruned. Tips are brought here, merges
//!   made, diffs computed, leftovers committed;
//! - a **task's tree**: a clone of its own whose objects lean on `land.git` (`Isolation::Clone`), or a worktree of the
//!   user's repository (`Isolation::Worktree`).
//!
//! Invariants:
//! - no git of ours ever runs with a git directory that an agent can write to (`Isolation::Clone`): its references are
//!   read by `inside.rs`, its objects are packed by a git whose repository is `land.git`, and every object is checked
//!   on the way in;
//! - nothing that a repository names is run: no hook, file monitor, filter, driver, alias or pager, the user's own
//!   neither. A filter's file that would have to be written into the user's checkout is left to the user;
//! - nothing of the user's is overwritten: references move by compare-and-swap on what we last put there, and a
//!   checkout is changed only by a git that refuses to touch what was changed;
//! - nothing of an agent's is lost: before a tree goes, all of it is in a commit and the rest in the trash;
//! - every call can be repeated after a crash at any place in it.

mod at_work;
mod command;
mod directories;
mod elsewhere;
mod error;
mod home;
mod hook_files;
mod identity;
mod inside;
mod inspect;
mod land;
mod landing;
mod lock;
mod mains;
pub mod names;
mod obstacles;
mod own_branch;
mod publish;
mod references;
mod remote;
mod rewritten;
mod salvage;
mod seats;
#[cfg(test)]
mod tests;
mod trash;
mod tree;
mod unlanded;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub use error::GitError;
pub use identity::{Agent, Person};
pub use inspect::{DiffWish, Inspection, Patch};
pub use landing::{ByRule, Edit, Merged, Moved, Settle};
pub use names::{Oid, SALVAGE};
pub use obstacles::Obstacle;
pub use own_branch::WorktreePlaces;
pub use publish::{BranchDeleted, Published, Taken};
pub use remote::{Push, Stands};
pub use salvage::{DIFF_BYTES_MAX, RestoreTo, Saved, SavedEntry};
pub use seats::UnderReview;
pub use trash::Trashed;
pub use tree::{Leftovers, TreeFound};

use command::Call;

/// The oldest git that can merge without a checkout.
pub const GIT_NEEDED: &str = "2.38";
/// Who commits, where the user's settings do not say.
pub const FALLBACK_NAME: &str = "Adjutant";
pub const FALLBACK_EMAIL: &str = "adjutant@localhost";

/// What git is told of commit hooks in a repository.
#[derive(Clone, Debug, Default)]
pub struct CommitHooks {
    /// `core.hooksPath`.
    pub hooks_path: Option<String>,
    /// A `pre-commit` or `commit-msg` in the folder of hooks.
    pub hook: Option<String>,
}

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Places {
    /// The user's main worktree, or a bare repository.
    pub root: PathBuf,
    /// Our own folder, in the repository's git directory.
    pub state: PathBuf,
    /// The folder that holds the tasks' trees, the one in which merges are tested, and the trash.
    pub trees: PathBuf,
    /// The folder that holds the tasks' temporary folders.
    pub temporary: PathBuf,
    /// The branch that work lands on.
    pub main: String,
    pub isolation: Isolation,
}

/// What a task's tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A clone of its own: the agent cannot reach the user's repository through it.
    Clone,
    /// A worktree of the user's repository: the agent shares its git directory.
    Worktree,
}

/// A repository as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The main worktree, or the bare repository itself.
    pub root: PathBuf,
    pub git_dir: PathBuf,
    pub bare: bool,
    /// `sha1` or `sha256`.
    pub object_format: String,
}

/// The user's repository and our copy of it. A handle: clones share what they know.
#[derive(Clone)]
pub struct Repository {
    inner: Arc<Inner>,
}

struct Inner {
    places: Places,
    git_dir: PathBuf,
    bare: bool,
    object_format: String,
    user: UserSettings,
    /// Whose settings are read, where it is not this process's own home.
    home: Option<PathBuf>,
    /// The newest main that is known to be in `land.git`: what need not be sent again.
    main_in_land: Mutex<Option<Oid>>,
    /// Whether locks of an earlier process were looked for in `land.git`.
    land_checked: Mutex<bool>,
    /// What was done on the way that people should know of, until it is told.
    notes: Mutex<Vec<String>>,
    /// Up to when the names of all objects in these folders are on the disk.
    objects_synced: Mutex<BTreeMap<PathBuf, std::time::SystemTime>>,
    /// Held while a checkout of the user's is moved: what it holds meanwhile is of neither commit.
    checkout_moves: Mutex<()>,
    /// Two calls on one private index would get in each other's way; different trees do not.
    busy: Mutex<BTreeMap<String, Arc<Mutex<()>>>>,
    /// How large each thing in the trash is.
    measured: Mutex<BTreeMap<PathBuf, u64>>,
    /// A commit and its tree, of the merge that was made last: the next one usually builds on it.
    newest_merge: Mutex<Option<(Oid, Oid)>>,
    #[cfg(test)]
    before_merge: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// What is read once from the user's own settings.
#[derive(Clone, Debug, Default)]
struct UserSettings {
    name: String,
    email: String,
    excludes_file: Option<String>,
    autocrlf: Option<String>,
    /// The filters that the user's settings define. None of them is run by us.
    filters: Vec<String>,
    partial_clone: bool,
}

impl Repository {
    /// Opens the repository at `places.root`. Git accepts it as the user, and its version will do.
    pub fn open(places: Places) -> Result<Repository, GitError> {
        Self::open_with(places, None)
    }

    /// As `open`, with the settings of another home folder than the process's own.
    pub fn open_with(places: Places, home: Option<&Path>) -> Result<Repository, GitError> {
        names::check_user_branch(&places.main)?;
        let found = find_with(&places.root, home)?;
        let root = places.root.canonicalize().map_err(GitError::io("finding a folder", &places.root))?;
        let places =
            Places { root, state: canonical(&places.state), trees: canonical(&places.trees), ..places };
        let user = UserSettings::read(&found, home)?;
        Ok(Repository {
            inner: Arc::new(Inner {
                places,
                git_dir: found.git_dir,
                bare: found.bare,
                object_format: found.object_format,
                user,
                home: home.map(Path::to_owned),
                main_in_land: Mutex::new(None),
                land_checked: Mutex::new(false),
                notes: Mutex::new(Vec::new()),
                objects_synced: Mutex::new(BTreeMap::new()),
                checkout_moves: Mutex::new(()),
                busy: Mutex::new(BTreeMap::new()),
                measured: Mutex::new(BTreeMap::new()),
                newest_merge: Mutex::new(None),
                #[cfg(test)]
                before_merge: Mutex::new(None),
            }),
        })
    }

    /// The repository around a directory. From a linked worktree, it is the main worktree's.
    pub fn find(directory: &Path) -> Result<Found, GitError> {
        find_with(directory, None)
    }

    pub fn places(&self) -> &Places {
        &self.inner.places
    }

    /// What was done since the last time that people should know of.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.inner.notes))
    }

    fn note(&self, what: String) {
        locked(&self.inner.notes).push(what);
    }

    /// The user's git directory, which all of its worktrees share.
    pub fn git_dir(&self) -> &Path {
        &self.inner.git_dir
    }

    /// Whether git would leave this path out of a folder with the project's files; a directory's ends in `/`. Not known
    /// means no.
    pub fn ignores(&self, folder: &Path, path: &Path) -> bool {
        // Nothing is read from it and nothing written to it: ignored is what the patterns say.
        let index = self.inner.places.state.join("index/.ignores");
        let call = self.land_with_tree("asking what is ignored", folder, &index);
        // This command refuses paths that are declared literal; behind `./` none has a meaning of its own.
        let call =
            call.env("GIT_LITERAL_PATHSPECS", "0").args(["check-ignore", "--quiet", "--no-index", "--"]);
        call.arg(Path::new(".").join(path)).yes().unwrap_or(false)
    }

    /// The same of the user's own checkout, for those who only look: nothing of ours need be there.
    pub fn ignores_in_checkout(&self, path: &Path) -> bool {
        let call = self.user("asking what is ignored").env("GIT_LITERAL_PATHSPECS", "0");
        let call = call.args(["check-ignore", "--quiet", "--no-index", "--"]);
        call.arg(Path::new(".").join(path)).yes().unwrap_or(false)
    }

    /// What git ignores in the user's checkout, relative to its root: directories as a whole, with a `/` at their end.
    pub fn ignored_in_checkout(&self) -> Result<Vec<String>, GitError> {
        if self.inner.bare {
            return Ok(Vec::new());
        }
        let call = self.user("listing ignored files").long();
        let listed = call.args(["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"]).ok()?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.filter_map(|path| String::from_utf8(path.to_vec()).ok()).collect())
    }

    /// Every checkout of the user's repository: the main one, and those that `git worktree` has made for them. Trees of ours
    /// are not among them.
    pub fn checkouts(&self) -> Vec<PathBuf> {
        /// So many are looked at.
        const CHECKOUTS_MAX: usize = 100;
        let places = &self.inner.places;
        let linked = fs::read_dir(self.inner.git_dir.join("worktrees")).into_iter().flatten().flatten();
        let place = |entry: fs::DirEntry| {
            let link = fs::read_to_string(entry.path().join("gitdir")).ok()?;
            Path::new(link.trim_end()).parent()?.canonicalize().ok()
        };
        let linked = linked.take(CHECKOUTS_MAX).filter_map(place);
        let main = (!self.inner.bare).then(|| places.root.clone());
        let mut found: Vec<PathBuf> =
            main.into_iter().chain(linked).filter(|at| !at.starts_with(&places.trees)).collect();
        found.sort();
        found.dedup();
        found
    }

    /// What git is told of commit hooks here: `core.hooksPath`, and hooks in the folder that it has for them.
    pub fn commit_hooks(&self) -> CommitHooks {
        // Ours is switched off on the command line, so each file of settings is asked by itself.
        let set = |scope| {
            let call =
                self.user("looking for commit hooks").args(["config", scope, "--get", "core.hooksPath"]);
            call.line().ok().filter(|line| !line.is_empty())
        };
        let folder = self.inner.git_dir.join("hooks");
        let is_there = |name: &&&str| folder.join(name).is_file();
        let hook = ["pre-commit", "commit-msg"].iter().find(is_there);
        CommitHooks {
            hooks_path: set("--local").or_else(|| set("--global")),
            hook: hook.map(|name| format!(".git/hooks/{name}")),
        }
    }

    /// Whether the user's repository is bare.
    pub fn bare(&self) -> bool {
        self.inner.bare
    }

    /// Where a task's tree is, from the name that the kernel gave it: `A-c-1`, or `agents/A-c-1` in older logs.
    pub fn tree_path(&self, tree: &str) -> Result<PathBuf, GitError> {
        Ok(self.inner.places.trees.join(names::tree_name(tree)?))
    }

    /// Whether git tracks something at this path of the checkout, or below it.
    pub fn tracks(&self, path: &Path) -> Result<bool, GitError> {
        let listed = self.user("looking for tracked files").args(["ls-files", "-z", "--"]).arg(path).ok()?;
        Ok(!listed.is_empty())
    }

    /// Trees that lie in the checkout, by choice, are kept out of the user's `git status` by `info/exclude`; said once,
    /// however often it is asked. What earlier versions wrote there is taken out: they kept whole folders of theirs
    /// out of git, whosoever they were.
    pub fn exclude_ours(&self) -> Result<(), GitError> {
        let exclude = self.inner.git_dir.join("info/exclude");
        let before = read_or_empty(&exclude)?;
        let mut content = before.replace("/.adjutant/\n/agents/\n", "");
        if let Some(line) = self.exclude_line()
            && !content.lines().any(|existing| existing == line)
        {
            if !content.is_empty() && !content.ends_with('\n') {
                content.push('\n');
            }
            content.push_str(&line);
            content.push('\n');
        }
        if content == before { Ok(()) } else { write_whole(&exclude, content.as_bytes()) }
    }

    /// Anchored at the root: a folder of the same name deeper down is the user's.
    fn exclude_line(&self) -> Option<String> {
        let places = &self.inner.places;
        let inside = places.trees.strip_prefix(&places.root).ok()?;
        Some(format!("/{}/", inside.display()))
    }

    fn main_reference(&self) -> String {
        format!("refs/heads/{}", self.inner.places.main)
    }

    fn land_dir(&self) -> PathBuf {
        self.inner.places.state.join(names::LAND)
    }

    /// A call in `land.git`.
    fn land(&self, doing: &'static str) -> Call {
        let land = self.land_dir();
        let call = Call::hardened(doing, &land).env("GIT_DIR", &land);
        self.inner.user.pass_on(call).set("core.untrackedCache", "false")
    }

    /// A call with `land.git` as repository and a tree of files that need not be ours.
    fn land_with_tree(&self, doing: &'static str, tree: &Path, index: &Path) -> Call {
        let land = self.land_dir();
        let call = Call::hardened(doing, tree)
            .env("GIT_DIR", &land)
            .env("GIT_WORK_TREE", tree)
            .env("GIT_INDEX_FILE", index);
        self.inner.user.pass_on(call).set("core.untrackedCache", "false").long()
    }

    /// A call in the user's repository, with every filter off that it named when it was opened.
    fn user(&self, doing: &'static str) -> Call {
        let inner = &self.inner;
        let mut call = Call::hardened(doing, &inner.places.root).env("GIT_DIR", &inner.git_dir);
        if !inner.bare {
            call = call.env("GIT_WORK_TREE", &inner.places.root);
        }
        without_filters(inner.user.pass_on(call), &inner.user.filters)
    }

    /// A call in one of the user's checkouts, whose git directory is found by git itself. Its files are not: whoever can
    /// write to that directory could have them written elsewhere.
    fn checkout(&self, doing: &'static str, at: &Path) -> Call {
        let user = &self.inner.user;
        let call = Call::hardened(doing, at).env("GIT_WORK_TREE", at);
        without_filters(user.pass_on(call), &user.filters)
    }

    /// The filters that the user's settings define by now: those of the repository may have changed since it was opened,
    /// and an agent in a worktree can change them too.
    fn filters_now(&self) -> Result<Vec<String>, GitError> {
        let asked = self.user("looking for filters").args(["config", "-z", "--name-only", "--list"]).ok()?;
        let asked = String::from_utf8_lossy(&asked).into_owned();
        let mut filters = self.inner.user.filters.clone();
        filters.extend(asked.split('\0').filter_map(filter_name));
        filters.sort();
        filters.dedup();
        Ok(filters)
    }

    /// Whoever holds it is alone at work on that tree.
    fn turn(&self, tree: &str) -> Arc<Mutex<()>> {
        locked(&self.inner.busy).entry(tree.to_owned()).or_default().clone()
    }

    fn zero(&self) -> String {
        "0".repeat(if self.inner.object_format == "sha256" { 64 } else { 40 })
    }
}

impl UserSettings {
    /// Asks git as the user would, with all their settings; nothing is run by that.
    fn read(found: &Found, home: Option<&Path>) -> Result<UserSettings, GitError> {
        let output = as_user("reading the user's git settings", &found.root, home)
            .env("GIT_DIR", &found.git_dir)
            .args(["config", "-z", "--list"])
            .ok()?;
        let mut settings = UserSettings::default();
        for entry in String::from_utf8_lossy(&output).split('\0').filter(|entry| !entry.is_empty()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            match key {
                "user.name" => settings.name = value.trim().to_owned(),
                "user.email" => settings.email = value.trim().to_owned(),
                "core.excludesfile" => {
                    settings.excludes_file = Some(value.to_owned()).filter(|v| !v.is_empty())
                }
                "core.autocrlf" => settings.autocrlf = Some(value.to_owned()),
                "extensions.partialclone" => settings.partial_clone = true,
                _ if key.starts_with("remote.") && key.ends_with(".promisor") => {
                    settings.partial_clone |= !matches!(value, "false" | "0" | "no" | "off");
                }
                _ => settings.filters.extend(filter_name(key)),
            }
        }
        settings.filters.sort();
        settings.filters.dedup();
        if let Some(rest) = settings.excludes_file.as_deref().and_then(|file| file.strip_prefix("~/")) {
            // An agent's home need not be the user's.
            let base = home.map(Path::to_owned).or_else(|| std::env::var_os("HOME").map(PathBuf::from));
            settings.excludes_file = base.map(|base| base.join(rest).display().to_string());
        } else if settings.excludes_file.is_none() {
            // Git's own default, which setting anything else would hide.
            let base = home.map(|home| home.join(".config")).or_else(config_home);
            settings.excludes_file = base.map(|base| base.join("git/ignore").display().to_string());
        }
        // A name of nothing but spaces and dots is none to git either.
        let says_something = |text: &str| text.chars().any(char::is_alphanumeric);
        if !says_something(&settings.name) {
            settings.name = FALLBACK_NAME.to_owned();
        }
        if !says_something(&settings.email) {
            settings.email = FALLBACK_EMAIL.to_owned();
        }
        Ok(settings)
    }

    fn pass_on(&self, call: Call) -> Call {
        let mut call = call
            .env("GIT_AUTHOR_NAME", &self.name)
            .env("GIT_AUTHOR_EMAIL", &self.email)
            .env("GIT_COMMITTER_NAME", &self.name)
            .env("GIT_COMMITTER_EMAIL", &self.email);
        if let Some(file) = &self.excludes_file {
            call = call.set("core.excludesFile", file);
        }
        if let Some(value) = &self.autocrlf {
            call = call.set("core.autocrlf", value);
        }
        call
    }
}

fn without_filters(mut call: Call, filters: &[String]) -> Call {
    for filter in filters {
        for part in ["clean", "smudge", "process"] {
            call = call.set(format!("filter.{filter}.{part}"), "");
        }
        call = call.set(format!("filter.{filter}.required"), "false");
    }
    call
}

/// `a.b` of `filter.a.b.clean`.
fn filter_name(key: &str) -> Option<String> {
    let (name, _) = key.strip_prefix("filter.")?.rsplit_once('.')?;
    Some(name.to_owned())
}

fn config_home() -> Option<PathBuf> {
    let set = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
}

/// A call with the user's own settings: only for questions that run nothing.
fn as_user(doing: &'static str, at: &Path, home: Option<&Path>) -> Call {
    let call = Call::new(doing, at);
    match home {
        Some(home) => call
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("GIT_CONFIG_NOSYSTEM", "1"),
        None => call,
    }
}

fn find_with(directory: &Path, home: Option<&Path>) -> Result<Found, GitError> {
    if directory.to_str().is_none() {
        return Err(GitError::NotText { at: directory.to_owned() });
    }
    check_version(directory, home)?;
    let asked = as_user("looking for a git repository", directory, home)
        .args(["rev-parse", "--path-format=absolute", "--show-object-format", "--is-bare-repository"])
        .args(["--git-dir", "--git-common-dir"])
        .line();
    let answer = match asked {
        Err(GitError::Failed { said, .. }) if said.contains("not a git repository") => {
            return Err(GitError::NoRepository { at: directory.to_owned() });
        }
        other => other?,
    };
    let lines: Vec<&str> = answer.lines().collect();
    let [object_format, _, git_dir, common] = lines[..] else {
        return Err(GitError::NoRepository { at: directory.to_owned() });
    };
    let common = PathBuf::from(common);
    // Of the main worktree, not of the one that we may stand in: a linked worktree of a bare repository is not bare.
    let listed =
        as_user("listing the worktrees", directory, home).args(["worktree", "list", "--porcelain"]).ok()?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let first = listed.split("\n\n").next().unwrap_or_default();
    let bare = first.lines().any(|line| line == "bare");
    let root = if bare {
        common.clone()
    } else if Path::new(git_dir) == common {
        // A git directory need not be called `.git`, so the list's guess is not taken where git can say it.
        let shown = as_user("finding the worktree", directory, home)
            .args(["rev-parse", "--path-format=absolute", "--show-toplevel"])
            .line();
        match shown {
            Ok(top) => PathBuf::from(top),
            Err(_) => listed_root(first, &common),
        }
    } else {
        listed_root(first, &common)
    };
    let canonical = |path: PathBuf| path.canonicalize().map_err(GitError::io("finding a folder", &path));
    Ok(Found {
        root: canonical(root)?,
        git_dir: canonical(common)?,
        bare,
        object_format: object_format.to_owned(),
    })
}

fn listed_root(entry: &str, common: &Path) -> PathBuf {
    match entry.lines().find_map(|line| line.strip_prefix("worktree ")) {
        Some(path) => PathBuf::from(path),
        None => common.parent().unwrap_or(common).to_owned(),
    }
}

fn check_version(directory: &Path, home: Option<&Path>) -> Result<(), GitError> {
    let printed = as_user("asking git for its version", directory, home).arg("version").line()?;
    let found = printed.trim_start_matches("git version ").to_owned();
    let numbers = |version: &str| {
        let mut parts =
            version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    if numbers(&found) < numbers(GIT_NEEDED) { Err(GitError::TooOld { found }) } else { Ok(()) }
}

/// The way to a folder without links, of which the last parts need not be there yet.
fn canonical(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    match found {
        Some((there, real)) => {
            path.strip_prefix(there).map_or(real.clone(), |rest| match rest.as_os_str().is_empty() {
                true => real,
                false => real.join(rest),
            })
        }
        None => path.to_owned(),
    }
}

fn read_or_empty(path: &Path) -> Result<String, GitError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(GitError::Io { doing: "reading a file", at: path.to_owned(), source }),
    }
}

/// Writes a file of ours whole: after a crash it holds the old content or the new.
fn write_whole(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let doing = "writing a file";
    base::crash::point(doing);
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(GitError::io(doing, folder))?;
    base::files::write_whole(path, content).map_err(GitError::io(doing, path))
}

/// Removes a folder of ours with everything in it; one that is not there is fine.
fn remove_folder(path: &Path) -> Result<(), GitError> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::Io { doing: "removing a folder", at: path.to_owned(), source: e })
        }
        _ => Ok(()),
    }
}

/// Seconds since the epoch.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
