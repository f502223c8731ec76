//! Events for all clients, whatever they are attached to.

use protocol::workspace::{ServerMessage, SessionId, TeamId};
use tokio::sync::broadcast;

/// How many messages a client may be behind. A client that is further behind gets the whole state
/// instead.
const BEHIND: usize = 1024;

/// Something that happened, for every client that may read the workspace.
#[derive(Debug, Clone)]
pub struct Event {
    /// The message to the clients.
    pub message: ServerMessage,
    /// Set if the event is about a hidden session: only viewers of that session get the event.
    pub only_viewers_of: Option<SessionId>,
    /// The team that the event is about. The connections of a team's members get only events of
    /// that team.
    pub team: Option<TeamId>,
}

/// The channel of events to all clients.
#[derive(Debug, Clone)]
pub struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND))
    }
}

impl Events {
    /// Sends a message to all clients.
    pub fn tell(&self, message: ServerMessage) {
        self.send(Event { message, only_viewers_of: None, team: None });
    }

    /// Sends an event. It is no error if no client is connected.
    pub fn send(&self, event: Event) {
        let _nobody = self.0.send(event);
    }

    /// The events from now on, for one client.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
