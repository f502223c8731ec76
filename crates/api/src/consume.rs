//! From a request to a job, the same for every API.

use axum::{extract::State, response::Response};
use base::{JobId, KeyId, ModelName, ProviderId, Scope};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, request::Parts};
use protocol::{
    json::escaped_len,
    openai::{Peek, peek, prompt_heads},
};
use scheduler::{Affinity, Job, JobRequest};

use crate::{
    body::AnswerBody,
    error::{ApiError, Kind, new_id},
    head,
    meter::UsageMeter,
    read,
    shape::Shape,
    state::{Api, Peer},
};

/// The header by which a consumer names the only provider that may serve it.
const PIN: &str = "x-warren-provider";

/// Bodies up to this size, in bytes, are looked into between two other things.
const LOOKED_INTO_AT_ONCE: usize = 256 * 1024;

/// Bodies up to this size are not measured in their escaped form: they fit in any case.
const SURELY_FITS: usize = 8 * 1024 * 1024;

/// Handles one request of an API.
pub(crate) async fn consume(
    shape: &'static dyn Shape,
    State(api): State<Api>,
    request: Request<axum::body::Body>,
) -> Response {
    let id = new_id();
    match serve(shape, &api, request, id).await {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(request_id = %id, status = error.status.as_u16(),
                message = %error.message, "refused");
            error.response(shape, id)
        }
    }
}

async fn serve(
    shape: &'static dyn Shape,
    api: &Api,
    request: Request<axum::body::Body>,
    id: JobId,
) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    let peer = Peer::of(&parts.extensions);
    let key = api.rules().admit(peer, &parts.uri, &parts.headers)?;
    let body = read::read(&parts.headers, body, api.limits().max_body).await?;
    let peek = look_into(&body).await?;
    let model = ModelName::from(&*peek.model);
    let job = job(api, id, key, &mut parts, body, &peek)?;
    let mut answer = api.scheduler().submit(job);
    let failed = |failure| ApiError::of_failure(&failure, model.as_str());
    let head = answer.head().await.map_err(failed)?;
    let body = AnswerBody::new(answer, &head, shape, model, api.limits().keepalive);
    Ok(head::for_client(head, id, axum::body::Body::new(body)))
}

/// A large body is looked into on a thread of its own, where it holds nobody up.
async fn look_into(body: &Bytes) -> Result<Peek, ApiError> {
    let looked = if body.len() <= LOOKED_INTO_AT_ONCE {
        peek(body)
    } else {
        let body = body.clone();
        let looked = tokio::task::spawn_blocking(move || peek(&body)).await;
        looked.map_err(|_| {
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
    peek: &Peek,
) -> Result<Job, ApiError> {
    let scope = Scope::server();
    let model = ModelName::from(&*peek.model);
    let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let pinned = pinned(&parts.headers)?;
    Ok(Job {
        id,
        known: api.models().knows(&scope, &model),
        scope,
        model: model.clone(),
        key,
        size: wire_size(&body),
        affinity: if api.limits().affinity { affinity(&body, peek) } else { Affinity::default() },
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
