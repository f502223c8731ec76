//! The parts of Ollama's API that need no job.
//!
//! - `listed`: the models that a request may use, and the known facts about them
//! - `lists`: `/api/tags`, `/api/ps` and `/api/show`
//! - `reply`: answers that show that this is a Warren
//! - `unserved`: paths that change models, which are refused, and `/api/pull`, which succeeds for served models
//! - [`without_job`]: requests that ask nothing, and raw prompts that no provider takes

mod listed;
mod lists;
mod reply;
mod unserved;
pub(crate) mod without_job;

use axum::{
    Router,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{MethodRouter, delete, get, head, post},
};
use base::Endpoint;
use http::{HeaderMap, Method, Uri, header};
use rooms::EntryError;

use self::reply::response;
use crate::{
    error::ApiError,
    head::new_id,
    read::read,
    refuse::refuse,
    request_scope::RequestScope,
    room::inference::{Code, request_scope},
    shape,
    state::Api,
    web::files,
};

/// Answers a request. The last argument is the request's body.
type Answerer = fn(&Api, &RequestScope, &[u8]) -> Result<Response, ApiError>;

/// A path whose errors have the form of Ollama's API.
const OLLAMA: &str = Endpoint::OllamaGenerate.path();

/// The longest body of a request that is answered here, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The version of Ollama's API that is spoken. Clients compare it with the oldest one that they work with.
const SPOKEN: &str = "0.12.6";

/// The paths that answer. The second field says whether the method is `GET`; otherwise it is `POST`.
const ANSWERED: [(&str, bool, Answerer); 4] = [
    ("/api/tags", true, lists::tags),
    ("/api/ps", true, lists::ps),
    ("/api/show", false, lists::show),
    ("/api/pull", false, unserved::pull),
];

/// The paths outside rooms.
pub(crate) fn routes() -> Router<Api> {
    let answered = ANSWERED.into_iter().fold(Router::new(), |router, (path, is_get, answerer)| {
        let handler = async move |State(api): State<Api>, request: Request| {
            answer(answerer, &api, None, request).await
        };
        router.route(path, by_method(is_get, handler))
    });
    answered
        .route("/api/version", get(version))
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
    answered.route("/rooms/{code}/api/version", get(version))
}

fn by_method<H: axum::handler::Handler<T, Api>, T: 'static>(
    is_get: bool,
    handler: H,
) -> MethodRouter<Api> {
    if is_get { get(handler) } else { post(handler) }
}

async fn answer(answerer: Answerer, api: &Api, code: Option<Code>, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let mut held = api.uploads().hold();
    let answered = async {
        let request_scope = match code {
            None => RequestScope::of_plain(api, &parts)?,
            Some(Ok(Path(code))) => request_scope(api, &code, &parts).await?,
            Some(Err(_)) => return Err(EntryError::Unknown.into()),
        };
        let read = read(&parts.headers, &mut body, MAX_BODY, &mut held).await?;
        answerer(api, &request_scope, &read)
    };
    match answered.await {
        Ok(response) => response,
        Err(error) => refuse(shape::of_path(OLLAMA), api, &parts, body, &error, new_id()).await,
    }
}

async fn version(State(api): State<Api>) -> Response {
    response(&api, "application/json", format!(r#"{{"version":"{SPOKEN}"}}"#))
}

/// The answer to a program that asks at `/` whether an Ollama runs here; `None` for other requests. A browser gets the
/// page at `/`.
pub(crate) fn is_running(uri: &Uri, method: &Method, headers: &HeaderMap) -> Option<Response> {
    let asks = matches!(*method, Method::GET | Method::HEAD) && uri.path() == "/";
    (asks && !files::wants_page(headers) && !headers.contains_key(header::UPGRADE))
        .then(|| "Ollama is running".into_response())
}
