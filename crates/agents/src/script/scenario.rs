//! Scenario files: the steps of a scripted agent. The page is `docs/scenarios.md`.

use super::super::PromptKind;
use machines::Wire;
use std::ops::Range;
use std::time::Duration;
use toml_edit::{Document, InlineTable, Item, Table, Value};

/// The largest scenario file that is read, in bytes.
pub const SCENARIO_BYTES_MAX: usize = 1024 * 1024;

/// What is wrong with a scenario, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct ScenarioError {
    pub file: String,
    pub line: usize,
    pub what: String,
}

/// A scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    parts: Vec<Part>,
}

/// What is done for some tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// A task's id, with `*` for any letters. Absent: every task that no earlier part is for.
    pub task: Option<String>,
    pub price: Price,
    pub steps: Vec<Step>,
}

/// One step: what is done after one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Taken only for a prompt of this kind, and before the steps that are for any.
    pub on: Option<PromptKind>,
    pub actions: Vec<(usize, Action)>,
}

/// What a turn uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Absent: the agent does not say what it cost.
    pub cost_usd: Option<f64>,
}

impl Default for Price {
    fn default() -> Self {
        Self { input_tokens: 1000, output_tokens: 100, cost_usd: Some(0.01) }
    }
}

/// One thing that a scripted agent does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Say(String),
    Done,
    Tool {
        tool: Tool,
        quiet: bool,
        price: Option<Price>,
    },
    /// A turn of words alone.
    Turn {
        text: String,
        price: Option<Price>,
    },
    Ask {
        tool: String,
        argument: String,
    },
    Listen(Duration),
    Sleep(Duration),
    Fail {
        code: u8,
        stderr: String,
    },
    Crash,
    Hang,
    Complain(String),
    Outage {
        status: Option<u16>,
        resets_in: Option<Duration>,
    },
    Retry {
        status: u16,
        attempt: u32,
        delay: Duration,
    },
    Flood {
        lines: u64,
        rate: u64,
    },
    LongLine(u64),
    Raw(Vec<u8>),
}

/// What is done with a tool: asked for first, and not done where the answer is no.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    Write { path: String, text: String },
    Append { path: String, text: String },
    Replace { path: String, from: String, to: String },
    Delete { path: String },
    Run(String),
    Commit(String),
    Merge { from: String, take: Take, files: Vec<(String, String)>, message: String },
    Daemon(String),
}

/// Which side a merge takes where both changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    Ours,
    Theirs,
}

impl Scenario {
    /// Reads a scenario. `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let source = Source { file, text };
        if text.len() > SCENARIO_BYTES_MAX {
            return Err(
                source.at(None, format!("a scenario has at most {SCENARIO_BYTES_MAX} bytes; split it"))
            );
        }
        let document = Document::parse(text).map_err(|error| source.at(error.span(), error.message()))?;
        known(&source, document.as_table(), &["scenario"])?;
        let Some(parts) = document.get("scenario") else {
            return Err(source.at(None, "there is no scenario; begin with `[[scenario]]`"));
        };
        let parts: Result<Vec<Part>, _> =
            tables(&source, parts, "scenario")?.map(|table| part(&source, table)).collect();
        Ok(Scenario { parts: parts? })
    }

    /// The first part that is for this task.
    pub fn part(&self, task: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.task.as_deref().is_none_or(|pattern| matches(pattern, task)))
    }
}

/// Whether `text` fits a pattern in which `*` stands for any letters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let tail = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(tail)
}

/// A file that errors point into.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, span: Option<Range<usize>>) -> usize {
        let start = span.map_or(0, |span| span.start).min(self.text.len());
        self.text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    fn at(&self, span: Option<Range<usize>>, what: impl Into<String>) -> ScenarioError {
        let what = what.into().trim().replace('\n', "; ");
        ScenarioError { file: self.file.to_owned(), line: self.line(span), what }
    }
}

fn known(source: &Source, table: &Table, names: &[&str]) -> Result<(), ScenarioError> {
    for (name, item) in table {
        if !names.contains(&name) {
            let span = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
            return Err(
                source.at(span, format!("there is no key `{name}` here; there are: {}", names.join(", ")))
            );
        }
    }
    Ok(())
}

fn tables<'a>(
    source: &Source,
    item: &'a Item,
    name: &str,
) -> Result<impl Iterator<Item = &'a Table>, ScenarioError> {
    let wrong = || source.at(item.span(), format!("`{name}` is a list of tables: write `[[{name}]]`"));
    Ok(item.as_array_of_tables().ok_or_else(wrong)?.iter())
}

fn part(source: &Source, table: &Table) -> Result<Part, ScenarioError> {
    known(source, table, &["task", "tokens", "cost", "step"])?;
    let task = match table.get("task") {
        Some(item) => {
            let wrong = || source.at(item.span(), "`task` is the id of a task, or a pattern such as \"c-*\"");
            Some(item.as_str().ok_or_else(wrong)?.to_owned())
        }
        None => None,
    };
    let value = |name| table.get(name).and_then(Item::as_value);
    let price = price(source, value("tokens"), value("cost"), Price::default())?;
    let Some(steps) = table.get("step") else {
        return Err(
            source.at(table.span(), "this scenario has no step; add `[[scenario.step]]` with `do = […]`")
        );
    };
    let steps: Result<Vec<Step>, _> =
        tables(source, steps, "scenario.step")?.map(|table| step(source, table, price)).collect();
    Ok(Part { task, price, steps: steps? })
}

fn step(source: &Source, table: &Table, price: Price) -> Result<Step, ScenarioError> {
    known(source, table, &["on", "do"])?;
    let on = match table.get("on") {
        Some(item) => {
            let kinds: Vec<&str> = PromptKind::ALL.iter().map(|kind| kind.name()).collect();
            let wrong =
                || source.at(item.span(), format!("`on` is the kind of a prompt: {}", kinds.join(", ")));
            Some(item.as_str().and_then(PromptKind::read).ok_or_else(wrong)?)
        }
        None => None,
    };
    let Some(list) = table.get("do").and_then(Item::as_array) else {
        let span = table.get("do").map_or_else(|| table.span(), Item::span);
        return Err(source.at(span, "a step needs `do = [ { … }, { … } ]`"));
    };
    let mut actions = Vec::new();
    for value in list {
        let Some(fields) = value.as_inline_table() else {
            let example = "an action is a table such as { say = \"hello\" }";
            return Err(source.at(value.span(), example));
        };
        let line = source.line(value.span());
        actions.push((line, action(source, fields, value.span(), price)?));
    }
    Ok(Step { on, actions })
}

/// What an action's own key is, and the keys that may stand beside it.
#[rustfmt::skip]
const ACTIONS: &[(&str, &[&str])] = &[
    ("say",       &[]),
    ("done",      &[]),
    ("turn",      &["tokens", "cost"]),
    ("write",     &["text", "quiet", "tokens", "cost"]),
    ("append",    &["text", "quiet", "tokens", "cost"]),
    ("replace",   &["from", "to", "quiet", "tokens", "cost"]),
    ("delete",    &["quiet", "tokens", "cost"]),
    ("run",       &["quiet", "tokens", "cost"]),
    ("commit",    &["quiet", "tokens", "cost"]),
    ("merge",     &["take", "files", "message", "quiet", "tokens", "cost"]),
    ("daemon",    &["quiet", "tokens", "cost"]),
    ("ask",       &["argument"]),
    ("listen",    &[]),
    ("sleep",     &[]),
    ("fail",      &["stderr"]),
    ("crash",     &[]),
    ("hang",      &[]),
    ("complain",  &[]),
    ("outage",    &["resets_in"]),
    ("retry",     &["attempt", "delay"]),
    ("flood",     &["rate"]),
    ("long_line", &[]),
    ("raw",       &[]),
];

fn action(
    source: &Source,
    table: &InlineTable,
    span: Option<Range<usize>>,
    standard: Price,
) -> Result<Action, ScenarioError> {
    let mut named = ACTIONS.iter().filter(|(name, _)| table.contains_key(name));
    let Some(&(name, beside)) = named.next() else {
        let names: Vec<&str> = ACTIONS.iter().map(|(name, _)| *name).collect();
        return Err(source.at(span, format!("this is not an action; the actions are: {}", names.join(", "))));
    };
    if let Some((other, _)) = named.next() {
        return Err(source
            .at(span, format!("`{name}` and `{other}` are two actions; write them one after the other")));
    }
    let fields = Fields { source, table, span };
    fields.known(name, beside)?;
    let tool = |tool| {
        let quiet = fields.flag("quiet")?;
        let own = table.contains_key("tokens") || table.contains_key("cost");
        let price =
            own.then(|| price(source, table.get("tokens"), table.get("cost"), standard)).transpose()?;
        Ok(Action::Tool { tool, quiet, price })
    };
    Ok(match name {
        "say" => Action::Say(fields.text(name)?),
        "turn" => {
            let price = price(source, table.get("tokens"), table.get("cost"), standard)?;
            Action::Turn { text: fields.text(name)?, price: Some(price) }
        }
        "write" => tool(Tool::Write { path: fields.text(name)?, text: fields.text("text")? })?,
        "append" => tool(Tool::Append { path: fields.text(name)?, text: fields.text("text")? })?,
        "replace" => tool(Tool::Replace {
            path: fields.text(name)?,
            from: fields.text("from")?,
            to: fields.text("to")?,
        })?,
        "delete" => tool(Tool::Delete { path: fields.text(name)? })?,
        "run" => tool(Tool::Run(fields.text(name)?))?,
        "commit" => tool(Tool::Commit(fields.text(name)?))?,
        "daemon" => tool(Tool::Daemon(fields.text(name)?))?,
        "merge" => tool(Tool::Merge {
            from: fields.text(name)?,
            take: fields.side_taken()?,
            files: fields.files()?,
            message: fields.text_or("message", "Merge {main}")?,
        })?,
        "ask" => Action::Ask { tool: fields.text(name)?, argument: fields.text_or("argument", "")? },
        "listen" => Action::Listen(fields.seconds(name)?),
        "sleep" => Action::Sleep(fields.seconds(name)?),
        "complain" => Action::Complain(fields.text(name)?),
        "fail" => Action::Fail {
            code: u8::try_from(fields.number(name)?)
                .map_err(|_| fields.wrong(name, "an exit code from 0 to 255"))?,
            stderr: fields.text_or("stderr", "")?,
        },
        "outage" => {
            let status = fields.number(name)?;
            let resets_in =
                table.contains_key("resets_in").then(|| fields.seconds("resets_in")).transpose()?;
            let status =
                u16::try_from(status).map_err(|_| fields.wrong(name, "an HTTP status, or 0 for none"))?;
            Action::Outage { status: (status != 0).then_some(status), resets_in }
        }
        "retry" => Action::Retry {
            status: u16::try_from(fields.number(name)?).map_err(|_| fields.wrong(name, "an HTTP status"))?,
            attempt: u32::try_from(fields.number_or("attempt", 1)?)
                .map_err(|_| fields.wrong("attempt", "a small number"))?,
            delay: if table.contains_key("delay") { fields.seconds("delay")? } else { Duration::ZERO },
        },
        "flood" => Action::Flood { lines: fields.number(name)?, rate: fields.number_or("rate", 0)? },
        "long_line" => Action::LongLine(fields.number(name)?),
        "raw" => Action::Raw(fields.hex(name)?),
        _ => {
            if !fields.flag(name)? {
                return Err(fields.wrong(name, "`true`"));
            }
            match name {
                "done" => Action::Done,
                "crash" => Action::Crash,
                _ => Action::Hang,
            }
        }
    })
}

/// The keys of one action.
struct Fields<'a> {
    source: &'a Source<'a>,
    table: &'a InlineTable,
    span: Option<Range<usize>>,
}

impl Fields<'_> {
    fn known(&self, action: &str, beside: &[&str]) -> Result<(), ScenarioError> {
        for (name, value) in self.table {
            if name != action && !beside.contains(&name) {
                let may = if beside.is_empty() { "nothing".to_owned() } else { beside.join(", ") };
                let what = format!("`{name}` cannot be combined with `{action}`; these can: {may}");
                return Err(self.source.at(value.span().or_else(|| self.span.clone()), what));
            }
        }
        Ok(())
    }

    fn wrong(&self, name: &str, is: &str) -> ScenarioError {
        let span = self.table.get(name).and_then(Value::span).or_else(|| self.span.clone());
        self.source.at(span, format!("`{name}` is {is}"))
    }

    fn text(&self, name: &str) -> Result<String, ScenarioError> {
        let text = self.table.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or_else(|| self.wrong(name, "a text, and it is required"))
    }

    fn text_or(&self, name: &str, otherwise: &str) -> Result<String, ScenarioError> {
        if self.table.contains_key(name) { self.text(name) } else { Ok(otherwise.to_owned()) }
    }

    fn number(&self, name: &str) -> Result<u64, ScenarioError> {
        let number =
            self.table.get(name).and_then(Value::as_integer).and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| self.wrong(name, "a whole number, and it is required"))
    }

    fn number_or(&self, name: &str, otherwise: u64) -> Result<u64, ScenarioError> {
        if self.table.contains_key(name) { self.number(name) } else { Ok(otherwise) }
    }

    fn seconds(&self, name: &str) -> Result<Duration, ScenarioError> {
        let seconds = self.table.get(name).and_then(|value| {
            let whole = value.as_integer().map(|whole| whole as f64);
            Duration::try_from_secs_f64(value.as_float().or(whole)?).ok()
        });
        seconds.ok_or_else(|| self.wrong(name, "a number of seconds, such as 0.5"))
    }

    fn flag(&self, name: &str) -> Result<bool, ScenarioError> {
        match self.table.get(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name, "`true` or `false`")),
        }
    }

    fn side_taken(&self) -> Result<Take, ScenarioError> {
        match self.text_or("take", "ours")?.as_str() {
            "ours" => Ok(Take::Ours),
            "theirs" => Ok(Take::Theirs),
            _ => Err(self.wrong("take", "\"ours\" or \"theirs\"")),
        }
    }

    fn files(&self) -> Result<Vec<(String, String)>, ScenarioError> {
        let Some(value) = self.table.get("files") else { return Ok(Vec::new()) };
        let wrong = || self.wrong("files", "a table of paths and their texts: { \"a.txt\" = \"both\\n\" }");
        let files = value.as_inline_table().ok_or_else(wrong)?;
        files
            .iter()
            .map(|(path, text)| Ok((path.to_owned(), text.as_str().ok_or_else(wrong)?.to_owned())))
            .collect()
    }

    fn hex(&self, name: &str) -> Result<Vec<u8>, ScenarioError> {
        let text: Vec<char> = self.text(name)?.chars().filter(|letter| !letter.is_whitespace()).collect();
        let wrong = || self.wrong(name, "bytes in hexadecimal, such as \"1b 5b 32 4a\"");
        let pair = |pair: &[char]| match pair {
            [high, low] => Some((high.to_digit(16)? << 4 | low.to_digit(16)?) as u8),
            _ => None,
        };
        text.chunks(2).map(pair).collect::<Option<Vec<u8>>>().ok_or_else(wrong)
    }
}

/// `tokens = [in, out]` and `cost = 0.01` or `cost = "unknown"`.
fn price(
    source: &Source,
    tokens: Option<&Value>,
    cost: Option<&Value>,
    standard: Price,
) -> Result<Price, ScenarioError> {
    let mut price = standard;
    if let Some(value) = tokens {
        let number = |value: &Value| value.as_integer().and_then(|number| u64::try_from(number).ok());
        let pair: Option<Vec<u64>> = value.as_array().and_then(|list| list.iter().map(number).collect());
        let Some([input, output]) = pair.as_deref() else {
            return Err(source.at(value.span(), "`tokens` is two whole numbers: [read, written]"));
        };
        (price.input_tokens, price.output_tokens) = (*input, *output);
    }
    if let Some(value) = cost {
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        price.cost_usd = match number {
            Some(number) if number.is_finite() && number >= 0.0 => Some(number),
            None if value.as_str() == Some("unknown") => None,
            _ => return Err(source.at(value.span(), "`cost` is dollars, such as 0.01, or \"unknown\"")),
        };
    }
    Ok(price)
}
