//! Every tool: one row says its name, who may use it, what it takes, and what it is for.
//!
//! The rows are listed to a client by the role of its token, and the same rows say no to a call that is not for that role.
//! Whatever a row lets through is a request like any other: scope and kernel decide.

use std::sync::{Arc, LazyLock};

use machines::machine::Role;
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::calls::{self, ToolAnswer, ToolContext};
use super::{architect, channels, inputs};
use api::Failure;
use api::types;
use api::types::caller::Caller;

use Effect::{Changes, Reads};

pub static TABLE: LazyLock<Vec<Tool>> = LazyLock::new(table);

/// Agents at work: each speaks for its own run.
const AGENTS: &[Role] = &[Role::Intern, Role::Specialist, Role::Lead];
/// Whoever has a token.
const ALL: &[Role] = &[Role::Intern, Role::Specialist, Role::Lead, Role::Human];
const PEOPLE: &[Role] = &[Role::Human];
/// Leads look at the work of others.
const LEADS: &[Role] = &[Role::Lead, Role::Human];
/// An intern proposes nothing.
const NOT_INTERNS: &[Role] = &[Role::Specialist, Role::Lead, Role::Human];

/// Of agents, only those that are in a channel have any use for these.
const MEMBERS: &[&str] = &["channel_read", "channel_post", "turn_complete", "turn_wait", "review_decision"];
/// Only whoever speaks as the architect has any use for these.
const ARCHITECTS: &[&str] = &["submit_stories", "spec_feedback", "escalate"];
/// The architect answers requests and looks; it is at work on no task and in no channel there.
const OF_ARCHITECT: &[&str] = &["review_decision", "answer", "list_tasks", "show_task", "show_diff", "why"];
/// A person, and the architect.
const ANSWERING: &[Role] = &[Role::Specialist, Role::Lead, Role::Human];

#[rustfmt::skip]
fn table() -> Vec<Tool> {
    vec![
        //                              name           who          does     handler              title, and what it is for
        tool::<types::request::Plan>(  "submit_plan",       AGENTS,      Changes, calls::submit_plan,       "Submit a plan",
            "Submit your plan for the task that you are at work on: 3 to 6 steps. It takes the place of the plan that the task began with and is shown to people. Refused where the project gives the plan itself."),
        tool::<inputs::Ask>(           "ask",               AGENTS,      Changes, calls::ask,               "Ask a person",
            "Ask a person a question and wait for the answer. Use it where you cannot go on without knowing. If nobody answers in time you are told so: end your turn then, and the answer comes with your next step."),
        tool::<inputs::Progress>(      "report_progress",   AGENTS,      Changes, calls::report_progress,   "Report progress",
            "Tell people how far you are. It is kept as a comment on your task, and changes nothing else."),
        tool::<types::request::Wish>(  "request_approval",  AGENTS,      Changes, calls::request_approval,  "Ask for an approval",
            "Ask a person before you do something risky, and wait for the decision: name the tool that you would call and what you would give it. Do it only if it is approved."),
        tool::<inputs::ForReview>(     "submit_for_review", AGENTS,      Changes, calls::submit_for_review, "Submit for review",
            "Say that your task is done, committed and tested, with a summary for whoever reviews it. When your turn ends, Adjutant checks the work and runs the tests; what fails comes back to you."),
        tool::<types::request::Claim>( "task_done",         AGENTS,      Changes, calls::task_done,         "Say that the task is done",
            "Say that your task is done, committed and tested: the same as DONE in your last message. When your turn ends, Adjutant checks the work and runs the tests; what fails comes back to you."),
        tool::<inputs::ListTasks>(     "list_tasks",   ALL,         Reads,   calls::list_tasks,   "List tasks",
            "List the tasks of the project with their status. Long lists come in pages: send `next` as `after` for the next one."),
        tool::<inputs::OneTask>(       "show_task",    ALL,         Reads,   calls::show_task,    "Show a task",
            "Show a task: what it says, its plan, status, branch, review, comments and cost, and where it may be moved. Of a task that is not its own an agent is told what stands on the board."),
        tool::<inputs::ShowDiff>(      "show_diff",    ALL,         Reads,   calls::show_diff,    "Show what a task changes",
            "Show what the work on a task would change in main, as a patch. Of a patch that is too long only the files are listed: `path` shows one file or folder of it. An agent sees its own work, what it reviews, and what is reviewed in a channel that it is in."),
        tool::<types::task::Add>(      "create_task",  NOT_INTERNS, Changes, calls::create_task,  "Create a task",
            "Add a task to the inbox. What an agent adds is a proposal: a person accepts it before anybody works on it."),
        tool::<inputs::MoveTask>(      "move_task",    LEADS,       Changes, calls::move_task,    "Move a task",
            "Move a task to another status. `show_task` lists the statuses that it may be moved to; some moves need a reason, a decision or feedback, and a refusal says which."),
        tool::<inputs::Decide>(        "approve",      LEADS,       Changes, calls::approve,      "Approve",
            "Approve a request that waits for a person (`approval`), or finished work in REVIEW (`task`), which is then merged, tested and brought to main."),
        tool::<inputs::Decide>(        "deny",         LEADS,       Changes, calls::deny,         "Deny, or ask for changes",
            "Deny a request that waits for a person (`approval`), or send work in REVIEW back (`task`) with what must be changed as `note`."),
        tool::<inputs::Answer>(        "answer",       ANSWERING,   Changes, architect::answer,   "Answer a question",
            "Answer a question that an agent has asked, in words. It is answered once."),
        tool::<inputs::SubmitStories>( "submit_stories", AGENTS, Changes, architect::submit_stories, "Submit the stories of a spec",
            "Approve the spec that you were asked about, and give its stories. They become tasks with their dependencies. A refusal says what is wrong with them; mend it and submit all of them again."),
        tool::<inputs::SpecFeedback>(  "spec_feedback",  AGENTS, Changes, architect::spec_feedback,  "Give feedback on a spec",
            "Send the spec that you were asked about back to its author, with what is to be changed or made clear."),
        tool::<inputs::Escalate>(      "escalate",       AGENTS, Changes, architect::escalate,       "Ask a person",
            "Leave what you were asked about to a person, with what is to be decided. With the answer you are asked again."),
        tool::<inputs::ReadChannel>(   "channel_read",    ALL,    Reads,   channels::read,     "Read a channel",
            "Read what was said in a channel. What you read counts as heard. `after` shows only what came since."),
        tool::<inputs::PostToChannel>( "channel_post",    ALL,    Changes, channels::post,     "Post to a channel",
            "Say something in a channel. An agent can do so only while it has the turn; say it in one message where you can."),
        tool::<inputs::CompleteTurn>(  "turn_complete",   AGENTS, Changes, channels::complete, "Complete your turn",
            "End your turn in a channel, with a last message if you give one. Saying nothing at all is a turn too. Do nothing more in the channel afterwards."),
        tool::<inputs::WaitInTurn>(    "turn_wait",       AGENTS, Changes, channels::wait,     "Wait in your turn",
            "Pause your turn in a channel because you cannot go on before something outside has happened. You keep the turn. End your reply then: you are asked again when the wait is over."),
        tool::<inputs::DecideReview>(  "review_decision", AGENTS, Changes, architect::decide,  "Decide a review",
            "Decide the review that the channel is for, while you have the turn: approve the work, or send it back with what must be changed. The rules say whether you may. The architect decides what it was asked about."),
        tool::<types::Nothing>(        "list_channels",   PEOPLE, Reads,   channels::list,     "List channels",
            "List the channels: rooms in which agents take turns and people speak when they like."),
        tool::<inputs::OneChannel>(    "show_channel",    PEOPLE, Reads,   channels::show,     "Show a channel",
            "Show a channel: who is in it, who has the turn and until when, or why nobody has it."),
        tool::<inputs::Why>(           "why",          ALL,         Reads,   calls::why,          "Explain what something waits for",
            "Explain what a task waits for and what to do about it; for a person, without a task, what stands in the way of the whole fleet."),
        tool::<types::Nothing>(        "waiting",      PEOPLE,      Reads,   calls::waiting,      "List what waits for a person",
            "List all that waits for a person or a service, what holds up most first, with what can be done about each."),
        tool::<inputs::Cost>(          "cost",         PEOPLE,      Reads,   calls::cost,         "Sum up the cost",
            "Sum up what was spent, in dollars and tokens."),
    ]
}

/// A row.
pub struct Tool {
    pub name: &'static str,
    pub who: &'static [Role],
    effect: Effect,
    pub title: &'static str,
    pub about: &'static str,
    input: fn() -> Arc<JsonObject>,
    pub call: Handler,
}

/// May block.
pub type Handler = fn(&ToolContext, Map<String, Value>) -> Result<ToolAnswer, Failure>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
}

fn tool<Input: JsonSchema>(
    name: &'static str,
    who: &'static [Role],
    effect: Effect,
    call: Handler,
    title: &'static str,
    about: &'static str,
) -> Tool {
    Tool { name, who, effect, title, about, input: schema::<Input>, call }
}

/// Whole, without references to elsewhere: not every client follows them.
fn schema<Input: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut settings = settings.with(|settings| settings.inline_subschemas = true);
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<Input>();
    schema.remove("title");
    // What the type is called and is for is said by the tool itself.
    schema.remove("description");
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

impl Tool {
    /// Whether somebody of this role may use it; what is only for a member of a channel is not offered to others.
    pub fn is_for(&self, caller: &Caller) -> bool {
        let (is_architects, of_architect) =
            (ARCHITECTS.contains(&self.name), OF_ARCHITECT.contains(&self.name));
        let fits = match caller.seat.as_deref() {
            Some("architect") => is_architects || of_architect,
            _ if self.name == "answer" => caller.role == Role::Human,
            _ => {
                let in_channel = caller.role == Role::Human || !caller.channels.is_empty();
                !is_architects && (in_channel || !MEMBERS.contains(&self.name))
            }
        };
        self.who.contains(&caller.role) && fits && !self.only_changes_for(caller)
    }

    /// It changes something, and the caller's token is for reading.
    fn only_changes_for(&self, caller: &Caller) -> bool {
        caller.reads_only && self.effect == Changes
    }

    /// Why it is not for a caller whose role may use it.
    pub fn is_for_whom(&self, caller: &Caller) -> String {
        if self.only_changes_for(caller) {
            return format!("this token is for reading, and `{}` changes something", self.name);
        }
        let whom = match (ARCHITECTS.contains(&self.name), caller.seat.as_deref()) {
            (true, _) => "the architect",
            (_, Some("architect")) => "agents that are at work on a task or in a channel",
            (_, _) if self.name == "answer" => "people and the architect",
            _ => "agents that are in a channel",
        };
        format!("`{}` is for {whom}", self.name)
    }

    /// As a client is told of it.
    pub fn described(&self) -> rmcp::model::Tool {
        let reads = self.effect == Reads;
        let hints = ToolAnnotations::new().read_only(reads).open_world(false).destructive(false);
        rmcp::model::Tool::new(self.name, self.about, (self.input)()).with_title(self.title).annotate(hints)
    }
}

pub fn find(name: &str) -> Option<&'static Tool> {
    TABLE.iter().find(|tool| tool.name == name)
}
