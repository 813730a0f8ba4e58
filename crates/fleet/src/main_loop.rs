//! The main loop: waits for the log, a timer, a ticket, a settings file or a person. It does not poll.

use std::sync::PoisonError;
use std::time::Duration;

use kernel::effect::StepStart;
use kernel::{Ask, Effect, World};
use machines::names::{EffectId, RunId};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::executor::{self, EffectExecutor};
use super::{
    RunError, Runner, Shared, Stop, after_commit, landing, passes, pull_request, recovery,
    step_commands::StepCommand, tickets, tidy,
};
use base::clock;
use log::outbox::{self, Outbox};
use log::owner::SubmitError;
use log::{Fence, Millis};

/// No sleep is longer: see [`until`].
const SLEEP_MAX: Duration = Duration::from_secs(10);
/// How long what was told to end may take before the fleet stops without it. Its keeper goes on, and ends it.
const LEAVE_SECONDS: u64 = 10;
/// How long everything may take to end when the fleet is stopped, beyond what running calls are given.
const STOP_SECONDS: u64 = 15;
/// How often a checkout that holds up a landing is looked at: a few file times, nothing that git must read.
const CHECKOUT_LOOK: Duration = Duration::from_secs(1);
/// How often the disk is looked at.
const DISK_SECONDS: u64 = 30;
/// How often main is looked at while it fails its own tests.
const MAIN_SECONDS: u64 = 2;

impl Runner {
    /// Runs the fleet until it is stopped, or until there is nothing left to do where that was asked for.
    pub async fn run(&self) -> Result<(), RunError> {
        let shared = &self.shared;
        let begun = shared.world().seq;
        // Before any timer is looked at.
        if let Some(away) = shared.away {
            shared.ask(away.ask()).await?;
        }
        // First of all that is at work: whoever asks for a worker meanwhile gets one of the agents that the settings name.
        shared.configure().await?;
        {
            let shared = shared.clone();
            shared.clone().blocking(move || shared.repository.ensure_land()).await?;
        }
        shared.make_caches().await;
        recovery::recover(shared).await?;
        tidy::begin(shared);
        shared.look_at_disk().await?;
        // Watched before it is read: what changes in between is told.
        let watch = tickets::Watch::new(&shared.layout, &shared.in_force().settings, shared.read.clone());
        tickets::see_all(shared, true).await?;
        shared.see_main().await?;
        let workers = self.shared.workers.unwrap_or(shared.in_force().settings.fleet.workers);
        shared.ask(Ask::StartFleet { workers }).await?;
        let (over, end) = oneshot::channel();
        let following = tokio::spawn(after_commit::follow(shared.clone(), begun, end));
        let ended = self.work(watch).await;
        // The switch is turned off also where something went wrong: nobody is at work any more.
        let stopped = shared.ask(Ask::StopFleet).await;
        drop(over);
        if let Err(error) = following.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        ended?;
        match stopped {
            Err(RunError::Submit(error)) if passes(&error) => {
                shared.notice(format!(
                    "{error}: the log does not record that the fleet stopped; the next `adj run` continues from there"
                ));
                Ok(())
            }
            stopped => stopped.map(drop),
        }
    }

    async fn work(&self, mut watch: tickets::Watch) -> Result<(), RunError> {
        let shared = &self.shared;
        let mut head = shared.handle.follow();
        let mut stop = shared.stop.subscribe();
        let mut outbox = Outbox::default();
        let mut tasks: JoinSet<Fence> = JoinSet::new();
        let mut disk = tokio::time::interval(Duration::from_secs(DISK_SECONDS));
        let mut tidy = tokio::time::interval_at(tokio::time::Instant::now() + tidy::EVERY, tidy::EVERY);
        let mut remote = tokio::time::interval(shared.in_force().settings.limits.pull_request);
        remote.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut main = tokio::time::interval(Duration::from_secs(MAIN_SECONDS));
        loop {
            if *stop.borrow_and_update() != Stop::No {
                return self.end(tasks).await;
            }
            head.borrow_and_update();
            let next =
                match outbox.turn(&mut EffectExecutor { shared, host: shared, tasks: &mut tasks }).await {
                    // It was tried until the fleet was to stop.
                    Err(error) if passes(&error) => continue,
                    next => next?,
                };
            shared.sleep.write();
            if (shared.until_idle || shared.once) && shared.is_idle(&outbox) {
                if tasks.is_empty() {
                    // What has just landed may have brought tickets.
                    tickets::see_all(shared, false).await?;
                    if shared.is_idle(&outbox) {
                        return Ok(());
                    }
                    continue;
                }
                // Every step that is under way waits for a person's answer, and perhaps other work for its worker.
                if shared.waits_for_answers(&outbox) && shared.leave_unanswered().await? {
                    continue;
                }
            }
            let went = tokio::select! {
                _ = head.changed() => Ok(()),
                () = until(next) => Ok(()),
                () = until(shared.tickets.look_again()) => tickets::see_all(shared, false).await,
                _ = stop.changed() => Ok(()),
                () = shared.reread.notified() => shared.reload().await,
                _ = disk.tick() => {
                    let looked = shared.look_at_disk().await;
                    // Whoever makes room wants to see it taken.
                    if shared.world().disk_full.is_some() {
                        disk.reset_after(outbox::FULL_DISK_LOOK);
                    }
                    looked
                }
                () = tokio::time::sleep(CHECKOUT_LOOK), if shared.is_held_up() => {
                    landing::look_at_checkouts(shared).await.map_err(RunError::from)
                }
                _ = remote.tick() => {
                    pull_request::look(shared);
                    Ok(())
                }
                _ = tidy.tick() => {
                    tidy::begin(shared);
                    Ok(())
                }
                // Whoever mends main wants to see it noticed.
                _ = main.tick(), if shared.main_is_red() => shared.see_main().await,
                changed = watch.changed() => match changed {
                    tickets::Changed::Tickets => tickets::see_all(shared, false).await,
                    tickets::Changed::Settings => shared.reload().await,
                },
                Some(ended) = tasks.join_next() => {
                    match ended {
                        Ok(attempt) => outbox.over(&attempt),
                        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                        Err(_) => {}
                    }
                    Ok(())
                }
            };
            match went {
                // It was tried until the fleet was to stop.
                Err(RunError::Submit(error)) if passes(&error) => {}
                went => went?,
            }
        }
    }

    /// Lets every step come to its turn's end, or ends it where that takes too long or is not wanted.
    async fn end(&self, mut tasks: JoinSet<Fence>) -> Result<(), RunError> {
        let shared = &self.shared;
        match shared.ask(Ask::StopFleet).await {
            Err(RunError::Submit(error)) if passes(&error) => {}
            asked => drop(asked?),
        }
        let mut stop = shared.stop.subscribe();
        let calls = shared.in_force().settings.fleet.stop_timeout;
        let patience = tokio::time::sleep(calls + Duration::from_secs(STOP_SECONDS));
        tokio::pin!(patience);
        let mut how = *stop.borrow_and_update();
        shared.tell_steps(how);
        let soon = || tokio::time::Instant::now() + Duration::from_secs(LEAVE_SECONDS);
        // Counts only once they were told to end now.
        let leave = tokio::time::sleep_until(soon());
        tokio::pin!(leave);
        loop {
            tokio::select! {
                ended = tasks.join_next() => if ended.is_none() { return Ok(()) },
                () = &mut patience, if how != Stop::Now => {
                    how = Stop::Now;
                    shared.tell_steps(how);
                    leave.as_mut().reset(soon());
                }
                _ = stop.changed() => {
                    how = *stop.borrow_and_update();
                    shared.tell_steps(how);
                    leave.as_mut().reset(soon());
                }
                () = &mut leave, if how == Stop::Now => {
                    let left = tasks.len();
                    shared.notice(format!("{left} steps or tests have not ended yet; their keepers end them"));
                    return Ok(());
                }
            }
        }
    }
}

/// Waits for a moment of the steady clock; for ever where there is none.
pub(super) async fn until(due: Option<Millis>) {
    let Some(due) = due else { return std::future::pending().await };
    loop {
        let left = Duration::from_millis(u64::try_from(due - clock::steady()).unwrap_or(0));
        if left.is_zero() {
            return;
        }
        // A sleep does not go on while the machine is asleep, and the time does.
        tokio::time::sleep(left.min(SLEEP_MAX)).await;
    }
}

impl Shared {
    pub(super) fn main_is_red(&self) -> bool {
        let world = self.world();
        world.main_is_known() && !world.main_is_green()
    }

    /// Tells where main is, where that is not where its tests were run.
    pub(super) async fn see_main(&self) -> Result<(), RunError> {
        let known = self.world().main.verdict.as_ref().map(|verdict| verdict.main.clone());
        let Some(known) = known else { return Ok(()) };
        let repository = self.repository.clone();
        // What cannot be read now is read the next time.
        let Ok(tip) = self.blocking(move || repository.main_tip()).await else { return Ok(()) };
        if tip.as_str() != known {
            self.ask(Ask::SeeMain { tip: smol_str::SmolStr::new(tip.as_str()) }).await?;
        }
        Ok(())
    }

    /// Whether an effect is left for another time: a second step where each worker gets one, a second reply where each
    /// seat does.
    pub(super) fn waits(&self, effect: &Effect) -> bool {
        let stepped = |whose| self.stepped.lock().unwrap_or_else(PoisonError::into_inner).contains(&whose);
        self.once && executor::whose(effect).is_some_and(stepped)
    }

    pub(super) fn is_held_up(&self) -> bool {
        !self.held_up.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Nothing will happen any more without a person. A landing that waits for the user's checkout does, and so does a call
    /// that waits for an answer, and a service that does not accept the credentials.
    pub(super) fn is_idle(&self, outbox: &Outbox) -> bool {
        use kernel::Timer;
        let world = self.world();
        let refused = |run: &RunId| {
            let service = world.run(run).and_then(|run| run.machine.suspension()).map(|s| s.service.clone());
            let health =
                service.and_then(|name| world.health.iter().find(|(known, _)| known.as_str() == name));
            health.is_some_and(|(_, health)| health.refused && health.probe.is_none())
        };
        let waits_for_person = |id: &EffectId, effect: &Effect| match effect {
            Effect::Timer { timer, .. } => match timer {
                Timer::Checkout { .. }
                | Timer::OutsideLease { .. }
                | Timer::HealthPoll
                | Timer::Standstill
                | Timer::Question { .. } => true,
                Timer::Suspension { run } => refused(run),
                // Whoever comes from outside may stay for ever.
                Timer::Heartbeat { .. } | Timer::Escalation => true,
                Timer::Turn { agent, .. } => self.once || !world.is_hosted(agent),
                Timer::Silence { channel } => {
                    let holder = world.channel(channel).and_then(|room| room.current.as_ref());
                    self.once || !holder.is_some_and(|holder| world.is_hosted(holder))
                }
                _ => false,
            },
            _ => waits_for_answer(&world, id),
        };
        let in_hand = |id: &EffectId| world.effects.contains_key(id);
        outbox.in_hand().all(in_hand)
            && world.effects.iter().all(|(id, effect)| waits_for_person(id, effect) || self.waits(effect))
    }

    /// Calls that wait for a person are given up now rather than when their time is over. The questions stay open, and the
    /// answers go into the next prompts. False: none waits.
    pub(super) async fn leave_unanswered(&self) -> Result<bool, SubmitError> {
        let world = self.world();
        let asked = world.effects.iter().filter(|(_, effect)| {
            matches!(effect.as_ref(), Effect::Timer { timer: kernel::Timer::Question { .. }, .. })
        });
        let asked: Vec<&EffectId> = asked.map(|(id, _)| id).collect();
        for id in &asked {
            outbox::ring(&mut &*self, id).await?;
        }
        Ok(!asked.is_empty())
    }

    /// All that is in hand is steps whose call waits for a person.
    pub(super) fn waits_for_answers(&self, outbox: &Outbox) -> bool {
        let world = self.world();
        outbox.in_hand().all(|id| waits_for_answer(&world, id))
    }

    pub(super) fn tell_steps(&self, how: Stop) {
        for step in self.steps.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let word = if how == Stop::Now { StepCommand::End(None) } else { StepCommand::Interrupt };
            let _ = step.send(word);
        }
    }
}

/// Whether this is a step whose call waits for a person's answer.
fn waits_for_answer(world: &World, id: &EffectId) -> bool {
    let Some(Effect::StartStep { of: StepStart::Task { run, .. }, .. }) =
        world.effects.get(id).map(AsRef::as_ref)
    else {
        return false;
    };
    world.run(run).is_some_and(|run| run.question.is_some())
}
