//! `/admin/mesh`, and `/peers` of the mesh relay.

use api::{Api, ApiError, admin, error::Kind};
use axum::{
    Json, Router,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use mesh::{Mesh, admin::NoPull};
use protocol::admin::mesh::MeshPull;

use super::Relay;
use crate::json_lines::{self, line};

/// The longest request for a model, in bytes.
const LONGEST: usize = 16 * 1024;

#[derive(Clone)]
struct MeshAdmin {
    api: Api,
    mesh: Option<Mesh>,
}

pub(crate) fn router(api: Api, mesh: Option<Mesh>, relay: Option<Relay>) -> Router {
    let admin = Router::new()
        .route("/admin/mesh/id", get(id))
        .route("/admin/mesh/peers", get(peers))
        .route("/admin/mesh/models", get(models))
        .route("/admin/mesh/transfers", get(transfers))
        .route("/admin/mesh/transfers/{id}", delete(cancel))
        .route("/admin/mesh/pull", post(pull))
        .with_state(MeshAdmin { api, mesh });
    match relay {
        Some(relay) => {
            admin.route("/peers", get(async move |request: Request| relay.peers(&request)))
        }
        None => admin,
    }
}

impl MeshAdmin {
    /// The mesh, if the request is an administrator's.
    fn mesh(&self, headers: &HeaderMap) -> Result<&Mesh, ApiError> {
        admin::operator(&self.api, headers)?;
        self.enabled()
    }

    fn enabled(&self) -> Result<&Mesh, ApiError> {
        self.mesh.as_ref().ok_or_else(|| {
            let words = "this server takes no part in the mesh: start it with --mesh-listen, \
                         --mesh-advertise, --mesh-peer or --mesh-relay, or `[mesh] enabled = true`";
            ApiError::new(StatusCode::CONFLICT, Kind::Invalid, words)
        })
    }
}

type Answer = Result<Response, ApiError>;

async fn id(State(admin_state): State<MeshAdmin>, headers: HeaderMap) -> Answer {
    let mesh = admin_state.mesh(&headers)?;
    Ok(Json(mesh.describe()).into_response())
}

async fn peers(State(admin_state): State<MeshAdmin>, headers: HeaderMap) -> Answer {
    let mesh = admin_state.mesh(&headers)?;
    Ok(Json(mesh.peers()).into_response())
}

async fn models(State(admin_state): State<MeshAdmin>, headers: HeaderMap) -> Answer {
    let mesh = admin_state.mesh(&headers)?;
    Ok(Json(mesh.models().await).into_response())
}

async fn transfers(State(admin_state): State<MeshAdmin>, headers: HeaderMap) -> Answer {
    let mesh = admin_state.mesh(&headers)?;
    Ok(Json(mesh.transfers()).into_response())
}

async fn cancel(
    State(admin_state): State<MeshAdmin>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let operator = admin::operator(&admin_state.api, &headers)?;
    let mesh = admin_state.enabled()?;
    let cancelled = mesh.cancel(&id).ok_or_else(|| {
        let words = format!("there is no transfer {id:?} that could be cancelled");
        ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
    });
    operator.record(&admin_state.api, "mesh.cancel", &id, &cancelled).await;
    Ok(Json(cancelled?).into_response())
}

/// Fetches a model, and streams a line for each step until the end. The pull goes on if the client leaves.
async fn pull(State(admin_state): State<MeshAdmin>, request: Request) -> Answer {
    let (operator, body) = admin::posted(&admin_state.api, request, LONGEST).await?;
    let mesh = admin_state.enabled()?;
    let pull: MeshPull = serde_json::from_slice(&body).map_err(|error| {
        let words = format!("that is no model to be fetched: {error}");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    })?;
    let pulling = mesh.pull(&pull).map_err(|error| refused(&error));
    operator.record(&admin_state.api, "mesh.pull", &pull.model, &pulling).await;
    let steps = stream::unfold(pulling?, async |mut pulling| {
        let step = pulling.next().await?;
        Some((line(&step), pulling))
    });
    Ok(json_lines::response(steps))
}

fn refused(error: &NoPull) -> ApiError {
    let (status, kind) = match error {
        NoPull::BadName(_) | NoPull::Ambiguous { .. } => (StatusCode::BAD_REQUEST, Kind::Invalid),
        NoPull::NoSuchPeer(_) => (StatusCode::NOT_FOUND, Kind::NotFound),
        NoPull::Busy(_) => (StatusCode::TOO_MANY_REQUESTS, Kind::Overload),
    };
    ApiError::new(status, kind, error.to_string())
}
