//! One WebSocket, read and written by one task.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep, timeout};
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

/// The number of frames returned before queued ones are written, even if more could be read at
/// once.
const READS_BETWEEN_WRITES: u32 = 32;

/// How many bytes the library takes at a time from the read buffer. Before each time it zeroes that
/// much memory, so the number is small.
const TAKEN: usize = 2 * 1024;

/// Binary messages up to this size, in bytes, are handed out as copies. A slice would keep the
/// whole buffer that it was read into, and force a new one for the next read.
const COPIED: usize = 8 * 1024;

/// How long the link is still read after writing has failed. The end of the readable data comes
/// with the same reset, or before it.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a close waits for the far end.
pub(crate) const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

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

/// One WebSocket, as a [`Link`](crate::Link).
pub(crate) struct WebSocketLink {
    socket: WebSocket<Blocking>,
    outbox: Outbox,
    limits: Limits,
    /// The rest of a long message, which is written before the next one.
    rest: Option<Fragments>,
    blocked: bool,
    unflushed: bool,
    /// Whether other tasks have had a turn since frames were queued.
    has_yielded: bool,
    /// Whether the far end has closed: then the library is asked for what is left to do.
    is_closing: bool,
    reads: u32,
    /// An error that [`Self::ready`] found and that [`Self::next`] has to return.
    broken: Option<WsError>,
    /// Why writing has failed, and the time until which the link is still read.
    last_words: Option<(LinkError, Pin<Box<Sleep>>)>,
    close_reason: Option<(u16, String)>,
    /// Whether a text that is not UTF-8 has been logged.
    told_of_text: bool,
}

impl WebSocketLink {
    /// A link over a byte stream whose handshake is done, within these limits.
    pub(crate) fn within(io: Io, role: Role, limits: Limits) -> (Self, Outbox) {
        let config = WebSocketConfig::default()
            .read_buffer_size(TAKEN)
            .write_buffer_size(limits.write_buffer)
            .max_write_buffer_size(limits.pong_buffer())
            .max_message_size(Some(limits.max_message))
            .max_frame_size(Some(limits.max_message));
        let blocking = Blocking::new(io, limits.read_buffer);
        let outbox = Outbox::new();
        let link = Self {
            socket: WebSocket::from_raw_socket(blocking, role, Some(config)),
            outbox: outbox.clone(),
            limits,
            rest: None,
            blocked: false,
            unflushed: false,
            has_yielded: false,
            is_closing: false,
            reads: 0,
            broken: None,
            last_words: None,
            close_reason: None,
            told_of_text: false,
        };
        (link, outbox)
    }

    /// The next frame of the far end; `None` once it has closed. Text that is not UTF-8 is passed
    /// over, and logged the first time. What came before the link broke is handed out first, also
    /// after [`Self::write_only`] has ended. May be dropped at any await and called again.
    ///
    /// # Errors
    /// [`LinkError`] when the link is broken; it cannot be used after that.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, LinkError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Returns a frame that has already arrived, without waiting and without writing. For callers
    /// that wait for other things as well and want to take several frames at once between two calls
    /// of [`Self::next`]. `None` says nothing about the link.
    pub(crate) fn ready(&mut self) -> Option<Frame> {
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
    pub(crate) fn set_max_message(&mut self, bytes: usize) {
        self.socket.set_config(|config| {
            config.max_message_size = Some(bytes);
            config.max_frame_size = Some(bytes);
        });
    }

    /// Writes the queued frames and reads nothing: for callers that must not take more from the far
    /// end now. Returns only when the link has ended. May be dropped at any await.
    pub(crate) async fn write_only(&mut self) -> LinkError {
        poll_fn(|cx| match self.poll_write(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) if self.outbox.is_closed() => Poll::Ready(LinkError::GivenUp),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Asks the far end for a sign of life, which shows in [`Self::heard`]. The ping leaves with
    /// the next write.
    ///
    /// # Errors
    /// [`LinkError`] when the link is broken.
    pub(crate) fn ping(&mut self) -> Result<(), LinkError> {
        if self.blocked {
            // The far end has unread frames, and shows that it lives by reading them.
            return Ok(());
        }
        self.write_message(Message::Ping(Bytes::new()))
    }

    /// When bytes last came from the far end; those of an incomplete message count.
    pub(crate) fn heard(&self) -> Instant {
        self.socket.get_ref().heard
    }

    /// The code and reason with which the far end closed.
    pub(crate) fn close_reason(&self) -> Option<(u16, String)> {
        self.close_reason.clone()
    }

    /// Writes the queued frames, sends a close frame, and waits a bounded time for the answer.
    pub(crate) async fn close(mut self, code: u16, reason: &str) {
        let goodbye =
            CloseFrame { code: CloseCode::from(code), reason: Utf8Bytes::from(cut(reason)) };
        let farewell = async {
            poll_fn(|cx| self.poll_write(cx)).await?;
            self.socket.close(Some(goodbye)).or_else(pass_would_block)?;
            while self.next().await?.is_some() {}
            Ok::<_, LinkError>(())
        };
        // The link ends here, whether the far end has answered or not.
        let _ = timeout(CLOSE_DEADLINE, farewell).await;
        self.outbox.close();
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, LinkError>> {
        self.socket.get_mut().wake(cx);
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
                    return self.poll_write_between_reads(cx).map(Err);
                }
                Err(error) => return Poll::Ready(self.ended(error)),
            }
        }
    }

    /// Writes while there is nothing to read. Ready when the link has ended.
    fn poll_write_between_reads(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        if self.outbox.is_closed() {
            return Poll::Ready(LinkError::GivenUp);
        }
        if self.last_words.is_none() {
            if self.lets_others_go_first() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Poll::Ready(Err(error)) = self.poll_write(cx) else { return Poll::Pending };
            // The far end may have sent something before it went, and the system reports failed writes
            // before readable data.
            self.last_words = Some((error, Box::pin(sleep(LAST_WORDS))));
        }
        let Some((_, wait)) = &mut self.last_words else { return Poll::Pending };
        ready!(wait.as_mut().poll(cx));
        self.last_words.take().map_or(Poll::Pending, |(error, _)| Poll::Ready(error))
    }

    /// Whether other ready tasks should run first, since their frames could leave in the same write.
    /// They get one turn.
    fn lets_others_go_first(&mut self) -> bool {
        let waits = !self.blocked && !self.has_yielded && self.outbox.has_frames();
        self.has_yielded = waits;
        waits
    }

    /// One frame; `None` for a control frame.
    fn read(&mut self) -> Result<Option<Frame>, WsError> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        if !self.is_closing && !self.socket.get_ref().may_read() {
            return Err(WsError::Io(io::ErrorKind::WouldBlock.into()));
        }
        let message = match self.socket.read() {
            // The error may be about a text message that came before the close in the same read. The link
            // ends either way.
            Err(error @ WsError::Utf8(_)) if self.socket.get_ref().closes.has_seen() => {
                return Err(error);
            }
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
                self.is_closing = true;
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

    fn ended(&mut self, error: WsError) -> Result<Option<Frame>, LinkError> {
        self.outbox.close();
        self.tell_fault(&error);
        match error {
            WsError::ConnectionClosed
            | WsError::AlreadyClosed
            | WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Ok(None),
            // The far end closed and did not wait for the answer: its close still counts.
            WsError::Io(_) if self.close_reason.is_some() => Ok(None),
            WsError::Io(error) => Err(error.into()),
            other => Err(LinkError::Protocol(other.to_string())),
        }
    }

    /// Tells the far end which rule it has broken, if the socket takes it now (RFC 6455 section 7.1.7).
    fn tell_fault(&mut self, error: &WsError) {
        let code = match error {
            WsError::Utf8(_) => CloseCode::Invalid,
            WsError::Capacity(_) => CloseCode::Size,
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return,
            WsError::Protocol(_) => CloseCode::Protocol,
            _ => return,
        };
        let words = error.to_string();
        let _ = self.socket.close(Some(CloseFrame { code, reason: Utf8Bytes::from(cut(&words)) }));
    }

    /// Writes all that is queued. Ready when nothing is left, either here or in the outbox.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.socket.get_mut().wake(cx);
        loop {
            if self.blocked && !self.flush()? {
                // While the socket is blocked, nothing is taken from the outbox, so a close of the
                // outbox would not wake this task.
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
        if frame.len() > self.limits.fragment {
            self.rest = Some(Fragments::of(frame));
            return Ok(());
        }
        self.write_message(match frame {
            Frame::Text(text) => Message::Text(text),
            Frame::Binary(bytes) => Message::Binary(bytes),
        })
    }

    /// Fragments are written one by one, so that at most one waits while the socket is busy.
    fn next_fragment(&mut self) -> Option<RawFrame> {
        let fragment = self.rest.as_mut()?.next(self.limits.fragment);
        if fragment.header().is_final {
            self.rest = None;
        }
        Some(fragment)
    }

    fn write_message(&mut self, message: Message) -> Result<(), LinkError> {
        self.unflushed = true;
        match self.write_beside_pongs(message) {
            Ok(()) => Ok(()),
            Err(WsError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                Ok(())
            }
            // The far end has closed: the unsent rest is dropped, and `next` reports the close.
            Err(WsError::ConnectionClosed | WsError::AlreadyClosed) => Ok(()),
            Err(WsError::Protocol(ProtocolError::SendAfterClosing)) => Ok(()),
            Err(WsError::Io(error)) => Err(error.into()),
            Err(other) => Err(LinkError::Protocol(other.to_string())),
        }
    }

    /// Writes a message even if the write buffer is full of pongs. The library answers every ping as it
    /// reads, whether or not the far end reads the pongs. A pong that finds no room is replaced by the
    /// next one.
    fn write_beside_pongs(&mut self, message: Message) -> Result<(), WsError> {
        self.socket.set_config(|config| config.max_write_buffer_size = usize::MAX);
        let written = self.socket.write(message);
        let bound = self.limits.pong_buffer();
        self.socket.set_config(|config| config.max_write_buffer_size = bound);
        written
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

impl Drop for WebSocketLink {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

fn own(bytes: Bytes) -> Bytes {
    if bytes.len() <= COPIED { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// Shortens a close reason to 123 bytes: a control frame's 125 bytes less the two of the code.
pub(crate) fn cut(reason: &str) -> &str {
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

/// The rest of a message that is written in fragments.
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
mod tests;
