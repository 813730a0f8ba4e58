//! Detects the commit hooks of a repository. Git runs none of them in trees or at landing: a tree is a clone, which has no
//! hooks, and merges are made without them. Tests do run there, so `adj init` offers to add the hooks to them.

use super::ecosystem::Tree;
use std::path::Path;

/// How the hooks of one tool are found.
type Find = fn(&Tree, &Git) -> Option<HookSetup>;

/// A way to have commit hooks. The first that is found counts.
#[rustfmt::skip]
const TABLE: &[(&str, Find)] = &[
    ("pre-commit", |tree, _| {
        let by = tree.first(&[".pre-commit-config.yaml", ".pre-commit-config.yml"])?;
        Some(HookSetup { by: by.to_owned(), command: Some("pre-commit run --all-files".to_owned()), cache: Some("~/.cache/pre-commit") })
    }),
    ("husky", |tree, _| {
        let by = tree.first(&[".husky/pre-commit"])?;
        Some(HookSetup { by: by.to_owned(), command: Some("sh .husky/pre-commit".to_owned()), cache: None })
    }),
    ("lefthook", |tree, _| {
        let by = tree.first(&["lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", "lefthook.toml"])?;
        Some(HookSetup { by: by.to_owned(), command: Some("lefthook run pre-commit --all-files".to_owned()), cache: None })
    }),
    ("core.hooksPath", |tree, git| {
        let path = git.hooks_path.as_deref()?;
        let inside = Path::new(path).strip_prefix(tree.root).unwrap_or(Path::new(path)).to_str()?.trim_end_matches('/');
        let hook = format!("{inside}/pre-commit");
        // A folder elsewhere is on this machine alone.
        let is_inside = !inside.starts_with(['/', '~']) && !inside.split('/').any(|part| part == "..") && tree.has(&hook);
        Some(HookSetup { by: format!("core.hooksPath = {path}"), command: is_inside.then(|| format!("./{hook}")), cache: None })
    }),
    ("git", |_, git| {
        let path = git.hook.as_deref()?;
        Some(HookSetup { by: path.to_owned(), command: None, cache: None })
    }),
];

pub use git::CommitHooks as Git;

/// The commit hooks of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSetup {
    /// What they were found by.
    pub by: String,
    /// Runs them over all files, for the tests. Absent: they are not in the repository.
    pub command: Option<String>,
    /// Where their programs are kept.
    pub cache: Option<&'static str>,
}

/// The commit hooks of this repository, and what manages them.
pub fn find(root: &Path, git: &Git) -> Option<(&'static str, HookSetup)> {
    let tree = Tree { root };
    let mut found = TABLE.iter().filter_map(|(name, find)| find(&tree, git).map(|hooks| (*name, hooks)));
    found.next()
}

#[cfg(test)]
mod test {
    use super::*;
    use testing::Folder;

    fn check(files: &[&str], git: Git, expected: Option<(&str, Option<&str>)>) {
        let folder = Folder::new();
        for name in files {
            folder.write(name, "");
        }
        let found = find(&folder.path, &git);
        let found = found.as_ref().map(|(name, hooks)| (*name, hooks.command.as_deref()));
        assert_eq!(found, expected, "in {files:?} with {git:?}");
    }

    #[test]
    fn commit_hooks_are_found_by_what_manages_them() {
        let path = |path: &str| Git { hooks_path: Some(path.to_owned()), hook: None };
        check(&[], Git::default(), None);
        check(
            &[".pre-commit-config.yaml"],
            Git::default(),
            Some(("pre-commit", Some("pre-commit run --all-files"))),
        );
        check(&[".husky/pre-commit"], path(".husky/_"), Some(("husky", Some("sh .husky/pre-commit"))));
        check(
            &["lefthook.yml"],
            Git::default(),
            Some(("lefthook", Some("lefthook run pre-commit --all-files"))),
        );
        check(
            &["tools/hooks/pre-commit"],
            path("tools/hooks"),
            Some(("core.hooksPath", Some("./tools/hooks/pre-commit"))),
        );
        check(&[], path("/home/a/hooks"), Some(("core.hooksPath", None)));
        check(&[], path("../hooks"), Some(("core.hooksPath", None)));
        let own = Git { hooks_path: None, hook: Some(".git/hooks/pre-commit".to_owned()) };
        check(&[], own, Some(("git", None)));
    }
}
