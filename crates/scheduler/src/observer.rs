//! Observers of every job: metrics, the request log, the ledger, room events.

use std::{sync::Arc, time::Duration};

use base::{Endpoint, JobId, KeyId, ModelName, ProviderId, Scope};
use dispatch::{CancelReason, Ending, LeaveReason};
use http::StatusCode;

use crate::job::{Failure, Usage};

/// Told of each job and provider, and never waited for: an observer must be quick. What happens on
/// two threads at the same moment may be told in either order.
#[expect(unused_variables, reason = "an observer takes only what it wants")]
pub trait Observer: Send + Sync {
    /// A job was accepted. Refused ones are told of as ended only.
    fn accepted(&self, job: &JobFacts) {}
    /// A job was sent to a provider, after waiting this long.
    fn assigned(&self, job: &JobFacts, provider: ProviderId, waited: Duration) {}
    /// A job is assigned again: its last provider did not begin its answer.
    fn requeued(&self, job: &JobFacts) {}
    /// The head of an answer came, this long after the job.
    fn first_byte(&self, job: &JobFacts, after: Duration) {}
    /// A provider was told to stop working on a job.
    fn canceled(&self, job: &JobFacts, reason: CancelReason) {}
    /// A job ended.
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {}
    /// A provider joined, or announces its models again.
    fn offers(&self, scope: &Scope, models: &[ModelName]) {}
    /// A provider left.
    fn left(&self, provider: ProviderId, why: LeaveReason) {}
}

/// What there is to know about a job beside its content.
#[derive(Debug, Clone)]
pub struct JobFacts {
    /// Its id.
    pub id: JobId,
    /// Where its providers are looked for.
    pub scope: Scope,
    /// The model it asks for, by the name that the client used.
    pub model: ModelName,
    /// The shape that it has.
    pub endpoint: Endpoint,
    /// The key it is counted for.
    pub key: KeyId,
    /// The path it was posted to, without its query.
    pub path: Arc<str>,
    /// Whether it asked for a stream.
    pub streaming: bool,
}

/// How a job ended, and what it took.
#[derive(Debug, Clone)]
pub struct JobEnd {
    /// Its outcome.
    pub outcome: Outcome,
    /// The last provider that had it.
    pub provider: Option<ProviderId>,
    /// The name that this provider gave itself.
    pub provider_name: Option<Arc<str>>,
    /// The model that it was last asked of, where that is another than the job's.
    pub served_model: Option<ModelName>,
    /// Tokens used, as far as they are known.
    pub usage: Usage,
    /// Bytes of the answer.
    pub bytes: u64,
    /// From acceptance to the last assignment, or to the end without one.
    pub queued: Duration,
    /// From acceptance to the head of the answer.
    pub first_byte: Option<Duration>,
    /// From acceptance to the end.
    pub total: Duration,
    /// How often it was assigned again: to another provider, in another shape, or for another model.
    pub requeues: u32,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer of this status.
    Answered(StatusCode),
    /// Without one, or in the middle of one.
    Failed(Failure),
    /// The consumer left before the end.
    ClientGone,
}

impl Outcome {
    /// The same in one word, for logs, metrics and lists.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Answered(status) if status.is_server_error() => "backend_error",
            Self::Answered(status) if status.is_client_error() => "backend_refused",
            Self::Answered(_) => "answered",
            Self::ClientGone => "client_gone",
            Self::Failed(failure) => match failure.ending {
                Ending::QueueFull { .. } => "queue_full",
                Ending::NoProvider => "no_provider",
                Ending::TooLarge { .. } => "too_large",
                Ending::QueueTimeout => "queue_timeout",
                Ending::RequestTimeout => "request_timeout",
                Ending::IdleTimeout => "idle_timeout",
                Ending::ClientStalled => "client_stalled",
                Ending::RequeueExhausted => "requeue_exhausted",
                Ending::ProviderLost => "worker_lost",
                Ending::ProviderFailed => "worker_failed",
                Ending::NotServed => "not_served",
                Ending::Untranslatable => "not_translatable",
                Ending::Revoked => "key_revoked",
                Ending::Closed => "room_closed",
                Ending::ShuttingDown => "shutting_down",
            },
        }
    }

    /// The HTTP status of the answer, where the job ended with one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status.as_u16()),
            _ => None,
        }
    }
}
