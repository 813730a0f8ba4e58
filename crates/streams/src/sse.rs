//! Frames of server-sent events.

use bytes::Bytes;
use serde_json::json;

use crate::offset::{self, Position};

/// A data event. Every kind of line end in the payload begins a new line, so that nothing in it can be taken for an event.
pub fn data(payload: &str) -> Bytes {
    let mut frame = String::with_capacity(payload.len() + 32);
    frame.push_str("event: data\n");
    let mut rest = payload;
    loop {
        let end = rest.find(['\r', '\n']);
        push_line(&mut frame, &rest[..end.unwrap_or(rest.len())]);
        let Some(end) = end else { break };
        let width = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + width..];
    }
    frame.push('\n');
    Bytes::from(frame)
}

/// A reader takes one space after the colon away; a line that begins with one needs a second.
fn push_line(frame: &mut String, line: &str) {
    frame.push_str(if line.starts_with(' ') { "data: " } else { "data:" });
    frame.push_str(line);
    frame.push('\n');
}

/// What a control event says.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    pub next: Position,
    pub cursor: u64,
    pub up_to_date: bool,
    pub closed: bool,
}

pub fn control(control: Control) -> Bytes {
    let mut fields = json!({ "streamNextOffset": offset::text(control.next) });
    if control.closed {
        // No cursor: nobody comes back to a stream that is closed.
        fields["upToDate"] = json!(true);
        fields["streamClosed"] = json!(true);
    } else {
        fields["streamCursor"] = json!(control.cursor.to_string());
        if control.up_to_date {
            fields["upToDate"] = json!(true);
        }
    }
    Bytes::from(format!("event: control\ndata:{fields}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_end_in_a_payload_ends_the_event() {
        for (payload, frame) in [
            ("a", "event: data\ndata:a\n\n"),
            ("a\nb\r\nc\rd", "event: data\ndata:a\ndata:b\ndata:c\ndata:d\n\n"),
            ("a\n\nevent: control\n", "event: data\ndata:a\ndata:\ndata:event: control\ndata:\n\n"),
            (" a", "event: data\ndata:  a\n\n"),
            ("", "event: data\ndata:\n\n"),
        ] {
            assert_eq!(data(payload), frame.as_bytes(), "{payload:?}");
        }
    }

    #[test]
    fn the_last_control_event_has_no_cursor() {
        let frame = control(Control { next: 7.into(), cursor: 3, up_to_date: true, closed: true });
        let text = std::str::from_utf8(&frame).unwrap();
        assert!(text.contains("streamClosed") && text.contains("upToDate") && !text.contains("streamCursor"));
    }
}
