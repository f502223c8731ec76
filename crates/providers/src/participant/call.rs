//! One job at an endpoint.

use std::{sync::Arc, time::Duration};

use backend::{Answer, BackendError, BackendRequest, HttpBackend};
use scheduler::{Assignment, JobRequest, WriteError, exchange::CreditSink};
use tokio::{sync::Notify, time::timeout};

use super::{answer::head, calls::CallResult, request::sent_headers};
use crate::{
    incoming::Incoming,
    member::Presence,
    served::{RequestShape, ServedEndpoints},
};

/// Reading pauses while more than this many bytes are held back for the reader.
const ENOUGH: usize = 256 * 1024;

/// The reader reports in portions of this many bytes.
const PORTION: u32 = 64 * 1024;

/// How often the exchange is checked: a reader that has stopped for good sends no signal.
const LOOK: Duration = Duration::from_secs(1);

/// Why an answer breaks off.
enum CallError {
    Write(WriteError),
    /// The endpoint is at fault.
    Failed(String),
    /// The endpoint cannot be reached.
    Unreachable,
}

impl From<WriteError> for CallError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Wakes the call when its reader has read.
struct ReadSignal(Notify);

impl CreditSink for ReadSignal {
    fn credit(&self, _: u32, _: u32) {
        self.0.notify_one();
    }
}

/// Sends the request, and passes the answer on as it arrives. Dropping this closes the endpoint's
/// connection.
pub(super) async fn run(
    backend: Arc<HttpBackend>,
    assignment: Assignment,
    served: ServedEndpoints,
    presence: Arc<Presence>,
) -> CallResult {
    let Assignment { job, attempt, request, endpoint, alternatives, answer: writer } = assignment;
    let shape = RequestShape::new(endpoint, alternatives, &request);
    let mut incoming = Incoming::new(writer, shape);
    let passed = pass(&backend, &request, &served, &presence, &mut incoming).await;
    let complete = end(passed, incoming);
    CallResult { job, attempt, complete }
}

/// Ends a job that broke off. Returns one whose answer is complete.
fn end(passed: Result<(), CallError>, incoming: Incoming) -> Option<Incoming> {
    match passed {
        Ok(()) => return Some(incoming),
        Err(CallError::Failed(why)) => {
            tracing::warn!(why, "an endpoint failed a request");
            incoming.writer.fail(&why);
        }
        Err(CallError::Unreachable) => incoming.writer.unready(false),
        Err(CallError::Write(error)) => incoming.writer.give_up(error),
    }
    None
}

async fn pass(
    backend: &HttpBackend,
    request: &JobRequest,
    served: &ServedEndpoints,
    presence: &Presence,
    incoming: &mut Incoming,
) -> Result<(), CallError> {
    let read = Arc::new(ReadSignal(Notify::new()));
    let sink: Arc<dyn CreditSink> = Arc::<ReadSignal>::clone(&read);
    incoming.writer.give_credit(sink, 0, PORTION);
    let Answer { status, headers, mut body } = backend.send(ask(request)).await.map_err(failed)?;
    if status.is_redirection() {
        let words = format!("its endpoint answered {status}: redirects are not followed");
        return Err(CallError::Failed(words));
    }
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes().to_vec()));
    let headers: Vec<_> = headers.collect();
    let head = head(status.as_u16(), headers.into_iter())
        .map_err(|bad| CallError::Failed(bad.to_string()))?;
    incoming.head(head, served)?;
    while let Some(bytes) = body.next().await {
        presence.heard();
        let mut held_back = incoming.chunk(bytes.map_err(failed)?)?;
        while held_back > ENOUGH {
            // A time-out and a signal have the same effect: the held-back amount is checked again.
            let _ = timeout(LOOK, read.0.notified()).await;
            held_back = incoming.writer.chunk(bytes::Bytes::new())?;
        }
    }
    Ok(())
}

fn ask(request: &JobRequest) -> BackendRequest {
    let has_body = !request.body.is_empty();
    BackendRequest {
        method: request.method.clone(),
        path_and_query: request.path_and_query.clone(),
        headers: sent_headers(request).collect(),
        body: if has_body { vec![request.body.clone()] } else { Vec::new() },
        ..BackendRequest::default()
    }
}

fn failed(error: BackendError) -> CallError {
    tracing::warn!(%error, "an endpoint gave no answer");
    match error {
        BackendError::Unreachable { .. } => CallError::Unreachable,
        other => CallError::Failed(other.without_address()),
    }
}
