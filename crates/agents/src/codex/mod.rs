//! `codex`: OpenAI's Codex CLI by its app-server, one process per step, JSON-RPC over both pipes.
//!
//! Invariants: the program asks before every command and file change, and one without a question ends the
//! step; the prompt is sent only after the program has confirmed that it asks; no setting, rule, hook or server of the
//! repository or of the task's own directory is loaded. `docs/agents.md` has the reasons.

mod reader;
#[cfg(debug_assertions)]
pub mod replay;
#[cfg(debug_assertions)]
mod replay_tools;
mod wire;

use super::{Adapter, AgentError, Input, Launch, Login, Order, Reader, Stdin, Sweep};
use crate::json::fit;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wire::{Answer, Approval, Decision, Message, OwnRequest, RpcError, TextInput, ThreadParams, TurnParams};

/// The variable by which the program gets its key. Its app-server reads none by itself: the provider below names it.
const KEY: &str = "OPENAI_API_KEY";
/// The provider that the program is told to use.
const PROVIDER: &str = "adjutant";
/// Where that provider is, unless the settings' command says otherwise.
const ADDRESS: &str = "https://api.openai.com/v1";
/// The policy under which it asks for everything.
const ASKS: &str = "untrusted";

/// The program's own tries at a service: of one request, and of one answer. The fleet waits on from there.
const REQUEST_RETRIES: u32 = 2;
const STREAM_RETRIES: u32 = 3;

/// What it calls our own server of tools.
const SERVER: &str = "adjutant";
/// How long it waits for a tool of ours: a person may take long to answer, and the step's own limit holds.
const TOOL_TIMEOUT_SECONDS: u32 = 86_400;

/// Directories and files of conversations that are looked at: a session has one for each day on which it was begun.
const ENTRIES_MAX: usize = 1000;

/// Features of the program that are switched off.
const OFF: &[&str] = &[
    "apps",
    "goals",
    "hooks",
    "memories",
    "multi_agent",
    // Without it, and without a network, each process stays for seconds after its last word.
    "plugins",
    "unbounded_connection_retries",
    // What is typed into a running command is not asked for.
    "unified_exec_tty",
];

/// What may not stand in the settings' command: each would let it act without being asked.
const UNGATED: &[&str] = &[
    "--approve-for-me",
    "--ask-for-approval",
    "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-bypass-hook-trust",
    "--enable",
    "--full-auto",
    "--remote",
    "--sandbox",
    "--search",
    "--yolo",
    "-a",
    "-s",
];
/// Nor may its settings that do the same.
const UNGATED_KEYS: &[&str] = &[
    "approval_policy",
    "approvals_reviewer",
    "default_permissions",
    "features",
    "hooks",
    "mcp_servers",
    "permissions",
    "projects",
    "sandbox_mode",
];

pub struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn resumable(&self) -> bool {
        true
    }

    fn launch(&self, order: &Order) -> Result<Launch, AgentError> {
        super::check_session(&order.session)?;
        if order.command.is_empty() {
            return Err(AgentError::NoCommand { adapter: self.name() });
        }
        if let Some(flag) = ungated(&order.command[1..]) {
            return Err(AgentError::Ungated { adapter: self.name(), flag });
        }
        let text_of = |path: &Path| super::path_text(self.name(), path);
        // One for each session, so that the program's own name of the conversation is found by ours.
        let home = order.private.join(format!("codex-{}", order.session));
        let mut argv = order.command.clone();
        argv.push("app-server".to_owned());
        for feature in OFF {
            argv.extend(["--disable".to_owned(), (*feature).to_owned()]);
        }
        Ok(Launch {
            argv,
            env: vec![
                ("CODEX_HOME".to_owned(), text_of(&home)?),
                ("TMPDIR".to_owned(), text_of(&order.temp)?),
            ],
            files: vec![(home.join("config.toml"), config(order)?.into_bytes())],
            directories: vec![home.clone()],
            stdin: Stdin::Open(first(order, thread_in(&home))),
            protocol: self.name(),
            // Rules, hooks and settings that an agent left there would be taken up unasked.
            swept: Some(Sweep { directory: home, but: &["sessions"] }),
        })
    }

    fn reader(&self, order: &Order) -> Box<dyn Reader> {
        Box::new(reader::Codex::new(order))
    }

    fn program(&self) -> Option<&'static str> {
        Some("codex")
    }

    fn home(&self) -> &'static [&'static str] {
        &["~/.codex"]
    }

    fn has_tools(&self) -> bool {
        true
    }

    fn variables(&self) -> &'static [&'static str] {
        &[KEY]
    }

    /// Its own login is in the user's home, where it cannot look.
    fn login(&self) -> Option<&'static dyn Login> {
        Some(&Codex)
    }

    fn deny(&self, line: &[u8], reason: &str) -> Option<Vec<u8>> {
        let answer = match serde_json::from_slice(line) {
            Ok(Message::Request(message)) => match request(message) {
                Request::Question(question) => refusal(&question, reason),
                Request::Other { id, .. } => unsupported(&id),
            },
            Ok(_) => return None,
            Err(_) => decision(&cut_question(line)?, false),
        };
        Some(answer.into_bytes())
    }
}

impl Login for Codex {
    fn refused(&self, agent: &str, passed: &[String], is_set: &dyn Fn(&str) -> bool) -> String {
        match (passed.iter().any(|name| name == KEY), is_set(KEY)) {
            (true, true) => format!("{KEY} is set, but its value is not accepted"),
            (true, false) => {
                format!(
                    "`agents.{agent}.env` passes {KEY} on, but it is not set: set it and start `adj run` again"
                )
            }
            (false, _) => format!("pass a key on with `env = [\"{KEY}\"]` in `[agents.{agent}]`"),
        }
    }

    fn variable(&self) -> &'static str {
        KEY
    }

    fn missing_hint(&self, agent: &str) -> String {
        format!("set {KEY}, or `adj login codex`, and name it in [agents.{agent}] env")
    }
}

/// The first argument that would switch the questions off.
fn ungated(arguments: &[String]) -> Option<String> {
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
            _ => (argument, None),
        };
        let setting = match flag {
            "-c" | "--config" => value.or_else(|| arguments.next()),
            _ => flag.strip_prefix("-c").filter(|rest| !rest.is_empty()),
        };
        if let Some(setting) = setting {
            let key = setting.trim_start_matches('=').split('=').next().unwrap_or_default();
            let top = key.split('.').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            if UNGATED_KEYS.contains(&top) {
                return Some(format!("-c {}", key.trim()));
            }
        }
        // A value can stand right behind a short flag.
        let short = flag.get(..2).filter(|_| !flag.starts_with("--")).unwrap_or(flag);
        if let Some(known) = UNGATED.iter().find(|&&known| known == flag || known == short) {
            return Some((*known).to_owned());
        }
    }
    None
}

/// The whole of the program's settings. What is quoted as JSON is quoted as TOML too.
fn config(order: &Order) -> Result<String, AgentError> {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut lines = vec![
        format!("model_provider = {}", quoted(PROVIDER)),
        "check_for_update_on_startup = false".to_owned(),
        // Searches are made by the service, without a question.
        "web_search = \"disabled\"".to_owned(),
        // They come with the first line of input, read without following links.
        "project_doc_max_bytes = 0".to_owned(),
    ];
    if let Some(model) = &order.model {
        lines.push(format!("model = {}", quoted(model)));
    }
    lines.push("[analytics]\nenabled = false".to_owned());
    lines.push(format!(
        "[model_providers.{PROVIDER}]\nname = \"OpenAI\"\nbase_url = {}\nwire_api = \"responses\"\nenv_key = {}\n\
         request_max_retries = {REQUEST_RETRIES}\nstream_max_retries = {STREAM_RETRIES}",
        quoted(ADDRESS),
        quoted(KEY),
    ));
    // What it runs needs what it has, such as `ADJ_TOKEN`, but for the key.
    lines.push(format!(
        "[shell_environment_policy]\ninherit = \"all\"\nignore_default_excludes = true\nexclude = [{}]",
        quoted(KEY),
    ));
    // Our own server and no other. It is told the names of variables: what they hold stands nowhere.
    lines.push(format!(
        "[mcp_servers.{SERVER}]\ncommand = {}\nargs = [\"mcp\"]\nenv_vars = [\"ADJ_TOKEN\", \"ADJ_SERVER\"]\n\
         default_tools_approval_mode = \"approve\"\ntool_timeout_sec = {TOOL_TIMEOUT_SECONDS}",
        quoted(&super::path_text("codex", &order.adj)?),
    ));
    // Else it trusts the tree by itself, and runs what `.codex` in it names.
    let mut trees = vec![order.tree.clone()];
    trees.extend(order.tree.canonicalize().ok().filter(|real| *real != order.tree));
    for tree in trees {
        let tree = super::path_text("codex", &tree)?;
        lines.push(format!("[projects.{}]\ntrust_level = \"untrusted\"", quoted(&tree)));
    }
    Ok(lines.join("\n") + "\n")
}

/// The first lines: who we are, and which conversation it is to be.
fn first(order: &Order, thread: Option<String>) -> Input {
    // A first start that came to nothing may have begun the conversation. One that is not there is asked for all the same:
    // the program then says so.
    let thread = thread.or_else(|| order.resume.then(|| order.session.to_string()));
    let params = ThreadParams {
        cwd: &order.tree.to_string_lossy(),
        approval_policy: ASKS,
        approvals_reviewer: "user",
        // Ours is around it.
        sandbox: "danger-full-access",
        developer_instructions: super::system_prompt(order, ["AGENTS.md", "CLAUDE.md"], Some(super::TOOLS)),
        thread_id: thread.as_deref(),
        exclude_turns: thread.is_some().then_some(true),
    };
    let method = if thread.is_some() { "thread/resume" } else { "thread/start" };
    let client = json!({ "name": "adjutant", "title": "Adjutant", "version": env!("CARGO_PKG_VERSION") });
    // Nothing here reads them, and each repeats what another line says.
    let unread = ["item/reasoning/textDelta", "turn/diff/updated", "thread/started"];
    let hello = json!({ "clientInfo": client, "capabilities": { "optOutNotificationMethods": unread } });
    let lines = [
        call("initialize", "initialize", hello),
        json!({ "method": "initialized" }).to_string(),
        call("thread", method, params),
    ];
    Input { id: "initialize".to_owned(), text: lines.join("\n") + "\n" }
}

/// A request of ours.
fn call(id: &str, method: &str, params: impl Serialize) -> String {
    wire::line(&OwnRequest { method, id, params })
}

/// What the program calls the conversation of this home: the first that was begun there, as those of subagents come later.
fn thread_in(home: &Path) -> Option<String> {
    let mut left = ENTRIES_MAX;
    let mut below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        // A link leads elsewhere, and is not followed.
        let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())).take(left);
        let mut paths: Vec<PathBuf> = real.map(|entry| entry.path()).collect();
        left = left.saturating_sub(paths.len());
        paths.sort();
        paths
    };
    let mut folders = vec![home.join("sessions")];
    // By year, month and day.
    for _ in 0..3 {
        folders = folders.iter().flat_map(|folder| below(folder)).collect();
    }
    folders.iter().flat_map(|folder| below(folder)).find_map(|file| {
        let name = file.file_name()?.to_str()?;
        let stem = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let id = stem.get(stem.len().checked_sub(36)?..)?;
        let good = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        id.bytes().all(good).then(|| id.to_owned())
    })
}

/// A request of the program that waits for yes or no.
#[derive(Clone, Debug)]
struct Question {
    /// As it is told, and as it is answered.
    id: Value,
    thread: String,
    turn: String,
    item: String,
    about: About,
}

/// What a question is about.
#[derive(Clone, Debug)]
enum About {
    /// The command, and where it runs.
    Command { command: String, cwd: String },
    /// What was said of the item before.
    Files,
    /// Something that nobody has seen so far, whole.
    Unknown(serde_json::Map<String, Value>),
}

/// What the program asks of us.
enum Request {
    Question(Question),
    /// Something that we never offered.
    Other {
        id: Value,
        method: String,
    },
}

/// Tells what a request of the program asks.
fn request(wire::Request { id, method, params }: wire::Request) -> Request {
    let whole = |params: Value| if let Value::Object(whole) = params { whole } else { Default::default() };
    let approval: Approval = fit(params.clone());
    let about = match method.as_str() {
        "item/commandExecution/requestApproval" => match (approval.command, approval.kind) {
            (Some(command), kind) if kind.as_ref().is_none_or(|kind| kind == "command") => {
                About::Command { command, cwd: approval.cwd }
            }
            _ => About::Unknown(whole(params)),
        },
        // One that asks for a whole directory is for more than the change that is seen.
        "item/fileChange/requestApproval" if approval.grant_root.is_none() => About::Files,
        "item/fileChange/requestApproval" => About::Unknown(whole(params)),
        _ => return Request::Other { id, method },
    };
    let (thread, turn, item) = (approval.thread, approval.turn, approval.item);
    Request::Question(Question { id, thread, turn, item, about })
}

/// The number of a question whose line was too long to be read. What comes before its `params` is the program's own.
fn cut_question(line: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    let (before, _) = text.split_once("\"params\":")?;
    if !before.contains("/requestApproval\"") {
        return None;
    }
    let (_, id) = before.split_once("\"id\":")?;
    let id = id.split(',').next()?.trim();
    serde_json::from_str(id).ok()
}

/// Yes or no to a question, for this time alone.
fn decision(id: &Value, allow: bool) -> String {
    let decision = if allow { "accept" } else { "decline" };
    wire::line(&Answer::Decision { id, result: Decision { decision } }) + "\n"
}

/// No, and why: the answer has no place for a reason, so that it follows as a message.
fn refusal(question: &Question, reason: &str) -> String {
    let no = decision(&question.id, false);
    if reason.is_empty() || question.turn.is_empty() {
        return no;
    }
    let text = format!("The call that was refused just now: {reason}");
    let say = steer("reason", &question.thread, &question.turn, &text);
    format!("{no}{say}\n")
}

/// A message to a turn that is under way.
fn steer(id: &str, thread: &str, turn: &str, text: &str) -> String {
    let input = [TextInput { text }];
    call(id, "turn/steer", TurnParams { thread_id: thread, expected_turn_id: Some(turn), input })
}

/// What is answered to a request that we never offered.
fn unsupported(id: &Value) -> String {
    let error = RpcError { code: -32601, message: "not supported" };
    wire::line(&Answer::Error { id, error }) + "\n"
}

#[cfg(test)]
mod tests;
