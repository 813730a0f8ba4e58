//! The person's checkout, as far as working trees are linked to it or would lead back into it.

use std::path::PathBuf;

use git::{GitError, Repository};
use project::layout::Layout;
use project::settings::{Settings, include};
use project::workplace::{self, LeadBack};

/// The ways by which a tree would lead its tests back into the person's checkout.
pub fn leads_back(
    layout: &Layout,
    repository: &Repository,
    settings: &Settings,
) -> Result<Vec<LeadBack>, GitError> {
    let worktree = &settings.worktree;
    let include = include::in_force(layout).text;
    if worktree.symlink.is_empty() && worktree.copy.is_empty() && include.is_empty() {
        return Ok(Vec::new());
    }
    with_checkout(repository, |checkout| workplace::leads_back(checkout, settings, &include))
}

/// What of the person's checkout every tree links to: where the links lead.
pub fn linked(repository: &Repository, settings: &Settings) -> Result<Vec<PathBuf>, GitError> {
    let patterns = &settings.worktree.symlink;
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    with_checkout(repository, |checkout| {
        checkout.shared(patterns).iter().map(|path| checkout.root.join(path)).collect()
    })
}

fn with_checkout<T>(
    repository: &Repository,
    look: impl FnOnce(&workplace::Checkout<'_>) -> T,
) -> Result<T, GitError> {
    let places = repository.places();
    let (all, ignored) = (repository.checkouts(), repository.ignored_in_checkout()?);
    Ok(look(&workplace::Checkout { root: &places.root, all: &all, trees: &places.trees, ignored: &ignored }))
}
