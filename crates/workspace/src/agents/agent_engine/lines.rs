//! The lines of an agent's output, as they come.

use std::io;

use bytes::BytesMut;
use session::agent::{Line, LineSplitter};

/// A stream of output.
pub(crate) trait Source: Send {
    /// Waits for output and appends it. Returns the number of bytes, 0 at the end. Nothing is lost when the
    /// call is dropped.
    fn read(&mut self, buffer: &mut BytesMut) -> impl Future<Output = io::Result<usize>> + Send;
}

impl Source for process::ChildOutput {
    async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        self.read(buffer).await
    }
}

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    splitter: LineSplitter,
    /// The bytes that were read and not split yet.
    buffer: BytesMut,
    /// The number of bytes of the stream up to the end of the last line that was returned.
    taken: u64,
    /// The number of bytes of the stream that the splitter has got.
    split: u64,
    has_ended: bool,
}

impl<R: Source> Lines<R> {
    /// The lines of a stream of which this many bytes were taken before.
    pub(crate) fn new(source: R, taken: u64) -> Self {
        let (splitter, buffer) = (LineSplitter::default(), BytesMut::new());
        Self { source, splitter, buffer, taken, split: taken, has_ended: false }
    }

    /// The number of bytes of the stream up to the end of the last line that was returned.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// The next line; `None` at the end of the stream. Nothing is lost when the call is dropped.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.split() {
                return Ok(Some(line));
            }
            if self.has_ended {
                self.taken = self.split;
                return Ok(self.splitter.end());
            }
            // A silent process holds no memory between its lines.
            self.buffer = BytesMut::new();
            self.has_ended = self.source.read(&mut self.buffer).await? == 0;
        }
    }

    /// Gives the splitter the bytes that were read, up to the end of the first line.
    fn split(&mut self) -> Option<Line> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n');
        let piece = self.buffer.split_to(end.map_or(self.buffer.len(), |end| end + 1));
        self.split += piece.len() as u64;
        let mut lines = Vec::new();
        self.splitter.push(&piece, &mut lines);
        if !lines.is_empty() {
            self.taken = self.split;
        }
        lines.pop()
    }
}

#[cfg(test)]
mod tests {
    use session::agent::MAX_LINE;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    impl Source for DuplexStream {
        async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
            self.read_buf(buffer).await
        }
    }

    #[tokio::test]
    async fn lines_come_as_they_are_written_and_the_last_needs_no_end() {
        let (mut to, from) = tokio::io::duplex(64);
        let mut lines = Lines::new(from, 0);
        let mut next = async || lines.next().await.unwrap().map(|line| line.text);
        to.write_all(b"one\ntw").await.unwrap();
        assert_eq!(next().await.as_deref(), Some("one"));
        to.write_all(b"o\n\nthree").await.unwrap();
        drop(to);
        assert_eq!(next().await.as_deref(), Some("two"));
        assert_eq!(next().await.as_deref(), Some(""));
        assert_eq!(next().await.as_deref(), Some("three"));
        assert_eq!((next().await, next().await), (None, None));
    }

    #[tokio::test]
    async fn a_stream_that_never_ends_its_line_takes_no_more_memory_than_a_line() {
        let (mut to, from) = tokio::io::duplex(1024 * 1024);
        let mut lines = Lines::new(from, 0);
        let written = tokio::spawn(async move {
            for _ in 0..32 {
                to.write_all(&vec![b'x'; 1024 * 1024]).await.unwrap();
            }
        });
        let line = lines.next().await.unwrap().unwrap();
        assert_eq!((line.text.len(), line.cut.unwrap().bytes), (MAX_LINE, 32 * 1024 * 1024));
        assert_eq!(lines.next().await.unwrap(), None);
        written.await.unwrap();
    }
}
