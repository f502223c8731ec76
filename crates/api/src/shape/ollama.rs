//! Ollama's API: JSON values, one a line, and errors that have nothing but a text.

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::Uri;
use protocol::{
    ollama::{
        Peek, peek,
        reply::{error_body, error_line},
    },
    sse::Boundary,
};

use super::Shape;
use crate::error::ApiError;

pub(super) struct Ollama(pub(super) Endpoint);

impl Shape for Ollama {
    fn endpoint(&self) -> Endpoint {
        self.0
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        error_body(&error.message)
    }

    fn error_event(&self, error: &ApiError, _: JobId, _: u64) -> String {
        error_line(&error.message)
    }

    /// A space in front of the next line. Ollama's own clients take an empty line for bad JSON.
    fn keepalive(&self) -> &'static [u8] {
        b" "
    }

    fn comment(&self, _: &str) -> Option<String> {
        None
    }

    fn waiting(&self, _: &str) -> String {
        " ".to_owned()
    }

    fn may_add(&self, at: &Boundary) -> bool {
        at.at_line_start()
    }

    fn closing(&self, at: &Boundary) -> &'static [u8] {
        if at.at_line_start() { b"" } else { b"\n" }
    }

    /// Ollama does not look at the content type, and its documentation shows `curl -d`.
    fn says_json(&self) -> bool {
        false
    }

    fn stream_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn of_body(&self, body: &[u8]) -> Option<&'static dyn Shape> {
        let is_raw =
            self.0 == Endpoint::OllamaGenerate && Peek::read(body).is_some_and(|it| it.is_raw);
        is_raw.then_some(&Ollama(Endpoint::OllamaRaw))
    }

    /// Ollama's API streams an answer unless the request says otherwise.
    fn complete(&self, _: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
        Ok(if self.0.generates() { peek::completed(&body) } else { body })
    }
}
