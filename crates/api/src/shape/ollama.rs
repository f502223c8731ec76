//! Ollama's API: JSON values, one a line, and errors that are one text.

use base::{Endpoint, JobId};
use protocol::{json, sse::Boundary};

use super::contract::Shape;
use crate::error::ApiError;

pub(super) struct Ollama(pub(super) Endpoint);

impl Shape for Ollama {
    fn endpoint(&self) -> Endpoint {
        self.0
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        format!("{{\"error\":{}}}", json::write(&error.message))
    }

    fn error_event(&self, error: &ApiError, id: JobId, _: u64) -> String {
        let mut line = self.error_body(error, id);
        line.push('\n');
        line
    }

    /// A space in front of the next line. Ollama's own clients take an empty line for bad JSON.
    fn keepalive(&self) -> &'static [u8] {
        b" "
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
}
