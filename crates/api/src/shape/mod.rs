//! The APIs, a file each: how they tell errors, and how they keep a stream alive.

mod anthropic;
mod openai;
mod responses;

use base::JobId;

use crate::error::ApiError;

/// One API.
pub(crate) trait Shape: Send + Sync {
    /// Where it is posted to.
    fn path(&self) -> &'static str;

    /// An error as a response body, JSON.
    fn error_body(&self, error: &ApiError, id: JobId) -> String;

    /// An error as the last event of a stream.
    fn error_event(&self, error: &ApiError, id: JobId) -> String;

    /// A sign of life between two events of a stream.
    fn keepalive(&self) -> &'static [u8];
}

/// Every API there is.
pub(crate) const ALL: [&'static dyn Shape; 5] = [
    &openai::OpenAi { path: "/v1/chat/completions" },
    &openai::OpenAi { path: "/v1/completions" },
    &openai::OpenAi { path: "/v1/embeddings" },
    &responses::Responses,
    &anthropic::Messages,
];

/// The API of a path; OpenAI's for what is none.
pub(crate) fn of_path(path: &str) -> &'static dyn Shape {
    ALL.into_iter().find(|shape| shape.path() == path).unwrap_or(ALL[0])
}
