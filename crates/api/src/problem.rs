//! What a request that was not granted is answered with: problem details (RFC 9457), and what the machine said.

use super::types::problem::{Document, FieldError};
use super::types::waiting::Offered;
use kernel::Refusal;
use kernel::choice::Choice;
use log::owner::{OpenError, SubmitError};
use log::{Holder, LogError};

const NO_SPACE: &str = "NO_SPACE";
const LOG_FAILED: &str = "LOG_FAILED";

#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub status: u16,
    pub code: String,
    pub detail: String,
    pub hint: Option<String>,
    pub next: Vec<Choice>,
    /// What a rule missed or found wrong, and what it would take instead, where one said no.
    pub errors: Option<Vec<FieldError>>,
    pub allowed: Option<Vec<String>>,
    /// After so many seconds it may be asked again.
    pub retry_after: Option<u64>,
    /// What can be asked there instead.
    pub methods: Vec<&'static str>,
    /// It kept a task from being moved.
    pub of_transition: bool,
}

impl Problem {
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Problem {
        Problem {
            status,
            code: code.to_owned(),
            detail: detail.into(),
            hint: None,
            next: Vec::new(),
            errors: None,
            allowed: None,
            retry_after: None,
            methods: Vec::new(),
            of_transition: false,
        }
    }

    pub fn bad(detail: impl Into<String>) -> Problem {
        Problem::new(400, "BAD_REQUEST", detail)
    }

    /// A report that lacks something, by the field.
    pub fn missing(error: machines::machine::FieldError) -> Problem {
        Problem::new(422, "MISSING_FIELD", error.message.clone()).errors(vec![FieldError::from(error)])
    }

    pub fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(404, "NOT_FOUND", detail)
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    pub fn retry_after(self, seconds: u64) -> Problem {
        Problem { retry_after: Some(seconds), ..self }
    }

    pub fn with_status(self, status: u16, code: &str) -> Problem {
        Problem { status, code: code.to_owned(), ..self }
    }

    pub fn errors(self, errors: Vec<FieldError>) -> Problem {
        Problem { errors: Some(errors), ..self }
    }

    /// Nobody refused it: the log could not be written.
    pub fn is_of_disk(&self) -> bool {
        matches!(self.code.as_str(), NO_SPACE | LOG_FAILED)
    }

    /// The members that the task machine's clients know, whatever kept the move from being made.
    pub fn of_transition(self) -> Problem {
        Problem { of_transition: true, ..self }
    }

    /// What does not fit how things stand: the member that the code is about, or `state` if it is about none.
    fn conflict(&self) -> Option<FieldError> {
        let field = match self.code.as_str() {
            _ if self.status != 409 => return None,
            _ if self.of_transition => "status",
            "STALE_TURN" => "turn",
            "REPLY_OVER" => "reply",
            "KEY_REUSED" | "IN_FLIGHT" => "idempotencyKey",
            _ => "state",
        };
        Some(FieldError { field: field.to_owned(), message: self.detail.clone() })
    }

    pub fn document(&self) -> Document {
        let name = self.code.to_lowercase().replace('_', "-");
        let problem = Document {
            code: Some(self.code.clone()),
            hint: self.hint.clone(),
            next: self.next.iter().cloned().map(Offered::from).collect(),
            errors: match &self.errors {
                Some(errors) if !errors.is_empty() => Some(errors.clone()),
                errors => self.conflict().map(|error| vec![error]).or_else(|| errors.clone()),
            },
            ..Document::named(&name, self.status, self.detail.clone())
        };
        match self.of_transition {
            false => Document { allowed: self.allowed.clone(), ..problem },
            true => Document {
                success: Some(false),
                errors: Some(match problem.errors {
                    Some(errors) if !errors.is_empty() => errors,
                    // What is wrong is where the task stands.
                    _ => vec![FieldError { field: "status".to_owned(), message: self.detail.clone() }],
                }),
                allowed_transitions: Some(self.allowed.clone().unwrap_or_default()),
                ..problem
            },
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let Refusal { status, code, message, hint, next, errors, allowed } = refusal;
        Problem {
            hint,
            next,
            errors: Some(errors.into_iter().map(FieldError::from).collect()),
            allowed: Some(allowed),
            ..Problem::new(status, &code, message)
        }
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Problem {
        let detail = error.to_string();
        match error {
            SubmitError::Fenced { .. } => Problem::new(409, "FENCED", detail),
            SubmitError::InFlight { .. } => Problem::new(409, "IN_FLIGHT", detail)
                .hint("retry after the first request has been answered")
                .retry_after(1),
            SubmitError::Contended { .. } => {
                Problem::new(503, "CONTENDED", detail).hint("nothing was written; try again").retry_after(1)
            }
            SubmitError::Log(error) => error.into(),
            SubmitError::Broken(error) => error.into(),
            SubmitError::Stopped => Problem::new(503, "STOPPED", detail),
        }
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Problem {
        let detail = error.to_string();
        match error {
            OpenError::Log(error) => error.into(),
            OpenError::Newer { needed, .. } => Problem::new(500, "NEWER_LOG", detail)
                .hint(format!("install adjutant {needed} or newer; nothing was changed")),
            OpenError::Unreadable { .. } | OpenError::DoesNotFold { .. } => {
                Problem::new(500, "LOG_DAMAGED", detail).hint("`adj verify` checks the whole log")
            }
        }
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Problem {
        let detail = error.to_string();
        match error {
            LogError::Held { holder } => {
                let detail = match &holder {
                    Some(holder) => format!("the project is in use by {}", holder_name(holder)),
                    None => "the project is in use by another process".to_owned(),
                };
                Problem::new(503, "HELD", detail)
                    .hint("wait until that process has ended, or stop it, and try again")
            }
            LogError::Full => Problem::new(507, NO_SPACE, detail)
                .hint("nothing was written; free some disk space and try again"),
            LogError::Sync { .. } | LogError::Io { .. } => Problem::new(503, LOG_FAILED, detail)
                .hint("the request may have been executed; check before retrying"),
            LogError::Conflict { .. } => {
                Problem::new(503, "CONTENDED", detail).hint("nothing was written; try again").retry_after(1)
            }
            LogError::Newer { .. } => {
                Problem::new(500, "NEWER_LOG", detail).hint("install a newer adjutant; nothing was changed")
            }
            LogError::Trigger { path, name, .. } => {
                let name = name.replace('"', "\"\"");
                Problem::new(500, "LOG_TRIGGER", detail).hint(format!(
                    "nothing was written; remove the trigger with `sqlite3 {} 'DROP TRIGGER \"{name}\"'`, then run `adj verify`",
                    path.display()
                ))
            }
            LogError::TooLarge { .. } => Problem::new(413, "TOO_LARGE", detail),
            LogError::Missing { .. } => Problem::new(500, "LOG_MISSING", detail)
                .hint("restore the log file, or delete the files beside it to start over"),
            LogError::Corrupt { .. }
            | LogError::Damaged { .. }
            | LogError::Lost { .. }
            | LogError::Foreign { .. }
            | LogError::Beyond { .. }
            | LogError::Stray { .. } => Problem::new(500, "LOG_DAMAGED", detail)
                .hint("`adj verify` checks the whole log; restore it from a backup or an export"),
            LogError::Older { .. }
            | LogError::Usurped { .. }
            | LogError::ReadOnly
            | LogError::Duplicate { .. } => Problem::new(500, "LOG_FAILED", detail),
        }
    }
}

/// `pid 12 on host x since 2026-01-02T03:04:05Z`. The time is known only for a process of this machine.
pub fn holder_name(holder: &Holder) -> String {
    let here = holder.host == Holder::current().host;
    let since = here.then(|| started_at(holder)).flatten();
    let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
    format!("pid {}{since} on {}", holder.pid, holder.host)
}

/// Start times are counted in hundredths of a second since the machine started.
fn started_at(holder: &Holder) -> Option<String> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    (holder.started > 0).then(|| super::time((boot + holder.started as i64 / 100) * 1_000))
}
