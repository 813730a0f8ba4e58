//! Money and tokens: what is set aside, what is spent, and in which totals it counts.

use super::{Folded, no};
use crate::World;
use crate::config::Micros;
use crate::effect::Session;
use crate::event::{
    BudgetRaised, Charged, Fold, Reserved, SeatCharged, SeatReserved, SeatUnreserved, Unreserved,
};
use crate::world::{BudgetScope, Metered, Spend, Tariff, Unknown};
use imbl::OrdMap;
use machines::names::AgentName;

/// What a turn or a step used, on its way into every total that counts it.
struct Charge {
    tariff: Tariff,
    /// 0: the rest of the whole step.
    turn: u32,
    cost: Micros,
    priced: bool,
    input_tokens: u64,
    output_tokens: u64,
    /// What the turns before it reported.
    before: Metered,
}

impl Charge {
    fn known(&self) -> Micros {
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

/// What is counted for one session, of an agent at work or of one that speaks.
struct Account<'a> {
    spend: &'a mut Spend,
    reserved: &'a mut Micros,
    reserved_day: &'a mut i64,
    turns_charged: &'a mut u32,
    metered: &'a mut Metered,
}

impl Fold<Reserved> for World {
    fn fold(&mut self, e: &Reserved) -> Folded {
        self.reserve(&Session::Run(e.id.clone()), e.day, e.amount)
    }
}

impl Fold<SeatReserved> for World {
    fn fold(&mut self, e: &SeatReserved) -> Folded {
        self.reserve(&Session::Seat(e.seat.clone()), e.day, e.amount)
    }
}

impl Fold<Unreserved> for World {
    fn fold(&mut self, e: &Unreserved) -> Folded {
        self.unreserve(&Session::Run(e.id.clone()), Micros::MAX)
    }
}

impl Fold<SeatUnreserved> for World {
    fn fold(&mut self, e: &SeatUnreserved) -> Folded {
        self.unreserve(&Session::Seat(e.seat.clone()), Micros::MAX)
    }
}

impl Fold<Charged> for World {
    fn fold(&mut self, e: &Charged) -> Folded {
        let mut charge = Charge {
            tariff: e.tariff(),
            turn: e.turn,
            cost: e.cost,
            priced: e.priced,
            input_tokens: e.input_tokens,
            output_tokens: e.output_tokens,
            before: Metered::default(),
        };
        self.charge(&Session::Run(e.id.clone()), &e.agent, e.day, &mut charge)?;
        self.edit_task(&e.task, |task| charge.add(&mut task.spend))?;
        match e.worker.as_ref().filter(|name| self.workers.contains_key(*name)) {
            Some(worker) => self.edit_worker(worker, |worker| charge.add(&mut worker.spend)),
            None => Ok(()),
        }
    }
}

impl Fold<SeatCharged> for World {
    fn fold(&mut self, e: &SeatCharged) -> Folded {
        let mut charge = Charge {
            tariff: Tariff::of(&e.agent, e.model.as_ref()),
            turn: e.turn,
            cost: e.cost,
            priced: e.priced,
            input_tokens: e.input_tokens,
            output_tokens: e.output_tokens,
            before: Metered::default(),
        };
        self.charge(&Session::Seat(e.seat.clone()), &e.agent, e.day, &mut charge)
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

impl World {
    fn edit_account(&mut self, of: &Session, edit: impl FnOnce(Account)) -> Folded {
        match of {
            Session::Run(id) => self.edit_run(id, |run| {
                edit(Account {
                    spend: &mut run.spend,
                    reserved: &mut run.reserved,
                    reserved_day: &mut run.reserved_day,
                    turns_charged: &mut run.turns_charged,
                    metered: &mut run.metered,
                });
            }),
            Session::Seat(seat) => self.edit_seat(seat, |seated| {
                edit(Account {
                    spend: &mut seated.spend,
                    reserved: &mut seated.reserved,
                    reserved_day: &mut seated.reserved_day,
                    turns_charged: &mut seated.turns_charged,
                    metered: &mut seated.metered,
                });
            }),
        }
    }

    /// A step without a price costs what is known of it. What was set aside stays set aside, beside its tokens.
    fn charge(&mut self, of: &Session, agent: &AgentName, day: i64, charge: &mut Charge) -> Folded {
        self.edit_account(of, |account| {
            charge.before = *account.metered;
            charge.add(account.spend);
            *account.turns_charged = charge.turn.max(*account.turns_charged);
            charge.meter(account.metered);
        })?;
        // What is spent or held was set aside before: it is not counted twice.
        self.unreserve(of, charge.cost)?;
        charge.add_to_all(&mut self.spend, agent, day);
        Ok(())
    }

    fn reserve(&mut self, of: &Session, day: i64, amount: Micros) -> Folded {
        self.edit_account(of, |account| *account.reserved_day = day)?;
        self.set_aside(of, amount as i64)
    }

    /// Gives back what is set aside, as far as that is no more than this.
    fn unreserve(&mut self, of: &Session, most: Micros) -> Folded {
        let reserved = self.session(of).map_or(0, |known| known.reserved);
        self.set_aside(of, -(reserved.min(most) as i64))
    }

    /// Adds to what is set aside for a session, in every scope at once.
    fn set_aside(&mut self, of: &Session, amount: i64) -> Folded {
        let add = |total: &mut u64| *total = total.saturating_add_signed(amount);
        let mut day = 0;
        self.edit_account(of, |account| {
            add(account.reserved);
            day = *account.reserved_day;
        })?;
        if let Session::Run(id) = of {
            let task = self.run(id).ok_or_else(|| no("run", id))?.task.clone();
            self.edit_task(&task, |task| add(&mut task.spend.reserved))?;
        }
        let Some(agent) = self.session(of).map(|known| known.agent.clone()) else { return Ok(()) };
        add(&mut self.spend.reserved);
        add(&mut self.spend.by_agent.entry(agent).or_default().reserved);
        add(&mut self.spend.by_day.entry(day).or_default().reserved);
        Ok(())
    }
}
