//! Budgets: what is left of each, and which one a step would pass.
//!
//! Before a step starts, its share is set aside in every scope at once, so that steps side by side cannot pass a
//! limit together. What was set aside and not spent is given back when the step ends.
//!
//! A step that ends without a price is estimated: by its tokens, at what those of the same model's other steps did
//! cost, or of the agent's where the settings name no model. Where none has a price, its share stays set aside. It is no cost, and yet a limit holds.
//!
//! A budget that has no room for a step asks a person, with numbers, wherever it stops something: a worker in the middle of
//! a task, or a task that no worker may take because of it.

use crate::config::Micros;
use crate::world::{BudgetScope, Run, Tariff, Task, Total, Unknown, World};
use imbl::OrdMap;
use machines::names::{AgentName, TaskId};

/// One budget, as a guard sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    pub scope: BudgetScope,
    pub limit: Micros,
    /// Spent and estimated: no step that ends gives it back.
    pub spent: Micros,
    /// Spent, estimated and set aside.
    pub used: Micros,
}

impl Headroom {
    pub fn has(&self, amount: Micros) -> bool {
        self.used.saturating_add(amount) <= self.limit
    }

    /// There is no room, and steps under way that give back what they do not spend would change nothing.
    pub fn is_spent(&self, amount: Micros) -> bool {
        self.spent.saturating_add(amount) > self.limit
    }

    /// What must be added before a step fits.
    pub fn missing(&self, amount: Micros) -> Micros {
        self.used.saturating_add(amount).saturating_sub(self.limit)
    }
}

/// What is set aside for one step: `step_usd`, or a whole budget where that is less. Otherwise nothing could ever begin
/// under a small budget.
pub fn share(world: &World, agent: &AgentName) -> Micros {
    let budget = &world.config.budget;
    let of_agent = world.config.agents.get(agent).and_then(|agent| agent.budget);
    let limits = [budget.run, budget.task, budget.day, of_agent];
    limits.into_iter().flatten().fold(budget.step, Micros::min).max(1)
}

/// Whether anything could ever be kept from beginning by a budget.
pub fn are_there(world: &World) -> bool {
    let budget = &world.config.budget;
    budget.run.or(budget.task).or(budget.day).is_some()
        || world.config.agents.values().any(|agent| agent.budget.is_some())
}

/// A budget in the settings.
pub fn limit(world: &World, scope: BudgetScope, agent: &AgentName) -> Option<Micros> {
    let budget = &world.config.budget;
    match scope {
        BudgetScope::Run => budget.run,
        BudgetScope::Task => budget.task,
        BudgetScope::Agent => world.config.agents.get(agent).and_then(|agent| agent.budget),
        BudgetScope::Day => budget.day,
    }
}

/// What a person is asked where a budget has no room for a step.
pub fn question(world: &World, room: &Headroom, agent: &AgentName, task: Option<&TaskId>) -> String {
    let share = share(world, agent);
    let default = limit(world, room.scope, agent).unwrap_or(0).max(room.missing(share));
    let task = task.map_or("it", TaskId::as_str);
    let who = match room.scope {
        BudgetScope::Run => format!("the run of {task} has spent"),
        BudgetScope::Task => format!("{task} has spent"),
        BudgetScope::Agent => format!("agent {agent} has spent"),
        BudgetScope::Day => "all tasks of today have spent".to_owned(),
    };
    let aside = match room.used.saturating_sub(room.spent) {
        0 => String::new(),
        aside => format!(", {} is set aside for steps under way", dollars(aside)),
    };
    format!(
        "The {} budget is reached: {who} {} of {}{aside}; a step sets {} aside; approving adds {}, or another amount",
        room.scope,
        dollars(room.spent),
        dollars(room.limit),
        dollars(share),
        dollars(default),
    )
}

/// Dollars with as many digits as there are, and at least cents.
pub fn dollars(micros: Micros) -> String {
    let digits = format!("{:06}", micros % 1_000_000);
    let fraction = digits.trim_end_matches('0');
    format!("${}.{fraction:0<2}", micros / 1_000_000)
}

/// What the agent's own and the day's budget have left: they hold for every task.
pub fn shared_rooms(world: &World, agent: &AgentName, day: i64) -> Vec<Headroom> {
    let by_agent = world.spend.by_agent.get(agent).cloned().unwrap_or_default();
    let by_day = world.spend.by_day.get(&day).cloned().unwrap_or_default();
    let used = |total: &Total| (total.cost + unpriced(world, &total.unknown).counted(), total.reserved);
    [
        room(world, BudgetScope::Agent, agent, by_agent.raised, used(&by_agent)),
        room(world, BudgetScope::Day, agent, by_day.raised, used(&by_day)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the budgets of one task and its run have left.
pub fn own_rooms(world: &World, task: &Task, run: Option<&Run>) -> Vec<Headroom> {
    let counted = |unknown| unpriced(world, unknown).counted();
    let (raised, used) = run.map_or((0, (0, 0)), |run| {
        (run.raised, (run.spend.cost + counted(&run.spend.unknown), run.reserved))
    });
    let of_task = (task.spend.cost + counted(&task.spend.unknown), task.spend.reserved);
    let nobody = &world.config.fleet.agent;
    [
        room(world, BudgetScope::Run, nobody, raised, used),
        room(world, BudgetScope::Task, nobody, task.raised, of_task),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A budget without a limit has no room to speak of.
fn room(
    world: &World,
    scope: BudgetScope,
    agent: &AgentName,
    raised: Micros,
    (spent, aside): (Micros, Micros),
) -> Option<Headroom> {
    let limit = limit(world, scope, agent)?.saturating_add(raised);
    Some(Headroom { scope, limit, spent, used: spent.saturating_add(aside) })
}

fn rooms<'w>(
    world: &'w World,
    task: &'w Task,
    run: &'w Run,
    day: i64,
) -> impl Iterator<Item = Headroom> + use<'w> {
    own_rooms(world, task, Some(run)).into_iter().chain(shared_rooms(world, &run.agent, day))
}

/// The first budget that has no room for one more step.
pub fn exhausted(world: &World, task: &Task, run: &Run, day: i64) -> Option<Headroom> {
    let share = share(world, &run.agent);
    rooms(world, task, run, day).find(|room| !room.has(share))
}

/// The first budget that is passed already: a step cost more than was set aside for it.
pub fn passed(world: &World, task: &Task, run: &Run, day: i64) -> Option<Headroom> {
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

/// Looks at the steps of each model or agent without a price beside those that have one.
pub fn unpriced(world: &World, unknown: &OrdMap<Tariff, Unknown>) -> Unpriced {
    let mut found = Unpriced::default();
    for (tariff, unknown) in unknown {
        match rate(world, tariff) {
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

/// What one step without a price did cost by its tokens, where its model or agent has steps with one.
pub fn estimate(world: &World, tariff: &Tariff, tokens: u64) -> Option<Micros> {
    rate(world, tariff).map(|rate| rate.of(tokens))
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

/// By the steps of the model or agent that are over and have a price. Only asked for where one has none.
fn rate(world: &World, tariff: &Tariff) -> Option<Rate> {
    let total = world.spend.by_tariff.get(tariff)?;
    let unknown = total.unknown.get(tariff).copied().unwrap_or_default();
    let tasks = world.workers.values().filter_map(|worker| worker.machine.task.as_ref());
    let runs = tasks.filter_map(|task| world.run_of(task));
    let here = |run: &&Run| run.step.is_some() && Tariff::of(&run.agent, run.model.as_ref()) == *tariff;
    let under_way = runs.filter(here).map(|run| run.metered);
    let (open_cost, open_tokens) = under_way.fold((0, 0), |(cost, tokens), metered| {
        (cost + metered.cost, tokens + metered.input_tokens + metered.output_tokens)
    });
    let cost = total.cost.saturating_sub(unknown.known).saturating_sub(open_cost);
    let tokens = (total.input_tokens + total.output_tokens).saturating_sub(unknown.tokens());
    let tokens = tokens.saturating_sub(open_tokens);
    (tokens > 0 && cost > 0).then_some(Rate { cost, tokens })
}
