//! The limits and delays that the dispatcher keeps to.

use std::time::Duration;

/// Limits and delays. [`Config::default`] holds what a server uses when nothing else is set.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many jobs of one scope and model may wait. One key may fill half of these places,
    /// rounded up. Requeued jobs, and those that go on to a fallback while they wait, count, but
    /// are never refused a place: they had one.
    pub max_queue_len: usize,
    /// How many queues may hold jobs at once, all scopes together, for a new job to open another.
    pub max_queues: usize,
    /// How many bytes of jobs ([`JobSpec::size`](crate::JobSpec::size)) may wait, all queues
    /// together.
    pub max_queued_bytes: u64,
    /// How long a job may wait in queues, in total. Time at a provider does not count.
    pub queue_timeout: Duration,
    /// How long a provider may take from a job's assignment to the head of its answer.
    pub request_timeout: Duration,
    /// How long nothing may move in an answer that has begun.
    pub idle_timeout: Duration,
    /// How often a job may be requeued for one model: it is tried at most once more than this,
    /// again with each of its fallbacks.
    pub max_requeue_count: u32,
    /// How many faults in a row send a provider to rest; 0 for never.
    pub faults_to_rest: u32,
    /// The first rest. Each further one, without a good answer in between, is twice as long.
    pub rest_first: Duration,
    /// The longest rest.
    pub rest_last: Duration,
    /// One in this many choices that leave a peer out as too slow goes to such a peer, so that
    /// it is measured again; 0 for never.
    pub try_slow_every: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_queue_len: 100,
            max_queues: 10_000,
            max_queued_bytes: 1 << 30,
            queue_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(300),
            max_requeue_count: 3,
            faults_to_rest: 3,
            rest_first: Duration::from_secs(5),
            rest_last: Duration::from_secs(60),
            try_slow_every: 32,
        }
    }
}
