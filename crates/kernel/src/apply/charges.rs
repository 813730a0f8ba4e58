//! Money and tokens: what is set aside, what is spent, and in which totals it counts.

use super::{Folded, no};
use crate::World;
use crate::event::{
    BudgetRaised, Charged, Fold, Reserved, SeatCharged, SeatReserved, SeatUnreserved, Unreserved,
};
use crate::rooms::Seat;
use crate::world::{BudgetScope, Metered, Spend, Tariff, Unknown};
use imbl::OrdMap;
use machines::names::{AgentName, RunId};

/// What a turn or a step used, on its way into every total that counts it.
struct Charge {
    tariff: Tariff,
    /// 0: the rest of the whole step.
    turn: u32,
    cost: crate::config::Micros,
    priced: bool,
    input_tokens: u64,
    output_tokens: u64,
    /// What the turns before it reported.
    before: Metered,
}

impl Charge {
    fn known(&self) -> crate::config::Micros {
        if self.priced { self.cost } else { 0 }
    }

    fn unknown(&self) -> Option<Unknown> {
        // The turns of the step said nothing of the whole; its end is where that shows.
        let before = if self.turn == 0 { self.before } else { Metered::default() };
        (!self.priced).then_some(Unknown {
            steps: 1,
            input_tokens: before.input_tokens + self.input_tokens,
            output_tokens: before.output_tokens + self.output_tokens,
            known: before.cost,
            held: self.cost,
        })
    }

    fn lacking(&self, of: &mut OrdMap<Tariff, Unknown>) {
        if let Some(unknown) = self.unknown() {
            of.entry(self.tariff.clone()).or_default().add(&unknown);
        }
    }

    fn add(&self, spend: &mut Spend) {
        spend.cost += self.known();
        spend.input_tokens += self.input_tokens;
        spend.output_tokens += self.output_tokens;
        self.lacking(&mut spend.unknown);
    }

    fn meter(&self, metered: &mut Metered) {
        if self.turn == 0 {
            *metered = Metered::default();
        } else if self.priced {
            metered.cost += self.cost;
            metered.input_tokens += self.input_tokens;
            metered.output_tokens += self.output_tokens;
        }
    }

    fn add_to_all(&self, spend: &mut Spend, agent: &AgentName, day: i64) {
        self.add(spend);
        for total in [
            spend.by_agent.entry(agent.clone()).or_default(),
            spend.by_day.entry(day).or_default(),
            spend.by_tariff.entry(self.tariff.clone()).or_default(),
        ] {
            total.cost += self.known();
            total.input_tokens += self.input_tokens;
            total.output_tokens += self.output_tokens;
            self.lacking(&mut total.unknown);
        }
    }
}

impl Fold<Reserved> for World {
    fn fold(&mut self, e: &Reserved) -> Folded {
        self.edit_run(&e.id, |run| run.reserved_day = e.day)?;
        self.reserve(&e.id, e.amount as i64)
    }
}

impl Fold<Unreserved> for World {
    fn fold(&mut self, e: &Unreserved) -> Folded {
        let amount = self.run(&e.id).map_or(0, |run| run.reserved);
        self.reserve(&e.id, -(amount as i64))
    }
}

/// A step without a price costs what is known of it. What was set aside stays set aside, beside its tokens.
impl Fold<Charged> for World {
    fn fold(&mut self, e: &Charged) -> Folded {
        let run = self.run(&e.id).ok_or_else(|| no("run", &e.id))?;
        let charge = Charge {
            tariff: e.tariff(),
            turn: e.turn,
            cost: e.cost,
            priced: e.priced,
            input_tokens: e.input_tokens,
            output_tokens: e.output_tokens,
            before: run.metered,
        };
        let add = |spend: &mut Spend| charge.add(spend);
        // What is spent or held was set aside before: it is not counted twice.
        let from_reserve = run.reserved.min(e.cost);
        self.reserve(&e.id, -(from_reserve as i64))?;
        self.edit_run(&e.id, |run| {
            add(&mut run.spend);
            run.turns_charged = run.turns_charged.max(e.turn);
            charge.meter(&mut run.metered);
        })?;
        self.edit_task(&e.task, |task| add(&mut task.spend))?;
        if let Some(worker) = e.worker.as_ref().filter(|name| self.workers.contains_key(*name)) {
            self.edit_worker(worker, |worker| add(&mut worker.spend))?;
        }
        charge.add_to_all(&mut self.spend, &e.agent, e.day);
        Ok(())
    }
}

impl Fold<BudgetRaised> for World {
    fn fold(&mut self, e: &BudgetRaised) -> Folded {
        match (e.scope, &e.run, &e.task, &e.agent) {
            (BudgetScope::Run, Some(run), _, _) => self.edit_run(run, |run| run.raised += e.by),
            (BudgetScope::Task, _, Some(task), _) => self.edit_task(task, |task| task.raised += e.by),
            (BudgetScope::Agent, _, _, Some(agent)) => {
                self.spend.by_agent.entry(agent.clone()).or_default().raised += e.by;
                Ok(())
            }
            (BudgetScope::Day, ..) => {
                self.spend.by_day.entry(e.day).or_default().raised += e.by;
                Ok(())
            }
            _ => Err(format!("a raise of the {} budget does not say whose", e.scope)),
        }
    }
}

impl Fold<SeatReserved> for World {
    fn fold(&mut self, e: &SeatReserved) -> Folded {
        self.edit_seat(&e.seat, |seated| seated.reserved_day = e.day)?;
        self.reserve_for_seat(&e.seat, e.amount as i64)
    }
}

impl Fold<SeatUnreserved> for World {
    fn fold(&mut self, e: &SeatUnreserved) -> Folded {
        let amount = self.seated(&e.seat).map_or(0, |seated| seated.reserved);
        self.reserve_for_seat(&e.seat, -(amount as i64))
    }
}

/// The same of an agent that is hosted outside of tasks.
impl Fold<SeatCharged> for World {
    fn fold(&mut self, e: &SeatCharged) -> Folded {
        let seated = self.seated(&e.seat).ok_or_else(|| no("seat", &e.seat))?;
        let charge = Charge {
            tariff: Tariff::of(&e.agent, e.model.as_ref()),
            turn: e.turn,
            cost: e.cost,
            priced: e.priced,
            input_tokens: e.input_tokens,
            output_tokens: e.output_tokens,
            before: seated.metered,
        };
        let from_reserve = seated.reserved.min(e.cost);
        self.reserve_for_seat(&e.seat, -(from_reserve as i64))?;
        self.edit_seat(&e.seat, |seated| {
            charge.add(&mut seated.spend);
            seated.turns_charged = seated.turns_charged.max(e.turn);
            charge.meter(&mut seated.metered);
        })?;
        charge.add_to_all(&mut self.spend, &e.agent, e.day);
        Ok(())
    }
}

impl World {
    /// Adds to what is set aside for a run, in every scope at once.
    fn reserve(&mut self, id: &RunId, amount: i64) -> Folded {
        let run = self.run(id).ok_or_else(|| no("run", id))?;
        let (task, agent, day) = (run.task.clone(), run.agent.clone(), run.reserved_day);
        let add = |total: &mut u64| *total = total.saturating_add_signed(amount);
        self.edit_run(id, |run| add(&mut run.reserved))?;
        self.edit_task(&task, |task| add(&mut task.spend.reserved))?;
        add(&mut self.spend.reserved);
        add(&mut self.spend.by_agent.entry(agent).or_default().reserved);
        add(&mut self.spend.by_day.entry(day).or_default().reserved);
        Ok(())
    }

    fn reserve_for_seat(&mut self, seat: &Seat, amount: i64) -> Folded {
        let seated = self.seated(seat).ok_or_else(|| no("seat", seat))?;
        let (agent, day) = (seated.agent.clone(), seated.reserved_day);
        let add = |total: &mut u64| *total = total.saturating_add_signed(amount);
        self.edit_seat(seat, |seated| add(&mut seated.reserved))?;
        add(&mut self.spend.reserved);
        add(&mut self.spend.by_agent.entry(agent).or_default().reserved);
        add(&mut self.spend.by_day.entry(day).or_default().reserved);
        Ok(())
    }
}
