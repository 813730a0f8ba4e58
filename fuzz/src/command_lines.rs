//! Sends random command lines to the two that decide by one: the judge of what only reads, and the part of the policy that leaves
//! out git's messages before a rule is matched. Both read a line by `crates/kernel/src/shell.rs`.
//!
//! A line is made of pieces that mean something to a shell, and of lines that counted as reading before, changed a little. What
//! is true for all of them is `check_line` in `crates/kernel/src/reading.rs` and `messages.rs`. A line that breaks it is printed
//! with its seed.

use crate::random::Random;
use kernel::fuzz::{check_line, only_reads};
use std::time::{Duration, Instant};

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "ls", "cat", "cd", "git", "log", "diff", "show", "-C", "-c", "sed", "-n", "1p", "1,2p", "w x", "find", "-exec", "-name", "sort",
    "-o", "--output=x", "rg", "--pre", "tail", "-f", "test", "printf", "-v", "rm", "sh", "a[$(rm)]", "$(rm)", "${x}", "$x", "`rm`",
    "'", "\"", "\\", ";", "|", "||", "|&", "&", "&&", "&1", "2>&1", ">", ">>", "<", "<(", ">/dev/null", "{", "}", "(", ")", "*", "?", "[",
    "]", "~", "#", "!", "=", "$", " ", "  ", "\t", "\n", "\r", "\0", "commit", "tag", "-m", "-am", "--message=", "-m'x'", "$'", "${",
    "\"$(cat <<'EOF'\n", "\nEOF\n)\"", "\u{b}", "\u{a0}", "é", "\u{200b}", "a", "-", "--",
];
/// Lines that read, kept to be changed.
const KEPT_MAX: usize = 4_096;

fn line(random: &mut Random, kept: &[String]) -> String {
    let mut line = match kept.is_empty() || random.below(4) == 0 {
        true => String::new(),
        false => kept[random.below(kept.len())].clone(),
    };
    for _ in 0..=random.below(6) {
        let ends: Vec<usize> = line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
        let at = ends[random.below(ends.len())];
        match random.below(4) {
            0 if at < line.len() => drop(line.remove(at)),
            _ => line.insert_str(at, PIECES[random.below(PIECES.len())]),
        }
    }
    line
}

pub fn run(time: Duration, seed: u64) {
    let (mut random, mut kept) = (Random::new(seed), Vec::<String>::new());
    let (begun, mut lines, mut reading) = (Instant::now(), 0_u64, 0_u64);
    while begun.elapsed() < time {
        let line = line(&mut random, &kept);
        lines += 1;
        let checked = std::panic::catch_unwind(|| check_line(&line));
        if checked.is_err() {
            eprintln!("seed {seed}, line {lines}: {line:?}");
            std::process::exit(1);
        }
        if only_reads(&line) && line.len() < 200 {
            reading += 1;
            match kept.len() < KEPT_MAX {
                true => kept.push(line),
                false => kept[random.below(KEPT_MAX)] = line,
            }
        }
    }
    println!("{lines} command lines, {reading} of them reading; seed {seed}");
}
