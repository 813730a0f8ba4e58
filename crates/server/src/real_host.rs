//! The host, for real: git, the settings file, what agents printed, and this machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agents::{self, AdapterKind, EntryKind};
use fleet::apply_settings::{self, Valid};
use fleet::doctor::{self, Doctor, DoctorError};
use fleet::{For, Step};
use git::{ByRule, DiffWish, Merged, Oid, Patch, Repository, RestoreTo};
use kernel::World;
use kernel::rooms::Seat;
use kernel::world::Task;
use machines::names::{AgentName, TaskId};
use machines::{Millis, Wire};
use process::keeper;
use project::layout::Layout;
use project::prompts::{self, Prompts};
use project::settings::{self, Settings, SettingsError, include, trust};
use serde_json::{Value, json};

use crate::log_file;
use crate::tokens::{Named, TokenError, Tokens};
use api::host::{
    Commit, Configured, Diff, Entry, Finding, Host, Level, MovedBranch, Of, Prompt, Restore, Salvage,
    SalvageId, Span, TestRun, Trash,
};
use api::replay::Responses;
use api::types::history::{ExportHead, Verified};
use api::types::host::{WaitingSettings, WhyNotInForce};
use api::types::token::{Minted, TokenLine, TokenRole};
use api::{Problem, Response, time, turns};

/// A transcript's cursor holds the step in its upper part and the entry in its lower.
const ENTRIES_BITS: u32 = 32;
/// How often a transcript that is followed is looked at: its keeper tells only the owner.
const LOOK: Duration = Duration::from_millis(150);

/// The project's host.
pub struct RealHost {
    layout: Layout,
    /// Those that a server lets in; a command that is its own owner works on their file.
    tokens: Option<Arc<Tokens>>,
    /// The rules as they were read, and how their files looked before: a server is asked for them with every request.
    rules: Mutex<Option<(trust::Stamp, Arc<kernel::Config>)>>,
    /// Responses to requests that may be sent again.
    responses: Mutex<Responses>,
}

impl RealHost {
    pub fn new(layout: Layout) -> RealHost {
        RealHost { layout, tokens: None, rules: Mutex::default(), responses: Mutex::default() }
    }

    /// For a server: what is done to tokens holds for its very next request.
    pub fn with_tokens(layout: Layout, tokens: Arc<Tokens>) -> RealHost {
        RealHost { layout, tokens: Some(tokens), rules: Mutex::default(), responses: Mutex::default() }
    }

    fn known_tokens(&self) -> Result<Arc<Tokens>, Problem> {
        match &self.tokens {
            Some(tokens) => Ok(tokens.clone()),
            None => Ok(Arc::new(Tokens::read(&self.layout.state()).map_err(of_tokens)?)),
        }
    }

    fn settings(&self) -> Result<Settings, Problem> {
        trust::in_force(&self.layout).map(|in_force| in_force.settings).map_err(of_settings)
    }

    fn repository(&self) -> Result<Repository, Problem> {
        // What is looked at in git does not depend on the rest of the settings.
        let settings = self.settings().or_else(|_| Settings::parse("").map_err(of_settings))?;
        fleet::open_repository(&self.layout, &settings).map_err(of_git)
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
            Of::Task(id) => step.file.is_for.task() == Some(id),
            Of::Worker(name) => step.file.is_for.worker() == Some(name),
            Of::Replies(whose) => match &step.file.is_for {
                For::Seat { seat } => whose.has(seat, &step.file.agent),
                For::Task { .. } => false,
            },
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

fn of_tokens(error: TokenError) -> Problem {
    match error {
        TokenError::TooMany => Problem::new(409, "TOO_MANY_TOKENS", error.to_string()),
        TokenError::Io { .. } | TokenError::Damaged { .. } | TokenError::Gone { .. } => {
            Problem::new(500, "TOKENS", error.to_string())
        }
    }
}

fn token_line(named: &Named) -> TokenLine {
    TokenLine {
        id: named.id().to_owned(),
        name: named.name.clone(),
        role: named.role,
        created_at: time(named.created_at),
        expires_at: named.expires_at.map(time),
    }
}

fn of_io(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(500, "IO", format!("cannot use `{}`: {error}", path.display()))
}

/// A piece of saved work, where its name is one of ours.
fn salvage_of(entry: git::SavedEntry) -> Option<Salvage> {
    let id = SalvageId { task: entry.task.parse().ok()?, effect: entry.effect.parse().ok()? };
    let commits = entry.commits;
    Some(Salvage { id, commit: entry.commit.to_string(), at: entry.at * 1000, files: entry.files, commits })
}

impl Host for RealHost {
    fn project(&self) -> String {
        let folder = self.layout.root().file_name();
        folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn root(&self) -> PathBuf {
        self.layout.root().to_owned()
    }

    fn trees(&self) -> String {
        let settings = self.settings().unwrap_or_default();
        self.layout.trees(&settings.fleet.trees).display().to_string()
    }

    fn adapter(&self, agent: &AgentName) -> Option<AdapterKind> {
        self.settings().ok()?.agents.get(agent).map(|agent| agent.adapter)
    }

    fn verify(&self) -> Result<Verified, Problem> {
        log_file::verified(&self.layout.log())
    }

    fn export_head(&self) -> Result<ExportHead, Problem> {
        log_file::export_head(&self.layout.log())
    }

    fn export(&self, out: &mut dyn Write) -> Result<(), Problem> {
        let written = log_file::export(&self.layout.log(), out);
        written.map(drop).map_err(|error| Problem::new(500, "NOT_EXPORTED", error.to_string()))
    }

    fn tokens(&self) -> Result<Vec<TokenLine>, Problem> {
        Ok(self.known_tokens()?.named().iter().map(token_line).collect())
    }

    fn create_token(
        &self,
        name: &str,
        role: TokenRole,
        now: Millis,
        expires_at: Option<Millis>,
    ) -> Result<Minted, Problem> {
        let (token, named) = self.known_tokens()?.create(name, role, now, expires_at).map_err(of_tokens)?;
        Ok(Minted { line: token_line(&named), token })
    }

    fn revoke_token(&self, id: &str) -> Result<Option<TokenLine>, Problem> {
        let revoked = self.known_tokens()?.revoke_named(id).map_err(of_tokens)?;
        Ok(revoked.as_ref().map(token_line))
    }

    fn diff(&self, task: &Task, wish: &DiffWish) -> Result<Diff, Problem> {
        let tip = task.landing.landed.as_ref().map(|landed| landed.tip.clone());
        let tip = tip.or_else(|| task.work.place.as_ref().and_then(|place| place.tip.clone()));
        let tip = tip.as_deref().and_then(Oid::new).ok_or_else(|| {
            Problem::new(409, "NO_CHANGES", format!("task `{}` has no branch yet", task.id))
                .hint("it gets one when a worker takes it")
        })?;
        let repository = self.repository()?;
        repository.ensure_land().map_err(of_git)?;
        // Of what has landed, main from before is what it changed.
        let landed = task.landing.landed.as_ref();
        let landed = landed.and_then(|landed| Some((Oid::new(&landed.old_main)?, Oid::new(&landed.merge)?)));
        let (main, merge) = match landed {
            Some((old, merge)) => (old, Some(merge)),
            None => (repository.main_tip().map_err(of_git)?, None),
        };
        let diff = repository.diff_of(&tip, &main, merge.as_ref(), wish);
        let branch = task
            .work
            .place
            .as_ref()
            .filter(|_| task.landing.landed.is_none())
            .map(|place| place.branch.clone());
        let moved = match branch {
            Some(branch) => repository.moved_by_user(&task.id, &branch, &tip).map_err(of_git)?,
            None => None,
        };
        let moved = moved.map(|(branch, commit, commits)| MovedBranch {
            branch,
            commit: commit.short().to_owned(),
            commits,
        });
        let Patch { text, cut } = diff.map_err(of_git)?;
        Ok(Diff { base: main.to_string(), tip: tip.to_string(), diff: text, cut, moved })
    }

    fn commits(&self, task: &Task) -> Result<Vec<Commit>, Problem> {
        let Some(tip) = task.work.place.as_ref().and_then(|place| Oid::new(place.tip.as_deref()?)) else {
            return Ok(Vec::new());
        };
        let repository = self.repository()?;
        repository.ensure_land().map_err(of_git)?;
        let main = repository.main_tip().map_err(of_git)?;
        let commits = repository.commits_of(&tip, &main).map_err(of_git)?;
        Ok(commits.into_iter().map(|(oid, subject)| Commit { oid: oid.to_string(), subject }).collect())
    }

    fn revert(&self, world: &World, task: &Task, by: &TaskId) -> Result<String, Problem> {
        let id = &task.id;
        let landed = task.landing.landed.as_ref().filter(|landed| landed.merge != landed.old_main);
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
        let at = task.review.approved.as_ref().map_or(task.created_at, |approved| approved.at) / 1000;
        // The ticket stays closed: opened again, it would be done again.
        let ticket = task.origin.ticket.as_ref().map(|ticket| {
            let dir = self.settings().map(|settings| settings.tickets.dir).unwrap_or_default();
            dir.join(format!("{ticket}.md")).display().to_string()
        });
        let branch = kernel::undo_branch(by);
        let mark = fleet::taken_back_with(world, task);
        let settled = mark.as_ref().map(|(path, settle)| (path.as_str(), settle));
        let by_rule = ByRule { kept: ticket.as_deref(), settled };
        let made = repository.revert(by, &branch, &commit, &by_rule, &message, at);
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
                Some(deadline) if entries.is_empty() && Instant::now() < deadline => {
                    turns::resting(|| std::thread::sleep(LOOK));
                }
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
            folder: repository.places().trees.join(project::layout::TRASH),
            trees: found.len(),
            bytes: found.iter().map(|entry| entry.bytes).sum(),
        })
    }

    fn tests(&self, task: &Task) -> Result<Vec<TestRun>, Problem> {
        let shown = |run: fleet::KeptRun| TestRun {
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
        Ok(fleet::runs_of(&self.layout, task.id.as_str()).into_iter().map(shown).collect())
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
        let main = match &task.work.place {
            Some(place) => self.repository()?.name_of_main(&task.id, &place.tree).map_err(of_git)?,
            None => format!("origin/{}", settings.project.main),
        };
        let text = fleet::prompt_now(&prompts, &settings, world, task, known, &main, self.layout.root());
        let text = text.ok_or_else(|| {
            Problem::bad(format!("`{known}` is told to an agent outside of any task"))
                .hint(format!("`adj prompt show {known}` prints it as it is written"))
        })?;
        let file = prompts.path(known).map(|file| file.display().to_string());
        Ok(Prompt { name: known.name().to_owned(), file, text })
    }

    fn config(&self) -> Result<Configured, Problem> {
        let path = self.layout.settings();
        let file = path.exists().then(|| path.display().to_string());
        match apply_settings::read(&self.layout) {
            Ok(Valid { in_force, config, .. }) => Ok(Configured {
                file,
                trusted: in_force.trusted,
                gone: in_force.gone,
                text: settings::show(&in_force.text).map_err(of_settings)?,
                settings: json!(config),
                waiting: waiting_settings(&path, &in_force),
            }),
            // The previous settings stay in force, which is what was kept of them.
            Err(error) => {
                let text = trust::last_good(&self.layout);
                let settings = Settings::parse(&text).map_err(of_settings)?;
                let detail =
                    format!("{error}; the previous settings stay in force until adjutant.toml is corrected");
                Ok(Configured {
                    file,
                    trusted: true,
                    gone: false,
                    text: settings::show(&text).map_err(of_settings)?,
                    settings: json!(settings.kernel()),
                    waiting: Some(WaitingSettings { reason: WhyNotInForce::Invalid, detail, text: None }),
                })
            }
        }
    }

    fn rules(&self) -> Option<Arc<kernel::Config>> {
        let now = trust::stamp(&self.layout);
        let mut read = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((stamp, rules)) if *stamp == now => Some(rules.clone()),
            _ => {
                // One that is invalid may become valid by another file, its prompt's.
                let rules = Arc::new(apply_settings::read(&self.layout).ok()?.config);
                *read = Some((now, rules.clone()));
                Some(rules)
            }
        }
    }

    fn settings_applied(&self) {
        // If it cannot be kept, the next start tries again: the file itself is there.
        let _ = trust::remember(&self.layout);
    }

    fn kept_response(&self, id: &str) -> Option<Response> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).get(id)
    }

    fn keep_response(&self, id: String, response: &Response) {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).keep(id, response);
    }

    fn spoken(&self) -> Option<std::path::PathBuf> {
        Some(self.layout.spoken())
    }

    fn facts(&self) -> kernel::waiting::Facts {
        trust::facts(&self.layout)
    }

    fn config_check(&self) -> Result<Vec<Finding>, Problem> {
        Ok(found(Doctor::new(&self.layout).settings()))
    }

    fn ticket_problems(&self) -> Result<Vec<Finding>, Problem> {
        Ok(found(Doctor::new(&self.layout).ticket_files()))
    }

    fn doctor(&self) -> Result<Vec<Finding>, Problem> {
        Ok(found(Doctor::new(&self.layout).everything().map_err(of_doctor)?))
    }

    fn init(&self, with_hooks: bool) -> Result<Vec<Finding>, Problem> {
        Ok(found(Doctor::new(&self.layout).set_up(with_hooks).map_err(of_doctor)?))
    }

    fn config_forget(&self) -> Result<Configured, Problem> {
        let path = self.layout.settings();
        if !trust::forget(&self.layout).map_err(|error| of_io(&path, error))? {
            return Err(Problem::new(409, "SETTINGS", "adjutant.toml is there, and holds")
                .hint("delete it first; then the defaults hold"));
        }
        self.config()
    }

    fn config_schema(&self) -> Result<Value, Problem> {
        Ok(settings::schema())
    }

    fn config_trust(&self) -> Result<Configured, Problem> {
        let path = self.layout.settings();
        // One word is for both: a person has looked at what came in.
        let include = !include::in_force(&self.layout).trusted;
        include::trust(&self.layout).map_err(|error| of_io(&path, error))?;
        if include && !path.exists() {
            return self.config();
        }
        if !path.exists() {
            return Err(Problem::not_found("there is no adjutant.toml that could be trusted")
                .hint("the defaults hold; `adj init` writes one"));
        }
        Settings::read(&path).map_err(of_settings)?;
        trust::trust(&self.layout).map_err(|error| of_io(&path, error))?;
        self.config()
    }
}

/// What the file says and is not in force.
fn waiting_settings(path: &Path, in_force: &trust::InForce) -> Option<WaitingSettings> {
    let detail = in_force.note()?.to_owned();
    let reason = if in_force.trusted { WhyNotInForce::Gone } else { WhyNotInForce::Untrusted };
    let text = std::fs::read_to_string(path).ok().and_then(|text| settings::show(&text).ok());
    Some(WaitingSettings { reason, detail, text })
}

fn found(findings: Vec<doctor::Finding>) -> Vec<Finding> {
    findings.into_iter().map(finding_of).collect()
}

fn finding_of(finding: doctor::Finding) -> Finding {
    let doctor::Finding { level, subject, text, hint } = finding;
    let level = match level {
        doctor::Level::Ok => Level::Ok,
        doctor::Level::Warning => Level::Warning,
        doctor::Level::Error => Level::Error,
    };
    Finding { level, subject, text, hint }
}

fn of_doctor(error: DoctorError) -> Problem {
    let text = error.to_string();
    match error {
        DoctorError::Git(_) => of_git(text),
        DoctorError::Settings(error) => of_settings(error),
        DoctorError::Obstacle(obstacle) => Problem::new(409, "OBSTACLE", text).hint(obstacle.hint()),
        DoctorError::File(_) => Problem::new(500, "IO", text),
    }
}

fn nothing_saved(id: &SalvageId) -> Problem {
    Problem::not_found(format!("nothing was saved as `{id}`")).hint("`adj salvage list` lists what was saved")
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
    let what = match &file.is_for {
        For::Task { .. } => format!("{} {}, worker {}", file.order.task, file.order.kind, file.order.worker),
        For::Seat { seat: Seat::Architect } => {
            format!("{}, the architect, on a {}", file.agent, file.order.kind)
        }
        // Who speaks, and where.
        For::Seat { .. } => file.is_for.to_string(),
    };
    say(begun, "step", what);
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
