//! Who may ask for what, tried out: every ask by everybody, through the running kernel, and the page that says so.
//! `ADJ_WRITE_DOCS=1 cargo test -p adjutant-kernel permissions` writes it.
#![expect(clippy::disallowed_methods, reason = "the test writes a page; the kernel writes nothing")]

use super::commands::{add, agent, whole};
use super::table::*;
use crate::command::*;
use crate::config::Role;
use crate::diff::diff;
use crate::line_comment::LineComment;
use crate::words::{DiffSide, RequestKind};
use machines::machine::sabotage::{self, Change};
use machines::names::{AgentName, ApprovalId, ChannelName, RunId, TaskId, WorkerName};
use machines::suspended::Wrapped;
use machines::task::{Payload, Status};
use machines::{Machine, Wire, architect, run, task, turn, worker as workers};
use serde_json::json;
use smol_str::SmolStr;
use std::fmt::Write;

fn line_comment() -> LineComment {
    LineComment {
        path: "README.md".to_owned(),
        side: DiffSide::New,
        line: 1,
        end_line: 1,
        text: "Say why.".to_owned(),
        tip: None,
    }
}

/// Who asks, and what the task, run or place that it asks about is to it.
const CALLERS: &[(&str, Caller)] = &[
    ("human", Caller::Human),
    ("system", Caller::System),
    ("lead", Caller::Agent(Role::Lead)),
    ("specialist", Caller::Agent(Role::Specialist)),
    ("intern", Caller::Agent(Role::Intern)),
    ("reviewer", Caller::Reviewer),
    ("lead, its own", Caller::Own(Role::Lead)),
    ("specialist, its own", Caller::Own(Role::Specialist)),
    ("intern, its own", Caller::Own(Role::Intern)),
    ("another run of that agent", Caller::OtherRun),
    ("its turn in another channel", Caller::OtherRoom),
];

#[derive(Clone, Copy, Debug)]
enum Caller {
    Human,
    System,
    /// An agent that has nothing to do with it.
    Agent(Role),
    /// A specialist who is named as the task's reviewer.
    Reviewer,
    /// The agent to whom the task is assigned, or whose run or place it is.
    Own(Role),
    /// The same agent, a lead, with the token of its run on another task.
    OtherRun,
    /// The same, with the token of its turn in another channel.
    OtherRoom,
}

impl Caller {
    fn actor(self) -> Actor {
        match self {
            Caller::Human => ann(),
            Caller::System => Actor::System,
            Caller::Agent(role) => agent("other", role),
            Caller::Reviewer => agent("judge", Role::Specialist),
            Caller::Own(role) => agent("own", role),
            Caller::OtherRun | Caller::OtherRoom => agent("own", Role::Lead),
        }
    }

    fn token_for(self) -> Option<TokenFor> {
        match self {
            Caller::OtherRun => Some(TokenFor::Run(RunId::new("t9.1").unwrap())),
            Caller::OtherRoom => {
                let (channel, agent) = (ChannelName::new("far").unwrap(), AgentName::new("own").unwrap());
                Some(TokenFor::Seat(crate::rooms::Seat::Room { channel, agent }))
            }
            _ => None,
        }
    }
}

/// A task of the agent `own`, reviewed by `judge`, moved along by a person.
fn task_in(way: &[Status]) -> Table {
    let mut table = Table::new(config());
    table.ann(add("t1", &[])).unwrap();
    let reviewer = Some(SmolStr::new_static("judge"));
    let edit = Ask::EditTask {
        id: task("t1"),
        title: None,
        body: None,
        priority: None,
        plan: None,
        reviewer,
        agent: None,
    };
    table.ann(edit).unwrap();
    for to in way {
        let machine = &table.world.task(&task("t1")).unwrap().machine;
        let payload = Payload { assignee_ids: Some(vec!["own".into()]), ..whole(machine) };
        table.move_task(ann(), "t1", *to, payload).unwrap();
    }
    table
}

/// The way from INBOX that a person leads a task.
fn way_to(status: Status) -> &'static [Status] {
    use Status::*;
    match status {
        Inbox => &[],
        Assigned => &[Assigned],
        InProgress => &[Assigned, InProgress],
        Review => &[Assigned, InProgress, Review],
        NeedsApproval => &[Assigned, InProgress, NeedsApproval],
        Blocked => &[Assigned, InProgress, Blocked],
        Done => &[Assigned, InProgress, Review, Done],
        Canceled => &[Canceled],
    }
}

/// One line of the page: what is asked, and where.
struct Line {
    ask: String,
    scene: Box<dyn Fn() -> (Table, Ask)>,
}

fn line(ask: impl Into<String>, scene: impl Fn() -> (Table, Ask) + 'static) -> Line {
    Line { ask: ask.into(), scene: Box::new(scene) }
}

/// One ask of a kind that is no machine's event, under its own name.
fn plain(ask: Ask) -> Line {
    let name = serde_json::to_value(&ask).unwrap()["ask"].as_str().unwrap().replace('_', " ");
    line(name, move || (task_in(way_to(Status::InProgress)), ask.clone()))
}

fn moves() -> Vec<Line> {
    let mut lines = Vec::new();
    for row in task::Task::TABLE.iter().filter(|row| row.event != task::Kind::LandingFailed) {
        let (from, to) = (row.from, Status::read(row.event.name().trim_start_matches("move ")).unwrap());
        let name = format!("move {from} → {to}");
        if lines.iter().any(|line: &Line| line.ask == name) {
            continue;
        }
        lines.push(line(name, move || {
            let table = task_in(way_to(from));
            // A claim takes it for the caller; everything else leaves the assignees as they are.
            let machine = &table.world.task(&task("t1")).unwrap().machine;
            let mut payload = Payload { assignee_ids: None, ..whole(machine) };
            if machine.assignee_ids.is_empty() {
                payload.assignee_ids = Some(vec!["own".into()]);
            }
            (table, Ask::MoveTask { id: task("t1"), to, payload: Box::new(payload) })
        }));
    }
    lines
}

/// Everything that can be asked of a worker, by the event that it sends.
pub(super) fn worker_asks(name: &WorkerName, task: Option<&TaskId>) -> Vec<(workers::Kind, Ask)> {
    let worker = || name.clone();
    let recover = Ask::Recover {
        worker: worker(),
        tree: workers::Tree::Clean,
        step_under_way: true,
        said_done: false,
        resumable: true,
    };
    let assign = task.cloned().map(|task| Ask::Assign { worker: worker(), task, clarification: None });
    let assign = assign.map(|ask| (workers::Kind::Assign, ask));
    let asks = [
        (workers::Kind::Kill, Ask::Kill { worker: worker() }),
        (workers::Kind::Retry, Ask::Retry { worker: worker() }),
        (workers::Kind::Cleanup, Ask::Cleanup { worker: worker(), force: true }),
        (workers::Kind::Clean, Ask::Clean { worker: worker() }),
        (workers::Kind::Recover, recover),
    ];
    asks.into_iter().chain(assign).collect()
}

/// The Worlds of all lines of the page.
pub(super) fn worlds() -> Vec<crate::World> {
    lines().iter().map(|line| (line.scene)().0.world).collect()
}

fn of_workers() -> Vec<Line> {
    let at_work = || check(Table::new(config()), "ticket t1\n fleet 1\n tree\n turn");
    let stuck = || {
        let fails = "fails\n backoff\n".repeat(4);
        check(Table::new(config()), &format!("ticket t1\n fleet 1\n tree\n turn\n {fails} fails"))
    };
    let a = || worker("A");
    vec![
        line("spawn", move || (Table::new(config()), Ask::Spawn { name: Some(worker("Z")), agent: None })),
        line("assign", move || {
            let table = check(Table::new(config()), "ticket t1\n spawn A");
            (table, Ask::Assign { worker: a(), task: task("t1"), clarification: None })
        }),
        line("start a run", move || {
            let table = check(Table::new(config()), "ticket t1");
            (table, Ask::StartRun { agent: AgentName::new("coder").unwrap(), task: task("t1") })
        }),
        line("kill", move || (at_work(), Ask::Kill { worker: a() })),
        line("retry", move || (stuck(), Ask::Retry { worker: a() })),
        line("cleanup", move || (at_work(), Ask::Cleanup { worker: a(), force: true })),
        line("clean", move || (at_work(), Ask::Clean { worker: a() })),
        line("recover", move || {
            let tree = workers::Tree::Clean;
            let ask =
                Ask::Recover { worker: a(), tree, step_under_way: true, said_done: false, resumable: true };
            (at_work(), ask)
        }),
    ]
}

/// A run that `own` reports from outside, with these events taken.
fn outside(events: &[run::Event]) -> Table {
    let mut table = task_in(way_to(Status::InProgress));
    let own = agent("own", Role::Specialist);
    let open = Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None };
    table.tell(own.clone(), open).unwrap();
    for event in events {
        let run = RunId::new("t1.1").unwrap();
        table.tell(own.clone(), Ask::RunEvent { run, event: event.clone() }).unwrap();
    }
    table
}

fn run_step(turn: u32) -> run::Event {
    run::Event::Step { turn, tool_calls: Vec::new(), output: None, usage: None, marks: Vec::new() }
}

/// What is said of a run beside its steps: start, pause, resume, error, complete and abort.
fn steering() -> [run::Event; 6] {
    let error = run::AppError { code: "E".into(), message: "no".to_owned(), status: 500, details: None };
    [
        run::Event::Start { task_id: "t1".into(), prompt: "go".to_owned(), options: None },
        run::Event::Pause { reason: run::PauseReason::UserInput, context: None },
        run::Event::Resume { feedback: None, input: None, max_turns: None },
        run::Event::Error { error, recoverable: true },
        run::Event::Complete { result: "built".to_owned(), diff: None, turn_count: 1 },
        run::Event::Abort { reason: "enough".to_owned() },
    ]
}

/// One event of each kind that a run takes.
pub(super) fn run_events() -> Vec<run::Event> {
    steering().into_iter().chain([run_step(1)]).collect()
}

fn of_runs() -> Vec<Line> {
    let [start, pause, resume, error, complete, abort] = steering();
    let step = run_step;
    let cases: Vec<(Vec<run::Event>, run::Event)> = vec![
        (vec![step(1), complete.clone()], start),
        (vec![step(1)], step(2)),
        (vec![step(1)], pause.clone()),
        (vec![step(1), pause], resume),
        (vec![step(1)], error),
        (vec![step(1)], complete),
        (vec![step(1)], abort),
    ];
    let mut lines = vec![line("open a run", || {
        let open = Ask::OpenRun { task: task("t1"), prompt: "do it".to_owned(), options: None };
        (task_in(way_to(Status::InProgress)), open)
    })];
    for (before, event) in cases {
        lines.push(line(run::Run::kind(&event).name(), move || {
            (outside(&before), Ask::RunEvent { run: RunId::new("t1.1").unwrap(), event: event.clone() })
        }));
    }
    lines
}

/// A question of a person.
fn asked() -> (Table, machines::names::RequestId) {
    let mut table = task_in(way_to(Status::InProgress));
    let (kind, text) = (RequestKind::Question, "which?".to_owned());
    let asked = Ask::MakeRequest { kind, task: Some(task("t1")), run: None, text };
    let id = table.ann(asked).unwrap().id.unwrap();
    (table, machines::names::RequestId::new(id).unwrap())
}

/// What an agent says of its own run.
fn of_work() -> Vec<Line> {
    let run = || RunId::new("t1.1").unwrap();
    let of = |name: &'static str, ask: fn(RunId) -> Ask| line(name, move || (outside(&[]), ask(run())));
    vec![
        of("submit plan", |run| Ask::SubmitPlan { run, plan: ["a", "b", "c"].map(str::to_owned).to_vec() }),
        of("claim done", |run| Ask::ClaimDone { run, summary: None }),
        of("ask approval", |run| Ask::AskApproval {
            run,
            tool: "Bash".into(),
            argument: "deploy".to_owned(),
            input: serde_json::Map::new(),
        }),
        of("make request", |run| Ask::MakeRequest {
            kind: RequestKind::Question,
            task: None,
            run: Some(run),
            text: "which?".to_owned(),
        }),
    ]
}

/// One event of each kind that an agent's place in a channel takes.
pub(super) fn turn_events() -> Vec<turn::Event> {
    let events = [
        json!({"type": "agent_starts"}),
        json!({"type": "agent_stops"}),
        json!({"type": "assigned_to_channel"}),
        json!({"type": "turn_granted", "at": 1, "timeoutSeconds": 9}),
        json!({"type": "TURN_COMPLETE", "alone": true}),
        json!({"type": "timeout"}),
        json!({"type": "wait_requested", "at": 1, "waitSeconds": 9}),
        json!({"type": "wait_resolved", "at": 2}),
        json!({"type": "wait_timeout"}),
        json!({"type": "human_override", "at": 2, "to": "ACTIVE"}),
        json!({"type": "interrupt", "at": 1, "waitSeconds": 9, "mode": "interrupt"}),
        json!({"type": "removed_from_channel"}),
        json!({"type": "disconnects"}),
    ];
    events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect()
}

/// One event of each kind that the architect takes.
pub(super) fn architect_events() -> Vec<architect::Event> {
    let event = |kind: &architect::Kind| match kind {
        architect::Kind::RequestArrived => json!({"type": "request", "id": "r-1", "request": "question"}),
        architect::Kind::SetupFailed => json!({"type": "setup_failed", "reason": "no"}),
        architect::Kind::Abandon => json!({"type": "abandon", "reason": "no"}),
        kind => json!({"type": kind.name()}),
    };
    architect::Kind::ALL.iter().map(|kind| serde_json::from_value(event(kind)).unwrap()).collect()
}

fn of_rooms() -> Vec<Line> {
    let room = || ChannelName::new("room").unwrap();
    let mut lines = Vec::new();
    // Each event where its row is: what led there was the system's doing.
    let in_ring = || vec![turn::Event::AgentStarts, turn::Event::Assigned];
    for event in turn_events() {
        let wait = turn::Event::WaitRequested {
            at: 1,
            wait_seconds: 9,
            because: turn::WaitReason::Requested,
            note: None,
        };
        let before = match turn::Turn::kind(&event) {
            turn::Kind::AgentStarts => Vec::new(),
            turn::Kind::AgentStops | turn::Kind::Assigned => vec![turn::Event::AgentStarts],
            turn::Kind::WaitResolved | turn::Kind::WaitTimeout | turn::Kind::HumanOverride => {
                in_ring().into_iter().chain([wait]).collect()
            }
            turn::Kind::TurnGranted
            | turn::Kind::TurnComplete
            | turn::Kind::Timeout
            | turn::Kind::WaitRequested
            | turn::Kind::Interrupt
            | turn::Kind::RemovedFromChannel
            | turn::Kind::Disconnects => in_ring(),
        };
        lines.push(line(turn::Turn::kind(&event).name(), move || {
            let mut table = Table::new(config());
            table
                .ann(Ask::MakeChannel {
                    name: room(),
                    config: turn::TurnConfig::default(),
                    about: Default::default(),
                })
                .unwrap();
            let own = AgentName::new("own").unwrap();
            table
                .ann(Ask::AddMember { channel: room(), agent: own.clone(), times: Default::default() })
                .unwrap();
            for event in &before {
                // Whoever may: the agent for its own wait, the system for the rest.
                let actor = match event {
                    turn::Event::WaitRequested { .. } => agent("own", Role::Intern),
                    _ => Actor::System,
                };
                let ask = Ask::TurnEvent { channel: room(), agent: own.clone(), event: event.clone() };
                table.tell(actor, ask).unwrap();
            }
            (table, Ask::TurnEvent { channel: room(), agent: own, event: event.clone() })
        }));
    }
    let words = [
        ("post in its turn", None),
        ("read the channel", None),
        ("decide a review in a room", None),
        ("turn complete", Some(TurnWord::Complete)),
        ("turn pass", Some(TurnWord::Pass)),
        ("turn wait", Some(TurnWord::Wait { note: None, seconds: None })),
        ("turn cancel", Some(TurnWord::Cancel)),
        ("turn skip", Some(TurnWord::Skip)),
        ("turn fresh", Some(TurnWord::Fresh)),
    ];
    for (name, word) in words {
        lines.push(line(name, move || {
            let mut table = task_in(way_to(Status::Review));
            let about = crate::rooms::About { task: Some(task("t1")), ..Default::default() };
            table.ann(Ask::MakeChannel { name: room(), config: turn::TurnConfig::default(), about }).unwrap();
            let own = AgentName::new("own").unwrap();
            let add = Ask::AddMember { channel: room(), agent: own.clone(), times: Default::default() };
            table.ann(add).unwrap();
            for event in [turn::Event::AgentStarts, turn::Event::Assigned] {
                let ask = Ask::TurnEvent { channel: room(), agent: own.clone(), event };
                table.tell(Actor::System, ask).unwrap();
            }
            let ask = match (&word, name) {
                (Some(word), _) => Ask::TakeTurn { channel: room(), agent: own, word: word.clone() },
                (None, "read the channel") => Ask::Hear { channel: room(), agent: own },
                (None, "post in its turn") => Ask::Post { channel: room(), text: "hello".to_owned() },
                (None, _) => {
                    Ask::DecideInRoom { channel: room(), approve: false, note: "not yet".to_owned() }
                }
            };
            (table, ask)
        }));
    }
    for event in architect_events() {
        let kind = architect::Architect::kind(&event);
        lines.push(line(format!("architect {}", kind.name()), move || {
            (Table::new(config()), Ask::ArchitectEvent { event: Wrapped::Inner(event.clone()) })
        }));
    }
    lines
}

fn lines() -> Vec<Line> {
    let id = || task("t1");
    let question = || ApprovalId::new("q1").unwrap();
    let decision = Decision {
        approve: true,
        note: String::new(),
        to: None,
        raise: None,
        complete: false,
        always: false,
    };
    let (channel, member) = (ChannelName::new("new").unwrap(), AgentName::new("own").unwrap());
    let ticket = SeenTicket {
        id: task("k1"),
        status: task::TicketStatus::Open,
        title: "K".to_owned(),
        body: String::new(),
        task_type: task::TaskType::Task,
        priority: 2,
        plan: None,
        depends_on: Vec::new(),
        created: None,
        assignee: None,
        by_hand: false,
    };
    let outcome = Outcome { effect: machines::names::EffectId::new("e1").unwrap(), what: Happened::TimerDue };
    let edit = Ask::EditTask {
        id: id(),
        title: Some("Other".to_owned()),
        body: None,
        priority: None,
        plan: None,
        reviewer: None,
        agent: None,
    };
    let mut lines = vec![
        plain(Ask::AddTask(NewTask { title: "More".to_owned(), ..NewTask::default() })),
        plain(edit),
        plain(Ask::AcceptTask { id: id() }),
        plain(Ask::Comment { id: id(), text: "hello".to_owned() }),
        plain(Ask::KeepDraft { id: id(), draft: None, comment: line_comment() }),
        plain(Ask::DropDraft { id: id(), draft: "d1".into() }),
        plain(Ask::SendRound { id: id(), tip: None, note: "not yet".to_owned() }),
        plain(Ask::AddDependency { id: id(), on: task("t2") }),
        plain(Ask::RemoveDependency { id: id(), on: task("t2") }),
        plain(Ask::Decide { id: question(), decision }),
        plain(Ask::RetryTask { id: id() }),
        plain(Ask::RestartTask { id: id(), note: None }),
        plain(Ask::UndoTask { id: id(), by: task("t2"), tip: "tip".into() }),
        plain(Ask::SeeTicket(ticket)),
        plain(Ask::MakeRequest {
            kind: RequestKind::Question,
            task: Some(id()),
            run: None,
            text: "which?".to_owned(),
        }),
        line("answer request", || {
            let (table, id) = asked();
            (table, Ask::AnswerRequest { id, text: "this".to_owned() })
        }),
        line("receive answer to what `human` asked", || {
            let (table, id) = asked();
            (table, Ask::ReceiveAnswer { id })
        }),
        plain(Ask::MissTicket { id: task("k1") }),
        line("approve what is in REVIEW", || {
            let mut table = task_in(way_to(Status::Review));
            let mut config = (*table.world.config).clone();
            config.policy.lead_may_complete = true;
            table.tell(Actor::System, Ask::Configure { config: Box::new(config) }).unwrap();
            (table, Ask::Approve { id: task("t1"), tip: None, note: "fine".to_owned() })
        }),
        line("request changes of what is in REVIEW", || {
            let table = task_in(way_to(Status::Review));
            (table, Ask::RequestChanges { id: task("t1"), tip: None, feedback: "not yet".to_owned() })
        }),
    ];
    lines.extend(moves());
    lines.extend(of_workers());
    lines.extend(of_runs());
    for what in Presence::ALL {
        let own = AgentName::new("own").unwrap();
        lines.push(line(what.name(), move || {
            (Table::new(config()), Ask::Presence { agent: own.clone(), what: *what })
        }));
    }
    lines.extend([
        plain(Ask::StartFleet { workers: 1 }),
        plain(Ask::StopFleet),
        plain(Ask::SwitchAgent { agent: AgentName::new("coder").unwrap(), enabled: false, reason: None }),
        plain(Ask::Configure { config: Box::new(config()) }),
        plain(Ask::SeeDisk { full: None }),
        plain(Ask::TestMain),
        plain(Ask::SeeMain { tip: "tip".into() }),
        plain(Ask::Outcome(outcome)),
        plain(Ask::MakeChannel {
            name: channel.clone(),
            config: turn::TurnConfig::default(),
            about: Default::default(),
        }),
        plain(Ask::AddMember { channel: channel.clone(), agent: member.clone(), times: Default::default() }),
        plain(Ask::RemoveMember { channel: channel.clone(), agent: member }),
        plain(Ask::CloseChannel { name: channel }),
        plain(Ask::WasAway { since: 1, hosted: false }),
        plain(Ask::AbandonRequest {
            id: machines::names::RequestId::new("r1").unwrap(),
            reason: String::new(),
        }),
        plain(Ask::RecoverArchitect),
        plain(Ask::SubmitSpec(NewSpec {
            id: machines::names::SpecId::new("s1").unwrap(),
            title: "S".to_owned(),
            path: None,
            format: "markdown".into(),
            text: "words".to_owned(),
            stories: Some(vec![crate::specs::Story {
                key: "a".into(),
                title: "A".to_owned(),
                ..Default::default()
            }]),
        })),
        line("architect answers", || {
            let own = AgentName::new("own").unwrap();
            let mut table = Table::with(|config| {
                config.agents.insert(own.clone(), Default::default());
                let agent = own.clone();
                config.architect =
                    Some(crate::config::Architect { agent, escalation_seconds: 60, raises_budgets: false });
            });
            table.now += 1;
            let reply = machines::names::EffectId::new("e1").unwrap();
            (table, Ask::ArchitectAnswers { reply, answer: ArchitectAnswer::Approve { note: String::new() } })
        }),
    ]);
    lines.extend(of_work());
    lines.extend(of_rooms());
    lines
}

/// Whether the caller is let in. Whether it can be done now is another question.
fn may(line: &Line, caller: Caller) -> bool {
    let (mut table, mut ask) = (line.scene)();
    // The run of a proposal is written down from the credential.
    if let (Ask::AddTask(new), Some(TokenFor::Run(run))) = (&mut ask, caller.token_for()) {
        new.run = Some(run);
    }
    let told = table.tell_with(caller.actor(), caller.token_for(), ask);
    told.err().is_none_or(|refusal| refusal.status != 403)
}

fn page() -> String {
    let mut text = String::from(
        "<!-- Written by `ADJ_WRITE_DOCS=1 cargo test -p adjutant-kernel permissions`. -->\n# Permissions\n\n\
         Who may ask for what. Each cell was tried out on the running kernel: `yes` means that the caller is let in, not that \
         it can be done at the moment. The role comes from the caller's token, never from the request, and without a token \
         nobody is answered. \"Its own\" is the agent to whom the task is assigned, or whose run or place in a channel it is; \
         a reviewer is an agent that is named for the task. An agent that Adjutant starts has a token for one run or for its \
         turn in one channel: the last two columns are the same agent, a lead, with a token for another task or channel. The rows of the [machines](machines/README.md) say who may use \
         each of them.\n",
    );
    let mut about = "";
    for line in lines() {
        let page = (line.scene)().1.page();
        if page != about {
            about = page;
            let names: Vec<_> = CALLERS.iter().map(|(name, _)| *name).collect();
            let _ = writeln!(text, "\n## {about}\n\n| | {} |", names.join(" | "));
            let _ = writeln!(text, "|{}", " --- |".repeat(names.len() + 1));
        }
        let cells = CALLERS.iter().map(|(_, caller)| if may(&line, *caller) { "yes" } else { "–" });
        let _ = writeln!(text, "| {} | {} |", line.ask, cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

#[test]
fn the_page_of_permissions_is_what_the_kernel_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/permissions.md");
    // What the operations make of it is written by the tests of the API, behind a mark of their own.
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let operations = there.find("\n<!-- Written by").map(|at| &there[at..]).unwrap_or_default();
    let page = page() + operations;
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/permissions.md is not what the kernel does; ADJ_WRITE_DOCS=1 cargo test -p adjutant-kernel permissions \
         writes it:\n{}",
        diff(&there, &page)
    );
}

#[test]
fn every_ask_has_a_line_on_the_page() {
    let asked: std::collections::BTreeSet<&str> =
        lines().iter().map(|line| (line.scene)().1.name()).collect();
    let missing: Vec<_> = Ask::NAMES.iter().filter(|name| !asked.contains(**name)).collect();
    assert!(missing.is_empty(), "no line for {missing:?}");
}

/// One word of one row: let anyone kill a working worker, and the page is another.
#[test]
fn letting_anyone_use_a_row_changes_the_page() {
    let kill = |row: &machines::Row<workers::Worker>| {
        row.from == workers::State::Working && row.event == workers::Kind::Kill
    };
    let number = workers::Worker::TABLE.iter().position(kill).unwrap();
    let line = of_workers().into_iter().find(|line| line.ask == "kill").unwrap();
    assert!(!may(&line, Caller::Agent(Role::Intern)));
    let lets = || may(&line, Caller::Agent(Role::Intern));
    assert!(
        sabotage::with(workers::Worker::NAME, number, Change::LetAll, lets),
        "the row decides, and nothing else"
    );
}
