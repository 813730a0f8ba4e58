//! Throws changed captures at the readers of agents' output.
//!
//! A run is a captured conversation of Claude Code or Codex of which lines are left out, repeated, exchanged with lines of other
//! captures, or changed: by bytes, or by a value of the JSON. Between the lines the fleet answers, interrupts and injects. For all of
//! them: no reader panics, and two readers that are fed the same say the same.

use crate::random::Random;
use agents::{Adapter, Exit, Order, PromptKind, Reader, Said};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

const ADAPTERS: &[&str] = &["claude", "codex", "command", "script"];
/// Lines of one conversation.
const LINES_MAX: usize = 200;

/// What one conversation does to a reader.
#[derive(Clone, Debug)]
enum Act {
    Line(Vec<u8>, bool),
    ErrorLine(Vec<u8>),
    /// Answers a call that was asked for; the number chooses among them.
    Answer(usize, bool),
    Interrupt,
    Inject,
}

pub fn run(time: Duration, seed: u64) {
    let captures: Vec<Vec<Vec<u8>>> = ["claude", "codex"].into_iter().flat_map(captures).collect();
    let (mut random, begun) = (Random::new(seed), Instant::now());
    let (mut conversations, mut lines) = (0_u64, 0_u64);
    while begun.elapsed() < time {
        conversations += 1;
        let name = *random.of(ADAPTERS);
        let acts = conversation(&mut random, &captures);
        let resume = random.below(2) == 0;
        lines += acts.len() as u64;
        let adapter = agents::adapter(name).expect("an adapter");
        let played =
            catch_unwind(AssertUnwindSafe(|| (play(adapter, resume, &acts), play(adapter, resume, &acts))));
        match played {
            Ok((first, second)) if first == second => {}
            Ok((first, second)) => {
                fail(seed, conversations, name, &acts, &format!("said {first}\nand then {second}"))
            }
            Err(_) => fail(seed, conversations, name, &acts, "it panicked"),
        }
    }
    println!("{conversations} conversations of agents, {lines} lines; seed {seed}");
}

fn fail(seed: u64, number: u64, adapter: &str, acts: &[Act], what: &str) -> ! {
    for act in acts {
        match act {
            Act::Line(line, _) => eprintln!("line {:?}", String::from_utf8_lossy(line)),
            other => eprintln!("{other:?}"),
        }
    }
    eprintln!("seed {seed}, conversation {number} of {adapter}: {what}");
    std::process::exit(1);
}

/// What the program printed, line by line, in each capture.
fn captures(adapter: &str) -> Vec<Vec<Vec<u8>>> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/agents/src").join(adapter).join("captures");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("captures").map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let printed = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        match value.get("dir").and_then(Value::as_str) {
            Some("out") => Some(value["msg"].to_string().into_bytes()),
            Some(_) => None,
            None => Some(line.as_bytes().to_vec()),
        }
    };
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a capture");
        text.lines().filter_map(printed).collect()
    };
    paths.iter().map(read).collect()
}

fn conversation(random: &mut Random, captures: &[Vec<Vec<u8>>]) -> Vec<Act> {
    let mut acts = Vec::new();
    let capture = random.of(captures);
    // Some are changed hardly, so that they come far; others a lot.
    let calm = 1 + random.below(20);
    for line in capture.iter().take(LINES_MAX) {
        match random.below(8 * calm) {
            0 => continue,
            1 => acts.push(Act::Line(line.clone(), true)),
            2 => {
                let other = random.of(captures);
                if !other.is_empty() {
                    acts.push(Act::Line(random.of(other).clone(), true));
                }
            }
            3 => acts.push(Act::Interrupt),
            4 => acts.push(Act::Inject),
            5 => acts.push(Act::ErrorLine(bytes(random, line))),
            _ => {}
        }
        let line = match random.below(3 * calm) {
            0 => bytes(random, line),
            1 => values(random, line),
            _ => line.clone(),
        };
        acts.push(Act::Line(line, random.below(50) > 0));
        if random.below(3) == 0 {
            acts.push(Act::Answer(random.below(8), random.below(2) == 0));
        }
    }
    acts
}

/// A few bytes of the line are others.
fn bytes(random: &mut Random, line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(line.len() + 1);
        match random.below(4) {
            0 if at < line.len() => drop(line.remove(at)),
            1 if at < line.len() => line[at] = random.below(256) as u8,
            2 => line.truncate(at),
            _ => line.insert(at, *random.of(b"{}[]\",:0-9e.\\\n\x00\xff\xc3")),
        }
    }
    line
}

/// A value of the JSON is another, is gone, or is somewhere else.
fn values(random: &mut Random, line: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return bytes(random, line) };
    for _ in 0..=random.below(3) {
        let odd = odd(random, &value);
        let mut at = &mut value;
        loop {
            let deeper = random.below(4) > 0;
            // Looked at first, so that a value without parts is replaced itself.
            let parts = match &*at {
                Value::Object(fields) => fields.len(),
                Value::Array(entries) => entries.len(),
                _ => 0,
            };
            if parts == 0 || !deeper {
                break;
            }
            let chosen = random.below(parts);
            at = match at {
                Value::Object(fields) => fields.values_mut().nth(chosen).expect("a field"),
                Value::Array(entries) => &mut entries[chosen],
                _ => break,
            };
        }
        *at = odd;
    }
    value.to_string().into_bytes()
}

fn odd(random: &mut Random, whole: &Value) -> Value {
    match random.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(1e300),
        7 => json!(0.5),
        8 => json!(""),
        9 => json!("\u{0}\u{1b}[2J\u{202e}é"),
        10 => json!("x".repeat(100_000)),
        11 => json!([]),
        12 => json!({}),
        _ => whole.clone(),
    }
}

/// Feeds it all to a fresh reader: what was said and how it ended, as text.
fn play(adapter: &dyn Adapter, resume: bool, acts: &[Act]) -> String {
    let mut reader = adapter.reader(&order(resume));
    let (mut said, mut asked, mut seen) = (Vec::new(), Vec::new(), 0);
    for act in acts {
        let answer = match act {
            Act::Line(line, whole) => {
                said.extend(reader.line(line, *whole));
                // For a keeper whose server is gone.
                let _ = adapter.deny(line, "nobody answers");
                None
            }
            Act::ErrorLine(line) => {
                said.extend(reader.error_line(line));
                None
            }
            Act::Answer(number, allow) if !asked.is_empty() => {
                let call: &String = &asked[number % asked.len()];
                reader.answer(call, *allow, "a note")
            }
            Act::Answer(..) => None,
            Act::Interrupt => reader.interrupt(),
            Act::Inject => reader.inject("a word"),
        };
        if let Some(input) = answer {
            reader.sent(&input.id, &input.text);
        }
        asked.extend(carry_out(&said[seen..], &mut *reader));
        seen = said.len();
    }
    format!("{said:?} {:?} {:?}", reader.silence(), reader.end(&Exit::code(0)))
}

/// Sends what is to be sent, and returns the calls that were asked for.
fn carry_out(said: &[Said], reader: &mut dyn Reader) -> Vec<String> {
    let mut asked = Vec::new();
    for said in said {
        match said {
            Said::Asked { call, .. } => asked.push(call.to_string()),
            Said::Send(input) => reader.sent(&input.id, &input.text),
            _ => {}
        }
    }
    asked
}

fn order(resume: bool) -> Order {
    Order {
        command: vec!["agent".to_owned()],
        model: None,
        system: None,
        allowed_tools: None,
        prompt: "do the work".to_owned(),
        kind: PromptKind::Init,
        session: "11111111-1111-4111-8111-111111111111".into(),
        resume,
        turns_left: 50,
        budget_usd: None,
        task: "t-1".into(),
        worker: "A".into(),
        run: "t-1.1".into(),
        step: "e-1.1".into(),
        tree: "/repo".into(),
        main: "main".to_owned(),
        private: "/private".into(),
        temp: "/temp".into(),
        project_root: "/project".into(),
        adj: "/bin/adj".into(),
    }
}
