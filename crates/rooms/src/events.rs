//! What happened, for whoever watches.
//!
//! Each room keeps its last events in a bounded log, encoded once. A watcher is a place in that log
//! and a wish to be woken: it costs next to nothing, and a slow one delays nobody. One that falls out
//! of the log is told so and dropped; it can come back with the id of the last event that it saw.

use bytes::Bytes;

/// In what form events are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The spec's messages as unnamed events, with ids.
    Messages,
    /// Named events as stock clients read them: without ids, without tokens.
    Named,
    /// Named events with ids and with tokens, for our own clients.
    NamedWithIds,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Whole frames.
    Frames(Bytes),
    /// The watcher was too slow, and has missed events: the last frame, which says so. Nothing
    /// follows.
    Lagged(Bytes),
    /// The room was closed. Nothing follows.
    Closed,
}

/// Somebody who watches.
pub struct Subscription {}

impl Subscription {
    /// Waits for what comes next. Cancel safe.
    pub async fn next(&mut self) -> Next {
        todo!()
    }
}
