//! The mesh with real processes: Warrens among each other and with stock-shaped peers, on the LAN and
//! through relays.
//!
//! - `kit`: machines, what they see, and a connection that can be cut
//! - `inference`: questions to a Warren, on the LAN and through a relay

mod inference;
mod kit;
