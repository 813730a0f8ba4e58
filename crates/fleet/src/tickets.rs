//! Tickets and the settings file: reads changes of people while the fleet runs, and writes tickets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::command::{Happened, Outcome};
use kernel::{Actor, Answer, Ask, Command, World};
use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::{RunError, Shared, endings};
use base::clock;
use documents::tickets::{self, ChangeError, OwnWrites, Problem, Seen, Status, Ticket, Tickets};
use git::{Edit, GitError, Oid, Repository};
use log::Millis;
use project::layout::Layout;
use project::settings::{Settings, TicketSource, trust};

/// How long a file must be away before its ticket is gone: editors take a file away before they write it anew.
const GONE_AFTER: Millis = 1_000;

/// The project's tickets, as far as this process knows them.
pub struct TicketFolder {
    /// Nothing where tickets are not read from files, or where there is no checkout to read them from.
    files: Option<Files>,
}

struct Files {
    /// From the project's root.
    dir: PathBuf,
    root: PathBuf,
    bytes_max: u64,
    scanned: Mutex<Tickets>,
    /// What the kernel has been told of each.
    told: Mutex<BTreeMap<TaskId, tickets::Fingerprint>>,
    /// Whose file was not there, and since when.
    missing: Mutex<BTreeMap<TaskId, Millis>>,
    /// One write at a time, so that none that is no longer wanted comes after the one that is.
    writing: Mutex<()>,
    own: OwnWrites,
}

/// What the files say.
#[derive(Debug, Default)]
pub struct TicketScan {
    pub seen: Vec<Seen>,
    /// Files that are no tickets, and tickets that wait for each other in a circle.
    pub problems: Vec<Problem>,
    /// Tickets that have a file, readable or not. Nothing where the directory could not be read.
    there: Option<BTreeSet<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TicketFolder {
    pub fn new(layout: &Layout, settings: &Settings, bare: bool) -> TicketFolder {
        let read = settings.tickets.source == TicketSource::Files && !bare;
        let files = read.then(|| {
            let dir = settings.tickets.dir.clone();
            let bytes_max = settings.limits.ticket_bytes;
            Files {
                scanned: Mutex::new(Tickets::new(
                    layout.root().join(&dir),
                    bytes_max,
                    settings.limits.tickets,
                )),
                dir,
                root: layout.root().to_owned(),
                bytes_max,
                told: Mutex::default(),
                missing: Mutex::default(),
                writing: Mutex::default(),
                own: OwnWrites::default(),
            }
        });
        TicketFolder { files }
    }

    /// When the files are to be looked at again though nothing tells of a change, by the steady clock.
    pub fn look_again(&self) -> Option<Millis> {
        let since = locked(&self.files.as_ref()?.missing).values().min().copied();
        since.map(|since| since + GONE_AFTER)
    }

    fn look(&self, repository: Option<&Repository>) -> TicketScan {
        self.files.as_ref().map(|files| files.look(repository)).unwrap_or_default()
    }
}

impl TicketScan {
    /// Tickets of the log whose file is gone, though their tasks are not done.
    fn missing(&self, world: &World) -> Vec<TaskId> {
        let Some(there) = &self.there else { return Vec::new() };
        let open = |ticket: &kernel::world::Ticket| {
            let task = ticket.task.as_ref().and_then(|task| world.task(task));
            ticket.status != Status::Closed
                && ticket.gone.is_none()
                && task.is_some_and(|task| !task.is_final())
        };
        let missing =
            world.tickets.values().filter(|ticket| open(ticket) && !there.contains(ticket.id.as_str()));
        missing.filter_map(|ticket| TaskId::new(&ticket.id).ok()).collect()
    }
}

impl Files {
    /// A ticket's path from the project's root, as git has it.
    fn name(&self, ticket: &str) -> String {
        self.dir.join(format!("{ticket}.md")).display().to_string()
    }

    fn path(&self, ticket: &str) -> PathBuf {
        self.root.join(self.dir.join(format!("{ticket}.md")))
    }

    /// The tickets as they are now. Where the checkout stands on another branch, what main has and nobody changed here is
    /// read from main: a branch from before a ticket was closed does not open it again, and one without it does not
    /// take it away.
    fn look(&self, repository: Option<&Repository>) -> TicketScan {
        // A ticket that a landing closes is closed when main has it, and not before.
        let _still = repository.map(Repository::still);
        let scanned = locked(&self.scanned).scan();
        let unreadable = scanned
            .iter()
            .any(|found| found.as_ref().is_err_and(|problem| problem.file == self.root.join(&self.dir)));
        let mut found: BTreeMap<PathBuf, Result<Seen, Problem>> = BTreeMap::new();
        let mut look = TicketScan { there: (!unreadable).then(BTreeSet::new), ..TicketScan::default() };
        for file in scanned {
            let path = match &file {
                Ok(seen) => seen.path.clone(),
                Err(problem) => problem.file.clone(),
            };
            found.insert(path, file);
        }
        let dir = self.dir.to_str();
        let from_main = repository.zip(dir).map(|(repository, dir)| repository.unchanged_from_main(dir));
        match from_main {
            Some(Ok(files)) => {
                for (name, bytes) in files {
                    let path = self.root.join(&name);
                    if path.parent() == Some(&self.root.join(&self.dir)) && name.ends_with(".md") {
                        found.insert(path.clone(), tickets::parse_file(&path, &bytes));
                    }
                }
            }
            Some(Err(error)) => {
                look.there = None;
                let hint = "the tickets of this checkout are read";
                look.problems.push(Problem::about(&self.root.join(&self.dir), &error.to_string(), hint));
            }
            None => {}
        }
        for (path, file) in found {
            if let (Some(there), Some(stem)) = (&mut look.there, path.file_stem()) {
                there.insert(stem.to_string_lossy().into_owned());
            }
            match file {
                Ok(seen) => look.seen.push(seen),
                Err(problem) => look.problems.push(problem),
            }
        }
        let circles = tickets::circles(&look.seen);
        look.seen.retain(|seen| !circles.iter().any(|problem| problem.file == seen.path));
        look.problems.extend(circles);
        look
    }
}

/// Tells the kernel of every ticket that it has not been told of as it is, and of those whose files are gone. At the
/// `start` of a fleet a file that is not there is gone; later it may be on its way.
pub async fn see_all(shared: &Arc<Shared>, start: bool) -> Result<(), RunError> {
    let host = shared.clone();
    let look = shared.blocking(move || host.tickets.look(Some(&host.repository))).await;
    let Some(files) = &shared.tickets.files else { return Ok(()) };
    for problem in &look.problems {
        shared.notice_once(problem.to_string());
    }
    for seen in &look.seen {
        let id = seen.ticket.id.clone();
        if locked(&files.told).get(&id) == Some(&seen.fingerprint) {
            continue;
        }
        let was_gone = shared.world().tickets.get(id.as_str()).is_some_and(|ticket| ticket.gone.is_some());
        let ask = Ask::SeeTicket(seen.ticket.to_seen(files.own.by_hand(seen)));
        match shared.submit(ask, None).await? {
            Answer::Done(_) => {
                locked(&files.told).insert(id.clone(), seen.fingerprint);
                if was_gone {
                    shared.notice(format!("ticket {id} is back"));
                }
            }
            Answer::Refused(refusal) => shared.notice_once(format!("{}: {refusal}", seen.path.display())),
        }
    }
    let now = clock::steady();
    let missing = look.missing(&shared.world());
    locked(&files.missing).retain(|id, _| missing.contains(id));
    for id in missing {
        let since = *locked(&files.missing).entry(id.clone()).or_insert(now);
        if !start && now - since < GONE_AFTER {
            continue;
        }
        shared.ask(Ask::MissTicket { id: id.clone() }).await?;
        locked(&files.missing).remove(&id);
        locked(&files.told).remove(&id);
        shared.notice(format!(
            "ticket {id} is gone: there is no {}; its task waits until the file is back, or `adj task cancel {id}`",
            files.name(id.as_str())
        ));
    }
    Ok(())
}

/// Writes a task's status to its ticket. Where git has the ticket, its close travels with the landing, and nothing
/// else is written while the task is under way: a checkout that git sees changes in would be in the way of a landing.
pub async fn write(
    shared: &Arc<Shared>,
    effect: &EffectId,
    task: &TaskId,
    ticket: &SmolStr,
    status: Status,
    note: Option<&str>,
) -> Option<Happened> {
    let (host, effect, task, ticket) = (shared.clone(), effect.clone(), task.clone(), ticket.clone());
    let note = note.map(str::to_owned);
    let written = shared
        .blocking(move || {
            let Some(files) = &host.tickets.files else { return Ok(Written::Left(None)) };
            let _turn = locked(&files.writing);
            let world = host.world();
            if !world.effects.contains_key(&effect) {
                return Ok(Written::Left(None));
            }
            let landed = world.task(&task).is_some_and(|task| task.landing.landed.is_some());
            write_file(files, Some(&host.repository), &ticket, status, note.as_deref(), landed)
        })
        .await;
    Some(match written {
        Ok(written) => {
            if let Written::Left(Some(said)) = &written {
                shared.notice(said.clone());
            }
            written.happened()
        }
        Err(error) => endings::failed(error),
    })
}

/// Why a ticket is not written.
#[derive(Debug, thiserror::Error)]
enum TicketError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// What came of a write.
enum Written {
    /// The file says so now.
    Yes,
    /// It was left as it is; where people should hear of it, why.
    Left(Option<String>),
}

impl Written {
    fn happened(&self) -> Happened {
        match self {
            Written::Yes => Happened::TicketWritten,
            Written::Left(_) => Happened::TicketLeft,
        }
    }
}

/// Also for a command that runs alone: a ticket is a file that people look at right away.
fn write_file(
    files: &Files,
    repository: Option<&Repository>,
    ticket: &str,
    status: Status,
    note: Option<&str>,
    landed: bool,
) -> Result<Written, TicketError> {
    let name = files.name(ticket);
    if let Some(repository) = repository {
        let on_main = repository.file_on_main(&name)?;
        if status != Status::Closed && (on_main.is_some() || repository.tracks(Path::new(&name))?) {
            return Ok(Written::Left(None));
        }
        let closed = |bytes: &[u8]| Ticket::parse(bytes).is_ok_and(|ticket| ticket.status == Status::Closed);
        if landed && on_main.is_some_and(|bytes| closed(&bytes)) {
            return Ok(Written::Yes);
        }
    }
    let note = note.map(|note| (clock::now(), note));
    match tickets::change(&files.path(ticket), status, note, files.bytes_max, &files.own) {
        Ok(_) => Ok(Written::Yes),
        Err(ChangeError::Gone { .. }) => {
            Ok(Written::Left(Some(format!("ticket {ticket} is gone; its status is not written"))))
        }
        Err(ChangeError::NotATicket(problem)) => {
            Ok(Written::Left(Some(format!("ticket {ticket} is left unchanged: {problem}"))))
        }
        Err(error) => Err(error.into()),
    }
}

/// The tickets whose files a merge adds to main.
pub fn added(shared: &Shared, main: &Oid, merge: &Oid) -> Result<Vec<SmolStr>, GitError> {
    let Some(files) = &shared.tickets.files else { return Ok(Vec::new()) };
    let added = shared.repository.files_added(main, merge)?;
    let id = |path: &String| {
        let id = Path::new(path).file_name()?.to_str()?.strip_suffix(".md")?;
        (files.name(id) == *path).then(|| SmolStr::new(id))
    };
    Ok(added.iter().filter_map(id).collect())
}

/// The close of a ticket that main has, for the landing's own commit. Nothing where it is not in main, or where the
/// user's copy of it was changed: then the file is edited after the landing.
pub fn close_in_landing(shared: &Shared, ticket: &str) -> Result<Option<Edit>, GitError> {
    let Some(files) = &shared.tickets.files else { return Ok(None) };
    let name = files.name(ticket);
    if shared.repository.file_on_main(&name)?.is_none() {
        return Ok(None);
    }
    let unchanged = if shared.repository.stands_on_main() {
        shared.repository.checkout_copy_unchanged(&name)?
    } else {
        let dir = files.dir.to_string_lossy();
        let files = shared.repository.unchanged_from_main(&dir)?;
        files.iter().any(|(unchanged, _)| *unchanged == name)
    };
    if !unchanged {
        return Ok(None);
    }
    // What the agent wrote into its text stays. What is no ticket that we can read is left as it is.
    let change = |merged: Option<&[u8]>| tickets::set_status(merged?, Status::Closed).ok();
    Ok(Some(Edit { path: name, change: Box::new(change), merged_as: None }))
}

/// What somebody changed.
pub enum Changed {
    Tickets,
    Settings,
}

/// Waits for people to change tickets or settings.
pub struct Watch {
    tickets: tickets::Watch,
    root: tickets::Watch,
    file: PathBuf,
    /// What it had when it was last read.
    settings: Option<Vec<u8>>,
    /// It may have changed before it was waited on.
    unsure: bool,
}

impl Watch {
    /// `read` is what the settings file had when the settings in force were read.
    pub fn new(layout: &Layout, settings: &Settings, read: Option<Vec<u8>>) -> Watch {
        Watch {
            tickets: tickets::Watch::new(&layout.root().join(&settings.tickets.dir)),
            root: tickets::Watch::new(layout.root()),
            settings: read,
            file: layout.settings(),
            unsure: true,
        }
    }

    pub async fn changed(&mut self) -> Changed {
        loop {
            if std::mem::take(&mut self.unsure) && self.settings_changed() {
                return Changed::Settings;
            }
            tokio::select! {
                () = self.tickets.changed() => return Changed::Tickets,
                () = self.root.changed() => self.unsure = true,
            }
        }
    }

    fn settings_changed(&mut self) -> bool {
        let now = std::fs::read(&self.file).ok();
        let changed = now != self.settings;
        self.settings = now;
        changed
    }
}

/// What the ticket files say now, for a command that runs alone. Git is asked only where the checkout stands on
/// something else than main.
pub fn look_alone(layout: &Layout) -> TicketScan {
    let Ok(in_force) = trust::in_force(layout) else { return TicketScan::default() };
    let settings = in_force.settings;
    if Repository::may_have_left(&layout.state()) {
        // A landing that was cut off may have closed a ticket in the checkout alone. Where that cannot be put right now,
        // the tickets say nothing.
        let repository = super::open_repository(layout, &settings);
        if !repository.is_ok_and(|repository| repository.recover_work().is_ok()) {
            return TicketScan::default();
        }
    }
    let head = std::fs::read_to_string(layout.root().join(".git/HEAD"));
    if head.is_ok_and(|head| head.trim() == format!("ref: refs/heads/{}", settings.project.main)) {
        return TicketFolder::new(layout, &settings, false).look(None);
    }
    let Ok(repository) = super::open_repository(layout, &settings) else { return TicketScan::default() };
    TicketFolder::new(layout, &settings, repository.bare()).look(Some(&repository))
}

/// What the log has not been told of the tickets: new ones, changed ones, and those whose files are gone.
pub fn untold(look: &TicketScan, world: &World) -> Vec<Ask> {
    let seen = look.seen.iter().map(|seen| seen.ticket.to_seen(true));
    let unknown = seen.filter(|ticket| !kernel::knows_ticket(world, ticket));
    let mut asks: Vec<Ask> = unknown.map(Ask::SeeTicket).collect();
    asks.extend(look.missing(world).into_iter().map(|id| Ask::MissTicket { id }));
    asks
}

/// Tells the log of the tickets as they are now. What it refuses stays untold: `adj doctor` says what is wrong with it.
pub fn see_alone(handle: &log::owner::Handle, layout: &Layout) -> Result<(), RunError> {
    for ask in untold(&look_alone(layout), &handle.world()) {
        handle.submit(by_system(ask), None)?;
    }
    Ok(())
}

fn by_system(ask: Ask) -> Command {
    Command { id: clock::unique(), at: clock::now(), actor: Actor::System, token_for: None, key: None, ask }
}

/// Does what a command that is its own owner may do: it writes to the ticket files. Everything else waits for a fleet.
pub fn write_alone(handle: &log::owner::Handle, layout: &Layout) -> Result<(), RunError> {
    let world = handle.world();
    let waiting: Vec<_> = world
        .effects
        .iter()
        .filter(|(_, effect)| matches!(effect.as_ref(), kernel::Effect::WriteTicket { .. }))
        .map(|(id, effect)| (id.clone(), effect.clone()))
        .collect();
    if waiting.is_empty() {
        return Ok(());
    }
    // Settings with a fault are for `adj run` to refuse; until then the tickets wait.
    let Ok(settings) = trust::in_force(layout).map(|in_force| in_force.settings) else { return Ok(()) };
    let repository = super::open_repository(layout, &settings)?;
    let host = TicketFolder::new(layout, &settings, repository.bare());
    let leased = handle.lease("command", clock::now(), clock::now() + 60_000, log::outbox::LEASED_MAX)?;
    for leased in leased {
        let fence = log::Fence { effect: leased.id.clone(), attempt: leased.attempt };
        let wanted = waiting.iter().find(|(id, _)| id.as_str() == leased.id);
        let Some((id, effect)) = wanted else {
            handle.release(&fence)?;
            continue;
        };
        let kernel::Effect::WriteTicket { task, ticket, status, note } = effect.as_ref() else { continue };
        let landed = world.task(task).is_some_and(|task| task.landing.landed.is_some());
        let written = match &host.files {
            Some(files) => write_file(files, Some(&repository), ticket, *status, note.as_deref(), landed),
            None => Ok(Written::Left(None)),
        };
        let Ok(written) = written else {
            // The fleet tries again.
            handle.release(&fence)?;
            continue;
        };
        let outcome = Outcome { effect: id.clone(), what: written.happened() };
        handle.submit(by_system(Ask::Outcome(outcome)), Some(fence))?;
    }
    Ok(())
}
