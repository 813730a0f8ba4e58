//! Throws odd command lines at the two that decide by one: `adjutant-fuzz SECONDS [SEED]`. One judges what only reads, the other
//! leaves the messages of git out before a rule is matched. Both read lines by `crates/kernel/src/shell.rs`.
//!
//! A line is made of pieces that mean something to a shell, and of lines that counted as reading before, changed a little. What
//! holds for all of them is `check_line` in `crates/kernel/src/reading.rs` and `messages.rs`. A line that breaks it is printed with its seed.

use kernel::fuzz::{check_line, only_reads};
use std::time::{Duration, Instant};

const PIECES: &[&str] = &[
    "ls", "cat", "cd", "git", "log", "diff", "show", "-C", "-c", "sed", "-n", "1p", "1,2p", "w x", "find", "-exec", "-name", "sort",
    "-o", "--output=x", "rg", "--pre", "tail", "-f", "test", "printf", "-v", "rm", "sh", "a[$(rm)]", "$(rm)", "${x}", "$x", "`rm`",
    "'", "\"", "\\", ";", "|", "||", "|&", "&", "&&", "&1", "2>&1", ">", ">>", "<", "<(", ">/dev/null", "{", "}", "(", ")", "*", "?", "[",
    "]", "~", "#", "!", "=", "$", " ", "  ", "\t", "\n", "\r", "\0", "commit", "tag", "-m", "-am", "--message=", "-m'x'", "$'", "${", "\"$(cat <<'EOF'\n", "\nEOF\n)\"", "\u{b}", "\u{a0}", "é", "\u{200b}", "a", "-", "--",
];
/// Lines that read, kept to be changed.
const KEPT_MAX: usize = 4_096;

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (mut random, mut kept) = (Random(seed), Vec::<String>::new());
    let (begun, mut lines, mut reading) = (Instant::now(), 0_u64, 0_u64);
    while begun.elapsed() < Duration::from_secs(seconds) {
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
    println!("{lines} lines, {reading} of them reading; seed {seed}");
}
