//! Runs after a commit, beside its effects: notifies people, and releases the resources of a run that is over.
//!
//! None of this changes the work, so none of it is an effect. A notification that is lost in a crash is not sent
//! again; resources that were not released are released when the next fleet starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::World;
use kernel::event::Event;
use kernel::standstill::Reason;
use kernel::waiting::{About, Kind, Severity, Waiting, waiting};
use machines::Wire;
use machines::names::RunId;
use machines::task::BlockReason;
use tokio::task::JoinSet;

use super::desktop;
use super::user_commands::run_hook;
use super::{AnyError, KeyFor, Shared};
use crate::command_line;
use crate::standstill::Standstill;
use base::secrets;
use log::Seq;
use log::owner::Handle;
use project::settings::trust;
use project::workplace::PortLeases;

/// Records that are read at once.
const RECORDS: usize = 500;
/// Notices under way at once; the next waits for one of them.
const NOTICES_MAX: usize = 8;

/// By what a notice of a fleet that stands still is known, where those of things that wait are known by their kind.
pub const STANDSTILL: &str = "standstill";

/// Why a person is needed.
struct Need {
    /// The same for the same thing, whoever tells it and however often.
    id: String,
    /// What waits, as the list has it.
    kind: &'static str,
    severity: Severity,
    /// The cause of the question, the reason of the block, or why a person must look.
    reason: String,
    task: String,
    approval: String,
    request: String,
    channel: String,
    /// One sentence, with the command that answers it.
    message: String,
    /// The call that waits, whole.
    call: String,
}

/// Follows the log until `end` is dropped, and to where it stands then.
pub async fn follow(shared: Arc<Shared>, mut seen: Seq, mut end: tokio::sync::oneshot::Receiver<()>) {
    give_back(&shared).await;
    let mut head = shared.handle.follow();
    let mut notices = JoinSet::new();
    let mut needs = Needs::default();
    needs.look(&shared).await;
    let mut ending = false;
    loop {
        head.borrow_and_update();
        loop {
            let handle = shared.handle.clone();
            // An owner that has stopped has nothing more to tell.
            let Ok(page) = shared.blocking(move || handle.read(seen, RECORDS)).await else { return };
            let world = shared.world();
            let mut over = false;
            let mut still = false;
            for record in &page {
                seen = record.seq;
                let Ok(event) = Event::decode(&record.kind, &record.data) else { continue };
                over |= is_over(&world, &event);
                still |= matches!(event, Event::StoodStill(said) if !said.again);
            }
            let mut new = needs.look(&shared).await;
            if still && wants_notices(&shared) {
                new.extend(standstill(&shared).await);
            }
            for (at, need) in new.into_iter().enumerate() {
                if notices.len() >= NOTICES_MAX {
                    notices.join_next().await;
                }
                let (shared, name) = (shared.clone(), format!("notify-{seen}-{at}"));
                notices.spawn(async move { notify(&shared, name, need).await });
            }
            if over {
                give_back(&shared).await;
            }
            if page.len() < RECORDS {
                break;
            }
        }
        if ending {
            while notices.join_next().await.is_some() {}
            return;
        }
        tokio::select! {
            moved = head.changed() => ending = moved.is_err(),
            _ = &mut end => ending = true,
            Some(_) = notices.join_next() => {}
        }
    }
}

/// Whether something came to its end that had been given something.
fn is_over(world: &World, event: &Event) -> bool {
    match event {
        Event::RunMoved(moved) => world.run(&moved.id).is_none_or(|run| !run.is_open()),
        Event::TaskMoved(moved) => moved.to.is_final(),
        Event::TreeStands(stands) => !stands.stands,
        Event::ReplyUnderWay(reply) => reply.effect.is_none(),
        _ => false,
    }
}

/// A run or a reply that is over has no token. A run keeps its ports for the tests of its landing and the hooks of its tree.
async fn give_back(shared: &Arc<Shared>) {
    let (host, world) = (shared.clone(), shared.world());
    let given = move || -> Result<(), AnyError> {
        let is_open = |id: &RunId| world.run(id).is_some_and(|run| run.is_open());
        let has_work = |id: &RunId| {
            let task = world.run(id).and_then(|run| world.task(&run.task));
            task.is_some_and(|task| {
                let over = task.is_final();
                let stands = task.work.place.as_ref().is_some_and(|place| place.ready);
                task.work.run.as_ref() == Some(id) && (!over || stands)
            })
        };
        if let Some(keys) = &host.keys {
            keys.keep_only(&|what| match what {
                KeyFor::Run(run) => is_open(run),
                KeyFor::Reply(seat, reply) => {
                    world.seated(seat).is_some_and(|seated| seated.reply.as_ref() == Some(reply))
                }
            })?;
        }
        let ports = PortLeases::new(&host.layout.state(), &host.in_force().settings.ports);
        Ok(ports.keep_only(|id| is_open(id) || has_work(id))?)
    };
    if let Err(error) = shared.blocking(given).await {
        shared.notice(error.to_string());
    }
}

/// What has come to wait for a person, as the one list of what waits has it.
#[derive(Default)]
struct Needs {
    /// What people know of already; nothing before somebody wants to be told.
    known: Option<BTreeSet<(Kind, About)>>,
}

impl Needs {
    /// What is new since the last look. What stood there before anybody wanted to be told is not.
    async fn look(&mut self, shared: &Arc<Shared>) -> Vec<Need> {
        if !wants_notices(shared) {
            self.known = None;
            return Vec::new();
        }
        let (world, layout) = (shared.world(), shared.layout.clone());
        let look = move || {
            let list = waiting(&world, &trust::facts(&layout), base::clock::now());
            let list: Vec<Waiting> = list.into_iter().filter(|item| is_news(&world, item)).collect();
            (world, list)
        };
        let (world, list) = shared.blocking(look).await;
        let name = |item: &Waiting| (item.kind, item.about.clone());
        let now: BTreeSet<(Kind, About)> = list.iter().map(name).collect();
        let before = self.known.replace(now);
        let Some(before) = before else { return Vec::new() };
        let new = list.into_iter().filter(|item| !before.contains(&name(item)));
        new.map(|item| need(&shared.handle, &world, item)).collect()
    }
}

/// That the fleet stands still, where it does so still.
async fn standstill(shared: &Arc<Shared>) -> Option<Need> {
    let (handle, world) = (shared.handle.clone(), shared.world());
    let told = move || {
        let still = Standstill::of(&world, base::clock::now())?;
        let mut kinds: Vec<&str> = still.list.iter().map(|item| item.kind.name()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        Some(Need {
            id: standstill_id(&handle, &still.list),
            kind: STANDSTILL,
            severity: Severity::Urgent,
            reason: kinds.join(" "),
            task: String::new(),
            approval: String::new(),
            request: String::new(),
            channel: String::new(),
            message: still.text(),
            call: String::new(),
        })
    };
    shared.blocking(told).await
}

/// The id of a notice that something waits, from what the log says of it: whoever finds it again after a crash gives it the
/// same. Which log, what waits and since when.
pub fn notice_id(handle: &Handle, item: &Waiting) -> String {
    let about = serde_json::to_string(&item.about).unwrap_or_default();
    let since = item.since.map(|since| since.to_string()).unwrap_or_default();
    id_of(handle, &format!("{}\n{about}\n{since}", item.kind.name()))
}

/// The same of a notice that the fleet stands still for these.
pub fn standstill_id(handle: &Handle, list: &[Waiting]) -> String {
    let reasons = serde_json::to_string(&Reason::all_of(list)).unwrap_or_default();
    id_of(handle, &format!("{STANDSTILL}\n{reasons}"))
}

fn id_of(handle: &Handle, what: &str) -> String {
    let first = handle.read(0, 1).ok().and_then(|page| page.into_iter().next());
    let log = first.map(|record| format!("{} {}", record.command, record.at)).unwrap_or_default();
    secrets::hash(format!("{log}\n{what}").as_bytes())[..32].to_owned()
}

fn wants_notices(shared: &Shared) -> bool {
    let in_force = shared.in_force();
    in_force.settings.notify.desktop || in_force.settings.hooks.notify.is_some()
}

/// Whether somebody should be told of it who is not looking.
pub fn is_news(world: &World, item: &Waiting) -> bool {
    item.needs_someone() && !by_hand(world, item)
}

/// What a person did by hand, somebody knows already.
fn by_hand(world: &World, item: &Waiting) -> bool {
    let task = item.about.task.as_ref().and_then(|id| world.task(id));
    item.kind == Kind::BlockedTask
        && task.is_some_and(|task| task.machine.block_reason == Some(BlockReason::Manual))
}

fn need(handle: &Handle, world: &World, item: Waiting) -> Need {
    let id = notice_id(handle, &item);
    let Waiting { kind, about, text, options, .. } = item;
    let task = about.task.as_ref().and_then(|id| world.task(id));
    let approval = about.approval.as_ref().and_then(|id| world.approvals.get(id));
    let reason = match (kind, task, approval) {
        (_, _, Some(approval)) => approval.cause.name(),
        (Kind::BlockedTask | Kind::StuckWorker, Some(task), _) => {
            task.machine.block_reason.map_or("", Wire::name)
        }
        (Kind::Review, Some(task), _) => task.gate.needs_person.map_or("human", Wire::name),
        _ => "",
    };
    let what: Vec<String> = options.iter().take(2).map(command_line::command).collect();
    Need {
        id,
        kind: kind.name(),
        severity: kind.severity(),
        reason: reason.to_owned(),
        task: about.task.map(|id| id.to_string()).unwrap_or_default(),
        call: approval
            .and_then(|asked| asked.call.as_ref())
            .map(|call| call.lines().join("\n"))
            .unwrap_or_default(),
        approval: about.approval.map(|id| id.to_string()).unwrap_or_default(),
        request: about.request.map(|id| id.to_string()).unwrap_or_default(),
        channel: about.channel.map(|name| name.to_string()).unwrap_or_default(),
        message: format!("{text}: {}", what.join(", or ")),
    }
}

/// Tells a person that one is needed.
async fn notify(shared: &Arc<Shared>, name: String, need: Need) {
    let in_force = shared.in_force();
    if need.severity < in_force.settings.notify.severity {
        return;
    }
    if in_force.settings.notify.desktop {
        desktop::show(shared, &format!("{name}-desktop"), &need.task, &need.message).await;
    }
    let Some(hook) = in_force.settings.hooks.notify.clone() else { return };
    let Need { id, kind, severity, reason, task, approval, request, channel, message, call } = need;
    let told = [
        ("ADJ_ID", id),
        ("ADJ_NOTIFY", kind.to_owned()),
        ("ADJ_SEVERITY", severity.name().to_owned()),
        ("ADJ_REASON", reason),
        ("ADJ_TASK", task),
        ("ADJ_APPROVAL", approval),
        ("ADJ_REQUEST", request),
        ("ADJ_CHANNEL", channel),
        ("ADJ_MESSAGE", message),
        ("ADJ_CALL", call.replace('\0', "\\0")),
    ];
    run_hook(shared, "notify", hook, name, told.into()).await;
}
