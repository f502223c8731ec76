//! Ollama's API beside its jobs.
//!
//! - `listed`: the models that a request may use, and what is known of them
//! - `lists`: `/api/tags` and `/api/ps`
//! - `show`: `/api/show`
//! - `pull`: `/api/pull`, which reports what is there
//! - `unserved`: paths that change models, which are refused
//! - `running`: `/` and `/api/version`
//! - `without_job`: requests that ask nothing, and raw prompts that nobody takes

mod listed;
mod lists;
mod pull;
mod running;
mod show;
mod unserved;
mod without_job;

use axum::{
    Router,
    extract::{Path, Request, State},
    response::Response,
    routing::{MethodRouter, delete, get, head, post},
};
use base::Endpoint;
use http::{HeaderValue, header};
use rooms::Refused;

pub(crate) use running::is_running;
pub(crate) use without_job::without_job;

use crate::{
    consume::refuse,
    error::ApiError,
    head::new_id,
    models::VERSION,
    read::read,
    request_scope::RequestScope,
    room::inference::{Code, request_scope},
    shape::{self, Shape},
    state::Api,
};

/// Answers a request with this body.
type Answerer = fn(&Api, &RequestScope, &[u8]) -> Result<Response, ApiError>;

/// The longest body of these requests, in bytes. Bodies of refused ones are not read.
const MAX_BODY: usize = 64 * 1024;

/// The paths that answer, each with its method.
const ANSWERED: [(&str, bool, Answerer); 4] = [
    ("/api/tags", true, lists::tags),
    ("/api/ps", true, lists::ps),
    ("/api/show", false, show::show),
    ("/api/pull", false, pull::pull),
];

/// The paths of the server.
pub(crate) fn routes() -> Router<Api> {
    let answered = ANSWERED.into_iter().fold(Router::new(), |router, (path, is_get, answerer)| {
        let handler = async move |State(api): State<Api>, request: Request| {
            answer(answerer, &api, None, request).await
        };
        router.route(path, by_method(is_get, handler))
    });
    answered
        .route("/api/version", get(running::version))
        .route("/api/create", post(unserved::create))
        .route("/api/copy", post(unserved::copy))
        .route("/api/delete", delete(unserved::delete))
        .route("/api/push", post(unserved::push))
        .route("/api/blobs/{digest}", head(unserved::blob).post(unserved::blob))
}

/// The paths of rooms.
pub(crate) fn routes_of_rooms() -> Router<Api> {
    let answered = ANSWERED.into_iter().fold(Router::new(), |router, (path, is_get, answerer)| {
        let handler = async move |State(api): State<Api>, code: Code, request: Request| {
            answer(answerer, &api, Some(code), request).await
        };
        router.route(&format!("/rooms/{{code}}{path}"), by_method(is_get, handler))
    });
    answered.route("/rooms/{code}/api/version", get(running::version))
}

fn by_method<H: axum::handler::Handler<T, Api>, T: 'static>(
    is_get: bool,
    handler: H,
) -> MethodRouter<Api> {
    if is_get { get(handler) } else { post(handler) }
}

/// The shape of errors at these paths.
fn shape() -> &'static dyn Shape {
    shape::of_path(Endpoint::OllamaGenerate.path())
}

async fn answer(answerer: Answerer, api: &Api, code: Option<Code>, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let mut held = api.uploads().hold();
    let answered = async {
        let request_scope = match code {
            None => RequestScope::of_plain(api, &parts)?,
            Some(Ok(Path(code))) => request_scope(api, &code, &parts).await?,
            Some(Err(_)) => return Err(Refused::Unknown.into()),
        };
        let read = read(&parts.headers, &mut body, MAX_BODY, &mut held).await?;
        answerer(api, &request_scope, &read)
    };
    match answered.await {
        Ok(response) => response,
        Err(error) => refuse(shape(), api, &parts, body, &error, new_id()).await,
    }
}

/// An answer of this type, which shows that the server is a Warren: one that looks for model servers must not
/// take it for an Ollama.
fn response(api: &Api, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(axum::body::Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(VERSION, HeaderValue::from_static(api.version()));
    response
}

fn json(api: &Api, value: &impl serde::Serialize) -> Response {
    response(api, "application/json", protocol::json::write(value))
}
