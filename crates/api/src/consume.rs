//! From a request to a job, the same for every API.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, Scope};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, request::Parts};
use protocol::{
    json::escaped_len,
    openai::{BadBody, Peek, peek, prompt_heads},
};
use scheduler::{Affinity, Job, JobRequest, Unchanged};

use crate::{
    body::AnswerBody,
    error::{ApiError, Kind, new_id},
    head,
    meter::UsageMeter,
    read,
    shape::Shape,
    state::{Api, Peer},
    uploads::Held,
};

/// The header by which a consumer names the only provider that may serve it.
const PIN: &str = "x-warren-provider";

/// Bodies up to this size, in bytes, are looked into between two other things.
const LOOKED_INTO_AT_ONCE: usize = 256 * 1024;

/// Bodies up to this size, in bytes, are not measured in their escaped form: they fit into the
/// 60 MiB of a stock worker in any case, since no byte of JSON takes more than two there.
const SURELY_FITS: usize = 29 * 1024 * 1024;

/// Handles one request of an API.
pub(crate) async fn consume(
    shape: &'static dyn Shape,
    State(api): State<Api>,
    request: Request<axum::body::Body>,
) -> Response {
    let id = new_id();
    let (mut parts, mut body) = request.into_parts();
    let mut held = api.uploads().hold();
    match accept(&api, &mut parts, &mut body, &mut held, id).await {
        Ok(job) => {
            let answered = answer(shape, &api, job).await;
            answered.unwrap_or_else(|error| error.response(shape, id))
        }
        Err(error) => {
            refused(&api, &parts, &error, id);
            read::discard(&parts.headers, body).await;
            error.response(shape, id)
        }
    }
}

/// Those that never become jobs are in no request log but this, and in no other count.
fn refused(api: &Api, parts: &Parts, error: &ApiError, id: JobId) {
    let status = error.status.as_u16();
    api.refusals().count(error.status);
    tracing::info!(target: "request", request_id = %id, path = parts.uri.path(),
        outcome = "refused", status, message = %error.message);
}

async fn accept(
    api: &Api,
    parts: &mut Parts,
    body: &mut axum::body::Body,
    held: &mut Held<'_>,
    id: JobId,
) -> Result<Job, ApiError> {
    let peer = Peer::of(&parts.extensions);
    let key = api.rules().admit(peer, &parts.uri, &parts.headers)?;
    let body = read::read(&parts.headers, body, api.limits().max_body, held).await?;
    let looked = look_into(&body, api.limits().affinity).await?;
    job(api, id, key, parts, body, looked)
}

async fn answer(shape: &'static dyn Shape, api: &Api, job: Job) -> Result<Response, ApiError> {
    let (id, model) = (job.id, job.model.clone());
    let mut answer = api.scheduler().submit(job);
    let failed = |failure| ApiError::of_failure(&failure, model.as_str());
    let mut head = answer.head().await.map_err(failed)?;
    head::drop_bad_length(&mut head.headers);
    let body = AnswerBody::new(answer, &head, shape, model, api.limits().keepalive);
    Ok(head::for_client(head, id, axum::body::Body::new(body)))
}

/// What a job's body says of itself.
struct Looked {
    peek: Peek,
    size: u64,
    affinity: Affinity,
}

impl Looked {
    fn into(body: &[u8], with_affinity: bool) -> Result<Self, BadBody> {
        let peek = peek(body)?;
        let affinity = if with_affinity { affinity(body, &peek) } else { Affinity::default() };
        Ok(Self { size: wire_size(body), affinity, peek })
    }
}

/// A large body is looked into on a thread of its own, where it holds nobody up.
async fn look_into(body: &Bytes, with_affinity: bool) -> Result<Looked, ApiError> {
    let looked = if body.len() <= LOOKED_INTO_AT_ONCE {
        Looked::into(body, with_affinity)
    } else {
        let body = body.clone();
        let looking = tokio::task::spawn_blocking(move || Looked::into(&body, with_affinity));
        looking.await.map_err(|_| {
            let words = "the request body could not be read";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Server, words)
        })?
    };
    looked.map_err(|bad| ApiError::from(&bad))
}

fn job(
    api: &Api,
    id: JobId,
    key: KeyId,
    parts: &mut Parts,
    body: Bytes,
    looked: Looked,
) -> Result<Job, ApiError> {
    let Looked { peek, size, affinity } = looked;
    let scope = Scope::server();
    let model = ModelName::from(&*peek.model);
    let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let pinned = pinned(&parts.headers)?;
    let endpoint = Endpoint::of_path(parts.uri.path()).unwrap_or(Endpoint::ChatCompletions);
    Ok(Job {
        id,
        known: api.models().knows(&scope, &model),
        scope,
        model: model.clone(),
        targets: vec![model.clone()],
        endpoint,
        serve_as: Endpoints::only(endpoint),
        translator: Arc::new(Unchanged(endpoint)),
        key,
        size,
        affinity,
        pinned,
        request: JobRequest {
            path_and_query: path_and_query.to_owned(),
            model,
            streaming: peek.stream,
            headers: head::for_provider(std::mem::take(&mut parts.headers)),
            body,
        },
        meter: Box::<UsageMeter>::default(),
    })
}

/// The size in the larger of the two forms that a body travels in: as a JSON string.
fn wire_size(body: &[u8]) -> u64 {
    if body.len() <= SURELY_FITS {
        return body.len() as u64;
    }
    std::str::from_utf8(body).map_or(body.len(), escaped_len) as u64
}

fn affinity(body: &[u8], peek: &Peek) -> Affinity {
    let prompt = peek.prompt_span.clone().and_then(|span| body.get(span)).unwrap_or_default();
    Affinity { heads: prompt_heads(prompt) }
}

fn pinned(headers: &HeaderMap) -> Result<Option<ProviderId>, ApiError> {
    let Some(value) = headers.get(PIN) else { return Ok(None) };
    let pinned = value.to_str().ok().and_then(|value| value.parse().ok());
    let bad = || {
        let words = format!("{PIN} must name a worker by its id, such as w-0123456789abcdef");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    pinned.map(Some).ok_or_else(bad)
}
