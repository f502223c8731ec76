//! Which part answers which path.

use std::sync::Arc;

use access::LocalRules;
use api::{Api, Client, Cors, room::homes::with_homes};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::get,
};
use base::Live;
use http::{HeaderValue, StatusCode, header};
use mesh::Mesh;
use providers::{ModelNodes, Participants, RelayWorkers};
use scheduler::Scheduler;
use traces::Traces;

use crate::{
    configuration,
    fleet_part::{self, FleetCell, FleetPart},
    peering::{self, Relay},
    reload::Reloading,
    sockets,
    stopping::{self, PendingWork, StopCell},
    telemetry::{log_requests, metrics::Metrics, tracing_export},
    workspace_part::{self, WorkspacePart},
};

/// The content type of OpenMetrics.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone)]
struct MetricsState {
    api: Api,
    scheduler: Scheduler,
    metrics: Arc<Metrics>,
    mesh: Option<Mesh>,
    relay: Option<Relay>,
    fleet: FleetCell,
    workspace: Option<WorkspacePart>,
    traces: Option<Traces>,
}

/// The parts that accept connections of providers, peers and clients of the workspace, and the handles of the paths of
/// administration.
pub(crate) struct Acceptors {
    pub(crate) workers: RelayWorkers,
    pub(crate) nodes: ModelNodes,
    pub(crate) participants: Participants,
    pub(crate) mesh: Option<Mesh>,
    pub(crate) relay: Option<Relay>,
    pub(crate) fleet: FleetCell,
    pub(crate) workspace: Option<WorkspacePart>,
    pub(crate) stop: StopCell,
    pub(crate) pending: PendingWork,
    pub(crate) reloading: Reloading,
    pub(crate) traces: Option<Traces>,
}

/// All paths.
pub(crate) fn router(
    api: Api,
    acceptors: Acceptors,
    scheduler: Scheduler,
    metrics: Arc<Metrics>,
) -> Router {
    let Acceptors { workers, nodes, participants, mesh, relay, fleet, workspace, .. } = acceptors;
    let of_configuration = configuration::router(api.clone(), acceptors.reloading);
    let of_mesh = peering::router(api.clone(), mesh.clone(), relay.clone());
    let of_stop = stopping::router(api.clone(), acceptors.stop, acceptors.pending);
    let of_log = log_requests::router(api.clone());
    let operator = MetricsState {
        api: api.clone(),
        scheduler,
        metrics,
        mesh,
        relay: relay.clone(),
        fleet,
        workspace: workspace.clone(),
        traces: acceptors.traces,
    };
    let socket = get(async move |request: Request| {
        upgrade(sockets::answer(&nodes, relay.as_ref(), workspace.as_ref(), request).await)
    });
    api::router(api)
        .merge(of_lenders(workers, participants))
        .route(sockets::PATH, socket)
        .route("/metrics", get(show_metrics).with_state(operator))
        .merge(of_mesh)
        .merge(of_stop)
        .merge(of_log)
        .merge(of_configuration)
        .method_not_allowed_fallback(api::respond::method_not_allowed)
}

/// The paths at which workers and participants connect.
fn of_lenders(workers: RelayWorkers, participants: Participants) -> Router {
    let connect = get(async move |mut request: Request| {
        let from = Client::of(request.extensions());
        upgrade(workers.connect(&mut request, from).await.map(Body::from))
    });
    let tunnel =
        get(async move |Path((code, id)): Path<(String, String)>, mut request: Request| {
            let from = Client::of(request.extensions());
            participants.connect(&mut request, &code, &id, from).map(Body::from)
        });
    Router::new()
        .route("/v1/worker/connect", connect)
        .route("/v1/rooms/{code}/participants/{id}/tunnel", tunnel)
}

/// All paths, for clients: with the rules for pages of other origins and with cookies. `local`: the pages that may
/// use the server without a key. `has_fellows`: requests about rooms whose home is another server are carried there.
pub(crate) fn for_clients(
    api: &Api,
    router: Router,
    local: Live<LocalRules>,
    has_fellows: bool,
) -> Cors<Router> {
    let router = if has_fellows { with_homes(router, api.clone()) } else { router };
    Cors::new(router, local).with_cookie(api.session_cookie())
}

/// Adds the protocol to a response that demands an upgrade (RFC 9110 section 7.8).
fn upgrade(mut response: Response) -> Response {
    if response.status() == StatusCode::UPGRADE_REQUIRED {
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    response
}

async fn show_metrics(State(operator): State<MetricsState>, request: Request) -> Response {
    let MetricsState { api, scheduler, metrics, mesh, relay, fleet, workspace, traces } = operator;
    let (uri, headers) = (request.uri(), request.headers());
    if !api.may_read_metrics(request.extensions(), uri, headers) {
        let words = "metrics are for local requests, or those with the administrator's token \
                     or a key of scope metrics or admin";
        let kind = api::error::Kind::Authentication;
        return api::ApiError::new(StatusCode::UNAUTHORIZED, kind, words).into_response();
    }
    let kind = HeaderValue::from_static(OPENMETRICS);
    let (mesh, relay) = (mesh.map(|mesh| mesh.counts()), relay.map(|relay| relay.counts()));
    let text = metrics.encode(&scheduler, &api.refused(), |text| {
        peering::encode(text, mesh.as_ref(), relay.as_ref());
        fleet_part::encode(text, fleet.get().map(FleetPart::counts).as_ref());
        workspace_part::encode(text, workspace.and_then(|it| it.counts()).as_ref());
        tracing_export::encode(text, traces.as_ref());
    });
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
