//! The claim of a provider on a job.

use base::{JobId, ProviderId};

/// One provider's attempt at a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) job: JobId,
    pub(crate) provider: ProviderId,
    pub(crate) attempt: u32,
}
