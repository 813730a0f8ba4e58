//! Who tries a service first that was away, alone: what the others begin with it waits for what comes of that.

use machines::names::RunId;
use serde::{Deserialize, Serialize};

use crate::rooms::Seat;

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
