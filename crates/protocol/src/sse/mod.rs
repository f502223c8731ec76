//! Streams of server-sent events.
//!
//! - `boundary`: where events begin and end in a stream that is forwarded unchanged
//! - `event_reader`: the data of a stream's events
//! - `stream_end`: the event that ends an answer
//! - `line`: where lines and events end, for the modules above and the filter of usage

mod boundary;
mod event_reader;
pub(crate) mod line;
mod stream_end;

pub use boundary::{Boundary, KEEPALIVE, begins_like_sse, looks_like_sse};
pub use event_reader::{EventReader, EventTooLong, MAX_EVENT};
pub use line::event_len;
pub use stream_end::StreamEnd;
