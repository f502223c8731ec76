//! The events of a room, across broken connections.

use std::time::Duration;

use base::Backoff;
use client::{
    ClientError, RoomClient, RoomEvents,
    room::{RoomEvent, event::EventEnvelope},
};
use tokio::time::{Instant, sleep_until};

/// The shortest and the longest delay before a reconnect.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// The events of a room from now on.
pub(super) struct Follow {
    room: RoomClient,
    watching: Option<RoomEvents>,
    /// The id of the last event, if the server numbers them.
    after: Option<String>,
    waits: Backoff,
    /// When the next try is due.
    due: Option<Instant>,
    /// Whether an event has ever come.
    began: bool,
}

/// The next event, or the state of the connection.
#[derive(Debug)]
pub(super) enum Next {
    /// An event of the room.
    Event(Box<EventEnvelope>),
    /// The connection broke, for this reason; the next attempt follows after this wait.
    Lost(String, Duration),
    /// The room does not exist any more.
    Over,
}

impl Follow {
    pub(super) fn new(room: RoomClient) -> Self {
        let waits = Backoff::new(WAITS.0, WAITS.1);
        Self { room, watching: None, after: None, waits, due: None, began: false }
    }

    /// The next event. Nothing comes after [`Next::Over`]. Cancel safe, except that a connection attempt
    /// starts over.
    ///
    /// # Errors
    /// When the server does not let this client watch.
    pub(super) async fn next(&mut self) -> Result<Next, ClientError> {
        if let Some(due) = self.due {
            sleep_until(due).await;
            self.due = None;
        }
        if self.watching.is_none() {
            match self.room.watch(self.after.as_deref()).await {
                Ok(watching) => self.watching = Some(watching),
                Err(error) => return self.not_connected(error),
            }
        }
        self.read().await
    }

    async fn read(&mut self) -> Result<Next, ClientError> {
        let Some(watching) = &mut self.watching else { return Ok(Next::Over) };
        let event = watching.next().await;
        if !watching.last_id().is_empty() {
            self.after = Some(watching.last_id().to_owned());
        }
        match event {
            Ok(Some(event)) => {
                self.began = true;
                self.waits.reset();
                Ok(Next::Event(Box::new(event)))
            }
            Ok(None) => Ok(self.lost("the server ended the stream".to_owned())),
            Err(error) => Ok(self.lost(error.to_string())),
        }
    }

    fn not_connected(&mut self, error: ClientError) -> Result<Next, ClientError> {
        match error {
            ClientError::NotFound { .. } if self.began => Ok(Next::Over),
            // A server that is busy, draining or restarting will be back.
            ClientError::Refused { status: 429 | 500..=599, .. } => {
                Ok(self.lost(error.to_string()))
            }
            _ if self.began && error.is_unreachable() => Ok(self.lost(error.to_string())),
            _ => Err(error),
        }
    }

    fn lost(&mut self, reason: String) -> Next {
        self.watching = None;
        let wait = self.waits.next(rand::random());
        self.due = Some(Instant::now() + wait);
        Next::Lost(reason, wait)
    }
}

/// Whether this is a room's last event.
pub(super) fn is_last(event: &EventEnvelope) -> bool {
    matches!(event.event, RoomEvent::RoomClosed(_))
}
