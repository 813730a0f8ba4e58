//! The author and committer of a task's commits.

use std::sync::Arc;

use kernel::World;
use kernel::world::Task;
use machines::names::{AgentName, RunId};

use super::in_force::SettingsInForce;
use project::settings::{Author, Credit, Settings};

/// The agent that worked on a task last.
pub fn agent_of(in_force: &SettingsInForce, world: &World, task: &Task) -> AgentName {
    // `t-1.10` came after `t-1.9`.
    let number = |run: &RunId| run.as_str().rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
    let of_task = || world.runs.values().filter(|run| run.task == task.id);
    let last = || of_task().max_by_key(|run| number(&run.id));
    let run = task.work.run.as_ref().and_then(|run| world.run(run)).or_else(|| last().map(Arc::as_ref));
    run.map_or_else(|| in_force.settings.fleet.agent.clone(), |run| run.agent.clone())
}

/// Who the commits of a task are by.
pub fn committer(in_force: &SettingsInForce, world: &World, task: &Task) -> git::Agent {
    author(&in_force.settings, &agent_of(in_force, world, task))
}

/// Who the commits of an agent are by.
pub fn author(settings: &Settings, name: &AgentName) -> git::Agent {
    let author = settings.agents.get(name).map(|agent| agent.author.clone());
    let Author { name, mail } = author.unwrap_or_else(|| Author::of_agent(name.as_str()));
    let person = match settings.project.credit {
        Credit::Committer => git::Person::Committer,
        Credit::CoAuthor => git::Person::CoAuthor,
        Credit::None => git::Person::Absent,
    };
    git::Agent { name, mail, person }
}
