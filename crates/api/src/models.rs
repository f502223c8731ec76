//! `GET /v1/models` and `/v1/models/{id}`: what is served now.

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use base::{ModelName, Scope};
use http::{StatusCode, header};
use protocol::openai::{model_list, model_object};

use crate::{
    error::{self, ApiError, Kind},
    state::{Api, Peer},
};

/// Who owns a model, as OpenAI's list has it; by this Warren knows itself.
const OWNER: &str = "warren";

pub(crate) async fn list(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    admit(&api, &request)?;
    let models = api.scheduler().models(&Scope::server());
    let known = models.iter().map(|model| (model.as_str(), created(&api, model), OWNER));
    Ok(json(&api, model_list(known)))
}

pub(crate) async fn show(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    admit(&api, &request)?;
    let Path(id) = id.map_err(|_| error::unreadable_path(request.uri()))?;
    let model = ModelName::from(id);
    if api.scheduler().serves(&Scope::server(), model.as_str()) {
        return Ok(json(&api, model_object(model.as_str(), created(&api, &model), OWNER)));
    }
    let words = format!("no provider for model {model}");
    Err(ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words))
}

fn admit(api: &Api, request: &Request) -> Result<(), ApiError> {
    let peer = Peer::of(request.extensions());
    api.rules().admit(peer, request.uri(), request.headers())?;
    Ok(())
}

/// When the model was first seen, in seconds since 1970.
fn created(api: &Api, model: &ModelName) -> u64 {
    api.models().first_seen(&Scope::server(), model).unwrap_or_default()
}

fn json(api: &Api, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (VERSION, api.version())];
    (headers, body).into_response()
}

/// Tells a worker that looks for backends that this is none.
const VERSION: header::HeaderName = header::HeaderName::from_static("x-warren-version");
