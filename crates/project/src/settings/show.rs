//! The settings in force, in the form of `adjutant.toml`: every key with its value, and keys without a value
//! by name.

use super::keys::{Key, SECTIONS, Section};
use super::values::Values;
use super::{Settings, SettingsError};
use machines::names::AgentName;
use std::fmt::Write;

/// The settings that this text gives, in full.
pub fn show(text: &str) -> Result<String, SettingsError> {
    let settings = Settings::parse(text)?;
    let values = Values::read(text);
    let mut shown = String::new();
    for section in SECTIONS {
        let names = match section.path {
            "agents.*" => settings.agents.keys().map(ToString::to_string).collect(),
            path if path.ends_with(".*") => values.names(section.path),
            _ => vec![String::new()],
        };
        for name in names {
            let gap = if shown.is_empty() { "" } else { "\n" };
            let _ = writeln!(shown, "{gap}[{}]", section.path.replace('*', &name));
            let scope = values.named(section.path, &name);
            for key in section.keys {
                let written = scope.written(key.path).and_then(|place| text.get(place));
                let value = written.map(str::to_owned).or_else(|| by_default(section, key, &name, &settings));
                let _ = match value {
                    Some(value) => writeln!(shown, "{} = {value}", key.path),
                    None => writeln!(shown, "# {} is not set: {}", key.path, absent(key)),
                };
            }
        }
    }
    Ok(shown)
}

/// What holds where the file says nothing.
fn by_default(section: &Section, key: &Key, name: &str, settings: &Settings) -> Option<String> {
    let default = key.default();
    if !default.is_empty() {
        return Some(default.into_owned());
    }
    let agent = AgentName::new(name).ok().and_then(|name| settings.agents.get(&name));
    let agent = agent.filter(|_| section.path == "agents.*")?;
    match key.path {
        "command" => {
            let words: Vec<String> =
                agent.command.iter().map(|word| toml_edit::Value::from(word).to_string()).collect();
            Some(format!("[{}]", words.join(", ")))
        }
        "max_turns" => Some(machines::run::turn_limit(agent.max_turns, None, agent.kind).to_string()),
        "resume" => Some(agent.resume.to_string()),
        _ => None,
    }
}

/// What the absence of a value means, in the words of its key.
fn absent(key: &Key) -> &'static str {
    match key.path {
        path if path.ends_with("_usd") || path.starts_with("cap_") => "no limit",
        _ => key.about,
    }
}
