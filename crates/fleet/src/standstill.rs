//! The text of a standstill, for the terminal and for notifications.

use kernel::waiting::{Decider, Waiting};
use kernel::{Millis, World, why};

use crate::command_line;

/// So many things are told one by one.
const TOLD_MAX: usize = 10;
/// So many of the tasks that something holds up are named.
const NAMED_MAX: usize = 4;

/// What is said of a fleet that stands still.
pub struct Standstill {
    /// What it stands still for, as the list of what waits has it.
    pub list: Vec<Waiting>,
    now: Millis,
}

impl Standstill {
    /// `None`: it goes on.
    pub fn of(world: &World, now: Millis) -> Option<Standstill> {
        let list = kernel::standstill::standstill(world, now);
        (!list.is_empty()).then_some(Standstill { list, now })
    }

    pub fn headline(&self) -> String {
        headline(self.list.len())
    }

    /// A line for each thing: what waits, since when and for whom, what it holds up, and the commands that go on with it.
    pub fn lines(&self) -> Vec<String> {
        let told = self.list.iter().take(TOLD_MAX).map(|item| line(item, self.now));
        let more = self.list.len().saturating_sub(TOLD_MAX);
        told.chain((more > 0).then(|| format!("and {more} more: adj waiting"))).collect()
    }

    /// All of it as one text.
    pub fn text(&self) -> String {
        format!("{}: {}", self.headline(), self.lines().join("; "))
    }
}

/// What is said of so many things.
pub fn headline(count: usize) -> String {
    match count {
        1 => "the fleet makes no progress: 1 item waits".to_owned(),
        count => format!("the fleet makes no progress: {count} items wait"),
    }
}

fn line(item: &Waiting, now: Millis) -> String {
    let kind = item.kind.to_string().replace('_', " ");
    let whom = match item.who {
        Decider::Person => "you",
        Decider::Lead => "you or a lead",
        Decider::Service => "the service",
    };
    let age = item.since.map(|since| format!(" for {}", why::duration(now - since))).unwrap_or_default();
    let holds = match item.blocks.len() {
        0 => String::new(),
        count => {
            let named: Vec<&str> = item.blocks.iter().take(NAMED_MAX).map(|id| id.as_str()).collect();
            let more =
                if count > NAMED_MAX { format!(" and {} more", count - NAMED_MAX) } else { String::new() };
            format!(", holds up {}{more}", named.join(", "))
        }
    };
    let commands: Vec<String> = item.options.iter().take(2).map(command_line::command).collect();
    format!("{} ({kind}: waits for {whom}{age}{holds}): {}", item.text, commands.join(", or "))
}
