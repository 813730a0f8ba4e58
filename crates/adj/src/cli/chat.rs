//! `adj channel tail`: a channel on a terminal. What is said scrolls by, and below it stands what a person is typing.
//!
//! Texts of others are shown by `visible`: nothing in them moves the cursor or looks like a line of ours.

use std::io::{self, IsTerminal, Write};

use super::channel_words;
use super::keyboard::Keyboard;
use super::project::Project;
use super::terminal::{self, Paint, columns, wrap};
use super::text::{self, visible};
use super::{Context, Failure, Globals};
use api::types::channel::{
    Channel, Entry, EntryKind, MessagesQuery, NewMessage, ReviewDecision, TurnAction, TurnWord,
};
use api::types::fleet::Fleet;
use api::types::task::Task;
use api::types::{Cursor, Limit, PAGE_MAX, Page};
use clap::Args;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;

/// Longer names are cut, so that what is said has room.
const NAME_WIDTH_MAX: usize = 16;
/// A terminal with fewer columns has no room for the time, and a name stands above what is said.
const NARROW: usize = 48;

/// How entries are shown: in which colours and columns.
pub struct Form {
    paint: Paint,
    width: Option<usize>,
    names: usize,
}

impl Form {
    pub fn new(globals: &Globals, said: &[Entry]) -> Form {
        let names = said.iter().filter_map(speaker).map(|name| columns(&name)).max().unwrap_or(0);
        let width = terminal::size().map(|(width, _)| width);
        Form { paint: Paint::stdout(globals), width, names: names.clamp(4, NAME_WIDTH_MAX) }
    }

    pub fn print(&self, entry: &Entry, with_day: bool, out: &mut dyn Write) -> Result<(), Failure> {
        for line in self.lines(entry, with_day) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Nothing where the entry is not for people to read.
    fn lines(&self, entry: &Entry, with_day: bool) -> Vec<String> {
        let at = entry.timestamp.parse::<jiff::Timestamp>().map_or(0, |at| at.as_millisecond());
        let narrow = self.width.is_some_and(|width| width < NARROW);
        let time = match (narrow, with_day) {
            (true, _) => String::new(),
            (false, true) => format!("{}  ", terminal::day_and_clock(at)),
            (false, false) => format!("{}  ", terminal::clock(at)),
        };
        let Some(name) = speaker(entry) else {
            let Some(words) = event_words(entry) else { return Vec::new() };
            return self
                .folded(&words, columns(&time) + 2)
                .into_iter()
                .enumerate()
                .map(|(row, line)| {
                    let before = if row == 0 { format!("{time}· ") } else { " ".repeat(columns(&time) + 2) };
                    self.paint.dim(format!("{before}{line}"))
                })
                .collect();
        };
        let text = entry.text.as_deref().unwrap_or_default();
        let shown = terminal::column(&name, self.names);
        let painted = match entry.agent_id.is_some() {
            true => self.paint.by_name(&name, &shown),
            false => self.paint.bold(&shown),
        };
        if narrow {
            let mut lines = vec![painted.trim_end().to_owned()];
            lines.extend(self.folded(text, 2).into_iter().map(|line| format!("  {line}")));
            return lines;
        }
        let indent = columns(&time) + self.names + 2;
        let held = match (&entry.recipient, entry.held) {
            (_, false) => String::new(),
            (None, true) => self.paint.dim("  (held until the turn is over)"),
            (Some(agent), true) => {
                let agent = visible(agent);
                self.paint.dim(format!("  (to {agent} now, to the others when its turn is over)"))
            }
        };
        let said = self.folded(text, indent);
        let last = said.len().saturating_sub(1);
        said.into_iter()
            .enumerate()
            .map(|(row, line)| {
                let before = if row == 0 {
                    format!("{}{painted}  ", self.paint.dim(&time))
                } else {
                    " ".repeat(indent)
                };
                format!("{before}{line}{}", if row == last { held.as_str() } else { "" })
            })
            .collect()
    }

    /// A text in lines that fit behind an indent. Lines that fit already keep their blanks: it may be code.
    fn folded(&self, text: &str, indent: usize) -> Vec<String> {
        let room = self.width.map(|width| width.saturating_sub(indent)).filter(|room| *room >= 10);
        let mut lines = Vec::new();
        for line in text.lines() {
            let line = visible(line);
            match room {
                Some(room) if columns(&line) > room => lines.extend(wrap(&line, room)),
                _ => lines.push(line),
            }
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
        lines
    }
}

/// Who said it: `ann`, `coder`.
fn speaker(entry: &Entry) -> Option<String> {
    if entry.event != EntryKind::Message {
        return None;
    }
    let by = entry.by.as_deref().unwrap_or("?");
    Some(visible(by.split_once(':').map_or(by, |(_, name)| name)))
}

/// What happened, in a few words.
fn event_words(entry: &Entry) -> Option<String> {
    let agent = visible(entry.agent_id.as_deref().unwrap_or("?"));
    let (to, trigger) =
        (entry.to.as_deref().unwrap_or_default(), entry.trigger.as_deref().unwrap_or_default());
    Some(match entry.event {
        EntryKind::Announcement => entry.text.clone()?,
        EntryKind::Notice if entry.warning => format!("⚠️ {}", entry.text.clone()?),
        EntryKind::Joined => format!("{agent} joined"),
        EntryKind::Left => format!("{agent} left"),
        EntryKind::Closed => "the channel is closed".to_owned(),
        EntryKind::Rests => "nobody had anything to say; the channel rests until the next message".to_owned(),
        EntryKind::Stalls => "nobody can be given the turn now".to_owned(),
        EntryKind::Transition => match (to, trigger) {
            ("ACTIVE", "turn_granted") => format!("{agent} has the turn"),
            ("ACTIVE", _) => format!("{agent} goes on"),
            ("WAITING", _) => format!("{agent} waits"),
            _ => return None,
        },
        _ => return None,
    })
}

#[derive(Debug, Args)]
pub struct Tail {
    /// Channel
    pub channel: String,
    /// Number of earlier messages to print first, at most 1000
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub lines: usize,
    /// Print them and exit
    #[arg(long)]
    pub no_follow: bool,
}

pub fn tail(command: &Tail, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = channel_words::path(&command.channel)?;
    let begun: Channel = project.get(&path)?;
    let last = Limit(command.lines.clamp(1, PAGE_MAX));
    let past: Page<Entry> = match command.lines {
        0 => Page { items: Vec::new(), next: None },
        _ => project.get_with(
            &format!("{path}/messages"),
            &MessagesQuery { last: Some(last), ..MessagesQuery::default() },
        )?,
    };
    let mut form = Form::new(&context.globals, &past.items);
    let members = begun.members.iter().map(|member| columns(&member.agent)).max().unwrap_or(0);
    form.names = form.names.max(members.min(NAME_WIDTH_MAX));
    let json = context.globals.json;
    for entry in &past.items {
        shown(&form, entry, json, context.out)?;
    }
    context.out.flush()?;
    if command.no_follow || begun.closed_at.is_some() {
        return Ok(());
    }
    if project.get::<Fleet>("/fleet")?.pid.is_none() {
        let hint = "no process runs here; nothing more comes before `adj run` or `adj serve`";
        Project::hint(&context.globals, hint);
        return Ok(());
    }
    let after = past.items.last().map_or(0, |entry| entry.seq);
    let heard = follow(project.clone(), path.clone(), after);
    let talks = !json && io::stdout().is_terminal() && !terminal::dumb();
    match talks.then(Keyboard::open).flatten() {
        Some(keyboard) => {
            let quiet = context.globals.quiet;
            let mut chat = Chat { project: &project, path, form, typed: String::new(), out: context.out };
            chat.run(keyboard, heard, &begun, quiet)
        }
        None => listen(heard, &form, json, context.out),
    }
}

fn shown(form: &Form, entry: &Entry, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    match json {
        true => Ok(writeln!(out, "{}", text::json(entry))?),
        false => form.print(entry, false, out),
    }
}

type Heard = mpsc::UnboundedReceiver<Result<Vec<Entry>, Failure>>;

/// Asks for what is new, for as long as somebody listens.
fn follow(project: Project, path: String, mut after: u64) -> Heard {
    let (sender, heard) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        loop {
            let query = MessagesQuery {
                all: true,
                after: Some(Cursor(after)),
                limit: Some(Limit(PAGE_MAX)),
                wait: true,
                ..MessagesQuery::default()
            };
            let page: Result<Page<Entry>, Failure> = project.get_with(&format!("{path}/messages"), &query);
            let failed = page.is_err();
            let items = page.map(|page| page.items);
            after = items.iter().flatten().last().map_or(after, |entry| entry.seq);
            // Who listens is asked also where there is nothing new.
            if sender.send(items).is_err() || failed {
                return;
            }
        }
    });
    heard
}

/// Lines only, for whoever has no terminal.
fn listen(mut heard: Heard, form: &Form, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    while let Some(said) = heard.blocking_recv() {
        for entry in said? {
            shown(form, &entry, json, out)?;
            if entry.event == EntryKind::Closed {
                return Ok(out.flush()?);
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// A person at a terminal.
struct Chat<'c> {
    project: &'c Project,
    path: String,
    form: Form,
    typed: String,
    out: &'c mut dyn Write,
}

/// Something was typed, or said in the channel.
enum Happened {
    Pressed(KeyEvent),
    Said(Result<Vec<Entry>, Failure>),
}

/// Whether it goes on.
#[derive(PartialEq)]
enum Next {
    Stay,
    Leave,
}

impl Chat<'_> {
    fn run(
        &mut self,
        mut keyboard: Keyboard,
        mut heard: Heard,
        begun: &Channel,
        quiet: bool,
    ) -> Result<(), Failure> {
        if !quiet {
            self.note(&format!("{}\ntype a message, or /help", channel_words::turn_words(begun)))?;
        }
        self.prompt()?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        loop {
            let happened = runtime.block_on(async {
                tokio::select! {
                    key = keyboard.next() => key.map(Happened::Pressed),
                    said = heard.recv() => said.map(Happened::Said),
                }
            });
            // What follows asks the project, which has a runtime of its own.
            let next = match happened {
                Some(Happened::Pressed(key)) => self.pressed(key)?,
                Some(Happened::Said(said)) => self.hear(said?)?,
                None => Next::Leave,
            };
            if next == Next::Leave {
                self.clear()?;
                return Ok(self.out.flush()?);
            }
        }
    }

    fn hear(&mut self, said: Vec<Entry>) -> Result<Next, Failure> {
        if said.is_empty() {
            return Ok(Next::Stay);
        }
        self.form.width = terminal::size().map(|(width, _)| width);
        self.clear()?;
        let mut next = Next::Stay;
        for entry in said {
            for line in self.form.lines(&entry, false) {
                write!(self.out, "{line}\r\n")?;
            }
            if entry.event == EntryKind::Closed {
                next = Next::Leave;
            }
        }
        self.prompt()?;
        Ok(next)
    }

    fn clear(&mut self) -> io::Result<()> {
        write!(self.out, "\r\x1b[K")
    }

    /// The end of what is typed, where it is longer than the line.
    fn prompt(&mut self) -> io::Result<()> {
        let room = terminal::size().map_or(80, |(width, _)| width).saturating_sub(3);
        let mut shown = visible(&self.typed);
        while columns(&shown) > room {
            shown.remove(0);
        }
        self.clear()?;
        write!(self.out, "{} {shown}", self.form.paint.bold(">"))?;
        self.out.flush()
    }

    /// A line of our own.
    fn note(&mut self, text: &str) -> Result<(), Failure> {
        self.clear()?;
        for line in self.form.folded(text, 0) {
            write!(self.out, "{}\r\n", self.form.paint.dim(line))?;
        }
        Ok(())
    }

    fn pressed(&mut self, key: KeyEvent) -> Result<Next, Failure> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Ok(Next::Leave),
            KeyCode::Char('d') if control && self.typed.is_empty() => return Ok(Next::Leave),
            KeyCode::Char('u') if control => self.typed.clear(),
            KeyCode::Char('w') if control => {
                let kept = self.typed.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
                self.typed.truncate(kept);
            }
            KeyCode::Char(letter) if !control => self.typed.push(letter),
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Enter => {
                let line = std::mem::take(&mut self.typed);
                let next = self.said(line.trim())?;
                if next == Next::Leave {
                    return Ok(next);
                }
            }
            _ => {}
        }
        self.prompt()?;
        Ok(Next::Stay)
    }

    /// What a person has typed is said, or done. What was wrong with it is told, and the chat goes on.
    fn said(&mut self, line: &str) -> Result<Next, Failure> {
        if line.is_empty() {
            return Ok(Next::Stay);
        }
        let done = match line.strip_prefix('/') {
            None => {
                let posted = self
                    .project
                    .post(&format!("{}/messages", self.path), &NewMessage { text: line.to_owned() });
                posted.map(|_: Entry| String::new())
            }
            Some(command) => {
                let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
                if matches!(word, "quit" | "q" | "exit") {
                    return Ok(Next::Leave);
                }
                self.command(word, rest.trim())
            }
        };
        match done {
            Ok(words) if words.is_empty() => self.clear()?,
            Ok(words) => self.note(&words)?,
            Err(failure) => {
                let hint = failure.document().hint.as_ref().map(|hint| format!("\nhint: {hint}"));
                let text = format!("{failure}{}", hint.unwrap_or_default());
                self.note(&text)?;
            }
        }
        Ok(Next::Stay)
    }

    fn command(&self, word: &str, rest: &str) -> Result<String, Failure> {
        let named = (!rest.is_empty()).then(|| rest.to_owned());
        match word {
            "who" => self.who(),
            "resume" => self.turn(TurnAction::Resume, named),
            "skip" => self.turn(TurnAction::Skip, named),
            "cancel" => self.turn(TurnAction::Cancel, named),
            "fresh" => self.turn(TurnAction::Fresh, named),
            "approve" => self.decide(true, rest),
            "changes" if rest.is_empty() => Ok("/changes TEXT: say what must be changed".to_owned()),
            "changes" => self.decide(false, rest),
            "help" | "?" => {
                Ok("/who  /resume  /skip AGENT  /cancel  /fresh AGENT  /approve  /changes TEXT  /quit"
                    .to_owned())
            }
            _ => Ok(format!("there is no /{}; /help lists what there is", visible(word))),
        }
    }

    fn who(&self) -> Result<String, Failure> {
        let channel: Channel = self.project.get(&self.path)?;
        let mut lines = vec![channel_words::turn_words(&channel)];
        for member in &channel.members {
            lines.push(format!(
                "  {}  {}",
                terminal::column(&visible(&member.agent), self.form.names),
                member.state
            ));
        }
        Ok(lines.join("\n"))
    }

    fn turn(&self, action: TurnAction, agent: Option<String>) -> Result<String, Failure> {
        let word = TurnWord { agent, ..TurnWord::of(action) };
        let after: Channel = self.project.post(&format!("{}/turn", self.path), &word)?;
        Ok(channel_words::turn_words(&after))
    }

    fn decide(&self, approve: bool, note: &str) -> Result<String, Failure> {
        let said = ReviewDecision { approve, note: note.to_owned() };
        let task: Task = self.project.post(&format!("{}/decision", self.path), &said)?;
        Ok(format!("{} is {}", visible(&task.line.id), task.line.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(by: &str, agent: Option<&str>, text: &str) -> Entry {
        let record = serde_json::json!({
            "seq": 1, "timestamp": "2026-02-04T21:00:00Z", "event": "message", "channel": "r",
            "by": by, "agentId": agent, "number": 1, "text": text,
        });
        serde_json::from_value(record).expect("it is an entry")
    }

    fn form(width: Option<usize>) -> Form {
        Form { paint: Paint::none(), width, names: 5 }
    }

    #[test]
    fn what_is_said_hangs_behind_its_name_and_keeps_the_blanks_of_code() {
        let said = entry("agent:coder", Some("coder"), "two words here\n    let x = 1;");
        let lines = form(Some(60)).lines(&said, false);
        assert_eq!(lines[0].get(8..), Some("  coder  two words here"));
        assert_eq!(lines[1], format!("{}    let x = 1;", " ".repeat(17)));
        let long = entry("human:ann", None, &"word ".repeat(20));
        assert!(form(Some(60)).lines(&long, false).iter().all(|line| columns(line) <= 60));
    }

    #[test]
    fn a_narrow_terminal_has_the_name_above() {
        let lines = form(Some(30))
            .lines(&entry("human:ann", None, "a longer sentence than the line has room for"), false);
        assert_eq!(lines[0], "ann");
        assert!(lines.iter().all(|line| columns(line) <= 30), "{lines:?}");
    }

    #[test]
    fn a_text_cannot_move_the_cursor_or_pretend_to_be_another_line() {
        let lines = form(None).lines(&entry("agent:x\u{1b}[2J", Some("x"), "a\u{1b}[31mb\rann  hi"), false);
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].contains('\u{1b}') && !lines[0].contains('\r'), "{lines:?}");
    }
}
