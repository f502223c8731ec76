//! The head of a streamed answer that is sent before the provider's, so that no client or proxy takes
//! a long wait for a dead connection.
//!
//! The status is then 200, whatever the provider answers: an error becomes the API's own error event.
//! So the head is sent only after a while: almost every refusal comes before that, with its true status.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use base::Endpoint;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use protocol::{failure::Failure as BackendFailure, json::clip};
use scheduler::{Answer, Event, Failure, Head, JobRequest, ModelLoad};
use tokio::time::timeout;

use crate::{
    error::{ApiError, Kind, busy},
    head::is_json,
    shape::Shape,
    translation::Translation,
    uploads::HeldMemory,
};

/// How many bytes of a worker's name are sent.
const MAX_NAME: usize = 64;

/// How many bytes of a refusal are read.
const MAX_REFUSAL: usize = 64 * 1024;

/// Whether a request may get its head early: it must ask for a stream. `passed_on`: whether another server has
/// passed it on. That server keeps its client's stream alive itself, and needs the true status to choose
/// another worker.
pub(crate) fn may_be_early(request: &JobRequest, endpoint: Endpoint, passed_on: bool) -> bool {
    request.streaming && endpoint.generates() && request.method == Method::POST && !passed_on
}

/// The error codes of backends that agents act on. Other codes of backends are left out.
const CODES: [&str; 4] = [
    "context_length_exceeded",
    "rate_limit_exceeded",
    "insufficient_quota",
    "server_is_overloaded",
];

/// After this many spans of silence the client of a job without a provider gets its head, too. With the
/// default settings the job has ended by then, with its true status.
const SPANS_WITHOUT_PROVIDER: u32 = 3;

/// Waits for the provider's head. `None` when the client should get a head of this server: `every` has passed,
/// and the job is at a provider or waits for a busy one. The client of a job without a provider waits longer for
/// the true status, but not for ever: the queue time-out may be set to minutes.
pub(crate) async fn head_within(
    answer: &mut Answer,
    every: Duration,
) -> Option<Result<Head, Failure>> {
    if every.is_zero() {
        return Some(answer.head().await);
    }
    for _ in 0..SPANS_WITHOUT_PROVIDER {
        if let Ok(head) = timeout(every, answer.head()).await {
            return Some(head);
        }
        if answer.wait().is_none_or(|wait| wait.providers > 0) {
            break;
        }
    }
    None
}

/// This server's head for a stream.
pub(crate) fn stream_head(shape: &dyn Shape) -> Head {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(shape.stream_type())),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Head { status: StatusCode::OK, headers: HeaderMap::from_iter(headers) }
}

/// An answer whose client has a head, and whose provider has sent none.
pub(crate) struct Early {
    /// The translation of its request, which is needed again if the job moves.
    translation: Option<Arc<Translation>>,
    /// The memory of its request's body, as long as the body is kept.
    pub(crate) memory: Option<HeldMemory>,
    /// Whether its client may know the names of workers.
    names_workers: bool,
    /// The provider's answer so far, if it is not a stream.
    refusal: Option<Refusal>,
}

struct Refusal {
    status: StatusCode,
    body: Vec<u8>,
}

impl Early {
    pub(crate) fn new(
        translation: Option<Arc<Translation>>,
        memory: HeldMemory,
        names_workers: bool,
    ) -> Self {
        Self { translation, memory: Some(memory), names_workers, refusal: None }
    }

    /// Waits for the provider's head. An answer that is not a stream is read to its end and becomes an error.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        answer: &mut Answer,
        shape: &dyn Shape,
        model: &str,
    ) -> Poll<Result<(), ApiError>> {
        let failed = |failure: Failure| ApiError::of_failure(&failure, model);
        if self.refusal.is_none() {
            let head = ready!(answer.poll_head(cx)).map_err(failed)?;
            self.begun(answer);
            let is_stream = !is_json(&head) || shape.is_stream(&head);
            if head.status.is_success() && is_stream {
                return Poll::Ready(Ok(()));
            }
            self.refusal = Some(Refusal { status: head.status, body: Vec::new() });
        }
        let Some(refusal) = &mut self.refusal else { return Poll::Pending };
        loop {
            match ready!(answer.poll_next(cx)) {
                Event::Chunk(chunk) => refusal.take(&chunk),
                Event::Failed(failure) => return Poll::Ready(Err(failed(failure))),
                Event::End => return Poll::Ready(Err(refusal.error())),
            }
        }
    }

    /// The words for the client while it waits.
    pub(crate) fn words(&self, answer: &Answer, model: &str) -> String {
        // The name comes from the client: a line break in it would end the comment.
        let model = base::plain::line(model);
        match answer.wait() {
            Some(wait) if wait.providers > 0 => format!("waiting for {model}: {}", busy(wait)),
            Some(_) => format!("waiting for {model}: no worker that serves it is connected"),
            None => match answer.loading() {
                Some(load) => format!("waiting for {model}: {}", self.loading(&load)),
                None => format!("waiting for {model}: a worker is at it"),
            },
        }
    }

    fn loading(&self, load: &ModelLoad) -> String {
        let name = base::plain::line(&load.provider);
        let at = called(&name, self.names_workers);
        let seconds = load.left.map(|left| left.as_secs_f64().ceil());
        match seconds {
            Some(seconds) if seconds > 0.0 => {
                format!("the model is being loaded on {at}, about {seconds} s more")
            }
            Some(_) => format!("the model is being loaded on {at}, for longer than before"),
            None => format!("the model is being loaded on {at}"),
        }
    }

    /// Called when the answer has begun. Its request is then dropped, unless another provider may have to go on with
    /// the answer.
    pub(crate) fn begun(&mut self, answer: &Answer) {
        if !answer.may_be_resumed() {
            self.memory = None;
        }
        if let Some(translation) = self.translation.take() {
            translation.forget();
        }
    }
}

/// A worker as a client may call it. `name` is one line.
pub(crate) fn called(name: &str, names_workers: bool) -> &str {
    match name {
        "" => "a worker",
        name if names_workers => clip(name, MAX_NAME),
        _ => "a worker",
    }
}

impl Refusal {
    fn take(&mut self, chunk: &Bytes) {
        let room = MAX_REFUSAL - self.body.len();
        self.body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }

    fn error(&self) -> ApiError {
        let status = self.status;
        if status.is_success() {
            let words = "the worker's answer is JSON, and not the stream that was asked for";
            return ApiError::new(StatusCode::BAD_GATEWAY, Kind::Server, words);
        }
        let BackendFailure { message, param, code, .. } = BackendFailure::read(&self.body);
        let error = ApiError::new(status, Kind::of_status(status), message);
        let code = code.and_then(|code| CODES.into_iter().find(|known| *known == code));
        ApiError { param: param.map(Into::into), code, ..error }
    }
}
