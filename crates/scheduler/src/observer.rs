//! Observers of every job: metrics, the request log, the ledger, room events.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use base::{Endpoint, JobId, KeyId, ModelName, Money, ProviderId, Scope, trace::RequestTrace};
use dispatch::{CancelReason, Ending, LeaveReason};
use http::StatusCode;

use crate::{
    job::{Failure, LentFor, Usage},
    resume::Break,
};

/// Receives the steps of each job and provider. Its methods are called synchronously, so they must
/// be quick. Two steps that happen on two threads at the same moment may arrive in either order.
#[expect(unused_variables, reason = "an observer takes only what it wants")]
pub trait Observer: Send + Sync {
    /// A job was accepted. For a refused job, only its end is reported.
    fn accepted(&self, job: &JobFacts) {}
    /// A job was sent to a provider, after waiting this long.
    fn assigned(&self, job: &JobFacts, provider: ProviderId, waited: Duration) {}
    /// A job is assigned again: its last provider did not begin its answer, or did not end it.
    fn requeued(&self, job: &JobFacts) {}
    /// The head of an answer arrived, this long after the job was accepted.
    fn first_byte(&self, job: &JobFacts, after: Duration) {}
    /// An answer that could have been resumed had broken off, and this is the outcome.
    fn broke_off(&self, job: &JobFacts, broken: &Break) {}
    /// A provider was told to stop working on a job.
    fn canceled(&self, job: &JobFacts, reason: CancelReason) {}
    /// A job ended.
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {}
    /// A provider joined, or changed its models.
    fn announced(&self, announcement: &Announcement<'_>) {}
    /// A provider left.
    fn left(&self, provider: ProviderId, why: LeaveReason) {}
}

/// The facts about a job, without its content.
#[derive(Debug, Clone)]
pub struct JobFacts {
    /// Its id.
    pub id: JobId,
    /// The scope that its providers belong to.
    pub scope: Scope,
    /// The model, by the name that the client used.
    pub model: ModelName,
    /// The shape of its request.
    pub endpoint: Endpoint,
    /// The key that it counts towards.
    pub key: KeyId,
    /// The path that it was posted to, without the query.
    pub path: Arc<str>,
    /// Whether it asked for a stream.
    pub streaming: bool,
    /// Whose job it is, if it is a fellow's job: then its usage is counted at that fellow.
    pub lent: Option<LentFor>,
    /// Its trace, if it is traced. The span of its first assignment is that of [attempt](base::trace::TraceContext::attempt)
    /// 1, and so on.
    pub trace: Option<RequestTrace>,
}

/// The end of a job, and its figures.
#[derive(Debug, Clone)]
pub struct JobEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended, by the runtime's clock and by the wall's. Observers need not read the clocks
    /// again.
    pub at: (Instant, SystemTime),
    /// The last provider that had it.
    pub provider: Option<ProviderId>,
    /// The name that this provider gave itself.
    pub provider_name: Option<Arc<str>>,
    /// The model that it was last assigned for, if that is not the job's.
    pub served_model: Option<ModelName>,
    /// Tokens used, as far as known.
    pub usage: Usage,
    /// Bytes of the answer.
    pub bytes: u64,
    /// The time from acceptance to an assignment: to the one from which the answer began, or else
    /// to the last one. If there was none, the time to the end.
    pub queued: Duration,
    /// The time from acceptance to the head of the answer.
    pub first_byte: Option<Duration>,
    /// The time from acceptance to the first text of the answer. Not known for an answer in one
    /// piece that reports its tokens.
    pub first_token: Option<Duration>,
    /// The time from the last assignment to the head of the answer, if the provider had to load the
    /// model for it.
    pub load_wait: Option<Duration>,
    /// The time from acceptance to the end.
    pub total: Duration,
    /// How often it was assigned again: to another provider, in another shape, for another model,
    /// or to resume its answer.
    pub requeues: u32,
    /// Where its answer broke off and was mended, in order. At most [`dispatch::Config::max_resumes`].
    pub breaks: Vec<Break>,
    /// Its cost, if an observer before this one knows the price of its model.
    pub cost: Option<Money>,
}

/// The offer that a provider announces.
#[derive(Debug, Clone, Copy)]
pub struct Announcement<'a> {
    /// The provider's scope.
    pub scope: &'a Scope,
    /// The name that the provider gave itself, or its id if it has none. A name that it gave itself
    /// stays the same when it connects again.
    pub name: &'a str,
    /// The models.
    pub models: &'a [ModelName],
    /// Whether these are all its models. If not, an empty list may only mean that its backend
    /// cannot be reached.
    pub whole: bool,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer of this status.
    Answered(StatusCode),
    /// Without an answer, or in the middle of it.
    Failed(Failure),
    /// The consumer left before the end.
    ClientGone,
}

impl Outcome {
    /// The outcome in one word, for logs, metrics and lists.
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
                Ending::BusyTimeout { .. } => "busy_timeout",
                Ending::RequestTimeout => "request_timeout",
                Ending::IdleTimeout => "idle_timeout",
                Ending::ClientStalled => "client_stalled",
                Ending::RequeueExhausted => "requeue_exhausted",
                Ending::ProviderLost => "worker_lost",
                Ending::ProviderFailed => "worker_failed",
                Ending::NotServed => "not_served",
                Ending::NotLent => "not_lent",
                Ending::Untranslatable => "not_translatable",
                Ending::Revoked => "key_revoked",
                Ending::SignedOut => "signed_out",
                Ending::Closed => "room_closed",
                Ending::ShuttingDown => "shutting_down",
            },
        }
    }

    /// Whether the answer is missing, cut off, or an error. A client that left counts as no error,
    /// since nobody is to blame for it.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Answered(status) => status.is_client_error() || status.is_server_error(),
            Self::Failed(_) => true,
            Self::ClientGone => false,
        }
    }

    /// The HTTP status of the answer, if the job ended with one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status.as_u16()),
            _ => None,
        }
    }
}
