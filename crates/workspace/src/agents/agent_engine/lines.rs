//! Lines of a stream, each of a bounded length.

use std::io;

use bytes::{Buf as _, BytesMut};
use session::agent::MAX_LINE;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much is read at a time, in bytes.
const READ: usize = 64 * 1024;

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    buffer: BytesMut,
    /// How many bytes at the buffer's beginning contain no line end.
    seen: usize,
    /// Whether the bytes up to the next line end are the rest of a line that was cut.
    is_cut: bool,
    has_ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: BytesMut::new(), seen: 0, is_cut: false, has_ended: false }
    }

    /// The next line, without its end; `None` at the end of the stream. A line that is longer than
    /// [`MAX_LINE`] is cut one byte after that bound, so that the caller can recognise it. Nothing
    /// is lost when the call is dropped.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if self.has_ended {
                return Ok(self.rest());
            }
            self.buffer.reserve(READ);
            self.has_ended = self.source.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// The next line that is in the buffer already.
    fn take(&mut self) -> Option<String> {
        loop {
            let end = self.buffer[self.seen..].iter().position(|byte| *byte == b'\n');
            let Some(end) = end.map(|end| self.seen + end) else {
                self.seen = self.buffer.len();
                return self.cut();
            };
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            self.seen = 0;
            self.give_back();
            if !std::mem::take(&mut self.is_cut) {
                return Some(text(&line));
            }
        }
    }

    /// The beginning of a line that is too long. The rest of it is not kept.
    fn cut(&mut self) -> Option<String> {
        if self.is_cut {
            self.buffer.clear();
            self.seen = 0;
            return None;
        }
        if self.buffer.len() <= MAX_LINE {
            return None;
        }
        let line = text(&self.buffer[..=MAX_LINE]);
        self.buffer = BytesMut::new();
        (self.seen, self.is_cut) = (0, true);
        Some(line)
    }

    /// Frees an empty buffer, so that a silent process holds no memory.
    fn give_back(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.buffer);
        self.seen = 0;
        (!rest.is_empty() && !self.is_cut).then(|| text(&rest))
    }
}

/// A line as text. The replacements for invalid UTF-8 are longer than the bytes that they replace,
/// so the text is cut to the bound again.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut text = String::from_utf8_lossy(line).into_owned();
    if text.len() > MAX_LINE + 1 {
        text.truncate(text.ceil_char_boundary(MAX_LINE + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn all<R: AsyncRead + Unpin>(source: R) -> Vec<String> {
        let mut lines = Lines::new(source);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        assert_eq!(lines.next().await.unwrap(), None, "it has ended for good");
        all
    }

    #[tokio::test]
    async fn a_line_needs_no_end_at_the_end_of_the_stream() {
        assert_eq!(all(Cursor::new("one\n\ntwo\r\nthree")).await, ["one", "", "two", "three"]);
        assert_eq!(all(Cursor::new("")).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_cut_and_what_comes_after_it_is_whole() {
        let long = "x".repeat(3 * MAX_LINE);
        let lines = all(Cursor::new(format!("{long}\nshort\n{long}"))).await;
        let lengths: Vec<usize> = lines.iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_LINE + 1, 5, MAX_LINE + 1]);
    }

    #[tokio::test]
    async fn invalid_utf8_makes_no_line_longer_than_the_bound() {
        let lines = all(Cursor::new(vec![0xff; 2 * MAX_LINE])).await;
        assert!(lines[0].len() > MAX_LINE && lines[0].len() <= MAX_LINE + 4);
    }

    #[tokio::test]
    async fn a_stream_that_never_ends_its_line_takes_no_more_memory_than_a_line() {
        let (mut to, from) = tokio::io::duplex(1024 * 1024);
        let mut lines = Lines::new(from);
        let written = tokio::spawn(async move {
            for _ in 0..16 {
                to.write_all(&vec![b'x'; 1024 * 1024]).await.unwrap();
            }
        });
        assert_eq!(lines.next().await.unwrap().unwrap().len(), MAX_LINE + 1);
        assert_eq!(lines.next().await.unwrap(), None);
        assert!(lines.buffer.capacity() <= MAX_LINE + READ);
        written.await.unwrap();
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(
            lines in prop::collection::vec("[a-zä ]{0,40}", 0..20),
            piece in 1_usize..64,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let sent: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let read = runtime.block_on(async {
                let (mut to, from) = tokio::io::duplex(piece);
                let (read, ()) = tokio::join!(all(from), async move {
                    to.write_all(sent.as_bytes()).await.unwrap();
                });
                read
            });
            prop_assert_eq!(read, lines);
        }
    }
}
