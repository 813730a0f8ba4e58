//! `adj service …`: the server as a unit of systemd, so that it is there after a reboot.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use super::project::Project;
use super::text::shown;
use super::{Cli, Context, Exit, Failure, Globals, text};
use clap::{Args, CommandFactory, Subcommand};
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the unit, enable it and start it
    #[command(after_help = "\
Example:
  adj service install                       serve every initialized project
  adj service install --project ~/api       serve this one, as its own unit
  adj service install -- --run --port 4700  pass options to `adj serve`
  adj service install --dry-run             print the unit file

Put the keys that agents need into ~/.config/adjutant/environment, as NAME=VALUE lines, and make the file readable \
only for you. Agents keep running while the unit restarts; the new server continues with them.")]
    Install(Install),
    /// Show whether the unit is installed, enabled and running
    #[command(after_help = "Example:\n  adj service status")]
    Status(Which),
    /// Show the server's output (journalctl)
    #[command(after_help = "Example:\n  adj service logs -f")]
    Logs(Logs),
    /// Stop and remove the unit; projects and their work are kept
    #[command(after_help = "Example:\n  adj service uninstall")]
    Uninstall(Which),
}

#[derive(Clone, Debug, Args)]
pub struct Which {
    /// Use a system unit, which starts at boot without a login; needs root
    #[arg(long)]
    system: bool,
}

#[derive(Debug, Args)]
pub struct Install {
    #[command(flatten)]
    which: Which,
    /// Print the unit, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Options of `adj serve`
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    which: Which,
    /// Wait for more
    #[arg(long, short)]
    follow: bool,
    /// Number of lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    lines: u32,
}

/// What a server in a unit cannot do: systemd must see its process, and nobody sits before it.
const NOT_IN_A_UNIT: &[&str] = &["--detach", "--open", "--all", "--project"];

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Install(command) => install(&command, context),
        Command::Status(which) => status(&which, context),
        Command::Logs(command) => logs(&command, &context),
        Command::Uninstall(which) => uninstall(&which, context),
    }
}

/// A unit, and whose systemd it is for.
struct Unit {
    name: String,
    file: PathBuf,
    system: bool,
    /// The projects that it serves; none stands for all.
    projects: Vec<PathBuf>,
}

impl Unit {
    fn of(which: &Which, globals: &Globals) -> Result<Unit, Failure> {
        let projects = match globals.project.is_empty() {
            true => Vec::new(),
            false => Project::find_all(globals)?,
        };
        let name = match projects.first() {
            None => "adjutant.service".to_owned(),
            Some(project) => format!("adjutant-{}.service", project.name()),
        };
        let folder = match which.system {
            true => PathBuf::from("/etc/systemd/system"),
            false => config_home()?.join("systemd/user"),
        };
        let projects = projects.iter().map(|project| project.root().to_owned()).collect();
        Ok(Unit { file: folder.join(&name), name, system: which.system, projects })
    }

    fn systemctl(&self) -> Vec<&'static str> {
        if self.system { vec!["systemctl"] } else { vec!["systemctl", "--user"] }
    }

    fn text(&self, adj: &Path, options: &[String]) -> Result<String, Failure> {
        let mut line = vec![adj.display().to_string(), "serve".to_owned()];
        match self.projects.is_empty() {
            true => line.push("--all".to_owned()),
            false => {
                for project in &self.projects {
                    line.extend(["--project".to_owned(), project.display().to_string()]);
                }
            }
        }
        line.push("--keep-agents".to_owned());
        line.extend(options.iter().cloned());
        let start: Vec<String> = line.iter().map(|word| quoted(word, true)).collect();
        // Without it, neither git nor an agent's program would be found where a shell finds them.
        let path = std::env::var("PATH").unwrap_or_default();
        let user = match self.system {
            true => format!("User={}\n", user()?),
            false => String::new(),
        };
        let wanted = if self.system { "multi-user.target" } else { "default.target" };
        Ok(format!(
            "\
# Written by `adj service install`; run it again to change it.
[Unit]
Description=Adjutant: serves projects and runs their fleets of coding agents

[Service]
Type=notify
NotifyAccess=main
{user}ExecStart={start}
Environment={path}
# Keys for agents, one NAME=VALUE a line; the file is yours to write, and only you should read it.
EnvironmentFile=-%E/adjutant/environment
# Agents outlive the server: only its own process is ended, and the next one goes on with them.
KillMode=process
Restart=on-failure
RestartSec=2
TimeoutStopSec=120
# Each connection, and each step of an agent, has files open.
LimitNOFILE=524288
# A core file would hold tokens and keys. A program that wants one raises its own limit.
LimitCORE=0:infinity
# Files of main come into the checkout as a shell would write them; the folder of tokens and log has its own mode.
UMask=0022
# An agent or a test that runs out of memory ends by itself; the server and the other agents do not end with it.
OOMPolicy=continue
# Nothing more is restricted here: docs/operations.md says why.

[Install]
WantedBy={wanted}
",
            start = start.join(" "),
            path = quoted(&format!("PATH={path}"), false),
        ))
    }

    /// `None`: there is no systemctl, or none that answers.
    fn ask(&self, arguments: &[&str]) -> Option<std::process::Output> {
        let line = self.systemctl();
        let program = project::program::which(line[0])?;
        Process::new(program).args(&line[1..]).args(arguments).stdin(Stdio::null()).output().ok()
    }

    fn line(&self, arguments: &[&str]) -> String {
        [&self.systemctl()[..], arguments].concat().join(" ")
    }

    fn word(&self, question: &str) -> String {
        let said = self.ask(&[question, &self.name]).map(|ran| ran.stdout);
        let said = said.and_then(|said| String::from_utf8(said).ok()).unwrap_or_default();
        match said.trim() {
            "" => "unknown".to_owned(),
            said => text::visible(said),
        }
    }
}

fn config_home() -> Result<PathBuf, Failure> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".config")))
        .ok_or_else(|| Failure::new(Exit::Failed, "there is no folder for your settings: HOME is not set"))
}

/// Who the server of a system unit is: whoever asked for it, never root.
fn user() -> Result<String, Failure> {
    let named = |name| super::set_variable(name).filter(|user| user != "root");
    let user = named("SUDO_USER").or_else(|| named("USER")).ok_or_else(|| {
        Failure::new(Exit::Usage, "the unit would run as root")
            .hint("`sudo adj service install --system` makes it run as you")
    })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match user.chars().all(plain) {
        true => Ok(user),
        false => Err(Failure::new(Exit::Usage, "the name of the user is not one that a unit takes")),
    }
}

/// A word as systemd reads it: `%` and, in a command line, `$` stand for something there.
fn quoted(word: &str, line: bool) -> String {
    let mut quoted = String::with_capacity(word.len() + 2);
    for letter in word.chars() {
        match letter {
            '%' => quoted.push_str("%%"),
            '$' if line => quoted.push_str("$$"),
            '\\' | '"' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter => quoted.push(letter),
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:=,@+%".contains(c);
    match !quoted.is_empty() && quoted.chars().all(plain) {
        true => quoted,
        false => format!("\"{quoted}\""),
    }
}

/// What `adj service install --json` prints.
#[derive(Serialize)]
struct Installed<'i> {
    unit: &'i str,
    path: &'i Path,
    started: bool,
}

fn install(command: &Install, context: Context) -> Result<(), Failure> {
    let unit = Unit::of(&command.which, &context.globals)?;
    check(&command.options)?;
    let adj = std::env::current_exe()?;
    let text = unit.text(&adj, &command.options)?;
    let out = context.out;
    if command.dry_run {
        return Ok(out.write_all(text.as_bytes())?);
    }
    let cannot = |error: std::io::Error| {
        let failure = Failure::new(Exit::Failed, format!("cannot write {}: {error}", shown(&unit.file)));
        match unit.system {
            true => failure.hint("a unit of the system needs root; without --system it is your own"),
            false => failure,
        }
    };
    if let Some(folder) = unit.file.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    base::files::write_whole(&unit.file, text.as_bytes()).map_err(cannot)?;
    let steps: [&[&str]; 3] = [&["daemon-reload"], &["enable", &unit.name], &["restart", &unit.name]];
    let mut failed = None;
    for step in steps {
        match unit.ask(step) {
            Some(ran) if ran.status.success() => {}
            Some(ran) => {
                failed = Some(String::from_utf8_lossy(&ran.stderr).trim().to_owned());
                break;
            }
            None => {
                failed = Some("systemctl was not found".to_owned());
                break;
            }
        }
    }
    if context.globals.json {
        let installed = Installed { unit: &unit.name, path: &unit.file, started: failed.is_none() };
        writeln!(out, "{}", text::json(&installed))?;
    } else {
        writeln!(out, "wrote {}", shown(&unit.file))?;
    }
    let Some(why) = failed else {
        if !context.globals.json && !context.globals.quiet {
            writeln!(out, "{} is enabled and runs; `adj service logs -f` shows what it prints", unit.name)?;
            if !unit.system {
                writeln!(out, "`loginctl enable-linger` keeps it running while you are logged out")?;
            }
        }
        return Ok(());
    };
    eprintln!("warning: it was not started: {}", text::visible(&why));
    eprintln!("hint: where systemd runs, start it with:");
    for step in steps {
        eprintln!("  {}", unit.line(step));
    }
    Ok(())
}

/// What the server would refuse is refused before it is written down.
fn check(options: &[String]) -> Result<(), Failure> {
    let name = |option: &String| option.split('=').next().unwrap_or_default().to_owned();
    if let Some(wrong) = options.iter().map(name).find(|name| NOT_IN_A_UNIT.contains(&name.as_str())) {
        return Err(Failure::new(Exit::Usage, format!("{wrong} is not for a server in a unit"))
            .hint("`adj service install --project DIR` says which project it serves"));
    }
    let line = ["adj", "serve"].into_iter().map(str::to_owned).chain(options.iter().cloned());
    match Cli::command().try_get_matches_from(line) {
        Ok(_) => Ok(()),
        Err(error) => {
            let said = error.to_string();
            let said = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(Failure::new(Exit::Usage, said).hint("`adj serve --help` lists the options"))
        }
    }
}

/// What `adj service status --json` prints.
#[derive(Serialize)]
struct Status<'s> {
    unit: &'s str,
    path: &'s Path,
    installed: bool,
    /// In systemd's words: `active`, `inactive`, `failed`, …
    active: String,
    enabled: String,
}

fn status(which: &Which, context: Context) -> Result<(), Failure> {
    let unit = Unit::of(which, &context.globals)?;
    let status = Status {
        unit: &unit.name,
        path: &unit.file,
        installed: unit.file.is_file(),
        active: unit.word("is-active"),
        enabled: unit.word("is-enabled"),
    };
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&status))?);
    }
    if !status.installed {
        return Err(Failure::not_found(format!("there is no unit {}", shown(&unit.file)))
            .hint("`adj service install` writes it"));
    }
    let Status { unit, path, active, enabled, .. } = status;
    Ok(writeln!(context.out, "{unit}  {active}, {enabled}\n{}", shown(path))?)
}

fn logs(command: &Logs, context: &Context) -> Result<(), Failure> {
    let unit = Unit::of(&command.which, &context.globals)?;
    let Some(journalctl) = project::program::which("journalctl") else {
        return Err(Failure::new(Exit::Failed, "journalctl was not found")
            .hint("where systemd does not run, `adj serve --detach` writes its lines to a file"));
    };
    let mut line = Process::new(journalctl);
    if !unit.system {
        line.arg("--user");
    }
    line.args(["--unit", &unit.name, "--no-pager", "--output", "cat"]);
    line.args([OsStr::new("--lines"), OsStr::new(&command.lines.to_string())]);
    if command.follow {
        line.arg("--follow");
    }
    let ended = line.stdin(Stdio::null()).status()?;
    match ended.success() {
        true => Ok(()),
        false => Err(Failure::told(Exit::Failed)),
    }
}

fn uninstall(which: &Which, context: Context) -> Result<(), Failure> {
    let unit = Unit::of(which, &context.globals)?;
    if !unit.file.is_file() {
        return Err(Failure::not_found(format!("there is no unit {}", shown(&unit.file))));
    }
    let stopped = unit.ask(&["disable", "--now", &unit.name]);
    std::fs::remove_file(&unit.file)?;
    let _ = unit.ask(&["daemon-reload"]);
    if !stopped.is_some_and(|ran| ran.status.success()) {
        eprintln!("warning: systemd did not stop it; `adj stop` ends a server that still runs");
    }
    Ok(writeln!(context.out, "removed {}; agents at work go on, and `adj ps` shows them", shown(&unit.file))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_reaches_the_program_as_it_was_written() {
        assert_eq!(quoted("/usr/bin/adj", true), "/usr/bin/adj");
        assert_eq!(quoted("/my work/50% $HOME \"x\"", true), "\"/my work/50%% $$HOME \\\"x\\\"\"");
        assert_eq!(quoted("PATH=/a b", false), "\"PATH=/a b\"");
    }
}
