//! Reads the file by the table: checks every value, and reports all errors with their positions.

use super::keys::{Key, Kind, NOT_YET, SECTIONS, Section, quoted};
use super::nearest::nearest;
use super::{Problem, TIME_MAX};
use kernel::config::Micros;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;
use toml_edit::{Document, Item, TableLike};

/// The most money that a budget may name; more is a slip of the finger.
const DOLLARS_MAX: f64 = 1_000_000.0;
/// Entries of one list.
const LIST_MAX: usize = 1_000;

/// The largest amount of data that can be meant.
const SIZE_MAX: f64 = 1e18;

/// A value of the kind that its key has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    Number(u64),
    Money(Micros),
    Time(Duration),
    List(Vec<String>),
}

/// What one table of the file says: only keys of its section, each of its kind.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    section: &'static Section,
    values: BTreeMap<&'static str, (Value, Range<usize>)>,
    /// Keys that are in the file with a value that is a problem already.
    misread: BTreeSet<&'static str>,
    /// Where the table itself stands.
    span: Range<usize>,
}

/// The whole file, table by table; the name is empty where the user chooses none.
#[derive(Debug, Default)]
pub(super) struct Values {
    scopes: BTreeMap<(&'static str, String), Scope>,
    pub problems: Vec<(Range<usize>, String, String)>,
}

impl Values {
    /// Reads all that can be read; what cannot is among the problems.
    pub fn read(text: &str) -> Values {
        let mut values = Values::default();
        match Document::parse(text) {
            Ok(document) => values.tables(document.as_table()),
            Err(error) => {
                let message = error.message().lines().collect::<Vec<_>>().join(", ");
                let hint = "the file is not TOML as it stands".to_owned();
                values.problems.push((error.span().unwrap_or(0..0), message, hint));
            }
        }
        values
    }

    /// The table of a section without names, empty where the file has none.
    pub fn scope(&self, section: &'static str) -> Scope {
        self.named(section, "")
    }

    /// The table of that name in a section with names.
    pub fn named(&self, section: &'static str, name: &str) -> Scope {
        self.scopes.get(&(section, name.to_owned())).cloned().unwrap_or_else(|| Scope::new(section, 0..0))
    }

    /// The names that the user chose in this section.
    pub fn names(&self, section: &'static str) -> Vec<String> {
        self.scopes.keys().filter(|(of, _)| *of == section).map(|(_, name)| name.clone()).collect()
    }

    /// Says what is wrong at a place that was read without a problem of its own.
    pub fn problem(&mut self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push((span, message.into(), hint.into()));
    }

    /// The problems with line and column, in the order of the file.
    pub fn problems(mut self, text: &str) -> Vec<Problem> {
        self.problems.sort_by_key(|(span, ..)| span.start);
        self.problems
            .into_iter()
            .map(|(span, message, hint)| {
                let before = text.get(..span.start).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
                Problem { line, column, message, hint }
            })
            .collect()
    }

    fn tables(&mut self, root: &dyn TableLike) {
        for (name, item) in root.iter() {
            let span = key_span(root, name);
            let Some(section) = SECTIONS.iter().find(|section| section.head() == name) else {
                let hint = unknown_table(name);
                self.problem(span, format!("unknown key `{name}`"), hint);
                continue;
            };
            let Some(table) = item.as_table_like() else {
                let header = section.path.replace('*', "NAME");
                self.problem(
                    span,
                    format!("`{name}` is a table"),
                    format!("write `[{header}]` and its keys below it"),
                );
                continue;
            };
            if !section.is_named() {
                self.table(section, "", &mut Vec::new(), table, &span);
                continue;
            }
            for (name, item) in table.iter() {
                let span = key_span(table, name);
                match (machines::names::check(name), item.as_table_like()) {
                    (Err(bad), _) => self.problem(span, bad.to_string(), "choose another name"),
                    (Ok(()), Some(inner)) => self.table(section, name, &mut Vec::new(), inner, &span),
                    (Ok(()), None) => {
                        let head = section.head();
                        let message = format!("`{head}.{name}` is a table");
                        self.problem(span, message, format!("write `[{head}.NAME]` and its keys below it"));
                    }
                }
            }
        }
    }

    fn table(
        &mut self,
        section: &'static Section,
        name: &str,
        inside: &mut Vec<String>,
        table: &dyn TableLike,
        span: &Range<usize>,
    ) {
        let slot = (section.path, name.to_owned());
        self.scopes.entry(slot.clone()).or_insert_with(|| Scope::new(section.path, span.clone()));
        for (last, item) in table.iter() {
            let span = key_span(table, last);
            inside.push(last.to_owned());
            let path = inside.join(".");
            let known = section.keys.iter().find(|key| key.path == path);
            let is_above = section
                .keys
                .iter()
                .any(|key| key.path.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('.')));
            match (known, item.as_table_like()) {
                (Some(key), _) => match value(key.kind, item) {
                    Ok(value) => {
                        let span = item.span().unwrap_or(span);
                        if let Some(scope) = self.scopes.get_mut(&slot) {
                            scope.values.insert(key.path, (value, span));
                        }
                    }
                    Err(wrong) => {
                        let span = item.span().unwrap_or(span);
                        if let Some(scope) = self.scopes.get_mut(&slot) {
                            scope.misread.insert(key.path);
                        }
                        let path = full(section, name, &path);
                        match not_yet(key, item) {
                            Some((word, instead)) => {
                                self.problem(span, format!("`{path}`: there is no `{word}` yet"), instead);
                            }
                            None => self.problem(span, format!("`{path}` {wrong}"), key.about),
                        }
                    }
                },
                (None, Some(inner)) if is_above => self.table(section, name, inside, inner, &span),
                (None, _) => {
                    let message = format!("unknown key `{}`", full(section, name, &path));
                    let hint = unknown_key(section, name, &path);
                    self.problem(span, message, hint);
                }
            }
            inside.pop();
        }
    }
}

impl Scope {
    fn new(path: &'static str, span: Range<usize>) -> Scope {
        let section = SECTIONS.iter().find(|section| section.path == path).expect("a section of the table");
        Scope { section, values: BTreeMap::new(), misread: BTreeSet::new(), span }
    }

    /// Where the value stands, or its table where it is absent.
    pub fn span(&self, key: &str) -> Range<usize> {
        self.values.get(key).map_or(self.span.clone(), |(_, span)| span.clone())
    }

    /// Where the value stands; nothing where the file does not say it.
    pub fn written(&self, key: &str) -> Option<Range<usize>> {
        self.values.get(key).map(|(_, span)| span.clone())
    }

    /// Whether the value is a problem of its own, so that what follows from its absence need not be told too.
    pub fn is_misread(&self, key: &str) -> bool {
        self.misread.contains(key)
    }

    /// The value, or the default that the table of keys names.
    fn get(&self, path: &'static str) -> Option<Value> {
        let key = self.section.keys.iter().find(|key| key.path == path);
        let key = key.unwrap_or_else(|| panic!("`{}.{path}` is not in the table of keys", self.section.path));
        self.values.get(path).map(|(value, _)| value.clone()).or_else(|| default(key))
    }

    pub fn text(&self, key: &'static str) -> Option<String> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            other => panic!("`{key}` is read as a text and is {other:?}"),
        }
    }

    pub fn flag(&self, key: &'static str) -> Option<bool> {
        match self.get(key)? {
            Value::Flag(flag) => Some(flag),
            other => panic!("`{key}` is read as a flag and is {other:?}"),
        }
    }

    pub fn number<T: TryFrom<u64>>(&self, key: &'static str) -> Option<T> {
        match self.get(key)? {
            // The range of the key is within what its type holds; a test reads every end of every range.
            Value::Number(number) => T::try_from(number).ok(),
            other => panic!("`{key}` is read as a number and is {other:?}"),
        }
    }

    pub fn money(&self, key: &'static str) -> Option<Micros> {
        match self.get(key)? {
            Value::Money(money) => Some(money),
            other => panic!("`{key}` is read as money and is {other:?}"),
        }
    }

    pub fn time(&self, key: &'static str) -> Duration {
        match self.get(key) {
            Some(Value::Time(time)) => time,
            other => panic!("`{key}` is read as a time and is {other:?}"),
        }
    }

    pub fn list(&self, key: &'static str) -> Option<Vec<String>> {
        match self.get(key)? {
            Value::List(list) => Some(list),
            other => panic!("`{key}` is read as a list and is {other:?}"),
        }
    }

    /// The reader has checked that they are numbers of ports.
    pub fn ports(&self, key: &'static str) -> Vec<u16> {
        self.list(key).unwrap_or_default().iter().filter_map(|port| port.parse().ok()).collect()
    }

    /// A word of a closed set; the reader has checked that it is one.
    pub fn word<T: machines::Wire>(&self, key: &'static str) -> T {
        let word = self.text(key).expect("a choice has a default");
        T::read(&word).unwrap_or_else(|| panic!("`{key}` has a word that its type does not know: {word}"))
    }
}

/// The default of a key, read as if it stood in the file.
pub(super) fn default(key: &Key) -> Option<Value> {
    let default = key.default();
    if default.is_empty() {
        return None;
    }
    let text = format!("it = {default}");
    let document = Document::parse(text).expect("a default is TOML");
    let item = document.get("it").expect("it was written above");
    Some(value(key.kind, item).unwrap_or_else(|wrong| panic!("the default of `{}` {wrong}", key.path)))
}

/// The word that stands there and is kept for later, with what there is instead.
fn not_yet(key: &Key, item: &Item) -> Option<(&'static str, &'static str)> {
    let found = NOT_YET.iter().find(|(path, word, _)| *path == key.path && item.as_str() == Some(*word));
    found.map(|(_, word, instead)| (*word, *instead))
}

fn value(kind: Kind, item: &Item) -> Result<Value, String> {
    let wrong = || format!("must be {}", kind.expected());
    let text = || item.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or_else(wrong);
    match kind {
        Kind::Text | Kind::Shell => text().map(Value::Text),
        Kind::Folder => text().and_then(|text| folder(&text).map(|()| Value::Text(text))),
        Kind::Name => {
            let text = text()?;
            machines::names::check(&text).map_err(|bad| format!("names {bad}"))?;
            Ok(Value::Text(text))
        }
        Kind::Identity => {
            let text = text()?;
            if super::Author::read(&text).is_none() {
                return Err(wrong());
            }
            Ok(Value::Text(text))
        }
        Kind::Branch => text().and_then(|text| branch(&text).map(|()| Value::Text(text))),
        Kind::Path => text().and_then(|text| inner_path(&text).map(|()| Value::Text(text))),
        Kind::Health => {
            let text = text()?;
            if text.starts_with("tcp ") && super::Health::read(&text).is_none() {
                return Err("must name host and port, such as `tcp 127.0.0.1:5432`".to_owned());
            }
            Ok(Value::Text(text))
        }
        Kind::Choice(words) => {
            let text = text()?;
            let words = words();
            if words.contains(&text.as_str()) {
                return Ok(Value::Text(text));
            }
            let meant = nearest(&text, words.iter().copied());
            let meant = meant.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
            Err(format!("must be one of {}{meant}", quoted(&words)))
        }
        Kind::Flag => item.as_bool().map(Value::Flag).ok_or_else(wrong),
        Kind::Number(min, max) => {
            let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
            number.filter(|number| (min..=max).contains(number)).map(Value::Number).ok_or_else(wrong)
        }
        Kind::Money => {
            let dollars = item.as_float().or_else(|| item.as_integer().map(|whole| whole as f64));
            match dollars.ok_or_else(wrong)? {
                dollars if (0.0..=DOLLARS_MAX).contains(&dollars) => {
                    Ok(Value::Money((dollars * 1_000_000.0).round() as Micros))
                }
                _ => Err(format!("must be from 0 to {DOLLARS_MAX} dollars")),
            }
        }
        Kind::Time => {
            text().map_err(|_| wrong()).and_then(|text| time(&text).map(Value::Time).ok_or_else(wrong))
        }
        Kind::Size => {
            text().map_err(|_| wrong()).and_then(|text| size(&text).map(Value::Number).ok_or_else(wrong))
        }
        Kind::Words => match list(item, kind, |_| Ok(()))? {
            Value::List(words) if words.is_empty() => Err(wrong()),
            words => Ok(words),
        },
        Kind::Texts => list(item, kind, |_| Ok(())),
        Kind::Names => list(item, kind, |name| machines::names::check(name).map_err(|bad| bad.to_string())),
        Kind::Variable => {
            let text = text()?;
            variable(&text)?;
            Ok(Value::Text(text))
        }
        Kind::Url => text().and_then(|text| address(&text).map(|()| Value::Text(text))),
        Kind::Variables => list(item, kind, variable),
        Kind::Tools => list(item, kind, tool),
        Kind::Globs => list(item, kind, |glob| inner_path(glob).map_err(|wrong| format!("`{glob}` {wrong}"))),
        Kind::Places => list(item, kind, absolute_path),
        Kind::Ports => {
            let array = item.as_array().filter(|array| array.len() <= LIST_MAX).ok_or_else(wrong)?;
            let port = |entry: &toml_edit::Value| {
                let port = entry.as_integer().and_then(|port| u16::try_from(port).ok());
                let port =
                    port.filter(|port| *port >= super::keys::PORT_MIN && *port != super::keys::SERVER_PORT);
                port.map(|port| port.to_string()).ok_or_else(wrong)
            };
            Ok(Value::List(array.iter().map(port).collect::<Result<_, _>>()?))
        }
    }
}

/// A folder that is named, with no other variable in it than the project's name.
fn folder(text: &str) -> Result<(), String> {
    if text.contains('\0') || text.replace("{project}", "").contains(['{', '}']) {
        return Err("may hold no variable but `{project}`".to_owned());
    }
    if text.starts_with('~') && !text.starts_with("~/") {
        return Err("must begin with `~/` where it is in your home directory".to_owned());
    }
    Ok(())
}

fn list(item: &Item, kind: Kind, check: impl Fn(&str) -> Result<(), String>) -> Result<Value, String> {
    let wrong = || format!("must be {}", kind.expected());
    let array = item.as_array().ok_or_else(wrong)?;
    if array.len() > LIST_MAX {
        return Err(format!("has more than {LIST_MAX} entries"));
    }
    let mut texts = Vec::new();
    for entry in array {
        let text =
            entry.as_str().filter(|text| !text.is_empty() && !text.contains('\0')).ok_or_else(wrong)?;
        check(text).map_err(|why| format!("must be {}: {why}", kind.expected()))?;
        texts.push(text.to_owned());
    }
    Ok(Value::List(texts))
}

/// What git takes as a branch, as far as a text alone can tell.
fn branch(name: &str) -> Result<(), String> {
    let bad = name.starts_with('-')
        || name.starts_with('/')
        || name.ends_with('/')
        || name.ends_with('.')
        || name.contains("..")
        || name.contains("//")
        || name.contains("@{")
        || name == "@"
        || name.split('/').any(|part| part.starts_with('.') || part.ends_with(".lock"))
        || name.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c));
    if bad {
        Err(format!("must be the name of a branch; git does not accept `{}`", name.escape_debug()))
    } else {
        Ok(())
    }
}

fn inner_path(path: &str) -> Result<(), String> {
    let outside = path.starts_with('/')
        || path.starts_with('~')
        || path.contains('\0')
        || path.split('/').any(|part| part == "..");
    if outside {
        Err("must stay inside the project: no leading `/` or `~`, and no `..`".to_owned())
    } else {
        Ok(())
    }
}

fn absolute_path(path: &str) -> Result<(), String> {
    let rooted = path.starts_with('/') || path.starts_with("~/");
    match rooted && path.split('/').all(|part| part != "..") {
        true => Ok(()),
        false => Err(format!("`{path}` is not one")),
    }
}

/// What is sent there holds what agents want to do: nobody on the way may read it.
fn address(text: &str) -> Result<(), String> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let odd = text.chars().any(|c| c.is_control() || c.is_whitespace()) || text.contains('#');
    if odd || authority.is_empty() || !matches!(scheme, "http" | "https") {
        return Err("must be an address such as `https://hooks.example.com/adjutant`".to_owned());
    }
    if authority.contains('@') {
        return Err(
            "must contain no user and no password; `secret_env` names a variable with a secret".to_owned()
        );
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let here = host.parse::<std::net::IpAddr>().map_or(host == "localhost", |ip| ip.is_loopback());
    match scheme == "https" || here {
        true => Ok(()),
        false => Err("must be https: only on this machine can nobody else read it".to_owned()),
    }
}

fn variable(name: &str) -> Result<(), String> {
    let well_formed = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    match (well_formed, name.starts_with("ADJ_")) {
        (true, false) => Ok(()),
        (false, _) => Err(format!("`{name}` is not the name of a variable; its value does not belong here")),
        (_, true) => Err(format!("`{name}` is Adjutant's own and is never passed on")),
    }
}

/// `Bash`, or `Bash(pattern)`.
fn tool(pattern: &str) -> Result<(), String> {
    let (name, rest) = pattern.split_at(pattern.find('(').unwrap_or(pattern.len()));
    let named = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == ')' || c == '*');
    match named && (rest.is_empty() || rest.ends_with(')')) {
        true => Ok(()),
        false => Err(format!("`{pattern}` is not one; write `Tool` or `Tool(pattern)`")),
    }
}

/// Numbers, each with its unit. Nothing at all is refused: a limit of no time ends everything at once.
pub fn time(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = match rest.as_bytes()[digits] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        seconds = number.checked_mul(unit).and_then(|more| seconds.checked_add(more))?;
        rest = &rest[digits + 1..];
    }
    let time = Duration::from_secs(seconds);
    (seconds > 0 && time <= TIME_MAX).then_some(time)
}

/// `10 GB`, `1.5 GiB`, `500MB`, in bytes.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = (text[..split].parse::<f64>().ok()?, text[split..].trim());
    let prefix = unit.strip_suffix('B')?;
    let (base, prefix) = match prefix.strip_suffix('i') {
        Some(prefix) if !prefix.is_empty() => (1024.0_f64, prefix),
        _ => (1000.0, prefix),
    };
    let power = match prefix {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let bytes = number * base.powi(power);
    (0.0..=SIZE_MAX).contains(&bytes).then_some(bytes as u64)
}

fn key_span(table: &dyn TableLike, name: &str) -> Range<usize> {
    table.key(name).and_then(|key| key.span()).unwrap_or(0..0)
}

fn full(section: &Section, name: &str, path: &str) -> String {
    match section.is_named() {
        true => format!("{}.{name}.{path}", section.head()),
        false => format!("{}.{path}", section.path),
    }
}

fn unknown_table(name: &str) -> String {
    let heads: Vec<_> = SECTIONS.iter().map(Section::head).collect();
    if let Some(section) = holder(name) {
        return format!("it belongs to `[{}]`", section.path.replace('*', "NAME"));
    }
    match nearest(name, heads.iter().copied()) {
        Some(head) => format!("did you mean `{head}`?"),
        None => format!("there are the tables {}", quoted(&heads)),
    }
}

fn unknown_key(section: &Section, name: &str, path: &str) -> String {
    let known: Vec<_> = section.keys.iter().map(|key| key.path).collect();
    if let Some(near) = nearest(path, known.iter().copied()) {
        return format!("did you mean `{}`?", full(section, name, near));
    }
    if let Some(holder) = holder(path) {
        return format!("it belongs to `[{}]`", holder.path.replace('*', "NAME"));
    }
    format!("`[{}]` has the keys {}", section.path.replace('*', "NAME"), quoted(&known))
}

/// The section that has a key of exactly this name, where it is only one.
fn holder(path: &str) -> Option<&'static Section> {
    let mut holders = SECTIONS.iter().filter(|section| section.keys.iter().any(|key| key.path == path));
    holders.next().filter(|_| holders.next().is_none())
}
