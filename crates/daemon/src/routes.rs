//! Which path belongs to whom.

use std::sync::Arc;

use access::LocalRules;
use api::{Api, Cors, Peer};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderValue, StatusCode, header};
use providers::{ModelNodes, Participants, RelayWorkers};
use scheduler::Scheduler;

use crate::{sockets, telemetry::metrics::Metrics};

/// The content type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone)]
struct Operator {
    api: Api,
    scheduler: Scheduler,
    metrics: Arc<Metrics>,
}

/// All that the listener serves. `local` tells which pages may use the server without a key.
pub fn router(
    api: Api,
    workers: RelayWorkers,
    nodes: ModelNodes,
    participants: Participants,
    scheduler: Scheduler,
    metrics: Arc<Metrics>,
    local: LocalRules,
) -> Cors<Router> {
    let operator = Operator { api: api.clone(), scheduler, metrics };
    let connect = get(async move |mut request: Request| {
        let from = Peer::of(request.extensions());
        upgrade(workers.connect(&mut request, from).await.map(Body::from))
    });
    let socket = get(async move |request: Request| upgrade(sockets::answer(&nodes, request)));
    let tunnel =
        get(async move |Path((code, id)): Path<(String, String)>, mut request: Request| {
            let from = Peer::of(request.extensions());
            participants.connect(&mut request, &code, &id, from).map(Body::from)
        });
    let router = api::router(api)
        .route("/v1/worker/connect", connect)
        .route("/v1/rooms/{code}/participants/{id}/tunnel", tunnel)
        .route(sockets::PATH, socket)
        .route("/metrics", get(show_metrics).with_state(operator))
        .method_not_allowed_fallback(api::error::method_not_allowed);
    Cors::new(router, local)
}

/// A response that asks for an upgrade names what to.
fn upgrade(mut response: Response) -> Response {
    if response.status() == StatusCode::UPGRADE_REQUIRED {
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    response
}

async fn show_metrics(State(operator): State<Operator>, request: Request) -> Response {
    let Operator { api, scheduler, metrics } = operator;
    let (uri, headers) = (request.uri(), request.headers());
    if !api.may_read_metrics(request.extensions(), uri, headers) {
        let words = "metrics are for local requests, or those with the administrator's token \
                     or a key of scope metrics or admin";
        let kind = api::error::Kind::Authentication;
        return api::ApiError::new(StatusCode::UNAUTHORIZED, kind, words).into_response();
    }
    let kind = HeaderValue::from_static(OPENMETRICS);
    ([(header::CONTENT_TYPE, kind)], metrics.encode(&scheduler, &api.refused())).into_response()
}
