//! Which part of a JSON value a reader's complaint is about.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// How many parts of a value are tried in search of the one that is wrong.
const TRIES_MAX: usize = 64;

/// The path of the part that an error is about. Serde forgets the way to a field of a tagged value, so it is found
/// again by trying: the part without which the reader complains of something else; or, for a field that is
/// missing, the part that makes a difference when it has one.
pub fn blame<T: DeserializeOwned>(root: &Value, message: &str) -> String {
    let otherwise = |changed: &Value| {
        T::deserialize(changed).err().is_none_or(|error: serde_json::Error| error.to_string() != message)
    };
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let differs = |path: &[Part]| {
        let mut changed = root.clone();
        match missing {
            Some(name) => {
                if let Some(Value::Object(fields)) = at(&mut changed, path) {
                    fields.insert(name.to_owned(), Value::Null);
                }
            }
            None => cut(&mut changed, path),
        }
        otherwise(&changed)
    };
    // What is missing here is not missing further in.
    if missing.is_some() && differs(&[]) {
        return String::new();
    }
    let mut found: Vec<Part> = Vec::new();
    let mut ahead = vec![Vec::new()];
    let mut tries_left = TRIES_MAX;
    while let Some(path) = ahead.pop() {
        for part in parts_of(root, &path) {
            let path = [path.as_slice(), &[part]].concat();
            let Some(left) = tries_left.checked_sub(1) else { return shown(&found) };
            tries_left = left;
            match (differs(&path), missing) {
                (true, Some(_)) => return shown(&path),
                // Not this one, but perhaps something in it.
                (false, Some(_)) => ahead.push(path),
                // This one, and perhaps something in it more exactly.
                (true, None) => {
                    found.clone_from(&path);
                    ahead = vec![path];
                    break;
                }
                (false, None) => {}
            }
        }
    }
    shown(&found)
}

/// One step of the way to a value.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Field(String),
    Item(usize),
}

fn shown(path: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Field(name) => format!(".{}", shortened(name)),
        Part::Item(index) => format!("[{index}]"),
    };
    path.iter().map(part).collect()
}

fn parts_of(root: &Value, path: &[Part]) -> Vec<Part> {
    match at(&mut root.clone(), path) {
        // The type was looked at before, and without it nothing can be read.
        Some(Value::Object(fields)) => {
            let read_before = |name: &&String| path.is_empty() && *name == "type";
            fields.keys().filter(|name| !read_before(name)).cloned().map(Part::Field).collect()
        }
        Some(Value::Array(items)) => (0..items.len()).map(Part::Item).collect(),
        _ => Vec::new(),
    }
}

fn at<'a>(root: &'a mut Value, path: &[Part]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |value, part| match part {
        Part::Field(name) => value.get_mut(name),
        Part::Item(index) => value.get_mut(index),
    })
}

fn cut(root: &mut Value, path: &[Part]) {
    let Some((last, way)) = path.split_last() else { return };
    match (at(root, way), last) {
        (Some(Value::Object(fields)), Part::Field(name)) => {
            fields.remove(name);
        }
        (Some(Value::Array(items)), Part::Item(index)) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}

/// A name as it can be shown: short, and without what a terminal would obey.
pub(super) fn shortened(text: &str) -> String {
    cut_short(&text.escape_debug().to_string(), 40)
}

pub(super) fn cut_short(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
