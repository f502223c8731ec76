//! The translation between a job and a provider of another shape.

use std::sync::Arc;

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;

use crate::{exchange::traffic::Head, job::JobRequest, resume::Record};

/// Converts a job's request into the provider's, and the answer into the client's. The job keeps
/// the client's bytes, so that another provider may get them.
///
/// Called under the scheduler's lock, except for slow work.
pub trait Translator: Send + Sync {
    /// Whether [`Translator::translate`] would take almost no time, because there is little to do
    /// or it was done before. If not, it runs on a thread of its own, with no lock held.
    fn is_quick(&self, _: &JobRequest, _: &ModelName, _: Endpoints) -> bool {
        true
    }

    /// The request for a provider that serves these endpoints, for this model.
    ///
    /// # Errors
    /// [`Untranslatable`] when there is no such request.
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable>;

    /// The record of a streamed answer to this request, if the answer begins at this endpoint;
    /// `None` if such an answer is never resumed.
    fn record(&self, _: &JobRequest, _: Endpoint) -> Option<Box<dyn Record>> {
        None
    }
}

/// A provider's request, and how its answer is converted.
pub struct ProviderRequest {
    /// The request.
    pub request: Arc<JobRequest>,
    /// The endpoint of the request.
    pub endpoint: Endpoint,
    /// Converts the provider's answer into the client's. With `None` the answer passes unchanged.
    pub answer: Option<Box<dyn AnswerMap>>,
}

/// Why a request or answer cannot be put in another shape; the text is meant for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Untranslatable(pub String);

/// Converts a provider's answer into the client's, piece by piece.
pub trait AnswerMap: Send {
    /// The head that the client gets.
    fn head(&mut self, head: Head) -> Head;

    /// Whether it yields nothing before the end of the provider's answer. Known once it has the
    /// head.
    fn gathers(&self) -> bool {
        false
    }

    /// Converts bytes of the provider into bytes for the client, possibly none. The implementation
    /// must bound what it keeps for later, because the provider may continue as if the client had
    /// read it.
    ///
    /// # Errors
    /// [`Unreadable`] when the provider's answer cannot be read any further; the job fails through the
    /// provider's fault.
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable>;

    /// Whether the client has the whole answer although the provider has not ended it. After that,
    /// neither further bytes nor a failure reach the client.
    fn is_complete(&self) -> bool {
        false
    }

    /// The last bytes for the client, once the provider's answer is complete. Not called for an
    /// answer that failed, or that was complete before.
    ///
    /// # Errors
    /// As [`AnswerMap::chunk`].
    fn end(&mut self) -> Result<Bytes, Unreadable>;

    /// The held-back bytes that the client should still get when the provider's answer breaks off.
    fn broken_off(&mut self) -> Bytes {
        Bytes::new()
    }
}

/// A provider's answer that cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unreadable {
    /// The client's bytes for the part that could be read.
    pub before: Bytes,
    /// The reason, as a text for the client.
    pub why: String,
}

/// Passes everything unchanged.
pub struct Untranslated(pub Endpoint);

impl Translator for Untranslated {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        _: &ModelName,
        _: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        Ok(ProviderRequest { request: Arc::clone(request), endpoint: self.0, answer: None })
    }
}
