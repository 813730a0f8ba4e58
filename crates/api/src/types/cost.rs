//! Money and tokens. Amounts are in dollars.

use super::Words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What something has used. A step that named no price is estimated by the agent's other steps, or something is set
/// aside for it; neither is in `usd`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spend {
    pub usd: f64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub reserved_usd: f64,
    pub unpriced_steps: u32,
    pub estimated_steps: u32,
    pub estimated_usd: f64,
    pub set_aside_usd: f64,
}

machines::wire_enum! {
    /// What the cost is summed up by.
    pub enum CostBy {
        Task = "task",
        Step = "step",
        Agent = "agent",
        Day = "day",
        Worker = "worker",
        Run = "run",
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CostQuery")]
pub struct Query {
    /// `task`, `step`, `agent`, `day`, `worker` or `run`; `task` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<CostBy>>")]
    pub by: Option<CostBy>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    #[schemars(with = "Words<CostBy>")]
    pub by: CostBy,
    pub total: Spend,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CostItem")]
pub struct Item {
    pub name: String,
    #[serde(flatten)]
    pub spend: Spend,
    /// Where it is by step.
    #[serde(flatten)]
    pub step: Option<Step>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CostStep")]
pub struct Step {
    pub task: String,
    pub run: String,
    pub agent: String,
    pub worker: Option<String>,
    pub started_at: String,
}
