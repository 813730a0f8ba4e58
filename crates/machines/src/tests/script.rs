//! A script: one line per event, `event -> what came of it`. The whole script is compared at once, so that a
//! failure shows the story and not a line of it.

use crate::machine::{Machine, Refusal, step};
use crate::wire::Wire;
use serde::Serialize;
use serde_json::Value;

/// How a machine's tests are written down.
pub(crate) trait Script:
    Machine<Event: std::fmt::Debug, Effect: Serialize> + PartialEq + std::fmt::Debug
{
    /// The event that the words before the arrow mean, for the machine as it stands.
    fn read(&self, words: &[&str]) -> Self::Event;

    /// What is shown of the machine beside its state.
    fn detail(&self) -> String {
        String::new()
    }
}

/// Plays the script from `machine` and compares what came of each event with what the script says.
#[track_caller]
pub(crate) fn play<M: Script>(mut machine: M, script: &str) -> M {
    let mut expected = Vec::new();
    let mut actual = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (left, right) = line.split_once("->").unwrap_or((line, ""));
        let words: Vec<&str> = left.split_whitespace().collect();
        let event = machine.read(&words);
        let came = match step(&machine, &event) {
            Ok(step) => {
                machine = step.state;
                let detail = machine.detail();
                let space = if detail.is_empty() { "" } else { " " };
                format!("{}{space}{detail} {}", machine.state().name(), effects(&step.effects))
            }
            Err(refusal) => refused(&refusal),
        };
        expected.push(format!("{} -> {}", words.join(" "), right.trim()));
        actual.push(format!("{} -> {came}", words.join(" ")));
    }
    let (expected, actual) = (expected.join("\n"), actual.join("\n"));
    assert!(expected == actual, "the script says\n\n{expected}\n\nbut what came is\n\n{actual}\n");
    machine
}

pub(crate) fn refused(refusal: &Refusal) -> String {
    let mut text = format!("refused {}", refusal.code);
    for error in &refusal.errors {
        text += &format!("; {}: {}", error.field, error.message);
    }
    format!("{text}, allowed [{}]", refusal.allowed.join(", "))
}

/// Effects by name, each with its plain values.
pub(crate) fn effects(effects: &[impl Serialize]) -> String {
    let shown: Vec<String> =
        effects.iter().map(|effect| effect_text(&serde_json::to_value(effect).unwrap())).collect();
    format!("[{}]", shown.join(", "))
}

fn effect_text(effect: &Value) -> String {
    if let Some(event) = effect.get("event") {
        let members = event.get("payload").unwrap_or(event);
        return format!("{}{}", event["type"].as_str().unwrap(), values(members));
    }
    format!("{}{}", effect["effect"].as_str().unwrap(), values(effect))
}

fn values(fields: &Value) -> String {
    let plain = fields
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "effect" | "type"))
        .map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join("/")
            }
            other => other.to_string(),
        });
    plain.map(|value| format!(" {value}")).collect()
}
