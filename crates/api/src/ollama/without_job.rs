//! Requests that are answered without a job.
//!
//! A request that asks nothing makes an Ollama load the model, or unload it with a `keep_alive` of 0. In a Warren the
//! machine that has the model decides about its memory: the answer says only that the model is served.
//!
//! A raw prompt is refused if every provider of the model serves chat only.

use std::time::SystemTime;

use axum::response::Response;
use base::{Endpoint, Endpoints, ModelName};
use http::StatusCode;
use protocol::ollama::{
    KeepAlive, Peek,
    reply::{self, timestamp},
};

use scheduler::Route;
use translate::served_as;

use super::{listed::not_found, reply::response};
use crate::{
    error::{ApiError, Kind},
    request_scope::RequestScope,
    state::Api,
};

/// The answer to a request that needs no job; `None` for any other. `route`: how far the request may go.
///
/// # Errors
/// 400 for a `keep_alive` that cannot be read and for a raw prompt that no provider takes, 404 for a model that no
/// provider serves, and the errors of [`RequestScope::resolve`].
pub(crate) fn without_job(
    api: &Api,
    request_scope: &RequestScope,
    endpoint: Endpoint,
    model: &ModelName,
    body: &[u8],
    route: Route,
) -> Result<Option<Response>, ApiError> {
    if !endpoint.is_ollamas() {
        return Ok(None);
    }
    let Some(peek) = Peek::read(body) else { return Ok(None) };
    let keep_alive = peek.keep_alive.transpose()?;
    if !peek.is_nothing {
        let fits = endpoint != Endpoint::OllamaRaw || takes_raw(api, request_scope, model, route)?;
        return if fits { Ok(None) } else { Err(no_raw(model)) };
    }
    let targets = request_scope.resolve(api, model)?;
    let is_served = |model: &ModelName| api.scheduler().serves(request_scope.scope(), model);
    if !targets.models.iter().any(is_served) {
        return Err(not_found(api, request_scope, model));
    }
    let body = written(endpoint, model, keep_alive.is_some_and(KeepAlive::is_over));
    Ok(Some(response(api, "application/json", body)))
}

/// Whether a provider takes raw prompts for this model, or no provider of it is connected at all.
fn takes_raw(
    api: &Api,
    request_scope: &RequestScope,
    model: &ModelName,
    route: Route,
) -> Result<bool, ApiError> {
    let targets = request_scope.resolve(api, model)?.models;
    let scope = request_scope.scope();
    let endpoints = targets.iter().map(|model| api.scheduler().endpoints(scope, model, route));
    let served = endpoints.fold(Endpoints::NONE, Endpoints::union);
    Ok(served.is_empty() || served.meets(served_as(Endpoint::OllamaRaw)))
}

fn no_raw(model: &ModelName) -> ApiError {
    let words = format!(
        "`raw` and `suffix` cannot be carried over: the servers of {} have {} but not {}",
        base::plain::line(model.as_str()),
        Endpoint::ChatCompletions,
        Endpoint::Completions,
    );
    let error = ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words);
    ApiError { code: Some("endpoint_not_served"), ..error }
}

fn written(endpoint: Endpoint, model: &ModelName, unloads: bool) -> String {
    let now = base::since_1970(SystemTime::now());
    let now = timestamp(now.as_secs(), now.subsec_nanos());
    match endpoint {
        Endpoint::OllamaEmbed => reply::nothing_embedded(model.as_str()),
        Endpoint::OllamaEmbeddings => r#"{"embedding":[]}"#.to_owned(),
        _ => {
            let is_chat = endpoint == Endpoint::OllamaChat;
            reply::nothing_asked(is_chat, model.as_str(), &now, unloads)
        }
    }
}
