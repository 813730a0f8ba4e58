//! The rules of subscriptions: when one is woken, who holds it, and what is acknowledged. All of it runs in the writer's transaction.
//!
//! A subscription is idle, waking (a wake event is written and nobody has claimed it) or leased. Every wake increments the
//! generation, and everything of an earlier generation is rejected.

use serde_json::{Value, json};

use super::config::{Config, DeliveryKind};
use super::keys::{self, TokenError};
use super::turn::Turn;
use super::webhook::{Delivery, Outcome};
use super::{Refusal, glob, refuse};
use crate::content::Kind;
use crate::json as messages;
use crate::offset;
use crate::problem::Problem;
use crate::storage::{LinkRow, Phase, StoreError, SubscriptionRow, Tables};
use crate::stored::append::write_chunks;
use crate::stored::{Change, Fault, is_over};

/// Most streams that one wake tells of; those with something new come first.
const STREAMS_TOLD_MAX: usize = 1000;
const BACKOFF_MS_MIN: u64 = 1_000;
const BACKOFF_MS_MAX: u64 = 60_000;

pub struct Subscription {
    pub row: SubscriptionRow,
    pub config: Config,
}

/// One stream of a subscription.
pub struct Link {
    pub path: String,
    pub explicit: bool,
    pub acked: u64,
    pub tail: u64,
}

impl Link {
    fn pending(&self) -> bool {
        self.tail > self.acked
    }

    /// As a wake tells of it.
    fn told(&self) -> Value {
        let mut told = self.listed();
        told["tail_offset"] = json!(offset::text(self.tail));
        told["has_pending"] = json!(self.pending());
        told
    }

    /// As a subscription lists it.
    pub fn listed(&self) -> Value {
        json!({
            "path": self.path,
            "link_type": if self.explicit { "explicit" } else { "glob" },
            "acked_offset": offset::text(self.acked),
        })
    }
}

impl Subscription {
    pub fn load(tables: &dyn Tables, id: &str) -> Result<Option<Subscription>, StoreError> {
        let row = tables.subscription(id)?;
        Ok(row.map(|row| Subscription { config: Config::stored(&row.config), row }))
    }

    pub fn failing(&self) -> bool {
        self.row.attempts > 0
    }

    fn save(&self, tables: &mut dyn Tables) -> Result<(), StoreError> {
        tables.set_subscription(&self.row)
    }

    /// The wake is over: nothing that belongs to it counts any more.
    fn release(&mut self) {
        self.row.phase = Phase::Idle;
        self.row.wake_id = None;
        self.row.holder = None;
        self.row.lease_until = None;
        self.row.snapshot.clear();
    }

    fn begin_wake(&mut self) -> Result<String, Fault> {
        let wake_id = keys::wake_id().map_err(Problem::failed)?;
        self.row.generation += 1;
        self.row.wake_id = Some(wake_id.clone());
        Ok(wake_id)
    }

    fn lease(&mut self, now: u64) {
        self.row.phase = Phase::Leased;
        self.row.lease_until = Some(now + self.config.lease_ttl_ms);
    }

    fn back_off(&mut self, now: u64) {
        self.row.attempts += 1;
        self.row.next_attempt = Some(now + backoff(self.row.attempts, now));
    }
}

/// Doubles from one second to a minute, give or take a tenth, so that failures of one moment do not come back as one.
fn backoff(attempts: u64, salt: u64) -> u64 {
    let doubled = BACKOFF_MS_MIN << attempts.saturating_sub(1).min(6);
    let base = doubled.min(BACKOFF_MS_MAX);
    let jitter = base / 5;
    (base - jitter / 2 + salt % (jitter + 1)).clamp(BACKOFF_MS_MIN, BACKOFF_MS_MAX)
}

/// The streams of a subscription, those with something new first.
pub fn links(tables: &dyn Tables, subscription: &str, most: usize) -> Result<Vec<Link>, StoreError> {
    let linked = |(LinkRow { path, explicit, acked, .. }, tail): (LinkRow, Option<u64>)| Link {
        tail: tail.unwrap_or(acked),
        path,
        explicit,
        acked,
    };
    Ok(tables.links(subscription, most)?.into_iter().map(linked).collect())
}

fn has_pending(tables: &dyn Tables, subscription: &str) -> Result<bool, StoreError> {
    Ok(links(tables, subscription, 1)?.first().is_some_and(Link::pending))
}

/// Lets every subscription hear of what happened to streams in this transaction.
pub fn hear_changes(turn: &mut Turn<'_>) -> Result<(), StoreError> {
    while let Some(change) = turn.stored.changes.get(turn.heard).cloned() {
        turn.heard += 1;
        match change {
            Change::Grown { path, before, tail, .. } => appended(turn, &path, before, tail)?,
            Change::Removed { path, .. } => deleted(turn, &path)?,
            Change::Other { .. } => {}
        }
    }
    Ok(())
}

/// A stream has grown: whoever looks for it is linked to it, and woken if it sleeps.
fn appended(turn: &mut Turn<'_>, path: &str, before: u64, tail: u64) -> Result<(), StoreError> {
    let tables = &mut *turn.stored.tables;
    let watching = turn.patterns.list(tables)?;
    if watching.is_empty() {
        return Ok(());
    }
    for watched in watching {
        let matched = watched.pattern.as_deref().is_some_and(|pattern| glob::matches(pattern, path));
        // Its own wake events are not what it waits for.
        if !matched || watched.wake_stream.as_deref() == Some(path) {
            continue;
        }
        if tables.link(&watched.subscription, path)?.is_none() {
            let link = LinkRow { path: path.to_owned(), explicit: false, matched: true, acked: before };
            tables.set_link(&watched.subscription, &link)?;
        }
    }
    for (subscription, _) in tables.links_to(path)?.into_iter().filter(|(_, link)| link.acked < tail) {
        // A subscription that cannot be woken is no reason to refuse the append.
        if let Err(Fault::Failed(error)) = consider(turn, &subscription) {
            return Err(error);
        }
    }
    Ok(())
}

/// A stream is gone. A link by pattern goes with it; an explicit one waits for the next stream of that name.
fn deleted(turn: &mut Turn<'_>, path: &str) -> Result<(), StoreError> {
    for (subscription, link) in turn.stored.tables.links_to(path)? {
        match link.explicit {
            true => turn.stored.tables.set_link(&subscription, &LinkRow { acked: 0, ..link })?,
            false => turn.stored.tables.remove_link(&subscription, path)?,
        }
    }
    Ok(())
}

/// Wakes a subscription that is idle, has something to do, and need not wait.
fn consider(turn: &mut Turn<'_>, id: &str) -> Result<bool, Fault> {
    let Some(mut subscription) = Subscription::load(turn.stored.tables, id)? else { return Ok(false) };
    if subscription.row.phase != Phase::Idle
        || subscription.row.next_attempt.is_some_and(|at| at > turn.stored.now)
    {
        return Ok(false);
    }
    let links = links(turn.stored.tables, id, STREAMS_TOLD_MAX)?;
    let Some(first) = links.first().filter(|link| link.pending()) else {
        subscription.row.next_attempt = None;
        subscription.save(turn.stored.tables)?;
        return Ok(false);
    };
    match subscription.config.delivery {
        DeliveryKind::PullWake => {
            let stream = first.path.clone();
            write_wake_event(turn, subscription, &stream)?;
        }
        DeliveryKind::Webhook => {
            subscription.begin_wake()?;
            subscription.lease(turn.stored.now);
            subscription.row.next_attempt = None;
            subscription.row.snapshot = links.iter().map(|link| (link.path.clone(), link.tail)).collect();
            subscription.save(turn.stored.tables)?;
            let delivery = delivery(turn, &subscription, &links);
            turn.deliveries.push(delivery);
        }
    }
    Ok(true)
}

fn delivery(turn: &Turn<'_>, subscription: &Subscription, links: &[Link]) -> Delivery {
    let wake_id = subscription.row.wake_id.clone().unwrap_or_default();
    let body = json!({
        "subscription_id": subscription.row.id,
        "wake_id": wake_id,
        "generation": subscription.row.generation,
        "streams": links.iter().map(Link::told).collect::<Vec<_>>(),
        "callback_url": format!("{}/__ds/subscriptions/{}/callback", subscription.row.base, subscription.row.id),
        "callback_token": turn.keys.token(&subscription.row.id, subscription.row.generation, turn.stored.now),
    });
    Delivery {
        subscription: subscription.row.id.clone(),
        generation: subscription.row.generation,
        wake_id,
        url: subscription.config.webhook_url.clone().unwrap_or_default(),
        body: body.to_string().into(),
    }
}

/// Writes the wake into the stream that the workers read. Without that stream there is nobody to wake: it is tried again.
fn write_wake_event(turn: &mut Turn<'_>, mut subscription: Subscription, stream: &str) -> Result<(), Fault> {
    let path = subscription.config.wake_stream.clone().unwrap_or_default();
    let channel = turn
        .stored
        .tables
        .stream(&path)?
        .filter(|meta| !meta.deleted && !meta.closed && meta.kind() == Kind::Json)
        .filter(|meta| !is_over(meta, turn.stored.shared, turn.stored.now));
    let Some(mut channel) = channel else {
        subscription.back_off(turn.stored.now);
        subscription.save(turn.stored.tables)?;
        return Ok(());
    };
    subscription.begin_wake()?;
    subscription.row.phase = Phase::Waking;
    subscription.row.attempts = 0;
    subscription.row.next_attempt = None;
    subscription.save(turn.stored.tables)?;

    let event = json!({
        "type": "wake",
        "subscription_id": subscription.row.id,
        "stream": stream,
        "generation": subscription.row.generation,
        "ts": turn.stored.now,
    });
    let mut kept = event.to_string().into_bytes();
    kept.push(messages::END);
    let before = channel.tail;
    write_chunks(turn.stored.tables, &mut channel, &kept)?;
    channel.due = channel.lifetime.due(turn.stored.now).or(channel.due);
    turn.stored.tables.set_stream(&channel)?;
    // Somebody may wait for wake events of others. It ends: each is woken once, and then no longer idle.
    turn.stored.changes.push(Change::of(&channel, before));
    Ok(hear_changes(turn)?)
}

/// What came of a webhook. One of an earlier wake changes nothing.
pub fn delivered(turn: &mut Turn<'_>, delivery: &Delivery, outcome: Outcome) -> Result<(), Fault> {
    let Some(mut subscription) = Subscription::load(turn.stored.tables, &delivery.subscription)? else {
        return Ok(());
    };
    let current = subscription.row.generation == delivery.generation
        && subscription.row.wake_id.as_ref() == Some(&delivery.wake_id);
    if !current {
        return Ok(());
    }
    match outcome {
        Outcome::Accepted => subscription.row.attempts = 0,
        Outcome::Done => {
            subscription.row.attempts = 0;
            for (path, tail) in &subscription.row.snapshot {
                acknowledge(turn.stored.tables, &subscription.row.id, path, *tail)?;
            }
            subscription.release();
        }
        Outcome::Failed => {
            subscription.release();
            subscription.back_off(turn.stored.now);
        }
    }
    subscription.save(turn.stored.tables)?;
    consider(turn, &delivery.subscription)?;
    Ok(())
}

fn acknowledge(
    tables: &mut dyn Tables,
    subscription: &str,
    path: &str,
    position: u64,
) -> Result<(), StoreError> {
    let Some(link) = tables.link(subscription, path)? else { return Ok(()) };
    tables.set_link(subscription, &LinkRow { acked: link.acked.max(position), ..link })
}

/// Leases that have run out, and times to try again.
pub fn sweep(turn: &mut Turn<'_>) -> Result<(), StoreError> {
    for id in turn.stored.tables.due_subscriptions(turn.stored.now)? {
        match expire(turn, &id).and_then(|()| consider(turn, &id)) {
            Ok(_) | Err(Fault::Refused(_)) => {}
            Err(Fault::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}

fn expire(turn: &mut Turn<'_>, id: &str) -> Result<(), Fault> {
    let Some(mut subscription) = Subscription::load(turn.stored.tables, id)? else { return Ok(()) };
    if subscription.row.phase == Phase::Leased
        && subscription.row.lease_until.is_some_and(|until| until <= turn.stored.now)
    {
        subscription.release();
        subscription.save(turn.stored.tables)?;
    }
    Ok(())
}

/// The answer to a request of a worker, or why there is none.
pub type Ruling = Result<Value, Refusal>;

pub fn claim(turn: &mut Turn<'_>, id: &str, worker: &str) -> Result<Ruling, Fault> {
    expire(turn, id)?;
    let Some(mut subscription) = Subscription::load(turn.stored.tables, id)? else {
        return Ok(Err(unknown(id)));
    };
    if subscription.config.delivery != DeliveryKind::PullWake {
        return Ok(Err(refuse(400, "INVALID_REQUEST", "only a pull-wake subscription is claimed")));
    }
    if subscription.row.phase == Phase::Leased {
        let held = refuse(409, "ALREADY_CLAIMED", "another worker holds the lease")
            .with("current_holder", json!(subscription.row.holder))
            .with("generation", json!(subscription.row.generation));
        return Ok(Err(held));
    }
    if !has_pending(turn.stored.tables, id)? {
        return Ok(Err(refuse(409, "NO_PENDING_WORK", "there is nothing to do")));
    }
    if subscription.row.phase == Phase::Idle {
        subscription.begin_wake()?;
    }
    subscription.lease(turn.stored.now);
    subscription.row.holder = Some(worker.to_owned());
    subscription.row.attempts = 0;
    subscription.row.next_attempt = None;
    subscription.save(turn.stored.tables)?;
    let links = links(turn.stored.tables, id, STREAMS_TOLD_MAX)?;
    Ok(Ok(json!({
        "wake_id": subscription.row.wake_id,
        "generation": subscription.row.generation,
        "token": turn.keys.token(id, subscription.row.generation, turn.stored.now),
        "streams": links.iter().map(Link::told).collect::<Vec<_>>(),
        "lease_ttl_ms": subscription.config.lease_ttl_ms,
    })))
}

/// What a worker sends about the wake that it holds.
pub struct Report {
    pub token: String,
    pub wake_id: String,
    pub generation: u64,
    pub acks: Vec<(String, u64)>,
    pub done: bool,
}

/// A callback or an ack: applied whole or not at all, and it keeps the lease alive.
pub fn report(turn: &mut Turn<'_>, id: &str, report: &Report) -> Result<Ruling, Fault> {
    let mut subscription = match fenced(turn, id, report)? {
        Ok(subscription) => subscription,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let links = links(turn.stored.tables, id, usize::MAX)?;
    for (path, position) in &report.acks {
        if links.iter().any(|link| link.path == *path && *position > link.tail) {
            return Ok(Err(refuse(
                400,
                "INVALID_OFFSET",
                format!("the ack lies behind the end of `{path}`"),
            )));
        }
    }
    for (path, position) in &report.acks {
        acknowledge(turn.stored.tables, id, path, *position)?;
    }
    subscription.row.attempts = 0;
    if !report.done {
        subscription.lease(turn.stored.now);
        subscription.save(turn.stored.tables)?;
        return Ok(Ok(json!({ "ok": true, "next_wake": false })));
    }
    subscription.release();
    subscription.save(turn.stored.tables)?;
    let woken = consider(turn, id)?;
    Ok(Ok(json!({ "ok": true, "next_wake": woken })))
}

pub fn let_go(turn: &mut Turn<'_>, id: &str, report: &Report) -> Result<Ruling, Fault> {
    let mut subscription = match fenced(turn, id, report)? {
        Ok(subscription) => subscription,
        Err(refusal) => return Ok(Err(refusal)),
    };
    subscription.release();
    subscription.save(turn.stored.tables)?;
    consider(turn, id)?;
    Ok(Ok(Value::Null))
}

/// The subscription, if the one who asks holds its current wake.
fn fenced(turn: &mut Turn<'_>, id: &str, report: &Report) -> Result<Result<Subscription, Refusal>, Fault> {
    let Some(subscription) = Subscription::load(turn.stored.tables, id)? else { return Ok(Err(unknown(id))) };
    let generation = match turn.keys.check(&report.token, id, turn.stored.now) {
        Ok(generation) => generation,
        Err(TokenError::Invalid) => {
            return Ok(Err(refuse(401, "TOKEN_INVALID", "the token is not one of this subscription")));
        }
        Err(TokenError::Expired) => return Ok(Err(refuse(401, "TOKEN_EXPIRED", "the token has expired"))),
    };
    let current = subscription.row.phase == Phase::Leased
        && subscription.row.lease_until.is_some_and(|until| turn.stored.now < until)
        && generation == subscription.row.generation
        && report.generation == subscription.row.generation
        && subscription.row.wake_id.as_deref() == Some(report.wake_id.as_str());
    if !current {
        return Ok(Err(refuse(409, "FENCED", "this wake is over")));
    }
    Ok(Ok(subscription))
}

pub fn unknown(id: &str) -> Refusal {
    refuse(404, "SUBSCRIPTION_NOT_FOUND", format!("there is no subscription `{id}`"))
}

/// Makes a subscription. `true` when it is new.
pub fn create(
    turn: &mut Turn<'_>,
    id: &str,
    config: &Config,
    base: &str,
) -> Result<Result<bool, Refusal>, Fault> {
    if let Some(there) = Subscription::load(turn.stored.tables, id)? {
        return Ok(if there.config == *config {
            Ok(false)
        } else {
            Err(refuse(
                409,
                "SUBSCRIPTION_ALREADY_EXISTS",
                "the subscription exists with another configuration",
            ))
        });
    }
    turn.stored.tables.add_subscription(&SubscriptionRow {
        id: id.to_owned(),
        config: config.text(),
        base: base.to_owned(),
        created: turn.stored.now,
        ..SubscriptionRow::default()
    })?;
    turn.patterns.forget();
    link_explicit(turn.stored.tables, id, &config.streams)?;
    if let Some(pattern) = &config.pattern {
        link_matching(turn.stored.tables, id, pattern, config.wake_stream.as_deref())?;
    }
    Ok(Ok(true))
}

/// Links streams by name, from where they end now.
pub fn link_explicit(tables: &mut dyn Tables, id: &str, streams: &[String]) -> Result<(), StoreError> {
    for path in streams {
        let link = match tables.link(id, path)? {
            Some(link) => LinkRow { explicit: true, ..link },
            None => {
                let there = tables.stream(path)?.filter(|meta| !meta.deleted);
                let acked = there.map_or(0, |meta| meta.tail);
                LinkRow { path: path.clone(), explicit: true, matched: false, acked }
            }
        };
        tables.set_link(id, &link)?;
    }
    Ok(())
}

/// Takes an explicit link away; what the pattern matches stays linked.
pub fn unlink(turn: &mut Turn<'_>, id: &str, path: &str) -> Result<Ruling, Fault> {
    let Some(subscription) = Subscription::load(turn.stored.tables, id)? else {
        return Ok(Err(unknown(id)));
    };
    let still = subscription.config.pattern.is_some_and(|pattern| glob::matches(&pattern, path));
    match turn.stored.tables.link(id, path)? {
        Some(link) if still => {
            turn.stored.tables.set_link(id, &LinkRow { explicit: false, matched: true, ..link })?;
        }
        Some(_) => turn.stored.tables.remove_link(id, path)?,
        None => {}
    }
    Ok(Ok(Value::Null))
}

fn link_matching(
    tables: &mut dyn Tables,
    id: &str,
    pattern: &str,
    own: Option<&str>,
) -> Result<(), StoreError> {
    let prefix = glob::fixed_prefix(pattern).trim_end_matches('/');
    for (path, tail) in tables.streams_below(prefix)? {
        if Some(path.as_str()) == own || !glob::matches(pattern, &path) {
            continue;
        }
        let link = match tables.link(id, &path)? {
            Some(link) => LinkRow { matched: true, ..link },
            None => LinkRow { path, explicit: false, matched: true, acked: tail },
        };
        tables.set_link(id, &link)?;
    }
    Ok(())
}

pub fn remove(turn: &mut Turn<'_>, id: &str) -> Result<Ruling, Fault> {
    if !turn.stored.tables.remove_subscription(id)? {
        return Ok(Err(unknown(id)));
    }
    turn.patterns.forget();
    Ok(Ok(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_slower_and_stay_within_a_second_and_a_minute() {
        for salt in [0, 7, 199, 12_345] {
            let waits: Vec<u64> = (1..20).map(|attempts| backoff(attempts, salt)).collect();
            assert!(waits.iter().all(|wait| (BACKOFF_MS_MIN..=BACKOFF_MS_MAX).contains(wait)), "{waits:?}");
            assert!((1_800..=2_200).contains(&waits[1]), "{waits:?}");
            assert!(waits[18] >= 54_000, "{waits:?}");
        }
    }
}
