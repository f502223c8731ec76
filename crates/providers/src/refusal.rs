//! Refusals: of jobs that a provider's protocol cannot carry, and of links.

use base::JobId;
use http::{HeaderValue, Method, Response, StatusCode, header};
use protocol::openai::error_body;
use scheduler::AnswerWriter;

/// Passes a job that this provider's protocol cannot carry to another provider, which may have
/// another protocol. Without one, the job is answered with 501.
pub(crate) fn cannot_ask(job: JobId, writer: AnswerWriter, method: &Method) {
    let Err(writer) = writer.pass_on() else { return };
    tracing::warn!(request_id = %job, %method, "the provider cannot be asked with this method");
    let words = format!("whoever answered this cannot be asked with the method {method}");
    let body = error_body(&words, "invalid_request_error", None, None);
    writer.answer_error(StatusCode::NOT_IMPLEMENTED, body);
}

/// Answers a request for a link with an error as JSON.
pub(crate) fn refuse_link(status: StatusCode, words: &str, kind: &str) -> Response<String> {
    let mut response = Response::new(error_body(words, kind, None, None));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
