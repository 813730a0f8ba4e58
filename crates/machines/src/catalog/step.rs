//! One JSON line in, one JSON line out: the pure machine, with nothing stored.
//!
//! Invariants: whatever comes in, exactly one line of JSON goes out; nothing panics; what cannot be read is
//! answered with where it was and what is known there.

use super::blame::{blame, cut_short, shortened};
use super::names;
use crate::machine::{Code, FieldError, Machine, Refusal, step};
use crate::suspended::{EXPIRE, RESTORE, SUSPEND, Suspendable, Suspends, Suspension, Wrapped};
use crate::wire::Wire;
use crate::{architect, run, task, turn, worker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The longest line that is read, in bytes.
pub const LINE_LENGTH_MAX: usize = 1 << 20;
/// How much is said of what a reader complained of: it quotes what it was given.
const MESSAGE_LENGTH_MAX: usize = 400;
/// The largest value, in bytes, that is searched for what is wrong in it.
const SEARCHED_LENGTH_MAX: usize = 64 << 10;

/// Takes `{"state":…,"event":…}` and answers `{"ok":true,"state":…,"effects":[…]}` or
/// `{"ok":false,"code":…,"message":…,"allowed":[…]}`, with `errors` where fields are to blame.
pub fn step_line(machine: &str, line: &str) -> String {
    let answer = if machine.eq_ignore_ascii_case(turn::Turn::NAME) {
        plain::<turn::Turn>(line)
    } else if machine.eq_ignore_ascii_case(worker::Worker::NAME) {
        plain::<worker::Worker>(line)
    } else if machine.eq_ignore_ascii_case(task::Task::NAME) {
        plain::<task::Task>(line)
    } else if machine.eq_ignore_ascii_case(architect::Architect::NAME) {
        wrapped::<architect::Architect>(line)
    } else if machine.eq_ignore_ascii_case(run::Run::NAME) {
        wrapped::<run::Run>(line)
    } else {
        Err(Unread(format!("there is no machine {}; known: {}", quoted(machine), names().join(", "))))
    };
    let answer = answer.unwrap_or_else(|Unread(message)| Answer::refused(Code::Malformed, message));
    answer.line()
}

/// `step_line` for a line that may not be text at all.
pub fn step_bytes(machine: &str, line: &[u8]) -> String {
    match std::str::from_utf8(line) {
        Ok(line) => step_line(machine, line),
        Err(error) => {
            let message = format!("the line is not UTF-8: byte {} is wrong", error.valid_up_to() + 1);
            Answer::refused(Code::Malformed, message).line()
        }
    }
}

/// What the wire knows of a machine beyond its table.
trait Spoken:
    Machine<Event: Serialize + DeserializeOwned, Effect: Serialize> + Default + Serialize + DeserializeOwned
{
    /// The field of the machine's own data that names its state.
    const STATE_FIELD: &'static str;

    /// An event as the machine's own documents read it, before it is looked at as a type.
    fn as_sent(event: Value) -> Result<Value, FieldError> {
        Ok(event)
    }

    /// What an event's `type` may be.
    fn event_types() -> Vec<&'static str> {
        Self::Kind::ALL.iter().map(|kind| kind.name()).collect()
    }
}

impl Spoken for turn::Turn {
    const STATE_FIELD: &'static str = "state";
}

impl Spoken for worker::Worker {
    const STATE_FIELD: &'static str = "status";
}

impl Spoken for task::Task {
    const STATE_FIELD: &'static str = "status";

    fn event_types() -> Vec<&'static str> {
        vec!["move", task::Kind::LandingFailed.name()]
    }
}

impl Spoken for architect::Architect {
    const STATE_FIELD: &'static str = "state";
}

impl Spoken for run::Run {
    const STATE_FIELD: &'static str = "state";

    fn as_sent(event: Value) -> Result<Value, FieldError> {
        run::as_sent(event)
    }
}

#[derive(Debug, Serialize)]
struct Answer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
}

impl Answer {
    fn taken(state: &impl Serialize, effects: &impl Serialize) -> Result<Self, Unread> {
        let json = |value: serde_json::Result<Value>| value.map_err(|error| Unread(error.to_string()));
        Ok(Self {
            ok: true,
            state: Some(json(serde_json::to_value(state))?),
            effects: Some(json(serde_json::to_value(effects))?),
            code: None,
            message: None,
            allowed: None,
            errors: Vec::new(),
        })
    }

    fn line(&self) -> String {
        // Strings, numbers and lists only: there is nothing in an answer that JSON cannot say.
        serde_json::to_string(self).unwrap_or_else(|error| panic!("{self:?} is not JSON: {error}"))
    }

    fn refused(code: Code, message: String) -> Self {
        Self {
            ok: false,
            state: None,
            effects: None,
            code: Some(code),
            message: Some(message),
            allowed: Some(Vec::new()),
            errors: Vec::new(),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self {
            allowed: Some(refusal.allowed),
            errors: refusal.errors,
            ..Answer::refused(refusal.code, refusal.message.into_owned())
        }
    }
}

/// Why a line could not be read: where, and what is known there.
struct Unread(String);

fn plain<M: Spoken>(line: &str) -> Result<Answer, Unread> {
    let (state, event) = parts(line)?;
    let state: M = read_state(state, "state")?;
    let event: M::Event = read_event::<M>(event, &[])?;
    match step(&state, &event) {
        Ok(step) => Answer::taken(&step.state, &step.effects),
        Err(refusal) => Ok(refusal.into()),
    }
}

fn wrapped<M: Spoken + Suspends>(line: &str) -> Result<Answer, Unread> {
    let (state, event) = parts(line)?;
    let mut state: Suspendable<M> = read_suspendable(state)?;
    let event = read_wrapped::<M>(event)?;
    match state.advance(&event, None) {
        Ok(effects) => Answer::taken(&state, &effects),
        Err(refusal) => Ok(refusal.into()),
    }
}

fn parts(line: &str) -> Result<(Value, Value), Unread> {
    const SHAPE: &str = r#"a line is {"state": …, "event": …}"#;
    if line.len() > LINE_LENGTH_MAX {
        return Err(Unread(format!(
            "the line is longer than {LINE_LENGTH_MAX} bytes, the most that is read"
        )));
    }
    let value: Value =
        serde_json::from_str(line).map_err(|error| Unread(format!("not JSON: {error}; {SHAPE}")))?;
    let Value::Object(mut fields) = value else {
        return Err(Unread(format!("not an object but {}; {SHAPE}", kind_of(&value))));
    };
    let mut take =
        |name: &str| fields.remove(name).ok_or_else(|| Unread(format!("`{name}` is missing; {SHAPE}")));
    let parts = (take("state")?, take("event")?);
    match fields.keys().next() {
        Some(unknown) => Err(Unread(format!("unknown field {}; {SHAPE}", quoted(unknown)))),
        None => Ok(parts),
    }
}

/// The machine's own data; or only the name of a state, for a fresh machine that stands there.
fn read_state<M: Spoken>(value: Value, place: &str) -> Result<M, Unread> {
    let mut fields = match value {
        Value::String(name) => {
            let mut machine = M::default();
            machine.enter(known_state::<M>(&name, place)?);
            return Ok(machine);
        }
        Value::Object(fields) => fields,
        other => {
            return Err(Unread(format!(
                "`{place}` is {}; it is an object or the name of a state: {}",
                kind_of(&other),
                states::<M>()
            )));
        }
    };
    let place_of_name = format!("{place}.{}", M::STATE_FIELD);
    match fields.get(M::STATE_FIELD) {
        Some(Value::String(name)) => {
            let name = known_state::<M>(name, &place_of_name)?.name();
            fields.insert(M::STATE_FIELD.to_owned(), Value::from(name));
        }
        Some(other) => {
            let message = format!("`{place_of_name}` is {}; it is one of {}", kind_of(other), states::<M>());
            return Err(Unread(message));
        }
        None => return Err(Unread(format!("`{place_of_name}` is missing; it is one of {}", states::<M>()))),
    }
    read(fields, place)
}

fn known_state<M: Machine>(name: &str, place: &str) -> Result<M::State, Unread> {
    M::State::read(name).ok_or_else(|| {
        Unread(format!("`{place}`: there is no state {}; known: {}", quoted(name), states::<M>()))
    })
}

fn states<M: Machine>() -> String {
    M::State::ALL.iter().map(|state| state.name()).collect::<Vec<_>>().join(", ")
}

fn read_suspendable<M: Spoken + Suspends>(value: Value) -> Result<Suspendable<M>, Unread> {
    match value {
        Value::Object(mut fields) if fields.contains_key("suspended") => {
            let shape = || Unread("a suspended state is {\"suspended\": …, \"inner\": …}".to_owned());
            let (suspended, inner) =
                (fields.remove("suspended").ok_or_else(shape)?, fields.remove("inner").ok_or_else(shape)?);
            let Value::Object(suspended) = suspended else { return Err(shape()) };
            if !fields.is_empty() {
                return Err(shape());
            }
            Ok(Suspendable::Suspended {
                suspended: read(suspended, "state.suspended")?,
                inner: read_state(inner, "state.inner")?,
            })
        }
        Value::String(name) if name.eq_ignore_ascii_case(M::WIRE) => Err(Unread(format!(
            "`state`: {} wraps a state and cannot stand alone; give {{\"suspended\": {{\"service\", \"since\", \
             \"until\"}}, \"inner\": …}}",
            M::WIRE
        ))),
        value => read_state(value, "state").map(Suspendable::Live),
    }
}

fn read_wrapped<M: Spoken + Suspends>(value: Value) -> Result<Wrapped<M::Event>, Unread> {
    let own = [SUSPEND, RESTORE, EXPIRE];
    let (kind, mut fields) = typed::<M>(value, &own)?;
    match kind {
        SUSPEND => {
            fields.remove("type");
            read::<Suspension>(fields, "event").map(Wrapped::Suspend)
        }
        RESTORE | EXPIRE => {
            fields.remove("type");
            match fields.keys().next() {
                Some(unknown) => {
                    Err(Unread(format!("in `event`: unknown field {}; {kind} has none", quoted(unknown))))
                }
                None => Ok(if kind == RESTORE { Wrapped::Restore } else { Wrapped::Expire }),
            }
        }
        _ => read_event::<M>(Value::Object(fields), &own).map(Wrapped::Inner),
    }
}

fn read_event<M: Spoken>(value: Value, more: &[&'static str]) -> Result<M::Event, Unread> {
    let missing = |error: FieldError| Unread(format!("in `event`: {}", error.message));
    let value = M::as_sent(value).map_err(missing)?;
    let (kind, mut fields) = typed::<M>(value, more)?;
    fields.insert("type".to_owned(), Value::from(kind));
    // An event without fields would take any: serde does not look at what it has no place for.
    let bare = Map::from_iter([("type".to_owned(), Value::from(kind)), (String::new(), Value::Null)]);
    if serde_json::from_value::<M::Event>(Value::Object(bare)).is_ok()
        && let Some(unknown) = fields.keys().find(|name| *name != "type")
    {
        return Err(Unread(format!("in `event`: unknown field {}; {kind} has none", quoted(unknown))));
    }
    read(fields, "event")
}

/// An event's fields, with its type in the spelling of the wire.
fn typed<M: Spoken>(
    value: Value,
    more: &[&'static str],
) -> Result<(&'static str, Map<String, Value>), Unread> {
    let known = || [M::event_types(), more.to_vec()].concat();
    let Value::Object(fields) = value else {
        return Err(Unread(format!(
            "`event` is {}; it is an object whose `type` is one of {}",
            kind_of(&value),
            known().join(", ")
        )));
    };
    let kind = match fields.get("type") {
        Some(Value::String(name)) => {
            known().into_iter().find(|kind| kind.eq_ignore_ascii_case(name)).ok_or_else(|| {
                format!("`event.type`: there is no event {}; known: {}", quoted(name), known().join(", "))
            })
        }
        Some(other) => {
            Err(format!("`event.type` is {}; it is one of {}", kind_of(other), known().join(", ")))
        }
        None => Err(format!("`event.type` is missing; it is one of {}", known().join(", "))),
    };
    Ok((kind.map_err(Unread)?, fields))
}

fn read<T: DeserializeOwned>(fields: Map<String, Value>, place: &str) -> Result<T, Unread> {
    let value = Value::Object(fields);
    serde_json::from_value(value.clone()).map_err(|error| {
        let message = error.to_string();
        let small = value.to_string().len() <= SEARCHED_LENGTH_MAX;
        let path = if small { blame::<T>(&value, &message) } else { String::new() };
        Unread(format!("in `{place}{path}`: {}", cut_short(&message, MESSAGE_LENGTH_MAX)))
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}
