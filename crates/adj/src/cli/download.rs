//! A log that a server sends: written on as it comes, and known to be whole or not at its end.

use std::io::{self, Write};

use super::{Exit, Failure};
use serde::Deserialize;

/// The first line is not longer than this.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// As much of a line as says what it is.
const LAST_BYTES: usize = 16;

/// What the first line says of those that follow.
#[derive(Deserialize)]
struct Head {
    records: u64,
}

pub struct Download<'o> {
    out: &'o mut dyn Write,
    head: Vec<u8>,
    lines: u64,
    /// The beginning of the line that was begun last.
    last: Vec<u8>,
    whole: bool,
}

impl<'o> Download<'o> {
    pub fn new(out: &'o mut dyn Write) -> Download<'o> {
        Download { out, head: Vec::new(), lines: 0, last: Vec::new(), whole: true }
    }

    /// How many records came, where these are all of them.
    pub fn records(mut self) -> Result<u64, Failure> {
        self.flush()?;
        let head: Option<Head> = serde_json::from_slice(&self.head).ok();
        // Streams stand behind the log, and their last line says that they are whole.
        let streams = self.last.starts_with(b"{\"end\":");
        let all = head.filter(|head| match streams {
            true => head.records + 1 < self.lines,
            false => head.records + 1 == self.lines,
        });
        all.map(|head| head.records).ok_or_else(|| {
            Failure::new(Exit::Failed, "the server did not send the whole log").hint("try again")
        })
    }
}

impl Write for Download<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let bytes = &bytes[..written];
        if self.lines == 0 && self.head.len() < HEAD_BYTES_MAX {
            self.head.extend(bytes.iter().take_while(|byte| **byte != b'\n'));
        }
        for byte in bytes {
            if std::mem::take(&mut self.whole) {
                self.last.clear();
            }
            match byte {
                b'\n' => self.whole = true,
                _ if self.last.len() < LAST_BYTES => self.last.push(*byte),
                _ => {}
            }
        }
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(parts: &[&str]) -> Result<u64, Failure> {
        let mut out = Vec::new();
        let mut download = Download::new(&mut out);
        for part in parts {
            download.write_all(part.as_bytes()).unwrap();
        }
        let records = download.records();
        assert_eq!(out, parts.concat().as_bytes());
        records
    }

    #[test]
    fn a_log_that_is_not_whole_is_known_by_its_first_line() {
        assert_eq!(records(&["{\"reco", "rds\":2}\n{}", "\n{}\n"]).ok(), Some(2));
        for wrong in [&["{\"records\":2}\n{}\n{"][..], &["{\"records\":1}"], &[], &["x\n"]] {
            assert!(records(wrong).is_err(), "{wrong:?}");
        }
    }
}
