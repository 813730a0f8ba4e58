//! One client of a keeper's socket: its input lines and the news for it, both bounded.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::wire::{self, Greeting, Report, Role};

/// A request is its text, which in JSON may be six times as long, and a little around it.
const REQUEST_BYTES_MAX: usize = super::INPUT_BYTES_MAX * 6 + 4096;
/// The key and a little around it: all that someone may send who did not give the key.
const GREETING_BYTES_MAX: usize = 1024;
/// Answers that a client does not fetch. Growth is not among them: only the newest is worth telling.
const UNREAD_BYTES_MAX: usize = 1 << 20;

pub struct Peer {
    stream: UnixStream,
    pub role: Option<Role>,
    pub since: Instant,
    input: Vec<u8>,
    /// Where to go on looking for a newline.
    searched: usize,
    output: Vec<u8>,
    /// What it was last told of the files, and when.
    told: Option<(u64, u64)>,
    told_at: Option<Instant>,
    /// It cannot be written to. What it sent before may still be there to be read.
    deaf: bool,
    gone: bool,
}

impl Peer {
    pub fn new(stream: UnixStream, now: Instant) -> io::Result<Peer> {
        stream.set_nonblocking(true)?;
        Ok(Peer {
            stream,
            role: None,
            since: now,
            input: Vec::new(),
            searched: 0,
            output: Vec::new(),
            told: None,
            told_at: None,
            deaf: false,
            gone: false,
        })
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// It closed its end and everything that it sent was read, or it broke a limit.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    pub fn drop_it(&mut self) {
        self.gone = true;
    }

    pub fn has_unread(&self) -> bool {
        !self.output.is_empty()
    }

    /// Reads what is there, once; the loop comes back for more.
    pub fn read(&mut self, buffer: &mut [u8]) {
        match (&self.stream).read(buffer) {
            Ok(0) => self.gone = true,
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                let max = if self.role.is_some() { REQUEST_BYTES_MAX } else { GREETING_BYTES_MAX };
                self.gone |= self.input.len() > max && !self.input[..max].contains(&b'\n');
            }
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.gone = true,
        }
    }

    /// The next whole line that it sent.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        let Some(at) = self.input[self.searched..].iter().position(|&b| b == b'\n') else {
            self.searched = self.input.len();
            return None;
        };
        let rest = self.input.split_off(self.searched + at + 1);
        self.searched = 0;
        let mut line = std::mem::replace(&mut self.input, rest);
        line.pop();
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        Some(line)
    }

    /// The role that this line asks for, if it has the key.
    pub fn greet(&mut self, line: &[u8], key: &str) -> Option<Role> {
        let greeting: Greeting = serde_json::from_slice(line).ok()?;
        if !is_same(greeting.key.as_bytes(), key.as_bytes()) {
            return None;
        }
        self.role = Some(greeting.role);
        self.role
    }

    pub fn say<T: serde::Serialize>(&mut self, message: &T) {
        if self.deaf {
            return;
        }
        self.output.extend(wire::line(message));
        self.gone |= self.output.len() > UNREAD_BYTES_MAX;
        self.flush();
    }

    /// Tells how far the files have grown, if it does not know yet, is not still reading older news, and was not told
    /// within `pause`; says when to try again.
    pub fn tell(&mut self, sizes: (u64, u64), now: Instant, pause: std::time::Duration) -> Option<Instant> {
        self.role?;
        if self.told == Some(sizes) || self.has_unread() {
            return None;
        }
        if let Some(at) = self.told_at
            && now < at + pause
        {
            return Some(at + pause);
        }
        self.knows(sizes, now);
        self.say(&Report::Grown { out: sizes.0, err: sizes.1 });
        None
    }

    /// It was told so in other words.
    pub fn knows(&mut self, sizes: (u64, u64), now: Instant) {
        self.told = Some(sizes);
        self.told_at = Some(now);
    }

    pub fn flush(&mut self) {
        while !self.output.is_empty() {
            match (&self.stream).write(&self.output) {
                Ok(count) if count > 0 => drop(self.output.drain(..count)),
                Err(error) if is_for_later(&error) => return,
                _ => {
                    self.deaf = true;
                    break;
                }
            }
        }
        self.output = Vec::new();
    }
}

/// Nothing is wrong; there is just nothing to be had at the moment.
pub fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Takes as long for a key that is nearly right as for one that is all wrong.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
