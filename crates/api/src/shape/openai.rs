//! OpenAI's Chat Completions, Completions and Embeddings.

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

    fn error_event(&self, error: &ApiError, _: JobId) -> String {
        openai::error_event(&error.message, error.kind.openai(), error.param.as_deref(), error.code)
    }

    fn keepalive(&self) -> &'static [u8] {
        sse::KEEPALIVE
    }
}
