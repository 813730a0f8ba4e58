//! How the machines move each other. Here is the table; the files below it do what it says.
//!
//! Each rule says what it does in every state of each machine that it touches; "nothing" is an answer. An outcome
//! of the world is therefore never refused because of another machine's state.
//!
//! Reading order: `excerpts`, `replies`, `leases`, `sessions`, `release`, `proposals`, `budgets`, `next`, `main_tests`, `architect`,
//! `step`, `standstill`, `tickets`, `landing`, `rooms`, `service`, `fleet`, `claim`, `settle`, `seats`, `recovery`,
//! `outcome`, `people`, `review_comments`, `tasks`, `configure`, `approval`, `carry`, `outside_runs`, `requests`, `presence`. A file uses
//! those before it; a test lists the
//! exceptions.

mod approval;
mod architect;
mod budgets;
mod carry;
mod claim;
mod configure;
mod excerpts;
mod fleet;
mod landing;
mod leases;
mod main_tests;
mod next;
mod outcome;
mod outside_runs;
mod people;
mod presence;
mod proposals;
mod recovery;
mod release;
mod replies;
mod requests;
mod review_comments;
mod rooms;
mod seats;
mod service;
mod sessions;
mod settle;
mod standstill;
mod step;
mod tasks;
mod tickets;

pub use people::undo_branch;
pub use step::LIMIT_PASSED;
pub use tasks::next_task_id;
pub use tickets::knows_ticket;
pub(crate) use {
    approval::decide,
    architect::{
        abandon_request, architect_answers, recover as recover_architect, submit_spec, withdraw_reviews,
    },
    budgets::asked,
    carry::{carry_out_architect, carry_out_run, carry_out_task, carry_out_turn, carry_out_worker},
    configure::configure,
    fleet::{free_name, spawn, start_fleet},
    landing::{approve_by_person, is_at_tip},
    main_tests::{main_seen, test_main_for_person},
    outcome::outcome,
    outside_runs::{open_outside_run, run_event},
    people::{
        assign_by_person, ended_by_person, has_live_process, person_moves, restart, retry, retry_task,
        start_by_person, undo,
    },
    presence::{presence, switch_agent},
    proposals::accept_proposal,
    recovery::recover,
    replies::{task_reply, worker_reply},
    requests::{answer_request, ask_approval, claim_done, make_request, receive_answer, submit_plan},
    review_comments::{drop_draft, keep_draft, send_round},
    rooms::{
        add_member, close_channel, decide_in_room, hear, make_channel, options as room_options, post,
        remove_member, take_turn, task_decided, was_away,
    },
    settle::settle,
    tasks::{add_dependency, add_task, comment, edit_task, remove_dependency},
    tickets::{ticket_follows, ticket_missed, ticket_seen},
};

/// Declares the rules with the table that people read.
macro_rules! rules {
    ($($name:ident: $when:literal => $then:literal;)*) => {
        /// A rule by which one machine moves another.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $($name),* }

        impl Rule {
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            pub fn name(self) -> &'static str {
                match self { $(Rule::$name => stringify!($name)),* }
            }

            pub fn when(self) -> &'static str {
                match self { $(Rule::$name => $when),* }
            }

            pub fn then(self) -> &'static str {
                match self { $(Rule::$name => $then),* }
            }
        }
    };
}

rules! {
    TicketSeen: "an open ticket is seen" => "a task in INBOX with its dependencies, once per opening; not claimed while somebody else has the ticket in_progress";
    TicketFollows: "a task with a ticket is begun, or given back" => "the ticket is written: in_progress, or open again";
    TicketGone: "a ticket's file is gone" => "task: INBOX and ASSIGNED are not claimed, IN_PROGRESS and NEEDS_APPROVAL go to BLOCKED (manual); nothing where it is in REVIEW, blocked, closed or being landed";
    TicketBack: "a ticket's file is back" => "the task is claimable again; what its absence blocked goes on";
    TicketClosed: "a ticket is closed by hand" => "task: INBOX and ASSIGNED go to CANCELED, later ones to BLOCKED (manual); nothing where it is closed, blocked, being landed or offered as a pull request";
    CommentedAtWork: "a person comments on a task while its agent is at work" => "the agent is told at once where its program can hear it, otherwise with its next step";
    TicketChanged: "a ticket's text is changed" => "the agent hears of it with the next step";
    MainTestsAsked: "the fleet runs, something waits to be worked on or landed, and main's own tests are not known under these settings; or somebody wants them again" => "main's tests are run in a fresh tree, once nothing is landing; no task is claimed, no step or gate begun and nothing landed before they are known to pass";
    MainGreen: "main passes its tests" => "claims, steps, gates and landings go on; what was in doubt is the task's own";
    MainRed: "main fails its own tests" => "no agent is started; they are run again when main moves, the settings change, or a person asks or starts the fleet again; a gate or merge that was in doubt is run again when they pass";
    TestsDoubted: "the tests of a gate or merge could not be started, could not be collected, or are red while main is not known to be green; or those of a gate are red and main's were not run since the task was taken up, or since its last step where no fix round is left; or those of a merge are red and somebody else moved main since its own were run" => "nothing is sent back yet: main's tests are run again first; the merge stays in the queue";
    TestsNotRun: "the tests of a task cannot be started, though main's can" => "task BLOCKED (environment) with the output, worker idle; nothing is sent to the agent";
    TaskProposed: "an agent adds a task, or the file of a new ticket comes to main with its work" => "it waits in INBOX for a person, or under `policy.proposals = \"accept\"` is a task like any other; refused past `limits.proposals` of its run, or of all that followed from one task without a person, and under \"refuse\"; a ticket that is in main already waits then";
    OtherTryDone: "one of several tries at a task is DONE" => "the others are CANCELED, but for one that main is about to move to; what they made is kept";
    ProposalAccepted: "a person accepts a proposed task, or gives it to somebody" => "the task is claimable";
    Claimed: "the fleet runs, a worker is idle, and there is work for it" => "the worker takes the lease of, in this order, an IN_PROGRESS task without one, an ASSIGNED task of its agent, a claimable INBOX task; a task that wants an agent is taken by that one's workers only: task to IN_PROGRESS with a plan, worker ready, run START or RESUME";
    HandsChanged: "a task wants an agent that has no idle worker, and the fleet has a place free or an idle worker that no task waits for" => "a worker of that agent is made, in the idle one's place where no other is free; it takes only tasks of its agent";
    TreeReady: "the tree is ready" => "worker working, first step";
    TreeFailed: "the tree cannot be made" => "as a failed step";
    TreeUnmet: "what the settings demand in a tree cannot be put there" => "no step begins: main's tests, which demand the same, are run again, and everything waits while they fail; task BLOCKED (environment) where they pass, or where nobody wants them";
    TurnTaken: "a turn's message is complete" => "run STEP; cost and tokens are added to run, worker, task, agent and day; its calls are audited";
    StepFinished: "a step ended without DONE" => "worker working, next step; in a fresh session where the agent's cannot be taken up again";
    StepFailed: "a step failed" => "run ERROR (recoverable), worker waits 2, 4, 8, 16 s; when due, run RESUME and the next step";
    StepRetried: "a step timed out, or its session was lost" => "the same step once more, with a fresh session; both count as one error";
    LimitPassed: "a step used more than `limits.processes` or `limits.memory`" => "run ERROR (recoverable), task BLOCKED (limit) with the limit, worker idle";
    Outage: "a service is away, or does not accept the credentials" => "run suspended, no error counted; nothing is claimed for its agents; what it answered is kept";
    Restored: "the services are back" => "run restored as it was; the next step where the process is gone";
    ResetReached: "a usage limit is reset" => "the first that is suspended goes on alone, as a probe";
    Probed: "a service is away and nothing is there to ask it with" => "the first that is suspended goes on alone, a run before the architect and both before a channel, after one health poll, then two, four, up to sixteen; the others follow when it has come through. Where nothing is suspended, whoever begins next goes first";
    CredentialsTriedAgain: "the fleet starts, and a service did not accept the credentials" => "the first that is suspended goes on alone at once: the person who starts it may have set them";
    StepHeldBack: "a step would begin with a service that is known to be away" => "run suspended without a try, but for the one that goes first";
    SuspensionExpired: "a suspension lasted too long" => "run in error (recoverable), worker idle, task IN_PROGRESS without a lease and not claimable until the service is back";
    PriceUnknown: "a step ends without a price" => "its tokens are counted, at what those of the same model's priced steps did cost, or of the agent's where it has no model; where there are none, what was set aside for it stays set aside. Budgets count either; neither is a cost";
    BudgetReached: "a budget has no room for another step, which sets `step_usd` aside or the whole budget where that is less" => "run PAUSE, task NEEDS_APPROVAL (budget) with the numbers, worker idle; one question for all where it is the day's or the agent's";
    BudgetAsked: "only a budget keeps an idle worker from a task, and no step under way could give anything back" => "the task's or its run's: task NEEDS_APPROVAL (budget) with the numbers; the day's or the agent's: one question for all, nothing is moved; nothing where a person said no to the same question";
    BudgetRaised: "a budget question is approved" => "the budget is raised by what was said, or by itself once more; the task goes back to where it came from";
    ActionAsked: "a red action is asked for, or a yellow one by an intern" => "the call waits, and is kept whole for the person who decides; run PAUSE, task NEEDS_APPROVAL. One that is too long to be shown is refused";
    ActionDecided: "the action is decided" => "the decision answers the call, run RESUME, task back; where nobody waits any more, it goes into the next prompt. Allowed always, the very same call is answered at once for the rest of the task";
    ActionUnanswered: "a call was not answered in time" => "the step is ended, worker idle; the task goes on waiting";
    ToolDenied: "a tool that is not allowed is called" => "the call is refused before it runs, audited, and counted as a failure of the tool";
    LoopDetected: "the same call, or the same few calls in turn, came `limits.same_call` times (3) with nothing between" => "run PAUSE, task BLOCKED (loop), worker idle";
    StepRepeated: "`limits.same_step` steps (3) in a row ended without DONE, with the same last message and nothing changed in the tree" => "run PAUSE, task BLOCKED (loop), worker idle";
    ToolFailures: "one tool failed `limits.tool_failures` times (3) in a row" => "run PAUSE, task BLOCKED (tool_failures), worker idle";
    TurnLimit: "the turn limit is reached" => "run PAUSE, task NEEDS_APPROVAL (turn_limit) with continue, complete and abort; worker idle";
    TurnLimitContinued: "continue at the turn limit" => "the limit is raised; the next worker resumes the run, or it is resumed at once where its agent runs outside";
    TurnLimitCompleted: "complete at the turn limit" => "run RESUME and COMPLETE in one commit; the gate decides without a worker";
    TurnLimitAborted: "abort at the turn limit" => "run ABORT, task BLOCKED (manual) or CANCELED";
    ClaimedDone: "DONE in the final message, a completion claimed during the step, or no steps left" => "worker done, gate";
    GateGreen: "the gate is green" => "task REVIEW with deliverable, checklist and cost; run COMPLETE; worker idle";
    PersonNeeded: "the gate is green, and the agent ran out of steps, no tests were found, or the branch changes adjutant.toml or .worktreeinclude; or nothing was changed; or the task was handed in without the gate" => "a person must look at it, whatever the policy";
    GateRed: "the gate is red" => "worker working with the output, or stuck when no fix is left";
    GateConflict: "the branch was sent back because of a conflict with main, and the gate finds that it conflicts still" => "nothing is tested; a landing round is counted; worker working with the files, or stuck when no fix is left; BLOCKED (landing) when no round is left";
    GateEmpty: "the diff is empty" => "one fix round that says so; then REVIEW by a person";
    ReviewedByPolicy: "in REVIEW under policy auto, also where the policy becomes that while the task waits" => "the policy approves, unless the work needs a person";
    Approved: "approved" => "the approval names the tip; the task joins the merge queue, or is DONE where there is nothing to land";
    ChangesAsked: "changes are asked for" => "task IN_PROGRESS without a lease, or BLOCKED past the limit; the approval is void and the task leaves the queue";
    LandingStarted: "a task is first in the queue and nothing is landing" => "main is merged with the approved tip and tested";
    LandingFailed: "the merge conflicts, or is red" => "task IN_PROGRESS with the files or output, or BLOCKED (landing) the fourth time; no review cycle. A failure is not counted where the branch has solved what the landing before failed of";
    LandingWritten: "the merge is green" => "tip, merge commit and old main are written down, then main is moved";
    LandingRepeated: "main was moved by someone else" => "the merge is made and tested again";
    LandingHeldUp: "the user's checkout is in the way" => "the landing waits, says which files, and holds up nobody";
    PullRequestOpened: "the settings land by pull request, and the merge is green" => "the branch is on the remote and its pull request open, once per task; the task waits in REVIEW until the remote's main has the change, then main is moved to it";
    RemoteInTheWay: "the remote does not answer, or a pull request cannot be opened" => "the landing waits, says why, is tried again, and holds up nobody";
    Landed: "the merge landed" => "task DONE with its completion record, the user's hook run where there is one, ticket closed, tree removed, branch deleted, dependents claimable";
    Stuck: "a worker is stuck" => "task BLOCKED (stuck) with the last error, lease given back; it stays for a person to see and takes no place in the fleet: another worker is made, if there is work for it";
    Retired: "the fleet has more workers of its own than `workers`, and one is idle" => "the last made of the idle ones is gone; a person's own workers and stuck ones stay";
    Retried: "a person tries a stuck worker or a task that failed again" => "task BLOCKED to IN_PROGRESS; with a stuck worker, lease to the same worker and the next step at once, otherwise to the next worker that is free; a step or a landing that waits for its next try has it now; whoever is suspended goes first, also the architect and an agent in a channel";
    Restarted: "a person starts a task over" => "run ABORT where it lives, worker idle, question settled, dequeued; task ASSIGNED, claimable when its work is saved to a ref; then a new branch on main, tree and session";
    Undone: "a person undoes a task that landed" => "a new task with the reverting commit, approved by that person, joins the merge queue: it is tested and landed like any other";
    EndedByPerson: "kill, cleanup or clean" => "run ABORT, task BLOCKED (manual), work saved, and the next agent is told where; worker idle or gone";
    Lost: "a worker or runner is lost" => "run ERROR, lease ended, task stays IN_PROGRESS; the third time BLOCKED (lost_workers)";
    Recovered: "the owner starts again" => "each worker goes on, is repeated, or gives its task back, by what was found of it";
    Canceled: "task CANCELED" => "run ABORT where it lives, waiting call denied, worker idle, tree saved and removed, dequeued, ticket closed";
    TakenOut: "a person takes a task out of a worker's hands" => "run COMPLETE, PAUSE or ABORT, worker idle";
    Escalated: "a task is escalated, or its run paused by a person" => "run PAUSE, or ABORT before its first turn, task NEEDS_APPROVAL (escalation), worker idle";
    QuestionAsked: "an agent at work or a person asks a question" => "it waits for a person, and nothing is moved; no further step of the run begins before it is answered";
    QuestionAnswered: "a person answers it" => "once; whoever waits for it has it at once, otherwise the next step's prompt tells it; a run that waited for it goes on";
    PlanSubmitted: "an agent at work submits its plan, and the settings leave the plan to agents" => "it takes the place of the plan that the task was begun with, and is posted as a comment";
    AgentConnected: "an agent that runs outside connects" => "its places in channels are IDLE; it is there as long as its heartbeats come, which keep its leases too";
    AgentGone: "an agent that runs outside disconnects, or misses its heartbeats" => "its places in channels are OFFLINE; run ERROR, lease ended, task stays IN_PROGRESS; where it was silent, as a lost worker";
    AgentDisabled: "a person disables an agent" => "its places in channels are OFFLINE, and what it says there is ended; it takes no further task, opens no run, and the architect's requests wait; a task that it is at work on goes on";
    AgentEnabled: "a person enables an agent again" => "where it is there, its places in channels are IDLE; it takes tasks again";
    MemberAdded: "an agent is added to a channel" => "it is IDLE and then QUEUED where it is there, at the end of the ring; one that is away joins when it connects; one that crashed or came back is added again by a person";
    MessagePosted: "a person says something in a channel, or the agent whose turn it is" => "it is kept with a receipt for each member; an agent's own words wake nobody";
    MessageInjected: "a person says something while a hosted agent speaks, in mode inject or parallel" => "the agent's program is told at once where it can hear it, otherwise with its next turn";
    TurnInterrupted: "a person says something while an agent has the turn, in mode interrupt" => "turn WAITING until the person gives it back or takes it away, or the wait is over; what a hosted agent was saying is ended, and is begun again with what the person said";
    RoomRests: "a full cycle went by in which nobody posted, and nobody whose time was over has another turn to come" => "nobody is given the turn before somebody says something";
    TurnExcused: "the time of a turn or of a wait is over before its agent said anything, for the first time since the last message" => "it is not silence yet: the agent has one more turn before the room rests";
    RoomStalls: "nobody in the queue of a channel can be given the turn: the fleet does not run, a service is away, or a budget has no room" => "the channel waits, and goes on as soon as one of them can; a person is asked about the budget";
    RoomWoken: "a person says something in a channel that rests" => "the next in the ring has the turn; agents that rested alone join it again";
    ReplyBegun: "a hosted agent has the turn, and there is something that it has not heard" => "its program is started with what was said since its last turn";
    NothingToSay: "a hosted agent has the turn, and nothing was said since its last" => "TURN_COMPLETE (auto); nothing is spent";
    ReplyPosted: "a hosted agent's reply ends, and it has posted nothing itself" => "its last message is posted for it; the turn ends with it where the channel's turns do, or where it says TURN_COMPLETE";
    ReplyRetried: "the session of a hosted agent is lost" => "the same once more, in a fresh session";
    ReplySpent: "a hosted agent uses the turns or the money that it has for a reply, and is not finished" => "what it said itself is posted, the room is told that it is not all, and the turn ends; from the architect it is no answer, and it is asked again";
    MemberCrashed: "a hosted agent's program ends badly in its turn" => "turn OFFLINE, announced, the next has the turn; a fresh session when it is added again";
    MemberSuspended: "a service is away for a hosted agent in its turn" => "turn WAITING (service) for as long as a suspension lasts; it holds the turn";
    MemberRestored: "the service is back" => "turn ACTIVE with the time that it had left, and its reply is begun again";
    SilenceDetected: "`autoDetectTurnEnd`, and the agent that has the turn posts nothing more for `autoDetectSilenceSeconds`" => "TURN_COMPLETE (auto)";
    TurnShifted: "Adjutant was not there in the middle of a turn or a wait" => "it goes on with the time that it had left";
    DecidedInRoom: "a review room decides, by a member in its turn or by a person" => "the task is approved or sent back, as its own table lets whoever decides; the room is told and closed";
    SpecRead: "a spec is a list of tasks" => "they are read by rules and put on the board with their dependencies; nobody is asked";
    SpecApproved: "the architect splits a spec" => "its stories become tasks with their dependencies, infrastructure first; architect DISPATCHING";
    SpecSentBack: "the architect wants a spec changed" => "its author reads why, and submits it again as a new version";
    SpecDone: "all stories of a spec are over" => "the spec is done";
    ArchitectAsked: "a question of an agent, a plan, finished work under policy architect, a spec, a budget, or a story that is over" => "it joins the architect's queue, in order of arrival";
    RequestTaken: "the architect has nothing in hand, and something waits for it" => "architect SETUP, where its workspace is brought up to date, or REQUEST";
    RequestWithdrawn: "what the architect was asked to review is decided elsewhere, or has changed" => "it is not asked any more; what it was saying is ended";
    ArchitectBegun: "the request in hand needs judgement" => "the architect's agent is started, with what is known of it and tools that read";
    PlanApproved: "a plan was submitted" => "approved at once, and stored";
    MergeServed: "a story is over" => "architect REQUEST and DISPATCHING; what depended on it is claimable";
    StoriesDispatched: "stories are open" => "architect MONITORING; those whose dependencies are done are claimable";
    ArchitectApproved: "the architect approves finished work" => "as an approval by a person, for the tip that it looked at and for no other";
    ArchitectSentBack: "the architect asks for changes" => "task IN_PROGRESS without a lease, with what it said; the limit of review cycles holds";
    ArchitectRefused: "what the architect says is no answer: a cycle among stories, no verdict, the wrong tool, no tool where its program has them, or its program failed" => "it is told why and asked again, three times at most; then a person is asked";
    ReplyClosed: "a reply of the architect ends after it has decided, after somebody else has settled what it was about, or after the settings named another architect" => "its last words decide nothing and use up no try; the request in hand starts a reply of its own";
    ArchitectEscalated: "the architect cannot answer" => "architect ESCALATED: a person answers, or gives it up";
    PersonAnswered: "a person answers what the architect could not" => "architect REQUEST again with what the person says; a question is answered by it";
    PersonAbandoned: "a person gives up what was asked" => "architect ERROR where it had it in hand; nobody waits for it any more";
    EscalationExpired: "nobody answers within `architect.escalation`" => "architect ERROR; the request stays open for a person";
    ArchitectFailed: "the architect's workspace cannot be made, it gives up, or the settings have it no longer" => "architect ERROR with the cause; everything that was asked is kept";
    ArchitectRecovered: "a person, or a fleet that starts, lets the architect go on" => "architect WAITING; it takes up what waits";
    ArchitectSuspended: "a service is away for the architect" => "architect suspended, nothing counted; it goes on where it was";
    ArchitectRestored: "the service is back" => "architect as it was; the request in hand is taken up again";
    StoodStill: "the fleet runs and does nothing for `limits.standstill`, and what is left waits for a person, a service or a task that will never be done" => "it is said once, with all that it waits for; again where that is not the same any more, and by a fleet that is started anew";
    OutsideRun: "an agent that runs outside starts or ends a run, or a person lets it go on" => "it takes the lease, or gives it back; what a person decided resumes its run and gives it the lease again";
}
