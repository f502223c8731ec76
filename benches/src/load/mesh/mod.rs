//! The load of mesh relays, and of the bare echo that they are compared with.
//!
//! - [`frames`]: messages from one WebSocket to another, or to itself
//! - [`nodes`]: many nodes that do nothing
//! - [`node`]: a WebSocket of a node at a relay

pub(crate) mod frames;
mod node;
pub(crate) mod nodes;
