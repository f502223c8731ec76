//! Routing: which of several free providers gets a job.
//!
//! - [`least_loaded`]: the one with the smallest share of its capacity in use
//! - [`prefix_affinity`]: the one that has served the same beginning of a prompt
//! - `fastest`: before either, who of several peers is worth choosing among
//!
//! A policy chooses among candidates only. Whether a provider is a candidate at all (scope, model,
//! free slot, size, rest, drain, the job's route, and the provider that the consumer pinned) is the dispatcher's
//! business, so a pin is honoured whatever the policy.

mod fastest;
pub mod least_loaded;
pub mod prefix_affinity;

use std::fmt::Debug;

use base::ProviderId;

use crate::{distance::Distance, input::JobSpec};

pub(crate) use fastest::Fastest;
pub use least_loaded::LeastLoaded;
pub use prefix_affinity::PrefixAffinity;

/// A provider that could be given the job now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub provider: ProviderId,
    /// How many jobs it is busy with; less than its capacity.
    pub load: u32,
    /// How many jobs it takes at once; at least 1.
    pub capacity: u32,
    /// The number of the last assignment that went to it, counted over all providers; 0 for none.
    pub last_given: u64,
    /// How many jobs it has from here.
    pub held: u32,
    /// How far away it is.
    pub distance: Distance,
    /// How fast its answers were, or else how fast it says it is, in thousandths of a token a
    /// second. None while neither is known.
    pub speed: Option<u32>,
    /// How much of its speed it gives, in per cent; at least 1.
    pub throttle: u8,
}

/// Chooses who gets a job.
pub trait Policy: Debug + Send {
    /// The position of the one to give the job to. `candidates` is never empty and ordered by
    /// nothing in particular; a position outside it stands for the first.
    fn choose(&mut self, job: &JobSpec, candidates: &[Candidate]) -> usize;

    /// The job was given to this provider: the one chosen, or one that became free while the job
    /// was waiting.
    fn placed(&mut self, job: &JobSpec, provider: ProviderId) {
        let _ = (job, provider);
    }
}
