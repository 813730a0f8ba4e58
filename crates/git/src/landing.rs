//! Makes merges as objects, checks them out for tests, and moves main to them.
//!
//! A merge needs no checkout. Main moves by compare-and-swap. If it is checked out, git fast-forwards that
//! checkout, and refuses if a change of the user would be overwritten. Main counts as moved only after it was read back
//! and is the merge.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::at_work::AtWork;
use super::command::Output;
use super::identity::{Agent, By};
use super::inspect::Entry;
use super::names::{MERGES, check_part, check_path, tree_name};
use super::references::{self, Change, Expected, Reference};
use super::tree::commit_tree;
use machines::names::TaskId;

use super::{GitError, Oid, Repository, lock, locked, without_filters};

/// How often moving main begins again when the user switches branches meanwhile.
const MOVES_MAX: usize = 3;
/// The largest file of main that is read for its content.
const FILE_BYTES_MAX: usize = 16 << 20;
/// How many files in the way are named.
const FILES_NAMED_MAX: usize = 50;

/// A file to be changed on top of a merge.
pub struct Edit {
    pub path: String,
    /// What becomes of what the merge has there. `None` leaves it as it is.
    pub change: Rewrite,
    /// What the branch's own version is merged as, where a part of it is decided by a rule and not by a merge.
    pub merged_as: Option<Settle>,
}

type Rewrite = Box<dyn Fn(Option<&[u8]>) -> Option<Vec<u8>> + Send + Sync>;
/// One version of a file with a part of it as another version has it: `(from, to)`. `None` leaves `to` as it is.
pub type Settle = Box<dyn Fn(&[u8], &[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// What of a revert is decided by a rule and not by a merge.
#[derive(Default)]
pub struct ByRule<'a> {
    /// A file that stays as main has it.
    pub kept: Option<&'a str>,
    /// A file of which a part is as it was before, whatever stands around it now.
    pub settled: Option<(&'a str, &'a Settle)>,
}

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// `unedited` is the tree as git merges it, before the landing's own edits of tickets and boxes.
    Clean { commit: Oid, tree: Oid, unedited: Oid },
    /// No file is named where the two histories have nothing in common.
    /// `dropped` are commits that the branch was made on and main no longer has: what they brought may be what conflicts.
    Conflict { files: Vec<String>, dropped: Vec<String> },
    /// Main has the tip already.
    Nothing,
}

/// What came of moving main.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Main is the merge, or has it.
    Moved,
    /// Main was not where it was expected.
    ByOther { now: Oid },
    /// The user's checkout is not to be touched as it is. `why` is a clause for people, `command` clears the way.
    /// `at` is that checkout.
    InTheWay { why: String, files: Vec<String>, command: String, at: PathBuf },
}

impl Repository {
    /// The merge of main and the tip as a commit in `land.git`, with the edits on top. `at`, in seconds since the epoch,
    /// is the commit's time: the same merge asked for twice has the same id.
    pub fn merge(
        &self,
        main: &Oid,
        tip: &Oid,
        message: &str,
        edits: &[Edit],
        at: i64,
    ) -> Result<Merged, GitError> {
        self.with_sound_land(|| self.land_as(main, tip, message, edits, at, None))
    }

    /// The same changes as one commit on main, by this agent and committed by the person. Main has them already where
    /// nothing would change.
    pub fn squash(
        &self,
        main: &Oid,
        tip: &Oid,
        message: &str,
        edits: &[Edit],
        at: i64,
        agent: &Agent,
    ) -> Result<Merged, GitError> {
        self.with_sound_land(|| self.land_as(main, tip, message, edits, at, Some(agent)))
    }

    fn land_as(
        &self,
        main: &Oid,
        tip: &Oid,
        message: &str,
        edits: &[Edit],
        at: i64,
        squashed: Option<&Agent>,
    ) -> Result<Merged, GitError> {
        let carried = self.carried(tip, main)?;
        let base = carried.as_ref().map(|carried| &carried.base);
        let settled = self.settled(main, base, tip, edits, at)?;
        let mut tree = match self.merged_tree(main, base, settled.as_ref().unwrap_or(tip))? {
            Ok(tree) => tree,
            Err(files) => {
                let dropped = carried.map(|carried| carried.named()).unwrap_or_default();
                if !dropped.is_empty() {
                    self.note(format!(
                        "main no longer has {}, on which {} is based: without it the work conflicts with main",
                        dropped.join(", "),
                        tip.short()
                    ));
                }
                return Ok(Merged::Conflict { files, dropped });
            }
        };
        // A squashed tip is never in main itself; what it changed is.
        let need_not_be_in_main = squashed.is_some() || carried.is_some();
        // Where only such a part was changed, what the rule makes of it is still to come.
        if settled.is_none()
            && tree == self.known_tree_of(main)?
            && (need_not_be_in_main || self.is_ancestor(tip, main)?)
        {
            return Ok(Merged::Nothing);
        }
        let tip = match &carried {
            Some(carried) => &self.onto_main(carried, &tree, main, tip, at)?,
            None => tip,
        };
        let unedited = tree.clone();
        if !edits.is_empty() {
            tree = self.edited(&tree, edits)?;
        }
        let both = [main.clone(), tip.clone()];
        let (parents, by) = match squashed {
            Some(agent) => (&both[..1], By::Agent(agent)),
            None => (&both[..], By::Person),
        };
        let unsigned = self.commit(&tree, parents, message, at, by)?;
        let commit =
            self.signed(unsigned, |call| commit_tree(by.name(self, call), &tree, parents, message, at))?;
        *locked(&self.inner.newest_merge) = Some((commit.clone(), tree.clone()));
        Ok(Merged::Clean { commit, tree, unedited })
    }

    /// The files in which the tip conflicts with main; `None`: it merges. No commit is made.
    pub fn conflicts(&self, main: &Oid, tip: &Oid, edits: &[Edit]) -> Result<Option<Vec<String>>, GitError> {
        self.with_sound_land(|| {
            let carried = self.carried(tip, main)?;
            let base = carried.as_ref().map(|carried| &carried.base);
            let settled = self.settled(main, base, tip, edits, 0)?;
            Ok(self.merged_tree(main, base, settled.as_ref().unwrap_or(tip))?.err())
        })
    }

    /// Whether a commit is in the history of another.
    pub fn contains(&self, tip: &Oid, commit: &Oid) -> Result<bool, GitError> {
        self.is_ancestor(commit, tip)
    }

    /// The tip as it is merged: without what it changed in parts of files that a rule decides. `None`: as it is. The commit is
    /// for the merge alone, and in no history.
    fn settled(
        &self,
        main: &Oid,
        base: Option<&Oid>,
        tip: &Oid,
        edits: &[Edit],
        at: i64,
    ) -> Result<Option<Oid>, GitError> {
        let mut files = Vec::new();
        for edit in edits {
            let Some(settle) = &edit.merged_as else { continue };
            let base = match base {
                Some(base) => base.clone(),
                None => self.plain_merge_base(tip, main)?,
            };
            files.push((edit.path.as_str(), settle, base));
        }
        let files: Vec<(&str, &Settle, &Oid)> =
            files.iter().map(|(path, settle, base)| (*path, *settle, base)).collect();
        self.with_settled(tip, &files, at)
    }

    /// A commit with parts of its files as other commits have them, on top of it. `None`: nothing differs.
    fn with_settled(
        &self,
        commit: &Oid,
        files: &[(&str, &Settle, &Oid)],
        at: i64,
    ) -> Result<Option<Oid>, GitError> {
        let mut entries = Vec::new();
        for (path, settle, from) in files {
            let (Some(was), Some(is)) = (self.file_in(from, path)?, self.file_in(commit, path)?) else {
                continue;
            };
            let Some(content) = settle(&was, &is) else { continue };
            let blob = self.write_blob(&content)?;
            let entry = self.entry(commit, path)?.map(|entry| Entry { oid: blob, ..entry });
            entries.push((path.as_bytes().to_vec(), entry));
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let tree = self.with_entries(&self.tree_of(commit)?, entries)?;
        self.commit(&tree, std::slice::from_ref(commit), "What a rule decides", at, By::Person).map(Some)
    }

    /// Main with the changes that lead from `base` to `other`, as a tree; or the files in which they conflict. Without a
    /// base it is where the two histories part.
    pub(super) fn merged_tree(
        &self,
        main: &Oid,
        base: Option<&Oid>,
        other: &Oid,
    ) -> Result<Result<Oid, Vec<String>>, GitError> {
        let base = base.map(|base| format!("--merge-base={base}"));
        let output = self
            .land("merging")
            // How files are merged is for main to say, where `land.git` has no checkout to look into (since git 2.43).
            .set("attr.tree", main.as_str())
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"])
            .args(base)
            .args([main.as_str(), other.as_str()])
            .run()?;
        let mut fields =
            output.stdout.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
        let tree = fields.next().as_deref().and_then(Oid::new);
        match (output.status.code(), tree) {
            (Some(0), Some(tree)) => Ok(Ok(tree)),
            (Some(1), Some(_)) => {
                let mut files: Vec<String> = fields.take_while(|file| !file.is_empty()).collect();
                files.dedup();
                Ok(Err(files))
            }
            _ if output.stderr.contains("unrelated histories") => Ok(Err(Vec::new())),
            _ => Err(output.failed("merging", self.land_dir())),
        }
    }

    /// A commit on main that takes back what one of its commits brought: against the first parent, where it is a merge. It
    /// becomes the tip of the task, under its branch.
    pub fn revert(
        &self,
        task: &TaskId,
        branch: &str,
        landed: &Oid,
        &ByRule { kept, settled }: &ByRule<'_>,
        message: &str,
        at: i64,
    ) -> Result<Merged, GitError> {
        let main = self.main_tip()?;
        let before = self.land("looking for what was before").args(["rev-parse", "--verify", "--quiet"]);
        let before = before.arg(format!("{landed}^1")).oid()?;
        let parts: Vec<(&str, &Settle, &Oid)> =
            settled.into_iter().map(|(path, settle)| (path, settle, &before)).collect();
        let without = self.with_settled(landed, &parts, at)?;
        let mut tree = match self.merged_tree(&main, Some(without.as_ref().unwrap_or(landed)), &before)? {
            Ok(tree) => tree,
            Err(files) => return Ok(Merged::Conflict { files, dropped: Vec::new() }),
        };
        if let Some((path, settle)) = settled {
            let was = self.file_in(&before, path)?.unwrap_or_default();
            let edit = |merged: Option<&[u8]>| settle(&was, merged?);
            if let Some(content) = edit(self.file_in(&tree, path)?.as_deref()) {
                let blob = self.write_blob(&content)?;
                let entry = self.entry(&tree, path)?.map(|entry| Entry { oid: blob, ..entry });
                tree = self.with_entries(&tree, vec![(path.as_bytes().to_vec(), entry)])?;
            }
        }
        if let Some(path) = kept {
            check_path(path)?;
            let entry = self.entry(&main, path)?;
            tree = self.with_entries(&tree, vec![(path.as_bytes().to_vec(), entry)])?;
        }
        if tree == self.tree_of(&main)? {
            return Ok(Merged::Nothing);
        }
        let parents = [main];
        let unsigned = self.commit(&tree, &parents, message, at, By::Person)?;
        let commit = self.signed(unsigned, |call| commit_tree(call, &tree, &parents, message, at))?;
        self.publish(task, branch, &commit)?;
        Ok(Merged::Clean { commit, unedited: tree.clone(), tree })
    }

    /// Whether a commit has more than one parent.
    pub fn is_merge(&self, commit: &Oid) -> Result<bool, GitError> {
        let parents = self.land("looking at a commit").args(["rev-list", "--parents", "--max-count=1"]);
        Ok(parents.args([commit.as_str(), "--"]).line()?.split(' ').count() > 2)
    }

    /// As `tree_of`, without asking git for the merge that was made last.
    fn known_tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        if let Some((known, tree)) = &*locked(&self.inner.newest_merge)
            && known == commit
        {
            return Ok(tree.clone());
        }
        let tree = self.tree_of(commit)?;
        *locked(&self.inner.newest_merge) = Some((commit.clone(), tree.clone()));
        Ok(tree)
    }

    pub(super) fn edited(&self, tree: &Oid, edits: &[Edit]) -> Result<Oid, GitError> {
        let mut entries = Vec::new();
        for edit in edits {
            check_path(&edit.path)?;
            let merged = self.file_in(tree, &edit.path)?;
            let Some(content) = (edit.change)(merged.as_deref()) else { continue };
            let blob = self.write_blob(&content)?;
            let mode = match self.entry(tree, &edit.path)? {
                Some(entry) if entry.mode == "100755" => entry.mode,
                _ => "100644".to_owned(),
            };
            entries.push((edit.path.clone().into_bytes(), Some(Entry { mode, oid: blob })));
        }
        self.with_entries(tree, entries)
    }

    pub(super) fn write_blob(&self, content: &[u8]) -> Result<Oid, GitError> {
        self.land("writing a file").args(["hash-object", "-w", "--stdin"]).input(content.to_vec()).oid()
    }

    /// A checkout of the commit for its tests: exactly its files, and what git ignores, so that a build goes on where the
    /// one before it ended. Files that did not change keep their time. It has a git directory of its own, so that a test
    /// that calls git does not come upon the user's.
    pub fn test_tree(&self, commit: &Oid, name: &str) -> Result<PathBuf, GitError> {
        check_part("landing", name)?;
        let label = format!(".landing-{name}");
        let turn = self.turn(&label);
        let _turn = locked(&turn);
        let folder = self.test_folder(name);
        self.settle_files(commit, &folder, &label)?;
        let git_dir = folder.join(".git");
        self.make_git_dir(&git_dir, &git_dir, commit.as_str(), &[], None)?;
        let index = self.index(&label);
        fs::copy(&index, git_dir.join("index")).map_err(GitError::io("making a folder for tests", &index))?;
        Ok(folder)
    }

    /// The folder has exactly the files of the commit, and what git ignores. It has no git directory: whatever ran there
    /// before may have written to it.
    pub(super) fn settle_files(&self, commit: &Oid, folder: &Path, label: &str) -> Result<(), GitError> {
        let is_folder = folder.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_folder || self.clean_test_tree(commit, folder, label).is_err() {
            self.with_sound_land(|| {
                super::trash::delete(folder)?;
                fs::create_dir_all(folder).map_err(GitError::io("making a folder for tests", folder))?;
                self.check_out(commit, folder, label)
            })?;
        }
        let git_dir = folder.join(".git");
        if git_dir.symlink_metadata().is_ok() {
            super::trash::delete(&git_dir)?;
        }
        Ok(())
    }

    /// Whether the task's tree has ignored files of a kind that the folder of `test_tree` has none of: they may be why its
    /// tests pass. Kinds are told by name, such as `target` or `__pycache__`.
    pub fn ignored_beside_main(&self, tree: &str, folder: &str) -> Result<bool, GitError> {
        let name = tree_name(tree)?;
        let of_tree = self.ignored_names(&self.inner.places.trees.join(name), name)?;
        let label = format!(".landing-{folder}");
        let there = self.test_folder(folder);
        if of_tree.is_empty() || !there.exists() {
            return Ok(!of_tree.is_empty());
        }
        Ok(!of_tree.is_subset(&self.ignored_names(&there, &label)?))
    }

    fn ignored_names(&self, folder: &Path, label: &str) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let call = self.land_with_tree("listing ignored files", folder, &self.index(label));
        let listed = call.args(["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"]).ok()?;
        let last = |path: &[u8]| {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec()
        };
        Ok(listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(last).collect())
    }

    /// Where `test_tree` puts the files.
    pub fn test_folder(&self, name: &str) -> PathBuf {
        self.inner.places.trees.join(name)
    }

    fn clean_test_tree(&self, commit: &Oid, folder: &Path, label: &str) -> Result<(), GitError> {
        let index = self.index(label);
        let lock = PathBuf::from(format!("{}.lock", index.display()));
        if lock.exists() && lock::holder(&lock, folder).is_none() {
            let _ = fs::remove_file(&lock);
        }
        let call = |doing| self.land_with_tree(doing, folder, &index);
        call("resetting a folder for tests").args(["read-tree", "--reset", "-u", commit.as_str()]).ok()?;
        // Twice: what the tests wrote may have been a `.gitignore`, and what that one hid is no cache of the project's.
        for _ in 0..2 {
            call("cleaning a folder for tests").args(["clean", "-ffdq"]).ok()?;
        }
        Ok(())
    }

    /// A commit that is written down somewhere stays reachable in `land.git` under this name.
    pub fn keep(&self, name: &str, oid: &Oid) -> Result<(), GitError> {
        check_part("reference", name)?;
        self.set_in_land(&format!("{MERGES}{name}"), oid)
    }

    /// Main in the user's repository goes from `old` to `merge`, and to nothing else. Asked again after it was done,
    /// the answer is `Moved`.
    pub fn move_main(&self, merge: &Oid, old: &Oid) -> Result<Moved, GitError> {
        let places = &self.inner.places;
        self.recover_work()?;
        self.look_at_main();
        let mut given = false;
        for _ in 0..MOVES_MAX {
            let main = self
                .user_reference(&self.main_reference())?
                .ok_or_else(|| GitError::NoMain { main: places.main.clone(), at: places.root.clone() })?;
            if main.oid == *merge {
                self.main_is(merge)?;
                return Ok(Moved::Moved);
            }
            if main.oid != *old {
                self.with_sound_land(|| self.know_main(&main.oid))?;
                let landed = self.is_ancestor(merge, &main.oid)?;
                return Ok(if landed { Moved::Moved } else { Moved::ByOther { now: main.oid } });
            }
            if !given {
                self.ensure_land()?;
                let give = || self.give(std::slice::from_ref(merge), std::slice::from_ref(old));
                if let Err(error) = self.with_sound_land(give) {
                    // It was in a `land.git` that is no more: the same merge is made and tested again.
                    let is_gone = !self.missing_in_land(std::slice::from_ref(merge))?.is_empty();
                    return if is_gone { Ok(Moved::ByOther { now: main.oid }) } else { Err(error) };
                }
                given = true;
            }
            let Some(checkout) = &main.checked_out else {
                if let Some(checkout) = self.rebase_of_main() {
                    // Git would refuse to end a rebase whose branch has moved meanwhile.
                    let why = format!("a rebase of {} is under way in {}", places.main, checkout.display());
                    return Ok(in_the_way(why, Vec::new(), &checkout, "rebase --continue"));
                }
                let reference = self.main_reference();
                let change = Change { name: &reference, old: Expected::This(old), new: Some(merge) };
                if self.change_users("moving main", "adjutant: landed", &[change])? {
                    self.main_is(merge)?;
                    return Ok(Moved::Moved);
                }
                continue;
            };
            if let Some(in_the_way) = self.fast_forward(checkout, merge, old)? {
                return Ok(in_the_way);
            }
        }
        // The last attempt may have been the one that moved it.
        let now = self.main_tip()?;
        Ok(if now == *merge { Moved::Moved } else { Moved::ByOther { now } })
    }

    /// The checkout in which the user is rebasing main: it is on no branch until that is done.
    fn rebase_of_main(&self) -> Option<PathBuf> {
        let main = self.main_reference();
        let rebases = |git_dir: &Path| {
            ["rebase-merge", "rebase-apply"].iter().any(|state| {
                fs::read_to_string(git_dir.join(state).join("head-name"))
                    .is_ok_and(|name| name.trim_end() == main)
            })
        };
        if rebases(&self.inner.git_dir) {
            return Some(self.inner.places.root.clone());
        }
        let linked = fs::read_dir(self.inner.git_dir.join("worktrees")).into_iter().flatten().flatten();
        let git_dir = linked.map(|entry| entry.path()).find(|git_dir| rebases(git_dir))?;
        let link = fs::read_to_string(git_dir.join("gitdir")).ok()?;
        Path::new(link.trim_end()).parent().map(Path::to_owned)
    }

    /// Whether the user's main has this commit.
    pub fn main_contains(&self, oid: &Oid) -> Result<bool, GitError> {
        let main = self.main_tip()?;
        if main == *oid {
            return Ok(true);
        }
        Ok(self.missing_in_land(std::slice::from_ref(oid))?.is_empty() && self.is_ancestor(oid, &main)?)
    }

    /// A file of main; `None` if it has none at that path.
    pub fn file_on_main(&self, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        self.file_in(&self.main_tip()?, path)
    }

    /// The files that one commit in `land.git` has and another has not.
    pub fn files_added(&self, from: &Oid, to: &Oid) -> Result<Vec<String>, GitError> {
        let call = self
            .land("listing the files that a merge adds")
            .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"])
            .args([from.as_str(), to.as_str(), "--"]);
        let listed = String::from_utf8_lossy(&call.ok()?).into_owned();
        Ok(listed.split_terminator('\0').map(str::to_owned).collect())
    }

    /// A file of a commit in `land.git`; `None` if it has none at that path, or a link or a folder.
    pub fn file_in(&self, commit: &Oid, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        match self.entry(commit, path)? {
            Some(Entry { mode, oid: blob }) if mode.starts_with("100") => {
                let call = self.land("reading a file of a commit").args(["cat-file", "blob", blob.as_str()]);
                call.output_max(FILE_BYTES_MAX).ok().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Whether the user's checkout holds this file exactly as main does, staged changes included. No for a bare
    /// repository: there is no copy that the user could be at work on, and none that could be written either.
    pub fn checkout_copy_unchanged(&self, path: &str) -> Result<bool, GitError> {
        check_path(path)?;
        let main = self.main_tip()?;
        let Some(Entry { mode, oid: blob }) = self.entry(&main, path)? else { return Ok(false) };
        let root = &self.inner.places.root;
        let file = root.join(path);
        let is_file = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
        if self.inner.bare || !is_file || !mode.starts_with("100") {
            return Ok(false);
        }
        let content = fs::read(&file).map_err(GitError::io("reading a file", &file))?;
        let call = without_filters(self.user("comparing a file"), &self.filters_now()?);
        let call = call.args(["hash-object", "--stdin", &format!("--path={path}")]);
        if call.input(content).oid()? != blob {
            return Ok(false);
        }
        let staged = self.user("comparing a file").args(["ls-files", "-s", "-z", "--", path]).ok()?;
        let staged = String::from_utf8_lossy(&staged).into_owned();
        Ok(staged.split(' ').nth(1) == Some(blob.as_str()) && staged.matches('\0').count() == 1)
    }

    /// Main stands at a merge of ours, so nothing of it needs to be brought.
    fn main_is(&self, merge: &Oid) -> Result<(), GitError> {
        *locked(&self.inner.main_in_land) = Some(merge.clone());
        self.watched(merge)
    }

    /// Moves a checkout that has main checked out. `None` says that something was tried and main must be read again.
    fn fast_forward(&self, checkout: &Path, merge: &Oid, old: &Oid) -> Result<Option<Moved>, GitError> {
        let main = &self.inner.places.main;
        if checkout.starts_with(&self.inner.places.trees) {
            // An agent's worktree has taken main. It is not ours to change under it.
            let why = format!("{main} is checked out in the agent's {}", checkout.display());
            return Ok(Some(in_the_way(why, Vec::new(), checkout, "checkout --detach")));
        }
        if !checkout.is_dir() {
            // On a disk that is away, or deleted by hand: only the user knows.
            let why = format!("{main} is checked out in {}, which does not exist", checkout.display());
            return Ok(Some(in_the_way(why, Vec::new(), &self.inner.places.root, "worktree prune")));
        }
        let filters = self.filters_now()?;
        if let Some(files) = self.filtered(checkout, old, merge, &filters)? {
            // Their content comes from a program in the user's settings, which we do not run.
            let why = format!("your own git filters have to write {}", files.join(", "));
            return Ok(Some(in_the_way(why, files, checkout, &format!("merge --ff-only {merge}"))));
        }
        #[cfg(test)]
        if let Some(hook) = locked(&self.inner.before_merge).take() {
            hook();
        }
        let action = format!("adjutant {}", merge.short());
        self.sync_objects(&self.inner.git_dir.join("objects"))?;
        let _still = self.still();
        let work = self.begin_move(checkout, old, merge)?;
        let ended = without_filters(self.checkout("moving main in a checkout", checkout), &filters)
            .env("GIT_REFLOG_ACTION", &action)
            .set("core.logAllRefUpdates", "true")
            .args(["merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures"])
            .args(["--no-squash", "--no-stat", "--no-log", "--quiet", merge.as_str()])
            .long()
            .once()
            .run();
        let output = match ended {
            Ok(output) if !output.was_killed() => output,
            // Killed, or out of time: the checkout is put right, and the caller begins again.
            ended => {
                work.leave();
                self.recover_work()?;
                return ended.map(|_| None);
            }
        };
        if !output.status.success() {
            return self.not_moved(checkout, old, work, output);
        }
        self.sync_checkout(checkout, old, merge)?;
        drop(work);
        let main = self.user_reference(&self.main_reference())?;
        // Without a history to read it from, it came from where it was a moment ago.
        let came_from = self.came_from(checkout, &self.main_reference(), &action)?;
        if main.as_ref().is_some_and(|main| main.oid == *merge)
            && came_from.is_none_or(|before| before == *old)
        {
            return Ok(None);
        }
        self.put_branch_back(checkout, merge, &action)?;
        Ok(None)
    }

    /// Git did not move the checkout. It says no before it touches a file, or it stopped in the middle, as on a full disk: then
    /// what it wrote is taken back, or the next try would take it for the user's own changes.
    fn not_moved(
        &self,
        checkout: &Path,
        old: &Oid,
        work: AtWork,
        output: Output,
    ) -> Result<Option<Moved>, GitError> {
        let main = self.user_reference(&self.main_reference())?;
        if main.is_none_or(|main| main.oid != *old) {
            // It was moved while we tried: the caller reads it again.
            return Ok(None);
        }
        if let Some(answer) = complaint(&output.stderr, checkout) {
            return Ok(Some(answer));
        }
        work.leave();
        let failed = output.failed("moving main in a checkout", checkout.to_owned());
        // Where that fails too, the mark stays, and the next try begins with it.
        let _ = self.recover_work();
        Err(failed)
    }

    /// What a reference was before the last move, if that was ours. The line of that move says it; the one before it may
    /// have been damaged by a power cut long ago.
    fn came_from(&self, checkout: &Path, reference: &str, action: &str) -> Result<Option<Oid>, GitError> {
        let git_dir = match reference {
            "HEAD" => self.git_dir_of_checkout(checkout),
            _ => self.inner.git_dir.clone(),
        };
        let log = git_dir.join("logs").join(reference);
        let history = match fs::read(&log) {
            Ok(history) => history,
            // Kept in another way: nothing is known, so nothing is put back.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(GitError::Io { doing: "reading a reference's history", at: log, source });
            }
        };
        let newest = history.strip_suffix(b"\n").unwrap_or(&history).rsplit(|byte| *byte == b'\n').next();
        let newest = String::from_utf8_lossy(newest.unwrap_or_default()).into_owned();
        // `<old> <new> name <mail> time zone`, a tab, and why.
        let (what, why) = newest.split_once('\t').unwrap_or_default();
        let was_ours = why.starts_with(action);
        Ok(what.split(' ').next().and_then(Oid::new).filter(|_| was_ours))
    }

    /// The user switched branches between our look and git's: another branch, or a detached `HEAD`, was moved to the
    /// merge, or main from somewhere else than it should have been. It is put back to where it was, its files too.
    fn put_branch_back(&self, checkout: &Path, merge: &Oid, action: &str) -> Result<(), GitError> {
        let doing = "putting a branch back";
        let on = self.checkout(doing, checkout).args(["symbolic-ref", "--quiet", "HEAD"]).line().ok();
        let candidates: Vec<Reference> = references::read(self.user(doing), &["refs/heads/"])?
            .into_iter()
            .filter(|reference| reference.oid == *merge)
            .collect();
        for reference in
            candidates.iter().map(|found| found.name.as_str()).chain(on.is_none().then_some("HEAD"))
        {
            let Some(before) = self.came_from(checkout, reference, action)? else { continue };
            let change = Change { name: reference, old: Expected::This(merge), new: Some(&before) };
            if references::change(
                self.checkout(doing, checkout),
                &self.zero(),
                "adjutant: put back",
                &[change],
            )? {
                // Between two commits, local changes to other files stay; git refuses if one is in the way.
                without_filters(self.checkout(doing, checkout), &self.filters_now()?)
                    .args(["read-tree", "-m", "-u", merge.as_str(), before.as_str()])
                    .long()
                    .ok()?;
            }
        }
        Ok(())
    }

    /// The files between two commits that a filter of the user's would have to write.
    fn filtered(
        &self,
        checkout: &Path,
        old: &Oid,
        new: &Oid,
        filters: &[String],
    ) -> Result<Option<Vec<String>>, GitError> {
        if filters.is_empty() {
            return Ok(None);
        }
        let changed = self
            .land("listing what was changed")
            .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d"])
            .args([old.as_str(), new.as_str(), "--"])
            .ok()?;
        let asked = self
            .checkout("looking for filters", checkout)
            .args(["check-attr", "-z", "--stdin", &format!("--source={new}"), "filter"])
            .input(changed.clone())
            .run()?;
        // Before 2.40 attributes can only be asked of the checkout, which knows those that there were.
        let asked = if asked.status.success() {
            asked.stdout
        } else {
            let call = self.checkout("looking for filters", checkout).args([
                "check-attr",
                "-z",
                "--stdin",
                "filter",
            ]);
            call.input(changed).ok()?
        };
        let text = String::from_utf8_lossy(&asked).into_owned();
        let fields: Vec<&str> = text.split('\0').collect();
        let files: Vec<String> = fields
            .chunks_exact(3)
            .filter(|file| filters.iter().any(|filter| filter == file[2]))
            .map(|file| file[0].to_owned())
            .take(FILES_NAMED_MAX)
            .collect();
        Ok((!files.is_empty()).then_some(files))
    }
}

fn in_the_way(why: String, files: Vec<String>, at: &Path, command: &str) -> Moved {
    let command = format!("git -C {} {command}", shell(&at.display().to_string()));
    Moved::InTheWay { why, files, command, at: at.to_owned() }
}

/// What git says is in the way, and what clears it. `None` if git said something else.
fn complaint(said: &str, checkout: &Path) -> Option<Moved> {
    let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if said.contains("index.lock") && said.contains("File exists") {
        let lock = ".git/index.lock".to_owned();
        let why = format!("another git is at work in your checkout, or was killed and left {lock}");
        return Some(in_the_way(why, vec![lock], checkout, "status"));
    }
    if says(&["not concluded your", "unmerged files", "needs merge"]) {
        let why = "a merge of your own is under way in your checkout".to_owned();
        return Some(in_the_way(why, Vec::new(), checkout, "status"));
    }
    if !says(&["would be overwritten", "would lose untracked files", "not uptodate", "would be removed"]) {
        return None;
    }
    let files: Vec<String> = said
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .map(str::to_owned)
        .take(FILES_NAMED_MAX)
        .collect();
    let named: String = files.iter().map(|file| format!(" {}", shell(file))).collect();
    let why = format!("your checkout has local changes in {}", files.join(", "));
    Some(in_the_way(why, files, checkout, &format!("stash push --include-untracked --{named}")))
}

/// A word for a shell that a person types into.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
