//! Runs main's own tests in a tree made like that of a merge: before agents start, and before an agent is asked to fix a failure.

use std::sync::Arc;

use kernel::command::Happened;
use machines::names::{EffectId, RunId, TaskId};
use smol_str::SmolStr;
use tokio::sync::mpsc;

use super::landing::{self, Ready};
use super::surroundings::Whose;
use super::test_runs::{self, TestRecord, Tested, Tests, TestsError};
use super::{Shared, endings, step_commands::StepCommand};
use project::workplace::PortLeases;

/// What the folders of main's tests are named by; it is nobody's task.
const NAME: &str = "main-tests";

/// Runs main's tests, unless they are known to pass. `None`: they were ended, and are run another time.
pub async fn run(
    shared: &Arc<Shared>,
    id: &EffectId,
    again: bool,
    mut words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
) -> Option<Happened> {
    loop {
        let of = shared.in_force().settings.tests();
        match test(shared, id.as_str(), again, words.as_deref_mut()).await {
            Ok(Some(what)) => return Some(what),
            // The settings were changed meanwhile: under the new ones, at once.
            Ok(None) if !shared.is_stopping() && shared.in_force().settings.tests() != of => {}
            Ok(None) => return None,
            Err(error) => {
                return Some(endings::failed(format_args!("main's tests could not be run: {error}")));
            }
        }
    }
}

/// One run of them. `again`: also where they are known to pass.
pub async fn test(
    shared: &Arc<Shared>,
    name: &str,
    again: bool,
    words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
) -> Result<Option<Happened>, TestsError> {
    // Its servers need ports as those of a task's tests do.
    let run = RunId::new(format!("{NAME}.1"))?;
    let tested = with_ports(shared, name, again, words, &run).await;
    let ports = PortLeases::new(&shared.layout.state(), &shared.in_force().settings.ports);
    // What is left is released with those of runs that are over.
    let _ = ports.release(&run);
    tested
}

async fn with_ports(
    shared: &Arc<Shared>,
    name: &str,
    again: bool,
    words: Option<&mut mpsc::UnboundedReceiver<StepCommand>>,
    run: &RunId,
) -> Result<Option<Happened>, TestsError> {
    let in_force = shared.in_force();
    let of = in_force.settings.tests();
    let repository = shared.repository.clone();
    let (main, tree) = shared
        .blocking(move || {
            let main = repository.main_tip()?;
            let tree = repository.tree_of(&main)?;
            Ok::<_, git::GitError>((main, tree))
        })
        .await?;
    let at = SmolStr::new(main.as_str());
    let green = |command: Option<String>, ran: bool| {
        let (of, main) = (of.clone(), at.clone());
        Happened::MainGreen { of, main, command, ran }
    };
    let red = |command: String, output: String| {
        let (of, main) = (of.clone(), at.clone());
        Ok(Some(Happened::MainRed { of, main, command, output }))
    };
    let record = |command: &str| TestRecord::of(shared, &tree, command);
    if let Some(command) = in_force.settings.test.command.clone().filter(|_| !again)
        && record(&command).is_green()
    {
        return Ok(Some(green(Some(command), false)));
    }
    let task = TaskId::new(NAME)?;
    let whose = Whose { task: &task, run: Some(run), worker: None };
    let _turn = shared.landing_folder.lock().await;
    let cwd = match landing::prepare(shared, name, whose, &main).await? {
        Ready::Yes(cwd) => cwd,
        Ready::Red { command, output } => return red(command, output),
        Ready::Ended => return Ok(None),
    };
    let Some(command) = test_runs::test_command(&in_force.settings, &cwd) else {
        return Ok(Some(green(None, true)));
    };
    let record = record(&command);
    if record.is_green() && !again {
        return Ok(Some(green(Some(command), false)));
    }
    let said = Some("main's own tests".to_owned());
    let tests = Tests { name: name.to_owned(), of: main, command: command.clone(), cwd, said };
    match test_runs::run_tests(shared, whose, tests, words).await? {
        Tested::Green => {
            record.write();
            Ok(Some(green(Some(command), true)))
        }
        Tested::Red { output, .. } => red(command, output),
        Tested::Ended => Ok(None),
    }
}
