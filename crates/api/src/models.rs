//! `GET /v1/models` and `/v1/models/{id}`: what is served now.

use std::collections::BTreeMap;

use access::{Admitted, Moment};
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
    let admitted = admit(&api, &request)?;
    let models = served(&api);
    let listed = models.iter().filter(|(model, _)| may_use(&admitted, model));
    let listed = listed.map(|(model, created)| (model.as_str(), *created, OWNER));
    Ok(json(&api, model_list(listed)))
}

pub(crate) async fn show(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let admitted = admit(&api, &request)?;
    let Path(id) = id.map_err(|_| error::unreadable_path(request.uri()))?;
    let model = ModelName::from(id);
    if may_use(&admitted, &model)
        && let Some(created) = served_since(&api, &model)
    {
        return Ok(json(&api, model_object(model.as_str(), created, OWNER)));
    }
    let words = format!("no provider for model {model}");
    Err(ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words))
}

fn admit(api: &Api, request: &Request) -> Result<Admitted, ApiError> {
    let peer = Peer::of(request.extensions());
    Ok(api.rules().admit(peer, request.uri(), request.headers(), Moment::now())?)
}

/// Whether a model is one that the key is for: others are not shown to it.
fn may_use(admitted: &Admitted, model: &ModelName) -> bool {
    admitted.key.as_ref().is_none_or(|key| key.allows(model.as_str()))
}

/// All that a request may name now, with when each was first seen.
fn served(api: &Api) -> BTreeMap<ModelName, u64> {
    let models = api.scheduler().models(&Scope::server());
    let models = models.into_iter().filter(|model| api.aliases().get(model).is_none());
    let models = models.map(|model| (created(api, &model), model));
    let aliases = api.aliases().iter();
    let aliases = aliases.filter_map(|(name, _)| Some((served_since(api, name)?, name.clone())));
    models.chain(aliases).map(|(created, model)| (model, created)).collect()
}

/// When a model, or the first of an alias's targets that is served, was first seen; `None` when
/// nobody serves it now.
fn served_since(api: &Api, name: &ModelName) -> Option<u64> {
    let serves = |model: &&ModelName| api.scheduler().serves(&Scope::server(), model.as_str());
    let model = match api.aliases().get(name) {
        Some(alias) => alias.targets.iter().find(serves),
        None => Some(name).filter(serves),
    };
    model.map(|model| created(api, model))
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
