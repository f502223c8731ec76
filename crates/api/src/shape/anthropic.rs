//! Anthropic's Messages, and the count of a message's tokens.

use base::{Endpoint, JobId};
use protocol::anthropic;

use super::Shape;
use crate::error::ApiError;

pub(super) struct Anthropic(pub(super) Endpoint);

impl Shape for Anthropic {
    fn endpoint(&self) -> Endpoint {
        self.0
    }

    fn error_body(&self, error: &ApiError, id: JobId) -> String {
        anthropic::error_body(error.kind.anthropic(), &error.message, &id.to_string())
    }

    fn error_event(&self, error: &ApiError, id: JobId, _: u64) -> String {
        anthropic::error_event(error.kind.anthropic(), &error.message, &id.to_string())
    }

    fn keepalive(&self) -> &'static [u8] {
        anthropic::PING
    }

    /// A comment and a ping: some clients count only events as life.
    fn waiting(&self, words: &str) -> String {
        format!(": {words}\n{}", String::from_utf8_lossy(anthropic::PING))
    }

    fn id_header(&self) -> Option<&'static str> {
        Some("request-id")
    }
}
