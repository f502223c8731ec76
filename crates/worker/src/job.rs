//! One job: it asks the backend, and turns the answer into frames of the link.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use backend::{Answer, AnswerBody, BackendError};
use base::Endpoint;
use bytes::Bytes;
use http::header;
use protocol::{relay::JobFailure, sse::StreamEnd};
use tokio::{
    sync::{SemaphorePermit, oneshot},
    time::timeout,
};

use crate::{
    lent::{LentBackend, LoadGuard},
    order::Order,
    reply::{Reply, ReplyError},
    traced::BackendSpan,
};

/// How long a backend may take to end an answer that is already complete. If it ends in time, its
/// connection can be used again; otherwise the connection is closed.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// A job in its own task. Dropping it closes the backend's connection at once.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) order: Order,
    pub(crate) lent: LoadGuard,
    pub(crate) reply: Reply,
    /// Brings the reason to stop, if there is one.
    pub(crate) stop: oneshot::Receiver<JobFailure>,
}

impl Job {
    /// Runs to the end. Tells the server exactly once how the job ended, and nothing after that. Returns
    /// the job's number.
    pub(crate) async fn run(self) -> u32 {
        let Self { order, lent, mut reply, stop } = self;
        let (number, request_id) = (order.number, order.request_id.clone());
        let ending = tokio::select! {
            // A cancellation wins over an answer that is ready: nobody would read it.
            biased;
            why = stop_reason(stop) => Err(ReplyError::Failed(why)),
            done = serve(order, &lent, &mut reply) => done,
        };
        match ending {
            Ok(rest) => rest.wait().await,
            Err(ReplyError::Failed(failure)) => {
                tracing::debug!(request_id, code = %failure.code, "{}", failure.message);
                reply.fail(failure);
            }
            Err(ReplyError::LinkGone) => {}
        }
        number
    }
}

/// The rest of a job whose answer is complete.
struct Rest<'a> {
    /// The answer, if the backend has not ended it.
    body: Option<AnswerBody>,
    _slot: Option<SemaphorePermit<'a>>,
}

impl Rest<'_> {
    /// Waits for the backend to end the answer, and drops any further bytes.
    async fn wait(self) {
        if let Some(body) = self.body {
            Box::pin(wait_for_end(body)).await;
        }
    }
}

/// Waits a moment for the end of a body whose bytes are no longer needed.
pub(crate) async fn wait_for_end(mut body: AnswerBody) {
    let ended = async { while let Some(Ok(_)) = body.next().await {} };
    // If the backend does not end it, dropping the body closes the connection.
    let _ = timeout(LAST_WAIT, ended).await;
}

async fn serve<'a>(
    mut order: Order,
    lent: &'a LentBackend,
    reply: &mut Reply,
) -> Result<Rest<'a>, ReplyError> {
    let mut span = BackendSpan::begin(lent.traces(), lent.backend().label(), &mut order);
    // Several servers may send more than the backend takes at once: the rest waits here.
    let slot = lent.slot().await;
    if let Some(span) = &mut span {
        span.note_slot();
    }
    let path = order.path.split('?').next().unwrap_or_default();
    let endpoint = Endpoint::of_path(path);
    // Boxed: a stream may last for hours, and should not keep the memory that its request took.
    let mut answer = Box::pin(lent.send(&mut order, !reply.server_waits())).await?;
    // The request may be large, and its answer may last for hours, so free it now.
    drop(order);
    if let Some(span) = &mut span {
        span.answered(answer.status);
    }
    let mut end = endpoint.filter(|_| is_stream(&answer)).map(StreamEnd::of);
    reply.head(answer.status, answer.headers).await?;
    while let Some(bytes) = next_piece(&mut answer.body, reply).await? {
        let mut bytes = bytes?;
        // Counts all bytes of the backend, also those after the logical end.
        lent.count_bytes(bytes.len());
        if let Some(end) = &mut end {
            bytes.truncate(end.feed(&bytes));
        }
        reply.chunk(bytes).await?;
        if let Some(end) = end.as_ref().filter(|end| end.is_over()) {
            reply.chunk(end.closing().into()).await?;
            break;
        }
    }
    if let Some(span) = &mut span {
        span.note_whole();
    }
    reply.end().await?;
    lent.count_answer();
    let goes_on = end.is_some_and(|end| end.is_over());
    Ok(Rest { body: goes_on.then_some(answer.body), _slot: slot })
}

/// The next piece of an answer. Before it waits for the backend, it flushes what the reply holds
/// back.
async fn next_piece(
    body: &mut AnswerBody,
    reply: &mut Reply,
) -> Result<Option<Result<Bytes, BackendError>>, ReplyError> {
    let mut next = pin!(body.next());
    // First polled without waiting, so that a head and a body that come together leave as one
    // frame.
    if let Poll::Ready(piece) = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await {
        return Ok(piece);
    }
    reply.flush().await?;
    Ok(next.await)
}

/// Whether an answer is a stream of events, and not compressed.
fn is_stream(answer: &Answer) -> bool {
    let kind = answer.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
        && !answer.headers.contains_key(header::CONTENT_ENCODING)
}

async fn stop_reason(stop: oneshot::Receiver<JobFailure>) -> JobFailure {
    match stop.await {
        Ok(why) => why,
        // The sender is gone, so nothing can stop the job any more.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room_of<F: Future>(_: impl FnOnce(Job) -> F) -> usize {
        size_of::<F>()
    }

    /// A worker holds one of these for each stream, for as long as it lasts.
    #[test]
    fn a_job_that_streams_takes_little_memory() {
        let room = room_of(Job::run);
        assert!(room <= 4096, "{room} bytes");
    }
}
