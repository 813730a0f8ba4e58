//! The list of commands in `adj --help`: ten for daily use first, then the others in groups.

use super::terminal::wrap;

/// Every help page has this width, also on a wider terminal.
pub const WIDTH: usize = 80;

/// Commands that belong together, with what they are for. The sentence is printed in the README, with links to the pages.
struct Group {
    heading: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "it is printed by a test"))]
    about: &'static str,
    commands: &'static [&'static str],
}

#[rustfmt::skip]
const GROUPS: &[Group] = &[
    Group { heading: "Daily use",
        about: "the backlog, the fleet at work, what needs you, and what everything is waiting for",
        commands: &["task", "board", "run", "stop", "ps", "logs", "waiting", "review", "diff", "why"] },
    Group { heading: "Get started",
        about: "a demonstration that needs no key, the settings of a repository, this machine, your login for an agent",
        commands: &["demo", "init", "doctor", "login"] },
    Group { heading: "Runs and workers",
        about: "start, pause and end the run of an agent; manage workers; a shell in a task's tree, in its sandbox",
        commands: &["start", "runs", "pause", "resume", "abort", "retry", "shell",
                    "spawn", "assign", "kill", "cleanup", "clean"] },
    Group { heading: "Review and merge",
        about: "merge, revert, restore saved work; approve what agents may not do by themselves, and answer their questions",
        commands: &["merge", "queue", "undo", "salvage", "approvals", "approve", "deny", "ask", "answer"] },
    Group { heading: "Watch",
        about: "what agents say and do, their tool calls, history, cost",
        commands: &["peek", "watch", "tools", "history", "cost", "state"] },
    Group { heading: "Rooms and specs",
        about: "[rooms](docs/channels.md) in which agents take turns and you join in; [specs](docs/specs.md), split and reviewed by [an agent](docs/architect.md)",
        commands: &["channel", "turn", "spec", "architect", "requests", "agent"] },
    Group { heading: "Server",
        about: "the [server](docs/server.md) for browsers and programs, also as a [service](docs/operations.md); the project as [tools](docs/mcp.md) for your assistant",
        commands: &["serve", "url", "token", "service", "mcp"] },
    Group { heading: "Maintenance",
        about: "[settings](docs/configuration.md) and prompts; check, back up and move the log; the [state machines](docs/machines/README.md) and a simulator of fleets",
        commands: &["config", "prompt", "verify", "backup", "export", "import",
                    "machine", "sim", "completions", "man"] },
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
    for Group { heading, commands: names, .. } in GROUPS {
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

    /// Commands that ask no operation, and why.
    #[rustfmt::skip]
    const LOCAL: &[(&str, &str)] = &[
        ("serve",             "it is the server: other commands ask it"),
        ("service install",   "it writes a unit file and asks systemd"),
        ("service status",    "it asks systemd"),
        ("service logs",      "it asks systemd"),
        ("service uninstall", "it removes a unit file and asks systemd"),
        ("login",             "it stores a secret of the user's, which no request carries"),
        ("config defaults",   "it prints what this program has built in"),
        ("backup",            "it copies files of a project while it runs"),
        ("import",            "it writes a log before there is a project to ask"),
        ("machine ls",        "it prints what this program has built in"),
        ("machine show",      "it prints what this program has built in"),
        ("machine step",      "it tries what this program has built in"),
        ("demo",              "it makes a repository, and runs other commands in it"),
        ("sim",               "it simulates fleets without a project"),
        ("mcp",               "it serves all tools, each of which is an operation"),
        ("completions",       "it prints what this program has built in"),
        ("man",               "it prints what this program has built in"),
    ];

    /// Every command without subcommands, as it is typed after `adj`.
    fn leaves(command: &clap::Command, before: &str, all: &mut Vec<String>) {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = format!("{before}{}", command.get_name());
            match command.has_subcommands() {
                true => leaves(command, &format!("{name} "), all),
                false => all.push(name),
            }
        }
    }

    #[test]
    fn every_command_asks_an_operation_that_names_it_or_is_local_for_a_reason() {
        let mut there = Vec::new();
        leaves(&super::super::Cli::command(), "", &mut there);
        let named: Vec<(&str, &str)> = api::routes::all()
            .flat_map(|operation| operation.commands.iter().map(|command| (*command, operation.path)))
            .collect();
        for (command, path) in &named {
            assert!(
                there.iter().any(|name| name == command),
                "{path} names `adj {command}`, which is no command"
            );
        }
        for (command, _) in LOCAL {
            assert!(there.iter().any(|name| name == command), "`adj {command}` is no command");
            assert!(!named.iter().any(|(name, _)| name == command), "`adj {command}` asks an operation");
        }
        let known = |command: &&String| {
            !named.iter().any(|(name, _)| name == command) && !LOCAL.iter().any(|(name, _)| name == command)
        };
        let unknown: Vec<&String> = there.iter().filter(known).collect();
        assert!(unknown.is_empty(), "no row in crates/api/src/routes.rs names {unknown:?}");
    }

    /// Where the table of commands begins in the README, and where it ends.
    const MARKS: [&str; 2] = [
        "<!-- commands: printed from `crates/adj/src/cli/help.rs` by `ADJ_WRITE_DOCS=1 cargo test -p adj --bins readme` -->",
        "<!-- commands: end -->",
    ];

    #[test]
    fn the_readme_lists_every_command() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let there = std::fs::read_to_string(path).expect("the page is there");
        let (before, rest) =
            there.split_once(MARKS[0]).expect("the page has the mark where its table begins");
        let (_, after) = rest.split_once(MARKS[1]).expect("the page has the mark where its table ends");
        let mut table = "| | commands | |\n| --- | --- | --- |\n".to_owned();
        for Group { heading, about, commands } in GROUPS {
            let commands: Vec<String> = commands.iter().map(|name| format!("`{name}`")).collect();
            let commands = commands.join(", ").replacen('`', "`adj ", 1);
            table.push_str(&format!("| {heading} | {commands} | {about} |\n"));
        }
        let page = format!("{before}{}\n\n{table}\n{}{after}", MARKS[0], MARKS[1]);
        if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
            std::fs::write(path, &page).expect("the page can be written");
        }
        let there = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            there == page,
            "the README's table is not what `adj --help` says; the first mark names its command"
        );
    }

    #[test]
    fn every_command_is_in_one_group_and_every_other_name_leads_to_one() {
        let cli = super::super::Cli::command();
        let mut there: Vec<&str> =
            cli.get_subcommands().filter(|command| !command.is_hide_set()).map(|it| it.get_name()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands.iter().copied()).collect();
        there.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(there, grouped);
        for (word, command) in ALSO_CALLED {
            assert!(!there.contains(word), "{word} is a command");
            assert!(there.contains(&command.trim_start_matches("adj ")), "{command}");
        }
    }
}
