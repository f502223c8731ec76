//! `GET /admin/requests/running`: the requests that have not ended, the oldest first.

use axum::{Json, extract::State};
use base::{KeyId, Scope, millis};
use http::HeaderMap;
use protocol::admin::requests::{MOST_RUNNING, RunningJson, RunningList, RunningState};
use scheduler::RunningJob;

use super::operator;
use crate::{error::ApiError, state::Api};

pub(crate) async fn list(
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
