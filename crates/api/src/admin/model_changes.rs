//! `POST /admin/workers/{id}/models/{model}/load` and `…/unload`: a worker loads a model, or unloads it.
//!
//! A model's name may have slashes: in the path they are written `%2F`.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    response::IntoResponse,
};
use base::ProviderId;
use http::{HeaderMap, StatusCode};
use protocol::admin::status::ModelChanged;
use scheduler::{WorkerStatus, provider::ModelChangeError};
use tokio::time::timeout;

use super::{
    operator,
    workers::{not_connected, worker},
};
use crate::{
    error::{ApiError, Kind},
    state::Api,
};

/// How long the answer waits for the worker's report that it is done. The worker may go on after that.
const LONGEST: Duration = Duration::from_secs(600);

type Names = Result<Path<(String, String)>, PathRejection>;

/// Loads a model. Answers when it is loaded.
pub(crate) async fn load(
    State(api): State<Api>,
    names: Names,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    change(&api, names, &headers, true).await
}

/// Unloads a model that no request uses. Answers when it is unloaded.
pub(crate) async fn unload(
    State(api): State<Api>,
    names: Names,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    change(&api, names, &headers, false).await
}

async fn change(
    api: &Api,
    names: Names,
    headers: &HeaderMap,
    loads: bool,
) -> Result<Json<ModelChanged>, ApiError> {
    let operator = operator(api, headers)?;
    let Path((id, model)) = names.map_err(|_| not_found("that is no worker and model".into()))?;
    let id = worker(Ok(Path(id)))?;
    let done = changed(api, id, &model, loads).await;
    let what = if loads { "model.load" } else { "model.unload" };
    operator.record(api, what, &format!("{id} {model}"), &done).await;
    done.map(Json)
}

async fn changed(
    api: &Api,
    id: ProviderId,
    model: &str,
    loads: bool,
) -> Result<ModelChanged, ApiError> {
    let status = api.scheduler().status();
    let found = status.workers.iter().find(|worker| worker.id == id);
    let found = found.ok_or_else(|| not_connected(id))?;
    if !found.models.iter().any(|offered| offered.as_str() == model) {
        return Err(not_found(format!("the worker {} does not offer {model}", found.name)));
    }
    let changing = api.scheduler().change_model(id, model, loads);
    let changing = changing.ok_or_else(|| not_connected(id))?;
    let end = timeout(LONGEST, changing.end()).await.map_err(|_| late(found, model, loads))?;
    end.map_err(|why| not_changed(found, model, loads, &why))?;
    let (worker_id, worker_name) = (id.to_string(), found.name.clone());
    let done = if loads { "loaded" } else { "unloaded" };
    Ok(ModelChanged { worker_id, worker_name, model: model.to_owned(), done: done.to_owned() })
}

fn not_found(words: String) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
}

fn late(worker: &WorkerStatus, model: &str, loads: bool) -> ApiError {
    let (verb, seconds) = (verb(loads), LONGEST.as_secs());
    let words = format!(
        "the worker {} has not said within {seconds} s that it could {verb} {model}; it goes on",
        worker.name
    );
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, Kind::Timeout, words)
}

fn not_changed(
    worker: &WorkerStatus,
    model: &str,
    loads: bool,
    why: &ModelChangeError,
) -> ApiError {
    let (status, kind) = match why {
        ModelChangeError::NotItsWork => (StatusCode::CONFLICT, Kind::Invalid),
        ModelChangeError::TooMany => (StatusCode::TOO_MANY_REQUESTS, Kind::Overload),
        ModelChangeError::Failed(_) | ModelChangeError::Left => {
            (StatusCode::BAD_GATEWAY, Kind::Server)
        }
    };
    let words = format!("the worker {} did not {} {model}: {why}", worker.name, verb(loads));
    ApiError::new(status, kind, words)
}

const fn verb(loads: bool) -> &'static str {
    if loads { "load" } else { "unload" }
}
