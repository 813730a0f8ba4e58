//! The file that `adj init` writes: every key with its sentence, those that matter now in force, the others commented.

use super::keys::{Key, SECTIONS, Section};
use crate::agents::AdapterKind;
use crate::workplace::tests;
use std::fmt::Write;

/// What `adj init` found out before it writes the file.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The branch that work lands on; `main` where nothing is said.
    pub main: Option<String>,
    /// The agent program that is installed here.
    pub adapter: Option<AdapterKind>,
    /// The tests of the repository.
    pub tests: tests::Found,
}

/// The name under which `adj init` writes the first agent.
const FIRST_AGENT: &str = "coder";
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
    ("hooks.worktree.create", r#""npm ci""#),
    ("hooks.worktree.remove", r#""docker compose down""#),
    ("hooks.step.before", r#""./before-step""#),
    ("hooks.step.after", r#""./after-step""#),
    ("hooks.notify", r#""notify-send Adjutant""#),
    ("hooks.landed", r#""git push origin main""#),
    ("limits.memory", r#""8 GB""#),
    ("services.*.health", r#""tcp 127.0.0.1:5432""#),
];

/// The text of a new `adjutant.toml`: it reads without a problem, and so does every commented key once its `#` is gone.
pub fn template(found: &Found) -> String {
    let mut text = String::from(
        "# What Adjutant is told about this project. A line that begins with `#` shows the default, or an example\n\
         # where there is none. `docs/configuration.md` explains every key; unknown keys are errors.\n",
    );
    for section in SECTIONS {
        let name = match section.path {
            "agents.*" => section.path.replace('*', FIRST_AGENT),
            _ => section.path.replace('*', "database"),
        };
        // A named table in force would have to be complete, so only the fleet's agent is.
        let off = if section.path == "services.*" { "# " } else { "" };
        let _ = write!(text, "\n# {}\n{off}[{name}]\n", section.about);
        for key in section.keys {
            let set = setting(section, key, found);
            let shown = set.clone().unwrap_or_else(|| example(section, key).to_owned());
            let off = if set.is_some() { "" } else { "# " };
            let line = format!("{off}{} = {shown}", key.path);
            let _ = writeln!(text, "{line:<32} # {}", key.about);
        }
        if section.path == "test" {
            let _ = writeln!(text, "{}", note(&found.tests));
        }
    }
    text
}

/// What is in force from the start.
fn setting(section: &Section, key: &Key, found: &Found) -> Option<String> {
    let quoted = |text: &str| toml_edit::Value::from(text).to_string();
    let kind = found.adapter.unwrap_or(AdapterKind::Claude);
    match (section.path, key.path) {
        ("project", "main") => Some(quoted(found.main.as_deref().unwrap_or("main"))),
        ("fleet", "agent" | "workers" | "review") => Some(key.default.to_owned()),
        ("test", "command") => found.tests.command().map(quoted),
        ("agents.*", "adapter") => Some(quoted(machines::Wire::name(kind))),
        // A task of real size takes more turns than the kind's own limit has.
        ("agents.*", "max_turns") => example_of("agents.*.max_turns").map(str::to_owned),
        ("agents.*", "env") => {
            let names: Vec<_> = kind.adapter().variables().iter().map(|name| quoted(name)).collect();
            (!names.is_empty()).then(|| format!("[{}]", names.join(", ")))
        }
        ("agents.*", "command") if kind.adapter().program().is_none() => Some(r#"["your-agent"]"#.to_owned()),
        ("sandbox", "caches") if !found.tests.caches().is_empty() => {
            let caches: Vec<_> = found.tests.caches().into_iter().map(quoted).collect();
            Some(format!("[{}]", caches.join(", ")))
        }
        _ => None,
    }
}

fn example(section: &Section, key: &Key) -> &'static str {
    if !key.default.is_empty() {
        return key.default;
    }
    example_of(&format!("{}.{}", section.path, key.path)).unwrap_or("\"…\"")
}

fn example_of(path: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(known, _)| *known == path).map(|(_, example)| *example)
}

fn note(found: &tests::Found) -> String {
    match found.first() {
        Some(tests) => format!("# Found by {}.", tests.by),
        None => {
            "# No tests were found here: name the command above, or the gate says that nothing was tested."
                .to_owned()
        }
    }
}
