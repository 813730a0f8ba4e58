//! The folder of the trees: chosen by the owner, recorded, and found again by that record.
//!
//! Invariants: an existing folder without a record is never used, unless it is empty and the user's own; a record
//! counts only in the state folder in which it was written, so a copy of a repository does not use the trees of the
//! original; existing trees are moved, never left behind.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Layout, before};
use base::files;

pub use git::names::{LANDING, SEATS, TRASH};

/// What the folder of rooms was called before: some tests refuse paths with a hidden part.
const SEATS_BEFORE: &str = ".seats";

/// What `fleet.trees` is where nobody says otherwise; only then is there another place to go to.
const DEFAULT: &str = "../{project}.agents";
/// How many names are tried where folders of somebody else are in the way.
const NAMES_MAX: u32 = 9;
/// Where earlier versions had the trees.
const BEFORE: &str = "agents";

/// Why there is no place for the trees.
#[derive(Debug, thiserror::Error)]
pub enum TreesError {
    #[error(
        "git tracks files in `{0}`, so it cannot be the folder of agents' trees; set `trees` in [fleet] of adjutant.toml to another folder, or remove the key"
    )]
    Tracked(String),
    #[error(
        "`{}` exists and was not created by Adjutant; move it, or set `trees` in [fleet] of adjutant.toml to another folder", .0.display()
    )]
    Taken(PathBuf),
    #[error(
        "`{}` cannot be the folder of agents' trees: {why}; set `trees` in [fleet] of adjutant.toml to another folder", folder.display()
    )]
    Unusable { folder: PathBuf, why: String },
}

/// The folder of the trees, ready to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub path: PathBuf,
    /// What people should hear of it.
    pub said: Vec<String>,
}

/// Which folder is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// The state folder itself.
    state: Folder,
    /// From the root, or absolute.
    trees: String,
    directory: Folder,
    /// What the settings wanted then, in the same form.
    wanted: String,
    /// Trees are still to be moved from here.
    #[serde(default)]
    from: Option<String>,
}

/// A folder, told from others that had or will have its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Folder {
    number: u64,
    /// Absent where the file system does not tell.
    born: Option<u64>,
}

impl Layout {
    /// Where the trees are, or will be as the settings want them. Nothing is made.
    pub fn trees(&self, wish: &str) -> PathBuf {
        match self.recorded() {
            Some(record) => self.at(&record.trees),
            None if self.has_trees_of_before() => self.root.join(BEFORE),
            None => {
                let wanted = self.wanted(wish);
                self.first_free(wish, &wanted, &mut Vec::new(), could_make).unwrap_or(wanted)
            }
        }
    }

    /// Where the trees are or will be, if they can be there as the settings want them. Nothing is made.
    pub fn check_trees(&self, wish: &str, tracks: &dyn Fn(&Path) -> bool) -> Result<Settled, TreesError> {
        let wanted = self.wanted(wish);
        self.check(wish, &wanted, tracks)?;
        let recorded = self.recorded().or_else(|| self.known_by_its_trees(&wanted));
        match recorded.filter(|record| self.at(&record.wanted) == wanted) {
            Some(record) => Ok(Settled { path: self.at(&record.trees), said: Vec::new() }),
            None => {
                let mut said = Vec::new();
                let path = self.first_free(wish, &wanted, &mut said, could_make)?;
                Ok(Settled { path, said })
            }
        }
    }

    /// The part of the trees' path that begins with a dot, where the project's own path has none: tests that refuse
    /// hidden paths pass in the checkout and fail there.
    pub fn hidden_part(&self, trees: &Path) -> Option<String> {
        hidden_part(trees).filter(|_| hidden_part(&self.root).is_none())
    }

    /// Makes the folder of the trees, or finds it again. Only for the owner of the project: trees that stand elsewhere
    /// are moved. `tracks` says whether git tracks something in a folder of the checkout.
    pub fn settle_trees(&self, wish: &str, tracks: &dyn Fn(&Path) -> bool) -> Result<Settled, TreesError> {
        let wanted = self.wanted(wish);
        self.check(wish, &wanted, tracks)?;
        let recorded = self.recorded();
        if recorded.is_none()
            && let Some(record) = self.known_by_its_trees(&wanted)
        {
            let failed =
                |error: io::Error| TreesError::Unusable { folder: wanted.clone(), why: error.to_string() };
            self.write(&record).map_err(failed)?;
            let said = format!(
                "places.json was damaged or gone; `{}` is known by the trees in it",
                wanted.display()
            );
            return Ok(Settled { path: wanted, said: vec![said] });
        }
        if let Some(record) = &recorded
            && self.at(&record.wanted) == wanted
            && record.from.is_none()
        {
            let path = self.at(&record.trees);
            self.rename_seats(&path);
            return Ok(Settled { path, said: Vec::new() });
        }
        let from = match &recorded {
            Some(Record { from: Some(from), .. }) => Some(self.at(from)),
            Some(record) => Some(self.at(&record.trees)),
            None => self.has_trees_of_before().then(|| self.root.join(BEFORE)),
        };
        // Processes and git know trees by their paths.
        if let Some(from) = &from
            && before::is_at_work(&self.steps())
        {
            return Ok(Settled {
                path: from.clone(),
                said: vec![format!("the trees stay in {} while agents are at work there", from.display())],
            });
        }
        let mut said = Vec::new();
        let path = match recorded.filter(|record| record.from.is_some()) {
            Some(record) => self.at(&record.trees),
            None => self.first_free(wish, &wanted, &mut said, make)?,
        };
        let unusable =
            |error: io::Error| TreesError::Unusable { folder: path.clone(), why: error.to_string() };
        if let Some(from) = &from
            && self.holds_something(from)
            && device(from) != device(&path)
        {
            let _ = fs::remove_dir(&path);
            said.push(format!(
                "the trees stay in {} until none stands there: {} is on another file system",
                from.display(),
                path.display()
            ));
            return Ok(Settled { path: from.clone(), said });
        }
        let mut record = Record {
            state: folder(&self.state).map_err(unusable)?,
            trees: self.way_to(&path)?,
            directory: folder(&path).map_err(unusable)?,
            wanted: self.way_to(&wanted)?,
            from: from.as_deref().map(|from| self.way_to(from)).transpose()?,
        };
        self.write(&record).map_err(unusable)?;
        if let Some(from) = from {
            base::crash::point("moving the trees");
            let moved = self.move_trees(&from, &path).map_err(unusable)?;
            if moved > 0 {
                said.push(format!("{moved} trees were moved from {} to {}", from.display(), path.display()));
            }
            record.from = None;
            self.write(&record).map_err(unusable)?;
        }
        Ok(Settled { path, said })
    }

    /// The folder that was settled on is there: made again, and known to be ours, where somebody removed it.
    pub fn make_trees_again(&self, trees: &Path) -> io::Result<()> {
        match fs::create_dir(trees) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        }
        let record = fs::read(self.record_path()).ok();
        let record = record.and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        match record {
            Some(record) => self.write(&Record { directory: folder(trees)?, ..record }),
            None => Ok(()),
        }
    }

    /// The folder that the settings name.
    fn wanted(&self, wish: &str) -> PathBuf {
        let text = wish.replace("{project}", &self.project());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let path = match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.root.join(text),
        };
        lexical(&path)
    }

    /// The project's name for a folder: that of its own, without what would hide it.
    fn project(&self) -> String {
        let name = self.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.strip_suffix(".git").unwrap_or(&name).trim_start_matches('.');
        let clean = |c: char| if c.is_control() || c == '\u{fffd}' { '_' } else { c };
        let name: String = name.chars().map(clean).collect();
        if name.is_empty() { "project".to_owned() } else { name }
    }

    fn check(&self, wish: &str, wanted: &Path, tracks: &dyn Fn(&Path) -> bool) -> Result<(), TreesError> {
        let unusable = |why: &str| TreesError::Unusable { folder: wanted.to_owned(), why: why.to_owned() };
        if self.root.starts_with(wanted) {
            return Err(unusable("the project itself lies in it"));
        }
        if wanted.starts_with(&self.git_dir) {
            return Err(unusable("it is in the repository's git directory"));
        }
        match wanted.strip_prefix(&self.root) {
            Ok(inside) if tracks(inside) => Err(TreesError::Tracked(wish.to_owned())),
            _ => Ok(()),
        }
    }

    /// The first folder that is free. `make` makes it, or only says whether it could be made.
    fn first_free(
        &self,
        wish: &str,
        wanted: &Path,
        said: &mut Vec<String>,
        make: Make,
    ) -> Result<PathBuf, TreesError> {
        let inside = wanted.starts_with(&self.root);
        let beside = match take_first(wanted, if inside { 1 } else { NAMES_MAX }, make) {
            Ok(path) => {
                if path != wanted {
                    let left: Vec<String> =
                        self.names().into_iter().filter(|name| wanted.join(name).is_dir()).collect();
                    let left = match left.is_empty() {
                        true => String::new(),
                        false => format!(
                            "; {} in it are left alone, and nothing of them is saved",
                            left.join(", ")
                        ),
                    };
                    let (wanted, path) = (wanted.display(), path.display());
                    said.push(format!(
                        "`{wanted}` is there and is not this project's: trees are in `{path}`{left}"
                    ));
                }
                return Ok(path);
            }
            Err(error) => error,
        };
        if wish != DEFAULT || matches!(beside, TreesError::Taken(_)) {
            return Err(beside);
        }
        let name = format!("{}-{}", self.project(), self.hash(4));
        let elsewhere = folders_elsewhere().into_iter();
        let mut taken = elsewhere.map(|folder| take_first(&folder.join(&name), NAMES_MAX, make));
        let Some(path) = taken.find_map(Result::ok) else { return Err(beside) };
        said.push(format!("{} cannot be written: trees are in {}", wanted.display(), path.display()));
        if let Some(part) = self.hidden_part(&path) {
            said.push(format!(
                "the path of the trees has a hidden part, `{part}`, which some tests refuse; set `trees` in [fleet] of adjutant.toml to another folder"
            ));
        }
        Ok(path)
    }

    /// The record, where it is of this state folder and its folder is there.
    fn recorded(&self) -> Option<Record> {
        let record: Record = serde_json::from_slice(&fs::read(self.record_path()).ok()?).ok()?;
        let counts = folder(&self.state).ok()? == record.state
            && folder(&self.at(&record.trees)).ok()? == record.directory;
        counts.then_some(record)
    }

    /// The record as it must have been, where the wanted folder holds a tree that its own record knows: by the number of its
    /// directory and when that was made, which no copy has.
    fn known_by_its_trees(&self, wanted: &Path) -> Option<Record> {
        let knows = |name: &String| {
            let record = fs::read(self.state.join("trees").join(format!("{name}.json"))).ok()?;
            let record: serde_json::Value = serde_json::from_slice(&record).ok()?;
            let tree = wanted.join(name).symlink_metadata().ok().filter(fs::Metadata::is_dir)?;
            let (number, born) = (record["directory"][1].as_u64()?, record["born"].as_u64()?);
            (tree.ino() == number && files::born(&tree) == Some(born)).then_some(())
        };
        self.names().iter().find_map(knows)?;
        Some(Record {
            state: folder(&self.state).ok()?,
            trees: self.way_to(wanted).ok()?,
            directory: folder(wanted).ok()?,
            wanted: self.way_to(wanted).ok()?,
            from: None,
        })
    }

    fn record_path(&self) -> PathBuf {
        self.state.join("places.json")
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        files::write_whole(&self.record_path(), &serde_json::to_vec(record).map_err(io::Error::other)?)
    }

    fn has_trees_of_before(&self) -> bool {
        !self.record_path().exists() && self.holds_something(&self.root.join(BEFORE))
    }

    /// Whether a tree of ours stands in a folder, by the trees' own records.
    fn holds_something(&self, folder: &Path) -> bool {
        self.names().iter().any(|name| folder.join(name).symlink_metadata().is_ok())
    }

    /// The names of the trees that have a record.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.state.join("trees")).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned);
        entries.filter_map(name).collect()
    }

    /// The clones of agents that speak outside of any task get the name that they have now, once none of them is at work. What
    /// cannot be renamed is left; such a clone is made anew before each reply.
    fn rename_seats(&self, trees: &Path) {
        let (old, new) = (trees.join(SEATS_BEFORE), trees.join(SEATS));
        let is_ours = old.symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_ours && new.symlink_metadata().is_err() && !before::is_at_work(&self.steps()) {
            let _ = fs::rename(&old, &new);
        }
    }

    /// Moves what is ours from one folder to the other, and says how many trees that were.
    fn move_trees(&self, from: &Path, to: &Path) -> io::Result<usize> {
        let mut names = self.names();
        if *from != self.root.join(BEFORE) {
            names.extend([LANDING, SEATS, SEATS_BEFORE, TRASH].map(str::to_owned));
        }
        let mut moved = 0;
        for name in names {
            let (old, new) = (from.join(&name), to.join(&name));
            if old.symlink_metadata().is_ok() && new.symlink_metadata().is_err() {
                fs::rename(&old, &new)?;
                moved += usize::from(![LANDING, SEATS, SEATS_BEFORE, TRASH].contains(&name.as_str()));
            }
        }
        self.rename_seats(to);
        // Only an empty one goes: whatever else is in it is not ours.
        let _ = fs::remove_dir(from);
        Ok(moved)
    }

    fn at(&self, way: &str) -> PathBuf {
        lexical(&self.root.join(way))
    }

    /// From the root where it is near, so that it holds after both were moved; otherwise as it is.
    fn way_to(&self, path: &Path) -> Result<String, TreesError> {
        let parent = self.root.parent().unwrap_or(&self.root);
        let way = match (path.strip_prefix(&self.root), path.strip_prefix(parent)) {
            (Ok(inside), _) => inside.to_owned(),
            (_, Ok(beside)) => Path::new("..").join(beside),
            _ => path.to_owned(),
        };
        let why = "its path is not UTF-8".to_owned();
        way.into_os_string().into_string().map_err(|_| TreesError::Unusable { folder: path.to_owned(), why })
    }
}

/// False: it is there, and somebody else's.
type Make = fn(&Path) -> io::Result<bool>;

/// Makes the folder, or the next one of its name that is free.
fn take_first(folder: &Path, names: u32, make: Make) -> Result<PathBuf, TreesError> {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    for number in 2..=names + 1 {
        let path = folder.with_file_name(&name);
        match make(&path) {
            Ok(true) => return Ok(path),
            Ok(false) => {}
            Err(error) => return Err(TreesError::Unusable { folder: path, why: error.to_string() }),
        }
        name = folder.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{number}"));
    }
    Err(TreesError::Taken(folder.to_owned()))
}

fn make(path: &Path) -> io::Result<bool> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(is_free(path)),
        Err(error) => Err(error),
    }
}

/// What `make` would say, without making anything: the nearest folder that is there decides.
fn could_make(path: &Path) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(is_free(path));
    }
    let standing = path.ancestors().skip(1).find(|folder| folder.exists()).unwrap_or(path);
    let access = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
    nix::unistd::access(standing, access)?;
    Ok(true)
}

/// Made by hand where its parent may not be written, or left by ourselves a moment ago.
fn is_free(path: &Path) -> bool {
    let user = nix::unistd::geteuid().as_raw();
    let is_own = fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user);
    is_own && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Folders for trees that cannot stand beside their project. Those without a hidden part come first: there are tests that
/// refuse paths with one. In the home directory it is a name that no project of the user's has.
fn folders_elsewhere() -> Vec<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = path("HOME");
    let data = path("XDG_DATA_HOME").map(|data| data.join("adjutant"));
    let in_home = home.as_ref().map(|home| home.join("adjutant-trees"));
    let last = home.map(|home| home.join(".local/share/adjutant"));
    let mut folders: Vec<PathBuf> = [data, in_home, last].into_iter().flatten().collect();
    folders.sort_by_key(|folder| hidden_part(folder).is_some());
    folders
}

/// The first part of a path that begins with a dot.
fn hidden_part(path: &Path) -> Option<String> {
    let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.find(|part| part.starts_with('.') && part != "." && part != "..")
}

/// A path without `.` and `..`, whether or not it is there.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

fn folder(path: &Path) -> io::Result<Folder> {
    fs::metadata(path).map(|found| Folder { number: found.ino(), born: files::born(&found) })
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|found| found.dev())
}
