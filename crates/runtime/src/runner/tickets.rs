//! Tickets and the settings file: what people change while the fleet runs, and what we write back.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::command::Happened;
use kernel::{Answer, Ask};
use machines::Wire;
use machines::names::TaskId;
use smol_str::SmolStr;

use super::{RunError, Shared};
use crate::git::{Edit, Repository};
use crate::layout::Layout;
use crate::settings::{Settings, TicketSource, trust};
use crate::tickets::{self, ChangeError, OwnWrites, Status, Ticket, Tickets};

/// The project's tickets, as far as this process knows them.
pub struct Desk {
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
    told: Mutex<std::collections::BTreeMap<TaskId, tickets::Fingerprint>>,
    own: OwnWrites,
}

impl Desk {
    pub fn new(layout: &Layout, settings: &Settings, bare: bool) -> Desk {
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
                own: OwnWrites::default(),
            }
        });
        Desk { files }
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
}

/// Tells the kernel of every ticket that it has not been told of as it is.
pub async fn see_all(shared: &Arc<Shared>) -> Result<(), RunError> {
    let desk = shared.clone();
    let seen = shared
        .blocking(move || match &desk.tickets.files {
            Some(files) => files.scanned.lock().unwrap_or_else(PoisonError::into_inner).scan(),
            None => Vec::new(),
        })
        .await;
    let Some(files) = &shared.tickets.files else { return Ok(()) };
    for seen in seen {
        let seen = match seen {
            Ok(seen) => seen,
            Err(problem) => {
                shared.notice_once(problem.to_string());
                continue;
            }
        };
        let id = seen.ticket.id.clone();
        let known = files.told.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        if known == Some(seen.fingerprint) {
            continue;
        }
        let ask = Ask::SeeTicket(seen.ticket.to_seen(files.own.by_hand(&seen)));
        match shared.submit(ask, None).await? {
            Answer::Done(_) => {
                files.told.lock().unwrap_or_else(PoisonError::into_inner).insert(id, seen.fingerprint);
            }
            Answer::Refused(refusal) => shared.notice_once(format!("{}: {refusal}", seen.path.display())),
        }
    }
    Ok(())
}

/// Writes a task's status to its ticket. Where main has the ticket, its close travels with the landing, and nothing
/// else is written: a checkout that git sees changes in would be in the way of the next landing.
pub async fn write(
    shared: &Arc<Shared>,
    task: &TaskId,
    ticket: &SmolStr,
    status: &SmolStr,
    note: Option<&str>,
) -> Option<Happened> {
    let (desk, task, ticket) = (shared.clone(), task.clone(), ticket.clone());
    let (status, note) = (status.clone(), note.map(str::to_owned));
    let written = shared
        .blocking(move || match &desk.tickets.files {
            Some(files) => {
                let landed = desk.world().task(&task).is_some_and(|task| task.landed.is_some());
                write_file(files, Some(&desk.repository), &ticket, &status, note.as_deref(), landed)
            }
            None => Ok(None),
        })
        .await;
    Some(match written {
        Ok(said) => {
            if let Some(said) = said {
                shared.notice(said);
            }
            Happened::TicketWritten
        }
        Err(error) => Happened::Failed { error },
    })
}

/// Also for a command that runs alone: a ticket is a file that people look at right away.
fn write_file(
    files: &Files,
    repository: Option<&Repository>,
    ticket: &str,
    status: &str,
    note: Option<&str>,
    landed: bool,
) -> Result<Option<String>, String> {
    let status = Status::ALL.iter().copied().find(|known| known.name() == status);
    let status = status.ok_or_else(|| "bug: this is not a status of a ticket".to_owned())?;
    let name = files.name(ticket);
    if let Some(repository) = repository
        && let Some(on_main) = repository.file_on_main(&name).map_err(|error| error.to_string())?
    {
        let travels = repository.checkout_copy_unchanged(&name).map_err(|error| error.to_string())?;
        let closed = Ticket::parse(&on_main).is_ok_and(|ticket| ticket.status == Status::Closed);
        let with_landing = landed && closed;
        if with_landing || (status == Status::InProgress && travels) {
            return Ok(None);
        }
    }
    let note = note.map(|note| (crate::clock::now(), note));
    match tickets::change(&files.path(ticket), status, note, files.bytes_max, &files.own) {
        Ok(_) => Ok(None),
        Err(ChangeError::Gone { .. }) => {
            Ok(Some(format!("ticket {ticket} is gone; its status is not written")))
        }
        Err(ChangeError::NotATicket(problem)) => {
            Ok(Some(format!("ticket {ticket} is left as it is: {problem}")))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The close of a ticket that main has, for the landing's own commit. Nothing where it is not in main, or where the
/// user's copy of it was changed: then the file is edited after the landing.
pub fn close_in_landing(shared: &Shared, ticket: &str) -> Result<Option<Edit>, String> {
    let Some(files) = &shared.tickets.files else { return Ok(None) };
    let name = files.name(ticket);
    let said = |error: crate::git::GitError| error.to_string();
    let Some(bytes) = shared.repository.file_on_main(&name).map_err(said)? else { return Ok(None) };
    if !shared.repository.checkout_copy_unchanged(&name).map_err(said)? {
        return Ok(None);
    }
    match tickets::set_status(&bytes, Status::Closed) {
        Ok(content) => Ok(Some(Edit { path: name, content })),
        // It is in main and is no ticket that we can read: left as it is.
        Err(_) => Ok(None),
    }
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
    settings: Option<Vec<u8>>,
}

impl Watch {
    pub fn new(layout: &Layout, settings: &Settings) -> Watch {
        let file = layout.settings();
        Watch {
            tickets: tickets::Watch::new(&layout.root().join(&settings.tickets.dir)),
            root: tickets::Watch::new(layout.root()),
            settings: std::fs::read(&file).ok(),
            file,
        }
    }

    pub async fn changed(&mut self) -> Changed {
        loop {
            tokio::select! {
                () = self.tickets.changed() => return Changed::Tickets,
                () = self.root.changed() => {
                    let now = std::fs::read(&self.file).ok();
                    if now != self.settings {
                        self.settings = now;
                        return Changed::Settings;
                    }
                }
            }
        }
    }
}

/// Does what a command that is its own owner may do: it writes to the ticket files. Everything else waits for a fleet.
pub fn write_alone(handle: &crate::owner::Handle, layout: &Layout) -> Result<(), RunError> {
    use kernel::command::Outcome;
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
    let desk = Desk::new(layout, &settings, repository.bare());
    let leased =
        handle.lease("command", crate::clock::now(), crate::clock::now() + 60_000, super::LEASED_MAX)?;
    for leased in leased {
        let fence = crate::log::Fence { effect: leased.id.clone(), attempt: leased.attempt };
        let wanted = waiting.iter().find(|(id, _)| id.as_str() == leased.id);
        let Some((id, effect)) = wanted else {
            handle.release(&fence)?;
            continue;
        };
        let kernel::Effect::WriteTicket { task, ticket, status, note } = effect.as_ref() else { continue };
        let landed = world.task(task).is_some_and(|task| task.landed.is_some());
        let written = match &desk.files {
            Some(files) => write_file(files, Some(&repository), ticket, status, note.as_deref(), landed),
            None => Ok(None),
        };
        if written.is_err() {
            // The fleet tries again.
            handle.release(&fence)?;
            continue;
        }
        let command = kernel::Command {
            id: crate::clock::unique(),
            at: crate::clock::now(),
            actor: kernel::Actor::System,
            key: None,
            ask: Ask::Outcome(Outcome { effect: id.clone(), what: Happened::TicketWritten }),
        };
        handle.submit(command, Some(fence))?;
    }
    Ok(())
}
