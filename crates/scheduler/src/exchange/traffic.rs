//! What passes between the two ends of an exchange.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::job::Failure;

/// The most that is held back for a reader that does not read, in bytes. One more chunk may come
/// on top of it.
pub const HELD_BACK: usize = 8 * 1024 * 1024;

/// The header that says of what kind an answer's usage is: [`ESTIMATED`], if it was not counted.
pub const USAGE_HEADER: HeaderName = HeaderName::from_static("x-warren-usage");

/// What [`USAGE_HEADER`] says of usage that was not counted.
pub const ESTIMATED: &str = "estimated";

/// The head of an answer.
#[derive(Debug, Clone)]
pub struct Head {
    /// The backend's status.
    pub status: StatusCode,
    /// The backend's headers, without those of its connection. A provider that can only guess what
    /// it used says so in [`USAGE_HEADER`].
    pub headers: HeaderMap,
}

/// What an [`Answer`](super::Answer) yields.
#[derive(Debug)]
pub enum Event {
    /// Bytes of the answer from one read at the provider, or from several small reads if the reader was
    /// behind.
    Chunk(Bytes),
    /// The answer is complete.
    End,
    /// There will be no (more of the) answer.
    Failed(Failure),
}

/// Why a writer need not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The job ended otherwise, or went to another provider.
    #[error("the job is no longer this provider's")]
    Over,
    /// The reader holds back more than is kept for it.
    #[error("the client does not read")]
    Stalled,
    /// Another provider is asked because of this status: the job should be failed, which moves it on.
    /// The rest of this answer is not wanted.
    #[error("another provider is asked")]
    Refused,
    /// The answer is not in the shape that the provider was asked for: the job should be failed.
    #[error("the answer makes no sense")]
    Unreadable,
}

/// Told how many bytes of an answer were read, so that as many may follow.
pub trait CreditSink: Send + Sync {
    /// `bytes` more may be sent for the provider's own `number` of the job.
    fn credit(&self, number: u32, bytes: u32);
}
