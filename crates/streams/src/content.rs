//! How the content type of a stream decides the storage and sending of its bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::json;

/// The type of a stream that was created without one.
pub const DEFAULT: &str = "application/octet-stream";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Json,
    Text,
    Binary,
}

/// The media type alone, in small letters: parameters such as a charset do not make another type.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl Kind {
    pub fn of(content_type: &str) -> Kind {
        let media_type = media_type(content_type);
        if media_type == "application/json" {
            Kind::Json
        } else if media_type.starts_with("text/") {
            Kind::Text
        } else {
            Kind::Binary
        }
    }

    /// The body of an answer with these kept bytes.
    pub fn body(self, kept: &Bytes) -> Bytes {
        match self {
            Kind::Json => Bytes::from(json::array(kept)),
            Kind::Text | Kind::Binary => kept.clone(),
        }
    }

    /// The payload of a data event with these kept bytes.
    pub fn event(self, kept: &Bytes) -> String {
        match self {
            Kind::Json => String::from_utf8_lossy(&json::array(kept)).into_owned(),
            Kind::Text => String::from_utf8_lossy(kept).into_owned(),
            Kind::Binary => STANDARD.encode(kept),
        }
    }

    /// How much of `kept` to send when only about `room` bytes may be: whole messages and whole characters, and
    /// something in any case, since a reader that gets nothing never goes on.
    pub fn cut(self, kept: &[u8], room: usize) -> usize {
        if kept.len() <= room {
            return kept.len();
        }
        match self {
            Kind::Binary => room.max(1),
            Kind::Text => {
                let at = (0..=room).rev().find(|at| kept[*at] & 0xc0 != 0x80).unwrap_or(room);
                if at == 0 { room.max(1) } else { at }
            }
            Kind::Json => match kept[..room].iter().rposition(|byte| *byte == json::END) {
                Some(last) => last + 1,
                None => kept.iter().position(|byte| *byte == json::END).map_or(kept.len(), |first| first + 1),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_capitals_do_not_make_another_type() {
        assert_eq!(media_type("Text/Plain; charset=utf-8"), "text/plain");
        assert_eq!(Kind::of("application/JSON;charset=utf-8"), Kind::Json);
        assert_eq!(Kind::of("image/png"), Kind::Binary);
    }

    #[test]
    fn a_cut_keeps_messages_and_characters_whole() {
        assert_eq!(Kind::Binary.cut(b"abcdef", 4), 4);
        assert_eq!(Kind::Text.cut("aä".as_bytes(), 2), 1);
        let kept = json::messages(b"[1,22,333]").unwrap();
        assert_eq!(Kind::Json.cut(&kept, 6), 5);
        assert_eq!(Kind::Json.cut(&kept, 1), 2, "the first message is sent even where it is too long");
    }

    #[test]
    fn bytes_are_base64_with_padding_in_an_event_and_as_they_are_in_a_body() {
        let kept = Bytes::from_static(&[0xfb, 0xff]);
        assert_eq!(Kind::Binary.event(&kept), "+/8=");
        assert_eq!(Kind::Binary.body(&kept), kept);
    }
}
