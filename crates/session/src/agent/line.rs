//! Lines of an agent's output, of any length.
//!
//! - [`Line`]: a line, with long texts cut
//! - [`LineSplitter`]: the lines of a stream that comes in pieces

use protocol::json::repair::{Bounds, Repair, Repaired, repaired};

use super::{dialect::words, turns::MAX_LINE};

/// The longest line that is kept as a whole, in bytes.
pub(crate) const MAX_WHOLE: usize = 8 * 1024 * 1024;
/// How much is kept of a line that is longer than [`MAX_LINE`].
const CUT: Bounds = Bounds { total: MAX_LINE - 128 * 1024, ..Bounds::WHOLE };

/// A line of an agent's output, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line, if it has at most [`MAX_LINE`] bytes. Of a longer line of JSON: the same JSON with long
    /// texts cut, while kinds and ids are kept. Of another longer line: its beginning.
    pub text: String,
    /// The part that `text` lacks, if it was cut.
    pub cut: Option<Cut>,
}

/// A line that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The line's length in bytes.
    pub bytes: u64,
    /// The whole line, if it has at most 8 MiB.
    pub whole: Option<String>,
}

impl From<&str> for Line {
    fn from(line: &str) -> Self {
        let mut splitter = LineSplitter::default();
        splitter.add(line.as_bytes());
        splitter.take()
    }
}

impl Line {
    fn of(line: &[u8]) -> Self {
        // Some programs end their lines as on Windows.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let whole = String::from_utf8_lossy(line).into_owned();
        if whole.len() <= MAX_LINE {
            return Self { text: whole, cut: None };
        }
        match repaired(line, CUT) {
            Some(Repaired { text, .. }) => {
                let whole = Some(whole).filter(|whole| whole.len() <= MAX_WHOLE);
                Self { text, cut: Some(Cut { bytes: line.len() as u64, whole }) }
            }
            None => Self::beginning(&whole, line.len() as u64),
        }
    }

    fn beginning(line: &str, bytes: u64) -> Self {
        let text = words::cut(line, MAX_LINE).to_owned();
        Self { text, cut: Some(Cut { bytes, whole: None }) }
    }
}

/// Splits a stream into lines. It keeps at most the unfinished line. Of an unfinished line that is
/// longer than 8 MiB, it keeps only the part that is shown.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The unfinished line, or the beginning of a very long one.
    rest: Vec<u8>,
    /// The unfinished line, if it is very long.
    long: Option<Long>,
}

#[derive(Debug)]
struct Long {
    repair: Box<Repair>,
    bytes: u64,
}

impl LineSplitter {
    /// Takes a piece of the stream, and adds the lines that end in it.
    pub fn push(&mut self, mut bytes: &[u8], lines: &mut impl Extend<Line>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            lines.extend([self.take()]);
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    /// The last line, if it has no end.
    pub fn end(&mut self) -> Option<Line> {
        (self.unfinished() > 0).then(|| self.take())
    }

    /// The length of the unfinished line so far, in bytes.
    pub fn unfinished(&self) -> u64 {
        self.long.as_ref().map_or(self.rest.len() as u64, |long| long.bytes)
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(long) = &mut self.long {
            long.repair.push(bytes);
            long.bytes += bytes.len() as u64;
            return;
        }
        self.rest.extend_from_slice(bytes);
        if self.rest.len() > MAX_WHOLE {
            let mut repair = Box::new(Repair::new(CUT));
            repair.push(&self.rest);
            self.long = Some(Long { repair, bytes: self.rest.len() as u64 });
            // The beginning is kept, since it is shown if the line is not JSON.
            self.rest.truncate(MAX_LINE);
            self.rest.shrink_to_fit();
        }
    }

    fn take(&mut self) -> Line {
        let rest = std::mem::take(&mut self.rest);
        let Some(Long { repair, bytes }) = self.long.take() else { return Line::of(&rest) };
        match repair.finish() {
            Some(Repaired { text, .. }) => Line { text, cut: Some(Cut { bytes, whole: None }) },
            None => Line::beginning(&String::from_utf8_lossy(&rest), bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn all(stream: &[u8], piece: usize) -> Vec<Line> {
        let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
        for piece in stream.chunks(piece) {
            splitter.push(piece, &mut lines);
            assert!(splitter.rest.capacity() <= 2 * (MAX_WHOLE + piece.len()));
        }
        lines.extend(splitter.end());
        assert_eq!(splitter.end(), None);
        lines
    }

    fn texts(stream: &str) -> Vec<String> {
        all(stream.as_bytes(), 1 << 16).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_line_needs_no_end_at_the_end_of_the_stream() {
        assert_eq!(texts("one\n\ntwo\r\nthree"), ["one", "", "two", "three"]);
        assert_eq!(texts(""), Vec::<String>::new());
    }

    #[test]
    fn of_a_long_line_the_ids_and_the_end_are_kept_whatever_its_length() {
        for bytes in [MAX_LINE, MAX_WHOLE, 3 * MAX_WHOLE] {
            let long = "x".repeat(bytes);
            let line = format!(r#"{{"id":"a","in":{{"text":"{long}"}},"result":"r"}}"#);
            let lines = all(format!("{line}\nshort\n").as_bytes(), 1 << 16);
            let [Line { text, cut: Some(cut) }, Line { cut: None, .. }] = &lines[..] else {
                panic!("{bytes}")
            };
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!((&read["id"], &read["result"]), (&"a".into(), &"r".into()));
            assert!(text.len() <= MAX_LINE);
            assert_eq!(cut.bytes, line.len() as u64);
            let whole = (bytes == MAX_LINE).then_some(line);
            assert!(cut.whole == whole, "of {bytes} bytes");
        }
    }

    #[test]
    fn of_a_long_line_that_is_not_json_the_beginning_is_kept() {
        for bytes in [2 * MAX_LINE, 2 * MAX_WHOLE] {
            let lines = texts(&format!("{}\nnext", "é".repeat(bytes / 2)));
            assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE, "next"));
        }
    }

    #[test]
    fn invalid_utf8_makes_no_line_longer_than_the_bound() {
        let lines = all(&vec![0xff; 2 * MAX_LINE], 1 << 16);
        assert!(lines[0].text.len() <= MAX_LINE);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(
            lines in prop::collection::vec("[a-zä ]{0,40}", 0..20),
            piece in 1_usize..64,
        ) {
            let sent: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let read: Vec<String> =
                all(sent.as_bytes(), piece).into_iter().map(|line| line.text).collect();
            prop_assert_eq!(read, lines);
        }
    }
}
