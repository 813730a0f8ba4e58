//! A tool with its operation: whom it is offered to, what it takes, and what a plain one asks.

use machines::machine::Role;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::failure::{Exit, Failure};
use super::operation::{Operation, about_name};
use super::tool::{Audience, Tool};
use super::types::Name;
use super::types::caller::Caller;
use super::{Method, Outgoing};

#[derive(Clone, Copy)]
pub struct OfferedTool {
    pub operation: &'static Operation,
    pub tool: &'static Tool,
}

impl OfferedTool {
    /// Whether it is offered to a caller. A token for reading is offered what changes nothing.
    pub fn is_for(&self, caller: &Caller) -> bool {
        self.tool.audience.iter().any(|audience| has(*audience, caller)) && !self.only_reads(caller)
    }

    /// Why it is not offered to a caller.
    pub fn refusal(&self, caller: &Caller) -> String {
        if self.tool.audience.iter().any(|audience| has(*audience, caller)) && self.only_reads(caller) {
            return format!("this token is for reading, and `{}` changes something", self.tool.name);
        }
        let by_place = [Audience::Member, Audience::Architect];
        let is_agent = caller.role != Role::Human;
        match caller.is_architect()
            || is_agent && self.tool.audience.iter().any(|audience| by_place.contains(audience))
        {
            true => format!("`{}` is for {}", self.tool.name, self.is_for_whom()),
            false => format!("the caller's role, {}, may not use `{}`", caller.role, self.tool.name),
        }
    }

    /// `people and the architect`.
    pub fn is_for_whom(&self) -> String {
        let words: Vec<&str> = self.tool.audience.iter().map(|audience| audience.words()).collect();
        match &words[..] {
            [all @ .., last] if !all.is_empty() => format!("{} and for {last}", all.join(", for ")),
            words => words.concat(),
        }
    }

    /// What it takes, as a schema. Whole, without references to elsewhere: not every client follows them.
    pub fn input(&self) -> Map<String, Value> {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        let mut settings = settings.with(|settings| settings.inline_subschemas = true);
        settings.meta_schema = None;
        let mut schemas = settings.into_generator();
        let mut schema = match self.tool.input {
            Some(input) => object(input(&mut schemas).to_value()),
            None => self.derived(&mut schemas),
        };
        // What the type is called and is for is said by the tool itself.
        schema.shift_remove("title");
        schema.shift_remove("description");
        schema
    }

    /// What the operation takes, in one object.
    fn derived(&self, schemas: &mut SchemaGenerator) -> Map<String, Value> {
        let mut schema = object(match self.operation.method {
            Method::Get => (self.operation.query)(schemas).to_value(),
            _ => (self.operation.body)(schemas).to_value(),
        });
        let mut properties = Map::new();
        let mut required = Vec::new();
        for name in self.operation.path_names() {
            let mut about = about_name(name).to_owned();
            match (self.tool.own, name) {
                (true, "task") => {
                    about.push_str(" An agent at work may leave it out: then it is its own task.")
                }
                (true, "channel") => {
                    about.push_str(
                        " You may leave it out where you are in one only, or have the turn in one.",
                    );
                }
                _ => required.push(json!(name)),
            }
            let mut named = schemas.subschema_for::<Name>().to_value();
            named["description"] = about.into();
            properties.insert(name.to_owned(), named);
        }
        properties.extend(object(schema.shift_remove("properties").unwrap_or_default()));
        required.extend(list(schema.shift_remove("required")));
        for (member, _) in &self.tool.fixed {
            properties.shift_remove(*member);
            required.retain(|name| name != member);
        }
        for (member, of) in &self.tool.instead {
            let about = properties.get(*member).map(|schema| schema["description"].clone());
            let mut of = of(schemas).to_value();
            of["description"] = about.unwrap_or_default();
            properties.insert((*member).to_owned(), of);
        }
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema
    }

    /// What a plain tool asks for a caller.
    pub fn request(&self, caller: &Caller, mut input: Map<String, Value>) -> Result<Outgoing, Failure> {
        if let Some((member, _)) = self.tool.fixed.iter().find(|(member, _)| input.contains_key(*member)) {
            return Err(Failure::new(Exit::Usage, format!("unknown field `{member}`")));
        }
        let mut names = Vec::new();
        for name in self.operation.path_names() {
            names.push(match (input.shift_remove(name), name) {
                (Some(Value::String(given)), _) => named(name, given)?,
                (Some(Value::Null) | None, "task") if self.tool.own => own_task(caller)?,
                (Some(Value::Null) | None, "channel") if self.tool.own => own_channel(caller)?,
                (Some(Value::Null) | None, _) => return Err(missing(name)),
                (Some(_), _) => return Err(Failure::new(Exit::Usage, format!("`{name}` must be text"))),
            });
        }
        for (member, value) in &self.tool.fixed {
            if let Some(value) = value {
                input.insert((*member).to_owned(), value.clone());
            }
        }
        let path = self.operation.path_with(names.iter().map(String::as_str));
        let (query, body) = match self.operation.method {
            Method::Get => {
                let given = input.into_iter().filter(|(_, value)| !value.is_null());
                (given.map(|(name, value)| (name, in_address(value))).collect(), Value::Null)
            }
            _ => (Vec::new(), Value::Object(input)),
        };
        Ok(Outgoing { method: self.operation.method, path, query, body })
    }

    /// It changes something, and the caller's token is for reading.
    fn only_reads(&self, caller: &Caller) -> bool {
        caller.reads_only && self.operation.method != Method::Get
    }
}

fn has(audience: Audience, caller: &Caller) -> bool {
    let is_person = caller.role == Role::Human;
    let is_agent = !is_person && !caller.is_architect();
    match audience {
        Audience::Person => is_person,
        Audience::Agent => is_agent,
        Audience::Specialist => is_agent && matches!(caller.role, Role::Specialist | Role::Lead),
        Audience::Lead => is_agent && caller.role == Role::Lead,
        Audience::Member => is_agent && !caller.channels.is_empty(),
        Audience::Architect => caller.is_architect(),
    }
}

/// A name as a part of a path: what would lead elsewhere is no name.
fn named(what: &str, name: String) -> Result<String, Failure> {
    match machines::names::check(&name) {
        Ok(()) => Ok(name),
        Err(error) => Err(Failure::new(Exit::Usage, format!("`{what}` is not right: {error}"))),
    }
}

/// The caller's task, if the call names none.
pub fn own_task(caller: &Caller) -> Result<String, Failure> {
    caller.task.clone().ok_or_else(|| missing("task").hint("`list_tasks` lists the tasks with their ids"))
}

/// The caller's channel, if the call names none.
pub fn own_channel(caller: &Caller) -> Result<String, Failure> {
    caller.channel.clone().ok_or_else(|| {
        let known = caller.channels.join(", ");
        missing("channel").hint(match known.is_empty() {
            true => "`list_channels` lists them".to_owned(),
            false => format!("you are in {known}"),
        })
    })
}

fn missing(name: &str) -> Failure {
    let about = about_name(name).trim_end_matches('.');
    Failure::new(Exit::Usage, format!("`{name}` is missing: {}{}", about[..1].to_lowercase(), &about[1..]))
}

/// A value as an address has it: lists with commas between.
fn in_address(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(items) => items.into_iter().map(in_address).collect::<Vec<_>>().join(","),
        value => value.to_string(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
