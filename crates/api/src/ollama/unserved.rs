//! Paths that would change models, and `/api/pull`, which succeeds for a model that is served already and fetches no
//! other one. Models belong to the machines that lend them, and are changed there.

use axum::{
    extract::{Request, State},
    response::Response,
};
use base::Endpoint;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{
    listed,
    reply::{json, response},
};
use crate::{
    error::{ApiError, Kind},
    head::new_id,
    refuse::refuse,
    request_scope::RequestScope,
    shape,
    state::Api,
};

pub(super) async fn create(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "creating").await
}

pub(super) async fn copy(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "copying").await
}

pub(super) async fn delete(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "deleting").await
}

pub(super) async fn push(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "pushing").await
}

pub(super) async fn blob(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "uploading parts of").await
}

async fn refused(api: &Api, request: Request, doing: &str) -> Response {
    let (parts, body) = request.into_parts();
    let error = RequestScope::of_plain(api, &parts).err().unwrap_or_else(|| {
        let words = format!(
            "{doing} models is not possible here: a Warren serves the models of the machines that are \
             connected to it, and they are changed on those machines"
        );
        let error = ApiError::new(StatusCode::NOT_IMPLEMENTED, Kind::Invalid, words);
        ApiError { code: Some("not_implemented"), ..error }
    });
    refuse(shape::of_path(Endpoint::OllamaGenerate.path()), api, &parts, body, &error, new_id())
        .await
}

/// The steps of a download that has nothing to do.
const STEPS: [&str; 2] = ["pulling manifest", "success"];

#[derive(Default, Deserialize)]
struct PullRequest {
    stream: Option<bool>,
}

#[derive(Serialize)]
struct Step {
    status: &'static str,
}

pub(super) fn pull(
    api: &Api,
    request_scope: &RequestScope,
    body: &[u8],
) -> Result<Response, ApiError> {
    listed::named(api, request_scope, body).map_err(unfetched)?;
    let request: PullRequest = serde_json::from_slice(body).unwrap_or_default();
    if request.stream == Some(false) {
        return Ok(json(api, &Step { status: "success" }));
    }
    let lines = STEPS.map(|status| protocol::json::write(&Step { status }) + "\n");
    Ok(response(api, "application/x-ndjson", lines.concat()))
}

/// Adds to the error for a model that is not served how to get it.
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
