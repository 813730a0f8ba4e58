//! `adj init`, `config`, `prompt` and `doctor`: how the project is set up, and whether all is well.

use super::project::Project;
use super::terminal::{Colour, Paint};
use super::text::{self, Table, visible, visible_code};
use super::{Context, Exit, Failure};
use api::types::fleet::{Fleet, MainState, MainTests};
use api::types::host::{self as types, ConfigSchema, Configured, Finding, Level, PromptLine};
use api::types::{Nothing, Page};
use clap::{Args, Subcommand};
use serde::Serialize;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  cd my-project && adj init

Writes a short adjutant.toml with the settings to decide on: agent, tests, review, workers, budget. It also contains \
the command that installs your packages in each working tree, and the package caches. `adj init` reads .worktreeinclude, \
.cursor/worktrees.json, .codex/environments/environment.toml and conductor.json.

It prints where state and working trees are stored, and checks this machine. It does not change an existing file. \
`adj config defaults` prints all settings.")]
pub struct Init {
    /// Run the commit hooks of the repository (pre-commit, husky, lefthook, core.hooksPath) with the tests
    #[arg(long)]
    with_hooks: bool,
}

pub fn init(command: &Init, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let wish = types::Init { with_hooks: command.with_hooks };
    let done: Page<Finding> = project.post("/init", &wish)?;
    findings(&done.items, Exit::Failed, context)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj doctor
  adj doctor --tests

Checks git, the agents' programs, the sandbox, the settings and the disk, and changes nothing. The exit code is 1 if \
the fleet cannot work. With --tests it runs the tests of main in a new working tree; agents start only if they pass.")]
pub struct Doctor {
    /// Run the tests of main, and print their output if they fail
    #[arg(long)]
    tests: bool,
}

pub fn doctor(command: &Doctor, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if command.tests {
        project.check_here("`adj doctor --tests`")?;
        return test_main(&project, context);
    }
    findings(&project.get_all("/doctor", &Nothing {})?, Exit::Failed, context)
}

/// How often a fleet is asked whether main's tests are through.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// Main's own tests: by the fleet that is at work, or without one.
fn test_main(project: &Project, context: Context) -> Result<(), Failure> {
    let (command, red) = match project.running()? {
        Some(_) => {
            let main_tests = || project.get("/fleet").map(|fleet: Fleet| fleet.main_tests);
            let before = main_tests()?.and_then(|tests| tests.at);
            let _: Option<MainTests> = project.post("/fleet/test-main", &Nothing {})?;
            loop {
                match main_tests()? {
                    Some(now) if now.state != MainState::Running && now.at != before => {
                        break (now.command, now.output);
                    }
                    _ => std::thread::sleep(LOOK),
                }
            }
        }
        None => {
            let tested = super::run::test_main(project)?;
            (tested.command, tested.red)
        }
    };
    if context.globals.json {
        let document = Tested { green: red.is_none(), command, output: red.as_deref() };
        writeln!(context.out, "{}", text::json(&document))?;
        return if red.is_some() { Err(Failure::told(Exit::Failed)) } else { Ok(()) };
    }
    let Some(output) = red else {
        let said = command.map_or("no tests were found".to_owned(), |command| {
            format!("main passes `{}`", visible(&command))
        });
        return Ok(writeln!(context.out, "{said}")?);
    };
    for line in output.lines() {
        writeln!(context.out, "{}", visible_code(line))?;
    }
    Err(Failure::new(Exit::Failed, "the tests fail on main itself, so no agent starts").hint(
        "fix main, or [test], [worktree] and [hooks] in adjutant.toml; a running fleet notices the change",
    ))
}

/// What `adj doctor --tests --json` prints.
#[derive(Serialize)]
struct Tested<'t> {
    green: bool,
    command: Option<String>,
    output: Option<&'t str>,
}

/// Prints what was found. An error among it is the command's.
fn findings(found: &[Finding], exit: Exit, context: Context) -> Result<(), Failure> {
    if context.globals.json {
        writeln!(context.out, "{}", text::json(&found))?;
    } else {
        for Finding { level, subject, text, hint } in found {
            let (level, colour) = match level {
                Level::Ok => ("ok", Colour::Good),
                Level::Warning => ("WARNING", Colour::Waits),
                Level::Error => ("ERROR", Colour::Bad),
            };
            let level = Paint::stdout(&context.globals).as_meant(colour, format!("{level:<7}"));
            let said = format!("{}: {}", visible(subject), visible(text));
            writeln!(context.out, "{}", super::text::hanging(&format!("{level}  "), &said))?;
            if let Some(hint) = hint.as_ref().filter(|_| !context.globals.quiet) {
                let label = format!("{:7}  hint: ", "");
                writeln!(context.out, "{}", super::text::hanging(&label, &visible(hint)))?;
            }
        }
    }
    match found.iter().filter(|finding| finding.level == Level::Error).count() {
        0 => Ok(()),
        _ if context.globals.json => Err(Failure::told(exit)),
        1 => Err(Failure::new(exit, "1 problem found")),
        wrong => Err(Failure::new(exit, format!("{wrong} problems found"))),
    }
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Print the settings in force, in the format of adjutant.toml
    #[command(after_help = "\
Example:
  adj config show")]
    Show,
    /// Print every setting with its default and one sentence about it
    #[command(after_help = "\
Example:
  adj config defaults | less

The output is a valid adjutant.toml. A key that is commented out has no default; its value is an example.")]
    Defaults,
    /// Check adjutant.toml for errors
    #[command(after_help = "\
Example:
  adj config check && git commit adjutant.toml

The exit code is 2 if the file is invalid.")]
    Check,
    /// Print the JSON Schema of adjutant.toml, for editors
    #[command(after_help = "\
Example:
  adj config schema > adjutant.schema.json")]
    Schema,
    /// Trust the current adjutant.toml and .worktreeinclude
    #[command(after_help = "\
Example:
  git diff HEAD~ adjutant.toml .worktreeinclude
  adj config trust

If an agent changed the settings, they take effect only after this command, because they name programs that run as you. The \
same holds for .worktreeinclude, because it gives your files to agents.")]
    Trust,
    /// Use the defaults after adjutant.toml was deleted
    #[command(after_help = "\
Example:
  git rm adjutant.toml
  adj config forget

If adjutant.toml is missing, for example on another branch, the last settings stay in use until this command.")]
    Forget,
}

pub fn config(command: &Config, context: Context) -> Result<(), Failure> {
    // The defaults are the program's: they are printed outside a project too.
    let project = || Project::find(&context.globals);
    match command {
        Config::Defaults => {
            let text = project::settings::defaults();
            if context.globals.json {
                return Ok(writeln!(context.out, "{}", text::json(&Defaults { text: &text }))?);
            }
            print(&text, context)
        }
        Config::Show => {
            let config: Configured = project()?.get("/config")?;
            if context.globals.json {
                return Ok(writeln!(context.out, "{}", text::json(&config))?);
            }
            if let Some(waiting) = config.waiting.as_ref().filter(|_| !context.globals.quiet) {
                eprintln!("warning: {}", visible(&waiting.detail));
            }
            print(&config.text, context)
        }
        Config::Check => {
            let found: Vec<Finding> = project()?.get_all("/config/check", &Nothing {})?;
            if found.is_empty() && !context.globals.json && !context.globals.quiet {
                return Ok(writeln!(context.out, "adjutant.toml is valid")?);
            }
            findings(&found, Exit::Usage, context)
        }
        Config::Schema => {
            let schema: ConfigSchema = project()?.get("/config/schema")?;
            let text = if context.globals.json { text::json(&schema) } else { text::json_lines(&schema) };
            Ok(writeln!(context.out, "{text}")?)
        }
        Config::Trust => {
            let config: Configured = project()?.post("/config/trust", &Nothing {})?;
            if context.globals.json {
                return Ok(writeln!(context.out, "{}", text::json(&config))?);
            }
            let file = config.file.unwrap_or_else(|| ".worktreeinclude".to_owned());
            Ok(writeln!(context.out, "{}  trusted", visible(&file))?)
        }
        Config::Forget => {
            let config: Configured = project()?.post("/config/forget", &Nothing {})?;
            if context.globals.json {
                return Ok(writeln!(context.out, "{}", text::json(&config))?);
            }
            Ok(writeln!(context.out, "the defaults are in force")?)
        }
    }
}

/// What `adj config defaults --json` prints.
#[derive(Serialize)]
struct Defaults<'t> {
    text: &'t str,
}

fn print(text: &str, context: Context) -> Result<(), Failure> {
    for line in text.lines() {
        writeln!(context.out, "{}", visible_code(line))?;
    }
    Ok(())
}

#[derive(Debug, Subcommand)]
pub enum Prompt {
    /// List the prompts and their source
    #[command(after_help = "\
Example:
  adj prompt ls")]
    Ls,
    /// Print a prompt template, or with --task the prompt of a task
    #[command(after_help = "\
Example:
  adj prompt show step > step.md
  adj prompt show init --task c-abc1

To use your own, name the file in adjutant.toml:
  [prompts]
  step = \"step.md\"")]
    Show {
        /// Prompt: init, step, test_failure, merge_conflict, turn, spec, review, question or budget
        name: String,
        /// Fill in the template for this task, or the task of this worker
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
    },
}

pub fn prompt(command: &Prompt, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    match command {
        Prompt::Ls => {
            let prompts: Vec<PromptLine> = project.get_all("/prompts", &Nothing {})?;
            if context.globals.json {
                return Ok(writeln!(context.out, "{}", text::json(&prompts))?);
            }
            let mut table = Table::new(&["PROMPT", "FROM"]);
            for PromptLine { name, file } in prompts {
                table.row([name, file.unwrap_or_else(|| "as shipped".to_owned())]);
            }
            Ok(write!(context.out, "{table}")?)
        }
        Prompt::Show { name, task } => {
            let prompt: types::Prompt = match task {
                Some(task) => {
                    let task = super::named::task(&project, task)?.line.id;
                    project.get(&format!("/tasks/{task}/prompt/{name}"))?
                }
                None => project.get(&format!("/prompts/{name}"))?,
            };
            if context.globals.json {
                return Ok(writeln!(context.out, "{}", text::json(&prompt))?);
            }
            print(&prompt.text, context)
        }
    }
}
