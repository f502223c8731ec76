//! OpenAI's Chat Completions, Completions and Embeddings.

use base::JobId;
use protocol::{openai, sse};

use super::Shape;
use crate::error::ApiError;

pub(super) struct OpenAi {
    pub(super) path: &'static str,
}

impl Shape for OpenAi {
    fn path(&self) -> &'static str {
        self.path
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        openai::error_body(&error.message, error.kind.openai(), error.param, error.code)
    }

    fn error_event(&self, error: &ApiError, _: JobId) -> String {
        openai::error_event(&error.message, error.kind.openai(), error.param, error.code)
    }

    fn keepalive(&self) -> &'static [u8] {
        sse::KEEPALIVE
    }
}
