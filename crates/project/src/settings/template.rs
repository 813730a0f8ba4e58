//! Two settings files from the table of keys: the short one of `adj init`, with the keys that a user must decide,
//! and the whole one of `adj config defaults`.

use super::keys::{Key, SECTIONS, Section};
use agents::AdapterKind;
use std::borrow::Cow;
use std::fmt::Write;

/// What `adj init` found out before it writes the file.
#[derive(Clone, Debug, Default)]
pub struct TemplateValues {
    /// The branch that work lands on; `main` where nothing is said.
    pub main: Option<String>,
    /// The agent program that is installed here.
    pub adapter: Option<AdapterKind>,
    /// The test command, and the file by which it was found.
    pub test: Option<(String, &'static str)>,
    /// The package caches that the tests need.
    pub caches: Vec<String>,
    /// Variables that are set here and say where the toolchain is.
    pub variables: Vec<&'static str>,
    /// The command that makes a new tree ready, and where it comes from.
    pub create: Option<(String, String)>,
    /// The command for a tree that is removed, and where it comes from.
    pub remove: Option<(String, String)>,
    /// Ignored files to copy into a tree, and where they come from.
    pub copy: Option<(Vec<String>, String)>,
    pub commit_hooks: Option<CommitHooks>,
    /// Whether the tests run them, too.
    pub with_hooks: bool,
}

/// The commit hooks of the repository.
#[derive(Clone, Debug)]
pub struct CommitHooks {
    /// The program that manages them.
    pub manager: &'static str,
    /// What they were found by.
    pub by: String,
    /// Runs them over all files. Absent: they are not in the repository.
    pub command: Option<String>,
    /// Where their programs are kept.
    pub cache: Option<&'static str>,
}

impl TemplateValues {
    /// What is tested by, with the commit hooks if they are wanted.
    fn test_command(&self, with_hooks: bool) -> Option<String> {
        let test = self.test.as_ref().map(|(command, _)| command.clone());
        let hooks = self.commit_hooks.as_ref().and_then(|hooks| hooks.command.clone()).filter(|_| with_hooks);
        match (test, hooks) {
            (Some(test), Some(hooks)) => Some(format!("{test} && {hooks}")),
            (test, hooks) => test.or(hooks),
        }
    }
}

/// The name under which `adj init` writes the first agent.
const FIRST_AGENT: &str = "coder";
/// The column of the comments behind keys.
const COMMENT_AT: usize = 32;
/// Shown where a key has no default, so that one sees how it is written.
#[rustfmt::skip]
const EXAMPLES: &[(&str, &str)] = &[
    ("project.max_turns", "200"),
    ("test.command", r#""make test""#),
    ("agents.*.command", r#"["claude"]"#),
    ("agents.*.model", r#""name-of-a-model""#),
    ("agents.*.prompt", r#""Keep changes small.""#),
    ("agents.*.allowed_tools", r#"["Read", "Edit", "Write", "Bash"]"#),
    ("agents.*.max_turns", "200"),
    ("agents.*.author", r#""Coder <coder@example.com>""#),
    ("agents.*.service", r#""database""#),
    ("agents.*.resume", "true"),
    ("agents.*.budget_usd", "100.0"),
    ("budget.run_usd", "5.0"),
    ("budget.task_usd", "10.0"),
    ("budget.day_usd", "50.0"),
    ("policy.cap_in_progress", "10"),
    ("policy.cap_per_agent", "5"),
    ("prompts.init", r#""prompts/init.md""#),
    ("prompts.step", r#""prompts/step.md""#),
    ("prompts.test_failure", r#""prompts/test_failure.md""#),
    ("prompts.merge_conflict", r#""prompts/merge_conflict.md""#),
    ("prompts.turn", r#""prompts/turn.md""#),
    ("prompts.spec", r#""prompts/spec.md""#),
    ("prompts.review", r#""prompts/review.md""#),
    ("prompts.question", r#""prompts/question.md""#),
    ("prompts.budget", r#""prompts/budget.md""#),
    ("architect.agent", r#""lead""#),
    ("hooks.worktree.create", r#""npm ci""#),
    ("hooks.worktree.remove", r#""docker compose down""#),
    ("hooks.step.before", r#""./before-step""#),
    ("hooks.step.after", r#""./after-step""#),
    ("hooks.notify", r#""notify-send Adjutant""#),
    ("hooks.landed", r#""git push origin main""#),
    ("limits.memory", r#""8 GB""#),
    ("services.*.health", r#""tcp 127.0.0.1:5432""#),
    ("webhooks.*.url", r#""https://hooks.example.com/adjutant""#),
    ("webhooks.*.secret_env", r#""ADJUTANT_WEBHOOK_SECRET""#),
];

/// What `adj init` writes, in this order: what only the user can decide, and what was found here.
#[rustfmt::skip]
const SHORT: &[(&str, &str, &str)] = &[
    ("project",  "main",      "Branch that finished work is merged into"),
    ("fleet",    "agent",     "Agent of the workers: a name from [agents]"),
    ("fleet",    "workers",   "Number of agents that work at the same time"),
    ("fleet",    "review",    "Who approves finished work: \"human\", \"architect\" or \"auto\""),
    ("test",     "command",   "Must pass before review and before every merge"),
    ("test",     "env",       "Variables passed to tests and hooks: where the toolchain is"),
    ("hooks",    "worktree.create", "Makes each new tree ready for the tests"),
    ("hooks",    "worktree.remove", "Runs in a tree before it is removed"),
    ("hooks",    "timeout",   "How long a hook may take; the first one downloads packages"),
    ("worktree", "copy",      "Ignored files that are copied into each new tree"),
    ("agents.*", "adapter",   "Agent program"),
    ("agents.*", "command",   "The program and its arguments"),
    ("agents.*", "env",       "Variables passed to the agent; its API key is one of them"),
    ("agents.*", "max_turns", "Turns of one run before you are asked"),
    ("budget",   "task_usd",  "Dollars for one task before you are asked; no limit if absent"),
    ("budget",   "day_usd",   "Dollars for one day before you are asked; no limit if absent"),
    ("sandbox",  "caches",    "Package caches that agents and tests may write to"),
];

/// The text of a new `adjutant.toml`: it reads without a problem, and so does every commented key once its `#` is gone (the
/// tests with commit hooks in the place of those without).
pub fn template(found: &TemplateValues) -> String {
    let mut text = String::from(
        "# Adjutant's settings for this project. Every other key has a default: `adj config defaults` prints them all.\n",
    );
    let mut last = "";
    for &(path, name, about) in SHORT {
        let section = SECTIONS.iter().find(|section| section.path == path).expect("a section of the table");
        let key = section.keys.iter().find(|key| key.path == name).expect("a key of its section");
        let line = match (setting(section, key, found), path, name) {
            (Some(value), ..) => format!("{name} = {value}"),
            (None, "test", _) | (None, "budget", _) => format!("# {name} = {}", example(section, key)),
            // The default is right, and nothing was found that is not in it.
            (None, ..) => continue,
        };
        if last != path {
            let _ = write!(text, "\n[{}]\n", path.replace('*', FIRST_AGENT));
            last = path;
        }
        let from = match name {
            "worktree.create" => found.create.as_ref().map(|(_, from)| from),
            "worktree.remove" => found.remove.as_ref().map(|(_, from)| from),
            "copy" => found.copy.as_ref().map(|(_, from)| from),
            _ => None,
        };
        let about = match (path, name, &found.test) {
            ("test", "command", Some((_, by))) => format!("{about}; found by {by}"),
            ("test", "command", None) => {
                "No tests were found: set the command, or every task needs you".to_owned()
            }
            ("agents.*", "adapter", _) => format!("{about}: {}", agents::choices()),
            _ => from.map_or(about.to_owned(), |from| format!("{about}; from {from}")),
        };
        let _ = match line.len() > COMMENT_AT {
            true => writeln!(text, "# {about}\n{line}"),
            false => writeln!(text, "{line:<COMMENT_AT$} # {about}"),
        };
        let hooks = found.commit_hooks.as_ref().filter(|hooks| hooks.command.is_some() && !found.with_hooks);
        if let (("test", "command"), Some(hooks)) = ((path, name), hooks) {
            let command = toml_edit::Value::from(found.test_command(true).unwrap_or_default());
            let by = &hooks.by;
            let _ =
                writeln!(text, "# Commit hooks do not run in trees. To run those of {by} with the tests:");
            let _ = writeln!(text, "# command = {command}");
        }
    }
    text
}

/// Every key with its default: a settings file that changes nothing.
pub fn defaults() -> String {
    let mut text = String::from(
        "# Every key of adjutant.toml with its default. A key behind `#` has none: its value is an example.\n",
    );
    for section in SECTIONS {
        let name = match section.path {
            "agents.*" => section.path.replace('*', FIRST_AGENT),
            "webhooks.*" => section.path.replace('*', "chat"),
            _ => section.path.replace('*', "database"),
        };
        // A service or webhook that is named must be complete, and there is none by default.
        let named = matches!(section.path, "services.*" | "webhooks.*");
        let off = if named { "# " } else { "" };
        let _ = write!(text, "\n# {}\n{off}[{name}]\n", section.about);
        for key in section.keys {
            let off = if named || key.default().is_empty() { "# " } else { "" };
            let line = format!("{off}{} = {}", key.path, example(section, key));
            let _ = writeln!(text, "{line:<COMMENT_AT$} # {}", key.about);
        }
    }
    text
}

/// What `adj init` puts in force.
fn setting(section: &Section, key: &Key, found: &TemplateValues) -> Option<String> {
    let quoted = |text: &str| toml_edit::Value::from(text).to_string();
    let listed = |texts: &mut dyn Iterator<Item = &str>| {
        let texts: Vec<_> = texts.map(quoted).collect();
        (!texts.is_empty()).then(|| format!("[{}]", texts.join(", ")))
    };
    let variables = found.variables.iter().copied();
    let kind = found.adapter.unwrap_or(AdapterKind::Claude);
    match (section.path, key.path) {
        ("project", "main") => found.main.as_deref().map(quoted).filter(|main| *main != key.default()),
        ("fleet", "agent" | "workers" | "review") => Some(key.default().into_owned()),
        ("test", "command") => found.test_command(found.with_hooks).as_deref().map(quoted),
        ("test", "env") => listed(&mut variables.into_iter()),
        ("hooks", "worktree.create") => found.create.as_ref().map(|(command, _)| quoted(command)),
        ("hooks", "worktree.remove") => found.remove.as_ref().map(|(command, _)| quoted(command)),
        // A first download of all packages takes longer than most hooks.
        ("hooks", "timeout") => found.create.as_ref().map(|_| r#""15m""#.to_owned()),
        ("worktree", "copy") => {
            found.copy.as_ref().and_then(|(paths, _)| listed(&mut paths.iter().map(String::as_str)))
        }
        ("agents.*", "adapter") => Some(quoted(machines::Wire::name(kind))),
        // A task of real size takes more turns than the kind's own limit has.
        ("agents.*", "max_turns") => example_of("agents.*.max_turns").map(str::to_owned),
        ("agents.*", "env") => listed(&mut kind.adapter().variables().iter().copied().chain(variables)),
        ("agents.*", "command") => match kind.adapter().program() {
            None => Some(r#"["your-agent"]"#.to_owned()),
            program => {
                program.filter(|_| kind != AdapterKind::Claude).map(|name| format!("[{}]", quoted(name)))
            }
        },
        ("sandbox", "caches") => {
            let of_hooks = found.commit_hooks.as_ref().filter(|_| found.with_hooks).and_then(|it| it.cache);
            listed(&mut found.caches.iter().map(String::as_str).chain(of_hooks))
        }
        _ => None,
    }
}

fn example(section: &Section, key: &Key) -> Cow<'static, str> {
    let default = key.default();
    if !default.is_empty() {
        return default;
    }
    example_of(&format!("{}.{}", section.path, key.path)).unwrap_or("\"…\"").into()
}

fn example_of(path: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(known, _)| *known == path).map(|(_, example)| *example)
}
