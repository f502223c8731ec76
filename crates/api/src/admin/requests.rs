//! `GET /admin/requests`: the most recently ended requests, the newest first; and `/running`: those that have not
//! ended.

use axum::{
    Json,
    extract::{Request, State},
};
use base::{KeyId, Scope, millis};
use http::HeaderMap;
use protocol::admin::requests::{
    MOST_RUNNING, RequestList, RunningJson, RunningList, RunningState,
};
use scheduler::RunningJob;

use super::{operator, usage::numbers};
use crate::{error::ApiError, state::Api};

/// The number of requests in an answer, unless the query sets another.
const USUAL: u64 = 100;

pub(crate) async fn list(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<RequestList>, ApiError> {
    operator(&api, request.headers())?;
    let known = [("after", 0), ("limit", USUAL)];
    let [after, limit] = numbers(request.uri().query(), known, "after=N and limit=M are")?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(Json(RequestList { requests: api.administration().requests.list(after, limit) }))
}

/// Lists the requests that have not ended, the oldest first.
pub(crate) async fn running(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<Json<RunningList>, ApiError> {
    operator(&api, &headers)?;
    let running = api.scheduler().running(MOST_RUNNING);
    Ok(Json(RunningList { requests: running.iter().map(shown).collect() }))
}

fn shown(running: &RunningJob) -> RunningJson {
    let job = &running.job;
    let state = if running.ran.is_some() { RunningState::Running } else { RunningState::Queued };
    RunningJson {
        id: job.id.to_string(),
        model: job.model.to_string(),
        endpoint: job.endpoint.path().to_owned(),
        key: (job.key != KeyId::local()).then(|| job.key.to_string()),
        scope: (job.scope != Scope::server()).then(|| job.scope.to_string()),
        worker: running.provider.as_deref().map(str::to_owned),
        state,
        waiting_ms: millis(running.waited),
        running_ms: running.ran.map_or(0, millis),
        tokens: running.tokens,
    }
}
