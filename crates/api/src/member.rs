//! Reads the body and the query of a request into their types, and says which member was wrong.

use std::cell::RefCell;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::Problem;
use super::types::problem::FieldError;

/// A body as what is expected.
pub fn body<T: DeserializeOwned>(body: &Value) -> Result<T, Problem> {
    let members = match body {
        Value::Null => Map::new(),
        // Serde would take a list for the members of an object, in their order.
        Value::Object(members) => members.clone(),
        _ => return Err(Problem::bad("invalid request body: it must be an object")),
    };
    read(members.clone()).or_else(|wrong| {
        // To JSON, `2.0` is a whole number like any other.
        let whole = members.into_iter().map(|(name, value)| (name, whole_numbers(value)));
        read(whole.collect()).map_err(|_| wrong)
    })
}

fn read<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, Problem> {
    let current = RefCell::new(None);
    T::deserialize(Members { left: members.into_iter(), value: Value::Null, current: &current }).map_err(
        |error| match current.take() {
            Some(member) => wrong(member, &error),
            None => Problem::bad(format!("invalid request body: {error}")),
        },
    )
}

/// A query as what is expected.
pub fn query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    serde_urlencoded::from_str(query).map_err(|error| {
        // No query has a member that must be there, so the one that is wrong is also wrong alone.
        let members: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap_or_default();
        let is_wrong = |member: &&(String, String)| {
            let alone = serde_urlencoded::to_string([member]).unwrap_or_default();
            serde_urlencoded::from_str::<T>(&alone).is_err()
        };
        match members.iter().find(is_wrong) {
            Some((name, _)) if !error.to_string().contains("unknown field") => wrong(name.clone(), &error),
            _ => Problem::bad(format!("invalid query: {error}")),
        }
    })
}

/// Bad input, with the member that it stands in. Serde names the values that there are, and what stands in their place.
fn wrong(member: String, error: &impl ToString) -> Problem {
    let error = error.to_string();
    let words = error.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, expected "));
    let message = match words {
        Some((word, known)) => {
            format!("`{member}` cannot be `{}`: use {known}", word.escape_debug())
        }
        None if error.contains(&format!("`{member}`")) => error,
        None => format!("`{member}`: {error}"),
    };
    let error = FieldError { field: member, message: message.clone() };
    Problem::bad(message).errors(vec![error])
}

/// The members of an object. The current member is stored, so that an error can name it.
struct Members<'c> {
    left: serde_json::map::IntoIter,
    value: Value,
    current: &'c RefCell<Option<String>>,
}

impl<'de> Deserializer<'de> for Members<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        visitor.visit_map(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, serde_json::Error> {
        self.current.take();
        let Some((name, value)) = self.left.next() else { return Ok(None) };
        self.value = value;
        let key: StringDeserializer<serde_json::Error> = name.clone().into_deserializer();
        let key = seed.deserialize(key)?;
        self.current.replace(Some(name));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, serde_json::Error> {
        seed.deserialize(self.value.take())
    }
}

/// Numbers without a fraction as whole ones.
pub fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, whole_numbers(value))).collect()
        }
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::task::{Add, ListQuery, Move};
    use serde_json::json;

    #[track_caller]
    fn check<T: DeserializeOwned>(given: Value, member: Option<&str>, says: &str) {
        let Err(problem) = body::<T>(&given) else { panic!("{given} is taken") };
        let document = problem.document();
        let named = document.errors.as_ref().and_then(|errors| errors.first()).map(|it| it.field.clone());
        assert_eq!((document.status, named.as_deref()), (400, member), "{document:?}");
        assert!(document.detail.contains(says), "{document:?}");
    }

    #[test]
    fn what_is_wrong_with_a_body_is_said_with_the_member_and_what_it_may_be() {
        check::<Add>(
            json!({"title": "x", "type": "poem"}),
            Some("type"),
            "`type` cannot be `poem`: use one of `",
        );
        check::<Move>(json!({"to": "LIMBO"}), Some("to"), "`to` cannot be `LIMBO`: use one of `INBOX`, ");
        check::<Add>(json!({"title": "x", "priority": "high"}), Some("priority"), "`priority`: invalid type");
        check::<Add>(json!({"title": "x", "moon": 1}), None, "unknown field `moon`");
        check::<Add>(json!({"body": "x"}), None, "missing field `title`");
        assert!(body::<Add>(&json!({"title": "x", "priority": 2.0})).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_query_is_said_with_the_member() {
        let wrong = |text: &str| query::<ListQuery>(text).map(drop).unwrap_err().document().detail;
        assert_eq!(wrong("limit=0&assignee=a"), "`limit` must be 1 to 1000");
        assert!(
            wrong("status=open").starts_with("`status`: there is no status `open`: use one of `INBOX`, ")
        );
        assert!(wrong("moon=1").contains("unknown field `moon`"));
    }
}
