//! The commands in the help of `adj`: in groups, by what people want to do.

use super::terminal::wrap;

/// The help is read at this width, however wide the terminal is.
const WIDTH: usize = 80;

#[rustfmt::skip]
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin",                  &["demo", "init", "doctor", "login"]),
    ("Tasks",                  &["task", "board", "why", "history", "cost"]),
    ("The fleet",              &["run", "stop", "ps", "peek", "logs", "watch"]),
    ("Finished work",          &["review", "diff", "merge", "queue", "undo", "salvage"]),
    ("What waits for you",     &["waiting", "approvals", "approve", "deny", "ask", "answer", "requests"]),
    ("Specs and agents",       &["spec", "architect", "agent", "channel", "turn"]),
    ("One run or worker",      &["start", "runs", "tools", "pause", "resume", "abort", "retry", "shell",
                                 "spawn", "assign", "kill", "cleanup", "clean", "state"]),
    ("Server and programs",    &["serve", "url", "token", "service", "mcp"]),
    ("Settings",               &["config", "prompt"]),
    ("The log",                &["verify", "backup", "export", "import"]),
    ("About Adjutant itself",  &["machine", "sim", "completions", "man"]),
];

/// Words that other tools have for something that has another name here.
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

/// The command that does what a word means elsewhere.
pub fn also_called(word: &str) -> Option<&'static str> {
    ALSO_CALLED.iter().find(|(name, _)| *name == word).map(|(_, command)| *command)
}

/// The top of the help, with its commands in groups in place of clap's one list.
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
