//! Streams of server-sent events.
//!
//! - `boundary`: where events begin and end in a stream that is forwarded unchanged
//! - `event_reader`: the data of a stream's events

mod boundary;
mod event_reader;

pub use boundary::{Boundary, KEEPALIVE, begins_like_sse, looks_like_sse};
pub use event_reader::{EventReader, EventTooLong, MAX_EVENT};
