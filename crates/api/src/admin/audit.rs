//! `GET /admin/audit`: the operator's actions, the newest first.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::IntoResponse,
};
use protocol::admin::{AuditJson, AuditList};
use store::{Action, audit::MAX_ACTIONS};

use super::{blocking, failed, keys::timestamp, operator, usage::numbers};
use crate::{error::ApiError, state::Api};

/// The number of actions in an answer, unless the query sets another.
const USUAL: u64 = 100;

pub(crate) async fn list(
    State(api): State<Api>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, request.headers())?;
    let [most] = numbers(request.uri().query(), [("limit", USUAL)], "limit=N is")?;
    let most = usize::try_from(most).map_or(MAX_ACTIONS, |most| most.min(MAX_ACTIONS));
    let audit = Arc::clone(&api.administration().audit);
    let actions = blocking(move || audit.actions(most)).await?.map_err(|error| failed(&error))?;
    Ok(Json(AuditList { entries: actions.into_iter().map(entry).collect() }))
}

fn entry(action: Action) -> AuditJson {
    let Action { at, who, what, target, outcome } = action;
    AuditJson { at: timestamp(at), who, action: what, target, outcome }
}
