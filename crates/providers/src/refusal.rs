//! Refusals: of jobs that a provider's protocol cannot carry, and of links.

use base::JobId;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use protocol::openai::error_body;
use scheduler::{AnswerWriter, Head, WriteError};

use crate::incoming::REFUSED;

/// Answers a job with an error as JSON, in the provider's place.
pub(crate) fn answer_error(mut writer: AnswerWriter, status: StatusCode, body: String) {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    let head = Head { status, headers };
    match writer.head(head).and_then(|()| writer.chunk(body.into())) {
        Ok(_) => writer.end(),
        Err(WriteError::Refused) => writer.fail(REFUSED),
        Err(_) => writer.abandon(),
    }
}

/// Hands a job that this provider's protocol cannot carry to a provider that may have another
/// protocol. Without one the job is answered with 501.
pub(crate) fn cannot_ask(job: JobId, writer: AnswerWriter, method: &Method) {
    let Err(writer) = writer.pass_on() else { return };
    tracing::warn!(request_id = %job, %method, "the provider cannot be asked with this method");
    let words = format!("whoever answered this cannot be asked with the method {method}");
    let body = error_body(&words, "invalid_request_error", None, None);
    answer_error(writer, StatusCode::NOT_IMPLEMENTED, body);
}

/// Answers a request for a link with an error as JSON.
pub(crate) fn refuse_link(status: StatusCode, words: &str, kind: &str) -> Response<String> {
    let mut response = Response::new(error_body(words, kind, None, None));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
