//! The board as it is sent, kept ready: what a hundred pages ask for every second is not built for each of them.
//!
//! A task's line is put into words when the task changes, and the whole when somebody asks after that. A task that has not
//! changed is the very same value in the next World, so what has changed is found by looking at addresses.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use kernel::World;
use kernel::world::Task;

use super::sending;
use api::{Problem, board_line};

/// What boards are counted under: all readers of one version share it.
const CALLER: &str = "the board";

#[derive(Default)]
pub struct ReadyBoard {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The World that it was made of.
    seq: u64,
    /// Counts up when the document changes.
    version: u64,
    /// In the order of the World's tasks.
    lines: Vec<(Arc<Task>, Box<str>)>,
    /// As it is sent, where it was asked for.
    document: Option<Bytes>,
}

/// The document, and a number that stands for just this one.
pub struct Ready {
    pub document: Bytes,
    pub version: u64,
}

impl ReadyBoard {
    /// The board of this World, or of a later one.
    ///
    /// Whoever reads an earlier one slowly keeps it in memory, so each takes a share of what answers may have.
    pub fn document(&self, world: &World) -> Result<Ready, Problem> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.version == 0 || kept.seq < world.seq {
            kept.keep_up(world);
        }
        let document = match &kept.document {
            Some(document) => document.clone(),
            None => {
                let text = kept.assembled();
                let share = sending::share(CALLER, text.len())?;
                let document = share.map_or(text.clone(), |share| share.around(text));
                kept.document.insert(document).clone()
            }
        };
        Ok(Ready { document, version: kept.version })
    }
}

impl Kept {
    fn keep_up(&mut self, world: &World) {
        self.seq = world.seq;
        let mut changed = self.version == 0 || self.lines.len() != world.tasks.len();
        let mut before = std::mem::take(&mut self.lines).into_iter().peekable();
        self.lines.reserve(world.tasks.len());
        for task in world.tasks.values() {
            // Those that are gone stand before it; tasks are in the order of their ids.
            while before.next_if(|(known, _)| known.id < task.id).is_some() {}
            let line = match before.next_if(|(known, _)| known.id == task.id) {
                Some((known, line)) if Arc::ptr_eq(&known, task) => line,
                _ => {
                    changed = true;
                    line_of(task)
                }
            };
            self.lines.push((task.clone(), line));
        }
        if changed {
            self.version += 1;
            self.document = None;
        }
    }

    fn assembled(&self) -> Bytes {
        let bytes: usize = self.lines.iter().map(|(_, line)| line.len() + 1).sum();
        let mut text = String::with_capacity(bytes + 64);
        let _ = write!(text, "{{\"seq\":{},\"items\":[", self.seq);
        for (at, (_, line)) in self.lines.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(line);
        }
        text.push_str("]}");
        text.into()
    }
}

fn line_of(task: &Task) -> Box<str> {
    // There is nothing in it that JSON could not say.
    serde_json::to_string(&board_line(task)).unwrap_or_default().into()
}
