//! Why nothing happens: each guard with its value. The same guards decide; here they are put into words.

mod architect;

use crate::World;
use crate::budget;
use crate::choice::Choice;
use crate::command::Refusal;
use crate::words::{CommentKind, Condition};
use crate::world::{
    Approval, BudgetScope, Dependency, Health, HeldUp, Holder, Proposed, SentBack, Task, Ticket, day_of,
};
use machines::Millis;
use machines::names::{AgentName, EffectId, ServiceName, TaskId, WorkerName};
use machines::task::{BlockReason, Status, TicketStatus};
use serde::Serialize;

/// One guard, whether it holds, and what it looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guard {
    pub guard: Condition,
    pub holds: bool,
    pub detail: String,
    /// What can be done where it does not hold, the most likely first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Choice>,
    /// Where it does not hold: only a person changes that, however long the fleet runs.
    #[serde(skip)]
    pub lasts: bool,
    /// The last lines that a test or a hook printed, where they say why it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// How many lines of an output are shown beside the guard that it belongs to.
pub const OUTPUT_LINES: usize = 30;

/// The last lines of what a test or a hook printed.
pub fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(OUTPUT_LINES)..].join("\n")
}

/// The one line of an output that says most: the last one with words in it that is not a runner's word about itself.
pub fn last_line(output: &str) -> String {
    const CHARS_MAX: usize = 200;
    /// What package managers and make add after what they ran has failed.
    const WRAPPERS: &[&str] =
        &["npm err", "npm error", "make:", "make[", "error command failed", "elifecycle"];
    let words = |line: &&str| line.chars().any(char::is_alphanumeric);
    let lines = || output.lines().rev().map(str::trim).filter(words);
    let tells = |line: &&str| {
        let line = line.to_lowercase();
        !WRAPPERS.iter().any(|wrapper| line.starts_with(wrapper))
    };
    let line = lines().find(tells).or_else(|| lines().next()).unwrap_or_default();
    let frame = |c: char| matches!(c, '=' | '-' | '_' | '*' | '#' | ' ');
    line.trim_matches(frame).chars().take(CHARS_MAX).collect()
}

/// What an output begins with and what it comes to, in one line: its first line, and the one that says most.
pub fn first_and_last(output: &str) -> String {
    let (first, last) = (first_line(output), last_line(output));
    if last.is_empty() || first.contains(&last) { first.to_owned() } else { format!("{first}: {last}") }
}

/// Whether anybody carries anything out.
fn fleet_running(world: &World) -> Guard {
    let running = world.fleet_running;
    let detail = if running { "the fleet is at work" } else { "the fleet is not running" };
    guard(Condition::FleetRunning, running, detail).next([Choice::StartFleet])
}

fn guard(guard: Condition, holds: bool, detail: impl Into<String>) -> Guard {
    let lasts = !holds && guard.is_for_a_person();
    Guard { guard, holds, detail: detail.into(), next: Vec::new(), lasts, output: None }
}

impl Guard {
    /// What can be done, where it does not hold.
    pub fn next(mut self, next: impl IntoIterator<Item = Choice>) -> Guard {
        if !self.holds {
            self.next.extend(next);
        }
        self
    }
}

/// Whether main passes its own tests, where that is asked for.
pub fn main_tests(world: &World) -> Option<Guard> {
    world.config.tests.as_ref()?;
    let verdict = world.main_verdict();
    let red = verdict.and_then(|verdict| verdict.red.as_ref());
    let detail = match (verdict, red) {
        (Some(_), Some(output)) => format!(
            "the tests fail on main itself, so no agent starts: {}; fix main, or [test] in adjutant.toml, and a running fleet tests it again",
            last_line(output)
        ),
        (Some(verdict), None) => match &verdict.command {
            Some(command) => format!("main passes `{command}`"),
            None => "no tests were found".to_owned(),
        },
        (None, _) if world.main.under_way.is_some() => {
            "main's own tests are running; agents start when they pass".to_owned()
        }
        (None, _) if world.fleet_running => "main's own tests have not been run yet".to_owned(),
        (None, _) => "main's own tests are run first when the fleet starts".to_owned(),
    };
    let output = red.map(|output| last_lines(output));
    let next = red.map(|_| Choice::TestMain);
    Some(Guard { output, ..guard(Condition::MainTests, world.main_is_green(), detail).next(next) })
}

/// Main's tests that have not been run stand in nobody's way while there is no task that an agent could begin.
fn not_needed_yet(world: &World, guard: &mut Guard) {
    let unknown = world.main_verdict().is_none() && world.main.under_way.is_none();
    if guard.guard == Condition::MainTests && !guard.holds && unknown && world.claimable.is_empty() {
        guard.holds = true;
        guard.lasts = false;
        guard.next.clear();
        guard.detail = "main's own tests are run before the next agent starts".to_owned();
    }
}

/// What keeps an agent's workers from claiming anything at all.
pub fn fleet_guards(world: &World, agent: &AgentName, day: i64) -> Vec<Guard> {
    fleet_guards_at(world, agent, day, None)
}

fn fleet_guards_at(world: &World, agent: &AgentName, day: i64, now: Option<Millis>) -> Vec<Guard> {
    let service = world.config.service_of(agent);
    let health = world.health.get(&service);
    // Counted only where there is a cap: this is asked after every command.
    let cap = world.config.policy.cap_per_agent;
    let holds = |task: &&std::sync::Arc<Task>| held_by(world, task, agent);
    let held = cap.map_or(0, |_| world.tasks.values().filter(holds).count());
    vec![
        guard(
            Condition::DayBudgetSettled,
            world.day_approval.is_none(),
            world
                .day_approval
                .as_ref()
                .map_or("no question is open".to_owned(), |id| format!("`{id}` waits for a person")),
        ),
        guard(
            Condition::DiskRoom,
            world.disk_full.is_none(),
            world.disk_full.as_ref().map_or("there is room".to_owned(), |found| found.to_string()),
        ),
        match world.probing(&service).filter(|_| health.is_some_and(|health| health.healthy)) {
            Some(first) => {
                let detail =
                    format!("`{first}` tries {} first, which was unavailable", service_words(&service));
                guard(Condition::ServiceHealthy, false, detail)
            }
            None => Guard {
                // No waiting helps where the credentials are not accepted.
                lasts: health.is_some_and(|health| !health.healthy && health.refused),
                ..service_there(world, Condition::ServiceHealthy, &service, health, now)
            },
        },
        guard(
            Condition::AgentCap,
            cap.is_none_or(|cap| held < cap as usize),
            cap.map_or("no cap".to_owned(), |cap| format!("{held} of {cap} tasks in hand")),
        ),
    ]
    .into_iter()
    .chain(disabled(world, agent))
    .chain(shared_money(world, agent, day))
    .chain(main_tests(world))
    .collect()
}

/// What an agent that is named as the reviewer of a task lacks to approve it; nothing where it may, or is no agent.
pub fn reviewer_lacks(world: &World, task: &Task) -> Option<String> {
    let name = task.machine.reviewer_id.as_ref()?;
    let agent = world.config.agents.keys().find(|agent| agent.as_str() == name.as_str())?;
    approver_lacks(world, task, agent)
}

/// What an agent lacks to approve a task.
pub(crate) fn approver_lacks(world: &World, task: &Task, agent: &AgentName) -> Option<String> {
    let role = world.config.agent(agent).role;
    let sender = machines::task::Sender { id: agent.as_str().into(), role: role.into() };
    let judged = world.judged(task, &sender);
    if judged.may_approve(&sender) {
        return None;
    }
    Some(match &task.gate.needs_person {
        Some(reason) => format!("a person must look at it: {}", reason.text()),
        None if judged.facts.own_work => {
            format!("`{agent}` worked on it, and an agent never approves its own work")
        }
        None if role != crate::config::Role::Lead => {
            format!("only a lead approves: set `role = \"lead\"` in [agents.{agent}] of adjutant.toml")
        }
        None => {
            "a lead approves only with `lead_may_complete = true` in [policy] of adjutant.toml".to_owned()
        }
    })
}

/// Whether a person lets the agent work, where one does not.
fn disabled(world: &World, agent: &AgentName) -> Option<Guard> {
    let disabled = world.disabled.get(agent)?;
    let reason = disabled.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let detail = format!("{} disabled agent `{agent}`{reason}", disabled.by);
    let next = [Choice::EnableAgent { agent: agent.clone() }];
    Some(guard(Condition::AgentEnabled, false, detail).next(next))
}

/// Whether a service answers, and what can be done where no waiting helps.
fn service_there(
    world: &World,
    condition: Condition,
    service: &ServiceName,
    health: Option<&Health>,
    now: Option<Millis>,
) -> Guard {
    let ill = health.filter(|health| !health.healthy);
    let answers = || format!("{} answers", service_words(service));
    let detail = ill.map_or_else(answers, |ill| away(world, service, ill, now));
    let next = ill.filter(|ill| ill.refused).map(|_| Choice::RetryServices);
    guard(condition, ill.is_none(), detail).next(next)
}

/// A service that is away: what it answered, since when, and when it is tried again.
fn away(world: &World, service: &ServiceName, health: &Health, now: Option<Millis>) -> String {
    let error = health.error.as_deref().map(|error| format!(" ({error})")).unwrap_or_default();
    let name = service_words(service);
    let mut text = match health.refused {
        true => format!("{name} does not accept the credentials{error}"),
        false => format!("{name} is unavailable{error}"),
    };
    if let Some(now) = now {
        text.push_str(&format!(", for {}", duration(now - health.since)));
        match tried_again(world, service, health, now).map(|due| due - now) {
            _ if health.probe.is_some() => text.push_str("; it is being tried now"),
            Some(wait) if wait > 0 => text.push_str(&format!("; tried again in {}", duration(wait))),
            Some(_) => text.push_str("; the next try is due"),
            None => {}
        }
    }
    if health.refused {
        text.push_str("; set the key or log in");
    }
    text
}

/// A service as people know it: the one that agents share unless the settings name another is the API of their model.
pub fn service_words(service: &ServiceName) -> String {
    match *service == crate::config::shared_service() {
        true => "the model API".to_owned(),
        false => service.to_string(),
    }
}

/// When a service that is away is tried again: at its reset where that is known, else with the health polls.
pub fn tried_again(world: &World, service: &ServiceName, health: &Health, now: Millis) -> Option<Millis> {
    let timer = |timer: crate::Timer| {
        let left = world.effects.get(world.timers.get(&timer)?)?.left(now)?;
        Some(now.saturating_add(left))
    };
    let reset = timer(crate::Timer::Reset { service: service.clone() });
    let polled = timer(crate::Timer::HealthPoll).map(|poll| match world.config.services.contains(service) {
        true if !health.refused => poll,
        _ => poll.max(health.next_try(now, world.config.limits.health_poll_seconds)),
    });
    reset.or(polled)
}

/// A stretch of time in the unit that people would say it in, rounded up.
pub fn duration(millis: Millis) -> String {
    match (millis.max(0) + 999) / 1000 {
        seconds @ 0..=120 => format!("{seconds} s"),
        seconds @ 121..=7200 => format!("{} min", (seconds + 59) / 60),
        seconds => format!("{} h", (seconds + 3599) / 3600),
    }
}

fn held_by(world: &World, task: &Task, agent: &AgentName) -> bool {
    match task.work.lease.as_ref().map(|lease| &lease.holder) {
        Some(Holder::Worker(name)) => world.worker(name).is_some_and(|worker| worker.agent == *agent),
        Some(Holder::Outside(name)) => name == agent,
        None => false,
    }
}

/// A budget as a guard: whether a step fits, and in which numbers.
fn money(world: &World, room: &budget::Headroom, agent: &AgentName) -> Guard {
    let condition = match room.scope {
        BudgetScope::Run => Condition::RunBudget,
        BudgetScope::Task => Condition::TaskBudget,
        BudgetScope::Agent => Condition::AgentBudget,
        BudgetScope::Day => Condition::DayBudget,
    };
    let share = budget::share(world, agent);
    let (used, limit) = (budget::dollars(room.used), budget::dollars(room.limit));
    let detail = format!("{used} of {limit} used, a step sets {} aside", budget::dollars(share));
    guard(condition, room.has(share), detail)
}

/// The budgets that hold for every task, with the question that a person has not answered, or said no to.
fn shared_money(world: &World, agent: &AgentName, day: i64) -> Vec<Guard> {
    let rooms = budget::shared_rooms(world, agent, day).into_iter();
    let with_question = |room: budget::Headroom| {
        let mut guard = money(world, &room, agent);
        let asked = crate::rules::asked(world, &room, agent, day).filter(|_| !guard.holds);
        match asked.map(|asked| (&asked.id, asked.decided.is_none())) {
            Some((id, true)) => guard.next.push(Choice::RaiseLimit { approval: id.clone() }),
            Some((id, false)) => guard.detail.push_str(&format!(
                "; {id} was denied: raise it in adjutant.toml{}",
                if room.scope == BudgetScope::Day { ", or it goes on tomorrow" } else { "" }
            )),
            None if !guard.holds => guard.detail.push_str("; steps under way may give some of it back"),
            None => {}
        }
        // A question is open, or was answered with no; what steps set aside comes back by itself.
        guard.lasts = asked.is_some();
        guard
    };
    rooms.map(with_question).collect()
}

/// A budget that a person was asked to raise, and did not.
pub(crate) struct Denied {
    pub since: Option<Millis>,
    pub text: String,
}

pub(crate) fn denied_budget(world: &World, agent: &AgentName, day: i64) -> Option<Denied> {
    let share = budget::share(world, agent);
    let rooms = budget::shared_rooms(world, agent, day).into_iter().filter(|room| !room.has(share));
    let denied = |room: &budget::Headroom| {
        let asked = crate::rules::asked(world, room, agent, day)?;
        Some(asked.decided.as_ref()?.at)
    };
    let (room, at) =
        rooms.filter_map(|room| Some((denied(&room)?, room))).map(|(at, room)| (room, at)).next()?;
    let guard = money(world, &room, agent);
    let scope = guard.guard.text();
    Some(Denied {
        since: Some(at),
        text: format!("{scope}: {}; raising it was denied: raise it in adjutant.toml", guard.detail),
    })
}

/// What keeps a worker of `agent` from claiming this task.
pub fn task_guards(world: &World, task: &Task, agent: &AgentName) -> Vec<Guard> {
    let status = task.status();
    let mut guards = vec![
        guard(
            Condition::StatusOpen,
            matches!(status, Status::Inbox | Status::Assigned | Status::InProgress),
            format!("task.{status}"),
        ),
        guard(
            Condition::NoLease,
            task.work.lease.is_none(),
            match task.work.lease.as_ref().map(|lease| &lease.holder) {
                Some(Holder::Worker(name)) => format!("worker `{name}` has it"),
                Some(Holder::Outside(name)) => format!("agent `{name}` has it, outside"),
                None => "nobody has it".to_owned(),
            },
        ),
        nothing_unfinished(task),
        own_agent(world, task, agent),
        guard(
            Condition::ServiceBack,
            task.work.waits_for.is_none(),
            task.work.waits_for.as_ref().map_or("it waits for none".to_owned(), |service| {
                format!("it waits for {}", service_words(service))
            }),
        ),
    ];
    guards.extend(agent_configured(world, task));
    guards.extend(task.origin.proposed.as_ref().map(|proposed| accepted(task, proposed)));
    if let Some(ticket) = world.ticket_of(task).filter(|_| !task.is_final()) {
        guards.extend(ticket_guards(task, ticket));
    }
    let started = world.count_of(Status::InProgress) as u32;
    if let Some(cap) = world.config.policy.cap_in_progress.filter(|_| status != Status::InProgress) {
        guards.push(guard(
            Condition::StatusCap,
            started < cap,
            format!("{started} of {cap} tasks are IN_PROGRESS"),
        ));
    }
    if status != Status::InProgress {
        for on in &task.depends_on {
            let waits = waits_on(world.dependency(on));
            guards.push(guard(
                Condition::DependencyDone,
                waits.is_none(),
                waits.map_or(format!("`{on}` is DONE"), |why| format!("`{on}` {why}")),
            ));
        }
    }
    let run = task.work.run.as_ref().and_then(|run| world.run(run)).filter(|run| run.is_open());
    guards.extend(budget::own_rooms(world, task, run).iter().map(|room| money(world, room, agent)));
    guards
}

/// Whether the task is one for workers of `agent`: the agent that it wants, or one that it is assigned to.
fn own_agent(world: &World, task: &Task, agent: &AgentName) -> Guard {
    let assigned = &task.machine.assignee_ids;
    if let Some(wanted) = world.wanted_agent(task) {
        return guard(Condition::OwnAgent, wanted == agent, format!("wants agent `{wanted}`"));
    }
    let open = assigned.is_empty() || task.status() == Status::Inbox;
    let detail = match assigned.is_empty() {
        true => "assigned to nobody".to_owned(),
        false => format!("assigned to {}", assigned.join(", ")),
    };
    guard(Condition::OwnAgent, open || assigned.iter().any(|id| id == agent.as_str()), detail)
}

/// Whether the settings have the agent that the task wants, where it wants one.
pub fn agent_configured(world: &World, task: &Task) -> Option<Guard> {
    let (wanted, id) = (task.agent.as_ref()?, &task.id);
    let there = world.config.agents.contains_key(wanted);
    let detail = match there {
        true => format!("agent `{wanted}` is in adjutant.toml"),
        false => format!(
            "it wants agent `{wanted}`, which adjutant.toml does not have; add [agents.{wanted}], or choose another"
        ),
    };
    Some(guard(Condition::AgentConfigured, there, detail).next([Choice::ChooseAgent { task: id.clone() }]))
}

fn accepted(task: &Task, proposed: &Proposed) -> Guard {
    let (waits, id) = (task.is_waiting_proposal(), || task.id.clone());
    let detail = match waits {
        true => proposed_by(proposed),
        false => format!("{}, and accepted", proposed_by(proposed)),
    };
    let next = [Choice::AcceptProposal { task: id() }, Choice::RefuseProposal { task: id() }];
    guard(Condition::ProposalAccepted, !waits, detail).next(next)
}

/// Which agent proposed a task, and while it worked on what.
pub fn proposed_by(proposed: &Proposed) -> String {
    match &proposed.on {
        Some(on) => format!("proposed by agent `{}` on `{on}`", proposed.by),
        None => format!("proposed by agent `{}`", proposed.by),
    }
}

/// Why the task's ticket keeps it from being taken, in a few words.
pub fn ticket_holds(world: &World, task: &Task) -> Option<&'static str> {
    let ticket = world.ticket_of(task).filter(|_| !task.is_final())?;
    let waiting = matches!(task.status(), Status::Inbox | Status::Assigned);
    match ticket.gone {
        Some(_) => Some("the ticket's file is gone"),
        None if waiting && ticket.status == TicketStatus::InProgress => {
            Some("somebody else has the ticket in_progress")
        }
        None => None,
    }
}

/// What the task's ticket says: whether its file is there, and whether somebody else is at work on it.
fn ticket_guards(task: &Task, ticket: &Ticket) -> Vec<Guard> {
    let waiting = matches!(task.status(), Status::Inbox | Status::Assigned);
    let id = &task.id;
    let mut guards = vec![
        guard(
            Condition::TicketThere,
            ticket.gone.is_none(),
            match ticket.gone {
                Some(_) => {
                    format!("the file of ticket `{}` is gone; put it back, or end the task", ticket.id)
                }
                None => format!("the file of ticket `{}` is there", ticket.id),
            },
        )
        .next([Choice::CancelTask { task: id.clone() }]),
    ];
    if waiting {
        let taken = ticket.status == TicketStatus::InProgress;
        guards.push(
            guard(
                Condition::TicketOpen,
                !taken,
                if taken {
                    format!(
                        "ticket `{}` is in_progress: somebody else works on it; set it to open",
                        ticket.id
                    )
                } else {
                    format!("ticket `{}` is {}", ticket.id, ticket.status)
                },
            )
            .next([Choice::AssignTask { task: id.clone() }]),
        );
    }
    guards
}

fn nothing_unfinished(task: &Task) -> Guard {
    guard(
        Condition::NothingUnfinished,
        task.work.unfinished.is_empty() && task.gate.alone.is_none(),
        match task.work.unfinished.len() {
            _ if task.gate.alone.is_some() => "its gate is running".to_owned(),
            0 => "nothing from before is under way".to_owned(),
            count => {
                format!("{count} from before under way, such as saving its work; a running fleet ends it")
            }
        },
    )
}

fn first_failing(guards: Vec<Guard>) -> Option<String> {
    let failing = guards.into_iter().find(|guard| !guard.holds)?;
    Some(format!("{}: {}", failing.guard.text(), failing.detail))
}

pub(crate) fn fleet_blocker(world: &World, agent: &AgentName, day: i64) -> Option<String> {
    first_failing(fleet_guards(world, agent, day))
}

/// The same, money aside.
pub(crate) fn fleet_blocker_but_money(world: &World, agent: &AgentName) -> Option<String> {
    // No day has any part in what is left.
    let guards = fleet_guards(world, agent, 0).into_iter().filter(|guard| !guard.guard.is_budget());
    first_failing(guards.collect())
}

pub(crate) fn task_blocker_but_money(world: &World, task: &Task, agent: &AgentName) -> Option<String> {
    let guards = task_guards(world, task, agent).into_iter().filter(|guard| !guard.guard.is_budget());
    first_failing(guards.collect())
}

pub(crate) fn task_blocker(world: &World, task: &Task, agent: &AgentName) -> Option<String> {
    first_failing(task_guards(world, task, agent))
}

/// The same, where a person gives the task to a worker: BLOCKED is a way in, and the assignee is theirs to choose.
pub(crate) fn assign_blocker(world: &World, task: &Task, agent: &AgentName, day: i64) -> Option<String> {
    let blocked = task.status() == Status::Blocked;
    let guards = task_guards(world, task, agent).into_iter().filter(|guard| {
        // A ticket that somebody has in_progress, or whose file is gone, is the person's to decide about too.
        match guard.guard {
            Condition::TicketOpen | Condition::TicketThere => false,
            Condition::StatusOpen | Condition::OwnAgent | Condition::ServiceBack | Condition::StatusCap => {
                !blocked
            }
            _ => true,
        }
    });
    // Tests that are not known yet hold up its agent, not who has it in hand.
    let known = world.main_is_known();
    let fleet = fleet_guards(world, agent, day).into_iter();
    let fleet = fleet.filter(|guard| known || guard.guard != Condition::MainTests);
    first_failing(fleet.chain(guards).collect())
}

/// What went wrong last with a task that the system blocked, and what a test printed about it.
fn last_words(world: &World, task: &Task) -> Option<(String, Option<String>)> {
    let (text, printed) = match (task.machine.block_reason?, &task.gate.sent_back) {
        (BlockReason::Landing | BlockReason::Stuck, Some(SentBack::Landing(output)))
        | (BlockReason::Stuck | BlockReason::Environment, Some(SentBack::Gate(output))) => {
            (output.clone(), true)
        }
        // A program that fails says why in its last lines, on either of its outputs.
        (BlockReason::Stuck | BlockReason::Limit, _) => {
            let message = world.run_of(&task.id)?.machine.inner().last_error.clone()?.message;
            let printed = message.trim().lines().count() > 1;
            (message, printed)
        }
        (BlockReason::Loop | BlockReason::ToolFailures | BlockReason::Environment, _) => {
            let said = task.comments.iter().rev().find(|comment| comment.is(CommentKind::Blocked));
            (said?.text.clone(), false)
        }
        _ => return None,
    };
    let first = text.lines().map(str::trim).find(|line| !line.is_empty())?.trim_end_matches('.').to_owned();
    let line = if printed { first_and_last(&text) } else { first };
    // Where every line of it stands in that one, it has been said.
    let said = |part: &str| line.contains(part.trim().trim_end_matches('.'));
    let more = Some(last_lines(&text)).filter(|lines| printed && !lines.lines().all(said));
    Some((line, more))
}

/// Whose workers would take the task: those of the agent that it wants, or of one that it is assigned to, where there are
/// any.
fn agent_for(world: &World, task: &Task) -> AgentName {
    if let Some(wanted) = world.wanted_agent(task) {
        return wanted.clone();
    }
    let assigned = task.machine.assignee_ids.iter().filter_map(|id| AgentName::new(id).ok());
    let there = |agent: &AgentName| world.workers.values().any(|worker| worker.agent == *agent);
    assigned.into_iter().find(there).unwrap_or_else(|| world.config.fleet.agent.clone())
}

/// What stands between a task and its end.
pub fn of_task(world: &World, id: &TaskId, now: Millis) -> Option<Vec<Guard>> {
    let task = world.task(id)?;
    let day = day_of(now);
    let agent = &agent_for(world, task);
    let mut guards = failing(world, id);
    match task.status() {
        Status::Done | Status::Canceled => {
            let landed =
                task.landing.landed.as_ref().map(|landed| format!("; it landed as {}", landed.merge));
            let undo = task.landing.landed.as_ref().map(|_| Choice::UndoTask { task: id.clone() });
            let landed = landed.unwrap_or_default();
            let detail = format!("task.{}: nothing is left to do{landed}", task.status());
            guards.push(guard(Condition::Open, false, detail).next(undo))
        }
        Status::Blocked => {
            let reason =
                task.machine.block_reason.map_or("no reason".to_owned(), |reason| reason.to_string());
            let (last, output) = last_words(world, task).unzip();
            let last = last.map(|words| format!(": {words}")).unwrap_or_default();
            let out = match task.machine.block_reason {
                Some(BlockReason::ReviewCycles) => {
                    [Choice::ClarifyTask { task: id.clone() }, Choice::RestartWithNote { task: id.clone() }]
                }
                _ => [Choice::RetryTask { task: id.clone() }, Choice::RestartTask { task: id.clone() }],
            };
            let not_blocked = guard(Condition::NotBlocked, false, format!("BLOCKED ({reason}){last}"));
            guards.push(Guard { output: output.flatten(), ..not_blocked.next(out) });
            guards.extend(Some(nothing_unfinished(task)).filter(|guard| !guard.holds));
        }
        Status::NeedsApproval => {
            let question = task.approval.as_ref().and_then(|approval| world.approvals.get(approval));
            let undecided = guard(Condition::Decided, false, "a person must decide");
            guards.push(question.map_or(undecided, |approval| asked(Condition::Decided, approval)));
        }
        Status::Review => {
            guards.extend(conflict(world, task));
            let asked = architect::review_of(world, task).filter(|_| task.review.approved.is_none());
            let (at_architect, help) = asked.and_then(|asked| architect::stands(world, asked)).unzip();
            guards.push(
                guard(
                    Condition::Approved,
                    task.review.approved.is_some(),
                    match (&task.review.approved, &task.gate.needs_person, at_architect) {
                        (Some(approved), ..) => format!("by {}", approved.by),
                        (None, Some(reason), _) => format!("a person must look at it ({})", reason.text()),
                        (None, None, Some(stands)) => stands,
                        (None, None, None) => format!("review = \"{}\"", world.config.fleet.review),
                    },
                )
                .next(help.flatten().into_iter().chain([Choice::ShowReview { task: id.clone() }])),
            );
            guards.push(fleet_running(world));
            guards.extend(main_tests(world).filter(|guard| !guard.holds));
            let (condition, next) = match &task.landing.held_up {
                None | Some(HeldUp::Checkout { .. }) => (Condition::CheckoutFree, None),
                Some(HeldUp::PullRequest { .. } | HeldUp::Remote { .. }) => {
                    (Condition::PullRequestMerged, Some(Choice::RetryLanding { task: id.clone() }))
                }
            };
            let detail = task.held_up_by().unwrap_or_else(|| "nothing is in the way".to_owned());
            guards.push(guard(condition, task.landing.held_up.is_none(), detail).next(next));
            let landing = world.landing.as_ref().is_some_and(|landing| landing.task == *id);
            guards.push(guard(
                Condition::Landing,
                landing,
                if landing { "it is being landed" } else { "it is not being landed" },
            ));
        }
        // What else would have to be so matters once somebody wants it.
        Status::Inbox if task.is_waiting_proposal() => {
            guards.extend(task.origin.proposed.as_ref().map(|proposed| accepted(task, proposed)));
        }
        Status::Inbox | Status::Assigned | Status::InProgress => {
            guards.push(fleet_running(world));
            guards.extend(conflict(world, task));
            if let Some(output) = task.gate.test_output.as_ref().filter(|_| task.conflict().is_none()) {
                let detail = format!("the last run failed: {}; the agent is told", last_line(output));
                guards.push(Guard {
                    output: Some(output.clone()),
                    ..guard(Condition::TestsPass, false, detail)
                });
            }
            // Once somebody has it, what keeps others from taking it is no answer.
            if let Some(worker) = world.leaseholder(id) {
                let said_already = |guard: &Guard| guard.guard == Condition::FleetRunning;
                let of_worker = of_worker(world, &worker.name, now).unwrap_or_default();
                guards.extend(of_worker.into_iter().filter(|guard| !said_already(guard)));
                return Some(guards);
            }
            guards.push(match world.wanted_agent(task).filter(|_| task.work.lease.is_none()) {
                Some(wanted) => idle_of(world, wanted),
                None => guard(
                    Condition::WorkerIdle,
                    !world.idle.is_empty() || task.work.lease.is_some(),
                    idle_workers(world),
                ),
            });
            guards.extend(fleet_guards_at(world, agent, day, Some(now)));
            guards.extend(task_guards(world, task, agent));
        }
    }
    Some(guards)
}

/// The conflict with main that nobody has solved yet.
fn conflict(world: &World, task: &Task) -> Option<Guard> {
    let found = task.conflict()?;
    let (id, in_review) = (|| task.id.clone(), task.status() == Status::Review);
    let told = if in_review { "it cannot land as it is" } else { "the agent is told" };
    let detail = format!("{}; {told}", found.words(&world.config.main));
    let next = [Choice::RequestChanges { task: id() }, Choice::OpenTree { task: id() }];
    Some(guard(Condition::NoConflict, false, detail).next(next.into_iter().filter(|_| in_review)))
}

/// Whether a worker of the agent that a task wants is free.
fn idle_of(world: &World, agent: &AgentName) -> Guard {
    use machines::worker::State;
    let of_it = || world.workers.values().filter(|worker| worker.agent == *agent);
    let idle = of_it().filter(|worker| worker.machine.status == State::Idle).count();
    let busy = of_it().filter(|worker| !matches!(worker.machine.status, State::Idle | State::Stuck)).count();
    let detail = match (idle, busy) {
        (0, 0) => format!(
            "wants agent `{agent}`; no idle worker of `{agent}`: one is made when a place in the fleet is free"
        ),
        (0, busy) => format!("wants agent `{agent}`; no idle worker of `{agent}`: {busy} at work"),
        (1, _) => format!("1 idle worker of `{agent}`"),
        (idle, _) => format!("{idle} idle workers of `{agent}`"),
    };
    guard(Condition::WorkerIdle, idle > 0, detail)
}

/// Whether a person can go into the task's tree now: it stands, and nothing runs in it. Otherwise why not, and what to do.
/// What is left in the outbox of a fleet that is not at work runs nowhere.
pub fn way_in(world: &World, task: &Task, at_work: bool) -> Result<(), Refusal> {
    let (id, status) = (&task.id, task.status());
    let no_way_in = |why: String| Refusal::new(409, "NO_WAY_IN", why);
    if task.is_final() || task.work.place.as_ref().is_none_or(|place| !place.ready) {
        return Err(match task.is_final() {
            true => no_way_in(format!("`{id}` is {status}, and its tree is gone"))
                .next([Choice::ShowDiff { task: id.clone() }, Choice::ListSaved]),
            false => no_way_in(format!("`{id}` is {status} and has no tree"))
                .hint("it gets one when a worker takes it")
                .next([Choice::ExplainTask { task: id.clone() }]),
        });
    }
    if !at_work {
        return Ok(());
    }
    let step = world.run_of(id).and_then(|run| world.effects.get(run.step.as_ref()?));
    let what = match step.map(|effect| effect.as_ref()) {
        Some(crate::Effect::StartStep { .. }) => "its agent's step is running in its tree",
        Some(crate::Effect::RunGate { .. }) => "its tests are running in its tree",
        Some(_) => "its tree is being prepared",
        None if task.gate.alone.is_some() => "its tests are running in its tree",
        None if !task.work.unfinished.is_empty() => "what ran in its tree is still being ended or saved",
        None => return Ok(()),
    };
    let refused = no_way_in(format!("`{id}` is {status}: {what}"));
    Err(match world.leaseholder(id).map(|worker| worker.name.clone()) {
        Some(worker) => refused.hint("wait for its end, or end it and go on later").next([
            Choice::PeekWorker { worker: worker.clone() },
            Choice::KillWorker { worker },
            Choice::RetryTask { task: id.clone() },
        ]),
        None => refused.hint("try again in a moment"),
    })
}

/// What has to be done for a task and has failed more than once.
fn failing(world: &World, id: &TaskId) -> Vec<Guard> {
    let of_task =
        |effect: &&EffectId| world.effects.get(*effect).and_then(|effect| effect.task()) == Some(id);
    let more_than_once = world.failures.iter().filter(|(effect, tries)| **tries > 1 && of_task(effect));
    let said = |(effect, tries): (&EffectId, &u32)| {
        let kind = world.effects.get(effect).map_or("it", |effect| effect.kind()).replace('_', " ");
        let detail = format!("`{kind}` has failed {tries} times and is tried again");
        guard(Condition::NoFailure, false, detail).next([Choice::ShowHistory { task: id.clone() }])
    };
    more_than_once.map(said).collect()
}

/// How many workers are free, and what the others do.
fn idle_workers(world: &World) -> String {
    use machines::worker::State;
    let count = |wanted: &dyn Fn(State) -> bool| {
        world.workers.values().filter(|worker| wanted(worker.machine.status)).count()
    };
    let stuck = match count(&|state| state == State::Stuck) {
        0 => String::new(),
        stuck => format!(", {stuck} stuck"),
    };
    let busy = count(&|state| !matches!(state, State::Idle | State::Stuck));
    match world.idle.len() {
        1 => "1 idle worker".to_owned(),
        0 if busy > 0 => format!("no worker is idle: {busy} at work{stuck}"),
        0 if !stuck.is_empty() => format!("no worker is idle{stuck}; the fleet makes another when it starts"),
        idle => format!("{idle} idle workers"),
    }
}

/// A question that nobody has answered.
fn asked(condition: Condition, approval: &Approval) -> Guard {
    let id = || approval.id.clone();
    let next = match approval.paused_run() {
        Some(run) => [Choice::ResumeRun { run: run.clone() }, Choice::AbortRun { run: run.clone() }],
        None => [Choice::ApproveRequest { approval: id() }, Choice::DenyRequest { approval: id() }],
    };
    guard(condition, false, format!("`{}`: {}", id(), approval.question)).next(next)
}

/// What a worker waits for.
pub fn of_worker(world: &World, name: &WorkerName, now: Millis) -> Option<Vec<Guard>> {
    use machines::worker::State;
    let worker = world.worker(name)?;
    let state = worker.machine.status;
    let mut guards = vec![guard(Condition::WorkerState, true, format!("worker.{state}"))];
    let run = worker.machine.task.as_ref().and_then(|id| world.run_of(id));
    if let Some(run) = run {
        let question = run.question.as_ref().and_then(|question| world.approvals.get(&question.approval));
        if let Some(approval) = question.filter(|approval| approval.decided.is_none()) {
            guards.push(asked(Condition::Answered, approval));
        }
        if let Some(asked) = world.open_question(&run.id) {
            let (stands, help) = architect::stands(world, asked).unzip();
            let stands = stands.map(|stands| format!("; {stands}")).unwrap_or_default();
            let detail = format!("`{}`: {}{stands}", asked.id, first_line(&asked.text));
            let answer = Choice::AnswerQuestion { request: asked.id.clone() };
            let next = help.flatten().filter(|help| *help != answer).into_iter().chain([answer]);
            let unanswered = guard(Condition::Answered, false, detail).next(next);
            guards.push(Guard { lasts: true, ..unanswered });
        }
        let waits = !guards.iter().all(|guard| guard.holds) || run.is_suspended();
        let state = format!("run.{} ({})", run.machine.name(), run.id);
        guards.push(guard(Condition::RunState, run.is_live() || waits, state));
        if let Some((id, effect)) = run.step.as_ref().and_then(|step| Some((step, world.effects.get(step)?)))
        {
            guards.push(match effect.as_ref() {
                crate::Effect::RunGate { .. } => Guard {
                    next: vec![Choice::WatchTests { task: run.task.clone() }],
                    ..guard(Condition::TestsUnderWay, true, tests_running(worker.last_step_at, now))
                },
                effect => guard(Condition::UnderWay, true, format!("{} ({id})", effect.kind())),
            });
        }
        if let Some(suspension) = run.machine.suspension() {
            let service = ServiceName::new(&suspension.service).ok();
            let health = service.as_ref().and_then(|service| Some((service, world.health.get(service)?)));
            // With `restore = "all"` every service must be back.
            let ill = health.filter(|(_, health)| !health.healthy);
            let ill = ill.or_else(|| world.health.iter().find(|(_, health)| !health.healthy));
            let name = service.as_ref().map_or_else(|| suspension.service.to_string(), service_words);
            let was_away = format!("{name} was unavailable");
            guards.push(match ill {
                Some((service, health)) => {
                    service_there(world, Condition::ServiceThere, service, Some(health), Some(now))
                }
                None => guard(Condition::ServiceThere, false, was_away),
            });
        }
    }
    let backoff = world.timers.get(&crate::Timer::Backoff { worker: name.clone() });
    if let Some(left) = backoff.and_then(|id| world.effects.get(id)).and_then(|effect| effect.left(now)) {
        let error = worker.machine.task.as_ref().and_then(|id| world.run_of(id));
        let error = error.and_then(|run| run.machine.inner().last_error.as_ref());
        let error = error.map(|error| format!("{}; ", first_and_last(&error.message))).unwrap_or_default();
        let next = next_try(now.saturating_add(left), now);
        guards.push(guard(Condition::BackoffOver, false, format!("{error}{next}")));
    }
    match state {
        State::Idle => {
            guards.push(fleet_running(world));
            guards.extend(fleet_guards_at(world, &worker.agent, day_of(now), Some(now)));
            guards.iter_mut().for_each(|guard| not_needed_yet(world, guard));
            guards.push(guard(
                Condition::WorkThere,
                !world.claimable.is_empty(),
                match world.claimable.len() {
                    1 => "1 task could be claimed".to_owned(),
                    count => format!("{count} tasks could be claimed"),
                },
            ));
        }
        State::Stuck => {
            let task = worker.machine.task.as_ref().and_then(|id| world.task(id));
            let error = worker.last_error.clone().filter(|error| !error.is_empty());
            let (last, output) = task.and_then(|task| last_words(world, task)).unzip();
            let error = error.or(last).unwrap_or_else(|| "it has failed too often".to_owned());
            let out =
                [Choice::RetryWorker { worker: name.clone() }, Choice::KillWorker { worker: name.clone() }];
            let stuck = guard(Condition::NotStuck, false, error).next(out);
            guards.push(Guard { output: output.flatten(), ..stuck });
        }
        _ => {
            guards.push(fleet_running(world));
            guards.extend(main_tests(world).filter(|guard| !guard.holds));
        }
    }
    Some(guards)
}

/// What keeps the whole fleet from going on, whatever the task: what fails comes first.
pub fn of_fleet(world: &World, now: Millis) -> Vec<Guard> {
    let agent = &world.config.fleet.agent;
    let mut guards = vec![fleet_running(world)];
    guards.extend(
        fleet_guards(world, agent, day_of(now))
            .into_iter()
            .filter(|guard| guard.guard != Condition::ServiceHealthy),
    );
    for (service, health) in &world.health {
        guards.push(service_there(world, Condition::ServiceHealthy, service, Some(health), Some(now)));
    }
    guards.iter_mut().for_each(|guard| not_needed_yet(world, guard));
    let is_open = |task: &&std::sync::Arc<Task>| !task.is_final();
    let open = world.tasks.values().filter(is_open).count();
    guards.push(
        guard(
            Condition::WorkThere,
            open > 0,
            match open {
                0 => "no task is open; put a ticket into .tickets, or add a task".to_owned(),
                1 => "1 task is open".to_owned(),
                open => format!("{open} tasks are open"),
            },
        )
        .next([Choice::AddTask]),
    );
    let working = world.workers.values().any(|worker| {
        !matches!(worker.machine.status, machines::worker::State::Idle | machines::worker::State::Stuck)
    });
    if !world.workers.is_empty() && !working {
        guards.push(guard(Condition::WorkerIdle, !world.idle.is_empty(), idle_workers(world)));
    }
    guards.sort_by_key(|guard| guard.holds);
    guards
}

/// Tests that began when the agent's last step ended.
fn tests_running(since: Option<Millis>, now: Millis) -> String {
    since.map_or("tests running".to_owned(), |since| {
        format!("tests running {} s", (now - since).max(0) / 1000)
    })
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().trim_end_matches('.')
}

fn next_try(due: Millis, now: Millis) -> String {
    match (due - now + 999) / 1000 {
        ..=0 => "the next try is due".to_owned(),
        seconds => format!("the next try is due in {seconds} s"),
    }
}

/// The first dependency that is not DONE, and what is to be done about it.
pub(crate) fn open_dependency(world: &World, task: &Task) -> Option<String> {
    let open = |on: &TaskId| waits_on(world.dependency(on)).map(|why| format!("`{on}` {why}"));
    task.depends_on.iter().find_map(open)
}

/// What a person must decide about dependencies, by name.
fn waits_on(dependency: Dependency) -> Option<&'static str> {
    match dependency {
        Dependency::Done => None,
        Dependency::Open => Some("is not DONE yet"),
        Dependency::Canceled => {
            Some("was CANCELED and will never be DONE; a person must remove the dependency")
        }
        Dependency::Missing => Some("is not known; a person must add it or remove the dependency"),
    }
}
