//! An answer that cannot be read.

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
