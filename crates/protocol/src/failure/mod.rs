//! Failures: of providers, in the form of each API; of backends, in any form that they use.
//!
//! - `report`: a provider's failure, in the form of the requested path's API
//! - `backend`: a backend's error, read from a body or an event
//! - `loading`: refusals of a backend that loads its model
//! - `overflow`: a prompt that is too long, in the words of each backend
//!
//! [`BadAnswer`] is an answer that does not have the expected shape.

mod backend;
mod loading;
mod overflow;
mod report;

pub use backend::{Failure, MAX_MESSAGE};
pub use loading::{is_loading, may_be_loading};
pub use overflow::Overflow;
pub use report::{PassedStream, body, last_event};

use crate::sse::EventTooLong;

/// The most bytes of an incomplete answer that are held.
pub const MAX_KEPT: usize = 64 * 1024 * 1024;

/// An answer that does not have the expected shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAnswer(pub String);

impl From<EventTooLong> for BadAnswer {
    fn from(too_long: EventTooLong) -> Self {
        Self(too_long.to_string())
    }
}
