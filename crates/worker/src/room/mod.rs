//! A room that a backend is lent to.
//!
//! - [`join`]: who a backend is in a room
//! - [`gave_up`]: why a room is given up
//! - `member`: a backend as a member of one room, over all its connections
//! - `plane`: what is asked of the room's server over HTTP

pub mod gave_up;
pub mod join;
pub(crate) mod member;
pub(crate) mod plane;

pub use gave_up::GiveUpReason;
pub use join::JoinRoom;
