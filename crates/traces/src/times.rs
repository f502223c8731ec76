//! Moments as spans have them, and new ids.

use std::time::SystemTime;

use base::trace::{SpanId, TraceId};
use rand::RngExt;

/// A moment in nanoseconds since 1970.
pub fn nanoseconds(at: SystemTime) -> u64 {
    u64::try_from(base::since_1970(at).as_nanos()).unwrap_or(u64::MAX)
}

/// The id of a new trace.
pub fn new_trace() -> TraceId {
    // Zero is drawn once in 2^128 times.
    rand::rng().random::<u128>().max(1).to_be_bytes()
}

/// The id of a new span.
pub fn new_span() -> SpanId {
    rand::rng().random::<u64>().max(1).to_be_bytes()
}
