//! The table of routes as an OpenAPI 3.1 document: no route is described by hand, and none is left out.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::{Operation, about_name};
use super::routes::TABLE;
use super::types::Name;
use super::{KEY_LENGTH_MAX, Method};
use machines::names::NAME_LENGTH_MAX;

pub static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

/// Where schemas stand in the document.
const SCHEMAS: &str = "/components/schemas";
/// What is sent and what is answered may differ under one name: what is sent gets this behind it.
const SENT: &str = "Sent";

fn document() -> Value {
    let generator = |settings: SchemaSettings| {
        settings.with(|settings| settings.definitions_path = SCHEMAS.into()).into_generator()
    };
    let mut sent = generator(SchemaSettings::draft2020_12().for_deserialize());
    let mut answered = generator(SchemaSettings::draft2020_12().for_serialize());
    let problem = answered.subschema_for::<super::types::problem::Document>().to_value();
    let mut operations: Vec<(&Operation, Described)> = Vec::new();
    let mut tags = Vec::new();
    for subject in TABLE.iter() {
        tags.push(json!({"name": subject.title}));
        for route in &subject.operations {
            operations.push((route, Described::of(route, subject.title, &mut sent, &mut answered)));
        }
    }
    let (mut sent, mut schemas) = (sent.take_definitions(false), answered.take_definitions(false));
    let renamed = renamed(&sent, &schemas);
    for (name, mut schema) in std::mem::take(&mut sent) {
        rename(&mut schema, &renamed);
        let name = if renamed.contains(&name) { format!("{name}{SENT}") } else { name };
        schemas.insert(name, schema);
    }
    schemas.sort_keys();
    let mut paths = Map::new();
    for (route, mut operation) in operations {
        rename(&mut operation.parameters, &renamed);
        rename(&mut operation.body, &renamed);
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.name().to_lowercase()] = operation.document(route);
    }
    let mut paths = Value::Object(paths);
    for_generators(&mut paths);
    schemas.values_mut().for_each(for_generators);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Adjutant",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tasks, agents, runs and approvals of a project. `adj serve` answers here.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}, {"session": [], "pageKey": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refusals(&problem),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A person's token is in `.git/adjutant/token`; `adj token create` makes others.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "adj-4600",
                    "description": "A browser that came by the link of `adj url`. The name holds the port.",
                },
                "pageKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Adj-Page-Key",
                    "description": "What `POST /session` answered, kept in the storage of the page: the cookie alone is \
                        not enough, since browsers send it to every port of a host.",
                },
            },
        },
    })
}

/// What generators of clients stumble over, said in another way. A member with a `default` becomes one that must be sent, in
/// openapi-typescript; a schema that is `true` is refused by openapi-python-client, and `{}` means the same.
fn for_generators(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(for_generators),
        Value::Object(members) => {
            // A member of this name would be a schema, or stand below `properties`.
            members.shift_remove("default");
            for (name, value) in members.iter_mut() {
                match (name.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        for property in properties.values_mut() {
                            match property {
                                Value::Bool(true) => *property = json!({}),
                                property => for_generators(property),
                            }
                        }
                    }
                    ("items", value @ Value::Bool(true)) => *value = json!({}),
                    (_, value) => for_generators(value),
                }
            }
        }
        _ => {}
    }
}

/// A row, with its types as schemas.
struct Described {
    subject: &'static str,
    parameters: Value,
    body: Value,
    /// Whether there is anything that it must bring; without a body it is taken as `{}`.
    body_required: bool,
    answer: Value,
    streamed: Option<Value>,
}

impl Described {
    fn of(
        route: &Operation,
        subject: &'static str,
        sent: &mut SchemaGenerator,
        answered: &mut SchemaGenerator,
    ) -> Described {
        let query = (route.query)(sent).to_value();
        let query = resolved(&query, sent.definitions());
        let mut parameters: Vec<Value> = route.path_names().map(path_parameter).collect();
        parameters.extend(query_parameters(&query));
        let body = (route.body)(sent).to_value();
        let empty = body["$ref"].as_str().is_some_and(|name| name.ends_with("/Nothing"));
        let whole = resolved(&body, sent.definitions());
        let body_required = whole["properties"].is_null() || whole["required"].is_array();
        let body = if empty { Value::Null } else { body };
        Described {
            subject,
            parameters: parameters.into(),
            body,
            body_required,
            answer: (route.answer)(answered).to_value(),
            streamed: route.streamed.map(|streamed| streamed(answered).to_value()),
        }
    }

    fn document(mut self, route: &Operation) -> Value {
        let Operation { method, path, about, status, .. } = route;
        let content = |schema: &Value, kind: &str| json!({kind: {"schema": schema}});
        let mut answer = content(&self.answer, "application/json");
        if let Some(stream) = route.stream {
            // What each event of the stream holds stands beside the text that the whole is.
            answer[stream.content_type()] = match &self.streamed {
                Some(event) => json!({"schema": {"type": "string"}, "x-event": event}),
                None => json!({"schema": {"type": "string"}}),
            };
        }
        let changes = *method != Method::Get;
        let mut responses = json!({status.to_string(): {"description": "Done", "content": answer}});
        for refusal in REFUSALS.iter().filter(|refusal| changes || !refusal.of_changes) {
            responses[refusal.status.to_string()] =
                json!({"$ref": format!("#/components/responses/{}", refusal.name)});
        }
        if changes {
            if let Some(parameters) = self.parameters.as_array_mut() {
                parameters.push(idempotency_key());
            }
        } else {
            responses["304"] = json!({"description": "It is what `If-None-Match` says"});
        }
        let mut operation = json!({
            "operationId": operation_id(*method, path),
            "tags": [self.subject],
            "summary": about,
            "description": format!("Who: {}.", route.who.words()),
            "parameters": self.parameters,
            "responses": responses,
        });
        if !self.body.is_null() {
            let content = content(&self.body, "application/json");
            operation["requestBody"] = json!({"required": self.body_required, "content": content});
        }
        operation
    }
}

/// An answer that says no.
struct Refused {
    status: u16,
    name: &'static str,
    about: &'static str,
    /// Only what changes something is refused so.
    of_changes: bool,
}

const fn refused(status: u16, name: &'static str, about: &'static str, of_changes: bool) -> Refused {
    Refused { status, name, about, of_changes }
}

const REFUSALS: &[Refused] = &[
    refused(400, "Bad", "The request is not right", false),
    refused(401, "Unknown", "No token that the project knows", false),
    refused(403, "Forbidden", "The role of the caller may not", false),
    refused(404, "Missing", "There is no such thing", false),
    refused(408, "Late", "The body did not arrive in time", true),
    refused(409, "Conflicts", "Not in this state", false),
    refused(413, "Large", "The body is too large", false),
    refused(415, "NotJson", "The body is not JSON", true),
    refused(422, "Incomplete", "Something is missing or out of range", false),
    refused(429, "Often", "Too many requests", false),
    refused(500, "Broken", "Something is wrong here", false),
    refused(502, "Failed", "A program that was needed failed", false),
    refused(503, "NotNow", "Not now", false),
    refused(507, "Full", "The disk is full", false),
];

fn refusals(problem: &Value) -> Value {
    let response = |refused: &Refused| {
        let content = json!({"application/problem+json": {"schema": problem}});
        (refused.name.to_owned(), json!({"description": refused.about, "content": content}))
    };
    REFUSALS.iter().map(response).collect::<Map<String, Value>>().into()
}

fn idempotency_key() -> Value {
    json!({
        "name": "X-Idempotency-Key",
        "in": "header",
        "description": "Asked again with the same key, it is done once and answered twice.",
        "schema": {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH_MAX},
    })
}

fn path_parameter(name: &str) -> Value {
    let schema = json!({"type": "string", "pattern": Name::PATTERN, "maxLength": NAME_LENGTH_MAX});
    json!({"name": name, "in": "path", "required": true, "description": about_name(name), "schema": schema})
}

fn query_parameters(query: &Value) -> Vec<Value> {
    let required: Vec<&str> =
        query["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members = query["properties"].as_object().into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let about = match schema.as_object_mut().and_then(|schema| schema.shift_remove("description")) {
            Some(Value::String(about)) => about,
            _ => String::new(),
        };
        json!({
            "name": name,
            "in": "query",
            "required": required.contains(&name.as_str()),
            "description": about,
            "schema": schema,
        })
    };
    members.map(parameter).collect()
}

/// `getTasksTaskWhy`, for `GET /tasks/{task}/why`.
fn operation_id(method: Method, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
    method.name().to_lowercase() + &words.map(capital).collect::<String>()
}

/// What a reference stands for.
fn resolved(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    name.and_then(|name| definitions.get(name)).unwrap_or(schema).clone()
}

/// The names that mean something else when they are sent than when they are answered, themselves or by what they hold.
fn renamed(sent: &Map<String, Value>, answered: &Map<String, Value>) -> BTreeSet<String> {
    let differs =
        |(name, schema): &(&String, &Value)| answered.get(*name).is_some_and(|other| other != *schema);
    let mut renamed: BTreeSet<String> = sent.iter().filter(differs).map(|(name, _)| name.clone()).collect();
    loop {
        let touched = |(name, schema): &(&String, &Value)| {
            answered.contains_key(*name) && !renamed.contains(*name) && refers_to(schema, &renamed)
        };
        let more: Vec<String> = sent.iter().filter(touched).map(|(name, _)| name.clone()).collect();
        if more.is_empty() {
            return renamed;
        }
        renamed.extend(more);
    }
}

fn refers_to(schema: &Value, names: &BTreeSet<String>) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match (key.as_str(), value) {
            ("$ref", Value::String(to)) => to.rsplit('/').next().is_some_and(|name| names.contains(name)),
            (_, value) => refers_to(value, names),
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, names)),
        _ => false,
    }
}

fn rename(schema: &mut Value, names: &BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("$ref", Value::String(to))
                        if to.rsplit('/').next().is_some_and(|name| names.contains(name)) =>
                    {
                        to.push_str(SENT);
                    }
                    (_, value) => rename(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;

    /// Each code of a choice takes only some of the names.
    #[test]
    fn what_is_offered_has_a_code_and_a_text_and_names_only_where_the_code_takes_them() {
        let required = &DOCUMENT["components"]["schemas"]["Offered"]["required"];
        assert_eq!(required, &json!(["code", "text"]));
    }

    #[test]
    fn every_route_is_in_the_document_and_every_reference_leads_somewhere() {
        for route in routes::all() {
            let operation = &DOCUMENT["paths"][route.path][route.method.name().to_lowercase()];
            assert_eq!(operation["summary"], route.about, "{} {}", route.method.name(), route.path);
        }
        let mut ids = BTreeSet::new();
        for operation in
            DOCUMENT["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap())
        {
            assert!(ids.insert(operation.1["operationId"].as_str().unwrap().to_owned()), "{operation:?}");
        }
        let text = DOCUMENT.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(DOCUMENT.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
