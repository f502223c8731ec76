//! The outputs of the dispatcher.

use std::time::Duration;

pub use base::CancelReason;
use base::{Endpoints, JobId, ModelName, ProviderId};

use crate::view::Wait;

/// One action, to be carried out in order.
#[expect(missing_docs, reason = "ids and reasons are what their types say")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send the job to the provider.
    Assign {
        job: JobId,
        /// The provider that serves it.
        provider: ProviderId,
        /// The model to request: the job's own, or one of its fallbacks.
        model: ModelName,
        /// Its known endpoints.
        endpoints: Endpoints,
        /// How often the job was assigned before.
        attempt: u32,
    },
    /// Tell the provider to stop working on the job. The dispatcher waits for no reply: the slot is
    /// already free, unless the provider lingers ([`Offer::lingers`](crate::Offer::lingers)).
    Cancel {
        job: JobId,
        /// The provider that has it.
        provider: ProviderId,
        reason: CancelReason,
    },
    /// The job has ended without an answer, or in the middle of one: tell the consumer. Jobs that
    /// finish with their answer, or whose consumer left, have no such output.
    End {
        job: JobId,
        /// Its ending.
        ending: Ending,
    },
    /// The answer of a job has broken off, and the job waits for another provider to resume it. If
    /// resuming proves impossible, tell the consumer of this ending, and report the consumer as
    /// gone ([`Input::ClientGone`](crate::Input::ClientGone)).
    BrokenOff {
        job: JobId,
        /// How the job ends if no provider resumes it.
        ending: Ending,
    },
    /// Report when bytes of the job's answer last moved, with
    /// [`Input::Progress`](crate::Input::Progress), before any other input.
    AskProgress { job: JobId },
    /// The provider was drained and has no jobs left: close its link.
    Retire {
        provider: ProviderId,
        /// Whether all its jobs finished, rather than being cancelled at the end of its grace.
        clean: bool,
    },
}

/// How a job ended without a complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The queue, or this key's half of it, is full, or the jobs of all queues together are too
    /// large.
    QueueFull {
        /// The estimated time until the queue is empty, from the service times of its providers;
        /// between 1 s and the queue time-out.
        retry_after: Duration,
    },
    /// No provider serves the model or ever did; or the pinned provider does not serve it.
    NoProvider,
    /// Providers serve the model, but none in a shape that the job can be served in.
    NotServed,
    /// Providers serve the model, but none can be sent a job of this size.
    TooLarge {
        /// The largest size that could be sent, in bytes.
        limit: u64,
    },
    /// No provider that can serve it was connected within the queue time-out.
    QueueTimeout,
    /// Providers that can serve it are connected, and none had a free slot within the busy time-out.
    BusyTimeout {
        /// Its total time in queues.
        waited: Duration,
        /// The reason for which it waited.
        wait: Wait,
    },
    /// The head of the answer did not arrive in time.
    RequestTimeout,
    /// The answer began, then nothing came for the idle time-out.
    IdleTimeout,
    /// The consumer read nothing for the idle time-out.
    ClientStalled,
    /// Its provider was lost once too often before the answer began.
    RequeueExhausted,
    /// Its provider was lost after the answer had begun; or it is pinned to a provider that was
    /// lost or drains.
    ProviderLost,
    /// Its provider failed it, and there is no other provider to try, or the answer had begun.
    ProviderFailed,
    /// Its request could not be converted into the provider's.
    Untranslatable,
    /// Its key was revoked.
    Revoked,
    /// The page session through which it came has ended.
    SignedOut,
    /// Its scope was closed.
    Closed,
    /// It is a fellow's job ([`JobSpec::lent`](crate::JobSpec::lent)), and no lent slot is free for
    /// it, or the provider gave it back without having begun. It goes back to its home. Only
    /// fellows' jobs end in this way.
    NotLent,
    /// The server is stopping.
    ShuttingDown,
}
