//! Rooms.
//!
//! - [`requests`]: what a request costs in a room, beside the plain API
//! - [`events`]: what a watcher costs, and how soon all of them are told
//! - [`crowd`]: where those are

mod crowd;
pub(super) mod events;
pub(super) mod requests;
