//! The APIs, a file each: how they tell errors, and how they keep a stream alive.

mod anthropic;
pub(crate) mod in_room;
mod node_chat;
mod openai;
mod responses;

use base::{Endpoint, JobId};
use http::HeaderMap;
use protocol::sse::Boundary;

use crate::error::ApiError;

/// One API.
pub(crate) trait Shape: Send + Sync {
    /// The shape of its requests, and with it where they are posted to.
    fn endpoint(&self) -> Endpoint;

    /// An error as a response body, JSON.
    fn error_body(&self, error: &ApiError, id: JobId) -> String;

    /// An error as the last event of a stream.
    fn error_event(&self, error: &ApiError, id: JobId) -> String;

    /// A sign of life between two events of a stream.
    fn keepalive(&self) -> &'static [u8];

    /// Whether something may be added where a stream is now.
    fn may_add(&self, at: &Boundary) -> bool {
        at.at_event_start()
    }

    /// What ends a half event.
    fn closing(&self, at: &Boundary) -> &'static [u8] {
        at.closing()
    }

    /// Where its clients look for the job's id, beside `x-request-id`.
    fn id_header(&self) -> Option<&'static str> {
        None
    }

    /// Whether its answers are streams though no request says so.
    fn always_streams(&self) -> bool {
        false
    }

    /// Whether its clients say that their body is JSON.
    fn says_json(&self) -> bool {
        true
    }

    /// Puts what its clients send in a place of their own where every API has it.
    fn adapt(&self, _headers: &mut HeaderMap) {}
}

/// Every API there is.
pub(crate) const ALL: [&'static dyn Shape; 7] = [
    &openai::OpenAi(Endpoint::ChatCompletions),
    &openai::OpenAi(Endpoint::Completions),
    &openai::OpenAi(Endpoint::Embeddings),
    &responses::Responses,
    &anthropic::Anthropic(Endpoint::Messages),
    &anthropic::Anthropic(Endpoint::CountTokens),
    &node_chat::NodeChat,
];

/// The API of a path; OpenAI's for what is none.
pub(crate) fn of_path(path: &str) -> &'static dyn Shape {
    ALL.into_iter().find(|shape| shape.endpoint().path() == path).unwrap_or(ALL[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_its_shape() {
        for endpoint in Endpoint::ALL {
            assert_eq!(of_path(endpoint.path()).endpoint(), endpoint);
        }
        assert_eq!(of_path("/v1/nothing").endpoint(), Endpoint::ChatCompletions);
    }
}
