//! Waiting: everything that does not go on before a person or a service has done something, as one list.
//!
//! Whoever tells people what waits reads this list: the command line, the live view, notices. What can be done about it
//! is a code with parameters here; the door that shows it words it as a command line or a button.

use crate::choice::Choice;

use crate::World;
use crate::rooms::Channel;
use crate::specs::{Spec, SpecState};
use crate::why;
use crate::words::{CommentKind, NoteKind, RequestKind};
use crate::world::{Approval, BudgetScope, Dependency, Disabled, Health, HeldUp, Request, Task, Worker};
use machines::Millis;
use machines::architect;
use machines::names::{AgentName, ApprovalId, ChannelName, RequestId, ServiceName, TaskId, WorkerName};
use machines::task::{ApprovalCause, BlockReason, Status};
use machines::turn::{self, WaitReason};
use machines::worker::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Declares the kinds, each with its name in the API, how much it matters, when a fleet stands still for it, and what looks
/// for it. A kind without one of them does not compile, and a builder without a row is dead code.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $wire:literal, $severity:ident, $stands:ident, $scope:ident($builder:path);)*) => {
        machines::wire_enum! {
            pub enum Kind { $($(#[doc = $doc])* $kind = $wire),* }
        }

        /// The rows, in the order of the kinds.
        const TABLE: &[Row] = &[
            $(Row {
                kind: Kind::$kind,
                severity: Severity::$severity,
                stands: StandsStill::$stands,
                look: Look::$scope($builder),
            }),*
        ];
    };
}

kinds! {
    // kind = name in the API, how much it matters, when a fleet stands still for it, what looks for it
    /// Finished work that nobody has approved.
    Review = "review", Info, Always, Task(review);
    /// A call that the policy asks about, or a question that somebody has passed on.
    Approval = "approval", Urgent, Always, Project(calls);
    /// A person has paused a run.
    PausedRun = "paused_run", Info, Always, Project(paused_runs);
    /// Somebody asked something, and wants an answer in words.
    Question = "question", Urgent, Always, Project(questions);
    /// The architect has given up, and what waits for it stands still.
    Architect = "architect", Warning, Always, Project(stopped_architect);
    /// An agent has paused its turn in a channel.
    Turn = "turn", Warning, Always, Project(paused_turns);
    /// A member of a channel was lost and is not in its queue.
    LostMember = "lost_member", Warning, Never, Project(lost_members);
    /// A person has disabled an agent that tasks want.
    AgentDisabled = "agent_disabled", Warning, WithTasks, Project(disabled_agents);
    /// The author of a spec is to change it.
    SpecChanges = "spec_changes", Info, Never, Project(spec_changes);
    /// A run has taken all its turns.
    TurnLimit = "turn_limit", Warning, Always, Project(turn_limits);
    /// A budget is used up.
    Budget = "budget", Urgent, Always, Project(budgets);
    /// A worker has failed too often.
    StuckWorker = "stuck_worker", Warning, WithTasks, Project(stuck_workers);
    BlockedTask = "blocked_task", Warning, Always, Task(blocked);
    /// A task depends on one that was canceled, or that nobody knows.
    DeadDependency = "dead_dependency", Warning, Always, Task(dead_dependencies);
    /// Local changes keep approved work from landing.
    CheckoutInTheWay = "checkout_in_the_way", Warning, Always, Task(checkout_in_the_way);
    /// Approved work waits for its pull request to be merged, or opened.
    PullRequest = "pull_request", Info, Always, Task(pull_request);
    /// adjutant.toml came in with an agent's branch, or is gone; the previous settings stay in force.
    UntrustedSettings = "untrusted_settings", Urgent, Never, Project(untrusted_settings);
    FullDisk = "full_disk", Urgent, WithTasks, Project(full_disk);
    /// A service does not answer; it is tried again without anybody.
    Outage = "outage", Info, WithService, Project(outages);
    RefusedCredentials = "refused_credentials", Urgent, WithService, Project(refused_credentials);
    /// Main's own tests fail, so no agent starts.
    MainTestsRed = "main_tests_red", Urgent, WithTasks, Project(main_tests);
    /// An agent proposed a task.
    Proposal = "proposal", Info, Never, Task(proposal);
    /// A task wants an agent that the settings do not have.
    AgentMissing = "agent_missing", Warning, Always, Task(agent_missing);
    /// The file of a task's ticket is gone.
    TicketGone = "ticket_gone", Warning, Always, Task(ticket_gone);
}

/// A row of the table.
struct Row {
    kind: Kind,
    severity: Severity,
    stands: StandsStill,
    look: Look,
}

/// What looks for things of a kind. It is handed the kind of its row, and gives nothing of another.
enum Look {
    /// Once.
    Project(fn(Kind, &Sight) -> Vec<Waiting>),
    /// At each task that is not over.
    Task(fn(Kind, &World, &Task) -> Vec<Waiting>),
}

/// What is looked at.
struct Sight<'w> {
    world: &'w World,
    outside: &'w Facts,
    now: Millis,
}

/// When a fleet that runs stands still for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandsStill {
    Always,
    /// Where it holds up a task.
    WithTasks,
    /// Where the service is what a task or the architect waits for.
    WithService,
    /// Nobody wants it yet, the fleet works on without it, or whoever it is for knows.
    Never,
}

machines::wire_enum! {
    /// How much it matters that somebody looks soon.
    pub enum Severity {
        /// Nothing stands still for it but itself.
        Info = "info",
        /// Some of the work stands still.
        Warning = "warning",
        /// All of the work stands still, or an agent waits with a call in its hands.
        Urgent = "urgent",
    }
}

impl Kind {
    fn row(self) -> &'static Row {
        // `every_kind_is_the_row_of_its_number` holds this.
        &TABLE[machines::Wire::ordinal(self)]
    }

    pub fn severity(self) -> Severity {
        self.row().severity
    }

    pub(crate) fn stands_still(self) -> StandsStill {
        self.row().stands
    }
}

machines::wire_enum! {
    /// Who may decide.
    pub enum Decider {
        Person = "person",
        /// A person, and by policy a lead.
        Lead = "lead",
        /// Nobody: it goes on when the service is back.
        Service = "service",
    }
}

/// Something that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    pub kind: Kind,
    pub about: About,
    /// Since when, where the log says so.
    pub since: Option<Millis>,
    /// The tasks that it holds up: those that it is about, and those that depend on them.
    pub blocks: Vec<TaskId>,
    pub who: Decider,
    /// What waits, in one sentence.
    pub text: String,
    /// What can be done about it, the most likely first.
    pub options: Vec<Choice>,
}

/// What it is about, as far as that has a name. The log keeps it: what is added here must be absent in logs of before.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct About {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelName>,
    /// The task that is depended on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency: Option<TaskId>,
}

/// What the World does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub untrusted_settings: Option<UntrustedSettings>,
    pub untrusted_include: Option<UntrustedInclude>,
}

/// `.worktreeinclude` is not what a person has trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedInclude {
    pub since: Option<Millis>,
}

/// adjutant.toml is not what a person has trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedSettings {
    /// The file is not there at all.
    pub gone: bool,
    pub since: Option<Millis>,
}

/// All that waits: what holds up most comes first, and of that what waits longest.
pub fn waiting(world: &World, outside: &Facts, now: Millis) -> Vec<Waiting> {
    let sight = Sight { world, outside, now };
    let mut list: Vec<Waiting> = Vec::new();
    for row in TABLE {
        match row.look {
            Look::Project(look) => list.extend(look(row.kind, &sight)),
            Look::Task(_) => {}
        }
    }
    list.extend(world.open_tasks().flat_map(|task| of_task(world, task)));
    // Without a moment it may be as old as any; that it is shown last among its equals hides nothing.
    let age = |waiting: &Waiting| waiting.since.unwrap_or(Millis::MAX);
    let task =
        |waiting: &Waiting| waiting.about.task.as_ref().map(|task| task.to_string()).unwrap_or_default();
    list.sort_by(|one, other| {
        let of = |waiting: &Waiting| (usize::MAX - waiting.blocks.len(), age(waiting), waiting.kind);
        let by_name = || crate::natural(&task(one), &task(other));
        of(one).cmp(&of(other)).then_with(by_name).then_with(|| one.about.cmp(&other.about))
    });
    list
}

/// The requests that a person is to answer.
fn requests_for_people(world: &World) -> impl Iterator<Item = &Request> {
    let with_architect = |request: &Request| world.config.architect.is_some() && world.is_queued(&request.id);
    world.open_requests().filter(move |request| request.for_person || !with_architect(request))
}

/// Since when something about each of these tasks waits for a person: what `waiting` says of them, without the rest.
pub fn for_people_since(world: &World, tasks: &[&Task]) -> BTreeMap<TaskId, Millis> {
    let wanted: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let sight = Sight { world, outside: &Facts::default(), now: 0 };
    let asked = world.open_approvals().map(|approval| (approval.task.clone(), Some(approval.asked_at)));
    let requested = requests_for_people(world).map(|request| (request.task.clone(), Some(request.asked_at)));
    let (turns, stuck) = (paused_turns(Kind::Turn, &sight), stuck_workers(Kind::StuckWorker, &sight));
    let own = tasks.iter().flat_map(|task| of_task(world, task));
    let others = turns.into_iter().chain(stuck).chain(own).filter(Waiting::needs_someone);
    let mut since = BTreeMap::new();
    for (task, at) in asked.chain(requested).chain(others.map(|item| (item.about.task, item.since))) {
        let (Some(task), Some(at)) = (task.filter(|task| wanted.contains(task)), at) else { continue };
        since.entry(task).and_modify(|first: &mut Millis| *first = at.min(*first)).or_insert(at);
    }
    since
}

impl Waiting {
    /// Whether it goes on only when somebody has decided.
    pub fn needs_someone(&self) -> bool {
        self.who != Decider::Service
    }
}

fn untrusted_settings(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let settings = sight.outside.untrusted_settings.as_ref().map(|untrusted| settings(kind, untrusted));
    let include = sight.outside.untrusted_include.as_ref().map(|untrusted| include(kind, untrusted));
    settings.into_iter().chain(include).collect()
}

fn settings(kind: Kind, untrusted: &UntrustedSettings) -> Waiting {
    let (text, options) = match untrusted.gone {
        true => (
            "adjutant.toml is gone; the previous settings stay in force",
            vec![Choice::ShowSettings, Choice::ForgetSettings],
        ),
        false => (
            "adjutant.toml came in with an agent's branch and is not trusted; the previous settings stay in force",
            vec![Choice::TrustSettings, Choice::ShowSettings],
        ),
    };
    Waiting {
        kind,
        about: About::default(),
        since: untrusted.since,
        blocks: Vec::new(),
        who: Decider::Person,
        text: text.to_owned(),
        options,
    }
}

fn include(kind: Kind, untrusted: &UntrustedInclude) -> Waiting {
    Waiting {
        kind,
        about: About::default(),
        since: untrusted.since,
        blocks: Vec::new(),
        who: Decider::Person,
        text:
            ".worktreeinclude came in with an agent's branch and is not trusted; trees get the previous files"
                .to_owned(),
        options: vec![Choice::TrustSettings],
    }
}

fn main_tests(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let world = sight.world;
    let red = world.main_verdict().and_then(|verdict| Some((verdict, verdict.red.as_ref()?)));
    let item = red.map(|(verdict, output)| Waiting {
        kind,
        about: About::default(),
        since: Some(verdict.at),
        blocks: held_up(world, to_be_worked_on(world, |_| true)),
        who: Decider::Person,
        text: format!("the tests fail on main itself, so no agent starts: {}", why::last_line(output)),
        options: vec![Choice::TestMain],
    });
    item.into_iter().collect()
}

fn full_disk(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let world = sight.world;
    let not_taken = |task: &Task| task.work.lease.is_none();
    let item = world.disk_full.as_ref().map(|found| Waiting {
        kind,
        about: About::default(),
        since: world.disk_full_since,
        blocks: held_up(world, to_be_worked_on(world, not_taken)),
        who: Decider::Person,
        text: format!("the disk is full, so no task is taken: {found}"),
        options: vec![Choice::CheckMachine, Choice::EmptyTrash],
    });
    item.into_iter().collect()
}

fn outages(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let away = sight.world.health.iter().filter(|(_, health)| !health.healthy && !health.refused);
    away.map(|(service, health)| outage(kind, sight, service, health)).collect()
}

fn refused_credentials(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let refused = sight.world.health.iter().filter(|(_, health)| !health.healthy && health.refused);
    let item = |(service, health): (&ServiceName, &Health)| {
        let (name, error) = (why::service_words(service), health.error.as_deref());
        let text = format!("{name} does not accept the credentials ({})", error.unwrap_or("no answer"));
        of_service(kind, sight.world, service, health, Decider::Person, text)
    };
    refused.map(item).collect()
}

fn outage(kind: Kind, sight: &Sight, service: &ServiceName, health: &Health) -> Waiting {
    let (world, now) = (sight.world, sight.now);
    let (name, error) = (why::service_words(service), health.error.as_deref());
    let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
    let again = match why::tried_again(world, service, health, now).map(|due| due - now) {
        _ if health.probe.is_some() => "; it is being tried now".to_owned(),
        Some(wait) if wait > 0 => format!("; tried again in {}", why::duration(wait)),
        Some(_) => "; the next try is due".to_owned(),
        None => String::new(),
    };
    let text = format!("{name} is unavailable{error}{again}");
    of_service(kind, world, service, health, Decider::Service, text)
}

/// A service that cannot be used, with all that needs it.
fn of_service(
    kind: Kind,
    world: &World,
    service: &ServiceName,
    health: &Health,
    who: Decider,
    text: String,
) -> Waiting {
    let needs = |task: &Task| {
        let begun = world.run_of(&task.id).filter(|run| run.is_open()).map(|run| &run.agent);
        let agent = begun.or_else(|| world.agent_needed(task));
        agent.is_some_and(|agent| world.config.service_of(agent) == *service)
    };
    Waiting {
        kind,
        about: About { service: Some(service.clone()), ..About::default() },
        since: Some(health.since),
        blocks: held_up(world, to_be_worked_on(world, needs)),
        who,
        text,
        options: vec![Choice::RetryServices],
    }
}

/// The open approvals of a cause, each with what can be answered.
fn of_cause<'w>(
    kind: Kind,
    sight: &'w Sight,
    meant: impl Fn(&Approval) -> Option<Vec<Choice>> + 'w,
) -> impl Iterator<Item = Waiting> + 'w {
    sight.world.open_approvals().filter_map(move |approval| {
        let options = meant(approval)?;
        Some(of_approval(kind, sight.world, approval, options))
    })
}

fn budgets(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let asked = of_cause(kind, sight, |approval| {
        let id = || approval.id.clone();
        let options = vec![Choice::RaiseLimit { approval: id() }, Choice::DenyRequest { approval: id() }];
        (approval.cause == ApprovalCause::Budget).then_some(options)
    });
    asked.chain(denied_budgets(kind, sight)).collect()
}

fn turn_limits(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let asked = of_cause(kind, sight, |approval| {
        let id = || approval.id.clone();
        let options = vec![
            Choice::RaiseLimit { approval: id() },
            Choice::CompleteAsIs { approval: id() },
            Choice::DenyRequest { approval: id() },
        ];
        (approval.cause == ApprovalCause::TurnLimit).then_some(options)
    });
    asked.collect()
}

/// The run that a person has paused, where that is what the approval is about.
fn paused_run(approval: &Approval) -> Option<&machines::names::RunId> {
    approval.paused_run().filter(|_| approval.cause == ApprovalCause::Escalation)
}

fn paused_runs(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let asked = of_cause(kind, sight, |approval| {
        let run = paused_run(approval)?;
        Some(vec![Choice::ResumeRun { run: run.clone() }, Choice::AbortRun { run: run.clone() }])
    });
    asked.collect()
}

fn calls(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let asked = of_cause(kind, sight, |approval| {
        let id = || approval.id.clone();
        match approval.cause {
            ApprovalCause::Budget | ApprovalCause::TurnLimit => return None,
            ApprovalCause::Escalation if paused_run(approval).is_some() => return None,
            ApprovalCause::RedAction | ApprovalCause::YellowAction | ApprovalCause::Escalation => {}
        }
        let (approve, deny) =
            (Choice::ApproveRequest { approval: id() }, Choice::DenyRequest { approval: id() });
        let of_call = |choice: Choice| approval.call.as_ref().map(|_| choice);
        let always = of_call(Choice::ApproveAlways { approval: id() });
        let show = of_call(Choice::ShowRequest { approval: id() });
        Some([Some(approve), Some(deny), show, always].into_iter().flatten().collect())
    });
    asked.collect()
}

fn of_approval(kind: Kind, world: &World, approval: &Approval, options: Vec<Choice>) -> Waiting {
    // One question about the money of all is answered for each task that has come to wait for it.
    let waits = |task: &Task| task.approval.as_ref() == Some(&approval.id);
    let waiting = world.tasks_in(&[Status::NeedsApproval], 0).filter(|task| waits(task));
    let waiting = waiting.map(|task| task.id.clone());
    let mut held: Vec<TaskId> = waiting.chain(approval.task.clone()).collect();
    if approval.task.is_none() {
        held.extend(match (approval.scope, &approval.agent) {
            (Some(BudgetScope::Day), _) => to_be_worked_on(world, |_| true),
            (_, Some(agent)) => to_be_worked_on(world, |task| world.agent_needed(task) == Some(agent)),
            _ => Vec::new(),
        });
    }
    let of = approval.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
    Waiting {
        kind,
        about: About { task: approval.task.clone(), approval: Some(approval.id.clone()), ..About::default() },
        since: Some(approval.asked_at),
        blocks: held_up(world, held),
        who: Decider::Person,
        text: format!("{of}{}", approval.question),
        options,
    }
}

/// An agent that holds the turn of a channel and does not use it, until a person says so or the wait is over.
fn paused_turns(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let channels = sight.world.channels.iter();
    channels.filter_map(|(name, channel)| paused_turn(kind, name, channel)).collect()
}

fn paused_turn(kind: Kind, name: &ChannelName, channel: &Channel) -> Option<Waiting> {
    let agent = channel.current.as_ref()?;
    let place = channel.place(agent).filter(|place| place.state == turn::State::Waiting)?;
    let (who, why) = match (place.wait_reason, &place.wait_note) {
        (Some(WaitReason::HumanInterrupt), _) => (Decider::Person, "a person interrupted it".to_owned()),
        (Some(WaitReason::Service), note) => (Decider::Service, note.clone().unwrap_or_default()),
        (_, Some(note)) => (Decider::Person, note.clone()),
        (_, None) => (Decider::Person, "it did not say for what".to_owned()),
    };
    Some(Waiting {
        kind,
        about: About { channel: Some(name.clone()), task: channel.about.task.clone(), ..About::default() },
        since: place.wait_until.map(|until| until - Millis::from(channel.wait_seconds(agent)) * 1000),
        blocks: channel.about.task.iter().cloned().collect(),
        who,
        text: format!("{agent} waits in its turn in {name}: {why}"),
        options: crate::rules::room_options(name, agent),
    })
}

/// Members that were lost, or came back, and that nobody has put into the queue again.
fn lost_members(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let channels = sight.world.channels.iter();
    channels.flat_map(|(name, channel)| lost_in(kind, sight.world, name, channel)).collect()
}

fn lost_in(kind: Kind, world: &World, name: &ChannelName, channel: &Channel) -> Vec<Waiting> {
    let is_lost = |agent: &&AgentName| match channel.state_of(agent) {
        _ if channel.is_closed() || world.disabled.contains_key(*agent) => false,
        Some(turn::State::Offline) => !channel.expected.contains(*agent),
        Some(turn::State::Idle) => !channel.resting.contains(*agent),
        _ => false,
    };
    let one = |agent: &AgentName| {
        let state = channel.state_of(agent).map_or("OFFLINE", machines::Wire::name);
        Waiting {
            kind,
            about: About {
                channel: Some(name.clone()),
                task: channel.about.task.clone(),
                ..About::default()
            },
            since: None,
            blocks: Vec::new(),
            who: Decider::Person,
            text: format!("{agent} is {state} in {name} and gets no turn"),
            options: vec![
                Choice::AddMember { channel: name.clone(), agent: agent.clone() },
                Choice::ShowChannel { channel: name.clone() },
            ],
        }
    };
    channel.members.iter().filter(is_lost).map(one).collect()
}

/// Tasks that only a disabled agent may work on.
fn disabled_agents(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let disabled = sight.world.disabled.iter();
    disabled.filter_map(|(agent, disabled)| agent_disabled(kind, sight.world, agent, disabled)).collect()
}

fn agent_disabled(kind: Kind, world: &World, agent: &AgentName, disabled: &Disabled) -> Option<Waiting> {
    let fleet = &world.config.fleet.agent;
    let wants = |task: &Task| task.work.lease.is_none() && world.agent_needed(task).unwrap_or(fleet) == agent;
    let blocks = held_up(world, to_be_worked_on(world, wants));
    let architect = world.config.architect.as_ref().is_some_and(|architect| architect.agent == *agent);
    let asked = architect && !world.architect_queue.is_empty();
    if blocks.is_empty() && !asked {
        return None;
    }
    let reason = disabled.reason.as_deref().map(|reason| format!(": {}", first_line(reason)));
    Some(Waiting {
        kind,
        about: About::default(),
        since: Some(disabled.since),
        blocks,
        who: Decider::Person,
        text: format!("agent {agent} is disabled{}", reason.unwrap_or_default()),
        options: vec![Choice::EnableAgent { agent: agent.clone() }],
    })
}

/// A spec that its author is to change and submit again.
fn spec_changes(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let specs = sight.world.specs.values().filter(|spec| spec.state == SpecState::NeedsChanges);
    specs.map(|spec| changes_of(kind, spec)).collect()
}

fn changes_of(kind: Kind, spec: &Spec) -> Waiting {
    let feedback = spec.feedback.as_deref().map(first_line).unwrap_or_default();
    let feedback = if feedback.is_empty() { String::new() } else { format!(": {feedback}") };
    Waiting {
        kind,
        about: About::default(),
        since: spec.reviewed_at,
        blocks: Vec::new(),
        who: Decider::Person,
        text: format!("the spec {} needs changes{feedback}", spec.id),
        options: vec![Choice::ShowSpec { spec: spec.id.clone() }],
    }
}

/// The architect stands in ERROR. What was asked of it is kept.
fn stopped_architect(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let world = sight.world;
    let configured = world.architect.as_ref().filter(|_| world.config.architect.is_some());
    let stopped = configured.filter(|architect| {
        architect.suspension().is_none() && architect.inner().state == architect::State::InError
    });
    let of_queue = || world.architect_queue.iter().filter_map(|id| world.requests.get(id)?.task.clone());
    let item = stopped.map(|architect| Waiting {
        kind,
        about: About::default(),
        since: None,
        blocks: held_up(world, of_queue()),
        who: Decider::Person,
        text: format!(
            "the architect has stopped ({}); {}",
            architect.inner().cause.as_deref().unwrap_or("no reason was given"),
            match world.architect_queue.len() {
                1 => "1 request waits for it".to_owned(),
                count => format!("{count} requests wait for it"),
            }
        ),
        options: vec![Choice::RecoverArchitect],
    });
    item.into_iter().collect()
}

/// Questions that are answered in words.
fn questions(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    requests_for_people(sight.world).map(|request| asked(kind, sight.world, request)).collect()
}

fn asked(kind: Kind, world: &World, request: &Request) -> Waiting {
    let of = request.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
    let cancel = request.task.as_ref().map(|task| Choice::CancelTask { task: task.clone() });
    let answer = Choice::AnswerQuestion { request: request.id.clone() };
    // In one line, and all of it: whoever answers has read it.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = one_line(&request.text);
    let who = match request.kind {
        RequestKind::Question => format!("{} asks", request.by),
        of => format!("the architect needs a person for the {}", of.noun()),
    };
    if let Some(note) = request.notes.back() {
        // Whose word it is was said already, where it is the architect's.
        let is_own = note.kind == NoteKind::Escalation && request.kind != RequestKind::Question;
        let note = if is_own { note.text.to_string() } else { note.to_string() };
        text = format!("{text} ({})", one_line(&note));
    }
    let abandon = request.for_person.then(|| Choice::AbandonRequest { request: request.id.clone() });
    Waiting {
        kind,
        about: About { task: request.task.clone(), request: Some(request.id.clone()), ..About::default() },
        since: Some(request.asked_at),
        blocks: held_up(world, request.task.clone()),
        who: Decider::Person,
        text: format!("{of}{who}: {text}"),
        options: [Some(answer), abandon, cancel].into_iter().flatten().collect(),
    }
}

/// What a task waits for, besides questions.
fn of_task(world: &World, task: &Task) -> Vec<Waiting> {
    if task.is_final() {
        return Vec::new();
    }
    let rows = TABLE.iter().flat_map(|row| match row.look {
        Look::Task(look) => look(row.kind, world, task),
        Look::Project(_) => Vec::new(),
    });
    rows.collect()
}

/// Whether it is somebody's to work on, or to go on with.
fn is_to_do(task: &Task) -> bool {
    match task.status() {
        Status::Inbox => !task.is_waiting_proposal(),
        Status::Assigned | Status::InProgress => true,
        _ => false,
    }
}

/// Whether it is BLOCKED because the file of its ticket is gone.
fn is_blocked_by_ticket(world: &World, task: &Task) -> bool {
    task.status() == Status::Blocked
        && task.machine.block_reason == Some(BlockReason::Manual)
        && world.ticket_of(task).and_then(|ticket| ticket.gone).is_some_and(|gone| gone.blocked)
}

/// The stuck worker that still has it.
fn stuck_with<'w>(world: &'w World, task: &Task) -> Option<&'w Worker> {
    world.worker_of(&task.id).filter(|worker| worker.machine.status == State::Stuck)
}

/// What waits about one task, for a person to decide.
fn item(world: &World, task: &Task, kind: Kind, text: String, options: Vec<Choice>) -> Waiting {
    Waiting {
        kind,
        about: About { task: Some(task.id.clone()), ..About::default() },
        since: None,
        blocks: held_up(world, vec![task.id.clone()]),
        who: Decider::Person,
        text,
        options,
    }
}

/// Its review is the architect's to decide, and not left to a person. Where the architect cannot, that waits by itself.
fn is_with_architect(world: &World, task: &Task) -> bool {
    let of_task = |request: &Request| {
        let review = matches!(request.kind, RequestKind::Code | RequestKind::Completion);
        review && !request.for_person && request.task.as_ref() == Some(&task.id)
    };
    let mut queued = world.architect_queue.iter().filter_map(|id| world.requests.get(id));
    world.config.architect.is_some() && queued.any(|request| of_task(request))
}

fn review(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    let waits = task.status() == Status::Review && task.review.approved.is_none();
    if !waits || is_with_architect(world, task) {
        return Vec::new();
    }
    let (id, title) = (&task.id, first_line(&task.title));
    let conflict = task.conflict().map(|conflict| conflict.words(&world.config.main));
    let text = match (&conflict, &task.gate.needs_person) {
        (Some(conflict), _) => format!("{id} {conflict}: {title}"),
        (None, Some(reason)) => format!("{id} needs review, {}: {title}", reason.text()),
        (None, None) => format!("{id} is ready: {title}"),
    };
    let of = || task.id.clone();
    let options = match conflict {
        Some(_) => vec![
            Choice::ShowReview { task: of() },
            Choice::RequestChanges { task: of() },
            Choice::OpenTree { task: of() },
            Choice::CancelTask { task: of() },
        ],
        None => vec![
            Choice::ShowReview { task: of() },
            Choice::ApproveReview { task: of() },
            Choice::RequestChanges { task: of() },
            Choice::CancelTask { task: of() },
        ],
    };
    let by_lead = world.config.policy.lead_may_complete && !task.needs_a_person();
    let who = if by_lead { Decider::Lead } else { Decider::Person };
    vec![Waiting { who, since: task.status_since, ..item(world, task, kind, text, options) }]
}

/// What keeps approved work from landing.
fn in_the_way(task: &Task) -> Option<(&HeldUp, String)> {
    let approved = task.status() == Status::Review && task.review.approved.is_some();
    let found = task.in_the_way().filter(|_| approved)?;
    Some((found, format!("{} waits to land: {}", task.id, task.words_for(found))))
}

fn checkout_in_the_way(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    let Some((HeldUp::Checkout { .. }, text)) = in_the_way(task) else { return Vec::new() };
    let options = vec![Choice::ExplainTask { task: task.id.clone() }, Choice::ClearCheckout];
    vec![Waiting { since: task.landing.held_up_since, ..item(world, task, kind, text, options) }]
}

fn pull_request(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    let Some((found, text)) = in_the_way(task) else { return Vec::new() };
    let since = match found {
        HeldUp::Checkout { .. } => return Vec::new(),
        HeldUp::PullRequest { since } => Some(*since),
        HeldUp::Remote { .. } => task.landing.held_up_since,
    };
    let of = || task.id.clone();
    let options = vec![
        Choice::ShowReview { task: of() },
        Choice::RetryLanding { task: of() },
        Choice::RequestChanges { task: of() },
        Choice::CancelTask { task: of() },
    ];
    vec![Waiting { since, ..item(world, task, kind, text, options) }]
}

fn blocked(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    let meant = task.status() == Status::Blocked && !is_blocked_by_ticket(world, task);
    match meant && stuck_with(world, task).is_none() {
        true => vec![blocked_task(kind, world, task, None)],
        false => Vec::new(),
    }
}

/// A task that is BLOCKED. Where a stuck worker still has it, the two are one thing to decide.
fn blocked_task(kind: Kind, world: &World, task: &Task, stuck: Option<&Worker>) -> Waiting {
    let (id, title) = (&task.id, first_line(&task.title));
    let reason = task.machine.block_reason.map_or("", |reason| machines::Wire::name(reason));
    let text = match task.conflict().map(|conflict| conflict.words(&world.config.main)) {
        Some(conflict) => format!("{id} is BLOCKED ({reason}), it {conflict}: {title}"),
        None => format!("{id} is BLOCKED ({reason}): {title}"),
    };
    let of = || task.id.clone();
    let last = |kind| task.comments.iter().rev().find(|said| said.is(kind)).map(|said| said.at);
    let [again, anew] = match (task.machine.block_reason, stuck) {
        // The same again would end the same: without a word of a person nothing has changed.
        (Some(BlockReason::ReviewCycles), _) => {
            [Choice::ClarifyTask { task: of() }, Choice::RestartWithNote { task: of() }]
        }
        (_, Some(worker)) => {
            [Choice::RetryWorker { worker: worker.name.clone() }, Choice::RestartTask { task: of() }]
        }
        (_, None) => [Choice::RetryTask { task: of() }, Choice::RestartTask { task: of() }],
    };
    let mut options = vec![Choice::ExplainTask { task: of() }, again, anew];
    options.extend(stuck.map(|worker| Choice::KillWorker { worker: worker.name.clone() }));
    options.push(Choice::CancelTask { task: of() });
    let mut waiting = item(world, task, kind, text, options);
    waiting.about.worker = stuck.map(|worker| worker.name.clone());
    waiting.since =
        last(CommentKind::Blocked).or(stuck.and_then(|worker| worker.last_failed_at)).or(task.status_since);
    waiting
}

fn stuck_workers(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let stuck = sight.world.workers.values().filter(|worker| worker.machine.status == State::Stuck);
    stuck.filter_map(|worker| stuck_worker(kind, sight.world, worker)).collect()
}

fn stuck_worker(kind: Kind, world: &World, worker: &Worker) -> Option<Waiting> {
    let task = worker.machine.task.as_ref().and_then(|id| world.task(id));
    let has = |task: &&Task| {
        task.status() == Status::Blocked && world.worker_of(&task.id).is_some_and(|of| of.name == worker.name)
    };
    match task.filter(has) {
        Some(task) if is_blocked_by_ticket(world, task) => None,
        Some(task) => Some(blocked_task(kind, world, task, Some(worker))),
        None => Some(stuck_alone(kind, world, worker)),
    }
}

/// A stuck worker whose task is not what waits: it has none, or it went on without it.
fn stuck_alone(kind: Kind, world: &World, worker: &Worker) -> Waiting {
    let task = worker.machine.task.as_ref().and_then(|id| world.task(id));
    let (name, error) = (&worker.name, worker.last_error.as_deref().map(first_line).unwrap_or_default());
    let error = if error.is_empty() { String::new() } else { format!(": {error}") };
    let of = || worker.name.clone();
    Waiting {
        kind,
        about: About { worker: Some(of()), task: worker.machine.task.clone(), ..About::default() },
        since: worker.last_failed_at,
        blocks: held_up(world, task.filter(|task| !task.is_final()).map(|task| task.id.clone())),
        who: Decider::Person,
        text: format!("worker {name} is stuck{error}"),
        options: vec![
            Choice::ExplainWorker { worker: of() },
            Choice::RetryWorker { worker: of() },
            Choice::KillWorker { worker: of() },
        ],
    }
}

fn dead_dependencies(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    match is_to_do(task) && task.status() != Status::InProgress {
        true => task.depends_on.iter().filter_map(|on| dead_dependency(kind, world, task, on)).collect(),
        false => Vec::new(),
    }
}

fn dead_dependency(kind: Kind, world: &World, task: &Task, on: &TaskId) -> Option<Waiting> {
    let how = match world.dependency(on) {
        Dependency::Missing => "which does not exist",
        Dependency::Canceled => "which was canceled",
        Dependency::Done | Dependency::Open => return None,
    };
    let id = || task.id.clone();
    let text = format!("{} waits for {on}, {how}", task.id);
    let options = vec![
        Choice::ExplainTask { task: id() },
        Choice::RemoveDependency { task: id(), on: on.clone() },
        Choice::CancelTask { task: id() },
    ];
    let mut waiting = item(world, task, kind, text, options);
    waiting.about.dependency = Some(on.clone());
    // Since the other was canceled, or since this one waits for something that was never there.
    waiting.since = world.task(on).map_or(task.status_since, |other| other.status_since);
    Some(waiting)
}

/// A task that no worker will ever take: whoever it is for is not in the settings.
fn agent_missing(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    let known = |name: &str| world.config.agents.keys().any(|agent| agent.as_str() == name);
    let missing = match (&task.agent, task.status()) {
        _ if task.work.lease.is_some() || !is_to_do(task) => return Vec::new(),
        (Some(wanted), _) if !known(wanted.as_str()) => format!("wants agent `{wanted}`"),
        (None, Status::Assigned) => {
            let assigned = &task.machine.assignee_ids;
            let nobody = !assigned.is_empty() && !assigned.iter().any(|id| known(id));
            match nobody {
                true => format!("is assigned to {}", assigned.join(", ")),
                false => return Vec::new(),
            }
        }
        _ => return Vec::new(),
    };
    let text = format!("{} {missing}, which adjutant.toml does not have", task.id);
    let options =
        vec![Choice::ChooseAgent { task: task.id.clone() }, Choice::CancelTask { task: task.id.clone() }];
    vec![Waiting { since: task.status_since, ..item(world, task, kind, text, options) }]
}

/// Budgets of the day or of an agent that a person did not raise: nobody asks again.
fn denied_budgets(kind: Kind, sight: &Sight) -> Vec<Waiting> {
    let world = sight.world;
    let day = crate::world::day_of(sight.now);
    let fleet = &world.config.fleet.agent;
    let tasks = || world.open_tasks().filter(|task| task.work.lease.is_none());
    let wanted: BTreeSet<&AgentName> =
        tasks().map(|task| world.agent_needed(task).unwrap_or(fleet)).collect();
    let of_agent = |agent: &&AgentName| {
        let denied = why::denied_budget(world, agent, day)?;
        let blocks = to_be_worked_on(world, |task| world.agent_needed(task).unwrap_or(fleet) == *agent);
        (!blocks.is_empty()).then(|| Waiting {
            kind,
            about: About::default(),
            since: denied.since,
            blocks: held_up(world, blocks),
            who: Decider::Person,
            text: denied.text,
            options: vec![Choice::ShowSettings],
        })
    };
    let mut list: Vec<Waiting> = wanted.iter().filter_map(of_agent).collect();
    // The day's budget is one for all agents.
    list.dedup_by(|one, other| one.text == other.text);
    list
}

fn proposal(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    if task.status() != Status::Inbox || !task.is_waiting_proposal() {
        return Vec::new();
    }
    let (id, title) = (&task.id, first_line(&task.title));
    let by = task.origin.proposed.as_ref().map(why::proposed_by).unwrap_or_default();
    let options =
        vec![Choice::AcceptProposal { task: id.clone() }, Choice::RefuseProposal { task: id.clone() }];
    let text = format!("{id} is {by}: {title}");
    // A ticket's own date says when somebody wrote it, not when it came to wait.
    vec![Waiting { since: task.status_since, ..item(world, task, kind, text, options) }]
}

fn ticket_gone(kind: Kind, world: &World, task: &Task) -> Vec<Waiting> {
    let gone = || world.ticket_of(task).is_some_and(|ticket| ticket.gone.is_some());
    let is_missed = is_to_do(task) && task.work.lease.is_none() && gone();
    if !is_missed && !is_blocked_by_ticket(world, task) {
        return Vec::new();
    }
    let id = || task.id.clone();
    let ticket = task.origin.ticket.as_deref().unwrap_or_default();
    let text = format!("{} waits for the file of ticket {ticket}, which is gone: put it back", task.id);
    let options = vec![Choice::ExplainTask { task: id() }, Choice::CancelTask { task: id() }];
    let told = task.comments.iter().rev().find(|said| said.is(CommentKind::Ticket));
    let since = told.map(|said| said.at);
    vec![Waiting { since, ..item(world, task, kind, text, options) }]
}

/// The tasks that somebody would work on next, of those that are meant.
fn to_be_worked_on(world: &World, meant: impl Fn(&Task) -> bool) -> Vec<TaskId> {
    let open = world.tasks_in(&[Status::Inbox, Status::Assigned, Status::InProgress], 0);
    let tasks = open.filter(|task| !task.is_waiting_proposal() && meant(task));
    let mut ids: Vec<TaskId> = tasks.map(|task| task.id.clone()).collect();
    ids.sort();
    ids
}

/// These tasks, and all that wait until they are done. One that has begun waits for no other.
fn held_up(world: &World, tasks: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
    let not_begun = |id: &&TaskId| {
        world.task(id).is_some_and(|task| matches!(task.status(), Status::Inbox | Status::Assigned))
    };
    let mut held = BTreeSet::new();
    let mut open: Vec<TaskId> = tasks.into_iter().collect();
    while let Some(id) = open.pop() {
        if held.contains(&id) {
            continue;
        }
        let behind = world.dependents.get(&id).into_iter().flatten();
        open.extend(behind.filter(not_begun).cloned());
        held.insert(id);
    }
    let mut held: Vec<TaskId> = held.into_iter().collect();
    held.sort_by(|one, other| crate::natural(one.as_str(), other.as_str()));
    held
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_the_row_of_its_number() {
        for kind in <Kind as machines::Wire>::ALL {
            assert_eq!(kind.row().kind, *kind);
        }
    }
}
