//! The project's git directories, with an existing folder for the trees that is ours.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use super::RunError;
use git::{self, GitError, Places, Repository};
use project::layout::Layout;
use project::settings::{self, Settings};

/// The project's git directories, with a folder for the trees that is there and ours.
pub fn settle(
    layout: &Layout,
    settings: &Settings,
    notices: &mpsc::UnboundedSender<String>,
) -> Result<Repository, RunError> {
    // Asked only where the trees are to lie in the checkout; what cannot be known counts as tracked.
    let tracks =
        |path: &Path| open_repository(layout, settings).and_then(|it| it.tracks(path)).unwrap_or(true);
    let settled = layout.settle_trees(&settings.fleet.trees, &tracks)?;
    for said in settled.said {
        let _ = notices.send(said);
    }
    Ok(open_with_trees(layout, settings, settled.path)?)
}

/// The project's git directories, as the settings want them.
pub fn open_repository(layout: &Layout, settings: &Settings) -> Result<Repository, GitError> {
    open_with_trees(layout, settings, layout.trees(&settings.fleet.trees))
}

fn open_with_trees(layout: &Layout, settings: &Settings, trees: PathBuf) -> Result<Repository, GitError> {
    Repository::open(Places {
        root: layout.root().to_owned(),
        state: layout.state(),
        trees,
        temporary: layout.temporary_of_tasks(),
        main: settings.project.main.clone(),
        isolation: match settings.fleet.isolation {
            settings::Isolation::Clone => git::Isolation::Clone,
            settings::Isolation::Worktree => git::Isolation::Worktree,
        },
    })
}
