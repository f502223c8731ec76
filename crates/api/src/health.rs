//! `GET /health`.

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base::Scope;
use http::header;
use serde::Serialize;

use crate::{admin::WorkerJson, state::Api};

#[derive(Serialize)]
struct Health {
    status: &'static str,
    ok: bool,
    version: &'static str,
    peers: u32,
    #[serde(flatten)]
    details: Option<Details>,
}

/// What may ail a server that goes on serving.
pub trait Condition: Send + Sync {
    /// What is not as it should be, and what that means; `None` when all is well.
    fn degraded(&self) -> Option<String>;
}

/// Nothing ails it.
impl Condition for () {
    fn degraded(&self) -> Option<String> {
        None
    }
}

/// For local requests and those with a key.
#[derive(Serialize)]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded: Option<String>,
    uptime_secs: u64,
    workers_connected: usize,
    workers: Vec<WorkerJson>,
    queue_depth: usize,
    in_flight: usize,
    models: Vec<base::ModelName>,
}

/// JSON, or the text `ok` for those who prefer `text/plain`. Always 200: a server that drains
/// is still alive.
pub(crate) async fn health(State(api): State<Api>, request: Request) -> Response {
    if prefers_text(&request) {
        return "ok".into_response();
    }
    let trusted = api.is_trusted(request.extensions(), request.uri(), request.headers());
    let degraded = api.condition().degraded();
    let status = match &degraded {
        _ if api.is_draining() => "draining",
        Some(_) => "degraded",
        None => "ok",
    };
    let details = trusted.then(|| details(&api, degraded));
    let version = api.version();
    Json(Health { status, ok: !api.is_draining(), version, peers: 0, details }).into_response()
}

fn details(api: &Api, degraded: Option<String>) -> Details {
    let status = api.scheduler().status();
    Details {
        degraded,
        uptime_secs: api.uptime().as_secs(),
        workers_connected: status.workers.len(),
        workers: status.workers.iter().map(WorkerJson::from).collect(),
        queue_depth: status.queue_depth,
        in_flight: status.in_flight,
        models: api.scheduler().models(&Scope::server()),
    }
}

fn prefers_text(request: &Request) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let position = |kind| accept.and_then(|accept| accept.find(kind));
    match (position("text/plain"), position("application/json")) {
        (Some(text), Some(json)) => text < json,
        (text, _) => text.is_some(),
    }
}
