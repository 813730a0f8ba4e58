//! Budgets: what is left of each, and which one a step would pass.
//!
//! Before a step starts, its share is set aside in every scope at once, so that steps side by side cannot pass a
//! limit together. What was set aside and not spent is given back when the step ends.

use crate::config::Micros;
use crate::world::{BudgetScope, Run, Task, Total, World};
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

/// What the agent's own and the day's budget have left: they hold for every task.
pub fn shared_rooms(world: &World, agent: &AgentName, day: i64) -> Vec<Room> {
    let by_agent = world.spend.by_agent.get(agent).copied().unwrap_or_default();
    let by_day = world.spend.by_day.get(&day).copied().unwrap_or_default();
    let used = |total: Total| total.cost + total.reserved;
    [
        room(BudgetScope::Agent, world.config.agent(agent).budget, by_agent.raised, used(by_agent)),
        room(BudgetScope::Day, world.config.budget.day, by_day.raised, used(by_day)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the budgets of one task and its run have left.
pub fn own_rooms(world: &World, task: &Task, run: Option<&Run>) -> Vec<Room> {
    let budget = &world.config.budget;
    let (raised, used) = run.map_or((0, 0), |run| (run.raised, run.spend.cost + run.reserved));
    [
        room(BudgetScope::Run, budget.run, raised, used),
        room(BudgetScope::Task, budget.task, task.raised, task.spend.cost + task.spend.reserved),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A budget without a limit has no room to speak of.
fn room(scope: BudgetScope, limit: Option<Micros>, raised: Micros, used: Micros) -> Option<Room> {
    limit.map(|limit| Room { scope, limit: limit.saturating_add(raised), used })
}

fn rooms<'w>(
    world: &'w World,
    task: &'w Task,
    run: &'w Run,
    day: i64,
) -> impl Iterator<Item = Room> + use<'w> {
    own_rooms(world, task, Some(run)).into_iter().chain(shared_rooms(world, &run.agent, day))
}

/// The first budget that has no room for one more step.
pub fn exhausted(world: &World, task: &Task, run: &Run, day: i64) -> Option<Room> {
    rooms(world, task, run, day).find(|room| !room.has(world.config.budget.step))
}

/// The first budget that is passed already: a step cost more than was set aside for it.
pub fn passed(world: &World, task: &Task, run: &Run, day: i64) -> Option<Room> {
    rooms(world, task, run, day).find(|room| room.used > room.limit)
}
