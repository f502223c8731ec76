//! `/api/tags`: the models; `/api/ps`: the models that are in memory; `/api/show`: the facts about one model.

use axum::response::Response;
use base::{Capabilities, LoadState};
use protocol::ollama::reply::timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    listed::{self, Details, ListedModel},
    reply::json,
};
use crate::{error::ApiError, request_scope::RequestScope, state::Api};

/// The last second of the year 9999, as the time at which a model leaves memory: only the model's machine knows when
/// that will be.
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
struct RunningModel {
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

/// The models that are in memory. A model whose backends do not say whether it is loaded is left out.
pub(super) fn ps(api: &Api, request_scope: &RequestScope, _: &[u8]) -> Result<Response, ApiError> {
    let all = listed::all(api, request_scope).into_values();
    let loaded = all.filter(|model| model.facts.load == Some(LoadState::Loaded));
    Ok(json(api, &List { models: loaded.map(RunningModel::of).collect() }))
}

impl Model {
    fn of(listed: ListedModel) -> Self {
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

impl RunningModel {
    fn of(listed: ListedModel) -> Self {
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

/// The architecture of a model whose backends do not report it.
const UNKNOWN: &str = "unknown";

#[derive(Serialize)]
struct ModelFacts {
    license: &'static str,
    modelfile: String,
    parameters: String,
    template: &'static str,
    details: Details,
    model_info: Map<String, Value>,
    capabilities: Capabilities,
    modified_at: String,
}

pub(super) fn show(
    api: &Api,
    request_scope: &RequestScope,
    body: &[u8],
) -> Result<Response, ApiError> {
    let listed = listed::named(api, request_scope, body)?;
    Ok(json(api, &ModelFacts::of(listed)))
}

impl ModelFacts {
    fn of(listed: ListedModel) -> Self {
        let context = listed.facts.context_tokens;
        Self {
            license: "",
            modelfile: format!("# A model of a Warren server.\nFROM {}\n", listed.name),
            // Some editors read the length of the context here.
            parameters: context.map(|tokens| format!("num_ctx {tokens}")).unwrap_or_default(),
            template: "{{ .Prompt }}",
            details: listed.details(),
            model_info: model_info(&listed),
            capabilities: listed.capabilities(),
            modified_at: listed.modified_at,
        }
    }
}

fn model_info(listed: &ListedModel) -> Map<String, Value> {
    let architecture = listed.facts.family.as_deref().unwrap_or(UNKNOWN);
    let known = [
        ("general.architecture".to_owned(), Some(Value::from(architecture))),
        ("general.basename".to_owned(), Some(Value::from(&*listed.name))),
        ("general.parameter_count".to_owned(), listed.facts.parameters.map(Value::from)),
        (format!("{architecture}.context_length"), listed.facts.context_tokens.map(Value::from)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
