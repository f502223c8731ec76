//! An answer that cannot be read.

use crate::sse::EventTooLong;

/// The most that is kept of one answer until it is complete, in bytes.
pub const MAX_KEPT: usize = 64 * 1024 * 1024;

/// An answer that makes no sense in the shape that it should have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAnswer(pub String);

impl From<EventTooLong> for BadAnswer {
    fn from(too_long: EventTooLong) -> Self {
        Self(too_long.to_string())
    }
}
