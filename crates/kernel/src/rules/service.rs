//! Services that are away, and come back.

use machines::names::{AgentName, ApprovalId, RunId, ServiceName, TaskId};
use machines::suspended::{Suspension, Wrapped};
use machines::worker::ReleaseReason;
use smol_str::SmolStr;

use super::Rule;
use super::landing::land_again;
use super::next::wake;
use super::presence::gone;
use super::release::release;
use super::step::{lost, seconds};
use super::{architect, rooms, standstill};
use crate::Millis;
use crate::command::Refusal;
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, Timer};
use crate::event::{HealthSeen, OutageCounted, RunNoted, WaitsForService};
use crate::happened::Outage;
use crate::probe::Probe;
use crate::rooms::Seat;
use crate::session::Session;
use crate::words::{CommentKind, GoneBecause};
use crate::world::Health;

pub(super) fn outage(d: &mut Draft, id: &TaskId, run_id: &RunId, away: &Outage) -> Ruled {
    d.rule(Rule::Outage);
    service_away(d, away);
    let service = &away.service;
    if !d.run(run_id)?.is_live() {
        d.emit(RunNoted {
            id: run_id.clone(),
            note: format!("service {service} went away while a call waited"),
        });
        return release(d, id, ReleaseReason::NeedsApproval);
    }
    suspend(d, run_id, service, away.resets_at)
}

fn suspend(d: &mut Draft, run_id: &RunId, service: &ServiceName, resets_at: Option<Millis>) -> Ruled {
    let suspension = suspension(d, &Session::Run(run_id.clone()), service, resets_at);
    let until = suspension.until;
    d.move_run(run_id, Wrapped::Suspend(suspension))?;
    d.set_timer(Timer::Suspension { run: run_id.clone() }, until);
    Ok(())
}

/// How an agent is suspended, at work or speaking: with until when. What was counted before in the same outage is not given again, so whoever tries the
/// service in between gives up when the others do. A limit with a known end counts from there.
pub(super) fn suspension(
    d: &mut Draft,
    of: &Session,
    service: &ServiceName,
    resets_at: Option<Millis>,
) -> Suspension {
    let (at, who) = (d.at(), of.probe());
    // A reset that has passed says nothing.
    let resets_at = resets_at.filter(|reset| *reset > at);
    let known = d.world.outages.get(who.to_string().as_str());
    let spent = known.filter(|known| known.service == *service).map_or(0, |known| known.spent);
    let from = resets_at.unwrap_or(at);
    d.emit(OutageCounted { who, service: service.clone(), since: Some(from), spent });
    let until = from + (seconds(d.world.config.limits.suspension_seconds) - spent).max(0);
    Suspension { service: SmolStr::new(service.as_str()), since: at, resets_at, until }
}

/// Whoever is suspended goes on to try the service: what it has waited is counted. One wait is never longer than the longest
/// between two tries, whatever the clock says: the machine may have slept.
fn goes_to_try(d: &mut Draft, who: &Probe) {
    let Some(known) = d.world.outages.get(who.to_string().as_str()).cloned() else { return };
    let Some(since) = known.since else { return };
    let poll = d.world.config.limits.health_poll_seconds;
    let longest = Health::longest_wait(poll) + seconds(poll);
    let spent = known.spent + (d.at() - since).clamp(0, longest);
    d.emit(OutageCounted { who: who.clone(), service: known.service, since: None, spent });
}

/// Whoever was suspended has given up: the next time is a new one.
pub(super) fn outage_forgotten(d: &mut Draft, who: Probe) {
    if let Some(known) = d.world.outages.get(who.to_string().as_str()).cloned() {
        d.emit(OutageCounted { who, service: known.service, since: None, spent: 0 });
    }
}

/// A step is not begun with a service that is known to be away, but for that of whoever tries it. True: it waits with the others.
pub(super) fn held_back(d: &mut Draft, run_id: &RunId) -> Result<bool, Refusal> {
    let service = d.world.config.service_of(&d.run(run_id)?.agent);
    let away = d.world.health.get(&service).filter(|health| !health.healthy);
    let Some(away) = away.filter(|away| away.probe != Some(Probe::Run(run_id.clone()))) else {
        return Ok(false);
    };
    let resets_at = away.resets_at;
    d.rule(Rule::StepHeldBack);
    suspend(d, run_id, &service, resets_at)?;
    Ok(true)
}

/// What is known of a service that does not do its work is written down, and it is asked how it is from now on.
pub(super) fn service_away(d: &mut Draft, away: &Outage) {
    let (at, service) = (d.at(), &away.service);
    // A reset that has passed says nothing.
    let resets_at = away.resets_at.filter(|reset| *reset > at);
    d.emit(HealthSeen {
        service: service.clone(),
        healthy: false,
        at,
        resets_at,
        probe: None,
        error: away.error.clone(),
        refused: away.refused,
    });
    match resets_at {
        Some(reset) => d.set_timer(Timer::Reset { service: service.clone() }, reset),
        None => d.clear_timer(&Timer::Reset { service: service.clone() }),
    }
    poll_health(d);
}

/// The health of every service is asked as long as one of them is away.
pub(super) fn poll_health(d: &mut Draft) {
    let away = d.world.health.values().any(|health| !health.healthy);
    let polling = d.world.timers.contains_key(&Timer::HealthPoll);
    if away && !polling {
        let due = d.at() + seconds(d.world.config.limits.health_poll_seconds);
        d.set_timer(Timer::HealthPoll, due);
    } else if !away && polling {
        d.clear_timer(&Timer::HealthPoll);
    }
}

/// `None`: nothing is there to ask with. A timer is no health: the first that waits goes on alone, and the others follow when
/// it has come through.
pub(super) fn health_seen(d: &mut Draft, service: &ServiceName, healthy: Option<bool>) -> Ruled {
    let at = d.at();
    if let Some(known) = d.world.health.get(service) {
        let limited = known.resets_at.is_some_and(|reset| reset > at);
        let probing = d.world.probing(service).is_some();
        // A service can answer and still refuse work until the limit is reset, or until the probe has come through.
        if healthy == Some(known.healthy) || limited || probing {
            return Ok(());
        }
        // That it answers says nothing of credentials that it did not accept.
        if healthy.is_none() || known.refused {
            // Each try that comes to nothing doubles the wait: a service that asks to be left alone is left alone.
            // By a clock that was set back nobody knows how long that was; the poll itself has waited for one.
            let due = known.last > at || known.next_try(at, d.world.config.limits.health_poll_seconds) <= at;
            return if known.healthy || !due { Ok(()) } else { go_first(d, service) };
        }
    } else if healthy != Some(false) {
        return Ok(());
    }
    d.clear_timer(&Timer::Reset { service: service.clone() });
    let healthy = healthy == Some(true);
    d.emit(HealthSeen {
        service: service.clone(),
        healthy,
        at,
        resets_at: None,
        probe: None,
        error: None,
        refused: false,
    });
    poll_health(d);
    restore(d)
}

pub(super) fn restore(d: &mut Draft) -> Ruled {
    let away = |service: &str| {
        d.world.health.iter().any(|(name, health)| name.as_str() == service && !health.healthy)
    };
    let any_away = d.world.health.values().any(|health| !health.healthy);
    let all = d.world.config.restore == crate::config::Restore::All;
    let back: Vec<RunId> = d
        .world
        .suspended
        .iter()
        .filter(|id| {
            let service = d.world.run(id).and_then(|run| run.machine.suspension()).map(|s| s.service.clone());
            if all { !any_away } else { service.is_some_and(|service| !away(&service)) }
        })
        .cloned()
        .collect();
    let waiting: Vec<TaskId> = d
        .world
        .tasks
        .values()
        .filter(|task| task.work.waits_for.as_ref().is_some_and(|service| !away(service.as_str())))
        .map(|task| task.id.clone())
        .collect();
    for run in back {
        restore_run(d, &run)?;
    }
    for id in waiting {
        d.emit(WaitsForService { id, service: None });
    }
    rooms::restore_members(d, |d, agent| {
        let away = |service: &ServiceName| d.world.health.get(service).is_some_and(|health| !health.healthy);
        let any_away = d.world.health.values().any(|health| !health.healthy);
        if all { !any_away } else { !away(&d.world.config.service_of(agent)) }
    })?;
    let any_away = d.world.health.values().any(|health| !health.healthy);
    let away = |service: &str| {
        d.world.health.iter().any(|(name, health)| name.as_str() == service && !health.healthy)
    };
    let service = d.world.architect.as_ref().and_then(|it| it.suspension()).map(|it| it.service.clone());
    let back = service.is_some_and(|service| if all { !any_away } else { !away(&service) });
    architect::restore_architect(d, |_| back)
}

pub(super) fn restore_run(d: &mut Draft, run_id: &RunId) -> Ruled {
    d.rule(Rule::Restored);
    d.clear_timer(&Timer::Suspension { run: run_id.clone() });
    d.move_run(run_id, Wrapped::Restore)?;
    let id = d.run(run_id)?.task.clone();
    wake(d, &id)
}

/// The one that went first has come through: the service is back for all.
pub(super) fn probe_succeeded(d: &mut Draft, probe: &Probe) -> Ruled {
    let service = d.world.health.iter().find(|(_, health)| health.probe.as_ref() == Some(probe));
    let Some(service) = service.map(|(name, _)| name.clone()) else { return Ok(()) };
    well_again(d, &service, None)
}

/// What waited for the service goes on. `next`: as far as is known, so that whoever begins next goes first.
fn well_again(d: &mut Draft, service: &ServiceName, next: Option<Probe>) -> Ruled {
    tried_by(d, service, true, next);
    restore(d)
}

/// Somebody begins something with a service of which nobody knows whether it is back: that one goes first.
pub(super) fn begins(d: &mut Draft, agent: &AgentName, who: Probe) {
    let service = d.world.config.service_of(agent);
    let unknown = d.world.health.get(&service).is_some_and(|health| health.healthy && health.probe.is_some());
    if unknown && d.world.probing(&service).is_none() {
        d.rule(Rule::Probed);
        tried_by(d, &service, true, Some(who));
    }
}

fn tried_by(d: &mut Draft, service: &ServiceName, healthy: bool, probe: Option<Probe>) {
    d.clear_timer(&Timer::Reset { service: service.clone() });
    let refused = !healthy && d.world.health.get(service).is_some_and(|health| health.refused);
    d.emit(HealthSeen {
        service: service.clone(),
        healthy,
        at: d.at(),
        resets_at: None,
        probe,
        error: None,
        refused,
    });
    poll_health(d);
}

/// `set_at`: when the timer was set, where the log says so.
pub(super) fn timer_due(d: &mut Draft, timer: &Timer, set_at: Option<Millis>) -> Ruled {
    match timer {
        Timer::Backoff { worker } => {
            match d.world.worker(worker).and_then(|worker| worker.machine.task.clone()) {
                Some(id) => wake(d, &id),
                None => Ok(()),
            }
        }
        Timer::Suspension { run } => suspension_expired(d, run),
        Timer::Reset { service } => reset_reached(d, service),
        Timer::HealthPoll => {
            let mut services = d.world.config.services.clone();
            services.extend(
                d.world.health.keys().filter(|name| !d.world.config.services.contains(name)).cloned(),
            );
            for service in services {
                d.ask(Effect::CheckHealth { service });
            }
            poll_health(d);
            Ok(())
        }
        Timer::Question { approval } => unanswered(d, approval),
        Timer::OutsideLease { task } => {
            d.comment(task, "system", CommentKind::Lost, "the outside owner gave no sign of life".to_owned());
            lost(d, task, "the outside owner gave no sign of life")
        }
        Timer::Heartbeat { agent } => gone(d, agent, GoneBecause::Silent),
        Timer::Turn { channel, agent } => rooms::turn_over(d, channel, agent),
        Timer::Silence { channel } => rooms::silent(d, channel),
        Timer::Escalation => architect::escalation_over(d),
        Timer::ArchitectSuspension => architect::suspension_over(d),
        Timer::Standstill => {
            standstill::stood_still(d, set_at);
            Ok(())
        }
        Timer::Checkout { task } => {
            if d.task(task)?.landing.held_up.is_some() {
                land_again(d, task);
            }
            Ok(())
        }
    }
}

pub(super) fn suspension_expired(d: &mut Draft, run_id: &RunId) -> Ruled {
    d.rule(Rule::SuspensionExpired);
    let run = d.run(run_id)?;
    let (id, service) = (run.task.clone(), run.machine.suspension().map(|s| s.service.clone()));
    outage_forgotten(d, Probe::Run(run_id.clone()));
    d.move_run(run_id, Wrapped::Expire)?;
    release(d, &id, ReleaseReason::Outage)?;
    if let Some(service) = service.and_then(|name| ServiceName::new(name).ok()) {
        d.emit(WaitsForService { id, service: Some(service) });
    }
    Ok(())
}

pub(super) fn reset_reached(d: &mut Draft, service: &ServiceName) -> Ruled {
    d.rule(Rule::ResetReached);
    go_first(d, service)
}

/// Somebody starts the fleet, and may have set the credentials since: the first that waits tries them, without a wait.
pub(super) fn fleet_started(d: &mut Draft) -> Ruled {
    let refused = d.world.health.iter().filter(|(_, health)| !health.healthy && health.refused);
    let refused: Vec<ServiceName> = refused.map(|(service, _)| service.clone()).collect();
    for service in refused {
        if d.world.probing(&service).is_none() {
            d.rule(Rule::CredentialsTriedAgain);
            go_first(d, &service)?;
        }
    }
    Ok(())
}

/// The first that waits for the service, and for no answer, goes on alone; where there is none, whoever begins next does.
fn go_first(d: &mut Draft, service: &ServiceName) -> Ruled {
    let Some(first) = first_waiting(d, service) else {
        return well_again(d, service, Some(Probe::Next));
    };
    d.rule(Rule::Probed);
    match &first {
        Probe::Run(run) => probe(d, run),
        Probe::Seat(seat) => {
            goes_first(d, service, seat);
            match seat {
                Seat::Architect => architect::restore_architect(d, |_| true),
                Seat::Room { channel, agent } => rooms::restore_member(d, channel, agent),
            }
        }
        Probe::Next => Ok(()),
    }
}

/// Whoever speaks there tries the service, whatever is known of it.
pub(super) fn goes_first(d: &mut Draft, service: &ServiceName, seat: &Seat) {
    let who = Probe::Seat(seat.clone());
    goes_to_try(d, &who);
    tried_by(d, service, false, Some(who));
}

/// A run before the architect, and both before a room, in which somebody else may speak.
fn first_waiting(d: &Draft, service: &ServiceName) -> Option<Probe> {
    let world = &d.world;
    let of_service = |suspension: &Suspension| suspension.service == service.as_str();
    let waits = |id: &&RunId| {
        let suspension = world.run(id).and_then(|run| run.machine.suspension());
        suspension.is_some_and(of_service) && world.open_question(id).is_none()
    };
    let run = world.suspended.iter().find(waits).cloned().map(Probe::Run);
    let architect = world.architect.as_ref().and_then(|architect| architect.suspension());
    let architect =
        architect.filter(|suspension| of_service(suspension)).map(|_| Probe::Seat(Seat::Architect));
    let room = || {
        let mut waiting = rooms::waiting_for_service(world).into_iter();
        let (channel, agent) = waiting.find(|(_, agent)| world.config.service_of(agent) == *service)?;
        Some(Probe::Seat(Seat::Room { channel, agent }))
    };
    run.or(architect).or_else(room)
}

/// A suspended run goes on, whatever is known of its service; what comes of it tells how that is.
pub(super) fn probe(d: &mut Draft, run_id: &RunId) -> Ruled {
    let service = d.run(run_id)?.machine.suspension().map(|suspension| suspension.service.clone());
    if let Some(service) = service.and_then(|name| ServiceName::new(name).ok()) {
        let who = Probe::Run(run_id.clone());
        goes_to_try(d, &who);
        tried_by(d, &service, false, Some(who));
    }
    restore_run(d, run_id)
}

pub(super) fn unanswered(d: &mut Draft, approval: &ApprovalId) -> Ruled {
    let Some(task) = d.world.approvals.get(approval).and_then(|approval| approval.task.clone()) else {
        return Ok(());
    };
    d.rule(Rule::ActionUnanswered);
    release(d, &task, ReleaseReason::NeedsApproval)
}
