//! The tokens of a prompt, for Anthropic's and Gemini's clients: counted by the model's own server if it can, or else
//! estimated.

use std::time::Duration;

use axum::response::Response;
use base::{Endpoint, JobId};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use protocol::{anthropic, json::mended};
use scheduler::Job;
use tokio::time::timeout;
use translate::{BadRequest, Context, gemini_count};

use crate::{
    answer::{AdmittedJob, answer},
    blocking::off_thread,
    error::ApiError,
    head,
    shape::Shape,
    state::Api,
};

/// The header that marks a number as an estimate of this server.
const USAGE: HeaderName = HeaderName::from_static("x-warren-usage");

/// How long a worker may take to count. Counting is quick, so a worker that has not answered by then is busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts the tokens of one prompt. If the model's server cannot count, the answer is an estimate, because
/// clients ask often and continue with any number.
pub(crate) async fn count(api: &Api, accepted: AdmittedJob) -> Result<Response, ApiError> {
    let (shape, id, body) = (accepted.shape, accepted.job.id, accepted.job.request.body.clone());
    let len = body.len();
    if can_count(api, &accepted.job)
        && let Ok(Ok(response)) = timeout(PATIENCE, answer(api, accepted)).await
        && !is_no_count(response.status())
    {
        return Ok(response);
    }
    let counting = move || {
        estimate(shape, &body).or_else(|bad| match mended(&body) {
            Some(mended) => estimate(shape, mended.as_bytes()),
            None => Err(bad),
        })
    };
    let tokens = off_thread(len, counting).await??;
    tracing::info!(target: "request", request_id = %id, path = shape.endpoint().path(),
        outcome = "estimated", tokens);
    Ok(estimated(shape, id, tokens))
}

/// The tokens of a prompt in the shape of this API.
fn estimate(shape: &dyn Shape, body: &[u8]) -> Result<u64, BadRequest> {
    if shape.endpoint() == Endpoint::GeminiCountTokens {
        return anthropic::count_tokens(&gemini_count::request(body, &Context::default())?);
    }
    anthropic::count_tokens(body)
}

fn can_count(api: &Api, job: &Job) -> bool {
    let endpoints = |target| api.scheduler().endpoints(&job.scope, target, job.route);
    job.targets.iter().any(|target| endpoints(target).contains(Endpoint::CountTokens))
}

/// Whether a backend's answer means that it cannot count, or not now.
fn is_no_count(status: StatusCode) -> bool {
    let unserved = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
    unserved.contains(&status) || status.is_server_error()
}

fn estimated(shape: &dyn Shape, id: JobId, tokens: u64) -> Response {
    let text = match shape.endpoint() {
        Endpoint::GeminiCountTokens => gemini_count::total(tokens),
        _ => format!("{{\"input_tokens\":{tokens}}}"),
    };
    let body = Bytes::from(text);
    let mut response = Response::new(axum::body::Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USAGE, HeaderValue::from_static("estimated"));
    head::put_job_id(headers, shape, id);
    response
}
