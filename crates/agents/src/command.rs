//! `command`: any program. The prompt is its standard input, and its whole output is its message.
//!
//! Such a program has no session, asks nothing, and reports no price, so its price is unknown.

use super::{
    Adapter, AgentError, Ended, Exit, Input, Launch, Notices, Order, Reader, Said, Stdin, TEXT_BYTES_MAX,
};
use kernel::command::{StepFailure, Usage};
use kernel::decisions::{Scan, Word};

/// As much of a line that is too long as says how it begins.
const CUT_LINE_BYTES: usize = 100;

pub struct Command;

impl Adapter for Command {
    fn name(&self) -> &'static str {
        "command"
    }

    fn resumable(&self) -> bool {
        false
    }

    fn launch(&self, order: &Order) -> Result<Launch, AgentError> {
        if order.command.is_empty() {
            return Err(AgentError::NoCommand { adapter: self.name() });
        }
        super::check_session(&order.session)?;
        let prompt_file = order.private.join(format!("prompt-{}.md", order.session));
        let named = super::path_text(self.name(), &prompt_file)?;
        let mut files = Vec::new();
        let mut argv = Vec::with_capacity(order.command.len());
        for argument in &order.command {
            if argument.contains("{prompt_file}") && files.is_empty() {
                files.push((prompt_file.clone(), order.prompt.clone().into_bytes()));
            }
            // One pass over the settings' own text: what is put in is not looked at again.
            argv.push(filled(argument, |name| match name {
                "session" => Some(order.session.as_str()),
                "model" => Some(order.model.as_deref().unwrap_or_default()),
                "prompt_file" => Some(&named),
                _ => None,
            }));
        }
        Ok(Launch {
            argv,
            env: vec![("TMPDIR".to_owned(), super::path_text(self.name(), &order.temp)?)],
            files,
            directories: Vec::new(),
            stdin: Stdin::Whole(prompt(order)),
            swept: None,
            protocol: "",
        })
    }

    fn reader(&self, order: &Order) -> Box<dyn Reader> {
        let program = order.command.first().cloned().unwrap_or_default();
        Box::new(Plain { program, ..Plain::default() })
    }

    fn sees_its_home(&self) -> bool {
        true
    }
}

/// There is no other way to tell such a program what is added to its orders.
fn prompt(order: &Order) -> String {
    match &order.system {
        Some(system) => format!("{system}\n\n{}", order.prompt),
        None => order.prompt.clone(),
    }
}

/// `text` with `{name}` replaced where `value` knows the name; everything else stays as it is.
pub(super) fn filled<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let named = rest.find('}').and_then(|end| Some((value(&rest[1..end])?, end)));
        match named {
            Some((value, end)) => {
                out.push_str(value);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

#[derive(Default)]
struct Plain {
    program: String,
    message: Scan,
    /// The end of what was printed: what a program says last is what it came to.
    output: String,
    left_out: usize,
    errors: String,
    notices: Notices,
}

impl Plain {
    fn keep(kept: &mut String, left_out: &mut usize, line: &str) {
        kept.push_str(line);
        kept.push('\n');
        // Twice the limit before anything moves, so that each byte moves at most once.
        if kept.len() > 2 * TEXT_BYTES_MAX {
            let mut cut = kept.len() - TEXT_BYTES_MAX;
            while !kept.is_char_boundary(cut) {
                cut += 1;
            }
            *left_out += cut;
            kept.drain(..cut);
        }
    }
}

impl Reader for Plain {
    fn sent(&mut self, _: &str, _: &str) {}

    fn line(&mut self, line: &[u8], whole: bool) -> Vec<Said> {
        let text = String::from_utf8_lossy(line);
        match whole {
            true => self.message.line(&text),
            // The end of a line that was cut is not known, so no word stands alone on it.
            false => self.message.line(&format!("{}…", super::shortened(&text, CUT_LINE_BYTES))),
        }
        Self::keep(&mut self.output, &mut self.left_out, &text);
        let text = super::shortened(&text, TEXT_BYTES_MAX);
        let token = Said::Token(format!("{text}\n"));
        vec![Said::Text(text), token]
    }

    fn error_line(&mut self, line: &[u8]) -> Vec<Said> {
        let text = String::from_utf8_lossy(line);
        Self::keep(&mut self.errors, &mut 0, &text);
        self.notices.say(text).into_iter().collect()
    }

    fn end(&mut self, exit: &Exit) -> Ended {
        let started = !matches!(exit.reason, super::Reason::CouldNotStart(_));
        let usage = Usage { cost: if started { None } else { Some(0) }, ..Usage::default() };
        match crate::failure_of(exit, &format!("`{}`", self.program)) {
            Some((error, why)) => {
                // Many programs print what is wrong on standard output.
                let printed = last_lines(&self.output);
                let complained = last_lines(&self.errors);
                let both = [complained, printed].into_iter().filter(|lines| !lines.is_empty());
                let both = both.collect::<Vec<_>>().join("\n");
                Ended::Failed { error: with_lines(error, &both, why), why, usage }
            }
            None => {
                let mut output = self.output.trim().to_owned();
                if self.left_out > 0 {
                    output.insert_str(0, &format!("… {} bytes before\n", self.left_out));
                    // The fence may have opened in what was left out: its last line is still quoted.
                    if self.message.ends_in_quote() {
                        output.push_str("\n…");
                    }
                }
                Ended::Finished { done: self.message.says(Word::Done), output, usage }
            }
        }
    }

    fn answer(&mut self, _: &str, _: bool, _: &str) -> Option<Input> {
        None
    }

    fn interrupt(&mut self) -> Option<Input> {
        None
    }

    fn inject(&mut self, _: &str) -> Option<Input> {
        None
    }

    /// Nobody sees its calls: all that it does is one.
    fn is_busy(&self) -> bool {
        true
    }
}

/// An error with the last lines of what the program complained about, where it ended by itself.
pub(super) fn with_last_lines(error: String, errors: &str, why: StepFailure) -> String {
    with_lines(error, &last_lines(errors), why)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

fn with_lines(error: String, last: &str, why: StepFailure) -> String {
    if last.is_empty() || why != StepFailure::Failed {
        return error;
    }
    format!("{error}: {}", super::shortened(last, 2000))
}
