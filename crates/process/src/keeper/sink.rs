//! A file for output: if the disk is full for a while, it later gets exactly the missing bytes.

use std::io::{self, Write};

/// A file that is written to the last byte or not yet.
#[derive(Debug)]
pub struct Sink<W> {
    to: W,
    held: Vec<u8>,
    written: u64,
}

impl<W: Write> Sink<W> {
    pub fn new(to: W) -> Sink<W> {
        Sink { to, held: Vec::new(), written: 0 }
    }

    /// Writes all of it. An error says that a part is held until [`Sink::retry`] succeeds; nothing more may be given
    /// to it until then, which is what keeps the part small.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(self.held.is_empty(), "{} bytes are still held", self.held.len());
        let (taken, outcome) = write(&mut self.to, bytes);
        self.written += taken as u64;
        if outcome.is_err() {
            self.held.extend_from_slice(&bytes[taken..]);
        }
        outcome
    }

    /// Writes what is held.
    pub fn retry(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.write(&held)
    }

    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// How many bytes the file has.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How many bytes it has or will have.
    pub fn given(&self) -> u64 {
        self.written + self.held.len() as u64
    }

    pub fn file(&self) -> &W {
        &self.to
    }
}

/// How many bytes were written, and what stopped it.
fn write(to: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match to.write(&bytes[taken..]) {
            Ok(0) => return (taken, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => taken += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes, of which it takes at most three at once.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.bytes.len()).min(3);
            if count == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_is_full_for_a_while_loses_and_doubles_nothing() {
        let mut sink = Sink::new(Disk { bytes: Vec::new(), room: 0 });
        let mut said = Vec::new();
        for round in 0..50u8 {
            said.extend([round; 7]);
            let mut outcome = sink.write(&[round; 7]);
            while outcome.is_err() {
                assert!(sink.is_holding());
                assert_eq!((sink.written(), sink.given()), (sink.to.bytes.len() as u64, said.len() as u64));
                sink.to.room += 2;
                outcome = sink.retry();
            }
        }
        assert_eq!(sink.to.bytes, said);
        assert!(!sink.is_holding());
    }
}
