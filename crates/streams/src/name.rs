//! The names of streams: the paths that are allowed after the mount point.

use percent_encoding::percent_decode_str;

use crate::problem::Problem;

/// Longest name of a stream, in bytes.
pub const LENGTH_MAX: usize = 1024;

/// The first segment under which the protocol keeps its own paths.
pub const RESERVED: &str = "__ds";

/// The name that the raw path of a request stands for, or why there is no such name. A slash that is written `%2F`
/// is refused: two spellings of one stream would let a proxy check one and this server serve the other.
pub fn from_raw(raw: &str) -> Result<String, Problem> {
    if raw.to_ascii_lowercase().contains("%2f") {
        return Err(refused("a slash in a segment's name"));
    }
    let name =
        percent_decode_str(raw).decode_utf8().map_err(|_| refused("bytes that are no text"))?.into_owned();
    check(&name)?;
    Ok(name)
}

/// Whether a name follows the rules: segments of letters, digits and `. _ - ~ : @`, none of them `.` or with `..`.
pub fn check(name: &str) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(refused("no name"));
    }
    if name.len() > LENGTH_MAX {
        return Err(refused("a name that is longer than 1024 bytes"));
    }
    for segment in name.split('/') {
        if segment.is_empty() {
            return Err(refused("an empty segment"));
        }
        if segment == "." || segment.contains("..") {
            return Err(refused("a segment that leads elsewhere"));
        }
        if !segment.bytes().all(allowed) {
            return Err(refused("a character that is not a letter, a digit or one of . _ - ~ : @"));
        }
    }
    Ok(())
}

fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-~:@".contains(&byte)
}

fn refused(what: &str) -> Problem {
    Problem::new(400, "INVALID_PATH", format!("the name of a stream cannot have {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_plain_segments_are_taken() {
        for good in ["a", "events/abc", "Run_7/turn-2.log", "user:7@host~x", "a%2Db"] {
            assert!(from_raw(good).is_ok(), "{good}");
        }
        assert_eq!(from_raw("a%2Db").unwrap(), "a-b");
    }

    #[test]
    fn names_that_could_mean_something_else_are_refused() {
        let long = "a".repeat(LENGTH_MAX + 1);
        for bad in [
            "",
            "/",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "a/%2e%2e/b",
            "a..b",
            ".",
            "a%2Fb",
            "a%2fb",
            "a%00b",
            "a%0ab",
            "a b",
            "a%20b",
            "a%ffb",
            "a\\b",
            "ä",
            "a%C3%A4",
            "a?b",
            "a;b",
            "a%25b",
            &long,
        ] {
            assert!(from_raw(bad).is_err(), "{bad:?}");
        }
    }
}
