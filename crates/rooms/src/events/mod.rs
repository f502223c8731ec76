//! The events of a room for its watchers.
//!
//! Each room keeps its last events in a bounded [`Log`], encoded once. A watcher is a position in
//! that log and a waker: it costs next to nothing, and a slow one delays no other. A watcher that
//! falls out of the log gets a last frame that says so and is dropped; it can come back with the id
//! of the last event that it saw.
//!
//! - `announcement`: one event, in all its forms
//! - `discreet`: a message for a watcher that may know that something happens, but not what
//! - `ring`: the kept events, and whether a watcher has missed any; pure
//! - `watchers`: the waiting watchers
//! - `log`: the three together, behind a lock
//! - `subscription`: one watcher's view

mod announcement;
mod discreet;
mod log;
mod ring;
mod subscription;
mod watchers;

use bytes::Bytes;

pub use announcement::{Announcement, EncodedEvent, Sight, Source};
pub use log::Log;
pub use ring::Bounds;
pub use subscription::Subscription;

/// The form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The spec's messages as unnamed events, with ids.
    Messages,
    /// Named events as stock clients read them: without ids, without tokens.
    Named,
    /// Named events with ids and with tokens, for our own clients.
    NamedWithIds,
}

impl Form {
    const COUNT: usize = 3;
    const ALL: [Self; Self::COUNT] = [Self::Messages, Self::Named, Self::NamedWithIds];

    /// Its index in tables of all forms.
    const fn index(self) -> usize {
        match self {
            Self::Messages => 0,
            Self::Named => 1,
            Self::NamedWithIds => 2,
        }
    }
}

/// The next item of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Whole frames.
    Frames(Bytes),
    /// The watcher was too slow and has missed events. This last frame says so; nothing follows.
    Lagged(Bytes),
    /// The room was closed. Nothing follows.
    Closed,
}
