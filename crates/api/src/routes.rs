//! Every operation: one row says how it is asked for, who may, what it takes and gives, what it is for, and which commands
//! and tools ask it.
//!
//! The same rows answer requests over the socket and in process, say who may, and are printed as `docs/api.md`, as the OpenAPI
//! document, and as the tools of `docs/mcp.md`. `operation.rs` and `tool.rs` say what the columns mean.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::LazyLock;

use kernel::World;
use machines::task::Status;

use super::asks::{Asks, Taken};
use super::offered_tool::OfferedTool;
use super::operation::{Kept, Operation, Stream, Who, asks, creates, makes, route};
use super::tool::{Audience, OwnCode, tool};
use super::types::tool as input;
use super::types::{self, Nothing, Words};
use super::{
    Call, Method, Problem, Request, Response, agents, architect, board, caller, channels, fleet, history,
    host, overview, requests, review_comments, runs, scope, screen, specs, story_feed, terms, tokens,
    waiting,
};

use Audience::{Agent, Architect, Lead, Member, Person, Specialist};
use Method::{Delete, Get, Patch, Post, Put};
use Who::{
    Everyone, ItsPart, Kernel, People, ReadsApproval, ReadsChannel, ReadsRequest, ReadsRun, ReadsTask,
    ReadsWork, ReadsWorker,
};

pub static TABLE: LazyLock<Vec<Subject>> = LazyLock::new(table);

/// Every caller with a token.
const ALL: &[Audience] = &[Person, Agent, Architect];
/// The longest patch that a model is shown at once.
const DIFF_BYTES_MAX: usize = 256 << 10;

#[rustfmt::skip]
fn table() -> Vec<Subject> {
    vec![
        subject("Tasks", vec![
            //     method  path                              who            handler                     what it is for
            route(Get,    "/tasks",                          Everyone,      board::list,                "List the tasks")
                .commands(&["task ls", "board"])
                .tool(tool("list_tasks", ALL, "List tasks",
                    "List the tasks of the project with their status. Long lists come in pages: send `next` as `after` for the next one.")
                    .list::<Words<Status>>("status")),
            route(Get,    "/board",                          Everyone,      board::board,               "Show the whole board as one document, which is kept ready").kept(Kept::Board),
            makes(Post,   "/tasks",                          Kernel,        board::add,                 "Add a task to the inbox")
                .commands(&["task add", "task try", "task import"])
                .tool(tool("create_task", &[Person, Specialist], "Create a task",
                    "Add a task to the inbox. What an agent adds is a proposal: a person accepts it before anybody works on it.")),
            route(Get,    "/tasks/{task}",                   ItsPart,       board::show,                "Show a task")
                .commands(&["task show"])
                .tool(tool("show_task", ALL, "Show a task",
                    "Show a task: what it says, its plan, status, branch, review, comments and cost, and where it may be moved. Of a task that is not its own an agent is told what stands on the board.")
                    .own()),
            asks(Patch,   "/tasks/{task}",                   Kernel,        board::edit,                "Change what a task says")
                .commands(&["task edit"]),
            asks(Post,    "/tasks/{task}/transitions",       Kernel,        board::transition,          "Move a task to another status").told_as(Problem::of_transition)
                .commands(&["task move", "task assign", "task cancel"])
                .tool(tool("move_task", &[Person, Lead], "Move a task",
                    "Move a task to another status. `show_task` lists the statuses that it may be moved to; some moves need a reason, a decision or feedback, and a refusal says which.")),
            makes(Post,   "/tasks/{task}/comments",          Kernel,        board::comment,             "Comment on a task")
                .commands(&["task comment"])
                .tool(tool("report_progress", &[Agent], "Report progress",
                    "Tell people how far you are. It is kept as a comment on your task, and changes nothing else.")
                    .with_input::<input::Progress>(OwnCode::ReportProgress, "it tells the agent to go on, and the comment is not repeated")),
            creates(Post, "/tasks/{task}/dependencies",      Kernel,        board::add_dependency,      "Let a task wait until another is done")
                .commands(&["task dep add"]),
            route(Delete, "/tasks/{task}/dependencies/{on}", Kernel,        board::remove_dependency,   "Let a task no longer wait for another")
                .commands(&["task dep rm"]),
            route(Post,   "/tasks/{task}/accept",            Kernel,        board::accept,              "Let the fleet work on a task that an agent proposed")
                .commands(&["task accept"]),
            route(Post,   "/tasks/{task}/retry",             Kernel,        board::retry,               "Try a task again that failed")
                .commands(&["retry"]),
            route(Post,   "/tasks/{task}/restart",           Kernel,        board::restart,             "Start a task over, from main")
                .commands(&["task restart"]),
            creates(Post, "/tasks/{task}/undo",              People,        board::undo,                "Take back what a task brought to main, as a task of its own")
                .commands(&["undo"]),
            route(Get,    "/tasks/{task}/why",               ReadsTask,     board::why,                 "Explain what a task is waiting for")
                .commands(&["why"])
                .tool(tool("why", ALL, "Explain what something waits for",
                    "Explain what a task waits for and what to do about it; for a person, without a task, what stands in the way of the whole fleet.")
                    .with_input::<input::Why>(OwnCode::Why, "without a task it asks `GET /why`")),
            route(Get,    "/tasks/{task}/history",           ReadsTask,     history::of_task,           "List what happened to a task")
                .commands(&["history"]),
            route(Get,    "/tasks/{task}/diff",              ReadsWork,     host::diff,                 "Show what a task would change in main").heavy()
                .commands(&["diff"])
                .tool(tool("show_diff", ALL, "Show what a task changes",
                    "Show what the work on a task would change in main, as a patch. Of a patch that is too long only the files are listed: `path` shows one file or folder of it. An agent sees its own work, what it reviews, and what is reviewed in a channel that it is in.")
                    .own().without("stat").fixed("maxBytes", DIFF_BYTES_MAX)),
            route(Get,    "/tasks/{task}/transcript",        ReadsTask,     host::transcript_of_task,   "Read what agents said and did for a task").waits()
                .commands(&["logs", "peek"]),
            route(Get,    "/tasks/{task}/tests",             ReadsTask,     host::tests,                "Read what the last tests or hooks of a task printed")
                .commands(&["logs"]),
            route(Get,    "/tasks/{task}/prompt/{prompt}",   ReadsTask,     host::task_prompt,          "Show the prompt that a task's agent would get now")
                .commands(&["prompt show"]),
            route(Get,    "/tasks/{task}/shell",             People,        board::shell,               "Find the tree that a shell for a task would open in")
                .commands(&["shell"]),
        ]),
        subject("Review and landing", vec![
            route(Get,    "/reviews",                        ItsPart,       board::reviews,             "List the tasks that wait for a review")
                .commands(&["review"]),
            route(Get,    "/tasks/{task}/review",            ReadsWork,     board::reviewed,            "Show what a reviewer needs to know of a task")
                .commands(&["review"]),
            route(Post,   "/tasks/{task}/review",            Kernel,        board::review,              "Approve a task in REVIEW, or ask for changes")
                .commands(&["review", "merge"]),
            route(Get,    "/tasks/{task}/drafts",            People,        review_comments::drafts,    "List the comments on lines of a task's diff that were not sent yet"),
            creates(Post, "/tasks/{task}/drafts",            Kernel,        review_comments::keep,      "Keep a comment on lines of a task's diff"),
            route(Patch,  "/tasks/{task}/drafts/{draft}",    Kernel,        review_comments::edit,      "Change the text of a draft"),
            route(Delete, "/tasks/{task}/drafts/{draft}",    Kernel,        review_comments::discard,   "Discard a draft"),
            route(Get,    "/tasks/{task}/rounds",            People,        review_comments::rounds,    "List the rounds of comments that were sent, with their receipts"),
            creates(Post, "/tasks/{task}/rounds",            Kernel,        review_comments::send,      "Send all drafts as one numbered round, and ask for changes"),
            route(Get,    "/queue",                          Everyone,      board::queue,               "List what is approved and not on main yet")
                .commands(&["queue"]),
        ]),
        subject("Approvals", vec![
            route(Get,    "/approvals",                      ItsPart,       board::approvals,           "List the questions that wait for a person")
                .commands(&["approvals"]),
            route(Get,    "/approvals/{approval}",           ReadsApproval, board::approval,            "Show a question").waits()
                .commands(&["approvals"]),
            route(Post,   "/approvals/{approval}/decision",  Kernel,        board::decide,              "Answer a question")
                .commands(&["approve", "deny"])
                .tool(tool("approve", &[Person, Lead], "Approve",
                    "Approve a request that waits for a person (`approval`), or finished work in REVIEW (`task`), which is then merged, tested and brought to main.")
                    .with_input::<input::Decision>(OwnCode::Approve, "with a task it asks `POST /tasks/{task}/review`"))
                .tool(tool("deny", &[Person, Lead], "Deny, or ask for changes",
                    "Deny a request that waits for a person (`approval`), or send work in REVIEW back (`task`) with what must be changed as `note`.")
                    .with_input::<input::Decision>(OwnCode::Deny, "with a task it asks `POST /tasks/{task}/review`")),
        ]),
        subject("Questions", vec![
            route(Get,    "/requests",                       ItsPart,       requests::list,             "List the requests that wait for an answer in words, by a person or by the architect")
                .commands(&["requests"]),
            creates(Post, "/requests",                       Kernel,        requests::ask,              "Ask a question")
                .commands(&["ask"])
                .tool(tool("ask", &[Agent], "Ask a person",
                    "Ask a person a question and wait for the answer. Use it where you cannot go on without knowing. If nobody answers in time you are told so: end your turn then, and the answer comes with your next step.")
                    .with_input::<input::Question>(OwnCode::Ask, "it waits for the answer, and confirms that it arrived")),
            route(Get,    "/requests/{request}",             ReadsRequest,  requests::show,             "Show a question, with its answer").waits()
                .commands(&["ask"]),
            route(Get,    "/requests/{request}/history",     ReadsRequest,  history::of_request,        "List what happened to a request")
                .commands(&["history"]),
            route(Post,   "/requests/{request}/answer",      Kernel,        requests::answer,           "Answer a question in words, or give it up")
                .commands(&["answer"])
                .tool(tool("answer", &[Person, Architect], "Answer a question",
                    "Answer a question that an agent has asked, in words. It is answered once.")
                    .with_input::<input::AnswerInWords>(OwnCode::Answer, "for the architect it asks `POST /architect/answer`")),
            route(Post,   "/requests/{request}/receipt",     Kernel,        requests::receive,          "Confirm that the answer has reached the caller that asked")
                .commands(&["ask"]),
        ]),
        subject("Specs and the architect", vec![
            route(Get,    "/specs",                          Everyone,      specs::list,                "List the specs")
                .commands(&["spec ls"]),
            creates(Post, "/specs",                          Kernel,        specs::submit,              "Submit a spec, or submit it again after feedback")
                .commands(&["spec submit"]),
            route(Get,    "/specs/{spec}",                   Everyone,      specs::show,                "Show a spec, its versions and its stories")
                .commands(&["spec show"]),
            route(Get,    "/specs/{spec}/history",           People,        history::of_spec,           "List what happened to a spec and to its stories")
                .commands(&["history"]),
            route(Get,    "/architect",                      People,        architect::show,            "Show where the architect stands, and what waits for it")
                .commands(&["architect"]),
            route(Get,    "/architect/transcript",           People,        host::transcript_of_architect, "Read what the architect's agent said and did").waits()
                .commands(&["logs", "peek"]),
            route(Post,   "/architect/recover",              Kernel,        architect::recover,         "Let the architect go on after an error")
                .commands(&["retry"]),
            route(Post,   "/architect/answer",               Kernel,        architect::answer,          "Answer the request in hand, as the architect's agent")
                .tool(tool("submit_stories", &[Architect], "Submit the stories of a spec",
                    "Approve the spec that you were asked about, and give its stories. They become tasks with their dependencies. A refusal says what is wrong with them; mend it and submit all of them again.")
                    .with_input::<input::Stories>(OwnCode::SubmitStories, "what is no answer is an error of the tool, so that the agent tries again"))
                .tool(tool("spec_feedback", &[Architect], "Give feedback on a spec",
                    "Send the spec that you were asked about back to its author, with what is to be changed or made clear.")
                    .with_input::<input::Feedback>(OwnCode::SpecFeedback, "what is no answer is an error of the tool, so that the agent tries again"))
                .tool(tool("escalate", &[Architect], "Ask a person",
                    "Leave what you were asked about to a person, with what is to be decided. With the answer you are asked again.")
                    .with_input::<input::Escalation>(OwnCode::Escalate, "what is no answer is an error of the tool, so that the agent tries again")),
        ]),
        subject("Agents at work", vec![
            route(Post,   "/own/plan",                       Kernel,        requests::plan,             "Submit the plan of the task that the caller is at work on")
                .commands(&["task plan"])
                .tool(tool("submit_plan", &[Agent], "Submit a plan",
                    "Submit your plan for the task that you are at work on: 3 to 6 steps. It takes the place of the plan that the task began with and is shown to people. Refused where the project gives the plan itself.")
                    .with_code(OwnCode::SubmitPlan, "it tells the agent what to do next, and of the task only its plan")),
            route(Post,   "/own/claim",                      Kernel,        requests::claim,            "Say that the task is done; the end of the step and the gate decide")
                .tool(tool("submit_for_review", &[Agent], "Submit for review",
                    "Say that your task is done, committed and tested, with a summary for the reviewer. When your turn ends, Adjutant checks the work and runs the tests; what fails comes back to you.")
                    .with_input::<input::ForReview>(OwnCode::SubmitForReview, "a summary is required, and it tells the agent what to do next"))
                .tool(tool("task_done", &[Agent], "Say that the task is done",
                    "Say that your task is done, committed and tested: the same as DONE in your last message. When your turn ends, Adjutant checks the work and runs the tests; what fails comes back to you.")
                    .with_code(OwnCode::TaskDone, "it tells the agent what to do next")),
            creates(Post, "/own/approvals",                  Kernel,        requests::wish,             "Ask a person before something is done")
                .tool(tool("request_approval", &[Agent], "Ask for an approval",
                    "Ask a person before you do something risky, and wait for the decision: name the tool that you would call and what you would give it. Do it only if it is approved.")
                    .with_code(OwnCode::RequestApproval, "it waits for the decision")),
        ]),
        subject("Workers", vec![
            route(Get,    "/workers",                        ItsPart,       fleet::workers,             "List the workers")
                .commands(&["ps", "state"]),
            creates(Post, "/workers",                        Kernel,        fleet::spawn,               "Add a worker")
                .commands(&["spawn"]),
            route(Get,    "/workers/{worker}",               ItsPart,       fleet::worker,              "Show a worker"),
            route(Get,    "/workers/{worker}/why",           ReadsWorker,   fleet::why,                 "Explain what a worker is waiting for")
                .commands(&["why"]),
            route(Get,    "/workers/{worker}/history",       ReadsWorker,   history::of_worker,         "List what happened to a worker")
                .commands(&["history"]),
            route(Get,    "/workers/{worker}/transcript",    ReadsWorker,   host::transcript_of_worker, "Read what a worker's agent said and did").waits()
                .commands(&["logs", "peek"]),
            route(Post,   "/workers/{worker}/assign",        Kernel,        fleet::assign,              "Give a task to a worker")
                .commands(&["assign"]),
            route(Post,   "/workers/{worker}/kill",          Kernel,        fleet::kill,                "End what a worker does, and save its work")
                .commands(&["kill"]),
            route(Post,   "/workers/{worker}/retry",         Kernel,        fleet::retry,               "Try again with a worker that is stuck")
                .commands(&["retry"]),
            route(Post,   "/workers/{worker}/cleanup",       Kernel,        fleet::cleanup,             "Save and remove a worker's tree")
                .commands(&["cleanup"]),
            route(Post,   "/workers/{worker}/clean",         Kernel,        fleet::clean,               "Remove a worker, after its work is saved")
                .commands(&["clean"]),
            route(Post,   "/workers/{worker}/merge",         Kernel,        fleet::merge,               "Approve the task that a worker has, or has handed over"),
        ]),
        subject("Runs", vec![
            route(Get,    "/runs",                           ItsPart,       runs::list,                 "List the runs")
                .commands(&["runs"]),
            creates(Post, "/runs",                           Kernel,        runs::open,                 "Open a run for an agent that the fleet does not start, or have a worker of an agent begin one")
                .commands(&["start"]),
            route(Get,    "/runs/{run}",                     ReadsRun,      runs::show,                 "Show a run")
                .commands(&["watch"]),
            route(Get,    "/runs/{run}/history",             ReadsRun,      history::of_run,            "List what happened in a run")
                .commands(&["watch", "history"]),
            route(Get,    "/runs/{run}/tools",               ReadsRun,      runs::tools,                "List the calls of a run's tools: the audit")
                .commands(&["tools"]),
            route(Post,   "/runs/{run}/events",              Kernel,        runs::event,                "Report an event of a run; people pause, resume and abort")
                .commands(&["pause", "resume", "abort"]),
            route(Post,   "/runs/{run}/tokens",              Kernel,        runs::tokens,               "Report what an agent outside writes, as it comes"),
        ]),
        subject("Agents", vec![
            route(Get,    "/agents",                         Everyone,      agents::list,               "List the agents of the settings, and those that are connected from outside")
                .commands(&["agent ls"]),
            creates(Post, "/agents",                         Kernel,        agents::register,           "Connect an agent that the fleet does not start"),
            route(Get,    "/agents/{agent}/transcript",      People,        host::transcript_of_agent,  "Read what an agent said and did outside of tasks: in channels, and as the architect").waits()
                .commands(&["logs", "peek"]),
            route(Post,   "/agents/{agent}/connect",         Kernel,        agents::connect,            "Connect an agent by its name"),
            route(Put,    "/agents/{agent}/heartbeat",       Kernel,        agents::heartbeat,          "Give a sign of life of a connected agent"),
            route(Post,   "/agents/{agent}/disconnect",      Kernel,        agents::disconnect,         "Disconnect an agent"),
            route(Post,   "/agents/{agent}/disable",         Kernel,        agents::disable,            "Disable an agent: it takes no further task and has no turn in a channel")
                .commands(&["agent disable"]),
            route(Post,   "/agents/{agent}/enable",          Kernel,        agents::enable,             "Enable an agent again")
                .commands(&["agent enable"]),
        ]),
        subject("Channels", vec![
            route(Get,    "/channels",                       ItsPart,       channels::list,             "List the channels: rooms in which agents take turns")
                .commands(&["channel ls"])
                .tool(tool("list_channels", &[Person], "List channels",
                    "List the channels: rooms in which agents take turns and people speak when they like.")),
            creates(Post, "/channels",                       Kernel,        channels::make,             "Make a channel")
                .commands(&["channel create"]),
            route(Get,    "/channels/{channel}",             ReadsChannel,  channels::show,             "Show a channel: who is in it, who has the turn and until when")
                .commands(&["channel status"])
                .tool(tool("show_channel", &[Person], "Show a channel",
                    "Show a channel: who is in it, who has the turn and until when, or why nobody has it.")),
            route(Post,   "/channels/{channel}/close",       Kernel,        channels::close,            "Close a channel; what was said there can still be read")
                .commands(&["channel close"]),
            route(Get,    "/channels/{channel}/members",     ReadsChannel,  channels::members,          "List the agents in a channel"),
            creates(Post, "/channels/{channel}/members",     Kernel,        channels::add_member,       "Add an agent to a channel")
                .commands(&["channel add"]),
            route(Delete, "/channels/{channel}/members/{agent}", Kernel,    channels::remove_member,    "Remove an agent from a channel")
                .commands(&["channel remove"]),
            route(Get,    "/channels/{channel}/messages",    ReadsChannel,  channels::messages,         "Read what was said in a channel; an agent has heard what it reads").waits()
                .commands(&["channel tail"])
                .tool(tool("channel_read", &[Person, Member], "Read a channel",
                    "Read what was said in a channel. What you read counts as heard. `after` shows only what came since.")
                    .with_input::<input::ReadChannel>(OwnCode::ReadChannel, "without `after` it shows the end of the channel, and as lines of text")),
            creates(Post, "/channels/{channel}/messages",    Kernel,        channels::post,             "Say something in a channel: a person at any time, an agent in its turn")
                .commands(&["channel post"])
                .tool(tool("channel_post", &[Person, Member], "Post to a channel",
                    "Say something in a channel. An agent can do so only while it has the turn; say it in one message where you can.")
                    .own()),
            route(Get,    "/channels/{channel}/history",     People,        history::of_channel,        "List what happened in a channel: its turns, and what was said")
                .commands(&["channel history"]),
            route(Get,    "/channels/{channel}/transcript",  People,        host::transcript_of_channel, "Read what the agents that Adjutant hosts in a channel said and did in their turns").waits()
                .commands(&["logs", "peek"]),
            route(Get,    "/channels/{channel}/members/{agent}/transcript", People, host::transcript_of_member, "Read what one agent said and did in its turns in a channel").waits()
                .commands(&["logs", "peek"]),
            route(Post,   "/channels/{channel}/turn",        Kernel,        channels::turn,             "End a turn, let it wait or go on; people also cancel it and pass agents over")
                .commands(&["turn complete", "turn pass", "turn wait", "turn resume", "turn skip", "turn cancel", "turn fresh"])
                .tool(tool("turn_complete", &[Member], "Complete your turn",
                    "End your turn in a channel, with a last message if you give one. Saying nothing at all is a turn too. Do nothing more in the channel afterwards.")
                    .with_input::<input::LastWords>(OwnCode::CompleteTurn, "a last message is posted first, by `POST /channels/{channel}/messages`"))
                .tool(tool("turn_wait", &[Member], "Wait in your turn",
                    "Pause your turn in a channel because you cannot go on before something outside has happened. You keep the turn. End your reply then: you are asked again when the wait is over.")
                    .with_input::<input::WaitInTurn>(OwnCode::WaitInTurn, "it tells the agent to end its reply")),
            route(Post,   "/channels/{channel}/decision",    Kernel,        channels::decide,           "Decide the review that a channel is for")
                .tool(tool("review_decision", &[Member, Architect], "Decide a review",
                    "Decide the review that the channel is for, while you have the turn: approve the work, or send it back with what must be changed. The rules say whether you may. The architect decides what it was asked about.")
                    .with_input::<input::ChannelReview>(OwnCode::DecideReview, "for the architect it asks `POST /architect/answer`")),
        ]),
        subject("The fleet", vec![
            route(Get,    "/fleet",                          Everyone,      fleet::status,              "Show whether a fleet runs, and how main's own tests stand")
                .commands(&["ps"]),
            route(Post,   "/fleet/start",                    Kernel,        fleet::start,               "Start the fleet in the server"),
            route(Post,   "/fleet/stop",                     Kernel,        fleet::stop,                "Stop the fleet")
                .commands(&["stop"]),
            route(Post,   "/fleet/test-main",                Kernel,        fleet::test_main,           "Run main's own tests again")
                .commands(&["doctor"]),
            route(Get,    "/why",                            People,        fleet::why_all,             "Explain what stands in the way of the fleet, and what each open task waits for")
                .commands(&["why"]),
            route(Get,    "/waiting",                        People,        waiting::list,              "List what waits for a person or a service, and what can be done about it")
                .commands(&["waiting"])
                .tool(tool("waiting", &[Person], "List what waits for a person",
                    "List all that waits for a person or a service, what holds up most first, with what can be done about each.")),
            route(Get,    "/cost",                           People,        board::cost,                "Sum up what was spent")
                .commands(&["cost"])
                .tool(tool("cost", &[Person], "Sum up the cost",
                    "Sum up what was spent, in dollars and tokens.")),
            route(Get,    "/view",                           People,        screen::show,               "Show all that a live screen shows; with `Accept: text/event-stream`, follow its changes").streams_rows::<types::screen::ViewChange>(Stream::View),
            route(Get,    "/terms",                          People,        terms::show,                "Show the words, moves and keys of the screens"),
            route(Get,    "/overview",                       People,        overview::show,             "Show the current work of the fleet on one page: workers, board, landing and items that need a person")
                .commands(&["run"]),
        ]),
        subject("What happened", vec![
            route(Get,    "/history",                        People,        history::of_all,            "List what happened")
                .commands(&["history"]),
            route(Get,    "/events",                         People,        history::events,            "Read the log; with `Accept: text/event-stream`, follow it as it grows").waits().streams(Stream::Events)
                .commands(&["watch"]),
            route(Get,    "/export",                         People,        host::export,               "Say what an export of the log would hold; with `Accept: application/x-ndjson`, export it").streams(Stream::Export)
                .commands(&["export"]),
            route(Get,    "/verify",                         People,        host::verify,               "Check the whole log: hashes, events, invariants, snapshot and outbox").heavy()
                .commands(&["verify"]),
            route(Get,    "/story",                          People,        story_feed::list,           "Read the lines that the running `adj run` or `adj serve` has reported since it started").waits()
                .commands(&["run"]),
        ]),
        subject("Saved work", vec![
            route(Get,    "/salvage",                        People,        host::salvage,              "List saved work, newest first")
                .commands(&["salvage list"]),
            route(Get,    "/salvage/{task}/{effect}",        People,        host::salvage_show,         "Show what a piece of saved work changed").heavy()
                .commands(&["salvage show"]),
            route(Post,   "/salvage/restore",                People,        host::salvage_restore,      "Put saved work into a new branch or folder")
                .commands(&["salvage restore"]),
            route(Get,    "/trash",                          People,        host::trash,                "Show how much is in the trash")
                .commands(&["cleanup"]),
            route(Post,   "/trash/empty",                    People,        host::empty_trash,          "Delete what is in the trash")
                .commands(&["cleanup"]),
        ]),
        subject("Tokens", vec![
            route(Get,    "/tokens",                         People,        tokens::list,               "List the tokens that people made")
                .commands(&["token ls"]),
            creates(Post, "/tokens",                         People,        tokens::create,             "Make a token for a colleague or a program")
                .commands(&["token create"]),
            route(Delete, "/tokens/{token}",                 People,        tokens::revoke,             "Revoke a token")
                .commands(&["token revoke"]),
            creates(Post, "/links",                          People,        tokens::link,               "Make a link that lets a browser in once")
                .commands(&["url"]),
        ]),
        subject("Settings and the machine", vec![
            route(Get,    "/caller",                         Everyone,      caller::show,               "Say who the caller is, by the token"),
            route(Get,    "/config",                         Everyone,      host::config,               "Show the settings in force")
                .commands(&["config show"]),
            route(Get,    "/config/check",                   Everyone,      host::config_check,         "List what is wrong with adjutant.toml")
                .commands(&["config check"]),
            route(Get,    "/config/schema",                  Everyone,      host::config_schema,        "Show the JSON Schema of adjutant.toml")
                .commands(&["config schema"]),
            route(Post,   "/config/trust",                   People,        host::config_trust,         "Trust adjutant.toml and .worktreeinclude as they are now")
                .commands(&["config trust"]),
            route(Post,   "/config/forget",                  People,        host::config_forget,        "Go on with the defaults after adjutant.toml was deleted")
                .commands(&["config forget"]),
            route(Get,    "/prompts",                        Everyone,      host::prompts,              "List the prompts, and where each comes from")
                .commands(&["prompt ls"]),
            route(Get,    "/prompts/{prompt}",               Everyone,      host::prompt,               "Show a prompt")
                .commands(&["prompt show"]),
            route(Get,    "/tickets/problems",               Everyone,      host::ticket_problems,      "List what is wrong with ticket files"),
            route(Get,    "/doctor",                         People,        host::doctor,               "Check the machine, the repository and the settings")
                .commands(&["doctor"]),
            route(Post,   "/init",                           People,        host::init,                 "Write adjutant.toml, and check this machine")
                .commands(&["init"]),
            route(Get,    "/machines",                       Everyone,      machines,                   "List the state machines"),
            route(Get,    "/machines/{machine}",             Everyone,      machine,                    "Show a state machine"),
        ]),
    ]
}

/// Rows that belong together on the printed page.
pub struct Subject {
    pub title: &'static str,
    pub operations: Vec<Operation>,
}

fn subject(title: &'static str, operations: Vec<Operation>) -> Subject {
    Subject { title, operations }
}

/// All rows, in order.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    TABLE.iter().flat_map(|subject| &subject.operations)
}

/// All tools, each with its operation.
pub fn tools() -> impl Iterator<Item = OfferedTool> {
    all().flat_map(|operation| operation.tools.iter().map(move |tool| OfferedTool { operation, tool }))
}

static BY_HANDLER: LazyLock<HashMap<TypeId, &'static Operation>> =
    LazyLock::new(|| all().map(|operation| (operation.handler, operation)).collect());

/// The operation that a handler answers: a function has a type of its own, so code that names one is checked against its
/// types. `None` where no row has it.
pub fn of_handler<H: 'static>(_: &H) -> Option<&'static Operation> {
    BY_HANDLER.get(&TypeId::of::<H>()).copied()
}

/// The rows whose path begins with a word and has so many parts: every request looks for its own among them.
static BY_FIRST_WORD: LazyLock<HashMap<(&'static str, usize), Vec<&'static Operation>>> =
    LazyLock::new(|| {
        let mut rows: HashMap<_, Vec<&Operation>> = HashMap::new();
        for operation in all() {
            rows.entry(first_word(operation.path)).or_default().push(operation);
        }
        rows
    });

fn first_word(path: &str) -> (&str, usize) {
    (path.split('/').nth(1).unwrap_or_default(), path.split('/').count())
}

/// The rows at a path, whatever the method.
fn at(path: &str) -> impl Iterator<Item = (&'static Operation, Vec<&str>)> {
    let rows = BY_FIRST_WORD.get(&first_word(path)).into_iter().flatten();
    rows.filter_map(move |operation| Some((*operation, operation.names(path)?)))
}

/// What can be asked at a path; nothing where there is nothing.
pub fn methods_at(path: &str) -> Vec<&'static str> {
    at(path.strip_prefix("/api/v1").unwrap_or_default())
        .map(|(operation, _)| operation.method.name())
        .collect()
}

/// The path of the row that a path is one of, whatever the method.
pub fn template(path: &str) -> Option<&'static str> {
    at(path).next().map(|(operation, _)| operation.path)
}

/// The row for a request, with the names in its path.
fn find(request: &Request) -> Result<(&'static Operation, Vec<&str>), Problem> {
    let path = request.path.strip_prefix("/api/v1").unwrap_or_default();
    let found: Vec<_> = at(path).collect();
    let methods: Vec<&str> = found.iter().map(|(operation, _)| operation.method.name()).collect();
    match found.into_iter().find(|(operation, _)| operation.method == request.method) {
        Some(found) => Ok(found),
        None if methods.is_empty() => {
            Err(Problem::not_found(format!("there is nothing at `{}`", request.path.escape_debug())))
        }
        None => {
            let (path, method) = (request.path.escape_debug(), request.method.name());
            let detail = format!("`{path}` does not take {method}: it takes {}", methods.join(", "));
            Err(Problem { methods, ..Problem::new(405, "NO_SUCH_METHOD", detail) })
        }
    }
}

/// The row for a request, where the caller may ask it: before anything is answered.
pub fn check(world: &World, request: &Request) -> Result<&'static Operation, Problem> {
    let (operation, names) = find(request)?;
    scope::check(world, request, operation, names.first().copied().unwrap_or_default())?;
    Ok(operation)
}

/// The row for a request; a refusal where no row takes it, before anything of it is read.
pub fn operation(request: &Request) -> Result<&'static Operation, Problem> {
    find(request).map(|(operation, _)| operation)
}

/// Whether a request may be held back until something happens.
pub fn may_wait(path: &str, query: &str) -> bool {
    let path = path.strip_prefix("/api/v1").unwrap_or_default();
    query.contains(types::WAIT) && at(path).any(|(operation, _)| operation.waits)
}

pub fn answer(call: &Call) -> Result<Response, Problem> {
    let (operation, taken) = take(call)?;
    let body = match taken {
        Taken::Answered(body) => body,
        Taken::Asks(Asks { ask, then }) => {
            call.submit(ask).and_then(|reply| then(call, reply)).map_err(|problem| operation.told(problem))?
        }
    };
    Ok(Response { status: operation.status, body })
}

/// What the request's row makes of it, where the caller may ask it.
pub fn take(call: &Call) -> Result<(&'static Operation, Taken), Problem> {
    let (operation, names) = find(call.request)?;
    // One that cannot be a key is a slip, also where nothing would be done twice.
    call.key()?;
    scope::check(&call.world(), call.request, operation, names.first().copied().unwrap_or_default())?;
    if operation.method != Method::Get {
        call.apply_settings()?;
    }
    let taken = operation.take(call, &names)?;
    Ok((operation, taken))
}

fn machines(
    _: &Call,
    (): (),
    paging: types::Paging,
    _: Nothing,
) -> Result<types::Page<types::machine::Machine>, Problem> {
    Ok(paging.page(machines::catalog::all().into_iter().map(Into::into).collect()))
}

fn machine(_: &Call, name: String, _: Nothing, _: Nothing) -> Result<types::machine::Machine, Problem> {
    match machines::catalog::find(&name) {
        Some(doc) => Ok(doc.into()),
        None => Err(Problem::not_found(format!("there is no machine `{}`", name.escape_debug()))),
    }
}
