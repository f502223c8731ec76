//! The limits and delays of the dispatcher.

use std::time::Duration;

/// Limits and delays. [`Config::default`] holds what a server uses when nothing else is set.
#[derive(Debug, Clone)]
pub struct Config {
    /// The most jobs of one scope and model that may wait. One key may fill half of these places,
    /// rounded up. Requeued jobs and jobs that move to a fallback while they wait count, but always
    /// get a place, since they already had one.
    pub max_queue_len: usize,
    /// The most queues that may hold jobs, over all scopes. A new job cannot open another queue; a
    /// requeued job, or one that moves to a fallback, can.
    pub max_queues: usize,
    /// How many bytes of jobs ([`JobSpec::size`](crate::JobSpec::size)) may wait, all queues
    /// together.
    pub max_queued_bytes: u64,
    /// How long a job may wait while no connected provider can serve it. Time at a provider does
    /// not count. A job that goes on to wait for a busy provider has the whole time again when that
    /// provider leaves.
    pub queue_timeout: Duration,
    /// How long a job may wait for connected providers that have no free slot, in total. Time at a
    /// provider does not count. Both kinds of waiting together take no longer than this and
    /// [`Config::queue_timeout`].
    pub busy_timeout: Duration,
    /// The time limit from a job's assignment to the head of its answer.
    pub request_timeout: Duration,
    /// How long a provider that acknowledges jobs
    /// ([`Offer::acknowledges`](crate::Offer::acknowledges)) may take to acknowledge one, before
    /// the job moves to another provider.
    pub acknowledge_timeout: Duration,
    /// How long an answer that has begun may make no progress.
    pub idle_timeout: Duration,
    /// How long a provider may take to end an answer that is complete for its consumer. Then the
    /// job is cancelled at the provider, and its slot is free.
    pub end_timeout: Duration,
    /// How often a job may be requeued for one model: so it is tried at most once more than this.
    /// The count starts again with each fallback.
    pub max_requeue_count: u32,
    /// How long a job whose answer broke off may wait for a provider that resumes it; counted again
    /// for each break.
    pub resume_timeout: Duration,
    /// How often an answer may break off and be resumed.
    pub max_resumes: u32,
    /// The number of consecutive faults that send a provider to rest; 0 for never.
    pub faults_to_rest: u32,
    /// The length of the first rest. Each further rest, without a good answer in between, is twice
    /// as long.
    pub rest_first: Duration,
    /// The longest rest.
    pub rest_last: Duration,
    /// One in this many of the choices that leave out a slow peer goes to such a peer, so that it
    /// is measured again; 0 for never.
    pub try_slow_every: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_queue_len: 100,
            max_queues: 10_000,
            max_queued_bytes: 1 << 30,
            queue_timeout: Duration::from_secs(30),
            busy_timeout: Duration::from_secs(600),
            request_timeout: Duration::from_secs(300),
            acknowledge_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            end_timeout: Duration::from_secs(2),
            max_requeue_count: 3,
            resume_timeout: Duration::from_secs(60),
            max_resumes: 8,
            faults_to_rest: 3,
            rest_first: Duration::from_secs(5),
            rest_last: Duration::from_secs(60),
            try_slow_every: 32,
        }
    }
}
