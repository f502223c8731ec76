//! One connection to a workspace.

use std::time::Duration;

use base::error::chain;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use protocol::workspace::{
    ClientMessage, OutputFrame, Problem, ServerMessage,
    client::{Auth, AuthResult},
    decode_reply, frame,
    limits::MAX_MESSAGE,
};
use tokio::time::{Instant, sleep_until, timeout};
use wire::{Dial, DialError, Frame, Link, LinkError, Outbox, Proxies, dial, dial::PAGE};

use super::{
    address::{Address, Addresses},
    answer::{Answer, refusal},
    connect_errors::ConnectErrors,
    early_frames::{EarlyFrames, SizedFrame},
};
use crate::error::ClientError;

/// The deadline for the connection, and again for the server's answer to the token.
const DIAL: Duration = Duration::from_secs(10);
/// The deadline for both, as long as there is another server to try.
const DIAL_ONE_OF_SEVERAL: Duration = Duration::from_secs(4);
/// How often the server is pinged.
const BEAT: Duration = Duration::from_secs(5);
/// After this much silence the server counts as lost for a client that looks at a session.
const SILENCE: Duration = Duration::from_secs(15);
/// As [`SILENCE`], for a client that waits for an answer, or whose own messages may fill a slow network, so that
/// pings wait behind them.
const BUSY_SILENCE: Duration = Duration::from_secs(45);
/// If more bytes than this were sent since the server was last heard, they may fill a slow network.
const MUCH: usize = 64 * 1024;

/// One authenticated connection. It reads, writes and pings only while the caller waits in one of
/// its methods.
pub struct Workspace {
    link: Link,
    outbox: Outbox,
    shown: String,
    early: EarlyFrames,
    /// Whether the caller has requested frames that follow no request: a session's output, or changes
    /// of files. Without such a request these frames are dropped.
    listens: bool,
    next_beat: Instant,
    /// The bytes of messages that were sent since the server was heard, and when that was.
    unheard: usize,
    last_heard: Instant,
    requests: u64,
}

/// A frame from the server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerFrame {
    /// A message.
    Message(Box<ServerMessage>),
    /// Output of the session that this connection is attached to.
    Output(OutputFrame),
}

impl Workspace {
    /// Connects, and authenticates with the token.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] or [`ClientError::Late`] when there is no such server,
    /// [`ClientError::NotAdmitted`] when it does not accept the token.
    pub async fn connect(address: &Address) -> Result<Self, ClientError> {
        let dialing = Dial {
            url: &address.url,
            headers: HeaderMap::new(),
            subprotocols: &[],
            proxies: Proxies::of_environment(),
            pin: None,
            deadline: DIAL,
        };
        let dialed = dial(dialing).await.map_err(|error| undialled(address, error))?;
        let mut workspace = Self {
            link: dialed.link,
            outbox: dialed.outbox,
            shown: address.shown.clone(),
            early: EarlyFrames::default(),
            listens: false,
            next_beat: Instant::now() + BEAT,
            unheard: 0,
            last_heard: Instant::now(),
            requests: 0,
        };
        workspace.link.set_max_message(MAX_MESSAGE);
        workspace.authenticate(address).await?;
        Ok(workspace)
    }

    /// Connects to the first of several servers that admits this client.
    ///
    /// # Errors
    /// As [`Workspace::connect`]. Of several servers, the error of one that refused; if none could be
    /// reached, one error for all of them.
    pub async fn connect_to_any(addresses: &Addresses) -> Result<Self, ClientError> {
        Self::try_each(addresses).await.map_err(|errors| errors.for_first_connection())
    }

    /// Tries each server once, in order.
    pub(super) async fn try_each(addresses: &Addresses) -> Result<Self, ConnectErrors> {
        let mut errors = Vec::new();
        let mut rest = addresses.iter().peekable();
        while let Some(address) = rest.next() {
            // A short deadline, so that a server that is away does not hold up the others.
            let within = if rest.peek().is_some() { DIAL_ONE_OF_SEVERAL } else { 2 * DIAL };
            let late = ClientError::Late { url: address.shown.clone(), after: within };
            match timeout(within, Self::connect(address)).await.unwrap_or(Err(late)) {
                Ok(workspace) => return Ok(workspace),
                Err(error) => errors.push(error),
            }
        }
        Err(ConnectErrors::new(addresses, errors))
    }

    /// The URL of the server, without secrets.
    pub fn server(&self) -> &str {
        &self.shown
    }

    /// Sends a request and waits for its answer, at most for `within`. `take` decides for each message
    /// whether it is the answer. Only one request may be open at a time: an `error` of the server does
    /// not name its request, so it counts as the answer to the open one.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] and [`ClientError::Declined`] when the server refuses,
    /// [`ClientError::Late`] when it does not answer in time, [`ClientError::Unreachable`] when the
    /// connection is lost.
    pub async fn request<T>(
        &mut self,
        message: &ClientMessage,
        within: Duration,
        take: impl FnMut(ServerMessage) -> Answer<T>,
    ) -> Result<T, ClientError> {
        self.send(message)?;
        let late = ClientError::Late { url: self.shown.clone(), after: within };
        timeout(within, self.answer(take)).await.map_err(|_| late)?
    }

    /// Queues a message whose answer, if it has one, comes among the frames of [`Workspace::next`]. It
    /// is written while the caller waits in another method.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when the connection is lost.
    pub fn send(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        self.listens |=
            matches!(message, ClientMessage::Attach(_) | ClientMessage::WatchProjectFiles(_));
        let text = message.encode();
        // Messages that were sent before the server was last heard do not fill the network any more.
        if self.link.heard() > self.last_heard {
            (self.last_heard, self.unheard) = (self.link.heard(), 0);
        }
        self.unheard += text.len();
        self.outbox.push(text).map_err(|_| self.lost("the connection is closed"))
    }

    /// The next frame that answers no request; `None` when the server has closed the connection. The
    /// future may be dropped at any await: no frame is lost.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] or [`ClientError::Late`] when the connection is lost,
    /// [`ClientError::Strange`] when the frame is not one of a workspace.
    pub async fn next(&mut self) -> Result<Option<ServerFrame>, ClientError> {
        match self.early.take() {
            Some(frame) => Ok(Some(frame)),
            None => Ok(self.hear().await?.map(|heard| heard.frame)),
        }
    }

    /// The next frame that has already arrived; `None` if there is no such frame now.
    ///
    /// # Errors
    /// As [`Workspace::next`].
    pub fn ready(&mut self) -> Result<Option<ServerFrame>, ClientError> {
        if let Some(frame) = self.early.take() {
            return Ok(Some(frame));
        }
        while let Some(frame) = self.link.ready() {
            if let Some(SizedFrame { frame, .. }) = self.read(frame)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Writes the queued messages and reads nothing, for a caller that cannot take more frames now. The
    /// future completes only when the connection is lost; the next read then reports the loss. It may be
    /// dropped at any await.
    pub async fn write(&mut self) {
        let _broken = self.link.write_only().await;
    }

    /// Writes the queued messages, then closes the connection.
    pub async fn close(self) {
        self.link.close(1000, "").await;
    }

    /// A new id for a request whose answer repeats the id.
    pub(super) fn request_id(&mut self) -> String {
        self.requests += 1;
        self.requests.to_string()
    }

    pub(super) fn strange(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Strange { url: self.shown.clone(), reason: reason.into() }
    }

    async fn authenticate(&mut self, address: &Address) -> Result<(), ClientError> {
        let refused =
            |words: String| ClientError::NotAdmitted { url: address.shown.clone(), words };
        let Some(token) = address.token.clone() else {
            return Err(refused("no token was given".to_owned()));
        };
        let auth = ClientMessage::Auth(Auth { token });
        let result = self.request(&auth, DIAL, |reply| match reply {
            ServerMessage::AuthResult(result) => Answer::Is(result),
            other => other.into(),
        });
        match result.await {
            Ok(AuthResult { success: true, .. }) => Ok(()),
            Ok(AuthResult { message, .. }) => Err(refused(message)),
            // A server that does not take the message at all says so with an error.
            Err(ClientError::NotFound { words } | ClientError::Declined { words }) => {
                Err(refused(words))
            }
            Err(error) => Err(error),
        }
    }

    async fn answer<T>(
        &mut self,
        mut take: impl FnMut(ServerMessage) -> Answer<T>,
    ) -> Result<T, ClientError> {
        loop {
            let heard = self.hear().await?;
            let SizedFrame { frame, bytes } = heard.ok_or_else(|| self.lost(&self.goodbye()))?;
            let frame = match frame {
                ServerFrame::Message(message) => match *message {
                    ServerMessage::Error(error) => return Err(refusal(error.message)),
                    ServerMessage::SessionUnknown(of) => {
                        return Err(refusal(format!("there is no session {}", of.session_id)));
                    }
                    message => match take(message) {
                        Answer::Is(answer) => return Ok(answer),
                        Answer::No(words) => return Err(refusal(words)),
                        Answer::Other(message) => ServerFrame::Message(message),
                    },
                },
                output => output,
            };
            self.keep(SizedFrame { frame, bytes })?;
        }
    }

    async fn hear(&mut self) -> Result<Option<SizedFrame>, ClientError> {
        loop {
            let next = tokio::select! {
                // Frames first: if nothing was read for long, the server may still have sent something.
                biased;
                next = self.link.next() => next,
                () = sleep_until(self.next_beat) => {
                    self.beat()?;
                    continue;
                }
            };
            match next.map_err(|error| self.broken(&error))? {
                None => return Ok(None),
                Some(frame) => {
                    if let Some(frame) = self.read(frame)? {
                        return Ok(Some(frame));
                    }
                }
            }
        }
    }

    fn beat(&mut self) -> Result<(), ClientError> {
        let is_busy = self.link.heard() <= self.last_heard && self.unheard > MUCH;
        let silence = if self.listens && !is_busy { SILENCE } else { BUSY_SILENCE };
        if self.link.heard().elapsed() >= silence {
            return Err(ClientError::Late { url: self.shown.clone(), after: silence });
        }
        self.next_beat = Instant::now() + BEAT;
        self.link.ping().map_err(|error| self.broken(&error))
    }

    /// Decodes a frame. `None` for a message of a type that this client does not know: a newer server
    /// may send one.
    fn read(&self, frame: Frame) -> Result<Option<SizedFrame>, ClientError> {
        match frame {
            Frame::Binary(bytes) => {
                let length = bytes.len();
                let frame = self.read_output(bytes)?;
                Ok(Some(SizedFrame { frame, bytes: length }))
            }
            Frame::Text(text) => match decode_reply(text.as_str()) {
                Ok(message) => {
                    let frame = ServerFrame::Message(Box::new(message));
                    Ok(Some(SizedFrame { frame, bytes: text.as_str().len() }))
                }
                Err(bad) if matches!(bad.problem, Problem::UnknownType(_)) => Ok(None),
                Err(bad) => Err(self.strange(bad.to_string())),
            },
        }
    }

    fn read_output(&self, bytes: Bytes) -> Result<ServerFrame, ClientError> {
        frame::decode(bytes)
            .map(ServerFrame::Output)
            .map_err(|error| self.strange(error.to_string()))
    }

    fn keep(&mut self, frame: SizedFrame) -> Result<(), ClientError> {
        // The caller has asked for no such frames. If they were kept, the events for all clients would reach
        // the bound while an answer takes long.
        if !self.listens || self.early.keep(frame) {
            return Ok(());
        }
        Err(self.strange("more was told than could be kept until the answer came"))
    }

    /// The server's reason for closing the connection, for an error message.
    fn goodbye(&self) -> String {
        match self.link.close_reason() {
            Some((_, reason)) if !reason.is_empty() => format!("it closed: {reason}"),
            _ => "it closed the connection".to_owned(),
        }
    }

    fn broken(&self, error: &LinkError) -> ClientError {
        self.lost(&chain(error))
    }

    fn lost(&self, reason: &str) -> ClientError {
        ClientError::Unreachable { url: self.shown.clone(), reason: reason.to_owned() }
    }
}

fn undialled(address: &Address, error: DialError) -> ClientError {
    let url = address.shown.clone();
    match error {
        DialError::Timeout(after) => ClientError::Late { url, after },
        DialError::Refused { status: StatusCode::NOT_FOUND, body } if body != PAGE => {
            let reason = "it has no workspace; is it a Warren, and its workspace enabled?";
            ClientError::Strange { url, reason: reason.to_owned() }
        }
        error @ DialError::Refused { status, .. } => {
            ClientError::Refused { status: status.as_u16(), words: error.to_string() }
        }
        DialError::Handshake(reason) => ClientError::Strange { url, reason },
        DialError::NotTheServer(reason) => ClientError::NotTheServer { url, reason },
        DialError::Url(_) => ClientError::NotAServer { url, reason: "it cannot be dialled" },
        error @ (DialError::Connect { .. }
        | DialError::Proxy(_)
        | DialError::Tls { .. }
        | DialError::Broken { .. }) => ClientError::Unreachable { url, reason: chain(&error) },
    }
}
