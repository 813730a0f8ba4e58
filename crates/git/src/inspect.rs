//! The changes of a task's work, for the gate and for people.

use std::collections::{BTreeMap, BTreeSet};

use machines::names::TaskId;

use super::directories::{OBJECT_NAMES, is_deflated, is_hex};
use super::identity::By;
use super::names::{check_branch, check_path, tree_name};
use super::salvage::DIFF_BYTES_MAX;
use super::{GitError, Oid, Repository, locked, now};
use documents::tickets;

/// Which part of a diff, and how much of it at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffWish {
    /// Only the changed files, with the number of changed lines.
    pub stat: bool,
    /// A line for each changed file: the lines added, the lines removed, and its name, with tabs between them.
    pub numbers: bool,
    /// Only these files and folders; none stands for all of them.
    pub paths: Vec<String>,
    pub bytes_max: usize,
}

impl Default for DiffWish {
    fn default() -> DiffWish {
        DiffWish { stat: false, numbers: false, paths: Vec::new(), bytes_max: DIFF_BYTES_MAX }
    }
}

/// A diff as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    pub text: String,
    /// The limit that the diff is longer than, in bytes: then the text is only its summary.
    pub cut: Option<usize>,
}

/// Commits of a branch that are listed.
const COMMITS_MAX: u32 = 100;
/// A diff in a line for each file.
const STAT: [&str; 1] = ["--stat=100"];
const NUMBERS: [&str; 1] = ["--numstat"];
/// The largest file that is searched for conflict markers.
const MARKED_FILE_BYTES_MAX: u64 = 1 << 20;
/// How much is searched for conflict markers in all.
const MARKED_BYTES_MAX: u64 = 64 << 20;
/// How many files that are named like git's objects are looked into.
const OBJECTS_LOOKED_AT_MAX: usize = 20;

/// What a branch changes relative to where it left main.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// There is nothing in it that main has not.
    pub empty: bool,
    pub changed: Vec<String>,
    /// Files with conflict markers that were not there before, and the line of the first.
    pub conflict_markers: Vec<(String, usize)>,
    /// Tickets of main whose keys were changed, or that were taken away.
    pub tickets_changed: Vec<String>,
    pub touches_config: bool,
    /// The file that decides which of the person's files trees get.
    pub touches_include: bool,
    /// Repositories inside this one: they cannot be landed.
    pub submodules: Vec<String>,
    /// Git directories that were committed as files.
    pub git_directories: Vec<String>,
}

/// An entry of a tree object.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub mode: String,
    pub oid: Oid,
}

/// An entry to put at a path, or `None` to take out what is there. Git's paths need not be text.
pub(super) type Put = (Vec<u8>, Option<Entry>);

/// One changed file, as `git diff-tree` has it.
pub(super) struct Changed {
    pub path: Vec<u8>,
    pub old: Option<Entry>,
    pub new: Option<Entry>,
}

impl Changed {
    /// For people: what is no text in it is replaced.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    fn is_submodule(&self) -> bool {
        self.new.as_ref().is_some_and(|entry| entry.mode == "160000")
    }

    /// At this path or below it. A link in a folder's place is no less in it than its files are.
    fn is_in(&self, folder: &str) -> bool {
        let rest = self.path.strip_prefix(folder.trim_end_matches('/').as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }
}

/// A ticket that was changed, and the content that it should have; `None` where that is all that main has.
type PutBack<'a> = (&'a Changed, Option<Vec<u8>>);

impl Repository {
    /// What the tip changes relative to its merge base with main. `tickets` is the folder of tickets in the repository.
    pub fn inspect(&self, tip: &Oid, main: &Oid, tickets: Option<&str>) -> Result<Inspection, GitError> {
        self.with_sound_land(|| self.try_to_inspect(tip, main, tickets))
    }

    fn try_to_inspect(&self, tip: &Oid, main: &Oid, tickets: Option<&str>) -> Result<Inspection, GitError> {
        let base = self.merge_base(tip, main)?;
        let changed = self.changed(&base, tip)?;
        let paths = |wanted: &dyn Fn(&Changed) -> bool| -> Vec<String> {
            changed.iter().filter(|file| wanted(file)).map(Changed::shown).collect()
        };
        let tickets_changed = self.tickets_as_they_were(&changed, tickets)?;
        Ok(Inspection {
            empty: changed.is_empty(),
            conflict_markers: self.conflict_markers(&changed)?,
            tickets_changed: tickets_changed.iter().map(|(file, _)| file.shown()).collect(),
            touches_config: changed.iter().any(|file| file.is_in(super::names::SETTINGS_FILE)),
            touches_include: changed.iter().any(|file| file.is_in(super::names::INCLUDE_FILE)),
            submodules: paths(&Changed::is_submodule),
            git_directories: self.git_directories(&changed)?,
            changed: paths(&|_| true),
        })
    }

    /// A commit on top of the tip in which the keys of main's tickets are as they were where the branch left main. The
    /// task's tree sees it, in its files too.
    pub fn put_back(
        &self,
        task: &TaskId,
        tree: &str,
        branch: &str,
        main: &Oid,
        tickets: Option<&str>,
        message: &str,
    ) -> Result<Oid, GitError> {
        let name = tree_name(tree)?;
        check_branch(branch)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        let tip = self.bring_tip(task, name, branch)?;
        let base = self.merge_base(&tip, main)?;
        let changed = self.changed(&base, &tip)?;
        let mut puts: Vec<Put> = Vec::new();
        for (file, content) in self.tickets_as_they_were(&changed, tickets)? {
            let old = file.old.clone();
            let entry = match (content, old) {
                (Some(content), Some(old)) => Some(Entry { mode: old.mode, oid: self.write_blob(&content)? }),
                (_, old) => old,
            };
            puts.push((file.path.clone(), entry));
        }
        if puts.is_empty() {
            return Ok(tip);
        }
        let rewritten = self.with_entries(&self.tree_of(&tip)?, puts)?;
        let commit = self.commit(&rewritten, std::slice::from_ref(&tip), message, now(), By::Person)?;
        let index = self.index(name);
        let files = self.inner.places.trees.join(name);
        // Git itself refuses if the agent's files are no longer as in the tip.
        self.files(name, &tip, false)?;
        self.land_with_tree("putting files back", &files, &index)
            .args(["read-tree", "-m", "-u", tip.as_str(), commit.as_str()])
            .ok()?;
        self.publish(task, branch, &commit)?;
        self.settle(task, name, &commit)?;
        Ok(commit)
    }

    /// The tickets whose keys are not as main has them, each with the content that it should have: its own text below
    /// main's keys, or `None` for all that main has. What main has not is no ticket of ours yet.
    fn tickets_as_they_were<'a>(
        &self,
        changed: &'a [Changed],
        tickets: Option<&str>,
    ) -> Result<Vec<PutBack<'a>>, GitError> {
        let Some(folder) = tickets else { return Ok(Vec::new()) };
        let in_folder: Vec<&Changed> = changed.iter().filter(|file| file.is_in(folder)).collect();
        let oids = |file: &&Changed| [file.old.clone(), file.new.clone()].into_iter().flatten();
        let wanted: Vec<Oid> = in_folder.iter().flat_map(oids).map(|entry| entry.oid).collect();
        let contents = self.contents(&wanted)?;
        let text = |entry: &Option<Entry>| {
            let entry = entry.as_ref().filter(|entry| entry.mode.starts_with("100"))?;
            contents.get(&entry.oid)
        };
        let mut put_back = Vec::new();
        for file in in_folder {
            let is_folder = file.path == folder.trim_end_matches('/').as_bytes();
            match (&file.old, text(&file.old), text(&file.new)) {
                // Something else in the place of the folder, or a ticket that is too large to be looked into.
                (None, ..) if is_folder => put_back.push((file, None)),
                (None, ..) => {}
                (Some(_), None, _) => put_back.push((file, None)),
                (Some(_), Some(old), _) if !tickets::has_front(old) => {}
                (Some(_), Some(_), None) => put_back.push((file, None)),
                (Some(_), Some(old), Some(new)) => match tickets::with_front_of(new, old) {
                    Ok(content) if content == *new => {}
                    Ok(content) => put_back.push((file, Some(content))),
                    Err(_) => put_back.push((file, None)),
                },
            }
        }
        Ok(put_back)
    }

    /// What the tip changes since it left main, as a diff; if it is too long, the changed files and a word about it.
    pub fn diff(&self, tip: &Oid, main: &Oid) -> Result<String, GitError> {
        let Patch { mut text, cut } = self.diff_of(tip, main, None, &DiffWish::default())?;
        if let Some(limit) = cut {
            text = format!("the diff is longer than {limit} bytes; only its summary is shown\n\n{text}");
        }
        Ok(text)
    }

    /// What the tip changes since it left main. Of what has landed, `main` is where main was before, and `landed` the commit
    /// that it moved to.
    pub fn diff_of(
        &self,
        tip: &Oid,
        main: &Oid,
        landed: Option<&Oid>,
        wish: &DiffWish,
    ) -> Result<Patch, GitError> {
        let base = match landed {
            None => self.merge_base(tip, main)?,
            Some(landed) => match self.carried_beside(tip, main, Some(landed))? {
                Some(carried) => carried.base,
                None => self.plain_merge_base(tip, main)?,
            },
        };
        self.diff_from(&base, tip, wish)
    }

    /// The same in a line for each file.
    pub fn diff_stat(&self, tip: &Oid, main: &Oid) -> Result<String, GitError> {
        Ok(self.diff_of(tip, main, None, &DiffWish { stat: true, ..DiffWish::default() })?.text)
    }

    fn diff_from(&self, base: &Oid, tip: &Oid, wish: &DiffWish) -> Result<Patch, GitError> {
        let options: &[&str] = match (wish.stat, wish.numbers) {
            (_, true) => &NUMBERS,
            (true, false) => &STAT,
            (false, false) => &[],
        };
        let asked = self
            .land("computing a diff")
            .args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"])
            .args(options)
            .args([base.as_str(), tip.as_str(), "--"])
            // No star or colon in a path stands for something else (`GIT_LITERAL_PATHSPECS`).
            .args(&wish.paths)
            .output_max(wish.bytes_max)
            .ok();
        match asked {
            Ok(output) => Ok(Patch { text: String::from_utf8_lossy(&output).into_owned(), cut: None }),
            Err(GitError::TooMuch { limit, .. }) if !wish.stat => {
                let stat = DiffWish { stat: true, bytes_max: DIFF_BYTES_MAX, ..wish.clone() };
                Ok(Patch { cut: Some(limit), ..self.diff_from(base, tip, &stat)? })
            }
            Err(error) => Err(error),
        }
    }

    /// The commits of a branch that main does not have and never had, oldest first, each with its first line.
    pub fn commits_of(&self, tip: &Oid, main: &Oid) -> Result<Vec<(Oid, String)>, GitError> {
        let base = self.carried(tip, main)?.map(|carried| format!("^{}", carried.base));
        let mut range = vec![tip.to_string(), format!("^{main}")];
        range.extend(base);
        range.push("--".to_owned());
        let limit = format!("--max-count={COMMITS_MAX}");
        let output = self
            .land("listing commits")
            .args(["log", "--no-show-signature", "--format=%H%x00%s", "--reverse", &limit])
            .args(range)
            .ok()?;
        let text = String::from_utf8_lossy(&output).into_owned();
        let commit = |line: &str| {
            let (oid, subject) = line.split_once('\0')?;
            Some((Oid::new(oid)?, subject.to_owned()))
        };
        Ok(text.lines().filter_map(commit).collect())
    }

    /// Where the agent's own work begins: where its branch left main, behind everything that main no longer has.
    pub(super) fn merge_base(&self, tip: &Oid, main: &Oid) -> Result<Oid, GitError> {
        match self.carried(tip, main)? {
            Some(carried) => Ok(carried.base),
            None => self.plain_merge_base(tip, main),
        }
    }

    /// Where the branch left main. Histories without a common commit have main itself as their base.
    pub(super) fn plain_merge_base(&self, tip: &Oid, main: &Oid) -> Result<Oid, GitError> {
        let output =
            self.land("finding the merge base").args(["merge-base", main.as_str(), tip.as_str()]).run()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match (output.status.code(), Oid::new(&text)) {
            (Some(0), Some(base)) => Ok(base),
            (Some(1), _) => Ok(main.clone()),
            _ => Err(output.failed("finding the merge base", self.land_dir())),
        }
    }

    pub(super) fn changed(&self, base: &Oid, tip: &Oid) -> Result<Vec<Changed>, GitError> {
        let output = self
            .land("listing what was changed")
            .args([
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-renames",
                "--no-abbrev",
                base.as_str(),
                tip.as_str(),
                "--",
            ])
            .ok()?;
        let mut fields = output.split(|byte| *byte == 0);
        let entry = |mode: &str, oid: &str| Oid::new(oid).map(|oid| Entry { mode: mode.to_owned(), oid });
        let mut changed = Vec::new();
        // `:100644 100755 <old> <new> M` and the path, each ended by a NUL.
        while let (Some(what), Some(path)) = (fields.next(), fields.next()) {
            let what = String::from_utf8_lossy(what).into_owned();
            let parts: Vec<&str> = what.trim_start_matches(':').split(' ').collect();
            let [old_mode, mode, old, new, _] = parts[..] else { continue };
            changed.push(Changed { path: path.to_owned(), old: entry(old_mode, old), new: entry(mode, new) });
        }
        Ok(changed)
    }

    /// The paths that differ between two trees.
    pub(super) fn changed_paths(&self, one: &Oid, other: &Oid) -> Result<BTreeSet<Vec<u8>>, GitError> {
        Ok(self.changed(one, other)?.into_iter().map(|file| file.path).collect())
    }

    /// The tree with these paths as another has them.
    pub(super) fn with_entries_of(
        &self,
        tree: &Oid,
        other: &Oid,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<Oid, GitError> {
        if paths.is_empty() {
            return Ok(tree.clone());
        }
        let changed = self.changed(other, tree)?.into_iter().filter(|file| paths.contains(&file.path));
        self.with_entries(tree, changed.map(|file| (file.path, file.old)).collect())
    }

    /// The folders in which a git directory was put among the project's files, or what is left of one.
    fn git_directories(&self, changed: &[Changed]) -> Result<Vec<String>, GitError> {
        let added: BTreeSet<&[u8]> =
            changed.iter().filter(|file| file.old.is_none()).map(|file| file.path.as_slice()).collect();
        let heads = added.iter().filter_map(|path| path.strip_suffix(b"/HEAD"));
        let has = |folder: &[u8], name: &str| {
            let begins = [folder, b"/", name.as_bytes()].concat();
            added.range(begins.as_slice()..).next().is_some_and(|path| path.starts_with(&begins))
        };
        let is_one = |folder: &&[u8]| has(folder, "config") && has(folder, "objects/");
        let mut found: BTreeSet<String> =
            heads.filter(is_one).map(|folder| String::from_utf8_lossy(folder).into_owned()).collect();
        let objects: Vec<&Changed> = changed
            .iter()
            .filter(|file| file.old.is_none() && is_named_as_object(&file.path))
            .take(OBJECTS_LOOKED_AT_MAX)
            .collect();
        let wanted: Vec<Oid> =
            objects.iter().filter_map(|file| Some(file.new.as_ref()?.oid.clone())).collect();
        let contents = self.contents(&wanted)?;
        for file in objects {
            let content = file.new.as_ref().and_then(|entry| contents.get(&entry.oid));
            if content.is_some_and(|content| is_deflated(content)) {
                let path = file.shown();
                let mut parts: Vec<&str> = path.split('/').collect();
                parts.truncate(parts.len().saturating_sub(2));
                found.insert(parts.join("/"));
            }
        }
        Ok(found.into_iter().filter(|folder| !folder.is_empty()).collect())
    }

    /// Markers are looked for in the files themselves: what an agent says about its files in `.gitattributes` could
    /// hide them from a diff.
    fn conflict_markers(&self, changed: &[Changed]) -> Result<Vec<(String, usize)>, GitError> {
        let files = || changed.iter().filter(|file| !file.is_submodule());
        let oids = |file: &Changed| [file.new.clone(), file.old.clone()].into_iter().flatten();
        let wanted: Vec<Oid> = files().flat_map(oids).map(|entry| entry.oid).collect();
        let contents = self.contents(&wanted)?;
        let text = |entry: &Option<Entry>| entry.as_ref().and_then(|entry| contents.get(&entry.oid));
        let mut found = Vec::new();
        for file in files() {
            let Some(new) = text(&file.new) else { continue };
            let Some(line) = first_marker(new) else { continue };
            let before = text(&file.old).map_or(0, |old| markers(old));
            if markers(new) > before {
                found.push((file.shown(), line));
            }
        }
        Ok(found)
    }

    /// The contents of these objects, as far as they are not too large.
    pub(super) fn contents(&self, wanted: &[Oid]) -> Result<BTreeMap<Oid, Vec<u8>>, GitError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let list = |oids: &[Oid]| oids.iter().map(|oid| format!("{oid}\n")).collect::<String>();
        let sizes = self
            .land("measuring files")
            .args(["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"])
            .input(list(wanted))
            .ok()?;
        let mut total = 0;
        let mut small = Vec::new();
        for line in String::from_utf8_lossy(&sizes).lines() {
            let parts: Vec<&str> = line.split(' ').collect();
            let [oid, "blob", size] = parts[..] else { continue };
            let (Some(oid), Ok(size)) = (Oid::new(oid), size.parse::<u64>()) else { continue };
            if size <= MARKED_FILE_BYTES_MAX && total + size <= MARKED_BYTES_MAX {
                total += size;
                small.push(oid);
            }
        }
        small.sort();
        small.dedup();
        let output = self.land("reading files").args(["cat-file", "--batch"]).input(list(&small)).ok()?;
        Ok(read_batch(&output))
    }

    /// A file of a commit: its mode and object.
    pub(super) fn entry(&self, commit: &Oid, path: &str) -> Result<Option<Entry>, GitError> {
        check_path(path)?;
        let output = self.land("finding a file").args(["ls-tree", "-z", commit.as_str(), "--", path]).ok()?;
        let line = String::from_utf8_lossy(&output).into_owned();
        let Some((what, _)) = line.split_once('\t') else { return Ok(None) };
        let parts: Vec<&str> = what.split(' ').collect();
        let [mode, _, oid] = parts[..] else { return Ok(None) };
        Ok(Oid::new(oid).map(|oid| Entry { mode: mode.to_owned(), oid }))
    }

    /// A tree with some entries put in, or taken out where there is `None`. Only the folders on the way are written
    /// anew, whatever else the tree holds.
    pub(super) fn with_entries(&self, tree: &Oid, entries: Vec<Put>) -> Result<Oid, GitError> {
        match self.rewrite(Some(tree), entries)? {
            Some(tree) => Ok(tree),
            None => self.make_tree(Vec::new()),
        }
    }

    fn rewrite(&self, tree: Option<&Oid>, entries: Vec<Put>) -> Result<Option<Oid>, GitError> {
        let mut lines: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
        if let Some(tree) = tree {
            let listed = self.land("reading a tree").args(["ls-tree", "-z", tree.as_str()]).ok()?;
            for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
                let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
                let what = String::from_utf8_lossy(&line[..tab]).into_owned();
                let parts: Vec<&str> = what.split(' ').collect();
                if let [mode, _, oid] = parts[..]
                    && let Some(oid) = Oid::new(oid)
                {
                    lines.insert(line[tab + 1..].to_owned(), Entry { mode: mode.to_owned(), oid });
                }
            }
        }
        let mut below: BTreeMap<Vec<u8>, Vec<Put>> = BTreeMap::new();
        for (path, entry) in entries {
            match (path.iter().position(|byte| *byte == b'/'), entry) {
                (Some(slash), entry) => {
                    let (folder, rest) = (path[..slash].to_owned(), path[slash + 1..].to_owned());
                    below.entry(folder).or_default().push((rest, entry));
                }
                (None, Some(entry)) => drop(lines.insert(path, entry)),
                (None, None) => drop(lines.remove(&path)),
            }
        }
        for (folder, entries) in below {
            let existing =
                lines.get(&folder).filter(|entry| entry.mode == "040000").map(|entry| entry.oid.clone());
            match self.rewrite(existing.as_ref(), entries)? {
                Some(oid) => lines.insert(folder, Entry { mode: "040000".to_owned(), oid }),
                // Git has no empty folders.
                None => lines.remove(&folder),
            };
        }
        if lines.is_empty() { Ok(None) } else { self.make_tree(lines.into_iter().collect()).map(Some) }
    }

    fn make_tree(&self, lines: Vec<(Vec<u8>, Entry)>) -> Result<Oid, GitError> {
        let mut input = Vec::new();
        for (name, Entry { mode, oid }) in lines {
            let kind = match mode.as_str() {
                "040000" => "tree",
                "160000" => "commit",
                _ => "blob",
            };
            input.extend_from_slice(format!("{mode} {kind} {oid}\t").as_bytes());
            input.extend_from_slice(&name);
            input.push(0);
        }
        let tree = self.land("writing a tree").args(["mktree", "-z", "--missing"]).input(input).oid()?;
        // This command of git's reads no setting, so it does not sync what it wrote.
        let (folder, file) = tree.as_str().split_at(2);
        let object = self.land_objects().join(folder).join(file);
        base::files::sync(&self.land_objects(), &[object], 1)
            .map_err(GitError::io("bringing a tree to the disk", &self.land_objects()))?;
        Ok(tree)
    }
}

/// What `git cat-file --batch` printed: `<oid> blob <size>`, a newline, the content, a newline.
pub(super) fn read_batch(output: &[u8]) -> BTreeMap<Oid, Vec<u8>> {
    let mut contents = BTreeMap::new();
    let mut rest = output;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = String::from_utf8_lossy(&rest[..end]).into_owned();
        let parts: Vec<&str> = header.split(' ').collect();
        let [oid, _, size] = parts[..] else { break };
        let (Some(oid), Ok(size)) = (Oid::new(oid), size.parse::<usize>()) else { break };
        let Some(content) = rest.get(end + 1..end + 1 + size) else { break };
        contents.insert(oid, content.to_vec());
        rest = rest.get(end + size + 2..).unwrap_or_default();
    }
    contents
}

/// Whether a path ends as those of git's objects do. Other programs name files so, too.
fn is_named_as_object(path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mut parts = path.rsplit(|byte| *byte == b'/').map(std::ffi::OsStr::from_bytes);
    parts.next().is_some_and(|file| is_hex(file, OBJECT_NAMES))
        && parts.next().is_some_and(|folder| is_hex(folder, &[2]))
}

fn is_marker(line: &[u8]) -> bool {
    line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> ")
}

/// How many markers a text holds; binary content has none.
fn markers(content: &[u8]) -> usize {
    if content.contains(&0) {
        0
    } else {
        content.split(|byte| *byte == b'\n').filter(|line| is_marker(line)).count()
    }
}

/// The line of the first marker, if both kinds are there: one kind alone is a drawing.
fn first_marker(content: &[u8]) -> Option<usize> {
    if content.contains(&0) {
        return None;
    }
    let lines = || content.split(|byte| *byte == b'\n');
    let opens = lines().position(|line| line.starts_with(b"<<<<<<< "))?;
    lines().any(|line| line.starts_with(b">>>>>>> ")).then_some(opens + 1)
}
