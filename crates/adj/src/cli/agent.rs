//! `adj agent …`: which agents there are, and whether they may work.

use super::project::Project;
use super::text::{self, Table, dash};
use super::{Context, Failure};
use api::Exit;
use api::types::Nothing;
use api::types::agent::{Agent, Disable as Why};
use clap::{Args, Subcommand};
use machines::names::AgentName;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the agents of the settings, and those that are connected from outside
    #[command(after_help = "Example:\n  adj agent ls")]
    Ls,
    /// Disable an agent: it takes no further task and has no turn in a channel
    #[command(after_help = "\
Example:
  adj agent disable anna --reason 'too expensive today'

The agent finishes its current task; `adj pause RUN` stops that too. `adj agent enable` reverses it.")]
    Disable(Disable),
    /// Enable an agent again
    #[command(after_help = "\
Example:
  adj agent enable anna

In its channels the agent is IDLE: `adj channel add CHANNEL anna` puts it back into the queue.")]
    Enable(Enable),
}

#[derive(Debug, Args)]
pub struct Disable {
    /// Name of the agent
    name: String,
    /// Reason; `adj why` prints it for the agent's tasks
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Enable {
    /// Name of the agent
    name: String,
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let (agent, done): (Agent, _) = match command {
        Command::Ls => return list(&project, context),
        Command::Disable(Disable { name, reason }) => {
            (project.post(&path(&name, "disable")?, &Why { reason })?, "disabled")
        }
        Command::Enable(Enable { name }) => (project.post(&path(&name, "enable")?, &Nothing {})?, "enabled"),
    };
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(&agent))?),
        false => Ok(writeln!(context.out, "agent {} is {done}", text::visible(&agent.name))?),
    }
}

fn path(name: &str, what: &str) -> Result<String, Failure> {
    let name = AgentName::new(name).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    Ok(format!("/agents/{name}/{what}"))
}

fn list(project: &Project, context: Context) -> Result<(), Failure> {
    let agents: Vec<Agent> = project.get_all("/agents", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&agents))?);
    }
    let mut table = Table::new(&["NAME", "ADAPTER", "ROLE", "STATE", "RUNS", "DISABLED"]);
    for agent in agents {
        let disabled = agent.disabled.map(|it| match it.reason {
            Some(reason) => format!("by {}: {reason}", it.by),
            None => format!("by {}", it.by),
        });
        let (adapter, runs) = (dash(agent.adapter.map(|it| it.to_string())), agent.runs.len().to_string());
        table.row([
            agent.name,
            adapter,
            agent.role.to_string(),
            agent.state.to_string(),
            runs,
            dash(disabled),
        ]);
    }
    Ok(write!(context.out, "{table}")?)
}
