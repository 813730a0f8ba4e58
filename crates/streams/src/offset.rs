//! Offsets: the positions with which clients continue reading, opaque to them.
//!
//! An offset is a position as two numbers of sixteen decimal digits, so the order of the texts is the order of the
//! positions. In a stored stream the first number is zero and the second counts bytes; a feed chooses both itself.

/// The position before the first byte, as a fork or a subscription may name it.
pub const START: u64 = 0;

/// Positions are written in sixteen digits; a stream of ten petabytes is full.
pub const LIMIT: u64 = 9_999_999_999_999_999;

/// A place in a stream. Neither number has more than sixteen digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub major: u64,
    pub minor: u64,
}

impl From<u64> for Position {
    fn from(minor: u64) -> Position {
        Position { major: 0, minor }
    }
}

impl Position {
    /// The place in a stored stream; behind everything that there is where no stored stream has such a place.
    pub fn stored(self) -> u64 {
        if self.major == 0 { self.minor } else { u64::MAX }
    }
}

pub fn text(position: impl Into<Position>) -> String {
    let Position { major, minor } = position.into();
    format!("{major:016}_{minor:016}")
}

/// The position that an offset names. `None` when no server of this kind gives such an offset.
pub fn position(text: &str) -> Option<Position> {
    let (major, minor) = text.split_once('_')?;
    if major.len() != 16 || minor.len() != 16 {
        return None;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    Some(Position { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Where a reader wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    At(Position),
    Tail,
}

impl Start {
    /// `-1` is the beginning, `now` is the tail, anything else is an offset.
    pub fn parse(text: &str) -> Option<Start> {
        match text {
            "-1" => Some(Start::At(START.into())),
            "now" => Some(Start::Tail),
            text => position(text).map(Start::At),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_sort_as_their_positions_do() {
        let places = [(0, 0), (0, 9), (0, 10), (0, 255), (0, LIMIT), (9, LIMIT), (10, 0), (LIMIT, 1)];
        let places = places.map(|(major, minor)| Position { major, minor });
        let mut texts: Vec<String> = places.into_iter().map(text).collect();
        let sorted = texts.clone();
        texts.sort();
        assert_eq!(texts, sorted);
        assert!(sorted.iter().zip(places).all(|(text, at)| position(text) == Some(at)));
    }

    #[test]
    fn an_offset_that_was_not_given_out_is_no_position() {
        for bad in
            ["", "1", "a", "0000000000000000_000000000000000x", "0000000000000000-0000000000000000", " "]
        {
            assert_eq!(Start::parse(bad), None, "{bad:?}");
        }
        let far = position("9999999999999999_9999999999999999");
        assert_eq!(far.map(Position::stored), Some(u64::MAX), "behind the end of whatever is stored");
    }
}
