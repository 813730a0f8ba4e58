//! Object ids and the names that may reach git's command line. Nothing else does.

use base::hex::hex;
use machines::names::TaskId;
use sha2::{Digest, Sha256};
use smol_str::SmolStr;

use super::GitError;

/// Everything of ours among a repository's references.
pub const OURS: &str = "refs/adjutant/";
/// Work that was saved, by task and effect.
pub const SALVAGE: &str = "refs/adjutant/salvage/";
/// The tips of tasks.
pub const TASKS: &str = "refs/adjutant/tasks/";
/// The merges that were made to land, and what was pushed.
pub const MERGES: &str = "refs/adjutant/merges/";
/// What the user's repository was last shown of a task's branch.
pub const PUBLISHED: &str = "refs/adjutant/published/";
/// What somebody else put where a branch of ours belongs.
pub const FOUND: &str = "refs/adjutant/found/";
/// Commits of a task that are on no branch.
pub const KEPT: &str = "refs/adjutant/kept/";
/// Where main stood when a task's branch was begun.
pub const BEGUN: &str = "refs/adjutant/begun/";
/// The mains that are no more.
pub const DROPPED: &str = "refs/adjutant/dropped/";
/// Signed merges, by what was signed.
pub const SIGNED: &str = "refs/adjutant/signed/";
/// The repository that is ours alone, in the state folder.
pub const LAND: &str = "land.git";
/// Where merges are tested, among the trees. A task's tree is named `<worker>-<task>`, so none is called so.
pub const LANDING: &str = "landing";
/// Where agents look at the project that speak outside of any task, among the trees.
pub const SEATS: &str = "rooms";
/// What was removed, among the trees.
pub const TRASH: &str = "trash";
/// The settings of a project, in its checkout.
pub const SETTINGS_FILE: &str = "adjutant.toml";
/// Which ignored files a tree receives, in the checkout.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
/// A longer name of a task is cut in the name of its temporary folder, and told from others by a hash.
const TEMP_NAME_BYTES_MAX: usize = 20;
/// The longest part of a path or reference that we make: worker, dash and task fit.
const PART_BYTES_MAX: usize = 210;
/// The longest reference or path that is taken from outside.
const REFERENCE_BYTES_MAX: usize = 500;

/// The name of a task's folder among the temporary files.
pub fn temp_name(task: &TaskId) -> String {
    let name = task.as_str();
    match name.get(..TEMP_NAME_BYTES_MAX - 9) {
        Some(begin) if name.len() > TEMP_NAME_BYTES_MAX => {
            format!("{begin}-{}", hex(&Sha256::digest(name.as_bytes())[..4]))
        }
        _ => name.to_owned(),
    }
}

/// The id of an object: 40 or 64 lowercase hex digits, never anything else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Oid(SmolStr);

impl TryFrom<String> for Oid {
    type Error = String;

    fn try_from(text: String) -> Result<Oid, String> {
        Oid::new(&text).ok_or_else(|| format!("`{text}` is not an object id"))
    }
}

impl Oid {
    /// An id, if the text is one; what it names need not exist.
    pub fn new(text: &str) -> Option<Oid> {
        let digits = matches!(text.len(), 40 | 64)
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        // All zeroes is git's word for "nothing there", and must never stand for a commit.
        (digits && text.bytes().any(|b| b != b'0')).then(|| Oid(SmolStr::new(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Enough of it for a person to tell commits apart.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl std::fmt::Display for Oid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Oid {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Oid, GitError> {
        Oid::new(text).ok_or_else(|| GitError::NoObjectId {
            doing: "reading an object id",
            text: text.chars().take(80).flat_map(char::escape_default).collect(),
        })
    }
}

fn bad(what: &'static str, name: &str, why: &'static str) -> GitError {
    GitError::BadName { what, name: name.chars().take(60).flat_map(char::escape_default).collect(), why }
}

/// One part of a path or reference that we make up: the alphabet of all names, with room for two of them.
pub(super) fn check_part(what: &'static str, name: &str) -> Result<(), GitError> {
    if name.is_empty() || name.len() > PART_BYTES_MAX {
        return Err(bad(what, name, "it is empty or too long"));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err(bad(what, name, "it may hold only letters, digits, `.`, `_` and `-`"));
    }
    if !name.as_bytes()[0].is_ascii_alphanumeric() {
        return Err(bad(what, name, "it must begin with a letter or a digit"));
    }
    if name.contains("..") || name.ends_with('.') || name.ends_with(".lock") {
        return Err(bad(what, name, "it may not hold `..`, nor end in `.` or `.lock`"));
    }
    Ok(())
}

/// The name of a tree, from `agents/A-c1` or `A-c1`.
pub(super) fn tree_name(tree: &str) -> Result<&str, GitError> {
    let name = match tree.split_once('/') {
        Some((folder, name)) => {
            check_part("tree", folder)?;
            name
        }
        None => tree,
    };
    check_part("tree", name)?;
    Ok(name)
}

/// A branch that we make: parts of the strict alphabet.
pub(super) fn check_branch(branch: &str) -> Result<(), GitError> {
    branch.split('/').try_for_each(|part| check_part("branch", part))
}

/// A branch that the user named. As git has it: what `git check-ref-format --branch` accepts, and no `-` in front.
pub(super) fn check_user_branch(branch: &str) -> Result<(), GitError> {
    let what = "branch";
    if branch.is_empty() || branch.len() > REFERENCE_BYTES_MAX {
        return Err(bad(what, branch, "it is empty or too long"));
    }
    if branch.starts_with('-') || branch == "@" || branch == "HEAD" {
        return Err(bad(what, branch, "git keeps that for itself"));
    }
    if branch.bytes().any(|b| b < 0x20 || b == 0x7f || b" ~^:?*[\\".contains(&b)) {
        return Err(bad(what, branch, "it may not hold spaces, control characters or any of ~^:?*[\\"));
    }
    if branch.contains("..") || branch.contains("@{") || branch.ends_with('.') {
        return Err(bad(what, branch, "it may not hold `..` or `@{`, nor end in `.`"));
    }
    let part_is_bad = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if branch.split('/').any(part_is_bad) {
        return Err(bad(what, branch, "no part of it may be empty, begin with `.` or end in `.lock`"));
    }
    Ok(())
}

/// A path inside a repository: relative, without `.` and `..`, and not into a git directory.
pub(super) fn check_path(path: &str) -> Result<(), GitError> {
    let what = "path in the repository";
    if path.is_empty() || path.len() > 4096 || path.contains('\0') {
        return Err(bad(what, path, "it is empty, too long or holds a NUL"));
    }
    if path
        .split('/')
        .any(|part| part.is_empty() || part == "." || part == ".." || part.eq_ignore_ascii_case(".git"))
    {
        return Err(bad(what, path, "it must be relative, without `.`, `..` and `.git`"));
    }
    Ok(())
}

/// The reference in `land.git` at a task's tip.
pub(super) fn task_reference(task: &TaskId) -> String {
    format!("{TASKS}{task}")
}
