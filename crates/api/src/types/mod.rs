//! Requests and answers as types: what each route takes and gives, for the handlers, the command line and the printed page.
//!
//! JSON in camelCase, times as text in RFC 3339 UTC, money in dollars. A member that a request brings and nobody knows is
//! refused; one that an answer brings is passed over, so that a command can read what a newer owner says.

pub mod agent;
pub mod approval;
pub mod architect;
pub mod caller;
pub mod channel;
pub mod cost;
pub mod fleet;
pub mod history;
pub mod host;
pub mod machine;
pub mod overview;
pub mod problem;
pub mod request;
pub mod review;
pub mod run;
pub mod screen;
pub mod spec;
pub mod task;
pub mod token;
pub mod tool;
pub mod waiting;
pub mod why;
pub mod worker;

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most that a page of a list holds, and what it holds where nothing is said.
pub const PAGE_MAX: usize = 1_000;
const PAGE: usize = 100;
/// About so many bytes; a page that would be longer ends early, and its `next` says where it goes on.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

/// The schema of a type, as a generator makes it.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The member of a query that holds an answer back until there is something to say.
pub const WAIT: &str = "wait";

/// A request that brings nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Which part of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent. A page of large items may have fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The start of the next page: send it as `after`. Null if this is the last one.
    pub next: Option<String>,
}

impl<T: Serialize> Page<T> {
    /// The wanted part of a list that is short enough to be made whole. Its cursor is a place in it.
    pub fn of(items: Vec<T>, after: Option<Cursor>, limit: Option<Limit>) -> Page<T> {
        Page::made_of(items, after, limit, |item| item)
    }

    /// The same of a longer list: what stands in it is made an item only if it is in the page.
    pub fn made_of<S>(
        list: impl IntoIterator<Item = S>,
        after: Option<Cursor>,
        limit: Option<Limit>,
        item: impl Fn(S) -> T,
    ) -> Page<T> {
        let after = usize::try_from(Cursor::number(after)).unwrap_or(usize::MAX);
        let limit = Limit::number(limit);
        let (mut room, mut items) = (Room::default(), Vec::new());
        for one in list.into_iter().skip(after) {
            let made = (items.len() < limit).then(|| item(one));
            match made.filter(|made| room.takes(json_bytes(made))) {
                Some(made) => items.push(made),
                // There is at least this one more.
                None => return Page { next: Some((after + items.len()).to_string()), items },
            }
        }
        Page { items, next: None }
    }
}

/// How much of a page is left. A page ends early where its items are large; the first has room in any case.
pub struct Room {
    bytes: usize,
    first: bool,
}

impl Default for Room {
    fn default() -> Room {
        Room { bytes: PAGE_BYTES_MAX, first: true }
    }
}

impl Room {
    /// Whether there is room for an item of this size, which it has then.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let takes = self.first || bytes <= self.bytes;
        self.first = false;
        self.bytes = self.bytes.saturating_sub(bytes);
        takes
    }
}

/// How long an item is as JSON.
pub fn json_bytes(item: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Nothing is written anywhere, and there is nothing in it that JSON could not say.
    let _ = serde_json::to_writer(&mut count, item);
    count.0
}

impl Paging {
    pub fn page<T: Serialize>(&self, items: Vec<T>) -> Page<T> {
        Page::of(items, self.after, self.limit)
    }

    pub fn page_of<S, T: Serialize>(
        &self,
        list: impl IntoIterator<Item = S>,
        item: impl Fn(S) -> T,
    ) -> Page<T> {
        Page::made_of(list, self.after, self.limit, item)
    }
}

/// A name, for the schema: a text in the strict alphabet that all names and ids share.
pub struct Name;

impl Name {
    pub const PATTERN: &str = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$";
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": Name::PATTERN, "maxLength": machines::names::NAME_LENGTH_MAX})
    }
}

/// A text that is more than blanks, for the schema.
pub struct Text;

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"\S"})
    }
}

/// Where a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u64);

impl Cursor {
    pub fn number(cursor: Option<Cursor>) -> u64 {
        cursor.map_or(0, |cursor| cursor.0)
    }
}

/// How many items a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub usize);

impl Limit {
    pub fn number(limit: Option<Limit>) -> usize {
        limit.map_or(PAGE, |limit| limit.0)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Cursor, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = |_| D::Error::custom("`after` must be a cursor that a page ended with");
        text.parse().map(Cursor).map_err(wrong)
    }
}

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]{1,18}$"})
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0 as u64)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Limit, D::Error> {
        let text = String::deserialize(from)?;
        match text.parse() {
            Ok(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(Limit(limit)),
            _ => Err(D::Error::custom(format!("`limit` must be 1 to {PAGE_MAX}"))),
        }
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": PAGE_MAX})
    }
}

/// A yes or no in an address.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let text = String::deserialize(from)?;
    match text.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(D::Error::custom(format!("`{}` is neither true nor false", text.escape_debug()))),
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The words of a set, as in `use one of`.
pub fn one_of<T: machines::Wire>() -> String {
    let names: Vec<String> = T::ALL.iter().map(|word| format!("`{}`", word.name())).collect();
    format!("one of {}", names.join(", "))
}

/// For the schema of a word that is one of a few.
pub struct Words<T>(PhantomData<T>);

impl<T: machines::Wire> JsonSchema for Words<T> {
    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::ALL.iter().map(|word| word.name()).collect();
        json_schema!({"type": "string", "enum": words})
    }
}
