//! A stream of events, read incrementally.

use super::line::next_line;
use crate::json::clip;

/// The longest event that is read, in bytes.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

/// The longest stored id, in bytes.
const MAX_ID: usize = 128;

/// An event longer than [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {MAX_EVENT} bytes")]
pub struct EventTooLong;

/// Reads the data of the events of a stream, split into chunks in any way. Names and comments are
/// ignored: every API here puts the event's type into the data.
///
/// Lines may end with `\n`, `\r\n` or `\r`.
#[derive(Debug, Clone, Default)]
pub struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last `id:`, which covers everything up to its event.
    id: String,
    /// Whether the last byte was `\r`, so that a `\n` now would belong to it.
    after_cr: bool,
    /// Whether the first line has ended. Only that one may begin with a byte order mark.
    begun: bool,
}

impl EventReader {
    /// Takes the next bytes, and calls `event` with the data of each event that they complete.
    ///
    /// # Errors
    /// [`EventTooLong`], and the errors of `event`.
    pub fn feed<E: From<EventTooLong>>(
        &mut self,
        chunk: &[u8],
        mut event: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // The other half of a `\r\n` that was cut in two.
        let mut at = usize::from(self.after_cr && chunk.first() == Some(&b'\n'));
        self.after_cr = self.after_cr && chunk.is_empty();
        while let Some(line) = next_line(chunk, at) {
            self.line.extend_from_slice(&chunk[line.text]);
            self.after_cr = line.cut_after_cr;
            at = line.next;
            self.end_line(&mut event)?;
        }
        self.line.extend_from_slice(&chunk[at..]);
        if self.line.len() + self.data.len() > MAX_EVENT {
            return Err(EventTooLong.into());
        }
        Ok(())
    }

    /// Ends the stream. An event without its empty line counts, too.
    ///
    /// # Errors
    /// The errors of `event`.
    pub fn end<E>(&mut self, mut event: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if !self.line.is_empty() {
            self.end_line(&mut event)?;
        }
        self.end_line(&mut event)
    }

    /// The id of the last event that had one, to ask for the events after it; empty: none had one.
    pub fn last_id(&self) -> &str {
        &self.id
    }

    fn end_line<E>(&mut self, event: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        if self.line.is_empty() {
            let had = std::mem::take(&mut self.has_data);
            let done = if had { event(&self.data) } else { Ok(()) };
            self.data.clear();
            return done;
        }
        let marked = self.line.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first);
        let line = marked.unwrap_or(&self.line);
        if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.has_data = true;
        } else if let Some(value) = line.strip_prefix(b"id:") {
            let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
            self.id = clip(&value, MAX_ID).to_owned();
        }
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        let mut take = |data: &[u8]| {
            events.push(String::from_utf8_lossy(data).into_owned());
            Ok::<_, EventTooLong>(())
        };
        for chunk in chunks {
            reader.feed(chunk, &mut take).unwrap();
        }
        reader.end(&mut take).unwrap();
        events
    }

    #[test]
    fn data_is_found_among_everything_else() {
        let stream =
            b": hi\n\nevent: x\ndata: {\"a\":1}\nid: 4\n\ndata:one\ndata: two\r\n\r\ndata: [DONE]";
        assert_eq!(read(&[stream]), ["{\"a\":1}", "one\ntwo", "[DONE]"]);
        assert_eq!(read(&[b"data:\n\n"]), [""]);
        let mut reader = EventReader::default();
        reader.feed(b"id: 7\ndata: a\n\ndata: b\n\n", |_| Ok::<_, EventTooLong>(())).unwrap();
        assert_eq!(reader.last_id(), "7");
        assert!(read(&[b"\n\n: only comments\n\n"]).is_empty());
    }

    #[test]
    fn a_byte_order_mark_is_removed_at_the_beginning_only() {
        let stream = "\u{feff}data: a\n\n\u{feff}data: b\n\ndata: \u{feff}c\n\n";
        assert_eq!(read(&[stream.as_bytes()]), ["a", "\u{feff}c"]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut reader = EventReader::default();
        let mebibyte = vec![b'x'; 1024 * 1024];
        let fed: Result<Vec<()>, EventTooLong> =
            (0..17).map(|_| reader.feed(&mebibyte, |_| Ok(()))).collect();
        assert!(fed.is_err());
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(
            lines in proptest::collection::vec(("(data: ?|: |event:|)", "[a-z]{0,4}", "(\n|\r\n|\r)"), 0..12),
            cuts in proptest::collection::vec(0usize..120, 0..6),
        ) {
            let stream: String = lines.iter().map(|(a, b, c)| format!("{a}{b}{c}")).collect();
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }
}
