//! `/api/tags`: the models; `/api/ps`: those of them that are in memory.

use axum::response::Response;
use base::LoadState;
use protocol::ollama::reply::timestamp;
use serde::Serialize;

use super::{
    listed::{self, Details, Listed},
    reply::json,
};
use crate::{error::ApiError, request_scope::RequestScope, state::Api};

/// The last second of the year 9999: how long a model stays in memory is its machine's to say.
const NEVER: u64 = 253_402_300_799;

#[derive(Serialize)]
struct List<T> {
    models: Vec<T>,
}

#[derive(Serialize)]
struct Model {
    name: String,
    model: String,
    modified_at: String,
    size: u64,
    digest: String,
    details: Details,
}

#[derive(Serialize)]
struct Loaded {
    name: String,
    model: String,
    size: u64,
    digest: String,
    details: Details,
    expires_at: String,
    size_vram: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
}

pub(super) fn tags(
    api: &Api,
    request_scope: &RequestScope,
    _: &[u8],
) -> Result<Response, ApiError> {
    let all = listed::all(api, request_scope).into_values();
    Ok(json(api, &List { models: all.map(Model::of).collect() }))
}

/// Models whose backends do not say whether they are loaded are left out.
pub(super) fn ps(api: &Api, request_scope: &RequestScope, _: &[u8]) -> Result<Response, ApiError> {
    let all = listed::all(api, request_scope).into_values();
    let loaded = all.filter(|model| model.facts.load == Some(LoadState::Loaded));
    Ok(json(api, &List { models: loaded.map(Loaded::of).collect() }))
}

impl Model {
    fn of(listed: Listed) -> Self {
        Self {
            size: listed.size(),
            digest: listed.digest(),
            details: listed.details(),
            model: listed.name.clone(),
            name: listed.name,
            modified_at: listed.modified_at,
        }
    }
}

impl Loaded {
    fn of(listed: Listed) -> Self {
        let size = listed.facts.memory_bytes.unwrap_or_else(|| listed.size());
        Self {
            size,
            digest: listed.digest(),
            details: listed.details(),
            model: listed.name.clone(),
            name: listed.name,
            expires_at: timestamp(NEVER, 0),
            size_vram: size,
            context_length: listed.facts.context_tokens,
        }
    }
}
