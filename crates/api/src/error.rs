//! The error table: each failure with its status, its message and its kind in each API.

use std::{borrow::Cow, time::Duration};

use access::{Denied, OverLimit, Standing, limits::Limited};
use base::{Endpoint, Endpoints};
use http::{HeaderValue, StatusCode, Uri};
use protocol::{multipart::BadForm, openai::BadBody, via::Loop};
use rooms::EntryError;
use scheduler::{Ending, Failure, Wait};
use translate::BadRequest;

/// The stock server's words when no worker took the job in time.
const QUEUE_TIMEOUT: &str = "queue timeout: no worker available within deadline";

/// An error as consumers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// Its kind, which each API names in its own way.
    pub kind: Kind,
    /// OpenAI's `code`.
    pub code: Option<&'static str>,
    /// OpenAI's `param`.
    pub param: Option<Cow<'static, str>>,
    /// The error, and what to do.
    pub message: Cow<'static, str>,
    /// When the client should try again.
    pub retry_after: Option<Duration>,
    /// The state of the key's limits, if it has any.
    pub standing: Option<Box<Standing>>,
}

/// The sort of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is at fault.
    Invalid,
    /// No valid key.
    Authentication,
    /// A valid key that may not do this.
    Permission,
    /// The path, model or object does not exist.
    NotFound,
    /// The body is too large.
    TooLarge,
    /// Too many requests, or a full queue.
    Overload,
    /// The key's budget for the day or month is used up.
    Quota,
    /// Something took too long.
    Timeout,
    /// The server or a provider is at fault.
    Server,
}

impl Kind {
    /// The kind of a backend's answer with this status.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            401 => Self::Authentication,
            403 => Self::Permission,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            413 => Self::TooLarge,
            429 => Self::Overload,
            400..=499 => Self::Invalid,
            _ => Self::Server,
        }
    }

    pub(crate) fn openai(self) -> &'static str {
        match self {
            Self::Invalid | Self::NotFound | Self::TooLarge => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::Overload => "rate_limit_error",
            Self::Quota => "insufficient_quota",
            Self::Timeout => "timeout_error",
            Self::Server => "server_error",
        }
    }

    pub(crate) fn anthropic(self) -> &'static str {
        match self {
            Self::Invalid => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::Overload | Self::Quota => "rate_limit_error",
            Self::Timeout => "timeout_error",
            Self::Server => "api_error",
        }
    }
}

impl ApiError {
    /// An error with these words.
    pub fn new(status: StatusCode, kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self { status, kind, code: None, param: None, message, retry_after: None, standing: None }
    }

    fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// The error of a job that failed (relay protocol, walkthroughs 5, 6, 7, 10 and 11).
    pub fn of_failure(failure: &Failure, model: &str) -> Self {
        let (status, kind, code) = class(&failure.ending);
        let error = Self::new(status, kind, words(failure, model)).code(code);
        match failure.ending {
            Ending::QueueFull { retry_after } => error.retry_after(retry_after),
            Ending::ShuttingDown => error.retry_after(Duration::from_secs(5)),
            _ => error,
        }
    }
}

/// The status, kind and code of a failed job.
fn class(ending: &Ending) -> (StatusCode, Kind, &'static str) {
    use StatusCode as S;
    match ending {
        Ending::QueueFull { .. } => (S::TOO_MANY_REQUESTS, Kind::Overload, "queue_full"),
        // `NotLent` ends only the jobs of fellows, whose clients are at the fellow.
        Ending::NoProvider | Ending::NotLent => (S::NOT_FOUND, Kind::NotFound, "model_not_found"),
        Ending::NotServed => (S::NOT_FOUND, Kind::NotFound, "endpoint_not_served"),
        Ending::Untranslatable => (S::BAD_REQUEST, Kind::Invalid, "not_translatable"),
        Ending::Revoked | Ending::SignedOut => {
            (S::UNAUTHORIZED, Kind::Authentication, "invalid_api_key")
        }
        Ending::Closed => (S::GONE, Kind::NotFound, "room_closed"),
        Ending::TooLarge { .. } => (S::PAYLOAD_TOO_LARGE, Kind::TooLarge, "request_too_large"),
        Ending::QueueTimeout => (S::GATEWAY_TIMEOUT, Kind::Timeout, "queue_timeout"),
        Ending::BusyTimeout { .. } => (S::GATEWAY_TIMEOUT, Kind::Timeout, "busy_timeout"),
        Ending::RequestTimeout => (S::GATEWAY_TIMEOUT, Kind::Timeout, "request_timeout"),
        Ending::IdleTimeout => (S::GATEWAY_TIMEOUT, Kind::Timeout, "idle_timeout"),
        Ending::ClientStalled => (S::REQUEST_TIMEOUT, Kind::Timeout, "client_stalled"),
        Ending::RequeueExhausted => (S::SERVICE_UNAVAILABLE, Kind::Server, "requeue_exhausted"),
        Ending::ProviderLost => (S::BAD_GATEWAY, Kind::Server, "worker_lost"),
        Ending::ProviderFailed => (S::BAD_GATEWAY, Kind::Server, "worker_failed"),
        Ending::ShuttingDown => (S::SERVICE_UNAVAILABLE, Kind::Server, "shutting_down"),
    }
}

/// The words for the client of a failed job.
fn words(failure: &Failure, model: &str) -> Cow<'static, str> {
    match &failure.ending {
        Ending::QueueFull { .. } => "queue full".into(),
        Ending::NoProvider | Ending::NotLent => format!("no provider for model {model}").into(),
        Ending::NotServed => format!("no worker that serves {model} serves this endpoint").into(),
        Ending::Untranslatable => {
            let why = failure.detail.as_deref().unwrap_or("the request has no other form");
            why.to_owned().into()
        }
        Ending::Revoked => "the API key was revoked".into(),
        Ending::SignedOut => "the session of this browser has ended".into(),
        Ending::Closed => "the room was closed".into(),
        Ending::TooLarge { limit } => format!(
            "the request is too large for the workers that serve {model}: they take up to {limit} \
             bytes"
        )
        .into(),
        Ending::QueueTimeout => with_detail(QUEUE_TIMEOUT.to_owned(), failure).into(),
        Ending::BusyTimeout { waited, wait } => {
            with_detail(too_busy(model, *waited, *wait), failure).into()
        }
        Ending::RequestTimeout => "request timeout".into(),
        Ending::IdleTimeout => "request timeout: the answer stopped coming".into(),
        Ending::ClientStalled => "the answer was not read for too long".into(),
        Ending::RequeueExhausted => "requeue attempts exhausted".into(),
        Ending::ProviderLost => "the worker was lost while it answered".into(),
        Ending::ProviderFailed => {
            let why = detail(failure).unwrap_or_else(|| "it gave no reason".to_owned());
            format!("the worker failed: {why}").into()
        }
        Ending::ShuttingDown => "the server is shutting down".into(),
    }
}

impl ApiError {
    /// Whether the error is about the page that sends the request, or about the name by which the page reaches the
    /// server. The page may read such an error, which tells it nothing new about the server.
    pub(crate) fn is_for_page(&self) -> bool {
        matches!(self.code, Some("origin_not_allowed" | "host_not_allowed"))
    }

    /// The error for a model that was removed from `worker`.
    pub(crate) fn gone_from(self, worker: &str) -> Self {
        let worker = base::plain::line(worker);
        let message = format!(
            "{}: it was last seen at {worker} and is gone; GET /v1/models lists those that are here",
            self.message
        );
        Self { message: message.into(), ..self }
    }
}

impl ApiError {
    /// The error for a model none of whose workers serves `endpoint`; `served`: the endpoints that they serve.
    pub(crate) fn with_served(self, endpoint: Endpoint, served: Endpoints) -> Self {
        let mut message = format!("{}: {endpoint} is none of {served}", self.message);
        if endpoint.may_be_bytes() {
            message.push_str("; workers that speak the stock protocol take text alone");
        }
        Self { message: message.into(), ..self }
    }

    /// The error for an unknown model. `words` name the models with the most similar names.
    pub(crate) fn with_nearest(self, words: &str) -> Self {
        let message = format!("{}{}", self.message, base::plain::line(words));
        Self { message: message.into(), ..self }
    }
}

impl From<&BadBody> for ApiError {
    fn from(bad: &BadBody) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, Kind::Invalid, bad.to_string());
        Self { param: bad.param().map(Cow::Borrowed), ..error }
    }
}

impl From<BadForm> for ApiError {
    fn from(bad: BadForm) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, Kind::Invalid, bad.to_string());
        Self { param: bad.param().map(Cow::Borrowed), ..error }
    }
}

impl From<Loop> for ApiError {
    fn from(looped: Loop) -> Self {
        Self::new(StatusCode::LOOP_DETECTED, Kind::Server, looped.to_string()).code("loop_detected")
    }
}

impl From<BadRequest> for ApiError {
    fn from(bad: BadRequest) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, Kind::Invalid, bad.message);
        Self { param: bad.param.map(Cow::Owned), ..error }
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let forbidden = |code| {
            Self::new(StatusCode::FORBIDDEN, Kind::Permission, denied.to_string()).code(code)
        };
        match &denied {
            Denied::Scope(_) => return forbidden("insufficient_permissions"),
            Denied::Foreign(foreign) => return forbidden(foreign.code()),
            _ => {}
        }
        Self::new(StatusCode::UNAUTHORIZED, Kind::Authentication, denied.to_string())
            .code("invalid_api_key")
    }
}

impl From<OverLimit> for ApiError {
    fn from(over: OverLimit) -> Self {
        let (kind, code) = match over.limited {
            Limited::Budget(_) | Limited::Money(_) => (Kind::Quota, "insufficient_quota"),
            _ => (Kind::Overload, "rate_limit_exceeded"),
        };
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, kind, over.to_string());
        let standing = Some(Box::new(over.standing));
        Self { standing, ..error.code(code).retry_after(over.retry_after) }
    }
}

/// The messages are those of stock servers, where they have any.
impl From<EntryError> for ApiError {
    fn from(refused: EntryError) -> Self {
        let words = refused.to_string();
        match refused {
            EntryError::Unknown => Self::new(StatusCode::NOT_FOUND, Kind::NotFound, words),
            EntryError::TooMany { retry_after } => {
                let error = Self::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, words);
                Self { retry_after: Some(retry_after), ..error }
            }
            EntryError::PasswordMissing | EntryError::PasswordWrong => {
                Self::new(StatusCode::UNAUTHORIZED, Kind::Authentication, words)
            }
        }
    }
}

/// The words for what a job waits for, while connected providers could serve it.
pub(crate) fn busy(wait: Wait) -> String {
    let workers = match wait.providers {
        1 => "the worker that serves it is busy".to_owned(),
        several => format!("the {several} workers that serve it are busy"),
    };
    let ahead = match wait.ahead {
        0 => "no request is in front".to_owned(),
        1 => "1 request is in front".to_owned(),
        Wait::MOST_AHEAD.. => format!("{} or more requests are in front", Wait::MOST_AHEAD),
        several => format!("{several} requests are in front"),
    };
    format!("{workers}, {ahead}")
}

/// The stock server's words, and after them how long the job waited, and for what.
fn too_busy(model: &str, waited: Duration, wait: Wait) -> String {
    let (seconds, busy) = (waited.as_secs(), busy(wait));
    format!("{QUEUE_TIMEOUT}; waited {seconds} s for {model}: {busy}")
}

/// The worker's words about the last attempt. They may come from a backend, and clients see them, so addresses are
/// taken out.
fn detail(failure: &Failure) -> Option<String> {
    failure.detail.as_deref().map(base::address::without_addresses)
}

fn with_detail(words: String, failure: &Failure) -> String {
    match detail(failure) {
        Some(detail) => format!("{words}; the last worker that was asked said: {detail}"),
        None => words,
    }
}

/// The value of a `retry-after` header: whole seconds, at least 1.
pub(crate) fn retry_after(after: Duration) -> HeaderValue {
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    seconds.max(1).into()
}

/// The error for an unknown path, and for a path that is not UTF-8.
pub(crate) fn nothing_at(uri: &Uri) -> ApiError {
    let words = format!("there is nothing at {}", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_and_words(ending: Ending) -> (u16, String) {
        let error = ApiError::of_failure(&ending.into(), "llama3-8b");
        (error.status.as_u16(), error.message.into_owned())
    }

    #[test]
    fn a_wait_in_vain_says_for_whom_and_behind_whom() {
        let table = [
            (1, 0, "the worker that serves it is busy, no request is in front"),
            (2, 1, "the 2 workers that serve it are busy, 1 request is in front"),
            (1, 1_000, "the worker that serves it is busy, 1000 or more requests are in front"),
        ];
        for (providers, ahead, words) in table {
            let wait = Wait { providers, ahead };
            let waited = Duration::from_millis(600_400);
            let words = format!("{QUEUE_TIMEOUT}; waited 600 s for llama3-8b: {words}");
            assert_eq!(status_and_words(Ending::BusyTimeout { waited, wait }), (504, words));
        }
    }

    #[test]
    fn no_failure_names_an_address_of_the_operators_network() {
        let detail = Some("no answer from http://127.0.0.1:11434/v1: refused".to_owned());
        for ending in [Ending::ProviderFailed, Ending::QueueTimeout] {
            let failure = Failure { ending, detail: detail.clone() };
            let words = ApiError::of_failure(&failure, "m").message;
            assert!(words.contains("refused") && !words.contains("127.0.0.1"), "{words}");
        }
    }

    #[test]
    fn the_walkthroughs_words_are_kept() {
        let after = Duration::from_secs(3);
        let table = [
            (Ending::QueueFull { retry_after: after }, 429, "queue full"),
            (Ending::NoProvider, 404, "no provider for model llama3-8b"),
            (Ending::RequeueExhausted, 503, "requeue attempts exhausted"),
            (Ending::QueueTimeout, 504, "queue timeout: no worker available within deadline"),
            (Ending::RequestTimeout, 504, "request timeout"),
        ];
        for (ending, status, words) in table {
            assert_eq!(status_and_words(ending), (status, words.to_owned()));
        }
    }
}
