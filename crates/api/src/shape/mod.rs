//! The APIs, a file each: their errors, and how they keep a stream alive.

mod anthropic;
mod contract;
pub(crate) mod in_room;
mod node_chat;
mod openai;

use base::Endpoint;

pub(crate) use contract::Shape;

pub(crate) const ALL: [&'static dyn Shape; 7] = [
    &openai::OpenAi(Endpoint::ChatCompletions),
    &openai::OpenAi(Endpoint::Completions),
    &openai::OpenAi(Endpoint::Embeddings),
    &openai::Responses,
    &anthropic::Anthropic(Endpoint::Messages),
    &anthropic::Anthropic(Endpoint::CountTokens),
    &node_chat::NodeChat,
];

/// The API of a path; OpenAI's for an unknown path.
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
