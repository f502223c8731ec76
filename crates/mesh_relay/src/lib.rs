//! The relay of the mesh: nodes that cannot reach each other meet at it.
//!
//! A node registers, asks who else is there, and speaks with another in relay sessions, whose
//! content the relay passes on unread. What it decides is a pure machine; a shell around it owns
//! the sockets, one task for each.
//!
//! - [`MeshRelay`]: the shell: from an HTTP request to a node's link
//! - [`switchboard`]: the registered nodes, their rights, and the messages to each
//! - [`Settings`]: admission, and each node's limits
//! - [`Remember`]: which nodes have proved themselves with a challenge before
//! - [`Counts`]: what metrics and health show
//!
//! Nothing is lost silently: a sender whose receiver does not read is read no further, and when
//! that lasts too long, the relay session ends and both ends are told.

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
