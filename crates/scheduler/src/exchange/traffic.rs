//! The types that pass between the two ends of an exchange.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::job::Failure;

/// The most bytes that are held back for a reader that does not read. One more chunk may come on
/// top.
pub const HELD_BACK: usize = 8 * 1024 * 1024;

/// The header that marks usage as estimated: its value is then [`ESTIMATED`].
pub const USAGE_HEADER: HeaderName = HeaderName::from_static("x-warren-usage");

/// The value of [`USAGE_HEADER`] for usage that was not counted.
pub const ESTIMATED: &str = "estimated";

/// The head of an answer.
#[derive(Debug, Clone)]
pub struct Head {
    /// The backend's status.
    pub status: StatusCode,
    /// The backend's headers, without those of its connection. A provider that can only estimate
    /// its usage says so in [`USAGE_HEADER`].
    pub headers: HeaderMap,
}

/// The events that an [`Answer`](super::Answer) yields.
#[derive(Debug)]
pub enum Event {
    /// Bytes of the answer from one read at the provider, or from several small reads if the reader was
    /// behind.
    Chunk(Bytes),
    /// The answer is complete.
    End,
    /// The job failed: the rest of the answer, or all of it, will not come.
    Failed(Failure),
}

/// Why a writer should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The job has ended, or went to another provider.
    #[error("the job is no longer this provider's")]
    Over,
    /// The reader is further behind than the exchange's buffer allows.
    #[error("the client does not read")]
    Stalled,
    /// The answer's status sends the job to another provider. The writer should fail the job, which
    /// moves it on. The rest of this answer is not needed.
    #[error("another provider is asked")]
    Refused,
    /// The answer is not in the shape that the provider was asked for. The writer should fail the
    /// job.
    #[error("the answer makes no sense")]
    Unreadable,
}

/// Learns how many bytes of an answer were read, so that as many more may be sent.
pub trait CreditSink: Send + Sync {
    /// `bytes` more may be sent for the job that has this `number` at the provider.
    fn credit(&self, number: u32, bytes: u32);
}
