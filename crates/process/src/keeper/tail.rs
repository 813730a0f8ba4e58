//! Reads a growing file line by line, from any offset, within bounded memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// A longer line is delivered cut to this.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// How much is read at once, from a file that has just grown a little and from one that has much to read.
const CHUNK_MIN: usize = 4 << 10;
const CHUNK: usize = 64 << 10;

/// A line as it stands in the file: any bytes, not only text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it starts.
    pub start: u64,
    /// Where the next one starts; reading goes on from here.
    pub end: u64,
    /// How long it is, without its newline.
    pub length: u64,
    /// Its bytes without the newline, or as many of the first ones as the limit allows.
    pub bytes: Vec<u8>,
}

impl Line {
    /// Whether `bytes` is only the beginning of it.
    pub fn is_cut(&self) -> bool {
        self.length > self.bytes.len() as u64
    }
}

/// Reads on in a file that another process writes.
#[derive(Debug)]
pub struct Tail {
    file: File,
    line_bytes_max: usize,
    /// How long the file is, as far as somebody told.
    known: Option<u64>,
    /// Where the line starts of which `line` is the beginning.
    start: u64,
    /// What is known of that line: its first bytes, and how long it is so far.
    line: Vec<u8>,
    length: u64,
    /// What was read beyond `start + length`, from `used` on.
    chunk: Vec<u8>,
    used: usize,
}

impl Tail {
    /// Reads from this offset, which is taken for the start of a line.
    pub fn open(path: &Path, offset: u64) -> io::Result<Tail> {
        Ok(Tail {
            file: open(path)?,
            line_bytes_max: LINE_BYTES_MAX,
            known: None,
            start: offset,
            line: Vec::new(),
            length: 0,
            chunk: Vec::new(),
            used: 0,
        })
    }

    /// Cuts longer lines to this.
    pub fn with_line_bytes_max(mut self, max: usize) -> Tail {
        self.line_bytes_max = max;
        self
    }

    /// The file is this long, says who writes it: where it was read so far, it is not looked at until it is longer, or
    /// has ended. Thousands of files that grow by a line now and then are read with one call each and not with three.
    pub fn grown(&mut self, length: u64) {
        self.known = Some(length);
    }

    /// Where the first line starts that was not delivered.
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// The next line, or `None` if the file has no further one yet. Where `ended`, nothing will be written any more,
    /// and what stands there without a newline is a line too.
    pub fn next(&mut self, ended: bool) -> io::Result<Option<Line>> {
        loop {
            if let Some(at) = self.chunk[self.used..].iter().position(|&b| b == b'\n') {
                self.add(at);
                self.used += 1;
                return Ok(Some(self.deliver(1)));
            }
            self.add(self.chunk.len() - self.used);
            if !self.read(ended)? {
                // An idle reader keeps no buffer: there may be thousands of them.
                (self.chunk, self.used) = (Vec::new(), 0);
                self.line.shrink_to_fit();
                return Ok((ended && self.length > 0).then(|| self.deliver(0)));
            }
        }
    }

    /// Adds so many bytes of the chunk to the line, as far as there is room for them.
    fn add(&mut self, count: usize) {
        let room = self.line_bytes_max - self.line.len();
        self.line.extend_from_slice(&self.chunk[self.used..self.used + count.min(room)]);
        self.length += count as u64;
        self.used += count;
    }

    fn deliver(&mut self, newline: u64) -> Line {
        let (start, length) = (self.start, self.length);
        self.start = start + length + newline;
        self.length = 0;
        Line { start, end: self.start, length, bytes: std::mem::take(&mut self.line) }
    }

    /// False at the end of what was written.
    fn read(&mut self, ended: bool) -> io::Result<bool> {
        let at = self.start + self.length;
        // Small at first: most of the time a line or two came. Only what fills a chunk is worth a larger one.
        let size = match self.known.filter(|_| !ended) {
            Some(known) if known <= at => return Ok(false),
            Some(known) => (known - at).min(CHUNK as u64) as usize,
            None if self.chunk.len() >= CHUNK_MIN => CHUNK,
            None => CHUNK_MIN,
        };
        self.chunk.resize(size, 0);
        self.used = 0;
        let count = loop {
            match self.file.read_at(&mut self.chunk, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let read = count.as_ref().map_or(0, |&count| count);
        self.chunk.truncate(read);
        Ok(count? > 0)
    }
}

/// Without keeping the time of the last look, which the file system would write down after every line. Only a file's
/// owner may ask for that.
fn open(path: &Path) -> io::Result<File> {
    let unseen = File::options().read(true).custom_flags(OFlag::O_NOATIME.bits()).open(path);
    match unseen {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use testing::Folder;

    fn lines(tail: &mut Tail, ended: bool) -> Vec<Line> {
        std::iter::from_fn(|| tail.next(ended).unwrap()).collect()
    }

    #[test]
    fn lines_come_as_they_are_written_and_the_last_one_at_the_end() {
        let dir = Folder::new();
        let path = dir.path.join("out");
        let mut file = File::create(&path).unwrap();
        let mut tail = Tail::open(&path, 0).unwrap();
        assert_eq!(tail.next(false).unwrap(), None);
        file.write_all(b"one\n\ntw").unwrap();
        let got = lines(&mut tail, false);
        assert_eq!(got[0], Line { start: 0, end: 4, length: 3, bytes: b"one".to_vec() });
        assert_eq!(got[1], Line { start: 4, end: 5, length: 0, bytes: Vec::new() });
        assert_eq!(got.len(), 2);
        assert_eq!(tail.offset(), 5);
        file.write_all(b"o\nthree").unwrap();
        assert_eq!(lines(&mut tail, false)[0].bytes, b"two");
        assert_eq!(tail.next(false).unwrap(), None);
        assert_eq!(
            tail.next(true).unwrap(),
            Some(Line { start: 9, end: 14, length: 5, bytes: b"three".to_vec() })
        );
        assert_eq!(tail.next(true).unwrap(), None);
    }

    #[test]
    fn where_the_length_was_told_no_more_is_read_until_there_is_more_or_the_end() {
        let dir = Folder::new();
        let path = dir.path.join("out");
        let mut file = File::create(&path).unwrap();
        let mut tail = Tail::open(&path, 0).unwrap();
        file.write_all(b"one\ntwo\nthr").unwrap();
        tail.grown(4);
        let texts = |lines: Vec<Line>| lines.into_iter().map(|line| line.bytes).collect::<Vec<_>>();
        assert_eq!(texts(lines(&mut tail, false)), [b"one"]);
        tail.grown(10);
        assert_eq!(texts(lines(&mut tail, false)), [b"two"]);
        file.write_all(b"ee").unwrap();
        assert_eq!(texts(lines(&mut tail, true)), [b"three"], "at the end all there is counts");
    }

    #[test]
    fn reading_goes_on_from_the_offset_after_any_line() {
        let dir = Folder::new();
        let path = dir.path.join("out");
        let text: Vec<u8> =
            (0..500).flat_map(|n| vec![b'x'; n * 37 % 6000].into_iter().chain(*b"\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let all = lines(&mut Tail::open(&path, 0).unwrap(), true);
        assert_eq!(all.len(), 500);
        for line in all.iter().step_by(50) {
            let rest = lines(&mut Tail::open(&path, line.end).unwrap(), true);
            assert_eq!(rest, all[all.iter().position(|other| other == line).unwrap() + 1..]);
        }
    }

    #[test]
    fn any_bytes_are_kept_as_they_are() {
        let dir = Folder::new();
        let path = dir.path.join("out");
        let bytes: Vec<u8> = (0..=255).filter(|&b| b != b'\n').chain(*b"\xff\xfe\x00\x1b[31m\r").collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Tail::open(&path, 0).unwrap().next(true).unwrap().unwrap().bytes, bytes);
    }

    #[test]
    fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        let dir = Folder::new();
        let path = dir.path.join("out");
        let mut text = vec![b'a'; 1_000_000];
        text.extend(b"\nshort\n");
        text.extend(vec![b'b'; 300_000]);
        std::fs::write(&path, &text).unwrap();
        let mut tail = Tail::open(&path, 0).unwrap().with_line_bytes_max(1000);
        let got = lines(&mut tail, true);
        assert_eq!((got[0].length, got[0].bytes.len(), got[0].is_cut()), (1_000_000, 1000, true));
        assert_eq!((got[0].end, got[1].bytes.as_slice(), got[1].is_cut()), (1_000_001, &b"short"[..], false));
        assert_eq!((got[2].length, got[2].end), (300_000, text.len() as u64));
        assert!(tail.line.capacity() <= 2000 && tail.chunk.capacity() == 0);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole() {
        let dir = Folder::new();
        let path = dir.path.join("out");
        std::fs::write(&path, "12345\n123456\n").unwrap();
        let got = lines(&mut Tail::open(&path, 0).unwrap().with_line_bytes_max(5), false);
        assert_eq!((got[0].is_cut(), got[1].is_cut()), (false, true));
    }
}
