//! What is asked for, and how it can fail.

use base::{JobId, KeyId, ModelName, ProviderId, Scope};
use bytes::Bytes;
use dispatch::{Affinity, Ending};
use http::HeaderMap;

/// One inference request, as an API hands it over.
pub struct Job {
    /// Its id, never used before.
    pub id: JobId,
    /// Where its providers are looked for.
    pub scope: Scope,
    /// The model it asks for.
    pub model: ModelName,
    /// Whom it is counted for.
    pub key: KeyId,
    /// How large it is on the wire in its largest form, in bytes.
    pub size: u64,
    /// Which conversations it continues.
    pub affinity: Affinity,
    /// The only provider that may serve it, if the consumer named one.
    pub pinned: Option<ProviderId>,
    /// Whether its model is worth waiting for when nobody serves it now.
    pub known: bool,
    /// What the provider is sent.
    pub request: JobRequest,
    /// Counts tokens as the answer passes.
    pub meter: Box<dyn Meter>,
}

/// What the provider is sent: the bytes of the client.
#[derive(Debug, Clone)]
pub struct JobRequest {
    /// Path and query, such as `/v1/chat/completions?x=1`.
    pub path_and_query: String,
    /// The model it asks for.
    pub model: ModelName,
    /// Whether the client asked for a stream.
    pub streaming: bool,
    /// Headers, without credentials and without those of the connection.
    pub headers: HeaderMap,
    /// The body as the client sent it. UTF-8.
    pub body: Bytes,
}

/// Counts tokens as an answer passes. It sees every byte once, in order.
pub trait Meter: Send {
    /// The next bytes of the answer.
    fn feed(&mut self, chunk: &[u8]);

    /// What has been used so far.
    fn usage(&self) -> Usage;
}

/// Tokens used by one job, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub prompt_tokens: Option<u64>,
    /// Tokens written.
    pub completion_tokens: Option<u64>,
}

impl Usage {
    /// This, and where it knows nothing, the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.or(other.prompt_tokens),
            completion_tokens: self.completion_tokens.or(other.completion_tokens),
        }
    }
}

/// Why a job has no answer, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub ending: Ending,
    /// What the last provider said about it, if it said anything.
    pub detail: Option<String>,
}

impl From<Ending> for Failure {
    fn from(ending: Ending) -> Self {
        Self { ending, detail: None }
    }
}
