//! Repairs the user's repository after one of our git processes was killed, or after a power cut: stale locks and a
//! checkout that is half moved.
//!
//! Before one of our git processes changes anything there, we create a mark: a file in the state folder that this process
//! keeps locked. It is removed when git has ended normally. A mark that is not locked belongs to a process that died.
//!
//! Invariants:
//! - a lock is removed only if a mark shows that our git was running when the lock was created, the lock belongs to the
//!   same user, and no process holds it: the user's own locks are never removed;
//! - a file of a checkout is changed only if its content is that of one of the two commits, or a beginning of it: any other
//!   content is the user's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::inspect::{Changed, Entry};
use super::references::{self, Change};
use super::{GitError, Oid, Repository, lock, locked, without_filters};

/// The folder of the marks, in the state folder.
const MARKS: &str = "at-work";
/// How often a lock is looked at that somebody may hold, such as another git of ours, and how long is waited between.
const LOOKS_MAX: usize = 30;
const LOOKS_PAUSE: Duration = Duration::from_millis(100);
/// How often a change of references begins again when its git is killed.
const TRIES_MAX: usize = 3;
/// The largest file of which a part is known for what git wrote before it stopped; a part of a larger one counts as the user's.
const COMPARED_BYTES_MAX: usize = 256 << 20;
/// Up to so many files are brought to the disk one by one; more of them, all at once.
const SYNCED_ONE_BY_ONE_MAX: usize = 100;

/// A git of ours is at work in the user's repository, since then.
pub(super) struct AtWork {
    path: PathBuf,
    /// Locked as long as it is open.
    _held: File,
    since: SystemTime,
    left: bool,
}

/// A checkout that is being moved from one commit to another.
#[derive(Debug, Serialize, Deserialize)]
struct Moving {
    checkout: PathBuf,
    old: Oid,
    merge: Oid,
}

impl AtWork {
    /// What was begun is not over: the mark stays, for `Repository::recover_work`.
    pub fn leave(mut self) {
        self.left = true;
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.left {
            // One that stays is looked at once more, and finds nothing.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// How a file of a checkout looks, against the commit that it should be of and the one that it was of.
enum Looks {
    AsWanted,
    /// As the other commit has it, cut off, or not there: left by the git that was killed.
    Left,
    /// Nobody but the user has written it.
    Users,
}

impl Repository {
    /// Moves references of the user's repository, all of them or none. No: one was not where it was expected.
    pub(super) fn change_users(
        &self,
        doing: &'static str,
        why: &str,
        changes: &[Change<'_>],
    ) -> Result<bool, GitError> {
        let work = self.begin_work(None)?;
        let git_dir = &self.inner.git_dir;
        self.sync_objects(&git_dir.join("objects"))?;
        let mut tries = 1;
        loop {
            let changed = references::change(self.user(doing), &self.zero(), why, changes);
            let Err(error) = &changed else {
                sync_references(git_dir, changes.iter().map(|change| change.name))?;
                return changed;
            };
            if tries == TRIES_MAX || !(error.was_killed() || error.is_lock()) {
                return changed;
            }
            // A lock that is not ours: whoever holds it is at work.
            if !self.clear_locks(work.since, None)? && error.is_lock() {
                return changed;
            }
            tries += 1;
        }
    }

    /// The same in `land.git`, where only gits of ours work. One that is alive may hold a lock: it is waited for, and
    /// keeps the lock. The others are of gits that were killed.
    pub(super) fn change_land(
        &self,
        doing: &'static str,
        why: &str,
        changes: &[Change<'_>],
    ) -> Result<bool, GitError> {
        self.sync_objects(&self.land_objects())?;
        let (mut tries, mut looks) = (1, 0);
        loop {
            let changed = references::change(self.land(doing), &self.zero(), why, changes);
            let Err(error) = &changed else {
                sync_references(&self.land_dir(), changes.iter().map(|change| change.name))?;
                return changed;
            };
            if tries == TRIES_MAX || !(error.was_killed() || error.is_lock()) {
                return changed;
            }
            let held = lock::clear_stale_below(&self.land_dir(), references::LOCK_DEPTH)?;
            if held && error.is_lock() && looks < LOOKS_MAX {
                looks += 1;
                std::thread::sleep(LOOKS_PAUSE);
            } else {
                tries += 1;
            }
        }
    }

    /// Whether a git of ours may have left something behind, by the state folder alone.
    pub fn may_have_left(state: &Path) -> bool {
        fs::read_dir(state.join(MARKS)).is_ok_and(|mut marks| marks.next().is_some())
    }

    /// A git of ours is about to move a checkout.
    pub(super) fn begin_move(&self, checkout: &Path, old: &Oid, merge: &Oid) -> Result<AtWork, GitError> {
        let moving = Moving { checkout: checkout.to_owned(), old: old.clone(), merge: merge.clone() };
        self.begin_work(Some(&moving))
    }

    /// A git of ours is about to change something in the user's repository.
    pub(super) fn begin_worktree(&self) -> Result<AtWork, GitError> {
        self.begin_work(None)
    }

    fn begin_work(&self, moving: Option<&Moving>) -> Result<AtWork, GitError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = self.inner.places.state.join(MARKS);
        let doing = "marking that git is at work";
        fs::create_dir_all(&folder).map_err(GitError::io(doing, &folder))?;
        let (path, mut file) = loop {
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{next}", std::process::id()));
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                // Of a process that had the same number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(GitError::Io { doing, at: path, source }),
            }
        };
        let failed = |source| GitError::Io { doing, at: path.clone(), source };
        file.lock().map_err(failed)?;
        let since = file.metadata().and_then(|found| found.modified()).map_err(failed)?;
        if let Some(moving) = moving {
            let text = serde_json::to_vec(moving).map_err(|error| failed(error.into()))?;
            file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
            File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        Ok(AtWork { path, _held: file, since, left: false })
    }

    /// No checkout is moved by us as long as this is held.
    pub fn still(&self) -> MutexGuard<'_, ()> {
        locked(&self.inner.checkout_moves)
    }

    /// Puts right what gits of ours left behind whose process is gone, or that were killed.
    pub fn recover_work(&self) -> Result<(), GitError> {
        let folder = self.inner.places.state.join(MARKS);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(file) = File::open(&path) else { continue };
            if file.try_lock().is_err() {
                continue;
            }
            let failed = |source| GitError::Io { doing: "reading a mark", at: path.clone(), source };
            let since = file.metadata().and_then(|found| found.modified()).map_err(failed)?;
            let text = fs::read(&path).map_err(failed)?;
            // One that was not written whole stands for a move that had not begun.
            match serde_json::from_slice::<Moving>(&text) {
                Ok(moving) => self.mend(&moving, since)?,
                Err(_) => drop(self.clear_locks(since, None)?),
            }
            fs::remove_file(&path).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes away the locks that a git of ours has left since then. Yes: there was one.
    fn clear_locks(&self, since: SystemTime, checkout: Option<&Path>) -> Result<bool, GitError> {
        let git_dir = &self.inner.git_dir;
        let mut candidates = vec![
            git_dir.join("HEAD.lock"),
            git_dir.join("packed-refs.lock"),
            // No lock by its name, but git refuses to write over it.
            git_dir.join("packed-refs.new"),
        ];
        locks_below(&git_dir.join("refs"), references::LOCK_DEPTH, &mut candidates);
        if let Some(checkout) = checkout {
            let own = self.git_dir_of_checkout(checkout);
            candidates.extend(
                ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", "AUTO_MERGE.lock"].map(|name| own.join(name)),
            );
        }
        let at = checkout.unwrap_or(&self.inner.places.root);
        let ours_alone = git_dir.join("refs/adjutant");
        let mut cleared = false;
        for lock in candidates {
            let Ok(found) = fs::symlink_metadata(&lock) else { continue };
            let is_young = found.modified().is_ok_and(|made| made >= since) || lock.starts_with(&ours_alone);
            let is_ours = found.is_file() && found.uid() == nix::unistd::geteuid().as_raw();
            if !is_young || !is_ours {
                continue;
            }
            wait_for_holder(&lock, at)?;
            match fs::remove_file(&lock) {
                Ok(()) => cleared = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(GitError::Io { doing: "removing a stale lock", at: lock, source });
                }
            }
        }
        Ok(cleared)
    }

    /// The git directory of a checkout of the user's: of a linked one, its own folder in the repository.
    pub(super) fn git_dir_of_checkout(&self, checkout: &Path) -> PathBuf {
        let link = fs::read_to_string(checkout.join(".git")).unwrap_or_default();
        let linked = link.trim_end().strip_prefix("gitdir: ").map(|to| checkout.join(to));
        linked
            .filter(|to| to.starts_with(self.inner.git_dir.join("worktrees")))
            .unwrap_or(self.inner.git_dir.clone())
    }

    /// A checkout whose move was cut off is where main is: all of it before the move, or all of it after.
    fn mend(&self, moving: &Moving, since: SystemTime) -> Result<(), GitError> {
        let Moving { checkout, old, merge } = moving;
        self.clear_locks(since, Some(checkout))?;
        let Some(main) = self.user_reference(&self.main_reference())? else { return Ok(()) };
        if main.checked_out.as_ref() != Some(checkout) {
            return Ok(());
        }
        let is = |one: &Oid| main.oid == *one;
        // Where it is neither, the user has gone on since, and what there is is theirs.
        let (wanted, other) = match () {
            () if is(merge) => (merge, old),
            () if is(old) => (old, merge),
            () => return Ok(()),
        };
        let files = self.changed(other, wanted)?;
        let filters = self.filters_now()?;
        let call = |doing| without_filters(self.checkout(doing, checkout), &filters);
        let staged = self.staged(checkout)?;
        let entries = |file: &Changed| (entry_key(file.old.as_ref()), entry_key(file.new.as_ref()));
        let in_index = |file: &Changed| staged.get(&file.path).cloned();
        // What the user has staged is theirs, and so is the file.
        let ours: Vec<&Changed> = files
            .iter()
            .filter(|file| {
                let (before, after) = entries(file);
                let now = in_index(file);
                now == before || now == after
            })
            .collect();
        let looks = self.looks(checkout, &ours, &filters)?;
        let mut info = Vec::new();
        for file in &ours {
            if in_index(file) == entries(file).1 {
                continue;
            }
            let line = match &file.new {
                Some(Entry { mode, oid }) => format!("{mode} {oid}\t"),
                None => format!("0 {}\t", self.zero()),
            };
            info.extend_from_slice(line.as_bytes());
            info.extend_from_slice(&file.path);
            info.push(0);
        }
        let doing = "putting a checkout right";
        if !info.is_empty() {
            call(doing).args(["update-index", "-z", "--index-info"]).input(info).ok()?;
        }
        let mut written = Vec::new();
        for (file, looks) in ours.iter().zip(looks) {
            let path = checkout.join(std::ffi::OsStr::from_bytes(&file.path));
            match (looks, &file.new) {
                (Looks::AsWanted | Looks::Users, _) => {}
                (Looks::Left, None) => take_away(checkout, &path),
                (Looks::Left, Some(_)) => {
                    // An empty folder in its place was made for files that are gone by now.
                    let _ = fs::remove_dir(&path);
                    written.extend_from_slice(&file.path);
                    written.push(0);
                }
            }
        }
        if !written.is_empty() {
            call(doing)
                .args(["checkout-index", "-f", "-u", "-q", "-z", "--stdin"])
                .input(written)
                .long()
                .ok()?;
        }
        // Only what git believes to know of the files; one that the user changed is no failure.
        call(doing).args(["update-index", "-q", "--refresh"]).long().run()?;
        self.sync_checkout(checkout, old, merge)
    }

    /// What the index of a checkout has, by path.
    fn staged(&self, checkout: &Path) -> Result<BTreeMap<Vec<u8>, String>, GitError> {
        let listed =
            self.checkout("reading an index", checkout).args(["ls-files", "-s", "-z"]).long().ok()?;
        let mut staged = BTreeMap::new();
        for line in listed.split(|byte| *byte == 0) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let what = String::from_utf8_lossy(&line[..tab]).into_owned();
            // `100644 <id> 0`; a stage other than 0 is a conflict of the user's and like nothing of ours.
            staged.insert(line[tab + 1..].to_vec(), what.trim_end_matches(" 0").to_owned());
        }
        Ok(staged)
    }

    fn looks(&self, checkout: &Path, files: &[&Changed], filters: &[String]) -> Result<Vec<Looks>, GitError> {
        let sides = |file: &&Changed| [file.old.clone(), file.new.clone()].into_iter().flatten();
        let oids: Vec<Oid> = files.iter().flat_map(sides).map(|entry| entry.oid).collect();
        let contents = self.contents(&oids)?;
        let mut looks = Vec::new();
        for file in files {
            let path = checkout.join(std::ffi::OsStr::from_bytes(&file.path));
            let Ok(found) = fs::symlink_metadata(&path) else {
                looks.push(if file.new.is_some() { Looks::Left } else { Looks::AsWanted });
                continue;
            };
            if found.is_dir() {
                // Empty, it stands where a file was to be written; else its files say for themselves what they are.
                looks.push(Looks::Left);
                continue;
            }
            let content = match found.is_symlink() {
                true => fs::read_link(&path).map(|to| to.as_os_str().as_bytes().to_vec()),
                false => fs::read(&path),
            };
            let content = content.map_err(GitError::io("reading a file", &path))?;
            let hashed = match found.is_symlink() {
                true => None,
                false => Some(self.hashed(checkout, &file.path, &content, filters)?),
            };
            let is = |entry: &Option<Entry>| {
                entry.as_ref().is_some_and(|entry| {
                    let is_kind = match entry.mode.as_str() {
                        "120000" => found.is_symlink(),
                        "100755" => found.is_file() && found.permissions().mode() & 0o100 != 0,
                        _ => found.is_file() && found.permissions().mode() & 0o100 == 0,
                    };
                    let has = match &hashed {
                        Some(hashed) => *hashed == entry.oid,
                        None => contents.get(&entry.oid) == Some(&content),
                    };
                    is_kind && has
                })
            };
            let begins = |entry: &Option<Entry>| match entry.as_ref().map(|entry| &entry.oid) {
                _ if content.is_empty() => Ok(true),
                Some(oid) => match contents.get(oid) {
                    Some(whole) => Ok(whole.starts_with(&content)),
                    None => self.blob_begins_with(oid, &content),
                },
                None => Ok(false),
            };
            looks.push(match () {
                () if is(&file.new) => Looks::AsWanted,
                () if is(&file.old) || begins(&file.new)? || begins(&file.old)? => Looks::Left,
                () => Looks::Users,
            });
        }
        Ok(looks)
    }

    /// Whether a large file begins with this content. No, if it is too large to look at.
    fn blob_begins_with(&self, oid: &Oid, content: &[u8]) -> Result<bool, GitError> {
        let call = self.land("comparing a large file").args(["cat-file", "blob", oid.as_str()]);
        match call.output_max(COMPARED_BYTES_MAX).long().run() {
            Ok(output) => Ok(output.status.success() && output.stdout.starts_with(content)),
            Err(GitError::TooMuch { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The id that git would give a file of a checkout with this content, line endings considered.
    fn hashed(
        &self,
        checkout: &Path,
        path: &[u8],
        content: &[u8],
        filters: &[String],
    ) -> Result<Oid, GitError> {
        let mut as_if = std::ffi::OsString::from("--path=");
        as_if.push(std::ffi::OsStr::from_bytes(path));
        let call = without_filters(self.checkout("comparing a file", checkout), filters);
        call.args(["hash-object", "--stdin"]).arg(as_if).input(content).oid()
    }

    /// Objects that are about to be named by a reference have their own names on the disk: git syncs what it writes, and
    /// leaves to chance what folders say.
    pub(super) fn sync_objects(&self, objects: &Path) -> Result<(), GitError> {
        let doing = "bringing objects to the disk";
        let mut synced = locked(&self.inner.objects_synced);
        // Times of files are a little behind the clock's.
        let begun = SystemTime::now() - Duration::from_secs(1);
        let since = synced.get(objects).copied();
        let mut folders = vec![objects.to_owned()];
        for entry in fs::read_dir(objects).map_err(GitError::io(doing, objects))?.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
        for folder in folders {
            let changed = fs::metadata(&folder).and_then(|found| found.modified());
            if since.is_none_or(|since| changed.is_ok_and(|changed| changed >= since)) {
                super::tree::sync_folder(&folder)?;
            }
        }
        synced.insert(objects.to_owned(), begun);
        Ok(())
    }

    /// The files that a move has written in a checkout are on the disk, and where main is. Git brings neither there.
    pub(super) fn sync_checkout(&self, checkout: &Path, old: &Oid, merge: &Oid) -> Result<(), GitError> {
        sync_references(&self.inner.git_dir, [self.main_reference().as_str()].into_iter())?;
        super::tree::sync_folder(&self.git_dir_of_checkout(checkout))?;
        let files = self.changed(old, merge)?;
        let paths: Vec<PathBuf> =
            files.iter().map(|file| checkout.join(std::ffi::OsStr::from_bytes(&file.path))).collect();
        base::files::sync(checkout, &paths, SYNCED_ONE_BY_ONE_MAX)
            .map_err(GitError::io("bringing a checkout to the disk", checkout))
    }
}

/// Where these references are is on the disk: their files were synced, and now their folders are.
fn sync_references<'a>(git_dir: &Path, names: impl Iterator<Item = &'a str>) -> Result<(), GitError> {
    let mut folders = BTreeSet::from([git_dir.to_owned()]);
    for name in names {
        let path = git_dir.join(name);
        folders.extend(path.ancestors().skip(1).take_while(|at| *at != git_dir).map(Path::to_owned));
    }
    // The deepest first. One that git has removed with its last reference is named in the folder above it.
    for folder in folders.iter().rev().filter(|folder| folder.is_dir()) {
        super::tree::sync_folder(folder)?;
    }
    Ok(())
}

fn entry_key(entry: Option<&Entry>) -> Option<String> {
    entry.map(|Entry { mode, oid }| format!("{mode} {oid}"))
}

/// Another git of ours may be at work beside it: that ends in a moment. One of the user's is not waited out.
fn wait_for_holder(lock: &Path, at: &Path) -> Result<(), GitError> {
    for _ in 0..LOOKS_MAX {
        if lock::holder(lock, at).is_none() {
            return Ok(());
        }
        std::thread::sleep(LOOKS_PAUSE);
    }
    match lock::holder(lock, at) {
        Some(holder) => Err(GitError::Locked { lock: lock.to_owned(), holder }),
        None => Ok(()),
    }
}

fn locks_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
            if depth > 0 {
                locks_below(&path, depth - 1, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
}

/// A file that the wanted commit does not have, and the folders that only it was in.
fn take_away(checkout: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != checkout) {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
