//! Who tries a service first that was away, alone: what the others begin with it waits for what comes of that.

use machines::names::{RunId, ServiceName};
use serde::{Deserialize, Serialize};

use crate::rooms::Seat;
use crate::world::World;

/// One who goes first. As one text, `t-1.1`, `architect` or `room/reviews/anna`, as runs were written before seats could go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Probe {
    Run(RunId),
    Seat(Seat),
    /// Nobody waits for the service: it counts as back, and whoever begins next goes first.
    Next,
}

const NEXT: &str = "next";

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Probe::Run(run) => write!(f, "{run}"),
            Probe::Seat(seat) => write!(f, "{seat}"),
            Probe::Next => f.write_str(NEXT),
        }
    }
}

impl From<Probe> for String {
    fn from(probe: Probe) -> String {
        probe.to_string()
    }
}

impl TryFrom<String> for Probe {
    type Error = String;

    fn try_from(text: String) -> Result<Probe, String> {
        if text == NEXT {
            return Ok(Probe::Next);
        }
        // A run's name has a dot and no slash, so none is taken for a seat.
        match Seat::try_from(text.clone()) {
            Ok(seat) => Ok(Probe::Seat(seat)),
            Err(_) => RunId::new(&text).map(Probe::Run).map_err(|_| format!("`{text}` tries no service")),
        }
    }
}

impl World {
    /// Who tries the service alone now.
    pub fn probing(&self, service: &ServiceName) -> Option<&Probe> {
        let probe = self.health.get(service)?.probe.as_ref()?;
        let tries = match probe {
            // One that waits for an answer before its next step tries nothing.
            Probe::Run(run) => self.run(run).is_some_and(|run| {
                run.is_live() && (run.step.is_some() || self.open_question(&run.id).is_none())
            }),
            Probe::Seat(seat) => self.seated(seat).is_some_and(|seated| seated.reply.is_some()),
            Probe::Next => false,
        };
        tries.then_some(probe)
    }

    /// Whether something new can begin with the service: it is there, and nobody tries it first; or this is who does.
    pub fn may_begin(&self, service: &ServiceName, seat: Option<&Seat>) -> bool {
        let Some(health) = self.health.get(service) else { return true };
        let goes_first =
            |probe: &Probe| matches!((probe, seat), (Probe::Seat(first), Some(seat)) if first == seat);
        let is_first = health.probe.as_ref().is_some_and(goes_first);
        is_first || (health.healthy && self.probing(service).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_goes_first_is_one_text_and_comes_back_from_it() {
        for text in ["t-1.1", "architect.1", "architect", "room/reviews/anna", "next"] {
            let probe = Probe::try_from(text.to_owned()).unwrap();
            assert_eq!(probe.to_string(), text);
            assert_eq!(matches!(probe, Probe::Run(_)), text.contains('.'), "{text}");
        }
        assert!(Probe::try_from("a/b".to_owned()).is_err());
    }
}
