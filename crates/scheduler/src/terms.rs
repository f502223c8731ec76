//! The terms on which a provider serves a job.

use std::sync::Arc;

use base::{Endpoint, ModelName};

use crate::job::JobRequest;

/// The terms on which a provider serves a job.
pub struct Terms {
    /// The model by the provider's own name: one may be offered under several.
    pub model: ModelName,
    /// What else is changed in what it is sent.
    pub edit: Option<Arc<dyn RequestEdit>>,
}

/// A change that a provider wants in the requests that it is sent. Made when a job is assigned,
/// after any translation; the job keeps the bytes of its client.
pub trait RequestEdit: Send + Sync {
    /// The request as the provider gets it, at this endpoint.
    fn apply(&self, request: Arc<JobRequest>, endpoint: Endpoint) -> Arc<JobRequest>;
}
