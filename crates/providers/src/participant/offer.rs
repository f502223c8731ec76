//! The offer of a participant to the dispatcher.

use base::{Endpoint, Endpoints};
use protocol::room::{Capabilities, Capability};
use rooms::room::ServedParticipant as Participant;
use scheduler::{Distance, Offer};

use crate::{member::Member, served::ServedEndpoints};

/// The largest capacity that a participant may claim.
const MAX_CONCURRENT: u32 = 1_000;

/// The longest request that a participant is sent, in bytes.
pub(super) const MAX_REQUEST: u64 = 8 * 1024 * 1024;

/// The endpoints that a participant is assumed to serve: OpenAI's APIs, except those that it
/// denies. The rest is learned from its answers, since even an endpoint that it claims may be
/// missing.
pub(super) fn served(capabilities: Capabilities) -> ServedEndpoints {
    let Capabilities { open_responses, chat_completions } = capabilities;
    let always = Endpoints::only(Endpoint::Completions).with(Endpoint::Embeddings);
    let known =
        [(open_responses, Endpoint::Responses), (chat_completions, Endpoint::ChatCompletions)];
    let has = known.into_iter().filter(|(capability, _)| *capability != Capability::Unsupported);
    ServedEndpoints::assumed(has.fold(always, |served, (_, endpoint)| served.with(endpoint)))
}

/// A participant's offer to the dispatcher.
pub(super) fn offer(member: &Member, participant: &Participant, served: &ServedEndpoints) -> Offer {
    Offer {
        scope: member.room().scope(),
        models: member.offered(&participant.models),
        unloaded: Vec::new(),
        max_concurrent: capacity(participant),
        load: 0,
        max_size: MAX_REQUEST,
        endpoints: served.endpoints(),
        distance: Distance::Here,
        lingers: false,
        acknowledges: false,
        borrowed: false,
    }
}

/// The number of requests that a participant gets at once.
pub(super) fn capacity(participant: &Participant) -> u32 {
    participant.max_concurrent.clamp(1, MAX_CONCURRENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_serves_what_it_does_not_deny() {
        let capabilities = |open_responses, chat_completions| {
            served(Capabilities { open_responses, chat_completions }).endpoints()
        };
        let unknown = capabilities(Capability::Unknown, Capability::Unknown);
        assert!(unknown.contains(Endpoint::Responses) && unknown.contains(Endpoint::Embeddings));
        assert!(!unknown.contains(Endpoint::Messages), "that is not OpenAI's");
        let chat = capabilities(Capability::Unsupported, Capability::Supported);
        assert!(!chat.contains(Endpoint::Responses) && chat.contains(Endpoint::ChatCompletions));
        let responses = capabilities(Capability::Supported, Capability::Unsupported);
        assert!(!responses.contains(Endpoint::ChatCompletions));
    }
}
