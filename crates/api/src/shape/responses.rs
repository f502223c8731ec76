//! OpenAI's Responses.

use base::{Endpoint, JobId};
use protocol::{openai, sse};

use super::Shape;
use crate::error::ApiError;

pub(super) struct Responses;

impl Shape for Responses {
    fn endpoint(&self) -> Endpoint {
        Endpoint::Responses
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        openai::error_body(&error.message, error.kind.openai(), error.param.as_deref(), error.code)
    }

    fn error_event(&self, error: &ApiError, _: JobId) -> String {
        // The events before it are not counted: the stream passes as it is.
        openai::response_error_event(&error.message, error.code, 0)
    }

    fn keepalive(&self) -> &'static [u8] {
        sse::KEEPALIVE
    }
}
