//! Copies ignored files that a new tree needs: `.env`, a cache, a local configuration.
//!
//! Invariants: only ignored files are put into the tree, so git reports no changes; no existing file is
//! overwritten; no link is followed, neither out of the project nor, in a tree that an agent may have touched, out of the
//! tree. Repeating it adds only missing files.

use super::glob::{self, Glob};
use super::leads_back::{LeadBack, Search};
use crate::settings::Settings;
use git::GitError;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

pub use git::names::INCLUDE_FILE;
/// Entries that are looked at before the search is given up.
const WALK_MAX: usize = 500_000;
/// Directories within directories that are looked into.
const DEPTH_MAX: usize = 64;
/// How many things that were left out are told one by one.
const LEFT_OUT_TOLD_MAX: usize = 50;
const PARTIAL: &str = ".adj-partial";

/// What was put into a tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SetUp {
    pub placed: Vec<Placed>,
    /// Matched and not put there, with the reason; a file that is there already is not told.
    pub left_out: Vec<(PathBuf, &'static str)>,
    /// The same of what the settings name: without it the tree is not what they ask for.
    pub missing: Vec<(PathBuf, &'static str)>,
    /// Ways by which what was put there leads back into the checkout, see [`leads_back`].
    pub leads_back: Vec<LeadBack>,
}

/// One file of it, relative to the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    Copied(PathBuf),
    Linked(PathBuf),
}

/// Why a tree is not set up. What was put there stays.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error("cannot set up {path} in the tree: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("cannot add the link {path} to git's exclude file: {error}")]
    Exclude { path: PathBuf, error: GitError },
    #[error(
        "more than {0} files match worktree.copy, worktree.symlink and {INCLUDE_FILE}; narrow the patterns, or raise limits.copy_files"
    )]
    TooMany(usize),
    #[error(
        "the files that match worktree.copy and {INCLUDE_FILE} have more than {0} bytes; narrow the patterns, or raise limits.copy_bytes"
    )]
    TooLarge(u64),
    #[error(
        "stopped after {WALK_MAX} files; write the patterns of [worktree] and {INCLUDE_FILE} with their directory"
    )]
    TooWide,
}

impl SetUpError {
    fn at(path: impl AsRef<Path>, error: io::Error) -> SetUpError {
        SetUpError::Io { path: path.as_ref().to_owned(), error }
    }
}

/// Puts what the settings and `include` name from `root`, the user's checkout, into `tree`. `include` is the content of
/// `.worktreeinclude` that is in force. `trees` is the folder of all trees, which may lie in the checkout and is no part of it.
///
/// `ignored` says whether git ignores a path in the tree. It is asked with paths relative to it; a directory's ends in `/`,
/// as patterns of git tell them apart. What it says of a directory holds for all in it. A pattern that matches at any
/// depth is not looked for in directories that git ignores as a whole, such as `node_modules`.
///
/// `exclude` has git ignore a link in the tree, and there alone: to git a link is no directory, so `.venv/` in a
/// `.gitignore` does not cover it.
pub fn set_up(
    root: &Path,
    tree: &Path,
    trees: &Path,
    settings: &Settings,
    include: &str,
    ignored: &dyn Fn(&Path) -> bool,
    exclude: &dyn Fn(&str) -> Result<(), GitError>,
) -> Result<SetUp, SetUpError> {
    let read = |patterns: &[String]| patterns.iter().filter_map(|line| Glob::read(line)).collect::<Vec<_>>();
    let mut copy = read(&settings.worktree.copy);
    let demanded = [&settings.worktree.copy[..], &settings.worktree.symlink[..]].concat();
    let demanded_globs = read(&demanded);
    copy.extend(include.lines().filter_map(Glob::read));
    let symlink = read(&settings.worktree.symlink);
    if copy.is_empty() && symlink.is_empty() {
        return Ok(SetUp::default());
    }
    let root = root.canonicalize().map_err(|error| SetUpError::at(root, error))?;
    let tree_path = tree.canonicalize().map_err(|error| SetUpError::at(tree, error))?;
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let top = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(&tree_path)
        .map_err(|error| SetUpError::at(tree, error))?;
    let mut walk = Walk {
        root: &root,
        trees,
        tree: top.into(),
        tree_path,
        copy,
        symlink,
        demanded: demanded_globs,
        taken: Vec::new(),
        ignored,
        exclude,
        files_left: settings.limits.copy_files,
        files_max: settings.limits.copy_files,
        bytes_left: settings.limits.copy_bytes,
        bytes_max: settings.limits.copy_bytes,
        looks_left: WALK_MAX,
        done: SetUp::default(),
    };
    walk.directory("", false, 0)?;
    for pattern in &demanded {
        let Some(path) = literal(pattern) else { continue };
        let within = |taken: &String| {
            let tail = taken.strip_suffix(path).is_some_and(|head| head.is_empty() || head.ends_with('/'));
            tail || taken.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
        };
        if !walk.taken.iter().any(within) && !root.join(path).is_dir() {
            walk.done.missing.push((PathBuf::from(path), "it is not in your checkout"));
        }
    }
    Ok(walk.done)
}

/// The person's checkout, as far as it matters for what a tree gets of it.
pub struct Checkout<'a> {
    /// Canonical.
    pub root: &'a Path,
    /// All checkouts of the repository, the root among them.
    pub all: &'a [PathBuf],
    /// The folder of all trees, which may lie in the checkout and is no part of it.
    pub trees: &'a Path,
    /// What git ignores in it, relative to the root, directories as a whole and with a `/` at their end.
    pub ignored: &'a [String],
}

impl Checkout<'_> {
    /// What of the checkout these patterns bring into a tree, relative to it: the top of what matches.
    pub fn shared(&self, patterns: &[String]) -> Vec<PathBuf> {
        let globs: Vec<Glob> = patterns.iter().filter_map(|line| Glob::read(line)).collect();
        let mut found: Vec<String> = Vec::new();
        let mut looks_left = WALK_MAX;
        for entry in self.ignored {
            let (path, is_directory) = (entry.trim_end_matches('/'), entry.ends_with('/'));
            if glob::takes(&globs, path, is_directory) {
                found.push(path.to_owned());
            } else if is_directory {
                let below: Vec<Glob> = globs.iter().filter(|glob| !glob.is_anywhere()).cloned().collect();
                self.matching_below(path, &below, 0, &mut looks_left, &mut found);
            }
        }
        let named = patterns.iter().filter_map(|pattern| literal(pattern));
        found.extend(named.filter(|path| self.root.join(path).exists()).map(str::to_owned));
        found.sort();
        found.dedup();
        let mut tops: Vec<PathBuf> = Vec::new();
        for path in found.into_iter().map(PathBuf::from) {
            let is_within = |top: &PathBuf| path.starts_with(top);
            if !tops.iter().any(is_within) && !self.root.join(&path).starts_with(self.trees) {
                tops.push(path);
            }
        }
        tops
    }

    fn matching_below(
        &self,
        path: &str,
        globs: &[Glob],
        depth: usize,
        looks_left: &mut usize,
        found: &mut Vec<String>,
    ) {
        if depth == DEPTH_MAX || !globs.iter().any(|glob| glob.reaches_below(path)) {
            return;
        }
        for entry in fs::read_dir(self.root.join(path)).into_iter().flatten().flatten() {
            let Some(left) = looks_left.checked_sub(1) else { return };
            *looks_left = left;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            let path = format!("{path}/{name}");
            if glob::takes(globs, &path, kind.is_dir()) {
                found.push(path);
            } else if kind.is_dir() {
                self.matching_below(&path, globs, depth + 1, looks_left, found);
            }
        }
    }
}

/// The ways by which what the settings and `include` bring into a tree leads back into the checkout: with them its tests
/// would run on other files than those under test.
pub fn leads_back(checkout: &Checkout<'_>, settings: &Settings, include: &str) -> Vec<LeadBack> {
    let include = include.lines().map(str::to_owned);
    let copied: Vec<String> = settings.worktree.copy.iter().cloned().chain(include).collect();
    let folders = |patterns: &[String]| {
        let shared = checkout.shared(patterns).into_iter();
        shared.filter(|path| checkout.root.join(path).is_dir()).collect::<Vec<_>>()
    };
    let (linked, copied) = (folders(&settings.worktree.symlink), folders(&copied));
    let real = |path: &PathBuf| {
        let path = checkout.root.join(path);
        path.canonicalize().unwrap_or(path)
    };
    let shared: Vec<PathBuf> = linked.iter().chain(&copied).map(real).collect();
    let search =
        Search { root: checkout.root, checkouts: checkout.all, shared: &shared, trees: checkout.trees };
    let of_linked = linked.iter().flat_map(|folder| search.below(folder, false));
    of_linked.chain(copied.iter().flat_map(|folder| search.below(folder, true))).collect()
}

/// The path of an entry of the settings that names one, and no pattern.
fn literal(pattern: &str) -> Option<&str> {
    let path = pattern.trim().trim_start_matches("./").trim_matches('/');
    let special = |c: char| matches!(c, '*' | '?' | '[' | '!' | '#' | '\\');
    (!path.is_empty() && !path.contains(special)).then_some(path)
}

/// What the settings name and a tree could not get, as far as the checkout alone tells. `ignored` as in [`set_up`].
pub fn unmet(
    root: &Path,
    settings: &Settings,
    ignored: &dyn Fn(&Path) -> bool,
) -> Vec<(String, &'static str)> {
    let named = settings.worktree.copy.iter().chain(&settings.worktree.symlink);
    let paths = named.filter_map(|pattern| literal(pattern));
    let unmet = |path: &str| match root.join(path).symlink_metadata() {
        // One without a `/` is looked for at any depth.
        Err(_) if !path.contains('/') && is_below(root, path, &mut { UNMET_LOOKS_MAX }) => None,
        Err(_) => Some("it is not in your checkout"),
        Ok(_) if !ignored(Path::new(path)) && !ignored(&Path::new(path).join("")) => {
            Some("git does not ignore it; add it to .gitignore")
        }
        Ok(_) => None,
    };
    paths.filter_map(|path| unmet(path).map(|why| (path.to_owned(), why))).collect()
}

/// Entries that are looked at for a name that is not at the root; after that it counts as there.
const UNMET_LOOKS_MAX: usize = 20_000;

fn is_below(folder: &Path, name: &str, looks_left: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries.flatten() {
        if *looks_left == 0 || entry.file_name() == name {
            return true;
        }
        *looks_left -= 1;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git";
        if is_folder && is_below(&entry.path(), name, looks_left) {
            return true;
        }
    }
    false
}

struct Walk<'a> {
    root: &'a Path,
    trees: &'a Path,
    tree: OwnedFd,
    tree_path: PathBuf,
    copy: Vec<Glob>,
    symlink: Vec<Glob>,
    /// What of both the settings name.
    demanded: Vec<Glob>,
    /// The paths that matched.
    taken: Vec<String>,
    ignored: &'a dyn Fn(&Path) -> bool,
    exclude: &'a dyn Fn(&str) -> Result<(), GitError>,
    files_left: usize,
    files_max: usize,
    bytes_left: u64,
    bytes_max: u64,
    looks_left: usize,
    done: SetUp,
}

impl Walk<'_> {
    /// Looks through a directory of the project; `within` means that git ignores all of it.
    fn directory(&mut self, path: &str, within: bool, depth: usize) -> Result<(), SetUpError> {
        let here = self.root.join(path);
        let failed = |error| SetUpError::at(path, error);
        let mut entries = Vec::new();
        let listing = match fs::read_dir(&here) {
            Ok(listing) => listing,
            // It went away, or is not ours to read: nothing of it is needed then.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        for entry in listing {
            self.looks_left = self.looks_left.checked_sub(1).ok_or(SetUpError::TooWide)?;
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            match entry.file_name().into_string() {
                Ok(name) => entries.push((name, kind)),
                Err(_) => self.leave_out(path, "its directory has a name that is not UTF-8"),
            }
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in entries {
            if name == ".git" {
                continue;
            }
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let here = self.root.join(&path);
            if kind.is_dir() && (here == self.tree_path || here == self.trees) {
                continue;
            }
            self.entry(&path, kind, within, depth)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        path: &str,
        kind: fs::FileType,
        within: bool,
        depth: usize,
    ) -> Result<(), SetUpError> {
        let is_directory = kind.is_dir();
        // The top of what matches is linked, not each file in it.
        if glob::takes(&self.symlink, path, is_directory) {
            self.taken.push(path.to_owned());
            return self.link(path, within);
        }
        if is_directory {
            let within = within || (self.ignored)(&Path::new(path).join(""));
            let wanted = |glob: &Glob| match glob.takes(path, true) {
                true => !glob.negated,
                false => glob.reaches_below(path) && !(within && glob.is_anywhere()),
            };
            if depth < DEPTH_MAX && self.copy.iter().chain(&self.symlink).any(wanted) {
                self.directory(path, within, depth + 1)?;
            }
            return Ok(());
        }
        if !glob::takes(&self.copy, path, false) {
            return Ok(());
        }
        self.taken.push(path.to_owned());
        if !within && !(self.ignored)(Path::new(path)) {
            // What git tracks is in the tree already, and what it does not ignore would be seen by it.
            if self.tree_path.join(path).symlink_metadata().is_err() {
                self.leave_out(path, "git does not ignore it; add it to .gitignore");
            }
        } else if kind.is_file() {
            self.copy_file(path)?;
        } else if kind.is_symlink() {
            self.copy_link(path)?;
        } else {
            self.leave_out(path, "it is not a plain file");
        }
        Ok(())
    }

    fn copy_file(&mut self, path: &str) -> Result<(), SetUpError> {
        let failed = |error| SetUpError::at(path, error);
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let from = OpenOptions::new().read(true).custom_flags(flags.bits()).open(self.root.join(path));
        let from = match from {
            Ok(from) => from,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.leave_out(path, "it may not be read");
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        let metadata = from.metadata().map_err(failed)?;
        let Some((dir, name)) = self.parent_of(path).map_err(failed)? else { return Ok(()) };
        self.count(metadata.len())?;
        let partial = format!("{name}{PARTIAL}");
        // Left by a copy that was cut off. A name is put in place only when its file is whole.
        remove(&dir, &partial).map_err(failed)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let to = openat(&dir, partial.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let mut to = File::from(to.map_err(|error| failed(error.into()))?);
        let copied = io::copy(&mut from.take(metadata.len()), &mut to).and_then(|_| {
            to.set_permissions(fs::Permissions::from_mode(metadata.permissions().mode() & 0o777))
        });
        // A link to the whole file is made only where no name is: that is what a rename would not promise.
        let linked =
            copied.and_then(|()| Ok(linkat(&dir, partial.as_str(), &dir, name.as_str(), AtFlags::empty())?));
        remove(&dir, &partial).map_err(failed)?;
        match linked {
            Ok(()) => self.done.placed.push(Placed::Copied(PathBuf::from(path))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(())
    }

    /// A link of the project that leads to a place in it leads to the same place in the tree.
    fn copy_link(&mut self, path: &str) -> Result<(), SetUpError> {
        let failed = |error| SetUpError::at(path, error);
        let target = fs::read_link(self.root.join(path)).map_err(failed)?;
        if !stays_inside(path, &target) {
            self.leave_out(path, "it is a link that leads out of the project");
            return Ok(());
        }
        let Some((dir, name)) = self.parent_of(path).map_err(failed)? else { return Ok(()) };
        self.count(0)?;
        symlinkat(&target, &dir, name.as_str()).map_err(|error| failed(error.into()))?;
        self.done.placed.push(Placed::Copied(PathBuf::from(path)));
        Ok(())
    }

    fn link(&mut self, path: &str, within: bool) -> Result<(), SetUpError> {
        let failed = |error| SetUpError::at(path, error);
        // Tests do not see the checkout, so a link that stands there leads them nowhere: the tree has the way to its end.
        let target = self.root.join(path).canonicalize().ok().filter(|target| target.starts_with(self.root));
        let Some(target) = target else {
            self.leave_out(path, "it is a link that leads out of the project");
            return Ok(());
        };
        if base::files::leads_into_git(self.root, &target) {
            self.leave_out(path, "it is a link that leads into a git directory");
            return Ok(());
        }
        // Asked as a file: to git a link is no directory, and a pattern `cache/` does not ignore a link `cache`.
        if !within && !(self.ignored)(Path::new(path)) {
            if !(self.ignored)(&Path::new(path).join("")) {
                self.leave_out(path, "git does not ignore it; add it to .gitignore");
                return Ok(());
            }
            (self.exclude)(path).map_err(|error| SetUpError::Exclude { path: path.into(), error })?;
        }
        let Some((dir, name)) = self.parent_of(path).map_err(failed)? else { return Ok(()) };
        self.count(0)?;
        symlinkat(&target, &dir, name.as_str()).map_err(|error| failed(error.into()))?;
        self.done.placed.push(Placed::Linked(PathBuf::from(path)));
        Ok(())
    }

    /// The directory in the tree that a path belongs in, made where it is missing, and the last part of the path. Nothing
    /// where something has that name, or where a link is in the way.
    fn parent_of(&mut self, path: &str) -> io::Result<Option<(OwnedFd, String)>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut parts: Vec<_> = path.split('/').collect();
        let name = parts.pop().unwrap_or_default();
        let mut dir = self.tree.try_clone()?;
        for part in parts {
            let made = mkdirat(
                &dir,
                part,
                Mode::S_IRWXU | Mode::S_IRGRP | Mode::S_IXGRP | Mode::S_IROTH | Mode::S_IXOTH,
            );
            if let Err(error) = made
                && error != Errno::EEXIST
            {
                return Err(error.into());
            }
            dir = match openat(&dir, part, flags, Mode::empty()) {
                Ok(dir) => dir,
                Err(Errno::ELOOP | Errno::ENOTDIR) => {
                    // An agent's own doing, which is no reason to keep it from going on.
                    let why = "something else is in its place in the tree";
                    if self.done.left_out.len() < LEFT_OUT_TOLD_MAX {
                        self.done.left_out.push((PathBuf::from(path), why));
                    }
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            };
        }
        match fstatat(&dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(None),
            Err(Errno::ENOENT) => Ok(Some((dir, name.to_owned()))),
            Err(error) => Err(error.into()),
        }
    }

    fn count(&mut self, bytes: u64) -> Result<(), SetUpError> {
        self.files_left = self.files_left.checked_sub(1).ok_or(SetUpError::TooMany(self.files_max))?;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(SetUpError::TooLarge(self.bytes_max))?;
        Ok(())
    }

    fn leave_out(&mut self, path: &str, why: &'static str) {
        let is_directory = self.root.join(path).is_dir();
        let told = match glob::takes(&self.demanded, path, is_directory) {
            true => &mut self.done.missing,
            false => &mut self.done.left_out,
        };
        if told.len() < LEFT_OUT_TOLD_MAX {
            told.push((PathBuf::from(path), why));
        }
    }
}

fn remove(dir: &impl AsFd, name: &str) -> io::Result<()> {
    match unlinkat(dir, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a link at `path` with this target leads to a place inside, by its text alone.
fn stays_inside(path: &str, target: &Path) -> bool {
    let mut depth = path.split('/').count() as i64 - 1;
    target.components().all(|part| {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => depth = -1,
        }
        depth >= 0
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use testing::Folder;

    /// A repository with a checkout of it, as a user has them and an agent gets them.
    struct Stage {
        project: Folder,
        tree: Folder,
    }

    impl Stage {
        fn new(ignore: &str) -> Stage {
            let stage = Stage { project: Folder::new(), tree: Folder::new() };
            git(&stage.project.path, &["init", "-q", "."]);
            stage.project.write(".gitignore", ignore);
            stage.project.write("tracked.env", "tracked");
            git(&stage.project.path, &["add", "-f", ".gitignore", "tracked.env"]);
            let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--no-gpg-sign"];
            git(&stage.project.path, &commit);
            let tree = stage.tree.path.to_str().unwrap();
            git(&stage.project.path, &["clone", "-q", ".", tree]);
            stage
        }

        fn set_up(&self, toml: &str) -> Result<SetUp, SetUpError> {
            let settings = Settings::parse(toml).unwrap();
            let ignored = |path: &Path| {
                let asked =
                    command(&self.tree.path, &["check-ignore", "-q", "--"]).arg(path).status().unwrap();
                asked.success()
            };
            let exclude = |path: &str| {
                let file = self.tree.path.join(".git/info/exclude");
                let before = fs::read_to_string(&file).unwrap_or_default();
                fs::write(&file, format!("{before}/{path}\n")).unwrap();
                Ok(())
            };
            let trees = self.project.path.join("trees");
            let include = crate::settings::include::include_file(&self.project.path);
            set_up(&self.project.path, &self.tree.path, &trees, &settings, &include, &ignored, &exclude)
        }

        /// What came of it, after a look that git sees nothing of it.
        fn check(&self, toml: &str, placed: &[&str]) -> SetUp {
            let done = self.set_up(toml).unwrap();
            let told = |placed: &Placed| match placed {
                Placed::Copied(path) => format!("copied {}", path.display()),
                Placed::Linked(path) => format!("linked {}", path.display()),
            };
            assert_eq!(done.placed.iter().map(told).collect::<Vec<_>>(), placed);
            assert_eq!(git(&self.tree.path, &["status", "--porcelain"]), "");
            done
        }

        fn text(&self, path: &str) -> Option<String> {
            fs::read_to_string(self.tree.path.join(path)).ok()
        }
    }

    /// Git without anyone's configuration.
    fn command(dir: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "init.defaultBranch=main", "-c", "safe.directory=*"])
            .args(arguments)
            .current_dir(dir);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        command
    }

    fn git(dir: &Path, arguments: &[&str]) -> String {
        let output = command(dir, arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn ignored_files_are_copied_and_linked_and_git_sees_none() {
        let stage = Stage::new("*.env\n/cache\nnode_modules/\n");
        stage.project.write(".env", "A=1");
        stage.project.write("deep/down/b.env", "B=1");
        stage.project.write("cache/big", "x");
        stage.project.write("node_modules/p/.env", "not looked for in there");
        fs::set_permissions(stage.project.path.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
        let toml = "[worktree]\ncopy = [\"*.env\"]\nsymlink = [\"cache\"]\n";
        stage.check(toml, &["copied .env", "linked cache", "copied deep/down/b.env"]);
        assert_eq!(stage.text(".env").as_deref(), Some("A=1"));
        assert_eq!(stage.text("cache/big").as_deref(), Some("x"));
        assert_eq!(stage.tree.path.join(".env").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(stage.text("tracked.env").as_deref(), Some("tracked"));
        stage.check(toml, &[]);
    }

    #[test]
    fn a_file_of_patterns_is_read_too() {
        let stage = Stage::new("local/\n.env*\n");
        stage.project.write(".worktreeinclude", "# what builds need\n\nlocal/\n.env*\n!.env.example\n");
        git(&stage.project.path, &["status"]);
        for path in ["local/a/b", "local/c", ".env", ".env.example", "unrelated"] {
            stage.project.write(path, path);
        }
        stage.check("", &["copied .env", "copied local/a/b", "copied local/c"]);
        assert_eq!(stage.text(".env.example"), None);
    }

    #[test]
    fn what_git_would_see_is_left_out_and_said() {
        let stage = Stage::new("node_modules/\n");
        stage.project.write("notes.txt", "x");
        stage.project.write("node_modules/p/x", "x");
        let toml = "[worktree]\ncopy = [\"notes.txt\", \"*.env\", \"gone/x\", \"gone-*\"]\n";
        let why = "git does not ignore it; add it to .gitignore";
        let done = stage.check(toml, &[]);
        assert_eq!(
            done.missing,
            [(PathBuf::from("notes.txt"), why), (PathBuf::from("gone/x"), "it is not in your checkout")]
        );
        assert_eq!(done.left_out, []);
        stage.project.write(".worktreeinclude", "notes.txt\n");
        git(&stage.project.path, &["status"]);
        let done = stage.check("", &[]);
        assert_eq!((done.left_out, done.missing), (vec![(PathBuf::from("notes.txt"), why)], Vec::new()));
        stage.check("[worktree]\ncopy = [\"node_modules\"]\n", &["copied node_modules/p/x"]);
    }

    #[test]
    fn a_directory_that_is_ignored_with_a_slash_is_linked_and_git_does_not_see_the_link() {
        let stage = Stage::new(".venv/\nnode_modules/\n");
        stage.project.write(".venv/bin/python", "x");
        stage.project.write("a/node_modules/p/x", "x");
        let toml = "[worktree]\nsymlink = [\".venv\", \"node_modules\"]\n";
        let done = stage.check(toml, &["linked .venv", "linked a/node_modules"]);
        assert_eq!(done.missing, []);
        stage.check(toml, &[]);
    }

    #[test]
    fn nothing_that_is_there_is_overwritten() {
        let stage = Stage::new(".env\nd\n");
        stage.project.write(".env", "theirs");
        stage.project.write("d/x", "theirs");
        stage.tree.write(".env", "mine");
        stage.tree.write("d", "a file where a directory would be");
        let done = stage.check("[worktree]\ncopy = [\".env\", \"d\"]\n", &[]);
        assert_eq!(stage.text(".env").as_deref(), Some("mine"));
        assert_eq!(done.left_out, [(PathBuf::from("d/x"), "something else is in its place in the tree")]);
    }

    #[test]
    fn no_link_is_followed_out_of_project_or_tree() {
        let stage = Stage::new(".env\nd\nin\nout\nabs\n");
        let outside = Folder::new();
        outside.write("secret", "s");
        stage.project.write("d/x", "x");
        symlink(&outside.path, stage.project.path.join("out")).unwrap();
        symlink("/etc/hostname", stage.project.path.join("abs")).unwrap();
        symlink("../../x", stage.project.path.join("d/up")).unwrap();
        symlink("d/x", stage.project.path.join("in")).unwrap();
        // An agent that waits for us in its tree.
        symlink(&outside.path, stage.tree.path.join("d")).unwrap();
        let toml = "[worktree]\ncopy = [\"d\", \"in\", \"abs\"]\nsymlink = [\"out\"]\n";
        let settings = Settings::parse(toml).unwrap();
        let done = set_up(
            &stage.project.path,
            &stage.tree.path,
            &stage.project.path.join("trees"),
            &settings,
            "",
            &|_| true,
            &|_| Ok(()),
        )
        .unwrap();
        assert_eq!(done.placed, [Placed::Copied("in".into())]);
        assert!(!outside.path.join("x").exists());
        let out = "it is a link that leads out of the project";
        let expected = [("abs", out), ("d/up", out), ("out", out)];
        assert_eq!(done.missing, expected.map(|(path, why)| (PathBuf::from(path), why)));
        let why = "something else is in its place in the tree";
        assert_eq!(done.left_out, [(PathBuf::from("d/x"), why)]);
    }

    #[test]
    fn a_copy_that_was_cut_off_is_made_anew() {
        let stage = Stage::new(".env*\n");
        stage.project.write(".env", "whole");
        stage.tree.write(".env.adj-partial", "who");
        stage.check("[worktree]\ncopy = [\".env\"]\n", &["copied .env"]);
        assert_eq!(stage.text(".env").as_deref(), Some("whole"));
        assert_eq!(stage.text(".env.adj-partial"), None);
    }

    #[test]
    fn more_than_the_limits_is_refused() {
        let stage = Stage::new("d\n");
        stage.project.write("d/a", "12345");
        stage.project.write("d/b", "12345");
        let with = |limit: &str| format!("[worktree]\ncopy = [\"d\"]\n[limits]\n{limit}\n");
        assert!(matches!(stage.set_up(&with("copy_bytes = 4")), Err(SetUpError::TooLarge(4))));
        assert!(matches!(stage.set_up(&with("copy_files = 1")), Err(SetUpError::TooMany(1))));
    }
}
