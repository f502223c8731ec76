//! Whose a job is.

use base::{JobId, ProviderId};

/// One provider's try at a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) job: JobId,
    pub(crate) provider: ProviderId,
    pub(crate) attempt: u32,
}
