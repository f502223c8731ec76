//! A room that a backend is lent to.
//!
//! - [`join`]: who a backend is in a room
//! - [`gave_up`]: why a room is given up
//! - `in_room`: one room of one server, over all its connections
//! - `plane`: what is asked of the room's server over HTTP

pub mod gave_up;
mod in_room;
pub mod join;
mod plane;

pub use gave_up::GiveUpReason;
pub(crate) use in_room::InRoom;
pub use join::JoinRoom;
pub(crate) use plane::HeartbeatFailed;
