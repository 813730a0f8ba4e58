//! Test runs: the tests of a tree, run in the sandbox of its agent under a keeper, and the record that a tree was green.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::command::RedBy;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::kept_command::{self, CommandError, KeptCommand, Ran};
use super::step_commands::StepCommand;
use super::surroundings::{self, Purpose, SurroundingsError, Whose};
use super::trees::TreeError;
use super::{Missing, Shared, endings};
use git::{GitError, Oid};
use log::owner::SubmitError;
use process::keeper::Reason;
use project::workplace;

/// Why tests could not be run. It says nothing about the work.
#[derive(Debug, thiserror::Error)]
pub enum TestsError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Name(#[from] machines::names::BadName),
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// A test run to make.
pub struct Tests {
    pub name: String,
    /// What is said of them where they take long; nothing is said of an agent's gate, which its worker shows.
    pub said: Option<String>,
    /// The commit whose files they are run on.
    pub of: Oid,
    pub command: String,
    pub cwd: PathBuf,
}

/// What a test run is on: it counts for this commit, tested by this command.
fn on(commit: &Oid, command: &str) -> String {
    format!("{commit} {command}")
}

/// The commit that the effect's tests run on, or ran on: a process before this one has begun them.
pub async fn under_test(shared: &Arc<Shared>, id: &str) -> Result<Option<Oid>, CommandError> {
    let of = kept_command::standing(shared, id).await?;
    Ok(of.and_then(|of| Oid::new(of.split(' ').next().unwrap_or_default())))
}

/// What came of a test run.
pub enum Tested {
    Green,
    /// The part of the output that says what is wrong.
    Red {
        output: String,
        by: RedBy,
    },
    /// It was ended; it says nothing about the work.
    Ended,
}

/// The command that tests a tree: the user's, or what the repository holds. `None`: there is nothing to run.
pub fn test_command(settings: &project::settings::Settings, tree: &std::path::Path) -> Option<String> {
    settings.test.command.clone().or_else(|| workplace::ecosystem::find(tree).command().map(str::to_owned))
}

/// After how long a test run that holds others up is told of.
const TOLD_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// Runs the tests as the agent would: in its sandbox, under a keeper, with the environment that is for tests.
pub async fn run_tests(
    shared: &Arc<Shared>,
    whose: Whose<'_>,
    tests: Tests,
    words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
) -> Result<Tested, TestsError> {
    let in_force = shared.in_force();
    let folders = surroundings::Folders::make(&shared.layout, whose.task)?;
    let limit = in_force.settings.test.timeout;
    let command = tests.command.clone();
    let kept = KeptCommand {
        name: tests.name,
        of: on(&tests.of, &tests.command),
        argv: kept_command::shell(&tests.command),
        env: surroundings::environment_of_tests(shared, &in_force, whose)?,
        sandbox: surroundings::sandbox(
            shared.context(&in_force.settings),
            &tests.cwd,
            &folders,
            Purpose::Tests,
            whose.run,
        )?,
        cwd: tests.cwd,
        limit,
    };
    let _slot = shared.tests.acquire().await;
    let _shown = shared.show_tests(&kept.name, &command);
    let long = async {
        tokio::time::sleep(TOLD_AFTER).await;
        if let Some(what) = &tests.said {
            shared.notice(format!("{what}: `{command}` is running (limit {} s)", limit.as_secs()));
        }
        std::future::pending::<Infallible>().await
    };
    let ran = tokio::select! {
        ran = kept_command::run(shared, kept, words) => ran?,
        never = long => match never {},
    };
    Ok(match ran {
        Ran::Ended => Tested::Ended,
        Ran::Over { exit, .. } if exit.succeeded() => Tested::Green,
        Ran::Over { exit, output } => {
            let failing = workplace::failing_part(&output, in_force.settings.limits.test_output_bytes);
            let by = match &exit.reason {
                Reason::CouldNotStart(_) => RedBy::Environment,
                _ => workplace::red_by(exit.code, exit.signal, &tests.command, &output),
            };
            let ended = endings::how_it_ended(&exit, limit);
            Tested::Red { output: format!("`{}` {ended}.\n\n{failing}", tests.command), by }
        }
    })
}

/// That a tree was tested green, by its id, the command and the settings that it was run under. A cache: without it the
/// tests are run again.
pub struct TestRecord {
    path: PathBuf,
}

impl TestRecord {
    pub fn of(shared: &Shared, tree: &Oid, command: &str) -> TestRecord {
        let of = format!("{}\0{command}", shared.in_force().settings.tests());
        let of = base::hex::hex(&Sha256::digest(of.as_bytes())[..8]);
        TestRecord { path: shared.layout.tested().join(format!("{tree}-{of}")) }
    }

    pub fn is_green(&self) -> bool {
        self.path.exists()
    }

    pub fn write(&self) {
        // One that is not written costs a test run.
        let _ = self.path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(&self.path, "");
    }
}
