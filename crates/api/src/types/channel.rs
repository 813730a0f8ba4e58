//! Channels: rooms in which agents take turns and people speak when they like.

use super::cost::Spend;
use super::{Cursor, Limit, Name, Text, Words, flag, is_false};
use kernel::rooms::{Receipt, TurnEnd};
use machines::turn::{InterruptBehaviour, State, WaitReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A channel that is to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewChannel {
    #[schemars(with = "Name")]
    pub name: String,
    /// How turns go there. What is left out is as its default says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_config: Option<TurnConfig>,
    /// The topic. It becomes the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The task in REVIEW that is reviewed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub task: Option<String>,
    /// What ends the turn of an agent that Adjutant hosts: the end of its `reply` (the default), or only its own `signal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<TurnEnd>>")]
    pub ends: Option<TurnEnd>,
}

/// How turns go in a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TurnConfig {
    /// A turn ends by itself after so long.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub default_timeout_seconds: u32,
    /// A wait ends by itself after so long, and the turn with it.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub wait_timeout_seconds: u32,
    /// What a person's message does while an agent has the turn. `inject`: that agent gets it at once, the others after the
    /// turn. `queue`: all get it after the turn. `interrupt`: the turn pauses. `parallel`: all get it at once.
    #[schemars(with = "Words<InterruptBehaviour>")]
    pub human_interrupt_mode: InterruptBehaviour,
    /// Say in the channel that a turn has timed out.
    pub announce_timeouts: bool,
    /// Say in the channel that an agent was lost in its turn.
    pub announce_disconnects: bool,
    /// Whether a turn ends if the agent has posted something and is then silent for a while.
    pub auto_detect_turn_end: bool,
    /// That while.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub auto_detect_silence_seconds: u32,
}

impl From<&machines::turn::TurnConfig> for TurnConfig {
    fn from(config: &machines::turn::TurnConfig) -> TurnConfig {
        TurnConfig {
            default_timeout_seconds: config.default_timeout_seconds,
            wait_timeout_seconds: config.wait_timeout_seconds,
            human_interrupt_mode: config.human_interrupt_mode,
            announce_timeouts: config.announce_timeouts,
            announce_disconnects: config.announce_disconnects,
            auto_detect_turn_end: config.auto_detect_turn_end,
            auto_detect_silence_seconds: config.auto_detect_silence_seconds,
        }
    }
}

impl Default for TurnConfig {
    fn default() -> Self {
        TurnConfig::from(&machines::turn::TurnConfig::default())
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChannelListQuery")]
pub struct ListQuery {
    /// Closed ones too.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub all: bool,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// A channel in its current state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    pub name: String,
    pub topic: Option<String>,
    /// The task that is reviewed in it.
    pub task: Option<String>,
    #[schemars(with = "Words<TurnEnd>")]
    pub ends: TurnEnd,
    /// The effect of a person's message while an agent has the turn.
    #[schemars(with = "Words<InterruptBehaviour>")]
    pub mode: InterruptBehaviour,
    pub turn_config: TurnConfig,
    /// Who has the turn.
    pub turn: Option<HeldTurn>,
    /// Who had the turn last: the next one is the one after it.
    pub cursor: Option<String>,
    /// Those who take turns, in their order.
    pub queue: Vec<String>,
    pub members: Vec<Member>,
    /// No agent gets the turn before somebody posts a message.
    pub rests: bool,
    /// The queue has members, but none of them can get the turn now.
    pub stalled: bool,
    /// Why nobody has the turn, if nobody has it.
    pub why: Option<String>,
    /// How many messages there are.
    pub messages: u64,
    /// The usage of the agents that Adjutant hosts in it.
    pub cost: Spend,
    /// When it was closed, if it was.
    pub closed_at: Option<String>,
}

/// The turn of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldTurn {
    pub agent: String,
    /// ACTIVE, or WAITING if it has paused its turn.
    #[schemars(with = "Words<State>")]
    pub state: State,
    /// When the turn, or the wait, ends by itself.
    pub until: Option<String>,
    /// Why it waits, and what for.
    #[schemars(with = "Option<Words<WaitReason>>")]
    pub wait_reason: Option<WaitReason>,
    pub note: Option<String>,
}

/// A member of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ChannelMember")]
pub struct Member {
    pub agent: String,
    #[schemars(with = "Words<State>")]
    pub state: State,
    /// Adjutant starts its program when its turn comes. The others connect from outside.
    pub hosted: bool,
    /// It is away, and takes its place in the queue when it comes.
    pub expected: bool,
    /// It was alone when its turn ended, and takes its turn again with the next message.
    pub resting: bool,
    /// It is passed over when its turn comes next.
    pub skipped: bool,
    pub timeout_seconds: u32,
    pub wait_timeout_seconds: u32,
    /// The last message that it was given, and the last that it has dealt with.
    pub delivered: u64,
    pub consumed: u64,
    /// Messages that it may know of and has not dealt with, without its own.
    pub unheard: u64,
    pub cost: Spend,
}

/// An agent that is to join.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewMember {
    #[schemars(with = "Name")]
    pub agent: String,
    /// How long its turns last, if different from the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u32::MAX))]
    pub timeout_seconds: Option<u32>,
    /// How long its waits last, if different from the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u32::MAX))]
    pub wait_timeout_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    #[schemars(with = "Text")]
    pub text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagesQuery {
    /// Only what has this text in it, or is by somebody of this name; small and large letters are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Include joins and leaves, transitions, and messages to single agents.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub all: bool,
    /// Only this many of the last entries: 1 to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Limit>,
    /// The `next` of the page before, or the `seq` of the last entry that was seen; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Where there is nothing yet, wait a while for something.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub wait: bool,
}

machines::wire_enum! {
    /// The kind of an entry in a channel's history.
    pub enum EntryKind {
        /// A message of a person or a member.
        Message = "message",
        /// An announcement of the channel.
        Announcement = "announcement",
        /// The channel tells one agent something, or notes it.
        Notice = "notice",
        Transition = "state_transition",
        Made = "channel_made",
        Joined = "member_added",
        Left = "member_removed",
        Closed = "channel_closed",
        /// Messages that were held back are delivered to everybody.
        Released = "messages_released",
        /// A member was given messages, or has dealt with them.
        Receipts = "receipts_moved",
        Rests = "channel_rests",
        Wakes = "channel_wakes",
        Stalls = "channel_stalls",
    }
}

/// A message or an event in a channel. Members that do not apply are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ChannelEntry")]
pub struct Entry {
    /// Its position in the log, for `after`.
    pub seq: u64,
    pub timestamp: String,
    #[schemars(with = "Words<EntryKind>")]
    pub event: EntryKind,
    pub channel: String,
    /// The agent that it is about, or that posted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The author: `human:ann`, `agent:coder`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A message's number. They count up from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A notice that an agent answered and did not end its turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub warning: bool,
    /// A message that came into a turn, and waits until that is over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub held: bool,
    /// Whom alone it reaches at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// The receipts of a person's message, by member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<MemberReceipt>,
    /// A transition: from which state to which, by what, and of which machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Receipts that moved: the last message that the member was given, and the last that it has dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberReceipt {
    pub agent: String,
    #[schemars(with = "Words<Receipt>")]
    pub receipt: Receipt,
}

machines::wire_enum! {
    /// An action on a turn.
    pub enum TurnAction {
        /// It is over.
        Complete = "complete",
        /// End it without a message.
        Pass = "pass",
        /// It pauses, and keeps its place.
        Wait = "wait",
        /// Resume it.
        Resume = "resume",
        /// A person resumes or ends a paused turn.
        Override = "override",
        /// A person ends it. The unfinished reply is not posted.
        Cancel = "cancel",
        /// A person passes an agent over, now or when its turn comes.
        Skip = "skip",
        /// A person starts a new session for an agent, without its memory of the channel.
        Fresh = "fresh",
    }
}

machines::wire_enum! {
    /// Where a person sends a turn that waits.
    pub enum OverrideTo {
        Active = "ACTIVE",
        Queued = "QUEUED",
    }
}

/// Something about a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"anyOf": [
    {"required": ["to"], "properties": {"to": {"type": "string"}, "action": {"not": {"const": "override"}}}},
    {"properties": {"action": {"const": "override"}},
     "not": {"required": ["to"], "properties": {"to": {"type": "string"}}}},
    {"required": ["note"], "properties": {"note": {"type": "string"}, "action": {"not": {"const": "wait"}}}},
    {"required": ["seconds"], "properties": {"seconds": {"type": "integer"}, "action": {"not": {"const": "wait"}}}},
]}))]
pub struct TurnWord {
    /// Whose turn. If absent: an agent's own turn, and for a person the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub agent: Option<String>,
    #[schemars(with = "Words<TurnAction>")]
    pub action: TurnAction,
    /// With `override`: ACTIVE to resume the turn, or QUEUED to end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<OverrideTo>>")]
    pub to: Option<OverrideTo>,
    /// With `wait`: what for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// With `wait`: the longest wait, if different from the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u32::MAX))]
    pub seconds: Option<u32>,
}

impl TurnWord {
    pub fn of(action: TurnAction) -> TurnWord {
        TurnWord { agent: None, action, to: None, note: None, seconds: None }
    }
}

/// The decision of a review in a channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// Whether the work may land. If not, `note` contains the changes to make.
    pub approve: bool,
    #[serde(default)]
    pub note: String,
}
