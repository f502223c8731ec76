//! The inputs of the dispatcher.

use std::time::{Duration, Instant};

use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, Scope};

use crate::distance::{Distance, Route};

/// One event. Inputs about jobs or providers that are no longer known are ignored: the ends of a
/// link may cross.
#[expect(missing_docs, reason = "ids and reasons are what their types say")]
#[derive(Debug, Clone)]
pub enum Input {
    /// A provider is connected and may be given jobs.
    Join { provider: ProviderId, offer: Offer },
    /// A provider serves another set of models from now on. Jobs it holds are not touched.
    Models {
        provider: ProviderId,
        /// All that it serves now.
        models: Vec<ModelName>,
        /// Its load as it counts it itself, in jobs.
        load: u32,
    },
    /// A provider serves other endpoints than it was taken to. Jobs it holds are not touched.
    Endpoints {
        provider: ProviderId,
        /// All that it serves now.
        endpoints: Endpoints,
    },
    /// A provider reports its load.
    Load {
        provider: ProviderId,
        /// Its load as it counts it itself, in jobs; other servers' jobs count too.
        load: u32,
    },
    /// A provider takes another number of jobs at once from now on. Jobs it holds are not touched.
    Capacity {
        provider: ProviderId,
        /// How many jobs it takes at once; 0 counts as 1.
        max_concurrent: u32,
    },
    /// A provider is nearer or farther than it was. Jobs it holds are not touched.
    Moved {
        provider: ProviderId,
        /// How far away it is now.
        distance: Distance,
    },
    /// A provider tells of itself how it is doing. Jobs it holds are not touched.
    Condition {
        provider: ProviderId,
        /// How fast it says it is, in thousandths of a token a second. Believed only until its
        /// own answers tell.
        speed: Option<u32>,
        /// How much of its speed it gives, in per cent; above 100 counts as 100. At 0 it is paused:
        /// it gets no jobs, as if it were full, and jobs for it wait.
        throttle: u8,
    },
    /// A provider gets no more jobs; those that it holds may finish within `grace`.
    Drain {
        provider: ProviderId,
        /// How long its jobs may go on before they are cancelled.
        grace: Duration,
    },
    /// A provider is gone, with all that it held.
    Leave { provider: ProviderId, why: LeaveReason },
    /// A consumer asks.
    Submit(JobSpec),
    /// The head of a job's answer has come: from now on it is never moved to another provider. The
    /// driver sends this only for a head from the provider that the job was last assigned to.
    Begun { job: JobId },
    /// The answer to [`Output::AskProgress`](crate::Output::AskProgress).
    Progress {
        job: JobId,
        /// When bytes of its answer last moved.
        at: Instant,
        /// Which side it has been waiting for since.
        waiting: BlockedOn,
    },
    /// A provider is done with a job.
    Finished {
        job: JobId,
        /// The provider that says so; ignored when the job is no longer its.
        provider: ProviderId,
        /// How it went.
        verdict: Verdict,
        /// How many tokens its answer has, where that is known: from that its speed is measured.
        tokens: Option<u64>,
    },
    /// A provider that lingers ([`Offer::lingers`]) has finished with a cancelled job: its slot is
    /// free.
    Ceased { job: JobId, provider: ProviderId },
    /// The consumer left before its job ended.
    ClientGone { job: JobId },
    /// A key was revoked: each of its jobs ends.
    Revoked { key: KeyId },
    /// A scope was closed: each of its jobs ends.
    Closed { scope: Scope },
    /// The server stops: queued jobs end, new ones are refused, assigned jobs may finish.
    Shutdown,
    /// The time for finishing is over: every job ends now.
    Abort,
}

/// The offer of a provider that joins.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Where its jobs come from.
    pub scope: Scope,
    /// The models; `*` stands for every model.
    pub models: Vec<ModelName>,
    /// How many jobs it takes at once; 0 counts as 1.
    pub max_concurrent: u32,
    /// Its load as it counts it itself, in jobs.
    pub load: u32,
    /// The largest job it can be sent, in the bytes of [`JobSpec::size`].
    pub max_size: u64,
    /// The shapes of request that it serves.
    pub endpoints: Endpoints,
    /// How far away it is.
    pub distance: Distance,
    /// Whether it may go on with a cancelled job. The slot of such a job stays taken until
    /// [`Input::Ceased`], or for [`Config::request_timeout`](crate::Config::request_timeout).
    pub lingers: bool,
}

/// A job as far as the dispatcher needs to know it.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Its id, never used before.
    pub id: JobId,
    /// Where its providers are looked for.
    pub scope: Scope,
    /// The model it asks for.
    pub model: ModelName,
    /// The models it asks for instead, in order. A job that nobody has begun goes on to
    /// the next of them where it would otherwise end for want of a provider
    /// ([`NoProvider`](crate::Ending::NoProvider), [`NotServed`](crate::Ending::NotServed),
    /// [`TooLarge`](crate::Ending::TooLarge), [`QueueFull`](crate::Ending::QueueFull),
    /// [`QueueTimeout`](crate::Ending::QueueTimeout)) or through the fault of one
    /// ([`RequestTimeout`](crate::Ending::RequestTimeout),
    /// [`RequeueExhausted`](crate::Ending::RequeueExhausted),
    /// [`ProviderFailed`](crate::Ending::ProviderFailed)); never back.
    ///
    /// - When it is submitted, models that nobody serves now are passed over for the first that
    ///   somebody does. If there is none, the first that is worth waiting for is waited for.
    /// - While it waits, it does not wait for nobody: when no provider that is here can have it of
    ///   its present model, because the last one left, drains, serves less or is avoided, or
    ///   because none has come yet, it goes on to the next that somebody serves, at once or when
    ///   somebody comes. Its age and its wait so far go with it, and it is refused no place.
    /// - Only models that somebody serves are gone on to; the others are passed over. If none is
    ///   left where it would otherwise end, it ends as it would have ended without them.
    /// - Each model has its own requeues, and avoids nobody at first. The time in queues is the
    ///   job's, over all its models: once it is used up, a fallback is taken only if somebody is
    ///   free for it at once.
    /// - For a pinned job, they are asked of the same provider.
    pub fallbacks: Vec<ModelName>,
    /// The shape that it has.
    pub endpoint: Endpoint,
    /// The shapes that it can be served in, its own among them where a provider could have it.
    pub serve_as: Endpoints,
    /// The key it is counted for: queues are fair between keys.
    pub key: KeyId,
    /// How large it is on the wire, in bytes.
    pub size: u64,
    /// Which conversations it continues.
    pub affinity: Affinity,
    /// The only provider that may serve it, if the consumer named one.
    pub pinned: Option<ProviderId>,
    /// How far it may go. Providers that its route does not reach are not there for it: a model
    /// that only they have is served by nobody.
    pub route: Route,
    /// Whether one of its models has been served before, so that it is worth waiting when nobody
    /// serves any of them now.
    pub known: bool,
}

/// Hashes over ever longer heads of a prompt, shortest first. Two prompts that share a hash share
/// that much of their beginning, and so of a warm cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Affinity {
    /// The hashes; 0 stands for a head that the prompt is too short for.
    pub heads: [u64; 4],
}

impl Affinity {
    /// The hashes that there are, longest head first.
    pub fn longest_first(&self) -> impl Iterator<Item = u64> + '_ {
        self.heads.iter().rev().copied().filter(|hash| *hash != 0)
    }
}

/// How a provider was done with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It answered, and nothing in the answer speaks against it (a 4xx is the consumer's doing).
    Answered,
    /// It answered with an error of its own, such as a 5xx: a fault.
    AnsweredWithFault,
    /// It could not answer, or only with an error of its own: a fault. If the job has not begun, it may
    /// go to another provider.
    Failed,
    /// It is overloaded: a fault. If the job has not begun, it goes to a provider that is free for it
    /// now, with its model or else with the next fallback that has a free provider. If there is none,
    /// this counts as [`Verdict::Failed`].
    Overloaded,
    /// It did not take the job, without fault (it is draining, or cannot carry this body).
    Declined,
    /// It does not serve the endpoint that it was asked for, which the driver has said before with
    /// [`Input::Endpoints`]: no fault. The same provider may get the job again in another shape. If
    /// it is still taken to serve all that it was taken to, this counts as [`Verdict::Declined`].
    Unserved,
}

/// The side that a job's answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedOn {
    /// The provider sends nothing.
    Provider,
    /// The consumer reads nothing, and the answer is held back.
    Client,
}

/// Why a provider is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// Its link closed or broke.
    Closed,
    /// It was silent for too long.
    HeartbeatLost,
    /// It left after a drain.
    Drained,
}
