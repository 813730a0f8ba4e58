//! Patterns over paths inside the project, as in a `.gitignore`, as far as people use them for files to copy.
//!
//! `*` and `?` stay within one part of a path, `**` matches any number of parts, `[a-z]` and `[!a-z]` are one character. A
//! pattern without `/` (except at its end) matches at any depth; with one, from the root. One that matches a directory includes
//! its content. `./a` and `a//b`, which match nothing in git, are `/a` and `a/b` here. Not covered: a backslash inside
//! `[…]`, and character classes such as `[[:alpha:]]`.
//!
//! A matcher of a crate (`ignore`, `globset`) reads braces and an unclosed `[` in another way, and would change what trees get.

/// One pattern, ready to match.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    parts: Vec<String>,
    /// Ends in `/`: directories only.
    only_directories: bool,
    /// `!`: what it matches is taken out again.
    pub negated: bool,
}

impl Glob {
    /// A line of a file of patterns, or an entry of the settings; nothing for an empty line or a comment.
    pub fn read(line: &str) -> Option<Glob> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let rest = rest.strip_prefix('\\').filter(|rest| rest.starts_with(['#', '!'])).unwrap_or(rest);
        let only_directories = rest.ends_with('/');
        let body = rest.trim_end_matches('/');
        let anchored = body.contains('/');
        let mut parts: Vec<_> =
            body.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
        if parts.is_empty() || parts.iter().any(|part| part == "..") {
            return None;
        }
        if !anchored {
            parts.insert(0, "**".to_owned());
        }
        Some(Glob { parts, only_directories, negated })
    }

    /// Whether it matches the path, or a directory above it. `path` is relative and has `/` between its parts.
    pub fn takes(&self, path: &str, is_directory: bool) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        (1..=parts.len()).any(|length| {
            let directory = length < parts.len() || is_directory;
            (directory || !self.only_directories) && matches(&self.parts, &parts[..length])
        })
    }

    /// Whether it begins at any depth, rather than at the root.
    pub fn is_anywhere(&self) -> bool {
        self.parts[0] == "**"
    }

    /// Whether something below this directory could match, so that others need not be walked.
    pub fn reaches_below(&self, directory: &str) -> bool {
        let mut at = 0;
        for part in directory.split('/') {
            match self.parts.get(at) {
                Some(pattern) if pattern == "**" => return true,
                Some(pattern) if part_matches(pattern, part) => at += 1,
                _ => return false,
            }
        }
        at < self.parts.len()
    }
}

/// Whether the last pattern that matches takes the path.
pub(super) fn takes(globs: &[Glob], path: &str, is_directory: bool) -> bool {
    globs.iter().rev().find(|glob| glob.takes(path, is_directory)).is_some_and(|glob| !glob.negated)
}

fn matches(patterns: &[String], parts: &[&str]) -> bool {
    // Which patterns could come next, after each part: in step with all of them, so that many `**` cost no more than one.
    let mut next = vec![false; patterns.len() + 1];
    next[0] = true;
    let skip = |next: &mut Vec<bool>| {
        for at in 0..patterns.len() {
            next[at + 1] |= next[at] && patterns[at] == "**" && at + 1 < patterns.len();
        }
    };
    skip(&mut next);
    for part in parts {
        let mut after = vec![false; patterns.len() + 1];
        for (at, pattern) in patterns.iter().enumerate().filter(|(at, _)| next[*at]) {
            if pattern == "**" {
                after[at] = true;
                after[at + 1] |= at + 1 == patterns.len();
            } else if part_matches(pattern, part) {
                after[at + 1] = true;
            }
        }
        next = after;
        skip(&mut next);
    }
    next[patterns.len()]
}

/// One part of a path. Goes back to the last `*` only, so that it takes no more than length times length.
fn part_matches(pattern: &str, part: &str) -> bool {
    let (pattern, part): (Vec<char>, Vec<char>) = (pattern.chars().collect(), part.chars().collect());
    let (mut at, mut here) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while here < part.len() {
        match one(&pattern, at, part[here]) {
            Some(next) => (at, here) = (next, here + 1),
            None if pattern.get(at) == Some(&'*') => {
                star = Some((at + 1, here));
                at += 1;
            }
            None => match &mut star {
                Some((after, from)) => {
                    *from += 1;
                    (at, here) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// Where the pattern goes on if it takes this character here.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match *pattern.get(at)? {
        '*' => None,
        '?' => Some(at + 1),
        '\\' if at + 1 < pattern.len() => (pattern[at + 1] == c).then_some(at + 2),
        '[' => match class(&pattern[at..], c) {
            Some((length, true)) => Some(at + length),
            Some((_, false)) => None,
            // A bracket that nothing closes is itself.
            None => (c == '[').then_some(at + 1),
        },
        other => (other == c).then_some(at + 1),
    }
}

/// How long the class is, and whether it has this character.
fn class(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    // A `]` that comes first is one of the class.
    let end = (first + 1..pattern.len()).find(|at| pattern[*at] == ']')?;
    let mut at = first;
    let mut has = false;
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            has |= (pattern[at]..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            has |= pattern[at] == c;
            at += 1;
        }
    }
    Some((end + 1, has != negated))
}

#[cfg(test)]
mod test {
    use super::*;

    fn check(pattern: &str, taken: &[&str], left: &[&str]) {
        let glob = Glob::read(pattern).unwrap();
        for path in taken {
            assert!(glob.takes(path, false), "{pattern} does not take {path}");
        }
        for path in left {
            assert!(!glob.takes(path, false), "{pattern} takes {path}");
        }
    }

    #[test]
    fn patterns_match_as_in_a_gitignore() {
        check(".env", &[".env", "a/.env", ".env/x"], &[".envy", "a.env"]);
        check("*.local", &["a.local", "x/y/.local"], &["a.locals"]);
        check("/.env", &[".env"], &["a/.env"]);
        check("a/*.key", &["a/x.key"], &["a/b/x.key", "b/a/x.key", "x.key"]);
        check("a/**/x", &["a/x", "a/b/x", "a/b/c/x"], &["x", "b/a/x"]);
        check("**/x", &["x", "a/x", "a/b/x"], &["xx"]);
        check("a/**", &["a/x", "a/b/x"], &["a", "b"]);
        check("data/", &["data/x", "a/data/x"], &["data"]);
        check("?[a-c][!x]", &["zby", "d/_a1"], &["zbx", "zdy", "ab"]);
        check("a[", &["a["], &["a"]);
        check("\\!x", &["!x"], &["x"]);
        check("**", &["a", "a/b"], &[]);
        check("*a*b*", &["xaxbx"], &["xbxa"]);
        for nothing in ["", "  ", "# x", "../x", "a/../../b", "/"] {
            assert!(Glob::read(nothing).is_none(), "{nothing}");
        }
    }

    /// Git itself is asked about every pattern and path.
    #[test]
    fn git_reads_the_patterns_in_the_same_way() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let folder = testing::Folder::new();
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(arguments).current_dir(&folder.path).stdin(Stdio::piped()).stdout(Stdio::piped());
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").stderr(Stdio::null());
            command.spawn().unwrap()
        };
        assert!(git(&["init", "-q"]).wait().unwrap().success());
        let patterns = [
            ".env",
            "*.env",
            "/.env",
            "a",
            "a/",
            "/a",
            "/a/",
            "a/b",
            "a/*",
            "a/**",
            "**/b",
            "a/**/b",
            "**/a/b",
            "*",
            "**",
            "?",
            "a?",
            "[ab]",
            "[!a]",
            "[^a]x",
            "a*b*c",
            "*/b",
            "*/*/b",
            "a/b/",
            "**/",
            "a**",
            "a/**/",
            "\\*",
            "[a-c].x",
            "[]a]",
            "*.x/",
            "**/*.env",
            "b/**/*.env",
        ];
        let paths = [
            ".env",
            "x.env",
            "a",
            "b",
            "ab",
            "a/b",
            "a/b/c",
            "b/a",
            "b/a/b",
            "a/x/b",
            "a/x/y/b",
            "x",
            "ax",
            "axbyc",
            "abc",
            "a/.env",
            "b/c/x.env",
            "*",
            "a.x",
            "c.x/y",
            "d.x",
            "]",
            "x/y/b",
            "z/a/b/c",
        ];
        let mut differences = Vec::new();
        for pattern in patterns {
            folder.write(".gitignore", pattern);
            let mut asked = git(&["check-ignore", "--no-index", "--stdin"]);
            asked.stdin.take().unwrap().write_all(paths.join("\n").as_bytes()).unwrap();
            let answer = String::from_utf8(asked.wait_with_output().unwrap().stdout).unwrap();
            let glob = Glob::read(pattern);
            for path in paths {
                let ours = glob.as_ref().is_some_and(|glob| glob.takes(path, false));
                if ours != answer.lines().any(|line| line.trim_matches('"') == path) {
                    differences.push(format!("{pattern} {path}: we say {ours}"));
                }
            }
        }
        assert_eq!(differences, Vec::<String>::new());
    }

    #[test]
    fn the_last_pattern_that_matches_decides() {
        let globs: Vec<_> = [".env*", "!.env.example"].into_iter().filter_map(Glob::read).collect();
        assert!(takes(&globs, ".env.local", false));
        assert!(!takes(&globs, ".env.example", false));
        assert!(!takes(&globs, "x", false));
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let glob = Glob::read(&format!("{}b/{}", "*a".repeat(50), "**/a/".repeat(50))).unwrap();
        assert!(!glob.takes(&format!("{}/{}", "a".repeat(200), "a/".repeat(500)), false));
    }

    #[test]
    fn only_directories_that_can_matter_are_walked() {
        let reaches = |pattern, directory| Glob::read(pattern).unwrap().reaches_below(directory);
        assert!(reaches(".env", "deep/down"));
        assert!(reaches("a/b/*.key", "a"));
        assert!(reaches("a/b/*.key", "a/b"));
        assert!(!reaches("a/b/*.key", "a/c"));
        assert!(!reaches("a/b/*.key", "node_modules"));
    }
}
