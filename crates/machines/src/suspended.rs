//! `suspended`: a wrapper that an agent's machine is put into while a service that it needs is away.
//!
//! Not a sixth machine: it is written once, for the run and the architect.
//! Invariants: the inner machine is kept unchanged, whole, and comes back as it was; it is never entered twice;
//! its own clock stands still.

use crate::Millis;
use crate::machine::{Caller, Code, Machine, Meta, Refusal, advance_into, rows_at};
use crate::wire::Wire;
use crate::{architect, run};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// How long a suspension may last, from its beginning or from the announced reset where there is one.
pub const SUSPENSION_SECONDS_MAX: u32 = 15 * 60;
/// How often the health of each service is asked.
pub const HEALTH_POLL_SECONDS: u32 = 30;

/// The wrapper's events on the wire, the same for every machine.
pub const SUSPEND: &str = "SUSPEND";
pub const RESTORE: &str = "RESTORE";
pub const EXPIRE: &str = "SUSPEND_TIMEOUT";

/// What the wrapper's state means, for the printed pages.
pub const ABOUT: &str = "A service that the agent needs is away. Everything is kept as it was and its timers stand still; it goes on \
     when the service is back, and is given up after 15 minutes unless configured otherwise.";

/// What a machine says of itself so that it can be suspended.
pub trait Suspends: Machine {
    /// The wrapper's state on this machine's wire.
    const WIRE: &'static str;
    /// States that have nothing to suspend.
    const RESTING: &'static [Self::State];
    /// Where a suspension that lasts too long leads.
    const EXPIRED: Self::State;
    /// Where a cancellation of the agent leads, and the event that is one.
    const CANCELED: Self::State;
    const CANCEL: Self::Kind;

    /// Facts about the wrapper's state, as the machine's own states have them.
    fn meta() -> Vec<(&'static str, Meta)>;
    /// Leaves the machine in `EXPIRED`, remembering why.
    fn expire(&mut self, why: &str, effects: &mut Vec<Self::Effect>);
    /// Leaves the machine in `CANCELED`.
    fn cancel(&mut self, event: &Self::Event, effects: &mut Vec<Self::Effect>);
}

/// A machine that may be suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Suspendable<M> {
    Suspended { suspended: Suspension, inner: M },
    Live(M),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suspension {
    pub service: SmolStr,
    pub since: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Millis>,
    /// When it ends as an error.
    pub until: Millis,
}

/// An event of the wrapper, or of what it wraps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Wrapped<E> {
    /// A service stayed away after the adapter's own retries.
    #[serde(rename = "SUSPEND")]
    Suspend(Suspension),
    #[serde(rename = "RESTORE")]
    Restore,
    #[serde(rename = "SUSPEND_TIMEOUT")]
    Expire,
    #[serde(untagged)]
    Inner(E),
}

impl<M: Suspends> Suspendable<M> {
    pub fn inner(&self) -> &M {
        match self {
            Suspendable::Live(inner) | Suspendable::Suspended { inner, .. } => inner,
        }
    }

    pub fn inner_mut(&mut self) -> &mut M {
        match self {
            Suspendable::Live(inner) | Suspendable::Suspended { inner, .. } => inner,
        }
    }

    pub fn suspension(&self) -> Option<&Suspension> {
        match self {
            Suspendable::Suspended { suspended, .. } => Some(suspended),
            Suspendable::Live(_) => None,
        }
    }

    /// The state as the wire has it.
    pub fn name(&self) -> &'static str {
        match self {
            Suspendable::Suspended { .. } => M::WIRE,
            Suspendable::Live(inner) => inner.state().name(),
        }
    }

    /// Takes an event of the wrapper or of the machine in it, and gives what that asks for. A refusal changes nothing.
    pub fn advance(
        &mut self,
        event: &Wrapped<M::Event>,
        by: Option<Caller>,
    ) -> Result<Vec<M::Effect>, Refusal> {
        let mut effects = Vec::new();
        self.advance_into(event, by, &mut effects)?;
        Ok(effects)
    }

    fn advance_into(
        &mut self,
        event: &Wrapped<M::Event>,
        by: Option<Caller>,
        effects: &mut Vec<M::Effect>,
    ) -> Result<(), Refusal> {
        match (&mut *self, event) {
            (Suspendable::Live(inner), Wrapped::Inner(event)) => {
                advance_into(inner, event, by, effects).map(drop).map_err(|mut refusal| {
                    if !M::RESTING.contains(&inner.state()) && !refusal.allowed.contains(&SUSPEND) {
                        refusal.allowed.push(SUSPEND);
                    }
                    refusal
                })
            }
            (Suspendable::Live(inner), Wrapped::Suspend(suspended))
                if !M::RESTING.contains(&inner.state()) =>
            {
                *self = Suspendable::Suspended { suspended: suspended.clone(), inner: inner.clone() };
                Ok(())
            }
            (Suspendable::Suspended { inner, .. }, Wrapped::Restore) => {
                *self = Suspendable::Live(inner.clone());
                Ok(())
            }
            (Suspendable::Suspended { inner, suspended }, Wrapped::Expire) => {
                let mut inner = inner.clone();
                inner.expire(&format!("service {} stayed unavailable", suspended.service), effects);
                *self = Suspendable::Live(inner);
                Ok(())
            }
            (Suspendable::Suspended { inner, .. }, Wrapped::Inner(event)) if M::kind(event) == M::CANCEL => {
                let mut inner = inner.clone();
                inner.cancel(event, effects);
                *self = Suspendable::Live(inner);
                Ok(())
            }
            _ => Err(self.refuse(event)),
        }
    }

    fn refuse(&self, event: &Wrapped<M::Event>) -> Refusal {
        let message = match event {
            Wrapped::Suspend(_) if self.suspension().is_some() => "it is suspended already",
            Wrapped::Suspend(_) => "there is nothing under way to suspend",
            Wrapped::Restore | Wrapped::Expire => "it is not suspended",
            Wrapped::Inner(_) => "it is suspended: it goes on when the service is back",
        };
        let allowed = match self {
            Suspendable::Suspended { .. } => {
                vec![RESTORE, EXPIRE, M::CANCEL.name()]
            }
            Suspendable::Live(inner) => kinds_from::<M>(inner.state()),
        };
        Refusal {
            machine: M::NAME,
            state: self.name(),
            event: event_name::<M>(event),
            code: Code::NotAllowed,
            message: message.into(),
            errors: Vec::new(),
            allowed,
        }
    }
}

fn kinds_from<M: Suspends>(state: M::State) -> Vec<&'static str> {
    let open = |kind: &&M::Kind| rows_at::<M>(state, **kind).next().is_some();
    let mut kinds: Vec<_> = M::Kind::ALL.iter().filter(open).map(|kind| kind.name()).collect();
    if !M::RESTING.contains(&state) {
        kinds.push(SUSPEND);
    }
    kinds
}

/// The event's name on the wire.
pub fn event_name<M: Suspends>(event: &Wrapped<M::Event>) -> &'static str {
    match event {
        Wrapped::Suspend(_) => SUSPEND,
        Wrapped::Restore => RESTORE,
        Wrapped::Expire => EXPIRE,
        Wrapped::Inner(event) => M::kind(event).name(),
    }
}

impl Suspends for run::Run {
    const WIRE: &'static str = "suspended";
    const RESTING: &'static [run::State] = &[run::State::Idle, run::State::Completed];
    const EXPIRED: run::State = run::State::InError;
    const CANCELED: run::State = run::State::Idle;
    const CANCEL: run::Kind = run::Kind::Abort;

    fn meta() -> Vec<(&'static str, Meta)> {
        <Self as Machine>::meta(run::State::Starting)
    }

    fn expire(&mut self, why: &str, effects: &mut Vec<run::Effect>) {
        let error = run::AppError {
            code: SmolStr::new_static("SERVICE_UNAVAILABLE"),
            message: why.to_owned(),
            status: 503,
            details: None,
        };
        let event = run::Event::Error { error, recoverable: true };
        let from = self.state;
        self.enter(Self::EXPIRED);
        for action in [run::Action::CaptureError, run::Action::UpdateStatus] {
            self.perform(action, from, &event, effects);
        }
    }

    fn cancel(&mut self, event: &run::Event, effects: &mut Vec<run::Effect>) {
        let from = self.state;
        self.enter(Self::CANCELED);
        for action in [run::Action::UpdateStatus, run::Action::Cleanup] {
            self.perform(action, from, event, effects);
        }
    }
}

impl Suspends for architect::Architect {
    const WIRE: &'static str = "SUSPEND";
    const RESTING: &'static [architect::State] =
        &[architect::State::New, architect::State::Done, architect::State::InError];
    const EXPIRED: architect::State = architect::State::InError;
    const CANCELED: architect::State = architect::State::InError;
    const CANCEL: architect::Kind = architect::Kind::Abandon;

    fn meta() -> Vec<(&'static str, Meta)> {
        <Self as Machine>::meta(architect::State::Waiting)
    }

    fn expire(&mut self, why: &str, _effects: &mut Vec<architect::Effect>) {
        self.state = Self::EXPIRED;
        self.request = None;
        self.cause = Some(why.to_owned());
    }

    fn cancel(&mut self, event: &architect::Event, effects: &mut Vec<architect::Effect>) {
        self.enter(Self::CANCELED);
        self.perform(architect::Action::RememberCause, self.state, event, effects);
    }
}

#[cfg(test)]
mod tests;
