//! A machine as text: a table to read, two drawings, and JSON.

use super::{Doc, RowDoc, StateDoc};
use crate::machine::Meta;
use std::fmt::Write;

crate::wire_enum! {
    /// How a machine is printed.
    pub enum Format {
        /// States and rows in columns, for reading.
        Table = "table",
        /// A Mermaid `stateDiagram-v2`, for Markdown.
        Mermaid = "mermaid",
        /// A Graphviz digraph.
        Dot = "dot",
        /// One JSON document, for programs.
        Json = "json",
    }
}

/// The width that a table keeps to.
pub const WIDTH: usize = 100;

impl Doc {
    pub fn print(&self, format: Format) -> String {
        match format {
            Format::Table => self.table(),
            Format::Mermaid => self.mermaid(),
            Format::Dot => self.dot(),
            Format::Json => self.json(),
        }
    }

    pub fn json(&self) -> String {
        // Names and flags only: there is nothing in a table that JSON cannot say.
        let text = serde_json::to_string_pretty(self);
        text.unwrap_or_else(|error| panic!("the table of {} is not JSON: {error}", self.machine)) + "\n"
    }

    pub fn table(&self) -> String {
        let mut text = format!("{}, one per {}: {}\n\n", self.machine, self.instance, self.answers);
        let states = self.states.iter().map(|state| {
            let mark = if state.name == self.initial { "→" } else { "" };
            let name = if state.is_final { format!("{} (final)", state.name) } else { state.name.to_owned() };
            [mark.to_owned(), name, facts(state)]
        });
        text += &columns(&["", "state", "facts"], states.collect(), &[1, 24, 70]);
        text.push('\n');
        let rows = self.creation.iter().map(|row| cells("–", row));
        let rows = rows.chain(self.rows.iter().map(|row| cells(row.from, row)));
        text += &columns(&["from", "event", "if", "to", "then"], rows.collect(), &[14, 20, 22, 14, 0]);
        text
    }

    pub fn mermaid(&self) -> String {
        let mut text = String::from("stateDiagram-v2\n");
        for row in &self.creation {
            let _ = writeln!(text, "    [*] --> {}: {}", row.to, row.event);
        }
        if self.creation.is_empty() {
            let _ = writeln!(text, "    [*] --> {}", self.initial);
        }
        for row in &self.rows {
            let _ = writeln!(text, "    {} --> {}: {}", row.from, row.to, label(row));
        }
        for state in self.states.iter().filter(|state| state.is_final) {
            let _ = writeln!(text, "    {} --> [*]", state.name);
        }
        text
    }

    pub fn dot(&self) -> String {
        let mut text =
            format!("digraph {} {{\n    rankdir=LR;\n    node [shape=box, style=rounded];\n", self.machine);
        let _ = writeln!(text, "    \"\" [shape=point];\n    \"\" -> \"{}\";", self.initial);
        for state in &self.states {
            let shape = if state.is_final { " [peripheries=2]" } else { "" };
            let _ = writeln!(text, "    \"{}\"{shape};", state.name);
        }
        for row in &self.rows {
            let _ = writeln!(text, "    \"{}\" -> \"{}\" [label=\"{}\"];", row.from, row.to, label(row));
        }
        text += "}\n";
        text
    }
}

fn cells(from: &str, row: &RowDoc) -> [String; 5] {
    let by = (!row.conditions.is_empty()).then(|| format!("by {}", row.conditions.join(", ")));
    let actions = (!row.actions.is_empty()).then(|| row.actions.join(", "));
    let then = [actions, by].into_iter().flatten().collect::<Vec<_>>().join("; ");
    [from.to_owned(), row.event.to_owned(), row.guards.join(", "), row.to.to_owned(), then]
}

/// What holds of a state: the facts that are true, and those that are a word.
fn facts(state: &StateDoc) -> String {
    let shown = state.meta.iter().filter_map(|(name, fact)| match fact {
        Meta::Is(true) => Some((*name).to_owned()),
        Meta::Text(text) if !text.is_empty() => Some(format!("{name} {text}")),
        Meta::Is(false) | Meta::Text(_) => None,
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// An event and its guards, as an arrow's label. Names hold nothing that either drawing would take for its own.
fn label(row: &RowDoc) -> String {
    if row.guards.is_empty() {
        row.event.to_owned()
    } else {
        format!("{} [{}]", row.event, row.guards.join(", "))
    }
}

/// Aligned columns. A column is as wide as its longest cell, but no wider than its limit; the last one has what
/// is left of the line. What does not fit goes on below, in its own column.
fn columns<const N: usize>(head: &[&str; N], rows: Vec<[String; N]>, limits: &[usize; N]) -> String {
    let head = head.map(str::to_owned);
    let mut widths = [0; N];
    for cells in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (width, limit) in widths.iter_mut().zip(limits).take(N - 1) {
        *width = (*width).min(*limit);
    }
    let taken: usize = widths[..N - 1].iter().map(|width| width + 2).sum();
    widths[N - 1] = widths[N - 1].min(WIDTH.saturating_sub(taken));
    let mut text = String::new();
    for cells in [&head].into_iter().chain(&rows) {
        let wrapped: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(cell, width)| wrap(cell, width)).collect();
        for line in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = wrapped.iter().zip(widths).map(|(lines, width)| {
                let cell = lines.get(line).map_or("", String::as_str);
                format!("{cell:width$}")
            });
            text += cells.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
    }
    text
}

/// Lines of at most `width` characters, broken at spaces; a word that is longer stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            if line > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}
