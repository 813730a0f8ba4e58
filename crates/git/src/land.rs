//! `land.git`, our copy of the user's repository, and the transfer of objects into it and out of it.
//!
//! Objects are sent as packs between two git processes, and the receiver checks every one of them. Neither runs in a repository with
//! an agent's settings. A few objects are stored one by one, many as a pack: thousands of small packs would slow down
//! every later lookup.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use machines::names::TaskId;

use super::names::OURS;
use super::references::{self, Change, Expected};
use super::{GitError, Isolation, Oid, Repository, lock, locked, read_or_empty, remove_folder, write_whole};

/// A transfer of fewer objects than this is kept object by object, each of which is synced by itself.
const UNPACK_OBJECTS_MAX: u32 = 100;
/// The most that one transfer may bring: more is not the work of a step.
pub const TRANSFER_BYTES_MAX: u64 = 8 << 30;
/// How long a transfer may take. An agent can put a pipe where git expects a file, and hold it up to here.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(300);
/// How often a transfer is begun whose git is killed.
const TRANSFER_TRIES_MAX: usize = 3;
/// The file that says that a copy was finished.
const COMPLETE: &str = "adjutant-complete";

/// Where the objects of a transfer come from and go to.
enum Direction<'a> {
    /// From a foreign folder of objects into `land.git`.
    In(&'a Path),
    /// From `land.git` into the user's repository.
    Out,
}

impl Repository {
    /// `land.git` is there and whole when this returns. A half-made one is made again; a damaged one is set aside.
    pub fn ensure_land(&self) -> Result<(), GitError> {
        let land = self.land_dir();
        let mut checked = locked(&self.inner.land_checked);
        if land.join(COMPLETE).is_file() && land.join("HEAD").is_file() && land.join("objects").is_dir() {
            if !std::mem::replace(&mut *checked, true) {
                lock::clear_stale_below(&land, references::LOCK_DEPTH)?;
                self.recover_work()?;
                self.write_excludes()?;
            }
            return Ok(());
        }
        if land.exists() {
            self.set_land_aside(&land)?;
        }
        let state = &self.inner.places.state;
        // For its user alone from the first moment: it comes to hold tokens.
        let mut folder = fs::DirBuilder::new();
        let made = folder.recursive(true).mode(0o700).create(state);
        made.map_err(GitError::io("making the state folder", state))?;
        let making = state.join("land.git.making");
        remove_folder(&making)?;
        self.copy_repository(&making)?;
        // The clone does not sync what it copies.
        base::files::sync_below(&making).map_err(GitError::io("copying the repository", &making))?;
        base::crash::point("putting land.git in place");
        fs::rename(&making, &land).map_err(GitError::io("putting land.git in place", &land))?;
        self.write_excludes()?;
        self.adopt_published()?;
        self.recall_dropped()
    }

    /// The tip of main in the user's repository now; its objects are in `land.git` too.
    pub fn main_tip(&self) -> Result<Oid, GitError> {
        let places = &self.inner.places;
        let main = self.read_main()?;
        let main =
            main.ok_or_else(|| GitError::NoMain { main: places.main.clone(), at: places.root.clone() })?;
        self.with_sound_land(|| self.know_main(&main))?;
        Ok(main)
    }

    fn read_main(&self) -> Result<Option<Oid>, GitError> {
        let name = self.main_reference();
        match references::loose(&self.inner.git_dir, &name) {
            Some(main) => Ok(Some(main)),
            None => Ok(self.user_reference(&name)?.map(|main| main.oid)),
        }
    }

    /// An agent is shown this main: that it was main is known from now on, whatever the user does to it.
    pub(super) fn shown(&self, main: &Oid) -> Result<(), GitError> {
        let name = self.main_reference();
        self.write_main_down(main)?;
        if self.land_reference(&name)?.as_ref() == Some(main) {
            Ok(())
        } else {
            self.set_in_land(&name, main)
        }
    }

    /// Brings a commit of the user's main into `land.git`, unless it is there.
    pub(super) fn know_main(&self, main: &Oid) -> Result<(), GitError> {
        // Held to the end: whoever else wants the same main would only bring it a second time.
        let mut known = locked(&self.inner.main_in_land);
        if known.is_some() && !self.land_dir().join(COMPLETE).is_file() {
            // Somebody removed it, or it was set aside: what it had is not known to the next one.
            *known = None;
        }
        if known.as_ref() == Some(main) {
            return Ok(());
        }
        if known.is_none() {
            self.ensure_land()?;
            *known = self.land_reference(&self.main_reference())?;
            if known.is_none()
                && let Some(before) = self.main_written_down()
            {
                // Made anew: what the user's repository still has of the main before is in it, though no branch names it.
                let there =
                    self.bring(&self.inner.git_dir.join("objects"), std::slice::from_ref(&before), &[]);
                *known = there.is_ok().then_some(before);
            }
        }
        if known.as_ref() != Some(main) {
            self.bring(&self.inner.git_dir.join("objects"), std::slice::from_ref(main), known.as_slice())?;
            if let Some(before) = &*known {
                let dropped = self.is_dropped(before, main)?;
                // Read before a landing that has moved main meanwhile, it is older than what is known: nothing was dropped.
                if dropped && self.read_main()?.as_ref() != Some(main) {
                    return Ok(());
                }
                if dropped {
                    self.remember_dropped(before)?;
                }
            }
            self.set_in_land(&self.main_reference(), main)?;
            self.write_main_down(main)?;
        }
        *known = Some(main.clone());
        Ok(())
    }

    /// Brings commits and all that they need from a folder of objects into `land.git`. `haves` are in `land.git`.
    pub(super) fn bring(&self, objects: &Path, wants: &[Oid], haves: &[Oid]) -> Result<(), GitError> {
        let missing = self.missing_in_land(wants)?;
        if missing.is_empty() { Ok(()) } else { self.transfer(&Direction::In(objects), &missing, haves) }
    }

    /// Copies commits and all that they need from `land.git` into the user's repository, which has `haves`.
    pub(super) fn give(&self, wants: &[Oid], haves: &[Oid]) -> Result<(), GitError> {
        if wants.iter().all(|want| haves.contains(want)) {
            return Ok(());
        }
        match self.transfer(&Direction::Out, wants, haves) {
            // What we believed to be there was pruned since: everything is sent.
            Err(GitError::Failed { .. }) if !haves.is_empty() => self.transfer(&Direction::Out, wants, &[]),
            other => other,
        }
    }

    /// Which of these are not in `land.git`.
    pub(super) fn missing_in_land(&self, wanted: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let kinds = self.kinds(self.land("looking for objects"), wanted)?;
        Ok(wanted.iter().zip(kinds).filter(|(_, kind)| kind.is_none()).map(|(oid, _)| oid.clone()).collect())
    }

    /// The commits among these ids that can be read from `land.git` and a foreign folder of objects together.
    pub(super) fn commits_among(&self, objects: &Path, oids: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let call = lean_on(self.land("looking for commits"), objects);
        let kinds = self.kinds(call, oids)?;
        let commits = oids.iter().zip(kinds).filter(|(_, kind)| kind.as_deref() == Some("commit"));
        Ok(commits.map(|(oid, _)| oid.clone()).collect())
    }

    fn kinds(&self, call: super::Call, oids: &[Oid]) -> Result<Vec<Option<String>>, GitError> {
        if oids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
        let output = call.args(["cat-file", "--batch-check=%(objecttype)"]).input(input).ok()?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().map(|line| (!line.contains(' ')).then(|| line.to_owned())).collect())
    }

    /// Begins again where one of the two gits is killed by somebody else.
    fn transfer(&self, direction: &Direction<'_>, wants: &[Oid], haves: &[Oid]) -> Result<(), GitError> {
        let mut tries = 1;
        loop {
            match self.try_transfer(direction, wants, haves) {
                Err(error) if error.was_killed() && tries < TRANSFER_TRIES_MAX => tries += 1,
                other => return other,
            }
        }
    }

    fn try_transfer(&self, direction: &Direction<'_>, wants: &[Oid], haves: &[Oid]) -> Result<(), GitError> {
        let source = match direction {
            Direction::In(objects) => lean_on(self.land("packing objects"), objects),
            Direction::Out => self.land("packing objects"),
        };
        let mut revisions = String::new();
        for want in wants {
            revisions.push_str(&format!("{want}\n"));
        }
        for have in haves {
            revisions.push_str(&format!("^{have}\n"));
        }
        let mut feeding = source
            // Everything that a lying index of an agent's could speed up is off.
            .set("core.commitGraph", "false")
            .set("core.multiPackIndex", "false")
            .set("pack.useBitmaps", "false")
            .args(["pack-objects", "--revs", "--stdout", "--thin", "--sparse", "--delta-base-offset", "-q"])
            .input(revisions)
            .time_max(TRANSFER_TIME_MAX)
            .feed()?;
        let Some(header) = feeding.read::<12>() else { return feeding.finish() };
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (version, count) = (word(4), word(8));
        if count > 0 {
            let limit = format!("--max-input-size={TRANSFER_BYTES_MAX}");
            let header = format!("--pack_header={version},{count}");
            let target = match direction {
                Direction::In(_) => self.land("taking objects in"),
                Direction::Out => self.user("taking objects in"),
            };
            let target = if count < UNPACK_OBJECTS_MAX {
                target.args(["unpack-objects", "-q", "--strict", &header, &limit])
            } else {
                target.args(["index-pack", "--stdin", "--fix-thin", "--strict", &header, &limit])
            };
            if let Some(rest) = feeding.rest() {
                let taken = target.time_max(TRANSFER_TIME_MAX).input_from(rest).ok();
                // If both failed, the first of the two knows why, unless it only lost whom it was writing to.
                return match (feeding.finish(), taken) {
                    (Err(_), Err(error)) if error.was_killed() => Err(error),
                    (Err(error), Err(_)) => Err(error),
                    (packed, taken) => taken.map(drop).and(packed),
                };
            }
        }
        feeding.finish()
    }

    /// A bare clone, then made ours: no remote that leads back, nothing that prunes.
    fn copy_repository(&self, making: &Path) -> Result<(), GitError> {
        let inner = &self.inner;
        let mut tries = 1;
        loop {
            let mut call = super::Call::hardened("copying the repository", &inner.places.state)
                .set("protocol.file.allow", "always")
                .args(["clone", "--bare", "--no-hardlinks", "--template=", "--no-tags", "--quiet"]);
            if inner.git_dir.join("objects/info/alternates").exists() {
                call = call.arg("--dissociate");
            }
            match call.long().once().arg("--").arg(&inner.git_dir).arg(making).ok() {
                // What it left is in its way.
                Err(error) if error.was_killed() && tries < TRANSFER_TRIES_MAX => remove_folder(making)?,
                other => break other.map(drop)?,
            }
            tries += 1;
        }
        let (version, extension) = match inner.object_format.as_str() {
            "sha256" => (1, "[extensions]\n\tobjectformat = sha256\n"),
            _ => (0, ""),
        };
        let config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = true\n\tlogallrefupdates = always\n\
             [gc]\n\tauto = 0\n\tpruneExpire = never\n\treflogExpire = never\n\treflogExpireUnreachable = never\n\
             [maintenance]\n\tauto = false\n{extension}"
        );
        write_whole(&making.join("config"), config.as_bytes())?;
        write_whole(&making.join("HEAD"), format!("ref: {}\n", self.main_reference()).as_bytes())?;
        // The branches of that moment would only go stale: the one that counts is written by `main_tip`.
        for stale in ["packed-refs", "refs/heads", "refs/tags"] {
            let path = making.join(stale);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            match removed {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(GitError::Io { doing: "preparing land.git", at: path, source: e });
                }
                _ => {}
            }
        }
        fs::create_dir_all(making.join("refs/heads")).map_err(GitError::io("preparing land.git", making))?;
        write_whole(&making.join(COMPLETE), b"1\n")
    }

    /// What was published before `land.git` was lost is known to it again.
    fn adopt_published(&self) -> Result<(), GitError> {
        let published = references::read(self.user("reading what was published"), &[OURS])?;
        let oids: Vec<Oid> = published.iter().map(|reference| reference.oid.clone()).collect();
        self.bring(&self.inner.git_dir.join("objects"), &oids, &[])?;
        let changes: Vec<Change<'_>> = published
            .iter()
            .map(|reference| Change {
                name: &reference.name,
                old: Expected::Anything,
                new: Some(&reference.oid),
            })
            .collect();
        self.change_land("writing references", "adjutant: found again", &changes).map(drop)
    }

    /// What git shall not see in a tree: what the user excludes in this repository. Not our own line in it: in a tree a
    /// folder of that name is the agent's.
    pub(super) fn excludes(&self) -> Result<String, GitError> {
        let content = read_or_empty(&self.inner.git_dir.join("info/exclude"))?;
        let ours = self.exclude_line();
        let users = content.lines().filter(|line| Some(*line) != ours.as_deref());
        let mut excludes: String = users.map(|line| format!("{line}\n")).collect();
        // Links that the settings ask for in every tree; a pattern for a directory does not cover them.
        excludes.push_str(&read_or_empty(&self.links())?);
        Ok(excludes)
    }

    /// Has git not see a link in the trees that we make, and there alone.
    pub fn exclude_link(&self, folder: &Path, link: &str) -> Result<(), GitError> {
        let line = super::hook_files::exclude_line(link);
        let mut known = read_or_empty(&self.links())?;
        if !known.lines().any(|there| there == line) {
            known.push_str(&line);
            known.push('\n');
            write_whole(&self.links(), known.as_bytes())?;
        }
        self.write_excludes()?;
        let content = self.excludes()?;
        let places = &self.inner.places;
        match folder.strip_prefix(&places.trees).ok().and_then(Path::to_str) {
            // The user's own git directory is not ours to write to; the environment says it to the agent's git.
            Some(name) if places.isolation == Isolation::Worktree && name != super::names::LANDING => Ok(()),
            Some(name) => {
                let git_dir = self.git_dir_of(name)?;
                let content = format!("{content}{}", self.hook_lines(name));
                let doing = "adding a link to git's exclude file";
                git_dir.replace("info/exclude", content.as_bytes()).map_err(|source| GitError::Io {
                    doing,
                    at: git_dir.path().to_owned(),
                    source,
                })
            }
            None => write_whole(&folder.join(".git/info/exclude"), content.as_bytes()),
        }
    }

    /// The links of [`Repository::exclude_link`] and what a hook left in this task's tree, as lines of a file of excludes, with
    /// what the user's own file of them says. `None` where there are none.
    pub fn excluded_in(&self, task: &TaskId) -> Option<String> {
        let own = self.records().into_iter().find(|(_, record)| record.task == task.as_str());
        let left = own.map(|(name, _)| self.hook_lines(&name)).unwrap_or_default();
        let links = format!("{}{left}", read_or_empty(&self.links()).unwrap_or_default());
        if links.is_empty() {
            return None;
        }
        let user = self.inner.user.excludes_file.as_ref();
        let mut content = user.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str(&links);
        Some(content)
    }

    fn links(&self) -> PathBuf {
        self.inner.places.state.join("links")
    }

    fn write_excludes(&self) -> Result<(), GitError> {
        let exclude = self.land_dir().join("info/exclude");
        let content = self.excludes()?;
        if read_or_empty(&exclude)? == content { Ok(()) } else { write_whole(&exclude, content.as_bytes()) }
    }

    /// It may hold the only copy of something: it is never removed.
    fn set_land_aside(&self, land: &Path) -> Result<PathBuf, GitError> {
        let aside = |number: u32| self.inner.places.state.join(format!("land.git.damaged-{number}"));
        let aside = (1..).map(aside).find(|aside| !aside.exists()).unwrap_or_else(|| aside(0));
        fs::rename(land, &aside).map_err(GitError::io("setting a damaged land.git aside", land))?;
        Ok(aside)
    }

    /// Does something with `land.git`; where that comes upon objects of it that are not whole, it is made anew first.
    pub(super) fn with_sound_land<T>(&self, work: impl Fn() -> Result<T, GitError>) -> Result<T, GitError> {
        match work() {
            Err(error) if error.is_damage() && error.said().contains("land.git/objects") => {
                self.remake_land()?;
                work()
            }
            other => other,
        }
    }

    /// What the user's repository has of it, and what can still be read of the damaged one.
    fn remake_land(&self) -> Result<(), GitError> {
        let damaged = self.set_land_aside(&self.land_dir())?;
        self.note(format!(
            "land.git was damaged and was created again; the damaged one is {}",
            damaged.display()
        ));
        *locked(&self.inner.main_in_land) = None;
        *locked(&self.inner.newest_merge) = None;
        self.ensure_land()?;
        let call = super::Call::hardened("reading a damaged land.git", &damaged).env("GIT_DIR", &damaged);
        // Best effort: a reference that cannot be read, or whose commits cannot, is only in the damaged one.
        for reference in references::read(call, &[OURS]).unwrap_or_default() {
            let wanted = std::slice::from_ref(&reference.oid);
            if self.bring(&damaged.join("objects"), wanted, &[]).is_ok() {
                self.set_in_land(&reference.name, &reference.oid)?;
            }
        }
        Ok(())
    }

    pub(super) fn land_objects(&self) -> PathBuf {
        self.land_dir().join("objects")
    }
}

/// Lets a call in `land.git` see the objects of another folder too. The path is quoted as git wants it in a list.
fn lean_on(call: super::Call, objects: &Path) -> super::Call {
    let mut quoted = vec![b'"'];
    for byte in objects.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsStr::from_bytes(&quoted))
}
