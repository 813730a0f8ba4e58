//! The outbox driver: which effect is next and under which attempt, which timers are due and by which clock,
//! what is retried and when.
//!
//! The runner and the simulator both use it. Each brings a clock, access to the log, and
//! an executor of effects. Waiting is written as `async`; the simulator's futures are ready at once, because
//! its clock is moved instead.
//!
//! Invariants:
//! - one attempt of this process at a time carries out an effect, and its number is in the log first;
//! - an outcome counts only for its own attempt: if another attempt has replaced it, the outcome is dropped as a whole;
//! - an outcome that does not belong to its effect is reported as a failure of that effect, and never as a success;
//! - if the log has no space for an outcome, it is sent again; an effect that failed because the disk is full has no outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use kernel::command::{Happened, Outcome};
use kernel::happened::Failed;
use kernel::{Answer, Ask, Effect, Refusal};
use machines::names::EffectId;

use crate::owner::SubmitError;
use crate::{Fence, Leased, LogError, Millis, Pending};
use base::crash;

/// Who holds the effects that are taken up. The log has one owner, so one name is enough.
const HOLDER: &str = "fleet";
/// A lease lasts as long as the process that took it: whoever comes next takes everything over.
const LEASE_MILLIS: Millis = 365 * 24 * 3600 * 1000;
/// How many effects are taken up at once.
pub const LEASED_MAX: usize = 1_000;
/// How long a second try waits: at first, and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// How often somebody who is to stop tries to write something down.
const LAST_TRIES: u32 = 3;
/// How often a full disk is looked at by what waits for it.
pub const FULL_DISK_LOOK: Duration = Duration::from_secs(2);

/// Two clocks: one that people read and may set, and one that nobody sets.
pub trait Clock {
    /// Milliseconds since the Unix epoch, as the log keeps them.
    fn now(&self) -> Millis;

    /// Milliseconds since some moment that does not change while the process lives. It stands still while the machine
    /// sleeps. Whatever waits, waits by it.
    fn steady(&self) -> Millis;

    /// How long the machine slept since the log was last followed, before this process began. Timers that were set before
    /// that have as much time left as they had then.
    fn slept(&self) -> Millis {
        0
    }
}

/// The way to the log, and to whoever decides.
#[allow(async_fn_in_trait, reason = "both executors are ours, and neither gives its host to another thread")]
pub trait OutboxHost: Clock {
    type Error;

    /// What the error means for whoever asked.
    fn meaning(error: &Self::Error) -> Meaning;

    /// What is asked for and not finished, as the log has it.
    fn effects(&self) -> OrdMap<EffectId, Arc<Effect>>;

    /// Everything is to end: nobody waits for long any more.
    fn is_stopping(&self) -> bool;

    /// There is no room for anything on the disk of the log or of the trees.
    fn has_no_room(&self) -> bool;

    /// Lets some time pass before the next try. It may return early when everything is to end.
    async fn rest(&mut self, wait: Duration, error: &Self::Error);

    /// Asks once, in the system's name. An answer means durable.
    async fn submit(&mut self, ask: Ask, fence: Option<Fence>) -> Result<Answer, Self::Error>;

    /// An outcome was refused, which is a bug: an effect's outcome is never refused.
    fn refused(&mut self, fence: &Fence, what: &Happened, refusal: Refusal) -> Result<(), Self::Error>;

    /// An executor reported an outcome that its effect cannot come to, which is a bug. If this returns, the outcome is
    /// reported as a failure of the effect.
    fn unfit(&mut self, fence: &Fence, effect: &Effect, what: &Happened) -> Result<(), Self::Error>;

    async fn lease(
        &mut self,
        holder: &'static str,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, Self::Error>;

    async fn release(&mut self, fence: &Fence) -> Result<(), Self::Error>;

    async fn pending(&mut self) -> Result<Vec<Pending>, Self::Error>;
}

/// The hands that carry effects out.
pub trait Executor {
    type Host: OutboxHost;

    fn host(&mut self) -> &mut Self::Host;

    /// It is left in the outbox, for another time.
    fn leaves(&self, effect: &Effect) -> bool;

    /// Begins to carry it out. Whoever does ends with [`Outbox::over`].
    fn begin(&mut self, attempt: Attempt);

    /// An effect that no version of this program that we know of has written.
    fn cannot_read(&mut self, effect: &str);
}

/// What an error of the log means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The disk is full, or failed, or others wrote at the same time: it may be asked again.
    Passes,
    /// The attempt is no longer the current one.
    Fenced,
    /// Nothing can be asked any more, or a person must look.
    Stays,
}

impl Meaning {
    pub fn of_log(error: &LogError) -> Meaning {
        match error {
            LogError::Full | LogError::Sync { .. } | LogError::Io { .. } | LogError::Conflict { .. } => {
                Meaning::Passes
            }
            _ => Meaning::Stays,
        }
    }

    pub fn of(error: &SubmitError) -> Meaning {
        match error {
            SubmitError::Log(error) => Meaning::of_log(error),
            SubmitError::Fenced { .. } => Meaning::Fenced,
            SubmitError::Contended { .. } => Meaning::Passes,
            _ => Meaning::Stays,
        }
    }
}

/// Whether anybody still wants to hear of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Wanted,
    /// It is no longer wanted, or another attempt is at it: whoever carries it out may stop.
    Superseded,
}

/// What follows when an effect was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Over,
    /// It is still wanted, and is carried out once more by the same attempt.
    Again {
        wait: Duration,
    },
    /// The disk is full, so nothing was told: it is carried out once more when there is room.
    WhenThereIsRoom {
        error: String,
    },
}

/// Tries, further and further apart.
#[derive(Clone, Debug)]
pub struct Backoff {
    wait: Duration,
    /// Since everything is to end.
    last_tries: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { wait: TRY_AGAIN.0, last_tries: 0 }
    }
}

impl Backoff {
    /// How long to wait for the next try.
    fn next(&mut self) -> Duration {
        let wait = self.wait;
        self.wait = (wait * 2).min(TRY_AGAIN.1);
        wait
    }

    /// Returns when to ask again. False: that does not help, or everything is to end and does so without.
    pub async fn again<D: OutboxHost>(&mut self, host: &mut D, error: &D::Error) -> bool {
        if D::meaning(error) != Meaning::Passes {
            return false;
        }
        if host.is_stopping() {
            self.last_tries += 1;
            host.rest(TRY_AGAIN.0, error).await;
            return self.last_tries < LAST_TRIES;
        }
        let wait = self.next();
        host.rest(wait, error).await;
        true
    }
}

/// One attempt at an effect. A timer is its own attempt 0.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub id: EffectId,
    pub effect: Arc<Effect>,
    number: u32,
    backoff: Backoff,
}

impl Attempt {
    fn new(id: EffectId, effect: Arc<Effect>, number: u32) -> Attempt {
        Attempt { id, effect, number, backoff: Backoff::default() }
    }

    pub fn fence(&self) -> Fence {
        Fence { effect: self.id.to_string(), attempt: self.number }
    }

    /// Tells the log what came of it, and says what follows.
    pub async fn tell<D: OutboxHost>(&mut self, host: &mut D, what: Happened) -> Result<Next, D::Error> {
        // No agent can help that there is no room, so it is not held against one.
        if let Happened::Failed { error } | Happened::TreeFailed { error } = &what
            && host.has_no_room()
        {
            return Ok(Next::WhenThereIsRoom { error: error.clone() });
        }
        let fence = self.fence();
        let what = fitting(host, &fence, &self.effect, what)?;
        crash::effect(self.effect.kind(), "after");
        let failed = matches!(what, Happened::Failed { .. });
        let told = send(host, &fence, what).await?;
        crash::effect(self.effect.kind(), "told");
        // What only we need stays in the outbox after a failure.
        let wanted = told == Told::Wanted && host.effects().contains_key(&self.id);
        Ok(if failed && wanted { Next::Again { wait: self.backoff.next() } } else { Next::Over })
    }
}

/// Asks in the system's name, and asks again where the disk is full or failed: that passes. What was not written down
/// by the time that everything is to end is found again by whoever comes next.
pub async fn submit<D: OutboxHost>(
    host: &mut D,
    ask: Ask,
    fence: Option<&Fence>,
) -> Result<Answer, D::Error> {
    let mut backoff = Backoff::default();
    loop {
        match host.submit(ask.clone(), fence.cloned()).await {
            Err(error) if backoff.again(host, &error).await => {}
            answered => return answered,
        }
    }
}

/// Tells what came of an effect, or how far it has got.
pub async fn tell<D: OutboxHost>(host: &mut D, fence: &Fence, what: Happened) -> Result<Told, D::Error> {
    let effect = EffectId::new(&fence.effect).ok().and_then(|id| host.effects().get(&id).cloned());
    let what = match effect {
        Some(effect) => fitting(host, fence, &effect, what)?,
        // It is no longer wanted, and the kernel answers so.
        None => what,
    };
    send(host, fence, what).await
}

/// The outcome itself if the effect can come to it. Otherwise nothing is known of the effect, so it has failed: it is
/// tried again like any other failure, and not at once.
fn fitting<D: OutboxHost>(
    host: &mut D,
    fence: &Fence,
    effect: &Effect,
    what: Happened,
) -> Result<Happened, D::Error> {
    if effect.outcomes().contains(&what.kind()) {
        return Ok(what);
    }
    host.unfit(fence, effect, &what)?;
    let Failed { error } = Failed::from_any(what);
    Ok(Happened::Failed { error })
}

async fn send<D: OutboxHost>(host: &mut D, fence: &Fence, what: Happened) -> Result<Told, D::Error> {
    let effect = EffectId::new(&fence.effect).expect("the log gave it out");
    let ask = Ask::Outcome(Outcome { effect, what: what.clone() });
    match submit(host, ask, Some(fence)).await {
        Ok(Answer::Done(reply)) if reply.superseded => Ok(Told::Superseded),
        Ok(Answer::Done(_)) => Ok(Told::Wanted),
        Ok(Answer::Refused(refusal)) => host.refused(fence, &what, refusal).map(|()| Told::Superseded),
        Err(error) if D::meaning(&error) == Meaning::Fenced => Ok(Told::Superseded),
        Err(error) => Err(error),
    }
}

/// A timer's time has come, or somebody has it come now.
pub async fn ring<D: OutboxHost>(host: &mut D, timer: &EffectId) -> Result<Told, D::Error> {
    tell(host, &Fence { effect: timer.to_string(), attempt: 0 }, Happened::TimerDue).await
}

/// The log has one owner, which is this process: what another one held, it holds no more.
pub async fn take_over<D: OutboxHost>(host: &mut D) -> Result<(), D::Error> {
    for pending in host.pending().await?.into_iter().filter(|pending| pending.owner.is_some()) {
        release(host, &Fence { effect: pending.id, attempt: pending.attempt }).await?;
    }
    Ok(())
}

async fn release<D: OutboxHost>(host: &mut D, fence: &Fence) -> Result<(), D::Error> {
    let mut backoff = Backoff::default();
    loop {
        match host.release(fence).await {
            Err(error) if backoff.again(host, &error).await => {}
            released => return released,
        }
    }
}

/// What this process has in hand, and what it waits for.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The effects that somebody here carries out, with the attempt of each.
    in_hand: BTreeMap<EffectId, u32>,
    /// When each timer is due, by the steady clock.
    deadlines: BTreeMap<EffectId, Millis>,
    /// The timers that were set before this process have been looked at.
    begun: bool,
}

impl Outbox {
    /// Reports the timers whose time has come, and takes up what nobody has in hand. Returns when to come again at the
    /// latest, by the steady clock; sooner where the log has grown.
    pub async fn turn<E: Executor>(
        &mut self,
        executor: &mut E,
    ) -> Result<Option<Millis>, <E::Host as OutboxHost>::Error> {
        let next = self.report_timers(executor.host()).await?;
        self.take_up(executor).await?;
        Ok(next)
    }

    pub fn in_hand(&self) -> impl Iterator<Item = &EffectId> {
        self.in_hand.keys()
    }

    /// Nobody here carries this attempt out any more.
    pub fn over(&mut self, attempt: &Fence) {
        if let Ok(id) = EffectId::new(&attempt.effect)
            && self.in_hand.get(&id) == Some(&attempt.attempt)
        {
            self.in_hand.remove(&id);
        }
    }

    async fn report_timers<D: OutboxHost>(&mut self, host: &mut D) -> Result<Option<Millis>, D::Error> {
        loop {
            let (due, next) = self.due_timers(host);
            if due.is_empty() {
                return Ok(next);
            }
            for mut timer in due {
                crash::effect(timer.effect.kind(), "before");
                timer.tell(host, Happened::TimerDue).await?;
            }
        }
    }

    /// The timers whose time has come, and when the next one's will.
    ///
    /// What the log says of a timer is read once, when this process first sees it: from then on it waits by a clock that
    /// nobody sets.
    fn due_timers<D: OutboxHost>(&mut self, host: &D) -> (Vec<Attempt>, Option<Millis>) {
        let (effects, now, steady) = (host.effects(), host.now(), host.steady());
        self.deadlines.retain(|id, _| effects.contains_key(id));
        for (id, effect) in &effects {
            if self.deadlines.contains_key(id) {
                continue;
            }
            // What this process finds when it begins was set before it: the time asleep since then does not count.
            let now = if self.begun { now } else { now.saturating_sub(host.slept()) };
            if let Some(left) = effect.left(now) {
                self.deadlines.insert(id.clone(), steady.saturating_add(left));
            }
        }
        self.begun = true;
        let due = self.deadlines.iter().filter(|(_, due)| **due <= steady);
        let due = due.filter_map(|(id, _)| Some(Attempt::new(id.clone(), effects.get(id)?.clone(), 0)));
        (due.collect(), self.deadlines.values().min().copied())
    }

    /// Takes up what nobody has in hand.
    async fn take_up<E: Executor>(&mut self, executor: &mut E) -> Result<(), <E::Host as OutboxHost>::Error> {
        let effects = executor.host().effects();
        let is_free = |(id, effect): (&EffectId, &Arc<Effect>)| {
            effect.due().is_none() && !self.in_hand.contains_key(id) && !executor.leaves(effect)
        };
        if !effects.iter().any(is_free) {
            return Ok(());
        }
        let mut backoff = Backoff::default();
        let leased = loop {
            let host = executor.host();
            let until = host.now() + LEASE_MILLIS;
            match host.lease(HOLDER, until, LEASED_MAX).await {
                Err(error) if backoff.again(host, &error).await => {}
                leased => break leased?,
            }
        };
        for Leased { id, data, attempt, .. } in leased {
            let (Ok(effect), Ok(known)) = (serde_json::from_str::<Effect>(&data), EffectId::new(&id)) else {
                executor.cannot_read(&id);
                continue;
            };
            if executor.leaves(&effect) {
                let host = executor.host();
                match release(host, &Fence { effect: id, attempt }).await {
                    // Nobody else takes it as long as we are here, and whoever comes next takes it over.
                    Err(error) if <E::Host as OutboxHost>::meaning(&error) == Meaning::Passes => {}
                    released => released?,
                }
                continue;
            }
            self.in_hand.insert(known.clone(), attempt);
            executor.begin(Attempt::new(known, Arc::new(effect), attempt));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Reply;
    use machines::names::TaskId;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// A log that takes everything, and remembers it. The effect stays wanted.
    struct Host {
        effects: OrdMap<EffectId, Arc<Effect>>,
        told: Vec<Happened>,
        unfit: Vec<String>,
    }

    impl Clock for Host {
        fn now(&self) -> Millis {
            0
        }

        fn steady(&self) -> Millis {
            0
        }
    }

    impl OutboxHost for Host {
        type Error = LogError;

        fn meaning(error: &LogError) -> Meaning {
            Meaning::of_log(error)
        }

        fn effects(&self) -> OrdMap<EffectId, Arc<Effect>> {
            self.effects.clone()
        }

        fn is_stopping(&self) -> bool {
            false
        }

        fn has_no_room(&self) -> bool {
            false
        }

        async fn rest(&mut self, _: Duration, _: &LogError) {}

        async fn submit(&mut self, ask: Ask, _: Option<Fence>) -> Result<Answer, LogError> {
            let Ask::Outcome(outcome) = ask else { panic!("{ask:?}") };
            self.told.push(outcome.what);
            Ok(Answer::Done(Reply::default()))
        }

        fn refused(&mut self, _: &Fence, what: &Happened, refusal: Refusal) -> Result<(), LogError> {
            panic!("{what:?}: {refusal}")
        }

        fn unfit(&mut self, fence: &Fence, effect: &Effect, what: &Happened) -> Result<(), LogError> {
            self.unfit.push(format!("{} {} {}", fence.effect, effect.kind(), what.kind().name()));
            Ok(())
        }

        async fn lease(&mut self, _: &'static str, _: Millis, _: usize) -> Result<Vec<Leased>, LogError> {
            Ok(Vec::new())
        }

        async fn release(&mut self, _: &Fence) -> Result<(), LogError> {
            Ok(())
        }

        async fn pending(&mut self) -> Result<Vec<Pending>, LogError> {
            Ok(Vec::new())
        }
    }

    fn at_once<T>(work: impl Future<Output = T>) -> T {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => unreachable!("nothing here waits"),
        }
    }

    /// In a release as well: the log never gets a pair that no row names, and the effect is not tried again at once.
    #[test]
    fn an_outcome_of_another_effect_is_told_as_a_failure_and_the_effect_waits_for_its_next_try() {
        let id = EffectId::new("e1").unwrap();
        let effect = Arc::new(Effect::SaveWork { task: TaskId::new("t1").unwrap() });
        let effects = OrdMap::unit(id.clone(), effect.clone());
        let mut host = Host { effects, told: Vec::new(), unfit: Vec::new() };
        let mut attempt = Attempt::new(id, effect, 1);
        let next = at_once(attempt.tell(&mut host, Happened::TimerDue)).unwrap();
        assert_eq!(next, Next::Again { wait: TRY_AGAIN.0 });
        let told = at_once(tell(&mut host, &attempt.fence(), Happened::TimerDue)).unwrap();
        assert_eq!(told, Told::Wanted);
        assert_eq!(host.unfit, ["e1 save_work timer_due", "e1 save_work timer_due"]);
        let failure = Happened::Failed { error: "an answer that does not fit: TimerDue".to_owned() };
        assert_eq!(host.told, [failure.clone(), failure]);

        let fits = Happened::WorkSaved { reference: "refs/saved".into() };
        assert_eq!(at_once(attempt.tell(&mut host, fits.clone())).unwrap(), Next::Over);
        assert_eq!((host.told.last(), host.unfit.len()), (Some(&fits), 2));
    }
}
