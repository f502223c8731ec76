//! Messages between the members of a cluster (specification, "Peer Protocol").
//!
//! - [`message`]: [`PeerMessage`], every message with a meaning, and its reader
//! - the fields of each, by subject: [`hello`], [`snapshot`], [`session`], [`project`], [`team`],
//!   [`forward`], [`output`]
//! - [`object`]: sessions, projects and teams as text with all their fields
//! - [`sealed`]: messages between two Warrens
//!
//! Members may be other programs, which differ where the specification is open. So their messages
//! are read leniently, within bounds, and messages to them use every name that they may look for.

pub mod forward;
pub mod hello;
mod lenient;
pub mod message;
pub mod object;
pub mod output;
pub mod project;
pub mod sealed;
pub mod session;
pub mod snapshot;
pub mod team;

pub use forward::{ForwardedRequest, ForwardedResponse};
pub use hello::{NodeName, PeerHello, PeerHelloAck};
pub use lenient::Zero;
pub use message::{FromPeer, LEGACY, PeerKind, PeerMessage, decode_peer};
pub use object::{BadObject, ObjectText};
pub use output::{OfSubscriber, SessionOutput, SubscribeOutput, SubscribeProjectFiles};
pub use project::{ProjectDeleted, ProjectObject, ProjectUpserted};
pub use session::{SessionObject, SessionRemoved, SessionUpdate};
pub use snapshot::{State, StateSnapshot, Tombstone};
pub use team::{TeamObject, TeamRemoved, TeamUpserted};

#[cfg(test)]
mod tests;
