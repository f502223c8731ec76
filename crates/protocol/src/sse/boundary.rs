//! Where events begin and end in a stream of server-sent events that is forwarded unchanged.

/// A comment that clients ignore and that keeps a silent stream open. Write it only between
/// events.
pub const KEEPALIVE: &[u8] = b": keep-alive\n\n";

/// Follows a stream chunk by chunk and knows whether its end so far lies between two events.
///
/// Lines may end with `\n`, `\r\n` or `\r`, mixed and split over chunks in any way. The cost of a
/// chunk does not depend on its length: only its last bytes are examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    position: Position,
    /// Whether the last byte was `\r`, so that a `\n` now would belong to it.
    after_cr: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    EventStart,
    LineStart,
    InLine,
}

/// How many bytes decide. Four line-end bytes are at least two line ends, so nothing before them
/// matters.
const TAIL: usize = 4;

impl Boundary {
    /// The boundary before the first byte of a stream.
    pub const fn new() -> Self {
        Self { position: Position::EventStart, after_cr: false }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, chunk: &[u8]) {
        let tail = &chunk[chunk.len().saturating_sub(TAIL)..];
        if tail.len() < chunk.len() {
            *self = Self { position: Position::InLine, after_cr: false };
        }
        tail.iter().for_each(|&byte| self.step(byte));
    }

    /// Whether something may be written here without landing inside an event. Also true before
    /// the first byte.
    pub fn at_event_start(&self) -> bool {
        self.position == Position::EventStart
    }

    /// Whether the stream so far ends with a whole line, for streams whose unit is the line. Also
    /// true before the first byte.
    pub fn at_line_start(&self) -> bool {
        self.position != Position::InLine
    }

    /// The bytes that end an incomplete event; empty between events.
    pub fn closing(&self) -> &'static [u8] {
        match self.position {
            Position::EventStart => b"",
            Position::LineStart if !self.after_cr => b"\n",
            // After `\r` the first `\n` would only complete that line end.
            Position::LineStart | Position::InLine => b"\n\n",
        }
    }

    fn step(&mut self, byte: u8) {
        let completes_cr = byte == b'\n' && self.after_cr;
        self.after_cr = byte == b'\r';
        self.position = match (byte, self.position) {
            _ if completes_cr => self.position,
            (b'\n' | b'\r', Position::InLine) => Position::LineStart,
            (b'\n' | b'\r', _) => Position::EventStart,
            _ => Position::InLine,
        };
    }
}

impl Default for Boundary {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether an answer that begins with these bytes is a stream of events: after an optional byte
/// order mark and empty lines comes `data:`, `event:`, `id:`, `retry:` or a comment.
pub fn looks_like_sse(start: &[u8]) -> bool {
    begins_like_sse(start) == Some(true)
}

/// The same for an answer that may have only begun; `None` while that is undecided.
pub fn begins_like_sse(start: &[u8]) -> Option<bool> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    const FIELDS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];
    let text = start.strip_prefix(MARK).unwrap_or(start);
    let first = text.iter().position(|byte| !matches!(byte, b'\n' | b'\r')).unwrap_or(text.len());
    let line = &text[first..];
    if FIELDS.iter().any(|field| line.starts_with(field)) {
        return Some(true);
    }
    let may_be = MARK.starts_with(start) || FIELDS.iter().any(|field| field.starts_with(line));
    (!may_be).then_some(false)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn after(stream: &[u8]) -> Boundary {
        let mut boundary = Boundary::new();
        boundary.feed(stream);
        boundary
    }

    #[test]
    fn knows_every_kind_of_line_end() {
        for end in ["\n\n", "\r\n\r\n", "\r\r", "\n\r", "\n\r\n", "\r\n\n", "\r\n\r", "\n\n\n\n\n"]
        {
            assert!(after(format!("data: x{end}").as_bytes()).at_event_start(), "{end:?}");
        }
        for end in ["", "\n", "\r", "\r\n", "\n\nd", "\n\n:"] {
            assert!(!after(format!("data: x{end}").as_bytes()).at_event_start(), "{end:?}");
        }
        assert!(after(b"").at_event_start() && after(b"\n").at_event_start());
        assert!(after(b"").at_line_start() && after(b"{}\n").at_line_start());
        assert!(!after(b"{}\n{").at_line_start());
    }

    #[test]
    fn closing_is_as_short_as_it_can_be() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"", b""),
            (b"data: x\n\n", b""),
            (b"data: x\n", b"\n"),
            (b"data: x\r\n", b"\n"),
            (b"data: x\r", b"\n\n"),
            (b"data: x", b"\n\n"),
        ];
        for (stream, closing) in cases {
            assert_eq!(after(stream).closing(), closing, "{stream:?}");
        }
    }

    #[test]
    fn tells_events_from_other_answers() {
        for yes in
            ["data: {}", "event: x", ": hi", "id: 1", "retry: 5", "\u{feff}data:", "\r\n\ndata:"]
        {
            assert!(looks_like_sse(yes.as_bytes()), "{yes:?}");
        }
        for no in ["", "\n", "{\"error\":1}", "<html>", "dat", " data:", "data"] {
            assert!(!looks_like_sse(no.as_bytes()), "{no:?}");
        }
    }

    #[test]
    fn a_beginning_that_is_too_short_tells_nothing() {
        for yet in [&b""[..], b"\n", b"d", b"data", b"\r\ni", b"retry", b"\xef", b"\xef\xbb\xbf"] {
            assert_eq!(begins_like_sse(yet), None, "{yet:?}");
        }
        for no in [&b"{"[..], b"<", b"date", b" d", b"\n{", b"\xefx", b"\xef\xbb\xbf{"] {
            assert_eq!(begins_like_sse(no), Some(false), "{no:?}");
        }
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(
            stream in vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x')], 0..24),
            cut in 0usize..24,
        ) {
            let whole = after(&stream);
            let (head, tail) = stream.split_at(cut.min(stream.len()));
            let mut halves = after(head);
            halves.feed(tail);
            prop_assert_eq!(&halves, &whole);
            let mut bytes = Boundary::new();
            stream.iter().for_each(|byte| bytes.feed(&[*byte]));
            prop_assert_eq!(&bytes, &whole);
            let text = String::from_utf8(stream.clone()).unwrap();
            let lines = text.replace("\r\n", "\n").replace('\r', "\n");
            let between = lines.is_empty() || lines == "\n" || lines.ends_with("\n\n");
            prop_assert_eq!(whole.at_event_start(), between);
            let mut closed = whole.clone();
            closed.feed(whole.closing());
            prop_assert!(closed.at_event_start());
        }
    }
}
