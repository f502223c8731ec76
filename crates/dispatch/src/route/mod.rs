//! Routing: the choice among several free providers.
//!
//! - [`least_loaded`]: the provider with the smallest share of its capacity in use
//! - [`prefix_affinity`]: the provider that has served the same beginning of a prompt
//! - `fastest`: before the policy, narrows several peers down to the fastest and nearest
//! - `known`: which providers know how much of a prompt
//! - `soonest`: of the remaining ones, keeps those that have the model in memory, or load it
//!   soonest
//!
//! A policy only chooses among candidates. The dispatcher decides whether a provider is a candidate
//! (scope, model, free slot, size, rest, drain, the job's route, and the provider that the consumer
//! pinned), so a pin holds under every policy.

mod fastest;
mod known;
pub mod least_loaded;
pub mod prefix_affinity;
mod soonest;

use std::fmt::Debug;

use base::{ModelName, ProviderId};

use crate::{distance::Distance, input::JobSpec};

pub(crate) use fastest::Fastest;
pub use known::Known;
pub use least_loaded::LeastLoaded;
pub use prefix_affinity::PrefixAffinity;
pub use soonest::Start;
pub(crate) use soonest::keep_soonest;

/// A provider that could get the job now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub provider: ProviderId,
    /// The number of jobs that occupy it; less than its capacity.
    pub load: u32,
    /// How many jobs it takes at once; at least 1.
    pub capacity: u32,
    /// The number of the last assignment that went to it, counted over all providers; 0 for none.
    pub last_given: u64,
    /// The number of jobs that it has from here.
    pub held: u32,
    /// How far away it is.
    pub distance: Distance,
    /// The measured speed of its answers, or else the speed that it reports, in thousandths of a
    /// token a second. None while neither is known.
    pub speed: Option<u32>,
    /// The share of its speed that it offers, in per cent; at least 1.
    pub throttle: u8,
    /// How soon it could begin with the job's model.
    pub start: Start,
}

/// Chooses the provider for a job.
pub trait Policy: Debug + Send {
    /// The index of the chosen candidate. `candidates` is never empty and in no particular order;
    /// an index outside it stands for the first.
    fn choose(&mut self, job: &JobSpec, candidates: &[Candidate]) -> usize;

    /// The providers that know a part of the job's prompt if it asks for this model, and how much
    /// of it they know. A job may wait for a provider that knows much more than the others.
    fn known(&self, job: &JobSpec, model: &ModelName) -> Known {
        let _ = (job, model);
        Known::default()
    }

    /// Reports that the job was assigned to this provider: the chosen one, or one that became free
    /// while the job was waiting.
    fn placed(&mut self, job: &JobSpec, provider: ProviderId) {
        let _ = (job, provider);
    }
}
