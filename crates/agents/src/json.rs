//! Reads JSON that an agent program printed into types, and never fails.
//!
//! Programs add fields, leave them out and change their types from version to version. Invariants: a field that is absent, null or of
//! another type has its default; a list keeps its length, and an entry of another type is the entry's default; anything else than an
//! object is an object without fields. So one odd field never hides the others, such as the id of a call that waits for its answer.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::ops::Deref;

/// This value as a `T`, or the default if it is something else.
pub(crate) fn fit<T: DeserializeOwned + Default>(value: Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

/// The string under `key`, which tells what kind of object this is. Empty if there is none.
pub(crate) fn tag<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Takes a field out of an object.
pub(crate) fn take<T: DeserializeOwned + Default>(fields: &mut Map<String, Value>, key: &str) -> T {
    // Order does not matter any more, and this is faster.
    fields.swap_remove(key).map(fit).unwrap_or_default()
}

/// A list. Anything else counts as an empty one.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        List(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Array(entries) => List(entries.into_iter().map(fit).collect()),
            _ => List::default(),
        })
    }
}

/// Declares structs that are read from objects. A name on the wire that differs from the field's follows it: `kind: String = "type"`.
macro_rules! objects {
    ($(
        $(#[$meta:meta])*
        struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $type:ty $(= $key:literal)?),* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $type,)*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let serde_json::Value::Object(mut fields) = serde::Deserialize::deserialize(deserializer)? else {
                    return Ok(Self::default());
                };
                Ok(Self { $($field: $crate::json::take(&mut fields, $crate::json::key!($field $($key)?)),)* })
            }
        }
    )*};
}

macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

pub(crate) use {key, objects};

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IgnoredAny;
    use serde_json::json;

    objects! {
        struct Inner {
            text: Option<String>,
        }
        struct Outer {
            kind: String = "type",
            count: u64,
            price: Option<f64>,
            seconds: Option<i64>,
            ok: Option<bool>,
            there: Option<IgnoredAny>,
            inner: Inner,
            list: List<Inner>,
        }
    }

    fn outer(value: Value) -> String {
        let Outer { kind, count, price, seconds, ok, there, inner, list } = fit(value);
        let texts: Vec<&str> = list.iter().map(|entry| entry.text.as_deref().unwrap_or("-")).collect();
        let (there, text) = (there.is_some(), inner.text);
        format!("{kind:?} {count} {price:?} {seconds:?} {ok:?} {there} {text:?} {texts:?}")
    }

    #[test]
    fn a_field_that_does_not_fit_has_its_default_and_hides_no_other() {
        let nothing = r#""" 0 None None None false None []"#;
        let cases = [
            (json!({}), nothing),
            (json!(null), nothing),
            // By position nothing is read.
            (json!(["a", 1, 2.0, 3, true, 4, { "text": "x" }, []]), nothing),
            (json!("a"), nothing),
            (
                json!({ "type": null, "count": null, "price": null, "there": null, "inner": null, "list": null }),
                nothing,
            ),
            (
                json!({ "type": 7, "count": "12", "price": "1.5", "ok": "true", "inner": "x", "list": "x" }),
                nothing,
            ),
            (
                json!({ "type": ["a"], "ok": 1, "seconds": 1.5, "inner": ["x"], "list": { "text": "x" } }),
                nothing,
            ),
            // A count is a whole number, written as one; a price may be one too.
            (
                json!({ "count": 12.0, "price": 2, "seconds": -3 }),
                r#""" 0 Some(2.0) Some(-3) None false None []"#,
            ),
            (json!({ "count": -1, "seconds": u64::MAX }), nothing),
            (
                json!({ "count": u64::MAX, "ok": false }),
                r#""" 18446744073709551615 None None Some(false) false None []"#,
            ),
            (json!({ "there": false, "new": [[1]] }), r#""" 0 None None None true None []"#),
            (
                json!({ "list": [{ "text": "a" }, 7, null, { "text": 7 }, "b", ["c"], { "text": "d", "more": 1 }], "inner": { "text": "e" } }),
                r#""" 0 None None None false Some("e") ["a", "-", "-", "-", "-", "-", "d"]"#,
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(outer(value.clone()), expected, "{value}");
        }
    }
}
