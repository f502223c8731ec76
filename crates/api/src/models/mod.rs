//! `GET /v1/models` and `/v1/models/{id}`: the models that are served now, in the form of the client's API. A client
//! whose key is bound to a room sees the models of the room's participants.
//!
//! - `served`: which models are served, by which names, and since when
//! - `details`: the known facts about them
//! - `openai`, `anthropic`: the forms of the two APIs

mod anthropic;
pub(crate) mod details;
mod openai;
pub(crate) mod served;

use std::collections::BTreeMap;

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use base::ModelName;
use http::{HeaderMap, HeaderName, StatusCode, header, request::Parts};

use self::{
    details::{Details, ModelEntry},
    served::{served, served_in, served_since},
};
use crate::{
    error::{self, ApiError, Kind},
    head::new_id,
    nearest::Known,
    request_scope::RequestScope,
    shape,
    state::Api,
};

/// The header that shows a worker in search of backends that this is a Warren.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-warren-version");

/// The API whose form the client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OpenAi,
    Anthropic,
}

impl Form {
    /// Anthropic's clients send the version of its API, or a key in Anthropic's own header.
    fn of(headers: &HeaderMap) -> Self {
        let key = headers.contains_key("x-api-key") && !headers.contains_key(header::AUTHORIZATION);
        match headers.contains_key(protocol::anthropic::VERSION_HEADER) || key {
            true => Self::Anthropic,
            false => Self::OpenAi,
        }
    }

    fn refusal(self, error: &ApiError) -> Response {
        let path = match self {
            Self::OpenAi => "",
            Self::Anthropic => "/v1/messages",
        };
        error.response(shape::of_path(path), new_id())
    }
}

pub(crate) async fn list(State(api): State<Api>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let form = Form::of(&parts.headers);
    let listed = all(&api, &parts).and_then(|models| match form {
        Form::OpenAi => Ok(openai::list(&models)),
        Form::Anthropic => anthropic::page(&models, parts.uri.query().unwrap_or_default()),
    });
    listed.map_or_else(|error| form.refusal(&error), |body| json(&api, body))
}

pub(crate) async fn show(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let form = Form::of(&parts.headers);
    let shown = one(&api, id, &parts).map(|model| match form {
        Form::OpenAi => openai::one(&model),
        Form::Anthropic => anthropic::one(&model),
    });
    shown.map_or_else(|error| form.refusal(&error), |body| json(&api, body))
}

/// The models that the caller may use.
fn all(api: &Api, parts: &Parts) -> Result<Vec<ModelEntry>, ApiError> {
    let scope = RequestScope::of_plain(api, parts)?;
    let models = scope.room().map_or_else(|| served(api), |room| served_in(room));
    let known = known(api, &scope, parts);
    let models = models.into_iter().filter(|(model, _)| may_use(&scope, model));
    let listed =
        |(id, created)| ModelEntry { details: details::of(api, &scope, &known, &id), id, created };
    Ok(models.map(listed).collect())
}

fn one(
    api: &Api,
    id: Result<Path<String>, PathRejection>,
    parts: &Parts,
) -> Result<ModelEntry, ApiError> {
    let scope = RequestScope::of_plain(api, parts)?;
    let Path(id) = id.map_err(|_| error::nothing_at(&parts.uri))?;
    let wanted = ModelName::from(id);
    let in_room = scope.room().map(|room| served_in(room));
    let since = |model: &ModelName| match &in_room {
        Some(served) => served.get(model).copied(),
        None => served_since(api, model),
    };
    let other = wanted.with_or_without_latest().filter(|other| since(other).is_some());
    let model = other.filter(|_| since(&wanted).is_none()).unwrap_or(wanted);
    if let Some(created) = since(&model).filter(|_| may_use(&scope, &model)) {
        let details = details::of(api, &scope, &known(api, &scope, parts), &model);
        return Ok(ModelEntry { id: model, created, details });
    }
    let (key, room) = (scope.admitted().key.clone(), scope.room().cloned());
    let near = Known { api, key, room }.nearest(&model);
    let words = format!("no provider for model {model}{near}");
    Err(ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words))
}

/// The known facts about the models of the scope. Strangers and members of a room do not learn the names of machines.
fn known(api: &Api, scope: &RequestScope, parts: &Parts) -> BTreeMap<ModelName, Details> {
    let trusted = api.is_trusted(&parts.extensions, &parts.uri, &parts.headers);
    let mut known = details::of_scope(api, scope.scope());
    if scope.room().is_some() || !trusted {
        known.values_mut().for_each(|details| details.machines.clear());
    }
    known
}

/// Whether the request's key may use a model. A list leaves out the models that it may not use.
pub(crate) fn may_use(scope: &RequestScope, model: &ModelName) -> bool {
    scope.admitted().key.as_ref().is_none_or(|key| key.allows(model.as_str()))
}

fn json(api: &Api, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (VERSION, api.version())];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_tell_whose_client_it_is() {
        let form = |names: &[&'static str]| {
            let header = |name: &&'static str| {
                (HeaderName::from_static(name), http::HeaderValue::from_static("x"))
            };
            Form::of(&names.iter().map(header).collect())
        };
        assert_eq!(form(&[]), Form::OpenAi);
        assert_eq!(form(&["authorization"]), Form::OpenAi);
        assert_eq!(form(&["authorization", "x-api-key"]), Form::OpenAi);
        assert_eq!(form(&["x-api-key"]), Form::Anthropic);
        assert_eq!(form(&["authorization", "anthropic-version"]), Form::Anthropic);
    }
}
