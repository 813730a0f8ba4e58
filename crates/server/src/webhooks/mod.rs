//! Webhooks: addresses of the user's that are told when a person is needed, whether a fleet is at work or not.
//!
//! Invariants:
//! - what is to be sent is on disk before it is sent, and leaves the disk when somebody took it: it comes at least once, with
//!   the same id each time;
//! - a secret is read from the environment when it is used, and is written nowhere.

mod outbox;
mod send;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fleet::standstill::Standstill;
use fleet::{self, is_news};
use kernel::World;
use kernel::standstill::Reason;
use kernel::waiting::{Severity, Waiting, waiting};
use log::owner::Handle;
use machines::Wire;
use project::layout::Layout;
use project::settings::{Settings, Webhook, trust};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use self::outbox::{Delivery, Outbox};
use api::{self, types};

/// Deliveries under way at once.
const SENDING_MAX: usize = 8;
/// What happens within this time is looked at together.
const GATHER: Duration = Duration::from_millis(100);
/// What waits may change without a record: a file, a clock.
const LOOK: Duration = Duration::from_secs(30);
/// What was not sent when the process ends is given this long, and then waits for the next one.
const GRACE: Duration = Duration::from_millis(500);

/// The one who tells, until it is told to end.
pub struct NotifierTask {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl NotifierTask {
    /// Looks a last time, and tries what is due.
    pub async fn finish(self) {
        let NotifierTask { end, mut task } = self;
        let _ = end.send(());
        if tokio::time::timeout(GRACE, &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// What waits when this returns is known already, unless a process before this one has seen less.
pub async fn start(
    project: String,
    handle: Handle,
    layout: Layout,
    notices: mpsc::UnboundedSender<String>,
) -> NotifierTask {
    let (end, ending) = oneshot::channel();
    let notifier = Arc::new(Notifier { project, handle, layout, notices });
    let mut running =
        NotifierLoop { notifier, outbox: None, sending: BTreeSet::new(), tasks: JoinSet::new() };
    running.look().await;
    NotifierTask { end, task: tokio::spawn(running.run(ending)) }
}

struct Notifier {
    project: String,
    handle: Handle,
    layout: Layout,
    notices: mpsc::UnboundedSender<String>,
}

type Sent = (String, String, Result<(), String>);

struct NotifierLoop {
    notifier: Arc<Notifier>,
    /// As it is on disk; `None` while nobody is to be told.
    outbox: Option<Outbox>,
    /// Ids and webhooks that are under way.
    sending: BTreeSet<(String, String)>,
    tasks: JoinSet<Sent>,
}

impl NotifierLoop {
    async fn run(mut self, mut ending: oneshot::Receiver<()>) {
        let mut head = self.notifier.handle.follow();
        loop {
            let now = base::clock::now();
            let due = self.outbox.iter().flat_map(|outbox| &outbox.deliveries);
            let due = due.filter(|one| !self.sending.contains(&(one.id.clone(), one.webhook.clone())));
            let wait = due.map(|one| Duration::from_millis((one.next - now).max(0).unsigned_abs())).min();
            tokio::select! {
                changed = head.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(GATHER).await;
                    self.look().await;
                }
                Some(Ok(sent)) = self.tasks.join_next() => self.heard(sent),
                () = tokio::time::sleep(wait.unwrap_or(LOOK).min(LOOK)) => self.look().await,
                _ = &mut ending => break,
            }
        }
        self.look().await;
        while let Some(sent) = self.tasks.join_next().await {
            if let Ok(sent) = sent {
                self.heard(sent);
            }
        }
    }

    /// Finds what is new, writes it down and sends what is due.
    async fn look(&mut self) {
        let (notifier, outbox) = (self.notifier.clone(), self.outbox.take());
        let looked = tokio::task::spawn_blocking(move || notifier.looked(outbox)).await;
        let Ok(Some((outbox, webhooks))) = looked else { return };
        let now = base::clock::now();
        for delivery in outbox.deliveries.iter().filter(|delivery| delivery.next <= now) {
            let name = (delivery.id.clone(), delivery.webhook.clone());
            if self.sending.len() >= SENDING_MAX || self.sending.contains(&name) {
                continue;
            }
            let webhook = webhooks.get(&delivery.webhook).cloned();
            self.sending.insert(name);
            self.tasks.spawn(tried(delivery.clone(), webhook));
        }
        self.outbox = Some(outbox);
    }

    fn heard(&mut self, (id, webhook, sent): Sent) {
        self.sending.remove(&(id.clone(), webhook.clone()));
        let Some(outbox) = &mut self.outbox else { return };
        match sent {
            Ok(()) => outbox.taken(&id, &webhook),
            Err(why) => {
                let first = outbox.deliveries.iter().any(|one| one.id == id && one.tries == 0);
                let over = outbox.failed(&id, &webhook, base::clock::now());
                let what = if over { "is given up" } else { "will be retried" };
                if first || over {
                    let said = format!("webhook {webhook}: a message was not delivered and {what}: {why}");
                    let _ = self.notifier.notices.send(said);
                }
            }
        }
        self.notifier.write(outbox);
    }
}

type Webhooks = std::collections::BTreeMap<String, Webhook>;

/// One that is not in the settings any more gets nothing.
async fn tried(delivery: Delivery, webhook: Option<Webhook>) -> Sent {
    let sent = match &webhook {
        None => Ok(()),
        Some(webhook) => match webhook.secret_env.as_ref().map(|name| (name, std::env::var(name))) {
            Some((name, Err(_))) => Err(format!("the variable {name}, which holds its secret, is not set")),
            Some((_, Ok(secret))) => send::send(&delivery, &webhook.url, Some(&secret)).await,
            None => send::send(&delivery, &webhook.url, None).await,
        },
    };
    (delivery.id, delivery.webhook, sent)
}

/// What is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: String,
    project: String,
    severity: &'static str,
    timestamp: String,
    #[serde(flatten)]
    waiting: types::waiting::Waiting,
}

/// What is sent where the fleet stands still.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StillMessage {
    id: String,
    project: String,
    kind: &'static str,
    severity: &'static str,
    timestamp: String,
    since: String,
    /// The tasks that all of it holds up.
    blocks: Vec<String>,
    text: String,
    /// What it stands still for, as `GET /waiting` has it.
    waiting: Vec<types::waiting::Waiting>,
}

impl Notifier {
    /// `None`: nobody is to be told, or what is in force cannot be read.
    fn looked(&self, outbox: Option<Outbox>) -> Option<(Outbox, Webhooks)> {
        let folder = self.layout.state();
        let settings = trust::in_force(&self.layout).ok()?.settings;
        if settings.webhooks.is_empty() {
            Outbox::forget(&folder);
            return None;
        }
        let before = outbox.or_else(|| Outbox::read(&folder));
        let world = self.world(&settings);
        let list = waiting(&world, &trust::facts(&self.layout), base::clock::now());
        let list: Vec<Waiting> = list.into_iter().filter(|item| is_news(&world, item)).collect();
        let known = list.iter().map(|item| (item.kind, item.about.clone())).collect();
        let still = self.standstill(&world);
        let standstill = still.as_ref().map(|(id, _)| id.clone());
        let Some(before) = before else {
            let begun = Outbox { known, standstill, deliveries: Vec::new() };
            self.write(&begun);
            return Some((begun, settings.webhooks));
        };
        // The last one that was told is remembered while the fleet goes on: it may come to stand still for the same again.
        let standstill = standstill.or_else(|| before.standstill.clone());
        let mut outbox = Outbox { known, standstill, deliveries: before.deliveries.clone() };
        for item in list.into_iter().filter(|item| !before.known.contains(&(item.kind, item.about.clone()))) {
            self.add(&mut outbox, &settings.webhooks, item);
        }
        if let Some((id, still)) = still.filter(|(id, _)| before.standstill.as_ref() != Some(id)) {
            self.add_standstill(&mut outbox, &settings.webhooks, id, still);
        }
        if outbox != before {
            self.write(&outbox);
        }
        Some((outbox, settings.webhooks))
    }

    /// Under the settings as they are: where no fleet runs, they may never have been read.
    fn world(&self, settings: &Settings) -> Arc<World> {
        let (world, rules) = (self.handle.world(), settings.kernel());
        match world.fleet_running || *world.config == rules {
            true => world,
            false => Arc::new(World { config: Arc::new(rules), ..(*world).clone() }),
        }
    }

    fn add(&self, outbox: &mut Outbox, webhooks: &Webhooks, item: Waiting) {
        let (now, severity) = (base::clock::now(), item.kind.severity());
        let id = fleet::notice_id(&self.handle, &item);
        let message = Message {
            id: id.clone(),
            project: self.project.clone(),
            severity: severity.name(),
            timestamp: api::time(now),
            waiting: item.into(),
        };
        let body = api::operation::document(&message).to_string();
        deliver(outbox, webhooks, &id, severity, &body);
    }

    /// What a fleet said that stands still, as long as it does, and the id of that.
    fn standstill(&self, world: &World) -> Option<(String, Standstill)> {
        let said = world.standstill.as_ref()?;
        let still = Standstill::of(world, base::clock::now())?;
        let is_said = said.of_this_fleet && said.reasons == Reason::all_of(&still.list);
        is_said.then(|| (fleet::standstill_id(&self.handle, &still.list), still))
    }

    fn add_standstill(&self, outbox: &mut Outbox, webhooks: &Webhooks, id: String, still: Standstill) {
        let since = self.handle.world().standstill.as_ref().map_or(0, |said| said.since);
        let blocks = kernel::standstill::held_up(&still.list);
        let message = StillMessage {
            id: id.clone(),
            project: self.project.clone(),
            kind: fleet::STANDSTILL,
            severity: Severity::Urgent.name(),
            timestamp: api::time(base::clock::now()),
            since: api::time(since),
            blocks: blocks.iter().map(ToString::to_string).collect(),
            text: still.text(),
            waiting: still.list.into_iter().map(Into::into).collect(),
        };
        let body = api::operation::document(&message).to_string();
        deliver(outbox, webhooks, &id, Severity::Urgent, &body);
    }

    fn write(&self, outbox: &Outbox) {
        if let Err(error) = outbox.write(&self.layout.state()) {
            let _ = self.notices.send(format!("pending webhook messages cannot be stored: {error}"));
        }
    }
}

/// To each that wants to hear of what matters as much.
fn deliver(outbox: &mut Outbox, webhooks: &Webhooks, id: &str, severity: Severity, body: &str) {
    let now = base::clock::now();
    for (name, _) in webhooks.iter().filter(|(_, webhook)| severity >= webhook.severity) {
        let (id, webhook, body) = (id.to_owned(), name.clone(), body.to_owned());
        outbox.add(Delivery { id, webhook, body, since: now, tries: 0, next: now });
    }
}
