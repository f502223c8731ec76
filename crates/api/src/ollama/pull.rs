//! `/api/pull`: a model that is served is there already; no other one is fetched.

use axum::response::Response;
use serde::Deserialize;

use super::{
    listed,
    reply::{json, response},
};
use crate::{error::ApiError, request_scope::RequestScope, state::Api};

/// The steps of a download that has nothing to do.
const STEPS: [&str; 2] = ["pulling manifest", "success"];

#[derive(Default, Deserialize)]
struct Asked {
    stream: Option<bool>,
}

#[derive(serde::Serialize)]
struct Step {
    status: &'static str,
}

pub(super) fn pull(
    api: &Api,
    request_scope: &RequestScope,
    body: &[u8],
) -> Result<Response, ApiError> {
    listed::named(api, request_scope, body).map_err(unfetched)?;
    let asked: Asked = serde_json::from_slice(body).unwrap_or_default();
    if asked.stream == Some(false) {
        return Ok(json(api, &Step { status: "success" }));
    }
    let lines = STEPS.map(|status| protocol::json::write(&Step { status }) + "\n");
    Ok(response(api, "application/x-ndjson", lines.concat()))
}

/// The error of a model that is not here says how to get one.
fn unfetched(error: ApiError) -> ApiError {
    if error.code != Some("model_not_found") {
        return error;
    }
    let words = format!(
        "{}; this server fetches no models for its clients: add it on a machine that lends models",
        error.message
    );
    ApiError { message: words.into(), ..error }
}
