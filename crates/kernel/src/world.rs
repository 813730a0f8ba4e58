//! The World: everything that Adjutant knows, as the fold of its log.
//!
//! Its maps are persistent: a clone is cheap and shares what did not change. So a decision works on a clone, a
//! failed write throws that clone away, and a reader keeps one for as long as it likes.

use crate::Millis;
use crate::command::{Answer, RedBy};
use crate::config::{Config, Micros};
use crate::effect::Effect;
use crate::line_comment::LineComment;
use crate::probe::Probe;
use crate::rooms::{Channel, Seat, Seated};
use crate::specs::Spec;
use crate::standstill::Standstill;
use crate::words::{CommentKind, NoteKind, PersonNeeded, RequestKind, Verdict};
use imbl::{OrdMap, OrdSet, Vector};
use machines::names::{
    AgentName, ApprovalId, ChannelName, EffectId, RequestId, RunId, ServiceName, SpecId, TaskId, WorkerName,
};
use machines::suspended::Suspendable;
use machines::task::{ApprovalCause, Status, TicketStatus};
use machines::{Wire, architect, run, task, worker};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Events applied so far.
    pub seq: u64,
    pub config: Arc<Config>,
    /// `adj run` is at work: idle workers are given tasks.
    pub fleet_running: bool,
    /// How many workers the fleet was last asked to have; without a word, as many as the settings say.
    #[serde(default)]
    pub fleet_workers: Option<u32>,
    pub tasks: OrdMap<TaskId, Arc<Task>>,
    pub workers: OrdMap<WorkerName, Arc<Worker>>,
    pub runs: OrdMap<RunId, Arc<Run>>,
    pub approvals: OrdMap<ApprovalId, Arc<Approval>>,
    /// What was asked to be answered in words.
    #[serde(default)]
    pub requests: OrdMap<RequestId, Arc<Request>>,
    /// The outbox: what was asked of the world and is not done. Timers too.
    pub effects: OrdMap<EffectId, Arc<Effect>>,
    /// Tries that failed, for effects that are tried again.
    pub failures: OrdMap<EffectId, u32>,
    /// Tickets as they were last seen, also those that no task came from.
    pub tickets: OrdMap<SmolStr, Arc<Ticket>>,
    /// Tickets whose files an agent's landing brings to main and that nobody has seen yet, and whose landing it is.
    #[serde(default)]
    pub brought: OrdMap<SmolStr, TaskId>,
    /// Approved and waiting to land, by priority and arrival.
    pub queue: OrdMap<QueueKey, TaskId>,
    /// The one landing under way.
    pub landing: Option<Arc<Landing>>,
    /// What is known of main's own tests.
    #[serde(default)]
    pub main: MainTests,
    pub health: OrdMap<ServiceName, Health>,
    /// Who was suspended in an outage that is not over, and for how long: a try in between begins no new time.
    #[serde(default)]
    pub outages: OrdMap<SmolStr, Outage>,
    pub spend: Spend,
    /// There is no room on the disk for another tree; what was found. While it is so, nothing is claimed.
    pub disk_full: Option<SmolStr>,
    #[serde(default)]
    pub disk_full_since: Option<Millis>,
    /// What the fleet said last when it stood still.
    #[serde(default)]
    pub standstill: Option<Arc<Standstill>>,
    /// The open question about the day's budget. While it is open, nothing is claimed.
    pub day_approval: Option<ApprovalId>,
    pub channels: OrdMap<ChannelName, Arc<Channel>>,
    /// The agents that Adjutant hosts outside of tasks, by where they speak.
    #[serde(default)]
    pub seats: OrdMap<Seat, Arc<Seated>>,
    /// The agents that are connected from outside.
    #[serde(default)]
    pub agents: OrdMap<AgentName, Connected>,
    /// The agents that a person has disabled: they begin nothing and have no turn.
    #[serde(default)]
    pub disabled: OrdMap<AgentName, Disabled>,
    pub architect: Option<Arc<Suspendable<architect::Architect>>>,
    /// What waits for the architect, in order of arrival. The first is the one that it has in hand, or takes up next.
    #[serde(default)]
    pub architect_queue: Vector<RequestId>,
    #[serde(default)]
    pub specs: OrdMap<SpecId, Arc<Spec>>,
    /// Answers given under an idempotency key, by scope and key.
    pub kept: OrdMap<(SmolStr, SmolStr), Arc<IdempotentAnswer>>,
    /// The same, by age, so that the oldest can go.
    pub kept_order: OrdMap<u64, (SmolStr, SmolStr)>,
    /// Counts up: what was created later has a larger number.
    pub next: u64,
    /// The largest number that a task named `t-<number>` has.
    #[serde(default)]
    pub last_task: u64,

    // What follows is derived, kept so that a decision does not search.
    /// What a worker could be given, best first.
    pub claimable: OrdSet<ClaimKey>,
    /// Who waits for a task or ticket, by the one that is waited for.
    pub dependents: OrdMap<TaskId, OrdSet<TaskId>>,
    /// The further tries at a task, by the first.
    #[serde(default)]
    pub tries: OrdMap<TaskId, OrdSet<TaskId>>,
    /// The runs that are suspended.
    pub suspended: OrdSet<RunId>,
    /// The workers without a task.
    pub idle: OrdSet<WorkerName>,
    /// Every timer's effect, by what it is for.
    pub timers: OrdMap<crate::Timer, EffectId>,
    /// Tasks by status, for caps, and in the order in which they came, for lists that are read in pages.
    pub by_status: Columns,
    /// The same of each assignee.
    pub by_assignee: OrdMap<SmolStr, Columns>,
    /// The approvals that nobody has decided.
    pub undecided: OrdSet<ApprovalId>,
    /// The requests that nobody has answered.
    pub unanswered: OrdSet<RequestId>,
}

/// IN_PROGRESS without a lease first, then ASSIGNED, then INBOX; then priority, then age: by the day of its making, and
/// where that is the same, as it came to us.
pub type ClaimKey = (u8, u8, Millis, u64, TaskId);
/// Priority, then arrival.
pub type QueueKey = (u8, u64);
/// Tasks by status, each column in the order in which they came.
pub type Columns = OrdMap<Status, OrdMap<u64, TaskId>>;

/// A task and all that hangs on it. None of the five parts has a default: a snapshot of a World without them is
/// passed over, and never read as one in which nothing had happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: TaskId,
    pub machine: task::Task,
    pub title: String,
    pub body: String,
    /// 0 is the most urgent, 4 the least.
    pub priority: u8,
    /// When its ticket was made, or when it was added.
    pub created_at: Millis,
    /// Since when it has the status that it has.
    pub status_since: Option<Millis>,
    /// Counts up as tasks come to us.
    pub order: u64,
    /// Whose workers are to do it, as a person said.
    pub agent: Option<AgentName>,
    pub plan: Option<Vec<String>>,
    /// Who gave the plan.
    pub plan_source: Option<task::PlanSource>,
    pub depends_on: Vec<TaskId>,
    pub comments: Vector<Arc<Comment>>,
    pub spend: Spend,
    /// Added to the task's budget by approvals.
    pub raised: Micros,
    /// The question that NEEDS_APPROVAL waits for.
    pub approval: Option<ApprovalId>,
    pub origin: TaskOrigin,
    pub work: TaskWork,
    pub gate: TaskGate,
    pub review: TaskReview,
    pub landing: TaskLanding,
}

/// Where a task comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskOrigin {
    pub ticket: Option<SmolStr>,
    /// Whom its ticket names: an agent of the settings, or somebody else, which means nothing here.
    pub ticket_assignee: Option<SmolStr>,
    /// The closed task that this one takes up again.
    pub reopens: Option<TaskId>,
    /// The first of several tries, of which this is another.
    pub try_of: Option<TaskId>,
    /// The task whose landing this one takes back.
    pub undoes: Option<TaskId>,
    /// Which agent proposed it, where one did.
    pub proposed: Option<Proposed>,
}

/// Who works on a task, where, and what the next step has to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskWork {
    /// Who may work on it now. At most one.
    pub lease: Option<Lease>,
    /// How often a lease was given: the fencing number.
    pub lease_attempts: u32,
    /// Tree, branch and session. They belong to the task and outlive every worker.
    pub place: Option<Workspace>,
    pub run: Option<RunId>,
    pub runs: u32,
    pub lost_workers: u32,
    /// What the next step must be told.
    pub notes: Vector<SmolStr>,
    /// Calls that a person has allowed for the rest of the task.
    pub allowed: Vector<Arc<AskedCall>>,
    /// After an outage that lasted too long: not claimable until the service is back.
    pub waits_for: Option<ServiceName>,
    /// Effects of the past that must end before anybody works on it again.
    pub unfinished: OrdSet<EffectId>,
    /// Asked as soon as nothing is unfinished.
    pub afterwards: Vector<Arc<Effect>>,
}

/// What the gate found in the work, and what it sent back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskGate {
    /// A gate that runs without a worker, after a person completed the run.
    pub alone: Option<EffectId>,
    /// Whether the gate has found the diff empty already.
    pub empty_diffs: u32,
    /// Whether the gate found a change in the branch. Unknown until it has looked.
    pub has_code: Option<bool>,
    /// Why the policy may not approve it.
    pub needs_person: Option<PersonNeeded>,
    /// What the gate or the landing sent back; it makes the next prompt.
    pub sent_back: Option<SentBack>,
    /// The last lines of the tests that failed last, until they pass.
    pub test_output: Option<String>,
    /// A red gate that may not be the work's fault: main's tests are run before anybody is blamed.
    pub in_doubt: Option<InDoubt>,
}

/// Who handed the work in, and what was said of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskReview {
    /// Who moved it to REVIEW, where it was not the gate: what was handed in is a claim.
    pub handed_in_by: Option<SmolStr>,
    /// The tip that a reviewer asked to be changed.
    pub sent_back_tip: Option<SmolStr>,
    pub approved: Option<Approved>,
    /// Comments on lines that were not sent yet, by their ids.
    #[serde(default)]
    pub drafts: OrdMap<SmolStr, Arc<ReviewDraft>>,
    /// The largest number that a draft had.
    #[serde(default)]
    pub last_draft: u32,
    /// The rounds that were sent.
    #[serde(default)]
    pub rounds: Vector<Arc<ReviewRound>>,
}

/// A comment that its author has not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewDraft {
    pub at: Millis,
    pub by: SmolStr,
    pub comment: LineComment,
}

/// Comments that were sent together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewRound {
    pub number: u32,
    pub at: Millis,
    pub by: SmolStr,
    pub tip: Option<SmolStr>,
    pub note: String,
    pub comments: Vec<LineComment>,
    /// How many runs the task had had by then: the next one gets it.
    pub runs: u32,
}

/// How far a task's work is on its way into main. [`Landing`] is the one landing that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskLanding {
    pub queued: Option<QueueKey>,
    /// What its landing waits for.
    pub held_up: Option<HeldUp>,
    /// Since when it waits for that.
    pub held_up_since: Option<Millis>,
    /// What it waited for before it was tried again: whether that is out of the way, the try will tell.
    pub tried_again: Option<HeldUp>,
    /// The pull request that offers its work, once one was opened. It outlives every approval.
    pub pull_request: Option<PullRequest>,
    /// The last landing that failed.
    pub failed: Option<FailedLanding>,
    /// Its merge was red, which may not be the work's fault: it is tested once more after main's tests.
    pub doubted: bool,
    /// The commit that brought it into main.
    pub landed: Option<Landed>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposed {
    pub by: AgentName,
    /// The run that it was at, and that run's task, where they are known.
    pub run: Option<RunId>,
    pub on: Option<TaskId>,
    /// The task that a chain of proposals began with.
    pub root: Option<TaskId>,
    pub state: ProposalState,
}

machines::wire_enum! {
    pub enum ProposalState {
        Waiting = "waiting",
        /// By a person.
        Accepted = "accepted",
        ByPolicy = "by_policy",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comment {
    pub at: Millis,
    pub by: SmolStr,
    pub kind: SmolStr,
    pub text: String,
}

impl Comment {
    pub fn is(&self, kind: CommentKind) -> bool {
        self.kind == machines::Wire::name(kind)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub holder: Holder,
    pub attempt: u32,
}

/// Who holds a task: a worker of the fleet, or an agent that runs outside and reports its own life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    Worker(WorkerName),
    Outside(AgentName),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    pub tree: String,
    pub branch: String,
    pub session: SmolStr,
    /// A step has run in the session, so it can be resumed.
    pub session_used: bool,
    pub tip: Option<SmolStr>,
    /// The tree stands where it should.
    pub ready: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approved {
    /// The approval names the tip: another tip voids it.
    pub tip: Option<SmolStr>,
    pub by: SmolStr,
    pub at: Millis,
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Landed {
    pub tip: SmolStr,
    pub merge: SmolStr,
    pub old_main: SmolStr,
}

/// A landing that failed: which tip against which main, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedLanding {
    pub tip: SmolStr,
    /// The commit of main.
    pub main: SmolStr,
    /// The merge conflicts; otherwise its tests fail.
    pub conflict: bool,
    /// The files that conflict. None are named where the two histories have nothing in common.
    pub files: Vec<String>,
    /// The gate has let nothing through since, and nobody has approved it once more.
    pub stands: bool,
}

/// How many files of a conflict are named in a sentence.
const CONFLICTS_NAMED_MAX: usize = 5;

impl FailedLanding {
    /// Whether it was this very tip against this very main.
    pub fn is_of(&self, tip: &str, main: &str) -> bool {
        self.tip == tip && self.main == main
    }

    /// What it failed of, in a clause after the task's name. `main` is the name of the branch.
    pub fn words(&self, main: &str) -> String {
        conflict_words(&self.files, main)
    }
}

/// Which files conflict with the branch `main`, in a clause after the task's name.
pub fn conflict_words(files: &[String], main: &str) -> String {
    if files.is_empty() {
        return format!("has no commit in common with {main}");
    }
    let named = files[..files.len().min(CONFLICTS_NAMED_MAX)].join(", ");
    match files.len().saturating_sub(CONFLICTS_NAMED_MAX) {
        0 => format!("conflicts with {main} in {named}"),
        more => format!("conflicts with {main} in {named} and {more} more"),
    }
}

/// What an approved task waits for before it can land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeldUp {
    /// The user's checkout, or the user's git, is in the way; what to do about it.
    Checkout { why: SmolStr },
    /// Its pull request is open, and somebody must merge it.
    PullRequest { since: Millis },
    /// The remote does not answer, or the pull request cannot be opened.
    Remote { why: SmolStr },
}

/// A pull request that was opened for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequest {
    /// Where it is, if the command that opened it said so.
    pub url: Option<SmolStr>,
    /// The branch on the remote.
    pub branch: SmolStr,
}

impl PullRequest {
    /// By its address, or by its branch where no address is known.
    pub fn name(&self) -> &str {
        self.url.as_ref().unwrap_or(&self.branch)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentBack {
    Gate(String),
    Landing(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InDoubt {
    pub output: String,
    pub by: RedBy,
}

/// What is known of main's own tests. No agent starts, and none is blamed, while they are not known to pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MainTests {
    pub verdict: Option<Arc<MainVerdict>>,
    pub under_way: Option<EffectId>,
    /// They are to be run again, whatever is known.
    pub again: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MainVerdict {
    /// The settings that they were run under, as [`Config::tests`] names them.
    pub of: SmolStr,
    /// The commit of main. A landing moves it on: what landed was tested as merged.
    pub main: SmolStr,
    pub at: Millis,
    /// When they were last run on main itself; a landing is tested as merged and leaves it.
    #[serde(default)]
    pub ran_at: Option<Millis>,
    /// Absent where there are no tests.
    pub command: Option<String>,
    /// How they failed, with the output that tells most.
    pub red: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub name: WorkerName,
    pub agent: AgentName,
    /// A person made it: the fleet never retires it.
    #[serde(default)]
    pub by_person: bool,
    pub machine: worker::Worker,
    pub started_at: Millis,
    pub task_assigned_at: Option<Millis>,
    pub last_step_at: Option<Millis>,
    pub last_failed_at: Option<Millis>,
    pub last_error: Option<String>,
    pub spend: Spend,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub task: TaskId,
    pub agent: AgentName,
    pub holder: Holder,
    pub machine: Suspendable<run::Run>,
    /// The step, preparation or gate that is under way for it.
    pub step: Option<EffectId>,
    pub question: Option<Question>,
    pub spend: Spend,
    /// Set aside for the step under way, and the day that it was set aside on.
    pub reserved: Micros,
    pub reserved_day: i64,
    pub raised: Micros,
    /// The limit that the next RESUME brings, after a person raised it.
    pub next_max_turns: Option<u32>,
    /// The last turn whose cost was counted.
    pub turns_charged: u32,
    pub metered: Metered,
    /// The model that the step under way, or the last one, was started with.
    #[serde(default)]
    pub model: Option<SmolStr>,
    /// The step in hand is a second try after a timeout or a lost session.
    pub retried: bool,
    pub audit: Audit,
    /// The agent has said in the step under way, or in the last one, that the work is done.
    #[serde(default)]
    pub claimed: Option<Claimed>,
}

/// An agent's word that the work is done. It holds for the step that it was given in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    pub step: EffectId,
    /// What was done, in its words.
    pub summary: Option<String>,
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub call: SmolStr,
    pub approval: ApprovalId,
}

/// What the calls are named by that an agent asks about itself, by a tool of ours: its program waits for no answer.
pub const ASKED_BY_TOOL: &str = "adjutant:";

impl Question {
    pub fn is_by_tool(&self) -> bool {
        self.call.starts_with(ASKED_BY_TOOL)
    }
}

/// Something that somebody asks and that is answered in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub id: RequestId,
    pub kind: RequestKind,
    /// What it is about.
    pub task: Option<TaskId>,
    /// The run whose agent asks.
    pub run: Option<RunId>,
    pub by: SmolStr,
    pub asked_at: Millis,
    pub text: String,
    pub answer: Option<GivenAnswer>,
    /// The answer has reached whoever asked.
    pub told: bool,
    /// The spec that it is about.
    #[serde(default)]
    pub spec: Option<SpecId>,
    /// The tip of the work that is reviewed: what is said of it holds for no other.
    #[serde(default)]
    pub tip: Option<SmolStr>,
    /// Answers of the architect that were none.
    #[serde(default)]
    pub tries: u32,
    /// What was said of it meanwhile, by the rules, the architect or a person.
    #[serde(default)]
    pub notes: Vector<Note>,
    /// The architect leaves it to a person.
    #[serde(default)]
    pub for_person: bool,
}

/// Something that was said of a request. Its text is shown behind whose word it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub kind: NoteKind,
    pub text: SmolStr,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whose = match self.kind {
            NoteKind::Plain => "",
            NoteKind::Escalation => "The architect: ",
            NoteKind::GaveUp => "The architect gave up: ",
        };
        write!(f, "{whose}{}", self.text)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GivenAnswer {
    pub by: SmolStr,
    pub at: Millis,
    pub text: String,
    /// Nobody answered: it was given up, and why.
    #[serde(default)]
    pub abandoned: bool,
    /// The reply of the architect that gave it. Absent where a person or a rule did, and in logs of before.
    #[serde(default)]
    pub reply: Option<EffectId>,
}

/// Questions of one task, or of one person, that may wait for an answer at once.
pub const REQUESTS_OPEN_MAX: usize = 20;

/// What the audit says of a call whose tool is not allowed.
pub const TOOL_NOT_ALLOWED: &str = "AGENT_TOOL_NOT_ALLOWED";

/// What loop detection needs of the audit. The audit itself is in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    pub calls: u64,
    /// Calls whose result is not known yet. A result that comes twice counts once.
    pub open: OrdSet<SmolStr>,
    /// The tool and the digest of each of them, by which a later report is known to be of the same call.
    #[serde(default)]
    pub open_calls: OrdMap<SmolStr, OpenCall>,
    /// Calls that a person allowed before they were made, by their digest: each once.
    #[serde(default)]
    pub allowed_once: OrdSet<u64>,
    /// Calls of tools that are not allowed. A turn reports such a call and a question asks for it: it counts once.
    #[serde(default)]
    pub refused: OrdSet<SmolStr>,
    /// The last call's tool and input, and how often it came in a row.
    pub last_call: Option<u64>,
    pub same_calls: u32,
    /// The last call, in a few words.
    pub last_action: Option<SmolStr>,
    /// The last calls, the newest last: enough of them to see a few calls that come again and again.
    #[serde(default)]
    pub recent: Vector<u64>,
    /// The tool that failed last, and how often in a row.
    pub failing_tool: Option<SmolStr>,
    pub failures: u32,
    /// What the last step said and left in the tree, and how many steps in a row said and left the same.
    #[serde(default)]
    pub last_step: Option<u64>,
    #[serde(default)]
    pub same_steps: u32,
}

/// A call whose result is not known yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    pub tool: SmolStr,
    pub digest: u64,
}

/// A call by its tool and all that it is given.
pub fn call_digest(tool: &str, input: &serde_json::Map<String, serde_json::Value>) -> u64 {
    let input = serde_json::Value::Object(input.clone()).to_string();
    crate::hash::fnv(format!("{tool}\0{input}").as_bytes())
}

/// What a call is about, in the words that a policy's patterns are written in: the command, the path, the address.
pub fn call_argument(tool: &str, input: &serde_json::Map<String, serde_json::Value>) -> String {
    let names: &[&str] = match tool {
        "Bash" | "shell" | "execute" => &["command"],
        "NotebookEdit" => &["notebook_path"],
        "Read" | "Write" | "Edit" | "MultiEdit" | "Delete" => &["file_path"],
        "Glob" | "Grep" => &["pattern"],
        "WebFetch" => &["url"],
        "WebSearch" => &["query"],
        _ => &[],
    };
    match names.iter().find_map(|name| input.get(*name)?.as_str()) {
        Some(text) => text.to_owned(),
        None if input.is_empty() => String::new(),
        None => serde_json::Value::Object(input.clone()).to_string(),
    }
}

/// So many different calls in turn may be what repeats.
pub const LOOP_CALLS_MAX: usize = 4;

impl Audit {
    /// The calls that came `times` times over, one after the other, and nothing between them: how many they are.
    pub fn looping(&self, times: u32) -> Option<usize> {
        if self.same_calls >= times {
            return Some(1);
        }
        // Once over is no repetition, however low the limit is.
        let times = times.max(2) as usize;
        (2..=LOOP_CALLS_MAX).find(|period| {
            let length = period * times;
            let Some(from) = self.recent.len().checked_sub(length) else { return false };
            (from + period..self.recent.len()).all(|at| self.recent[at] == self.recent[at - period])
        })
    }

    /// A person leads the task on: what was counted until then is no longer held against it.
    pub fn forgive(&mut self) {
        self.last_call = None;
        self.same_calls = 0;
        self.recent = Vector::new();
        self.failing_tool = None;
        self.failures = 0;
        self.last_step = None;
        self.same_steps = 0;
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub task: Option<TaskId>,
    pub run: Option<RunId>,
    pub cause: ApprovalCause,
    pub asked_at: Millis,
    pub question: String,
    pub options: Vec<SmolStr>,
    /// Which budget was reached, where that is the cause.
    pub scope: Option<BudgetScope>,
    /// Whose budget it is about, where it is an agent's.
    #[serde(default)]
    pub agent: Option<AgentName>,
    /// The budget that was reached, as it stood.
    #[serde(default)]
    pub limit: Option<Micros>,
    pub decided: Option<Decided>,
    /// The call that waits, where one does.
    #[serde(default)]
    pub call: Option<AskedCall>,
}

/// A call as its agent asked for it, whole: what a person allows is exactly this, and what is left out is where
/// something would hide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedCall {
    pub tool: SmolStr,
    /// What the policy's patterns look at: the command, the path, the address.
    pub argument: String,
    /// All that the call brings, by name, where the agent's program tells it.
    #[serde(default)]
    pub input: serde_json::Map<String, serde_json::Value>,
}

/// A longer call, with all that it brings, is never shown to a person: it is refused.
pub const CALL_BYTES_MAX: usize = 64 * 1024;
/// Calls of one task that can be allowed for the rest of it; a person who allows more wants another policy.
pub const ALWAYS_MAX: usize = 100;
/// What an agent says of its own call, for people to read. No tool acts by it.
const DESCRIPTION: &str = "description";
/// As much of a call's argument as a view of one line shows.
const ONE_LINE_CHARS: usize = 120;

impl AskedCall {
    pub fn bytes(&self) -> usize {
        let input = serde_json::Value::Object(self.input.clone()).to_string();
        self.tool.len() + self.argument.len().max(input.len())
    }

    /// Whether another call does the same: all that it brings is the same but for what the agent says of it.
    pub fn is_same(&self, other: &AskedCall) -> bool {
        let runs = |call: &AskedCall| {
            let mut input = call.input.clone();
            input.remove(DESCRIPTION);
            input
        };
        self.tool == other.tool && self.argument == other.argument && runs(self) == runs(other)
    }

    /// The whole call, every line and character of it: the tool, then all that it is given, by name.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.tool.to_string()];
        let only = [("argument".to_owned(), serde_json::Value::from(self.argument.clone()))];
        let given: Vec<_> = match self.input.is_empty() {
            true => only.to_vec(),
            false => self.input.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        };
        for (name, value) in given {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("  {name}:"));
            lines.extend(text.split('\n').map(|line| format!("    {line}")));
        }
        lines
    }

    /// The call in one line, which says how much of it is not shown: `Bash: git push … +3 lines`.
    pub fn one_line(&self) -> String {
        let first = self.argument.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let shown: String = first.chars().take(ONE_LINE_CHARS).collect();
        let characters = first.chars().count() - shown.chars().count();
        // What an agent says of its call is for reading; everything else that it brings is part of what runs.
        let beside = self.input.iter().filter(|(name, value)| {
            name.as_str() != DESCRIPTION && !value.as_str().is_some_and(|text| self.says(text))
        });
        let beside = beside.map(|(_, value)| value.as_str().map_or(1, |text| text.lines().count()));
        let lines = self.argument.lines().count().saturating_sub(1) + beside.sum::<usize>();
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("+1 {one}")),
            _ => Some(format!("+{number} {many}")),
        };
        let more = [count(characters, "character", "characters"), count(lines, "line", "lines")];
        let more: Vec<String> = more.into_iter().flatten().collect();
        let more = if more.is_empty() { String::new() } else { format!(" … {}", more.join(", ")) };
        format!("{}: {shown}{more}", self.tool)
    }

    /// Whether a text is the argument, as it is or as a path that ends with it.
    fn says(&self, text: &str) -> bool {
        text == self.argument || text.strip_suffix(&self.argument).is_some_and(|before| before.ends_with('/'))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    pub by: SmolStr,
    pub at: Millis,
    pub decision: Verdict,
    pub note: String,
}

machines::wire_enum! {
    pub enum BudgetScope {
        Run = "run",
        Task = "task",
        Agent = "agent",
        Day = "day",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    pub id: SmolStr,
    pub status: TicketStatus,
    pub fingerprint: u64,
    /// How often it was opened: each opening is one task.
    pub openings: u32,
    pub task: Option<TaskId>,
    /// Its file is not there.
    #[serde(default)]
    pub gone: Option<Gone>,
}

/// A ticket's file is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// Its absence blocked the task.
    pub blocked: bool,
}

/// Waits between two tries double so often at most.
const DOUBLINGS_MAX: u32 = 4;

impl Health {
    /// The longest wait between two tries.
    pub fn longest_wait(poll_seconds: u32) -> Millis {
        Millis::from(poll_seconds) * 1000 * (1 << DOUBLINGS_MAX)
    }

    /// When it may be tried again, where nothing else says how it is: after one poll, then two, four, … A clock that was
    /// set back since the last try delays nothing.
    pub fn next_try(&self, now: Millis, poll_seconds: u32) -> Millis {
        self.last.min(now) + Millis::from(poll_seconds) * 1000 * (1 << self.tries.min(DOUBLINGS_MAX))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Landing {
    pub task: TaskId,
    pub tip: SmolStr,
    pub effect: EffectId,
    /// When this part of it began.
    #[serde(default)]
    pub since: Millis,
    /// Written down before main is moved: recovery asks git only whether this merge is in main.
    pub written: Option<Landed>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub healthy: bool,
    /// Since when it is so.
    pub since: Millis,
    /// What it answered last, where it is away.
    #[serde(default)]
    pub error: Option<SmolStr>,
    /// It does not accept the credentials: a person must see to them.
    #[serde(default)]
    pub refused: bool,
    /// How many tried it alone since then and did not come through, and the last moment that it was found away.
    #[serde(default)]
    pub tries: u32,
    #[serde(default)]
    pub last: Millis,
    /// A usage limit with a known end.
    pub resets_at: Option<Millis>,
    /// The one that tries first, alone.
    pub probe: Option<Probe>,
}

/// How long somebody was suspended while a service was away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    pub service: ServiceName,
    /// Since when it counts; absent while whoever it is tries the service.
    pub since: Option<Millis>,
    /// What was counted before that.
    pub spent: Millis,
}

/// Money and tokens. Day and agents are kept where they are totalled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spend {
    pub cost: Micros,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Set aside and not yet spent.
    pub reserved: Micros,
    /// Steps that ended without a price. What is set aside is no cost, so it is not in `cost`.
    /// No default: a snapshot of before, which counted it as one, is folded anew.
    pub unknown: OrdMap<Tariff, Unknown>,
    pub by_agent: OrdMap<AgentName, Total>,
    pub by_day: OrdMap<i64, Total>,
    /// No default here either: a snapshot of before does not know the models.
    pub by_tariff: OrdMap<Tariff, Total>,
}

/// Whose prices a step is compared with: those of its model, whichever agent has it, or those of its agent where the
/// settings name no model. As one text, `model opus` or `agent coder`, so that it can be a key in JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Tariff {
    Model(SmolStr),
    Agent(AgentName),
}

impl Tariff {
    pub fn of(agent: &AgentName, model: Option<&SmolStr>) -> Tariff {
        model.map_or_else(|| Tariff::Agent(agent.clone()), |model| Tariff::Model(model.clone()))
    }
}

impl From<Tariff> for String {
    fn from(tariff: Tariff) -> String {
        match tariff {
            Tariff::Model(model) => format!("model {model}"),
            Tariff::Agent(agent) => format!("agent {agent}"),
        }
    }
}

impl TryFrom<String> for Tariff {
    type Error = String;

    fn try_from(text: String) -> Result<Tariff, String> {
        let unknown = || format!("`{text}` is neither a model nor an agent");
        match text.split_once(' ') {
            Some(("model", model)) => Ok(Tariff::Model(model.into())),
            Some(("agent", agent)) => AgentName::new(agent).map(Tariff::Agent).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

/// The same over all tasks: of an agent, of a model, or of a day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    pub cost: Micros,
    pub reserved: Micros,
    pub raised: Micros,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub unknown: OrdMap<Tariff, Unknown>,
}

/// Steps of one model or agent whose price nobody named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    pub steps: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// What single turns of these steps did cost; it is in the cost already.
    pub known: Micros,
    /// What was set aside for them, and stays so where nothing can be estimated.
    pub held: Micros,
}

impl Unknown {
    pub fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }

    pub fn add(&mut self, more: &Unknown) {
        self.steps += more.steps;
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.known += more.known;
        self.held += more.held;
    }
}

/// What the turns of the step under way have reported so far: its end says whether that is the whole price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metered {
    pub cost: Micros,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// Who disabled an agent, since when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    pub since: Millis,
    pub by: SmolStr,
    pub reason: Option<String>,
}

/// An agent that is connected from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connected {
    pub since: Millis,
    /// Its last sign of life that was written down.
    pub seen: Millis,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdempotentAnswer {
    pub fingerprint: u64,
    pub order: u64,
    pub command: SmolStr,
    pub answer: Answer,
}

/// The day that a moment belongs to, for the day's budget: days since the epoch, UTC.
pub fn day_of(at: Millis) -> i64 {
    at.div_euclid(24 * 60 * 60 * 1000)
}

impl World {
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id).map(Arc::as_ref)
    }

    /// How many tasks have a status.
    pub fn count_of(&self, status: Status) -> usize {
        self.by_status.get(&status).map_or(0, OrdMap::len)
    }

    /// The tasks that have one of these statuses and came after number `after`, as they came. Each is looked for only
    /// when it is asked for: a page of a long list costs as much as the page.
    pub fn tasks_in<'w>(
        &'w self,
        statuses: &[Status],
        after: u64,
    ) -> impl Iterator<Item = &'w Task> + use<'w> {
        self.in_order(&self.by_status, statuses, after)
    }

    /// The same, of the tasks that somebody is assigned to.
    pub fn tasks_of<'w>(
        &'w self,
        assignee: &str,
        statuses: &[Status],
        after: u64,
    ) -> impl Iterator<Item = &'w Task> + use<'w> {
        let columns = self.by_assignee.get(assignee);
        columns.map(|columns| self.in_order(columns, statuses, after)).into_iter().flatten()
    }

    /// The tasks that are neither done nor canceled, as they came.
    pub fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        let open = |status: &Status| !status.is_final();
        let statuses: Vec<Status> = Status::ALL.iter().copied().filter(open).collect();
        self.tasks_in(&statuses, 0)
    }

    fn in_order<'w>(
        &'w self,
        columns: &'w Columns,
        statuses: &[Status],
        after: u64,
    ) -> impl Iterator<Item = &'w Task> + use<'w> {
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let of = |status: &Status| Some(columns.get(status)?.range(later).peekable());
        let wanted: BTreeSet<Status> = statuses.iter().copied().collect();
        let mut columns: Vec<_> = wanted.iter().filter_map(of).collect();
        std::iter::from_fn(move || {
            let next = |column: &mut std::iter::Peekable<_>| -> Option<u64> {
                column.peek().map(|(order, _): &(&u64, &TaskId)| **order)
            };
            let heads = columns.iter_mut().enumerate().filter_map(|(at, column)| Some((next(column)?, at)));
            let (_, first) = heads.min()?;
            columns[first].next()
        })
        .filter_map(|(_, id)| self.task(id))
    }

    /// The approvals that wait for a decision.
    pub fn open_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.undecided.iter().filter_map(|id| self.approvals.get(id)).map(Arc::as_ref)
    }

    /// The requests that wait for an answer.
    pub fn open_requests(&self) -> impl Iterator<Item = &Request> {
        let asked = self.unanswered.iter().filter_map(|id| self.requests.get(id)).map(Arc::as_ref);
        asked.filter(|request| self.is_open_request(request))
    }

    pub fn worker(&self, name: &WorkerName) -> Option<&Worker> {
        self.workers.get(name).map(Arc::as_ref)
    }

    pub fn run(&self, id: &RunId) -> Option<&Run> {
        self.runs.get(id).map(Arc::as_ref)
    }

    /// The agent that the task wants: the one that a person said, else its ticket's assignee where that is an agent.
    pub fn wanted_agent<'w>(&'w self, task: &'w Task) -> Option<&'w AgentName> {
        let of_ticket = || {
            let assignee = task.origin.ticket_assignee.as_ref()?;
            self.config.agents.keys().find(|agent| agent.as_str() == assignee)
        };
        task.agent.as_ref().or_else(of_ticket)
    }

    /// The agent that the fleet makes a worker of for this task: the one that it wants, the one that has begun it, or the
    /// fleet's own. None where it is given to somebody by name: an agent that runs outside may be meant.
    pub fn agent_needed<'w>(&'w self, task: &'w Task) -> Option<&'w AgentName> {
        let begun = || {
            let run = self.run_of(&task.id).filter(|run| matches!(run.holder, Holder::Worker(_)))?;
            (task.status() == Status::InProgress).then_some(&run.agent)
        };
        let open = task.status() == Status::Inbox || task.machine.assignee_ids.is_empty();
        self.wanted_agent(task).or_else(begun).or_else(|| open.then_some(&self.config.fleet.agent))
    }

    /// Whether a worker is there for such tasks. One that the fleet made for an agent other than its own is kept for the
    /// tasks that want that agent; a person's own workers take what there is.
    pub fn is_there_for(&self, worker: &Worker, task: &Task) -> bool {
        let fleets = worker.agent == self.config.fleet.agent;
        worker.by_person || fleets || self.agent_needed(task).is_none_or(|agent| *agent == worker.agent)
    }

    /// The worker that has the task in hand, also a stuck one that holds no lease.
    pub fn worker_of(&self, task: &TaskId) -> Option<&Worker> {
        self.workers.values().map(Arc::as_ref).find(|worker| worker.machine.task.as_ref() == Some(task))
    }

    /// The worker that holds the task's lease.
    pub fn leaseholder(&self, task: &TaskId) -> Option<&Worker> {
        match &self.task(task)?.work.lease.as_ref()?.holder {
            Holder::Worker(name) => self.worker(name),
            Holder::Outside(_) => None,
        }
    }

    /// The task's machine with all that it is told of the world when `by` asks something of it.
    pub fn judged(&self, task: &Task, by: &task::Sender) -> task::Task {
        let worked = |run: &&Arc<Run>| run.task == task.id && run.agent.as_str() == by.id;
        let agent = !matches!(by.role, machines::machine::Role::Human | machines::machine::Role::System);
        task::Task {
            facts: task::Facts {
                lead_may_complete: self.config.policy.lead_may_complete,
                max_review_cycles: self.config.policy.max_review_cycles,
                max_landing_rounds: self.config.policy.max_landing_rounds,
                has_code: task.has_code(),
                landed: task.landing.landed.is_some(),
                needs_person: task.needs_a_person(),
                own_work: agent && self.runs.values().any(|run| worked(&run)),
            },
            ..task.machine.clone()
        }
    }

    /// The tasks that a worker handed over and that wait for a review.
    pub fn handed_over_by(&self, name: &WorkerName) -> Vec<&Task> {
        let by = |task: &Task| {
            task.work
                .run
                .as_ref()
                .and_then(|run| self.run(run))
                .is_some_and(|run| matches!(&run.holder, Holder::Worker(holder) if holder == name))
        };
        let waits = |task: &Task| task.status() == Status::Review && task.review.approved.is_none();
        self.tasks.values().map(Arc::as_ref).filter(|task| waits(task) && by(task)).collect()
    }

    pub fn run_of(&self, task: &TaskId) -> Option<&Run> {
        self.run(self.task(task)?.work.run.as_ref()?)
    }

    /// Whether a request waits for its answer. What is asked about a task that is over is not answered any more.
    pub fn is_open_request(&self, request: &Request) -> bool {
        let closed = || request.task.as_ref().and_then(|id| self.task(id)).is_some_and(Task::is_final);
        request.answer.is_none() && !closed()
    }

    /// The question that a run's agent has asked and that nobody has answered: no step of the run begins before that.
    pub fn open_question(&self, run: &RunId) -> Option<&Request> {
        self.open_requests().find(|asked| asked.run.as_ref() == Some(run))
    }

    /// What main's own tests said under the settings that are in force.
    pub fn main_verdict(&self) -> Option<&MainVerdict> {
        let of = self.config.tests.as_ref()?;
        self.main.verdict.as_deref().filter(|verdict| verdict.of == *of)
    }

    pub fn main_is_known(&self) -> bool {
        self.config.tests.is_none() || self.main_verdict().is_some()
    }

    /// Whether agents may be started: main passes its own tests, or nobody wants to know.
    pub fn main_is_green(&self) -> bool {
        self.config.tests.is_none() || self.main_verdict().is_some_and(|verdict| verdict.red.is_none())
    }

    /// The other tries at the same work as this task.
    pub fn other_tries<'w>(&'w self, task: &'w Task) -> impl Iterator<Item = &'w Task> {
        let first = task.origin.try_of.as_ref().unwrap_or(&task.id);
        let further = self.tries.get(first).into_iter().flatten();
        let others = std::iter::once(first).chain(further).filter(|id| **id != task.id);
        others.filter_map(|id| self.task(id))
    }

    /// How a task, or a ticket that no task came from, stands as a dependency. What one of several tries has done is done.
    pub fn dependency(&self, id: &TaskId) -> Dependency {
        match (self.task(id), self.tickets.get(id.as_str())) {
            (Some(task), _) => match task.machine.status {
                Status::Done => Dependency::Done,
                Status::Canceled if self.other_tries(task).any(|other| other.status() == Status::Done) => {
                    Dependency::Done
                }
                Status::Canceled if self.other_tries(task).any(|other| !other.is_final()) => Dependency::Open,
                Status::Canceled => Dependency::Canceled,
                _ => Dependency::Open,
            },
            (None, Some(ticket)) if ticket.status == TicketStatus::Closed => Dependency::Done,
            (None, Some(_)) => Dependency::Open,
            (None, None) => Dependency::Missing,
        }
    }

    /// The ticket that a task came from.
    pub fn ticket_of(&self, task: &Task) -> Option<&Ticket> {
        self.tickets.get(task.origin.ticket.as_ref()?).map(Arc::as_ref)
    }

    pub fn dependencies_done(&self, task: &Task) -> bool {
        task.depends_on.iter().all(|id| self.dependency(id) == Dependency::Done)
    }

    /// Where a task stands in the order of claiming, if anybody could claim it at all.
    pub fn claim_key(&self, task: &Task) -> Option<ClaimKey> {
        let class = match task.machine.status {
            Status::InProgress => 0,
            Status::Assigned => 1,
            Status::Inbox => 2,
            _ => return None,
        };
        let free = task.work.lease.is_none() && task.work.unfinished.is_empty() && task.gate.alone.is_none();
        let ready = class == 0 || self.dependencies_done(task);
        (free && ready && task.work.waits_for.is_none() && !task.is_waiting_proposal())
            .then(|| (class, task.priority, task.created_at, task.order, task.id.clone()))
    }
}

impl Task {
    /// The conflict with main that nobody has solved. In REVIEW, only while the branch is what it was then.
    pub fn conflict(&self) -> Option<&FailedLanding> {
        let tip = self.work.place.as_ref().and_then(|place| place.tip.as_ref());
        let failed = self.landing.failed.as_ref().filter(|failed| failed.conflict && failed.stands)?;
        let changed = self.status() == Status::Review && tip != Some(&failed.tip);
        (!changed && !self.is_final()).then_some(failed)
    }

    /// Whether approved work of it is on the remote as a pull request.
    pub fn is_offered(&self) -> bool {
        self.review.approved.is_some() && self.landing.pull_request.is_some()
    }

    /// What its landing waits for from now on; nothing, while it is tried again. The same again is no new wait.
    pub(crate) fn hold_up(&mut self, what: Option<HeldUp>, at: Option<Millis>) {
        let before = self.landing.held_up.take().or(self.landing.tried_again.take());
        match &what {
            None => self.landing.tried_again = before,
            Some(held) => {
                let same = |before: &HeldUp| std::mem::discriminant(before) == std::mem::discriminant(held);
                if !before.as_ref().is_some_and(same) {
                    self.landing.held_up_since = at;
                }
            }
        }
        self.landing.held_up = what;
    }

    /// Nothing is known to be in the way of its landing any more.
    pub(crate) fn out_of_the_way(&mut self) {
        (self.landing.held_up, self.landing.held_up_since, self.landing.tried_again) = (None, None, None);
    }

    /// What is in the way of its landing, as far as anybody knows: also while it is tried whether it still is.
    pub fn in_the_way(&self) -> Option<&HeldUp> {
        self.landing.held_up.as_ref().or(self.landing.tried_again.as_ref())
    }

    /// What its landing waits for, in words.
    pub fn held_up_by(&self) -> Option<String> {
        self.landing.held_up.as_ref().map(|held| self.words_for(held))
    }

    /// What is in the way of its landing, in words.
    pub(crate) fn words_for(&self, held: &HeldUp) -> String {
        match held {
            HeldUp::Checkout { why } => why.to_string(),
            HeldUp::Remote { why } => format!("its pull request cannot be made: {why}"),
            HeldUp::PullRequest { .. } => {
                let name = self.landing.pull_request.as_ref().map_or("", PullRequest::name);
                format!("its pull request {name} is to be merged")
            }
        }
    }

    pub fn status(&self) -> Status {
        self.machine.status
    }

    /// An agent proposed it, and nobody has said that it is to be worked on.
    pub fn is_waiting_proposal(&self) -> bool {
        self.origin.proposed.as_ref().is_some_and(|proposed| proposed.state == ProposalState::Waiting)
    }

    /// Nothing is left to do with it.
    pub fn is_final(&self) -> bool {
        self.status().is_final()
    }

    /// Whether only a person may say yes to it. Work of an agent outside has no branch here that a gate could have looked at:
    /// what the policy lets a lead complete, it completes.
    pub fn needs_a_person(&self) -> bool {
        self.gate.needs_person.is_some_and(|why| why != PersonNeeded::ByHand || self.has_code())
    }

    /// Whether there is something to land. What is not known counts as code wherever somebody worked on it.
    pub fn has_code(&self) -> bool {
        self.gate.has_code.unwrap_or(self.work.place.is_some())
    }
}

impl World {
    pub fn channel(&self, name: &ChannelName) -> Option<&Channel> {
        self.channels.get(name).map(Arc::as_ref)
    }

    pub fn seated(&self, seat: &Seat) -> Option<&Seated> {
        self.seats.get(seat).map(Arc::as_ref)
    }

    /// Whether Adjutant starts the agent's program itself, when its turn comes.
    pub fn is_hosted(&self, agent: &AgentName) -> bool {
        self.config.agents.contains_key(agent) && !self.agents.contains_key(agent)
    }

    /// The room in which a task is reviewed.
    pub fn room_of(&self, task: &TaskId) -> Option<(&ChannelName, &Channel)> {
        let open = self.channels.iter().map(|(name, channel)| (name, channel.as_ref()));
        open.into_iter()
            .find(|(_, channel)| !channel.is_closed() && channel.about.task.as_ref() == Some(task))
    }
}

impl World {
    /// Who tries the service alone now.
    pub fn probing(&self, service: &ServiceName) -> Option<&Probe> {
        let probe = self.health.get(service)?.probe.as_ref()?;
        let tries = match probe {
            // One that waits for an answer before its next step tries nothing.
            Probe::Run(run) => self.run(run).is_some_and(|run| {
                run.is_live() && (run.step.is_some() || self.open_question(&run.id).is_none())
            }),
            Probe::Seat(seat) => self.seated(seat).is_some_and(|seated| seated.reply.is_some()),
            Probe::Next => false,
        };
        tries.then_some(probe)
    }

    /// Whether something new can begin with the service: it is there, and nobody tries it first; or this is who does.
    pub fn may_begin(&self, service: &ServiceName, seat: Option<&Seat>) -> bool {
        let Some(health) = self.health.get(service) else { return true };
        let goes_first =
            |probe: &Probe| matches!((probe, seat), (Probe::Seat(first), Some(seat)) if first == seat);
        let is_first = health.probe.as_ref().is_some_and(goes_first);
        is_first || (health.healthy && self.probing(service).is_none())
    }
}

impl World {
    /// Nothing will happen to the run any more: whoever goes on with its task begins another one.
    pub fn is_over_for_good(&self, run: &Run) -> bool {
        !run.is_open() && !run.is_suspended()
    }

    /// The run that an agent outside has under way, or gets back with a person's decision. It has one at a time.
    pub fn run_outside(&self, agent: &AgentName) -> Option<&Run> {
        let holder = Holder::Outside(agent.clone());
        self.runs.values().map(Arc::as_ref).find(|run| {
            let Some(task) = self.task(&run.task).filter(|task| task.work.run.as_ref() == Some(&run.id))
            else {
                return false;
            };
            let holds = task.work.lease.as_ref().is_some_and(|lease| lease.holder == holder);
            let waits = task.status() == Status::NeedsApproval && run.state() == run::State::Paused;
            run.holder == holder && run.is_open() && (holds || waits)
        })
    }
}

impl Approval {
    /// The run that a person paused, where that is what the question is about.
    pub fn paused_run(&self) -> Option<&RunId> {
        self.run.as_ref().filter(|_| self.cause == ApprovalCause::Escalation)
    }
}

impl Run {
    pub fn state(&self) -> run::State {
        self.machine.inner().state
    }

    pub fn is_suspended(&self) -> bool {
        self.machine.suspension().is_some()
    }

    /// Starting or running, and not suspended: somebody must be at work on it.
    pub fn is_live(&self) -> bool {
        !self.is_suspended() && matches!(self.state(), run::State::Starting | run::State::Running)
    }

    /// Neither completed nor back at idle: it can still be resumed or aborted.
    pub fn is_open(&self) -> bool {
        !matches!(self.state(), run::State::Idle | run::State::Completed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependency {
    Done,
    Open,
    /// It will never be done: a person must decide.
    Canceled,
    /// Nobody knows it: a person must decide.
    Missing,
}
