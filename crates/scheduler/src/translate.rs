//! What stands between a job and a provider of another shape.

use std::sync::Arc;

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;

use crate::{exchange::traffic::Head, job::JobRequest};

/// Makes of a job's request what a provider is sent, and of its answer what the client gets. The
/// job keeps the bytes of its client, so that another provider may get those.
///
/// Called under the scheduler's lock, but for what takes its time.
pub trait Translator: Send + Sync {
    /// Whether [`Translator::translate`] would take next to no time, because there is little to do
    /// or it was done before. If not, it is called on a thread of its own, with no lock held.
    fn is_quick(&self, _: &JobRequest, _: &ModelName, _: Endpoints) -> bool {
        true
    }

    /// The request for a provider that serves these endpoints, asked for this model.
    ///
    /// # Errors
    /// [`Untranslatable`] when it cannot be made.
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable>;
}

/// What one provider is sent, and how its answer is read.
pub struct ProviderRequest {
    /// The request it is sent.
    pub request: Arc<JobRequest>,
    /// The endpoint that this asks for.
    pub endpoint: Endpoint,
    /// Makes the client's answer of the provider's; `None`: it passes unchanged.
    pub answer: Option<Box<dyn AnswerMap>>,
}

/// Why something has no form in another shape; the text is meant for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Untranslatable(pub String);

/// Makes the client's answer of a provider's, piece by piece.
pub trait AnswerMap: Send {
    /// The head that the client gets.
    fn head(&mut self, head: Head) -> Head;

    /// Whether it gives nothing before its end; known once it has the head.
    fn gathers(&self) -> bool {
        false
    }

    /// What the client gets for these bytes, which may be nothing yet. What is kept for later must
    /// be bounded here: the provider may send on as if the client had read it.
    ///
    /// # Errors
    /// [`Untranslatable`] when the provider's answer makes no sense; the job fails by the
    /// provider's fault.
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Untranslatable>;

    /// What the client gets when the provider's answer is complete. Not called for an answer that
    /// failed.
    ///
    /// # Errors
    /// As [`AnswerMap::chunk`].
    fn end(&mut self) -> Result<Bytes, Untranslatable>;
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
