//! The models that a request may use, and what is known of them.

use std::collections::BTreeMap;

use base::{Capabilities, Capability, Endpoint, Endpoints, ModelFacts, ModelName};
use http::StatusCode;
use protocol::ollama::{
    asked,
    reply::{digest, parameter_size, timestamp},
};
use scheduler::Route;
use serde::Serialize;

use crate::{
    error::{ApiError, Kind},
    models::{may_use, served},
    nearest::Known,
    request_scope::RequestScope,
    state::Api,
};

/// A model that a request may use.
pub(super) struct Listed {
    /// Its name with its tag, as Ollama lists it.
    pub(super) name: String,
    /// When it was first seen here, as a timestamp.
    pub(super) modified_at: String,
    /// What its backends say of it.
    pub(super) facts: ModelFacts,
    /// The shapes in which it is served.
    endpoints: Endpoints,
}

/// What is known of a model's files.
#[derive(Serialize)]
pub(super) struct Details {
    parent_model: &'static str,
    format: &'static str,
    family: String,
    families: Vec<String>,
    parameter_size: String,
    quantization_level: String,
}

/// All that a request may use, by the names that they are served by.
pub(super) fn all(api: &Api, request_scope: &RequestScope) -> BTreeMap<ModelName, Listed> {
    let served = match request_scope.room() {
        Some(room) => served::served_in(room),
        None => served::served(api),
    };
    let facts = Facts::of(api, request_scope);
    let listed = served.into_iter().filter(|(model, _)| may_use(request_scope, model));
    listed
        .map(|(model, seconds)| {
            let listed = facts.listed(api, request_scope, &model, seconds);
            (model, listed)
        })
        .collect()
}

/// The model that a body names.
///
/// # Errors
/// 400 when it names none, 404 when nobody serves it.
pub(super) fn named(
    api: &Api,
    request_scope: &RequestScope,
    body: &[u8],
) -> Result<Listed, ApiError> {
    let missing = || {
        let words = "the request body names no `model`";
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    let asked = ModelName::from(asked::model_name(body).ok_or_else(missing)?);
    let mut all = all(api, request_scope);
    let other = || asked.with_or_without_latest();
    let found = all.remove(&asked).or_else(|| all.remove(&other()?));
    found.ok_or_else(|| not_found(api, request_scope, &asked))
}

/// The error for a model that nobody serves.
pub(super) fn not_found(api: &Api, request_scope: &RequestScope, model: &ModelName) -> ApiError {
    let (key, room) = (request_scope.admitted().key.clone(), request_scope.room().cloned());
    let near = Known { api, key, room }.nearest(model);
    let words = base::plain::line(&format!("model '{model}' not found{near}"));
    let error = ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words);
    ApiError { code: Some("model_not_found"), ..error }
}

/// The facts of all models of a scope.
struct Facts(BTreeMap<String, ModelFacts>);

impl Facts {
    fn of(api: &Api, request_scope: &RequestScope) -> Self {
        let mut all: BTreeMap<String, ModelFacts> = BTreeMap::new();
        let workers = api.scheduler().status().workers.into_iter();
        for worker in workers.filter(|worker| worker.scope == *request_scope.scope()) {
            for (name, facts) in &*worker.model_facts {
                let known = all.remove(name).unwrap_or_default();
                all.insert(name.clone(), known.or(facts.clone()));
            }
        }
        Self(all)
    }

    fn listed(
        &self,
        api: &Api,
        request_scope: &RequestScope,
        model: &ModelName,
        seconds: u64,
    ) -> Listed {
        let served = first_target(api, request_scope, model);
        let endpoints = api.scheduler().endpoints(request_scope.scope(), &served, Route::default());
        Listed {
            name: with_tag(model),
            modified_at: timestamp(seconds, 0),
            facts: self.0.get(served.as_str()).cloned().unwrap_or_default(),
            endpoints,
        }
    }
}

/// The model behind a name: of an alias the first target that is served.
fn first_target(api: &Api, request_scope: &RequestScope, name: &ModelName) -> ModelName {
    let scope = request_scope.scope();
    let alias = api.aliases().get(name).filter(|_| request_scope.room().is_none());
    let targets = alias.into_iter().flat_map(|alias| &alias.targets);
    let mut served = targets.map(|target| served::known_as(api, scope, target));
    let is_served = |model: &ModelName| api.scheduler().serves(scope, model.as_str());
    served.find(is_served).unwrap_or_else(|| name.clone())
}

/// The name with `:latest` where it has no tag: Ollama lists no name without one.
fn with_tag(model: &ModelName) -> String {
    let other = model.with_or_without_latest();
    let longer = other.filter(|other| other.as_str().len() > model.as_str().len());
    longer.unwrap_or_else(|| model.clone()).to_string()
}

impl Listed {
    pub(super) fn digest(&self) -> String {
        digest(&self.name)
    }

    /// In bytes; 0 where it is not known.
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

    /// What it can do: what its backends say, else what the endpoints show. A model that generates is taken to
    /// call tools: where it cannot, its backend says so when it is asked.
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
