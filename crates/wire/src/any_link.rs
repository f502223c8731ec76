//! A link, whatever carries its frames.

use tokio::time::Instant;

use crate::{
    in_process::InProcessLink,
    io::Io,
    limits::Limits,
    link::{LinkError, Role, WebSocketLink},
    outbox::{Frame, Outbox},
};

/// One end of a link: a WebSocket, or two queues within the process. Its [`Outbox`] is written to the socket only while
/// a task waits in [`Link::next`] or [`Link::close`].
#[derive(Debug)]
pub struct Link(Carrier);

enum Carrier {
    WebSocket(Box<WebSocketLink>),
    InProcess(InProcessLink),
}

impl Link {
    /// A link over a byte stream whose handshake is done.
    pub fn new(io: Io, role: Role) -> (Self, Outbox) {
        Self::within(io, role, Limits::default())
    }

    /// [`Link::new`] with other limits than the default.
    pub fn within(io: Io, role: Role, limits: Limits) -> (Self, Outbox) {
        let (link, outbox) = WebSocketLink::within(io, role, limits);
        (Self(Carrier::WebSocket(Box::new(link))), outbox)
    }

    /// Both ends of a link within the process.
    pub fn in_process() -> [(Self, Outbox); 2] {
        InProcessLink::pair().map(|(link, outbox)| (Self(Carrier::InProcess(link)), outbox))
    }

    /// The next frame of the far end; `None` once it has closed. Text that is not UTF-8 is passed
    /// over, and logged the first time. What came before the link broke is handed out first, also
    /// after [`Link::write_only`] has ended. May be dropped at any await and called again.
    ///
    /// # Errors
    /// [`LinkError`] when the link is broken; it cannot be used after that.
    pub async fn next(&mut self) -> Result<Option<Frame>, LinkError> {
        match &mut self.0 {
            Carrier::WebSocket(link) => link.next().await,
            Carrier::InProcess(link) => link.next().await,
        }
    }

    /// Returns a frame that has already arrived, without waiting and without writing. For callers
    /// that wait for other things as well and want to take several frames at once between two calls
    /// of [`Link::next`]. `None` says nothing about the link.
    pub fn ready(&mut self) -> Option<Frame> {
        match &mut self.0 {
            Carrier::WebSocket(link) => link.ready(),
            Carrier::InProcess(link) => link.ready(),
        }
    }

    /// Sets the longest message that is taken from now on, in bytes. A link within the process takes
    /// messages of any length.
    pub fn set_max_message(&mut self, bytes: usize) {
        if let Carrier::WebSocket(link) = &mut self.0 {
            link.set_max_message(bytes);
        }
    }

    /// Writes the queued frames and reads nothing: for callers that must not take more from the far
    /// end now. Returns only when the link has ended. May be dropped at any await.
    pub async fn write_only(&mut self) -> LinkError {
        match &mut self.0 {
            Carrier::WebSocket(link) => link.write_only().await,
            Carrier::InProcess(link) => link.write_only().await,
        }
    }

    /// Asks the far end for a sign of life, which shows in [`Link::heard`]. The ping leaves with
    /// the next write.
    ///
    /// # Errors
    /// [`LinkError`] when the link is broken.
    pub fn ping(&mut self) -> Result<(), LinkError> {
        match &mut self.0 {
            Carrier::WebSocket(link) => link.ping(),
            Carrier::InProcess(link) => {
                link.ping();
                Ok(())
            }
        }
    }

    /// When something last came from the far end; a part of an incomplete message counts.
    pub fn heard(&self) -> Instant {
        match &self.0 {
            Carrier::WebSocket(link) => link.heard(),
            Carrier::InProcess(link) => link.heard(),
        }
    }

    /// The code and reason with which the far end closed.
    pub fn close_reason(&self) -> Option<(u16, String)> {
        match &self.0 {
            Carrier::WebSocket(link) => link.close_reason(),
            Carrier::InProcess(link) => link.close_reason(),
        }
    }

    /// Writes the queued frames, says that this end closes, and waits a bounded time for the answer.
    pub async fn close(self, code: u16, reason: &str) {
        match self.0 {
            Carrier::WebSocket(link) => link.close(code, reason).await,
            Carrier::InProcess(link) => link.close(code, reason).await,
        }
    }
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::WebSocket(_) => "WebSocket",
            Self::InProcess(_) => "within the process",
        })
    }
}
