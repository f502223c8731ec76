//! Just enough HTTP/1.1 to read either side of a connection.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const MAX_HEAD: usize = 256 * 1024;

/// A request line or status line with its headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The first line, without its end.
    pub line: String,
    /// Names in lower case with their values, in order, repeated ones too.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a header; the first, when it is repeated.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    pub fn words(&self) -> [&str; 3] {
        let mut words = self.line.splitn(3, ' ');
        std::array::from_fn(|_| words.next().unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
        let line = lines.next().unwrap_or_default().to_owned();
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Self { line, headers: lines.filter_map(header).collect() }
    }
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
    /// Here.
    Over,
}

impl Framing {
    pub fn of_request(head: &Head) -> Self {
        Self::of(head).unwrap_or(Self::Over)
    }

    pub fn of_response(head: &Head) -> Self {
        let [_, status, _] = head.words();
        let bodiless = status.starts_with('1') || ["204", "304"].contains(&status);
        if bodiless { Self::Over } else { Self::of(head).unwrap_or(Self::UntilClose) }
    }

    fn of(head: &Head) -> Option<Self> {
        if head.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            return Some(Self::Chunked);
        }
        let length: u64 = head.header("content-length")?.parse().ok()?;
        Some(if length == 0 { Self::Over } else { Self::Length(length) })
    }
}

/// Reads messages off one side of a connection.
#[derive(Debug)]
pub struct Reader<R> {
    io: R,
    buffer: BytesMut,
    /// The lines after the last chunk of a body.
    trailers: Vec<String>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads from `io`, from the beginning of a message.
    pub fn new(io: R) -> Self {
        Self { io, buffer: BytesMut::new(), trailers: Vec::new() }
    }

    /// The next head; nothing when the connection was closed before one began.
    ///
    /// # Errors
    /// When the connection breaks or ends inside a head, or the head is too large.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = self.buffer.split_to(end + 4);
                return Ok(Some(Head::parse(&head)));
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(io::Error::other("the head is too large"));
            }
            if !self.fill().await? {
                let clean = self.buffer.is_empty();
                return if clean { Ok(None) } else { Err(cut()) };
            }
        }
    }

    /// The next piece of a body: a chunk of a chunked one, otherwise whatever one read brings.
    /// Nothing at its end.
    ///
    /// # Errors
    /// When the connection breaks, or ends before the body does.
    pub async fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Bytes>> {
        match *framing {
            Framing::Over => Ok(None),
            Framing::Chunked => self.chunk(framing).await,
            Framing::UntilClose => {
                let more = !self.buffer.is_empty() || self.fill().await?;
                Ok(more.then(|| self.buffer.split().freeze()))
            }
            Framing::Length(left) => {
                self.need(1).await?;
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                let piece = self.buffer.split_to(self.buffer.len().min(most)).freeze();
                let left = left - piece.len() as u64;
                *framing = if left == 0 { Framing::Over } else { Framing::Length(left) };
                Ok(Some(piece))
            }
        }
    }

    pub async fn rest(&mut self, mut framing: Framing) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.piece(&mut framing).await? {
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }

    /// The lines after the last chunk of the last body.
    pub fn trailers(&self) -> &[String] {
        &self.trailers
    }

    /// Waits until the far end has closed or reset the connection; bytes that still come are
    /// dropped.
    pub async fn closed(&mut self) {
        while let Ok(true) = self.fill().await {
            self.buffer.clear();
        }
    }

    async fn chunk(&mut self, framing: &mut Framing) -> io::Result<Option<Bytes>> {
        let line = self.line().await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        if size == 0 {
            self.trailers.clear();
            loop {
                match self.line().await? {
                    line if line.is_empty() => break,
                    line => self.trailers.push(line),
                }
            }
            *framing = Framing::Over;
            return Ok(None);
        }
        self.need(size + 2).await?;
        let chunk = self.buffer.split_to(size).freeze();
        self.buffer.advance(2);
        Ok(Some(chunk))
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let line = self.buffer.split_to(end + 2);
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.need(self.buffer.len() + 1).await?;
        }
    }

    async fn need(&mut self, bytes: usize) -> io::Result<()> {
        while self.buffer.len() < bytes {
            if !self.fill().await? {
                return Err(cut());
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(16 * 1024);
        Ok(self.io.read_buf(&mut self.buffer).await? > 0)
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended inside a message")
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reads_messages_one_after_another() {
        let input = b"POST /a?b=c HTTP/1.1\r\nX-One: 1\r\nContent-Length: 3\r\n\r\nabc\
            GET / HTTP/1.1\r\n\r\n";
        let mut reader = Reader::new(&input[..]);
        let head = reader.head().await.unwrap().unwrap();
        assert_eq!(head.words(), ["POST", "/a?b=c", "HTTP/1.1"]);
        assert_eq!(head.header("x-one"), Some("1"));
        assert_eq!(reader.rest(Framing::of_request(&head)).await.unwrap(), "abc");
        let head = reader.head().await.unwrap().unwrap();
        assert_eq!(Framing::of_request(&head), Framing::Over);
        assert_eq!(reader.head().await.unwrap(), None);
    }

    #[tokio::test]
    async fn reads_chunks_as_they_were_written() {
        let input = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
            3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n";
        let mut reader = Reader::new(&input[..]);
        let head = reader.head().await.unwrap().unwrap();
        let mut framing = Framing::of_response(&head);
        assert_eq!(reader.piece(&mut framing).await.unwrap().unwrap(), "abc");
        assert_eq!(reader.piece(&mut framing).await.unwrap().unwrap(), "de");
        assert_eq!(reader.piece(&mut framing).await.unwrap(), None);
        assert_eq!(framing, Framing::Over);
    }

    #[tokio::test]
    async fn a_body_that_is_cut_is_an_error() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc";
        let mut reader = Reader::new(&input[..]);
        let head = reader.head().await.unwrap().unwrap();
        assert!(reader.rest(Framing::of_response(&head)).await.is_err());
    }
}
