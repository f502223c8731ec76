//! The mesh: messages between peers, and between nodes and relays.
//!
//! - [`cluster`]: messages between peers (spec, "Cluster Messages")
//! - [`frame`]: frames of a LAN link
//! - [`device`]: a device and its capabilities
//! - [`relay`]: messages between nodes and relays
//! - [`date`], [`wire_id`]: dates and ids as stock peers write them

pub mod cluster;
pub mod date;
pub mod device;
pub mod frame;
mod lenient;
pub mod relay;
pub mod wire_id;

pub use cluster::{ClusterMessage, Dialect};
pub use date::AppleTime;
pub use device::{Capabilities, DeviceInfo, Hardware, WarrenNode};
pub use wire_id::WireId;

#[cfg(test)]
mod tests;
