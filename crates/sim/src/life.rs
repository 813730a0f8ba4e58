//! The loop that plays a life: what happens next on the stage, and who acts then.

use super::played::{Down, service};
use super::stage::{Item, Played, Stage, Trouble, at_once, millis};
use super::{Fault, Moment, Plan, Report, people, rooms};
use kernel::command::{Ask, Happened, Usage};
use kernel::effect::StepStart;
use kernel::{Effect, Millis};
use log::outbox::{Attempt, FULL_DISK_LOOK, Next, Told};
use smol_str::SmolStr;

/// How late an outcome is that everybody has stopped waiting for.
const LATE_MILLIS: Millis = 1_200_000;
/// Less than this is left, and no further tree is made.
const LOW_DISK: &str = "100 MB are left, 256 MB are needed";
/// Turns of the loop that a life may take. A life that does not end by then hangs.
const TURNS_MAX: u64 = 60_000;

/// Plays one life. `trace` gets every line of what happens.
pub fn run(plan: &Plan, trace: &mut dyn FnMut(&str)) -> Report {
    watch(plan, trace, &mut |_| {})
}

/// Plays one life, and shows each of its moments to `watcher`, which changes nothing by looking.
pub fn watch(plan: &Plan, trace: &mut dyn FnMut(&str), watcher: &mut dyn FnMut(&Moment)) -> Report {
    let mut stage = Stage::new(plan, trace, watcher);
    let result = stage.play();
    stage.report(result)
}

impl Stage<'_> {
    fn play(&mut self) -> Played {
        self.system(Ask::Configure { config: Box::new(self.config()) })?;
        self.tickets()?;
        self.system(Ask::StartFleet { workers: self.plan.workers })?;
        self.disturb();
        for _ in 0..TURNS_MAX {
            self.work()?;
            if self.over() || !self.advance()? {
                return self.end();
            }
        }
        let pending: Vec<_> =
            self.world.effects.iter().map(|(id, effect)| format!("{} {id}", effect.kind())).collect();
        Err(format!("it does not end: after {TURNS_MAX} turns these are pending: {}", pending.join(", ")))
    }

    /// Every task has reached its end, and nothing is under way: what is still on the agenda changes nothing.
    fn over(&self) -> bool {
        let closed = |task: &std::sync::Arc<kernel::world::Task>| task.is_final();
        self.world.effects.is_empty() && self.world.tasks.values().all(closed)
    }

    /// Puts what disturbs from outside onto the agenda.
    fn disturb(&mut self) {
        let disturbing = [
            Fault::ClockJump,
            Fault::HostSleep,
            Fault::Cancel,
            Fault::Kill,
            Fault::OddMoves,
            Fault::TicketClosed,
            Fault::TicketChanged,
            Fault::TicketGone,
            Fault::TreeGone,
            Fault::LowDisk,
            Fault::FullDisk,
        ];
        for fault in disturbing {
            for _ in 0..if self.has(fault) { 3 } else { 0 } {
                let at = self.random.between(1_000, 900_000);
                self.later(at, Item::Disturb(fault));
            }
        }
        for fault in [Fault::Outage, Fault::OutageWithReset, Fault::LongOutage] {
            if self.has(fault) {
                let at = self.random.between(5_000, 300_000);
                self.later(at, Item::ServiceGoes { fault });
            }
        }
        if self.has(Fault::OutsideAgent) {
            self.later(1_000, Item::Outside(0));
        }
        if self.has(Fault::Rooms) {
            self.later(2_000, Item::Room(0));
        }
        if self.has(Fault::Architect) {
            self.later(3_000, Item::Spec(0));
        }
        if self.plan.faults.iter().any(|fault| !fault.passes()) {
            self.later(60_000, Item::Person);
        }
    }

    /// The owner's turn at its outbox, and another one for as long as something follows from it.
    fn work(&mut self) -> Played {
        loop {
            let before = self.world.seq;
            let (owner, mut outbox) = (self.owner, std::mem::take(&mut self.outbox));
            let turn = at_once(outbox.turn(self));
            if owner != self.owner {
                // What it had taken up died with it; the one that came after it has its own.
                continue;
            }
            self.outbox = outbox;
            self.wake = turn.map_err(Trouble::failure)?;
            let begun = std::mem::take(&mut self.begun);
            let idle = begun.is_empty();
            for attempt in begun {
                if owner == self.owner {
                    self.begin(attempt)?;
                }
            }
            if idle && before == self.world.seq {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, attempt: Attempt) -> Played {
        let delay = self.random.between(200, 4_000);
        let (id, effect) = (attempt.id.clone(), attempt.effect.clone());
        if let Effect::StartStep { of: StepStart::Task { task, run, .. }, turns_left, .. } = &*effect {
            let owner = self.owner;
            if self.strikes(Fault::Proposals, 2) {
                people::propose(self, run)?;
                people::speak(self, run)?;
            }
            if owner != self.owner {
                return Ok(());
            }
            let hits = self.played.start_step(&self.world, &id, task, *turns_left, &mut self.random);
            hits.into_iter().for_each(|fault| self.hit(fault));
            self.later(delay, Item::Output(attempt));
            return Ok(());
        }
        if let Effect::StartStep { of: StepStart::Seat { seat, prompt, .. }, .. } = &*effect {
            let owner = self.owner;
            let said = match self.played.said(&id) {
                Some(said) => Some(said),
                None => rooms::reply(self, &id, seat, prompt)?,
            };
            if let Some(what) = said.filter(|_| owner == self.owner) {
                self.played.remember(&id, &what);
                self.send(delay, attempt, what);
            }
            return Ok(());
        }
        if matches!(*effect, Effect::TestMain { .. })
            && !self.played.main_red
            && self.strikes(Fault::MainRed, 4)
        {
            self.played.main_red = true;
            let at = self.random.between(10_000, 300_000);
            self.later(at, Item::MainMended);
        }
        if matches!(*effect, Effect::RunGate { .. })
            && !self.played.main_red
            && self.strikes(Fault::MainRedUnseen, 6)
        {
            self.played.main_red = true;
            let at = self.random.between(10_000, 300_000);
            self.later(at, Item::MainMended);
        }
        if self.steady < self.disks.trees_full_until
            && let Some(what) = self.played.without_room(&effect)
        {
            self.hit(Fault::FullDisk);
            return self.arrives(attempt, what);
        }
        let faults = self.plan.faults.clone();
        let (what, hits) = self.played.carry_out(&id, &effect, &faults, &mut self.random);
        hits.into_iter().for_each(|fault| self.hit(fault));
        if self.strikes(Fault::CrashAfterEffect, 12) {
            self.crash()?;
            return self.recover();
        }
        self.send(delay, attempt, what);
        Ok(())
    }

    /// An outcome on its way, with what may happen to it there.
    fn send(&mut self, delay: Millis, attempt: Attempt, what: Happened) {
        if self.strikes(Fault::LostOutcome, 15) {
            return self.killed_soon();
        }
        if self.strikes(Fault::DuplicatedOutcome, 8) {
            let again = Item::ArrivesAfterAll { fence: attempt.fence(), what: what.clone() };
            self.later(delay + 10, again);
        }
        if !self.strikes(Fault::LateOutcome, 15) {
            return self.later(delay, Item::Arrives { attempt, what });
        }
        let late = delay + LATE_MILLIS;
        if self.random.once_in(2) {
            return self.later(late, Item::Arrives { attempt, what });
        }
        // So late that another process has taken the effect over.
        self.later(late, Item::ArrivesAfterAll { fence: attempt.fence(), what });
        self.killed_soon();
    }

    /// An outcome is lost only with the process that would have told it.
    fn killed_soon(&mut self) {
        let at = self.random.between(1_000, 120_000);
        self.later(at, Item::Killed);
    }

    /// The outcome of an attempt reaches the log, which says what follows.
    fn arrives(&mut self, mut attempt: Attempt, what: Happened) -> Played {
        let owner = self.owner;
        let next = match at_once(attempt.tell(self, what)) {
            Err(Trouble::Killed) => return Ok(()),
            next => next.map_err(Trouble::failure)?,
        };
        assert_eq!(owner, self.owner, "whoever was killed hears no answer");
        match next {
            Next::Over => self.outbox.over(&attempt.fence()),
            Next::Again { wait } => self.later(millis(wait), Item::Again(attempt)),
            Next::WhenThereIsRoom { .. } => self.later(millis(FULL_DISK_LOOK), Item::Again(attempt)),
        }
        Ok(())
    }

    /// Moves the clock to what comes next. False: nothing will ever happen again.
    fn advance(&mut self) -> Result<bool, String> {
        let item = self.agenda.keys().next().map(|key| key.0);
        let Some(next) = [self.wake, item].into_iter().flatten().min() else { return Ok(false) };
        self.steady = self.steady.max(next);
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.steady) {
            let item = entry.remove();
            self.happen(item)?;
        }
        Ok(true)
    }

    fn happen(&mut self, item: Item) -> Played {
        match item {
            Item::Output(attempt) => self.output(attempt),
            Item::Arrives { attempt, what } => self.arrives(attempt, what),
            Item::ArrivesAfterAll { fence, what } => self.outcome(&fence, what).map(drop),
            Item::Again(attempt) => self.begin(attempt),
            Item::Killed => {
                self.crash()?;
                self.recover()
            }
            Item::RoomIsBack => self.system(Ask::SeeDisk { full: None }),
            Item::ServiceGoes { fault } => {
                self.hit(fault);
                let minutes = if fault == Fault::LongOutage { 25 } else { self.random.between(1, 8) };
                let until = self.now() + minutes * 60_000;
                let resets_at = (fault == Fault::OutageWithReset).then_some(until);
                // Someone sees to credentials that are not accepted as others see to a service.
                let refused = resets_at.is_none() && self.random.once_in(3);
                let asked = self.random.once_in(2);
                self.played.down = Some(Down { resets_at, refused });
                self.played.can_be_asked = asked;
                self.later(minutes * 60_000 - 1, Item::ServiceComes);
                Ok(())
            }
            Item::ServiceComes => {
                self.played.down = None;
                Ok(())
            }
            Item::Disturb(Fault::LowDisk) => {
                self.hit(Fault::LowDisk);
                let minutes = self.random.between(1, 10);
                self.later(minutes * 60_000, Item::RoomIsBack);
                self.system(Ask::SeeDisk { full: Some(SmolStr::new_static(LOW_DISK)) })
            }
            Item::Disturb(Fault::FullDisk) => {
                // It strikes when something finds no room.
                let until = self.steady + self.random.between(1_000, 300_000);
                let which = self.random.below(3);
                if which != 0 {
                    self.disks.log_full_until = until;
                }
                if which != 1 {
                    self.disks.trees_full_until = until;
                }
                Ok(())
            }
            Item::Disturb(fault) => {
                self.hit(fault);
                people::disturb(self, fault)
            }
            Item::MainMended => {
                self.played.main_red = false;
                self.played.mends += 1;
                // It may come before anybody knows that main is red; whoever mends it looks whether it is noticed.
                let main = &self.world.main;
                let to_come = main.under_way.is_some() || main.again;
                if to_come || (self.world.main_is_known() && !self.world.main_is_green()) {
                    self.items += 1;
                    let tip = SmolStr::new(format!("mended{}", self.items));
                    self.system(Ask::SeeMain { tip })?;
                    self.later(60_000, Item::MainMended);
                }
                Ok(())
            }
            Item::TicketBack(id) => people::ticket_back(self, &id),
            Item::Person => people::look(self),
            Item::Outside(step) => people::outside_agent_acts(self, step),
            Item::Room(step) => rooms::act(self, step),
            Item::Spec(step) => rooms::submit(self, step),
        }
    }

    /// The agent prints; its executor passes on what the log has not taken yet.
    fn output(&mut self, attempt: Attempt) -> Played {
        let step = &attempt.id;
        let fence = attempt.fence();
        let down = self.played.down.clone();
        let Some(process) = self.played.processes.get_mut(step) else { return Ok(()) };
        if process.over && process.written.is_empty() {
            self.outbox.over(&fence);
            return Ok(());
        }
        if let (Some(down), false) = (down, process.over) {
            process.over = true;
            process.outputs.clear();
            let usage = Usage { cost: Some(100), input_tokens: 1, output_tokens: 1 };
            process.written.push_back(Happened::Outage {
                service: service(),
                resets_at: down.resets_at,
                error: Some(SmolStr::new_static("529")),
                refused: down.refused,
                usage,
            });
        }
        let waits = process.waits_for.is_some();
        if !process.over
            && !waits
            && let Some(next) = process.outputs.pop_front()
        {
            if let Happened::CallAsked { call, .. } = &next {
                process.waits_for = Some(call.clone());
            }
            process.over = process.outputs.is_empty();
            process.written.push_back(next);
        }
        let owner = self.owner;
        while let Some(what) =
            self.played.processes.get(step).and_then(|process| process.written.front().cloned())
        {
            // Whoever comes after its executor takes up what was written.
            if self.strikes(Fault::LostOutcome, 15) {
                self.killed_soon();
                return Ok(());
            }
            let duplicated = self.strikes(Fault::DuplicatedOutcome, 8).then(|| what.clone());
            // What was written is for whoever follows it now; where nobody wants to hear it, nobody does.
            if self.outcome(&fence, what)? == Told::Superseded {
                self.outbox.over(&fence);
                return Ok(());
            }
            if let Some(what) = duplicated {
                self.outcome(&fence, what)?;
            }
            if let Some(process) = self.played.processes.get_mut(step) {
                process.written.pop_front();
            }
            if owner != self.owner {
                return Ok(());
            }
        }
        if self.played.processes.get(step).is_some_and(|process| !process.over) {
            let delay = self.random.between(1_000, 20_000);
            self.later(delay, Item::Output(attempt));
        } else {
            self.outbox.over(&fence);
        }
        Ok(())
    }
}
