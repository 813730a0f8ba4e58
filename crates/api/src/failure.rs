//! How a command ends when it does not simply end well: what was wrong, what to do next, and the exit code.

use crate::format::json as json_text;
use crate::types::problem::{Document, FieldError};
use crate::types::waiting::Offered;
use ::fleet::command_line::command;
use base::visible::visible;
use machines::Refusal;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Where to begin, and the exit codes: the end of `adj --help`.
pub const HELP: &str = "\
To try it: `adj demo`. In a repository: `adj init`, `adj doctor`, `adj run`.

Exit codes:
  0  success
  1  failure, or partial success
  2  invalid command line or input
  3  refused in the current state or for this caller; the message says what
     is allowed
  4  not found
  5  server or service unreachable";

/// The kinds of end that a script can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    Usage,
    Refused,
    NotFound,
    Unreachable,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::NotFound => 4,
            Exit::Unreachable => 5,
        }
    }

    /// The kind of end that a process of ours reported.
    pub fn of_code(code: i32) -> Option<Exit> {
        [Exit::Done, Exit::Failed, Exit::Usage, Exit::Refused, Exit::NotFound, Exit::Unreachable]
            .into_iter()
            .find(|exit| i32::from(exit.code()) == code)
    }

    /// The problem's name, and the HTTP status that says the same.
    fn problem(self) -> (&'static str, u16) {
        match self {
            Exit::Done => ("done", 200),
            Exit::Failed => ("failed", 500),
            Exit::Usage => ("usage", 400),
            Exit::Refused => ("refused", 409),
            Exit::NotFound => ("not-found", 404),
            Exit::Unreachable => ("unreachable", 503),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// What was wrong, where, and what to do next. The message is a lowercase fragment; the hint stands beside it.
#[derive(Debug, thiserror::Error)]
#[error("{}", document.detail)]
pub struct Failure {
    exit: Exit,
    /// The message, the hint, what stands below the message line by line, and what else the answer holds.
    document: Box<Document>,
    /// The reader of our output has gone. Nobody is there to be told.
    unheard: bool,
    /// It was said already, in the document that was printed.
    told: bool,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        let (name, status) = exit.problem();
        let document = Box::new(Document::named(name, status, message.into()));
        Self { exit, document, unheard: false, told: false }
    }

    /// Only the code to end with: what was wrong has been printed.
    pub fn told(exit: Exit) -> Self {
        Self { told: true, ..Self::new(exit, String::new()) }
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    /// What a request was answered with, as it is; the exit code says its class.
    pub fn of_problem(status: u16, document: Value) -> Self {
        let exit = match status {
            400 | 413 | 415 => Exit::Usage,
            404 => Exit::NotFound,
            401 | 403 | 409 | 422 => Exit::Refused,
            503 => Exit::Unreachable,
            _ => Exit::Failed,
        };
        let Ok(document) = serde_json::from_value::<Document>(document.clone()) else {
            return Self::new(exit, document.to_string());
        };
        // A rule said no to what the input asks for, or the input was never right.
        let exit = if document.code.as_deref() == Some("INVALID_FIELD") { Exit::Usage } else { exit };
        let errors = document.errors.iter().flatten();
        let options: Vec<String> = errors.filter_map(|error| option_of(&error.field)).collect();
        let see = (!options.is_empty()).then(|| format!("see {}", options.join(", ")));
        let hint = hint(document.hint.as_deref(), &document.next).or(see);
        Self { exit, document: Box::new(Document { hint, ..document }), unheard: false, told: false }
    }

    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// All that is said of it.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Which rule or fault it is, where the answer says so.
    pub fn code(&self) -> Option<&str> {
        self.document.code.as_deref()
    }

    /// With what came to nothing by it, said first.
    pub fn within(mut self, what: &str) -> Self {
        self.document.detail = format!("{what}: {}", self.document.detail);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.document.hint = Some(hint.into());
        self
    }

    /// Each of them is told in a line of its own.
    pub fn lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.document.problems.extend(lines);
        self
    }

    /// Tells it, as text on stderr or as one document on stdout, and gives the code to end with.
    pub fn report(&self, json: bool, quiet: bool, stdout: &mut dyn Write, stderr: &mut dyn Write) -> Exit {
        if self.unheard {
            return Exit::Done;
        }
        if self.told {
            return self.exit;
        }
        // Where neither can be written there is nobody left to tell; the code still says it.
        let _ =
            if json { writeln!(stdout, "{}", json_text(&self.document)) } else { self.tell(quiet, stderr) };
        let _ = stdout.flush();
        self.exit
    }

    fn tell(&self, quiet: bool, stderr: &mut dyn Write) -> io::Result<()> {
        let Document { detail, problems, hint, .. } = &*self.document;
        writeln!(stderr, "error: {}", visible(detail))?;
        for line in problems {
            writeln!(stderr, "  {}", visible(line))?;
        }
        match hint {
            Some(hint) if !quiet => writeln!(stderr, "hint: {}", visible(hint)),
            _ => Ok(()),
        }
    }
}

/// A hint: what to do in words, and the commands that do it.
fn hint(words: Option<&str>, next: &[Offered]) -> Option<String> {
    let commands = next.iter().map(|Offered { choice, text }| format!("`{}` {text}", command(choice)));
    let parts: Vec<String> = words.map(str::to_owned).into_iter().chain(commands).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The option that a field of a request is given by.
fn option_of(field: &str) -> Option<String> {
    let option = match field {
        "id" => "--id ID",
        "type" => "--type TYPE",
        "priority" => "--priority 0-4",
        "dependsOn" => "--depends-on ID",
        "reopens" => "--reopens ID",
        "agent" => "--agent AGENT",
        "to" => "--to STATUS",
        "assigneeIds" => "--assignee AGENT",
        "workPlan" => "--plan BULLET, 3 to 6 times",
        "feedback" => "--feedback TEXT",
        "reason" => "--reason REASON",
        "cause" => "--cause CAUSE",
        "decision" => "--decision TEXT",
        "clarification" => "--clarification TEXT",
        "approval" => "--note TEXT",
        "deliverable" | "reviewChecklist" => "--payload JSON",
        _ => return None,
    };
    Some(format!("`{option}`"))
}

/// The machine's answer, with what it would take instead.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (code, (name, _)) = (refusal.code, Exit::Refused.problem());
        let document = Document {
            code: Some(code.to_string()),
            errors: Some(refusal.errors.iter().cloned().map(FieldError::from).collect()),
            allowed: Some(refusal.allowed.iter().map(|word| (*word).to_owned()).collect()),
            ..Document::named(name, code.status(), refusal.to_string())
        };
        Self { document: Box::new(document), ..Self::new(Exit::Refused, String::new()) }
    }
}

impl From<crate::Problem> for Failure {
    fn from(problem: crate::Problem) -> Self {
        Self::of_problem(problem.status, crate::operation::document(&problem.document()))
    }
}

/// The other way round: for a server that does what a command does.
impl From<Failure> for crate::Problem {
    fn from(failure: Failure) -> Self {
        let Document { code, detail, hint, problems, .. } = *failure.document;
        let (name, status) = failure.exit.problem();
        let code = code.unwrap_or_else(|| name.to_uppercase().replace('-', "_"));
        let detail = [vec![detail], problems].concat().join("; ");
        let problem = crate::Problem::new(status, &code, detail);
        match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// Reading stdin or writing stdout went wrong. Nothing else that a command does fails as a bare I/O error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let unheard = error.kind() == io::ErrorKind::BrokenPipe;
        Self { unheard, ..Self::new(Exit::Failed, format!("standard input or output: {error}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machines::{Code, FieldError};
    use serde_json::json;

    fn told(failure: &Failure, json: bool, quiet: bool) -> (String, String, u8) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let exit = failure.report(json, quiet, &mut stdout, &mut stderr);
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), exit.code())
    }

    fn refusal() -> Refusal {
        Refusal {
            machine: "task",
            state: "ASSIGNED",
            event: "move IN_PROGRESS",
            code: Code::MissingField,
            message: "something that the move requires is missing".into(),
            errors: vec![FieldError::new("workPlan", "Work plan required for IN_PROGRESS")],
            allowed: vec!["INBOX"],
        }
    }

    #[test]
    fn a_refusal_is_told_with_the_machines_answer() {
        let expected = "error: task.ASSIGNED does not take `move IN_PROGRESS`: something that the move requires is missing; \
                        workPlan: Work plan required for IN_PROGRESS (allowed: INBOX)\n";
        assert_eq!(told(&refusal().into(), false, false), (String::new(), expected.to_owned(), 3));
    }

    #[test]
    fn a_refusal_is_a_problem_document_where_json_was_asked_for() {
        let (stdout, stderr, exit) = told(&refusal().into(), true, false);
        let problem: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((stderr.as_str(), exit), ("", 3));
        assert_eq!((&problem["status"], &problem["code"]), (&json!(422), &json!("MISSING_FIELD")));
        assert_eq!(problem["allowed"], json!(["INBOX"]));
    }

    #[test]
    fn a_hint_is_left_out_where_quiet_was_asked_for() {
        let failure = Failure::not_found("there is no task t-1").hint("`adj task ls` lists them");
        assert_eq!(
            told(&failure, false, false).1,
            "error: there is no task t-1\nhint: `adj task ls` lists them\n"
        );
        assert_eq!(told(&failure, false, true).1, "error: there is no task t-1\n");
    }

    #[test]
    fn a_reader_who_has_gone_is_not_told_anything() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(told(&failure, false, false), (String::new(), String::new(), 0));
    }
}
