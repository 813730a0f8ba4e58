//! A table to play on: a World, a clock that is moved by hand, and words for what happens.

use crate::command::*;
use crate::config::{Config, Review};
use crate::effect::{Effect, Timer};
use crate::invariants;
use crate::words::{Raise, RequestKind, StepEnding};
use crate::{Actor, Commit, Millis, World, handle};
use machines::names::{EffectId, TaskId, WorkerName};
use machines::run::{ToolCall, ToolStatus};
use machines::task::{Payload, Status, TaskType};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;

#[derive(Clone, Debug)]
pub struct Table {
    pub world: World,
    pub now: Millis,
    pub commands: u128,
}

pub fn task(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

pub fn worker(name: &str) -> WorkerName {
    WorkerName::new(name).unwrap()
}

pub fn ann() -> Actor {
    Actor::Human(SmolStr::new_static("ann"))
}

/// One service, one red pattern, and every policy at its default.
pub fn config() -> Config {
    let text = r#"{
        "fleet": {"review": "human"},
        "agents": {
            "coder": {"service": "model", "allowed_tools": ["Edit", "Bash"], "max_turns": 200},
            "intern": {"service": "model", "role": "intern"},
            "outsider": {"max_turns": 2, "allowed_tools": ["Edit"]}
        },
        "budget": {"step": 1000},
        "services": ["model"],
        "policy": {"tools": [
            {"pattern": "Bash(git push*)", "colour": "red"},
            {"pattern": "Bash(curl*)", "colour": "yellow"}
        ]}
    }"#;
    serde_json::from_str(text).unwrap()
}

pub fn call(tool: &str, number: u64) -> ToolCall {
    ToolCall {
        id: SmolStr::new(format!("c{number}")),
        tool: SmolStr::new(tool),
        input: [("n".to_owned(), serde_json::Value::from(number))].into_iter().collect(),
        output: None,
        duration: None,
        status: ToolStatus::Pending,
    }
}

/// A merge that conflicts, with the word on whether the branch had solved the conflict before.
pub fn conflict(solved: bool) -> Happened {
    let (files, main) = (vec!["a.rs".to_owned()], SmolStr::new_static("m0"));
    Happened::MergeConflict { files, main, dropped: Vec::new(), solved }
}

impl Table {
    pub fn new(config: Config) -> Self {
        let mut table = Self { world: World::default(), now: 1_700_000_000_000, commands: 0 };
        table.tell(Actor::System, Ask::Configure { config: Box::new(config) }).unwrap();
        table
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        Self::new(config)
    }

    /// A command, decided and adopted. After each, every invariant holds and the log folds to the same World.
    pub fn tell(&mut self, actor: Actor, ask: Ask) -> Result<Reply, Refusal> {
        self.tell_keyed(actor, ask, None)
    }

    pub fn tell_keyed(&mut self, actor: Actor, ask: Ask, key: Option<&str>) -> Result<Reply, Refusal> {
        self.commit(actor, ask, key)?.answer
    }

    /// With a token that is for one thing.
    pub fn tell_with(
        &mut self,
        actor: Actor,
        token_for: Option<TokenFor>,
        ask: Ask,
    ) -> Result<Reply, Refusal> {
        self.commit_with(actor, token_for, ask, None)?.answer
    }

    /// The same, with everything that was decided.
    pub fn commit(&mut self, actor: Actor, ask: Ask, key: Option<&str>) -> Result<Commit, Refusal> {
        self.commit_with(actor, None, ask, key)
    }

    fn commit_with(
        &mut self,
        actor: Actor,
        token_for: Option<TokenFor>,
        ask: Ask,
        key: Option<&str>,
    ) -> Result<Commit, Refusal> {
        self.commands += 1;
        let key = key.map(SmolStr::new);
        let command = Command { id: self.commands, at: self.now, actor, token_for, key, ask };
        let commit = handle(&self.world, &command)?;
        let mut folded = self.world.clone();
        for event in &commit.events {
            let stored = crate::Event::decode(event.kind(), &event.encode()).unwrap();
            assert_eq!(&stored, event, "an event comes back from the log as it went in");
            folded.apply(&stored).unwrap();
        }
        assert_eq!(folded, commit.world, "the events say everything that the commit changed");
        let mut broken = invariants::check(&commit.world);
        broken.extend(invariants::check_commit(&self.world, &commit.world));
        assert!(broken.is_empty(), "after {:?}: {}", command.ask, broken[0]);
        self.world = commit.world.clone();
        super::cells::trace(&commit);
        Ok(commit)
    }

    pub fn ann(&mut self, ask: Ask) -> Result<Reply, Refusal> {
        self.tell(ann(), ask)
    }

    pub fn ticket(
        &mut self,
        id: &str,
        status: &'static str,
        depends_on: &[&str],
        body: &str,
    ) -> Result<Reply, Refusal> {
        self.tell(
            Actor::System,
            Ask::SeeTicket(SeenTicket {
                id: task(id),
                status: machines::Wire::read(status).expect("a status of a ticket"),
                title: format!("Task {id}"),
                body: body.to_owned(),
                task_type: TaskType::Task,
                priority: 2,
                plan: None,
                depends_on: depends_on.iter().map(|id| task(id)).collect(),
                by_hand: true,
                assignee: None,
                created: None,
            }),
        )
    }

    pub fn move_task(
        &mut self,
        actor: Actor,
        id: &str,
        to: Status,
        payload: Payload,
    ) -> Result<Reply, Refusal> {
        self.tell(actor, Ask::MoveTask { id: task(id), to, payload: Box::new(payload) })
    }

    /// The oldest effect of a kind that concerns the task.
    pub fn effect(&self, kind: &str, id: &str) -> Option<EffectId> {
        let number = |effect: &&EffectId| effect.as_str()[1..].parse::<u64>().unwrap();
        let of_task = |(_, effect): &(&EffectId, &std::sync::Arc<Effect>)| {
            effect.kind() == kind && effect.task().is_none_or(|task| task.as_str() == id)
        };
        self.world.effects.iter().filter(of_task).map(|(id, _)| id).min_by_key(number).cloned()
    }

    pub fn outcome(&mut self, kind: &str, id: &str, what: Happened) -> Result<Reply, Refusal> {
        let effect = self.effect(kind, id).unwrap_or_else(|| panic!("no {kind} is asked for {id}"));
        self.tell(Actor::System, Ask::Outcome(Outcome { effect, what }))
    }

    fn gate_red(&mut self, id: &str, by: RedBy) -> Result<Reply, Refusal> {
        self.outcome("run_gate", id, Happened::GateRed { output: "1 failed".to_owned(), tip: None, by })
    }

    fn merge_red(&mut self, id: &str, by: RedBy, main: &str) -> Result<Reply, Refusal> {
        let (output, main) = ("1 failed".to_owned(), SmolStr::new(main));
        self.outcome("test_merge", id, Happened::MergeRed { output, by, main, solved: false })
    }

    /// Moves the clock to the timer and lets it ring.
    pub fn ring(&mut self, wanted: impl Fn(&Timer) -> bool) -> Result<Reply, Refusal> {
        let found = self.world.timers.iter().find(|(timer, _)| wanted(timer)).map(|(_, id)| id.clone());
        let effect = found.expect("such a timer is set");
        self.now = self.now.max(self.world.effects[&effect].due().unwrap());
        self.tell(Actor::System, Ask::Outcome(Outcome { effect, what: Happened::TimerDue }))
    }

    /// Where everything stands, as a script writes it.
    /// The run of a task, by its name.
    fn run_of(&self, id: &str) -> machines::names::RunId {
        self.world.run_of(&task(id)).map(|run| run.id.clone()).unwrap_or_else(|| panic!("{id} has no run"))
    }

    pub fn stands(&self, what: &str) -> String {
        let mut words = what.split_whitespace();
        match (words.next(), words.next()) {
            (Some("task"), Some(id)) => {
                let task = self.world.task(&task(id)).unwrap_or_else(|| panic!("no task {id}"));
                let reason = task.machine.block_reason.filter(|_| task.status() == Status::Blocked);
                let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
                format!("task {id} {}{reason}", task.status().name())
            }
            (Some("worker"), Some(name)) => match self.world.worker(&worker(name)) {
                Some(worker) => format!("worker {name} {}", worker.machine.status.name()),
                None => format!("worker {name} gone"),
            },
            (Some("run"), Some(id)) => {
                let run = self.world.run(&machines::names::RunId::new(id).unwrap());
                format!("run {id} {}", run.unwrap_or_else(|| panic!("no run {id}")).machine.name())
            }
            (Some("asked"), Some(kind)) => {
                let asked = self.world.effects.values().filter(|effect| effect.kind() == kind).count();
                format!("asked {kind} {asked}")
            }
            (Some("queued"), Some(id)) => {
                format!("queued {id} {}", self.world.task(&task(id)).unwrap().landing.queued.is_some())
            }
            (Some("lease"), Some(id)) => {
                format!(
                    "lease {id} {}",
                    self.world.leaseholder(&task(id)).map_or("none", |worker| worker.name.as_str())
                )
            }
            other => panic!("a script does not say {other:?}"),
        }
    }
}

/// The agent whose workers the fleet has.
fn coder() -> Actor {
    let name = config().fleet.agent;
    Actor::Agent { role: config().agent(&name).role, name }
}

/// Plays a script: one line is what happens, and after `->` where things stand then.
pub fn check(table: Table, script: &str) -> Table {
    let mut table = table;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (act, states) = line.split_once("->").unwrap_or((line, ""));
        let answer = play(&mut table, act.trim());
        for state in states.split(',').map(str::trim).filter(|state| !state.is_empty()) {
            if let Some(code) = state.strip_prefix("refused ") {
                let refusal = answer.as_ref().expect_err(line);
                assert_eq!(refusal.code, code, "{line}: {refusal}");
            } else {
                answer.as_ref().unwrap_or_else(|refusal| panic!("{line}: refused: {refusal}"));
                assert_eq!(table.stands(state), state, "{line}");
            }
        }
        if states.trim().is_empty() {
            answer.unwrap_or_else(|refusal| panic!("{line}: refused: {refusal}"));
        }
    }
    table
}

fn play(table: &mut Table, act: &str) -> Result<Reply, Refusal> {
    let words: Vec<&str> = act.split_whitespace().collect();
    let id = words.get(1).copied().unwrap_or("t1");
    let usage = Usage { cost: Some(100), input_tokens: 10, output_tokens: 1 };
    let turn =
        |table: &Table| table.world.run_of(&task(id)).map_or(0, |run| run.machine.inner().current_turn) + 1;
    let model = || machines::names::ServiceName::new("model").unwrap();
    let yes = |approve| Decision {
        approve,
        note: String::new(),
        to: None,
        raise: None,
        complete: false,
        always: false,
    };
    match words[0] {
        "ticket" => table.ticket(id, "open", words.get(2..).unwrap_or_default(), "do it"),
        "ticket-taken" => table.ticket(id, "in_progress", &[], "do it"),
        "ticket-gone" => table.tell(Actor::System, Ask::MissTicket { id: task(id) }),
        "written" => table.outcome("write_ticket", id, Happened::TicketWritten),
        "left" => table.outcome("write_ticket", id, Happened::TicketLeft),
        "ticket-closed" => table.ticket(id, "closed", &[], "do it"),
        "ticket-changed" => table.ticket(id, "open", &[], "do it well"),
        "fleet" => table.tell(Actor::System, Ask::StartFleet { workers: id.parse().unwrap() }),
        "stop" => table.ann(Ask::StopFleet),
        "tree" => table.outcome("prepare_tree", id, Happened::TreeReady { tip: SmolStr::new_static("tip0") }),
        "no-tree" => table.outcome("prepare_tree", id, Happened::TreeFailed { error: "no space".to_owned() }),
        "unmet" => table.outcome("prepare_tree", id, Happened::TreeUnmet { error: "no .venv".to_owned() }),
        "turn" | "dear-turn" => {
            let usage = if words[0] == "turn" { usage } else { Usage { cost: Some(900), ..usage } };
            let (number, calls) = (turn(table), table.commands as u64);
            let calls = vec![call("Edit", calls)];
            table.outcome("start_step", id, Happened::Turn { turn: number, calls, output: None, usage })
        }
        "same-call" => {
            let number = turn(table);
            let calls = vec![ToolCall { id: SmolStr::new(format!("s{number}")), ..call("Bash", 0) }];
            table.outcome("start_step", id, Happened::Turn { turn: number, calls, output: None, usage })
        }
        "call-fails" => {
            let (number, name) = (turn(table), SmolStr::new(format!("f{}", table.commands)));
            let calls = vec![ToolCall { id: name.clone(), ..call("Bash", table.commands as u64) }];
            table.outcome("start_step", id, Happened::Turn { turn: number, calls, output: None, usage })?;
            let what = Happened::ToolResult {
                call: name,
                tool: SmolStr::new_static("Bash"),
                ok: false,
                output: "no".to_owned(),
                millis: 1,
            };
            table.outcome("start_step", id, what)
        }
        "asks" => {
            let argument = words.get(2..).unwrap_or_default().join(" ");
            let what = Happened::CallAsked {
                call: SmolStr::new_static("q"),
                tool: SmolStr::new_static("Bash"),
                argument,
                input: Default::default(),
                turn: turn(table),
            };
            table.outcome("start_step", id, what)
        }
        "questions" => {
            let (run, text) = (table.run_of(id), words.get(2..).unwrap_or_default().join(" "));
            let (kind, run) = (RequestKind::Question, Some(run));
            table.tell(coder(), Ask::MakeRequest { kind, task: None, run, text })
        }
        "answers" => {
            let asked = table.world.requests.values().find(|asked| asked.task == Some(task(id))).unwrap();
            let (id, text) = (asked.id.clone(), words.get(2..).unwrap_or_default().join(" "));
            table.ann(Ask::AnswerRequest { id, text })
        }
        "receives" => {
            let asked = table.world.requests.values().find(|asked| asked.task == Some(task(id))).unwrap();
            let id = asked.id.clone();
            table.tell(coder(), Ask::ReceiveAnswer { id })
        }
        "claims" => {
            let run = table.run_of(id);
            table.tell(coder(), Ask::ClaimDone { run, summary: Some("did it".to_owned()) })
        }
        "plans" => {
            let (run, plan) = (table.run_of(id), words.get(2..).unwrap_or_default());
            let plan = plan.iter().map(|step| (*step).to_owned()).collect();
            table.tell(coder(), Ask::SubmitPlan { run, plan })
        }
        "wishes" => {
            let (run, argument) = (table.run_of(id), words.get(2..).unwrap_or_default().join(" "));
            let (tool, input) = (SmolStr::new_static("Bash"), Default::default());
            table.tell(coder(), Ask::AskApproval { run, tool, argument, input })
        }
        "cut-off" => {
            let what = Happened::StepFinished {
                ending: StepEnding::CutOff,
                output: String::new(),
                tip: Some(SmolStr::new_static("tip1")),
                tree: None,
                usage,
            };
            table.outcome("start_step", id, what)
        }
        "step" | "done" => {
            let done = words[0] == "done";
            let what = Happened::StepFinished {
                ending: if done { StepEnding::Done } else { StepEnding::NotDone },
                output: String::new(),
                tip: Some(SmolStr::new_static("tip1")),
                tree: None,
                usage,
            };
            table.outcome("start_step", id, what)
        }
        "fails" | "times-out" | "session-lost" | "lost" | "takes-too-much" => {
            let why = match words[0] {
                "times-out" => StepFailure::TimedOut,
                "session-lost" => StepFailure::Session,
                "lost" => StepFailure::Lost,
                "takes-too-much" => StepFailure::Limit,
                _ => StepFailure::Failed,
            };
            table.outcome("start_step", id, Happened::StepFailed { error: "broke".to_owned(), why, usage })
        }
        "outage" => {
            let error = Some(SmolStr::new_static("529 overloaded"));
            let what = Happened::Outage { service: model(), resets_at: None, error, refused: false, usage };
            table.outcome("start_step", id, what)
        }
        "bad-key" => {
            let error = Some(SmolStr::new_static("401 invalid x-api-key"));
            let what = Happened::Outage { service: model(), resets_at: None, error, refused: true, usage };
            table.outcome("start_step", id, what)
        }
        "limited" => {
            let resets_at = Some(table.now + 3_600_000);
            let what = Happened::Outage { service: model(), resets_at, error: None, refused: false, usage };
            table.outcome("start_step", id, what)
        }
        "ended" => table.outcome("end_step", id, Happened::StepEnded { tip: None, usage }),
        "backoff" => table.ring(|timer| matches!(timer, Timer::Backoff { .. })),
        "poll" => table.ring(|timer| *timer == Timer::HealthPoll),
        "healthy" => table.outcome("check_health", id, Happened::Health { healthy: true }),
        "nothing-to-ask" => table.outcome("check_health", id, Happened::HealthUnknown),
        "away" => table.outcome("check_health", id, Happened::Health { healthy: false }),
        "expired" => table.ring(|timer| matches!(timer, Timer::Suspension { .. })),
        "reset" => table.ring(|timer| matches!(timer, Timer::Reset { .. })),
        "unanswered" => table.ring(|timer| matches!(timer, Timer::Question { .. })),
        "silence" => table.ring(|timer| matches!(timer, Timer::OutsideLease { .. })),
        "stands-still" => table.ring(|timer| *timer == Timer::Standstill),
        "checkout" => table.ring(|timer| matches!(timer, Timer::Checkout { .. })),
        "green" => table.outcome(
            "run_gate",
            id,
            Happened::GateGreen { tip: SmolStr::new_static("tip1"), facts: Vec::new() },
        ),
        "still-conflicts" => {
            let (tip, main) = (SmolStr::new_static("tip1"), SmolStr::new_static("m0"));
            let files = vec!["a.rs".to_owned()];
            table.outcome("run_gate", id, Happened::GateConflict { tip, files, main })
        }
        // The same words, and the same files in the tree.
        "repeats" => {
            let what = Happened::StepFinished {
                ending: StepEnding::NotDone,
                output: "I am at it.".to_owned(),
                tip: Some(SmolStr::new_static("tip1")),
                tree: Some(SmolStr::new(words.get(2).unwrap_or(&"tree1"))),
                usage,
            };
            table.outcome("start_step", id, what)
        }
        "red" => table.gate_red(id, RedBy::Tests),
        "in-doubt" => table.gate_red(id, RedBy::InDoubt),
        "not-started" => table.gate_red(id, RedBy::Environment),
        "main-green" | "main-known" => {
            let (of, main) = (SmolStr::new_static("s1"), SmolStr::new_static("m0"));
            let ran = words[0] == "main-green";
            table.outcome("test_main", id, Happened::MainGreen { of, main, command: None, ran })
        }
        "main-red" => {
            let (of, main) = (SmolStr::new_static("s1"), SmolStr::new_static("m0"));
            let (command, output) = ("check".to_owned(), "broken".to_owned());
            table.outcome("test_main", id, Happened::MainRed { of, main, command, output })
        }
        "minute" => {
            table.now += 60_000;
            table.tell(Actor::System, Ask::SeeMain { tip: SmolStr::new_static("m0") })
        }
        "main-at" => table.tell(Actor::System, Ask::SeeMain { tip: SmolStr::new(id) }),
        "test-main" => table.ann(Ask::TestMain),
        "settings" => {
            let mut config = (*table.world.config).clone();
            config.tests = (id != "none").then(|| SmolStr::new(id));
            table.tell(Actor::System, Ask::Configure { config: Box::new(config) })
        }
        "empty" => table.outcome("run_gate", id, Happened::GateEmpty { tip: SmolStr::new_static("tip0") }),
        "merge-green" => {
            let (merge, old) = (SmolStr::new_static("m1"), SmolStr::new_static("m0"));
            // Words after the task are tickets that come with it.
            let tickets = words.get(2..).unwrap_or_default().iter().map(SmolStr::new).collect();
            table.outcome("test_merge", id, Happened::MergeGreen { merge, old, tickets })
        }
        "conflict" => table.outcome("test_merge", id, conflict(words.get(2) == Some(&"solved"))),
        // The word after the task is the main that it was merged with.
        "merge-red" => table.merge_red(id, RedBy::Tests, words.get(2).unwrap_or(&"m0")),
        "merge-not-started" => table.merge_red(id, RedBy::Environment, "m0"),
        "main-moved" => table.outcome("move_main", id, Happened::MainMoved),
        "main-elsewhere" => table.outcome("move_main", id, Happened::MainMovedByOther),
        "in-the-way" => {
            let what = Happened::CheckoutInTheWay {
                why: "your checkout has local changes in a.rs".to_owned(),
                command: "git stash".to_owned(),
            };
            table.outcome("move_main", id, what)
        }
        "offered" => {
            let (url, branch) =
                (Some(SmolStr::new_static("https://host/pull/7")), SmolStr::new_static("adjutant/t1"));
            table.outcome("test_merge", id, Happened::PullRequestOpen { url, branch })
        }
        "remote-away" => {
            table.outcome("test_merge", id, Happened::RemoteInTheWay { why: "no route to host".to_owned() })
        }
        "hook-ran" => table.outcome("run_landed_hook", id, Happened::HookRan),
        "removed" => table.outcome("remove_tree", id, Happened::TreeRemoved { reference: None }),
        "saved" => table.outcome("save_work", id, Happened::WorkSaved { reference: "refs/x".to_owned() }),
        "approve" => table.ann(Ask::Approve { id: task(id), tip: None, note: String::new() }),
        "changes" => {
            let payload = Payload { feedback: Some("mend this".to_owned()), ..Payload::default() };
            table.move_task(ann(), id, Status::InProgress, payload)
        }
        "cancel" => table.move_task(ann(), id, Status::Canceled, Payload::default()),
        "unblock" => {
            let payload = Payload { clarification: Some("like this".to_owned()), ..Payload::default() };
            table.move_task(ann(), id, Status::InProgress, payload)
        }
        "yes" | "no" | "complete" => {
            let approval = table.world.task(&task(id)).unwrap().approval.clone().expect("a question is open");
            let budget = table.world.approvals[&approval].cause == machines::task::ApprovalCause::Budget;
            let raise = words.get(2).map(|raise| match budget {
                true => Raise::Money(raise.parse().unwrap()),
                false => Raise::Turns(raise.parse().unwrap()),
            });
            let decision = Decision { complete: words[0] == "complete", raise, ..yes(words[0] != "no") };
            table.ann(Ask::Decide { id: approval, decision })
        }
        "assign" => table.ann(Ask::Assign {
            worker: worker(words[2]),
            task: task(id),
            clarification: words.get(3).map(|word| (*word).to_owned()),
        }),
        "kill" => table.ann(Ask::Kill { worker: worker(id) }),
        "retry" => table.ann(Ask::Retry { worker: worker(id) }),
        "retry-task" => table.ann(Ask::RetryTask { id: task(id) }),
        "restart" => {
            table.ann(Ask::RestartTask { id: task(id), note: words.get(2).map(|note| note.to_string()) })
        }
        "spawn" => {
            let agent = words.get(2).map(|agent| machines::names::AgentName::new(agent).unwrap());
            table.ann(Ask::Spawn { name: Some(worker(id)), agent })
        }
        "calls" => {
            let number = turn(table);
            let input = words[2].parse().unwrap();
            let calls = vec![ToolCall { id: SmolStr::new(format!("n{number}")), ..call("Bash", input) }];
            table.outcome("start_step", id, Happened::Turn { turn: number, calls, output: None, usage })
        }
        // By the agent that works on the task.
        "proposes" => {
            let run = table.world.task(&task(id)).and_then(|task| task.work.run.clone());
            let coder = Actor::Agent {
                name: machines::names::AgentName::new("coder").unwrap(),
                role: crate::config::Role::Specialist,
            };
            let new =
                NewTask { id: Some(task(words[2])), title: "More".to_owned(), run, ..NewTask::default() };
            table.tell(coder, Ask::AddTask(new))
        }
        "try" => table.ann(Ask::AddTask(NewTask { try_of: Some(task(id)), ..NewTask::default() })),
        "accept" => table.ann(Ask::AcceptTask { id: task(id) }),
        "cleanup" => table.ann(Ask::Cleanup { worker: worker(id), force: false }),
        "cleanup-force" => table.ann(Ask::Cleanup { worker: worker(id), force: true }),
        "clean" => table.ann(Ask::Clean { worker: worker(id) }),
        "recover" => {
            let tree = worker::Tree::read(words[2]).unwrap();
            let said = |word| words.contains(&word);
            table.tell(
                Actor::System,
                Ask::Recover {
                    worker: worker(id),
                    tree,
                    step_under_way: said("under-way"),
                    said_done: said("said-done"),
                    resumable: said("resumable"),
                },
            )
        }
        other => panic!("a script does not know `{other}`"),
    }
}

/// A table under policy `auto`.
pub fn auto() -> Table {
    Table::with(|config| config.fleet.review = Review::Auto)
}
