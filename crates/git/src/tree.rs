//! A task's tree: creates it, inspects it, and copies its commits and uncommitted files.
//!
//! Each tree has a record in the state folder, written before the tree is created. A folder without a record is not ours
//! and is neither used nor removed. Files are compared with a private index beside the record, because the agent could
//! have changed its own index to ignore some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use machines::names::TaskId;
use serde::{Deserialize, Serialize};

use super::identity::{Agent, By, quoted};
use super::inside::{Head, Inside};
use super::names::{KEPT, check_branch, task_reference, tree_name};
use super::publish::Taken;
use super::references::{Change, Expected};
use super::{
    GitError, Isolation, Oid, Repository, lock, locked, now, read_or_empty, remove_folder, write_whole,
};

/// How many files that git cannot read are left out before the attempt is given up.
/// Before the name of what is being made beside its place.
pub(super) const MAKING: &str = ".making-";
const UNREADABLE_FILES_MAX: usize = 50;
/// How many files of repositories inside a tree are saved; the rest is named.
const NESTED_FILES_MAX: usize = 20_000;
/// How often a worktree is made whose git is killed.
const WORKTREE_TRIES_MAX: usize = 3;
/// The locks that a killed git leaves in a git directory.
const LOCKS: &[&str] = &["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"];

/// What there is of a task's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeFound {
    Missing,
    /// Every file is as in the tip's commit.
    Clean {
        tip: Oid,
    },
    /// There is something that no commit holds.
    Dirty {
        tip: Oid,
    },
}

/// What was left over in a tree and is now in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftovers {
    /// The tip after it, with or without a commit of ours on top.
    pub tip: Oid,
    /// The commit that was made, if there was something to commit.
    pub commit: Option<Oid>,
    /// What was left out: repositories inside the tree, and what could not be read.
    pub left_out: Vec<String>,
}

/// The record of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub task: String,
    pub branch: String,
    /// Device and number of the directory: one that someone put in its place has another number. The device is not compared:
    /// a disk may have another one whenever it is mounted.
    pub directory: (u64, u64),
    /// When the directory was made: its number may have been given to another since.
    #[serde(default)]
    pub born: Option<u64>,
    /// The name of its folder in the user's `.git/worktrees`.
    pub worktree: Option<String>,
    /// The commit that it was made on. Not every version wrote it.
    #[serde(default)]
    pub begun: Option<String>,
    /// Whether it is whole. One that is not was never given to anybody.
    pub ready: bool,
}

impl Record {
    /// Whether the directory is the one that was made for the task.
    fn is_of(&self, found: &Inside) -> std::io::Result<bool> {
        let is_another = self.born.is_some() && found.born().is_some() && self.born != found.born();
        Ok(self.directory.1 == found.identity()?.1 && !is_another)
    }
}

/// What a tree's git directory names, before any of it is believed.
pub(super) struct Named {
    pub head: Option<Oid>,
    pub branch: Option<Oid>,
    pub objects: PathBuf,
}

/// The files of a tree as a tree object.
pub(super) struct Files {
    pub tree: Oid,
    pub left_out: Vec<String>,
}

impl Repository {
    /// The task's tree is there, on its branch, and this is its tip. It is made if it is not there: on the task's saved
    /// tip, or on main for a new task. It appears whole or not at all.
    pub fn prepare_tree(&self, task: &TaskId, tree: &str, branch: &str) -> Result<Oid, GitError> {
        let name = tree_name(tree)?;
        check_branch(branch)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        self.ensure_land()?;
        let main = self.main_tip()?;
        self.shown(&main)?;
        self.look_at_main();
        if self.open_tree(task, name)?.is_some() {
            return self.take_up_again(task, name, branch, &main);
        }
        let saved = self.land_reference(&task_reference(task))?;
        let tip = saved.unwrap_or_else(|| main.clone());
        self.with_sound_land(|| match self.inner.places.isolation {
            Isolation::Clone => self.make_clone(task, name, branch, &tip, &main),
            Isolation::Worktree => self.make_worktree(task, name, branch, &tip),
        })?;
        self.begun_on(task, &tip)?;
        Ok(tip)
    }

    /// Whether the task's tree is there. Something else in its place is an error.
    pub fn stands(&self, task: &TaskId, tree: &str) -> Result<bool, GitError> {
        Ok(self.open_tree(task, tree_name(tree)?)?.is_some())
    }

    /// What there is of the task's tree, files compared one by one with its tip.
    pub fn look(&self, task: &TaskId, tree: &str, branch: &str) -> Result<TreeFound, GitError> {
        let name = tree_name(tree)?;
        check_branch(branch)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        if self.open_tree(task, name)?.is_none() {
            return Ok(TreeFound::Missing);
        }
        let tip = self.bring_tip(task, name, branch)?;
        let files = self.with_sound_land(|| self.files(name, &tip, true))?;
        let clean = files.tree == self.tree_of(&tip)?;
        Ok(if clean { TreeFound::Clean { tip } } else { TreeFound::Dirty { tip } })
    }

    /// All that stands in the task's tree, committed or not, as one name: equal where no file has changed.
    pub fn state_of_tree(&self, task: &TaskId, tree: &str, tip: &Oid) -> Result<Oid, GitError> {
        let name = tree_name(tree)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        self.require_tree(task, name)?;
        Ok(self.with_sound_land(|| self.files(name, tip, true))?.tree)
    }

    /// The commits of the task's tree are in `land.git`, and published in the user's repository.
    ///
    /// The tip is what `HEAD` names, unless that is only an older commit of the task's own branch: then it is the
    /// branch. An agent that works on another branch or on none has its work found, and one that went back to look at
    /// something has lost nothing. What the other of the two holds is kept by a reference of its own.
    pub fn take_tip(&self, task: &TaskId, tree: &str, branch: &str) -> Result<Taken, GitError> {
        let name = tree_name(tree)?;
        check_branch(branch)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        let record = self.require_tree(task, name)?;
        let tip = self.bring_tip(task, name, branch)?;
        self.look_at_main();
        self.publish(task, &record.branch, &tip)
    }

    /// Commits whatever the tree holds beyond its tip, and publishes it. The agent's clone sees the commit. Repositories
    /// that the agent made inside its tree are left out and named: they are no part of this one.
    pub fn commit_leftovers(
        &self,
        task: &TaskId,
        tree: &str,
        branch: &str,
        message: &str,
        agent: &Agent,
    ) -> Result<Leftovers, GitError> {
        let name = tree_name(tree)?;
        check_branch(branch)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        self.require_tree(task, name)?;
        let tip = self.bring_tip(task, name, branch)?;
        let files = self.files(name, &tip, false)?;
        let tree = self.without_test_files(name, &tip, &files.tree)?;
        if tree == self.tree_of(&tip)? {
            self.publish(task, branch, &tip)?;
            return Ok(Leftovers { tip, commit: None, left_out: files.left_out });
        }
        if tree != files.tree {
            // What is shown to the agent's tree stands at the commit, and at nothing beyond it.
            let folder = self.inner.places.trees.join(name);
            let call = self.land_with_tree("reading the commit", &folder, &self.index(name));
            call.args(["read-tree", "-m", tree.as_str()]).ok()?;
        }
        let message = agent.message(self, message);
        let commit = self.commit(&tree, &[tip], &message, now(), By::Agent(agent))?;
        self.publish(task, branch, &commit)?;
        self.settle(task, name, &commit)?;
        Ok(Leftovers { tip: commit.clone(), commit: Some(commit), left_out: files.left_out })
    }

    /// Every tree finds its repository again, wherever either of them was moved to since.
    pub fn repair_trees(&self) -> Result<(), GitError> {
        self.forget_half_made_trees()?;
        for (name, record) in self.records() {
            let Ok(Some(tree)) = Inside::open(&self.inner.places.trees, &name) else { continue };
            if !record.is_of(&tree).unwrap_or(false) {
                continue;
            }
            match &record.worktree {
                None => self.lean_on_land_again(&name)?,
                Some(id) => self.link_worktree_again(&tree, id)?,
            }
        }
        Ok(())
    }

    /// What was being made when the process ended, and is made anew where it is still wanted. No agent was ever in it.
    fn forget_half_made_trees(&self) -> Result<(), GitError> {
        for entry in fs::read_dir(&self.inner.places.trees).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(MAKING) {
                remove_folder(&entry.path())?;
            }
        }
        Ok(())
    }

    /// What a clone's objects lean on is where the state folder is now.
    fn lean_on_land_again(&self, name: &str) -> Result<(), GitError> {
        // One without a git directory is given one when it is taken up.
        let Ok(git_dir) = self.git_dir_of(name) else { return Ok(()) };
        let Ok(Some(objects)) = git_dir.enter("objects") else { return Ok(()) };
        let now = alternates(objects.path(), &self.land_objects());
        if objects.read("info/alternates", now.len()).ok().flatten().as_deref() == Some(&now) {
            return Ok(());
        }
        let failed = GitError::io("showing a tree its repository", objects.path());
        objects.replace("info/alternates", &now).map_err(failed)
    }

    /// A worktree and the repository name each other by their paths.
    fn link_worktree_again(&self, tree: &Inside, id: &str) -> Result<(), GitError> {
        let doing = "showing a worktree its repository";
        let Ok(Some(git_dir)) = Inside::open(&self.inner.git_dir.join("worktrees"), id) else {
            return Ok(());
        };
        let line = |before: &str, path: &Path| {
            let mut line = before.as_bytes().to_vec();
            line.extend_from_slice(path.as_os_str().as_encoded_bytes());
            line.push(b'\n');
            line
        };
        for (folder, file, now) in [
            (&git_dir, "gitdir", line("", &tree.path().join(".git"))),
            (tree, ".git", line("gitdir: ", git_dir.path())),
        ] {
            if folder.read(file, now.len()).ok().flatten().as_deref() != Some(&now) {
                folder.replace(file, &now).map_err(GitError::io(doing, folder.path()))?;
            }
        }
        Ok(())
    }

    /// What the tree holds beyond the commit that was tested there is what its tests wrote: as long as it stays as it is,
    /// it is nobody's work, and no leftover.
    pub fn note_test_files(&self, task: &TaskId, tree: &str, tested: &Oid) -> Result<(), GitError> {
        let name = tree_name(tree)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        self.require_tree(task, name)?;
        let files = self.files(name, tested, false)?;
        let note = self.test_files(name);
        if files.tree != self.tree_of(tested)? {
            return write_whole(&note, format!("{tested} {}", files.tree).as_bytes());
        }
        match fs::remove_file(&note) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(GitError::Io { doing: "forgetting what tests wrote", at: note, source: e })
            }
            _ => Ok(()),
        }
    }

    /// The files of a tree as they would be, had its tests written nothing.
    fn without_test_files(&self, name: &str, tip: &Oid, found: &Oid) -> Result<Oid, GitError> {
        let note = read_or_empty(&self.test_files(name))?;
        let Some((tested, after)) = note.split_once(' ') else { return Ok(found.clone()) };
        let (Some(tested), Some(after)) = (Oid::new(tested), Oid::new(after.trim())) else {
            return Ok(found.clone());
        };
        let mut theirs: BTreeSet<Vec<u8>> = self.changed_paths(&tested, &after)?;
        for since in self.changed_paths(&after, found)? {
            theirs.remove(&since);
        }
        self.with_entries_of(found, tip, &theirs)
    }

    fn test_files(&self, name: &str) -> PathBuf {
        self.inner.places.state.join("index").join(format!("{name}.tests"))
    }

    /// Makes the agent's git directory see a commit that was made outside it: branch, `HEAD` and index, by replacing
    /// files. The private index must stand at that commit.
    pub(super) fn settle(&self, task: &TaskId, name: &str, commit: &Oid) -> Result<(), GitError> {
        let Some(record) = self.open_tree(task, name)? else { return Ok(()) };
        let doing = "showing a commit to the agent's tree";
        let index = fs::read(self.index(name)).map_err(GitError::io(doing, &self.index(name)))?;
        let git_dir = match &record.worktree {
            None => self.git_dir_of(name)?,
            Some(id) => self.worktree_dir(name, id)?,
        };
        let failed = |e| GitError::Io { doing, at: git_dir.path().to_owned(), source: e };
        // What nobody holds would be gone before the next step too; a git that is still at work there is not overtaken.
        lock::clear(&git_dir, &self.inner.places.trees.join(name), LOCKS)?;
        // The index first: a crash after it leaves the commit's content staged, where the other way round it would
        // leave the opposite staged, for the agent to commit.
        git_dir.replace("index", &index).map_err(failed)?;
        let reference = format!("refs/heads/{}", record.branch);
        if record.worktree.is_some() {
            self.give(std::slice::from_ref(commit), &[])?;
            let change = Change { name: &reference, old: Expected::Anything, new: Some(commit) };
            self.change_users(doing, "adjutant: leftovers", &[change])?;
        } else {
            git_dir.replace(&reference, format!("{commit}\n").as_bytes()).map_err(failed)?;
        }
        let head = format!("ref: {reference}\n");
        if git_dir.read("HEAD", head.len() + 1).ok().flatten().as_deref() != Some(head.as_bytes()) {
            git_dir.replace("HEAD", head.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// The record of a tree that is there and is this task's. `None` if there is nothing at its path.
    pub(super) fn open_tree(&self, task: &TaskId, name: &str) -> Result<Option<Record>, GitError> {
        let path = self.inner.places.trees.join(name);
        let not_ours = || GitError::NotOurs { path: path.clone(), task: task.to_string() };
        let found = match Inside::open(&self.inner.places.trees, name) {
            Ok(None) => return Ok(None),
            Ok(Some(found)) => found,
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => return Err(not_ours()),
            Err(source) => return Err(GitError::Io { doing: "opening the task's tree", at: path, source }),
        };
        let record = self.record(name)?.ok_or_else(not_ours)?;
        let is_it = record.is_of(&found).map_err(GitError::io("opening the task's tree", &path))?;
        if record.task != task.as_str() || !is_it {
            return Err(not_ours());
        }
        Ok(record.ready.then_some(record))
    }

    fn require_tree(&self, task: &TaskId, name: &str) -> Result<Record, GitError> {
        self.open_tree(task, name)?.ok_or_else(|| GitError::Unreadable {
            tree: self.inner.places.trees.join(name),
            why: "the tree is gone".to_owned(),
        })
    }

    pub(super) fn record_path(&self, name: &str) -> PathBuf {
        self.inner.places.state.join("trees").join(format!("{name}.json"))
    }

    pub(super) fn record(&self, name: &str) -> Result<Option<Record>, GitError> {
        let path = self.record_path(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(GitError::Io { doing: "reading a tree's record", at: path, source }),
        }
    }

    /// Every tree's record, with the tree's name.
    pub(super) fn records(&self) -> Vec<(String, Record)> {
        let entries = fs::read_dir(self.inner.places.state.join("trees")).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned);
        entries.filter_map(name).filter_map(|name| Some((name.clone(), self.record(&name).ok()??))).collect()
    }

    fn write_record(&self, name: &str, record: &Record) -> Result<(), GitError> {
        let text = serde_json::to_vec(record).unwrap_or_default();
        write_whole(&self.record_path(name), &text)
    }

    pub(super) fn index(&self, name: &str) -> PathBuf {
        self.inner.places.state.join("index").join(name)
    }

    /// The git directory of a clone, opened without following anything.
    pub(super) fn git_dir_of(&self, name: &str) -> Result<Inside, GitError> {
        let tree = self.inner.places.trees.join(name);
        let unreadable = |why: String| GitError::Unreadable { tree: tree.clone(), why };
        let opened = Inside::open(&self.inner.places.trees, name).and_then(|found| match found {
            Some(found) => found.enter(".git"),
            None => Ok(None),
        });
        opened.map_err(|e| unreadable(e.to_string()))?.ok_or_else(|| unreadable("it has no .git".to_owned()))
    }

    pub(super) fn worktree_dir(&self, name: &str, id: &str) -> Result<Inside, GitError> {
        let unreadable = |why: String| GitError::Unreadable { tree: self.inner.places.trees.join(name), why };
        Inside::open(&self.inner.git_dir.join("worktrees"), id)
            .map_err(|e| unreadable(e.to_string()))?
            .ok_or_else(|| unreadable("the repository knows no such worktree".to_owned()))
    }

    /// The git directory that worktrees share with the user.
    pub(super) fn users_git_dir(&self) -> Result<Option<Inside>, GitError> {
        let at = &self.inner.git_dir;
        let (Some(parent), Some(name)) = (at.parent(), at.file_name().and_then(|name| name.to_str())) else {
            return Ok(None);
        };
        Inside::open(parent, name).map_err(GitError::io("opening the user's git directory", at))
    }

    /// What the tree's git directory names as its work.
    pub(super) fn named(&self, name: &str, branch: &str) -> Result<Named, GitError> {
        let tree = self.inner.places.trees.join(name);
        let unreadable = |why: String| GitError::Unreadable { tree: tree.clone(), why };
        if let Some(record @ Record { worktree: Some(_), .. }) = self.record(name)? {
            self.take_branch_back(name, &record)?;
            let git_dir = self.worktree_dir(name, record.worktree.as_deref().unwrap_or_default())?;
            let own = self.own_head(name, &record, &git_dir);
            let branch = &record.branch;
            let call = || self.user("reading the task's tip").env("GIT_DIR", git_dir.path());
            let oid = |name: &str| call().args(["rev-parse", "--verify", "--quiet", name]).oid().ok();
            let reference = format!("refs/heads/{branch}");
            return Ok(Named {
                head: oid("HEAD^{commit}").or(own),
                branch: oid(&format!("{reference}^{{commit}}")),
                objects: self.inner.git_dir.join("objects"),
            });
        }
        let git_dir = self.git_dir_of(name)?;
        let objects = git_dir.enter("objects").map_err(|e| unreadable(e.to_string()))?;
        let objects = objects.ok_or_else(|| unreadable("it has no objects".to_owned()))?;
        let reference = format!("refs/heads/{branch}");
        // Either may be garbage; the other one is still worth something.
        let head = git_dir.head().ok().flatten();
        let head = match head {
            Some(Head::On(_, oid)) => oid,
            Some(Head::At(oid)) => Some(oid),
            None => None,
        };
        let mut at_branch = git_dir.reference(&reference).ok().flatten();
        if head.is_none() && at_branch.is_none() {
            // The branch was deleted or overwritten: its history says where it was last.
            at_branch = git_dir.history("logs/HEAD").pop();
        }
        Ok(Named { head, branch: at_branch, objects: objects.path().to_owned() })
    }

    /// Brings the tree's work into `land.git` and says which commit is its tip.
    pub(super) fn bring_tip(&self, task: &TaskId, name: &str, branch: &str) -> Result<Oid, GitError> {
        self.ensure_land()?;
        self.bring_home(task, name, branch)?;
        self.restore_git_dir(task, name, branch)?;
        match self.with_sound_land(|| self.try_to_bring_tip(task, name, branch)) {
            Err(error) if error.is_damage() || matches!(error, GitError::Unreadable { .. }) => {
                match self.record(name)? {
                    Some(record @ Record { worktree: Some(_), .. }) => {
                        self.rebuild_worktree(task, name, &record)?;
                    }
                    _ => self.rebuild_git_dir(task, name, branch)?,
                }
                self.try_to_bring_tip(task, name, branch)
            }
            other => other,
        }
    }

    fn try_to_bring_tip(&self, task: &TaskId, name: &str, branch: &str) -> Result<Oid, GitError> {
        let named = self.named(name, branch)?;
        let known = self.land_reference(&task_reference(task))?;
        let mut wants: Vec<Oid> = [&named.head, &named.branch].into_iter().flatten().cloned().collect();
        wants.dedup();
        if wants.is_empty() {
            return Err(GitError::Unreadable {
                tree: self.inner.places.trees.join(name),
                why: "neither HEAD nor the task's branch names a commit".to_owned(),
            });
        }
        if wants.iter().any(|want| Some(want) != known.as_ref()) {
            let main = locked(&self.inner.main_in_land).clone();
            let haves: Vec<Oid> = known.into_iter().chain(main).collect();
            self.bring(&named.objects, &wants, &haves)?;
        }
        let tip = match (&named.head, &named.branch) {
            (Some(head), Some(branch)) if head != branch => {
                let (tip, other) =
                    if self.is_ancestor(head, branch)? { (branch, head) } else { (head, branch) };
                if !self.is_ancestor(other, tip)? {
                    self.keep_for(task, other)?;
                }
                tip
            }
            (Some(tip), _) | (None, Some(tip)) => tip,
            (None, None) => return Err(GitError::NothingSaved { reference: task_reference(task) }),
        };
        Ok(tip.clone())
    }

    /// A commit of the task's that is on no branch stays findable.
    pub(super) fn keep_for(&self, task: &TaskId, oid: &Oid) -> Result<(), GitError> {
        self.set_in_land(&format!("{KEPT}{task}/{oid}"), oid)
    }

    pub(super) fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool, GitError> {
        self.land("comparing commits")
            .args(["merge-base", "--is-ancestor", ancestor.as_str(), of.as_str()])
            .yes()
    }

    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        self.land("reading a commit").args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).oid()
    }

    /// A commit object in `land.git`, at that time.
    pub(super) fn commit(
        &self,
        tree: &Oid,
        parents: &[Oid],
        message: &str,
        at: i64,
        by: By,
    ) -> Result<Oid, GitError> {
        let call = by.name(self, self.land("making a commit"));
        commit_tree(call, tree, parents, message, at).oid()
    }

    /// The files of a tree, tracked and untracked but not ignored, as a tree object in `land.git`. Only `nested` takes
    /// the files of repositories inside it along.
    ///
    /// Not `git add`: that runs a git in every repository inside the tree, with the settings it finds there.
    pub(super) fn files(&self, name: &str, tip: &Oid, nested: bool) -> Result<Files, GitError> {
        let tree = self.inner.places.trees.join(name);
        let index = self.index(name);
        let folder = self.inner.places.state.join("index");
        fs::create_dir_all(&folder).map_err(GitError::io("making a folder", &folder))?;
        let stale = PathBuf::from(format!("{}.lock", index.display()));
        if stale.exists() {
            if let Some(holder) = lock::holder(&stale, &tree) {
                return Err(GitError::Locked { lock: stale, holder });
            }
            fs::remove_file(&stale).map_err(GitError::io("removing a stale lock", &stale))?;
        }
        let call = |doing| self.land_with_tree(doing, &tree, &index);
        // One tree merged into the index keeps what is known of unchanged files, so that they are not read again.
        let read = call("reading the tip").args(["read-tree", "-m", tip.as_str()]).ok();
        if read.is_err() {
            let _ = fs::remove_file(&index);
            call("reading the tip").args(["read-tree", tip.as_str()]).ok()?;
        }
        let mut listing =
            call("listing files").args(["ls-files", "-z", "-t", "-c", "-o", "--exclude-standard"]);
        if let Some(file) = self.hook_excludes(name)? {
            listing = listing.arg("--exclude-from").arg(file);
        }
        let listed = listing.ok()?;
        let mut paths: Vec<Vec<u8>> = Vec::new();
        let mut untracked: Vec<Vec<u8>> = Vec::new();
        let mut beyond: Vec<Vec<u8>> = Vec::new();
        let mut left_out = Vec::new();
        let mut links = BTreeMap::new();
        for entry in listed.split(|byte| *byte == 0) {
            let [tag, b' ', path @ ..] = entry else { continue };
            if path.ends_with(b"/") {
                if nested {
                    nested_files(&tree, path, &mut untracked, &mut left_out);
                } else {
                    left_out.push(String::from_utf8_lossy(path).into_owned());
                }
            } else if is_beyond_a_link(&tree, path, &mut links) {
                beyond.push(path.to_owned());
            } else if *tag == b'?' {
                untracked.push(path.to_owned());
            } else {
                paths.push(path.to_owned());
            }
        }
        // A git directory is no part of the project, and as files it would be one whose commits nobody finds.
        let inside = git_directories_among(&tree, &untracked);
        untracked.retain(|path| !inside.iter().any(|folder| path.starts_with(folder)));
        left_out.extend(inside.iter().map(|folder| String::from_utf8_lossy(folder).into_owned()));
        // What git knows goes first: a file that has become a folder must be gone before the folder's files come.
        paths.append(&mut untracked);
        if !beyond.is_empty() {
            // Their folder is a link now: they are gone, and what the link leads to is not ours to read.
            let mut removals = Vec::new();
            for path in &beyond {
                removals.extend_from_slice(format!("0 {}\t", self.zero()).as_bytes());
                removals.extend_from_slice(path);
                removals.push(0);
            }
            call("taking files in").args(["update-index", "-z", "--index-info"]).input(removals).ok()?;
        }
        self.update_index(&call, paths, &mut left_out)?;
        let written = call("writing a tree").arg("write-tree").oid()?;
        Ok(Files { tree: written, left_out })
    }

    /// A file that git cannot read is left out and named, so that one of them does not cost all the others.
    fn update_index(
        &self,
        call: &impl Fn(&'static str) -> super::Call,
        mut paths: Vec<Vec<u8>>,
        left_out: &mut Vec<String>,
    ) -> Result<(), GitError> {
        for _ in 0..UNREADABLE_FILES_MAX {
            let mut input = Vec::new();
            for path in &paths {
                input.extend_from_slice(path);
                input.push(0);
            }
            let taken = call("taking files in")
                .args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"])
                .input(input)
                .ok();
            let error = match taken {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let named = error
                .said()
                .rsplit_once("fatal: Unable to process path ")
                .map(|(_, path)| path.as_bytes().to_vec());
            let Some(at) = named.and_then(|named| paths.iter().position(|path| *path == named)) else {
                return Err(error);
            };
            left_out.push(String::from_utf8_lossy(&paths.remove(at)).into_owned());
        }
        Err(GitError::Unreadable {
            tree: self.inner.places.trees.clone(),
            why: format!("more than {UNREADABLE_FILES_MAX} files cannot be read"),
        })
    }

    /// The tree is there: it gets the newest main to merge with, and is rid of locks that nobody holds.
    fn take_up_again(&self, task: &TaskId, name: &str, branch: &str, main: &Oid) -> Result<Oid, GitError> {
        let record = self.require_tree(task, name)?;
        self.bring_home(task, name, branch)?;
        self.restore_git_dir(task, name, branch)?;
        let git_dir = match &record.worktree {
            None => self.git_dir_of(name)?,
            Some(id) => self.worktree_dir(name, id)?,
        };
        self.unlock(name, &record)?;
        if record.worktree.is_none() {
            self.show_main(&git_dir, main)?;
        } else if git_dir.is_empty_file("index") {
            // Git writes none that is empty: a power cut has left it so, and with it whatever else was written then.
            self.rebuild_worktree(task, name, &record)?;
        }
        self.bring_tip(task, name, branch)
    }

    /// Rid of the locks that a git which was killed has left in the task's tree, and on its branch. One that somebody holds
    /// is an error.
    fn unlock(&self, name: &str, record: &Record) -> Result<(), GitError> {
        let tree = self.inner.places.trees.join(name);
        let branch_lock = format!("refs/heads/{}.lock", record.branch);
        let Some(id) = &record.worktree else {
            let git_dir = self.git_dir_of(name)?;
            lock::clear(&git_dir, &tree, LOCKS)?;
            return lock::clear(&git_dir, &tree, &[&branch_lock]);
        };
        lock::clear(&self.worktree_dir(name, id)?, &tree, LOCKS)?;
        match self.users_git_dir()? {
            // The branch is the task's, and yet the user may be at it: any git of theirs may hold it.
            Some(shared) => lock::clear(&shared, &self.inner.places.root, &[&branch_lock]),
            None => Ok(()),
        }
    }

    /// `origin/main` in an agent's clone is the main that its work will be merged with. There is no remote behind it.
    fn show_main(&self, git_dir: &Inside, main: &Oid) -> Result<(), GitError> {
        let reference = format!("refs/remotes/origin/{}", self.inner.places.main);
        git_dir
            .replace(&reference, format!("{main}\n").as_bytes())
            .map_err(GitError::io("showing main to the agent's tree", git_dir.path()))
    }

    /// What the next step of a task's agent begins with: a tree without locks that nobody holds, and main as it is now, which
    /// the tree knows as `origin/main`; and as `main`, unless the agent has moved that or stands on it. Models merge with
    /// either.
    pub fn refresh_main(&self, task: &TaskId, tree: &str) -> Result<Oid, GitError> {
        let name = tree_name(tree)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        let main = self.main_tip()?;
        self.shown(&main)?;
        let record = self.open_tree(task, name)?;
        // A step may begin in a tree in which the git of the one before was killed. A lock that is held stays.
        if let Some(record) = &record {
            let _ = self.unlock(name, record);
        }
        let is_clone = record.is_some_and(|record| record.worktree.is_none());
        let Some(git_dir) = is_clone.then(|| self.git_dir_of(name).ok()).flatten() else { return Ok(main) };
        let branch = format!("refs/heads/{}", self.inner.places.main);
        let remote = format!("refs/remotes/origin/{}", self.inner.places.main);
        let shown = git_dir.reference(&remote).ok().flatten();
        if shown.as_ref() == Some(&main) {
            return Ok(main);
        }
        let stands_on_it = matches!(git_dir.head(), Ok(Some(Head::On(on, _))) if on == branch);
        if shown.is_some() && git_dir.reference(&branch).ok().flatten() == shown && !stands_on_it {
            git_dir
                .replace(&branch, format!("{main}\n").as_bytes())
                .map_err(GitError::io("showing main to the agent's tree", git_dir.path()))?;
        }
        self.show_main(&git_dir, &main)?;
        Ok(main)
    }

    /// What main is called in a task's tree: in a worktree, `origin/main` would be what the user last fetched.
    pub fn name_of_main(&self, task: &TaskId, tree: &str) -> Result<String, GitError> {
        let record = self.open_tree(task, tree_name(tree)?)?;
        let main = &self.inner.places.main;
        let is_worktree = record.is_some_and(|record| record.worktree.is_some());
        Ok(if is_worktree { main.clone() } else { format!("origin/{main}") })
    }

    fn make_clone(
        &self,
        task: &TaskId,
        name: &str,
        branch: &str,
        tip: &Oid,
        main: &Oid,
    ) -> Result<(), GitError> {
        let trees = &self.inner.places.trees;
        let making = trees.join(format!("{MAKING}{name}"));
        remove_folder(&making)?;
        let git_dir = making.join(".git");
        let doing = "making the task's tree";
        let mut heads = vec![(branch, tip)];
        // Git cannot hold `agent` and `agent/x`, should main be called so.
        if !format!("{branch}/").starts_with(&format!("{}/", self.inner.places.main)) {
            heads.push((&self.inner.places.main, main));
        }
        let head = format!("ref: refs/heads/{branch}");
        self.make_git_dir(&git_dir, &trees.join(name).join(".git"), &head, &heads, Some(main))?;
        self.show_saved_work(task, &git_dir)?;
        self.check_out(tip, &making, name)?;
        let index = self.index(name);
        fs::copy(&index, git_dir.join("index")).map_err(GitError::io(doing, &index))?;
        // Whoever finds the record after a power cut finds the files, too: an agent would take empty ones for its task's.
        base::files::sync_below(&making).map_err(GitError::io(doing, &making))?;
        let directory = identity(&making)?;
        let record = Record {
            task: task.to_string(),
            branch: branch.to_owned(),
            directory,
            born: born(&making),
            worktree: None,
            begun: Some(tip.to_string()),
            ready: true,
        };
        self.write_record(name, &record)?;
        base::crash::point("putting a tree in place");
        fs::rename(&making, trees.join(name)).map_err(GitError::io(doing, &trees.join(name)))?;
        sync_folder(trees)
    }

    /// What was saved of the task before has its name in the new clone too.
    fn show_saved_work(&self, task: &TaskId, git_dir: &Path) -> Result<(), GitError> {
        for (name, oid) in self.saved_of(task)? {
            write_whole(&git_dir.join(name), format!("{oid}\n").as_bytes())?;
        }
        Ok(())
    }

    /// A clone whose git directory was deleted has one again, at what was last taken from it. Its files stay as they
    /// are: what they hold beyond that is left over, and is committed like everything that is.
    pub(super) fn restore_git_dir(&self, task: &TaskId, name: &str, branch: &str) -> Result<(), GitError> {
        let tree = self.inner.places.trees.join(name);
        let is_clone = self.record(name)?.is_some_and(|record| record.worktree.is_none());
        if !is_clone || tree.join(".git").symlink_metadata().is_ok() {
            return Ok(());
        }
        let main = self.main_tip()?;
        // The files are of the commit that the tree was made on; against a newer main they would look like a change.
        let known = self.land_reference(&task_reference(task))?;
        let tip = known.or(self.begun(task, name)?).unwrap_or_else(|| main.clone());
        let making = self.inner.places.trees.join(format!("{MAKING}{name}"));
        remove_folder(&making)?;
        let head = format!("ref: refs/heads/{branch}");
        self.make_git_dir(&making, &tree.join(".git"), &head, &[(branch, &tip)], Some(&main))?;
        let index = self.index(name);
        let doing = "restoring the task's git directory";
        self.land_with_tree(doing, &tree, &index).args(["read-tree", "--reset", tip.as_str()]).ok()?;
        fs::copy(&index, making.join("index")).map_err(GitError::io(doing, &index))?;
        fs::rename(&making, tree.join(".git")).map_err(GitError::io(doing, &tree))
    }

    /// A git directory of a tree's own at `git_dir`, which will stand at `place`: its objects lean on `land.git`, and
    /// it has no remote.
    pub(super) fn make_git_dir(
        &self,
        git_dir: &Path,
        place: &Path,
        head: &str,
        heads: &[(&str, &Oid)],
        main: Option<&Oid>,
    ) -> Result<(), GitError> {
        let doing = "making a git directory";
        for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            let folder = git_dir.join(folder);
            fs::create_dir_all(&folder).map_err(GitError::io(doing, &folder))?;
        }
        let write = |path: &str, content: &[u8]| {
            let path = git_dir.join(path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(GitError::io(doing, folder))?;
            }
            fs::write(&path, content).map_err(GitError::io(doing, &path))
        };
        let objects =
            self.land_objects().canonicalize().map_err(GitError::io(doing, &self.land_objects()))?;
        write("objects/info/alternates", &alternates(&place.join("objects"), &objects))?;
        write("config", self.clone_config().as_bytes())?;
        write("info/exclude", self.excludes()?.as_bytes())?;
        write("HEAD", format!("{head}\n").as_bytes())?;
        for (name, oid) in heads {
            write(&format!("refs/heads/{name}"), format!("{oid}\n").as_bytes())?;
        }
        if let Some(main) = main {
            write(
                &format!("refs/remotes/origin/{}", self.inner.places.main),
                format!("{main}\n").as_bytes(),
            )?;
        }
        Ok(())
    }

    /// Writes a commit's files into an empty folder of ours, and the private index beside it.
    pub(super) fn check_out(&self, commit: &Oid, folder: &Path, name: &str) -> Result<(), GitError> {
        let index = self.index(name);
        let indexes = self.inner.places.state.join("index");
        fs::create_dir_all(&indexes).map_err(GitError::io("making a folder", &indexes))?;
        for stale in [index.clone(), PathBuf::from(format!("{}.lock", index.display()))] {
            match fs::remove_file(&stale) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(GitError::Io { doing: "removing an old index", at: stale, source: e });
                }
                _ => {}
            }
        }
        self.land_with_tree("writing the files of a tree", folder, &index)
            .args(["read-tree", "-m", "-u", commit.as_str()])
            .ok()
            .map(drop)
    }

    fn clone_config(&self) -> String {
        let inner = &self.inner;
        let user = &inner.user;
        let sha256 = inner.object_format == "sha256";
        let mut config = format!(
            "[core]\n\trepositoryformatversion = {}\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
            u8::from(sha256)
        );
        if let Some(value) = &user.autocrlf {
            config.push_str(&format!("\tautocrlf = {}\n", quoted(value)));
        }
        if let Some(file) = &user.excludes_file {
            config.push_str(&format!("\texcludesFile = {}\n", quoted(file)));
        }
        config.push_str(&format!(
            "[user]\n\tname = {}\n\temail = {}\n",
            quoted(&user.name),
            quoted(&user.email)
        ));
        // What the agent's objects lean on is never pruned; its own objects are taken over, and need no tidying either.
        config.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n");
        config.push_str("[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n");
        config.push_str(&super::identity::include());
        if sha256 {
            config.push_str("[extensions]\n\tobjectformat = sha256\n");
        }
        config
    }

    /// A worktree of the user's repository, by choice. Git links it by its path, so it is made in place; until it is
    /// whole its record says that it holds nothing of anybody's.
    fn make_worktree(&self, task: &TaskId, name: &str, branch: &str, tip: &Oid) -> Result<(), GitError> {
        let doing = "making the task's worktree";
        let path = self.inner.places.trees.join(name);
        let branch = self.worktree_branch(task, name, branch)?;
        let reference = format!("refs/heads/{branch}");
        // What is there now, if anything, is ours and half made: `open_tree` has seen its record.
        remove_folder(&path)?;
        self.forget_worktree(&path)?;
        self.forget_half_made(name)?;
        self.forget_own_branch(name)?;
        // Beside its place at first: what stands in it without a record would be taken for somebody else's.
        let making = self.inner.places.trees.join(format!("{MAKING}{name}"));
        remove_folder(&making)?;
        fs::create_dir_all(&making).map_err(GitError::io(doing, &making))?;
        let directory = identity(&making)?;
        let (task, born) = (task.to_string(), born(&making));
        let begun = Some(tip.to_string());
        let mut record = Record { task, branch, directory, born, worktree: None, begun, ready: false };
        self.write_record(name, &record)?;
        // After the record, which says whose it is: a branch of that name that no record knows is the user's.
        if self.user_reference(&reference)?.is_none() {
            self.give(std::slice::from_ref(tip), &[])?;
            let change = Change { name: &reference, old: Expected::Nothing, new: Some(tip) };
            self.change_users(doing, "adjutant: task begun", &[change])?;
        }
        base::crash::point("putting a tree in place");
        fs::rename(&making, &path).map_err(GitError::io(doing, &path))?;
        self.add_worktree(name, &path, &record.branch)?;
        let link = fs::read_to_string(path.join(".git")).map_err(GitError::io(doing, &path))?;
        let id = link.trim_end().rsplit('/').next().unwrap_or_default().to_owned();
        super::names::check_part("worktree", &id)?;
        let tip = self.user(doing).args(["rev-parse", "--verify", &reference]).oid()?;
        self.bring(&self.inner.git_dir.join("objects"), std::slice::from_ref(&tip), &[])?;
        self.check_out(&tip, &path, name)?;
        let index = self.inner.git_dir.join("worktrees").join(&id).join("index");
        fs::copy(self.index(name), &index).map_err(GitError::io(doing, &index))?;
        let linked = self.inner.git_dir.join("worktrees");
        for folder in [&path, &linked.join(&id)] {
            base::files::sync_below(folder).map_err(GitError::io(doing, folder))?;
        }
        sync_folder(&linked)?;
        record.worktree = Some(id);
        record.ready = true;
        self.write_record(name, &record)
    }

    /// `--no-checkout` makes it in a moment; the files follow, by the same way as in a clone. Where git is killed meanwhile,
    /// what it left is taken away before it begins again.
    fn add_worktree(&self, name: &str, path: &Path, branch: &str) -> Result<(), GitError> {
        let doing = "making the task's worktree";
        let mut tries = 1;
        loop {
            let work = self.begin_worktree()?;
            let call = self.user(doing).args(["worktree", "add", "--no-checkout", "--quiet", "--"]);
            match call.arg(path).arg(branch).once().ok() {
                Err(error) if error.was_killed() && tries < WORKTREE_TRIES_MAX => {
                    work.leave();
                    self.recover_work()?;
                    self.forget_half_made(name)?;
                    // The directory itself is the one that the record knows.
                    let link = path.join(".git");
                    if link.exists() {
                        fs::remove_file(&link).map_err(GitError::io(doing, &link))?;
                    }
                    tries += 1;
                }
                other => return other.map(drop),
            }
        }
    }

    /// What the user's repository knows of a worktree that never came to be: it has this tree's name, and leads nowhere.
    fn forget_half_made(&self, name: &str) -> Result<(), GitError> {
        let at = self.inner.places.trees.join(name).join(".git");
        for entry in fs::read_dir(self.inner.git_dir.join("worktrees")).into_iter().flatten().flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            // Git numbers those whose name is taken.
            let rest = id.strip_prefix(name).filter(|rest| rest.chars().all(|c| c.is_ascii_digit()));
            let link = fs::read_to_string(entry.path().join("gitdir")).unwrap_or_default();
            let leads = !link.trim_end().is_empty() && Path::new(link.trim_end()) != at;
            if rest.is_some() && !leads {
                remove_folder(&entry.path())?;
            }
        }
        Ok(())
    }

    /// The branch for a worktree: the task's own name for it or the next one, past branches that are the user's.
    fn worktree_branch(&self, task: &TaskId, name: &str, branch: &str) -> Result<String, GitError> {
        let recorded = self.record(name)?.filter(|record| record.task == task.as_str());
        let known = self.known_tips(task)?;
        for (reference, found) in self.branches_named(&self.published_name(branch)?)? {
            let candidate = reference.trim_start_matches("refs/heads/").to_owned();
            let is_recorded = recorded.as_ref().is_some_and(|record| record.branch == candidate);
            if is_recorded || found.is_none_or(|found| known.contains(&found.oid)) {
                return Ok(candidate);
            }
        }
        Err(GitError::Exists { what: format!("branch `{branch}`, and each like it,") })
    }

    /// Removes what the user's repository knows of a worktree that is no longer at this path, of that one only.
    pub(super) fn forget_worktree(&self, path: &Path) -> Result<(), GitError> {
        let Ok(entries) = fs::read_dir(self.inner.git_dir.join("worktrees")) else { return Ok(()) };
        for entry in entries.flatten() {
            let link = fs::read_to_string(entry.path().join("gitdir")).unwrap_or_default();
            if Path::new(link.trim_end()) == path.join(".git") && !path.exists() {
                remove_folder(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The call that makes a commit object, of whoever the call says.
pub(super) fn commit_tree(
    call: super::Call,
    tree: &Oid,
    parents: &[Oid],
    message: &str,
    at: i64,
) -> super::Call {
    // With `@` in front it is never taken for anything but a number of seconds.
    let date = format!("@{at} +0000");
    let mut call = call.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date).args([
        "commit-tree",
        tree.as_str(),
        "-F",
        "-",
    ]);
    for parent in parents {
        call = call.args(["-p", parent.as_str()]);
    }
    call.input(message.as_bytes())
}

/// What stands in a folder is there after a power cut. Ext4 brings names there with the next file that is synced, and the log
/// syncs one after each effect, so no test on it fails without this; other file systems promise nothing of the kind.
pub(super) fn sync_folder(folder: &Path) -> Result<(), GitError> {
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(GitError::io("bringing a folder to the disk", folder))
}

fn identity(path: &Path) -> Result<(u64, u64), GitError> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::symlink_metadata(path).map_err(GitError::io("looking at a folder", path))?;
    Ok((found.dev(), found.ino()))
}

fn born(path: &Path) -> Option<u64> {
    base::files::born(&fs::symlink_metadata(path).ok()?)
}

/// Whether a folder on the way to this file is a link. Folders are asked once.
pub(super) fn is_beyond_a_link(tree: &Path, path: &[u8], known: &mut BTreeMap<Vec<u8>, bool>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else { return false };
    let folder = &path[..slash];
    if let Some(answer) = known.get(folder) {
        return *answer;
    }
    let here = tree.join(Path::new(std::ffi::OsStr::from_bytes(folder)));
    let is_link = fs::symlink_metadata(here).is_ok_and(|found| found.is_symlink());
    let answer = is_link || is_beyond_a_link(tree, folder, known);
    known.insert(folder.to_owned(), answer);
    answer
}

/// The folders that are git directories or what is left of one, each with its slash, by these files of a tree.
fn git_directories_among(tree: &Path, files: &[Vec<u8>]) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let at = |path: &[u8]| tree.join(Path::new(std::ffi::OsStr::from_bytes(path)));
    let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
    for path in files {
        if found.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let head = path.strip_suffix(b"HEAD").filter(|folder| folder.ends_with(b"/"));
        if let Some(folder) = head.filter(|folder| super::directories::is_git_directory(&at(folder))) {
            found.insert(folder.to_vec());
        } else if let Some(folder) =
            folder_of_object(path).filter(|_| super::directories::is_object(&at(path)))
        {
            // The folder of objects, or the git directory that it lies in.
            let above = folder.strip_suffix(b"objects/").filter(|above| !above.is_empty());
            let whole = above.filter(|above| super::directories::is_left_of_one(&at(above)));
            found.insert(whole.unwrap_or(folder).to_vec());
        }
    }
    found.into_iter().collect()
}

/// Of a path that may be one of git's objects, the folder that all objects are in, with its slash. What lies at the root of
/// a tree has the folder of the object itself: that of all objects is the tree.
fn folder_of_object(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    match path[..slash].iter().rposition(|byte| *byte == b'/') {
        Some(above) => Some(&path[..=above]),
        None => Some(&path[..=slash]),
    }
}

/// The files of a repository inside a tree, without its git directory.
fn nested_files(tree: &Path, folder: &[u8], paths: &mut Vec<Vec<u8>>, left_out: &mut Vec<String>) {
    use std::os::unix::ffi::OsStrExt;
    let mut folders = vec![folder[..folder.len() - 1].to_owned()];
    let mut taken = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(tree.join(std::ffi::OsStr::from_bytes(&folder))) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().eq_ignore_ascii_case(".git") {
                continue;
            }
            let mut path = folder.clone();
            path.push(b'/');
            path.extend_from_slice(entry.file_name().as_bytes());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() || kind.is_symlink() => {
                    taken += 1;
                    if taken > NESTED_FILES_MAX {
                        left_out.push(String::from_utf8_lossy(&folder).into_owned());
                        return;
                    }
                    paths.push(path);
                }
                _ => {}
            }
        }
    }
}

/// The file that lets one folder of objects lean on another. It says the way from one to the other, so that a project
/// can be moved as a whole.
pub(super) fn alternates(from: &Path, to: &Path) -> Vec<u8> {
    let from: Vec<_> = from.components().collect();
    let to: Vec<_> = to.components().collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut way = PathBuf::new();
    way.extend((common..from.len()).map(|_| ".."));
    way.extend(&to[common..]);
    let mut line = way.into_os_string().into_encoded_bytes();
    line.push(b'\n');
    line
}
