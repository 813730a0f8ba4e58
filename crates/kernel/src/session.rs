//! The session of an agent that Adjutant runs: one that works on a task, or one that speaks as a member of a room or as the
//! architect. It is begun, paid for, answered and ended in one way, in `rules/sessions.rs`.

use machines::names::{AgentName, EffectId};
use smol_str::SmolStr;

use crate::config::Micros;
pub use crate::effect::Session;
use crate::probe::Probe;
use crate::world::World;

/// What the World knows of a session, wherever it keeps it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionState<'a> {
    pub agent: &'a AgentName,
    /// The model that is paid for, where it is known.
    pub model: Option<&'a SmolStr>,
    /// The name of the session by which the agent's program takes it up again. A run outside has none.
    pub name: Option<&'a SmolStr>,
    /// Something was begun in it, so that it can be resumed.
    pub used: bool,
    /// What is under way in it.
    pub under_way: Option<&'a EffectId>,
    /// Set aside for what is under way.
    pub reserved: Micros,
    /// The last turn whose cost was counted.
    pub turns_charged: u32,
    /// What is under way is a second try, with a fresh session.
    pub retried: bool,
}

impl Session {
    /// Who tries a service first, where this is who does.
    pub fn probe(&self) -> Probe {
        match self {
            Session::Run(run) => Probe::Run(run.clone()),
            Session::Seat(seat) => Probe::Seat(seat.clone()),
        }
    }
}

impl World {
    pub fn session(&self, of: &Session) -> Option<SessionState<'_>> {
        match of {
            Session::Run(id) => {
                let run = self.run(id)?;
                let place = self.task(&run.task).and_then(|task| task.work.place.as_ref());
                Some(SessionState {
                    agent: &run.agent,
                    model: run.model.as_ref(),
                    name: place.map(|place| &place.session),
                    used: place.is_some_and(|place| place.session_used),
                    under_way: run.step.as_ref(),
                    reserved: run.reserved,
                    turns_charged: run.turns_charged,
                    retried: run.retried,
                })
            }
            Session::Seat(seat) => {
                let seated = self.seated(seat)?;
                let agent = self.config.agents.get(&seated.agent);
                Some(SessionState {
                    agent: &seated.agent,
                    model: agent.and_then(|agent| agent.model.as_ref()),
                    name: Some(&seated.session),
                    used: seated.session_used,
                    under_way: seated.reply.as_ref(),
                    reserved: seated.reserved,
                    turns_charged: seated.turns_charged,
                    retried: seated.retried,
                })
            }
        }
    }
}
