//! Gemini's API: `/v1beta/models/{model}:{method}`, and the same under `/v1` and `tunedModels`.
//!
//! - `models`: the models in Gemini's form
//! - `key`: the key in a query, which is taken out before anything else reads the request or passes it on

mod key;
mod models;

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::{get, post},
};
use base::Endpoint;
use http::{Method, StatusCode, Uri};
use protocol::gemini::{Call, Form};

pub(crate) use self::key::settle as settle_key;
use crate::{
    consume,
    error::{ApiError, Kind, nothing_at},
    head::new_id,
    models as all_models, paths,
    shape::{self, Shape, in_room::InRoom},
    state::Api,
};

/// The paths of Gemini's collections of models, except `/v1/models`, which OpenAI's clients use, too.
const OWN: [&str; 3] = ["/v1beta/models", "/v1beta/tunedModels", "/v1/tunedModels"];

/// The path of a model, for OpenAI's and Gemini's clients, and of Gemini's calls.
const SHARED: &str = "/v1/models/{*id}";

/// Gemini's paths outside rooms.
pub(crate) fn routes() -> Router<Api> {
    let own = OWN.into_iter().fold(Router::new(), |router, path| {
        let one = format!("{path}/{{*id}}");
        router.route(path, get(models::list)).route(&one, get(models::show).post(call))
    });
    own.route(SHARED, get(show_shared).post(call))
        .route("/v1/models", get(list_shared))
        .route("/v1beta/{*rest}", axum::routing::any(nothing))
}

/// The models in the form of the client that asks: Gemini's or OpenAI's.
async fn list_shared(state: State<Api>, request: Request) -> Response {
    if models::asks_for(&request) {
        return models::list(state, request).await;
    }
    all_models::list(state, request).await
}

/// A model in the form of the client that asks.
async fn show_shared(
    state: State<Api>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    if models::asks_for(&request) {
        return models::show(state, request).await;
    }
    all_models::show(state, id, request).await
}

/// The paths of calls alone, for requests that another server carries to this one.
pub(crate) fn calls() -> Router<Api> {
    let own = OWN.into_iter().map(|path| format!("{path}/{{*id}}"));
    own.chain([SHARED.to_owned()])
        .fold(Router::new(), |router, path| router.route(&path, post(call)))
}

/// The paths of calls in a room, without the room's own part. `room` routes them.
pub(crate) fn paths_in_room() -> impl Iterator<Item = String> {
    OWN.into_iter().map(|path| format!("{path}/{{*id}}")).chain([SHARED.to_owned()])
}

/// Serves a call.
async fn call(State(api): State<Api>, mut request: Request) -> Response {
    settle_key(&mut request);
    match shape_of(request.uri()) {
        Some(shape) => consume::consume(shape, State(api), request).await,
        None => nothing(request).await,
    }
}

/// The shape of a call.
fn shape_of(uri: &Uri) -> Option<&'static dyn Shape> {
    let call = Call::of(paths::path(uri), uri.query())?;
    Some(if call.form == Form::Array { shape::GEMINI_ARRAY } else { shape::of(call.endpoint) })
}

/// The shape of a call in a room.
pub(crate) fn shape_in_room(uri: &Uri) -> Option<&'static InRoom> {
    let call = Call::of(paths::path(uri), uri.query())?;
    match call.form {
        Form::Array => Some(&shape::in_room::GEMINI_ARRAY),
        _ => shape::in_room::ALL.iter().find(|shape| shape.endpoint() == call.endpoint),
    }
}

/// Answers requests for what Google's API has and this server does not.
async fn nothing(request: Request) -> Response {
    let shape = shape::of(Endpoint::GeminiGenerate);
    no_such_thing(request.method(), request.uri()).response(shape, new_id())
}

pub(crate) fn no_such_thing(method: &Method, uri: &Uri) -> ApiError {
    let path = paths::path(uri);
    if method != Method::POST && Call::of(path, None).is_some() {
        let words = format!("{method} is not a method of {path}");
        return ApiError::new(StatusCode::METHOD_NOT_ALLOWED, Kind::Invalid, words);
    }
    let named = path.rsplit_once(':').map(|(_, method)| method).filter(|it| !it.contains('/'));
    match named {
        Some(named) => {
            let named = base::plain::line(protocol::json::clip(named, 64));
            let words = format!(
                "`{named}` is not served here; models have generateContent, streamGenerateContent, countTokens, \
                 embedContent and batchEmbedContents"
            );
            ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
        }
        None => nothing_at(uri),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_in_the_form_that_it_asks_for() {
        let shape = |uri: &'static str| shape_of(&Uri::from_static(uri));
        let stream = "/v1beta/models/m:streamGenerateContent";
        assert_eq!(shape(stream).unwrap().stream_type(), "application/json");
        let events = shape("/v1beta/models/m:streamGenerateContent?alt=sse").unwrap();
        assert_eq!(events.stream_type(), "text/event-stream");
        let counts = shape("/v1/models/m:countTokens").unwrap();
        assert_eq!(counts.endpoint(), Endpoint::GeminiCountTokens);
        assert!(shape("/v1beta/models/m").is_none());
    }

    #[test]
    fn what_is_not_served_is_said_by_its_name() {
        let refusal = |method: Method, uri: &'static str| {
            let error = no_such_thing(&method, &Uri::from_static(uri));
            (error.status.as_u16(), error.message.into_owned())
        };
        let (status, words) = refusal(Method::POST, "/v1beta/models/m:streamEmbedContent");
        assert!(status == 404 && words.starts_with("`streamEmbedContent` is not served here; "));
        let (status, _) = refusal(Method::GET, "/v1beta/models/m:generateContent");
        assert_eq!(status, 405);
        let (status, words) = refusal(Method::POST, "/v1beta/cachedContents");
        assert_eq!((status, &*words), (404, "there is nothing at /v1beta/cachedContents"));
    }
}
