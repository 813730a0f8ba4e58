//! The machines' tables, for reading.

use machines::catalog::Doc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    pub machine: String,
    pub seed: String,
    pub initial: String,
    pub states: Vec<State>,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MachineState")]
pub struct State {
    pub name: String,
    #[serde(rename = "final")]
    pub is_final: bool,
    pub meta: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MachineRow")]
pub struct Row {
    pub from: String,
    pub event: String,
    pub guards: Vec<String>,
    pub actions: Vec<String>,
    pub to: String,
    /// Roles; empty if everyone may.
    pub who: Vec<String>,
}

impl From<Doc> for Machine {
    fn from(doc: Doc) -> Machine {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let state = |state: &machines::catalog::StateDoc| State {
            name: state.name.to_owned(),
            is_final: state.is_final,
            meta: state
                .meta
                .iter()
                .map(|(name, meta)| ((*name).to_owned(), serde_json::to_value(meta).unwrap_or_default()))
                .collect(),
        };
        let row = |row: &machines::catalog::RowDoc| Row {
            from: row.from.to_owned(),
            event: row.event.to_owned(),
            guards: row.guards.clone(),
            actions: words(&row.actions),
            to: row.to.to_owned(),
            who: words(&row.who),
        };
        Machine {
            machine: doc.machine.to_owned(),
            seed: doc.seed.to_owned(),
            initial: doc.initial.to_owned(),
            states: doc.states.iter().map(state).collect(),
            rows: doc.rows.iter().map(row).collect(),
        }
    }
}
