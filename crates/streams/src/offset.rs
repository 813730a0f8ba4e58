//! Offsets: what a client keeps to go on reading, opaque to it.
//!
//! An offset is the position in the stream in sixteen decimal digits behind sixteen zeros, so that the order of
//! the texts is the order of the positions. The first half is reserved: a stream that is ever compacted can count there.

/// The position before the first byte, as a fork or a subscription may name it.
pub const START: u64 = 0;

/// Positions are written in sixteen digits; a stream of ten petabytes is full.
pub const LIMIT: u64 = 9_999_999_999_999_999;

pub fn text(position: u64) -> String {
    format!("{:016}_{position:016}", 0)
}

/// The position that an offset names. `None` when no server of this kind gives such an offset.
pub fn position(text: &str) -> Option<u64> {
    let (reserved, position) = text.split_once('_')?;
    if reserved.len() != 16 || position.len() != 16 {
        return None;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    // A reserved half that is not zero lies behind everything that there is.
    match reserved.parse::<u64>().ok()? {
        0 => position.parse().ok(),
        _ => Some(u64::MAX),
    }
}

/// Where a reader wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    At(u64),
    Tail,
}

impl Start {
    /// `-1` is the beginning, `now` is the tail, anything else is an offset.
    pub fn parse(text: &str) -> Option<Start> {
        match text {
            "-1" => Some(Start::At(START)),
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
        let mut texts: Vec<String> = [0, 9, 10, 255, 256, LIMIT].into_iter().map(text).collect();
        let sorted = texts.clone();
        texts.sort();
        assert_eq!(texts, sorted);
        assert!(sorted.iter().zip([0, 9, 10, 255, 256, LIMIT]).all(|(text, at)| position(text) == Some(at)));
    }

    #[test]
    fn an_offset_that_was_not_given_out_is_no_position() {
        for bad in
            ["", "1", "a", "0000000000000000_000000000000000x", "0000000000000000-0000000000000000", " "]
        {
            assert_eq!(Start::parse(bad), None, "{bad:?}");
        }
        assert_eq!(position("9999999999999999_9999999999999999"), Some(u64::MAX));
    }
}
