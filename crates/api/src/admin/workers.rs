//! `/admin/workers` and `/admin/stats`: the connected providers, and the queues.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    response::IntoResponse,
};
use base::ProviderId;
use http::{HeaderMap, StatusCode};
use protocol::{
    admin::status::{QueueJson, Stats, WorkerJson, WorkerList},
    room::selector::RESERVED,
};
use scheduler::WorkerStatus;
use serde::Serialize;

use super::operator;
use crate::{
    error::{ApiError, Kind},
    state::Api,
};

/// A worker, as `/admin/workers` and `/health` list it.
pub(crate) fn shown(worker: &WorkerStatus) -> WorkerJson {
    WorkerJson {
        worker_id: worker.id.to_string(),
        id: worker.id.to_string(),
        worker_name: worker.name.clone(),
        server: worker.fellow.clone(),
        scope: worker.scope.to_string(),
        models: models(worker),
        model_facts: (*worker.model_facts).clone(),
        loads_models: worker.loads_models,
        endpoints: worker.endpoints.iter().map(|endpoint| endpoint.path().to_owned()).collect(),
        distance: worker.distance.as_str().to_owned(),
        speed: worker.speed,
        throttle: worker.throttle,
        max_concurrent: worker.max_concurrent,
        lent: worker.lent,
        reported_load: worker.reported_load,
        in_flight_count: worker.in_flight,
        in_flight: worker.in_flight,
        is_draining: worker.draining,
        resting_secs: worker.resting.map(|rest| rest.as_secs_f64()),
    }
}

/// The worker's models; for a participant of a room, without the selectors that stand for it.
fn models(worker: &WorkerStatus) -> Vec<String> {
    let names = worker.models.iter().map(ToString::to_string);
    names.filter(|name| worker.scope.room_id().is_none() || !name.starts_with(RESERVED)).collect()
}

#[derive(Serialize)]
struct ActionDone {
    worker_id: String,
    done: &'static str,
}

pub(crate) async fn workers(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, &headers)?;
    let status = api.scheduler().status();
    Ok(Json(WorkerList { workers: status.workers.iter().map(shown).collect() }))
}

pub(crate) async fn stats(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, &headers)?;
    let status = api.scheduler().status();
    let mut queue_depth = BTreeMap::from([("server".to_owned(), 0)]);
    for queue in &status.queues {
        *queue_depth.entry(queue.scope.to_string()).or_default() += queue.len as u64;
    }
    let queues = status.queues.iter().map(|queue| QueueJson {
        scope: queue.scope.to_string(),
        model: queue.model.to_string(),
        depth: queue.len as u64,
        oldest_secs: queue.oldest.as_secs_f64(),
    });
    Ok(Json(Stats {
        queue_depth,
        queues: queues.collect(),
        active_workers: status.workers.len() as u64,
        in_flight: status.in_flight as u64,
        uptime_secs: api.uptime().as_secs(),
    }))
}

/// Drains one worker: it gets no new jobs, finishes its current ones, and is disconnected.
pub(crate) async fn drain(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let operator = operator(&api, &headers)?;
    let grace = api.limits().drain;
    let found = worker(id)?;
    let there = api.scheduler().drain(found, "maintenance", grace);
    let answer = answer(found, there, "draining");
    operator.record(&api, "worker.drain", &found.to_string(), &answer).await;
    answer
}

/// Asks one worker to list its models again.
pub(crate) async fn refresh(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let operator = operator(&api, &headers)?;
    let found = worker(id)?;
    let answer = answer(found, api.scheduler().refresh(found, "requested"), "refreshing");
    operator.record(&api, "worker.refresh", &found.to_string(), &answer).await;
    answer
}

pub(super) fn worker(id: Result<Path<String>, PathRejection>) -> Result<ProviderId, ApiError> {
    let bad = |words| ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words);
    let Path(id) = id.map_err(|_| bad("that is no worker's id".to_owned()))?;
    id.parse().map_err(|error| bad(format!("{id} is no worker's id: {error}")))
}

fn answer(
    id: ProviderId,
    there: bool,
    done: &'static str,
) -> Result<(StatusCode, Json<ActionDone>), ApiError> {
    if there {
        return Ok((StatusCode::ACCEPTED, Json(ActionDone { worker_id: id.to_string(), done })));
    }
    Err(not_connected(id))
}

pub(super) fn not_connected(id: ProviderId) -> ApiError {
    let words = format!("no worker {id} is connected");
    ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
}
