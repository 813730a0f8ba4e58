//! Drives one step of an agent as a fleet does, without a keeper: starts what the adapter says, feeds its reader, sends
//! what the reader wants sent. Then it reads everything once more with a fresh reader, which must say the same.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that cannot go on fails; not every user needs all of it"
)]

use agents::{Adapter, Ended, Exit, Input, Launch, Order, Reason, Said, Stdin};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The longest line that is passed on whole.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What someone does about what an agent said.
#[derive(Clone, Debug)]
pub enum Act {
    Answer {
        allow: bool,
        note: &'static str,
    },
    Interrupt,
    Tell(String),
    /// Ends the process group, as a keeper would.
    End(Reason),
}

/// What came of a step.
pub struct Driven {
    pub said: Vec<Said>,
    pub ended: Ended,
    pub journal: Vec<Input>,
    pub output: Vec<String>,
    pub errors: String,
    pub exit: Exit,
}

enum Printed {
    Line(Vec<u8>, bool),
    Error(Vec<u8>),
    End,
}

/// Says yes to every question.
pub fn allow_all(said: &Said) -> Vec<Act> {
    match said {
        Said::Asked { .. } => vec![Act::Answer { allow: true, note: "ok" }],
        _ => Vec::new(),
    }
}

/// Plays one step to its end. `env` is what the settings pass on.
pub fn drive(
    adapter: &dyn Adapter,
    order: &Order,
    env: &[(String, String)],
    mut react: impl FnMut(&Said) -> Vec<Act>,
) -> Driven {
    let launch = adapter.launch(order).unwrap();
    let (mut child, printed) = start(&launch, order, env);
    let mut stdin = child.stdin.take();
    let mut reader = adapter.reader(order);
    let mut driven = Driven {
        said: Vec::new(),
        ended: Ended::Finished { done: false, output: String::new(), usage: Default::default() },
        journal: Vec::new(),
        output: Vec::new(),
        errors: String::new(),
        exit: Exit::code(0),
    };
    match &launch.stdin {
        Stdin::Null => drop(stdin.take()),
        Stdin::Whole(text) => {
            // A program need not read what it is told.
            let _ = stdin.take().unwrap().write_all(text.as_bytes());
        }
        Stdin::Open(input) => send(&mut stdin, &mut driven.journal, input.clone()),
    }
    let mut reason = Reason::Exited;
    let mut lines = Vec::new();
    let mut open = 2;
    while open > 0 {
        let said = match printed.recv_timeout(PATIENCE).expect("the agent says something, or ends") {
            Printed::Line(line, whole) => {
                driven.output.push(String::from_utf8_lossy(&line).into_owned());
                let said = reader.line(&line, whole);
                lines.push((line, whole));
                said
            }
            Printed::Error(line) => {
                driven.errors.push_str(&String::from_utf8_lossy(&line));
                driven.errors.push('\n');
                reader.error_line(&line)
            }
            Printed::End => {
                open -= 1;
                Vec::new()
            }
        };
        for said in said {
            let acts = react(&said);
            match &said {
                Said::Send(input) => send(&mut stdin, &mut driven.journal, input.clone()),
                Said::Finish => drop(stdin.take()),
                Said::Stop(_) => {
                    reason = Reason::Ended;
                    end_group(&child);
                }
                _ => {}
            }
            for act in acts {
                let input = match (&act, &said) {
                    (Act::Answer { allow, note }, Said::Asked { call, .. }) => {
                        reader.answer(call, *allow, note)
                    }
                    (Act::Answer { .. }, _) => panic!("only a question is answered"),
                    (Act::Interrupt, _) => reader.interrupt(),
                    (Act::Tell(text), _) => reader.inject(text),
                    (Act::End(why), _) => {
                        reason = why.clone();
                        end_group(&child);
                        None
                    }
                };
                if let Some(input) = input {
                    send(&mut stdin, &mut driven.journal, input);
                }
            }
            driven.said.push(said);
        }
    }
    let status = child.wait().unwrap();
    driven.exit = Exit { code: status.code(), signal: status.signal(), reason, ..Exit::unknown() };
    driven.ended = reader.end(&driven.exit);
    read_again(adapter, order, &driven, &lines);
    driven
}

/// After a restart a fresh reader gets the journal and every line: it says the same, and sends and asks nothing again.
fn read_again(adapter: &dyn Adapter, order: &Order, driven: &Driven, lines: &[(Vec<u8>, bool)]) {
    let mut reader = adapter.reader(order);
    for input in &driven.journal {
        reader.sent(&input.id, &input.text);
    }
    let mut again: Vec<Said> = lines.iter().flat_map(|(line, whole)| reader.line(line, *whole)).collect();
    for line in driven.errors.lines() {
        reader.error_line(line.as_bytes());
    }
    let answered = |call: &str| driven.journal.iter().any(|input| input.id == format!("answer-{call}"));
    let kept = |said: &&Said| match said {
        Said::Send(_) | Said::Notice(_) => false,
        Said::Asked { call, .. } => !answered(call),
        _ => true,
    };
    again.retain(|said| !matches!(said, Said::Notice(_)));
    let before: Vec<&Said> = driven.said.iter().filter(kept).collect();
    assert_eq!(again.iter().collect::<Vec<_>>(), before, "a fresh reader says the same");
    assert_eq!(reader.end(&driven.exit), driven.ended, "a fresh reader ends the same");
}

fn start(launch: &Launch, order: &Order, env: &[(String, String)]) -> (Child, Receiver<Printed>) {
    if let Some(sweep) = &launch.swept {
        sweep.carry_out().unwrap();
    }
    for folder in launch.directories.iter().chain([&order.private, &order.temp]) {
        std::fs::create_dir_all(folder).unwrap();
    }
    for (path, bytes) in &launch.files {
        assert!(path.starts_with(&order.private), "{} is not private", path.display());
        std::fs::write(path, bytes).unwrap();
    }
    let mut command = Command::new(&launch.argv[0]);
    command.args(&launch.argv[1..]).current_dir(&order.tree).process_group(0).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &order.private);
    command.envs(env.iter().cloned()).envs(launch.env.iter().cloned());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (sender, printed) = channel();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    pass_on(stdout, sender.clone(), Printed::Line);
    pass_on(stderr, sender, |line, _| Printed::Error(line));
    (child, printed)
}

fn pass_on(from: impl Read + Send + 'static, to: Sender<Printed>, made: fn(Vec<u8>, bool) -> Printed) {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            let read = from.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line);
            if !matches!(read, Ok(length) if length > 0) {
                break;
            }
            let whole = line.len() < LINE_BYTES_MAX || line.ends_with(b"\n");
            if !whole {
                // The rest of it is read away.
                let mut rest = Vec::new();
                let _ = from.read_until(b'\n', &mut rest);
            }
            if line.ends_with(b"\n") {
                line.pop();
            }
            if to.send(made(line, whole)).is_err() {
                return;
            }
        }
        let _ = to.send(Printed::End);
    });
}

fn send(stdin: &mut Option<ChildStdin>, journal: &mut Vec<Input>, input: Input) {
    assert!(journal.iter().all(|sent| sent.id != input.id), "`{}` is sent once", input.id);
    if let Some(stdin) = stdin {
        let _ = stdin.write_all(input.text.as_bytes()).and_then(|()| stdin.flush());
    }
    journal.push(input);
}

fn end_group(child: &Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
}
