//! The inputs of the dispatcher.

use std::time::{Duration, Instant};

use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, PageSessionId, ProviderId, Scope};

use crate::{
    affinity::Affinity,
    distance::{Distance, Route},
};

/// One event. Inputs about jobs or providers that are no longer known are ignored, since messages
/// of the two ends of a link may cross.
#[expect(missing_docs, reason = "ids and reasons are what their types say")]
#[derive(Debug, Clone)]
pub enum Input {
    /// A provider is connected and may be given jobs.
    Join { provider: ProviderId, offer: Offer },
    /// A provider changed its models. Its present jobs continue.
    Models {
        provider: ProviderId,
        /// All models that it serves now.
        models: Vec<ModelName>,
        /// The load that it reports, in jobs.
        load: u32,
    },
    /// A provider reports which of its models it does not have in memory.
    Unloaded {
        provider: ProviderId,
        /// All of them; any other model counts as being in memory.
        models: Vec<Unloaded>,
    },
    /// A provider reports with which of its models it can resume an answer that another one began.
    Continues {
        provider: ProviderId,
        /// All of them.
        models: Vec<ModelName>,
    },
    /// A provider serves other endpoints than assumed. Its present jobs continue.
    Endpoints {
        provider: ProviderId,
        /// All endpoints that it serves now.
        endpoints: Endpoints,
    },
    /// A provider reports its load.
    Load {
        provider: ProviderId,
        /// The load that it reports, in jobs; other servers' jobs count too.
        load: u32,
    },
    /// A provider changed the number of jobs that it takes at once. Its present jobs continue.
    Capacity {
        provider: ProviderId,
        /// How many jobs it takes at once; 0 counts as 1, except for a borrowed provider
        /// ([`Offer::borrowed`]), which then counts as busy.
        max_concurrent: u32,
    },
    /// How many of a provider's slots are lent to fellows. Lent jobs ([`JobSpec::lent`]) use these,
    /// own jobs the rest. The number is raised only as far as slots are free
    /// ([`Dispatcher::lendable`](crate::Dispatcher::lendable)). It may be lower than the number of
    /// lent jobs that run.
    Lend {
        provider: ProviderId,
        /// How many in all.
        slots: u32,
    },
    /// A provider's distance changed. Its present jobs continue.
    Moved {
        provider: ProviderId,
        /// Its new distance.
        distance: Distance,
    },
    /// A provider reports its condition. Its present jobs continue.
    Condition {
        provider: ProviderId,
        /// The speed that it reports, in thousandths of a token a second. Used only until its
        /// answers have been measured.
        speed: Option<u32>,
        /// The share of its speed that it offers, in per cent; above 100 counts as 100. At 0 it is
        /// paused: it gets no jobs, as if it were full, and its jobs wait in the queue.
        throttle: u8,
    },
    /// A provider gets no more jobs; its present jobs may finish within `grace`.
    Drain {
        provider: ProviderId,
        /// How long its jobs may continue before they are cancelled.
        grace: Duration,
    },
    /// A provider left, with all its jobs.
    Leave { provider: ProviderId, why: LeaveReason },
    /// A consumer submits a job.
    Submit(JobSpec),
    /// A provider confirms that it has a job ([`Offer::acknowledges`]). It may take its time for
    /// the answer.
    Acknowledged { job: JobId, provider: ProviderId },
    /// The head of a job's answer has arrived. From now on the job moves to another provider only
    /// if its answer breaks off and may be resumed. The driver sends this only for a head from the
    /// provider that the job was last assigned to.
    Begun {
        job: JobId,
        /// How another provider could resume the answer; `None` if none may.
        resumable: Option<Resumable>,
    },
    /// The answer to [`Output::AskProgress`](crate::Output::AskProgress).
    Progress {
        job: JobId,
        /// When bytes of its answer last moved.
        at: Instant,
        /// The side that has blocked it since.
        waiting: BlockedOn,
    },
    /// The consumer has the whole answer of a job, though its provider has not ended it. From now
    /// on the job counts as answered, however it ends. If that takes longer than
    /// [`Config::end_timeout`](crate::Config::end_timeout), the job is cancelled at the provider.
    Complete { job: JobId },
    /// A provider has finished with a job.
    Finished {
        job: JobId,
        /// The reporting provider; ignored when it no longer has the job.
        provider: ProviderId,
        /// How it went.
        verdict: Verdict,
        /// The number of tokens in its answer, where known; its speed is measured from it.
        tokens: Option<u64>,
    },
    /// A provider that lingers ([`Offer::lingers`]) has ceased work on a cancelled job: its slot is
    /// free.
    Ceased { job: JobId, provider: ProviderId },
    /// The consumer left before its job ended.
    ClientGone { job: JobId },
    /// A key was revoked: all its jobs end.
    Revoked { key: KeyId },
    /// A page session was revoked, signed out or has expired: all its jobs end.
    SignedOut { page_session: PageSessionId },
    /// A scope was closed: all its jobs end.
    Closed { scope: Scope },
    /// The server stops: queued jobs end, new ones are refused, jobs at providers may finish.
    Shutdown,
    /// The time for finishing is over: every job ends now.
    Abort,
}

/// How another provider could resume an answer that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumable {
    /// The shape in which the answer began: providers that serve it are preferred.
    pub endpoint: Endpoint,
    /// The shapes in which a provider can be asked to resume it.
    pub serve_as: Endpoints,
}

/// The offer of a provider that joins.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The scope of its jobs.
    pub scope: Scope,
    /// The models; `*` stands for every model.
    pub models: Vec<ModelName>,
    /// Those of them that it does not have in memory.
    pub unloaded: Vec<Unloaded>,
    /// How many jobs it takes at once; 0 counts as 1, except for a borrowed provider.
    pub max_concurrent: u32,
    /// The load that it reports, in jobs.
    pub load: u32,
    /// The largest job it can be sent, in the bytes of [`JobSpec::size`].
    pub max_size: u64,
    /// The shapes of request that it serves.
    pub endpoints: Endpoints,
    /// How far away it is.
    pub distance: Distance,
    /// Whether it may continue a cancelled job. The slot of such a job stays taken until
    /// [`Input::Ceased`], or for [`Config::request_timeout`](crate::Config::request_timeout).
    pub lingers: bool,
    /// Whether it acknowledges each job that it does not answer soon, with [`Input::Acknowledged`].
    /// A job that it neither begins nor acknowledges in time moves on, and the provider gets no
    /// more jobs until it gives a sign of life.
    pub acknowledges: bool,
    /// Whether it belongs to a fellow, which lends some of its slots to this server. It takes as
    /// many jobs at once as slots are lent, and is busy while none is.
    /// [`Dispatcher::wants`](crate::Dispatcher::wants) says how many slots are wanted.
    pub borrowed: bool,
}

/// A model that a provider serves and does not have in memory: the first job loads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unloaded {
    /// Its name.
    pub model: ModelName,
    /// Whether it is being loaded now.
    pub is_loading: bool,
    /// How long loading it takes, where that is known.
    pub takes: Option<Duration>,
}

/// The part of a job that the dispatcher needs.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Its id, never used before.
    pub id: JobId,
    /// The scope whose providers may serve it.
    pub scope: Scope,
    /// The requested model.
    pub model: ModelName,
    /// The models to use instead, in order. A job that has not begun moves to the next of them
    /// where it would otherwise end for lack of a provider
    /// ([`NoProvider`](crate::Ending::NoProvider), [`NotServed`](crate::Ending::NotServed),
    /// [`TooLarge`](crate::Ending::TooLarge), [`QueueFull`](crate::Ending::QueueFull),
    /// [`QueueTimeout`](crate::Ending::QueueTimeout), [`BusyTimeout`](crate::Ending::BusyTimeout))
    /// or through a provider's fault
    /// ([`RequestTimeout`](crate::Ending::RequestTimeout),
    /// [`RequeueExhausted`](crate::Ending::RequeueExhausted),
    /// [`ProviderFailed`](crate::Ending::ProviderFailed)). It never moves back.
    ///
    /// - When it is submitted, it skips models that are not served now, to the first that is. If no
    ///   model is served, it waits for the first that is worth waiting for.
    /// - While it waits, its present model may lose every provider that could serve it: the last
    ///   one leaves, drains, serves less or is avoided; or none has joined yet. Then it moves to
    ///   the next served model, at once or when a provider joins. It keeps its age and its wait so
    ///   far, and always gets a place.
    /// - It moves only to models that are served, and skips the others. If none is left where it
    ///   would otherwise end, it ends as it would have ended without fallbacks.
    /// - Each model has its own requeues, and starts without avoided providers. The time in queues
    ///   is the job's, over all its models: once it is used up, the job moves to a fallback only if
    ///   a provider is free for it at once. While the providers of its model are busy, it looks for
    ///   such a fallback each time that the queue time-out has passed.
    /// - The fallbacks of a pinned job are for the same provider.
    pub fallbacks: Vec<ModelName>,
    /// The shape of the request.
    pub endpoint: Endpoint,
    /// The shapes that it can be served in, including its own where a provider could serve that.
    pub serve_as: Endpoints,
    /// The key that it counts towards: queues are fair between keys.
    pub key: KeyId,
    /// The page session through which it came, if it came from the web page.
    pub page_session: Option<PageSessionId>,
    /// Its size on the wire, in bytes.
    pub size: u64,
    /// How its prompt begins.
    pub affinity: Affinity,
    /// The only provider that may serve it, if the consumer named one.
    pub pinned: Option<ProviderId>,
    /// Whether it is a fellow's job. Such a job is pinned to a provider of which slots are lent. It
    /// takes a lent slot at once, or ends with [`NotLent`](crate::Ending::NotLent): it never waits,
    /// and has no fallbacks and no clouds. The queue's bounds, the turns of keys and its route do
    /// not apply to it.
    pub lent: bool,
    /// How far it may go. A provider beyond its route does not count: a model that only such
    /// providers have is not served.
    pub route: Route,
    /// Whether it may go to a cloud when no own provider can answer. Then its models, once more in
    /// the same order, are its last fallbacks, each for clouds only ([`Distance::Cloud`]). A job
    /// waits for own providers that are busy: a full queue, an overload or a long wait does not
    /// lead to a cloud. A job that stays here ([`Route::LocalOnly`]) never goes to a cloud.
    pub clouds: bool,
    /// Whether one of its models has been served before, so that waiting is worthwhile when none of
    /// them is served now.
    pub known: bool,
}

/// The result of a job at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It answered without a fault (a 4xx is the consumer's fault).
    Answered,
    /// It answered with an error of its own, such as a 5xx: a fault.
    AnsweredWithFault,
    /// It could not answer, or only with an error of its own: a fault. If the job has not begun, or may be
    /// resumed, it may go to another provider.
    Failed,
    /// It cannot run the job's model now, though it may well run others: no fault of the provider. If the
    /// job has not begun, it may go to another provider.
    ModelFailed,
    /// It is overloaded: a fault. If the job has not begun, it goes to a provider that is free for it
    /// now, with its model or else with the next fallback that has a free provider. If there is none,
    /// this counts as [`Verdict::Failed`].
    Overloaded,
    /// It did not take the job, without fault (it is draining, or cannot carry this body).
    Declined,
    /// It does not serve the requested endpoint: no fault. The driver has already reported its
    /// endpoints with [`Input::Endpoints`]. The same provider may get the job again in another
    /// shape. If its known endpoints did not shrink, this counts as [`Verdict::Declined`].
    Unserved,
    /// Its backend cannot be reached, so nothing of the job was done: no fault. The job goes to
    /// another provider, or waits. The backend is tried again after half a second, then less and
    /// less often. Until it answers, the provider does not count.
    Unreachable,
    /// Its backend loads a model and takes no requests yet: no fault. As for
    /// [`Verdict::Unreachable`], but the provider counts as busy.
    Loading,
}

impl Verdict {
    /// Whether it shows that the provider's backend took the job, however that went.
    pub(crate) fn shows_the_backend(self) -> bool {
        match self {
            Self::Answered | Self::AnsweredWithFault | Self::Failed => true,
            Self::Overloaded | Self::Unserved => true,
            Self::Declined | Self::Unreachable | Self::Loading | Self::ModelFailed => false,
        }
    }
}

/// The side that a job's answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedOn {
    /// The provider sends nothing.
    Provider,
    /// The consumer reads nothing, and the answer is held back.
    Client,
}

/// Why a provider left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// Its link closed or broke.
    Closed,
    /// It was silent for too long.
    HeartbeatLost,
    /// It left after a drain.
    Drained,
}
