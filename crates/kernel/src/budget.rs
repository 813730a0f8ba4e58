//! Budgets: what is left of each, and which one a step would pass.
//!
//! Before a step starts, its share is set aside in every scope at once, so that steps side by side cannot pass a
//! limit together. What was set aside and not spent is given back when the step ends.
//!
//! A step that ends without a price is estimated: by its tokens, at what those of the agent's other steps did cost.
//! Where the agent has no priced step, its share stays set aside. It is no cost, and yet a limit holds.

use crate::config::Micros;
use crate::world::{BudgetScope, Run, Task, Total, Unknown, World};
use imbl::OrdMap;
use machines::names::AgentName;

/// One budget, as a guard sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub scope: BudgetScope,
    pub limit: Micros,
    /// Spent, estimated and set aside.
    pub used: Micros,
}

impl Room {
    pub fn has(&self, amount: Micros) -> bool {
        self.used.saturating_add(amount) <= self.limit
    }
}

/// What the agent's own and the day's budget have left: they hold for every task.
pub fn shared_rooms(world: &World, agent: &AgentName, day: i64) -> Vec<Room> {
    let by_agent = world.spend.by_agent.get(agent).cloned().unwrap_or_default();
    let by_day = world.spend.by_day.get(&day).cloned().unwrap_or_default();
    let used = |total: &Total| total.cost + total.reserved + unpriced(world, &total.unknown).counted();
    [
        room(BudgetScope::Agent, world.config.agent(agent).budget, by_agent.raised, used(&by_agent)),
        room(BudgetScope::Day, world.config.budget.day, by_day.raised, used(&by_day)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the budgets of one task and its run have left.
pub fn own_rooms(world: &World, task: &Task, run: Option<&Run>) -> Vec<Room> {
    let budget = &world.config.budget;
    let counted = |unknown| unpriced(world, unknown).counted();
    let (raised, used) =
        run.map_or((0, 0), |run| (run.raised, run.spend.cost + run.reserved + counted(&run.spend.unknown)));
    let of_task = task.spend.cost + task.spend.reserved + counted(&task.spend.unknown);
    [
        room(BudgetScope::Run, budget.run, raised, used),
        room(BudgetScope::Task, budget.task, task.raised, of_task),
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

/// Steps without a price: what can be said of them all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpriced {
    /// Steps that are estimated, and what they did cost by that, without what is known of them.
    pub estimated_steps: u32,
    pub estimated: Micros,
    /// Steps of which nothing can be said, and what is set aside for them.
    pub unknown_steps: u32,
    pub held: Micros,
}

impl Unpriced {
    /// What a budget counts for them.
    pub fn counted(&self) -> Micros {
        self.estimated + self.held
    }
}

/// Looks at each agent's steps without a price beside those that have one.
pub fn unpriced(world: &World, unknown: &OrdMap<AgentName, Unknown>) -> Unpriced {
    let mut found = Unpriced::default();
    for (agent, unknown) in unknown {
        match rate(world, agent) {
            Some(rate) => {
                found.estimated_steps += unknown.steps;
                found.estimated += rate.of(unknown.tokens()).saturating_sub(unknown.known);
            }
            None => {
                found.unknown_steps += unknown.steps;
                found.held += unknown.held;
            }
        }
    }
    found
}

/// What one step without a price did cost by its tokens, where its agent has steps with one.
pub fn estimate(world: &World, agent: &AgentName, tokens: u64) -> Option<Micros> {
    rate(world, agent).map(|rate| rate.of(tokens))
}

/// So much for so many tokens.
struct Rate {
    cost: Micros,
    tokens: u64,
}

impl Rate {
    fn of(&self, tokens: u64) -> Micros {
        let micros = u128::from(tokens) * u128::from(self.cost) / u128::from(self.tokens);
        Micros::try_from(micros).unwrap_or(Micros::MAX)
    }
}

/// By the steps of the agent that are over and have a price. Only asked for where one has none.
fn rate(world: &World, agent: &AgentName) -> Option<Rate> {
    let total = world.spend.by_agent.get(agent)?;
    let unknown = total.unknown.get(agent).copied().unwrap_or_default();
    let tasks = world.workers.values().filter_map(|worker| worker.machine.task.as_ref());
    let runs = tasks.filter_map(|task| world.run_of(task));
    let under_way = runs.filter(|run| run.agent == *agent && run.step.is_some()).map(|run| run.metered);
    let (open_cost, open_tokens) = under_way.fold((0, 0), |(cost, tokens), metered| {
        (cost + metered.cost, tokens + metered.input_tokens + metered.output_tokens)
    });
    let cost = total.cost.saturating_sub(unknown.known).saturating_sub(open_cost);
    let tokens = (total.input_tokens + total.output_tokens).saturating_sub(unknown.tokens());
    let tokens = tokens.saturating_sub(open_tokens);
    (tokens > 0 && cost > 0).then_some(Rate { cost, tokens })
}
