//! The one table of keys. The reader, the errors, the schema, the file of `adj init` and the printed page all
//! use it, so none of them can know a key that the others do not.

use std::borrow::Cow;

use process::sandbox::Namespaces;

use super::{AdapterKind, Credit, Isolation, LandBy, Merge, Network, Plan, SandboxMode, TicketSource};
use kernel::Config;
use kernel::config::{Proposals, Restore, Review, Role};
use kernel::waiting::Severity;
use machines::Wire;
use machines::run::{AgentKind, TURN_LIMIT_MAX, TURN_LIMIT_MIN};

/// A table of `adjutant.toml`.
#[derive(Debug)]
pub struct Section {
    /// `fleet`, or `agents.*` where the second part is a name that the user chooses.
    pub path: &'static str,
    /// What it is for, in one sentence.
    pub about: &'static str,
    /// Its keys, in the order in which they are printed.
    pub keys: &'static [Key],
}

/// One key of a section.
#[derive(Debug)]
pub struct Key {
    /// Within its section; a dotted one is a key of a table inside it.
    pub path: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// What holds if the file does not set it.
    pub usual: Usual,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// What holds if the file does not set a key.
#[derive(Clone, Copy, Debug)]
pub enum Usual {
    /// As it would be written in the file; empty where there is no value by default.
    Written(&'static str),
    /// What the rules have: a number, or seconds. It is written nowhere else.
    Rules(fn(&Config) -> u64),
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text but the empty one.
    Text,
    /// A name in the strict alphabet of names.
    Name,
    /// `Name <mail>`, as git has it.
    Identity,
    /// A git branch.
    Branch,
    /// A path inside the project.
    Path,
    /// A directory anywhere: absolute, from `~/`, or from the project.
    Folder,
    /// A command line for the shell.
    Shell,
    /// How a service is asked for its health: a command line, or `tcp host:port`.
    Health,
    /// One of these words.
    Choice(fn() -> Vec<&'static str>),
    /// `true` or `false`.
    Flag,
    /// A whole number in this range, both ends included.
    Number(u64, u64),
    /// Dollars; kept as millionths.
    Money,
    /// `90s`, `30m`, `2h`, `1d`, or several of them in a row: `1h30m`.
    Time,
    /// An amount of data: `10 GB`, `500 MB`.
    Size,
    /// A program and its arguments.
    Words,
    /// Any texts.
    Texts,
    /// Names of agents.
    Names,
    /// The name of an environment variable.
    Variable,
    /// Names of environment variables.
    Variables,
    /// An address of HTTPS, or of HTTP on this machine.
    Url,
    /// Patterns over tool and argument: `Bash(git push*)`.
    Tools,
    /// Patterns over paths inside the project: `*.env`, `cache/**`.
    Globs,
    /// Absolute paths, or paths that begin with `~/`.
    Places,
    /// TCP ports that need no privilege.
    Ports,
}

/// The most that a count may be. No fleet is that large; a typing error is.
const MANY: u64 = 1_000_000;
const WORKERS_MAX: u64 = 1_000;
const BYTES_MAX: u64 = 1 << 40;
/// Below this a port is root's.
pub const PORT_MIN: u16 = 1024;
/// The port at which a server listens unless it is told another.
pub const SERVER_PORT: u16 = 4600;

fn words<T: Wire>() -> Vec<&'static str> {
    T::ALL.iter().map(|word| word.name()).collect()
}

const fn key(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { path, kind, usual: Usual::Written(default), about }
}

/// A key by which the rules decide: their default is its default.
const fn rule(path: &'static str, kind: Kind, usual: fn(&Config) -> u64, about: &'static str) -> Key {
    Key { path, kind, usual: Usual::Rules(usual), about }
}

/// Every key there is.
#[rustfmt::skip]
pub const SECTIONS: &[Section] = &[
    Section {
        path: "project",
        about: "The repository.",
        keys: &[
            key("main", Kind::Branch, r#""main""#, "The branch that work lands on."),
            key("max_turns", Kind::Number(TURN_LIMIT_MIN as u64, TURN_LIMIT_MAX as u64), "", "Turns that one run may take before a person is asked, for every agent that has no `max_turns` of its own."),
            key("merge", Kind::Choice(words::<Merge>), r#""merge""#, "How a task lands on main: `merge` keeps its commits; `squash` makes them one commit by its agent, with their subjects in the message."),
            key("credit", Kind::Choice(words::<Credit>), r#""committer""#, "How you are named in agents' commits: as committer, as a `Co-authored-by` trailer, or not at all. Merges are always yours."),
        ],
    },
    Section {
        path: "fleet",
        about: "The workers, and what they do without you.",
        keys: &[
            key("agent", Kind::Name, r#""coder""#, "The agent that workers run, by its name in `[agents]`."),
            rule("workers", Kind::Number(0, WORKERS_MAX), |c| c.fleet.workers.into(), "Number of workers that `adj run` starts. Lowering it retires idle workers."),
            key("isolation", Kind::Choice(words::<Isolation>), r#""clone""#, "Whether a task's tree is a clone of its own or a worktree of this repository."),
            key("trees", Kind::Folder, r#""../{project}.agents""#, "Directory of the trees that agents and tests work in: absolute, or relative to the project. `{project}` is the project's name. Read when the fleet starts."),
            rule("max_steps", Kind::Number(1, MANY), |c| c.fleet.max_steps.into(), "Maximum number of steps. Then the checks run, even if the agent does not say that it is done."),
            rule("max_fix_rounds", Kind::Number(0, MANY), |c| c.fleet.max_fix_rounds.into(), "How many times a worker gets the output of failing tests before it is stuck."),
            key("step_timeout", Kind::Time, r#""30m""#, "Timeout of one step of an agent."),
            key("stop_timeout", Kind::Time, r#""30s""#, "How long `adj stop` and Ctrl-C wait for running calls before they end them."),
            key("review", Kind::Choice(words::<Review>), r#""human""#, "Who approves work that passed its checks: you, the architect, or nobody."),
            key("plan", Kind::Choice(words::<Plan>), r#""ticket""#, "Where the work plan comes from. `ticket`: the ticket, or the shipped plan if it has none; `agent`: the agent submits its own in its first step, which replaces that plan."),
            key("restore", Kind::Choice(words::<Restore>), r#""all""#, "When suspended agents continue: when all services are healthy, or each when its own service is."),
        ],
    },
    Section {
        path: "test",
        about: "The tests, which run before a review and before every landing.",
        keys: &[
            key("command", Kind::Shell, "", "The test command. If not set, it is detected from the files in the repository."),
            key("timeout", Kind::Time, r#""15m""#, "Timeout of the tests. Tests that take longer have failed."),
            key("env", Kind::Variables, "[]", "Environment variables that are passed on to tests and hooks; an agent's `env` is not."),
            key("check_main", Kind::Flag, "true", "Whether main must pass its own tests before agents are started."),
        ],
    },
    Section {
        path: "agents.*",
        about: "An agent: a program that works on tasks, under a name that you choose.",
        keys: &[
            key("adapter", Kind::Choice(words::<AdapterKind>), r#""claude""#, "How Adjutant talks to the program."),
            key("command", Kind::Words, "", "The program and its first arguments; for `command` the whole command line, for `script` the scenario file."),
            key("author", Kind::Identity, "", "Who its commits are by; `NAME (Adjutant) <NAME@adjutant.localhost>` when it is absent."),
            key("model", Kind::Text, "", "The model that the program is told to use."),
            key("role", Kind::Choice(words::<Role>), r#""specialist""#, "What it may do on the board, and whether yellow actions ask a person."),
            key("kind", Kind::Choice(words::<AgentKind>), r#""task""#, "The kind of agent, which sets its turns if neither it nor the project has `max_turns`: 50, 100 or 200."),
            key("prompt", Kind::Text, "", "What this agent is told in every task, besides the shipped texts."),
            key("allowed_tools", Kind::Texts, "", "The tools that it may call; absent means every tool, and an empty list none."),
            key("max_turns", Kind::Number(TURN_LIMIT_MIN as u64, TURN_LIMIT_MAX as u64), "", "Turns that one run may take before a person is asked."),
            key("env", Kind::Variables, "[]", "Environment variables that are passed on to it; nothing else of yours is."),
            key("service", Kind::Name, "", "The service that it cannot work without."),
            key("resume", Kind::Flag, "", "Whether its sessions can be taken up again; absent means yes for all but `command`."),
            key("budget_usd", Kind::Money, "", "What all its runs together may cost before a person is asked, in dollars."),
        ],
    },
    Section {
        path: "budget",
        about: "What may be spent, in dollars; absent means no limit.",
        keys: &[
            key("run_usd", Kind::Money, "", "What one run may cost before a person is asked."),
            key("task_usd", Kind::Money, "", "What one task may cost before a person is asked."),
            key("day_usd", Kind::Money, "", "What a day may cost before a person is asked."),
            key("step_usd", Kind::Money, "0.5", "Amount reserved before a step starts. It stays reserved if the step ends without a price and no other step of the same model has one."),
        ],
    },
    Section {
        path: "tickets",
        about: "Where work comes from.",
        keys: &[
            key("source", Kind::Choice(words::<TicketSource>), r#""files""#, "Whether tickets are read from files, as `tk` writes them, or there are none."),
            key("dir", Kind::Path, r#"".tickets""#, "The directory of the ticket files."),
        ],
    },
    Section {
        path: "sandbox",
        about: "What agents and tests can reach of this machine.",
        keys: &[
            key("mode", Kind::Choice(words::<SandboxMode>), r#""auto""#, "`auto` uses what the system supports. `strict` requires all of it, and makes only the system, toolchains, the tree and declared paths readable. `off` uses no sandbox."),
            key("namespaces", Kind::Choice(words::<Namespaces>), r#""auto""#, "Who creates its namespaces. `auto`: adj if the system allows it, else `bwrap`; `own`: only adj; `bubblewrap`: only `bwrap`. The sandbox is the same."),
            key("caches", Kind::Places, "[]", "Directories outside the tree that may be written, such as package caches. A missing one is created if it is in your home. `{uid}` is the number of your user; a path with it must be a directory of your own."),
            key("read", Kind::Places, "[]", "Files and directories that may be read even if they are hidden or the mode is `strict`. Overrides `hide` and the built-in list."),
            key("hide", Kind::Places, "[]", "More files and directories to hide from agents and tests, besides the built-in list of credentials."),
            key("ports", Kind::Ports, "[]", "Fixed TCP ports at which agents, tests and hooks may listen, besides the block of their run and a port that the system chooses (0)."),
            key("network", Kind::Choice(words::<Network>), r#""open""#, "Network access of tests: `open` is all of it, `none` only a loopback of their own. Agents always have network access."),
        ],
    },
    Section {
        path: "policy",
        about: "Which calls ask a person first, and the number of rounds.",
        keys: &[
            key("red", Kind::Tools, "[]", "Calls that ask a person."),
            key("yellow", Kind::Tools, "[]", "Calls that ask a person when an intern makes them."),
            key("green", Kind::Tools, "[]", "Calls that never ask, though a shipped rule would."),
            key("lead_may_complete", Kind::Flag, "false", "Whether an agent that is a lead may move a reviewed task to DONE."),
            rule("max_review_cycles", Kind::Number(0, MANY), |c| c.policy.max_review_cycles.into(), "Reviews that may ask for changes before the task is blocked."),
            rule("max_landing_rounds", Kind::Number(0, MANY), |c| c.policy.max_landing_rounds.into(), "Landings that may fail before the task is blocked. A conflict with a newer main is not counted if the agent had solved the one before."),
            key("cap_in_progress", Kind::Number(1, MANY), "", "At most this many tasks are in progress at once."),
            key("cap_per_agent", Kind::Number(1, MANY), "", "At most this many tasks are held by the workers of one agent."),
            key("proposals", Kind::Choice(words::<Proposals>), r#""ask""#, "What becomes of tasks that agents add: they wait for you (`adj task accept`), are worked on, or are refused."),
        ],
    },
    Section {
        path: "architect",
        about: "The agent that splits specs into tasks, answers questions of other agents, and reviews if `fleet.review` is `architect`.",
        keys: &[
            key("agent", Kind::Name, "", "The agent, by its name in `[agents]`: not the one that workers run, and no intern. Absent: questions and reviews are yours."),
            key("escalation", Kind::Time, r#""2h""#, "How long it waits for you after it has escalated a request; then it stops, and the request is kept."),
            key("raises_budgets", Kind::Flag, "false", "Whether it may raise the budget of a task or run that is used up, once for each task. You are asked either way."),
        ],
    },
    Section {
        path: "prompts",
        about: "Your own texts in place of the shipped ones; `adj prompt show NAME` prints what is in use.",
        keys: &[
            key("init", Kind::Path, "", "The file with the prompt of a task's first step."),
            key("step", Kind::Path, "", "The file with the prompt of every later step."),
            key("test_failure", Kind::Path, "", "The file with the prompt after failed tests."),
            key("merge_conflict", Kind::Path, "", "The file with the prompt after a landing that failed."),
            key("turn", Kind::Path, "", "The file with the prompt of an agent's turn in a room."),
            key("spec", Kind::Path, "", "The file with the prompt of the architect for a spec."),
            key("review", Kind::Path, "", "The file with the prompt of the architect for a review."),
            key("question", Kind::Path, "", "The file with the prompt of the architect for a question."),
            key("budget", Kind::Path, "", "The file with the prompt of the architect for a budget that is used up."),
        ],
    },
    Section {
        path: "landing",
        about: "How approved work gets to main.",
        keys: &[
            key("by", Kind::Choice(words::<LandBy>), r#""merge""#, "Whether Adjutant merges in this repository, or pushes a branch and waits until its pull request is merged."),
            key("remote", Kind::Name, r#""origin""#, "The remote that pull requests are for."),
            key("open", Kind::Shell, r#"'gh pr create --base "$ADJ_MAIN" --head "$ADJ_BRANCH" --title "$ADJ_TITLE" --body-file "$ADJ_BODY_FILE"'"#, "Opens a pull request, as you and outside the sandbox, within `hooks.timeout`; the first address that it prints is shown."),
        ],
    },
    Section {
        path: "hooks",
        about: "Your own command lines, which run at these points; their output is kept.",
        keys: &[
            key("worktree.create", Kind::Shell, "", "Runs in a new tree before the first step, and in the test tree before the tests of main or of a merge. The test tree keeps ignored files between runs. If the hook fails, the step or merge fails. Files that it leaves and git does not ignore are not committed: a folder that it made stays out as a whole, a file until the agent changes it."),
            key("worktree.remove", Kind::Shell, "", "Runs in a tree before it is removed."),
            key("step.before", Kind::Shell, "", "Runs in the tree before each step. If the hook fails, the step fails."),
            key("step.after", Kind::Shell, "", "Runs in the tree after each step."),
            key("notify", Kind::Shell, "", "Runs when a person is needed, with the reason in its environment."),
            key("landed", Kind::Shell, "", "Runs in the project after a task has landed on main, as you and outside the sandbox: push, deploy, tell somebody."),
            key("timeout", Kind::Time, r#""5m""#, "How long a hook may take."),
        ],
    },
    Section {
        path: "notify",
        about: "Notifications without a hook, when a person is needed.",
        keys: &[
            key("desktop", Kind::Flag, "false", "Whether your desktop shows it: by `notify-send`, or `osascript` on macOS."),
            key("severity", Kind::Choice(words::<Severity>), r#""info""#, "The lowest level for which your desktop and `hooks.notify` are notified."),
        ],
    },
    Section {
        path: "webhooks.*",
        about: "An address that gets a POST in JSON when a person is needed, under a name that you choose.",
        keys: &[
            key("url", Kind::Url, "", "Where it is sent."),
            key("secret_env", Kind::Variable, "", "The environment variable that holds the secret that messages are signed with. If not set, they are not signed."),
            key("severity", Kind::Choice(words::<Severity>), r#""info""#, "The lowest level that is sent to it."),
        ],
    },
    Section {
        path: "worktree",
        about: "Files that git ignores and a new tree needs, such as `.env`; `.worktreeinclude` is read too.",
        keys: &[
            key("copy", Kind::Globs, "[]", "Ignored files that are copied into a new tree."),
            key("symlink", Kind::Globs, "[]", "Ignored files and directories that a new tree links to; agents then share them."),
        ],
    },
    Section {
        path: "trash",
        about: "Files of removed trees that git does not have, such as ignored files; `adj clean --trash` deletes them.",
        keys: &[
            key("age", Kind::Time, r#""7d""#, "How long it is kept. Branches of canceled tasks and refs of finished tasks stay in your repository for the same time."),
            key("size", Kind::Size, r#""10 GB""#, "How much is kept in all; the oldest goes first."),
        ],
    },
    Section {
        path: "logs",
        about: "The output of agents, tests and hooks, and the sessions of agents whose task is over.",
        keys: &[
            key("age", Kind::Time, r#""30d""#, "How long it is kept."),
            key("size", Kind::Size, r#""2 GB""#, "How much is kept in all; the oldest goes first."),
        ],
    },
    Section {
        path: "ports",
        about: "The block of ports that each run has for its servers, given in `ADJ_PORT_BASE`.",
        keys: &[
            key("first", Kind::Number(1024, 65_000), "20000", "The first port that is given out."),
            key("block", Kind::Number(1, 1000), "10", "How many ports a run has."),
            key("blocks", Kind::Number(1, 10_000), "1000", "How many blocks there are."),
        ],
    },
    Section {
        path: "services.*",
        about: "A service that agents cannot work without, under a name that you choose.",
        keys: &[
            key("health", Kind::Health, "", "Health check: a command that exits with 0, or `tcp host:port` that accepts a connection."),
            key("timeout", Kind::Time, r#""10s""#, "Timeout of the health check."),
            key("agents", Kind::Names, "[]", "The agents that use it; the same as `service` at each of them."),
        ],
    },
    Section {
        path: "limits",
        about: "Limits on time, size and number.",
        keys: &[
            rule("suspension", Kind::Time, |c| c.limits.suspension_seconds.into(), "How long an agent waits for a service before its run is in error."),
            rule("health_poll", Kind::Time, |c| c.limits.health_poll_seconds.into(), "How often the health of services is checked while one is unavailable."),
            rule("question", Kind::Time, |c| c.limits.question_seconds.into(), "How long a call waits for a person before the step is ended. A question waits as long; then the agent gets the answer with its next step."),
            key("silence", Kind::Time, r#""7m""#, "How long an agent that waits for its model may be silent before the step is ended; Claude Code gives up by itself after 6 minutes."),
            rule("lost_workers", Kind::Number(1, MANY), |c| c.limits.lost_workers.into(), "Workers that one task may lose before it is blocked."),
            rule("outside_lease", Kind::Time, |c| c.limits.outside_lease_seconds.into(), "How long an agent that Adjutant did not start keeps a task without a report."),
            rule("heartbeat", Kind::Time, |c| c.limits.heartbeat_seconds.into(), "How long an agent from outside counts as connected without a heartbeat; it sends one every third of that."),
            rule("standstill", Kind::Time, |c| c.limits.standstill_seconds.into(), "How long a running fleet may make no progress before it reports a standstill: everything waits for you, for a service or for a task that will never be done."),
            rule("checkout", Kind::Time, |c| c.limits.checkout_seconds.into(), "How long a merge that your checkout blocks waits before it is tried again."),
            rule("backoff", Kind::Time, |c| c.limits.backoff_seconds.into(), "How long a worker waits before it repeats a step that failed. The wait doubles with each further failure, up to a minute."),
            key("pull_request", Kind::Time, r#""30s""#, "How often the remote is asked whether pull requests were merged."),
            rule("replies", Kind::Number(1, MANY), |c| c.limits.replies.into(), "Replies of agents in channels that run at once, in all channels together."),
            rule("same_call", Kind::Number(2, MANY), |c| c.limits.same_call.into(), "The same call this many times in a row is a loop."),
            rule("same_step", Kind::Number(2, MANY), |c| c.limits.same_step.into(), "This many steps in a row without DONE, with the same last message and no change in the tree, are a loop."),
            rule("tool_failures", Kind::Number(1, MANY), |c| c.limits.tool_failures.into(), "Failures of one tool in a row that stop a run."),
            rule("effect_tries", Kind::Number(1, MANY), |c| c.limits.effect_tries.into(), "Attempts at an internal operation of Adjutant before a person is told."),
            rule("text_bytes", Kind::Number(256, BYTES_MAX), |c| c.limits.text_bytes as u64, "The longest title, comment or feedback."),
            rule("dependencies", Kind::Number(1, MANY), |c| c.limits.dependencies as u64, "Dependencies of one task."),
            rule("proposals", Kind::Number(0, MANY), |c| c.limits.proposals.into(), "Tasks that one run may propose, and that may follow from one task without you under `policy.proposals = \"accept\"`."),
            rule("kept_answers", Kind::Number(1, 100_000_000), |c| c.limits.kept_answers as u64, "Answers kept for idempotency keys; the oldest go first."),
            key("ticket_bytes", Kind::Number(256, BYTES_MAX), "1048576", "The largest ticket file that is read."),
            key("tickets", Kind::Number(1, 10_000_000), "100000", "Ticket files that are read."),
            key("line_bytes", Kind::Number(1024, BYTES_MAX), "8388608", "The longest line of an agent's output; the rest of it is cut."),
            key("output_bytes", Kind::Number(1024, BYTES_MAX), "268435456", "Maximum output of one step, test run or hook; more ends it."),
            key("test_output_bytes", Kind::Number(1024, BYTES_MAX), "16384", "How much output of failed tests an agent gets."),
            key("copy_files", Kind::Number(1, 10_000_000), "10000", "Ignored files that are copied or linked into a new tree."),
            key("copy_bytes", Kind::Number(1, BYTES_MAX), "1073741824", "Total size of the files copied into a new tree."),
            key("processes", Kind::Number(8, MANY), "4096", "Processes and threads that one step, test run or hook may have at once; more ends it, and blocks the task of an agent."),
            key("memory", Kind::Size, "", "Memory that one step, test run or hook may use, all its processes together; more ends it, and blocks the task of an agent. Half of the machine's when it is absent."),
        ],
    },
];

/// Words that are kept for what is not built yet: the key, the word, and what there is instead. To take one without doing
/// what it says would be worse than to refuse it.
#[rustfmt::skip]
pub const NOT_YET: &[(&str, &str, &str)] = &[
    ("adapter", "acp",   "write adapter = \"claude\" or \"codex\", or adapter = \"command\" for a program that reads its prompt from standard input"),
    ("plan",    "architect", "write plan = \"ticket\", and the plan as a list into the ticket"),
    ("source",  "tk",    "write source = \"files\": the files of `tk` are read and written directly, and `tk` can be used beside it"),
];

impl Key {
    /// The default as it would be written in the file; empty where there is none.
    pub fn default(&self) -> Cow<'static, str> {
        match self.usual {
            Usual::Written(text) => Cow::Borrowed(text),
            Usual::Rules(usual) => {
                let number = usual(&Config::default());
                match self.kind {
                    Kind::Time => Cow::Owned(format!("\"{}\"", time_text(number))),
                    _ => Cow::Owned(number.to_string()),
                }
            }
        }
    }
}

/// Seconds as a text of one unit: `90s`, `15m`, `2h`, `1d`.
fn time_text(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let whole = units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

impl Section {
    /// Whether its second part is a name that the user chooses.
    pub fn is_named(&self) -> bool {
        self.path.ends_with(".*")
    }

    /// Its first part, under which all its tables stand.
    pub fn head(&self) -> &'static str {
        self.path.strip_suffix(".*").unwrap_or(self.path)
    }
}

impl Kind {
    /// What a value must be, to follow "must be".
    pub fn expected(self) -> String {
        match self {
            Kind::Text => "a text that is not empty".to_owned(),
            Kind::Name => "a name: letters, digits, `.`, `_` and `-`".to_owned(),
            Kind::Identity => "a name and a mail address, such as \"Coder <coder@example.com>\"".to_owned(),
            Kind::Branch => "the name of a branch".to_owned(),
            Kind::Path => "a path inside the project".to_owned(),
            Kind::Folder => "the path of a directory, such as \"../{project}.agents\"".to_owned(),
            Kind::Shell => "a command line as one text".to_owned(),
            Kind::Health => "a command line, or `tcp host:port`".to_owned(),
            Kind::Choice(words) => format!("one of {}", quoted(&words())),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Number(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Money => "dollars, such as `2.5`".to_owned(),
            Kind::Time => "a time such as \"90s\", \"30m\", \"2h\" or \"1h30m\"".to_owned(),
            Kind::Size => "a size such as \"10 GB\" or \"500 MB\"".to_owned(),
            Kind::Words => "a list with the program and its arguments, such as [\"claude\"]".to_owned(),
            Kind::Texts => "a list of texts".to_owned(),
            Kind::Names => "a list of names".to_owned(),
            Kind::Variable => "the name of an environment variable".to_owned(),
            Kind::Variables => "a list of names of environment variables".to_owned(),
            Kind::Url => "an https address, or an http address on this machine".to_owned(),
            Kind::Tools => "a list of patterns such as \"Bash(git push*)\"".to_owned(),
            Kind::Globs => "a list of patterns over paths inside the project".to_owned(),
            Kind::Places => "a list of paths that begin with `/` or `~/`".to_owned(),
            Kind::Ports => {
                format!("a list of ports from {PORT_MIN} to 65535, without the server's own ({SERVER_PORT})")
            }
        }
    }
}

/// Words as a message lists them.
pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
