//! `GET /story`: the story of a fleet, line by line. The process that owns the project makes each line once and keeps the
//! newest ones. Every view reads the same lines, in that process and over its address.
//!
//! Lines have their own numbers, because some report events that the log does not contain.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::types::overview::{StoryLine, StoryQuery};
use super::types::{Cursor, Limit, Nothing, Page};
use super::{Call, Problem, time};
use crate::story::{Line, Story, Tone};
use kernel::world::Spend;
use kernel::{Event, World};
use log::owner::Handle;
use log::{Record, Seq};
use machines::Millis;

/// The number of lines that are kept. A reader that is further behind misses the older lines.
const LINES_MAX: usize = 10_000;
/// The number of records in one read.
const RECORDS: usize = 500;

pub struct StoryFeed {
    /// The cost before it started.
    before: Spend,
    told: Mutex<Told>,
}

struct Told {
    story: Story,
    /// The last record that has its lines.
    seen: Seq,
    /// The number of the last line.
    last: u64,
    lines: VecDeque<StoryLine>,
}

impl StoryFeed {
    /// A feed of the events from now on.
    pub fn new(world: &World) -> StoryFeed {
        let told = Told { story: Story::default(), seen: world.seq, last: 0, lines: VecDeque::new() };
        StoryFeed { before: world.spend.clone(), told: Mutex::new(told) }
    }

    /// Adds the lines of new records, at most one page of them. True: there are more. Repeated calls read each record once.
    pub fn follow(&self, handle: &Handle) -> Result<bool, Problem> {
        let seen = self.lock().seen;
        let page = handle.read(seen, RECORDS)?;
        self.tell(&handle.world(), &page);
        Ok(page.len() == RECORDS)
    }

    fn tell(&self, world: &World, records: &[Record]) {
        let mut told = self.lock();
        for record in records {
            // Another thread may have added its lines since the page was read.
            if record.seq <= told.seen {
                continue;
            }
            told.seen = record.seq;
            if let Ok(event) = Event::decode(&record.kind, &record.data) {
                let lines = told.story.lines(world, record.at, &event);
                lines.into_iter().for_each(|line| told.push(line));
            }
        }
    }

    /// Adds a line for people about an event that the log does not contain.
    pub fn hear(&self, at: Millis, text: &str) {
        let mut told = self.lock();
        told.story.hears(text);
        told.push(Line { at, tone: Tone::Wrong, text: text.to_owned() });
    }

    /// At most `limit` lines after the line with this number.
    pub fn after(&self, number: u64, limit: usize) -> Vec<StoryLine> {
        let told = self.lock();
        let first = told.lines.partition_point(|line| line.number <= number);
        told.lines.iter().skip(first).take(limit).cloned().collect()
    }

    pub fn last(&self) -> u64 {
        self.lock().last
    }

    pub fn before(&self) -> &Spend {
        &self.before
    }

    pub fn landed(&self) -> u32 {
        self.lock().story.landed
    }

    /// Failures that the fleet recovered from, in words, and how often each occurred.
    pub fn survived(&self) -> BTreeMap<String, u32> {
        let told = self.lock();
        told.story.survived.iter().map(|(what, times)| ((*what).to_owned(), *times)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn push(&mut self, Line { at, tone, text }: Line) {
        self.last += 1;
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(StoryLine { number: self.last, at: time(at), tone, text });
    }
}

/// The lines of the owner's process. There are none if only this command has opened the project.
pub fn list(call: &Call, (): (), query: StoryQuery, _: Nothing) -> Result<Page<StoryLine>, Problem> {
    let StoryQuery { after, limit, wait } = query;
    let (after, limit) = (Cursor::number(after), Limit::number(limit));
    let Some(feed) = call.access.control.and_then(|control| control.story()) else {
        return Ok(Page { items: Vec::new(), next: None });
    };
    let _ = super::awaiting::awaited(call, wait, |_| (feed.last() > after).then_some(()));
    let items = feed.after(after, limit);
    let more = items.last().is_some_and(|line| line.number < feed.last());
    let next = items.last().filter(|_| more).map(|line| line.number.to_string());
    Ok(Page { items, next })
}

impl From<StoryLine> for Line {
    fn from(line: StoryLine) -> Line {
        let StoryLine { at, tone, text, .. } = line;
        // A time outside of the calendar's years is read as 0.
        Line { at: crate::format::read_time(&at).unwrap_or_default(), tone, text }
    }
}
