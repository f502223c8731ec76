//! A worker's events, for people.

use std::{sync::Arc, time::Duration};

use base::Secret;

use crate::{failures::WARN_FROM, room::GiveUpReason};

/// Something that happened to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A server has accepted a backend.
    Connected {
        /// The server's address.
        server: String,
        /// The name of the link.
        name: String,
        /// Its id at the server.
        worker_id: String,
        /// Whether both ends are Warrens and speak binary frames.
        binary: bool,
        /// The server's warnings.
        warnings: Vec<String>,
    },
    /// A server keeps the connection of a node.
    NodeConnected {
        /// The server's address.
        server: String,
        /// The name of the node.
        name: String,
        /// The model that it serves.
        model: String,
    },
    /// A backend is in a room. Sent for each connection.
    Joined {
        /// The server's address.
        server: String,
        /// The name of the link.
        name: String,
        /// The room's code, as the server writes it.
        room: String,
        /// Its participant id in the room.
        participant_id: String,
        /// The token that proves the participant's identity, also after a restart, so it is worth keeping: see
        /// [`crate::JoinRoom::session_token`]. `None`: stock servers give no token.
        session_token: Option<Secret>,
        /// Whether it joined as a stock participant, by a tunnel.
        tunnel: bool,
    },
    /// The link has ended, and no other will be tried.
    GaveUp {
        /// The server's address.
        server: String,
        /// The name of the link.
        name: String,
        /// Why.
        why: GiveUpReason,
    },
    /// A server refused this worker.
    Refused {
        /// The server's address.
        server: String,
        /// The name of the link.
        name: String,
        /// Its message.
        reason: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// There is no link: dialling failed, or the link ended. Of many such events in a row, only
    /// some are sent.
    Disconnected {
        /// The server's address.
        server: String,
        /// The name of the link.
        name: String,
        /// Why.
        reason: String,
        /// How many tries in a row, including this one, have led to no lasting link.
        tries: u32,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// A server drains: it sends no new jobs over this link.
    Draining {
        /// The server's address.
        server: String,
        /// The name of the link.
        name: String,
        /// Why, if it said so.
        reason: String,
    },
    /// A backend offers other models than before.
    Models {
        /// The backend.
        backend: String,
        /// All that it offers now.
        models: Vec<String>,
    },
    /// A found backend is no longer lent.
    Withdrawn {
        /// The backend.
        backend: String,
    },
    /// A backend gives no list of models.
    BackendFailed {
        /// The backend.
        backend: String,
        /// Why.
        reason: String,
    },
}

/// Called with each event; must return at once.
pub type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// Passes events to the log, and to the observer if there is one.
#[derive(Clone, Default)]
pub(crate) struct EventSink(pub(crate) Option<Observer>);

impl EventSink {
    pub(crate) fn send(&self, event: &Event) {
        log(event);
        if let Some(observer) = &self.0 {
            observer(event);
        }
    }
}

impl std::fmt::Debug for EventSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventSink")
    }
}

fn log(event: &Event) {
    match event {
        Event::Connected { server, name, worker_id, binary, warnings } => {
            tracing::info!(server, name, worker_id, binary, "connected");
            for warning in warnings {
                tracing::warn!(server, name, "the server warns: {warning}");
            }
        }
        Event::NodeConnected { server, name, model } => {
            tracing::info!(server, name, model, "connected");
        }
        Event::Joined { server, name, room, participant_id, tunnel, .. } => {
            tracing::info!(server, name, room, participant_id, tunnel, "in the room");
        }
        Event::GaveUp { server, name, why } => {
            tracing::error!(server, name, "given up: {why}");
        }
        Event::Refused { server, name, reason, retry_in } => {
            tracing::warn!(server, name, ?retry_in, "the server refused this worker: {reason}");
        }
        Event::Disconnected { server, name, reason, tries, retry_in } if *tries >= WARN_FROM => {
            tracing::warn!(server, name, tries, ?retry_in, "still not connected: {reason}");
        }
        Event::Disconnected { server, name, reason, retry_in, .. } => {
            tracing::info!(server, name, ?retry_in, "not connected: {reason}");
        }
        Event::Draining { server, name, reason } => {
            tracing::info!(server, name, reason, "the server drains");
        }
        Event::Models { backend, models } => {
            tracing::info!(backend, models = models.join(", "), "the models changed");
        }
        Event::Withdrawn { backend } => tracing::info!(backend, "it is gone"),
        Event::BackendFailed { backend, reason } => {
            tracing::warn!(backend, "{reason}");
        }
    }
}
