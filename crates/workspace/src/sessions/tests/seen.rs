//! A client that checks its messages.

use std::time::Duration;

use bytes::Bytes;
use protocol::workspace::{
    ServerMessage, SessionId, SessionStatus, client::SessionSnapshot, frame,
};
use session::terminal::screen::{Screen, Size};
use tokio::time::timeout;

use crate::{
    Workspace,
    identity::ClientId,
    sessions::{Attachment, StreamItem},
    testing::soon,
};

/// After this much silence, nothing more is expected.
const MOMENT: Duration = Duration::from_millis(1);

/// A client that is attached to a session.
pub(super) struct Watcher {
    pub(super) attachment: Attachment,
    /// The number of the last output that the client has.
    pub(super) seq: Option<u64>,
    /// All output since the client attached, without snapshots.
    pub(super) text: String,
    pub(super) screen: Screen,
    pub(super) messages: Vec<ServerMessage>,
    pub(super) snapshots: usize,
}

impl Watcher {
    pub(super) fn attach(workspace: &Workspace, id: SessionId, client: u64) -> Self {
        Self::resume(workspace, id, client, None)
    }

    pub(super) fn resume(
        workspace: &Workspace,
        id: SessionId,
        client: u64,
        after_seq: Option<u64>,
    ) -> Self {
        Self::of(workspace.sessions.attach(id, ClientId(client), after_seq).unwrap())
    }

    pub(super) fn of(attachment: Attachment) -> Self {
        Self {
            attachment,
            seq: None,
            text: String::new(),
            screen: Screen::new(Size::new(80, 24)),
            messages: Vec::new(),
            snapshots: 0,
        }
    }

    /// Takes the next item. Returns whether there was one.
    pub(super) async fn step(&mut self) -> bool {
        let Some(streamed) = soon(self.attachment.next()).await else { return false };
        self.take(streamed);
        true
    }

    pub(super) fn take(&mut self, streamed: StreamItem) {
        match streamed {
            StreamItem::Output(frame) => self.output(frame),
            StreamItem::Message(message) => self.message(message),
        }
    }

    /// A client that has its history.
    pub(super) async fn begun(attachment: Attachment) -> Self {
        let mut seen = Self::of(attachment);
        while seen.seq.is_none() {
            assert!(seen.step().await);
        }
        seen
    }

    /// Takes all items that there are now. While a screen is painted on another thread, paused time
    /// stands still, so the wait does not end before the screen is there.
    pub(super) async fn catch_up(&mut self) {
        while let Ok(Some(streamed)) = timeout(MOMENT, self.attachment.next()).await {
            self.take(streamed);
        }
    }

    /// Takes items until the client's screen shows this text.
    pub(super) async fn until(&mut self, shown: &str) {
        while !self.screen.text().contains(shown) {
            assert!(self.step().await, "it ended at\n{}", self.screen.text());
        }
    }

    /// Takes items until the client has a message like this.
    pub(super) async fn until_told(&mut self, wanted: impl Fn(&ServerMessage) -> bool) {
        while !self.messages.iter().any(&wanted) {
            assert!(self.step().await, "it was told {:?}", self.messages);
        }
    }

    fn output(&mut self, frame: Bytes) {
        let frame = frame::decode(frame).unwrap();
        assert_eq!(frame.session_id, self.attachment.session());
        assert_eq!(Some(frame.seq), self.seq.map(|seq| seq + 1), "a number is missing or repeated");
        self.seq = Some(frame.seq);
        self.screen.feed(&frame.data);
        self.text.push_str(str::from_utf8(&frame.data).unwrap());
    }

    fn message(&mut self, message: ServerMessage) {
        match &message {
            ServerMessage::SessionHistory(history) => {
                assert_eq!(self.seq, None, "a second history");
                self.seq = Some(history.last_seq);
                if let Some(snapshot) = &history.snapshot {
                    assert_eq!(snapshot.seq, history.last_seq);
                    self.repaint(snapshot);
                }
            }
            ServerMessage::SessionSnapshot(snapshot) => {
                assert!(self.seq.is_some_and(|seq| seq <= snapshot.seq));
                self.seq = Some(snapshot.seq);
                self.repaint(snapshot);
            }
            ServerMessage::TerminalSize(size) => {
                let size = Size::new(size.cols, size.rows);
                if self.screen.size() != size {
                    self.screen.resize(size);
                }
            }
            _ => assert!(self.seq.is_some(), "{message:?} before the history"),
        }
        self.messages.push(message);
    }

    fn repaint(&mut self, snapshot: &SessionSnapshot) {
        self.snapshots += 1;
        self.screen = Screen::new(Size::new(snapshot.cols, snapshot.rows));
        self.screen.feed(snapshot.data.as_bytes());
    }
}

pub(super) fn type_in(workspace: &Workspace, id: SessionId, client: u64, text: &str) {
    let keys = Bytes::copy_from_slice(text.as_bytes());
    assert!(workspace.sessions.type_in(id, ClientId(client), keys, None).unwrap().is_some());
}

/// Waits until a session has this status. Looks again after each event for all clients.
pub(super) async fn until_status(workspace: &Workspace, id: SessionId, status: SessionStatus) {
    let mut events = workspace.events.subscribe();
    while workspace.sessions.info(id).unwrap().status != status {
        soon(events.recv()).await.unwrap();
    }
}
