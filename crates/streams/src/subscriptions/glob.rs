//! Patterns over the names of streams: `*` is one segment, `**` any number of them.
//!
//! The protocol has these two and nothing else: `a*`, `?`, `[a]` and `{a,b}` stand for themselves, and `a/**` matches `a`. A
//! matcher of a crate (globset, say) means other things by each of them, so that a pattern would have to be taken apart and
//! escaped first, which is longer than this.

use super::config::Config;
use crate::storage::{StoreError, Tables};

/// Whether a pattern matches a name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let name: Vec<&str> = name.split('/').collect();
    segments_match(&pattern, &name)
}

/// `**` is tried greedily with one place to come back to, so that no pattern takes longer than pattern times name.
fn segments_match(pattern: &[&str], name: &[&str]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while read < name.len() {
        if at < pattern.len() && pattern[at] == "**" {
            back = Some((at + 1, read));
            at += 1;
        } else if at < pattern.len() && (pattern[at] == "*" || pattern[at] == name[read]) {
            at += 1;
            read += 1;
        } else if let Some((behind, from)) = back {
            back = Some((behind, from + 1));
            (at, read) = (behind, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|segment| *segment == "**")
}

/// What every match begins with, so that not every stream has to be looked at.
pub fn fixed_prefix(pattern: &str) -> &str {
    match pattern.find('*') {
        Some(star) => &pattern[..star],
        None => pattern,
    }
}

/// The subscriptions with what they look for, kept by the writer.
#[derive(Default)]
pub struct Patterns(Option<Vec<Watched>>);

#[derive(Clone)]
pub struct Watched {
    pub subscription: String,
    pub pattern: Option<String>,
    pub wake_stream: Option<String>,
}

impl Patterns {
    /// After a subscription came or went, or a transaction was lost.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    pub fn list(&mut self, tables: &dyn Tables) -> Result<&[Watched], StoreError> {
        let listed = match self.0.take() {
            Some(listed) => listed,
            None => {
                let watched = |(subscription, config): (String, String)| {
                    let Config { pattern, wake_stream, .. } = Config::stored(&config);
                    Watched { subscription, pattern, wake_stream }
                };
                tables.subscriptions()?.into_iter().map(watched).collect()
            }
        };
        Ok(self.0.insert(listed).as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_segment_and_two_are_any_number() {
        for (pattern, name, expected) in [
            ("events/*", "events/a", true),
            ("events/*", "events/a/b", false),
            ("events/*", "events", false),
            ("events/**", "events/a/b", true),
            ("events/**", "events", true),
            ("**", "a/b/c", true),
            ("**/log", "a/b/log", true),
            ("**/log", "log", true),
            ("a/**/z", "a/b/z/c/z", true),
            ("a/**/z", "a/b/c", false),
            ("events/a", "events/a", true),
            ("events/a*", "events/ab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} and {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_decided_at_once() {
        let pattern = vec!["**/a"; 200].join("/");
        let name = vec!["a"; 199].join("/") + "/b";
        assert!(!matches(&pattern, &name));
    }
}
