//! Notifications on the user's desktop, by a program of the system. Agents can influence the text, so it is passed
//! as arguments, never through a shell.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::kept_command::{self, KeptCommand, Ran};
use super::user_commands::own_environment;
use super::{Shared, endings};

/// What shows them here.
pub const PROGRAM: &str = if cfg!(target_os = "macos") { "osascript" } else { "notify-send" };
/// How long it may take: it only hands them over.
const TIME_MAX: Duration = Duration::from_secs(10);
/// More than this no desktop shows.
const CHARS_MAX: usize = 400;

/// Where the program is, if it is there.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|file| file.is_file())
}

/// Shows that a person is needed, and why. What goes wrong is told once and changes nothing.
pub(super) async fn show(shared: &Arc<Shared>, name: &str, task: &str, message: &str) {
    let Some(program) = program() else {
        shared.notice_once(format!(
            "notify.desktop is on, but `{PROGRAM}` is not installed: install it, or set notify.desktop = false"
        ));
        return;
    };
    let cwd = shared.layout.root().to_owned();
    let project = cwd.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let title = if task.is_empty() { project } else { format!("{project}: {task}") };
    let kept = KeptCommand {
        name: name.to_owned(),
        of: PROGRAM.to_owned(),
        argv: arguments(&program.to_string_lossy(), &format!("Adjutant {title}"), message),
        env: own_environment(),
        cwd,
        limit: TIME_MAX,
        sandbox: None,
    };
    let failed = match kept_command::run(shared, kept, None).await {
        Ok(Ran::Ended) => return,
        Ok(Ran::Over { exit, .. }) if exit.succeeded() => return,
        Ok(Ran::Over { exit, .. }) => endings::how_it_ended(&exit, TIME_MAX),
        Err(error) => error.to_string(),
    };
    shared.notice_once(format!("a notification could not be shown: `{PROGRAM}` {failed}"));
}

/// The command line that shows it.
fn arguments(program: &str, title: &str, message: &str) -> Vec<String> {
    let plain = |text: &str| -> String {
        text.chars().take(CHARS_MAX).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
    };
    let (title, message) = (plain(title), plain(message));
    let words: Vec<&str> = match PROGRAM {
        "osascript" => vec![
            "-e",
            "on run argv",
            "-e",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "-e",
            "end run",
        ],
        _ => vec!["--app-name=Adjutant", "--"],
    };
    // What a desktop would take for markup is shown as it is.
    let message = match PROGRAM {
        "osascript" => message,
        _ => message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
    };
    let words = words.into_iter().map(str::to_owned);
    std::iter::once(program.to_owned()).chain(words).chain([title, message]).collect()
}
