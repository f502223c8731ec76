//! Anthropic's Messages.

use base::JobId;
use protocol::anthropic;

use super::Shape;
use crate::error::ApiError;

pub(super) struct Messages;

impl Shape for Messages {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn error_body(&self, error: &ApiError, id: JobId) -> String {
        anthropic::error_body(error.kind.anthropic(), &error.message, &id.to_string())
    }

    fn error_event(&self, error: &ApiError, id: JobId) -> String {
        anthropic::error_event(error.kind.anthropic(), &error.message, &id.to_string())
    }

    fn keepalive(&self) -> &'static [u8] {
        anthropic::PING
    }
}
