//! `GET /admin/audit`: the operator's actions, the newest first.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::IntoResponse,
};
use http::StatusCode;
use protocol::admin::{AuditJson, AuditList};
use store::{Action, audit::MAX_ACTIONS};

use super::{blocking, failed, keys::timestamp, operator, usage::parameters};
use crate::{
    error::{ApiError, Kind},
    state::Api,
};

/// The number of actions in an answer, unless the query sets another.
const USUAL: usize = 100;

pub(crate) async fn list(
    State(api): State<Api>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, request.headers())?;
    let most = most(request.uri().query())?;
    let audit = Arc::clone(&api.administration().audit);
    let actions = blocking(move || audit.actions(most)).await?.map_err(|error| failed(&error))?;
    Ok(Json(AuditList { entries: actions.into_iter().map(entry).collect() }))
}

fn most(query: Option<&str>) -> Result<usize, ApiError> {
    let mut most = USUAL;
    for (name, value) in parameters(query) {
        let number = value.parse().ok().filter(|_| name == "limit");
        most = number.ok_or_else(|| {
            let words = format!("{name}={value} is no parameter of this: only limit=N is");
            ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
        })?;
    }
    Ok(most.min(MAX_ACTIONS))
}

fn entry(action: Action) -> AuditJson {
    let Action { at, who, what, target, outcome } = action;
    AuditJson { at: timestamp(at), who, action: what, target, outcome }
}
