//! `GET /health`.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base::Scope;
use http::header;
use protocol::admin::status::{Health, HealthDetails};

use crate::{admin::workers::shown, aliases::Alias, state::Api};

/// Answers with JSON, or with the text `ok` if the client prefers `text/plain`. The status is always 200: a server
/// that drains is still alive.
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
    let own =
        |request: &Request| api.is_own(request.extensions(), request.uri(), request.headers());
    let details = trusted.then(|| details(&api, degraded, own(&request)));
    let (status, version) = (status.to_owned(), api.version().to_owned());
    let (ok, peers) = (!api.is_draining(), api.condition().peers());
    Json(Health { status, ok, version, peers, details }).into_response()
}

/// The details for local requests and requests with a key. Participants of rooms are listed only
/// for `own` requests.
fn details(api: &Api, degraded: Option<String>, own: bool) -> HealthDetails {
    let mut status = api.scheduler().status();
    status.workers.retain(|worker| own || worker.scope.room_id().is_none());
    let models = api.scheduler().models(&Scope::server());
    HealthDetails {
        degraded,
        uptime_secs: api.uptime().as_secs(),
        workers_connected: status.workers.len() as u64,
        workers: status.workers.iter().map(shown).collect(),
        queue_depth: status.queue_depth as u64,
        in_flight: status.in_flight as u64,
        models: models.iter().map(ToString::to_string).collect(),
        aliases: aliases(api),
        fleet: api.condition().fleet(),
        workspace: api.condition().workspace(),
    }
}

fn aliases(api: &Api) -> BTreeMap<String, Vec<String>> {
    let targets = |alias: &Alias| alias.targets.iter().map(ToString::to_string).collect();
    api.aliases().iter().map(|(name, alias)| (name.to_string(), targets(alias))).collect()
}

fn prefers_text(request: &Request) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let position = |kind| accept.and_then(|accept| accept.find(kind));
    match (position("text/plain"), position("application/json")) {
        (Some(text), Some(json)) => text < json,
        (text, _) => text.is_some(),
    }
}
