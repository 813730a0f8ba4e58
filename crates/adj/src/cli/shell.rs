//! `adj shell`: a person's way into a task's tree.

use super::project::Project;
use super::text::dash;
use super::{Context, Exit, Failure, named};
use api::types::task::WayIn;
use clap::Args;
use fleet::shell::{self, ShellSession};
use machines::names::{AgentName, EffectId, TaskId, WorkerName};
use process::keeper::{self, Found};
use project::layout::Layout;
use std::io::IsTerminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj shell c-abc1
  adj shell A -- git log --oneline -5
  adj shell c-abc1 -- sh -c 'make test'

The shell has the sandbox and the environment of the task's agent: only the working tree, its temporary directory and \
`sandbox.caches` are writable. While the shell is open, the fleet does not use or remove the tree. Your changes there \
become part of the task. The exit code is that of the command.")]
pub struct Shell {
    /// Task, or the worker that works on it
    #[arg(value_name = "TASK|WORKER")]
    name: String,
    /// Command to run instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(command: &Shell, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    project.check_here("`adj shell`")?;
    let id = named::task(&project, &command.name)?.line.id;
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error.to_string());
    let layout = project.layout();
    let name = TaskId::new(&id).map_err(|bad| failed(&bad))?;
    // First the tree is held, then it is looked at: nothing can begin in between.
    let held = shell::hold(layout, &name).map_err(|error| failed(&error))?;
    let found: WayIn = project.get(&format!("/tasks/{id}/shell"))?;
    refuse_while_kept(layout, &found, &id)?;
    let agent = AgentName::new(&found.agent).map_err(|bad| failed(&bad))?;
    let worker = found.worker.as_ref().and_then(|name| WorkerName::new(name).ok());
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let settings = project::settings::trust::in_force(layout).map_err(|error| failed(&error))?.settings;
    let adj = std::env::current_exe().map_err(|error| failed(&error))?;
    let session = ShellSession {
        task: &name,
        tree: found.tree.as_deref().unwrap_or_default(),
        agent: &agent,
        worker: worker.as_ref(),
        command: &command.command,
        terminal,
    };
    let spec = shell::spec(layout, &settings, &adj, &session).map_err(|why| {
        Failure::new(Exit::Refused, format!("cannot open a shell in the working tree of `{id}`: {why}"))
            .hint(format!("`adj why {id}` says what it waits for; `adj diff {id}` shows its changes"))
    })?;
    if !context.globals.quiet {
        let how = if spec.sandbox.is_some() { "in the agent's sandbox" } else { "without a sandbox" };
        let (status, branch) = (found.status, dash(found.branch.as_ref()));
        eprintln!("{id} is {status}: {}, branch {branch}", spec.cwd.display());
        eprintln!("{how}; the fleet leaves this tree alone until you exit");
    }
    context.out.flush()?;
    // In this process's place: terminal, signals and exit code are the shell's own.
    let error = keeper::give_way(&adj, &spec, &held);
    Err(failed(&format_args!("{}: {error}", adj.display())))
}

/// A fleet that was killed leaves its agents to their keepers, which go on for a while.
fn refuse_while_kept(layout: &Layout, found: &WayIn, id: &str) -> Result<(), Failure> {
    let step = found.step.as_ref().and_then(|step| EffectId::new(step).ok());
    match step.map(|step| keeper::look(&layout.step(&step))) {
        Some(Ok(Found::Alive(_))) => {
            let message = format!("a step of `{id}` is still running in its tree, without a fleet");
            Err(Failure::new(Exit::Refused, message)
                .hint(format!("`adj run` takes it up again; then `adj kill {id}` ends it")))
        }
        _ => Ok(()),
    }
}
