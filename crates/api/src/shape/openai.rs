//! OpenAI's Chat Completions, Completions, Embeddings and Responses, its sound, pictures and moderations, and vLLM's
//! scores.

use base::{Endpoint, JobId};
use protocol::{openai, sse};

use super::Shape;
use crate::error::ApiError;

pub(super) struct OpenAi(pub(super) Endpoint);

impl Shape for OpenAi {
    fn endpoint(&self) -> Endpoint {
        self.0
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        openai::error_body(&error.message, error.kind.openai(), error.param.as_deref(), error.code)
    }

    fn error_event(&self, error: &ApiError, _: JobId, _: u64) -> String {
        openai::error_event(&error.message, error.kind.openai(), error.param.as_deref(), error.code)
    }

    fn keepalive(&self) -> &'static [u8] {
        sse::KEEPALIVE
    }
}

pub(super) struct Responses;

impl Shape for Responses {
    fn endpoint(&self) -> Endpoint {
        Endpoint::Responses
    }

    fn error_body(&self, error: &ApiError, id: JobId) -> String {
        OpenAi(Endpoint::Responses).error_body(error, id)
    }

    fn error_event(&self, error: &ApiError, _: JobId, number: u64) -> String {
        openai::response_error_event(&error.message, error.kind.openai(), error.code, number)
    }

    fn keepalive(&self) -> &'static [u8] {
        sse::KEEPALIVE
    }
}
