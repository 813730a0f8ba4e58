//! Budgets: what is left of each, and which one a step would pass.
//!
//! Before a step starts, its share is set aside in every scope at once, so that steps side by side cannot pass a
//! limit together. What was set aside and not spent is given back when the step ends.

use crate::config::Micros;
use crate::world::{BudgetScope, Run, Task, World};
use machines::names::AgentName;

/// One budget, as a guard sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub scope: BudgetScope,
    pub limit: Micros,
    /// Spent and set aside.
    pub used: Micros,
}

impl Room {
    pub fn has(&self, amount: Micros) -> bool {
        self.used.saturating_add(amount) <= self.limit
    }
}

/// Every budget that work on `task` by `agent` draws on, on that day. Budgets without a limit are left out.
pub fn rooms(world: &World, task: &Task, run: Option<&Run>, agent: &AgentName, day: i64) -> Vec<Room> {
    let config = &world.config;
    let by_agent = world.spend.by_agent.get(agent).copied().unwrap_or_default();
    let by_day = world.spend.by_day.get(&day).copied().unwrap_or_default();
    let room = |scope, limit: Option<Micros>, raised: Micros, used| {
        limit.map(|limit| Room { scope, limit: limit.saturating_add(raised), used })
    };
    [
        room(
            BudgetScope::Run,
            config.budget.run,
            run.map_or(0, |run| run.raised),
            run.map_or(0, |run| run.spend.cost + run.reserved),
        ),
        room(BudgetScope::Task, config.budget.task, task.raised, task.spend.cost + task.spend.reserved),
        room(
            BudgetScope::Agent,
            config.agent(agent).budget,
            by_agent.raised,
            by_agent.cost + by_agent.reserved,
        ),
        room(BudgetScope::Day, config.budget.day, by_day.raised, by_day.cost + by_day.reserved),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first budget that has no room for one more step.
pub fn exhausted(world: &World, task: &Task, run: Option<&Run>, agent: &AgentName, day: i64) -> Option<Room> {
    rooms(world, task, run, agent, day).into_iter().find(|room| !room.has(world.config.budget.step))
}

/// The first budget that is passed already: a step cost more than was set aside for it.
pub fn passed(world: &World, task: &Task, run: Option<&Run>, agent: &AgentName, day: i64) -> Option<Room> {
    rooms(world, task, run, agent, day).into_iter().find(|room| room.used > room.limit)
}
