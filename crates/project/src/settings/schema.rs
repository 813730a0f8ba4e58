//! The table of keys as a JSON Schema, for editors that complete and check as one types.

use super::keys::{Key, Kind, SECTIONS};
use super::values::{Value as Read, default};
use serde_json::{Map, Value, json};

/// A JSON Schema (2020-12) that takes what [`super::Settings::parse`] takes, as far as a schema can say it.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for section in SECTIONS {
        let mut table = object(section.about);
        for key in section.keys {
            let mut at = &mut table;
            let mut parts: Vec<_> = key.path.split('.').collect();
            let last = parts.pop().unwrap_or_default();
            for part in parts {
                at = property(at, part, || object("See the keys inside."));
            }
            property(at, last, || of_key(key));
        }
        let table = match section.is_named() {
            true => json!({
                "type": "object",
                "description": section.about,
                "propertyNames": { "pattern": NAME, "maxLength": machines::names::NAME_LENGTH_MAX },
                "additionalProperties": table,
            }),
            false => table,
        };
        properties.insert(section.head().to_owned(), table);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "adjutant.toml",
        "description": "What Adjutant is told about a project.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

const NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";

fn object(about: &str) -> Value {
    json!({ "type": "object", "description": about, "additionalProperties": false, "properties": {} })
}

fn property<'a>(table: &'a mut Value, name: &str, new: impl FnOnce() -> Value) -> &'a mut Value {
    let properties = table["properties"].as_object_mut().expect("every table here has properties");
    properties.entry(name).or_insert_with(new)
}

fn of_key(key: &Key) -> Value {
    let list = |items: Value| json!({ "type": "array", "items": items });
    let inside = "^(?![/~])(?!.*(^|/)\\.\\.(/|$)).+$";
    let mut schema = match key.kind {
        Kind::Text | Kind::Shell | Kind::Health => json!({ "type": "string", "minLength": 1 }),
        Kind::Branch => json!({ "type": "string", "pattern": "^[^-/ ~^:?*\\[\\\\][^ ~^:?*\\[\\\\]*$" }),
        Kind::Identity => json!({ "type": "string", "pattern": "^[^<>]+<[^<>@\\s]+@[^<>@\\s]+>$" }),
        Kind::Name => json!({ "type": "string", "pattern": NAME }),
        Kind::Folder => json!({ "type": "string", "pattern": "^([^{}]|\\{project\\})+$" }),
        Kind::Size => json!({ "type": "string", "pattern": "^ *[0-9]+(\\.[0-9]+)? *([kKMGT]i?)?B *$" }),
        Kind::Path => json!({ "type": "string", "pattern": inside }),
        Kind::Choice(words) => json!({ "enum": words() }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Money => json!({ "type": "number", "minimum": 0 }),
        Kind::Time => json!({ "type": "string", "pattern": "^([0-9]+[smhd])+$" }),
        Kind::Words => {
            json!({ "type": "array", "minItems": 1, "items": { "type": "string", "minLength": 1 } })
        }
        Kind::Texts => list(json!({ "type": "string", "minLength": 1 })),
        Kind::Names => list(json!({ "type": "string", "pattern": NAME })),
        Kind::Variable => json!({ "type": "string", "pattern": "^(?!ADJ_)[A-Za-z_][A-Za-z0-9_]*$" }),
        Kind::Url => json!({ "type": "string", "pattern": "^https?://[^\\s#@]+$" }),
        Kind::Variables => list(json!({ "type": "string", "pattern": "^(?!ADJ_)[A-Za-z_][A-Za-z0-9_]*$" })),
        Kind::Tools => list(json!({ "type": "string", "pattern": "^[^\\s()*]+(\\(.*\\))?$" })),
        Kind::Globs => list(json!({ "type": "string", "pattern": inside })),
        Kind::Places => list(json!({ "type": "string", "pattern": "^(/|~/)" })),
        Kind::Ports => list(json!({ "type": "integer", "minimum": super::keys::PORT_MIN, "maximum": 65535 })),
    };
    schema["description"] = key.about.into();
    if let Some(default) = default(key) {
        schema["default"] = match default {
            Read::Flag(flag) => flag.into(),
            Read::Number(number) => number.into(),
            Read::Money(micros) => (micros as f64 / 1_000_000.0).into(),
            Read::List(list) => list.into(),
            // As written: a time is a text in the file.
            Read::Text(_) | Read::Time(_) => key.default().trim_matches('"').into(),
        };
    }
    schema
}
