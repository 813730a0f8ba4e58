//! The tables as data: what is printed, drawn, answered over HTTP and written into the reference pages.
//!
//! Invariant: nothing here knows a row. Everything is read from the tables, so it cannot differ from what runs.

mod blame;
mod print;
mod step;

pub use print::Format;
pub use step::{LINE_LENGTH_MAX, step_bytes, step_line};

use crate::machine::{Machine, Meta};
use crate::suspended::{self, Suspends};
use crate::wire::Wire;
use crate::{architect, run, task, turn, worker};
use serde::{Serialize, Serializer};

/// One machine, for reading. Serialized, it is the document that `adj machine show NAME --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Doc {
    pub machine: &'static str,
    pub seed: &'static str,
    pub initial: &'static str,
    pub states: Vec<StateDoc>,
    pub rows: Vec<RowDoc>,
    /// The one question that the machine answers.
    #[serde(skip)]
    pub answers: &'static str,
    /// What there is one instance per.
    #[serde(skip)]
    pub instance: &'static str,
    /// The events that make an instance; they lead to `initial` from nowhere.
    #[serde(skip)]
    pub creation: Vec<RowDoc>,
    /// What each guard asks.
    #[serde(skip)]
    pub guards: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateDoc {
    pub name: &'static str,
    #[serde(rename = "final")]
    pub is_final: bool,
    #[serde(serialize_with = "as_map")]
    pub meta: Vec<(&'static str, Meta)>,
    #[serde(skip)]
    pub about: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDoc {
    pub from: &'static str,
    pub event: &'static str,
    pub guards: Vec<String>,
    pub actions: Vec<&'static str>,
    pub to: &'static str,
    pub who: Vec<&'static str>,
    /// `who` with the condition of each in words.
    #[serde(skip)]
    pub conditions: Vec<String>,
}

/// The five machines, in the order of their documents.
pub fn all() -> Vec<Doc> {
    vec![
        doc::<turn::Turn>("agent in a channel", "who may speak now?"),
        doc::<worker::Worker>("slot of the coding fleet", "who is busy with what, and does it move?"),
        doc::<task::Task>("unit of work", "how far is the work, and who may move it?"),
        suspendable::<architect::Architect>(
            "architect of a project",
            "which spec or request is being handled?",
        ),
        suspendable::<run::Run>("execution of an agent on a task", "what is the agent process doing?"),
    ]
}

/// The machine of that name, in either case.
pub fn find(name: &str) -> Option<Doc> {
    all().into_iter().find(|doc| doc.machine.eq_ignore_ascii_case(name))
}

/// The names of the machines, for a message that says what is known.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|doc| doc.machine).collect()
}

fn doc<M: Machine>(instance: &'static str, answers: &'static str) -> Doc {
    let (creation, rows) = M::TABLE
        .iter()
        .map(row::<M>)
        .partition(|row| M::BEFORE.is_some_and(|state| state.name() == row.from));
    Doc {
        machine: M::NAME,
        seed: M::SEED,
        initial: M::INITIAL.name(),
        states: M::State::ALL.iter().filter(|state| Some(**state) != M::BEFORE).map(state::<M>).collect(),
        rows,
        answers,
        instance,
        creation,
        guards: M::Guard::ALL.iter().map(|guard| (guard.name(), guard.about())).collect(),
    }
}

fn state<M: Machine>(state: &M::State) -> StateDoc {
    StateDoc {
        name: state.name(),
        is_final: M::FINAL.contains(state),
        meta: M::meta(*state),
        about: state.about(),
    }
}

fn row<M: Machine>(row: &crate::Row<M>) -> RowDoc {
    let condition = |who: &crate::Who| match who.condition() {
        Some(condition) => format!("{} ({condition})", who.name()),
        None => who.name().to_owned(),
    };
    RowDoc {
        from: row.from.name(),
        event: row.event.name(),
        guards: row.guards.iter().map(|guard| guard.name().to_owned()).collect(),
        actions: row.actions.iter().map(|action| action.name()).collect(),
        to: row.to.name(),
        who: row.who.iter().map(|who| who.name()).collect(),
        conditions: row.who.iter().map(condition).collect(),
    }
}

/// A machine with the rows of the wrapper that it can be put into.
fn suspendable<M: Suspends>(instance: &'static str, answers: &'static str) -> Doc {
    let mut doc = doc::<M>(instance, answers);
    let origins: Vec<&'static str> = M::State::ALL
        .iter()
        .filter(|state| Some(**state) != M::BEFORE && !M::RESTING.contains(state))
        .map(|state| state.name())
        .collect();
    let row = |from, event, guards, action, to| RowDoc {
        from,
        event,
        guards,
        actions: vec![action],
        to,
        who: Vec::new(),
        conditions: Vec::new(),
    };
    for origin in &origins {
        doc.rows.push(row(origin, suspended::SUSPEND, Vec::new(), "keepState", M::WIRE));
    }
    for origin in &origins {
        let from_there = vec![format!("from {origin}")];
        doc.rows.push(row(M::WIRE, suspended::RESTORE, from_there, "restoreState", origin));
    }
    doc.rows.push(row(M::WIRE, suspended::EXPIRE, Vec::new(), "captureError", M::EXPIRED.name()));
    doc.rows.push(row(M::WIRE, M::CANCEL.name(), Vec::new(), "cleanup", M::CANCELED.name()));
    doc.states.push(StateDoc {
        name: M::WIRE,
        is_final: false,
        meta: <M as Suspends>::meta(),
        about: suspended::ABOUT,
    });
    doc
}

fn as_map<S: Serializer>(meta: &[(&'static str, Meta)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(meta.iter().copied())
}
