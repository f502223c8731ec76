//! One WebSocket, read and written by one task.

use std::{
    future::poll_fn,
    io::{self, Read, Write},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::ReadBuf,
    time::{Instant, timeout},
};
pub use tungstenite::protocol::Role;
use tungstenite::{
    Error as WsError, Message, WebSocket,
    error::ProtocolError,
    protocol::{
        CloseFrame, WebSocketConfig,
        frame::{
            Frame as RawFrame, Utf8Bytes,
            coding::{CloseCode, Data, OpCode},
        },
    },
};

use crate::{
    io::Io,
    outbox::{Frame, Outbox},
};

/// Bytes asked of the socket at once.
const READ_BUFFER: usize = 32 * 1024;

/// Bytes gathered before the socket is tried, when there are so many.
const WRITE_BUFFER: usize = 128 * 1024;

/// The largest message that is taken.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Longer messages are written in fragments of this size: stock peers take no frame over 16 MiB.
const FRAGMENT: usize = 15 * 1024 * 1024;

/// Frames handed out before what is queued is written, even when more could be read at once.
const READS_BETWEEN_WRITES: u32 = 32;

/// Binary messages up to this size, in bytes, are handed out as copies. A slice would keep the
/// whole buffer that it was read into, and force a new one for the next read.
const COPIED: usize = 8 * 1024;

/// How long a close waits for the far end.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// Why a link broke.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The socket failed.
    #[error("the connection broke")]
    Io(#[from] io::Error),
    /// The far end broke the rules of WebSocket, or sent a message over 64 MiB.
    #[error("the far end broke the WebSocket protocol: {0}")]
    Protocol(String),
    /// The link was closed on this side, see [`Outbox::close`].
    #[error("the link was given up on this side")]
    GivenUp,
}

/// One WebSocket. It is written to through its [`Outbox`], and only while somebody waits in
/// [`Link::next`] or [`Link::close`].
pub struct Link {
    socket: WebSocket<Blocking>,
    outbox: Outbox,
    blocked: bool,
    unflushed: bool,
    reads: u32,
    /// Found by [`Link::ready`], to be told by [`Link::next`].
    broken: Option<WsError>,
    close_reason: Option<(u16, String)>,
}

impl Link {
    /// A link over a byte stream whose handshake is done.
    pub fn new(io: Io, role: Role) -> (Self, Outbox) {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let blocking = Blocking { io, waker: Waker::noop().clone(), heard: Instant::now() };
        let outbox = Outbox::new();
        let link = Self {
            socket: WebSocket::from_raw_socket(blocking, role, Some(config)),
            outbox: outbox.clone(),
            blocked: false,
            unflushed: false,
            reads: 0,
            broken: None,
            close_reason: None,
        };
        (link, outbox)
    }

    /// The next frame of the far end; `None` once it has closed. Text that is not UTF-8 is logged
    /// and passed over. May be dropped at any await and called again.
    ///
    /// # Errors
    /// [`LinkError`] when the link is broken; it cannot be used after that.
    pub async fn next(&mut self) -> Result<Option<Frame>, LinkError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// A frame that is here already, without waiting and without writing: between two calls of
    /// [`Link::next`], for those who wait for other things as well and would rather take several
    /// frames in one go. `None` says nothing about the link.
    pub fn ready(&mut self) -> Option<Frame> {
        match self.read() {
            Ok(frame) => frame,
            Err(WsError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => {
                self.broken = Some(error);
                None
            }
        }
    }

    /// When bytes last came from the far end, be they of a message that is not complete.
    pub fn heard(&self) -> Instant {
        self.socket.get_ref().heard
    }

    /// The code and reason with which the far end closed.
    pub fn close_reason(&self) -> Option<(u16, String)> {
        self.close_reason.clone()
    }

    /// Writes what is queued, says goodbye, and waits a bounded time for the answer.
    pub async fn close(mut self, code: u16, reason: &str) {
        let goodbye =
            CloseFrame { code: CloseCode::from(code), reason: Utf8Bytes::from(cut(reason)) };
        let farewell = async {
            poll_fn(|cx| self.poll_write(cx)).await?;
            self.socket.close(Some(goodbye)).or_else(pass_would_block)?;
            while self.next().await?.is_some() {}
            Ok::<_, LinkError>(())
        };
        // The link ends here however its farewell went.
        let _ = timeout(CLOSE_DEADLINE, farewell).await;
        self.outbox.close();
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, LinkError>> {
        self.socket.get_mut().wake(cx);
        loop {
            if self.reads >= READS_BETWEEN_WRITES {
                self.reads = 0;
                let _ = self.poll_write(cx)?;
            }
            match self.read() {
                Ok(Some(frame)) => {
                    self.reads += 1;
                    return Poll::Ready(Ok(Some(frame)));
                }
                Ok(None) => {}
                Err(WsError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Poll::Ready(self.ended(error)),
            }
        }
        self.reads = 0;
        if self.outbox.is_closed() {
            return Poll::Ready(Err(LinkError::GivenUp));
        }
        let _ = self.poll_write(cx)?;
        Poll::Pending
    }

    /// One frame; `None` for what is none of the caller's business.
    fn read(&mut self) -> Result<Option<Frame>, WsError> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let message = match self.socket.read() {
            Err(WsError::Utf8(_)) => {
                tracing::warn!("a text frame that is not UTF-8 was passed over");
                return Ok(None);
            }
            other => other?,
        };
        match message {
            Message::Text(text) => Ok(Some(Frame::Text(text))),
            Message::Binary(bytes) => Ok(Some(Frame::Binary(own(bytes)))),
            Message::Close(frame) => {
                self.close_reason = frame.map(|f| (f.code.into(), f.reason.as_str().to_owned()));
                Ok(None)
            }
            Message::Ping(_) => {
                self.unflushed = true;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn ended(&self, error: WsError) -> Result<Option<Frame>, LinkError> {
        self.outbox.close();
        match error {
            WsError::ConnectionClosed
            | WsError::AlreadyClosed
            | WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Ok(None),
            WsError::Io(error) => Err(error.into()),
            other => Err(LinkError::Protocol(other.to_string())),
        }
    }

    /// Writes all that is queued. Ready when nothing is left, neither here nor in the outbox.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.socket.get_mut().wake(cx);
        loop {
            if self.blocked && !self.flush()? {
                // Nothing is popped meanwhile, so nothing else would tell this task.
                if self.outbox.wait_for_close(cx) {
                    return Poll::Ready(Err(LinkError::GivenUp));
                }
                return Poll::Pending;
            }
            match self.outbox.pop(cx) {
                Some(frame) => self.write(frame)?,
                None if self.unflushed => {
                    return if self.flush()? { Poll::Ready(Ok(())) } else { Poll::Pending };
                }
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    fn write(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.unflushed = true;
        if frame.len() <= FRAGMENT {
            let message = match frame {
                Frame::Text(text) => Message::Text(text),
                Frame::Binary(bytes) => Message::Binary(bytes),
            };
            return self.write_message(message);
        }
        fragments(frame).try_for_each(|fragment| self.write_message(Message::Frame(fragment)))
    }

    fn write_message(&mut self, message: Message) -> Result<(), LinkError> {
        match self.socket.write(message) {
            Ok(()) => Ok(()),
            Err(WsError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                Ok(())
            }
            // The far end has closed: what it does not want is dropped, and `next` tells.
            Err(WsError::ConnectionClosed | WsError::AlreadyClosed) => Ok(()),
            Err(WsError::Protocol(ProtocolError::SendAfterClosing)) => Ok(()),
            Err(WsError::Io(error)) => Err(error.into()),
            Err(other) => Err(LinkError::Protocol(other.to_string())),
        }
    }

    /// Whether everything written has left.
    fn flush(&mut self) -> Result<bool, LinkError> {
        match self.socket.flush() {
            Ok(()) | Err(WsError::ConnectionClosed | WsError::AlreadyClosed) => {
                self.blocked = false;
                self.unflushed = false;
                Ok(true)
            }
            Err(WsError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                Ok(false)
            }
            Err(WsError::Io(error)) => Err(error.into()),
            Err(other) => Err(LinkError::Protocol(other.to_string())),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("outbox", &self.outbox).finish_non_exhaustive()
    }
}

fn own(bytes: Bytes) -> Bytes {
    if bytes.len() <= COPIED { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// A close reason is at most 123 bytes long.
fn cut(reason: &str) -> &str {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

fn pass_would_block(error: WsError) -> Result<(), LinkError> {
    match error {
        WsError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        WsError::Io(error) => Err(error.into()),
        other => Err(LinkError::Protocol(other.to_string())),
    }
}

fn fragments(frame: Frame) -> impl Iterator<Item = RawFrame> {
    let (kind, mut rest) = match frame {
        Frame::Text(text) => (Data::Text, Bytes::from(text)),
        Frame::Binary(bytes) => (Data::Binary, bytes),
    };
    let mut first = true;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece = rest.split_to(rest.len().min(FRAGMENT));
        let kind = if std::mem::take(&mut first) { kind } else { Data::Continue };
        Some(RawFrame::message(piece, OpCode::Data(kind), rest.is_empty()))
    })
}

/// An asynchronous stream as the blocking one that the WebSocket library reads and writes:
/// "would block" means that the task of the last [`Blocking::wake`] will be woken.
struct Blocking {
    io: Io,
    waker: Waker,
    /// When bytes last came.
    heard: Instant,
}

impl Blocking {
    fn wake(&mut self, cx: &Context<'_>) {
        self.waker.clone_from(cx.waker());
    }
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        let mut cx = Context::from_waker(&self.waker);
        match self.io.as_mut().poll_read(&mut cx, &mut buffer) {
            Poll::Ready(Ok(())) => {
                self.heard = Instant::now();
                Ok(buffer.filled().len())
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.waker);
        match self.io.as_mut().poll_write(&mut cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.waker);
        match self.io.as_mut().poll_flush(&mut cx) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn pair(capacity: usize) -> ((Link, Outbox), (Link, Outbox)) {
        let (near, far) = duplex(capacity);
        (Link::new(Box::pin(near), Role::Server), Link::new(Box::pin(far), Role::Client))
    }

    #[tokio::test]
    async fn frames_arrive_in_order_and_whole() {
        let ((mut server, _), (mut client, outbox)) = pair(1024);
        outbox.push("hello".to_owned()).unwrap();
        outbox.push(Bytes::from(vec![7; 100_000])).unwrap();
        let driver = tokio::spawn(async move { client.next().await });
        assert_eq!(server.next().await.unwrap(), Some("hello".to_owned().into()));
        assert_eq!(server.next().await.unwrap().unwrap().len(), 100_000);
        server.close(1000, "done").await;
        assert!(driver.await.unwrap().unwrap().is_none());
    }

    #[tokio::test]
    async fn frames_that_are_here_are_taken_without_waiting_and_errors_are_not_lost() {
        let (near, mut far) = duplex(1024);
        let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
        assert_eq!(link.ready(), None);
        // Two texts, then a frame of a kind that there is not.
        far.write_all(&[0x81, 1, b'a', 0x81, 1, b'b', 0x83, 0]).await.unwrap();
        assert_eq!(link.next().await.unwrap(), Some("a".to_owned().into()));
        assert_eq!(link.ready(), Some("b".to_owned().into()));
        assert_eq!(link.ready(), None);
        assert!(matches!(link.next().await, Err(LinkError::Protocol(_))));
    }

    #[tokio::test]
    async fn a_close_is_seen_with_its_reason() {
        let ((mut server, _), (client, _)) = pair(1024);
        let closing = tokio::spawn(client.close(1008, "worker heartbeat timed out"));
        assert!(server.next().await.unwrap().is_none());
        assert_eq!(server.close_reason(), Some((1008, "worker heartbeat timed out".to_owned())));
        drop(server);
        closing.await.unwrap();
    }

    #[tokio::test]
    async fn messages_over_15_mib_travel_in_fragments() {
        let (near, mut far) = duplex(1 << 20);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
        outbox.push("x".repeat(FRAGMENT + 1)).unwrap();
        let driver = tokio::spawn(async move { link.next().await });
        let mut head = [0; 10];
        far.read_exact(&mut head).await.unwrap();
        assert_eq!(head[..2], [0x01, 127], "text, not final, 64-bit length");
        let mut payload = vec![0; FRAGMENT];
        far.read_exact(&mut payload).await.unwrap();
        let mut last = [0; 3];
        far.read_exact(&mut last).await.unwrap();
        assert_eq!(last, [0x80, 1, b'x'], "continuation, final");
        drop(far);
        driver.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn text_that_is_not_utf8_costs_only_its_frame() {
        let (near, mut far) = duplex(1024);
        let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
        far.write_all(&[0x81, 2, 0xff, 0xfe, 0x81, 2, b'o', b'k']).await.unwrap();
        assert_eq!(link.next().await.unwrap(), Some("ok".to_owned().into()));
    }

    #[tokio::test]
    async fn a_message_over_the_bound_breaks_the_link() {
        let (near, mut far) = duplex(1024);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Client);
        let length = (MAX_MESSAGE as u64 + 1).to_be_bytes();
        far.write_all(&[&[0x82, 127], &length[..]].concat()).await.unwrap();
        assert!(matches!(link.next().await, Err(LinkError::Protocol(_))));
        assert!(outbox.is_closed());
    }

    #[tokio::test]
    async fn what_gathers_while_the_socket_is_busy_leaves_in_one_write() {
        let (near, mut far) = duplex(1 << 16);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
        for _ in 0..100 {
            outbox.push("{}".to_owned()).unwrap();
        }
        let driver = tokio::spawn(async move { link.next().await });
        let mut first = vec![0; 1 << 16];
        let read = far.read(&mut first).await.unwrap();
        assert_eq!(read, 100 * 4);
        drop(far);
        driver.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_bytes_of_a_long_message_are_heard_before_it_is_complete() {
        let (near, mut far) = duplex(1024);
        let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
        far.write_all(&[0x81, 3, b'a']).await.unwrap();
        for byte in [b'b', b'c'] {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert_eq!(link.ready(), None);
            assert_eq!(link.heard(), Instant::now());
            far.write_all(&[byte]).await.unwrap();
        }
        assert_eq!(link.next().await.unwrap(), Some("abc".to_owned().into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_given_up_while_its_socket_is_blocked_wakes_its_task() {
        let (near, _far) = duplex(16);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
        outbox.push("x".repeat(1000)).unwrap();
        let driver = tokio::spawn(async move { link.next().await });
        tokio::task::yield_now().await;
        // It is woken for this, and waits for the socket again.
        outbox.push("y".to_owned()).unwrap();
        tokio::task::yield_now().await;
        outbox.close();
        let ended = timeout(CLOSE_DEADLINE, driver).await.unwrap().unwrap();
        assert!(matches!(ended, Err(LinkError::GivenUp)));
    }

    #[tokio::test]
    async fn a_link_given_up_from_outside_wakes_its_task() {
        let ((mut server, outbox), _client) = pair(1024);
        let driver = tokio::spawn(async move { server.next().await });
        tokio::task::yield_now().await;
        outbox.close();
        assert!(matches!(driver.await.unwrap(), Err(LinkError::GivenUp)));
    }
}
