//! Repositories that `adj init` refuses, each with the reason and what to do.

use super::{GitError, Repository, read_or_empty, references};

/// A reason why work cannot land in this repository as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Shallow,
    PartialClone,
    /// The files or folders that are repositories of their own.
    Submodules(Vec<String>),
    /// Where LFS is asked for.
    Lfs(Vec<String>),
    MainInTwoWorktrees {
        main: String,
        at: Vec<String>,
    },
    NoMain {
        main: String,
        branches: Vec<String>,
    },
    NoCommit,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Shallow => f.write_str("the repository is a shallow clone: history is missing"),
            Obstacle::PartialClone => f.write_str("the repository is a partial clone: objects are missing"),
            Obstacle::Submodules(paths) => write!(f, "the repository has submodules: {}", paths.join(", ")),
            Obstacle::Lfs(files) => {
                write!(f, "the repository has files in LFS, according to {}", files.join(", "))
            }
            Obstacle::MainInTwoWorktrees { main, at } => {
                write!(f, "branch `{main}` is checked out more than once: {}", at.join(", "))
            }
            Obstacle::NoMain { main, .. } => write!(f, "there is no branch `{main}`"),
            Obstacle::NoCommit => f.write_str("the repository has no commit yet"),
        }
    }
}

impl Obstacle {
    /// The way out.
    pub fn hint(&self) -> String {
        match self {
            Obstacle::Shallow => "fetch the rest with `git fetch --unshallow`".to_owned(),
            Obstacle::PartialClone => "clone the repository again, without `--filter`".to_owned(),
            Obstacle::Submodules(_) => {
                "submodules are not supported yet; work in the submodule's own repository".to_owned()
            }
            Obstacle::Lfs(_) => "LFS is not supported yet; work in a repository without it".to_owned(),
            Obstacle::MainInTwoWorktrees { main, at } => {
                let last = at.last().map_or("", String::as_str);
                format!("leave one checkout of `{main}`: `git -C {last} checkout --detach`")
            }
            Obstacle::NoMain { branches, .. } if branches.is_empty() => {
                "create the branch, with a commit".to_owned()
            }
            Obstacle::NoMain { branches, .. } => {
                format!(
                    "set `main` in adjutant.toml to the branch that receives finished work: {}",
                    branches.join(", ")
                )
            }
            Obstacle::NoCommit => {
                "make a first commit: `git commit --allow-empty -m 'First commit'`".to_owned()
            }
        }
    }
}

impl Repository {
    /// Everything that stands in the way of working with this repository. An empty list means that there is nothing.
    pub fn obstacles(&self) -> Result<Vec<Obstacle>, GitError> {
        let inner = &self.inner;
        let mut found = Vec::new();
        if inner.git_dir.join("shallow").exists() {
            found.push(Obstacle::Shallow);
        }
        if inner.user.partial_clone {
            found.push(Obstacle::PartialClone);
        }
        let heads = references::read(self.user("listing branches"), &["refs/heads/"])?;
        let main = inner.places.main.clone();
        let Some(tip) = heads.iter().find(|head| head.name == self.main_reference()) else {
            let branches: Vec<String> = heads
                .iter()
                .map(|head| head.name.trim_start_matches("refs/heads/").to_owned())
                .take(10)
                .collect();
            found.push(if heads.is_empty() {
                Obstacle::NoCommit
            } else {
                Obstacle::NoMain { main, branches }
            });
            return Ok(found);
        };
        let listed =
            self.user("listing main's files").args(["ls-tree", "-r", "-z", tip.oid.as_str()]).long().ok()?;
        let mut submodules = Vec::new();
        let mut attributes = Vec::new();
        for line in listed.split(|byte| *byte == 0) {
            let line = String::from_utf8_lossy(line).into_owned();
            let Some((what, path)) = line.split_once('\t') else { continue };
            if what.starts_with("160000 ") {
                submodules.push(path.to_owned());
            }
            if path == ".gitattributes" || path.ends_with("/.gitattributes") {
                attributes.push((path.to_owned(), what.rsplit(' ').next().unwrap_or_default().to_owned()));
            }
        }
        if !submodules.is_empty() {
            found.push(Obstacle::Submodules(submodules));
        }
        let mut lfs = Vec::new();
        for (path, blob) in attributes {
            let Some(blob) = super::Oid::new(&blob) else { continue };
            let content = self.user("reading attributes").args(["cat-file", "blob", blob.as_str()]).ok()?;
            if asks_for_lfs(&String::from_utf8_lossy(&content)) {
                lfs.push(path);
            }
        }
        if asks_for_lfs(&read_or_empty(&inner.git_dir.join("info/attributes"))?) {
            lfs.push(".git/info/attributes".to_owned());
        }
        if !lfs.is_empty() {
            found.push(Obstacle::Lfs(lfs));
        }
        let worktrees = self.user("listing worktrees").args(["worktree", "list", "--porcelain"]).ok()?;
        let worktrees = String::from_utf8_lossy(&worktrees).into_owned();
        let branch = format!("branch {}", self.main_reference());
        let at: Vec<String> = worktrees
            .split("\n\n")
            .filter(|entry| entry.lines().any(|line| line == branch))
            .filter_map(|entry| {
                entry.lines().find_map(|line| line.strip_prefix("worktree ")).map(str::to_owned)
            })
            .collect();
        if at.len() > 1 {
            found.push(Obstacle::MainInTwoWorktrees { main, at });
        }
        Ok(found)
    }
}

fn asks_for_lfs(attributes: &str) -> bool {
    let line_asks = |line: &str| {
        !line.trim_start().starts_with('#') && line.split_whitespace().any(|word| word == "filter=lfs")
    };
    attributes.lines().any(line_asks)
}
