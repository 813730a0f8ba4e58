//! The list of commands in `adj --help`: ten for daily use first, then the others in groups.

use super::terminal::wrap;

/// Every help page has this width, also on a wider terminal.
pub const WIDTH: usize = 80;

#[rustfmt::skip]
const GROUPS: &[(&str, &[&str])] = &[
    ("Daily use",        &["task", "board", "run", "stop", "ps", "logs", "waiting", "review", "diff", "why"]),
    ("Get started",      &["demo", "init", "doctor", "login"]),
    ("Runs and workers", &["start", "runs", "pause", "resume", "abort", "retry", "shell",
                           "spawn", "assign", "kill", "cleanup", "clean"]),
    ("Review and merge", &["merge", "queue", "undo", "salvage", "approvals", "approve", "deny", "ask", "answer"]),
    ("Watch",            &["peek", "watch", "tools", "history", "cost", "state"]),
    ("Rooms and specs",  &["channel", "turn", "spec", "architect", "requests", "agent"]),
    ("Server",           &["serve", "url", "token", "service", "mcp"]),
    ("Maintenance",      &["config", "prompt", "verify", "backup", "export", "import",
                           "machine", "sim", "completions", "man"]),
];

/// Names that other tools have for one of our commands.
#[rustfmt::skip]
const ALSO_CALLED: &[(&str, &str)] = &[
    ("d",         "adj run"),
    ("dash",      "adj run"),
    ("dashboard", "adj run"),
    ("tui",       "adj run"),
    ("ui",        "adj serve"),
    ("web",       "adj serve"),
    ("status",    "adj ps"),
    ("list",      "adj board"),
    ("ls",        "adj board"),
    ("tail",      "adj watch"),
    ("revert",    "adj undo"),
    ("room",      "adj channel"),
    ("settings",  "adj config"),
];

/// Our command for a name that other tools use.
pub fn also_called(word: &str) -> Option<&'static str> {
    ALSO_CALLED.iter().find(|(name, _)| *name == word).map(|(_, command)| *command)
}

/// `adj --help` with its commands in groups, instead of clap's single list.
pub fn grouped(command: clap::Command) -> clap::Command {
    let mut commands = String::new();
    for (heading, names) in GROUPS {
        commands.push_str(&format!("{heading}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let lines = wrap(&about, WIDTH - COLUMN);
            commands.push_str(&format!(
                "  {name:0$}{1}\n",
                COLUMN - 2,
                lines.join(&format!("\n{:COLUMN$}", ""))
            ));
        }
        commands.push('\n');
    }
    // Braces are clap's own in a template, and no command has one in its sentence.
    command.term_width(WIDTH).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}Global options:\n{{options}}{{after-help}}"
    ))
}

/// Where the sentences begin.
const COLUMN: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group_and_every_other_name_leads_to_one() {
        let cli = super::super::Cli::command();
        let mut there: Vec<&str> =
            cli.get_subcommands().filter(|command| !command.is_hide_set()).map(|it| it.get_name()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        there.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(there, grouped);
        for (word, command) in ALSO_CALLED {
            assert!(!there.contains(word), "{word} is a command");
            assert!(there.contains(&command.trim_start_matches("adj ")), "{command}");
        }
    }
}
