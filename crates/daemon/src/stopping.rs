//! The end of a running server: the request for it, the work that the server waits for, and the fate of terminals and
//! agents.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::{
    Api,
    admin::posted,
    error::{ApiError, Kind},
};
use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::post,
};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::StatusCode;
use protocol::admin::stop::{StopProgress, StopRequest};
use scheduler::Scheduler;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    json_lines::{self, line},
    signals::Stop,
    workspace_part::WorkspacePart,
};

/// The longest body of a request, in bytes.
const LONGEST: usize = 1024;

/// How often a change of the pending work is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The work that a server would have to wait for if it ended now. Clones share it.
#[derive(Clone)]
pub(crate) struct PendingWork {
    scheduler: Scheduler,
    sessions: RunningSessions,
    drained: CancellationToken,
}

impl PendingWork {
    pub(crate) fn new(scheduler: &Scheduler, sessions: &RunningSessions) -> Self {
        let (scheduler, sessions) = (scheduler.clone(), sessions.clone());
        Self { scheduler, sessions, drained: CancellationToken::new() }
    }

    /// The work at this moment.
    pub(crate) fn now(&self) -> StopProgress {
        let (terminals, agents) = self.sessions.terminals_and_agents();
        let status = self.scheduler.status();
        StopProgress {
            answers: status.in_flight as u64,
            terminals: terminals as u64,
            agents: agents as u64,
            keep_sessions_secs: self.sessions.outlive_by().as_secs(),
            drained: self.drained.is_cancelled(),
        }
    }

    /// Notes that all answers have ended.
    pub(crate) fn drained(&self) {
        self.drained.cancel();
    }

    /// Waits until the number of answers differs from `before`, or all have ended. Returns the work then.
    async fn changed(&self, before: StopProgress) -> StopProgress {
        loop {
            let now = self.now();
            if now.drained || now.answers != before.answers {
                return now;
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = self.drained.cancelled() => {}
            }
        }
    }
}

/// The fate of terminals and agents when the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsFate {
    /// They go on for a while, and the next server with the same data takes them over.
    Keep,
    /// They end.
    End,
}

/// The terminals and agents of a running server, for the caller that stops it. Clones share their fate.
#[derive(Clone)]
pub struct RunningSessions {
    workspace: Option<WorkspacePart>,
    ends: Arc<AtomicBool>,
}

impl RunningSessions {
    pub(crate) fn new(workspace: Option<WorkspacePart>) -> Self {
        Self { workspace, ends: Arc::default() }
    }

    /// How many terminals and how many agents run.
    #[must_use]
    pub fn terminals_and_agents(&self) -> (usize, usize) {
        let counts = self.workspace.as_ref().and_then(WorkspacePart::counts);
        counts.map_or((0, 0), |counts| counts.live())
    }

    /// How long they go on without a server, by the settings; zero: they do not.
    #[must_use]
    pub fn kept_for(&self) -> Duration {
        self.workspace.as_ref().map(WorkspacePart::keeps_sessions).unwrap_or_default()
    }

    /// Decides their fate. Without a decision they are kept, if the settings say so.
    pub fn decide(&self, fate: SessionsFate) {
        self.ends.store(fate == SessionsFate::End, Ordering::SeqCst);
    }

    /// How long they go on after this stop; zero: they end with it.
    #[must_use]
    pub fn outlive_by(&self) -> Duration {
        match self.fate() {
            SessionsFate::Keep => self.kept_for(),
            SessionsFate::End => Duration::ZERO,
        }
    }

    pub(crate) fn fate(&self) -> SessionsFate {
        match self.ends.load(Ordering::SeqCst) || self.kept_for().is_zero() {
            true => SessionsFate::End,
            false => SessionsFate::Keep,
        }
    }
}

/// The cell in which `/admin/stop` finds the stop of this server, once the server runs.
pub(crate) type StopCell = Arc<OnceLock<Stop>>;

#[derive(Clone)]
struct StopAdmin {
    api: Api,
    stop: StopCell,
    pending: PendingWork,
}

/// The route of `/admin/stop`.
pub(crate) fn router(api: Api, stop: StopCell, pending: PendingWork) -> Router {
    let state = StopAdmin { api, stop, pending };
    Router::new().route("/admin/stop", post(ask)).with_state(state)
}

/// Asks the server to end, and streams what it waits for.
async fn ask(State(state): State<StopAdmin>, request: Request) -> Result<Response, ApiError> {
    let (operator, body) = posted(&state.api, request, LONGEST).await?;
    let request = read(&body)?;
    // A server takes connections only while it runs, and before that its stop is set.
    let stop = state.stop.get().cloned().unwrap_or_default();
    let target = if request.now { "server, at once" } else { "server" };
    operator.record(&state.api, "stop", target, &Ok(())).await;
    state.pending.sessions.decide(if request.keep_sessions {
        SessionsFate::Keep
    } else {
        SessionsFate::End
    });
    let first = state.pending.now();
    if request.now {
        stop.ask_at_once();
    } else {
        stop.ask();
    }
    Ok(json_lines::response(lines(state.pending, first)))
}

fn read(body: &[u8]) -> Result<StopRequest, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(StopRequest::default());
    }
    serde_json::from_slice(body).map_err(|error| {
        let words = format!("the body is to be nothing, or {{\"now\": true}}: {error}");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    })
}

/// A line for `first`, then one for each change, until all answers have ended.
fn lines(
    pending: PendingWork,
    first: StopProgress,
) -> impl Stream<Item = serde_json::Result<Bytes>> + Send {
    let begin = (pending, None);
    stream::unfold(begin, move |(pending, before)| async move {
        let next = match before {
            None => first,
            Some(StopProgress { drained: true, .. }) => return None,
            Some(before) => pending.changed(before).await,
        };
        Some((line(&next), (pending, Some(next))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_nothing_or_says_whether_at_once() {
        assert_eq!(read(b" ").unwrap(), StopRequest::default());
        assert_eq!(read(b"{}").unwrap(), StopRequest::default());
        let request = read(br#"{"now":true,"keep_sessions":true}"#).unwrap();
        assert_eq!(request, StopRequest { now: true, keep_sessions: true });
        assert_eq!(read(b"now").unwrap_err().status, StatusCode::BAD_REQUEST);
    }
}
