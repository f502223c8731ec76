//! The shape of each endpoint.

use base::Endpoint;

use super::{
    chat::Chat, completions::Completions, messages::Messages, responses::Responses, shape::Shape,
};

/// The shape of an endpoint's answers; `None` where they are not continued.
pub(super) fn of(endpoint: Endpoint) -> Option<Box<dyn Shape>> {
    Some(match endpoint {
        Endpoint::ChatCompletions => Box::new(Chat::default()),
        Endpoint::Completions => Box::new(Completions::default()),
        Endpoint::Messages => Box::new(Messages::default()),
        Endpoint::Responses => Box::new(Responses::default()),
        _ => return None,
    })
}
