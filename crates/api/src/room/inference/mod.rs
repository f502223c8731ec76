//! `/rooms/{code}/v1/…`: every API, served by the participants of one room.
//!
//! - `models`: the participants as models
//! - `responses`: earlier responses, fetched again

mod models;
mod responses;

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use base::KeyScope;
use http::request::Parts;
use rooms::EntryError;

use super::access::{enter, find};
use crate::{
    consume,
    error::ApiError,
    gemini,
    request_scope::RequestScope,
    shape::{
        Shape,
        in_room::{self, InRoom},
        is_first,
    },
    state::Api,
};

pub(super) fn routes() -> Router<Api> {
    const RESPONSE: &str = "/rooms/{code}/v1/responses/{id}";
    let first = in_room::ALL.iter().filter(|shape| is_first(shape.endpoint()));
    let apis = first.fold(Router::new(), |router, shape| {
        router.route(&format!("/rooms/{{code}}{}", shape.endpoint().path()), consumer(shape))
    });
    let apis = gemini::paths_in_room()
        .fold(apis, |router, path| router.route(&format!("/rooms/{{code}}{path}"), post(call)));
    apis.route("/rooms/{code}/v1/models", get(models::list))
        .route(RESPONSE, get(responses::show).delete(responses::delete))
        .route(&format!("{RESPONSE}/cancel"), post(responses::show))
        .route(&format!("{RESPONSE}/input_items"), get(responses::show))
}

pub(crate) type Code = Result<Path<String>, PathRejection>;

fn consumer(shape: &'static InRoom) -> MethodRouter<Api> {
    post(async move |State(api): State<Api>, code: Code, request: Request| {
        consume_in_room(shape, &api, code, request).await
    })
}

/// Serves a call of Gemini's, whose path names the model.
async fn call(
    State(api): State<Api>,
    code: Result<Path<(String, String)>, PathRejection>,
    mut request: Request,
) -> Response {
    gemini::settle_key(&mut request);
    match gemini::shape_in_room(request.uri()) {
        Some(shape) => {
            let code = code.map(|Path((code, _))| Path(code));
            consume_in_room(shape, &api, code, request).await
        }
        None => gemini::no_such_thing(request.method(), request.uri()).into_response(),
    }
}

async fn consume_in_room(
    shape: &'static InRoom,
    api: &Api,
    code: Code,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    shape.adapt(&mut parts.headers);
    let request_scope = match code {
        Ok(Path(code)) => request_scope(api, &code, &parts).await,
        Err(_) => Err(EntryError::Unknown.into()),
    };
    consume::serve(shape, api, request_scope, parts, body).await
}

/// The scope of a request that names a room by its code. A key of the server counts only in the room that it
/// is bound to: there it replaces the password, and its limits apply. In a room without a password an invalid key is
/// refused.
pub(crate) async fn request_scope(
    api: &Api,
    code: &str,
    parts: &Parts,
) -> Result<RequestScope, ApiError> {
    if let Some(bound) = with_bound_key(api, code, parts)? {
        return Ok(bound);
    }
    let room = enter(api, parts, code).await?;
    if !room.source().is_guarded() {
        // The text is not a password, so it is meant as a key.
        api.rules().check_key(&parts.headers, access::Moment::now())?;
    }
    Ok(RequestScope::for_anybody(room))
}

/// The scope of a request with a key that is bound to the room.
fn with_bound_key(api: &Api, code: &str, parts: &Parts) -> Result<Option<RequestScope>, ApiError> {
    let Some(shown) = access::presented(&parts.headers).filter(|text| access::has_key_form(text))
    else {
        return Ok(None);
    };
    let room = find(api, parts, code)?;
    let (keys, now) = (api.keys(), access::Moment::now());
    let key = keys.present_in(room.id(), shown, KeyScope::Inference, now)?;
    let page_session = keys.page_session_of(shown, now);
    Ok(key.map(|key| RequestScope::with_key(room, key, page_session)))
}
