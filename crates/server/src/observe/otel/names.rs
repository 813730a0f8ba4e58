//! The names of OpenTelemetry's conventions for generative AI, as they were in version 1.37 (status: development). They are
//! pinned here: what others have built on our spans does not change with a new version of a library.

pub const OPERATION: &str = "gen_ai.operation.name";
pub const AGENT: &str = "gen_ai.agent.name";
pub const MODEL: &str = "gen_ai.request.model";
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub const TOOL: &str = "gen_ai.tool.name";
pub const TOOL_CALL: &str = "gen_ai.tool.call.id";

/// What an operation is called: a run, a step and a call of a tool.
pub const INVOKE_AGENT: &str = "invoke_agent";
pub const CHAT: &str = "chat";
pub const EXECUTE_TOOL: &str = "execute_tool";

/// Ours, where there is no word for it.
pub const PROJECT: &str = "adjutant.project";
pub const TASK: &str = "adjutant.task";
pub const RUN: &str = "adjutant.run";
pub const COST: &str = "adjutant.cost_usd";

pub const SERVICE: &str = "service.name";
pub const VERSION: &str = "service.version";
