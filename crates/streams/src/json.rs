//! JSON streams: how messages are stored and returned.
//!
//! A message is stored as it was written, followed by a byte that cannot occur in JSON. So the end of a message is found without
//! a parser, and a reader gets the bytes between two ends, with commas in place of the ends.

use serde_json::value::RawValue;

use crate::problem::Problem;

/// The record separator of ASCII; control characters are not allowed in JSON unescaped.
pub const END: u8 = 0x1e;

/// The messages of a body in the form in which they are kept: an array is taken apart, one level deep.
pub fn messages(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let invalid = |error: serde_json::Error| {
        Problem::new(400, "INVALID_JSON", format!("the body is not valid JSON: {error}"))
    };
    let value: &RawValue = serde_json::from_slice(body).map_err(invalid)?;
    let text = value.get();
    let mut kept = Vec::with_capacity(text.len() + 1);
    if !text.starts_with('[') {
        push(&mut kept, text);
        return Ok(kept);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(invalid)?;
    for element in elements {
        push(&mut kept, element.get());
    }
    Ok(kept)
}

fn push(kept: &mut Vec<u8>, message: &str) {
    kept.extend_from_slice(message.as_bytes());
    kept.push(END);
}

/// The array that a reader gets for kept messages.
pub fn array(kept: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(kept.len() + 1);
    text.push(b'[');
    text.extend(kept.iter().map(|byte| if *byte == END { b',' } else { *byte }));
    if text.len() > 1 {
        text.pop();
    }
    text.push(b']');
    text
}

/// How many bytes the first `count` messages take, or `None` when there are fewer.
pub fn length_of(kept: &[u8], count: u64) -> Option<usize> {
    if count == 0 {
        return Some(0);
    }
    let mut left = count;
    for (at, byte) in kept.iter().enumerate() {
        if *byte != END {
            continue;
        }
        left -= 1;
        if left == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(body: &str) -> String {
        String::from_utf8(array(&messages(body.as_bytes()).unwrap())).unwrap()
    }

    #[test]
    fn an_array_is_taken_apart_one_level_deep() {
        assert_eq!(through(r#"{"a": 1}"#), r#"[{"a": 1}]"#);
        assert_eq!(through(r#"[{"a":1}, {"b":2}]"#), r#"[{"a":1},{"b":2}]"#);
        assert_eq!(through("[[1,2],[3,4]]"), "[[1,2],[3,4]]");
        assert_eq!(through("[[[1,2,3]]]"), "[[[1,2,3]]]");
        assert_eq!(through("[]"), "[]");
        assert_eq!(through(" 7\n"), "[7]");
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in ["", "{", "[1,]", "{\"a\":\"\u{1e}\"}", "1 2", "nul"] {
            assert_eq!(messages(bad.as_bytes()).unwrap_err().status, 400, "{bad:?}");
        }
    }

    #[test]
    fn messages_are_counted_by_their_ends() {
        let kept = messages(b"[1,22,333]").unwrap();
        assert_eq!(length_of(&kept, 0), Some(0));
        assert_eq!(length_of(&kept, 2), Some(5));
        assert_eq!(length_of(&kept, 3), Some(kept.len()));
        assert_eq!(length_of(&kept, 4), None);
    }
}
