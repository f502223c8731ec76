//! Paths that would change models. The models are those of the machines that lend them, and are changed
//! there.

use axum::{
    extract::{Request, State},
    response::Response,
};
use base::Endpoint;
use http::StatusCode;

use crate::{
    error::{ApiError, Kind},
    head::new_id,
    refuse::refuse,
    request_scope::RequestScope,
    shape,
    state::Api,
};

pub(super) async fn create(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "creating").await
}

pub(super) async fn copy(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "copying").await
}

pub(super) async fn delete(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "deleting").await
}

pub(super) async fn push(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "pushing").await
}

pub(super) async fn blob(State(api): State<Api>, request: Request) -> Response {
    refused(&api, request, "uploading parts of").await
}

async fn refused(api: &Api, request: Request, doing: &str) -> Response {
    let (parts, body) = request.into_parts();
    let error = RequestScope::of_plain(api, &parts).err().unwrap_or_else(|| {
        let words = format!(
            "{doing} models is not possible here: a Warren serves the models of the machines that are \
             connected to it, and they are changed on those machines"
        );
        let error = ApiError::new(StatusCode::NOT_IMPLEMENTED, Kind::Invalid, words);
        ApiError { code: Some("not_implemented"), ..error }
    });
    refuse(shape::of_path(Endpoint::OllamaGenerate.path()), api, &parts, body, &error, new_id())
        .await
}
