//! Reads files of main while another branch is checked out.

use std::collections::BTreeSet;
use std::fs;

use super::inspect::read_batch;
use super::names::check_path;
use super::{GitError, Oid, Repository};

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How much is read in all.
const BYTES_MAX: u64 = 256 << 20;

impl Repository {
    /// Whether the user's checkout has main checked out.
    pub fn stands_on_main(&self) -> bool {
        let head = fs::read_to_string(self.inner.git_dir.join("HEAD")).unwrap_or_default();
        head.trim() == format!("ref: {}", self.main_reference())
    }

    /// The files of a folder as main has them, where the checkout stands on something else: those that the user has not
    /// changed there. Nothing where the checkout has main, or there is none.
    pub fn unchanged_from_main(&self, folder: &str) -> Result<Vec<(String, Vec<u8>)>, GitError> {
        check_path(folder)?;
        if self.inner.bare || self.stands_on_main() {
            return Ok(Vec::new());
        }
        let main = self.main_reference();
        let asks = |name: &str| {
            self.user("looking for a branch").args(["rev-parse", "--verify", "--quiet", name]).yes()
        };
        // A repository without a commit, or without main.
        if !asks(&format!("{main}^{{commit}}"))? || !asks("HEAD^{commit}")? {
            return Ok(Vec::new());
        }
        let inside = format!("{}/", folder.trim_end_matches('/'));
        let listed =
            self.user("listing a folder of main").args(["ls-tree", "-l", "-z", &main, "--", &inside]).ok()?;
        let changed = self
            .user("looking for changes")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .args([
                "diff",
                "--name-only",
                "-z",
                "--no-ext-diff",
                "--no-textconv",
                "--no-renames",
                "HEAD",
                "--",
                &inside,
            ])
            .ok()?;
        let changed: BTreeSet<&[u8]> = changed.split(|byte| *byte == 0).collect();
        let mut total = 0;
        let mut files = Vec::new();
        // `100644 blob <oid> <size>`, a tab and the path, ended by a NUL.
        for line in listed.split(|byte| *byte == 0) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let (what, path) = (String::from_utf8_lossy(&line[..tab]).into_owned(), &line[tab + 1..]);
            let parts: Vec<&str> = what.split_whitespace().collect();
            let [mode, "blob", oid, size] = parts[..] else { continue };
            let (Some(oid), Ok(size), Ok(name)) =
                (Oid::new(oid), size.parse::<u64>(), std::str::from_utf8(path))
            else {
                continue;
            };
            if mode.starts_with("100")
                && !changed.contains(path)
                && size <= FILE_BYTES_MAX
                && total + size <= BYTES_MAX
            {
                total += size;
                files.push((name.to_owned(), oid));
            }
        }
        let mut wanted: Vec<String> = files.iter().map(|(_, oid)| format!("{oid}\n")).collect();
        wanted.sort();
        wanted.dedup();
        let output =
            self.user("reading files of main").args(["cat-file", "--batch"]).input(wanted.concat()).ok()?;
        let contents = read_batch(&output);
        Ok(files.into_iter().filter_map(|(name, oid)| Some((name, contents.get(&oid)?.clone()))).collect())
    }
}
