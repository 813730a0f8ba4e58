//! Timers while no fleet runs: agents from outside still take turns, send heartbeats and hold tasks.
//!
//! Timers of workers and of agents that Adjutant hosts wait for a fleet. Without one they cannot continue, so
//! no time is counted against them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use kernel::command::Happened;
use kernel::{Answer, Ask, Effect, Refusal, Timer, World};
use machines::names::EffectId;

use super::main_loop::until;
use base::clock;
use log::outbox::{self, Attempt, Clock, Executor, Meaning, Outbox, OutboxHost};
use log::owner::{Handle, SubmitError};
use log::{Fence, Leased, Millis, Pending};

/// Since when nobody was there to let turns go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    pub since: Millis,
    /// Others than the agents that Adjutant hosts went on.
    pub hosted: bool,
}

impl Away {
    /// Since the last thing that the log knows of; `None` where it is empty or cannot be read.
    pub fn since_last_record(handle: &Handle) -> Option<Away> {
        let last = handle.world().seq;
        let records = handle.read(last.checked_sub(1)?, 1).ok()?;
        Some(Away { since: records.last()?.at, hosted: false })
    }

    pub fn ask(self) -> Ask {
        Ask::WasAway { since: self.since, hosted: self.hosted }
    }
}

/// Reports what is due, until it is to end. First it says since when nobody did.
pub async fn report_timers(
    handle: Handle,
    sleep: clock::SleepRecord,
    away: Option<Away>,
    end: impl Future<Output = ()>,
) -> Result<(), SubmitError> {
    let mut alone = Alone { handle, sleep };
    let mut end = pin!(end);
    if let Some(away) = away {
        outbox::submit(&mut alone, away.ask(), None).await?;
    }
    let mut head = alone.handle.follow();
    let mut outbox = Outbox::default();
    loop {
        head.borrow_and_update();
        let next = outbox.turn(&mut alone).await?;
        alone.sleep.write();
        tokio::select! {
            moved = head.changed() => if moved.is_err() { return Ok(()) },
            () = until(next) => {}
            () = &mut end => return Ok(()),
        }
    }
}

/// Whether it is due also while no fleet runs.
fn goes_on(world: &World, timer: &Timer) -> bool {
    match timer {
        Timer::Heartbeat { .. } | Timer::OutsideLease { .. } => true,
        Timer::Turn { agent, .. } => !world.is_hosted(agent),
        Timer::Silence { channel } => {
            let holder = world.channel(channel).and_then(|room| room.current.as_ref());
            holder.is_some_and(|holder| !world.is_hosted(holder))
        }
        _ => false,
    }
}

/// Leaves every effect to a fleet.
struct Alone {
    handle: Handle,
    sleep: clock::SleepRecord,
}

impl Executor for Alone {
    type Host = Alone;

    fn host(&mut self) -> &mut Alone {
        self
    }

    fn leaves(&self, _: &Effect) -> bool {
        true
    }

    fn begin(&mut self, _: Attempt) {}

    fn cannot_read(&mut self, _: &str) {}
}

impl Clock for Alone {
    fn now(&self) -> Millis {
        clock::now()
    }

    fn steady(&self) -> Millis {
        clock::steady()
    }

    fn slept(&self) -> Millis {
        self.sleep.slept()
    }
}

impl OutboxHost for Alone {
    type Error = SubmitError;

    fn meaning(error: &SubmitError) -> Meaning {
        Meaning::of(error)
    }

    /// Only the timers that go on: nothing else is looked at here.
    fn effects(&self) -> OrdMap<EffectId, Arc<Effect>> {
        let world = self.handle.world();
        let wanted =
            |effect: &Effect| matches!(effect, Effect::Timer { timer, .. } if goes_on(&world, timer));
        world
            .effects
            .iter()
            .filter(|(_, effect)| wanted(effect))
            .map(|(id, effect)| (id.clone(), effect.clone()))
            .collect()
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn has_no_room(&self) -> bool {
        false
    }

    async fn rest(&mut self, wait: Duration, _: &SubmitError) {
        tokio::time::sleep(wait).await;
    }

    async fn submit(&mut self, ask: Ask, fence: Option<Fence>) -> Result<Answer, SubmitError> {
        super::executor::submit(&self.handle, ask, fence).await
    }

    fn refused(&mut self, _: &Fence, _: &Happened, _: Refusal) -> Result<(), SubmitError> {
        Ok(())
    }

    fn unfit(&mut self, _: &Fence, _: &Effect, _: &Happened) -> Result<(), SubmitError> {
        Ok(())
    }

    async fn lease(&mut self, _: &'static str, _: Millis, _: usize) -> Result<Vec<Leased>, SubmitError> {
        Ok(Vec::new())
    }

    async fn release(&mut self, _: &Fence) -> Result<(), SubmitError> {
        Ok(())
    }

    async fn pending(&mut self) -> Result<Vec<Pending>, SubmitError> {
        Ok(Vec::new())
    }
}
