//! Rooms: agents that take turns, people who speak when they like, and what was said there.
//!
//! All that was ever said is in the log. The World keeps the last of it, which is what turns and receipts are decided by.

use std::sync::Arc;

use crate::Millis;
use imbl::{OrdMap, OrdSet, Vector};
use machines::names::{AgentName, ChannelName, TaskId};
use machines::turn::{self, InterruptBehaviour};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Messages of one room that are kept at hand. Older ones are in the log, for whoever asks for them.
pub const MESSAGES_KEPT: usize = 500;
/// Rooms that may be open at once, and agents in one of them.
pub const ROOMS_MAX: usize = 1000;
pub const MEMBERS_MAX: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    pub config: turn::TurnConfig,
    /// In order of arrival, and each member's place.
    pub members: Vector<AgentName>,
    pub places: OrdMap<AgentName, turn::Turn>,
    /// Those who take turns, in their order; it never changes by a turn ending.
    #[serde(default)]
    pub ring: Vector<AgentName>,
    /// Who holds the turn, and who had it last: the cursor.
    #[serde(default)]
    pub current: Option<AgentName>,
    #[serde(default)]
    pub last: Option<AgentName>,
    #[serde(default)]
    pub about: About,
    #[serde(default)]
    pub closed: Option<Millis>,
    /// Times of single members, where they are not the room's.
    #[serde(default)]
    pub own_times: OrdMap<AgentName, OwnTimes>,
    /// Added while they were away: they join the ring when they come for the first time.
    #[serde(default)]
    pub expected: OrdSet<AgentName>,
    /// They were alone when their turn ended, and join the ring again with the next message.
    #[serde(default)]
    pub resting: OrdSet<AgentName>,
    /// Passed over when their turn comes next.
    #[serde(default)]
    pub skipped: OrdSet<AgentName>,
    /// A full cycle has gone by in which nobody said anything: nobody is given the turn before somebody does.
    #[serde(default)]
    pub rests: bool,
    /// Somebody is in the queue, and nobody of them can be given the turn as things stand.
    #[serde(default)]
    pub stalled: bool,
    /// It is stalled, and only by a program that is still coming to its end.
    #[serde(default)]
    pub ending: bool,
    /// Where the places of those who were removed stood then.
    #[serde(default)]
    pub left: OrdMap<AgentName, turn::State>,
    /// When the turn was given to somebody last.
    #[serde(default)]
    pub granted: Millis,
    /// Who has had a turn since the last message and said nothing in it.
    #[serde(default)]
    pub quiet: OrdSet<AgentName>,
    /// Whose turn ended by time since the last message, without a word: each has one more before that is silence.
    #[serde(default)]
    pub late: OrdSet<AgentName>,
    /// Whoever holds the turn has posted in it.
    #[serde(default)]
    pub posted: bool,
    /// The last messages, and how many there ever were.
    #[serde(default)]
    pub messages: Vector<Arc<Message>>,
    #[serde(default)]
    pub said: u64,
    /// How far each member has got.
    #[serde(default)]
    pub heard: OrdMap<AgentName, Heard>,
}

/// What a room is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct About {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The task whose review it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(skip_serializing_if = "TurnEnd::is_reply")]
    pub ends: TurnEnd,
}

machines::wire_enum! {
    /// What ends the turn of an agent that Adjutant hosts.
    pub enum TurnEnd {
        /// The end of its reply, if it has not said so before.
        Reply = "reply",
        /// Its own word only: a tool, or TURN_COMPLETE as a line of its own. Without it the turn ends by time or silence.
        Signal = "signal",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes what all such words derive")]
impl Default for TurnEnd {
    fn default() -> Self {
        TurnEnd::Reply
    }
}

impl TurnEnd {
    fn is_reply(&self) -> bool {
        *self == TurnEnd::Reply
    }
}

/// How long a member's turns and waits last, where that is not as in the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OwnTimes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}

impl OwnTimes {
    pub fn is_none(&self) -> bool {
        *self == OwnTimes::default()
    }
}

/// Something that a person or a member said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Counts up from 1 in its room.
    pub number: u64,
    pub at: Millis,
    pub by: SmolStr,
    /// The member that said it, where it was one.
    pub agent: Option<AgentName>,
    pub text: String,
    /// It is passed on when the turn that it came into is over.
    pub held: bool,
    /// Whoever held the turn then has it at once, though it is held.
    pub to: Option<AgentName>,
}

/// How far a member has got with what was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// It was given everything up to here.
    pub delivered: u64,
    /// A turn of its ended well since then.
    pub consumed: u64,
    /// What it was given before its turn came.
    pub early: OrdSet<u64>,
}

machines::wire_enum! {
    /// What became of a message for one member.
    pub enum Receipt {
        Queued = "queued",
        Delivered = "delivered",
        Consumed = "consumed",
    }
}

/// Where an agent that Adjutant hosts speaks outside of any task. As one text, `room/reviews/anna` or `architect`, so that it
/// can be a key in JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Seat {
    Room { channel: ChannelName, agent: AgentName },
    Architect,
}

impl std::fmt::Display for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Seat::Room { channel, agent } => write!(f, "room/{channel}/{agent}"),
            Seat::Architect => f.write_str("architect"),
        }
    }
}

impl From<Seat> for String {
    fn from(seat: Seat) -> String {
        seat.to_string()
    }
}

impl TryFrom<String> for Seat {
    type Error = String;

    fn try_from(text: String) -> Result<Seat, String> {
        let unknown = || format!("`{text}` is no seat");
        let mut parts = text.split('/');
        let seat = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("architect"), None, ..) => Seat::Architect,
            (Some("room"), Some(channel), Some(agent), None) => Seat::Room {
                channel: ChannelName::new(channel).map_err(|_| unknown())?,
                agent: AgentName::new(agent).map_err(|_| unknown())?,
            },
            _ => return Err(unknown()),
        };
        Ok(seat)
    }
}

/// An agent that Adjutant hosts in a seat: its session there, and what it is saying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seated {
    pub agent: AgentName,
    pub session: SmolStr,
    /// A reply was begun in the session, so it can be resumed.
    pub session_used: bool,
    /// The reply under way.
    pub reply: Option<machines::names::EffectId>,
    /// What the reply under way has decided already.
    #[serde(default)]
    pub decided: Option<machines::names::RequestId>,
    /// Replies that were told to end and are not known to be gone.
    pub unfinished: OrdSet<machines::names::EffectId>,
    /// The reply in hand is a second try with a fresh session.
    pub retried: bool,
    pub spend: crate::world::Spend,
    /// Set aside for the reply under way, and the day that it was set aside on.
    pub reserved: crate::config::Micros,
    pub reserved_day: i64,
    /// The last turn of the reply whose cost was counted.
    pub turns_charged: u32,
    pub metered: crate::world::Metered,
}

impl Seated {
    pub(crate) fn new(agent: &AgentName, session: &SmolStr) -> Seated {
        Seated {
            agent: agent.clone(),
            session: session.clone(),
            session_used: false,
            reply: None,
            decided: None,
            unfinished: OrdSet::new(),
            retried: false,
            spend: crate::world::Spend::default(),
            reserved: 0,
            reserved_day: 0,
            turns_charged: 0,
            metered: crate::world::Metered::default(),
        }
    }

    /// Whether a reply can begin in its session now.
    pub fn is_free(&self) -> bool {
        self.reply.is_none() && self.unfinished.is_empty()
    }
}

impl Channel {
    pub fn place(&self, agent: &AgentName) -> Option<&turn::Turn> {
        self.places.get(agent)
    }

    pub fn state_of(&self, agent: &AgentName) -> Option<turn::State> {
        self.place(agent).map(|place| place.state)
    }

    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// No other agent takes turns here.
    pub fn is_alone(&self, agent: &AgentName) -> bool {
        self.ring.iter().all(|other| other == agent)
    }

    pub fn timeout_seconds(&self, agent: &AgentName) -> u32 {
        let own = self.own_times.get(agent).and_then(|times| times.timeout_seconds);
        own.unwrap_or(self.config.default_timeout_seconds)
    }

    pub fn wait_seconds(&self, agent: &AgentName) -> u32 {
        let own = self.own_times.get(agent).and_then(|times| times.wait_seconds);
        own.unwrap_or(self.config.wait_timeout_seconds)
    }

    /// Whether a member may know of a message now.
    pub fn is_open_to(&self, message: &Message, agent: &AgentName) -> bool {
        !message.held || message.to.as_ref() == Some(agent) || message.agent.as_ref() == Some(agent)
    }

    /// What a member has not heard and dealt with, and may know of now, without its own words.
    pub fn unheard<'c>(&'c self, agent: &'c AgentName) -> impl Iterator<Item = &'c Message> {
        let consumed = self.heard.get(agent).map_or(0, |heard| heard.consumed);
        let new = self.messages.iter().map(AsRef::as_ref).filter(move |message| message.number > consumed);
        new.filter(move |message| message.agent.as_ref() != Some(agent) && self.is_open_to(message, agent))
    }

    /// The last message before which a member has heard everything, what was said into its turn and its own words included.
    pub fn heard_through(&self, agent: &AgentName) -> u64 {
        let heard = self.heard.get(agent).cloned().unwrap_or_default();
        let mut through = heard.delivered;
        for message in self.messages.iter().filter(|message| message.number > heard.delivered) {
            let own = message.agent.as_ref() == Some(agent);
            if message.number != through + 1 || !(own || heard.early.contains(&message.number)) {
                break;
            }
            through = message.number;
        }
        through
    }

    /// The last message that a member has dealt with, and everything before it.
    pub fn consumed(&self, agent: &AgentName) -> u64 {
        self.heard.get(agent).map_or(0, |heard| heard.consumed)
    }

    /// The last message that a member may know of now.
    pub fn last_open_to(&self, agent: &AgentName) -> u64 {
        let held = self.messages.iter().find(|message| !self.is_open_to(message, agent));
        held.map_or(self.said, |held| held.number - 1)
    }

    pub fn receipt(&self, message: u64, agent: &AgentName) -> Receipt {
        match self.heard.get(agent) {
            Some(heard) if heard.consumed >= message => Receipt::Consumed,
            Some(heard) if heard.delivered >= message || heard.early.contains(&message) => Receipt::Delivered,
            _ => Receipt::Queued,
        }
    }

    /// What a person's message does to the turn that it comes into.
    pub fn mode(&self) -> InterruptBehaviour {
        self.config.human_interrupt_mode
    }
}
