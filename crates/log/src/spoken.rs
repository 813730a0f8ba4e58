//! The text of agents as they write it, piece by piece, in the order in which readers of a run get it.
//!
//! Pieces come from the output of programs, everything else about a run from the log. Readers need one sequence that is the same
//! at every read, so the order is recorded once: each piece goes into a file of its run with the number of the log's
//! last record at that moment and a tick that only grows.
//!
//! Invariants: positions in a file grow; nothing is added before a position that a reader may have passed; nothing is added to
//! a run that is over.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use kernel::World;
use machines::names::{EffectId, RunId};
use serde::{Deserialize, Serialize};

use crate::Seq;

/// Read from the end of a file to find its last piece. A piece is shorter, with every letter of it escaped.
const LAST_BYTES: u64 = 1 << 20;
/// Where a place is looked for, a stretch of so many bytes is read from its beginning to its end.
const STRETCH_BYTES: u64 = 64 << 10;

/// Where a piece stands among all that happens: behind the record, and there behind what has a smaller tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenPosition {
    pub seq: Seq,
    /// In microseconds by the clock where that has moved on, else one more than the last. It orders what comes between two
    /// records, and means nothing else.
    pub tick: u64,
}

/// A piece as its file has it.
#[derive(Serialize, Deserialize)]
struct Line<T>(Seq, u64, EffectId, u64, T);

/// A piece that an agent has written: where the line began that brought it, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub at: u64,
    pub text: String,
}

/// The order of everything that is written while one process owns the project.
#[derive(Default)]
pub struct Order {
    last: Mutex<TokenPosition>,
    told: OnceLock<Box<Told>>,
}

type Told = dyn Fn(&RunId, TokenPosition) + Send + Sync;

impl Order {
    /// Whoever wants to hear of every run for which something was added. Only the first is told.
    pub fn on_growth(&self, told: impl Fn(&RunId, TokenPosition) + Send + Sync + 'static) {
        let _ = self.told.set(Box::new(told));
    }

    /// All that there is stands at this place or before it, and all that will come stands behind it.
    pub fn now(&self, seq: impl FnOnce() -> Seq) -> TokenPosition {
        let mut last = self.lock();
        *last = behind(*last, seq());
        *last
    }

    fn lock(&self) -> MutexGuard<'_, TokenPosition> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds pieces to what a run's agent has written. `world` is asked for under the lock: what happens after that happens behind
    /// these pieces.
    pub fn add(
        &self,
        words: &mut Words,
        pieces: &[Piece],
        world: impl FnOnce() -> std::sync::Arc<World>,
    ) -> io::Result<()> {
        let mut last = self.lock();
        let world = world();
        if world.run(&words.run).is_none_or(|run| world.is_over_for_good(run)) {
            return Ok(());
        }
        let mut place = last.max(words.last);
        let mut lines = Vec::new();
        for piece in pieces {
            place = behind(place, world.seq);
            let line = Line(place.seq, place.tick, words.step.clone(), piece.at, piece.text.as_str());
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        words.append(&lines)?;
        (*last, words.last) = (place, place);
        drop(last);
        if let Some(told) = self.told.get() {
            told(&words.run, place);
        }
        Ok(())
    }
}

/// The next place, which is behind this record too.
fn behind(last: TokenPosition, seq: Seq) -> TokenPosition {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let tick = u64::try_from(clock).unwrap_or(0).max(last.tick + 1);
    TokenPosition { seq: seq.max(last.seq), tick }
}

/// The file of a run, as the step writes to it that is under way.
pub struct Words {
    file: File,
    length: u64,
    /// Where its last piece stands; the clock may have been set back since.
    last: TokenPosition,
    run: RunId,
    step: EffectId,
    /// The last line of the step that brought something which is in the file, and how many pieces that were.
    known: Option<(u64, usize)>,
}

impl Words {
    /// Goes on where the file ends. What was only half written, when a process was ended, is not in it.
    pub fn open(folder: &Path, run: &RunId, step: &EffectId) -> io::Result<Words> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(run.as_str());
        let mut file = File::options().create(true).append(true).read(true).mode(0o600).open(path)?;
        let length = file.metadata()?.len();
        let start = length.saturating_sub(LAST_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let length = start + whole as u64;
        file.set_len(length)?;
        let lines = end[..whole].split(|byte| *byte == b'\n').rev();
        let lines = lines.filter_map(|line| serde_json::from_slice::<Line<String>>(line).ok());
        let mut known: Option<(u64, usize)> = None;
        let mut last = TokenPosition::default();
        for Line(seq, tick, of, at, _) in lines {
            last = last.max(TokenPosition { seq, tick });
            match &mut known {
                _ if of != *step => break,
                None => known = Some((at, 1)),
                Some((last, count)) if *last == at => *count += 1,
                Some(_) => break,
            }
        }
        Ok(Words { file, length, last, run: run.clone(), step: step.clone(), known })
    }

    /// Whether the piece is in the file: the one that so many pieces of its line come before. A step that is taken up again is
    /// read from its beginning.
    pub fn has(&self, at: u64, before: usize) -> bool {
        self.known.is_some_and(|(last, count)| at < last || at == last && before < count)
    }

    /// All of it or nothing.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines) {
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }
}

/// What an agent has written in a run behind `after` and not behind `through`, about `limit` bytes of it. True: there is more.
pub fn between(
    folder: &Path,
    run: &RunId,
    after: TokenPosition,
    through: TokenPosition,
    limit: usize,
) -> io::Result<(Vec<(TokenPosition, String)>, bool)> {
    let mut pieces = Vec::new();
    let file = match File::open(folder.join(run.as_str())) {
        Ok(file) => file,
        // Nothing was written, or it is no longer kept.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((pieces, false)),
        Err(error) => return Err(error),
    };
    let mut lines = BufReader::new(file);
    find(&mut lines, after)?;
    let mut bytes = 0;
    while let Some((place, text)) = next(&mut lines)? {
        if place > through {
            break;
        }
        if place <= after {
            continue;
        }
        if bytes >= limit {
            return Ok((pieces, true));
        }
        bytes += text.len();
        pieces.push((place, text));
    }
    Ok((pieces, false))
}

/// Goes to a line from which it is not far to what stands behind `after`.
fn find(lines: &mut BufReader<File>, after: TokenPosition) -> io::Result<()> {
    let (mut low, mut high) = (0, lines.get_ref().metadata()?.len());
    while high - low > STRETCH_BYTES {
        let middle = low + (high - low) / 2;
        lines.seek(SeekFrom::Start(middle))?;
        let begun = lines.skip_until(b'\n')? as u64;
        match next(lines)? {
            Some((place, _)) if place <= after => low = middle + begun,
            _ => high = middle,
        }
    }
    lines.seek(SeekFrom::Start(low)).map(drop)
}

/// The piece of the next whole line.
fn next(lines: &mut BufReader<File>) -> io::Result<Option<(TokenPosition, String)>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(None);
        }
        // What a power cut has left of a line is none.
        if let Ok(Line(seq, tick, _, _, text)) = serde_json::from_slice(&line) {
            return Ok(Some((TokenPosition { seq, tick }, text)));
        }
    }
}

#[cfg(test)]
mod tests;
