//! Frames over a connection, including the last one, which says why the connection is closed.

use std::{io, time::Duration};

use base::plain;
use bytes::{Bytes, BytesMut};
use protocol::mesh::frame::{self, TooLong};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use crate::link::MAX_REASON;

/// The size of a read at first, and from a slow connection, in bytes.
const LEAST_READ: usize = 16 * 1024;

/// The size of a read from a fast connection, in bytes.
const MOST_READ: usize = 1024 * 1024;

/// How long to wait for the other end to read why the connection is closed.
const DRAINED: Duration = Duration::from_secs(1);

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// The other end closed the connection.
    #[error("it closed the connection")]
    Closed,
    /// As `Closed`, but in the middle of a frame.
    #[error("it closed the connection within a frame")]
    Truncated,
    /// A frame that is longer than allowed.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// The incoming frames of a connection.
pub(super) struct Incoming<R> {
    io: R,
    buffer: BytesMut,
    /// How much is read at once, in bytes.
    step: usize,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) fn new(io: R) -> Self {
        Self { io, buffer: BytesMut::new(), step: LEAST_READ }
    }

    /// The next frame, of at most `max` bytes. Cancel safe.
    pub(super) async fn next(&mut self, max: usize) -> Result<Bytes, Broken> {
        loop {
            if let Some(frame) = self.ready(max)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// The next frame in the buffer, if it is complete.
    pub(super) fn ready(&mut self, max: usize) -> Result<Option<Bytes>, TooLong> {
        frame::take(&mut self.buffer, max)
    }

    /// Reads once. Cancel safe.
    pub(super) async fn fill(&mut self) -> Result<(), Broken> {
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * self.step {
            // The buffer has grown for one large frame. Otherwise each idle link would keep
            // megabytes.
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(self.step);
        match self.io.read_buf(&mut self.buffer).await? {
            0 if self.buffer.is_empty() => Err(Broken::Closed),
            0 => Err(Broken::Truncated),
            read => {
                self.adapt(read);
                Ok(())
            }
        }
    }

    /// Reads and drops what still arrives, for at most a second, until the other end closes. If a
    /// connection is closed with unread bytes, the system resets it, and the other end loses what
    /// was sent to it last.
    pub(super) async fn drain(&mut self) {
        self.buffer.clear();
        let drained = async {
            // A peer that sends without end must not keep the connection open.
            let mut most = 64;
            while most > 0 && self.fill().await.is_ok() {
                self.buffer.clear();
                most -= 1;
            }
        };
        let _ = timeout(DRAINED, drained).await;
    }

    /// Adapts the size of reads. Large reads are for models; an idle link should have a small
    /// buffer.
    fn adapt(&mut self, read: usize) {
        if read >= self.step {
            self.step = (self.step * 4).min(MOST_READ);
        } else if read < self.step / 16 {
            self.step = (self.step / 2).max(LEAST_READ);
        }
    }
}

/// Both directions of a connection.
pub(super) struct Frames<R, W> {
    pub(super) incoming: Incoming<R>,
    pub(super) writer: W,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Frames<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self { incoming: Incoming::new(reader), writer }
    }

    pub(super) async fn send(&mut self, payload: &[u8]) -> Result<(), Broken> {
        let mut out = BytesMut::new();
        frame::put(&mut out, payload);
        self.write(&out).await
    }

    /// Sends bytes that already are frames.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.writer.write_all(bytes).await?;
        Ok(self.writer.flush().await?)
    }
}

/// The frame that says that a link is closed, and why: `{"linkClosed":{"reason":…}}`. A Warren
/// sends it last: in clear text before the link is sealed, and sealed afterwards. Stock peers
/// ignore it.
pub(super) fn farewell(reason: &str) -> Vec<u8> {
    // It has only text, so it always serialises.
    let reason = reason.to_owned();
    serde_json::to_vec(&Farewell { link_closed: Reason { reason } }).unwrap_or_default()
}

/// The reason, if the payload is a farewell.
pub(super) fn farewell_reason(payload: &[u8]) -> Option<String> {
    if !payload.starts_with(BEGINNING) {
        return None;
    }
    let farewell: Farewell = serde_json::from_slice(payload).ok()?;
    let reason = plain::line(&farewell.link_closed.reason);
    Some(protocol::json::clip(&reason, MAX_REASON).to_owned())
}

const BEGINNING: &[u8] = br#"{"linkClosed":"#;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Farewell {
    link_closed: Reason,
}

#[derive(Serialize, Deserialize)]
struct Reason {
    #[serde(default)]
    reason: String,
}

#[cfg(test)]
mod tests {
    use protocol::mesh::frame::MAX_FRAME;

    use super::*;

    async fn end_of(sent: &[u8], max: usize) -> (Vec<Bytes>, Broken) {
        let mut incoming = Incoming::new(sent);
        let mut frames = Vec::new();
        loop {
            match incoming.next(max).await {
                Ok(frame) => frames.push(frame),
                Err(broken) => return (frames, broken),
            }
        }
    }

    #[tokio::test]
    async fn frames_come_one_after_another_until_the_connection_ends() {
        let (frames, end) = end_of(b"\0\0\0\x02hi\0\0\0\0\0\0\0\x01!", MAX_FRAME).await;
        assert_eq!(frames, ["hi", "", "!"]);
        assert!(matches!(end, Broken::Closed));
        let (_, end) = end_of(b"\0\0\0\x02h", MAX_FRAME).await;
        assert!(matches!(end, Broken::Truncated));
    }

    #[tokio::test]
    async fn a_length_of_4_gib_ends_the_connection_and_takes_no_memory() {
        let mut incoming = Incoming::new(&[0xff; 64][..]);
        let refused = incoming.next(MAX_FRAME).await.unwrap_err();
        assert!(refused.to_string().contains("4294967295 bytes"), "{refused}");
        assert!(incoming.buffer.capacity() <= 2 * LEAST_READ);
    }

    #[tokio::test]
    async fn much_is_read_in_large_steps_and_the_room_is_given_back() {
        let sent = [&(8_u32 << 20).to_be_bytes()[..], &vec![7; 8 << 20]].concat();
        let mut incoming = Incoming::new(&sent[..]);
        assert_eq!(incoming.next(MAX_FRAME).await.unwrap().len(), 8 << 20);
        assert_eq!(incoming.step, MOST_READ);
        for _ in 0..10 {
            incoming.adapt(100);
        }
        assert!(incoming.fill().await.is_err());
        assert!(incoming.buffer.capacity() <= 2 * LEAST_READ, "{}", incoming.buffer.capacity());
    }

    #[test]
    fn a_farewell_is_read_as_it_was_written_and_cannot_move_a_cursor() {
        assert_eq!(
            farewell_reason(&farewell("wrong \"passcode\"")),
            Some("wrong \"passcode\"".into())
        );
        assert_eq!(farewell_reason(&farewell("a\u{1b}[2Jb")), Some("a\u{fffd}[2Jb".into()));
        assert_eq!(farewell_reason(&farewell(&"x".repeat(1_000))).unwrap().len(), MAX_REASON);
        assert_eq!(farewell_reason(br#"{"heartbeat":{}}"#), None);
        assert_eq!(farewell_reason(br#"{"linkClosed":7}"#), None);
        assert_eq!(farewell_reason(br#"{"linkClosed":{}}"#), Some(String::new()));
    }
}
