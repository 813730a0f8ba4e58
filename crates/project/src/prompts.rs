//! Prompts of agents: short texts with variables, shipped or the project's own.
//!
//! Invariants: a template with an unknown variable is not loaded; the value of a variable is inserted once and never
//! interpreted, so no text of a ticket or a test can name a variable or open a part.
//!
//! `{{name}}` is replaced. Lines from `{{#name}}` to `{{/name}}` are left out if the variable is empty. Both are on
//! lines of their own, and such parts are not nested.

use crate::settings::{Settings, nearest};
use kernel::effect::Prompt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest template file that is read.
pub const TEMPLATE_BYTES_MAX: u64 = 256 * 1024;

pub use agents::PromptKind as Kind;

machines::wire_enum! {
    /// What a template may name.
    pub enum Variable {
        /// The id of the task.
        Task = "task",
        /// The title of the task.
        Title = "title",
        /// The text of the ticket.
        Body = "body",
        /// The acceptance criteria.
        Acceptance = "acceptance",
        /// The work plan, a point for each line.
        Plan = "plan",
        /// Comments of people, and decisions, since the last step.
        Notes = "notes",
        /// The name of the worker.
        Worker = "worker",
        /// The branch of the task.
        Branch = "branch",
        /// Where the main branch is to be found in the tree's repository.
        Main = "main",
        /// The test command.
        Test = "test",
        /// The output of the tests or the merge.
        Output = "output",
        /// The name of the room.
        Room = "room",
        /// The topic of the room.
        Topic = "topic",
        /// The agents in the room.
        Members = "members",
        /// The name of the agent whose turn it is.
        Agent = "agent",
        /// The messages in the room since the agent's last turn.
        Said = "said",
        /// What ends the turn.
        Ends = "ends",
        /// How long the turn lasts at most.
        Seconds = "seconds",
        /// That the agent was in the middle of this turn, where it was.
        Again = "again",
        /// Who asks the architect.
        By = "by",
        /// The request to the architect: a spec, a question, or the text of a task, as its author wrote it.
        Asked = "asked",
        /// The changes that are reviewed, and where they were cut.
        Diff = "diff",
        /// The comments on the task.
        Comments = "comments",
        /// The commit that is reviewed.
        Tip = "tip",
    }
}

/// What the variables hold. What is empty leaves its part of the text out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    pub task: String,
    pub title: String,
    /// Without the acceptance criteria where they are given apart; [`documents::tickets::split_acceptance`] parts them.
    pub body: String,
    pub acceptance: String,
    /// Points; they are written as a list.
    pub plan: Vec<String>,
    /// Notes; they are written as a list.
    pub notes: Vec<String>,
    pub worker: String,
    pub branch: String,
    pub main: String,
    pub test: String,
    pub output: String,
    pub room: String,
    pub topic: String,
    pub members: Vec<String>,
    pub agent: String,
    pub said: String,
    pub ends: String,
    pub seconds: String,
    pub again: String,
    pub by: String,
    pub asked: String,
    pub diff: String,
    /// Comments; they are written one after the other.
    pub comments: Vec<String>,
    pub tip: String,
}

impl Variables {
    fn get(&self, variable: Variable) -> String {
        match variable {
            Variable::Task => self.task.clone(),
            Variable::Title => self.title.clone(),
            Variable::Body => self.body.trim().to_owned(),
            Variable::Acceptance => self.acceptance.trim().to_owned(),
            Variable::Plan => list(&self.plan),
            Variable::Notes => list(&self.notes),
            Variable::Worker => self.worker.clone(),
            Variable::Branch => self.branch.clone(),
            Variable::Main => self.main.clone(),
            Variable::Test => self.test.clone(),
            Variable::Room => self.room.clone(),
            Variable::Topic => self.topic.clone(),
            Variable::Members => list(&self.members),
            Variable::Agent => self.agent.clone(),
            Variable::Said => self.said.clone(),
            Variable::Ends => self.ends.clone(),
            Variable::Seconds => self.seconds.clone(),
            Variable::Again => self.again.clone(),
            Variable::Output => fenced("text", &self.output),
            Variable::By => self.by.clone(),
            Variable::Asked => fenced("text", &self.asked),
            Variable::Diff => fenced("diff", &self.diff),
            Variable::Comments => fenced("text", &self.comments.join("\n\n")),
            Variable::Tip => self.tip.clone(),
        }
    }

    /// The kind of text that the kernel asks for; its output and notes are taken over.
    pub fn fill_from(&mut self, prompt: &Prompt) -> Kind {
        let (output, notes) = match prompt {
            Prompt::Init { notes } | Prompt::Step { notes } => ("", notes),
            Prompt::TestFailure { output, notes } | Prompt::MergeConflict { output, notes } => {
                (output.as_str(), notes)
            }
        };
        self.output = output.to_owned();
        self.notes = notes.clone();
        prompt.into()
    }
}

/// The texts of a project, each known to name only what there is.
#[derive(Clone, Debug)]
pub struct Prompts {
    templates: Vec<Template>,
}

#[derive(Clone, Debug)]
struct Template {
    kind: Kind,
    text: String,
    /// The project's own file; absent for a shipped text.
    path: Option<PathBuf>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Put(Variable),
    /// Only where the variable is not empty.
    Where(Variable, Vec<Part>),
}

/// Why a template cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("cannot read {path} of prompts.{kind}: {error}")]
    Unreadable { kind: Kind, path: PathBuf, error: io::Error },
    #[error("{path} of prompts.{kind} is larger than {TEMPLATE_BYTES_MAX} bytes")]
    TooLarge { kind: Kind, path: PathBuf },
    #[error("{path} of prompts.{kind} is not UTF-8")]
    NotText { kind: Kind, path: PathBuf },
    #[error("{path}:{line}: {what}; {hint}")]
    Wrong { kind: Kind, path: PathBuf, line: usize, what: String, hint: String },
}

impl Prompts {
    /// The shipped texts.
    pub fn shipped() -> Prompts {
        let parse = |kind| Template::parse(kind, shipped(kind).to_owned(), None);
        let templates = kinds().map(parse).collect::<Result<_, _>>();
        Prompts { templates: templates.expect("the shipped texts name what there is") }
    }

    /// The texts that the settings name, relative to `root`, and the shipped ones for the rest.
    pub fn load(settings: &Settings, root: &Path) -> Result<Prompts, PromptError> {
        let templates = kinds().map(|kind| {
            let own = match kind {
                Kind::Init => &settings.prompts.init,
                Kind::Step => &settings.prompts.step,
                Kind::TestFailure => &settings.prompts.test_failure,
                Kind::MergeConflict => &settings.prompts.merge_conflict,
                Kind::Turn => &settings.prompts.turn,
                Kind::Spec => &settings.prompts.spec,
                Kind::Review => &settings.prompts.review,
                Kind::Question => &settings.prompts.question,
                Kind::Budget => &settings.prompts.budget,
            };
            match own {
                Some(path) => Template::parse(kind, read(kind, root, &root.join(path))?, Some(path.clone())),
                None => Template::parse(kind, shipped(kind).to_owned(), None),
            }
        });
        Ok(Prompts { templates: templates.collect::<Result<_, _>>()? })
    }

    /// The text with the variables put in, each once.
    pub fn render(&self, kind: Kind, variables: &Variables) -> String {
        let mut text = String::new();
        put(&self.template(kind).parts, variables, &mut text);
        let text = text.trim();
        format!("{text}\n")
    }

    /// The template as it is written, for `adj prompt show`.
    pub fn text(&self, kind: Kind) -> &str {
        &self.template(kind).text
    }

    /// The project's own file that it comes from; nothing for a shipped text.
    pub fn path(&self, kind: Kind) -> Option<&Path> {
        self.template(kind).path.as_deref()
    }

    fn template(&self, kind: Kind) -> &Template {
        let template = self.templates.iter().find(|template| template.kind == kind);
        template.expect("there is a template of every kind")
    }
}

fn kinds() -> impl Iterator<Item = Kind> {
    <Kind as machines::Wire>::ALL.iter().copied()
}

fn shipped(kind: Kind) -> &'static str {
    match kind {
        Kind::Init => include_str!("prompts/init.md"),
        Kind::Step => include_str!("prompts/step.md"),
        Kind::TestFailure => include_str!("prompts/test_failure.md"),
        Kind::MergeConflict => include_str!("prompts/merge_conflict.md"),
        Kind::Turn => include_str!("prompts/turn.md"),
        Kind::Spec => include_str!("prompts/spec.md"),
        Kind::Review => include_str!("prompts/review.md"),
        Kind::Question => include_str!("prompts/question.md"),
        Kind::Budget => include_str!("prompts/budget.md"),
    }
}

fn read(kind: Kind, root: &Path, path: &Path) -> Result<String, PromptError> {
    let unreadable = |error| PromptError::Unreadable { kind, path: path.to_owned(), error };
    base::files::not_into_git(root, path).map_err(unreadable)?;
    let file = std::fs::File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a plain file")));
    }
    let mut bytes = Vec::new();
    file.take(TEMPLATE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > TEMPLATE_BYTES_MAX {
        return Err(PromptError::TooLarge { kind, path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| PromptError::NotText { kind, path: path.to_owned() })
}

impl Template {
    fn parse(kind: Kind, text: String, path: Option<PathBuf>) -> Result<Template, PromptError> {
        let wrong = |line, what: String, hint: String| PromptError::Wrong {
            kind,
            path: path.clone().unwrap_or_else(|| PathBuf::from(format!("{kind}.md"))),
            line,
            what,
            hint,
        };
        let mut parts = Vec::new();
        let mut open: Option<(Variable, usize, Vec<Part>)> = None;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            let mark = line.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
            let (begins, ends) =
                (mark.and_then(|m| m.strip_prefix('#')), mark.and_then(|m| m.strip_prefix('/')));
            match (begins, ends, &mut open) {
                (Some(name), _, None) => {
                    let variable = variable(name).map_err(|(what, hint)| wrong(number, what, hint))?;
                    open = Some((variable, number, Vec::new()));
                }
                (Some(_), _, Some((outer, ..))) => {
                    let what = format!("this part begins inside the part of `{outer}`");
                    return Err(wrong(number, what, format!("end that one first, with `{{{{/{outer}}}}}`")));
                }
                (_, Some(name), _) => match open.take() {
                    Some((variable, _, inner)) if machines::Wire::name(variable) == name.trim() => {
                        parts.push(Part::Where(variable, inner));
                    }
                    _ => {
                        let what = format!("`{{{{/{name}}}}}` ends no part");
                        return Err(wrong(number, what, format!("begin it with `{{{{#{name}}}}}`")));
                    }
                },
                (None, None, open) => {
                    let into = open.as_mut().map_or(&mut parts, |(_, _, inner)| inner);
                    in_line(line, into).map_err(|(what, hint)| wrong(number, what, hint))?;
                }
            }
        }
        if let Some((variable, number, _)) = open {
            let what = format!("the part of `{variable}` has no end");
            return Err(wrong(number, what, format!("end it with a line `{{{{/{variable}}}}}`")));
        }
        Ok(Template { kind, text, path, parts })
    }
}

/// What was wrong, and what to do.
type Fault = (String, String);

fn in_line(mut line: &str, parts: &mut Vec<Part>) -> Result<(), Fault> {
    while let Some((before, rest)) = line.split_once("{{") {
        let Some((name, after)) = rest.split_once("}}") else {
            return Err(("`{{` has no `}}` in its line".to_owned(), "close it".to_owned()));
        };
        if name.starts_with(['#', '/']) {
            let what = format!("`{{{{{name}}}}}` is not alone in its line");
            return Err((what, "give it a line of its own".to_owned()));
        }
        parts.push(Part::Text(before.to_owned()));
        parts.push(Part::Put(variable(name)?));
        line = after;
    }
    parts.push(Part::Text(line.to_owned()));
    Ok(())
}

fn variable(name: &str) -> Result<Variable, Fault> {
    use machines::Wire;
    let name = name.trim();
    let known = Variable::ALL.iter().copied().find(|known| known.name() == name);
    known.ok_or_else(|| {
        let names = Variable::ALL.iter().map(|known| known.name());
        let all = names.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = nearest(name, names).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
        (format!("unknown variable `{}`", name.escape_debug()), format!("{meant}there are {all}"))
    })
}

fn put(parts: &[Part], variables: &Variables, text: &mut String) {
    for part in parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Put(variable) => text.push_str(&variables.get(*variable)),
            Part::Where(variable, inner) if !variables.get(*variable).is_empty() => {
                put(inner, variables, text)
            }
            Part::Where(..) => {}
        }
    }
}

fn list(points: &[String]) -> String {
    let points = points.iter().map(|point| point.trim()).filter(|point| !point.is_empty());
    points.map(|point| format!("- {}", point.replace('\n', "\n  "))).collect::<Vec<_>>().join("\n")
}

/// What others wrote is not Markdown of ours: in a block of its own it stays what it is, and cannot end that block.
fn fenced(language: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = fence(text);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// A fence longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Folder;

    fn variables() -> Variables {
        Variables {
            task: "ab-1".into(),
            title: "Rows jump".into(),
            body: "They should not.\n".into(),
            plan: vec!["look".into(), "mend".into()],
            worker: "A".into(),
            branch: "agent/A-ab-1".into(),
            main: "origin/main".into(),
            test: "cargo test".into(),
            ..Variables::default()
        }
    }

    fn own(text: &str) -> Result<Prompts, PromptError> {
        let folder = Folder::new();
        folder.write("p/own.md", text);
        let settings = Settings::parse("[prompts]\nstep = \"p/own.md\"\n").unwrap();
        Prompts::load(&settings, &folder.path)
    }

    #[test]
    fn the_first_prompt_says_what_to_do_and_what_not() {
        let text = Prompts::shipped().render(Kind::Init, &variables());
        for part in [
            "`A`",
            "`ab-1`",
            "# Rows jump",
            "They should not.",
            "- look\n- mend",
            "agent/A-ab-1",
            "`cargo test`",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for rule in ["Never push", "Commit your work", "adjutant.toml", ".tickets", "\nDONE\n"] {
            assert!(text.contains(rule), "{rule} is not in\n{text}");
        }
        assert!(!text.contains("What must hold"), "an empty part is left out\n{text}");
        assert!(!text.contains("{{") && !text.contains("\n\n\n"), "{text}");
    }

    #[test]
    fn every_shipped_text_reads_well_with_much_and_with_little() {
        let mut full = variables();
        full.acceptance = "No row jumps.".into();
        full.notes = vec!["a person said\nso".into()];
        full.output = "FAILED x".into();
        for kind in kinds() {
            for variables in [&full, &Variables::default()] {
                let text = Prompts::shipped().render(kind, variables);
                let is_of_task = kind.of_task(Vec::new(), String::new()).is_some();
                assert_eq!(text.contains("\nDONE\n"), is_of_task, "{kind}: {text}");
                assert!(!text.contains("{{") && !text.contains("\n\n\n\n"), "{kind}: {text}");
            }
        }
        let text = Prompts::shipped().render(Kind::MergeConflict, &full);
        assert!(text.contains("git merge origin/main") && text.contains("```text\nFAILED x\n```"), "{text}");
        assert!(text.contains("- a person said\n  so"), "{text}");
    }

    #[test]
    fn what_a_variable_holds_is_never_looked_at_again() {
        let mut hostile = variables();
        hostile.title = "{{main}} {{#body}} {{/body}} {{unknown}}".into();
        hostile.output = "```\n{{task}}\n````".into();
        let text = Prompts::shipped().render(Kind::TestFailure, &hostile);
        assert!(text.contains("{{main}} {{#body}} {{/body}} {{unknown}}"), "{text}");
        assert!(text.contains("`````text\n```\n{{task}}\n````\n`````"), "{text}");
    }

    #[test]
    fn the_projects_own_text_takes_the_shipped_ones_place() {
        let prompts =
            own("On with {{task}}: {{ title }}!\n{{#notes}}\nNB\n{{notes}}\n{{/notes}}\nbye").unwrap();
        assert_eq!(prompts.render(Kind::Step, &variables()), "On with ab-1: Rows jump!\nbye\n");
        assert_eq!(prompts.path(Kind::Step), Some(Path::new("p/own.md")));
        assert_eq!(prompts.path(Kind::Init), None);
    }

    #[test]
    fn a_template_that_names_what_there_is_not_is_refused() {
        let refused = |text: &str| own(text).unwrap_err().to_string();
        let all = "there are `task`, `title`, `body`, `acceptance`, `plan`, `notes`, `worker`, `branch`, `main`, `test`, `output`, \
                   `room`, `topic`, `members`, `agent`, `said`, `ends`, `seconds`, `again`, \
                   `by`, `asked`, `diff`, `comments`, `tip`";
        assert_eq!(
            refused("a\n{{titl}}"),
            format!("p/own.md:2: unknown variable `titl`; did you mean `title`? {all}")
        );
        assert_eq!(refused("{{#zebra}}\n{{/zebra}}"), format!("p/own.md:1: unknown variable `zebra`; {all}"));
        assert_eq!(refused("{{task"), "p/own.md:1: `{{` has no `}}` in its line; close it");
        assert_eq!(
            refused("{{#body}}\nx"),
            "p/own.md:1: the part of `body` has no end; end it with a line `{{/body}}`"
        );
        assert_eq!(refused("{{/body}}\n"), "p/own.md:1: `{{/body}}` ends no part; begin it with `{{#body}}`");
        assert!(refused("x {{#body}}\n").contains("is not alone in its line"));
        assert!(refused("{{#body}}\n{{#plan}}\n").contains("begins inside the part of `body`"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let settings = Settings::parse("[prompts]\ninit = \"absent.md\"\n").unwrap();
        let error = Prompts::load(&settings, Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere/absent.md of prompts.init: "), "{error}");
        let folder = Folder::new();
        folder.write("absent.md", b"\xff");
        let error = Prompts::load(&settings, &folder.path).unwrap_err().to_string();
        assert!(error.ends_with("is not UTF-8"), "{error}");
    }

    #[test]
    fn the_kernels_prompt_chooses_the_text() {
        let mut variables = variables();
        let prompt = Prompt::TestFailure { output: "red".into(), notes: vec!["n".into()] };
        assert_eq!(variables.fill_from(&prompt), Kind::TestFailure);
        assert_eq!((variables.output.as_str(), variables.notes.len()), ("red", 1));
        assert_eq!(variables.fill_from(&Prompt::Step { notes: vec![] }), Kind::Step);
        assert!(variables.output.is_empty());
    }
}
