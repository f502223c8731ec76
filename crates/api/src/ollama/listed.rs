//! The models that a request may use, and the known facts about them.

use std::collections::BTreeMap;

use base::{Capabilities, Capability, Endpoint, Endpoints, ModelFacts, ModelName};
use http::StatusCode;
use protocol::ollama::{
    peek,
    reply::{digest, parameter_size, timestamp},
};
use serde::Serialize;

use crate::{
    error::{ApiError, Kind},
    models::{details, may_use, served},
    nearest::Known,
    request_scope::RequestScope,
    state::Api,
};

/// A model that a request may use.
pub(super) struct ListedModel {
    /// Its name with its tag, as Ollama lists it.
    pub(super) name: String,
    /// When it was first seen here, as a timestamp.
    pub(super) modified_at: String,
    /// The facts that its backends report.
    pub(super) facts: ModelFacts,
    /// The endpoints at which it is served.
    endpoints: Endpoints,
}

/// The known facts about a model's files.
#[derive(Serialize)]
pub(super) struct Details {
    parent_model: &'static str,
    format: &'static str,
    family: String,
    families: Vec<String>,
    parameter_size: String,
    quantization_level: String,
}

/// All models that a request may use, by the names by which they are served.
pub(super) fn all(api: &Api, request_scope: &RequestScope) -> BTreeMap<ModelName, ListedModel> {
    let served = match request_scope.room() {
        Some(room) => served::served_in(room),
        None => served::served(api),
    };
    let known = details::of_scope(api, request_scope.scope());
    let listed = |(model, seconds)| {
        let known = details::of(api, request_scope, &known, &model);
        let (facts, endpoints) = (known.facts, known.endpoints);
        let (name, modified_at) = (with_tag(&model), timestamp(seconds, 0));
        (model, ListedModel { name, modified_at, facts, endpoints })
    };
    let usable = served.into_iter().filter(|(model, _)| may_use(request_scope, model));
    usable.map(listed).collect()
}

/// The model that a body names.
///
/// # Errors
/// 400 when the body names no model, 404 when no provider serves it.
pub(super) fn named(
    api: &Api,
    request_scope: &RequestScope,
    body: &[u8],
) -> Result<ListedModel, ApiError> {
    let missing = || {
        let words = "the request body names no `model`";
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    let asked = ModelName::from(peek::model_name(body).ok_or_else(missing)?);
    let mut all = all(api, request_scope);
    let other = || asked.with_or_without_latest();
    let found = all.remove(&asked).or_else(|| all.remove(&other()?));
    found.ok_or_else(|| not_found(api, request_scope, &asked))
}

/// The error for a model that no provider serves.
pub(super) fn not_found(api: &Api, request_scope: &RequestScope, model: &ModelName) -> ApiError {
    let (key, room) = (request_scope.admitted().key.clone(), request_scope.room().cloned());
    let near = Known { api, key, room }.nearest(model);
    let words = base::plain::line(&format!("model '{model}' not found{near}"));
    let error = ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words);
    ApiError { code: Some("model_not_found"), ..error }
}

/// The name with `:latest` where it has no tag: Ollama lists no name without one.
fn with_tag(model: &ModelName) -> String {
    let other = model.with_or_without_latest();
    let longer = other.filter(|other| other.as_str().len() > model.as_str().len());
    longer.unwrap_or_else(|| model.clone()).to_string()
}

impl ListedModel {
    pub(super) fn digest(&self) -> String {
        digest(&self.name)
    }

    /// The model's size in bytes; 0 if it is not known.
    pub(super) fn size(&self) -> u64 {
        self.facts.file_bytes.or(self.facts.memory_bytes).unwrap_or(0)
    }

    pub(super) fn details(&self) -> Details {
        let facts = &self.facts;
        let family = facts.family.as_deref().unwrap_or_default().to_owned();
        Details {
            parent_model: "",
            format: if facts.quantization.is_some() { "gguf" } else { "" },
            families: Some(family.clone())
                .filter(|family| !family.is_empty())
                .into_iter()
                .collect(),
            family,
            parameter_size: facts.parameters.map(parameter_size).unwrap_or_default(),
            quantization_level: facts.quantization.as_deref().unwrap_or_default().to_owned(),
        }
    }

    /// Its capabilities: those that its backends report, else those that the endpoints show. A model that generates is
    /// taken to call tools: where it cannot, its backend says so when it is asked.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.facts.capabilities.unwrap_or_else(|| {
            let generates = Endpoints::iter(self.endpoints).any(Endpoint::generates);
            match generates || self.endpoints.is_empty() {
                true => [Capability::Completion, Capability::Tools].into_iter().collect(),
                false => [Capability::Embedding].into_iter().collect(),
            }
        })
    }
}
