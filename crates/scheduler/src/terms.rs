//! The terms on which a provider serves a job.

use std::sync::Arc;

use base::{Endpoint, ModelName};

use crate::job::JobRequest;

/// The terms on which a provider serves a job.
pub struct Terms {
    /// The model by the provider's own name: one model may be offered under several names.
    pub model: ModelName,
    /// A further change to the requests that it gets.
    pub edit: Option<Arc<dyn RequestEdit>>,
}

/// A provider's change to the requests that it gets. It is made when a job is assigned, after any
/// translation; the job keeps the client's bytes.
pub trait RequestEdit: Send + Sync {
    /// The request as the provider gets it, at this endpoint.
    fn apply(&self, request: Arc<JobRequest>, endpoint: Endpoint) -> Arc<JobRequest>;
}
