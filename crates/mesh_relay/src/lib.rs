//! The mesh relay, where nodes meet that cannot reach each other.
//!
//! A node registers, asks for the other nodes, and speaks with them in relay sessions, whose content the relay passes on
//! unread. A pure machine decides; a shell around it owns the sockets, with a task for each.
//!
//! - [`MeshRelay`]: the shell: from an HTTP request to a node's link
//! - [`switchboard`]: the pure machine: the registered nodes, their rights, and the messages to each
//! - [`Settings`]: admission, and the limits of each node
//! - [`Remember`]: the nodes that have answered a challenge before
//! - [`Counts`]: the counts for metrics and health
//!
//! No message is lost silently. If a receiver does not read, nothing is read from its sender
//! either. If that lasts too long, the relay session ends, and both ends get the reason.

mod bucket;
mod counts;
mod port;
mod relay;
mod remember;
mod settings;
mod socket;
pub mod switchboard;

pub use counts::{Counts, Summary};
pub use relay::MeshRelay;
pub use remember::{InMemory, REMEMBERED, Remember};
pub use settings::{Admission, Rate, Settings};
