//! One job at an endpoint.

use std::{sync::Arc, time::Duration};

use backend::{Answer, Ask, BackendError, HttpBackend};
use scheduler::{Assignment, JobRequest, ReaderGone, exchange::CreditSink};
use tokio::{sync::Notify, time::timeout};

use super::{answer::head, calls::Done, request::told};
use crate::{
    incoming::{Incoming, NO_SENSE},
    member::Presence,
    served::{Asked, Served},
};

/// While more than this is held back for a reader, in bytes, nothing more is read.
const ENOUGH: usize = 256 * 1024;

/// Whoever reads says so in portions of this, in bytes.
const PORTION: u32 = 64 * 1024;

/// A reader that has stopped reading for good says nothing: it is looked at this often.
const LOOK: Duration = Duration::from_secs(1);

/// Why an answer cannot be gone on with.
enum Trouble {
    /// Nobody reads it.
    Gone(ReaderGone),
    /// It is the endpoint's fault.
    Failed(String),
}

impl From<ReaderGone> for Trouble {
    fn from(gone: ReaderGone) -> Self {
        Self::Gone(gone)
    }
}

/// Told that something was read.
struct Read(Notify);

impl CreditSink for Read {
    fn credit(&self, _: u32, _: u32) {
        self.0.notify_one();
    }
}

/// Asks, and passes the answer on as it comes. When this is dropped, the endpoint's connection is
/// closed.
pub(super) async fn run(
    backend: Arc<HttpBackend>,
    assignment: Assignment,
    served: Served,
    presence: Arc<Presence>,
) -> Done {
    let Assignment { job, attempt, request, endpoint, alternatives, answer: writer } = assignment;
    let asked = Asked { endpoint, alternatives, model: request.model.as_str().to_owned() };
    let mut incoming = Incoming::new(writer, asked);
    let passed = pass(&backend, &request, served, &presence, &mut incoming).await;
    let unserved = end(passed, incoming);
    Done { job, attempt, unserved }
}

/// Ends a job; gives it back when its endpoint is not there.
fn end(passed: Result<(), Trouble>, incoming: Incoming) -> Option<Incoming> {
    match passed {
        Ok(()) if incoming.is_unserved() => return Some(incoming),
        Ok(()) => incoming.end(),
        Err(Trouble::Failed(why)) => {
            tracing::warn!(why, "an endpoint failed a request");
            incoming.writer.fail(&why);
        }
        Err(Trouble::Gone(ReaderGone::Unreadable)) => incoming.writer.fail(NO_SENSE),
        Err(Trouble::Gone(ReaderGone::Refused)) => incoming.refused(),
        Err(Trouble::Gone(ReaderGone::Stalled)) => incoming.writer.stalled(),
        Err(Trouble::Gone(ReaderGone::Over)) => incoming.writer.abandon(),
    }
    None
}

async fn pass(
    backend: &HttpBackend,
    request: &JobRequest,
    served: Served,
    presence: &Presence,
    incoming: &mut Incoming,
) -> Result<(), Trouble> {
    let read = Arc::new(Read(Notify::new()));
    let sink: Arc<dyn CreditSink> = Arc::<Read>::clone(&read);
    incoming.writer.give_credit(sink, 0, PORTION);
    let Answer { status, headers, mut body } =
        backend.ask(request.method.clone(), ask(request)).await.map_err(failed)?;
    if status.is_redirection() {
        let words = format!("its endpoint answered {status}: redirects are not followed");
        return Err(Trouble::Failed(words));
    }
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes().to_vec()));
    let headers: Vec<_> = headers.collect();
    let head = head(status.as_u16(), headers.into_iter())
        .map_err(|bad| Trouble::Failed(bad.to_string()))?;
    incoming.head(head, served)?;
    while let Some(bytes) = body.next().await {
        presence.heard();
        let mut held_back = incoming.chunk(bytes.map_err(failed)?)?;
        while held_back > ENOUGH {
            // Either way, it is looked at again.
            let _ = timeout(LOOK, read.0.notified()).await;
            held_back = incoming.writer.chunk(bytes::Bytes::new())?;
        }
    }
    Ok(())
}

fn ask(request: &JobRequest) -> Ask {
    let has_body = !request.body.is_empty();
    Ask {
        path_and_query: request.path_and_query.clone(),
        headers: told(request).collect(),
        body: if has_body { vec![request.body.clone()] } else { Vec::new() },
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: BackendError) -> Trouble {
    Trouble::Failed(error.to_string())
}
