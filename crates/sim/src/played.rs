//! The world as it is played, as far as a life needs it: branches, main, processes under their keepers, a service.
//!
//! Like the real executors, it looks before it acts and knows its own work by the effect's id: an effect that is
//! carried out twice is done once.

use super::Fault;
use super::random::Random;
use git::SALVAGE;
use kernel::command::{Happened, RedBy, StepFailure, Usage};
use kernel::effect::{StepEnd, StepTree};
use kernel::words::{GateFact, StepEnding};
use kernel::{Effect, Millis, World};
use machines::names::{EffectId, ServiceName, TaskId};
use machines::run::{ToolCall, ToolStatus};
use machines::task::TicketStatus;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Debug, Default)]
pub struct PlayedWorld {
    pub works: BTreeMap<TaskId, Work>,
    pub processes: BTreeMap<EffectId, Process>,
    /// What was done, and how it came out.
    pub done: BTreeMap<EffectId, Happened>,
    pub main: u64,
    /// Merges that are in main, with the task that each brought.
    pub merges: BTreeMap<SmolStr, TaskId>,
    pub closed: BTreeSet<SmolStr>,
    pub down: Option<Down>,
    /// There is something to ask the service with.
    pub can_be_asked: bool,
    pub calls: u64,
    /// Replies of the architect that were begun, oldest first.
    pub replies: Vec<EffectId>,
    /// Main fails its own tests, until somebody mends it.
    pub main_red: bool,
    /// How often it was mended.
    pub mends: u64,
}

/// What a gate prints that fails only because main does, before the number of times that main was mended.
pub const MAIN_FAILS: &str = "1 test fails on main too, mended ";

#[derive(Clone, Debug)]
pub struct Down {
    pub resets_at: Option<Millis>,
    pub refused: bool,
}

/// What a task really needs, and what will go wrong on the way.
#[derive(Clone, Debug)]
pub struct Work {
    pub tip: u32,
    pub steps_needed: u32,
    pub steps_done: u32,
    pub green: bool,
    pub changes: bool,
    /// A merge of it has conflicted.
    pub conflicts: bool,
    pub mishaps: Vec<Fault>,
}

/// A step under its keeper. It outlives whoever started it.
#[derive(Clone, Debug)]
pub struct Process {
    pub outputs: VecDeque<Happened>,
    /// Written by the agent and not yet taken by the log.
    pub written: VecDeque<Happened>,
    pub waits_for: Option<SmolStr>,
    pub over: bool,
}

pub const SERVICE: &str = "model";
/// The settings that tests are run under.
pub const TESTS: &str = "s1";

pub fn service() -> ServiceName {
    ServiceName::new(SERVICE).expect("a constant")
}

impl Work {
    /// One step, and nothing goes wrong.
    pub fn plain() -> Work {
        Work {
            tip: 1,
            steps_needed: 1,
            steps_done: 0,
            green: true,
            changes: true,
            conflicts: false,
            mishaps: Vec::new(),
        }
    }

    /// The first mishap that belongs to this phase; it happens once.
    fn next_mishap(&mut self, faults: &[Fault]) -> Option<Fault> {
        let at = self.mishaps.iter().position(|mishap| faults.contains(mishap))?;
        Some(self.mishaps.remove(at))
    }

    pub fn tip(&self) -> SmolStr {
        SmolStr::new(format!("tip{}", self.tip))
    }
}

/// A commit of main, by its number.
fn main(number: u64) -> SmolStr {
    SmolStr::new(number.to_string())
}

fn usage(random: &mut Random) -> Usage {
    let cost = (!random.once_in(20)).then(|| random.below(60_000) + 1_000);
    Usage { cost, input_tokens: random.below(5_000) + 100, output_tokens: random.below(1_000) + 10 }
}

const STEP_MISHAPS: &[Fault] = &[
    Fault::AgentCrash,
    Fault::AgentCrashesAlways,
    Fault::AgentTimeout,
    Fault::SessionLost,
    Fault::KeeperLost,
    Fault::Loop,
    Fault::ToolFailures,
    Fault::LimitPassed,
    Fault::ToolDenied,
    Fault::RedAction,
    Fault::DoneLie,
    Fault::NeverDone,
    Fault::RepeatsItself,
];

const MERGE_MISHAPS: &[Fault] = &[
    Fault::PullRequest,
    Fault::RemoteAway,
    Fault::Conflict,
    Fault::NeverLands,
    Fault::RedMerge,
    Fault::TestsInDoubt,
    Fault::TestsNotStarted,
];

impl PlayedWorld {
    /// Starts a step: what the agent will print, and how it will end.
    pub fn start_step(
        &mut self,
        world: &World,
        effect: &EffectId,
        task: &TaskId,
        turns_left: u32,
        random: &mut Random,
    ) -> Vec<Fault> {
        if self.processes.contains_key(effect) {
            return Vec::new();
        }
        let turn = world.run_of(task).map_or(0, |run| run.machine.inner().current_turn);
        let mut script = Script { outputs: VecDeque::new(), turn, turns_left, calls: self.calls };
        let work = self.works.entry(task.clone()).or_insert_with(Work::plain);
        let mishap = work.next_mishap(STEP_MISHAPS);
        match mishap {
            Some(Fault::AgentCrash | Fault::AgentCrashesAlways) => {
                script.turn(random, "Edit", 1, true);
                script.fail("exit status 1", StepFailure::Failed, random);
            }
            Some(Fault::AgentTimeout) => {
                script.turn(random, "Bash", 1, true);
                script.fail("no output for 30 minutes", StepFailure::TimedOut, random);
            }
            Some(Fault::SessionLost) => script.fail("session in use", StepFailure::Session, random),
            Some(Fault::KeeperLost) => {
                script.turn(random, "Edit", 1, true);
                script.fail("the keeper is gone", StepFailure::Lost, random);
            }
            Some(Fault::LimitPassed) => {
                script.turn(random, "Bash", 1, true);
                script.fail("it used more than limits.memory", StepFailure::Limit, random);
            }
            Some(Fault::Loop) => {
                for _ in 0..3 {
                    script.same_call(random);
                }
                script.finish(false, work.tip(), random);
            }
            Some(Fault::ToolFailures) => {
                script.turn(random, "Bash", 2, false);
                script.turn(random, "Bash", 2, false);
                script.finish(false, work.tip(), random);
            }
            Some(Fault::ToolDenied) => {
                script.ask("Forbidden", "x", random);
                script.turn(random, "Forbidden", 1, true);
                script.finish(false, work.tip(), random);
            }
            Some(Fault::RedAction) => {
                script.ask("Bash", "git push origin", random);
                script.ask("Bash", "ls", random);
                script.turn(random, "Edit", 1, true);
                work.steps_done += 1;
                script.finish(work.steps_done >= work.steps_needed, work.tip(), random);
            }
            Some(Fault::RepeatsItself) => {
                script.turn(random, "Edit", 1, true);
                script.finish(false, work.tip(), random);
                script.leaves(work.tip());
            }
            Some(Fault::DoneLie) => {
                work.green = false;
                script.finish(true, work.tip(), random);
            }
            _ => {
                for _ in 0..=random.below(2) {
                    script.turn(random, "Edit", 1, true);
                }
                work.green = true;
                if mishap.is_none() {
                    work.steps_done += 1;
                }
                if work.changes {
                    work.tip += 1;
                }
                script.finish(work.steps_done >= work.steps_needed, work.tip(), random);
            }
        }
        self.calls = script.calls;
        let process =
            Process { outputs: script.outputs, written: VecDeque::new(), waits_for: None, over: false };
        self.processes.insert(effect.clone(), process);
        mishap.into_iter().collect()
    }

    /// What a hosted agent said, where it is said already.
    pub fn said(&self, effect: &EffectId) -> Option<Happened> {
        self.done.get(effect).cloned()
    }

    pub fn remember(&mut self, effect: &EffectId, what: &Happened) {
        self.done.insert(effect.clone(), what.clone());
    }

    /// How an effect ends that finds no room on the disk; nothing for one that needs none.
    pub fn without_room(&self, effect: &Effect) -> Option<Happened> {
        let error = "no space left on device".to_owned();
        match effect {
            Effect::PrepareTree { of: StepTree::Task { .. } } => Some(Happened::TreeFailed { error }),
            effect if is_ours_alone(effect) => Some(Happened::Failed { error }),
            _ => None,
        }
    }

    /// Carries an effect out that is done at once, or says again how it came out.
    pub fn carry_out(
        &mut self,
        effect_id: &EffectId,
        effect: &Effect,
        faults: &BTreeSet<Fault>,
        random: &mut Random,
    ) -> (Happened, Vec<Fault>) {
        if let Some(known) = self.done.get(effect_id) {
            return (known.clone(), Vec::new());
        }
        let mut hit = Vec::new();
        let mut mishap = |works: &mut BTreeMap<TaskId, Work>, task: &TaskId, of: &[Fault]| {
            let found = works.get_mut(task).and_then(|work| work.next_mishap(of));
            hit.extend(found);
            found
        };
        if is_ours_alone(effect)
            && let Some(task) = effect.task()
            && mishap(&mut self.works, task, &[Fault::EffectFails]).is_some()
        {
            return (Happened::Failed { error: "try again".to_owned() }, hit);
        }
        let happened = match effect {
            Effect::PrepareTree { of: StepTree::Task { task, .. } } => {
                // What keeps tests from being started keeps the trees of some tasks from being made already.
                let already = task.as_str().ends_with(['3', '6']).then_some(Fault::TestsNotStarted);
                let of: Vec<Fault> = [Some(Fault::TreeFails), already].into_iter().flatten().collect();
                match mishap(&mut self.works, task, &of) {
                    Some(Fault::TestsNotStarted) => {
                        Happened::TreeUnmet { error: "no `.venv` here".to_owned() }
                    }
                    Some(_) => Happened::TreeFailed { error: "no space for the tree".to_owned() },
                    None => {
                        Happened::TreeReady { tip: self.works.get(task).map(Work::tip).unwrap_or_default() }
                    }
                }
            }
            Effect::EndStep { of: StepEnd::Seat { .. }, .. } => {
                Happened::StepEnded { tip: None, usage: Usage::default() }
            }
            Effect::EndStep { step, .. } => {
                let over =
                    self.processes.get_mut(step).map(|process| std::mem::replace(&mut process.over, true));
                let usage = if over == Some(false) { usage(random) } else { Usage::default() };
                Happened::StepEnded { tip: None, usage }
            }
            Effect::AnswerCall { step, call, .. } => {
                if let Some(process) = self.processes.get_mut(step)
                    && process.waits_for.as_ref() == Some(call)
                {
                    process.waits_for = None;
                }
                Happened::CallAnswered
            }
            Effect::TellAgent { .. } => Happened::Told { heard: random.once_in(2) },
            Effect::PrepareTree { of: StepTree::Seat { .. } } if random.once_in(20) => {
                Happened::TreeFailed { error: "no space for the workspace".to_owned() }
            }
            Effect::PrepareTree { of: StepTree::Seat { .. } } => {
                Happened::TreeReady { tip: SmolStr::new_static("main") }
            }
            Effect::RunGate { task, .. } => {
                let of = [Fault::RedTests, Fault::TestsStayRed, Fault::TestsInDoubt, Fault::TestsNotStarted];
                let red = mishap(&mut self.works, task, &of);
                let conflicts = self.works.get(task).is_some_and(|work| work.conflicts);
                if conflicts && mishap(&mut self.works, task, &[Fault::ConflictIgnored]).is_some() {
                    let (files, main) = (vec!["src/lib.rs".to_owned()], SmolStr::new(self.main.to_string()));
                    let tip = self.works.get(task).map(Work::tip).unwrap_or_default();
                    let happened = Happened::GateConflict { tip, files, main };
                    self.done.insert(effect_id.clone(), happened.clone());
                    return (happened, hit);
                }
                let by = match red {
                    Some(Fault::TestsInDoubt) => RedBy::InDoubt,
                    Some(Fault::TestsNotStarted) => RedBy::Environment,
                    _ => RedBy::Tests,
                };
                let touches = faults.contains(&Fault::ReviewByPerson) && random.once_in(4);
                let facts = touches.then_some(GateFact::TouchesConfig).into_iter().collect();
                let mends = self.mends;
                match self.works.get_mut(task) {
                    Some(work) if self.main_red => {
                        let output = format!("{MAIN_FAILS}{mends}");
                        Happened::GateRed { output, tip: Some(work.tip()), by: RedBy::Tests }
                    }
                    Some(work) if !work.changes => {
                        // Sometimes the agent finds something to change after all.
                        work.changes = random.once_in(2);
                        Happened::GateEmpty { tip: work.tip() }
                    }
                    Some(work) if red.is_some() || !work.green => {
                        Happened::GateRed { output: "1 test failed".to_owned(), tip: Some(work.tip()), by }
                    }
                    Some(work) => Happened::GateGreen { tip: work.tip(), facts },
                    None => Happened::GateRed { output: "no such tree".to_owned(), tip: None, by },
                }
            }
            Effect::SaveWork { .. } => Happened::WorkSaved { reference: format!("{SALVAGE}{effect_id}") },
            Effect::RemoveTree { .. } => {
                Happened::TreeRemoved { reference: Some(format!("{SALVAGE}{effect_id}")) }
            }
            Effect::TestMerge { task, tip } => match mishap(&mut self.works, task, MERGE_MISHAPS) {
                Some(Fault::RedMerge) => Happened::MergeRed {
                    output: "1 test failed as merged".to_owned(),
                    by: RedBy::Tests,
                    main: main(self.main),
                    solved: false,
                },
                Some(Fault::TestsInDoubt) => Happened::MergeRed {
                    output: "no space left".to_owned(),
                    by: RedBy::InDoubt,
                    main: main(self.main),
                    solved: false,
                },
                Some(Fault::TestsNotStarted) => Happened::MergeRed {
                    output: "not found".to_owned(),
                    by: RedBy::Environment,
                    main: main(self.main),
                    solved: false,
                },
                Some(Fault::PullRequest) => {
                    let url = Some(SmolStr::new(format!("https://host/pull/{task}")));
                    Happened::PullRequestOpen { url, branch: SmolStr::new(format!("adjutant/{task}")) }
                }
                Some(Fault::RemoteAway) => {
                    Happened::RemoteInTheWay { why: "could not read from remote repository".to_owned() }
                }
                Some(fault) => {
                    let work = self.works.get_mut(task);
                    let before = work.is_some_and(|work| std::mem::replace(&mut work.conflicts, true));
                    Happened::MergeConflict {
                        files: vec!["src/lib.rs".to_owned()],
                        main: main(self.main),
                        dropped: Vec::new(),
                        solved: before && fault == Fault::Conflict,
                    }
                }
                None => {
                    let old = self.main;
                    if mishap(&mut self.works, task, &[Fault::MainMovedByOther]).is_some() {
                        self.main += 1;
                    }
                    Happened::MergeGreen {
                        merge: SmolStr::new(format!("merge-{task}-{tip}-{old}")),
                        old: SmolStr::new(old.to_string()),
                        tickets: Vec::new(),
                    }
                }
            },
            Effect::TestMain { again } => {
                let again = *again;
                let (of, main) = (SmolStr::new_static(TESTS), SmolStr::new(self.main.to_string()));
                if self.main_red {
                    let (command, output) = ("check".to_owned(), "1 test failed".to_owned());
                    Happened::MainRed { of, main, command, output }
                } else {
                    Happened::MainGreen {
                        of,
                        main,
                        command: Some("check".to_owned()),
                        ran: again || self.main.is_multiple_of(2),
                    }
                }
            }
            Effect::MoveMain { task, merge, old, .. } => {
                if self.merges.contains_key(merge) {
                    Happened::MainMoved
                } else if self.main.to_string() != *old {
                    Happened::MainMovedByOther
                } else if mishap(&mut self.works, task, &[Fault::CheckoutInTheWay]).is_some() {
                    Happened::CheckoutInTheWay {
                        why: "your checkout has local changes in notes.txt".to_owned(),
                        command: "git stash".to_owned(),
                    }
                } else {
                    self.main += 1;
                    self.merges.insert(merge.clone(), task.clone());
                    Happened::MainMoved
                }
            }
            Effect::WriteTicket { ticket, status, .. } => {
                if *status == TicketStatus::Closed {
                    self.closed.insert(ticket.clone());
                }
                Happened::TicketWritten
            }
            Effect::DeleteBranch { .. } => Happened::BranchDeleted,
            Effect::RunLandedHook { .. } => Happened::HookRan,
            Effect::CheckHealth { .. } if !self.can_be_asked => Happened::HealthUnknown,
            Effect::CheckHealth { .. } => Happened::Health { healthy: self.down.is_none() },
            Effect::StartStep { .. } | Effect::Timer { .. } => {
                Happened::Failed { error: "not done at once".to_owned() }
            }
        };
        self.done.insert(effect_id.clone(), happened.clone());
        (happened, hit)
    }
}

/// Whether only we need it, so that a failure is no more than a reason to try again.
fn is_ours_alone(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::SaveWork { .. }
            | Effect::RemoveTree { .. }
            | Effect::WriteTicket { .. }
            | Effect::DeleteBranch { .. }
            | Effect::RunLandedHook { .. }
            | Effect::EndStep { .. }
            | Effect::MoveMain { .. }
    )
}

/// What an agent prints in one step.
struct Script {
    outputs: VecDeque<Happened>,
    turn: u32,
    turns_left: u32,
    calls: u64,
}

impl Script {
    fn call(&mut self, tool: &str, input: u64) -> ToolCall {
        self.calls += 1;
        ToolCall {
            id: SmolStr::new(format!("c{}", self.calls)),
            tool: SmolStr::new(tool),
            input: [("n".to_owned(), serde_json::Value::from(input))].into_iter().collect(),
            output: None,
            duration: None,
            status: ToolStatus::Pending,
        }
    }

    fn turn(&mut self, random: &mut Random, tool: &str, calls: u32, ok: bool) {
        if self.turns_left == 0 {
            return;
        }
        self.turns_left -= 1;
        self.turn += 1;
        let calls: Vec<_> = (0..calls)
            .map(|_| {
                let input = self.calls;
                self.call(tool, input)
            })
            .collect();
        self.outputs.push_back(Happened::Turn {
            turn: self.turn,
            calls: calls.clone(),
            output: Some("working".to_owned()),
            usage: usage(random),
        });
        for call in calls {
            let output = if ok { "ok" } else { "failed" }.to_owned();
            self.outputs.push_back(Happened::ToolResult {
                call: call.id,
                tool: call.tool,
                ok,
                output,
                millis: 5,
            });
        }
    }

    fn same_call(&mut self, random: &mut Random) {
        if self.turns_left == 0 {
            return;
        }
        self.turns_left -= 1;
        self.turn += 1;
        let call = self.call("Bash", 0);
        self.outputs.push_back(Happened::Turn {
            turn: self.turn,
            calls: vec![call],
            output: None,
            usage: usage(random),
        });
    }

    /// A question that overtakes its turn's report.
    fn ask(&mut self, tool: &str, argument: &str, random: &mut Random) {
        if self.turns_left == 0 {
            return;
        }
        self.turns_left -= 1;
        self.turn += 1;
        let call = self.call(tool, self.calls);
        self.outputs.push_back(Happened::CallAsked {
            call: call.id.clone(),
            tool: call.tool.clone(),
            argument: argument.to_owned(),
            input: call.input.clone(),
            turn: self.turn,
        });
        self.outputs.push_back(Happened::Turn {
            turn: self.turn,
            calls: vec![call],
            output: None,
            usage: usage(random),
        });
    }

    fn fail(&mut self, error: &str, why: StepFailure, random: &mut Random) {
        self.outputs.push_back(Happened::StepFailed { error: error.to_owned(), why, usage: usage(random) });
    }

    fn finish(&mut self, done: bool, tip: SmolStr, random: &mut Random) {
        let usage = if random.once_in(3) { usage(random) } else { Usage::default() };
        let output = if done { "DONE" } else { "more to do" }.to_owned();
        let ending = if done { StepEnding::Done } else { StepEnding::NotDone };
        self.outputs.push_back(Happened::StepFinished { ending, output, tip: Some(tip), tree: None, usage });
    }

    /// What stands in the tree when the step has ended.
    fn leaves(&mut self, files: SmolStr) {
        if let Some(Happened::StepFinished { tree, .. }) = self.outputs.back_mut() {
            *tree = Some(files);
        }
    }
}
