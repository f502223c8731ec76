//! Events for all clients, whatever they are attached to.

use protocol::workspace::{ServerMessage, SessionId, TeamId};
use tokio::sync::broadcast;

/// The messages that a slow client may be behind. After more it gets the whole state instead.
const BEHIND: usize = 1024;

/// Something that happened, for every client that may read the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) message: ServerMessage,
    /// The session it is about, if that is hidden: only its viewers get the event.
    pub(crate) only_viewers_of: Option<SessionId>,
    /// The team it is about: its members' own connections hear of their team only.
    pub(crate) team: Option<TeamId>,
}

/// The way of events to all clients.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND))
    }
}

impl Events {
    /// Tells everybody.
    pub(crate) fn tell(&self, message: ServerMessage) {
        self.send(Event { message, only_viewers_of: None, team: None });
    }

    /// Tells this; nobody there to hear it is no error.
    pub(crate) fn send(&self, event: Event) {
        let _nobody = self.0.send(event);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
