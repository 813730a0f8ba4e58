//! `claude`: Claude Code without a screen, one process per step, both directions on pipes.
//!
//! Invariants: the program asks before every tool call, by a hook that blocks if it fails; the prompt is sent only
//! after the program has confirmed the hook; no setting, hook or server of the repository or of
//! the task's own directory is loaded. `docs/agents.md` has the reasons.

mod reader;
#[cfg(debug_assertions)]
pub mod replay;
mod wire;

use super::{Adapter, AgentError, Input, Launch, Login, Order, PromptKind, Reader, Stdin};
use crate::json::fit;
use serde_json::{Map, Value, json};
use std::path::Path;
use wire::{
    Answer, AnswerFields, ControlRequest, Hook, HookInput, HookOutput, Hooks, Line, OwnRequest, Permission,
    Sent,
};

/// The variables by which the program gets its credentials.
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"];
/// The name of its language, for [`super::deny`].
pub const PROTOCOL: &str = "claude";

/// The program's own tries at a service, with 18 s between the first and the last. The fleet waits on from there.
const RETRIES: &str = "5";
/// How long a question may wait for its answer, in seconds. The kernel's own limit is much shorter.
const QUESTION_SECONDS: u32 = 86_400;
/// How long the program waits for us to take note of a result, in seconds.
const NOTE_SECONDS: u32 = 30;

/// How long it waits for a tool of ours, in milliseconds: a person may take long to answer, and the step's own limit holds.
const TOOL_TIMEOUT_MS: &str = "86400000";

/// What an agent is told of the tools that speaks in a room.
const TOOLS_IN_ROOM: &str = "# Tools of Adjutant\n\nYou speak in a room of Adjutant. Your last message is posted there for you; the tools \
    `mcp__adjutant__*` are for more than that: `channel_read` shows what was said before, `channel_post` posts at once and in \
    place of your last message, `turn_complete` ends your turn, `turn_wait` keeps it while you wait for something.";

/// What the architect is told of the tools.
const TOOLS_OF_ARCHITECT: &str = "# Tools of Adjutant\n\nYou are the architect of a project. Answer what you are asked by one of the tools \
    `mcp__adjutant__*`: `submit_stories` or `spec_feedback` for a spec, `review_decision` for a review or a budget, `answer` for a \
    question, `escalate` where only a person can decide. End your reply when one of them was accepted.";

/// Directories of conversations that are looked into: a task has one for its tree.
const PROJECTS_MAX: usize = 100;

/// What may not stand in the settings' command: each would let it act without being asked.
const UNGATED: &[&str] = &[
    "--allow-dangerously-skip-permissions",
    "--background",
    "--bare",
    "--bg",
    "--dangerously-skip-permissions",
    "--permission-mode",
    "--permission-prompt-tool",
    "--safe-mode",
    "--setting-sources",
    "--settings",
];

pub struct Claude;

impl Adapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn resumable(&self) -> bool {
        true
    }

    fn launch(&self, order: &Order) -> Result<Launch, AgentError> {
        super::check_session(&order.session)?;
        if order.command.is_empty() {
            return Err(AgentError::NoCommand { adapter: self.name() });
        }
        for argument in &order.command[1..] {
            let flag = argument.split('=').next().unwrap_or_default();
            if UNGATED.contains(&flag) {
                return Err(AgentError::Ungated { adapter: self.name(), flag: flag.to_owned() });
            }
        }
        let text_of = |path: &Path| super::path_text(self.name(), path);
        let config = order.private.join("claude");

        let mut argv = order.command.clone();
        let mut add = |arguments: &[&str]| argv.extend(arguments.iter().map(|&argument| argument.to_owned()));
        add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        // A first start that came to nothing may have taken the id, and then only resuming it works.
        let resume = order.resume || has_session(&config, &order.session);
        add(&[if resume { "--resume" } else { "--session-id" }, &order.session]);
        // Partial messages carry the exact usage and are the sign of life while a long message is written.
        add(&["--include-partial-messages", "--replay-user-messages"]);
        // What the hook does not allow is asked of nobody, and so refused.
        add(&["--permission-mode", "default"]);
        // Not even the user's settings: they would be read from the task's directory, where the agent can write.
        let servers = order.private.join("claude-mcp.json");
        add(&["--setting-sources", "", "--strict-mcp-config", "--mcp-config", &text_of(&servers)?]);
        add(&["--max-turns", &order.turns_left.max(1).to_string()]);
        if let Some(budget) = order.budget_usd {
            add(&["--max-budget-usd", &format!("{:.4}", budget.max(0.01))]);
        }
        if let Some(model) = &order.model {
            add(&["--model", model]);
        }
        if let Some(tools) = &order.allowed_tools {
            let own: Vec<&str> =
                tools.iter().map(|tool| tool.as_str()).filter(|tool| !tool.starts_with("mcp__")).collect();
            add(&["--tools", &own.join(",")]);
        }
        let mut files = vec![(servers, mcp_servers(&text_of(&order.adj)?).into_bytes())];
        let tools = match order.kind {
            PromptKind::Turn => TOOLS_IN_ROOM,
            PromptKind::Spec | PromptKind::Review | PromptKind::Question | PromptKind::Budget => {
                TOOLS_OF_ARCHITECT
            }
            PromptKind::Init | PromptKind::Step | PromptKind::TestFailure | PromptKind::MergeConflict => {
                super::TOOLS
            }
        };
        if let Some(system) = super::system_prompt(order, ["CLAUDE.md", "AGENTS.md"], Some(tools)) {
            let file = order.private.join("claude-system.md");
            add(&["--append-system-prompt-file", &text_of(&file)?]);
            files.push((file, system.into_bytes()));
        }

        let mut env = vec![
            ("CLAUDE_CONFIG_DIR".to_owned(), text_of(&config)?),
            ("TMPDIR".to_owned(), text_of(&order.temp)?),
            ("CLAUDE_CODE_MAX_RETRIES".to_owned(), RETRIES.to_owned()),
            ("MCP_TOOL_TIMEOUT".to_owned(), TOOL_TIMEOUT_MS.to_owned()),
        ];
        let on = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
            // Then there is one result for one prompt.
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
            // Else all trees of a repository share a memory.
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
        ];
        env.extend(on.map(|name| (name.to_owned(), "1".to_owned())));
        Ok(Launch {
            argv,
            env,
            files,
            directories: vec![config],
            stdin: Stdin::Open(initialize()),
            swept: None,
            protocol: PROTOCOL,
        })
    }

    fn reader(&self, order: &Order) -> Box<dyn Reader> {
        Box::new(reader::Claude::new(order))
    }

    fn program(&self) -> Option<&'static str> {
        Some("claude")
    }

    fn home(&self) -> &'static [&'static str] {
        &["~/.claude/.credentials.json", "~/.claude.json", "~/.claude/projects", "~/.claude/history.jsonl"]
    }

    fn has_tools(&self) -> bool {
        true
    }

    fn variables(&self) -> &'static [&'static str] {
        &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"]
    }

    /// Its own login is in the user's home, where it cannot look.
    fn login(&self) -> Option<&'static dyn Login> {
        Some(&Claude)
    }

    fn deny(&self, line: &[u8], reason: &str) -> Option<Vec<u8>> {
        deny(line, reason)
    }
}

impl Login for Claude {
    fn refused(&self, agent: &str, passed: &[String], is_set: &dyn Fn(&str) -> bool) -> String {
        let passed: Vec<&str> =
            KEYS.into_iter().filter(|key| passed.iter().any(|name| name == key)).collect();
        match (passed.first(), passed.iter().find(|key| is_set(key))) {
            (_, Some(set)) => format!("{set} is set, but its value is not accepted"),
            (Some(unset), None) => format!(
                "`agents.{agent}.env` passes {unset} on, but it is not set: set it, or `adj login claude`, and start `adj run` again"
            ),
            (None, None) => format!(
                "pass a key on with `env = [\"ANTHROPIC_API_KEY\"]` in `[agents.{agent}]`, or the token of `claude setup-token` \
                 with `env = [\"CLAUDE_CODE_OAUTH_TOKEN\"]`"
            ),
        }
    }

    fn variable(&self) -> &'static str {
        "CLAUDE_CODE_OAUTH_TOKEN"
    }

    fn maker(&self) -> Option<&'static [&'static str]> {
        Some(&["claude", "setup-token"])
    }

    fn missing_hint(&self, agent: &str) -> String {
        format!(
            "`adj login claude` uses your Claude subscription; or set ANTHROPIC_API_KEY, and name it in [agents.{agent}] env"
        )
    }
}

/// Whether the program keeps a conversation of this id. The agent can write there, and gains nothing by it: the other flag
/// fails, and a failed session is made anew.
fn has_session(config: &Path, session: &str) -> bool {
    let Ok(folders) = std::fs::read_dir(config.join("projects")) else { return false };
    let name = format!("{session}.jsonl");
    folders.take(PROJECTS_MAX).filter_map(Result::ok).any(|folder| folder.path().join(&name).is_file())
}

/// Our own server and no other: `adj` speaks for the agent by the token in its environment, which no file holds.
fn mcp_servers(adj: &str) -> String {
    let env = json!({ "ADJ_TOKEN": "${ADJ_TOKEN:-}", "ADJ_SERVER": "${ADJ_SERVER:-}" });
    let ours = json!({ "type": "stdio", "command": adj, "args": ["mcp"], "env": env, "alwaysLoad": true });
    json!({ "mcpServers": { "adjutant": ours } }).to_string()
}

/// The first line: a hook for every call, and notes of what came of each.
fn initialize() -> Input {
    let hook =
        |id, timeout, on_failure| [Hook { matcher: None, hook_callback_ids: [id], timeout, on_failure }];
    let hooks = Hooks {
        pre_tool_use: hook("pre", QUESTION_SECONDS, Some("block")),
        post_tool_use: hook("post", NOTE_SECONDS, None),
        post_tool_use_failure: hook("failure", NOTE_SECONDS, None),
    };
    control("initialize", OwnRequest::Initialize { hooks })
}

/// A request of ours; its id is that of the request too.
fn control(id: &str, request: OwnRequest) -> Input {
    Input { id: id.to_owned(), text: Sent::ControlRequest { request_id: id, request }.line() }
}

/// Yes or no to a call, in the form in which it was asked.
fn response(question: &Question, allow: bool, note: &str) -> String {
    let response = match (question.hook, allow) {
        (true, allow) => AnswerFields::Hook {
            output: HookOutput {
                hook_event_name: "PreToolUse",
                permission_decision: if allow { "allow" } else { "deny" },
                permission_decision_reason: note,
            },
        },
        (false, true) => AnswerFields::Permission(Permission::Allow { updated_input: &question.input }),
        (false, false) => AnswerFields::Permission(Permission::Deny { message: note }),
    };
    let response = Answer::Success { request_id: &question.request, response };
    Sent::ControlResponse { response }.line()
}

/// The answer to a note: the program goes on.
fn noted(request: &str) -> String {
    let response = AnswerFields::Noted { go_on: true };
    Sent::ControlResponse { response: Answer::Success { request_id: request, response } }.line()
}

/// A request of the program that waits for yes or no.
#[derive(Clone, Debug)]
struct Question {
    request: String,
    call: String,
    tool: String,
    input: Map<String, Value>,
    /// Asked by our hook, and not by the program's own rules.
    hook: bool,
}

/// What the program asks of us.
enum Request {
    Question(Question),
    /// A note of ours that a call has ended, with its time.
    Note {
        request: String,
        call: Option<String>,
        millis: Option<u64>,
    },
    /// Something that we never offered.
    Other {
        request: String,
    },
}

/// Tells what a `control_request` asks. Nothing if it cannot be answered, or does not say what it is.
fn request(message: ControlRequest) -> Option<Request> {
    let (id, asked) = (message.request_id?, message.request);
    Some(match asked.subtype?.as_str() {
        "hook_callback" => {
            let input: HookInput = fit(Value::Object(asked.input));
            match input.hook_event_name == "PreToolUse" {
                true => Request::Question(Question {
                    call: asked.tool_use_id.or(input.tool_use_id).unwrap_or_else(|| id.clone()),
                    tool: input.tool_name,
                    input: input.tool_input,
                    hook: true,
                    request: id,
                }),
                false => Request::Note { call: input.tool_use_id, millis: input.duration_ms, request: id },
            }
        }
        "can_use_tool" => Request::Question(Question {
            call: asked.tool_use_id.unwrap_or_else(|| id.clone()),
            tool: asked.tool_name,
            input: asked.input,
            hook: false,
            request: id,
        }),
        _ => Request::Other { request: id },
    })
}

/// What is answered to a request that we never offered.
fn unsupported(request: &str) -> String {
    Sent::ControlResponse { response: Answer::Error { request_id: request, error: "not supported" } }.line()
}

/// Refuses what a line asks, for a keeper whose server is gone.
pub(super) fn deny(line: &[u8], reason: &str) -> Option<Vec<u8>> {
    let message = match serde_json::from_slice(line) {
        Ok(Line::ControlRequest(message)) => message,
        Ok(_) => return None,
        Err(_) => return deny_cut(line, reason).map(|(_, answer)| answer.into_bytes()),
    };
    let answer = match request(message)? {
        Request::Question(question) => response(&question, false, reason),
        Request::Note { request, .. } => noted(&request),
        Request::Other { request } => unsupported(&request),
    };
    Some(answer.into_bytes())
}

/// Refuses a call whose line was too long to be read. Within a text a quote is escaped, so that what looks like a key here
/// is one; and refusing what was never asked does nothing.
fn deny_cut(line: &[u8], reason: &str) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(line);
    let after = |key: &str| {
        let start = text.find(&format!("\"{key}\":\""))? + key.len() + 4;
        text[start..].split('"').next().map(str::to_owned)
    };
    let asked = text.contains("\"type\":\"control_request\"");
    let request = after("request_id").filter(|_| asked)?;
    if after("callback_id").is_some_and(|callback| callback != "pre") {
        let answer = noted(&request);
        return Some((request, answer));
    }
    let hook = after("subtype")? == "hook_callback";
    let (call, tool) = (String::new(), String::new());
    let question = Question { request: request.clone(), call, tool, input: Default::default(), hook };
    let answer = response(&question, false, reason);
    Some((request, answer))
}

#[cfg(test)]
mod tests;
