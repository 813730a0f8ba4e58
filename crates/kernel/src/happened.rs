//! What can come of an effect. Each effect names, in its row of `effects!`, which of these it can come to.

use crate::Millis;
use crate::config::Micros;
use crate::words::{GateFact, StepEnding};
use machines::names::ServiceName;
use machines::run;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// An outcome as a type of its own, which the outcomes of one effect are made of.
macro_rules! outcome_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name;
    };
    ($(#[$meta:meta])* $name:ident { $($field:ident : $type:ty),* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(pub $field: $type),* }
    };
}

/// Declares the outcomes with their names on the wire: `Happened`, which is any of them, and a type for each.
macro_rules! outcomes {
    ($($(#[$meta:meta])* $name:ident = $kind:literal $({ $($(#[$fmeta:meta])* $field:ident : $type:ty),* $(,)? })?;)*) => {
        /// What came of an effect, whichever it is, or how far it has got.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "happened")]
        pub enum Happened {
            $($(#[$meta])* #[serde(rename = $kind)] $name $({ $($(#[$fmeta])* $field: $type),* })?),*
        }

        /// The outcomes without what they bring.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OutcomeKind { $($name),* }

        impl OutcomeKind {
            pub const ALL: &'static [OutcomeKind] = &[$(OutcomeKind::$name),*];

            pub fn name(self) -> &'static str {
                match self { $(OutcomeKind::$name => $kind),* }
            }
        }

        impl Happened {
            pub fn kind(&self) -> OutcomeKind {
                match self { $(Happened::$name { .. } => OutcomeKind::$name),* }
            }
        }

        $(
            outcome_type!($(#[$meta])* $name $({ $($field: $type),* })?);

            impl TryFrom<Happened> for $name {
                /// It is another one.
                type Error = Happened;

                fn try_from(what: Happened) -> Result<Self, Happened> {
                    match what {
                        Happened::$name $({ $($field),* })? => Ok($name $({ $($field),* })?),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}

outcomes! {

    TreeReady = "tree_ready" {
        tip: SmolStr,
    };
    TreeFailed = "tree_failed" {
        error: String,
    };
    /// What the settings demand in every tree cannot be put there: no agent's fault, and the same for all of them.
    TreeUnmet = "tree_unmet" {
        error: String,
    };

    /// A turn's message is complete and none of its tools has run. The step goes on.
    Turn = "turn" {
        turn: u32,
        calls: Vec<run::ToolCall>,
        output: Option<String>,
        usage: Usage,
    };
    ToolResult = "tool_result" {
        call: SmolStr,
        tool: SmolStr,
        ok: bool,
        output: String,
        millis: u64,
    };
    /// The agent asks before it acts. The call waits.
    CallAsked = "call_asked" {
        call: SmolStr,
        tool: SmolStr,
        /// What the policy's patterns look at.
        argument: String,
        /// All that the call brings, by name.
        #[serde(default)]
        input: serde_json::Map<String, serde_json::Value>,
        turn: u32,
    };
    /// The step ended well. `usage` is what was not reported with its turns.
    StepFinished = "step_finished" {
        ending: StepEnding,
        output: String,
        tip: Option<SmolStr>,
        /// What stands in the tree, committed or not: equal where nothing has changed. Absent: nobody has looked.
        #[serde(default)]
        tree: Option<SmolStr>,
        usage: Usage,
    };
    StepFailed = "step_failed" {
        error: String,
        why: StepFailure,
        usage: Usage,
    };
    /// A service stayed away after the adapter's own retries.
    Outage = "outage" {
        service: ServiceName,
        resets_at: Option<Millis>,
        /// What the service answered.
        #[serde(default)]
        error: Option<SmolStr>,
        /// It does not accept the credentials.
        #[serde(default)]
        refused: bool,
        usage: Usage,
    };
    /// The process tree is gone, as was asked.
    StepEnded = "step_ended" {
        tip: Option<SmolStr>,
        usage: Usage,
    };
    CallAnswered = "call_answered";
    /// Whether the agent's program could hear what it was told.
    Told = "told" {
        heard: bool,
    };

    GateGreen = "gate_green" {
        tip: SmolStr,
        facts: Vec<GateFact>,
    };
    GateRed = "gate_red" {
        output: String,
        tip: Option<SmolStr>,
        #[serde(default)]
        by: RedBy,
    };
    /// The branch was sent back because of a conflict, and conflicts still: nothing was tested.
    GateConflict = "gate_conflict" {
        tip: SmolStr,
        files: Vec<String>,
        main: SmolStr,
    };
    /// There is nothing in the branch that main has not.
    GateEmpty = "gate_empty" {
        tip: SmolStr,
    };

    WorkSaved = "work_saved" {
        reference: String,
    };
    TreeRemoved = "tree_removed" {
        reference: Option<String>,
    };

    MergeGreen = "merge_green" {
        merge: SmolStr,
        old: SmolStr,
        /// Tickets whose files come to main with an agent's work.
        #[serde(default)]
        tickets: Vec<SmolStr>,
    };
    MergeConflict = "merge_conflict" {
        files: Vec<String>,
        /// The commit of main that it conflicts with.
        main: SmolStr,
        /// Commits that the branch was made on and main no longer has.
        #[serde(default)]
        dropped: Vec<String>,
        /// The branch has solved what the landing before failed of.
        #[serde(default)]
        solved: bool,
    };
    MergeRed = "merge_red" {
        output: String,
        #[serde(default)]
        by: RedBy,
        /// The commit of main that it was merged with.
        main: SmolStr,
        /// The branch has solved what the landing before failed of.
        #[serde(default)]
        solved: bool,
    };
    /// Main passes its tests, or has none. `of` says under which settings, `main` at which commit.
    MainGreen = "main_green" {
        of: SmolStr,
        main: SmolStr,
        command: Option<String>,
        /// They were run now: it is not only known that the same files once passed them.
        #[serde(default)]
        ran: bool,
    };
    MainRed = "main_red" {
        of: SmolStr,
        main: SmolStr,
        command: String,
        output: String,
    };
    MainMoved = "main_moved";
    /// Main was not where it was expected: test again.
    MainMovedByOther = "main_was_moved";
    /// The user's checkout is in the way: why, and the command that clears it.
    CheckoutInTheWay = "checkout_in_the_way" {
        why: String,
        command: String,
    };

    /// The merge is green, and offered as a pull request: where, and by which branch on the remote.
    PullRequestOpen = "pull_request_open" {
        url: Option<SmolStr>,
        branch: SmolStr,
    };
    /// The remote does not answer, or the pull request cannot be opened.
    RemoteInTheWay = "remote_in_the_way" {
        why: String,
    };

    TicketWritten = "ticket_written";
    /// The gate put back what is not the agent's to change; it goes on from there.
    PutBack = "put_back" {
        what: Vec<String>,
    };
    /// The ticket was left as it is: its file is gone or no ticket, or git has it and only its close is written.
    TicketLeft = "ticket_left";
    BranchDeleted = "branch_deleted";
    /// The user's command has run, whatever came of it: that is theirs to look at.
    HookRan = "hook_ran";
    Health = "health" {
        healthy: bool,
    };
    /// Nothing is there to ask the service with: only the next step tells.
    HealthUnknown = "health_unknown";
    TimerDue = "timer_due";
    /// Something that only we need could not be done; it is tried again.
    Failed = "failed" {
        error: String,
    };
}

impl Failed {
    /// What is said of an outcome that does not belong to its effect.
    pub fn from_any(what: Happened) -> Failed {
        let error = match what {
            Happened::Failed { error } | Happened::TreeFailed { error } | Happened::TreeUnmet { error } => {
                error
            }
            other => format!("an answer that does not fit: {other:?}").chars().take(200).collect(),
        };
        Failed { error }
    }
}

machines::wire_enum! {
    pub enum StepFailure {
        /// The agent's program ended badly.
        Failed = "failed",
        /// The session is in use or unknown: a new one is made once the old process is gone.
        Session = "session",
        TimedOut = "timed_out",
        /// Keeper or runner are gone; nobody knows how it ended.
        Lost = "lost",
        /// It used more processes or memory than it may; once more would be the same again.
        Limit = "limit",
    }
}

machines::wire_enum! {
    /// What makes a gate or a merge red.
    pub enum RedBy {
        Tests = "tests",
        /// The tests did not get as far as testing: main's own say whose fault that is.
        InDoubt = "in_doubt",
        /// The tests could not be started, which is never the agent's to mend.
        Environment = "environment",
        ConflictMarkers = "conflict_markers",
        /// The merge with main conflicts.
        Conflict = "conflict",
        /// Something in the branch that cannot be landed.
        Branch = "branch",
        /// There is nothing in the branch.
        NoChange = "no_change",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes what all such words derive")]
impl Default for RedBy {
    fn default() -> Self {
        RedBy::Tests
    }
}

impl RedBy {
    pub fn is_tests(&self) -> bool {
        *self == RedBy::Tests
    }
}

/// What a turn or step used. An unknown price is `None`, never zero; the default is nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub cost: Option<Micros>,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { cost: Some(0), input_tokens: 0, output_tokens: 0 }
    }
}
