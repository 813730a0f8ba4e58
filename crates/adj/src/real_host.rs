//! The host, for real: git, the settings file, what agents printed, and this machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kernel::World;
use kernel::world::Task;
use machines::Wire;
use machines::names::TaskId;
use runtime::agents::{self, AdapterKind, CommandIs, EntryKind};
use runtime::git::{Merged, Oid, Repository, RestoreTo};
use runtime::keeper;
use runtime::layout::Layout;
use runtime::prompts::{self, Prompts};
use runtime::runner::{Step, desktop};
use runtime::settings::{self, Settings, SettingsError, trust};
use runtime::workplace;
use serde_json::{Value, json};

use crate::api::host::{
    Commit, Configured, Diff, Entry, Finding, Host, Level, MovedBranch, Of, Prompt, Restore, Salvage,
    SalvageId, Span, TestRun, Trash, size,
};
use crate::api::{Problem, time};

/// A transcript's cursor holds the step in its upper part and the entry in its lower.
const ENTRIES_BITS: u32 = 32;
/// What a command may begin with that is no program.
const SHELL_WORDS: [&str; 10] = ["true", "false", "test", "cd", "for", "if", "while", "set", "export", "."];
/// How often a transcript that is followed is looked at: its keeper tells only the owner.
const LOOK: Duration = Duration::from_millis(150);

/// The project's host.
pub struct RealHost {
    layout: Layout,
}

impl RealHost {
    pub fn new(layout: Layout) -> RealHost {
        RealHost { layout }
    }

    fn settings(&self) -> Result<Settings, Problem> {
        trust::in_force(&self.layout).map(|in_force| in_force.settings).map_err(of_settings)
    }

    fn repository(&self) -> Result<Repository, Problem> {
        // What is looked at in git does not depend on the rest of the settings.
        let settings = self.settings().or_else(|_| Settings::parse("").map_err(of_settings))?;
        runtime::runner::open_repository(&self.layout, &settings).map_err(of_git)
    }

    /// Nothing but what was saved is shown or given back.
    fn saved(&self, repository: &Repository, id: &SalvageId) -> Result<(), Problem> {
        let saved = repository.salvage().map_err(of_git)?;
        let known = saved.into_iter().filter_map(salvage_of).any(|salvage| salvage.id == *id);
        if known { Ok(()) } else { Err(nothing_saved(id)) }
    }

    /// The steps of a task or of a worker, oldest first.
    fn steps(&self, of: &Of) -> Vec<Step> {
        let entries = std::fs::read_dir(self.layout.steps()).into_iter().flatten().flatten();
        let wanted = |step: &Step| match of {
            Of::Task(id) => step.file.task == *id,
            Of::Worker(name) => step.file.worker == *name,
        };
        let mut steps: Vec<Step> =
            entries.filter_map(|entry| Step::read(&entry.path())).filter(wanted).collect();
        steps.sort_by_key(|step| step.file.started_at);
        steps
    }
}

fn of_git(error: impl std::fmt::Display) -> Problem {
    Problem::new(502, "GIT", error.to_string())
}

fn of_settings(error: SettingsError) -> Problem {
    Problem::new(422, "SETTINGS", error.to_string()).hint("`adj config check` lists all that is wrong")
}

fn of_io(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(500, "IO", format!("cannot use `{}`: {error}", path.display()))
}

/// A piece of saved work, where its name is one of ours.
fn salvage_of(entry: runtime::git::SavedEntry) -> Option<Salvage> {
    let id = SalvageId { task: entry.task.parse().ok()?, effect: entry.effect.parse().ok()? };
    let commits = entry.commits;
    Some(Salvage { id, commit: entry.commit.to_string(), at: entry.at * 1000, files: entry.files, commits })
}

impl Host for RealHost {
    fn diff(&self, task: &Task, stat: bool) -> Result<Diff, Problem> {
        let tip = task.landed.as_ref().map(|landed| landed.tip.clone());
        let tip = tip.or_else(|| task.place.as_ref().and_then(|place| place.tip.clone()));
        let tip = tip.as_deref().and_then(Oid::new).ok_or_else(|| {
            Problem::new(409, "NO_CHANGES", format!("task `{}` has no branch yet", task.id))
                .hint("it gets one when a worker takes it")
        })?;
        let repository = self.repository()?;
        repository.ensure_land().map_err(of_git)?;
        // Of what has landed, main from before is what it changed.
        let landed = task.landed.as_ref();
        let landed = landed.and_then(|landed| Some((Oid::new(&landed.old_main)?, Oid::new(&landed.merge)?)));
        let (main, diff) = match landed {
            Some((old, merge)) => {
                let diff = repository.diff_landed(&tip, &old, &merge, stat);
                (old, diff)
            }
            None => {
                let main = repository.main_tip().map_err(of_git)?;
                let diff =
                    if stat { repository.diff_stat(&tip, &main) } else { repository.diff(&tip, &main) };
                (main, diff)
            }
        };
        let branch = task.place.as_ref().filter(|_| task.landed.is_none()).map(|place| place.branch.clone());
        let moved = match branch {
            Some(branch) => repository.moved_by_user(&task.id, &branch, &tip).map_err(of_git)?,
            None => None,
        };
        let moved = moved.map(|(branch, commit, commits)| MovedBranch {
            branch,
            commit: commit.short().to_owned(),
            commits,
        });
        Ok(Diff { base: main.to_string(), tip: tip.to_string(), diff: diff.map_err(of_git)?, moved })
    }

    fn commits(&self, task: &Task) -> Result<Vec<Commit>, Problem> {
        let Some(tip) = task.place.as_ref().and_then(|place| Oid::new(place.tip.as_deref()?)) else {
            return Ok(Vec::new());
        };
        let repository = self.repository()?;
        repository.ensure_land().map_err(of_git)?;
        let main = repository.main_tip().map_err(of_git)?;
        let commits = repository.commits_of(&tip, &main).map_err(of_git)?;
        Ok(commits.into_iter().map(|(oid, subject)| Commit { oid: oid.to_string(), subject }).collect())
    }

    fn revert(&self, task: &Task, by: &TaskId) -> Result<String, Problem> {
        let id = &task.id;
        let landed = task.landed.as_ref().filter(|landed| landed.merge != landed.old_main);
        let nothing =
            || Problem::new(409, "NOT_LANDED", format!("main has nothing of `{id}` that could be undone"));
        let commit = landed.and_then(|landed| Oid::new(&landed.merge)).ok_or_else(nothing)?;
        let repository = self.repository()?;
        repository.ensure_land().map_err(of_git)?;
        let by_hand = match repository.is_merge(&commit).map_err(of_git)? {
            true => format!("git revert -m 1 {commit}"),
            false => format!("git revert {commit}"),
        };
        let title: String = task.title.chars().filter(|c| !c.is_control()).take(200).collect();
        let message = format!("Revert \"{id}: {title}\"\n\nThis reverts commit {commit}.\n");
        // The same commit where it is asked for twice.
        let at = task.approved.as_ref().map_or(task.created_at, |approved| approved.at) / 1000;
        // The ticket stays closed: opened again, it would be done again.
        let ticket = task.ticket.as_ref().map(|ticket| {
            let dir = self.settings().map(|settings| settings.tickets.dir).unwrap_or_default();
            dir.join(format!("{ticket}.md")).display().to_string()
        });
        let branch = kernel::undo_branch(by);
        let made = repository.revert(by, &branch, &commit, ticket.as_deref(), &message, at);
        match made.map_err(|error| of_git(error).hint(format!("by hand: {by_hand}")))? {
            Merged::Clean { commit, .. } => Ok(commit.to_string()),
            Merged::Nothing => {
                Err(nothing().hint("it was taken back already, or everything has changed since"))
            }
            Merged::Conflict { files, .. } => {
                let files = if files.is_empty() { "main".to_owned() } else { files.join(", ") };
                let detail =
                    format!("what `{id}` brought cannot be taken back by itself: {files} has changed since");
                Err(Problem::new(409, "CONFLICT", detail).hint(format!("resolve it by hand: `{by_hand}`")))
            }
        }
    }

    fn salvage(&self) -> Result<Vec<Salvage>, Problem> {
        let saved = self.repository()?.salvage().map_err(of_git)?;
        Ok(saved.into_iter().filter_map(salvage_of).collect())
    }

    fn salvage_show(&self, id: &SalvageId) -> Result<String, Problem> {
        let repository = self.repository()?;
        self.saved(&repository, id)?;
        repository.show_saved(&format!("{}{id}", SalvageId::REFS)).map_err(of_git)
    }

    fn salvage_restore(&self, id: &SalvageId, to: &Restore) -> Result<String, Problem> {
        let to = match to {
            Restore::Branch(name) => RestoreTo::Branch(name.clone()),
            Restore::Folder(folder) => RestoreTo::Folder(folder.clone()),
        };
        let repository = self.repository()?;
        self.saved(&repository, id)?;
        let restored = repository.restore(&format!("{}{id}", SalvageId::REFS), &to);
        restored.map_err(|error| Problem::new(409, "EXISTS", error.to_string()))
    }

    fn transcript(&self, of: &Of, span: &Span) -> Result<Vec<Entry>, Problem> {
        let deadline = span.wait.map(|wait| Instant::now() + wait);
        loop {
            let steps = self.steps(of);
            let read = if span.raw { lines_of } else { entries_of };
            let entries = match span.after {
                Some(after) => later(&steps, after, span.limit, read),
                None => last(&steps, span.limit, read),
            };
            match deadline {
                Some(deadline) if entries.is_empty() && Instant::now() < deadline => std::thread::sleep(LOOK),
                _ => return Ok(entries),
            }
        }
    }

    fn trash(&self, empty: bool) -> Result<Trash, Problem> {
        let repository = self.repository()?;
        let found = match empty {
            true => repository.sweep_trash(Duration::ZERO, 0).map_err(of_git)?,
            false => repository.trash(),
        };
        Ok(Trash {
            folder: repository.places().trees.join(runtime::layout::TRASH),
            trees: found.len(),
            bytes: found.iter().map(|entry| entry.bytes).sum(),
        })
    }

    fn tests(&self, task: &Task) -> Result<Vec<TestRun>, Problem> {
        let shown = |run: runtime::runner::KeptRun| TestRun {
            effect: run.name.split('.').next().unwrap_or_default().to_owned(),
            hook: run.hook().map(str::to_owned),
            command: run.command.clone(),
            folder: run.cwd.display().to_string(),
            ended: run.exit.as_ref().map(|exit| match (exit.code, exit.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (_, Some(signal)) => format!("signal {signal}"),
                _ => "not started".to_owned(),
            }),
            output: run.output(),
        };
        Ok(runtime::runner::runs_of(&self.layout, task.id.as_str()).into_iter().map(shown).collect())
    }

    fn prompts(&self) -> Result<Vec<Prompt>, Problem> {
        let settings = self.settings()?;
        let prompts = Prompts::load(&settings, self.layout.root())
            .map_err(|error| Problem::new(422, "SETTINGS", error.to_string()))?;
        let prompt = |kind: &prompts::Kind| Prompt {
            name: kind.name().to_owned(),
            file: prompts.path(*kind).map(|file| file.display().to_string()),
            text: prompts.text(*kind).to_owned(),
        };
        Ok(prompts::Kind::ALL.iter().map(prompt).collect())
    }

    fn prompt_for(&self, world: &World, task: &Task, kind: &str) -> Result<Prompt, Problem> {
        let Some(known) = prompts::Kind::read(kind) else {
            return Err(Problem::not_found(format!("there is no prompt `{}`", kind.escape_debug()))
                .hint("`adj prompt ls` lists the prompts"));
        };
        let settings = self.settings()?;
        let prompts = Prompts::load(&settings, self.layout.root())
            .map_err(|error| Problem::new(422, "SETTINGS", error.to_string()))?;
        let main = match &task.place {
            Some(place) => self.repository()?.name_of_main(&task.id, &place.tree).map_err(of_git)?,
            None => format!("origin/{}", settings.project.main),
        };
        let text =
            runtime::runner::prompt_now(&prompts, &settings, world, task, known, &main, self.layout.root());
        let file = prompts.path(known).map(|file| file.display().to_string());
        Ok(Prompt { name: known.name().to_owned(), file, text })
    }

    fn config(&self) -> Result<Configured, Problem> {
        let in_force = trust::in_force(&self.layout).map_err(of_settings)?;
        let path = self.layout.settings();
        let there = path.exists();
        Ok(Configured {
            file: there.then(|| path.display().to_string()),
            trusted: in_force.trusted,
            gone: in_force.gone,
            text: settings::show(&in_force.text).map_err(of_settings)?,
            settings: json!(in_force.settings.kernel()),
        })
    }

    fn rules(&self) -> Option<kernel::Config> {
        self.settings().ok().map(|settings| settings.kernel())
    }

    fn facts(&self) -> kernel::waiting::Facts {
        trust::facts(&self.layout)
    }

    fn config_check(&self) -> Result<Vec<Finding>, Problem> {
        let mut findings = Vec::new();
        match Settings::read(&self.layout.settings()) {
            Ok(settings) => {
                if let Err(error) = Prompts::load(&settings, self.layout.root()) {
                    findings.push(finding(Level::Error, "prompts", error.to_string(), None));
                }
                findings.extend(self.look_at_worktree(&settings));
                let places = self.look_at_places(&settings).unwrap_or_default().into_iter();
                findings.extend(places.filter(|place| place.level == Level::Error));
                for problem in settings.kernel().problems() {
                    findings.push(finding(Level::Error, settings::FILE, problem, None));
                }
                for warning in settings.warnings() {
                    findings.push(finding(Level::Warning, settings::FILE, warning, None));
                }
            }
            Err(SettingsError::Wrong { problems, .. }) => {
                for problem in problems {
                    let subject = format!("adjutant.toml:{}", problem.line);
                    findings.push(finding(Level::Error, &subject, problem.message, Some(problem.hint)));
                }
            }
            Err(error) => findings.push(finding(Level::Error, settings::FILE, error.to_string(), None)),
        }
        let in_force = trust::in_force(&self.layout);
        if in_force.is_ok_and(|in_force| !in_force.trusted) {
            let hint = "look at it, then `adj config trust`".to_owned();
            let text = "it came in with an agent's branch and is not in force yet".to_owned();
            findings.push(finding(Level::Warning, settings::FILE, text, Some(hint)));
        }
        if trust::is_gone(&self.layout) {
            let hint = "put it back, or `adj config forget` to go on with the defaults".to_owned();
            let text = "it is gone; the settings of before hold".to_owned();
            findings.push(finding(Level::Warning, settings::FILE, text, Some(hint)));
        }
        Ok(findings)
    }

    fn config_forget(&self) -> Result<Configured, Problem> {
        let path = self.layout.settings();
        if !trust::forget(&self.layout).map_err(|error| of_io(&path, error))? {
            return Err(Problem::new(409, "SETTINGS", "adjutant.toml is there, and holds")
                .hint("delete it first; then the defaults hold"));
        }
        self.config()
    }

    fn ticket_problems(&self) -> Result<Vec<Finding>, Problem> {
        let look = runtime::runner::look_alone(&self.layout);
        Ok(look.problems.into_iter().map(|problem| self.of_ticket(problem)).collect())
    }

    fn config_schema(&self) -> Result<Value, Problem> {
        Ok(settings::schema())
    }

    fn config_trust(&self) -> Result<Configured, Problem> {
        let path = self.layout.settings();
        Settings::read(&path).map_err(of_settings)?;
        trust::trust(&self.layout).map_err(|error| of_io(&path, error))?;
        self.config()
    }

    fn doctor(&self) -> Result<Vec<Finding>, Problem> {
        let mut findings = Vec::new();
        match self.repository() {
            Ok(repository) => {
                findings.push(finding(Level::Ok, "git", git_version(), None));
                for obstacle in repository.obstacles().map_err(of_git)? {
                    findings.push(finding(
                        Level::Error,
                        "repository",
                        obstacle.to_string(),
                        Some(obstacle.hint()),
                    ));
                }
            }
            Err(problem) => findings.push(finding(Level::Error, "git", problem.detail, problem.hint)),
        }
        findings.extend(self.config_check()?);
        let Ok(settings) = self.settings() else { return Ok(findings) };
        // What is wrong with them is said of the settings already.
        let places = self.look_at_places(&settings)?.into_iter();
        findings.extend(places.filter(|place| place.level != Level::Error));
        findings.extend(self.look_at_disk(&settings)?);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        findings.extend(look_at_sandbox(&settings, home.as_deref(), &self.layout));
        findings.push(look_at_limits(&settings));
        for missing in settings.sandbox.missing_caches(home.as_deref()) {
            let (level, hint) = match missing.path {
                Some(_) => (Level::Ok, "`adj run` makes it"),
                None => {
                    (Level::Warning, "make it, or take it out of adjutant.toml: agents cannot write there")
                }
            };
            let text = format!("`{}` of sandbox.caches is not there", missing.written);
            findings.push(finding(level, "sandbox", text, Some(hint.to_owned())));
        }
        for (name, agent) in &settings.agents {
            findings.push(self.look_at_agent(name.as_str(), agent));
        }
        findings.extend(look_at_desktop(&settings));
        findings.extend(self.look_at_packages(&settings));
        let command = settings.test.command.clone();
        let found =
            command.or_else(|| workplace::tests::find(self.layout.root()).command().map(str::to_owned));
        findings.extend(self.look_at_tickets(&settings));
        findings.push(match found {
            Some(command) => look_at_tests(&command),
            None if Repository::find(self.layout.root()).is_ok_and(|found| found.bare) => {
                let text = "looked for in each tree, since this repository is bare".to_owned();
                finding(Level::Ok, "tests", text, None)
            }
            None => {
                let text = "none were found, so every task needs a person".to_owned();
                finding(Level::Warning, "tests", text, Some("set `test.command` in adjutant.toml".to_owned()))
            }
        });
        Ok(findings)
    }

    fn init(&self) -> Result<Vec<Finding>, Problem> {
        let path = self.layout.settings();
        let there = path.exists();
        let tests = workplace::tests::find(self.layout.root());
        let main = main_branch(self.layout.root())?;
        let installed =
            |kind: &AdapterKind| kind.adapter().program().is_some_and(|name| which(name).is_some());
        let adapter = AdapterKind::ALL.iter().copied().find(installed);
        let text = settings::template(&settings::Found { main: Some(main), adapter, tests: tests.clone() });
        let settings = if there { self.settings()? } else { Settings::parse(&text).map_err(of_settings)? };
        let repository = runtime::runner::open_repository(&self.layout, &settings).map_err(of_git)?;
        let obstacles = repository.obstacles().map_err(of_git)?;
        if let Some(obstacle) = obstacles.first() {
            return Err(Problem::new(409, "OBSTACLE", obstacle.to_string()).hint(obstacle.hint()));
        }
        repository.exclude_ours().map_err(of_git)?;
        let mut findings = Vec::new();
        if there {
            let text = "is there already, and was left as it is".to_owned();
            findings.push(finding(Level::Ok, settings::FILE, text, None));
        } else {
            std::fs::write(&path, text).map_err(|error| of_io(&path, error))?;
            trust::remember(&self.layout).map_err(|error| of_io(&path, error))?;
            let hint = match repository.bare() {
                true => "look at it, then `adj run`; a bare repository has no checkout to commit it in",
                false => "look at it, commit it, then `adj run`",
            };
            let hint = hint.to_owned();
            findings.push(finding(Level::Ok, settings::FILE, "written".to_owned(), Some(hint)));
        }
        let agent = settings.fleet_agent();
        let found = self.look_at_agent(settings.fleet.agent.as_str(), agent);
        if found.level != Level::Ok {
            // What is missing is needed by `adj run`, not here.
            findings.push(Finding { level: Level::Warning, ..found });
        }
        findings.extend(self.look_at_places(&settings)?);
        findings.extend(self.look_at_packages(&settings));
        if settings.test.command.is_none() && tests.command().is_none() && !repository.bare() {
            let text = "none were found: every task will need a person".to_owned();
            let hint = "set `test.command` in adjutant.toml".to_owned();
            findings.push(finding(Level::Warning, "tests", text, Some(hint)));
        }
        Ok(findings)
    }
}

/// Where packages are installed beside the code, and what makes them anew.
const PACKAGES: [(&str, &str); 3] =
    [(".venv", "uv sync"), ("venv", "python3 -m venv venv"), ("node_modules", "npm ci")];

impl RealHost {
    /// Where things will be, or are. The folder of the trees is made by the first `adj run`.
    fn look_at_places(&self, settings: &Settings) -> Result<Vec<Finding>, Problem> {
        let repository = runtime::runner::open_repository(&self.layout, settings).map_err(of_git)?;
        let tracks = |path: &Path| repository.tracks(path).unwrap_or(true);
        let state = finding(Level::Ok, "state", format!("in {}", self.layout.state().display()), None);
        let trees = match self.layout.check_trees(&settings.fleet.trees, &tracks) {
            Ok(trees) => {
                let text =
                    trees.said.first().cloned().unwrap_or_else(|| format!("in {}", trees.path.display()));
                match self.layout.hidden_part(&trees.path) {
                    None => finding(Level::Ok, "trees", text, None),
                    Some(part) => {
                        let text = format!("{text}; some tests refuse its hidden part, `{part}`");
                        let hint = "set `trees` in [fleet] of adjutant.toml to a folder without one";
                        finding(Level::Warning, "trees", text, Some(hint.to_owned()))
                    }
                }
            }
            Err(error) => finding(Level::Error, "trees", error.to_string(), None),
        };
        Ok(vec![state, trees])
    }

    /// What is kept for a while, and how much that is.
    fn look_at_disk(&self, settings: &Settings) -> Result<Vec<Finding>, Problem> {
        let Trash { folder, trees, bytes } = self.trash(false)?;
        let limits = |kept: settings::Kept| format!("kept {}, at most {}", age(kept.age), size(kept.bytes));
        let text = match trees {
            0 => format!("empty; in {}", folder.display()),
            _ => format!(
                "{trees} {}, {} in {}; {}",
                if trees == 1 { "tree" } else { "trees" },
                size(bytes),
                folder.display(),
                limits(settings.trash)
            ),
        };
        let hint = (trees > 0).then(|| "`adj clean --trash` empties it".to_owned());
        let printed = runtime::files::bytes_below(&self.layout.steps())
            + runtime::files::bytes_below(&self.layout.sessions());
        let logs = format!("{} of output and sessions; {}", size(printed), limits(settings.logs));
        Ok(vec![finding(Level::Ok, "trash", text, hint), finding(Level::Ok, "logs", logs, None)])
    }

    /// What the settings want in every tree and a tree could not get.
    fn look_at_worktree(&self, settings: &Settings) -> Vec<Finding> {
        let named = !settings.worktree.copy.is_empty() || !settings.worktree.symlink.is_empty();
        let Ok(repository) = self.repository() else { return Vec::new() };
        if !named || repository.bare() {
            return Vec::new();
        }
        let root = self.layout.root();
        let ignored = |path: &Path| repository.ignores_in_checkout(path);
        let unmet = workplace::unmet(root, settings, &ignored).into_iter();
        let hint = "correct it, or take it out of [worktree] in adjutant.toml";
        let text = |(path, why): (String, &str)| format!("`{path}` cannot be put into a tree: {why}");
        unmet.map(|it| finding(Level::Error, "worktree", text(it), Some(hint.to_owned()))).collect()
    }

    /// Installed packages that no tree would have.
    fn look_at_packages(&self, settings: &Settings) -> Vec<Finding> {
        let root = self.layout.root();
        let worktree = &settings.worktree;
        let brought = |name: &str| {
            let named = |pattern: &String| pattern.trim_matches('/') == name;
            worktree.copy.iter().chain(&worktree.symlink).any(named)
                || settings.hooks.worktree_create.is_some()
        };
        let there = PACKAGES.iter().filter(|(name, _)| root.join(name).is_dir() && !brought(name));
        let say = |(name, command): &(&str, &str)| {
            let hint = format!(
                "in adjutant.toml, `symlink = [\"{name}\"]` under [worktree] shares it, or `worktree.create = \"{command}\"` under [hooks] makes one in each tree"
            );
            finding(
                Level::Warning,
                "worktree",
                format!("`{name}` is here, and trees do not have it"),
                Some(hint),
            )
        };
        there.map(say).collect()
    }

    fn look_at_tickets(&self, settings: &Settings) -> Vec<Finding> {
        if settings.tickets.source != settings::TicketSource::Files {
            return Vec::new();
        }
        let look = runtime::runner::look_alone(&self.layout);
        let closed = |seen: &&runtime::tickets::Seen| seen.ticket.status == runtime::tickets::Status::Closed;
        let (all, open) = (look.seen.len(), look.seen.len() - look.seen.iter().filter(closed).count());
        let dir = settings.tickets.dir.display();
        let mut findings = match all {
            0 => Vec::new(),
            _ => vec![finding(
                Level::Ok,
                "tickets",
                format!("{all} in {dir}, {open} of them not closed"),
                None,
            )],
        };
        findings.extend(look.problems.into_iter().map(|problem| self.of_ticket(problem)));
        findings
    }

    /// What is wrong with a ticket's file, by its name from the project's root.
    fn of_ticket(&self, problem: runtime::tickets::Problem) -> Finding {
        let file =
            problem.file.strip_prefix(self.layout.root()).unwrap_or(&problem.file).display().to_string();
        let subject = if problem.line > 0 { format!("{file}:{}", problem.line) } else { file };
        finding(Level::Warning, &subject, problem.what, Some(problem.hint))
    }

    fn look_at_agent(&self, name: &str, agent: &settings::Agent) -> Finding {
        let subject = format!("agent {name}");
        let program = agent.command.first().cloned().unwrap_or_default();
        let adapter = agent.adapter.adapter();
        if let CommandIs::File(kind) = adapter.command_is() {
            let path = self.layout.root().join(&program);
            return match path.is_file() {
                true => finding(Level::Ok, &subject, format!("plays {program}"), None),
                false => finding(Level::Error, &subject, format!("there is no {kind} `{program}`"), None),
            };
        }
        match (which(&program), adapter.login().filter(|_| !has_key(agent))) {
            (Some(path), Some(login)) => finding(
                Level::Warning,
                &subject,
                format!("{}, and {}", path.display(), no_key(agent)),
                Some(login.missing_hint(name)),
            ),
            (Some(path), None) => finding(Level::Ok, &subject, path.display().to_string(), None),
            (None, _) => {
                let hint = format!("install it, or name it in [agents.{name}] command");
                finding(Level::Error, &subject, format!("`{program}` is not on the PATH"), Some(hint))
            }
        }
    }
}

/// By what means processes and memory of agents and tests are held to their limits here.
fn look_at_limits(settings: &Settings) -> Finding {
    let limits = runtime::runner::limits(settings);
    let most = [
        limits.processes.map(|most| format!("{most} processes and threads")),
        limits.memory_bytes.map(|most| format!("{} of memory", size(most))),
    ];
    let most = most.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let looked_at = "who passes the limit is noticed within 2 s and ended";
    let means = match runtime::keeper::group_parent() {
        Ok(parent) => {
            let (held, rest) = match (parent.processes, parent.memory) {
                (true, true) => ("held by the kernel", String::new()),
                (true, false) => ("processes are held by the kernel", format!("; of memory, {looked_at}")),
                _ => ("memory is held by the kernel", format!("; of processes, {looked_at}")),
            };
            format!("{held}, in a cgroup below {}{rest}", parent.dir.display())
        }
        Err(why) => format!("{looked_at} ({why})"),
    };
    finding(Level::Ok, "limits", format!("each step and test run: {most}; {means}"), None)
}

/// What the sandbox holds here, what it hides, and what it does not hold.
fn look_at_sandbox(settings: &Settings, home: Option<&Path>, layout: &Layout) -> Vec<Finding> {
    let variable = |name: &str| std::env::var_os(name);
    let machine = runtime::sandbox::places::Machine { home, variable: &variable };
    let shown = |path: &Path| match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    };
    let ours = [layout.temporary(), layout.trees(&settings.fleet.trees)];
    let (at_home, elsewhere) = (machine.sockets_at_home(&ours), machine.sockets_elsewhere(&ours));
    if settings.sandbox.mode == settings::SandboxMode::Off {
        let text = "off: agents can reach whatever you can, and their roles are advisory".to_owned();
        let hint = "set `sandbox.mode = \"auto\"`".to_owned();
        let mut sockets: Vec<PathBuf> = machine.sockets().into_iter().map(|socket| socket.path).collect();
        let more = at_home.into_iter().chain(elsewhere);
        sockets.extend(more.filter(|path| !sockets.contains(path)).collect::<Vec<_>>());
        let mut findings = vec![finding(Level::Warning, "sandbox", text, Some(hint))];
        findings.extend(reachable(&sockets, Level::Warning, &shown));
        return findings;
    }
    let support = runtime::sandbox::support_by(settings.sandbox.namespaces);
    let mut findings = Vec::new();
    match runtime::runner::sandbox_refusal(settings) {
        Some(why) => {
            let hint = "`adj run` refuses to start; docs/sandbox.md says what it takes".to_owned();
            findings.push(finding(Level::Error, "sandbox", why, Some(hint)));
        }
        None if support.level == runtime::sandbox::Level::Full => {
            findings.push(finding(Level::Ok, "sandbox", support.what, None));
        }
        None => {
            let hint = "docs/sandbox.md says what it takes".to_owned();
            findings.push(finding(Level::Warning, "sandbox", support.what, Some(hint)));
        }
    }
    if let Some(text) = runtime::runner::worktree_note(settings) {
        let hint = "set `fleet.isolation = \"clone\"`".to_owned();
        findings.push(finding(Level::Warning, "sandbox", text, Some(hint)));
    }
    let open: Vec<PathBuf> = settings::Sandbox::expand(&settings.sandbox.read, home);
    let mut hidden = machine.hidden(None);
    hidden.extend(settings::Sandbox::expand(&settings.sandbox.hide, home));
    let closed = hidden.clone();
    let hidden: Vec<String> =
        hidden.iter().filter(|path| path.exists() && !open.contains(path)).map(|path| shown(path)).collect();
    let text = match hidden.is_empty() {
        true => "none of the places that are hidden from agents and tests is on this machine".to_owned(),
        false => format!("hidden from agents and tests: {}", hidden.join(", ")),
    };
    findings.push(finding(Level::Ok, "sandbox", text, None));
    let known = machine.sockets();
    let is_open = |path: &Path| open.iter().any(|open| path.starts_with(open));
    let is_known = |path: &Path| known.iter().any(|socket| path.starts_with(&socket.path));
    let named = known.iter().filter(|socket| !is_open(&socket.path));
    let mut sockets: Vec<String> =
        named.map(|socket| format!("{} ({})", socket.of, shown(&socket.path))).collect();
    let (open_at_home, at_home): (Vec<PathBuf>, Vec<PathBuf>) =
        at_home.into_iter().filter(|path| !is_known(path)).partition(|path| is_open(path));
    sockets.extend(at_home.iter().map(|path| shown(path)));
    // With `strict` nothing else of /run and /tmp is there.
    let system = (settings.sandbox.mode == settings::SandboxMode::Strict).then(|| machine.system(None));
    let stays = |path: &PathBuf| {
        let is_closed =
            is_known(path) || at_home.contains(path) || closed.iter().any(|closed| path.starts_with(closed));
        let is_there =
            system.as_ref().is_none_or(|system| system.iter().any(|place| path.starts_with(place)));
        is_open(path) || (is_there && !is_closed)
    };
    let still_open = known.iter().map(|socket| socket.path.clone()).filter(|path| is_open(path));
    let mut left: Vec<PathBuf> = still_open.chain(open_at_home).collect();
    left.extend(elsewhere.into_iter().filter(stays).filter(|path| !left.contains(path)).collect::<Vec<_>>());
    let network = match settings.sandbox.network {
        settings::Network::Open => "the network of agents and tests",
        settings::Network::None => "the network of agents",
    };
    findings.push(match (sockets.is_empty(), support.namespaces) {
        (true, _) => finding(Level::Ok, "sandbox", format!("not held: {network}"), None),
        (false, true) => {
            let text = format!("not held: {network}; hidden sockets: {}", sockets.join(", "));
            finding(Level::Ok, "sandbox", text, None)
        }
        (false, false) => {
            let text = format!("not held: {network}, and these sockets: {}", sockets.join(", "));
            finding(Level::Warning, "sandbox", text, None)
        }
    });
    findings.extend(reachable(&left, Level::Ok, &shown));
    findings
}

/// So many sockets are named.
const SOCKETS_NAMED_MAX: usize = 12;

/// Sockets that agents and tests can connect to, as far as they were looked for.
fn reachable(sockets: &[PathBuf], level: Level, shown: &dyn Fn(&Path) -> String) -> Option<Finding> {
    let mut named: Vec<String> = sockets.iter().take(SOCKETS_NAMED_MAX).map(|path| shown(path)).collect();
    let more = sockets.len().saturating_sub(SOCKETS_NAMED_MAX);
    named.extend((more > 0).then(|| format!("and {more} more")));
    let text = format!("agents and tests can connect to these sockets: {}", named.join(", "));
    let hint = (level == Level::Ok).then(|| "`sandbox.hide` hides more".to_owned());
    (!sockets.is_empty()).then(|| finding(level, "sandbox", text, hint))
}

/// That no key is passed on to an agent that needs one; nothing where one is.
pub fn missing_key(name: &str, agent: &settings::Agent) -> Option<String> {
    let needed = agent.adapter.adapter().login().is_some() && !has_key(agent);
    needed.then(|| format!("agent {name}: {}", no_key(agent)))
}

/// Which variables could hold a login, and that none of them does.
fn no_key(agent: &settings::Agent) -> String {
    let keys: Vec<String> =
        agent.env.iter().filter(|name| !name.ends_with("_URL")).map(|name| format!("`{name}`")).collect();
    match keys.as_slice() {
        [] => "its `env` names no variable with a key".to_owned(),
        [one] => format!("{one} is not set in this environment"),
        more => format!("none of {} is set in this environment", more.join(", ")),
    }
}

/// Whether anything that could be a login is passed on: the address of a service is none.
fn has_key(agent: &settings::Agent) -> bool {
    let set = |name: &&String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    agent.env.iter().filter(set).any(|name| !name.ends_with("_URL"))
}

/// A command whose program is missing fails every gate, and agents would be asked to mend that.
/// Whether notifications that are wanted can be shown.
fn look_at_desktop(settings: &Settings) -> Option<Finding> {
    let program = desktop::PROGRAM;
    let found = match (settings.notify.desktop, desktop::program()) {
        (false, _) => return None,
        (true, Some(_)) => finding(Level::Ok, "notify", format!("your desktop is told by `{program}`"), None),
        (true, None) => {
            let text = format!(
                "notify.desktop is on, and `{program}` is not there: you are not told when you are needed"
            );
            let hint = format!("install `{program}`, use hooks.notify, or set notify.desktop = false");
            finding(Level::Warning, "notify", text, Some(hint))
        }
    };
    Some(found)
}

fn look_at_tests(command: &str) -> Finding {
    let program = command.split_whitespace().next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if program.is_empty() || !program.chars().all(plain) || SHELL_WORDS.contains(&program) {
        return finding(Level::Ok, "tests", format!("`{command}`"), None);
    }
    match which(program) {
        Some(_) => finding(Level::Ok, "tests", format!("`{command}`"), None),
        None => {
            let hint = "install it, or set `test.command` in adjutant.toml".to_owned();
            let text = format!("`{command}`, and `{program}` is not on the PATH");
            finding(Level::Warning, "tests", text, Some(hint))
        }
    }
}

/// In whole days where it is a day or more.
fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 2 * 86_400 => format!("{} days", seconds / 86_400),
        seconds if seconds >= 7_200 => format!("{} hours", seconds / 3_600),
        seconds => format!("{seconds} seconds"),
    }
}

fn nothing_saved(id: &SalvageId) -> Problem {
    Problem::not_found(format!("nothing was saved as `{id}`")).hint("`adj salvage list` lists what was saved")
}

fn finding(level: Level, subject: &str, text: String, hint: Option<String>) -> Finding {
    Finding { level, subject: subject.to_owned(), text, hint }
}

/// `main` or `master` where the repository has one of them, otherwise the branch that is checked out.
fn main_branch(root: &Path) -> Result<String, Problem> {
    let found = Repository::find(root).map_err(of_git)?;
    let head = std::fs::read_to_string(found.git_dir.join("HEAD")).unwrap_or_default();
    let current = head.trim().strip_prefix("ref: refs/heads/").unwrap_or("main").to_owned();
    let packed = std::fs::read_to_string(found.git_dir.join("packed-refs")).unwrap_or_default();
    let there = |name: &&str| {
        let reference = format!("refs/heads/{name}");
        found.git_dir.join(&reference).is_file()
            || packed.lines().any(|line| line.ends_with(&format!(" {reference}")))
    };
    Ok(["main", "master"].into_iter().find(there).map_or(current, str::to_owned))
}

fn git_version() -> String {
    let output = std::process::Command::new("git").arg("--version").output();
    output.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Where a program is, as the shell would find it.
pub fn which(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return path.is_file().then_some(path);
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
}

/// What is read of a step, by its place among the steps.
type Read = fn(&Step, usize) -> Vec<Entry>;

/// The first entries after a cursor. No more steps are read than it takes.
fn later(steps: &[Step], after: u64, limit: usize, read: Read) -> Vec<Entry> {
    // Cursors of a step begin where those of the one before can no longer come.
    let first = usize::try_from(after >> ENTRIES_BITS).unwrap_or(usize::MAX);
    let mut entries = Vec::new();
    for (index, step) in steps.iter().enumerate().skip(first) {
        entries.extend(read(step, index).into_iter().filter(|entry| entry.cursor > after));
        if entries.len() >= limit {
            break;
        }
    }
    entries.truncate(limit);
    entries
}

/// The last entries of all. No more steps are read than it takes.
fn last(steps: &[Step], limit: usize, read: Read) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, step) in steps.iter().enumerate().rev() {
        let mut before = read(step, index);
        before.append(&mut entries);
        entries = before;
        if entries.len() >= limit {
            break;
        }
    }
    entries.split_off(entries.len().saturating_sub(limit))
}

/// The lines that a step's program printed, as they were.
fn lines_of(step: &Step, index: usize) -> Vec<Entry> {
    let base = (index as u64) << ENTRIES_BITS;
    let mut entries = Vec::new();
    let Ok(mut out) = keeper::Tail::open(&keeper::client::out(&step.dir), 0) else { return entries };
    let over = matches!(keeper::look(&step.dir), Ok(keeper::Found::Over(_)));
    let clock = Clock::of(step);
    while let Ok(Some(line)) = out.next(over) {
        let raw = String::from_utf8_lossy(&line.bytes).into_owned();
        entries.push(Entry {
            cursor: base + entries.len() as u64 + 1,
            at: clock.at(line.start).map(time),
            kind: "line".to_owned(),
            text: String::new(),
            raw: Some(raw),
        });
    }
    entries
}

/// When a step printed what: its keeper notes that as it comes.
struct Clock(Vec<(u64, i64)>);

impl Clock {
    fn of(step: &Step) -> Clock {
        Clock(keeper::client::times(&step.dir))
    }

    fn at(&self, offset: u64) -> Option<i64> {
        let later = self.0.partition_point(|(from, _)| *from <= offset);
        self.0.get(later.checked_sub(1)?).map(|(_, at)| *at)
    }
}

/// What one step said, by the lines that it printed.
fn entries_of(step: &Step, index: usize) -> Vec<Entry> {
    let base = (index as u64) << ENTRIES_BITS;
    let begun = Some(step.file.started_at);
    let mut entries = Vec::new();
    let mut say = |at: Option<i64>, kind: &str, text: String| {
        let cursor = base + entries.len() as u64 + 1;
        entries.push(Entry { cursor, at: at.map(time), kind: kind.to_owned(), text, raw: None });
    };
    let file = &step.file;
    say(begun, "step", format!("{} {}, worker {}", file.task, file.order.kind, file.worker));
    let Ok(mut reader) = step.reader() else { return entries };
    let Ok(mut out) = keeper::Tail::open(&keeper::client::out(&step.dir), 0) else { return entries };
    let clock = Clock::of(step);
    while let Ok(Some(line)) = out.next(false) {
        for said in reader.line(&line.bytes, !line.is_cut()) {
            for entry in agents::Entry::of(&said) {
                let kind = match entry.kind {
                    EntryKind::Call => "tool",
                    kind => kind.name(),
                };
                say(clock.at(line.start).or(begun), kind, entry.text);
            }
        }
    }
    if let Ok(keeper::Found::Over(exit)) = keeper::look(&step.dir) {
        let text = match (exit.code, exit.signal) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (_, Some(signal)) => format!("ended by signal {signal}"),
            _ => "could not be started".to_owned(),
        };
        say(i64::try_from(exit.ended_at).ok(), "end", text);
    }
    entries
}
