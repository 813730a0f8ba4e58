//! The part of a test's output that an agent gets: which tests failed and why, within a limit.

use kernel::command::RedBy;
use std::collections::BTreeSet;

/// Shares of the limit, in hundredths: how it began, and how it ended. What is left goes to the failures.
const HEAD_SHARE: usize = 10;
const TAIL_SHARE: usize = 35;
/// Lines around one that tells of a failure.
const LINES_BEFORE: usize = 1;
const LINES_AFTER: usize = 8;
/// The longest line that is shown whole.
const LINE_BYTES_MAX: usize = 500;
/// What is read at all. A failure in the middle of more than this is told by the summary at its end.
const READ_BYTES_MAX: usize = 16 << 20;
const GAP: &str = "[…]";

/// What tells of a failure, in the runners and compilers that are around. Searched for in lower case.
const TELLS: &[&str] = &[
    "error:",
    "error[",
    "error ts",
    "error!",
    "failed",
    "failure",
    "fail:",
    "--- fail",
    "fail ",
    "panicked at",
    "assert",
    "expected",
    "traceback (most recent",
    "exception",
    "not ok ",
    "✗",
    "✘",
    "✖",
    "×",
    "undefined reference",
    "cannot find",
    "fatal:",
    "segmentation fault",
    "timed out",
    "core dumped",
];
/// What looks like it and is not.
const INNOCENT: &[&str] =
    &["0 failed", "0 failures", "0 errors", "errors: 0", "failures: 0", "failed: 0", "no errors"];

/// What a runner says that did not get as far as testing: it, a module of it, or the network is not there. An agent can
/// bring most of these about as well, so main's own tests tell whose they are. Searched for in lower case.
const NOT_TESTED: &[&str] = &[
    "command not found",
    ": not found",
    "error 126",
    "error 127",
    "no module named",
    "modulenotfounderror",
    "cannot find module",
    "cannot find package",
    "err_module_not_found",
    "errors during collection",
    "error collecting",
    "no tests ran",
    "no tests found",
    "unknownissuer",
    "certificate verify failed",
    "self-signed certificate",
    "could not resolve host",
    "temporary failure in name resolution",
    "failed to lookup address",
    "connection refused",
    "no space left on device",
    "permission denied",
];
/// Lines from the end that are searched for them.
const NOT_TESTED_LINES: usize = 200;

/// Whose fault a red test run may be, by how it ended and what it printed.
pub fn red_by(code: Option<i32>, signal: Option<i32>, command: &str, output: &str) -> RedBy {
    // The shell's own words for a program that is not there or cannot be run.
    if matches!(code, Some(126 | 127)) {
        return RedBy::Environment;
    }
    // pytest keeps 2 to 5 for being interrupted, for itself, for its command line, and for no tests at all.
    let by_pytest = matches!(code, Some(2..=5)) && (command.contains("pytest") || output.contains("pytest"));
    let killed = signal == Some(9) || code == Some(137);
    let says = |line: &str| {
        let line = line.to_lowercase();
        NOT_TESTED.iter().any(|tell| line.contains(tell))
    };
    let said = recent(output).lines().rev().take(NOT_TESTED_LINES).any(says);
    if by_pytest || killed || said { RedBy::InDoubt } else { RedBy::Tests }
}

/// At most `limit` bytes of the output that tell most: its beginning, what tells of failures with the lines around, and
/// its end, where runners sum up. Without colours and other control characters; what is left out is marked.
pub fn failing_part(output: &str, limit: usize) -> String {
    let lines: Vec<String> = recent(output).lines().map(plain).map(|line| shortened(&line)).collect();
    let whole: usize = lines.iter().map(|line| line.len() + 1).sum();
    if whole <= limit {
        return lines.join("\n");
    }
    let mut chosen = Chosen { lines: &lines, taken: BTreeSet::new(), left: limit };
    chosen.take_until(0..lines.len(), limit * HEAD_SHARE / 100);
    chosen.take_until((0..lines.len()).rev(), limit * TAIL_SHARE / 100);
    for (number, _) in lines.iter().enumerate().filter(|(_, line)| tells(line)) {
        let around = number.saturating_sub(LINES_BEFORE)..(number + LINES_AFTER + 1).min(lines.len());
        // The line itself before those around it, where not all have room.
        if !chosen.choose(number) {
            break;
        }
        for near in around {
            chosen.choose(near);
        }
    }
    // What is still left goes to the end: a runner's summary is there.
    chosen.take_until((0..lines.len()).rev(), limit);
    chosen.text(limit)
}

struct Chosen<'a> {
    lines: &'a [String],
    taken: BTreeSet<usize>,
    left: usize,
}

impl Chosen<'_> {
    /// Chooses a line if there is room for it and a gap beside it.
    fn choose(&mut self, number: usize) -> bool {
        if self.taken.contains(&number) {
            return true;
        }
        let cost = self.lines[number].len() + GAP.len() + 2;
        if cost > self.left {
            return false;
        }
        self.left -= cost;
        self.taken.insert(number)
    }

    fn take_until(&mut self, lines: impl Iterator<Item = usize>, room: usize) {
        let stop = self.left.saturating_sub(room);
        for number in lines {
            if self.left <= stop || !self.choose(number) {
                break;
            }
        }
    }

    fn text(&self, limit: usize) -> String {
        let mut text = String::new();
        let mut next = 0;
        for number in &self.taken {
            if *number > next {
                text.push_str(GAP);
                text.push('\n');
            }
            text.push_str(&self.lines[*number]);
            text.push('\n');
            next = number + 1;
        }
        if next < self.lines.len() {
            text.push_str(GAP);
        }
        let text = text.trim_end();
        cut(text, limit).to_owned()
    }
}

fn tells(line: &str) -> bool {
    let line = line.to_lowercase();
    TELLS.iter().any(|tell| line.contains(tell)) && !INNOCENT.iter().any(|innocent| line.contains(innocent))
}

/// The end of it, where it is too much to look through.
fn recent(output: &str) -> &str {
    let mut start = output.len().saturating_sub(READ_BYTES_MAX);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    &output[start..]
}

/// A line as a terminal would leave it: without escape sequences and control characters, and only what follows the last
/// carriage return, because progress bars write over themselves.
fn plain(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // CSI: up to its final byte.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // OSC, DCS, PM, APC and SOS: up to BEL or ESC \.
                Some(']' | 'P' | '^' | '_' | 'X') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' => text.clear(),
            '\u{8}' => drop(text.pop()),
            '\t' => text.push_str("    "),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn shortened(line: &str) -> String {
    match line.len() > LINE_BYTES_MAX {
        true => format!("{} {GAP}", cut(line, LINE_BYTES_MAX)),
        false => line.to_owned(),
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes.min(text.len()))]
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_short_output_is_kept_whole_without_colours() {
        let text = "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}\r\n 10%\r 20%\rdone\ta\u{0}b\n";
        assert_eq!(failing_part(text, 1000), "red\ndone    ab");
    }

    #[test]
    fn of_a_long_output_the_failures_and_the_end_are_kept() {
        let mut text = String::from("running 4000 tests\n");
        for number in 0..4000 {
            match number {
                1234 => text.push_str("test rows::jump ... FAILED\n"),
                2345 => text.push_str("thread 'x' panicked at src/rows.rs:7:9:\nassertion `left == right` failed\n  left: 1\n right: 2\n"),
                _ => text.push_str(&format!("test number_{number} ... ok\n")),
            }
        }
        text.push_str("failures:\n    rows::jump\ntest result: FAILED. 3999 passed; 1 failed\n");
        let part = failing_part(&text, 2000);
        assert!(part.len() <= 2000, "{}", part.len());
        for kept in [
            "running 4000 tests",
            "test rows::jump ... FAILED",
            "src/rows.rs:7:9",
            "left: 1",
            "test result: FAILED",
        ] {
            assert!(part.contains(kept), "{kept} is not in\n{part}");
        }
        assert!(part.contains(GAP));
        assert!(part.find("jump ... FAILED") < part.find("panicked"), "the order stays");
    }

    #[test]
    fn the_limit_holds_whatever_comes() {
        let nasty =
            ["x".repeat(100_000), "error: é\n".repeat(9_999), "é\u{1b}[".repeat(50_000), "\n".repeat(99_999)];
        for text in &nasty {
            for limit in [0, 1, 2, 3, 10, 100, 1000, 16384] {
                assert!(failing_part(text, limit).len() <= limit, "{limit}");
            }
        }
    }

    #[test]
    fn words_of_success_are_no_failures() {
        assert!(!tells("test result: ok. 12 passed; 0 failed; 0 ignored"));
        assert!(tells("FAIL src/rows.test.ts"));
        assert!(tells("--- FAIL: TestRows (0.00s)"));
        assert!(tells("E       AssertionError: 1 != 2"));
        assert!(tells("src/a.ts(3,1): error TS2304: Cannot find name"));
    }
}
