//! Where the lines of a stream end, with `\n`, `\r\n` or `\r`.

use std::ops::Range;

/// A line that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its bytes, without the line end.
    pub(crate) text: Range<usize>,
    /// Where the next line begins.
    pub(crate) next: usize,
    /// Whether a lone `\r` ends these bytes: a `\n` that comes next belongs to it.
    pub(crate) cut_after_cr: bool,
}

/// The first line that ends in `bytes` from `start` on.
pub(crate) fn next_line(bytes: &[u8], start: usize) -> Option<Line> {
    let end = start + memchr::memchr2(b'\n', b'\r', bytes.get(start..)?)?;
    let cr = bytes[end] == b'\r';
    let crlf = cr && bytes.get(end + 1) == Some(&b'\n');
    let next = end + 1 + usize::from(crlf);
    Some(Line { text: start..end, next, cut_after_cr: cr && next == bytes.len() && !crlf })
}

/// The length of the event at the beginning of `bytes`, with the empty line that ends it.
pub fn event_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = next_line(bytes, at)?;
        at = line.next;
        if line.text.is_empty() {
            return Some(at);
        }
    }
}
