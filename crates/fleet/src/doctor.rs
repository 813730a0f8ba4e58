//! The doctor: checks everything that a fleet needs on this machine and in this repository; and sets a project up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::desktop;
use agents::{AdapterKind, CommandIs};
use base::files::{self, FileError};
use base::visible::size;
use documents::tickets;
use git::{GitError, Obstacle, Repository};
use machines::Wire;
use process::keeper;
use process::sandbox;
use project::layout::Layout;
use project::program::{has_key, no_key, which};
use project::prompts::Prompts;
use project::settings::{self, Settings, SettingsError, trust};
use project::workplace::{self, commit_hooks, declared, ecosystem};

/// What a command may begin with that is no program.
const SHELL_WORDS: [&str; 10] = ["true", "false", "test", "cd", "for", "if", "while", "set", "export", "."];

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    /// What was looked at: `git`, `sandbox`, `adjutant.toml:12`, …
    pub subject: String,
    pub text: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Ok,
    Warning,
    Error,
}

/// Why it cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("{0}")]
    Obstacle(Obstacle),
    #[error(transparent)]
    File(#[from] FileError),
}

/// Looks at a project and the machine that it is on.
pub struct Doctor<'l> {
    layout: &'l Layout,
}

impl<'l> Doctor<'l> {
    pub fn new(layout: &'l Layout) -> Doctor<'l> {
        Doctor { layout }
    }

    fn in_force(&self) -> Result<Settings, SettingsError> {
        trust::in_force(self.layout).map(|in_force| in_force.settings)
    }

    fn repository(&self) -> Result<Repository, DoctorError> {
        // What is looked at in git does not depend on the rest of the settings.
        let settings = self.in_force().or_else(|_| Settings::parse(""))?;
        Ok(crate::open_repository(self.layout, &settings)?)
    }

    /// What is wrong with the settings file.
    pub fn settings(&self) -> Vec<Finding> {
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
        let in_force = trust::in_force(self.layout);
        if in_force.is_ok_and(|in_force| !in_force.trusted) {
            let hint = "check it, then `adj config trust`".to_owned();
            let text = "it came in with an agent's branch and is not in force yet".to_owned();
            findings.push(finding(Level::Warning, settings::FILE, text, Some(hint)));
        }
        if !settings::include::in_force(self.layout).trusted {
            let hint = "check it, then `adj config trust`".to_owned();
            let text = "it came in with an agent's branch and is not in force yet".to_owned();
            findings.push(finding(Level::Warning, workplace::INCLUDE_FILE, text, Some(hint)));
        }
        if trust::is_gone(self.layout) {
            let hint = "put it back, or `adj config forget` to continue with the defaults".to_owned();
            let text = "it is gone; the previous settings stay in force".to_owned();
            findings.push(finding(Level::Warning, settings::FILE, text, Some(hint)));
        }
        findings
    }

    /// What is wrong with the files of tickets.
    pub fn ticket_files(&self) -> Vec<Finding> {
        let look = crate::look_alone(self.layout);
        look.problems.into_iter().map(|problem| self.of_ticket(problem)).collect()
    }

    /// Everything on this machine and in this repository that a fleet needs, and how it stands.
    pub fn everything(&self) -> Result<Vec<Finding>, DoctorError> {
        let mut findings = Vec::new();
        match self.repository() {
            Ok(repository) => {
                findings.push(finding(Level::Ok, "git", git_version(), None));
                for obstacle in repository.obstacles()? {
                    findings.push(finding(
                        Level::Error,
                        "repository",
                        obstacle.to_string(),
                        Some(obstacle.hint()),
                    ));
                }
            }
            Err(error) => findings.push(finding(Level::Error, "git", error.to_string(), None)),
        }
        findings.extend(self.settings());
        let Ok(settings) = self.in_force() else { return Ok(findings) };
        // What is wrong with them is said of the settings already.
        let places = self.look_at_places(&settings)?.into_iter();
        findings.extend(places.filter(|place| place.level != Level::Error));
        findings.extend(self.look_at_disk(&settings)?);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        findings.extend(look_at_sandbox(&settings, home.as_deref(), self.layout));
        findings.push(look_at_limits(&settings));
        for missing in settings.sandbox.missing_caches(home.as_deref()) {
            let (level, hint) = match missing.path {
                Some(_) => (Level::Ok, "`adj run` creates it"),
                None => {
                    (Level::Warning, "create it, or remove it from adjutant.toml: agents cannot write there")
                }
            };
            let text = format!("`{}` of sandbox.caches does not exist", missing.written);
            findings.push(finding(level, "sandbox", text, Some(hint.to_owned())));
        }
        for (name, agent) in &settings.agents {
            findings.push(self.look_at_agent(name.as_str(), agent));
        }
        findings.extend(look_at_desktop(&settings));
        findings.extend(self.look_at_packages(&settings));
        let command = settings.test.command.clone();
        let found = command.or_else(|| ecosystem::find(self.layout.root()).command().map(str::to_owned));
        findings.extend(self.look_at_tickets(&settings));
        findings.push(match found {
            Some(command) => look_at_tests(&command),
            None if Repository::find(self.layout.root()).is_ok_and(|found| found.bare) => {
                let text = "detected in each tree, because this repository is bare".to_owned();
                finding(Level::Ok, "tests", text, None)
            }
            None => {
                let text = "none were found, so every task needs a person".to_owned();
                finding(Level::Warning, "tests", text, Some("set `test.command` in adjutant.toml".to_owned()))
            }
        });
        Ok(findings)
    }

    /// Writes the settings file where there is none, and looks at what a first run needs. `with_hooks`: the tests run the
    /// commit hooks of the repository, too.
    pub fn set_up(&self, with_hooks: bool) -> Result<Vec<Finding>, DoctorError> {
        let path = self.layout.settings();
        let there = path.exists();
        let main = main_branch(self.layout.root())?;
        // What is looked at in git does not depend on the rest of the settings.
        let (found, told) = self.look_at_project(main, with_hooks)?;
        let text = settings::template(&found);
        let settings = if there { self.in_force()? } else { Settings::parse(&text)? };
        let repository = crate::open_repository(self.layout, &settings)?;
        let obstacles = repository.obstacles()?;
        if let Some(obstacle) = obstacles.into_iter().next() {
            return Err(DoctorError::Obstacle(obstacle));
        }
        repository.exclude_ours()?;
        let mut findings = Vec::new();
        if let Err(why) = project::registry::add(self.layout.root()) {
            let text = format!("`adj serve --all` does not include this project: {why}");
            findings.push(finding(Level::Warning, "projects", text, None));
        }
        if there {
            let text = "already exists; nothing was changed".to_owned();
            findings.push(finding(Level::Ok, settings::FILE, text, None));
        } else {
            std::fs::write(&path, text).map_err(FileError::at("use", &path))?;
            trust::remember(self.layout).map_err(FileError::at("use", &path))?;
            let hint = match repository.bare() {
                true => "check it, then `adj run`; a bare repository has no checkout to commit it in",
                false => "check it, commit it, then `adj run`",
            };
            let hint = hint.to_owned();
            findings.push(finding(Level::Ok, settings::FILE, "written".to_owned(), Some(hint)));
            findings.extend(told);
        }
        let agent = settings.fleet_agent();
        let looked = self.look_at_agent(settings.fleet.agent.as_str(), agent);
        if looked.level != Level::Ok {
            // What is missing is needed by `adj run`, not here.
            findings.push(Finding { level: Level::Warning, ..looked });
        }
        findings.extend(self.look_at_places(&settings)?);
        findings.extend(self.look_at_packages(&settings));
        findings.extend(look_at_commit_hooks(&found, &settings, there));
        if settings.test.command.is_none() && found.test.is_none() && !repository.bare() {
            let text = "none were found, so every task needs a person".to_owned();
            let hint = "set `test.command` in adjutant.toml".to_owned();
            findings.push(finding(Level::Warning, "tests", text, Some(hint)));
        }
        Ok(findings)
    }

    /// What a new settings file says, and where each part of it comes from.
    fn look_at_project(
        &self,
        main: String,
        with_hooks: bool,
    ) -> Result<(settings::TemplateValues, Vec<Finding>), DoctorError> {
        let root = self.layout.root();
        let mut told = Vec::new();
        let needs = ecosystem::find(root).needs(&|name| std::env::var_os(name));
        let from = |packages: &ecosystem::Packages| format!("{} ({})", packages.name, packages.by);
        let names = needs.packages.iter().filter(|it| !it.create.is_empty()).map(from).collect::<Vec<_>>();
        let mut create = needs.create.clone().map(|command| (command, names.join(", ")));
        let (mut remove, mut copy) = (None, Vec::new());
        let mut set_up_by = None;
        for other in declared::declared(root) {
            let (file, paths) = (other.file, self.copyable(&other, &mut told)?);
            if !other.create.is_empty() {
                let commands = joined(&other.create);
                match set_up_by {
                    None => {
                        let text = format!("`{commands}` is in hooks.worktree.create");
                        told.push(finding(Level::Ok, file, text, None));
                        create = Some((commands, file.to_owned()));
                        set_up_by = Some(file);
                    }
                    Some(first) => {
                        let text = format!("`{commands}` is left out: {first} sets up the trees");
                        told.push(finding(Level::Warning, file, text, None));
                    }
                }
            }
            if !other.remove.is_empty() && remove.is_none() {
                let commands = joined(&other.remove);
                let text = format!("`{commands}` is in hooks.worktree.remove");
                told.push(finding(Level::Ok, file, text, None));
                remove = Some((commands, file.to_owned()));
            }
            if !paths.is_empty() {
                let text = format!("{} is in worktree.copy", listed(&paths));
                told.push(finding(Level::Ok, file, text, None));
            }
            copy.extend(paths.into_iter().map(|path| (path, file)));
        }
        told.extend(look_at_needs(&needs, create.as_ref()));
        let mut found =
            settings::TemplateValues { main: Some(main), with_hooks, ..settings::TemplateValues::default() };
        let installed =
            |kind: &AdapterKind| kind.adapter().program().is_some_and(|name| which(name).is_some());
        found.adapter = AdapterKind::ALL.iter().copied().find(installed);
        found.commit_hooks = self.commit_hooks(&needs);
        found.copy = (!copy.is_empty()).then(|| {
            let mut files: Vec<&str> = copy.iter().map(|(_, file)| *file).collect();
            files.dedup();
            let mut paths: Vec<String> = Vec::new();
            for (path, _) in &copy {
                if !paths.contains(path) {
                    paths.push(path.clone());
                }
            }
            (paths, files.join(", "))
        });
        // Another tool's commands may not make the environment that ours would.
        let needs = match set_up_by {
            Some(_) => needs.with_set_up(create.as_ref().map_or("", |(command, _)| command), root),
            None => needs,
        };
        (found.test, found.caches, found.variables) = (needs.test, needs.caches, needs.variables);
        (found.create, found.remove) = (create, remove);
        Ok((found, told))
    }

    /// What another tool's file wants copied, and can be.
    fn copyable(
        &self,
        other: &declared::Declared,
        told: &mut Vec<Finding>,
    ) -> Result<Vec<String>, DoctorError> {
        let leave = |what: &str, why: &str| {
            finding(Level::Warning, other.file, format!("`{what}` is left out: {why}"), None)
        };
        told.extend(other.left_out.iter().map(|(what, why)| leave(what, why)));
        let mut paths = Vec::new();
        for path in &other.copy {
            let list = toml_edit::Array::from_iter([path.as_str()]);
            let Ok(settings) = Settings::parse(&format!("[worktree]\ncopy = {list}\n")) else {
                told.push(leave(path, "it is not a path inside the project"));
                continue;
            };
            let repository = crate::open_repository(self.layout, &settings)?;
            let ignored = |path: &Path| repository.ignores_in_checkout(path);
            match workplace::unmet(self.layout.root(), &settings, &ignored).first() {
                Some((_, why)) => told.push(leave(path, why)),
                None => paths.push(path.clone()),
            }
        }
        Ok(paths)
    }

    /// The commit hooks of the repository, as the tests could run them.
    fn commit_hooks(&self, needs: &ecosystem::Needs) -> Option<settings::CommitHooks> {
        let git = self.repository().map(|repository| repository.commit_hooks()).unwrap_or_default();
        let (manager, hooks) = commit_hooks::find(self.layout.root(), &git)?;
        let mut command = hooks.command;
        // One that uv installs is not on the PATH.
        let by_uv = needs.packages.iter().any(|it| it.name == "uv") && which(manager).is_none();
        if let Some(command) = command.as_mut().filter(|_| manager == "pre-commit" && by_uv) {
            *command = format!("uv run --frozen --with pre-commit {command}");
        }
        Some(settings::CommitHooks { manager, by: hooks.by, command, cache: hooks.cache })
    }
}

/// What was found of packages and tests, where it comes from, and which program is missing for it.
fn look_at_needs(needs: &ecosystem::Needs, create: Option<&(String, String)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some((command, from)) = create.filter(|(command, _)| needs.create.as_ref() == Some(command)) {
        let text = format!("{from}: each tree is set up by `{command}`");
        findings.push(finding(Level::Ok, "worktree", text, None));
    }
    if let Some((command, by)) = &needs.test {
        findings.push(finding(Level::Ok, "tests", format!("`{command}`, found by {by}"), None));
    }
    let program = |packages: &ecosystem::Packages| {
        let words = packages.create.split_whitespace().filter(|word| !word.contains('='));
        let known =
            ["uv", "poetry", "pdm", "pnpm", "yarn", "bun", "npm", "python3", "bundle", "composer", "mix"];
        words.into_iter().find(|word| known.contains(word)).map(str::to_owned)
    };
    for program in needs.packages.iter().filter_map(program).filter(|program| which(program).is_none()) {
        let hint = "install it, or change hooks.worktree.create and test.command in adjutant.toml".to_owned();
        let text = format!("`{program}` is not on the PATH, and trees need it");
        findings.push(finding(Level::Warning, "worktree", text, Some(hint)));
    }
    for other in needs.others.iter().filter(|it| !it.create.is_empty()) {
        let text = format!("{} ({}) is used here too, and is not set up in trees", other.name, other.by);
        let hint = format!("if the tests need it, add `{}` to hooks.worktree.create", other.create);
        findings.push(finding(Level::Ok, "worktree", text, Some(hint)));
    }
    findings
}

/// That commit hooks run nowhere, and how they would.
fn look_at_commit_hooks(
    found: &settings::TemplateValues,
    settings: &Settings,
    there: bool,
) -> Option<Finding> {
    let hooks = found.commit_hooks.as_ref()?;
    let run = |command: &String| settings.test.command.as_ref().is_some_and(|test| test.contains(command));
    if let Some(command) = hooks.command.as_ref().filter(|command| run(command)) {
        let text = format!("`{command}` runs with the tests ({})", hooks.by);
        return Some(finding(Level::Ok, "commit hooks", text, None));
    }
    let text = format!("those of {} run neither in trees nor at merges", hooks.by);
    let hint = match &hooks.command {
        Some(command) if there => format!("add ` && {command}` to test.command in adjutant.toml"),
        Some(command) => format!(
            "`adj init --with-hooks` adds `{command}` to the tests; in an existing file, use the second `command` of [test]"
        ),
        None => "they are only on this machine; add their checks to test.command in adjutant.toml".to_owned(),
    };
    Some(finding(Level::Warning, "commit hooks", text, Some(hint)))
}

/// Commands one after the other; the first that fails is the last.
fn joined(commands: &[String]) -> String {
    match commands {
        [one] => one.clone(),
        more if more.iter().any(|command| command.contains('\n')) => {
            format!("set -e\n{}", more.join("\n"))
        }
        more => more.join(" && "),
    }
}

/// Paths, as a message lists them.
fn listed(paths: &[String]) -> String {
    paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ")
}

/// Where packages are installed beside the code.
const PACKAGES: [&str; 3] = [".venv", "venv", "node_modules"];

impl Doctor<'_> {
    /// Where things will be, or are. The folder of the trees is made by the first `adj run`.
    fn look_at_places(&self, settings: &Settings) -> Result<Vec<Finding>, DoctorError> {
        let repository = crate::open_repository(self.layout, settings)?;
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
                        let hint =
                            "set `trees` in [fleet] of adjutant.toml to a folder without a hidden part";
                        finding(Level::Warning, "trees", text, Some(hint.to_owned()))
                    }
                }
            }
            Err(error) => finding(Level::Error, "trees", error.to_string(), None),
        };
        Ok(vec![state, trees])
    }

    /// What is kept for a while, and how much that is.
    fn look_at_disk(&self, settings: &Settings) -> Result<Vec<Finding>, DoctorError> {
        let repository = self.repository()?;
        let (folder, found) = (repository.places().trees.join(project::layout::TRASH), repository.trash());
        let (trees, bytes) = (found.len(), found.iter().map(|entry| entry.bytes).sum());
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
        let printed = files::bytes_below(&self.layout.steps()) + files::bytes_below(&self.layout.sessions());
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
        let hint = "correct it, or remove it from [worktree] in adjutant.toml";
        let text = |(path, why): (String, &str)| format!("`{path}` cannot be copied into a tree: {why}");
        let unmet = unmet.map(|it| finding(Level::Error, "worktree", text(it), Some(hint.to_owned())));
        let back = crate::leads_back(self.layout, settings);
        let back = back.into_iter().flat_map(|back| {
            let (fix, last) = (back.fix, back.found.len().saturating_sub(1));
            let say =
                move |(at, text)| finding(Level::Error, "worktree", text, (at == last).then(|| fix.clone()));
            back.found.into_iter().enumerate().map(say).collect::<Vec<_>>()
        });
        unmet.chain(back).collect()
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
        let there = PACKAGES.iter().filter(|name| root.join(name).is_dir() && !brought(name));
        let create = ecosystem::find(root).needs(&|_| None).create;
        let say = |name: &&str| {
            // A link is not proposed: an editable install or a workspace package in it leads back into the checkout.
            let hint = match &create {
                Some(command) => {
                    let command = toml_edit::Value::from(command.as_str());
                    format!(
                        "in adjutant.toml, under [hooks]: `worktree.create = {command}` creates one in each tree"
                    )
                }
                None => {
                    "in adjutant.toml, under [hooks], set `worktree.create` to the command that installs it"
                        .to_owned()
                }
            };
            finding(
                Level::Warning,
                "worktree",
                format!("`{name}` is in your checkout, and trees do not have it"),
                Some(hint),
            )
        };
        there.map(say).collect()
    }

    fn look_at_tickets(&self, settings: &Settings) -> Vec<Finding> {
        if settings.tickets.source != settings::TicketSource::Files {
            return Vec::new();
        }
        let look = crate::look_alone(self.layout);
        let closed = |seen: &&tickets::Seen| seen.ticket.status == tickets::Status::Closed;
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
    fn of_ticket(&self, problem: tickets::Problem) -> Finding {
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
    let limits = crate::limits(settings);
    let most = [
        limits.processes.map(|most| format!("{most} processes and threads")),
        limits.memory_bytes.map(|most| format!("{} of memory", size(most))),
    ];
    let most = most.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let looked_at = "a program that exceeds the limit is ended within 2 s";
    let means = match keeper::group_parent() {
        Ok(parent) => {
            let (held, rest) = match (parent.processes, parent.memory) {
                (true, true) => ("enforced by the kernel", String::new()),
                (true, false) => {
                    ("processes are limited by the kernel", format!("; for memory, {looked_at}"))
                }
                _ => ("memory is limited by the kernel", format!("; for processes, {looked_at}")),
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
    let agents = agents::homes();
    let machine = sandbox::places::Machine { home, agents: &agents, variable: &variable };
    let shown = |path: &Path| match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    };
    let ours = [layout.temporary(), layout.trees(&settings.fleet.trees)];
    let (at_home, elsewhere) = (machine.sockets_at_home(&ours), machine.sockets_elsewhere(&ours));
    if settings.sandbox.mode == settings::SandboxMode::Off {
        let mut sockets: Vec<PathBuf> = machine.sockets().into_iter().map(|socket| socket.path).collect();
        let more = at_home.into_iter().chain(elsewhere);
        sockets.extend(more.filter(|path| !sockets.contains(path)).collect::<Vec<_>>());
        let mut findings: Vec<Finding> = crate::unenforced(settings).into_iter().map(gap).collect();
        findings.extend(reachable(&sockets, Level::Warning, &shown));
        return findings;
    }
    let support = sandbox::support_by(settings.sandbox.namespaces);
    let mut findings = Vec::new();
    match crate::sandbox_refusal(settings) {
        Some(why) => {
            let hint = "`adj run` refuses to start; docs/sandbox.md lists the requirements".to_owned();
            findings.push(finding(Level::Error, "sandbox", why, Some(hint)));
        }
        None => {
            let whole = (support.level == sandbox::Level::Full)
                .then(|| finding(Level::Ok, "sandbox", support.what, None));
            findings.extend(whole);
            findings.extend(crate::unenforced(settings).into_iter().map(gap));
        }
    }
    let open: Vec<PathBuf> = settings::Sandbox::expand(&settings.sandbox.read, home);
    let mut hidden = machine.hidden(None);
    hidden.extend(settings::Sandbox::expand(&settings.sandbox.hide, home));
    let closed = hidden.clone();
    let hidden: Vec<String> =
        hidden.iter().filter(|path| path.exists() && !open.contains(path)).map(|path| shown(path)).collect();
    if crate::checkout_note(settings).is_none() {
        let text = "your checkout is hidden from tests, except the paths in `worktree.symlink`, `sandbox.read` and `sandbox.caches`";
        findings.push(finding(Level::Ok, "sandbox", text.to_owned(), None));
    }
    let text = match hidden.is_empty() {
        true => "this machine has none of the places that are hidden from agents and tests".to_owned(),
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
        (true, _) => finding(Level::Ok, "sandbox", format!("not restricted: {network}"), None),
        (false, true) => {
            let text = format!("not restricted: {network}; hidden sockets: {}", sockets.join(", "));
            finding(Level::Ok, "sandbox", text, None)
        }
        (false, false) => {
            let text = format!("not restricted: {network}, and these sockets: {}", sockets.join(", "));
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

/// A command whose program is missing fails every gate, and agents would be asked to mend that.
/// Whether notifications that are wanted can be shown.
fn look_at_desktop(settings: &Settings) -> Option<Finding> {
    let program = desktop::PROGRAM;
    let found = match (settings.notify.desktop, desktop::program()) {
        (false, _) => return None,
        (true, Some(_)) => finding(Level::Ok, "notify", format!("`{program}` notifies your desktop"), None),
        (true, None) => {
            let text =
                format!("notify.desktop is on, but `{program}` is not installed: you get no notifications");
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

fn gap(gap: crate::Gap) -> Finding {
    finding(Level::Warning, "sandbox", gap.what, Some(gap.hint.to_owned()))
}

fn finding(level: Level, subject: &str, text: String, hint: Option<String>) -> Finding {
    Finding { level, subject: subject.to_owned(), text, hint }
}

/// `main` or `master` where the repository has one of them, otherwise the branch that is checked out.
fn main_branch(root: &Path) -> Result<String, DoctorError> {
    let found = Repository::find(root)?;
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
