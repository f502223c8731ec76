//! One WebSocket, read and written by one task.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, timeout};
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
    blocking::Blocking,
    io::Io,
    limits::Limits,
    outbox::{Frame, Outbox},
};

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
    /// The far end broke the rules of WebSocket, or sent a longer message than is taken.
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
    fragment: usize,
    /// What is left of a long message, to be written before the next one.
    rest: Option<Fragments>,
    blocked: bool,
    unflushed: bool,
    reads: u32,
    /// Found by [`Link::ready`], to be told by [`Link::next`].
    broken: Option<WsError>,
    close_reason: Option<(u16, String)>,
    /// Whether it has been said that a text was none.
    told_of_text: bool,
}

impl Link {
    /// A link over a byte stream whose handshake is done.
    pub fn new(io: Io, role: Role) -> (Self, Outbox) {
        Self::within(io, role, Limits::default())
    }

    /// The same, within other limits than usual.
    pub fn within(io: Io, role: Role, limits: Limits) -> (Self, Outbox) {
        let config = WebSocketConfig::default()
            .read_buffer_size(limits.read_buffer)
            .write_buffer_size(limits.write_buffer)
            .max_message_size(Some(limits.max_message))
            .max_frame_size(Some(limits.max_message));
        let blocking = Blocking::new(io);
        let outbox = Outbox::new();
        let link = Self {
            socket: WebSocket::from_raw_socket(blocking, role, Some(config)),
            outbox: outbox.clone(),
            fragment: limits.fragment,
            rest: None,
            blocked: false,
            unflushed: false,
            reads: 0,
            broken: None,
            close_reason: None,
            told_of_text: false,
        };
        (link, outbox)
    }

    /// The next frame of the far end; `None` once it has closed. Text that is not UTF-8 is passed
    /// over, and logged the first time. What came before the link broke is handed out first, also
    /// after [`Link::write_only`] has ended. May be dropped at any await and called again.
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

    /// Takes messages of another length, in bytes, from now on.
    pub fn set_max_message(&mut self, bytes: usize) {
        self.socket.set_config(|config| {
            config.max_message_size = Some(bytes);
            config.max_frame_size = Some(bytes);
        });
    }

    /// Writes what is queued, and reads nothing: for who must not take more from the far end now.
    /// It ends only with the link. May be dropped at any await.
    pub async fn write_only(&mut self) -> LinkError {
        poll_fn(|cx| match self.poll_write(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) if self.outbox.is_closed() => Poll::Ready(LinkError::GivenUp),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Asks the far end for a sign of life, which shows in [`Link::heard`]. It leaves with what is
    /// written next.
    ///
    /// # Errors
    /// [`LinkError`] when the link is broken.
    pub fn ping(&mut self) -> Result<(), LinkError> {
        if self.blocked {
            // The far end has enough to read, and shows by reading it that it lives.
            return Ok(());
        }
        self.write_message(Message::Ping(Bytes::new()))
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
        let mut unwritable = None;
        loop {
            if self.reads >= READS_BETWEEN_WRITES {
                self.reads = 0;
                // An error shows again once all that came before it has been read.
                let _ = self.poll_write(cx);
            }
            match self.read() {
                Ok(Some(frame)) => {
                    self.reads += 1;
                    return Poll::Ready(Ok(Some(frame)));
                }
                Ok(None) => {}
                Err(WsError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.reads = 0;
                    if let Some(error) = unwritable {
                        return Poll::Ready(Err(error));
                    }
                    if self.outbox.is_closed() {
                        return Poll::Ready(Err(LinkError::GivenUp));
                    }
                    match self.poll_write(cx) {
                        // The far end may have sent something before it went: that is read first.
                        Poll::Ready(Err(error)) => unwritable = Some(error),
                        Poll::Ready(Ok(())) | Poll::Pending => return Poll::Pending,
                    }
                }
                Err(error) => return Poll::Ready(self.ended(error)),
            }
        }
    }

    /// One frame; `None` for what is none of the caller's business.
    fn read(&mut self) -> Result<Option<Frame>, WsError> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let message = match self.socket.read() {
            Err(WsError::Utf8(_)) => {
                if !std::mem::replace(&mut self.told_of_text, true) {
                    tracing::warn!(
                        "a text frame that is not UTF-8 was passed over, as others will"
                    );
                }
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
            // It closed and did not wait for the answer: what it said counts.
            WsError::Io(_) if self.close_reason.is_some() => Ok(None),
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
            if let Some(fragment) = self.next_fragment() {
                self.write_message(Message::Frame(fragment))?;
                continue;
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
        if frame.len() > self.fragment {
            self.rest = Some(Fragments::of(frame));
            return Ok(());
        }
        self.write_message(match frame {
            Frame::Text(text) => Message::Text(text),
            Frame::Binary(bytes) => Message::Binary(bytes),
        })
    }

    /// Fragments go out one by one, so that no more than one waits for a socket that is busy.
    fn next_fragment(&mut self) -> Option<RawFrame> {
        let fragment = self.rest.as_mut()?.next(self.fragment);
        if fragment.header().is_final {
            self.rest = None;
        }
        Some(fragment)
    }

    fn write_message(&mut self, message: Message) -> Result<(), LinkError> {
        self.unflushed = true;
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

/// What is left of a message that is written in fragments.
struct Fragments {
    kind: Data,
    rest: Bytes,
}

impl Fragments {
    fn of(frame: Frame) -> Self {
        match frame {
            Frame::Text(text) => Self { kind: Data::Text, rest: text.into() },
            Frame::Binary(rest) => Self { kind: Data::Binary, rest },
        }
    }

    fn next(&mut self, size: usize) -> RawFrame {
        let piece = self.rest.split_to(self.rest.len().min(size));
        let kind = std::mem::replace(&mut self.kind, Data::Continue);
        RawFrame::message(piece, OpCode::Data(kind), self.rest.is_empty())
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
    async fn what_came_before_the_far_end_went_is_read_though_nothing_can_be_written() {
        let (near, mut far) = duplex(1024);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Client);
        for letter in 0..2 * READS_BETWEEN_WRITES {
            far.write_all(&[0x81, 1, b'a' + u8::try_from(letter % 26).unwrap()]).await.unwrap();
        }
        drop(far);
        outbox.push("nobody hears this".to_owned()).unwrap();
        assert!(matches!(link.write_only().await, LinkError::Io(_)));
        for _ in 0..2 * READS_BETWEEN_WRITES {
            assert_eq!(link.next().await.unwrap().unwrap().len(), 1);
        }
        assert!(!matches!(link.next().await, Ok(Some(_))));
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

    /// Stock servers turn a worker away so: its registration is unread, and the connection is reset.
    #[tokio::test]
    async fn a_close_that_waits_for_no_answer_is_seen_with_its_reason_too() {
        let (near, mut far) = duplex(1024);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Client);
        outbox.push("register".to_owned()).unwrap();
        far.write_all(&[0x88, 4, 0x03, 0xf0, b'n', b'o']).await.unwrap();
        drop(far);
        assert!(matches!(link.next().await, Ok(None)));
        assert_eq!(link.close_reason(), Some((1008, "no".to_owned())));
    }

    #[tokio::test]
    async fn messages_over_15_mib_travel_in_fragments() {
        let (near, mut far) = duplex(1 << 20);
        let (mut link, outbox) = Link::new(Box::pin(near), Role::Server);
        let fragment = Limits::default().fragment;
        outbox.push("x".repeat(fragment + 1)).unwrap();
        let driver = tokio::spawn(async move { link.next().await });
        let mut head = [0; 10];
        far.read_exact(&mut head).await.unwrap();
        assert_eq!(head[..2], [0x01, 127], "text, not final, 64-bit length");
        let mut payload = vec![0; fragment];
        far.read_exact(&mut payload).await.unwrap();
        let mut last = [0; 3];
        far.read_exact(&mut last).await.unwrap();
        assert_eq!(last, [0x80, 1, b'x'], "continuation, final");
        drop(far);
        driver.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn of_a_long_message_no_more_is_copied_than_the_socket_takes() {
        let limits = Limits { write_buffer: 1024, fragment: 1024, ..Limits::default() };
        let (near, far) = duplex(512);
        let (mut link, outbox) = Link::within(Box::pin(near), Role::Server, limits);
        let (mut client, _outbox) = Link::new(Box::pin(far), Role::Client);
        outbox.push("x".repeat(100_000)).unwrap();
        outbox.push("next".to_owned()).unwrap();
        let writing = tokio::spawn(async move { link.write_only().await });
        assert_eq!(client.next().await.unwrap().unwrap().len(), 100_000);
        assert_eq!(client.next().await.unwrap(), Some("next".to_owned().into()));
        outbox.close();
        assert!(matches!(writing.await.unwrap(), LinkError::GivenUp));
    }

    #[tokio::test(start_paused = true)]
    async fn a_ping_is_answered_and_heard() {
        let ((mut server, _), (mut client, _)) = pair(1024);
        tokio::time::advance(Duration::from_secs(15)).await;
        let asked = Instant::now();
        server.ping().unwrap();
        // Neither has anything to say: both have written and read all there is when time goes on.
        let both = async { tokio::join!(server.next(), client.next()) };
        assert!(timeout(CLOSE_DEADLINE, both).await.is_err());
        assert_eq!(server.heard(), asked);
    }

    #[tokio::test]
    async fn a_link_takes_no_longer_messages_than_it_was_told_to() {
        let ((mut server, _), (mut client, outbox)) = pair(1024);
        server.set_max_message(10);
        outbox.push("0123456789".to_owned()).unwrap();
        outbox.push("0123456789a".to_owned()).unwrap();
        let far = tokio::spawn(async move { client.next().await });
        assert_eq!(server.next().await.unwrap().unwrap().len(), 10);
        assert!(matches!(server.next().await, Err(LinkError::Protocol(_))));
        far.abort();
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
        let length = (Limits::default().max_message as u64 + 1).to_be_bytes();
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
