//! `adj shell`: a shell in a task's tree, with the sandbox and the environment of its agent. The agent may have left
//! anything there, such as git settings, so nothing in the tree runs as the plain user.
//!
//! While it is open, the fleet starts nothing in that tree and does not remove it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::Effect;
use kernel::effect::{StepStart, StepTree};
use machines::names::{AgentName, EffectId, TaskId, WorkerName};

use super::surroundings::{self, Folders, Names, ProjectContext, Purpose, SurroundingsError, Whose};
use super::{Missing, Shared, authorship};
use git::GitError;
use process::keeper::Spec;
use project::layout::Layout;
use project::settings::{Isolation, Settings};

/// How often it is looked whether a person has left.
const LOOK: Duration = Duration::from_millis(250);
/// Where neither a command nor `$SHELL` says what to run.
const SHELL: &str = "/bin/sh";

/// Who has the tree, and what is run in it.
pub struct ShellSession<'a> {
    pub task: &'a TaskId,
    /// The tree's name among the trees.
    pub tree: &'a str,
    /// The agent that works in it; the fleet's own where that is not in the settings any more.
    pub agent: &'a AgentName,
    pub worker: Option<&'a WorkerName>,
    /// Nothing: the user's own shell.
    pub command: &'a [String],
    /// Somebody sits at a terminal.
    pub terminal: bool,
}

/// Why no shell can be opened.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
    #[error("its tree {} does not exist", .0.display())]
    NoTree(PathBuf),
}

/// Keeps the fleet out of a task's tree for as long as what is returned is open, in this process or in one that has
/// inherited it.
pub fn hold(layout: &Layout, task: &TaskId) -> io::Result<File> {
    let path = lock(layout, task);
    let folder = path.parent().unwrap_or(&path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = File::options().create(true).append(true).mode(0o600).open(&path)?;
    // Several may be in the same tree; the fleet alone wants it for itself.
    file.lock_shared()?;
    Ok(file)
}

/// Whether somebody is in the task's tree now.
fn is_held(layout: &Layout, task: &TaskId) -> bool {
    File::open(lock(layout, task))
        .is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

fn lock(layout: &Layout, task: &TaskId) -> PathBuf {
    layout.state().join("shells").join(task.as_str())
}

/// Returns when nobody is in the tree that the effect is about. False: it is not wanted any more, or the fleet stops.
pub(super) async fn is_left(shared: &Arc<Shared>, id: &EffectId, effect: &Effect) -> bool {
    let task = match effect {
        Effect::StartStep { of: StepStart::Task { task, .. }, .. }
        | Effect::PrepareTree { of: StepTree::Task { task, .. } }
        | Effect::RunGate { task, .. }
        | Effect::RemoveTree { task, .. } => task,
        _ => return true,
    };
    while is_held(&shared.layout, task) {
        shared.notice_once(format!("{task} waits: `adj shell` is open in its tree"));
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shared.stopping() => return false,
        }
        if !shared.world().effects.contains_key(id) {
            return false;
        }
    }
    true
}

/// What is to be run, and within what.
pub fn spec(
    layout: &Layout,
    settings: &Settings,
    adj: &Path,
    session: &ShellSession,
) -> Result<Spec, ShellError> {
    let repository = super::open_repository(layout, settings)?;
    let tree = repository.places().trees.join(session.tree);
    if !tree.is_dir() {
        return Err(ShellError::NoTree(tree));
    }
    let name =
        if settings.agents.contains_key(session.agent) { session.agent } else { &settings.fleet.agent };
    let agent = settings.agents.get(name).ok_or_else(|| Missing::Agent(name.clone()))?;
    let folders = Folders::make(layout, session.task)?;
    let context = ProjectContext { layout, repository: &repository, adj, settings };
    let whose = Whose { task: session.task, run: None, worker: session.worker };
    let git = match settings.fleet.isolation {
        Isolation::Worktree => authorship::author(settings, name).settings(&repository),
        Isolation::Clone => Vec::new(),
    };
    let mut env = surroundings::variables(context, Names::OfAgent(&agent.env), whose, git)?;
    if session.terminal {
        // Somebody looks at this one.
        for name in ["TERM", "COLORTERM"] {
            env.retain(|(known, _)| known != name);
            env.extend(std::env::var(name).ok().map(|value| (name.to_owned(), value)));
        }
    }
    let shell = || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
    let argv = match session.command {
        [] => vec![shell().unwrap_or_else(|| SHELL.to_owned())],
        command => command.to_vec(),
    };
    let sandbox = surroundings::sandbox(context, &tree, &folders, Purpose::Shell(agent, &argv[0]), None)?;
    Ok(Spec {
        env: env.into_iter().collect(),
        limits: surroundings::limits(settings),
        sandbox,
        ..Spec::new(format!("shell-{}", session.task), argv, tree)
    })
}

impl Shared {
    pub(super) fn context<'a>(&'a self, settings: &'a Settings) -> ProjectContext<'a> {
        ProjectContext { layout: &self.layout, repository: &self.repository, adj: &self.adj, settings }
    }
}
